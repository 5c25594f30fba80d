/* gemmtest.h - what the tests of gemm share: problems with random data, launched and compared with double, by a
 * bound derived from the arithmetic.
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef GEMMTEST_H
#define GEMMTEST_H

#include "kerneltest.h"
#include "reference/gemv.h"
#include "reference/gemm.h"
#include "weight_formats.h"

#define GUARD 64u /* bytes of poison behind y that must stay */

/* Weights of bytes, which gemm takes beside `formats`. */
static const uint32_t byte_formats[] = {PTX_E4M3, PTX_E5M2, PTX_S8};

static int is_byte(uint32_t format)
{
    return format == PTX_E4M3 || format == PTX_E5M2 || format == PTX_S8;
}

static uint32_t any_format(void)
{
    uint32_t i = random_below(FORMATS + 3);
    return i < FORMATS ? formats[i].format : byte_formats[i - FORMATS];
}

typedef struct matrix {
    int type; /* of blocks.h; of bytes REF_BLOCK_F32, the type of their factors */
    uint32_t format, groups;
    float *factors; /* of bytes; */
    size_t group_factors; /* so many of each group */
    uint32_t n; /* rows; of a group, all of which have their weights `group_bytes` apart */
    size_t row_bytes, y_bytes, group_bytes;
    unsigned char *weights;
    float *bias;
    void *y; /* read back */
} matrix;

typedef struct problem {
    ptxk_gemm_desc desc;
    ptxk_gemm_shape shape;
    double eps;
    int in_place; /* y is the residual */
    uint32_t x_stride, y_stride, residual_stride; /* 0: packed */
    uint32_t row_step, column_step;               /* of what is compared */
    uint32_t *offsets, *x_rows, x_count;          /* with PTXK_GEMM_GROUPED; x_rows may be NULL */
    size_t group_gap;                             /* bytes between the weights of two groups */
    uint32_t matrices, outputs;
    matrix m[3];
    void *x;
    float *gamma;
    void *residual;
    ptx_plan plan;
    double worst, worst_norms; /* largest error beside its bound, and beside |W| |x| */
} problem;

static enum ref_format ref_of(uint32_t type)
{
    return type == PTX_F16 ? REF_F16 : type == PTX_BF16 ? REF_BF16 : REF_F32;
}

static uint32_t stride_or(uint32_t stride, uint32_t n)
{
    return stride ? stride : n;
}

static uint32_t groups_of(const problem *p)
{
    return p->desc.flags & PTXK_GEMM_GROUPED ? p->shape.groups : 1;
}

/* The group of a row of y; all groups: the row is of none. */
static uint32_t group_of(const problem *p, uint32_t row)
{
    uint32_t g = 0;
    if (!p->offsets) return 0;
    while (g < p->shape.groups && (row < p->offsets[g] || row >= p->offsets[g + 1])) g++;
    return g;
}

/* Bytes that are numbers, and factors, with which they are `size` large; one of them 0. */
static void random_bytes(problem *p, matrix *m, double size)
{
    const uint32_t blocks = (p->shape.k + 127) / 128, factors = p->desc.factors;
    const double most = m->format == PTX_E4M3 ? 448 : m->format == PTX_E5M2 ? 57344 : 128;
    size_t i, all;
    for (i = 0; i < m->group_bytes * m->groups; i++) {
        m->weights[i] = (unsigned char)random_u32();
        if (m->format == PTX_E4M3 && (m->weights[i] & 0x7f) == 0x7f) m->weights[i] ^= 1;
        if (m->format == PTX_E5M2 && (m->weights[i] & 0x7c) == 0x7c) m->weights[i] ^= 0x40;
    }
    m->group_factors = factors == PTXK_FACTORS_SQUARE  ? (size_t)((m->n + 127) / 128) * blocks
                       : factors == PTXK_FACTORS_BLOCK ? (size_t)m->n * blocks
                       : factors == PTXK_FACTORS_ROW   ? m->n
                                                       : 1;
    all = m->group_factors * m->groups;
    m->factors = (float *)malloc(all * sizeof *m->factors);
    for (i = 0; i < all; i++) m->factors[i] = factors ? (float)(random_within(size) * 30 / most) : 1;
    if (factors > PTXK_FACTORS_TENSOR) m->factors[random_below((uint32_t)all)] = 0;
}

