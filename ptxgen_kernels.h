/* ptxgen_kernels.h - v0.1 - ready GPU kernels on ptxgen.h. Public domain or MIT, at your choice.

   WHAT   Generators of kernels that LLM inference needs, and the geometry of their launches: a description
          goes in, PTX and a plan (entries, grids, workspace, bytes) come out. Nobody computes a grid by hand.
   DO     In exactly one C or C++ file:   #define PTXGEN_IMPLEMENTATION
                                          #include "ptxgen_kernels.h"     (includes ptxgen.h)
          Everywhere else include it plainly.

   Attention of one new token per sequence over cached keys and values, 32 heads on 8 KV heads:

       ptxk_flash_decode_desc desc = {32, 8, 128, PTX_F16};                 // what is 0 is the default
       ptxk_flash_decode_shape shape = {batch, longest, rows_of_a_cache, sm_count};
       ptx_plan plan;
       ptxk_message why;
       if (ptxk_flash_decode_plan(&desc, &shape, &plan, &why)) puts(why.text);
       ptx_module *m = ptx_module_new(NULL);
       ptxk_flash_decode_emit(m, &desc);
       const char *text = ptx_text(m, NULL);
       // load it, allocate plan.workspace_bytes (the first plan.zero_bytes of them 0), fill a
       // ptxk_flash_decode_args, and run plan.launch[0] ... with that struct as the one argument;
       // ptxgen_cuda.h does all that.

   INDEX  (the same tags in the same order in all three headers; search for the tag)
     [MANUAL]     what each operation computes, and what happens at the edges
     [CONFIG]     macros that you may define before including
     [ERRORS]     how a description or a shape is refused
     [TYPES]      descriptions, shapes, arguments
     [TABLE]      the operations and their example descriptions: the registry
     [INTERFACE]  functions
     [SUPPORT]    implementation: checks, sizes, the registry
     [CORE]       implementation: the vocabulary of kernels, and the kernels
     [LICENSE]

   [MANUAL]
   OPERATION  desc -> code (what is baked: head counts, head_dim, type), shape -> plan (what changes from
          launch to launch), args -> one by-value parameter that all entries of the plan read. Sizes that
          change every token, such as lengths, are read from device memory, so a captured graph replays with
          the new ones.

   FLASH_DECODE  out[b,t,h,:] = sum_i softmax_i(s(scale * q[b,t,h,:] . K[b,g,i,:])) V[b,g,i,:], g = h *
          kv_heads / heads, over the keys i that query t of sequence b sees; s(x) = soft_cap * tanh(x /
          soft_cap), or x. 1 to 8 queries: the last tokens of the sequence, query t at position p =
          lengths[b] - queries + t sees keys i <= p; with a window only those with i > p - window.
          append_type: rows k[b,t], v[b,t] of these tokens become rows p of the caches, converted to their
          type, as by kv_scatter, and are attended to in the same launch. lse[b,h,t]: the natural logarithm
          of the sum of e^score. Split-KV: blocks take chunks of a sequence, the last one to finish joins
          them (T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference", 2023),
          with the online softmax of M. Milakov and N. Gimelshein ("Online normalizer calculation for
          softmax", 2018). One launch. Short sequences, and those that fill the machine by themselves, have
          one block for each KV head and no workspace.
     variants            f16 and bf16 caches from sm_80 on: tensor cores. The heads of a group, times the
                         queries, are the columns of a product, so K and V are read once for up to 8 of them,
                         up to 16, 32 where head_dim is small. f32 caches (tf32 has 11 bits: too few), sm_75
                         and PTXK_FLASH_SCALAR: f32 arithmetic in the ordinary units, K and V once for 8.
     precision           f32 in both: with tensor cores q and the weights are sums of two numbers of the
                         cache's type (q in f32 on bf16: of three), for twice the products, which memory
                         hides. What remains is 2^-22 of q and of a weight, with bf16 2^-16 of a weight.
     length 0            zeros, lse -inf; the cache pointers of that sequence are not followed
     length < queries    the queries before the sequence see nothing: zeros, lse -inf
     length > max_seq    NaN in that sequence's whole output, its cache is not touched; others are right. So
                         it is with length > max_pages * page_size
     no such page        a page past the pool, where a key would be read: NaN in that sequence, for the KV
                         heads that a block has found it for; nothing is read or appended there
     length > max_len    right, if it is at most max_seq: max_len only steers the number of splits
     score -inf          that key has weight 0; when all are -inf the output is zeros
     score +inf          the keys with +inf share the weight equally; lse +inf. With a cap it is the cap
     score NaN           NaN in that head's output
     weight 0            is multiplied like any other: 0 * inf in V is NaN. With tensor cores so is any
                         infinite V, and with several queries or a window one of a key that other queries see
     element offsets are 64-bit throughout: caches past 2^32 elements are addressed right.
     The first plan.zero_bytes of the workspace are counters that each launch leaves 0; a launch that failed
     may not have. Two launches that may run at the same time need two workspaces.

   KV_SCATTER  writes the K and V of new tokens into the caches: row (h, position of token t) of the cache of
          its sequence becomes k[t,h,:], converted to the cache's type. The cache is [kv_heads, max_seq, d]
          or anything else that two strides describe, or paged: pages of page_size positions, each
          [kv_heads, page_size, d], found through a block table.
     position >= max_seq, no such page, a page past the pool, a sequence past the batch
                         nothing is written for that token
     conversion          to nearest even; what passes the range of f16 becomes infinite; NaN stays NaN
     two tokens with one position: either may win.

   GEMV   y[c,r] = rms_c * sum_i W[r,i] (gamma[i]) x[c,i] (+ residual[c,r]) for 1 to 8 columns c; W quantised
          in blocks (Q4_K of GGUF), x quantised on the way to groups of 32 integers with a common factor; with
          PTXK_GEMV_NORM rms_c = 1 / sqrt(mean_i x[c,i]^2 + eps), else 1. Three launches: x to integers, once
          for all rows; blocks that take slices of K for rows handed out strided; and, where K has more than
          one slice, their sum. Integer products are exact, sums are f32 in a fixed order: the same bits in
          every run. W is read once.
     precision           PTXK_GEMV_EXACT: 16 bits for each x (two planes of 8), the error of a group is at
                         most amax / 65278 for each element, so, by Cauchy and Schwarz, sqrt(32) / 65278 =
                         8.7e-5 of |W| |x| at the very worst (one large x in each group), some 1e-5 typically;
                         PTXK_GEMV_FAST: 8 bits, amax / 254 for each element
     x NaN or infinite   NaN in every output of that column; so is x * gamma past the range of f32, and with
                         NORM a sum of squares past it
     block factor NaN, inf   NaN or inf in that row only
     all x 0             0 (+ residual), with eps 0 too
     |x| below 2^-100    counts as 0 where the whole group of 32 is that small
     y may be the residual itself; otherwise nothing that is written may overlap anything that is read.

   DOES NOT  choose another device's plan: a plan and a module belong to one target.
*/
#ifndef PTXGEN_KERNELS_H
#define PTXGEN_KERNELS_H

#include "ptxgen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- [CONFIG] ------------------------------------------------------------------------------------------

   PTXGEN_IMPLEMENTATION, PTXGEN_STATIC, PTXGEN_API: as in ptxgen.h. Nothing of its own. */

/* ---- [ERRORS] ------------------------------------------------------------------------------------------

   emit functions report through the module: PTX_E_DESC, with a message that names field, value and rule,
   before a line is emitted. plan functions return PTX_E_DESC, or PTX_E_ARGUMENT for a NULL, and write such a
   message: */
typedef struct ptxk_message {
    char text[160]; /* "flash_decode: head_dim is 100, must be a multiple of 8 from 8 to 256"; "" when well */
} ptxk_message;

/* ---- [TYPES] ------------------------------------------------------------------------------------------- */

/* Flags of a flash_decode: log-sum-exp as well; the variant without tensor cores on every target. */
enum { PTXK_FLASH_LSE = 1, PTXK_FLASH_SCALAR = 2 };

/* What is baked into the code. All fields count for equality, there is no padding: usable as a key. */
typedef struct ptxk_flash_decode_desc {
    uint32_t heads;       /* query heads: a multiple of kv_heads, at most 65536 */
    uint32_t kv_heads;    /* at least 1 */
    uint32_t head_dim;    /* a multiple of 8, 8 ... 256 */
    uint32_t kv_type;     /* what the caches hold: PTX_F32, PTX_F16 or PTX_BF16 */
    float scale;          /* factor of q . k; 0: 1/sqrt(head_dim) */
    uint32_t q_type;      /* of q: the same choice; 0: PTX_F32 */
    uint32_t out_type;    /* of out: the same choice; 0: PTX_F32 */
    uint32_t queries;     /* new tokens of each sequence, 1 ... 8; 0: 1 */
    uint32_t window;      /* keys that a query sees, its own the last; 0: all */
    float soft_cap;       /* scores s become cap * tanh(s / cap); 0: not */
    uint32_t page_size;   /* positions of a page, a power of two from 16; 0: the caches are not paged */
    uint32_t append_type; /* of k and v, which are appended to the caches on the way; 0: there are none */
    uint32_t flags;       /* PTXK_FLASH_LSE | PTXK_FLASH_SCALAR */
} ptxk_flash_decode_desc;

/* What a plan is made for. */
typedef struct ptxk_flash_decode_shape {
    uint32_t batch;    /* sequences, at most 65535; 0: nothing to do, a plan without launches */
    uint32_t max_len;  /* the longest length to plan for, at most max_seq: steers the number of splits */
    uint32_t max_seq;  /* positions that a cache holds, at most 2^31 - 1 */
    uint32_t sm_count; /* multiprocessors of the device, at least 1 */
} ptxk_flash_decode_shape;

/* The one argument, by value. Device addresses. Caches, strides and pages are described as for kv_scatter.
   lengths count the new tokens: with n queries they are those at lengths - n ... lengths - 1. */
typedef struct ptxk_flash_decode_args {
    uint64_t q;           /* q_type [batch, queries, heads, head_dim], 16-byte aligned */
    uint64_t k_caches;    /* u64 [batch]: addresses of the caches, 16-byte aligned, kv_type; paged: the */
    uint64_t v_caches;    /* pools themselves, kv_type [pool_pages, kv_heads, page_size, head_dim] */
    uint64_t lengths;     /* u32 [batch], each at most max_seq */
    uint64_t out;         /* out_type [batch, queries, heads, head_dim], 16-byte aligned */
    uint64_t workspace;   /* plan.workspace_bytes, 256-byte aligned; ignored when that is 0 */
    uint64_t k, v;        /* to append: append_type [batch, queries, kv_heads, head_dim], 16-byte aligned */
    uint64_t block_table; /* paged: u32 [batch, max_pages], page of the pool */
    uint64_t lse;         /* f32 [batch, heads, queries]; ignored without PTXK_FLASH_LSE */
    uint64_t head_stride; /* elements from head to head, a multiple of 16 bytes ... */
    uint64_t row_stride;  /* ... and from position to position, at most 2^26; both 0: max_seq * d and d */
    uint32_t max_seq;     /* as in the shape */
    uint32_t max_pages, pool_pages; /* paged: columns of the block table; pages of a pool */
    uint32_t reserved;    /* 0 */
} ptxk_flash_decode_args;

/* What is baked into the code of a scatter. */
typedef struct ptxk_kv_scatter_desc {
    uint32_t kv_heads;    /* at least 1 */
    uint32_t head_dim;    /* at least 1: any */
    uint32_t source_type; /* of k and v: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t cache_type;  /* of the caches: the same choice */
    uint32_t page_size;   /* positions of a page, a power of two from 16; 0: the caches are not paged */
} ptxk_kv_scatter_desc;

typedef struct ptxk_kv_scatter_shape {
    uint32_t tokens; /* 0: nothing to do, a plan without launches */
} ptxk_kv_scatter_shape;

/* The one argument, by value. Device addresses, 16-byte aligned but for the u32 and u64 arrays. Token t
   belongs to sequence sequences[t] (or, where that is 0, t * sequence_step) and gets position positions[t]
   (or position + t * position_step): one token for each of a batch has steps 1 and 0, a prompt 0 and 1. */
typedef struct ptxk_kv_scatter_args {
    uint64_t k, v;               /* source_type [tokens, kv_heads, head_dim] */
    uint64_t k_caches, v_caches; /* u64 [batch]: addresses of the caches; paged: the pools themselves,
                                    cache_type [pool_pages, kv_heads, page_size, head_dim] */
    uint64_t sequences;          /* u32 [tokens], or 0 */
    uint64_t positions;          /* u32 [tokens], or 0 */
    uint64_t block_table;        /* paged: u32 [batch, max_pages], page of the pool; else 0 */
    uint64_t head_stride;        /* elements from head to head, a multiple of 16 bytes or of head_dim ... */
    uint64_t row_stride;         /* ... and from position to position; heads first: max_seq * d, d */
    uint32_t sequence_step, position, position_step;
    uint32_t tokens, batch, max_seq; /* as in the shape; sequences; positions of a cache */
    uint32_t max_pages, pool_pages;  /* paged: columns of the block table; pages of a pool */
} ptxk_kv_scatter_args;

/* Formats of weights. */
enum { PTXK_Q4_K = 1 };
/* Precision of x in a GEMV; flags of a GEMV. */
enum { PTXK_GEMV_EXACT = 0, PTXK_GEMV_FAST = 1 };
enum { PTXK_GEMV_NORM = 1, PTXK_GEMV_GAMMA = 2, PTXK_GEMV_RESIDUAL = 4 };

/* What is baked into the code of a GEMV. The sizes are not: one kernel serves all layers. */
typedef struct ptxk_gemv_desc {
    uint32_t format;      /* of the weights: PTXK_Q4_K */
    uint32_t columns;     /* 1 ... 8 */
    uint32_t precision;   /* PTXK_GEMV_EXACT or PTXK_GEMV_FAST */
    uint32_t output_type; /* of y and of the residual: PTX_F32 or PTX_F16 */
    uint32_t flags;       /* PTXK_GEMV_NORM | PTXK_GEMV_GAMMA | PTXK_GEMV_RESIDUAL */
} ptxk_gemv_desc;

typedef struct ptxk_gemv_shape {
    uint32_t n;        /* rows of W, at most 2^31 - 1; 0: nothing to do, a plan without launches */
    uint32_t k;        /* columns of W, a multiple of 256, at most 2^26 */
    uint32_t sm_count; /* multiprocessors of the device, at least 1 */
} ptxk_gemv_shape;

/* The one argument, by value. Device addresses, 16-byte aligned. */
typedef struct ptxk_gemv_args {
    uint64_t weights;   /* blocks [n, k / 256] of the format, rows contiguous */
    uint64_t x;         /* f32 [columns, k] */
    uint64_t gamma;     /* f32 [k]; ignored without PTXK_GEMV_GAMMA */
    uint64_t residual;  /* output_type [columns, n]; ignored without PTXK_GEMV_RESIDUAL */
    uint64_t y;         /* output_type [columns, n] */
    uint64_t workspace; /* plan.workspace_bytes, 256-byte aligned */
    uint32_t n, k;      /* as in the shape */
    float eps;          /* of the norm: 0 or more, finite */
    uint32_t reserved;  /* 0 */
} ptxk_gemv_args;

/* ---- [TABLE] -------------------------------------------------------------------------------------------

   OPERATIONS. X(name): ptxk_<name>_desc, ptxk_<name>_emit(), and its examples below. */
#define PTXK_OPERATIONS(X) X(flash_decode) X(kv_scatter) X(gemv)

/* EXAMPLES. X(label, fields of the description ...): each type with each size of row, GQA in rotation, and
   shapes of known models. What ptxdump prints and what the tests assemble for every target. */
