/* operation_examples.h - example descriptions of the operations in ptxgen_kernels.h, which it is included
 * after. ptxdump prints their kernels; the tests assemble them for every target. A new operation adds its
 * EXAMPLES_<name> here: a line X(label, fields of ptxk_<name>_desc ...) for each example.
 * The examples cover each type with each size of row, GQA in rotation, and shapes of known models. */
#ifndef OPERATION_EXAMPLES_H
#define OPERATION_EXAMPLES_H

#include <string.h>

#define EXAMPLES_flash_decode(X)                                                                             \
    X("32 heads on 8, d 128, f16", 32, 8, 128, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("1 head, d 16, f32", 1, 1, 16, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)                   \
    X("4 heads on 1, d 16, f16", 4, 1, 16, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)             \
    X("7 heads on 1, d 16, bf16", 7, 1, 16, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("16 heads on 2, d 40, f32", 16, 2, 40, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("2 heads on 2, d 40, f16", 2, 2, 40, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)             \
    X("8 heads on 2, d 40, bf16", 8, 2, 40, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("14 heads on 2, d 64, f32", 14, 2, 64, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("8 heads on 1, d 64, f16", 8, 1, 64, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)             \
    X("12 heads on 12, d 64, bf16", 12, 12, 64, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)       \
    X("4 heads on 1, d 96, f32", 4, 1, 96, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)             \
    X("28 heads on 4, d 96, f16", 28, 4, 96, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("64 heads on 8, d 96, bf16", 64, 8, 96, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("32 heads on 8, d 128, f32", 32, 8, 128, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("64 heads on 8, d 128, f32", 64, 8, 128, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("32 heads on 32, d 128, f16", 32, 32, 128, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)       \
    X("64 heads on 8, d 128, f16", 64, 8, 128, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("28 heads on 4, d 128, bf16", 28, 4, 128, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)       \
    X("71 heads on 1, d 64, f16", 71, 1, 64, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("8 heads on 1, d 192, f32", 8, 1, 192, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("1 head, d 192, f16", 1, 1, 192, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)                 \
    X("4 heads on 1, d 192, bf16", 4, 1, 192, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)         \
    X("7 heads on 1, d 256, f32", 7, 1, 256, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("8 heads on 1, d 256, f32", 8, 1, 256, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("8 heads on 1, d 256, f16", 8, 1, 256, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("16 heads on 4, d 256, bf16", 16, 4, 256, PTX_BF16, 0.0625f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)    \
    X("1 head, d 8, f16", 1, 1, 8, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)                     \
    X("9 heads on 1, d 136, f32", 9, 1, 136, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)           \
    X("32 heads on 4, d 128, f16, q and out f16",                                                            \
      32, 4, 128, PTX_F16, 0.0f, PTX_F16, PTX_F16, 1, 0, 0.0f, 0, 0, 0)                                      \
    X("32 heads on 8, d 128, bf16, all bf16, append, pages of 16, lse",                                      \
      32, 8, 128, PTX_BF16, 0.0f, PTX_BF16, PTX_BF16, 1, 0, 0.0f, 16, PTX_BF16, 1)                           \
    X("16 heads on 8, d 256, f16, window, cap, append f32",                                                  \
      16, 8, 256, PTX_F16, 0.0625f, PTX_F32, PTX_F32, 1, 4096, 50.0f, 0, PTX_F32, 0)                         \
    X("32 heads on 8, d 128, f16, 4 queries, append f16, pages of 64",                                       \
      32, 8, 128, PTX_F16, 0.0f, PTX_F16, PTX_F16, 4, 0, 0.0f, 64, PTX_F16, 0)                               \
    X("8 heads on 1, d 64, bf16, 8 queries, window, lse",                                                    \
      8, 1, 64, PTX_BF16, 0.0f, PTX_F32, PTX_F16, 8, 512, 0.0f, 0, 0, 1)                                     \
    X("8 heads on 1, d 136, bf16, 2 queries, append f32, pages of 16",                                       \
      8, 1, 136, PTX_BF16, 0.0f, PTX_F32, PTX_F32, 2, 0, 0.0f, 16, PTX_F32, 0)                               \
    X("4 heads on 2, d 32, f16, 8 queries, cap",                                                             \
      4, 2, 32, PTX_F16, 0.0f, PTX_F32, PTX_F32, 8, 0, 30.0f, 0, 0, 0)                                       \
    X("8 heads on 2, d 128, f32, 2 queries, append f16, pages of 32, window, cap, lse",                      \
      8, 2, 128, PTX_F32, 0.0f, PTX_BF16, PTX_BF16, 2, 1024, 30.0f, 32, PTX_F16, 1)                          \
    X("8 heads on 1, d 256, f32, append f32",                                                                \
      8, 1, 256, PTX_F32, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, PTX_F32, 0)                                 \
    X("32 heads on 4, d 128, f16, scalar",                                                                   \
      32, 4, 128, PTX_F16, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 2)                                      \
    X("8 heads on 1, d 256, bf16, 4 queries, append f16, pages of 16, scalar",                               \
      8, 1, 256, PTX_BF16, 0.0f, PTX_F16, PTX_F32, 4, 300, 0.0f, 16, PTX_F16, 3)                             \
    X("32 heads on 8, d 128, f16, all f16, append, pages of 16, rows first",                                 \
      32, 8, 128, PTX_F16, 0.0f, PTX_F16, PTX_F16, 1, 0, 0.0f, 16, PTX_F16, PTXK_FLASH_PAGE_ROWS)            \
    X("32 heads on 8, d 128, e4m3", 32, 8, 128, PTX_E4M3, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)       \
    X("32 heads on 8, d 128, q8_0", 32, 8, 128, PTXK_Q8_0, 0.0f, PTX_F32, PTX_F32, 1, 0, 0.0f, 0, 0, 0)      \
    X("8 heads on 1, d 256, q8_0, pages of 16",                                                              \
      8, 1, 256, PTXK_Q8_0, 0, PTX_F32, PTX_F32, 1, 0, 0, 16, 0, 0)                                          \
    X("28 heads on 4, d 96, q8_0, 2 queries, window, append f32",                                            \
      28, 4, 96, PTXK_Q8_0, 0, PTX_F16, PTX_F16, 2, 99, 0, 0, PTX_F32, 0)                                    \
    X("8 heads on 2, d 64, e4m3, pages of 64, rows first, append bf16",                                      \
      8, 2, 64, PTX_E4M3, 0, PTX_BF16, PTX_F32, 1, 0, 0, 64, PTX_BF16, PTXK_FLASH_PAGE_ROWS)                 \
    X("64 heads on 8, d 64, f16, window, sinks",                                                             \
      64, 8, 64, PTX_F16, 0, PTX_F32, PTX_F32, 1, 128, 0, 0, 0, PTXK_FLASH_SINK)                             \
    X("64 heads on 8, d 64, f32, prior, sinks, lse",                                                         \
      64, 8, 64, PTX_F32, 0, PTX_F32, PTX_F32, 1, 0, 0, 0, 0,                                                \
      PTXK_FLASH_SINK | PTXK_FLASH_PRIOR | PTXK_FLASH_LSE)                                                   \
    X("32 heads on 8, d 128, f16, a tree of 8 drafts, append f16, pages of 64",                              \
      32, 8, 128, PTX_F16, 0, PTX_F32, PTX_F32, 8, 0, 0, 64, PTX_F16, PTXK_FLASH_TREE)

#define EXAMPLES_kv_scatter(X)                                                                               \
    X("8 heads, d 128, f16 to f16", 8, 128, PTX_F16, PTX_F16, 0, 0)                                          \
    X("8 heads, d 128, f32 to f16, pages of 16", 8, 128, PTX_F32, PTX_F16, 16, 0)                            \
    X("8 heads, d 128, f32 to bf16", 8, 128, PTX_F32, PTX_BF16, 0, 0)                                        \
    X("4 heads, d 96, bf16 to bf16, pages of 64", 4, 96, PTX_BF16, PTX_BF16, 64, 0)                          \
    X("2 heads, d 80, bf16 to f32", 2, 80, PTX_BF16, PTX_F32, 0, 0)                                          \
    X("3 heads, d 33, f32 to f32", 3, 33, PTX_F32, PTX_F32, 0, 0)                                            \
    X("1 head, d 7, f16 to bf16, pages of 256", 1, 7, PTX_F16, PTX_BF16, 256, 0)                             \
    X("5 heads, d 512, bf16 to f16", 5, 512, PTX_BF16, PTX_F16, 0, 0)                                        \
    X("1 head, d 1, f32 to f16", 1, 1, PTX_F32, PTX_F16, 0, 0)                                               \
    X("8 heads, d 128, bf16 to bf16, pages of 16, rows first", 8, 128, PTX_BF16, PTX_BF16, 16,               \
      PTXK_SCATTER_PAGE_ROWS)                                                                                \
    X("8 heads, d 128, f16 to f16, single", 8, 128, PTX_F16, PTX_F16, 0, PTXK_SCATTER_SINGLE)                \
    X("8 heads, d 128, f32 to q8_0", 8, 128, PTX_F32, PTXK_Q8_0, 0, 0)                                       \
    X("8 heads, d 128, f16 to e4m3, pages of 64", 8, 128, PTX_F16, PTX_E4M3, 64, 0)

#define EXAMPLES_flash_prefill(X)                                                                            \
    X("32 heads on 8, d 128, f16, causal", 32, 8, 128, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 0, 0)                \
    X("32 heads on 8, d 128, f16", 32, 8, 128, PTX_F16, PTX_F16, 0, 0, 0, 0, 0, 0, 0)                        \
    X("28 heads on 4, d 128, bf16, causal, lse", 28, 4, 128, PTX_BF16, PTX_BF16, 3, 0, 0, 0, 0, 0, 0)        \
    X("16 heads on 8, d 256, bf16, causal, window, cap",                                                     \
      16, 8, 256, PTX_BF16, PTX_BF16, 1, 4096, 0, 0.0625f, 50.0f, 0, 0)                                      \
    X("16 heads on 8, d 256, f16 to f32", 16, 8, 256, PTX_F16, PTX_F32, 0, 0, 0, 0, 0, 0, 0)                 \
    X("12 heads, d 64, f16, window 100, lse", 12, 12, 64, PTX_F16, PTX_F16, 2, 100, 0, 0, 0, 0, 0)           \
    X("14 heads on 2, d 64, bf16 to f32, causal", 14, 2, 64, PTX_BF16, PTX_F32, 1, 0, 0, 0, 0, 0, 0)         \
    X("32 heads on 8, d 128, f16, causal, window 4096",                                                      \
      32, 8, 128, PTX_F16, PTX_F16, 1, 4096, 0, 0, 0, 0, 0)                                                  \
    X("4 heads on 1, d 128, f32, causal", 4, 1, 128, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 0, 0)                  \
    X("4 heads on 1, d 128, f32 to bf16, 19 bits, lse", 4, 1, 128, PTX_F32, PTX_BF16, 3, 0, 1, 0, 0, 0, 0)   \
    X("1 head, d 64, f32, window 512, lse", 1, 1, 64, PTX_F32, PTX_F32, 3, 512, 0, 0, 0, 0, 0)               \
    X("64 heads on 8, d 64, f16, causal, window 128, sinks, lse",                                            \
      64, 8, 64, PTX_F16, PTX_F32, 3 | PTXK_PREFILL_SINK, 128, 0, 0, 0, 0, 0)                                \
    X("1 head, d 256, f32, cap 30", 1, 1, 256, PTX_F32, PTX_F32, 0, 0, 0, 0, 30.0f, 0, 0)                    \
    X("1 head, d 40, f16 to bf16, negative scale", 1, 1, 40, PTX_F16, PTX_BF16, 1, 0, 0, -0.5f, 0, 0, 0)     \
    X("2 heads, d 136, f16, causal", 2, 2, 136, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 0, 0)                       \
    X("4 heads on 2, d 96, bf16, causal", 4, 2, 96, PTX_BF16, PTX_BF16, 1, 0, 0, 0, 0, 0, 0)                 \
    X("1 head, d 8, f16, causal", 1, 1, 8, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 0, 0)                            \
    X("32 heads on 8, d 128, f16, causal, pages of 64", 32, 8, 128, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 64, 0)  \
    X("8 heads on 2, d 64, bf16, causal, window, pages of 16, rows first",                                   \
      8, 2, 64, PTX_BF16, PTX_F32, 5, 1024, 0, 0, 0, 16, 0)                                                  \
    X("4 heads on 1, d 128, f32, causal, pages of 256", 4, 1, 128, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 256, 0)  \
    X("32 heads on 8, d 128, f16, causal, e4m3", 32, 8, 128, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 0, PTX_E4M3)   \
    X("32 heads on 8, d 128, f16, causal, q8_0, pages of 64",                                                \
      32, 8, 128, PTX_F16, PTX_F16, 1, 0, 0, 0, 0, 64, PTXK_Q8_0)                                            \
    X("8 heads on 2, d 64, bf16, causal, window, q8_0",                                                      \
      8, 2, 64, PTX_BF16, PTX_F32, 1, 100, 0, 0, 0, 0, PTXK_Q8_0)                                            \
    X("4 heads on 1, d 96, f32, cap, e4m3, pages of 16, rows first",                                         \
      4, 1, 96, PTX_F32, PTX_F32, 5, 0, 0, 0, 30.0f, 16, PTX_E4M3)                                           \
    X("32 heads on 8, d 128, f16, a tree of drafts",                                                         \
      32, 8, 128, PTX_F16, PTX_F32, PTXK_PREFILL_TREE, 0, 0, 0, 0, 0, 0)                                     \
    X("64 heads on 8, d 64, bf16, a tree of drafts, pages of 64, sinks, lse",                                \
      64, 8, 64, PTX_BF16, PTX_BF16, PTXK_PREFILL_TREE | PTXK_PREFILL_SINK | PTXK_PREFILL_LSE, 0, 0, 0, 0,   \
      64, 0)

#define EXAMPLES_flash_mla(X)                                                                                \
    X("16 heads", 16, 512, 64, PTX_F16, PTX_F32, PTX_F32, 16, 0, 0, 0.0722f)                                 \
    X("16 heads, prompts, f16 q", 16, 512, 64, PTX_F16, PTX_F16, PTX_F32, 64, 0, 0, 0.0722f)                 \
    X("128 heads, pages of 64, lse", 128, 512, 64, PTX_F16, PTX_BF16, PTX_BF16, 64, 64, PTXK_MLA_LSE,        \
      0.0722f)                                                                                               \
    X("20 heads, f16, 256 + 32", 20, 256, 32, PTX_F16, PTX_F16, PTX_F16, 32, 0, 0, 0.0f)                     \
    X("16 heads, e4m3", 16, 512, 64, PTX_E4M3, PTX_F32, PTX_F32, 16, 0, 0, 0.0722f)                          \
    X("16 heads, prompts, e4m3, pages of 64", 16, 512, 64, PTX_E4M3, PTX_F32, PTX_F32, 64, 64, 0, 0.0722f)   \
    X("128 heads, q8_0, lse", 128, 512, 64, PTXK_Q8_0, PTX_BF16, PTX_BF16, 64, 0, PTXK_MLA_LSE, 0.0722f)     \
    X("20 heads, q8_0, pages of 16, 256 + 32", 20, 256, 32, PTXK_Q8_0, PTX_F16, PTX_F16, 32, 16, 0, 0.0f)

#define EXAMPLES_gemv(X)                                                                                     \
    X("Q4_K, f32 y", PTXK_Q4_K, 1, 0, PTX_F32, 0, 0, 0)                                                      \
    X("Q4_K, f32 y, 8-bit x", PTXK_Q4_K, 1, 1, PTX_F32, 0, 0, 0)                                             \
    X("Q4_K, norm, f32 y", PTXK_Q4_K, 1, 0, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA, 0, 0)                 \
    X("Q4_K, norm, f16 y, 8-bit x", PTXK_Q4_K, 1, 1, PTX_F16, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA, 0, 0)        \
    X("Q4_K, residual, f32 y", PTXK_Q4_K, 1, 0, PTX_F32, PTXK_GEMV_RESIDUAL, 0, 0)                           \
    X("Q4_K, all, f16 y, 8 columns", PTXK_Q4_K, 8, 0, PTX_F16, 7, 0, 0)                                      \
    X("Q4_K, norm without gamma, 2 columns", PTXK_Q4_K, 2, 0, PTX_F32, PTXK_GEMV_NORM, 0, 0)                 \
    X("Q4_K, gamma without norm, 3 columns, 8-bit x", PTXK_Q4_K, 3, 1, PTX_F32, PTXK_GEMV_GAMMA, 0, 0)       \
    X("Q4_K, 4 columns, 8-bit x", PTXK_Q4_K, 4, 1, PTX_F16, PTXK_GEMV_RESIDUAL, 0, 0)                        \
    X("Q4_K, 5 columns", PTXK_Q4_K, 5, 0, PTX_F32, 0, 0, 0)                                                  \
    X("Q4_K, 6 columns", PTXK_Q4_K, 6, 0, PTX_F32, 7, 0, 0)                                                  \
    X("Q4_K, 7 columns, 8-bit x", PTXK_Q4_K, 7, 1, PTX_F32, 0, 0, 0)                                         \
    X("Q4_K, all, f32 y, 8 columns, 8-bit x", PTXK_Q4_K, 8, 1, PTX_F32, 7, 0, 0)                             \
    X("Q8_0", PTXK_Q8_0, 1, 0, PTX_F32, 0, 0, 0)                                                             \
    X("Q8_0, 8-bit x", PTXK_Q8_0, 1, 1, PTX_F32, 0, 0, 0)                                                    \
    X("Q8_0, 2 columns", PTXK_Q8_0, 2, 0, PTX_F16, 0, 0, 0)                                                  \
    X("Q8_0, 8 columns", PTXK_Q8_0, 8, 0, PTX_F32, 0, 0, 0)                                                  \
    X("Q4_0", PTXK_Q4_0, 1, 0, PTX_F32, 0, 0, 0)                                                             \
    X("Q4_0, 8-bit x", PTXK_Q4_0, 1, 1, PTX_F32, 0, 0, 0)                                                    \
    X("Q4_0, 2 columns", PTXK_Q4_0, 2, 0, PTX_F16, 0, 0, 0)                                                  \
    X("Q4_0, 8 columns", PTXK_Q4_0, 8, 0, PTX_F32, 0, 0, 0)                                                  \
    X("Q5_K", PTXK_Q5_K, 1, 0, PTX_F32, 0, 0, 0)                                                             \
    X("Q5_K, 8-bit x", PTXK_Q5_K, 1, 1, PTX_F32, 0, 0, 0)                                                    \
    X("Q5_K, 8 columns", PTXK_Q5_K, 8, 0, PTX_F32, 0, 0, 0)                                                  \
    X("Q6_K", PTXK_Q6_K, 1, 0, PTX_F32, 0, 0, 0)                                                             \
    X("Q6_K, 8-bit x", PTXK_Q6_K, 1, 1, PTX_F32, 0, 0, 0)                                                    \
    X("Q6_K, 2 columns", PTXK_Q6_K, 2, 0, PTX_F16, 0, 0, 0)                                                  \
    X("Q6_K, 4 columns", PTXK_Q6_K, 4, 1, PTX_F32, 0, 0, 0)                                                  \
    X("Q6_K, 8 columns", PTXK_Q6_K, 8, 0, PTX_F32, 0, 0, 0)                                                  \
    X("f32", PTXK_F32, 1, 0, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA, 0, 0)                                \
    X("f16", PTXK_F16, 1, 0, PTX_F32, PTXK_GEMV_RESIDUAL, 0, 0)                                              \
    X("bf16", PTXK_BF16, 1, 0, PTX_F32, 0, 0, 0)                                                             \
    X("f32, 8 columns", PTXK_F32, 8, 0, PTX_F32, 0, 0, 0)                                                    \
    X("bf16, 8 columns", PTXK_BF16, 8, 0, PTX_F16, 0, 0, 0)                                                  \
    X("Q, K and V with bias", PTXK_Q4_K, 1, 0, PTX_F32, 3 | PTXK_GEMV_BIAS, PTXK_Q4_K, PTXK_Q6_K)            \
    X("Q, K and V, 4 columns", PTXK_Q5_K, 4, 0, PTX_F16, 3, PTXK_Q8_0, PTXK_Q4_0)                            \
    X("Q, K and V, bf16", PTXK_BF16, 1, 0, PTX_F32, 3, PTXK_BF16, PTXK_F32)                                  \
    X("SwiGLU, Q4_K", PTXK_Q4_K, 1, 0, PTX_F32, 3 | PTXK_GEMV_SWIGLU, PTXK_Q4_K, 0)                          \
    X("SwiGLU, Q4_K, 8-bit x", PTXK_Q4_K, 1, 1, PTX_F32, 3 | PTXK_GEMV_SWIGLU, PTXK_Q4_K, 0)                 \
    X("SwiGLU, Q6_K and Q4_K, 8 columns", PTXK_Q6_K, 8, 0, PTX_F16, 3 | PTXK_GEMV_SWIGLU, PTXK_Q4_K, 0)      \
    X("SwiGLU, f16", PTXK_F16, 1, 0, PTX_F32, PTXK_GEMV_SWIGLU | PTXK_GEMV_BIAS, PTXK_F16, 0)

#define EXAMPLES_matmul(X)                                                                                   \
    X("f16, B transposed, to f16", PTX_F16, PTX_F16, PTX_F16, PTXK_MATMUL_TRANS_B, 0, 0, 0, 0)               \
    X("f16 to f32", PTX_F16, PTX_F16, PTX_F32, 0, 0, 0, 0, 0)                                                \
    X("f16, A transposed, to f32", PTX_F16, PTX_F16, PTX_F32, PTXK_MATMUL_TRANS_A, 0, 0, 0, 0)               \
    X("f16, both transposed, to f32", PTX_F16, PTX_F16, PTX_F32, 3, 0, 0, 0, 0)                              \
    X("bf16, B transposed, bias, GELU", PTX_BF16, PTX_BF16, PTX_BF16,                                        \
      PTXK_MATMUL_TRANS_B | PTXK_MATMUL_BIAS, 0, PTXK_MATMUL_GELU, 0, 0)                                     \
    X("bf16, B transposed, grouped", PTX_BF16, PTX_BF16, PTX_BF16,                                           \
      PTXK_MATMUL_TRANS_B | PTXK_MATMUL_GROUPED, 0, 0, 0, 0)                                                 \
    X("f32 as three products", PTX_F32, PTX_F32, PTX_F32, 0, PTXK_MATMUL_EXACT, 0, 0, 0)                     \
    X("f32 as one product, B transposed", PTX_F32, PTX_F32, PTX_F32, PTXK_MATMUL_TRANS_B, PTXK_MATMUL_FAST,  \
      0, 0, 0)                                                                                               \
    X("e4m3, B transposed, factors of blocks", PTX_E4M3, PTX_E4M3, PTX_BF16, PTXK_MATMUL_TRANS_B, 0, 0,      \
      PTXK_FACTORS_BLOCK, PTXK_FACTORS_SQUARE)                                                               \
    X("e5m2 and e4m3, SiLU", PTX_E5M2, PTX_E4M3, PTX_F16, 0, 0, PTXK_MATMUL_SILU, 0, PTXK_FACTORS_TENSOR)    \
    X("s8, B transposed, factors of rows", PTX_S8, PTX_S8, PTX_F32, PTXK_MATMUL_TRANS_B, 0, 0,               \
      PTXK_FACTORS_ROW, PTXK_FACTORS_ROW)

#define EXAMPLES_gemm(X)                                                                                     \
    X("Q4_K", PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0)                                                 \
    X("Q4_K, fast", PTXK_Q4_K, PTX_F32, PTX_F32, 8, 1, 0, 0, 0, 0)                                           \
    X("Q4_K, all, f16, 16 columns", PTXK_Q4_K, PTX_F16, PTX_F16, 16, 0, 15, 0, 0, 0)                         \
    X("Q4_K, bf16 x, 32 columns, fast", PTXK_Q4_K, PTX_BF16, PTX_BF16, 32, 1, 0, 0, 0, 0)                    \
    X("Q4_K, norm, 64 columns", PTXK_Q4_K, PTX_F32, PTX_F32, 64, 0, 3, 0, 0, 0)                              \
    X("Q5_K, residual", PTXK_Q5_K, PTX_F32, PTX_F32, 8, 0, PTXK_GEMM_RESIDUAL, 0, 0, 0)                      \
    X("Q5_K, 64 columns, fast", PTXK_Q5_K, PTX_F32, PTX_F16, 64, 1, 0, 0, 0, 0)                              \
    X("Q6_K", PTXK_Q6_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0)                                                 \
    X("Q6_K, 64 columns, fast", PTXK_Q6_K, PTX_F32, PTX_F32, 64, 1, 0, 0, 0, 0)                              \
    X("Q8_0", PTXK_Q8_0, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0)                                                 \
    X("Q8_0, 32 columns", PTXK_Q8_0, PTX_F32, PTX_F32, 32, 0, 0, 0, 0, 0)                                    \
    X("Q4_0", PTXK_Q4_0, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0)                                                 \
    X("Q4_0, 16 columns, fast", PTXK_Q4_0, PTX_F32, PTX_F32, 16, 1, 0, 0, 0, 0)                              \
    X("f16, f16 x", PTXK_F16, PTX_F16, PTX_F32, 8, 0, 0, 0, 0, 0)                                            \
    X("f16, 64 columns", PTXK_F16, PTX_F32, PTX_F16, 64, 0, PTXK_GEMM_BIAS, 0, 0, 0)                         \
    X("Q, K and V with bias", PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 3 | PTXK_GEMM_BIAS, PTXK_Q4_K, PTXK_Q6_K,   \
      0)                                                                                                     \
    X("Q, K and V, 64 columns", PTXK_Q8_0, PTX_F32, PTX_F16, 64, 0, 3, PTXK_Q4_0, PTXK_F16, 0)               \
    X("SwiGLU, Q4_K", PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 3 | PTXK_GEMM_SWIGLU, PTXK_Q4_K, 0, 0)              \
    X("SwiGLU, Q6_K, 32 columns", PTXK_Q6_K, PTX_F32, PTX_F32, 32, 0, 3 | PTXK_GEMM_SWIGLU, PTXK_Q6_K, 0, 0) \
    X("GeGLU, f16, 64 columns", PTXK_F16, PTX_F16, PTX_F16, 64, 0, PTXK_GEMM_GEGLU, PTXK_F16, 0, 0)          \
    X("Q4_K, 128 columns, norm", PTXK_Q4_K, PTX_F32, PTX_F32, 128, 0, 3, 0, 0, 0)                            \
    X("Q4_K, 256 columns, fast, SwiGLU", PTXK_Q4_K, PTX_F32, PTX_F16, 256, 1, PTXK_GEMM_SWIGLU, PTXK_Q4_K,   \
      0, 0)                                                                                                  \
    X("Q5_K, 128 columns, residual", PTXK_Q5_K, PTX_F32, PTX_F32, 128, 0, PTXK_GEMM_RESIDUAL, 0, 0, 0)       \
    X("Q, K and V, 128 columns", PTXK_Q4_K, PTX_F32, PTX_F32, 128, 0, 3 | PTXK_GEMM_BIAS, PTXK_Q4_K,         \
      PTXK_Q6_K, 0)                                                                                          \
    X("Q6_K, 128 columns, fast", PTXK_Q6_K, PTX_F32, PTX_F32, 128, 1, 0, 0, 0, 0)                            \
    X("Q8_0, 128 columns, SwiGLU", PTXK_Q8_0, PTX_F32, PTX_F32, 128, 0, PTXK_GEMM_SWIGLU, PTXK_Q8_0, 0, 0)   \
    X("Q4_0, 128 columns", PTXK_Q4_0, PTX_F32, PTX_F32, 128, 0, 0, 0, 0, 0)                                  \
    X("groups", PTXK_Q8_0, PTX_F32, PTX_F32, 8, 0, PTXK_GEMM_GROUPED | PTXK_GEMM_BIAS, 0, 0, 0)              \
    X("groups, SwiGLU, 64 columns", PTXK_Q4_K, PTX_F32, PTX_F32, 64, 0,                                      \
      PTXK_GEMM_GROUPED | PTXK_GEMM_SWIGLU, PTXK_Q4_K, 0, 0)                                                 \
    X("groups, clamped SwiGLU, MXFP4", PTXK_MXFP4, PTX_F32, PTX_F32, 8, 0,                                   \
      PTXK_GEMM_GROUPED | PTXK_GEMM_CLAMPED | PTXK_GEMM_BIAS, PTXK_MXFP4, 0, 0)                              \
    X("bf16, 16 columns", PTXK_BF16, PTX_F32, PTX_F32, 16, 0, 0, 0, 0, 0)                                    \
    X("f32", PTXK_F32, PTX_F32, PTX_F32, 8, 0, PTXK_GEMM_RESIDUAL, 0, 0, 0)                                  \
    X("e4m3, factors of 128 x 128", PTX_E4M3, PTX_BF16, PTX_BF16, 8, 0, 0, 0, 0, PTXK_FACTORS_SQUARE)        \
    X("e4m3, 64 columns, SwiGLU", PTX_E4M3, PTX_BF16, PTX_BF16, 64, 0, PTXK_GEMM_SWIGLU, PTX_E4M3, 0,        \
      PTXK_FACTORS_BLOCK)                                                                                    \
    X("e5m2, a factor, groups", PTX_E5M2, PTX_F16, PTX_F16, 16, 1, PTXK_GEMM_GROUPED, 0, 0,                  \
      PTXK_FACTORS_TENSOR)                                                                                   \
    X("s8, factors of rows, 32 columns", PTX_S8, PTX_F32, PTX_F32, 32, 0, 3, 0, 0, PTXK_FACTORS_ROW)         \
    X("Q, K and V, s8 and f16", PTX_S8, PTX_F32, PTX_F32, 8, 1, 3, PTX_S8, PTXK_F16, PTXK_FACTORS_ROW)

#define EXAMPLES_norm(X)                                                                                     \
    X("rms 4096, f32", 4096, PTXK_NORM_RMS, PTX_F32, PTX_F32, PTX_F32, 0)                                    \
    X("rms 896, f32 to f16, residual", 896, PTXK_NORM_RMS, PTX_F32, PTX_F16, PTX_F32, PTXK_NORM_RESIDUAL)    \
    X("layer 1024, bf16, beta", 1024, PTXK_NORM_LAYER, PTX_BF16, PTX_BF16, PTX_BF16, PTXK_NORM_BETA)         \
    X("layer 16384, f16, all", 16384, PTXK_NORM_LAYER, PTX_F16, PTX_F16, PTX_F16, 3)                         \
    X("rms 16381, f32, residual", 16381, PTXK_NORM_RMS, PTX_F32, PTX_F32, PTX_F32, PTXK_NORM_RESIDUAL)       \
    X("rms 1023, bf16", 1023, PTXK_NORM_RMS, PTX_BF16, PTX_BF16, PTX_F32, PTXK_NORM_PLAIN)                   \
    X("layer 100000, f32, all", 100000, PTXK_NORM_LAYER, PTX_F32, PTX_F32, PTX_F32, 3)                       \
    X("rms 65537, f16", 65537, PTXK_NORM_RMS, PTX_F16, PTX_F16, PTX_F32, PTXK_NORM_RESIDUAL)

#define EXAMPLES_softmax(X)                                                                                  \
    X("4096, f32", 4096, PTX_F32, PTX_F32, 0.0f)                                                             \
    X("1000, f32 to f16", 1000, PTX_F32, PTX_F16, 0.125f)                                                    \
    X("777, bf16", 777, PTX_BF16, PTX_BF16, 0.0f)                                                            \
    X("151936, f32", 151936, PTX_F32, PTX_F32, 0.0f)                                                         \
    X("16384, f16", 16384, PTX_F16, PTX_F16, 0.0f)

#define EXAMPLES_activation(X)                                                                               \
    X("silu, gated, f32", PTXK_SILU, 1, PTX_F32, PTX_F32)                                                    \
    X("silu, f16", PTXK_SILU, 0, PTX_F16, PTX_F16)                                                           \
    X("gelu, bf16", PTXK_GELU, 0, PTX_BF16, PTX_BF16)                                                        \
    X("gelu, gated, f32 to bf16", PTXK_GELU, 1, PTX_F32, PTX_BF16)                                           \
    X("gelu by erf, f32", PTXK_GELU_ERF, 0, PTX_F32, PTX_F32)                                                \
    X("clamped SwiGLU, f32", PTXK_SWIGLU_CLAMPED, 1, PTX_F32, PTX_F32)

#define EXAMPLES_rope(X)                                                                                     \
    X("32 heads, d 128, neox, f32", 32, 128, 128, PTXK_ROPE_NEOX, PTX_F32)                                   \
    X("8 heads, d 128, interleaved, f16", 8, 128, 128, PTXK_ROPE_INTERLEAVED, PTX_F16)                       \
    X("3 heads, d 80, 32 of them, neox, bf16", 3, 80, 32, PTXK_ROPE_NEOX, PTX_BF16)                          \
    X("14 heads, d 40, 20 of them, interleaved, f32", 14, 40, 20, PTXK_ROPE_INTERLEAVED, PTX_F32)

#define EXAMPLES_embed(X)                                                                                    \
    X("4096, Q4_K to f32", 4096, PTXK_Q4_K, PTX_F32, 0.0f)                                                   \
    X("4096, Q6_K to f32", 4096, PTXK_Q6_K, PTX_F32, 0.0f)                                                   \
    X("4096, Q5_K to f32", 4096, PTXK_Q5_K, PTX_F32, 0.0f)                                                   \
    X("896, Q8_0 to f16", 896, PTXK_Q8_0, PTX_F16, 0.0f)                                                     \
    X("896, Q4_0 to f16", 896, PTXK_Q4_0, PTX_F16, 0.0f)                                                     \
    X("576, f32", 576, PTXK_F32, PTX_F32, 0.0f)                                                              \
    X("2048, f16 to bf16, scaled", 2048, PTXK_F16, PTX_BF16, 45.25f)                                         \
    X("33, bf16 to f32", 33, PTXK_BF16, PTX_F32, 0.0f)

#define EXAMPLES_sample(X)                                                                                   \
    X("f32", PTX_F32, PTXK_SAMPLE_DRAW)                                                                      \
    X("f16", PTX_F16, PTXK_SAMPLE_DRAW)                                                                      \
    X("bf16, argmax", PTX_BF16, PTXK_SAMPLE_ARGMAX)                                                          \
    X("f32, argmax", PTX_F32, PTXK_SAMPLE_ARGMAX)

#define EXAMPLES_route(X)                                                                                    \
    X("8 experts, 2 of them", 8, 2, PTXK_ROUTE_SOFTMAX_CHOSEN, 0, 0.0f, 0, 0)                                \
    X("128 experts, 8 of them, normalised", 128, 8, PTXK_ROUTE_SOFTMAX, PTXK_ROUTE_NORMALIZE, 0.0f, 0, 0)    \
    X("60 experts, 4 of them", 60, 4, PTXK_ROUTE_SOFTMAX, 0, 0.0f, 0, 0)                                     \
    X("256 experts, 8 of them, sigmoid, bias", 256, 8, PTXK_ROUTE_SIGMOID,                                   \
      PTXK_ROUTE_NORMALIZE | PTXK_ROUTE_BIAS, 2.5f, 0, 0)                                                    \
    X("512 experts, 16 of them, bias", 512, 16, PTXK_ROUTE_SOFTMAX, PTXK_ROUTE_BIAS, 0.0f, 0, 0)             \
    X("256 experts, 8 of them, sigmoid, bias, 4 of 8 groups", 256, 8, PTXK_ROUTE_SIGMOID,                    \
      PTXK_ROUTE_NORMALIZE | PTXK_ROUTE_BIAS, 2.5f, 8, 4)                                                    \
    X("160 experts, 6 of them, 3 of 8 groups", 160, 6, PTXK_ROUTE_SOFTMAX, 0, 16.0f, 8, 3)

#define EXAMPLES_combine(X)                                                                                  \
    X("2, f32, added", 2, PTX_F32, PTX_F32, PTXK_COMBINE_ADD)                                                \
    X("8, f16 to f32", 8, PTX_F16, PTX_F32, 0)                                                               \
    X("16, bf16, added", 16, PTX_BF16, PTX_BF16, PTXK_COMBINE_ADD)

#define EXAMPLES_quantize(X)                                                                                 \
    X("4096, f16 to e4m3, a row", 4096, PTX_F16, PTX_E4M3, 0)                                                \
    X("4096, bf16 to e4m3, groups of 128", 4096, PTX_BF16, PTX_E4M3, 128)                                    \
    X("14336, f32 to s8", 14336, PTX_F32, PTX_S8, 0)                                                         \
    X("4096, f32 to Q8_0", 4096, PTX_F32, PTXK_Q8_0, 0)                                                      \
    X("2880, bf16 to MXFP4", 2880, PTX_BF16, PTXK_MXFP4, 0)                                                  \
    X("4096, f16 to NVFP4", 4096, PTX_F16, PTXK_NVFP4, 0)

#define NO_EXPERTS 0, 0, 0, {0, 0, 0, 0, 0.0f, 0, 0}
#define EXAMPLES_decoder(X)                                                                                  \
    X("8B, Q4_K and Q6_K", 4096, 14336, 32, 8, 128, 128256, 1, 1u << PTXK_Q4_K | 1u << PTXK_Q6_K, PTX_F16,   \
      128, PTXK_ROPE_INTERLEAVED, 0.0f, PTXK_GEMV_EXACT, 0, 0, 0.0f, 0, NO_EXPERTS)                          \
    X("8B, Q4_K and Q6_K, fast, window", 4096, 14336, 32, 8, 128, 128256, 1,                                 \
      1u << PTXK_Q4_K | 1u << PTXK_Q6_K, PTX_F16, 128, PTXK_ROPE_INTERLEAVED, 0.0f, PTXK_GEMV_FAST, 0, 4096, \
      0.0f, 0, NO_EXPERTS)                                                                                   \
    X("0.5B, Q8_0, batch 2", 896, 4864, 14, 2, 64, 151936, 2, 1u << PTXK_Q8_0, PTX_BF16, 64, PTXK_ROPE_NEOX, \
      0.0f, PTXK_GEMV_EXACT, 0, 0, 0.0f, 0, NO_EXPERTS)                                                      \
    X("4B, Q4_K and Q6_K, norms of heads, batch 4", 2560, 9728, 32, 8, 128, 151936, 4,                       \
      1u << PTXK_Q4_K | 1u << PTXK_Q6_K, PTX_F16, 128, PTXK_ROPE_NEOX, 0.0f, PTXK_GEMV_EXACT, 1, 0, 0.0f, 0, \
      NO_EXPERTS)                                                                                            \
    X("f16, batch 4", 520, 1048, 9, 3, 40, 1000, 4, 1u << PTXK_F16, PTX_F32, 20, PTXK_ROPE_NEOX, 0.0f,       \
      PTXK_GEMV_EXACT, 0, 0, 0.0f, 0, NO_EXPERTS)                                                            \
    X("f32 and bf16, head_dim 256", 512, 1024, 2, 1, 256, 1000, 1, 1u << PTXK_F32 | 1u << PTXK_BF16,         \
      PTX_F16, 0, PTXK_ROPE_NEOX, 0.0f, PTXK_GEMV_EXACT, 0, 0, 0.0f, 0, NO_EXPERTS)                          \
    X("all formats, batch 4", 256, 512, 16, 1, 64, 300, 4,                                                   \
      62u | 1u << PTXK_Q4_0 | 1u << PTXK_Q5_K | 1u << PTXK_Q6_K, PTX_F16, 64, PTXK_ROPE_NEOX, 0.0f,          \
      PTXK_GEMV_EXACT, 1, 100, 0.0f, 0, NO_EXPERTS)                                                          \
    X("scaled embeddings, gelu", 512, 1024, 4, 1, 256, 1000, 1, 1u << PTXK_Q8_0, PTX_F16, 256,               \
      PTXK_ROPE_NEOX, 0.0f, PTXK_GEMV_EXACT, 0, 0, 22.6274f, PTXK_GELU, NO_EXPERTS)                          \
    X("8 of 128 experts, Q4_K and Q6_K", 2048, 0, 32, 4, 128, 151936, 1,                                     \
      1u << PTXK_Q4_K | 1u << PTXK_Q6_K | 1u << PTXK_F32, PTX_F16, 128, PTXK_ROPE_NEOX, 0.0f,                \
      PTXK_GEMV_EXACT, 1, 0, 0.0f, 0, 0, 768, 0,                                                             \
      {128, 8, PTXK_ROUTE_SOFTMAX, PTXK_ROUTE_NORMALIZE, 0.0f, 0, 0})                                        \
    X("4 of 60 experts and a shared one, Q8_0, batch 4", 2048, 5632, 16, 16, 128, 151936, 4,                 \
      1u << PTXK_Q8_0 | 1u << PTXK_F32, PTX_F16, 128, PTXK_ROPE_NEOX, 0.0f, PTXK_GEMV_EXACT, 0, 0, 0.0f, 0,  \
      0, 1408, 1, {60, 4, PTXK_ROUTE_SOFTMAX, 0, 0.0f, 0, 0})                                                \
    X("4 of 32 experts, MXFP4, sinks, windows", 2880, 0, 64, 8, 64, 201088, 1,                               \
      PTXK_SET(PTXK_MXFP4) | PTXK_SET(PTXK_Q8_0) | PTXK_SET(PTXK_F32), PTX_F16, 64, PTXK_ROPE_NEOX, 0.0f,    \
      PTXK_GEMV_EXACT, 0, 128, 0.0f, PTXK_SWIGLU_CLAMPED, 1, 2880, 0,                                        \
      {32, 4, PTXK_ROUTE_SOFTMAX_CHOSEN, 0, 0.0f, 0, 0})                                                     \
    X("6 of 64 experts by groups, batch 2", 1024, 704, 8, 8, 64, 1000, 2, 1u << PTXK_F16 | 1u << PTXK_F32,   \
      PTX_F16, 64, PTXK_ROPE_INTERLEAVED, 0.0f, PTXK_GEMV_EXACT, 0, 0, 0.0f, 0, 0, 352, 0,                   \
      {64, 6, PTXK_ROUTE_SIGMOID, PTXK_ROUTE_NORMALIZE | PTXK_ROUTE_BIAS, 2.5f, 8, 4})

/* <name>_labels and <name>_examples of each operation. */
#define EXAMPLE_LABEL(label, ...) label,
#define EXAMPLE_DESC(label, ...) {__VA_ARGS__},
#define EXAMPLE_TABLES(name)                                                                                 \
    static const char *const name##_labels[] = {EXAMPLES_##name(EXAMPLE_LABEL)};                             \
    static const ptxk_##name##_desc name##_examples[] = {EXAMPLES_##name(EXAMPLE_DESC)};
PTXK_OPERATIONS(EXAMPLE_TABLES)
#undef EXAMPLE_TABLES
#undef EXAMPLE_DESC
#undef EXAMPLE_LABEL

/* Copies example `variant` (0, 1, ...) of operation `index` to *desc. Returns 0 past the end of either, or
   where it does not fit into `capacity` bytes. label: or NULL; receives a static text. */
static int operation_example(uint32_t index, uint32_t variant, void *desc, size_t capacity,
                             const char **label) {
    const ptx_operation *operation = ptxk_operation_get(index);
    const char *text = NULL;
    const void *example = NULL;
    uint32_t i = 0;
    if (!operation || !desc || capacity < operation->desc_bytes) return 0;
#define FIND_EXAMPLE(name)                                                                                   \
    if (i++ == index && variant < sizeof name##_labels / sizeof *name##_labels) {                            \
        example = &name##_examples[variant];                                                                 \
        text = name##_labels[variant];                                                                       \
    }
    PTXK_OPERATIONS(FIND_EXAMPLE)
#undef FIND_EXAMPLE
    (void)i;
    if (!example) return 0;
    memcpy(desc, example, operation->desc_bytes);
    if (label) *label = text;
    return 1;
}

#endif