static void matrix_new(problem *p, uint32_t i, uint32_t format, uint32_t n, double size)
{
    matrix *m = &p->m[i];
    uint32_t r, groups = groups_of(p);
    m->type = is_byte(format) ? REF_BLOCK_F32 : type_of(format);
    m->format = format;
    m->groups = groups;
    m->n = n;
    m->row_bytes = is_byte(format) ? p->shape.k : ref_row_bytes(m->type, p->shape.k);
    CHECK(is_byte(format) || m->row_bytes == ptxk_row_bytes(format, p->shape.k));
    m->group_bytes = m->row_bytes * n;
    if (groups > 1) m->group_bytes += (16 - m->group_bytes % 16) % 16 + p->group_gap;
    m->weights = (unsigned char *)malloc(m->group_bytes * groups + 4);
    if (is_byte(format)) random_bytes(p, m, size);
    for (r = 0; r < groups && !is_byte(format); r++)
        random_blocks(m->type, m->weights + r * m->group_bytes, m->row_bytes * n, size, -30, 10);
    m->bias = (float *)malloc(n * groups * sizeof *m->bias);
    for (r = 0; r < n * groups; r++) m->bias[r] = (float)random_within(2);
}

#define GATES (PTXK_GEMM_SWIGLU | PTXK_GEMM_GEGLU | PTXK_GEMM_CLAMPED)

static problem problem_of_groups(const ptxk_gemm_desc *desc, const ptxk_gemm_shape *shape, double size, size_t gap)
{
    problem p;
    uint32_t pair = desc->flags & GATES, k = shape->k, m = shape->m;
    size_t i;
    memset(&p, 0, sizeof p);
    p.desc = *desc;
    p.shape = *shape;
    p.group_gap = gap;
    if (!desc->factors && (is_byte(desc->format) || is_byte(desc->second) || is_byte(desc->third)))
        p.desc.factors = random_below(PTXK_FACTORS_SQUARE + 1);
    p.eps = 1e-5;
    p.row_step = p.column_step = 1;
    p.matrices = desc->third ? 3 : desc->second || pair ? 2 : 1;
    p.outputs = pair ? 1 : p.matrices;
    matrix_new(&p, 0, desc->format, shape->n, size);
    if (p.matrices > 1) matrix_new(&p, 1, desc->second, pair ? shape->n : shape->second_n, size);
    if (p.matrices > 2) matrix_new(&p, 2, desc->third, shape->third_n, size);
    if (random_below(2)) p.x_stride = k + 8 * random_below(5);
    if (random_below(2)) p.y_stride = shape->n + random_below(9);
    if (random_below(2)) p.residual_stride = shape->n + random_below(9);
    p.x = malloc((size_t)stride_or(p.x_stride, k) * m * 4);
    for (i = 0; i < (size_t)stride_or(p.x_stride, k) * m; i++) {
        double v = random_within(2);
        ref_put(p.x, ref_of(desc->x_type), i, random_below(50) ? v * v * v : v * 8); /* a few large ones */
    }
    p.gamma = (float *)malloc(k * sizeof *p.gamma);
    for (i = 0; i < k; i++) p.gamma[i] = (float)(1 + random_within(0.7));
    p.residual = malloc((size_t)(shape->n + 8) * m * 4); /* for any stride */
    for (i = 0; i < (size_t)(shape->n + 8) * m; i++)
        ref_put(p.residual, ref_of(desc->output_type), i, random_within(3));
    return p;
}

