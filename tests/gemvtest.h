/* gemvtest.h - what the tests of GEMV share: problems with random data, launched and compared with double,
 * by a bound derived from the arithmetic (tests/reference/gemv.h).
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef GEMVTEST_H
#define GEMVTEST_H

#include "reference/gemv.h"
#include "kerneltest.h"
#include "weight_formats.h"

#define GUARD 64u /* bytes of poison behind y that must stay */

typedef struct matrix {
    int type; /* of blocks.h */
    uint32_t n;
    size_t row_bytes;
    unsigned char *weights;
    float *bias;
    void *y; /* columns * n, read back */
} matrix;

typedef struct problem {
    ptxk_gemv_desc desc;
    ptxk_gemv_shape shape;
    ptx_target target;
    double eps;
    int in_place;      /* y is the residual */
    uint32_t row_step; /* of the rows that are compared */
    uint32_t matrices, outputs;
    matrix m[3];
    float *x, *gamma;
    void *residual;
    ptx_plan plan;
    double worst;       /* largest error beside its bound, and beside |W| |x| */
    double worst_norms;
} problem;

static enum ref_format output_of(const problem *p)
{
    return p->desc.output_type == PTX_F16 ? REF_F16 : REF_F32;
}

static void put_f16(unsigned char *at, double x)
{
    ref_put_u16(at, ref_to_f16(x));
}

static void matrix_new(problem *p, uint32_t i, uint32_t format, uint32_t n, double size)
{
    matrix *m = &p->m[i];
    uint32_t r;
    m->type = type_of(format);
    m->n = n;
    m->row_bytes = ref_row_bytes(m->type, p->shape.k);
    CHECK(m->row_bytes == ptxk_row_bytes(format, p->shape.k));
    m->weights = (unsigned char *)malloc(m->row_bytes * n + 4);
    random_blocks(m->type, m->weights, m->row_bytes * n, size, -70, 20);
    m->bias = (float *)malloc(n * sizeof *m->bias);
    for (r = 0; r < n; r++) m->bias[r] = (float)random_within(2);
    m->y = malloc((size_t)n * p->desc.columns * 4 + GUARD);
}

/* size: of the weights' factors, see random_blocks. */
static problem problem_of(const ptxk_gemv_desc *desc, const ptxk_gemv_shape *shape, double size)
{
    problem p;
    uint32_t swiglu = desc->flags & PTXK_GEMV_SWIGLU, k = shape->k;
    size_t i;
    memset(&p, 0, sizeof p);
    p.desc = *desc;
    p.shape = *shape;
    p.target = PTX_SM(shape->n & 1 ? 75 : 80);
    p.eps = 1e-5;
    p.row_step = 1;
    p.matrices = desc->third ? 3 : desc->second || swiglu ? 2 : 1;
    p.outputs = swiglu ? 1 : p.matrices;
    matrix_new(&p, 0, desc->format, shape->n, size);
    if (p.matrices > 1)
        matrix_new(&p, 1, desc->second ? desc->second : desc->format, swiglu ? shape->n : shape->second_n,
                   size);
    if (p.matrices > 2) matrix_new(&p, 2, desc->third, shape->third_n, size);
    p.x = (float *)malloc((size_t)k * desc->columns * sizeof *p.x);
    for (i = 0; i < (size_t)k * desc->columns; i++) {
        double v = random_within(2);
        p.x[i] = (float)(random_below(50) ? v * v * v : v * 8); /* a few large ones */
    }
    p.gamma = (float *)malloc(k * sizeof *p.gamma);
    for (i = 0; i < k; i++) p.gamma[i] = (float)(1 + random_within(0.7));
    p.residual = malloc((size_t)shape->n * desc->columns * 4);
    for (i = 0; i < (size_t)shape->n * desc->columns; i++)
        ref_put(p.residual, output_of(&p), i, random_within(3));
    return p;
}

static void problem_free(problem *p)
{
    uint32_t i;
    for (i = 0; i < p->matrices; i++) {
        free(p->m[i].weights);
        free(p->m[i].bias);
        free(p->m[i].y);
    }
    free(p->x);
    free(p->gamma);
    free(p->residual);
}

