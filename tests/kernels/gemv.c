/* gemv.c - quantised matrix times a few vectors: every shape against double, with a bound derived from
 * the arithmetic (tests/reference/gemv.h), the original's failures by name, and the traffic.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_GEMV
#include "../../ptxgen_kernels.h"

#include "../gemvtest.h"
#include "../sass.h"

static problem problem_new(uint32_t n, uint32_t k, uint32_t columns, uint32_t precision, uint32_t output,
                           uint32_t flags)
{
    ptxk_gemv_desc desc;
    ptxk_gemv_shape shape;
    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    desc.format = PTXK_Q4_K;
    desc.columns = columns;
    desc.precision = precision;
    desc.output_type = output;
    desc.flags = flags;
    shape.n = n;
    shape.k = k;
    shape.sm_count = 132;
    return problem_of(&desc, &shape, 0.02);
}

static void one(uint32_t n, uint32_t k, uint32_t columns, uint32_t precision, uint32_t output, uint32_t flags)
{
    problem p = problem_new(n, k, columns, precision, output, flags);
    problem_run(&p);
    if (p.worst > most_of_bound) most_of_bound = p.worst;
    if (p.worst_norms > most_of_norms) most_of_norms = p.worst_norms;
    problem_free(&p);
}

static void every_n(void)
{
    static const uint32_t n[] = {1, 2, 3, 4, 5, 7, 16, 31, 32, 33, 65, 1000};
    uint32_t i;
    for (i = 0; i < sizeof n / sizeof *n; i++) {
        one(n[i], 512, 1, PTXK_GEMV_EXACT, PTX_F32, 0);
        one(n[i], 1280, 1, PTXK_GEMV_FAST, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA);
        one(n[i], 256, 3, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_RESIDUAL);
    }
}

static void every_k(void)
{
    static const uint32_t k[] = {256, 512, 768, 1024, 1280, 2048, 2304, 4096, 12544, 14336, 65536, 131328};
    uint32_t i;
    for (i = 0; i < sizeof k / sizeof *k; i++) {
        one(33, k[i], 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA);
        one(7, k[i], 1, PTXK_GEMV_FAST, PTX_F32, 0);
    }
    one(5, 65536, 8, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM);
}

static void every_number_of_columns_and_flags(void)
{
    uint32_t c, flags;
    for (c = 1; c <= 8; c++)
        for (flags = 0; flags < 8; flags++)
            one(19 + c, 256 * (1 + random_below(9)), c, (c ^ flags) & 1, flags & 2 ? PTX_F16 : PTX_F32,
                flags);
    for (flags = 0; flags < 8; flags++) {
        one(40, 2048, 1, 0, PTX_F16, flags);
        one(40, 2048, 1, 1, PTX_F32, flags);
    }
}

static void one_slice_and_many(void)
{
    static const uint32_t sms[] = {1, 2, 3, 8, 20, 64, 1000};
    uint32_t i;
    for (i = 0; i < sizeof sms / sizeof *sms; i++) {
        problem p = problem_new(300, 5120, 1 + i % 3, i & 1, PTX_F32, 7);
        p.shape.sm_count = sms[i];
        problem_run(&p);
        problem_free(&p);
    }
}

static void every_target(void)
{
    static const unsigned targets[] = {75, 80, 86, 89, 90};
    uint32_t i;
    for (i = 0; i < sizeof targets / sizeof *targets && (int)targets[i] <= capability; i++) {
        problem p = problem_new(50, 3328, 1 + i % 2, i & 1, i & 2 ? PTX_F16 : PTX_F32, 7);
        p.target = PTX_SM(targets[i]);
        problem_run(&p);
        problem_free(&p);
    }
}

static void y_may_be_the_residual(void)
{
    problem p = problem_new(77, 1024, 2, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_RESIDUAL);
    p.in_place = 1;
    problem_run(&p);
    problem_free(&p);
}

/* -- the original's failures -- */

/* 002: rms_inv was written over x[0], and raced with its readers. Weights that see x[0] alone, x[0] far from
   rms_inv, 20 times. */
static void x0_is_not_overwritten(void)
{
    int i;
    for (i = 0; i < 5; i++) {
        problem p = problem_new(40, 256, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA);
        p.x[0] = 50;
        problem_run(&p);
        problem_free(&p);
    }
}

