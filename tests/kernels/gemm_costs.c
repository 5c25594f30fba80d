/* gemm_costs.c - what gemm costs: machine instructions of sm_90, as ptxas makes them; sectors, bank conflicts and
 * instructions as the CPU driver counts them; and the deepest rows, which take long. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"
#include "../sass.h"

/* -- machine instructions: on the largest machines they are the limit, and ptxas alone can tell -- */

/* SASS of sm_90 for a weight: in the loop, where rows are 4-byte aligned, without
   what copies their ends; and in all of the second launch
   for 4096 x 14336 and 4096 x 4096 on 132 multiprocessors, padding included, the first launch not (4 percent of
   that at most). */
static const struct cost {
    uint32_t format, columns, precision;
    double loop, all[2];
} costs[] = {{PTXK_Q4_K, 8, 0, 2.1, {2.4, 3.2}},       {PTXK_Q4_K, 8, 1, 1.9, {2.2, 3.0}},
             {PTXK_Q4_K, 16, 0, 2.5, {2.9, 3.8}},      {PTXK_Q4_K, 32, 0, 3.4, {3.8, 5.0}},
             {PTXK_Q6_K, 16, 0, 4.2, {4.7, 5.6}},      {PTXK_Q6_K, 32, 0, 6.5, {7.0, 7.8}},
             {PTXK_Q4_K, 64, 0, 5.1, {5.8, 7.6}},      {PTXK_Q4_K, 64, 1, 3.7, {4.4, 6.2}},
             {PTXK_Q5_K, 8, 0, 2.8, {3.1, 3.9}},       {PTXK_Q6_K, 8, 0, 3.2, {3.5, 4.1}},
             {PTXK_Q6_K, 8, 1, 3.0, {3.3, 3.9}},       {PTXK_Q8_0, 8, 0, 2.55, {2.85, 3.6}},
             {PTXK_Q8_0, 8, 1, 2.35, {2.7, 3.45}},     {PTXK_Q4_0, 8, 0, 2.15, {2.45, 3.2}},
             {PTXK_F16, 8, 0, 2.2, {2.5, 3.2}},        {PTXK_BF16, 8, 0, 2.95, {3.2, 4.0}},
             {PTXK_F32, 8, 0, 6.7, {6.9, 7.7}},        {PTXK_Q4_1, 8, 0, 2.1, {2.4, 3.05}},
             {PTXK_Q5_0, 8, 0, 3.5, {3.8, 4.55}},      {PTXK_Q5_1, 8, 0, 3.3, {3.6, 4.2}},
             {PTXK_Q2_K, 8, 0, 2.9, {3.35, 4.5}},      {PTXK_Q3_K, 8, 0, 3.95, {4.2, 5.0}},
             {PTXK_IQ4_NL, 8, 0, 3.85, {4.2, 4.95}},   {PTXK_IQ4_XS, 8, 0, 4.05, {4.35, 5.1}},
             {PTXK_MXFP4, 8, 0, 3.35, {3.7, 4.5}},     {PTXK_NVFP4, 8, 0, 3.75, {4.1, 4.9}},
             {PTXK_IQ2_XXS, 8, 0, 4.6, {5, 5.6}},      {PTXK_IQ2_XS, 8, 0, 4.4, {4.8, 5.4}},
             {PTXK_IQ2_S, 8, 0, 4.4, {4.8, 5.4}},      {PTXK_IQ3_XXS, 8, 0, 5, {5.3, 6.1}},
             {PTXK_IQ3_S, 8, 0, 5.2, {5.5, 6.3}},      {PTXK_IQ1_S, 8, 0, 4.4, {4.8, 5.4}},
             {PTXK_IQ1_M, 8, 0, 4.75, {5.1, 6.3}},     {PTXK_TQ1_0, 8, 0, 4.0, {4.5, 5.05}},
             {PTXK_TQ2_0, 8, 0, 2.05, {2.55, 3.1}},    {PTX_E4M3, 8, 0, 1.5, {1.8, 2.6}},
             {PTX_E5M2, 8, 0, 1.5, {1.8, 2.6}},        {PTX_S8, 8, 0, 2.25, {2.6, 3.4}}};

