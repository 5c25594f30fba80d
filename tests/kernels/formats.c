/* formats.c - formats of weights that have readers, through embed, gemm, gemv: blocks in which each byte has all its
 * values, factors of any bits, blocks of zeros, against the formats' rules in double (tests/reference/blocks.h).
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"

#include <float.h>

/* `rows` rows of k weights: byte j of the blocks has the values 0 ... 255 in turn, from a random one on. */
static unsigned char *blocks_in_turn(int type, uint32_t rows, uint32_t k)
{
    size_t bytes = ref_row_bytes(type, k) * rows, step = ref_block_bytes(type), i, j;
    unsigned char *w = (unsigned char *)malloc(bytes + 4), first[256], odd[256];
    for (j = 0; j < step; j++) first[j] = (unsigned char)random_u32(), odd[j] = (unsigned char)(random_u32() | 1);
    for (i = 0; i < bytes; i += step)
        for (j = 0; j < step; j++) w[i + j] = (unsigned char)(first[j] + odd[j] * (i / step));
    return w;
}

/* -- embed: of every weight the value itself -- */

/* w, whose factors may be any bits, NaN and infinities too. */
static void embedded(uint32_t f, unsigned char *w, uint32_t rows, uint32_t k, unsigned target)
{
    ptxk_embed_desc desc = {0, 0, PTX_F32, 0};
    ptxk_embed_shape shape;
    ptxk_embed_args args;
    ptxk_message why;
    ptx_module_desc module_desc;
    ptx_module *m;
    ptx_plan plan;
    void *module;
    float *y = (float *)malloc((size_t)rows * k * 4);
    uint32_t *ids = (uint32_t *)malloc(rows * 4), i;
    char detail[160] = "";
    size_t e, wrong = 0;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(target);
    m = ptx_module_new(&module_desc);
    desc.n = k;
    desc.format = formats[f].format;
    shape.tokens = rows;
    for (i = 0; i < rows; i++) ids[i] = i;
    memset(&args, 0, sizeof args);
    args.table = upload(w, ref_row_bytes(formats[f].type, k) * rows);
    args.ids = upload(ids, rows * 4);
    args.y = upload(y, (size_t)rows * k * 4);
    args.rows = args.tokens = rows;
    CHECK_MORE(!ptxk_embed_plan(&desc, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_embed_check(&desc, &args, &why), why.text);
    CHECK_MORE(!ptxk_embed_emit(m, &desc), ptx_get_error(m)->message);
    module = load_text(ptx_text(m, NULL));
    if (module) CHECK(launch_entry(m, module, &plan.launch[0], &args, sizeof args));
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuMemcpyDtoH(y, args.y, (size_t)rows * k * 4) == 0);
    for (e = 0; e < (size_t)rows * k; e++) {
        size_t values = ref_block_values(formats[f].type);
        double size, want = ref_weight(formats[f].type, w + e / values * ref_block_bytes(formats[f].type),
                                       (int)(e % values), &size);
        double have = (double)y[e], bound = 4 * 0x1p-24 * size + 0x1p-149;
        int same = isnan(want)                ? isnan(have)
                   : size > FLT_MAX ? !(fabs(have) <= FLT_MAX)
                                              : fabs(have - want) <= bound;
        if (!same && !wrong++)
            (void)snprintf(detail, sizeof detail, "%s: weight %zu of block %zu is %.9g, not %.9g", formats[f].name,
                           e % values, e / values, have, want);
    }
    CHECK_MORE(wrong == 0, detail);
    check_reports();
    cu.cuMemFree(args.table);
    cu.cuMemFree(args.ids);
    cu.cuMemFree(args.y);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
    free(y);
    free(ids);
}

