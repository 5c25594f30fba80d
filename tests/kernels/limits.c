/* limits.c - the limits that the table of operations in README.md states: `limits`. Of each the
   largest value is accepted, by plan and generator, the next is refused with a message that names field and
   value, and the line of the operation says the number. Needs no driver; runs where README.md lies. */
#include "../../ptxgen_kernels.h"

#include "../check.h"

#include <string.h>

typedef struct limit {
    const char *operation, *says; /* what the table's line contains; "": a limit of the other column */
    const char *field;
    uint32_t shape, offset; /* of the field; shape: it is not the description's */
    uint32_t most, next;
} limit;

/* Structs of any operation. */
typedef union desc {
    ptxk_flash_decode_desc flash_decode;
    ptxk_kv_scatter_desc kv_scatter;
    ptxk_flash_prefill_desc flash_prefill;
    ptxk_gemv_desc gemv;
    ptxk_gemm_desc gemm;
    ptxk_matmul_desc matmul;
    ptxk_norm_desc norm;
    ptxk_softmax_desc softmax;
    ptxk_activation_desc activation;
    ptxk_rope_desc rope;
    ptxk_embed_desc embed;
    ptxk_sample_desc sample;
    ptxk_decoder_desc decoder;
    uint32_t word[32];
} desc;

typedef union shape {
    ptxk_flash_decode_shape flash_decode;
    ptxk_kv_scatter_shape kv_scatter;
    ptxk_flash_prefill_shape flash_prefill;
    ptxk_gemv_shape gemv;
    ptxk_gemm_shape gemm;
    ptxk_matmul_shape matmul;
    ptxk_norm_shape norm;
    ptxk_softmax_shape softmax;
    ptxk_activation_shape activation;
    ptxk_rope_shape rope;
    ptxk_embed_shape embed;
    ptxk_sample_shape sample;
    ptxk_decoder_shape decoder;
    uint32_t word[8];
} shape;