/* How often a block starts in a tile. */
static uint32_t starts_of(const ptxk__gemm *f, const ptxk_gemm_shape *shape, uint32_t blocks)
{
    uint32_t n[3] = {shape->n, shape->n, 0}, units = ptxk__ceil_div(shape->k, ptxk__gemm_granule(f)), b, starts = 0;
    uint64_t all = ptxk__gemm_row_tiles(f, n) * ptxk__gemm_column_tiles(f, shape->m, 0) * units;
    for (b = 0; b < blocks; b++) {
        uint64_t longer = all % blocks, first = all / blocks * b + (b < longer ? b : longer);
        uint64_t last = first + all / blocks + (b < longer) - 1;
        starts += (uint32_t)(last / units - first / units + 1);
    }
    return starts;
}

static void instructions_per_weight(void)
{
    static unsigned char image[1 << 21];
    static const uint32_t k_of[2] = {14336, 4096};
    ptx_module_desc module_desc;
    ptx_module *m;
    char kernel[60];
    size_t j;
    uint32_t i;
    if (!sass_possible("instructions_per_weight")) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(90);
    m = ptx_module_new(&module_desc);
    for (j = 0; j < sizeof costs / sizeof *costs; j++) {
        ptxk_gemm_desc desc = {0, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0};
        ptxk__gemm form;
        desc.format = costs[j].format;
        desc.columns = costs[j].columns;
        desc.precision = costs[j].precision;
        desc.factors = is_byte(desc.format) ? PTXK_FACTORS_SQUARE : 0;
        CHECK(ptxk__gemm_form(&desc, PTX_SM(90), &form, NULL) == PTX_E_NONE);
        form.tiling[0].tails = 0;
        if (form.tiling[0].variants == 3) form.tiling[0].variants = 1;
        (void)snprintf(kernel, sizeof kernel, "%s_c%u_p%u", form.tiling[0].block->name, desc.columns, desc.precision);
        ptxk__gemm_emit_tiles(m, "gemm.c", &form, kernel);
    }
    if (CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message)
        && sass_assemble(ptx_text(m, NULL), image, sizeof image)) {
        for (j = 0; j < sizeof costs / sizeof *costs; j++) {
            ptxk_gemm_desc desc = {0, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0};
            ptxk_gemm_shape shape = {1, 4096, 0, 0, 0, 132, PTX_SM(90), 0};
            const unsigned char *code;
            ptxk__gemm form;
            ptx_plan plan;
            uint32_t count, loop, first = 0;
            double all[2];
            desc.format = costs[j].format;
            desc.columns = costs[j].columns;
            desc.precision = costs[j].precision;
            desc.factors = is_byte(desc.format) ? PTXK_FACTORS_SQUARE : 0;
            CHECK(ptxk__gemm_form(&desc, PTX_SM(90), &form, NULL) == PTX_E_NONE);
            (void)snprintf(kernel, sizeof kernel, "%s_c%u_p%u", form.tiling[0].block->name, desc.columns,
                           desc.precision);
            code = sass_code(image, kernel, &count);
            if (!code) continue;
            while (count && sass_opcode(code, count - 1) == SASS_NOP) count--;
            loop = sass_inner_loop(code, count, &first);
            for (i = 0; i < 2; i++) { /* blocks take so many steps of the loop, in so many tiles */
                const ptx_launch *l = &plan.launch[1];
                double steps, starts;
                shape.k = k_of[i];
                CHECK(!ptxk_gemm_plan(&desc, &shape, &plan, NULL));
                steps = (shape.n + form.rows - 1) / form.rows * (shape.k / 2.0 / form.tiling[0].format->unit);
                starts = starts_of(&form, &shape, l->grid[0]);
                all[i] = (starts * (count - loop) + steps * loop) * l->block[0] / ((double)shape.n * shape.k);
            }
            printf("note: sm_90: %s: %u instructions, %u in the loop: %.2f for a weight; %.2f in all at 4096 x 14336, "
                   "%.2f at 4096 x 4096\n",
                   kernel, count, loop, loop / (2.0 * form.m * form.tiling[0].format->unit / 2), all[0], all[1]);
            CHECK_MORE(loop > 100 && loop <= costs[j].loop * form.m * form.tiling[0].format->unit, kernel);
            CHECK_MORE(all[0] <= costs[j].all[0] && all[1] <= costs[j].all[1], kernel);
        }
    }
    ptx_module_free(m);
}

