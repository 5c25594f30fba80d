/* limits.c - the limits that docs/operations.md states: `limits`. Of each the largest value is accepted, by
   plan and generator, the next is refused with a message that names field and value, and the page says the
   number. Needs no driver; runs where README.md lies. */
#include "../../ptxgen_kernels.h"

#include "../check.h"

#include <string.h>

typedef struct limit {
    const char *operation, *says; /* what the page says */
    const char *field;
    uint32_t shape, offset; /* of the field; shape: it is not the description's */
    uint32_t most, next;
} limit;

/* Structs of any operation. */
typedef union desc {
    ptxk_flash_decode_desc flash_decode;
    ptxk_kv_scatter_desc kv_scatter;
    ptxk_flash_prefill_desc flash_prefill;
    ptxk_flash_mla_desc flash_mla;
    ptxk_gemv_desc gemv;
    ptxk_gemm_desc gemm;
    ptxk_matmul_desc matmul;
    ptxk_norm_desc norm;
    ptxk_softmax_desc softmax;
    ptxk_activation_desc activation;
    ptxk_rope_desc rope;
    ptxk_embed_desc embed;
    ptxk_sample_desc sample;
    ptxk_quantize_desc quantize;
    ptxk_route_desc route;
    ptxk_combine_desc combine;
    ptxk_decoder_desc decoder;
    uint32_t word[32];
} desc;

typedef union shape {
    ptxk_flash_decode_shape flash_decode;
    ptxk_kv_scatter_shape kv_scatter;
    ptxk_flash_prefill_shape flash_prefill;
    ptxk_flash_mla_shape flash_mla;
    ptxk_gemv_shape gemv;
    ptxk_gemm_shape gemm;
    ptxk_matmul_shape matmul;
    ptxk_norm_shape norm;
    ptxk_softmax_shape softmax;
    ptxk_activation_shape activation;
    ptxk_rope_shape rope;
    ptxk_embed_shape embed;
    ptxk_sample_shape sample;
    ptxk_quantize_shape quantize;
    ptxk_route_shape route;
    ptxk_combine_shape combine;
    ptxk_decoder_shape decoder;
    uint32_t word[8];
} shape;

