/* matmul_dense.c - the form of matmul for sm_90a: warpgroups, tensor maps, clusters, parts of k. Every transpose, every
 * tail, against double; the choice of the form.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmultest.h"

static problem dense_problem(uint32_t type, uint32_t out, uint32_t flags, uint32_t m, uint32_t n, uint32_t k)
{
    problem p = problem_new(type, out, flags, m, n, k);
    p.shape.target = PTX_SM_A(90);
    p.shape.aligned = 1;
    p.cluster = 1;
    p.step = m * n < 2000 ? 1 : 13;
    align_rows(&p);
    return p;
}

/* Both tiles, one block and two in a cluster, tails of m, n and k, several tiles of a block, parts of k. */
static void every_transpose(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_BF16}, outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t flags, i;
    for (flags = 0; flags < 8; flags++) {
        for (i = 0; i < 2; i++) {
            problem p = dense_problem(types[random_below(2)], outs[random_below(3)], flags, tile_size(), tile_size(),
                                      1 + random_below(random_below(2) ? 200 : 700));
            p.entry = PTXK__WARPGROUP_WIDE + i % 2;
            p.cluster = 1 + random_below(2);
            p.shape.sm_count = p.cluster * (1 + random_below(8));
            if (random_below(2)) p.beta = (float)random_within(2);
            if (random_below(2)) p.alpha = (float)random_within(3);
            p.desc.activation = random_below(4) ? 0 : random_below(4);
            if (!random_below(4)) p.desc.a_factors = 1 + random_below(2), p.desc.b_factors = 1 + random_below(2);
            problem_run(&p);
        }
    }
}

/* The form is taken where the target has it and tensor maps can describe the matrices. */
static void choice_of_the_form(void)
{
    static const uint64_t bad[] = {8, 2, 4};
    ptxk_matmul_args args;
    ptx_map_values map;
    problem p = dense_problem(PTX_BF16, PTX_BF16, PTXK_MATMUL_TRANS_B, 300, 500, 64);
    uint32_t i;
    p.shape.sm_count = 132;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 4 && p.plan.launch[0].entry >= 2);
    p.shape.aligned = 0;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0 && p.plan.launch[0].entry < 2);
    p.shape.aligned = 1, p.shape.k = 0;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.shape.k = 64, p.shape.m = 0;
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0 && p.plan.launches == 0);
    p.shape.m = 300, p.shape.target = PTX_SM(90);
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    p.shape.target = PTX_SM_A(120);
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 0);
    memset(&args, 0, sizeof args);
    args.a = args.b = args.c = args.d = 4096, args.lda = args.ldb = args.ldc = args.ldd = 64, args.alpha = 1;
    CHECK(ptxk_matmul_aligned(&p.desc, &args) == 1);
    args.c = 0, args.ldc = 3, args.m = args.n = args.k = args.batch = 1;
    CHECK(ptxk_matmul_aligned(&p.desc, &args) == 1);
    p.shape.target = PTX_SM_A(90); /* the map of C, which there is not */
    CHECK(!ptxk_matmul_plan(&p.desc, &p.shape, &p.plan, NULL) && !ptx_map_resolve(&p.plan.map[2], &args, &map));
    args.b_stride = (uint64_t)1 << 39; /* 2^40 bytes */
    CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0 && ptx_map_resolve(&p.plan.map[1], &args, &map));
    args.b_stride = 0;
    for (i = 0; i < 3; i++) {
        args.a += bad[i];
        CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0);
        args.a -= bad[i], args.c = 4096, args.ldc = (uint32_t)(64 + bad[i] / 2);
        CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0);
        args.c = 0, args.b_stride = bad[i] / 2;
        CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0);
        args.b_stride = 0;
    }
    args.alpha = 0;
    CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0);
    p.desc.flags |= PTXK_MATMUL_GROUPED, args.alpha = 1;
    CHECK(ptxk_matmul_aligned(&p.desc, &args) == 0 && ptxk_matmul_aligned(NULL, &args) == 0);
}

/* A beta that is NaN is not 0: C is needed, and D is NaN. */
static void not_a_number(void)
{
    uint32_t aligned, i;
    for (aligned = 0; aligned < 2; aligned++) {
        problem p = dense_problem(PTX_F16, PTX_F32, PTXK_MATMUL_TRANS_B, 9, 20, 40);
        ptxk_matmul_args args;
        ptxk_message why;
        p.shape.aligned = aligned;
        p.beta = (float)NAN;
        problem_fill(&p);
        problem_launch(&p);
        for (i = 0; i < 20; i++) CHECK(isnan(ref_get(p.data[3], REF_F32, p.shift[3] + 8 * p.ld[3] + i)));
        memset(&args, 0, sizeof args);
        args.a = 256, args.b = 1 << 16, args.d = 1 << 20, args.m = args.n = args.k = 8;
        args.lda = args.ldb = args.ldc = args.ldd = 8, args.batch = args.sm_count = 1, args.alpha = 1;
        CHECK(!ptxk_matmul_check(&p.desc, &args, &why));
        args.beta = (float)NAN;
        CHECK(ptxk_matmul_check(&p.desc, &args, &why) == PTX_E_ARGUMENT && !strcmp(why.text, "matmul: c is 0"));
        args.beta = 0, args.alpha = (float)NAN, args.a = 0;
        CHECK(ptxk_matmul_check(&p.desc, &args, &why) == PTX_E_ARGUMENT && !strcmp(why.text, "matmul: a is 0"));
        problem_free(&p);
    }
}