#define PTXK_EXAMPLES_flash_decode(X)                                                                        \
    X("32 heads on 8, d 128, f16", 32, 8, 128, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("1 head, d 16, f32", 1, 1, 16, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                               \
    X("4 heads on 1, d 16, f16", 4, 1, 16, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                         \
    X("7 heads on 1, d 16, bf16", 7, 1, 16, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("16 heads on 2, d 40, f32", 16, 2, 40, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("2 heads on 2, d 40, f16", 2, 2, 40, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                         \
    X("8 heads on 2, d 40, bf16", 8, 2, 40, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("14 heads on 2, d 64, f32", 14, 2, 64, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("8 heads on 1, d 64, f16", 8, 1, 64, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                         \
    X("12 heads on 12, d 64, bf16", 12, 12, 64, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                   \
    X("4 heads on 1, d 96, f32", 4, 1, 96, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                         \
    X("28 heads on 4, d 96, f16", 28, 4, 96, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("64 heads on 8, d 96, bf16", 64, 8, 96, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("32 heads on 8, d 128, f32", 32, 8, 128, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("64 heads on 8, d 128, f32", 64, 8, 128, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("32 heads on 32, d 128, f16", 32, 32, 128, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                   \
    X("64 heads on 8, d 128, f16", 64, 8, 128, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("28 heads on 4, d 128, bf16", 28, 4, 128, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                   \
    X("71 heads on 1, d 64, f16", 71, 1, 64, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("8 heads on 1, d 192, f32", 8, 1, 192, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("1 head, d 192, f16", 1, 1, 192, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                             \
    X("4 heads on 1, d 192, bf16", 4, 1, 192, PTX_BF16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                     \
    X("7 heads on 1, d 256, f32", 7, 1, 256, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("8 heads on 1, d 256, f32", 8, 1, 256, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("8 heads on 1, d 256, f16", 8, 1, 256, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("16 heads on 4, d 256, bf16", 16, 4, 256, PTX_BF16, 0.0625f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                \
    X("1 head, d 8, f16", 1, 1, 8, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                                 \
    X("9 heads on 1, d 136, f32", 9, 1, 136, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0)                       \
    X("32 heads on 4, d 128, f16, q and out f16",                                                            \
      32, 4, 128, PTX_F16, 0.0f, PTX_F16, PTX_F16, 0, 0, 0.0f, 0, 0, 0)                                      \
    X("32 heads on 8, d 128, bf16, all bf16, append, pages of 16, lse",                                      \
      32, 8, 128, PTX_BF16, 0.0f, PTX_BF16, PTX_BF16, 0, 0, 0.0f, 16, PTX_BF16, 1)                           \
    X("16 heads on 8, d 256, f16, window, cap, append f32",                                                  \
      16, 8, 256, PTX_F16, 0.0625f, 0, 0, 0, 4096, 50.0f, 0, PTX_F32, 0)                                     \
    X("32 heads on 8, d 128, f16, 4 queries, append f16, pages of 64",                                       \
      32, 8, 128, PTX_F16, 0.0f, PTX_F16, PTX_F16, 4, 0, 0.0f, 64, PTX_F16, 0)                               \
    X("8 heads on 1, d 64, bf16, 8 queries, window, lse",                                                    \
      8, 1, 64, PTX_BF16, 0.0f, 0, PTX_F16, 8, 512, 0.0f, 0, 0, 1)                                           \
    X("8 heads on 1, d 136, bf16, 2 queries, append f32, pages of 16",                                       \
      8, 1, 136, PTX_BF16, 0.0f, 0, 0, 2, 0, 0.0f, 16, PTX_F32, 0)                                           \
    X("4 heads on 2, d 32, f16, 8 queries, cap", 4, 2, 32, PTX_F16, 0.0f, 0, 0, 8, 0, 30.0f, 0, 0, 0)        \
    X("8 heads on 2, d 128, f32, 2 queries, append f16, pages of 32, window, cap, lse",                      \
      8, 2, 128, PTX_F32, 0.0f, PTX_BF16, PTX_BF16, 2, 1024, 30.0f, 32, PTX_F16, 1)                          \
    X("8 heads on 1, d 256, f32, append f32", 8, 1, 256, PTX_F32, 0.0f, 0, 0, 0, 0, 0.0f, 0, PTX_F32, 0)     \
    X("32 heads on 4, d 128, f16, scalar", 32, 4, 128, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 2)             \
    X("8 heads on 1, d 256, bf16, 4 queries, append f16, pages of 16, scalar",                               \
      8, 1, 256, PTX_BF16, 0.0f, PTX_F16, 0, 4, 300, 0.0f, 16, PTX_F16, 3)

#define PTXK_EXAMPLES_kv_scatter(X)                                                                          \
    X("8 heads, d 128, f16 to f16", 8, 128, PTX_F16, PTX_F16, 0)                                             \
    X("8 heads, d 128, f32 to f16, pages of 16", 8, 128, PTX_F32, PTX_F16, 16)                               \
    X("8 heads, d 128, f32 to bf16", 8, 128, PTX_F32, PTX_BF16, 0)                                           \
    X("4 heads, d 96, bf16 to bf16, pages of 64", 4, 96, PTX_BF16, PTX_BF16, 64)                             \
    X("2 heads, d 80, bf16 to f32", 2, 80, PTX_BF16, PTX_F32, 0)                                             \
    X("3 heads, d 33, f32 to f32", 3, 33, PTX_F32, PTX_F32, 0)                                               \
    X("1 head, d 7, f16 to bf16, pages of 256", 1, 7, PTX_F16, PTX_BF16, 256)                                \
    X("5 heads, d 512, bf16 to f16", 5, 512, PTX_BF16, PTX_F16, 0)                                           \
    X("1 head, d 1, f32 to f16", 1, 1, PTX_F32, PTX_F16, 0)

#define PTXK_EXAMPLES_gemv(X)                                                                                \
    X("Q4_K, f32 y", PTXK_Q4_K, 1, PTXK_GEMV_EXACT, PTX_F32, 0)                                              \
    X("Q4_K, f32 y, 8-bit x", PTXK_Q4_K, 1, PTXK_GEMV_FAST, PTX_F32, 0)                                      \
    X("Q4_K, norm, f32 y", PTXK_Q4_K, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA)         \
    X("Q4_K, norm, f16 y, 8-bit x", PTXK_Q4_K, 1, PTXK_GEMV_FAST, PTX_F16, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA) \
    X("Q4_K, residual, f32 y", PTXK_Q4_K, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_RESIDUAL)                   \
    X("Q4_K, all, f16 y, 8 columns", PTXK_Q4_K, 8, PTXK_GEMV_EXACT, PTX_F16, 7)                              \
    X("Q4_K, norm without gamma, 2 columns", PTXK_Q4_K, 2, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM)         \
    X("Q4_K, gamma without norm, 3 columns, 8-bit x", PTXK_Q4_K, 3, PTXK_GEMV_FAST, PTX_F32,                 \
      PTXK_GEMV_GAMMA)                                                                                       \
    X("Q4_K, 4 columns, 8-bit x", PTXK_Q4_K, 4, PTXK_GEMV_FAST, PTX_F16, PTXK_GEMV_RESIDUAL)                 \
    X("Q4_K, 5 columns", PTXK_Q4_K, 5, PTXK_GEMV_EXACT, PTX_F32, 0)                                          \
    X("Q4_K, 6 columns", PTXK_Q4_K, 6, PTXK_GEMV_EXACT, PTX_F32, 7)                                          \
    X("Q4_K, 7 columns, 8-bit x", PTXK_Q4_K, 7, PTXK_GEMV_FAST, PTX_F32, 0)                                  \
    X("Q4_K, all, f32 y, 8 columns, 8-bit x", PTXK_Q4_K, 8, PTXK_GEMV_FAST, PTX_F32, 7)

/* ---- [INTERFACE] --------------------------------------------------------------------------------------- */

/* -- registry -- */

PTXGEN_API uint32_t ptxk_operation_count(void);
/* NULL past the end. */
PTXGEN_API const ptx_operation *ptxk_operation_get(uint32_t index);
/* NULL for an unknown name. */
PTXGEN_API const ptx_operation *ptxk_operation_find(const char *name);
/* Example description `variant` (0, 1, ...) of operation `index`. Returns 0 past the end of either, or when
   it does not fit into capacity. label may be NULL; it is set to a static text. */
PTXGEN_API int ptxk_operation_example(uint32_t index, uint32_t variant, void *desc, size_t capacity,
                                      const char **label);

/* -- flash_decode -- */

/* Append the entry to the module. desc: a ptxk_flash_decode_desc. Its name contains all that is baked, so
   several descriptions fit into one module. */
#define ptxk_flash_decode_emit(m, desc) ptxk_flash_decode_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_flash_decode_emit_(ptx_module *m, const char *site, const void *desc);
/* The launches for a shape. min_bytes: the lower bound when every sequence is max_len long. why: or NULL. */
PTXGEN_API ptx_code ptxk_flash_decode_plan(const ptxk_flash_decode_desc *desc,
                                           const ptxk_flash_decode_shape *shape, ptx_plan *plan,
                                           ptxk_message *why);
/* Whether arguments can be right: addresses there and aligned, strides whole vectors that rows do not overlap
   in. What lies in device memory it cannot see. */
PTXGEN_API ptx_code ptxk_flash_decode_check(const ptxk_flash_decode_desc *desc,
                                            const ptxk_flash_decode_args *args, ptxk_message *why);
/* The lower bound of traffic for these lengths (host memory): K, V, q and out once. 0 for a bad desc. */
PTXGEN_API uint64_t ptxk_flash_decode_bytes(const ptxk_flash_decode_desc *desc, const uint32_t *lengths,
                                            uint32_t batch);
/* Keys that one block takes of a sequence of that length, as the kernel computes it. splits is
   plan.launch[0].grid[2]. 0 for a bad desc or splits 0. */
PTXGEN_API uint32_t ptxk_flash_decode_chunk(const ptxk_flash_decode_desc *desc, uint32_t length,
                                            uint32_t splits);

/* -- kv_scatter -- */

/* Append the entry to the module. desc: a ptxk_kv_scatter_desc. */
#define ptxk_kv_scatter_emit(m, desc) ptxk_kv_scatter_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_kv_scatter_emit_(ptx_module *m, const char *site, const void *desc);
/* The launch for a shape. min_bytes: every element of k and v read and written once. why: or NULL. */
PTXGEN_API ptx_code ptxk_kv_scatter_plan(const ptxk_kv_scatter_desc *desc,
                                         const ptxk_kv_scatter_shape *shape, ptx_plan *plan,
                                         ptxk_message *why);
/* Whether arguments can be right: addresses there and aligned, strides whole vectors that rows do not overlap
   in, positions and offsets that do not wrap. What lies in device memory it cannot see. */
PTXGEN_API ptx_code ptxk_kv_scatter_check(const ptxk_kv_scatter_desc *desc, const ptxk_kv_scatter_args *args,
                                          ptxk_message *why);

/* -- gemv -- */

/* Append the three entries (x, rows, sum) to the module. desc: a ptxk_gemv_desc. */
#define ptxk_gemv_emit(m, desc) ptxk_gemv_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_gemv_emit_(ptx_module *m, const char *site, const void *desc);
/* The launches for a shape. min_bytes: weights, x, gamma, residual and y once. why: or NULL. */
PTXGEN_API ptx_code ptxk_gemv_plan(const ptxk_gemv_desc *desc, const ptxk_gemv_shape *shape, ptx_plan *plan,
                                   ptxk_message *why);
/* Whether arguments can be right: addresses there, aligned, nothing written over what is read, eps. */
PTXGEN_API ptx_code ptxk_gemv_check(const ptxk_gemv_desc *desc, const ptxk_gemv_args *args,
                                    ptxk_message *why);
/* Bytes of a row of k weights in a format; 0 for an unknown format or a k that is no whole number of blocks.
   */
PTXGEN_API uint64_t ptxk_row_bytes(uint32_t format, uint32_t k);

/* -- vocabulary: pieces of kernels, for your own as well; errors carry your line -- */

/* op (PTX_ADD, PTX_MAX ...) over the lanes whose numbers differ in the bits first, 2 first ... last/2 only;
   every lane gets the result. (1, 32): the whole warp; (1, 8): each 8 neighbours; (8, 32): the 4 lanes that
   are 8 apart. x: 32 bits, all 32 lanes present. */
#define ptxk_warp_reduce(k, op, x, first, last) ptxk_warp_reduce_((k), PTX__AT, (op), (x), (first), (last))
PTXGEN_API ptx_val ptxk_warp_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x, uint32_t first,
                                     uint32_t last);
/* The same over all threads of a block of `warps` whole warps (a power of two, 1 ... 32), every thread gets
   the result. scratch: the address of 4 * warps bytes of shared memory, which nothing may touch from the last
   barrier before to the next barrier after this one, which has one inside. */
#define ptxk_block_reduce(k, op, x, warps, scratch)                                                          \
    ptxk_block_reduce_((k), PTX__AT, (op), (x), (warps), (scratch))
PTXGEN_API ptx_val ptxk_block_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x,
                                      uint32_t warps, ptx_val scratch);
/* 16 bytes in one access, as four b32. p NULL: always; otherwise only where *p holds, zeros elsewhere. */
#define ptxk_load16(k, p, mem, words) ptxk_load16_((k), PTX__AT, (p), (mem), (words))
PTXGEN_API void ptxk_load16_(ptx_kernel *k, const char *site, const ptx_val *p, ptx_mem mem,
                             ptx_val words[4]);
/* The elements of 16 bytes as f32: 4 of PTX_F32, 8 of PTX_F16 or PTX_BF16. Returns how many (0: no such). */
#define ptxk_widen(k, stored, words, out) ptxk_widen_((k), PTX__AT, (stored), (words), (out))
PTXGEN_API uint32_t ptxk_widen_(ptx_kernel *k, const char *site, ptx_type stored, const ptx_val words[4],
                                ptx_val *out);
/* n f32 (even, 4 at most where they stay f32, else 8) as the words that hold them, rounded to nearest. */
#define ptxk_narrow(k, stored, n, x, words) ptxk_narrow_((k), PTX__AT, (stored), (n), (x), (words))
PTXGEN_API void ptxk_narrow_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, const ptx_val *x,
                             ptx_val *words);
/* n elements (1, 2, 4 or 8, of 16 bytes at most) of memory as f32, in one access, and back, rounded to
   nearest. */
#define ptxk_load_f32(k, stored, n, mem, out) ptxk_load_f32_((k), PTX__AT, (stored), (n), (mem), (out))
#define ptxk_store_f32(k, stored, n, mem, x) ptxk_store_f32_((k), PTX__AT, (stored), (n), (mem), (x))
PTXGEN_API void ptxk_load_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                               ptx_val *out);
PTXGEN_API void ptxk_store_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                                const ptx_val *x);
/* sum + a[0] b[0] + ... + a[n-1] b[n-1], fused, in this order. */
#define ptxk_dot(k, n, a, b, sum) ptxk_dot_((k), PTX__AT, (n), (a), (b), (sum))
PTXGEN_API ptx_val ptxk_dot_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b,
                             ptx_val sum);
/* out[i] += a x[i] */
#define ptxk_axpy(k, n, a, x, out) ptxk_axpy_((k), PTX__AT, (n), (a), (x), (out))
PTXGEN_API void ptxk_axpy_(ptx_kernel *k, const char *site, uint32_t n, ptx_val a, const ptx_val *x,
                           ptx_val *out);
/* a / b as a factor: 1 / b, and 0 where b is 0. */
#define ptxk_rcp_or_zero(k, b) ptxk_rcp_or_zero_((k), PTX__AT, (b))
PTXGEN_API ptx_val ptxk_rcp_or_zero_(ptx_kernel *k, const char *site, ptx_val b);
/* ceil(a / b), u32; a + b - 1 must not wrap. */
#define ptxk_div_up(k, a, b) ptxk_div_up_((k), PTX__AT, (a), (b))
PTXGEN_API ptx_val ptxk_div_up_(ptx_kernel *k, const char *site, ptx_val a, ptx_val b);

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_KERNELS_H */

#if defined(PTXGEN_IMPLEMENTATION) && !defined(PTXGEN_KERNELS_IMPLEMENTED)
#define PTXGEN_KERNELS_IMPLEMENTED

#include <float.h>
#include <math.h> /* INFINITY, NAN; no function of it */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- [SUPPORT] ----------------------------------------------------------------------------------------- */

static ptx_code ptxk__refuse(ptxk_message *why, ptx_code code, const char *format, ...)
{
    if (why) {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(why->text, sizeof why->text, format, list);
        va_end(list);
    }
    return code;
}

/* a * b, or 0 in *fits when that passes 64 bits. */
static uint64_t ptxk__product(uint64_t a, uint64_t b, int *fits)
{
    if (b && a > UINT64_MAX / b) {
        *fits = 0;
        return 0;
    }
    return a * b;
}

static uint32_t ptxk__ceil_div(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* The square root of 1 ... 2^32 by Newton's rule: no libm to link, the same bits everywhere. */
static double ptxk__sqrt(double x)
{
    double y = x;
    int i;
    for (i = 0; i < 40; i++) y = 0.5 * (y + x / y);
    return y;
}

/* All that follows from a flash_decode description. */
#define PTXK__WARPS 4u
#define PTXK__THREADS (32u * PTXK__WARPS)
#define PTXK__TILE 8u /* columns that all variants can take in one block: the grid's unit */
#define PTXK__ROW 8u  /* scalar: most elements of a row in a lane */
#define PTXK__UNROLL 4u
#define PTXK__JOIN 16u /* chunks that a combine has in flight */
#define PTXK__QUERIES 8u
#define PTXK__RING 3u   /* mma: items of a warp in shared memory; all but one are under way */
#define PTXK__SLAB 128u /* mma: most elements of a row in one item */
#define PTXK__LEN_MAX 0x7fffffffu
#define PTXK__SCATTER_THREADS 256u

typedef struct ptxk__flash {
    ptx_type type, q_type, out_type, fresh_type; /* fresh: of the rows to append; PTX_NONE: none */
    uint32_t heads, kv_heads, d, queries;
    uint32_t group;   /* query heads of a KV head */
    uint32_t columns; /* ... times queries: all that share the reads of K and V; column t * group + h */
    uint32_t tiles;   /* blocks for them in the grid, one for each 8 */
    uint32_t tile;    /* columns of a block: the variant's; blocks past the last column have nothing to do */
    uint32_t page_size, page_shift, window, flags;
    uint32_t row_bytes; /* of one key */
    uint32_t per_vec;   /* elements of 16 bytes */
    uint32_t row_vecs;  /* 16-byte vectors of a row */
    uint32_t pitch;     /* floats from column to column where a warp's sums lie in shared memory */
    uint32_t unit;      /* a chunk is a multiple of so many keys */
    uint32_t least;     /* ... and at least so many */
    uint32_t frugal;    /* keys that make a chunk's own traffic 4 % of that of its keys */
    uint32_t record;    /* bytes of one partial result in the workspace */
    float scale;        /* of q . k, so that scores are in base 2; with a cap: so that they are 2 s / cap */
    float cap;          /* the cap in base 2; 0: none */
    /* scalar */
    uint32_t lanes;     /* lanes that share a row, a power of two */
    uint32_t vecs;      /* vectors of a row in a lane: lane i has vectors i, i + lanes */
    uint32_t rows;      /* rows that a warp reads at once */
    uint32_t unroll;    /* ... and how many times, before it computes */
    uint32_t warp_keys; /* keys of a warp in one step: rows * unroll */
    uint32_t step;      /* keys of the block in one step */
    /* mma */
    uint32_t mma;      /* this variant */
    uint32_t terms;    /* numbers of the cache's type that q is the sum of */
    uint32_t nt, kt;   /* 8-column tiles; 16-key tiles of a warp's step */
    uint32_t slabs;    /* parts of a row that are staged one after the other */
    uint32_t chunks;   /* 16-byte chunks of a slab in shared memory, even */
    float bias, slack; /* weights are kept below 2^(bias + slack), the largest between 2^bias and that */
} ptxk__flash;

static uint32_t ptxk__kv_bytes(uint32_t type) {
    return type == PTX_F32 ? 4u : type == PTX_F16 || type == PTX_BF16 ? 2u : 0u;
}

/* Shapes of the variant for tensor cores: 16-bit caches, sm_80 and up. */
static void ptxk__flash_mma(ptxk__flash *f) {
    uint32_t padded = (f->d + 15) / 16 * 16, room;
    /* q as terms of the cache's type, so that scores are as good as f32 ones: 11 bits a term, or 8 */
    f->terms = f->q_type == f->type ? 1
               : f->type == PTX_F16 ? (f->q_type == PTX_F32 ? 2 : 1)
                                    : (f->q_type == PTX_F32 ? 3 : 2);
    /* Registers: 4 for each 16 dimensions of the sums, twice the terms for q */
    room = 512 / (padded * (f->terms < 2 ? 2 : f->terms));
    f->nt = f->tiles < room ? f->tiles : room;
    if (f->nt < 1) f->nt = 1;
    f->slabs = ptxk__ceil_div(padded, PTXK__SLAB);
    f->chunks = ptxk__ceil_div(padded / 16, f->slabs) * 2;
    f->kt = PTXK__SLAB / 8 / f->chunks; /* steps of some 4 KB */
    if (f->kt > 4 / f->nt) f->kt = 4 / f->nt;
    if (f->kt > 4) f->kt = 4;
    if (f->kt == 3) f->kt = 2;
    if (f->kt < 1) f->kt = 1;
    if (f->page_size && f->kt > f->page_size / 16) f->kt = f->page_size / 16;
    /* The second term of an f16 weight must not be lost below 2^-24: large weights. bf16 has the range of
       f32, and so may V: weights of at most 1. */
    f->slack = 8;
    f->bias = f->type == PTX_F16 ? 7.0f : -8.0f;
}

static ptx_code ptxk__flash_form(const ptxk_flash_decode_desc *d, ptxk__flash *f, ptxk_message *why) {
    uint32_t bytes, overhead, types[4], i;
    double scale;
    static const char *const names[4] = {"kv_type", "q_type", "out_type", "append_type"};
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: the description is NULL");
    if (!d->kv_heads || d->kv_heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: kv_heads is %u, must be 1 to 65536", d->kv_heads);
    if (!d->heads || d->heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: heads is %u, must be 1 to 65536", d->heads);
    if (d->heads % d->kv_heads)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: heads is %u, must be a multiple of kv_heads, %u",
                            d->heads, d->kv_heads);
    if (d->head_dim % 8 || !d->head_dim || d->head_dim > 256)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: head_dim is %u, must be a multiple of 8 from 8 to 256",
                            d->head_dim);
    types[0] = d->kv_type;
    types[1] = d->q_type ? d->q_type : (uint32_t)PTX_F32;
    types[2] = d->out_type ? d->out_type : (uint32_t)PTX_F32;
    types[3] = d->append_type ? d->append_type : (uint32_t)PTX_F32;
    for (i = 0; i < 4; i++)
        if (!ptxk__kv_bytes(types[i]))
            return ptxk__refuse(why, PTX_E_DESC,
                                "flash_decode: %s is %u, must be PTX_F32, PTX_F16 or PTX_BF16", names[i],
                                types[i]);
    if (!(d->scale >= -1e30f && d->scale <= 1e30f))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: scale is %g, must be from -1e30 to 1e30 (0: default)",
                            (double)d->scale);
    if (d->queries > PTXK__QUERIES)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: queries is %u, must be 1 to %u (0: 1)",
                            d->queries, PTXK__QUERIES);
    if (d->window > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: window is %u, must be at most 2147483647 (0: none)", d->window);
    if (!(d->soft_cap >= 0 && d->soft_cap <= 1e6f) || (d->soft_cap > 0 && d->soft_cap < 1e-6f))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: soft_cap is %g, must be from 1e-6 to 1e6 (0: none)",
                            (double)d->soft_cap);
    if (d->page_size && (d->page_size < 16 || d->page_size > 65536 || d->page_size & (d->page_size - 1)))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: page_size is %u, must be 0 or a power of two from 16 to 65536",
                            d->page_size);
    if (d->flags > 3)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: flags is %u, must be of PTXK_FLASH_LSE and PTXK_FLASH_SCALAR",
                            d->flags);

    memset(f, 0, sizeof *f);
    f->type = (ptx_type)types[0];
    f->q_type = (ptx_type)types[1];
    f->out_type = (ptx_type)types[2];
    f->fresh_type = (ptx_type)d->append_type;
    f->heads = d->heads;
    f->kv_heads = d->kv_heads;
    f->d = d->head_dim;
    f->queries = d->queries ? d->queries : 1;
    f->window = d->window;
    f->page_size = d->page_size;
    while (f->page_size >> f->page_shift > 1) f->page_shift++;
    f->flags = d->flags;
    f->group = d->heads / d->kv_heads;
    f->columns = f->group * f->queries;
    f->tiles = ptxk__ceil_div(f->columns, PTXK__TILE);
    f->tile = ptxk__ceil_div(f->columns, f->tiles);
    bytes = ptxk__kv_bytes(d->kv_type);
    f->row_bytes = f->d * bytes;
    f->per_vec = 16 / bytes;
    f->row_vecs = f->row_bytes / 16;
    f->lanes = 1;
    while (f->lanes < 32 && f->lanes < f->row_vecs) f->lanes *= 2;
    f->vecs = ptxk__ceil_div(f->row_vecs, f->lanes);
    f->rows = 32 / f->lanes;
    /* Registers: 2 * tile * elements for q and the sums, 8 * vecs a key for K and V in flight, tile a key for
       scores: 4 keys at a time pass 255 when tile * elements does 48. */
    f->unroll = f->tile * f->per_vec * f->vecs > 48 ? PTXK__UNROLL / 2 : PTXK__UNROLL;
    f->warp_keys = f->rows * f->unroll;
    f->step = f->warp_keys * PTXK__WARPS;
    f->record = (f->d + 8) * 4;
    ptxk__flash_mma(f);
    f->unit = 16 * f->kt * PTXK__WARPS;
    if (f->unit < f->step) f->unit = f->step;

    /* A split costs, for each of its columns: q read (d elements), its partial result written and read again
       (d floats and a sector of maximum and sum), and some 16 sectors a block for lengths, pointers and the
       like. Keys until that is 4 % of what K and V themselves take keep all traffic within 5 % of the lower
       bound; 128 at least, for the start of a block is not free. */
    overhead = (f->columns < PTXK__TILE ? f->columns : PTXK__TILE)
                   * (2 * f->d * 4 + f->d * ptxk__kv_bytes(types[1]) + 64)
               + 512;
    f->least = ptxk__ceil_div(128, f->unit) * f->unit;
    f->frugal = ptxk__ceil_div(ptxk__ceil_div(overhead * 25, 2 * f->row_bytes), f->unit) * f->unit;
    if (f->frugal < f->least) f->frugal = f->least;

    scale = d->scale < 0 || d->scale > 0 ? (double)d->scale : 1 / ptxk__sqrt(f->d);
    scale *= 1.44269504088896340736; /* log2 e: ex2 is what the machine has */
    if (d->soft_cap > 0) {
        f->cap = (float)((double)d->soft_cap * 1.44269504088896340736);
        scale *= 2 / (double)d->soft_cap;
    }
    f->scale = (float)scale;
    return PTX_E_NONE;
}

/* The first key that a block looks at, in a sequence of that length: the first that some query sees, rounded
   down so that steps and pages begin together. The kernels compute the same. */
#define PTXK__BEGIN 64u
static uint32_t ptxk__flash_first(const ptxk__flash *f, uint32_t length) {
    uint64_t reach = (uint64_t)f->window + f->queries - 1;
    return f->window && length > reach ? length - (uint32_t)reach : 0;
}

/* Bytes before the partial results in the workspace: for each sequence and block of heads, how many of its
   chunks are done. */
static uint64_t ptxk__flash_header(const ptxk__flash *f, uint32_t batch) {
    return ((uint64_t)batch * f->kv_heads * f->tiles * 4 + 255) / 256 * 256;
}

PTXGEN_API uint32_t ptxk_flash_decode_chunk(const ptxk_flash_decode_desc *desc, uint32_t length,
                                            uint32_t splits) {
    ptxk__flash f;
    uint32_t chunk, keys;
    if (!splits || ptxk__flash_form(desc, &f, NULL)) return 0;
    if (length > PTXK__LEN_MAX) return 0;
    keys = length - ptxk__flash_first(&f, length) / PTXK__BEGIN * PTXK__BEGIN;
    chunk = ptxk__ceil_div(ptxk__ceil_div(keys, splits), f.unit) * f.unit;
    return chunk < f.least ? f.least : chunk;
}

/* K and V of the keys that are seen (of those to be appended: read from their source, written to the caches),
   q, out, log-sum-exp. */
static uint64_t ptxk__flash_bytes(const ptxk__flash *f, uint32_t length) {
    uint64_t row = (uint64_t)f->kv_heads * f->d * 2, fresh = 0, bytes, keys;
    bytes = (uint64_t)f->queries * f->heads
            * (f->d * (ptxk__kv_bytes((uint32_t)f->q_type) + ptxk__kv_bytes((uint32_t)f->out_type))
               + (f->flags & PTXK_FLASH_LSE ? 4u : 0u));
    keys = length - ptxk__flash_first(f, length);
    if (f->fresh_type) fresh = length < f->queries ? length : f->queries;
    bytes += (keys - fresh) * row * ptxk__kv_bytes((uint32_t)f->type);
    if (f->fresh_type)
        bytes += fresh * row * (ptxk__kv_bytes((uint32_t)f->type) + ptxk__kv_bytes((uint32_t)f->fresh_type));
    if (f->page_size) bytes += 4 * (uint64_t)ptxk__ceil_div((uint32_t)keys, f->page_size);
    return bytes;
}

PTXGEN_API uint64_t ptxk_flash_decode_bytes(const ptxk_flash_decode_desc *desc, const uint32_t *lengths,
                                            uint32_t batch) {
    ptxk__flash f;
    uint64_t bytes = 0;
    uint32_t i;
    if (!lengths || ptxk__flash_form(desc, &f, NULL)) return 0;
    for (i = 0; i < batch; i++) bytes += ptxk__flash_bytes(&f, lengths[i]);
    return bytes;
}

PTXGEN_API ptx_code ptxk_flash_decode_plan(const ptxk_flash_decode_desc *desc,
                                           const ptxk_flash_decode_shape *shape, ptx_plan *plan,
                                           ptxk_message *why) {
    ptxk__flash f;
    ptx_launch *l;
    uint64_t cache, blocks, want, most, keys;
    int fits = 1;
    ptx_code code = ptxk__flash_form(desc, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: the %s is NULL", plan ? "shape" : "plan");
    if (shape->batch > 65535)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: batch is %u, must be at most 65535",
                            shape->batch);
    if (shape->max_seq > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: max_seq is %u, must be at most 2147483647",
                            shape->max_seq);
    if (shape->max_len > shape->max_seq)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: max_len is %u, must be at most max_seq, %u",
                            shape->max_len, shape->max_seq);
    if (!shape->sm_count || shape->sm_count > 0x1000000)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: sm_count is %u, must be at least 1, at most 2^24",
                            shape->sm_count);
    plan->args_bytes = (uint32_t)sizeof(ptxk_flash_decode_args);
    if (!shape->batch) return PTX_E_NONE;

    cache = ptxk__product((uint64_t)f.kv_heads * shape->max_seq, f.row_bytes, &fits); /* one sequence's K */
    (void)ptxk__product(cache, 2 * (uint64_t)shape->batch, &fits);
    if (!fits) {
        memset(plan, 0, sizeof *plan);
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: batch %u, kv_heads %u, max_seq %u, head_dim %u: "
                            "caches pass 2^64 bytes",
                            shape->batch, f.kv_heads, shape->max_seq, f.d);
    }
    plan->min_bytes = (uint64_t)shape->batch * ptxk__flash_bytes(&f, shape->max_len);

    /* Eight blocks for each multiprocessor, two waves of what fits at once, so that the end of a launch is
       short even when lengths differ; chunks of `frugal` keys and more. Where that leaves multiprocessors
       without a block, one for each, of `least` keys and more: then time is worth more than traffic that
       stays in the L2 cache. Where sequences and heads alone fill the machine, or are short, each has one
       block: no workspace, nothing to join. */
    keys = shape->max_len - ptxk__flash_first(&f, shape->max_len) / PTXK__BEGIN * PTXK__BEGIN;
    blocks = (uint64_t)f.kv_heads * f.tiles * shape->batch;
    want = (8 * (uint64_t)shape->sm_count + blocks - 1) / blocks;
    most = keys / f.frugal; /* chunks of no fewer */
    if (want > most) want = most;
    if (want * blocks < shape->sm_count) {
        want = (shape->sm_count + blocks - 1) / blocks;
        most = (keys + f.least - 1) / f.least;
        if (want > most) want = most;
    }
    if (want > 65535) want = 65535;
    if (want < 1) want = 1;

    l = &plan->launch[plan->launches++];
    l->grid[0] = f.kv_heads * f.tiles;
    l->grid[1] = shape->batch;
    l->grid[2] = (uint32_t)want;
    l->block[0] = PTXK__THREADS;
    l->block[1] = l->block[2] = 1;
    if (want == 1) return PTX_E_NONE;
    plan->zero_bytes = ptxk__flash_header(&f, shape->batch);
    plan->workspace_bytes = plan->zero_bytes + want * shape->batch * f.kv_heads * f.columns * f.record;
    return PTX_E_NONE;
}

/* The address of every field that is one, and what it must be a multiple of. */
static const struct ptxk__flash_field {
    const char *name;
    uint32_t offset, align, needed; /* needed: 0 always, 1 with pages, 2 for appending, 3 for log-sum-exp */
} ptxk__flash_fields[] = {{"q", (uint32_t)offsetof(ptxk_flash_decode_args, q), 16, 0},
                          {"k_caches", (uint32_t)offsetof(ptxk_flash_decode_args, k_caches), 8, 0},
                          {"v_caches", (uint32_t)offsetof(ptxk_flash_decode_args, v_caches), 8, 0},
                          {"lengths", (uint32_t)offsetof(ptxk_flash_decode_args, lengths), 4, 0},
                          {"out", (uint32_t)offsetof(ptxk_flash_decode_args, out), 16, 0},
                          {"block_table", (uint32_t)offsetof(ptxk_flash_decode_args, block_table), 4, 1},
                          {"k", (uint32_t)offsetof(ptxk_flash_decode_args, k), 16, 2},
                          {"v", (uint32_t)offsetof(ptxk_flash_decode_args, v), 16, 2},
                          {"lse", (uint32_t)offsetof(ptxk_flash_decode_args, lse), 4, 3}};

PTXGEN_API ptx_code ptxk_flash_decode_check(const ptxk_flash_decode_desc *desc,
                                            const ptxk_flash_decode_args *args, ptxk_message *why) {
    ptxk__flash f;
    size_t i;
    uint64_t heads, rows;
    int fits = 1, asked[4];
    ptx_code code = ptxk__flash_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: the arguments are NULL");
    asked[0] = 1;
    asked[1] = f.page_size != 0;
    asked[2] = f.fresh_type != PTX_NONE;
    asked[3] = (f.flags & PTXK_FLASH_LSE) != 0;
    for (i = 0; i < sizeof ptxk__flash_fields / sizeof *ptxk__flash_fields; i++) {
        const struct ptxk__flash_field *field = &ptxk__flash_fields[i];
        uint32_t align = field->align;
        uint64_t address;
        memcpy(&address, (const char *)args + field->offset, sizeof address);
        if (i >= 1 && i <= 2 && f.page_size) align = 16;
        if (!asked[field->needed]) continue;
        if (!address) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: %s is 0", field->name);
        if (address % align)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: %s is not aligned to %u bytes",
                                field->name, align);
    }
    if (args->workspace % 256)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: workspace is not aligned to 256 bytes");
    if (args->max_seq > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: max_seq is %u, must be at most 2147483647",
                            args->max_seq);
    if (f.page_size || (!args->head_stride && !args->row_stride)) return PTX_E_NONE;
    if (args->head_stride % f.per_vec || args->row_stride % f.per_vec)
        return ptxk__refuse(
            why, PTX_E_ARGUMENT, "flash_decode: the strides %llu and %llu must be multiples of %u elements",
            (unsigned long long)args->head_stride, (unsigned long long)args->row_stride, f.per_vec);
    heads = ptxk__product(args->head_stride, f.kv_heads - 1, &fits);
    rows = ptxk__product(args->row_stride, args->max_seq ? args->max_seq - 1u : 0u, &fits);
    if (!fits || heads > (UINT64_MAX >> 4) || rows > (UINT64_MAX >> 4) || args->row_stride > 1u << 26)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "flash_decode: the strides pass 2^60 elements, or that of rows 2^26");
    if ((f.kv_heads > 1 && args->head_stride < f.d) || (args->max_seq > 1 && args->row_stride < f.d)
        || (f.kv_heads > 1 && args->max_seq > 1 && rows + f.d > args->head_stride
            && heads + f.d > args->row_stride))
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "flash_decode: rows overlap with a head_stride of %llu and a row_stride of %llu",
                            (unsigned long long)args->head_stride, (unsigned long long)args->row_stride);
    return PTX_E_NONE;
}

/* All that follows from a kv_scatter description. */
typedef struct ptxk__scatter {
    ptx_type source, cache;
    uint32_t kv_heads, d, page_size;
    uint32_t source_bytes, cache_bytes; /* of an element */
    uint32_t n;                         /* elements of a thread: as many as 16 bytes and d allow */
    uint32_t vecs;                      /* threads for a row */
} ptxk__scatter;

static ptx_code ptxk__scatter_form(const ptxk_kv_scatter_desc *d, ptxk__scatter *f, ptxk_message *why)
{
    uint32_t wide;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the description is NULL");
    if (!d->kv_heads || d->kv_heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "kv_scatter: kv_heads is %u, must be 1 to 65536", d->kv_heads);
    if (!d->head_dim || d->head_dim > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "kv_scatter: head_dim is %u, must be 1 to 65536", d->head_dim);
    f->source_bytes = ptxk__kv_bytes(d->source_type);
    f->cache_bytes = ptxk__kv_bytes(d->cache_type);
    if (!f->source_bytes || !f->cache_bytes)
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: %s is %u, must be PTX_F32, PTX_F16 or PTX_BF16",
                            f->source_bytes ? "cache_type" : "source_type",
                            f->source_bytes ? d->cache_type : d->source_type);
    if (d->page_size && (d->page_size < 16 || d->page_size > 65536 || d->page_size & (d->page_size - 1)))
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: page_size is %u, must be 0 or a power of two from 16 to 65536",
                            d->page_size);
    f->source = (ptx_type)d->source_type;
    f->cache = (ptx_type)d->cache_type;
    f->kv_heads = d->kv_heads;
    f->d = d->head_dim;
    f->page_size = d->page_size;
    wide = f->source_bytes > f->cache_bytes ? f->source_bytes : f->cache_bytes;
    for (f->n = 16 / wide; f->d % f->n;) f->n /= 2;
    f->vecs = f->d / f->n;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_kv_scatter_plan(const ptxk_kv_scatter_desc *desc,
                                         const ptxk_kv_scatter_shape *shape, ptx_plan *plan,
                                         ptxk_message *why)
{
    ptxk__scatter f;
    uint64_t threads, row;
    int fits = 1;
    ptx_code code = ptxk__scatter_form(desc, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the %s is NULL", plan ? "shape" : "plan");
    row = (uint64_t)f.kv_heads * f.vecs;
    threads = ptxk__product(row, shape->tokens, &fits);
    if (!fits || threads > 0xffffff00u)
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: tokens is %u, must be at most %lu with these heads and head_dim",
                            shape->tokens, (unsigned long)(0xffffff00u / row));
    plan->args_bytes = (uint32_t)sizeof(ptxk_kv_scatter_args);
    if (!threads) return PTX_E_NONE;
    plan->launches = 1;
    plan->launch[0].grid[0] = (uint32_t)((threads + PTXK__SCATTER_THREADS - 1) / PTXK__SCATTER_THREADS);
    plan->launch[0].grid[1] = 2; /* K and V */
    plan->launch[0].grid[2] = 1;
    plan->launch[0].block[0] = PTXK__SCATTER_THREADS;
    plan->launch[0].block[1] = plan->launch[0].block[2] = 1;
    plan->min_bytes = 2 * threads * f.n * (f.source_bytes + f.cache_bytes);
    return PTX_E_NONE;
}

/* The address of every field that is one, and what it must be a multiple of. */
static const struct ptxk__scatter_field {
    const char *name;
    uint32_t offset, align, needed; /* needed: 1 always, 2 with pages */
} ptxk__scatter_fields[] = {
    {"k", (uint32_t)offsetof(ptxk_kv_scatter_args, k), 16, 1},
    {"v", (uint32_t)offsetof(ptxk_kv_scatter_args, v), 16, 1},
    {"k_caches", (uint32_t)offsetof(ptxk_kv_scatter_args, k_caches), 8, 1},
    {"v_caches", (uint32_t)offsetof(ptxk_kv_scatter_args, v_caches), 8, 1},
    {"sequences", (uint32_t)offsetof(ptxk_kv_scatter_args, sequences), 4, 0},
    {"positions", (uint32_t)offsetof(ptxk_kv_scatter_args, positions), 4, 0},
    {"block_table", (uint32_t)offsetof(ptxk_kv_scatter_args, block_table), 4, 2}};

PTXGEN_API ptx_code ptxk_kv_scatter_check(const ptxk_kv_scatter_desc *desc, const ptxk_kv_scatter_args *args,
                                          ptxk_message *why)
{
    ptxk__scatter f;
    size_t i;
    uint64_t heads, rows, last;
    int fits = 1;
    ptx_code code = ptxk__scatter_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the arguments are NULL");
    for (i = 0; i < sizeof ptxk__scatter_fields / sizeof *ptxk__scatter_fields; i++) {
        const struct ptxk__scatter_field *field = &ptxk__scatter_fields[i];
        uint32_t align = field->align;
        uint64_t address;
        memcpy(&address, (const char *)args + field->offset, sizeof address);
        if (i >= 2 && i <= 3 && f.page_size) align = 16;
        if (!address && (field->needed == 1 || (field->needed == 2 && f.page_size)))
            return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: %s is 0", field->name);
        if (address % align)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: %s is not aligned to %u bytes", field->name,
                                align);
    }
    last = args->tokens ? args->tokens - 1 : 0;
    if (last * args->position_step + args->position > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "kv_scatter: position %u + %u tokens * position_step %u passes 2^32",
                            args->position, args->tokens, args->position_step);
    if (last * args->sequence_step > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: %u tokens * sequence_step %u passes 2^32",
                            args->tokens, args->sequence_step);
    if (f.page_size) return PTX_E_NONE;
    if (args->head_stride % f.n || args->row_stride % f.n)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "kv_scatter: the strides %llu and %llu must be multiples of %u elements",
                            (unsigned long long)args->head_stride, (unsigned long long)args->row_stride, f.n);
    heads = ptxk__product(args->head_stride, f.kv_heads - 1, &fits);
    rows = ptxk__product(args->row_stride, args->max_seq ? args->max_seq - 1u : 0u, &fits);
    if (!fits || heads > (UINT64_MAX >> 4) || rows > (UINT64_MAX >> 4))
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the strides pass 2^60 elements");
    if ((f.kv_heads > 1 && args->head_stride < f.d) || (args->max_seq > 1 && args->row_stride < f.d)
        || (f.kv_heads > 1 && args->max_seq > 1 && rows + f.d > args->head_stride
            && heads + f.d > args->row_stride))
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "kv_scatter: rows overlap with a head_stride of %llu and a row_stride of %llu",
                            (unsigned long long)args->head_stride, (unsigned long long)args->row_stride);
    return PTX_E_NONE;
}

/* A GEMV's format of weights: what the kernels know of it. A lane takes 32 weights of a block of 256 in two
   halves of 16, each with one scale; 8 lanes share a block. A new format is a row of ptxk__blocks and these
   functions; the order in which x lies in shared memory is the format's, so that words need no shuffling. */
#define PTXK__RAW 8u /* most words that a lane loads of a block */

typedef struct ptxk__lane { /* what a lane computes once: its place in a block, masks, shifts */
    ptx_val at;             /* 0 ... 7 */
    ptx_val c[8];           /* the format's own */
} ptxk__lane;

typedef struct ptxk__share {
    ptx_val half[2][4]; /* unsigned bytes; the second half's may be 1 / second times too large */
    ptx_val scale[2];   /* s32, of each half: weight = factor * scale * byte - minimum */
    ptx_val factor;     /* f32, of the block */
    ptx_val minimum;    /* f32, of the group of 32 that this lane counts: an even lane the first half's group,
                           an odd one the second's */
} ptxk__share;

typedef struct ptxk__block {
    const char *name;
    uint32_t id, bytes, align; /* of a block; of a load */
    float second;              /* factor of x that belongs to second halves */
    int has_minimum;
    void (*lane)(ptx_kernel *k, ptxk__lane *lane);
    /* inside: NULL, or whether there is such a block; at: address of the block */
    void (*load)(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *inside, ptx_val at, ptx_val *raw);
    void (*read)(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *raw, ptxk__share *share);
} ptxk__block;

static void ptxk__q4_k_lane(ptx_kernel *k, ptxk__lane *lane);
static void ptxk__q4_k_load(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *inside, ptx_val at,
                            ptx_val *raw);
static void ptxk__q4_k_read(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *raw, ptxk__share *share);

static const ptxk__block ptxk__blocks[] = {
    {"q4_k", PTXK_Q4_K, 144, 16, 0.0625f, 1, ptxk__q4_k_lane, ptxk__q4_k_load, ptxk__q4_k_read}};

/* All that follows from a gemv description. */
#define PTXK__GEMV_WARPS 8u
#define PTXK__GEMV_THREADS (32u * PTXK__GEMV_WARPS)
#define PTXK__GEMV_UNIT 4u      /* blocks of 256 that a warp takes of a row at once */
#define PTXK__GEMV_SHARED (49152u - 32u - 1024u) /* what every device gives unasked, less what is static */
#define PTXK__GEMV_X 2048u      /* values of x that a block of the first launch turns into integers */
#define PTXK__GEMV_K_MAX 0x4000000u
#define PTXK__GEMV_HEAD 256u    /* bytes before the sums of squares in the workspace: u32 slices */

typedef struct ptxk__gemv {
    const ptxk__block *block;
    ptx_type output;
    uint32_t columns, planes, flags;
    uint32_t rows;   /* of a warp */
    uint32_t stages; /* a warp's weights in flight: so many steps, less one */
    uint32_t step;   /* bytes of a warp's step: rows, 4 blocks of each */
    uint32_t ring;   /* bytes in shared memory before x: warps, stages, steps */
    uint32_t record; /* bytes of 256 values of x: planes, then (d, d', s, s') for each 64 */
} ptxk__gemv;

static ptx_code ptxk__gemv_form(const ptxk_gemv_desc *d, ptxk__gemv *f, ptxk_message *why)
{
    size_t i;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the description is NULL");
    f->block = NULL;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++)
        if (ptxk__blocks[i].id == d->format) f->block = &ptxk__blocks[i];
    if (!f->block) return ptxk__refuse(why, PTX_E_DESC, "gemv: format is %u, must be PTXK_Q4_K", d->format);
    if (!d->columns || d->columns > 8)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: columns is %u, must be 1 to 8", d->columns);
    if (d->precision != PTXK_GEMV_EXACT && d->precision != PTXK_GEMV_FAST)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: precision is %u, must be PTXK_GEMV_EXACT or PTXK_GEMV_FAST", d->precision);
    if (d->output_type != PTX_F32 && d->output_type != PTX_F16)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: output_type is %u, must be PTX_F32 or PTX_F16",
                            d->output_type);
    if (d->flags > 7)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: flags is %u, must be of PTXK_GEMV_NORM, _GAMMA and _RESIDUAL", d->flags);
    f->output = (ptx_type)d->output_type;
    f->columns = d->columns;
    f->planes = d->precision == PTXK_GEMV_EXACT ? 2 : 1;
    f->flags = d->flags;
    f->rows = d->columns == 1 ? 4 : 2; /* x of many columns needs the room, and registers */
    f->stages = 2;
    f->step = f->rows * PTXK__GEMV_UNIT * f->block->bytes;
    f->ring = PTXK__GEMV_WARPS * f->stages * f->step;
    f->record = 256 * f->planes + 64;
    return PTX_E_NONE;
}

PTXGEN_API uint64_t ptxk_row_bytes(uint32_t format, uint32_t k)
{
    size_t i;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++)
        if (ptxk__blocks[i].id == format && k % 256 == 0) return (uint64_t)(k / 256) * ptxk__blocks[i].bytes;
    return 0;
}

static uint64_t ptxk__up_256(uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Where the parts of the workspace begin: sums of squares at PTXK__GEMV_HEAD, then records of x, then partial
   results. ptxk__gemv_x_at and ptxk__gemv_parts_at compute the same in the kernels. */
static uint64_t ptxk__gemv_parts(const ptxk__gemv *f, uint32_t k)
{
    uint64_t sums = ptxk__up_256((uint64_t)f->columns * ptxk__ceil_div(k, PTXK__GEMV_X) * 4);
    return PTXK__GEMV_HEAD + sums + ptxk__up_256((uint64_t)f->columns * (k / 256) * f->record);
}

/* Slices of K and blocks for each: what makes the busiest block's bytes, times the blocks, and the bytes that
   slicing itself costs, x for each block, a partial result written and read for each slice, the fewest. Where
   the matrix is large enough to be bound by its bytes (16 MB), those of the second kind shall be fewer than a
   26th of it: all traffic then stays within 5 % of the lower bound. */
static void ptxk__gemv_split(const ptxk__gemv *f, const ptxk_gemv_shape *shape, uint32_t *slices,
                             uint32_t *groups)
{
    uint32_t units = ptxk__ceil_div(shape->k / 256, PTXK__GEMV_UNIT), s;
    uint32_t tiles = ptxk__ceil_div(shape->n, PTXK__GEMV_WARPS * f->rows);
    uint32_t unit_bytes = PTXK__GEMV_UNIT * f->record * f->columns,
             fits = (PTXK__GEMV_SHARED - f->ring) / unit_bytes;
    uint64_t blocks = 2 * (uint64_t)shape->sm_count, best = UINT64_MAX;
    uint64_t matrix = (uint64_t)shape->n * (shape->k / 256) * f->block->bytes;
    *slices = 0;
    for (s = ptxk__ceil_div(units, fits); s <= units; s++) {
        uint32_t per = ptxk__ceil_div(units, s), most, each;
        uint64_t all, weights, activations, parts, cost;
        if (ptxk__ceil_div(units, per) != s) continue;
        if (*slices && s > 1024) break;
        all = blocks / s ? blocks / s : 1;
        if (all > tiles) all = tiles;
        each = ptxk__ceil_div(tiles, (uint32_t)all);
        most = ptxk__ceil_div(tiles, each);
        weights =
            blocks * each * (per + 2) * PTXK__GEMV_WARPS * f->step; /* a tile costs some 2 steps itself */
        if ((uint64_t)s * most > blocks) weights = weights / blocks * s * most;
        activations = (uint64_t)s * most * per * unit_bytes;
        parts = s > 1 ? (uint64_t)s * shape->n * f->columns * 8 : 0;
        cost = weights + activations + parts;
        if (matrix > 1u << 24 && activations + parts > matrix / 26)
            cost += 64 * (activations + parts - matrix / 26);
        if (cost < best) {
            best = cost;
            *slices = s;
            *groups = most;
        }
    }
}

PTXGEN_API ptx_code ptxk_gemv_plan(const ptxk_gemv_desc *desc, const ptxk_gemv_shape *shape, ptx_plan *plan,
                                   ptxk_message *why)
{
    ptxk__gemv f;
    ptx_launch *l;
    uint32_t slices = 0, groups = 0, units, bytes;
    uint64_t outputs;
    ptx_code code = ptxk__gemv_form(desc, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the %s is NULL", plan ? "shape" : "plan");
    if (shape->n > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: n is %u, must be at most 2147483647", shape->n);
    if (!shape->k || shape->k % 256 || shape->k > PTXK__GEMV_K_MAX)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: k is %u, must be a multiple of 256 from 256 to %u",
                            shape->k, PTXK__GEMV_K_MAX);
    if (!shape->sm_count || shape->sm_count > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: sm_count is %u, must be 1 to 65536", shape->sm_count);
    plan->args_bytes = (uint32_t)sizeof(ptxk_gemv_args);
    if (!shape->n) return PTX_E_NONE;
    ptxk__gemv_split(&f, shape, &slices, &groups);
    units = ptxk__ceil_div(ptxk__ceil_div(shape->k / 256, PTXK__GEMV_UNIT), slices);
    l = &plan->launch[plan->launches++];
    l->entry = 0;
    l->grid[0] = ptxk__ceil_div(shape->k, PTXK__GEMV_X);
    l->grid[1] = f.columns;
    l = &plan->launch[plan->launches++];
    l->entry = 1;
    l->grid[0] = groups;
    l->grid[1] = slices;
    l->shared_bytes = f.ring + units * PTXK__GEMV_UNIT * f.record * f.columns;
    outputs = (uint64_t)shape->n * f.columns;
    plan->workspace_bytes = ptxk__gemv_parts(&f, shape->k);
    if (slices > 1) {
        l = &plan->launch[plan->launches++];
        l->entry = 2;
        l->grid[0] = ptxk__ceil_div(shape->n, PTXK__GEMV_THREADS);
        l->grid[1] = f.columns;
        plan->workspace_bytes += slices * outputs * 4;
    }
    for (l = plan->launch; l < plan->launch + plan->launches; l++) {
        l->grid[2] = l->block[1] = l->block[2] = 1;
        l->block[0] = PTXK__GEMV_THREADS;
    }
    bytes = f.output == PTX_F16 ? 2 : 4;
    plan->min_bytes = ptxk_row_bytes(desc->format, shape->k) * shape->n + (uint64_t)shape->k * f.columns * 4
                      + outputs * bytes;
    if (f.flags & PTXK_GEMV_GAMMA) plan->min_bytes += (uint64_t)shape->k * 4;
    if (f.flags & PTXK_GEMV_RESIDUAL) plan->min_bytes += outputs * bytes;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_gemv_check(const ptxk_gemv_desc *desc, const ptxk_gemv_args *args, ptxk_message *why)
{
    ptxk__gemv f;
    struct {
        const char *name;
        uint64_t at, bytes;
        uint32_t needed;
    } field[6];
    uint64_t outputs;
    uint32_t i, j;
    ptx_code code = ptxk__gemv_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the arguments are NULL");
    if (!args->k || args->k % 256 || args->k > PTXK__GEMV_K_MAX)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: k is %u, must be a multiple of 256 from 256 to %u",
                            args->k, PTXK__GEMV_K_MAX);
    if (args->n > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: n is %u, must be at most 2147483647", args->n);
    if (!(args->eps >= 0 && args->eps <= FLT_MAX))
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: eps is %g, must be finite and at least 0",
                            (double)args->eps);
    memset(field, 0, sizeof field);
    outputs = (uint64_t)args->n * f.columns * (f.output == PTX_F16 ? 2 : 4);
    field[0].name = "weights", field[0].at = args->weights, field[0].needed = 1;
    field[0].bytes = ptxk_row_bytes(desc->format, args->k) * args->n;
    field[1].name = "x", field[1].at = args->x, field[1].needed = 1;
    field[1].bytes = (uint64_t)args->k * f.columns * 4;
    field[2].name = "gamma", field[2].at = args->gamma, field[2].needed = f.flags & PTXK_GEMV_GAMMA;
    field[2].bytes = (uint64_t)args->k * 4;
    field[3].name = "residual", field[3].at = args->residual, field[3].needed = f.flags & PTXK_GEMV_RESIDUAL;
    field[3].bytes = outputs;
    field[4].name = "y", field[4].at = args->y, field[4].needed = 1;
    field[4].bytes = outputs;
    field[5].name = "workspace", field[5].at = args->workspace, field[5].needed = 1;
    field[5].bytes = ptxk__gemv_parts(&f, args->k);
    for (i = 0; i < 6; i++) {
        uint32_t align = i == 5 ? 256 : 16;
        if (!field[i].needed) continue;
        if (!field[i].at) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: %s is 0", field[i].name);
        if (field[i].at % align)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: %s is not aligned to %u bytes", field[i].name,
                                align);
        if (field[i].bytes > UINT64_MAX - field[i].at)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: %s passes 2^64", field[i].name);
    }
    for (i = 4; i < 6; i++)
        for (j = 0; j < i; j++)
            if (field[j].needed && field[i].at < field[j].at + field[j].bytes
                && field[j].at < field[i].at + field[i].bytes
                && !(j == 3 && field[i].at == field[j].at && i == 4))
                return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: %s overlaps %s", field[i].name,
                                    field[j].name);
    return PTX_E_NONE;
}

/* The registry, made from [TABLE]. */
#define PTXK__OPERATION(name) {#name, (uint32_t)sizeof(ptxk_##name##_desc), ptxk_##name##_emit_},
static const ptx_operation ptxk__operations[] = {PTXK_OPERATIONS(PTXK__OPERATION)};
#undef PTXK__OPERATION

PTXGEN_API uint32_t ptxk_operation_count(void)
{
    return (uint32_t)(sizeof ptxk__operations / sizeof ptxk__operations[0]);
}

PTXGEN_API const ptx_operation *ptxk_operation_get(uint32_t index)
{
    return index < ptxk_operation_count() ? &ptxk__operations[index] : NULL;
}

PTXGEN_API const ptx_operation *ptxk_operation_find(const char *name)
{
    uint32_t i;
    for (i = 0; name && i < ptxk_operation_count(); i++)
        if (!strcmp(name, ptxk__operations[i].name)) return &ptxk__operations[i];
    return NULL;
}

/* ptxk__<name>_labels and ptxk__<name>_examples. */
#define PTXK__LABEL(label, ...) label,
#define PTXK__DESC(label, ...) {__VA_ARGS__},
#define PTXK__LIST(name) \
    static const char *const ptxk__##name##_labels[] = {PTXK_EXAMPLES_##name(PTXK__LABEL)}; \
    static const ptxk_##name##_desc ptxk__##name##_examples[] = {PTXK_EXAMPLES_##name(PTXK__DESC)};
PTXK_OPERATIONS(PTXK__LIST)
#undef PTXK__LIST
#undef PTXK__LABEL
#undef PTXK__DESC

PTXGEN_API int ptxk_operation_example(uint32_t index, uint32_t variant, void *desc, size_t capacity,
                                      const char **label)
{
    const char *text = NULL;
    const void *example = NULL;
    uint32_t i = 0;
    if (index >= ptxk_operation_count() || !desc || capacity < ptxk__operations[index].desc_bytes) return 0;
#define PTXK__EXAMPLE(name) \
    if (i++ == index && variant < sizeof ptxk__##name##_labels / sizeof *ptxk__##name##_labels) { \
        example = &ptxk__##name##_examples[variant]; \
        text = ptxk__##name##_labels[variant]; \
    }
    PTXK_OPERATIONS(PTXK__EXAMPLE)
#undef PTXK__EXAMPLE
    (void)i;
    if (!example) return 0;
    memcpy(desc, example, ptxk__operations[index].desc_bytes);
    if (label) *label = text;
    return 1;
}

/* ---- [CORE] --------------------------------------------------------------------------------------------

   One emitting call in a statement: the text is then the same whatever compiler built the generator. */

/* -- vocabulary --
   What it emits belongs to its caller's line: here the site that the builder's macros take is a parameter. */
#undef PTX__AT
#define PTX__AT site

PTXGEN_API ptx_val ptxk_warp_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x, uint32_t first,
                                     uint32_t last) {
    uint32_t distance;
    for (distance = first; distance < last; distance *= 2) {
        ptx_val other = ptx_shfl_bfly(k, x, ptx_u32(distance), ptx_u32(31), ptx_u32(0xffffffffu));
        x = ptx_op2(k, op, 0, x, ptx_as(other, ptx_type_of(x)));
    }
    return x;
}

PTXGEN_API ptx_val ptxk_block_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x,
                                      uint32_t warps, ptx_val scratch) {
    ptx_type type = ptx_type_of(x);
    ptx_val tid, lane, warp, here, first;
    if (!warps || warps > 32 || (warps & (warps - 1))) {
        ptx_fail(ptx_kernel_module(k), PTX_E_ARGUMENT, site,
                 "ptxk_block_reduce over %u warps: must be a power of two to 32", warps);
        return x;
    }
    x = ptxk_warp_reduce(k, op, x, 1, 32);
    if (warps == 1) return x;
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    warp = ptx_shr(k, tid, ptx_u32(5));
    here = ptx_ptr_add(k, scratch, warp, 4);
    first = ptx_setp(k, PTX_EQ, lane, ptx_u32(0));
    ptx_guard(k, first);
    ptx_st(k, type, ptx_at(here, 0), x);
    ptx_bar_sync(k, ptx_imm(0));
    lane = ptx_and(k, lane, ptx_u32(warps - 1));
    here = ptx_ptr_add(k, scratch, lane, 4);
    x = ptx_ld(k, type, ptx_at(here, 0));
    return ptxk_warp_reduce(k, op, x, 1, warps);
}

PTXGEN_API void ptxk_load16_(ptx_kernel *k, const char *site, const ptx_val *p, ptx_mem mem, ptx_val words[4])
{
    if (p)
        ptx_ld_vec_if(k, *p, PTX_B32, 4, mem, ptx_b32(0), words);
    else
        ptx_ld_vec(k, PTX_B32, 4, mem, words);
}

/* The two halves of a word, f16 or bf16, as f32. */
#define ptxk__widen_word(k, stored, word, out) ptxk__widen_word_((k), PTX__AT, (stored), (word), (out))
static void ptxk__widen_word_(ptx_kernel *k, const char *site, ptx_type stored, ptx_val word, ptx_val out[2])
{
    if (stored == PTX_F16) {
        ptx_val half[2];
        ptx_unpack(k, PTX_F16, 2, word, half);
        out[0] = ptx_cvt(k, PTX_F32, half[0]);
        out[1] = ptx_cvt(k, PTX_F32, half[1]);
    } else { /* a bf16 is the upper half of an f32; the conversion instruction came with sm_90 */
        ptx_val low = ptx_shl(k, word, ptx_u32(16));
        ptx_val high = ptx_and(k, word, ptx_b32(0xffff0000u));
        out[0] = ptx_as(low, PTX_F32);
        out[1] = ptx_as(high, PTX_F32);
    }
}

PTXGEN_API uint32_t ptxk_widen_(ptx_kernel *k, const char *site, ptx_type stored, const ptx_val words[4],
                                ptx_val *out) {
    uint32_t i;
    if (stored != PTX_F32 && stored != PTX_F16 && stored != PTX_BF16) {
        ptx_fail(ptx_kernel_module(k), PTX_E_TYPE, site, "ptxk_widen takes f32, f16 or bf16, not %s",
                 ptx_type_name(stored));
        return 0;
    }
    for (i = 0; i < 4; i++) {
        if (stored == PTX_F32) {
            out[i] = ptx_as(words[i], PTX_F32);
        } else {
            ptxk__widen_word(k, stored, words[i], out + 2 * i);
        }
    }
    return stored == PTX_F32 ? 4 : 8;
}

/* How an access of that many bytes is written: so many words of b32, or one b16 (0 words). */
static uint32_t ptxk__words(uint32_t bytes)
{
    return bytes / 4;
}

PTXGEN_API void ptxk_load_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                               ptx_val *out) {
    ptx_val words[4], wide[8];
    uint32_t i, count = ptxk__words(n * (stored == PTX_F32 ? 4u : 2u));
    if (count > 4 || !n || (n & (n - 1)) || !out) {
        ptx_fail(ptx_kernel_module(k), PTX_E_VECTOR, site, "ptxk_load_f32 of %u elements of %s", n,
                 ptx_type_name(stored));
        return;
    }
    if (!count) {
        ptx_val half = ptx_ld(k, stored, mem);
        if (stored == PTX_F16) {
            out[0] = ptx_cvt(k, PTX_F32, half);
        } else {
            half = ptx_cvt(k, PTX_U32, ptx_as(half, PTX_U16));
            half = ptx_shl(k, half, ptx_u32(16));
            out[0] = ptx_as(half, PTX_F32);
        }
        return;
    }
    if (count == 1)
        words[0] = ptx_ld(k, PTX_B32, mem);
    else
        ptx_ld_vec(k, PTX_B32, count, mem, words);
    for (i = count; i < 4; i++) words[i] = words[0];
    ptxk_widen(k, stored, words, wide);
    for (i = 0; i < n; i++) out[i] = wide[i];
}

/* The upper half of an f32, rounded to nearest even: bf16 before there was an instruction for it. */
static ptx_val ptxk__to_bf16(ptx_kernel *k, const char *site, ptx_val x)
{
    ptx_val bits = ptx_as(x, PTX_U32), odd, up, nan, rounded;
    odd = ptx_bfe(k, bits, ptx_u32(16), ptx_u32(1));
    up = ptx_add(k, odd, ptx_u32(0x7fff));
    rounded = ptx_add(k, bits, up);
    rounded = ptx_shr(k, rounded, ptx_u32(16));
    nan = ptx_setp(k, PTX_ISNAN, x, x);
    rounded = ptx_selp(k, ptx_u32(0x7fff), rounded, nan);
    rounded = ptx_cvt(k, PTX_U16, rounded);
    return ptx_as(rounded, PTX_BF16);
}

PTXGEN_API void ptxk_narrow_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, const ptx_val *x,
                             ptx_val *words) {
    ptx_val pair[2];
    uint32_t i;
    int modern = (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80;
    ptx_type packed = stored == PTX_F16 ? PTX_F16X2 : PTX_BF16X2;
    if (stored != PTX_F32 && stored != PTX_F16 && stored != PTX_BF16) {
        ptx_fail(ptx_kernel_module(k), PTX_E_TYPE, site, "ptxk_narrow makes f32, f16 or bf16, not %s",
                 ptx_type_name(stored));
        return;
    }
    for (i = 0; i < ptxk__words(n * (stored == PTX_F32 ? 4u : 2u)); i++) {
        if (stored == PTX_F32) {
            words[i] = ptx_as(x[i], PTX_B32);
        } else if (modern) {
            words[i] = ptx_cvt_pair(k, packed, x[2 * i + 1], x[2 * i]);
            words[i] = ptx_as(words[i], PTX_B32);
        } else {
            pair[0] = stored == PTX_F16 ? ptx_cvt(k, stored, x[2 * i]) : ptxk__to_bf16(k, site, x[2 * i]);
            pair[1] = stored == PTX_F16 ? ptx_cvt(k, stored, x[2 * i + 1])
                                        : ptxk__to_bf16(k, site, x[2 * i + 1]);
            words[i] = ptx_pack(k, PTX_B32, 2, pair);
        }
    }
}

PTXGEN_API void ptxk_store_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                                const ptx_val *x) {
    ptx_val words[4];
    uint32_t count = ptxk__words(n * (stored == PTX_F32 ? 4u : 2u));
    int modern = (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80;
    if (count > 4 || !n || (n & (n - 1)) || !x
        || (stored != PTX_F32 && stored != PTX_F16 && stored != PTX_BF16)) {
        ptx_fail(ptx_kernel_module(k), PTX_E_VECTOR, site, "ptxk_store_f32 of %u elements of %s", n,
                 ptx_type_name(stored));
        return;
    }
    if (!count) {
        ptx_val half = stored == PTX_F16 || modern ? ptx_cvt(k, stored, x[0]) : ptxk__to_bf16(k, site, x[0]);
        ptx_st(k, stored, mem, half);
        return;
    }
    ptxk_narrow(k, stored, n, x, words);
    if (count == 1)
        ptx_st(k, PTX_B32, mem, words[0]);
    else
        ptx_st_vec(k, PTX_B32, count, mem, words);
}

PTXGEN_API ptx_val ptxk_dot_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b,
                             ptx_val sum) {
    uint32_t i;
    for (i = 0; i < n; i++) sum = ptx_fma(k, a[i], b[i], sum);
    return sum;
}

PTXGEN_API void ptxk_axpy_(ptx_kernel *k, const char *site, uint32_t n, ptx_val a, const ptx_val *x,
                           ptx_val *out) {
    uint32_t i;
    for (i = 0; i < n; i++) out[i] = ptx_fma(k, a, x[i], out[i]);
}

PTXGEN_API ptx_val ptxk_rcp_or_zero_(ptx_kernel *k, const char *site, ptx_val b)
{
    ptx_val zero = ptx_setp(k, PTX_EQ, b, ptx_f32(0));
    ptx_val inverse = ptx_rcp(k, b);
    return ptx_selp(k, ptx_f32(0), inverse, zero);
}

PTXGEN_API ptx_val ptxk_div_up_(ptx_kernel *k, const char *site, ptx_val a, ptx_val b)
{
    ptx_val sum = ptx_add(k, a, b);
    ptx_val last = ptx_sub(k, sum, ptx_u32(1));
    return ptx_div(k, last, b);
}

#undef PTX__AT
#define PTX__AT __FILE__ ":" PTX__STR(__LINE__)

/* 2^(x - y), the weight of a score x where y is the maximum. */
static ptx_val ptxk__weight(ptx_kernel *k, ptx_val x, ptx_val y)
{
    ptx_val difference = ptx_sub(k, x, y);
    return ptx_ex2(k, difference);
}

/* The address in the args of a pointer to global memory. */
static ptx_val ptxk__arg_ptr(ptx_kernel *k, ptx_val args, size_t offset)
{
    ptx_val p = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offset));
    return ptx_ptr(p, PTX_GLOBAL);
}

