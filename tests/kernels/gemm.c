/* gemm.c - matrix products with any number of columns: shapes, formats, epilogues and inputs against double, with a
 * bound derived from the arithmetic (tests/gemmtest.h), the same bits in every run. gemm_costs.c counts, and has the
 * deepest rows.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"

static void one(uint32_t format, uint32_t m, uint32_t n, uint32_t k, uint32_t columns, uint32_t precision,
                uint32_t flags)
{
    problem p = problem_new(format, m, n, k, columns, precision, flags);
    problem_run(&p);
    problem_free(&p);
}

static uint32_t unit_of(uint32_t format)
{
    uint32_t values = 1;
    if (is_byte(format)) return 16;
    while (!ptxk_row_bytes(format, values)) values++;
    return values == 1 ? 8 : values << ptxk_row_bytes(format, values) % 2;
}

/* -- shapes -- */

static void every_n(void)
{
    static const uint32_t n[] = {1, 2, 15, 16, 17, 31, 63, 65, 127, 128, 129, 251, 257};
    uint32_t i;
    for (i = 0; i < sizeof n / sizeof *n; i++)
        one(formats[i % FORMATS].format, 1 + random_below(9), n[i], 512, 0, i & 1, 0);
}

static void every_m(void)
{
    static const uint32_t m[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 131};
    uint32_t i;
    for (i = 0; i < sizeof m / sizeof *m; i++) {
        one(PTXK_Q4_K, m[i], 20 + random_below(150), 256, 0, i & 1, 0);
        one(any_format(), m[i], 20 + random_below(60), 512, 8u << random_below(4), i & 1, 0);
    }
}

/* Whole blocks of every number, tails of a unit and of a step among them. */
static void every_k(void)
{
    static const uint32_t blocks[] = {1, 2, 3, 5, 7, 8, 9, 13, 16, 31, 37};
    uint32_t i, f, g;
    SOME_FORMATS(f, g)
        for (i = random_below(2); i < sizeof blocks / sizeof *blocks; i += 2)
            one(formats[f].format, 1 + random_below(8), 1 + random_below(140), unit_of(formats[f].format) * blocks[i],
                8, i & 1, 0);
}

static void every_format_column_and_precision(void)
{
    uint32_t f, g, c, precision;
    SOME_FORMATS(f, g)
        for (c = 8; c <= 64; c *= 2)
            for (precision = 0; precision < 2; precision++)
                if (is_drawn(2))
                    one(formats[f].format, 1 + random_below(c + 8), 1 + random_below(150), 256 * (1 + random_below(6)),
                        c, precision, 0);
}

/* Tiles of 128 and 256 columns, compared in part. */
static void many_columns(void)
{
    static const uint32_t some[] = {PTXK_Q4_K, PTXK_Q6_K, PTXK_Q8_0, PTXK_Q5_K, PTXK_Q4_0};
    uint32_t i;
    for (i = 0; i < 20; i++) {
        uint32_t flags = random_below(64), columns = 128u << random_below(2);
        problem p;
        if (!is_drawn(2)) continue;
        if ((flags & 48) == 48) flags &= 31;
        p = problem_new(some[i / 2 % 5], 65 + random_below(i < 12 ? 70 : 200), 1 + random_below(260),
                        256 * (1 + random_below(9)), columns, i & 1, i < 4 ? 0 : flags);
        p.row_step = p.column_step = 7;
        problem_run(&p);
        problem_free(&p);
    }
}

static void every_type_and_flag(void)
{
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t flags;
    for (flags = 0; flags < 64; flags++) {
        problem p;
        ptxk_gemm_desc desc;
        ptxk_gemm_shape shape;
        if ((flags & 48) == 48) continue;
        describe(&desc, &shape, any_format(), 1 + random_below(20), 1 + random_below(90), 256 * (1 + random_below(4)),
                 8u << random_below(4), random_below(2), flags);
        desc.x_type = types[random_below(3)];
        desc.output_type = types[random_below(3)];
        p = problem_of(&desc, &shape, 0.02);
        p.in_place = random_below(2) && flags & PTXK_GEMM_RESIDUAL;
        if (p.in_place) p.residual_stride = p.y_stride;
        problem_run(&p);
        problem_free(&p);
    }
}