#define D(op, says, field, most, next)                                                                       \
    { #op, says, #field, 0, (uint32_t)offsetof(ptxk_##op##_desc, field), most, next }
#define S(op, says, field, most, next)                                                                       \
    { #op, says, #field, 1, (uint32_t)offsetof(ptxk_##op##_shape, field), most, next }
#define LEN 0x7fffffffu

static const limit limits[] = {
    S(flash_decode, "any batch to 65535", batch, 65535, 65536),
    D(flash_decode, "heads to 65536", heads, 65536, 65537),
    D(flash_decode, "a multiple of 8 to 256", head_dim, 256, 264),
    D(flash_decode, "a multiple of 8 to 256", head_dim, 8, 4),
    D(flash_decode, "1 to 8 queries", queries, 8, 9),
    S(flash_decode, "of up to 2^31 - 1 positions", max_seq, LEN, LEN + 1),
    D(flash_decode, "pages of 16 to 65536", page_size, 65536, 131072),
    D(flash_decode, "pages of 16 to 65536", page_size, 16, 8),
    S(flash_decode, "clusters of up to 8", cluster, 8, 9),
    D(kv_scatter, "any head_dim to 65536", head_dim, 65536, 65537),
    D(kv_scatter, "pages of 16 to 65536", page_size, 65536, 131072),
    D(kv_scatter, "KV heads to 65536", kv_heads, 65536, 65537),
    S(kv_scatter, "4294967040 elements", tokens, 0xffffff00u, 0xffffff01u),
    S(flash_prefill, "queries to 4194240 a sequence", q_len, 4194240, 0x40000001u),
    S(flash_prefill, "keys to 2^30", kv_len, 1u << 30, (1u << 30) + 1),
    D(flash_prefill, "heads to 65536", heads, 65536, 65537),
    D(flash_prefill, "a multiple of 8 to 256", head_dim, 256, 264),
    S(flash_prefill, "sequences times heads to 2^31 - 1", batch, LEN, LEN + 1),
    S(gemv, "rows to 2^31 - 1", n, LEN, LEN + 1),
    D(gemv, "1 to 8 columns", columns, 8, 9),
    S(gemv, "K to 2^26", k, 1u << 26, (1u << 26) + 256),
    S(gemv, "a multiple of 256", k, 256, 255),
    D(norm, "any length to 2^24", n, 1u << 24, (1u << 24) + 1),
    S(norm, "2^31 - 1 of them", rows, LEN, LEN + 1),
    D(softmax, "any length to 2^24", n, 1u << 24, (1u << 24) + 1),
    S(softmax, "2^31 - 1 of them", rows, LEN, LEN + 1),
    S(activation, "any length to 2^31 - 1", n, LEN, LEN + 1),
    S(activation, "65535 of them", rows, 65535, 65536),
    D(rope, "any even number to 65536", head_dim, 65536, 65538),
    D(rope, "any even number to 65536", head_dim, 2, 3),
    D(rope, "heads to 65536", heads, 65536, 65537),
    S(rope, "65535 tokens", tokens, 65535, 65536),
    D(embed, "rows to 2^24", n, 1u << 24, (1u << 24) + 256),
    S(embed, "65535 token ids", tokens, 65535, 65536),
    S(sample, "1 to 2^24 logits", n, 1u << 24, (1u << 24) + 1),
    S(sample, "1 to 2^24 logits", n, 1, 0),
    S(sample, "65535 rows", rows, 65535, 65536),
    D(decoder, "1 to 4 sequences", batch, 4, 5),
    D(decoder, "hidden to 2^17", hidden, 1u << 17, (1u << 17) + 256),
    D(decoder, "ffn to 2^18", ffn, 1u << 18, (1u << 18) + 256),
    D(decoder, "1024 heads", heads, 1024, 1025),
    D(decoder, "a multiple of 8 to 256", head_dim, 256, 264),
    D(decoder, "vocabularies to 2^24", vocab, 1u << 24, (1u << 24) + 1),
    S(decoder, "4096 layers", layers, 4096, 4097),
    S(decoder, "2^31 - 1 positions", max_seq, LEN, LEN + 1)};

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
    GOOD(flash_decode, OF(8, 1, 64, PTX_F16, 0, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 0), OF(1, 0, 4096, 1, 0))
    GOOD(kv_scatter, OF(1, 1, PTX_F16, PTX_F16, 0, 0), OF(1))
    GOOD(flash_prefill, OF(1, 1, 64, PTX_F16, PTX_F16, 0, 0, 0, 0, 0), OF(1, 1, 1, 0, 0))
    GOOD(gemv, OF(PTXK_Q4_K, 1, 0, PTX_F32, 0, 0, 0), OF(1, 256, 1, 0, 0))
    GOOD(gemm, OF(PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0), OF(1, 1, 256, 0, 0, 1, PTX_SM(75)))
    GOOD(matmul, OF(PTX_F16, PTX_F16, PTX_F32, 0, 0, 0, 0, 0), OF(1, 1, 1, 1, 1, 0))
    GOOD(norm, OF(8, 0, PTX_F32, PTX_F32, PTX_F32, 0), OF(1))
    GOOD(softmax, OF(8, PTX_F32, PTX_F32, 0), OF(1))
    GOOD(activation, OF(0, 0, PTX_F32, PTX_F32), OF(1, 8))
    GOOD(rope, OF(1, 2, 2, 0, PTX_F32), OF(1))
    GOOD(embed, OF(256, PTXK_Q4_K, PTX_F32, 0), OF(1))
    GOOD(sample, OF(PTX_F32, 0), OF(1, 8))
    GOOD(decoder, OF(256, 256, 4, 1, 64, 100, 1, 1u << PTXK_Q4_K, PTX_F16, 64, 0, 0.0f, 0, 0, 0),
         OF(2, 16, 4))
}

/* The table's line of an operation. */
static int line_of(FILE *readme, const char *name, char *line, size_t bytes) {
    char begin[40];
    (void)snprintf(begin, sizeof begin, "| `%s` | ", name);
    rewind(readme);
    while (fgets(line, (int)bytes, readme))
        if (!strncmp(line, begin, strlen(begin))) return 1;
    return 0;
}

int main(void) {
    FILE *readme = fopen("README.md", "r");
    char line[2000], value[40];
    size_t i;
    if (!CHECK_MORE(readme != NULL, "README.md")) return check_end();
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        const limit *l = &limits[i];
        ptx_module *m = ptx_module_new(NULL);
        ptxk_message why;
        desc d;
        shape s;
        uint32_t *at = (l->shape ? s.word : d.word) + l->offset / 4;
        CHECK_MORE(line_of(readme, l->operation, line, sizeof line) && strstr(line, l->says), l->says);
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
    (void)fclose(readme);
    return check_end();
}