/* A u32 of the arguments. */
static ptx_val ptxk__arg_u32(ptx_kernel *k, ptx_val args, size_t offset)
{
    return ptx_ld(k, PTX_U32, ptx_at(args, (int64_t)offset));
}

static void ptxk__add_to(ptx_kernel *k, ptx_var address, uint64_t bytes)
{
    ptx_val here = ptx_get(k, address);
    ptx_val there = ptx_add(k, here, ptx_u64(bytes));
    ptx_set(k, address, there);
}

/* -- flash_decode: what a block works on -- */

/* The same for all threads of a block but for tid, warp, lane and poison. Positions are s32. */
typedef struct ptxk__flash_work {
    ptx_val args, shared, tid, warp, lane, sequence, index, splits;
    ptx_val chunks;                         /* blocks that share this sequence: what combines waits for */
    ptx_val kv_head, first_column, columns; /* the block's columns */
    ptx_val length, first, begin, end; /* keys that are seen, first ... length - 1; the block's, from begin */
    ptx_val safe_lo, safe_hi;          /* keys that all queries see and that lie in the caches */
    ptx_val base[2], row_bytes;        /* K and V: row 0 of this head; from position to position, u64 */
    ptx_val table, pool_pages;         /* paged: this sequence's pages; base is that of the pools */
    ptx_val fresh[2], owner;           /* rows to append, from this head's first; predicate: stores them */
    ptx_var poison;                    /* 0, or NaN: what makes the output NaN */
} ptxk__flash_work;