/* Many columns, of rows that begin at one of the words of a chunk; others have as many. The loop's instructions for a
 * weight and 128 columns, among them what one thread does for all, and of FAST the scaling of sums, which rows need
 * once or twice; its products of matrices, of which 16 are needed for 128 weights and 128 columns, as many again for
 * the smaller half of x, and of weights that become two numbers. */
static void many_columns(void)
{
    static const struct {
        uint32_t format, precision, columns;
        double loop, products;
    } wide[] = {{PTXK_Q4_K, 0, 128, 8.9, 4.13}, {PTXK_Q4_K, 1, 128, 6.1, 2},   {PTXK_Q4_K, 1, 256, 4.5, 2},
                {PTXK_Q5_K, 0, 128, 9.6, 4.13}, {PTXK_Q5_K, 1, 128, 6.8, 2},   {PTXK_Q6_K, 0, 128, 13.8, 6},
                {PTXK_Q6_K, 1, 128, 7.3, 2},      {PTXK_Q8_0, 0, 128, 16, 6},    {PTXK_Q8_0, 1, 128, 8.4, 2},
                {PTXK_Q4_0, 0, 128, 13.6, 6},   {PTXK_Q4_0, 1, 128, 6.4, 2}};
    static unsigned char image[1 << 20];
    ptx_module_desc module_desc;
    char kernel[60];
    size_t j;
    if (!sass_possible("many_columns")) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(90);
    for (j = 0; j < sizeof wide / sizeof *wide; j++) {
        ptxk_gemm_desc desc = {0, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0};
        ptx_module *m = ptx_module_new(&module_desc);
        const unsigned char *code;
        ptxk__gemm form;
        uint32_t count = 0, i, products, length = 0;
        double weights, loop;
        desc.format = wide[j].format;
        desc.columns = wide[j].columns;
        desc.precision = wide[j].precision;
        CHECK(ptxk__gemm_form(&desc, PTX_SM(90), &form, NULL) == PTX_E_NONE && form.wide == desc.columns);
        form.tiling[0].tails = 0;
        form.tiling[0].variants = 1;
        (void)snprintf(kernel, sizeof kernel, "%s_c%u_p%u", form.tiling[0].block->name, desc.columns, desc.precision);
        ptxk__gemm_emit_tiles(m, "gemm.c", &form, kernel);
        if (CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message)
            && sass_assemble(ptx_text(m, NULL), image, sizeof image) && (code = sass_code(image, kernel, &count))) {
            products = sass_products(code, 0, count - 1);
            for (i = 0; i < count; i++) { /* the shortest loop that has all of them */
                int64_t target = sass_target(code, i);
                if (sass_opcode(code, i) != SASS_BRA || target < 0 || target >= (int64_t)i
                    || sass_products(code, (uint32_t)target, i) < products)
                    continue;
                if (!length || i - (uint32_t)target + 1 < length) length = i - (uint32_t)target + 1;
            }
            weights = form.tiling[0].format->unit * PTXK__WIDE_ROWS / (32.0 * PTXK__WIDE_WARPS) * desc.columns / 128;
            loop = length / weights;
            printf("note: sm_90: %s: %u instructions, %u in the loop: %.2f for a weight and 128 columns, %.2f of them "
                   "products\n",
                   kernel, count, length, loop, products / weights);
            CHECK_MORE(length && loop <= wide[j].loop && products / weights <= wide[j].products, kernel);
        }
        ptx_module_free(m);
    }
}