static void several_matrices(void)
{
    uint32_t i;
    for (i = 0; i < 12; i++) {
        ptxk_gemm_desc desc;
        ptxk_gemm_shape shape;
        problem p;
        describe(&desc, &shape, any_format(), 1 + random_below(20), 1 + random_below(150), 256 * (1 + random_below(5)),
                 8u << random_below(4), 0, i % 4 < 2 ? PTXK_GEMM_NORM | PTXK_GEMM_GAMMA | PTXK_GEMM_BIAS : 0);
        desc.second = any_format();
        if (i & 1) desc.third = i & 2 ? any_format() : PTXK_Q4_K;
        if (i == 3) desc.second = desc.third = desc.format;
        shape.second_n = 1 + random_below(150);
        shape.third_n = 1 + random_below(150);
        p = problem_of(&desc, &shape, 0.02);
        problem_run(&p);
        problem_free(&p);
    }
}

/* Gate and up of two formats. */
static void pairs_of_two_formats(void)
{
    static const uint32_t gates[] = {PTXK_GEMM_SWIGLU, PTXK_GEMM_GEGLU, PTXK_GEMM_CLAMPED};
    uint32_t i;
    for (i = 0; i < 12; i++) {
        ptxk_gemm_desc desc;
        ptxk_gemm_shape shape;
        problem p;
        describe(&desc, &shape, i ? any_format() : PTXK_Q4_K, 1 + random_below(40), 1 + random_below(300),
                 256 * (1 + random_below(9)), 8u << random_below(6), random_below(2),
                 gates[i % 3] | (i & 4 ? PTXK_GEMM_NORM | PTXK_GEMM_BIAS | PTXK_GEMM_RESIDUAL : 0));
        desc.second = i ? any_format() : PTXK_Q6_K;
        p = problem_of(&desc, &shape, 0.02);
        p.row_step = 3;
        problem_run(&p);
        problem_free(&p);
    }
}

static void deep_rows(void)
{
    one(PTXK_Q4_K, 2, 40, 14336, 8, 0, 0);
    one(PTXK_Q6_K, 2, 20, 14336, 8, 0, 0);
    one(PTXK_Q8_0, 1, 20, 14336, 8, 0, PTXK_GEMM_NORM);
    one(PTXK_F16, 1, 3, 20008, 8, 0, 0);
}

/* Bytes with factors of every kind, of n and k around blocks of 128. */
static void bytes_with_factors(void)
{
    static const uint32_t k[] = {16, 112, 128, 144, 256, 400, 640, 1040};
    uint32_t i, factors, turn = 0;
    for (i = 0; i < 3; i++)
        for (factors = 0; factors <= PTXK_FACTORS_SQUARE; factors++, turn++) {
            ptxk_gemm_desc desc;
            ptxk_gemm_shape shape;
            problem p;
            describe(&desc, &shape, byte_formats[i], 1 + random_below(turn & 1 ? 9 : 70), 1 + random_below(300),
                     k[random_below(8)], turn & 1 ? 8 : 0, random_below(2),
                     turn % 3 ? 0 : PTXK_GEMM_SWIGLU | PTXK_GEMM_BIAS);
            desc.factors = factors;
            desc.x_type = factors & 1 ? PTX_F16 : factors & 2 ? PTX_BF16 : PTX_F32;
            p = problem_of(&desc, &shape, 0.02);
            if (!factors) p.desc.factors = 0;
            problem_run(&p);
            problem_free(&p);
        }
}

/* -- inputs -- */

static float y_of(const problem *p, uint32_t c, uint32_t r)
{
    return ((const float *)p->m[0].y)[(size_t)c * y_stride_of(p, 0) + r];
}

static void x_that_is_not_finite_spoils_its_row_only(void)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    uint32_t i, c, r;
    for (i = 0; i < 2 * FORMATS; i++) {
        problem p = problem_new(formats[i / 2].format, 11, 37, 512, random_below(2) ? 128u << (i & 1) : 0, i & 1,
                                i & 2 ? PTXK_GEMM_NORM : 0);
        ((float *)p.x)[(size_t)4 * stride_or(p.x_stride, 512) + random_below(512)] = bad[i % 3];
        problem_launch(&p);
        for (c = 0; c < 11; c++)
            for (r = 0; r < 37; r++) CHECK(c == 4 ? isnan(y_of(&p, c, r)) : isfinite(y_of(&p, c, r)));
        problem_free(&p);
    }
}

