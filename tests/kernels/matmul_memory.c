/* matmul_memory.c - the form of matmul for sm_100a: tensor memory, one block and pairs of blocks, parts of k. Every
 * transpose, every tail, against double; the choice of the form.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmultest.h"

static problem memory_problem(uint32_t type, uint32_t out, uint32_t flags, uint32_t m, uint32_t n, uint32_t k)
{
    problem p = problem_new(type, out, flags, m, n, k);
    p.shape.target = PTX_SM_A(100);
    p.shape.aligned = 1;
    p.entry = PTXK__TENSOR_ONE + random_below(2);
    p.cluster = p.entry - PTXK__TENSOR_ONE + 1;
    p.shape.sm_count = p.cluster * (1 + random_below(4));
    align_rows(&p);
    return p;
}

/* One block and pairs, tails of m, n and k, several tiles of a block, parts of k, all that is done to results. */
static void every_transpose(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_E4M3, PTX_E5M2, PTX_S8},
                          outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t flags, i;
    for (flags = 0; flags < 8; flags++) {
        for (i = flags % 3; i < 5; i += 3) {
            problem p = memory_problem(types[i], outs[random_below(3)], flags, tile_size(), tile_size(),
                                       1 + random_below(random_below(2) ? 200 : 700));
            if (random_below(2)) p.beta = (float)random_within(2);
            if (random_below(2)) p.alpha = (float)random_within(3);
            p.desc.activation = random_below(4) ? 0 : random_below(4);
            if (!random_below(3)) p.desc.a_factors = random_below(3), p.desc.b_factors = random_below(3);
            if (types[i] == PTX_E4M3 && random_below(2)) p.desc.b_type = PTX_E5M2;
            if (random_below(4) == 0 && p.shape.m * p.shape.n < 30000) p.shape.batch = 2 + random_below(2);
            problem_run(&p);
        }
    }
}

/* Factors that differ along k, one for 128: of rows and columns, of squares, beside those of a tensor. */
static void factors_along_k(void)
{
    static const uint32_t kinds[][2] = {{3, 4}, {3, 3}, {4, 4}, {4, 3}, {3, 1}, {0, 4}, {2, 3}, {4, 2}},
                          types[] = {PTX_E4M3, PTX_E5M2, PTX_S8}, outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t i;
    for (i = 0; i < 8; i++) {
        problem p = memory_problem(types[i % 3], outs[random_below(3)],
                                   i < 5 ? (uint32_t)PTXK_MATMUL_TRANS_B : random_below(8), tile_size(), tile_size(),
                                   1 + random_below(random_below(2) ? 300 : 1500));
        p.desc.a_factors = kinds[i][0], p.desc.b_factors = kinds[i][1];
        if (!(p.desc.flags & PTXK_MATMUL_TRANS_B)) p.entry = PTXK__TENSOR_ONE, p.cluster = 1; /* no pairs */
        if (i % 2) p.beta = (float)random_within(2);
        if (random_below(2)) p.alpha = (float)random_within(3);
        if (i == 3) p.shape.batch = 2;
        problem_run(&p);
    }
}

/* Few tiles, whose k is divided among the multiprocessors. */
static void parts_of_k(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_E5M2};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        problem p = memory_problem(types[i / 2], i % 2 ? PTX_F32 : PTX_F16, i, 100 + random_below(200),
                                   100 + random_below(200), (12 + random_below(16)) * (i / 2 ? 128 : 64) + 10);
        p.entry = PTXK__TENSOR_ONE + i % 2;
        p.cluster = 1 + i % 2;
        p.shape.sm_count = p.cluster * (4 + random_below(9));
        p.step = 13;
        if (i == 1) p.beta = 2;
        if (i == 3) p.desc.a_factors = PTXK_FACTORS_BLOCK, p.desc.b_factors = PTXK_FACTORS_SQUARE;
        problem_run(&p);
        CHECK(parts_of(&p) > 1 || p.plan.workspace_bytes == 0);
    }
}

/* Sums over a long k, and the plan's own choice. */
static void long_sums(void)
{
    static const uint32_t types[] = {PTX_BF16, PTX_E4M3, PTX_S8};
    uint32_t i;
    for (i = 0; i < 3; i++) {
        problem p = memory_problem(types[i], PTX_F32, PTXK_MATMUL_TRANS_B, 150, 100, 2000 + random_below(1000));
        p.entry = 0;
        p.step = 31;
        problem_run(&p);
    }
}

/* The form is taken where the target has it and tensor maps can describe the matrices; pairs where they pay. */
static void choice_of_the_form(void)
{
    problem p = memory_problem(PTX_BF16, PTX_BF16, PTXK_MATMUL_TRANS_B, 8192, 8192, 8192);
    p.shape.sm_count = 148;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 4);
    CHECK(p.plan.launch[0].entry == PTXK__TENSOR_PAIR && p.plan.launch[0].cluster[0] == 2);
    CHECK(p.plan.launch[0].grid[0] == 148 && p.plan.launch[0].block[0] == 256);
    p.shape.m = 128;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.launch[0].entry == PTXK__TENSOR_ONE);
    p.shape.target = PTX_SM_A(103);
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 4);
    p.desc.a_type = p.desc.b_type = PTX_S8;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.shape.target = PTX_SM_A(100);
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 4);
    p.shape.k = 131072;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.desc.a_factors = PTXK_FACTORS_BLOCK;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 4);
    p.shape.m = 8192;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.launch[0].entry == PTXK__TENSOR_PAIR);
    p.desc.flags = 0; /* B as it is: one block */
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.launch[0].entry == PTXK__TENSOR_ONE);
    p.desc.flags = PTXK_MATMUL_TRANS_B, p.shape.m = p.shape.k = 128;
    p.desc.a_factors = 0, p.desc.a_type = p.desc.b_type = PTX_F32;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.desc.a_type = p.desc.b_type = PTX_F16, p.shape.aligned = 0;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.shape.aligned = 1, p.shape.target = PTX_SM(100);
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
}

/* A plan without a workspace needs none, whatever other targets need for such arguments. */
static void no_workspace(void)
{
    problem p = memory_problem(PTX_BF16, PTX_BF16, PTXK_MATMUL_TRANS_B, 755, 3200, 7464);
    ptxk_matmul_args args;
    ptxk_message why;
    memset(&args, 0, sizeof args);
    args.a = (uint64_t)1 << 32, args.b = (uint64_t)2 << 32, args.d = (uint64_t)3 << 32;
    args.m = 755, args.n = 3200, args.k = 7464, args.batch = 1, args.sm_count = p.shape.sm_count = 132;
    args.lda = args.ldb = 7464, args.ldd = 3200, args.alpha = 1;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.workspace_bytes == 0);
    CHECK_MORE(!ptxk_matmul_check(&p.desc, &args, &why), why.text);
}

int main(void)
{
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    start_random();
    if (!open_driver()) return 1;
    if (capability != 100) {
        puts("SKIP: the device is not of 10.0");
        return check_end();
    }
    choice_of_the_form();
    no_workspace();
    every_transpose();
    factors_along_k();
    parts_of_k();
    long_sums();
    printf("note: worst error %.3f of its bound\n", most_of_bound);
    return check_end();
}