static int ptxk__flash_cache(int which) {
    return which ? (int)offsetof(ptxk_flash_decode_args, v_caches)
                 : (int)offsetof(ptxk_flash_decode_args, k_caches);
}

/* Where the caches are: the same description as kv_scatter's. */
static void ptxk__flash_bases(ptx_kernel *k, const ptxk__flash *f, ptxk__flash_work *w, ptx_val max_seq) {
    ptx_val head, row, here, p, wide;
    int which;
    if (f->page_size) {
        here = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, max_pages));
        wide = ptx_mul_wide(k, w->sequence, here);
        w->table = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, block_table));
        w->table = ptx_ptr_add(k, w->table, wide, 4);
        w->pool_pages = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, pool_pages));
        w->base[0] = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, k_caches));
        w->base[1] = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, v_caches));
        return;
    }
    head = ptx_ld(k, PTX_U64, ptx_at(w->args, (int64_t)offsetof(ptxk_flash_decode_args, head_stride)));
    row = ptx_ld(k, PTX_U64, ptx_at(w->args, (int64_t)offsetof(ptxk_flash_decode_args, row_stride)));
    here = ptx_or(k, head, row);
    p = ptx_setp(k, PTX_EQ, here, ptx_u64(0));
    here = ptx_mul_wide(k, max_seq, ptx_u32(f->d));
    head = ptx_selp(k, here, head, p);
    row = ptx_selp(k, ptx_u64(f->d), row, p);
    w->row_bytes = ptx_mul(k, row, ptx_u64(f->row_bytes / f->d));
    wide = ptx_cvt(k, PTX_U64, w->kv_head);
    wide = ptx_mul(k, wide, head);
    for (which = 0; which < 2; which++) {
        here = ptxk__arg_ptr(k, w->args, (size_t)ptxk__flash_cache(which));
        here = ptx_ptr_add(k, here, w->sequence, 8);
        here = ptx_ld(k, PTX_U64, ptx_at(here, 0));
        here = ptx_ptr(here, PTX_GLOBAL);
        w->base[which] = ptx_ptr_add(k, here, wide, f->row_bytes / f->d);
    }
}

static void ptxk__flash_begin(ptx_kernel *k, const ptxk__flash *f, ptxk__flash_work *w,
                              uint32_t shared_bytes) {
    ptx_val here, wide, max_seq, limit, bad, chunk, keys, length, first, begin, i, p;
    uint32_t fresh = f->fresh_type ? ptxk__kv_bytes((uint32_t)f->fresh_type) : 0, which;
    ptx_launch_bounds(k, PTXK__THREADS, 1);
    w->args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_flash_decode_args), 8);
    w->shared = ptx_shared(k, "stage", PTX_B32, shared_bytes / 4, 128);
    w->tid = ptx_tid_x(k);
    w->warp = ptx_shr(k, w->tid, ptx_u32(5));
    w->lane = ptx_and(k, w->tid, ptx_u32(31));
    w->sequence = ptx_ctaid_y(k);
    w->index = ptx_ctaid_z(k);
    w->splits = ptx_sreg(k, PTX_NCTAID_Z);

    ptx_comment(k, "the columns of this block: query t, head h of the group is column t * group + h");
    w->kv_head = ptx_ctaid_x(k);
    w->first_column = ptx_u32(0);
    w->columns = ptx_u32(f->columns < f->tile ? f->columns : f->tile);
    if (f->tiles > 1) {
        here = w->kv_head;
        w->kv_head = ptx_div(k, here, ptx_u32(f->tiles));
        here = ptx_rem(k, here, ptx_u32(f->tiles));
        w->first_column = ptx_mul(k, here, ptx_u32(f->tile));
        if (f->tile * (f->tiles - 1) >= f->columns) { /* this variant's blocks take more than 8 */
            p = ptx_setp(k, PTX_GE, w->first_column, ptx_u32(f->columns));
            ptx_guard(k, p);
            ptx_ret(k);
        }
        if (f->columns % f->tile) {
            here = ptx_sub(k, ptx_u32(f->columns), w->first_column);
            w->columns = ptx_min(k, here, ptx_u32(f->tile));
        }
        w->owner = ptx_setp(k, PTX_EQ, w->first_column, ptx_u32(0));
    }

    ptx_comment(k, "the keys of this block, from the length in device memory");
    here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, lengths));
    here = ptx_ptr_add(k, here, w->sequence, 4);
    length = ptx_ld(k, PTX_U32, ptx_at(here, 0));
    length = ptx_uniform(k, length); /* one address for the whole block */
    max_seq = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, max_seq));
    limit = ptx_min(k, max_seq, ptx_u32(PTXK__LEN_MAX));
    if (f->page_size) {
        here = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, max_pages));
        here = ptx_min(k, here, ptx_u32(PTXK__LEN_MAX / f->page_size)); /* some 2^31 keys less one page */
        here = ptx_mul(k, here, ptx_u32(f->page_size));
        limit = ptx_min(k, limit, here);
    }
    bad = ptx_setp(k, PTX_GT, length, limit);
    length = ptx_selp(k, ptx_u32(0), length, bad);
    here = ptx_selp(k, ptx_f32(NAN), ptx_f32(0), bad); /* block 0 then writes NaN */
    w->poison = ptx_var_new(k, here);
    first = begin = ptx_u32(0);
    keys = length;
    if (f->window) {
        uint32_t reach = f->window + f->queries - 1;
        here = ptx_max(k, length, ptx_u32(reach));
        first = ptx_sub(k, here, ptx_u32(reach));
        begin = ptx_and(k, first, ptx_u32(~(PTXK__BEGIN - 1)));
        keys = ptx_sub(k, length, begin);
    }
    chunk = ptxk_div_up(k, keys, w->splits);
    chunk = ptx_add(k, chunk, ptx_u32(f->unit - 1));
    i = ptx_rem(k, chunk, ptx_u32(f->unit));
    chunk = ptx_sub(k, chunk, i);
    chunk = ptx_max(k, chunk, ptx_u32(f->least));
    w->chunks = ptxk_div_up(k, keys, chunk);
    p = ptx_setp(k, PTX_GE, w->index, w->chunks);
    i = ptx_setp(k, PTX_NE, w->index, ptx_u32(0)); /* block 0 writes an output even without a key */
    p = ptx_and(k, p, i);
    ptx_guard(k, p);
    ptx_ret(k);
    i = ptx_mul(k, w->index, chunk);
    here = ptx_sub(k, keys, i);
    here = ptx_min(k, here, chunk);
    if (f->window) i = ptx_add(k, i, begin);
    here = ptx_add(k, i, here);
    w->length = ptx_as(length, PTX_S32);
    w->first = f->window ? ptx_as(first, PTX_S32) : ptx_s32(0);
    w->begin = ptx_as(i, PTX_S32);
    w->end = ptx_as(here, PTX_S32);
    w->safe_lo = w->first;
    if (f->window) {
        here = ptx_sub(k, w->length, ptx_s32(f->window));
        w->safe_lo = ptx_max(k, here, ptx_s32(0));
    }
    w->safe_hi = w->length;
    if (f->queries > 1 || fresh) {
        here = ptx_sub(k, w->length, ptx_s32(fresh ? f->queries : f->queries - 1));
        w->safe_hi = ptx_max(k, here, ptx_s32(0));
    }

    ptx_comment(k, "where K and V are");
    ptxk__flash_bases(k, f, w, max_seq);
    for (which = 0; fresh && which < 2; which++) {
        here = ptxk__arg_ptr(
            k, w->args, which ? offsetof(ptxk_flash_decode_args, v) : offsetof(ptxk_flash_decode_args, k));
        wide = ptx_cvt(k, PTX_U64, w->kv_head);
        wide = ptx_mad_wide(k, w->sequence, ptx_u32(f->queries * f->kv_heads), wide);
        w->fresh[which] = ptx_ptr_add(k, here, wide, f->d * fresh);
    }
}

/* The row of q and out, u64, of a column; and its query and head. */
static ptx_val ptxk__flash_row(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, ptx_val column,
                               ptx_val *query, ptx_val *head) {
    ptx_val row, wide;
    *query = ptx_u32(0);
    *head = column;
    if (f->queries > 1) {
        *query = ptx_div(k, column, ptx_u32(f->group));
        *head = ptx_rem(k, column, ptx_u32(f->group));
    }
    *head = ptx_mad(k, w->kv_head, ptx_u32(f->group), *head);
    wide = ptx_cvt(k, PTX_U64, *head);
    row = w->sequence;
    if (f->queries > 1) row = ptx_mad(k, row, ptx_u32(f->queries), *query);
    return ptx_mad_wide(k, row, ptx_u32(f->heads), wide);
}

/* Whether a column sees the key at a position. */
static ptx_val ptxk__flash_sees(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                ptx_val column, ptx_val position) {
    ptx_val limit = w->length, p, low;
    if (f->queries > 1) {
        limit = ptx_div(k, column, ptx_u32(f->group));
        limit = ptx_add(k, ptx_as(limit, PTX_S32), w->length);
        limit = ptx_sub(k, limit, ptx_s32(f->queries - 1));
    }
    p = ptx_setp(k, PTX_LT, position, limit);
    if (!f->window) return p;
    limit = ptx_sub(k, limit, ptx_s32(f->window));
    low = ptx_setp(k, PTX_GE, position, limit);
    return ptx_and(k, p, low);
}

/* The byte offset, u64, from base, of the key at a position, where `there` holds; it becomes false, and the
   output NaN, where the block table has no page of the pool for it. */
static ptx_val ptxk__flash_key(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                               ptx_val position, ptx_val *there) {
    ptx_val at, page, fits, wide;
    position = ptx_as(position, PTX_U32);
    if (!f->page_size) {
        wide = ptx_cvt(k, PTX_U64, position);
        return ptx_mul(k, wide, w->row_bytes);
    }
    page = ptx_shr(k, position, ptx_u32(f->page_shift));
    at = ptx_ptr_add(k, w->table, page, 4);
    page = ptx_ld_if(k, *there, PTX_U32, ptx_at(at, 0), ptx_u32(0));
    fits = ptx_setp(k, PTX_GE, page, w->pool_pages);
    fits = ptx_and(k, *there, fits);
    ptx_guard(k, fits);
    ptx_set(k, w->poison, ptx_f32(NAN));
    fits = ptx_setp(k, PTX_LT, page, w->pool_pages);
    *there = ptx_and(k, *there, fits);
    position = ptx_and(k, position, ptx_u32(f->page_size - 1));
    wide = ptx_cvt(k, PTX_U64, w->kv_head);
    wide = ptx_mad_wide(k, page, ptx_u32(f->kv_heads), wide);
    at = ptx_cvt(k, PTX_U64, position);
    wide = ptx_mad(k, wide, ptx_u64(f->page_size), at);
    return ptx_mul(k, wide, ptx_u64(f->row_bytes));
}

/* Whether a position is one of those to append. */
static ptx_val ptxk__flash_is_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                    ptx_val position) {
    ptx_val new_first = ptx_sub(k, w->length, ptx_s32(f->queries)), p, q;
    p = ptx_setp(k, PTX_GE, position, new_first);
    q = ptx_setp(k, PTX_LT, position, w->length);
    return ptx_and(k, p, q);
}

/* 16 bytes of a row to append, converted as they are stored. */
static void ptxk__flash_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, int which,
                              ptx_val position, ptx_val vec, ptx_val words[4]) {
    uint32_t bytes = ptxk__kv_bytes((uint32_t)f->fresh_type), n = 16 / bytes, i;
    ptx_val t, at, x[8];
    t = ptx_sub(k, position, w->length);
    t = ptx_add(k, t, ptx_s32(f->queries));
    at = ptx_ptr_add(k, w->fresh[which], ptx_as(t, PTX_U32), f->kv_heads * f->d * bytes);
    at = ptx_ptr_add(k, at, vec, f->per_vec * bytes);
    if (f->fresh_type == f->type) { /* as it is, NaN payloads and all */
        ptxk_load16(k, NULL, ptx_with(ptx_at(at, 0), PTX_NC), words);
        return;
    }
    if (n > f->per_vec) n = f->per_vec;
    for (i = 0; i < f->per_vec; i += n)
        ptxk_load_f32(k, f->fresh_type, n, ptx_with(ptx_at(at, (int64_t)(i * bytes)), PTX_NC), x + i);
    ptxk_narrow(k, f->type, f->per_vec, x, words);
}

/* 8 elements of q as f32, 0 where not p. */
static void ptxk__flash_q(ptx_kernel *k, const ptxk__flash *f, ptx_val p, ptx_val at, ptx_val x[8]) {
    ptx_val words[4];
    uint32_t i, n = f->q_type == PTX_F32 ? 4 : 8;
    for (i = 0; i < 8; i += n) {
        ptxk_load16(k, &p, ptx_at(at, (int64_t)(i * 4)), words);
        ptxk_widen(k, f->q_type, words, x + i);
    }
}

/* The scores, 2 s / cap in base 2, capped: cap tanh(s / cap) = cap - 2 cap / (1 + e^(2 s / cap)). */
static ptx_val ptxk__flash_capped(ptx_kernel *k, const ptxk__flash *f, ptx_val x) {
    x = ptx_ex2(k, x);
    x = ptx_add(k, x, ptx_f32(1));
    x = ptx_op1(k, PTX_RCP, PTX_APPROX | PTX_FTZ, x);
    return ptx_fma(k, x, ptx_f32(-2 * (double)f->cap), ptx_f32((double)f->cap));
}

/* -- vocabulary: online softmax --
   A state is a reference `most`, in base 2, that weights 2^(score - most) are relative to, the sum of those
   weights, and the caller's sums of weighted values. */
typedef struct ptxk__softmax {
    ptx_var most, total;
} ptxk__softmax;

static ptxk__softmax ptxk__softmax_new(ptx_kernel *k) {
    ptxk__softmax s;
    s.most = ptx_var_new(k, ptx_f32(-FLT_MAX)); /* not -inf: scores of -inf then weigh 2^-inf = 0 */
    s.total = ptx_var_new(k, ptx_f32(0));
    return s;
}

/* A score with +inf as the largest number, NaN as it is: no inf - inf is ever computed. */
static ptx_val ptxk__softmax_finite(ptx_kernel *k, ptx_val x) {
    ptx_val infinite;
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80)
        return ptx_op2(k, PTX_MIN, PTX_NAN, x, ptx_f32(FLT_MAX));
    infinite = ptx_setp(k, PTX_EQ, x, ptx_f32(INFINITY));
    return ptx_selp(k, ptx_f32(FLT_MAX), x, infinite);
}

/* The reference becomes `most`: returns what the caller's sums are to be multiplied with. */
static ptx_val ptxk__softmax_raise(ptx_kernel *k, const ptxk__softmax *s, ptx_val most) {
    ptx_val old = ptx_get(k, s->most), total = ptx_get(k, s->total), shrink;
    shrink = ptxk__weight(k, old, most);
    total = ptx_op2(k, PTX_MUL, PTX_RN, total, shrink);
    ptx_set(k, s->most, most);
    ptx_set(k, s->total, total);
    return shrink;
}

/* n states become one: its reference, its total, and the factor of each state's sums. */
static void ptxk__softmax_join(ptx_kernel *k, uint32_t n, const ptx_val *most, const ptx_val *total,
                               ptx_val *factor, ptx_val *top, ptx_val *all) {
    uint32_t i;
    *top = most[0];
    for (i = 1; i < n; i++) *top = ptx_max(k, *top, most[i]);
    for (i = 0; i < n; i++) {
        factor[i] = ptxk__weight(k, most[i], *top);
        *all = i ? ptx_fma(k, factor[i], total[i], *all) : ptx_op2(k, PTX_MUL, PTX_RN, factor[i], total[i]);
    }
}

/* -- vocabulary: the last block to arrive -- */

/* For all threads of a block, behind their writes to global memory: true in all threads of the last of
   `count` blocks to come here with this counter (u32, global, 0 at first and afterwards again), which then
   sees what the others wrote. flag: 4 bytes of shared memory that nothing else touches meanwhile. */
static ptx_val ptxk__last_block(ptx_kernel *k, ptx_val tid, ptx_val counter, ptx_val count, ptx_val flag) {
    ptx_val last = ptx_sub(k, count, ptx_u32(1)), p, old;
    ptx_bar_sync(k, ptx_imm(0));
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_if(k, p);
    {
        /* release: the barrier has put the block's writes before it; acquire: for those of the others. inc
           wraps to 0 when it finds `last`: ready for the next launch. */
        old = ptx_atom(k, PTX_ATOM_INC | PTX_ACQ_REL | PTX_GPU, ptx_at(counter, 0), last);
        ptx_st(k, PTX_U32, ptx_at(flag, 0), old);
    }
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    old = ptx_ld(k, PTX_U32, ptx_at(flag, 0));
    old = ptx_uniform(k, old);
    return ptx_setp(k, PTX_EQ, old, last);
}

/* -- flash_decode: from the warps' sums to the output -- */

static uint32_t ptxk__flash_state_at(const ptxk__flash *f) { return PTXK__WARPS * f->tile * f->pitch * 4; }

static uint32_t ptxk__flash_join_bytes(const ptxk__flash *f) {
    return ptxk__flash_state_at(f) + PTXK__WARPS * f->tile * 8;
}

/* Where the partial result (chunk, this sequence, column of the block) lies. */
static ptx_val ptxk__flash_record(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  ptx_val chunk, ptx_val column) {
    ptx_val batch = ptx_sreg(k, PTX_NCTAID_Y), header, row, wide, workspace;
    header = ptx_mul_wide(k, batch, ptx_u32(4 * f->kv_heads * f->tiles));
    header = ptx_add(k, header, ptx_u64(255));
    header = ptx_and(k, header, ptx_u64(~(uint64_t)255));
    wide = ptx_cvt(k, PTX_U64, w->sequence);
    row = ptx_mad_wide(k, chunk, batch, wide);
    column = ptx_add(k, column, w->first_column);
    column = ptx_mad(k, w->kv_head, ptx_u32(f->columns), column);
    wide = ptx_cvt(k, PTX_U64, column);
    row = ptx_mad(k, row, ptx_u64(f->kv_heads * f->columns), wide);
    workspace = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, workspace));
    workspace = ptx_ptr_add(k, workspace, header, 1);
    return ptx_ptr_add(k, workspace, row, f->record);
}

/* 4 elements of the output of a column of the block, from its state. */
static void ptxk__flash_finish(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, ptx_val column,
                               ptx_val vec, const ptx_val sum[4], ptx_val top, ptx_val all) {
    ptx_val inverse = ptxk_rcp_or_zero(k, all), x[4], row, query, head, here, p;
    uint32_t e;
    for (e = 0; e < 4; e++) x[e] = ptx_mul(k, sum[e], inverse);
    column = ptx_add(k, column, w->first_column);
    row = ptxk__flash_row(k, f, w, column, &query, &head);
    here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, out));
    here = ptx_ptr_add(k, here, row, f->d * ptxk__kv_bytes((uint32_t)f->out_type));
    here = ptx_ptr_add(k, here, vec, 4 * ptxk__kv_bytes((uint32_t)f->out_type));
    ptxk_store_f32(k, f->out_type, 4, ptx_at(here, 0), x);
    if (!(f->flags & PTXK_FLASH_LSE)) return;
    p = ptx_setp(k, PTX_EQ, vec, ptx_u32(0));
    ptx_if(k, p);
    {
        ptx_val lse = ptx_lg2(k, all);
        lse = ptx_add(k, top, lse);
        lse = ptx_mul(k, lse, ptx_f32(0.69314718055994530942));
        p = ptx_setp(k, PTX_EQ, top, ptx_f32(FLT_MAX)); /* there were scores of +inf */
        lse = ptx_selp(k, ptx_f32(INFINITY), lse, p);
        p = ptx_setp(k, PTX_ISNAN, all, all);
        lse = ptx_selp(k, ptx_f32(NAN), lse, p);
        here = ptx_cvt(k, PTX_U64, head);
        here = ptx_mad_wide(k, w->sequence, ptx_u32(f->heads), here);
        if (f->queries > 1) {
            row = ptx_cvt(k, PTX_U64, query);
            here = ptx_mad(k, here, ptx_u64(f->queries), row);
        }
        row = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, lse));
        row = ptx_ptr_add(k, row, here, 4);
        ptx_st(k, PTX_F32, ptx_at(row, 0), lse);
    }
    ptx_end(k);
}