#define D(op, says, field, most, next)                                                                       \
    { #op, says, #field, 0, (uint32_t)offsetof(ptxk_##op##_desc, field), most, next }
#define S(op, says, field, most, next)                                                                       \
    { #op, says, #field, 1, (uint32_t)offsetof(ptxk_##op##_shape, field), most, next }
#define LEN 0x7fffffffu
#define CELLS 8 /* most in a row of a table */

static const limit limits[] = {
    S(flash_decode, "sequences: to 65,535", batch, 65535, 65536),
    D(flash_decode, "heads: to 65,536", heads, 65536, 65537),
    D(flash_decode, "head_dim: 8 to 256, a multiple of 8", head_dim, 256, 264),
    D(flash_decode, "head_dim: 8 to 256, a multiple of 8", head_dim, 8, 4),
    D(flash_decode, "queries of a sequence: 1 to 8", queries, 8, 9),
    S(flash_decode, "keys of a sequence: to 2^31 - 1", max_seq, LEN, LEN + 1),
    D(flash_decode, "in pages of 16 to 65,536", page_size, 65536, 131072),
    D(flash_decode, "in pages of 16 to 65,536", page_size, 16, 8),
    S(flash_decode, "clusters of up to 8 blocks", cluster, 8, 9),
    D(kv_scatter, "head_dim: to 65,536", head_dim, 65536, 65537),
    D(kv_scatter, "in pages of 16 to 65,536", page_size, 65536, 131072),
    D(kv_scatter, "heads: KV heads to 65,536", kv_heads, 65536, 65537),
    S(kv_scatter, "at most 4,294,967,040 pieces", tokens, 0xffffff00u, 0xffffff01u),
    S(flash_prefill, "queries of a sequence: to 4,194,240", q_len, 4194240, 0x40000001u),
    S(flash_prefill, "keys of a sequence: to 2^30", kv_len, 1u << 30, (1u << 30) + 1),
    D(flash_prefill, "heads: to 65,536", heads, 65536, 65537),
    D(flash_prefill, "head_dim: 8 to 256, a multiple of 8", head_dim, 256, 264),
    S(flash_prefill, "heads to 2^31 - 1", batch, LEN, LEN + 1),
    S(flash_mla, "sequences: to 65,535", batch, 65535, 65536),
    S(flash_mla, "keys of a sequence: to 2^30", max_seq, 1u << 30, (1u << 30) + 1),
    D(flash_mla, "heads: to 65,536", heads, 65536, 65537),
    D(flash_mla, "in pages of 16 to 65,536", page_size, 65536, 131072),
    S(gemv, "rows of W: to 2^31 - 1", n, LEN, LEN + 1),
    D(gemv, "columns (rows of x): 1 to 8", columns, 8, 9),
    S(gemv, "K: to 2^26", k, 1u << 26, (1u << 26) + 256),
    S(gemv, "unit of K: 256 (Q4_K, Q5_K and others), 64, 32 or 8", k, 256, 255),
    S(gemm, "rows of W: to 2^26", n, 1u << 26, (1u << 26) + 1),
    D(gemm, "in tiles of 8 to 256", columns, 256, 512),
    S(gemm, "K: to 2^20", k, 1u << 20, (1u << 20) + 256),
    S(matmul, "m, n, k: 0 to 2^31 - 1", k, LEN, LEN + 1),
    D(norm, "length of a row: to 2^24", n, 1u << 24, (1u << 24) + 1),
    S(norm, "rows: to 2^31 - 1", rows, LEN, LEN + 1),
    D(softmax, "length of a row: to 2^24", n, 1u << 24, (1u << 24) + 1),
    S(softmax, "rows: to 2^31 - 1", rows, LEN, LEN + 1),
    S(activation, "length of a row: to 2^31 - 1", n, LEN, LEN + 1),
    S(activation, "rows: to 65,535", rows, 65535, 65536),
    D(rope, "head_dim to 65,536, even", head_dim, 65536, 65538),
    D(rope, "head_dim to 65,536, even", head_dim, 2, 3),
    D(rope, "heads to 65,536", heads, 65536, 65537),
    S(rope, "rows: tokens to 65,535", tokens, 65535, 65536),
    D(embed, "length of a row: to 2^24", n, 1u << 24, (1u << 24) + 256),
    S(embed, "rows: token ids to 65,535", tokens, 65535, 65536),
    S(sample, "length of a row: 1 to 2^24 logits", n, 1u << 24, (1u << 24) + 1),
    S(sample, "length of a row: 1 to 2^24 logits", n, 1, 0),
    S(sample, "rows: to 65,535", rows, 65535, 65536),
    D(quantize, "length of a row: to 2^24", n, 1u << 24, (1u << 24) + 8),
    S(quantize, "rows: to 2^31 - 1", rows, LEN, LEN + 1),
    D(route, "experts: 1 to 512", experts, 512, 513),
    D(route, "chosen: 1 to 16", chosen, 16, 17),
    D(route, "chosen from up to 32 groups", groups, 0, 33),
    S(route, "tokens: to 2^22", tokens, 1u << 22, (1u << 22) + 1),
    D(combine, "chosen: 1 to 16", chosen, 16, 17),
    S(combine, "tokens: to 2^22", tokens, 1u << 22, (1u << 22) + 1),
    S(combine, "length of a row: to 2^24", n, 1u << 24, (1u << 24) + 1),
    D(decoder, "sequences: 1 to 4", batch, 4, 5),
    D(decoder, "hidden size, ffn size: to 2^17", hidden, 1u << 17, (1u << 17) + 256),
    D(decoder, "hidden size, ffn size: to 2^17, to 2^18", ffn, 1u << 18, (1u << 18) + 256),
    D(decoder, "heads, head_dim: to 1,024", heads, 1024, 1025),
    D(decoder, "8 to 256, a multiple of 8", head_dim, 256, 264),
    D(decoder, "experts: those that [`route`](#experts) chooses", route.experts, 0, 513),
    D(decoder, "vocabulary, layers, positions: to 2^24", vocab, 1u << 24, (1u << 24) + 1),
    S(decoder, "to 2^24, 4,096, 2^31 - 1", layers, 4096, 4097),
    S(decoder, "to 2^24, 4,096, 2^31 - 1", max_seq, LEN, LEN + 1)};

static ptx_code plan_of(const char *name, const desc *d, const shape *s, ptxk_message *why) {
    ptx_plan plan;
#define PLAN(op)                                                                                             \
    if (!strcmp(name, #op)) return ptxk_##op##_plan(&d->op, &s->op, &plan, why);
    PTXK_OPERATIONS(PLAN)
#undef PLAN
    return PTX_E_ARGUMENT;
}

/* Small ones of each operation. */
static void good(const char *name, desc *d, shape *s) {
    memset(d, 0, sizeof *d);
    memset(s, 0, sizeof *s);
#define GOOD(op, d0, s0)                                                                                     \
    if (!strcmp(name, #op)) {                                                                                \
        static const ptxk_##op##_desc dd = d0;                                                               \
        static const ptxk_##op##_shape ss = s0;                                                              \
        d->op = dd;                                                                                          \
        s->op = ss;                                                                                          \
    }
#define OF(...) {__VA_ARGS__}
    GOOD(flash_decode, OF(8, 1, 64, PTX_F16, 0, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 0), OF(1, 0, 4096, 1, 0, 0))
    GOOD(kv_scatter, OF(1, 1, PTX_F16, PTX_F16, 0, 0), OF(1))
    GOOD(flash_prefill, OF(1, 1, 64, PTX_F16, PTX_F16, 0, 0, 0, 0, 0, 0, 0), OF(1, 1, 1, 0, 0, 0))
    GOOD(flash_mla, OF(16, 512, 64, PTX_F16, PTX_F32, PTX_F32, 16, 0, 0, 0.1f), OF(1, 1, 0, 100, 1, PTX_SM(80)))
    GOOD(gemv, OF(PTXK_Q4_K, 1, 0, PTX_F32, 0, 0, 0), OF(1, 256, 1, 0, 0))
    GOOD(gemm, OF(PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0), OF(1, 1, 256, 0, 0, 1, PTX_SM(80), 0))
    GOOD(matmul, OF(PTX_F16, PTX_F16, PTX_F32, 0, 0, 0, 0, 0), OF(1, 1, 1, 1, 1, 0, 0))
    GOOD(norm, OF(8, 0, PTX_F32, PTX_F32, PTX_F32, 0), OF(1))
    GOOD(softmax, OF(8, PTX_F32, PTX_F32, 0), OF(1))
    GOOD(activation, OF(0, 0, PTX_F32, PTX_F32), OF(1, 8))
    GOOD(rope, OF(1, 2, 2, 0, PTX_F32), OF(1))
    GOOD(embed, OF(256, PTXK_Q4_K, PTX_F32, 0), OF(1))
    GOOD(sample, OF(PTX_F32, 0), OF(1, 8))
    GOOD(route, OF(16, 2, 0, 0, 0, 0, 0), OF(1))
    GOOD(combine, OF(2, PTX_F32, PTX_F32, 0), OF(1, 8))
    GOOD(quantize, OF(8, PTX_F32, PTX_E4M3, 0), OF(1))
    GOOD(decoder, OF(256, 256, 4, 1, 64, 100, 1, 1u << PTXK_Q4_K, PTX_F16, 64, 0, 0.0f, 0, 0, 0, 0, 0, 0, 0, 0,
                     {0, 0, 0, 0, 0.0f, 0, 0}),
         OF(2, 16, 4))
}

/* What the page says of an operation, a line for each cell of its column or row, "label: cell", and for each
   point of a list that begins with its name. A table without names belongs to the section's operation. */
static void collect(FILE *page, const char *name, char *out, size_t bytes) {
    char line[2000], named[40], label[CELLS][200], *cell[CELLS + 1], heading[2000] = "";
    size_t used = 0, column = 0, cells, i, row = 0, take;
    (void)snprintf(named, sizeof named, "`%s`", name);
    out[0] = 0;
    rewind(page);
    while (fgets(line, sizeof line, page)) {
        if (!strncmp(line, "## ", 3)) (void)snprintf(heading, sizeof heading, "%s", line + 3);
        if (line[0] == '-' && !strncmp(line + 2, named, strlen(named)))
            used += (size_t)snprintf(out + used, bytes - used, "%s", line);
        if (line[0] != '|') row = 0;
        if (line[0] != '|') continue;
        for (cells = 0, cell[0] = strtok(line + 1, "|\n"); cell[cells] && cells + 1 < CELLS;)
            cell[++cells] = strtok(NULL, "|\n");
        if (row++ == 0) {
            column = cells == 2 && strspn(cell[1], " ") == strlen(cell[1]) && (heading[0] | 32) == name[0]
                     && !strncmp(heading + 1, name + 1, strlen(name) - 1);
            for (i = 1; i < cells; i++) {
                (void)snprintf(label[i], sizeof label[i], "%s", cell[i]);
                if (strstr(cell[i], named)) column = i;
            }
        }
        for (i = 1; i < cells; i++) {
            take = i == column || strstr(cell[0], named) != NULL;
            if (!take || bytes - used < 1000) continue;
            used += (size_t)snprintf(out + used, bytes - used, "%.*s:%s\n",
                                     (int)strlen(i == column ? cell[0] : label[i]) - 1,
                                     i == column ? cell[0] : label[i], cell[i]);
        }
    }
}

int main(void) {
    FILE *page = fopen("docs/operations.md", "r");
    static char says[20000];
    char value[40];
    size_t i;
    if (!CHECK_MORE(page != NULL, "docs/operations.md")) return check_end();
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        const limit *l = &limits[i];
        ptx_module *m = ptx_module_new(NULL);
        ptxk_message why;
        desc d;
        shape s;
        uint32_t *at = (l->shape ? s.word : d.word) + l->offset / 4;
        collect(page, l->operation, says, sizeof says);
        CHECK_MORE(strstr(says, l->says) != NULL, l->says);
        good(l->operation, &d, &s);
        CHECK_MORE(plan_of(l->operation, &d, &s, &why) == PTX_E_NONE, why.text);
        *at = l->most;
        CHECK_MORE(plan_of(l->operation, &d, &s, &why) == PTX_E_NONE, why.text);
        CHECK_MORE(ptxk_operation_find(l->operation)->emit(m, PTX__AT, &d) == PTX_E_NONE, l->says);
        CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
        *at = l->next;
        (void)snprintf(value, sizeof value, "%s is %u", l->field, l->next);
        CHECK_MORE(plan_of(l->operation, &d, &s, &why) == PTX_E_DESC && strstr(why.text, value), why.text);
        ptx_module_free(m);
    }
    (void)fclose(page);
    return check_end();
}