/* 002: K above 12280 exceeded static shared memory. */
static void k_above_12280(void)
{
    one(64, 12288, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA);
    one(64, 14336, 2, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA);
}

/* 002: the block's size was assumed. The plan gives it, and the entries declare it. */
static void block_size_is_the_plans(void)
{
    ptxk_gemv_desc desc = {PTXK_Q4_K, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM, 0, 0};
    ptxk_gemv_shape shape = {4096, 4096, 132, 0, 0};
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    ptx_entry_info info;
    uint32_t i;
    ptxk_gemv_emit(m, &desc);
    CHECK(ptx_text(m, NULL) != NULL);
    CHECK(!ptxk_gemv_plan(&desc, &shape, &plan, NULL) && plan.launches >= 2);
    for (i = 0; i < plan.launches; i++)
        CHECK(ptx_entry_get(m, plan.launch[i].entry, &info) && info.max_threads == plan.launch[i].block[0]);
    ptx_module_free(m);
}

/* 002: every block read all of x and gamma again, 14 times the bytes of the weights. */
static void traffic_at(uint32_t precision, uint32_t flags, double most)
{
    problem p = problem_new(4096, 14336, 1, precision, PTX_F32, flags);
    ptxsim_counters c;
    double ratio;
    p.row_step = 61;
    problem_run(&p);
    CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
    ratio = 32.0 * (double)(c.global_load_sectors + c.global_store_sectors) / (double)p.plan.min_bytes;
    printf("note: traffic of 4096 x 14336, precision %u, flags %u, %u x %u blocks: %.4f of the lower bound; "
           "%.3f thread instructions a weight; bank conflicts %llu of %llu wavefronts\n",
           precision, flags, p.plan.launch[1].grid[0], p.plan.launch[1].grid[1], ratio,
           (double)c.thread_instructions / 4096 / 14336, (unsigned long long)c.shared_bank_conflicts,
           (unsigned long long)c.shared_wavefronts);
    CHECK(ratio <= most);
    CHECK(c.shared_bank_conflicts == 0);
    problem_free(&p);
}

static void traffic_is_within_5_percent_of_the_lower_bound(void)
{
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic_is_within_5_percent_of_the_lower_bound: only the CPU driver counts\n");
        return;
    }
    traffic_at(PTXK_GEMV_FAST, 0, 1.05);
    traffic_at(PTXK_GEMV_EXACT, PTXK_GEMV_NORM | PTXK_GEMV_GAMMA, 1.05);
}

/* -- machine instructions: on the largest machines they are the limit, and ptxas alone can tell -- */

/* In the loop for a weight, one column: what this kernel takes and may not pass, each below what a weight may
   cost at full bandwidth on the largest machines (and below the best public kernels, where there are any). At
   the end several columns of the formats that lie 2-byte aligned:

              at bandwidth  public   8-bit x  16-bit x
     Q4_K     4.4           4.94     2.0      2.2
     Q4_0     4.4           2.7      1.8      2.1
     Q5_K     5.35          5.9      2.7      3.1
     Q6_K     6.4           9.1      3.2      3.6
     Q8_0     8.3           3.7      2.3      2.6
     f16      15.6                            4.2
     bf16     15.6                            4.2
     f32      31                              5.3
*/
static const struct cost {
    uint32_t format, precision, columns;
    double most, all;
} costs[] = {{PTXK_Q4_K, 1, 1, 2.0, 2.6},  {PTXK_Q4_0, 1, 1, 1.8, 3.7},   {PTXK_Q5_K, 1, 1, 2.7, 4.2},
             {PTXK_Q6_K, 1, 1, 3.2, 6.2},  {PTXK_Q8_0, 1, 1, 2.3, 4.4},   {PTXK_Q4_K, 0, 1, 2.2, 3.1},
             {PTXK_Q4_0, 0, 1, 2.1, 4.0},  {PTXK_Q5_K, 0, 1, 3.1, 4.6},   {PTXK_Q6_K, 0, 1, 3.6, 6.7},
             {PTXK_Q8_0, 0, 1, 2.6, 4.7},  {PTXK_F16, 0, 1, 4.2, 5.0},    {PTXK_BF16, 0, 1, 4.2, 5.0},
             {PTXK_F32, 0, 1, 5.3, 6.7},   {PTXK_Q8_0, 0, 3, 3.9, 6.5},   {PTXK_Q4_0, 0, 3, 4.0, 6.4},
             {PTXK_Q6_K, 0, 3, 5.9, 8.0},  {PTXK_Q8_0, 1, 8, 5.0, 8.4},   {PTXK_Q4_0, 1, 8, 5.5, 8.6},
             {PTXK_Q6_K, 1, 8, 9.4, 14.7}, {PTXK_Q8_0, 0, 8, 8.9, 14.2},  {PTXK_Q4_0, 0, 8, 8.1, 11.2},
             {PTXK_Q6_K, 0, 8, 12.5, 17.8}};