static problem problem_of(const ptxk_gemm_desc *desc, const ptxk_gemm_shape *shape, double size)
{
    return problem_of_groups(desc, shape, size, 0);
}

static void problem_free(problem *p)
{
    uint32_t i;
    for (i = 0; i < p->matrices; i++) {
        free(p->m[i].weights);
        free(p->m[i].factors);
        free(p->m[i].bias);
        free(p->m[i].y);
    }
    free(p->offsets);
    free(p->x_rows);
    free(p->x);
    free(p->gamma);
    free(p->residual);
}

/* Of output i: y_stride is of the first. */
static uint32_t y_stride_of(const problem *p, uint32_t i)
{
    return i ? p->m[i].n : stride_or(p->y_stride, p->m[i].n);
}

static uint32_t x_rows_of(const problem *p)
{
    return p->x_count ? p->x_count : p->shape.m;
}

/* Plans, launches, reads y back. The weights lie in memory of exactly their size. */
static void problem_launch(problem *p)
{
    ptx_module_desc module_desc;
    ptxk_gemm_args args;
    ptxk_message why;
    ptx_module *m;
    const char *text;
    void *module;
    uint32_t i, j;
    unsigned char *zeros, *poison;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = p->shape.target;
    m = ptx_module_new(&module_desc);
    ptxk_gemm_emit(m, &p->desc);
    text = ptx_text(m, NULL);
    if (p->in_place) p->residual_stride = p->y_stride;
    CHECK_MORE(!ptxk_gemm_plan(&p->desc, &p->shape, &p->plan, &why), why.text);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message) || !(module = load_text(text))) return;
    memset(&args, 0, sizeof args);
    for (i = 0; i < p->matrices; i++) {
        matrix *a = &p->m[i];
        a->y_bytes = (size_t)y_stride_of(p, i) * p->shape.m * ref_bytes(ref_of(p->desc.output_type));
        free(a->y);
        a->y = malloc(a->y_bytes + GUARD);
        poison = (unsigned char *)a->y;
        memset(poison, 0xff, a->y_bytes + GUARD); /* NaN in all types */
        if (p->in_place) memcpy(poison, p->residual, a->y_bytes);
        args.matrix[i].weights =
            upload(a->weights, a->group_bytes * (groups_of(p) - 1) + a->row_bytes * a->n);
        args.matrix[i].bias = upload(a->bias, (size_t)a->n * groups_of(p) * 4);
        if (p->desc.factors && a->factors) args.factors[i] = upload(a->factors, a->group_factors * a->groups * 4);
        if (a->group_bytes != a->row_bytes * a->n || random_below(2)) args.group_stride[i] = a->group_bytes;
        args.matrix[i].y = upload(poison, a->y_bytes + GUARD);
        args.matrix[i].n = a->n;
        args.matrix[i].y_stride = i ? 0 : p->y_stride;
    }
    args.x = upload(p->x, ((size_t)stride_or(p->x_stride, p->shape.k) * (x_rows_of(p) - 1) + p->shape.k)
                              * ref_bytes(ref_of(p->desc.x_type)));
    if (p->offsets) {
        args.groups = p->shape.groups;
        args.offsets = upload(p->offsets, ((size_t)p->shape.groups + 1) * 4);
        if (p->x_rows) args.x_rows = upload(p->x_rows, (size_t)p->shape.m * 4);
        args.x_count = p->x_count;
    }
    args.x_stride = p->x_stride;
    args.gamma = upload(p->gamma, (size_t)p->shape.k * 4);
    args.residual = p->in_place ? args.matrix[0].y
                                : upload(p->residual, (size_t)stride_or(p->residual_stride, p->shape.n)
                                                          * p->shape.m * ref_bytes(ref_of(p->desc.output_type)));
    args.residual_stride = p->residual_stride;
    CHECK(cu.cuMemAlloc(&args.workspace, (size_t)p->plan.workspace_bytes + 1) == 0);
    if (p->plan.zero_bytes) {
        zeros = (unsigned char *)calloc((size_t)p->plan.zero_bytes, 1);
        CHECK(cu.cuMemcpyHtoD(args.workspace, zeros, (size_t)p->plan.zero_bytes) == 0);
        free(zeros);
    }
    args.m = p->shape.m;
    args.k = p->shape.k;
    args.eps = (float)p->eps;
    CHECK_MORE(!ptxk_gemm_check(&p->desc, &args, &why), why.text);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (i = 0; i < p->plan.launches; i++) launch_entry(m, module, &p->plan.launch[i], &args, sizeof args);
    CHECK(cu.cuCtxSynchronize() == 0);
    for (j = 0; j < p->matrices; j++) {
        const unsigned char *y = (const unsigned char *)p->m[j].y;
        CHECK(cu.cuMemcpyDtoH(p->m[j].y, args.matrix[j].y, p->m[j].y_bytes + GUARD) == 0);
        for (i = 0; i < GUARD && y[p->m[j].y_bytes + i] == 0xff; i++) continue;
        CHECK(i == GUARD);
    }
    if (p->plan.zero_bytes) { /* the counters are 0 again */
        zeros = (unsigned char *)malloc((size_t)p->plan.zero_bytes);
        CHECK(cu.cuMemcpyDtoH(zeros, args.workspace, (size_t)p->plan.zero_bytes) == 0);
        for (i = 0; i < p->plan.zero_bytes && !zeros[i]; i++) continue;
        CHECK(i == p->plan.zero_bytes);
        free(zeros);
    }
    check_reports();
    if (!p->in_place) cu.cuMemFree(args.residual);
    for (i = 0; i < p->matrices; i++) {
        cu.cuMemFree(args.matrix[i].weights);
        cu.cuMemFree(args.matrix[i].bias);
        if (args.factors[i]) cu.cuMemFree(args.factors[i]);
        cu.cuMemFree(args.matrix[i].y);
    }
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.gamma);
    cu.cuMemFree(args.workspace);
    if (args.offsets) cu.cuMemFree(args.offsets);
    if (args.x_rows) cu.cuMemFree(args.x_rows);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
}