/* Plans, launches, reads y back. The weights lie in memory of exactly their size. */
static void problem_launch(problem *p)
{
    ptx_module_desc module_desc;
    ptxk_gemv_args args;
    ptxk_gemv_more all[3];
    ptxk_message why;
    ptx_module *m;
    const char *text;
    void *module;
    uint32_t i, j;
    unsigned char *poison;
    size_t bytes[3];
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = p->target;
    m = ptx_module_new(&module_desc);
    ptxk_gemv_emit(m, &p->desc);
    text = ptx_text(m, NULL);
    CHECK_MORE(!ptxk_gemv_plan(&p->desc, &p->shape, &p->plan, &why), why.text);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message) || !(module = load_text(text))) return;
    memset(&args, 0, sizeof args);
    memset(all, 0, sizeof all);
    for (i = 0; i < p->matrices; i++) {
        bytes[i] = (size_t)p->m[i].n * p->desc.columns * ref_bytes(output_of(p));
        poison = (unsigned char *)malloc(bytes[i] + GUARD);
        memset(poison, 0xff, bytes[i] + GUARD); /* NaN in both types */
        if (p->in_place) memcpy(poison, p->residual, bytes[i]);
        all[i].weights = upload(p->m[i].weights, p->m[i].row_bytes * p->m[i].n);
        all[i].bias = upload(p->m[i].bias, (size_t)p->m[i].n * 4);
        all[i].y = upload(poison, bytes[i] + GUARD);
        all[i].n = p->m[i].n;
        free(poison);
    }
    args.weights = all[0].weights;
    args.bias = all[0].bias;
    args.y = all[0].y;
    memcpy(args.more, all + 1, sizeof args.more);
    args.x = upload(p->x, (size_t)p->shape.k * p->desc.columns * 4);
    args.gamma = upload(p->gamma, (size_t)p->shape.k * 4);
    args.residual = p->in_place ? args.y : upload(p->residual, bytes[0]);
    CHECK(cu.cuMemAlloc(&args.workspace, (size_t)p->plan.workspace_bytes + 1) == 0);
    args.n = p->shape.n;
    args.k = p->shape.k;
    args.eps = (float)p->eps;
    CHECK_MORE(!ptxk_gemv_check(&p->desc, &args, &why), why.text);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (i = 0; i < p->plan.launches; i++) launch_entry(m, module, &p->plan.launch[i], &args, sizeof args);
    CHECK(cu.cuCtxSynchronize() == 0);
    for (j = 0; j < p->matrices; j++) {
        const unsigned char *y = (const unsigned char *)p->m[j].y;
        CHECK(cu.cuMemcpyDtoH(p->m[j].y, all[j].y, bytes[j] + GUARD) == 0);
        for (i = 0; i < GUARD && y[bytes[j] + i] == 0xff; i++) continue;
        CHECK(i == GUARD);
    }
    check_reports();
    if (!p->in_place) cu.cuMemFree(args.residual);
    for (i = 0; i < p->matrices; i++) {
        cu.cuMemFree(all[i].weights);
        cu.cuMemFree(all[i].bias);
        cu.cuMemFree(all[i].y);
    }
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.gamma);
    cu.cuMemFree(args.workspace);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
}

/* What row r of matrix i gives with column c, before a residual; with its bound and |W| |x|. */
static double problem_row(const problem *p, uint32_t i, uint32_t r, uint32_t c, double rms, double *bound,
                          double *norms)
{
    const matrix *m = &p->m[i];
    double top = p->desc.precision == PTXK_GEMV_EXACT ? 32639 : 127, y;
    const double u = 0x1p-24;
    y = rms
        * ref_gemv(m->type, m->weights + m->row_bytes * r, p->x + (size_t)c * p->shape.k,
                   p->desc.flags & PTXK_GEMV_GAMMA ? p->gamma : NULL, p->shape.k, top, bound, norms);
    *bound = rms * *bound + 30 * u * fabs(y); /* the norm's factor */
    *norms *= rms;
    if (p->desc.flags & PTXK_GEMV_BIAS) {
        y += (double)m->bias[r];
        *bound += u * fabs(y);
    }
    return y;
}

/* Compares column c of output i with double. SwiGLU: |silu'| <= 1.1; e^-g with its argument's two roundings
   and the approximation is right to 2 |g| u + 8 u, and so is g / (1 + e^-g), but for two more roundings. */
static void compare_column(problem *p, uint32_t i, uint32_t c)
{
    const double u = 0x1p-24;
    char detail[240] = "";
    uint32_t r, wrong = 0;
    double rms = 1;
    if (p->desc.flags & PTXK_GEMV_NORM)
        rms = ref_rms(p->x + (size_t)c * p->shape.k, p->shape.k, (double)(float)p->eps);
    for (r = 0; r < p->m[i].n; r += p->row_step) {
        size_t at = (size_t)c * p->m[i].n + r;
        double bound, norms, have = ref_get(p->m[i].y, output_of(p), at), error, want;
        want = problem_row(p, i, r, c, rms, &bound, &norms);
        if (p->desc.flags & PTXK_GEMV_SWIGLU) {
            double up_bound, up = problem_row(p, 1, r, c, rms, &up_bound, &norms), g = want;
            want = ref_silu(g) * up;
            bound = 1.1 * bound * (fabs(up) + up_bound) + fabs(ref_silu(g)) * up_bound
                    + (2 * fabs(g) + 12) * u * fabs(want);
        }
        if (p->desc.flags & PTXK_GEMV_RESIDUAL) want += ref_get(p->residual, output_of(p), at);
        bound = 1.01 * bound + 2 * u * fabs(want) + 1e-30;
        error = fabs(have - want);
        if (p->desc.output_type == PTX_F16) {
            if (fabs(want) > 65000) continue; /* infinite or not, either is right */
            bound += 0x1p-11 * fabs(want) + 0x1p-25;
        } else if (p->desc.precision == PTXK_GEMV_EXACT && norms > 0 && p->desc.flags < PTXK_GEMV_BIAS) {
            if (error - 2 * u * fabs(want) > p->worst_norms * norms) p->worst_norms = error / norms;
        }
        if (error > p->worst * bound) p->worst = error / bound;
        if (!(error <= bound) && !wrong++)
            (void)snprintf(detail, sizeof detail,
                           "type %d n %u k %u columns %u precision %u flags %u: matrix %u, row %u, "
                           "column %u is %.9g, not %.9g +- %.3g",
                           p->m[i].type, p->m[i].n, p->shape.k, p->desc.columns, p->desc.precision,
                           p->desc.flags, i, r, c, have, want, bound);
    }
    CHECK_MORE(wrong == 0, detail);
}

static void problem_compare(problem *p)
{
    uint32_t i, c;
    for (i = 0; i < p->outputs; i++)
        for (c = 0; c < p->desc.columns; c++) compare_column(p, i, c);
    CHECK_MORE(p->worst_norms <= 1e-4, "of |W| |x|");
}

static void problem_run(problem *p)
{
    problem_launch(p);
    problem_compare(p);
}

static double most_of_bound, most_of_norms;

#endif