/* The figures above; and, of a row of K = 4096 as one slice, those in all (all the kernel once, and the loop
   as often as it takes more): what stands outside of the loop weighs most where a step is long, 2048 weights
   of Q4_0 and Q6_K, so that a row is two of them, and where a warp has few rows: of Q6_K one, for two such
   steps of two rows are 55 KB of a block. Two rows of 1024 weights would cost 5.2 in all, not 6.5, but each step
   would end within a sector, 7 % of the traffic. */
static void instructions_per_weight(void)
{
    static unsigned char image[1 << 20];
    static const char *const precisions[] = {"x16", "x8", "xf32"};
    ptx_module_desc module_desc;
    ptx_module *m;
    size_t j;
    if (!sass_possible("instructions_per_weight")) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(90);
    m = ptx_module_new(&module_desc);
    for (j = 0; j < sizeof costs / sizeof *costs; j++) {
        ptxk_gemv_desc desc = {0, 0, 0, PTX_F32, 0, 0, 0};
        desc.format = costs[j].format;
        desc.precision = costs[j].precision;
        desc.columns = costs[j].columns;
        CHECK(ptxk_gemv_emit(m, &desc) == PTX_E_NONE);
    }
    if (CHECK(ptx_text(m, NULL) != NULL) && sass_assemble(ptx_text(m, NULL), image, sizeof image)) {
        for (j = 0; j < sizeof costs / sizeof *costs; j++) {
            ptxk_gemv_desc desc = {0, 0, 0, PTX_F32, 0, 0, 0};
            const unsigned char *code;
            ptxk__gemv form;
            ptxk__rows rows;
            char kernel[80];
            uint32_t count, loop, first = 0;
            double weights, all;
            desc.format = costs[j].format;
            desc.precision = costs[j].precision;
            desc.columns = costs[j].columns;
            CHECK(ptxk__gemv_form(&desc, &form, NULL) == PTX_E_NONE);
            rows = form.rows[0];
            (void)snprintf(kernel, sizeof kernel, "gemv_%s_c%u_%s_f32_f0", rows.block->name, rows.columns,
                           precisions[rows.planes ? costs[j].precision : 2]);
            code = sass_code(image, kernel, &count);
            if (!code) continue;
            while (count && sass_opcode(code, count - 1) == SASS_NOP) count--;
            loop = sass_inner_loop(code, count, &first);
            weights = rows.rows * rows.unit / 32;
            all = (count + (4096.0 / rows.unit - 1) * loop) / (4096 / 32 * rows.rows);
            printf("note: sm_90: %s: %u instructions, %u in the loop: %.2f for a weight, %.2f in all at "
                   "K = 4096\n",
                   kernel, count, loop, loop / weights, all);
            CHECK_MORE(loop > 50 && loop / weights <= costs[j].most, kernel);
            CHECK_MORE(all <= costs[j].all, kernel);
        }
    }
    ptx_module_free(m);
}

/* -- edges -- */

static void all_zero_x_gives_zero(void)
{
    uint32_t flags, i;
    for (flags = 0; flags < 4; flags++) {
        problem p = problem_new(9, 3072, 2, flags & 1, PTX_F32, flags);
        p.eps = 0;
        memset(p.x, 0, (size_t)p.shape.k * 2 * sizeof *p.x);
        problem_launch(&p);
        for (i = 0; i < 18; i++) CHECK(((float *)p.m[0].y)[i] == 0);
        problem_free(&p);
    }
}

static void x_that_is_not_finite_makes_every_output_nan(void)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    uint32_t i, r;
    for (i = 0; i < 6; i++) {
        problem p = problem_new(37, 2816, 2, i & 1, PTX_F32, i / 3 ? PTXK_GEMV_NORM | PTXK_GEMV_GAMMA : 0);
        p.x[p.shape.k + random_below(p.shape.k)] = bad[i % 3];
        problem_launch(&p);
        for (r = 0; r < 37; r++) {
            CHECK(((float *)p.m[0].y)[r] - ((float *)p.m[0].y)[r] == 0);
            CHECK(isnan(((float *)p.m[0].y)[37 + r]));
        }
        problem_free(&p);
    }
}