/* The last block of a sequence and its columns: the partial results, PTXK__JOIN in flight. */
static void ptxk__flash_combine(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4, u, e;
    ptx_val i, column, vec, here, c, stride, row, inside[PTXK__JOIN], state[PTXK__JOIN][2],
        value[PTXK__JOIN][4], most[PTXK__JOIN + 1], total[PTXK__JOIN + 1], factor[PTXK__JOIN + 1], top, all,
        joined[4];
    ptx_var at, sum[4];
    ptxk__softmax s;
    i = ptx_mul(k, w->columns, ptx_u32(head_vecs));
    i = ptx_for(k, w->tid, i, ptx_u32(PTXK__THREADS));
    column = ptx_div(k, i, ptx_u32(head_vecs));
    vec = ptx_rem(k, i, ptx_u32(head_vecs));
    here = ptxk__flash_record(k, f, w, ptx_u32(0), column);
    at = ptx_var_new(k, here);
    stride = ptx_sreg(k, PTX_NCTAID_Y);
    stride =
        ptx_mul_wide(k, stride, ptx_u32(f->kv_heads * f->columns)); /* records, then bytes, to the next */
    stride = ptx_mul(k, stride, ptx_u64(f->record));
    s = ptxk__softmax_new(k);
    for (e = 0; e < 4; e++) sum[e] = ptx_var_new(k, ptx_f32(0));
    c = ptx_for(k, ptx_u32(0), w->chunks, ptx_u32(PTXK__JOIN));
    {
        here = ptx_get(k, at);
        here = ptx_ptr(here, PTX_GLOBAL);
        for (u = 0; u < PTXK__JOIN; u++) {
            row = ptx_add(k, c, ptx_u32(u));
            inside[u] = ptx_setp(k, PTX_LT, row, w->chunks);
            ptx_ld_vec_if(k, inside[u], PTX_F32, 2, ptx_at(here, 0), ptx_f32(0), state[u]);
            row = ptx_ptr_add(k, here, vec, 16);
            ptx_ld_vec_if(k, inside[u], PTX_F32, 4, ptx_at(row, 32), ptx_f32(0), value[u]);
            here = ptx_ptr_add(k, here, stride, 1);
        }
        ptx_set(k, at, here);
        most[0] = ptx_get(k, s.most);
        total[0] = ptx_get(k, s.total);
        for (u = 0; u < PTXK__JOIN; u++) {
            most[u + 1] = ptx_selp(k, state[u][0], ptx_f32(-FLT_MAX), inside[u]);
            total[u + 1] = state[u][1];
        }
        ptxk__softmax_join(k, PTXK__JOIN + 1, most, total, factor, &top, &all);
        ptx_set(k, s.most, top);
        ptx_set(k, s.total, all);
        for (e = 0; e < 4; e++) {
            joined[e] = ptx_get(k, sum[e]);
            joined[e] = ptx_op2(k, PTX_MUL, PTX_RN, joined[e], factor[0]);
        }
        for (u = 0; u < PTXK__JOIN; u++) ptxk_axpy(k, 4, factor[u + 1], value[u], joined);
        for (e = 0; e < 4; e++) ptx_set(k, sum[e], joined[e]);
    }
    ptx_end(k);
    top = ptx_get(k, s.most);
    all = ptx_get(k, s.total);
    for (e = 0; e < 4; e++) joined[e] = ptx_get(k, sum[e]);
    ptxk__flash_finish(k, f, w, column, vec, joined, top, all);
    ptx_end(k);
}

/* The warps' states, [warp][column], lie at state_at in shared memory, their sums, [warp][column][pitch],
   before them: a sequence of one chunk is done here; of several, its last block combines them. */
static void ptxk__flash_join(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4, e, v, state_at = ptxk__flash_state_at(f);
    ptx_val i, column, vec, here, row, p, pair[2], most[PTXK__WARPS], total[PTXK__WARPS],
        words[PTXK__WARPS][4], factor[PTXK__WARPS], joined[4], top, all;
    ptx_bar_sync(k, ptx_imm(0));
    i = ptx_mul(k, w->columns, ptx_u32(head_vecs));
    i = ptx_for(k, w->tid, i, ptx_u32(PTXK__THREADS));
    {
        column = ptx_div(k, i, ptx_u32(head_vecs));
        vec = ptx_rem(k, i, ptx_u32(head_vecs));
        here = ptx_ptr_add(k, w->shared, column, 8);
        row = ptx_ptr_add(k, w->shared, column, f->pitch * 4);
        row = ptx_ptr_add(k, row, vec, 16);
        for (v = 0; v < PTXK__WARPS; v++) {
            ptx_ld_vec(k, PTX_F32, 2, ptx_at(here, (int64_t)(state_at + v * f->tile * 8)), pair);
            most[v] = pair[0];
            total[v] = pair[1];
            ptx_ld_vec(k, PTX_F32, 4, ptx_at(row, (int64_t)(v * f->tile * f->pitch * 4)), words[v]);
        }
        ptxk__softmax_join(k, PTXK__WARPS, most, total, factor, &top, &all);
        for (e = 0; e < 4; e++) joined[e] = ptx_op2(k, PTX_MUL, PTX_RN, factor[0], words[0][e]);
        for (v = 1; v < PTXK__WARPS; v++) ptxk_axpy(k, 4, factor[v], words[v], joined);
        p = ptx_setp(k, PTX_LE, w->chunks, ptx_u32(1));
        ptx_if(k, p);
        ptxk__flash_finish(k, f, w, column, vec, joined, top, all);
        ptx_else(k);
        here = ptxk__flash_record(k, f, w, w->index, column);
        pair[0] = top;
        pair[1] = all;
        p = ptx_setp(k, PTX_EQ, vec, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st_vec(k, PTX_F32, 2, ptx_at(here, 0), pair);
        here = ptx_ptr_add(k, here, vec, 16);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 32), joined);
        ptx_end(k);
    }
    ptx_end(k);
    p = ptx_setp(k, PTX_GT, w->chunks, ptx_u32(1));
    ptx_if(k, p);
    {
        here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, workspace));
        row = ptx_ctaid_x(k);
        row = ptx_mad(k, w->sequence, ptx_u32(f->kv_heads * f->tiles), row);
        here = ptx_ptr_add(k, here, row, 4);
        p = ptxk__last_block(k, w->tid, here, w->chunks, w->shared);
        ptx_if(k, p);
        ptxk__flash_combine(k, f, w);
        ptx_end(k);
    }
    ptx_end(k);
    ptx_ret(k);
}

/* -- flash_decode: scalar --
   For f32 caches, and for sm_75. Lanes share a row; a lane has its part of q and of the sums of all columns
   in registers. */
typedef struct ptxk__flash_state {
    ptx_val q[PTXK__TILE][PTXK__ROW];
    ptx_var sum[PTXK__TILE][PTXK__ROW];
    ptxk__softmax soft[PTXK__TILE];
    ptx_val part, group; /* this lane's vector of a row; its row of those that the warp reads at once */
    ptx_val has[2];      /* vector i of a row exists for this lane; only for i where it does not for all */
    ptx_val next_rows;   /* u64: bytes to the rows read next */
    ptx_var at, next;    /* bytes from base to this lane's next row; position of the warp's first */
} ptxk__flash_state;

static int ptxk__flash_partial(const ptxk__flash *f, uint32_t vec) {
    return (vec + 1) * f->lanes > f->row_vecs;
}

/* A row to append, instead of what the cache holds: `words` become variables that both ways set. */
static void ptxk__flash_scalar_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                     int which, ptx_val fresh, ptx_val position, ptx_val vec, ptx_val at,
                                     ptx_val stored, ptx_val words[4]) {
    ptx_var kept[4];
    ptx_val made[4];
    uint32_t e;
    for (e = 0; e < 4; e++) kept[e] = ptx_var_new(k, words[e]);
    ptx_if(k, fresh);
    {
        ptxk__flash_fresh(k, f, w, which, position, vec, made);
        for (e = 0; e < 4; e++) ptx_set(k, kept[e], made[e]);
        ptx_guard(k, stored);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(at, 0), made);
    }
    ptx_end(k);
    for (e = 0; e < 4; e++) words[e] = ptx_get(k, kept[e]);
}

/* The vectors of `unroll` keys that this lane reads. edge: some may not exist, or be to append. */
static void ptxk__flash_read(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                             const ptxk__flash_state *s, int edge, ptx_val words[2][PTXK__UNROLL][2][4]) {
    ptx_val offset, position, always, there, cached, fresh, at, p, vec, stored;
    uint32_t u, v;
    int which;
    offset = ptx_get(k, s->at);
    position = ptx_get(k, s->next);
    position = ptx_add(k, position, ptx_as(s->group, PTX_S32));
    always = fresh = ptx_setp(k, PTX_GE, position, ptx_s32(0));
    for (u = 0; u < f->unroll; u++) {
        there = always;
        if (u) position = ptx_add(k, position, ptx_s32(f->rows));
        if (edge) {
            there = ptx_setp(k, PTX_LT, position, w->end);
            p = ptx_setp(k, PTX_GE, position, w->first);
            there = ptx_and(k, there, p);
        }
        if (edge || f->page_size) {
            offset = ptxk__flash_key(k, f, w, position, &there);
        } else if (u) {
            offset = ptx_add(k, offset, s->next_rows);
        }
        cached = there;
        if (edge && f->fresh_type) {
            fresh = ptxk__flash_is_fresh(k, f, w, position);
            p = ptx_and(k, there, fresh);
            cached = ptx_op2(k, PTX_XOR, 0, there, p);
        }
        for (which = 0; which < 2; which++) {
            at = ptx_ptr_add(k, w->base[which], offset, 1);
            at = ptx_ptr_add(k, at, s->part, 16);
            for (v = 0; v < f->vecs; v++) {
                ptx_mem mem = ptx_with(ptx_at(at, (int64_t)(v * f->lanes * 16)), PTX_NC);
                int partial = ptxk__flash_partial(f, v);
                p = cached;
                if (partial && (edge || f->page_size)) p = ptx_and(k, cached, s->has[v]);
                if (partial && !(edge || f->page_size)) p = s->has[v];
                ptxk_load16(k, partial || edge || f->page_size ? &p : NULL, mem, words[which][u][v]);
                if (!edge || !f->fresh_type) continue;
                p = partial ? ptx_and(k, fresh, s->has[v]) : fresh;
                stored = there;
                if (f->tiles > 1) stored = ptx_and(k, stored, w->owner);
                vec = ptx_add(k, s->part, ptx_u32(v * f->lanes));
                ptxk__flash_scalar_fresh(k, f, w, which, p, position, vec,
                                         ptx_ptr_add(k, at, ptx_u32(v * f->lanes), 16), stored,
                                         words[which][u][v]);
            }
        }
    }
}

static void ptxk__flash_widen(ptx_kernel *k, const ptxk__flash *f, ptx_val words[2][4], ptx_val *out) {
    uint32_t v, n = 0;
    for (v = 0; v < f->vecs; v++) n += ptxk_widen(k, f->type, words[v], out + n);
}

/* One step of a warp: `unroll` keys for each group of lanes. The new maximum, the old sums scaled to it, the
   weights. */
static void ptxk__flash_step(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                             const ptxk__flash_state *s, int edge) {
    uint32_t n = f->per_vec * f->vecs, h, u, e;
    ptx_val words[2][PTXK__UNROLL][2][4], row[PTXK__ROW], position, sees, column;
    ptx_val score[PTXK__TILE][PTXK__UNROLL], sum[PTXK__TILE][PTXK__ROW];

    ptxk__flash_read(k, f, w, s, edge, words);
    for (u = 0; u < f->unroll; u++) {
        ptxk__flash_widen(k, f, words[0][u], row);
        for (h = 0; h < f->tile; h++) {
            score[h][u] = ptx_mul(k, s->q[h][0], row[0]);
            score[h][u] = ptxk_dot(k, n - 1, s->q[h] + 1, row + 1, score[h][u]);
        }
    }
    position = ptx_get(k, s->next);
    position = ptx_add(k, position, ptx_as(s->group, PTX_S32));
    for (h = 0; h < f->tile; h++) {
        ptx_val most = ptx_get(k, s->soft[h].most), total, shrink, here;
        column = ptx_add(k, w->first_column, ptx_u32(h));
        for (u = 0; u < f->unroll; u++) {
            ptx_val x = ptxk_warp_reduce(k, PTX_ADD, score[h][u], 1, f->lanes);
            if (f->cap > 0) x = ptxk__flash_capped(k, f, x);
            x = ptxk__softmax_finite(k, x);
            if (edge) {
                here = ptx_add(k, position, ptx_s32(u * f->rows));
                sees = ptxk__flash_sees(k, f, w, column, here);
                x = ptx_selp(k, x, ptx_f32(-INFINITY), sees);
            }
            score[h][u] = x;
            most = ptx_max(k, most, x);
        }
        shrink = ptxk__softmax_raise(k, &s->soft[h], most);
        total = ptx_get(k, s->soft[h].total);
        for (u = 0; u < f->unroll; u++) {
            score[h][u] = ptxk__weight(k, score[h][u], most);
            total = ptx_add(k, total, score[h][u]);
        }
        ptx_set(k, s->soft[h].total, total);
        for (e = 0; e < n; e++) {
            sum[h][e] = ptx_get(k, s->sum[h][e]);
            sum[h][e] = ptx_op2(k, PTX_MUL, PTX_RN, sum[h][e], shrink);
        }
    }
    for (u = 0; u < f->unroll; u++) {
        ptxk__flash_widen(k, f, words[1][u], row);
        for (h = 0; h < f->tile; h++) ptxk_axpy(k, n, score[h][u], row, sum[h]);
    }
    for (h = 0; h < f->tile; h++)
        for (e = 0; e < n; e++) ptx_set(k, s->sum[h][e], sum[h][e]);
}

/* q * scale: global memory once, then shared memory, then registers. */
static void ptxk__flash_scalar_q(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                 ptxk__flash_state *s) {
    uint32_t head_vecs = f->d / 8, h, e, v, i;
    ptx_val turn, column, vec, row, query, head, here, p, q, x[8];
    q = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, q));
    turn = ptx_for(k, w->tid, ptx_u32(f->tile * head_vecs), ptx_u32(PTXK__THREADS));
    {
        column = ptx_div(k, turn, ptx_u32(head_vecs));
        vec = ptx_rem(k, turn, ptx_u32(head_vecs));
        p = ptx_setp(k, PTX_LT, column, w->columns);
        column = ptx_add(k, column, w->first_column);
        row = ptxk__flash_row(k, f, w, column, &query, &head);
        here = ptx_ptr_add(k, q, row, f->d * ptxk__kv_bytes((uint32_t)f->q_type));
        here = ptx_ptr_add(k, here, vec, 8 * ptxk__kv_bytes((uint32_t)f->q_type));
        ptxk__flash_q(k, f, p, here, x);
        for (e = 0; e < 8; e++) x[e] = ptx_mul(k, x[e], ptx_f32((double)f->scale));
        here = ptx_ptr_add(k, w->shared, turn, 32);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 0), x);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 16), x + 4);
    }
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    here = ptx_ptr_add(k, w->shared, s->part, f->per_vec * 4);
    for (v = 0; v < f->vecs; v++) {
        for (h = 0; h < f->tile; h++) {
            for (e = 0; e < f->per_vec; e += 4) {
                ptx_val *into = &s->q[h][v * f->per_vec + e];
                ptx_mem mem = ptx_at(here, (int64_t)((h * f->d + v * f->lanes * f->per_vec + e) * 4));
                ptxk_load16(k, ptxk__flash_partial(f, v) ? &s->has[v] : NULL, mem, into);
                for (i = 0; i < 4; i++) into[i] = ptx_as(into[i], PTX_F32);
            }
        }
    }
}

/* The groups of lanes of a warp become one; then the warp's sums and states go to shared memory. */
static void ptxk__flash_scalar_stage(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                     const ptxk__flash_state *s) {
    uint32_t n = f->per_vec * f->vecs, h, e, v, state_at = ptxk__flash_state_at(f);
    ptx_val most[PTXK__TILE], total[PTXK__TILE], sum[PTXK__TILE][PTXK__ROW], here, p, poison, pair[2];
    poison = ptx_get(k, w->poison);
    for (h = 0; h < f->tile; h++) {
        ptx_val mine = ptx_get(k, s->soft[h].most), shrink;
        most[h] = ptxk_warp_reduce(k, PTX_MAX, mine, f->lanes, 32);
        shrink = ptxk__softmax_raise(k, &s->soft[h], most[h]);
        total[h] = ptx_get(k, s->soft[h].total);
        total[h] = ptx_add(k, total[h], poison);
        total[h] = ptxk_warp_reduce(k, PTX_ADD, total[h], f->lanes, 32);
        for (e = 0; e < n; e++) {
            sum[h][e] = ptx_get(k, s->sum[h][e]);
            sum[h][e] = ptx_op2(k, PTX_MUL, PTX_RN, sum[h][e], shrink);
            sum[h][e] = ptxk_warp_reduce(k, PTX_ADD, sum[h][e], f->lanes, 32);
        }
    }
    ptx_bar_sync(k, ptx_imm(0)); /* q has been read by all */
    p = ptx_setp(k, PTX_LT, w->lane, ptx_u32(f->lanes));
    ptx_if(k, p);
    {
        here = ptx_ptr_add(k, w->shared, w->warp, f->tile * f->pitch * 4);
        here = ptx_ptr_add(k, here, s->part, f->per_vec * 4);
        for (v = 0; v < f->vecs; v++) {
            if (ptxk__flash_partial(f, v)) ptx_if(k, s->has[v]);
            for (h = 0; h < f->tile; h++) {
                for (e = 0; e < f->per_vec; e += 4) {
                    ptx_mem mem = ptx_at(here, (int64_t)((h * f->pitch + v * f->lanes * f->per_vec + e) * 4));
                    ptx_st_vec(k, PTX_F32, 4, mem, &sum[h][v * f->per_vec + e]);
                }
            }
            if (ptxk__flash_partial(f, v)) ptx_end(k);
        }
    }
    ptx_end(k);
    p = ptx_setp(k, PTX_EQ, w->lane, ptx_u32(0));
    ptx_if(k, p);
    {
        here = ptx_ptr_add(k, w->shared, w->warp, f->tile * 8);
        for (h = 0; h < f->tile; h++) {
            pair[0] = most[h];
            pair[1] = total[h];
            ptx_st_vec(k, PTX_F32, 2, ptx_at(here, (int64_t)(state_at + h * 8)), pair);
        }
    }
    ptx_end(k);
}

static void ptxk__flash_scalar(ptx_module *m, const ptxk__flash *f, const char *name) {
    ptx_kernel *k = ptx_entry(m, name);
    uint32_t n = f->per_vec * f->vecs, h, e, v, bytes = f->tile * f->d * 4;
    ptxk__flash_work w;
    ptxk__flash_state s;
    ptx_val here, i, p, end, wide;
    memset(&w, 0, sizeof w);
    if (bytes < ptxk__flash_join_bytes(f)) bytes = ptxk__flash_join_bytes(f);
    ptxk__flash_begin(k, f, &w, bytes);
    s.part = ptx_and(k, w.lane, ptx_u32(f->lanes - 1));
    s.group = ptx_div(k, w.lane, ptx_u32(f->lanes));
    for (v = 0; v < f->vecs; v++)
        if (ptxk__flash_partial(f, v))
            s.has[v] = ptx_setp(k, PTX_LT, s.part, ptx_u32(f->row_vecs - v * f->lanes));
    ptx_comment(k, "q");
    ptxk__flash_scalar_q(k, f, &w, &s);
    i = ptx_mul(k, w.warp, ptx_u32(f->warp_keys));
    i = ptx_add(k, ptx_as(i, PTX_S32), w.begin);
    s.next = ptx_var_new(k, i);
    if (!f->page_size) {
        s.next_rows = ptx_mul(k, w.row_bytes, ptx_u64(f->rows));
        i = ptx_add(k, ptx_as(i, PTX_U32), s.group);
        wide = ptx_cvt(k, PTX_U64, i);
        wide = ptx_mul(k, wide, w.row_bytes);
        s.at = ptx_var_new(k, wide);
    } else {
        s.at = ptx_var_new(k, ptx_u64(0));
    }
    for (h = 0; h < f->tile; h++) {
        s.soft[h] = ptxk__softmax_new(k);
        for (e = 0; e < n; e++) s.sum[h][e] = ptx_var_new(k, ptx_f32(0));
    }

    ptx_comment(k, "whole steps, and those in which some key is not for all queries, or not in the cache");
    ptx_loop(k);
    {
        i = ptx_get(k, s.next);
        p = ptx_setp(k, PTX_LT, i, w.end);
        ptx_while(k, p);
        end = ptx_add(k, i, ptx_s32(f->warp_keys));
        here = ptx_min(k, w.safe_hi, w.end);
        p = ptx_setp(k, PTX_LE, end, here);
        if (f->window) {
            here = ptx_setp(k, PTX_GE, i, w.safe_lo);
            p = ptx_and(k, p, here);
        }
        ptx_if(k, p);
        ptxk__flash_step(k, f, &w, &s, 0);
        ptx_else(k);
        ptxk__flash_step(k, f, &w, &s, 1);
        ptx_end(k);
        i = ptx_add(k, i, ptx_s32(f->step));
        ptx_set(k, s.next, i);
        if (!f->page_size) {
            wide = ptx_get(k, s.at);
            here = ptx_mul(k, w.row_bytes, ptx_u64(f->step));
            wide = ptx_add(k, wide, here);
            ptx_set(k, s.at, wide);
        }
    }
    ptx_end(k);
    ptx_comment(k, "the lanes of a warp, then the warps through shared memory, then the blocks");
    ptxk__flash_scalar_stage(k, f, &w, &s);
    ptxk__flash_join(k, f, &w);
}

/* -- vocabulary: tiles for tensor cores --
   A tile in shared memory: rows of 16-byte chunks, an even number, rows one behind the other. Chunk c of row
   r lies at place c ^ (r >> shift & mask) of its row: the same chunk of 8 rows is then in 8 different places
   modulo 128 bytes, and ldmatrix has no bank conflicts, whatever the length of a row. Rows r and r + 8 agree
   in that place. The tile begins at a multiple of 128 bytes. */
typedef struct ptxk__tile {
    uint32_t chunks, pitch, shift, mask;
} ptxk__tile;

static ptxk__tile ptxk__tile_form(uint32_t chunks) {
    ptxk__tile t;
    t.chunks = chunks;
    t.pitch = 16 * chunks;
    t.shift = chunks % 8 == 0 ? 0 : chunks % 4 == 0 ? 1 : 2;
    t.mask = (8u >> t.shift) - 1;
    return t;
}

/* The byte offset of a chunk of a row. */
static ptx_val ptxk__tile_at(ptx_kernel *k, const ptxk__tile *t, ptx_val row, ptx_val chunk) {
    ptx_val turn = row;
    if (t->shift) turn = ptx_shr(k, turn, ptx_u32(t->shift));
    turn = ptx_and(k, turn, ptx_u32(t->mask));
    turn = ptx_xor(k, turn, chunk);
    turn = ptx_shl(k, turn, ptx_u32(4));
    return ptx_mad(k, row, ptx_u32(t->pitch), turn);
}

/* What a lane adds to a tile's address for ldmatrix.x4 of the 16 x 16 part whose first chunk is 2 j: of lanes
   0-7, 8-15, 16-23 and 24-31 come rows (upper ? 0, 8, 0, 8 : 0, 0, 8, 8) + lane % 8 and chunks 2 j + the
   other of both. at[] has what differs by lane; ptxk__tile_step(j) of it is added to ptxk__tile_bytes(j). */
static void ptxk__tile_lane(ptx_kernel *k, const ptxk__tile *t, ptx_val lane, int upper, ptx_val at[4]) {
    ptx_val row = ptx_and(k, lane, ptx_u32(7)), a, b;
    uint32_t j;
    a = ptx_and(k, lane, ptx_u32(8));
    b = ptx_and(k, lane, ptx_u32(16));
    if (upper) {
        row = ptx_or(k, row, a);
        a = ptx_shr(k, b, ptx_u32(4));
    } else {
        b = ptx_shr(k, b, ptx_u32(1));
        row = ptx_or(k, row, b);
        a = ptx_shr(k, a, ptx_u32(3));
    }
    for (j = 0; j < 4 && 2 * j <= t->mask; j++) {
        b = ptx_or(k, a, ptx_u32(2 * j));
        at[j] = ptxk__tile_at(k, t, row, b);
    }
}

static uint32_t ptxk__tile_step(const ptxk__tile *t, uint32_t j) { return (2 * j & t->mask) / 2; }

static int64_t ptxk__tile_bytes(const ptxk__tile *t, uint32_t j) { return (int64_t)(2 * j & ~t->mask) * 16; }

/* -- flash_decode: tensor cores --
   Columns are the 8 of an mma's N: scores are K q^T, 16 keys by 8 columns, sums V^T P, 16 dimensions by 8
   columns, so K and V are read once for all columns, and what belongs to a column, its maximum and its sums,
   is in the same lanes. A warp has its own keys and its own ring in shared memory, and meets the others only
   at the end. One step is 16 kt keys; an item of the ring is a slab of their K or their V. */
typedef struct ptxk__flash_mma_state {
    ptxk__tile tile;
    ptx_val q[3][4][PTXK__SLAB / 8][2];  /* terms, column tiles, 16-element steps */
    ptx_var sum[PTXK__SLAB / 8][4][4];   /* 16-dimension steps, column tiles, the accumulator's registers */
    ptxk__softmax soft[4][2];            /* most: the maximum less bias, or up to slack less */
    ptx_var limit[4][2];                 /* no score above: no need to look at the maximum */
    ptx_val factor[4][2], inverse[4][2]; /* scores as the product gives them, times factor, are in base 2 */
    ptx_val k_at[4], v_at[4];            /* this lane's offsets for ldmatrix */
    ptx_val to[4], chunk, row;           /* ... for copies, and what of a pass it copies */
    ptx_val pass_bytes;                  /* u32: from pass to pass */
    uint32_t lanes, rows, passes;        /* of a row, of a pass, of an item */
    uint32_t item;                       /* bytes */
    ptx_val ring, stop;    /* this warp's first item; keys from here on are not copied blindly */
    ptx_val tile_bytes;    /* u64: from one of the warp's steps to the next */
    ptx_var from[2], page; /* this lane's first chunk of the next K, V; paged: its page */
    ptx_var whole;         /* 1 where a step's rows are all in the caches, seen by all columns */
} ptxk__flash_mma_state;

static uint32_t ptxk__flash_keys(const ptxk__flash *f) { return 16 * f->kt; }

/* 16-byte chunks of slab s that a row has; 16-element steps of it. */
static uint32_t ptxk__flash_slab(const ptxk__flash *f, uint32_t s) {
    uint32_t rest = f->row_vecs - s * f->chunks;
    return rest < f->chunks ? rest : f->chunks;
}

