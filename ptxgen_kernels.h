/* ptxgen_kernels.h - v0.2.0 - ready GPU kernels on ptxgen.h. Public domain or MIT, at your choice.

   WHAT   Generators of the kernels that LLM inference needs, and their launches. A description goes in; PTX
          and a plan (entries, grids, workspace size, bytes of traffic) come out.
   DO     In exactly one C or C++ file:   #define PTXGEN_IMPLEMENTATION
                                          #include "ptxgen_kernels.h"     (includes ptxgen.h)
          Everywhere else include it plainly.

   Attention of one new token per sequence over cached keys and values, 32 heads on 8 KV heads:

       ptxk_flash_decode_desc desc = PTX_ZERO;             // a field that stays 0: see ZERO
       desc.heads = 32, desc.kv_heads = 8, desc.head_dim = 128, desc.queries = 1;
       desc.kv_type = PTX_F16, desc.q_type = desc.out_type = PTX_F32;
       ptxk_flash_decode_shape shape = {batch, longest, rows_of_a_cache, sm_count, is_sm_90 ? 8u : 0u};
       ptx_plan plan;
       ptxk_message why;
       if (ptxk_flash_decode_plan(&desc, &shape, &plan, &why)) puts(why.text);
       ptx_module *m = ptx_module_new(NULL);
       ptxk_flash_decode_emit(m, &desc);
       const char *text = ptx_text(m, NULL);
       // load it, allocate plan.workspace_bytes (the first plan.zero_bytes of them 0), fill a
       // ptxk_flash_decode_args, and run plan.launch[0] ... with that struct as the one argument;
       // ptxgen_cuda.h does all that.

   INDEX  (search for the tag; the three headers have the same, and [MATH] is in ptxgen.h)
     [MANUAL]     what holds for all operations
     [CONFIG]     macros that you may define before including
     [ERRORS]     how a description or a shape is refused
     [TYPES]      formats of weights
     [TABLE]      the registry of the operations
     [INTERFACE]  registry, formats, vocabulary; then a part for each operation, such as "==== norm": what it
                  computes, description, shape, arguments, functions
     [SUPPORT]    implementation: checks, plans, the vocabulary of kernels
     [CORE]       implementation: a part for each operation: limits, plan, check, code
     [LICENSE]

   [MANUAL]
   OPERATION  An operation `name` has three structs. ptxk_<name>_desc holds what is compiled into the code:
          head counts, head_dim, types. ptxk_<name>_shape holds what changes the launch: ptxk_<name>_plan()
          makes a plan from both. ptxk_<name>_args is the one parameter, passed by value, of every entry of
          the plan; its addresses are device addresses. Sizes that change with every token, such as lengths,
          are read from device memory, so a captured graph replays with the new ones.

   FUNCTIONS  ptxk_<name>_emit() appends the entries to a module. An entry's name contains all that is
          compiled into it, so one module can hold several. ptxk_<name>_plan() fills in the launches, the
          workspace size and plan.min_bytes, a lower bound of the memory traffic. ptxk_<name>_check() tests
          arguments before a launch: addresses not NULL and aligned, numbers in range, no overlap with
          memory that is written. It does not read device memory.

   ZERO   A field that is 0 means the same in every description. A type or a format: refused, except the type
          of an optional tensor (append_type, second, third), which is then absent, and weight_type of a norm
          with PTXK_NORM_PLAIN, which has no weights. A count or a size (heads, head_dim, queries, columns,
          dims, n ...): refused. scale: the usual factor, 1/sqrt(head_dim) in attention, else 1. window,
          soft_cap, page_size, rope_dims: none. flags: none. kind, precision, pairs, method: the first of
          their list. In a shape, 0 sequences, rows or tokens give a plan without launches.

   EPS    The eps of a norm (norm, gemv, decoder) is an argument and has no default: 0 adds nothing. Models
          state theirs, mostly 1e-5 or 1e-6. With eps 0 a row of zeros stays zeros; a row whose mean square
          is below the smallest normal f32, 1.2e-38, loses precision.

   TARGET  A plan and a module belong to one target; a plan made for one device does not fit another.

   MAPS   Some plans list tensor maps, which the entry takes behind its argument struct: see ptx_tensor_map in
          ptxgen.h. ptxcu_run makes them.
*/
#ifndef PTXGEN_KERNELS_H
#define PTXGEN_KERNELS_H

#include "ptxgen.h"

#if PTX_VERSION_NUMBER != 200
#error "ptxgen_kernels.h and ptxgen.h must have the same version: copy both again"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- [CONFIG] ------------------------------------------------------------------------------------------

   PTXGEN_IMPLEMENTATION, PTXGEN_STATIC, PTXGEN_API: as in ptxgen.h. There are no others. */

/* ---- [ERRORS] ------------------------------------------------------------------------------------------

   An emit function reports through the module: PTX_E_DESC, before it emits anything. A plan function returns
   PTX_E_DESC for a wrong field and PTX_E_ARGUMENT for a NULL; a check function returns PTX_E_DESC for a wrong
   description and PTX_E_ARGUMENT for wrong arguments. The message names the field, its value and the rule.
   Wherever `why` is a parameter it may be NULL. */
typedef struct ptxk_message {
    char text[160]; /* "flash_decode: head_dim is 100, must be a multiple of 8 from 8 to 256" */
} ptxk_message;

/* ---- [TYPES] ------------------------------------------------------------------------------------------- */

/* Formats of weights: GGUF's block formats, and the plain types F32, F16 and BF16. X(format) stands for
   PTXK_<format>, numbered from 1; no ptx_type has one of these numbers.

     format                  weights and bytes of a block          format   weights and bytes of a block
     Q4_0, Q4_1              32: 18, 20                            Q2_K     256: 84
     Q5_0, Q5_1              32: 22, 24                            Q3_K     256: 110
     Q8_0                    32: 34                                Q4_K     256: 144
     IQ4_NL                  32: 18                                Q5_K     256: 176
     MXFP4 (e2m1, e8m0)      32: 17                                Q6_K     256: 210
     NVFP4 (e2m1, e4m3)      64: 36                                IQ4_XS   256: 136 */
#define PTXK_FORMATS(X)                                                                                      \
    X(Q4_K) X(F32) X(F16) X(BF16) X(Q8_0) X(Q4_0) X(Q5_K) X(Q6_K)                                            \
    X(Q4_1) X(Q5_0) X(Q5_1) X(Q2_K) X(Q3_K) X(IQ4_NL) X(IQ4_XS) X(MXFP4) X(NVFP4)
#define PTXK__ENUM(format) PTXK_##format,
enum { PTXK__NO_FORMAT, PTXK_FORMATS(PTXK__ENUM) PTXK__FORMAT_COUNT };
#undef PTXK__ENUM

/* ---- [TABLE] -------------------------------------------------------------------------------------------

   The registry. X(name) stands for ptxk_<name>_desc and ptxk_<name>_emit(). */
#define PTXK_OPERATIONS(X)                                                                                   \
    X(flash_decode) X(kv_scatter) X(flash_prefill) X(gemv) X(gemm) X(matmul)                                 \
    X(norm) X(softmax) X(activation) X(rope) X(embed) X(sample)                                              \
    X(decoder)

/* ---- [INTERFACE] --------------------------------------------------------------------------------------- */

/* -- registry -- */

PTXGEN_API uint32_t ptxk_operation_count(void);
/* NULL past the end. */
PTXGEN_API const ptx_operation *ptxk_operation_get(uint32_t index);
/* NULL for an unknown name. */
PTXGEN_API const ptx_operation *ptxk_operation_find(const char *name);

/* -- formats of weights -- */

/* Bytes of a row of k weights; 0 for an unknown format or a k that is not a whole number of blocks. */
PTXGEN_API uint64_t ptxk_row_bytes(uint32_t format, uint32_t k);
/* "PTXK_Q4_K" ...; "?" for a number that is not a format. */
PTXGEN_API const char *ptxk_format_name(uint32_t format);

/* -- vocabulary: pieces of kernels, for your own kernels too; an error carries the caller's line -- */

/* Butterfly reduction with op (PTX_ADD, PTX_MAX ...) over the lanes whose numbers differ only in the bits
   first, 2 first ... last/2; every lane gets the result. (1, 32): the whole warp; (1, 8): groups of 8
   neighbours; (8, 32): the 4 lanes with the same number modulo 8. x: 32 bits; all 32 lanes take part. */
#define ptxk_warp_reduce(k, op, x, first, last) ptxk_warp_reduce_((k), PTX__AT, (op), (x), (first), (last))
PTXGEN_API ptx_val ptxk_warp_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x, uint32_t first,
                                     uint32_t last);
/* The same over all threads of a block of `warps` whole warps (a power of two, 1 ... 32); every thread gets
   the result. scratch: address of 4 * warps bytes of shared memory. Nothing else may access them between the
   last barrier before this call and the first barrier after it; the call itself contains one barrier. */
#define ptxk_block_reduce(k, op, x, warps, scratch)                                                          \
    ptxk_block_reduce_((k), PTX__AT, (op), (x), (warps), (scratch))
PTXGEN_API ptx_val ptxk_block_reduce_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_val x,
                                      uint32_t warps, ptx_val scratch);
/* Loads 16 bytes in one access as four b32. p: a predicate, zeros where it does not hold; NULL: always. */
#define ptxk_load16(k, p, mem, words) ptxk_load16_((k), PTX__AT, (p), (mem), (words))
PTXGEN_API void ptxk_load16_(ptx_kernel *k, const char *site, const ptx_val *p, ptx_mem mem,
                             ptx_val words[4]);
/* Converts the elements of 16 bytes to f32: 4 of PTX_F32, 8 of PTX_F16 or PTX_BF16. Returns their number; 0
   for another type. */
#define ptxk_widen(k, stored, words, out) ptxk_widen_((k), PTX__AT, (stored), (words), (out))
PTXGEN_API uint32_t ptxk_widen_(ptx_kernel *k, const char *site, ptx_type stored, const ptx_val words[4],
                                ptx_val *out);
/* Converts n f32 (even; at most 4 for PTX_F32, else 8) to `stored`, rounded to nearest even, packed into
   32-bit words. */
#define ptxk_narrow(k, stored, n, x, words) ptxk_narrow_((k), PTX__AT, (stored), (n), (x), (words))
PTXGEN_API void ptxk_narrow_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, const ptx_val *x,
                             ptx_val *words);
/* Loads n elements (1, 2, 4 or 8; at most 16 bytes) as f32 in one access. The store converts back, rounded to
   nearest even. */
#define ptxk_load_f32(k, stored, n, mem, out) ptxk_load_f32_((k), PTX__AT, (stored), (n), (mem), (out))
#define ptxk_store_f32(k, stored, n, mem, x) ptxk_store_f32_((k), PTX__AT, (stored), (n), (mem), (x))
PTXGEN_API void ptxk_load_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                               ptx_val *out);
PTXGEN_API void ptxk_store_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                                const ptx_val *x);
/* sum + a[0] b[0] + ... + a[n-1] b[n-1], with fma, in this order. */
#define ptxk_dot(k, n, a, b, sum) ptxk_dot_((k), PTX__AT, (n), (a), (b), (sum))
PTXGEN_API ptx_val ptxk_dot_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b,
                             ptx_val sum);
/* out[i] += a x[i], with fma. */
#define ptxk_axpy(k, n, a, x, out) ptxk_axpy_((k), PTX__AT, (n), (a), (x), (out))
PTXGEN_API void ptxk_axpy_(ptx_kernel *k, const char *site, uint32_t n, ptx_val a, const ptx_val *x,
                           ptx_val *out);
/* 1 / b, or 0 where b is 0. */
#define ptxk_rcp_or_zero(k, b) ptxk_rcp_or_zero_((k), PTX__AT, (b))
PTXGEN_API ptx_val ptxk_rcp_or_zero_(ptx_kernel *k, const char *site, ptx_val b);
/* ceil(a / b), u32; a + b - 1 must not wrap. */
#define ptxk_div_up(k, a, b) ptxk_div_up_((k), PTX__AT, (a), (b))
PTXGEN_API ptx_val ptxk_div_up_(ptx_kernel *k, const char *site, ptx_val a, ptx_val b);

/* ======== flash_decode ==================================================================================

   Attention of the newest 1 to 8 tokens of each sequence over its cached keys and values:

     out[b,t,h,:] = sum_i softmax_i(s(scale * q[b,t,h,:] . K[b,g,i,:])) V[b,g,i,:]
     g = h * kv_heads / heads, s(x) = soft_cap * tanh(x / soft_cap), or x without a cap

   Query t of n stands at position p = lengths[b] - n + t and sees the keys i <= p; with a window, only those
   with i > p - window. With append_type, the rows k[b,t] and v[b,t] of the new tokens become rows p of the
   caches, converted as by kv_scatter, and take part in the same launch. lse[b,h,t] is the natural logarithm
   of the sum of e^score.

   Split-KV: blocks take chunks of a sequence, and the last block to finish combines them (T. Dao, D. Haziza,
   F. Massa, G. Sizov, "Flash-Decoding for long-context inference", 2023), with the online softmax of M.
   Milakov and N. Gimelshein ("Online normalizer calculation for softmax", 2018). There is one launch. Where
   sequences are short, or fill the device by themselves, each KV head has one block, without a workspace.

     variants            Tensor cores: f16 and bf16 caches from sm_80 on. The heads of a group times the
                         queries are the columns of a product: K and V are read once for up to 8 columns, or
                         up to 16 or 32 where head_dim is small. Scalar f32 arithmetic: f32 caches (the 11
                         bits of tf32 are too few), sm_75, PTXK_FLASH_SCALAR; K and V are read once for 8.
     precision           f32 in both variants. Tensor cores multiply sums of two numbers of the cache's type
                         for q and the weights (three for f32 q on bf16), which doubles the products; memory
                         traffic hides that. Error of a weight: 2^-22 relative, bf16 2^-16. Error of an
                         element of q: f32 on f16, the larger of 2^-22 relative and 2^-51 of the largest
                         element of its row; f16 or bf16 on f16, at most 2^-38 of the largest; else exact.
     lse                 The error is at most the largest error of a score, plus 2^-24 for each key of a
                         chunk, 2^-21 for each chunk, and 2^-22 (|lse| + 2 ln n + 21) for n keys. The error
                         of a score is (2.25 d + 6) 2^-24 sum |scale q K| (scalar: 16 2^-24 of that sum), plus
                         that of q. Measured against double precision on the CPU driver, 100 to 8000 random
                         keys: 2e-6 for |lse| to 12, 2e-5 for |lse| to 200.
     traffic             Beyond plan.min_bytes, each chunk reads q and writes a partial result that is read
                         once: 2 * (workspace_bytes - zero_bytes). This is at most 5 % where sequences and KV
                         heads fill the device. Where they do not, chunks shrink until each multiprocessor
                         has one; 16 chunks of 4096 keys with GQA 8 cost 10 %, in the L2 cache, while memory
                         is read for K, V and q, once. From sm_90 on (shape.cluster) blocks form clusters,
                         which read q once and combine in shared memory. The plan takes the smallest cluster
                         of 2, 4 and 8 blocks (launch[0].cluster[2]) that stays within 5 % (for the 16 chunks
                         4, with 2.6 %), or else the one with the least traffic, and none that gives a
                         multiprocessor over an eighth more keys. PTXK_FLASH_CLUSTER_... overrides the plan. A
                         sequence in one cluster has no workspace.
     large V             f16: no sum overflows f32. f32 and bf16: weights are at most 2^-32, so that 2^31 of
                         the largest values do not overflow. Results are right to 3.4028e38; rounding may
                         make a larger one infinite. The absolute error is some 2^-109 (1.5e-33) for each
                         addition.
     length 0            zeros, lse -inf; that sequence's cache pointers are not read
     length < queries    the queries before the sequence see nothing: zeros, lse -inf
     length > max_seq    NaN in that sequence's whole output; its cache is not accessed; the other sequences
                         are right. The same holds for length > max_pages * page_size.
     page past the pool  where a key would be read: NaN in that sequence, for the KV heads whose blocks find
                         it; nothing is read or appended there
     length > max_len    right, up to max_seq: max_len only sets the number of splits
     score past f32      infinite, with its sign
     score -inf          weight 0; where all scores are -inf the output is zeros
     score +inf          the keys with +inf share the weight equally; lse +inf. With a cap, the cap.
     score NaN           NaN in that head's output
     weight 0            is multiplied like any other: 0 * inf in V is NaN. On tensor cores any infinite V
                         gives NaN, and with several queries or a window also that of a key that only other
                         queries see.

   Element offsets are 64-bit: caches may have more than 2^32 elements. The first plan.zero_bytes of the
   workspace are counters. Each launch leaves them 0; after a failed launch they must be cleared. Launches
   that may run at the same time need separate workspaces. */

/* Flags. The four _CLUSTER_ values are numbers, not bits. */
enum {
    PTXK_FLASH_LSE = 1,        /* writes lse */
    PTXK_FLASH_SCALAR = 2,     /* the scalar variant on every target */
    PTXK_FLASH_CLUSTER_1 = 4,  /* no clusters */
    PTXK_FLASH_CLUSTER_2 = 8,  /* clusters of so many blocks, instead of the plan's choice */
    PTXK_FLASH_CLUSTER_4 = 12,
    PTXK_FLASH_CLUSTER_8 = 16,
    PTXK_FLASH_PAGE_ROWS = 32  /* pages are [page_size, kv_heads, d], not [kv_heads, page_size, d] */
};

/* What is compiled into the code. There is no padding: the bytes can serve as a key. */
typedef struct ptxk_flash_decode_desc {
    uint32_t heads;       /* query heads: a multiple of kv_heads, at most 65536 */
    uint32_t kv_heads;    /* at least 1 */
    uint32_t head_dim;    /* a multiple of 8, 8 ... 256 */
    uint32_t kv_type;     /* of the caches: PTX_F32, PTX_F16 or PTX_BF16 */
    float scale;          /* factor of q . k; 0: 1/sqrt(head_dim) */
    uint32_t q_type;      /* of q: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t out_type;    /* of out: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t queries;     /* new tokens of each sequence, 1 ... 8 */
    uint32_t window;      /* keys that a query sees, its own the last; 0: all */
    float soft_cap;       /* a score s becomes cap * tanh(s / cap); 0: no cap */
    uint32_t page_size;   /* positions of a page, a power of two, 16 ... 65536; 0: caches are not paged */
    uint32_t append_type; /* of the new rows k and v; 0: none are appended */
    uint32_t flags;       /* PTXK_FLASH_LSE | PTXK_FLASH_SCALAR | PTXK_FLASH_CLUSTER_... | _PAGE_ROWS */
} ptxk_flash_decode_desc;

/* What a plan is made for. */
typedef struct ptxk_flash_decode_shape {
    uint32_t batch;    /* sequences, at most 65535 */
    uint32_t max_len;  /* longest length to plan for, sets the number of splits; 0: max_seq */
    uint32_t max_seq;  /* positions of a cache, at most 2^31 - 1 */
    uint32_t sm_count; /* multiprocessors of the device, at least 1 */
    uint32_t cluster;  /* most blocks of a cluster: 8 for a module whose target is sm_90 or later, else 0 */
} ptxk_flash_decode_shape;

/* A length counts the new tokens: n queries stand at positions length - n ... length - 1. */
typedef struct ptxk_flash_decode_args {
    uint64_t q;           /* q_type [batch, queries, heads, head_dim], 16-byte aligned */
    uint64_t k_caches;    /* u64 [batch]: addresses of the caches, 16-byte aligned, kv_type. Paged: the */
    uint64_t v_caches;    /* pool itself, kv_type [pool_pages, kv_heads, page_size, head_dim] or, with */
                          /* PTXK_FLASH_PAGE_ROWS, [pool_pages, page_size, kv_heads, head_dim] */
    uint64_t lengths;     /* u32 [batch], each at most max_seq; 0: every sequence has `length` */
    uint64_t out;         /* out_type [batch, queries, heads, head_dim], 16-byte aligned */
    uint64_t workspace;   /* plan.workspace_bytes, 256-byte aligned; ignored when that is 0 */
    uint64_t k, v;        /* to append: append_type [batch, queries, kv_heads, head_dim], 16-byte aligned */
    uint64_t block_table; /* paged: u32 [batch, max_pages], page numbers in the pool */
    uint64_t lse;         /* f32 [batch, heads, queries]; ignored without PTXK_FLASH_LSE */
    uint64_t head_stride; /* elements from head to head, a multiple of 16 bytes ... */
    uint64_t row_stride;  /* ... and from position to position, at most 2^26; both 0: max_seq * d and d */
    uint32_t max_seq;     /* as in the shape */
    uint32_t max_pages, pool_pages; /* paged: columns of the block table; pages of a pool */
    uint32_t length;      /* of every sequence, where lengths is 0; else 0 */
} ptxk_flash_decode_args;

/* Appends the entry. desc: a ptxk_flash_decode_desc. */
#define ptxk_flash_decode_emit(m, desc) ptxk_flash_decode_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_flash_decode_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: the traffic when every sequence is max_len long. */
PTXGEN_API ptx_code ptxk_flash_decode_plan(const ptxk_flash_decode_desc *desc,
                                           const ptxk_flash_decode_shape *shape, ptx_plan *plan,
                                           ptxk_message *why);
/* Tests arguments: see FUNCTIONS. Strides must be whole vectors of 16 bytes and keep rows apart. */
PTXGEN_API ptx_code ptxk_flash_decode_check(const ptxk_flash_decode_desc *desc,
                                            const ptxk_flash_decode_args *args, ptxk_message *why);
/* Lower bound of the traffic for lengths[batch] in host memory: K, V, q and out once. 0 for a bad desc. */
PTXGEN_API uint64_t ptxk_flash_decode_bytes(const ptxk_flash_decode_desc *desc, const uint32_t *lengths,
                                            uint32_t batch);
/* Keys of a chunk of a sequence of that length, as the kernel computes it. splits: plan.launch[0].grid[2]. 0
   for a bad desc or splits 0. */
PTXGEN_API uint32_t ptxk_flash_decode_chunk(const ptxk_flash_decode_desc *desc, uint32_t length,
                                            uint32_t splits);

/* ======== kv_scatter ====================================================================================

   Writes K and V of new tokens into the caches: row (h, position of token t) of the cache of t's sequence
   becomes k[t,h,:], converted to the cache's type. A cache is [kv_heads, max_seq, d], or any layout with a
   head stride and a row stride, or paged: pages of page_size positions, each [kv_heads, page_size, d] or
   [page_size, kv_heads, d], found through a block table.

     position >= max_seq, page past the block table or the pool, sequence >= batch
                         nothing is written for that token
     conversion          to nearest even; a value past f16's range becomes infinite; NaN stays NaN
     two tokens with the same sequence and position
                         either may win */

/* Flags. */
enum {
    PTXK_SCATTER_PAGE_ROWS = 1, /* pages are [page_size, kv_heads, d], not [kv_heads, page_size, d] */
    PTXK_SCATTER_SINGLE = 2     /* writes K or V only, given as k and k_caches */
};

/* What is compiled into the code. */
typedef struct ptxk_kv_scatter_desc {
    uint32_t kv_heads;    /* 1 ... 65536 */
    uint32_t head_dim;    /* 1 ... 65536 */
    uint32_t source_type; /* of k and v: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t cache_type;  /* of the caches: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t page_size;   /* positions of a page, a power of two, 16 ... 65536; 0: caches are not paged */
    uint32_t flags;       /* PTXK_SCATTER_PAGE_ROWS | PTXK_SCATTER_SINGLE */
} ptxk_kv_scatter_desc;

typedef struct ptxk_kv_scatter_shape {
    uint32_t tokens;
} ptxk_kv_scatter_shape;

/* Addresses are 16-byte aligned, those of u32 and u64 arrays to their element. Token t belongs to sequence
   sequences[t], or t * sequence_step where that array is absent, and has position positions[t], or position +
   t * position_step. Steps 1 and 0: one token for each sequence of a batch; 0 and 1: a prompt. */
typedef struct ptxk_kv_scatter_args {
    uint64_t k, v;               /* source_type [tokens, kv_heads, head_dim]; v is ignored with _SINGLE */
    uint64_t k_caches, v_caches; /* u64 [batch]: addresses of the caches. Paged: the pool itself,
                                    cache_type [pool_pages, kv_heads, page_size, head_dim] or, with
                                    _PAGE_ROWS, [pool_pages, page_size, kv_heads, head_dim] */
    uint64_t sequences;          /* u32 [tokens], or 0 */
    uint64_t positions;          /* u32 [tokens], or 0 */
    uint64_t block_table;        /* paged: u32 [batch, max_pages], page numbers in the pool; else 0 */
    uint64_t head_stride;        /* elements from head to head, a multiple of 16 bytes or of head_dim ... */
    uint64_t row_stride;         /* ... and from position to position; heads first: max_seq * d, d */
    uint32_t sequence_step, position, position_step;
    uint32_t tokens, batch, max_seq; /* as in the shape; sequences; positions of a cache */
    uint32_t max_pages, pool_pages;  /* paged: columns of the block table; pages of a pool */
} ptxk_kv_scatter_args;

/* Appends the entry. desc: a ptxk_kv_scatter_desc. */
#define ptxk_kv_scatter_emit(m, desc) ptxk_kv_scatter_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_kv_scatter_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: every element of k and v read and written once. */
PTXGEN_API ptx_code ptxk_kv_scatter_plan(const ptxk_kv_scatter_desc *desc,
                                         const ptxk_kv_scatter_shape *shape, ptx_plan *plan,
                                         ptxk_message *why);
/* Tests arguments: see FUNCTIONS. Strides must be whole vectors and keep rows apart; positions and offsets
   must not wrap. */
PTXGEN_API ptx_code ptxk_kv_scatter_check(const ptxk_kv_scatter_desc *desc, const ptxk_kv_scatter_args *args,
                                          ptxk_message *why);

/* ======== flash_prefill =================================================================================

   Attention of all queries i of each sequence:

     out[i,h,:] = sum_j softmax_j(scale * q[i,h,:] . k[j,g,:]) v[j,g,:],  g = h * kv_heads / heads

   Queries are aligned with the end of the keys: query i has position p = i + kv_len - q_len and sees the keys
   j < kv_len; with PTXK_PREFILL_CAUSAL only j <= p; with a window w only |p - j| < w. Computed in tiles with
   online softmax (T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
   Partitioning", 2023); tiles that no query of a block sees are not read. Lengths are arguments, the same for
   all sequences, or cumulative lengths in device memory. K and V are tensors with strides, such as a cache
   whose last rows kv_scatter has just written, or paged, as in flash_decode.

     precision           f16 and bf16: exact products, f32 sums; weights are rounded to the type (2^-11, 2^-8;
                         f16 weights below 2^-29 of the largest: 2^-40 of it) before the product with v. f32
                         inputs run on tf32, which has f32's range: as the sum of two tf32 numbers with
                         PTXK_PREFILL_EXACT (error 2^-18 of each product), as one with PTXK_PREFILL_FAST
                         (error 2^-10). Before sm_80, bf16 and f32 run in f32 without tensor cores. FAST
                         rounds values from 3.4020e38 on to infinity. Otherwise sums of f32 and bf16 values
                         keep their range as in flash_decode, with an absolute error of 2^-117 for each key.
     soft cap            a score x becomes cap tanh(x / cap), tanh to 2^-20, before the mask
     no key seen, kv_len 0   zeros; lse is -inf
     score -inf, +inf    as in flash_decode: weight 0; equal shares of the weight, lse inf. A score beyond
                         2^100 before the scale (less where the scale passes 2^26) counts as infinite. With a
                         cap both are the cap's ends.
     score NaN           NaN in that query's output and lse; scores of keys that it does not see do not
                         matter
     weight 0            is multiplied like any other: 0 * inf in v is NaN. This includes up to 127 unseen
                         keys that share a tile with a seen one.
     lse                 log sum_j exp(x_j), natural, of each query and head. The error is at most the largest
                         error of a score, plus 2^-23 for each key, plus 2^-21 (1 + |lse| + the largest |x|).
                         The error of a score is (d + 2) 2^-23 sum |scale q k|; f32: plus that of precision.
     out in f16          a value past f16's range becomes infinite
     cumulative lengths  A sequence with more than q_len queries: nothing is written for it. More than kv_len
                         keys, or fewer than 0: NaN in its output; k and v are not accessed.
     pages               cu_kv only gives the number of keys of each sequence. More than max_pages * page_size
                         keys: NaN in its output. A page past the pool, where a key would be read: NaN in the
                         output of the blocks that find it; nothing is read there. A tile of keys lies in one
                         page: pages of 16 positions cost more barriers than those of 64 or more.

   out may be q itself with the same strides and type. No other memory may overlap what is written.

   For PTX_SM_A(90), f16 and bf16 run on wgmma: 128 queries a block in two warpgroups that compute weights in
   turns, and a third that copies. */

/* Flags, and precision. */
enum {
    PTXK_PREFILL_CAUSAL = 1,
    PTXK_PREFILL_LSE = 2,
    PTXK_PREFILL_PAGE_ROWS = 4 /* pages are [page_size, kv_heads, d], not [kv_heads, page_size, d] */
};
enum { PTXK_PREFILL_EXACT = 0, PTXK_PREFILL_FAST = 1 };

/* What is compiled into the code. */
typedef struct ptxk_flash_prefill_desc {
    uint32_t heads;     /* query heads: a multiple of kv_heads, at most 65536 */
    uint32_t kv_heads;  /* at least 1 */
    uint32_t head_dim;  /* a multiple of 8, 8 ... 256 */
    uint32_t type;      /* of q, k and v: PTX_F16, PTX_BF16 or PTX_F32 */
    uint32_t out_type;  /* of out: PTX_F16, PTX_BF16 or PTX_F32 */
    uint32_t flags;     /* PTXK_PREFILL_CAUSAL | PTXK_PREFILL_LSE | PTXK_PREFILL_PAGE_ROWS */
    uint32_t window;    /* a query sees keys at a distance below this, at most 2^30; 0: at any distance */
    uint32_t precision; /* for f32 tensors: PTXK_PREFILL_EXACT or PTXK_PREFILL_FAST; else 0 */
    float scale;        /* factor of q . k; 0: 1/sqrt(head_dim) */
    float soft_cap;     /* a score x becomes soft_cap tanh(x / soft_cap); 0: no cap */
    uint32_t page_size; /* positions of a page, a power of two, 16 ... 65536; 0: K and V are not paged */
} ptxk_flash_prefill_desc;

typedef struct ptxk_flash_prefill_shape {
    uint32_t batch;    /* sequences */
    uint32_t q_len;    /* queries of each sequence (cumulative lengths: of the longest); at most 2^30 */
    uint32_t kv_len;   /* keys, likewise */
    uint32_t q_total;  /* queries of all sequences, for cumulative lengths; 0: batch * q_len */
    uint32_t kv_total; /* keys of all sequences, likewise */
    ptx_target target; /* of the module; all but PTX_SM_A(90) have the same plan, as has 0 */
} ptxk_flash_prefill_shape;

/* Addresses are 16-byte aligned; those of cu_q, cu_kv and lse 4-byte. Element e of head h of row i of
   sequence b lies at b * batch_stride + i * row_stride + h * head_stride + e; with cumulative
   lengths at (cu[b] + i) * row_stride + h * head_stride + e. Strides are in elements and multiples of 16
   bytes. They describe [batch, seq, heads, d], [batch, heads, seq, d], and q, k and v packed into one row.
   Strides of K and V may be 0. Paged, k and v are pools, type [pool_pages, kv_heads, page_size, head_dim] or,
   with PTXK_PREFILL_PAGE_ROWS, [pool_pages, page_size, kv_heads, head_dim]; their strides are ignored. */
typedef struct ptxk_flash_prefill_args {
    uint64_t q, k, v, out;  /* of heads, kv_heads, kv_heads, heads heads */
    uint64_t lse;           /* f32; ignored without PTXK_PREFILL_LSE */
    uint64_t cu_q, cu_kv;   /* u32 [batch + 1], cumulative lengths: first row of each sequence, and the end;
                               0: every sequence has q_len, kv_len rows, batch_stride apart */
    uint64_t q_batch_stride, q_row_stride, q_head_stride;
    uint64_t k_batch_stride, k_row_stride, k_head_stride;
    uint64_t v_batch_stride, v_row_stride, v_head_stride;
    uint64_t out_batch_stride, out_row_stride, out_head_stride;
    uint64_t lse_batch_stride, lse_head_stride; /* its row stride is 1 */
    uint32_t batch, q_len, kv_len;              /* as in the shape */
    uint32_t reserved;                          /* 0 */
    uint64_t block_table;                       /* paged: u32 [batch, max_pages], page numbers in the pools */
    uint32_t max_pages, pool_pages;             /* paged: columns of the block table; pages of a pool */
} ptxk_flash_prefill_args;

/* Appends the entry. desc: a ptxk_flash_prefill_desc. */
#define ptxk_flash_prefill_emit(m, desc) ptxk_flash_prefill_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_flash_prefill_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: q, k, v and out once. */
PTXGEN_API ptx_code ptxk_flash_prefill_plan(const ptxk_flash_prefill_desc *desc,
                                            const ptxk_flash_prefill_shape *shape, ptx_plan *plan,
                                            ptxk_message *why);
/* Tests arguments: see FUNCTIONS. Strides must be whole vectors, not too large, and keep rows of out apart.
   Cumulative lengths lie in device memory and are not tested. */
PTXGEN_API ptx_code ptxk_flash_prefill_check(const ptxk_flash_prefill_desc *desc,
                                             const ptxk_flash_prefill_args *args, ptxk_message *why);
/* Fills in the strides of packed tensors: [batch, len, heads, d], or, with cumulative lengths, [total, heads,
   d]; lse [batch, heads, q_len], or [heads, q_total]. */
PTXGEN_API void ptxk_flash_prefill_pack(const ptxk_flash_prefill_desc *desc,
                                        const ptxk_flash_prefill_shape *shape, ptxk_flash_prefill_args *args);

/* ======== gemv ==========================================================================================

   A matrix times 1 to 8 column vectors:

     y[c,r] = rms_c * sum_i W[r,i] (gamma[i]) x[c,i] (+ bias[r]) (+ residual[c,r])
     rms_c = 1 / sqrt(mean_i x[c,i]^2 + eps) with PTXK_GEMV_NORM, else 1

   W lies as in a GGUF file, rows one after the other, in a format of PTXK_FORMATS. For
   quantised weights x is quantised too, to groups of 32 integers with a common factor; plain weights are
   multiplied by f32. There are three launches. The first quantises x, once for all rows. The blocks of the
   second take slices of K, with rows handed out in strides. The third adds the slices, where K has several.
   Integer products are exact and f32 sums have a fixed order: the same bits in every run. W is read once.

     several matrices    second and third: up to three matrices over one x in the same launches, such as Q, K
                         and V. Each has its format (all quantised, or all plain), rows, bias and y. A
                         residual needs a single y: one matrix, or SwiGLU.
     PTXK_GEMV_SWIGLU    two matrices, gate and up, and one y = g / (1 + e^-g) * u; the norm's factor and the
                         biases apply to g and u
     k                   a multiple of the format's unit: of its block (two of MXFP4); 8 for plain weights.
                         With several matrices, of the largest unit.
     precision           PTXK_GEMV_EXACT: x in 16 bits (two planes of 8), error at most amax / 65278 for each
                         element of a group; by Cauchy and Schwarz at most sqrt(32) / 65278 = 8.7e-5 of
                         |W| |x| (one large x in each group), typically 1e-5. PTXK_GEMV_FAST: 8 bits, amax /
                         254 for each element. Plain weights: f32 in both.
     x NaN or infinite   quantised: NaN in every output of that column. The same holds where x * gamma, or
                         with NORM the sum of squares, overflows f32. Plain weights: f32 arithmetic.
     block factor NaN, inf   NaN or inf in that row only
     all x 0             0 (+ bias, + residual), with eps 0 too
     |x| below 2^-100    counts as 0 where all of a group of 32 is that small. Plain weights: no such limit.
     alignment           weights: 16 bytes, as in a GGUF file. Blocks and rows of many formats are only
                         2-byte aligned: they are copied to shared memory in chunks of 16 bytes. Nothing
                         outside the tensor is read, nothing needs repacking.

   y may be the residual itself. No other memory that is read may overlap what is written. */

/* Precision of x for quantised weights; flags. */
enum { PTXK_GEMV_EXACT = 0, PTXK_GEMV_FAST = 1 };
enum {
    PTXK_GEMV_NORM = 1,
    PTXK_GEMV_GAMMA = 2,
    PTXK_GEMV_RESIDUAL = 4,
    PTXK_GEMV_BIAS = 8,
    PTXK_GEMV_SWIGLU = 16
};

/* What is compiled into the code. n and k are not: one kernel serves all layers. */
typedef struct ptxk_gemv_desc {
    uint32_t format;      /* of the weights: PTXK_Q4_K ... */
    uint32_t columns;     /* 1 ... 8 */
    uint32_t precision;   /* PTXK_GEMV_EXACT or PTXK_GEMV_FAST */
    uint32_t output_type; /* of y and of the residual: PTX_F32 or PTX_F16 */
    uint32_t flags;       /* PTXK_GEMV_NORM | PTXK_GEMV_GAMMA ... */
    uint32_t second;      /* format of a second matrix, with SwiGLU of up; 0: there is none */
    uint32_t third;       /* format of a third matrix; 0: there is none */
} ptxk_gemv_desc;

typedef struct ptxk_gemv_shape {
    uint32_t n;         /* rows of W, at most 2^31 - 1 */
    uint32_t k;         /* columns of W, whole blocks (plain weights: a multiple of 8), at most 2^26 */
    uint32_t sm_count;  /* multiprocessors of the device, at least 1 */
    uint32_t second_n;  /* rows of the second matrix, at least 1; ignored with SwiGLU, where it is n */
    uint32_t third_n;   /* rows of the third matrix, at least 1 */
} ptxk_gemv_shape;

/* The second or third matrix: as the fields of the same names below. */
typedef struct ptxk_gemv_more {
    uint64_t weights, bias, y;
    uint32_t n, reserved;
} ptxk_gemv_more;

/* Addresses are 16-byte aligned. */
typedef struct ptxk_gemv_args {
    uint64_t weights;   /* rows [n] of ptxk_row_bytes(format, k) bytes, one after the other */
    uint64_t x;         /* f32 [columns, k] */
    uint64_t gamma;     /* f32 [k]; ignored without PTXK_GEMV_GAMMA */
    uint64_t residual;  /* output_type [columns, n]; ignored without PTXK_GEMV_RESIDUAL */
    uint64_t y;         /* output_type [columns, n] */
    uint64_t workspace; /* plan.workspace_bytes, 256-byte aligned */
    uint32_t n, k;      /* as in the shape */
    float eps;          /* of the norm: 0 or more, finite */
    uint32_t reserved;  /* 0 */
    uint64_t bias;      /* f32 [n]; ignored without PTXK_GEMV_BIAS */
    ptxk_gemv_more more[2]; /* second and third matrix; with SwiGLU y is ignored */
} ptxk_gemv_args;

/* Appends the three entries (x, rows, sum). desc: a ptxk_gemv_desc. */
#define ptxk_gemv_emit(m, desc) ptxk_gemv_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_gemv_emit_(ptx_module *m, const char *site, const void *desc);
/* The launches. min_bytes: weights, x, gamma, biases, residual and y once. */
PTXGEN_API ptx_code ptxk_gemv_plan(const ptxk_gemv_desc *desc, const ptxk_gemv_shape *shape, ptx_plan *plan,
                                   ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_gemv_check(const ptxk_gemv_desc *desc, const ptxk_gemv_args *args,
                                    ptxk_message *why);

/* ======== gemm ==========================================================================================

   Matrix products with any number of columns, such as those of a batch or of a prompt:

     y[c,r] = rms_c * sum_i x[c,i] (gamma[i]) W[r,i] (+ bias[r]) (+ residual[c,r]),  c < m, r < n, i < k
     rms_c = 1 / sqrt(mean_i x[c,i]^2 + eps) with PTXK_GEMM_NORM, else 1

   W lies as in a GGUF file, rows one after the other, in a format of PTXK_FORMATS. Tensor
   cores multiply: rows of W are the rows of a product of 16 by 8, rows of x its columns. There are two
   launches. The first scales x and splits each element into 16-bit numbers, in the order of the second. The
   blocks of the second take tiles of rows of W by rows of x, or slices of K of them; the last block of a
   tile to finish adds its slices, in their order: the same bits in every run.

     several matrices    second and third: up to three matrices over one x in the same launches, such as Q, K
                         and V. Each has its format, rows, bias and y. A residual needs a single y: one
                         matrix, or a gated pair.
     PTXK_GEMM_SWIGLU    two matrices of one format, gate and up, and one y = g / (1 + e^-g) * u; the norm's
     PTXK_GEMM_GEGLU     factor and the biases apply to g and u. GEGLU: y = gelu(g) * u, gelu by tanh as in
                         activation.
     columns             rows of x in a tile: 8, 16 ... 256. ptxk_gemm_columns() chooses. Any m runs with any
                         of them: the last tile is padded. Where registers are few for a format or a target,
                         tiles have fewer, down to 8. From 128 on weights are unpacked once for a tile, into
                         shared memory; from sm_80, EXACT sm_80 and sm_90 to sm_110, for Q4_K and Q5_K; 256
                         columns for Q4_K, FAST, sm_90 to sm_110.
     k                   a multiple of the format's unit: of its block (two of MXFP4); 8 for plain weights.
                         With several matrices, of the largest unit.
     precision           Quantised weights are multiplied exactly: as integers times the scale of their
                         sub-block (Q2_K to Q6_K, NVFP4), or as integers (all others), in f16; the factor of
                         a block is applied to f32 sums of 256 (32) products. x is scaled by a power
                         of two for each row, and becomes two f16 numbers (PTXK_GEMM_EXACT: error 2^-22 of an
                         element and 2^-39 of the row's largest) or one (PTXK_GEMM_FAST: 2^-11, 2^-28; Q6_K
                         weights: 2^-11). f16 and bf16 weights are exact; so is x of the same type without
                         gamma. With bf16 weights x becomes three bf16 numbers (2^-24), FAST two (2^-16). f32
                         weights and x become sums of two tf32 numbers, less the product of the smaller ones
                         (2^-19 of a product), FAST one (2^-10). Sums of a unit of 256 values (f16, bf16 64,
                         f32 32): each of at most 64 steps of a tensor core adds 19 2^-24 of the sum of |w x|
                         of the unit at most, where offsets and minima count as products of their own. By
                         the arithmetic of chips, on random data, of the sum of |w x| of an output: below
                         2e-6, Q6_K 5e-6; FAST below 1e-4 from K = 1024 on.
     many columns, FAST  Where weights are unpacked into shared memory (see columns) they are rounded to f16,
                         times a power of two for each row: by 3 2^-11 of the sum of a weight's parts and
                         2^-29 of the row's largest block factor at most. Sums are of a whole slice of K.
     sm_75               bf16 and f32 weights are refused
     x NaN or infinite   NaN in every output of that row of x; so where x * gamma, or with NORM the sum of
                         squares, overflows f32, and for Q4_K, Q5_K and Q6_K from |x * gamma| = 2^122 on
     factor NaN, inf     NaN or inf in that row of W only
     all x 0             0 (+ bias, + residual), with eps 0 too
     PTXK_GEMM_GROUPED   many products in one launch, such as the experts of a mixture. The rows of y belong
                         to `groups` groups, one after the other; each group has its own weights and biases.
                         Device memory says which rows a group has (`offsets`) and which row of x each of
                         them multiplies (`x_rows`), so that other kernels may fill both. Only weights of
                         groups that have rows are read. Rows of y that are in no group are not written.
     alignment           as in gemv

   Traffic: W is read once for each tile of columns, from L2 but the first time; x, prepared, once for each
   tile of rows of W, from L2. The first plan.zero_bytes of the workspace are counters. Each launch leaves
   them 0; a launch with another m, n or k has its own number of them, and other memory behind. Launches that
   may run at the same time need separate workspaces. y may be the residual itself. No other memory that is
   read may overlap what is written. */

/* Precision of x and of f32 weights; flags. */
enum { PTXK_GEMM_EXACT = 0, PTXK_GEMM_FAST = 1 };
enum {
    PTXK_GEMM_NORM = 1,
    PTXK_GEMM_GAMMA = 2,
    PTXK_GEMM_RESIDUAL = 4,
    PTXK_GEMM_BIAS = 8,
    PTXK_GEMM_SWIGLU = 16,
    PTXK_GEMM_GEGLU = 32,
    PTXK_GEMM_GROUPED = 64
};

/* What is compiled into the code. m, n and k are not: one kernel serves all layers. */
typedef struct ptxk_gemm_desc {
    uint32_t format;      /* of the weights: PTXK_Q4_K ... */
    uint32_t x_type;      /* of x: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t output_type; /* of y and of the residual: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t columns;     /* rows of x in a tile, at most: 8, 16 ... 256; see ptxk_gemm_columns */
    uint32_t precision;   /* PTXK_GEMM_EXACT or PTXK_GEMM_FAST */
    uint32_t flags;       /* PTXK_GEMM_NORM | PTXK_GEMM_GAMMA ... */
    uint32_t second;      /* format of a second matrix, with SwiGLU and GeGLU of up; 0: there is none */
    uint32_t third;       /* format of a third matrix; 0: there is none */
} ptxk_gemm_desc;

typedef struct ptxk_gemm_shape {
    uint32_t m;        /* rows of x and of y, at most 2^19 (with tiles of 64: 2^22); 0: no launches. With
                           GROUPED rows of y, of all groups */
    uint32_t n;        /* rows of W, at most 2^26 (a gated pair in tiles of 64: 2^25) */
    uint32_t k;        /* columns of W and of x, whole units, at most 2^20 */
    uint32_t second_n; /* rows of the second matrix, at least 1; ignored with a gated pair, where it is n */
    uint32_t third_n;  /* rows of the third matrix, at least 1 */
    uint32_t sm_count; /* multiprocessors of the device, at least 1 */
    ptx_target target; /* of the module, such as PTX_SM(80) */
    uint32_t groups;   /* GROUPED: 1 to 65536; else ignored */
} ptxk_gemm_shape;

/* One of the matrices. Addresses are 16-byte aligned. */
typedef struct ptxk_gemm_matrix {
    uint64_t weights;  /* rows [n] of ptxk_row_bytes(format, k) bytes, one after the other */
    uint64_t bias;     /* f32 [n], with GROUPED [groups, n]; ignored without PTXK_GEMM_BIAS */
    uint64_t y;        /* output_type [m, n]; ignored for the second of a gated pair */
    uint64_t y_stride; /* elements from row to row of y, n to 2^32 - 1; 0: n */
    uint32_t n;        /* as in the shape */
    uint32_t reserved; /* 0 */
} ptxk_gemm_matrix;

typedef struct ptxk_gemm_args {
    ptxk_gemm_matrix matrix[3];
    uint64_t x;               /* x_type [m, k], 16-byte aligned */
    uint64_t x_stride;        /* elements from row to row of x: a multiple of 8, to 2^32 - 8; 0: k */
    uint64_t gamma;           /* f32 [k], 16-byte aligned; ignored without PTXK_GEMM_GAMMA */
    uint64_t residual;        /* output_type [m, n], 16-byte aligned; ignored without PTXK_GEMM_RESIDUAL */
    uint64_t residual_stride; /* elements from row to row, n to 2^32 - 1; 0: n */
    uint64_t workspace;       /* plan.workspace_bytes, the first plan.zero_bytes 0; 256-byte aligned */
    uint32_t m, k;            /* as in the shape */
    float eps;                /* of the norm: 0 or more, finite */
    uint32_t reserved;        /* 0 */
    /* GROUPED; else ignored: */
    uint64_t offsets;         /* u32 [groups + 1], 4-byte aligned: group i has rows offsets[i] to
                                 offsets[i + 1] - 1 of y, those below m; none unless the second is larger */
    uint64_t x_rows;          /* u32 [m], 4-byte aligned: the row of x for each row of y; from x_count on, a
                                 row of zeros. 0: the same row */
    uint64_t group_stride[3]; /* of each matrix: bytes from the weights of a group to those of the next, a
                                 multiple of 16; 0: the rows of all groups lie one after the other */
    uint32_t groups;          /* as in the shape */
    uint32_t x_count;         /* rows of x; 0: m */
} ptxk_gemm_args;

/* The tile that suits m rows of x: the smallest of 8, 16 ... 128 that holds them, else 256. */
PTXGEN_API uint32_t ptxk_gemm_columns(uint32_t m);
/* Appends the two entries (x, rows). desc: a ptxk_gemm_desc. */
#define ptxk_gemm_emit(m, desc) ptxk_gemm_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_gemm_emit_(ptx_module *m, const char *site, const void *desc);
/* The launches. min_bytes: weights, x, gamma, biases, residual and y once; weights and biases of as many
   groups as may have rows. */
PTXGEN_API ptx_code ptxk_gemm_plan(const ptxk_gemm_desc *desc, const ptxk_gemm_shape *shape, ptx_plan *plan,
                                   ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_gemm_check(const ptxk_gemm_desc *desc, const ptxk_gemm_args *args,
                                    ptxk_message *why);

/* ======== matmul ========================================================================================

   The dense matrix product of row-major matrices with leading dimensions:

     D[i,j] = act(alpha fa[i] fb[j] sum_x op(A)[i,x] op(B)[x,j] + beta C[i,j] + bias[j])

   op(A) is A, [m,k], or with PTXK_MATMUL_TRANS_A the transpose of A, [k,m]. op(B) is B, [k,n], or with
   PTXK_MATMUL_TRANS_B the transpose of B, [n,k], as the weights of a linear layer lie. m, n and k are any
   from 0, read from the arguments. C may be D; with beta 0 it is not read, with alpha 0 A and B are not.

   Tiles of 128 x 128 or 64 x 64; k through three or four stages of shared memory by cp.async (before sm_80
   two, through registers); mma.sync on swizzled tiles; results in whole rows. For the tiles that are left
   when each multiprocessor has had as many as all others, k is divided into parts, and the last block of a
   tile adds their sums in order. There is one launch, and the same bits in every run.

   A module for sm_90a has a second form: wgmma on tiles of 128 x 256, or 128 x 128 for few steps along k and
   for sums that are added to others every 128 of k. Tensor maps copy them into four or six stages of shared
   memory. A warpgroup copies, two multiply; blocks are persistent; two blocks, one below the other, share the
   copies of B. f16 and bf16 with any transposes; f32 (FAST), e4m3, e5m2 and s8 (without factors that differ
   along k: k below 131072) with A as it is and B transposed. The plan takes this form where shape.aligned is
   1. A plan of the first form suits such a module too.

     types               f16; bf16; f32; e4m3 and e5m2, mixed too; s8. Where the target's tensor cores lack a
                         type (before sm_89 e4m3 and e5m2, before sm_80 all but f16), products run in f32.
                         From sm_90 to sm_110 e4m3 and e5m2 become f16 on their way to them.
     precision           f16, bf16, e4m3, e5m2: exact products, f32 sums as the chip's tensor cores make them:
                         within (n + 1) 2^-24 of the largest term and 2^-23 of the result for each n products,
                         n at least 8. On sm_89, and by wgmma, sums of e4m3 and e5m2 keep 13 bits; on all
                         chips they are added to f32 sums every 128 of k. s8: exact sums of 65536 products,
                         added in f32.
                         f32, PTXK_MATMUL_EXACT: three tf32 products, 2^-21 of each product; sums of 48 of k
                         are added in f32. PTXK_MATMUL_FAST: one, factors rounded to 11 bits, 2^-10 of each
                         product.
     large f32           EXACT: a factor past 3.4019e38 keeps 11 bits. FAST: past 3.4020e38 it is infinite.
     factors             f32, of A and of B: PTXK_FACTORS_... Those that differ along k, 8-bit types only,
                         multiply the sums of 128 products.
     bias                f32 [n], the same for all products of a batch
     activation          PTXK_MATMUL_RELU; _SILU: x / (1 + e^-x); _GELU by tanh. x -inf: 0, NaN, NaN
     out in f16          a value past f16's range becomes infinite
     alignment           elements. The fast path needs addresses and leading dimensions of A and B in
                         multiples of 16 bytes, and rows of m (TRANS_A) or of n (without TRANS_B) elements in
                         multiples of 16 bytes. It is chosen at run time. Other problems, 8-bit types with k
                         across the rows in memory, and the last k % 32 (f32 16, 8-bit 64) are copied by
                         elements. Results: 4 elements in an access where addresses, leading dimensions and n
                         of C and D are multiples of 4 elements.
     batch               `batch` products of one size, a stride apart; stride 0: a matrix that all share
     PTXK_MATMUL_GROUPED `batch` products of their own sizes, addresses and factors: experts, adapters. Their
                         ptxk_matmul_group structs lie in device memory, so that other kernels may fill them.
                         A fixed number of blocks walks the list; k is not divided. Groups with m or n of 0
                         have no tiles; all tiles together are at most 2^31 - 1. alpha and beta are of args.

   No memory that is read may overlap D but C, and that must be D itself. */

/* Flags; precision of f32; activations; factors. */
enum { PTXK_MATMUL_TRANS_A = 1, PTXK_MATMUL_TRANS_B = 2, PTXK_MATMUL_BIAS = 4, PTXK_MATMUL_GROUPED = 8 };
enum { PTXK_MATMUL_EXACT = 0, PTXK_MATMUL_FAST = 1 };
enum { PTXK_MATMUL_LINEAR = 0, PTXK_MATMUL_RELU = 1, PTXK_MATMUL_SILU = 2, PTXK_MATMUL_GELU = 3 };
enum {
    PTXK_FACTORS_NONE = 0,
    PTXK_FACTORS_TENSOR = 1, /* one */
    PTXK_FACTORS_ROW = 2,    /* [m], one for each row of op(A); of B [n], one for each column of op(B) */
    PTXK_FACTORS_BLOCK = 3,  /* [m, ceil(k / 128)], one for each row (column) and 128 along k */
    PTXK_FACTORS_SQUARE = 4  /* [ceil(m / 128), ceil(k / 128)], one for 128 rows (columns) and 128 along k */
};

/* What is compiled into the code. */
typedef struct ptxk_matmul_desc {
    uint32_t a_type, b_type;       /* PTX_F16, PTX_BF16, PTX_F32, PTX_S8, equal; or PTX_E4M3 and PTX_E5M2 */
    uint32_t out_type;             /* of C and D: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t flags;                /* PTXK_MATMUL_TRANS_A | PTXK_MATMUL_TRANS_B ... */
    uint32_t precision;            /* of f32: PTXK_MATMUL_EXACT or PTXK_MATMUL_FAST; else 0 */
    uint32_t activation;           /* PTXK_MATMUL_LINEAR ... */
    uint32_t a_factors, b_factors; /* PTXK_FACTORS_NONE ...; _BLOCK and _SQUARE with 8-bit types */
} ptxk_matmul_desc;

typedef struct ptxk_matmul_shape {
    uint32_t m, n, k;  /* each at most 2^31 - 1; with GROUPED those of a usual group, to choose the tile */
    uint32_t batch;    /* products, or groups; at most 2^31 - 1 tiles of 64 x 64 in all */
    uint32_t sm_count; /* multiprocessors of the device, at least 1 */
    ptx_target target; /* of the module; 0: PTX_SM(75), as there */
    uint32_t aligned;  /* 1: addresses and strides are those of ptxk_matmul_aligned; 0: any */
} ptxk_matmul_shape;

/* A product of a group. Fields as below, in the same order. */
typedef struct ptxk_matmul_group {
    uint64_t a, b, c, d, bias, a_factors, b_factors;
    uint32_t m, n, k, lda, ldb, ldc, ldd, reserved;
} ptxk_matmul_group;

/* Addresses are aligned to an element. With GROUPED the fields from a to b_factors_stride are ignored. */
typedef struct ptxk_matmul_args {
    uint64_t a, b;                                   /* a_type, b_type; rows lda, ldb elements apart */
    uint64_t c, d;                                   /* out_type [m, n]; rows ldc, ldd elements apart */
    uint64_t bias;                                   /* f32 [n]; ignored without PTXK_MATMUL_BIAS */
    uint64_t a_factors, b_factors;                   /* f32; ignored where there are none */
    uint32_t m, n, k;                                /* as in the shape */
    uint32_t lda, ldb, ldc, ldd;                     /* at least a row's length */
    uint32_t reserved;                               /* 0 */
    uint64_t a_stride, b_stride, c_stride, d_stride; /* elements from product to product of the batch */
    uint64_t a_factors_stride, b_factors_stride;
    uint64_t groups;    /* ptxk_matmul_group [batch], 8-byte aligned; ignored without PTXK_MATMUL_GROUPED */
    uint64_t workspace; /* plan.workspace_bytes, 256-byte aligned; 0 where the plan has none */
    uint32_t batch, sm_count; /* as in the shape */
    float alpha, beta;
} ptxk_matmul_args;

/* Appends two entries, for tiles of 128 x 128 and of 64 x 64; with target PTX_SM_A(90) two more. desc: a
   ptxk_matmul_desc. */
#define ptxk_matmul_emit(m, desc) ptxk_matmul_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_matmul_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: A, B, bias, factors and D of each product once. */
PTXGEN_API ptx_code ptxk_matmul_plan(const ptxk_matmul_desc *desc, const ptxk_matmul_shape *shape,
                                     ptx_plan *plan, ptxk_message *why);
/* Whether tensor maps can describe the matrices, which the form for sm_90a needs: alpha is not 0; addresses
   of A, B and D, and of C where it is not 0, and the strides from row to row and from product to product are
   multiples of 16 bytes; there are no groups. 0 for a bad desc. */
PTXGEN_API int ptxk_matmul_aligned(const ptxk_matmul_desc *desc, const ptxk_matmul_args *args);
/* Tests arguments: see FUNCTIONS. Groups lie in device memory and are not tested. */
PTXGEN_API ptx_code ptxk_matmul_check(const ptxk_matmul_desc *desc, const ptxk_matmul_args *args,
                                      ptxk_message *why);

/* ======== norm ==========================================================================================

   RMSNorm or, with PTXK_NORM_LAYER, LayerNorm of each row x[t,:]:

     y[t,:] = gamma * x / sqrt(mean x^2 + eps)
     y[t,:] = gamma * (x - mean) / sqrt(mean (x - mean)^2 + eps) + beta

   PTXK_NORM_RESIDUAL first adds: x[t,:] += residual[t,:]. The sum is rounded to x_type, written, and
   normalised as written. PTXK_NORM_ADD adds the result to y[t,:]. f32 arithmetic in a fixed order. Rows to
   16384 elements stay in registers; longer ones are read again. gamma is optional; beta requires
   PTXK_NORM_LAYER and gamma.

     sum of squares past f32, x NaN or infinite   NaN in that row
     all x 0, eps 0                               0 (LayerNorm: beta)

   y may be x, or with a residual the residual, where the types are equal, but not with PTXK_NORM_ADD. Nothing
   else may overlap. */

/* Kinds, and flags. */
enum { PTXK_NORM_RMS = 0, PTXK_NORM_LAYER = 1 };
enum {
    PTXK_NORM_RESIDUAL = 1,
    PTXK_NORM_BETA = 2,
    PTXK_NORM_PLAIN = 4, /* no gamma */
    PTXK_NORM_ADD = 8    /* the result is added to y */
};
typedef struct ptxk_norm_desc {
    uint32_t n;           /* elements of a row, 1 ... 2^24 */
    uint32_t kind;        /* PTXK_NORM_RMS or PTXK_NORM_LAYER */
    uint32_t x_type;      /* of x and residual: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t y_type;      /* of y: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t weight_type; /* of gamma and beta: PTX_F32, PTX_F16 or PTX_BF16; with _PLAIN also 0 */
    uint32_t flags;       /* PTXK_NORM_RESIDUAL | PTXK_NORM_BETA | PTXK_NORM_PLAIN | PTXK_NORM_ADD */
} ptxk_norm_desc;

typedef struct ptxk_norm_shape {
    uint32_t rows; /* at most 2^31 - 1 */
} ptxk_norm_shape;

/* Addresses are 16-byte aligned; rows lie one after the other. */
typedef struct ptxk_norm_args {
    uint64_t x;           /* x_type [rows, n]; written with PTXK_NORM_RESIDUAL */
    uint64_t residual;    /* x_type [rows, n]; ignored without PTXK_NORM_RESIDUAL */
    uint64_t y;           /* y_type [rows, n]; read, too, with PTXK_NORM_ADD */
    uint64_t gamma, beta; /* weight_type [n]; gamma is ignored with _PLAIN, beta without _BETA */
    uint32_t rows;        /* as in the shape */
    float eps;            /* 0 or more, finite */
} ptxk_norm_args;

/* Appends the entry. desc: a ptxk_norm_desc. */
#define ptxk_norm_emit(m, desc) ptxk_norm_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_norm_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: x, residual, gamma, beta and y once. */
PTXGEN_API ptx_code ptxk_norm_plan(const ptxk_norm_desc *desc, const ptxk_norm_shape *shape, ptx_plan *plan,
                                  ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_norm_check(const ptxk_norm_desc *desc, const ptxk_norm_args *args,
                                    ptxk_message *why);

/* ======== softmax =======================================================================================

   y[t,i] = exp(scale x[t,i]) / sum_j exp(scale x[t,j]) for rows of any length. Long rows use the online
   softmax of Milakov and Gimelshein (see flash_decode). y may be x where the types are equal.

     x finite       right at any size, with any scale
     scale x -inf   0; a row with nothing else: zeros
     scale x +inf   these elements share the weight equally. With a scale above 0.69, so do elements of f32's
                    largest number.
     x NaN          NaN in that row */
typedef struct ptxk_softmax_desc {
    uint32_t n;              /* elements of a row, 1 ... 2^24 */
    uint32_t x_type, y_type; /* PTX_F32, PTX_F16 or PTX_BF16 */
    float scale;             /* factor of x; 0: 1 */
} ptxk_softmax_desc;

typedef struct ptxk_softmax_shape {
    uint32_t rows; /* at most 2^31 - 1 */
} ptxk_softmax_shape;

typedef struct ptxk_softmax_args {
    uint64_t x, y;     /* x_type, y_type [rows, n], 16-byte aligned */
    uint32_t rows;     /* as in the shape */
    uint32_t reserved; /* 0 */
} ptxk_softmax_args;

/* Appends the entry. desc: a ptxk_softmax_desc. */
#define ptxk_softmax_emit(m, desc) ptxk_softmax_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_softmax_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: x and y once. */
PTXGEN_API ptx_code ptxk_softmax_plan(const ptxk_softmax_desc *desc, const ptxk_softmax_shape *shape,
                                      ptx_plan *plan, ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_softmax_check(const ptxk_softmax_desc *desc, const ptxk_softmax_args *args,
                                       ptxk_message *why);

/* ======== activation ====================================================================================

   y = silu(x) or gelu(x); gated: y = silu(x) * up or gelu(x) * up. Row strides let x and up lie side by side
   in one row. y may be x or up where types and strides are equal.

     silu(x)        x / (1 + exp(-x))
     gelu by tanh   x / (1 + exp(-2 c (x + 0.044715 x^3))), c = sqrt(2 / pi)
     gelu by erf    Abramowitz and Stegun 7.1.26: within 1.5e-7 |x| of the gelu with erf
     x -inf         NaN (silu, gelu by tanh) */
enum { PTXK_SILU = 0, PTXK_GELU = 1 /* by tanh */, PTXK_GELU_ERF = 2 };
typedef struct ptxk_activation_desc {
    uint32_t kind;           /* PTXK_SILU, PTXK_GELU or PTXK_GELU_ERF */
    uint32_t gated;          /* 1: multiply by up */
    uint32_t x_type, y_type; /* of x and up; of y: PTX_F32, PTX_F16 or PTX_BF16 */
} ptxk_activation_desc;

typedef struct ptxk_activation_shape {
    uint32_t rows; /* at most 65535 */
    uint32_t n;    /* elements of a row, at most 2^31 - 1 */
} ptxk_activation_shape;

typedef struct ptxk_activation_args {
    uint64_t x, up, y; /* aligned to an element, faster at 16 bytes; up: x + n where one row holds both */
    uint64_t x_stride, up_stride, y_stride; /* elements from row to row; 0: n */
    uint32_t rows, n;                       /* as in the shape */
} ptxk_activation_args;

/* Appends the entry. desc: a ptxk_activation_desc. */
#define ptxk_activation_emit(m, desc) ptxk_activation_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_activation_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: x, up and y once. */
PTXGEN_API ptx_code ptxk_activation_plan(const ptxk_activation_desc *desc, const ptxk_activation_shape *shape,
                                         ptx_plan *plan, ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_activation_check(const ptxk_activation_desc *desc, const ptxk_activation_args *args,
                                          ptxk_message *why);

/* ======== rope ==========================================================================================

   Rotates pairs of elements of each head by the angle position * frequencies[i], in place: a, b become
   a cos - b sin, a sin + b cos. Rotates the first `dims` elements of a head and leaves the others. The angle
   is reduced in f64: right to 1e-6 at any u32 position. ptxk_rope_frequencies() makes the table:
   theta^(-2 i / dims), divided by a linear factor, by a table of factors, or by the rule of Llama 3.1. */

/* Pairs: interleaved, elements 2 i and 2 i + 1, or split, i and i + dims / 2. */
enum { PTXK_ROPE_INTERLEAVED = 0, PTXK_ROPE_NEOX = 1 };

typedef struct ptxk_rope_desc {
    uint32_t heads;    /* 1 ... 65536 */
    uint32_t head_dim; /* even, at most 65536 */
    uint32_t dims;     /* elements of a head that are rotated, from its start: even, at most head_dim */
    uint32_t pairs;    /* PTXK_ROPE_INTERLEAVED or PTXK_ROPE_NEOX */
    uint32_t type;     /* of x: PTX_F32, PTX_F16 or PTX_BF16 */
} ptxk_rope_desc;

typedef struct ptxk_rope_shape {
    uint32_t tokens; /* at most 65535 */
} ptxk_rope_shape;

typedef struct ptxk_rope_args {
    uint64_t x;           /* type [tokens][heads, head_dim], 16-byte aligned, changed in place */
    uint64_t positions;   /* u32 [tokens] */
    uint64_t frequencies; /* f64 [dims / 2]: radians for each position */
    uint64_t stride;      /* elements from token to token, even; 0: heads * head_dim */
    uint32_t tokens;      /* as in the shape */
    uint32_t reserved;    /* 0 */
} ptxk_rope_args;

/* How frequencies are scaled. All zero: theta 10000, unscaled. */
typedef struct ptxk_rope_scaling {
    double theta;          /* 0: 10000 */
    double factor;         /* divides every frequency; Llama 3.1: only those of long waves. 0: 1 */
    double low, high;      /* Llama 3.1: low_freq_factor, high_freq_factor; both 0: not its rule */
    double original;       /* Llama 3.1: the context before scaling, original_max_position_embeddings */
    const float *factors;  /* [dims / 2]: each divides its frequency; or NULL */
} ptxk_rope_scaling;

/* Appends the entry. desc: a ptxk_rope_desc. */
#define ptxk_rope_emit(m, desc) ptxk_rope_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_rope_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: the rotated elements read and written once, and the tables. */
PTXGEN_API ptx_code ptxk_rope_plan(const ptxk_rope_desc *desc, const ptxk_rope_shape *shape, ptx_plan *plan,
                                   ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_rope_check(const ptxk_rope_desc *desc, const ptxk_rope_args *args,
                                    ptxk_message *why);
/* Writes the table of frequencies, out[dims / 2], radians for each position. scaling: or NULL. Returns
   PTX_E_ARGUMENT for a NULL out, odd dims, or a negative or infinite number. */
PTXGEN_API ptx_code ptxk_rope_frequencies(uint32_t dims, const ptxk_rope_scaling *scaling, double *out,
                                          ptxk_message *why);

/* ======== embed =========================================================================================

   y[t,:] = scale * table[ids[t],:]. The table has any of PTXK_FORMATS. An id past the table's rows gives NaN
   in that row of y, and nothing is read. y overlaps neither table nor ids. */
typedef struct ptxk_embed_desc {
    uint32_t n;      /* elements of a row: a multiple of the format's block, 1 ... 2^24 */
    uint32_t format; /* of the table: PTXK_Q4_K ... */
    uint32_t y_type; /* PTX_F32, PTX_F16 or PTX_BF16 */
    float scale;     /* 0: 1 */
} ptxk_embed_desc;

typedef struct ptxk_embed_shape {
    uint32_t tokens; /* at most 65535 */
} ptxk_embed_shape;

typedef struct ptxk_embed_args {
    uint64_t table; /* [rows, n] of the format, 16-byte aligned */
    uint64_t ids;   /* u32 [tokens] */
    uint64_t y;     /* y_type [tokens, n], 16-byte aligned */
    uint32_t rows, tokens; /* of the table; as in the shape */
} ptxk_embed_args;

/* Appends the entry. desc: a ptxk_embed_desc. */
#define ptxk_embed_emit(m, desc) ptxk_embed_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_embed_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: the rows and y once. */
PTXGEN_API ptx_code ptxk_embed_plan(const ptxk_embed_desc *desc, const ptxk_embed_shape *shape,
                                    ptx_plan *plan, ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_embed_check(const ptxk_embed_desc *desc, const ptxk_embed_args *args,
                                     ptxk_message *why);

/* ======== sample ========================================================================================

   Chooses one token from each row of logits. With temperature 0 or PTXK_SAMPLE_ARGMAX: the largest logit; of
   equal ones the lowest token; NaN counts as the smallest. Otherwise tokens are ordered by logit, equal ones
   by number. Token i has the weight exp((logit_i - largest) / temperature), in steps of 2^-40. The
   first top_k stay (0: all); of these the fewest whose weights reach top_p of their sum (0 or 1: all; at
   least one). The choice is the first token at which the running sum of weights passes random * total. Sums
   are integers: the same token in every run. random: 64 bits of SplitMix64 (G. Steele, D. Lea, C. Flood,
   "Fast splittable pseudorandom number generators", 2014), from seed and the counter row << 32 | position.

     all -inf or NaN      as with temperature 0
     differences past f32 a logit 3.4028e38 or more below the largest has weight 0 at any temperature */
enum { PTXK_SAMPLE_DRAW = 0, PTXK_SAMPLE_ARGMAX = 1 };
typedef struct ptxk_sample_desc {
    uint32_t type;   /* of the logits: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t method; /* PTXK_SAMPLE_DRAW or PTXK_SAMPLE_ARGMAX */
} ptxk_sample_desc;

typedef struct ptxk_sample_shape {
    uint32_t rows; /* at most 65535 */
    uint32_t n;    /* logits of a row, 1 ... 2^24 */
} ptxk_sample_shape;

typedef struct ptxk_sample_args {
    uint64_t logits;    /* type [rows, n], 16-byte aligned */
    uint64_t positions; /* u32 [rows]: counters of random numbers; 0: all are 0 */
    uint64_t tokens;    /* u32 [rows]: the result */
    uint64_t seed;
    uint32_t rows, n;   /* as in the shape */
    uint32_t top_k;     /* 0: all */
    float top_p;        /* 0 or 1: all */
    float temperature;  /* 0: the largest logit */
    uint32_t reserved;  /* 0 */
} ptxk_sample_args;

/* Appends the entry. desc: a ptxk_sample_desc. */
#define ptxk_sample_emit(m, desc) ptxk_sample_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_sample_emit_(ptx_module *m, const char *site, const void *desc);
/* One launch. min_bytes: the logits once. */
PTXGEN_API ptx_code ptxk_sample_plan(const ptxk_sample_desc *desc, const ptxk_sample_shape *shape,
                                     ptx_plan *plan, ptxk_message *why);
/* Tests arguments: see FUNCTIONS. */
PTXGEN_API ptx_code ptxk_sample_check(const ptxk_sample_desc *desc, const ptxk_sample_args *args,
                                      ptxk_message *why);

/* ======== decoder =======================================================================================

   Generates up to n tokens for each of 1 to 4 sequences with a model of the llama kind, all in one persistent
   kernel. Each step computes the embedding; in each layer RMSNorm, q, k, v, optional norms of the heads of q
   and k, rotary positions, k and v into the caches, attention over the caches or the last `window` rows, its
   output added, RMSNorm, silu(gate) * up or gelu(gate) * up, down added; then the final norm, the logits and
   the next token. Each matrix may have a bias.

   One block stays on each multiprocessor, with 64 KB of shared memory. Blocks hand tiles of 32 values to each
   other through counters in global memory. Weights are requested before the values that they multiply are
   waited for. Everything has a fixed order: the same tokens in every run with the same number of blocks.
   There are two launches; the first clears the counters in the workspace.

     formats        those of gemv, one for each matrix; ffn, hidden and heads * head_dim are whole blocks of
                    the formats that they meet
     precision      as in gemv: quantised weights multiply x in 16 bits, with PTXK_GEMV_FAST in 8, in groups
                    of 32; plain weights multiply f32. The block that makes a tile of 32 values also
                    multiplies it by the next norm's weights and quantises it. Where head_dim is not a
                    multiple of 32, each block quantises the attention output that it reads.
     NaN, infinity  spread as in gemv and flash_decode; a token is chosen in any case
     prompt         fed first, one token a step, without logits before its last; prompt tokens are not written
     refused        positions[b] + prompt_lengths[b] past max_seq, prompt_lengths[b] past prompt_stride, or a
                    prompt token past vocab: status PTXK_DECODER_REFUSED names the cause and the sequence, and
                    no sequence is fed
     end            A sequence ends after n tokens, after one of up to 8 end tokens (which is written), or
                    when its cache is full: the token in the last row still yields one, and the status is
                    PTXK_DECODER_FULL.
     stop           read after each token; no block waits for it
     written, tokens  grow during the run and can be read where they lie in host memory; written[b] is
                    released after its token
     starvation     a wait of more than `watchdog` polls in any block ends the launch; the state says which
                    step of which layer waited for which tile (for the attention output: which KV head)
     choice         as sample does, with the sequence as row and the position of the token fed last
     caches         rows before positions[b] are used as they are; new rows are rounded to kv_type
     logits         those of each sequence's last choice. A sequence that has ended keeps them while others
                    go on; one that rests has none written.
     traffic        beyond one read of weights, biases, norms and caches: each block reads x for its slice of
                    each product, 2304 bytes for 1024 values (FAST: 1280; plain weights: 4096). A tile that is
                    cut into s slices has s parts written and s - 1 read, 128 bytes each (gate and up: 256).
                    A layer of Llama-3-8B in Q4_K on 132 multiprocessors: x 2.37 MB (1028 times 1024 values),
                    parts 0.75 MB, flags, squares and the rest 0.75 MB, beside 122.8 MB: a factor of 1.031.
                    More slices would read less x (down in 7 instead of 5: 0.2 MB), but leave the busiest
                    block more tiles.
     overlap        caches, logits, tokens, state and workspace overlap no other memory that is named;
                    ptxk_decoder_check() tests the layers where it gets a copy of them in host memory */

/* What is compiled into the code. The number of layers, addresses and sampling parameters are not. */
typedef struct ptxk_decoder_desc {
    uint32_t hidden, ffn;     /* multiples of the block of every format that they meet, else of 8 */
    uint32_t heads, kv_heads; /* heads: a multiple of kv_heads, at most 1024 */
    uint32_t head_dim;        /* a multiple of 8, 8 ... 256 */
    uint32_t vocab;           /* 1 ... 2^24 */
    uint32_t batch;           /* sequences, 1 ... 4 */
    uint32_t formats;         /* of matrices and embedding, a set: 1 << PTXK_Q4_K | 1 << PTXK_Q6_K ... */
    uint32_t kv_type;         /* of the caches: PTX_F32, PTX_F16 or PTX_BF16 */
    uint32_t rope_dims;       /* elements of a head that are rotated: even, at most head_dim; 0: none */
    uint32_t rope_pairs;      /* PTXK_ROPE_INTERLEAVED or PTXK_ROPE_NEOX */
    float scale;              /* factor of q . k; 0: 1/sqrt(head_dim) */
    uint32_t precision;       /* of x for quantised weights: PTXK_GEMV_EXACT or PTXK_GEMV_FAST */
    uint32_t head_norms;      /* 1: an RMSNorm for each head of q and of k, before the rotation */
    uint32_t window;          /* keys that a token sees, its own the last; 0: all */
    float embedding_scale;    /* factor of the embedding; 0: 1 */
    uint32_t gelu;            /* 1: gelu(gate) * up, by tanh; 0: silu(gate) * up */
} ptxk_decoder_desc;

typedef struct ptxk_decoder_shape {
    uint32_t layers;   /* at most 4096 */
    uint32_t max_seq;  /* rows of a cache for each KV head, at most 2^31 - 1 */
    uint32_t sm_count; /* multiprocessors: the number of blocks, all of which must be resident */
} ptxk_decoder_shape;

/* A matrix in device memory: contiguous rows, 16-byte aligned. */
typedef struct ptxk_decoder_matrix {
    uint64_t weights;
    uint64_t bias;     /* f32 [rows], or 0 */
    uint32_t format;   /* PTXK_Q4_K ...: one of the description's */
    uint32_t reserved; /* 0 */
} ptxk_decoder_matrix;

/* A layer. The kernel reads an array of these in device memory. */
typedef struct ptxk_decoder_layer {
    uint64_t attention_norm, ffn_norm; /* f32 [hidden] */
    uint64_t k_cache, v_cache;         /* kv_type [batch, kv_heads, max_seq, head_dim], 16-byte aligned */
    ptxk_decoder_matrix q, k, v;       /* [heads * head_dim, hidden]; k, v: [kv_heads * head_dim, hidden] */
    ptxk_decoder_matrix output;        /* [hidden, heads * head_dim] */
    ptxk_decoder_matrix gate, up;      /* [ffn, hidden] */
    ptxk_decoder_matrix down;          /* [hidden, ffn] */
    uint64_t q_norm, k_norm;           /* f32 [head_dim]; ignored without head_norms */
} ptxk_decoder_layer;

/* ptxk_decoder_args.state points to this. The kernel writes it with st.release.sys: memory that host and
   device share may be read during the run. */
enum {
    PTXK_DECODER_RUNS = 0,
    PTXK_DECODER_DONE = 1,    /* every sequence has n tokens or an end token */
    PTXK_DECODER_STOPPED = 2, /* by the stop flag */
    PTXK_DECODER_STARVED = 3, /* see step ... position */
    PTXK_DECODER_REFUSED = 4, /* a prompt does not fit, nothing was fed: see step and tile */
    PTXK_DECODER_FULL = 5     /* as DONE, but a sequence ended because its cache was full */
};
#define PTXK_DECODER_ENDS 8 /* most end tokens */
typedef struct ptxk_decoder_state {
    uint32_t status;      /* PTXK_DECODER_RUNS ... */
    uint32_t step;        /* STARVED: the step of a layer that waited; REFUSED: the cause (..._step_name) */
    uint32_t layer;       /* STARVED: its layer */
    uint32_t tile;        /* STARVED: the part of its input; REFUSED: the sequence */
    uint32_t block;       /* STARVED: the block that waited */
    uint32_t position;    /* STARVED: the number of the token in this launch */
    uint32_t written[4];  /* tokens written for each sequence */
    uint32_t length[4];   /* rows of each sequence's cache that are filled */
} ptxk_decoder_state;

/* tokens, state and stop may be host memory that the device can access. A sequence's prompt is fed first;
   from its last token on, tokens are chosen. */
typedef struct ptxk_decoder_args {
    uint64_t layers;         /* ptxk_decoder_layer [layer_count] */
    uint64_t frequencies;    /* f64 [rope_dims / 2]: radians for each position, ptxk_rope_frequencies() */
    uint64_t final_norm;     /* f32 [hidden] */
    ptxk_decoder_matrix embedding; /* [vocab, hidden]; its bias is ignored */
    ptxk_decoder_matrix output;    /* [vocab, hidden]; tied weights: the embedding's again */
    uint64_t prompt;         /* u32 [batch, prompt_stride] */
    uint64_t prompt_lengths; /* u32 [batch], each at most prompt_stride; 0: that sequence rests */
    uint64_t positions;      /* u32 [batch]: rows of the caches that are filled at the start */
    uint64_t logits;         /* f32 [batch, vocab]: those that each sequence's last token was chosen from */
    uint64_t tokens;         /* u32 [batch, tokens_stride]: the generated tokens */
    uint64_t state;          /* ptxk_decoder_state */
    uint64_t stop;           /* u32: a value other than 0 ends the run after the current token; 0: no flag */
    uint64_t workspace;      /* plan.workspace_bytes, 256-byte aligned */
    uint64_t seed;           /* of sampling */
    uint32_t layer_count, max_seq; /* as in the shape */
    uint32_t prompt_stride, tokens_stride;
    uint32_t n;              /* tokens to generate for each sequence, at most tokens_stride and max_seq */
    uint32_t end_count;      /* end tokens, at most PTXK_DECODER_ENDS; 0: none */
    uint32_t top_k;          /* 0: all */
    uint32_t watchdog;       /* polls after which a wait is given up; 0: 2^26 */
    float temperature;       /* 0: the largest logit, the lowest token of equal ones */
    float top_p;             /* 0 or 1: all */
    float eps;               /* of the norms: 0 or more, finite */
    uint32_t reserved;       /* 0 */
    uint32_t end_tokens[PTXK_DECODER_ENDS]; /* each of them ends a sequence, and is written */
} ptxk_decoder_args;

/* Appends the two entries (start, decoder). desc: a ptxk_decoder_desc. */
#define ptxk_decoder_emit(m, desc) ptxk_decoder_emit_((m), PTX__AT, (desc))
PTXGEN_API ptx_code ptxk_decoder_emit_(ptx_module *m, const char *site, const void *desc);
/* The launches. The second is cooperative: the driver refuses it where not all blocks fit at once. min_bytes
   is 0: see ptxk_decoder_bytes. */
PTXGEN_API ptx_code ptxk_decoder_plan(const ptxk_decoder_desc *desc, const ptxk_decoder_shape *shape,
                                      ptx_plan *plan, ptxk_message *why);
/* Tests arguments: see FUNCTIONS. layers: a copy of the array in host memory, tested too; or NULL. */
PTXGEN_API ptx_code ptxk_decoder_check(const ptxk_decoder_desc *desc, const ptxk_decoder_args *args,
                                       const ptxk_decoder_layer *layers, ptxk_message *why);
/* Lower bound of the traffic for one token of each sequence: all matrices (output: or NULL), biases, norms,
   and K and V of lengths[batch] rows (or NULL), each once. 0 for a bad desc. */
PTXGEN_API uint64_t ptxk_decoder_bytes(const ptxk_decoder_desc *desc, const ptxk_decoder_layer *layers,
                                       uint32_t layer_count, const ptxk_decoder_matrix *output,
                                       const uint32_t *lengths);
/* What ptxk_decoder_state.step stands for; "" past the end. */
PTXGEN_API const char *ptxk_decoder_step_name(uint32_t step);

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

/* ---- [SUPPORT] ------------------------------------------------------------------------------------------

   What the operations share. First what runs on the host: messages, checks of descriptions and arguments,
   plans. Then the vocabulary: functions that emit pieces of kernels. An emitting function makes one emitting
   call in a statement: the text is then the same whatever compiler built the generator. */

/* -- messages and names -- */

static ptx_code ptxk__refuse(ptxk_message *why, ptx_code code, const char *format, ...) {
    if (why) {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(why->text, sizeof why->text, format, list);
        va_end(list);
    }
    return code;
}

PTXGEN_API const char *ptxk_format_name(uint32_t format) {
#define PTXK__NAME(format) "PTXK_" #format,
    static const char *const names[] = {"?", PTXK_FORMATS(PTXK__NAME)};
#undef PTXK__NAME
    return names[format < PTXK__FORMAT_COUNT ? format : 0];
}

/* The text of a field that holds a type or a format, as a caller writes it: PTX_U8, PTXK_Q8_0, else its
   number. */
typedef struct ptxk__value_name {
    char s[24];
} ptxk__value_name;
static ptxk__value_name ptxk__value_name_of(uint32_t x) {
    ptxk__value_name name;
    const char *type = ptx_type_name((ptx_type)x);
    size_t i;
    if (x && x < PTXK__FORMAT_COUNT)
        (void)snprintf(name.s, sizeof name.s, "%s", ptxk_format_name(x));
    else if (!x || *type == '?')
        (void)snprintf(name.s, sizeof name.s, "%u", x);
    else
        (void)snprintf(name.s, sizeof name.s, "PTX_%s", type);
    for (i = 0; name.s[i]; i++)
        if (name.s[i] >= 'a' && name.s[i] <= 'z') name.s[i] = (char)(name.s[i] - 'a' + 'A');
    return name;
}

/* -- the registry, built from PTXK_OPERATIONS -- */

#define PTXK__OPERATION(name) {#name, (uint32_t)sizeof(ptxk_##name##_desc), ptxk_##name##_emit_},
static const ptx_operation ptxk__operations[] = {PTXK_OPERATIONS(PTXK__OPERATION)};
#undef PTXK__OPERATION

PTXGEN_API uint32_t ptxk_operation_count(void) {
    return (uint32_t)(sizeof ptxk__operations / sizeof ptxk__operations[0]);
}

PTXGEN_API const ptx_operation *ptxk_operation_get(uint32_t index) {
    return index < ptxk_operation_count() ? &ptxk__operations[index] : NULL;
}

PTXGEN_API const ptx_operation *ptxk_operation_find(const char *name) {
    uint32_t i;
    for (i = 0; name && i < ptxk_operation_count(); i++)
        if (!strcmp(name, ptxk__operations[i].name)) return &ptxk__operations[i];
    return NULL;
}

/* -- numbers -- */

/* a * b; sets *fits to 0 where the product exceeds 64 bits. */
static uint64_t ptxk__multiply_checked(uint64_t a, uint64_t b, int *fits) {
    if (b && a > UINT64_MAX / b) {
        *fits = 0;
        return 0;
    }
    return a * b;
}

static uint32_t ptxk__ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0); }

/* The square root of x in 1 ... 2^32 by Newton's method. It needs no libm and gives the same bits
   everywhere. */
static double ptxk__sqrt(double x) {
    double y = x;
    int i;
    for (i = 0; i < 40; i++) y = 0.5 * (y + x / y);
    return y;
}

static uint64_t ptxk__up_256(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/* -- checks of descriptions and shapes -- */

#define PTXK__LEN_MAX 0x7fffffffu

static uint32_t ptxk__kv_bytes(uint32_t type) {
    return type == PTX_F32 ? 4u : type == PTX_F16 || type == PTX_BF16 ? 2u : 0u;
}

static uint32_t ptxk__widest(uint32_t a, uint32_t b) {
    return ptxk__kv_bytes(a) > ptxk__kv_bytes(b) ? ptxk__kv_bytes(a) : ptxk__kv_bytes(b);
}

static ptx_code ptxk__check_type(const char *op, const char *field, uint32_t type, ptxk_message *why) {
    if (ptxk__kv_bytes(type)) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_DESC, "%s: %s is %s, must be PTX_F32, PTX_F16 or PTX_BF16", op, field,
                        ptxk__value_name_of(type).s);
}

#define PTXK__FORMAT_LIST "one of PTXK_FORMATS, such as PTXK_Q4_K"
static ptx_code ptxk__refuse_format(const char *op, const char *field, uint32_t format, ptxk_message *why) {
    return ptxk__refuse(why, PTX_E_DESC, "%s: %s is %s, must be " PTXK__FORMAT_LIST, op, field,
                        ptxk__value_name_of(format).s);
}

static ptx_code ptxk__check_n(const char *op, const char *field, uint32_t n, uint32_t most,
                              ptxk_message *why) {
    if (n && n <= most) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_DESC, "%s: %s is %u, must be 1 to %u", op, field, n, most);
}

/* Refuses a number of rows or tokens of a shape above `most`. */
static ptx_code ptxk__check_most(const char *op, const char *field, uint32_t x, uint32_t most,
                                 ptxk_message *why) {
    if (x <= most) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_DESC, "%s: %s is %u, must be at most %u", op, field, x, most);
}

static ptx_code ptxk__check_scale(const char *op, float scale, ptxk_message *why) {
    if (scale >= -1e30f && scale <= 1e30f) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_DESC, "%s: scale is %g, must be from -1e30 to 1e30 (0: 1)", op,
                        (double)scale);
}

/* -- plans -- */

/* Begins every plan function: clears the plan and refuses NULLs. code: the error of the description. */
static ptx_code ptxk__plan_start(const char *op, ptx_code code, const void *shape, ptx_plan *plan,
                                 size_t args_bytes, ptxk_message *why) {
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: the %s is NULL", op, plan ? "shape" : "plan");
    plan->args_bytes = (uint32_t)args_bytes;
    return PTX_E_NONE;
}

#define PTXK__FLAT_THREADS 256u

/* Fills in a plan of one launch: a grid of x by y blocks of `threads` threads. */
static void ptxk__plan_one(ptx_plan *plan, uint32_t x, uint32_t y, uint32_t threads, uint64_t min_bytes) {
    ptx_launch *l = &plan->launch[0];
    plan->launches = 1;
    l->grid[0] = x;
    l->grid[1] = y;
    l->grid[2] = l->block[1] = l->block[2] = 1;
    l->block[0] = threads;
    plan->min_bytes = min_bytes;
}

/* -- checks of arguments -- */

static ptx_code ptxk__check_start(const char *op, ptx_code code, const void *args, ptxk_message *why) {
    if (code) return code;
    return args ? PTX_E_NONE : ptxk__refuse(why, PTX_E_ARGUMENT, "%s: the arguments are NULL", op);
}

/* Refuses a reserved field that is not 0. */
static ptx_code ptxk__check_zero(const char *op, const char *field, uint32_t x, ptxk_message *why) {
    if (!x) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s is %u, must be 0", op, field, x);
}

static ptx_code ptxk__check_count(const char *op, const char *field, uint32_t x, uint32_t least,
                                  uint32_t most, ptxk_message *why) {
    if (x >= least && x <= most) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s is %u, must be %u to %u", op, field, x, least, most);
}

static ptx_code ptxk__check_eps(const char *op, float eps, ptxk_message *why) {
    if (eps >= 0 && eps <= FLT_MAX) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: eps is %g, must be finite and at least 0", op, (double)eps);
}

/* -- spans: memory that arguments name, and its overlaps -- */

/* Memory that an argument names: rows of `row` bytes, repeated in up to three directions, count[i] times
   stride[i] bytes apart. `bytes` is the distance from the first byte to the end; 2^64 - 1 where it
   overflows. */
typedef struct ptxk__span {
    const char *name;
    uint64_t at, bytes;
    uint32_t align, needed;
    uint32_t written;
    uint32_t same; /* bit set: written memory may equal a span that shares a bit */
    uint64_t row, count[3], stride[3];
} ptxk__span;

static ptxk__span ptxk__span_of(const char *name, uint64_t at, uint64_t bytes, uint32_t align, int needed) {
    ptxk__span s;
    uint32_t i;
    memset(&s, 0, sizeof s);
    s.name = name;
    s.at = at;
    s.bytes = s.row = bytes;
    s.align = align;
    s.needed = (uint32_t)needed;
    for (i = 0; i < 3; i++) s.count[i] = 1;
    return s;
}

static ptxk__span ptxk__span_written(ptxk__span s, uint32_t same) {
    s.written = 1;
    s.same = same;
    return s;
}

/* Repeats the span n times, `stride` bytes apart. */
static void ptxk__span_repeat(ptxk__span *s, uint32_t direction, uint64_t n, uint64_t stride) {
    int fits = 1;
    uint64_t more = n ? ptxk__multiply_checked(n - 1, stride, &fits) : 0;
    s->count[direction] = n;
    s->stride[direction] = stride;
    if (!n)
        s->bytes = s->row = 0;
    else if (!s->bytes)
        return;
    else
        s->bytes = !fits || more > UINT64_MAX - s->bytes ? UINT64_MAX : s->bytes + more;
}

/* The extent in bytes of the directions whose stride is less than `below`. */
static uint64_t ptxk__span_extent(const ptxk__span *s, uint64_t below) {
    uint64_t reach = s->row;
    uint32_t i;
    for (i = 0; i < 3; i++)
        if (s->count[i] > 1 && s->stride[i] < below) reach += (s->count[i] - 1) * s->stride[i];
    return reach;
}

/* Whether all elements are distinct: each stride must be at least the extent of the narrower directions. */
static int ptxk__span_is_distinct(const ptxk__span *s) {
    uint32_t i, j;
    for (i = 0; i < 3; i++) {
        if (s->count[i] <= 1) continue;
        if (s->stride[i] < ptxk__span_extent(s, s->stride[i])) return 0;
        for (j = 0; j < i; j++)
            if (s->count[j] > 1 && s->stride[j] == s->stride[i]) return 0;
    }
    return 1;
}

static int ptxk__span_fits_steps(const ptxk__span *s, uint64_t width) {
    uint32_t i;
    for (i = 0; i < 3; i++)
        if (s->count[i] > 1 && s->stride[i] >= width && s->stride[i] % width) return 0;
    return 1;
}

/* Whether two spans with the same strides share a byte. Takes the directions from the widest stride down: b
   lies `between` bytes after a, and the remainder after k steps must be less than the extent of the narrower
   directions. */
static int ptxk__spans_overlap_by_strides(const ptxk__span *a, const ptxk__span *b, const uint32_t *by_width,
                                          uint32_t left, int64_t between) {
    uint32_t i = *by_width, n, j;
    int64_t k, a_extent = (int64_t)a->row, b_extent = (int64_t)b->row, step, first, last;
    if (!left) return between < a_extent && -between < b_extent;
    step = (int64_t)(a->count[i] > 1 ? a->stride[i] : b->count[i] > 1 ? b->stride[i] : 0);
    if (!step) return ptxk__spans_overlap_by_strides(a, b, by_width + 1, left - 1, between);
    for (n = 1; n < left; n++) {
        j = by_width[n];
        a_extent += (int64_t)((a->count[j] - 1) * a->stride[j]);
        b_extent += (int64_t)((b->count[j] - 1) * b->stride[j]);
    }
    if ((a_extent + b_extent) / step > 16) return 1; /* nested rows: no tensor has such a layout */
    first = (between - a_extent) / step - 1;
    last = (between + b_extent) / step + 1;
    if (first < 1 - (int64_t)b->count[i]) first = 1 - (int64_t)b->count[i];
    if (last > (int64_t)a->count[i] - 1) last = (int64_t)a->count[i] - 1;
    for (k = first; k <= last; k++)
        if (ptxk__spans_overlap_by_strides(a, b, by_width + 1, left - 1, between - k * step)) return 1;
    return 0;
}

/* Whether two spans may share a byte. Interleaved spans, such as K and V in one row, have a stride in common
   and separate places within each step of it. */
static int ptxk__spans_overlap(const ptxk__span *a, const ptxk__span *b) {
    uint32_t i, j, alike = a->bytes >> 62 == 0 && b->bytes >> 62 == 0, by_width[4] = {0, 1, 2, 0};
    if (!a->bytes || !b->bytes) return 0;
    if (a->at < b->at ? b->at - a->at >= a->bytes : a->at - b->at >= b->bytes) return 0;
    for (i = 0; i < 3; i++) {
        if (a->count[i] > 1 && b->count[i] > 1 && a->stride[i] != b->stride[i]) alike = 0;
        for (j = i; j > 0; j--) {
            uint32_t wide = by_width[j], narrow = by_width[j - 1];
            uint64_t wider = a->count[wide] > 1 ? a->stride[wide] : b->stride[wide];
            if (wider <= (a->count[narrow] > 1 ? a->stride[narrow] : b->stride[narrow])) break;
            by_width[j] = narrow, by_width[j - 1] = wide;
        }
    }
    if (alike) return ptxk__spans_overlap_by_strides(a, b, by_width, 3, (int64_t)(b->at - a->at));
    for (i = 0; i < 3; i++) {
        uint64_t width = a->stride[i], between = b->at - a->at;
        if (a->count[i] <= 1 || !width || !ptxk__span_fits_steps(a, width)
            || !ptxk__span_fits_steps(b, width))
            continue;
        if (a->at > b->at) between = (width - (a->at - b->at) % width) % width;
        between %= width;
        if (ptxk__span_extent(a, width) <= between && ptxk__span_extent(b, width) <= width - between)
            return 0;
    }
    return 1;
}

static int ptxk__spans_are_equal(const ptxk__span *a, const ptxk__span *b) {
    uint32_t i;
    if (!(a->same & b->same) || a->at != b->at || a->row != b->row || a->bytes != b->bytes) return 0;
    for (i = 0; i < 3; i++)
        if (a->count[i] != b->count[i] || (a->count[i] > 1 && a->stride[i] != b->stride[i])) return 0;
    return 1;
}

static ptx_code ptxk__check_distinct(const char *op, const ptxk__span *s, ptxk_message *why) {
    if (ptxk__span_is_distinct(s)) return PTX_E_NONE;
    return ptxk__refuse(why, PTX_E_ARGUMENT,
                        "%s: rows of %s overlap: %llu bytes, with strides of %llu, %llu, %llu", op, s->name,
                        (unsigned long long)s->row, (unsigned long long)s->stride[0],
                        (unsigned long long)s->stride[1], (unsigned long long)s->stride[2]);
}

/* Checks that every needed span has an aligned address, and that written memory has distinct elements and
   overlaps no other span. */
static ptx_code ptxk__check_spans(const char *op, const ptxk__span *span, uint32_t n, ptxk_message *why) {
    ptx_code code;
    uint32_t i, j;
    for (i = 0; i < n; i++) {
        const ptxk__span *s = &span[i];
        if (!s->needed || !s->bytes) continue; /* the address of an empty span is not used */
        if (!s->at) return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s is 0", op, s->name);
        if (s->at % s->align)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s is not aligned to %u bytes", op, s->name,
                                s->align);
        if (s->bytes > UINT64_MAX - s->at)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s passes 2^64", op, s->name);
        if (s->written && (code = ptxk__check_distinct(op, s, why)) != PTX_E_NONE) return code;
    }
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) {
            const ptxk__span *a = &span[i], *b = &span[j];
            if (i == j || !a->written || !a->needed || !b->needed || (b->written && j < i)) continue;
            if (ptxk__spans_overlap(a, b) && !ptxk__spans_are_equal(a, b))
                return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: %s overlaps %s", op, a->name, b->name);
        }
    return PTX_E_NONE;
}

/* Checks the strides, in elements, of one sequence's caches: rows of `bytes` bytes, strides in multiples of
   `whole` elements. */
static ptx_code ptxk__check_cache(const char *op, uint32_t kv_heads, uint32_t max_seq, uint64_t head_stride,
                                  uint64_t row_stride, uint32_t d, uint32_t whole, uint64_t most,
                                  ptxk_message *why) {
    ptxk__span rows = ptxk__span_of("a cache", 0, d, 1, 1);
    int fits = 1;
    uint64_t a = ptxk__multiply_checked(head_stride, kv_heads - 1, &fits),
             b = ptxk__multiply_checked(row_stride, max_seq - 1, &fits);
    if (head_stride % whole || row_stride % whole)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "%s: the strides %llu and %llu must be multiples of %u elements", op,
                            (unsigned long long)head_stride, (unsigned long long)row_stride, whole);
    if (!fits || a > UINT64_MAX >> 4 || b > UINT64_MAX >> 4 || row_stride > most)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: the strides pass 2^60 elements, or that of rows %llu",
                            op, (unsigned long long)most);
    ptxk__span_repeat(&rows, 0, kv_heads, head_stride);
    ptxk__span_repeat(&rows, 1, max_seq, row_stride);
    if (!ptxk__span_is_distinct(&rows))
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "%s: rows overlap with a head_stride of %llu and a row_stride of %llu", op,
                            (unsigned long long)head_stride, (unsigned long long)row_stride);
    return PTX_E_NONE;
}

/* The span of K or of V: the pool, or the array of `batch` addresses. */
static ptxk__span ptxk__span_cache(const char *name, uint64_t at, uint32_t batch, uint32_t page_size,
                                   uint32_t pool_pages, uint64_t row_bytes, int written) {
    ptxk__span s;
    if (!page_size) return ptxk__span_of(name, at, (uint64_t)batch * 8, 8, 1);
    s = ptxk__span_of(name, at, row_bytes, 16, 1); /* of all heads */
    ptxk__span_repeat(&s, 0, page_size, row_bytes);
    ptxk__span_repeat(&s, 1, pool_pages, row_bytes * page_size);
    return written ? ptxk__span_written(s, 0) : s;
}

/* -- vocabulary: reductions, loads and stores, arithmetic -- */

/* Errors in the public vocabulary carry the caller's line: here the site that the builder's macros take is a
   parameter. */
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

PTXGEN_API void ptxk_load16_(ptx_kernel *k, const char *site, const ptx_val *p, ptx_mem mem,
                             ptx_val words[4]) {
    if (p)
        ptx_ld_vec_if(k, *p, PTX_B32, 4, mem, ptx_b32(0), words);
    else
        ptx_ld_vec(k, PTX_B32, 4, mem, words);
}

/* Converts the two halves of a word, f16 or bf16, to f32. */
#define ptxk__widen_word(k, stored, word, out) ptxk__widen_word_((k), PTX__AT, (stored), (word), (out))
static void ptxk__widen_word_(ptx_kernel *k, const char *site, ptx_type stored, ptx_val word,
                              ptx_val out[2]) {
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

/* The number of b32 words in an access of `bytes` bytes; 0: one b16. */
static uint32_t ptxk__access_words(uint32_t bytes) { return bytes / 4; }

PTXGEN_API void ptxk_load_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                               ptx_val *out) {
    ptx_val words[4], wide[8];
    uint32_t i, count = ptxk__access_words(n * (stored == PTX_F32 ? 4u : 2u));
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

/* Converts f32 to bf16 bits, rounded to nearest even, on targets without the instruction. */
static ptx_val ptxk__to_bf16(ptx_kernel *k, const char *site, ptx_val x) {
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
    for (i = 0; i < ptxk__access_words(n * (stored == PTX_F32 ? 4u : 2u)); i++) {
        if (stored == PTX_F32) {
            words[i] = ptx_as(x[i], PTX_B32);
        } else if (modern) {
            words[i] = ptx_cvt_pair(k, packed, x[2 * i + 1], x[2 * i]);
            words[i] = ptx_as(words[i], PTX_B32);
        } else {
            pair[0] = stored == PTX_F16 ? ptx_cvt(k, stored, x[2 * i]) : ptxk__to_bf16(k, site, x[2 * i]);
            pair[1] =
                stored == PTX_F16 ? ptx_cvt(k, stored, x[2 * i + 1]) : ptxk__to_bf16(k, site, x[2 * i + 1]);
            words[i] = ptx_pack(k, PTX_B32, 2, pair);
        }
    }
}

PTXGEN_API void ptxk_store_f32_(ptx_kernel *k, const char *site, ptx_type stored, uint32_t n, ptx_mem mem,
                                const ptx_val *x) {
    ptx_val words[4];
    uint32_t count = ptxk__access_words(n * (stored == PTX_F32 ? 4u : 2u));
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

PTXGEN_API ptx_val ptxk_rcp_or_zero_(ptx_kernel *k, const char *site, ptx_val b) {
    ptx_val zero = ptx_setp(k, PTX_EQ, b, ptx_f32(0));
    ptx_val inverse = ptx_rcp(k, b);
    return ptx_selp(k, ptx_f32(0), inverse, zero);
}

PTXGEN_API ptx_val ptxk_div_up_(ptx_kernel *k, const char *site, ptx_val a, ptx_val b) {
    ptx_val sum = ptx_add(k, a, b);
    ptx_val last = ptx_sub(k, sum, ptx_u32(1));
    return ptx_div(k, last, b);
}

/* Errors in the operations carry the line of the emit call: it starts each kernel with its caller's site, and
   the calls on the kernel need none of their own. */
#undef PTX__AT
#define PTX__AT NULL

/* -- vocabulary: arguments of a kernel -- */

/* Loads a pointer to global memory from the arguments. */
static ptx_val ptxk__arg_ptr(ptx_kernel *k, ptx_val args, size_t offset) {
    ptx_val p = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offset));
    return ptx_ptr(p, PTX_GLOBAL);
}

/* Loads a u32 from the arguments. */
static ptx_val ptxk__arg_u32(ptx_kernel *k, ptx_val args, size_t offset) {
    return ptx_ld(k, PTX_U32, ptx_at(args, (int64_t)offset));
}

/* array[index], or `otherwise` where the array's address is 0. */
static ptx_val ptxk__optional_u32(ptx_kernel *k, ptx_val args, size_t offset, ptx_val index,
                                  ptx_val otherwise) {
    ptx_val array = ptxk__arg_ptr(k, args, offset);
    ptx_val there = ptx_setp(k, PTX_NE, array, ptx_u64(0));
    ptx_val at = ptx_ptr_add(k, array, index, 4);
    return ptx_ld_if(k, there, PTX_U32, ptx_at(at, 0), otherwise);
}

/* -- vocabulary: numbers in kernels -- */

/* Like ptxk_load_f32, under predicate p: zeros where it does not hold. p NULL: always. */
static void ptxk__load_f32_if(ptx_kernel *k, const ptx_val *p, ptx_type stored, uint32_t n, ptx_mem mem,
                              ptx_val *out) {
    ptx_val words[4], wide[8];
    uint32_t i, count = n * (stored == PTX_F32 ? 4u : 2u) / 4;
    if (!p) {
        ptxk_load_f32(k, stored, n, mem, out);
        return;
    }
    if (count > 1) {
        ptx_ld_vec_if(k, *p, PTX_B32, count, mem, ptx_b32(0), words);
    } else if (count) {
        words[0] = ptx_ld_if(k, *p, PTX_B32, mem, ptx_b32(0));
    } else {
        words[0] = ptx_ld_if(k, *p, PTX_U16, mem, ptx_imm(0));
        words[0] = ptx_as(ptx_cvt(k, PTX_U32, words[0]), PTX_B32);
        count = 1;
    }
    for (i = count; i < 4; i++) words[i] = words[0];
    ptxk_widen(k, stored, words, wide);
    for (i = 0; i < n; i++) out[i] = wide[i];
}

/* Rounds x to the type, as a store and a load would. */
static ptx_val ptxk__round_to_type(ptx_kernel *k, ptx_type stored, ptx_val x) {
    ptx_val half;
    if (stored == PTX_F32) return x;
    if (stored == PTX_F16) {
        half = ptx_cvt(k, PTX_F16, x);
        return ptx_cvt(k, PTX_F32, half);
    }
    half = ptxk__to_bf16(k, PTX__AT, x);
    half = ptx_cvt(k, PTX_U32, ptx_as(half, PTX_U16));
    half = ptx_shl(k, half, ptx_u32(16));
    return ptx_as(half, PTX_F32);
}

/* min(x, limit); NaN stays NaN. */
static ptx_val ptxk__min_keep_nan(ptx_kernel *k, ptx_val x, double limit) {
    ptx_val above;
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80)
        return ptx_op2(k, PTX_MIN, PTX_NAN, x, ptx_f32(limit));
    above = ptx_setp(k, PTX_GT, x, ptx_f32(limit));
    return ptx_selp(k, ptx_f32(limit), x, above);
}

/* Packs two f32 into one register of two f16 or bf16 (sm_80 on), the first in the low half. */
static ptx_val ptxk__pack_f32(ptx_kernel *k, ptx_type type, ptx_val low, ptx_val high) {
    ptx_val pair[2], whole;
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80) {
        whole = ptx_cvt_pair(k, type == PTX_F16 ? PTX_F16X2 : PTX_BF16X2, high, low);
        return ptx_as(whole, PTX_B32);
    }
    pair[0] = ptx_cvt(k, type, low);
    pair[1] = ptx_cvt(k, type, high);
    return ptx_pack(k, PTX_B32, 2, pair);
}

/* Replaces +inf by the largest finite number, so that inf - inf is never computed. NaN stays NaN. */
static ptx_val ptxk__clamp_infinity(ptx_kernel *k, ptx_val x) {
    ptx_val infinite;
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80)
        return ptx_op2(k, PTX_MIN, PTX_NAN, x, ptx_f32(FLT_MAX));
    infinite = ptx_setp(k, PTX_EQ, x, ptx_f32(INFINITY));
    return ptx_selp(k, ptx_f32(FLT_MAX), x, infinite);
}

/* 1 / (1 + 2^x), approximate. */
static ptx_val ptxk__logistic(ptx_kernel *k, ptx_val x) {
    x = ptx_ex2(k, x);
    x = ptx_op2(k, PTX_ADD, PTX_RN, x, ptx_f32(1));
    return ptx_op1(k, PTX_RCP, PTX_APPROX, x);
}

/* g / (1 + e^-g) */
static ptx_val ptxk__silu(ptx_kernel *k, ptx_val g) {
    ptx_val e = ptx_op2(k, PTX_MUL, PTX_RN, g, ptx_f32(-1.44269504088896340736f));
    e = ptx_ex2(k, e);
    e = ptx_add(k, e, ptx_f32(1));
    return ptx_op2(k, PTX_DIV, PTX_RN, g, e);
}

/* gelu(x) by tanh: x / (1 + e^(-2 c (x + 0.044715 x^3))), c = sqrt(2 / pi). */
static ptx_val ptxk__gelu(ptx_kernel *k, ptx_val x) {
    const double c = -2 * 0.79788456080286535588 * 1.44269504088896340736; /* -2 sqrt(2 / pi) log2 e */
    ptx_val t = ptx_op2(k, PTX_MUL, PTX_RN, x, x);
    t = ptx_fma(k, t, ptx_f32(c * 0.044715), ptx_f32(c));
    t = ptx_op2(k, PTX_MUL, PTX_RN, t, x);
    t = ptxk__logistic(k, t);
    return ptx_op2(k, PTX_MUL, PTX_RN, x, t);
}

/* -- vocabulary: tiles in shared memory -- */

/* A tile in shared memory: rows of 16-byte chunks, `pitch` chunks apart, swizzled. Chunk c of row r lies at
   chunk c ^ turn(r). Then neither the same chunk of 8 consecutive rows (ldmatrix) nor 8 consecutive chunks of
   one row (copies) have a bank conflict. turn(r) takes the bits of r for which r times the pitch is the same
   modulo 8. */
typedef struct ptxk__tile {
    uint32_t rows, chunks; /* what is copied */
    uint32_t wide;         /* chunks of a row, an even number: the last may be padding of zeros */
    uint32_t pitch;
    uint32_t swap;    /* chunks that the swizzle permutes: a power of two, 2 to 8 */
    uint32_t panel;   /* chunks between panels of 8 chunks of all rows, as wgmma reads them; 0: no panels */
    uint32_t threads; /* threads of the block that copies the tile */
    uint32_t pass;    /* rows that the block copies at once: a power of two */
} ptxk__tile;

/* Computes a tile's form. even: the pitch is a multiple of so many chunks (2, 4 or 8). */
static void ptxk__tile_form(ptxk__tile *t, uint32_t rows, uint32_t row_bytes, uint32_t even,
                            uint32_t threads) {
    t->rows = rows;
    t->panel = 0;
    t->chunks = ptxk__ceil_div(row_bytes, 16);
    t->wide = (t->chunks + 1) / 2 * 2;
    t->pitch = ptxk__ceil_div(t->wide, even) * even;
    for (t->swap = 2; t->swap < 8 && t->pitch % (2 * t->swap) == 0;) t->swap *= 2;
    t->threads = threads;
    for (t->pass = 1; 2 * t->pass * t->wide <= threads && rows % (2 * t->pass) == 0;) t->pass *= 2;
}

static uint32_t ptxk__tile_bytes(const ptxk__tile *t) { return t->rows * t->pitch * 16; }

/* The byte offset in the tile of chunk `chunk` of row `row`, both u32. */
static ptx_val ptxk__tile_chunk_offset(ptx_kernel *k, const ptxk__tile *t, ptx_val row, ptx_val chunk) {
    ptx_val turn = row, at;
    if (t->swap < 8) turn = ptx_div(k, row, ptx_u32(8 / t->swap));
    turn = ptx_and(k, turn, ptx_u32(t->swap - 1));
    turn = ptx_xor(k, turn, chunk);
    if (t->panel) {
        at = ptx_shr(k, chunk, ptx_u32(3));
        chunk = ptx_mul(k, at, ptx_u32(t->panel - 8));
        turn = ptx_add(k, turn, chunk);
    }
    at = ptx_mad(k, row, ptx_u32(t->pitch), turn);
    return ptx_mul(k, at, ptx_u32(16));
}

/* The part of a tile that a thread copies: chunk `chunk` of rows row, row + pass, row + 2 pass ... */
typedef struct ptxk__tile_copier {
    ptx_val row, chunk;
    ptx_val to[8];       /* byte offset in the tile for pass i, by i modulo 8 / pass */
    ptx_val busy, there; /* predicates: the thread copies; its chunk is not padding */
} ptxk__tile_copier;

static uint32_t ptxk__tile_phases(const ptxk__tile *t) {
    return t->pass < 8 && t->pass < t->rows ? 8 / t->pass : 1;
}

static void ptxk__tile_copier_new(ptx_kernel *k, const ptxk__tile *t, ptx_val tid, ptxk__tile_copier *c) {
    uint32_t i;
    c->row = ptx_div(k, tid, ptx_u32(t->wide));
    c->chunk = ptx_rem(k, tid, ptx_u32(t->wide));
    if (t->pass * t->wide < t->threads) c->busy = ptx_setp(k, PTX_LT, tid, ptx_u32(t->pass * t->wide));
    if (t->wide > t->chunks) c->there = ptx_setp(k, PTX_LT, c->chunk, ptx_u32(t->chunks));
    for (i = 0; i < ptxk__tile_phases(t); i++) {
        ptx_val row = i ? ptx_add(k, c->row, ptx_u32(i * t->pass)) : c->row;
        c->to[i] = ptxk__tile_chunk_offset(k, t, row, c->chunk);
    }
}

/* at + rows * stride * bytes, in 64 bits. stride: u32, elements of `bytes` bytes; rows * bytes is below
   2^32. */
static ptx_val ptxk__advance_rows(ptx_kernel *k, ptx_val at, ptx_val stride, uint32_t rows, uint32_t bytes) {
    at = ptx_mad_wide(k, stride, ptx_u32(rows * bytes), ptx_as(at, PTX_U64));
    return ptx_ptr(at, PTX_GLOBAL);
}

/* The global address of this thread's first chunk of the tile whose row 0 is at `at`. stride: u32, elements
   from row to row. */
static ptx_val ptxk__tile_copy_source(ptx_kernel *k, const ptxk__tile_copier *c, ptx_val at, ptx_val stride,
                                      uint32_t bytes) {
    ptx_val row = ptx_mul_wide(k, c->row, stride);
    at = ptx_ptr_add(k, at, row, bytes);
    return ptx_ptr_add(k, at, c->chunk, 16);
}

/* Copies the first `rows` rows (s32, negative counts as 0) of a tile to the shared address `to`, and fills
   the others with zeros. from: of ptxk__tile_copy_source. From sm_80 on this issues cp.async, which belongs
   to the next committed group; before, it stores, and needs a barrier. */
static void ptxk__tile_copy(ptx_kernel *k, const ptxk__tile *t, const ptxk__tile_copier *c, ptx_val to,
                            ptx_val from, ptx_val stride, uint32_t bytes, ptx_val rows) {
    int async = (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80;
    uint32_t passes = t->rows / t->pass, phases = ptxk__tile_phases(t), i, j, n = async ? 1 : 2;
    ptx_val base[8], left, p, valid, words[2][4], here;
    left = ptx_sub(k, rows, ptx_as(c->row, PTX_S32));
    if (t->wide > t->chunks) left = ptx_selp(k, left, ptx_s32(0), c->there);
    for (i = 0; i < phases; i++) base[i] = ptx_ptr_add(k, to, c->to[i], 1);
    for (i = 0; i < passes; i += n) {
        for (j = i; j < i + n && j < passes; j++) {
            p = ptx_setp(k, PTX_GT, left, ptx_s32((int64_t)(j * t->pass)));
            here = j ? ptxk__advance_rows(k, from, stride, j * t->pass, bytes) : from;
            if (async) {
                valid = ptx_selp(k, ptx_u32(16), ptx_u32(0), p);
                if (t->pass * t->wide < t->threads) ptx_guard(k, c->busy);
                ptx_cp_async_16_zfill(
                    k, ptx_off(base[j % phases], (int64_t)(j / phases * phases * t->pass * t->pitch * 16)),
                    here, valid);
            } else {
                if (t->pass * t->wide < t->threads) p = ptx_and(k, p, c->busy);
                ptxk_load16(k, &p, ptx_with(ptx_at(here, 0), PTX_NC), words[j - i]);
            }
        }
        for (j = i; !async && j < i + n && j < passes; j++) {
            if (t->pass * t->wide < t->threads) ptx_guard(k, c->busy);
            ptx_st_vec(k, PTX_B32, 4,
                       ptx_at(base[j % phases], (int64_t)(j / phases * phases * t->pass * t->pitch * 16)),
                       words[j - i]);
        }
    }
}

static void ptxk__tile_commit(ptx_kernel *k) {
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80) ptx_cp_async_commit(k);
}

/* Waits until all copies have arrived for all threads. After it, what they read before may be overwritten. */
static void ptxk__tile_wait(ptx_kernel *k) {
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80) ptx_cp_async_wait(k, 0);
    ptx_bar_sync(k, ptx_imm(0));
}

/* The address from which a lane reads fragments: row `row` (u32) of any 8 or 16 rows that begin at a multiple
   of 8, chunk 2 i + half (u32, 0 or 1) of pair i. The choice of row and half for each lane decides which
   fragment ldmatrix loads. The tile must begin at a multiple of 128: then chunk 2 i differs from chunk 0 in
   bits only, and one register serves all pairs. */
static ptx_val ptxk__tile_reader(ptx_kernel *k, const ptxk__tile *t, ptx_val tile, ptx_val row,
                                 ptx_val half) {
    ptx_val at = ptxk__tile_chunk_offset(k, t, row, half);
    return ptx_ptr_add(k, tile, at, 1);
}

/* The reader address for pair i, and the byte offset of the pair from it, in the rows from first_row (a
   multiple of 8) on. */
static ptx_val ptxk__tile_pair_reader(ptx_kernel *k, const ptxk__tile *t, ptx_val reader, uint32_t pair) {
    uint32_t bits = 2 * pair % t->swap * 16;
    if (!bits) return reader;
    reader = ptx_xor(k, ptx_as(reader, PTX_B32), ptx_b32(bits));
    return ptx_ptr(ptx_as(reader, PTX_U32), PTX_SHARED);
}

static int64_t ptxk__tile_offset(const ptxk__tile *t, uint32_t first_row, uint32_t pair) {
    return (int64_t)((first_row * t->pitch + 2 * pair / t->swap * t->swap) * 16);
}

/* The address of this lane's chunk of a pair. */
static ptx_val ptxk__tile_pair_address(ptx_kernel *k, const ptxk__tile *t, ptx_val reader, uint32_t first_row,
                                       uint32_t pair) {
    reader = ptxk__tile_pair_reader(k, t, reader, pair);
    return ptx_off(reader, ptxk__tile_offset(t, first_row, pair));
}

/* The byte distance from a chunk of a row below 8 to the same chunk `rows` rows further on. The tile begins
   at a multiple of 128; rows is a multiple of 8, or of a power of two that the row is below. */
static ptx_val ptxk__tile_row_distance(ptx_kernel *k, const ptxk__tile *t, ptx_val place, uint32_t rows) {
    uint32_t turn = rows / (8 / t->swap) % t->swap;
    if (turn) {
        place = ptx_xor(k, ptx_as(place, PTX_B32), ptx_b32(turn * 16));
        place = ptx_ptr(ptx_as(place, PTX_U32), PTX_SHARED);
    }
    return ptx_off(place, (int64_t)(rows * t->pitch * 16));
}

/* -- vocabulary: products of tiles -- */

/* Row and chunk that a lane passes to ldmatrix to load fragments of 16 rows and two chunks (16 elements of 2
   bytes, or 8 of 4), and the registers that it gets:
     rows    A of mma m16n8k16, rows of the tile as rows: a0 ... a3
     columns B of two adjacent mma, rows of the tile as columns: b0, b1 of rows 0-7, b0, b1 of rows 8-15
     across  (trans) B of two mma, rows of the tile along k: b0, b1 of chunk 0, b0, b1 of chunk 1 */
static void ptxk__lane_rows(ptx_kernel *k, ptx_val lane, ptx_val *row, ptx_val *half) {
    *row = ptx_and(k, lane, ptx_u32(15));
    *half = ptx_shr(k, lane, ptx_u32(4));
}

static void ptxk__lane_columns(ptx_kernel *k, ptx_val lane, ptx_val *row, ptx_val *half) {
    ptx_val low = ptx_and(k, lane, ptx_u32(7)), high = ptx_shr(k, lane, ptx_u32(4));
    *row = ptx_mad(k, high, ptx_u32(8), low);
    *half = ptx_bfe(k, lane, ptx_u32(3), ptx_u32(1));
}

/* d += a b, 16 x 8, over two chunks along k. type: of the elements; PTX_F32 runs as tf32. Before sm_80: two
   products of half the depth. */
static void ptxk__tile_mma(ptx_kernel *k, ptx_type type, ptx_val d[4], const ptx_val a[4],
                           const ptx_val b[2]) {
    ptx_val out[4];
    uint32_t i;
    if (type == PTX_F32) {
        ptx_mma(k, PTX_MMA_M16N8K8_F32, PTX_TF32, PTX_TF32, out, a, b, d);
    } else if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80) {
        ptx_mma(k, PTX_MMA_M16N8K16_F32, type, type, out, a, b, d);
    } else {
        ptx_mma(k, PTX_MMA_M16N8K8_F32, type, type, out, a, b, d);
        for (i = 0; i < 4; i++) d[i] = out[i];
        ptx_mma(k, PTX_MMA_M16N8K8_F32, type, type, out, a + 2, b + 1, d);
    }
    for (i = 0; i < 4; i++) d[i] = out[i];
}

/* -- vocabulary: the blocks of a cluster -- */

#define PTXK__CLUSTER 8u /* the largest portable cluster */

/* The blocks of a cluster lie along z; their number is the launch's. Without clusters, each block is a
   cluster of its own. Blocks of the highest ranks may exit at once: the cluster barrier waits only for the
   live ones, and nobody reads the shared memory of the others. */
typedef struct ptxk__cluster {
    int possible;
    ptx_val rank, live; /* this block's rank; the number of live blocks, ranks 0 ... live - 1 */
} ptxk__cluster;

static ptxk__cluster ptxk__cluster_new(ptx_kernel *k) {
    ptxk__cluster c;
    c.possible = (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 90;
    c.live = ptx_u32(1);
    c.rank = ptx_u32(0);
    if (c.possible) ptx_max_cluster(k, PTXK__CLUSTER);
    return c;
}

/* The condition on which a block of the cluster may exit. It need not be uniform over the cluster: see
   above. */
static ptx_val ptxk__cluster_exit_condition(ptx_kernel *k, const ptxk__cluster *c, ptx_val p) {
    return c->possible ? ptx_cluster_uniform(k, p) : p;
}

/* Splits the cluster barrier: work between arrive and wait does not wait for other blocks. */
static void ptxk__cluster_arrive(ptx_kernel *k, const ptxk__cluster *c) {
    if (c->possible) ptx_cluster_arrive(k);
}

static void ptxk__cluster_wait(ptx_kernel *k, const ptxk__cluster *c) {
    if (c->possible) ptx_cluster_wait(k);
}

/* A barrier of the cluster; it includes one of the block. */
static void ptxk__cluster_barrier(ptx_kernel *k, const ptxk__cluster *c) {
    if (!c->possible) {
        ptx_bar_sync(k, ptx_imm(0));
        return;
    }
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
}

/* p where this block owns piece i of work shared by the live blocks, else false. */
static ptx_val ptxk__cluster_owns_piece(ptx_kernel *k, const ptxk__cluster *c, ptx_val i, ptx_val p) {
    ptx_val mine;
    if (!c->possible) return p;
    mine = ptx_rem(k, i, c->live);
    mine = ptx_setp(k, PTX_EQ, mine, c->rank);
    return ptx_and(k, p, mine);
}

/* The address in the `turn`th live block after this one (cyclically) that corresponds to `address` here. */
static ptx_val ptxk__cluster_peer_address(ptx_kernel *k, const ptxk__cluster *c, ptx_val address,
                                          ptx_val turn) {
    ptx_val rank = ptx_add(k, c->rank, turn), less, p;
    less = ptx_sub(k, rank, c->live);
    p = ptx_setp(k, PTX_GE, rank, c->live);
    rank = ptx_selp(k, less, rank, p);
    return ptx_mapa(k, address, rank);
}

/* Broadcasts to the shared memory of every live block what each block has a share of. The caller writes its
   share to `to`, first in this block, then in each other, in a loop; a cluster barrier ends it.

       for (pass = 0; ptxk__cluster_broadcast(k, c, pass, here, &to); pass++) write(to);

   The block must have called ptxk__cluster_arrive before: others may overwrite `here` from then on. */
static int ptxk__cluster_broadcast(ptx_kernel *k, const ptxk__cluster *c, uint32_t pass, ptx_val here,
                                   ptx_val *to) {
    ptx_val turn;
    *to = here;
    if (!pass) return 1;
    if (pass == 1 && c->possible) {
        ptx_cluster_wait(k);
        turn = ptx_for(k, ptx_u32(1), c->live, ptx_u32(1));
        *to = ptxk__cluster_peer_address(k, c, here, turn);
        return 1;
    }
    if (c->possible) ptx_end(k);
    ptxk__cluster_barrier(k, c);
    return 0;
}

/* -- vocabulary: pages of a pool -- */

/* The row number, u64, of a head at a position of a page. Pages are [kv_heads, page_size] rows, or, with
   rows_first, [page_size, kv_heads]. */
static ptx_val ptxk__page_row(ptx_kernel *k, uint32_t kv_heads, uint32_t page_size, int rows_first,
                              ptx_val page, ptx_val head, ptx_val position) {
    ptx_val inner = ptx_cvt(k, PTX_U64, rows_first ? position : head), row;
    row = ptx_mad_wide(k, page, ptx_u32(rows_first ? page_size : kv_heads), inner);
    inner = ptx_cvt(k, PTX_U64, rows_first ? head : position);
    return ptx_mad(k, row, ptx_u64(rows_first ? kv_heads : page_size), inner);
}

/* -- vocabulary: online softmax -- */

#define PTXK__LOW 32.0f /* weights are at most 2^-32, so that sums of 2^31 values near FLT_MAX stay finite */

/* The weight 2^(x - y) of a score x relative to the maximum y. */
static ptx_val ptxk__score_weight(ptx_kernel *k, ptx_val x, ptx_val y) {
    ptx_val difference = ptx_sub(k, x, y);
    return ptx_ex2(k, difference);
}

/* Whether the scale is applied after q . k: a scale above 1 could make q infinite, and 0 in K then NaN. */
static int ptxk__scale_is_late(float scale) { return scale < -1 || scale > 1; }

/* Online softmax. A state is a reference `most` in base 2, the sum of the weights 2^(score - most), and the
   caller's sums of weighted values. */
typedef struct ptxk__softmax {
    ptx_var most, total;
} ptxk__softmax;

static ptxk__softmax ptxk__softmax_new(ptx_kernel *k) {
    ptxk__softmax s;
    s.most = ptx_var_new(k, ptx_f32(-FLT_MAX)); /* not -inf: a score of -inf then has the weight 2^-inf = 0 */
    s.total = ptx_var_new(k, ptx_f32(0));
    return s;
}

/* Replaces a score of +inf by the largest number, so that inf - inf is never computed. NaN stays NaN. */
static ptx_val ptxk__softmax_finite(ptx_kernel *k, ptx_val x) {
    ptx_val infinite;
    if ((ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80)
        return ptx_op2(k, PTX_MIN, PTX_NAN, x, ptx_f32(FLT_MAX));
    infinite = ptx_setp(k, PTX_EQ, x, ptx_f32(INFINITY));
    return ptx_selp(k, ptx_f32(FLT_MAX), x, infinite);
}

/* Sets the reference to `most`. Returns the factor for the caller's sums. */
static ptx_val ptxk__softmax_set_reference(ptx_kernel *k, const ptxk__softmax *s, ptx_val most) {
    ptx_val old = ptx_get(k, s->most), total = ptx_get(k, s->total), shrink;
    shrink = ptxk__score_weight(k, old, most);
    total = ptx_op2(k, PTX_MUL, PTX_RN, total, shrink);
    ptx_set(k, s->most, most);
    ptx_set(k, s->total, total);
    return shrink;
}

/* Merges n states: the reference and total of all, and the factor for the sums of each. */
static void ptxk__softmax_merge(ptx_kernel *k, uint32_t n, const ptx_val *most, const ptx_val *total,
                                ptx_val *factor, ptx_val *top, ptx_val *all) {
    uint32_t i;
    *top = most[0];
    for (i = 1; i < n; i++) *top = ptx_max(k, *top, most[i]);
    for (i = 0; i < n; i++) {
        factor[i] = ptxk__score_weight(k, most[i], *top);
        *all = i ? ptx_fma(k, factor[i], total[i], *all) : ptx_op2(k, PTX_MUL, PTX_RN, factor[i], total[i]);
    }
}

/* -- vocabulary: the last block to arrive -- */

/* Decides which block is the last to arrive. All threads of a block call it after their writes to global
   memory. It returns true in all threads of the last of `count` blocks with this counter (u32, global, 0
   before and after); that block then sees the writes of the others. flag: 4 bytes of shared memory that
   nothing else uses meanwhile. */
static ptx_val ptxk__is_last_block(ptx_kernel *k, ptx_val tid, ptx_val counter, ptx_val count, ptx_val flag) {
    ptx_val last = ptx_sub(k, count, ptx_u32(1)), p, old;
    ptx_bar_sync(k, ptx_imm(0));
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_if(k, p);
    {
        /* release: the barrier orders the block's writes before it; acquire: orders the other blocks' writes
           before the reads that follow. inc wraps to 0 at `last`, ready for the next launch. */
        old = ptx_atom(k, PTX_ATOM_INC | PTX_ACQ_REL | PTX_GPU, ptx_at(counter, 0), last);
        ptx_st(k, PTX_U32, ptx_at(flag, 0), old);
    }
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    old = ptx_ld(k, PTX_U32, ptx_at(flag, 0));
    old = ptx_uniform(k, old);
    return ptx_setp(k, PTX_EQ, old, last);
}

/* -- vocabulary: rows of elements -- */

/* How a row of n elements is divided: among a warp up to n 1024, else among a block; in registers up to
   16384. Element e of a thread's access `round` is (round * threads + thread) * vec + e. */
#define PTXK__ROW_LANES 32u   /* most elements of a lane where a warp has a row */
#define PTXK__ROW_THREADS 16u /* most of a thread where a block has it: 1024 threads have 64 registers each */
#define PTXK__N_MAX (1u << 24)

typedef struct ptxk__row {
    uint32_t n, vec, threads, rounds;
    uint32_t passes; /* passes over the row, each of `rounds` accesses a thread; 1: it stays in registers */
    uint32_t block;  /* threads of a block */
} ptxk__row;

static ptxk__row ptxk__row_form(uint32_t n, uint32_t widest) {
    ptxk__row f;
    f.n = n;
    for (f.vec = 16 / widest; n % f.vec;) f.vec /= 2;
    if (n <= 1024) {
        f.threads = 32;
    } else {
        for (f.threads = 128; f.threads < 1024 && n > f.threads * PTXK__ROW_THREADS;) f.threads *= 2;
    }
    f.rounds = ptxk__ceil_div(n, f.threads * f.vec);
    f.passes = 1;
    if (f.threads > 32 && f.rounds * f.vec > PTXK__ROW_THREADS) {
        f.rounds = PTXK__ROW_THREADS / 2 / f.vec;
        f.passes = ptxk__ceil_div(n, f.threads * f.vec * f.rounds);
    }
    f.block = f.threads == 32 ? 256 : f.threads;
    return f;
}

static uint32_t ptxk__row_grid(const ptxk__row *f, uint32_t rows) {
    return ptxk__ceil_div(rows, f->block / f->threads);
}

/* The position of a thread: its row, its first element, and predicates for the accesses inside the row. */
typedef struct ptxk__row_position {
    ptx_val row, lane, start; /* start: lane * vec, plus the offset of the pass */
    ptx_val inside[32];
} ptxk__row_position;

/* Begins a row kernel; warps without a row exit. */
static void ptxk__row_start(ptx_kernel *k, const ptxk__row *f, ptx_val rows, ptxk__row_position *s) {
    ptx_val tid = ptx_tid_x(k), p;
    s->row = ptx_ctaid_x(k);
    s->lane = tid;
    if (f->threads == 32) {
        p = ptx_shr(k, tid, ptx_u32(5));
        s->row = ptx_mad(k, s->row, ptx_u32(f->block / 32), p);
        s->lane = ptx_and(k, tid, ptx_u32(31));
        p = ptx_setp(k, PTX_GE, s->row, rows);
        ptx_guard(k, p);
        ptx_ret(k);
    }
    s->start = f->vec > 1 ? ptx_mul(k, s->lane, ptx_u32(f->vec)) : s->lane;
}

static int ptxk__row_partial(const ptxk__row *f, uint32_t round) {
    uint32_t size = f->threads * f->vec;
    return f->passes > 1 ? f->n % (size * f->rounds) != 0 : (round + 1) * size > f->n;
}

static void ptxk__row_inside(ptx_kernel *k, const ptxk__row *f, ptxk__row_position *s) {
    uint32_t r;
    for (r = 0; r < f->rounds; r++) {
        if (ptxk__row_partial(f, r)) {
            ptx_val i = r ? ptx_add(k, s->start, ptx_u32(r * f->threads * f->vec)) : s->start;
            s->inside[r] = ptx_setp(k, PTX_LT, i, ptx_u32(f->n));
        }
    }
}

/* The address of the thread's first element in the row; row NULL: in a row of weights. */
static ptx_val ptxk__row_address(ptx_kernel *k, const ptxk__row *f, const ptxk__row_position *s, ptx_val args,
                                 size_t offset, uint32_t bytes, int own) {
    ptx_val at = ptxk__arg_ptr(k, args, offset);
    if (own) at = ptx_ptr_add(k, at, s->row, f->n * bytes);
    return ptx_ptr_add(k, at, s->start, bytes);
}

static void ptxk__row_load(ptx_kernel *k, const ptxk__row *f, const ptxk__row_position *s, ptx_type type,
                           ptx_val at, ptx_val *out) {
    uint32_t r, bytes = ptx_type_bytes(type);
    for (r = 0; r < f->rounds; r++)
        ptxk__load_f32_if(k, ptxk__row_partial(f, r) ? &s->inside[r] : NULL, type, f->vec,
                          ptx_at(at, (int64_t)r * f->threads * f->vec * bytes), out + r * f->vec);
}

static void ptxk__row_store(ptx_kernel *k, const ptxk__row *f, const ptxk__row_position *s, ptx_type type,
                            ptx_val at, const ptx_val *x) {
    uint32_t r, bytes = ptx_type_bytes(type);
    for (r = 0; r < f->rounds; r++) {
        int partial = ptxk__row_partial(f, r);
        if (partial) ptx_if(k, s->inside[r]);
        ptxk_store_f32(k, type, f->vec, ptx_at(at, (int64_t)r * f->threads * f->vec * bytes), x + r * f->vec);
        if (partial) ptx_end(k);
    }
}

static ptx_val ptxk__row_reduce(ptx_kernel *k, const ptxk__row *f, ptx_op_id op, ptx_val x, ptx_val scratch) {
    if (f->threads == 32) return ptxk_warp_reduce(k, op, x, 1, 32);
    return ptxk_block_reduce(k, op, x, f->threads / 32, scratch);
}

/* Opens a loop over the passes of a row and returns the position in it; *i counts elements. ptx_end() closes
   it. */
static ptxk__row_position ptxk__row_pass(ptx_kernel *k, const ptxk__row *f, const ptxk__row_position *s,
                                         ptx_val *i) {
    ptxk__row_position here = *s;
    *i = ptx_for(k, ptx_u32(0), ptx_u32(f->n), ptx_u32(f->threads * f->vec * f->rounds));
    here.start = ptx_add(k, s->start, *i);
    ptxk__row_inside(k, f, &here);
    return here;
}

/* -- vocabulary: rows of weights, formats -- */

/* Formats of weights: the facts that plans and kernels need. A new format is a ptxk__reader, two functions,
   and its row in ptxk__blocks (and its name in PTXK_FORMATS); gemv, gemm, embed and decoder then take it. The
   first eight have code of their own instead.

   In a step a warp takes `unit` values of a row, 256, 1024 or 2048: all 32 lanes, once or twice. Integers:
   lane 8 j + i takes 32 of the 256 values of block j of 4, in two halves of 16 bytes. `order` says which
   values these are; the layout of x in shared memory is the same for all formats (ptxk__store_x). Plain
   numbers: a lane takes 8 of 256.

   Blocks of 18, 34 and 210 bytes are 2-byte aligned in a row, and rows need not begin at a multiple of 16.
   They are copied to shared memory unchanged, in chunks of 16 bytes. There a lane reads aligned words, one
   more than it needs, and shifts adjacent words together. Bank conflicts are avoided so:
     unit 2048   a lane has two blocks; the four blocks that a warp reads at a time are every second one. For
                 Q4_0 and Q6_K with few columns, whose 1024 values would end within a sector.
     unit 1024   a row's part is cut into runs of whole chunks (a chunk that two runs share is copied twice).
                 Runs of Q8_0 are 144 words apart, 16 banks; those of Q4_0 40 words, 8 banks. Blocks of Q6_K,
                 210 bytes apart, conflict in pairs: one of each pair reads its words in the order 2, 3, 0,
                 1, and a block that begins at a word, and needs no fifth, reads a word again that is in
                 no other lane's bank. */
#define PTXK__ROWS_MAX 4u /* most rows of a warp */

/* scale for each half; without; plain; with a ptxk__reader */
enum { PTXK__SCALED, PTXK__UNSCALED, PTXK__NUMBERS, PTXK__SHARES };
enum { PTXK__PAIRS_APART, PTXK__NIBBLES_APART, PTXK__BLOCKS_OF_32 }; /* orders, see ptxk__lane_places */

typedef struct ptxk__lane { /* values that a lane computes once */
    ptx_val at;             /* 0 ... 7: i above; numbers: 0 ... 31 */
    ptx_val x[2];           /* offsets in a record of x: of the two halves of 16, first time */
    ptx_val d[2], s[2];     /* of the first half's factor; of the sum that this lane adds */
    ptx_val c[10];          /* the format's own */
} ptxk__lane;

typedef struct ptxk__place { /* what a lane reads of a row: shared addresses */
    ptx_val block;           /* its block's first byte */
    ptx_val words;           /* 2-byte aligned formats: aligned words that hold it ... */
    ptx_val pick;            /* prmt selector that joins two of them */
    uint32_t turning;        /* whether lanes may read words in the order 2, 3, 0, 1: */
    ptx_val other, fifth;    /* addresses of the third and fifth word; `words` is the first's */
    ptx_val swapped;         /* predicate: this lane does */
} ptxk__place;

typedef struct ptxk__share {
    ptx_val half[2][4]; /* bytes: the integers times a constant of the format */
    ptx_val scale[2];   /* s32, of each half: weight = factor * scale * byte - minimum */
    ptx_val factor;     /* f32, of the block */
    ptx_val minimum;    /* f32, of the group of 32 whose sum of x this lane adds */
    ptx_val number[8];  /* f32 */
    ptx_val times[2], minus[2]; /* PTXK__SHARES: f32, of the halves: weight = times * byte - minus */
} ptxk__share;

struct ptxk__reader;

typedef struct ptxk__block {
    const char *name;
    uint32_t id, values, bytes; /* of a block */
    uint32_t aligned;           /* rows and blocks keep 16-byte loads aligned */
    uint32_t kind, order;
    uint32_t is_signed;     /* the bytes */
    uint32_t unit, pair;    /* values of a step with few columns; adjacent blocks of 256 then */
    uint32_t run, run_area; /* values and shared bytes of a run, where a step has 1024; or 0 */
    uint32_t rows;          /* most rows of a warp */
    float first, second;    /* 1 / the constant of the first and second half */
    float offset;           /* subtracted from every integer; has_minimum: blocks have their own */
    uint32_t has_minimum;
    void (*lane)(ptx_kernel *k, ptxk__lane *lane); /* or NULL */
    void (*read)(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at, ptxk__share *share);
    const struct ptxk__reader *reader; /* instead of lane and read */
} ptxk__block;

/* -- vocabulary: rows of weights, one reader for each format -- */

/* Lane i of the 8 that share a 256-value block of Q4_K or Q5_K has bytes 16 i ... 16 i + 15 of the 128. With
   c = i / 2 and h = i % 2, their low nibbles are 16 weights of group 2 c and their high nibbles 16 of group 2
   c + 1. The scales and minimums of those two groups are adjacent in the 12 bytes; for c >= 2 each is in two
   parts. The lane's masks and shifts cover both cases with the same code. */
static void ptxk__q4_k_lane(ptx_kernel *k, ptxk__lane *lane) {
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

/* (a >> shift & mask) | (b >> other & rest) */
static ptx_val ptxk__merge_fields(ptx_kernel *k, ptx_val a, ptx_val shift, ptx_val mask, ptx_val b,
                                  ptx_val other, ptx_val rest) {
    ptx_val high, low;
    high = ptx_shr(k, ptx_as(a, PTX_U32), shift);
    high = ptx_and(k, high, ptx_as(mask, PTX_U32));
    low = ptx_shr(k, ptx_as(b, PTX_U32), other);
    return ptx_lop3(k, ptx_as(low, PTX_B32), rest, ptx_as(high, PTX_B32),
                    ptx_imm(0xea)); /* low & rest | high */
}

/* Reads the first 16 bytes of a block of Q4_K or Q5_K: factors, scales and a minimum. */
static void ptxk__read_k_head(ptx_kernel *k, const ptxk__lane *lane, ptx_val block, ptxk__share *share) {
    ptx_val head[4], half[2], low, minimum;
    ptxk_load16(k, NULL, ptx_at(block, 0), head);
    ptx_unpack(k, PTX_F16, 2, head[0], half);
    share->factor = ptx_cvt(k, PTX_F32, half[0]);
    minimum = ptx_cvt(k, PTX_F32, half[1]);
    low = ptxk__merge_fields(k, head[1], lane->c[0], lane->c[4], head[3], lane->c[1], lane->c[5]);
    share->scale[0] = ptx_and(k, ptx_as(low, PTX_S32), ptx_s32(0xff));
    low = ptx_shr(k, ptx_as(low, PTX_U32), ptx_u32(8));
    share->scale[1] = ptx_as(low, PTX_S32);
    low = ptxk__merge_fields(k, head[2], lane->c[2], lane->c[6], head[3], lane->c[3], lane->c[7]);
    low = ptx_cvt(k, PTX_F32, ptx_as(low, PTX_S32));
    share->minimum = ptx_mul(k, minimum, low);
}

static void ptxk__q4_k_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val own = ptx_ptr_add(k, at->block, lane->at, 16), q[4];
    uint32_t i;
    ptxk_load16(k, NULL, ptx_at(own, 16), q);
    for (i = 0; i < 4; i++) {
        share->half[0][i] = ptx_and(k, q[i], ptx_b32(0x0f0f0f0f));
        share->half[1][i] = ptx_and(k, q[i], ptx_b32(0xf0f0f0f0u)); /* 16 times too large: no shift */
    }
    ptxk__read_k_head(k, lane, at->block, share);
}

/* The fifth bits of this lane's groups are bits 2 c and 2 c + 1 of 16 bytes that all lanes with the same h
   read. */
static void ptxk__q5_k_lane(ptx_kernel *k, ptxk__lane *lane) {
    ptx_val pair, odd;
    ptxk__q4_k_lane(k, lane);
    pair = ptx_and(k, lane->at, ptx_u32(6));
    lane->c[8] = ptx_sub(k, ptx_u32(36), pair); /* rotates bit 2 c to bit 4, and 2 c + 1 to 5 */
    odd = ptx_and(k, lane->at, ptx_u32(1));
    lane->c[9] = ptx_shl(k, odd, ptx_u32(4));
}

static void ptxk__q5_k_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val own = ptx_ptr_add(k, at->block, lane->at, 16), fifth, q[4], h[4], x;
    uint32_t i;
    fifth = ptx_ptr_add(k, at->block, lane->c[9], 1);
    ptxk_load16(k, NULL, ptx_at(own, 48), q);
    ptxk_load16(k, NULL, ptx_at(fifth, 16), h);
    for (i = 0; i < 4; i++) {
        h[i] = ptx_shf_l(k, h[i], h[i], lane->c[8]);
        x = ptx_and(k, q[i], ptx_b32(0x0f0f0f0f));
        share->half[0][i] = ptx_lop3(k, h[i], ptx_b32(0x10101010), x, ptx_imm(0xea));
        x = ptx_shr(k, q[i], ptx_u32(3));
        x = ptx_and(k, x, ptx_b32(0x1e1e1e1e)); /* twice */
        share->half[1][i] = ptx_lop3(k, h[i], ptx_b32(0x20202020), x, ptx_imm(0xea));
    }
    ptxk__read_k_head(k, lane, at->block, share);
}

/* Loads 4 n bytes from `words` + offset, 2-byte aligned: loads n + 1 aligned words and joins each two by
   prmt. */
static void ptxk__load_words(ptx_kernel *k, const ptxk__place *at, ptx_val from, uint32_t offset, uint32_t n,
                             ptx_val *out) {
    ptx_val word[9];
    uint32_t i;
    for (i = 0; i <= n; i++) word[i] = ptx_ld(k, PTX_B32, ptx_at(from, (int64_t)(offset + 4 * i)));
    for (i = 0; i < n; i++) out[i] = ptx_prmt(k, word[i], word[i + 1], at->pick);
}

/* Loads 16 bytes at `add` + offset from the place. Lanes with the swapped order exchange the halves that they
   read. */
static void ptxk__load_16_bytes(ptx_kernel *k, const ptxk__place *at, ptx_val add, uint32_t offset,
                                ptx_val *out) {
    ptx_val from = ptx_ptr_add(k, at->words, add, 1), other, word[5];
    uint32_t i;
    if (!at->turning) {
        ptxk__load_words(k, at, from, offset, 4, out);
        return;
    }
    other = ptx_ptr_add(k, at->other, add, 1);
    for (i = 0; i < 4; i++)
        out[i] = ptx_ld(k, PTX_B32, ptx_at(i < 2 ? from : other, (int64_t)(offset + 4 * (i & 1))));
    from = ptx_ptr_add(k, at->fifth, add, 1);
    word[4] = ptx_ld(k, PTX_B32, ptx_at(from, (int64_t)offset));
    for (i = 0; i < 4; i++) word[i] = ptx_selp(k, out[i ^ 2], out[i], at->swapped);
    for (i = 0; i < 4; i++) out[i] = ptx_prmt(k, word[i], word[i + 1], at->pick);
}

static ptx_val ptxk__load_f16(ptx_kernel *k, ptx_val at, uint32_t offset) {
    ptx_val x = ptx_ld(k, PTX_F16, ptx_at(at, (int64_t)offset));
    return ptx_cvt(k, PTX_F32, x);
}

/* Lane i = 4 n + 2 a + h of Q6_K has bytes 16 i ... of the 128. Low nibbles are values 128 n + 32 a + 16 h
   ..., high nibbles those 64 further on. Their upper two bits are bits 2 a and 2 a + 4 of bytes 32 n + 16 h
   ... of the 64. With the six bits at the top of a byte and the highest inverted, the byte is 4 (q - 32): no
   subtraction. */
static void ptxk__q6_k_lane(ptx_kernel *k, ptxk__lane *lane) {
    ptx_val a, n, h;
    a = ptx_and(k, lane->at, ptx_u32(2));
    lane->c[0] = ptx_sub(k, ptx_u32(6), a);
    lane->c[1] = ptx_sub(k, ptx_u32(2), a);
    n = ptx_and(k, lane->at, ptx_u32(4));
    h = ptx_and(k, lane->at, ptx_u32(1));
    h = ptx_shl(k, h, ptx_u32(4));
    lane->c[2] = ptx_mad(k, n, ptx_u32(8), h);
    h = ptx_add(k, lane->at, n);
    lane->c[3] = h; /* 8 n + 2 a + h: of the first half's scale */
    lane->c[4] = ptx_shl(k, lane->at, ptx_u32(4));
}

static void ptxk__q6_k_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val from, q[4], h[4], x, y;
    uint32_t i;
    ptxk__load_16_bytes(k, at, lane->c[4], 0, q);
    ptxk__load_16_bytes(k, at, lane->c[2], 128, h);
    for (i = 0; i < 4; i++) {
        x = ptx_shl(k, q[i], ptx_u32(2));
        x = ptx_lop3(k, x, ptx_b32(0x3c3c3c3c), ptx_b32(0x80808080u), ptx_imm(0x6a)); /* & ^ */
        y = ptx_shl(k, h[i], lane->c[0]);
        share->half[0][i] = ptx_lop3(k, y, ptx_b32(0xc0c0c0c0u), x, ptx_imm(0x6a));
        x = ptx_shr(k, q[i], ptx_u32(2));
        x = ptx_lop3(k, x, ptx_b32(0x3c3c3c3c), ptx_b32(0x80808080u), ptx_imm(0x6a));
        y = ptx_shl(k, h[i], lane->c[1]);
        share->half[1][i] = ptx_lop3(k, y, ptx_b32(0xc0c0c0c0u), x, ptx_imm(0x6a));
    }
    from = ptx_ptr_add(k, at->block, lane->c[3], 1);
    share->scale[0] = ptx_ld(k, PTX_S8, ptx_at(from, 192));
    share->scale[1] = ptx_ld(k, PTX_S8, ptx_at(from, 196));
    share->factor = ptxk__load_f16(k, at->block, 208);
}

static void ptxk__q8_0_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val words[8];
    (void)lane;
    ptxk__load_words(k, at, at->words, 0, 8, words);
    memcpy(share->half[0], words, sizeof share->half[0]);
    memcpy(share->half[1], words + 4, sizeof share->half[1]);
    share->factor = ptxk__load_f16(k, at->block, 0);
}

/* The first half is 16 times too large, the second is not: see ptxk__rows_product. */
static void ptxk__q4_0_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val words[4];
    uint32_t i;
    (void)lane;
    ptxk__load_words(k, at, at->words, 0, 4, words);
    for (i = 0; i < 4; i++) {
        share->half[0][i] = ptx_and(k, words[i], ptx_b32(0x0f0f0f0f));
        share->half[1][i] = ptx_and(k, words[i], ptx_b32(0xf0f0f0f0u));
    }
    share->factor = ptxk__load_f16(k, at->block, 0);
}

/* Plain numbers: lane i has values 8 i ... 8 i + 7 of 256; of f32, 4 i ... and 128 + 4 i ..., so that the
   16-byte accesses of all lanes are adjacent. */
static void ptxk__f32_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at, ptxk__share *share) {
    ptx_val own = ptx_ptr_add(k, at->block, lane->at, 16), words[4];
    ptxk_load16(k, NULL, ptx_at(own, 0), words);
    ptxk_widen(k, PTX_F32, words, share->number);
    ptxk_load16(k, NULL, ptx_at(own, 512), words);
    ptxk_widen(k, PTX_F32, words, share->number + 4);
}

static void ptxk__f16_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at, ptxk__share *share) {
    ptx_val own = ptx_ptr_add(k, at->block, lane->at, 16), words[4];
    ptxk_load16(k, NULL, ptx_at(own, 0), words);
    ptxk_widen(k, PTX_F16, words, share->number);
}

static void ptxk__bf16_read(ptx_kernel *k, const ptxk__lane *lane, const ptxk__place *at,
                            ptxk__share *share) {
    ptx_val own = ptx_ptr_add(k, at->block, lane->at, 16), words[4];
    ptxk_load16(k, NULL, ptx_at(own, 0), words);
    ptxk_widen(k, PTX_BF16, words, share->number);
}

/* -- vocabulary: rows of weights, formats with one reader --

   gemv, gemm, embed and decoder read these formats through the same functions: the values of 32 adjacent
   weights, a share, and its factors. */

/* A memory operand of weights: they are constant during a kernel, so the load may be non-coherent. */
static ptx_mem ptxk__weight_operand(ptx_val at, int64_t offset) {
    ptx_mem mem = ptx_at(at, offset);
    return ptx_space_of(at) == PTX_GLOBAL ? ptx_with(mem, PTX_NC) : mem;
}

/* A number: v (where it is not known when the kernel is built) + c. */
typedef struct ptxk__number {
    ptx_val v; /* u32 */
    uint32_t c;
    int known;
} ptxk__number;

static ptxk__number ptxk__known(uint32_t c) {
    ptxk__number n;
    memset(&n, 0, sizeof n);
    n.c = c;
    n.known = 1;
    return n;
}

static ptxk__number ptxk__unknown(ptx_val v) {
    ptxk__number n;
    n.v = v;
    n.c = 0;
    n.known = 0;
    return n;
}

/* Also as an operand of an instruction. */
static ptx_val ptxk__number_value(ptx_kernel *k, ptxk__number n) {
    if (n.known) return ptx_u32(n.c);
    return n.c ? ptx_add(k, n.v, ptx_u32(n.c)) : n.v;
}

/* (n >> shift & mask) * times + plus */
static ptxk__number ptxk__number_of(ptx_kernel *k, ptxk__number n, uint32_t shift, uint32_t mask,
                                    uint32_t times, uint32_t plus) {
    ptx_val x;
    if (n.known) return ptxk__known((n.c >> shift & mask) * times + plus);
    x = ptxk__number_value(k, n);
    if (shift) x = ptx_shr(k, x, ptx_u32(shift));
    if (mask != 0xffffffffu) x = ptx_and(k, x, ptx_u32(mask));
    if (times != 1) x = ptx_mul(k, x, ptx_u32(times));
    n = ptxk__unknown(x);
    n.c = plus;
    return n;
}

static ptxk__number ptxk__number_add(ptx_kernel *k, ptxk__number a, ptxk__number b) {
    uint32_t c = a.c + b.c;
    if (a.known) a.v = b.v;
    else if (!b.known) a.v = ptx_add(k, a.v, b.v);
    a.known = a.known && b.known;
    a.c = c;
    return a;
}

/* Where a block is: byte 0 at `at` + offset, in global or shared memory. */
typedef struct ptxk__source {
    ptx_val at;
    uint32_t offset, align;    /* align: of `at`, 1, 2 or 4 */
    uint32_t known;            /* set of r, 0 ... 3, of which these are there: */
    ptx_val words[4], pick[4]; /* the aligned word that has byte at + r; prmt selector that joins two */
} ptxk__source;

static ptxk__source ptxk__source_at(ptx_val at, uint32_t offset, uint32_t align) {
    ptxk__source s;
    memset(&s, 0, sizeof s);
    s.at = at;
    s.offset = offset;
    s.align = align;
    return s;
}

static ptx_val ptxk__read_byte(ptx_kernel *k, const ptxk__source *s, ptxk__number at) {
    ptx_val from = at.known ? s->at : ptx_ptr_add(k, s->at, at.v, 1);
    return ptx_ld(k, PTX_U8, ptxk__weight_operand(from, (int64_t)(s->offset + at.c)));
}

/* Two bytes, where `at` is even (of blocks of an odd size: any), as u32. */
static ptx_val ptxk__read_half(ptx_kernel *k, const ptxk__source *s, ptxk__number at) {
    ptx_val from = at.known ? s->at : ptx_ptr_add(k, s->at, at.v, 1), low, high;
    uint32_t o = s->offset + at.c;
    if (s->align > 1 && o % 2 == 0) {
        low = ptx_ld(k, PTX_U16, ptxk__weight_operand(from, (int64_t)o));
        return ptx_cvt(k, PTX_U32, low);
    }
    low = ptx_ld(k, PTX_U8, ptxk__weight_operand(from, (int64_t)o));
    high = ptx_ld(k, PTX_U8, ptxk__weight_operand(from, (int64_t)(o + 1)));
    return ptx_mad(k, high, ptx_u32(256), low);
}

/* n words, b32; `at` has a multiple of 4 in v. In shared memory the aligned words that hold them are joined;
   in global memory, which may end with the block, words are made of aligned pieces. */
static void ptxk__read_words(ptx_kernel *k, ptxk__source *s, ptxk__number at, uint32_t n, ptx_val *out) {
    uint32_t o = s->offset + at.c, r = o % 4, i, j;
    ptx_val from = s->at, pick = ptx_b32(0x3210 + 0x1111 * r), word[5], x;
    if (s->align == 4 && !r) {
        if (!at.known) from = ptx_ptr_add(k, from, at.v, 1);
        for (i = 0; i < n; i++)
            out[i] = ptx_ld(k, PTX_B32, ptxk__weight_operand(from, (int64_t)(o + 4 * i)));
        return;
    }
    if (ptx_space_of(from) == PTX_GLOBAL) {
        for (i = 0; i < n; i++) {
            for (j = 0; j < 2; j++)
                word[j] = ptxk__read_half(k, s, ptxk__number_add(k, at, ptxk__known(4 * i + 2 * j)));
            x = ptx_mad(k, word[1], ptx_u32(65536), word[0]);
            out[i] = ptx_as(x, PTX_B32);
        }
        return;
    }
    if (s->align < 4) {
        if (!(s->known >> r & 1)) {
            s->known |= 1u << r;
            x = ptx_as(from, PTX_U32);
            if (r) x = ptx_add(k, x, ptx_u32(r));
            s->words[r] = ptx_and(k, x, ptx_u32(~3u));
            x = ptx_and(k, x, ptx_u32(3));
            x = ptx_mad(k, x, ptx_u32(0x1111), ptx_u32(0x3210));
            s->words[r] = ptx_ptr(s->words[r], PTX_SHARED);
            s->pick[r] = ptx_as(x, PTX_B32);
        }
        from = s->words[r];
        pick = s->pick[r];
    }
    if (!at.known) from = ptx_ptr_add(k, from, at.v, 1);
    for (i = 0; i <= n; i++) word[i] = ptx_ld(k, PTX_B32, ptx_at(from, (int64_t)(o - r + 4 * i)));
    for (i = 0; i < n; i++) out[i] = ptx_prmt(k, word[i], word[i + 1], pick);
}

static ptx_val ptxk__read_f16(ptx_kernel *k, const ptxk__source *s, uint32_t at) {
    ptx_val x;
    if (s->align > 1 && (s->offset + at) % 2 == 0) {
        x = ptx_ld(k, PTX_F16, ptxk__weight_operand(s->at, (int64_t)(s->offset + at)));
    } else {
        x = ptxk__read_half(k, s, ptxk__known(at));
        x = ptx_cvt(k, PTX_U16, x);
        x = ptx_as(x, PTX_F16);
    }
    return ptx_cvt(k, PTX_F32, x);
}

static ptx_val ptxk__shr_b32(ptx_kernel *k, ptx_val x, ptx_val by) {
    return ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), by), PTX_B32);
}

/* What is read of a share of a block: all 8 quads (4 adjacent values each) in their order, or two of them,
   lane's: see ptxk__reader. */
typedef struct ptxk__share_of {
    ptxk__number share; /* number in the block, or in 256 values of one */
    int whole;
    ptx_val lane; /* 0 ... 3, u32; not whole */
} ptxk__share_of;

typedef struct ptxk__factors { /* of a share; halves: its values 0 ... 15, 16 ... 31 */
    ptx_val factor;            /* f32: of the share, with halves of the block */
    ptx_val scale[2];          /* halves: s32 within -512 ... 511, or f16 */
    ptx_val minimum_factor;    /* f32, halves with minima */
    ptx_val minimum[2];        /* ... u32 below 512: weight = factor scale value - minimum_factor minimum */
    ptx_val plus;              /* shares with minima: f16: weight = factor value + plus */
} ptxk__factors;

/* How a format is read. Values are bytes, signed or not: 1 / first times those in the formulas. */
enum { PTXK__QUADS_16_APART, PTXK__QUADS_8_APART, PTXK__QUADS_ADJACENT }; /* quads of a lane, with t = lane:
      t and t + 4;  4 (t / 2) + t % 2 and 2 further on;  2 t and 2 t + 1 */
typedef struct ptxk__reader {
    uint32_t quads, halves, has_minimum;
    void (*values)(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out);
    void (*factors)(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f);
} ptxk__reader;

/* Reads words of 16 bytes at `at`: all four, or the lane's. Returns how many. */
static uint32_t ptxk__read_16(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptxk__number at,
                              ptx_val *out) {
    if (!p->whole) {
        ptx_val add = ptx_mul(k, p->lane, ptx_u32(4));
        at = ptxk__number_add(k, at, ptxk__unknown(add));
    }
    ptxk__read_words(k, s, at, p->whole ? 4 : 1, out);
    return p->whole ? 4 : 1;
}

/* Bytes `mask` of x << shift (to the right where it is negative). */
static ptx_val ptxk__field(ptx_kernel *k, ptx_val x, int shift, uint32_t mask) {
    if (shift > 0) x = ptx_shl(k, x, ptx_u32((uint32_t)shift));
    if (shift < 0) x = ptxk__shr_b32(k, x, ptx_u32((uint32_t)-shift));
    return ptx_and(k, x, ptx_b32(mask));
}

/* 16 bytes at `at`: low nibbles are values 0 ... 15, high nibbles 16 ... 31; times 2^up. */
static uint32_t ptxk__read_nibbles(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, uint32_t at,
                                   int up, ptx_val *out) {
    ptx_val word[4];
    uint32_t i, n = ptxk__read_16(k, s, p, ptxk__known(at), word), mask = 0x0f0f0f0fu << up;
    for (i = 0; i < n; i++) {
        out[i] = ptxk__field(k, word[i], up, mask);
        out[n + i] = ptxk__field(k, word[i], up - 4, mask);
    }
    return n;
}

/* Fifth bits: bit i of the 32 at `at` belongs to value i. Calls them the bits `mask` of bytes that are 0
   there, inverted or not. */
static void ptxk__read_fifth(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, uint32_t at, uint32_t n,
                             uint32_t times, uint32_t mask, uint32_t invert, ptx_val *out) {
    ptx_val h, x, by;
    uint32_t i;
    ptxk__read_words(k, s, ptxk__known(at), 1, &h);
    for (i = 0; i < 2 * n; i++) {
        by = ptx_u32(16 / n * i);
        if (!p->whole) by = ptx_mad(k, p->lane, ptx_u32(4), by);
        x = ptx_shr(k, ptx_as(h, PTX_U32), by);
        x = ptx_and(k, x, ptx_u32(15));
        x = ptx_mul(k, x, ptx_u32(times)); /* bit b of 4 to byte b */
        out[i] = ptx_lop3(k, ptx_as(x, PTX_B32), ptx_b32(mask), out[i],
                          ptx_imm(invert ? 0xae : 0xea)); /* ~x & mask | out */
    }
}

static void ptxk__q4_1_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    (void)ptxk__read_nibbles(k, s, p, 4, 0, out);
}

static void ptxk__q5_1_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    uint32_t n = ptxk__read_nibbles(k, s, p, 8, 0, out);
    ptxk__read_fifth(k, s, p, 4, n, 0x02040810, 0x10101010, 0, out);
}

/* The five bits at the top of a byte, the highest inverted: 8 (q - 16). */
static void ptxk__q5_0_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    uint32_t n = ptxk__read_nibbles(k, s, p, 6, 3, out);
    ptxk__read_fifth(k, s, p, 2, n, 0x10204080, 0x80808080u, 1, out);
}

static void ptxk__f16_factor(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    (void)share;
    f->factor = ptxk__read_f16(k, s, 0);
}

static void ptxk__f16_factor_and_minimum(ptx_kernel *k, ptxk__source *s, ptxk__number share,
                                         ptxk__factors *f) {
    ptx_val x = ptxk__read_half(k, s, ptxk__known(2));
    ptxk__f16_factor(k, s, share, f);
    x = ptx_cvt(k, PTX_U16, x);
    f->plus = ptx_as(x, PTX_F16);
}

/* Looks the 8 nibbles of a word up in a table of 16 bytes: those of low nibbles, of high nibbles. A selector
   of prmt has a byte of 8 in 3 bits, so the table's halves are looked up apart; the fourth bit chooses. */
static void ptxk__look_up(ptx_kernel *k, const uint32_t table[4], ptx_val x, ptx_val *low, ptx_val *high) {
    ptx_val at = ptx_and(k, x, ptx_b32(0x77777777)), which = ptxk__shr_b32(k, x, ptx_u32(1)), half[2], a, b;
    uint32_t i;
    which = ptx_lop3(k, which, ptx_b32(0x44444444), ptx_b32(0x32103210), ptx_imm(0xea));
    for (i = 0; i < 2; i++) {
        a = ptx_prmt(k, ptx_b32(table[0]), ptx_b32(table[1]), at);
        b = ptx_prmt(k, ptx_b32(table[2]), ptx_b32(table[3]), at);
        half[i] = ptx_prmt(k, a, b, which);
        if (i) break;
        at = ptxk__shr_b32(k, at, ptx_u32(16));
        which = ptxk__shr_b32(k, which, ptx_u32(16));
    }
    *low = ptx_prmt(k, half[0], half[1], ptx_b32(0x6420));
    *high = ptx_prmt(k, half[0], half[1], ptx_b32(0x7531));
}

static void ptxk__table_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptxk__number at,
                               const uint32_t table[4], ptx_val *out) {
    ptx_val word[4];
    uint32_t i, n = ptxk__read_16(k, s, p, at, word);
    for (i = 0; i < n; i++) ptxk__look_up(k, table, word[i], &out[i], &out[n + i]);
}

/* -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113 */
static const uint32_t ptxk__iq4_table[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01, 0x71594535};
/* e2m1, twice: 0 1 2 3 4 6 8 12, and the same negative */
static const uint32_t ptxk__e2m1_table[4] = {0x03020100, 0x0c080604, 0xfdfeff00u, 0xf4f8fafcu};

static void ptxk__iq4_nl_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    ptxk__table_values(k, s, p, ptxk__known(2), ptxk__iq4_table, out);
}

static void ptxk__iq4_xs_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    ptxk__table_values(k, s, p, ptxk__number_of(k, p->share, 0, 0xffffffffu, 16, 8), ptxk__iq4_table, out);
}

/* Scales of 6 bits, less 32: nibbles at byte 4, upper bits at byte 2. */
static void ptxk__iq4_xs_factors(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    ptxk__number by = ptxk__number_of(k, share, 0, 1, 4, 0);
    ptx_val low = ptxk__read_byte(k, s, ptxk__number_of(k, share, 1, 3, 1, 4)), high;
    high = ptxk__read_half(k, s, ptxk__known(2));
    low = ptx_shr(k, low, ptxk__number_value(k, by));
    low = ptx_and(k, low, ptx_u32(15));
    by = ptxk__number_of(k, share, 0, 0xffffffffu, 2, 0);
    high = ptx_shr(k, high, ptxk__number_value(k, by));
    high = ptx_and(k, high, ptx_u32(3));
    low = ptx_mad(k, high, ptx_u32(16), low);
    low = ptx_sub(k, ptx_as(low, PTX_S32), ptx_s32(32));
    low = ptx_cvt(k, PTX_F32, low);
    f->factor = ptxk__read_f16(k, s, 0);
    f->factor = ptx_op2(k, PTX_MUL, PTX_RN, f->factor, low);
}

static void ptxk__mxfp4_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    ptxk__table_values(k, s, p, ptxk__known(1), ptxk__e2m1_table, out);
}

/* 2^(e - 128), half of what e8m0 says, as values are twice theirs. */
static void ptxk__mxfp4_factor(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    ptx_val e = ptxk__read_byte(k, s, ptxk__known(0)), small, p;
    (void)share;
    small = ptx_shl(k, ptx_u32(0x200000), e); /* e 0 and 1: subnormal */
    p = ptx_setp(k, PTX_LT, e, ptx_u32(2));
    e = ptx_sub(k, e, ptx_u32(1));
    e = ptx_shl(k, e, ptx_u32(23));
    e = ptx_selp(k, small, e, p);
    f->factor = ptx_as(e, PTX_F32);
}

/* 64 values, 16 in 8 bytes: low nibbles are the first 8 of 16. */
static void ptxk__nvfp4_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    ptxk__number at = ptxk__number_of(k, p->share, 0, 0xffffffffu, 16, 4);
    ptx_val word[4];
    uint32_t i, n = ptxk__read_16(k, s, p, at, word);
    for (i = 0; i < n; i++) { /* quads 0 2, 1 3, 4 6, 5 7 */
        uint32_t first = p->whole ? i / 2 * 4 + i % 2 : 0;
        ptxk__look_up(k, ptxk__e2m1_table, word[i], &out[first], &out[p->whole ? first + 2 : 1]);
    }
}

/* e4m3 without a sign, 2^-8 of it as f16; 127 counts as 0, not as NaN. */
static void ptxk__nvfp4_factors(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    ptx_val x, p;
    uint32_t i;
    for (i = 0; i < 2; i++) {
        x = ptxk__read_byte(k, s, ptxk__number_of(k, share, 0, 0xffffffffu, 2, i));
        p = ptx_setp(k, PTX_EQ, x, ptx_u32(127));
        x = ptx_and(k, x, ptx_u32(127));
        x = ptx_selp(k, ptx_u32(0), x, p);
        x = ptx_shl(k, x, ptx_u32(7));
        x = ptx_cvt(k, PTX_U16, x);
        f->scale[i] = ptx_as(x, PTX_F16);
    }
    f->factor = ptx_mov(k, ptx_f32(128)); /* half of 2^8 */
}

/* Q2_K and Q3_K: two bits of each value, 2 (share % 4) and up of bytes 16 half ... of 32 at `at`. */
static uint32_t ptxk__read_pairs_of_bits(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, uint32_t at,
                                         ptx_val *out) {
    ptxk__number from = ptxk__number_of(k, p->share, 2, 1, 32, at);
    uint32_t n = ptxk__read_16(k, s, p, from, out);
    return ptxk__read_16(k, s, p, ptxk__number_add(k, from, ptxk__known(16)), out + n) + n;
}

static void ptxk__q2_k_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    uint32_t i, n = ptxk__read_pairs_of_bits(k, s, p, 16, out);
    ptxk__number by = ptxk__number_of(k, p->share, 0, 3, 2, 0);
    for (i = 0; i < n; i++) {
        out[i] = ptxk__shr_b32(k, out[i], ptxk__number_value(k, by));
        out[i] = ptx_and(k, out[i], ptx_b32(0x03030303));
    }
}

static void ptxk__q2_k_factors(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    ptx_val pair = ptxk__read_half(k, s, ptxk__number_of(k, share, 0, 0xffffffffu, 2, 0)), x;
    uint32_t i;
    for (i = 0; i < 2; i++) {
        x = i ? ptx_shr(k, pair, ptx_u32(8)) : pair;
        f->scale[i] = ptx_as(ptx_and(k, x, ptx_u32(15)), PTX_S32);
        x = ptx_shr(k, x, ptx_u32(4));
        f->minimum[i] = i ? x : ptx_and(k, x, ptx_u32(15));
    }
    f->factor = ptxk__read_f16(k, s, 80);
    f->minimum_factor = ptxk__read_f16(k, s, 82);
}

/* The three bits at the top of a byte, the highest, which is 0 where 4 is subtracted, inverted: 32 q. */
static void ptxk__q3_k_values(ptx_kernel *k, ptxk__source *s, const ptxk__share_of *p, ptx_val *out) {
    ptx_val high[8], x;
    uint32_t i, n = ptxk__read_pairs_of_bits(k, s, p, 32, out);
    ptxk__number by = ptxk__number_of(k, p->share, 0, 3, 0u - 2, 37), up; /* 5 - 2 (share % 4), modulo 32 */
    if (by.known) by.c &= 31;
    (void)ptxk__read_16(k, s, p, ptxk__known(0), high);
    (void)ptxk__read_16(k, s, p, ptxk__known(16), high + n / 2);
    up = ptxk__number_of(k, p->share, 0, 7, 0u - 1, 7);
    for (i = 0; i < n; i++) {
        out[i] = ptx_shf_l(k, out[i], out[i], ptxk__number_value(k, by)); /* rotates */
        out[i] = ptx_and(k, out[i], ptx_b32(0x60606060));
        x = ptx_shf_l(k, high[i], high[i], ptxk__number_value(k, up));
        out[i] = ptx_lop3(k, x, ptx_b32(0x80808080u), out[i], ptx_imm(0xae)); /* ~x & mask | out */
    }
}

static void ptxk__q3_k_factors(ptx_kernel *k, ptxk__source *s, ptxk__number share, ptxk__factors *f) {
    ptx_val low = ptxk__read_half(k, s, ptxk__number_of(k, share, 0, 3, 2, 96)), high, x;
    ptxk__number by = ptxk__number_of(k, share, 2, 1, 4, 0);
    uint32_t i;
    high = ptxk__read_half(k, s, ptxk__number_of(k, share, 0, 1, 2, 104));
    low = ptx_shr(k, low, ptxk__number_value(k, by));
    low = ptx_and(k, low, ptx_u32(0x0f0f));
    by = ptxk__number_of(k, share, 1, 3, 2, 0);
    high = ptx_shr(k, high, ptxk__number_value(k, by));
    high = ptx_and(k, high, ptx_u32(0x0303));
    low = ptx_mad(k, high, ptx_u32(16), low);
    for (i = 0; i < 2; i++) {
        x = i ? ptx_shr(k, low, ptx_u32(8)) : ptx_and(k, low, ptx_u32(63));
        f->scale[i] = ptx_sub(k, ptx_as(x, PTX_S32), ptx_s32(32));
    }
    f->factor = ptxk__read_f16(k, s, 108);
}

static const ptxk__reader
    ptxk__q4_1_reader = {PTXK__QUADS_16_APART, 0, 1, ptxk__q4_1_values, ptxk__f16_factor_and_minimum},
    ptxk__q5_0_reader = {PTXK__QUADS_16_APART, 0, 0, ptxk__q5_0_values, ptxk__f16_factor},
    ptxk__q5_1_reader = {PTXK__QUADS_16_APART, 0, 1, ptxk__q5_1_values, ptxk__f16_factor_and_minimum},
    ptxk__q2_k_reader = {PTXK__QUADS_16_APART, 1, 1, ptxk__q2_k_values, ptxk__q2_k_factors},
    ptxk__q3_k_reader = {PTXK__QUADS_16_APART, 1, 0, ptxk__q3_k_values, ptxk__q3_k_factors},
    ptxk__iq4_nl_reader = {PTXK__QUADS_16_APART, 0, 0, ptxk__iq4_nl_values, ptxk__f16_factor},
    ptxk__iq4_xs_reader = {PTXK__QUADS_16_APART, 0, 0, ptxk__iq4_xs_values, ptxk__iq4_xs_factors},
    ptxk__mxfp4_reader = {PTXK__QUADS_16_APART, 0, 0, ptxk__mxfp4_values, ptxk__mxfp4_factor},
    ptxk__nvfp4_reader = {PTXK__QUADS_8_APART, 1, 0, ptxk__nvfp4_values, ptxk__nvfp4_factors};

/* -- vocabulary: rows of weights, the table of formats -- */

/* The fields of a format with a reader: its values, as the reader gives them, times `first` are those of the
   formulas. */
#define PTXK__READ(name, id, values, bytes, is_signed, first, reader)                                        \
    {name,  id, values, bytes, 0,    PTXK__SHARES, PTXK__BLOCKS_OF_32, is_signed, 1024, 4, 0, 0, 2, first,   \
     first, 0,  0,      NULL,  NULL, &reader}

static const ptxk__block ptxk__blocks[] = {
    {"q4_k", PTXK_Q4_K, 256, 144, 1, PTXK__SCALED, PTXK__PAIRS_APART, 0, 1024, 4, 0, 0, 4, 1, 0.0625f, 0, 1,
     ptxk__q4_k_lane, ptxk__q4_k_read, NULL},
    {"f32", PTXK_F32, 1, 4, 1, PTXK__NUMBERS, 0, 0, 256, 1, 0, 0, 2, 1, 1, 0, 0, NULL, ptxk__f32_read, NULL},
    {"f16", PTXK_F16, 1, 2, 1, PTXK__NUMBERS, 0, 0, 256, 1, 0, 0, 4, 1, 1, 0, 0, NULL, ptxk__f16_read, NULL},
    {"bf16", PTXK_BF16, 1, 2, 1, PTXK__NUMBERS, 0, 0, 256, 1, 0, 0, 4, 1, 1, 0, 0, NULL, ptxk__bf16_read,
     NULL},
    {"q8_0", PTXK_Q8_0, 32, 34, 0, PTXK__UNSCALED, PTXK__BLOCKS_OF_32, 1, 1024, 4, 512, 576, 2, 1, 1, 0, 0,
     NULL, ptxk__q8_0_read, NULL},
    {"q4_0", PTXK_Q4_0, 32, 18, 0, PTXK__UNSCALED, PTXK__BLOCKS_OF_32, 0, 2048, 1, 256, 160, 2, 0.0625f, 1, 8,
     0, NULL, ptxk__q4_0_read, NULL},
    {"q5_k", PTXK_Q5_K, 256, 176, 1, PTXK__SCALED, PTXK__PAIRS_APART, 0, 1024, 4, 0, 0, 2, 1, 0.5f, 0, 1,
     ptxk__q5_k_lane, ptxk__q5_k_read, NULL},
    {"q6_k", PTXK_Q6_K, 256, 210, 0, PTXK__SCALED, PTXK__NIBBLES_APART, 1, 2048, 1, 256, 224, 2, 0.25f, 0.25f,
     0, 0, ptxk__q6_k_lane, ptxk__q6_k_read, NULL},
    PTXK__READ("q4_1", PTXK_Q4_1, 32, 20, 0, 1, ptxk__q4_1_reader),
    PTXK__READ("q5_0", PTXK_Q5_0, 32, 22, 1, 0.125f, ptxk__q5_0_reader),
    PTXK__READ("q5_1", PTXK_Q5_1, 32, 24, 0, 1, ptxk__q5_1_reader),
    PTXK__READ("q2_k", PTXK_Q2_K, 256, 84, 0, 1, ptxk__q2_k_reader),
    PTXK__READ("q3_k", PTXK_Q3_K, 256, 110, 1, 0.03125f, ptxk__q3_k_reader),
    PTXK__READ("iq4_nl", PTXK_IQ4_NL, 32, 18, 1, 1, ptxk__iq4_nl_reader),
    PTXK__READ("iq4_xs", PTXK_IQ4_XS, 256, 136, 1, 1, ptxk__iq4_xs_reader),
    PTXK__READ("mxfp4", PTXK_MXFP4, 32, 17, 1, 1, ptxk__mxfp4_reader),
    PTXK__READ("nvfp4", PTXK_NVFP4, 64, 36, 1, 1, ptxk__nvfp4_reader)};
#undef PTXK__READ

static const ptxk__block *ptxk__block_of(uint32_t format) {
    size_t i;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++)
        if (ptxk__blocks[i].id == format) return &ptxk__blocks[i];
    return NULL;
}

/* The unit of k: a whole block, two of odd size, as rows are 2-byte aligned; or 16 bytes of plain numbers. */
static uint32_t ptxk__block_whole(const ptxk__block *b) { return b->values << b->bytes % 2; }

static uint32_t ptxk__block_step(const ptxk__block *b) {
    return b->kind == PTXK__NUMBERS ? 8 : ptxk__block_whole(b);
}

/* The bytes, 1, 2 or 4, that all blocks of aligned rows are aligned to. */
static uint32_t ptxk__block_align(const ptxk__block *b) {
    return b->bytes % 4 == 0 ? 4 : b->bytes % 2 == 0 ? 2 : 1;
}

/* Reads share i, u32, of 256 values of a row, whose block is `place`. */
static void ptxk__read_share(ptx_kernel *k, const ptxk__block *b, ptx_val i, ptx_val place, ptxk__share *o) {
    ptxk__source s = ptxk__source_at(place, 0, ptxk__block_align(b));
    ptxk__share_of p;
    ptxk__factors f;
    ptx_val out[8], x;
    uint32_t h, halves = b->reader->halves;
    memset(&p, 0, sizeof p);
    memset(&f, 0, sizeof f);
    p.share = b->values > 32 ? ptxk__number_of(k, ptxk__unknown(i), 0, b->values / 32 - 1, 1, 0)
                             : ptxk__known(0);
    p.whole = 1;
    b->reader->values(k, &s, &p, out);
    memcpy(o->half, out, sizeof o->half);
    b->reader->factors(k, &s, p.share, &f);
    for (h = 0; h < 1 + halves; h++) {
        o->times[h] = f.factor;
        if (halves) {
            x = ptx_cvt(k, PTX_F32, f.scale[h]);
            o->times[h] = ptx_op2(k, PTX_MUL, PTX_RN, f.factor, x);
        }
        if (b->reader->has_minimum) {
            x = ptx_cvt(k, PTX_F32, halves ? f.minimum[h] : f.plus);
            o->minus[h] = halves ? ptx_op2(k, PTX_MUL, PTX_RN, f.minimum_factor, x) : ptx_neg(k, x);
        }
    }
}

PTXGEN_API uint64_t ptxk_row_bytes(uint32_t format, uint32_t k) {
    const ptxk__block *b = ptxk__block_of(format);
    return b && k % b->values == 0 ? (uint64_t)(k / b->values) * b->bytes : 0;
}

/* -- vocabulary: rows of weights, how a warp takes them -- */

/* How a warp takes rows of one matrix. */
typedef struct ptxk__rows {
    const ptxk__block *block;
    uint32_t columns;
    uint32_t planes; /* byte planes of x: 2 or 1; 0: x is f32 */
    uint32_t record; /* bytes of a record of x: 1024 values as integers, 256 as f32 */
    uint32_t values; /* values of a record of x */
    uint32_t rows;   /* rows of the warp */
    uint32_t unit;   /* values of a row in a step */
    uint32_t unit_bytes;
    uint32_t times;               /* times that a lane takes 32 or 8 values in a step */
    uint32_t area;                /* shared bytes for a row's part of a step: whole chunks */
    uint32_t runs;                /* runs of a row's part */
    uint32_t run_bytes, run_area; /* bytes of a run in the row, and in shared memory */
    uint32_t turning;             /* some lanes read words in the order 2, 3, 0, 1 */
    uint32_t step;                /* shared bytes of a step, all rows */
    uint32_t stages;              /* steps in the ring: one is read, the others are in flight */
    uint32_t ring;                /* bytes of shared memory that the warp needs, 16-byte aligned */
    uint32_t rounds;              /* chunks of a step that a lane copies */
    uint32_t grain;   /* copies begin at multiples of so many bytes: whole sectors, where possible */
    uint32_t toggles; /* where a step begins between two such multiples: moves by this, back, ... */
    uint32_t sized;   /* the last step has partial chunks, or chunks of zeros */
} ptxk__rows;

/* Bytes of a record of x. Integers: 4 blocks of 256, each with its planes; the factors of 32 groups; their
   sums; and 64 spare bytes, so that blocks b and b + 4 differ by half the banks. */
static uint32_t ptxk__x_record(uint32_t planes) { return planes ? 1024 * planes + 320 : 1024; }

static uint32_t ptxk__x_values(uint32_t planes) { return planes ? 1024 : 256; }

/* Computes how a warp takes rows. room: shared bytes for the ring of one warp. most: a bound of the rows, or
   0. unit: values of a step. Returns 0 when nothing fits. */
static int ptxk__rows_form_of(ptxk__rows *f, const ptxk__block *block, uint32_t columns, uint32_t planes,
                              uint32_t most, uint32_t unit, uint32_t room) {
    memset(f, 0, sizeof *f);
    f->block = block;
    f->columns = columns;
    f->planes = block->kind == PTXK__NUMBERS ? 0 : planes;
    f->record = ptxk__x_record(f->planes);
    f->values = ptxk__x_values(f->planes);
    if (columns > 2 && unit > 1024) unit = 1024;
    f->unit = block->unit < unit ? block->unit : unit;
    f->unit_bytes = f->unit / block->values * block->bytes;
    f->times = f->unit > 1024 ? 2 : 1;
    f->runs = f->times == 1 && block->run ? f->unit / block->run : 1;
    f->run_bytes = f->unit_bytes / f->runs;
    f->turning = f->run_bytes % 16 != 0 && f->runs > 1;
    f->grain = (f->runs > 1 ? f->run_bytes % 32 : f->unit_bytes % 16) ? 16 : 32;
    f->toggles = block->aligned ? 0 : f->unit_bytes % f->grain; /* half a sector */
    f->sized = !block->aligned || block->kind == PTXK__NUMBERS;
    f->run_area = block->aligned ? f->unit_bytes
                  : f->runs > 1  ? block->run_area
                                 : (f->unit_bytes + 2 * f->grain - 2) / f->grain * f->grain;
    f->area = f->runs * f->run_area;
    f->rows = columns == 1 ? block->rows : 2; /* x of many columns needs the registers */
    if (columns > 4 && f->turning) f->rows = 1;
    if (most && f->rows > most) f->rows = most;
    while (f->rows > 1 && 2 * f->rows * f->area > room) f->rows /= 2;
    f->step = f->rows * f->area;
    f->stages = 3 * f->step <= room ? 3 : 2;
    f->ring = f->stages * f->step;
    f->rounds = ptxk__ceil_div(f->step, 512);
    return f->ring <= room;
}

static int ptxk__rows_form(ptxk__rows *f, const ptxk__block *block, uint32_t columns, uint32_t planes,
                           uint32_t most, uint32_t room) {
    return ptxk__rows_form_of(f, block, columns, planes, most, 2048, room);
}

/* -- vocabulary: rows of weights, x -- */

/* A record of integers: block b of 4 has its planes at 256 planes b. In a plane the 16 values j = 8 j3 + 4 j2
   + 2 j1 + j0 (bits) lie at 16 bytes times 8 j1 + 4 j3 + 2 (j2 ^ j1) + (j0 ^ j1). In each of the three orders
   of formats the 8 lanes of a block then read 8 different sixteenths of the banks. The planes are followed by
   32 factors d, of groups of 32, blocks in the order 0, 1, 3, 2, and by 32 sums: d times the sum of the
   integers. A record of numbers: group j of 4 lies at 16 bytes times j ^ (j >> 3 & 1). */

static ptx_val ptxk__bit(ptx_kernel *k, ptx_val x, uint32_t which) {
    return ptx_bfe(k, x, ptx_u32(which), ptx_u32(1));
}

/* 0, 1, 3, 2 */
static ptx_val ptxk__gray(ptx_kernel *k, ptx_val b) {
    ptx_val half = ptx_shr(k, b, ptx_u32(1));
    return ptx_xor(k, b, half);
}

/* Gathers byte `which` of four words into one word. */
static ptx_val ptxk__gather_bytes(ptx_kernel *k, const ptx_val *x, uint32_t which) {
    uint32_t selector = which | (which + 4) << 4;
    ptx_val low, high;
    low = ptx_prmt(k, ptx_as(x[0], PTX_B32), ptx_as(x[1], PTX_B32), ptx_b32(selector));
    high = ptx_prmt(k, ptx_as(x[2], PTX_B32), ptx_as(x[3], PTX_B32), ptx_b32(selector));
    return ptx_prmt(k, low, high, ptx_b32(0x5410));
}

/* The factor d that turns the integers of a group back into x, from the group's largest |x| and its sum of x
   * 0, which is NaN when an element is not finite; and its inverse, which turns x into integers. */
static ptx_val ptxk__x_factor(ptx_kernel *k, uint32_t planes, ptx_val most, ptx_val bad, ptx_val *inverse) {
    ptx_val top = ptx_f32(planes == 2 ? 32639.0f : 127.0f), p, d; /* 127 * 256 + 127 */
    *inverse = ptx_rcp(k, most);
    *inverse = ptx_op2(k, PTX_MUL, PTX_RN, *inverse, top);
    p = ptx_setp(k, PTX_GE, most, ptx_f32(7.888609052210118e-31f)); /* 2^-100 */
    *inverse = ptx_selp(k, *inverse, ptx_f32(0), p);
    most = ptx_selp(k, most, ptx_f32(0), p);
    d = ptx_op2(k, PTX_DIV, PTX_RN, most, top);
    return ptx_add(k, d, bad);
}

/* Stores 256 values of x in a record. Lane l of a full warp has values 8 l ... 8 l + 7, zeros past the end of
   x. record: address in global or shared memory, 16-byte aligned. block: which 256 of the record's 1024
   (ignored with 0 planes, where the record is 256). */
static void ptxk__store_x(ptx_kernel *k, uint32_t planes, ptx_val lane, ptx_val block, ptx_val record,
                          const ptx_val x[8]) {
    ptx_val most, bad, inverse, d, sum, whole[8], rounded[8], words[2], p, at, here, other, bit;
    uint32_t e;
    if (!planes) {
        here = ptx_bfe(k, lane, ptx_u32(2), ptx_u32(1));
        at = ptx_shl(k, lane, ptx_u32(1));
        at = ptx_or(k, at, here);
        here = ptx_ptr_add(k, record, at, 16);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 0), x);
        at = ptx_xor(k, at, ptx_u32(1));
        here = ptx_ptr_add(k, record, at, 16);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 0), x + 4);
        return;
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
    d = ptxk__x_factor(k, planes, most, bad, &inverse);
    for (e = 0; e < 8; e++) {
        other = ptx_op2(k, PTX_MUL, PTX_RN, x[e], inverse);
        whole[e] = ptx_cvt_with(k, PTX_RNI, PTX_S32, other);
        sum = e ? ptx_add(k, sum, whole[e]) : whole[e];
    }
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 4);
    sum = ptx_cvt(k, PTX_F32, sum);
    sum = ptx_op2(k, PTX_MUL, PTX_RN, sum, d);

    ptx_comment(k, "8 lanes' order of 16 bytes");
    bit = ptxk__bit(k, lane, 2); /* j1 */
    at = ptx_shr(k, lane, ptx_u32(2));
    at = ptx_and(k, at, ptx_u32(6)); /* 4 j3 + 2 j2 */
    other = ptxk__bit(k, lane, 1);
    at = ptx_or(k, at, other);
    other = ptx_mul(k, bit, ptx_u32(11)); /* 8 j1 + 3 j1 */
    at = ptx_xor(k, at, other);
    other = ptx_and(k, lane, ptx_u32(1));
    at = ptx_mad(k, at, ptx_u32(2), other);
    here = ptx_ptr_add(k, record, block, 256 * planes);
    here = ptx_ptr_add(k, here, at, 8);
    for (e = 0; e < 8; e++) rounded[e] = planes == 2 ? ptx_add(k, whole[e], ptx_s32(128)) : whole[e];
    words[0] = ptxk__gather_bytes(k, rounded, planes - 1);
    words[1] = ptxk__gather_bytes(k, rounded + 4, planes - 1);
    ptx_st_vec(k, PTX_B32, 2, ptx_at(here, 0), words);
    if (planes == 2) {
        words[0] = ptxk__gather_bytes(k, whole, 0);
        words[1] = ptxk__gather_bytes(k, whole + 4, 0);
        ptx_st_vec(k, PTX_B32, 2, ptx_at(here, 256), words);
    }
    at = ptxk__gray(k, block);
    here = ptx_ptr_add(k, record, at, 32);
    here = ptx_ptr_add(k, here, lane, 1); /* 4 bytes for 4 lanes */
    other = ptx_and(k, lane, ptx_u32(3));
    p = ptx_setp(k, PTX_EQ, other, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(1024 * planes)), d);
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(1024 * planes + 128)), sum);
    here = ptx_ptr_add(k, record, block, 32);
    here = ptx_ptr_add(k, here, lane, 1);
    other = ptx_setp(k, PTX_LT, block, ptx_u32(2));
    p = ptx_and(k, p, other);
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(1024 * planes + 256)), ptx_f32(0)); /* the spare bytes */
}

/* Stores a group of 32 values of x, by its number in the column, in that column's records. Each lane of a
   full warp has one value. The spare bytes of the record must be 0 already. */
static void ptxk__store_x_group(ptx_kernel *k, uint32_t planes, ptx_val lane, ptx_val group, ptx_val records,
                                ptx_val x) {
    ptx_val most, bad, inverse, d, sum, whole, p, at, here, other, bit, record, block;
    if (!planes) {
        at = ptx_mad(k, group, ptx_u32(32), lane);
        here = ptx_bfe(k, at, ptx_u32(5), ptx_u32(1)); /* 4 of them, j, at j ^ (j >> 3 & 1) */
        here = ptx_shl(k, here, ptx_u32(2));
        at = ptx_xor(k, at, here);
        here = ptx_ptr_add(k, records, at, 4);
        ptx_st(k, PTX_F32, ptx_at(here, 0), x);
        return;
    }
    most = ptx_abs(k, x);
    most = ptxk_warp_reduce(k, PTX_MAX, most, 1, 32);
    bad = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(0));
    bad = ptxk_warp_reduce(k, PTX_ADD, bad, 1, 32);
    d = ptxk__x_factor(k, planes, most, bad, &inverse);
    other = ptx_op2(k, PTX_MUL, PTX_RN, x, inverse);
    whole = ptx_cvt_with(k, PTX_RNI, PTX_S32, other);
    sum = ptxk_warp_reduce(k, PTX_ADD, whole, 1, 32);
    sum = ptx_cvt(k, PTX_F32, sum);
    sum = ptx_op2(k, PTX_MUL, PTX_RN, sum, d);

    at = ptx_shr(k, group, ptx_u32(5));
    record = ptx_ptr_add(k, records, at, ptxk__x_record(planes));
    block = ptx_bfe(k, group, ptx_u32(3), ptx_u32(2));
    bit = ptx_and(k, group, ptx_u32(1)); /* j1 */
    at = ptx_and(k, group, ptx_u32(6));  /* 4 j3 + 2 j2 */
    other = ptx_shr(k, lane, ptx_u32(4));
    at = ptx_or(k, at, other);
    other = ptx_mul(k, bit, ptx_u32(11));
    at = ptx_xor(k, at, other);
    other = ptx_and(k, lane, ptx_u32(15));
    at = ptx_mad(k, at, ptx_u32(16), other);
    here = ptx_ptr_add(k, record, block, 256 * planes);
    here = ptx_ptr_add(k, here, at, 1);
    if (planes == 2) {
        other = ptx_add(k, whole, ptx_s32(128));
        other = ptx_shr(k, other, ptx_u32(8));
        ptx_st(k, PTX_U8, ptx_at(here, 0), ptx_as(other, PTX_U32));
    }
    ptx_st(k, PTX_U8, ptx_at(here, planes == 2 ? 256 : 0), ptx_as(whole, PTX_U32));
    at = ptxk__gray(k, block);
    other = ptx_and(k, group, ptx_u32(7));
    at = ptx_mad(k, at, ptx_u32(8), other);
    here = ptx_ptr_add(k, record, at, 4);
    p = ptx_setp(k, PTX_EQ, lane, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(1024 * planes)), d);
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(1024 * planes + 128)), sum);
}

/* -- vocabulary: rows of weights, a warp's dot products -- */

/* A warp's dot products of rows with x.

     ptxk__rows_setup   once in a kernel: computes what depends on the lane
     ptxk__rows_start   issues the copies of the first steps of some rows; needs no x yet
     ptxk__rows_finish  runs all steps; every lane gets the sums

   With state.next set, copies continue after the last step of these rows: next() redirects them to other rows
   of the same form, by ptxk__rows_find_start and ptxk__rows_set_start, or ends them. Copies and products are
   then two positions in one sequence of steps. ptxk__rows_issue_first issues the first copies.

   Weights come through shared memory, a ring for each warp: a warp's request is 512 consecutive bytes,
   whatever blocks they hold, and the ring keeps several steps in flight. Copies are cp.async from sm_80 on;
   before, they go through registers, one step ahead. */

typedef struct ptxk__rows_state {
    ptxk__lane lane;
    ptx_val group;                  /* j: which of 4 blocks at a time */
    ptx_val ring, mine;             /* this warp's shared memory; this lane's first chunk in it */
    ptx_val row_of[8], chunk_of[8]; /* the lane's chunk: row of the warp, offset in its run's area */
    ptx_val run_of[8];              /* bytes of the row's part before that run */
    ptx_val some;                   /* predicate: it copies in the last round too */
    ptx_val steps;
    ptx_val from[8];  /* first source address of each round */
    ptx_val count[8]; /* not sized: number of steps with this chunk */
    ptx_var full[8];  /* 2-byte aligned formats: bytes of each chunk that belong to the row */
    ptx_val both[8];  /* toggles: advance of two steps together */
    ptx_val half[8];  /* toggles: u64, offset of each chunk in its sector */
    ptx_val last[8];  /* sized: bytes in the last step */
    ptx_var slot;     /* ring offset of the step that is read */
    ptx_val own[2];   /* bytes from a row's start to the lane's block */
    ptx_val own_last; /* not sized: the same in the last step, of a block that exists */
    ptx_val words[2][PTXK__ROWS_MAX], block[2][PTXK__ROWS_MAX];                    /* offsets in a slot */
    ptx_val pick[2][PTXK__ROWS_MAX];                                               /* ... see ptxk__place */
    ptx_val other[PTXK__ROWS_MAX], fifth[PTXK__ROWS_MAX], swapped[PTXK__ROWS_MAX]; /* turning */
    ptx_val run;                   /* runs: bytes of the row's part before the run of the lane's block */
    ptx_var moved[PTXK__ROWS_MAX]; /* toggles: added to them, `move` and 0 alternating */
    ptx_val move[PTXK__ROWS_MAX];
    ptx_var x; /* the record of the next step */
    ptx_var sum[8][PTXK__ROWS_MAX];
    ptx_val rest, turned;        /* bytes of the last step; toggles: xor of its offset */
    void (*next)(void *context); /* or NULL */
    void *context;
    ptx_var ahead;      /* next: the step to be copied next; s->steps: none */
    ptx_var kept[5][8]; /* next: from, count, last, both, half, where they change */
} ptxk__rows_state;

/* Where the copies of a group of rows begin. */
typedef struct ptxk__copy_start {
    ptx_val from[8], count[8], full[8], both[8], half[8], last[8];
} ptxk__copy_start;

static int ptxk__has_cp_async(ptx_kernel *k) {
    return (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) >= 80;
}

/* Computes where a lane's halves of x lie in a record, and the groups that they belong to. The values of lane
   i, 16 of each half:
     pairs apart     64 (i / 2) + 16 (i % 2), and 32 further on
     nibbles apart   i = 4 n + 2 a + h: 128 n + 32 a + 16 h, and 64 further on
     blocks of 32    32 i, and 16 further on */
static void ptxk__lane_places(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s) {
    ptxk__lane *lane = &s->lane;
    ptx_val at = lane->at, high, b, j1, other, block, group = s->group;
    uint32_t t;
    if (f->block->kind == PTXK__NUMBERS) {
        other = ptx_shr(k, at, ptx_u32(f->block->bytes == 4 ? 3 : 2));
        other = ptx_and(k, other, ptx_u32(1));
        b = f->block->bytes == 4 ? at : ptx_shl(k, at, ptx_u32(1));
        b = ptx_xor(k, b, other);
        lane->x[0] = ptx_shl(k, b, ptx_u32(4));
        lane->x[1] =
            f->block->bytes == 4 ? ptx_add(k, lane->x[0], ptx_u32(512)) : ptx_xor(k, lane->x[0], ptx_u32(16));
        s->own[0] = ptx_u32(0);
        return;
    }
    if (f->block->order == PTXK__PAIRS_APART) {
        b = at;
        other = ptx_xor(k, at, ptx_u32(11));
        at = ptx_and(k, at, ptx_u32(6));
    } else if (f->block->order == PTXK__NIBBLES_APART) {
        j1 = ptxk__bit(k, at, 1);
        high = ptx_and(k, at, ptx_u32(5)); /* 4 j3 + j0 */
        b = ptx_mul(k, j1, ptx_u32(11));
        b = ptx_xor(k, high, b);
        other = ptx_xor(k, b, ptx_u32(2));
        high = ptx_and(k, at, ptx_u32(4));
        at = ptx_or(k, high, j1);
    } else {
        j1 = ptx_and(k, at, ptx_u32(1));
        high = ptx_and(k, at, ptx_u32(6)); /* 4 j3 + 2 j2 */
        b = ptx_mul(k, j1, ptx_u32(11));
        b = ptx_xor(k, high, b);
        other = ptx_xor(k, b, ptx_u32(1));
    }
    for (t = 0; t < f->times; t++) {
        ptx_val record = ptx_u32(0);
        /* blocks of the first time: side by side, or 0, 2, 4, 6 */
        block = f->times > 1 ? ptx_shl(k, group, ptx_u32(1)) : group;
        if (t) block = ptx_add(k, block, ptx_u32(f->block->pair));
        if (f->block->values < 256) {
            ptx_val own = lane->at;
            if (f->block->values > 32) own = ptx_div(k, own, ptx_u32(f->block->values / 32));
            s->own[t] = ptx_mad(k, block, ptx_u32(256 / f->block->values), own);
            s->own[t] = ptx_mul(k, s->own[t], ptx_u32(f->block->bytes));
        } else {
            s->own[t] = ptx_mul(k, block, ptx_u32(f->block->bytes));
        }
        if (f->runs > 1) {
            s->run = ptx_div(k, block, ptx_u32(f->block->run / 256));
            high = ptx_mul(k, s->run, ptx_u32(f->run_area - f->run_bytes));
            s->own[t] = ptx_add(k, s->own[t], high);
            s->run = ptx_mul(k, s->run, ptx_u32(f->run_bytes));
        }
        if (f->times > 1) {
            record = ptx_shr(k, block, ptx_u32(2));
            record = ptx_mul(k, record, ptx_u32(f->record));
            block = ptx_and(k, block, ptx_u32(3));
        }
        if (!t) {
            ptx_val here = ptx_mad(k, block, ptx_u32(256 * f->planes), record);
            lane->x[0] = ptx_mad(k, b, ptx_u32(16), here);
            lane->x[1] = ptx_mad(k, other, ptx_u32(16), here);
        }
        block = ptxk__gray(k, block);
        record = ptx_mad(k, block, ptx_u32(32), record);
        record = ptx_add(k, record, ptx_u32(1024 * f->planes));
        lane->d[t] = ptx_mad(k, at, ptx_u32(4), record);
        lane->s[t] = ptx_mad(k, lane->at, ptx_u32(4), record);
    }
}

/* lane: of the warp; ring: the warp's f->ring bytes of shared memory, 16-byte aligned. */
static void ptxk__rows_setup(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val lane,
                             ptx_val ring) {
    uint32_t chunks = f->area / 16, run = f->run_area / 16, i;
    ptx_val chunk, at;
    memset(s, 0, sizeof *s);
    s->ring = ring;
    s->mine = ptx_ptr_add(k, ring, lane, 16);
    s->group = ptx_shr(k, lane, ptx_u32(3));
    s->lane.at = f->block->kind == PTXK__NUMBERS ? lane : ptx_and(k, lane, ptx_u32(7));
    ptxk__lane_places(k, f, s);
    if (f->block->lane) f->block->lane(k, &s->lane);
    for (i = 0; i < f->rounds; i++) {
        chunk = ptx_add(k, lane, ptx_u32(32 * i));
        s->row_of[i] = ptx_div(k, chunk, ptx_u32(chunks));
        chunk = ptx_rem(k, chunk, ptx_u32(chunks));
        if (f->runs > 1) {
            at = ptx_div(k, chunk, ptx_u32(run));
            s->run_of[i] = ptx_mul(k, at, ptx_u32(f->run_bytes));
            chunk = ptx_rem(k, chunk, ptx_u32(run));
        }
        s->chunk_of[i] = ptx_shl(k, chunk, ptx_u32(4));
    }
    s->some = ptx_setp(k, PTX_LT, lane, ptx_u32(f->step / 16 - 32 * (f->rounds - 1)));
}

/* bytes + low - chunk, of 0 ... 16 */
static ptx_val ptxk__chunk_bytes(ptx_kernel *k, ptx_val bytes, ptx_val low, ptx_val chunk) {
    ptx_val x = ptx_add(k, bytes, low);
    x = ptx_sub(k, x, chunk);
    x = ptx_max(k, ptx_as(x, PTX_S32), ptx_s32(0));
    x = ptx_min(k, x, ptx_s32(16));
    return ptx_as(x, PTX_U32);
}

/* Whether all chunks of a round lie within a row's part of a step at any alignment: with one row, in every
   round but the last. */
static int ptxk__round_is_whole(const ptxk__rows *f, uint32_t round) {
    uint32_t last = 512 * (round + 1) - 16, end = last / f->run_area * f->run_bytes + last % f->run_area + 16;
    return f->block->aligned || (f->rows == 1 && end <= f->unit_bytes);
}

/* Whether the chunks of a round lie 512 bytes after those of the round before. */
static int ptxk__round_is_consecutive(const ptxk__rows *f, uint32_t round) {
    return round && f->rows == 1 && f->runs == 1;
}

typedef struct ptxk__chunks_in_flight { /* chunks of a step in flight through registers */
    ptx_val words[8][4], from[8], bytes[8], go[8], to;
} ptxk__chunks_in_flight;

/* Issues the copies of step `index` into the ring at `slot`, and commits a group even where there is no such
   step. Before sm_80 it loads, and ptxk__rows_store_chunks stores. */
static void ptxk__rows_issue_copies(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val slot,
                                    ptx_val index, ptxk__chunks_in_flight *sent) {
    int async = ptxk__has_cp_async(k);
    ptx_val to, there, last, from, bytes, go, next;
    uint32_t i;
    there = ptx_setp(k, PTX_LT, index, s->steps);
    if (f->sized) {
        next = ptx_add(k, index, ptx_u32(1));
        last = ptx_setp(k, PTX_EQ, next, s->steps);
    }
    to = ptx_ptr_add(k, s->mine, slot, 1);
    sent->to = to;
    for (i = 0; i < f->rounds; i++) {
        if (ptxk__round_is_consecutive(f, i)) {
            from = ptx_ptr_add(k, from, ptx_u64(512), 1);
        } else {
            from = ptx_mad_wide(k, index, ptx_u32(f->unit_bytes), s->from[i]);
            if (f->toggles) {
                from = ptx_and(k, from, ptx_u64(~(uint64_t)(f->grain - 1)));
                if (f->grain > 16) from = ptx_or(k, from, s->half[i]);
            }
            from = ptx_ptr(from, PTX_GLOBAL);
        }
        bytes = ptx_u32(16);
        if (f->sized) {
            if (!ptxk__round_is_whole(f, i)) bytes = ptx_get(k, s->full[i]);
            bytes = ptx_selp(k, s->last[i], bytes, last);
            go = there;
            if (i + 1 == f->rounds && f->step % 512) go = ptx_and(k, there, s->some);
        } else {
            go = ptx_setp(k, PTX_LT, index, s->count[i]);
        }
        if (async) {
            if (i) to = ptx_ptr_add(k, to, ptx_u32(512), 1);
            ptx_guard(k, go);
            if (f->sized)
                ptx_cp_async_16_zfill(k, to, from, bytes);
            else
                ptx_cp_async_16(k, to, from);
        } else {
            sent->go[i] = go;
            sent->from[i] = from;
            sent->bytes[i] = bytes;
            if (f->sized) {
                next = ptx_setp(k, PTX_EQ, bytes, ptx_u32(16));
                go = ptx_and(k, go, next);
            }
            ptxk_load16(k, &go, ptx_at(from, 0), sent->words[i]);
        }
        if (!f->toggles || ptxk__round_is_whole(f, i)) continue;
        next = ptx_get(k, s->full[i]);
        next = ptx_sub(k, s->both[i], next);
        ptx_set(k, s->full[i], next);
    }
    if (async) ptx_cp_async_commit(k);
}

/* Before sm_80: stores the chunks that ptxk__rows_issue_copies loaded in the ring. The last bytes of a row
   that are no whole chunk go two by two. */
static void ptxk__rows_store_chunks(ptx_kernel *k, const ptxk__rows *f, const ptxk__chunks_in_flight *sent) {
    ptx_val to = sent->to, j, p, from, here, x;
    uint32_t i;
    if (ptxk__has_cp_async(k)) return;
    for (i = 0; i < f->rounds; i++) {
        if (i) to = ptx_ptr_add(k, to, ptx_u32(512), 1);
        ptx_guard(k, sent->go[i]);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(to, 0), sent->words[i]);
        if (f->block->aligned) continue;
        p = ptx_setp(k, PTX_LT, sent->bytes[i], ptx_u32(16));
        p = ptx_and(k, p, sent->go[i]);
        ptx_if(k, p);
        j = ptx_for(k, ptx_u32(0), sent->bytes[i], ptx_u32(2));
        from = ptx_ptr_add(k, sent->from[i], j, 1);
        here = ptx_ptr_add(k, to, j, 1);
        x = ptx_ld(k, PTX_U16, ptx_at(from, 0));
        ptx_st(k, PTX_U16, ptx_at(here, 0), x);
        ptx_end(k);
        ptx_end(k);
    }
}

/* Computes the number of steps for `bytes` bytes of each row, and the last step. */
static void ptxk__rows_steps(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val bytes) {
    ptx_val last_step, p;
    s->steps = ptxk_div_up(k, bytes, ptx_u32(f->unit_bytes));
    last_step = ptx_sub(k, s->steps, ptx_u32(1));
    if (f->toggles) {
        s->turned = ptx_and(k, last_step, ptx_u32(1));
        s->turned = ptx_mul(k, s->turned, ptx_u32(f->toggles));
    }
    s->rest = ptx_mul(k, last_step, ptx_u32(f->unit_bytes));
    s->rest = ptx_sub(k, bytes, s->rest);
    if (f->sized) return;
    p = ptx_setp(k, PTX_LT, s->own[0], s->rest);
    s->own_last = ptx_selp(k, s->own[0], ptx_u32(0), p);
}

/* Computes where the copies of rows row ... row + f->rows - 1 of n begin. base: address of row 0, including
   the skipped bytes. */
static void ptxk__rows_find_start(ptx_kernel *k, const ptxk__rows *f, const ptxk__rows_state *s, ptx_val base,
                                  ptx_val row_bytes, ptx_val row, ptx_val n, ptxk__copy_start *start) {
    ptx_val last_row, last_step, r, at, low = ptx_u32(0), p, here, off, rest = s->rest, unit;
    uint32_t i;
    unit = ptx_u32(f->unit_bytes);
    last_row = ptx_sub(k, n, ptx_u32(1));
    if (!f->sized) last_step = ptx_sub(k, s->steps, ptx_u32(1));
    for (i = 0; i < f->rounds; i++) {
        if (!ptxk__round_is_consecutive(f, i)) {
            r = f->rows > 1 ? ptx_add(k, row, s->row_of[i]) : row;
            r = ptx_min(k, r, last_row);
            at = ptx_mul_wide(k, r, row_bytes);
            at = ptx_ptr_add(k, base, at, 1);
            if (f->runs > 1) at = ptx_ptr_add(k, at, s->run_of[i], 1);
            off = s->chunk_of[i];
            if (!f->block->aligned) {
                low = ptx_cvt(k, PTX_U32, ptx_ptr(at, PTX_GENERIC)); /* used as a number, not dereferenced */
                low = ptx_and(k, low, ptx_u32(f->grain - 1));
            }
            if (f->toggles) {
                off = ptx_and(k, s->chunk_of[i], ptx_u32(~(f->grain - 16)));
                here = ptx_and(k, s->chunk_of[i], ptx_u32(f->grain - 16));
                start->half[i] = ptx_cvt(k, PTX_U64, here);
            } else if (!f->block->aligned) {
                off = ptx_sub(k, s->chunk_of[i], low);
            }
            start->from[i] = ptx_ptr_add(k, at, ptx_as(off, PTX_S32), 1);
        }
        if (!f->sized) {
            p = ptx_setp(k, PTX_LT, s->chunk_of[i], s->rest);
            start->count[i] = ptx_selp(k, s->steps, last_step, p);
            if (i + 1 == f->rounds && f->step % 512)
                start->count[i] = ptx_selp(k, start->count[i], ptx_u32(0), s->some);
            continue;
        }
        here = low;
        if (f->toggles) {
            off = ptx_xor(k, low, ptx_u32(f->toggles));
            here = ptx_xor(k, low, s->turned);
        }
        if (f->runs > 1) rest = ptx_sub(k, s->rest, s->run_of[i]);
        start->last[i] = ptxk__chunk_bytes(k, rest, f->block->aligned ? ptx_u32(0) : here, s->chunk_of[i]);
        if (ptxk__round_is_whole(f, i)) continue;
        if (f->runs > 1) unit = ptx_sub(k, ptx_u32(f->unit_bytes), s->run_of[i]);
        start->full[i] = ptxk__chunk_bytes(k, unit, low, s->chunk_of[i]);
        if (!f->toggles) continue;
        p = ptxk__chunk_bytes(k, unit, off, s->chunk_of[i]);
        start->both[i] = ptx_add(k, start->full[i], p);
    }
}

/* Chooses the order of words of row i, whose block lies `past` bytes, 0 or 2, after an aligned word: of the
   four blocks that a warp reads at a time, either 0 and 2 or 1 and 3 have `past` 2. */
static void ptxk__rows_word_order(ptx_kernel *k, ptxk__rows_state *s, uint32_t i, ptx_val past) {
    ptx_val p = ptx_setp(k, PTX_NE, past, ptx_u32(0)), at = s->words[0][i], odd, again;
    odd = ptx_and(k, s->group, ptx_u32(1));
    odd = ptx_shl(k, odd, ptx_u32(2));
    again = ptx_sub(k, ptx_u32(8), odd);
    again = ptx_selp(k, ptx_u32(16), again, p);
    s->fifth[i] = ptx_add(k, at, again);
    odd = ptx_setp(k, PTX_NE, s->group, ptx_u32(0));
    p = ptx_and(k, p, odd);
    s->swapped[i] = p;
    again = ptx_add(k, at, ptx_u32(8));
    s->words[0][i] = ptx_selp(k, again, at, p);
    s->other[i] = ptx_selp(k, at, again, p);
}

/* Computes the offsets in a slot that the lane reads for those rows. */
static void ptxk__rows_slot_offsets(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val base,
                                    ptx_val row_bytes, ptx_val row, ptx_val n) {
    ptx_val last_row, r, at, low, p, here, off;
    uint32_t i, t, delta = f->block->pair * (256 / f->block->values) * f->block->bytes;
    if (f->block->aligned) return;
    last_row = ptx_sub(k, n, ptx_u32(1));
    for (i = 0; i < f->rows; i++) {
        r = ptx_add(k, row, ptx_u32(i));
        r = ptx_min(k, r, last_row);
        at = ptx_cvt(k, PTX_U32, ptx_ptr(base, PTX_GENERIC)); /* likewise */
        low = ptx_mad(k, r, row_bytes, at);
        if (f->runs > 1) low = ptx_add(k, low, s->run);
        low = ptx_and(k, low, ptx_u32(f->grain - 1));
        if (f->toggles) {
            off = ptx_and(k, low, ptx_u32(f->toggles));
            p = ptx_add(k, off, off);
            s->move[i] = ptx_sub(k, ptx_u32(f->toggles), p); /* forward, or back */
            s->moved[i] = ptx_var_new(k, ptx_u32(0));
        }
        for (t = 0; t < f->times; t++) {
            if (t && delta % 4 == 0) {
                s->block[t][i] = ptx_add(k, s->block[0][i], ptx_u32(delta));
                s->words[t][i] = ptx_add(k, s->words[0][i], ptx_u32(delta));
                s->pick[t][i] = s->pick[0][i];
                continue;
            }
            here = ptx_add(k, low, s->own[t]);
            here = ptx_add(k, here, ptx_u32(f->area * i));
            s->block[t][i] = here;
            if (f->block->reader) continue;
            if (f->block->values == 32) { /* 2 bytes, then the integers; from the same words in all rows */
                off = ptx_and(k, low, ptx_u32(2));
                at = ptx_add(k, here, off);
                here = ptx_add(k, here, ptx_u32(2));
            } else {
                at = here;
            }
            at = ptx_and(k, at, ptx_u32(~3u));
            s->words[t][i] = at;
            off = ptx_sub(k, here, at);
            if (f->turning) ptxk__rows_word_order(k, s, i, off);
            off = ptx_mad(k, off, ptx_u32(0x1111), ptx_u32(0x3210));
            s->pick[t][i] = ptx_as(off, PTX_B32);
        }
    }
}

/* Begins rows row ... row + f->rows - 1 of a matrix of n rows of row_bytes each; rows past the end repeat the
   last one. Takes `bytes` bytes of each row from `skip` on (u64: whole steps of every format that shares x).
   weights: global, 16-byte aligned. No other cp.async group may be open until ptxk__rows_finish has run. */
static void ptxk__rows_start(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val weights,
                             ptx_val row_bytes, ptx_val row, ptx_val n, ptx_val skip, ptx_val bytes) {
    ptx_val base, r;
    ptxk__copy_start start;
    ptxk__chunks_in_flight sent;
    uint32_t i;
    base = ptx_ptr_add(k, weights, skip, 1);
    ptxk__rows_steps(k, f, s, bytes);
    ptxk__rows_find_start(k, f, s, base, row_bytes, row, n, &start);
    memcpy(s->from, start.from, sizeof s->from);
    memcpy(s->count, start.count, sizeof s->count);
    memcpy(s->both, start.both, sizeof s->both);
    memcpy(s->half, start.half, sizeof s->half);
    memcpy(s->last, start.last, sizeof s->last);
    for (i = 0; i < f->rounds && f->sized; i++)
        if (!ptxk__round_is_whole(f, i)) s->full[i] = ptx_var_new(k, start.full[i]);
    ptxk__rows_slot_offsets(k, f, s, base, row_bytes, row, n);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes have read what the ring held before */
    for (i = 0; i + 1 < f->stages; i++) {
        ptx_var index = ptx_var_new(k, ptx_u32(i));
        r = ptx_get(k, index);
        ptxk__rows_issue_copies(k, f, s, ptx_u32(i * f->step), r, &sent);
        ptxk__rows_store_chunks(k, f, &sent);
    }
    s->slot = ptx_var_new(k, ptx_u32(0));
}

/* Creates the variables that hold the start of the copies, where it differs from row to row. */
static void ptxk__rows_vars(ptx_kernel *k, ptxk__rows_state *s, uint32_t rounds) {
    uint32_t i;
    s->slot = ptx_var_new(k, ptx_u32(0));
    s->ahead = ptx_var_new(k, ptx_u32(0));
    for (i = 0; i < rounds; i++) {
        s->kept[0][i] = ptx_var_new(k, ptx_u64(0));
        s->kept[1][i] = ptx_var_new(k, ptx_u32(0));
        s->kept[2][i] = ptx_var_new(k, ptx_u32(0));
        s->kept[3][i] = ptx_var_new(k, ptx_u32(0));
        s->kept[4][i] = ptx_var_new(k, ptx_u64(0));
        s->full[i] = ptx_var_new(k, ptx_u32(0));
    }
}

static void ptxk__rows_set_start(ptx_kernel *k, const ptxk__rows *f, const ptxk__rows_state *s,
                                 const ptxk__copy_start *start) {
    uint32_t i;
    for (i = 0; i < f->rounds; i++) {
        if (!ptxk__round_is_consecutive(f, i))
            ptx_set(k, s->kept[0][i], ptx_as(ptx_ptr(start->from[i], PTX_GENERIC), PTX_U64));
        if (!f->sized) {
            ptx_set(k, s->kept[1][i], start->count[i]);
            continue;
        }
        ptx_set(k, s->kept[2][i], start->last[i]);
        if (f->toggles && !ptxk__round_is_consecutive(f, i)) ptx_set(k, s->kept[4][i], start->half[i]);
        if (ptxk__round_is_whole(f, i)) continue;
        ptx_set(k, s->full[i], start->full[i]);
        if (f->toggles) ptx_set(k, s->kept[3][i], start->both[i]);
    }
    ptx_set(k, s->ahead, ptx_u32(0));
}

/* Issues the copies of the next step, of these rows or the first of the next rows; always commits a group. */
static void ptxk__rows_issue_next(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val slot,
                                  ptxk__chunks_in_flight *sent) {
    ptx_val index = ptx_get(k, s->ahead), p;
    uint32_t i;
    p = ptx_setp(k, PTX_GE, index, s->steps);
    ptx_if(k, p);
    s->next(s->context);
    ptx_end(k);
    for (i = 0; i < f->rounds; i++) {
        if (!ptxk__round_is_consecutive(f, i)) s->from[i] = ptx_ptr(ptx_get(k, s->kept[0][i]), PTX_GLOBAL);
        if (!f->sized) {
            s->count[i] = ptx_get(k, s->kept[1][i]);
            continue;
        }
        s->last[i] = ptx_get(k, s->kept[2][i]);
        if (f->toggles && !ptxk__round_is_consecutive(f, i)) s->half[i] = ptx_get(k, s->kept[4][i]);
        if (f->toggles && !ptxk__round_is_whole(f, i)) s->both[i] = ptx_get(k, s->kept[3][i]);
    }
    index = ptx_get(k, s->ahead);
    ptxk__rows_issue_copies(k, f, s, slot, index, sent);
    index = ptx_add(k, index, ptx_u32(1));
    index = ptx_min(k, index, s->steps);
    ptx_set(k, s->ahead, index);
}

/* Issues the first steps of a sequence of rows, after ptxk__rows_find_start. */
static void ptxk__rows_issue_first(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s) {
    ptxk__chunks_in_flight sent;
    ptx_val i, slot;
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes have read what the ring held before */
    ptx_set(k, s->slot, ptx_u32(0));
    i = ptx_for(k, ptx_u32(0), ptx_u32(f->stages - 1), ptx_u32(1));
    slot = ptx_mul(k, i, ptx_u32(f->step));
    ptxk__rows_issue_next(k, f, s, slot, &sent);
    ptxk__rows_store_chunks(k, f, &sent);
    ptx_end(k);
}

/* x of one column for a lane: halves by plane, or the numbers themselves; factors; the negated sum. */
typedef struct ptxk__x_share {
    ptx_val x[2][2][4], number[8], d[2], sum;
    ptx_val half_sum[2]; /* readers: of the halves, or of both */
} ptxk__x_share;

/* Adds the product of a share and x to the sum, where the format has a reader: for each half, or both,
   times (d P) - minus (sum of x). */
static void ptxk__rows_add_share(ptx_kernel *k, const ptxk__rows *f, const ptxk__share *w,
                                 const ptxk__x_share *x, ptx_var sum) {
    ptx_type type = f->block->is_signed ? PTX_S32 : PTX_U32;
    ptx_val total = ptx_get(k, sum), dot = ptx_s32(0), high;
    uint32_t parts = 1 + f->block->reader->halves, h, p, i;
    for (h = 0; h < parts; h++) {
        for (p = 0; p < f->planes; p++) {
            high = dot;
            dot = ptx_s32(0);
            for (i = 4 * h; i < 8 / parts * (h + 1); i++)
                dot = ptx_dp4a(k, ptx_as(w->half[i / 4][i % 4], type), ptx_as(x->x[p][i / 4][i % 4], PTX_S32),
                               dot);
            if (p) dot = ptx_mad(k, high, ptx_s32(256), dot);
        }
        dot = ptx_cvt(k, PTX_F32, dot);
        dot = ptx_op2(k, PTX_MUL, PTX_RN, dot, x->d[0]);
        total = ptx_fma(k, dot, w->times[h], total);
        if (f->block->reader->has_minimum) total = ptx_fma(k, w->minus[h], x->half_sum[h], total);
    }
    ptx_set(k, sum, total);
}

/* Adds the product of a lane's values of x and weights to the sum.
     scaled      factor (d first (scale P) + d' second (scale' P')) - minimum s
     unscaled    factor (d (P + P')); Q4_0: factor (d first (16 P + P') - offset s)
   P is the dot product of a half's integers and x's, an exact integer below 2^31: 16 * 240 * 127, with 8-bit
   x times a scale of 63; 32 * 128 * 32639; 16 * 16 * 15 * 32639, twice. */
static void ptxk__rows_product(ptx_kernel *k, const ptxk__rows *f, const ptxk__share *w,
                               const ptxk__x_share *x, ptx_var sum) {
    ptx_type type = f->block->is_signed ? PTX_S32 : PTX_U32;
    ptx_val part[2], total, dot, scale;
    uint32_t h, p, i;
    if (f->block->reader) {
        ptxk__rows_add_share(k, f, w, x, sum);
        return;
    }
    for (p = 0; p < f->planes && f->block->kind == PTXK__UNSCALED; p++) {
        dot = ptx_s32(0);
        for (h = 0; h < 2; h++) {
            if (h && f->block->first < 1) dot = ptx_shl(k, dot, ptx_u32(4));
            for (i = 0; i < 4; i++)
                dot = ptx_dp4a(k, ptx_as(w->half[h][i], type), ptx_as(x->x[p][h][i], PTX_S32), dot);
        }
        part[0] = p ? ptx_mad(k, part[0], ptx_s32(256), dot) : dot;
    }
    for (h = 0; h < 2 && f->block->kind == PTXK__SCALED; h++) {
        for (p = 0; p < f->planes; p++) {
            dot = p ? ptx_shl(k, part[h], ptx_u32(8)) : ptx_s32(0);
            for (i = 0; i < 4; i++)
                dot = ptx_dp4a(k, ptx_as(w->half[h][i], type), ptx_as(x->x[p][h][i], PTX_S32), dot);
            part[h] = dot;
        }
        if (f->planes == 1) {
            part[h] = ptx_mul(k, part[h], w->scale[h]);
            part[h] = ptx_cvt(k, PTX_F32, part[h]);
        } else {
            part[h] = ptx_cvt(k, PTX_F32, part[h]);
            scale = ptx_cvt(k, PTX_F32, w->scale[h]);
            part[h] = ptx_op2(k, PTX_MUL, PTX_RN, part[h], scale);
        }
    }
    if (f->block->kind == PTXK__SCALED) {
        total = ptx_op2(k, PTX_MUL, PTX_RN, part[0], x->d[0]);
        total = ptx_fma(k, part[1], x->d[1], total);
    } else {
        total = ptx_cvt(k, PTX_F32, part[0]);
        total = f->block->offset > 0 ? ptx_fma(k, total, x->d[0], x->sum)
                                     : ptx_op2(k, PTX_MUL, PTX_RN, total, x->d[0]);
    }
    dot = ptx_get(k, sum);
    dot = ptx_fma(k, total, w->factor, dot);
    if (f->block->has_minimum) dot = ptx_fma(k, w->minimum, x->sum, dot);
    ptx_set(k, sum, dot);
}

static void ptxk__rows_x(ptx_kernel *k, const ptxk__rows *f, const ptxk__rows_state *s, ptx_val record,
                         uint32_t time, ptxk__x_share *x) {
    const ptxk__block *b = f->block;
    ptx_val here;
    uint32_t h, p, shift = 256 * f->planes * b->pair * time;
    memset(x, 0, sizeof *x);
    for (h = 0; h < 2; h++) {
        here = ptx_ptr_add(k, record, s->lane.x[h], 1);
        if (!f->planes) ptx_ld_vec(k, PTX_F32, 4, ptx_at(here, 0), x->number + 4 * h);
        for (p = 0; p < f->planes; p++)
            ptxk_load16(k, NULL, ptx_at(here, (int64_t)(shift + 256 * p)), x->x[p][h]);
    }
    if (!f->planes) return;
    here = ptx_ptr_add(k, record, s->lane.d[time], 1);
    x->d[0] = ptx_ld(k, PTX_F32, ptx_at(here, 0));
    for (h = 0; b->reader && b->reader->has_minimum && h < 1 + b->reader->halves; h++) {
        ptx_val dot = ptx_s32(0), high;
        if (!b->reader->halves) {
            x->half_sum[h] = ptx_ld(k, PTX_F32, ptx_at(here, 128));
        } else {
            for (p = 0; p < f->planes; p++) {
                uint32_t i;
                high = dot;
                dot = ptx_s32(0);
                for (i = 0; i < 4; i++)
                    dot = ptx_dp4a(k, ptx_s32(0x01010101), ptx_as(x->x[p][h][i], PTX_S32), dot);
                if (p) dot = ptx_mad(k, high, ptx_s32(256), dot);
            }
            dot = ptx_cvt(k, PTX_F32, dot);
            x->half_sum[h] = ptx_op2(k, PTX_MUL, PTX_RN, dot, x->d[0]);
        }
        x->half_sum[h] = ptx_neg(k, x->half_sum[h]);
    }
    if (b->first < 1) x->d[0] = ptx_op2(k, PTX_MUL, PTX_RN, x->d[0], ptx_f32(b->first));
    if (b->kind == PTXK__SCALED) {
        x->d[1] = ptx_ld(k, PTX_F32, ptx_at(here, b->order == PTXK__NIBBLES_APART ? 8 : 4));
        if (b->second < 1) x->d[1] = ptx_op2(k, PTX_MUL, PTX_RN, x->d[1], ptx_f32(b->second));
    }
    if (!b->has_minimum && !(b->offset > 0)) return;
    here = ptx_ptr_add(k, record, s->lane.s[time], 1);
    x->sum = ptx_ld(k, PTX_F32, ptx_at(here, 128));
    x->sum = b->has_minimum ? ptx_neg(k, x->sum) : ptx_op2(k, PTX_MUL, PTX_RN, x->sum, ptx_f32(-b->offset));
}

static void ptxk__rows_step(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val step,
                            ptx_val stride) {
    ptx_val here, slot, before, own, p, record;
    ptxk__share share[PTXK__ROWS_MAX];
    ptxk__x_share x;
    ptxk__place place;
    ptxk__chunks_in_flight sent;
    uint32_t r, c, t;
    memset(&place, 0, sizeof place);
    place.turning = f->turning;
    if (ptxk__has_cp_async(k)) ptx_cp_async_wait(k, f->stages - 2);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* the step's bytes have arrived; the last is read */
    /* the previous step used slot `before`; the step f->stages - 1 ahead reuses it */
    slot = ptx_get(k, s->slot);
    here = ptx_ptr_add(k, s->ring, slot, 1);
    if (f->stages == 2) {
        before = ptx_xor(k, slot, ptx_u32(f->step));
        ptx_set(k, s->slot, before);
    } else {
        before = ptx_sub(k, slot, ptx_u32(f->step));
        p = ptx_setp(k, PTX_EQ, slot, ptx_u32(0));
        before = ptx_selp(k, ptx_u32((f->stages - 1) * f->step), before, p);
        p = ptx_setp(k, PTX_EQ, slot, ptx_u32((f->stages - 1) * f->step));
        slot = ptx_add(k, slot, ptx_u32(f->step));
        slot = ptx_selp(k, ptx_u32(0), slot, p);
        ptx_set(k, s->slot, slot);
    }
    slot = here;
    if (s->next) {
        ptxk__rows_issue_next(k, f, s, before, &sent);
        if (ptxk__has_cp_async(k)) ptx_cp_async_wait(k, f->stages - 1); /* for none: they fill other slots */
    } else {
        here = ptx_add(k, step, ptx_u32(f->stages - 1));
        ptxk__rows_issue_copies(k, f, s, before, here, &sent);
    }
    own = s->own[0];
    if (!f->sized) {
        here = ptx_add(k, step, ptx_u32(1));
        p = ptx_setp(k, PTX_EQ, here, s->steps);
        own = ptx_selp(k, s->own_last, own, p);
    }
    if (f->block->aligned) own = ptx_ptr_add(k, slot, own, 1);
    for (t = 0; t < f->times; t++) {
        for (r = 0; r < f->rows; r++) {
            if (f->block->aligned) {
                place.block = ptx_ptr_add(k, own, ptx_u32(r * f->area), 1);
            } else {
                here = slot;
                if (f->toggles) {
                    p = ptx_get(k, s->moved[r]);
                    here = ptx_ptr_add(k, slot, p, 1);
                    if (t + 1 == f->times) {
                        p = ptx_sub(k, s->move[r], p);
                        ptx_set(k, s->moved[r], p);
                    }
                }
                place.block = ptx_ptr_add(k, here, s->block[t][r], 1);
                if (f->block->reader) {
                    ptxk__read_share(k, f->block, s->lane.at, place.block, &share[r]);
                    continue;
                }
                place.words = ptx_ptr_add(k, here, s->words[t][r], 1);
                place.pick = s->pick[t][r];
                if (f->turning) {
                    place.other = ptx_ptr_add(k, here, s->other[r], 1);
                    place.fifth = ptx_ptr_add(k, here, s->fifth[r], 1);
                    place.swapped = s->swapped[r];
                }
            }
            f->block->read(k, &s->lane, &place, &share[r]);
        }
        record = ptx_get(k, s->x);
        record = ptx_ptr(record, PTX_SHARED);
        for (c = 0; c < f->columns; c++) {
            if (c) record = ptx_ptr_add(k, record, stride, 1);
            ptxk__rows_x(k, f, s, record, t, &x);
            for (r = 0; r < f->rows; r++) {
                if (f->planes) {
                    ptxk__rows_product(k, f, &share[r], &x, s->sum[c][r]);
                } else {
                    here = ptx_get(k, s->sum[c][r]);
                    here = ptxk_dot(k, 8, share[r].number, x.number, here);
                    ptx_set(k, s->sum[c][r], here);
                }
            }
        }
    }
    record = ptx_get(k, s->x);
    record = ptx_add(k, record, ptx_u32(f->unit / f->values * f->record));
    ptx_set(k, s->x, record);
    ptxk__rows_store_chunks(k, f, &sent);
}

/* Runs all steps: out[c][r] is the dot product of row r with column c, in every lane. x: shared memory,
   records from `skip` on, zeros up to a whole step. stride: bytes from column to column. */
static void ptxk__rows_finish(ptx_kernel *k, const ptxk__rows *f, ptxk__rows_state *s, ptx_val x,
                              ptx_val stride, ptx_val out[8][PTXK__ROWS_MAX]) {
    ptx_val step;
    uint32_t c, r;
    s->x = ptx_var_new(k, x);
    for (c = 0; c < f->columns; c++)
        for (r = 0; r < f->rows; r++) s->sum[c][r] = ptx_var_new(k, ptx_f32(0));
    step = ptx_for(k, ptx_u32(0), s->steps, ptx_u32(1));
    ptxk__rows_step(k, f, s, step, stride);
    ptx_end(k);
    if (ptxk__has_cp_async(k) && !s->next) ptx_cp_async_wait_all(k); /* only empty groups remain */
    for (c = 0; c < f->columns; c++) {
        for (r = 0; r < f->rows; r++) {
            out[c][r] = ptx_get(k, s->sum[c][r]);
            out[c][r] = ptxk_warp_reduce(k, PTX_ADD, out[c][r], 1, 32);
        }
    }
}

/* -- vocabulary: weights eight at a time -- */

/* Eight weights of a block: scale * q[i] + offset. */
typedef struct ptxk__octet {
    ptx_val q[8]; /* f32, exact integers (the weights themselves in formats without blocks) */
    ptx_val scale, offset;
    int scaled, has_offset;
} ptxk__octet;

/* Converts the four bytes of a word to f32 and subtracts `minus`: a byte becomes the lowest digits of
   2^23. */
static void ptxk__bytes_to_f32(ptx_kernel *k, ptx_val word, double minus, ptx_val *out) {
    uint32_t i;
    for (i = 0; i < 4; i++) {
        ptx_val x = ptx_prmt(k, ptx_as(word, PTX_B32), ptx_b32(0x4b000000), ptx_b32(0x7540 + i));
        out[i] = ptx_op2(k, PTX_SUB, PTX_RN, ptx_as(x, PTX_F32), ptx_f32(8388608.0 + minus));
    }
}

/* Loads two words from a 2-byte aligned address. */
static void ptxk__load_2_words(ptx_kernel *k, ptx_val at, int64_t offset, ptx_val *words) {
    ptx_val half[4], pair[2];
    uint32_t i;
    for (i = 0; i < 4; i++) half[i] = ptx_ld(k, PTX_B16, ptxk__weight_operand(at, offset + 2 * i));
    for (i = 0; i < 2; i++) {
        pair[0] = half[2 * i];
        pair[1] = half[2 * i + 1];
        words[i] = ptx_pack(k, PTX_B32, 2, pair);
    }
}

/* The same, of a format with a reader. */
static void ptxk__octet_read_share(ptx_kernel *k, const ptxk__block *b, ptx_val at, ptx_val e,
                                   ptxk__octet *o) {
    ptx_val share = ptx_shr(k, e, ptx_u32(2)), p, half, word[2];
    ptxk__share x;
    uint32_t i, j;
    memset(&x, 0, sizeof x);
    if (b->values < 256) {
        p = ptx_div(k, share, ptx_u32(b->values / 32));
        at = ptx_ptr_add(k, at, p, b->bytes);
    }
    ptxk__read_share(k, b, share, at, &x);
    p = ptxk__bit(k, e, 0);
    p = ptx_setp(k, PTX_NE, p, ptx_u32(0));
    half = ptxk__bit(k, e, 1);
    half = ptx_setp(k, PTX_NE, half, ptx_u32(0));
    for (i = 0; i < 2; i++) {
        for (j = 0; j < 2; j++) word[j] = ptx_selp(k, x.half[j][i + 2], x.half[j][i], p);
        word[0] = ptx_selp(k, word[1], word[0], half);
        if (b->is_signed) word[0] = ptx_xor(k, word[0], ptx_b32(0x80808080u));
        ptxk__bytes_to_f32(k, word[0], b->is_signed ? 128 : 0, o->q + 4 * i);
    }
    o->scale = b->reader->halves ? ptx_selp(k, x.times[1], x.times[0], half) : x.times[0];
    if (b->first < 1) o->scale = ptx_op2(k, PTX_MUL, PTX_RN, o->scale, ptx_f32((double)b->first));
    o->scaled = 1;
    if (!b->reader->has_minimum) return;
    o->offset = b->reader->halves ? ptx_selp(k, x.minus[1], x.minus[0], half) : x.minus[0];
    o->offset = ptx_neg(k, o->offset);
    o->has_offset = 1;
}

/* Reads weights 8 e ... 8 e + 7, e in 0 ... 31, of the block of 256 at an address. Where blocks have fewer,
   e may pass into the following blocks. */
static void ptxk__octet_read(ptx_kernel *k, uint32_t format, ptx_val at, ptx_val e, ptxk__octet *o) {
    ptx_val words[4], here, j, shift, wide[8];
    uint32_t i;
    o->scaled = o->has_offset = 0;
    if (ptxk__block_of(format)->reader) {
        ptxk__octet_read_share(k, ptxk__block_of(format), at, e, o);
        return;
    }
    if (format == PTXK_Q4_K || format == PTXK_Q5_K) {
        ptx_val low, high, p, s, other, d, m, fifth[2];
        j = ptx_shr(k, e, ptx_u32(2)); /* the group of 32 */
        here = ptx_shr(k, j, ptx_u32(1));
        i = 0;
        shift = ptx_and(k, e, ptx_u32(3));
        here = ptx_mad(k, here, ptx_u32(4), shift);
        here = ptx_ptr_add(k, at, here, 8);
        ptx_ld_vec(k, PTX_B32, 2, ptxk__weight_operand(here, format == PTXK_Q5_K ? 48 : 16), words + 2);
        if (format == PTXK_Q5_K) { /* bit j of 32 bytes */
            here = ptx_ptr_add(k, at, shift, 8);
            ptx_ld_vec(k, PTX_B32, 2, ptxk__weight_operand(here, 16), fifth);
        }
        shift = ptx_and(k, j, ptx_u32(1));
        shift = ptx_shl(k, shift, ptx_u32(2));
        for (i = 2; i < 4; i++) {
            words[i] = ptx_as(ptx_shr(k, ptx_as(words[i], PTX_U32), shift), PTX_B32);
            words[i] = ptx_and(k, words[i], ptx_b32(0x0f0f0f0f));
            if (format == PTXK_Q5_K) {
                p = ptx_shr(k, ptx_as(fifth[i - 2], PTX_U32), j);
                p = ptx_and(k, p, ptx_u32(0x01010101));
                p = ptx_shl(k, p, ptx_u32(4));
                words[i] = ptx_or(k, words[i], ptx_as(p, PTX_B32));
            }
            ptxk__bytes_to_f32(k, words[i], 0, o->q + 4 * (i - 2));
        }
        ptx_ld_vec(k, PTX_B32, 4, ptxk__weight_operand(at, 0), words);
        ptx_unpack(k, PTX_F16, 2, words[0], wide);
        d = ptx_cvt(k, PTX_F32, wide[0]);
        m = ptx_cvt(k, PTX_F32, wide[1]);
        p = ptx_setp(k, PTX_GE, j, ptx_u32(4));
        shift = ptx_and(k, j, ptx_u32(3));
        shift = ptx_shl(k, shift, ptx_u32(3));
        low = ptx_shr(k, ptx_as(words[1], PTX_U32), shift);   /* b[j & 3] */
        high = ptx_shr(k, ptx_as(words[2], PTX_U32), shift);  /* b[4 + (j & 3)] */
        other = ptx_shr(k, ptx_as(words[3], PTX_U32), shift); /* b[8 + (j & 3)] */
        s = ptx_bfe(k, low, ptx_u32(6), ptx_u32(2));
        s = ptx_bfi(k, ptx_as(s, PTX_B32), ptx_as(other, PTX_B32), ptx_u32(4), ptx_u32(2));
        s = ptx_and(k, s, ptx_b32(63));
        low = ptx_and(k, ptx_as(low, PTX_B32), ptx_b32(63));
        s = ptx_selp(k, s, low, p);
        s = ptx_cvt(k, PTX_F32, ptx_as(s, PTX_U32));
        o->scale = ptx_op2(k, PTX_MUL, PTX_RN, d, s);
        other = ptx_shr(k, other, ptx_u32(4));
        s = ptx_bfe(k, high, ptx_u32(6), ptx_u32(2));
        s = ptx_bfi(k, ptx_as(s, PTX_B32), ptx_as(other, PTX_B32), ptx_u32(4), ptx_u32(2));
        s = ptx_and(k, s, ptx_b32(63));
        high = ptx_and(k, ptx_as(high, PTX_B32), ptx_b32(63));
        s = ptx_selp(k, s, high, p);
        s = ptx_cvt(k, PTX_F32, ptx_as(s, PTX_U32));
        m = ptx_neg(k, m);
        o->offset = ptx_op2(k, PTX_MUL, PTX_RN, m, s);
        o->scaled = o->has_offset = 1;
        return;
    }
    if (format == PTXK_Q6_K) {
        ptx_val n, c, l, low[2], high[2], d;
        n = ptx_shr(k, e, ptx_u32(4));             /* the half of 128 */
        c = ptx_bfe(k, e, ptx_u32(2), ptx_u32(2)); /* its group of 32 */
        l = ptx_and(k, e, ptx_u32(3));             /* eighth of the group */
        j = ptx_and(k, c, ptx_u32(1));
        j = ptx_mad(k, j, ptx_u32(4), l);
        j = ptx_mad(k, n, ptx_u32(8), j);
        here = ptx_ptr_add(k, at, j, 8);
        ptxk__load_2_words(k, here, 0, low);
        j = ptx_mad(k, n, ptx_u32(4), l);
        here = ptx_ptr_add(k, at, j, 8);
        ptxk__load_2_words(k, here, 128, high);
        shift = ptx_shr(k, c, ptx_u32(1));
        shift = ptx_shl(k, shift, ptx_u32(2));
        c = ptx_shl(k, c, ptx_u32(1));
        for (i = 0; i < 2; i++) {
            low[i] = ptx_as(ptx_shr(k, ptx_as(low[i], PTX_U32), shift), PTX_B32);
            high[i] = ptx_as(ptx_shr(k, ptx_as(high[i], PTX_U32), c), PTX_B32);
            high[i] = ptx_shl(k, high[i], ptx_u32(4));
            high[i] = ptx_and(k, high[i], ptx_b32(0x30303030));
            low[i] = ptx_lop3(k, low[i], ptx_b32(0x0f0f0f0f), high[i], ptx_imm(0xea)); /* low & mask | high */
            ptxk__bytes_to_f32(k, low[i], 32, o->q + 4 * i);
        }
        j = ptx_shr(k, e, ptx_u32(1));
        here = ptx_ptr_add(k, at, j, 1);
        j = ptx_ld(k, PTX_S8, ptxk__weight_operand(here, 192));
        j = ptx_cvt(k, PTX_F32, j);
        d = ptxk__load_f16(k, at, 208);
        o->scale = ptx_op2(k, PTX_MUL, PTX_RN, d, j);
        o->scaled = 1;
        return;
    }
    if (format == PTXK_Q8_0) {
        j = ptx_shr(k, e, ptx_u32(2));
        at = ptx_ptr_add(k, at, j, 34);
        j = ptx_and(k, e, ptx_u32(3));
        here = ptx_ptr_add(k, at, j, 8);
        ptxk__load_2_words(k, here, 2, words);
        for (i = 0; i < 2; i++) {
            words[i] = ptx_xor(k, words[i], ptx_b32(0x80808080u));
            ptxk__bytes_to_f32(k, words[i], 128, o->q + 4 * i);
        }
        o->scale = ptxk__load_f16(k, at, 0);
        o->scaled = 1;
        return;
    }
    if (format == PTXK_Q4_0) { /* low halves of 16 bytes, then the high ones */
        j = ptx_shr(k, e, ptx_u32(2));
        at = ptx_ptr_add(k, at, j, 18);
        j = ptx_and(k, e, ptx_u32(1));
        here = ptx_ptr_add(k, at, j, 8);
        ptxk__load_2_words(k, here, 2, words);
        shift = ptx_and(k, e, ptx_u32(2));
        shift = ptx_shl(k, shift, ptx_u32(1));
        for (i = 0; i < 2; i++) {
            words[i] = ptx_as(ptx_shr(k, ptx_as(words[i], PTX_U32), shift), PTX_B32);
            words[i] = ptx_and(k, words[i], ptx_b32(0x0f0f0f0f));
            ptxk__bytes_to_f32(k, words[i], 8, o->q + 4 * i);
        }
        o->scale = ptxk__load_f16(k, at, 0);
        o->scaled = 1;
        return;
    }
    if (format == PTXK_F32) {
        here = ptx_ptr_add(k, at, e, 32);
        ptxk_load_f32(k, PTX_F32, 4, ptxk__weight_operand(here, 0), o->q);
        ptxk_load_f32(k, PTX_F32, 4, ptxk__weight_operand(here, 16), o->q + 4);
        return;
    }
    here = ptx_ptr_add(k, at, e, 16);
    ptxk_load_f32(k, format == PTXK_F16 ? PTX_F16 : PTX_BF16, 8, ptxk__weight_operand(here, 0), o->q);
}

/* ---- [CORE] ---------------------------------------------------------------------------------------------

   The operations, one after the other. Each begins with its limits, its plan and the check of its arguments;
   what emits its code follows, and ptxk_<name>_emit_ ends it. */

/* ======== flash_decode ================================================================================== */

/* -- flash_decode: limits and plan -- */

#define PTXK__WARPS 4u
#define PTXK__THREADS (32u * PTXK__WARPS)
#define PTXK__TILE 8u /* columns that a block of every variant can take: the unit of the grid */
#define PTXK__ROW 8u  /* scalar: most elements of a row in a lane */
#define PTXK__UNROLL 4u
#define PTXK__JOIN 16u /* partial results that the combining block has in flight */
#define PTXK__QUERIES 8u
#define PTXK__RING 3u             /* mma: ring items of a warp in shared memory; all but one are in flight */
#define PTXK__SLAB 128u           /* mma: most elements of a row in one ring item */
#define PTXK__REST 0.000244140625 /* 2^-12: the weight of f16's second term of q, which is at most 2^15 */

/* Everything that a flash_decode description determines. */
typedef struct ptxk__flash {
    ptx_type type, q_type, out_type, fresh_type; /* fresh: of the rows to append; PTX_NONE: none */
    uint32_t heads, kv_heads, d, queries;
    uint32_t group;   /* query heads of a KV head */
    uint32_t columns; /* group * queries, which share the reads of K and V; column t * group + h */
    uint32_t tiles;   /* blocks of the grid for the columns, one for each 8 */
    uint32_t tile;    /* columns of a block of this variant; blocks past the last column exit */
    uint32_t page_size, page_shift, window, flags;
    uint32_t cluster;   /* blocks of a cluster that the description asks for; 0: the plan chooses */
    uint32_t row_bytes; /* of one key */
    uint32_t per_vec;   /* elements of 16 bytes */
    uint32_t row_vecs;  /* 16-byte vectors of a row */
    uint32_t pitch;     /* floats from column to column of a warp's sums in shared memory */
    uint32_t unit;      /* a chunk is a multiple of so many keys */
    uint32_t least;     /* ... and at least so many */
    uint32_t frugal;    /* keys of a chunk whose overhead is 4 % of their own traffic */
    uint32_t record;    /* bytes of one partial result in the workspace */
    float scale;        /* of q . k, times log2 e: scores are in base 2; with a cap: scores are 2 s / cap */
    float cap;          /* the cap in base 2; 0: none */
    /* scalar */
    uint32_t lanes;     /* lanes that share a row, a power of two */
    uint32_t vecs;      /* vectors of a row in a lane: lane i has vectors i, i + lanes */
    uint32_t rows;      /* rows that a warp reads at once */
    uint32_t unroll;    /* reads of so many rows before it computes */
    uint32_t warp_keys; /* keys of a warp in one step: rows * unroll */
    uint32_t step;      /* keys of the block in one step */
    /* mma */
    uint32_t mma;      /* this variant */
    uint32_t terms;    /* numbers of the cache's type whose sum is q */
    uint32_t nt, kt;   /* 8-column tiles; 16-key tiles of a warp's step */
    uint32_t slabs;    /* parts of a row that are staged in turn */
    uint32_t chunks;   /* 16-byte chunks of a slab in shared memory, even */
    float bias, slack; /* weights stay below 2^(bias + slack); the largest is at least 2^bias */
} ptxk__flash;

/* Chooses the shapes of the tensor core variant: 16-bit caches, sm_80 and later. */
static void ptxk__flash_mma(ptxk__flash *f) {
    uint32_t padded = (f->d + 15) / 16 * 16, room;
    /* Splits q into terms of the cache's type, 11 or 8 bits each, so that scores are as precise as with
       f32. */
    f->terms = f->q_type == f->type ? 1
               : f->type == PTX_F16 ? (f->q_type == PTX_F32 ? 2 : 1)
                                    : (f->q_type == PTX_F32 ? 3 : 2);
    /* Registers: 4 for each 16 dimensions of the sums, twice the terms for q */
    room = 512 / (padded * (f->terms < 2 ? 2 : f->terms));
    f->nt = f->tiles < room ? f->tiles : room;
    if (f->nt < 1) f->nt = 1;
    if (f->nt > 4) f->nt = 4;
    f->slabs = ptxk__ceil_div(padded, PTXK__SLAB);
    f->chunks = ptxk__ceil_div(padded / 16, f->slabs) * 2;
    f->kt = PTXK__SLAB / 8 / f->chunks; /* steps of some 4 KB */
    if (f->kt > 4 / f->nt) f->kt = 4 / f->nt;
    if (f->kt > 4) f->kt = 4;
    if (f->kt == 3) f->kt = 2;
    if (f->kt < 1) f->kt = 1;
    if (f->page_size && f->kt > f->page_size / 16) f->kt = f->page_size / 16;
    /* Large weights keep the second term of an f16 weight above 2^-24. bf16 has f32's range, and so may V:
       weights of at most 2^-32. */
    f->slack = 8;
    f->bias = f->type == PTX_F16 ? 7.0f : -8.0f - PTXK__LOW;
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
    types[1] = d->q_type;
    types[2] = d->out_type;
    types[3] = d->append_type ? d->append_type : (uint32_t)PTX_F32;
    for (i = 0; i < 4; i++)
        if (!ptxk__kv_bytes(types[i])) return ptxk__check_type("flash_decode", names[i], types[i], why);
    if (!(d->scale >= -1e30f && d->scale <= 1e30f))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: scale is %g, must be from -1e30 to 1e30 (0: default)",
                            (double)d->scale);
    if (!d->queries || d->queries > PTXK__QUERIES)
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: queries is %u, must be 1 to %u", d->queries,
                            PTXK__QUERIES);
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
    if ((d->flags & ~(uint32_t)PTXK_FLASH_PAGE_ROWS)
        > (PTXK_FLASH_LSE | PTXK_FLASH_SCALAR | PTXK_FLASH_CLUSTER_8))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: flags is %u, must be of PTXK_FLASH_LSE, _SCALAR, one _CLUSTER_, "
                            "_PAGE_ROWS",
                            d->flags);
    if (d->flags & PTXK_FLASH_PAGE_ROWS && !d->page_size)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: PTXK_FLASH_PAGE_ROWS needs pages, and page_size is 0");

    memset(f, 0, sizeof *f);
    f->type = (ptx_type)types[0];
    f->q_type = (ptx_type)types[1];
    f->out_type = (ptx_type)types[2];
    f->fresh_type = (ptx_type)d->append_type;
    f->heads = d->heads;
    f->kv_heads = d->kv_heads;
    f->d = d->head_dim;
    f->queries = d->queries;
    f->window = d->window;
    f->page_size = d->page_size;
    while (f->page_size >> f->page_shift > 1) f->page_shift++;
    f->flags = d->flags & (PTXK_FLASH_LSE | PTXK_FLASH_SCALAR | PTXK_FLASH_PAGE_ROWS);
    i = d->flags % PTXK_FLASH_PAGE_ROWS / PTXK_FLASH_CLUSTER_1;
    f->cluster = i ? 1u << (i - 1) : 0;
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
    /* Registers: 2 * tile * elements for q and the sums, 8 * vecs for each key in flight, tile for the scores
       of a key. Four keys at a time exceed 255 registers when tile * elements exceeds 48. */
    f->unroll = f->tile * f->per_vec * f->vecs > 48 ? PTXK__UNROLL / 2 : PTXK__UNROLL;
    f->warp_keys = f->rows * f->unroll;
    f->step = f->warp_keys * PTXK__WARPS;
    f->record = (f->d + 8) * 4;
    ptxk__flash_mma(f);
    f->unit = 16 * f->kt * PTXK__WARPS;
    if (f->unit < f->step) f->unit = f->step;

    /* The overhead of a split is, for each of its columns, one read of q (d elements) and one write and read
       of a partial result (d floats and a sector of maximum and sum), and for each block some 16 sectors of
       lengths, pointers and so on. A chunk has so many keys that this is 4 % of its own K and V, which keeps
       the total within 5 % of the lower bound; and at least 128 keys, because starting a block has a cost. */
    overhead = (f->columns < PTXK__TILE ? f->columns : PTXK__TILE)
                   * (2 * f->d * 4 + f->d * ptxk__kv_bytes(types[1]) + 64)
               + 512;
    f->least = ptxk__ceil_div(128, f->unit) * f->unit;
    f->frugal = ptxk__ceil_div(ptxk__ceil_div(overhead * 25, 2 * f->row_bytes), f->unit) * f->unit;
    if (f->frugal < f->least) f->frugal = f->least;

    scale = d->scale < 0 || d->scale > 0 ? (double)d->scale : 1 / ptxk__sqrt(f->d);
    scale *= 1.44269504088896340736; /* log2 e: the hardware has ex2 */
    if (d->soft_cap > 0) {
        f->cap = (float)((double)d->soft_cap * 1.44269504088896340736);
        scale *= 2 / (double)d->soft_cap;
    }
    f->scale = (float)scale;
    return PTX_E_NONE;
}

/* The first key that the blocks of a sequence read: the first that some query sees, rounded down so that
   steps and pages begin together. The kernels compute the same. */
#define PTXK__BEGIN 64u
static uint32_t ptxk__flash_first(const ptxk__flash *f, uint32_t length) {
    uint64_t reach = (uint64_t)f->window + f->queries - 1;
    return f->window && length > reach ? length - (uint32_t)reach : 0;
}

/* Bytes of the counters before the partial results in the workspace: for each sequence and block of heads,
   the number of finished chunks. */
static uint64_t ptxk__flash_header(const ptxk__flash *f, uint32_t batch) {
    return ((uint64_t)batch * f->kv_heads * f->tiles * 4 + 255) / 256 * 256;
}

/* Keys from there to the end of the sequence; below, the keys of one of `splits` chunks. */
static uint32_t ptxk__flash_keys_seen(const ptxk__flash *f, uint32_t length) {
    return length - ptxk__flash_first(f, length) / PTXK__BEGIN * PTXK__BEGIN;
}

static uint32_t ptxk__flash_chunk(const ptxk__flash *f, uint32_t keys, uint32_t splits) {
    uint32_t chunk = ptxk__ceil_div(ptxk__ceil_div(keys, splits), f->unit) * f->unit;
    return chunk < f->least ? f->least : chunk;
}

PTXGEN_API uint32_t ptxk_flash_decode_chunk(const ptxk_flash_decode_desc *desc, uint32_t length,
                                            uint32_t splits) {
    ptxk__flash f;
    if (!splits || ptxk__flash_form(desc, &f, NULL)) return 0;
    if (length > PTXK__LEN_MAX) return 0;
    return ptxk__flash_chunk(&f, ptxk__flash_keys_seen(&f, length), splits);
}

/* Lower bound of the traffic: K and V of the keys that are seen (new ones: read from their source, written to
   the caches), q, out, log-sum-exp. */
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

/* Bytes that `splits` chunks in clusters move beyond the lower bound, for sequences of so many keys. A block
   reads some 16 sectors of lengths, pointers and so on. A cluster reads q, one read of which is in the bound,
   and, unless it is the only one, writes a partial result that is read once. */
static uint64_t ptxk__flash_overhead_bytes(const ptxk__flash *f, uint32_t batch, uint32_t keys,
                                           uint32_t splits, uint32_t cluster) {
    uint64_t live = ptxk__ceil_div(keys, ptxk__flash_chunk(f, keys, splits)), parts, columns;
    if (live < 1) live = 1;
    parts = (live + cluster - 1) / cluster;
    columns = (uint64_t)batch * f->kv_heads * f->columns;
    return live * batch * f->kv_heads * f->tiles * 512
           + (parts - 1) * columns * f->d * ptxk__kv_bytes((uint32_t)f->q_type)
           + (parts > 1 ? 2 * parts * columns * f->record : 0);
}

/* Keys of the busiest multiprocessor. */
static uint64_t ptxk__flash_busiest_keys(const ptxk__flash *f, uint64_t blocks, uint32_t sm_count,
                                         uint32_t keys, uint32_t splits) {
    uint32_t chunk = ptxk__flash_chunk(f, keys, splits);
    return (blocks * ptxk__ceil_div(keys, chunk) + sm_count - 1) / sm_count * chunk;
}

/* The multiple of `cluster` next to `want`, below or above, that gives the busiest multiprocessor fewer
   keys. */
static uint32_t ptxk__flash_splits(const ptxk__flash *f, uint64_t blocks, uint32_t sm_count, uint32_t keys,
                                   uint32_t want, uint32_t cluster) {
    uint32_t below = want / cluster * cluster, above = ptxk__ceil_div(want, cluster) * cluster;
    if (!below || above > 65535) return below ? below : above;
    return ptxk__flash_busiest_keys(f, blocks, sm_count, keys, above)
                   < ptxk__flash_busiest_keys(f, blocks, sm_count, keys, below)
               ? above
               : below;
}

PTXGEN_API ptx_code ptxk_flash_decode_plan(const ptxk_flash_decode_desc *desc,
                                           const ptxk_flash_decode_shape *shape, ptx_plan *plan,
                                           ptxk_message *why) {
    ptxk__flash f;
    ptx_launch *l;
    uint64_t cache, blocks, want, most, own, time, alone = 0, least = UINT64_MAX;
    uint32_t keys, splits, size, longest, cluster = 1;
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
    if (shape->cluster > PTXK__CLUSTER || (f.cluster > 1 && f.cluster > shape->cluster))
        return ptxk__refuse(why, PTX_E_DESC, "flash_decode: cluster is %u, must be %u at most, at least %u",
                            shape->cluster, PTXK__CLUSTER, f.cluster > 1 ? f.cluster : 0);
    longest = shape->max_len ? shape->max_len : shape->max_seq;
    plan->args_bytes = (uint32_t)sizeof(ptxk_flash_decode_args);
    if (!shape->batch) return PTX_E_NONE;

    cache = ptxk__multiply_checked((uint64_t)f.kv_heads * shape->max_seq, f.row_bytes,
                                   &fits); /* one sequence's K */
    (void)ptxk__multiply_checked(cache, 2 * (uint64_t)shape->batch, &fits);
    if (!fits) {
        memset(plan, 0, sizeof *plan);
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_decode: batch %u, kv_heads %u, max_seq %u, head_dim %u: "
                            "caches pass 2^64 bytes",
                            shape->batch, f.kv_heads, shape->max_seq, f.d);
    }
    plan->min_bytes = (uint64_t)shape->batch * ptxk__flash_bytes(&f, longest);

    /* Aims at eight blocks for each multiprocessor, two waves of what is resident, so that the tail of a
       launch is short even with different lengths, and at chunks of `frugal` keys or more. Where that leaves
       multiprocessors idle: one block for each, with chunks of `least` keys or more. Where sequences and
       heads alone fill the device, or are short, each has one block, without a workspace.

       The overhead of chunks may then exceed 5 %. Example: 64 heads on 8, d 128, 4096 keys of f16 are 16.84
       MB with q and out. 16 chunks of 256 keys for each KV head make 128 blocks for 132 multiprocessors. They
       read 64 KB of lengths and pointers and 15 times 32 KB of q beyond the first, and write and read 16
       times 34 KB of partial results: 1.67 MB, 9.9 %, in the L2 cache. 8 chunks would cost 5 % but leave half
       of the device idle. A cluster reads q and writes a partial result once: with 2 blocks 5.06 %, with 4
       2.6 %. The plan takes the smallest sufficient cluster, because its blocks must be scheduled together.

       The grid is a multiple of the cluster: 17 chunks, of which 16 have keys, become 16; 24, of 192 keys,
       would give some multiprocessors two. 15 chunks for each of 20 KV heads would become 8 in one cluster
       and leave 140 of 300 multiprocessors idle: a size that gives any of them over an eighth more keys is
       skipped. */
    keys = ptxk__flash_keys_seen(&f, longest);
    blocks = (uint64_t)f.kv_heads * f.tiles * shape->batch;
    want = (8 * (uint64_t)shape->sm_count + blocks - 1) / blocks;
    most = keys / f.frugal; /* chunks of at least `frugal` keys */
    if (want > most) want = most;
    if (want * blocks < shape->sm_count) {
        want = (shape->sm_count + blocks - 1) / blocks;
        most = ((uint64_t)keys + f.least - 1) / f.least;
        if (want > most) want = most;
    }
    if (want > 65535) want = 65535;
    if (want < 1) want = 1;

    splits = (uint32_t)want;
    for (size = 1; size <= PTXK__CLUSTER; size *= 2) {
        uint32_t n = ptxk__flash_splits(&f, blocks, shape->sm_count, keys, (uint32_t)want, size);
        time = ptxk__flash_busiest_keys(&f, blocks, shape->sm_count, keys, n);
        if (size == 1) alone = time;
        if (f.cluster ? size != f.cluster
                      : size > 1 && (size > shape->cluster || want == 1 || time > alone + alone / 8))
            continue;
        own = ptxk__flash_overhead_bytes(&f, shape->batch, keys, n, size);
        if (own >= least) continue;
        least = own, cluster = size, splits = n;
        if (own <= plan->min_bytes / 20) break;
    }

    l = &plan->launch[plan->launches++];
    l->grid[0] = f.kv_heads * f.tiles;
    l->grid[1] = shape->batch;
    l->grid[2] = splits;
    l->block[0] = PTXK__THREADS;
    l->block[1] = l->block[2] = 1;
    if (cluster > 1) {
        l->cluster[0] = l->cluster[1] = 1;
        l->cluster[2] = cluster;
    }
    if (splits == cluster) return PTX_E_NONE;
    plan->zero_bytes = ptxk__flash_header(&f, shape->batch);
    plan->workspace_bytes =
        plan->zero_bytes + (uint64_t)(splits / cluster) * shape->batch * f.kv_heads * f.columns * f.record;
    return PTX_E_NONE;
}

/* -- flash_decode: arguments -- */

PTXGEN_API ptx_code ptxk_flash_decode_check(const ptxk_flash_decode_desc *desc,
                                            const ptxk_flash_decode_args *args, ptxk_message *why) {
    static const char *const op = "flash_decode";
    ptxk__flash f;
    ptxk__span s[10];
    uint64_t q, fresh;
    int paged, append;
    ptx_code code = ptxk__flash_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: the arguments are NULL");
    paged = f.page_size != 0;
    append = f.fresh_type != PTX_NONE;
    /* Of one sequence: the arguments do not say how many there are. */
    q = (uint64_t)f.queries * f.heads * f.d;
    fresh = (uint64_t)f.queries * f.kv_heads * f.d * ptxk__kv_bytes((uint32_t)f.fresh_type);
    s[0] = ptxk__span_of("q", args->q, q * ptxk__kv_bytes((uint32_t)f.q_type), 16, 1);
    s[1] = ptxk__span_cache("k_caches", args->k_caches, 1, f.page_size, args->pool_pages,
                            (uint64_t)f.kv_heads * f.row_bytes, append);
    s[2] = ptxk__span_cache("v_caches", args->v_caches, 1, f.page_size, args->pool_pages,
                            (uint64_t)f.kv_heads * f.row_bytes, append);
    s[3] = ptxk__span_of("lengths", args->lengths, 4, 4, !args->length);
    s[4] = ptxk__span_of("out", args->out, q * ptxk__kv_bytes((uint32_t)f.out_type), 16, 1);
    s[4] = ptxk__span_written(s[4], 0);
    s[5] = ptxk__span_of("block_table", args->block_table, (uint64_t)args->max_pages * 4, 4, paged);
    s[6] = ptxk__span_of("k", args->k, fresh, 16, append);
    s[7] = ptxk__span_of("v", args->v, fresh, 16, append);
    s[8] = ptxk__span_of("lse", args->lse, (uint64_t)f.heads * f.queries * 4, 4,
                         (f.flags & PTXK_FLASH_LSE) != 0);
    s[8] = ptxk__span_written(s[8], 0);
    s[9] = ptxk__span_of("workspace", args->workspace, 256, 256, args->workspace != 0);
    s[9] = ptxk__span_written(s[9], 0);
    if ((code = ptxk__check_spans(op, s, 10, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "max_seq", args->max_seq, 1, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (args->lengths
            && (code = ptxk__check_zero(op, "length, with lengths,", args->length, why)) != PTX_E_NONE))
        return code;
    if (paged) {
        code = ptxk__check_count(op, "max_pages", args->max_pages, 1, UINT32_MAX, why);
        return code ? code : ptxk__check_count(op, "pool_pages", args->pool_pages, 1, UINT32_MAX, why);
    }
    if (append && args->k_caches == args->v_caches)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_decode: k_caches is v_caches, and both are written");
    if (!args->head_stride && !args->row_stride) return PTX_E_NONE;
    return ptxk__check_cache(op, f.kv_heads, args->max_seq, args->head_stride, args->row_stride, f.d,
                             f.per_vec, 1u << 26, why);
}

/* -- flash_decode: what a block works on -- */

/* What a block works on. All fields but tid, warp, lane and poison are uniform over the block. Positions are
   s32. */
typedef struct ptxk__flash_work {
    ptx_val args, shared, tid, warp, lane, sequence, index, splits;
    ptxk__cluster cluster;
    ptx_val chunks;                         /* blocks of this sequence: the combining one waits for them */
    ptx_val part, parts;                    /* this cluster's number in the sequence; their count */
    ptx_val kv_head, first_column, columns; /* the block's columns */
    ptx_val length, first, begin, end;      /* visible keys: first ... length - 1; this block's */
    ptx_val safe_lo, safe_hi;               /* keys that all queries see and that lie in the caches */
    ptx_val base[2], row_bytes;             /* K and V: row 0 of this head; from position to position, u64 */
    ptx_val table, pool_pages;              /* paged: this sequence's pages; base is that of the pools */
    ptx_val fresh[2], owner; /* rows to append, of this head; predicate: this block stores them */
    ptx_var poison;          /* 0 or NaN, added to the output */
} ptxk__flash_work;

static int ptxk__flash_cache(int which) {
    return which ? (int)offsetof(ptxk_flash_decode_args, v_caches)
                 : (int)offsetof(ptxk_flash_decode_args, k_caches);
}

/* Loads the addresses of the caches, described as for kv_scatter. */
static void ptxk__flash_load_bases(ptx_kernel *k, const ptxk__flash *f, ptxk__flash_work *w,
                                   ptx_val max_seq) {
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

/* Computes the block's rank in its cluster and the cluster's number in the sequence. After the loop over keys
   this is computed again, to save registers in the loop. */
static void ptxk__flash_locate_block(ptx_kernel *k, ptxk__flash_work *w) {
    ptx_val size, live;
    w->part = w->index;
    w->parts = w->chunks;
    if (!w->cluster.possible) return;
    size = ptx_sreg(k, PTX_CLUSTER_NCTARANK);
    w->cluster.rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    w->part = ptx_sub(k, w->index, w->cluster.rank);
    live = ptx_sub(k, w->chunks, w->part);
    live = ptx_min(k, live, size);
    w->cluster.live = ptx_max(k, live, ptx_u32(1));
    w->part = ptx_div(k, w->part, size);
    w->parts = ptxk_div_up(k, w->chunks, size);
}

static void ptxk__flash_begin(ptx_kernel *k, const ptxk__flash *f, ptxk__flash_work *w,
                              uint32_t shared_bytes) {
    ptx_val here, wide, max_seq, limit, bad, chunk, keys, length, first, begin, i, p;
    uint32_t fresh = f->fresh_type ? ptxk__kv_bytes((uint32_t)f->fresh_type) : 0, which;
    ptx_launch_bounds(k, PTXK__THREADS, 1);
    w->cluster = ptxk__cluster_new(k);
    w->args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_flash_decode_args), 8);
    w->shared = ptx_shared(k, "stage", PTX_B32, shared_bytes / 4, 128);
    w->tid = ptx_tid_x(k);
    w->warp = ptx_shr(k, w->tid, ptx_u32(5));
    if (f->mma) { /* lets ptxas see that values computed from it are uniform */
        w->warp = ptx_shfl_idx(k, w->warp, ptx_u32(0), ptx_u32(31), ptx_u32(0xffffffffu));
        w->warp = ptx_warp_uniform(k, ptx_as(w->warp, PTX_U32));
    }
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
        if (f->tile * (f->tiles - 1) >= f->columns) { /* blocks of this variant take more than 8 columns */
            p = ptx_setp(k, PTX_GE, w->first_column, ptx_u32(f->columns));
            p = ptxk__cluster_exit_condition(k, &w->cluster, p);
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
    length = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, length));
    length = ptxk__optional_u32(k, w->args, offsetof(ptxk_flash_decode_args, lengths), w->sequence, length);
    length = ptx_uniform(k, length); /* one address for the whole block */
    max_seq = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, max_seq));
    limit = ptx_min(k, max_seq, ptx_u32(PTXK__LEN_MAX));
    if (f->page_size) {
        here = ptxk__arg_u32(k, w->args, offsetof(ptxk_flash_decode_args, max_pages));
        here = ptx_min(k, here, ptx_u32(PTXK__LEN_MAX / f->page_size)); /* at most 2^31 keys less one page */
        here = ptx_mul(k, here, ptx_u32(f->page_size));
        limit = ptx_min(k, limit, here);
    }
    bad = ptx_setp(k, PTX_GT, length, limit);
    length = ptx_selp(k, ptx_u32(0), length, bad);
    here = ptx_selp(k, ptx_f32(NAN), ptx_f32(0), bad); /* block 0 writes NaN */
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
    p = ptxk__cluster_exit_condition(k, &w->cluster, p);
    ptx_guard(k, p);
    ptx_ret(k);
    ptxk__cluster_arrive(k, &w->cluster); /* this block has begun: others may write to its shared memory */
    ptxk__flash_locate_block(k, w);
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
    ptxk__flash_load_bases(k, f, w, max_seq);
    for (which = 0; fresh && which < 2; which++) {
        here = ptxk__arg_ptr(
            k, w->args, which ? offsetof(ptxk_flash_decode_args, v) : offsetof(ptxk_flash_decode_args, k));
        wide = ptx_cvt(k, PTX_U64, w->kv_head);
        wide = ptx_mad_wide(k, w->sequence, ptx_u32(f->queries * f->kv_heads), wide);
        w->fresh[which] = ptx_ptr_add(k, here, wide, f->d * fresh);
    }
}

/* The row number in q and out, u64, of a column; also its query and head. */
static ptx_val ptxk__flash_column_row(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                      ptx_val column, ptx_val *query, ptx_val *head) {
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

/* Whether the query of a column sees the key at a position. */
static ptx_val ptxk__flash_is_visible(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
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

/* The byte offset from base, u64, of the key at a position, where `there` holds. Where the block table has no
   page of the pool for it, sets `there` to false and poisons the output with NaN. */
static ptx_val ptxk__flash_key_offset(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
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
    wide = ptxk__page_row(k, f->kv_heads, f->page_size, (f->flags & PTXK_FLASH_PAGE_ROWS) != 0, page,
                          w->kv_head, position);
    return ptx_mul(k, wide, ptx_u64(f->row_bytes));
}

/* Whether the row at a position is a new one, to be appended. */
static ptx_val ptxk__flash_is_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                    ptx_val position) {
    ptx_val new_first = ptx_sub(k, w->length, ptx_s32(f->queries)), p, q;
    p = ptx_setp(k, PTX_GE, position, new_first);
    q = ptx_setp(k, PTX_LT, position, w->length);
    return ptx_and(k, p, q);
}

/* Loads 16 bytes of a new row, converted to the cache's type. */
static void ptxk__flash_load_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, int which,
                                   ptx_val position, ptx_val vec, ptx_val words[4]) {
    uint32_t bytes = ptxk__kv_bytes((uint32_t)f->fresh_type), n = 16 / bytes, i;
    ptx_val t, at, x[8];
    t = ptx_sub(k, position, w->length);
    t = ptx_add(k, t, ptx_s32(f->queries));
    at = ptx_ptr_add(k, w->fresh[which], ptx_as(t, PTX_U32), f->kv_heads * f->d * bytes);
    at = ptx_ptr_add(k, at, vec, f->per_vec * bytes);
    if (f->fresh_type == f->type) { /* bit for bit, including NaN payloads */
        ptxk_load16(k, NULL, ptx_with(ptx_at(at, 0), PTX_NC), words);
        return;
    }
    if (n > f->per_vec) n = f->per_vec;
    for (i = 0; i < f->per_vec; i += n)
        ptxk_load_f32(k, f->fresh_type, n, ptx_with(ptx_at(at, (int64_t)(i * bytes)), PTX_NC), x + i);
    ptxk_narrow(k, f->type, f->per_vec, x, words);
}

/* Elements of q in 16 bytes; below, vector `vec` of q of a column of the block as f32, 0 where not p. A warp
   reads consecutive vectors, so that no sector is read twice. */
static uint32_t ptxk__flash_q_elements(const ptxk__flash *f) { return f->q_type == PTX_F32 ? 4 : 8; }

static void ptxk__flash_load_q(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, ptx_val p,
                               ptx_val column, ptx_val vec, ptx_val *x) {
    ptx_val words[4], row, query, head, here;
    here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, q));
    column = ptx_add(k, column, w->first_column);
    row = ptxk__flash_column_row(k, f, w, column, &query, &head);
    here = ptx_ptr_add(k, here, row, f->d * ptxk__kv_bytes((uint32_t)f->q_type));
    here = ptx_ptr_add(k, here, vec, 16);
    ptxk_load16(k, &p, ptx_at(here, 0), words);
    ptxk_widen(k, f->q_type, words, x);
}

/* Applies the soft cap to scores given as 2 s / cap in base 2: cap tanh(s / cap) = cap - 2 cap / (1 + e^(2 s
   / cap)). */
static ptx_val ptxk__flash_cap_score(ptx_kernel *k, const ptxk__flash *f, ptx_val x) {
    x = ptx_ex2(k, x);
    x = ptx_add(k, x, ptx_f32(1));
    x = ptx_op1(k, PTX_RCP, PTX_APPROX | PTX_FTZ, x);
    return ptx_fma(k, x, ptx_f32(-2 * (double)f->cap), ptx_f32((double)f->cap));
}

/* -- flash_decode: from the warps' sums to the output -- */

static uint32_t ptxk__flash_state_at(const ptxk__flash *f) { return PTXK__WARPS * f->tile * f->pitch * 4; }

/* Shared memory after the warps' states: the block's states, for its cluster, and the flag of
   ptxk__is_last_block. */
static uint32_t ptxk__flash_block_at(const ptxk__flash *f) {
    return ptxk__flash_state_at(f) + PTXK__WARPS * f->tile * 8;
}

static uint32_t ptxk__flash_flag_at(const ptxk__flash *f) { return ptxk__flash_block_at(f) + f->tile * 8; }

static uint32_t ptxk__flash_join_bytes(const ptxk__flash *f) { return ptxk__flash_flag_at(f) + 16; }

/* The address of the partial result (part, this sequence, column of the block). */
static ptx_val ptxk__flash_record(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  ptx_val part, ptx_val column) {
    ptx_val batch = ptx_sreg(k, PTX_NCTAID_Y), header, row, wide, workspace;
    header = ptx_mul_wide(k, batch, ptx_u32(4 * f->kv_heads * f->tiles));
    header = ptx_add(k, header, ptx_u64(255));
    header = ptx_and(k, header, ptx_u64(~(uint64_t)255));
    wide = ptx_cvt(k, PTX_U64, w->sequence);
    row = ptx_mad_wide(k, part, batch, wide);
    column = ptx_add(k, column, w->first_column);
    column = ptx_mad(k, w->kv_head, ptx_u32(f->columns), column);
    wide = ptx_cvt(k, PTX_U64, column);
    row = ptx_mad(k, row, ptx_u64(f->kv_heads * f->columns), wide);
    workspace = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, workspace));
    workspace = ptx_ptr_add(k, workspace, header, 1);
    return ptx_ptr_add(k, workspace, row, f->record);
}

/* Writes 4 elements of the output of a column of the block, from its state. */
static void ptxk__flash_write_output(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                     ptx_val column, ptx_val vec, const ptx_val sum[4], ptx_val top,
                                     ptx_val all) {
    ptx_val inverse = ptxk_rcp_or_zero(k, all), x[4], row, query, head, here, p;
    uint32_t e;
    for (e = 0; e < 4; e++) x[e] = ptx_mul(k, sum[e], inverse);
    column = ptx_add(k, column, w->first_column);
    row = ptxk__flash_column_row(k, f, w, column, &query, &head);
    here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, out));
    here = ptx_ptr_add(k, here, row, f->d * ptxk__kv_bytes((uint32_t)f->out_type));
    here = ptx_ptr_add(k, here, vec, 4 * ptxk__kv_bytes((uint32_t)f->out_type));
    ptxk_store_f32(k, f->out_type, 4, ptx_at(here, 0), x);
    if (!(f->flags & PTXK_FLASH_LSE)) return;
    p = ptx_setp(k, PTX_EQ, vec, ptx_u32(0));
    ptx_if(k, p);
    {
        ptx_val lse = ptx_lg2(k, all);
        if (!f->mma && f->type != PTX_F16) lse = ptx_add(k, lse, ptx_f32((double)PTXK__LOW));
        lse = ptx_add(k, top, lse);
        lse = ptx_mul(k, lse, ptx_f32(0.69314718055994530942));
        p = ptx_setp(k, PTX_EQ, top, ptx_f32(FLT_MAX)); /* some scores were +inf */
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

/* Merges n parts of a column, each a state (reference, total) and 4 of its sums. */
static void ptxk__flash_merge(ptx_kernel *k, uint32_t n, ptx_val state[][2], ptx_val value[][4],
                              ptx_val all[2], ptx_val joined[4]) {
    ptx_val most[PTXK__JOIN + 1], total[PTXK__JOIN + 1], factor[PTXK__JOIN + 1];
    uint32_t u = 0, e;
    do {
        most[u] = state[u][0];
        total[u] = state[u][1];
    } while (++u < n);
    ptxk__softmax_merge(k, n, most, total, factor, &all[0], &all[1]);
    for (e = 0; e < 4; e++) joined[e] = ptx_op2(k, PTX_MUL, PTX_RN, factor[0], value[0][e]);
    for (u = 1; u < n; u++) ptxk_axpy(k, 4, factor[u], value[u], joined);
}

/* Loads a part. there: NULL, or a predicate; where it does not hold the part has no weight. */
static void ptxk__flash_load_part(ptx_kernel *k, const ptx_val *there, ptx_mem state_at, ptx_mem value_at,
                                  ptx_val state[2], ptx_val value[4]) {
    if (!there) {
        ptx_ld_vec(k, PTX_F32, 2, state_at, state);
        ptx_ld_vec(k, PTX_F32, 4, value_at, value);
        return;
    }
    ptx_ld_vec_if(k, *there, PTX_F32, 2, state_at, ptx_f32(0), state);
    ptx_ld_vec_if(k, *there, PTX_F32, 4, value_at, ptx_f32(0), value);
    state[0] = ptx_selp(k, state[0], ptx_f32(-FLT_MAX), *there);
}

/* Run by the last block of a sequence and its columns: merges the partial results, PTXK__JOIN in flight. */
static void ptxk__flash_combine_chunks(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4, u, e;
    ptx_val i, column, vec, here, c, stride, row, inside, state[PTXK__JOIN + 1][2], value[PTXK__JOIN + 1][4],
        all[2], joined[4];
    ptx_var at, sum[4];
    ptxk__softmax s;
    i = ptx_mul(k, w->columns, ptx_u32(head_vecs));
    i = ptx_for(k, w->tid, i, ptx_u32(PTXK__THREADS));
    column = ptx_div(k, i, ptx_u32(head_vecs));
    vec = ptx_rem(k, i, ptx_u32(head_vecs));
    here = ptxk__flash_record(k, f, w, ptx_u32(0), column);
    at = ptx_var_new(k, here);
    stride = ptx_sreg(k, PTX_NCTAID_Y);
    stride = ptx_mul_wide(k, stride, ptx_u32(f->kv_heads * f->columns)); /* in records, then bytes */
    stride = ptx_mul(k, stride, ptx_u64(f->record));
    s = ptxk__softmax_new(k);
    for (e = 0; e < 4; e++) sum[e] = ptx_var_new(k, ptx_f32(0));
    c = ptx_for(k, ptx_u32(0), w->parts, ptx_u32(PTXK__JOIN));
    {
        here = ptx_get(k, at);
        here = ptx_ptr(here, PTX_GLOBAL);
        for (u = 1; u <= PTXK__JOIN; u++) {
            row = ptx_add(k, c, ptx_u32(u - 1));
            inside = ptx_setp(k, PTX_LT, row, w->parts);
            row = ptx_ptr_add(k, here, vec, 16);
            ptxk__flash_load_part(k, &inside, ptx_at(here, 0), ptx_at(row, 32), state[u], value[u]);
            here = ptx_ptr_add(k, here, stride, 1);
        }
        ptx_set(k, at, here);
        state[0][0] = ptx_get(k, s.most);
        state[0][1] = ptx_get(k, s.total);
        for (e = 0; e < 4; e++) value[0][e] = ptx_get(k, sum[e]);
        ptxk__flash_merge(k, PTXK__JOIN + 1, state, value, all, joined);
        ptx_set(k, s.most, all[0]);
        ptx_set(k, s.total, all[1]);
        for (e = 0; e < 4; e++) ptx_set(k, sum[e], joined[e]);
    }
    ptx_end(k);
    all[0] = ptx_get(k, s.most);
    all[1] = ptx_get(k, s.total);
    for (e = 0; e < 4; e++) joined[e] = ptx_get(k, sum[e]);
    ptxk__flash_write_output(k, f, w, column, vec, joined, all[0], all[1]);
    ptx_end(k);
}

/* Writes 4 elements of the cluster's result: to the output if the cluster has the whole sequence, else to a
   partial result. */
static void ptxk__flash_write_cluster(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                      ptx_val column, ptx_val vec, const ptx_val all[2],
                                      const ptx_val joined[4]) {
    ptx_val p, here;
    p = ptx_setp(k, PTX_LE, w->chunks, w->cluster.live);
    ptx_if(k, p);
    ptxk__flash_write_output(k, f, w, column, vec, joined, all[0], all[1]);
    ptx_else(k);
    here = ptxk__flash_record(k, f, w, w->part, column);
    p = ptx_setp(k, PTX_EQ, vec, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st_vec(k, PTX_F32, 2, ptx_at(here, 0), all);
    here = ptx_ptr_add(k, here, vec, 16);
    ptx_st_vec(k, PTX_F32, 4, ptx_at(here, 32), joined);
    ptx_end(k);
}

/* Merges the results of the cluster's blocks, each in its block's shared memory. A warp takes pieces of 32
   times 4 elements. */
static void ptxk__flash_merge_cluster(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4, u;
    ptx_val i, n, column, vec, there, last, at, here, row, peer[PTXK__CLUSTER], inside[PTXK__CLUSTER],
        state[PTXK__CLUSTER][2], value[PTXK__CLUSTER][4], all[2], joined[4];
    last = ptx_sub(k, w->cluster.live, ptx_u32(1));
    for (u = 0; u < PTXK__CLUSTER; u++) { /* in the order of the ranks, in whichever block */
        there = u ? ptx_min(k, last, ptx_u32(u)) : ptx_u32(0);
        peer[u] = ptx_mapa(k, w->shared, there);
        if (u) inside[u] = ptx_setp(k, PTX_GE, last, ptx_u32(u));
    }
    i = ptx_mad(k, w->warp, w->cluster.live, w->cluster.rank);
    i = ptx_mad(k, i, ptx_u32(32), w->lane);
    n = ptx_mul(k, w->columns, ptx_u32(head_vecs));
    at = ptx_mul(k, w->cluster.live, ptx_u32(PTXK__THREADS));
    i = ptx_for(k, i, n, at);
    {
        column = ptx_div(k, i, ptx_u32(head_vecs));
        vec = ptx_rem(k, i, ptx_u32(head_vecs));
        at = ptx_mul(k, column, ptx_u32(f->pitch * 4));
        at = ptx_mad(k, vec, ptx_u32(16), at);
        for (u = 0; u < PTXK__CLUSTER; u++) {
            here = ptx_ptr_add(k, peer[u], column, 8);
            row = ptx_ptr_add(k, peer[u], at, 1);
            ptxk__flash_load_part(k, u ? &inside[u] : NULL, ptx_at(here, (int64_t)ptxk__flash_block_at(f)),
                                  ptx_at(row, 0), state[u], value[u]);
        }
        ptxk__flash_merge(k, PTXK__CLUSTER, state, value, all, joined);
        ptxk__flash_write_cluster(k, f, w, column, vec, all, joined);
    }
    ptx_end(k);
}

/* Merges 4 elements of a column from the block's warps. Their states, [warp][column], lie at state_at in
   shared memory; their sums, [warp][column][pitch], before them. */
static void ptxk__flash_merge_warps(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                    ptx_val column, ptx_val vec, ptx_val all[2], ptx_val joined[4]) {
    ptx_val here, row, state[PTXK__WARPS][2], words[PTXK__WARPS][4];
    uint32_t v;
    here = ptx_ptr_add(k, w->shared, column, 8);
    row = ptx_ptr_add(k, w->shared, column, f->pitch * 4);
    row = ptx_ptr_add(k, row, vec, 16);
    for (v = 0; v < PTXK__WARPS; v++)
        ptxk__flash_load_part(k, NULL, ptx_at(here, (int64_t)(ptxk__flash_state_at(f) + v * f->tile * 8)),
                              ptx_at(row, (int64_t)(v * f->tile * f->pitch * 4)), state[v], words[v]);
    ptxk__flash_merge(k, PTXK__WARPS, state, words, all, joined);
}

/* Stores the block's result for the other blocks of its cluster, in place of its first warp's sums. */
static void ptxk__flash_share_result(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4, n = ptxk__ceil_div(f->tile * head_vecs, PTXK__THREADS), j;
    ptx_val i, column[8], vec[8], first[8], all[8][2], joined[8][4], here, row, p;
    for (j = 0; j < n; j++) { /* also of absent columns, which nobody reads */
        i = ptx_add(k, w->tid, ptx_u32(j * PTXK__THREADS));
        if (f->tile * head_vecs % PTXK__THREADS) i = ptx_min(k, i, ptx_u32(f->tile * head_vecs - 1));
        column[j] = ptx_div(k, i, ptx_u32(head_vecs));
        vec[j] = ptx_rem(k, i, ptx_u32(head_vecs));
        ptxk__flash_merge_warps(k, f, w, column[j], vec[j], all[j], joined[j]);
        first[j] = ptx_setp(k, PTX_EQ, vec[j], ptx_u32(0));
    }
    ptx_bar_sync(k, ptx_imm(0));
    for (j = 0; j < n; j++) {
        here = ptx_ptr_add(k, w->shared, column[j], 8);
        row = ptx_ptr_add(k, w->shared, column[j], f->pitch * 4);
        row = ptx_ptr_add(k, row, vec[j], 16);
        if (j + 1 == n && f->tile * head_vecs % PTXK__THREADS) {
            p = ptx_setp(k, PTX_LT, w->tid, ptx_u32(f->tile * head_vecs - j * PTXK__THREADS));
            first[j] = ptx_and(k, first[j], p);
            ptx_guard(k, p);
        }
        ptx_st_vec(k, PTX_F32, 4, ptx_at(row, 0), joined[j]);
        ptx_guard(k, first[j]);
        ptx_st_vec(k, PTX_F32, 2, ptx_at(here, (int64_t)ptxk__flash_block_at(f)), all[j]);
    }
}

/* Combines the warps' parts, after they are written. A block without a cluster writes its result. Blocks of a
   cluster share their results and divide the merging. Where that is not the whole sequence, its last block
   combines the partial results. */
static void ptxk__flash_combine_block(ptx_kernel *k, const ptxk__flash *f, ptxk__flash_work *w) {
    uint32_t head_vecs = f->d / 4;
    ptx_val i, column, vec, here, row, p, several, all[2], joined[4];
    ptxk__flash_locate_block(k, w);
    several = ptx_setp(k, PTX_GT, w->cluster.live, ptx_u32(1));
    ptx_bar_sync(k, ptx_imm(0));
    if (w->cluster.possible) {
        ptx_if(k, several);
        ptxk__flash_share_result(k, f, w);
        ptx_else(k);
    }
    i = ptx_mul(k, w->columns, ptx_u32(head_vecs));
    i = ptx_for(k, w->tid, i, ptx_u32(PTXK__THREADS));
    {
        column = ptx_div(k, i, ptx_u32(head_vecs));
        vec = ptx_rem(k, i, ptx_u32(head_vecs));
        ptxk__flash_merge_warps(k, f, w, column, vec, all, joined);
        ptxk__flash_write_cluster(k, f, w, column, vec, all, joined);
    }
    ptx_end(k);
    if (w->cluster.possible) {
        ptx_end(k);
        ptxk__cluster_barrier(k, &w->cluster);
        ptx_if(k, several);
        ptxk__flash_merge_cluster(k, f, w);
        ptx_end(k);
    }
    ptxk__cluster_arrive(k, &w->cluster); /* this block has read the others' results */
    p = ptx_setp(k, PTX_GT, w->chunks, w->cluster.live);
    ptx_if(k, p);
    {
        here = ptxk__arg_ptr(k, w->args, offsetof(ptxk_flash_decode_args, workspace));
        row = ptx_ctaid_x(k);
        row = ptx_mad(k, w->sequence, ptx_u32(f->kv_heads * f->tiles), row);
        here = ptx_ptr_add(k, here, row, 4);
        row = ptx_ptr_add(k, w->shared, ptx_u32(ptxk__flash_flag_at(f)), 1);
        p = ptxk__is_last_block(k, w->tid, here, w->chunks, row);
        ptx_if(k, p);
        ptxk__flash_combine_chunks(k, f, w);
        ptx_end(k);
    }
    ptx_end(k);
    ptxk__cluster_wait(k, &w->cluster); /* the others have read this block's results */
    ptx_ret(k);
}

/* -- flash_decode: scalar -- */

/* The scalar variant, for f32 caches and for sm_75. Lanes share a row. Each has its part of q and of the sums
   of all columns in registers: the loop does not use shared memory. At both ends of a block a lane accesses
   32 bytes of q and of sums, 16 bytes of each 32 at a time, which takes two passes instead of one. */
typedef struct ptxk__flash_state {
    ptx_val q[PTXK__TILE][PTXK__ROW];
    ptx_var sum[PTXK__TILE][PTXK__ROW];
    ptxk__softmax soft[PTXK__TILE];
    ptx_val part, group; /* this lane's vector of a row; its row of those read at once */
    ptx_val has[2];      /* vector i exists for this lane; set only for i where some lane lacks it */
    ptx_val next_rows;   /* u64: bytes to the next rows */
    ptx_var at, next;    /* bytes from base to this lane's next row; position of the warp's first */
} ptxk__flash_state;

static int ptxk__flash_partial(const ptxk__flash *f, uint32_t vec) {
    return (vec + 1) * f->lanes > f->row_vecs;
}

/* Takes a new row in place of the cache's: `words` become variables that both paths set. */
static void ptxk__flash_scalar_fresh(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                     int which, ptx_val fresh, ptx_val position, ptx_val vec, ptx_val at,
                                     ptx_val stored, ptx_val words[4]) {
    ptx_var kept[4];
    ptx_val made[4];
    uint32_t e;
    for (e = 0; e < 4; e++) kept[e] = ptx_var_new(k, words[e]);
    ptx_if(k, fresh);
    {
        ptxk__flash_load_fresh(k, f, w, which, position, vec, made);
        for (e = 0; e < 4; e++) ptx_set(k, kept[e], made[e]);
        ptx_guard(k, stored);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(at, 0), made);
    }
    ptx_end(k);
    for (e = 0; e < 4; e++) words[e] = ptx_get(k, kept[e]);
}

/* Loads this lane's vectors of `unroll` keys. edge: some may be absent, or new rows. */
static void ptxk__flash_load_keys(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  const ptxk__flash_state *s, int edge,
                                  ptx_val words[2][PTXK__UNROLL][2][4]) {
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
            offset = ptxk__flash_key_offset(k, f, w, position, &there);
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

/* The weight 2^(x - most), times 2^-32 where V may be so large that its sum overflows f32. */
static ptx_val ptxk__flash_weight(ptx_kernel *k, const ptxk__flash *f, ptx_val x, ptx_val most) {
    ptx_val difference = ptx_sub(k, x, most); /* subtract first: beside large scores 32 is lost */
    if (f->type != PTX_F16) difference = ptx_add(k, difference, ptx_f32(-(double)PTXK__LOW));
    return ptx_ex2(k, difference);
}

/* One step of a warp, `unroll` keys for each group of lanes: finds the new maximum, rescales the sums, adds
   the weighted values. */
static void ptxk__flash_step(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                             const ptxk__flash_state *s, int edge) {
    uint32_t n = f->per_vec * f->vecs, h, u, e;
    ptx_val words[2][PTXK__UNROLL][2][4], row[PTXK__ROW], position, visible, column;
    ptx_val score[PTXK__TILE][PTXK__UNROLL], sum[PTXK__TILE][PTXK__ROW];

    ptxk__flash_load_keys(k, f, w, s, edge, words);
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
            if (ptxk__scale_is_late(f->scale)) x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32((double)f->scale));
            if (f->cap > 0) x = ptxk__flash_cap_score(k, f, x);
            x = ptxk__softmax_finite(k, x);
            if (edge) {
                here = ptx_add(k, position, ptx_s32(u * f->rows));
                visible = ptxk__flash_is_visible(k, f, w, column, here);
                x = ptx_selp(k, x, ptx_f32(-INFINITY), visible);
            }
            score[h][u] = x;
            most = ptx_max(k, most, x);
        }
        shrink = ptxk__softmax_set_reference(k, &s->soft[h], most);
        total = ptx_get(k, s->soft[h].total);
        for (u = 0; u < f->unroll; u++) {
            score[h][u] = ptxk__flash_weight(k, f, score[h][u], most);
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

/* Loads q * scale: from global memory once for the cluster, through shared memory, to registers. */
static void ptxk__flash_scalar_q(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                 ptxk__flash_state *s) {
    uint32_t per = ptxk__flash_q_elements(f), head_vecs = f->d / per, n = f->tile * head_vecs, rounds, pass,
             h, e, v, i;
    ptx_val turn, column, vec, here, to, p, inside[4], place[4], x[4][8];
    rounds = ptxk__ceil_div(n, PTXK__THREADS);
    for (h = 0; h < rounds; h++) {
        turn = ptx_add(k, w->tid, ptx_u32(h * PTXK__THREADS));
        column = ptx_div(k, turn, ptx_u32(head_vecs));
        vec = ptx_rem(k, turn, ptx_u32(head_vecs));
        p = ptx_setp(k, PTX_LT, turn, ptx_u32(n));
        inside[h] = ptxk__cluster_owns_piece(k, &w->cluster, column, p);
        p = ptx_setp(k, PTX_LT, column, w->columns);
        p = ptx_and(k, p, inside[h]);
        ptxk__flash_load_q(k, f, w, p, column, vec, x[h]);
        place[h] = ptx_mul(k, turn, ptx_u32(4 * per));
    }
    for (h = 0; h < rounds && !ptxk__scale_is_late(f->scale); h++)
        for (e = 0; e < per; e++) x[h][e] = ptx_mul(k, x[h][e], ptx_f32((double)f->scale));
    for (pass = 0; ptxk__cluster_broadcast(k, &w->cluster, pass, w->shared, &here); pass++)
        for (h = 0; h < rounds; h++) {
            to = ptx_ptr_add(k, here, place[h], 1);
            for (e = 0; e < per; e += 4) {
                ptx_guard(k, inside[h]);
                ptx_st_vec(k, PTX_F32, 4, ptx_at(to, (int64_t)(4 * e)), x[h] + e);
            }
        }
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

/* Merges the groups of lanes of each warp, and stores the warp's sums and states in shared memory. */
static void ptxk__flash_scalar_stage(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                     const ptxk__flash_state *s) {
    uint32_t n = f->per_vec * f->vecs, h, e, v, state_at = ptxk__flash_state_at(f);
    ptx_val most[PTXK__TILE], total[PTXK__TILE], sum[PTXK__TILE][PTXK__ROW], here, p, poison, pair[2];
    poison = ptx_get(k, w->poison);
    for (h = 0; h < f->tile; h++) {
        ptx_val mine = ptx_get(k, s->soft[h].most), shrink;
        most[h] = ptxk_warp_reduce(k, PTX_MAX, mine, f->lanes, 32);
        shrink = ptxk__softmax_set_reference(k, &s->soft[h], most[h]);
        total[h] = ptx_get(k, s->soft[h].total);
        total[h] = ptx_add(k, total[h], poison);
        total[h] = ptxk_warp_reduce(k, PTX_ADD, total[h], f->lanes, 32);
        for (e = 0; e < n; e++) {
            sum[h][e] = ptx_get(k, s->sum[h][e]);
            sum[h][e] = ptx_op2(k, PTX_MUL, PTX_RN, sum[h][e], shrink);
            sum[h][e] = ptxk_warp_reduce(k, PTX_ADD, sum[h][e], f->lanes, 32);
        }
    }
    ptx_bar_sync(k, ptx_imm(0)); /* all warps have read q */
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

static void ptxk__flash_scalar(ptx_module *m, const char *site, const ptxk__flash *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
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
    ptxk__flash_combine_block(k, f, &w);
}

/* -- flash_decode: tensor cores -- */

/* The tensor core variant. The columns are the N of an mma, 8: scores are K q^T, 16 keys by 8 columns; sums
   are V^T P, 16 dimensions by 8 columns. K and V are read once for all columns, and a column's maximum and
   sums stay in the same lanes. Each warp has its own keys and its own ring in shared memory; warps meet only
   at the end. A step is 16 kt keys; a ring item is a slab of their K or their V. */
typedef struct ptxk__flash_mma_state {
    ptxk__tile tile;
    ptx_val q[3][4][PTXK__SLAB / 8][2];  /* terms, column tiles, 16-element steps */
    ptx_var sum[PTXK__SLAB / 8][4][4];   /* 16-dimension steps, column tiles, the accumulator's registers */
    ptxk__softmax soft[4][2];            /* most: the maximum less bias, or at most slack below that */
    ptx_var limit[4][2];                 /* while no score exceeds this, the maximum need not change */
    ptx_val factor[4][2], inverse[4][2]; /* products times factor are scores in base 2 */
    ptx_val k_at, v_at;                  /* where this lane reads fragments of an item at offset 0 */
    ptx_val to, chunk, row;              /* where this lane copies to, and its chunk and row of a pass */
    ptx_val pass_bytes;                  /* u64: from pass to pass */
    uint32_t passes;                     /* of an item */
    uint32_t item;                       /* bytes */
    ptx_val ring, stop;                  /* this warp's first item; keys from `stop` on need the edge path */
    ptx_val tile_bytes;                  /* u64: bytes from one of the warp's steps to the next */
    ptx_var from[2], page;               /* this lane's first chunk of the next K, V; paged: its page */
    ptx_var whole; /* kind, where a step's rows lie in the caches, seen by all; else 0 */
    ptx_val kind;  /* 1 + the number of the caches' layout */
} ptxk__flash_mma_state;

static uint32_t ptxk__flash_keys(const ptxk__flash *f) { return 16 * f->kt; }

/* 16-byte chunks of slab s in a row; below, its 16-element steps. */
static uint32_t ptxk__flash_slab(const ptxk__flash *f, uint32_t s) {
    uint32_t rest = f->row_vecs - s * f->chunks;
    return rest < f->chunks ? rest : f->chunks;
}

static uint32_t ptxk__flash_steps(const ptxk__flash *f, uint32_t s) {
    return (ptxk__flash_slab(f, s) + 1) / 2;
}

/* Stores q in shared memory as a sum of `terms` numbers of the cache's type, then loads it to registers. Each
   column is scaled by a power of two so that its largest element is about 2^14; with bf16 below 2^-8, so that
   256 products with the largest K stay finite; with infinite elements by the smallest power. The first term
   is 0 only where q is 0, so that products with infinite K are infinite. f16's second term is the rest times
   2^12, at most 2^3, which extends the range below. */
static void ptxk__flash_mma_q(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                              ptxk__flash_mma_state *s, ptx_val stage) {
    ptxk__tile t;
    int32_t goal = f->type == PTX_F16 ? 14 : -9;
    double least = f->type == PTX_F16 ? 1.0 / 16777216 : (double)FLT_MIN; /* 2^-24, 2^-126 */
    uint32_t per = ptxk__flash_q_elements(f), turns = f->tile / PTXK__WARPS, n, i, e, h, j, pass, count, vecs,
             steps = (f->d + 15) / 16, term_bytes;
    ptx_val p, column[8], row, chunk, here, x[8][8], first[8], words[8][3][4], back[2], most, up, size[8], to,
        inside[8], place[8][2], there[8][2], factors;
    ptxk__tile_form(&t, f->tile, f->d * 2, 2, 32);
    term_bytes = ptxk__tile_bytes(&t);
    vecs = ptxk__ceil_div(t.wide * 8, 32 * per);
    count = vecs * per;           /* elements of a lane */
    for (n = 0; n < turns; n++) { /* a warp takes a column, a lane 16 bytes of q and those 512 further on */
        column[n] = ptx_add(k, w->warp, ptx_u32(n * PTXK__WARPS));
        p = ptx_setp(k, PTX_LT, column[n], w->columns);
        p = ptxk__cluster_owns_piece(k, &w->cluster, column[n], p);
        for (i = 0; i < vecs; i++) {
            row = ptx_add(k, w->lane, ptx_u32(32 * i));
            here = ptx_setp(k, PTX_LT, row, ptx_u32(f->d / per));
            here = ptx_and(k, p, here);
            ptxk__flash_load_q(k, f, w, here, column[n], row, x[n] + i * per);
        }
    }
    for (n = 0; n < turns; n++) {
        most = ptx_f32(0);
        for (e = 0; e < count; e++) {
            up = ptx_abs(k, x[n][e]);
            most = e ? ptx_max(k, most, up) : up;
        }
        most = ptxk_warp_reduce(k, PTX_MAX, most, 1, 32);
        size[n] = ptx_shr(k, ptx_as(most, PTX_U32), ptx_u32(23)); /* the exponent */
        size[n] = ptx_max(k, size[n], ptx_u32(27));
        size[n] = ptx_min(k, size[n], ptx_u32((uint32_t)(goal < 0 ? 253 + goal : 254))); /* or `up` is 0 */
        up = ptx_sub(k, ptx_u32((uint32_t)(254 + goal)), size[n]);
        up = ptx_shl(k, up, ptx_u32(23));
        up = ptx_as(up, PTX_F32);
        for (e = 0; e < count; e++) {
            p = ptx_setp(k, PTX_NE, x[n][e], ptx_f32(0));
            if (f->scale < 0) x[n][e] = ptx_neg(k, x[n][e]);
            first[e] = ptx_copysign(k, x[n][e], ptx_f32(least));
            x[n][e] = ptx_mul(k, x[n][e], up);
            here = ptx_abs(k, x[n][e]);
            here = ptx_setp(k, PTX_LT, here, ptx_f32(least));
            p = ptx_and(k, p, here);
            first[e] = ptx_selp(k, first[e], x[n][e], p); /* only 0 becomes 0 */
        }
        for (i = 0; i < f->terms; i++) {
            ptxk_narrow(k, f->type, count, i ? x[n] : first, words[n][i]);
            if (i + 1 == f->terms) break;
            for (e = 0; e < count; e++) { /* an infinite or NaN element has no rest */
                if (e % 2 == 0) ptxk__widen_word(k, f->type, words[n][i][e / 2], back);
                up = ptx_op2(k, PTX_SUB, PTX_RN, x[n][e], back[e % 2]);
                if (f->type == PTX_F16) up = ptx_op2(k, PTX_MUL, PTX_RN, up, ptx_f32(1 / PTXK__REST));
                here = ptx_abs(k, x[n][e]);
                here = ptx_setp(k, PTX_LE, here, ptx_f32(FLT_MAX));
                x[n][e] = ptx_selp(k, up, ptx_f32(0), here);
            }
        }
        size[n] = goal < 0 ? ptx_add(k, size[n], ptx_u32((uint32_t)-goal))
                           : ptx_sub(k, size[n], ptx_u32((uint32_t)goal));
        size[n] = ptx_shl(k, size[n], ptx_u32(23));
        size[n] = ptx_mul(k, ptx_as(size[n], PTX_F32),
                          ptx_f32(f->scale < 0 ? -(double)f->scale : (double)f->scale));
        size[n] = ptx_max(k, size[n], ptx_f32(1e-37)); /* not 0, not infinite: see ptxk__flash_exponents */
        size[n] = ptx_min(k, size[n], ptx_f32(FLT_MAX));
        p = ptx_setp(k, PTX_EQ, w->lane, ptx_u32(0));
        inside[n] = ptxk__cluster_owns_piece(k, &w->cluster, column[n], p);
        for (h = 0; h < vecs; h++) {
            row = ptx_add(k, w->lane, ptx_u32(32 * h));
            p = ptx_setp(k, PTX_LT, row, ptx_u32(t.wide * 8 / per));
            there[n][h] = ptxk__cluster_owns_piece(k, &w->cluster, column[n], p);
            chunk = ptx_div(k, row, ptx_u32(8 / per));
            row = ptx_and(k, row, ptx_u32(8 / per - 1));
            to = ptxk__tile_chunk_offset(k, &t, column[n], chunk);
            place[n][h] = ptx_mad(k, row, ptx_u32(2 * per), to);
        }
    }
    ptx_cp_async_wait(k, PTXK__RING - 1); /* the copies in flight do not write here */
    for (pass = 0; ptxk__cluster_broadcast(k, &w->cluster, pass, stage, &here); pass++)
        for (n = 0; n < turns; n++) {
            for (h = 0; h < vecs; h++) {
                to = ptx_ptr_add(k, here, place[n][h], 1);
                for (i = 0; i < f->terms; i++) {
                    ptx_guard(k, there[n][h]);
                    ptx_st_vec(k, PTX_B32, per / 2, ptx_at(to, (int64_t)(i * term_bytes)),
                               words[n][i] + h * per / 2);
                }
            }
            to = ptx_ptr_add(k, here, column[n], 4);
            ptx_guard(k, inside[n]);
            ptx_st(k, PTX_F32, ptx_at(to, (int64_t)(f->terms * term_bytes)), size[n]);
        }
    factors = ptx_ptr_add(k, stage, ptx_u32(f->terms * term_bytes), 1);
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
            chunk = ptx_shr(k, w->lane, ptx_u32(3)); /* chunks 2 j ... 2 j + 3 for 8 lanes each */
            if (pair == 1) chunk = ptx_and(k, chunk, ptx_u32(1));
            chunk = ptx_add(k, chunk, ptx_u32(2 * j));
            to = ptxk__tile_chunk_offset(k, &t, row, chunk);
            to = ptx_ptr_add(k, stage, to, 1);
            for (i = 0; i < f->terms; i++) {
                here = ptx_ptr_add(k, to, ptx_u32(i * term_bytes), 1);
                ptx_ldmatrix(k, 2 * pair, here, regs);
                for (e = 0; e < 2 * pair; e++) s->q[i][n][j + e / 2][e % 2] = regs[e];
            }
        }
    }
    ptx_bar_sync(k, ptx_imm(0)); /* the ring may overwrite it from here on */
}

/* Layouts with specialised code, in which row addresses are constants: heads first, rows first, and for pages
   the described one; kind 0: any other layout. */
#define PTXK__KINDS 3u
static uint32_t ptxk__flash_kind(const ptxk__flash *f, uint32_t i) {
    if (f->flags & PTXK_FLASH_PAGE_ROWS) return f->kv_heads * f->row_bytes;
    return i == 0 ? f->row_bytes : i == 1 ? f->kv_heads * f->row_bytes : 0;
}

/* Locates the warp's step at `position` in K and V, for this lane's first chunk, and decides whether all of
   its rows lie in the caches and are seen by all columns. */
static void ptxk__flash_locate_step(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
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
        page = ptx_get(k, s->page); /* loaded one step ago; the next step's is loaded now */
        q = ptx_setp(k, PTX_LT, page, w->pool_pages);
        p = ptx_and(k, p, q);
        next = ptx_add(k, position, ptx_s32(ptxk__flash_keys(f) * PTXK__WARPS));
        q = ptx_setp(k, PTX_LT, next, w->end);
        next = ptx_shr(k, ptx_as(next, PTX_U32), ptx_u32(f->page_shift));
        at = ptx_ptr_add(k, w->table, next, 4);
        next = ptx_ld_if(k, q, PTX_U32, ptx_at(at, 0), ptx_u32(0));
        ptx_set(k, s->page, next);
        at = ptx_and(k, ptx_as(position, PTX_U32), ptx_u32(f->page_size - 1));
        at = ptx_add(k, at, s->row);
        wide = ptxk__page_row(k, f->kv_heads, f->page_size, (f->flags & PTXK_FLASH_PAGE_ROWS) != 0, page,
                              w->kv_head, at);
        wide = ptx_mul(k, wide, ptx_u64(f->row_bytes));
        at = ptx_cvt(k, PTX_U64, s->chunk);
        wide = ptx_mad(k, at, ptx_u64(16), wide);
        for (which = 0; which < 2; which++) {
            at = ptx_ptr_add(k, w->base[which], wide, 1);
            ptx_set(k, s->from[which], at);
        }
    }
    at = ptx_selp(k, s->kind, ptx_u32(0), p);
    ptx_set(k, s->whole, at);
}

/* Whether this lane copies one of the first `chunks` chunks of a row in a pass. */
static ptx_val ptxk__flash_lane_copies(ptx_kernel *k, const ptxk__flash_mma_state *s, uint32_t chunks) {
    ptx_val p = ptx_setp(k, PTX_LT, s->chunk, ptx_u32(chunks)), q;
    if (s->tile.pass * s->tile.wide == 32) return p;
    q = ptx_setp(k, PTX_LT, s->row, ptx_u32(s->tile.pass));
    return ptx_and(k, p, q);
}

/* Copies an item row by row: zeros for absent rows, new rows from their source. */
static void ptxk__flash_copy_edge(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                                  const ptxk__flash_mma_state *s, int which, uint32_t slab, ptx_val position,
                                  ptx_val slot) {
    uint32_t real = ptxk__flash_slab(f, slab);
    ptx_val i, row, at, to, from, there, p, active, is_real, fresh, words[4], chunk;
    i = ptx_for(k, ptx_u32(0), ptx_u32(s->passes), ptx_u32(1));
    row = ptx_mad(k, i, ptx_u32(s->tile.pass), s->row);
    at = ptx_add(k, position, ptx_as(row, PTX_S32));
    there = ptx_setp(k, PTX_GE, at, w->first);
    p = ptx_setp(k, PTX_LT, at, w->end);
    there = ptx_and(k, there, p);
    from = ptxk__flash_key_offset(k, f, w, at, &there);
    from = ptx_ptr_add(k, w->base[which], from, 1);
    chunk = ptx_add(k, s->chunk, ptx_u32(slab * f->chunks));
    from = ptx_ptr_add(k, from, chunk, 16);
    to = ptxk__tile_chunk_offset(k, &s->tile, row, s->chunk);
    to = ptx_ptr_add(k, slot, to, 1);
    active = ptxk__flash_lane_copies(k, s, f->chunks);
    is_real = ptxk__flash_lane_copies(k, s, real);
    if (f->fresh_type) {
        fresh = ptxk__flash_is_fresh(k, f, w, at);
        fresh = ptx_and(k, fresh, is_real);
        ptx_if(k, fresh);
        ptxk__flash_load_fresh(k, f, w, which, at, chunk, words);
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

/* Copies an item whose rows all exist, row_bytes apart; 0: by the strides of the arguments. */
static void ptxk__flash_copy_whole(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                                   int which, uint32_t slab, ptx_val slot, uint32_t row_bytes) {
    uint32_t real = ptxk__flash_slab(f, slab), copied = real + real % 2, i;
    int all = copied == s->tile.wide && s->tile.pass * s->tile.wide == 32;
    ptx_val from = ptx_get(k, s->from[which]), to = ptx_ptr_add(k, slot, s->to, 1), some = from, none = from;
    if (real % 2) none = ptx_setp(k, PTX_GE, s->chunk, ptx_u32(real)); /* pads with zeros */
    if (!all) some = ptxk__flash_lane_copies(k, s, copied);
    for (i = 0; i < s->passes; i++) {
        ptx_val row = ptxk__tile_row_distance(k, &s->tile, to, i * s->tile.pass), at;
        if (i && !row_bytes) from = ptx_add(k, ptx_as(from, PTX_U64), s->pass_bytes);
        at = ptx_off(ptx_ptr(from, PTX_GLOBAL),
                     (int64_t)(slab * f->chunks * 16 + i * s->tile.pass * row_bytes));
        if (!all) ptx_guard(k, some);
        if (real % 2)
            ptx_op4(k, PTX_CP_ASYNC_CG_IGNORE, 0, row, at, ptx_imm(16), none);
        else
            ptx_cp_async_16(k, row, at);
    }
}

/* Issues the copies of an item: slab `slab` of K or V of the step at `position`. Always commits a group. */
static void ptxk__flash_copy(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w,
                             const ptxk__flash_mma_state *s, int which, uint32_t slab, ptx_val position,
                             ptx_val slot) {
    ptx_val whole = ptx_get(k, s->whole), p;
    uint32_t i, kinds = f->page_size ? 1 : PTXK__KINDS;
    for (i = 0; i < kinds; i++) {
        p = ptx_setp(k, PTX_EQ, whole, ptx_u32(i + 1));
        ptx_if(k, p);
        ptxk__flash_copy_whole(k, f, s, which, slab, slot, ptxk__flash_kind(f, i));
        ptx_else(k);
    }
    p = ptx_setp(k, PTX_LT, position, w->end);
    ptx_if(k, p);
    ptxk__flash_copy_edge(k, f, w, s, which, slab, position, slot);
    ptx_end(k);
    for (i = 0; i < kinds; i++) ptx_end(k);
    ptx_cp_async_commit(k);
}

/* Adds the scores of slab `slab` of K for a step, kt 16-key tiles by nt 8-column tiles. Keeps two sums: of
   q's first term, and of the others, which are small. */
static void ptxk__flash_scores(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                               uint32_t slab, ptx_val slot, ptx_val score[4][4][2][4]) {
    uint32_t j, mt, n, i;
    ptx_val keys[4];
    ptx_val at = ptx_ptr_add(k, slot, s->k_at, 1);
    for (j = 0; j < ptxk__flash_steps(f, slab); j++) {
        for (mt = 0; mt < f->kt; mt++) {
            ptx_val row = ptxk__tile_pair_address(k, &s->tile, at, mt * 16, j);
            ptx_ldmatrix(k, 4, row, keys);
            for (n = 0; n < f->nt; n++)
                for (i = 0; i < f->terms; i++)
                    ptx_mma(k, PTX_MMA_M16N8K16_F32, f->type, f->type, score[mt][n][i > 0], keys,
                            s->q[i][n][slab * f->chunks / 2 + j], score[mt][n][i > 0]);
        }
    }
}

/* Repairs a score whose first term gave `first`: where that is infinite, the other terms made the sum NaN. */
static ptx_val ptxk__flash_repair_infinite(ptx_kernel *k, const ptxk__flash *f, ptx_val first, ptx_val x) {
    ptx_val p = ptx_abs(k, first), q;
    p = ptx_setp(k, PTX_EQ, p, ptx_f32(INFINITY));
    q = ptx_setp(k, PTX_ISNAN, x, x);
    p = ptx_and(k, p, q);
    if (f->cap > 0) first = ptx_copysign(k, first, ptx_f32((double)f->cap));
    return ptx_selp(k, first, x, p);
}

/* Turns scores into the exponents of the weights, base 2: usually score * factor - reference. Where a score
   exceeds the reference so far that weights would leave their range, or is NaN or +inf, the whole warp finds
   the maximum and rescales the sums. */
static void ptxk__flash_exponents(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
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
                        v[mt][n][e] = ptxk__flash_repair_infinite(k, f, score[mt][n][0][e], v[mt][n][e]);
                    if (!capped) v[mt][n][e] = ptx_mul(k, v[mt][n][e], s->factor[n][j]);
                    v[mt][n][e] = ptxk__softmax_finite(k, v[mt][n][e]);
                    most = ptx_max(k, v[mt][n][e], most);
                }
            }
            most = ptxk_warp_reduce(k, PTX_MAX, most, 4, 32); /* the lanes of a column */
            most = ptx_add(k, most, ptx_f32(-(double)f->bias));
            old = ptx_get(k, s->soft[n][j].most);
            most = ptx_max(k, most, old);
            shrink = ptxk__softmax_set_reference(k, &s->soft[n][j], most);
            limit = ptx_add(k, most, ptx_f32((double)f->bias + (double)f->slack));
            if (!capped) limit = ptx_op2(k, PTX_MUL, PTX_RN, limit, s->inverse[n][j]);
            limit = ptx_min(k, limit, ptx_f32(FLT_MAX));
            if (!capped) { /* the fast path rounds score * factor once less; that must be small beside 1 */
                q = ptx_abs(k, most);
                q = ptx_setp(k, PTX_LE, q, ptx_f32(65536));
                limit = ptx_selp(k, limit, ptx_f32(-FLT_MAX), q);
            }
            ptx_set(k, s->limit[n][j], limit);
            for (mt = 0; mt < f->kt; mt++)
                for (e = j; e < 4; e += 2) {
                    old = ptx_op2(k, PTX_SUB, PTX_RN, v[mt][n][e], most);
                    if (f->type != PTX_F16) /* where scores are so large that the bias is lost */
                        old = ptx_op2(k, PTX_MIN, PTX_NAN, old, ptx_f32((double)f->bias + (double)f->slack));
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

/* Sets the scores of keys that a column does not see to -inf. */
static void ptxk__flash_mask(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_work *w, ptx_val position,
                             ptx_var x[4][4][4]) {
    uint32_t mt, n, e;
    ptx_val column, row, visible, at, score;
    column = ptx_and(k, w->lane, ptx_u32(3));
    column = ptx_mad(k, column, ptx_u32(2), w->first_column);
    row = ptx_shr(k, w->lane, ptx_u32(2));
    row = ptx_add(k, ptx_as(row, PTX_S32), position);
    for (mt = 0; mt < f->kt; mt++) {
        for (n = 0; n < f->nt; n++) {
            for (e = 0; e < 4; e++) {
                ptx_val mine = ptx_add(k, column, ptx_u32(8 * n + e % 2));
                at = ptx_add(k, row, ptx_s32(16 * mt + e / 2 * 8));
                visible = ptxk__flash_is_visible(k, f, w, mine, at);
                score = ptx_get(k, x[mt][n][e]);
                score = ptx_selp(k, score, ptx_f32(-INFINITY), visible);
                ptx_set(k, x[mt][n][e], score);
            }
        }
    }
}

/* Packs weights as B operand, keys by columns: transposes each 8 by 8 of the accumulator layout and splits
   each weight into a sum of two numbers of the cache's type. */
static void ptxk__flash_pack_weights(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
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

/* Adds slab `slab` of V, transposed by ldmatrix, times the weights. */
static void ptxk__flash_add_values(ptx_kernel *k, const ptxk__flash *f, const ptxk__flash_mma_state *s,
                                   uint32_t slab, ptx_val slot, ptx_val weight[4][4][2][2]) {
    uint32_t j, mt, n, i, e;
    ptx_val values[4], sum[4];
    ptx_val at = ptx_ptr_add(k, slot, s->v_at, 1);
    for (j = 0; j < ptxk__flash_steps(f, slab); j++) {
        for (mt = 0; mt < f->kt; mt++) {
            ptx_val row = ptxk__tile_pair_address(k, &s->tile, at, mt * 16, j);
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

/* Stores the warp's sums and states in shared memory, for ptxk__flash_combine_block. */
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
    ptx_cp_async_wait_all(k);    /* only empty groups remain */
    ptx_bar_sync(k, ptx_imm(0)); /* all warps have finished with their rings */
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

/* The next slot of the ring. */
static ptx_val ptxk__flash_next_slot(ptx_kernel *k, const ptxk__flash_mma_state *s, ptx_val slot) {
    ptx_val next = ptx_ptr_add(k, slot, ptx_u32(s->item * PTXK__WARPS), 1), end, p;
    end = ptx_ptr_add(k, s->ring, ptx_u32(PTXK__RING * s->item * PTXK__WARPS), 1);
    p = ptx_setp(k, PTX_EQ, next, end);
    return ptx_selp(k, s->ring, next, p);
}

/* One step of 16 kt keys: the items of K, then those of V. When an item is read, the copy of the item two
   ahead is issued, into the slot of the one before. */
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
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes have read the previous item */
        if (ahead == items) ptxk__flash_locate_step(k, f, w, s, next);
        ptxk__flash_copy(k, f, w, s, ahead % items >= f->slabs, ahead % f->slabs,
                         ahead < items ? position : next, to);
        ptx_cp_async_wait(k, PTXK__RING - 1);
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* all lanes' copies of this item have arrived */
        if (i < f->slabs) ptxk__flash_scores(k, f, s, i, slot, score);
        if (i + 1 == f->slabs) {
            for (mt = 0; mt < f->kt; mt++)
                for (n = 0; n < f->nt; n++)
                    for (e = 0; e < 4; e++) {
                        ptx_val v = score[mt][n][0][e];
                        if (f->terms > 1 && f->type == PTX_F16)
                            v = ptx_fma(k, score[mt][n][1][e], ptx_f32(PTXK__REST), v);
                        else if (f->terms > 1)
                            v = ptx_add(k, v, score[mt][n][1][e]);
                        if (f->cap > 0) {
                            v = ptx_op2(k, PTX_MUL, PTX_RN, v, s->factor[n][e % 2]);
                            v = ptxk__flash_cap_score(k, f, v);
                        }
                        x[mt][n][e] = ptx_var_new(k, v);
                    }
            p = ptx_setp(k, PTX_EQ, whole, ptx_u32(0));
            ptx_if(k, p);
            ptxk__flash_mask(k, f, w, position, x);
            ptx_end(k);
            ptxk__flash_exponents(k, f, s, score, x);
            ptxk__flash_pack_weights(k, f, s, x, weight);
        }
        if (i >= f->slabs) ptxk__flash_add_values(k, f, s, i - f->slabs, slot, weight);
        to = slot;
        slot = ptxk__flash_next_slot(k, s, slot);
    }
    ptx_set(k, reads, slot);
    ptx_set(k, writes, to);
}

static void ptxk__flash_tensor(ptx_module *m, const char *site, const ptxk__flash *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    uint32_t bytes, n, j, h, e, i, slots, q_bytes;
    ptxk__flash_work w;
    ptxk__flash_mma_state s;
    ptx_val here, p, position, zero, at, row;
    ptx_var next, reads, writes;
    memset(&w, 0, sizeof w);
    memset(&s, 0, sizeof s);
    ptxk__tile_form(&s.tile, ptxk__flash_keys(f), f->chunks * 16, 2, 32);
    s.passes = ptxk__flash_keys(f) / s.tile.pass;
    s.item = ptxk__tile_bytes(&s.tile);
    slots = s.item * PTXK__WARPS;
    q_bytes = (f->terms * ((f->d + 15) / 16 * 32) + 4) * f->tile;
    bytes = slots * (PTXK__RING - 1) + (q_bytes > slots ? q_bytes : slots);
    if (bytes < ptxk__flash_join_bytes(f)) bytes = ptxk__flash_join_bytes(f);
    ptxk__flash_begin(k, f, &w, bytes);

    ptx_comment(k, "the first items, on their way while q is read");
    here = ptx_mul(k, w.warp, ptx_u32(s.item));
    s.ring = ptx_ptr_add(k, w.shared, here, 1);
    ptxk__lane_rows(k, w.lane, &row, &here);
    s.k_at = ptxk__tile_chunk_offset(k, &s.tile, row, here);
    ptxk__lane_columns(k, w.lane, &row, &here); /* of V transposed */
    s.v_at = ptxk__tile_chunk_offset(k, &s.tile, row, here);
    s.chunk = ptx_rem(k, w.lane, ptx_u32(s.tile.wide));
    s.row = ptx_div(k, w.lane, ptx_u32(s.tile.wide));
    s.to = ptxk__tile_chunk_offset(k, &s.tile, s.row, s.chunk);
    here = ptx_mul(k, w.warp, ptx_u32(ptxk__flash_keys(f)));
    position = ptx_add(k, ptx_as(here, PTX_S32), w.begin);
    next = ptx_var_new(k, position);
    s.stop = ptx_min(k, w.safe_hi, w.end);
    s.whole = ptx_var_new(k, ptx_u32(0));
    s.kind = ptx_u32(1);
    if (f->page_size) {
        p = ptx_setp(k, PTX_LT, position, w.end);
        here = ptx_shr(k, ptx_as(position, PTX_U32), ptx_u32(f->page_shift));
        here = ptx_ptr_add(k, w.table, here, 4);
        here = ptx_ld_if(k, p, PTX_U32, ptx_at(here, 0), ptx_u32(0));
        s.page = ptx_var_new(k, here);
        for (e = 0; e < 2; e++) s.from[e] = ptx_var_new(k, w.base[e]);
    } else {
        s.tile_bytes = ptx_mul(k, w.row_bytes, ptx_u64(ptxk__flash_keys(f) * PTXK__WARPS));
        s.pass_bytes = ptx_mul(k, w.row_bytes, ptx_u64(s.tile.pass));
        s.kind = ptx_u32(PTXK__KINDS);
        for (i = PTXK__KINDS - 1; i-- > 0;) {
            p = ptx_setp(k, PTX_EQ, w.row_bytes, ptx_u64(ptxk__flash_kind(f, i)));
            s.kind = ptx_selp(k, ptx_u32(i + 1), s.kind, p);
        }
        row = ptx_add(k, ptx_as(position, PTX_U32), s.row);
        at = ptx_cvt(k, PTX_U64, row);
        at = ptx_mul(k, at, w.row_bytes);
        here = ptx_mul_wide(k, s.chunk, ptx_u32(16));
        at = ptx_add(k, at, here);
        at = ptx_sub(k, at, s.tile_bytes); /* because locating the first step adds it */
        for (e = 0; e < 2; e++) {
            here = ptx_ptr_add(k, w.base[e], at, 1);
            s.from[e] = ptx_var_new(k, here);
        }
    }
    ptxk__flash_locate_step(k, f, &w, &s, position);
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
    ptxk__flash_combine_block(k, f, &w);
}

/* -- flash_decode: the entry -- */

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
        ptxk__flash_tensor(m, site, &f, name);
    else
        ptxk__flash_scalar(m, site, &f, name);
    return ptx_get_error(m)->code;
}

/* ======== kv_scatter ==================================================================================== */

#define PTXK__SCATTER_THREADS 256u

/* Everything that a kv_scatter description determines. */
typedef struct ptxk__scatter {
    ptx_type source, cache;
    uint32_t kv_heads, d, page_size, flags;
    uint32_t source_bytes, cache_bytes; /* of an element */
    uint32_t n;                         /* elements of a thread: the most that 16 bytes and d allow */
    uint32_t vecs;                      /* threads for a row */
} ptxk__scatter;

static ptx_code ptxk__scatter_form(const ptxk_kv_scatter_desc *d, ptxk__scatter *f, ptxk_message *why) {
    uint32_t wide;
    memset(f, 0, sizeof *f);
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the description is NULL");
    if (!d->kv_heads || d->kv_heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "kv_scatter: kv_heads is %u, must be 1 to 65536", d->kv_heads);
    if (!d->head_dim || d->head_dim > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "kv_scatter: head_dim is %u, must be 1 to 65536", d->head_dim);
    f->source_bytes = ptxk__kv_bytes(d->source_type);
    f->cache_bytes = ptxk__kv_bytes(d->cache_type);
    if (!f->source_bytes) return ptxk__check_type("kv_scatter", "source_type", d->source_type, why);
    if (!f->cache_bytes) return ptxk__check_type("kv_scatter", "cache_type", d->cache_type, why);
    if (d->page_size && (d->page_size < 16 || d->page_size > 65536 || d->page_size & (d->page_size - 1)))
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: page_size is %u, must be 0 or a power of two from 16 to 65536",
                            d->page_size);
    if (d->flags > (PTXK_SCATTER_PAGE_ROWS | PTXK_SCATTER_SINGLE))
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: flags is %u, must be of PTXK_SCATTER_PAGE_ROWS and _SINGLE",
                            d->flags);
    if (d->flags & PTXK_SCATTER_PAGE_ROWS && !d->page_size)
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: PTXK_SCATTER_PAGE_ROWS needs pages, and page_size is 0");
    f->source = (ptx_type)d->source_type;
    f->cache = (ptx_type)d->cache_type;
    f->kv_heads = d->kv_heads;
    f->d = d->head_dim;
    f->page_size = d->page_size;
    f->flags = d->flags;
    wide = f->source_bytes > f->cache_bytes ? f->source_bytes : f->cache_bytes;
    for (f->n = 16 / wide; f->d % f->n;) f->n /= 2;
    f->vecs = f->d / f->n;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_kv_scatter_plan(const ptxk_kv_scatter_desc *desc, const ptxk_kv_scatter_shape *shape,
                                         ptx_plan *plan, ptxk_message *why) {
    ptxk__scatter f;
    uint64_t threads, row;
    int fits = 1;
    ptx_code code = ptxk__scatter_form(desc, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the %s is NULL", plan ? "shape" : "plan");
    row = (uint64_t)f.kv_heads * f.vecs;
    threads = ptxk__multiply_checked(row, shape->tokens, &fits);
    if (!fits || threads > 0xffffff00u)
        return ptxk__refuse(why, PTX_E_DESC,
                            "kv_scatter: tokens is %u, must be at most %lu with these heads and head_dim",
                            shape->tokens, (unsigned long)(0xffffff00u / row));
    plan->args_bytes = (uint32_t)sizeof(ptxk_kv_scatter_args);
    if (!threads) return PTX_E_NONE;
    plan->launches = 1;
    plan->launch[0].grid[0] = (uint32_t)((threads + PTXK__SCATTER_THREADS - 1) / PTXK__SCATTER_THREADS);
    plan->launch[0].grid[1] = f.flags & PTXK_SCATTER_SINGLE ? 1 : 2; /* K and V */
    plan->launch[0].grid[2] = 1;
    plan->launch[0].block[0] = PTXK__SCATTER_THREADS;
    plan->launch[0].block[1] = plan->launch[0].block[2] = 1;
    plan->min_bytes = plan->launch[0].grid[1] * threads * f.n * (f.source_bytes + f.cache_bytes);
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_kv_scatter_check(const ptxk_kv_scatter_desc *desc, const ptxk_kv_scatter_args *args,
                                          ptxk_message *why) {
    static const char *const op = "kv_scatter";
    ptxk__scatter f;
    ptxk__span s[7];
    uint64_t last, source, row;
    int both;
    ptx_code code = ptxk__scatter_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: the arguments are NULL");
    both = !(f.flags & PTXK_SCATTER_SINGLE);
    row = (uint64_t)f.kv_heads * f.d;
    source = row * args->tokens * f.source_bytes;
    s[0] = ptxk__span_of("k", args->k, source, 16, 1);
    s[1] = ptxk__span_of("v", args->v, source, 16, 1);
    s[2] = ptxk__span_cache("k_caches", args->k_caches, args->batch, f.page_size, args->pool_pages,
                            row * f.cache_bytes, 1);
    s[3] = ptxk__span_cache("v_caches", args->v_caches, args->batch, f.page_size, args->pool_pages,
                            row * f.cache_bytes, 1);
    s[1].needed = s[3].needed = (uint32_t)both;
    s[4] = ptxk__span_of("sequences", args->sequences, (uint64_t)args->tokens * 4, 4, args->sequences != 0);
    s[5] = ptxk__span_of("positions", args->positions, (uint64_t)args->tokens * 4, 4, args->positions != 0);
    s[6] = ptxk__span_of("block_table", args->block_table, (uint64_t)args->batch * args->max_pages * 4, 4,
                         f.page_size != 0);
    if ((code = ptxk__check_spans(op, s, 7, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "batch", args->batch, 1, UINT32_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "max_seq", args->max_seq, 1, UINT32_MAX, why)) != PTX_E_NONE)
        return code;
    last = args->tokens ? args->tokens - 1 : 0;
    if (last * args->position_step + args->position > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "kv_scatter: position %u + %u tokens * position_step %u passes 2^32",
                            args->position, args->tokens, args->position_step);
    if (last * args->sequence_step > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: %u tokens * sequence_step %u passes 2^32",
                            args->tokens, args->sequence_step);
    if (f.page_size) {
        code = ptxk__check_count(op, "max_pages", args->max_pages, 1, UINT32_MAX, why);
        return code ? code : ptxk__check_count(op, "pool_pages", args->pool_pages, 1, UINT32_MAX, why);
    }
    if (both && args->k_caches == args->v_caches)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "kv_scatter: k_caches is v_caches, and both are written");
    return ptxk__check_cache(op, f.kv_heads, args->max_seq, args->head_stride, args->row_stride, f.d, f.n,
                             UINT64_MAX, why);
}

/* The byte offset, u64, of row (head, position) in the cache of a sequence, and the cache's base. Sets
   `there` to false where the position has no page. */
static ptx_val ptxk__scatter_row(ptx_kernel *k, const ptxk__scatter *f, ptx_val args, ptx_val caches,
                                 ptx_val sequence, ptx_val head, ptx_val position, ptx_val *there) {
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
    position = ptx_rem(k, position, ptx_u32(f->page_size));
    row = ptxk__page_row(k, f->kv_heads, f->page_size, (f->flags & PTXK_SCATTER_PAGE_ROWS) != 0, page, head,
                         position);
    return ptx_ptr_add(k, caches, row, f->d * f->cache_bytes);
}

PTXGEN_API ptx_code ptxk_kv_scatter_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__scatter f;
    ptxk_message why;
    char name[96], flags[16] = "";
    ptx_kernel *k;
    ptx_val args, i, vec, row, head, token, which, source, caches, other, there, sequence, position, p, x[8];
    ptx_code code = ptxk__scatter_form((const ptxk_kv_scatter_desc *)desc, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    if (f.flags) (void)snprintf(flags, sizeof flags, "_f%u", f.flags);
    (void)snprintf(name, sizeof name, "kv_scatter_kv%u_d%u_%s_%s_p%u%s", f.kv_heads, f.d,
                   ptx_type_name(f.source), ptx_type_name(f.cache), f.page_size, flags);
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

    if (f.flags & PTXK_SCATTER_SINGLE) {
        source = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k));
        caches = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k_caches));
    } else {
        ptx_comment(k, "grid.y: K or V");
        which = ptx_ctaid_y(k);
        p = ptx_setp(k, PTX_EQ, which, ptx_u32(0));
        source = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k));
        other = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, v));
        source = ptx_selp(k, source, other, p);
        caches = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, k_caches));
        other = ptxk__arg_ptr(k, args, offsetof(ptxk_kv_scatter_args, v_caches));
        caches = ptx_selp(k, caches, other, p);
    }

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
        } else { /* bit for bit, including NaN payloads */
            ptxk_load_f32(k, PTX_F32, f.n * f.source_bytes / 4, ptx_with(ptx_at(row, 0), PTX_NC), x);
            ptxk_store_f32(k, PTX_F32, f.n * f.source_bytes / 4, ptx_at(caches, 0), x);
        }
    }
    ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== flash_prefill ================================================================================= */

/* -- flash_prefill: limits, plan, arguments -- */

/* Everything that a flash_prefill description determines. A block has `rows` queries of one head, a warp 16 *
   m of them; it runs through the keys in tiles. */
#define PTXK__PREFILL_SHARED 65536u /* shared bytes that every device gives one block, most of them two */
#define PTXK__PREFILL_LEN 0x40000000u

typedef struct ptxk__prefill {
    ptx_type type, out;
    uint32_t heads, kv_heads, d, flags, window, precision, page_size;
    uint32_t bytes, out_bytes; /* of an element */
    uint32_t rows, warps, m, keys;
    uint32_t columns; /* tiles of 8 columns of out */
    uint32_t pairs;   /* steps along d in q . k */
    uint32_t hold;    /* q stays in registers */
    uint32_t panels;  /* sm_90a, wgmma: 128-byte panels of a row in shared memory; 0: mma.sync */
    ptxk__tile q, kv;
    int negative; /* the scale is negative */
    int plain;    /* no tensor cores: bf16 and f32 before sm_80 run in f32 */
    float inner;  /* factor of scores before 2^x in tanh; 0: no cap */
    float outer;  /* factor of scores after that, in base 2 */
    float most;   /* scores that count as infinite: a power of two; exact times outer */
    float lift;   /* the largest weight is 2^lift */
} ptxk__prefill;

/* wgmma: bytes of a tile of so many rows, and of what lies before the mbarriers: q, and two stages of k and
   v. */
static uint32_t ptxk__prefill_panel_bytes(const ptxk__prefill *f, uint32_t rows) {
    return rows * f->panels * 128;
}
static uint32_t ptxk__prefill_stages_end(const ptxk__prefill *f) {
    return ptxk__prefill_panel_bytes(f, f->rows + 4 * f->keys);
}

static uint32_t ptxk__prefill_bytes(const ptxk__prefill *f) {
    if (f->panels) return ptxk__prefill_stages_end(f) + 80;
    return ptxk__tile_bytes(&f->q) + 2 * ptxk__tile_bytes(&f->kv);
}

static uint32_t ptxk__prefill_threads(const ptxk__prefill *f) {
    return 32 * f->warps + (f->panels ? 128 : 0); /* the last warpgroup copies */
}

/* The form of sm_90a: two warpgroups of 64 queries each, and one that copies. The sums, scores and weights of
   a thread take d / 2 + 3 keys / 4 registers. */
static void ptxk__prefill_form_panels(ptxk__prefill *f) {
    f->panels = ptxk__ceil_div(f->d, 64);
    f->rows = 128;
    f->warps = 8;
    f->m = 1;
    f->keys = f->d <= 128 ? 128 : f->d <= 192 && !f->page_size ? 96 : 64;
    ptxk__tile_form(&f->q, 64, f->d * f->bytes, 8, 128);
    ptxk__tile_form(&f->kv, f->page_size && f->page_size < f->keys ? f->page_size : f->keys, f->d * f->bytes,
                    8, 128);
    f->q.pitch = f->q.swap = f->kv.pitch = f->kv.swap = 8;
    f->q.panel = 64 * 8;
    f->kv.panel = f->keys * 8;
}

/* Whether a shape fits. registers: limit for a thread's sums and scores. */
static int ptxk__prefill_fits(ptxk__prefill *f, uint32_t rows, uint32_t keys, uint32_t registers) {
    uint32_t even = f->type == PTX_F32 ? 8 : 2; /* tf32 words of v are read singly, across rows */
    f->rows = rows;
    f->keys = keys;
    f->warps = rows >= 64 ? 4 : rows / 16;
    f->m = rows / 16 / f->warps;
    ptxk__tile_form(&f->q, rows, f->d * f->bytes, even, 32 * f->warps);
    ptxk__tile_form(&f->kv, keys, f->d * f->bytes, even, 32 * f->warps);
    if (f->plain && keys > 16) return 0; /* bounds the length of the code */
    if (f->page_size && f->page_size % keys) return 0;
    return (f->m == 1 || f->d <= 128) && ptxk__prefill_bytes(f) <= PTXK__PREFILL_SHARED
           && (f->d + keys) / 2 * f->m <= registers;
}

/* Chooses the shape. target: 0 for a plan, which serves every target; code for a target needs no more shared
   memory than the plan says. */
static ptx_code ptxk__prefill_form(const ptxk_flash_prefill_desc *d, ptx_target target, ptxk__prefill *f,
                                   ptxk_message *why) {
    static const uint32_t rows[] = {128, 128, 128, 128, 64, 64, 64, 32},
                          keys[] = {64, 48, 32, 16, 64, 32, 16, 16};
    uint32_t chip = target & 0xfffu, registers, i;
    double scale, outer;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_prefill: the description is NULL");
    if (!d->kv_heads || d->kv_heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: kv_heads is %u, must be 1 to 65536",
                            d->kv_heads);
    if (!d->heads || d->heads > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: heads is %u, must be 1 to 65536", d->heads);
    if (d->heads % d->kv_heads)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: heads is %u, must be a multiple of kv_heads, %u",
                            d->heads, d->kv_heads);
    if (d->head_dim % 8 || !d->head_dim || d->head_dim > 256)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_prefill: head_dim is %u, must be a multiple of 8 from 8 to 256",
                            d->head_dim);
    f->bytes = ptxk__kv_bytes(d->type);
    f->out_bytes = ptxk__kv_bytes(d->out_type);
    if (!f->bytes) return ptxk__check_type("flash_prefill", "type", d->type, why);
    if (!f->out_bytes) return ptxk__check_type("flash_prefill", "out_type", d->out_type, why);
    if (d->flags > 7)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_prefill: flags is %u, must be of PTXK_PREFILL_CAUSAL, _LSE and _PAGE_ROWS",
                            d->flags);
    if (d->page_size && (d->page_size < 16 || d->page_size > 65536 || d->page_size & (d->page_size - 1)))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_prefill: page_size is %u, must be 0 or a power of two from 16 to 65536",
                            d->page_size);
    if (d->flags & PTXK_PREFILL_PAGE_ROWS && !d->page_size)
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_prefill: PTXK_PREFILL_PAGE_ROWS needs pages, and page_size is 0");
    if (d->window > PTXK__PREFILL_LEN)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: window is %u, must be at most 2^30", d->window);
    if (d->precision > 1 || (d->precision && d->type != PTX_F32))
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: precision is %u, must be PTXK_PREFILL_EXACT%s",
                            d->precision,
                            d->type == PTX_F32 ? " or PTXK_PREFILL_FAST" : " with 16-bit types");
    if (!(d->scale >= -1e30f && d->scale <= 1e30f))
        return ptxk__refuse(why, PTX_E_DESC,
                            "flash_prefill: scale is %g, must be from -1e30 to 1e30 (0: default)",
                            (double)d->scale);
    if (!(d->soft_cap >= 0 && d->soft_cap <= 1e30f))
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: soft_cap is %g, must be from 0 (none) to 1e30",
                            (double)d->soft_cap);

    f->type = (ptx_type)d->type;
    f->out = (ptx_type)d->out_type;
    f->heads = d->heads;
    f->kv_heads = d->kv_heads;
    f->d = d->head_dim;
    f->flags = d->flags;
    f->window = d->window;
    f->precision = d->precision;
    f->page_size = d->page_size;
    f->plain = chip && chip < 80 && f->type != PTX_F16;
    /* 128 queries, 32 a warp, halve the reads of K and V from shared memory, where the sums fit: to d 128. */
    registers = chip && chip < 80 ? 144 : 160;
    if (!chip || (chip >= 90 && chip < 100 && !d->window && !(d->soft_cap > 0))) registers = 176;
    f->panels = 0;
    for (i = 0; i < 7 && !ptxk__prefill_fits(f, rows[i], keys[i], registers);) i++;
    if (i == 7) (void)ptxk__prefill_fits(f, rows[7], keys[7], registers);
    if (target == PTX_SM_A(90) && f->type != PTX_F32) ptxk__prefill_form_panels(f);
    f->columns = f->d / 8;
    f->pairs = f->q.wide / 2;
    f->hold = f->m * f->pairs <= 8 && !f->plain;

    scale = d->scale < 0 || d->scale > 0 ? (double)d->scale : 1 / ptxk__sqrt(f->d);
    f->negative = scale < 0;
    if (f->negative) scale = -scale;
    outer = scale * 1.44269504088896340736; /* log2 e: the hardware has ex2 */
    f->inner = 0;
    if (d->soft_cap > 0) {
        outer = (double)d->soft_cap * 1.44269504088896340736;
        f->inner = (float)(2 * 1.44269504088896340736 * scale / (double)d->soft_cap);
    }
    f->outer = (float)outer;
    for (f->most = 1.2676506002282294e30f /* 2^100 */; (double)f->most * outer > 1e38;) f->most /= 2;
    f->lift = f->type == PTX_F16 ? 15.0f : -PTXK__LOW;
    return PTX_E_NONE;
}

/* The maps of k and v: elements, rows, heads, sequences; pages: elements, positions, heads, pages. A copy is
   a panel of a tile or page. */
static void ptxk__prefill_plan_maps(const ptxk__prefill *f, ptx_plan *plan) {
    static const size_t at[2][2] = {
        {offsetof(ptxk_flash_prefill_args, k), offsetof(ptxk_flash_prefill_args, k_batch_stride)},
        {offsetof(ptxk_flash_prefill_args, v), offsetof(ptxk_flash_prefill_args, v_batch_stride)}};
    uint64_t row = (uint64_t)f->d * f->bytes;
    uint32_t i, rows_first = f->flags & PTXK_PREFILL_PAGE_ROWS;
    for (plan->maps = 0; plan->maps < 2; plan->maps++) {
        ptx_tensor_map *m = &plan->map[plan->maps];
        m->address = (uint32_t)at[plan->maps][0];
        m->type = f->type;
        m->rank = 4;
        m->swizzle = 128;
        m->box[0] = 64, m->box[1] = f->kv.rows, m->box[2] = m->box[3] = 1;
        m->size[0].times = f->d;
        m->size[1].times = f->page_size ? f->page_size : PTXK__PREFILL_LEN; /* rows past the end: no copy */
        m->size[2].times = f->kv_heads;
        m->size[3].times = 1;
        m->size[3].bytes = 4;
        m->size[3].field = (uint32_t)(f->page_size ? offsetof(ptxk_flash_prefill_args, pool_pages)
                                                   : offsetof(ptxk_flash_prefill_args, batch));
        if (f->page_size) {
            m->stride[1].times = rows_first ? f->kv_heads * row : row;
            m->stride[2].times = rows_first ? row : f->page_size * row;
            m->stride[3].times = (uint64_t)f->kv_heads * f->page_size * row;
            continue;
        }
        for (i = 1; i < 4; i++) {
            m->stride[i].times = f->bytes;
            m->stride[i].bytes = 8;
            m->stride[i].field = (uint32_t)(at[plan->maps][1] + 8 * (i % 3)); /* rows, heads, sequences */
        }
    }
}

PTXGEN_API ptx_code ptxk_flash_prefill_plan(const ptxk_flash_prefill_desc *desc,
                                            const ptxk_flash_prefill_shape *shape, ptx_plan *plan,
                                            ptxk_message *why) {
    ptxk__prefill f;
    ptx_launch *l;
    uint64_t blocks, queries, keys;
    uint32_t q_len;
    ptx_target target = shape && shape->target == PTX_SM_A(90) ? shape->target : 0;
    ptx_code code = ptxk__prefill_form(desc, target, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_prefill: the %s is NULL", plan ? "shape" : "plan");
    if (shape->q_len > PTXK__PREFILL_LEN || shape->kv_len > PTXK__PREFILL_LEN)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: %s is %u, must be at most 2^30",
                            shape->q_len > PTXK__PREFILL_LEN ? "q_len" : "kv_len",
                            shape->q_len > PTXK__PREFILL_LEN ? shape->q_len : shape->kv_len);
    if (shape->target && (shape->target & 0xfffu) < 75)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: target is %u, must be that of the module",
                            (unsigned)shape->target);
    blocks = (uint64_t)shape->batch * f.heads;
    if (blocks > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: batch is %u, must be at most %u with %u heads",
                            shape->batch, PTXK__LEN_MAX / f.heads, f.heads);
    if (ptxk__ceil_div(shape->q_len, f.rows) > 65535)
        return ptxk__refuse(why, PTX_E_DESC, "flash_prefill: q_len is %u, must be at most %u", shape->q_len,
                            65535 * f.rows);
    plan->args_bytes = (uint32_t)sizeof(ptxk_flash_prefill_args);
    if (!shape->batch || !shape->q_len) return PTX_E_NONE;
    q_len = shape->q_total && shape->q_total < shape->q_len ? shape->q_total : shape->q_len;
    l = &plan->launch[plan->launches++];
    l->grid[0] = (uint32_t)blocks; /* adjacent heads of a group read the same K and V */
    l->grid[1] = ptxk__ceil_div(q_len, f.rows);
    l->grid[2] = 1;
    l->block[0] = ptxk__prefill_threads(&f);
    l->block[1] = l->block[2] = 1;
    l->shared_bytes = ptxk__prefill_bytes(&f);
    queries = shape->q_total ? shape->q_total : (uint64_t)shape->batch * shape->q_len;
    keys = shape->kv_total ? shape->kv_total : (uint64_t)shape->batch * shape->kv_len;
    plan->min_bytes =
        queries * f.heads * f.d * (f.bytes + f.out_bytes) + 2 * keys * f.kv_heads * f.d * f.bytes;
    if (f.flags & PTXK_PREFILL_LSE) plan->min_bytes += queries * f.heads * 4;
    if (f.panels) ptxk__prefill_plan_maps(&f, plan);
    for (q_len = 0; q_len < plan->maps && !shape->kv_len; q_len++) /* no keys: k and v may be 0 */
        plan->map[q_len].address = (uint32_t)offsetof(ptxk_flash_prefill_args, q);
    return PTX_E_NONE;
}

PTXGEN_API void ptxk_flash_prefill_pack(const ptxk_flash_prefill_desc *desc,
                                        const ptxk_flash_prefill_shape *shape,
                                        ptxk_flash_prefill_args *args) {
    uint64_t row, rows;
    if (!desc || !shape || !args) return;
    row = (uint64_t)desc->heads * desc->head_dim;
    args->q_head_stride = args->out_head_stride = desc->head_dim;
    args->k_head_stride = args->v_head_stride = desc->head_dim;
    args->q_row_stride = args->out_row_stride = row;
    args->q_batch_stride = args->out_batch_stride = row * shape->q_len;
    row = (uint64_t)desc->kv_heads * desc->head_dim;
    args->k_row_stride = args->v_row_stride = row;
    args->k_batch_stride = args->v_batch_stride = row * shape->kv_len;
    rows = args->cu_q ? shape->q_total : shape->q_len;
    args->lse_head_stride = rows;
    args->lse_batch_stride = rows * desc->heads;
}

/* The span of a tensor: strides of batch, rows, heads. */
static ptxk__span ptxk__span_heads(const char *name, uint64_t at, uint32_t row_bytes, uint32_t element,
                                   uint32_t align, uint32_t batch, uint32_t rows, uint32_t heads,
                                   const uint64_t stride[3]) {
    ptxk__span s = ptxk__span_of(name, at, row_bytes, align, 1);
    ptxk__span_repeat(&s, 0, batch, stride[0] * element);
    ptxk__span_repeat(&s, 1, rows, stride[1] * element);
    ptxk__span_repeat(&s, 2, heads, stride[2] * element);
    return s;
}

/* Checks spans with cumulative lengths, where the arguments do not give the number of rows: q_len only bounds
   those of one sequence. Where heads lie outside rows, a head has room for a limited number. So many rows
   must have distinct addresses; one row, which must exist, must not overlap the other tensors. */
static ptx_code ptxk__check_ragged(const char *op, ptxk__span *s, ptxk_message *why) {
    ptx_code code;
    if (s->count[2] > 1 && s->stride[1] && s->stride[2] >= s->stride[1]) {
        uint64_t room = s->stride[2] < s->row ? 1 : (s->stride[2] - s->row) / s->stride[1] + 1;
        if (s->count[1] > room) s->count[1] = room;
    }
    if (s->written && s->needed && s->count[1] && (code = ptxk__check_distinct(op, s, why)) != PTX_E_NONE)
        return code;
    s->bytes = s->row;
    if (s->count[1]) s->count[1] = 1;
    ptxk__span_repeat(s, 2, s->count[2], s->stride[2]);
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_flash_prefill_check(const ptxk_flash_prefill_desc *desc,
                                             const ptxk_flash_prefill_args *args, ptxk_message *why) {
    static const char *const names[] = {"q", "k", "v", "out", "lse"}, *op = "flash_prefill";
    ptxk__prefill f;
    ptxk__span s[8];
    uint64_t stride[14], lse[3];
    uint32_t i, q_batch, kv_batch;
    ptx_code code = ptxk__prefill_form(desc, 0, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "flash_prefill: the arguments are NULL");
    memcpy(stride, &args->q_batch_stride, sizeof stride);
    for (i = 0; i < 14; i++) {
        uint32_t whole = i < 12 ? 16 / (i < 9 ? f.bytes : f.out_bytes) : 1;
        const char *which = i == 13 || i % 3 == 2 ? "head" : i % 3 ? "row" : "batch";
        if (i > 11 && !(f.flags & PTXK_PREFILL_LSE)) continue;
        if (f.page_size && i / 3 >= 1 && i / 3 <= 2) continue; /* of k and v */
        if (stride[i] % whole)
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "flash_prefill: %s_%s_stride is %llu, must be a multiple of %u elements",
                                names[i / 3], which, (unsigned long long)stride[i], whole);
        if (i < 12 && i % 3 == 1 && stride[i] > 0xffffffffu)
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "flash_prefill: %s_row_stride is %llu, must be below 2^32", names[i / 3],
                                (unsigned long long)stride[i]);
        if (stride[i] > UINT64_MAX >> 24)
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "flash_prefill: %s_%s_stride is %llu, must be below 2^40", names[i / 3],
                                which, (unsigned long long)stride[i]);
    }
    if ((code = ptxk__check_count(op, "q_len", args->q_len, 0, PTXK__PREFILL_LEN, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "kv_len", args->kv_len, 0, PTXK__PREFILL_LEN, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "batch", args->batch, 1, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_zero(op, "reserved", args->reserved, why)) != PTX_E_NONE)
        return code;
    if (f.page_size
        && ((code = ptxk__check_count(op, "max_pages", args->max_pages, 1, UINT32_MAX, why)) != PTX_E_NONE
            || (code = ptxk__check_count(op, "pool_pages", args->pool_pages, 1, UINT32_MAX, why))
                   != PTX_E_NONE))
        return code;
    if (f.page_size && !args->cu_kv && args->kv_len > (uint64_t)args->max_pages * f.page_size)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "flash_prefill: kv_len is %u, and %u pages have %llu positions", args->kv_len,
                            args->max_pages, (unsigned long long)args->max_pages * f.page_size);
    q_batch = args->cu_q ? 1 : args->batch;
    kv_batch = args->cu_kv ? 1 : args->batch;
    s[0] = ptxk__span_heads("q", args->q, f.d * f.bytes, f.bytes, 16, q_batch, args->q_len, f.heads, stride);
    s[1] = ptxk__span_heads("k", args->k, f.d * f.bytes, f.bytes, 16, kv_batch, args->kv_len, f.kv_heads,
                            stride + 3);
    s[2] = ptxk__span_heads("v", args->v, f.d * f.bytes, f.bytes, 16, kv_batch, args->kv_len, f.kv_heads,
                            stride + 6);
    for (i = 1; i < 3 && f.page_size; i++)
        s[i] = ptxk__span_cache(names[i], i == 1 ? args->k : args->v, 1, f.page_size, args->pool_pages,
                                (uint64_t)f.kv_heads * f.d * f.bytes, 0);
    s[3] = ptxk__span_heads("out", args->out, f.d * f.out_bytes, f.out_bytes, 16, q_batch, args->q_len,
                            f.heads, stride + 9);
    s[3] = ptxk__span_written(s[3], 1);
    s[0].same = f.type == f.out;
    lse[0] = stride[12], lse[1] = 1, lse[2] = stride[13];
    s[4] = ptxk__span_heads("lse", args->lse, 4, 4, 4, q_batch, args->q_len, f.heads, lse);
    s[4] = ptxk__span_written(s[4], 0);
    s[4].needed = f.flags & PTXK_PREFILL_LSE;
    s[5] = ptxk__span_of("cu_q", args->cu_q, ((uint64_t)args->batch + 1) * 4, 4, args->cu_q != 0);
    s[6] = ptxk__span_of("cu_kv", args->cu_kv, ((uint64_t)args->batch + 1) * 4, 4, args->cu_kv != 0);
    s[7] = ptxk__span_of("block_table", args->block_table, (uint64_t)args->batch * args->max_pages * 4, 4,
                         f.page_size != 0);
    for (i = 0; i < 5; i++)
        if ((i == 1 || i == 2 ? args->cu_kv && !f.page_size : args->cu_q != 0)
            && (code = ptxk__check_ragged(op, &s[i], why)) != PTX_E_NONE)
            return code;
    return ptxk__check_spans(op, s, 8, why);
}

/* -- flash_prefill: rows, scores -- */

#define PTXK__PREFILL_M 2u        /* most tiles of 16 queries in a warp */
#define PTXK__PREFILL_TILES 16u   /* most tiles of 8 keys */
#define PTXK__PREFILL_COLUMNS 32u /* most tiles of 8 columns of out */

/* The state of a thread, for rows g and g + 8 of each tile of 16 (lane = 4 g + t): the sums and scores of
   columns 2 t and 2 t + 1 of each tile of 8, and for each row the maximum and this thread's part of the
   total. */
typedef struct ptxk__prefill_state {
    ptx_var sum[PTXK__PREFILL_M][PTXK__PREFILL_COLUMNS][4], most[PTXK__PREFILL_M][2],
        total[PTXK__PREFILL_M][2];
    ptx_val score[PTXK__PREFILL_M][PTXK__PREFILL_TILES][4];
    ptx_val held[PTXK__PREFILL_M][8][4]; /* q, where it stays in registers */
    ptx_val q, k, v, k_next, v_next;     /* reader addresses; next: of odd rows, where lanes read two */
    ptxk__tile_copier copier;
    ptx_val args, shared;
    ptx_var k_at, v_at; /* source of this thread's next copy; paged: not used */
    ptx_var at;         /* s32: the first key of the tile */
    ptx_val end;        /* s32: end of the keys that any query of the block sees */
    ptx_val place;      /* panels: where the next tile goes */
} ptxk__prefill_state;

/* The address of a row in one of the four tensors, and the elements from row to row, fewer than 2^32. */
static ptx_val ptxk__prefill_base(ptx_kernel *k, ptx_val args, size_t tensor, size_t strides, ptx_val ragged,
                                  ptx_val sequence, ptx_val row, ptx_val head, uint32_t bytes,
                                  ptx_val *row_stride) {
    ptx_val at, stride, wide, offset;
    stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)strides));
    stride = ptx_selp(k, ptx_u64(0), stride, ragged);
    wide = ptx_cvt(k, PTX_U64, sequence);
    offset = ptx_mul(k, wide, stride);
    stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)strides + 8));
    offset = ptx_mad(k, row, stride, offset);
    *row_stride = ptxk__arg_u32(k, args, strides + 8);
    stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)strides + 16));
    wide = ptx_cvt(k, PTX_U64, head);
    offset = ptx_mad(k, wide, stride, offset);
    at = ptxk__arg_ptr(k, args, tensor);
    return ptx_ptr_add(k, at, offset, bytes);
}

/* The rows of a sequence: the first (u64; 0 where lengths are not cumulative) and their number (u32). ragged:
   lengths are cumulative. */
static ptx_val ptxk__prefill_rows(ptx_kernel *k, ptx_val args, size_t cumulative, ptx_val sequence,
                                  ptx_val most, ptx_val *ragged, ptx_val *count) {
    ptx_val array = ptxk__arg_ptr(k, args, cumulative), at, begin, end;
    *ragged = ptx_setp(k, PTX_NE, array, ptx_u64(0));
    at = ptx_ptr_add(k, array, sequence, 4);
    begin = ptx_ld_if(k, *ragged, PTX_U32, ptx_at(at, 0), ptx_u32(0));
    begin = ptx_uniform(k, begin); /* one address for the whole block */
    end = ptx_ld_if(k, *ragged, PTX_U32, ptx_at(at, 4), most);
    end = ptx_uniform(k, end);
    *count = ptx_sub(k, end, begin);
    return ptx_cvt(k, PTX_U64, begin);
}

/* Fragments for products. f32 runs on tf32, of which mma uses the upper 19 bits: rounded to them (FAST), or
   as a sum of two with the rest, 2^-10 of the value (EXACT). An infinite value has no rest, and is not
   multiplied by the rest of another, which may be 0. */
typedef struct ptxk__prefill_fragment {
    ptx_val x[4], finite[4], rest[4];
} ptxk__prefill_fragment;

static void ptxk__prefill_split(ptx_kernel *k, const ptxk__prefill *f, uint32_t n, const ptx_val *x,
                                ptxk__prefill_fragment *part) {
    ptx_val whole, p, size;
    uint32_t i;
    for (i = 0; i < n; i++) {
        part->x[i] = x[i];
        if (f->type != PTX_F32) continue;
        if (f->precision == PTXK_PREFILL_FAST) {
            part->x[i] = ptx_cvt_with(k, PTX_RNA, PTX_TF32, ptx_as(x[i], PTX_F32));
            continue;
        }
        size = ptx_abs(k, ptx_as(x[i], PTX_F32));
        p = ptx_setp(k, PTX_EQ, size, ptx_f32(INFINITY));
        whole = ptx_selp(k, ptx_b32(0), ptx_as(x[i], PTX_B32), p);
        part->finite[i] = ptx_and(k, whole, ptx_b32(0xffffe000u));
        part->rest[i] = ptx_op2(k, PTX_SUB, PTX_RN, ptx_as(whole, PTX_F32), ptx_as(part->finite[i], PTX_F32));
    }
}

static void ptxk__prefill_product(ptx_kernel *k, const ptxk__prefill *f, ptx_val d[4],
                                  const ptxk__prefill_fragment *a, const ptxk__prefill_fragment *b,
                                  uint32_t at) {
    if (f->type == PTX_F32 && f->precision == PTXK_PREFILL_EXACT) {
        ptxk__tile_mma(k, f->type, d, a->finite, b->rest + at);
        ptxk__tile_mma(k, f->type, d, a->rest, b->finite + at);
    }
    ptxk__tile_mma(k, f->type, d, a->x, b->x + at);
}

/* Computes the scores q k of the tile. */
static void ptxk__prefill_scores(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptx_val zero = ptx_mov(k, ptx_f32(0)), words[4];
    ptxk__prefill_fragment a[PTXK__PREFILL_M], b;
    uint32_t i, n, p, e;
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->keys / 8; n++)
            for (e = 0; e < 4; e++) s->score[i][n][e] = zero;
    for (p = 0; p < f->pairs; p++) {
        ptx_val q = f->hold ? s->q : ptxk__tile_pair_reader(k, &f->q, s->q, p), keys;
        keys = ptxk__tile_pair_reader(k, &f->kv, s->k, p);
        for (i = 0; i < f->m; i++) {
            if (!f->hold) ptx_ldmatrix(k, 4, ptx_off(q, ptxk__tile_offset(&f->q, 16 * i, p)), words);
            ptxk__prefill_split(k, f, 4, f->hold ? s->held[i][p] : words, &a[i]);
        }
        for (n = 0; n < f->keys / 8; n += 2) {
            ptx_ldmatrix(k, 4, ptx_off(keys, ptxk__tile_offset(&f->kv, 8 * n, p)), words);
            ptxk__prefill_split(k, f, 4, words, &b);
            for (e = 0; e < 2; e++)
                for (i = 0; i < f->m; i++) ptxk__prefill_product(k, f, s->score[i][n + e], &a[i], &b, 2 * e);
        }
    }
}

/* -- flash_prefill: without tensor cores, the same tiles and the same places for sums and scores -- */

static void ptxk__prefill_scores_plain(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptx_var sum[PTXK__PREFILL_M][PTXK__PREFILL_TILES][4];
    ptx_val q[PTXK__PREFILL_M][2][8], x[8], words[4], c, turn, whole, score, at[3];
    uint32_t i, h, n, e, count = 0;
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->keys / 8; n++)
            for (e = 0; e < 4; e++) sum[i][n][e] = ptx_var_new(k, ptx_f32(0));
    c = ptx_for(k, ptx_u32(0), ptx_u32(f->kv.chunks), ptx_u32(1));
    {
        turn = ptx_and(k, c, ptx_u32(f->kv.swap - 1));
        whole = ptx_sub(k, c, turn);
        turn = ptx_mul(k, turn, ptx_u32(16));
        for (i = 0; i < 3; i++) {
            at[i] = ptx_xor(k, ptx_as(i == 0 ? s->q : i == 1 ? s->k : s->k_next, PTX_U32), turn);
            at[i] = ptx_mad(k, whole, ptx_u32(16), at[i]);
            at[i] = ptx_ptr(at[i], PTX_SHARED);
        }
        for (i = 0; i < f->m; i++) {
            for (h = 0; h < 2; h++) {
                ptxk_load16(k, NULL, ptx_at(at[0], ptxk__tile_offset(&f->q, 16 * i + 8 * h, 0)), words);
                ptxk_widen(k, f->type, words, q[i][h]);
            }
        }
        for (n = 0; n < f->keys / 8; n++) {
            for (e = 0; e < 2; e++) {
                ptxk_load16(k, NULL, ptx_at(at[1 + e], ptxk__tile_offset(&f->kv, 8 * n, 0)), words);
                count = ptxk_widen(k, f->type, words, x);
                for (i = 0; i < f->m; i++) {
                    for (h = 0; h < 2; h++) {
                        score = ptx_get(k, sum[i][n][2 * h + e]);
                        score = ptxk_dot(k, count, q[i][h], x, score);
                        ptx_set(k, sum[i][n][2 * h + e], score);
                    }
                }
            }
        }
    }
    ptx_end(k);
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->keys / 8; n++)
            for (e = 0; e < 4; e++) s->score[i][n][e] = ptx_get(k, sum[i][n][e]);
}

static void ptxk__prefill_values_plain(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptx_val lane = ptx_laneid(k), from, weight[PTXK__PREFILL_M][2], x[2], sum;
    uint32_t i, h, n, e, j, per = f->type == PTX_F32 ? 2 : 1;
    lane = ptx_and(k, lane, ptx_u32(28));
    for (j = 0; j < f->keys; j++) {
        uint32_t turn = j % 8 / (8 / f->kv.swap) % f->kv.swap;
        from = ptx_or(k, lane, ptx_u32(j % 8 / 2));
        for (i = 0; i < f->m; i++) {
            for (h = 0; h < 2; h++) {
                weight[i][h] = ptx_shfl_idx(k, s->score[i][j / 8][2 * h + j % 2], from, ptx_u32(31),
                                            ptx_u32(0xffffffffu));
                weight[i][h] = ptx_as(weight[i][h], PTX_F32);
            }
        }
        for (n = 0; n < f->columns; n++) {
            uint32_t chunk = per == 2 ? (2 * n) ^ (turn & 6) : n ^ turn;
            ptx_val at = per == 2 && turn & 1 ? s->v_next : s->v;
            ptxk_load_f32(k, f->type, 2, ptx_at(at, (int64_t)((j * f->kv.pitch + chunk) * 16)), x);
            for (i = 0; i < f->m; i++) {
                for (h = 0; h < 2; h++) {
                    for (e = 0; e < 2; e++) {
                        sum = ptx_get(k, s->sum[i][n][2 * h + e]);
                        sum = ptx_fma(k, weight[i][h], x[e], sum);
                        ptx_set(k, s->sum[i][n][2 * h + e], sum);
                    }
                }
            }
        }
    }
}

/* Reader addresses: q at row g of the warp, k at rows 2 t and 2 t + 1, v at this lane's columns of the first
   8. */
static void ptxk__prefill_readers_plain(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                        ptx_val lane, ptx_val warp) {
    ptx_val g = ptx_shr(k, lane, ptx_u32(2)), t = ptx_and(k, lane, ptx_u32(3)), x, tile, half;
    x = ptx_mad(k, warp, ptx_u32(16 * f->m), g);
    s->q = ptxk__tile_reader(k, &f->q, s->shared, x, ptx_u32(0));
    tile = ptx_ptr_add(k, s->shared, ptx_u32(ptxk__tile_bytes(&f->q)), 1);
    x = ptx_mul(k, t, ptx_u32(2));
    s->k = ptxk__tile_reader(k, &f->kv, tile, x, ptx_u32(0));
    x = ptx_add(k, x, ptx_u32(1));
    s->k_next = ptxk__tile_reader(k, &f->kv, tile, x, ptx_u32(0));
    tile = ptx_ptr_add(k, tile, ptx_u32(ptxk__tile_bytes(&f->kv)), 1);
    s->v = s->v_next = ptx_ptr_add(k, tile, t, f->bytes * 2);
    if (f->type != PTX_F32) return;
    half = ptx_and(k, t, ptx_u32(2)); /* the swizzle exchanges chunk and word where the row's turn is odd */
    x = ptx_sub(k, ptx_u32(2), half);
    x = ptx_sub(k, x, half);
    s->v_next = ptx_ptr_add(k, s->v, ptx_as(x, PTX_S32), 8);
}

/* -- flash_prefill: a block's queries and keys, masks, softmax, sums -- */

/* Applies the soft cap and the sign of the scale: tanh(x) = 1 - 2 / (1 + 2^(2 log2(e) x)), right at
   infinities. */
static void ptxk__prefill_shape_scores(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    uint32_t i, n, e;
    ptx_val x;
    if (!f->negative && !(f->inner > 0)) return;
    for (i = 0; i < f->m; i++) {
        for (n = 0; n < f->keys / 8; n++) {
            for (e = 0; e < 4; e++) {
                x = s->score[i][n][e];
                if (f->inner > 0) {
                    x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(f->negative ? -(double)f->inner : f->inner));
                    x = ptx_op1(k, PTX_EX2, PTX_APPROX | PTX_FTZ, x);
                    x = ptx_op2(k, PTX_ADD, PTX_RN, x, ptx_f32(1));
                    x = ptx_op1(k, PTX_RCP, PTX_APPROX | PTX_FTZ, x);
                    x = ptx_fma(k, x, ptx_f32(-2), ptx_f32(1));
                } else {
                    x = ptx_neg(k, x);
                }
                s->score[i][n][e] = x;
            }
        }
    }
}

/* The rows of a block. Adjacent blocks have adjacent heads; of each sequence the last rows, which see the
   most keys, come first. Computed where needed, not kept, to save registers. */
typedef struct ptxk__prefill_block {
    ptx_val head, sequence, ragged;
    ptx_val row;    /* u64: of the first query in the tensors */
    ptx_val query;  /* u32: ... in its sequence */
    ptx_val rows;   /* u32: how many; 0: none */
    ptx_val q_len;  /* u32 */
    ptx_val kv_len; /* s32; -1 where it exceeds the limit */
} ptxk__prefill_block;

static void ptxk__prefill_locate_block(ptx_kernel *k, const ptxk__prefill *f, ptx_val args,
                                       ptxk__prefill_block *q) {
    ptx_val x, p, tile, most;
    x = ptx_ctaid_x(k);
    q->head = ptx_rem(k, x, ptx_u32(f->heads));
    q->sequence = ptx_div(k, x, ptx_u32(f->heads));
    most = ptxk__arg_u32(k, args, offsetof(ptxk_flash_prefill_args, q_len));
    q->row = ptxk__prefill_rows(k, args, offsetof(ptxk_flash_prefill_args, cu_q), q->sequence, most,
                                &q->ragged, &q->q_len);
    p = ptx_setp(k, PTX_GT, q->q_len, most); /* too many rows: nothing is written */
    q->q_len = ptx_selp(k, ptx_u32(0), q->q_len, p);
    x = ptx_add(k, q->q_len, ptx_u32(f->rows - 1));
    x = ptx_div(k, x, ptx_u32(f->rows));
    tile = ptx_ctaid_y(k);
    tile = ptx_add(k, tile, ptx_u32(1));
    p = ptx_setp(k, PTX_LE, tile, x);
    x = ptx_sub(k, x, tile);
    q->query = ptx_mul(k, x, ptx_u32(f->rows));
    x = ptx_sub(k, q->q_len, q->query);
    x = ptx_min(k, x, ptx_u32(f->rows));
    q->rows = ptx_selp(k, x, ptx_u32(0), p);
    x = ptx_cvt(k, PTX_U64, q->query);
    q->row = ptx_add(k, q->row, x);
}

static ptx_val ptxk__prefill_kv_len(ptx_kernel *k, const ptxk__prefill *f, ptx_val args, ptx_val sequence) {
    ptx_val most = ptxk__arg_u32(k, args, offsetof(ptxk_flash_prefill_args, kv_len)), ragged, count, p;
    (void)ptxk__prefill_rows(k, args, offsetof(ptxk_flash_prefill_args, cu_kv), sequence, most, &ragged,
                             &count);
    if (f->page_size) {
        ptx_val room = ptxk__arg_u32(k, args, offsetof(ptxk_flash_prefill_args, max_pages));
        room = ptx_min(k, room, ptx_u32(PTXK__PREFILL_LEN / f->page_size));
        room = ptx_mul(k, room, ptx_u32(f->page_size));
        most = ptx_min(k, most, room);
    }
    p = ptx_setp(k, PTX_GT, count, most);
    count = ptx_selp(k, ptx_u32(0xffffffffu), count, p);
    return ptx_as(count, PTX_S32);
}

/* The position among the keys of the block's first query. */
static ptx_val ptxk__prefill_first(ptx_kernel *k, const ptxk__prefill_block *q) {
    ptx_val first = ptx_sub(k, q->kv_len, ptx_as(q->q_len, PTX_S32));
    return ptx_add(k, first, ptx_as(q->query, PTX_S32));
}

/* The range of keys that the block sees: from the result to s->end; all its queries see safe[0] ... safe[1] -
   1. */
static ptx_val ptxk__prefill_range(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_block *q,
                                   ptxk__prefill_state *s, ptx_val safe[2]) {
    ptx_val first, last, at = ptx_s32(0), x;
    int causal = (f->flags & PTXK_PREFILL_CAUSAL) != 0;
    first = ptxk__prefill_first(k, q);
    last = ptx_add(k, first, ptx_as(q->rows, PTX_S32));
    last = ptx_sub(k, last, ptx_s32(1));
    s->end = safe[1] = q->kv_len;
    if (causal || f->window) {
        int64_t beyond = causal ? 1 : (int64_t)f->window;
        x = ptx_add(k, last, ptx_s32(beyond));
        s->end = ptx_min(k, s->end, x);
        x = ptx_add(k, first, ptx_s32(beyond));
        safe[1] = ptx_min(k, safe[1], x);
    }
    if (f->window) {
        at = ptx_sub(k, first, ptx_s32((int64_t)f->window - 1));
        at = ptx_max(k, at, ptx_s32(0));
        if (f->page_size) at = ptx_and(k, at, ptx_s32(-(int64_t)f->keys)); /* tiles lie in one page */
        safe[0] = ptx_sub(k, last, ptx_s32((int64_t)f->window - 1));
    }
    return at;
}

/* Computes what the mask needs, before scores take the registers: the position of this thread's first row,
   and the number of keys (s32). */
static void ptxk__prefill_mask_limits(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                      ptx_val *first, ptx_val *kv_len) {
    ptxk__prefill_block q;
    ptx_val x;
    ptxk__prefill_locate_block(k, f, s->args, &q);
    *kv_len = q.kv_len = ptxk__prefill_kv_len(k, f, s->args, q.sequence);
    *first = ptxk__prefill_first(k, &q);
    x = ptx_tid_x(k);
    x = ptx_shr(k, x, ptx_u32(5));
    x = ptx_mul(k, x, ptx_u32(16 * f->m));
    *first = ptx_add(k, *first, ptx_as(x, PTX_S32));
    x = ptx_laneid(k);
    x = ptx_shr(k, x, ptx_u32(2));
    *first = ptx_add(k, *first, ptx_as(x, PTX_S32));
}

/* Sets the scores of keys that a query does not see to -inf: past the end of the keys, beyond the diagonal,
   outside the window. at: the tile's first key. */
static void ptxk__prefill_mask(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, ptx_val at,
                               ptx_val first, ptx_val kv_len) {
    ptx_val up, low, p, x, row;
    int causal = (f->flags & PTXK_PREFILL_CAUSAL) != 0;
    uint32_t i, h, n, e;
    x = ptx_laneid(k);
    x = ptx_and(k, x, ptx_u32(3));
    x = ptx_mul(k, x, ptx_u32(2));
    at = ptx_add(k, at, ptx_as(x, PTX_S32));
    for (i = 0; i < f->m; i++) {
        for (h = 0; h < 2; h++) {
            row = ptx_add(k, first, ptx_s32((int64_t)(16 * i + 8 * h)));
            up = kv_len;
            if (causal || f->window) {
                x = ptx_add(k, row, ptx_s32(causal ? 1 : (int64_t)f->window));
                up = ptx_min(k, up, x);
            }
            up = ptx_sub(k, up, at);
            low = up;
            if (f->window) {
                low = ptx_sub(k, row, at);
                low = ptx_sub(k, low, ptx_s32((int64_t)f->window));
            }
            for (n = 0; n < f->keys / 8; n++) {
                for (e = 0; e < 2; e++) {
                    ptx_val *score = &s->score[i][n][2 * h + e];
                    p = ptx_setp(k, PTX_LE, up, ptx_s32((int64_t)(8 * n + e)));
                    if (f->window) {
                        x = ptx_setp(k, PTX_GE, low, ptx_s32((int64_t)(8 * n + e)));
                        p = ptx_or(k, p, x);
                    }
                    *score = ptx_selp(k, ptx_f32(-INFINITY), *score, p);
                }
            }
        }
    }
}

/* Turns scores into weights 2^(outer (score - maximum) + lift), and rescales the sums to the new maximum.
   Infinite scores share the weight equally, because all become the largest number. */
static void ptxk__prefill_softmax(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptx_val old, most, shrink[2], x, total;
    uint32_t i, h, n, e;
    int old_chip = (ptx_module_target(ptx_kernel_module(k)) & 0xfffu) < 80;
    for (i = 0; i < f->m; i++) {
        for (h = 0; h < 2; h++) {
            old = ptx_get(k, s->most[i][h]);
            most = old;
            for (n = 0; n < f->keys / 8; n++) {
                for (e = 0; e < 2; e++) {
                    ptx_val *score = &s->score[i][n][2 * h + e];
                    if (!(f->inner > 0)) *score = ptxk__min_keep_nan(k, *score, (double)f->most);
                    most = ptx_max(k, most, *score);
                }
            }
            most = ptxk_warp_reduce(k, PTX_MAX, most, 1, 4);
            ptx_set(k, s->most[i][h], most);
            x = ptx_sub(k, old, most);
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32((double)f->outer));
            shrink[h] = ptx_op1(k, PTX_EX2, PTX_APPROX | PTX_FTZ, x);
            total = ptx_get(k, s->total[i][h]);
            total = ptx_op2(k, PTX_MUL, PTX_RN, total, shrink[h]);
            for (n = 0; n < f->keys / 8; n++) {
                for (e = 0; e < 2; e++) {
                    ptx_val *score = &s->score[i][n][2 * h + e];
                    *score = ptx_op2(k, PTX_SUB, PTX_RN, *score, most); /* 0 for the largest */
                    if (old_chip) { /* fma would need one of the constants in a register */
                        *score = ptx_op2(k, PTX_MUL, PTX_RN, *score, ptx_f32((double)f->outer));
                        *score = ptx_op2(k, PTX_ADD, PTX_RN, *score, ptx_f32((double)f->lift));
                    } else {
                        *score = ptx_fma(k, *score, ptx_f32((double)f->outer), ptx_f32((double)f->lift));
                    }
                    *score = ptx_op1(k, PTX_EX2, PTX_APPROX | PTX_FTZ, *score);
                    total = ptx_op2(k, PTX_ADD, PTX_RN, total, *score);
                }
            }
            ptx_set(k, s->total[i][h], total);
        }
        for (n = 0; n < f->columns; n++) {
            for (e = 0; e < 4; e++) {
                x = ptx_get(k, s->sum[i][n][e]);
                x = ptx_op2(k, PTX_MUL, PTX_RN, x, shrink[e / 2]);
                ptx_set(k, s->sum[i][n][e], x);
            }
        }
    }
}

static void ptxk__prefill_add(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, uint32_t i,
                              uint32_t n, const ptxk__prefill_fragment *a, const ptxk__prefill_fragment *b,
                              uint32_t at) {
    ptx_val d[4];
    uint32_t e;
    for (e = 0; e < 4; e++) d[e] = ptx_get(k, s->sum[i][n][e]);
    ptxk__prefill_product(k, f, d, a, b, at);
    for (e = 0; e < 4; e++) ptx_set(k, s->sum[i][n][e], d[e]);
}

/* Adds weights times v. 16-bit types: the weights of 16 keys already lie as operand A. */
static void ptxk__prefill_values(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptxk__prefill_fragment a[PTXK__PREFILL_M], b;
    ptx_val words[4], at;
    uint32_t i, j, n, e;
    for (j = 0; j < f->keys / 16; j++) {
        for (i = 0; i < f->m; i++)
            for (e = 0; e < 4; e++) {
                const ptx_val *pair = &s->score[i][2 * j + e / 2][2 * (e & 1)];
                a[i].x[e] = ptxk__pack_f32(k, f->type, pair[0], pair[1]);
            }
        for (n = 0; n < f->columns; n += 2) {
            uint32_t both = n + 1 < f->columns ? 2 : 1;
            at = ptxk__tile_pair_address(k, &f->kv, s->v, 16 * j, n / 2);
            ptx_ldmatrix_trans(k, 2 * both, at, words);
            ptxk__prefill_split(k, f, 2 * both, words, &b);
            for (e = 0; e < both; e++)
                for (i = 0; i < f->m; i++) ptxk__prefill_add(k, f, s, i, n + e, &a[i], &b, 2 * e);
        }
    }
}

/* The same for tf32. Columns t and t + 4 of A are the keys 2 t and 2 t + 1 of 8, whose weights this thread
   has; the rows of B match. ldmatrix cannot transpose words: each lane loads its own two. */
static void ptxk__prefill_values_f32(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptxk__prefill_fragment a[PTXK__PREFILL_M], b;
    ptx_val words[4], at;
    uint32_t i, j, n, e;
    for (j = 0; j < f->keys / 8; j++) {
        for (i = 0; i < f->m; i++) {
            for (e = 0; e < 4; e++) words[e] = s->score[i][j][(e & 1) * 2 + e / 2];
            ptxk__prefill_split(k, f, 4, words, &a[i]);
            for (e = 0; e < 4; e++) a[i].x[e] = ptx_as(a[i].x[e], PTX_B32);
        }
        for (n = 0; n < f->columns; n++) {
            for (e = 0; e < 2; e++) {
                at = ptxk__tile_pair_reader(k, &f->kv, e ? s->v_next : s->v, n);
                words[e] = ptx_ld(k, PTX_B32, ptx_at(at, ptxk__tile_offset(&f->kv, 8 * j, n)));
            }
            ptxk__prefill_split(k, f, 2, words, &b);
            for (i = 0; i < f->m; i++) ptxk__prefill_add(k, f, s, i, n, &a[i], &b, 0);
        }
    }
}

/* Issues this thread's copies of the tile of k or v whose first key is `first`, from its page. A page past
   the pool makes the totals NaN. Addresses are computed each time, to save registers. */
static void ptxk__prefill_copy_page(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, int v,
                                    ptx_val first) {
    ptx_val left, there, fits, page, at, from, to, x, stride;
    uint32_t shift = 0, row = f->d * f->bytes, rows_first = f->flags & PTXK_PREFILL_PAGE_ROWS, i;
    while (f->page_size >> shift > 1) shift++;
    left = ptx_sub(k, s->end, first);
    there = ptx_setp(k, PTX_GT, left, ptx_s32(0));
    x = ptx_ctaid_x(k);
    at = ptx_div(k, x, ptx_u32(f->heads));
    page = ptxk__arg_u32(k, s->args, offsetof(ptxk_flash_prefill_args, max_pages));
    page = ptx_mul_wide(k, at, page);
    at = ptxk__arg_ptr(k, s->args, offsetof(ptxk_flash_prefill_args, block_table));
    at = ptx_ptr_add(k, at, page, 4);
    page = ptx_shr(k, ptx_as(first, PTX_U32), ptx_u32(shift));
    at = ptx_ptr_add(k, at, page, 4);
    page = ptx_ld_if(k, there, PTX_U32, ptx_at(at, 0), ptx_u32(0));
    page = ptx_uniform(k, page); /* one address for the whole block */
    at = ptxk__arg_u32(k, s->args, offsetof(ptxk_flash_prefill_args, pool_pages));
    fits = ptx_setp(k, PTX_LT, page, at);
    page = ptx_selp(k, page, ptx_u32(0), fits);
    left = ptx_selp(k, left, ptx_s32(0), fits);
    for (i = 0; i < 2 * f->m && !f->panels; i++) {
        at = ptx_get(k, s->total[i / 2][i % 2]);
        at = ptx_selp(k, at, ptx_f32(NAN), fits);
        ptx_set(k, s->total[i / 2][i % 2], at);
    }
    x = ptx_rem(k, x, ptx_u32(f->heads));
    x = ptx_div(k, x, ptx_u32(f->heads / f->kv_heads));
    at = ptx_and(k, ptx_as(first, PTX_U32), ptx_u32(f->page_size - 1));
    at = ptxk__page_row(k, f->kv_heads, f->page_size, rows_first != 0, page, x, at);
    from = ptxk__arg_ptr(k, s->args,
                         v ? offsetof(ptxk_flash_prefill_args, v) : offsetof(ptxk_flash_prefill_args, k));
    from = ptx_ptr_add(k, from, at, row);
    to = s->place;
    if (!f->panels)
        to = ptx_ptr_add(k, s->shared, ptx_u32(ptxk__tile_bytes(&f->q) + (v ? ptxk__tile_bytes(&f->kv) : 0)),
                         1);
    stride = ptx_mov(k, ptx_u32(rows_first ? f->kv_heads * f->d : f->d));
    from = ptxk__tile_copy_source(k, &s->copier, from, stride, f->bytes);
    ptxk__tile_copy(k, &f->kv, &s->copier, to, from, stride, f->bytes, left);
    if (!f->panels) ptxk__tile_commit(k);
}

/* Issues this thread's copies of the tile at *next, whose first key is `first`, and advances. v: the tile is
   of v. */
static void ptxk__prefill_copy_tile(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, int v,
                                    ptx_val first) {
    ptx_var next = v ? s->v_at : s->k_at;
    ptx_val from, stride, left, to = s->shared;
    if (f->page_size) {
        ptxk__prefill_copy_page(k, f, s, v, first);
        return;
    }
    left = ptx_sub(k, s->end, first);
    from = ptx_get(k, next);
    from = ptx_ptr(from, PTX_GLOBAL);
    if (f->panels)
        to = s->place;
    else
        to = ptx_ptr_add(k, to, ptx_u32(ptxk__tile_bytes(&f->q) + (v ? ptxk__tile_bytes(&f->kv) : 0)), 1);
    stride = ptxk__arg_u32(k, s->args, /* loaded each time, to save a register */
                           v ? offsetof(ptxk_flash_prefill_args, v_row_stride)
                             : offsetof(ptxk_flash_prefill_args, k_row_stride));
    ptxk__tile_copy(k, &f->kv, &s->copier, to, from, stride, f->bytes, left);
    if (!f->panels) ptxk__tile_commit(k);
    from = ptxk__advance_rows(k, from, stride, f->keys, f->bytes);
    ptx_set(k, next, from);
}

/* Processes the tile of keys at s->at, whose k is in flight. v is copied while q k is computed, the next k
   while the weights are. edge: some queries do not see all of the keys. */
static void ptxk__prefill_tile(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, int edge) {
    ptx_val at, next, first = ptx_s32(0), kv_len = first;
    at = ptx_get(k, s->at);
    ptxk__prefill_copy_tile(k, f, s, 1, at);
    if (edge) ptxk__prefill_mask_limits(k, f, s, &first, &kv_len);
    if (f->plain)
        ptxk__prefill_scores_plain(k, f, s);
    else
        ptxk__prefill_scores(k, f, s);
    ptxk__tile_wait(k);
    next = ptx_add(k, at, ptx_s32((int64_t)f->keys));
    ptxk__prefill_copy_tile(k, f, s, 0, next);
    ptxk__prefill_shape_scores(k, f, s);
    if (edge) ptxk__prefill_mask(k, f, s, at, first, kv_len);
    ptx_set(k, s->at, next);
    ptxk__prefill_softmax(k, f, s);
    if (f->plain)
        ptxk__prefill_values_plain(k, f, s);
    else if (f->type == PTX_F32)
        ptxk__prefill_values_f32(k, f, s);
    else
        ptxk__prefill_values(k, f, s);
    ptxk__tile_wait(k);
}

/* Stores the finished rows: through the shared memory that held the warp's queries, to 16-byte stores. */
static void ptxk__prefill_store(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, ptx_val lane,
                                ptx_val stage, ptx_val out, ptx_val stride, ptx_val rows) {
    uint32_t per = f->out == PTX_F32 ? 2 : 1; /* chunks of a tile of 8 columns */
    uint32_t half = per == 2 ? ptxk__ceil_div(f->columns, 2) : f->columns, first, i, h, n, e;
    ptxk__tile t;
    ptxk__tile_copier c;
    ptx_val from, to, chunk, x[4], left, p, g, t4;
    g = ptx_shr(k, lane, ptx_u32(2));
    t4 = ptx_and(k, lane, ptx_u32(3));
    ptxk__tile_form(&t, 16 * f->m, half * per * 16, 2, 32);
    ptxk__tile_copier_new(k, &t, lane, &c);
    left = ptx_sub(k, rows, ptx_as(c.row, PTX_S32));
    from = ptxk__tile_copy_source(k, &c, out, stride, f->out_bytes);
    if (per == 2) {
        chunk = ptx_shr(k, t4, ptx_u32(1));
        to = ptxk__tile_reader(k, &t, stage, g, chunk);
        chunk = ptx_and(k, t4, ptx_u32(1));
        to = ptx_ptr_add(k, to, chunk, 8);
    } else {
        to = ptxk__tile_reader(k, &t, stage, g, ptx_u32(0));
        to = ptx_ptr_add(k, to, t4, 4);
    }
    for (first = 0; first < f->columns; first += half) {
        uint32_t columns = f->columns - first < half ? f->columns - first : half;
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
        for (n = 0; n < columns; n++) {
            uint32_t pair = per == 2 ? n : n / 2;
            ptx_val at = ptxk__tile_pair_reader(k, &t, to, pair);
            if (per == 1 && n & 1) { /* the other chunk of the pair */
                at = ptx_xor(k, ptx_as(at, PTX_B32), ptx_b32(16));
                at = ptx_ptr(ptx_as(at, PTX_U32), PTX_SHARED);
            }
            for (i = 0; i < f->m; i++) {
                for (h = 0; h < 2; h++) {
                    for (e = 0; e < 2; e++) x[e] = ptx_get(k, s->sum[i][first + n][2 * h + e]);
                    ptxk_store_f32(k, f->out, 2, ptx_at(at, ptxk__tile_offset(&t, 16 * i + 8 * h, pair)), x);
                }
            }
        }
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
        for (i = 0; i < t.rows / t.pass; i++) {
            ptx_val at = ptx_ptr_add(k, stage, c.to[i % ptxk__tile_phases(&t)], 1), here = from;
            uint32_t on = i - i % ptxk__tile_phases(&t);
            p = ptx_setp(k, PTX_GT, left, ptx_s32((int64_t)(i * t.pass)));
            if (t.pass * t.wide < t.threads) p = ptx_and(k, p, c.busy);
            if (columns * per < t.wide) {
                chunk = ptx_setp(k, PTX_LT, c.chunk, ptx_u32(columns * per));
                p = ptx_and(k, p, chunk);
            }
            if (i) here = ptxk__advance_rows(k, from, stride, i * t.pass, f->out_bytes);
            ptxk_load16(k, &p, ptx_at(at, (int64_t)(on * t.pass * t.pitch * 16)), x);
            ptx_guard(k, p);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(here, (int64_t)(first * per * 16)), x);
        }
    }
}

/* wgmma's form: a maximum beyond this has no offset, see ptxk__prefill_weigh. */
static double ptxk__prefill_limit(const ptxk__prefill *f) {
    double limit = 1024 / (double)f->outer;
    return limit < (double)f->most ? limit : (double)f->most;
}

/* lift - outer most, as it is added to the scores of a row; without the lift, what is not rounded twice. */
static ptx_val ptxk__prefill_offset(ptx_kernel *k, const ptxk__prefill *f, ptx_val most, int bare) {
    ptx_val x = ptx_fma(k, most, ptx_f32(-(double)f->outer), ptx_f32((double)f->lift)), far, p;
    if (!bare) return x;
    x = ptx_op2(k, PTX_SUB, PTX_RN, x, ptx_f32((double)f->lift));
    far = ptx_op2(k, PTX_MUL, PTX_RN, most, ptx_f32(-(double)f->outer));
    most = ptx_abs(k, most);
    p = ptx_setp(k, PTX_GE, most, ptx_f32(ptxk__prefill_limit(f)));
    return ptx_selp(k, far, x, p);
}

/* Divides the sums by their totals, and writes the log-sum-exp. rows: s32, of the warp. */
static void ptxk__prefill_finish(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, ptx_val lane,
                                 ptx_val lse, ptx_val rows) {
    ptx_val total, inverse, x, p, at, row, own;
    uint32_t i, h, n, e;
    own = ptx_and(k, lane, ptx_u32(3));
    own = ptx_setp(k, PTX_EQ, own, ptx_u32(0));
    lane = ptx_shr(k, lane, ptx_u32(2));
    for (i = 0; i < f->m; i++) {
        for (h = 0; h < 2; h++) {
            total = ptx_get(k, s->total[i][h]);
            total = ptxk_warp_reduce(k, PTX_ADD, total, 1, 4);
            p = ptx_setp(k, PTX_EQ, total, ptx_f32(0)); /* otherwise it is at least 2^lift */
            inverse = ptx_op1(k, PTX_RCP, PTX_APPROX | PTX_FTZ, total);
            inverse = ptx_selp(k, ptx_f32(0), inverse, p);
            for (n = 0; n < f->columns; n++) {
                for (e = 2 * h; e < 2 * h + 2; e++) {
                    x = ptx_get(k, s->sum[i][n][e]);
                    x = ptx_op2(k, PTX_MUL, PTX_RN, x, inverse);
                    ptx_set(k, s->sum[i][n][e], x);
                }
            }
            if (!(f->flags & PTXK_PREFILL_LSE)) continue;
            inverse = ptx_get(k, s->most[i][h]);
            if (f->panels) {
                x = ptx_op2(k, PTX_MUL, PTX_RN, total, ptx_f32(f->lift > 0 ? 1 / 32768.0 : 4294967296.0));
                x = ptx_lg2(k, x);
                row = ptxk__prefill_offset(k, f, inverse, 1);
                x = ptx_op2(k, PTX_SUB, PTX_RN, x, row);
            } else {
                x = ptx_lg2(k, total); /* 0: -inf */
                x = ptx_add(k, x, ptx_f32(-(double)f->lift));
                x = ptx_fma(k, inverse, ptx_f32((double)f->outer), x);
            }
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(0.69314718055994530942));
            if (!(f->inner > 0)) {
                p = ptx_setp(k, PTX_GE, inverse, ptx_f32((double)f->most));
                inverse = ptx_selp(k, ptx_f32(INFINITY), x, p);
                p = ptx_setp(k, PTX_ISNAN, x, x);
                x = ptx_selp(k, x, inverse, p);
            }
            row = ptx_add(k, lane, ptx_u32(16 * i + 8 * h));
            p = ptx_setp(k, PTX_LT, ptx_as(row, PTX_S32), rows);
            p = ptx_and(k, p, own);
            at = ptx_ptr_add(k, lse, row, 4);
            ptx_guard(k, p);
            ptx_st(k, PTX_F32, ptx_at(at, 0), x);
        }
    }
}

/* Whether all queries of the block see all keys of the tile. */
static ptx_val ptxk__prefill_is_unmasked(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                         const ptx_val safe[2]) {
    ptx_val at = ptx_get(k, s->at), end = ptx_add(k, at, ptx_s32((int64_t)f->keys)), p, x;
    p = ptx_setp(k, PTX_LE, end, safe[1]);
    if (f->window) {
        x = ptx_setp(k, PTX_GE, at, safe[0]);
        p = ptx_and(k, p, x);
    }
    return p;
}

/* Runs through all tiles. */
static void ptxk__prefill_loop(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                               const ptx_val safe[2]) {
    ptx_val at, p;
    ptx_loop(k);
    {
        at = ptx_get(k, s->at);
        p = ptx_setp(k, PTX_LT, at, s->end);
        ptx_while(k, p);
        p = ptxk__prefill_is_unmasked(k, f, s, safe);
        ptx_if(k, p);
        {
            ptx_loop(k);
            ptxk__prefill_tile(k, f, s, 0);
            p = ptxk__prefill_is_unmasked(k, f, s, safe);
            ptx_while(k, p);
            ptx_end(k);
        }
        ptx_else(k);
        ptxk__prefill_tile(k, f, s, 1);
        ptx_end(k);
    }
    ptx_end(k);
}

/* The address of this thread's first chunk of the keys from `begin` on, in k or in v. */
static ptx_val ptxk__prefill_keys_at(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                     size_t tensor, size_t strides, ptx_val begin) {
    ptx_val x, head, sequence, row, ragged, count, stride;
    x = ptx_ctaid_x(k);
    head = ptx_rem(k, x, ptx_u32(f->heads));
    head = ptx_div(k, head, ptx_u32(f->heads / f->kv_heads));
    sequence = ptx_div(k, x, ptx_u32(f->heads));
    row = ptxk__prefill_rows(k, s->args, offsetof(ptxk_flash_prefill_args, cu_kv), sequence, ptx_u32(0),
                             &ragged, &count);
    if (f->window || f->panels) {
        x = ptx_cvt(k, PTX_U64, ptx_as(begin, PTX_U32));
        row = ptx_add(k, row, x);
    }
    x = ptxk__prefill_base(k, s->args, tensor, strides, ragged, sequence, row, head, f->bytes, &stride);
    return ptxk__tile_copy_source(k, &s->copier, x, stride, f->bytes);
}

/* The reader address of a lane's words of v: row 2 t or 2 t + 1, word g of 8. */
static ptx_val ptxk__prefill_v_reader(ptx_kernel *k, const ptxk__prefill *f, ptx_val tile, ptx_val lane,
                                      uint32_t next) {
    ptx_val row = ptx_and(k, lane, ptx_u32(3)), half, word;
    row = ptx_mad(k, row, ptx_u32(2), ptx_u32(next));
    half = ptx_shr(k, lane, ptx_u32(4));
    word = ptx_bfe(k, lane, ptx_u32(2), ptx_u32(2));
    half = ptxk__tile_reader(k, &f->kv, tile, row, half);
    return ptx_ptr_add(k, half, word, 4);
}

static void ptxk__prefill_readers(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, ptx_val lane,
                                  ptx_val warp) {
    ptx_val row, half, tile, x;
    tile = ptx_ptr_add(k, s->shared, ptx_u32(ptxk__tile_bytes(&f->q)), 1);
    ptxk__lane_columns(k, lane, &row, &half);
    s->k = s->k_next = ptxk__tile_reader(k, &f->kv, tile, row, half);
    ptxk__lane_rows(k, lane, &row, &half);
    tile = ptx_ptr_add(k, tile, ptx_u32(ptxk__tile_bytes(&f->kv)), 1);
    if (f->type == PTX_F32) {
        s->v = ptxk__prefill_v_reader(k, f, tile, lane, 0);
        s->v_next = ptxk__prefill_v_reader(k, f, tile, lane, 1);
    } else {
        s->v = s->v_next = ptxk__tile_reader(k, &f->kv, tile, row, half);
    }
    x = ptx_mul(k, warp, ptx_u32(16 * f->m));
    row = ptx_add(k, row, x);
    s->q = ptxk__tile_reader(k, &f->q, s->shared, row, half);
}

/* Writes the rows of this warp: through the place of its own queries, or, with panels, those of the
   warpgroup, which nobody reads any more. */
static void ptxk__prefill_output(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s) {
    ptx_val lane, warp, x, row, rows, here, base, stride, shared;
    ptxk__prefill_block q;
    ptx_comment(k, "out, through the place of the warp's own queries");
    lane = ptx_laneid(k);
    warp = ptx_tid_x(k);
    warp = ptx_shr(k, warp, ptx_u32(5));
    ptxk__prefill_locate_block(k, f, s->args, &q);
    x = ptx_mul(k, warp, ptx_u32(16 * f->m));
    row = ptx_cvt(k, PTX_U64, x);
    q.row = ptx_add(k, q.row, row);
    rows = ptx_sub(k, ptx_as(q.rows, PTX_S32), ptx_as(x, PTX_S32)); /* of this warp; may be 0 */
    here = row;                                                     /* for lse */
    if (f->flags & PTXK_PREFILL_LSE) {
        base = ptxk__arg_ptr(k, s->args, offsetof(ptxk_flash_prefill_args, lse));
        stride =
            ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)offsetof(ptxk_flash_prefill_args, lse_batch_stride)));
        stride = ptx_selp(k, ptx_u64(0), stride, q.ragged);
        row = ptx_cvt(k, PTX_U64, q.sequence);
        row = ptx_mad(k, row, stride, q.row);
        stride =
            ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)offsetof(ptxk_flash_prefill_args, lse_head_stride)));
        here = ptx_cvt(k, PTX_U64, q.head);
        row = ptx_mad(k, here, stride, row);
        here = ptx_ptr_add(k, base, row, 4);
    }
    ptxk__prefill_finish(k, f, s, lane, here, rows);
    base = ptxk__prefill_base(k, s->args, offsetof(ptxk_flash_prefill_args, out),
                              offsetof(ptxk_flash_prefill_args, out_batch_stride), q.ragged, q.sequence,
                              q.row, q.head, f->out_bytes, &stride);
    x = ptx_mul(k, warp, ptx_u32(f->panels ? ptxk__prefill_panel_bytes(f, 16) : 16 * f->m * f->q.pitch * 16));
    shared = ptx_ptr_add(k, s->shared, x, 1);
    ptxk__prefill_store(k, f, s, lane, shared, base, stride, rows);
    ptx_ret(k);
}

/* Sums of nothing. bad: the totals are NaN. */
static void ptxk__prefill_start_sums(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                     ptx_val bad) {
    ptx_val x = ptx_selp(k, ptx_f32(NAN), ptx_f32(0), bad);
    uint32_t i, h, n, e;
    for (i = 0; i < f->m; i++) {
        for (h = 0; h < 2; h++) {
            s->most[i][h] = ptx_var_new(k, ptx_f32(-(double)f->most)); /* -inf then weighs 0 */
            s->total[i][h] = ptx_var_new(k, x);
        }
        for (n = 0; n < f->columns; n++)
            for (e = 0; e < 4; e++) s->sum[i][n][e] = ptx_var_new(k, ptx_f32(0));
    }
}

static void ptxk__prefill_emit(ptx_module *m, const char *site, const ptxk__prefill *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    uint32_t i, n;
    ptxk__prefill_state s;
    ptxk__prefill_block q;
    ptxk__tile_copier copier;
    ptx_val args, shared, tid, lane, warp, p, begin, base, stride, row, safe[2];

    ptx_launch_bounds(k, 32 * f->warps, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_flash_prefill_args), 8);
    shared = ptx_shared_dynamic_aligned(k, 128);
    s.args = args;
    s.shared = shared;
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    warp = ptx_shr(k, tid, ptx_u32(5));
    ptxk__prefill_locate_block(k, f, args, &q);
    p = ptx_setp(k, PTX_EQ, q.rows, ptx_u32(0));
    ptx_guard(k, p);
    ptx_ret(k);
    q.kv_len = ptxk__prefill_kv_len(k, f, args, q.sequence);
    begin = ptxk__prefill_range(k, f, &q, &s, safe);
    if (f->page_size) begin = ptx_mov(k, begin);

    ptx_comment(k, "q");
    base = ptxk__prefill_base(k, args, offsetof(ptxk_flash_prefill_args, q),
                              offsetof(ptxk_flash_prefill_args, q_batch_stride), q.ragged, q.sequence, q.row,
                              q.head, f->bytes, &stride);
    ptxk__tile_copier_new(k, &f->q, tid, &copier);
    base = ptxk__tile_copy_source(k, &copier, base, stride, f->bytes);
    ptxk__tile_copy(k, &f->q, &copier, shared, base, stride, f->bytes, ptx_as(q.rows, PTX_S32));
    ptxk__tile_copier_new(k, &f->kv, tid, &s.copier);
    if (f->plain)
        ptxk__prefill_readers_plain(k, f, &s, lane, warp);
    else
        ptxk__prefill_readers(k, f, &s, lane, warp);
    s.at = ptx_var_new(k, begin);
    if (!f->page_size) {
        base = ptxk__prefill_keys_at(k, f, &s, offsetof(ptxk_flash_prefill_args, v),
                                     offsetof(ptxk_flash_prefill_args, v_batch_stride), begin);
        s.v_at = ptx_var_new(k, base);
        base = ptxk__prefill_keys_at(k, f, &s, offsetof(ptxk_flash_prefill_args, k),
                                     offsetof(ptxk_flash_prefill_args, k_batch_stride), begin);
        s.k_at = ptx_var_new(k, base);
    }
    if (!f->page_size) ptxk__prefill_copy_tile(k, f, &s, 0, begin);
    p = ptx_setp(k, PTX_LT, q.kv_len, ptx_s32(0));
    ptxk__prefill_start_sums(k, f, &s, p);
    if (f->page_size) ptxk__prefill_copy_page(k, f, &s, 0, begin);
    ptxk__tile_wait(k);
    for (i = 0; i < f->m && f->hold; i++) {
        for (n = 0; n < f->pairs; n++) {
            row = ptxk__tile_pair_address(k, &f->q, s.q, 16 * i, n);
            ptx_ldmatrix(k, 4, row, s.held[i][n]);
        }
    }
    ptxk__prefill_loop(k, f, &s, safe);

    ptxk__prefill_output(k, f, &s);
}

/* -- flash_prefill: sm_90a, products of warpgroups --

   The schedule of FlashAttention-3 (J. Shah et al., "FlashAttention-3: Fast and Accurate Attention with
   Asynchrony and Low-precision", 2024). Warpgroups 0 and 1 have 64 queries each; warpgroup 2 copies tiles of
   k and v into two stages. A warpgroup issues q k of one tile and the product with v of the tile before, then
   computes weights while the other one's products run: named barriers give them turns. Its products of one
   tile with v run while it computes the weights of the next.

   k and v of a stage each have two mbarriers: full, at which a lane of every copying warp arrives, and empty,
   at which one of every computing warp does. One thread copies whole tiles through tensor maps; the last tile
   of the keys is copied by cp.async of all threads, which fills with zeros what another sequence owns. */

#define PTXK__PREFILL_TURN 1u /* named barriers: the turns of warpgroups 0 and 1 */

typedef struct ptxk__prefill_stage {
    ptx_val k, v, bars; /* shared addresses; bars: full k, full v, empty k, empty v */
    ptx_val parity;     /* of full */
} ptxk__prefill_stage;

static ptxk__prefill_stage ptxk__prefill_stage_of(ptx_kernel *k, const ptxk__prefill *f,
                                                  const ptxk__prefill_state *s, ptx_val tile) {
    ptxk__prefill_stage g;
    ptx_val odd = ptx_and(k, tile, ptx_u32(1));
    g.parity = ptx_bfe(k, tile, ptx_u32(1), ptx_u32(1));
    g.k = ptx_ptr_add(k, s->shared, odd, ptxk__prefill_panel_bytes(f, 2 * f->keys));
    g.k = ptx_off(g.k, (int64_t)ptxk__prefill_panel_bytes(f, f->rows));
    g.v = ptx_off(g.k, (int64_t)ptxk__prefill_panel_bytes(f, f->keys));
    g.bars = ptx_ptr_add(k, s->shared, odd, 32);
    g.bars = ptx_off(g.bars, (int64_t)ptxk__prefill_stages_end(f));
    return g;
}

/* Copies k or v of the tile at `first` to s->place. Pages may be smaller than a tile. */
static void ptxk__prefill_copy_panels(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s, int v,
                                      ptx_val first) {
    ptx_val place = s->place;
    uint32_t i;
    for (i = 0; i < f->keys; i += f->kv.rows) {
        s->place = ptx_off(place, (int64_t)(i * 128));
        if (i) first = ptx_add(k, first, ptx_s32((int64_t)f->kv.rows));
        ptxk__prefill_copy_tile(k, f, s, v, first);
    }
    ptx_cp_async_commit(k);
}

/* Where k and v lie in their tensor maps. */
typedef struct ptxk__prefill_source {
    ptx_val map[2], head[2], batch[2];
    ptx_val row;    /* of key 0; pages: the sequence's block table */
    ptx_val direct; /* s32: tiles that end at most here are copied through the maps */
} ptxk__prefill_source;

/* A map's index along a stride of 0 is 0. Keys in one place (row stride 0), and rows past 2^30, are copied by
   cp.async, as is the tile at the end of the keys, whose last rows become zeros. */
static void ptxk__prefill_locate_keys(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                      const ptxk__prefill_block *q, ptxk__prefill_source *c) {
    static const size_t strides[2] = {offsetof(ptxk_flash_prefill_args, k_batch_stride),
                                      offsetof(ptxk_flash_prefill_args, v_batch_stride)};
    ptx_val head, x, p, ragged, count, row;
    uint32_t i;
    head = ptx_div(k, q->head, ptx_u32(f->heads / f->kv_heads));
    c->direct = q->kv_len;
    c->head[0] = c->head[1] = head;
    if (f->page_size) {
        x = ptxk__arg_u32(k, s->args, offsetof(ptxk_flash_prefill_args, max_pages));
        x = ptx_mul_wide(k, q->sequence, x);
        c->row = ptxk__arg_ptr(k, s->args, offsetof(ptxk_flash_prefill_args, block_table));
        c->row = ptx_ptr_add(k, c->row, x, 4);
        return;
    }
    row = ptxk__prefill_rows(k, s->args, offsetof(ptxk_flash_prefill_args, cu_kv), q->sequence, ptx_u32(0),
                             &ragged, &count);
    c->row = ptx_cvt(k, PTX_U32, row);
    p = ptx_setp(k, PTX_GT, c->row, ptx_u32(PTXK__PREFILL_LEN));
    c->direct = ptx_selp(k, ptx_s32(0), c->direct, p);
    x = ptx_sub(k, ptx_s32(PTXK__PREFILL_LEN), ptx_as(c->row, PTX_S32));
    c->direct = ptx_min(k, c->direct, x);
    for (i = 0; i < 2; i++) {
        x = ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)strides[i]));
        p = ptx_setp(k, PTX_EQ, x, ptx_u64(0));
        p = ptx_or(k, p, ragged);
        c->batch[i] = ptx_selp(k, ptx_u32(0), q->sequence, p);
        x = ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)strides[i] + 16));
        p = ptx_setp(k, PTX_EQ, x, ptx_u64(0));
        c->head[i] = ptx_selp(k, ptx_u32(0), head, p);
        x = ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)strides[i] + 8));
        p = ptx_setp(k, PTX_EQ, x, ptx_u64(0));
        c->direct = ptx_selp(k, ptx_s32(0), c->direct, p);
    }
}

/* One thread's copies of k or v of the tile at `first`, through the tensor map, a panel of each part of a
   page at a time. */
static void ptxk__prefill_load_tile(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_source *c,
                                    uint32_t v, ptx_val place, ptx_val first, ptx_val full) {
    ptx_val o[7], at = ptx_as(first, PTX_U32), x;
    uint32_t shift = 0, i, panel;
    while (f->page_size >> shift > 1) shift++;
    (void)ptx_mbarrier_arrive_expect(k, full, ptx_u32(ptxk__prefill_panel_bytes(f, f->keys)));
    o[1] = c->map[v];
    o[4] = c->head[v];
    o[6] = full;
    if (!f->page_size) {
        o[3] = ptx_add(k, at, c->row);
        o[5] = c->batch[v];
    }
    for (i = 0; i < f->keys; i += f->kv.rows) {
        if (f->page_size) {
            if (i) at = ptx_add(k, at, ptx_u32(f->kv.rows));
            x = ptx_shr(k, at, ptx_u32(shift));
            x = ptx_ptr_add(k, c->row, x, 4);
            o[5] = ptx_ld(k, PTX_U32, ptx_at(x, 0)); /* past the pool: the copy fills with zeros */
            o[3] = ptx_and(k, at, ptx_u32(f->page_size - 1));
        }
        for (panel = 0; panel < f->panels; panel++) {
            o[0] = ptx_off(place, (int64_t)(16 * (panel * f->kv.panel + 8 * i)));
            o[2] = ptx_u32(64 * panel);
            ptx_opn(k, PTX_TENSOR_G2S, 0, PTX_NONE, PTX_NONE, 7, o, 0, NULL);
        }
    }
}

/* What a copying thread arrives with at a full mbarrier: one lane of each warp, when the warp's copies by
   cp.async, all but those of the last groups, are in shared memory where wgmma sees them. */
static void ptxk__prefill_publish(ptx_kernel *k, uint32_t groups, ptx_val lane0, ptx_val full) {
    ptx_cp_async_wait(k, groups);
    ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
    ptx_guard(k, lane0);
    ptx_opn(k, PTX_MBARRIER_ARRIVE, 0, PTX_NONE, PTX_NONE, 1, &full, 0, NULL);
}

/* The copying warpgroup: q, and all tiles. */
static void ptxk__prefill_produce(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                  const ptxk__prefill_block *q, ptxk__prefill_source *c, ptx_val tid,
                                  ptx_val begin) {
    ptxk__tile_copier copier;
    ptxk__prefill_stage g;
    ptx_val base, stride, x, p, at, next, empty, tile, lane0, full;
    ptx_var count;
    uint32_t i;
    tid = ptx_sub(k, tid, ptx_u32(32 * f->warps));
    x = ptx_laneid(k);
    lane0 = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    base = ptxk__prefill_base(k, s->args, offsetof(ptxk_flash_prefill_args, q),
                              offsetof(ptxk_flash_prefill_args, q_batch_stride), q->ragged, q->sequence,
                              q->row, q->head, f->bytes, &stride);
    ptxk__tile_copier_new(k, &f->q, tid, &copier);
    base = ptxk__tile_copy_source(k, &copier, base, stride, f->bytes);
    for (i = 0; i < f->rows; i += 64) {
        if (i) base = ptxk__advance_rows(k, base, stride, 64, f->bytes);
        x = i ? ptx_sub(k, ptx_as(q->rows, PTX_S32), ptx_s32((int64_t)i)) : ptx_as(q->rows, PTX_S32);
        at = ptx_off(s->shared, (int64_t)ptxk__prefill_panel_bytes(f, i));
        ptxk__tile_copy(k, &f->q, &copier, at, base, stride, f->bytes, x);
    }
    ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0,
            ptx_off(s->shared, (int64_t)ptxk__prefill_stages_end(f) + 64));
    ptxk__tile_copier_new(k, &f->kv, tid, &s->copier);
    ptxk__prefill_locate_keys(k, f, s, q, c);
    s->at = ptx_var_new(k, begin);
    count = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    {
        at = ptx_get(k, s->at);
        p = ptx_setp(k, PTX_LT, at, s->end);
        ptx_while(k, p);
        tile = ptx_get(k, count);
        g = ptxk__prefill_stage_of(k, f, s, tile);
        empty = ptx_xor(k, g.parity, ptx_u32(1));
        next = ptx_add(k, at, ptx_s32((int64_t)f->keys));
        p = ptx_setp(k, PTX_LE, next, c->direct);
        ptx_if(k, p);
        for (i = 0; i < 2; i++) {
            full = ptx_off(g.bars, 8 * (int64_t)i);
            ptx_mbarrier_wait(k, ptx_off(g.bars, 16 + 8 * (int64_t)i), empty);
            p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
            ptx_if(k, p);
            ptxk__prefill_load_tile(k, f, c, i, i ? g.v : g.k, at, full);
            ptx_else(k);
            ptx_guard(k, lane0);
            ptx_opn(k, PTX_MBARRIER_ARRIVE, 0, PTX_NONE, PTX_NONE, 1, &full, 0, NULL);
            ptx_end(k);
        }
        ptx_else(k);
        if (!f->page_size) {
            base = ptxk__prefill_keys_at(k, f, s, offsetof(ptxk_flash_prefill_args, v),
                                         offsetof(ptxk_flash_prefill_args, v_batch_stride), at);
            s->v_at = ptx_var_new(k, base);
            base = ptxk__prefill_keys_at(k, f, s, offsetof(ptxk_flash_prefill_args, k),
                                         offsetof(ptxk_flash_prefill_args, k_batch_stride), at);
            s->k_at = ptx_var_new(k, base);
        }
        for (i = 0; i < 2; i++) {
            ptx_mbarrier_wait(k, ptx_off(g.bars, 16 + 8 * (int64_t)i), empty);
            s->place = i ? g.v : g.k;
            ptxk__prefill_copy_panels(k, f, s, i != 0, at);
        }
        for (i = 0; i < 2; i++) ptxk__prefill_publish(k, 1 - i, lane0, ptx_off(g.bars, 8 * (int64_t)i));
        ptx_end(k);
        ptx_set(k, s->at, next);
        tile = ptx_add(k, tile, ptx_u32(1));
        ptx_set(k, count, tile);
    }
    ptx_end(k);
}

/* Whether a page of the block's keys lies past the pool: a predicate, the same in all computing threads. */
static ptx_val ptxk__prefill_bad_page(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                      ptx_val sequence, ptx_val begin) {
    ptx_val table, x, p, i, last, pool, v[3];
    ptx_var bad = ptx_var_new(k, ptx_u32(0));
    uint32_t shift = 0;
    while (f->page_size >> shift > 1) shift++;
    x = ptxk__arg_u32(k, s->args, offsetof(ptxk_flash_prefill_args, max_pages));
    x = ptx_mul_wide(k, sequence, x);
    table = ptxk__arg_ptr(k, s->args, offsetof(ptxk_flash_prefill_args, block_table));
    table = ptx_ptr_add(k, table, x, 4);
    pool = ptxk__arg_u32(k, s->args, offsetof(ptxk_flash_prefill_args, pool_pages));
    last = ptx_max(k, s->end, ptx_s32(0));
    last = ptx_add(k, ptx_as(last, PTX_U32), ptx_u32(f->page_size - 1));
    last = ptx_shr(k, last, ptx_u32(shift));
    i = ptx_shr(k, ptx_as(begin, PTX_U32), ptx_u32(shift));
    x = ptx_tid_x(k);
    i = ptx_add(k, i, x);
    i = ptx_for(k, i, last, ptx_u32(32 * f->warps));
    x = ptx_ptr_add(k, table, i, 4);
    x = ptx_ld(k, PTX_U32, ptx_at(x, 0));
    p = ptx_setp(k, PTX_GE, x, pool);
    x = ptx_get(k, bad);
    x = ptx_selp(k, ptx_u32(1), x, p);
    ptx_set(k, bad, x);
    ptx_end(k);
    x = ptx_get(k, bad);
    v[0] = ptx_imm(PTXK__PREFILL_TURN);
    v[1] = ptx_imm(32 * f->warps);
    v[2] = ptx_setp(k, PTX_NE, x, ptx_u32(0));
    return ptx_op3(k, PTX_BAR_RED_OR, 0, v[0], v[1], v[2]);
}

/* What a computing thread knows besides its state. */
typedef struct ptxk__prefill_group {
    ptx_val q;                              /* descriptor of the warpgroup's queries */
    ptx_var score[4 * PTXK__PREFILL_TILES]; /* as wgmma numbers them: those of a tile of 8 keys adjacent */
    ptx_var weight[PTXK__PREFILL_TILES / 2][4];  /* operand A of 16 keys, of the tile before */
    ptx_val operand[PTXK__PREFILL_TILES / 2][4]; /* the same, read before the products' fence */
    ptx_val turn, next;                          /* named barriers: this warpgroup's turn, the other's */
    ptx_val first, kv_len;                       /* of the mask */
    ptx_val lane0, yes;                          /* predicates: lane 0; true */
} ptxk__prefill_group;

static void ptxk__prefill_take_turn(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_group *c) {
    uint32_t i;
    for (i = 0; i < f->keys / 4; i++) c->operand[i / 4][i % 4] = ptx_get(k, c->weight[i / 4][i % 4]);
    ptx_op2(k, PTX_BAR_SYNC, 0, c->turn, ptx_imm(32 * f->warps));
}

static void ptxk__prefill_give_turn(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_group *c) {
    ptx_op2(k, PTX_BAR_ARRIVE, 0, c->next, ptx_imm(32 * f->warps));
}

/* Lets the copying warpgroup overwrite k or v. */
static void ptxk__prefill_release(ptx_kernel *k, const ptxk__prefill_group *c, ptx_val mbarrier) {
    ptx_guard(k, c->lane0);
    ptx_opn(k, PTX_MBARRIER_ARRIVE, 0, PTX_NONE, PTX_NONE, 1, &mbarrier, 0, NULL);
}

/* Issues scores = q k, a step of 16 elements at a time. */
static void ptxk__prefill_issue_scores(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_group *c,
                                       ptx_val keys) {
    ptx_val a, b, half[2];
    uint32_t i;
    keys = ptx_wgmma_descriptor(k, keys, 16, 1024, 128);
    ptx_unpack(k, PTX_U32, 2, c->q, half);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    for (i = 0; i < f->pairs; i++) {
        a = c->q, b = keys;
        if (i) {
            half[0] = ptx_add(k, half[0], ptx_u32(i % 4 ? 2 : f->q.panel - 6));
            a = ptx_pack(k, PTX_U64, 2, half);
            b = ptx_add(k, b, ptx_u64(i / 4 * f->kv.panel + i % 4 * 2));
        }
        ptx_wgmma_f32(k, f->type, f->type, f->keys / 2, c->score, a, b, i ? c->yes : ptx_inv(c->yes));
    }
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}

/* Issues sums += weights v, 16 keys at a time. */
static void ptxk__prefill_issue_values(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                       ptxk__prefill_group *c, ptx_val values) {
    ptx_val v[9];
    uint32_t i, e;
    values = ptx_wgmma_descriptor(k, values, f->kv.panel * 16, 1024, 128);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    for (i = 0; i < f->keys / 16; i++) {
        for (e = 0; e < 4; e++) v[e] = c->operand[i][e];
        v[4] = i ? ptx_add(k, values, ptx_u64(i * 128)) : values;
        v[5] = c->yes;
        v[6] = v[7] = v[8] = ptx_imm(1);
        ptx_wgmma(k, PTX_WGMMA_A_F32, 0, f->type, f->type, f->d / 2, s->sum[0][0], 9, v);
    }
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}

static void ptxk__prefill_read_scores(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                      const ptxk__prefill_group *c) {
    uint32_t i;
    for (i = 0; i < f->keys / 2; i++) s->score[0][i / 4][i % 4] = ptx_get(k, c->score[i]);
}

static void ptxk__prefill_write_scores(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                       const ptxk__prefill_group *c) {
    uint32_t i;
    for (i = 0; i < f->keys / 2; i++) ptx_set(k, c->score[i], s->score[0][i / 4][i % 4]);
}

/* Turns the scores into weights 2^(outer score + offset), offset = lift - outer maximum, and computes the
   factors of the sums. A rounded offset is common to a row's weights and total, and the factor between two
   tiles is that of their offsets. Where outer maximum is beyond 2^10, the offset would be too coarse: then
   the maximum is subtracted first, as mma.sync's form does, and infinite scores become the largest number. */
static void ptxk__prefill_weigh(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                const ptxk__prefill_group *c, ptx_val shrink[2]) {
    ptx_val old[2], most[2], part[4], offset[2], difference[2], x, p;
    ptx_var at[2], by[2];
    uint32_t h, n, e, i;
    ptxk__prefill_read_scores(k, f, s, c);
    for (h = 0; h < 2; h++) {
        old[h] = ptx_get(k, s->most[0][h]);
        for (i = 0; i < 4; i++) part[i] = s->score[0][i / 2][2 * h + i % 2];
        for (n = 2; n < f->keys / 8; n++)
            for (e = 0; e < 2; e++)
                part[n % 2 * 2 + e] = ptx_max(k, part[n % 2 * 2 + e], s->score[0][n][2 * h + e]);
        part[0] = ptx_max(k, part[0], old[h]); /* here a NaN that stands alone goes */
        for (i = 1; i < 4; i++) part[0] = ptx_max(k, part[0], part[i]);
        most[h] = ptxk_warp_reduce(k, PTX_MAX, part[0], 1, 4);
    }
    for (h = 0; h < 2; h++) {
        offset[h] = ptxk__prefill_offset(k, f, most[h], 0);
        difference[h] = ptxk__prefill_offset(k, f, old[h], 0);
        difference[h] = ptx_op2(k, PTX_SUB, PTX_RN, offset[h], difference[h]);
        at[h] = ptx_var_new(k, offset[h]);
        by[h] = ptx_var_new(k, difference[h]);
        ptx_set(k, s->most[0][h], most[h]);
    }
    for (h = 0; h < 2; h++) part[h] = ptx_abs(k, most[h]);
    x = ptx_max(k, part[0], part[1]);
    p = ptx_setp(k, PTX_GE, x, ptx_f32(ptxk__prefill_limit(f)));
    p = ptx_op2(k, PTX_VOTE_ANY, 0, p, ptx_u32(0xffffffffu));
    ptx_if(k, p);
    {
        for (h = 0; h < 2; h++) {
            most[h] = ptx_min(k, most[h], ptx_f32((double)f->most));
            x = ptx_op2(k, PTX_SUB, PTX_RN, old[h], most[h]);
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32((double)f->outer));
            ptx_set(k, by[h], x);
            ptx_set(k, at[h], ptx_f32((double)f->lift));
            ptx_set(k, s->most[0][h], most[h]);
        }
        for (i = 0; i < f->keys / 2; i++) {
            x = ptxk__min_keep_nan(k, s->score[0][i / 4][i % 4], (double)f->most);
            x = ptx_op2(k, PTX_SUB, PTX_RN, x, most[i / 2 % 2]);
            ptx_set(k, c->score[i], x);
        }
    }
    ptx_end(k);
    ptxk__prefill_read_scores(k, f, s, c);
    for (h = 0; h < 2; h++) {
        x = ptx_get(k, by[h]);
        shrink[h] = ptx_op1(k, PTX_EX2, PTX_APPROX | PTX_FTZ, x);
        offset[h] = ptx_get(k, at[h]);
        for (n = 0; n < f->keys / 8; n++) {
            for (e = 0; e < 2; e++) {
                ptx_val *score = &s->score[0][n][2 * h + e];
                *score = ptx_fma(k, *score, ptx_f32((double)f->outer), offset[h]);
                *score = ptx_op1(k, PTX_EX2, PTX_APPROX | PTX_FTZ, *score);
                i = n % 2 * 2 + e;
                part[i] = n < 2 ? *score : ptx_op2(k, PTX_ADD, PTX_RN, part[i], *score);
            }
        }
        part[0] = ptx_op2(k, PTX_ADD, PTX_RN, part[0], part[1]);
        part[2] = ptx_op2(k, PTX_ADD, PTX_RN, part[2], part[3]);
        part[0] = ptx_op2(k, PTX_ADD, PTX_RN, part[0], part[2]);
        x = ptx_get(k, s->total[0][h]);
        x = ptx_fma(k, x, shrink[h], part[0]);
        ptx_set(k, s->total[0][h], x);
    }
}

/* Rounds the weights to operand A of the product with v. */
static void ptxk__prefill_round_weights(ptx_kernel *k, const ptxk__prefill *f, const ptxk__prefill_state *s,
                                        const ptxk__prefill_group *c) {
    uint32_t j, e;
    for (j = 0; j < f->keys / 16; j++) {
        for (e = 0; e < 4; e++) {
            const ptx_val *pair = &s->score[0][2 * j + e / 2][2 * (e & 1)];
            ptx_val x = ptxk__pack_f32(k, f->type, pair[0], pair[1]);
            ptx_set(k, c->weight[j][e], x);
        }
    }
}

/* Multiplies the sums by their factors, unless all of the warp's are 1. */
static void ptxk__prefill_rescale(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                  const ptx_val shrink[2]) {
    ptx_val p, x;
    uint32_t n, e;
    x = ptx_min(k, shrink[0], shrink[1]);
    p = ptx_setp(k, PTX_LT, x, ptx_f32(1));
    p = ptx_op2(k, PTX_VOTE_ANY, 0, p, ptx_u32(0xffffffffu));
    ptx_if(k, p);
    for (n = 0; n < f->columns; n++) {
        for (e = 0; e < 4; e++) {
            x = ptx_get(k, s->sum[0][n][e]);
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, shrink[e / 2]);
            ptx_set(k, s->sum[0][n][e], x);
        }
    }
    ptx_end(k);
}

/* Masks the scores of the tile at s->at where some queries do not see all keys, and advances. */
static void ptxk__prefill_shape_tile(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                     const ptxk__prefill_group *c, const ptx_val safe[2]) {
    ptx_val at, p;
    if (f->negative || f->inner > 0) {
        ptxk__prefill_read_scores(k, f, s, c);
        ptxk__prefill_shape_scores(k, f, s);
        ptxk__prefill_write_scores(k, f, s, c);
    }
    p = ptxk__prefill_is_unmasked(k, f, s, safe);
    at = ptx_get(k, s->at);
    ptx_if(k, ptx_inv(p));
    ptxk__prefill_read_scores(k, f, s, c);
    ptxk__prefill_mask(k, f, s, at, c->first, c->kv_len);
    ptxk__prefill_write_scores(k, f, s, c);
    ptx_end(k);
    at = ptx_add(k, at, ptx_s32((int64_t)f->keys));
    ptx_set(k, s->at, at);
}

/* The tiles of a computing warpgroup. */
static void ptxk__prefill_consume(ptx_kernel *k, const ptxk__prefill *f, ptxk__prefill_state *s,
                                  ptxk__prefill_group *c, ptx_val group, const ptx_val safe[2]) {
    ptxk__prefill_stage g, before;
    ptx_val at, p, shrink[2], tile;
    ptx_var count = ptx_var_new(k, ptx_u32(0));
    at = ptx_get(k, s->at);
    p = ptx_setp(k, PTX_LT, at, s->end);
    ptx_if(k, p);
    {
        tile = ptx_get(k, count);
        g = ptxk__prefill_stage_of(k, f, s, tile);
        ptx_mbarrier_wait(k, ptx_off(s->shared, (int64_t)ptxk__prefill_stages_end(f) + 64), ptx_u32(0));
        ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); /* q comes by cp.async of other threads */
        ptx_mbarrier_wait(k, g.bars, g.parity);
        ptxk__prefill_take_turn(k, f, c);
        ptxk__prefill_issue_scores(k, f, c, g.k);
        ptxk__prefill_give_turn(k, f, c);
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
        ptxk__prefill_release(k, c, ptx_off(g.bars, 16));
        ptxk__prefill_shape_tile(k, f, s, c, safe);
        ptxk__prefill_weigh(k, f, s, c, shrink);
        ptxk__prefill_round_weights(k, f, s, c);
        ptx_loop(k);
        {
            at = ptx_get(k, s->at);
            p = ptx_setp(k, PTX_LT, at, s->end);
            ptx_while(k, p);
            tile = ptx_get(k, count);
            before = ptxk__prefill_stage_of(k, f, s, tile);
            tile = ptx_add(k, tile, ptx_u32(1));
            ptx_set(k, count, tile);
            g = ptxk__prefill_stage_of(k, f, s, tile);
            ptx_mbarrier_wait(k, g.bars, g.parity);
            ptxk__prefill_take_turn(k, f, c);
            ptxk__prefill_issue_scores(k, f, c, g.k);
            ptx_mbarrier_wait(k, ptx_off(before.bars, 8), before.parity);
            ptxk__prefill_issue_values(k, f, s, c, before.v);
            ptxk__prefill_give_turn(k, f, c);
            ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(1));
            ptxk__prefill_release(k, c, ptx_off(g.bars, 16));
            ptxk__prefill_shape_tile(k, f, s, c, safe);
            ptxk__prefill_weigh(k, f, s, c, shrink);
            ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
            ptxk__prefill_release(k, c, ptx_off(before.bars, 24));
            ptxk__prefill_round_weights(k, f, s, c);
            ptxk__prefill_rescale(k, f, s, shrink);
        }
        ptx_end(k);
        tile = ptx_get(k, count);
        g = ptxk__prefill_stage_of(k, f, s, tile);
        ptx_mbarrier_wait(k, ptx_off(g.bars, 8), g.parity);
        ptxk__prefill_take_turn(k, f, c);
        ptxk__prefill_issue_values(k, f, s, c, g.v);
        p = ptx_setp(k, PTX_EQ, group, ptx_u32(0));
        ptx_if(k, p);
        ptxk__prefill_give_turn(k, f, c);
        ptx_end(k);
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
    }
    ptx_end(k);
}

static void ptxk__prefill_emit_panels(ptx_module *m, const char *site, const ptxk__prefill *f,
                                      const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__prefill_state s;
    ptxk__prefill_group c;
    ptxk__prefill_block q;
    ptxk__prefill_source source;
    ptx_val tid, group, p, bad, begin, bars, safe[2], x;
    uint32_t i;
    memset(&s, 0, sizeof s);
    ptx_require_block(k, ptxk__prefill_threads(f), 1, 1); /* another block would wait for ever */
    ptx_max_registers(k, 168);
    s.args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_flash_prefill_args), 8);
    source.map[0] = ptx_param_map(k, "k_map");
    source.map[1] = ptx_param_map(k, "v_map");
    s.shared = ptx_shared_dynamic_aligned(k, 1024);
    tid = ptx_tid_x(k);
    ptxk__prefill_locate_block(k, f, s.args, &q);
    p = ptx_setp(k, PTX_EQ, q.rows, ptx_u32(0));
    ptx_guard(k, p);
    ptx_ret(k);
    q.kv_len = ptxk__prefill_kv_len(k, f, s.args, q.sequence);
    begin = ptxk__prefill_range(k, f, &q, &s, safe);
    if (f->page_size) begin = ptx_mov(k, begin);
    bars = ptx_off(s.shared, (int64_t)ptxk__prefill_stages_end(f));
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_if(k, p);
    for (i = 0; i < 9; i++) /* the last: of q */
        ptx_mbarrier_init(k, ptx_off(bars, 8 * (int64_t)i), ptx_imm(i == 8 ? 128 : i % 4 < 2 ? 4 : f->warps));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    p = ptx_setp(k, PTX_GE, tid, ptx_u32(32 * f->warps));
    ptx_if(k, p);
    {
        ptx_op1(k, PTX_SETMAXNREG_DEC, 0, ptx_imm(40));
        p = ptx_setp(k, PTX_LT, begin, s.end); /* without keys the place of q takes out at once */
        ptx_if(k, p);
        ptxk__prefill_produce(k, f, &s, &q, &source, tid, begin);
        ptx_end(k);
    }
    ptx_else(k);
    {
        ptx_op1(k, PTX_SETMAXNREG_INC, 0, ptx_imm(232));
        group = ptx_shr(k, tid, ptx_u32(7));
        group = ptx_warpgroup_uniform(k, group);
        bad = ptx_setp(k, PTX_LT, q.kv_len, ptx_s32(0));
        if (f->page_size) {
            p = ptxk__prefill_bad_page(k, f, &s, q.sequence, begin);
            bad = ptx_or(k, bad, p);
        }
        ptxk__prefill_start_sums(k, f, &s, bad);
        for (i = 0; i < f->keys / 2; i++) c.score[i] = ptx_var_new(k, ptx_f32(0));
        for (i = 0; i < f->keys / 4; i++) c.weight[i / 4][i % 4] = ptx_var_new(k, ptx_b32(0));
        s.at = ptx_var_new(k, begin);
        c.turn = ptx_add(k, group, ptx_u32(PTXK__PREFILL_TURN));
        c.next = ptx_sub(k, ptx_u32(2 * PTXK__PREFILL_TURN + 1), c.turn);
        ptxk__prefill_mask_limits(k, f, &s, &c.first, &c.kv_len);
        x = ptx_laneid(k);
        c.lane0 = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
        x = ptx_mov(k, ptx_u32(1));
        c.yes = ptx_setp(k, PTX_NE, x, ptx_u32(0));
        c.q = ptx_ptr_add(k, s.shared, group, ptxk__prefill_panel_bytes(f, 64));
        c.q = ptx_wgmma_descriptor(k, c.q, 16, 1024, 128);
        p = ptx_setp(k, PTX_NE, group, ptx_u32(0));
        ptx_if(k, p);
        ptxk__prefill_give_turn(k, f, &c);
        ptx_end(k);
        ptxk__prefill_consume(k, f, &s, &c, group, safe);
        ptxk__prefill_output(k, f, &s);
    }
    ptx_end(k);
    ptx_ret(k);
}

/* -- flash_prefill: the entry -- */

PTXGEN_API ptx_code ptxk_flash_prefill_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__prefill f;
    ptxk_message why;
    char name[160], more[60] = "";
    const ptxk_flash_prefill_desc *d = (const ptxk_flash_prefill_desc *)desc;
    ptx_code code = ptxk__prefill_form(d, m ? ptx_module_target(m) : 0, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    if (d->scale < 0 || d->scale > 0 || d->soft_cap > 0) {
        uint32_t bits[2];
        memcpy(&bits[0], &d->scale, 4);
        memcpy(&bits[1], &d->soft_cap, 4);
        (void)snprintf(more, sizeof more, "_s%08x_c%08x", bits[0], bits[1]);
    }
    if (d->page_size) (void)snprintf(more + strlen(more), 20, "_page%u", d->page_size);
    (void)snprintf(name, sizeof name, "flash_prefill_h%u_kv%u_d%u_%s_%s_f%u_w%u_p%u%s", f.heads, f.kv_heads,
                   f.d, ptx_type_name(f.type), ptx_type_name(f.out), f.flags, f.window, f.precision, more);
    if (f.panels)
        ptxk__prefill_emit_panels(m, site, &f, name);
    else
        ptxk__prefill_emit(m, site, &f, name);
    return ptx_get_error(m)->code;
}

/* ======== gemv ========================================================================================== */

/* -- gemv: limits, plan, arguments -- */

#define PTXK__GEMV_WARPS 8u
#define PTXK__GEMV_THREADS (32u * PTXK__GEMV_WARPS)
#define PTXK__GEMV_SHARED 49152u /* what every device gives without opt-in */
#define PTXK__GEMV_RING 4928u    /* most bytes of a warp's ring */
#define PTXK__GEMV_X 2048u       /* values of x that a block of the first launch quantises */
#define PTXK__GEMV_K_MAX 0x4000000u
#define PTXK__GEMV_HEAD 256u /* bytes before the sums of squares in the workspace: u32 slices */
#define PTXK__GEMV_MATRICES 3u

/* Everything that a gemv description determines. */
typedef struct ptxk__gemv {
    ptxk__rows rows[PTXK__GEMV_MATRICES];
    uint32_t matrices, outputs; /* SwiGLU makes one output of two matrices */
    ptx_type output;
    uint32_t columns, planes, flags;
    uint32_t k_step;  /* k is a multiple of this */
    uint32_t record;  /* bytes of a record of x, */
    uint32_t values;  /* values of a record of x */
    uint32_t granule; /* records in the longest step: slices of K are whole granules */
    uint32_t ring;    /* shared bytes before x: the rings of all warps */
    uint32_t results; /* static shared bytes of a tile's results, one of two buffers */
} ptxk__gemv;

/* Bytes of dynamic shared memory. */
static uint32_t ptxk__gemv_shared_bytes(const ptxk__gemv *f) {
    return PTXK__GEMV_SHARED - 32 - 2 * f->results;
}

static ptx_code ptxk__gemv_form(const ptxk_gemv_desc *d, ptxk__gemv *f, ptxk_message *why) {
    static const char *const names[PTXK__GEMV_MATRICES] = {"format", "second", "third"};
    uint32_t format[PTXK__GEMV_MATRICES], i, room, most = 0;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the description is NULL");
    memset(f, 0, sizeof *f);
    if (!d->columns || d->columns > 8)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: columns is %u, must be 1 to 8", d->columns);
    if (d->precision != PTXK_GEMV_EXACT && d->precision != PTXK_GEMV_FAST)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: precision is %u, must be PTXK_GEMV_EXACT or PTXK_GEMV_FAST", d->precision);
    if (d->output_type != PTX_F32 && d->output_type != PTX_F16)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: output_type is %s, must be PTX_F32 or PTX_F16",
                            ptxk__value_name_of(d->output_type).s);
    if (d->flags > 31)
        return ptxk__refuse(
            why, PTX_E_DESC,
            "gemv: flags is %u, must be of PTXK_GEMV_NORM, _GAMMA, _RESIDUAL, _BIAS and _SWIGLU", d->flags);
    f->output = (ptx_type)d->output_type;
    f->columns = d->columns;
    f->flags = d->flags;
    format[0] = d->format;
    format[1] = d->second;
    format[2] = d->third;
    f->matrices = format[2] ? 3 : format[1] || d->flags & PTXK_GEMV_SWIGLU ? 2 : 1;
    f->outputs = d->flags & PTXK_GEMV_SWIGLU ? 1 : f->matrices;
    if (d->flags & PTXK_GEMV_SWIGLU && f->matrices > 2)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: SwiGLU (PTXK_GEMV_SWIGLU) takes two matrices, there are 3 (third is %s)",
                            ptxk__value_name_of(format[2]).s);
    if (d->flags & PTXK_GEMV_RESIDUAL && f->outputs > 1)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: a residual (PTXK_GEMV_RESIDUAL) goes with one output, there are %u",
                            f->outputs);
    for (i = 0; i < f->matrices; i++) {
        const ptxk__block *b = ptxk__block_of(format[i]);
        if (!b) return ptxk__refuse_format("gemv", names[i], format[i], why);
        f->rows[i].block = b;
        if ((b->kind == PTXK__NUMBERS) != (f->rows[0].block->kind == PTXK__NUMBERS))
            return ptxk__refuse(why, PTX_E_DESC,
                                "gemv: %s is %s and format is %s: both must be quantised, or both plain",
                                names[i], ptxk_format_name(format[i]), ptxk_format_name(format[0]));
        if (ptxk__block_step(b) > f->k_step) f->k_step = ptxk__block_step(b);
    }
    f->planes = f->rows[0].block->kind == PTXK__NUMBERS ? 0 : d->precision == PTXK_GEMV_EXACT ? 2 : 1;
    f->record = ptxk__x_record(f->planes);
    f->values = ptxk__x_values(f->planes);
    f->results =
        4 * PTXK__GEMV_WARPS * (f->columns == 1 ? 4 : 2) * f->columns * (d->flags & PTXK_GEMV_SWIGLU ? 2 : 1);
    room = (ptxk__gemv_shared_bytes(f) - 2 * f->record * f->columns) / PTXK__GEMV_WARPS / 16 * 16;
    if (f->columns > 2)
        room += f->record * f->columns / PTXK__GEMV_WARPS / 16 * 16; /* granules are small then */
    if (room > PTXK__GEMV_RING) room = PTXK__GEMV_RING;
    for (i = 0; i < f->matrices; i++)
        if (!ptxk__rows_form(&f->rows[i], f->rows[i].block, f->columns, f->planes, 0, room))
            return ptxk__refuse(why, PTX_E_DESC, "gemv: %u columns do not fit", f->columns);
    for (i = 0; i < f->matrices; i++)
        if (!most || f->rows[i].rows < most) most = f->rows[i].rows;
    for (i = 0; i < f->matrices; i++) {
        if (d->flags & PTXK_GEMV_SWIGLU) /* a warp takes the same rows of both */
            (void)ptxk__rows_form(&f->rows[i], f->rows[i].block, f->columns, f->planes, most, room);
        if (f->rows[i].unit / f->values > f->granule) f->granule = f->rows[i].unit / f->values;
        if (f->rows[i].ring * PTXK__GEMV_WARPS > f->ring) f->ring = f->rows[i].ring * PTXK__GEMV_WARPS;
    }
    return PTX_E_NONE;
}

static int ptxk__gemv_k_fits(const ptxk__gemv *f, uint32_t k) {
    return k && k % f->k_step == 0 && k <= PTXK__GEMV_K_MAX;
}

/* Records of a column of x: whole steps of every format. */
static uint32_t ptxk__gemv_records(const ptxk__gemv *f, uint32_t k) {
    return f->planes ? 2 * ptxk__ceil_div(k, 2048) : ptxk__ceil_div(k, 256);
}

/* The workspace: sums of squares at PTXK__GEMV_HEAD, then records of x, then partial results, whose offset
   this returns. ptxk__gemv_x_at and ptxk__gemv_parts_at compute the same in the kernels. */
static uint64_t ptxk__gemv_parts(const ptxk__gemv *f, uint32_t k) {
    uint64_t sums = ptxk__up_256((uint64_t)f->columns * ptxk__ceil_div(k, PTXK__GEMV_X) * 4);
    return PTXK__GEMV_HEAD + sums + ptxk__up_256((uint64_t)f->columns * ptxk__gemv_records(f, k) * f->record);
}

static uint32_t ptxk__gemv_n(const ptxk__gemv *f, const ptxk_gemv_shape *shape, uint32_t i) {
    if (!i || f->flags & PTXK_GEMV_SWIGLU) return shape->n;
    return i == 1 ? shape->second_n : shape->third_n;
}

static uint64_t ptxk__gemv_matrix_bytes(const ptxk__gemv *f, uint32_t i, uint32_t n, uint32_t k) {
    return ptxk_row_bytes(f->rows[i].block->id, k) * n;
}

/* The number of tiles. A tile is the rows of a block's warps, f->rows each; a SwiGLU pair counts once. */
static uint32_t ptxk__gemv_tiles(const ptxk__gemv *f, const ptxk_gemv_shape *shape) {
    uint32_t i, tiles = 0;
    for (i = 0; i < f->outputs; i++)
        tiles += ptxk__ceil_div(ptxk__gemv_n(f, shape, i), PTXK__GEMV_WARPS * f->rows[i].rows);
    return tiles;
}

/* Chooses the slices of K and the blocks for each slice. Minimises the busiest block's bytes times the
   blocks, plus the overhead of slicing: x for each block, and a partial result written and read for each
   slice. Where the matrix is so large that memory bandwidth bounds it (16 MB), the overhead must be below a
   26th of it: the total traffic then stays within 5 % of the lower bound. */
static void ptxk__gemv_split(const ptxk__gemv *f, const ptxk_gemv_shape *shape, uint32_t *slices,
                             uint32_t *groups) {
    uint32_t units = ptxk__ceil_div(shape->k, f->granule * f->values), s, i;
    uint32_t tiles = ptxk__gemv_tiles(f, shape);
    uint32_t unit_bytes = f->granule * f->record * f->columns;
    uint32_t fits = (ptxk__gemv_shared_bytes(f) - f->ring) / unit_bytes;
    uint64_t blocks = 2 * (uint64_t)shape->sm_count, best = UINT64_MAX, matrix = 0, tile_unit = 0,
             outputs = 0;
    for (i = 0; i < f->matrices; i++) {
        uint64_t bytes = (uint64_t)PTXK__GEMV_WARPS * f->rows[i].rows * f->granule * f->values
                         / f->rows[i].block->values * f->rows[i].block->bytes;
        if (f->outputs < f->matrices)
            tile_unit += bytes;
        else if (bytes > tile_unit)
            tile_unit = bytes;
        matrix += ptxk__gemv_matrix_bytes(f, i, ptxk__gemv_n(f, shape, i), shape->k);
        outputs += (uint64_t)ptxk__gemv_n(f, shape, i) * f->columns;
    }
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
        weights = blocks * each * (per + 2) * tile_unit; /* a tile costs some 2 steps in addition */
        if ((uint64_t)s * most > blocks) weights = weights / blocks * s * most;
        activations = (uint64_t)s * most * per * unit_bytes;
        parts = s > 1 ? (uint64_t)s * outputs * 8 : 0;
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
                                   ptxk_message *why) {
    ptxk__gemv f;
    ptx_launch *l;
    uint32_t slices = 0, groups = 0, units, bytes, i;
    uint64_t rows = 0, results = 0;
    ptx_code code = ptxk__gemv_form(desc, &f, why);
    if (plan) memset(plan, 0, sizeof *plan);
    if (code) return code;
    if (!shape || !plan)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the %s is NULL", plan ? "shape" : "plan");
    if (!ptxk__gemv_k_fits(&f, shape->k))
        return ptxk__refuse(why, PTX_E_DESC, "gemv: k is %u, must be a multiple of %u from %u to %u",
                            shape->k, f.k_step, f.k_step, PTXK__GEMV_K_MAX);
    if (!shape->sm_count || shape->sm_count > 65536)
        return ptxk__refuse(why, PTX_E_DESC, "gemv: sm_count is %u, must be 1 to 65536", shape->sm_count);
    for (i = 0; i < f.matrices; i++) {
        uint32_t n = ptxk__gemv_n(&f, shape, i);
        if (n > PTXK__LEN_MAX && !i)
            return ptxk__refuse(why, PTX_E_DESC, "gemv: n is %u, must be at most 2147483647", n);
        if (!n && f.matrices > 1)
            return ptxk__refuse(why, PTX_E_DESC,
                                "gemv: %s is 0, must be at least 1 where there are %u matrices",
                                i == 2 ? "third_n"
                                : i    ? "second_n"
                                       : "n",
                                f.matrices);
        rows += n;
        if (i < f.outputs) results += (uint64_t)n * f.columns;
    }
    if (rows > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemv: n, second_n and third_n are %llu together, must be at most 2147483647",
                            (unsigned long long)rows);
    plan->args_bytes = (uint32_t)sizeof(ptxk_gemv_args);
    if (!shape->n) return PTX_E_NONE;
    ptxk__gemv_split(&f, shape, &slices, &groups);
    units = ptxk__ceil_div(ptxk__ceil_div(shape->k, f.granule * f.values), slices);
    l = &plan->launch[plan->launches++];
    l->entry = 0;
    l->grid[0] = ptxk__ceil_div(shape->k, PTXK__GEMV_X);
    l->grid[1] = f.columns;
    l = &plan->launch[plan->launches++];
    l->entry = 1;
    l->grid[0] = groups;
    l->grid[1] = slices;
    l->shared_bytes = f.ring + units * f.granule * f.record * f.columns;
    plan->workspace_bytes = ptxk__gemv_parts(&f, shape->k);
    if (slices > 1) {
        l = &plan->launch[plan->launches++];
        l->entry = 2;
        l->grid[0] = ptxk__ceil_div((uint32_t)(results / f.columns), PTXK__GEMV_THREADS);
        l->grid[1] = f.columns;
        plan->workspace_bytes += slices * rows * f.columns * 4;
    }
    for (l = plan->launch; l < plan->launch + plan->launches; l++) {
        l->grid[2] = l->block[1] = l->block[2] = 1;
        l->block[0] = PTXK__GEMV_THREADS;
    }
    bytes = f.output == PTX_F16 ? 2 : 4;
    plan->min_bytes = (uint64_t)shape->k * f.columns * 4 + results * bytes;
    for (i = 0; i < f.matrices; i++)
        plan->min_bytes += ptxk__gemv_matrix_bytes(&f, i, ptxk__gemv_n(&f, shape, i), shape->k);
    if (f.flags & PTXK_GEMV_GAMMA) plan->min_bytes += (uint64_t)shape->k * 4;
    if (f.flags & PTXK_GEMV_RESIDUAL) plan->min_bytes += results * bytes;
    if (f.flags & PTXK_GEMV_BIAS) plan->min_bytes += rows * 4;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_gemv_check(const ptxk_gemv_desc *desc, const ptxk_gemv_args *args,
                                    ptxk_message *why) {
    static const char *const names[PTXK__GEMV_MATRICES][3] = {
        {"weights", "bias", "y"},
        {"more[0].weights", "more[0].bias", "more[0].y"},
        {"more[1].weights", "more[1].bias", "more[1].y"}};
    static const char *const op = "gemv", *const reserved[] = {"reserved", "more[0].reserved",
                                                               "more[1].reserved"};
    ptxk__gemv f;
    ptxk__span s[4 + 3 * PTXK__GEMV_MATRICES];
    uint64_t bytes, rows = 0;
    uint32_t i, count = 0;
    ptx_code code = ptxk__gemv_form(desc, &f, why);
    if (code) return code;
    if (!args) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: the arguments are NULL");
    if (!ptxk__gemv_k_fits(&f, args->k))
        return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: k is %u, must be a multiple of %u from %u to %u",
                            args->k, f.k_step, f.k_step, PTXK__GEMV_K_MAX);
    if ((code = ptxk__check_eps(op, args->eps, why)) != PTX_E_NONE) return code;
    bytes = f.output == PTX_F16 ? 2 : 4;
    for (i = 0; i < f.matrices; i++) {
        uint32_t n = i ? args->more[i - 1].n : args->n;
        code = ptxk__check_zero(op, reserved[i], i ? args->more[i - 1].reserved : args->reserved, why);
        if (code) return code;
        rows += n;
        if (rows > PTXK__LEN_MAX)
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "gemv: n is %u, must be at most 2147483647, all together", n);
        if (i && f.flags & PTXK_GEMV_SWIGLU && n != args->n)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "gemv: more[0].n is %u, must be n, %u", n, args->n);
        s[count++] = ptxk__span_of(names[i][0], i ? args->more[i - 1].weights : args->weights,
                                   ptxk__gemv_matrix_bytes(&f, i, n, args->k), 16, 1);
        s[count++] = ptxk__span_of(names[i][1], i ? args->more[i - 1].bias : args->bias, (uint64_t)n * 4, 16,
                                   (f.flags & PTXK_GEMV_BIAS) != 0);
        s[count] = ptxk__span_of(names[i][2], i ? args->more[i - 1].y : args->y,
                                 (uint64_t)n * f.columns * bytes, 16, i < f.outputs);
        s[count] = ptxk__span_written(s[count], i == 0);
        count++;
    }
    s[count++] = ptxk__span_of("x", args->x, (uint64_t)args->k * f.columns * 4, 16, 1);
    s[count++] =
        ptxk__span_of("gamma", args->gamma, (uint64_t)args->k * 4, 16, (f.flags & PTXK_GEMV_GAMMA) != 0);
    s[count] = ptxk__span_of("residual", args->residual, (uint64_t)args->n * f.columns * bytes, 16,
                             (f.flags & PTXK_GEMV_RESIDUAL) != 0);
    s[count++].same = 1;
    s[count] = ptxk__span_of("workspace", args->workspace, ptxk__gemv_parts(&f, args->k), 256, 1);
    s[count] = ptxk__span_written(s[count], 0);
    return ptxk__check_spans(op, s, count + 1, why);
}

/* -- gemv: the workspace, x -- */

static ptx_val ptxk__gemv_sums_at(ptx_kernel *k, ptx_val args, ptx_val column, ptx_val *count) {
    ptx_val at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace)), n, row;
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    *count = ptxk_div_up(k, n, ptx_u32(PTXK__GEMV_X));
    row = ptx_mul(k, *count, column);
    at = ptx_ptr_add(k, at, row, 4);
    return ptx_ptr_add(k, at, ptx_u32(PTXK__GEMV_HEAD), 1);
}

/* The number of records of a column. */
static ptx_val ptxk__gemv_count_records(ptx_kernel *k, const ptxk__gemv *f, ptx_val args) {
    ptx_val n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    if (!f->planes) return ptxk_div_up(k, n, ptx_u32(256));
    n = ptxk_div_up(k, n, ptx_u32(2048));
    return ptx_add(k, n, n);
}

static ptx_val ptxk__gemv_x_at(ptx_kernel *k, const ptxk__gemv *f, ptx_val args) {
    ptx_val at, n, end;
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace));
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    n = ptxk_div_up(k, n, ptx_u32(PTXK__GEMV_X));
    end = ptx_mad(k, n, ptx_u32(4 * f->columns), ptx_u32(PTXK__GEMV_HEAD + 255));
    end = ptx_and(k, end, ptx_u32(0xffffff00u));
    return ptx_ptr_add(k, at, end, 1);
}

static ptx_val ptxk__gemv_parts_at(ptx_kernel *k, const ptxk__gemv *f, ptx_val args) {
    ptx_val at, bytes;
    at = ptxk__gemv_x_at(k, f, args);
    bytes = ptxk__gemv_count_records(k, f, args);
    bytes = ptx_mul_wide(k, bytes, ptx_u32(f->record * f->columns));
    bytes = ptx_add(k, bytes, ptx_u64(255));
    bytes = ptx_and(k, bytes, ptx_u64(~(uint64_t)255));
    return ptx_ptr_add(k, at, bytes, 1);
}

/* The first launch quantises x: a warp takes 256 values, a lane 8 of them. */
static void ptxk__gemv_quantise(ptx_module *m, const char *site, const ptxk__gemv *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptx_val args, scratch, tid, lane, column, block, records, n, inside, here, x[8], record, p, at, squares;
    ptx_val count, other;
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
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, k));
    other = ptx_shl(k, lane, ptx_u32(3));
    other = ptx_mad(k, block, ptx_u32(256), other);
    inside = ptx_setp(k, PTX_LT, other, n);

    here = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, x));
    other = ptx_cvt(k, PTX_U64, other);
    at = ptx_mad_wide(k, column, n, other);
    here = ptx_ptr_add(k, here, at, 4);
    for (e = 0; e < 8; e += 4)
        ptx_ld_vec_if(k, inside, PTX_F32, 4, ptx_with(ptx_at(here, (int64_t)(4 * e)), PTX_NC), ptx_f32(0),
                      x + e);
    if (f->flags & PTXK_GEMV_NORM) {
        squares = ptx_mul(k, x[0], x[0]);
        squares = ptxk_dot(k, 7, x + 1, x + 1, squares);
        squares = ptxk_block_reduce(k, PTX_ADD, squares, PTXK__GEMV_WARPS, scratch);
        at = ptxk__gemv_sums_at(k, args, column, &count);
        here = ptx_ctaid_x(k);
        at = ptx_ptr_add(k, at, here, 4);
        p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st(k, PTX_F32, ptx_at(at, 0), squares);
    }
    if (f->flags & PTXK_GEMV_GAMMA) {
        ptx_val gamma[8];
        here = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, gamma));
        here = ptx_ptr_add(k, here, other, 4);
        for (e = 0; e < 8; e += 4)
            ptx_ld_vec_if(k, inside, PTX_F32, 4, ptx_with(ptx_at(here, (int64_t)(4 * e)), PTX_NC), ptx_f32(0),
                          gamma + e);
        for (e = 0; e < 8; e++) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], gamma[e]);
    }
    records = ptxk__gemv_count_records(k, f, args);
    at = ptx_shr(k, block, ptx_u32(f->planes ? 2 : 0));
    p = ptx_setp(k, PTX_LT, at, records);
    block = ptx_and(k, block, ptx_u32(3));
    record = ptxk__gemv_x_at(k, f, args);
    other = ptx_cvt(k, PTX_U64, at);
    at = ptx_mad_wide(k, column, records, other);
    record = ptx_ptr_add(k, record, at, f->record);
    p = ptx_warp_uniform(k, p);
    ptx_if(k, p);
    ptxk__store_x(k, f->planes, lane, block, record, x);
    ptx_end(k);
    ptx_ret(k);
}

/* -- gemv: rows -- */

/* 1 / sqrt(mean of squares + eps) of a column, in every lane of the warp. */
static ptx_val ptxk__gemv_rms(ptx_kernel *k, ptx_val args, ptx_val lane, ptx_val column) {
    ptx_val at, count, i, here, x, sum, n;
    ptx_var total = ptx_var_new(k, ptx_f32(0));
    at = ptxk__gemv_sums_at(k, args, column, &count);
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
    return ptx_fma(k, sum, ptx_f32(0), x); /* an infinite sum gives NaN instead of 0 */
}

/* The offset in the arguments of a field of matrix i. */
#define PTXK__GEMV_FIELD(i, field)                                                                           \
    ((i) ? offsetof(ptxk_gemv_args, more) + ((i)-1) * sizeof(ptxk_gemv_more)                                 \
               + offsetof(ptxk_gemv_more, field)                                                             \
         : offsetof(ptxk_gemv_args, field))

/* Completes the dot product of row `row` of matrix i: times the norm's factor, plus the bias. */
static ptx_val ptxk__gemv_complete(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, uint32_t i, ptx_val row,
                                   ptx_val value, ptx_val rms) {
    ptx_val at;
    if (f->flags & PTXK_GEMV_NORM) value = ptx_op2(k, PTX_MUL, PTX_RN, value, rms);
    if (!(f->flags & PTXK_GEMV_BIAS)) return value;
    at = ptxk__arg_ptr(k, args, PTXK__GEMV_FIELD(i, bias));
    at = ptx_ptr_add(k, at, row, 4);
    at = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    return ptx_op2(k, PTX_ADD, PTX_RN, value, at);
}

/* Writes output i, y[column, row] = value (+ residual); of SwiGLU silu(value[0]) value[1]. */
static void ptxk__gemv_finish(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, uint32_t i, ptx_val column,
                              ptx_val row, const ptx_val *values, ptx_val rms) {
    uint32_t bytes = f->output == PTX_F16 ? 2 : 4;
    ptx_val at, old, value, other, index, n;
    value = ptxk__gemv_complete(k, f, args, i, row, values[0], rms);
    if (f->outputs < f->matrices) {
        other = ptxk__gemv_complete(k, f, args, 1, row, values[1], rms);
        value = ptxk__silu(k, value);
        value = ptx_op2(k, PTX_MUL, PTX_RN, value, other);
    }
    n = ptxk__arg_u32(k, args, PTXK__GEMV_FIELD(i, n));
    index = ptx_cvt(k, PTX_U64, row);
    index = ptx_mad_wide(k, n, column, index);
    if (f->flags & PTXK_GEMV_RESIDUAL) {
        at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, residual));
        at = ptx_ptr_add(k, at, index, bytes);
        ptxk_load_f32(k, f->output, 1, ptx_at(at, 0), &old);
        value = ptx_add(k, value, old);
    }
    at = ptxk__arg_ptr(k, args, PTXK__GEMV_FIELD(i, y));
    at = ptx_ptr_add(k, at, index, bytes);
    ptxk_store_f32(k, f->output, 1, ptx_at(at, 0), &value);
}

/* Copies this block's slice of x, all columns, to shared memory: [column][record]. */
static void ptxk__gemv_copy_x(ptx_kernel *k, const ptxk__gemv *f, ptx_val args, ptx_val first, ptx_val count,
                              ptx_val shared) {
    ptx_val from, to, at, i, tid, all, records, words[4];
    uint32_t c;
    tid = ptx_tid_x(k);
    records = ptxk__gemv_count_records(k, f, args);
    from = ptxk__gemv_x_at(k, f, args);
    from = ptx_ptr_add(k, from, first, f->record);
    all = ptx_mul(k, count, ptx_u32(f->record / 16));
    to = shared;
    for (c = 0; c < f->columns; c++) {
        i = ptx_for(k, tid, all, ptx_u32(PTXK__GEMV_THREADS));
        {
            at = ptx_ptr_add(k, from, i, 16);
            ptxk_load16(k, NULL, ptx_at(at, 0), words);
            at = ptx_ptr_add(k, to, i, 16);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(at, 0), words);
        }
        ptx_end(k);
        if (c + 1 == f->columns) break;
        from = ptx_ptr_add(k, from, records, f->record);
        to = ptx_ptr_add(k, to, count, f->record);
    }
}

typedef struct ptxk__gemv_state { /* state of a block of the second launch */
    ptx_val args, lane, warp, tid, ring, x, stride, norms, out, parts, slice, one;
    ptx_val skip, count;  /* records before this slice and in it */
    ptx_val all;          /* u64: rows of all matrices, times columns */
    ptx_val tiles_before; /* tiles of the outputs before this one */
    ptx_val rows_before;  /* rows of the matrices before this one */
    ptx_var turn;         /* index of the buffer with the tile's results */
} ptxk__gemv_state;

/* For matrix i in this slice: the bytes of a row, of its part in the slice, and where that begins. */
static ptx_val ptxk__gemv_slice_part(ptx_kernel *k, const ptxk__gemv *f, const ptxk__gemv_state *s,
                                     uint32_t i, ptx_val *row_bytes, ptx_val *skip) {
    const ptxk__block *b = f->rows[i].block;
    uint32_t record = f->values / b->values * b->bytes;
    ptx_val n, part, most;
    n = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemv_args, k));
    n = ptx_div(k, n, ptx_u32(b->values));
    *row_bytes = ptx_mul(k, n, ptx_u32(b->bytes));
    part = ptx_mul(k, s->skip, ptx_u32(record));
    *skip = ptx_cvt(k, PTX_U64, part);
    part = ptx_sub(k, *row_bytes, part);
    most = ptx_mul(k, s->count, ptx_u32(record));
    return ptx_min(k, part, most);
}

/* Runs through the tiles of output i, handed out in strides; the tiles of all outputs are numbered
   consecutively. */
static void ptxk__gemv_tile_loop(ptx_kernel *k, const ptxk__gemv *f, ptxk__gemv_state *s, uint32_t i) {
    uint32_t pair = f->outputs < f->matrices ? 2 : 1, rows = f->rows[i].rows, c, r, m;
    uint32_t tile_rows = PTXK__GEMV_WARPS * rows;
    ptxk__rows_state state[2];
    ptx_val n, tiles, tile, blocks, weights[2], row_bytes[2], skip[2], bytes[2], row, here, at, p, inside,
        value;
    ptx_val end, index, column, top, values[2], rms, sum[8][PTXK__ROWS_MAX];
    memset(state, 0, sizeof state);
    n = ptxk__arg_u32(k, s->args, PTXK__GEMV_FIELD(i, n));
    for (m = 0; m < pair; m++) {
        const ptxk__rows *form = &f->rows[i + m];
        at = ptx_mul(k, s->warp, ptx_u32(f->ring / PTXK__GEMV_WARPS)); /* the same place for all formats */
        at = ptx_ptr_add(k, s->ring, at, 1);
        ptxk__rows_setup(k, form, &state[m], s->lane, at);
        weights[m] = ptxk__arg_ptr(k, s->args, PTXK__GEMV_FIELD(i + m, weights));
        bytes[m] = ptxk__gemv_slice_part(k, f, s, i + m, &row_bytes[m], &skip[m]);
    }
    tiles = ptxk_div_up(k, n, ptx_u32(tile_rows));
    blocks = ptx_sreg(k, PTX_NCTAID_X);
    tile = ptx_ctaid_x(k);
    if (i) { /* (block - tiles before) mod blocks */
        here = ptx_rem(k, s->tiles_before, blocks);
        here = ptx_sub(k, blocks, here);
        tile = ptx_add(k, tile, here);
        tile = ptx_rem(k, tile, blocks);
    }
    tile = ptx_for(k, tile, tiles, blocks);
    {
        top = ptx_mul(k, tile, ptx_u32(tile_rows));
        row = ptx_mad(k, s->warp, ptx_u32(rows), top);
        end = ptx_get(k, s->turn);
        at = ptx_ptr_add(k, s->out, end, 1);
        ptx_comment(k, "the tile's results through shared memory: whole sectors, one store for each column");
        here = ptx_mad(k, s->warp, ptx_u32(rows), s->lane);
        here = ptx_ptr_add(k, at, here, 4);
        inside = ptx_setp(k, PTX_LT, s->lane, ptx_u32(rows));
        for (m = 0; m < pair; m++) {
            ptxk__rows_start(k, &f->rows[i + m], &state[m], weights[m], row_bytes[m], row, n, skip[m],
                             bytes[m]);
            ptxk__rows_finish(k, &f->rows[i + m], &state[m], s->x, s->stride, sum);
            for (c = 0; c < f->columns; c++) {
                value = sum[c][0];
                for (r = 1; r < rows; r++) {
                    p = ptx_setp(k, PTX_EQ, s->lane, ptx_u32(r));
                    value = ptx_selp(k, sum[c][r], value, p);
                }
                ptx_guard(k, inside);
                ptx_st(k, PTX_F32, ptx_at(here, (int64_t)(4 * tile_rows * (f->columns * m + c))), value);
            }
        }
        ptx_bar_sync(k, ptx_imm(0)); /* the next tile uses the other buffer */
        end = ptx_xor(k, end, ptx_u32(f->results));
        ptx_set(k, s->turn, end);
        row = ptx_rem(k, s->tid, ptx_u32(tile_rows));
        column = ptx_div(k, s->tid, ptx_u32(tile_rows));
        row = ptx_add(k, row, top);
        inside = ptx_setp(k, PTX_LT, column, ptx_u32(f->columns));
        p = ptx_setp(k, PTX_LT, row, n);
        inside = ptx_and(k, inside, p);
        ptx_if(k, inside);
        {
            at = ptx_ptr_add(k, at, s->tid, 4);
            for (m = 0; m < pair; m++)
                values[m] = ptx_ld(k, PTX_F32, ptx_at(at, (int64_t)(4 * tile_rows * f->columns * m)));
            ptx_if(k, s->one);
            rms = ptx_f32(1);
            if (f->flags & PTXK_GEMV_NORM) {
                here = ptx_ptr_add(k, s->norms, column, 4);
                rms = ptx_ld(k, PTX_F32, ptx_at(here, 0));
            }
            ptxk__gemv_finish(k, f, s->args, i, column, row, values, rms);
            ptx_else(k);
            index = ptx_cvt(k, PTX_U64, s->slice);
            here = ptx_cvt(k, PTX_U64, column);
            index = ptx_mad(k, index, ptx_u64(f->columns), here);
            index = ptx_mul(k, index, s->all);
            row = ptx_add(k, row, s->rows_before);
            here = ptx_cvt(k, PTX_U64, row);
            index = ptx_add(k, index, here);
            at = ptx_ptr_add(k, s->parts, index, 4);
            for (m = 0; m < pair; m++) {
                if (m) at = ptx_ptr_add(k, at, n, 4);
                ptx_st(k, PTX_F32, ptx_at(at, 0), values[m]);
            }
            ptx_end(k);
        }
        ptx_end(k);
    }
    ptx_end(k);
    s->tiles_before = i ? ptx_add(k, s->tiles_before, tiles) : tiles;
    s->rows_before = i ? ptx_add(k, s->rows_before, n) : n;
}

/* The number of rows of all matrices. */
static ptx_val ptxk__gemv_all_rows(ptx_kernel *k, const ptxk__gemv *f, ptx_val args) {
    ptx_val all = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, n)), n;
    uint32_t i;
    for (i = 1; i < f->matrices; i++) {
        n = ptxk__arg_u32(k, args, PTXK__GEMV_FIELD(f->outputs < f->matrices ? 0 : i, n));
        all = ptx_add(k, all, n);
    }
    return all;
}

static void ptxk__gemv_rows(ptx_module *m, const char *site, const ptxk__gemv *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__gemv_state s;
    ptx_val shared, slices, per, units, n, p, rms, here, at;
    uint32_t i;
    memset(&s, 0, sizeof s);
    ptx_launch_bounds(k, PTXK__GEMV_THREADS, 2);
    s.args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemv_args), 8);
    s.norms = ptx_shared(k, "norms", PTX_F32, 8, 16);
    s.out = ptx_shared(k, "out", PTX_F32, f->results / 2, 16);
    shared = ptx_shared_dynamic(k);
    s.tid = ptx_tid_x(k);
    s.lane = ptx_and(k, s.tid, ptx_u32(31));
    s.warp = ptx_shr(k, s.tid, ptx_u32(5));
    s.ring = shared;
    s.x = ptx_ptr_add(k, shared, ptx_u32(f->ring), 1);

    ptx_comment(k, "this block's slice of K, in records of x");
    s.slice = ptx_ctaid_y(k);
    slices = ptx_sreg(k, PTX_NCTAID_Y);
    s.one = ptx_setp(k, PTX_EQ, slices, ptx_u32(1));
    n = ptxk__arg_u32(k, s.args, offsetof(ptxk_gemv_args, k));
    units = ptxk_div_up(k, n, ptx_u32(f->granule * f->values));
    per = ptxk_div_up(k, units, slices);
    here = ptx_mul(k, s.slice, per);
    units = ptx_sub(k, units, here);
    units = ptx_min(k, units, per);
    s.skip = ptx_mul(k, here, ptx_u32(f->granule));
    s.count = ptx_mul(k, units, ptx_u32(f->granule));
    s.stride = ptx_mul(k, s.count, ptx_u32(f->record));
    ptxk__gemv_copy_x(k, f, s.args, s.skip, s.count, s.x);
    if (f->flags & PTXK_GEMV_NORM) { /* warp c takes column c */
        p = ptx_setp(k, PTX_LT, s.warp, ptx_u32(f->columns));
        p = ptx_and(k, s.one, p);
        ptx_if(k, p);
        rms = ptxk__gemv_rms(k, s.args, s.lane, s.warp);
        here = ptx_ptr_add(k, s.norms, s.warp, 4);
        p = ptx_setp(k, PTX_EQ, s.lane, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st(k, PTX_F32, ptx_at(here, 0), rms);
        ptx_end(k);
    }
    ptx_comment(k, "the sum of slices needs their number");
    at = ptxk__arg_ptr(k, s.args, offsetof(ptxk_gemv_args, workspace));
    here = ptx_ctaid_x(k);
    here = ptx_or(k, here, s.slice);
    here = ptx_or(k, here, s.tid);
    p = ptx_setp(k, PTX_EQ, here, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_at(at, 0), slices);
    s.parts = ptxk__gemv_parts_at(k, f, s.args);
    here = ptxk__gemv_all_rows(k, f, s.args);
    s.all = ptx_cvt(k, PTX_U64, here);
    s.turn = ptx_var_new(k, ptx_u32(0));
    s.rows_before = ptx_u32(0);
    ptx_bar_sync(k, ptx_imm(0));
    for (i = 0; i < f->outputs; i++) ptxk__gemv_tile_loop(k, f, &s, i);
    ptx_ret(k);
}

/* -- gemv: sum of slices -- */

/* Adds the partial results of all slices, 4 * stride bytes apart. */
static ptx_val ptxk__gemv_add_slices(ptx_kernel *k, ptx_val at, ptx_val stride, ptx_val slices) {
    ptx_val x;
    ptx_var here = ptx_var_new(k, at), total = ptx_var_new(k, ptx_f32(0));
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
    return ptx_get(k, total);
}

static void ptxk__gemv_sum(ptx_module *m, const char *site, const ptxk__gemv *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptx_val args, tid, lane, column, rms, row, n, p, at, slices, all, index, stride, values[2];
    uint32_t i;
    ptx_launch_bounds(k, PTXK__GEMV_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemv_args), 8);
    tid = ptx_tid_x(k);
    lane = ptx_and(k, tid, ptx_u32(31));
    column = ptx_ctaid_y(k);
    rms = ptx_f32(1);
    if (f->flags & PTXK_GEMV_NORM) rms = ptxk__gemv_rms(k, args, lane, column);
    row = ptx_ctaid_x(k);
    row = ptx_mad(k, row, ptx_u32(PTXK__GEMV_THREADS), tid);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemv_args, n));
    all = ptxk__gemv_all_rows(k, f, args);
    p = ptx_setp(k, PTX_GE, row, f->outputs < f->matrices ? n : all);
    ptx_guard(k, p);
    ptx_ret(k);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemv_args, workspace));
    slices = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    at = ptxk__gemv_parts_at(k, f, args);
    index = ptx_cvt(k, PTX_U64, row);
    index = ptx_mad_wide(k, all, column, index);
    at = ptx_ptr_add(k, at, index, 4);
    stride = ptx_mul_wide(k, all, ptx_u32(f->columns));
    values[0] = ptxk__gemv_add_slices(k, at, stride, slices);
    if (f->outputs < f->matrices) {
        at = ptx_ptr_add(k, at, n, 4);
        values[1] = ptxk__gemv_add_slices(k, at, stride, slices);
    }
    for (i = 0; i + 1 < f->outputs; i++) {
        n = ptxk__arg_u32(k, args, PTXK__GEMV_FIELD(i, n));
        p = ptx_setp(k, PTX_LT, row, n);
        ptx_if(k, p);
        ptxk__gemv_finish(k, f, args, i, column, row, values, rms);
        ptx_ret(k);
        ptx_end(k);
        row = ptx_sub(k, row, n);
    }
    ptxk__gemv_finish(k, f, args, i, column, row, values, rms);
    ptx_ret(k);
}

/* -- gemv: the entries -- */

PTXGEN_API ptx_code ptxk_gemv_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__gemv f;
    ptxk_message why;
    char name[120], base[90];
    size_t at = 0;
    uint32_t i;
    ptx_code code = ptxk__gemv_form((const ptxk_gemv_desc *)desc, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    at += (size_t)snprintf(base, sizeof base, "gemv");
    for (i = 0; i < f.matrices; i++)
        at += (size_t)snprintf(base + at, sizeof base - at, "_%s", f.rows[i].block->name);
    (void)snprintf(base + at, sizeof base - at, "_c%u_%s_%s_f%u", f.columns,
                   f.planes == 2   ? "x16"
                   : f.planes == 1 ? "x8"
                                   : "xf32",
                   ptx_type_name(f.output), f.flags);
    (void)snprintf(name, sizeof name, "%s_x", base);
    ptxk__gemv_quantise(m, site, &f, name);
    ptxk__gemv_rows(m, site, &f, base);
    (void)snprintf(name, sizeof name, "%s_sum", base);
    ptxk__gemv_sum(m, site, &f, name);
    return ptx_get_error(m)->code;
}

/* ======== gemm ========================================================================================== */

/* -- gemm: limits, plan, arguments -- */

#define PTXK__GEMM_MATRICES 3u
#define PTXK__GEMM_K_MAX 0x100000u
#define PTXK__GEMM_M_MAX 0x400000u
#define PTXK__GEMM_N_MAX 0x4000000u
#define PTXK__GEMM_X_WARPS 8u
#define PTXK__GEMM_PAIR_UNITS 2u /* units of weights in a step */
#define PTXK__GEMM_RASTER 8u     /* tiles of rows that share columns in L2, where columns are many */
#define PTXK__GEMM_SCALES 32u    /* shared bytes of the unpacked scales of a row, Q6_K */
#define PTXK__GEMM_M 4u          /* most tiles of 16 rows in a warp */
#define PTXK__GEMM_N 8u          /* most tiles of 8 columns in a warp */

/* How the values of a unit are multiplied by x. */
enum {
    PTXK__GEMM_FOLDED,  /* integers times the scale of their sub-block; one factor for the unit */
    PTXK__GEMM_BLOCKS,  /* integers; a factor for each 32 */
    PTXK__GEMM_NUMBERS, /* f16 or bf16 */
    PTXK__GEMM_WORDS    /* f32, as tf32 */
};

/* Orders of x. Products take 32 values of a unit at a time, a group w: 8 of each lane t = lane & 3, two
   quads of adjacent values. The first quad begins at value 64 t + 4 w (PAIRS), 4 t + 16 (w & 3) + 32 (w & 4)
   (NIBBLES), 4 t + 32 w (BLOCK), 16 (t / 2) + 4 (t % 2) + 32 w (HALVES), 8 t + 32 w (EIGHTS), 16 t + 8 w
   (PLAIN) or 64 (w >> 1) + 16 (w & 1) + 4 t (BYTES) of the unit, the second `second` values further on.
   A quad makes the two registers of one product: values 0 and 2, values 1 and 3 (interleaved, as the bytes
   of a word are unpacked), or 0 and 1, 2 and 3. */
enum {
    PTXK__GEMM_PAIRS,
    PTXK__GEMM_NIBBLES,
    PTXK__GEMM_BLOCK,
    PTXK__GEMM_HALVES,
    PTXK__GEMM_EIGHTS,
    PTXK__GEMM_PLAIN,
    PTXK__GEMM_BYTES
};

/* How a format is read. */
typedef struct ptxk__gemm_format {
    uint32_t id, kind, order;
    uint32_t unit;   /* values */
    uint32_t second; /* distance of a lane's second quad */
    uint32_t sums;   /* bytes of sums of x for a unit and 8 columns */
    float factor;    /* of the sums in f32: they are so much too small */
} ptxk__gemm_format;

static const ptxk__gemm_format ptxk__gemm_formats[] = {
    {PTXK_Q4_K, PTXK__GEMM_FOLDED, PTXK__GEMM_PAIRS, 256, 32, 256, 524288.0f},
    {PTXK_Q5_K, PTXK__GEMM_FOLDED, PTXK__GEMM_PAIRS, 256, 32, 256, 524288.0f},
    {PTXK_Q6_K, PTXK__GEMM_FOLDED, PTXK__GEMM_NIBBLES, 256, 64, 512, 524288.0f},
    {PTXK_Q8_0, PTXK__GEMM_BLOCKS, PTXK__GEMM_BLOCK, 128, 16, 0, 1.0f},
    {PTXK_Q4_0, PTXK__GEMM_BLOCKS, PTXK__GEMM_BLOCK, 256, 16, 0, 1.0f},
    {PTXK_F16, PTXK__GEMM_NUMBERS, PTXK__GEMM_PLAIN, 64, 4, 0, 1.0f},
    {PTXK_BF16, PTXK__GEMM_NUMBERS, PTXK__GEMM_PLAIN, 64, 4, 0, 1.0f},
    {PTXK_F32, PTXK__GEMM_WORDS, PTXK__GEMM_PLAIN, 32, 4, 0, 1.0f}};

/* Those of the formats with a reader, which differ by its fields quads, halves and has_minimum. */
static const ptxk__gemm_format ptxk__gemm_readers[] = {
    {0, PTXK__GEMM_BLOCKS, PTXK__GEMM_BLOCK, 256, 16, 0, 1.0f},
    {0, PTXK__GEMM_BLOCKS, PTXK__GEMM_BLOCK, 256, 16, 512, 1.0f},
    {0, PTXK__GEMM_FOLDED, PTXK__GEMM_BLOCK, 256, 16, 0, 1.0f},
    {0, PTXK__GEMM_FOLDED, PTXK__GEMM_BLOCK, 256, 16, 512, 1.0f},
    {0, PTXK__GEMM_FOLDED, PTXK__GEMM_HALVES, 256, 8, 0, 1.0f},
    {0, PTXK__GEMM_FOLDED, PTXK__GEMM_EIGHTS, 256, 4, 0, 1.0f}};

static const ptxk__gemm_format *ptxk__gemm_format_of(const ptxk__block *b) {
    const ptxk__gemm_format *g = b->reader ? ptxk__gemm_readers : ptxk__gemm_formats;
    const ptxk__reader *r = b->reader;
    if (!r) {
        while (g->id != b->id) g++;
        return g;
    }
    while (g->kind != (r->halves ? PTXK__GEMM_FOLDED : PTXK__GEMM_BLOCKS) || (g->sums != 0) != r->has_minimum
           || g->order != PTXK__GEMM_BLOCK + r->quads)
        g++;
    return g;
}

/* A form of prepared x. For a tile of columns and a unit it has `parts` parts, each [tile of 8 columns]
   [group][plane][lane] of 16 bytes (f32: 32); the last part ends with sums for each tile of 8 columns. Lane
   4 g + t has column g. */
typedef struct ptxk__gemm_x {
    uint32_t order, unit, second, sums;
    ptx_type type;   /* of the numbers: f16, bf16; PTX_F32: tf32 */
    uint32_t planes; /* numbers for an element */
    uint32_t groups, parts;
    uint32_t part_bytes; /* without the sums */
    uint32_t bytes;      /* of a unit of a tile of columns */
} ptxk__gemm_x;

/* How one format's tiles are computed. */
typedef struct ptxk__gemm_class {
    const ptxk__block *block;
    const ptxk__gemm_format *format;
    uint32_t x;          /* index of its form of x */
    uint32_t unit_bytes; /* of a row */
    uint32_t chunks;     /* 16-byte chunks copied for a row's step */
    uint32_t pitch;      /* bytes from row to row in shared memory: an odd number of chunks */
    uint32_t area;       /* shared bytes of all rows: of a unit, or where rows are 2-byte aligned of a step */
    uint32_t parts;
    uint32_t tails;    /* a row may end within a step or a chunk */
    uint32_t variants; /* of the loop: 1: rows are 4-byte aligned, 2: any, 3: both */
} ptxk__gemm_class;

/* Everything that a gemm description determines. */
typedef struct ptxk__gemm {
    uint32_t matrices, outputs, pair;    /* pair: 2 where two matrices make one output */
    uint32_t which[PTXK__GEMM_MATRICES]; /* class of each matrix */
    ptxk__gemm_class kind[PTXK__GEMM_MATRICES];
    ptxk__gemm_x x[PTXK__GEMM_MATRICES];
    uint32_t classes, forms;
    ptx_type x_type, output;
    uint32_t flags, precision, k_step;
    uint32_t columns, tiles; /* columns of a block's tile; its tiles of 8 */
    uint32_t n, m;           /* tiles of 8 columns, and of 16 rows, in a warp */
    uint32_t warps, rows;    /* rows of a block's tile, of one matrix */
    uint32_t weights, stage; /* shared bytes of a step of weights and of a part of x; two of each */
    uint32_t scales, shared; /* where unpacked scales are; all of it */
    uint32_t wide;           /* many columns: the block unpacks its weights into shared memory */
    uint32_t bulk;           /* a thread copies a part of x */
    uint32_t x_at, raw_at, rows_at; /* wide: where x, the rows as they lie and what rows have are */
    int async;
} ptxk__gemm;

/* Shared bytes that a block may have, two of them on the largest multiprocessors. */
static uint32_t ptxk__gemm_shared_limit(ptx_target target, uint32_t columns) {
    uint32_t chip = target & 0xfffu;
    if (chip >= 90 && chip < 120 && columns > 32) return 232448; /* one tall block */
    return chip < 80 ? 65536 : chip == 86 || chip == 89 || chip >= 120 ? 101376 : 115712;
}

static uint32_t ptxk__gemm_row_unit(const ptxk__block *b, uint32_t unit) {
    return unit / b->values * b->bytes;
}

/* The most columns whose sums fit into the registers of a thread. */
static uint32_t ptxk__gemm_most_columns(const ptxk__gemm_class *c, uint32_t precision, ptx_target target) {
    uint32_t exact = precision == PTXK_GEMM_EXACT, most = 64, chip = target & 0xfffu;
    if (c->block->id == PTXK_Q5_K || (c->block->id == PTXK_Q6_K && exact)) most = 32;
    if (c->block->id == PTXK_Q4_K && exact && (chip == 86 || chip == 89)) most = 32;
    if (c->format->kind == PTXK__GEMM_BLOCKS) most = c->block->id == PTXK_Q4_0 ? 16 : 32;
    if (c->block->reader) most = c->format->kind == PTXK__GEMM_BLOCKS ? 16 : 32;
    return chip < 80 ? most / 2 : most;
}

/* Computes the sizes for a number of warps. */
static void ptxk__gemm_sizes(ptxk__gemm *f, uint32_t warps, uint32_t part_limit) {
    uint32_t i;
    f->warps = warps;
    f->rows = warps * f->m * 16 / f->pair;
    f->weights = f->stage = 0;
    for (i = 0; i < f->forms; i++) {
        ptxk__gemm_x *x = &f->x[i];
        uint32_t group = f->tiles * x->planes * (x->type == PTX_F32 ? 1024 : 512);
        for (x->parts = 1; x->parts < x->groups && x->groups / x->parts * group > part_limit;) x->parts *= 2;
        x->part_bytes = x->groups / x->parts * group;
        x->bytes = x->groups * group + f->tiles * x->sums;
        if (x->part_bytes + f->tiles * x->sums > f->stage) f->stage = x->part_bytes + f->tiles * x->sums;
    }
    for (i = 0; i < f->classes; i++) {
        ptxk__gemm_class *c = &f->kind[i];
        uint32_t units = c->block->aligned || c->block->kind == PTXK__NUMBERS ? 1 : PTXK__GEMM_PAIR_UNITS;
        c->chunks = PTXK__GEMM_PAIR_UNITS * c->unit_bytes / 16;
        if (units > 1) c->chunks = (PTXK__GEMM_PAIR_UNITS * c->unit_bytes + 30 + 15) / 16;
        c->pitch = ((units > 1 ? c->chunks : c->unit_bytes / 16) | 1) * 16;
        c->area = warps * f->m * 16 * c->pitch;
        c->parts = f->x[c->x].parts;
        if (PTXK__GEMM_PAIR_UNITS / units * c->area > f->weights)
            f->weights = PTXK__GEMM_PAIR_UNITS / units * c->area;
    }
    f->stage = (f->stage + 127) / 128 * 128;
    f->weights = (f->weights + 127) / 128 * 128;
    f->scales = 2 * f->weights + 2 * f->stage;
    f->shared = f->scales;
    for (i = 0; i < f->classes; i++)
        if (f->kind[i].block->id == PTXK_Q6_K || f->kind[i].block->reader)
            f->shared = f->scales + warps * f->m * 16 * PTXK__GEMM_SCALES;
    f->shared += 16; /* the flag of the last block */
}

#define PTXK__WIDE_WARPS 8u
#define PTXK__WIDE_ROWS 128u   /* of weights; a warp has 64 of them and a quarter of the columns */
#define PTXK__WIDE_PART 16384u /* bytes of the unpacked weights of a part, 64 values of each row */

/* The sizes of a block with many columns. Returns whether it fits. In shared memory: two parts of unpacked
   weights (each twice, where there are `planes` of them), two parts of x, a unit of the rows as they lie, and
   what the rows have. */
static int ptxk__gemm_wide_sizes(ptxk__gemm *f, ptx_target target, uint32_t columns, uint32_t planes) {
    uint32_t i, chip = target & 0xfffu;
    f->columns = columns;
    f->tiles = columns / 8;
    f->n = columns / 32;
    f->m = 4;
    ptxk__gemm_sizes(f, PTXK__WIDE_WARPS, 2 * f->tiles * 512 * f->x[0].planes);
    f->rows = PTXK__WIDE_ROWS / f->pair;
    f->x_at = 2 * planes * PTXK__WIDE_PART;
    f->raw_at = f->x_at + 2 * f->stage;
    f->rows_at = f->raw_at;
    for (i = 0; i < f->classes; i++) {
        ptxk__gemm_class *c = &f->kind[i];
        c->chunks = c->block->aligned ? c->unit_bytes / 16 : (c->unit_bytes + 14 + 15) / 16;
        c->pitch = (c->chunks | 1) * 16;
        c->area = PTXK__WIDE_ROWS * c->pitch;
        c->variants = 2;
        if (f->raw_at + c->area > f->rows_at) f->rows_at = f->raw_at + c->area;
    }
    f->bulk = chip >= 90;
    f->shared = f->rows_at + 4096 + 32;
    return f->shared <= (chip == 86 || chip == 89 || chip >= 120 ? 101376u : chip < 90 ? 166912u : 232448u);
}

/* The form with `wide` columns, or, where that is 0, with few. */
static ptx_code ptxk__gemm_form_as(const ptxk_gemm_desc *d, ptx_target target, uint32_t wide, ptxk__gemm *f,
                                   ptxk_message *why) {
    static const char *const names[PTXK__GEMM_MATRICES] = {"format", "second", "third"};
    static const char *const op = "gemm";
    uint32_t format[PTXK__GEMM_MATRICES], i, j, warps, limit, part, planes = 1;
    ptx_code code;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "gemm: the description is NULL");
    memset(f, 0, sizeof *f);
    if (d->columns < 8 || d->columns > 256 || d->columns & (d->columns - 1))
        return ptxk__refuse(why, PTX_E_DESC, "gemm: columns is %u, must be 8, 16, 32, 64, 128 or 256",
                            d->columns);
    if (d->precision > PTXK_GEMM_FAST)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemm: precision is %u, must be PTXK_GEMM_EXACT or PTXK_GEMM_FAST", d->precision);
    if ((code = ptxk__check_type(op, "x_type", d->x_type, why)) != PTX_E_NONE
        || (code = ptxk__check_type(op, "output_type", d->output_type, why)) != PTX_E_NONE)
        return code;
    if (d->flags > 127 || (d->flags & PTXK_GEMM_SWIGLU && d->flags & PTXK_GEMM_GEGLU))
        return ptxk__refuse(
            why, PTX_E_DESC,
            "gemm: flags is %u, must be of PTXK_GEMM_NORM, _GAMMA, _RESIDUAL, _BIAS, _GROUPED and one of "
            "_SWIGLU and _GEGLU",
            d->flags);
    f->x_type = (ptx_type)d->x_type;
    f->output = (ptx_type)d->output_type;
    f->flags = d->flags;
    f->precision = d->precision;
    format[0] = d->format;
    format[1] = d->second;
    format[2] = d->third;
    f->pair = d->flags & (PTXK_GEMM_SWIGLU | PTXK_GEMM_GEGLU) ? 2 : 1;
    f->matrices = format[2] ? 3 : format[1] || f->pair > 1 ? 2 : 1;
    f->outputs = f->pair > 1 ? 1 : f->matrices;
    if (f->pair > 1 && f->matrices > 2)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemm: a gated pair (PTXK_GEMM_SWIGLU, _GEGLU) is two matrices, third is %s",
                            ptxk__value_name_of(format[2]).s);
    if (d->flags & PTXK_GEMM_RESIDUAL && f->outputs > 1)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemm: a residual (PTXK_GEMM_RESIDUAL) goes with one output, there are %u",
                            f->outputs);
    for (i = 0; i < f->matrices; i++) {
        const ptxk__block *b = ptxk__block_of(format[i]);
        const ptxk__gemm_format *g;
        ptxk__gemm_class *c = &f->kind[f->classes];
        ptxk__gemm_x x;
        if (!b) return ptxk__refuse_format(op, names[i], format[i], why);
        if (f->pair > 1 && format[i] != format[0])
            return ptxk__refuse(why, PTX_E_DESC,
                                "gemm: second is %s and format is %s: a gated pair has one format",
                                ptxk_format_name(format[i]), ptxk_format_name(format[0]));
        if (ptxk__block_step(b) > f->k_step) f->k_step = ptxk__block_step(b);
        for (j = 0; j < f->classes && f->kind[j].block != b;) j++;
        f->which[i] = j;
        if (j < f->classes) continue;
        g = ptxk__gemm_format_of(b);
        f->classes++;
        c->block = b;
        c->format = g;
        c->unit_bytes = ptxk__gemm_row_unit(b, g->unit);
        c->tails = b->values < 256 || !b->aligned;
        c->variants = b->aligned || b->kind == PTXK__NUMBERS ? 2 : b->bytes % 4 ? 3 : 1;
        memset(&x, 0, sizeof x);
        x.order = g->order;
        x.unit = g->unit;
        x.second = g->second;
        x.sums = g->sums;
        if (wide) {
            if (wide > 128
                && (d->precision == PTXK_GEMM_EXACT || (target & 0xfffu) < 90 || format[i] != PTXK_Q4_K))
                return PTX_E_DESC; /* registers are too few */
            if (g->order != PTXK__GEMM_PAIRS) return PTX_E_DESC;
            if (g->order == PTXK__GEMM_PAIRS) x.order = PTXK__GEMM_BYTES;
            if (g->order != PTXK__GEMM_PAIRS || d->precision == PTXK_GEMM_FAST) x.sums = 0;
            if (format[i] == PTXK_Q6_K && d->precision == PTXK_GEMM_EXACT) planes = 2;
        }
        x.type = format[i] == PTXK_BF16 ? PTX_BF16 : g->kind == PTXK__GEMM_WORDS ? PTX_F32 : PTX_F16;
        x.planes = d->precision == PTXK_GEMM_EXACT ? 2 : 1;
        if (x.type == PTX_BF16) x.planes++;
        if (x.type == f->x_type && x.type != PTX_F32 && !(d->flags & PTXK_GEMM_GAMMA)) x.planes = 1;
        x.groups = g->unit / 32;
        for (j = 0; j < f->forms; j++)
            if (f->x[j].order == x.order && f->x[j].type == x.type && f->x[j].unit == x.unit
                && f->x[j].sums == x.sums)
                break;
        if (x.type != PTX_F16 && (target & 0xfffu) < 80)
            return ptxk__refuse(why, PTX_E_DESC, "gemm: %s is %s, which needs a target from sm_80 on",
                                names[i], ptxk_format_name(format[i]));
        c->x = j;
        if (j == f->forms) f->x[f->forms++] = x;
    }
    f->async = (target & 0xfffu) >= 80;
    f->wide = wide;
    if (wide) return ptxk__gemm_wide_sizes(f, target, wide, planes) ? PTX_E_NONE : PTX_E_DESC;
    f->columns = d->columns > 64 ? 64 : d->columns;
    for (i = 0; i < f->classes; i++) {
        part = ptxk__gemm_most_columns(&f->kind[i], d->precision, target);
        if (f->columns > part) f->columns = part;
    }
    f->n = f->tiles = f->columns / 8;
    f->m = 2;
    limit = ptxk__gemm_shared_limit(target, f->columns);
    /* numbers of warps that divide the copies of x evenly need fewer registers */
    for (warps = f->columns > 32 ? 8 : 4; warps; warps = f->columns > 32 ? warps / 2 : warps - 1)
        for (part = 16384; part > 4096; part /= 2) {
            ptxk__gemm_sizes(f, warps, part);
            if (f->shared <= limit) return PTX_E_NONE;
        }
    return ptxk__refuse(why, PTX_E_DESC, "gemm: %u columns do not fit into the shared memory of the target",
                        f->columns);
}

static ptx_code ptxk__gemm_form(const ptxk_gemm_desc *d, ptx_target target, ptxk__gemm *f,
                                ptxk_message *why) {
    uint32_t wide = d && (target & 0xfffu) >= 80 ? d->columns : 0;
    if (why) why->text[0] = 0;
    for (; wide >= 128; wide /= 2)
        if (ptxk__gemm_form_as(d, target, wide, f, NULL) == PTX_E_NONE) return PTX_E_NONE;
    return ptxk__gemm_form_as(d, target, 0, f, why);
}

PTXGEN_API uint32_t ptxk_gemm_columns(uint32_t m) {
    uint32_t columns = 8;
    while (columns < m && columns < 256) columns *= 2;
    return columns;
}

/* Tiles of rows of x; of groups, the most that any sizes can make. ptxk__gemm_column_tiles_of: in kernels. */
static uint64_t ptxk__gemm_column_tiles(const ptxk__gemm *f, uint32_t m, uint32_t groups) {
    uint32_t own = !(f->flags & PTXK_GEMM_GROUPED) ? 0 : groups < m ? groups : m;
    return own ? own + (m - own) / f->columns : ptxk__ceil_div(m, f->columns);
}

/* Rows of W in a tile of one matrix; tiles of all outputs. */
static uint64_t ptxk__gemm_row_tiles(const ptxk__gemm *f, const uint32_t n[PTXK__GEMM_MATRICES]) {
    uint64_t tiles = 0;
    uint32_t i;
    for (i = 0; i < f->outputs; i++) tiles += ptxk__ceil_div(n[i], f->rows);
    return tiles;
}

/* The workspace: a counter for each tile, a factor for each row of x, the forms of x, and the slices' sums,
   whose offset this returns. ptxk__gemm_layout computes the same in the kernels. */
static uint64_t ptxk__gemm_parts_at(const ptxk__gemm *f, uint64_t tiles, uint64_t column_tiles, uint32_t k) {
    uint64_t at = ptxk__up_256(tiles * column_tiles * 4) + ptxk__up_256(column_tiles * f->columns * 4);
    uint32_t i;
    for (i = 0; i < f->forms; i++)
        at += ptxk__up_256(column_tiles * ptxk__ceil_div(k, f->x[i].unit) * f->x[i].bytes);
    return at;
}

#define PTXK__GEMM_GRANULE 512u /* values; slices of K are whole granules */

/* Chooses the slices of K. Minimises the time of the slowest multiprocessor, in granules of a tile: a block
   costs one more for its start, and where there are slices, the sum of its tile. */
static uint32_t ptxk__gemm_slices(const ptxk__gemm *f, const ptxk_gemm_shape *shape, uint64_t tiles) {
    uint32_t units = ptxk__ceil_div(shape->k, PTXK__GEMM_GRANULE), s, best_s = 1;
    uint32_t chip = shape->target & 0xfffu;
    uint32_t total = chip < 80                                 ? 65536
                     : chip == 86 || chip == 89 || chip >= 120 ? 102400
                     : chip < 90                               ? 167936
                                                               : 233472;
    uint32_t resident = f->wide || total < f->shared + 1024 ? 1 : total / (f->shared + 1024);
    uint64_t slots = (uint64_t)shape->sm_count * resident;
    uint64_t best = UINT64_MAX;
    for (s = 1; s <= units && s <= 512; s++) {
        uint32_t per = ptxk__ceil_div(units, s);
        uint64_t waves, cost;
        if (ptxk__ceil_div(units, per) != s) continue;
        waves = (tiles * s + slots - 1) / slots;
        cost = waves * (8 * per + 6) + (s > 1 ? 2 + s / 4 : 0);
        if (cost < best) best = cost, best_s = s;
    }
    return best_s;
}

static ptx_code ptxk__gemm_check_k(const ptxk__gemm *f, uint32_t k, ptx_code code, ptxk_message *why) {
    if (k && k % f->k_step == 0 && k <= PTXK__GEMM_K_MAX) return PTX_E_NONE;
    return ptxk__refuse(why, code, "gemm: k is %u, must be a multiple of %u from %u to %u", k, f->k_step,
                        f->k_step, PTXK__GEMM_K_MAX);
}

PTXGEN_API ptx_code ptxk_gemm_plan(const ptxk_gemm_desc *desc, const ptxk_gemm_shape *shape, ptx_plan *plan,
                                   ptxk_message *why) {
    static const char *const names[PTXK__GEMM_MATRICES] = {"n", "second_n", "third_n"};
    ptxk__gemm f;
    ptx_launch *l;
    uint32_t n[PTXK__GEMM_MATRICES], i, slices, rasters, groups = 1;
    uint64_t tiles, column_tiles, results = 0, rows = 0;
    ptx_code code;
    if (shape && ((shape->target & 0xfffu) < 75 || (shape->target & 0xfffu) > 999))
        code = ptxk__refuse(why, PTX_E_DESC, "gemm: target is %u, must be the module's, such as PTX_SM(80)",
                            (unsigned)shape->target);
    else
        code = ptxk__gemm_form(desc, shape ? shape->target : PTX_SM(80), &f, why);
    if ((code = ptxk__plan_start("gemm", code, shape, plan, sizeof(ptxk_gemm_args), why)) != PTX_E_NONE)
        return code;
    if ((code = ptxk__gemm_check_k(&f, shape->k, PTX_E_DESC, why)) != PTX_E_NONE
        || (code = ptxk__check_most("gemm", "m", shape->m, PTXK__GEMM_M_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_n("gemm", "sm_count", shape->sm_count, 65536, why)) != PTX_E_NONE
        || (f.flags & PTXK_GEMM_GROUPED
            && (code = ptxk__check_n("gemm", "groups", shape->groups, 65536, why)) != PTX_E_NONE))
        return code;
    for (i = 0; i < f.matrices; i++) {
        n[i] = !i || f.pair > 1 ? shape->n : i == 1 ? shape->second_n : shape->third_n;
        if (!(i == 0 && f.matrices == 1 && !n[i])
            && (code = ptxk__check_n("gemm", names[i], n[i], PTXK__GEMM_N_MAX, why)) != PTX_E_NONE)
            return code;
        rows += n[i];
        if (i < f.outputs) results += (uint64_t)n[i] * shape->m;
    }
    if (!shape->m || !shape->n) return PTX_E_NONE;
    tiles = ptxk__gemm_row_tiles(&f, n);
    column_tiles = ptxk__gemm_column_tiles(&f, shape->m, shape->groups);
    if (f.flags & PTXK_GEMM_GROUPED) groups = shape->groups < shape->m ? shape->groups : shape->m;
    rasters = f.columns >= 64 ? PTXK__GEMM_RASTER : 0;
    if (!rasters && column_tiles > 65535)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemm: m is %u, must be at most %u, 65535 tiles of %u: call it for parts of x",
                            shape->m, 65535 * f.columns, f.columns);
    if (rasters && (tiles + rasters - 1) / rasters > 65535)
        return ptxk__refuse(why, PTX_E_DESC,
                            "gemm: n is %u, must be at most %u, all matrices: call it for parts of W",
                            (unsigned)rows, 65535 * rasters * f.rows);
    slices = ptxk__gemm_slices(&f, shape, tiles * column_tiles);
    plan->launches = 2;
    l = &plan->launch[0];
    l->entry = 0;
    l->grid[0] = f.columns == 8 && !(f.flags & PTXK_GEMM_GROUPED) ? shape->m
                                                                  : (uint32_t)column_tiles * f.columns;
    l->block[0] = 32 * PTXK__GEMM_X_WARPS;
    l->grid[1] = l->grid[2] = l->block[1] = l->block[2] = 1;
    l = &plan->launch[1];
    l->entry = 1;
    l->grid[0] = rasters ? rasters * (uint32_t)column_tiles : (uint32_t)tiles;
    l->grid[1] = slices;
    l->grid[2] = rasters ? (uint32_t)((tiles + rasters - 1) / rasters) : (uint32_t)column_tiles;
    l->block[0] = 32 * f.warps;
    l->block[1] = l->block[2] = 1;
    l->shared_bytes = f.shared;
    plan->workspace_bytes = ptxk__gemm_parts_at(&f, tiles, column_tiles, shape->k);
    if (slices > 1) {
        plan->zero_bytes = ptxk__up_256(tiles * column_tiles * 4);
        plan->workspace_bytes += tiles * column_tiles * slices * f.rows * f.pair * f.columns * 4;
    }
    plan->min_bytes = (uint64_t)shape->m * shape->k * ptxk__kv_bytes(f.x_type)
                      + results * ptxk__kv_bytes(f.output) * (f.flags & PTXK_GEMM_RESIDUAL ? 2 : 1);
    for (i = 0; i < f.matrices; i++)
        plan->min_bytes += ptxk_row_bytes(f.kind[f.which[i]].block->id, shape->k) * n[i] * groups;
    if (f.flags & PTXK_GEMM_GAMMA) plan->min_bytes += (uint64_t)shape->k * 4;
    if (f.flags & PTXK_GEMM_BIAS) plan->min_bytes += rows * groups * 4;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_gemm_check(const ptxk_gemm_desc *desc, const ptxk_gemm_args *args,
                                    ptxk_message *why) {
    static const char *const names[PTXK__GEMM_MATRICES][3] = {
        {"matrix[0].weights", "matrix[0].bias", "matrix[0].y"},
        {"matrix[1].weights", "matrix[1].bias", "matrix[1].y"},
        {"matrix[2].weights", "matrix[2].bias", "matrix[2].y"}};
    static const char *const op = "gemm";
    static const ptx_target targets[] = {PTX_SM(75), PTX_SM(80), PTX_SM(86), PTX_SM(90)};
    ptxk__gemm f;
    ptxk__span s[6 + 3 * PTXK__GEMM_MATRICES];
    uint64_t tiles, stride, workspace = UINT64_MAX, row;
    uint32_t i, count = 0, bytes, n[PTXK__GEMM_MATRICES], groups = 1;
    ptx_code code = ptxk__gemm_form(desc, PTX_SM(80), &f, why);
    if ((code = ptxk__check_start(op, code, args, why)) != PTX_E_NONE
        || (code = ptxk__gemm_check_k(&f, args->k, PTX_E_ARGUMENT, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "m", args->m, 0, PTXK__GEMM_M_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_eps(op, args->eps, why)) != PTX_E_NONE
        || (code = ptxk__check_zero(op, "reserved", args->reserved, why)) != PTX_E_NONE)
        return code;
    if (f.flags & PTXK_GEMM_GROUPED) {
        groups = args->groups;
        if ((code = ptxk__check_count(op, "groups", groups, 1, 65536, why)) != PTX_E_NONE) return code;
    }
    bytes = ptxk__kv_bytes(f.output);
    stride = args->x_stride ? args->x_stride : args->k;
    if (stride < args->k || stride % 8 || stride > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "gemm: x_stride is %llu, must be a multiple of 8 from k, %u, to "
                            "2^32 - 8 (0: k)",
                            (unsigned long long)stride, args->k);
    for (i = 0; i < f.matrices; i++) {
        const ptxk_gemm_matrix *m = &args->matrix[i];
        if ((code = ptxk__check_count(op, "matrix[].n", m->n, 0, PTXK__GEMM_N_MAX, why)) != PTX_E_NONE
            || (code = ptxk__check_zero(op, "matrix[].reserved", m->reserved, why)) != PTX_E_NONE)
            return code;
        n[i] = m->n;
        if (i && f.pair > 1 && m->n != args->matrix[0].n)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "gemm: matrix[1].n is %u, must be matrix[0].n, %u", m->n,
                                args->matrix[0].n);
        stride = m->y_stride ? m->y_stride : m->n;
        if (stride < m->n || stride > 0xffffffffu)
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "gemm: matrix[%u].y_stride is %llu, must be n (%u) to 2^32 - 1 (0: n)", i,
                                (unsigned long long)stride, m->n);
        row = ptxk_row_bytes(f.kind[f.which[i]].block->id, args->k) * m->n;
        s[count] = ptxk__span_of(names[i][0], m->weights, row, 16, 1);
        if (f.flags & PTXK_GEMM_GROUPED) {
            if (args->group_stride[i] % 16 || (!args->group_stride[i] && row % 16 && groups > 1))
                return ptxk__refuse(why, PTX_E_ARGUMENT,
                                    "gemm: group_stride[%u] is %llu, and the weights of a group have "
                                    "%llu bytes: groups must be a multiple of 16 apart",
                                    i, (unsigned long long)args->group_stride[i], (unsigned long long)row);
            ptxk__span_repeat(&s[count], 0, groups, args->group_stride[i] ? args->group_stride[i] : row);
        }
        count++;
        s[count++] = ptxk__span_of(names[i][1], m->bias, (uint64_t)m->n * groups * 4, 16,
                                   (f.flags & PTXK_GEMM_BIAS) != 0);
        s[count] = ptxk__span_of(names[i][2], m->y, (uint64_t)m->n * bytes, 16, i < f.outputs);
        ptxk__span_repeat(&s[count], 0, args->m, stride * bytes);
        s[count] = ptxk__span_written(s[count], i == 0);
        count++;
    }
    s[count] = ptxk__span_of("x", args->x, (uint64_t)args->k * ptxk__kv_bytes(f.x_type), 16, 1);
    ptxk__span_repeat(&s[count++], 0,
                      f.flags & PTXK_GEMM_GROUPED && args->x_count ? args->x_count : args->m,
                      (args->x_stride ? args->x_stride : args->k) * ptxk__kv_bytes(f.x_type));
    s[count++] = ptxk__span_of("offsets", args->offsets, ((uint64_t)groups + 1) * 4, 4,
                               (f.flags & PTXK_GEMM_GROUPED) != 0);
    s[count++] = ptxk__span_of("x_rows", args->x_rows, (uint64_t)args->m * 4, 4,
                               f.flags & PTXK_GEMM_GROUPED && args->x_rows);
    s[count++] =
        ptxk__span_of("gamma", args->gamma, (uint64_t)args->k * 4, 16, (f.flags & PTXK_GEMM_GAMMA) != 0);
    stride = args->residual_stride ? args->residual_stride : args->matrix[0].n;
    if (stride < args->matrix[0].n || stride > 0xffffffffu)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "gemm: residual_stride is %llu, must be n (%u) to 2^32 - 1 (0: n)",
                            (unsigned long long)stride, args->matrix[0].n);
    s[count] = ptxk__span_of("residual", args->residual, (uint64_t)args->matrix[0].n * bytes, 16,
                             (f.flags & PTXK_GEMM_RESIDUAL) != 0);
    ptxk__span_repeat(&s[count], 0, args->m, stride * bytes);
    s[count++].same = 1;
    for (i = 0; i < sizeof targets / sizeof *targets; i++) { /* of which target, args does not tell */
        uint64_t least;
        if (ptxk__gemm_form(desc, targets[i], &f, NULL) != PTX_E_NONE) continue;
        tiles = ptxk__gemm_row_tiles(&f, n);
        least =
            ptxk__gemm_parts_at(&f, tiles, ptxk__gemm_column_tiles(&f, args->m, args->groups), args->k);
        if (least < workspace) workspace = least;
    }
    s[count] = ptxk__span_of("workspace", args->workspace, workspace, 256, 1);
    s[count] = ptxk__span_written(s[count], 0);
    return ptxk__check_spans(op, s, count + 1, why);
}

/* -- gemm: the workspace, arguments -- */

/* The offset in the arguments of a field of matrix i. */
#define PTXK__GEMM_FIELD(i, field)                                                                           \
    (offsetof(ptxk_gemm_args, matrix) + (i) * sizeof(ptxk_gemm_matrix) + offsetof(ptxk_gemm_matrix, field))

static ptx_val ptxk__gemm_up_256(ptx_kernel *k, ptx_val bytes) {
    bytes = ptx_add(k, bytes, ptx_u64(255));
    return ptx_and(k, bytes, ptx_u64(~(uint64_t)255));
}

static ptx_val ptxk__gemm_div_up(ptx_kernel *k, ptx_val x, uint32_t by) {
    x = ptx_add(k, x, ptx_u32(by - 1));
    return ptx_div(k, x, ptx_u32(by));
}

typedef struct ptxk__gemm_layout {
    ptx_val counters, factors, x[PTXK__GEMM_MATRICES], parts;
    ptx_val column_tiles;
    ptx_val tiles[PTXK__GEMM_MATRICES]; /* of rows, of outputs 0 ... i */
} ptxk__gemm_layout;

static ptx_val ptxk__gemm_column_tiles_of(ptx_kernel *k, const ptxk__gemm *f, ptx_val args, ptx_val m) {
    ptx_val own, x;
    if (!(f->flags & PTXK_GEMM_GROUPED)) return ptxk__gemm_div_up(k, m, f->columns);
    own = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, groups));
    own = ptx_min(k, own, m);
    x = ptx_sub(k, m, own);
    x = ptx_div(k, x, ptx_u32(f->columns));
    return ptx_add(k, own, x);
}

static void ptxk__gemm_layout_of(ptx_kernel *k, const ptxk__gemm *f, ptx_val args, ptxk__gemm_layout *l) {
    ptx_val at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemm_args, workspace)), x, m, units;
    uint32_t i;
    m = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, m));
    l->column_tiles = ptxk__gemm_column_tiles_of(k, f, args, m);
    for (i = 0; i < f->outputs; i++) {
        x = ptxk__arg_u32(k, args, PTXK__GEMM_FIELD(i, n));
        x = ptxk__gemm_div_up(k, x, f->rows);
        l->tiles[i] = i ? ptx_add(k, l->tiles[i - 1], x) : x;
    }
    l->counters = at;
    x = ptx_mul_wide(k, l->tiles[f->outputs - 1], l->column_tiles);
    x = ptx_mul(k, x, ptx_u64(4));
    x = ptxk__gemm_up_256(k, x);
    l->factors = ptx_ptr_add(k, at, x, 1);
    x = ptx_mul_wide(k, l->column_tiles, ptx_u32(f->columns * 4));
    x = ptxk__gemm_up_256(k, x);
    at = ptx_ptr_add(k, l->factors, x, 1);
    for (i = 0; i < f->forms; i++) {
        l->x[i] = at;
        units = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, k));
        units = ptxk__gemm_div_up(k, units, f->x[i].unit);
        x = ptx_mul_wide(k, units, l->column_tiles);
        x = ptx_mul(k, x, ptx_u64(f->x[i].bytes));
        x = ptxk__gemm_up_256(k, x);
        at = ptx_ptr_add(k, at, x, 1);
    }
    l->parts = at;
}

/* A stride from the arguments, or n where it is 0. */
static ptx_val ptxk__gemm_stride(ptx_kernel *k, ptx_val args, size_t offset, ptx_val n) {
    ptx_val stride = ptxk__arg_u32(k, args, offset), p; /* below 2^32 */
    p = ptx_setp(k, PTX_EQ, stride, ptx_u32(0));
    return ptx_selp(k, n, stride, p);
}

/* Where a tile of columns lies: the lanes of a warp add the tiles of 32 groups at a time. */
typedef struct ptxk__gemm_place {
    ptx_val group, first, left; /* u32: the tile's first row of y, the group's rows from there on */
    ptx_val exists;             /* there are so many tiles */
} ptxk__gemm_place;

static ptxk__gemm_place ptxk__gemm_find(ptx_kernel *k, const ptxk__gemm *f, ptx_val args, ptx_val tile) {
    ptxk__gemm_place place;
    ptx_val all = ptx_u32(0xffffffffu), lane = ptx_laneid(k), m, groups, offsets, at, group, inside, begin;
    ptx_val end, tiles, upto, x, p, q, value[4];
    ptx_var found[4], before, next; /* the group; its rows; tiles of the groups before */
    uint32_t i;
    m = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, m));
    groups = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, groups));
    offsets = ptxk__arg_ptr(k, args, offsetof(ptxk_gemm_args, offsets));
    for (i = 0; i < 4; i++) found[i] = ptx_var_new(k, ptx_u32(0));
    before = ptx_var_new(k, ptx_u32(0));
    next = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    {
        group = ptx_get(k, next);
        group = ptx_add(k, group, lane);
        inside = ptx_setp(k, PTX_LT, group, groups);
        at = ptx_ptr_add(k, offsets, group, 4);
        begin = ptx_ld_if(k, inside, PTX_U32, ptx_at(at, 0), ptx_u32(0));
        end = ptx_ld_if(k, inside, PTX_U32, ptx_at(at, 4), ptx_u32(0));
        begin = ptx_min(k, begin, m);
        end = ptx_min(k, end, m);
        end = ptx_max(k, end, begin);
        x = ptx_sub(k, end, begin);
        tiles = ptxk__gemm_div_up(k, x, f->columns);
        upto = tiles;
        for (i = 1; i < 32; i *= 2) {
            x = ptx_shfl_up(k, upto, ptx_u32(i), ptx_u32(0), all);
            p = ptx_setp(k, PTX_GE, lane, ptx_u32(i));
            x = ptx_selp(k, ptx_as(x, PTX_U32), ptx_u32(0), p);
            upto = ptx_add(k, upto, x);
        }
        x = ptx_get(k, before);
        upto = ptx_add(k, upto, x);
        p = ptx_setp(k, PTX_LT, tile, upto);
        q = ptx_ballot(k, p, all);
        x = ptx_brev(k, q);
        x = ptx_clz(k, x);
        x = ptx_min(k, ptx_as(x, PTX_U32), ptx_u32(31)); /* the first lane that has the tile, or the last */
        tiles = ptx_sub(k, upto, tiles);
        begin = ptx_shfl_idx(k, begin, x, ptx_u32(31), all);
        end = ptx_shfl_idx(k, end, x, ptx_u32(31), all);
        tiles = ptx_shfl_idx(k, tiles, x, ptx_u32(31), all);
        upto = ptx_shfl_idx(k, upto, x, ptx_u32(31), all);
        group = ptx_shfl_idx(k, group, x, ptx_u32(31), all);
        p = ptx_setp(k, PTX_NE, ptx_as(q, PTX_U32), ptx_u32(0));
        ptx_set(k, found[0], ptx_as(group, PTX_U32));
        ptx_set(k, found[1], ptx_as(begin, PTX_U32));
        ptx_set(k, found[2], ptx_as(end, PTX_U32));
        ptx_set(k, found[3], ptx_as(tiles, PTX_U32));
        x = ptx_selp(k, ptx_u32(0), ptx_as(upto, PTX_U32), p);
        ptx_set(k, before, x);
        x = ptx_get(k, next);
        x = ptx_add(k, x, ptx_u32(32));
        x = ptx_selp(k, ptx_u32(0xffffffffu), x, p);
        ptx_set(k, next, x);
        p = ptx_setp(k, PTX_LT, x, groups);
        p = ptx_uniform(k, p);
        ptx_while(k, p);
    }
    ptx_end(k);
    x = ptx_get(k, next); /* the same for all threads, as the tile is */
    x = ptx_uniform(k, x);
    place.exists = ptx_setp(k, PTX_EQ, x, ptx_u32(0xffffffffu));
    for (i = 0; i < 4; i++) value[i] = ptx_uniform(k, ptx_get(k, found[i]));
    place.group = value[0];
    begin = value[1];
    end = value[2];
    x = ptx_sub(k, tile, value[3]);
    place.first = ptx_mad(k, x, ptx_u32(f->columns), begin);
    place.left = ptx_sub(k, end, place.first);
    return place;
}

/* -- gemm: x -- */

/* Loads a quad of row elements i ... i + 3 as f32, zeros past k, times gamma. */
static void ptxk__gemm_load_quad(ptx_kernel *k, const ptxk__gemm *f, ptx_val args, ptx_val row, ptx_val i,
                                 ptx_val n, ptx_val plain[4], ptx_val x[4]) {
    ptx_val inside = ptx_setp(k, PTX_LT, i, n), at, gamma[4];
    uint32_t e;
    at = ptx_ptr_add(k, row, i, ptxk__kv_bytes(f->x_type));
    ptxk__load_f32_if(k, &inside, f->x_type, 4, ptx_with(ptx_at(at, 0), PTX_NC), plain);
    for (e = 0; e < 4; e++) x[e] = plain[e];
    if (!(f->flags & PTXK_GEMM_GAMMA)) return;
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_gemm_args, gamma));
    at = ptx_ptr_add(k, at, i, 4);
    ptxk__load_f32_if(k, &inside, PTX_F32, 4, ptx_with(ptx_at(at, 0), PTX_NC), gamma);
    for (e = 0; e < 4; e++) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], gamma[e]);
}

/* Splits eight numbers into `planes` numbers of the form's type: words[p] of plane p, and the rounded values.
   The order of the words is that of the products' registers. */
static void ptxk__gemm_split(ptx_kernel *k, const ptxk__gemm_x *x, const ptx_val in[8], ptx_val words[3][8],
                             ptx_val rounded[8]) {
    ptx_val rest[8], whole[8], pair;
    uint32_t p, e, i;
    int natural = x->order == PTXK__GEMM_PLAIN;
    for (e = 0; e < 8; e++) rest[e] = in[e];
    for (p = 0; p < x->planes; p++) {
        if (x->type == PTX_F32) {
            for (e = 0; e < 8; e++) {
                words[p][e] = ptx_cvt_with(k, PTX_RNA, PTX_TF32, rest[e]);
                whole[e] = ptx_as(words[p][e], PTX_F32);
            }
        } else {
            for (i = 0; i < 4;
                 i++) { /* registers: quad i / 2, its values 0 and 2, 1 and 3, or 0 and 1, ... */
                uint32_t a = 4 * (i / 2) + (i & 1) * (natural ? 2 : 1), b = a + (natural ? 1 : 2);
                pair = ptxk__pack_f32(k, x->type, rest[a], rest[b]);
                words[p][i] = pair;
                ptxk__widen_word(k, x->type, pair, &whole[2 * i]);
            }
            for (i = 0; i < 4; i++) { /* back to the order of the values */
                uint32_t a = 4 * (i / 2) + (i & 1) * (natural ? 2 : 1), b = a + (natural ? 1 : 2);
                rounded[a] = p ? ptx_op2(k, PTX_ADD, PTX_RN, rounded[a], whole[2 * i]) : whole[2 * i];
                rounded[b] = p ? ptx_op2(k, PTX_ADD, PTX_RN, rounded[b], whole[2 * i + 1]) : whole[2 * i + 1];
                rest[a] = ptx_op2(k, PTX_SUB, PTX_RN, rest[a], whole[2 * i]);
                rest[b] = ptx_op2(k, PTX_SUB, PTX_RN, rest[b], whole[2 * i + 1]);
            }
            continue;
        }
        for (e = 0; e < 8; e++) rest[e] = ptx_op2(k, PTX_SUB, PTX_RN, rest[e], whole[e]);
    }
}

/* Splits two numbers into f16 pairs: high[0] and what is left, low. */
static void ptxk__gemm_split_sums(ptx_kernel *k, ptx_val a, ptx_val b, ptx_val *high, ptx_val *low) {
    ptx_val whole[2];
    *high = ptxk__pack_f32(k, PTX_F16, a, b);
    ptxk__widen_word(k, PTX_F16, *high, whole);
    a = ptx_op2(k, PTX_SUB, PTX_RN, a, whole[0]);
    b = ptx_op2(k, PTX_SUB, PTX_RN, b, whole[1]);
    *low = ptxk__pack_f32(k, PTX_F16, a, b);
}

/* Stores the sums of x that minima and offsets are multiplied by, as two f16 numbers each. sum: of this
   lane's quads, rounded. at: the sums of a tile of 8 columns. PAIRS: times 2^-10, of the 32 values of
   sub-blocks 2 t and 2 t + 1; NIBBLES and BLOCK: times 2^-4, of 16 values. */
static void ptxk__gemm_store_sums(ptx_kernel *k, const ptxk__gemm_x *x, ptx_val lane, ptx_val inside,
                                  ptx_val column, ptx_val at, const ptx_val sum[2]) {
    ptx_val a[2], high[2], low[2], here, p, half, other[2];
    uint32_t i, bytes = x->order == PTXK__GEMM_BYTES, pairs = bytes || x->order == PTXK__GEMM_PAIRS;
    for (i = 0; i < 2; i++) {
        a[i] = ptxk_warp_reduce(k, PTX_ADD, sum[i], pairs && !bytes ? 4 : 1, bytes ? 8 : pairs ? 32 : 4);
        a[i] = ptx_op2(k, PTX_MUL, PTX_RN, a[i], ptx_f32(pairs ? 0.0009765625 : 0.0625));
    }
    column = ptx_and(k, column, ptx_u32(7));
    if (pairs) { /* lanes 0 ... 3 have what lanes 4 g + t will read */
        ptxk__gemm_split_sums(k, a[0], a[1], &high[0], &high[1]);
        half = bytes ? ptx_shr(k, lane, ptx_u32(3)) : lane; /* BYTES: of 8 lanes the first */
        here = ptx_mad(k, column, ptx_u32(4), half);
        here = ptx_ptr_add(k, at, here, 8);
        half = bytes ? ptx_and(k, lane, ptx_u32(7)) : lane;
        p = ptx_setp(k, PTX_LT, half, ptx_u32(bytes ? 1 : 4));
        p = ptx_and(k, p, inside);
        ptx_guard(k, p);
        ptx_st_vec(k, PTX_B32, 2, ptx_at(here, 0), high);
        return;
    }
    if (x->order == PTXK__GEMM_BLOCK) { /* lane 4 w: halves 2 w and 2 w + 1, which lane t = w / 2 will read */
        ptxk__gemm_split_sums(k, a[0], a[1], &high[0], &low[0]);
        half = ptx_shr(k, lane, ptx_u32(2));
        here = ptx_mad(k, column, ptx_u32(8), half);
        here = ptx_ptr_add(k, at, here, 4);
        p = ptx_and(k, lane, ptx_u32(3));
        p = ptx_setp(k, PTX_EQ, p, ptx_u32(0));
        p = ptx_and(k, p, inside);
        ptx_guard(k, p);
        ptx_st(k, PTX_B32, ptx_at(here, 0), high[0]);
        ptx_guard(k, p);
        ptx_st(k, PTX_B32, ptx_at(here, 256), low[0]);
        return;
    }
    /* lane 4 w: sub-blocks 8 n + 2 a + h and 4 more, w = 4 n + 2 a + h; pairs over h */
    for (i = 0; i < 2; i++) {
        other[i] = ptx_shfl_bfly(k, a[i], ptx_u32(4), ptx_u32(31), ptx_u32(0xffffffffu));
        other[i] = ptx_as(other[i], PTX_F32);
        ptxk__gemm_split_sums(k, a[i], other[i], &high[i], &low[i]);
    }
    half = ptx_shr(k, lane, ptx_u32(4)); /* n */
    here = ptx_mad(k, column, ptx_u32(2), half);
    half = ptx_bfe(k, lane, ptx_u32(3), ptx_u32(1)); /* a */
    here = ptx_mad(k, here, ptx_u32(4), half);
    here = ptx_ptr_add(k, at, here, 4);
    p = ptx_and(k, lane, ptx_u32(7));
    p = ptx_setp(k, PTX_EQ, p, ptx_u32(0));
    p = ptx_and(k, p, inside);
    for (i = 0; i < 2; i++) { /* lane t = 2 n + i, which has sub-blocks 4 t ... */
        ptx_guard(k, p);
        ptx_st(k, PTX_B32, ptx_at(here, (int64_t)(8 * i)), high[i]);
        ptx_guard(k, p);
        ptx_st(k, PTX_B32, ptx_at(here, (int64_t)(8 * i + 256)), low[i]);
    }
}

/* Writes one form of a row of x. */
static void ptxk__gemm_write_form(ptx_kernel *k, const ptxk__gemm *f, const ptxk__gemm_x *x, ptx_val args,
                                  ptx_val column, ptx_val from, ptx_val n, ptx_val end, ptx_val scale,
                                  ptx_val to) {
    ptx_val units, items, i, t, w, unit, at, here, q[2], in[8], plain[4], words[3][8], rounded[8], x4, p,
        lane;
    ptx_val sum[2], base, tile, other;
    uint32_t e, h, per = x->groups / x->parts, planes = x->planes, size = x->type == PTX_F32 ? 2 : 1;
    units = ptxk__gemm_div_up(k, n, x->unit);
    items = ptx_mul(k, units, ptx_u32(4 * x->groups));
    lane = ptx_laneid(k);
    tile = ptx_div(k, column, ptx_u32(f->columns));
    base = ptx_mul_wide(k, tile, units);
    base = ptx_mul(k, base, ptx_u64(x->bytes));
    base = ptx_ptr_add(k, to, base, 1);
    tile = ptx_bfe(k, column, ptx_u32(3), ptx_u32(f->tiles > 16 ? 5 : 4));
    tile = ptx_and(k, tile, ptx_u32(f->tiles - 1)); /* tile of 8 columns */
    i = ptx_tid_x(k);
    i = ptx_sub(k, i, lane);
    i = ptx_warp_uniform(k, i);
    i = ptx_for(k, i, items, ptx_u32(32 * PTXK__GEMM_X_WARPS)); /* whole warps take part in the sums */
    {
        i = ptx_add(k, i, lane);
        p = ptx_setp(k, PTX_LT, i, items);
        t = ptx_and(k, i, ptx_u32(3));
        w = ptx_shr(k, i, ptx_u32(2));
        w = ptx_and(k, w, ptx_u32(x->groups - 1));
        unit = ptx_div(k, i, ptx_u32(4 * x->groups));
        if (x->order == PTXK__GEMM_PAIRS) {
            q[0] = ptx_mul(k, t, ptx_u32(64));
            q[0] = ptx_mad(k, w, ptx_u32(4), q[0]);
        } else if (x->order == PTXK__GEMM_NIBBLES) {
            q[0] = ptx_and(k, w, ptx_u32(3));
            q[0] = ptx_mul(k, q[0], ptx_u32(16));
            other = ptx_and(k, w, ptx_u32(4));
            q[0] = ptx_mad(k, other, ptx_u32(32), q[0]);
            q[0] = ptx_mad(k, t, ptx_u32(4), q[0]);
        } else if (x->order == PTXK__GEMM_BLOCK) {
            q[0] = ptx_mul(k, w, ptx_u32(32));
            q[0] = ptx_mad(k, t, ptx_u32(4), q[0]);
        } else if (x->order == PTXK__GEMM_HALVES || x->order == PTXK__GEMM_EIGHTS) {
            q[0] = ptx_mul(k, w, ptx_u32(32));
            q[0] = ptx_mad(k, t, ptx_u32(8), q[0]);
            if (x->order == PTXK__GEMM_HALVES) {
                other = ptx_and(k, t, ptx_u32(1));
                other = ptx_mul(k, other, ptx_u32(4));
                q[0] = ptx_sub(k, q[0], other);
            }
        } else if (x->order == PTXK__GEMM_BYTES) {
            q[0] = ptx_and(k, w, ptx_u32(6));
            q[0] = ptx_add(k, q[0], w); /* 32 (w & 6) + 16 (w & 1), as w = (w & 6) + (w & 1) */
            q[0] = ptx_mul(k, q[0], ptx_u32(16));
            q[0] = ptx_mad(k, t, ptx_u32(4), q[0]);
        } else {
            q[0] = ptx_mul(k, t, ptx_u32(x->groups * 8));
            q[0] = ptx_mad(k, w, ptx_u32(8), q[0]);
        }
        q[0] = ptx_mad(k, unit, ptx_u32(x->unit), q[0]);
        q[1] = ptx_add(k, q[0], ptx_u32(x->second));
        for (h = 0; h < 2; h++) {
            ptxk__gemm_load_quad(k, f, args, from, q[h], end, plain, in + 4 * h);
            for (e = 4 * h; e < 4 * h + 4; e++) in[e] = ptx_op2(k, PTX_MUL, PTX_RN, in[e], scale);
        }
        ptxk__gemm_split(k, x, in, words, rounded);
        here = ptx_mul_wide(k, unit, ptx_u32(x->bytes));
        at = ptx_ptr_add(k, base, here, 1);
        here = ptx_mul(k, tile, ptx_u32(per));
        if (x->parts > 1) { /* wide: a part has groups p and p + parts */
            other = f->wide ? ptx_and(k, w, ptx_u32(x->parts - 1)) : ptx_div(k, w, ptx_u32(per));
            other = ptx_mul(k, other, ptx_u32(x->part_bytes / (512 * planes * size)));
            here = ptx_add(k, here, other);
            w = f->wide ? ptx_div(k, w, ptx_u32(x->parts)) : ptx_and(k, w, ptx_u32(per - 1));
        }
        here = ptx_add(k, here, w);
        here = ptx_mul(k, here, ptx_u32(planes * size * 512));
        other = ptx_and(k, column, ptx_u32(7));
        other = ptx_mad(k, other, ptx_u32(4), t);
        here = ptx_mad(k, other, ptx_u32(16), here);
        x4 = ptx_ptr_add(k, at, here, 1);
        for (e = 0; e < planes * size; e++) {
            ptx_guard(k, p);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(x4, (int64_t)(512 * e)),
                       size > 1 ? words[e / 2] + 4 * (e & 1) : words[e]);
        }
        if (x->sums) {
            for (h = 0; h < 2; h++) {
                sum[h] = ptx_add(k, rounded[4 * h], rounded[4 * h + 1]);
                sum[h] = ptx_add(k, sum[h], rounded[4 * h + 2]);
                sum[h] = ptx_add(k, sum[h], rounded[4 * h + 3]);
            }
            here = ptx_mul(k, tile, ptx_u32(x->sums));
            at = ptx_ptr_add(k, at, here, 1);
            at = ptx_ptr_add(k, at, ptx_u32(x->part_bytes * x->parts), 1);
            ptxk__gemm_store_sums(k, x, lane, p, column, at, sum);
        }
    }
    ptx_end(k);
}

/* Groups: the row of x of a place among the tiles of columns, and whether there is one. Ends the block where
   there is no such tile, or nobody reads its prepared row. */
static ptx_val ptxk__gemm_source_row(ptx_kernel *k, const ptxk__gemm *f, ptx_val args, ptx_val column,
                                     ptx_val *exists) {
    ptx_val tile = ptx_div(k, column, ptx_u32(f->columns)), x, p, list, count, inside;
    ptx_var row;
    ptxk__gemm_place place = ptxk__gemm_find(k, f, args, tile);
    x = ptx_and(k, column, ptx_u32(f->columns - 1));
    inside = ptx_setp(k, PTX_LT, x, place.left);
    p = f->columns == 8 ? ptx_and(k, inside, place.exists) : place.exists;
    p = ptx_not(k, p);
    ptx_guard(k, p);
    ptx_ret(k);
    row = ptx_var_new(k, ptx_add(k, place.first, x));
    list = ptxk__arg_ptr(k, args, offsetof(ptxk_gemm_args, x_rows));
    p = ptx_setp(k, PTX_NE, ptx_as(list, PTX_U64), ptx_u64(0));
    p = ptx_and(k, p, inside);
    ptx_if(k, p);
    {
        x = ptx_get(k, row);
        x = ptx_ptr_add(k, list, x, 4);
        x = ptx_ld(k, PTX_U32, ptx_at(x, 0));
        ptx_set(k, row, x);
    }
    ptx_end(k);
    count = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, x_count));
    p = ptx_setp(k, PTX_EQ, count, ptx_u32(0));
    x = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, m));
    count = ptx_selp(k, x, count, p);
    x = ptx_get(k, row);
    p = ptx_setp(k, PTX_LT, x, count);
    *exists = ptx_and(k, p, inside);
    return x;
}

/* The first launch: a block prepares a row of x. The largest element is scaled to 2^14 ... 2^15, by a power
   of two, for f16; the row's factor undoes that, contains the norm's, and is NaN where an element is not
   finite. */
static void ptxk__gemm_prepare(ptx_module *m, const char *site, const ptxk__gemm *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__gemm_layout layout;
    ptx_val args, scratch, tid, column, from, n, x[4], plain[4], i, end, most, bad, squares, scale, factor, p,
        at, row;
    ptx_var state[3];
    uint32_t e;
    ptx_launch_bounds(k, 32 * PTXK__GEMM_X_WARPS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemm_args), 8);
    scratch = ptx_shared(k, "scratch", PTX_F32, 3 * PTXK__GEMM_X_WARPS, 16);
    tid = ptx_tid_x(k);
    column = ptx_ctaid_x(k);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, k));
    from = ptxk__arg_ptr(k, args, offsetof(ptxk_gemm_args, x));
    row = column;
    if (f->flags & PTXK_GEMM_GROUPED) row = ptxk__gemm_source_row(k, f, args, column, &p);
    i = ptxk__gemm_stride(k, args, offsetof(ptxk_gemm_args, x_stride), n);
    i = ptx_mul_wide(k, i, row);
    from = ptx_ptr_add(k, from, i, ptxk__kv_bytes(f->x_type));
    if (!(f->flags & PTXK_GEMM_GROUPED)) {
        i = ptxk__arg_u32(k, args, offsetof(ptxk_gemm_args, m));
        p = ptx_setp(k, PTX_LT, column, i);
    }
    end = ptx_selp(k, n, ptx_u32(0), p); /* rows past the last are zeros */
    for (e = 0; e < 3; e++) state[e] = ptx_var_new(k, ptx_f32(0));
    i = ptx_mul(k, tid, ptx_u32(4));
    i = ptx_for(k, i, end, ptx_u32(128 * PTXK__GEMM_X_WARPS));
    {
        most = ptx_get(k, state[0]);
        bad = ptx_get(k, state[1]);
        squares = ptx_get(k, state[2]);
        ptxk__gemm_load_quad(k, f, args, from, i, end, plain, x);
        for (e = 0; e < 4; e++) {
            factor = ptx_abs(k, x[e]);
            most = ptx_max(k, most, factor);
            bad = ptx_fma(k, x[e], ptx_f32(0), bad);
        }
        squares = ptxk_dot(k, 4, plain, plain, squares);
        ptx_set(k, state[0], most);
        ptx_set(k, state[1], bad);
        ptx_set(k, state[2], squares);
    }
    ptx_end(k);
    most = ptx_get(k, state[0]);
    most = ptxk_block_reduce(k, PTX_MAX, most, PTXK__GEMM_X_WARPS, scratch);
    bad = ptx_get(k, state[1]);
    bad = ptxk_block_reduce(k, PTX_ADD, bad, PTXK__GEMM_X_WARPS,
                            ptx_ptr_add(k, scratch, ptx_u32(4 * PTXK__GEMM_X_WARPS), 1));
    /* 2^(14 - e) for 2^e <= most < 2^(e + 1), within 2^-112 ... 2^126 */
    i = ptx_shr(k, ptx_as(most, PTX_U32), ptx_u32(23));
    i = ptx_max(k, i, ptx_u32(15));
    at = ptx_sub(k, i, ptx_u32(14)); /* the exponent of the inverse */
    i = ptx_sub(k, ptx_u32(268), i);
    i = ptx_shl(k, i, ptx_u32(23));
    at = ptx_shl(k, at, ptx_u32(23));
    scale = ptx_as(i, PTX_F32);
    factor = ptx_add(k, ptx_as(at, PTX_F32), bad);
    if (f->flags & PTXK_GEMM_NORM) {
        squares = ptx_get(k, state[2]);
        squares = ptxk_block_reduce(k, PTX_ADD, squares, PTXK__GEMM_X_WARPS,
                                    ptx_ptr_add(k, scratch, ptx_u32(8 * PTXK__GEMM_X_WARPS), 1));
        i = ptx_cvt(k, PTX_F32, n);
        i = ptx_op2(k, PTX_DIV, PTX_RN, squares, i);
        at = ptx_ld(k, PTX_F32, ptx_at(args, (int64_t)offsetof(ptxk_gemm_args, eps)));
        i = ptx_op2(k, PTX_ADD, PTX_RN, i, at);
        i = ptx_sqrt(k, i);
        i = ptxk_rcp_or_zero(k, i);
        i = ptx_fma(k, squares, ptx_f32(0), i); /* an infinite sum gives NaN instead of 0 */
        factor = ptx_op2(k, PTX_MUL, PTX_RN, factor, i);
    }
    ptxk__gemm_layout_of(k, f, args, &layout);
    at = ptx_ptr_add(k, layout.factors, column, 4);
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(at, 0), factor);
    for (e = 0; e < f->forms; e++)
        ptxk__gemm_write_form(k, f, &f->x[e], args, column, from, n, end, scale, layout.x[e]);
    ptx_ret(k);
}

/* -- gemm: a block of the second launch -- */

#define PTXK__GEMM_PENDING 96u /* most chunks on the way to shared memory, before sm_80 */

typedef struct ptxk__gemm_state {
    ptx_val args, tid, lane, warp, g, t, shared, flag;
    const ptxk__gemm_class *kind;
    const ptxk__gemm_x *form;
    ptxk__gemm_layout layout;
    ptx_val columns_left; /* rows of x from this tile of columns on, of its group */
    ptxk__gemm_place place; /* groups */
    ptx_val column_tile, slice, slices;
    ptx_val row_tile;   /* of this matrix */
    ptx_val n;          /* its rows */
    ptx_val weights[2]; /* gated pair: of both matrices */
    ptx_val y, bias[2], y_stride;
    ptx_val row_bytes, end, full; /* units: end of the slice; whole ones in a row */
    ptx_var unit;                 /* this step's first */
    ptx_var slot;                 /* shared offset of its weights */
    ptx_var from[PTXK__GEMM_M];   /* this lane's part of the next step's rows, in global memory */
    ptx_val to, cross;            /* where its chunks go in a slot; more where a pair's chunks are apart */
    ptx_val half;                 /* which chunk of a pair */
    ptx_var x_from;               /* this thread's part of the next unit's x */
    ptx_val x_to, x_valid, sums_valid;
    ptx_val x_at; /* where this lane's fragments are */
    ptx_val row;  /* offset of row g in a slot */
    ptx_var sum[PTXK__GEMM_M][PTXK__GEMM_N][4];
    ptx_val zero;
    ptx_val at, own; /* this step: row g of this unit, this lane's part of it */
    ptx_val acc[2][PTXK__GEMM_M][PTXK__GEMM_N][4];
    uint32_t chains;
    ptx_val constant[12]; /* of the format */
    ptx_val raw[PTXK__GEMM_M][2][8], more[PTXK__GEMM_M][2][8];
    ptx_val scale[PTXK__GEMM_M][2][8], factor[PTXK__GEMM_M][2], minimum[PTXK__GEMM_M][2];
    ptx_val low[PTXK__GEMM_M][4]; /* operand A of the product with the sums of x */
    /* rows that are 2-byte aligned: */
    ptx_var shift[PTXK__GEMM_M]
                 [2];              /* the address of row (i, h), whose last 4 bits are its offset in a step */
    ptx_val byte[PTXK__GEMM_M][2]; /* the step of row (i, h) in shared memory */
    ptx_val base[PTXK__GEMM_M][2], base_2[PTXK__GEMM_M][2]; /* words of this lane, see ptxk__gemm_word_base */
    ptx_val pick[PTXK__GEMM_M][2], pick_2[PTXK__GEMM_M][2];
    int words_aligned;
    ptx_val scales; /* Q6_K, readers: the unpacked ones of row g */
    ptxk__source source[PTXK__GEMM_M][2]; /* readers: row (i, h) from this unit on */
    ptx_val column_base; /* wide: the warp's first column of the tile */
    struct ptxk__gemm_wide *wide;
    ptx_val x_sums; /* wide: where the sums of x for the warp's columns are */
    struct {
        ptx_val to, words[4];
        int64_t offset;
        ptx_val guard;
    } pending[PTXK__GEMM_PENDING];
    uint32_t pendings;
} ptxk__gemm_state;

static int ptxk__gemm_is_shifted(const ptxk__gemm_class *c) {
    return !c->block->aligned && c->block->kind != PTXK__NUMBERS;
}

/* Copies 16 bytes, under a predicate (or NULL); zeros where `valid` (0 or 16; or NULL) is 0. */
static void ptxk__gemm_send(ptx_kernel *k, ptxk__gemm_state *s, ptx_val to, int64_t to_offset, ptx_val from,
                            int64_t offset, const ptx_val *p, const ptx_val *valid) {
    if (ptxk__has_cp_async(k)) {
        if (p) ptx_guard(k, *p);
        if (valid)
            ptx_cp_async_16_zfill(k, ptx_off(to, to_offset), ptx_off(from, offset), *valid);
        else
            ptx_cp_async_16(k, ptx_off(to, to_offset), ptx_off(from, offset));
    } else {
        ptx_val inside = p ? *p : to;
        if (valid) {
            ptx_val there = ptx_setp(k, PTX_NE, *valid, ptx_u32(0));
            inside = p ? ptx_and(k, *p, there) : there;
        }
        ptxk_load16(k, p || valid ? &inside : NULL, ptx_with(ptx_at(from, offset), PTX_NC),
                    s->pending[s->pendings].words);
        s->pending[s->pendings].to = to;
        s->pending[s->pendings].offset = to_offset;
        s->pending[s->pendings].guard = p ? *p : s->zero;
        s->pendings++;
    }
}

/* Before sm_80: stores what is on its way. */
static void ptxk__gemm_store_pending(ptx_kernel *k, ptxk__gemm_state *s, uint32_t first) {
    uint32_t i;
    for (i = first; i < s->pendings; i++) {
        if (ptx_type_of(s->pending[i].guard) == PTX_PRED) ptx_guard(k, s->pending[i].guard);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(s->pending[i].to, s->pending[i].offset), s->pending[i].words);
    }
    s->pendings = first;
}

static void ptxk__gemm_commit(ptx_kernel *k) {
    if (ptxk__has_cp_async(k)) ptx_cp_async_commit(k);
}

/* The shared offset of chunk c of a row's step. */
static uint32_t ptxk__gemm_chunk_offset(const ptxk__gemm_class *c, uint32_t chunk) {
    uint32_t per = c->unit_bytes / 16;
    return ptxk__gemm_is_shifted(c) ? chunk * 16 : chunk / per * c->area + chunk % per * 16;
}

/* The shared address `bytes` (u32) before `at`. */
static ptx_val ptxk__gemm_back(ptx_kernel *k, ptx_val at, ptx_val bytes) {
    at = ptx_sub(k, ptx_as(at, PTX_U32), bytes);
    return ptx_ptr(at, PTX_SHARED);
}

/* Copies the part of the next step's weights that unit v of it needs first. next: its first unit. slot:
   shared address. A lane copies one chunk of each pair of chunks: whole sectors. */
static void ptxk__gemm_copy_weights(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val next,
                                    ptx_val slot, uint32_t v) {
    const ptxk__gemm_class *c = s->kind;
    uint32_t per = c->unit_bytes / 16, pairs = (c->chunks + 1) / 2, first, last, i, j, before = s->pendings;
    int shifted = ptxk__gemm_is_shifted(c), tails = c->tails != 0;
    ptx_val have[2], last_have, from, to, p, q, edge, rest, start, shift = next, valid, here, other;
    if (shifted) {
        first = v ? (c->unit_bytes + 30 + 31) / 32 : 0;
        last = v ? pairs : (c->unit_bytes + 30 + 31) / 32;
    } else {
        first = v ? (per + 1) / 2 : 0;
        last = v ? pairs : (per + 1) / 2;
    }
    have[0] = next;
    if (v) have[0] = ptx_add(k, next, ptx_u32(1));
    have[0] = ptx_setp(k, PTX_LT, have[0], s->end);
    have[1] = have[0];
    if (!v && !shifted && per % 2) {
        have[1] = ptx_add(k, next, ptx_u32(1));
        have[1] = ptx_setp(k, PTX_LT, have[1], s->end);
    }
    edge = ptx_setp(k, PTX_EQ, s->half, ptx_u32(0));
    last_have = edge;
    if (!v && !shifted && per % 2) { /* the lower chunk of the unit, or the upper and the unit after it */
        last_have = ptx_or(k, edge, have[1]);
        last_have = ptx_and(k, last_have, have[0]);
    }
    if (tails) {
        rest = ptx_add(k, next, ptx_u32(PTXK__GEMM_PAIR_UNITS));
        p = ptx_setp(k, PTXK__GEMM_PAIR_UNITS * c->unit_bytes % 16 ? PTX_LT : PTX_LE, rest,
                     s->full); /* a row may end in a chunk */
        p = ptx_uniform(k, p);
        ptx_if(k, p);
    }
    for (i = 0; i < f->m; i++) {
        from = ptx_get(k, s->from[i]);
        to = ptx_ptr_add(k, slot, ptx_u32(i * 16 * c->pitch), 1);
        if (shifted) {
            shift = ptx_and(k, from, ptx_u64(31));
            shift = ptx_cvt(k, PTX_U32, shift);
            from = ptx_and(k, from, ptx_u64(~(uint64_t)31));
            other = ptx_cvt(k, PTX_U64, s->half);
            from = ptx_mad(k, other, ptx_u64(16), from);
            other = ptx_and(k, shift, ptx_u32(16)); /* the first chunk with bytes of the row comes first */
            to = ptxk__gemm_back(k, to, other);
        }
        from = ptx_ptr(from, PTX_GLOBAL);
        for (j = first; j < last; j++) {
            uint32_t a = ptxk__gemm_chunk_offset(c, 2 * j), b = ptxk__gemm_chunk_offset(c, 2 * j + 1);
            p = have[0];
            here = to;
            if (shifted && !j) { /* the first chunk may lie before the row */
                q = ptx_mad(k, s->half, ptx_u32(16), ptx_u32(15));
                q = ptx_setp(k, PTX_GE, q, shift);
                p = ptx_and(k, p, q);
            } else if (shifted && (2 * j + 2) * 16 > PTXK__GEMM_PAIR_UNITS * c->unit_bytes) {
                q = ptx_mad(k, s->half, ptx_u32(16), ptx_u32(32 * j)); /* and the last behind it */
                other = ptx_add(k, shift, ptx_u32(PTXK__GEMM_PAIR_UNITS * c->unit_bytes));
                q = ptx_setp(k, PTX_LT, q, other);
                p = ptx_and(k, p, q);
                if (2 * j + 1 >= c->chunks) p = ptx_and(k, p, edge);
            } else if (!shifted && 2 * j + 1 >= c->chunks) {
                p = ptx_and(k, p, edge);
            } else if (!shifted && b != a + 16) {
                p = last_have;
                here = ptx_add(k, s->cross, ptx_as(to, PTX_U32));
                here = ptx_ptr(here, PTX_SHARED);
            }
            ptxk__gemm_send(k, s, here, a, from, 32 * j, &p, NULL);
        }
    }
    if (!tails) return;
    ptxk__gemm_store_pending(k, s, before);
    ptx_else(k);
    ptx_comment(k, "the end of the rows: zeros behind it");
    start = ptx_mul(k, next, ptx_u32(c->unit_bytes));
    rest = ptx_sub(k, s->row_bytes, start);
    rest = ptx_min(k, rest, ptx_u32(PTXK__GEMM_PAIR_UNITS * c->unit_bytes));
    for (i = 0; i < f->m; i++) {
        from = ptx_get(k, s->from[i]);
        to = ptx_ptr_add(k, slot, ptx_u32(i * 16 * c->pitch), 1);
        other = rest;
        if (shifted) {
            shift = ptx_and(k, from, ptx_u64(31));
            shift = ptx_cvt(k, PTX_U32, shift);
            from = ptx_and(k, from, ptx_u64(~(uint64_t)31));
            q = ptx_cvt(k, PTX_U64, s->half);
            from = ptx_mad(k, q, ptx_u64(16), from);
            other = ptx_and(k, shift, ptx_u32(16));
            to = ptxk__gemm_back(k, to, other);
            other = ptx_add(k, rest, shift);
        }
        from = ptx_ptr(from, PTX_GLOBAL);
        start = ptx_mul(k, s->half, ptx_u32(16));
        other = ptx_sub(k, ptx_as(other, PTX_S32), ptx_as(start, PTX_S32));
        j = last;
        q = ptx_for(k, ptx_u32(first), ptx_u32(last), ptx_u32(1));
        {
            valid = ptx_mul(k, q, ptx_u32(32));
            here = ptx_ptr_add(k, from, valid, 1);
            start = ptx_sub(k, other, ptx_as(valid, PTX_S32));
            start = ptx_max(k, start, ptx_s32(0));
            start = ptx_min(k, start, ptx_s32(16));
            valid = ptx_as(start, PTX_U32);
            p = have[0];
            if (shifted) {
                p = ptx_mad(k, q, ptx_u32(2), s->half);
                start = ptx_mul(k, q, ptx_u32(32));
                p = ptx_setp(k, PTX_LT, p, ptx_u32(c->chunks));
                p = ptx_and(k, p, have[0]);
                last_have = ptx_mad(k, s->half, ptx_u32(16), ptx_u32(15));
                last_have = ptx_mad(k, q, ptx_u32(32), last_have);
                last_have = ptx_setp(k, PTX_GE, last_have, shift);
                p = ptx_and(k, p, last_have);
            } else {
                start = ptx_mad(k, q, ptx_u32(2), s->half);
                edge = ptx_div(k, start, ptx_u32(per));
                start = ptx_mul(k, q, ptx_u32(32));
                start = ptx_mad(k, edge, ptx_u32(c->area - 16 * per), start);
            }
            start = ptx_ptr_add(k, to, start, 1);
            if (ptxk__has_cp_async(k)) {
                ptx_guard(k, p);
                ptx_cp_async_16_zfill(k, ptx_off(start, 0), ptx_off(here, 0), valid);
            } else {
                ptx_val words[4], halves[8], in;
                for (j = 0; j < 8; j++) {
                    in = ptx_setp(k, PTX_GT, valid, ptx_u32(2 * j));
                    in = ptx_and(k, in, p);
                    halves[j] = ptx_ld_if(k, in, PTX_U16, ptx_at(here, 2 * j), ptx_imm(0));
                }
                for (j = 0; j < 4; j++) {
                    ptx_val pair[2];
                    pair[0] = ptx_as(halves[2 * j], PTX_B16);
                    pair[1] = ptx_as(halves[2 * j + 1], PTX_B16);
                    words[j] = ptx_pack(k, PTX_B32, 2, pair);
                }
                ptx_guard(k, p);
                ptx_st_vec(k, PTX_B32, 4, ptx_at(start, 0), words);
            }
        }
        ptx_end(k);
    }
    ptx_end(k);
}

/* Moves the next step's addresses on by a step. */
static void ptxk__gemm_advance_weights(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val from;
    uint32_t i;
    for (i = 0; i < f->m; i++) {
        from = ptx_get(k, s->from[i]);
        from = ptx_add(k, from, ptx_u64(PTXK__GEMM_PAIR_UNITS * s->kind->unit_bytes));
        ptx_set(k, s->from[i], from);
    }
}

/* Copies a part of x. from: this thread's first chunk. */
static void ptxk__gemm_copy_x(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val from,
                              uint32_t part, uint32_t slot, const ptx_val *p) {
    const ptxk__gemm_x *x = s->form;
    uint32_t chunks[2], threads = 32 * f->warps, at = 0, i, j;
    ptx_val last;
    chunks[0] = x->part_bytes / 16;
    chunks[1] = part + 1 == x->parts ? f->tiles * x->sums / 16 : 0;
    for (j = 0; j < 2; at += chunks[j++])
        for (i = 0; i < chunks[j]; i += threads) {
            const ptx_val *valid = f->columns > 8 ? NULL : j ? &s->sums_valid : &s->x_valid;
            last = s->zero;
            if (i + threads > chunks[j]) {
                last = ptx_setp(k, PTX_LT, s->tid, ptx_u32(chunks[j] - i));
                if (p) last = ptx_and(k, last, *p);
            }
            ptxk__gemm_send(k, s, s->x_to, (int64_t)(slot * f->stage + (at + i) * 16), from,
                            (int64_t)(part * x->part_bytes + (at + i) * 16),
                            i + threads > chunks[j] ? &last : p, valid);
        }
}

/* Operand B of the products of group w of a part, tile n of 8 columns, plane p: the first two registers and
   the last two are those of a product. */
static void ptxk__gemm_load_x(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t slot,
                              uint32_t w, uint32_t n, uint32_t plane, ptx_val b[8]) {
    const ptxk__gemm_x *x = s->form;
    uint32_t per = x->groups / x->parts, size = x->type == PTX_F32 ? 1024 : 512;
    uint32_t at = slot * f->stage + ((n * per + w % per) * x->planes + plane) * size;
    ptxk_load16(k, NULL, ptx_at(s->x_at, (int64_t)at), b);
    if (x->type == PTX_F32) ptxk_load16(k, NULL, ptx_at(s->x_at, (int64_t)(at + 512)), b + 4);
}

static ptx_val ptxk__gemm_f16x2(ptx_kernel *k, uint32_t bits) {
    ptx_val x = ptx_mov(k, ptx_b32(bits));
    return ptx_as(x, PTX_F16X2);
}

/* The low or the high half of x in both halves. Instructions on f16 pairs select halves of a source. */
static ptx_val ptxk__gemm_half(ptx_kernel *k, ptx_val x, uint32_t high) {
    ptx_val half[2], pair[2];
    ptx_unpack(k, PTX_F16, 2, x, half);
    pair[0] = pair[1] = half[high];
    return ptx_pack(k, PTX_B32, 2, pair);
}

static ptx_val ptxk__gemm_times(ptx_kernel *k, ptx_val a, ptx_val b) {
    a = ptx_op2(k, PTX_MUL, PTX_RN, ptx_as(a, PTX_F16X2), ptx_as(b, PTX_F16X2));
    return ptx_as(a, PTX_B32);
}

static ptx_val ptxk__gemm_minus(ptx_kernel *k, ptx_val a, ptx_val b) {
    a = ptx_op2(k, PTX_SUB, PTX_RN, ptx_as(a, PTX_F16X2), ptx_as(b, PTX_F16X2));
    return ptx_as(a, PTX_B32);
}

static ptx_val ptxk__gemm_fma(ptx_kernel *k, ptx_val a, ptx_val b, ptx_val c) {
    a = ptx_fma(k, ptx_as(a, PTX_F16X2), ptx_as(b, PTX_F16X2), ptx_as(c, PTX_F16X2));
    return ptx_as(a, PTX_B32);
}

static ptx_mem ptxk__gemm_row_at(const ptxk__gemm_state *s, ptx_val base, uint32_t i, uint32_t h,
                                 uint32_t at) {
    return ptx_at(base, (int64_t)((16 * i + 8 * h) * s->kind->pitch + at));
}

/* -- gemm: formats with a reader -- */

/* Block `which` of this unit in row (i, h). */
static ptxk__source ptxk__gemm_block(ptx_kernel *k, const ptxk__gemm_state *s, uint32_t i, uint32_t h,
                                     ptxk__number which) {
    const ptxk__block *b = s->kind->block;
    ptxk__source source = s->source[i][h];
    which = ptxk__number_of(k, which, 0, 0xffffffffu, b->bytes, 0);
    source.offset += which.c;
    if (which.known) return source;
    source = ptxk__source_at(ptx_ptr_add(k, source.at, which.v, 1), source.offset, ptxk__block_align(b));
    return source;
}

/* Two f16, from integers within -512 ... 511 or f16 values. */
static ptx_val ptxk__gemm_pack_scales(ptx_kernel *k, const ptxk__gemm_state *s, const ptx_val x[2]) {
    ptx_val y[2], pair;
    uint32_t e;
    for (e = 0; e < 2; e++) {
        if (ptx_type_of(x[e]) == PTX_F16) {
            y[e] = x[e];
            continue;
        }
        y[e] = ptx_add(k, ptx_as(x[e], PTX_U32), ptx_u32(0x6600)); /* 1536 + x */
        y[e] = ptx_cvt(k, PTX_U16, y[e]);
        y[e] = ptx_as(y[e], PTX_F16);
    }
    pair = ptx_pack(k, PTX_B32, 2, y);
    return ptx_type_of(x[0]) == PTX_F16 ? pair : ptxk__gemm_minus(k, pair, s->constant[4]);
}

/* Begins a unit: lane t unpacks the factors of shares 2 t and 2 t + 1 of its rows, into shared memory, where
   all four lanes of a row need them: 16 scales as f16, or 8 factors as f32. Their minima are its part of
   operand A of the product with the sums of x. */
static void ptxk__gemm_unpack_factors(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t v) {
    const ptxk__block *b = s->kind->block;
    const ptxk__reader *r = b->reader;
    uint32_t blocks = 256 / b->values, i, h, j;
    ptx_val to = ptx_ptr_add(k, s->scales, s->t, 8), words[PTXK__GEMM_M][2][2], pair[2];
    ptxk__number first = ptxk__number_of(k, ptxk__unknown(s->t), 0, 0xffffffffu, 2, 0);
    double factor = (double)b->first * (b->is_signed ? 1 : 16384); /* see ptxk__gemm_read */
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++) {
            s->source[i][h] = ptxk__source_at(s->byte[i][h], v * s->kind->unit_bytes,
                                              s->words_aligned ? 4 : 2);
            for (j = 0; j < 2; j++) {
                ptxk__number share = ptxk__number_add(k, first, ptxk__known(j)), inner = ptxk__known(0);
                ptxk__source source;
                ptxk__factors o;
                memset(&o, 0, sizeof o);
                if (blocks == 1) inner = share, share = ptxk__known(0);
                if (blocks == 4) inner = ptxk__known(j), share = ptxk__unknown(s->t);
                source = ptxk__gemm_block(k, s, i, h, share);
                r->factors(k, &source, inner, &o);
                if (!r->halves) {
                    words[i][h][j] = o.factor;
                    if (b->first < 1)
                        words[i][h][j] = ptx_op2(k, PTX_MUL, PTX_RN, o.factor, ptx_f32((double)b->first));
                    pair[0] = pair[1] = o.plus;
                    if (r->has_minimum) s->low[i][h + 2 * j] = ptx_pack(k, PTX_B32, 2, pair);
                    continue;
                }
                words[i][h][j] = ptxk__gemm_pack_scales(k, s, o.scale);
                if (!b->is_signed) words[i][h][j] = ptxk__gemm_times(k, words[i][h][j], s->constant[1]);
                if (r->has_minimum) {
                    pair[0] = ptx_as(o.minimum[0], PTX_S32);
                    pair[1] = ptx_as(o.minimum[1], PTX_S32);
                    s->low[i][h + 2 * j] = ptxk__gemm_pack_scales(k, s, pair);
                }
                if (j) continue;
                s->factor[i][h] = o.factor;
                if (factor < 1 || factor > 1)
                    s->factor[i][h] = ptx_op2(k, PTX_MUL, PTX_RN, o.factor, ptx_f32(factor));
                if (r->has_minimum)
                    s->minimum[i][h] = ptx_op2(k, PTX_MUL, PTX_RN, o.minimum_factor, ptx_f32(-16));
            }
        }
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* those before have been read */
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++)
            ptx_st_vec(k, r->halves ? PTX_B32 : PTX_F32, 2,
                       ptx_at(to, (int64_t)((16 * i + 8 * h) * PTXK__GEMM_SCALES)), words[i][h]);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
}

/* Operand A of group w, rows (i, h): lane t's two quads of share w, as f16. Values are integers, signed ones
   as 1152 + q, less 1152. With scales of halves: times the scale; unsigned ones are 2^-24 q as subnormal
   numbers, scales 2^10 times themselves, all of it exact. */
static void ptxk__gemm_read(ptx_kernel *k, ptxk__gemm_state *s, uint32_t w, uint32_t i, uint32_t h,
                            ptx_val a[2][4]) {
    const ptxk__block *b = s->kind->block;
    const ptxk__reader *r = b->reader;
    uint32_t shares = b->values / 32, at = (16 * i + 8 * h) * PTXK__GEMM_SCALES + 4 * w, e;
    ptxk__source *row = &s->source[i][h], source = ptxk__gemm_block(k, s, i, h, ptxk__known(w / shares));
    ptxk__share_of p;
    ptx_val quad[2], scale[2], even, odd, less;
    p.share = ptxk__known(w % shares);
    p.whole = 0;
    p.lane = s->t;
    r->values(k, &source, &p, quad);
    row->known = source.known; /* for the blocks that follow */
    memcpy(row->words, source.words, sizeof row->words);
    memcpy(row->pick, source.pick, sizeof row->pick);
    if (!r->halves) {
        s->factor[i][h] = ptx_ld(k, PTX_F32, ptx_at(s->scales, (int64_t)at));
    } else if (r->quads == PTXK__QUADS_16_APART) {
        even = ptx_ld(k, PTX_B32, ptx_at(s->scales, (int64_t)at));
        for (e = 0; e < 2; e++) scale[e] = ptxk__gemm_half(k, even, e);
    } else { /* both quads are of one half */
        even = ptx_ptr_add(k, s->scales, s->constant[2], 1);
        scale[0] = scale[1] = ptx_ld(k, PTX_B16, ptx_at(even, (int64_t)at));
        scale[0] = scale[1] = ptx_pack(k, PTX_B32, 2, scale);
    }
    for (e = 0; e < 2; e++) {
        odd = quad[e];
        if (b->is_signed) {
            even = ptx_lop3(k, odd, ptx_b32(0x00ff00ff), ptx_b32(0x64806480), ptx_imm(0x6a)); /* & ^ */
            odd = ptxk__shr_b32(k, odd, ptx_u32(8));
            odd = ptx_lop3(k, odd, ptx_b32(0x00ff00ff), ptx_b32(0x64806480), ptx_imm(0x6a));
        } else if (!r->halves) {
            even = ptx_lop3(k, odd, ptx_b32(0x00ff00ff), ptx_b32(0x64006400), ptx_imm(0xea)); /* & | */
            odd = ptx_prmt(k, odd, ptx_b32(0x64646464), ptx_b32(0x4341));
        } else {
            even = ptx_and(k, odd, ptx_b32(0x00ff00ff));
            odd = ptx_prmt(k, odd, ptx_b32(0), ptx_b32(0x4341));
        }
        if (!r->halves) {
            a[e][h] = ptxk__gemm_minus(k, even, s->constant[0]);
            a[e][h + 2] = ptxk__gemm_minus(k, odd, s->constant[0]);
        } else if (b->is_signed) {
            less = ptxk__gemm_times(k, scale[e], s->constant[3]);
            a[e][h] = ptxk__gemm_fma(k, even, scale[e], less);
            a[e][h + 2] = ptxk__gemm_fma(k, odd, scale[e], less);
        } else {
            a[e][h] = ptxk__gemm_times(k, even, scale[e]);
            a[e][h + 2] = ptxk__gemm_times(k, odd, scale[e]);
        }
    }
}

/* -- gemm: formats -- */

/* What depends on the lane only.
   Q4_K, Q5_K: lane t has bytes 32 t ... of the quants, which are sub-blocks 2 t and 2 t + 1. Their scales and
   minima become the bytes of a word: bytes 2 i, 2 i + 1, i = t & 1, of the first and second word of scales,
   which have all 6 bits (t < 2) or the upper two, and of the third. */
static void ptxk__gemm_lane(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val p, odd;
    uint32_t id = s->kind->block->id;
    if (id == PTXK_Q4_K || id == PTXK_Q5_K) {
        odd = ptx_and(k, s->t, ptx_u32(1));
        p = ptx_setp(k, PTX_EQ, odd, ptx_u32(0));
        s->constant[0] = ptx_selp(k, ptx_b32(0x5410), ptx_b32(0x7632), p);
        p = s->constant[9] = ptx_setp(k, PTX_LT, s->t, ptx_u32(2));
        s->constant[1] = ptx_selp(k, ptx_b32(0x3f3f3f3f), ptx_b32(0), p);
        s->constant[2] = ptx_selp(k, ptx_b32(0), ptx_b32(0x0f0f0f0f), p);
        s->constant[3] = ptx_selp(k, ptx_b32(0), ptx_b32(0x30303030), p);
        s->constant[4] = ptxk__gemm_f16x2(k, id == PTXK_Q4_K ? 0x40005000 : 0x4c005000);
        s->constant[5] = ptxk__gemm_f16x2(k, id == PTXK_Q4_K ? 0xe800f800u : 0xf400f800u);
        s->constant[6] = ptxk__gemm_f16x2(k, 0x98009800u); /* -2^-9 */
        s->constant[7] = ptxk__gemm_f16x2(k, 0x40004000);
        if (id == PTXK_Q5_K) {
            odd = ptx_mul(k, s->t, ptx_u32(2));
            s->constant[8] = ptx_sub(k, ptx_u32(36), odd); /* rotates bit 2 t to bit 4, and 2 t + 1 to 5 */
        }
    }
    if (s->kind->block->reader) {
        const ptxk__block *b = s->kind->block;
        s->constant[0] = ptxk__gemm_f16x2(k, b->is_signed ? 0x64806480 : 0x64006400); /* 1152 or 1024 */
        s->constant[1] = ptxk__gemm_f16x2(k, 0x64006400);
        p = ptx_shr(k, s->t, ptx_u32(1));
        s->constant[2] = ptx_mul(k, p, ptx_u32(2));
        s->constant[3] = ptxk__gemm_f16x2(k, 0xe480e480u); /* -1152 */
        s->constant[4] = ptxk__gemm_f16x2(k, 0x66006600);  /* 1536 */
        s->constant[5] = ptx_mov(k, ptx_f32(16)); /* undoes the scale of the sums */
    }
    if (id == PTXK_Q8_0) s->constant[0] = ptxk__gemm_f16x2(k, 0x64806480); /* 1152 */
    if (id == PTXK_Q4_0) {
        s->constant[0] = ptxk__gemm_f16x2(k, 0x64086408); /* 1032 */
        s->constant[1] = ptxk__gemm_f16x2(k, 0x54805480); /* 72 */
    }
    if (id == PTXK_Q6_K) { /* 32, -1152 * 32, -2^-15; exact, for high nibbles (odd lanes): 2 instead of 32 */
        static const uint32_t even[3] = {0x50005000, 0xf880f880u, 0x82008200u},
                              high[3] = {0x40004000, 0xe880e880u, 0x90009000u};
        uint32_t i;
        odd = ptx_and(k, s->t, ptx_u32(1));
        p = ptx_setp(k, PTX_EQ, odd, ptx_u32(0));
        for (i = 0; i < 3; i++) {
            s->constant[4 + i] = ptx_mov(k, ptx_b32(even[i]));
            if (f->precision == PTXK_GEMM_EXACT)
                s->constant[4 + i] = ptx_selp(k, s->constant[4 + i], ptx_b32(high[i]), p);
        }
    }
}

/* Computes from where words of row (i, h) of a step are read, and how the halves of two are joined: base and
   pick for offsets that are multiples of 4, base_2 and pick_2 for others. Where rows are 4-byte aligned,
   words at multiples of 4 are read as they are. row: where the row's first chunk is. shift: of the step in
   it. */
static void ptxk__gemm_word_base(ptx_kernel *k, ptxk__gemm_state *s, uint32_t i, uint32_t h, ptx_val row,
                                 ptx_val shift) {
    ptx_val odd, p;
    if (s->words_aligned) {
        s->base[i][h] = s->base_2[i][h] = ptx_ptr_add(k, row, shift, 1);
        return;
    }
    odd = ptx_and(k, shift, ptx_u32(2));
    shift = ptx_sub(k, shift, odd);
    s->base[i][h] = ptx_ptr_add(k, row, shift, 1);
    s->base_2[i][h] = ptx_ptr_add(k, s->base[i][h], odd, 2);
    p = ptx_setp(k, PTX_EQ, odd, ptx_u32(0));
    s->pick[i][h] = ptx_selp(k, ptx_b32(0x3210), ptx_b32(0x5432), p);
    s->pick_2[i][h] = ptx_selp(k, ptx_b32(0x5432), ptx_b32(0x3210), p);
}

/* The word of this lane at byte offset `at` of row (i, h). */
static ptx_val ptxk__gemm_row_word(ptx_kernel *k, const ptxk__gemm_state *s, uint32_t i, uint32_t h,
                                   uint32_t at) {
    ptx_val from = at % 4 ? s->base_2[i][h] : s->base[i][h], pick, word[2];
    word[0] = ptx_ld(k, PTX_B32, ptx_at(from, (int64_t)(at / 4 * 4)));
    if (s->words_aligned && at % 4 == 0) return word[0];
    word[1] = ptx_ld(k, PTX_B32, ptx_at(from, (int64_t)(at / 4 * 4 + 4)));
    pick = s->words_aligned ? ptx_b32(0x5432) : at % 4 ? s->pick_2[i][h] : s->pick[i][h];
    return ptx_prmt(k, word[0], word[1], pick);
}

/* Q6_K: the scales of the warp's rows as f16, 32 times them, to shared memory. Lane t unpacks four of each of
   its rows, 4 t ... 4 t + 3: these are also its part of operand A of the product with the sums of x. */
static void ptxk__gemm_unpack_scales(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t v) {
    ptx_val x, to = ptx_ptr_add(k, s->scales, s->t, 8), pairs[PTXK__GEMM_M][2][2];
    uint32_t i, h, e;
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++) {
            x = ptxk__gemm_row_word(k, s, i, h, v * s->kind->unit_bytes + 192);
            x = ptx_xor(k, x, ptx_b32(0x80808080u));
            for (e = 0; e < 2; e++) {
                pairs[i][h][e] = ptx_prmt(k, x, ptx_b32(0x64646464), ptx_b32(e ? 0x4342 : 0x4140));
                pairs[i][h][e] = ptxk__gemm_fma(k, pairs[i][h][e], s->constant[4], s->constant[5]);
                s->low[i][h + 2 * e] = ptxk__gemm_times(k, pairs[i][h][e], s->constant[6]);
            }
        }
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu)); /* the scales before have been read */
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++)
            ptx_st_vec(k, PTX_B32, 2, ptx_at(to, (int64_t)((16 * i + 8 * h) * PTXK__GEMM_SCALES)),
                       pairs[i][h]);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
}

/* Begins unit v of the step: what its products need once. */
static void ptxk__gemm_begin_unit(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t v) {
    uint32_t id = s->kind->block->id, i, h;
    ptx_val slot = ptx_get(k, s->slot), head[4], x, y, z;
    s->at = ptx_ptr_add(k, s->row, slot, 1);
    if (!ptxk__gemm_is_shifted(s->kind) && v) s->at = ptx_ptr_add(k, s->at, ptx_u32(v * s->kind->area), 1);
    s->own = s->at;
    for (i = 0; i < f->m && ptxk__gemm_is_shifted(s->kind); i++)
        for (h = 0; h < 2; h++) {
            uint32_t bytes = v * s->kind->unit_bytes;
            x = ptx_get(k, s->shift[i][h]);
            x = ptx_and(k, x, ptx_u32(14));
            y = ptx_ptr_add(k, s->at, ptx_u32((16 * i + 8 * h) * s->kind->pitch), 1);
            s->byte[i][h] = ptx_ptr_add(k, y, x, 1);
            if (s->kind->block->reader) continue;
            y = ptx_ptr_add(k, y, s->t, 4);
            ptxk__gemm_word_base(k, s, i, h, y, x);
            if (id == PTXK_Q6_K) s->factor[i][h] = ptxk__load_f16(k, s->byte[i][h], bytes + 208);
        }
    if (id == PTXK_Q6_K) ptxk__gemm_unpack_scales(k, f, s, v);
    if (s->kind->block->reader) ptxk__gemm_unpack_factors(k, f, s, v);
    if (id == PTXK_Q4_K || id == PTXK_Q5_K || s->kind->block->kind == PTXK__NUMBERS)
        s->own = ptx_ptr_add(k, s->at, s->t, 32);
    if (id == PTXK_Q4_K || id == PTXK_Q5_K) {
        for (i = 0; i < f->m; i++)
            for (h = 0; h < 2; h++) {
                ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->at, i, h, 0), head);
                x = ptx_prmt(k, head[1], head[2], s->constant[0]);
                z = ptx_shr(k, ptx_as(head[3], PTX_U32), ptx_u32(4));
                z = ptx_prmt(k, head[3], ptx_as(z, PTX_B32), s->constant[0]);
                y = ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(2));
                if (f->n < 8) {
                    x = ptx_and(k, x, s->constant[1]);
                    x = ptx_lop3(k, z, s->constant[2], x, ptx_imm(0xea));
                    x = ptx_lop3(k, ptx_as(y, PTX_B32), s->constant[3], x, ptx_imm(0xea));
                } else { /* the same with fewer registers */
                    x = ptx_and(k, x, ptx_b32(0x3f3f3f3f));
                    z = ptx_and(k, z, ptx_b32(0x0f0f0f0f));
                    z = ptx_lop3(k, ptx_as(y, PTX_B32), ptx_b32(0x30303030), z, ptx_imm(0xea));
                    x = ptx_selp(k, x, z, s->constant[9]);
                }
                y = ptx_prmt(k, x, ptx_b32(0x64646464), ptx_b32(0x4140)); /* 1024 + the scales */
                y = ptxk__gemm_fma(k, y, s->constant[4], s->constant[5]);
                s->scale[i][h][0] = ptxk__gemm_half(k, y, 0);
                s->scale[i][h][1] = ptxk__gemm_half(k, y, 1);
                s->more[i][h][4] = x; /* the minima serve at the end */
            }
    }
}

/* The factors of the unit, and the minima as operand A. */
static void ptxk__gemm_minima(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val head, half[2], y;
    uint32_t i, h;
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++) {
            y = ptx_prmt(k, s->more[i][h][4], ptx_b32(0x64646464), ptx_b32(0x4342));
            y = ptxk__gemm_fma(k, y, s->constant[6], s->constant[7]);
            s->low[i][h] = s->low[i][h + 2] = y;
            head = ptx_ld(k, PTX_B32, ptxk__gemm_row_at(s, s->at, i, h, 0));
            ptx_unpack(k, PTX_F16, 2, head, half);
            s->factor[i][h] = ptx_cvt(k, PTX_F32, half[0]);
            s->minimum[i][h] = ptx_cvt(k, PTX_F32, half[1]);
        }
}

/* Operand A of the two products of group w, for tile i of 16 rows: a[0] and a[1]. rest, or NULL: what they
   lack, where weights do not fit into 11 bits. */
static void ptxk__gemm_weights(ptx_kernel *k, ptxk__gemm_state *s, uint32_t v, uint32_t w, uint32_t i,
                               ptx_val a[2][4], ptx_val rest[2][4]) {
    uint32_t id = s->kind->block->id, at = v * s->kind->unit_bytes, h, e;
    ptx_val x, y, low, high, scale[2];
    for (h = 0; h < 2; h++) {
        if (s->kind->block->reader) {
            ptxk__gemm_read(k, s, w, i, h, a);
            continue;
        }
        if (id == PTXK_Q4_K) {
            if (w % 4 == 0)
                ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->own, i, h, 16 + 4 * w), s->raw[i][h]);
            x = s->raw[i][h][w % 4];
            y = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(8)), PTX_B32);
            a[0][h] = ptx_and(k, x, ptx_b32(0x000f000f)); /* as f16: times 2^-24 */
            a[0][h + 2] = ptx_and(k, y, ptx_b32(0x000f000f));
            a[1][h] = ptx_and(k, x, ptx_b32(0x00f000f0)); /* 2^-20 */
            a[1][h + 2] = ptx_and(k, y, ptx_b32(0x00f000f0));
        } else if (id == PTXK_Q5_K) {
            if (w % 4 == 0) {
                ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->own, i, h, 48 + 4 * w), s->raw[i][h]);
                ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->at, i, h, 16 + 4 * w), s->more[i][h]);
            }
            x = s->raw[i][h][w % 4];
            y = s->more[i][h][w % 4];
            y = ptx_shf_l(k, y, y, s->constant[8]);
            low = ptx_and(k, x, ptx_b32(0x0f0f0f0f));
            low = ptx_lop3(k, y, ptx_b32(0x10101010), low, ptx_imm(0xea));
            x = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(3)), PTX_B32);
            high = ptx_and(k, x, ptx_b32(0x1e1e1e1e)); /* twice */
            high = ptx_lop3(k, y, ptx_b32(0x20202020), high, ptx_imm(0xea));
            a[0][h] = ptx_and(k, low, ptx_b32(0x00ff00ff));
            a[0][h + 2] = ptx_prmt(k, low, ptx_b32(0), ptx_b32(0x4341));
            a[1][h] = ptx_and(k, high, ptx_b32(0x00ff00ff));
            a[1][h + 2] = ptx_prmt(k, high, ptx_b32(0), ptx_b32(0x4341));
        } else if (id == PTXK_Q6_K) { /* w = 4 n + 2 a + h of the format */
            uint32_t second = w >> 1 & 1;
            x = ptxk__gemm_row_word(k, s, i, h, at + 16 * w);
            if (!second)
                s->more[i][h][w & 1] =
                    ptxk__gemm_row_word(k, s, i, h, at + 128 + 32 * (w >> 2) + 16 * (w & 1));
            y = s->more[i][h][w & 1];
            if (w % 4 == 0)
                ptxk_load16(k, NULL,
                            ptx_at(s->scales, (int64_t)((16 * i + 8 * h) * PTXK__GEMM_SCALES + 4 * w)),
                            s->scale[i][h]);
            for (e = 0; e < 2; e++) scale[e] = ptxk__gemm_half(k, s->scale[i][h][2 * e + second], w & 1);
            if (rest) { /* scale * q goes up to 63 * 128: nibbles and upper bits apart are exact */
                high = ptx_as(ptx_shr(k, ptx_as(y, PTX_U32), ptx_u32(second ? 6 : 4)), PTX_B32);
                low = ptx_shl(k, y, ptx_u32(second ? 2 : 4));
                y = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(8)), PTX_B32);
                for (e = 0; e < 4; e++) {
                    ptx_val *nibbles = &a[e & 1][h + (e & 2)], *upper = &rest[e & 1][h + (e & 2)];
                    *nibbles = ptx_and(k, e & 2 ? y : x, ptx_b32(e & 1 ? 0x00f000f0 : 0x000f000f));
                    *upper = ptx_and(k, e & 2 ? high : low, ptx_b32(e & 1 ? 0x03000300 : 0x00300030));
                    *nibbles = ptxk__gemm_times(k, *nibbles, scale[e & 1]);
                    *upper = ptxk__gemm_times(k, *upper, scale[e & 1]);
                }
                continue;
            }
            high = second ? ptx_as(ptx_shr(k, ptx_as(y, PTX_U32), ptx_u32(2)), PTX_B32) : y;
            y = ptx_shl(k, y, ptx_u32(second ? 2 : 4));
            low = ptx_and(k, x, ptx_b32(0x0f0f0f0f));
            low = ptx_lop3(k, y, ptx_b32(0x30303030), low, ptx_imm(0xea));
            x = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(4)), PTX_B32);
            x = ptx_and(k, x, ptx_b32(0x0f0f0f0f));
            high = ptx_lop3(k, high, ptx_b32(0x30303030), x, ptx_imm(0xea));
            a[0][h] = ptx_and(k, low, ptx_b32(0x00ff00ff));
            a[0][h + 2] = ptx_prmt(k, low, ptx_b32(0), ptx_b32(0x4341));
            a[1][h] = ptx_and(k, high, ptx_b32(0x00ff00ff));
            a[1][h + 2] = ptx_prmt(k, high, ptx_b32(0), ptx_b32(0x4341));
            for (e = 0; e < 4; e++)
                a[e & 1][h + (e & 2)] = ptxk__gemm_times(k, a[e & 1][h + (e & 2)], scale[e & 1]);
            continue;
        } else if (id == PTXK_Q8_0) {
            s->factor[i][h] = ptxk__load_f16(k, s->byte[i][h], at + 34 * w);
            for (e = 0; e < 2; e++) {
                x = ptxk__gemm_row_word(k, s, i, h, at + 34 * w + 2 + 16 * e);
                y = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(8)), PTX_B32);
                x = ptx_lop3(k, x, ptx_b32(0x00ff00ff), ptx_b32(0x64806480),
                             ptx_imm(0x6a)); /* & ^: 1152 + q */
                y = ptx_lop3(k, y, ptx_b32(0x00ff00ff), ptx_b32(0x64806480), ptx_imm(0x6a));
                a[e][h] = ptxk__gemm_minus(k, x, s->constant[0]);
                a[e][h + 2] = ptxk__gemm_minus(k, y, s->constant[0]);
            }
            continue;
        } else if (id == PTXK_Q4_0) {
            s->factor[i][h] = ptxk__load_f16(k, s->byte[i][h], at + 18 * w);
            x = ptxk__gemm_row_word(k, s, i, h, at + 18 * w + 2);
            for (e = 0; e < 2; e++) {
                low = ptx_lop3(k, x, ptx_b32(0x000f000f), ptx_b32(0x64006400), ptx_imm(0xea));  /* 1024 + q */
                high = ptx_lop3(k, x, ptx_b32(0x00f000f0), ptx_b32(0x54005400), ptx_imm(0xea)); /* 64 + q */
                a[0][h + 2 * e] = ptxk__gemm_minus(k, low, s->constant[0]);
                a[1][h + 2 * e] = ptxk__gemm_minus(k, high, s->constant[1]);
                if (!e) x = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(8)), PTX_B32);
            }
            continue;
        } else {
            ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->own, i, h, 16 * w), s->raw[i][h]);
            a[0][h] = s->raw[i][h][0];
            a[0][h + 2] = s->raw[i][h][1];
            a[1][h] = s->raw[i][h][2];
            a[1][h + 2] = s->raw[i][h][3];
            continue;
        }
        a[0][h] = ptxk__gemm_times(k, a[0][h], s->scale[i][h][0]);
        a[0][h + 2] = ptxk__gemm_times(k, a[0][h + 2], s->scale[i][h][0]);
        a[1][h] = ptxk__gemm_times(k, a[1][h], s->scale[i][h][1]);
        a[1][h + 2] = ptxk__gemm_times(k, a[1][h + 2], s->scale[i][h][1]);
    }
}

/* sum += factor * acc for both halves of a tile of 16 rows. */
static void ptxk__gemm_add(ptx_kernel *k, ptxk__gemm_state *s, uint32_t i, uint32_t n, const ptx_val acc[4],
                           const ptx_val *factor) {
    ptx_val x;
    uint32_t e;
    for (e = 0; e < 4; e++) {
        x = ptx_get(k, s->sum[i][n][e]);
        x = factor ? ptx_fma(k, factor[e / 2], acc[e], x) : ptx_op2(k, PTX_ADD, PTX_RN, x, acc[e]);
        ptx_set(k, s->sum[i][n][e], x);
    }
}

/* f32: 8 values of this lane, in rows g and g + 8, as tf32; rest: what those lack. */
static void ptxk__gemm_words(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t i,
                             ptx_val a[4][4], ptx_val rest[4][4]) {
    ptx_val words[8], x;
    uint32_t h, e;
    for (h = 0; h < 2; h++) {
        ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->own, i, h, 0), words);
        ptxk_load16(k, NULL, ptxk__gemm_row_at(s, s->own, i, h, 16), words + 4);
        for (e = 0; e < 8; e++) {
            if (f->precision == PTXK_GEMM_FAST) {
                x = ptx_cvt_with(k, PTX_RNA, PTX_TF32, ptx_as(words[e], PTX_F32));
            } else {
                x = ptx_and(k, words[e], ptx_b32(0xffffe000u));
                rest[e / 2][h + 2 * (e & 1)] =
                    ptx_op2(k, PTX_SUB, PTX_RN, ptx_as(words[e], PTX_F32), ptx_as(x, PTX_F32));
            }
            a[e / 2][h + 2 * (e & 1)] = x;
        }
    }
}

/* Multiplies group w of unit v: all tiles of rows by all columns. */
static void ptxk__gemm_group(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t v, uint32_t w,
                             uint32_t slot) {
    const ptxk__gemm_x *x = s->form;
    ptx_val a[PTXK__GEMM_M][4][4], rest[PTXK__GEMM_M][4][4], b[8];
    uint32_t i, n, p, e, products = s->kind->format->kind == PTXK__GEMM_WORDS ? 4 : 2;
    int two = f->precision == PTXK_GEMM_EXACT && (products == 4 || s->kind->block->id == PTXK_Q6_K);
    for (i = 0; i < f->m; i++) {
        if (products == 4)
            ptxk__gemm_words(k, f, s, i, a[i], rest[i]);
        else
            ptxk__gemm_weights(k, s, v, w, i, a[i], two ? rest[i] : NULL);
    }
    for (n = 0; n < f->n; n++) {
        if (s->kind->format->kind == PTXK__GEMM_BLOCKS)
            for (i = 0; i < f->m; i++)
                for (e = 0; e < 4; e++) s->acc[0][i][n][e] = s->zero;
        for (p = 0; p < x->planes; p++) {
            ptxk__gemm_load_x(k, f, s, slot, w, n, p, b);
            for (e = 0; e < products; e++)
                for (i = 0; i < f->m; i++) {
                    ptx_val *acc = s->acc[s->chains > 1 ? e & 1 : 0][i][n];
                    if (two && !(products == 4 && p)) /* f32: without the product of the smaller ones */
                        ptxk__tile_mma(k, x->type, acc, rest[i][e], b + 2 * e);
                    ptxk__tile_mma(k, x->type, acc, a[i][e], b + 2 * e);
                }
        }
        if (s->kind->format->kind == PTXK__GEMM_BLOCKS)
            for (i = 0; i < f->m; i++) ptxk__gemm_add(k, s, i, n, s->acc[0][i][n], s->factor[i]);
    }
}

/* Adds the unit's products to the sums. */
static void ptxk__gemm_end_unit(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t slot) {
    const ptxk__gemm_x *x = s->form;
    uint32_t i, n, e, chain;
    const ptxk__reader *r = s->kind->block->reader;
    ptx_val b[2], d[PTXK__GEMM_M][4], factor[2];
    if (x->order == PTXK__GEMM_PAIRS) ptxk__gemm_minima(k, f, s);
    for (n = 0; n < f->n; n++) {
        if (s->kind->format->kind == PTXK__GEMM_BLOCKS && !x->sums) continue;
        for (i = 0; i < f->m; i++)
            for (e = 0; e < 4; e++) d[i][e] = s->zero;
        for (e = 0; e < x->sums / 256; e++) {
            ptx_val at = ptx_ptr_add(k, s->shared, s->lane, 8);
            uint32_t offset = 2 * f->weights + slot * f->stage + x->part_bytes + n * x->sums + 256 * e;
            ptx_ld_vec(k, PTX_B32, 2, ptx_at(at, (int64_t)offset), b);
            for (i = 0; i < f->m && x->order == PTXK__GEMM_NIBBLES; i++)
                ptxk__tile_mma(k, PTX_F16, s->acc[0][i][n], s->low[i], b);
            for (i = 0; i < f->m && r; i++) ptxk__tile_mma(k, PTX_F16, d[i], s->low[i], b);
        }
        for (i = 0; i < f->m; i++) {
            factor[0] = factor[1] = s->constant[5];
            if (r && x->sums) ptxk__gemm_add(k, s, i, n, d[i], r->halves ? s->minimum[i] : factor);
            if (s->kind->format->kind == PTXK__GEMM_BLOCKS) continue;
            for (chain = 0; chain < s->chains; chain++)
                ptxk__gemm_add(k, s, i, n, s->acc[chain][i][n],
                               s->kind->format->kind == PTXK__GEMM_FOLDED ? s->factor[i] : NULL);
            if (x->order == PTXK__GEMM_PAIRS) {
                ptxk__tile_mma(k, PTX_F16, d[i], s->low[i], b);
                ptxk__gemm_add(k, s, i, n, d[i], s->minimum[i]);
            }
        }
    }
}

/* The products of the part of a unit that is next: waits for it, issues the copies of later ones. v, part:
   which of the step. */
static void ptxk__gemm_part(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t v,
                            uint32_t part) {
    const ptxk__gemm_x *x = s->form;
    uint32_t slot = (v * x->parts + part) & 1, w, i, n, e, c, per = x->groups / x->parts;
    ptx_val unit, p, from, here;
    if (ptxk__has_cp_async(k)) ptx_cp_async_wait(k, x->parts == 1 ? 1 : 0);
    ptx_bar_sync(k, ptx_imm(0));
    unit = ptx_get(k, s->unit);
    from = ptx_get(k, s->x_from);
    if (part + 1 == x->parts) {
        here = ptx_add(k, unit, ptx_u32(v + 1));
        p = ptx_setp(k, PTX_LT, here, s->end);
        from = ptx_add(k, from, ptx_u64(x->bytes));
        ptx_set(k, s->x_from, from);
        from = ptx_ptr(from, PTX_GLOBAL);
        ptxk__gemm_copy_x(k, f, s, from, 0, !slot, &p);
    } else {
        from = ptx_ptr(from, PTX_GLOBAL);
        ptxk__gemm_copy_x(k, f, s, from, part + 1, !slot, NULL);
    }
    ptxk__gemm_commit(k);
    if (!part) {
        here = ptx_get(k, s->slot);
        here = ptx_xor(k, here, ptx_u32(f->weights));
        here = ptx_ptr_add(k, s->to, here, 1);
        unit = ptx_add(k, unit, ptx_u32(PTXK__GEMM_PAIR_UNITS));
        ptxk__gemm_copy_weights(k, f, s, unit, here, v);
        if (v) ptxk__gemm_advance_weights(k, f, s);
        ptxk__gemm_commit(k);
        ptxk__gemm_begin_unit(k, f, s, v);
        for (c = 0; c < s->chains; c++)
            for (i = 0; i < f->m; i++)
                for (n = 0; n < f->n; n++)
                    for (e = 0; e < 4; e++) s->acc[c][i][n][e] = s->zero;
    }
    for (w = part * per; w < (part + 1) * per; w++) ptxk__gemm_group(k, f, s, v, w, slot);
    if (part + 1 == x->parts) ptxk__gemm_end_unit(k, f, s, slot);
    ptxk__gemm_store_pending(k, s, 0);
}

/* -- gemm: tiles -- */

/* An argument of the matrix of this tile, which is the first of its class, or a later one. at, step: where
   those of the matrices lie. */
static ptx_val ptxk__gemm_select_field(ptx_kernel *k, const ptxk__gemm *f, const ptxk__gemm_state *s,
                                       const ptx_val later[PTXK__GEMM_MATRICES], size_t at, size_t step,
                                       ptx_type type) {
    ptx_val x = ptx_u32(0), other;
    uint32_t i;
    int found = 0;
    for (i = 0; i < f->outputs; i++) {
        if (&f->kind[f->which[i]] != s->kind) continue;
        other = ptx_ld(k, type, ptx_at(s->args, (int64_t)(at + i * step)));
        x = found ? ptx_selp(k, other, x, later[i]) : other;
        found = 1;
    }
    return x;
}

static ptx_val ptxk__gemm_field(ptx_kernel *k, const ptxk__gemm *f, const ptxk__gemm_state *s,
                                const ptx_val later[PTXK__GEMM_MATRICES], size_t field, ptx_type type) {
    return ptxk__gemm_select_field(k, f, s, later, PTXK__GEMM_FIELD(0, weights) + field,
                                   sizeof(ptxk_gemm_matrix), type);
}

/* Sets up a tile's copies: this lane's rows and where it reads. */
static void ptxk__gemm_setup(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val first) {
    const ptxk__gemm_class *c = s->kind;
    ptx_val pair, row, x, y, last, at, copied;
    uint32_t i, h, per = c->unit_bytes / 16;
    s->half = ptx_and(k, s->lane, ptx_u32(1));
    /* pairs of lanes take rows 0, 2, 4, 6, 1, 3 ... of 16: 4 pairs then fill all banks */
    pair = ptx_shr(k, s->lane, ptx_u32(1));
    copied = ptx_and(k, pair, ptx_u32(3));
    copied = ptx_mul(k, copied, ptx_u32(2));
    x = ptx_bfe(k, pair, ptx_u32(2), ptx_u32(1));
    copied = ptx_add(k, copied, x);
    x = ptx_and(k, pair, ptx_u32(8));
    copied = ptx_add(k, copied, x);
    x = ptx_mad(k, s->warp, ptx_u32(16 * f->m), copied); /* row of the block */
    x = ptx_mul(k, x, ptx_u32(c->pitch));
    x = ptx_mad(k, s->half, ptx_u32(16), x);
    s->to = ptx_ptr_add(k, s->shared, x, 1);
    s->cross = ptx_u32(0);
    if (!ptxk__gemm_is_shifted(c) && per % 2) s->cross = ptx_mul(k, s->half, ptx_u32(c->area - 16 * per));
    x = ptx_mad(k, s->warp, ptx_u32(16 * f->m), s->g);
    x = ptx_mul(k, x, ptx_u32(c->pitch));
    s->row = ptx_ptr_add(k, s->shared, x, 1);
    x = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemm_args, k));
    s->full = ptx_div(k, x, ptx_u32(c->format->unit));
    x = ptx_div(k, x, ptx_u32(c->block->values));
    s->row_bytes = ptx_mul(k, x, ptx_u32(c->block->bytes));
    last = ptx_sub(k, s->n, ptx_u32(1));
    at = ptx_mul(k, first, ptx_u32(c->unit_bytes));
    if (!ptxk__gemm_is_shifted(c)) at = ptx_mad(k, s->half, ptx_u32(16), at);
    at = ptx_cvt(k, PTX_U64, at);
    for (i = 0; i < f->m; i++) {
        uint32_t which = f->pair > 1 ? i : 0, own = f->pair > 1 ? 16 : 16 * f->m;
        row = ptx_mad(k, s->row_tile, ptx_u32(f->rows), copied);
        row = ptx_mad(k, s->warp, ptx_u32(own), row);
        if (i && f->pair == 1) row = ptx_add(k, row, ptx_u32(16 * i));
        row = ptx_min(k, row, last); /* rows past the last repeat it */
        y = ptx_mad_wide(k, row, s->row_bytes, at);
        x = ptx_ptr_add(k, s->weights[which], y, 1);
        s->from[i] = ptx_var_new(k, ptx_as(x, PTX_U64));
        for (h = 0; h < 2 && ptxk__gemm_is_shifted(c); h++) {
            row = ptx_mad(k, s->row_tile, ptx_u32(f->rows), s->g);
            row = ptx_mad(k, s->warp, ptx_u32(own), row);
            row = ptx_add(k, row, ptx_u32((f->pair == 1 ? 16 * i : 0) + 8 * h));
            row = ptx_min(k, row, last);
            y = ptx_mul(k, row, s->row_bytes);
            y = ptx_add(k, y, ptx_cvt(k, PTX_U32, at));
            x = ptx_cvt(k, PTX_U32, ptx_as(s->weights[which], PTX_U64));
            x = ptx_add(k, x, y); /* modulo 2^32 */
            s->shift[i][h] = ptx_var_new(k, x);
        }
    }
    if (c->block->id != PTXK_Q6_K && !c->block->reader) return;
    y = ptx_mad(k, s->warp, ptx_u32(16 * f->m), s->g);
    y = ptx_mad(k, y, ptx_u32(PTXK__GEMM_SCALES), ptx_u32(f->scales));
    s->scales = ptx_ptr_add(k, s->shared, y, 1);
}

/* Moves the offsets of 2-byte aligned rows in their chunks on by a step. */
static void ptxk__gemm_advance_shifts(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    uint32_t bytes = PTXK__GEMM_PAIR_UNITS * s->kind->unit_bytes, i, h;
    ptx_val x;
    if (!ptxk__gemm_is_shifted(s->kind) || bytes % 32 == 0) return;
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++) {
            x = ptx_get(k, s->shift[i][h]);
            x = ptx_add(k, x, ptx_u32(bytes));
            ptx_set(k, s->shift[i][h], x);
        }
}

/* Runs through the slice's units. */
static void ptxk__gemm_loop(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    const ptxk__gemm_x *x = s->form;
    ptx_val at, p;
    uint32_t i;
    ptx_loop(k);
    {
        for (i = 0; i < x->parts; i++) ptxk__gemm_part(k, f, s, 0, i);
        at = ptx_get(k, s->unit);
        at = ptx_add(k, at, ptx_u32(1));
        p = ptx_setp(k, PTX_LT, at, s->end);
        p = ptx_uniform(k, p);
        ptx_while(k, p);
        for (i = 0; i < x->parts; i++) ptxk__gemm_part(k, f, s, 1, i);
        at = ptx_get(k, s->slot);
        at = ptx_xor(k, at, ptx_u32(f->weights));
        ptx_set(k, s->slot, at);
        at = ptx_get(k, s->unit);
        at = ptx_add(k, at, ptx_u32(PTXK__GEMM_PAIR_UNITS));
        ptx_set(k, s->unit, at);
        ptxk__gemm_advance_shifts(k, f, s);
        p = ptx_setp(k, PTX_LT, at, s->end);
        p = ptx_uniform(k, p);
        ptx_while(k, p);
    }
    ptx_end(k);
}

/* The first unit of this block's slice of K; sets its end. all: units of a row. */
static ptx_val ptxk__gemm_slice(ptx_kernel *k, ptxk__gemm_state *s, ptx_val *all) {
    uint32_t per = PTXK__GEMM_GRANULE / s->form->unit;
    ptx_val first, at;
    ptx_comment(k, "this block's slice of K, in units");
    at = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemm_args, k));
    *all = ptxk__gemm_div_up(k, at, s->form->unit);
    at = ptxk__gemm_div_up(k, at, PTXK__GEMM_GRANULE);
    at = ptxk_div_up(k, at, s->slices);
    first = ptx_mul(k, at, s->slice);
    first = ptx_mul(k, first, ptx_u32(per));
    s->end = ptx_mad(k, at, ptx_u32(per), first);
    s->end = ptx_min(k, s->end, *all);
    return first;
}

/* Multiplies the tile's slice of K: fills in the sums. */
static void ptxk__gemm_products(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    const ptxk__gemm_x *x = s->form;
    ptx_val first, p, at, y, m;
    uint32_t i, n, e;
    first = ptxk__gemm_slice(k, s, &y);
    ptxk__gemm_setup(k, f, s, first);
    ptxk__gemm_lane(k, f, s);
    s->chains = f->n == 1 && s->kind->format->kind != PTXK__GEMM_BLOCKS ? 2 : 1;
    s->unit = ptx_var_new(k, first);
    s->slot = ptx_var_new(k, ptx_u32(0));
    at = ptx_mad_wide(k, s->column_tile, y, ptx_cvt(k, PTX_U64, first));
    at = ptx_mul(k, at, ptx_u64(x->bytes));
    at = ptx_ptr_add(k, s->layout.x[s->kind->x], at, 1);
    at = ptx_ptr_add(k, at, s->tid, 16);
    s->x_from = ptx_var_new(k, ptx_as(at, PTX_U64));
    y = ptx_ptr_add(k, s->shared, ptx_u32(2 * f->weights), 1);
    s->x_to = ptx_ptr_add(k, y, s->tid, 16);
    s->x_at = ptx_ptr_add(k, y, s->lane, 16);
    if (f->columns == 8) {
        m = s->columns_left;
        p = ptx_setp(k, PTX_LT, s->g, m);
        s->x_valid = ptx_selp(k, ptx_u32(16), ptx_u32(0), p);
        y = ptx_bfe(k, s->tid, ptx_u32(1), ptx_u32(3));
        p = ptx_setp(k, PTX_LT, y, m);
        s->sums_valid = ptx_selp(k, ptx_u32(16), ptx_u32(0), p);
    }
    s->zero = ptx_mov(k, ptx_f32(0));
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->n; n++)
            for (e = 0; e < 4; e++) s->sum[i][n][e] = ptx_var_new(k, ptx_f32(0));
    ptxk__gemm_copy_weights(k, f, s, first, s->to, 0);
    if (x->parts == 1) ptxk__gemm_commit(k);
    if (x->parts > 1) ptxk__gemm_copy_weights(k, f, s, first, s->to, 1);
    ptxk__gemm_copy_x(k, f, s, at, 0, 0, NULL);
    ptxk__gemm_commit(k);
    if (x->parts == 1) {
        ptxk__gemm_copy_weights(k, f, s, first, s->to, 1);
        ptxk__gemm_commit(k);
    }
    ptxk__gemm_advance_weights(k, f, s);
    ptxk__gemm_store_pending(k, s, 0);
    if (s->kind->variants == 3) {
        p = ptx_and(k, s->row_bytes, ptx_u32(3));
        p = ptx_setp(k, PTX_EQ, p, ptx_u32(0));
        p = ptx_uniform(k, p);
        ptx_if(k, p);
    }
    for (i = 1; i < 4; i *= 2) {
        if (!(s->kind->variants & i)) continue;
        if (i == 2 && s->kind->variants == 3) ptx_else(k);
        s->words_aligned = i == 1;
        ptxk__gemm_loop(k, f, s);
    }
    if (s->kind->variants == 3) ptx_end(k);
    if (ptxk__has_cp_async(k)) ptx_cp_async_wait_all(k);
}

/* -- gemm: many columns --

   A block has 128 rows of W (of a gated pair 64 of each matrix, in turns of 16) and 128 or 256 columns. Each
   of its threads unpacks half of a row: of a unit of 2 P groups of 32 values, in P parts, groups p and p + P.
   The weights of a part, f16, lie in shared memory in rows of 8 chunks, swizzled; ldmatrix reads them as
   operand A while the next part is unpacked. EXACT: integers, as in the form with few columns. FAST: weights,
   times a power of two for each row that falls, and the sums with it, when a unit needs that. */

typedef struct ptxk__gemm_wide {
    ptx_val half, row;          /* of the row that this thread unpacks, in the block */
    ptx_val raw;                /* its unit as it lies */
    ptx_val a_to;               /* where its chunks go; they differ in bits 4 and 5 */
    ptx_val a_from;             /* operand A of the products of a part; they differ in bits 5 and 6 */
    ptx_val rows_to, rows_from; /* f32 numbers of rows: of the row unpacked, of the thread's rows */
    ptx_val minima_to, minima_from;
    ptx_val constant[4];
    ptx_val to, copy_half, copied; /* of the row that this thread copies */
    ptx_var from, shift;           /* address of its next unit; low bits of that of the row unpacked */
    ptx_var word[24], more[10];    /* the half of the unit: quants, and what comes with them */
    ptx_var scale[4], minimum[2], head;
    ptx_var power, most, raised; /* FAST: of the row; how large factors may be; whether it has fallen */
} ptxk__gemm_wide;

#define PTXK__WIDE_FACTORS 2048u /* offset of numbers of rows, behind the minima */

/* The place among the numbers of rows of a row: those that a thread needs are adjacent. */
static ptx_val ptxk__wide_place(ptx_kernel *k, ptx_val row) {
    ptx_val x = ptx_and(k, row, ptx_u32(0x47)), y = ptx_bfe(k, row, ptx_u32(3), ptx_u32(3));
    x = ptx_mad(k, x, ptx_u32(8), y); /* 64 wm + g, ... */
    y = ptx_and(k, row, ptx_u32(64));
    y = ptx_mul(k, y, ptx_u32(7));
    return ptx_sub(k, x, y);
}

/* The row of its matrix that row r of the block is, and its first byte. which: 0, or for gated pairs r's. */
static ptx_val ptxk__wide_row(ptx_kernel *k, const ptxk__gemm *f, const ptxk__gemm_state *s, ptx_val r) {
    ptx_val row = r, x, last = ptx_sub(k, s->n, ptx_u32(1)), from = s->weights[0], p;
    if (f->pair > 1) {
        x = ptx_and(k, r, ptx_u32(15));
        row = ptx_shr(k, r, ptx_u32(5));
        row = ptx_mad(k, row, ptx_u32(16), x);
        x = ptx_and(k, r, ptx_u32(16));
        p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
        from = ptx_selp(k, ptx_as(s->weights[0], PTX_U64), ptx_as(s->weights[1], PTX_U64), p);
        from = ptx_ptr(from, PTX_GLOBAL);
    }
    row = ptx_mad(k, s->row_tile, ptx_u32(f->rows), row);
    row = ptx_min(k, row, last); /* rows past the last repeat it */
    x = ptx_mul_wide(k, row, s->row_bytes);
    return ptx_as(ptx_ptr_add(k, from, x, 1), PTX_U64);
}

/* Copies unit `next` of this thread's row: every second chunk. */
static void ptxk__wide_copy(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val next) {
    const ptxk__gemm_class *c = s->kind;
    ptxk__gemm_wide *w = s->wide;
    uint32_t shifted = (uint32_t)ptxk__gemm_is_shifted(c), j;
    ptx_val p = ptx_setp(k, PTX_LT, next, s->end), q, from, at, left, valid;
    (void)f;
    ptx_if(k, p);
    {
        from = ptx_get(k, w->from);
        at = ptx_add(k, from, ptx_u64(c->unit_bytes));
        ptx_set(k, w->from, at);
        at = from;
        if (shifted) at = ptx_and(k, from, ptx_u64(~(uint64_t)15));
        left = ptx_cvt(k, PTX_U64, w->copy_half);
        at = ptx_mad(k, left, ptx_u64(16), at);
        left = at;
        at = ptx_ptr(at, PTX_GLOBAL);
        if (c->tails) { /* the last unit of a row: zeros behind it */
            q = ptx_add(k, next, ptx_u32(1));
            q = ptx_mul(k, q, ptx_u32(c->unit_bytes));
            q = ptx_add(k, q, ptx_u32(30));
            q = ptx_setp(k, PTX_LE, q, s->row_bytes);
            ptx_if(k, q);
        }
        for (j = 0; j < c->chunks; j += 2) {
            q = ptx_setp(k, PTX_LT, w->copy_half, ptx_u32(c->chunks - j));
            if (j + 1 >= c->chunks) ptx_guard(k, q);
            ptx_cp_async_16(k, ptx_off(w->to, 16 * j), ptx_off(at, 16 * j));
        }
        if (c->tails) {
            ptx_else(k);
            valid = ptx_mul(k, next, ptx_u32(c->unit_bytes));
            valid = ptx_sub(k, s->row_bytes, valid); /* what is left of the row */
            q = ptx_sub(k, left, from);              /* the first chunk begins so much further on */
            left = ptx_cvt(k, PTX_S32, q);
            left = ptx_sub(k, ptx_as(valid, PTX_S32), left);
            for (j = 0; j < c->chunks; j += 2) {
                valid = ptx_sub(k, left, ptx_s32((int32_t)(16 * j)));
                valid = ptx_max(k, valid, ptx_s32(0));
                valid = ptx_min(k, valid, ptx_s32(16));
                q = ptx_setp(k, PTX_LT, w->copy_half, ptx_u32(c->chunks - j));
                if (j + 1 >= c->chunks) ptx_guard(k, q);
                ptx_cp_async_16_zfill(k, ptx_off(w->to, 16 * j), ptx_off(at, 16 * j), ptx_as(valid, PTX_U32));
            }
            ptx_end(k);
        }
    }
    ptx_end(k);
}

/* Copies part p of x, which lies at `from`; on the condition q, or NULL. */
static void ptxk__wide_copy_x(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val from,
                              uint32_t p, const ptx_val *q) {
    const ptxk__gemm_x *x = s->form;
    uint32_t slot = p & 1, bytes = x->part_bytes + (p + 1 == x->parts ? f->tiles * x->sums : 0);
    ptx_val first, bar;
    if (!f->bulk) {
        ptxk__gemm_copy_x(k, f, s, from, p, slot, q);
        ptx_cp_async_commit(k);
        return;
    }
    bar = ptx_off(s->flag, (int64_t)(8 * slot) - 16);
    first = ptx_setp(k, PTX_EQ, s->tid, ptx_u32(0));
    if (q) first = ptx_and(k, first, *q);
    ptx_if(k, first);
    ptx_mbarrier_arrive_expect(k, bar, ptx_u32(bytes));
    ptx_bulk_load(k, ptx_off(s->x_to, slot * f->stage), ptx_off(from, p * x->part_bytes), ptx_u32(bytes),
                  bar);
    ptx_end(k);
}

/* FAST: `size`, f32 and not negative, is how large the factors of the row's next unit are. Where the row's
   power of two is too large for them, it falls, to a quarter of what would do. 2^(33 - s) bounds sizes, the
   power is 2^(s - 5): products of a factor and a scale are below 2^15 then. */
static void ptxk__wide_raise(ptx_kernel *k, ptxk__gemm_state *s, ptx_val size) {
    ptxk__gemm_wide *w = s->wide;
    ptx_val p, x, y, ratio;
    ptx_var out = ptx_var_new(k, ptx_f32(1)), fell = ptx_var_new(k, ptx_u32(0));
    x = ptx_get(k, w->most);
    p = ptx_setp(k, PTX_GT, size, x);
    ptx_if(k, p);
    {
        x = ptx_shr(k, ptx_as(size, PTX_U32), ptx_u32(23));
        y = ptx_add(k, x, ptx_u32(3));
        y = ptx_min(k, y, ptx_u32(254));
        y = ptx_shl(k, y, ptx_u32(23));
        ptx_set(k, w->most, ptx_as(y, PTX_F32));
        x = ptx_sub(k, ptx_u32(279), x);
        y = ptx_get(k, w->power);
        y = ptx_shr(k, ptx_as(y, PTX_U32), ptx_u32(23));
        ratio = ptx_sub(k, ptx_as(x, PTX_S32), ptx_as(y, PTX_S32));
        ratio = ptx_add(k, ratio, ptx_s32(127));
        ratio = ptx_max(k, ratio, ptx_s32(0));
        ratio = ptx_min(k, ratio, ptx_s32(127));
        ratio = ptx_shl(k, ptx_as(ratio, PTX_U32), ptx_u32(23));
        ptx_set(k, out, ptx_as(ratio, PTX_F32));
        x = ptx_shl(k, x, ptx_u32(23));
        ptx_set(k, w->power, ptx_as(x, PTX_F32));
        ptx_set(k, fell, ptx_u32(1));
    }
    ptx_end(k);
    x = ptx_get(k, fell);
    ptx_set(k, w->raised, x);
    x = ptx_get(k, out);
    ptx_st(k, PTX_F32, ptx_at(w->rows_to, 0), x); /* both halves, the same */
}

/* Both halves of a word: x in f16. */
static ptx_val ptxk__wide_twice(ptx_kernel *k, ptx_val x) { return ptxk__pack_f32(k, PTX_F16, x, x); }

static ptx_val ptxk__wide_larger(ptx_kernel *k, ptx_val x, ptx_val y) {
    y = ptx_abs(k, y);
    return ptx_max(k, x, y);
}

/* Reads this thread's half of a unit: Q4_K, Q5_K. */
static void ptxk__wide_read_bytes(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptxk__gemm_wide *w = s->wide;
    uint32_t five = s->kind->block->id == PTXK_Q5_K, i, j;
    ptx_val head[4], words[4], pair[2], d, m, p, q, x, y, z, power;
    ptxk_load16(k, NULL, ptx_at(w->raw, 0), head);
    x = ptx_ptr_add(k, w->raw, w->half, 64);
    for (i = 0; i < 4; i++) {
        ptxk_load16(k, NULL, ptx_at(x, (int64_t)(16 + 32 * five + 16 * i)), words);
        for (j = 0; j < 4; j++) ptx_set(k, w->word[4 * i + j], words[j]);
    }
    for (i = 0; i < 2 * five; i++) {
        ptxk_load16(k, NULL, ptx_at(w->raw, (int64_t)(16 + 16 * i)), words);
        for (j = 0; j < 4; j++) ptx_set(k, w->more[4 * i + j], words[j]);
    }
    /* four scales x and four minima y of this half, bytes */
    q = ptx_setp(k, PTX_EQ, w->half, ptx_u32(0));
    x = ptx_shr(k, ptx_as(head[1], PTX_U32), ptx_u32(2));
    z = ptx_and(k, head[3], ptx_b32(0x0f0f0f0f));
    z = ptx_lop3(k, ptx_as(x, PTX_B32), ptx_b32(0x30303030), z, ptx_imm(0xea));
    x = ptx_and(k, head[1], ptx_b32(0x3f3f3f3f));
    x = ptx_selp(k, x, z, q);
    y = ptx_shr(k, ptx_as(head[2], PTX_U32), ptx_u32(2));
    z = ptx_shr(k, ptx_as(head[3], PTX_U32), ptx_u32(4));
    z = ptx_and(k, ptx_as(z, PTX_B32), ptx_b32(0x0f0f0f0f));
    z = ptx_lop3(k, ptx_as(y, PTX_B32), ptx_b32(0x30303030), z, ptx_imm(0xea));
    y = ptx_and(k, head[2], ptx_b32(0x3f3f3f3f));
    y = ptx_selp(k, y, z, q);
    if (f->precision == PTXK_GEMM_EXACT) {
        ptx_set(k, w->head, head[0]);
    } else {
        ptx_unpack(k, PTX_F16, 2, head[0], pair);
        d = ptx_cvt(k, PTX_F32, pair[0]);
        m = ptx_cvt(k, PTX_F32, pair[1]);
        p = ptx_op2(k, PTX_MUL, PTX_RN, d, ptx_f32(16777216));
        p = ptx_abs(k, p);
        p = ptxk__wide_larger(k, p, m);
        ptxk__wide_raise(k, s, p);
        power = ptx_get(k, w->power);
        d = ptx_op2(k, PTX_MUL, PTX_RN, d, power);
        m = ptx_op2(k, PTX_MUL, PTX_RN, m, ptx_f32(-0.0001220703125)); /* -2^-13 */
        m = ptx_op2(k, PTX_MUL, PTX_RN, m, power);
        pair[0] = ptxk__wide_twice(k, d);
        pair[1] = ptxk__wide_twice(k, m);
    }
    for (i = 0; i < 2; i++) {
        z = ptx_prmt(k, x, ptx_b32(0x64646464), ptx_b32(i ? 0x4342 : 0x4140)); /* 1024 + the scales */
        z = ptxk__gemm_fma(k, z, w->constant[0], w->constant[1]);
        if (f->precision == PTXK_GEMM_FAST) z = ptxk__gemm_times(k, z, pair[0]);
        ptx_set(k, w->scale[i], z);
        z = ptx_prmt(k, y, ptx_b32(0x64646464), ptx_b32(i ? 0x4342 : 0x4140));
        z = ptxk__gemm_fma(k, z, w->constant[2], w->constant[3]);
        if (f->precision == PTXK_GEMM_FAST) z = ptxk__gemm_times(k, z, pair[1]);
        ptx_set(k, w->minimum[i], z);
    }
}

/* Unpacks part p of this thread's half: out[product][register][word]: pairs of values 0 and 2, and 1 and 3,
   of four lanes. */
static void ptxk__wide_unpack_bytes(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t p,
                                    ptx_val out[2][2][4]) {
    ptxk__gemm_wide *w = s->wide;
    uint32_t five = s->kind->block->id == PTXK_Q5_K, t, e, b;
    ptx_val scale = ptx_get(k, w->scale[p / 2]), minimum = ptx_get(k, w->minimum[p / 2]), x, y, z, low, high;
    ptx_val s2[2], m2[2], turn = w->half;
    for (e = 0; e < 2; e++) {
        s2[e] = ptxk__gemm_half(k, scale, e);
        m2[e] = ptxk__gemm_half(k, minimum, e);
    }
    if (five) { /* rotates bit 2 j to bit 4, j = 2 half + p / 2 */
        turn = ptx_mul(k, w->half, ptx_u32(4));
        turn = ptx_sub(k, ptx_u32(36 - 2 * (p / 2)), turn);
    }
    for (t = 0; t < 4; t++) {
        x = ptx_get(k, w->word[4 * p + t]);
        if (five) {
            z = ptx_get(k, w->more[4 * (p & 1) + t]);
            z = ptx_shf_l(k, z, z, turn);
            low = ptx_and(k, x, ptx_b32(0x0f0f0f0f));
            low = ptx_lop3(k, z, ptx_b32(0x10101010), low, ptx_imm(0xea));
            x = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(3)), PTX_B32);
            high = ptx_and(k, x, ptx_b32(0x1e1e1e1e)); /* twice */
            high = ptx_lop3(k, z, ptx_b32(0x20202020), high, ptx_imm(0xea));
            out[0][0][t] = ptx_and(k, low, ptx_b32(0x00ff00ff));
            out[0][1][t] = ptx_prmt(k, low, ptx_b32(0), ptx_b32(0x4341));
            out[1][0][t] = ptx_and(k, high, ptx_b32(0x00ff00ff));
            out[1][1][t] = ptx_prmt(k, high, ptx_b32(0), ptx_b32(0x4341));
        } else {
            y = ptx_as(ptx_shr(k, ptx_as(x, PTX_U32), ptx_u32(8)), PTX_B32);
            out[0][0][t] = ptx_and(k, x, ptx_b32(0x000f000f));
            out[0][1][t] = ptx_and(k, y, ptx_b32(0x000f000f));
            out[1][0][t] = ptx_and(k, x, ptx_b32(0x00f000f0));
            out[1][1][t] = ptx_and(k, y, ptx_b32(0x00f000f0));
        }
        for (e = 0; e < 2; e++)
            for (b = 0; b < 2; b++)
                out[e][b][t] = f->precision == PTXK_GEMM_FAST ? ptxk__gemm_fma(k, out[e][b][t], s2[e], m2[e])
                                                              : ptxk__gemm_times(k, out[e][b][t], s2[e]);
    }
}

/* Reads this thread's half of the next unit. */
static void ptxk__wide_read(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptxk__wide_read_bytes(k, f, s);
}

/* A shared address with some bits exchanged. */
static ptx_val ptxk__wide_chunk(ptx_kernel *k, ptx_val at, uint32_t bits) {
    if (!bits) return at;
    at = ptx_xor(k, ptx_as(at, PTX_U32), ptx_u32(bits));
    return ptx_ptr(at, PTX_SHARED);
}

/* Unpacks part p of this thread's half of a unit into buffer `slot`. */
static void ptxk__wide_unpack(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t p,
                              uint32_t slot) {
    ptxk__gemm_wide *w = s->wide;
    ptx_val out[2][2][4], x, y, half[2];
    uint32_t e, b;
    ptxk__wide_unpack_bytes(k, f, s, p, out);
    for (e = 0; e < 2; e++)
        for (b = 0; b < 2; b++)
            ptx_st_vec(
                k, PTX_B32, 4,
                ptx_at(ptxk__wide_chunk(k, w->a_to, 32 * e + 16 * b), (int64_t)(slot * PTXK__WIDE_PART)),
                out[e][b]);
    if (p == 1 && f->precision == PTXK_GEMM_EXACT && s->form->sums) { /* what the end of the unit needs */
        half[0] = ptx_get(k, w->minimum[0]);
        half[1] = ptx_get(k, w->minimum[1]);
        ptx_st_vec(k, PTX_B32, 2, ptx_at(w->minima_to, 0), half);
        x = ptx_get(k, w->head);
        ptx_unpack(k, PTX_F16, 2, x, half);
        y = ptx_setp(k, PTX_EQ, w->half, ptx_u32(0));
        for (e = 0; e < 2; e++) {
            x = ptx_cvt(k, PTX_F32, half[e]);
            ptx_guard(k, y);
            ptx_st(k, PTX_F32, ptx_at(w->rows_to, (int64_t)(512 * e)), x);
        }
    }
}

/* Loads number `which` of each of the thread's rows. */
static void ptxk__wide_rows(ptx_kernel *k, ptxk__gemm_state *s, uint32_t which,
                            ptx_val out[PTXK__GEMM_M][2]) {
    ptx_val x[4];
    uint32_t i, e;
    for (i = 0; i < 2; i++) {
        ptx_ld_vec(k, PTX_F32, 4, ptx_at(s->wide->rows_from, (int64_t)(512 * which + 16 * i)), x);
        for (e = 0; e < 4; e++) out[2 * i + e / 2][e & 1] = x[e];
    }
}

static void ptxk__wide_scale_sums(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val row[PTXK__GEMM_M][2], x;
    uint32_t i, n, e;
    ptxk__wide_rows(k, s, 0, row);
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->n; n++)
            for (e = 0; e < 4; e++) {
                x = ptx_get(k, s->sum[i][n][e]);
                x = ptx_op2(k, PTX_MUL, PTX_RN, x, row[i][e / 2]);
                ptx_set(k, s->sum[i][n][e], x);
            }
}

/* Multiplies part p of a unit. */
static void ptxk__wide_multiply(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, uint32_t p,
                                uint32_t slot) {
    const ptxk__gemm_x *x = s->form;
    ptx_val a[2][PTXK__GEMM_M][4], b[8], from[4];
    uint32_t g, e, i, n, plane;
    for (e = 0; e < 4; e++) from[e] = ptxk__wide_chunk(k, s->wide->a_from, 32 * e);
    for (g = 0; g < 2; g++) {
        for (e = 0; e < 2; e++)
            for (i = 0; i < f->m; i++)
                ptx_ldmatrix(k, 4, ptx_off(from[2 * g + e], (int64_t)(slot * PTXK__WIDE_PART + i * 2048)),
                             a[e][i]);
        for (n = 0; n < f->n; n++)
            for (plane = 0; plane < x->planes; plane++) {
                ptxk__gemm_load_x(k, f, s, p & 1, g, n, plane, b);
                for (e = 0; e < 2; e++)
                    for (i = 0; i < f->m; i++)
                        ptxk__tile_mma(k, x->type, s->acc[0][i][n], a[e][i], b + 2 * e);
            }
    }
}

/* EXACT: adds the unit's products, times the factors of the rows, to the sums. */
static void ptxk__wide_end_unit(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val factor[PTXK__GEMM_M][2], minimum[PTXK__GEMM_M][2], low[PTXK__GEMM_M][4], b[2], d[4];
    uint32_t i, n, e;
    ptxk__wide_rows(k, s, 0, factor);
    ptxk__wide_rows(k, s, 1, minimum);
    for (i = 0; i < f->m; i++) {
        ptx_ldmatrix(k, 2, ptx_off(s->wide->minima_from, (int64_t)(256 * i)), low[i]);
        low[i][2] = low[i][0];
        low[i][3] = low[i][1];
    }
    for (n = 0; n < f->n; n++) {
        ptx_ld_vec(k, PTX_B32, 2, ptx_at(s->x_sums, (int64_t)(n * s->form->sums)), b);
        for (i = 0; i < f->m; i++) {
            for (e = 0; e < 4; e++) d[e] = s->zero;
            ptxk__tile_mma(k, PTX_F16, d, low[i], b);
            ptxk__gemm_add(k, s, i, n, s->acc[0][i][n], factor[i]);
            ptxk__gemm_add(k, s, i, n, d, minimum[i]);
        }
    }
}

/* The addresses of a thread. Returns the address of the block's first unit of x. */
static ptx_val ptxk__wide_setup(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val first,
                                ptx_val units) {
    const ptxk__gemm_class *c = s->kind;
    const ptxk__gemm_x *x = s->form;
    ptxk__gemm_wide *w = s->wide;
    ptx_val at, y, z, wm, wn, copier, warp = ptx_shr(k, s->tid, ptx_u32(5));
    y = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemm_args, k));
    y = ptx_div(k, y, ptx_u32(c->block->values));
    s->row_bytes = ptx_mul(k, y, ptx_u32(c->block->bytes));
    /* copies: pairs of threads take rows 0, 2, 4, 6, 1, 3 ... of 8: four pairs fill the banks */
    w->copy_half = ptx_and(k, s->tid, ptx_u32(1));
    y = ptx_bfe(k, s->tid, ptx_u32(1), ptx_u32(2));
    z = ptx_bfe(k, s->tid, ptx_u32(3), ptx_u32(1));
    y = ptx_mad(k, y, ptx_u32(2), z);
    z = ptx_shr(k, s->tid, ptx_u32(4));
    w->copied = ptx_mad(k, z, ptx_u32(8), y);
    y = ptx_mul(k, w->copied, ptx_u32(c->pitch));
    y = ptx_mad(k, w->copy_half, ptx_u32(16), y);
    y = ptx_add(k, y, ptx_u32(f->raw_at));
    w->to = ptx_ptr_add(k, s->shared, y, 1);
    z = ptx_mul_wide(k, first, ptx_u32(c->unit_bytes));
    at = ptxk__wide_row(k, f, s, w->copied);
    at = ptx_add(k, at, z);
    w->from = ptx_var_new(k, at);
    /* unpacking */
    w->row = ptx_and(k, s->tid, ptx_u32(PTXK__WIDE_ROWS - 1));
    w->half = ptx_div(k, s->tid, ptx_u32(PTXK__WIDE_ROWS));
    if (ptxk__gemm_is_shifted(c)) {
        at = ptxk__wide_row(k, f, s, w->row);
        at = ptx_add(k, at, z);
        at = ptx_cvt(k, PTX_U32, at);
        w->shift = ptx_var_new(k, at);
    }
    y = ptx_mul(k, w->row, ptx_u32(c->pitch));
    y = ptx_add(k, y, ptx_u32(f->raw_at));
    w->raw = ptx_ptr_add(k, s->shared, y, 1);
    y = ptx_and(k, w->row, ptx_u32(7));
    z = ptx_mul(k, w->half, ptx_u32(4));
    y = ptx_xor(k, y, z);
    y = ptx_mul(k, y, ptx_u32(16));
    y = ptx_mad(k, w->row, ptx_u32(128), y);
    w->a_to = ptx_ptr_add(k, s->shared, y, 1);
    y = ptxk__wide_place(k, w->row);
    y = ptx_mul(k, y, ptx_u32(4));
    y = ptx_add(k, y, ptx_u32(f->rows_at + PTXK__WIDE_FACTORS));
    w->rows_to = ptx_ptr_add(k, s->shared, y, 1);
    y = ptx_mul(k, w->row, ptx_u32(16));
    y = ptx_mad(k, w->half, ptx_u32(8), y);
    y = ptx_add(k, y, ptx_u32(f->rows_at));
    w->minima_to = ptx_ptr_add(k, s->shared, y, 1);
    /* products: warp 4 wm + wn */
    wm = ptx_shr(k, warp, ptx_u32(2));
    wn = ptx_and(k, warp, ptx_u32(3));
    s->warp = wm;
    s->column_base = ptx_mul(k, wn, ptx_u32(8 * f->n));
    y = ptx_and(k, s->lane, ptx_u32(15));
    y = ptx_mad(k, wm, ptx_u32(64), y);
    at = ptx_mul(k, y, ptx_u32(16));
    at = ptx_add(k, at, ptx_u32(f->rows_at));
    w->minima_from = ptx_ptr_add(k, s->shared, at, 1);
    at = ptx_shr(k, s->lane, ptx_u32(4));
    z = ptx_and(k, s->lane, ptx_u32(7));
    at = ptx_xor(k, at, z);
    at = ptx_mul(k, at, ptx_u32(16));
    y = ptx_mad(k, y, ptx_u32(128), at);
    w->a_from = ptx_ptr_add(k, s->shared, y, 1);
    y = ptx_mad(k, wm, ptx_u32(8), s->g);
    y = ptx_mul(k, y, ptx_u32(32));
    y = ptx_add(k, y, ptx_u32(f->rows_at + PTXK__WIDE_FACTORS));
    w->rows_from = ptx_ptr_add(k, s->shared, y, 1);
    /* x */
    y = f->bulk ? ptx_u32(0) : s->tid; /* a thread copies all, or its chunks */
    z = ptx_mul(k, y, ptx_u32(16));
    z = ptx_add(k, z, ptx_u32(f->x_at));
    s->x_to = ptx_ptr_add(k, s->shared, z, 1);
    copier = y;
    y = ptx_mul(k, wn, ptx_u32(f->n * 2 * x->planes * 512));
    y = ptx_add(k, y, ptx_u32(f->x_at));
    z = ptx_mad(k, s->lane, ptx_u32(16), y);
    s->x_at = ptx_ptr_add(k, s->shared, z, 1);
    if (x->sums) { /* with the last part, in the second slot */
        y = ptx_mul(k, wn, ptx_u32(f->n * x->sums));
        y = ptx_mad(k, s->lane, ptx_u32(8), y);
        y = ptx_add(k, y, ptx_u32(f->x_at + f->stage + x->part_bytes));
        s->x_sums = ptx_ptr_add(k, s->shared, y, 1);
    }
    at = ptx_mad_wide(k, s->column_tile, units, ptx_cvt(k, PTX_U64, first));
    at = ptx_mul(k, at, ptx_u64(x->bytes));
    at = ptx_ptr_add(k, s->layout.x[c->x], at, 1);
    return ptx_ptr_add(k, at, copier, 16);
}

static void ptxk__wide_constants(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptxk__gemm_wide *w = s->wide;
    uint32_t id = s->kind->block->id, i, fast = f->precision == PTXK_GEMM_FAST;
    if (id == PTXK_Q4_K || id == PTXK_Q5_K) {
        w->constant[0] = ptxk__gemm_f16x2(k, id == PTXK_Q4_K ? 0x40005000 : 0x4c005000);
        w->constant[1] = ptxk__gemm_f16x2(k, id == PTXK_Q4_K ? 0xe800f800u : 0xf400f800u);
        w->constant[2] = ptxk__gemm_f16x2(k, fast ? 0x24002400 : 0x98009800u); /* 2^-6, -2^-9 */
        w->constant[3] = ptxk__gemm_f16x2(k, fast ? 0xcc00cc00u : 0x40004000); /* -16, 2 */
    }
    for (i = 0; i < 24; i++) w->word[i] = ptx_var_new(k, ptx_b32(0));
    for (i = 0; i < 10; i++) w->more[i] = ptx_var_new(k, ptx_b32(0));
    for (i = 0; i < 4; i++) w->scale[i] = ptx_var_new(k, ptx_b32(0));
    for (i = 0; i < 2; i++) w->minimum[i] = ptx_var_new(k, ptx_b32(0));
    w->head = ptx_var_new(k, ptx_b32(0));
    w->power = ptx_var_new(k, ptx_f32(1));
    w->most = ptx_var_new(k, ptx_f32(0));
    w->raised = ptx_var_new(k, ptx_u32(0));
}

/* As ptxk__gemm_products. */
static void ptxk__gemm_wide_products(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    const ptxk__gemm_x *x = s->form;
    ptxk__gemm_wide wide;
    uint32_t p, i, n, e, fast = f->precision == PTXK_GEMM_FAST;
    ptx_val first, units, at, y, q;
    memset(&wide, 0, sizeof wide);
    s->wide = &wide;
    first = ptxk__gemm_slice(k, s, &units);
    at = ptxk__wide_setup(k, f, s, first, units);
    ptxk__wide_constants(k, f, s);
    s->x_from = ptx_var_new(k, ptx_as(at, PTX_U64));
    s->unit = ptx_var_new(k, first);
    s->zero = ptx_mov(k, ptx_f32(0));
    s->chains = 1;
    for (i = 0; i < f->m; i++)
        for (n = 0; n < f->n; n++)
            for (e = 0; e < 4; e++) s->sum[i][n][e] = ptx_var_new(k, ptx_f32(0));
    ptxk__wide_copy(k, f, s, first);
    ptx_cp_async_commit(k);
    if (f->bulk) {
        q = ptx_setp(k, PTX_LT, s->tid, ptx_u32(2));
        y = ptx_ptr_add(k, s->flag, s->tid, 8);
        ptx_if(k, q);
        ptx_mbarrier_init(k, ptx_off(y, -16), ptx_u32(1));
        ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
        ptx_end(k);
        ptx_bar_sync(k, ptx_imm(0));
    }
    ptxk__wide_copy_x(k, f, s, at, 0, NULL);
    ptx_cp_async_wait(k, 0);
    ptx_bar_sync(k, ptx_imm(0));
    ptxk__wide_read(k, f, s);
    ptxk__wide_unpack(k, f, s, 0, 0);
    ptx_loop(k);
    {
        for (p = 0; p < x->parts; p++) {
            ptx_val unit = ptx_get(k, s->unit), from = ptx_get(k, s->x_from), next;
            if (!f->bulk || p + 1 == x->parts) ptx_cp_async_wait(k, p == 1 && x->parts > 2 ? 1 : 0);
            if (f->bulk) { /* of 4 parts a slot has two */
                y = x->parts > 2 ? ptx_u32(p >> 1) : ptx_sub(k, unit, first);
                if (x->parts == 2) y = ptx_and(k, y, ptx_u32(1));
                ptx_mbarrier_wait(k, ptx_off(s->flag, (int64_t)(8 * (p & 1)) - 16), y);
            }
            if (fast && !p) {
                y = ptx_get(k, wide.raised);
                q = ptx_setp(k, PTX_NE, y, ptx_u32(0));
                q = ptx_op2(k, PTX_BAR_RED_OR, 0, ptx_imm(0), q);
                ptx_if(k, q);
                ptxk__wide_scale_sums(k, f, s);
                ptx_end(k);
            } else {
                ptx_bar_sync(k, ptx_imm(0));
            }
            next = ptx_add(k, unit, ptx_u32(1));
            if (p + 1 == x->parts) {
                q = ptx_setp(k, PTX_LT, next, s->end);
                from = ptx_add(k, from, ptx_u64(x->bytes));
                ptx_set(k, s->x_from, from);
                ptxk__wide_copy_x(k, f, s, ptx_ptr(from, PTX_GLOBAL), 0, &q);
            } else {
                ptxk__wide_copy_x(k, f, s, ptx_ptr(from, PTX_GLOBAL), p + 1, NULL);
            }
            if (!p) {
                ptxk__wide_copy(k, f, s, next);
                ptx_cp_async_commit(k);
            }
            if (p + 1 == x->parts) { /* behind the last unit: the last again */
                ptxk__wide_read(k, f, s);
                ptxk__wide_unpack(k, f, s, 0, 0);
            } else {
                ptxk__wide_unpack(k, f, s, p + 1, (p + 1) & 1);
            }
            for (i = 0; i < f->m; i++)
                for (n = 0; n < f->n; n++)
                    for (e = 0; e < 4; e++)
                        if (fast || !p) s->acc[0][i][n][e] = fast ? ptx_get(k, s->sum[i][n][e]) : s->zero;
            ptxk__wide_multiply(k, f, s, p, p & 1);
            for (i = 0; i < f->m && fast; i++)
                for (n = 0; n < f->n; n++)
                    for (e = 0; e < 4; e++) ptx_set(k, s->sum[i][n][e], s->acc[0][i][n][e]);
            if (p + 1 == x->parts && !fast) ptxk__wide_end_unit(k, f, s);
        }
        y = ptx_get(k, s->unit);
        y = ptx_add(k, y, ptx_u32(1));
        ptx_set(k, s->unit, y);
        q = ptx_setp(k, PTX_LT, y, s->end);
        q = ptx_uniform(k, q);
        ptx_while(k, q);
    }
    ptx_end(k);
    ptx_cp_async_wait_all(k);
    if (fast) { /* the sums are 2^(s - 24) times, the power is 2^(s - 5) */
        y = ptx_get(k, wide.power);
        y = ptx_sub(k, ptx_u32(0x88800000u), ptx_as(y, PTX_U32)); /* 2^19 over it */
        ptx_bar_sync(k, ptx_imm(0));
        ptx_st(k, PTX_F32, ptx_at(wide.rows_to, 0), ptx_as(y, PTX_F32));
        ptx_bar_sync(k, ptx_imm(0));
        ptxk__wide_scale_sums(k, f, s);
    }
    s->wide = NULL;
}

/* Where K has slices: writes the sums; the last block of the tile adds those of all slices, in order, the
   others end. */
static void ptxk__gemm_join(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val tile) {
    uint32_t i, n, e, quads = f->m * f->n;
    uint64_t tile_bytes = (uint64_t)quads * 16 * 32 * f->warps;
    ptx_val p, at, from, q[4], x;
    ptx_var here;
    p = ptx_setp(k, PTX_GT, s->slices, ptx_u32(1));
    ptx_if(k, p);
    {
        tile = ptx_mad(k, tile, s->layout.column_tiles, s->column_tile);
        at = ptx_mul_wide(k, tile, s->slices);
        at = ptx_mul(k, at, ptx_u64(tile_bytes));
        from = ptx_ptr_add(k, s->layout.parts, at, 1);
        from = ptx_ptr_add(k, from, s->tid, 16);
        at = ptx_mul_wide(k, s->slice, ptx_u32((uint32_t)tile_bytes));
        at = ptx_ptr_add(k, from, at, 1);
        for (i = 0; i < f->m; i++)
            for (n = 0; n < f->n; n++) {
                for (e = 0; e < 4; e++) q[e] = ptx_get(k, s->sum[i][n][e]);
                ptx_st_vec(k, PTX_F32, 4, ptx_at(at, (int64_t)((i * f->n + n) * 512 * f->warps)), q);
            }
        at = ptx_ptr_add(k, s->layout.counters, tile, 4);
        p = ptxk__is_last_block(k, s->tid, at, s->slices, s->flag);
        p = ptx_not(k, p);
        ptx_guard(k, p);
        ptx_ret(k);
        for (i = 0; i < f->m; i++)
            for (n = 0; n < f->n; n++)
                for (e = 0; e < 4; e++) ptx_set(k, s->sum[i][n][e], ptx_f32(0));
        here = ptx_var_new(k, ptx_as(from, PTX_U64));
        (void)ptx_for(k, ptx_u32(0), s->slices, ptx_u32(1));
        {
            at = ptx_get(k, here);
            at = ptx_ptr(at, PTX_GLOBAL);
            for (i = 0; i < f->m; i++)
                for (n = 0; n < f->n; n++) {
                    ptx_ld_vec(k, PTX_F32, 4, ptx_at(at, (int64_t)((i * f->n + n) * 512 * f->warps)), q);
                    for (e = 0; e < 4; e++) {
                        x = ptx_get(k, s->sum[i][n][e]);
                        x = ptx_op2(k, PTX_ADD, PTX_RN, x, q[e]);
                        ptx_set(k, s->sum[i][n][e], x);
                    }
                }
            at = ptx_ptr_add(k, at, ptx_u64(tile_bytes), 1);
            ptx_set(k, here, ptx_as(at, PTX_U64));
        }
        ptx_end(k);
    }
    ptx_end(k);
}

/* Writes the tile of y: value * factor (+ bias), a gated pair as one, (+ residual). */
static void ptxk__gemm_store(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    uint32_t i, j, h, n, e, tiles = f->m / f->pair, own = 16 * tiles, bytes = ptxk__kv_bytes(f->output);
    ptx_val row[PTXK__GEMM_M][2], inside[PTXK__GEMM_M][2], bias[PTXK__GEMM_M][2], top, x, at, p, column,
        factor[2];
    ptx_val exists[2], value, up, residual, old, base[2], res[2], stride, line;
    memset(bias, 0, sizeof bias);
    residual = s->y;
    stride = s->y_stride;
    if (f->flags & PTXK_GEMM_RESIDUAL) {
        residual = ptxk__arg_ptr(k, s->args, offsetof(ptxk_gemm_args, residual));
        stride = ptxk__gemm_stride(k, s->args, offsetof(ptxk_gemm_args, residual_stride), s->n);
    }
    top = ptx_mad(k, s->row_tile, ptx_u32(f->rows), s->g);
    top = ptx_mad(k, s->warp, ptx_u32(own), top);
    for (i = 0; i < f->m; i++)
        for (h = 0; h < 2; h++) {
            row[i][h] = ptx_add(k, top, ptx_u32(16 * (i / f->pair) + 8 * h));
            inside[i][h] = ptx_setp(k, PTX_LT, row[i][h], s->n);
            if (!(f->flags & PTXK_GEMM_BIAS)) continue;
            at = ptx_ptr_add(k, s->bias[i % f->pair], row[i][h], 4);
            bias[i][h] = ptx_ld_if(k, inside[i][h], PTX_F32, ptx_at(at, 0), ptx_f32(0));
        }
    for (n = 0; n < f->n; n++) {
        x = ptx_mad(k, s->t, ptx_u32(2), ptx_u32(8 * n)); /* of the tile's columns */
        if (f->wide) x = ptx_add(k, x, s->column_base);
        column = ptx_mad(k, s->column_tile, ptx_u32(f->columns), x);
        at = ptx_ptr_add(k, s->layout.factors, column, 4);
        for (e = 0; e < 2; e++) {
            if (e) x = ptx_add(k, x, ptx_u32(1));
            if (e) column = ptx_add(k, column, ptx_u32(1));
            exists[e] = ptx_setp(k, PTX_LT, x, s->columns_left);
            factor[e] = ptx_ld_if(k, exists[e], PTX_F32, ptx_at(at, (int64_t)(4 * e)), ptx_f32(0));
            if (s->kind->format->factor > 1 && !(f->wide && f->precision == PTXK_GEMM_FAST))
                factor[e] = ptx_op2(k, PTX_MUL, PTX_RN, factor[e], ptx_f32((double)s->kind->format->factor));
            line = f->flags & PTXK_GEMM_GROUPED ? ptx_add(k, s->place.first, x) : column;
            x = ptx_mul_wide(k, line, s->y_stride);
            base[e] = ptx_ptr_add(k, s->y, x, bytes);
            res[e] = base[e];
            if (f->flags & PTXK_GEMM_RESIDUAL) {
                x = ptx_mul_wide(k, line, stride);
                res[e] = ptx_ptr_add(k, residual, x, bytes);
            }
            x = ptx_mad(k, s->t, ptx_u32(2), ptx_u32(8 * n));
            if (f->wide) x = ptx_add(k, x, s->column_base);
        }
        for (j = 0; j < tiles; j++)
            for (h = 0; h < 2; h++)
                for (e = 0; e < 2; e++) {
                    i = j * f->pair;
                    value = ptx_get(k, s->sum[i][n][2 * h + e]);
                    value = ptx_op2(k, PTX_MUL, PTX_RN, value, factor[e]);
                    if (f->flags & PTXK_GEMM_BIAS) value = ptx_op2(k, PTX_ADD, PTX_RN, value, bias[i][h]);
                    if (f->pair > 1) {
                        up = ptx_get(k, s->sum[i + 1][n][2 * h + e]);
                        up = ptx_op2(k, PTX_MUL, PTX_RN, up, factor[e]);
                        if (f->flags & PTXK_GEMM_BIAS) up = ptx_op2(k, PTX_ADD, PTX_RN, up, bias[i + 1][h]);
                        value = f->flags & PTXK_GEMM_SWIGLU ? ptxk__silu(k, value) : ptxk__gelu(k, value);
                        value = ptx_op2(k, PTX_MUL, PTX_RN, value, up);
                    }
                    p = ptx_and(k, inside[i][h], exists[e]);
                    ptx_if(k, p);
                    if (f->flags & PTXK_GEMM_RESIDUAL) {
                        at = ptx_ptr_add(k, res[e], row[i][h], bytes);
                        ptxk_load_f32(k, f->output, 1, ptx_at(at, 0), &old);
                        value = ptx_op2(k, PTX_ADD, PTX_RN, value, old);
                    }
                    at = ptx_ptr_add(k, base[e], row[i][h], bytes);
                    ptxk_store_f32(k, f->output, 1, ptx_at(at, 0), &value);
                    ptx_end(k);
                }
    }
}

/* The block's place: returns its tile of rows, numbered through all outputs. */
static ptx_val ptxk__gemm_locate(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s) {
    ptx_val tile, x, q;
    tile = ptx_ctaid_x(k);
    s->column_tile = ptx_sreg(k, PTX_CTAID_Z);
    if (f->columns >= 64) {
        x = ptx_div(k, tile, ptx_u32(PTXK__GEMM_RASTER));
        tile = ptx_and(k, tile, ptx_u32(PTXK__GEMM_RASTER - 1));
        tile = ptx_mad(k, s->column_tile, ptx_u32(PTXK__GEMM_RASTER), tile);
        s->column_tile = x;
    }
    s->slice = ptx_ctaid_y(k);
    s->slices = ptx_sreg(k, PTX_NCTAID_Y);
    if (f->flags & PTXK_GEMM_GROUPED) {
        s->place = ptxk__gemm_find(k, f, s->args, s->column_tile);
        s->columns_left = s->place.left;
        return tile;
    }
    x = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemm_args, m));
    q = ptx_mul(k, s->column_tile, ptx_u32(f->columns));
    s->columns_left = ptx_sub(k, x, q);
    return tile;
}

/* Selects the tile's matrix among those of the class. */
static void ptxk__gemm_select(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val tile,
                              ptx_val later[PTXK__GEMM_MATRICES]) {
    ptx_val skip = ptx_u32(0);
    uint32_t i;
    int found = 0;
    memset(later, 0, PTXK__GEMM_MATRICES * sizeof *later);
    for (i = 0; i < f->outputs; i++) {
        if (&f->kind[f->which[i]] != s->kind) continue;
        if (i) {
            later[i] = ptx_setp(k, PTX_GE, tile, s->layout.tiles[i - 1]);
            skip = found ? ptx_selp(k, s->layout.tiles[i - 1], skip, later[i]) : s->layout.tiles[i - 1];
        }
        found = 1;
    }
    s->row_tile = ptx_sub(k, tile, skip);
    s->n = ptxk__gemm_field(k, f, s, later, offsetof(ptxk_gemm_matrix, n), PTX_U32);
}

/* The address of the weights of the tile's group. */
static ptx_val ptxk__gemm_group_weights(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s,
                                        ptx_val later[PTXK__GEMM_MATRICES], uint32_t i, ptx_val weights) {
    size_t at = offsetof(ptxk_gemm_args, group_stride);
    ptx_val stride, packed, p;
    stride = i ? ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)(at + 8)))
               : ptxk__gemm_select_field(k, f, s, later, at, 8, PTX_U64);
    packed = ptxk__arg_u32(k, s->args, offsetof(ptxk_gemm_args, k));
    packed = ptx_div(k, packed, ptx_u32(s->kind->block->values));
    packed = ptx_mul(k, packed, ptx_u32(s->kind->block->bytes));
    packed = ptx_mul_wide(k, packed, s->n);
    p = ptx_setp(k, PTX_EQ, stride, ptx_u64(0));
    stride = ptx_selp(k, packed, stride, p);
    p = ptx_cvt(k, PTX_U64, s->place.group);
    return ptx_mad(k, stride, p, weights);
}

/* Computes a tile of the matrices of one class. */
static void ptxk__gemm_tile(ptx_kernel *k, const ptxk__gemm *f, ptxk__gemm_state *s, ptx_val tile) {
    ptx_val later[PTXK__GEMM_MATRICES], skip, x;
    uint32_t i;
    ptxk__gemm_select(k, f, s, tile, later);
    for (i = 0; i < f->pair; i++) {
        x = i ? ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)PTXK__GEMM_FIELD(1, weights)))
              : ptxk__gemm_field(k, f, s, later, offsetof(ptxk_gemm_matrix, weights), PTX_U64);
        if (f->flags & PTXK_GEMM_GROUPED) x = ptxk__gemm_group_weights(k, f, s, later, i, x);
        s->weights[i] = ptx_ptr(x, PTX_GLOBAL);
    }
    s->form = &f->x[s->kind->x];
    if (f->wide)
        ptxk__gemm_wide_products(k, f, s);
    else
        ptxk__gemm_products(k, f, s);
    /* computed again, to save registers in the loop */
    ptxk__gemm_layout_of(k, f, s->args, &s->layout);
    tile = ptxk__gemm_locate(k, f, s);
    ptxk__gemm_select(k, f, s, tile, later);
    ptxk__gemm_join(k, f, s, tile);
    x = ptxk__gemm_field(k, f, s, later, offsetof(ptxk_gemm_matrix, y), PTX_U64);
    s->y = ptx_ptr(x, PTX_GLOBAL);
    x = ptxk__gemm_field(k, f, s, later, offsetof(ptxk_gemm_matrix, y_stride), PTX_U64);
    x = ptx_cvt(k, PTX_U32, x);
    skip = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    s->y_stride = ptx_selp(k, s->n, x, skip);
    for (i = 0; i < f->pair && f->flags & PTXK_GEMM_BIAS; i++) {
        x = i ? ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)PTXK__GEMM_FIELD(1, bias)))
              : ptxk__gemm_field(k, f, s, later, offsetof(ptxk_gemm_matrix, bias), PTX_U64);
        s->bias[i] = ptx_ptr(x, PTX_GLOBAL);
        if (!(f->flags & PTXK_GEMM_GROUPED)) continue;
        x = ptx_mul_wide(k, s->place.group, s->n);
        s->bias[i] = ptx_ptr_add(k, s->bias[i], x, 4);
    }
    ptxk__gemm_store(k, f, s);
}

static void ptxk__gemm_rows(ptx_module *m, const char *site, const ptxk__gemm *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__gemm_state state, *s = &state, start;
    ptx_val tile, p, q, x;
    uint32_t i, c;
    memset(s, 0, sizeof *s);
    ptx_launch_bounds(k, 32 * f->warps, 1);
    s->args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_gemm_args), 8);
    s->shared = ptx_shared_dynamic_aligned(k, 128);
    s->flag = ptx_ptr_add(k, s->shared, ptx_u32(f->shared - 16), 1);
    s->tid = ptx_tid_x(k);
    s->lane = ptx_and(k, s->tid, ptx_u32(31));
    s->warp = ptx_shr(k, s->tid, ptx_u32(5));
    s->g = ptx_shr(k, s->lane, ptx_u32(2));
    s->t = ptx_and(k, s->lane, ptx_u32(3));
    ptxk__gemm_layout_of(k, f, s->args, &s->layout);
    tile = ptxk__gemm_locate(k, f, s);
    if (f->columns >= 64) {
        p = ptx_setp(k, PTX_GE, tile, s->layout.tiles[f->outputs - 1]);
        ptx_guard(k, p);
        ptx_ret(k);
    }
    if (f->flags & PTXK_GEMM_GROUPED) {
        p = ptx_not(k, s->place.exists);
        ptx_guard(k, p);
        ptx_ret(k);
    }
    start = state;
    for (c = 0; c < f->classes; c++) {
        state = start;
        s->kind = &f->kind[c];
        if (c + 1 < f->classes) { /* the tiles of this class */
            p = ptx_setp(k, PTX_NE, ptx_u32(0), ptx_u32(0));
            for (i = 0; i < f->outputs; i++) {
                if (f->which[i] != c) continue;
                q = ptx_setp(k, PTX_LT, tile, s->layout.tiles[i]);
                if (i) {
                    x = ptx_setp(k, PTX_GE, tile, s->layout.tiles[i - 1]);
                    q = ptx_and(k, q, x);
                }
                p = ptx_or(k, p, q);
            }
            ptx_if(k, p);
        }
        ptxk__gemm_tile(k, f, s, tile);
        ptx_ret(k);
        if (c + 1 < f->classes) ptx_end(k);
    }
}

/* -- gemm: the entries -- */

PTXGEN_API ptx_code ptxk_gemm_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__gemm f;
    ptxk_message why;
    char name[140], base[120];
    size_t at = 0;
    uint32_t i;
    ptx_code code = ptxk__gemm_form((const ptxk_gemm_desc *)desc, m ? ptx_module_target(m) : 0, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    at += (size_t)snprintf(base, sizeof base, "gemm");
    for (i = 0; i < f.matrices; i++)
        at += (size_t)snprintf(base + at, sizeof base - at, "_%s", f.kind[f.which[i]].block->name);
    (void)snprintf(base + at, sizeof base - at, "_c%u_%s_%s_%s_f%u", f.columns,
                   f.precision == PTXK_GEMM_EXACT ? "exact" : "fast", ptx_type_name(f.x_type),
                   ptx_type_name(f.output), f.flags);
    (void)snprintf(name, sizeof name, "%s_x", base);
    ptxk__gemm_prepare(m, site, &f, name);
    ptxk__gemm_rows(m, site, &f, base);
    return ptx_get_error(m)->code;
}

/* ======== matmul ======================================================================================== */

/* -- matmul: forms -- */

#define PTXK__MATMUL_STEP 64u   /* bytes along k that a stage holds of each row or column */
#define PTXK__MATMUL_FRAGS 4u   /* most tiles of 16 rows, and pairs of 8 columns, of a warp */
#define PTXK__MATMUL_BLOCK 128u /* elements along k that share a factor */
#define PTXK__MATMUL_INT 65536u /* products of s8 that an s32 sum takes: 2^16 * 2^14 = 2^30 */
#define PTXK__MATMUL_BAND 8u    /* rows of tiles that neighbouring blocks share, for the L2 cache */

/* One of the two factors: op(A), whose rows are the tile's rows, or op(B), whose columns are its columns. */
typedef struct ptxk__matmul_side {
    uint32_t span, part;   /* rows (columns) of the block's tile, of a warp's part of it */
    uint32_t k_major;      /* k runs along the rows of the tile in shared memory */
    uint32_t gather;       /* k runs across the rows in memory, but not in shared memory: 8-bit types, which
                              ldmatrix cannot transpose, and without tensor cores; copied by elements */
    uint32_t rows, chunks; /* the tile in shared memory: rows of 16-byte chunks */
    uint32_t lanes;        /* threads that copy a row: adjacent chunks, each ... */
    uint32_t times;        /* ... this many, `lanes` chunks apart */
    uint32_t pass, passes; /* rows that the block copies at once, and how often */
    uint32_t at;           /* byte offset in a stage */
    uint32_t kind;         /* of its factors: PTXK_FACTORS_... */
} ptxk__matmul_side;

/* All that a description, a target and a tile determine. */
typedef struct ptxk__matmul {
    ptx_type type[2], out;
    uint32_t flags, precision, activation, grouped, chip;
    uint32_t bytes, out_bytes; /* of an element */
    uint32_t tile, depth;      /* rows and columns of the block's tile; elements of a step along k */
    uint32_t warps, across;    /* warps of a block; of them along the columns */
    uint32_t stages, unroll;
    uint32_t plain;   /* the target's tensor cores lack the type: f32 arithmetic */
    uint32_t widen;   /* e4m3 and e5m2 are multiplied as f16, as the assembler does on these targets anyway */
    uint32_t split;   /* sums of some steps are added to f32 sums in other registers: */
    uint32_t promote; /* after so many steps of the unrolled loop; 0: counted at run time */
    uint32_t blocks;  /* the factors differ along k: a promotion is one block of 128 */
    uint32_t resident; /* blocks of a multiprocessor */
    uint32_t dense;    /* the target has the form of warpgroups */
    ptxk__matmul_side side[2];
    uint32_t stage_bytes, pitch; /* pitch: of the rows through which results are stored, in f32 */
} ptxk__matmul;

static uint32_t ptxk__matmul_bytes(uint32_t type) {
    return type == PTX_E4M3 || type == PTX_E5M2 || type == PTX_S8 ? 1u : ptxk__kv_bytes(type);
}

static uint32_t ptxk__matmul_shared(const ptxk__matmul *f) {
    uint32_t stages = f->stages * f->stage_bytes, out = f->warps * 32 * f->pitch * 4;
    return stages > out ? stages : out;
}

/* Chooses the tile's form. small_tile: 64 x 64 instead of 128 x 128. */
static void ptxk__matmul_shape_tile(ptxk__matmul *f, uint32_t small_tile) {
    uint32_t i, threads;
    f->tile = small_tile ? 64 : 128;
    f->depth = PTXK__MATMUL_STEP / f->bytes;
    f->split = f->bytes == 1 || (f->bytes == 4 && f->precision == PTXK_MATMUL_EXACT);
    f->warps = !small_tile && (f->split || f->chip < 80) ? 8 : 4;
    f->across = f->warps / 2;
    f->stages = f->chip < 80 ? 2 : f->bytes == 1 ? 4 : 3;
    f->unroll = f->split || small_tile ? f->stages : 2 * f->stages;
    f->blocks = f->side[0].kind >= PTXK_FACTORS_BLOCK || f->side[1].kind >= PTXK_FACTORS_BLOCK;
    f->promote = f->bytes == 4 ? f->unroll : f->type[0] == PTX_S8 && !f->blocks && !f->plain ? 0 : 2;
    f->widen = f->bytes == 1 && f->type[0] != PTX_S8 && f->chip >= 90 && f->chip < 120;
    f->resident = small_tile ? 3 : f->warps == 8 ? 1 : 2;
    threads = 32 * f->warps;
    f->stage_bytes = 0;
    for (i = 0; i < 2; i++) {
        ptxk__matmul_side *s = &f->side[i];
        uint32_t along = i ? (f->flags & PTXK_MATMUL_TRANS_B) != 0 : !(f->flags & PTXK_MATMUL_TRANS_A);
        s->span = f->tile;
        s->part = f->tile / (i ? f->across : 2);
        s->gather = (f->bytes == 1 || f->plain) && !along;
        s->k_major = along || s->gather;
        s->rows = s->k_major ? f->tile : f->depth;
        s->chunks = (s->k_major ? f->depth : f->tile) * f->bytes / 16;
        s->lanes = s->k_major ? s->chunks : threads / s->rows;
        s->times = s->chunks / s->lanes;
        s->pass = threads / s->lanes;
        s->passes = s->rows / s->pass;
        s->at = f->stage_bytes;
        f->stage_bytes += s->rows * s->chunks * 16;
    }
    f->pitch = f->side[1].part + 8; /* 8 modulo 32: rows of a fragment fall into different banks */
}

static ptx_code ptxk__matmul_form(const ptxk_matmul_desc *d, ptx_target target, ptxk__matmul *f,
                                  ptxk_message *why) {
    static const char *const names[] = {"a_type", "b_type"}, *const kinds[] = {"a_factors", "b_factors"};
    uint32_t i, kind, chip = target & 0xfffu;
    if (why) why->text[0] = 0;
    memset(f, 0, sizeof *f);
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "matmul: the description is NULL");
    for (i = 0; i < 2; i++) {
        uint32_t type = i ? d->b_type : d->a_type;
        if (!ptxk__matmul_bytes(type))
            return ptxk__refuse(why, PTX_E_DESC,
                                "matmul: %s is %s, must be PTX_F32, _F16, _BF16, _E4M3, _E5M2 or _S8",
                                names[i], ptxk__value_name_of(type).s);
        f->type[i] = (ptx_type)type;
        kind = i ? d->b_factors : d->a_factors;
        if (kind > PTXK_FACTORS_SQUARE)
            return ptxk__refuse(why, PTX_E_DESC, "matmul: %s is %u, must be one of PTXK_FACTORS_...",
                                kinds[i], kind);
        if (kind >= PTXK_FACTORS_BLOCK && ptxk__matmul_bytes(type) > 1)
            return ptxk__refuse(why, PTX_E_DESC,
                                "matmul: %s is %u, must be PTXK_FACTORS_NONE, _TENSOR or _ROW with %s of %s",
                                kinds[i], kind, names[i], ptxk__value_name_of(type).s);
        f->side[i].kind = kind;
    }
    if (d->a_type != d->b_type
        && (ptxk__matmul_bytes(d->a_type) > 1 || ptxk__matmul_bytes(d->b_type) > 1 || d->a_type == PTX_S8
            || d->b_type == PTX_S8))
        return ptxk__refuse(why, PTX_E_DESC, "matmul: b_type is %s, must be a_type, %s",
                            ptxk__value_name_of(d->b_type).s, ptxk__value_name_of(d->a_type).s);
    if (!ptxk__kv_bytes(d->out_type)) return ptxk__check_type("matmul", "out_type", d->out_type, why);
    if (d->flags > 15)
        return ptxk__refuse(why, PTX_E_DESC,
                            "matmul: flags is %u, must be of PTXK_MATMUL_TRANS_A, _TRANS_B, _BIAS, _GROUPED",
                            d->flags);
    if (d->precision > 1 || (d->precision && d->a_type != PTX_F32))
        return ptxk__refuse(why, PTX_E_DESC, "matmul: precision is %u, must be PTXK_MATMUL_EXACT%s",
                            d->precision,
                            d->a_type == PTX_F32 ? " or PTXK_MATMUL_FAST" : " with types other than PTX_F32");
    if (d->activation > PTXK_MATMUL_GELU)
        return ptxk__refuse(why, PTX_E_DESC,
                            "matmul: activation is %u, must be PTXK_MATMUL_LINEAR, _RELU, _SILU "
                            "or _GELU",
                            d->activation);
    f->bytes = ptxk__matmul_bytes(d->a_type);
    f->plain = f->type[0] != PTX_F16 && chip < (f->bytes == 1 && f->type[0] != PTX_S8 ? 89u : 80u);
    f->chip = chip;
    f->out = (ptx_type)d->out_type;
    f->out_bytes = ptxk__kv_bytes(d->out_type);
    f->flags = d->flags;
    f->grouped = d->flags & PTXK_MATMUL_GROUPED;
    f->precision = d->precision;
    f->activation = d->activation;
    /* wgmma multiplies other than 16-bit types with k along the rows, and tf32 once. */
    f->dense = target == PTX_SM_A(90) && !f->grouped
               && (f->bytes == 2
                   || (!(f->flags & PTXK_MATMUL_TRANS_A) && f->flags & PTXK_MATMUL_TRANS_B
                       && (f->bytes == 1 || f->precision == PTXK_MATMUL_FAST)));
    return PTX_E_NONE;
}

/* -- matmul: warpgroups (sm_90a) -- */

/* The form for sm_90a. A block has three warpgroups. One thread of the first copies stages of A and B by
   tensor maps into a ring in shared memory; the other two multiply them by wgmma. Blocks are persistent and
   take tiles by a fixed stride. The two blocks of a cluster have tiles one below the other, in the same
   columns: each copies half of B into both.

   Synchronisation: full[stage] counts the bytes of a stage; empty[stage] counts the consumer groups, of both
   blocks of a cluster, that have read it. Results pass through two boxes of each consumer group in shared
   memory, of 64 rows of 128 bytes; tensor maps copy them to D while the next box, or the next tile, is under
   way. The boxes of C are copied into the same places and have an mbarrier each. */
#define PTXK__DENSE_ROWS 128u     /* rows of a tile */
#define PTXK__DENSE_BOX 8192u     /* 64 rows of 128 bytes */
#define PTXK__DENSE_BAND 16u      /* rows of tiles that neighbouring blocks share, for the L2 cache */
#define PTXK__DENSE_DECREASED 24u /* registers of the copying warpgroup, of the others: 65536 in all */
#define PTXK__DENSE_INCREASED 240u

typedef struct ptxk__dense {
    const ptxk__matmul *f;
    uint32_t columns;   /* of a tile */
    uint32_t alternate; /* the consumer groups take tiles in turn; else each has 64 rows of every tile */
    uint32_t split;     /* the sums of a stage are added to f32 sums in other registers */
    uint32_t heights;   /* blocks of 64 rows of a consumer group */
    uint32_t depth;     /* elements along k of a stage: 128 bytes */
    uint32_t stages, bytes[2], stage_bytes; /* bytes of A's and B's part of a stage */
    uint32_t box;                           /* columns of a box of results */
} ptxk__dense;

/* entry: PTXK__DENSE_WIDE or PTXK__DENSE_SHORT, which there is not with split. */
enum { PTXK__DENSE_WIDE = 2, PTXK__DENSE_SHORT = 3 };
static void ptxk__dense_shape(const ptxk__matmul *f, uint32_t entry, ptxk__dense *d) {
    memset(d, 0, sizeof *d);
    d->f = f;
    d->split = f->bytes == 1 && (f->type[0] != PTX_S8 || f->blocks);
    d->columns = entry == PTXK__DENSE_WIDE && !d->split ? 256 : 128;
    d->alternate = entry == PTXK__DENSE_SHORT;
    d->heights = d->alternate ? 2 : 1;
    d->depth = 128 / f->bytes;
    d->bytes[0] = PTXK__DENSE_ROWS * 128;
    d->bytes[1] = d->columns * 128;
    d->stage_bytes = d->bytes[0] + d->bytes[1];
    d->stages = 4 * 49152 / d->stage_bytes;
    d->box = 128 / f->out_bytes;
}

static uint32_t ptxk__dense_shared(const ptxk__dense *d) {
    return d->stages * d->stage_bytes + 4 * PTXK__DENSE_BOX;
}

/* Units of work: the tiles of a cluster. What is left when each cluster has had as many as all others is
   divided along k: into as many parts as there are clusters for, but not so many that the sums of the parts,
   which the last one to finish adds, cost more than they save. */
#define PTXK__DENSE_PARTS 16u
typedef struct ptxk__dense_units {
    uint64_t units;   /* of whole tiles and parts */
    uint32_t workers; /* clusters that run at once */
    uint32_t divided, parts;
} ptxk__dense_units;

static uint64_t ptxk__dense_tiles(const ptxk__dense *d, const ptxk_matmul_shape *shape, uint32_t cluster) {
    uint32_t rows = ptxk__ceil_div(ptxk__ceil_div(shape->m, PTXK__DENSE_ROWS), cluster);
    return (uint64_t)rows * ptxk__ceil_div(shape->n, d->columns) * shape->batch;
}

static void ptxk__dense_count(const ptxk__dense *d, const ptxk_matmul_shape *shape, uint32_t cluster,
                              ptxk__dense_units *u) {
    uint64_t tiles = ptxk__dense_tiles(d, shape, cluster);
    uint32_t most, steps = ptxk__ceil_div(shape->k, d->depth) / 3;
    u->workers = shape->sm_count / cluster;
    u->divided = (uint32_t)(tiles % u->workers);
    most = u->divided ? u->workers / u->divided : 1;
    if (most > PTXK__DENSE_PARTS) most = PTXK__DENSE_PARTS;
    for (u->parts = 1; u->parts < most && (u->parts + 1) * (u->parts + 1) <= steps;) u->parts++;
    u->units = tiles + (uint64_t)u->divided * (u->parts - 1);
}

/* A number of a tensor map: `times` the field at `field` of `bytes` bytes. */
static ptx_map_number ptxk__map_number(uint64_t times, size_t field, uint32_t bytes) {
    ptx_map_number n;
    n.times = times;
    n.field = (uint32_t)field;
    n.bytes = bytes;
    return n;
}

/* Appends a map of the matrices of a batch to a plan: rows of `columns` elements. box: columns, rows. */
static ptx_tensor_map *ptxk__matmul_map(ptx_plan *plan, size_t address, ptx_type type, uint32_t bytes,
                                        size_t columns, size_t rows, size_t ld, size_t stride,
                                        uint32_t box_columns, uint32_t box_rows) {
    ptx_tensor_map *map = &plan->map[plan->maps++];
    map->address = (uint32_t)address;
    map->type = (uint32_t)type;
    map->rank = 3;
    map->swizzle = 128;
    map->box[0] = box_columns;
    map->box[1] = box_rows;
    map->box[2] = 1;
    map->size[0] = ptxk__map_number(1, columns, 4);
    map->size[1] = ptxk__map_number(1, rows, 4);
    map->size[2] = ptxk__map_number(1, offsetof(ptxk_matmul_args, batch), 4);
    map->stride[1] = ptxk__map_number(bytes, ld, 4);
    map->stride[2] = ptxk__map_number(bytes, stride, 8);
    return map;
}

/* Clocks of a multiprocessor: its tensor cores, or the L2 cache, which gives it some 32 bytes a clock; then
   results, which take turns hide where a block has several tiles, and sums of parts. */
#define PTXK__DENSE_L2 32u
static uint64_t ptxk__dense_clocks(const ptxk__dense *d, const ptxk_matmul_shape *shape, uint32_t cluster) {
    ptxk__dense_units u;
    uint64_t rounds, step = 4 * d->columns, l2 = (d->bytes[0] + d->bytes[1] / cluster) / PTXK__DENSE_L2,
                     clocks;
    uint32_t steps = ptxk__ceil_div(shape->k, d->depth), record = PTXK__DENSE_ROWS * d->columns * 4;
    ptxk__dense_count(d, shape, cluster, &u);
    rounds = ptxk__dense_tiles(d, shape, cluster) / u.workers;
    if (l2 > step) step = l2;
    clocks = 2000 + rounds * (steps * step + (d->alternate && rounds > 1 ? 200 : 6 * d->columns));
    if (u.divided) clocks += ptxk__ceil_div(steps, u.parts) * step + 6 * d->columns;
    if (u.parts > 1) clocks += (uint64_t)(u.parts + 1) * record / PTXK__DENSE_L2;
    return clocks;
}

/* Chooses the tiles and the cluster. */
static uint32_t ptxk__dense_choose(const ptxk__matmul *f, const ptxk_matmul_shape *shape, uint32_t *cluster) {
    uint64_t best = UINT64_MAX, clocks;
    uint32_t entry, blocks, chosen = PTXK__DENSE_WIDE;
    ptxk__dense d;
    for (entry = PTXK__DENSE_WIDE; entry <= PTXK__DENSE_SHORT; entry++) {
        ptxk__dense_shape(f, entry, &d);
        if (d.split && d.alternate) break;
        for (blocks = 1; blocks <= 2 && blocks <= shape->sm_count; blocks++) {
            clocks = ptxk__dense_clocks(&d, shape, blocks);
            if (clocks < best) best = clocks, chosen = entry, *cluster = blocks;
        }
    }
    return chosen;
}

static void ptxk__dense_lay_out(const ptxk__matmul *f, const ptxk_matmul_shape *shape, uint32_t entry,
                                uint32_t cluster, ptx_plan *plan) {
    const size_t m = offsetof(ptxk_matmul_args, m), n = offsetof(ptxk_matmul_args, n),
                 depth = offsetof(ptxk_matmul_args, k);
    ptxk__dense d;
    ptxk__dense_units u;
    uint32_t side, clusters;
    ptxk__dense_shape(f, entry, &d);
    ptxk__dense_count(&d, shape, cluster, &u);
    clusters = u.units < u.workers ? (uint32_t)u.units : u.workers;
    ptxk__plan_one(plan, clusters * cluster, 1, 384, plan->min_bytes);
    plan->launch[0].entry = entry;
    plan->launch[0].shared_bytes = ptxk__dense_shared(&d);
    if (cluster > 1)
        plan->launch[0].cluster[0] = cluster, plan->launch[0].cluster[1] = plan->launch[0].cluster[2] = 1;
    plan->zero_bytes = plan->workspace_bytes = 0;
    if (u.parts > 1) {
        uint64_t tiles = (uint64_t)u.divided * cluster;
        plan->zero_bytes = ptxk__up_256(tiles * (d.alternate ? 4 : 8));
        plan->workspace_bytes = plan->zero_bytes + tiles * u.parts * PTXK__DENSE_ROWS * d.columns * 4;
    }
    for (side = 0; side < 2; side++) {
        size_t at = side ? offsetof(ptxk_matmul_args, b) : offsetof(ptxk_matmul_args, a),
               ld = side ? offsetof(ptxk_matmul_args, ldb) : offsetof(ptxk_matmul_args, lda),
               stride = side ? offsetof(ptxk_matmul_args, b_stride) : offsetof(ptxk_matmul_args, a_stride),
               span = side ? n : m;
        if (f->side[side].k_major)
            ptxk__matmul_map(plan, at, f->bytes == 4 ? PTX_TF32 : f->type[side], f->bytes, depth, span, ld,
                             stride, d.depth, side ? d.columns / 2 : PTXK__DENSE_ROWS);
        else
            ptxk__matmul_map(plan, at, f->type[side], f->bytes, span, depth, ld, stride, 64, 64);
    }
    ptxk__matmul_map(plan, offsetof(ptxk_matmul_args, c), f->out, f->out_bytes, n, m,
                     offsetof(ptxk_matmul_args, ldc), offsetof(ptxk_matmul_args, c_stride), d.box, 64)
        ->substitute = offsetof(ptxk_matmul_args, d);
    ptxk__matmul_map(plan, offsetof(ptxk_matmul_args, d), f->out, f->out_bytes, n, m,
                     offsetof(ptxk_matmul_args, ldd), offsetof(ptxk_matmul_args, d_stride), d.box, 64);
}

/* -- matmul: plan -- */

#define PTXK__MATMUL_PARTS 32u /* most parts of k */

static uint64_t ptxk__matmul_tiles(const ptxk__matmul *f, const ptxk_matmul_shape *shape) {
    return (uint64_t)ptxk__ceil_div(shape->m, f->tile) * ptxk__ceil_div(shape->n, f->tile) * shape->batch;
}

/* Fills in the launch: tile 128 x 128, or small, 64 x 64. Tiles come in rounds of one for each
   multiprocessor; those of the last, incomplete round have k in so many parts. */
static void ptxk__matmul_lay_out(ptxk__matmul *f, const ptxk_matmul_shape *shape, uint32_t small_tile,
                                 uint32_t parts, ptx_plan *plan) {
    uint64_t tiles, divided;
    ptxk__matmul_shape_tile(f, small_tile);
    tiles = ptxk__matmul_tiles(f, shape);
    if (!tiles) return;
    divided = tiles % shape->sm_count;
    tiles += divided * (parts - 1);
    if (f->grouped) tiles = (uint64_t)shape->sm_count * f->resident; /* each walks the list */
    ptxk__plan_one(plan, (uint32_t)tiles, 1, 32 * f->warps, plan->min_bytes);
    plan->launch[0].entry = small_tile;
    plan->launch[0].shared_bytes = ptxk__matmul_shared(f);
    plan->zero_bytes = plan->workspace_bytes = 0;
    if (parts < 2 || !divided) return;
    plan->zero_bytes = ptxk__up_256(divided * 4);
    plan->workspace_bytes = plan->zero_bytes + divided * parts * f->tile * f->tile * 4;
}

/* How many factors a side has. */
static uint64_t ptxk__matmul_factor_count(uint32_t kind, uint32_t span, uint32_t k) {
    uint64_t blocks = ptxk__ceil_div(k, PTXK__MATMUL_BLOCK);
    return kind == PTXK_FACTORS_TENSOR   ? 1
           : kind == PTXK_FACTORS_ROW    ? span
           : kind == PTXK_FACTORS_BLOCK  ? span * blocks
           : kind == PTXK_FACTORS_SQUARE ? ptxk__ceil_div(span, PTXK__MATMUL_BLOCK) * blocks
                                         : 0;
}

/* Chooses the tile and the parts of k by the time of the multiprocessor with most work: a step of a small
   tile is a quarter of the products, and takes 5 sixteenths of the time; a block begins and ends in some 6
   steps; the last block of a tile reads the sums of all parts. */
static void ptxk__matmul_choose(ptxk__matmul *f, const ptxk_matmul_shape *shape, uint32_t *small_tile,
                                uint32_t *parts) {
    uint64_t best = UINT64_MAX, rounds, divided, cost;
    uint32_t i, n, steps, part;
    for (i = 0; i < 2; i++) {
        ptxk__matmul_shape_tile(f, i);
        rounds = ptxk__matmul_tiles(f, shape);
        divided = rounds % shape->sm_count;
        rounds /= shape->sm_count;
        steps = ptxk__ceil_div(shape->k, f->depth);
        for (n = 1; n <= (f->grouped || !divided ? 1 : PTXK__MATMUL_PARTS); n++) {
            part = ptxk__ceil_div(steps, n);
            if (n > 1 && part < 4) break;
            cost = rounds * (steps + 6);
            if (divided) cost += (divided * n + shape->sm_count - 1) / shape->sm_count * (part + 6);
            cost = cost * (i ? 5 : 16) + (n > 1 ? (n + 1) * (i ? 8u : 32u) : 0);
            if (cost < best) best = cost, *small_tile = i, *parts = n;
        }
    }
}

PTXGEN_API ptx_code ptxk_matmul_plan(const ptxk_matmul_desc *desc, const ptxk_matmul_shape *shape,
                                     ptx_plan *plan, ptxk_message *why) {
    static const char *const op = "matmul";
    ptxk__matmul f;
    uint32_t small_tile = 0, parts = 1, cluster = 1, i;
    uint64_t bytes;
    ptx_code code = ptxk__matmul_form(desc, shape && shape->target ? shape->target : PTX_SM(75), &f, why);
    code = ptxk__plan_start(op, code, shape, plan, sizeof(ptxk_matmul_args), why);
    if (code || (code = ptxk__check_most(op, "m", shape->m, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_most(op, "n", shape->n, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_most(op, "k", shape->k, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_most(op, "batch", shape->batch, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_most(op, "aligned", shape->aligned, 1, why)) != PTX_E_NONE
        || (code = ptxk__check_n(op, "sm_count", shape->sm_count, 65536, why)) != PTX_E_NONE)
        return code;
    if (shape->target && (shape->target & 0xfffu) < 75)
        return ptxk__refuse(why, PTX_E_DESC,
                            "matmul: target is %u, must be that of the module, such as PTX_SM(80)",
                            shape->target);
    bytes = (uint64_t)ptxk__ceil_div(shape->m, 64) * ptxk__ceil_div(shape->n, 64);
    if (shape->batch && bytes > PTXK__LEN_MAX / shape->batch)
        return ptxk__refuse(why, PTX_E_DESC,
                            "matmul: m, n, batch are %u, %u, %u: more than 2^31 - 1 tiles of 64 by 64",
                            shape->m, shape->n, shape->batch);
    ptxk__matmul_choose(&f, shape, &small_tile, &parts);
    plan->min_bytes = ((uint64_t)shape->m + shape->n) * shape->k * f.bytes
                      + (uint64_t)shape->m * shape->n * f.out_bytes
                      + (f.flags & PTXK_MATMUL_BIAS ? (uint64_t)shape->n * 4 : 0);
    for (i = 0; i < 2; i++)
        plan->min_bytes += 4 * ptxk__matmul_factor_count(f.side[i].kind, i ? shape->n : shape->m, shape->k);
    plan->min_bytes *= shape->batch;
    if (f.dense && shape->aligned && shape->m && shape->n && shape->k && shape->batch
        && (f.type[0] != PTX_S8 || f.blocks || shape->k < 2 * PTXK__MATMUL_INT)) {
        i = ptxk__dense_choose(&f, shape, &cluster);
        ptxk__dense_lay_out(&f, shape, i, cluster, plan);
        return PTX_E_NONE;
    }
    ptxk__matmul_lay_out(&f, shape, small_tile, parts, plan);
    return PTX_E_NONE;
}

PTXGEN_API int ptxk_matmul_aligned(const ptxk_matmul_desc *desc, const ptxk_matmul_args *args) {
    ptxk__matmul f;
    uint64_t bits;
    if (!args || ptxk__matmul_form(desc, PTX_SM(75), &f, NULL) || f.grouped) return 0;
    if (!(args->alpha < 0 || args->alpha > 0) || !args->a || !args->b || !args->d) return 0;
    bits = args->a | args->b | args->d | (args->lda | args->ldb | args->a_stride | args->b_stride) * f.bytes
           | (args->ldd | args->d_stride) * f.out_bytes;
    if (args->c) bits |= args->c | (args->ldc | args->c_stride) * f.out_bytes;
    return bits % 16 == 0;
}

/* The span of a matrix of the batch: rows of `columns` elements. */
static ptxk__span ptxk__matmul_span(const char *name, uint64_t at, uint32_t bytes, uint64_t rows,
                                    uint64_t columns, uint64_t ld, uint64_t batch, uint64_t stride) {
    ptxk__span s = ptxk__span_of(name, at, columns * bytes, bytes, 1);
    int fits = 1;
    uint64_t wide = ptxk__multiply_checked(stride, bytes, &fits);
    ptxk__span_repeat(&s, 0, rows, ld * bytes);
    ptxk__span_repeat(&s, 1, batch, fits ? wide : UINT64_MAX);
    return s;
}

PTXGEN_API ptx_code ptxk_matmul_check(const ptxk_matmul_desc *desc, const ptxk_matmul_args *args,
                                      ptxk_message *why) {
    static const char *const op = "matmul", *const ld_names[] = {"lda", "ldb", "ldc", "ldd"},
                             *const factor_names[] = {"a_factors", "b_factors"};
    ptxk__matmul f;
    ptxk__span s[9];
    uint32_t i, n = 0, rows[4], columns[4], ld[4];
    ptx_code code = ptxk__matmul_form(desc, PTX_SM(120), &f, why);
    code = ptxk__check_start(op, code, args, why);
    if (code) return code;
    if ((code = ptxk__check_zero(op, "reserved", args->reserved, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "sm_count", args->sm_count, 1, 65536, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "batch", args->batch, 0, PTXK__LEN_MAX, why)) != PTX_E_NONE)
        return code;
    if (f.grouped) {
        s[0] = ptxk__span_of("groups", args->groups, (uint64_t)args->batch * sizeof(ptxk_matmul_group), 8, 1);
        return ptxk__check_spans(op, s, 1, why);
    }
    if ((code = ptxk__check_count(op, "m", args->m, 0, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "n", args->n, 0, PTXK__LEN_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_count(op, "k", args->k, 0, PTXK__LEN_MAX, why)) != PTX_E_NONE)
        return code;
    rows[0] = f.flags & PTXK_MATMUL_TRANS_A ? args->k : args->m;
    columns[0] = f.flags & PTXK_MATMUL_TRANS_A ? args->m : args->k;
    rows[1] = f.flags & PTXK_MATMUL_TRANS_B ? args->n : args->k;
    columns[1] = f.flags & PTXK_MATMUL_TRANS_B ? args->k : args->n;
    rows[2] = rows[3] = args->m;
    columns[2] = columns[3] = args->n;
    memcpy(ld, &args->lda, sizeof ld);
    for (i = 0; i < 4; i++)
        if (ld[i] < columns[i] && rows[i] > 1 && (i != 2 || args->beta < 0 || args->beta > 0))
            return ptxk__refuse(why, PTX_E_ARGUMENT,
                                "matmul: %s is %u, must be at least %u, the row's length", ld_names[i], ld[i],
                                columns[i]);
    s[n++] =
        ptxk__matmul_span("a", args->a, f.bytes, rows[0], columns[0], ld[0], args->batch, args->a_stride);
    s[n++] =
        ptxk__matmul_span("b", args->b, f.bytes, rows[1], columns[1], ld[1], args->batch, args->b_stride);
    for (i = 0; i < 2; i++) s[i].needed = args->m && args->n && (args->alpha < 0 || args->alpha > 0);
    s[n] =
        ptxk__matmul_span("c", args->c, f.out_bytes, rows[2], columns[2], ld[2], args->batch, args->c_stride);
    s[n].same = 1;
    s[n++].needed = args->beta < 0 || args->beta > 0;
    s[n] =
        ptxk__matmul_span("d", args->d, f.out_bytes, rows[3], columns[3], ld[3], args->batch, args->d_stride);
    s[n] = ptxk__span_written(s[n], 1);
    n++;
    s[n++] = ptxk__span_of("bias", args->bias, (uint64_t)args->n * 4, 4, (f.flags & PTXK_MATMUL_BIAS) != 0);
    for (i = 0; i < 2; i++) {
        uint64_t count = ptxk__matmul_factor_count(f.side[i].kind, i ? args->n : args->m, args->k);
        s[n] = ptxk__matmul_span(factor_names[i], i ? args->b_factors : args->a_factors, 4, 1, count, count,
                                 args->batch, i ? args->b_factors_stride : args->a_factors_stride);
        s[n++].needed = f.side[i].kind != PTXK_FACTORS_NONE;
    }
    s[n] = ptxk__span_of("workspace", args->workspace, 256, 256, args->workspace != 0);
    s[n] = ptxk__span_written(s[n], 0);
    return ptxk__check_spans(op, s, n + 1, why);
}

/* -- matmul: the state of a thread -- */

typedef struct ptxk__matmul_fragments {
    ptx_val x[2][PTXK__MATMUL_FRAGS][4]; /* of A: tiles of 16 rows; of B: pairs of 8 columns */
} ptxk__matmul_fragments;

/* A thread has rows g and g + 8 (lane = 4 g + t) and columns 2 t and 2 t + 1 of each 16 x 8 of its warp. */
typedef struct ptxk__matmul_state {
    ptx_val args, shared, tid, lane, warp;
    ptx_val batch;                      /* u32: of the batch */
    ptx_val problem;                    /* the arguments, or the group's struct, which begins like them */
    ptx_val base[2], ld[2];             /* addresses of A and B, elements from row to row */
    ptx_val first[2], limit[2];         /* the tile's first row and column; m and n */
    ptx_val row[2], chunk[2], to[2][2]; /* the first chunk that the thread copies; where to, in stage 0 */
    ptx_val inside[2][4];               /* small tiles, k across: bytes of its chunks, 16 or 0 */
    ptx_val skip[2];                    /* rows (columns) of the tile below it are another block's */
    ptx_val reader[2][4];               /* from where it reads fragments */
    ptx_val begin, end;                 /* of k */
    ptx_val index, parts;               /* u32: the block's part of k, of so many */
    ptx_val count;                      /* blocks of 128 along k */
    ptx_val from[2][4]; /* source of the copies: k along the rows, of step 0; k across, of the next step */
    ptx_val hop[2];     /* k across: u64, bytes from one step to the next */
    ptx_val staged[2][4][4]; /* before sm_80: data on its way */
    ptx_var sum[PTXK__MATMUL_FRAGS][2 * PTXK__MATMUL_FRAGS][4];
    ptx_var part[PTXK__MATMUL_FRAGS][2 * PTXK__MATMUL_FRAGS][4]; /* with split */
    ptx_val now[PTXK__MATMUL_FRAGS][2 * PTXK__MATMUL_FRAGS][4];  /* the one that mma adds to, within a step */
    ptx_val factor[2][8]; /* of the block of 128: of the thread's rows, of its columns */
} ptxk__matmul_state;

static uint32_t ptxk__matmul_frags(const ptxk__matmul *f, uint32_t side) { return f->side[side].part / 16; }

/* The byte offset of a chunk in a tile of shared memory, swizzled. K along the rows, 64 bytes: ldmatrix reads
   8 rows, two of them fill the banks. K across: ldmatrix reads 8 rows; f32 are read as words, 8 columns of 4
   rows at once. */
static ptx_val ptxk__matmul_place(ptx_kernel *k, const ptxk__matmul *f, uint32_t side, ptx_val row,
                                  ptx_val chunk) {
    const ptxk__matmul_side *s = &f->side[side];
    ptx_val turn;
    if (s->k_major) {
        turn = ptx_bfe(k, row, ptx_u32(1), ptx_u32(2));
    } else if (f->bytes == 4) {
        turn = ptx_and(k, row, ptx_u32(3));
        turn = ptx_mul(k, turn, ptx_u32(2));
    } else {
        turn = ptx_and(k, row, ptx_u32(7));
    }
    turn = ptx_xor(k, turn, chunk);
    turn = ptx_mad(k, row, ptx_u32(s->chunks), turn);
    return ptx_mul(k, turn, ptx_u32(16));
}

/* Prepares the places of a thread in the tiles: what it copies, what it reads. */
static void ptxk__matmul_places(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s, uint32_t side) {
    const ptxk__matmul_side *d = &f->side[side];
    ptx_val tile = ptx_ptr_add(k, s->shared, ptx_u32(d->at), 1), row, half, x, at, which;
    uint32_t i;
    s->row[side] = ptx_div(k, s->tid, ptx_u32(d->lanes));
    s->chunk[side] = ptx_and(k, s->tid, ptx_u32(d->lanes - 1));
    if (d->lanes == 4 && !d->k_major) { /* 8 threads copy rows r and r + 4: their turns differ by 4 chunks */
        x = ptx_bfe(k, s->row[side], ptx_u32(1), ptx_u32(2));
        row = ptx_and(k, s->row[side], ptx_u32(1));
        x = ptx_mad(k, row, ptx_u32(4), x);
        row = ptx_and(k, s->row[side], ptx_u32(24));
        s->row[side] = ptx_add(k, row, x);
    }
    at = ptxk__matmul_place(k, f, side, s->row[side], s->chunk[side]);
    s->to[side][0] = s->to[side][1] = ptx_ptr_add(k, tile, at, 1);
    if (d->lanes == 4 && d->times > 1) {
        x = ptx_xor(k, ptx_as(s->to[side][0], PTX_B32), ptx_b32(64));
        s->to[side][1] = ptx_ptr(ptx_as(x, PTX_U32), PTX_SHARED);
    }
    which = side ? ptx_and(k, s->warp, ptx_u32(f->across - 1)) : ptx_div(k, s->warp, ptx_u32(f->across));
    if (f->plain) { /* rows g, columns 2 t, chunk 0 */
        row = side ? ptx_and(k, s->lane, ptx_u32(3)) : ptx_shr(k, s->lane, ptx_u32(2));
        if (side) row = ptx_mul(k, row, ptx_u32(2));
        row = ptx_mad(k, which, ptx_u32(d->part), row);
        at = ptxk__matmul_place(k, f, side, row, ptx_u32(0));
    } else if (d->k_major) {
        if (side)
            ptxk__lane_columns(k, s->lane, &row, &half);
        else
            ptxk__lane_rows(k, s->lane, &row, &half);
        row = ptx_mad(k, which, ptx_u32(d->part), row);
        at = ptxk__matmul_place(k, f, side, row, half);
    } else if (f->bytes == 2) {
        if (side)
            ptxk__lane_rows(k, s->lane, &row, &half);
        else
            ptxk__lane_columns(k, s->lane, &row, &half);
        half = ptx_mad(k, which, ptx_u32(d->part / 8), half);
        at = ptxk__matmul_place(k, f, side, row, half);
    } else {
        row = ptx_and(k, s->lane, ptx_u32(3));
        half = ptx_shr(k, s->lane, ptx_u32(4));
        half = ptx_mad(k, which, ptx_u32(d->part / 4), half);
        at = ptxk__matmul_place(k, f, side, row, half);
        x = ptx_bfe(k, s->lane, ptx_u32(2), ptx_u32(2));
        at = ptx_mad(k, x, ptx_u32(4), at);
    }
    at = ptx_ptr_add(k, tile, at, 1);
    s->reader[side][0] = at;
    for (i = 1; i < 4 && !f->plain;
         i++) { /* the tile begins at a multiple of 128: these differ in bits only */
        s->reader[side][i] = at;
        if (i > 1 && d->k_major) continue;
        x = ptx_xor(k, ptx_as(at, PTX_B32), ptx_b32(32 * i));
        s->reader[side][i] = ptx_ptr(ptx_as(x, PTX_U32), PTX_SHARED);
    }
}

/* Loads the fragments of half a step from a stage. */
static void ptxk__matmul_load(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_state *s,
                              uint32_t stage, uint32_t half, ptxk__matmul_fragments *out) {
    uint32_t side, i, e, q, y;
    for (side = 0; side < 2 && !f->plain; side++) {
        const ptxk__matmul_side *d = &f->side[side];
        int64_t at = (int64_t)(stage * f->stage_bytes);
        for (i = 0; i < ptxk__matmul_frags(f, side); i++) {
            ptx_val *x = out->x[side][i];
            if (d->k_major) {
                ptx_ldmatrix(k, 4, ptx_off(s->reader[side][half], at + (int64_t)(i * 16 * d->chunks * 16)),
                             x);
            } else if (f->bytes == 2) {
                ptx_ldmatrix_trans(
                    k, 4, ptx_off(s->reader[side][i % 4], at + (int64_t)(half * 16 * d->chunks * 16)), x);
            } else {
                for (e = 0; e < 4; e++) {
                    q = 2 * i + (side ? e / 2 : e & 1); /* 8 rows (columns) */
                    y = 8 * half + 4 * (side ? e & 1 : e / 2);
                    x[e] = ptx_ld(
                        k, PTX_B32,
                        ptx_at(s->reader[side][q % 4], at + (int64_t)(y * d->chunks * 16 + q / 4 * 128)));
                }
            }
        }
    }
}

/* -- matmul: products -- */

/* An f32 number for products on tf32, which keep 11 bits of each factor: rounded to them (FAST); or (EXACT)
   as a sum of two, the rest with an error of 2^-23 of the number. A number past 3.4019e38, which would round
   to infinity, an infinite one and NaN have no rest, and are not multiplied by the rests of others. */
typedef struct ptxk__matmul_parts {
    ptx_val x[4], finite[4], rest[4];
} ptxk__matmul_parts;

static void ptxk__matmul_split(ptx_kernel *k, const ptxk__matmul *f, ptx_type type, const ptx_val x[4],
                               ptxk__matmul_parts *out) {
    ptx_val size, p, whole, round;
    uint32_t i;
    if (f->widen) { /* two registers of f16 for each: elements 0 and 1, elements 2 and 3 */
        ptx_type pair = type == PTX_E4M3 ? PTX_E4M3X2 : PTX_E5M2X2;
        ptx_val half[2];
        for (i = 0; i < 4; i++) {
            ptx_unpack(k, PTX_B16, 2, x[i], half);
            out->x[i] = ptx_cvt(k, PTX_F16X2, ptx_as(half[0], pair));
            out->rest[i] = ptx_cvt(k, PTX_F16X2, ptx_as(half[1], pair));
            out->x[i] = ptx_as(out->x[i], PTX_B32);
            out->rest[i] = ptx_as(out->rest[i], PTX_B32);
        }
        return;
    }
    for (i = 0; i < 4; i++) {
        out->x[i] = x[i];
        if (f->bytes != 4) continue;
        if (f->precision == PTXK_MATMUL_FAST) {
            out->x[i] = ptx_cvt_with(k, PTX_RNA, PTX_TF32, ptx_as(x[i], PTX_F32));
            continue;
        }
        size = ptx_abs(k, ptx_as(x[i], PTX_F32));
        p = ptx_setp(k, PTX_LT, size, ptx_f32(3.4019e38));
        whole = ptx_selp(k, ptx_as(x[i], PTX_U32), ptx_u32(0), p);
        round = ptx_add(k, whole, ptx_u32(0x1000));
        round = ptx_and(k, ptx_as(round, PTX_B32), ptx_b32(0xffffe000u));
        out->finite[i] = round;
        out->x[i] = ptx_selp(k, round, x[i], p);
        out->rest[i] = ptx_op2(k, PTX_SUB, PTX_RN, ptx_as(whole, PTX_F32), ptx_as(round, PTX_F32));
    }
}

/* d += a b, 16 x 8, b from register `at` on. */
static void ptxk__matmul_mma(ptx_kernel *k, const ptxk__matmul *f, ptx_val d[4], const ptx_val *a,
                             const ptx_val *b) {
    ptx_val out[4];
    uint32_t i;
    if (f->bytes > 1 || f->widen) {
        ptxk__tile_mma(k, f->widen ? PTX_F16 : f->type[0], d, a, b);
        return;
    }
    ptx_mma(k, f->type[0] == PTX_S8 ? PTX_MMA_M16N8K32_S32 : PTX_MMA_M16N8K32_F32, f->type[0], f->type[1],
            out, a, b, d);
    for (i = 0; i < 4; i++) d[i] = out[i];
}

static void ptxk__matmul_multiply(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                  const ptxk__matmul_fragments *x) {
    ptxk__matmul_parts a[PTXK__MATMUL_FRAGS], b;
    uint32_t i, j, e;
    for (i = 0; i < ptxk__matmul_frags(f, 0); i++) ptxk__matmul_split(k, f, f->type[0], x->x[0][i], &a[i]);
    for (j = 0; j < ptxk__matmul_frags(f, 1); j++) {
        ptxk__matmul_split(k, f, f->type[1], x->x[1][j], &b);
        for (e = 0; e < 2; e++) {
            for (i = 0; i < ptxk__matmul_frags(f, 0); i++) {
                ptx_val *d = s->now[i][2 * j + e];
                if (f->bytes == 4 && f->precision == PTXK_MATMUL_EXACT) {
                    ptxk__matmul_mma(k, f, d, a[i].finite, b.rest + 2 * e);
                    ptxk__matmul_mma(k, f, d, a[i].rest, b.finite + 2 * e);
                }
                ptxk__matmul_mma(k, f, d, a[i].x, b.x + 2 * e);
                if (f->widen) ptxk__matmul_mma(k, f, d, a[i].rest, b.rest + 2 * e);
            }
        }
    }
}

/* Decodes 4 elements to f32. */
static void ptxk__matmul_decode(ptx_kernel *k, ptx_type type, const ptx_val *words, ptx_val out[4]) {
    uint32_t e;
    ptx_val x, p, sign;
    for (e = 0; e < 4; e++) {
        if (type == PTX_F32) {
            out[e] = ptx_as(words[e], PTX_F32);
        } else if (type == PTX_BF16) {
            if (!(e & 1)) ptxk__widen_word(k, type, words[e / 2], out + e);
        } else if (type == PTX_S8) {
            x = ptx_bfe(k, ptx_as(words[0], PTX_S32), ptx_u32(8 * e), ptx_u32(8));
            out[e] = ptx_cvt(k, PTX_F32, x);
        } else if (type == PTX_E5M2) { /* the upper half of an f16 */
            x = ptx_bfe(k, ptx_as(words[0], PTX_U32), ptx_u32(8 * e), ptx_u32(8));
            x = ptx_shl(k, x, ptx_u32(8));
            x = ptx_cvt(k, PTX_U16, ptx_as(x, PTX_U32));
            out[e] = ptx_cvt(k, PTX_F32, ptx_as(x, PTX_F16));
        } else { /* the bits of an f16 whose exponent is 8 less; 127 is NaN */
            x = ptx_bfe(k, ptx_as(words[0], PTX_U32), ptx_u32(8 * e), ptx_u32(7));
            p = ptx_setp(k, PTX_EQ, x, ptx_u32(127));
            x = ptx_shl(k, x, ptx_u32(7));
            sign = ptx_bfe(k, ptx_as(words[0], PTX_U32), ptx_u32(8 * e + 7), ptx_u32(1));
            x = ptx_mad(k, sign, ptx_u32(0x8000), ptx_as(x, PTX_U32));
            x = ptx_cvt(k, PTX_U16, x);
            x = ptx_cvt(k, PTX_F32, ptx_as(x, PTX_F16));
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(256));
            out[e] = ptx_selp(k, ptx_f32(NAN), x, p);
        }
    }
}

/* Without tensor cores: multiplies a whole step from its stage, 4 elements along k at a time. */
static void ptxk__matmul_multiply_plain(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                        uint32_t stage) {
    ptx_val c, at[2], words[4], x[2 * PTXK__MATMUL_FRAGS][4], y[4], sum;
    uint32_t i, j, e, h;
    int64_t from = (int64_t)(stage * f->stage_bytes);
    c = ptx_for(k, ptx_u32(0), ptx_u32(PTXK__MATMUL_STEP), ptx_u32(4 * f->bytes));
    for (i = 0; i < 2; i++) {
        at[i] = ptx_xor(k, ptx_as(s->reader[i][0], PTX_U32), c);
        at[i] = ptx_ptr(ptx_as(at[i], PTX_U32), PTX_SHARED);
    }
    for (i = 0; i < 2 * ptxk__matmul_frags(f, 0); i++) {
        ptx_mem mem = ptx_at(at[0], from + (int64_t)(i * 8 * PTXK__MATMUL_STEP));
        if (f->bytes == 1)
            words[0] = ptx_ld(k, PTX_B32, mem);
        else
            ptx_ld_vec(k, PTX_B32, f->bytes, mem, words);
        ptxk__matmul_decode(k, f->type[0], words, x[i]);
    }
    for (j = 0; j < 2 * ptxk__matmul_frags(f, 1); j++) {
        for (e = 0; e < 2; e++) {
            ptx_mem mem = ptx_at(at[1], from + (int64_t)((j * 8 + e) * PTXK__MATMUL_STEP));
            if (f->bytes == 1)
                words[0] = ptx_ld(k, PTX_B32, mem);
            else
                ptx_ld_vec(k, PTX_B32, f->bytes, mem, words);
            ptxk__matmul_decode(k, f->type[1], words, y);
            for (i = 0; i < ptxk__matmul_frags(f, 0); i++) {
                for (h = 0; h < 2; h++) {
                    ptx_var v = f->split ? s->part[i][j][2 * h + e] : s->sum[i][j][2 * h + e];
                    sum = ptx_get(k, v);
                    sum = ptxk_dot(k, 4, x[2 * i + h], y, sum);
                    ptx_set(k, v, sum);
                }
            }
        }
    }
    ptx_end(k);
}

/* Runs through the sums of a thread: tiles of 16 rows, of 8 columns, four each. */
#define PTXK__MATMUL_EACH(f, i, j, e)                                                                        \
    for (i = 0; i < ptxk__matmul_frags(f, 0); i++)                                                           \
        for (j = 0; j < 2 * ptxk__matmul_frags(f, 1); j++)                                                   \
            for (e = 0; e < 4; e++)

static ptx_val ptxk__matmul_zero(const ptxk__matmul *f) {
    return f->type[0] == PTX_S8 && !f->plain ? ptx_s32(0) : ptx_f32(0);
}

/* Begins and ends a step: the sums that mma adds to are values within it, variables outside. */
static void ptxk__matmul_open(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    uint32_t i, j, e;
    PTXK__MATMUL_EACH(f, i, j, e) s->now[i][j][e] = ptx_get(k, f->split ? s->part[i][j][e] : s->sum[i][j][e]);
}

static void ptxk__matmul_close(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    uint32_t i, j, e;
    PTXK__MATMUL_EACH(f, i, j, e) ptx_set(k, f->split ? s->part[i][j][e] : s->sum[i][j][e], s->now[i][j][e]);
}

/* Adds the partial sums to the f32 sums, and begins new ones. */
static void ptxk__matmul_promote(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    uint32_t i, j, e;
    ptx_val x, sum, factor;
    PTXK__MATMUL_EACH(f, i, j, e) {
        x = ptx_get(k, s->part[i][j][e]);
        if (f->type[0] == PTX_S8 && !f->plain) x = ptx_cvt(k, PTX_F32, x);
        sum = ptx_get(k, s->sum[i][j][e]);
        if (f->blocks) {
            factor = s->factor[f->side[0].kind >= PTXK_FACTORS_BLOCK ? 0 : 1]
                              [f->side[0].kind >= PTXK_FACTORS_BLOCK ? 2 * i + e / 2 : 2 * j + (e & 1)];
            if (f->side[0].kind >= PTXK_FACTORS_BLOCK && f->side[1].kind >= PTXK_FACTORS_BLOCK)
                factor = ptx_op2(k, PTX_MUL, PTX_RN, factor, s->factor[1][2 * j + (e & 1)]);
            sum = ptx_fma(k, x, factor, sum);
        } else {
            sum = ptx_op2(k, PTX_ADD, PTX_RN, sum, x);
        }
        ptx_set(k, s->sum[i][j][e], sum);
        ptx_set(k, s->part[i][j][e], ptxk__matmul_zero(f));
    }
}

/* An address of the arguments: of this product, in a batch. stride: where the arguments have it. */
static ptx_val ptxk__matmul_pointer(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_state *s,
                                    size_t field, size_t stride, uint32_t bytes) {
    ptx_val at = ptxk__arg_ptr(k, s->problem, field), x, wide;
    if (f->grouped) return at;
    x = ptx_ld(k, PTX_U64, ptx_at(s->args, (int64_t)stride));
    wide = ptx_cvt(k, PTX_U64, s->batch);
    x = ptx_mul(k, x, wide);
    return ptx_ptr_add(k, at, x, bytes);
}

static ptx_val ptxk__matmul_factors(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_state *s,
                                    uint32_t side) {
    return side ? ptxk__matmul_pointer(k, f, s, offsetof(ptxk_matmul_args, b_factors),
                                       offsetof(ptxk_matmul_args, b_factors_stride), 4)
                : ptxk__matmul_pointer(k, f, s, offsetof(ptxk_matmul_args, a_factors),
                                       offsetof(ptxk_matmul_args, a_factors_stride), 4);
}

/* Loads the factors of block `block` along k for the thread's rows and columns. */
static void ptxk__matmul_block_factors(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                       const ptx_val mine[2], ptx_val block) {
    uint32_t side, i, row;
    for (side = 0; side < 2; side++) {
        uint32_t kind = f->side[side].kind;
        ptx_val at, x, p;
        if (kind < PTXK_FACTORS_BLOCK) continue;
        at = ptxk__matmul_factors(k, f, s, side);
        at = ptx_ptr_add(k, at, block, 4); /* first, so that no address is the same in all rounds of a loop */
        x = mine[side];
        if (kind == PTXK_FACTORS_SQUARE) x = ptx_div(k, x, ptx_u32(PTXK__MATMUL_BLOCK));
        x = ptx_mul_wide(k, x, s->count);
        at = ptx_ptr_add(k, at, x, 4);
        for (i = 0; i < 2 * ptxk__matmul_frags(f, side) * (1 + side); i++) {
            if (i && kind == PTXK_FACTORS_SQUARE) { /* a warp's part lies within 128 */
                s->factor[side][i] = s->factor[side][0];
                continue;
            }
            row = side ? i / 2 * 8 + (i & 1) : 8 * i;
            x = ptx_add(k, mine[side], ptx_u32(row));
            p = ptx_setp(k, PTX_LT, x, s->limit[side]);
            x = row ? ptxk__advance_rows(k, at, s->count, row, 4) : at;
            s->factor[side][i] = ptx_ld_if(k, p, PTX_F32, ptx_at(x, 0), ptx_f32(0));
        }
    }
}

/* -- matmul: the loop along k, by 16-byte copies -- */

/* Computes the sources of the copies of the first step. K along the rows: copies beyond the last row (column)
   take the last one, and no result that depends on it is written. */
static void ptxk__matmul_sources(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val x, at, wide, last, p;
    uint32_t side, i;
    for (side = 0; side < 2; side++) {
        const ptxk__matmul_side *d = &f->side[side];
        if (d->k_major) {
            last = ptx_sub(k, s->limit[side], ptx_u32(1));
            wide = ptx_mul_wide(k, s->begin, ptx_u32(f->bytes));
            at = ptx_ptr_add(k, s->base[side], wide, 1);
            at = ptx_ptr_add(k, at, s->chunk[side], 16);
            for (i = 0; i < d->passes; i++) {
                x = ptx_add(k, s->first[side], s->row[side]);
                if (i) x = ptx_add(k, x, ptx_u32(i * d->pass));
                x = ptx_min(k, x, last);
                wide = ptx_mul_wide(k, x, s->ld[side]);
                s->from[side][i] = ptx_ptr_add(k, at, wide, f->bytes);
            }
        } else {
            x = ptx_mad(k, s->chunk[side], ptx_u32(16 / f->bytes), s->first[side]);
            for (i = 0; i < d->times && f->tile == 64; i++) {
                last = ptx_add(k, x, ptx_u32(i * d->lanes * 16 / f->bytes));
                p = ptx_setp(k, PTX_LT, last, s->limit[side]);
                s->inside[side][i] = ptx_selp(k, ptx_u32(16), ptx_u32(0), p);
            }
            wide = ptx_mul_wide(k, x, ptx_u32(f->bytes));
            at = ptx_ptr_add(k, s->base[side], wide, 1);
            x = ptx_add(k, s->begin, s->row[side]);
            wide = ptx_mul_wide(k, x, s->ld[side]);
            s->from[side][0] = ptx_ptr_add(k, at, wide, f->bytes);
            s->hop[side] = ptx_mul_wide(k, s->ld[side], ptx_u32(f->depth * f->bytes));
        }
    }
}

/* The byte offset of copy (i, j) from its place to[j % 2] in stage 0. */
static int64_t ptxk__matmul_copy_offset(const ptxk__matmul_side *d, uint32_t i, uint32_t j) {
    return (int64_t)(i * d->pass * d->chunks * 16 + (d->lanes == 4 ? j / 2 * 128 : j * d->lanes * 16));
}

/* Copies the next step, `step` steps on, to a stage, where *p holds: from sm_80 on by cp.async, before to
   registers, for ptxk__matmul_put. p NULL: always. bytes: 16, or 0 to write zeros; NULL: 16. */
static void ptxk__matmul_copy(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s, uint32_t step,
                              uint32_t stage, const ptx_val *p, const ptx_val *bytes) {
    uint32_t side, i, j;
    ptx_val from, here, to, q;
    for (side = 0; side < 2; side++) {
        const ptxk__matmul_side *d = &f->side[side];
        int edge = !d->k_major && f->tile == 64;
        for (i = 0; i < d->passes; i++) {
            from = s->from[side][i];
            if (d->k_major)
                from = ptx_off(from, (int64_t)(step * PTXK__MATMUL_STEP));
            else
                s->from[side][0] = ptx_ptr_add(k, from, s->hop[side], 1);
            for (j = 0; j < d->times; j++) {
                here = ptx_off(from, (int64_t)(j * d->lanes * 16));
                to = ptx_off(s->to[side][j & 1],
                             (int64_t)(stage * f->stage_bytes) + ptxk__matmul_copy_offset(d, i, j));
                if (f->chip < 80) {
                    q = *p;
                    if (edge) q = ptx_setp(k, PTX_NE, s->inside[side][j], ptx_u32(0));
                    if (edge) q = ptx_and(k, *p, q);
                    ptxk_load16(k, &q, ptx_with(ptx_at(here, 0), PTX_NC), s->staged[side][i + j]);
                    continue;
                }
                if (edge) q = bytes ? ptx_min(k, s->inside[side][j], *bytes) : s->inside[side][j];
                if (p) ptx_guard(k, *p);
                if (edge || bytes)
                    ptx_cp_async_16_zfill(k, to, here, edge ? q : *bytes);
                else
                    ptx_cp_async_16(k, to, here);
            }
        }
    }
}

/* Stores to the places of a stage that the thread copies: what ptxk__matmul_copy has loaded, before sm_80; or
   zeros. */
static void ptxk__matmul_put(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s, uint32_t stage,
                             const ptx_val *zeros) {
    uint32_t side, i, j;
    for (side = 0; side < 2; side++)
        for (i = 0; i < f->side[side].passes; i++)
            for (j = 0; j < f->side[side].times; j++)
                ptx_st_vec(k, PTX_B32, 4,
                           ptx_at(s->to[side][j & 1], (int64_t)(stage * f->stage_bytes)
                                                          + ptxk__matmul_copy_offset(&f->side[side], i, j)),
                           zeros ? zeros : s->staged[side][i + j]);
}

/* Makes the next stage visible to all threads, which have read the one before the current. */
static void ptxk__matmul_next_stage(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                    uint32_t stage) {
    if (f->chip < 80)
        ptxk__matmul_put(k, f, s, stage, NULL);
    else
        ptx_cp_async_wait(k, f->stages - 2);
    ptx_bar_sync(k, ptx_imm(0));
}

/* Multiplies `steps` steps, at least one. The loop is unrolled, so that stages have constant addresses.
   Fragments are loaded half a step ahead; those after the last step are not used: they are of an earlier
   step, or zeros where there are few steps. */
static void ptxk__matmul_fast_loop(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                   const ptx_val mine[2], ptx_val steps) {
    ptxk__matmul_fragments now, next;
    ptx_var from[2][4], left, block;
    ptx_val count, p, x, zeros[4];
    uint32_t side, i, u;
    ptxk__matmul_sources(k, f, s);
    for (u = 0; u + 1 < f->stages; u++) {
        p = ptx_setp(k, PTX_GT, steps, ptx_u32(u));
        x = ptx_selp(k, ptx_u32(16), ptx_u32(0), p);
        ptxk__matmul_copy(k, f, s, u, u, f->chip < 80 ? &p : NULL, &x);
        ptxk__tile_commit(k);
    }
    if (f->chip >= 80) {
        p = ptx_setp(k, PTX_LT, steps, ptx_u32(f->stages));
        ptx_if(k, p);
        for (i = 0; i < 4; i++) zeros[i] = ptx_b32(0);
        ptxk__matmul_put(k, f, s, f->stages - 1, zeros);
        ptx_end(k);
    }
    ptxk__matmul_next_stage(k, f, s, 0);
    for (side = 0; side < 2; side++) {
        for (i = 0; i < f->side[side].passes; i++) from[side][i] = ptx_var_new(k, s->from[side][i]);
    }
    left = block = ptx_var_new(k, steps);
    if (f->blocks) {
        x = ptx_div(k, s->begin, ptx_u32(PTXK__MATMUL_BLOCK));
        block = ptx_var_new(k, x);
    }
    ptx_loop(k);
    {
        count = ptx_get(k, left);
        for (side = 0; side < 2; side++) {
            for (i = 0; i < f->side[side].passes; i++) {
                x = ptx_get(k, from[side][i]);
                s->from[side][i] = ptx_ptr(x, PTX_GLOBAL);
            }
        }
        ptxk__matmul_load(k, f, s, 0, 0, &now);
        for (u = 0; u < f->unroll; u++) {
            uint32_t stage = u % f->stages, following = (u + 1) % f->stages;
            if (!f->plain) ptxk__matmul_open(k, f, s);
            ptxk__matmul_load(k, f, s, stage, 1, &next);
            p = ptx_setp(k, PTX_GT, count, ptx_u32(u + f->stages - 1));
            ptxk__matmul_copy(k, f, s, u + f->stages - 1, (u + f->stages - 1) % f->stages, &p, NULL);
            ptxk__tile_commit(k);
            if (f->plain)
                ptxk__matmul_multiply_plain(k, f, s, stage);
            else
                ptxk__matmul_multiply(k, f, s, &now);
            ptxk__matmul_next_stage(k, f, s, following);
            if (u + 1 < f->unroll) ptxk__matmul_load(k, f, s, following, 0, &now);
            if (!f->plain) ptxk__matmul_multiply(k, f, s, &next);
            if (!f->plain) ptxk__matmul_close(k, f, s);
            if (f->blocks && (u + 1) % f->promote == 0) {
                x = ptx_get(k, block);
                ptxk__matmul_block_factors(k, f, s, mine, x);
                x = ptx_add(k, x, ptx_u32(1));
                ptx_set(k, block, x);
            }
            if (f->split && f->promote && (u + 1) % f->promote == 0) ptxk__matmul_promote(k, f, s);
            if (u + 1 < f->unroll) {
                p = ptx_setp(k, PTX_GT, count, ptx_u32(u + 1));
                ptx_while(k, p);
            }
        }
        for (side = 0; side < 2; side++) {
            for (i = 0; i < f->side[side].passes; i++) {
                x = s->from[side][i];
                if (f->side[side].k_major) x = ptx_ptr_add(k, x, ptx_u32(f->unroll * PTXK__MATMUL_STEP), 1);
                ptx_set(k, from[side][i], x);
            }
        }
        if (f->split && !f->promote) { /* before s32 sums can overflow */
            x = ptx_sub(k, steps, count);
            x = ptx_and(k, x, ptx_u32(PTXK__MATMUL_INT / f->depth - 1));
            p = ptx_setp(k, PTX_EQ, x, ptx_u32(PTXK__MATMUL_INT / f->depth - f->unroll));
            ptx_if(k, p);
            ptxk__matmul_promote(k, f, s);
            ptx_end(k);
        }
        p = ptx_setp(k, PTX_GT, count, ptx_u32(f->unroll));
        ptx_while(k, p);
        count = ptx_sub(k, count, ptx_u32(f->unroll));
        ptx_set(k, left, count);
    }
    ptx_end(k);
    if (f->chip >= 80) ptx_cp_async_wait_all(k);
    if (f->split && !f->blocks) ptxk__matmul_promote(k, f, s);
}

/* -- matmul: the loop along k, by elements: ends of k, and addresses and strides that are not aligned -- */

/* Copies one chunk of the step at `at`: chunk `chunk` of row `row` (of the tile in shared memory). */
static void ptxk__matmul_gather_chunk(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                      uint32_t side, ptx_val row, ptx_val chunk, ptx_val to, ptx_val at) {
    const ptxk__matmul_side *d = &f->side[side];
    uint32_t per = 16 / f->bytes, e;
    ptx_val along, across, from, left, p, q, x[16], words[4], wide;
    int64_t step = d->gather ? 0 : (int64_t)f->bytes;
    across = ptx_mul(k, chunk, ptx_u32(per));
    if (d->k_major) {
        along = ptx_add(k, at, across);           /* of k */
        across = ptx_add(k, s->first[side], row); /* of the rows (columns) */
        p = ptx_setp(k, PTX_LT, across, s->limit[side]);
        left = ptx_sub(k, ptx_as(s->end, PTX_S32), ptx_as(along, PTX_S32));
    } else {
        across = ptx_add(k, s->first[side], across);
        along = ptx_add(k, at, row);
        p = ptx_setp(k, PTX_LT, along, s->end);
        left = ptx_sub(k, ptx_as(s->limit[side], PTX_S32), ptx_as(across, PTX_S32));
    }
    /* Row of the matrix in memory, and column. */
    x[0] = d->k_major && !d->gather ? across : along;
    x[1] = d->k_major && !d->gather ? along : across;
    wide = ptx_cvt(k, PTX_U64, x[1]);
    wide = ptx_mad_wide(k, x[0], s->ld[side], wide);
    from = ptx_ptr_add(k, s->base[side], wide, f->bytes);
    for (e = 0; e < per; e++) {
        q = ptx_setp(k, PTX_GT, left, ptx_s32((int64_t)e));
        q = ptx_and(k, q, p);
        if (f->bytes == 4)
            x[e] = ptx_ld_if(k, q, PTX_B32, ptx_at(from, step * (int64_t)e), ptx_b32(0));
        else if (f->bytes == 2)
            x[e] = ptx_ld_if(k, q, PTX_U16, ptx_at(from, step * (int64_t)e), ptx_u16(0));
        else
            x[e] = ptx_ld_if(k, q, PTX_U8, ptx_at(from, step * (int64_t)e), ptx_u32(0));
        if (d->gather) from = ptx_ptr_add(k, from, s->ld[side], f->bytes);
    }
    for (e = 0; e < 4; e++) {
        if (f->bytes == 4) {
            words[e] = x[e];
        } else if (f->bytes == 2) {
            words[e] = ptx_pack(k, PTX_B32, 2, x + 2 * e);
        } else {
            words[e] =
                ptx_bfi(k, ptx_as(x[4 * e + 1], PTX_B32), ptx_as(x[4 * e], PTX_B32), ptx_u32(8), ptx_u32(8));
            wide = ptx_bfi(k, ptx_as(x[4 * e + 3], PTX_B32), ptx_as(x[4 * e + 2], PTX_B32), ptx_u32(8),
                           ptx_u32(8));
            words[e] = ptx_bfi(k, wide, words[e], ptx_u32(16), ptx_u32(16));
        }
    }
    ptx_st_vec(k, PTX_B32, 4, ptx_at(to, 0), words);
}

/* Multiplies the elements from `begin` to the end of the block's part of k. */
static void ptxk__matmul_slow_loop(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s,
                                   const ptx_val mine[2], ptx_val begin) {
    ptxk__matmul_fragments x;
    ptx_var at = ptx_var_new(k, begin);
    ptx_val here, p, i, row, chunk, tile, to, block;
    uint32_t side;
    ptx_loop(k);
    {
        here = ptx_get(k, at);
        here = ptx_uniform(k, here);
        p = ptx_setp(k, PTX_LT, here, s->end);
        ptx_while(k, p);
        ptx_bar_sync(k, ptx_imm(0)); /* the stage has been read */
        for (side = 0; side < 2; side++) {
            const ptxk__matmul_side *d = &f->side[side];
            i = ptx_for(k, ptx_u32(0), ptx_u32(d->passes * d->times), ptx_u32(1));
            if (d->k_major) {
                row = ptx_mad(k, i, ptx_u32(d->pass), s->row[side]);
                chunk = s->chunk[side];
            } else {
                row = s->row[side];
                chunk = ptx_mad(k, i, ptx_u32(d->lanes), s->chunk[side]);
            }
            to = ptxk__matmul_place(k, f, side, row, chunk);
            tile = ptx_ptr_add(k, s->shared, ptx_u32(d->at), 1);
            to = ptx_ptr_add(k, tile, to, 1);
            ptxk__matmul_gather_chunk(k, f, s, side, row, chunk, to, here);
            ptx_end(k);
        }
        ptx_bar_sync(k, ptx_imm(0));
        if (f->plain) {
            ptxk__matmul_multiply_plain(k, f, s, 0);
        } else {
            ptxk__matmul_open(k, f, s);
            ptxk__matmul_load(k, f, s, 0, 0, &x);
            ptxk__matmul_multiply(k, f, s, &x);
            ptxk__matmul_load(k, f, s, 0, 1, &x);
            ptxk__matmul_multiply(k, f, s, &x);
            ptxk__matmul_close(k, f, s);
        }
        if (f->blocks) {
            block = ptx_div(k, here, ptx_u32(PTXK__MATMUL_BLOCK));
            ptxk__matmul_block_factors(k, f, s, mine, block);
        }
        here = ptx_add(k, here, ptx_u32(f->depth));
        ptx_set(k, at, here);
        if (f->split && !f->promote) { /* at multiples of 2^16, and at the end */
            row = ptx_and(k, here, ptx_u32(PTXK__MATMUL_INT - 1));
            p = ptx_setp(k, PTX_LT, row, ptx_u32(f->depth));
            ptx_if(k, p);
            ptxk__matmul_promote(k, f, s);
            ptx_end(k);
        } else if (f->split) {
            ptxk__matmul_promote(k, f, s);
        }
    }
    ptx_end(k);
    if (f->split && !f->promote) ptxk__matmul_promote(k, f, s);
}

/* -- matmul: parts of k, results -- */

/* Adds the sums of all parts of k, in their order, in the block of the tile that finishes last. Returns
   whether this block goes on to write results. tile: its index among the `divided` tiles that have parts. */
static ptx_val ptxk__matmul_join(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s, ptx_val tile,
                                 ptx_val divided) {
    uint32_t i, j, e, record = f->tile * f->tile * 4, threads = 32 * f->warps;
    ptx_val part, at, here, own, p, x[4], sum, last;
    ptx_var loop;
    at = ptxk__arg_ptr(k, s->args, offsetof(ptxk_matmul_args, workspace));
    own = ptx_ptr_add(k, at, tile, 4); /* the counter */
    here = ptx_mul_wide(k, divided, ptx_u32(4));
    here = ptx_add(k, here, ptx_u64(255));
    here = ptx_and(k, here, ptx_u64(~(uint64_t)255));
    at = ptx_ptr_add(k, at, here, 1);
    here = ptx_mul_wide(k, tile, s->parts);
    here = ptx_mul(k, here, ptx_u64(record));
    at = ptx_ptr_add(k, at, here, 1);
    at = ptx_ptr_add(k, at, s->tid, 16);
    here = ptx_mul_wide(k, s->index, ptx_u32(record));
    here = ptx_ptr_add(k, at, here, 1);
    for (i = 0; i < ptxk__matmul_frags(f, 0); i++) {
        for (j = 0; j < 2 * ptxk__matmul_frags(f, 1); j++) {
            for (e = 0; e < 4; e++) {
                x[e] = ptx_get(k, s->sum[i][j][e]);
                x[e] = ptx_as(x[e], PTX_B32);
            }
            ptx_st_vec(k, PTX_B32, 4,
                       ptx_at(here, (int64_t)((i * 2 * ptxk__matmul_frags(f, 1) + j) * threads * 16)), x);
        }
    }
    last = ptxk__is_last_block(k, s->tid, own, s->parts, s->shared);
    ptx_if(k, last);
    {
        PTXK__MATMUL_EACH(f, i, j, e) ptx_set(k, s->sum[i][j][e], ptx_f32(0));
        loop = ptx_var_new(k, ptx_u32(0));
        ptx_loop(k);
        {
            part = ptx_get(k, loop);
            here = ptx_mul_wide(k, part, ptx_u32(record));
            here = ptx_ptr_add(k, at, here, 1);
            for (i = 0; i < ptxk__matmul_frags(f, 0); i++) {
                for (j = 0; j < 2 * ptxk__matmul_frags(f, 1); j++) {
                    ptxk__load_f32_if(
                        k, NULL, PTX_F32, 4,
                        ptx_at(here, (int64_t)((i * 2 * ptxk__matmul_frags(f, 1) + j) * threads * 16)), x);
                    for (e = 0; e < 4; e++) {
                        sum = ptx_get(k, s->sum[i][j][e]);
                        sum = ptx_op2(k, PTX_ADD, PTX_RN, sum, x[e]);
                        ptx_set(k, s->sum[i][j][e], sum);
                    }
                }
            }
            part = ptx_add(k, part, ptx_u32(1));
            ptx_set(k, loop, part);
            p = ptx_setp(k, PTX_LT, part, s->parts);
            ptx_while(k, p);
        }
        ptx_end(k);
    }
    ptx_end(k);
    return last;
}

/* x after the activation. */
static ptx_val ptxk__matmul_activate(ptx_kernel *k, const ptxk__matmul *f, ptx_val x) {
    ptx_val p, y;
    switch (f->activation) {
    case PTXK_MATMUL_RELU:
        p = ptx_setp(k, PTX_LT, x, ptx_f32(0)); /* NaN stays */
        return ptx_selp(k, ptx_f32(0), x, p);
    case PTXK_MATMUL_SILU: y = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(-1.44269504088896340736)); break;
    case PTXK_MATMUL_GELU: /* -2 sqrt(2 / pi) log2(e) (x + 0.044715 x^3) */
        y = ptx_op2(k, PTX_MUL, PTX_RN, x, x);
        y = ptx_fma(k, y, ptx_f32(-2.3022081984 * 0.044715), ptx_f32(-2.3022081984));
        y = ptx_op2(k, PTX_MUL, PTX_RN, x, y);
        break;
    default: return x;
    }
    y = ptxk__logistic(k, y);
    return ptx_op2(k, PTX_MUL, PTX_RN, x, y);
}

/* What the results of 4 columns of a thread need. */
typedef struct ptxk__matmul_columns {
    ptx_val at;                 /* u32: the first column */
    ptx_val inside[4];          /* predicates: the column exists */
    ptx_val factor[4], bias[4]; /* f32: alpha and the factors that do not depend on the row; the bias */
    ptx_val rows;               /* the factors of the rows */
    ptx_val beta, add;          /* add: predicate, beta is not 0 */
    ptx_val c, d, ldc, ldd;     /* of row 0 */
    ptx_val whole;              /* predicate: 4 columns can be accessed at once */
    ptx_val plain;              /* predicate: so, and C is not read */
} ptxk__matmul_columns;

static void ptxk__matmul_begin_columns(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_state *s,
                                       ptx_val at, ptxk__matmul_columns *c) {
    ptx_val x, y, factor;
    uint32_t e, side;
    c->at = at;
    factor = ptx_ld(k, PTX_F32, ptx_at(s->args, (int64_t)offsetof(ptxk_matmul_args, alpha)));
    c->beta = ptx_ld(k, PTX_F32, ptx_at(s->args, (int64_t)offsetof(ptxk_matmul_args, beta)));
    c->add = ptx_setp(k, PTX_NE, c->beta, ptx_f32(0));
    for (side = 0; side < 2; side++) {
        if (f->side[side].kind != PTXK_FACTORS_TENSOR) continue;
        x = ptxk__matmul_factors(k, f, s, side);
        x = ptx_ld(k, PTX_F32, ptx_at(x, 0));
        factor = ptx_op2(k, PTX_MUL, PTX_RN, factor, x);
    }
    for (e = 0; e < 4; e++) {
        x = ptx_add(k, at, ptx_u32(e));
        c->inside[e] = ptx_setp(k, PTX_LT, x, s->limit[1]);
        if (!f->side[1].k_major && f->tile != 64) {
            y = ptx_setp(k, PTX_GE, x, s->skip[1]);
            c->inside[e] = ptx_and(k, c->inside[e], y);
        }
        c->factor[e] = factor;
    }
    if (f->side[1].kind == PTXK_FACTORS_ROW) {
        x = ptxk__matmul_factors(k, f, s, 1);
        x = ptx_ptr_add(k, x, at, 4);
        for (e = 0; e < 4; e++) {
            c->factor[e] = ptx_ld_if(k, c->inside[e], PTX_F32, ptx_at(x, (int64_t)(4 * e)), ptx_f32(0));
            c->factor[e] = ptx_op2(k, PTX_MUL, PTX_RN, c->factor[e], factor);
        }
    }
    if (f->flags & PTXK_MATMUL_BIAS) {
        x = ptxk__arg_ptr(k, s->problem, offsetof(ptxk_matmul_args, bias));
        x = ptx_ptr_add(k, x, at, 4);
        for (e = 0; e < 4; e++)
            c->bias[e] = ptx_ld_if(k, c->inside[e], PTX_F32, ptx_at(x, (int64_t)(4 * e)), ptx_f32(0));
    }
    if (f->side[0].kind == PTXK_FACTORS_ROW) c->rows = ptxk__matmul_factors(k, f, s, 0);
    c->ldc = ptxk__arg_u32(k, s->problem, offsetof(ptxk_matmul_args, ldc));
    c->ldd = ptxk__arg_u32(k, s->problem, offsetof(ptxk_matmul_args, ldd));
    c->c = ptxk__matmul_pointer(k, f, s, offsetof(ptxk_matmul_args, c), offsetof(ptxk_matmul_args, c_stride),
                                f->out_bytes);
    c->d = ptxk__matmul_pointer(k, f, s, offsetof(ptxk_matmul_args, d), offsetof(ptxk_matmul_args, d_stride),
                                f->out_bytes);
    /* Addresses and strides in multiples of 4 elements; those of C where it is read. */
    x = ptx_cvt(k, PTX_U32, ptx_as(c->d, PTX_U64));
    y = ptx_mad(k, c->ldd, ptx_u32(f->out_bytes), x);
    x = ptx_or(k, x, y);
    y = ptx_mul(k, s->limit[1], ptx_u32(f->out_bytes));
    x = ptx_or(k, x, y);
    y = ptx_cvt(k, PTX_U32, ptx_as(c->c, PTX_U64));
    factor = ptx_mad(k, c->ldc, ptx_u32(f->out_bytes), y);
    y = ptx_or(k, y, factor);
    y = ptx_selp(k, y, ptx_u32(0), c->add);
    x = ptx_or(k, x, y);
    x = ptx_and(k, x, ptx_u32(4 * f->out_bytes - 1));
    x = ptx_uniform(k, x);
    c->whole = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    y = ptx_setp(k, PTX_EQ, c->beta, ptx_f32(0));
    c->plain = ptx_and(k, c->whole, y);
    c->c = ptx_ptr_add(k, c->c, at, f->out_bytes);
    c->d = ptx_ptr_add(k, c->d, at, f->out_bytes);
}

/* Finishes and stores 4 columns of a row, where `there` holds. whole: in one access of all 4. to: their
   address, where C is not read; else NULL. */
static void ptxk__matmul_store_row(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_columns *c,
                                   ptx_val row, ptx_val there, const ptx_val sum[4], int whole,
                                   const ptx_val *to) {
    ptx_val x[4], old[4], words[4], p, at = c->c, factor = ptx_f32(1), inside[4];
    uint32_t e;
    for (e = 0; e < (whole ? 1u : 4u); e++) inside[e] = ptx_and(k, there, c->inside[e]);
    if (!to) {
        at = ptx_mul_wide(k, row, c->ldc);
        at = ptx_ptr_add(k, c->c, at, f->out_bytes);
    }
    if (whole && !to) {
        p = ptx_and(k, inside[0], c->add);
        ptxk__load_f32_if(k, &p, f->out, 4, ptx_at(at, 0), old);
    }
    for (e = 0; e < 4 && !whole; e++) {
        p = ptx_and(k, inside[e], c->add);
        ptxk__load_f32_if(k, &p, f->out, 1, ptx_at(at, (int64_t)(e * f->out_bytes)), &old[e]);
    }
    if (f->side[0].kind == PTXK_FACTORS_ROW) {
        at = ptx_ptr_add(k, c->rows, row, 4);
        factor = ptx_ld_if(k, there, PTX_F32, ptx_at(at, 0), ptx_f32(0));
    }
    for (e = 0; e < 4; e++) {
        x[e] = sum[e];
        if (f->side[0].kind == PTXK_FACTORS_ROW) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], factor);
        x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], c->factor[e]);
        if (!to) x[e] = ptx_fma(k, c->beta, old[e], x[e]);
        if (f->flags & PTXK_MATMUL_BIAS) x[e] = ptx_op2(k, PTX_ADD, PTX_RN, x[e], c->bias[e]);
        x[e] = ptxk__matmul_activate(k, f, x[e]);
    }
    if (to) {
        at = *to;
    } else {
        at = ptx_mul_wide(k, row, c->ldd);
        at = ptx_ptr_add(k, c->d, at, f->out_bytes);
    }
    if (whole) {
        ptxk_narrow(k, f->out, 4, x, words);
        ptx_guard(k, inside[0]);
        ptx_st_vec(k, PTX_B32, f->out_bytes, ptx_at(at, 0), words);
        return;
    }
    for (e = 0; e < 4; e++) {
        ptx_if(k, inside[e]);
        ptxk_store_f32(k, f->out, 1, ptx_at(at, (int64_t)(e * f->out_bytes)), &x[e]);
        ptx_end(k);
    }
}

/* Stores 32 rows of a warp, from row `first` of its part on. from: this thread's place in shared memory;
   down: its row in the matrix. plain: C is not read, and 4 columns are accessed at once. */
static void ptxk__matmul_store_rows(ptx_kernel *k, const ptxk__matmul *f, const ptxk__matmul_state *s,
                                    const ptxk__matmul_columns *c, ptx_val from, ptx_val down, uint32_t first,
                                    int plain) {
    uint32_t pass = 128 / f->side[1].part, unroll = plain ? 4 : 1, u;
    ptx_val i, at, here, to = c->d, x[4], row, p, q;
    i = ptx_for(k, ptx_u32(0), ptx_u32(32), ptx_u32(unroll * pass));
    {
        at = ptx_ptr_add(k, from, i, f->pitch * 4);
        down = ptx_add(k, down, i);
        if (first) down = ptx_add(k, down, ptx_u32(first));
        if (plain) {
            here = ptx_mul_wide(k, down, c->ldd);
            to = ptx_ptr_add(k, to, here, f->out_bytes);
        }
        for (u = 0; u < unroll; u++) {
            ptx_ld_vec(k, PTX_F32, 4, ptx_at(at, (int64_t)(u * pass * f->pitch * 4)), x);
            row = u ? ptx_add(k, down, ptx_u32(u * pass)) : down;
            p = ptx_setp(k, PTX_LT, row, s->limit[0]);
            if (!f->side[0].k_major && f->tile != 64) {
                q = ptx_setp(k, PTX_GE, row, s->skip[0]);
                p = ptx_and(k, p, q);
            }
            if (plain) {
                here = u ? ptxk__advance_rows(k, to, c->ldd, u * pass, f->out_bytes) : to;
                ptxk__matmul_store_row(k, f, c, row, p, x, 1, &here);
            } else {
                ptx_if(k, c->whole);
                ptxk__matmul_store_row(k, f, c, row, p, x, 1, NULL);
                ptx_else(k);
                ptxk__matmul_store_row(k, f, c, row, p, x, 0, NULL);
                ptx_end(k);
            }
        }
    }
    ptx_end(k);
}

/* Writes the tile: 32 rows of a warp at a time pass through shared memory, so that lanes have 4 columns each
   of whole rows. */
static void ptxk__matmul_store(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    uint32_t rows = f->side[0].part, columns = f->side[1].part, lanes = columns / 4, first, i, j, h;
    ptxk__matmul_columns c;
    ptx_val place, to, from, x[2], row, column, at, down;
    ptx_bar_sync(k, ptx_imm(0)); /* the stages have been read */
    down = ptx_div(k, s->warp, ptx_u32(f->across));
    down = ptx_mad(k, down, ptx_u32(rows), s->first[0]);
    column = ptx_and(k, s->warp, ptx_u32(f->across - 1));
    column = ptx_mad(k, column, ptx_u32(columns), s->first[1]);
    at = ptx_and(k, s->lane, ptx_u32(lanes - 1));
    column = ptx_mad(k, at, ptx_u32(4), column);
    ptxk__matmul_begin_columns(k, f, s, column, &c);
    place = ptx_ptr_add(k, s->shared, s->warp, 32 * f->pitch * 4);
    from = ptx_ptr_add(k, place, at, 16);
    row = ptx_div(k, s->lane, ptx_u32(lanes));
    from = ptx_ptr_add(k, from, row, f->pitch * 4);
    down = ptx_add(k, down, row);
    row = ptx_shr(k, s->lane, ptx_u32(2));
    to = ptx_ptr_add(k, place, row, f->pitch * 4);
    row = ptx_and(k, s->lane, ptx_u32(3));
    to = ptx_ptr_add(k, to, row, 8);
    for (first = 0; first < rows; first += 32) {
        if (first) ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
        for (i = 0; i < 2; i++) {
            for (h = 0; h < 2; h++) {
                for (j = 0; j < columns / 8; j++) {
                    x[0] = ptx_get(k, s->sum[first / 16 + i][j][2 * h]);
                    x[1] = ptx_get(k, s->sum[first / 16 + i][j][2 * h + 1]);
                    ptx_st_vec(k, PTX_F32, 2, ptx_at(to, (int64_t)((16 * i + 8 * h) * f->pitch * 4 + j * 32)),
                               x);
                }
            }
        }
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
        ptx_if(k, c.plain);
        ptxk__matmul_store_rows(k, f, s, &c, from, down, first, 1);
        ptx_else(k);
        ptxk__matmul_store_rows(k, f, s, &c, from, down, first, 0);
        ptx_end(k);
    }
}

/* -- matmul: tiles, the entry -- */

/* Takes a product's sizes and leading dimensions. */
static void ptxk__matmul_take_problem(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    static const size_t ld[] = {offsetof(ptxk_matmul_args, lda), offsetof(ptxk_matmul_args, ldb)},
                        at[] = {offsetof(ptxk_matmul_args, a), offsetof(ptxk_matmul_args, b)},
                        stride[] = {offsetof(ptxk_matmul_args, a_stride),
                                    offsetof(ptxk_matmul_args, b_stride)};
    ptx_val alpha, p, n;
    uint32_t side;
    for (side = 0; side < 2; side++) {
        s->base[side] = ptxk__matmul_pointer(k, f, s, at[side], stride[side], f->bytes);
        s->ld[side] = ptxk__arg_u32(k, s->problem, ld[side]);
    }
    n = ptxk__arg_u32(k, s->problem, offsetof(ptxk_matmul_args, k));
    n = ptx_uniform(k, n);
    s->count = ptxk_div_up(k, n, ptx_u32(PTXK__MATMUL_BLOCK));
    alpha = ptx_ld(k, PTX_F32, ptx_at(s->args, (int64_t)offsetof(ptxk_matmul_args, alpha)));
    p = ptx_setp(k, PTX_EQ, alpha, ptx_f32(0));
    s->end = ptx_selp(k, ptx_u32(0), n, p);
    s->begin = ptx_mov(k, ptx_u32(0));
}

/* This block's part of k. */
static void ptxk__matmul_take_part(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val steps, x;
    steps = ptxk_div_up(k, s->end, ptx_u32(f->depth));
    steps = ptxk_div_up(k, steps, s->parts);
    if (f->blocks) {
        steps = ptx_add(k, steps, ptx_u32(1));
        steps = ptx_and(k, steps, ptx_u32(0xfffffffeu));
    }
    steps = ptx_mul(k, steps, ptx_u32(f->depth));
    x = ptx_mul(k, s->index, steps);
    s->begin = ptx_min(k, x, s->end);
    x = ptx_add(k, s->begin, steps);
    s->end = ptx_min(k, x, s->end);
}

/* Finds the first row and column of tile `tile` of a product. Neighbouring tiles lie in a band of 8 rows of
   tiles, column after column. */
static void ptxk__matmul_locate(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s, ptx_val tile) {
    ptx_val rows, columns, band, x, y, height, p;
    uint32_t side;
    rows = ptxk_div_up(k, s->limit[0], ptx_u32(f->tile));
    columns = ptxk_div_up(k, s->limit[1], ptx_u32(f->tile));
    x = ptx_mul(k, columns, ptx_u32(PTXK__MATMUL_BAND));
    band = ptx_div(k, tile, x);
    y = ptx_mul(k, band, x);
    tile = ptx_sub(k, tile, y);
    band = ptx_mul(k, band, ptx_u32(PTXK__MATMUL_BAND));
    height = ptx_sub(k, rows, band);
    height = ptx_min(k, height, ptx_u32(PTXK__MATMUL_BAND));
    x = ptx_div(k, tile, height);
    y = ptx_mul(k, x, height);
    y = ptx_sub(k, tile, y);
    y = ptx_add(k, band, y);
    s->first[0] = ptx_mul(k, y, ptx_u32(f->tile));
    s->first[1] = ptx_mul(k, x, ptx_u32(f->tile));
    for (side = 0; side < 2; side++) {
        s->skip[side] = s->first[side];
        if (f->side[side].k_major || f->tile == 64) continue;
        /* K across: the last tile begins earlier, so that its copies lie inside the matrix. */
        x = ptx_min(k, s->limit[side], ptx_u32(f->tile));
        x = ptx_sub(k, s->limit[side], x);
        y = ptx_and(k, s->limit[side], ptx_u32(16 / f->bytes - 1));
        p = ptx_setp(k, PTX_EQ, y, ptx_u32(0));
        x = ptx_min(k, x, s->first[side]);
        s->first[side] = ptx_selp(k, x, s->first[side], p);
    }
}

/* The steps along k that 16-byte copies can take: 0 where addresses, strides or an edge are not aligned. */
static ptx_val ptxk__matmul_fast_steps(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val bits = ptx_u32(0), x, p, steps;
    uint32_t side;
    for (side = 0; side < 2; side++) {
        x = ptx_cvt(k, PTX_U32, ptx_as(s->base[side], PTX_U64));
        bits = side ? ptx_or(k, bits, x) : x;
        x = ptx_mul(k, s->ld[side], ptx_u32(f->bytes));
        bits = ptx_or(k, bits, x);
        if (f->side[side].k_major) continue;
        x = ptx_mul(k, s->limit[side], ptx_u32(f->bytes));
        bits = ptx_or(k, bits, x);
        if (f->tile == 64) continue;
        p = ptx_setp(k, PTX_LT, s->limit[side], ptx_u32(f->tile));
        x = ptx_selp(k, ptx_u32(1), ptx_u32(0), p);
        bits = ptx_or(k, bits, x);
    }
    bits = ptx_and(k, bits, ptx_u32(15));
    p = ptx_setp(k, PTX_EQ, bits, ptx_u32(0));
    steps = ptx_sub(k, s->end, s->begin);
    steps = ptx_div(k, steps, ptx_u32(f->depth * (f->blocks ? 2 : 1)));
    if (f->blocks) steps = ptx_mul(k, steps, ptx_u32(2));
    steps = ptx_selp(k, steps, ptx_u32(0), p);
    return ptx_uniform(k, steps);
}

/* Computes the sums of a tile. */
static void ptxk__matmul_sums(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val steps, p, x, mine[2];
    uint32_t i, j, e, side;
    PTXK__MATMUL_EACH(f, i, j, e) {
        ptx_set(k, s->sum[i][j][e], ptx_f32(0));
        if (f->split) ptx_set(k, s->part[i][j][e], ptxk__matmul_zero(f));
    }
    for (side = 0; side < 2 && f->blocks; side++) {
        x = side ? ptx_and(k, s->warp, ptx_u32(f->across - 1)) : ptx_div(k, s->warp, ptx_u32(f->across));
        x = ptx_mad(k, x, ptx_u32(f->side[side].part), s->first[side]);
        mine[side] = side ? ptx_and(k, s->lane, ptx_u32(3)) : ptx_shr(k, s->lane, ptx_u32(2));
        mine[side] = ptx_mad(k, mine[side], ptx_u32(1 + side), x);
    }
    if (f->side[0].gather || f->side[1].gather) {
        ptxk__matmul_slow_loop(k, f, s, mine, s->begin);
        return;
    }
    steps = ptxk__matmul_fast_steps(k, f, s);
    p = ptx_setp(k, PTX_NE, steps, ptx_u32(0));
    ptx_if(k, p);
    ptxk__matmul_fast_loop(k, f, s, mine, steps);
    ptx_end(k);
    x = ptx_mad(k, steps, ptx_u32(f->depth), s->begin);
    ptxk__matmul_slow_loop(k, f, s, mine, x);
}

/* The product's rows and columns, and its tiles. */
static ptx_val ptxk__matmul_count_tiles(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val x, y;
    x = ptxk__arg_u32(k, s->problem, offsetof(ptxk_matmul_args, m));
    s->limit[0] = ptx_uniform(k, x);
    x = ptxk__arg_u32(k, s->problem, offsetof(ptxk_matmul_args, n));
    s->limit[1] = ptx_uniform(k, x);
    x = ptxk_div_up(k, s->limit[0], ptx_u32(f->tile));
    y = ptxk_div_up(k, s->limit[1], ptx_u32(f->tile));
    return ptx_mul(k, x, y);
}

/* One tile, or one part of it along k. Blocks of whole tiles come first. */
static void ptxk__matmul_one(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val tile = ptx_ctaid_x(k), each, whole, divided, left, x, y, p;
    each = ptxk__matmul_count_tiles(k, f, s);
    x = ptxk__arg_u32(k, s->args, offsetof(ptxk_matmul_args, batch));
    x = ptx_mul(k, each, x);
    y = ptxk__arg_u32(k, s->args, offsetof(ptxk_matmul_args, sm_count));
    divided = ptx_rem(k, x, y);
    whole = ptx_sub(k, x, divided);
    x = ptx_nctaid_x(k);
    x = ptx_sub(k, x, whole);
    y = ptx_max(k, divided, ptx_u32(1));
    s->parts = ptx_div(k, x, y);
    p = ptx_setp(k, PTX_GE, tile, whole);
    s->parts = ptx_selp(k, s->parts, ptx_u32(1), p);
    x = ptx_sub(k, tile, whole);
    left = ptx_div(k, x, s->parts);
    y = ptx_mul(k, left, s->parts);
    x = ptx_sub(k, x, y);
    s->index = ptx_selp(k, x, ptx_u32(0), p);
    x = ptx_add(k, whole, left);
    tile = ptx_selp(k, x, tile, p);
    s->batch = ptx_div(k, tile, each);
    y = ptx_mul(k, s->batch, each);
    y = ptx_sub(k, tile, y);
    ptxk__matmul_take_problem(k, f, s);
    ptxk__matmul_take_part(k, f, s);
    ptxk__matmul_locate(k, f, s, y);
    ptxk__matmul_sums(k, f, s);
    p = ptx_setp(k, PTX_GT, s->parts, ptx_u32(1));
    ptx_if(k, p);
    {
        p = ptxk__matmul_join(k, f, s, left, divided);
        ptx_guard(k, ptx_inv(p));
        ptx_ret(k);
    }
    ptx_end(k);
    ptxk__matmul_store(k, f, s);
}

/* The tiles of all groups, numbered consecutively, in strides: each block walks the list once. */
static void ptxk__matmul_walk(ptx_kernel *k, const ptxk__matmul *f, ptxk__matmul_state *s) {
    ptx_val list = ptxk__arg_ptr(k, s->args, offsetof(ptxk_matmul_args, groups)), count, tiles, x, y, p;
    ptx_var tile, group, before; /* before: tiles of the groups before this one */
    count = ptxk__arg_u32(k, s->args, offsetof(ptxk_matmul_args, batch));
    x = ptx_ctaid_x(k);
    tile = ptx_var_new(k, x);
    group = ptx_var_new(k, ptx_u32(0));
    before = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    {
        ptx_loop(k);
        {
            x = ptx_get(k, group);
            p = ptx_setp(k, PTX_LT, x, count);
            ptx_while(k, p);
            s->problem = ptx_ptr_add(k, list, x, (uint32_t)sizeof(ptxk_matmul_group));
            tiles = ptxk__matmul_count_tiles(k, f, s);
            y = ptx_get(k, before);
            tiles = ptx_add(k, y, tiles);
            y = ptx_get(k, tile);
            p = ptx_setp(k, PTX_GE, y, tiles);
            ptx_while(k, p);
            ptx_set(k, before, tiles);
            x = ptx_add(k, x, ptx_u32(1));
            ptx_set(k, group, x);
        }
        ptx_end(k);
        x = ptx_get(k, group);
        p = ptx_setp(k, PTX_LT, x, count);
        ptx_while(k, p);
        s->problem = ptx_ptr_add(k, list, x, (uint32_t)sizeof(ptxk_matmul_group));
        (void)ptxk__matmul_count_tiles(k, f, s);
        ptxk__matmul_take_problem(k, f, s);
        x = ptx_get(k, tile);
        y = ptx_get(k, before);
        x = ptx_sub(k, x, y);
        ptxk__matmul_locate(k, f, s, x);
        ptx_bar_sync(k, ptx_imm(0)); /* the results of the tile before have left shared memory */
        ptxk__matmul_sums(k, f, s);
        ptxk__matmul_store(k, f, s);
        x = ptx_get(k, tile);
        y = ptx_nctaid_x(k);
        x = ptx_add(k, x, y);
        ptx_set(k, tile, x);
    }
    ptx_end(k);
}

static void ptxk__matmul_emit(ptx_module *m, const char *site, const ptxk__matmul *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__matmul_state s;
    uint32_t i, j, e;
    ptx_launch_bounds(k, 32 * f->warps, f->resident);
    s.args = s.problem = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_matmul_args), 8);
    s.shared = ptx_shared_dynamic_aligned(k, 128);
    s.tid = ptx_tid_x(k);
    s.lane = ptx_and(k, s.tid, ptx_u32(31));
    s.warp = ptx_shr(k, s.tid, ptx_u32(5));
    for (i = 0; i < 2; i++) ptxk__matmul_places(k, f, &s, i);
    PTXK__MATMUL_EACH(f, i, j, e) {
        s.sum[i][j][e] = ptx_var_new(k, ptx_f32(0));
        if (f->split) s.part[i][j][e] = ptx_var_new(k, ptxk__matmul_zero(f));
    }
    if (f->grouped)
        ptxk__matmul_walk(k, f, &s);
    else
        ptxk__matmul_one(k, f, &s);
    ptx_ret(k);
}

/* -- matmul: warpgroups, code -- */

/* The state of a thread; of a unit of work from `unit` on. */
typedef struct ptxk__dense_state {
    ptxk__matmul_state m;               /* args, problem, batch, limits: what the code of results shares */
    ptx_val maps[4];                    /* of A, B, C, D */
    ptx_val thread, group, lane, warp;  /* of its warpgroup, which is `group` */
    ptx_val full, empty, loaded, turns; /* mbarriers; of the boxes of C; of the consumer groups' turns */
    ptx_val flag;                       /* a word for each consumer group */
    ptx_val rank, cluster;              /* this block of the cluster, blocks of it */
    ptx_val rows, columns;              /* tiles, of clusters and of columns, of a product */
    ptx_val each;                       /* units of a product */
    ptx_val whole, divided, parts, units, steps;
    ptx_var phases;                     /* bits; a unit begins with stage 0 */
    ptx_val first[2], begin, end, left; /* of the unit; left: its index among the divided ones */
    ptx_val index;
    ptx_var sum[2][32][4];                   /* of each block of 64 rows and 8 columns */
    ptx_var part[16][4];                     /* with split: of a stage */
    ptx_var writes, fetched;                 /* u32: 1 where the group writes results; parity of boxes of C */
    ptx_val hands_back, back;                /* predicate: the thread hands stages back, to this place */
    ptx_val matrix[2];                       /* descriptors of the group's A and B in stage 0 */
} ptxk__dense_state;

/* Waits for a phase of an mbarrier. */
static void ptxk__mbarrier_wait(ptx_kernel *k, ptx_val barrier, ptx_val parity) {
    ptx_val p;
    ptx_loop(k);
    p = ptx_mbarrier_try_wait(k, barrier, parity);
    ptx_while(k, ptx_inv(p));
    ptx_end(k);
}

/* The parity of the phase that is next at a stage: bit `stage` of s->phases. */
static ptx_val ptxk__dense_parity(ptx_kernel *k, const ptxk__dense_state *s, ptx_val stage) {
    ptx_val x = ptx_get(k, s->phases);
    x = ptx_shr(k, x, stage);
    x = ptx_and(k, x, ptx_u32(1));
    return ptx_as(x, PTX_U32);
}

static void ptxk__dense_turn_phase(ptx_kernel *k, ptxk__dense_state *s, ptx_val bits) {
    ptx_val x = ptx_get(k, s->phases);
    x = ptx_xor(k, x, bits);
    ptx_set(k, s->phases, ptx_as(x, PTX_U32));
}

/* The numbers of units, as ptxk__dense_count has them. */
static void ptxk__dense_begin_units(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s) {
    ptx_val x, y, p, total, workers;
    x = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, m));
    s->m.limit[0] = ptx_uniform(k, x);
    x = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, n));
    s->m.limit[1] = ptx_uniform(k, x);
    x = ptxk_div_up(k, s->m.limit[0], ptx_u32(PTXK__DENSE_ROWS));
    s->rows = ptxk_div_up(k, x, s->cluster);
    s->columns = ptxk_div_up(k, s->m.limit[1], ptx_u32(d->columns));
    s->each = ptx_mul(k, s->rows, s->columns);
    x = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, batch));
    total = ptx_mul(k, s->each, x);
    x = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, sm_count));
    workers = ptx_div(k, x, s->cluster);
    s->divided = ptx_rem(k, total, workers);
    s->whole = ptx_sub(k, total, s->divided);
    x = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, k));
    s->steps = ptxk_div_up(k, x, ptx_u32(d->depth));
    x = ptx_max(k, s->divided, ptx_u32(1));
    y = ptx_div(k, workers, x);
    y = ptx_min(k, y, ptx_u32(PTXK__DENSE_PARTS));
    x = ptx_div(k, s->steps, ptx_u32(3)); /* the largest number whose square is not above it, at least 1 */
    x = ptx_min(k, x, ptx_u32(PTXK__DENSE_PARTS * PTXK__DENSE_PARTS));
    x = ptx_cvt(k, PTX_F32, x);
    x = ptx_op1_(k, PTX__AT, PTX_SQRT, PTX_RN, x);
    x = ptx_cvt(k, PTX_U32, x);
    x = ptx_max(k, x, ptx_u32(1));
    s->parts = ptx_min(k, x, y);
    p = ptx_setp(k, PTX_EQ, s->divided, ptx_u32(0));
    s->parts = ptx_selp(k, ptx_u32(1), s->parts, p);
    x = ptx_mul(k, s->divided, s->parts);
    s->units = ptx_add(k, s->whole, x);
    x = ptx_ld(k, PTX_F32, ptx_at(s->m.args, (int64_t)offsetof(ptxk_matmul_args, alpha)));
    p = ptx_setp(k, PTX_EQ, x, ptx_f32(0)); /* A and B are not read */
    s->steps = ptx_selp(k, ptx_u32(0), s->steps, p);
}

/* Takes a unit: its tile, the steps along k, and its part of them. Neighbouring units lie in a band of rows
   of tiles, column after column. */
static void ptxk__dense_take(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s, ptx_val unit) {
    ptx_val p, x, y, band, high, tile;
    p = ptx_setp(k, PTX_GE, unit, s->whole);
    x = ptx_sub(k, unit, s->whole);
    s->left = ptx_div(k, x, s->parts);
    y = ptx_mul(k, s->left, s->parts);
    x = ptx_sub(k, x, y);
    s->index = ptx_selp(k, x, ptx_u32(0), p);
    x = ptx_add(k, s->whole, s->left);
    tile = ptx_selp(k, x, unit, p);
    x = ptxk_div_up(k, s->steps, s->parts);
    y = ptx_mul(k, s->index, x);
    s->begin = y;
    y = ptx_add(k, y, x);
    y = ptx_min(k, y, s->steps);
    s->end = ptx_selp(k, y, s->steps, p);
    s->m.parts = ptx_selp(k, s->parts, ptx_u32(1), p);
    s->m.batch = ptx_div(k, tile, s->each);
    y = ptx_mul(k, s->m.batch, s->each);
    tile = ptx_sub(k, tile, y);
    high = ptx_div(k, ptx_u32(PTXK__DENSE_BAND), s->cluster);
    x = ptx_mul(k, s->columns, high);
    band = ptx_div(k, tile, x);
    y = ptx_mul(k, band, x);
    tile = ptx_sub(k, tile, y);
    band = ptx_mul(k, band, high);
    x = ptx_sub(k, s->rows, band);
    high = ptx_min(k, x, high);
    x = ptx_div(k, tile, high);
    y = ptx_mul(k, x, high);
    y = ptx_sub(k, tile, y);
    y = ptx_add(k, band, y);
    y = ptx_mad(k, y, s->cluster, s->rank);
    s->first[0] = ptx_mul(k, y, ptx_u32(PTXK__DENSE_ROWS));
    s->first[1] = ptx_mul(k, x, ptx_u32(d->columns));
}

/* The index along the batch's dimension of a map; 0 where all products share the matrix. */
static ptx_val ptxk__dense_batch(ptx_kernel *k, const ptxk__dense_state *s, size_t stride) {
    ptx_val x = ptx_ld(k, PTX_U64, ptx_at(s->m.args, (int64_t)stride)), p;
    p = ptx_setp(k, PTX_NE, x, ptx_u64(0));
    return ptx_selp(k, s->m.batch, ptx_u32(0), p);
}

/* Copies a box by a map to shared memory of the blocks of `mask`. */
static void ptxk__dense_copy(ptx_kernel *k, ptx_val to, ptx_val map, ptx_val x, ptx_val y, ptx_val z,
                             ptx_val barrier, const ptx_val *mask) {
    ptx_val o[7];
    o[0] = to, o[1] = map, o[2] = x, o[3] = y, o[4] = z, o[5] = barrier;
    if (mask) o[6] = *mask;
    ptx_opn(k, PTX_TENSOR_G2S, mask ? PTX_MULTICAST : 0, PTX_NONE, PTX_NONE, mask ? 7 : 6, o, 0, NULL);
}

/* The copying thread: all steps of all units of its cluster. */
static void ptxk__dense_produce(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s) {
    const ptxk__matmul *f = d->f;
    ptx_var unit, step;
    ptx_val x, y, p, at, barrier, along, z[2], mask, half, stage, base;
    uint32_t i, side;
    unit = ptx_var_new(k, ptx_clusterid_x(k));
    x = ptx_shl(k, ptx_u32(1), s->cluster);
    x = ptx_sub(k, ptx_as(x, PTX_U32), ptx_u32(1));
    mask = ptx_cvt(k, PTX_U16, x);
    ptx_loop(k);
    {
        x = ptx_get(k, unit);
        p = ptx_setp(k, PTX_LT, x, s->units);
        ptx_while(k, p);
        ptxk__dense_take(k, d, s, x);
        z[0] = ptxk__dense_batch(k, s, offsetof(ptxk_matmul_args, a_stride));
        z[1] = ptxk__dense_batch(k, s, offsetof(ptxk_matmul_args, b_stride));
        step = ptx_var_new(k, s->begin);
        ptx_loop(k);
        {
            x = ptx_get(k, step);
            p = ptx_setp(k, PTX_LT, x, s->end);
            ptx_while(k, p);
            along = ptx_mul(k, x, ptx_u32(d->depth));
            stage = ptx_sub(k, x, s->begin);
            stage = ptx_rem(k, stage, ptx_u32(d->stages));
            y = ptxk__dense_parity(k, s, stage);
            y = ptx_xor(k, y, ptx_u32(1));
            barrier = ptx_ptr_add(k, s->empty, stage, 8);
            ptxk__mbarrier_wait(k, barrier, ptx_as(y, PTX_U32));
            y = ptx_shl(k, ptx_u32(1), stage);
            ptxk__dense_turn_phase(k, s, y);
            barrier = ptx_ptr_add(k, s->full, stage, 8);
            ptx_mbarrier_arrive_expect(k, barrier, ptx_u32(d->stage_bytes));
            base = ptx_ptr_add(k, s->m.shared, stage, d->stage_bytes);
            for (side = 0; side < 2; side++) {
                uint32_t span = side ? d->columns / 2 : PTXK__DENSE_ROWS, bytes = span * 128;
                ptx_var which;
                at = base;
                half = s->first[side];
                if (side) { /* half of the columns; a block alone takes one half after the other */
                    which = ptx_var_new(k, s->rank);
                    ptx_loop(k);
                    y = ptx_get(k, which);
                    p = ptx_setp(k, PTX_LT, y, ptx_u32(2));
                    ptx_while(k, p);
                    at = ptx_ptr_add(k, ptx_off(at, (int64_t)d->bytes[0]), y, bytes);
                    half = ptx_mad(k, y, ptx_u32(span), half);
                }
                if (f->side[side].k_major) {
                    ptxk__dense_copy(k, at, s->maps[side], along, half, z[side], barrier,
                                     side ? &mask : NULL);
                } else {
                    for (i = 0; i < span / 64; i++) {
                        y = i ? ptx_add(k, half, ptx_u32(64 * i)) : half;
                        ptxk__dense_copy(k, ptx_off(at, (int64_t)(i * PTXK__DENSE_BOX)), s->maps[side], y,
                                         along, z[side], barrier, side ? &mask : NULL);
                    }
                }
                if (side) {
                    y = ptx_get(k, which);
                    y = ptx_add(k, y, s->cluster);
                    ptx_set(k, which, y);
                    ptx_end(k);
                }
            }
            x = ptx_add(k, x, ptx_u32(1));
            ptx_set(k, step, x);
        }
        ptx_end(k);
        x = ptx_get(k, unit);
        y = ptx_nclusterid_x(k);
        x = ptx_add(k, x, y);
        ptx_set(k, unit, x);
    }
    ptx_end(k);
}

/* The upper half of a matrix descriptor: 1024 bytes from 8 rows to the next, swizzled by 128 bytes. The lower
   half has the address and, of matrices with k across, the offset from 64 of m or n to the next, in 16 bytes.
   */
#define PTXK__DENSE_DESCRIPTOR 0x40000040u
#define PTXK__DENSE_LEADING(f, side) ((f)->side[side].k_major ? 1u << 16 : PTXK__DENSE_BOX / 16 << 16)

/* Adds the products of a stage to the sums. more: whether the sums hold something. */
static void ptxk__dense_multiply(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s, uint32_t stage,
                                 ptx_val more, ptx_val always) {
    const ptxk__matmul *f = d->f;
    ptx_op_id op = f->type[0] == PTX_S8 ? PTX_WGMMA_S32 : PTX_WGMMA_F32;
    ptx_val x[2], o[7];
    uint32_t i, h, side, count = f->bytes == 2 ? 7 : f->type[0] == PTX_S8 ? 3 : 5;
    ptx_op0(k, PTX_WGMMA_FENCE,
            0);               /* between products of one shape for ptxas only, which puts it in anyway */
    for (i = 0; i < 4; i++) { /* 32 bytes along k, or 16 rows of 128 bytes */
        for (h = 0; h < d->heights; h++) {
            for (side = 0; side < 2; side++) {
                uint32_t along = stage * d->stage_bytes / 16 + i * (f->side[side].k_major ? 2 : 128)
                                 + (side ? 0 : h * PTXK__DENSE_BOX / 16);
                x[0] = along ? ptx_add(k, s->matrix[side], ptx_u32(along)) : s->matrix[side];
                x[1] = ptx_u32(PTXK__DENSE_DESCRIPTOR);
                o[side] = ptx_pack(k, PTX_B64, 2, x);
                o[side] = ptx_as(o[side], PTX_U64);
                o[5 + side] = ptx_imm(!f->side[side].k_major);
            }
            o[2] = i ? always : more;
            o[3] = o[4] = ptx_imm(1);
            ptx_wgmma(k, op, 0, f->bytes == 4 ? PTX_TF32 : f->type[0], f->bytes == 4 ? PTX_TF32 : f->type[1],
                      d->columns / 2, d->split ? s->part[0] : s->sum[h][0], count, o);
        }
    }
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}

/* A barrier of the threads of this consumer group. */
static void ptxk__dense_meet(ptx_kernel *k, const ptxk__dense_state *s) {
    ptx_val x = ptx_add(k, s->group, ptx_u32(1));
    ptx_op2(k, PTX_BAR_SYNC, 0, x, ptx_imm(128));
}

/* Hands a stage back to the copying threads of the cluster: thread i to block i. back: of that stage. */
static void ptxk__dense_hand_back(ptx_kernel *k, const ptxk__dense_state *s, ptx_val back, const ptx_val *p) {
    ptx_val both = p ? ptx_and(k, *p, s->hands_back) : s->hands_back;
    ptx_guard(k, both);
    ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, back);
}

/* With split: computes the sums of a unit. While a group adds the sums of a stage, the other multiplies. */
static void ptxk__dense_split_sums(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s,
                                   ptx_val always) {
    const ptxk__matmul *f = d->f;
    const int own[2] = {f->side[0].kind >= PTXK_FACTORS_BLOCK, f->side[1].kind >= PTXK_FACTORS_BLOCK};
    ptx_var step = ptx_var_new(k, s->begin);
    ptx_val x, y, p, never, at[2], count, hop[3], first[2], factor[2][32], sum, one;
    uint32_t u, j, e, side, rows[2], i;
    never = ptx_setp(k, PTX_LT, s->units, ptx_u32(0));
    for (j = 0; j < d->columns / 8; j++)
        for (e = 0; e < 4; e++) ptx_set(k, s->sum[0][j][e], ptx_f32(0));
    rows[0] = f->side[0].kind == PTXK_FACTORS_BLOCK ? 2 : 1; /* factors of a thread: rows g, g + 8 */
    rows[1] = f->side[1].kind == PTXK_FACTORS_BLOCK ? d->columns / 4 : 1;
    count = ptxk__arg_u32(k, s->m.args, offsetof(ptxk_matmul_args, k));
    count = ptxk_div_up(k, count, ptx_u32(PTXK__MATMUL_BLOCK));
    for (i = 0; i < 3; i++) hop[i] = ptx_mul_wide(k, count, ptx_u32(i == 0 ? 32 : i == 1 ? 4 : 28));
    for (side = 0; side < 2; side++) {
        if (!own[side]) continue;
        at[side] = ptxk__matmul_factors(k, f, &s->m, side);
        if (f->side[side].kind == PTXK_FACTORS_SQUARE) {
            x = ptx_div(k, s->first[side], ptx_u32(PTXK__MATMUL_BLOCK));
        } else if (side) {
            x = ptx_and(k, s->lane, ptx_u32(3));
            x = ptx_mad(k, ptx_as(x, PTX_U32), ptx_u32(2), s->first[1]);
        } else {
            x = ptx_shr(k, s->lane, ptx_u32(2));
            x = ptx_mad(k, s->warp, ptx_u32(16), ptx_as(x, PTX_U32));
            x = ptx_mad(k, s->group, ptx_u32(64), x);
            x = ptx_add(k, x, s->first[0]);
        }
        first[side] = x;
        x = ptx_mul_wide(k, x, count);
        at[side] = ptx_ptr_add(k, at[side], x, 4);
    }
    ptx_loop(k);
    for (u = 0; u < d->stages; u++) {
        x = ptx_get(k, step);
        p = ptx_setp(k, PTX_LT, x, s->end);
        ptx_while(k, p);
        for (side = 0; side < 2; side++) {
            if (!own[side]) continue;
            one = ptx_ptr_add(k, at[side], x, 4);
            for (i = 0; i < rows[side]; i++) {
                uint32_t row = side ? i / 2 * 8 + i % 2 : 8 * i;
                if (f->side[side].kind == PTXK_FACTORS_SQUARE)
                    y = ptx_mul(k, first[side], ptx_u32(PTXK__MATMUL_BLOCK));
                else
                    y = ptx_add(k, first[side], ptx_u32(row));
                p = ptx_setp(k, PTX_LT, y,
                             s->m.limit[side]); /* a cluster may have a tile past the last row */
                factor[side][i] = ptx_ld_if(k, p, PTX_F32, ptx_at(one, 0), ptx_f32(0));
                if (i + 1 < rows[side]) one = ptx_ptr_add(k, one, hop[side + i % 2], 1);
            }
        }
        y = ptxk__dense_parity(k, s, ptx_u32(u));
        ptxk__mbarrier_wait(k, ptx_off(s->full, (int64_t)(8 * u)), y);
        ptxk__dense_multiply(k, d, s, u, never, always);
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
        ptxk__dense_hand_back(k, s, ptx_off(s->back, (int64_t)(8 * u)), NULL);
        for (j = 0; j < d->columns / 8; j++) {
            for (e = 0; e < 4; e++) {
                y = ptx_get(k, s->part[j][e]);
                if (f->type[0] == PTX_S8) y = ptx_cvt(k, PTX_F32, y);
                sum = ptx_get(k, s->sum[0][j][e]);
                if (own[0]) one = factor[0][rows[0] > 1 ? e / 2 : 0];
                if (own[1]) {
                    p = factor[1][rows[1] > 1 ? 2 * j + e % 2 : 0];
                    one = own[0] ? ptx_op2(k, PTX_MUL, PTX_RN, one, p) : p;
                }
                sum = own[0] || own[1] ? ptx_fma(k, y, one, sum) : ptx_op2(k, PTX_ADD, PTX_RN, sum, y);
                ptx_set(k, s->sum[0][j][e], sum);
            }
        }
        x = ptx_add(k, x, ptx_u32(1));
        ptx_set(k, step, x);
    }
    ptxk__dense_turn_phase(k, s, ptx_u32((1u << d->stages) - 1));
    ptx_end(k);
    x = ptx_sub(k, s->end, s->begin);
    x = ptx_rem(k, x, ptx_u32(d->stages));
    x = ptx_shl(k, ptx_u32(1), x);
    x = ptx_sub(k, ptx_as(x, PTX_U32), ptx_u32(1));
    ptxk__dense_turn_phase(k, s, x);
}

/* Computes the sums of a unit. The products of a stage run while the next one is waited for. */
static void ptxk__dense_sums(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s, ptx_val always) {
    ptx_var step = ptx_var_new(k, s->begin);
    ptx_val x, y, p, more;
    uint32_t u;
    ptx_loop(k);
    for (u = 0; u < d->stages; u++) {
        x = ptx_get(k, step);
        p = ptx_setp(k, PTX_LT, x, s->end);
        ptx_while(k, p);
        more = u ? always : ptx_setp(k, PTX_NE, x, s->begin);
        y = ptxk__dense_parity(k, s, ptx_u32(u));
        ptxk__mbarrier_wait(k, ptx_off(s->full, (int64_t)(8 * u)), y);
        ptxk__dense_multiply(k, d, s, u, more, always);
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(1)); /* the products of the stage before are done */
        ptxk__dense_hand_back(k, s, ptx_off(s->back, (int64_t)(8 * (u ? u - 1 : d->stages - 1))),
                              u ? NULL : &more);
        x = ptx_add(k, x, ptx_u32(1));
        ptx_set(k, step, x);
    }
    ptxk__dense_turn_phase(k, s, ptx_u32((1u << d->stages) - 1)); /* of all stages, after a whole round */
    ptx_end(k);
    if (d->alternate) {
        x = ptx_xor(k, s->group, ptx_u32(1));
        y = ptx_ptr_add(k, s->turns, ptx_as(x, PTX_U32), 8);
        p = ptx_setp(k, PTX_EQ, s->thread, ptx_u32(0));
        ptx_if(k, p);
        ptx_mbarrier_arrive(k, y);
        ptx_end(k);
    }
    ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
    x = ptx_sub(k, s->end, s->begin);
    p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
    y = ptx_sub(k, x, ptx_u32(1));
    y = ptx_rem(k, y, ptx_u32(d->stages));
    y = ptx_ptr_add(k, s->back, y, 8);
    ptxk__dense_hand_back(k, s, y, &p);
    x = ptx_rem(k, x, ptx_u32(d->stages)); /* stages of the last round */
    x = ptx_shl(k, ptx_u32(1), x);
    x = ptx_sub(k, ptx_as(x, PTX_U32), ptx_u32(1));
    ptxk__dense_turn_phase(k, s, x);
}

/* Runs through the sums of a thread. */
#define PTXK__DENSE_EACH(d, h, j, e)                                                                         \
    for (h = 0; h < (d)->heights; h++)                                                                       \
        for (j = 0; j < (d)->columns / 8; j++)                                                               \
            for (e = 0; e < 4; e++)

static ptx_val ptxk__dense_zero(const ptxk__dense *d) {
    return d->split ? ptx_f32(0) : ptxk__matmul_zero(d->f);
}

/* The f32 number in the register of a sum, which may be one of integers. */
static ptx_val ptxk__dense_get(ptx_kernel *k, const ptxk__dense *d, const ptxk__dense_state *s, uint32_t h,
                               uint32_t j, uint32_t e) {
    ptx_val x = ptx_get(k, s->sum[h][j][e]);
    return d->f->type[0] == PTX_S8 && !d->split ? ptx_as(x, PTX_F32) : x;
}

static void ptxk__dense_set(ptx_kernel *k, const ptxk__dense *d, const ptxk__dense_state *s, uint32_t h,
                            uint32_t j, uint32_t e, ptx_val x) {
    ptx_set(k, s->sum[h][j][e], d->f->type[0] == PTX_S8 && !d->split ? ptx_as(x, PTX_S32) : x);
}

/* Adds the sums of all parts of a unit, in their order, in the consumer group that finishes last. Returns
   whether this one goes on to write results. */
static ptx_val ptxk__dense_join(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s) {
    uint32_t h, j, e, groups = d->alternate ? 1 : 2, record = d->heights * 64 * d->columns * 4;
    ptx_val at, here, slot, counter, x, y, p, last, v[4], flag;
    ptx_var part;
    slot = ptx_mad(k, s->left, s->cluster, s->rank);
    if (groups > 1) slot = ptx_mad(k, slot, ptx_u32(2), s->group);
    at = ptxk__arg_ptr(k, s->m.args, offsetof(ptxk_matmul_args, workspace));
    counter = ptx_ptr_add(k, at, slot, 4);
    x = ptx_mul(k, s->divided, s->cluster);
    x = ptx_mad(k, x, ptx_u32(groups * 4), ptx_u32(255));
    x = ptx_and(k, x, ptx_u32(~255u));
    at = ptx_ptr_add(k, at, ptx_as(x, PTX_U32), 1);
    x = ptx_mul(k, slot, s->parts);
    x = ptx_mul_wide(k, x, ptx_u32(record));
    at = ptx_ptr_add(k, at, x, 1);
    at = ptx_ptr_add(k, at, s->thread, 16);
    x = ptx_mul_wide(k, s->index, ptx_u32(record));
    here = ptx_ptr_add(k, at, x, 1);
    for (h = 0; h < d->heights; h++) {
        for (j = 0; j < d->columns / 8; j++) {
            for (e = 0; e < 4; e++) v[e] = ptxk__dense_get(k, d, s, h, j, e), v[e] = ptx_as(v[e], PTX_B32);
            ptx_st_vec(k, PTX_B32, 4, ptx_at(here, (int64_t)((h * d->columns / 8 + j) * 2048)), v);
        }
    }
    ptxk__dense_meet(k, s);
    flag = ptx_ptr_add(k, s->flag, s->group, 4);
    y = ptx_sub(k, s->parts, ptx_u32(1));
    p = ptx_setp(k, PTX_EQ, s->thread, ptx_u32(0));
    ptx_if(k, p); /* see ptxk__is_last_block */
    x = ptx_atom(k, PTX_ATOM_INC | PTX_ACQ_REL | PTX_GPU, ptx_at(counter, 0), y);
    ptx_st(k, PTX_U32, ptx_at(flag, 0), x);
    ptx_end(k);
    ptxk__dense_meet(k, s);
    x = ptx_ld(k, PTX_U32, ptx_at(flag, 0));
    x = ptx_warpgroup_uniform(k, x);
    last = ptx_setp(k, PTX_EQ, x, y);
    ptx_if(k, last);
    {
        PTXK__DENSE_EACH(d, h, j, e) ptx_set(k, s->sum[h][j][e], ptxk__dense_zero(d));
        part = ptx_var_new(k, ptx_u32(0));
        ptx_loop(k);
        {
            x = ptx_get(k, part);
            p = ptx_setp(k, PTX_LT, x, s->parts);
            ptx_while(k, p);
            here = ptx_mul_wide(k, x, ptx_u32(record));
            here = ptx_ptr_add(k, at, here, 1);
            for (h = 0; h < d->heights; h++) {
                for (j = 0; j < d->columns / 8; j++) {
                    ptx_ld_vec(k, PTX_F32, 4, ptx_at(here, (int64_t)((h * d->columns / 8 + j) * 2048)), v);
                    for (e = 0; e < 4; e++) {
                        y = ptxk__dense_get(k, d, s, h, j, e);
                        y = ptx_op2(k, PTX_ADD, PTX_RN, y, v[e]);
                        ptxk__dense_set(k, d, s, h, j, e, y);
                    }
                }
            }
            x = ptx_add(k, x, ptx_u32(1));
            ptx_set(k, part, x);
        }
        ptx_end(k);
    }
    ptx_end(k);
    return last;
}

/* What all results of a thread need. */
typedef struct ptxk__dense_output {
    ptx_val factor, beta, add; /* alpha and the factors of whole tensors; add: predicate, C is read */
    ptx_val row[2][2], column; /* factors of the thread's rows; u32: its first column of the tile */
    ptx_val z[2];              /* indices along the batch's dimension, of C and of D */
    ptx_val lead;              /* predicate: the thread that copies the group's boxes */
    ptx_val boxes, loaded;     /* the group's boxes in shared memory, and their mbarriers */
    ptx_val at[4]; /* f16, bf16: where the thread's row begins in a box, for each 16 columns; f32: .. */
    ptx_val odd;   /* f32: predicate */
    ptx_val bias, factors; /* addresses, of the thread's first column */
} ptxk__dense_output;

/* Loads a number of each of the thread's columns of a box. */
static void ptxk__dense_columns(ptx_kernel *k, const ptxk__dense *d, const ptxk__dense_state *s,
                                const ptxk__dense_output *o, ptx_val from, uint32_t first,
                                ptx_val out[8][2]) {
    uint32_t j, e;
    ptx_val x, p;
    for (j = 0; j < d->box / 8; j++) {
        for (e = 0; e < 2; e++) {
            x = ptx_add(k, o->column, ptx_u32(first + 8 * j + e));
            p = ptx_setp(k, PTX_LT, x, s->m.limit[1]);
            out[j][e] =
                ptx_ld_if(k, p, PTX_F32, ptx_at(from, (int64_t)(4 * (first + 8 * j + e))), ptx_f32(0));
        }
    }
}

static void ptxk__dense_begin_output(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s,
                                     ptxk__dense_output *o) {
    const ptxk__matmul *f = d->f;
    ptx_val x, y, p, row;
    uint32_t side, h, e;
    o->factor = ptx_ld(k, PTX_F32, ptx_at(s->m.args, (int64_t)offsetof(ptxk_matmul_args, alpha)));
    o->beta = ptx_ld(k, PTX_F32, ptx_at(s->m.args, (int64_t)offsetof(ptxk_matmul_args, beta)));
    o->add = ptx_setp(k, PTX_NE, o->beta, ptx_f32(0));
    o->z[0] = ptxk__dense_batch(k, s, offsetof(ptxk_matmul_args, c_stride));
    o->z[1] = s->m.batch;
    o->lead = ptx_setp(k, PTX_EQ, s->thread, ptx_u32(0));
    x = ptx_mul(k, s->group, ptx_u32(2 * PTXK__DENSE_BOX));
    x = ptx_add(k, x, ptx_u32(d->stages * d->stage_bytes));
    o->boxes = ptx_ptr_add(k, s->m.shared, x, 1);
    o->loaded = ptx_ptr_add(k, s->loaded, s->group, 16);
    x = ptx_and(k, s->lane, ptx_u32(3));
    o->column = ptx_mad(k, ptx_as(x, PTX_U32), ptx_u32(2), s->first[1]);
    for (side = 0; side < 2; side++) {
        if (f->side[side].kind != PTXK_FACTORS_TENSOR) continue;
        x = ptxk__matmul_factors(k, f, &s->m, side);
        x = ptx_ld(k, PTX_F32, ptx_at(x, 0));
        o->factor = ptx_op2(k, PTX_MUL, PTX_RN, o->factor, x);
    }
    if (f->side[1].kind == PTXK_FACTORS_ROW) {
        x = ptxk__matmul_factors(k, f, &s->m, 1);
        o->factors = ptx_ptr_add(k, x, o->column, 4);
    }
    if (f->flags & PTXK_MATMUL_BIAS) {
        x = ptxk__arg_ptr(k, s->m.args, offsetof(ptxk_matmul_args, bias));
        o->bias = ptx_ptr_add(k, x, o->column, 4);
    }
    if (f->side[0].kind == PTXK_FACTORS_ROW) {
        row = ptx_shr(k, s->lane, ptx_u32(2));
        row = ptx_mad(k, s->warp, ptx_u32(16), row);
        row = ptx_add(k, row, s->first[0]);
        if (!d->alternate) row = ptx_mad(k, s->group, ptx_u32(64), row);
        y = ptxk__matmul_factors(k, f, &s->m, 0);
        y = ptx_ptr_add(k, y, row, 4);
        for (h = 0; h < d->heights; h++) {
            for (e = 0; e < 2; e++) {
                x = ptx_add(k, row, ptx_u32(64 * h + 8 * e));
                p = ptx_setp(k, PTX_LT, x, s->m.limit[0]);
                o->row[h][e] =
                    ptx_ld_if(k, p, PTX_F32, ptx_at(y, (int64_t)(4 * (64 * h + 8 * e))), ptx_f32(0));
            }
        }
    }
    /* Places in a box of 64 rows of 128 bytes, whose chunks of 16 bytes are exchanged by the row modulo 8. */
    if (f->out_bytes == 2) { /* lane l: row l % 16 of its warp's, chunk l / 16 of each two */
        row = ptx_and(k, s->lane, ptx_u32(15));
        x = ptx_shr(k, s->lane, ptx_u32(4));
        y = ptx_and(k, s->lane, ptx_u32(7));
        x = ptx_xor(k, x, y);
        x = ptx_mul(k, ptx_as(x, PTX_U32), ptx_u32(16));
    } else { /* row g, 8 bytes of column 2 t; see ptxk__dense_exchange for odd rows */
        row = ptx_shr(k, s->lane, ptx_u32(2));
        x = ptx_bfe(k, s->lane, ptx_u32(1), ptx_u32(1));
        x = ptx_xor(k, x, row);
        y = ptx_and(k, row, ptx_u32(1));
        o->odd = ptx_setp(k, PTX_NE, ptx_as(y, PTX_U32), ptx_u32(0));
        y = ptx_selp(k, ptx_b32(4), ptx_b32(0), o->odd);
        x = ptx_xor(k, x, y);
        y = ptx_and(k, s->lane, ptx_u32(1));
        x = ptx_mul(k, ptx_as(x, PTX_U32), ptx_u32(16));
        x = ptx_mad(k, ptx_as(y, PTX_U32), ptx_u32(8), x);
    }
    row = ptx_mad(k, s->warp, ptx_u32(16), ptx_as(row, PTX_U32));
    x = ptx_mad(k, row, ptx_u32(128), x);
    o->at[0] = ptx_ptr_add(k, o->boxes, x, 1);
    for (e = 1; e < 4; e++) { /* boxes begin at multiples of 1024: these differ in bits only */
        x = ptx_xor(k, ptx_as(o->at[0], PTX_B32), ptx_b32(32 * e));
        o->at[e] = ptx_ptr(ptx_as(x, PTX_U32), PTX_SHARED);
    }
}

/* Reads (C) or writes a box of a thread's values, x[8 columns][row g: 0, 1; row g + 8: 2, 3], from or to the
   box `which` of the group. */
static void ptxk__dense_exchange(ptx_kernel *k, const ptxk__dense *d, const ptxk__dense_output *o,
                                 uint32_t which, ptx_val x[8][4], int load) {
    const ptxk__matmul *f = d->f;
    int64_t off = (int64_t)(which * PTXK__DENSE_BOX);
    uint32_t j, e, r;
    ptx_val words[5], v[2], swapped[8][4];
    if (f->out_bytes == 2) {
        for (j = 0; j < 4; j++) { /* 16 rows of 16 columns */
            words[0] = ptx_off(o->at[j], off);
            if (load) {
                ptx_ldmatrix(k, 4, words[0], words + 1);
                for (e = 0; e < 4; e++)
                    ptxk__widen_word(k, f->out, words[1 + e], &x[2 * j + e / 2][e % 2 * 2]);
                continue;
            }
            for (e = 0; e < 4; e++) ptxk_narrow(k, f->out, 2, &x[2 * j + e / 2][e % 2 * 2], words + 1 + e);
            ptx_opn(k, PTX_STMATRIX, 0, PTX_NONE, PTX_NONE, 5, words, 0, NULL);
        }
        return;
    }
    /* Odd rows have block j ^ 2 where even ones have block j, so that the 16 lanes of an access use all
       banks. */
    for (j = 0; j < 4 && !load; j++)
        for (e = 0; e < 4; e++) swapped[j][e] = ptx_selp(k, x[j ^ 2][e], x[j][e], o->odd);
    for (r = 0; r < 2; r++) {
        for (j = 0; j < 4; j++) {
            ptx_mem mem = ptx_at(o->at[j], off + (int64_t)(r * 1024));
            if (load)
                ptx_ld_vec(k, PTX_F32, 2, mem, v), swapped[j][2 * r] = v[0], swapped[j][2 * r + 1] = v[1];
            else
                ptx_st_vec(k, PTX_F32, 2, mem, &swapped[j][2 * r]);
        }
    }
    for (j = 0; j < 4 && load; j++)
        for (e = 0; e < 4; e++) x[j][e] = ptx_selp(k, swapped[j ^ 2][e], swapped[j][e], o->odd);
}

/* Copies a box of C to shared memory: the leading thread, when all its copies have been read. */
static void ptxk__dense_fetch(ptx_kernel *k, const ptxk__dense_state *s, const ptxk__dense_output *o,
                              ptx_val x, ptx_val y, uint32_t which) {
    ptx_val p = ptx_and(k, o->lead, o->add), barrier = ptx_off(o->loaded, (int64_t)(8 * which));
    ptx_if(k, p);
    ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, ptx_imm(0));
    ptx_mbarrier_arrive_expect(k, barrier, ptx_u32(PTXK__DENSE_BOX));
    ptxk__dense_copy(k, ptx_off(o->boxes, (int64_t)(which * PTXK__DENSE_BOX)), s->maps[2], x, y, o->z[0],
                     barrier, NULL);
    ptx_end(k);
}

/* Finishes and stores the results of a unit, box after box. */
static void ptxk__dense_store(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s) {
    const ptxk__matmul *f = d->f;
    ptxk__dense_output o;
    ptx_val x[8][4], old[8][4], bias[8][2], factors[8][2], y, q, at[5], down, right;
    uint32_t across = d->columns / d->box, boxes = d->heights * across, b, j, e;
    ptxk__dense_begin_output(k, d, s, &o);
    down = d->alternate ? s->first[0] : ptx_mad(k, s->group, ptx_u32(64), s->first[0]);
    ptxk__dense_fetch(k, s, &o, s->first[1], down, 0);
    for (b = 0; b < boxes; b++) {
        uint32_t h = b / across, first = b % across * d->box;
        if (f->side[1].kind == PTXK_FACTORS_ROW) ptxk__dense_columns(k, d, s, &o, o.factors, first, factors);
        if (f->flags & PTXK_MATMUL_BIAS) ptxk__dense_columns(k, d, s, &o, o.bias, first, bias);
        if (b + 1 < boxes) {
            right = ptx_add(k, s->first[1], ptx_u32((b + 1) % across * d->box));
            y = ptx_add(k, down, ptx_u32(64 * ((b + 1) / across)));
            ptxk__dense_fetch(k, s, &o, right, y, (b + 1) & 1);
        }
        for (j = 0; j < d->box / 8; j++) {
            for (e = 0; e < 4; e++) {
                y = ptxk__dense_get(k, d, s, h, first / 8 + j, e);
                if (f->side[0].kind == PTXK_FACTORS_ROW) y = ptx_op2(k, PTX_MUL, PTX_RN, y, o.row[h][e / 2]);
                q = o.factor;
                if (f->side[1].kind == PTXK_FACTORS_ROW)
                    q = ptx_op2(k, PTX_MUL, PTX_RN, factors[j][e & 1], q);
                y = ptx_op2(k, PTX_MUL, PTX_RN, y, q);
                ptxk__dense_set(k, d, s, h, first / 8 + j, e, y);
            }
        }
        ptx_if(k, o.add);
        y = ptx_get(k, s->fetched);
        y = boxes / 2 % 2 ? y : ptx_u32(0);
        y = ptx_xor(k, y, ptx_u32(b / 2 & 1));
        ptxk__mbarrier_wait(k, ptx_off(o.loaded, (int64_t)(8 * (b & 1))), ptx_as(y, PTX_U32));
        ptxk__dense_exchange(k, d, &o, b & 1, old, 1);
        for (j = 0; j < d->box / 8; j++) {
            for (e = 0; e < 4; e++) {
                y = ptxk__dense_get(k, d, s, h, first / 8 + j, e);
                y = ptx_fma(k, o.beta, old[j][e], y);
                ptxk__dense_set(k, d, s, h, first / 8 + j, e, y);
            }
        }
        ptx_else(k); /* the copy before the last has read this box */
        ptx_if(k, o.lead);
        ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, ptx_imm(1));
        ptx_end(k);
        ptxk__dense_meet(k, s);
        ptx_end(k);
        for (j = 0; j < d->box / 8; j++) {
            for (e = 0; e < 4; e++) {
                y = ptxk__dense_get(k, d, s, h, first / 8 + j, e);
                if (f->flags & PTXK_MATMUL_BIAS) y = ptx_op2(k, PTX_ADD, PTX_RN, y, bias[j][e & 1]);
                x[j][e] = ptxk__matmul_activate(k, f, y);
            }
        }
        ptxk__dense_exchange(k, d, &o, b & 1, x, 0);
        ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0);
        ptxk__dense_meet(k, s);
        ptx_if(k, o.lead);
        at[0] = s->maps[3];
        at[1] = first ? ptx_add(k, s->first[1], ptx_u32(first)) : s->first[1];
        at[2] = h ? ptx_add(k, down, ptx_u32(64 * h)) : down;
        at[3] = o.z[1];
        at[4] = ptx_off(o.boxes, (int64_t)((b & 1) * PTXK__DENSE_BOX));
        ptx_opn(k, PTX_TENSOR_S2G, 0, PTX_NONE, PTX_NONE, 5, at, 0, NULL);
        ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
        ptx_end(k);
    }
    y = ptx_get(k, s->fetched);
    y = ptx_xor(k, y, ptx_u32(1));
    ptx_set(k, s->fetched, ptx_as(y, PTX_U32));
}

/* Consumer groups that take units in turn: begins an if for this group's unit, and waits until the other
   group has seen all stages of the unit before. At the other's unit, its stages are passed. turn: 0 at this
   group's units. rounds: of the group. */
static void ptxk__dense_take_turn(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s, ptx_var turn,
                                  ptx_var rounds) {
    ptx_val x, y, p, mine = ptx_get(k, turn);
    x = ptx_xor(k, mine, ptx_u32(1));
    ptx_set(k, turn, ptx_as(x, PTX_U32));
    p = ptx_setp(k, PTX_NE, mine, ptx_u32(0));
    ptx_if(k, p);
    x = ptx_sub(k, s->end, s->begin);
    y = ptx_div(k, x, ptx_u32(d->stages));
    x = ptx_rem(k, x, ptx_u32(d->stages)); /* stages that are used once more than the others */
    x = ptx_shl(k, ptx_u32(1), x);
    x = ptx_sub(k, ptx_as(x, PTX_U32), ptx_u32(1));
    y = ptx_and(k, y, ptx_u32(1));
    y = ptx_mul(k, ptx_as(y, PTX_U32), ptx_u32((1u << d->stages) - 1));
    x = ptx_xor(k, x, y);
    ptxk__dense_turn_phase(k, s, x);
    ptx_else(k);
    x = ptx_get(k, rounds); /* the first turn of group 0 is open */
    y = ptx_xor(k, x, s->group);
    y = ptx_xor(k, y, ptx_u32(1));
    ptxk__mbarrier_wait(k, ptx_ptr_add(k, s->turns, s->group, 8), ptx_as(y, PTX_U32));
    x = ptx_xor(k, x, ptx_u32(1));
    ptx_set(k, rounds, ptx_as(x, PTX_U32));
}

/* A consumer group: all units of its cluster, or every other. */
static void ptxk__dense_consume(ptx_kernel *k, const ptxk__dense *d, ptxk__dense_state *s) {
    const ptxk__matmul *f = d->f;
    ptx_var unit, turn, rounds;
    ptx_val x, y, p, at, always;
    uint32_t side, h, j, e;
    int whole = f->type[0] == PTX_S8 && !d->split;
    x = ptx_shr(k, s->thread, ptx_u32(5));
    s->warp = ptx_as(x, PTX_U32);
    x = ptx_and(k, s->thread, ptx_u32(31));
    s->lane = ptx_as(x, PTX_U32);
    s->hands_back = ptx_setp(k, PTX_LT, s->thread, s->cluster);
    x = ptx_min(k, s->thread, ptx_u32(1));
    x = ptx_selp(k, x, ptx_u32(0), s->hands_back);
    s->back = ptx_mapa(k, s->empty, x);
    for (side = 0; side < 2; side++) {
        at = side ? ptx_off(s->m.shared, (int64_t)d->bytes[0]) : s->m.shared;
        if (!side && !d->alternate) at = ptx_ptr_add(k, at, s->group, PTXK__DENSE_BOX);
        x = ptx_shr(k, ptx_as(at, PTX_U32), ptx_u32(4));
        s->matrix[side] = ptx_add(k, ptx_as(x, PTX_U32), ptx_u32(PTXK__DENSE_LEADING(f, side)));
    }
    s->fetched = ptx_var_new(k, ptx_u32(0));
    always = ptx_setp(k, PTX_GE, s->units, ptx_u32(0));
    PTXK__DENSE_EACH(d, h, j, e) {
        s->sum[h][j][e] = ptx_var_new(k, ptxk__dense_zero(d));
        if (d->split) s->part[j][e] = ptx_var_new(k, ptxk__matmul_zero(f));
    }
    x = ptx_clusterid_x(k);
    unit = ptx_var_new(k, x);
    turn = ptx_var_new(k, s->group);
    rounds = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    {
        x = ptx_get(k, unit);
        p = ptx_setp(k, PTX_LT, x, s->units);
        ptx_while(k, p);
        ptxk__dense_take(k, d, s, x);
        if (d->alternate) ptxk__dense_take_turn(k, d, s, turn, rounds);
        if (d->split)
            ptxk__dense_split_sums(k, d, s, always);
        else
            ptxk__dense_sums(k, d, s, always);
        if (!d->split) {
            p = ptx_setp(k, PTX_EQ, s->begin, s->end);
            ptx_if(k, p); /* alpha is 0 */
            PTXK__DENSE_EACH(d, h, j, e) ptx_set(k, s->sum[h][j][e], ptxk__dense_zero(d));
            ptx_end(k);
        }
        PTXK__DENSE_EACH(d, h, j, e) {
            if (!whole) continue;
            y = ptx_get(k, s->sum[h][j][e]);
            y = ptx_cvt(k, PTX_F32, y);
            ptxk__dense_set(k, d, s, h, j, e, y);
        }
        x = ptx_mov(k, ptx_u32(1));
        s->writes = ptx_var_new(k, x);
        p = ptx_setp(k, PTX_GT, s->m.parts, ptx_u32(1));
        ptx_if(k, p);
        p = ptxk__dense_join(k, d, s);
        x = ptx_selp(k, ptx_u32(1), ptx_u32(0), p);
        ptx_set(k, s->writes, x);
        ptx_end(k);
        x = ptx_get(k, s->writes);
        p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dense_store(k, d, s);
        ptx_end(k);
        if (d->alternate) ptx_end(k);
        x = ptx_get(k, unit);
        y = ptx_nclusterid_x(k);
        x = ptx_add(k, x, y);
        ptx_set(k, unit, x);
    }
    ptx_end(k);
    p = ptx_setp(k, PTX_EQ, s->thread, ptx_u32(0));
    ptx_if(k, p);
    ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, ptx_imm(0));
    ptx_end(k);
}

static void ptxk__dense_emit(ptx_module *m, const char *site, const ptxk__matmul *f, uint32_t entry,
                             const char *name) {
    static const char *const names[] = {"map_a", "map_b", "map_c", "map_d"};
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__dense_state s;
    ptxk__dense d;
    ptx_val p, x, count, tid;
    uint32_t i;
    ptxk__dense_shape(f, entry, &d);
    ptx_launch_bounds(k, 384, 1);
    s.m.args = s.m.problem = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_matmul_args), 8);
    for (i = 0; i < 4; i++) s.maps[i] = ptx_param_map(k, names[i]);
    s.full = ptx_shared(k, "full", PTX_U64, d.stages, 8);
    s.empty = ptx_shared(k, "empty", PTX_U64, d.stages, 8);
    s.loaded = ptx_shared(k, "loaded", PTX_U64, 4, 8);
    s.turns = ptx_shared(k, "turns", PTX_U64, 2, 8);
    s.flag = ptx_shared(k, "flag", PTX_U32, 2, 4);
    s.m.shared = ptx_shared_dynamic_aligned(k, 1024);
    tid = ptx_tid_x(k);
    s.rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    s.cluster = ptx_sreg(k, PTX_CLUSTER_NCTARANK);
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_if(k, p);
    count = ptx_mul(k, s.cluster, ptx_u32(d.alternate ? 1 : 2));
    for (i = 0; i < d.stages; i++) {
        ptx_mbarrier_init(k, ptx_off(s.full, (int64_t)(8 * i)), ptx_imm(1));
        ptx_mbarrier_init(k, ptx_off(s.empty, (int64_t)(8 * i)), count);
    }
    for (i = 0; i < 4; i++) ptx_mbarrier_init(k, ptx_off(s.loaded, (int64_t)(8 * i)), ptx_imm(1));
    for (i = 0; i < 2 && d.alternate; i++)
        ptx_mbarrier_init(k, ptx_off(s.turns, (int64_t)(8 * i)), ptx_imm(1));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_end(k);
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
    ptxk__dense_begin_units(k, &d, &s);
    s.phases = ptx_var_new(k, ptx_u32(0));
    x = ptx_shr(k, tid, ptx_u32(7));
    s.group = ptx_as(x, PTX_U32);
    x = ptx_and(k, tid, ptx_u32(127));
    s.thread = ptx_as(x, PTX_U32);
    p = ptx_setp(k, PTX_EQ, s.group, ptx_u32(0));
    ptx_if(k, p);
    {
        ptx_op1(k, PTX_SETMAXNREG_DEC, 0, ptx_imm(PTXK__DENSE_DECREASED));
        p = ptx_setp(k, PTX_EQ, s.thread, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dense_produce(k, &d, &s);
        ptx_end(k);
    }
    ptx_else(k);
    {
        ptx_op1(k, PTX_SETMAXNREG_INC, 0, ptx_imm(PTXK__DENSE_INCREASED));
        p = ptx_setp(k, PTX_GT, s.group, ptx_u32(1));
        p = ptx_op2(k, PTX_VOTE_ANY, 0, p, ptx_u32(0xffffffffu)); /* for the assembler: alike in the warp */
        s.group = ptx_selp(k, ptx_u32(1), ptx_u32(0), p);
        s.group = ptx_warpgroup_uniform(k, s.group);
        ptxk__dense_consume(k, &d, &s);
    }
    ptx_end(k);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
    ptx_cluster_arrive(k); /* the other block's shared memory lives while its stages are written */
    ptx_cluster_wait(k);
    ptx_ret(k);
}

PTXGEN_API ptx_code ptxk_matmul_emit_(ptx_module *m, const char *site, const void *desc) {
    const ptxk_matmul_desc *d = (const ptxk_matmul_desc *)desc;
    ptxk__matmul f;
    ptxk__dense dense;
    ptxk_message why;
    char name[160];
    uint32_t small_tile, entry;
    ptx_code code = ptxk__matmul_form(d, m ? ptx_module_target(m) : 0, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    for (small_tile = 0; small_tile < 2; small_tile++) {
        ptxk__matmul_shape_tile(&f, small_tile);
        (void)snprintf(name, sizeof name, "matmul_%s_%s_%s_f%u_p%u_a%u_s%u%u_t%u", ptx_type_name(f.type[0]),
                       ptx_type_name(f.type[1]), ptx_type_name(f.out), f.flags, f.precision, f.activation,
                       f.side[0].kind, f.side[1].kind, f.tile);
        ptxk__matmul_emit(m, site, &f, name);
    }
    for (entry = PTXK__DENSE_WIDE; entry <= PTXK__DENSE_SHORT && f.dense; entry++) {
        ptxk__dense_shape(&f, entry, &dense);
        if (dense.split && dense.alternate) break;
        (void)snprintf(name, sizeof name, "matmul_%s_%s_%s_f%u_p%u_a%u_s%u%u_w%u", ptx_type_name(f.type[0]),
                       ptx_type_name(f.type[1]), ptx_type_name(f.out), f.flags, f.precision, f.activation,
                       f.side[0].kind, f.side[1].kind, entry);
        ptxk__dense_emit(m, site, &f, entry, name);
    }
    return ptx_get_error(m)->code;
}

/* ======== norm ========================================================================================== */

static ptx_code ptxk__norm_form(const ptxk_norm_desc *d, ptxk__row *f, ptxk_message *why) {
    ptx_code code;
    uint32_t widest;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "norm: the description is NULL");
    if ((code = ptxk__check_n("norm", "n", d->n, PTXK__N_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_type("norm", "x_type", d->x_type, why)) != PTX_E_NONE
        || (code = ptxk__check_type("norm", "y_type", d->y_type, why)) != PTX_E_NONE
        || ((d->weight_type || !(d->flags & PTXK_NORM_PLAIN))
            && (code = ptxk__check_type("norm", "weight_type", d->weight_type, why)) != PTX_E_NONE))
        return code;
    if (d->kind > PTXK_NORM_LAYER)
        return ptxk__refuse(why, PTX_E_DESC, "norm: kind is %u, must be PTXK_NORM_RMS or PTXK_NORM_LAYER",
                            d->kind);
    if (d->flags > 15)
        return ptxk__refuse(why, PTX_E_DESC,
                            "norm: flags is %u, must be of PTXK_NORM_RESIDUAL, _BETA, _PLAIN and _ADD",
                            d->flags);
    if (d->flags & PTXK_NORM_BETA && d->kind != PTXK_NORM_LAYER)
        return ptxk__refuse(why, PTX_E_DESC,
                            "norm: beta (PTXK_NORM_BETA) goes with LayerNorm, and kind is PTXK_NORM_RMS");
    if (d->flags & PTXK_NORM_BETA && d->flags & PTXK_NORM_PLAIN)
        return ptxk__refuse(why, PTX_E_DESC,
                            "norm: beta (PTXK_NORM_BETA) goes with gamma, and there is none "
                            "(PTXK_NORM_PLAIN)");
    widest = ptxk__widest(d->x_type, d->y_type);
    *f = ptxk__row_form(d->n,
                        widest > ptxk__kv_bytes(d->weight_type) ? widest : ptxk__kv_bytes(d->weight_type));
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_norm_plan(const ptxk_norm_desc *desc, const ptxk_norm_shape *shape, ptx_plan *plan,
                                   ptxk_message *why) {
    ptxk__row f;
    uint64_t weights, elements;
    ptx_code code =
        ptxk__plan_start("norm", ptxk__norm_form(desc, &f, why), shape, plan, sizeof(ptxk_norm_args), why);
    if (!code) code = ptxk__check_most("norm", "rows", shape->rows, PTXK__LEN_MAX, why);
    if (code || !shape->rows) return code;
    elements = (uint64_t)shape->rows * desc->n;
    weights = (desc->flags & PTXK_NORM_PLAIN ? 0u : 1u) + (desc->flags & PTXK_NORM_BETA ? 1u : 0u);
    ptxk__plan_one(plan, ptxk__row_grid(&f, shape->rows), 1, f.block,
                   elements
                           * (ptxk__kv_bytes(desc->x_type) * (desc->flags & PTXK_NORM_RESIDUAL ? 3 : 1)
                              + ptxk__kv_bytes(desc->y_type) * (desc->flags & PTXK_NORM_ADD ? 2 : 1))
                       + weights * desc->n * ptxk__kv_bytes(desc->weight_type));
    return code;
}

PTXGEN_API ptx_code ptxk_norm_check(const ptxk_norm_desc *desc, const ptxk_norm_args *args,
                                    ptxk_message *why) {
    ptxk__row f;
    ptxk__span span[5];
    uint64_t bytes;
    int added;
    ptx_code code = ptxk__check_start("norm", ptxk__norm_form(desc, &f, why), args, why);
    if (code) return code;
    if ((code = ptxk__check_eps("norm", args->eps, why)) != PTX_E_NONE
        || (code = ptxk__check_count("norm", "rows", args->rows, 0, PTXK__LEN_MAX, why)) != PTX_E_NONE)
        return code;
    added = (desc->flags & PTXK_NORM_RESIDUAL) != 0;
    bytes = (uint64_t)args->rows * desc->n * ptxk__kv_bytes(desc->x_type);
    span[0] = ptxk__span_of("x", args->x, bytes, 16, 1);
    span[1] = ptxk__span_of("residual", args->residual, bytes, 16, added);
    span[2] =
        ptxk__span_of("y", args->y, (uint64_t)args->rows * desc->n * ptxk__kv_bytes(desc->y_type), 16, 1);
    span[2] = ptxk__span_written(span[2], desc->x_type == desc->y_type && !(desc->flags & PTXK_NORM_ADD));
    if (added) span[0] = ptxk__span_written(span[0], 0);
    span[added].same = 1;
    bytes = (uint64_t)desc->n * ptxk__kv_bytes(desc->weight_type);
    span[3] = ptxk__span_of("gamma", args->gamma, bytes, 16, !(desc->flags & PTXK_NORM_PLAIN));
    span[4] = ptxk__span_of("beta", args->beta, bytes, 16, (desc->flags & PTXK_NORM_BETA) != 0);
    return ptxk__check_spans("norm", span, 5, why);
}

/* 1 / sqrt(sum / n + eps); 0 where the root is 0; NaN for an infinite sum. */
static ptx_val ptxk__norm_factor(ptx_kernel *k, ptx_val sum, ptx_val n, ptx_val eps) {
    ptx_val x = ptx_op2(k, PTX_DIV, PTX_RN, sum, n);
    x = ptx_op2(k, PTX_ADD, PTX_RN, x, eps);
    x = ptx_sqrt(k, x);
    x = ptxk_rcp_or_zero(k, x);
    return ptx_fma(k, sum, ptx_f32(0), x);
}

typedef struct ptxk__norm {
    ptxk__row row;
    ptx_type x, y, weight;
    uint32_t layer, flags;
    ptx_val args, scratch;
    ptx_val x_at, r_at, y_at, gamma_at, beta_at;
} ptxk__norm;

/* Computes the addresses of a position's accesses. */
static void ptxk__norm_addresses(ptx_kernel *k, ptxk__norm *f, const ptxk__row_position *s) {
    uint32_t bytes = ptx_type_bytes(f->x), weight = ptx_type_bytes(f->weight);
    f->x_at = ptxk__row_address(k, &f->row, s, f->args, offsetof(ptxk_norm_args, x), bytes, 1);
    if (f->flags & PTXK_NORM_RESIDUAL)
        f->r_at = ptxk__row_address(k, &f->row, s, f->args, offsetof(ptxk_norm_args, residual), bytes, 1);
    f->y_at = ptxk__row_address(k, &f->row, s, f->args, offsetof(ptxk_norm_args, y), ptx_type_bytes(f->y), 1);
    if (!(f->flags & PTXK_NORM_PLAIN))
        f->gamma_at = ptxk__row_address(k, &f->row, s, f->args, offsetof(ptxk_norm_args, gamma), weight, 0);
    if (f->flags & PTXK_NORM_BETA)
        f->beta_at = ptxk__row_address(k, &f->row, s, f->args, offsetof(ptxk_norm_args, beta), weight, 0);
}

/* Loads x; with a residual, adds it, rounds the sum and writes it. */
static void ptxk__norm_load(ptx_kernel *k, const ptxk__norm *f, const ptxk__row_position *s, ptx_val *x) {
    uint32_t i, n = f->row.rounds * f->row.vec;
    ptx_val r[PTXK__ROW_LANES];
    ptxk__row_load(k, &f->row, s, f->x, f->x_at, x);
    if (!(f->flags & PTXK_NORM_RESIDUAL)) return;
    ptxk__row_load(k, &f->row, s, f->x, f->r_at, r);
    for (i = 0; i < n; i++) {
        x[i] = ptx_op2(k, PTX_ADD, PTX_RN, x[i], r[i]);
        x[i] = ptxk__round_to_type(k, f->x, x[i]);
    }
    ptxk__row_store(k, &f->row, s, f->x, f->x_at, x);
}

/* Adds this thread's elements to the sum: x, or with mean (of the row) the square of x - mean. mean: or
   NULL. */
static ptx_val ptxk__norm_sum(ptx_kernel *k, const ptxk__norm *f, const ptxk__row_position *s, ptx_val sum,
                              const ptx_val *x, int squares, const ptx_val *mean) {
    uint32_t i, n = f->row.rounds * f->row.vec;
    for (i = 0; i < n; i++) {
        ptx_val v = x[i];
        if (mean) {
            v = ptx_op2(k, PTX_SUB, PTX_RN, v, *mean);
            if (ptxk__row_partial(&f->row, i / f->row.vec))
                v = ptx_selp(k, v, ptx_f32(0), s->inside[i / f->row.vec]);
        }
        sum = squares ? ptx_fma(k, v, v, sum) : ptx_op2(k, PTX_ADD, PTX_RN, sum, v);
    }
    return sum;
}

/* Writes y = (x - mean) factor gamma + beta, or adds that to y. gamma: loaded already, or NULL. */
static void ptxk__norm_finish(ptx_kernel *k, const ptxk__norm *f, const ptxk__row_position *s, ptx_val *x,
                              const ptx_val *mean, ptx_val factor, const ptx_val *gamma) {
    uint32_t i, n = f->row.rounds * f->row.vec;
    ptx_val weight[PTXK__ROW_LANES];
    for (i = 0; i < n; i++) {
        if (mean) x[i] = ptx_op2(k, PTX_SUB, PTX_RN, x[i], *mean);
        x[i] = ptx_op2(k, PTX_MUL, PTX_RN, x[i], factor);
    }
    if (!(f->flags & PTXK_NORM_PLAIN)) {
        if (!gamma) ptxk__row_load(k, &f->row, s, f->weight, f->gamma_at, weight);
        for (i = 0; i < n; i++) x[i] = ptx_op2(k, PTX_MUL, PTX_RN, x[i], gamma ? gamma[i] : weight[i]);
    }
    if (f->flags & PTXK_NORM_BETA) {
        ptxk__row_load(k, &f->row, s, f->weight, f->beta_at, weight);
        for (i = 0; i < n; i++) x[i] = ptx_op2(k, PTX_ADD, PTX_RN, x[i], weight[i]);
    }
    if (f->flags & PTXK_NORM_ADD) {
        ptxk__row_load(k, &f->row, s, f->y, f->y_at, weight);
        for (i = 0; i < n; i++) x[i] = ptx_op2(k, PTX_ADD, PTX_RN, weight[i], x[i]);
    }
    ptxk__row_store(k, &f->row, s, f->y, f->y_at, x);
}

/* Sums over the whole row; in a long row by a pass of its own. first: adds the residual. */
static ptx_val ptxk__norm_total(ptx_kernel *k, ptxk__norm *f, const ptxk__row_position *s, ptx_val *x,
                                int squares, const ptx_val *mean, int first, uint32_t scratch) {
    ptx_val sum = ptx_f32(0), i, at;
    if (f->row.passes == 1) {
        sum = ptxk__norm_sum(k, f, s, sum, x, squares, mean);
    } else {
        ptx_var total = ptx_var_new(k, sum);
        ptxk__row_position here = ptxk__row_pass(k, &f->row, s, &i);
        ptxk__norm_addresses(k, f, &here);
        if (first)
            ptxk__norm_load(k, f, &here, x);
        else
            ptxk__row_load(k, &f->row, &here, f->x, f->x_at, x);
        sum = ptx_get(k, total);
        sum = ptxk__norm_sum(k, f, &here, sum, x, squares, mean);
        ptx_set(k, total, sum);
        ptx_end(k);
        sum = ptx_get(k, total);
    }
    at = f->row.threads > 32 ? ptx_ptr_add(k, f->scratch, ptx_u32(scratch), 1) : f->scratch;
    return ptxk__row_reduce(k, &f->row, PTX_ADD, sum, at);
}

PTXGEN_API ptx_code ptxk_norm_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__norm f;
    ptxk__row_position s;
    ptxk_message why;
    char name[96];
    const ptxk_norm_desc *d = (const ptxk_norm_desc *)desc;
    ptx_kernel *k;
    ptx_val x[PTXK__ROW_LANES], gamma[PTXK__ROW_LANES], rows, eps, mean, factor, i;
    ptx_code code = ptxk__norm_form(d, &f.row, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    f.x = (ptx_type)d->x_type;
    f.y = (ptx_type)d->y_type;
    f.weight = (ptx_type)d->weight_type;
    f.layer = d->kind == PTXK_NORM_LAYER;
    f.flags = d->flags;
    (void)snprintf(name, sizeof name, "norm_%s_n%u_%s_%s_%s_f%u", f.layer ? "layer" : "rms", d->n,
                   ptx_type_name(f.x), ptx_type_name(f.y), ptx_type_name(f.weight), f.flags);
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, f.row.block, 1);
    f.args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_norm_args), 8);
    f.scratch = ptx_u32(0);
    if (f.row.threads > 32) f.scratch = ptx_shared(k, "scratch", PTX_F32, f.row.threads / 16, 16);
    rows = ptxk__arg_u32(k, f.args, offsetof(ptxk_norm_args, rows));
    eps = ptx_ld(k, PTX_F32, ptx_at(f.args, (int64_t)offsetof(ptxk_norm_args, eps)));
    ptxk__row_start(k, &f.row, rows, &s);
    if (f.row.passes == 1) {
        ptxk__row_inside(k, &f.row, &s);
        ptxk__norm_addresses(k, &f, &s);
        ptxk__norm_load(k, &f, &s, x);
        if (!(f.flags & PTXK_NORM_PLAIN)) /* in flight while the row is summed */
            ptxk__row_load(k, &f.row, &s, f.weight, f.gamma_at, gamma);
    }
    if (f.layer) {
        mean = ptxk__norm_total(k, &f, &s, x, 0, NULL, 1, 0);
        mean = ptx_op2(k, PTX_DIV, PTX_RN, mean, ptx_f32(d->n));
    }
    factor = ptxk__norm_total(k, &f, &s, x, 1, f.layer ? &mean : NULL, !f.layer, f.row.threads / 8);
    factor = ptxk__norm_factor(k, factor, ptx_f32(d->n), eps);
    if (f.row.passes == 1) {
        ptxk__norm_finish(k, &f, &s, x, f.layer ? &mean : NULL, factor, gamma);
    } else {
        ptxk__row_position here = ptxk__row_pass(k, &f.row, &s, &i);
        ptxk__norm_addresses(k, &f, &here);
        ptxk__row_load(k, &f.row, &here, f.x, f.x_at, x);
        ptxk__norm_finish(k, &f, &here, x, f.layer ? &mean : NULL, factor, NULL);
        ptx_end(k);
    }
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== softmax ======================================================================================= */

static ptx_code ptxk__softmax_form(const ptxk_softmax_desc *d, ptxk__row *f, ptxk_message *why) {
    ptx_code code;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "softmax: the description is NULL");
    if ((code = ptxk__check_n("softmax", "n", d->n, PTXK__N_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_type("softmax", "x_type", d->x_type, why)) != PTX_E_NONE
        || (code = ptxk__check_type("softmax", "y_type", d->y_type, why)) != PTX_E_NONE
        || (code = ptxk__check_scale("softmax", d->scale, why)) != PTX_E_NONE)
        return code;
    *f = ptxk__row_form(d->n, ptxk__widest(d->x_type, d->y_type));
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_softmax_plan(const ptxk_softmax_desc *desc, const ptxk_softmax_shape *shape,
                                      ptx_plan *plan, ptxk_message *why) {
    ptxk__row f;
    ptx_code code = ptxk__plan_start("softmax", ptxk__softmax_form(desc, &f, why), shape, plan,
                                     sizeof(ptxk_softmax_args), why);
    if (!code) code = ptxk__check_most("softmax", "rows", shape->rows, PTXK__LEN_MAX, why);
    if (code || !shape->rows) return code;
    ptxk__plan_one(plan, ptxk__row_grid(&f, shape->rows), 1, f.block,
                   (uint64_t)shape->rows * desc->n
                       * (ptxk__kv_bytes(desc->x_type) + ptxk__kv_bytes(desc->y_type)));
    return code;
}

PTXGEN_API ptx_code ptxk_softmax_check(const ptxk_softmax_desc *desc, const ptxk_softmax_args *args,
                                       ptxk_message *why) {
    ptxk__row f;
    ptxk__span span[2];
    ptx_code code = ptxk__check_start("softmax", ptxk__softmax_form(desc, &f, why), args, why);
    if (!code) code = ptxk__check_count("softmax", "rows", args->rows, 0, PTXK__LEN_MAX, why);
    if (!code) code = ptxk__check_zero("softmax", "reserved", args->reserved, why);
    if (code) return code;
    span[0] =
        ptxk__span_of("x", args->x, (uint64_t)args->rows * desc->n * ptxk__kv_bytes(desc->x_type), 16, 1);
    span[1] =
        ptxk__span_of("y", args->y, (uint64_t)args->rows * desc->n * ptxk__kv_bytes(desc->y_type), 16, 1);
    span[0].same = 1;
    span[1] = ptxk__span_written(span[1], desc->x_type == desc->y_type);
    return ptxk__check_spans("softmax", span, 2, why);
}

/* Loads the scores of a position; -inf past the end. A scale of at most 1 is applied before the maximum is
   subtracted, so that no difference overflows f32. A scale above 1 is applied after, so that no product of a
   finite score overflows: `late` is its absolute value, else 0. */
static void ptxk__softmax_load(ptx_kernel *k, const ptxk__row *f, const ptxk__row_position *s, ptx_type type,
                               ptx_val at, double scale, double late, ptx_val *x) {
    uint32_t i;
    ptxk__row_load(k, f, s, type, at, x);
    for (i = 0; i < f->rounds * f->vec; i++) {
        if (!(late > 0))
            x[i] = ptx_op2(k, PTX_MUL, PTX_RN, x[i], ptx_f32(scale));
        else if (scale < 0)
            x[i] = ptx_neg(k, x[i]);
        x[i] = ptxk__clamp_infinity(k, x[i]);
        if (ptxk__row_partial(f, i / f->vec))
            x[i] = ptx_selp(k, x[i], ptx_f32(-INFINITY), s->inside[i / f->vec]);
    }
}

/* The weight of a score relative to the maximum `most`. */
static ptx_val ptxk__softmax_weight(ptx_kernel *k, ptx_val x, ptx_val most, double late) {
    if (!(late > 0)) return ptxk__score_weight(k, x, most);
    x = ptx_sub(k, x, most);
    x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(late));
    return ptx_ex2(k, x);
}

PTXGEN_API ptx_code ptxk_softmax_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__row f;
    ptxk__row_position s, here;
    ptxk_message why;
    char name[96], factor[16] = "";
    const ptxk_softmax_desc *d = (const ptxk_softmax_desc *)desc;
    ptx_kernel *k;
    ptx_type xt, yt;
    ptx_val x[PTXK__ROW_LANES], args, scratch, x_at, y_at, most, sum, i, old, rows, second;
    double scale, late;
    uint32_t e, n;
    ptx_code code = ptxk__softmax_form(d, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    scale = 1.44269504088896340736 * (d->scale < 0 || d->scale > 0 ? (double)d->scale : 1.0);
    late = scale < -1 || scale > 1 ? (scale < 0 ? -scale : scale) : 0;
    if (d->scale < 0 || d->scale > 0) {
        uint32_t bits;
        memcpy(&bits, &d->scale, sizeof bits);
        (void)snprintf(factor, sizeof factor, "_s%08x", bits);
    }
    xt = (ptx_type)d->x_type;
    yt = (ptx_type)d->y_type;
    n = f.rounds * f.vec;
    (void)snprintf(name, sizeof name, "softmax_n%u_%s_%s%s", d->n, ptx_type_name(xt), ptx_type_name(yt),
                   factor);
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, f.block, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_softmax_args), 8);
    scratch = ptx_u32(0);
    if (f.threads > 32) scratch = ptx_shared(k, "scratch", PTX_F32, f.threads / 16, 16);
    rows = ptxk__arg_u32(k, args, offsetof(ptxk_softmax_args, rows));
    ptxk__row_start(k, &f, rows, &s);
    second = f.threads > 32 ? ptx_ptr_add(k, scratch, ptx_u32(f.threads / 8), 1) : scratch;
    if (f.passes == 1) {
        ptxk__row_inside(k, &f, &s);
        x_at = ptxk__row_address(k, &f, &s, args, offsetof(ptxk_softmax_args, x), ptx_type_bytes(xt), 1);
        ptxk__softmax_load(k, &f, &s, xt, x_at, scale, late, x);
        most = ptx_f32(-FLT_MAX); /* not -inf: a score of -inf then has the weight 2^-inf = 0 */
        for (e = 0; e < n; e++) most = ptx_max(k, most, x[e]);
        most = ptxk__row_reduce(k, &f, PTX_MAX, most, scratch);
        sum = ptx_f32(0);
        for (e = 0; e < n; e++) {
            x[e] = ptxk__softmax_weight(k, x[e], most, late);
            sum = ptx_add(k, sum, x[e]);
        }
        sum = ptxk__row_reduce(k, &f, PTX_ADD, sum, second);
    } else {
        ptx_var top = ptx_var_new(k, ptx_f32(-FLT_MAX)), total = ptx_var_new(k, ptx_f32(0));
        here = ptxk__row_pass(k, &f, &s, &i);
        x_at = ptxk__row_address(k, &f, &here, args, offsetof(ptxk_softmax_args, x), ptx_type_bytes(xt), 1);
        ptxk__softmax_load(k, &f, &here, xt, x_at, scale, late, x);
        old = ptx_get(k, top);
        most = old;
        for (e = 0; e < n; e++) most = ptx_max(k, most, x[e]);
        ptx_set(k, top, most);
        old = ptxk__softmax_weight(k, old, most, late);
        sum = ptx_get(k, total);
        sum = ptx_op2(k, PTX_MUL, PTX_RN, sum, old);
        for (e = 0; e < n; e++) {
            x[e] = ptxk__softmax_weight(k, x[e], most, late);
            sum = ptx_add(k, sum, x[e]);
        }
        ptx_set(k, total, sum);
        ptx_end(k);
        old = ptx_get(k, top);
        most = ptxk__row_reduce(k, &f, PTX_MAX, old, scratch);
        old = ptxk__softmax_weight(k, old, most, late);
        sum = ptx_get(k, total);
        sum = ptx_op2(k, PTX_MUL, PTX_RN, sum, old);
        sum = ptxk__row_reduce(k, &f, PTX_ADD, sum, second);
    }
    sum = ptxk_rcp_or_zero(k, sum);
    if (f.passes > 1) {
        s = ptxk__row_pass(k, &f, &s, &i);
        x_at = ptxk__row_address(k, &f, &s, args, offsetof(ptxk_softmax_args, x), ptx_type_bytes(xt), 1);
        ptxk__softmax_load(k, &f, &s, xt, x_at, scale, late, x);
        for (e = 0; e < n; e++) x[e] = ptxk__softmax_weight(k, x[e], most, late);
    }
    for (e = 0; e < n; e++) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], sum);
    y_at = ptxk__row_address(k, &f, &s, args, offsetof(ptxk_softmax_args, y), ptx_type_bytes(yt), 1);
    ptxk__row_store(k, &f, &s, yt, y_at, x);
    if (f.passes > 1) ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== activation ==================================================================================== */

static ptx_code ptxk__activation_form(const ptxk_activation_desc *d, uint32_t *vec, ptxk_message *why) {
    ptx_code code;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "activation: the description is NULL");
    if (d->kind > PTXK_GELU_ERF)
        return ptxk__refuse(why, PTX_E_DESC,
                            "activation: kind is %u, must be PTXK_SILU, PTXK_GELU or PTXK_GELU_ERF", d->kind);
    if (d->gated > 1)
        return ptxk__refuse(why, PTX_E_DESC, "activation: gated is %u, must be 0 or 1", d->gated);
    if ((code = ptxk__check_type("activation", "x_type", d->x_type, why)) != PTX_E_NONE
        || (code = ptxk__check_type("activation", "y_type", d->y_type, why)) != PTX_E_NONE)
        return code;
    *vec = 16 / ptxk__widest(d->x_type, d->y_type);
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_activation_plan(const ptxk_activation_desc *desc, const ptxk_activation_shape *shape,
                                         ptx_plan *plan, ptxk_message *why) {
    uint32_t vec = 1;
    ptx_code code = ptxk__plan_start("activation", ptxk__activation_form(desc, &vec, why), shape, plan,
                                     sizeof(ptxk_activation_args), why);
    if (!code) code = ptxk__check_most("activation", "rows", shape->rows, 65535, why);
    if (!code) code = ptxk__check_most("activation", "n", shape->n, PTXK__LEN_MAX, why);
    if (code || !shape->rows || !shape->n) return code;
    ptxk__plan_one(plan, ptxk__ceil_div(shape->n, PTXK__FLAT_THREADS * vec), shape->rows, PTXK__FLAT_THREADS,
                   (uint64_t)shape->rows * shape->n
                       * (ptxk__kv_bytes(desc->x_type) * (1 + desc->gated) + ptxk__kv_bytes(desc->y_type)));
    return code;
}

PTXGEN_API ptx_code ptxk_activation_check(const ptxk_activation_desc *desc, const ptxk_activation_args *args,
                                          ptxk_message *why) {
    static const char *const names[] = {"x", "up", "y"};
    uint32_t vec = 1, i;
    uint64_t stride[3], at[3];
    ptxk__span span[3];
    ptx_code code = ptxk__check_start("activation", ptxk__activation_form(desc, &vec, why), args, why);
    if (!code) code = ptxk__check_count("activation", "rows", args->rows, 0, 65535, why);
    if (!code) code = ptxk__check_count("activation", "n", args->n, 0, PTXK__LEN_MAX, why);
    if (code) return code;
    at[0] = args->x, at[1] = args->up, at[2] = args->y;
    stride[0] = args->x_stride, stride[1] = args->up_stride, stride[2] = args->y_stride;
    for (i = 0; i < 3; i++) {
        uint32_t bytes = ptxk__kv_bytes(i < 2 ? desc->x_type : desc->y_type);
        if (!stride[i]) stride[i] = args->n;
        if (stride[i] < args->n || stride[i] > (uint64_t)1 << 40)
            return ptxk__refuse(why, PTX_E_ARGUMENT, "activation: %s_stride is %llu, must be n (%u) to 2^40",
                                names[i], (unsigned long long)stride[i], args->n);
        span[i] = ptxk__span_of(names[i], at[i], (uint64_t)args->n * bytes, bytes, i != 1 || desc->gated);
        ptxk__span_repeat(&span[i], 0, args->rows, stride[i] * bytes);
        span[i].same = desc->x_type == desc->y_type;
    }
    span[2].written = 1;
    return ptxk__check_spans("activation", span, 3, why);
}

/* gelu(x) = max(x, 0) - |x| h with h = erfc(|x| / sqrt 2) / 2, which keeps the precision of small results. */
static ptx_val ptxk__gelu_erf(ptx_kernel *k, ptx_val x) {
    static const double a[5] = {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
    ptx_val size = ptx_abs(k, x), t, h, top;
    int i;
    t = ptx_fma(k, size, ptx_f32(0.3275911 * 0.70710678118654752440), ptx_f32(1));
    t = ptx_rcp(k, t);
    h = ptx_f32(a[0] / 2);
    for (i = 1; i < 5; i++) h = ptx_fma(k, h, t, ptx_f32(a[i] / 2));
    h = ptx_op2(k, PTX_MUL, PTX_RN, h, t);
    t = ptx_op2(k, PTX_MUL, PTX_RN, x, x);
    t = ptx_op2(k, PTX_MUL, PTX_RN, t, ptx_f32(-0.5 * 1.44269504088896340736));
    t = ptx_ex2(k, t);
    h = ptx_op2(k, PTX_MUL, PTX_RN, h, t);
    size = ptx_min(k, size, ptx_f32(64)); /* h is 0 there; avoids inf * 0 */
    size = ptx_neg(k, size);
    top = ptx_max(k, x, ptx_f32(0));
    return ptx_fma(k, size, h, top);
}

static ptx_val ptxk__activate(ptx_kernel *k, uint32_t kind, ptx_val x) {
    if (kind == PTXK_SILU) return ptxk__silu(k, x);
    return kind == PTXK_GELU ? ptxk__gelu(k, x) : ptxk__gelu_erf(k, x);
}

/* Computes n elements, one access, of a row. */
static void ptxk__activation_access(ptx_kernel *k, const ptxk_activation_desc *d, const ptx_val at[3],
                                    ptx_val i, uint32_t n) {
    ptx_type xt = (ptx_type)d->x_type, yt = (ptx_type)d->y_type;
    ptx_val x[8], up[8], here;
    uint32_t e;
    here = ptx_ptr_add(k, at[0], i, ptx_type_bytes(xt));
    ptxk_load_f32(k, xt, n, ptx_at(here, 0), x);
    if (d->gated) {
        here = ptx_ptr_add(k, at[1], i, ptx_type_bytes(xt));
        ptxk_load_f32(k, xt, n, ptx_at(here, 0), up);
    }
    for (e = 0; e < n; e++) {
        x[e] = ptxk__activate(k, d->kind, x[e]);
        if (d->gated) x[e] = ptx_op2(k, PTX_MUL, PTX_RN, x[e], up[e]);
    }
    here = ptx_ptr_add(k, at[2], i, ptx_type_bytes(yt));
    ptxk_store_f32(k, yt, n, ptx_at(here, 0), x);
}

PTXGEN_API ptx_code ptxk_activation_emit_(ptx_module *m, const char *site, const void *desc) {
    static const char *const names[3] = {"silu", "gelu", "gelu_erf"};
    static const size_t field[3] = {offsetof(ptxk_activation_args, x), offsetof(ptxk_activation_args, up),
                                    offsetof(ptxk_activation_args, y)};
    const ptxk_activation_desc *d = (const ptxk_activation_desc *)desc;
    ptxk_message why;
    char name[96];
    ptx_kernel *k;
    uint32_t vec = 1, w;
    ptx_val args, at[3], n, row, i, p, stride, odd, wide, last;
    ptx_code code = ptxk__activation_form(d, &vec, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    (void)snprintf(name, sizeof name, "%s%s_%s_%s", names[d->kind], d->gated ? "_gated" : "",
                   ptx_type_name((ptx_type)d->x_type), ptx_type_name((ptx_type)d->y_type));
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, PTXK__FLAT_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_activation_args), 8);
    n = ptxk__arg_u32(k, args, offsetof(ptxk_activation_args, n));
    row = ptx_ctaid_y(k);
    wide = ptx_cvt(k, PTX_U64, n);
    row = ptx_cvt(k, PTX_U64, row);
    odd = wide;
    for (w = 0; w < 3; w++) {
        uint32_t bytes = ptxk__kv_bytes(w == 2 ? d->y_type : d->x_type);
        if (w == 1 && !d->gated) continue;
        at[w] = ptxk__arg_ptr(k, args, field[w]);
        i = ptx_and(k, at[w], ptx_u64(vec * bytes - 1)); /* vectors only where all is aligned */
        i = ptx_shr(k, i, ptx_u32(bytes == 4 ? 2 : 1));  /* in elements, like n and the strides */
        odd = ptx_or(k, odd, i);
        stride =
            ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)(field[w] + offsetof(ptxk_activation_args, x_stride))));
        p = ptx_setp(k, PTX_EQ, stride, ptx_u64(0));
        stride = ptx_selp(k, wide, stride, p);
        odd = ptx_or(k, odd, stride);
        i = ptx_mul(k, row, stride);
        at[w] = ptx_ptr_add(k, at[w], i, bytes);
    }
    odd = ptx_and(k, odd, ptx_u64(vec - 1));
    i = ptx_ctaid_x(k);
    p = ptx_tid_x(k);
    i = ptx_mad(k, i, ptx_u32(PTXK__FLAT_THREADS), p);
    i = ptx_mul(k, i, ptx_u32(vec));
    p = ptx_setp(k, PTX_GE, i, n);
    ptx_guard(k, p);
    ptx_ret(k);
    p = ptx_setp(k, PTX_EQ, odd, ptx_u64(0));
    ptx_if(k, p);
    ptxk__activation_access(k, d, at, i, vec);
    ptx_else(k);
    last = ptx_add(k, i, ptx_u32(vec));
    last = ptx_min(k, last, n);
    i = ptx_for(k, i, last, ptx_u32(1));
    ptxk__activation_access(k, d, at, i, 1);
    ptx_end(k);
    ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== rope ========================================================================================== */

#define PTXK__ROPE_HEADS 4u /* heads that a thread rotates with one sine and cosine */

typedef struct ptxk__rope {
    ptx_type type;
    uint32_t heads, d, half, interleaved, bytes;
    uint32_t groups; /* groups of PTXK__ROPE_HEADS heads */
} ptxk__rope;

static ptx_code ptxk__rope_form(const ptxk_rope_desc *d, ptxk__rope *f, ptxk_message *why) {
    ptx_code code;
    memset(f, 0, sizeof *f);
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "rope: the description is NULL");
    if ((code = ptxk__check_n("rope", "heads", d->heads, 65536, why)) != PTX_E_NONE
        || (code = ptxk__check_n("rope", "head_dim", d->head_dim, 65536, why)) != PTX_E_NONE
        || (code = ptxk__check_type("rope", "type", d->type, why)) != PTX_E_NONE)
        return code;
    if (d->head_dim % 2)
        return ptxk__refuse(why, PTX_E_DESC, "rope: head_dim is %u, must be even", d->head_dim);
    if (!d->dims || d->dims % 2 || d->dims > d->head_dim)
        return ptxk__refuse(why, PTX_E_DESC, "rope: dims is %u, must be even, from 2 to head_dim, %u",
                            d->dims, d->head_dim);
    if (d->pairs > PTXK_ROPE_NEOX)
        return ptxk__refuse(why, PTX_E_DESC,
                            "rope: pairs is %u, must be PTXK_ROPE_INTERLEAVED or PTXK_ROPE_NEOX", d->pairs);
    f->type = (ptx_type)d->type;
    f->heads = d->heads;
    f->d = d->head_dim;
    f->half = d->dims / 2;
    f->interleaved = d->pairs == PTXK_ROPE_INTERLEAVED;
    f->bytes = ptxk__kv_bytes(d->type);
    f->groups = ptxk__ceil_div(d->heads, PTXK__ROPE_HEADS);
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_rope_plan(const ptxk_rope_desc *desc, const ptxk_rope_shape *shape, ptx_plan *plan,
                                   ptxk_message *why) {
    ptxk__rope f;
    ptx_code code =
        ptxk__plan_start("rope", ptxk__rope_form(desc, &f, why), shape, plan, sizeof(ptxk_rope_args), why);
    if (!code) code = ptxk__check_most("rope", "tokens", shape->tokens, 65535, why);
    if (code || !shape->tokens) return code;
    ptxk__plan_one(plan, ptxk__ceil_div(f.groups * f.half, PTXK__FLAT_THREADS), shape->tokens,
                   PTXK__FLAT_THREADS,
                   (uint64_t)shape->tokens * (4 * (uint64_t)f.heads * f.half * f.bytes + 4) + 8 * f.half);
    return code;
}

PTXGEN_API ptx_code ptxk_rope_check(const ptxk_rope_desc *desc, const ptxk_rope_args *args,
                                    ptxk_message *why) {
    ptxk__rope f;
    ptxk__span span[3];
    uint64_t row, stride;
    ptx_code code = ptxk__check_start("rope", ptxk__rope_form(desc, &f, why), args, why);
    if (code) return code;
    row = (uint64_t)f.heads * f.d;
    stride = args->stride ? args->stride : row;
    if (stride < row || stride % 2 || stride > (uint64_t)1 << 40)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "rope: stride is %llu, must be even, %llu to 2^40",
                            (unsigned long long)stride, (unsigned long long)row);
    if ((code = ptxk__check_count("rope", "tokens", args->tokens, 0, 65535, why)) != PTX_E_NONE
        || (code = ptxk__check_zero("rope", "reserved", args->reserved, why)) != PTX_E_NONE)
        return code;
    span[0] = ptxk__span_of("x", args->x, row * f.bytes, 16, 1);
    ptxk__span_repeat(&span[0], 0, args->tokens, stride * f.bytes);
    span[0] = ptxk__span_written(span[0], 0);
    span[1] = ptxk__span_of("positions", args->positions, (uint64_t)args->tokens * 4, 4, 1);
    span[2] = ptxk__span_of("frequencies", args->frequencies, (uint64_t)f.half * 8, 8, 1);
    return ptxk__check_spans("rope", span, 3, why);
}

/* Logarithm and exponential without libm: the same bits everywhere, to about 1e-15. */
static double ptxk__log(double x) {
    double t, t2, term, sum = 0;
    int e = 0, i;
    while (x >= 1.5) x *= 0.5, e++;
    while (x < 0.75) x *= 2, e--;
    t = (x - 1) / (x + 1);
    t2 = t * t;
    term = t;
    for (i = 1; i < 60; i += 2, term *= t2) sum += term / i;
    return 2 * sum + e * 0.69314718055994530942;
}

static double ptxk__exp(double x) {
    double term = 1, sum = 1;
    int i, halvings = 0;
    while (x > 0.5 || x < -0.5) x *= 0.5, halvings++;
    for (i = 1; i < 25; i++) {
        term *= x / i;
        sum += term;
    }
    while (halvings--) sum *= sum;
    return sum;
}

static int ptxk__is_valid_factor(double x) { return x >= 0 && x <= 1e30; }

PTXGEN_API ptx_code ptxk_rope_frequencies(uint32_t dims, const ptxk_rope_scaling *scaling, double *out,
                                          ptxk_message *why) {
    const double two_pi = 6.28318530717958647693;
    ptxk_rope_scaling s;
    double log_theta, factor;
    uint32_t i;
    if (why) why->text[0] = 0;
    memset(&s, 0, sizeof s);
    if (scaling) s = *scaling;
    if (!out || dims % 2)
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            out ? "rope_frequencies: dims is %u, must be even"
                                : "rope_frequencies: out is NULL (dims %u)",
                            dims);
    if (!ptxk__is_valid_factor(s.theta) || !ptxk__is_valid_factor(s.factor) || !ptxk__is_valid_factor(s.low)
        || !ptxk__is_valid_factor(s.high) || !ptxk__is_valid_factor(s.original)
        || ((s.low > 0 || s.high > 0) && !(s.high > s.low && s.original > 0)))
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "rope_frequencies: numbers must be finite, at least 0, low below high");
    log_theta = ptxk__log(s.theta > 0 ? s.theta : 10000.0);
    factor = s.factor > 0 ? s.factor : 1;
    for (i = 0; i < dims / 2; i++) {
        double f = ptxk__exp(-2.0 * i / dims * log_theta);
        if (s.factors) {
            if (!(s.factors[i] > 0 && s.factors[i] <= FLT_MAX))
                return ptxk__refuse(why, PTX_E_ARGUMENT, "rope_frequencies: factor %u is %g, must be above 0",
                                    i, (double)s.factors[i]);
            f /= (double)s.factors[i];
        }
        if (s.high > 0) { /* divides long waves by the factor, keeps short ones, interpolates between */
            double turns = s.original * f / two_pi, mix = (turns - s.low) / (s.high - s.low);
            if (turns < s.low) mix = 0;
            if (turns > s.high) mix = 1;
            f = (1 - mix) * f / factor + mix * f;
        } else {
            f /= factor;
        }
        out[i] = f;
    }
    return PTX_E_NONE;
}

/* Computes cosine and sine of position * frequency, f64 in radians. Whole turns are subtracted in f64. */
static void ptxk__rope_turn(ptx_kernel *k, ptx_val position, ptx_val frequency, ptx_val *c, ptx_val *s) {
    ptx_val turns, whole;
    turns = ptx_cvt(k, PTX_F64, position);
    turns = ptx_op2(k, PTX_MUL, PTX_RN, turns, frequency);
    turns = ptx_op2(k, PTX_MUL, PTX_RN, turns, ptx_f64(0.15915494309189533577));
    whole = ptx_cvt_with(k, PTX_RNI, PTX_F64, turns);
    turns = ptx_op2(k, PTX_SUB, PTX_RN, turns, whole);
    turns = ptx_cvt(k, PTX_F32, turns);
    turns = ptx_op2(k, PTX_MUL, PTX_RN, turns, ptx_f32(6.28318530717958647693));
    *c = ptx_cos_approx(k, turns);
    *s = ptx_sin_approx(k, turns);
}

/* Rotates a pair: a, b become a c - b s, a s + b c. */
static void ptxk__rope_pair(ptx_kernel *k, ptx_val c, ptx_val s, ptx_val *a, ptx_val *b) {
    ptx_val x, y, minus;
    x = ptx_op2(k, PTX_MUL, PTX_RN, *a, c);
    minus = ptx_neg(k, s);
    x = ptx_fma(k, *b, minus, x);
    y = ptx_op2(k, PTX_MUL, PTX_RN, *b, c);
    *b = ptx_fma(k, *a, s, y);
    *a = x;
}

PTXGEN_API ptx_code ptxk_rope_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__rope f;
    ptxk_message why;
    char name[96];
    ptx_kernel *k;
    uint32_t h;
    ptx_val args, i, pair, group, token, p, at, stride, position, c, s, x[2], inside, head;
    ptx_code code = ptxk__rope_form((const ptxk_rope_desc *)desc, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    (void)snprintf(name, sizeof name, "rope_h%u_d%u_%u_%s_%s", f.heads, f.d, 2 * f.half,
                   f.interleaved ? "pairs" : "halves", ptx_type_name(f.type));
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, PTXK__FLAT_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_rope_args), 8);
    i = ptx_ctaid_x(k);
    p = ptx_tid_x(k);
    i = ptx_mad(k, i, ptx_u32(PTXK__FLAT_THREADS), p);
    pair = ptx_rem(k, i, ptx_u32(f.half));
    group = ptx_div(k, i, ptx_u32(f.half));
    p = ptx_setp(k, PTX_GE, group, ptx_u32(f.groups));
    ptx_guard(k, p);
    ptx_ret(k);
    token = ptx_ctaid_y(k);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_rope_args, positions));
    at = ptx_ptr_add(k, at, token, 4);
    position = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_rope_args, frequencies));
    at = ptx_ptr_add(k, at, pair, 8);
    c = ptx_ld(k, PTX_F64, ptx_at(at, 0));
    ptxk__rope_turn(k, position, c, &c, &s);
    stride = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offsetof(ptxk_rope_args, stride)));
    p = ptx_setp(k, PTX_EQ, stride, ptx_u64(0));
    stride = ptx_selp(k, ptx_u64((uint64_t)f.heads * f.d), stride, p);
    token = ptx_cvt(k, PTX_U64, token);
    stride = ptx_mul(k, stride, token);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_rope_args, x));
    at = ptx_ptr_add(k, at, stride, f.bytes);
    head = ptx_mul(k, group, ptx_u32(PTXK__ROPE_HEADS));
    at = ptx_ptr_add(k, at, head, f.d * f.bytes);
    at = ptx_ptr_add(k, at, pair, f.interleaved ? 2 * f.bytes : f.bytes);
    for (h = 0; h < PTXK__ROPE_HEADS; h++) {
        int64_t here = (int64_t)h * f.d * f.bytes, other = here + (int64_t)f.half * f.bytes;
        int partial = f.heads % PTXK__ROPE_HEADS && h >= f.heads % PTXK__ROPE_HEADS;
        if (partial) {
            inside = ptx_add(k, head, ptx_u32(h));
            inside = ptx_setp(k, PTX_LT, inside, ptx_u32(f.heads));
            ptx_if(k, inside);
        }
        if (f.interleaved) {
            ptxk_load_f32(k, f.type, 2, ptx_at(at, here), x);
        } else {
            ptxk_load_f32(k, f.type, 1, ptx_at(at, here), &x[0]);
            ptxk_load_f32(k, f.type, 1, ptx_at(at, other), &x[1]);
        }
        ptxk__rope_pair(k, c, s, &x[0], &x[1]);
        if (f.interleaved) {
            ptxk_store_f32(k, f.type, 2, ptx_at(at, here), x);
        } else {
            ptxk_store_f32(k, f.type, 1, ptx_at(at, here), &x[0]);
            ptxk_store_f32(k, f.type, 1, ptx_at(at, other), &x[1]);
        }
        if (partial) ptx_end(k);
    }
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== embed ========================================================================================= */

typedef struct ptxk__embed {
    const ptxk__block *format;
    uint32_t n, each, threads; /* elements of a thread; threads for a row */
    uint64_t row_bytes;
    float scale;
} ptxk__embed;

static ptx_code ptxk__embed_form(const ptxk_embed_desc *d, ptxk__embed *f, ptxk_message *why) {
    ptx_code code;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "embed: the description is NULL");
    f->format = ptxk__block_of(d->format);
    if (!f->format) return ptxk__refuse_format("embed", "format", d->format, why);
    if ((code = ptxk__check_n("embed", "n", d->n, PTXK__N_MAX, why)) != PTX_E_NONE
        || (code = ptxk__check_type("embed", "y_type", d->y_type, why)) != PTX_E_NONE
        || (code = ptxk__check_scale("embed", d->scale, why)) != PTX_E_NONE)
        return code;
    if (d->n % f->format->values)
        return ptxk__refuse(why, PTX_E_DESC, "embed: n is %u, must be a multiple of %u, the block of %s",
                            d->n, f->format->values, ptxk_format_name(d->format));
    f->n = d->n;
    for (f->each = f->format->values > 1
                       ? 8
                       : 16 / ptxk__widest(d->y_type, f->format->bytes == 4 ? PTX_F32 : PTX_F16);
         d->n % f->each;)
        f->each /= 2;
    f->threads = d->n / f->each;
    f->row_bytes = (uint64_t)(d->n / f->format->values) * f->format->bytes;
    f->scale = d->scale < 0 || d->scale > 0 ? d->scale : 1.0f;
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_embed_plan(const ptxk_embed_desc *desc, const ptxk_embed_shape *shape,
                                    ptx_plan *plan, ptxk_message *why) {
    ptxk__embed f;
    ptx_code code =
        ptxk__plan_start("embed", ptxk__embed_form(desc, &f, why), shape, plan, sizeof(ptxk_embed_args), why);
    if (!code) code = ptxk__check_most("embed", "tokens", shape->tokens, 65535, why);
    if (code || !shape->tokens) return code;
    ptxk__plan_one(plan, ptxk__ceil_div(f.threads, PTXK__FLAT_THREADS), shape->tokens, PTXK__FLAT_THREADS,
                   shape->tokens * (f.row_bytes + (uint64_t)f.n * ptxk__kv_bytes(desc->y_type) + 4));
    return code;
}

PTXGEN_API ptx_code ptxk_embed_check(const ptxk_embed_desc *desc, const ptxk_embed_args *args,
                                     ptxk_message *why) {
    ptxk__embed f;
    ptxk__span span[3];
    ptx_code code = ptxk__check_start("embed", ptxk__embed_form(desc, &f, why), args, why);
    if (!code) code = ptxk__check_count("embed", "tokens", args->tokens, 0, 65535, why);
    if (code) return code;
    span[0] = ptxk__span_of("table", args->table, args->rows * f.row_bytes, 16, 1);
    span[1] = ptxk__span_of("ids", args->ids, (uint64_t)args->tokens * 4, 4, 1);
    span[2] = ptxk__span_of("y", args->y, (uint64_t)args->tokens * f.n * ptxk__kv_bytes(desc->y_type), 16, 1);
    span[2] = ptxk__span_written(span[2], 0);
    return ptxk__check_spans("embed", span, 3, why);
}

PTXGEN_API ptx_code ptxk_embed_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__embed f;
    ptxk_message why;
    char name[96], factor[16] = "";
    const ptxk_embed_desc *d = (const ptxk_embed_desc *)desc;
    ptx_kernel *k;
    ptx_type y;
    uint32_t i, bytes;
    ptx_val args, part, p, token, id, rows, at, y_at, x[8], block, none;
    ptxk__octet o;
    ptx_code code = ptxk__embed_form(d, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    if (d->scale < 0 || d->scale > 0) {
        uint32_t bits;
        memcpy(&bits, &d->scale, sizeof bits);
        (void)snprintf(factor, sizeof factor, "_s%08x", bits);
    }
    y = (ptx_type)d->y_type;
    bytes = ptx_type_bytes(y);
    (void)snprintf(name, sizeof name, "embed_n%u_%s_%s%s", f.n, f.format->name, ptx_type_name(y), factor);
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, PTXK__FLAT_THREADS, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_embed_args), 8);
    part = ptx_ctaid_x(k);
    p = ptx_tid_x(k);
    part = ptx_mad(k, part, ptx_u32(PTXK__FLAT_THREADS), p);
    p = ptx_setp(k, PTX_GE, part, ptx_u32(f.threads));
    ptx_guard(k, p);
    ptx_ret(k);
    token = ptx_ctaid_y(k);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_embed_args, ids));
    at = ptx_ptr_add(k, at, token, 4);
    id = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    y_at = ptxk__arg_ptr(k, args, offsetof(ptxk_embed_args, y));
    y_at = ptx_ptr_add(k, y_at, token, f.n * bytes);
    y_at = ptx_ptr_add(k, y_at, part, f.each * bytes);
    rows = ptxk__arg_u32(k, args, offsetof(ptxk_embed_args, rows));
    none = ptx_setp(k, PTX_GE, id, rows);
    ptx_if(k, none);
    {
        x[0] = ptx_mov(k, ptx_f32(NAN));
        for (i = 1; i < f.each; i++) x[i] = x[0];
        for (i = 0; i < f.each; i += 4 < f.each ? 4 : f.each)
            ptxk_store_f32(k, y, f.each < 4 ? f.each : 4, ptx_at(y_at, (int64_t)i * bytes), x + i);
        ptx_ret(k);
    }
    ptx_end(k);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_embed_args, table));
    block = ptx_cvt(k, PTX_U64, id);
    block = ptx_mul(k, block, ptx_u64(f.row_bytes));
    at = ptx_ptr_add(k, at, block, 1);
    if (f.format->values > 1) {
        uint32_t eights = f.format->values / 8;
        block = ptx_div(k, part, ptx_u32(eights));
        at = ptx_ptr_add(k, at, block, f.format->bytes);
        part = ptx_rem(k, part, ptx_u32(eights));
        ptxk__octet_read(k, d->format, at, part, &o);
        for (i = 0; i < 8; i++) {
            x[i] = o.has_offset ? ptx_fma(k, o.q[i], o.scale, o.offset)
                                : ptx_op2(k, PTX_MUL, PTX_RN, o.q[i], o.scale);
        }
    } else {
        ptx_type t = d->format == PTXK_F32 ? PTX_F32 : d->format == PTXK_F16 ? PTX_F16 : PTX_BF16;
        at = ptx_ptr_add(k, at, part, f.each * f.format->bytes);
        ptxk_load_f32(k, t, f.each, ptx_with(ptx_at(at, 0), PTX_NC), x);
    }
    if (d->scale < 0 || d->scale > 0)
        for (i = 0; i < f.each; i++) x[i] = ptx_op2(k, PTX_MUL, PTX_RN, x[i], ptx_f32((double)f.scale));
    if (f.each * bytes > 16) {
        ptxk_store_f32(k, y, 4, ptx_at(y_at, 0), x);
        ptxk_store_f32(k, y, 4, ptx_at(y_at, 16), x + 4);
    } else {
        ptxk_store_f32(k, y, f.each, ptx_at(y_at, 0), x);
    }
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== sample ======================================================================================== */

#define PTXK__SAMPLE_THREADS 1024u

static ptx_code ptxk__sample_form(const ptxk_sample_desc *d, ptxk_message *why) {
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "sample: the description is NULL");
    if (d->method > PTXK_SAMPLE_ARGMAX)
        return ptxk__refuse(why, PTX_E_DESC,
                            "sample: method is %u, must be PTXK_SAMPLE_DRAW or PTXK_SAMPLE_ARGMAX",
                            d->method);
    return ptxk__check_type("sample", "type", d->type, why);
}

PTXGEN_API ptx_code ptxk_sample_plan(const ptxk_sample_desc *desc, const ptxk_sample_shape *shape,
                                     ptx_plan *plan, ptxk_message *why) {
    ptx_code code =
        ptxk__plan_start("sample", ptxk__sample_form(desc, why), shape, plan, sizeof(ptxk_sample_args), why);
    if (!code) code = ptxk__check_most("sample", "rows", shape->rows, 65535, why);
    if (!code) code = ptxk__check_n("sample", "n", shape->n, PTXK__N_MAX, why);
    if (code || !shape->rows) return code;
    ptxk__plan_one(plan, shape->rows, 1, PTXK__SAMPLE_THREADS,
                   (uint64_t)shape->rows * ((uint64_t)shape->n * ptxk__kv_bytes(desc->type) + 4));
    return code;
}

static ptx_code ptxk__check_sampling(const char *op, float temperature, float top_p, ptxk_message *why) {
    if (!(temperature >= 0 && temperature <= FLT_MAX))
        return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: temperature is %g, must be finite and at least 0", op,
                            (double)temperature);
    if (!(top_p >= 0 && top_p <= 1))
        return ptxk__refuse(why, PTX_E_ARGUMENT, "%s: top_p is %g, must be 0 to 1", op, (double)top_p);
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_sample_check(const ptxk_sample_desc *desc, const ptxk_sample_args *args,
                                      ptxk_message *why) {
    ptxk__span span[3];
    ptx_code code = ptxk__check_start("sample", ptxk__sample_form(desc, why), args, why);
    if (!code) code = ptxk__check_sampling("sample", args->temperature, args->top_p, why);
    if (code) return code;
    if (!args->n || args->n > PTXK__N_MAX)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "sample: n is %u, must be 1 to %u", args->n, PTXK__N_MAX);
    if ((code = ptxk__check_count("sample", "rows", args->rows, 0, 65535, why)) != PTX_E_NONE
        || (code = ptxk__check_zero("sample", "reserved", args->reserved, why)) != PTX_E_NONE)
        return code;
    span[0] = ptxk__span_of("logits", args->logits,
                            (uint64_t)args->rows * args->n * ptxk__kv_bytes(desc->type), 16, 1);
    span[1] = ptxk__span_of("positions", args->positions, (uint64_t)args->rows * 4, 4, args->positions != 0);
    span[2] = ptxk__span_of("tokens", args->tokens, (uint64_t)args->rows * 4, 4, 1);
    span[2] = ptxk__span_written(span[2], 0);
    return ptxk__check_spans("sample", span, 3, why);
}

/* A row of logits that the threads of a block share, and their counters in shared memory. */
typedef struct ptxk__logits {
    ptx_type type;
    uint32_t threads;
    ptx_val at, n; /* address; number of elements */
    ptx_val tid;
    ptx_val counters; /* shared address of PTXK__SAMPLE_SHARED bytes, 16-byte aligned */
    uint32_t barrier; /* number of these threads' barrier; 0: they are the whole block */
} ptxk__logits;
#define PTXK__SAMPLE_BINS 256u
/* In shared memory: u64 weights[256], u32 counts[256], u64 tops[32], u64 found[4]. */
#define PTXK__SAMPLE_COUNTS (PTXK__SAMPLE_BINS * 8u)
#define PTXK__SAMPLE_TOPS (PTXK__SAMPLE_COUNTS + PTXK__SAMPLE_BINS * 4u)
#define PTXK__SAMPLE_FOUND (PTXK__SAMPLE_TOPS + 32u * 8u)
#define PTXK__SAMPLE_SHARED (PTXK__SAMPLE_FOUND + 32u)

/* The sort key of a token, u64: the logit's bits, mapped so that integers order as the numbers do, NaN as 0;
   then 24 bits that count the token down, so that of equal logits the lowest token has the largest key. */
static ptx_val ptxk__sample_key(ptx_kernel *k, ptx_val x, ptx_val token) {
    ptx_val bits, sign, nan, key;
    x = ptx_op2(k, PTX_ADD, PTX_RN, x, ptx_f32(0)); /* -0 is 0 */
    bits = ptx_as(x, PTX_S32);
    sign = ptx_shr(k, bits, ptx_u32(31));
    sign = ptx_or(k, ptx_as(sign, PTX_B32), ptx_b32(0x80000000u));
    key = ptx_xor(k, ptx_as(bits, PTX_B32), sign);
    nan = ptx_setp(k, PTX_ISNAN, x, x);
    key = ptx_selp(k, ptx_b32(0), key, nan);
    key = ptx_cvt(k, PTX_U64, ptx_as(key, PTX_U32));
    token = ptx_xor(k, ptx_as(token, PTX_B32), ptx_b32(0xffffff));
    token = ptx_cvt(k, PTX_U64, ptx_as(token, PTX_U32));
    key = ptx_shl(k, key, ptx_u32(24));
    return ptx_or(k, key, token);
}

static ptx_val ptxk__sample_token(ptx_kernel *k, ptx_val key) {
    ptx_val token = ptx_cvt(k, PTX_U32, key);
    token = ptx_and(k, token, ptx_u32(0xffffff));
    return ptx_xor(k, token, ptx_u32(0xffffff));
}

static ptx_val ptxk__max_u64(ptx_kernel *k, ptx_val x, uint32_t distance) {
    ptx_val part[2], other;
    uint32_t i;
    ptx_unpack(k, PTX_U32, 2, x, part);
    for (i = 0; i < 2; i++)
        part[i] = ptx_shfl_bfly(k, part[i], ptx_u32(distance), ptx_u32(31), ptx_u32(0xffffffffu));
    for (i = 0; i < 2; i++) part[i] = ptx_as(part[i], PTX_U32);
    other = ptx_pack(k, PTX_U64, 2, part);
    return ptx_max(k, x, other);
}

static void ptxk__sample_barrier(ptx_kernel *k, const ptxk__logits *f) {
    if (f->barrier)
        (void)ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(f->barrier), ptx_imm(f->threads));
    else
        ptx_bar_sync(k, ptx_imm(0));
}

/* The largest key of all threads, in every thread. One barrier before its shared memory is written, one
   after. */
static ptx_val ptxk__sample_largest_key(ptx_kernel *k, const ptxk__logits *f, ptx_val key) {
    uint32_t d, warps = f->threads / 32;
    ptx_val lane, warp, at, p;
    for (d = 1; d < 32; d *= 2) key = ptxk__max_u64(k, key, d);
    lane = ptx_and(k, f->tid, ptx_u32(31));
    warp = ptx_shr(k, f->tid, ptx_u32(5));
    ptxk__sample_barrier(k, f);
    at = ptx_ptr_add(k, f->counters, warp, 8);
    p = ptx_setp(k, PTX_EQ, lane, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U64, ptx_at(at, PTXK__SAMPLE_TOPS), key);
    ptxk__sample_barrier(k, f);
    lane = ptx_and(k, lane, ptx_u32(warps - 1));
    at = ptx_ptr_add(k, f->counters, lane, 8);
    key = ptx_ld(k, PTX_U64, ptx_at(at, PTXK__SAMPLE_TOPS));
    for (d = 1; d < warps; d *= 2) key = ptxk__max_u64(k, key, d);
    return key;
}

/* Loads the logit of token i of the row. */
static ptx_val ptxk__logit(ptx_kernel *k, const ptxk__logits *f, ptx_val i) {
    ptx_val x, at = ptx_ptr_add(k, f->at, i, ptx_type_bytes(f->type));
    ptxk_load_f32(k, f->type, 1, ptx_at(at, 0), &x);
    return x;
}

/* The key of the row's largest logit. */
static ptx_val ptxk__argmax(ptx_kernel *k, const ptxk__logits *f) {
    ptx_var best = ptx_var_new(k, ptx_u64(0));
    ptx_val i, x, key;
    i = ptx_for(k, f->tid, f->n, ptx_u32(f->threads));
    x = ptxk__logit(k, f, i);
    x = ptxk__sample_key(k, x, i);
    key = ptx_get(k, best);
    x = ptx_max(k, x, key);
    ptx_set(k, best, x);
    ptx_end(k);
    key = ptx_get(k, best);
    return ptxk__sample_largest_key(k, f, key);
}

/* The logit of a key, clamped below +inf. */
static ptx_val ptxk__key_logit(ptx_kernel *k, ptx_val key) {
    ptx_val bits = ptx_shr(k, key, ptx_u32(24)), sign;
    bits = ptx_cvt(k, PTX_U32, bits);
    sign = ptx_shr(k, ptx_as(bits, PTX_S32), ptx_u32(31)); /* all ones: the logit was positive */
    sign = ptx_not(k, ptx_as(sign, PTX_B32));
    sign = ptx_or(k, sign, ptx_b32(0x80000000u));
    bits = ptx_xor(k, ptx_as(bits, PTX_B32), sign);
    return ptxk__clamp_infinity(k, ptx_as(bits, PTX_F32));
}

/* Finds a key: walks down from the largest key, digit by digit, until the weights (by_count: the number of
   tokens) of the keys passed reach `target`. Returns the key there, and the weights of it and all keys above.
   factor: log2 e / temperature; most: the largest logit. */
static void ptxk__sample_find_key(ptx_kernel *k, const ptxk__logits *f, ptx_val most, ptx_val factor,
                                  int by_count, ptx_val target, ptx_val *key_out, ptx_val *weight_out) {
    ptx_var prefix = ptx_var_new(k, ptx_u64(0)), shift = ptx_var_new(k, ptx_u32(48));
    ptx_var above = ptx_var_new(k, ptx_u64(0));  /* weights above the prefix */
    ptx_var passed = ptx_var_new(k, ptx_u64(0)); /* weights or tokens that count towards the target */
    ptx_val i, x, key, at, sh, digit, w, same, p, up, pre;
    ptx_loop(k);
    {
        i = ptx_for(k, f->tid, ptx_u32(PTXK__SAMPLE_BINS), ptx_u32(f->threads));
        at = ptx_ptr_add(k, f->counters, i, 8);
        ptx_st(k, PTX_U64, ptx_at(at, 0), ptx_u64(0));
        at = ptx_ptr_add(k, f->counters, i, 4);
        ptx_st(k, PTX_U32, ptx_at(at, PTXK__SAMPLE_COUNTS), ptx_u32(0));
        ptx_end(k);
        ptxk__sample_barrier(k, f);
        sh = ptx_get(k, shift);
        up = ptx_add(k, sh, ptx_u32(8));
        pre = ptx_get(k, prefix);
        i = ptx_for(k, f->tid, f->n, ptx_u32(f->threads));
        x = ptxk__logit(k, f, i);
        key = ptxk__sample_key(k, x, i);
        same = ptx_shr(k, key, up);
        p = ptx_setp(k, PTX_EQ, same, pre);
        ptx_if(k, p);
        {
            x = ptxk__clamp_infinity(k, x);
            x = ptx_op2(k, PTX_SUB, PTX_RN, x, most);
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, factor);
            x = ptx_ex2(k, x);
            x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32(1099511627776.0)); /* 2^40 */
            x = ptx_max(k, x, ptx_f32(0));                                /* NaN: 0 */
            w = ptx_cvt_with(k, PTX_RZI, PTX_U64, x);
            digit = ptx_shr(k, key, sh);
            digit = ptx_cvt(k, PTX_U32, digit);
            digit = ptx_and(k, digit, ptx_u32(PTXK__SAMPLE_BINS - 1));
            at = ptx_ptr_add(k, f->counters, digit, 8);
            ptx_red(k, PTX_ATOM_ADD, ptx_at(at, 0), w);
            at = ptx_ptr_add(k, f->counters, digit, 4);
            ptx_red(k, PTX_ATOM_ADD, ptx_at(at, PTXK__SAMPLE_COUNTS), ptx_u32(1));
        }
        ptx_end(k);
        ptx_end(k);
        ptxk__sample_barrier(k, f);

        /* One thread walks down the bins from the largest. */
        p = ptx_setp(k, PTX_EQ, f->tid, ptx_u32(0));
        ptx_if(k, p);
        {
            ptx_var bin = ptx_var_new(k, ptx_u32(PTXK__SAMPLE_BINS - 1));
            ptx_val count, sum, weights, done, last, total;
            ptx_loop(k);
            i = ptx_get(k, bin);
            at = ptx_ptr_add(k, f->counters, i, 8);
            w = ptx_ld(k, PTX_U64, ptx_at(at, 0));
            at = ptx_ptr_add(k, f->counters, i, 4);
            count = ptx_ld(k, PTX_U32, ptx_at(at, PTXK__SAMPLE_COUNTS));
            count = ptx_cvt(k, PTX_U64, count);
            sum = ptx_get(k, passed);
            total = ptx_add(k, sum, by_count ? count : w);
            done = ptx_setp(k, PTX_GE, total, target);
            last = ptx_setp(k, PTX_EQ, i, ptx_u32(0)); /* below the target: takes all of them */
            done = ptx_or(k, done, last);
            ptx_while(k, ptx_inv(done));
            weights = ptx_get(k, above);
            weights = ptx_add(k, weights, w);
            ptx_set(k, above, weights);
            ptx_set(k, passed, total);
            i = ptx_sub(k, i, ptx_u32(1));
            ptx_set(k, bin, i);
            ptx_end(k);
            i = ptx_get(k, bin);
            key = ptx_cvt(k, PTX_U64, i);
            pre = ptx_get(k, prefix);
            pre = ptx_shl(k, pre, ptx_u32(8));
            pre = ptx_or(k, pre, key);
            ptx_set(k, prefix, pre);
            weights = ptx_get(k, above);
            sum = ptx_get(k, passed);
            ptx_st(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND), pre);
            ptx_st(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 8), weights);
            ptx_st(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 16), sum);
            at = ptx_ptr_add(k, f->counters, i, 8);
            w = ptx_ld(k, PTX_U64, ptx_at(at, 0));
            w = ptx_add(k, weights, w);
            ptx_st(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 24), w);
        }
        ptx_end(k);
        ptxk__sample_barrier(k, f);
        pre = ptx_ld(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND));
        ptx_set(k, prefix, pre);
        x = ptx_ld(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 8));
        ptx_set(k, above, x);
        x = ptx_ld(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 16));
        ptx_set(k, passed, x);
        sh = ptx_get(k, shift);
        p = ptx_setp(k, PTX_GT, sh, ptx_u32(0));
        ptx_while(k, p);
        sh = ptx_sub(k, sh, ptx_u32(8));
        ptx_set(k, shift, sh);
    }
    ptx_end(k);
    *key_out = ptx_get(k, prefix);
    *weight_out = ptx_ld(k, PTX_U64, ptx_at(f->counters, PTXK__SAMPLE_FOUND + 24));
}

/* 64 random bits from seed and counter (SplitMix64). */
static ptx_val ptxk__random(ptx_kernel *k, ptx_val seed, ptx_val counter) {
    ptx_val z, t;
    z = ptx_add(k, counter, ptx_u64(1));
    z = ptx_mad(k, z, ptx_wide(k, PTX_U64, 0x9e3779b97f4a7c15u), seed);
    t = ptx_shr(k, z, ptx_u32(30));
    z = ptx_xor(k, z, t);
    z = ptx_mul(k, z, ptx_wide(k, PTX_U64, 0xbf58476d1ce4e5b9u));
    t = ptx_shr(k, z, ptx_u32(27));
    z = ptx_xor(k, z, t);
    z = ptx_mul(k, z, ptx_wide(k, PTX_U64, 0x94d049bb133111ebu));
    t = ptx_shr(k, z, ptx_u32(31));
    return ptx_xor(k, z, t);
}

/* The parameters of sampling, uniform over the threads. */
typedef struct ptxk__sampling {
    ptx_val temperature, top_p, top_k, seed, counter;
} ptxk__sampling;

/* Samples a token from a row of logits, with a whole block. The temperature is not 0. */
static ptx_val ptxk__sample_row(ptx_kernel *k, const ptxk__logits *f, const ptxk__sampling *w) {
    ptx_val best, most, factor, p, all, key, sum, target, part, r;
    ptx_var total = ptx_var_new(k, ptx_u64(0)), token;
    best = ptxk__argmax(k, f);
    token = ptx_var_new(k, ptx_u32(0));
    key = ptxk__sample_token(k, best);
    ptx_set(k, token, key);
    most = ptxk__key_logit(k, best);
    factor = ptx_op2(k, PTX_DIV, PTX_RN, ptx_f32(1.44269504088896340736), w->temperature);
    factor = ptxk__clamp_infinity(k, factor);
    all = ptx_cvt(k, PTX_U64, f->n);
    target = ptx_cvt(k, PTX_U64, w->top_k);
    p = ptx_setp(k, PTX_EQ, target, ptx_u64(0));
    target = ptx_selp(k, all, target, p);
    target = ptx_min(k, target, all);
    ptxk__sample_find_key(k, f, most, factor, 1, target, &key, &sum);
    ptx_set(k, total, sum);
    p = ptx_setp(k, PTX_GT, w->top_p, ptx_f32(0));
    part = ptx_setp(k, PTX_LT, w->top_p, ptx_f32(1));
    p = ptx_and(k, p, part);
    p = ptx_uniform(k, p);
    ptx_if(k, p);
    {
        part = ptx_cvt(k, PTX_F64, w->top_p);
        target = ptx_cvt(k, PTX_F64, sum);
        target = ptx_op2(k, PTX_MUL, PTX_RN, target, part);
        target = ptx_cvt_with(k, PTX_RPI, PTX_U64, target);
        target = ptx_max(k, target, ptx_u64(1));
        ptxk__sample_find_key(k, f, most, factor, 0, target, &key, &sum);
        ptx_set(k, total, sum);
    }
    ptx_end(k);
    sum = ptx_get(k, total);
    sum = ptx_uniform(k, sum);
    p = ptx_setp(k, PTX_GT, sum, ptx_u64(0));
    ptx_if(k, p);
    {
        r = ptxk__random(k, w->seed, w->counter);
        r = ptx_mul_hi(k, r, sum);
        target = ptx_add(k, r, ptx_u64(1));
        ptxk__sample_find_key(k, f, most, factor, 0, target, &key, &sum);
        key = ptxk__sample_token(k, key);
        ptx_set(k, token, key);
    }
    ptx_end(k);
    return ptx_get(k, token);
}

PTXGEN_API ptx_code ptxk_sample_emit_(ptx_module *m, const char *site, const void *desc) {
    const ptxk_sample_desc *d = (const ptxk_sample_desc *)desc;
    ptxk__logits f;
    ptxk__sampling w;
    ptxk_message why;
    char name[96];
    ptx_kernel *k;
    ptx_var token;
    ptx_val args, row, p, at, x, there;
    ptx_code code = ptxk__sample_form(d, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    f.type = (ptx_type)d->type;
    f.threads = PTXK__SAMPLE_THREADS;
    f.barrier = 0;
    (void)snprintf(name, sizeof name, "%s_%s", d->method == PTXK_SAMPLE_ARGMAX ? "argmax" : "sample",
                   ptx_type_name(f.type));
    k = ptx_entry_(m, site, name);
    ptx_launch_bounds(k, f.threads, 1);
    args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_sample_args), 8);
    f.counters = ptx_shared(k, "meet", PTX_U64, PTXK__SAMPLE_SHARED / 8, 16);
    f.tid = ptx_tid_x(k);
    row = ptx_ctaid_x(k);
    f.n = ptxk__arg_u32(k, args, offsetof(ptxk_sample_args, n));
    f.at = ptxk__arg_ptr(k, args, offsetof(ptxk_sample_args, logits));
    x = ptx_mul_wide(k, row, f.n);
    f.at = ptx_ptr_add(k, f.at, x, ptx_type_bytes(f.type));
    token = ptx_var_new(k, ptx_u32(0));
    w.temperature = ptx_ld(k, PTX_F32, ptx_at(args, (int64_t)offsetof(ptxk_sample_args, temperature)));
    p = ptx_setp(k, PTX_GT, w.temperature, ptx_f32(0));
    if (d->method == PTXK_SAMPLE_DRAW) {
        ptx_if(k, p);
        w.top_p = ptx_ld(k, PTX_F32, ptx_at(args, (int64_t)offsetof(ptxk_sample_args, top_p)));
        w.top_k = ptxk__arg_u32(k, args, offsetof(ptxk_sample_args, top_k));
        w.seed = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offsetof(ptxk_sample_args, seed)));
        there = ptxk__optional_u32(k, args, offsetof(ptxk_sample_args, positions), row, ptx_u32(0));
        there = ptx_cvt(k, PTX_U64, there);
        x = ptx_cvt(k, PTX_U64, row);
        x = ptx_shl(k, x, ptx_u32(32));
        w.counter = ptx_or(k, x, there);
        x = ptxk__sample_row(k, &f, &w);
        ptx_set(k, token, x);
        ptx_else(k);
    }
    x = ptxk__argmax(k, &f);
    x = ptxk__sample_token(k, x);
    ptx_set(k, token, x);
    if (d->method == PTXK_SAMPLE_DRAW) ptx_end(k);
    x = ptx_get(k, token);
    at = ptxk__arg_ptr(k, args, offsetof(ptxk_sample_args, tokens));
    at = ptx_ptr_add(k, at, row, 4);
    p = ptx_setp(k, PTX_EQ, f.tid, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_at(at, 0), x);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* ======== decoder ======================================================================================= */

/* For each token a block reads the leader's decision, takes its share of the embedding's tiles, and then,
   layer by layer, of each product's tiles and of the heads of attention. There is no barrier across the grid.
   Each tile of 32 values has a flag in global memory that counts how often it was made (its epoch). The block
   that finishes the tile writes the flag with st.release. A block that needs the tile first issues the copies
   of the weights that it will multiply, then waits with ld.acquire for the epoch. A buffer is overwritten
   only one layer later: by then all its readers have produced, directly or through others, what the writer
   waited for.

   The rooms above supply norm factors, rotation and sampling. */

/* -- decoder: limits and plan -- */

/* Eight worker warps multiply: weights come through a ring for each warp, x lies in shared memory (see "rows
   of weights"). The ninth, the finisher warp, joins the slices of a tile, turns it into the input of the next
   product, and announces it, while the workers run ahead. */
#define PTXK__DEC_WARPS 8u
#define PTXK__DEC_WORKERS (32u * PTXK__DEC_WARPS)
#define PTXK__DEC_THREADS (PTXK__DEC_WORKERS + 32u)
#define PTXK__DEC_TILE 32u      /* rows of a tile, four for each warp; a group of x in the next product */
#define PTXK__DEC_UNIT 1024u    /* slices are multiples of so many values of x: a record of integers */
#define PTXK__DEC_SHARED 65536u /* what every device from sm_75 on gives with opt-in */
#define PTXK__DEC_ROUNDS 8u
#define PTXK__X_SPARE 64u       /* spare bytes at the end of a record of integers: see ptxk__x_record */
#define PTXK__DEC_INFO 592u     /* bytes of a block's control data: the leader's words, product, layer */
#define PTXK__DEC_LAYER_AT 368u /* offset in it of the layer, followed by the address of the next norm */
#define PTXK__DEC_OUT_HEAD 128u /* bytes of a message before the tile's sums */
#define PTXK__DEC_KINDS 5u      /* of products: q k v, output, gate and up, down, logits */
#define PTXK__DEC_SPLITS 32u    /* most parts of a sequence in attention */
#define PTXK__DEC_KEYS 64u      /* fewest keys worth a part */
#define PTXK__DEC_PATIENCE (1u << 26)
#define PTXK__DEC_LAYERS 4096u
#define PTXK__DEC_SPANS 14u       /* of the arguments, ... */
#define PTXK__DEC_LAYER_SPANS 20u /* ... and of a layer */

/* Control words at the beginning of the workspace. The leader (block 0) writes them between tokens, GO
   last. */
enum {
    PTXK__GO = 0,       /* tokens decided so far, 1 from the start */
    PTXK__NEED = 4,     /* not 0: this token needs logits */
    PTXK__ACTIVE = 8,   /* bit set of the running sequences */
    PTXK__OVER = 12,    /* final status, or 0 */
    PTXK__TOKEN = 16,   /* u32 [4] */
    PTXK__LENGTH = 32,  /* u32 [4] rows in the caches */
    PTXK__WRITTEN = 48, /* u32 [4] */
    PTXK__SEEN = 64,    /* number of times that blocks have read these words, over all tokens */
    PTXK__DONE = 68,    /* finished tiles of logits */
    PTXK__FAILED = 72,
    PTXK__FULL = 76,     /* status at the end: PTXK_DECODER_FULL once a cache was full */
    PTXK__BEST = 80,     /* u64 [4]: keys of the largest logits */
    PTXK__REFUSED = 112, /* 0, or the maximum of 65536 - 256 sequence - cause */
    PTXK__HEAD = 256
};

typedef struct ptxk__dec {
    ptxk_decoder_desc d;
    uint32_t group, q_rows, kv_rows, qkv_rows;
    ptxk__rows form[sizeof ptxk__blocks / sizeof *ptxk__blocks]; /* for the formats in use */
    uint32_t planes, integers, numbers; /* byte planes of x; bytes of a unit as integers, as f32, or 0 */
    uint32_t number_formats;            /* bits */
    uint32_t ring;                      /* bytes of the rings of all warps */
    uint32_t room;                      /* units of x, times columns, in shared memory */
    uint32_t numbers_at;                /* offset of the f32 units, after the integers */
    uint32_t out_at, out_bytes;         /* two messages to the finisher warp, after x */
    uint32_t squares_at, info_at;
    uint32_t rows[PTXK__DEC_KINDS][3], tiles[PTXK__DEC_KINDS], columns[PTXK__DEC_KINDS];
    uint32_t slices[PTXK__DEC_KINDS];                 /* at most */
    uint32_t record[PTXK__DEC_KINDS];                 /* bytes of a slice's partial sums of a tile */
    uint32_t flags_x, flags_ff, flags_qkv, flags_att; /* u32 for each tile; attention: for each KV head */
    uint32_t arrive[PTXK__DEC_KINDS], arrive_att;     /* u32 for each tile, for each head of a sequence */
    uint32_t zeroed;                                  /* leading bytes that the first launch clears */
    uint64_t x_integers, x_numbers, ff_integers, ff_numbers; /* inputs of products, [batch, units] */
    uint64_t att_integers, att_numbers; /* where heads are whole groups of 32; else `att`, in f32 */
    uint32_t x_units, ff_units, att_units;
    int whole_heads;
    uint64_t squares; /* f32 [batch, tiles of x] */
    uint64_t x, qkv, att, parts[PTXK__DEC_KINDS], att_parts, bytes;
    uint32_t att_record;
    uint32_t tile, tiles_of_heads; /* query heads in a tile of attention; tiles for a KV head */
    uint32_t lanes, keys;          /* lanes of a key, keys of a warp at a time */
    float scale;
} ptxk__dec;

/* Bytes of 256 weights of a format. */
static uint32_t ptxk__dec_unit(const ptxk__block *e) { return 256 / e->values * e->bytes; }

static uint64_t ptxk__dec_reserve(uint64_t *at, uint64_t bytes) {
    uint64_t here = *at;
    *at = (here + bytes + 255) / 256 * 256;
    return here;
}

static ptx_code ptxk__dec_limits(const ptxk_decoder_desc *d, ptxk_message *why) {
    const char *const name[6] = {"hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"};
    const uint32_t most[6] = {1u << 17, 1u << 18, 1024, 1024, 256, PTXK__N_MAX};
    uint32_t value[6], i, known = 0;
    value[0] = d->hidden, value[1] = d->ffn, value[2] = d->heads;
    value[3] = d->kv_heads, value[4] = d->head_dim, value[5] = d->vocab;
    for (i = 0; i < 6; i++) {
        ptx_code code = ptxk__check_n("decoder", name[i], value[i], most[i], why);
        if (code) return code;
        if ((i < 2 || i == 4) && value[i] % 8)
            return ptxk__refuse(why, PTX_E_DESC, "decoder: %s is %u, must be a multiple of 8", name[i],
                                value[i]);
    }
    if (d->heads % d->kv_heads)
        return ptxk__refuse(why, PTX_E_DESC, "decoder: heads is %u, must be a multiple of kv_heads, %u",
                            d->heads, d->kv_heads);
    if (!d->batch || d->batch > 4)
        return ptxk__refuse(why, PTX_E_DESC, "decoder: batch is %u, must be 1 to 4", d->batch);
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++)
        known |= 1u << ptxk__blocks[i].id;
    if (!d->formats || d->formats & ~known)
        return ptxk__refuse(why, PTX_E_DESC,
                            "decoder: formats is 0x%x, must be of 1 << format, such as 1 << PTXK_Q4_K",
                            d->formats);
    for (i = 0; i < 3; i++) {
        const uint32_t columns = i == 2 ? d->heads * d->head_dim : value[i];
        uint32_t j, block = 256; /* the smallest; each divides the next */
        for (j = 0; j < sizeof ptxk__blocks / sizeof *ptxk__blocks; j++)
            if (d->formats >> ptxk__blocks[j].id & 1 && ptxk__block_whole(&ptxk__blocks[j]) < block)
                block = ptxk__block_whole(&ptxk__blocks[j]);
        if (columns % block)
            return ptxk__refuse(why, PTX_E_DESC,
                                "decoder: %s is %u, must be a multiple of %u, the smallest block of formats",
                                i == 2 ? "heads * head_dim" : name[i], columns, block);
    }
    if (!ptxk__kv_bytes(d->kv_type)) return ptxk__check_type("decoder", "kv_type", d->kv_type, why);
    if (d->rope_dims % 2 || d->rope_dims > d->head_dim)
        return ptxk__refuse(why, PTX_E_DESC,
                            "decoder: rope_dims is %u, must be even and at most head_dim, %u", d->rope_dims,
                            d->head_dim);
    if (d->rope_pairs > PTXK_ROPE_NEOX)
        return ptxk__refuse(why, PTX_E_DESC,
                            "decoder: rope_pairs is %u, must be PTXK_ROPE_INTERLEAVED or PTXK_ROPE_NEOX",
                            d->rope_pairs);
    if (d->precision > PTXK_GEMV_FAST)
        return ptxk__refuse(why, PTX_E_DESC,
                            "decoder: precision is %u, must be PTXK_GEMV_EXACT or PTXK_GEMV_FAST",
                            d->precision);
    if (d->head_norms > 1)
        return ptxk__refuse(why, PTX_E_DESC, "decoder: head_norms is %u, must be 0 or 1", d->head_norms);
    if (d->window > PTXK__LEN_MAX)
        return ptxk__refuse(why, PTX_E_DESC, "decoder: window is %u, must be at most 2147483647 (0: all)",
                            d->window);
    if (!(d->embedding_scale >= -1e30f && d->embedding_scale <= 1e30f))
        return ptxk__refuse(why, PTX_E_DESC,
                            "decoder: embedding_scale is %g, must be from -1e30 to 1e30 (0: 1)",
                            (double)d->embedding_scale);
    if (d->gelu > 1) return ptxk__refuse(why, PTX_E_DESC, "decoder: gelu is %u, must be 0 or 1", d->gelu);
    return ptxk__check_scale("decoder", d->scale, why);
}

static ptx_code ptxk__dec_form(const ptxk_decoder_desc *d, ptxk__dec *f, ptxk_message *why) {
    uint32_t i, fixed, flags, room;
    uint64_t at;
    ptx_code code;
    if (why) why->text[0] = 0;
    if (!d) return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: the description is NULL");
    if ((code = ptxk__dec_limits(d, why)) != PTX_E_NONE) return code;
    memset(f, 0, sizeof *f);
    f->d = *d;
    f->group = d->heads / d->kv_heads;
    f->q_rows = d->heads * d->head_dim;
    f->kv_rows = d->kv_heads * d->head_dim;
    f->qkv_rows = f->q_rows + 2 * f->kv_rows;
    f->scale = (float)(1.44269504088896340736
                       * (d->scale < 0 || d->scale > 0 ? (double)d->scale : 1 / ptxk__sqrt(d->head_dim)));

    f->planes = d->precision == PTXK_GEMV_FAST ? 1 : 2;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++) {
        if (ptxk__blocks[i].kind == PTXK__NUMBERS) f->number_formats |= 1u << ptxk__blocks[i].id;
    }
    if (d->formats & ~f->number_formats) f->integers = ptxk__x_record(f->planes);
    if (d->formats & f->number_formats) f->numbers = 4 * PTXK__DEC_UNIT;
    f->out_bytes = PTXK__DEC_OUT_HEAD + 2 * 4 * PTXK__DEC_TILE * d->batch;
    fixed = 2 * f->out_bytes + 16 + PTXK__DEC_INFO;
    room = 3 * d->batch * (f->integers + f->numbers); /* at least three units of x, or half of the memory */
    while (room > PTXK__DEC_SHARED / 2) room -= d->batch * (f->integers + f->numbers);
    room = (PTXK__DEC_SHARED - fixed - room) / PTXK__DEC_WARPS / 16 * 16;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++) {
        int wide = !ptxk__blocks[i].aligned || ptxk__blocks[i].kind == PTXK__NUMBERS;
        uint32_t most = d->batch > 2 && wide ? 1 : 4; /* limited by registers */
        if (!(d->formats >> ptxk__blocks[i].id & 1)) continue;
        if (!ptxk__rows_form_of(&f->form[i], &ptxk__blocks[i], d->batch, f->planes, most, PTXK__DEC_UNIT,
                                room))
            return ptxk__refuse(why, PTX_E_DESC, "decoder: batch is %u, which does not fit", d->batch);
        if (f->form[i].ring * PTXK__DEC_WARPS > f->ring) f->ring = f->form[i].ring * PTXK__DEC_WARPS;
    }
    f->out_at = PTXK__DEC_SHARED - fixed;
    f->room = (f->out_at - f->ring) / (f->integers + f->numbers);
    f->numbers_at = f->ring + f->room * f->integers;
    f->squares_at = f->out_at + 2 * f->out_bytes;
    f->info_at = f->squares_at + 16;

    f->rows[0][0] = f->q_rows, f->rows[0][1] = f->rows[0][2] = f->kv_rows;
    f->rows[1][0] = f->rows[3][0] = d->hidden;
    f->rows[2][0] = d->ffn; /* of gate and up */
    f->rows[4][0] = d->vocab;
    f->columns[0] = f->columns[2] = f->columns[4] = d->hidden;
    f->columns[1] = f->q_rows;
    f->columns[3] = d->ffn;
    for (f->tile = 4; f->tile >= 2 * f->group;) f->tile /= 2; /* more do not fit into registers */
    f->tiles_of_heads = ptxk__ceil_div(f->group, f->tile);
    for (f->lanes = 1; f->lanes * 8 < d->head_dim;) f->lanes *= 2;
    f->keys = 32 / f->lanes;

    flags = PTXK__HEAD;
    f->flags_x = flags, flags += 4 * ptxk__ceil_div(d->hidden, PTXK__DEC_TILE);
    f->flags_ff = flags, flags += 4 * ptxk__ceil_div(d->ffn, PTXK__DEC_TILE);
    f->flags_att = flags, flags += 4 * d->kv_heads;
    f->arrive_att = flags, flags += 4 * d->kv_heads * d->batch;
    f->flags_qkv = flags;
    flags += 4 * (ptxk__ceil_div(f->q_rows, PTXK__DEC_TILE) + 2 * ptxk__ceil_div(f->kv_rows, PTXK__DEC_TILE));
    for (i = 0; i < PTXK__DEC_KINDS; i++) {
        uint32_t j, units = ptxk__ceil_div(f->columns[i], PTXK__DEC_UNIT), fewest, most = i == 4 ? 4 : 16;
        for (j = 0; j < 3; j++) f->tiles[i] += ptxk__ceil_div(f->rows[i][j], PTXK__DEC_TILE);
        fewest = ptxk__ceil_div(units, f->room / d->batch);
        f->slices[i] = most < units ? most : units;
        if (f->slices[i] < fewest) f->slices[i] = fewest;
        f->record[i] = 4 * (PTXK__DEC_TILE * d->batch * (i == 2 ? 2 : 1) + PTXK__DEC_TILE);
        f->arrive[i] = flags, flags += 4 * f->tiles[i];
    }
    at = (flags + 255) / 256 * 256;
    f->x_units = ptxk__ceil_div(d->hidden, PTXK__DEC_UNIT);
    f->ff_units = ptxk__ceil_div(d->ffn, PTXK__DEC_UNIT);
    f->x_integers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->x_units * f->integers);
    f->x_numbers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->x_units * f->numbers);
    f->ff_integers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->ff_units * f->integers);
    f->ff_numbers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->ff_units * f->numbers);
    f->whole_heads = d->head_dim % PTXK__DEC_TILE == 0;
    f->att_units = f->whole_heads ? ptxk__ceil_div(f->q_rows, PTXK__DEC_UNIT) : 0;
    f->att_integers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->att_units * f->integers);
    f->att_numbers = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->att_units * f->numbers);
    f->zeroed = (uint32_t)at; /* the padding after x is 0 */
    f->squares = ptxk__dec_reserve(&at, (uint64_t)d->batch * ptxk__ceil_div(d->hidden, PTXK__DEC_TILE) * 4);
    f->x = ptxk__dec_reserve(&at, (uint64_t)d->batch * d->hidden * 4);
    f->qkv = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->qkv_rows * 4);
    f->att = ptxk__dec_reserve(&at, (uint64_t)d->batch * f->q_rows * 4);
    for (i = 0; i < PTXK__DEC_KINDS; i++)
        f->parts[i] = ptxk__dec_reserve(&at, (uint64_t)f->tiles[i] * f->slices[i] * f->record[i]);
    f->att_record = 4 * f->group * (d->head_dim + 2);
    f->att_parts =
        ptxk__dec_reserve(&at, (uint64_t)d->batch * d->kv_heads * PTXK__DEC_SPLITS * f->att_record);
    f->bytes = at;
    return PTX_E_NONE;
}

/* Causes of a refused prompt, numbered after the steps. */
enum { PTXK__STEP_LENGTH = 8, PTXK__STEP_ROOM = 9, PTXK__STEP_TOKEN = 10 };

PTXGEN_API const char *ptxk_decoder_step_name(uint32_t step) {
    static const char *const name[] = {"q, k, v",
                                       "attention's output",
                                       "gate and up",
                                       "down",
                                       "logits",
                                       "attention",
                                       "token",
                                       "choice of a token",
                                       "length of the prompt",
                                       "room after the position",
                                       "token of the prompt"};
    return step < sizeof name / sizeof *name ? name[step] : "";
}

PTXGEN_API ptx_code ptxk_decoder_plan(const ptxk_decoder_desc *desc, const ptxk_decoder_shape *shape,
                                      ptx_plan *plan, ptxk_message *why) {
    ptxk__dec f;
    ptx_code code = ptxk__plan_start("decoder", ptxk__dec_form(desc, &f, why), shape, plan,
                                     sizeof(ptxk_decoder_args), why);
    if (!code) code = ptxk__check_n("decoder", "layers", shape->layers, PTXK__DEC_LAYERS, why);
    if (!code) code = ptxk__check_n("decoder", "max_seq", shape->max_seq, PTXK__LEN_MAX, why);
    if (!code) code = ptxk__check_n("decoder", "sm_count", shape->sm_count, 65536, why);
    if (code) return code;
    ptxk__plan_one(plan, 1, 1, PTXK__DEC_WORKERS, 0);
    plan->launch[1] = plan->launch[0];
    plan->launch[1].shared_bytes = PTXK__DEC_SHARED;
    plan->launches = 2;
    plan->launch[1].entry = 1;
    plan->launch[1].grid[0] = shape->sm_count;
    plan->launch[1].block[0] = PTXK__DEC_THREADS;
    plan->launch[1].cooperative = 1;
    plan->workspace_bytes = f.bytes;
    return PTX_E_NONE;
}

static ptx_code ptxk__dec_matrix(const ptxk__dec *f, const char *name, const ptxk_decoder_matrix *m,
                                 uint32_t columns, ptxk_message *why) {
    const ptxk__block *e = ptxk__block_of(m->format);
    if (m->format > 31 || !(f->d.formats >> m->format & 1) || !e)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: %s: format is %s, not one of the description's",
                            name, ptxk__value_name_of(m->format).s);
    if (columns % ptxk__block_whole(e))
        return ptxk__refuse(why, PTX_E_ARGUMENT,
                            "decoder: %s: %u columns are no whole blocks of %u, those of %s", name, columns,
                            ptxk__block_whole(e), ptxk_format_name(m->format));
    if (m->reserved)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: %s: reserved is %u, must be 0", name, m->reserved);
    return PTX_E_NONE;
}

static uint64_t ptxk__dec_weights(const ptxk_decoder_matrix *m, uint32_t rows, uint32_t columns) {
    const ptxk__block *e = ptxk__block_of(m->format);
    return e ? (uint64_t)rows * (columns / e->values) * e->bytes : 0;
}

static uint64_t ptxk__dec_bytes(const ptxk_decoder_matrix *m, uint32_t rows, uint32_t columns) {
    uint64_t weights = ptxk__dec_weights(m, rows, columns);
    return weights && m->bias ? weights + (uint64_t)rows * 4 : weights;
}

PTXGEN_API uint64_t ptxk_decoder_bytes(const ptxk_decoder_desc *desc, const ptxk_decoder_layer *layers,
                                       uint32_t layer_count, const ptxk_decoder_matrix *output,
                                       const uint32_t *lengths) {
    ptxk__dec f;
    uint64_t bytes = 0;
    uint32_t i, b;
    if (!layers || ptxk__dec_form(desc, &f, NULL)) return 0;
    for (i = 0; i < layer_count; i++) {
        const ptxk_decoder_layer *l = &layers[i];
        bytes += ptxk__dec_bytes(&l->q, f.q_rows, f.d.hidden) + ptxk__dec_bytes(&l->k, f.kv_rows, f.d.hidden)
                 + ptxk__dec_bytes(&l->v, f.kv_rows, f.d.hidden)
                 + ptxk__dec_bytes(&l->output, f.d.hidden, f.q_rows)
                 + ptxk__dec_bytes(&l->gate, f.d.ffn, f.d.hidden)
                 + ptxk__dec_bytes(&l->up, f.d.ffn, f.d.hidden)
                 + ptxk__dec_bytes(&l->down, f.d.hidden, f.d.ffn) + 8 * (uint64_t)f.d.hidden;
        for (b = 0; lengths && b < f.d.batch; b++) {
            uint32_t seen = f.d.window && lengths[b] > f.d.window ? f.d.window : lengths[b];
            bytes += 2 * (uint64_t)seen * f.kv_rows * ptxk__kv_bytes(f.d.kv_type);
        }
        if (f.d.head_norms) bytes += 8 * (uint64_t)f.d.head_dim;
    }
    return bytes + (output ? ptxk__dec_bytes(output, f.d.vocab, f.d.hidden) + 4 * (uint64_t)f.d.hidden : 0);
}

/* -- decoder: arguments -- */

/* Checks the numbers among the arguments. */
static ptx_code ptxk__dec_check_numbers(const ptxk_decoder_args *args, ptxk_message *why) {
    ptx_code code = ptxk__check_sampling("decoder", args->temperature, args->top_p, why);
    if (!code) code = ptxk__check_eps("decoder", args->eps, why);
    if (code) return code;
    if (args->n > args->tokens_stride)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: n is %u, must be at most tokens_stride, %u",
                            args->n, args->tokens_stride);
    if (args->n > args->max_seq)
        return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: n is %u, must be at most max_seq, %u", args->n,
                            args->max_seq);
    code = ptxk__check_count("decoder", "end_count", args->end_count, 0, PTXK_DECODER_ENDS, why);
    if (!code)
        code = ptxk__check_count("decoder", "layer_count", args->layer_count, 1, PTXK__DEC_LAYERS, why);
    if (!code) code = ptxk__check_count("decoder", "max_seq", args->max_seq, 1, PTXK__LEN_MAX, why);
    if (!code) code = ptxk__check_count("decoder", "prompt_stride", args->prompt_stride, 1, UINT32_MAX, why);
    if (!code) code = ptxk__check_zero("decoder", "reserved", args->reserved, why);
    return code;
}

/* Collects the spans that the arguments name. Returns their number. */
static uint32_t ptxk__dec_spans(const ptxk__dec *f, const ptxk_decoder_args *args, ptxk__span *span) {
    const ptxk_decoder_desc *d = &f->d;
    const ptxk_decoder_matrix *o = &args->output;
    uint64_t tokens = (uint64_t)d->batch * 4, layers = args->layer_count;
    uint32_t n = 0, i;
    span[n++] = ptxk__span_of("logits", args->logits, tokens * d->vocab, 16, 1);
    span[n++] = ptxk__span_of("tokens", args->tokens, tokens * args->tokens_stride, 4, 1);
    span[n++] = ptxk__span_of("state", args->state, sizeof(ptxk_decoder_state), 8, 1);
    span[n++] = ptxk__span_of("workspace", args->workspace, f->bytes, 256, 1);
    for (i = 0; i < n; i++) span[i] = ptxk__span_written(span[i], 0);
    span[n++] = ptxk__span_of("layers", args->layers, layers * sizeof(ptxk_decoder_layer), 8, 1);
    span[n++] =
        ptxk__span_of("frequencies", args->frequencies, (uint64_t)d->rope_dims * 4, 8, d->rope_dims != 0);
    span[n++] = ptxk__span_of("final_norm", args->final_norm, (uint64_t)d->hidden * 4, 16, 1);
    span[n++] = ptxk__span_of("prompt", args->prompt, tokens * args->prompt_stride, 4, 1);
    span[n++] = ptxk__span_of("prompt_lengths", args->prompt_lengths, tokens, 4, 1);
    span[n++] = ptxk__span_of("positions", args->positions, tokens, 4, 1);
    span[n++] = ptxk__span_of("stop", args->stop, 4, 4, args->stop != 0);
    span[n++] = ptxk__span_of("embedding", args->embedding.weights,
                              ptxk__dec_weights(&args->embedding, d->vocab, d->hidden), 16, 1);
    span[n++] = ptxk__span_of("output", o->weights, ptxk__dec_weights(o, d->vocab, d->hidden), 16, 1);
    span[n++] = ptxk__span_of("output's bias", o->bias, (uint64_t)d->vocab * 4, 4, o->bias != 0);
    return n;
}

/* Checks a layer's formats and collects the spans that it names; the two caches, which are written, come
   first. */
static ptx_code ptxk__dec_check_layer(const ptxk__dec *f, const ptxk_decoder_args *args,
                                      const ptxk_decoder_layer *l, ptxk__span *span, ptxk_message *why) {
    static const char *const name[7][2] = {{"q", "q's bias"},       {"k", "k's bias"},
                                           {"v", "v's bias"},       {"attention's output", "output's bias"},
                                           {"gate", "gate's bias"}, {"up", "up's bias"},
                                           {"down", "down's bias"}};
    const ptxk_decoder_matrix *m[7];
    uint32_t rows[7], columns[7], i, n = 0;
    uint64_t cache = (uint64_t)f->d.batch * f->kv_rows * args->max_seq * ptxk__kv_bytes(f->d.kv_type);
    m[0] = &l->q, m[1] = &l->k, m[2] = &l->v, m[3] = &l->output, m[4] = &l->gate, m[5] = &l->up;
    m[6] = &l->down;
    rows[0] = f->q_rows, rows[1] = rows[2] = f->kv_rows, rows[3] = rows[6] = f->d.hidden;
    rows[4] = rows[5] = f->d.ffn;
    for (i = 0; i < 7; i++) columns[i] = i == 3 ? f->q_rows : i == 6 ? f->d.ffn : f->d.hidden;
    span[n++] = ptxk__span_written(ptxk__span_of("k_cache", l->k_cache, cache, 16, 1), 0);
    span[n++] = ptxk__span_written(ptxk__span_of("v_cache", l->v_cache, cache, 16, 1), 0);
    span[n++] = ptxk__span_of("attention_norm", l->attention_norm, (uint64_t)f->d.hidden * 4, 16, 1);
    span[n++] = ptxk__span_of("ffn_norm", l->ffn_norm, (uint64_t)f->d.hidden * 4, 16, 1);
    span[n++] = ptxk__span_of("q_norm", l->q_norm, (uint64_t)f->d.head_dim * 4, 4, f->d.head_norms != 0);
    span[n++] = ptxk__span_of("k_norm", l->k_norm, (uint64_t)f->d.head_dim * 4, 4, f->d.head_norms != 0);
    for (i = 0; i < 7; i++) {
        ptx_code code = ptxk__dec_matrix(f, name[i][0], m[i], columns[i], why);
        if (code) return code;
        span[n++] =
            ptxk__span_of(name[i][0], m[i]->weights, ptxk__dec_weights(m[i], rows[i], columns[i]), 16, 1);
        span[n++] = ptxk__span_of(name[i][1], m[i]->bias, (uint64_t)rows[i] * 4, 4, m[i]->bias != 0);
    }
    return PTX_E_NONE;
}

/* Checks that the caches of other layers do not overlap what layer i names. */
static ptx_code ptxk__dec_check_other_layers(const ptxk_decoder_args *args, const ptxk_decoder_layer *layers,
                                             uint32_t i, const ptxk__span *span, ptxk_message *why) {
    uint64_t bytes = span[0].bytes, cache[2];
    uint32_t j, n, c;
    for (j = 0; j < args->layer_count; j++) {
        cache[0] = layers[j].k_cache, cache[1] = layers[j].v_cache;
        for (n = 0; j != i && n < PTXK__DEC_LAYER_SPANS; n++)
            for (c = 0; span[n].needed && c < 2; c++)
                if (cache[c] < span[n].at ? span[n].at - cache[c] < bytes
                                          : cache[c] - span[n].at < span[n].bytes)
                    return ptxk__refuse(why, PTX_E_ARGUMENT, "decoder: layer %u: %s overlaps layer %u's %s",
                                        j, span[c].name, i, span[n].name);
    }
    return PTX_E_NONE;
}

PTXGEN_API ptx_code ptxk_decoder_check(const ptxk_decoder_desc *desc, const ptxk_decoder_args *args,
                                       const ptxk_decoder_layer *layers, ptxk_message *why) {
    ptxk__dec f;
    ptxk__span span[PTXK__DEC_SPANS + PTXK__DEC_LAYER_SPANS];
    uint32_t i, n;
    ptx_code code = ptxk__check_start("decoder", ptxk__dec_form(desc, &f, why), args, why);
    if (!code) code = ptxk__dec_check_numbers(args, why);
    if (!code) code = ptxk__dec_matrix(&f, "embedding", &args->embedding, desc->hidden, why);
    if (!code) code = ptxk__dec_matrix(&f, "output", &args->output, desc->hidden, why);
    if (code) return code;
    n = ptxk__dec_spans(&f, args, span);
    code = ptxk__check_spans("decoder", span, n, why);
    for (i = 0; layers && !code && i < args->layer_count; i++) {
        char place[32];
        (void)snprintf(place, sizeof place, "decoder: layer %u", i);
        code = ptxk__dec_check_layer(&f, args, &layers[i], span + n, why);
        if (!code) code = ptxk__check_spans(place, span, n + PTXK__DEC_LAYER_SPANS, why);
        if (!code) code = ptxk__dec_check_other_layers(args, layers, i, span + n, why);
    }
    return code;
}

/* -- decoder: the product under way, messages -- */

/* The current product. Variables hold what differs between the kinds of products, so that one loop serves
   all. */
typedef struct ptxk__job {
    ptx_var kind, k, slices, groups, skip; /* skip: to a block's next slice */
    ptx_var base[3], format[3], rows[3], edge[2];
    ptx_var tiles, gated;
    ptx_var first, end; /* units of this slice */
} ptxk__job;

/* Shared memory words of the product that only the first thread needs, for messages, or that all threads need
   between two barriers. */
enum {
    PTXK__J_Y = 0,
    PTXK__J_FLAGS = 8,
    PTXK__J_ARRIVE = 16,
    PTXK__J_PARTS = 24,
    PTXK__J_GAMMA = 32, /* weights of the norm that follows, or 0 */
    PTXK__J_BIAS = 40,  /* u64 [3] */
    PTXK__J_TO = 64,    /* u32 [3]: first row in y of each matrix */
    PTXK__J_STRIDE = 76,
    PTXK__J_EPOCH = 80,
    PTXK__J_RECORD = 84,
    PTXK__J_INTEGERS = 88, /* the input in both forms */
    PTXK__J_NUMBERS = 96,
    PTXK__J_UNITS = 104, /* units of a column of the input */
    PTXK__J_WANTS = 108  /* forms of x that are needed: 1 integers, 2 numbers */
};

/* The next rows of a warp: tile, gate or up, and the first of the rows of its four. */
typedef struct ptxk__dec_position {
    ptx_val tile, second, offset;
} ptxk__dec_position;

typedef struct ptxk__dec_state {
    const ptxk__dec *f;
    ptx_kernel *k;
    ptx_val args, shared, workspace, tid, warp, lane, block, blocks;
    ptx_var message; /* 0, 1: the next of the two messages */
    ptx_var round;   /* tokens processed before this one */
    ptx_var layer;
    ptx_var watchdog;
    ptxk__job j;
    ptxk__rows_state kept;    /* variables of the copies, shared by all formats */
    ptx_var sent[3], read[3]; /* positions of the copies, and of the products */
} ptxk__dec_state;

static ptx_val ptxk__dec_at(ptxk__dec_state *c, uint64_t offset) {
    return ptx_ptr_add(c->k, c->workspace, ptx_u64(offset), 1);
}

static void ptxk__job_put(ptxk__dec_state *c, ptx_type type, uint32_t field, ptx_val x) {
    ptx_val p = ptx_setp(c->k, PTX_EQ, c->tid, ptx_u32(0));
    ptx_guard(c->k, p);
    ptx_st(c->k, type, ptx_at(c->shared, c->f->info_at + 256 + field), x);
}

static ptx_val ptxk__job_get(ptxk__dec_state *c, ptx_type type, uint32_t field) {
    return ptx_ld(c->k, type, ptx_at(c->shared, c->f->info_at + 256 + field));
}

static void ptxk__job_put_at(ptxk__dec_state *c, uint32_t field, uint64_t offset) {
    ptx_val at = ptxk__dec_at(c, offset);
    ptxk__job_put(c, PTX_U64, field, ptx_as(ptx_ptr(at, PTX_GENERIC), PTX_U64));
}

/* A barrier of the worker warps, without the finisher warp. */
static void ptxk__dec_worker_barrier(ptxk__dec_state *c) {
    (void)ptx_op2(c->k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(PTXK__DEC_WORKERS));
}

/* The address of the next message. Barrier 2 or 3 says that it is written, 4 or 5 that it has been read. */
static ptx_val ptxk__dec_message(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptx_val m = ptx_get(k, c->message);
    m = ptx_mul(k, m, ptx_u32(c->f->out_bytes));
    m = ptx_add(k, m, ptx_u32(c->f->out_at));
    return ptx_ptr_add(k, c->shared, m, 1);
}

static void ptxk__dec_await_free(ptxk__dec_state *c) /* waits until the next message may be written */
{
    ptx_val id = ptx_get(c->k, c->message);
    id = ptx_add(c->k, id, ptx_u32(4));
    (void)ptx_op2(c->k, PTX_BAR_SYNC, 0, id, ptx_imm(PTXK__DEC_THREADS));
}

static void ptxk__dec_send(ptxk__dec_state *c) {
    ptx_val id = ptx_get(c->k, c->message), other;
    other = ptx_xor(c->k, id, ptx_u32(1));
    id = ptx_add(c->k, id, ptx_u32(2));
    (void)ptx_op2(c->k, PTX_BAR_ARRIVE, 0, id, ptx_imm(PTXK__DEC_THREADS));
    ptx_set(c->k, c->message, other);
}

/* Words of a message. */
enum {
    PTXK__M_KIND = 0,
    PTXK__M_SLICES = 4,
    PTXK__M_SLICE = 8,
    PTXK__M_ROWS = 12,
    PTXK__M_EPOCH = 16,
    PTXK__M_STRIDE = 20,
    PTXK__M_K = 24,
    PTXK__M_ROW = 28,
    PTXK__M_KEEP = 32, /* bit set of the sequences that take logits; one that has ended keeps its last */
    PTXK__M_EPS = 36,
    PTXK__M_PARTS = 40,
    PTXK__M_ARRIVE = 48,
    PTXK__M_FLAG = 56,
    PTXK__M_Y = 64,
    PTXK__M_BIAS = 72,
    PTXK__M_BIAS2 = 80,
    PTXK__M_GAMMA = 88,
    PTXK__M_SQUARES = 96
};
#define PTXK__M_QUIT 99u

/* Ends the worker warps, after telling the finisher warp to end too. */
static void ptxk__dec_end_workers(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptx_val m, p;
    if (ptxk__has_cp_async(k)) ptx_cp_async_wait_all(k);
    ptxk__dec_await_free(c);
    m = ptxk__dec_message(c);
    p = ptx_setp(k, PTX_EQ, c->tid, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_KIND), ptx_u32(PTXK__M_QUIT));
    ptxk__dec_send(c);
    ptx_ret(k);
}

/* -- decoder: waiting -- */

static void ptxk__state_put(ptx_kernel *k, ptx_val state, size_t field, ptx_val x) {
    ptx_st(k, PTX_U32, ptx_with(ptx_at(state, (int64_t)field), PTX_RELAXED | PTX_SYS), x);
}

/* The first thread whose wait times out writes what it waited for. */
static void ptxk__dec_report_starvation(ptxk__dec_state *c, ptx_val step, ptx_val tile) {
    ptx_kernel *k = c->k;
    ptx_val at, old, p, x;
    at = ptx_ptr_add(k, c->workspace, ptx_u32(PTXK__FAILED), 1);
    old = ptx_atom_cas(k, ptx_with(ptx_at(at, 0), PTX_RELAXED | PTX_GPU), ptx_b32(0), ptx_b32(1));
    p = ptx_setp(k, PTX_EQ, ptx_as(old, PTX_U32), ptx_u32(0));
    ptx_if(k, p);
    at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, state));
    ptxk__state_put(k, at, offsetof(ptxk_decoder_state, step), step);
    x = ptx_get(k, c->layer);
    ptxk__state_put(k, at, offsetof(ptxk_decoder_state, layer), x);
    ptxk__state_put(k, at, offsetof(ptxk_decoder_state, tile), tile);
    ptxk__state_put(k, at, offsetof(ptxk_decoder_state, block), c->block);
    x = ptx_get(k, c->round);
    ptxk__state_put(k, at, offsetof(ptxk_decoder_state, position), x);
    ptx_st(k, PTX_U32, ptx_with(ptx_at(at, 0), PTX_RELEASE | PTX_SYS), ptx_u32(PTXK_DECODER_STARVED));
    ptx_end(k);
}

/* One warp waits until the words flags[first ... first + count - 1] have reached `target`; sets `dead` where
   that does not happen. A lane stops polling once its word is there. When a poll brings nothing new, only the
   lowest missing word is polled: waiting costs 32 bytes a poll. */
static void ptxk__dec_poll(ptxk__dec_state *c, ptx_val flags, ptx_val first, ptx_val count, ptx_val target,
                           ptx_val step, ptx_var dead) {
    ptx_kernel *k = c->k;
    ptx_var turns = ptx_var_new(k, ptx_u32(0)), missing, asks;
    ptx_val base, i, at, p, v, some, failed, limit, gone, lowest, last;
    count = ptx_warp_uniform(k, count);
    base = ptx_for(k, ptx_u32(0), count, ptx_u32(32));
    i = ptx_add(k, base, c->lane);
    p = ptx_setp(k, PTX_LT, i, count);
    i = ptx_add(k, i, first);
    at = ptx_ptr_add(k, flags, i, 4);
    gone = ptx_ptr_add(k, c->workspace, ptx_u32(PTXK__FAILED), 1);
    v = ptx_ballot(k, p, ptx_u32(0xffffffffu));
    missing = ptx_var_new(k, ptx_as(v, PTX_U32));
    asks = ptx_var_new(k, ptx_as(v, PTX_U32));
    ptx_loop(k);
    {
        v = ptx_get(k, asks);
        v = ptx_shr(k, v, c->lane);
        v = ptx_and(k, v, ptx_u32(1));
        p = ptx_setp(k, PTX_NE, v, ptx_u32(0));
        v = ptx_ld_if(k, p, PTX_U32, ptx_with(ptx_at(at, 0), PTX_ACQUIRE | PTX_GPU), target);
        v = ptx_sub(k, v, target);
        v = ptx_setp(k, PTX_LT, ptx_as(v, PTX_S32), ptx_s32(0));
        v = ptx_ballot(k, v, ptx_u32(0xffffffffu)); /* polled, not there yet */
        last = ptx_get(k, asks);
        some = ptx_get(k, missing);
        last = ptx_xor(k, last, ptx_as(v, PTX_U32)); /* polled, now there */
        some = ptx_xor(k, some, last);
        ptx_set(k, missing, some);
        v = ptx_setp(k, PTX_NE, some, ptx_u32(0));
        ptx_while(k, v);
        lowest = ptx_sub(k, ptx_u32(0), some);
        lowest = ptx_and(k, lowest, some);
        v = ptx_setp(k, PTX_EQ, last, ptx_u32(0));
        v = ptx_selp(k, lowest, some, v);
        ptx_set(k, asks, v);
        v = ptx_get(k, turns);
        v = ptx_add(k, v, ptx_u32(1));
        ptx_set(k, turns, v);
        limit = ptx_get(k, c->watchdog);
        limit = ptx_setp(k, PTX_GE, v, limit);
        v = ptx_and(k, v, ptx_u32(15)); /* has another block timed out? */
        v = ptx_setp(k, PTX_EQ, v, ptx_u32(0));
        failed = ptx_ld_if(k, v, PTX_U32, ptx_with(ptx_at(gone, 0), PTX_RELAXED | PTX_GPU), ptx_u32(0));
        failed = ptx_setp(k, PTX_NE, failed, ptx_u32(0));
        failed = ptx_ballot(k, failed, ptx_u32(0xffffffffu));
        failed = ptx_setp(k, PTX_NE, failed, ptx_u32(0));
        ptx_if(k, limit);
        lowest = ptx_brev(k, ptx_as(some, PTX_B32));
        lowest = ptx_clz(k, lowest);
        v = ptx_setp(k, PTX_EQ, lowest, c->lane);
        ptx_if(k, v);
        ptxk__dec_report_starvation(c, step, i);
        ptx_end(k);
        ptx_end(k);
        failed = ptx_or(k, failed, limit);
        ptx_if(k, failed);
        ptx_set(k, dead, ptx_u32(1));
        ptx_break(k);
        ptx_end(k);
        ptx_nanosleep(k, ptx_u32(20));
    }
    ptx_end(k);
    v = ptx_get(k, dead);
    v = ptx_setp(k, PTX_EQ, v, ptx_u32(0));
    ptx_while(k, v);
    ptx_end(k);
}

/* The ranges of flags to wait for, up to three. */
typedef struct ptxk__wait {
    ptx_val flags, first[3], count[3], target, step;
    uint32_t ranges;
} ptxk__wait;

/* All workers wait for the flags, and exit on a timeout. Contains two barriers: afterwards shared memory may
   be overwritten. */
static void ptxk__dec_wait(ptxk__dec_state *c, const ptxk__wait *w) {
    ptx_kernel *k = c->k;
    ptx_val p, at, v;
    ptx_var dead = ptx_var_new(k, ptx_u32(0));
    uint32_t i;
    at = ptx_ptr_add(k, c->shared, ptx_u32(c->f->info_at + 128), 1);
    p = ptx_setp(k, PTX_EQ, c->warp, ptx_u32(0));
    ptx_if(k, p);
    for (i = 0; i < w->ranges; i++)
        ptxk__dec_poll(c, w->flags, w->first[i], w->count[i], w->target, w->step, dead);
    v = ptx_get(k, dead);
    p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_at(at, 0), v);
    ptx_end(k);
    ptxk__dec_worker_barrier(c);
    v = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    v = ptx_uniform(k, v);
    p = ptx_setp(k, PTX_NE, v, ptx_u32(0));
    ptx_if(k, p);
    ptxk__dec_end_workers(c);
    ptx_end(k);
    ptxk__dec_worker_barrier(c);
}

/* -- decoder: products, which weights -- */

/* Selects a u32 from a list by format. */
static ptx_val ptxk__dec_by_format(ptxk__dec_state *c, ptx_val format,
                                   uint32_t (*of)(const ptxk__block *)) {
    ptx_kernel *k = c->k;
    ptx_val x = ptx_u32(0), p;
    size_t i;
    int first = 1;
    for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++) {
        if (!(c->f->d.formats >> ptxk__blocks[i].id & 1)) continue;
        if (first) {
            x = ptx_mov(k, ptx_u32(of(&ptxk__blocks[i])));
        } else {
            p = ptx_setp(k, PTX_EQ, format, ptx_u32(ptxk__blocks[i].id));
            x = ptx_selp(k, ptx_u32(of(&ptxk__blocks[i])), x, p);
        }
        first = 0;
    }
    return x;
}

/* A group of rows of a warp. */
typedef struct ptxk__pair {
    ptx_val format, base, row, rows; /* row: the first; rows: of the matrix */
    ptx_val which;                   /* number of the matrix */
    ptx_val local;                   /* row in the tile */
} ptxk__pair;

static void ptxk__dec_pair(ptxk__dec_state *c, const ptxk__dec_position *position, ptxk__pair *o) {
    ptx_kernel *k = c->k;
    ptxk__job *j = &c->j;
    ptx_val p, q, a, b, start;
    q = ptx_setp(k, PTX_NE, position->second, ptx_u32(0)); /* gate and up: up's */
    a = ptx_get(k, j->edge[0]);
    p = ptx_setp(k, PTX_GE, position->tile, a);
    start = ptx_selp(k, a, ptx_u32(0), p);
    q = ptx_or(k, p, q);
    a = ptx_get(k, j->base[0]);
    b = ptx_get(k, j->base[1]);
    o->base = ptx_selp(k, b, a, q);
    a = ptx_get(k, j->format[0]);
    b = ptx_get(k, j->format[1]);
    o->format = ptx_selp(k, b, a, q);
    a = ptx_get(k, j->rows[0]);
    b = ptx_get(k, j->rows[1]);
    o->rows = ptx_selp(k, b, a, q);
    o->which = ptx_selp(k, ptx_u32(1), ptx_u32(0), q);
    b = ptx_get(k, j->edge[1]);
    p = ptx_setp(k, PTX_GE, position->tile, b);
    start = ptx_selp(k, b, start, p);
    a = ptx_get(k, j->base[2]);
    o->base = ptx_selp(k, a, o->base, p);
    a = ptx_get(k, j->format[2]);
    o->format = ptx_selp(k, a, o->format, p);
    a = ptx_get(k, j->rows[2]);
    o->rows = ptx_selp(k, a, o->rows, p);
    o->which = ptx_selp(k, ptx_u32(2), o->which, p);
    o->local = ptx_mad(k, c->warp, ptx_u32(4), position->offset);
    a = ptx_sub(k, position->tile, start);
    o->row = ptx_mad(k, a, ptx_u32(PTXK__DEC_TILE), o->local);
    o->base = ptx_ptr(o->base, PTX_GLOBAL);
}

/* Whether a position has rows, and in this format. */
static ptx_val ptxk__dec_position_has_format(ptxk__dec_state *c, const ptxk__dec_position *position,
                                             const ptxk__rows *f) {
    ptx_kernel *k = c->k;
    ptxk__job *j = &c->j;
    ptx_val p, q, a, b, format;
    if (c->f->d.formats == 1u << f->block->id) {
        a = ptx_get(k, j->tiles);
        return ptx_setp(k, PTX_LT, position->tile, a);
    }
    q = ptx_setp(k, PTX_NE, position->second, ptx_u32(0));
    a = ptx_get(k, j->edge[0]);
    p = ptx_setp(k, PTX_GE, position->tile, a);
    q = ptx_or(k, p, q);
    a = ptx_get(k, j->format[0]);
    b = ptx_get(k, j->format[1]);
    format = ptx_selp(k, b, a, q);
    a = ptx_get(k, j->edge[1]);
    p = ptx_setp(k, PTX_GE, position->tile, a);
    a = ptx_get(k, j->format[2]);
    format = ptx_selp(k, a, format, p);
    a = ptx_get(k, j->tiles);
    p = ptx_setp(k, PTX_LT, position->tile, a);
    q = ptx_setp(k, PTX_EQ, format, ptx_u32(f->block->id));
    return ptx_and(k, p, q);
}

static ptxk__dec_position ptxk__dec_get_position(ptxk__dec_state *c, const ptx_var *at) {
    ptxk__dec_position position;
    position.tile = ptx_get(c->k, at[0]);
    position.second = ptx_get(c->k, at[1]);
    position.offset = ptx_get(c->k, at[2]);
    return position;
}

static void ptxk__dec_set_position(ptxk__dec_state *c, const ptx_var *at,
                                   const ptxk__dec_position *position) {
    ptx_set(c->k, at[0], position->tile);
    ptx_set(c->k, at[1], position->second);
    ptx_set(c->k, at[2], position->offset);
}

/* Advances a position to the next rows: others of the four, the second matrix, the block's next tile. */
static void ptxk__dec_advance(ptxk__dec_state *c, uint32_t rows, ptxk__dec_position *position) {
    ptx_kernel *k = c->k;
    ptx_val p, x, gated, groups;
    position->offset = ptx_add(k, position->offset, ptx_u32(rows));
    position->offset = ptx_and(k, position->offset, ptx_u32(3));
    p = ptx_setp(k, PTX_EQ, position->offset, ptx_u32(0));
    gated = ptx_get(k, c->j.gated);
    x = ptx_xor(k, position->second, gated);
    position->second = ptx_selp(k, x, position->second, p);
    x = ptx_setp(k, PTX_EQ, position->second, ptx_u32(0));
    p = ptx_and(k, p, x);
    groups = ptx_get(k, c->j.groups);
    x = ptx_add(k, position->tile, groups);
    position->tile = ptx_selp(k, x, position->tile, p);
}

/* The rows of one format in this slice. */
typedef struct ptxk__run {
    ptxk__dec_state *c;
    const ptxk__rows *f;
    ptxk__rows_state s;
    ptx_val row_bytes, skip;
} ptxk__run;

static void ptxk__dec_base(ptxk__run *r, ptxk__pair *o) {
    o->base = ptx_ptr_add(r->c->k, o->base, r->skip, 1);
}

/* Continues the copies with the rows after the finished ones, if these have the same format. */
static void ptxk__dec_continue_copies(void *context) {
    ptxk__run *r = (ptxk__run *)context;
    ptxk__dec_state *c = r->c;
    ptx_kernel *k = c->k;
    ptxk__dec_position position = ptxk__dec_get_position(c, c->sent);
    ptxk__pair o;
    ptxk__copy_start start;
    ptx_val p;
    ptxk__dec_advance(c, r->f->rows, &position);
    p = ptxk__dec_position_has_format(c, &position, r->f);
    ptx_if(k, p);
    ptxk__dec_pair(c, &position, &o);
    ptxk__dec_base(r, &o);
    ptxk__rows_find_start(k, r->f, &r->s, o.base, r->row_bytes, o.row, o.rows, &start);
    ptxk__rows_set_start(k, r->f, &r->s, &start);
    ptxk__dec_set_position(c, c->sent, &position);
    ptx_end(k);
}

static void ptxk__run_new(ptxk__dec_state *c, const ptxk__rows *f, ptxk__run *r) {
    ptx_kernel *k = c->k;
    uint32_t unit = PTXK__DEC_UNIT / f->block->values * f->block->bytes, shift = 0;
    ptx_val at, first, end, bytes;
    r->c = c;
    r->f = f;
    at = ptx_mul(k, c->warp, ptx_u32(c->f->ring / PTXK__DEC_WARPS));
    at = ptx_ptr_add(k, c->shared, at, 1);
    ptxk__rows_setup(k, f, &r->s, c->lane, at);
    memcpy(r->s.kept, c->kept.kept, sizeof r->s.kept);
    memcpy(r->s.full, c->kept.full, sizeof r->s.full);
    r->s.slot = c->kept.slot;
    r->s.ahead = c->kept.ahead;
    r->s.next = ptxk__dec_continue_copies;
    r->s.context = r;
    while (1u << shift < f->block->values) shift++;
    at = ptx_get(k, c->j.k);
    at = ptx_shr(k, at, ptx_u32(shift));
    r->row_bytes = ptx_mul(k, at, ptx_u32(f->block->bytes));
    first = ptx_get(k, c->j.first);
    end = ptx_get(k, c->j.end);
    first = ptx_mul(k, first, ptx_u32(unit));
    end = ptx_mul(k, end, ptx_u32(unit));
    end = ptx_min(k, end, r->row_bytes);
    bytes = ptx_sub(k, end, first);
    r->skip = ptx_cvt(k, PTX_U64, first);
    ptxk__rows_steps(k, f, &r->s, bytes);
}

/* Issues the copies of the first weights of the next rows, before waiting for x. */
static void ptxk__run_first(ptxk__dec_state *c, const ptxk__rows *f) {
    ptx_kernel *k = c->k;
    ptxk__run r;
    ptxk__dec_position position = ptxk__dec_get_position(c, c->read);
    ptxk__pair o;
    ptxk__copy_start start;
    ptxk__run_new(c, f, &r);
    ptxk__dec_set_position(c, c->sent, &position);
    ptxk__dec_pair(c, &position, &o);
    ptxk__dec_base(&r, &o);
    ptxk__rows_find_start(k, f, &r.s, o.base, r.row_bytes, o.row, o.rows, &start);
    ptxk__rows_set_start(k, f, &r.s, &start);
    ptxk__rows_issue_first(k, f, &r.s);
    if (ptxk__has_cp_async(k))
        ptx_cp_async_wait(k, f->stages - 1); /* waits for no step: other shared memory is read next */
}

/* -- decoder: products, x -- */

/* Copies `units` records of `unit` bytes from global to shared memory, with all workers; records of integers
   without their spare bytes. */
static void ptxk__dec_copy_records(ptxk__dec_state *c, ptx_val to, ptx_val from, ptx_val units,
                                   uint32_t unit) {
    ptx_kernel *k = c->k;
    uint32_t used = unit == c->f->integers ? unit - PTXK__X_SPARE : unit;
    ptx_val i, at, chunk, words[4];
    at = ptx_mul(k, units, ptx_u32(used / 16));
    i = ptx_for(k, c->tid, at, ptx_u32(PTXK__DEC_WORKERS));
    chunk = i;
    if (used < unit) {
        chunk = ptx_div(k, i, ptx_u32(used / 16));
        chunk = ptx_mad(k, chunk, ptx_u32((unit - used) / 16), i);
    }
    at = ptx_ptr_add(k, from, chunk, 16);
    ptxk_load16(k, NULL, ptx_at(at, 0), words);
    at = ptx_ptr_add(k, to, chunk, 16);
    ptx_st_vec(k, PTX_B32, 4, ptx_at(at, 0), words);
    ptx_end(k);
}

/* Copies the slice of x in the form in which it was stored. */
static void ptxk__dec_copy_x(ptxk__dec_state *c, uint32_t b, uint32_t x, uint32_t unit, uint32_t at) {
    ptx_kernel *k = c->k;
    ptx_val first, units, from, to, skip;
    first = ptx_get(k, c->j.first);
    units = ptx_get(k, c->j.end);
    units = ptx_sub(k, units, first);
    from = ptxk__job_get(c, PTX_U64, x);
    skip = ptxk__job_get(c, PTX_U32, PTXK__J_UNITS);
    skip = ptx_mad(k, skip, ptx_u32(b), first);
    from = ptx_ptr_add(k, ptx_ptr(from, PTX_GLOBAL), skip, unit);
    to = ptx_mul(k, units, ptx_u32(b * unit));
    to = ptx_add(k, to, ptx_u32(at));
    to = ptx_ptr_add(k, c->shared, to, 1);
    ptxk__dec_copy_records(c, to, from, units, unit);
}

/* Quantises the slice of the attention output where heads are not whole groups. A warp takes 256 values. */
static void ptxk__dec_quantise_attention(ptxk__dec_state *c, uint32_t b) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptx_val first, units, blocks, i, e, p, from, at, to, x[8];
    uint32_t n;
    first = ptx_get(k, c->j.first);
    units = ptx_get(k, c->j.end);
    units = ptx_sub(k, units, first);
    blocks = ptx_mul(k, units, ptx_u32(4));
    from = ptxk__dec_at(c, f->att + (uint64_t)b * f->q_rows * 4);
    i = ptx_for(k, c->warp, blocks, ptx_u32(PTXK__DEC_WARPS));
    {
        e = ptx_mad(k, first, ptx_u32(4), i);
        e = ptx_mul(k, e, ptx_u32(256));
        at = ptx_mul(k, c->lane, ptx_u32(8));
        e = ptx_add(k, e, at);
        p = ptx_setp(k, PTX_LT, e, ptx_u32(f->q_rows));
        at = ptx_ptr_add(k, from, e, 4);
        for (n = 0; n < 8; n += 4) ptx_ld_vec_if(k, p, PTX_F32, 4, ptx_at(at, 4 * n), ptx_f32(0), x + n);
        if (f->integers) {
            to = ptx_mul(k, units, ptx_u32(b * f->integers));
            to = ptx_ptr_add(k, c->shared, to, 1);
            at = ptx_shr(k, i, ptx_u32(2));
            to = ptx_ptr_add(k, to, at, f->integers);
            to = ptx_ptr_add(k, to, ptx_u32(f->ring), 1);
            at = ptx_and(k, i, ptx_u32(3));
            ptxk__store_x(k, f->planes, c->lane, at, to, x);
        }
        if (f->numbers) {
            to = ptx_mul(k, units, ptx_u32(b * f->numbers));
            to = ptx_ptr_add(k, c->shared, to, 1);
            to = ptx_ptr_add(k, to, i, 1024);
            to = ptx_ptr_add(k, to, ptx_u32(f->numbers_at), 1);
            ptxk__store_x(k, 0, c->lane, ptx_u32(0), to, x);
        }
    }
    ptx_end(k);
}

/* Brings x for this slice to shared memory in the forms that its matrices need, and the sum of its
   squares. */
static void ptxk__dec_load_x(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__job *j = &c->j;
    uint32_t b, tiles = ptxk__ceil_div(f->d.hidden, PTXK__DEC_TILE);
    ptx_val p, q, x, at, first, end, i, sum;
    ptx_var squares;
    x = ptx_get(k, j->kind);
    p = ptx_setp(k, PTX_EQ, x, ptx_u32(1));
    if (!f->whole_heads) {
        ptx_if(k, p);
        for (b = 0; b < f->d.batch; b++) ptxk__dec_quantise_attention(c, b);
        ptx_else(k);
    }
    if (f->integers) {
        if (f->numbers) {
            x = ptxk__job_get(c, PTX_U32, PTXK__J_WANTS);
            x = ptx_uniform(k, x);
            x = ptx_and(k, x, ptx_u32(1));
            q = ptx_setp(k, PTX_NE, x, ptx_u32(0));
            ptx_if(k, q);
        }
        for (b = 0; b < f->d.batch; b++) ptxk__dec_copy_x(c, b, PTXK__J_INTEGERS, f->integers, f->ring);
        if (f->numbers) ptx_end(k);
    }
    if (f->numbers) {
        if (f->integers) {
            x = ptxk__job_get(c, PTX_U32, PTXK__J_WANTS);
            x = ptx_uniform(k, x);
            q = ptx_setp(k, PTX_GE, x, ptx_u32(2));
            ptx_if(k, q);
        }
        for (b = 0; b < f->d.batch; b++) ptxk__dec_copy_x(c, b, PTXK__J_NUMBERS, f->numbers, f->numbers_at);
        if (f->integers) ptx_end(k);
    }
    if (!f->whole_heads) ptx_end(k);
    p = ptx_setp(k, PTX_LT, c->warp, ptx_u32(f->d.batch));
    ptx_if(k, p);
    squares = ptx_var_new(k, ptx_f32(0));
    x = ptx_get(k, j->kind);
    x = ptx_and(k, x, ptx_u32(1)); /* products with a norm are even */
    p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    ptx_if(k, p);
    first = ptx_get(k, j->first);
    first = ptx_mul(k, first, ptx_u32(PTXK__DEC_UNIT / PTXK__DEC_TILE));
    end = ptx_get(k, j->end);
    end = ptx_mul(k, end, ptx_u32(PTXK__DEC_UNIT / PTXK__DEC_TILE));
    end = ptx_min(k, end, ptx_u32(tiles));
    at = ptxk__dec_at(c, f->squares);
    at = ptx_ptr_add(k, at, c->warp, 4 * tiles);
    first = ptx_add(k, first, c->lane);
    i = ptx_for(k, first, end, ptx_u32(32));
    x = ptx_ptr_add(k, at, i, 4);
    x = ptx_ld(k, PTX_F32, ptx_at(x, 0));
    sum = ptx_get(k, squares);
    sum = ptx_op2(k, PTX_ADD, PTX_RN, sum, x);
    ptx_set(k, squares, sum);
    ptx_end(k);
    ptx_end(k);
    sum = ptx_get(k, squares);
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 32);
    at = ptx_ptr_add(k, c->shared, c->warp, 4);
    p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(at, f->squares_at), sum);
    ptx_end(k);
    ptxk__dec_worker_barrier(c);
}

/* -- decoder: products, the sums -- */

/* One thread writes what the finisher warp needs to know; the workers add the sums of squares. */
static void ptxk__dec_post_tile(ptxk__dec_state *c, const ptxk__dec_position *position, ptx_val slice,
                                ptx_val m) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__job *j = &c->j;
    ptxk__pair o;
    ptx_val p, x, y, at, sum, row, tile = position->tile;
    uint32_t w;
    p = ptx_setp(k, PTX_LT, c->tid, ptx_u32(f->d.batch));
    ptx_if(k, p);
    at = ptx_ptr_add(k, c->shared, c->tid, 4);
    sum = ptx_ld(k, PTX_F32, ptx_at(at, f->squares_at));
    at = ptx_ptr_add(k, m, c->tid, 4);
    ptx_st(k, PTX_F32, ptx_at(at, PTXK__M_SQUARES), sum);
    ptx_end(k);
    p = ptx_setp(k, PTX_EQ, c->tid, ptx_u32(0));
    ptx_if(k, p);
    ptxk__dec_pair(c, position, &o); /* warp 0: the tile's first row */
    x = ptx_get(k, j->kind);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_KIND), x);
    x = ptx_get(k, j->slices);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_SLICES), x);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_SLICE), slice);
    x = ptx_sub(k, o.rows, o.row);
    x = ptx_min(k, x, ptx_u32(PTXK__DEC_TILE));
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_ROWS), x);
    x = ptxk__job_get(c, PTX_U32, PTXK__J_EPOCH);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_EPOCH), x);
    x = ptxk__job_get(c, PTX_U32, PTXK__J_STRIDE);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_STRIDE), x);
    x = ptx_get(k, j->k);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_K), x);
    ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_ROW), o.row);
    if (f->d.batch > 1) {
        x = ptx_ld(k, PTX_U32, ptx_at(c->shared, f->info_at + PTXK__ACTIVE));
        ptx_st(k, PTX_U32, ptx_at(m, PTXK__M_KEEP), x);
    }
    x = ptxk__job_get(c, PTX_U64, PTXK__J_GAMMA);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_GAMMA), x);
    x = ptx_ld(k, PTX_F32, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, eps)));
    ptx_st(k, PTX_F32, ptx_at(m, PTXK__M_EPS), x);
    x = ptx_get(k, j->slices);
    x = ptx_mul(k, tile, x);
    y = ptxk__job_get(c, PTX_U32, PTXK__J_RECORD);
    x = ptx_mul_wide(k, x, y);
    y = ptxk__job_get(c, PTX_U64, PTXK__J_PARTS);
    x = ptx_add(k, x, y);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_PARTS), x);
    x = ptxk__job_get(c, PTX_U64, PTXK__J_ARRIVE);
    x = ptx_ptr_add(k, ptx_ptr(x, PTX_GLOBAL), tile, 4);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_ARRIVE), ptx_ptr(x, PTX_GENERIC));
    x = ptxk__job_get(c, PTX_U64, PTXK__J_FLAGS);
    x = ptx_ptr_add(k, ptx_ptr(x, PTX_GLOBAL), tile, 4);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_FLAG), ptx_ptr(x, PTX_GENERIC));
    row = ptxk__job_get(c, PTX_U32, PTXK__J_TO);
    for (w = 1; w < 3; w++) {
        p = ptx_setp(k, PTX_EQ, o.which, ptx_u32(w));
        x = ptxk__job_get(c, PTX_U32, PTXK__J_TO + 4 * w);
        row = ptx_selp(k, x, row, p);
    }
    row = ptx_add(k, row, o.row);
    x = ptxk__job_get(c, PTX_U64, PTXK__J_Y);
    x = ptx_ptr_add(k, ptx_ptr(x, PTX_GLOBAL), row, 4);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_Y), ptx_ptr(x, PTX_GENERIC));
    y = ptxk__job_get(c, PTX_U64, PTXK__J_BIAS);
    for (w = 1; w < 3; w++) {
        p = ptx_setp(k, PTX_EQ, o.which, ptx_u32(w));
        x = ptxk__job_get(c, PTX_U64, PTXK__J_BIAS + 8 * w);
        y = ptx_selp(k, x, y, p);
    }
    x = ptx_ptr_add(k, ptx_ptr(y, PTX_GLOBAL), o.row, 4);
    p = ptx_setp(k, PTX_EQ, y, ptx_u64(0));
    x = ptx_selp(k, ptx_u64(0), x, p);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_BIAS), x);
    y = ptxk__job_get(c, PTX_U64, PTXK__J_BIAS + 8);
    x = ptx_ptr_add(k, ptx_ptr(y, PTX_GLOBAL), o.row, 4);
    p = ptx_setp(k, PTX_EQ, y, ptx_u64(0));
    x = ptx_selp(k, ptx_u64(0), x, p);
    ptx_st(k, PTX_U64, ptx_at(m, PTXK__M_BIAS2), x);
    ptx_end(k);
}

/* Multiplies consecutive rows of one format, tile after tile, and posts the sums as messages. */
static void ptxk__run_all(ptxk__dec_state *c, const ptxk__rows *f, ptx_val slice) {
    ptx_kernel *k = c->k;
    uint32_t B = c->f->d.batch, b, i;
    ptxk__run r;
    ptxk__dec_position position;
    ptxk__pair o;
    ptx_val p, q, m, at, x, stride, value, local, sum[8][PTXK__ROWS_MAX];
    ptxk__run_new(c, f, &r);
    stride = ptx_get(k, c->j.end);
    x = ptx_get(k, c->j.first);
    stride = ptx_sub(k, stride, x);
    stride = ptx_mul(k, stride, ptx_u32(f->planes ? c->f->integers : c->f->numbers));
    ptx_loop(k);
    {
        position = ptxk__dec_get_position(c, c->read);
        x = ptx_or(k, position.second, position.offset);
        p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dec_await_free(c);
        m = ptxk__dec_message(c);
        ptxk__dec_post_tile(c, &position, slice, m);
        ptx_end(k);
        local = ptx_mad(k, c->warp, ptx_u32(4), position.offset);
        if (!f->block->aligned) { /* aligned formats do not depend on where the row begins */
            ptxk__dec_pair(c, &position, &o);
            ptxk__dec_base(&r, &o);
            ptxk__rows_slot_offsets(k, f, &r.s, o.base, r.row_bytes, o.row, o.rows);
        }
        x = ptx_ptr_add(k, c->shared, ptx_u32(f->planes ? c->f->ring : c->f->numbers_at), 1);
        ptxk__rows_finish(k, f, &r.s, x, stride, sum);
        m = ptxk__dec_message(c);
        at = ptx_mul(k, position.second, ptx_u32(4 * PTXK__DEC_TILE * B));
        at = ptx_ptr_add(k, m, at, 1);
        x = ptx_add(k, local, c->lane);
        at = ptx_ptr_add(k, at, x, 4);
        q = ptx_setp(k, PTX_LT, c->lane, ptx_u32(f->rows));
        for (b = 0; b < B; b++) {
            value = sum[b][0];
            for (i = 1; i < f->rows; i++) {
                p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(i));
                value = ptx_selp(k, sum[b][i], value, p);
            }
            ptx_guard(k, q);
            ptx_st(k, PTX_F32, ptx_at(at, PTXK__DEC_OUT_HEAD + 4 * PTXK__DEC_TILE * b), value);
        }
        ptxk__dec_advance(c, f->rows, &position);
        ptxk__dec_set_position(c, c->read, &position);
        x = ptx_or(k, position.second, position.offset);
        p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dec_send(c);
        ptx_end(k);
        p = ptxk__dec_position_has_format(c, &position, f);
        ptx_while(k, p);
    }
    ptx_end(k);
    if (ptxk__has_cp_async(k)) ptx_cp_async_wait_all(k); /* only empty groups remain */
}

/* One warp copies the layer's struct to shared memory before its first product, followed by the address of
   the norm after the layer: the next layer's, or the final one. */
static void ptxk__dec_load_layer(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const uint32_t words = (uint32_t)sizeof(ptxk_decoder_layer) / 8;
    ptx_val p, q, x, at, layer, layers;
    ptxk__dec_worker_barrier(c); /* all have finished with the layer before */
    p = ptx_setp(k, PTX_LE, c->tid, ptx_u32(words));
    ptx_if(k, p);
    layer = ptx_get(k, c->layer);
    layers = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, layer_count));
    at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, layers));
    at = ptx_ptr_add(k, at, layer, (uint32_t)sizeof(ptxk_decoder_layer));
    at = ptx_ptr_add(k, at, c->tid, 8);
    x = ptx_ld(k, PTX_U64, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, final_norm)));
    layer = ptx_add(k, layer, ptx_u32(1));
    p = ptx_setp(k, PTX_LT, c->tid, ptx_u32(words));
    q = ptx_setp(k, PTX_LT, layer, layers); /* its first word is the next layer's norm */
    p = ptx_or(k, p, q);
    x = ptx_ld_if(k, p, PTX_U64, ptx_with(ptx_at(at, 0), PTX_NC), x);
    at = ptx_ptr_add(k, c->shared, c->tid, 8);
    ptx_st(k, PTX_U64, ptx_at(at, c->f->info_at + PTXK__DEC_LAYER_AT), x);
    ptx_end(k);
    ptxk__dec_worker_barrier(c);
}

/* Loads an address from the layer. */
static ptx_val ptxk__dec_layer_address(ptxk__dec_state *c, size_t field) {
    return ptx_ld(c->k, PTX_U64, ptx_at(c->shared, (int64_t)(c->f->info_at + PTXK__DEC_LAYER_AT + field)));
}

/* Loads a matrix of the arguments or of the layer, at an address in parameter or shared memory. */
static void ptxk__dec_load_matrix(ptxk__dec_state *c, uint32_t i, ptx_val at, size_t offset, uint32_t rows,
                                  uint32_t to) {
    ptx_kernel *k = c->k;
    ptxk__job *j = &c->j;
    ptx_val x;
    x = ptx_ld(k, PTX_U64, ptx_at(at, (int64_t)(offset + offsetof(ptxk_decoder_matrix, weights))));
    ptx_set(k, j->base[i], x);
    x = ptx_ld(k, PTX_U64, ptx_at(at, (int64_t)(offset + offsetof(ptxk_decoder_matrix, bias))));
    ptxk__job_put(c, PTX_U64, PTXK__J_BIAS + 8 * i, x);
    x = ptx_ld(k, PTX_U32, ptx_at(at, (int64_t)(offset + offsetof(ptxk_decoder_matrix, format))));
    x = ptx_uniform(k, x); /* uniform over the warp */
    ptx_set(k, j->format[i], x);
    ptx_set(k, j->rows[i], ptx_u32(rows));
    ptxk__job_put(c, PTX_U32, PTXK__J_TO + 4 * i, ptx_u32(to));
}

static void ptxk__job_new(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptxk__job *j = &c->j;
    ptx_var *narrow[] = {&j->kind,  &j->k,   &j->slices,  &j->groups,  &j->skip,    &j->tiles,   &j->gated,
                         &j->first, &j->end, &j->edge[0], &j->edge[1], &c->read[0], &c->read[1], &c->read[2]};
    size_t i;
    for (i = 0; i < sizeof narrow / sizeof *narrow; i++) *narrow[i] = ptx_var_new(k, ptx_u32(0));
    for (i = 0; i < 3; i++) {
        j->base[i] = ptx_var_new(k, ptx_u64(0));
        j->format[i] = ptx_var_new(k, ptx_u32(0));
        j->rows[i] = ptx_var_new(k, ptx_u32(0));
    }
}

static ptx_val ptxk__dec_layers(ptxk__dec_state *c) {
    return ptxk__arg_u32(c->k, c->args, offsetof(ptxk_decoder_args, layer_count));
}

/* The epoch of what each layer makes once: round * layers + layer + 1. */
static ptx_val ptxk__dec_epoch(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptx_val layers = ptxk__dec_layers(c), round = ptx_get(k, c->round), layer = ptx_get(k, c->layer);
    layer = ptx_add(k, layer, ptx_u32(1));
    return ptx_mad(k, round, layers, layer);
}

/* The epoch of x, which is made once by the embedding and twice in each layer. */
static ptx_val ptxk__dec_epoch_x(ptxk__dec_state *c, ptx_val layer, uint32_t more) {
    ptx_kernel *k = c->k;
    ptx_val layers = ptxk__dec_layers(c), round = ptx_get(k, c->round);
    layers = ptx_mad(k, layers, ptx_u32(2), ptx_u32(1));
    layer = ptx_mad(k, layer, ptx_u32(2), ptx_u32(more));
    return ptx_mad(k, round, layers, layer);
}

/* Sets the variables of a kind of product. */
static void ptxk__dec_set_product(ptxk__dec_state *c, uint32_t kind) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__job *j = &c->j;
    ptx_val at, layer = ptx_get(k, c->layer), x;
    uint32_t tq = ptxk__ceil_div(f->q_rows, PTXK__DEC_TILE), tk = ptxk__ceil_div(f->kv_rows, PTXK__DEC_TILE);
    uint32_t i, matrices = kind == 0 ? 3 : kind == 2 ? 2 : 1;
    for (i = matrices; i < 3; i++) {
        ptx_set(k, j->base[i], ptx_u64(0));
        ptxk__job_put(c, PTX_U64, PTXK__J_BIAS + 8 * i, ptx_u64(0));
        ptx_set(k, j->format[i], ptx_u32(0));
        ptx_set(k, j->rows[i], ptx_u32(0));
        ptxk__job_put(c, PTX_U32, PTXK__J_TO + 4 * i, ptx_u32(0));
    }
    at = ptx_ptr_add(k, c->shared, ptx_u32(f->info_at + PTXK__DEC_LAYER_AT), 1);
    ptx_set(k, j->kind, ptx_u32(kind));
    ptx_set(k, j->edge[0], ptx_u32(kind ? 0xffffffffu : tq));
    ptx_set(k, j->edge[1], ptx_u32(kind ? 0xffffffffu : tq + tk));
    ptx_set(k, j->k, ptx_u32(f->columns[kind]));
    ptx_set(k, j->tiles, ptx_u32(f->tiles[kind]));
    ptx_set(k, j->gated, ptx_u32(kind == 2));
    ptxk__job_put(c, PTX_U32, PTXK__J_RECORD, ptx_u32(f->record[kind]));
    if (!(kind & 1)) ptxk__job_put(c, PTX_U64, PTXK__J_GAMMA, ptx_u64(0));
    ptxk__job_put_at(c, PTXK__J_ARRIVE, f->arrive[kind]);
    ptxk__job_put_at(c, PTXK__J_PARTS, f->parts[kind]);
    if (kind == 0) {
        ptxk__dec_load_matrix(c, 0, at, offsetof(ptxk_decoder_layer, q), f->q_rows, 0);
        ptxk__dec_load_matrix(c, 1, at, offsetof(ptxk_decoder_layer, k), f->kv_rows, f->q_rows);
        ptxk__dec_load_matrix(c, 2, at, offsetof(ptxk_decoder_layer, v), f->kv_rows, f->q_rows + f->kv_rows);
    } else if (kind == 1) {
        ptxk__dec_load_matrix(c, 0, at, offsetof(ptxk_decoder_layer, output), f->d.hidden, 0);
    } else if (kind == 2) {
        ptxk__dec_load_matrix(c, 0, at, offsetof(ptxk_decoder_layer, gate), f->d.ffn, 0);
        ptxk__dec_load_matrix(c, 1, at, offsetof(ptxk_decoder_layer, up), f->d.ffn, 0);
    } else if (kind == 3) {
        ptxk__dec_load_matrix(c, 0, at, offsetof(ptxk_decoder_layer, down), f->d.hidden, 0);
    } else {
        ptxk__dec_load_matrix(c, 0, c->args, offsetof(ptxk_decoder_args, output), f->d.vocab, 0);
    }
    if (kind & 1) { /* the result will be multiplied by the weights of the norm that follows */
        x = ptxk__dec_layer_address(c, kind == 1 ? offsetof(ptxk_decoder_layer, ffn_norm)
                                                 : sizeof(ptxk_decoder_layer));
        ptxk__job_put(c, PTX_U64, PTXK__J_GAMMA, x);
    }
    if (f->integers && f->numbers) {
        ptx_val wants = ptx_u32(0);
        for (i = 0; i < matrices; i++) {
            x = ptx_get(k, j->format[i]);
            x = ptx_shr(k, ptx_mov(k, ptx_u32(f->number_formats)), x);
            x = ptx_and(k, x, ptx_u32(1));
            x = ptx_add(k, x, ptx_u32(1));
            wants = i ? ptx_or(k, wants, x) : x;
        }
        ptxk__job_put(c, PTX_U32, PTXK__J_WANTS, wants);
    }
    ptxk__job_put_at(c, PTXK__J_INTEGERS,
                     kind == 3   ? f->ff_integers
                     : kind == 1 ? f->att_integers
                                 : f->x_integers);
    ptxk__job_put_at(c, PTXK__J_NUMBERS,
                     kind == 3   ? f->ff_numbers
                     : kind == 1 ? f->att_numbers
                                 : f->x_numbers);
    ptxk__job_put(c, PTX_U32, PTXK__J_UNITS,
                  ptx_u32(kind == 3   ? f->ff_units
                          : kind == 1 ? f->att_units
                                      : f->x_units));
    if (kind == 4) {
        x = ptx_ld(k, PTX_U64, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, logits)));
        ptxk__job_put(c, PTX_U64, PTXK__J_Y, x);
        ptxk__job_put_at(c, PTXK__J_FLAGS, 0); /* unused */
    } else {
        ptxk__job_put_at(c, PTXK__J_Y, kind == 0 ? f->qkv : kind == 2 ? 0 : f->x); /* unused for kind 2 */
        ptxk__job_put_at(c, PTXK__J_FLAGS, kind == 0 ? f->flags_qkv : kind == 2 ? f->flags_ff : f->flags_x);
    }
    ptxk__job_put(c, PTX_U32, PTXK__J_STRIDE,
                  ptx_u32(kind == 0   ? f->qkv_rows
                          : kind == 4 ? f->d.vocab
                                      : f->d.hidden));
    x = kind == 1   ? ptxk__dec_epoch_x(c, layer, 2)
        : kind == 3 ? ptxk__dec_epoch_x(c, layer, 3)
                    : ptxk__dec_epoch(c);
    ptxk__job_put(c, PTX_U32, PTXK__J_EPOCH, x);
}

/* Computes the flags that this slice of x waits for. */
static void ptxk__dec_input_flags(ptxk__dec_state *c, ptxk__wait *w) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__job *j = &c->j;
    ptx_val kind = ptx_get(k, j->kind), first = ptx_get(k, j->first), end = ptx_get(k, j->end), a, b, p, q;
    ptx_val layer = ptx_get(k, c->layer), columns = ptx_get(k, j->k), per;
    ptx_var flags, target;
    flags = ptx_var_new(k, ptx_u32(f->flags_x));
    a = ptx_shr(k, kind, ptx_u32(1)); /* 0, 2, 4: 1 + 2 layer, 2 + 2 layer, 1 + 2 layers */
    p = ptx_setp(k, PTX_EQ, a, ptx_u32(1));
    b = ptx_selp(k, ptx_u32(1), ptx_u32(0), p);
    a = ptxk__dec_epoch_x(c, layer, 1);
    a = ptx_add(k, a, b);
    target = ptx_var_new(k, a);
    per = ptx_mov(k, ptx_u32(PTXK__DEC_TILE));
    q = ptx_setp(k, PTX_EQ, kind, ptx_u32(3));
    a = ptxk__dec_epoch(c);
    ptx_guard(k, q);
    ptx_set(k, flags, ptx_u32(f->flags_ff));
    ptx_guard(k, q);
    ptx_set(k, target, a);
    q = ptx_setp(k, PTX_EQ, kind, ptx_u32(1));
    a = ptx_mul(k, a, ptx_u32(f->d.batch));
    ptx_guard(k, q);
    ptx_set(k, flags, ptx_u32(f->flags_att));
    ptx_guard(k, q);
    ptx_set(k, target, a);
    per = ptx_selp(k, ptx_u32(f->group * f->d.head_dim), per, q);
    first = ptx_mul(k, first, ptx_u32(PTXK__DEC_UNIT));
    end = ptx_mul(k, end, ptx_u32(PTXK__DEC_UNIT));
    end = ptx_min(k, end, columns);
    end = ptx_sub(k, end, ptx_u32(1));
    first = ptx_div(k, first, per);
    end = ptx_div(k, end, per);
    end = ptx_sub(k, end, first);
    w->ranges = 1;
    w->first[0] = first;
    w->count[0] = ptx_add(k, end, ptx_u32(1));
    w->target = ptx_get(k, target);
    a = ptx_get(k, flags);
    w->flags = ptx_ptr_add(k, c->workspace, a, 1);
    w->step = kind;
}

/* Runs a product: this block's tiles of its slice, or of its slices in turn. */
static void ptxk__dec_run_product(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__job *j = &c->j;
    ptxk__wait w;
    ptxk__dec_position position;
    ptxk__pair o;
    ptx_val kind, slices, slice, groups, group, p, q, a, units, per, tiles;
    ptx_var there;
    uint32_t i, pass;
    kind = ptx_get(k, j->kind);
    a = ptx_ptr_add(k, c->shared, kind, 4);
    slices = ptx_ld(k, PTX_U32, ptx_at(a, f->info_at + 192));
    slices = ptx_uniform(k, slices);
    ptx_set(k, j->slices, slices);
    p = ptx_setp(k, PTX_LE, slices, c->blocks);
    groups = ptx_div(k, c->blocks, slices);
    groups = ptx_selp(k, groups, ptx_u32(1), p);
    ptx_set(k, j->groups, groups);
    a = ptx_selp(k, slices, c->blocks, p);
    ptx_set(k, j->skip, a);
    slice = ptx_rem(k, c->block, slices);
    slice = ptx_selp(k, slice, c->block, p);
    group = ptx_div(k, c->block, slices);
    group = ptx_selp(k, group, ptx_u32(0), p);
    units = ptx_get(k, j->k);
    units = ptx_add(k, units, ptx_u32(PTXK__DEC_UNIT - 1));
    units = ptx_shr(k, units, ptx_u32(10));
    per = ptxk_div_up(k, units, slices);
    tiles = ptx_get(k, j->tiles);
    p = ptx_setp(k, PTX_LT, group, groups);
    q = ptx_setp(k, PTX_LT, group, tiles);
    p = ptx_and(k, p, q);
    ptx_if(k, p);
    a = ptx_get(k, j->skip);
    slice = ptx_for(k, slice, slices, a);
    {
        a = ptx_mul(k, slice, per);
        ptx_set(k, j->first, a);
        a = ptx_add(k, a, per);
        a = ptx_min(k, a, units);
        ptx_set(k, j->end, a);
        position.tile = group;
        position.second = position.offset = ptx_u32(0);
        ptxk__dec_set_position(c, c->read, &position);
        there = ptx_var_new(k, ptx_u32(0));
        ptxk__rows_vars(k, &c->kept, PTXK__DEC_ROUNDS); /* created here: not live during attention */
        for (i = 0; i < 3; i++) c->sent[i] = ptx_var_new(k, ptx_u32(0));
        ptx_loop(k);
        {
            position = ptxk__dec_get_position(c, c->read);
            p = ptx_setp(k, PTX_LT, position.tile, tiles);
            ptx_while(k, p);
            ptxk__dec_pair(c, &position, &o);
            for (pass = 0; pass < 2; pass++) {
                for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++) {
                    if (!(f->d.formats >> ptxk__blocks[i].id & 1)) continue;
                    p = ptx_setp(k, PTX_EQ, o.format, ptx_u32(ptxk__blocks[i].id));
                    ptx_if(k, p);
                    if (pass)
                        ptxk__run_all(c, &f->form[i], slice);
                    else
                        ptxk__run_first(c, &f->form[i]);
                    ptx_end(k);
                }
                if (pass) break;
                a = ptx_get(k, there);
                p = ptx_setp(k, PTX_EQ, a, ptx_u32(0));
                ptx_if(k, p);
                ptxk__dec_input_flags(c, &w);
                ptxk__dec_wait(c, &w);
                ptxk__dec_load_x(c);
                ptx_set(k, there, ptx_u32(1));
                ptx_end(k);
            }
        }
        ptx_end(k);
    }
    ptx_end(k);
    ptx_end(k);
}

/* -- decoder: the finisher warp -- */

/* Stores a tile of x, or of silu(gate) * up, in the forms that the next product needs: a group of 32. */
static void ptxk__dec_store_x(ptxk__dec_state *c, uint32_t b, ptx_val gated, ptx_val row, ptx_val x,
                              ptx_val gamma) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t tiles = ptxk__ceil_div(f->d.hidden, PTXK__DEC_TILE);
    ptx_val group, at, sum, p, q;
    group = ptx_shr(k, row, ptx_u32(5));
    sum = ptx_op2(k, PTX_MUL, PTX_RN, x, x);
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 32);
    at = ptxk__dec_at(c, f->squares + (uint64_t)4 * b * tiles);
    at = ptx_ptr_add(k, at, group, 4);
    p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    q = ptx_not(k, gated);
    p = ptx_and(k, p, q);
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(at, 0), sum);
    x = ptx_op2(k, PTX_MUL, PTX_RN, x, gamma);
    if (f->integers) {
        at = ptx_selp(k, ptx_u64(f->ff_integers + (uint64_t)b * f->ff_units * f->integers),
                      ptx_u64(f->x_integers + (uint64_t)b * f->x_units * f->integers), gated);
        at = ptx_ptr_add(k, c->workspace, at, 1);
        ptxk__store_x_group(k, f->planes, c->lane, group, at, x);
    }
    if (f->numbers) {
        at = ptx_selp(k, ptx_u64(f->ff_numbers + (uint64_t)b * f->ff_units * f->numbers),
                      ptx_u64(f->x_numbers + (uint64_t)b * f->x_units * f->numbers), gated);
        at = ptx_ptr_add(k, c->workspace, at, 1);
        ptxk__store_x_group(k, 0, c->lane, group, at, x);
    }
}

/* A tile that the finisher warp received: the words of the message, and one row of the tile for each lane. */
typedef struct ptxk__result {
    ptx_val kind, slices, slice, inside, gated, normed, epoch, stride, n, row, gamma, eps, keep;
    ptx_val parts, arrive, flag, y, bias[2];
    ptx_var value[2][4], squares[4]; /* for gate and up, for each column */
    ptx_var whole;                   /* 1: `value` is the sum of all slices */
} ptxk__result;

/* Reads the message and releases its buffer to the workers. */
static void ptxk__dec_read_message(ptxk__dec_state *c, ptxk__result *r, ptx_val m) {
    ptx_kernel *k = c->k;
    uint32_t B = c->f->d.batch, b;
    ptx_val x, at, id, q, rows;
    r->slices = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_SLICES));
    r->slices = ptx_warp_uniform(k, r->slices);
    r->slice = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_SLICE));
    rows = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_ROWS));
    r->epoch = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_EPOCH));
    r->stride = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_STRIDE));
    r->n = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_K));
    r->row = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_ROW));
    if (B > 1) r->keep = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_KEEP));
    r->gamma = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_GAMMA));
    r->eps = ptx_ld(k, PTX_F32, ptx_at(m, PTXK__M_EPS));
    r->parts = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_PARTS));
    r->arrive = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_ARRIVE));
    r->flag = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_FLAG));
    r->y = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_Y));
    r->bias[0] = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_BIAS));
    r->bias[1] = ptx_ld(k, PTX_U64, ptx_at(m, PTXK__M_BIAS2));
    r->gated = ptx_setp(k, PTX_EQ, r->kind, ptx_u32(2));
    r->normed = ptx_and(k, r->kind, ptx_u32(1)); /* products with a norm are even */
    r->normed = ptx_setp(k, PTX_EQ, r->normed, ptx_u32(0));
    r->inside = ptx_setp(k, PTX_LT, c->lane, rows);
    at = ptx_ptr_add(k, m, c->lane, 4);
    q = ptx_and(k, r->inside, r->gated);
    for (b = 0; b < B; b++) {
        x = ptx_ld_if(k, r->inside, PTX_F32, ptx_at(at, PTXK__DEC_OUT_HEAD + 4 * PTXK__DEC_TILE * b),
                      ptx_f32(0));
        ptx_set(k, r->value[0][b], x);
        x = ptx_ld_if(k, q, PTX_F32, ptx_at(at, PTXK__DEC_OUT_HEAD + 4 * PTXK__DEC_TILE * (B + b)),
                      ptx_f32(0));
        ptx_set(k, r->value[1][b], x);
        x = ptx_ld(k, PTX_F32, ptx_at(m, PTXK__M_SQUARES + 4 * b));
        ptx_set(k, r->squares[b], x);
    }
    id = ptx_get(k, c->message);
    x = ptx_xor(k, id, ptx_u32(1));
    ptx_set(k, c->message, x);
    id = ptx_add(k, id, ptx_u32(4));
    (void)ptx_op2(k, PTX_BAR_ARRIVE, 0, id, ptx_imm(PTXK__DEC_THREADS)); /* the message has been read */
}

/* The address of a slice's partial result: its sums for this lane, and its sums of squares. */
static ptx_val ptxk__dec_record(ptxk__dec_state *c, const ptxk__result *r, ptx_val slice, ptx_val record,
                                ptx_val squares_at, ptx_val *squares) {
    ptx_val at = ptx_mul_wide(c->k, slice, record);
    at = ptx_ptr_add(c->k, r->parts, at, 1);
    *squares = ptx_ptr_add(c->k, at, squares_at, 1);
    return ptx_ptr_add(c->k, at, c->lane, 4);
}

/* Writes this slice's partial result to memory. Returns whether all the others are there already. */
static ptx_val ptxk__dec_store_part(ptxk__dec_state *c, const ptxk__result *r, ptx_val at, ptx_val squares) {
    ptx_kernel *k = c->k;
    uint32_t B = c->f->d.batch, b;
    ptx_val x, q, last;
    ptx_var was;
    for (b = 0; b < B; b++) {
        x = ptx_get(k, r->value[0][b]);
        ptx_st(k, PTX_F32, ptx_at(at, 4 * PTXK__DEC_TILE * b), x);
        x = ptx_get(k, r->value[1][b]);
        ptx_guard(k, r->gated);
        ptx_st(k, PTX_F32, ptx_at(at, 4 * PTXK__DEC_TILE * (B + b)), x);
    }
    q = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    x = ptx_and(k, q, r->normed);
    ptx_if(k, x);
    for (b = 0; b < B; b++) {
        x = ptx_get(k, r->squares[b]);
        ptx_st(k, PTX_F32, ptx_at(squares, 4 * b), x);
    }
    ptx_end(k);
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
    last = ptx_sub(k, r->slices, ptx_u32(1));
    was = ptx_var_new(k, ptx_u32(0));
    ptx_if(k, q);
    x = ptx_atom(k, PTX_ATOM_INC, ptx_with(ptx_at(ptx_ptr(r->arrive, PTX_GLOBAL), 0), PTX_ACQ_REL | PTX_GPU),
                 last);
    ptx_set(k, was, x);
    ptx_end(k);
    x = ptx_get(k, was);
    x = ptx_shfl_idx(k, x, ptx_u32(0), ptx_u32(31), ptx_u32(0xffffffffu));
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
    last = ptx_setp(k, PTX_EQ, ptx_as(x, PTX_U32), last);
    return ptx_warp_uniform(k, last);
}

/* Joins the partial results of several slices: the last to arrive adds them up in their order; it still has
   its own. */
static void ptxk__dec_join_slices(ptxk__dec_state *c, ptxk__result *r) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t B = f->d.batch, b, g;
    ptx_val x, p, q, s, at, squares, old, last, record, squares_at, others, own[3][4];
    record = ptx_selp(k, ptx_u32(f->record[2]), ptx_u32(f->record[0]), r->gated);
    squares_at = ptx_selp(k, ptx_u32(2 * B * 4 * PTXK__DEC_TILE), ptx_u32(B * 4 * PTXK__DEC_TILE), r->gated);
    r->parts = ptx_ptr(r->parts, PTX_GLOBAL);
    at = ptxk__dec_record(c, r, r->slice, record, squares_at, &squares);
    last = ptxk__dec_store_part(c, r, at, squares);
    x = ptx_selp(k, ptx_u32(1), ptx_u32(0), last);
    ptx_set(k, r->whole, x);
    ptx_if(k, last);
    for (b = 0; b < B; b++) {
        own[2][b] = ptx_get(k, r->squares[b]);
        ptx_set(k, r->squares[b], ptx_f32(0));
        for (g = 0; g < 2; g++) {
            own[g][b] = ptx_get(k, r->value[g][b]);
            ptx_set(k, r->value[g][b], ptx_f32(0));
        }
    }
    s = ptx_for(k, ptx_u32(0), r->slices, ptx_u32(1));
    at = ptxk__dec_record(c, r, s, record, squares_at, &squares);
    others = ptx_setp(k, PTX_NE, s, r->slice);
    for (b = 0; b < B; b++) {
        ptx_var sum[3];
        sum[0] = r->value[0][b], sum[1] = r->value[1][b], sum[2] = r->squares[b];
        for (g = 0; g < 3; g++) {
            p = g == 2 ? squares : at;
            q = g == 0 ? others : ptx_and(k, others, g == 1 ? r->gated : r->normed);
            x = ptx_ld_if(k, q, PTX_F32, /* 0 where the kind of product does not have it */
                          ptx_at(p, g == 2 ? 4 * b : 4 * PTXK__DEC_TILE * (g * B + b)), own[g][b]);
            old = ptx_get(k, sum[g]);
            x = ptx_op2(k, PTX_ADD, PTX_RN, x, old);
            ptx_set(k, sum[g], x);
        }
    }
    ptx_end(k);
    ptx_end(k);
}

/* Completes a column's sums: times the norm's factor, plus the bias, gated or added to x; stores and returns
   the value. *passed: the next product takes it. */
static ptx_val ptxk__dec_complete_value(ptxk__dec_state *c, const ptxk__result *r, uint32_t b,
                                        const ptx_val *bias, ptx_val y, ptx_val *passed) {
    ptx_kernel *k = c->k;
    ptx_val x, p, old, factor, added, v[2];
    uint32_t g;
    x = ptx_get(k, r->squares[b]);
    factor = ptxk__norm_factor(k, x, r->n, r->eps);
    factor = ptx_selp(k, factor, ptx_f32(1), r->normed);
    for (g = 0; g < 2; g++) {
        v[g] = ptx_get(k, r->value[g][b]);
        v[g] = ptx_fma(k, v[g], factor, bias[g]);
    }
    x = c->f->d.gelu ? ptxk__gelu(k, v[0]) : ptxk__silu(k, v[0]);
    x = ptx_op2(k, PTX_MUL, PTX_RN, x, v[1]);
    x = ptx_selp(k, x, v[0], r->gated);
    added = ptx_and(k, r->kind, ptx_u32(1)); /* output and down add to x */
    added = ptx_setp(k, PTX_NE, added, ptx_u32(0));
    p = ptx_and(k, r->inside, added);
    old = ptx_ld_if(k, p, PTX_F32, ptx_at(y, 0), ptx_f32(0));
    old = ptx_op2(k, PTX_ADD, PTX_RN, x, old);
    x = ptx_selp(k, old, x, p);
    p = ptx_not(k, r->gated);
    p = ptx_and(k, p, r->inside);
    if (c->f->d.batch > 1) {
        ptx_val rests = ptx_and(k, r->keep, ptx_u32(1u << b)), logits;
        rests = ptx_setp(k, PTX_EQ, rests, ptx_u32(0));
        logits = ptx_setp(k, PTX_EQ, r->kind, ptx_u32(4));
        rests = ptx_and(k, rests, logits);
        rests = ptx_not(k, rests);
        p = ptx_and(k, p, rests);
    }
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(y, 0), x);
    p = ptx_or(k, added, r->gated);
    *passed = ptx_warp_uniform(k, p);
    return x;
}

/* Merges the largest logit of a tile into the maximum of the sequence. */
static void ptxk__dec_update_largest(ptxk__dec_state *c, const ptxk__result *r, uint32_t b, ptx_val x) {
    ptx_kernel *k = c->k;
    ptx_val at, key, best;
    uint32_t g;
    at = ptx_add(k, r->row, c->lane);
    key = ptxk__sample_key(k, x, at);
    key = ptx_selp(k, key, ptx_u64(0), r->inside);
    for (g = 1; g < 32; g *= 2) key = ptxk__max_u64(k, key, g);
    best = ptx_ptr_add(k, c->workspace, ptx_u32(PTXK__BEST + 8 * b), 1);
    at = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    ptx_guard(k, at);
    ptx_red(k, PTX_ATOM_MAX, ptx_with(ptx_at(best, 0), PTX_RELAXED | PTX_GPU), key);
}

/* Announces the tile: counts a tile of logits; of others sets the flag to the epoch. */
static void ptxk__dec_announce(ptxk__dec_state *c, const ptxk__result *r) {
    ptx_kernel *k = c->k;
    ptx_val p, at;
    ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
    p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    ptx_if(k, p);
    p = ptx_setp(k, PTX_EQ, r->kind, ptx_u32(4));
    ptx_if(k, p);
    at = ptx_ptr_add(k, c->workspace, ptx_u32(PTXK__DONE), 1);
    ptx_red(k, PTX_ATOM_ADD, ptx_with(ptx_at(at, 0), PTX_RELEASE | PTX_GPU), ptx_u32(1));
    ptx_else(k);
    at = ptx_ptr(r->flag, PTX_GLOBAL);
    ptx_st(k, PTX_U32, ptx_with(ptx_at(at, 0), PTX_RELEASE | PTX_GPU), r->epoch);
    ptx_end(k);
    ptx_end(k);
}

/* Finishes a tile whose slices are all in: computes its values and stores them in the forms that are
   needed. */
static void ptxk__dec_finish_tile(ptxk__dec_state *c, ptxk__result *r) {
    ptx_kernel *k = c->k;
    uint32_t B = c->f->d.batch, b, g;
    ptx_val x, p, at, y, passed, gamma, bias[2];
    for (g = 0; g < 2; g++) {
        p = ptx_setp(k, PTX_NE, r->bias[g], ptx_u64(0));
        p = ptx_and(k, p, r->inside);
        if (g) p = ptx_and(k, p, r->gated);
        at = ptx_ptr_add(k, ptx_ptr(r->bias[g], PTX_GLOBAL), c->lane, 4);
        bias[g] = ptx_ld_if(k, p, PTX_F32, ptx_with(ptx_at(at, 0), PTX_NC), ptx_f32(0));
    }
    r->n = ptx_cvt(k, PTX_F32, r->n);
    y = ptx_ptr_add(k, ptx_ptr(r->y, PTX_GLOBAL), c->lane, 4);
    p = ptx_setp(k, PTX_NE, r->gamma, ptx_u64(0));
    p = ptx_and(k, p, r->inside);
    at = ptx_ptr_add(k, ptx_ptr(r->gamma, PTX_GLOBAL), r->row, 4);
    at = ptx_ptr_add(k, at, c->lane, 4);
    gamma = ptx_ld_if(k, p, PTX_F32, ptx_with(ptx_at(at, 0), PTX_NC), ptx_f32(1));
    for (b = 0; b < B; b++) {
        x = ptxk__dec_complete_value(c, r, b, bias, y, &passed);
        ptx_if(k, passed);
        at = ptx_selp(k, x, ptx_f32(0), r->inside);
        ptxk__dec_store_x(c, b, r->gated, r->row, at, gamma);
        ptx_end(k);
        p = ptx_setp(k, PTX_EQ, r->kind, ptx_u32(4));
        ptx_if(k, p);
        ptxk__dec_update_largest(c, r, b, x);
        ptx_end(k);
        if (b + 1 < B) y = ptx_ptr_add(k, y, r->stride, 4);
    }
}

static void ptxk__dec_finisher_loop(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptxk__result r;
    ptx_val m, id, p, x;
    uint32_t b, g;
    for (g = 0; g < 2; g++) { /* both messages are free */
        (void)ptx_op2(k, PTX_BAR_ARRIVE, 0, ptx_imm(4 + g), ptx_imm(PTXK__DEC_THREADS));
    }
    for (b = 0; b < c->f->d.batch; b++) {
        r.squares[b] = ptx_var_new(k, ptx_f32(0));
        for (g = 0; g < 2; g++) r.value[g][b] = ptx_var_new(k, ptx_f32(0));
    }
    r.whole = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    {
        id = ptx_get(k, c->message);
        id = ptx_add(k, id, ptx_u32(2));
        (void)ptx_op2(k, PTX_BAR_SYNC, 0, id, ptx_imm(PTXK__DEC_THREADS));
        m = ptxk__dec_message(c);
        r.kind = ptx_ld(k, PTX_U32, ptx_at(m, PTXK__M_KIND));
        r.kind = ptx_warp_uniform(k, r.kind);
        p = ptx_setp(k, PTX_NE, r.kind, ptx_u32(PTXK__M_QUIT));
        ptx_while(k, p);
        ptxk__dec_read_message(c, &r, m);
        ptx_set(k, r.whole, ptx_u32(1));
        p = ptx_setp(k, PTX_GT, r.slices, ptx_u32(1));
        ptx_if(k, p);
        ptxk__dec_join_slices(c, &r);
        ptx_end(k);
        x = ptx_get(k, r.whole);
        p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
        p = ptx_warp_uniform(k, p);
        ptx_if(k, p);
        ptxk__dec_finish_tile(c, &r);
        ptxk__dec_announce(c, &r);
        ptx_end(k);
    }
    ptx_end(k);
}

/* -- decoder: the embedding -- */

/* Loads a word of the leader's decision. */
static ptx_val ptxk__dec_info(ptxk__dec_state *c, uint32_t word) {
    ptx_val x = ptx_ld(c->k, PTX_U32, ptx_at(c->shared, c->f->info_at + word));
    return ptx_uniform(c->k, x);
}

static void ptxk__dec_embed(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t units = ptxk__ceil_div(f->d.hidden, 256), tiles = ptxk__ceil_div(f->d.hidden, PTXK__DEC_TILE);
    uint32_t b, n;
    ptx_val u, start, step, table, format, token, at, octet, inside, unit_bytes, row, x[8], to, p, block;
    ptx_val gamma, epoch, g[8], sum, record;
    ptx_var value[8];
    ptxk__octet o;
    size_t i;
    table = ptxk__arg_ptr(k, c->args,
                          offsetof(ptxk_decoder_args, embedding) + offsetof(ptxk_decoder_matrix, weights));
    format = ptxk__arg_u32(k, c->args,
                           offsetof(ptxk_decoder_args, embedding) + offsetof(ptxk_decoder_matrix, format));
    unit_bytes = ptxk__dec_by_format(c, format, ptxk__dec_unit);
    row = ptx_mul_wide(k, unit_bytes, ptx_u32(f->d.hidden));
    row = ptx_shr(k, row, ptx_u32(8));
    start = ptx_mad(k, c->warp, c->blocks, c->block);
    step = ptx_mul(k, c->blocks, ptx_u32(PTXK__DEC_WARPS));
    u = ptx_for(k, start, ptx_u32(units), step);
    {
        gamma = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, layers));
        gamma = ptx_ld(k, PTX_U64, ptx_at(gamma, (int64_t)offsetof(ptxk_decoder_layer, attention_norm)));
        octet = ptx_mad(k, u, ptx_u32(32), c->lane);
        inside = ptx_setp(k, PTX_LT, octet, ptx_u32(f->d.hidden / 8));
        block = ptx_mul(k, u, unit_bytes);
        for (b = 0; b < f->d.batch; b++) {
            for (n = 0; n < 8; n++) value[n] = ptx_var_new(k, ptx_f32(0));
            ptx_if(k, inside);
            token = ptxk__dec_info(c, PTXK__TOKEN + 4 * b);
            token = ptx_cvt(k, PTX_U64, token);
            at = ptx_mul(k, token, row);
            at = ptx_ptr_add(k, table, at, 1);
            at = ptx_ptr_add(k, at, block, 1);
            to = ptxk__dec_at(c, f->x + (uint64_t)b * f->d.hidden * 4);
            to = ptx_ptr_add(k, to, octet, 32);
            for (i = 0; i < sizeof ptxk__blocks / sizeof *ptxk__blocks; i++) {
                if (!(f->d.formats >> ptxk__blocks[i].id & 1)) continue;
                p = ptx_setp(k, PTX_EQ, format, ptx_u32(ptxk__blocks[i].id));
                ptx_if(k, p);
                ptxk__octet_read(k, ptxk__blocks[i].id, at, c->lane, &o);
                for (n = 0; n < 8; n++) {
                    x[n] = o.has_offset ? ptx_fma(k, o.q[n], o.scale, o.offset)
                           : o.scaled   ? ptx_op2(k, PTX_MUL, PTX_RN, o.q[n], o.scale)
                                        : o.q[n];
                    if (f->d.embedding_scale < 0 || f->d.embedding_scale > 0)
                        x[n] = ptx_op2(k, PTX_MUL, PTX_RN, x[n], ptx_f32((double)f->d.embedding_scale));
                    ptx_set(k, value[n], x[n]);
                }
                ptx_st_vec(k, PTX_F32, 4, ptx_at(to, 0), x);
                ptx_st_vec(k, PTX_F32, 4, ptx_at(to, 16), x + 4);
                ptx_end(k);
            }
            ptx_end(k);
            for (n = 0; n < 8; n++) x[n] = ptx_get(k, value[n]);
            sum = ptx_op2(k, PTX_MUL, PTX_RN, x[0], x[0]);
            sum = ptxk_dot(k, 7, x + 1, x + 1, sum);
            sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 4);
            at = ptxk__dec_at(c, f->squares + (uint64_t)4 * b * tiles);
            at = ptx_ptr_add(k, at, octet, 1); /* 4 bytes for 4 lanes */
            p = ptx_and(k, c->lane, ptx_u32(3));
            p = ptx_setp(k, PTX_EQ, p, ptx_u32(0));
            p = ptx_and(k, p, inside);
            ptx_guard(k, p);
            ptx_st(k, PTX_F32, ptx_at(at, 0), sum);
            at = ptx_ptr_add(k, ptx_ptr(gamma, PTX_GLOBAL), octet, 32);
            for (n = 0; n < 8; n += 4)
                ptx_ld_vec_if(k, inside, PTX_F32, 4, ptx_with(ptx_at(at, 4 * n), PTX_NC), ptx_f32(0), g + n);
            for (n = 0; n < 8; n++) x[n] = ptx_op2(k, PTX_MUL, PTX_RN, x[n], g[n]);
            if (f->integers) {
                record = ptxk__dec_at(c, f->x_integers + (uint64_t)b * f->x_units * f->integers);
                at = ptx_shr(k, u, ptx_u32(2));
                record = ptx_ptr_add(k, record, at, f->integers);
                at = ptx_and(k, u, ptx_u32(3));
                ptxk__store_x(k, f->planes, c->lane, at, record, x);
            }
            if (f->numbers) {
                record = ptxk__dec_at(c, f->x_numbers + (uint64_t)b * f->x_units * f->numbers);
                record = ptx_ptr_add(k, record, u, 1024);
                ptxk__store_x(k, 0, c->lane, ptx_u32(0), record, x);
            }
        }
        ptx_bar_warp_sync(k, ptx_u32(0xffffffffu));
        epoch = ptxk__dec_epoch_x(c, ptx_u32(0), 1);
        at = ptx_mad(k, u, ptx_u32(256 / PTXK__DEC_TILE), c->lane);
        p = ptx_setp(k, PTX_LT, at, ptx_u32(tiles));
        inside = ptx_setp(k, PTX_LT, c->lane, ptx_u32(256 / PTXK__DEC_TILE));
        p = ptx_and(k, p, inside);
        to = ptx_ptr_add(k, c->workspace, at, 4);
        ptx_guard(k, p);
        ptx_st(k, PTX_U32, ptx_with(ptx_at(to, f->flags_x), PTX_RELEASE | PTX_GPU), epoch);
    }
    ptx_end(k);
}

/* -- decoder: attention -- */

/* The norm of a head of q or k: its weights, and the factor of the current head. */
typedef struct ptxk__head_norm {
    ptx_val gamma, factor;
} ptxk__head_norm;

/* The norm factor of the head at `row` in qkv, computed by a warp. */
static ptx_val ptxk__dec_head_factor(ptxk__dec_state *c, ptx_val row) {
    ptx_kernel *k = c->k;
    uint32_t d = c->f->d.head_dim;
    ptx_var squares = ptx_var_new(k, ptx_f32(0));
    ptx_val e, x, sum, eps;
    e = ptx_for(k, c->lane, ptx_u32(d), ptx_u32(32));
    x = ptx_ptr_add(k, row, e, 4);
    x = ptx_ld(k, PTX_F32, ptx_at(x, 0));
    sum = ptx_get(k, squares);
    sum = ptx_fma(k, x, x, sum);
    ptx_set(k, squares, sum);
    ptx_end(k);
    sum = ptx_get(k, squares);
    sum = ptxk_warp_reduce(k, PTX_ADD, sum, 1, 32);
    eps = ptx_ld(k, PTX_F32, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, eps)));
    return ptxk__norm_factor(k, sum, ptx_f32(d), eps);
}

/* Element e of a head at `row` in qkv (f32), normalised. */
static ptx_val ptxk__dec_normed(ptxk__dec_state *c, ptx_val row, ptx_val e, const ptxk__head_norm *norm) {
    ptx_kernel *k = c->k;
    ptx_val at = ptx_ptr_add(k, row, e, 4), x, gamma;
    x = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    if (!c->f->d.head_norms) return x;
    at = ptx_ptr_add(k, norm->gamma, e, 4);
    gamma = ptx_ld(k, PTX_F32, ptx_with(ptx_at(at, 0), PTX_NC));
    x = ptx_op2(k, PTX_MUL, PTX_RN, x, norm->factor);
    return ptx_op2(k, PTX_MUL, PTX_RN, x, gamma);
}

/* The same, rotated by its position where it is one of rope_dims. */
static ptx_val ptxk__dec_rotated(ptxk__dec_state *c, ptx_val row, ptx_val e, ptx_val position,
                                 const ptxk__head_norm *norm) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t half = f->d.rope_dims / 2;
    ptx_val x, other, p, first, pair, cosine, sine, table;
    ptx_var out;
    x = ptxk__dec_normed(c, row, e, norm);
    if (!half) return x;
    out = ptx_var_new(k, x);
    p = ptx_setp(k, PTX_LT, e, ptx_u32(2 * half));
    ptx_if(k, p);
    if (f->d.rope_pairs == PTXK_ROPE_NEOX) {
        first = ptx_setp(k, PTX_LT, e, ptx_u32(half));
        pair = ptx_sub(k, e, ptx_u32(half));
        other = ptx_add(k, e, ptx_u32(half));
        other = ptx_selp(k, other, pair, first);
        pair = ptx_selp(k, e, pair, first);
    } else {
        pair = ptx_and(k, e, ptx_u32(1));
        first = ptx_setp(k, PTX_EQ, pair, ptx_u32(0));
        other = ptx_xor(k, e, ptx_u32(1));
        pair = ptx_shr(k, e, ptx_u32(1));
    }
    other = ptxk__dec_normed(c, row, other, norm);
    table = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, frequencies));
    table = ptx_ptr_add(k, table, pair, 8);
    pair = ptx_ld(k, PTX_F64, ptx_with(ptx_at(table, 0), PTX_NC));
    ptxk__rope_turn(k, position, pair, &cosine, &sine);
    pair = ptx_neg(k, sine); /* first of a pair: x c - other s; second: x c + other s */
    sine = ptx_selp(k, pair, sine, first);
    x = ptx_op2(k, PTX_MUL, PTX_RN, x, cosine);
    x = ptx_fma(k, other, sine, x);
    ptx_set(k, out, x);
    ptx_end(k);
    return ptx_get(k, out);
}

typedef struct ptxk__heads { /* attention of one part of one KV head of one sequence */
    ptx_val sequence, g, split, splits, position, length, begin, end;
    ptx_val q, part, state, factors; /* shared addresses; factors: of the norms of a tile's heads */
    ptx_val k_base, v_base;          /* of this layer, sequence and KV head */
    ptx_val qkv;                     /* of this sequence */
    ptx_val out;                     /* of this sequence */
    ptx_val first;                   /* first head of the group in this tile */
    ptx_val record;
} ptxk__heads;

/* Loads 8 elements of a key or value as f32. */
static void ptxk__dec_row8(ptxk__dec_state *c, ptx_val base, ptx_val key, ptx_val chunk, ptx_val p,
                           ptx_val *x) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptx_type type = (ptx_type)f->d.kv_type;
    uint32_t bytes = ptx_type_bytes(type), n = 16 / bytes, i;
    ptx_val words[4], at = ptx_ptr_add(k, base, key, f->d.head_dim * bytes);
    at = ptx_ptr_add(k, at, chunk, 8 * bytes);
    for (i = 0; i < 8; i += n) {
        ptxk_load16(k, &p, ptx_at(at, i * bytes), words);
        ptxk_widen(k, type, words, x + i);
    }
}

/* Attends to the keys begin ... end - 1 for a tile of query heads; leaves the results of the warps in shared
   memory. */
static void ptxk__dec_attend(ptxk__dec_state *c, const ptxk__heads *a) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t h, e, T = f->tile, d = f->d.head_dim;
    int partial = f->lanes * 8 != d;
    ptx_val q[8][8], key[8], value[8], chunk, own, has, inside, i, first, at, x, most, old, shrink, weight,
        total;
    ptx_var sum[8][8], top[8], all[8];
    chunk = ptx_and(k, c->lane, ptx_u32(f->lanes - 1));
    own = ptx_div(k, c->lane, ptx_u32(f->lanes));
    has = ptx_setp(k, PTX_LT, chunk, ptx_u32(d / 8));
    at = ptx_ptr_add(k, a->q, chunk, 32);
    for (h = 0; h < T; h++) {
        for (e = 0; e < 8; e += 4)
            ptx_ld_vec_if(k, has, PTX_F32, 4, ptx_at(at, 4 * (h * d + e)), ptx_f32(0), &q[h][e]);
        top[h] = ptx_var_new(k, ptx_f32(-FLT_MAX));
        all[h] = ptx_var_new(k, ptx_f32(0));
        for (e = 0; e < 8; e++) sum[h][e] = ptx_var_new(k, ptx_f32(0));
    }
    first = ptx_mad(k, c->warp, ptx_u32(f->keys), a->begin);
    i = ptx_for(k, first, a->end, ptx_u32(PTXK__DEC_WARPS * f->keys));
    {
        x = ptx_add(k, i, own);
        inside = ptx_setp(k, PTX_LT, x, a->end);
        at = partial ? ptx_and(k, inside, has) : inside;
        ptxk__dec_row8(c, a->k_base, x, chunk, at, key);
        ptxk__dec_row8(c, a->v_base, x, chunk, at, value);
        for (h = 0; h < T; h++) {
            x = ptx_op2(k, PTX_MUL, PTX_RN, q[h][0], key[0]);
            x = ptxk_dot(k, 7, &q[h][1], key + 1, x);
            x = ptxk_warp_reduce(k, PTX_ADD, x, 1, f->lanes);
            if (ptxk__scale_is_late(f->scale)) x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32((double)f->scale));
            x = ptxk__clamp_infinity(k, x);
            x = ptx_selp(k, x, ptx_f32(-INFINITY), inside);
            old = ptx_get(k, top[h]);
            most = ptx_max(k, old, x);
            ptx_set(k, top[h], most);
            shrink = ptxk__score_weight(k, old, most);
            weight = ptxk__score_weight(k, x, most);
            total = ptx_get(k, all[h]);
            total = ptx_fma(k, total, shrink, weight);
            ptx_set(k, all[h], total);
            for (e = 0; e < 8; e++) {
                x = ptx_get(k, sum[h][e]);
                x = ptx_op2(k, PTX_MUL, PTX_RN, x, shrink);
                x = ptx_fma(k, weight, value[e], x);
                ptx_set(k, sum[h][e], x);
            }
        }
    }
    ptx_end(k);
    at = ptx_mad(k, c->warp, ptx_u32(T), ptx_u32(0));
    at = ptx_mul(k, at, ptx_u32(d * 4));
    at = ptx_ptr_add(k, a->part, at, 1);
    at = ptx_ptr_add(k, at, chunk, 32);
    inside = ptx_setp(k, PTX_EQ, own, ptx_u32(0));
    inside = ptx_and(k, inside, has);
    has = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    own = ptx_mul(k, c->warp, ptx_u32(T * 8));
    own = ptx_ptr_add(k, a->state, own, 1);
    for (h = 0; h < T; h++) { /* merges the groups of lanes */
        ptx_val out[8], pair[2];
        old = ptx_get(k, top[h]);
        most = ptxk_warp_reduce(k, PTX_MAX, old, f->lanes, 32);
        shrink = ptxk__score_weight(k, old, most);
        total = ptx_get(k, all[h]);
        total = ptx_op2(k, PTX_MUL, PTX_RN, total, shrink);
        total = ptxk_warp_reduce(k, PTX_ADD, total, f->lanes, 32);
        for (e = 0; e < 8; e++) {
            out[e] = ptx_get(k, sum[h][e]);
            out[e] = ptx_op2(k, PTX_MUL, PTX_RN, out[e], shrink);
            out[e] = ptxk_warp_reduce(k, PTX_ADD, out[e], f->lanes, 32);
        }
        pair[0] = most;
        pair[1] = total;
        ptx_if(k, inside);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(at, 4 * h * d), out);
        ptx_st_vec(k, PTX_F32, 4, ptx_at(at, 4 * h * d + 16), out + 4);
        ptx_end(k);
        ptx_guard(k, has);
        ptx_st_vec(k, PTX_F32, 2, ptx_at(own, 8 * h), pair);
    }
}

/* Merges n partial results (maximum, total, x) at strides. */
static void ptxk__dec_join(ptxk__dec_state *c, ptx_val n, ptx_val state, ptx_val state_step, ptx_val at,
                           ptx_val step, ptx_val *most_out, ptx_val *total_out, ptx_val *x_out) {
    ptx_kernel *k = c->k;
    ptx_var top = ptx_var_new(k, ptx_f32(-FLT_MAX)), all = ptx_var_new(k, ptx_f32(0)), sum;
    ptx_val i, s, x, pair[2], old, most, shrink, weight, y;
    sum = ptx_var_new(k, ptx_f32(0));
    i = ptx_for(k, ptx_u32(0), n, ptx_u32(1));
    s = ptx_mul(k, i, state_step);
    s = ptx_ptr_add(k, state, s, 1);
    ptx_ld_vec(k, PTX_F32, 2, ptx_at(s, 0), pair);
    s = ptx_mul(k, i, step);
    s = ptx_ptr_add(k, at, s, 1);
    x = ptx_ld(k, PTX_F32, ptx_at(s, 0));
    old = ptx_get(k, top);
    most = ptx_max(k, old, pair[0]);
    ptx_set(k, top, most);
    shrink = ptxk__score_weight(k, old, most);
    weight = ptxk__score_weight(k, pair[0], most);
    y = ptx_get(k, all);
    y = ptx_op2(k, PTX_MUL, PTX_RN, y, shrink);
    y = ptx_fma(k, pair[1], weight, y);
    ptx_set(k, all, y);
    y = ptx_get(k, sum);
    y = ptx_op2(k, PTX_MUL, PTX_RN, y, shrink);
    y = ptx_fma(k, x, weight, y);
    ptx_set(k, sum, y);
    ptx_end(k);
    *most_out = ptx_get(k, top);
    *total_out = ptx_get(k, all);
    *x_out = ptx_get(k, sum);
}

/* Appends the new row of K and V, with all workers; visible to the block after its next barrier. */
static void ptxk__dec_append(ptxk__dec_state *c, const ptxk__heads *a) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptx_type type = (ptx_type)f->d.kv_type;
    uint32_t d = f->d.head_dim, bytes = ptx_type_bytes(type);
    ptx_val e, row, x, at;
    ptxk__head_norm norm;
    row = ptx_mad(k, a->g, ptx_u32(d), ptx_u32(f->q_rows));
    row = ptx_ptr_add(k, a->qkv, row, 4);
    if (f->d.head_norms) { /* each warp computes its own */
        norm.gamma = ptx_ptr(ptxk__dec_layer_address(c, offsetof(ptxk_decoder_layer, k_norm)), PTX_GLOBAL);
        norm.factor = ptxk__dec_head_factor(c, row);
    }
    e = ptx_for(k, c->tid, ptx_u32(d), ptx_u32(PTXK__DEC_WORKERS));
    x = ptxk__dec_rotated(c, row, e, a->position, &norm);
    at = ptx_ptr_add(k, a->k_base, a->position, d * bytes);
    at = ptx_ptr_add(k, at, e, bytes);
    ptxk_store_f32(k, type, 1, ptx_at(at, 0), &x);
    row = ptx_ptr_add(k, row, e, 4);
    x = ptx_ld(k, PTX_F32, ptx_at(row, 4 * f->kv_rows));
    at = ptx_ptr_add(k, a->v_base, a->position, d * bytes);
    at = ptx_ptr_add(k, at, e, bytes);
    ptxk_store_f32(k, type, 1, ptx_at(at, 0), &x);
    ptx_end(k);
}

/* Stores element i (u32) of a sequence's attention output for the next product; a lane of a warp that has 32
   consecutive elements. */
static void ptxk__dec_store_attention(ptxk__dec_state *c, const ptxk__heads *a, ptx_val i, ptx_val x) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptx_val at, group;
    if (!f->whole_heads) {
        at = ptx_ptr_add(k, a->out, i, 4);
        ptx_st(k, PTX_F32, ptx_at(at, 0), x);
        return;
    }
    group = ptx_shr(k, i, ptx_u32(5));
    if (f->integers) {
        at = ptxk__dec_at(c, f->att_integers);
        at = ptx_ptr_add(k, at, a->sequence, f->att_units * f->integers);
        ptxk__store_x_group(k, f->planes, c->lane, group, at, x);
    }
    if (f->numbers) {
        at = ptxk__dec_at(c, f->att_numbers);
        at = ptx_ptr_add(k, at, a->sequence, f->att_units * f->numbers);
        ptxk__store_x_group(k, 0, c->lane, group, at, x);
    }
}

/* Opens a loop of the workers over n elements; where heads are whole groups n is a multiple of 32, and warps
   stay converged. */
static ptx_val ptxk__dec_elements(ptxk__dec_state *c, uint32_t n) {
    ptx_kernel *k = c->k;
    ptx_val i;
    if (!c->f->whole_heads) return ptx_for(k, c->tid, ptx_u32(n), ptx_u32(PTXK__DEC_WORKERS));
    i = ptx_mul(k, c->warp, ptx_u32(32));
    i = ptx_for(k, i, ptx_u32(n), ptx_u32(PTXK__DEC_WORKERS));
    return ptx_add(k, i, c->lane);
}

/* The row in qkv of query head h (u32) of a tile; past the group: of its last head. */
static ptx_val ptxk__dec_query(ptxk__dec_state *c, const ptxk__heads *a, ptx_val h) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    h = ptx_add(k, h, a->first);
    h = ptx_min(k, h, ptx_u32(f->group - 1));
    h = ptx_mad(k, a->g, ptx_u32(f->group), h);
    return ptx_ptr_add(k, a->qkv, h, 4 * f->d.head_dim);
}

/* Computes the norm factors of a tile's query heads, a warp for each. */
static void ptxk__dec_factors(ptxk__dec_state *c, const ptxk__heads *a) {
    ptx_kernel *k = c->k;
    ptx_val p, x, at;
    p = ptx_setp(k, PTX_LT, c->warp, ptx_u32(c->f->tile));
    ptx_if(k, p);
    at = ptxk__dec_query(c, a, c->warp);
    x = ptxk__dec_head_factor(c, at);
    at = ptx_ptr_add(k, a->factors, c->warp, 4);
    p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
    ptx_guard(k, p);
    ptx_st(k, PTX_F32, ptx_at(at, 0), x);
    ptx_end(k);
    ptxk__dec_worker_barrier(c);
}

/* Runs one part: all query heads of the KV head, a tile of them at a time. */
static void ptxk__dec_attention_part(ptxk__dec_state *c, ptxk__heads *a) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t d = f->d.head_dim, T = f->tile;
    ptx_val p, i, e, h, row, x, y, at, most, total, alone, state, n, head, here, tile;
    ptxk__head_norm norm;
    alone = ptx_setp(k, PTX_EQ, a->splits, ptx_u32(1));
    p = ptx_setp(k, PTX_EQ, a->end, a->length);
    e = ptx_setp(k, PTX_GT, a->length, ptx_u32(0));
    p = ptx_and(k, p, e);
    p = ptx_uniform(k, p);
    ptx_if(k, p);
    ptxk__dec_append(c, a);
    ptx_end(k);
    tile = ptx_for(k, ptx_u32(0), ptx_u32(f->tiles_of_heads), ptx_u32(1));
    {
        a->first = ptx_mul(k, tile, ptx_u32(T));
        if (f->d.head_norms) ptxk__dec_factors(c, a);
        i = ptx_for(k, c->tid, ptx_u32(T * d), ptx_u32(PTXK__DEC_WORKERS));
        h = ptx_div(k, i, ptx_u32(d));
        e = ptx_rem(k, i, ptx_u32(d));
        row = ptxk__dec_query(c, a, h);
        if (f->d.head_norms) {
            norm.gamma =
                ptx_ptr(ptxk__dec_layer_address(c, offsetof(ptxk_decoder_layer, q_norm)), PTX_GLOBAL);
            at = ptx_ptr_add(k, a->factors, h, 4);
            norm.factor = ptx_ld(k, PTX_F32, ptx_at(at, 0));
        }
        x = ptxk__dec_rotated(c, row, e, a->position, &norm);
        if (!ptxk__scale_is_late(f->scale)) x = ptx_op2(k, PTX_MUL, PTX_RN, x, ptx_f32((double)f->scale));
        at = ptx_ptr_add(k, a->q, i, 4);
        ptx_st(k, PTX_F32, ptx_at(at, 0), x);
        ptx_end(k);
        ptxk__dec_worker_barrier(c);
        ptxk__dec_attend(c, a);
        ptxk__dec_worker_barrier(c);
        i = ptxk__dec_elements(c, T * d);
        {
            h = ptx_div(k, i, ptx_u32(d));
            e = ptx_rem(k, i, ptx_u32(d));
            state = ptx_ptr_add(k, a->state, h, 8);
            at = ptx_ptr_add(k, a->part, i, 4);
            n = ptx_mov(k, ptx_u32(PTXK__DEC_WARPS));
            ptxk__dec_join(c, n, state, ptx_u32(T * 8), at, ptx_u32(T * d * 4), &most, &total, &x);
            h = ptx_add(k, h, a->first);
            p = ptx_setp(k, PTX_LT, h, ptx_u32(f->group));
            if (f->whole_heads) p = ptx_warp_uniform(k, p);
            ptx_if(k, p);
            ptx_if(k, alone);
            y = ptxk_rcp_or_zero(k, total);
            y = ptx_op2(k, PTX_MUL, PTX_RN, x, y);
            head = ptx_mad(k, a->g, ptx_u32(f->group), h);
            head = ptx_mad(k, head, ptx_u32(d), e);
            ptxk__dec_store_attention(c, a, head, y);
            ptx_else(k);
            at = ptx_ptr_add(k, a->record, h, 4 * d);
            at = ptx_ptr_add(k, at, e, 4);
            here = ptx_ptr_add(k, a->record, h, 8);
            ptx_st(k, PTX_F32, ptx_at(at, 8 * f->group), x);
            p = ptx_setp(k, PTX_EQ, e, ptx_u32(0));
            ptx_if(k, p);
            {
                ptx_val pair[2];
                pair[0] = most;
                pair[1] = total;
                ptx_st_vec(k, PTX_F32, 2, ptx_at(here, 0), pair);
            }
            ptx_end(k);
            ptx_end(k);
            ptx_end(k);
        }
        ptx_end(k);
        ptxk__dec_worker_barrier(c); /* q and the parts may be overwritten */
    }
    ptx_end(k);
}

/* The last part of a head to arrive joins all parts and announces the head. */
static void ptxk__dec_join_parts(ptxk__dec_state *c, const ptxk__heads *a) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t d = f->d.head_dim;
    ptx_val p, q, at, x, last, i, h, e, base, state, most, total, flag, exchange;
    ptx_var was;
    exchange = ptx_ptr_add(k, c->shared, ptx_u32(f->info_at + 132), 1);
    q = ptx_setp(k, PTX_EQ, c->tid, ptx_u32(0));
    last = ptx_sub(k, a->splits, ptx_u32(1));
    p = ptx_setp(k, PTX_GT, a->splits, ptx_u32(1));
    p = ptx_uniform(k, p);
    was = ptx_var_new(k, ptx_u32(0));
    ptx_set(k, was, last);
    ptx_if(k, p);
    {
        ptx_if(k, q);
        at = ptx_mad(k, a->sequence, ptx_u32(f->d.kv_heads), a->g);
        at = ptx_ptr_add(k, c->workspace, at, 4);
        x = ptx_atom(k, PTX_ATOM_INC, ptx_with(ptx_at(at, f->arrive_att), PTX_ACQ_REL | PTX_GPU), last);
        ptx_st(k, PTX_U32, ptx_at(exchange, 0), x);
        ptx_end(k);
        ptxk__dec_worker_barrier(c);
        x = ptx_ld(k, PTX_U32, ptx_at(exchange, 0));
        x = ptx_uniform(k, x);
        ptx_set(k, was, x);
        i = ptx_setp(k, PTX_EQ, x, last);
        ptx_if(k, i);
        base = ptx_mul(k, a->split, ptx_u32(f->att_record));
        base = ptx_cvt(k, PTX_U64, base);
        base = ptx_sub(k, a->record, base);
        base = ptx_ptr(base, PTX_GLOBAL);
        i = ptxk__dec_elements(c, f->group * d);
        h = ptx_div(k, i, ptx_u32(d));
        state = ptx_ptr_add(k, base, h, 8);
        at = ptx_ptr_add(k, base, i, 4);
        at = ptx_ptr_add(k, at, ptx_u32(8 * f->group), 1);
        ptxk__dec_join(c, a->splits, state, ptx_u32(f->att_record), at, ptx_u32(f->att_record), &most, &total,
                       &x);
        total = ptxk_rcp_or_zero(k, total);
        x = ptx_op2(k, PTX_MUL, PTX_RN, x, total);
        e = ptx_mad(k, a->g, ptx_u32(f->group * d), i);
        ptxk__dec_store_attention(c, a, e, x);
        ptx_end(k);
        ptxk__dec_worker_barrier(c);
        ptx_end(k);
    }
    ptx_end(k);
    x = ptx_get(k, was);
    x = ptx_setp(k, PTX_EQ, x, last);
    q = ptx_and(k, q, x);
    flag = ptx_ptr_add(k, c->workspace, a->g, 4);
    ptx_guard(k, q);
    ptx_red(k, PTX_ATOM_ADD, ptx_with(ptx_at(flag, f->flags_att), PTX_RELEASE | PTX_GPU), ptx_u32(1));
}

static void ptxk__dec_attention(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    uint32_t heads = f->d.batch * f->d.kv_heads, d = f->d.head_dim, i;
    uint32_t tq = ptxk__ceil_div(f->q_rows, PTXK__DEC_TILE), tk = ptxk__ceil_div(f->kv_rows, PTXK__DEC_TILE);
    uint32_t bytes = ptxk__kv_bytes(f->d.kv_type);
    ptxk__heads a;
    ptxk__wait w;
    ptx_val most, items, item, x, y, p, at, chunk, seen;
    most = ptx_div(k, c->blocks, ptx_u32(heads));
    most = ptx_max(k, most, ptx_u32(1));
    most = ptx_min(k, most, ptx_u32(PTXK__DEC_SPLITS));
    items = ptx_mul(k, most, ptx_u32(heads));
    a.q = c->shared;
    a.part = ptx_ptr_add(k, c->shared, ptx_u32(f->tile * d * 4), 1);
    a.state = ptx_ptr_add(k, c->shared, ptx_u32((1 + PTXK__DEC_WARPS) * f->tile * d * 4), 1);
    a.factors = ptx_ptr_add(k, a.state, ptx_u32(PTXK__DEC_WARPS * f->tile * 8), 1);
    item = ptx_for(k, c->block, items, c->blocks);
    {
        a.split = ptx_rem(k, item, most);
        x = ptx_div(k, item, most);
        a.g = ptx_rem(k, x, ptx_u32(f->d.kv_heads));
        a.sequence = ptx_div(k, x, ptx_u32(f->d.kv_heads));
        y = ptxk__dec_info(c, PTXK__ACTIVE);
        y = ptx_shr(k, y, a.sequence);
        y = ptx_and(k, y, ptx_u32(1));
        p = ptx_setp(k, PTX_NE, y, ptx_u32(0));
        at = ptx_ptr_add(k, c->shared, a.sequence, 4);
        a.position = ptx_ld(k, PTX_U32, ptx_at(at, f->info_at + PTXK__LENGTH));
        a.position = ptx_uniform(k, a.position);
        y = ptx_add(k, a.position, ptx_u32(1));
        a.length = ptx_selp(k, y, ptx_u32(0), p);
        seen = a.length;
        if (f->d.window) seen = ptx_min(k, seen, ptx_u32(f->d.window));
        chunk = ptxk_div_up(k, seen, most);
        chunk = ptx_max(k, chunk, ptx_u32(PTXK__DEC_KEYS));
        a.splits = ptxk_div_up(k, seen, chunk);
        a.splits = ptx_max(k, a.splits, ptx_u32(1));
        p = ptx_setp(k, PTX_LT, a.split, a.splits);
        ptx_if(k, p);
        a.begin = ptx_mul(k, a.split, chunk);
        if (f->d.window) {
            seen = ptx_sub(k, a.length, seen);
            a.begin = ptx_add(k, a.begin, seen);
        }
        a.end = ptx_add(k, a.begin, chunk);
        a.end = ptx_min(k, a.end, a.length);

        w.ranges = 3;
        w.flags = ptx_ptr_add(k, c->workspace, ptx_u32(f->flags_qkv), 1);
        w.target = ptxk__dec_epoch(c);
        w.step = ptx_mov(k, ptx_u32(5));
        for (i = 0; i < 3; i++) {
            uint32_t rows = i ? d : f->group * d;
            x = ptx_mul(k, a.g, ptx_u32(rows));
            y = ptx_add(k, x, ptx_u32(rows - 1));
            x = ptx_div(k, x, ptx_u32(PTXK__DEC_TILE));
            y = ptx_div(k, y, ptx_u32(PTXK__DEC_TILE));
            y = ptx_sub(k, y, x);
            w.count[i] = ptx_add(k, y, ptx_u32(1));
            w.first[i] = i ? ptx_add(k, x, ptx_u32(i == 1 ? tq : tq + tk)) : x;
        }
        ptxk__dec_wait(c, &w);

        x = ptx_mad(k, a.sequence, ptx_u32(f->d.kv_heads), a.g);
        y = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, max_seq));
        y = ptx_mul_wide(k, x, y);
        a.k_base = ptxk__dec_layer_address(c, offsetof(ptxk_decoder_layer, k_cache));
        a.k_base = ptx_ptr_add(k, ptx_ptr(a.k_base, PTX_GLOBAL), y, d * bytes);
        a.v_base = ptxk__dec_layer_address(c, offsetof(ptxk_decoder_layer, v_cache));
        a.v_base = ptx_ptr_add(k, ptx_ptr(a.v_base, PTX_GLOBAL), y, d * bytes);
        x = ptx_mad(k, x, ptx_u32(PTXK__DEC_SPLITS), a.split);
        a.record = ptxk__dec_at(c, f->att_parts);
        a.record = ptx_ptr_add(k, a.record, x, f->att_record);
        a.qkv = ptxk__dec_at(c, f->qkv);
        a.qkv = ptx_ptr_add(k, a.qkv, a.sequence, 4 * f->qkv_rows);
        a.out = ptxk__dec_at(c, f->att);
        a.out = ptx_ptr_add(k, a.out, a.sequence, 4 * f->q_rows);
        ptxk__dec_attention_part(c, &a);
        ptxk__dec_join_parts(c, &a);
        ptx_end(k);
    }
    ptx_end(k);
}

/* -- decoder: the leader -- */

/* Chooses the token from each sequence's logits, into shared memory at info + 160. */
static void ptxk__dec_choose_tokens(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__logits l;
    ptxk__sampling w;
    ptx_val b, at, x, p, there;
    ptx_var token;
    l.type = PTX_F32;
    l.threads = PTXK__DEC_WORKERS;
    l.barrier = 1;
    l.tid = c->tid;
    l.n = ptx_mov(k, ptx_u32(f->d.vocab));
    l.counters = c->shared;
    w.temperature = ptx_ld(k, PTX_F32, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, temperature)));
    w.top_p = ptx_ld(k, PTX_F32, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, top_p)));
    w.top_k = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, top_k));
    w.seed = ptx_ld(k, PTX_U64, ptx_at(c->args, (int64_t)offsetof(ptxk_decoder_args, seed)));
    b = ptx_for(k, ptx_u32(0), ptx_u32(f->d.batch), ptx_u32(1));
    {
        at = ptx_ptr_add(k, c->workspace, b, 8);
        x = ptx_ld(k, PTX_U64, ptx_at(at, PTXK__BEST));
        x = ptxk__sample_token(k, x);
        x = ptx_uniform(k, x);
        token = ptx_var_new(k, x);
        p = ptx_setp(k, PTX_GT, w.temperature, ptx_f32(0));
        ptx_if(k, p);
        at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, logits));
        l.at = ptx_ptr_add(k, at, b, 4 * f->d.vocab);
        at = ptx_ptr_add(k, c->shared, b, 4);
        there = ptx_ld(k, PTX_U32, ptx_at(at, f->info_at + PTXK__LENGTH));
        there = ptx_cvt(k, PTX_U64, there);
        x = ptx_cvt(k, PTX_U64, b);
        x = ptx_shl(k, x, ptx_u32(32));
        w.counter = ptx_or(k, x, there);
        x = ptxk__sample_row(k, &l, &w);
        ptx_set(k, token, x);
        ptx_end(k);
        x = ptx_get(k, token);
        at = ptx_ptr_add(k, c->shared, b, 4);
        p = ptx_setp(k, PTX_EQ, c->tid, ptx_u32(0));
        ptx_guard(k, p);
        ptx_st(k, PTX_U32, ptx_at(at, f->info_at + 160), x);
    }
    ptx_end(k);
}

static void ptxk__dec_word(ptxk__dec_state *c, uint32_t word, ptx_val x) {
    ptx_st(c->k, PTX_U32, ptx_at(c->workspace, word), x);
}

/* Whether a token is one of the end tokens. */
static ptx_val ptxk__dec_is_end_token(ptxk__dec_state *c, ptx_val token) {
    ptx_kernel *k = c->k;
    ptx_val count = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, end_count)), any = token, p, q;
    uint32_t i;
    for (i = 0; i < PTXK_DECODER_ENDS; i++) {
        p = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, end_tokens) + 4 * i);
        p = ptx_setp(k, PTX_EQ, token, p);
        q = ptx_setp(k, PTX_GT, count, ptx_u32(i));
        p = ptx_and(k, p, q);
        any = i ? ptx_or(k, any, p) : p;
    }
    return any;
}

/* Checks the prompts at the start, with all threads, and records what does not fit: the first cause of the
   first sequence. */
static void ptxk__dec_check_prompts(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    ptx_val stride, most, length, position, prompt, at, i, p, x;
    ptx_var key = ptx_var_new(k, ptx_u32(0));
    uint32_t b;
    stride = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, prompt_stride));
    most = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, max_seq));
    for (b = c->f->d.batch; b--;) { /* keeps the first cause of the first sequence */
        uint32_t none = 65536 - 256 * b;
        at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, prompt_lengths));
        length = ptx_ld(k, PTX_U32, ptx_at(at, 4 * b));
        at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, positions));
        position = ptx_ld(k, PTX_U32, ptx_at(at, 4 * b));
        prompt = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, prompt));
        x = ptx_mul_wide(k, stride, ptx_u32(b));
        prompt = ptx_ptr_add(k, prompt, x, 4);
        x = ptx_min(k, length, stride);
        i = ptx_for(k, c->tid, x, ptx_u32(PTXK__DEC_WORKERS));
        at = ptx_ptr_add(k, prompt, i, 4);
        x = ptx_ld(k, PTX_U32, ptx_at(at, 0));
        p = ptx_setp(k, PTX_GE, x, ptx_u32(c->f->d.vocab));
        ptx_guard(k, p);
        ptx_set(k, key, ptx_u32(none - PTXK__STEP_TOKEN));
        ptx_end(k);
        x = ptx_sub(k, most, length);
        p = ptx_setp(k, PTX_GT, position, x);
        x = ptx_setp(k, PTX_GT, length, most);
        p = ptx_or(k, p, x);
        ptx_guard(k, p);
        ptx_set(k, key, ptx_u32(none - PTXK__STEP_ROOM));
        p = ptx_setp(k, PTX_GT, length, stride);
        ptx_guard(k, p);
        ptx_set(k, key, ptx_u32(none - PTXK__STEP_LENGTH));
    }
    x = ptx_get(k, key);
    p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
    ptx_guard(k, p);
    ptx_red(k, PTX_ATOM_MAX, ptx_with(ptx_at(c->workspace, PTXK__REFUSED), PTX_RELAXED | PTX_GPU), x);
}

/* The inputs of the leader's decision, in its first thread. `first`: at the start, when nothing has been
   fed. */
typedef struct ptxk__decision {
    int first;
    ptx_val state, prompt, stride, n, most, round, active;
    ptx_val fed; /* position of the prompts that is fed next */
    ptx_var still, need, over;
} ptxk__decision;

/* The state of a sequence, and what may be fed to it next. */
typedef struct ptxk__sequence {
    uint32_t b;
    ptx_val bit, prompt_length, length, written, token;
    ptx_val forced;      /* the token is from the prompt */
    ptx_var next, count; /* the next token; tokens written */
} ptxk__sequence;

/* Writes the chosen token for the host; the count, released after it, says that it is there. */
static void ptxk__dec_write_token(ptxk__dec_state *c, const ptxk__decision *d, const ptxk__sequence *s,
                                  ptx_val token) {
    ptx_kernel *k = c->k;
    ptx_val tokens, x, y;
    tokens = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, tokens));
    x = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, tokens_stride));
    x = ptx_mul_wide(k, x, ptx_u32(s->b));
    y = ptx_cvt(k, PTX_U64, s->written);
    x = ptx_add(k, x, y);
    tokens = ptx_ptr_add(k, tokens, x, 4);
    ptx_st(k, PTX_U32, ptx_with(ptx_at(tokens, 0), PTX_RELAXED | PTX_SYS), token);
    x = ptx_add(k, s->written, ptx_u32(1));
    ptx_set(k, s->count, x);
    ptx_st(k, PTX_U32,
           ptx_with(ptx_at(d->state, (int64_t)offsetof(ptxk_decoder_state, written) + 4 * s->b),
                    PTX_RELEASE | PTX_SYS),
           x);
}

/* Determines how far a sequence is, and its next token: from the prompt, or the chosen one. */
static void ptxk__dec_next_token(ptxk__dec_state *c, const ptxk__decision *d, ptxk__sequence *s) {
    ptx_kernel *k = c->k;
    ptx_val at, x, token;
    at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, prompt_lengths));
    s->prompt_length = ptx_ld(k, PTX_U32, ptx_at(at, 4 * s->b));
    if (d->first) {
        at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, positions));
        s->length = ptx_ld(k, PTX_U32, ptx_at(at, 4 * s->b));
        s->written = ptx_mov(k, ptx_u32(0));
    } else {
        s->length = ptxk__dec_info(c, PTXK__LENGTH + 4 * s->b);
        s->written = ptxk__dec_info(c, PTXK__WRITTEN + 4 * s->b);
    }
    s->count = ptx_var_new(k, s->written);
    s->bit = ptx_and(k, d->active, ptx_u32(1u << s->b));
    s->bit = ptx_setp(k, PTX_NE, s->bit, ptx_u32(0));
    if (!d->first) {
        x = ptx_add(k, s->length, ptx_u32(1));
        s->length = ptx_selp(k, x, s->length, s->bit);
    }
    s->forced = ptx_setp(k, PTX_LT, d->fed, s->prompt_length);
    s->next = ptx_var_new(k, ptx_u32(0));
    x = ptx_add(k, d->fed, ptx_u32(0));
    at = ptx_mad(k, d->stride, ptx_u32(s->b), x);
    at = ptx_ptr_add(k, d->prompt, at, 4);
    ptx_if(k, s->forced);
    x = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    ptx_set(k, s->next, x);
    if (!d->first) {
        ptx_else(k);
        token = ptx_ld_if(k, s->bit, PTX_U32, ptx_at(c->shared, c->f->info_at + 160 + 4 * s->b), ptx_u32(0));
        ptx_set(k, s->next, token);
        ptx_if(k, s->bit);
        ptxk__dec_write_token(c, d, s, token);
        ptx_end(k);
    }
    ptx_end(k);
    ptx_st(k, PTX_U32,
           ptx_with(ptx_at(d->state, (int64_t)offsetof(ptxk_decoder_state, length) + 4 * s->b),
                    PTX_RELAXED | PTX_SYS),
           s->length);
}

/* Whether a sequence continues: fewer than n tokens were written, the last was no end token, there is a token
   to feed, and room for it. */
static ptx_val ptxk__dec_sequence_continues(ptxk__dec_state *c, const ptxk__decision *d, ptxk__sequence *s) {
    ptx_kernel *k = c->k;
    ptx_val x, y, p, q;
    x = ptx_get(k, s->count);
    p = ptx_setp(k, PTX_LT, x, d->n);
    s->token = ptx_get(k, s->next);
    y = ptxk__dec_is_end_token(c, s->token);
    y = ptx_not(k, y);
    y = ptx_or(k, y, s->forced);
    p = ptx_and(k, p, y);
    p = ptx_and(k, p, s->bit);
    if (d->first) {
        y = ptx_setp(k, PTX_GT, s->prompt_length, ptx_u32(0));
        p = ptx_and(k, p, y);
    }
    q = ptx_setp(k, PTX_GE, s->length, d->most);
    q = ptx_and(k, q, p);
    ptx_guard(k, q);
    ptxk__dec_word(c, PTXK__FULL, ptx_u32(PTXK_DECODER_FULL));
    q = ptx_not(k, q);
    return ptx_and(k, p, q);
}

/* Writes a sequence's words of the decision. */
static void ptxk__dec_write_sequence(ptxk__dec_state *c, const ptxk__decision *d, uint32_t b) {
    ptx_kernel *k = c->k;
    ptxk__sequence s;
    ptx_val x, y, p, q;
    s.b = b;
    ptxk__dec_next_token(c, d, &s);
    p = ptxk__dec_sequence_continues(c, d, &s);
    x = ptx_get(k, d->still);
    y = ptx_or(k, x, ptx_u32(1u << b));
    x = ptx_selp(k, y, x, p);
    ptx_set(k, d->still, x);
    y = ptx_add(k, d->fed, ptx_u32(1)); /* logits are needed from the last prompt token on */
    q = ptx_setp(k, PTX_GE, y, s.prompt_length);
    q = ptx_and(k, q, p);
    ptx_guard(k, q);
    ptx_set(k, d->need, ptx_u32(1));
    x = ptx_selp(k, s.token, ptx_u32(0), p);
    ptxk__dec_word(c, PTXK__TOKEN + 4 * b, x);
    ptxk__dec_word(c, PTXK__LENGTH + 4 * b, s.length);
    x = ptx_get(k, s.count);
    ptxk__dec_word(c, PTXK__WRITTEN + 4 * b, x);
    ptx_st(k, PTX_U64, ptx_at(c->workspace, PTXK__BEST + 8 * b), ptx_u64(0));
}

/* Sets d->over to the final status: by the stop flag, because no sequence continues, or because a prompt does
   not fit, which takes precedence. Returns the set of the sequences that continue. */
static ptx_val ptxk__dec_final_status(ptxk__dec_state *c, const ptxk__decision *d) {
    ptx_kernel *k = c->k;
    ptx_val at, x, y, p;
    at = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, stop));
    p = ptx_setp(k, PTX_NE, at, ptx_u64(0));
    x = ptx_ld_if(k, p, PTX_U32, ptx_with(ptx_at(at, 0), PTX_ACQUIRE | PTX_SYS), ptx_u32(0));
    p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
    ptx_guard(k, p);
    ptx_set(k, d->over, ptx_u32(PTXK_DECODER_STOPPED));
    x = ptx_get(k, d->still);
    p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    y = ptx_ld(k, PTX_U32, ptx_at(c->workspace, PTXK__FULL));
    y = ptx_max(k, y, ptx_u32(PTXK_DECODER_DONE));
    ptx_guard(k, p);
    ptx_set(k, d->over, y);
    if (!d->first) return x;
    y = ptx_ld(k, PTX_U32, ptx_at(c->workspace, PTXK__REFUSED));
    p = ptx_setp(k, PTX_NE, y, ptx_u32(0));
    ptx_if(k, p);
    ptx_set(k, d->over, ptx_u32(PTXK_DECODER_REFUSED));
    y = ptx_sub(k, ptx_u32(65536), y);
    at = ptx_and(k, y, ptx_u32(255));
    ptxk__state_put(k, d->state, offsetof(ptxk_decoder_state, step), at);
    at = ptx_shr(k, y, ptx_u32(8));
    ptxk__state_put(k, d->state, offsetof(ptxk_decoder_state, tile), at);
    ptx_end(k);
    return x;
}

/* One thread decides, from the chosen tokens, which sequences continue, what is fed next, and whether the run
   is over. Writes GO after everything else, and the state's status last. */
static void ptxk__dec_decide(ptxk__dec_state *c, int first) {
    ptx_kernel *k = c->k;
    ptxk__decision d;
    ptx_val x, p, go;
    uint32_t b;
    d.first = first;
    d.state = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, state));
    d.prompt = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, prompt));
    d.stride = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, prompt_stride));
    d.n = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, n));
    d.most = ptxk__arg_u32(k, c->args, offsetof(ptxk_decoder_args, max_seq));
    d.round = first ? ptx_mov(k, ptx_u32(0)) : ptx_get(k, c->round);
    d.fed = first ? d.round : ptx_add(k, d.round, ptx_u32(1));
    d.active = first ? ptx_mov(k, ptx_u32(15)) : ptxk__dec_info(c, PTXK__ACTIVE);
    d.still = ptx_var_new(k, ptx_u32(0));
    d.need = ptx_var_new(k, ptx_u32(0));
    d.over = ptx_var_new(k, ptx_u32(PTXK_DECODER_RUNS));
    for (b = 0; b < c->f->d.batch; b++) ptxk__dec_write_sequence(c, &d, b);
    x = ptxk__dec_final_status(c, &d);
    ptxk__dec_word(c, PTXK__ACTIVE, x);
    x = ptx_get(k, d.need);
    ptxk__dec_word(c, PTXK__NEED, x);
    x = ptx_get(k, d.over);
    ptxk__dec_word(c, PTXK__OVER, x);
    go = first ? ptx_mov(k, ptx_u32(1)) : ptx_add(k, d.round, ptx_u32(2));
    ptx_st(k, PTX_U32, ptx_with(ptx_at(c->workspace, PTXK__GO), PTX_RELEASE | PTX_GPU), go);
    p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
    if (!first) ptx_guard(k, p);
    ptx_st(k, PTX_U32, ptx_with(ptx_at(d.state, 0), PTX_RELEASE | PTX_SYS), x);
}

/* Block 0, after a token: waits for the logits or, where none are needed, for the last layer; chooses;
   decides. wanted: rounds with logits, including this one. */
static void ptxk__dec_run_leader(ptxk__dec_state *c, ptx_var wanted) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptxk__wait w;
    ptx_val need, p, x, layers;
    need = ptxk__dec_info(c, PTXK__NEED);
    p = ptx_setp(k, PTX_NE, need, ptx_u32(0));
    w.ranges = 1;
    w.step = ptx_mov(k, ptx_u32(7));
    ptx_if(k, p);
    {
        x = ptx_get(k, wanted);
        x = ptx_add(k, x, ptx_u32(1));
        ptx_set(k, wanted, x);
        w.target = ptx_mul(k, x, ptx_u32(f->tiles[4]));
        w.flags = c->workspace;
        w.first[0] = ptx_mov(k, ptx_u32(PTXK__DONE / 4));
        w.count[0] = ptx_mov(k, ptx_u32(1));
        ptxk__dec_wait(c, &w);
        ptxk__dec_choose_tokens(c);
    }
    ptx_else(k);
    {
        layers = ptxk__dec_layers(c);
        w.target = ptxk__dec_epoch_x(c, layers, 1);
        w.flags = ptx_ptr_add(k, c->workspace, ptx_u32(f->flags_x), 1);
        w.first[0] = ptx_mov(k, ptx_u32(0));
        w.count[0] = ptx_mov(k, ptx_u32(ptxk__ceil_div(f->d.hidden, PTXK__DEC_TILE)));
        ptxk__dec_wait(c, &w);
    }
    ptx_end(k);
    x = ptx_get(k, c->round);
    x = ptx_add(k, x, ptx_u32(1));
    w.target = ptx_mul(k, x, c->blocks); /* all blocks have read the previous decision */
    w.flags = c->workspace;
    w.first[0] = ptx_mov(k, ptx_u32(PTXK__SEEN / 4));
    w.count[0] = ptx_mov(k, ptx_u32(1));
    ptxk__dec_wait(c, &w);
    p = ptx_setp(k, PTX_EQ, c->tid, ptx_u32(0));
    ptx_if(k, p);
    ptxk__dec_decide(c, 0);
    ptx_end(k);
}

/* -- decoder: the two entries -- */

static void ptxk__dec_begin(ptxk__dec_state *c, const ptxk__dec *f, ptx_kernel *k) {
    c->f = f;
    c->k = k;
    c->args = ptx_param_bytes(k, "args", (uint32_t)sizeof(ptxk_decoder_args), 8);
    c->workspace = ptxk__arg_ptr(k, c->args, offsetof(ptxk_decoder_args, workspace));
    c->tid = ptx_tid_x(k);
    c->lane = ptx_and(k, c->tid, ptx_u32(31));
    c->warp = ptx_shr(k, c->tid, ptx_u32(5));
    c->block = ptx_ctaid_x(k);
    c->blocks = ptx_nctaid_x(k);
}

static void ptxk__dec_start(ptx_module *m, const char *site, const ptxk__dec *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__dec_state c;
    ptx_val i, at, p;
    uint32_t word;
    ptx_launch_bounds(k, PTXK__DEC_WORKERS, 1);
    ptxk__dec_begin(&c, f, k);
    i = ptx_for(k, c.tid, ptx_u32(f->zeroed / 4), ptx_u32(PTXK__DEC_WORKERS));
    at = ptx_ptr_add(k, c.workspace, i, 4);
    ptx_st(k, PTX_U32, ptx_at(at, 0), ptx_u32(0));
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    ptxk__dec_check_prompts(&c);
    ptx_bar_sync(k, ptx_imm(0));
    p = ptx_setp(k, PTX_EQ, c.tid, ptx_u32(0));
    ptx_if(k, p);
    at = ptxk__arg_ptr(k, c.args, offsetof(ptxk_decoder_args, state));
    for (word = 0; word < sizeof(ptxk_decoder_state); word += 4)
        ptx_st(k, PTX_U32, ptx_at(at, word), ptx_u32(0));
    ptxk__dec_decide(&c, 1);
    ptx_end(k);
    ptx_ret(k);
}

/* Chooses the number of slices of each product: minimises the busiest block's work, in sixteenths of 32 rows
   of 1024 weights. Weights have arrived when they are needed, but all blocks wait at once for x and for the
   sums of slices, so a byte of these counts as seven. Warp `kind` decides for its kind, each lane tries one
   number; the results go to shared memory. */
static void ptxk__dec_slices(ptxk__dec_state *c) {
    ptx_kernel *k = c->k;
    const ptxk__dec *f = c->f;
    ptx_val p, q, s, per, groups, items, cost, at, x, units, turns;
    ptx_var best;
    uint32_t i;
    for (i = 0; i < PTXK__DEC_KINDS; i++) {
        uint32_t n = ptxk__ceil_div(f->columns[i], PTXK__DEC_UNIT), matrices = i == 2 ? 2 : 1;
        uint32_t part = 4 * PTXK__DEC_TILE * f->d.batch * matrices + (i & 1 ? 0 : 32); /* sums, squares */
        p = ptx_setp(k, PTX_EQ, c->warp, ptx_u32(i));
        ptx_if(k, p);
        best = ptx_var_new(k, ptx_u32(0xffffffffu));
        units = ptx_mov(k, ptx_u32(n));
        s = ptx_for(k, c->lane, ptx_u32(f->slices[i]), ptx_u32(32));
        s = ptx_add(k, s, ptx_u32(1));
        per = ptxk_div_up(k, units, s);
        x = ptxk_div_up(k, units, per); /* no slice is empty */
        p = ptx_setp(k, PTX_EQ, x, s);
        x = ptx_mul(k, per, ptx_u32(f->d.batch));
        q = ptx_setp(k, PTX_LE, x, ptx_u32(f->room));
        p = ptx_and(k, p, q);
        groups = ptx_div(k, c->blocks, s);
        turns = ptxk_div_up(k, s, c->blocks); /* slices that a block takes in turn */
        groups = ptx_max(k, groups, ptx_u32(1));
        x = ptx_mov(k, ptx_u32(f->tiles[i]));
        items = ptxk_div_up(k, x, groups);
        items = ptx_mul(k, items, turns);
        cost = ptx_mad(k, per, ptx_u32(16 * matrices), ptx_u32(5)); /* a tile itself: a third of a unit */
        cost = ptx_mul(k, cost, items);
        x = ptx_mul(k, per, turns);
        x = ptx_mad(k, x, ptx_u32(7 * f->d.batch * (f->integers + f->numbers) / 1152), cost); /* x */
        groups = ptx_mad(k, s, ptx_u32(2), ptx_u32(0xffffffffu)); /* s are written, s - 1 read */
        groups = ptx_mul(k, groups, ptx_u32((uint32_t)((uint64_t)7 * f->tiles[i] * part / 1152)));
        groups = ptx_div(k, groups, c->blocks);
        q = ptx_setp(k, PTX_GT, s, ptx_u32(1));
        groups = ptx_selp(k, groups, ptx_u32(0), q);
        cost = ptx_add(k, x, groups);
        cost = ptx_min(k, cost, ptx_u32(0xffffff));
        cost = ptx_mad(k, cost, ptx_u32(256), s);
        x = ptx_get(k, best);
        cost = ptx_min(k, cost, x);
        cost = ptx_selp(k, cost, x, p);
        ptx_set(k, best, cost);
        ptx_end(k);
        x = ptx_get(k, best);
        x = ptxk_warp_reduce(k, PTX_MIN, x, 1, 32);
        x = ptx_and(k, x, ptx_u32(255));
        p = ptx_setp(k, PTX_EQ, c->lane, ptx_u32(0));
        at = c->shared;
        ptx_guard(k, p);
        ptx_st(k, PTX_U32, ptx_at(at, f->info_at + 192 + 4 * i), x);
        ptx_end(k);
    }
    ptxk__dec_worker_barrier(c);
}

static void ptxk__dec_work(ptx_module *m, const char *site, const ptxk__dec *f, const char *name) {
    ptx_kernel *k = ptx_entry_(m, site, name);
    ptxk__dec_state c;
    ptxk__wait w;
    ptx_val p, x, at, j, layers, steps, kind, need;
    ptx_var wanted;
    uint32_t i;
    ptx_launch_bounds(k, PTXK__DEC_THREADS, 1);
    ptxk__dec_begin(&c, f, k);
    c.shared = ptx_shared_dynamic(k);
    c.message = ptx_var_new(k, ptx_u32(0));
    c.round = ptx_var_new(k, ptx_u32(0));
    c.layer = ptx_var_new(k, ptx_u32(0));
    x = ptxk__arg_u32(k, c.args, offsetof(ptxk_decoder_args, watchdog));
    p = ptx_setp(k, PTX_EQ, x, ptx_u32(0));
    x = ptx_selp(k, ptx_u32(PTXK__DEC_PATIENCE), x, p);
    c.watchdog = ptx_var_new(k, x);
    wanted = ptx_var_new(k, ptx_u32(0));
    ptxk__job_new(&c);
    p = ptx_setp(k, PTX_GE, c.warp, ptx_u32(PTXK__DEC_WARPS));
    ptx_if(k, p);
    ptxk__dec_finisher_loop(&c);
    ptx_ret(k);
    ptx_end(k);
    ptxk__dec_slices(&c);
    ptx_loop(k);
    {
        ptx_comment(k, "what the leader has decided");
        ptx_set(k, c.layer, ptx_u32(0));
        x = ptx_get(k, c.round);
        w.target = ptx_add(k, x, ptx_u32(1));
        w.ranges = 1;
        w.flags = c.workspace;
        w.first[0] = ptx_mov(k, ptx_u32(PTXK__GO / 4));
        w.count[0] = ptx_mov(k, ptx_u32(1));
        w.step = ptx_mov(k, ptx_u32(6));
        ptxk__dec_wait(&c, &w);
        p = ptx_setp(k, PTX_LT, c.tid, ptx_u32(16));
        ptx_if(k, p);
        at = ptx_ptr_add(k, c.workspace, c.tid, 4);
        x = ptx_ld(k, PTX_U32, ptx_at(at, 0));
        at = ptx_ptr_add(k, c.shared, c.tid, 4);
        ptx_st(k, PTX_U32, ptx_at(at, f->info_at), x);
        ptx_end(k);
        ptxk__dec_worker_barrier(&c);
        p = ptx_setp(k, PTX_EQ, c.tid, ptx_u32(0));
        ptx_guard(k, p);
        ptx_red(k, PTX_ATOM_ADD, ptx_with(ptx_at(c.workspace, PTXK__SEEN), PTX_RELEASE | PTX_GPU),
                ptx_u32(1));
        x = ptxk__dec_info(&c, PTXK__OVER);
        p = ptx_setp(k, PTX_NE, x, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dec_end_workers(&c);
        ptx_end(k);
        ptx_comment(k, "the layers");
        ptxk__dec_embed(&c);
        layers = ptxk__dec_layers(&c);
        steps = ptx_mul(k, layers, ptx_u32(4));
        need = ptxk__dec_info(&c, PTXK__NEED);
        steps = ptx_add(k, steps, need);
        j = ptx_for(k, ptx_u32(0), steps, ptx_u32(1));
        {
            x = ptx_shr(k, j, ptx_u32(2));
            ptx_set(k, c.layer, x);
            p = ptx_setp(k, PTX_EQ, x, layers);
            kind = ptx_and(k, j, ptx_u32(3));
            kind = ptx_selp(k, ptx_u32(4), kind, p);
            p = ptx_setp(k, PTX_EQ, kind, ptx_u32(0));
            ptx_if(k, p);
            ptxk__dec_load_layer(&c);
            ptx_end(k);
            p = ptx_setp(k, PTX_EQ, kind, ptx_u32(1));
            ptx_if(k, p);
            ptxk__dec_attention(&c);
            ptx_end(k);
            for (i = 0; i < PTXK__DEC_KINDS; i++) { /* exactly one applies: nothing is kept from before */
                if (i + 1 < PTXK__DEC_KINDS) {
                    p = ptx_setp(k, PTX_EQ, kind, ptx_u32(i));
                    ptx_if(k, p);
                }
                ptxk__dec_set_product(&c, i);
                if (i + 1 < PTXK__DEC_KINDS) ptx_else(k);
            }
            for (i = 0; i + 1 < PTXK__DEC_KINDS; i++) ptx_end(k);
            ptxk__dec_run_product(&c);
        }
        ptx_end(k);
        p = ptx_setp(k, PTX_EQ, c.block, ptx_u32(0));
        ptx_if(k, p);
        ptxk__dec_run_leader(&c, wanted);
        ptx_end(k);
        x = ptx_get(k, c.round);
        x = ptx_add(k, x, ptx_u32(1));
        ptx_set(k, c.round, x);
    }
    ptx_end(k); /* not reached: the last round ends in ptxk__dec_end_workers */
}

PTXGEN_API ptx_code ptxk_decoder_emit_(ptx_module *m, const char *site, const void *desc) {
    ptxk__dec f;
    ptxk_message why;
    char name[150], scale[16] = "", window[16] = "", embedding[16] = "";
    const ptxk_decoder_desc *d = (const ptxk_decoder_desc *)desc;
    ptx_code code = ptxk__dec_form(d, &f, &why);
    if (code) return ptx_fail(m, code, site, "%s", why.text);
    if (d->scale < 0 || d->scale > 0) {
        uint32_t bits;
        memcpy(&bits, &d->scale, sizeof bits);
        (void)snprintf(scale, sizeof scale, "_s%08x", bits);
    }
    if (d->embedding_scale < 0 || d->embedding_scale > 0) {
        uint32_t bits;
        memcpy(&bits, &d->embedding_scale, sizeof bits);
        (void)snprintf(embedding, sizeof embedding, "_e%08x", bits);
    }
    if (d->window) (void)snprintf(window, sizeof window, "_w%u", d->window);
    (void)snprintf(name, sizeof name, "decoder_n%u_f%u_h%u_kv%u_d%u_v%u_b%u_%x_%s_r%u_%u%s%s%s%s%s%s",
                   d->hidden, d->ffn, d->heads, d->kv_heads, d->head_dim, d->vocab, d->batch, d->formats,
                   ptx_type_name((ptx_type)d->kv_type), d->rope_dims, d->rope_pairs, scale,
                   d->precision == PTXK_GEMV_FAST ? "_x8" : "", d->head_norms ? "_hn" : "", window, embedding,
                   d->gelu ? "_gelu" : "");
    {
        char start[160];
        (void)snprintf(start, sizeof start, "%s_start", name);
        ptxk__dec_start(m, site, &f, start);
    }
    ptxk__dec_work(m, site, &f, name);
    return ptx_get_error(m)->code;
}

#undef PTX__AT
#define PTX__AT __FILE__ ":" PTX__STR(__LINE__)

#ifdef __cplusplus
}
#endif

#endif /* PTXGEN_IMPLEMENTATION */

#ifdef PTXGEN_CUDA_H /* included before this header: its operations on tensors come now */
#include "ptxgen_cuda.h"
#endif

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