static void squares_past_the_range_are_nan_not_zero(void)
{
    problem p = problem_new(5, 512, 1, PTXK_GEMV_EXACT, PTX_F32, PTXK_GEMV_NORM);
    p.x[3] = 1e25f;
    problem_launch(&p);
    CHECK(isnan(((float *)p.m[0].y)[0]) && isnan(((float *)p.m[0].y)[4]));
    problem_free(&p);
}

static void a_bad_block_spoils_its_row_only(void)
{
    uint32_t i, r, bad = 11;
    for (i = 0; i < 4; i++) {
        problem p = problem_new(37, 1536, 1, i & 1, PTX_F32, 0);
        put_f16(p.m[0].weights + bad * ptxk_row_bytes(PTXK_Q4_K, 1536) + 5 * 144 + (i & 2),
                i & 1 ? (double)NAN : (double)INFINITY);
        problem_launch(&p);
        for (r = 0; r < 37; r++) {
            float y = ((float *)p.m[0].y)[r];
            CHECK((y - y == 0) == (r != bad));
        }
        problem_free(&p);
    }
}

static void one_large_value_in_each_group(void)
{
    uint32_t i;
    problem p = problem_new(64, 2048, 1, PTXK_GEMV_EXACT, PTX_F32, 0);
    for (i = 0; i < 2048; i++) p.x[i] = i % 32 == 7 ? 100 : (float)random_within(0.004);
    problem_run(&p);
    printf("note: one large value in each group: %.3g of |W| |x|\n", p.worst_norms);
    problem_free(&p);
}

static void the_same_bits_in_every_run(void)
{
    problem p = problem_new(100, 14336, 1, PTXK_GEMV_EXACT, PTX_F32, 7);
    float first[100];
    problem_launch(&p);
    memcpy(first, p.m[0].y, sizeof first);
    problem_launch(&p);
    CHECK(!memcmp(first, p.m[0].y, sizeof first));
    problem_free(&p);
}

/* -- refusals -- */

static void refused(const ptxk_gemv_desc *desc, const char *says)
{
    ptxk_gemv_shape shape = {16, 256, 1, 16, 16};
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    CHECK(ptxk_gemv_plan(desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, says), why.text);
    CHECK(ptxk_gemv_emit(m, desc) == PTX_E_DESC);
    CHECK_MORE(strstr(ptx_get_error(m)->message, says), ptx_get_error(m)->message);
    CHECK_MORE(strstr(ptx_get_error(m)->site, "gemv.c"), ptx_get_error(m)->site);
    ptx_module_free(m);
}

static void refused_desc(uint32_t format, uint32_t columns, uint32_t precision, uint32_t output,
                         uint32_t flags, const char *says)
{
    ptxk_gemv_desc desc = {0, 0, 0, 0, 0, 0, 0};
    desc.format = format;
    desc.columns = columns;
    desc.precision = precision;
    desc.output_type = output;
    desc.flags = flags;
    refused(&desc, says);
}

static void refused_matrices(uint32_t format, uint32_t second, uint32_t third, uint32_t flags,
                             const char *says)
{
    ptxk_gemv_desc desc = {0, 1, 0, PTX_F32, 0, 0, 0};
    desc.format = format;
    desc.second = second;
    desc.third = third;
    desc.flags = flags;
    refused(&desc, says);
}

/* No number is a format and a type; formats have names. */
static void formats_are_no_types(void)
{
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16, PTX_U8, PTX_B8};
    size_t i;