/* What row r of matrix i gives with row c of x, before a residual; with its bound and |W| |x|. v: x times gamma. */
static double problem_row(const problem *p, uint32_t i, uint32_t group, uint32_t r, const double *v, double rms,
                          double *bound, double *norms)
{
    const matrix *m = &p->m[i];
    const double u = 0x1p-24;
    ref_gemm g;
    double y;
    memset(&g, 0, sizeof g);
    g.type = m->type;
    if (is_byte(m->format)) g.byte = m->format == PTX_E4M3 ? REF_E4M3 : m->format == PTX_E5M2 ? REF_E5M2 : REF_S8;
    g.w.data = m->weights + m->group_bytes * group;
    g.w.row = m->row_bytes;
    g.w.factors = m->factors ? m->factors + m->group_factors * group : NULL;
    g.w.kind = g.byte ? (int)p->desc.factors : 0;
    g.k = p->shape.k;
    g.columns = p->desc.columns;
    g.fast = p->desc.precision == PTXK_GEMM_FAST;
    g.warpgroups = p->shape.target == PTX_SM_A(90);
    g.sm = p->shape.target & 0xfff;
    y = rms * ref_gemm_row(&g, r, v, bound, norms);
    *norms *= rms;
    *bound = rms * *bound + 30 * u * fabs(y);
    if (p->desc.flags & PTXK_GEMM_BIAS) {
        y += (double)m->bias[group * m->n + r];
        *bound += u * fabs(y);
    }
    return y;
}

/* Compares row c of output i with double. The pairs: |silu'|, |gelu'| <= 1.13; e^-g with its argument's roundings
 * and the approximation is right to (2 |g| + 8) u of |g|, clamped 1.702 as many. */