static uint32_t ptxk__flash_steps(const ptxk__flash *f, uint32_t s) {
    return (ptxk__flash_slab(f, s) + 1) / 2;
}

/* q to shared memory, each column times a power of two that makes its largest element 2^14 or so (with bf16
   of the size of 1), as a sum of `terms` numbers of the cache's type; then to registers. */
static void ptxk__flash_mma_q(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                              ptxk__flash_mma_state *s, ptx_val stage) {
    ptxk__tile t = ptxk__tile_form((f->d + 15) / 16 * 2);
    uint32_t goal = f->type == PTX_F16 ? 14 : 0, n, i, e, j, steps = t.chunks / 2;
    uint32_t term_bytes = f->tile * t.pitch;
    ptx_val q, p, column, row, query, head, here, x[8], y[8], words[4], most, up, size, factors, to, kept;
    q = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, q));
    factors = ptx_ptr_add(k, stage, ptx_u32(f->terms * term_bytes), 1);
    for (n = 0; n < f->tile; n += PTXK__WARPS) { /* a warp has a column, a lane 8 of its elements */
        column = ptx_add(k, w->warp, ptx_u32(n));
        kept = column;
        p = ptx_setp(k, PTX_LT, column, w->columns);
        here = ptx_setp(k, PTX_LT, w->lane, ptx_u32(f->row_vecs));
        p = ptx_and(k, p, here);
        column = ptx_add(k, column, w->first_column);
        row = ptxk__flash_row(k, f, w, column, &query, &head);
        here = ptx_ptr_add(k, q, row, f->d * ptxk__kv_bytes((uint32_t)f->q_type));
        here = ptx_ptr_add(k, here, w->lane, 8 * ptxk__kv_bytes((uint32_t)f->q_type));
        ptxk__flash_q(k, f, p, here, x);
        most = ptx_f32(0);
        for (e = 0; e < 8; e++) {
            up = ptx_abs(k, x[e]);
            most = e ? ptx_max(k, most, up) : up;
        }
        most = ptxk_warp_reduce(k, PTX_MAX, most, 1, 32);
        size = ptx_shr(k, ptx_as(most, PTX_U32), ptx_u32(23)); /* the exponent */
        size = ptx_max(k, size, ptx_u32(27));
        size = ptx_min(k, size, ptx_u32(254));
        up = ptx_sub(k, ptx_u32(254 + goal), size);
        up = ptx_shl(k, up, ptx_u32(23));
        up = ptx_as(up, PTX_F32);
        for (e = 0; e < 8; e++) {
            x[e] = ptx_mul(k, x[e], up);
            if (f->scale < 0) x[e] = ptx_neg(k, x[e]);
        }
        to = ptxk__tile_at(k, &t, kept, w->lane);
        to = ptx_ptr_add(k, stage, to, 1);
        p = ptx_setp(k, PTX_LT, w->lane, ptx_u32(t.chunks));
        for (i = 0; i < f->terms; i++) {
            ptxk_narrow(k, f->type, 8, x, words);
            ptx_guard(k, p);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(to, (int64_t)(i * term_bytes)), words);
            if (i + 1 == f->terms) break;
            ptxk_widen(k, f->type, words, y);
            for (e = 0; e < 8; e++) { /* of an infinite or NaN element nothing is left over */
                y[e] = ptx_op2(k, PTX_SUB, PTX_RN, x[e], y[e]);
                here = ptx_abs(k, x[e]);
                here = ptx_setp(k, PTX_LE, here, ptx_f32(FLT_MAX));
                x[e] = ptx_selp(k, y[e], ptx_f32(0), here);
            }
        }
        size = ptx_sub(k, size, ptx_u32(goal));
        size = ptx_shl(k, size, ptx_u32(23));
        size =
            ptx_mul(k, ptx_as(size, PTX_F32), ptx_f32(f->scale < 0 ? -(double)f->scale : (double)f->scale));
        size = ptx_max(k, size, ptx_f32(1e-37)); /* not 0, not infinite: see ptxk__flash_weights */
        size = ptx_min(k, size, ptx_f32(FLT_MAX));
        p = ptx_setp(k, PTX_EQ, w->lane, ptx_u32(0));
        here = ptx_ptr_add(k, factors, kept, 4);
        ptx_guard(k, p);
        ptx_st(k, PTX_F32, ptx_at(here, 0), size);
    }
    ptx_cp_async_wait(k, PTXK__RING - 1); /* none of those under way is for here */
    ptx_bar_sync(k, ptx_imm(0));
    for (n = 0; n < f->nt; n++) {
        here = ptx_and(k, w->lane, ptx_u32(3));
        here = ptx_ptr_add(k, factors, here, 8);
        ptx_ld_vec(k, PTX_F32, 2, ptx_at(here, (int64_t)(n * 32)), s->factor[n]);
        for (j = 0; j < 2; j++) s->inverse[n][j] = ptx_op1(k, PTX_RCP, PTX_APPROX | PTX_FTZ, s->factor[n][j]);
        row = ptx_and(k, w->lane, ptx_u32(7));
        row = ptx_add(k, row, ptx_u32(8 * n));
        for (j = 0; j < steps; j += 2) {
            uint32_t pair = j + 1 < steps ? 2 : 1;
            ptx_val regs[4];
            column = ptx_shr(k, w->lane, ptx_u32(3)); /* chunks 2 j ... 2 j + 3 for 8 lanes each */
            if (pair == 1) column = ptx_and(k, column, ptx_u32(1));
            column = ptx_add(k, column, ptx_u32(2 * j));
            to = ptxk__tile_at(k, &t, row, column);
            to = ptx_ptr_add(k, stage, to, 1);
            for (i = 0; i < f->terms; i++) {
                here = ptx_ptr_add(k, to, ptx_u32(i * term_bytes), 1);
                ptx_ldmatrix(k, 2 * pair, here, regs);
                for (e = 0; e < 2 * pair; e++) s->q[i][n][j + e / 2][e % 2] = regs[e];
            }
        }
    }
    ptx_bar_sync(k, ptx_imm(0)); /* then the ring may have its place */
}

/* Where the warp's step at `position` begins, in K and in V, for this lane's first chunk; and whether all of
   its rows are in the caches and seen by all columns. */
static void ptxk__flash_locate(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                               const ptxk__flash_mma_state *s, ptx_val position) {
    ptx_val at, page, next, p, q, wide;
    uint32_t which;
    at = ptx_add(k, position, ptx_s32(ptxk__flash_keys(f)));
    p = ptx_setp(k, PTX_LE, at, s->stop);
    if (f->window) {
        q = ptx_setp(k, PTX_GE, position, w->safe_lo);
        p = ptx_and(k, p, q);
    }
    if (!f->page_size) {
        for (which = 0; which < 2; which++) {
            at = ptx_get(k, s->from[which]);
            at = ptx_add(k, at, s->tile_bytes);
            ptx_set(k, s->from[which], at);
        }
    } else {
        page = ptx_get(k, s->page); /* read one step ago; that of the next step is read now */
        q = ptx_setp(k, PTX_LT, page, w->pool_pages);
        p = ptx_and(k, p, q);
        next = ptx_add(k, position, ptx_s32(ptxk__flash_keys(f) * PTXK__WARPS));
        q = ptx_setp(k, PTX_LT, next, w->end);
        next = ptx_shr(k, ptx_as(next, PTX_U32), ptx_u32(f->page_shift));
        at = ptx_ptr_add(k, w->table, next, 4);
        next = ptx_ld_if(k, q, PTX_U32, ptx_at(at, 0), ptx_u32(0));
        ptx_set(k, s->page, next);
        wide = ptx_cvt(k, PTX_U64, w->kv_head);
        wide = ptx_mad_wide(k, page, ptx_u32(f->kv_heads), wide);
        at = ptx_and(k, ptx_as(position, PTX_U32), ptx_u32(f->page_size - 1));
        at = ptx_add(k, at, s->row);
        at = ptx_cvt(k, PTX_U64, at);
        wide = ptx_mad(k, wide, ptx_u64(f->page_size), at);
        wide = ptx_mul(k, wide, ptx_u64(f->row_bytes));
        at = ptx_cvt(k, PTX_U64, s->chunk);
        wide = ptx_mad(k, at, ptx_u64(16), wide);
        for (which = 0; which < 2; which++) {
            at = ptx_ptr_add(k, w->base[which], wide, 1);
            ptx_set(k, s->from[which], at);
        }
    }
    at = ptx_selp(k, ptx_u32(1), ptx_u32(0), p);
    ptx_set(k, s->whole, at);
}

/* An item's rows one by one: zeros for those that are not there, those to append from their source. */
static void ptxk__flash_copy_edge(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  const ptxk__flash_mma_state *s, int which, uint32_t slab, ptx_val position,
                                  ptx_val slot) {
    uint32_t real = ptxk__flash_slab(f, slab);
    ptx_val i, row, at, to, from, there, p, active, is_real, fresh, words[4], chunk;
    i = ptx_for(k, ptx_u32(0), ptx_u32(s->passes), ptx_u32(1));
    row = ptx_mad(k, i, ptx_u32(s->rows), s->row);
    at = ptx_add(k, position, ptx_as(row, PTX_S32));
    there = ptx_setp(k, PTX_GE, at, w->first);
    p = ptx_setp(k, PTX_LT, at, w->end);
    there = ptx_and(k, there, p);
    from = ptxk__flash_key(k, f, w, at, &there);
    from = ptx_ptr_add(k, w->base[which], from, 1);
    chunk = ptx_add(k, s->chunk, ptx_u32(slab * f->chunks));
    from = ptx_ptr_add(k, from, chunk, 16);
    to = ptxk__tile_at(k, &s->tile, row, s->chunk);
    to = ptx_ptr_add(k, slot, to, 1);
    active = ptx_setp(k, PTX_LT, s->chunk, ptx_u32(f->chunks));
    is_real = ptx_setp(k, PTX_LT, s->chunk, ptx_u32(real));
    if (f->fresh_type) {
        fresh = ptxk__flash_is_fresh(k, f, w, at);
        fresh = ptx_and(k, fresh, is_real);
        ptx_if(k, fresh);
        ptxk__flash_fresh(k, f, w, which, at, chunk, words);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(to, 0), words);
        p = there;
        if (f->tiles > 1) p = ptx_and(k, p, w->owner);
        ptx_guard(k, p);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(from, 0), words);
        ptx_else(k);
    }
    p = ptx_and(k, there, is_real);
    p = ptx_op1(k, PTX_NOT, 0, p);
    ptx_guard(k, active);
    ptx_op4(k, PTX_CP_ASYNC_CG_IGNORE, 0, to, from, ptx_imm(16), p);
    if (f->fresh_type) ptx_end(k);
    ptx_end(k);
}

/* Sends for an item: slab `slab` of K or V of the step at `position`. A group in any case. */
static void ptxk__flash_copy(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                             const ptxk__flash_mma_state *s, int which, uint32_t slab, ptx_val position,
                             ptx_val slot) {
    uint32_t real = ptxk__flash_slab(f, slab), turns = s->rows < 8 ? 8 / s->rows : 1, i;
    ptx_val p, from, to[4], at, some, none;
    p = ptx_get(k, s->whole);
    p = ptx_setp(k, PTX_NE, p, ptx_u32(0));
    ptx_if(k, p);
    from = ptx_get(k, s->from[which]);
    some = none = p;
    if (real % 2) none = ptx_setp(k, PTX_GE, s->chunk, ptx_u32(real)); /* fills up the last 16 elements */
    if (real + real % 2 < s->lanes) some = ptx_setp(k, PTX_LT, s->chunk, ptx_u32(real + real % 2));
    for (i = 0; i < s->passes; i++) {
        if (i < turns) to[i] = ptx_ptr_add(k, slot, s->to[i], 1);
        at = from;
        if (f->page_size) {
            at = ptx_ptr(at, PTX_GLOBAL);
        } else if (i) {
            at = ptx_mad_wide(k, s->pass_bytes, ptx_u32(i), ptx_as(from, PTX_U64));
        }
        at = ptx_off(ptx_ptr(at, PTX_GLOBAL),
                     (int64_t)(slab * f->chunks * 16 + (f->page_size ? i * s->rows * f->row_bytes : 0)));
        if (real + real % 2 < s->lanes) ptx_guard(k, some);
        if (real % 2)
            ptx_op4(k, PTX_CP_ASYNC_CG_IGNORE, 0,
                    ptx_off(to[i % turns], (int64_t)(i / turns * turns * s->rows * s->tile.pitch)), at,
                    ptx_imm(16), none);
        else
            ptx_cp_async_16(k, ptx_off(to[i % turns], (int64_t)(i / turns * turns * s->rows * s->tile.pitch)),
                            at);
    }
    ptx_else(k);
    p = ptx_setp(k, PTX_LT, position, w->end);
    ptx_if(k, p);
    ptxk__flash_copy_edge(k, f, w, s, which, slab, position, slot);
    ptx_end(k);
    ptx_end(k);
    ptx_cp_async_commit(k);
}

/* Scores of a step, kt 16-key tiles by nt 8-column tiles, from slab `slab` of K, added to those before. Two
   sums: q's first term, and the others, which are small. */
static void ptxk__flash_scores(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                               uint32_t slab, ptx_val slot, ptx_val score[4][4][2][4]) {
    uint32_t j, mt, n, i;
    ptx_val at[4], keys[4];
    for (j = 0; j < 4 && 2 * j <= s->tile.mask; j++) at[j] = ptx_ptr_add(k, slot, s->k_at[j], 1);
    for (j = 0; j < ptxk__flash_steps(f, slab); j++) {
        for (mt = 0; mt < f->kt; mt++) {
            ptx_val row = ptx_off(at[ptxk__tile_step(&s->tile, j)],
                                  ptxk__tile_bytes(&s->tile, j) + (int64_t)(mt * 16 * s->tile.pitch));
            ptx_ldmatrix(k, 4, row, keys);
            for (n = 0; n < f->nt; n++)
                for (i = 0; i < f->terms; i++)
                    ptx_mma(k, PTX_MMA_M16N8K16_F32, f->type, f->type, score[mt][n][i > 0], keys,
                            s->q[i][n][slab * f->chunks / 2 + j], score[mt][n][i > 0]);
        }
    }
}

/* A score of which q's first term gave `first`: where that is infinite, the other terms made it NaN. */
static ptx_val ptxk__flash_infinite(ptx_kernel *k, const ptxk__flash *f, ptx_val first, ptx_val x) {
    ptx_val p = ptx_abs(k, first), q;
    p = ptx_setp(k, PTX_EQ, p, ptx_f32(INFINITY));
    q = ptx_setp(k, PTX_ISNAN, x, x);
    p = ptx_and(k, p, q);
    if (f->cap > 0) first = ptx_copysign(k, first, ptx_f32((double)f->cap));
    return ptx_selp(k, first, x, p);
}

/* From scores to what is to be 2's exponent in the weights. Mostly: score * factor - reference. Where a score
   is so much above the reference that weights would leave their range, and where one is NaN or +inf, all of
   the warp look for the maximum, and the sums are scaled to it. */
static void ptxk__flash_weights(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                                ptx_val score[4][4][2][4], ptx_var x[4][4][4]) {
    uint32_t mt, n, j, h, e, capped = f->cap > 0;
    ptx_val p = ptx_f32(0), q, v[4][4][4], most, old, shrink, limit;
    int first = 1;
    for (n = 0; n < f->nt; n++) {
        for (j = 0; j < 2; j++) {
            for (mt = 0; mt < f->kt; mt++) {
                for (h = 0; h < 2; h++) {
                    v[mt][n][2 * h + j] = ptx_get(k, x[mt][n][2 * h + j]);
                    most = mt || h ? ptx_op2(k, PTX_MAX, PTX_NAN, most, v[mt][n][2 * h + j]) : v[mt][n][j];
                }
            }
            limit = ptx_get(k, s->limit[n][j]);
            q = ptx_setp(k, PTX_LE, most, limit);
            p = first ? q : ptx_and(k, p, q);
            first = 0;
        }
    }
    p = ptx_op2(k, PTX_VOTE_ALL, 0, p, ptx_u32(0xffffffffu));
    p = ptx_warp_uniform(k, p);
    ptx_if(k, p);
    for (n = 0; n < f->nt; n++) {
        for (e = 0; e < 4; e++) {
            old = ptx_get(k, s->soft[n][e % 2].most);
            old = ptx_neg(k, old);
            for (mt = 0; mt < f->kt; mt++) {
                most =
                    capped ? ptx_add(k, v[mt][n][e], old) : ptx_fma(k, v[mt][n][e], s->factor[n][e % 2], old);
                ptx_set(k, x[mt][n][e], most);
            }
        }
    }
    ptx_else(k);
    for (n = 0; n < f->nt; n++) {
        for (j = 0; j < 2; j++) {
            most = ptx_f32(-FLT_MAX);
            for (mt = 0; mt < f->kt; mt++) {
                for (e = j; e < 4; e += 2) {
                    if (f->terms > 1)
                        v[mt][n][e] = ptxk__flash_infinite(k, f, score[mt][n][0][e], v[mt][n][e]);
                    if (!capped) v[mt][n][e] = ptx_mul(k, v[mt][n][e], s->factor[n][j]);
                    v[mt][n][e] = ptxk__softmax_finite(k, v[mt][n][e]);
                    most = ptx_max(k, v[mt][n][e], most);
                }
            }
            most = ptxk_warp_reduce(k, PTX_MAX, most, 4, 32); /* the lanes of a column */
            most = ptx_add(k, most, ptx_f32(-(double)f->bias));
            old = ptx_get(k, s->soft[n][j].most);
            most = ptx_max(k, most, old);
            shrink = ptxk__softmax_raise(k, &s->soft[n][j], most);
            limit = ptx_add(k, most, ptx_f32((double)f->bias + (double)f->slack));
            if (!capped) limit = ptx_op2(k, PTX_MUL, PTX_RN, limit, s->inverse[n][j]);
            limit = ptx_min(k, limit, ptx_f32(FLT_MAX));
            ptx_set(k, s->limit[n][j], limit);
            for (mt = 0; mt < f->kt; mt++)
                for (e = j; e < 4; e += 2) {
                    old = ptx_op2(k, PTX_SUB, PTX_RN, v[mt][n][e], most);
                    ptx_set(k, x[mt][n][e], old);
                }
            for (h = 0; h < f->slabs * f->chunks / 2; h++)
                for (e = j; e < 4; e += 2) {
                    old = ptx_get(k, s->sum[h][n][e]);
                    old = ptx_mul(k, old, shrink);
                    ptx_set(k, s->sum[h][n][e], old);
                }
        }
    }
    ptx_end(k);
}

/* Keys that a column does not see have scores of -inf. */
static void ptxk__flash_mask(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, ptx_val position,
                             ptx_var x[4][4][4]) {
    uint32_t mt, n, e;
    ptx_val column, row, sees, at, score;
    column = ptx_and(k, w->lane, ptx_u32(3));
    column = ptx_mad(k, column, ptx_u32(2), w->first_column);
    row = ptx_shr(k, w->lane, ptx_u32(2));
    row = ptx_add(k, ptx_as(row, PTX_S32), position);
    for (mt = 0; mt < f->kt; mt++) {
        for (n = 0; n < f->nt; n++) {
            for (e = 0; e < 4; e++) {
                ptx_val mine = ptx_add(k, column, ptx_u32(8 * n + e % 2));
                at = ptx_add(k, row, ptx_s32(16 * mt + e / 2 * 8));
                sees = ptxk__flash_sees(k, f, w, mine, at);
                score = ptx_get(k, x[mt][n][e]);
                score = ptx_selp(k, score, ptx_f32(-INFINITY), sees);
                ptx_set(k, x[mt][n][e], score);
            }
        }
    }
}

/* Weights as the second operand of a product, keys by columns: from the accumulators' layout by a
   transposition of each 8 by 8, as a sum of two numbers of the cache's type. */
static void ptxk__flash_pack(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                             ptx_var x[4][4][4], ptx_val weight[4][4][2][2]) {
    ptx_type packed = f->type == PTX_F16 ? PTX_F16X2 : PTX_BF16X2;
    uint32_t mt, n, e, h;
    ptx_val p[4], total, word, back[2], rest[2];
    for (n = 0; n < f->nt; n++) {
        for (mt = 0; mt < f->kt; mt++) {
            for (e = 0; e < 4; e++) {
                p[e] = ptx_get(k, x[mt][n][e]);
                p[e] = ptx_op1(k, PTX_EX2, PTX_FTZ, p[e]);
                total = ptx_get(k, s->soft[n][e % 2].total);
                total = ptx_add(k, total, p[e]);
                ptx_set(k, s->soft[n][e % 2].total, total);
            }
            for (h = 0; h < 2; h++) {
                word = ptx_cvt_pair(k, packed, p[2 * h + 1], p[2 * h]);
                word = ptx_as(word, PTX_B32);
                weight[mt][n][0][h] = ptx_op1(k, PTX_MOVMATRIX, 0, word);
                ptxk__widen_word(k, f->type, word, back);
                for (e = 0; e < 2; e++) rest[e] = ptx_op2(k, PTX_SUB, PTX_RN, p[2 * h + e], back[e]);
                word = ptx_cvt_pair(k, packed, rest[1], rest[0]);
                word = ptx_as(word, PTX_B32);
                weight[mt][n][1][h] = ptx_op1(k, PTX_MOVMATRIX, 0, word);
            }
        }
    }
}

/* Slab `slab` of V, transposed as it is read, times the weights. */
static void ptxk__flash_sums(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                             uint32_t slab, ptx_val slot, ptx_val weight[4][4][2][2]) {
    uint32_t j, mt, n, i, e;
    ptx_val at[4], values[4], sum[4];
    for (j = 0; j < 4 && 2 * j <= s->tile.mask; j++) at[j] = ptx_ptr_add(k, slot, s->v_at[j], 1);
    for (j = 0; j < ptxk__flash_steps(f, slab); j++) {
        for (mt = 0; mt < f->kt; mt++) {
            ptx_val row = ptx_off(at[ptxk__tile_step(&s->tile, j)],
                                  ptxk__tile_bytes(&s->tile, j) + (int64_t)(mt * 16 * s->tile.pitch));
            ptx_ldmatrix_trans(k, 4, row, values);
            for (n = 0; n < f->nt; n++) {
                const ptx_var *to = s->sum[slab * f->chunks / 2 + j][n];
                for (e = 0; e < 4; e++) sum[e] = ptx_get(k, to[e]);
                for (i = 0; i < 2; i++)
                    ptx_mma(k, PTX_MMA_M16N8K16_F32, f->type, f->type, sum, values, weight[mt][n][i], sum);
                for (e = 0; e < 4; e++) ptx_set(k, to[e], sum[e]);
            }
        }
    }
}

/* The warp's sums and states to shared memory, for ptxk__flash_join. */
static void ptxk__flash_mma_stage(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  const ptxk__flash_mma_state *s) {
    uint32_t n, j, h, e, dims = (f->d + 15) / 16 * 16;
    ptx_val poison, total[4][2], pair[2], here, column, row, p, x;
    poison = ptx_get(k, w->poison);
    poison = ptxk_warp_reduce(k, PTX_ADD, poison, 1, 32);
    for (n = 0; n < f->nt; n++) {
        for (j = 0; j < 2; j++) {
            total[n][j] = ptx_get(k, s->soft[n][j].total);
            total[n][j] = ptx_add(k, total[n][j], poison);
            total[n][j] = ptxk_warp_reduce(k, PTX_ADD, total[n][j], 4, 32);
        }
    }
    ptx_cp_async_wait_all(k);    /* what is left is empty groups */
    ptx_bar_sync(k, ptx_imm(0)); /* nobody reads his ring any more */
    column = ptx_and(k, w->lane, ptx_u32(3));
    row = ptx_shr(k, w->lane, ptx_u32(2));
    here = ptx_ptr_add(k, w->shared, w->warp, f->tile * f->pitch * 4);
    here = ptx_ptr_add(k, here, column, 2 * f->pitch * 4);
    here = ptx_ptr_add(k, here, row, 4);
    for (h = 0; h < dims / 16; h++)
        for (n = 0; n < f->nt; n++)
            for (e = 0; e < 4; e++) {
                x = ptx_get(k, s->sum[h][n][e]);
                ptx_st(k, PTX_F32,
                       ptx_at(here, (int64_t)(((8 * n + e % 2) * f->pitch + 16 * h + e / 2 * 8) * 4)), x);
            }
    p = ptx_setp(k, PTX_EQ, row, ptx_u32(0));
    ptx_if(k, p);
    {
        here = ptx_ptr_add(k, w->shared, w->warp, f->tile * 8);
        here = ptx_ptr_add(k, here, column, 16);
        for (n = 0; n < f->nt; n++)
            for (j = 0; j < 2; j++) {
                pair[0] = ptx_get(k, s->soft[n][j].most);
                pair[1] = total[n][j];
                ptx_st_vec(k, PTX_F32, 2, ptx_at(here, (int64_t)(ptxk__flash_state_at(f) + (8 * n + j) * 8)),
                           pair);
            }
    }
    ptx_end(k);
}

/* The slot of the ring behind one. */
static ptx_val ptxk__flash_next_slot(ptx_kernel *k, const ptxk__flash_mma_state *s, ptx_val slot) {
    ptx_val next = ptx_ptr_add(k, slot, ptx_u32(s->item * PTXK__WARPS), 1), end, p;
    end = ptx_ptr_add(k, s->ring, ptx_u32(PTXK__RING * s->item * PTXK__WARPS), 1);
    p = ptx_setp(k, PTX_EQ, next, end);
    return ptx_selp(k, s->ring, next, p);
}

/* A step: 16 kt keys. The items of its K come, then those of its V; as each is read, the one two behind is
   sent for, into the place of the one before. */