static void large_small_and_zero_x(void)
{
    uint32_t i, r, e;
    for (i = 0; i < 2 * FORMATS; i++) { /* f32 up to where products still fit; tiny; 0 */
        problem p = problem_new(formats[i / 2].format, 3, 21, 512, 0, 0, i & 1 ? PTXK_GEMM_GAMMA : 0);
        for (e = 0; e < 512; e++) {
            ((float *)p.x)[e] *= 1e30f;
            ((float *)p.x)[stride_or(p.x_stride, 512) + e] *= 1e-28f;
            ((float *)p.x)[2 * stride_or(p.x_stride, 512) + e] = 0;
        }
        problem_run(&p);
        for (r = 0; r < 21; r++) CHECK(y_of(&p, 2, r) == 0);
        problem_free(&p);
    }
    { /* the ends of f16, exact */
        problem q;
        ptxk_gemm_desc desc;
        ptxk_gemm_shape shape;
        describe(&desc, &shape, PTXK_F16, 2, 33, 256, 8, 0, 0);
        desc.x_type = PTX_F16;
        q = problem_of(&desc, &shape, 0.02);
        for (e = 0; e < 256; e++) {
            ref_put(q.x, REF_F16, e, random_below(2) ? 65504 : -65504);
            ref_put(q.x, REF_F16, stride_or(q.x_stride, 256) + e, 0x1p-24 * (1 + random_below(3)));
        }
        problem_run(&q);
        problem_free(&q);
    }
}

/* One large x beside small ones of one sign, which tensor cores cut where it is. */
static void one_large_x(void)
{
    uint32_t i, e;
    for (i = 0; i < FORMATS; i++) {
        problem p = problem_new(formats[i].format, 2, 9, 1024, 8, 0, 0);
        for (e = 0; e < 1024 + stride_or(p.x_stride, 1024); e++) ((float *)p.x)[e] = (float)(0.7 + random_within(0.3));
        ((float *)p.x)[random_below(1024)] = 20000;
        problem_run(&p);
        problem_free(&p);
    }
}

static void a_bad_block_spoils_its_row_only(void)
{
    uint32_t i, r, bad = 11;
    for (i = 0; i < 4 * FORMATS; i++) {
        problem p;
        uint32_t step;
        if (ref_block_values(formats[i / 4].type) == 1) continue; /* products of parts: infinity gives NaN or more */
        p = problem_new(formats[i / 4].format, 2, 37, 1536, i & 2 ? 128u << (i & 1) : 8, i & 1, 0);
        step = (uint32_t)ref_block_bytes(p.m[0].type);
        if (!put_factor(p.m[0].type, p.m[0].weights + bad * p.m[0].row_bytes + 5 * step,
                        i & 1 ? (double)NAN : HUGE_VAL)) {
            problem_free(&p);
            continue;
        }
        problem_launch(&p);
        for (r = 0; r < 37; r++) CHECK(isfinite(y_of(&p, 1, r)) == (r != bad));
        problem_free(&p);
    }
}

static void any_factor(void)
{
    uint32_t i;
    for (i = 0; i < 2 * FORMATS; i++) { /* subnormal, 0, either sign, to the largest */
        problem q;
        ptxk_gemm_desc desc;
        ptxk_gemm_shape shape;
        describe(&desc, &shape, formats[i / 2].format, 3, 50, 1024, i & 1 ? 128 : 8, random_below(2), 0);
        q = problem_of(&desc, &shape, 0);
        memset(q.m[0].weights + q.m[0].row_bytes, 0, q.m[0].row_bytes); /* a row of zeros */
        problem_run(&q);
        CHECK(y_of(&q, 0, 1) == 0);
        problem_free(&q);
    }
}