/* -- traffic -- */

/* Sectors of W and of what else is read, in bytes of W; conflicts; instructions as the CPU driver counts them, of
   PTX. */
static void traffic_at(uint32_t format, uint32_t m, uint32_t k, double most, double instructions)
{
    problem p = problem_new(format, m, 4096, k, 8, 0, 0);
    ptxsim_counters c;
    ptxk__gemm form;
    double w = (double)p.m[0].row_bytes * 4096, x;
    uint32_t tiles, parts;
    p.shape.sm_count = 132;
    p.shape.target = PTX_SM(capability < 90 ? 80 : 90);
    p.row_step = 97;
    problem_run(&p);
    CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
    CHECK(ptxk__gemm_form(&p.desc, p.shape.target, &form, NULL) == PTX_E_NONE);
    tiles = ptxk__ceil_div(4096, form.rows);
    parts = starts_of(&form, &p.shape, p.plan.launch[1].grid[0]);
    /* each tile of rows reads x, two numbers of 2 bytes and sums (or what accumulators begin with, 16 bytes for two
       columns), for its columns; and the sums of its parts */
    x = (double)tiles * m * 4.0 * k;
    x += form.x[0].initial_sums ? (double)tiles * ((m + 1) / 2 * 16) * form.x[0].initial_sums * k / 32
                                : (double)tiles * m * k / 8;
    x += p.plan.zero_bytes ? (double)parts * form.rows * 32 : 0;
    printf("note: %s, %u columns, 4096 x %u, %u blocks, %u parts of %u tiles: W is read %.3f times, x and parts add "
           "%.3f; %.3f thread instructions a weight; bank conflicts %llu of %llu wavefronts\n",
           ptxk_format_name(format), m, k, p.plan.launch[1].grid[0], parts, tiles,
           (32.0 * (double)c.global_load_sectors - x) / w, x / w, (double)c.thread_instructions / 4096 / k,
           (unsigned long long)c.shared_bank_conflicts, (unsigned long long)c.shared_wavefronts);
    CHECK(32.0 * (double)c.global_load_sectors - x <= most * w);
    CHECK((double)c.thread_instructions / 4096 / k <= instructions);
    /* Q8_0: the factors of a row, 34 bytes apart, are in every second bank of those that other rows leave */
    CHECK((double)c.shared_bank_conflicts <= (format == PTXK_Q8_0 ? 0.035 : 0.02) * (double)c.shared_wavefronts);
    problem_free(&p);
}

static void traffic(void)
{
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic: only the CPU driver counts\n");
        return;
    }
    traffic_at(PTXK_Q4_K, 1, 14336, 1.05, 2.6);
    traffic_at(PTXK_Q4_K, 8, 4096, 1.05, 3.1);
    traffic_at(PTXK_Q6_K, 1, 4096, 1.09, 5.3);
    traffic_at(PTXK_Q8_0, 1, 4096, 1.07, 4.3);
    traffic_at(PTXK_Q4_0, 1, 4096, 1.05, 3.7);
}

/* Bank conflicts of tiles of 128 columns, of rows of whole chunks. Q8_0 and Q4_0: threads look at the factors of the
 * other half of a row, one at a time. */
static void wide_conflicts(void)
{
    static const uint32_t some[] = {PTXK_Q4_K, PTXK_Q5_K, PTXK_Q6_K, PTXK_Q8_0, PTXK_Q4_0};
    ptxsim_counters c;
    uint32_t i;
    for (i = 0; i < 5 && cu.ptxsim_counters_get; i++) {
        problem p = problem_new(some[i], 128, 128, 4096, 128, PTXK_GEMM_FAST, 0);
        p.shape.sm_count = 1;
        p.shape.target = PTX_SM(capability < 90 ? 80 : 90);
        p.row_step = p.column_step = 17;
        problem_run(&p);
        CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
        printf("note: %s, 128 columns, fast: bank conflicts %llu of %llu wavefronts\n", ptxk_format_name(some[i]),
               (unsigned long long)c.shared_bank_conflicts, (unsigned long long)c.shared_wavefronts);
        CHECK((double)c.shared_bank_conflicts <= (i < 3 ? 0.005 : 0.03) * (double)c.shared_wavefronts);
        problem_free(&p);
    }
}