static void ptxk__flash_mma_step(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                 const ptxk__flash_mma_state *s, ptx_val position, ptx_val zero,
                                 ptx_var reads, ptx_var writes) {
    uint32_t i, n, mt, e, items = 2 * f->slabs;
    ptx_val slot, to, next, whole, p, score[4][4][2][4], weight[4][4][2][2];
    ptx_var x[4][4][4];
    slot = ptx_get(k, reads);
    to = ptx_get(k, writes);
    slot = ptx_ptr(slot, PTX_SHARED);
    to = ptx_ptr(to, PTX_SHARED);
    next = ptx_add(k, position, ptx_s32(ptxk__flash_keys(f) * PTXK__WARPS));
    whole = ptx_get(k, s->whole);
    for (mt = 0; mt < f->kt; mt++)
        for (n = 0; n < f->nt; n++)
            for (e = 0; e < 4; e++) score[mt][n][0][e] = score[mt][n][1][e] = zero;
    for (i = 0; i < items; i++) {
        uint32_t ahead = i + PTXK__RING - 1;
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes have read the item before */
        if (ahead == items) ptxk__flash_locate(k, f, w, s, next);
        ptxk__flash_copy(k, f, w, s, ahead % items >= f->slabs, ahead % f->slabs,
                         ahead < items ? position : next, to);
        ptx_cp_async_wait(k, PTXK__RING - 1);
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes' copies of this item are there */
        if (i < f->slabs) ptxk__flash_scores(k, f, s, i, slot, score);
        if (i + 1 == f->slabs) {
            for (mt = 0; mt < f->kt; mt++)
                for (n = 0; n < f->nt; n++)
                    for (e = 0; e < 4; e++) {
                        ptx_val v = score[mt][n][0][e];
                        if (f->terms > 1) v = ptx_add(k, v, score[mt][n][1][e]);
                        if (f->cap > 0) {
                            v = ptx_op2(k, PTX_MUL, PTX_RN, v, s->factor[n][e % 2]);
                            v = ptxk__flash_capped(k, f, v);
                        }
                        x[mt][n][e] = ptx_var_new(k, v);
                    }
            p = ptx_setp(k, PTX_EQ, whole, ptx_u32(0));
            ptx_if(k, p);
            ptxk__flash_mask(k, f, w, position, x);
            ptx_end(k);
            ptxk__flash_weights(k, f, s, score, x);
            ptxk__flash_pack(k, f, s, x, weight);
        }
        if (i >= f->slabs) ptxk__flash_sums(k, f, s, i - f->slabs, slot, weight);
        to = slot;
        slot = ptxk__flash_next_slot(k, s, slot);
    }
    ptx_set(k, reads, slot);
    ptx_set(k, writes, to);
}

static void ptxk__flash_tensor(ptx_module *m, const ptxk__flash *f, const char *name) {
    ptx_kernel *k = ptx_entry(m, name);
    uint32_t bytes, n, j, h, e, i, slots, q_bytes;
    ptxk__flash_work w;
    ptxk__flash_mma_state s;
    ptx_val here, p, position, zero, at, row;
    ptx_var next, reads, writes;
    memset(&w, 0, sizeof w);
    memset(&s, 0, sizeof s);
    s.tile = ptxk__tile_form(f->chunks);
    for (s.lanes = 2; s.lanes < f->chunks; s.lanes *= 2) {
    }
    s.rows = 32 / s.lanes;
    s.passes = ptxk__flash_keys(f) / s.rows;
    s.item = ptxk__flash_keys(f) * s.tile.pitch;
    slots = s.item * PTXK__WARPS;
    q_bytes = (f->terms * ((f->d + 15) / 16 * 32) + 4) * f->tile;
    bytes = slots * (PTXK__RING - 1) + (q_bytes > slots ? q_bytes : slots);
    if (bytes < ptxk__flash_join_bytes(f)) bytes = ptxk__flash_join_bytes(f);
    ptxk__flash_begin(k, f, &w, bytes);

    ptx_comment(k, "the first items, on their way while q is read");
    here = ptx_mul(k, w.warp, ptx_u32(s.item));
    s.ring = ptx_ptr_add(k, w.shared, here, 1);
    ptxk__tile_lane(k, &s.tile, w.lane, 1, s.k_at);
    ptxk__tile_lane(k, &s.tile, w.lane, 0, s.v_at);
    s.chunk = ptx_and(k, w.lane, ptx_u32(s.lanes - 1));
    s.row = ptx_div(k, w.lane, ptx_u32(s.lanes));
    for (i = 0; i * s.rows < 8 && i < 4; i++) {
        row = ptx_add(k, s.row, ptx_u32(i * s.rows));
        s.to[i] = ptxk__tile_at(k, &s.tile, row, s.chunk);
    }
    here = ptx_mul(k, w.warp, ptx_u32(ptxk__flash_keys(f)));
    position = ptx_add(k, ptx_as(here, PTX_S32), w.begin);
    next = ptx_var_new(k, position);
    s.stop = ptx_min(k, w.safe_hi, w.end);
    s.whole = ptx_var_new(k, ptx_u32(0));
    if (f->page_size) {
        p = ptx_setp(k, PTX_LT, position, w.end);
        here = ptx_shr(k, ptx_as(position, PTX_U32), ptx_u32(f->page_shift));
        here = ptx_ptr_add(k, w.table, here, 4);
        here = ptx_ld_if(k, p, PTX_U32, ptx_at(here, 0), ptx_u32(0));
        s.page = ptx_var_new(k, here);
        for (e = 0; e < 2; e++) s.from[e] = ptx_var_new(k, w.base[e]);
    } else {
        s.tile_bytes = ptx_mul(k, w.row_bytes, ptx_u64(ptxk__flash_keys(f) * PTXK__WARPS));
        here = ptx_mul(k, w.row_bytes, ptx_u64(s.rows));
        s.pass_bytes = ptx_cvt(k, PTX_U32, here);
        row = ptx_add(k, ptx_as(position, PTX_U32), s.row);
        at = ptx_cvt(k, PTX_U64, row);
        at = ptx_mul(k, at, w.row_bytes);
        here = ptx_mul_wide(k, s.chunk, ptx_u32(16));
        at = ptx_add(k, at, here);
        at = ptx_sub(k, at, s.tile_bytes); /* which locating the first step adds */
        for (e = 0; e < 2; e++) {
            here = ptx_ptr_add(k, w.base[e], at, 1);
            s.from[e] = ptx_var_new(k, here);
        }
    }
    ptxk__flash_locate(k, f, &w, &s, position);
    reads = ptx_var_new(k, s.ring);
    here = s.ring;
    for (i = 0; i < PTXK__RING - 1; i++) {
        ptxk__flash_copy(k, f, &w, &s, i >= f->slabs, i % f->slabs, position, here);
        here = ptx_ptr_add(k, here, ptx_u32(slots), 1);
    }
    writes = ptx_var_new(k, here);
    ptx_comment(k, "q, staged where the last item of the ring will be");
    here = ptx_ptr_add(k, w.shared, ptx_u32(slots * (PTXK__RING - 1)), 1);
    ptxk__flash_mma_q(k, f, &w, &s, here);
    for (n = 0; n < f->nt; n++) {
        for (j = 0; j < 2; j++) {
            s.soft[n][j] = ptxk__softmax_new(k);
            s.limit[n][j] = ptx_var_new(k, ptx_f32(-FLT_MAX));
        }
        for (h = 0; h < f->slabs * f->chunks / 2; h++)
            for (e = 0; e < 4; e++) s.sum[h][n][e] = ptx_var_new(k, ptx_f32(0));
    }
    zero = ptx_get(k, ptx_var_new(k, ptx_f32(0)));

    ptx_comment(k, "the keys, step by step");
    ptx_loop(k);
    {
        position = ptx_get(k, next);
        p = ptx_setp(k, PTX_LT, position, w.end);
        ptx_while(k, p);
        ptxk__flash_mma_step(k, f, &w, &s, position, zero, reads, writes);
        position = ptx_add(k, position, ptx_s32(ptxk__flash_keys(f) * PTXK__WARPS));
        ptx_set(k, next, position);
    }
    ptx_end(k);
    ptx_comment(k, "the warps through shared memory, then the blocks");
    ptxk__flash_mma_stage(k, f, &w, &s);
    ptxk__flash_join(k, f, &w);
}

PTXGEN_API ptx_code ptxk_flash_decode_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__flash f;
    ptxk_message why;
    char name[160], more[4][16] = {"", "", "", ""};
    const ptxk_flash_decode_desc *d = (const ptxk_flash_decode_desc *)desc;
    uint32_t bits;
    ptx_code code = ptxk__flash_form(d, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    f.mma = f.type != PTX_F32 && (ptx_module_target(m) & 0xfffu) >= 80 && !(f.flags & PTXK_FLASH_SCALAR);
    f.pitch = (f.d + 15) / 16 * 16 + 4; /* so that columns 2, 4 and 6 of an mma are 8 banks apart */
    if (f.mma) f.tile = 8 * f.nt;
    if (d->scale < 0 || d->scale > 0) {
        memcpy(&bits, &d->scale, sizeof bits);
        (void)snprintf(more[0], sizeof more[0], "_s%08x", bits);
    }
    if (d->soft_cap > 0) {
        memcpy(&bits, &d->soft_cap, sizeof bits);
        (void)snprintf(more[1], sizeof more[1], "_c%08x", bits);
    }
    if (f.window) (void)snprintf(more[2], sizeof more[2], "_w%u", f.window);
    if (f.page_size) (void)snprintf(more[3], sizeof more[3], "_p%u", f.page_size);
    (void)snprintf(name, sizeof name, "flash_decode_h%u_kv%u_d%u_%s_q%u%s_%s_a%s%s%s%s%s_f%u", f.heads,
                   f.kv_heads, f.d, ptx_type_name(f.type), f.queries, ptx_type_name(f.q_type),
                   ptx_type_name(f.out_type), f.fresh_type ? ptx_type_name(f.fresh_type) : "0", more[0],
                   more[1], more[2], more[3], f.flags);
    if (f.mma)
        ptxk__flash_tensor(m, &f, name);
    else
        ptxk__flash_scalar(m, &f, name);
    return ptx_get_error(m)->code;
}

/* -- kv_scatter -- */

/* array[index], or `otherwise` where the array's address is 0. */
static ptx_val ptxk__optional_u32(ptx_kernel *k, ptx_val args, size_t offset, ptx_val index,
                                  ptx_val otherwise)
{
    ptx_val array = ptxk__arg_ptr(k, args, offset);
    ptx_val there = ptx_setp(k, PTX_NE, array, ptx_u64(0));
    ptx_val at = ptx_ptr_add(k, array, index, 4);
    return ptx_ld_if(k, there, PTX_U32, ptx_at(at, 0), otherwise);
}

/* The byte offset, u64, of row (head, position) in the cache of a sequence, and its base; `there` becomes
   false where the position has no page. */
static ptx_val ptxk__scatter_row(ptx_kernel *k, const ptxk__scatter *f, ptx_val args, ptx_val caches,
                                 ptx_val sequence, ptx_val head, ptx_val position, ptx_val *there)
{
    ptx_val row, at, page, last, fits, stride;
    if (!f->page_size) {
        at = ptx_ptr_add(k, caches, sequence, 8);
        at = ptx_ld_if(k, *there, PTX_U64, ptx_at(at, 0), ptx_u64(0));
        at = ptx_ptr(at, PTX_GLOBAL);
        stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offsetof(ptxk_kv_scatter_args, head_stride)));
        row = ptx_cvt(k, PTX_U64, head);
        row = ptx_mul(k, row, stride);
        stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offsetof(ptxk_kv_scatter_args, row_stride)));
        position = ptx_cvt(k, PTX_U64, position);
        row = ptx_mad(k, position, stride, row);
        return ptx_ptr_add(k, at, row, f->cache_bytes);
    }
    page = ptx_div(k, position, ptx_u32(f->page_size));
    last = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, max_pages));
    fits = ptx_setp(k, PTX_LT, page, last);
    *there = ptx_and(k, *there, fits);
    page = ptx_cvt(k, PTX_U64, page);
    page = ptx_mad_wide(k, sequence, last, page);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, block_table));
    at = ptx_ptr_add(k, at, page, 4);
    page = ptx_ld_if(k, *there, PTX_U32, ptx_at(at, 0), ptx_u32(0xffffffffu));
    last = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, pool_pages));
    fits = ptx_setp(k, PTX_LT, page, last);
    *there = ptx_and(k, *there, fits);
    head = ptx_cvt(k, PTX_U64, head);
    row = ptx_mad_wide(k, page, ptx_u32(f->kv_heads), head);
    position = ptx_rem(k, position, ptx_u32(f->page_size));
    position = ptx_cvt(k, PTX_U64, position);
    row = ptx_mad(k, row, ptx_u64(f->page_size), position);
    return ptx_ptr_add(k, caches, row, f->d * f->cache_bytes);
}

PTXGEN_API ptx_code ptxk_kv_scatter_emit_(ptx_module *m, const char *site, const void *desc)
{
    ptxk__scatter f;
    ptxk_message why;
    char name[96];
    ptx_kernel *k;
    ptx_val args, i, vec, row, head, token, which, source, caches, other, there, sequence, position, p, x[8];
    ptx_code code = ptxk__scatter_form((const ptxk_kv_scatter_desc *)desc, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    (void)snprintf(name, sizeof name, "kv_scatter_kv%u_d%u_%s_%s_p%u", f.kv_heads, f.d,
                   ptx_type_name(f.source), ptx_type_name(f.cache), f.page_size);
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, PTXK__SCATTER_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_kv_scatter_args), 8);

    ptx_comment(k, "one thread for each vector of a row: token, head, vector");
    i = ptx_ctaid_x(k);
    other = ptx_tid_x(k);
    i = ptx_mad(k, i, ptx_u32(PTXK__SCATTER_THREADS), other);
    vec = ptx_rem(k, i, ptx_u32(f.vecs));
    row = ptx_div(k, i, ptx_u32(f.vecs));
    head = ptx_rem(k, row, ptx_u32(f.kv_heads));
    token = ptx_div(k, row, ptx_u32(f.kv_heads));
    other = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, tokens));
    p = ptx_setp(k, PTX_GE, token, other);
    ptx_guard(k, p);
    ptx_ret(k);

    ptx_comment(k, "grid.y: K or V");
    which = ptx_ctaid_y(k);
    p = ptx_setp(k, PTX_EQ, which, ptx_u32(0));
    source = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k));
    other = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, v));
    source = ptx_selp(k, source, other, p);
    caches = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k_caches));
    other = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, v_caches));
    caches = ptx_selp(k, caches, other, p);

    ptx_comment(k, "whose, and where");
    other = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, sequence_step));
    sequence = ptx_mul(k, token, other);
    sequence = ptxk__optional_u32(k, args, offsetof(ptxk_kv_scatter_args, sequences), token, sequence);
    other = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, position_step));
    position = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, position));
    position = ptx_mad(k, token, other, position);
    position = ptxk__optional_u32(k, args, offsetof(ptxk_kv_scatter_args, positions), token, position);
    other = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, batch));
    there = ptx_setp(k, PTX_LT, sequence, other);
    other = ptxk__arg_u32(k, args, offsetof(ptxk_kv_scatter_args, max_seq));
    p = ptx_setp(k, PTX_LT, position, other);
    there = ptx_and(k, there, p);
    caches = ptxk__scatter_row(k, &f, args, caches, sequence, head, position, &there);

    ptx_if(k, there);
    {
        row = ptx_ptr_add(k, source, i, f.n * f.source_bytes);
        caches = ptx_ptr_add(k, caches, vec, f.n * f.cache_bytes);
        if (f.source != f.cache) {
            ptxk_load_f32(k, f.source, f.n, ptx_with(ptx_at(row, 0), PTX_NC), x);
            ptxk_store_f32(k, f.cache, f.n, ptx_at(caches, 0), x);
        } else if (f.n * f.source_bytes < 4) {
            x[0] = ptx_ld(k, PTX_B16, ptx_with(ptx_at(row, 0), PTX_NC));
            ptx_st(k, PTX_B16, ptx_at(caches, 0), x[0]);
        } else { /* as they are, NaN payloads and all */
            ptxk_load_f32(k, PTX_F32, f.n * f.source_bytes / 4, ptx_with(ptx_at(row, 0), PTX_NC), x);
            ptxk_store_f32(k, PTX_F32, f.n * f.source_bytes / 4, ptx_at(caches, 0), x);
        }
    }
    ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* -- gemv: Q4_K --
   Lane i of 8 has bytes 16 i ... 16 i + 15 of the 128: with c = i / 2 and h = i % 2 their low nibbles are 16
   weights of group 2 c, their high ones 16 of group 2 c + 1. Scales and minimums of those two groups lie side
   by side in the 12 bytes; where c >= 2 they are in two parts. Masks and shifts of the lane make one rule of
   both cases. */
static void ptxk__q4_k_lane(ptx_kernel *k, ptxk__lane *lane)
{
    ptx_val pair, odd, upper, shift, p;
    pair = ptx_shr(k, lane->at, ptx_u32(1));
    odd = ptx_and(k, pair, ptx_u32(1));
    upper = ptx_setp(k, PTX_GE, lane->at, ptx_u32(4));
    shift = ptx_shl(k, odd, ptx_u32(4));
    lane->c[1] = shift; /* of the last 4 bytes, for scales */
    p = ptx_selp(k, ptx_u32(2), ptx_u32(0), upper);
    lane->c[0] = ptx_add(k, shift, p); /* of the first 4 bytes, for scales */
    odd = ptx_and(k, lane->at, ptx_u32(1));
    odd = ptx_shl(k, odd, ptx_u32(3));
    lane->c[2] = ptx_add(k, lane->c[0], odd); /* of the middle 4 bytes, for a minimum */
    p = ptx_add(k, shift, odd);
    lane->c[3] = ptx_add(k, p, ptx_u32(4)); /* of the last 4 bytes, for a minimum */
    lane->c[4] = ptx_selp(k, ptx_b32(0x3030), ptx_b32(0x3f3f), upper);
    lane->c[5] = ptx_selp(k, ptx_b32(0x0f0f), ptx_b32(0), upper);
    lane->c[6] = ptx_and(k, lane->c[4], ptx_b32(0xff));
    lane->c[7] = ptx_and(k, lane->c[5], ptx_b32(0xff));
}

static void ptxk__q4_k_load(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *inside, ptx_val at,
                            ptx_val *raw)
{
    ptx_val own = ptx_ptr_add(k, at, lane->at, 16);
    ptxk_load16(k, inside, ptx_at(at, 0), raw);
    ptxk_load16(k, inside, ptx_at(own, 16), raw + 4);
}

/* (a >> shift & mask) | (b >> other & rest) */
static ptx_val ptxk__two_parts(ptx_kernel *k, ptx_val a, ptx_val shift, ptx_val mask, ptx_val b,
                               ptx_val other, ptx_val rest)
{
    ptx_val high, low;
    high = ptx_shr(k, ptx_as(a, PTX_U32), shift);
    high = ptx_and(k, high, ptx_as(mask, PTX_U32));
    low = ptx_shr(k, ptx_as(b, PTX_U32), other);
    return ptx_lop3(k, ptx_as(low, PTX_B32), rest, ptx_as(high, PTX_B32),
                    ptx_imm(0xea)); /* low & rest | high */
}

static void ptxk__q4_k_read(ptx_kernel *k, const ptxk__lane *lane, const ptx_val *raw, ptxk__share *share)
{
    ptx_val half[2], low, minimum;
    uint32_t i;
    for (i = 0; i < 4; i++) {
        share->half[0][i] = ptx_and(k, raw[4 + i], ptx_b32(0x0f0f0f0f));
        share->half[1][i] = ptx_and(k, raw[4 + i], ptx_b32(0xf0f0f0f0u)); /* 16 times too large: no shift */
    }
    ptx_unpack(k, PTX_F16, 2, raw[0], half);
    share->factor = ptx_cvt(k, PTX_F32, half[0]);
    minimum = ptx_cvt(k, PTX_F32, half[1]);
    low = ptxk__two_parts(k, raw[1], lane->c[0], lane->c[4], raw[3], lane->c[1], lane->c[5]);
    share->scale[0] = ptx_and(k, ptx_as(low, PTX_S32), ptx_s32(0xff));
    low = ptx_shr(k, ptx_as(low, PTX_U32), ptx_u32(8));
    share->scale[1] = ptx_as(low, PTX_S32);
    low = ptxk__two_parts(k, raw[2], lane->c[2], lane->c[6], raw[3], lane->c[3], lane->c[7]);
    low = ptx_cvt(k, PTX_F32, ptx_as(low, PTX_S32));
    share->minimum = ptx_mul(k, minimum, low);
}

/* -- gemv: x to integers -- */

/* The parts of the workspace; k: blocks of 256 in a row. */
static ptx_val ptxk__gemv_sums_at(ptx_kernel *k, ptx_val args, ptx_val blocks, ptx_val column, ptx_val *count)
{
    ptx_val at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace)), row;
    row = ptx_add(k, blocks, ptx_u32(PTXK__GEMV_X / 256 - 1));
    *count = ptx_div(k, row, ptx_u32(PTXK__GEMV_X / 256));
    row = ptx_mul(k, *count, column);
    at = ptx_ptr_add(k, at, row, 4);
    return ptx_ptr_add(k, at, ptx_u32(PTXK__GEMV_HEAD), 1);
}

static ptx_val ptxk__gemv_x_at(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, ptx_val blocks)
{
    ptx_val at, count, end;
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace));
    count = ptx_add(k, blocks, ptx_u32(PTXK__GEMV_X / 256 - 1));
    count = ptx_div(k, count, ptx_u32(PTXK__GEMV_X / 256));
    end = ptx_mad(k, count, ptx_u32(4 * f->columns), ptx_u32(PTXK__GEMV_HEAD + 255));
    end = ptx_and(k, end, ptx_u32(0xffffff00u));
    return ptx_ptr_add(k, at, end, 1);
}

static ptx_val ptxk__gemv_parts_at(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, ptx_val blocks)
{
    ptx_val at, bytes;
    at = ptxk__gemv_x_at(k, f, args, blocks);
    bytes = ptx_mul_wide(k, blocks, ptx_u32(f->record * f->columns));
    bytes = ptx_add(k, bytes, ptx_u64(255));
    bytes = ptx_and(k, bytes, ptx_u64(~(uint64_t)255));
    return ptx_ptr_add(k, at, bytes, 1);
}

static ptx_val ptxk__gemv_blocks(ptx_kernel *k, ptx_val args)
{
    ptx_val n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    return ptx_shr(k, n, ptx_u32(8));
}

/* Byte `which` of four words, as one word. */
static ptx_val ptxk__gather_bytes(ptx_kernel *k, const ptx_val *x, uint32_t which)
{
    uint32_t selector = which | (which + 4) << 4;
    ptx_val low, high;
    low = ptx_prmt(k, ptx_as(x[0], PTX_B32), ptx_as(x[1], PTX_B32), ptx_b32(selector));
    high = ptx_prmt(k, ptx_as(x[2], PTX_B32), ptx_as(x[3], PTX_B32), ptx_b32(selector));
    return ptx_prmt(k, low, high, ptx_b32(0x5410));
}

/* A warp takes 256 values, a lane 8 of them; 4 lanes have a group of 32. */
static void ptxk__gemv_quantise(ptx_module *m, const ptxk__gemv *f, const char *name)
{
    ptx_kernel *k = ptx_entry(m, name);
    float top = f->planes == 2 ? 32639.0f : 127.0f; /* 127 * 256 + 127 */
    ptx_val args, scratch, tid, lane, column, block, blocks, inside, here, x[8], most, bad, inverse, d, sum;
    ptx_val whole[8], rounded[8], words[2], record, p, at, squares, count, factor, other;
    uint32_t e;
    ptx_launch_bounds(k, PTXK__GEMV_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemv_args), 8);
    scratch = ptx_shared(k, "scratch", PTX_F32, PTXK__GEMV_WARPS, 16);
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    block = ptx_ctaid_x(k);
    other = ptx_shr(k, tid, ptx_u32(5));
    block = ptx_mad(k, block, ptx_u32(PTXK__GEMV_WARPS), other);
    column = ptx_ctaid_y(k);
    blocks = ptxk__gemv_blocks(k, args);
    inside = ptx_setp(k, PTX_LT, block, blocks);

    here = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, x));
    other = ptx_cvt(k, PTX_U64, block);
    at = ptx_mad_wide(k, column, blocks, other);
    here = ptx_ptr_add(k, here, at, 1024);
    here = ptx_ptr_add(k, here, lane, 32);
    for (e = 0; e < 8; e += 4)
        ptx_ld_vec_if(k, inside, PTX_F32, 4, ptx_with(ptx_at(here, (int64_t)(4 * e)), PTX_NC), ptx_f32(0),
                      x + e);
    if (f->flags & PTXK_GEMV_NORM) {
        squares = ptx_mul(k, x[0], x[0]);
        squares = ptxk_dot(k, 7, x + 1, x + 1, squares);
        squares = ptxk_block_reduce(k, PTX_ADD, squares, PTXK__GEMV_WARPS, scratch);
        at = ptxk__gemv_sums_at(k, args, blocks, column, &count);
        other = ptx_ctaid_x(k);
        at = ptx_ptr_add(k, at, other, 4);
        p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st(k, PTX_F32, ptx_at(at, 0), squares);
    }
    if (f->flags & PTXK_GEMV_GAMMA) {
        ptx_val gamma[8];
        here = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, gamma));
        here = ptx_ptr_add(k, here, block, 1024);
        here = ptx_ptr_add(k, here, lane, 32);
        for (e = 0; e < 8; e += 4)
            ptx_ld_vec_if(k, inside, PTX_F32, 4, ptx_with(ptx_at(here, (int64_t)(4 * e)), PTX_NC), ptx_f32(0),
                          gamma + e);
        for (e = 0; e < 8; e++) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], gamma[e]);
    }

    ptx_comment(k, "the group's factor; NaN when anything in it is not finite");
    most = ptx_abs(k, x[0]);
    bad = ptx_op2(k, PTX_MUL, PTX_RN, x[0], ptx_f32(0));
    for (e = 1; e < 8; e++) {
        d = ptx_abs(k, x[e]);
        most = ptx_max(k, most, d);
        bad = ptx_fma(k, x[e], ptx_f32(0), bad);
    }
    most = ptxk_warp_reduce(k, PTX_MAX, most, 1, 4);
    bad = ptxk_warp_reduce(k, PTX_ADD, bad, 1, 4);
    inverse = ptx_rcp(k, most);
    inverse = ptx_op2(k, PTX_MUL, PTX_RN, inverse, ptx_f32(top));
    p = ptx_setp(k, PTX_GE, most, ptx_f32(7.888609052210118e-31f)); /* 2^-100 */
    inverse = ptx_selp(k, inverse, ptx_f32(0), p);
    most = ptx_selp(k, most, ptx_f32(0), p);
    d = ptx_op2(k, PTX_DIV, PTX_RN, most, ptx_f32(top));
    d = ptx_add(k, d, bad);
    for (e = 0; e < 8; e++) {
        other = ptx_op2(k, PTX_MUL, PTX_RN, x[e], inverse);
        whole[e] = ptx_cvt_with(k, PTX_RNI, PTX_S32, other);
        sum = e ? ptx_add(k, sum, whole[e]) : whole[e];
    }
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 4);
    sum = ptx_cvt(k, PTX_F32, sum);
    sum = ptx_op2(k, PTX_MUL, PTX_RN, sum, d);

    ptx_comment(k, "values 64 c + 32 p + 16 h + e go to byte 128 p + 32 c + 16 h + e");
    record = ptxk__gemv_x_at(k, f, args, blocks);
    other = ptx_cvt(k, PTX_U64, block);
    at = ptx_mad_wide(k, column, blocks, other);
    record = ptx_ptr_add(k, record, at, f->record);
    p = ptx_setp(k, PTX_GE, block, blocks);
    ptx_guard(k, p);
    ptx_ret(k);
    other = ptx_and(k, lane, ptx_u32(3));
    at = ptx_shr(k, lane, ptx_u32(3));
    at = ptx_mad(k, at, ptx_u32(4), other);
    count = ptx_bfe(k, lane, ptx_u32(2), ptx_u32(1)); /* p */
    at = ptx_mad(k, count, ptx_u32(16), at);
    here = ptx_ptr_add(k, record, at, 8);
    for (e = 0; e < 8; e++) rounded[e] = f->planes == 2 ? ptx_add(k, whole[e], ptx_s32(128)) : whole[e];
    words[0] = ptxk__gather_bytes(k, rounded, f->planes - 1);
    words[1] = ptxk__gather_bytes(k, rounded + 4, f->planes - 1);
    ptx_st_vec(k, PTX_B32, 2, ptx_at(here, 0), words);
    if (f->planes == 2) {
        words[0] = ptxk__gather_bytes(k, whole, 0);
        words[1] = ptxk__gather_bytes(k, whole + 4, 0);
        ptx_st_vec(k, PTX_B32, 2, ptx_at(here, 256), words);
    }
    p = ptx_setp(k, PTX_NE, other, ptx_u32(0));
    ptx_guard(k, p);
    ptx_ret(k);
    at = ptx_shr(k, lane, ptx_u32(3));
    here = ptx_ptr_add(k, record, at, 16);
    here = ptx_ptr_add(k, here, count, 4);
    p = ptx_setp(k, PTX_NE, count, ptx_u32(0));
    factor = ptx_selp(k, ptx_f32(f->block->second), ptx_f32(1), p);
    d = ptx_op2(k, PTX_MUL, PTX_RN, d, factor);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(256 * f->planes)), d);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(256 * f->planes + 8)), sum);
    ptx_ret(k);
}