static void compare_row(problem *p, uint32_t i, uint32_t c)
{
    const double u = 0x1p-24;
    const enum ref_format in = ref_of(p->desc.x_type), out = ref_of(p->desc.output_type);
    const uint32_t k = p->shape.k, pair = p->desc.flags & GATES;
    char detail[240] = "";
    const uint32_t group = group_of(p, c), from = p->x_rows ? p->x_rows[c] : c;
    uint32_t r, e, wrong = 0;
    double rms = 1, *v;
    float *x;
    if (group == groups_of(p)) { /* not written */
        for (r = 0; r < p->m[i].n && !p->in_place; r++)
            CHECK(isnan(ref_get(p->m[i].y, out, (size_t)c * y_stride_of(p, i) + r)));
        return;
    }
    x = (float *)calloc(k, sizeof *x);
    v = (double *)calloc(k, sizeof *v);
    for (e = 0; e < k && from < x_rows_of(p); e++) {
        x[e] = (float)ref_get(p->x, in, (size_t)from * stride_or(p->x_stride, k) + e);
        v[e] = (double)x[e] * (p->desc.flags & PTXK_GEMM_GAMMA ? (double)p->gamma[e] : 1);
    }
    if (p->desc.flags & PTXK_GEMM_NORM) rms = ref_rms(x, k, (double)(float)p->eps);
    for (r = random_below(p->row_step); r < p->m[i].n; r += p->row_step) {
        double have = ref_get(p->m[i].y, out, (size_t)c * y_stride_of(p, i) + r), bound, norms, want, error;
        want = problem_row(p, i, group, r, v, rms, &bound, &norms);
        if (pair) {
            double up_bound, up = problem_row(p, 1, group, r, v, rms, &up_bound, &norms), g = want;
            double z = 0.79788456080286535588 * (g + 0.044715 * g * g * g);
            if (pair == PTXK_GEMM_CLAMPED) { /* its gate is steeper: 1.702, within the bound */
                g = fmin(g, 7);
                up = fmax(fmin(up, 7), -7) + 1;
            }
            want = g / (1 + exp(pair == PTXK_GEMM_SWIGLU ? -g : pair == PTXK_GEMM_GEGLU ? -2 * z : -1.702 * g));
            bound = 1.13 * bound * (fabs(up) + up_bound) + fabs(want) * up_bound
                    + (4 * fabs(g) + 30) * u * (fabs(want) + fabs(g) / (1 + z * z)) * fabs(up);
            want *= up;
        }
        if (p->desc.flags & PTXK_GEMM_RESIDUAL)
            want += ref_get(p->residual, out, (size_t)c * stride_or(p->residual_stride, p->shape.n) + r);
        bound = 1.01 * bound + 2 * u * fabs(want) + 1e-30;
        error = fabs(have - want);
        if (out == REF_F16) {
            if (fabs(want) > 65000) continue; /* infinite or not, either is right */
            bound += 0x1p-11 * fabs(want) + 0x1p-25;
        } else if (out == REF_BF16) {
            bound += 0x1p-8 * fabs(want);
        } else if (p->desc.flags < PTXK_GEMM_BIAS && norms > 0) {
            if (error - 2 * u * fabs(want) > p->worst_norms * norms) p->worst_norms = error / norms;
        }
        if (error > p->worst * bound) p->worst = error / bound;
        if (!(error <= bound) && !wrong++)
            (void)snprintf(detail, sizeof detail,
                           "sm_%u type %d m %u n %u k %u columns %u precision %u flags %u: matrix %u, row %u, row %u "
                           "of x is %.9g, not %.9g +- %.3g",
                           (unsigned)(p->shape.target & 0xfff), p->m[i].type, p->shape.m, p->m[i].n, k,
                           p->desc.columns, p->desc.precision, p->desc.flags, i, r, c, have, want, bound);
    }
    CHECK_MORE(wrong == 0, detail);
    free(v);
    free(x);
}

static double most_of_bound, most_of_norms[2];