/* -- waves -- */

/* How much of the time of all multiprocessors has work: the steps of all tiles, beside 132 times those of the busiest
 * multiprocessor. Less is asked where each has fewer than 6 steps, the smallest part that blocks take. */
static void waves(void)
{
    static const uint32_t shapes[][2] = {{6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336},
                                         {128256, 4096}, {4608, 3584}, {37888, 3584}, {3584, 18944},
                                         {2560, 2048},  {22016, 2048}, {2048, 11008}};
    static const uint32_t columns[] = {1, 8, 64, 128, 512, 2048};
    static const uint32_t some[] = {PTXK_Q4_K, PTXK_Q6_K, PTXK_Q8_0, PTXK_F16};
    uint32_t f, i, j;
    for (f = 0; f < sizeof some / sizeof *some; f++)
        for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            printf("note: waves: %s, %6u x %5u, M 1, 8, 64, 128, 512, 2048:", ptxk_format_name(some[f]), shapes[i][0],
                   shapes[i][1]);
            for (j = 0; j < sizeof columns / sizeof *columns; j++) {
                ptxk_gemm_desc desc = {0, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0};
                ptxk_gemm_shape shape = {0, 0, 0, 0, 0, 132, PTX_SM(90), 0};
                uint32_t n[3] = {0, 0, 0}, units, resident, blocks, b;
                ptxk__gemm form;
                ptx_plan plan;
                double steps, busiest, full;
                desc.format = some[f];
                desc.columns = ptxk_gemm_columns(columns[j]);
                shape.m = columns[j];
                shape.n = n[0] = shapes[i][0];
                shape.k = shapes[i][1];
                CHECK(!ptxk_gemm_plan(&desc, &shape, &plan, NULL)
                      && ptxk__gemm_form(&desc, PTX_SM(90), &form, NULL) == PTX_E_NONE);
                units = ptxk__ceil_div(shape.k, ptxk__gemm_granule(&form));
                steps = (double)ptxk__gemm_row_tiles(&form, n) * (double)ptxk__gemm_column_tiles(&form, shape.m, 0)
                        * units;
                resident = form.wide ? 1 : 233472 / (form.shared_bytes + 1024);
                blocks = plan.launch[1].grid[0];
                busiest = ceil(blocks / 132.0) * ceil(steps / blocks); /* more blocks than run at a time are equal */
                for (b = 0; blocks <= 132 * resident && b < blocks; b += 132) { /* the first multiprocessor's */
                    if (!b) busiest = 0;
                    busiest += floor(steps / blocks) + (b < fmod(steps, blocks));
                }
                full = steps / (132 * busiest);
                printf(" %.2f", full);
                CHECK(full >= 0.9 || (full >= 0.8 && steps < 6 * 132) || steps < 2 * 132);
            }
            printf("\n");
        }
}

/* The largest K. */
static void deepest_rows(void)
{
    problem p = problem_new(PTXK_Q4_K, 1, 3, 1u << 20, 8, PTXK_GEMM_EXACT, 0);
    problem_run(&p);
    problem_free(&p);
}

/* m n k past 2^32, compared in part. */
static void products_past_2_32(void)
{
    problem p = problem_new(PTXK_Q4_K, 1030, 2050, 2304, 256, PTXK_GEMM_FAST, 0);
    p.shape.target = PTX_SM(90);
    p.row_step = 97;
    p.column_step = 101;
    problem_run(&p);
    problem_free(&p);
}

int main(void)
{
    start_random();
    if (!open_driver()) return 1;
    instructions_per_weight();
    many_columns();
    waves();
    traffic();
    wide_conflicts();
    deepest_rows();
    products_past_2_32();
    return check_end();
}