static void the_same_bits_in_every_run(void)
{
    uint32_t i;
    for (i = 0; i < 3; i++) {
        problem p = problem_new(formats[3 * i % FORMATS].format, 5, 100, 4096, 0, 0, 7);
        void *first;
        problem_launch(&p);
        first = malloc(p.m[0].y_bytes);
        memcpy(first, p.m[0].y, p.m[0].y_bytes);
        problem_launch(&p);
        CHECK(!memcmp(first, p.m[0].y, p.m[0].y_bytes));
        free(first);
        problem_free(&p);
    }
}

/* As many steps of K as one launch may have, and one tile more. */
static void the_most_steps(void)
{
    ptxk_gemm_desc desc = {PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0};
    ptxk_gemm_shape shape = {1u << 22, (1u << 19) - 128, 256, 0, 0, 132, PTX_SM(90), 0};
    ptxk_message why;
    ptx_plan plan;
    CHECK(!ptxk_gemm_plan(&desc, &shape, &plan, &why) && plan.launch[1].grid[0] <= 0x7fffffffu);
    shape.n = 1u << 19;
    CHECK(ptxk_gemm_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && strstr(why.text, "fewer than 2^31 steps"));
}

/* Rows of x and y 2^31 and more elements apart, in sparse memory. */
static void addresses_past_2_32(void)
{
    enum { M = 3, N = 65, K = 64 };
    const uint64_t stride = 0x90000000u;
    ptxk_gemm_desc desc = {PTXK_Q4_0, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0};
    ptxk_gemm_shape shape = {M, N, K, 0, 0, 4, PTX_SM(80), 0};
    ptxk_gemm_args args;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m;
    ptx_module_desc module_desc;
    void *module;
    static unsigned char w[N * K / 32 * 18];
    float x[M][K], y[N];
    uint32_t i, r, e;
    if (!cu.ptxsim_report) {
        printf("SKIP addresses_past_2_32: needs the CPU driver's sparse memory\n");
        return;
    }
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = shape.target;
    m = ptx_module_new(&module_desc);
    CHECK(!ptxk_gemm_emit(m, &desc) && !ptxk_gemm_plan(&desc, &shape, &plan, &why));
    if (!(module = load_text(ptx_text(m, NULL)))) return;
    random_blocks(REF_BLOCK_Q4_0, w, sizeof w, 0.02, 0, 1);
    memset(&args, 0, sizeof args);
    args.matrix[0].weights = upload(w, sizeof w);
    args.matrix[0].n = N;
    args.matrix[0].y_stride = args.x_stride = stride;
    CHECK(cu.cuMemAlloc(&args.x, (stride * (M - 1) + K) * 4) == 0);
    CHECK(cu.cuMemAlloc(&args.matrix[0].y, (stride * (M - 1) + N) * 4) == 0);
    CHECK(cu.cuMemAlloc(&args.workspace, (size_t)plan.workspace_bytes) == 0);
    for (i = 0; i < M; i++) {
        for (e = 0; e < K; e++) x[i][e] = (float)random_within(1);
        CHECK(cu.cuMemcpyHtoD(args.x + stride * i * 4, x[i], sizeof x[i]) == 0);
    }
    args.m = M;
    args.k = K;
    CHECK(plan.zero_bytes == 0);
    CHECK_MORE(!ptxk_gemm_check(&desc, &args, &why), why.text);
    for (i = 0; i < plan.launches; i++) launch_entry(m, module, &plan.launch[i], &args, sizeof args);
    CHECK(cu.cuCtxSynchronize() == 0);
    for (i = 0; i < M; i++) {
        CHECK(cu.cuMemcpyDtoH(y, args.matrix[0].y + stride * i * 4, sizeof y) == 0);
        for (r = 0; r < N; r++) {
            double want = 0, size;
            for (e = 0; e < K; e++)
                want += (double)x[i][e] * ref_weight(REF_BLOCK_Q4_0, w + (r * K + e) / 32 * 18, (int)(e % 32), &size);
            CHECK(fabs((double)y[r] - want) < 1e-5);
        }
    }
    check_reports();
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.matrix[0].y);
    cu.cuMemFree(args.matrix[0].weights);
    cu.cuMemFree(args.workspace);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
}

/* -- refusals -- */