/* The promise: 2e-6 of |W| |x|; fast 1e-4 (tf32, 2^-10 of each product, and f32 weights 2^-19, excepted). */
static void problem_compare(problem *p)
{
    uint32_t i, c, fast = p->desc.precision == PTXK_GEMM_FAST;
    int words = p->desc.format == PTXK_F32 || p->desc.second == PTXK_F32 || p->desc.third == PTXK_F32;
    for (i = 0; i < p->outputs; i++)
        for (c = random_below(p->column_step); c < p->shape.m; c += p->column_step) compare_row(p, i, c);
    if (p->shape.k >= 1024)
        CHECK_MORE(p->worst_norms <= (fast ? words ? 0x1p-10 : 1e-4 : words ? 0x1p-19 : 2e-6), "of |W| |x|");
    if (p->worst > most_of_bound) most_of_bound = p->worst;
    if (p->shape.k >= 1024 && !words && p->worst_norms > most_of_norms[fast]) most_of_norms[fast] = p->worst_norms;
}

static void problem_run(problem *p)
{
    problem_launch(p);
    problem_compare(p);
}

static unsigned any_target(uint32_t least)
{
    static const unsigned targets[] = {75, 80, 86, 89, 90, PTX_SM_A(90)};
    unsigned t;
    do t = targets[random_below(6)];
    while ((t & 0xfff) < least || (int)(t & 0xfff) > capability || (t == PTX_SM_A(90) && capability != 90));
    return t;
}

/* f32 x and y, a gated pair of one format; any target and number of multiprocessors. columns 0: as suits m. */
static void describe(ptxk_gemm_desc *desc, ptxk_gemm_shape *shape, uint32_t format, uint32_t m, uint32_t n, uint32_t k,
                     uint32_t columns, uint32_t precision, uint32_t flags)
{
    memset(desc, 0, sizeof *desc);
    memset(shape, 0, sizeof *shape);
    desc->format = format;
    desc->x_type = desc->output_type = PTX_F32;
    desc->columns = columns ? columns : ptxk_gemm_columns(m);
    desc->precision = precision;
    desc->flags = flags;
    if (flags & GATES) desc->second = format;
    shape->m = m;
    shape->n = n;
    shape->k = k;
    shape->sm_count = 1 + random_below(140);
    shape->target = PTX_SM(any_target(75));
}

static problem problem_new(uint32_t format, uint32_t m, uint32_t n, uint32_t k, uint32_t columns,
                           uint32_t precision, uint32_t flags)
{
    ptxk_gemm_desc desc;
    ptxk_gemm_shape shape;
    describe(&desc, &shape, format, m, n, k, columns, precision, flags);
    return problem_of(&desc, &shape, 0.02);
}

/* With types of x and y that differ, for warpgroups. */
static problem problem_for_warpgroups(ptxk_gemm_desc desc, ptxk_gemm_shape shape)
{
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    problem p;
    desc.x_type = types[random_below(3)];
    desc.output_type = types[random_below(3)];
    shape.target = PTX_SM_A(90);
    p = problem_of(&desc, &shape, 0.02);
    p.row_step = 5, p.column_step = 7;
    return p;
}

/* Rows, columns and K with tails; a K of an odd number of units; blocks with parts of K, and with many tiles. */
static problem any_problem_for_warpgroups(uint32_t format, uint32_t precision)
{
    uint32_t values = (uint32_t)ref_block_values(type_of(format)), flags = random_below(64);
    uint32_t k = (format == PTXK_MXFP4 ? 64 : values) * (1 + random_below(values < 256 ? 40 : 5));
    ptxk_gemm_desc desc;
    ptxk_gemm_shape shape;
    if ((flags & 48) == 48) flags &= 31;
    describe(&desc, &shape, format, 1 + random_below(150), 1 + random_below(150), k, 64u << random_below(3), precision,
             flags);
    if (random_below(2)) shape.sm_count = 1 + random_below(3);
    return problem_for_warpgroups(desc, shape);
}

#endif