/* -- gemv: rows -- */

/* 1 / sqrt(mean of squares + eps) of a column; every lane of the warp gets it. */
static ptx_val ptxk__gemv_rms(ptx_kernel *k, ptx_val args, ptx_val blocks, ptx_val lane, ptx_val column)
{
    ptx_val at, count, i, here, x, sum, n;
    ptx_var total = ptx_var_new(k, ptx_f32(0));
    at = ptxk__gemv_sums_at(k, args, blocks, column, &count);
    i = ptx_for(k, lane, count, ptx_u32(32));
    {
        here = ptx_ptr_add(k, at, i, 4);
        x = ptx_ld(k, PTX_F32, ptx_at(here, 0));
        sum = ptx_get(k, total);
        sum = ptx_add(k, sum, x);
        ptx_set(k, total, sum);
    }
    ptx_end(k);
    sum = ptx_get(k, total);
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 32);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    n = ptx_cvt(k, PTX_F32, n);
    x = ptx_op2(k, PTX_DIV, PTX_RN, sum, n);
    n = ptx_ld(k, PTX_F32, ptx_at(args, (int64_t)offsetof(ptxk_gemv_args, eps)));
    x = ptx_op2(k, PTX_ADD, PTX_RN, x, n);
    x = ptx_sqrt(k, x);
    x = ptxk_rcp_or_zero(k, x);
    return ptx_fma(k, sum, ptx_f32(0), x); /* an infinite sum gives NaN, not 0 */
}

/* y[index] = value (+ residual[index]) */
static void ptxk__gemv_finish(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, ptx_val index, ptx_val value)
{
    uint32_t bytes = f->output == PTX_F16 ? 2 : 4;
    ptx_val at, old;
    if (f->flags & PTXK_GEMV_RESIDUAL) {
        at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, residual));
        at = ptx_ptr_add(k, at, index, bytes);
        ptxk_load_f32(k, f->output, 1, ptx_at(at, 0), &old);
        value = ptx_add(k, value, old);
    }
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, y));
    at = ptx_ptr_add(k, at, index, bytes);
    ptxk_store_f32(k, f->output, 1, ptx_at(at, 0), &value);
}

/* This block's slice of x, all columns: [column][block of 256][record], zeros up to a whole unit. */
static void ptxk__gemv_stage(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, ptx_val blocks, ptx_val first,
                             ptx_val count, ptx_val padded, ptx_val shared)
{
    ptx_val from, to, at, i, tid, have, all, p, words[4];
    uint32_t c;
    tid = ptx_tid_x(k);
    from = ptxk__gemv_x_at(k, f, args, blocks);
    from = ptx_ptr_add(k, from, first, f->record);
    have = ptx_mul(k, count, ptx_u32(f->record / 16));
    all = ptx_mul(k, padded, ptx_u32(f->record / 16));
    to = shared;
    for (c = 0; c < f->columns; c++) {
        i = ptx_for(k, tid, all, ptx_u32(PTXK__GEMV_THREADS));
        {
            p = ptx_setp(k, PTX_LT, i, have);
            at = ptx_ptr_add(k, from, i, 16);
            ptxk_load16(k, &p, ptx_at(at, 0), words);
            at = ptx_ptr_add(k, to, i, 16);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(at, 0), words);
        }
        ptx_end(k);
        if (c + 1 == f->columns) break;
        from = ptx_ptr_add(k, from, blocks, f->record);
        to = ptx_ptr_add(k, to, padded, f->record);
    }
}

typedef struct ptxk__gemv_state {
    ptxk__lane lane;
    ptx_val odd;              /* predicate: the lane counts the minimum of the second group */
    ptx_val padded;           /* records of a column in shared memory */
    ptx_val next_row[4];      /* bytes from row r - 1 to row r; 0 where W has no row r */
    ptx_var weights, x;       /* this lane's block of row 0; this lane's record of column 0 */
    ptx_val ring;             /* this warp's part of shared memory, at this lane's 16 bytes */
    ptx_val staged;           /* ... at this lane's block */
    ptx_var from[5];          /* what this lane copies of each step: chunk lane + 32 i of its bytes */
    ptx_var slot;             /* offset in the ring of what is read in this step */
    ptx_val some;             /* predicate: this lane copies in the last, partial round */
    ptx_var sum[8][4];
} ptxk__gemv_state;

/* One share of x times one share of weights: factor (d P + d' P') - minimum s, added to the sum. */
static void ptxk__gemv_product(ptx_kernel *k, const ptxk__gemv *f, const ptxk__share *w, ptx_val x[2][2][4],
                               const ptx_val *meta, ptx_val group_sum, ptx_var sum)
{
    ptx_val part[2], total, dot, scale;
    uint32_t h, p, i;
    for (h = 0; h < 2; h++) {
        for (p = 0; p < f->planes; p++) {
            dot = p ? ptx_shl(k, part[h], ptx_u32(8)) : ptx_s32(0);
            for (i = 0; i < 4; i++)
                dot = ptx_dp4a(k, ptx_as(w->half[h][i], PTX_U32), ptx_as(x[p][h][i], PTX_S32), dot);
            part[h] = dot;
        }
        if (f->planes == 1) { /* 16 * 240 * 127 * 63 < 2^31 */
            part[h] = ptx_mul(k, part[h], w->scale[h]);
            part[h] = ptx_cvt(k, PTX_F32, part[h]);
        } else {
            part[h] = ptx_cvt(k, PTX_F32, part[h]);
            scale = ptx_cvt(k, PTX_F32, w->scale[h]);
            part[h] = ptx_op2(k, PTX_MUL, PTX_RN, part[h], scale);
        }
    }
    total = ptx_op2(k, PTX_MUL, PTX_RN, part[0], meta[0]);
    total = ptx_fma(k, part[1], meta[1], total);
    dot = ptx_get(k, sum);
    dot = ptx_fma(k, total, w->factor, dot);
    if (f->block->has_minimum) {
        group_sum = ptx_neg(k, group_sum);
        dot = ptx_fma(k, w->minimum, group_sum, dot);
    }
    ptx_set(k, sum, dot);
}

/* The weights come through shared memory, each warp its own: a warp's request is then 512 bytes in a row,
   whatever blocks they belong to, and as many bytes are on their way as there are stages. cp.async from
   sm_80; before, lanes load their own blocks. */
static int ptxk__gemv_async(ptx_kernel *k)
{
    return (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80;
}

static uint32_t ptxk__gemv_rounds(const ptxk__gemv *f)
{
    return ptxk__ceil_div(f->step, 512);
}

/* The copies of a step into the ring at `slot`; only where p holds, but they make a group in any case. */
static void ptxk__gemv_fetch(ptx_kernel *k, const ptxk__gemv *f, const ptxk__gemv_state *s, ptx_val slot,
                             ptx_val p)
{
    ptx_val to = ptx_ptr_add(k, s->ring, slot, 1), from, go = p;
    uint32_t i;
    for (i = 0; i < ptxk__gemv_rounds(f); i++) {
        from = ptx_get(k, s->from[i]);
        from = ptx_ptr(from, PTX_GLOBAL);
        if (f->step - 512 * i < 512) go = ptx_and(k, p, s->some);
        if (i) to = ptx_ptr_add(k, to, ptx_u32(512), 1);
        ptx_guard(k, go);
        ptx_cp_async_16(k, to, from);
        ptxk__add_to(k, s->from[i], PTXK__GEMV_UNIT * f->block->bytes);
    }
    ptx_cp_async_commit(k);
}

/* Before a tile's steps: where this lane copies from, and the first steps on their way. */
static void ptxk__gemv_fill(ptx_kernel *k, const ptxk__gemv *f, ptxk__gemv_state *s, ptx_val start,
                            ptx_val lane, ptx_val steps)
{
    uint32_t chunks = PTXK__GEMV_UNIT * f->block->bytes / 16, i, r;
    ptx_val chunk, at, row, p;
    for (i = 0; i < ptxk__gemv_rounds(f); i++) {
        chunk = ptx_add(k, lane, ptx_u32(32 * i));
        at = start;
        for (r = 1; r < f->rows; r++) {
            p = ptx_setp(k, PTX_GE, chunk, ptx_u32(chunks));
            row = ptx_selp(k, s->next_row[r], ptx_u64(0), p);
            at = ptx_ptr_add(k, at, row, 1);
            row = ptx_sub(k, chunk, ptx_u32(chunks));
            chunk = ptx_selp(k, row, chunk, p);
        }
        at = ptx_ptr_add(k, at, chunk, 16);
        s->from[i] = ptx_var_new(k, at);
    }
    /* the barrier at the end of a tile has seen to it that all have read what the ring held before */
    for (i = 0; i + 1 < f->stages; i++) {
        p = ptx_setp(k, PTX_GT, steps, ptx_u32(i));
        ptxk__gemv_fetch(k, f, s, ptx_u32(i * f->step), p);
    }
    s->slot = ptx_var_new(k, ptx_u32(0));
}

/* A warp's step: 4 blocks of 256 of its rows. inside: NULL, or whether this lane's block exists. steps: NULL,
   or how many steps there are: the weights are in the ring, and those of a later step are sent for. */
static void ptxk__gemv_step(ptx_kernel *k, const ptxk__gemv *f, const ptxk__gemv_state *s,
                            const ptx_val *inside, const ptx_val *steps, ptx_val step)
{
    ptx_val at, here, raw[4][PTXK__RAW], x[2][2][4], meta[4], sum;
    ptxk__share share[4];
    uint32_t r, c, p, h;
    if (steps) {
        ptx_val more, last, next;
        ptx_cp_async_wait(k, f->stages - 2);
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes' bytes are there, and the last step's read */
        here = ptx_get(k, s->slot);
        last =
            ptx_sub(k, here, ptx_u32(f->step)); /* the step before had it, f->stages - 1 later have it next */
        more = ptx_setp(k, PTX_EQ, here, ptx_u32(0));
        last = ptx_selp(k, ptx_u32((f->stages - 1) * f->step), last, more);
        next = ptx_add(k, step, ptx_u32(f->stages - 1));
        more = ptx_setp(k, PTX_LT, next, *steps);
        ptxk__gemv_fetch(k, f, s, last, more);
        at = ptx_ptr_add(k, s->staged, here, 1);
        next = ptx_add(k, here, ptx_u32(f->step));
        more = ptx_setp(k, PTX_EQ, next, ptx_u32(f->stages * f->step));
        next = ptx_selp(k, ptx_u32(0), next, more);
        ptx_set(k, s->slot, next);
        for (r = 0; r < f->rows; r++) {
            here = ptx_ptr_add(k, at, ptx_u32(r * PTXK__GEMV_UNIT * f->block->bytes), 1);
            f->block->load(k, &s->lane, NULL, here, raw[r]);
        }
    } else {
        at = ptx_get(k, s->weights);
        at = ptx_ptr(at, PTX_GLOBAL);
        for (r = 0; r < f->rows; r++) {
            if (r) at = ptx_ptr_add(k, at, s->next_row[r], 1);
            f->block->load(k, &s->lane, inside, at, raw[r]);
        }
        ptxk__add_to(k, s->weights, PTXK__GEMV_UNIT * f->block->bytes);
    }
    for (r = 0; r < f->rows; r++) f->block->read(k, &s->lane, raw[r], &share[r]);
    at = ptx_get(k, s->x);
    at = ptx_ptr(at, PTX_SHARED);
    for (c = 0; c < f->columns; c++) {
        if (c) at = ptx_ptr_add(k, at, s->padded, f->record);
        here = ptx_ptr_add(k, at, s->lane.at, 16);
        for (p = 0; p < f->planes; p++)
            for (h = 0; h < 2; h++) ptxk_load16(k, NULL, ptx_at(here, (int64_t)(256 * p + 128 * h)), x[p][h]);
        here = ptx_shr(k, s->lane.at, ptx_u32(1));
        here = ptx_ptr_add(k, at, here, 16);
        ptx_ld_vec(k, PTX_F32, 4, ptx_at(here, (int64_t)(256 * f->planes)), meta);
        sum = ptx_selp(k, meta[3], meta[2], s->odd);
        for (r = 0; r < f->rows; r++) ptxk__gemv_product(k, f, &share[r], x, meta, sum, s->sum[c][r]);
    }
    at = ptx_get(k, s->x);
    at = ptx_add(k, at, ptx_u32(PTXK__GEMV_UNIT * f->record));
    ptx_set(k, s->x, at);
}

static void ptxk__gemv_rows(ptx_module *m, const ptxk__gemv *f, const char *name)
{
    ptx_kernel *k = ptx_entry(m, name);
    ptxk__gemv_state s;
    ptx_val args, shared, tid, lane, warp, blocks, slice, slices, per, first, count, one, p, n, tiles, tile,
        row;
    ptx_val at, here, group, full, i, limit, parts, rms, value, index, last, x_at, whole;
    ptx_val norms, out, column, top;
    ptx_var turn;
    uint32_t c, r, tile_rows = PTXK__GEMV_WARPS * f->rows;
    int async = ptxk__gemv_async(k);
    ptx_launch_bounds(k, PTXK__GEMV_THREADS, 2);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemv_args), 8);
    norms = ptx_shared(k, "norms", PTX_F32, 8, 16);
    out = ptx_shared(k, "out", PTX_F32, 2 * tile_rows * f->columns, 16);
    shared = ptx_shared_dynamic(k);
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    warp = ptx_shr(k, tid, ptx_u32(5));
    blocks = ptxk__gemv_blocks(k, args);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, n));

    ptx_comment(k, "this block's slice of K, in blocks of 256");
    slice = ptx_ctaid_y(k);
    slices = ptx_sreg(k, PTX_NCTAID_Y);
    one = ptx_setp(k, PTX_EQ, slices, ptx_u32(1));
    per = ptx_add(k, blocks, ptx_u32(PTXK__GEMV_UNIT - 1));
    per = ptx_div(k, per, ptx_u32(PTXK__GEMV_UNIT));
    per = ptxk_div_up(k, per, slices);
    per = ptx_mul(k, per, ptx_u32(PTXK__GEMV_UNIT));
    first = ptx_mul(k, slice, per);
    count = ptx_sub(k, blocks, first);
    count = ptx_min(k, count, per);
    s.padded = ptx_add(k, count, ptx_u32(PTXK__GEMV_UNIT - 1));
    s.padded = ptx_and(k, s.padded, ptx_u32(~(PTXK__GEMV_UNIT - 1)));
    x_at = ptx_ptr_add(k, shared, ptx_u32(f->ring), 1);
    ptxk__gemv_stage(k, f, args, blocks, first, count, s.padded, x_at);
    if (f->flags & PTXK_GEMV_NORM) { /* warp c has column c */
        p = ptx_setp(k, PTX_LT, warp, ptx_u32(f->columns));
        p = ptx_and(k, one, p);
        ptx_if(k, p);
        rms = ptxk__gemv_rms(k, args, blocks, lane, warp);
        here = ptx_ptr_add(k, norms, warp, 4);
        p = ptx_setp(k, PTX_EQ, lane, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st(k, PTX_F32, ptx_at(here, 0), rms);
        ptx_end(k);
    }
    ptx_comment(k, "the sum of slices needs their number");
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace));
    here = ptx_ctaid_x(k);
    here = ptx_or(k, here, slice);
    here = ptx_or(k, here, tid);
    p = ptx_setp(k, PTX_EQ, here, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_at(at, 0), slices);
    parts = ptxk__gemv_parts_at(k, f, args, blocks);
    ptx_bar_sync(k, ptx_imm(0));

    s.lane.at = ptx_and(k, lane, ptx_u32(7));
    group = ptx_shr(k, lane, ptx_u32(3));
    f->block->lane(k, &s.lane);
    p = ptx_and(k, lane, ptx_u32(1));
    s.odd = ptx_setp(k, PTX_NE, p, ptx_u32(0));
    full = ptx_div(k, count, ptx_u32(PTXK__GEMV_UNIT));
    whole = ptx_mul(k, full, ptx_u32(PTXK__GEMV_UNIT));
    p = ptx_rem(k, count, ptx_u32(PTXK__GEMV_UNIT));
    last = ptx_setp(k, PTX_NE, p, ptx_u32(0));
    p = ptx_setp(k, PTX_LT, group, p);
    s.next_row[0] = ptx_mul_wide(k, blocks, ptx_u32(f->block->bytes));
    for (r = 1; r < f->rows; r++) {
        here = ptx_setp(k, PTX_GT, n, ptx_u32(r));
        s.next_row[r] = ptx_selp(k, s.next_row[0], ptx_u64(0), here);
    }
    here = ptx_mul(k, warp, ptx_u32(f->stages * f->step));
    here = ptx_ptr_add(k, shared, here, 1);
    s.ring = ptx_ptr_add(k, here, lane, 16);
    s.staged = ptx_ptr_add(k, here, group, f->block->bytes);
    s.some = ptx_setp(k, PTX_LT, lane, ptx_u32(f->step % 512 / 16));
    tiles = ptxk_div_up(k, n, ptx_u32(PTXK__GEMV_WARPS * f->rows));
    turn = ptx_var_new(k, ptx_u32(0));
    tile = ptx_ctaid_x(k);
    here = ptx_sreg(k, PTX_NCTAID_X);
    tile = ptx_for(k, tile, tiles, here);
    {
        ptx_val start, end, inside;
        row = ptx_mad(k, tile, ptx_u32(PTXK__GEMV_WARPS), warp);
        row = ptx_mul(k, row, ptx_u32(f->rows));
        ptx_comment(k, "a warp's last rows: those that do not exist are computed from the ones before");
        limit = ptx_max(k, n, ptx_u32(f->rows));
        limit = ptx_sub(k, limit, ptx_u32(f->rows));
        start = ptx_min(k, row, limit);
        at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, weights));
        here = ptx_add(k, first, group);
        end = ptx_cvt(k, PTX_U64, start);
        end = ptx_mul(k, end, s.next_row[0]);
        at = ptx_ptr_add(k, at, end, 1);
        if (async) {
            end = ptx_ptr_add(k, at, first, f->block->bytes);
            ptxk__gemv_fill(k, f, &s, end, lane, full);
            here = ptx_add(k, here, whole);
        }
        at = ptx_ptr_add(k, at, here, f->block->bytes);
        s.weights = ptx_var_new(k, at);
        here = ptx_ptr_add(k, x_at, group, f->record);
        s.x = ptx_var_new(k, here);
        for (c = 0; c < f->columns; c++)
            for (r = 0; r < f->rows; r++) s.sum[c][r] = ptx_var_new(k, ptx_f32(0));
        i = ptx_for(k, ptx_u32(0), full, ptx_u32(1));
        ptxk__gemv_step(k, f, &s, NULL, async ? &full : NULL, i);
        ptx_end(k);
        if (async) ptx_cp_async_wait_all(k); /* what is left is empty groups */
        ptx_if(k, last);
        inside = p;
        ptxk__gemv_step(k, f, &s, &inside, NULL, i);
        ptx_end(k);

        ptx_comment(k,
                    "the tile's results through shared memory: whole sectors, in one store for each column");
        here = ptx_add(k, start, lane);
        inside = ptx_setp(k, PTX_LT, lane, ptx_u32(f->rows));
        end = ptx_setp(k, PTX_LT, here, n);
        inside = ptx_and(k, inside, end);
        end = ptx_setp(k, PTX_GE, here, row);
        inside = ptx_and(k, inside, end);
        top = ptx_mul(k, tile, ptx_u32(tile_rows));
        here = ptx_sub(k, here, top);
        end = ptx_get(k, turn);
        at = ptx_ptr_add(k, out, end, 1);
        here = ptx_ptr_add(k, at, here, 4);
        for (c = 0; c < f->columns; c++) {
            for (r = 0; r < f->rows; r++) {
                ptx_val x = ptx_get(k, s.sum[c][r]);
                x = ptxk_warp_reduce(k, PTX_ADD, x, 1, 32);
                if (r) {
                    ptx_val mine = ptx_setp(k, PTX_EQ, lane, ptx_u32(r));
                    value = ptx_selp(k, x, value, mine);
                } else {
                    value = x;
                }
            }
            ptx_guard(k, inside);
            ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(4 * tile_rows * c)), value);
        }
        ptx_bar_sync(k, ptx_imm(0)); /* the next tile has the other buffer */
        end = ptx_xor(k, end, ptx_u32(4 * tile_rows * f->columns));
        ptx_set(k, turn, end);
        here = ptx_rem(k, tid, ptx_u32(tile_rows));
        column = ptx_div(k, tid, ptx_u32(tile_rows));
        here = ptx_add(k, here, top);
        inside = ptx_setp(k, PTX_LT, column, ptx_u32(f->columns));
        end = ptx_setp(k, PTX_LT, here, n);
        inside = ptx_and(k, inside, end);
        ptx_if(k, inside);
        {
            at = ptx_ptr_add(k, at, tid, 4);
            value = ptx_ld(k, PTX_F32, ptx_at(at, 0));
            index = ptx_cvt(k, PTX_U64, here);
            index = ptx_mad_wide(k, n, column, index);
            ptx_if(k, one);
            rms = value;
            if (f->flags & PTXK_GEMV_NORM) {
                at = ptx_ptr_add(k, norms, column, 4);
                rms = ptx_ld(k, PTX_F32, ptx_at(at, 0));
                rms = ptx_op2(k, PTX_MUL, PTX_RN, value, rms);
            }
            ptxk__gemv_finish(k, f, args, index, rms);
            ptx_else(k);
            end = ptx_mul_wide(k, n, ptx_u32(f->columns));
            at = ptx_cvt(k, PTX_U64, slice);
            index = ptx_mad(k, at, end, index);
            at = ptx_ptr_add(k, parts, index, 4);
            ptx_st(k, PTX_F32, ptx_at(at, 0), value);
            ptx_end(k);
        }
        ptx_end(k);
    }
    ptx_end(k);
    ptx_ret(k);
}

/* -- gemv: sum of slices -- */

static void ptxk__gemv_sum(ptx_module *m, const ptxk__gemv *f, const char *name)
{
    ptx_kernel *k = ptx_entry(m, name);
    ptx_val args, tid, lane, column, blocks, rms, row, n, p, at, slices, x, index, stride;
    ptx_var total, here;
    ptx_launch_bounds(k, PTXK__GEMV_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemv_args), 8);
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    column = ptx_ctaid_y(k);
    blocks = ptxk__gemv_blocks(k, args);
    rms = ptx_f32(1);
    if (f->flags & PTXK_GEMV_NORM) rms = ptxk__gemv_rms(k, args, blocks, lane, column);
    row = ptx_ctaid_x(k);
    row = ptx_mad(k, row, ptx_u32(PTXK__GEMV_THREADS), tid);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, n));
    p = ptx_setp(k, PTX_GE, row, n);
    ptx_guard(k, p);
    ptx_ret(k);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace));
    slices = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    at = ptxk__gemv_parts_at(k, f, args, blocks);
    index = ptx_cvt(k, PTX_U64, row);
    index = ptx_mad_wide(k, n, column, index);
    at = ptx_ptr_add(k, at, index, 4);
    stride = ptx_mul_wide(k, n, ptx_u32(f->columns));
    here = ptx_var_new(k, at);
    total = ptx_var_new(k, ptx_f32(0));
    (void)ptx_for(k, ptx_u32(0), slices, ptx_u32(1));
    {
        at = ptx_get(k, here);
        at = ptx_ptr(at, PTX_GLOBAL);
        x = ptx_ld(k, PTX_F32, ptx_at(at, 0));
        at = ptx_ptr_add(k, at, stride, 4);
        ptx_set(k, here, at);
        at = ptx_get(k, total);
        x = ptx_add(k, at, x);
        ptx_set(k, total, x);
    }
    ptx_end(k);
    x = ptx_get(k, total);
    if (f->flags & PTXK_GEMV_NORM) x = ptx_op2(k, PTX_MUL, PTX_RN, x, rms);
    ptxk__gemv_finish(k, f, args, index, x);
    ptx_ret(k);
}

PTXGEN_API ptx_code ptxk_gemv_emit_(ptx_module *m, const char *site, const void *desc)
{
    ptxk__gemv f;
    ptxk_message why;
    char name[96], base[64];
    ptx_code code = ptxk__gemv_form((const ptxk_gemv_desc *)desc, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    (void)snprintf(base, sizeof base, "gemv_%s_c%u_%s_%s_f%u", f.block->name, f.columns,
                   f.planes == 2 ? "x16" : "x8", ptx_type_name(f.output), f.flags);
    (void)snprintf(name, sizeof name, "%s_x", base);
    ptxk__gemv_quantise(m, &f, name);
    ptxk__gemv_rows(m, &f, base);
    (void)snprintf(name, sizeof name, "%s_sum", base);
    ptxk__gemv_sum(m, &f, name);
    return ptx_get_error(m)->code;
}

#ifdef __cplusplus
}
#endif

#endif /* PTXGEN_IMPLEMENTATION */

/* ---- [LICENSE] -----------------------------------------------------------------------------------------

   Public domain (unlicense.org) or MIT, at your choice.

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions: The above copyright notice and this permission notice shall be included in all
   copies or substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF
   ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS
   FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
   LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
   ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
