/* gemm_groups.c - gemm with groups, such as the experts of a mixture: sizes and rows from device memory, against
 * double, by the bounds of tests/gemmtest.h; what is read of the weights. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"

/* m rows of y in `groups` groups; gap: bytes between their weights. x_count: rows of x, of which each row of y
 * multiplies any; 0: its own. */
static problem grouped(uint32_t format, uint32_t m, uint32_t groups, uint32_t n, uint32_t k, uint32_t columns,
                       uint32_t precision, uint32_t flags, uint32_t x_count, size_t gap)
{
    ptxk_gemm_desc desc;
    ptxk_gemm_shape shape;
    problem p;
    uint32_t i;
    describe(&desc, &shape, format, m > x_count ? m : x_count, n, k, columns, precision, flags | PTXK_GEMM_GROUPED);
    shape.groups = groups; /* m: for as many rows of x */
    p = problem_of_groups(&desc, &shape, 0.02, gap);
    p.shape.m = m;
    p.x_count = x_count;
    p.offsets = (uint32_t *)malloc((groups + 1) * sizeof *p.offsets);
    for (i = 0; i <= groups; i++) { /* some empty, any order of sizes */
        uint32_t left = m - (i ? p.offsets[i - 1] : 0);
        p.offsets[i] = i ? p.offsets[i - 1] + (random_below(3) ? random_below(left + 1) : 0) : random_below(2);
        if (random_below(4) == 0 && i > 1) p.offsets[i] = p.offsets[i - 1];
    }
    if (random_below(2)) p.offsets[groups] = m;
    if (x_count) {
        p.x_rows = (uint32_t *)malloc(m * sizeof *p.x_rows);
        for (i = 0; i < m; i++) p.x_rows[i] = random_below(x_count);
        if (random_below(2)) p.x_rows[random_below(m)] = x_count + random_below(5); /* counts as zeros */
    }
    return p;
}

static void run(problem p)
{
    problem_run(&p);
    problem_free(&p);
}

static void every_format_and_column(void)
{
    uint32_t f, c;
    for (f = 0; f < FORMATS + 3; f++)
        for (c = 8; c <= 64; c *= 2)
            run(grouped(f < FORMATS ? formats[f].format : byte_formats[f - FORMATS], 1 + random_below(3 * c),
                        1 + random_below(70), 8 * (1 + random_below(12)), 256, c, random_below(2), 0,
                        random_below(2) ? 1 + random_below(9) : 0, 16 * random_below(3)));
}

static void every_flag(void)
{
    uint32_t flags;
    for (flags = 0; flags < 64; flags += 1 + random_below(2)) {
        if ((flags & 48) == 48) continue;
        run(grouped(any_format(), 1 + random_below(20), 1 + random_below(9), 16, 512,
                    8u << random_below(6), random_below(2),
                    flags & 48 && random_below(2) ? (flags & 15) | PTXK_GEMM_CLAMPED : flags,
                    random_below(2) ? 1 + random_below(5) : 0, 0));
    }
}

/* One token of a mixture: 4 of 32 experts. Only their weights are read. */
static void few_of_many(void)
{
    ptxsim_counters c;
    uint32_t i;
    problem p = grouped(PTXK_Q4_K, 4, 32, 512, 512, 8, 0, PTXK_GEMM_SWIGLU, 1, 0);
    for (i = 0; i <= 32; i++) p.offsets[i] = i < 3 ? 0 : i < 4 ? 1 : i < 17 ? 2 : i < 18 ? 3 : 4;
    for (i = 0; i < 4; i++) p.x_rows[i] = 0;
    problem_run(&p);
    if (!cu.ptxsim_counters_get) {
        printf("SKIP few_of_many: only the CPU driver counts\n");
    } else {
        double read, all = 2.0 * 4 * 512 * (double)p.m[0].row_bytes;
        CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
        read = 32.0 * (double)c.global_load_sectors;
        printf("note: 4 of 32 groups: %.0f bytes read, %.0f of weights of these groups\n", read, all);
        CHECK(read >= all && read <= 1.6 * all); /* x for each tile of rows, and slices */
    }
    problem_free(&p);
}

static void refused(void)
{
    ptxk_gemm_desc desc = {PTXK_Q8_0, PTX_F32, PTX_F32, 8, 0, PTXK_GEMM_GROUPED, 0, 0, 0};
    ptxk_gemm_shape shape = {4, 16, 256, 0, 0, 1, PTX_SM(80), 0};
    ptxk_gemm_args args;
    ptxk_message why;
    ptx_plan plan;
    CHECK(ptxk_gemm_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "groups is 0, must be 1 to 65536"), why.text);
    shape.groups = shape.m = 65536;
    CHECK(ptxk_gemm_plan(&desc, &shape, &plan, &why) == PTX_E_NONE);
    shape.m = 4;
    shape.groups = 3;
    CHECK(ptxk_gemm_plan(&desc, &shape, &plan, &why) == PTX_E_NONE);
    memset(&args, 0, sizeof args);
    args.matrix[0].weights = 0x10000;
    args.matrix[0].y = 0x20000;
    args.matrix[0].n = 16;
    args.x = 0x30000;
    args.workspace = 0x40000;
    args.m = 4;
    args.k = 256;
    args.groups = 3;
    args.offsets = 0x80000;
    CHECK_MORE(ptxk_gemm_check(&desc, &args, &why) == PTX_E_NONE, why.text);
#define BAD(change, undo, says)                                                                                       \
    change;                                                                                                           \
    CHECK(ptxk_gemm_check(&desc, &args, &why) == PTX_E_ARGUMENT);                                                     \
    CHECK_MORE(strstr(why.text, says), why.text);                                                                     \
    undo
    BAD(args.groups = 0, args.groups = 3, "groups is 0");
    BAD(args.offsets = 0, args.offsets = 0x80000, "offsets");
    BAD(args.offsets = 0x80002, args.offsets = 0x80000, "offsets");
    BAD(args.offsets = 0x20000, args.offsets = 0x80000, "offsets");
    BAD(args.x_rows = 0x90001, args.x_rows = 0, "x_rows");
    BAD(args.group_stride[0] = 4360, args.group_stride[0] = 0, "group_stride[0] is 4360");
    BAD(args.matrix[0].n = 15; args.k = 32, args.matrix[0].n = 16, "groups must be a multiple of 16");
}

int main(void)
{
    start_random();
    if (!open_driver()) return 1;
    every_format_and_column();
    every_flag();
    few_of_many();
    refused();
    printf("note: largest error: %.3f of the bound\n", most_of_bound);
    return check_end();
}
