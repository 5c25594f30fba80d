/* refusals.c - every field of every description, shape and argument of the operations, out of its range:
   `refusals`. A row of a table names a field and a bad value of it; each byte of each struct must belong
   to a field that a row names, or that is said to take any value. Needs no driver. */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen_kernels.h"

#include "../check.h"

static void check(int ok, const char *operation, const char *field, const char *says) {
    char more[400];
    (void)snprintf(more, sizeof more, "%s: %s: %s", operation, field, says);
    CHECK_MORE(ok, more);
}

enum { DESC, SHAPE, ARGS, STRUCTS };
enum { U32, U64, F32, F64, ANY, SKIP }; /* ANY: all values are right; SKIP: a field of another test */

typedef struct row {
    uint32_t which, offset, bytes, kind;
    const char *name;
    double number; /* of floats */
    uint64_t value;
    const char *says; /* part of the message */
} row;

/* What an operation has: good structs, and functions that take them. */
typedef struct operation {
    const char *name;
    const void *good[STRUCTS];
    uint32_t bytes[STRUCTS];
    ptx_code (*plan)(const void *desc, const void *shape, ptx_plan *plan, ptxk_message *why);
    ptx_code (*check)(const void *desc, const void *args, ptxk_message *why);
    ptx_code (*emit)(ptx_module *m, const char *site, const void *desc);
    const row *rows;
    size_t count;
} operation;

#define CALLS(name)                                                                                          \
    static ptx_code name##_plan(const void *d, const void *s, ptx_plan *p, ptxk_message *why) {              \
        return ptxk_##name##_plan((const ptxk_##name##_desc *)d, (const ptxk_##name##_shape *)s, p, why);    \
    }                                                                                                        \
    static ptx_code name##_check(const void *d, const void *a, ptxk_message *why) {                          \
        return ptxk_##name##_check((const ptxk_##name##_desc *)d, (const ptxk_##name##_args *)a, why);       \
    }
CALLS(flash_decode)
CALLS(kv_scatter)
CALLS(flash_prefill)
CALLS(flash_mla)
CALLS(gemv)
CALLS(matmul)
CALLS(norm)
CALLS(softmax)
CALLS(activation)
CALLS(rope)
CALLS(sample)
CALLS(embed)
CALLS(quantize)
CALLS(route)
CALLS(combine)

static ptxk_decoder_layer layer_table[2]; /* of the good decoder */

static ptx_code decoder_plan(const void *d, const void *s, ptx_plan *p, ptxk_message *why) {
    return ptxk_decoder_plan((const ptxk_decoder_desc *)d, (const ptxk_decoder_shape *)s, p, why);
}
static ptx_code decoder_check(const void *d, const void *a, ptxk_message *why) {
    return ptxk_decoder_check((const ptxk_decoder_desc *)d, (const ptxk_decoder_args *)a, layer_table, why);
}