#define ONE(format)                                                                                          \
    CHECK(strcmp(ptxk_format_name(PTXK_##format), "PTXK_" #format) == 0);                                    \
    CHECK(strcmp(ptx_type_name((ptx_type)PTXK_##format), "?") == 0 && ptxk_row_bytes(PTXK_##format, 256));
    PTXK_FORMATS(ONE)
#undef ONE
    for (i = 0; i < sizeof types / sizeof *types; i++)
        CHECK(strcmp(ptxk_format_name(types[i]), "?") == 0 && ptxk_row_bytes(types[i], 256) == 0);
    CHECK(strcmp(ptxk_format_name(0), "?") == 0 && ptxk_row_bytes(0, 256) == 0);
}

static void bad_descriptions_are_refused(void)
{
    ptx_module *m = ptx_module_new(NULL);
    refused_desc(0, 1, 0, PTX_F32, 0, "format is 0");
    refused_desc(99, 1, 0, PTX_F32, 0, "format is 99");
    refused_desc(PTX_U8, 1, 0, PTX_F32, 0, "format is PTX_U8, must be one of PTXK_FORMATS");
    refused_desc(PTXK_Q4_K, 1, 0, PTXK_F16, 0, "output_type is PTXK_F16, must be PTX_F32");
    refused_desc(PTXK_Q4_K, 0, 0, PTX_F32, 0, "columns is 0");
    refused_desc(PTXK_Q4_K, 9, 0, PTX_F32, 0, "columns is 9");
    refused_desc(PTXK_Q4_K, 1, 2, PTX_F32, 0, "precision is 2");
    refused_desc(PTXK_Q4_K, 1, 0, PTX_BF16, 0, "output_type");
    refused_desc(PTXK_Q4_K, 1, 0, PTX_F32, 32, "flags is 32");
    refused_matrices(PTXK_Q4_K, 200, 0, 0, "second is 200");
    refused_matrices(PTXK_Q4_K, 0, 201, 0, "second is 0");
    refused_matrices(PTXK_Q4_K, PTXK_Q6_K, 201, 0, "third is 201");
    refused_matrices(PTXK_Q4_K, PTXK_F16, 0, 0,
                     "second is PTXK_F16 and format is PTXK_Q4_K: both must be quantised");
    refused_matrices(PTXK_BF16, PTXK_F16, PTXK_Q8_0, 0, "third is PTXK_Q8_0 and format is PTXK_BF16: both");
    refused_matrices(PTXK_Q4_K, PTXK_Q4_K, PTXK_Q4_K, PTXK_GEMV_SWIGLU,
                     "takes two matrices, there are 3 (third is PTXK_Q4_K)");
    refused_matrices(PTXK_Q4_K, 0, 0, PTXK_GEMV_SWIGLU, "second is 0, must be one of PTXK_FORMATS");
    refused_matrices(PTXK_Q4_K, PTXK_Q4_K, 0, PTXK_GEMV_RESIDUAL,
                     "a residual (PTXK_GEMV_RESIDUAL) goes with one output, there are 2");
    CHECK(ptxk_gemv_emit(m, NULL) == PTX_E_ARGUMENT);
    ptx_module_free(m);
}

static void bad_shapes_and_arguments_are_refused(void)
{
    ptxk_gemv_desc desc = {PTXK_Q4_K, 2, PTXK_GEMV_EXACT, PTX_F32, 7, 0, 0},
                   plain = {PTXK_Q4_K, 2, 0, PTX_F32, 0, 0, 0};
    ptxk_gemv_shape good_shape = {1000, 4096, 132, 0, 0}, shape;
    ptxk_gemv_args good, a;
    ptxk_message why;
    ptx_plan plan;
#define BAD_SHAPE(change, says)                                                                              \
    do {                                                                                                     \
        shape = good_shape;                                                                                  \
        change;                                                                                              \
        CHECK(ptxk_gemv_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);                                     \
        CHECK_MORE(strstr(why.text, says), why.text);                                                        \
        CHECK(plan.launches == 0 && plan.workspace_bytes == 0);                                              \
    } while (0)
    BAD_SHAPE(shape.k = 0, "k is 0");
    BAD_SHAPE(shape.k = 255, "k is 255");
    BAD_SHAPE(shape.k = 4224, "k is 4224"); /* 002: K % 256 was read past the end of x */
    BAD_SHAPE(shape.k = 0x4000100u, "k is 67109120");
    BAD_SHAPE(shape.n = 0x80000000u, "n is 2147483648");
    BAD_SHAPE(shape.sm_count = 0, "sm_count is 0");
    BAD_SHAPE(shape.sm_count = 65537, "sm_count is 65537");
#undef BAD_SHAPE
    CHECK(ptxk_gemv_plan(&desc, NULL, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_gemv_plan(&desc, &good_shape, NULL, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_gemv_plan(NULL, &good_shape, &plan, &why) == PTX_E_ARGUMENT);
    shape = good_shape;
    shape.n = 0;
    CHECK(!ptxk_gemv_plan(&desc, &shape, &plan, &why) && plan.launches == 0);
    shape.n = 0x7fffffffu;
    shape.k = 0x4000000u;
    CHECK(!ptxk_gemv_plan(&desc, &shape, &plan, &why) && plan.min_bytes > (uint64_t)1 << 56);
    CHECK(plan.launch[1].shared_bytes <= 49152 && plan.launch[1].grid[1] <= 65535);
    CHECK(!ptxk_gemv_plan(&desc, &good_shape, &plan, &why));
    CHECK(plan.min_bytes == 1000 * 16 * 144 + 4096 * 4 * 3 + 1000 * 2 * 4 * 2);
    memset(&good, 0, sizeof good);
    good.weights = 0x100000000;
    good.x = 0x200000000;
    good.gamma = 0x300000000;
    good.residual = 0x400000000;
    good.y = 0x500000000;
    good.workspace = 0x600000000;
    good.n = 1000;
    good.k = 4096;
    CHECK_MORE(!ptxk_gemv_check(&desc, &good, &why), why.text);
#define BAD(which, change, says)                                                                             \
    do {                                                                                                     \
        a = good;                                                                                            \
        change;                                                                                              \
        CHECK(ptxk_gemv_check(&which, &a, &why) == PTX_E_ARGUMENT);                                          \
        CHECK_MORE(strstr(why.text, says), why.text);                                                        \
    } while (0)
    BAD(desc, a.weights = 0, "weights is 0");
    BAD(desc, a.x = 0, "x is 0");
    BAD(desc, a.gamma = 0, "gamma is 0");
    BAD(desc, a.residual = 0, "residual is 0");
    BAD(desc, a.y = 0, "y is 0");
    BAD(desc, a.workspace = 0, "workspace is 0");
    BAD(desc, a.weights += 8, "weights is not aligned to 16");
    BAD(desc, a.x += 4, "x is not aligned to 16");
    BAD(desc, a.workspace += 16, "workspace is not aligned to 256");
    BAD(desc, a.k = 4000, "k is 4000");
    BAD(desc, a.n = 0xffffffffu, "n is 4294967295");
    BAD(desc, a.eps = -1, "eps is -1");
    BAD(desc, a.eps = NAN, "eps");
    BAD(desc, a.eps = INFINITY, "eps");
    BAD(desc, a.y = a.x + 16, "y overlaps x");
    BAD(desc, a.y = a.weights + 1000 * 16 * 144 - 16, "y overlaps weights");
    BAD(desc, a.y = a.residual + 16, "y overlaps residual");
    BAD(desc, a.workspace = a.gamma, "workspace overlaps gamma");
    BAD(desc, a.x = 0xfffffffffffffff0u, "x passes 2^64");
#undef BAD
    a = good;
    a.residual = a.y;
    CHECK(!ptxk_gemv_check(&desc, &a, &why));
    a.gamma = a.residual = 0; /* not asked for, not looked at */
    CHECK(!ptxk_gemv_check(&plain, &a, &why));
    CHECK(ptxk_gemv_check(&desc, NULL, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_gemv_check(NULL, &good, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_row_bytes(PTXK_Q4_K, 4096) == 16 * 144 && !ptxk_row_bytes(PTXK_Q4_K, 4000)
          && !ptxk_row_bytes(200, 4096));
}

static void bad_shapes_and_arguments_of_several_matrices_are_refused(void)
{
    ptxk_gemv_desc qkv = {PTXK_Q8_0, 2, 0, PTX_F32, PTXK_GEMV_BIAS, PTXK_Q4_0, PTXK_Q8_0};
    ptxk_gemv_desc swiglu = {PTXK_F16, 1, 0, PTX_F32, PTXK_GEMV_SWIGLU, PTXK_F16, 0};
    ptxk_gemv_shape good = {100, 96, 132, 50, 25}, shape;
    ptxk_gemv_args args, a;
    ptxk_message why;
    ptx_plan plan;
    CHECK_MORE(!ptxk_gemv_plan(&qkv, &good, &plan, &why), why.text);
    CHECK(plan.min_bytes == 96 / 32 * (125 * 34 + 50 * 18) + 96 * 2 * 4 + 175 * 2 * 4 + 175 * 4);
#define BAD(change, says)                                                                                    \
    do {                                                                                                     \
        shape = good;                                                                                        \
        change;                                                                                              \
        CHECK(ptxk_gemv_plan(&qkv, &shape, &plan, &why) == PTX_E_DESC);                                      \
        CHECK_MORE(strstr(why.text, says), why.text);                                                        \
    } while (0)
    BAD(shape.k = 100, "k is 100, must be a multiple of 32");
    BAD(shape.n = 0, "n is 0");
    BAD(shape.second_n = 0, "second_n is 0");
    BAD(shape.third_n = 0, "third_n is 0");
    BAD(shape.third_n = 0x7ffffff0u, "together");
#undef BAD
    qkv.second = PTXK_Q6_K;
    CHECK(ptxk_gemv_plan(&qkv, &good, &plan, &why) == PTX_E_DESC && strstr(why.text, "a multiple of 256"));
    qkv.second = PTXK_Q4_0;
    good.k = 100;
    CHECK(ptxk_gemv_plan(&swiglu, &good, &plan, &why) == PTX_E_DESC && strstr(why.text, "a multiple of 8"));
    good.k = 104;
    CHECK(!ptxk_gemv_plan(&swiglu, &good, &plan, &why));
    CHECK(plan.min_bytes == 104 * 2 * 200 + 104 * 4 + 100 * 4);
    memset(&args, 0, sizeof args);
    args.weights = 0x100000000;
    args.x = 0x200000000;
    args.y = 0x500000000;
    args.bias = 0x580000000;
    args.workspace = 0x600000000;
    args.n = 100;
    args.k = 96;
    args.more[0].weights = 0x700000000;
    args.more[0].bias = 0x780000000;
    args.more[0].y = 0x800000000;
    args.more[0].n = 50;
    args.more[1].weights = 0x900000000;
    args.more[1].bias = 0x980000000;
    args.more[1].y = 0xa00000000;
    args.more[1].n = 25;
    CHECK_MORE(!ptxk_gemv_check(&qkv, &args, &why), why.text);
#define BAD(change, says)                                                                                    \
    do {                                                                                                     \
        a = args;                                                                                            \
        change;                                                                                              \
        CHECK(ptxk_gemv_check(&qkv, &a, &why) == PTX_E_ARGUMENT);                                            \
        CHECK_MORE(strstr(why.text, says), why.text);                                                        \
    } while (0)
    BAD(a.more[0].weights = 0, "more[0].weights is 0");
    BAD(a.more[1].y = 0, "more[1].y is 0");
    BAD(a.more[1].bias = 0, "more[1].bias is 0");
    BAD(a.more[1].bias += 4, "more[1].bias is not aligned");
    BAD(a.more[0].y = a.y + 16, "y overlaps more[0].y");
    BAD(a.more[1].y = a.more[0].weights, "more[1].y overlaps more[0].weights");
    BAD(a.more[1].n = 0x7fffffffu, "n is 2147483647");
#undef BAD
    args.more[0].y = args.more[0].bias = args.bias = 0;
    CHECK(ptxk_gemv_check(&swiglu, &args, &why) == PTX_E_ARGUMENT
          && strstr(why.text, "more[0].n is 50, must be n"));
    args.more[0].n = 100;
    CHECK_MORE(!ptxk_gemv_check(&swiglu, &args, &why), why.text);
}

int main(void)
{
    start_random();
    formats_are_no_types();
    bad_descriptions_are_refused();
    bad_shapes_and_arguments_are_refused();
    bad_shapes_and_arguments_of_several_matrices_are_refused();
    block_size_is_the_plans();
    instructions_per_weight();
    if (CHECK(open_driver())) {
        every_n();
        every_k();
        every_number_of_columns_and_flags();
        one_slice_and_many();
        every_target();
        y_may_be_the_residual();
        x0_is_not_overwritten();
        k_above_12280();
        all_zero_x_gives_zero();
        x_that_is_not_finite_makes_every_output_nan();
        squares_past_the_range_are_nan_not_zero();
        a_bad_block_spoils_its_row_only();
        one_large_value_in_each_group();
        the_same_bits_in_every_run();
        traffic_is_within_5_percent_of_the_lower_bound();
        printf("note: largest error %.3f of its bound; at full precision %.3g of |W| |x|\n", most_of_bound,
               most_of_norms);
    }
    return check_end();
}