static void refused(const ptxk_gemm_desc *desc, const char *says)
{
    ptxk_gemm_shape shape = {1, 16, 256, 16, 16, 1, PTX_SM(80), 0};
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    CHECK(ptxk_gemm_plan(desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, says), why.text);
    CHECK(ptxk_gemm_emit(m, desc) == PTX_E_DESC);
    CHECK_MORE(strstr(ptx_get_error(m)->message, says), ptx_get_error(m)->message);
    CHECK_MORE(strstr(ptx_get_error(m)->site, "gemm.c"), ptx_get_error(m)->site);
    ptx_module_free(m);
}

static void what_is_refused(void)
{
    static const struct {
        ptxk_gemm_desc desc;
        const char *says;
    } bad[] = {
        {{0, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0}, "format is 0, must be one of PTXK_FORMATS"},
        {{PTX_F32, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0}, "format is "},
        {{PTXK_Q4_K, PTXK_F32, PTX_F32, 8, 0, 0, 0, 0, 0}, "x_type is PTXK_F32, must be PTX_F32"},
        {{PTXK_Q4_K, PTX_F32, 0, 8, 0, 0, 0, 0, 0}, "output_type is 0"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0}, "columns is 0, must be 8, 16, 32, 64, 128 or 256"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 7, 0, 0, 0, 0, 0}, "columns is 7"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 2, 0, 0, 0, 0}, "precision is 2"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 256, 0, 0, 0}, "flags is 256"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 48, PTXK_Q4_K, 0, 0}, "flags is 48"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 16, 0, 0, 0}, "second is 0"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 16, PTXK_Q4_K, PTXK_Q4_K, 0}, "a gated pair"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 4, PTXK_Q4_K, 0, 0}, "a residual"},
        {{PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 1}, "factors is 1, must be 0 where no weights"},
        {{PTX_E4M3, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 5}, "factors is 5, must be PTXK_FACTORS_NONE"}};
    ptxk_gemm_desc desc = {PTXK_Q4_K, PTX_F32, PTX_F32, 8, 0, 0, 0, 0, 0};
    ptxk_gemm_shape shape = {1, 16, 256, 16, 16, 1, PTX_SM(80), 0}, s;
    ptxk_message why;
    ptx_plan plan;
    uint32_t i;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) refused(&bad[i].desc, bad[i].says);
#define PLAN(change, says)                                                                                            \
    s = shape;                                                                                                        \
    change;                                                                                                           \
    CHECK(ptxk_gemm_plan(&desc, &s, &plan, &why) == PTX_E_DESC);                                                      \
    CHECK_MORE(strstr(why.text, says), why.text)
    PLAN(s.k = 255, "k is 255, must be a multiple of 256 from 256 to 1048576");
    PLAN(s.k = 0, "k is 0");
    PLAN(s.k = 1u << 21, "k is 2097152");
    PLAN(s.m = 1u << 23, "m is 8388608, must be at most 4194304");
    PLAN(s.n = 1u << 27, "n is 134217728");
    PLAN(s.sm_count = 0, "sm_count is 0");
    PLAN(s.target = 0, "target is 0");
    s = shape;
    s.m = 0;
    CHECK(!ptxk_gemm_plan(&desc, &s, &plan, &why) && !plan.launches);
    CHECK(ptxk_gemm_plan(&desc, NULL, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_gemm_check(&desc, NULL, &why) == PTX_E_ARGUMENT);
    desc.format = PTX_S8;
    PLAN(s.k = 264, "k is 264, must be a multiple of 16");
}

int main(void)
{
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    if (!open_driver()) return 1;
    every_n();
    every_m();
    every_k();
    every_format_column_and_precision();
    many_columns();
    every_type_and_flag();
    several_matrices();
    pairs_of_two_formats();
    deep_rows();
    bytes_with_factors();
    x_that_is_not_finite_spoils_its_row_only();
    large_small_and_zero_x();
    one_large_x();
    a_bad_block_spoils_its_row_only();
    any_factor();
    the_same_bits_in_every_run();
    the_most_steps();
    addresses_past_2_32();
    what_is_refused();
    printf("note: largest error: %.3f of the bound; %.3g of |W| |x|, fast %.3g\n", most_of_bound, most_of_norms[0],
           most_of_norms[1]);
    return check_end();
}