#define FIELD(op, s, field)                                                                                  \
    (uint32_t) offsetof(ptxk_##op##_##s, field), (uint32_t)sizeof(((ptxk_##op##_##s *)0)->field)
#define D(op, field, value, says)                                                                            \
    { DESC, FIELD(op, desc, field), U32, #field, 0, value, says }
#define DF(op, field, number, says)                                                                          \
    { DESC, FIELD(op, desc, field), F32, #field, number, 0, says }
#define DANY(op, field)                                                                                      \
    { DESC, FIELD(op, desc, field), ANY, #field, 0, 0, "" }
#define S(op, field, value, says)                                                                            \
    { SHAPE, FIELD(op, shape, field), U32, #field, 0, value, says }
#define SANY(op, field)                                                                                      \
    { SHAPE, FIELD(op, shape, field), ANY, #field, 0, 0, "" }
#define A(op, field, value, says)                                                                            \
    { ARGS, FIELD(op, args, field), U32, #field, 0, value, says }
#define AL(op, field, value, says)                                                                           \
    { ARGS, FIELD(op, args, field), U64, #field, 0, value, says }
#define AF(op, field, number, says)                                                                          \
    { ARGS, FIELD(op, args, field), F32, #field, number, 0, says }
#define AANY(op, field)                                                                                      \
    { ARGS, FIELD(op, args, field), ANY, #field, 0, 0, "" }
#define FLOATS(row, op, field, says)                                                                         \
    row(op, field, (double)NAN, says), row(op, field, (double)INFINITY, says),                               \
        row(op, field, -(double)INFINITY, says)
#define TYPE(op, field)                                                                                      \
    D(op, field, PTX_F64, #field " is PTX_F64"), D(op, field, PTXK_F16, #field " is PTXK_F16"),              \
        D(op, field, 0xffffffffu, #field " is 4294967295")
#define NEEDED_TYPE(op, field) TYPE(op, field), D(op, field, 0, #field " is 0")
#define POINTER(op, field, off)                                                                              \
    AL(op, field, 0, #field " is 0"), AL(op, field, 0x100000 + (off), #field " is not aligned"),             \
        AL(op, field, ~(uint64_t)15, #field " passes 2^64")
#define ADDRESS(op, field, off)                                                                              \
    AL(op, field, 0, #field " is 0"), AL(op, field, 0x100000 + (off), #field " is not aligned")

/* Addresses of the good arguments, far from each other. */
#define AT ((uint64_t)0x10000000)

static const row flash_decode_rows[] = {D(flash_decode, heads, 0, "heads is 0"),
                                        D(flash_decode, heads, 65537, "heads is 65537"),
                                        D(flash_decode, heads, 5, "multiple of kv_heads"),
                                        D(flash_decode, kv_heads, 0, "kv_heads is 0"),
                                        D(flash_decode, kv_heads, 65537, "kv_heads"),
                                        D(flash_decode, head_dim, 0, "head_dim is 0"),
                                        D(flash_decode, head_dim, 12, "head_dim"),
                                        D(flash_decode, head_dim, 264, "head_dim"),
                                        NEEDED_TYPE(flash_decode, kv_type),
                                        NEEDED_TYPE(flash_decode, q_type),
                                        NEEDED_TYPE(flash_decode, out_type),
                                        TYPE(flash_decode, append_type),
                                        FLOATS(DF, flash_decode, scale, "scale"),
                                        DF(flash_decode, scale, 2e30, "scale"),
                                        D(flash_decode, queries, 9, "queries is 9"),
                                        D(flash_decode, window, 0x80000000u, "window"),
                                        FLOATS(DF, flash_decode, soft_cap, "soft_cap"),
                                        DF(flash_decode, soft_cap, -1, "soft_cap"),
                                        DF(flash_decode, soft_cap, 1e-7, "soft_cap"),
                                        D(flash_decode, page_size, 8, "page_size"),
                                        D(flash_decode, page_size, 24, "page_size"),
                                        D(flash_decode, page_size, 131072, "page_size"),
                                        D(flash_decode, flags, 20, "flags is 20"),
                                        D(flash_decode, flags, 33, "page_size is 0"),
                                        S(flash_decode, cluster, 9, "cluster is 9, must be 8 at most"),
                                        S(flash_decode, batch, 65536, "batch"),
                                        S(flash_decode, max_len, 101, "max_len"),
                                        S(flash_decode, max_seq, 0x80000000u, "max_seq"),
                                        S(flash_decode, max_seq, 0, "max_len"),
                                        S(flash_decode, sm_count, 0, "sm_count"),
                                        S(flash_decode, sm_count, 0x1000001, "sm_count"),
                                        POINTER(flash_decode, q, 8),
                                        ADDRESS(flash_decode, k_caches, 4),
                                        ADDRESS(flash_decode, v_caches, 4),
                                        AL(flash_decode, lengths, 0, "lengths is 0"),
                                        AL(flash_decode, lengths, 2, "lengths is not"),
                                        POINTER(flash_decode, out, 8),
                                        AL(flash_decode, workspace, 128, "workspace is not aligned"),
                                        POINTER(flash_decode, k, 8),
                                        POINTER(flash_decode, v, 8),
                                        AL(flash_decode, lse, 0, "lse is 0"),
                                        AL(flash_decode, lse, 2, "lse is not aligned"),
                                        AL(flash_decode, out, AT, "out overlaps q"),
                                        AL(flash_decode, out, AT + 1040, "out overlaps q"),
                                        AL(flash_decode, out, AT * 2, "out overlaps k_caches"),
                                        AL(flash_decode, out, AT * 4 - 1024, "out overlaps lengths"),
                                        AL(flash_decode, lse, AT * 5 + 32, "out overlaps lse"),
                                        AL(flash_decode, out, AT * 7, "out overlaps k"),
                                        AL(flash_decode, lse, AT * 8, "lse overlaps v"),
                                        AL(flash_decode, workspace, AT * 9, "lse overlaps w"),
                                        AL(flash_decode, v_caches, AT * 2, "k_caches is v_caches"),
                                        AL(flash_decode, head_stride, 1, "multiples of"),
                                        AL(flash_decode, row_stride, 1, "multiples of"),
                                        AL(flash_decode, head_stride, 64, "overlap"),
                                        AL(flash_decode, row_stride, 32, "overlap"),
                                        AL(flash_decode, row_stride, 1 << 27, "strides pass"),
                                        AL(flash_decode, head_stride, (uint64_t)1 << 62, "strides pass"),
                                        A(flash_decode, max_seq, 0, "max_seq is 0"),
                                        A(flash_decode, max_seq, 0x80000000u, "max_seq"),
                                        A(flash_decode, length, 1, "length, with lengths, is 1"),
                                        AANY(flash_decode, block_table),
                                        AANY(flash_decode, max_pages),
                                        AANY(flash_decode, pool_pages),
                                        SANY(flash_decode, target),
                                        AANY(flash_decode, k_factors),
                                        AANY(flash_decode, v_factors),
                                        AANY(flash_decode, prior),
                                        AANY(flash_decode, prior_lse),
                                        AANY(flash_decode, tree),
                                        AANY(flash_decode, sinks)};

static const row tree_rows[] = {/* flash_decode again, with a tree of drafts */
                                D(flash_decode, window, 5, "window is 5, must be 0 with PTXK_FLASH_TREE"),
                                POINTER(flash_decode, prior, 8),
                                ADDRESS(flash_decode, prior_lse, 2),
                                ADDRESS(flash_decode, tree, 2),
                                ADDRESS(flash_decode, sinks, 2)};

static const row bytes_rows[] = {/* flash_decode again, with caches of q8_0 */
                                 D(flash_decode, head_dim, 48, "head_dim is 48, must be a multiple of 32"),
                                 ADDRESS(flash_decode, k_factors, 4),
                                 ADDRESS(flash_decode, v_factors, 4),
                                 AL(flash_decode, row_stride, 96, "multiples of 64 elements")};

static const row paged_rows[] = {/* flash_decode again, with pages, K and V f16 [16 pages, 2, 16, 64] */
                                 AL(flash_decode, block_table, 0, "block_table is 0"),
                                 AL(flash_decode, block_table, 2, "block_table is not"),
                                 A(flash_decode, max_pages, 0, "max_pages is 0"),
                                 A(flash_decode, pool_pages, 0, "pool_pages is 0"),
                                 AL(flash_decode, k_caches, AT * 2 + 8, "not aligned to 16"),
                                 AL(flash_decode, v_caches, AT * 2 + 61440, "k_caches overlaps v_caches"),
                                 AL(flash_decode, k, AT * 2 + 65536 - 256, "k_caches overlaps k"),
                                 AL(flash_decode, out, AT * 3 + 65536 - 16, "v_caches overlaps out"),
                                 AL(flash_decode, block_table, AT * 3, "v_caches overlaps block_table")};

static const row kv_scatter_rows[] = {D(kv_scatter, kv_heads, 0, "kv_heads"),
                                      D(kv_scatter, kv_heads, 65537, "kv_heads"),
                                      D(kv_scatter, head_dim, 0, "head_dim"),
                                      D(kv_scatter, head_dim, 65537, "head_dim"),
                                      NEEDED_TYPE(kv_scatter, source_type),
                                      NEEDED_TYPE(kv_scatter, cache_type),
                                      D(kv_scatter, page_size, 15, "page_size"),
                                      D(kv_scatter, page_size, 48, "page_size"),
                                      D(kv_scatter, page_size, 131072, "page_size"),
                                      D(kv_scatter, flags, 1, "page_size is 0"),
                                      D(kv_scatter, flags, 4, "flags is 4"),
                                      S(kv_scatter, tokens, 0xffffffffu, "tokens"),
                                      POINTER(kv_scatter, k, 8),
                                      POINTER(kv_scatter, v, 8),
                                      ADDRESS(kv_scatter, k_caches, 4),
                                      ADDRESS(kv_scatter, v_caches, 4),
                                      AL(kv_scatter, sequences, 2, "sequences is not"),
                                      AL(kv_scatter, positions, 2, "positions is not"),
                                      AANY(kv_scatter, block_table),
                                      AL(kv_scatter, head_stride, 1, "multiples of"),
                                      AL(kv_scatter, row_stride, 1, "multiples of"),
                                      AL(kv_scatter, head_stride, 64, "overlap"),
                                      AL(kv_scatter, row_stride, 32, "overlap"),
                                      AL(kv_scatter, head_stride, (uint64_t)1 << 62, "strides pass"),
                                      AL(kv_scatter, v_caches, AT * 3, "k_caches is v_caches"),
                                      A(kv_scatter, sequence_step, 0x80000000u, "sequence_step"),
                                      AANY(kv_scatter, position),
                                      A(kv_scatter, position_step, 0x80000000u, "position_step"),
                                      A(kv_scatter, batch, 0, "batch is 0"),
                                      A(kv_scatter, max_seq, 0, "max_seq is 0"),
                                      AANY(kv_scatter, tokens),
                                      AANY(kv_scatter, max_pages),
                                      AANY(kv_scatter, pool_pages),
                                      AANY(kv_scatter, k_factors),
                                      AANY(kv_scatter, v_factors)};

static const row scatter_bytes_rows[] = {
    D(kv_scatter, head_dim, 48, "head_dim is 48, must be a multiple of 32"),
    ADDRESS(kv_scatter, k_factors, 4),
    ADDRESS(kv_scatter, v_factors, 4),
    AL(kv_scatter, row_stride, 96, "multiples of 64 elements")};

static const row scatter_paged_rows[] = {
    AL(kv_scatter, block_table, 0, "block_table is 0"),
    AL(kv_scatter, block_table, 2, "block_table is not"),
    A(kv_scatter, max_pages, 0, "max_pages is 0"),
    A(kv_scatter, pool_pages, 0, "pool_pages is 0"),
    AL(kv_scatter, k, AT * 3 + 65536 - 16, "k_caches overlaps k"),
    AL(kv_scatter, positions, AT * 4 + 65532, "v_caches overlaps positions"),
    AL(kv_scatter, v_caches, AT * 3 + 16, "k_caches overlaps v_caches")};

static const row flash_prefill_rows[] = {
    D(flash_prefill, heads, 0, "heads"),
    D(flash_prefill, heads, 65538, "heads"),
    D(flash_prefill, heads, 5, "multiple of"),
    D(flash_prefill, kv_heads, 0, "kv_heads"),
    D(flash_prefill, kv_heads, 65537, "kv_heads"),
    D(flash_prefill, head_dim, 0, "head_dim"),
    D(flash_prefill, head_dim, 100, "head_dim"),
    D(flash_prefill, head_dim, 264, "head_dim"),
    D(flash_prefill, type, 0, "type is 0"),
    NEEDED_TYPE(flash_prefill, type),
    NEEDED_TYPE(flash_prefill, out_type),
    D(flash_prefill, flags, 32, "flags is 32"),
    D(flash_prefill, flags, 4, "page_size is 0"),
    D(flash_prefill, page_size, 8, "page_size is 8"),
    D(flash_prefill, page_size, 48, "page_size is 48"),
    D(flash_prefill, page_size, 131072, "page_size is 131072"),
    D(flash_prefill, window, (1u << 30) + 1, "window"),
    D(flash_prefill, precision, 1, "precision"),
    D(flash_prefill, precision, 2, "precision"),
    FLOATS(DF, flash_prefill, scale, "scale"),
    FLOATS(DF, flash_prefill, soft_cap, "soft_cap"),
    DF(flash_prefill, soft_cap, -1, "soft_cap"),
    S(flash_prefill, target, 70, "target is 70"),
    S(flash_prefill, batch, 0xffffffffu, "batch"),
    S(flash_prefill, q_len, (1u << 30) + 1, "q_len"),
    S(flash_prefill, kv_len, (1u << 30) + 1, "kv_len"),
    SANY(flash_prefill, q_total),
    SANY(flash_prefill, kv_total),
    POINTER(flash_prefill, q, 8),
    POINTER(flash_prefill, k, 8),
    POINTER(flash_prefill, v, 8),
    POINTER(flash_prefill, out, 8),
    AL(flash_prefill, lse, 0, "lse is 0"),
    AL(flash_prefill, lse, 2, "lse is not"),
    AL(flash_prefill, cu_q, 2, "cu_q is not"),
    AL(flash_prefill, cu_kv, 2, "cu_kv is not"),
    AL(flash_prefill, q_batch_stride, 4, "q_batch_stride is 4"),
    AL(flash_prefill, q_row_stride, 4, "q_row"),
    AL(flash_prefill, q_head_stride, 4, "q_head"),
    AL(flash_prefill, k_batch_stride, 4, "k_batch"),
    AL(flash_prefill, k_row_stride, (uint64_t)1 << 32, "k_row"),
    AL(flash_prefill, k_head_stride, 4, "k_head"),
    AL(flash_prefill, v_batch_stride, (uint64_t)1 << 41, "v_batch"),
    AL(flash_prefill, v_row_stride, 4, "v_row"),
    AL(flash_prefill, v_head_stride, 4, "v_head"),
    AL(flash_prefill, out_batch_stride, 4, "out_batch"),
    AL(flash_prefill, out_row_stride, 4, "out_row"),
    AL(flash_prefill, out_head_stride, 4, "out_head"),
    AL(flash_prefill, out_batch_stride, 0, "rows of out overlap"),
    AL(flash_prefill, out_batch_stride, 64, "rows of out overlap"),
    AL(flash_prefill, out_row_stride, 64, "rows of out overlap"),
    AL(flash_prefill, out_row_stride, 192, "rows of out overlap"),
    AL(flash_prefill, out_head_stride, 32, "rows of out overlap"),
    AL(flash_prefill, out_head_stride, 256, "rows of out overlap"),
    AL(flash_prefill, lse_batch_stride, 39, "rows of lse overlap"),
    AL(flash_prefill, lse_head_stride, 9, "rows of lse overlap"),
    AL(flash_prefill, lse_head_stride, (uint64_t)1 << 41, "lse_head_stride"),
    A(flash_prefill, batch, 0, "batch is 0"),
    A(flash_prefill, q_len, (1u << 30) + 1, "q_len"),
    A(flash_prefill, kv_len, (1u << 30) + 1, "kv_len"),
    A(flash_prefill, reserved, 9, "reserved is 9"),
    AL(flash_prefill, out, AT * 2, "out overlaps k"),
    AL(flash_prefill, out, AT * 3 + 5104, "out overlaps v"),
    AL(flash_prefill, out, AT + 512, "out overlaps q"),
    AL(flash_prefill, lse, AT * 4 + 10236, "out overlaps lse"),
    AL(flash_prefill, lse, AT, "lse overlaps q"),
    AANY(flash_prefill, block_table),
    TYPE(flash_prefill, kv_type),
    D(flash_prefill, kv_type, PTX_F32, "kv_type is PTX_F32, must be 0, type,"),
    AANY(flash_prefill, k_factors),
    AANY(flash_prefill, v_factors),
    AANY(flash_prefill, max_pages),
    AANY(flash_prefill, pool_pages),
    AANY(flash_prefill, sinks),
    AANY(flash_prefill, tree)};

static const row prefill_bytes_rows[] = {
    D(flash_prefill, head_dim, 48, "head_dim is 48, must be a multiple of 32"),
    POINTER(flash_prefill, k_factors, 8),
    POINTER(flash_prefill, v_factors, 8),
    ADDRESS(flash_prefill, sinks, 2),
    ADDRESS(flash_prefill, tree, 2),
    D(flash_prefill, window, 3, "window is 3, must be 0 with"),
    AL(flash_prefill, k_row_stride, 96, "k_row_stride is 96, must be a multiple of 64 elements"),
    AL(flash_prefill, v_head_stride, 32, "v_head_stride is 32, must be a multiple of 64 elements")};

static const row flash_mla_rows[] = {
    D(flash_mla, heads, 0, "heads is 0"),
    D(flash_mla, heads, 65537, "heads is 65537"),
    D(flash_mla, latent, 384, "latent is 384"),
    D(flash_mla, rope, 0, "rope is 0"),
    D(flash_mla, rope, 40, "rope is 40"),
    D(flash_mla, rope, 80, "rope is 80"),
    NEEDED_TYPE(flash_mla, kv_type),
    D(flash_mla, kv_type, PTX_F32, "kv_type is PTX_F32, must be PTX_F16, PTX_BF16, PTX_E4M3 or PTXK_Q8_0"),
    NEEDED_TYPE(flash_mla, q_type),
    NEEDED_TYPE(flash_mla, out_type),
    D(flash_mla, tile, 0, "tile is 0"),
    D(flash_mla, tile, 48, "tile is 48"),
    D(flash_mla, page_size, 8, "page_size is 8"),
    D(flash_mla, page_size, 48, "page_size is 48"),
    D(flash_mla, page_size, 131072, "page_size is 131072"),
    D(flash_mla, flags, 2, "flags is 2"),
    FLOATS(DF, flash_mla, scale, "scale"),
    S(flash_mla, batch, 65536, "batch is 65536"),
    S(flash_mla, queries, 1u << 29, "more than 2^30 pairs"),
    S(flash_mla, max_len, 101, "max_len is 101, must be at most 100"),
    S(flash_mla, max_seq, (1u << 30) + 1, "max_seq is 1073741825"),
    S(flash_mla, sm_count, 0, "sm_count is 0"),
    S(flash_mla, target, 0, "target is 0"),
    POINTER(flash_mla, q, 8),
    POINTER(flash_mla, q_rope, 8),
    POINTER(flash_mla, out, 8),
    AL(flash_mla, q_row_stride, 6, "strides of q are 6 and 512"),
    AL(flash_mla, q_head_stride, 1ull << 32, "strides of q are 8192 and 4294967296"),
    AL(flash_mla, rope_row_stride, 6, "strides of q_rope are 6 and 64"),
    AL(flash_mla, rope_head_stride, 2, "strides of q_rope are 1024 and 2"),
    AL(flash_mla, out_row_stride, 512, "rows of out overlap"),
    AL(flash_mla, out_head_stride, 256, "rows of out overlap"),
    POINTER(flash_mla, c_caches, 4),
    POINTER(flash_mla, r_caches, 4),
    AL(flash_mla, c_stride, 504, "c_stride is 504"),
    AL(flash_mla, c_stride, 580, "c_stride is 580"),
    AL(flash_mla, r_stride, 1ull << 30, "r_stride is 1073741824"),
    AL(flash_mla, lengths, 2, "lengths is not aligned"),
    AANY(flash_mla, block_table),
    ADDRESS(flash_mla, lse, 2),
    AL(flash_mla, workspace, AT + 128, "workspace is not aligned to 256"),
    A(flash_mla, batch, 0, "batch is 0"),
    A(flash_mla, queries, 1u << 29, "queries is 536870912"),
    A(flash_mla, max_seq, 0, "max_seq is 0"),
    AANY(flash_mla, max_pages),
    AANY(flash_mla, pool_pages),
    AANY(flash_mla, c_factors),
    AANY(flash_mla, r_factors),
    A(flash_mla, length, 5, "length, with lengths, is 5"),
    AL(flash_mla, out, AT, "out overlaps q"),
    AL(flash_mla, lse, AT * 6, "lse overlaps lengths")};

static const row mla_paged_rows[] = {ADDRESS(flash_mla, block_table, 2), A(flash_mla, max_pages, 0, "max_pages is 0"),
                                     A(flash_mla, pool_pages, 0, "pool_pages is 0"),
                                     POINTER(flash_mla, c_caches, 8),
                                     AL(flash_mla, out, AT * 4 + 1024, "out overlaps c_caches")};

static const row mla_bytes_rows[] = {D(flash_mla, rope, 48, "rope is 48, must be 32 or 64 in PTXK_Q8_0"),
                                     POINTER(flash_mla, c_factors, 4),
                                     POINTER(flash_mla, r_factors, 4),
                                     AL(flash_mla, c_stride, 640, "c_stride is 640, must be a multiple of 256"),
                                     AL(flash_mla, r_stride, 96, "r_stride is 96, must be a multiple of 64")};

static const row mla_bytes_paged_rows[] = {AL(flash_mla, out, AT * 10 + 16, "out overlaps c_factors"),
                                           AL(flash_mla, r_factors, AT * 11 + 4, "r_factors is not aligned to 16")};

static const row mla_e4m3_rows[] = {AL(flash_mla, c_factors, AT * 10 + 2, "c_factors is not aligned to 4"),
                                    AL(flash_mla, c_stride, 520, "c_stride is 520, must be a multiple of 16")};

static const row prefill_paged_rows[] = {/* flash_prefill again, with pools of 4 pages f16 [2, 16, 64] */
                                         AL(flash_prefill, block_table, 0, "block_table is 0"),
                                         AL(flash_prefill, block_table, 2, "block_table is not"),
                                         A(flash_prefill, max_pages, 0, "max_pages is 0"),
                                         A(flash_prefill, max_pages, 1, "1 pages have 16 positions"),
                                         A(flash_prefill, pool_pages, 0, "pool_pages is 0"),
                                         AL(flash_prefill, k, AT * 2 + 8, "not aligned to 16"),
                                         AL(flash_prefill, out, AT * 3 + 16368, "out overlaps v"),
                                         AL(flash_prefill, out, AT * 11, "out overlaps block_table")};

static const row gemv_rows[] = {D(gemv, format, 0, "format"),
                                D(gemv, format, 99, "format"),
                                D(gemv, columns, 0, "columns"),
                                D(gemv, columns, 9, "columns"),
                                D(gemv, precision, 2, "precision"),
                                NEEDED_TYPE(gemv, output_type),
                                D(gemv, output_type, PTX_BF16, "output_type"),
                                D(gemv, flags, 32, "flags"),
                                D(gemv, flags, 4, "RESIDUAL"),
                                D(gemv, second, 99, "second"),
                                D(gemv, second, PTXK_F32, "second"),
                                D(gemv, third, 99, "third"),
                                S(gemv, n, 0, "n is 0"),
                                S(gemv, n, 0x80000000u, "n is"),
                                S(gemv, k, 0, "k is 0"),
                                S(gemv, k, 100, "k is"),
                                S(gemv, k, 0x4000100u, "k is"),
                                S(gemv, sm_count, 0, "sm_count"),
                                S(gemv, sm_count, 65537, "sm_count"),
                                S(gemv, second_n, 0, "second_n"),
                                S(gemv, third_n, 0, "third_n"),
                                POINTER(gemv, weights, 8),
                                POINTER(gemv, x, 8),
                                POINTER(gemv, gamma, 8),
                                AANY(gemv, residual),
                                POINTER(gemv, y, 8),
                                ADDRESS(gemv, workspace, 16),
                                POINTER(gemv, bias, 8),
                                A(gemv, n, 0x80000000u, "n is"),
                                A(gemv, k, 8, "k is 8"),
                                FLOATS(AF, gemv, eps, "eps"),
                                AF(gemv, eps, -1, "eps is -1"),
                                A(gemv, reserved, 1, "reserved is 1"),
                                POINTER(gemv, more[0].weights, 8),
                                POINTER(gemv, more[0].bias, 8),
                                POINTER(gemv, more[0].y, 8),
                                A(gemv, more[0].n, 0x80000000u, "n is"),
                                A(gemv, more[0].reserved, 7, "more[0].reserved is 7"),
                                POINTER(gemv, more[1].weights, 8),
                                POINTER(gemv, more[1].bias, 8),
                                POINTER(gemv, more[1].y, 8),
                                A(gemv, more[1].n, 0x80000000u, "n is"),
                                A(gemv, more[1].reserved, 7, "more[1].reserved is 7"),
                                AL(gemv, y, AT, "y overlaps weights"),
                                AL(gemv, y, AT * 2, "y overlaps x"),
                                AL(gemv, workspace, AT * 3, "workspace overlaps gamma"),
                                AL(gemv, more[1].y, AT * 5, "y overlaps")};

static const row matmul_rows[] = {NEEDED_TYPE(matmul, a_type),
                                  D(matmul, a_type, PTX_U8, "a_type is PTX_U8"),
                                  NEEDED_TYPE(matmul, b_type),
                                  D(matmul, b_type, PTX_BF16, "b_type is PTX_BF16, must be a_type"),
                                  NEEDED_TYPE(matmul, out_type),
                                  D(matmul, out_type, PTX_S8, "out_type is PTX_S8"),
                                  D(matmul, flags, 16, "flags is 16"),
                                  D(matmul, precision, 1, "precision is 1"),
                                  D(matmul, precision, 2, "precision is 2"),
                                  D(matmul, activation, 4, "activation is 4"),
                                  D(matmul, a_factors, 3, "a_factors is 3"),
                                  D(matmul, a_factors, 5, "a_factors is 5"),
                                  D(matmul, b_factors, 4, "b_factors is 4"),
                                  S(matmul, m, 0x80000000u, "m is"),
                                  S(matmul, n, 0x80000000u, "n is"),
                                  S(matmul, k, 0x80000000u, "k is"),
                                  S(matmul, batch, 0x80000000u, "batch is"),
                                  S(matmul, sm_count, 0, "sm_count is 0"),
                                  S(matmul, sm_count, 65537, "sm_count"),
                                  S(matmul, target, 70, "target is 70"),
                                  S(matmul, aligned, 2, "aligned is 2"),
                                  AL(matmul, a, 0, "a is 0"),
                                  AL(matmul, a, AT + 1, "a is not aligned to 2"),
                                  AL(matmul, a, ~(uint64_t)15, "a passes 2^64"),
                                  AL(matmul, b, 0, "b is 0"),
                                  AL(matmul, b, AT + 1, "b is not aligned to 2"),
                                  AL(matmul, c, 0, "c is 0"),
                                  AL(matmul, c, AT + 2, "c is not aligned to 4"),
                                  AL(matmul, d, 0, "d is 0"),
                                  AL(matmul, d, AT + 2, "d is not aligned to 4"),
                                  AL(matmul, d, AT + 40, "d overlaps a"),
                                  AL(matmul, d, AT * 2, "d overlaps b"),
                                  AL(matmul, d, AT * 3 + 4, "d overlaps c"),
                                  AL(matmul, d, AT * 5 - 4, "d overlaps bias"),
                                  AL(matmul, bias, 0, "bias is 0"),
                                  AL(matmul, bias, AT + 2, "bias is not aligned"),
                                  AL(matmul, a_factors, 0, "a_factors is 0"),
                                  AL(matmul, a_factors, AT + 2, "a_factors is not aligned"),
                                  AL(matmul, b_factors, 0, "b_factors is 0"),
                                  AL(matmul, b_factors, AT + 2, "b_factors is not aligned"),
                                  A(matmul, m, 0x80000000u, "m is"),
                                  A(matmul, n, 0x80000000u, "n is"),
                                  A(matmul, k, 0x80000000u, "k is"),
                                  A(matmul, lda, 29, "lda is 29, must be at least 30"),
                                  A(matmul, ldb, 19, "ldb is 19"),
                                  A(matmul, ldc, 19, "ldc is 19"),
                                  A(matmul, ldd, 19, "ldd is 19"),
                                  A(matmul, reserved, 1, "reserved is 1"),
                                  AANY(matmul, a_stride),
                                  AANY(matmul, b_stride),
                                  AANY(matmul, c_stride),
                                  AL(matmul, d_stride, 199, "rows of d overlap"),
                                  AANY(matmul, a_factors_stride),
                                  AANY(matmul, b_factors_stride),
                                  AANY(matmul, groups),
                                  AL(matmul, workspace, 128, "workspace is not aligned"),
                                  AL(matmul, workspace, AT * 4 - 128, "workspace is not aligned"),
                                  A(matmul, batch, 0x80000000u, "batch is"),
                                  AANY(matmul, alpha),
                                  AANY(matmul, beta),
                                  A(matmul, sm_count, 0, "sm_count is 0")};

static const row matmul_grouped_rows[] = {AL(matmul, groups, 0, "groups is 0"),
                                          AL(matmul, groups, AT + 4, "groups is not aligned")};

static const row norm_rows[] = {D(norm, n, 0, "n is 0"),
                                D(norm, n, (1u << 24) + 1, "n is"),
                                D(norm, kind, 2, "kind"),
                                NEEDED_TYPE(norm, x_type),
                                NEEDED_TYPE(norm, y_type),
                                NEEDED_TYPE(norm, weight_type),
                                D(norm, x_type, 0, "x_type"),
                                D(norm, flags, 16, "flags"),
                                D(norm, flags, 6, "beta (PTXK_NORM_BETA) goes with gamma"),
                                D(norm, kind, PTXK_NORM_RMS, "beta (PTXK_NORM_BETA) goes with LayerNorm"),
                                S(norm, rows, 0x80000000u, "rows"),
                                POINTER(norm, x, 8),
                                POINTER(norm, residual, 8),
                                POINTER(norm, y, 8),
                                POINTER(norm, gamma, 8),
                                POINTER(norm, beta, 8),
                                A(norm, rows, 0x80000000u, "rows"),
                                FLOATS(AF, norm, eps, "eps"),
                                AF(norm, eps, -1e-9, "eps"),
                                AL(norm, y, AT, "y"),
                                AL(norm, y, AT * 2 + 16, "y overlaps residual"),
                                AL(norm, y, AT * 4, "y overlaps gamma"),
                                AL(norm, residual, AT, "x overlaps residual"),
                                AL(norm, beta, AT + 16, "x overlaps beta")};

static const row quantize_rows[] = {D(quantize, n, 0, "n is 0"),
                                    D(quantize, n, 4, "multiple of 8"),
                                    D(quantize, n, (1u << 24) + 8, "n is"),
                                    NEEDED_TYPE(quantize, x_type),
                                    D(quantize, y_type, PTX_F32, "y_type is PTX_F32"),
                                    D(quantize, y_type, PTXK_NVFP4, "group is 128"),
                                    D(quantize, group, 64, "group is 64"),
                                    S(quantize, rows, 0x80000000u, "rows"),
                                    POINTER(quantize, x, 8),
                                    POINTER(quantize, y, 8),
                                    POINTER(quantize, factors, 8),
                                    A(quantize, rows, 0x80000000u, "rows"),
                                    A(quantize, reserved, 1, "reserved"),
                                    AL(quantize, y, AT + 16, "y overlaps x"),
                                    AL(quantize, factors, AT * 2 + 16, "y overlaps factors")};

static const row route_rows[] = {D(route, experts, 0, "experts is 0"),
                                 D(route, experts, 513, "experts is 513"),
                                 D(route, experts, 1, "chosen is 2, must be at most experts, 1"),
                                 D(route, experts, 9, "groups is 4"),
                                 D(route, chosen, 0, "chosen is 0"),
                                 D(route, chosen, 17, "chosen is 17"),
                                 D(route, kind, 3, "kind is 3"),
                                 D(route, flags, 4, "flags is 4"),
                                 D(route, groups, 1, "groups is 1"),
                                 D(route, groups, 3, "groups is 3, must be 0, or 2 to 32 and divide experts, 8"),
                                 D(route, groups, 33, "groups is 33"),
                                 D(route, groups, 0, "chosen_groups is 2, must be at most groups, 0"),
                                 D(route, chosen_groups, 0, "chosen_groups is 0"),
                                 D(route, chosen_groups, 5, "chosen_groups is 5"),
                                 FLOATS(DF, route, scale, "scale"),
                                 S(route, tokens, (1u << 22) + 1, "tokens"),
                                 POINTER(route, scores, 2),
                                 POINTER(route, bias, 2),
                                 POINTER(route, choices, 2),
                                 POINTER(route, weights, 2),
                                 POINTER(route, offsets, 2),
                                 POINTER(route, rows, 2),
                                 POINTER(route, places, 2),
                                 A(route, tokens, (1u << 22) + 1, "tokens"),
                                 A(route, reserved, 1, "reserved"),
                                 AL(route, choices, AT + 4, "choices overlaps scores"),
                                 AL(route, weights, AT * 2 + 4, "weights overlaps bias"),
                                 AL(route, places, AT * 6, "rows overlaps places")};

static const row combine_rows[] = {D(combine, chosen, 0, "chosen is 0"),
                                   D(combine, chosen, 17, "chosen is 17"),
                                   NEEDED_TYPE(combine, x_type),
                                   NEEDED_TYPE(combine, y_type),
                                   D(combine, flags, 2, "flags is 2"),
                                   S(combine, tokens, (1u << 22) + 1, "tokens"),
                                   S(combine, n, 0, "n is 0"),
                                   S(combine, n, (1u << 24) + 1, "n is"),
                                   AL(combine, x, 0, "x is 0"),
                                   AL(combine, x, AT + 2, "x is not aligned"),
                                   POINTER(combine, weights, 2),
                                   AL(combine, places, AT + 2, "places is not aligned"),
                                   AL(combine, y, 0, "y is 0"),
                                   AL(combine, y, AT + 2, "y is not aligned"),
                                   A(combine, tokens, (1u << 22) + 1, "tokens"),
                                   A(combine, n, 0, "n is 0"),
                                   A(combine, n, (1u << 24) + 1, "n is"),
                                   AANY(combine, x_rows),
                                   A(combine, reserved, 1, "reserved"),
                                   AL(combine, y, AT + 4, "y overlaps x"),
                                   AL(combine, y, AT * 3, "y overlaps places")};

static const row softmax_rows[] = {D(softmax, n, 0, "n is 0"),
                                   D(softmax, n, (1u << 24) + 1, "n is"),
                                   NEEDED_TYPE(softmax, x_type),
                                   NEEDED_TYPE(softmax, y_type),
                                   FLOATS(DF, softmax, scale, "scale"),
                                   S(softmax, rows, 0x80000000u, "rows"),
                                   POINTER(softmax, x, 8),
                                   POINTER(softmax, y, 8),
                                   A(softmax, rows, 0x80000000u, "rows"),
                                   A(softmax, reserved, 1, "reserved"),
                                   AL(softmax, y, AT + 16, "y overlaps x")};

static const row activation_rows[] = {D(activation, kind, 4, "kind is 4"),
                                      D(activation, gated, 2, "gated"),
                                      NEEDED_TYPE(activation, x_type),
                                      NEEDED_TYPE(activation, y_type),
                                      S(activation, rows, 65536, "rows"),
                                      S(activation, n, 0x80000000u, "n is"),
                                      POINTER(activation, x, 1),
                                      POINTER(activation, up, 1),
                                      POINTER(activation, y, 1),
                                      AL(activation, x_stride, 99, "x_stride is 99"),
                                      AL(activation, up_stride, 99, "up_stride"),
                                      AL(activation, y_stride, 99, "y_stride"),
                                      AL(activation, y_stride, ((uint64_t)1 << 40) + 1, "y_stride"),
                                      A(activation, rows, 65536, "rows"),
                                      A(activation, n, 0x80000000u, "n is"),
                                      AL(activation, y, AT + 4, "y overlaps x"),
                                      AL(activation, y, AT * 2 - 4, "y overlaps up")};

static const row rope_rows[] = {D(rope, heads, 0, "heads"),
                                D(rope, heads, 65537, "heads"),
                                D(rope, head_dim, 0, "head_dim"),
                                D(rope, head_dim, 65538, "head_dim"),
                                D(rope, head_dim, 63, "even"),
                                D(rope, dims, 66, "dims"),
                                D(rope, dims, 7, "dims"),
                                D(rope, pairs, 2, "pairs"),
                                NEEDED_TYPE(rope, type),
                                S(rope, tokens, 65536, "tokens"),
                                POINTER(rope, x, 8),
                                AL(rope, positions, 0, "positions is 0"),
                                AL(rope, positions, 2, "positions is not"),
                                AL(rope, frequencies, 0, "frequencies is 0"),
                                AL(rope, frequencies, 4, "frequencies is not"),
                                AL(rope, stride, 254, "stride is 254"),
                                AL(rope, stride, 257, "stride is 257"),
                                AL(rope, stride, (uint64_t)1 << 41, "stride is"),
                                A(rope, tokens, 65536, "tokens"),
                                A(rope, reserved, 1, "reserved"),
                                AL(rope, positions, AT + 16, "x overlaps positions"),
                                AL(rope, frequencies, AT + 16, "x overlaps frequencies")};

static const row sample_rows[] = {NEEDED_TYPE(sample, type),
                                  D(sample, method, 2, "method"),
                                  S(sample, rows, 65536, "rows"),
                                  S(sample, n, 0, "n is 0"),
                                  S(sample, n, (1u << 24) + 1, "n is"),
                                  POINTER(sample, logits, 8),
                                  AL(sample, positions, 2, "positions is not"),
                                  AL(sample, tokens, 0, "tokens is 0"),
                                  AL(sample, tokens, 2, "tokens is not"),
                                  AANY(sample, seed),
                                  A(sample, rows, 65536, "rows"),
                                  A(sample, n, 0, "n is 0"),
                                  A(sample, n, (1u << 24) + 1, "n is"),
                                  AANY(sample, top_k),
                                  FLOATS(AF, sample, top_p, "top_p"),
                                  AF(sample, top_p, -0.5, "top_p"),
                                  AF(sample, top_p, 1.5, "top_p"),
                                  FLOATS(AF, sample, temperature, "temperature"),
                                  AF(sample, temperature, -1, "temperature"),
                                  A(sample, reserved, 1, "reserved"),
                                  AL(sample, tokens, AT, "tokens overlaps logits"),
                                  AL(sample, positions, AT * 3, "tokens overlaps positions")};

static const row embed_rows[] = {D(embed, n, 0, "n is 0"),
                                 D(embed, n, (1u << 24) + 256, "n is"),
                                 D(embed, n, 320, "multiple of 256"),
                                 D(embed, format, 0xffffffffu, "format"),
                                 D(embed, format, 31, "format"),
                                 NEEDED_TYPE(embed, y_type),
                                 FLOATS(DF, embed, scale, "scale"),
                                 DF(embed, scale, 2e30, "scale"),
                                 S(embed, tokens, 65536, "tokens"),
                                 POINTER(embed, table, 8),
                                 ADDRESS(embed, ids, 2),
                                 POINTER(embed, y, 8),
                                 AANY(embed, rows),
                                 A(embed, tokens, 65536, "tokens is 65536"),
                                 AL(embed, y, AT, "y overlaps table"),
                                 AL(embed, y, AT + 144 * 99, "y overlaps table"),
                                 AL(embed, ids, AT * 3 + 4 * 256 * 3 - 4, "y overlaps ids")};

/* A word of a matrix among the arguments. */
#define AM(matrix, word, kind, value, says)                                                                  \
    {                                                                                                        \
        ARGS,                                                                                                \
            (uint32_t)(offsetof(ptxk_decoder_args, matrix) + offsetof(ptxk_decoder_matrix, word)),           \
            (uint32_t)sizeof(((ptxk_decoder_matrix *)0)->word), kind, #matrix "." #word, 0, value, says      \
    }
#define D8(field, most) /* of eights */                                                                      \
    D(decoder, field, 0, #field " is 0"), D(decoder, field, 12, #field " is 12"),                            \
        D(decoder, field, (most) + 8, #field " is")

static const row decoder_rows[] = {D8(hidden, 1u << 17),
                                   D8(ffn, 1u << 18),
                                   D8(head_dim, 256u),
                                   D(decoder, heads, 0, "heads is 0"),
                                   D(decoder, heads, 1026, "heads is 1026"),
                                   D(decoder, heads, 5, "multiple of kv_heads"),
                                   D(decoder, kv_heads, 0, "kv_heads is 0"),
                                   D(decoder, kv_heads, 1025, "kv_heads"),
                                   D(decoder, vocab, 0, "vocab is 0"),
                                   D(decoder, vocab, (1u << 24) + 1, "vocab is"),
                                   D(decoder, batch, 0, "batch is 0"),
                                   D(decoder, batch, 5, "batch is 5"),
                                   D(decoder, formats, 0, "formats is"),
                                   D(decoder, formats, 1u << 31, "formats is"),
                                   D(decoder, hidden, 264, "hidden is 264, must be a multiple of 256"),
                                   D(decoder, ffn, 128, "ffn is 128, must be a multiple of 256"),
                                   D(decoder, head_dim, 72, "heads * head_dim is 288, must be a multiple"),
                                   NEEDED_TYPE(decoder, kv_type),
                                   D(decoder, rope_dims, 63, "rope_dims is 63"),
                                   D(decoder, rope_dims, 66, "rope_dims is 66"),
                                   D(decoder, rope_pairs, 2, "rope_pairs"),
                                   FLOATS(DF, decoder, scale, "scale"),
                                   D(decoder, precision, 2, "precision"),
                                   D(decoder, head_norms, 2, "head_norms is 2"),
                                   D(decoder, window, 0x80000000u, "window is 2147483648"),
                                   D(decoder, activation, PTXK_GELU_ERF, "activation is 2"),
                                   D(decoder, activation, 4, "activation is 4"),
                                   D(decoder, sinks, 2, "sinks is 2"),
                                   D(decoder, expert_ffn, 8, "expert_ffn is 8, must be a multiple of 256"),
                                   D(decoder, expert_ffn, 256, "expert_ffn is 256, must be 0 without"),
                                   D(decoder, shared_router, 1, "shared_router is 1, must be 0 without"),
                                   D(decoder, route.experts, 513, "experts is 513"),
                                   DANY(decoder, route.chosen),
                                   DANY(decoder, route.kind),
                                   DANY(decoder, route.flags),
                                   DANY(decoder, route.scale),
                                   DANY(decoder, route.groups),
                                   DANY(decoder, route.chosen_groups),
                                   FLOATS(DF, decoder, embedding_scale, "embedding_scale"),
                                   S(decoder, layers, 0, "layers is 0"),
                                   S(decoder, layers, 4097, "layers is"),
                                   S(decoder, max_seq, 0, "max_seq is 0"),
                                   S(decoder, max_seq, 0x80000000u, "max_seq"),
                                   S(decoder, sm_count, 0, "sm_count is 0"),
                                   S(decoder, sm_count, 65537, "sm_count"),
                                   POINTER(decoder, layers, 4),
                                   POINTER(decoder, frequencies, 4),
                                   POINTER(decoder, final_norm, 8),
                                   AM(embedding, weights, U64, 0, "embedding is 0"),
                                   AM(embedding, weights, U64, AT + 8, "embedding is not aligned"),
                                   AM(embedding, bias, ANY, 0, ""),
                                   AM(embedding, format, U32, PTXK_Q6_K, "embedding: format is"),
                                   AM(embedding, format, U32, 0xffffffffu, "embedding: format is"),
                                   AM(embedding, reserved, U32, 1, "embedding: reserved"),
                                   AM(output, weights, U64, 0, "output is 0"),
                                   AM(output, weights, U64, AT + 8, "output is not aligned"),
                                   AM(output, bias, U64, AT + 2, "output's bias is not aligned"),
                                   AM(output, format, U32, PTXK_Q6_K, "output: format is"),
                                   AM(output, reserved, U32, 1, "output: reserved"),
                                   ADDRESS(decoder, prompt, 2),
                                   ADDRESS(decoder, prompt_lengths, 2),
                                   ADDRESS(decoder, positions, 2),
                                   POINTER(decoder, logits, 8),
                                   ADDRESS(decoder, tokens, 2),
                                   ADDRESS(decoder, state, 4),
                                   AL(decoder, stop, 2, "stop is not aligned"),
                                   ADDRESS(decoder, workspace, 128),
                                   AANY(decoder, seed),
                                   A(decoder, layer_count, 0, "layer_count is 0"),
                                   A(decoder, layer_count, 4097, "layer_count is"),
                                   A(decoder, max_seq, 0, "max_seq, 0"),
                                   A(decoder, max_seq, 0x80000000u, "max_seq is"),
                                   A(decoder, prompt_stride, 0, "prompt_stride is 0"),
                                   A(decoder, tokens_stride, 7, "tokens_stride, 7"),
                                   A(decoder, n, 9, "tokens_stride, 8"),
                                   A(decoder, end_count, 9, "end_count is 9"),
                                   AANY(decoder, top_k),
                                   AANY(decoder, watchdog),
                                   FLOATS(AF, decoder, temperature, "temperature"),
                                   AF(decoder, temperature, -1, "temperature"),
                                   FLOATS(AF, decoder, top_p, "top_p"),
                                   AF(decoder, top_p, 1.5, "top_p"),
                                   FLOATS(AF, decoder, eps, "eps"),
                                   AF(decoder, eps, -1, "eps"),
                                   A(decoder, reserved, 1, "reserved is 1"),
                                   AANY(decoder, end_tokens),
                                   AL(decoder, tokens, AT * 7 + 4, "logits overlaps tokens"),
                                   AL(decoder, state, AT * 8 + 56, "tokens overlaps state"),
                                   AL(decoder, state, AT * 10, "state overlaps workspace"),
                                   AL(decoder, logits, AT * 11 - 16, "logits overlaps layers"),
                                   AL(decoder, frequencies, AT * 7 + 256, "logits overlaps frequencies"),
                                   AL(decoder, final_norm, AT * 10 - 1008, "workspace overlaps final_norm"),
                                   AL(decoder, tokens, AT * 4, "tokens overlaps prompt"),
                                   AL(decoder, prompt_lengths, AT * 9 + 52, "state overlaps prompt_lengths"),
                                   AL(decoder, positions, AT * 9 + 52, "state overlaps positions"),
                                   AL(decoder, stop, AT * 9 + 24, "state overlaps stop"),
                                   AL(decoder, workspace, AT, "workspace overlaps embedding"),
                                   AM(output, weights, U64, AT * 7 + 784, "logits overlaps output"),
                                   AM(output, bias, U64, AT * 7 + 796, "logits overlaps output's bias"),
                                   AL(decoder, logits, AT * 20 - 16, "layer 0: logits overlaps k_cache"),
                                   AL(decoder, tokens, AT * 31, "layer 1: tokens overlaps v_cache"),
                                   AL(decoder, state, AT * 32 + 1016, "layer 1: state overlaps attention"),
                                   AL(decoder, workspace, AT * 34, "layer 1: workspace overlaps q"),
                                   AL(decoder, prompt, AT * 30 + 128, "layer 1: k_cache overlaps prompt")};

static const row mixture_rows[] = {
    D(decoder, expert_ffn, 0, "expert_ffn is 0"),
    D(decoder, expert_ffn, 128, "expert_ffn is 128, must be a multiple of 256"),
    D(decoder, expert_ffn, (1u << 18) + 256, "expert_ffn is 262400"),
    D(decoder, shared_router, 2, "shared_router is 2, must be 0 or 1"),
    D(decoder, route.experts, 1, "chosen is 12, must be at most experts, 1"),
    D(decoder, route.chosen, 0, "chosen is 0"),
    D(decoder, route.chosen, 17, "chosen is 17"),
    D(decoder, route.kind, 3, "kind is 3"),
    D(decoder, route.flags, 4, "flags is 4"),
    D(decoder, route.groups, 3, "groups is 3"),
    D(decoder, route.chosen_groups, 5, "chosen_groups is 5"),
    FLOATS(DF, decoder, route.scale, "scale"),
    D(decoder, batch, 3, "decoder: route.chosen is 12, of 3 sequences more than 32")};

static void refuse(const operation *op, const row *r) {
    union {
        uint64_t align;
        unsigned char bytes[400];
    } changed[STRUCTS];
    float f = (float)r->number;
    ptxk_message why;
    ptx_plan plan;
    ptx_code code;
    uint32_t i;
    char text[300];
    const void *good[STRUCTS];
    for (i = 0; i < STRUCTS; i++) {
        memcpy(changed[i].bytes, op->good[i], op->bytes[i]);
        good[i] = changed[i].bytes;
    }
    if (r->kind == F32) memcpy(changed[r->which].bytes + r->offset, &f, sizeof f);
    if (r->kind == U32) {
        uint32_t x = (uint32_t)r->value;
        memcpy(changed[r->which].bytes + r->offset, &x, sizeof x);
    }
    if (r->kind == U64) memcpy(changed[r->which].bytes + r->offset, &r->value, sizeof r->value);
    why.text[0] = 0;
    if (r->which == ARGS) {
        code = op->check(good[DESC], good[ARGS], &why);
        check(code == PTX_E_ARGUMENT, op->name, r->name, "was not refused");
    } else {
        memset(&plan, 0xff, sizeof plan);
        code = op->plan(good[DESC], good[SHAPE], &plan, &why);
        check(code == PTX_E_DESC, op->name, r->name, "was not refused");
        check(!code || plan.launches == 0, op->name, r->name, "left launches");
    }
    (void)snprintf(text, sizeof text, "value %llu, %g: \"%s\" is not in: %s", (unsigned long long)r->value,
                   r->number, r->says, why.text);
    if (code) check(strstr(why.text, r->says) && strstr(why.text, op->name), op->name, r->name, text);
    if (r->which == DESC) { /* everywhere */
        ptx_module *m = ptx_module_new(NULL);
        check(op->check(good[DESC], good[ARGS], &why) == PTX_E_DESC, op->name, r->name, "check takes it");
        check(op->emit(m, "here:1", good[DESC]) == PTX_E_DESC, op->name, r->name, "emit takes it");
        check(ptx_entry_count(m) == 0, op->name, r->name, "emit wrote");
        ptx_module_free(m);
    }
}

/* Every byte of the structs belongs to a field of a row. */
static void complete(const operation *op, const unsigned char *seen, uint32_t which) {
    static const char *const names[] = {"desc", "shape", "args"};
    uint32_t i, missing = 0;
    char text[100];
    for (i = 0; i < op->bytes[which]; i++) missing += !seen[i];
    (void)snprintf(text, sizeof text, "%u bytes belong to no row", missing);
    check(!missing, op->name, names[which], text);
}

static uint32_t late; /* errors in the middle of an emission */

/* Errors and texts name the line of the emit call, none of ptxgen_kernels.h. */
static void sites(const operation *op) {
    static const uint32_t sm[] = {75, 80, 90, 120};
    ptx_module_desc desc;
    ptx_module *m;
    ptx_place place;
    const ptx_error *e;
    const char *text;
    uint32_t i, cap, lines, located = 0, elsewhere = 0;
    memset(&desc, 0, sizeof desc);
    for (i = 0; i < 4; i++) {
        desc.target = PTX_SM(sm[i]);
        desc.comments = 3;
        m = ptx_module_new(&desc);
        e = ptx_get_error(m);
        check(!op->emit(m, "here.c:1", op->good[DESC]), op->name, "good", e->message);
        text = ptx_text(m, NULL);
        check(text && !strstr(text, "ptxgen_kernels.h"), op->name, "text", "it names a line of the header");
        for (lines = 0; text && *text; text++) lines += *text == '\n';
        while (lines)
            if (ptx_locate(m, lines--, &place)) located++, elsewhere += strcmp(place.site, "here.c:1") != 0;
        check(located > 10 && !elsewhere, op->name, "site", "an instruction has another");
        check(op->emit(m, "here.c:2", op->good[DESC]) == PTX_E_NAME_TAKEN, op->name, "name", "taken twice");
        check(!strcmp(e->site, "here.c:2"), op->name, "site", e->message);
        text = strstr(e->message, "started at here.c:1");
        check(text != NULL, op->name, "site", e->message);
        ptx_module_free(m);
        desc.comments = 0;
        for (cap = 63; cap < 80; cap++) { /* instructions that need a later version */
            desc.max_version = cap;
            m = ptx_module_new(&desc);
            e = ptx_get_error(m);
            if (!e->code && op->emit(m, "here.c:3", op->good[DESC])) {
                late++;
                check(!strcmp(e->site, "here.c:3"), op->name, "site", e->message);
            }
            ptx_module_free(m);
        }
        desc.max_version = 0;
    }
}

static void test(const operation *op, int all) {
    static unsigned char seen[STRUCTS][400];
    ptxk_message why;
    ptx_plan plan;
    size_t i;
    memset(seen, 0, sizeof seen);
    check(op->plan(op->good[DESC], op->good[SHAPE], &plan, &why) == PTX_E_NONE, op->name, "good", why.text);
    check(op->check(op->good[DESC], op->good[ARGS], &why) == PTX_E_NONE, op->name, "good", why.text);
    check(op->plan(NULL, op->good[SHAPE], &plan, &why) == PTX_E_ARGUMENT, op->name, "desc", "NULL was taken");
    check(op->plan(op->good[DESC], NULL, &plan, &why) == PTX_E_ARGUMENT, op->name, "shape", "NULL was taken");
    check(op->plan(op->good[DESC], op->good[SHAPE], NULL, &why) == PTX_E_ARGUMENT, op->name, "plan", "NULL");
    check(op->check(op->good[DESC], NULL, &why) == PTX_E_ARGUMENT, op->name, "args", "NULL was taken");
    check(op->check(NULL, op->good[ARGS], &why) == PTX_E_ARGUMENT, op->name, "desc", "NULL was taken");
    for (i = 0; i < op->count; i++) {
        memset(seen[op->rows[i].which] + op->rows[i].offset, 1, op->rows[i].bytes);
        if (op->rows[i].kind != ANY) refuse(op, &op->rows[i]);
    }
    sites(op);
    for (i = 0; all && i < STRUCTS; i++) complete(op, seen[i], (uint32_t)i);
}

#define TEST(op, list, all, desc, shape, args)                                                               \
    do {                                                                                                     \
        operation o;                                                                                         \
        o.name = #op;                                                                                        \
        o.good[DESC] = &desc, o.good[SHAPE] = &shape, o.good[ARGS] = &args;                                  \
        o.bytes[DESC] = sizeof desc, o.bytes[SHAPE] = sizeof shape, o.bytes[ARGS] = sizeof args;             \
        o.plan = op##_plan, o.check = op##_check, o.emit = ptxk_##op##_emit_;                                \
        o.rows = list, o.count = sizeof list / sizeof *list;                                                 \
        test(&o, all);                                                                                       \
    } while (0)

static void attention(void) {
    ptxk_flash_decode_desc d = {4, 2, 64, PTX_F16, 0, PTX_F32, PTX_F32, 2, 0, 0, 0, PTX_F32, PTXK_FLASH_LSE};
    ptxk_flash_decode_shape s = {3, 100, 100, 8, 0, 0};
    ptxk_flash_decode_args a;
    ptxk_kv_scatter_desc kd = {2, 64, PTX_F32, PTX_F16, 0, 0};
    ptxk_kv_scatter_shape ks = {5};
    ptxk_kv_scatter_args ka;
    ptxk_flash_prefill_desc pd = {4, 2, 64, PTX_F16, PTX_F16, PTXK_PREFILL_LSE, 0, 0, 0, 0, 0, 0};
    ptxk_flash_prefill_shape ps = {2, 10, 20, 0, 0, 0};
    ptxk_flash_prefill_args pa;
    ptxk_flash_mla_desc ld = {16, 512, 64, PTX_F16, PTX_F32, PTX_F32, 16, 0, PTXK_MLA_LSE, 0.1f};
    ptxk_flash_mla_shape ls = {2, 3, 0, 100, 8, PTX_SM(80)};
    ptxk_flash_mla_args la;
    ptxk_message why;
    memset(&la, 0, sizeof la);
    la.q = AT, la.q_rope = AT * 2, la.out = AT * 3, la.c_caches = AT * 4, la.r_caches = AT * 5, la.lengths = AT * 6;
    la.lse = AT * 7, la.workspace = AT * 8, la.batch = 2, la.queries = 3, la.max_seq = 100;
    la.q_row_stride = la.out_row_stride = 8192, la.q_head_stride = la.out_head_stride = 512;
    la.rope_row_stride = 1024, la.rope_head_stride = 64, la.c_stride = 576, la.r_stride = 64;
    TEST(flash_mla, flash_mla_rows, 1, ld, ls, la);
    ld.page_size = 16, la.max_pages = 7, la.pool_pages = 14, la.block_table = AT * 9;
    TEST(flash_mla, mla_paged_rows, 0, ld, ls, la);
    ld.kv_type = PTXK_Q8_0, la.c_factors = AT * 10, la.r_factors = AT * 11, la.c_stride = 512;
    TEST(flash_mla, mla_bytes_paged_rows, 0, ld, ls, la);
    ld.page_size = 0, la.max_pages = la.pool_pages = 0, la.block_table = 0;
    TEST(flash_mla, mla_bytes_rows, 0, ld, ls, la);
    ld.kv_type = PTX_E4M3;
    TEST(flash_mla, mla_e4m3_rows, 0, ld, ls, la);
    memset(&a, 0, sizeof a);
    a.q = AT, a.k_caches = AT * 2, a.v_caches = AT * 3, a.lengths = AT * 4, a.out = AT * 5;
    a.workspace = AT * 6, a.k = AT * 7, a.v = AT * 8, a.lse = AT * 9;
    a.max_seq = 100, a.head_stride = 6400, a.row_stride = 64;
    TEST(flash_decode, flash_decode_rows, 1, d, s, a);
    d.flags |= PTXK_FLASH_TREE | PTXK_FLASH_PRIOR, a.tree = AT * 14, a.prior = AT * 15, a.prior_lse = AT * 16;
    d.flags |= PTXK_FLASH_SINK, a.sinks = AT * 10;
    TEST(flash_decode, tree_rows, 0, d, s, a);
    d.flags = PTXK_FLASH_LSE, a.tree = a.prior = a.prior_lse = a.sinks = 0;
    d.kv_type = PTXK_Q8_0, a.k_factors = AT * 12, a.v_factors = AT * 13;
    TEST(flash_decode, bytes_rows, 0, d, s, a);
    d.kv_type = PTX_F16, a.k_factors = a.v_factors = 0;
    d.page_size = 16, a.max_pages = 7, a.pool_pages = 16, a.block_table = AT * 11;
    TEST(flash_decode, paged_rows, 0, d, s, a);

    memset(&ka, 0, sizeof ka);
    ka.k = AT, ka.v = AT * 2, ka.k_caches = AT * 3, ka.v_caches = AT * 4;
    ka.tokens = 5, ka.batch = 3, ka.max_seq = 100, ka.head_stride = 6400, ka.row_stride = 64;
    TEST(kv_scatter, kv_scatter_rows, 1, kd, ks, ka);
    kd.cache_type = PTXK_Q8_0, ka.k_factors = AT * 12, ka.v_factors = AT * 13;
    TEST(kv_scatter, scatter_bytes_rows, 0, kd, ks, ka);
    kd.cache_type = PTX_F16, ka.k_factors = ka.v_factors = 0;
    kd.page_size = 16, ka.max_pages = 7, ka.pool_pages = 16, ka.block_table = AT * 11;
    TEST(kv_scatter, scatter_paged_rows, 0, kd, ks, ka);

    memset(&pa, 0, sizeof pa);
    pa.batch = 2, pa.q_len = 10, pa.kv_len = 20;
    ptxk_flash_prefill_pack(&pd, &ps, &pa);
    pa.q = AT, pa.k = AT * 2, pa.v = AT * 3, pa.out = AT * 4, pa.lse = AT * 5;
    TEST(flash_prefill, flash_prefill_rows, 1, pd, ps, pa);
    pd.kv_type = PTXK_Q8_0, pa.k_factors = AT * 12, pa.v_factors = AT * 13;
    pd.flags |= PTXK_PREFILL_SINK | PTXK_PREFILL_TREE, pa.sinks = AT * 14, pa.tree = AT * 15;
    TEST(flash_prefill, prefill_bytes_rows, 0, pd, ps, pa);
    pd.kv_type = 0, pd.flags = PTXK_PREFILL_LSE, pa.k_factors = pa.v_factors = pa.sinks = pa.tree = 0;
    pd.page_size = 16, pa.max_pages = 2, pa.pool_pages = 4, pa.block_table = AT * 11;
    TEST(flash_prefill, prefill_paged_rows, 0, pd, ps, pa);
    pd.page_size = 0, pa.block_table = pa.max_pages = pa.pool_pages = 0;
    /* What looks like an overlap and is none: heads outside rows, rows of all in turn, out in q's place. */
    pa.out_head_stride = 640, pa.out_row_stride = 64, pa.out_batch_stride = 2560;
    check(!ptxk_flash_prefill_check(&pd, &pa, &why), "flash_prefill", "heads outside", why.text);
    pa.out_head_stride = 64, pa.out_row_stride = 512, pa.out_batch_stride = 256;
    check(!ptxk_flash_prefill_check(&pd, &pa, &why), "flash_prefill", "batch inside rows", why.text);
    ptxk_flash_prefill_pack(&pd, &ps, &pa);
    pa.out = pa.q;
    check(!ptxk_flash_prefill_check(&pd, &pa, &why), "flash_prefill", "out is q", why.text);
    pa.out_row_stride = 512;
    pa.out_batch_stride = 5120;
    check(ptxk_flash_prefill_check(&pd, &pa, &why) == PTX_E_ARGUMENT, "flash_prefill", "out",
          "with gaps is q");
    pa.q_row_stride = 512, pa.q_batch_stride = 5120, pa.out = pa.q + 512;
    check(!ptxk_flash_prefill_check(&pd, &pa, &why), "flash_prefill", "out between rows of q", why.text);
    pa.out += 16;
    check(ptxk_flash_prefill_check(&pd, &pa, &why) == PTX_E_ARGUMENT, "flash_prefill", "out", "laps over q");
    ptxk_flash_prefill_pack(&pd, &ps, &pa);
    pa.out = AT * 4, pa.cu_q = AT * 4 + 16;
    check(ptxk_flash_prefill_check(&pd, &pa, &why) == PTX_E_ARGUMENT, "flash_prefill", "out",
          "overlaps cu_q");
    pa.cu_q = 0, pa.cu_kv = AT * 5 + 8;
    check(ptxk_flash_prefill_check(&pd, &pa, &why) == PTX_E_ARGUMENT, "flash_prefill", "lse",
          "overlaps cu_kv");
}

/* matmul takes no workspace of 0 where the plans of all targets have one. */
static void matmul_workspaces(void) {
    static const ptx_target targets[] = {PTX_SM(75), PTX_SM(80), PTX_SM(89), PTX_SM(90), PTX_SM_A(90), PTX_SM(120)};
    ptxk_matmul_desc d = PTX_ZERO;
    ptxk_matmul_args a = PTX_ZERO;
    uint32_t i, t, with = 0, without = 0;
    d.a_type = d.b_type = PTX_F16, d.out_type = PTX_F32;
    a.a = AT, a.b = AT * 2, a.d = AT * 4, a.alpha = 1, a.batch = 1, a.sm_count = 8;
    for (i = 0; i < 40; i++) {
        ptxk_matmul_shape s = PTX_ZERO;
        ptx_plan plan;
        ptxk_message why;
        int none = 0;
        s.m = a.m = 1 + 37 * (i % 8), s.n = a.n = 8 + 104 * (i % 5), s.k = a.k = i % 3 ? 2048 : 64;
        s.batch = 1, s.sm_count = 8;
        a.lda = a.k, a.ldb = a.ldd = a.n;
        for (t = 0; t < 2 * sizeof targets / sizeof *targets; t++) {
            s.target = targets[t / 2], s.aligned = t & 1;
            check(!ptxk_matmul_plan(&d, &s, &plan, &why), "matmul", "plan", why.text);
            a.workspace = plan.workspace_bytes ? AT * 7 : 0;
            check(!ptxk_matmul_check(&d, &a, &why), "matmul", "the plan's workspace", why.text);
            none |= !plan.workspace_bytes;
        }
        a.workspace = 0;
        check(none == !ptxk_matmul_check(&d, &a, &why), "matmul", "workspace 0", why.text);
        with += !none, without += none != 0;
    }
    check(with && without, "matmul", "workspaces", "of both kinds");
}

static void layers(void) {
    ptxk_gemv_desc gd = {PTXK_Q4_K, 2,        0, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA | PTXK_GEMV_BIAS,
                         PTXK_Q4_K, PTXK_Q6_K};
    ptxk_gemv_shape gs = {64, 512, 8, 32, 16};
    ptxk_gemv_args ga;
    ptxk_norm_desc nd = {64, PTXK_NORM_LAYER, PTX_F32, PTX_F32, PTX_F32, PTXK_NORM_RESIDUAL | PTXK_NORM_BETA};
    ptxk_norm_shape ns = {3};
    ptxk_norm_args na;
    ptxk_softmax_desc sd = {64, PTX_F32, PTX_F32, 0};
    ptxk_softmax_shape ss = {3};
    ptxk_softmax_args sa;
    ptxk_quantize_desc zd = {256, PTX_F32, PTX_E4M3, 128};
    ptxk_quantize_shape zs = {3};
    ptxk_quantize_args za;
    ptxk_route_desc td = {8, 2, 0, PTXK_ROUTE_BIAS, 0, 4, 2};
    ptxk_route_shape ts = {3};
    ptxk_route_args ta;
    ptxk_combine_desc cd = {2, PTX_F32, PTX_F32, 0};
    ptxk_combine_shape cs = {3, 100};
    ptxk_combine_args ca;
    ptxk_activation_desc ad = {PTXK_SILU, 1, PTX_F32, PTX_F32};
    ptxk_activation_shape as = {3, 100};
    ptxk_activation_args aa;
    ptxk_rope_desc rd = {4, 64, 64, PTXK_ROPE_NEOX, PTX_F32};
    ptxk_rope_shape rs = {3};
    ptxk_rope_args ra;
    ptxk_embed_desc ed = {256, PTXK_Q4_K, PTX_F32, 0};
    ptxk_embed_shape es = {3};
    ptxk_embed_args ea;
    ptxk_sample_desc md = {PTX_F32, PTXK_SAMPLE_DRAW};
    ptxk_sample_shape ms = {2, 100};
    ptxk_sample_args ma;
    ptxk_matmul_desc xd = {PTX_F16, PTX_F16, PTX_F32, PTXK_MATMUL_BIAS, 0, 0, PTXK_FACTORS_ROW, PTXK_FACTORS_TENSOR};
    ptxk_matmul_shape xs = {10, 20, 30, 2, 8, 0, 0};
    ptxk_matmul_args xa;
    ptx_plan plan;
    ptxk_message why;
    memset(&ga, 0, sizeof ga);
    ga.weights = AT, ga.x = AT * 2, ga.gamma = AT * 3, ga.y = AT * 5, ga.workspace = AT * 6;
    ga.bias = AT * 7, ga.n = 64, ga.k = 512, ga.more[0].weights = AT * 8, ga.more[0].bias = AT * 9;
    ga.more[0].y = AT * 10, ga.more[0].n = 32, ga.more[1].weights = AT * 11;
    ga.more[1].bias = AT * 12, ga.more[1].y = AT * 13, ga.more[1].n = 16;
    TEST(gemv, gemv_rows, 1, gd, gs, ga);

    memset(&xa, 0, sizeof xa);
    xa.a = AT, xa.b = AT * 2, xa.c = AT * 3, xa.d = AT * 4, xa.bias = AT * 5, xa.a_factors = AT * 6;
    xa.b_factors = AT * 7, xa.m = 10, xa.n = 20, xa.k = 30, xa.lda = 30, xa.ldb = xa.ldc = xa.ldd = 20;
    xa.a_stride = 300, xa.b_stride = 600, xa.c_stride = xa.d_stride = 200, xa.batch = 2;
    xa.alpha = xa.beta = 1, xa.sm_count = 8;
    TEST(matmul, matmul_rows, 1, xd, xs, xa);
    xa.d = xa.c;
    check(!ptxk_matmul_check(&xd, &xa, &why), "matmul", "d is c", why.text);
    matmul_workspaces();
    xa.beta = 0, xa.c = 0, xa.ldc = 0;
    check(!ptxk_matmul_check(&xd, &xa, &why), "matmul", "c is not read", why.text);
    xs.m = xs.n = 0x7fffffff;
    check(ptxk_matmul_plan(&xd, &xs, &plan, &why) == PTX_E_DESC && strstr(why.text, "2^31 - 1 tiles"), "matmul",
          "tiles", why.text);
    xs.m = xs.n = 10;
    xd.flags = PTXK_MATMUL_GROUPED;
    xa.groups = AT * 8;
    TEST(matmul, matmul_grouped_rows, 0, xd, xs, xa);

    memset(&na, 0, sizeof na);
    na.x = AT, na.residual = AT * 2, na.y = AT * 3, na.gamma = AT * 4, na.beta = AT * 5, na.rows = 3;
    TEST(norm, norm_rows, 1, nd, ns, na);
    na.y = na.residual;
    check(!ptxk_norm_check(&nd, &na, &why), "norm", "y is the residual", why.text);
    nd.flags = 0, na.y = na.x;
    check(!ptxk_norm_check(&nd, &na, &why), "norm", "y is x", why.text);
    nd.y_type = PTX_F16;
    check(ptxk_norm_check(&nd, &na, &why) == PTX_E_ARGUMENT, "norm", "y", "is x, of another type");

    memset(&sa, 0, sizeof sa);
    sa.x = AT, sa.y = AT * 2, sa.rows = 3;
    TEST(softmax, softmax_rows, 1, sd, ss, sa);
    sa.y = sa.x;
    check(!ptxk_softmax_check(&sd, &sa, &why), "softmax", "y is x", why.text);

    memset(&za, 0, sizeof za);
    za.x = AT, za.y = AT * 2, za.factors = AT * 3, za.rows = 3;
    TEST(quantize, quantize_rows, 1, zd, zs, za);

    memset(&ta, 0, sizeof ta);
    ta.scores = AT, ta.bias = AT * 2, ta.choices = AT * 3, ta.weights = AT * 4, ta.offsets = AT * 5;
    ta.rows = AT * 6, ta.places = AT * 7, ta.tokens = 3;
    TEST(route, route_rows, 1, td, ts, ta);

    memset(&ca, 0, sizeof ca);
    ca.x = AT, ca.weights = AT * 2, ca.places = AT * 3, ca.y = AT * 4, ca.tokens = 3, ca.n = 100;
    TEST(combine, combine_rows, 1, cd, cs, ca);

    memset(&aa, 0, sizeof aa);
    aa.x = AT, aa.up = AT * 2, aa.y = AT * 3, aa.rows = 3, aa.n = 100;
    TEST(activation, activation_rows, 1, ad, as, aa);
    aa.x_stride = aa.up_stride = 200, aa.up = AT + 400, aa.y = AT, aa.y_stride = 200; /* side by side */
    check(!ptxk_activation_check(&ad, &aa, &why), "activation", "y is x beside up", why.text);
    aa.y_stride = 0;
    check(ptxk_activation_check(&ad, &aa, &why) == PTX_E_ARGUMENT, "activation", "y", "is dense on x");

    memset(&ra, 0, sizeof ra);
    ra.x = AT, ra.positions = AT * 2, ra.frequencies = AT * 3, ra.tokens = 3;
    TEST(rope, rope_rows, 1, rd, rs, ra);

    memset(&ea, 0, sizeof ea);
    ea.table = AT, ea.ids = AT * 2, ea.y = AT * 3, ea.rows = 100, ea.tokens = 3;
    TEST(embed, embed_rows, 1, ed, es, ea);
    ea.table = ea.rows = 0;
    check(!ptxk_embed_check(&ed, &ea, &why), "embed", "a table without rows", why.text);

    memset(&ma, 0, sizeof ma);
    ma.logits = AT, ma.positions = AT * 2, ma.tokens = AT * 3, ma.rows = 2, ma.n = 100, ma.temperature = 1;
    TEST(sample, sample_rows, 1, md, ms, ma);
}

/* What a layer names, wrong or where something is written: the message names the layer and the field. */
static void decoder_layers(const ptxk_decoder_desc *d, const ptxk_decoder_args *a, int mixture) {
    static const struct {
        uint32_t offset;
        uint64_t value;
        const char *says;
    } rows[] = {
#define L(field, value, says)                                                                                \
    {(uint32_t)offsetof(ptxk_decoder_layer, field), value, "decoder: layer 1: " says}
        L(attention_norm, 0, "attention_norm is 0"),
        L(ffn_norm, 8, "ffn_norm is not aligned"),
        L(q_norm, 0, "q_norm is 0"),
        L(k_norm, 2, "k_norm is not aligned"),
        L(k_cache, AT * 27 + AT / 4, "k_cache overlaps layer 0's q_norm"),
        L(k_cache, 0, "k_cache is 0"),
        L(v_cache, 8, "v_cache is not aligned"),
        L(q.weights, 0, "q is 0"),
        L(k.weights, 8, "k is not aligned"),
        L(down.weights, ~(uint64_t)15, "down passes 2^64"),
        L(up.bias, 2, "up's bias is not aligned"),
        L(v_cache, AT * 30, "k_cache overlaps v_cache"),
        L(v_cache, AT * 30 + 2 * 64 * 16 * 2 * 2 - 16, "k_cache overlaps v_cache"),
        L(k_cache, AT * 7 + 784, "logits overlaps k_cache"),
        L(k_cache, AT * 38, "k_cache overlaps up"),
        L(gate.bias, AT * 31, "v_cache overlaps gate's bias"),
        L(k_cache, AT * 20 + 16, "k_cache overlaps layer 0's k_cache"),
        L(v_cache, AT * 20, "v_cache overlaps layer 0's k_cache"),
        L(k_cache, AT * 27, "k_cache overlaps layer 0's gate"),
        L(k_cache, AT * 23 + 1008, "k_cache overlaps layer 0's ffn_norm"),
        /* of a mixture: */
        L(sinks, 0, "sinks is 0"),
        L(balance, 2, "balance is not aligned"),
        L(router.weights, 0, "router is 0"),
        L(router.bias, 2, "router's bias is not aligned"),
        L(shared_router.weights, 8, "shared_router is not aligned"),
        L(expert_gate.weights, 0, "expert_gate is 0"),
        L(expert_up.weights, ~(uint64_t)15, "expert_up passes 2^64"),
        L(expert_down.weights, 0, "expert_down is 0"),
        L(k_cache, AT * 52 + 16 * 256 * 144 - 16, "k_cache overlaps expert_gate"),
        L(v_cache, AT * 44 + 16 * 256 * 144 - 16, "v_cache overlaps layer 0's expert_down"),
#undef L
    };
    const size_t dense = sizeof rows / sizeof *rows - 10;
    ptxk_decoder_layer good = layer_table[1];
    ptxk_message why;
    size_t i;
    for (i = 0; i < (mixture ? sizeof rows / sizeof *rows : dense); i++) {
        memcpy((char *)&layer_table[1] + rows[i].offset, &rows[i].value, sizeof rows[i].value);
        check(ptxk_decoder_check(d, a, layer_table, &why) == PTX_E_ARGUMENT, "decoder", rows[i].says,
              "was not refused");
        check(strstr(why.text, rows[i].says) != NULL, "decoder", rows[i].says, why.text);
        layer_table[1] = good;
    }
    layer_table[1].up.format = PTXK_Q8_0;
    check(ptxk_decoder_check(d, a, layer_table, &why) == PTX_E_ARGUMENT && strstr(why.text, "up: format"),
          "decoder", "format", why.text);
    layer_table[1] = good;
    layer_table[1].down.reserved = 1;
    check(ptxk_decoder_check(d, a, layer_table, &why) == PTX_E_ARGUMENT && strstr(why.text, "down: reserved"),
          "decoder", "reserved", why.text);
    layer_table[1] = good;
    layer_table[1].sees_all = 2;
    check(ptxk_decoder_check(d, a, layer_table, &why) == PTX_E_ARGUMENT && strstr(why.text, "sees_all is 2"),
          "decoder", "sees_all", why.text);
    layer_table[1] = good;
    layer_table[1].reserved = 1;
    check(ptxk_decoder_check(d, a, layer_table, &why) == PTX_E_ARGUMENT && strstr(why.text, "reserved is 1"),
          "decoder", "reserved of a layer", why.text);
    layer_table[1] = good;
    /* near twins: the next address behind, the one before, weights of one layer in another */
    layer_table[1].v_cache = AT * 30 + 2 * 64 * 16 * 2 * 2;
    layer_table[1].k = layer_table[0].k;
    layer_table[1].q.weights = AT * 7 + 800;
    layer_table[1].ffn_norm = AT * 30 - 1024;
    check(!ptxk_decoder_check(d, a, layer_table, &why), "decoder", "beside each other", why.text);
    check(!ptxk_decoder_check(d, a, NULL, &why), "decoder", "no layers", why.text);
    layer_table[1] = good;
}

static void decoder(void) {
    ptxk_decoder_desc dd = {256, 256, 4, 2, 64, 100, 2, 1u << PTXK_Q4_K, PTX_F16, 64, 0, 0.0f, 0,
                            1,   0,   0.0f, 0, 0, 0, 0,   {0, 0, 0, 0, 0.0f, 0, 0}};
    ptxk_decoder_shape ds = {2, 16, 4};
    ptxk_decoder_args da;
    uint32_t i, j;
    memset(&da, 0, sizeof da);
    memset(layer_table, 0, sizeof layer_table);
    da.embedding.weights = da.output.weights = AT;
    da.embedding.format = da.output.format = PTXK_Q4_K;
    da.frequencies = AT * 2, da.final_norm = AT * 3, da.prompt = AT * 4, da.prompt_lengths = AT * 5;
    da.positions = AT * 6, da.logits = AT * 7, da.tokens = AT * 8, da.state = AT * 9;
    da.workspace = AT * 10, da.layers = AT * 11, da.output.bias = AT * 12;
    da.layer_count = 2, da.max_seq = 16, da.prompt_stride = 8, da.tokens_stride = da.n = 8;
    for (i = 0; i < 2; i++) {
        ptxk_decoder_layer *l = &layer_table[i];
        ptxk_decoder_matrix *m[7];
        uint64_t at = AT * (20 + 10 * i);
        m[0] = &l->q, m[1] = &l->k, m[2] = &l->v, m[3] = &l->output, m[4] = &l->gate, m[5] = &l->up;
        m[6] = &l->down;
        l->k_cache = at, l->v_cache = at + AT, l->attention_norm = at + 2 * AT, l->ffn_norm = at + 3 * AT;
        for (j = 0; j < 7; j++) m[j]->format = PTXK_Q4_K;
        l->q.weights = at + 4 * AT, l->k.weights = at + 5 * AT, l->v.weights = at + 6 * AT;
        l->output.weights = at + 6 * AT + AT / 2, l->gate.weights = at + 7 * AT;
        l->up.weights = at + 8 * AT, l->down.weights = at + 9 * AT;
        l->q_norm = at + 7 * AT + AT / 4, l->k_norm = l->q_norm + 256;
    }
    TEST(decoder, decoder_rows, 1, dd, ds, da);
    decoder_layers(&dd, &da, 0);
    dd.expert_ffn = 256, dd.shared_router = 1, dd.sinks = 1, dd.window = 5;
    dd.route.experts = 16, dd.route.chosen = 12, dd.route.kind = PTXK_ROUTE_SIGMOID;
    dd.route.flags = PTXK_ROUTE_BIAS, dd.route.groups = 4, dd.route.chosen_groups = 3;
    for (i = 0; i < 2; i++) {
        ptxk_decoder_layer *l = &layer_table[i];
        uint64_t at = AT * (40 + 10 * i);
        l->router.weights = at, l->shared_router.weights = at + AT, l->expert_gate.weights = at + 2 * AT;
        l->expert_up.weights = at + 3 * AT, l->expert_down.weights = at + 4 * AT;
        l->balance = at + 5 * AT, l->sinks = at + 6 * AT;
        l->router.format = l->shared_router.format = PTXK_Q4_K;
        l->expert_gate.format = l->expert_up.format = l->expert_down.format = PTXK_Q4_K;
    }
    TEST(decoder, mixture_rows, 0, dd, ds, da);
    decoder_layers(&dd, &da, 1);
}

static void frequencies(void) {
    static const double bad[] = {-1, (double)NAN, (double)INFINITY, 1e31};
    static const float wrong[] = {0, -1, (float)NAN, (float)INFINITY};
    double out[32];
    float factors[32];
    ptxk_rope_scaling s;
    uint32_t i, j;
    memset(&s, 0, sizeof s);
    check(!ptxk_rope_frequencies(64, &s, out, NULL), "rope_frequencies", "good", "refused");
    check(ptxk_rope_frequencies(63, &s, out, NULL) != 0, "rope_frequencies", "dims", "odd");
    check(ptxk_rope_frequencies(64, &s, NULL, NULL) != 0, "rope_frequencies", "out", "NULL");
    for (i = 0; i < 5; i++)
        for (j = 0; j < 4; j++) {
            double *field[5];
            ptxk_rope_scaling t = s;
            field[0] = &t.theta, field[1] = &t.factor, field[2] = &t.low, field[3] = &t.high;
            field[4] = &t.original;
            *field[i] = bad[j];
            check(ptxk_rope_frequencies(64, &t, out, NULL) != 0, "rope_frequencies", "scaling", "was taken");
        }
    s.low = 4, s.high = 1, s.original = 8192;
    check(ptxk_rope_frequencies(64, &s, out, NULL) != 0, "rope_frequencies", "low", "above high");
    s.low = 1, s.high = 4, s.original = 0;
    check(ptxk_rope_frequencies(64, &s, out, NULL) != 0, "rope_frequencies", "original", "0");
    memset(&s, 0, sizeof s);
    s.factors = factors;
    for (j = 0; j < 4; j++) {
        for (i = 0; i < 32; i++) factors[i] = i == 31 ? wrong[j] : 1;
        check(ptxk_rope_frequencies(64, &s, out, NULL) != 0, "rope_frequencies", "factors", "was taken");
    }
}

/* -- whether spans meet, beside counting bytes -- */

static void cover(const ptxk__span *s, unsigned char *bytes, unsigned *twice) {
    uint64_t i, j, k, n;
    memset(bytes, 0, 1024);
    *twice = 0;
    for (i = 0; i < s->count[0]; i++)
        for (j = 0; j < s->count[1]; j++)
            for (k = 0; k < s->count[2]; k++)
                for (n = 0; n < s->row_bytes; n++) {
                    uint64_t at = s->address + i * s->stride[0] + j * s->stride[1] + k * s->stride[2] + n;
                    *twice += bytes[at];
                    bytes[at] = 1;
                }
}

static ptxk__span some_span(const uint64_t *stride) {
    ptxk__span s = ptxk__span_of("s", 1 + random_below(120), 1 + random_below(8), 1, 1);
    uint32_t i;
    for (i = 0; i < 3; i++) ptxk__span_repeat(&s, i, 1 + random_below(4), stride[i]);
    return s;
}

static void spans(void) {
    static unsigned char one[1024], other[1024];
    unsigned n, missed = 0, imagined = 0, doubled = 0, met = 0, twice, again;
    for (n = 0; n < 200000; n++) {
        uint64_t stride[3], second[3];
        uint32_t i, alike = n & 1, common = 0;
        ptxk__span a, b;
        for (i = 0; i < 3; i++) {
            stride[i] = random_below(4) ? random_below(80) : 8 * random_below(10);
            second[i] = alike ? stride[i] : random_below(80);
        }
        a = some_span(stride), b = some_span(second);
        cover(&a, one, &twice), cover(&b, other, &again);
        for (i = 0; i < sizeof one; i++) common |= one[i] & other[i];
        met += common != 0;
        if (common && !ptxk__spans_overlap(&a, &b)) missed++;
        if (!common && alike && !twice && !again && ptxk__span_is_distinct(&a) && ptxk__span_is_distinct(&b)
            && ptxk__spans_overlap(&a, &b))
            imagined++;
        if (twice && ptxk__span_is_distinct(&a)) doubled++;
    }
    CHECK(met > 1000);
    CHECK(missed == 0);
    CHECK(imagined == 0);
    CHECK(doubled == 0);
}

/* Descriptions of gemm that differ have kernels of different names, also where a target has the same tiles. */
static void one_module(void) {
    static const unsigned sm[] = {75, 120};
    ptxk_gemm_desc d;
    uint32_t i, format, columns;
    memset(&d, 0, sizeof d);
    d.x_type = d.output_type = PTX_F32;
    for (i = 0; i < 2; i++) {
        ptx_module_desc desc = PTX_ZERO;
        ptx_module *m;
        desc.target = PTX_SM(sm[i]);
        m = ptx_module_new(&desc);
        for (format = 0; format < 128; format++)
            for (columns = 8; columns <= 256 && ptxk_row_bytes(format, 256); columns *= 2) {
                d.format = format;
                d.columns = columns;
                for (d.precision = 0; d.precision < 2; d.precision++)
                    check(!ptxk_gemm_emit(m, &d), "gemm", "name", ptx_get_error(m)->message);
            }
        ptx_module_free(m);
    }
}

/* A table of a format's values is a variable of the module: one of the user's with its name is told, not read. */
static void user_names(void) {
    static const ptx_variable_desc variable = {"ptxk_iq2_xxs_grid", PTX_GLOBAL, PTX_U8, 2048, 8, NULL, 0};
    ptx_module *m = ptx_module_new(NULL);
    ptxk_embed_desc d = PTX_ZERO;
    d.n = 256;
    d.format = PTXK_IQ2_XXS;
    d.y_type = PTX_F32;
    ptx_variable(m, &variable);
    check(ptxk_embed_emit(m, &d) == PTX_E_NAME_TAKEN, "embed", "name", ptx_get_error(m)->message);
    check(strstr(ptx_get_error(m)->message, "a variable 'ptxk_iq2_xxs_grid' already, made at") != NULL, "embed", "name",
          ptx_get_error(m)->message);
    ptx_module_free(m);
}

int main(void) {
    start_random();
    user_names();
    spans();
    attention();
    layers();
    decoder();
    frequencies();
    one_module();
    CHECK(late > 10);
    return check_end();
}