/* 8-bit types with factors of every kind, and tf32: k along the rows. */
static void other_types(void)
{
    static const uint32_t types[] = {PTX_E4M3, PTX_E5M2, PTX_S8, PTX_F32}, outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t t, i;
    for (t = 0; t < 4; t++) {
        for (i = 0; i < 6; i++) {
            problem p = dense_problem(types[t], outs[random_below(3)],
                                      PTXK_MATMUL_TRANS_B | (random_below(2) ? PTXK_MATMUL_BIAS : 0u), tile_size(),
                                      tile_size(), 1 + random_below(random_below(2) ? 300 : 1100));
            if (t < 2 && random_below(2)) p.desc.b_type = types[1 - t];
            if (t == 3) p.desc.precision = PTXK_MATMUL_FAST;
            p.desc.a_factors = t == 3 ? random_below(3) : i < 2 ? 0 : i < 4 ? 3 : random_below(5);
            p.desc.b_factors = t == 3 ? random_below(3) : i < 2 ? 0 : i < 4 ? 3 + i % 2 : random_below(5);
            p.entry = PTXK__WARPGROUP_WIDE + (t >= 2 && p.desc.a_factors < 3 && p.desc.b_factors < 3 ? i % 2 : 0);
            p.cluster = 1 + random_below(2);
            p.shape.sm_count = p.cluster * (1 + random_below(8));
            if (random_below(2)) p.beta = (float)random_within(2);
            p.alpha = p.desc.out_type == PTX_F16 ? 1e-3f : (float)(0.5 + random_within(0.4));
            align_rows(&p);
            problem_run(&p);
            CHECK(p.plan.maps == 4);
        }
    }
}

/* Products that the batch shares or that lie apart; C in D's place. */
static void batches(void)
{
    uint32_t i;
    for (i = 0; i < 6; i++) {
        problem p = dense_problem(i & 1 ? PTX_BF16 : PTX_F16, i & 1 ? PTX_F32 : PTX_BF16, random_below(8),
                                  tile_size() / 2 + 1, tile_size() / 2 + 1, 1 + random_below(200));
        p.shape.batch = 1 + random_below(4);
        p.pack = i % 3;
        p.beta = i & 2 ? 0.5f : 0;
        p.in_place = (i & 6) == 2;
        align_rows(&p);
        if (p.in_place) p.pad[2] = p.pad[3], p.shift[2] = p.shift[3];
        p.entry = PTXK__WARPGROUP_WIDE + i % 2;
        p.cluster = 1 + random_below(2);
        p.shape.sm_count = p.cluster * (1 + random_below(8));
        problem_run(&p);
    }
}

/* Parts of k: the workspace serves launch after launch, and the order in which blocks finish changes no bit. */
static void parts_again_and_again(void)
{
    uint32_t i;
    for (i = 0; i < 2; i++) {
        problem p = dense_problem(PTX_F16, PTX_F32, i, 130, 200, 1000);
        ptxk_matmul_args args;
        unsigned char *first = NULL;
        int turn;
        p.entry = PTXK__WARPGROUP_WIDE + i, p.cluster = 2 - i, p.shape.sm_count = 8;
        problem_fill(&p);
        for (turn = 0; turn < 2; turn++) {
            problem_upload(&p, &args);
            problem_plan(&p);
            CHECK(parts_of(&p) > 1);
            if (cu.ptxsim_set) cu.ptxsim_set("seed", turn);
            run_kernel(&p.desc, p.shape.target, &p.plan, &args, 1 + (uint32_t)turn);
            problem_download(&p);
            if (!turn) first = (unsigned char *)malloc(all_bytes(&p, 3)), memcpy(first, p.data[3], all_bytes(&p, 3));
            CHECK(!memcmp(first, p.data[3], all_bytes(&p, 3)));
        }
        if (cu.ptxsim_set) cu.ptxsim_set("seed", 0);
        problem_compare(&p);
        problem_free(&p);
        free(first);
    }
}

/* Tensor cores multiply what is needed, and accesses of shared memory use all banks. */
static void work_and_conflicts(void)
{
    static const uint32_t outs[] = {PTX_F32, PTX_BF16};
    ptxsim_counters c;
    uint32_t i;
    if (!cu.ptxsim_counters_get) return;
    for (i = 0; i < 4; i++) {
        problem p = dense_problem(PTX_BF16, outs[i % 2], PTXK_MATMUL_TRANS_B, 256, 512, 192);
        p.entry = PTXK__WARPGROUP_WIDE + i / 2, p.cluster = 2, p.shape.sm_count = 4;
        p.beta = 0.5f;
        problem_run(&p);
        CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
        CHECK(c.tensor_operations == 2u * 256 * 512 * 192);
        CHECK(c.shared_wavefronts && c.shared_bank_conflicts * 50 < c.shared_wavefronts);
        printf("note: %s, entry %u: %llu of %llu wavefronts of shared memory are bank conflicts\n",
               ptx_type_name((ptx_type)outs[i % 2]), p.entry, (unsigned long long)c.shared_bank_conflicts,
               (unsigned long long)c.shared_wavefronts);
    }
}

int main(void)
{
    start_random();
    if (!open_driver()) return 1;
    if (capability != 90) {
        puts("SKIP: the device is not of 9.0");
        return check_end();
    }
    choice_of_the_form();
    every_transpose();
    other_types();
    batches();
    not_a_number();
    work_and_conflicts();
    parts_again_and_again();
    printf("note: worst error %.3f of its bound\n", most_of_bound);
    return check_end();
}