static void every_value_of_every_byte(void)
{
    uint32_t f, i;
    for (f = 0; f < FORMATS; f++) {
        uint32_t values = (uint32_t)ref_block_values(formats[f].type), k = values < 256 ? 3 * values : 256;
        uint32_t rows = values < 256 ? 87 : 257; /* 256 blocks and more */
        unsigned char *w;
        if (values == 1) continue;
        for (i = 0; i < 2; i++) {
            w = blocks_in_turn(formats[f].type, rows, k);
            embedded(f, w, rows, k, i ? 75 : 90);
            free(w);
        }
        w = (unsigned char *)calloc(ref_row_bytes(formats[f].type, k), 1);
        embedded(f, w, 1, k, 80);
        free(w);
    }
}

/* -- gemm -- */

/* Weights with bytes in turn, of finite factors, at 1, 8 and 64 columns; a row of zeros gives 0. */
static void products_of_every_value(void)
{
    static const uint32_t columns[] = {1, 8, 64};
    uint32_t f, i, r;
    size_t b;
    for (f = CODED; f < FORMATS; f++)
        for (i = 0; i < 3; i++) {
            uint32_t k = 256 * (3 + i), n = 37; /* rows that begin at any even address */
            problem p = problem_new(formats[f].format, columns[i], n, k, 0, i == 1, 0), q = p;
            const struct ref_layout *l = ref_layout_of(p.m[0].type);
            unsigned char *w = blocks_in_turn(p.m[0].type, n, k), *old = p.m[0].weights;
            for (b = 0; b < p.m[0].row_bytes * n; b += l->bytes) { /* the factors that there were, which are finite */
                if (l->factor >= 0) memcpy(w + b + l->factor, old + b + l->factor, 2);
                if (l->second >= 0) memcpy(w + b + l->second, old + b + l->second, 2);
                if (l->type == REF_BLOCK_MXFP4) w[b] = old[b];
                for (r = 49; r < 56 && l->type == REF_BLOCK_IQ1_M; r += 2)
                    w[b + r] = (unsigned char)((w[b + r] & 15) | (old[b + r] & 240));
            }
            memset(w + 5 * p.m[0].row_bytes, 0, p.m[0].row_bytes);
            q.m[0].weights = w;
            problem_run(&q);
            for (r = 0; r < columns[i]; r++) CHECK(((float *)q.m[0].y)[(size_t)r * y_stride_of(&q, 0) + 5] == 0);
            problem_free(&q);
            free(old);
        }
}

/* A factor that is not finite spoils its row, and no other. */
static void factors_that_are_not_finite(void)
{
    uint32_t f, i, r, bad = 11;
    for (f = CODED; f < FORMATS; f++)
        for (i = 0; i < 4; i++) {
            problem p = problem_new(formats[f].format, 2, 21, 1536, 8, i & 1, 0);
            const struct ref_layout *l = ref_layout_of(p.m[0].type);
            unsigned char *block = p.m[0].weights + bad * p.m[0].row_bytes + 5 * l->bytes;
            int at = i & 2 ? l->second : l->factor;
            if (at >= 0) {
                ref_put_u16(block + at, ref_to_f16(i & 1 ? (double)NAN : HUGE_VAL));
                problem_launch(&p);
                for (r = 0; r < 21; r++) {
                    float y = ((float *)p.m[0].y)[y_stride_of(&p, 0) + r];
                    CHECK_MORE((y - y == 0) == (r != bad), formats[f].name);
                }
            }
            problem_free(&p);
        }
}

/* Rows that begin and end within 16 bytes: no copy goes past the last one. */
static void rows_that_end_in_a_chunk(void)
{
    uint32_t f;
    for (f = CODED; f < FORMATS; f++) {
        problem p = problem_new(formats[f].format, 33, 37, 1280, 8, 0, 0);
        problem_run(&p);
        problem_free(&p);
    }
}

int main(void)
{
    start_random();
    if (!open_driver()) return 1;
    every_value_of_every_byte();
    products_of_every_value();
    factors_that_are_not_finite();
    rows_that_end_in_a_chunk();
    printf("note: largest error: %.3f of the bound; %.3g of |W| |x|, fast %.3g\n", most_of_bound, most_of_norms[0],
           most_of_norms[1]);
    return check_end();
}
