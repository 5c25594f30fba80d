/* matmul.c - dense matrix products: shapes, types, transposes, factors and epilogues against double, with bounds
 * derived from the arithmetic of the chips (tests/reference/matmul.h).
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmultest.h"
#include "../sass.h"

static const uint32_t sizes[] = {1, 2, 7, 63, 64, 65, 97, 127, 128, 129, 131, 193, 256};

static uint32_t any_size(uint32_t most)
{
    uint32_t x = sizes[random_below(sizeof sizes / sizeof *sizes)];
    return x < most ? x : most;
}

/* All transposes, with aligned rows and others, both tiles, k in parts. */
static void every_type_and_transpose(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32, PTX_E4M3, PTX_S8},
                          outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t t, flags, i;
    for (t = 0; t < 5; t++) {
        for (flags = 0; flags < 8; flags++) {
            for (i = 0; i < 4; i++) {
                problem p = problem_new(types[t], outs[random_below(3)], flags, any_size(300), any_size(300),
                                        random_below(300));
                if (t == 2) p.desc.precision = random_below(2);
                if (i & 1) { /* leading dimensions in multiples of 16 bytes: the fast path */
                    uint32_t per = 16 / ptxk__matmul_bytes(types[t]);
                    uint32_t a = flags & 1 ? p.shape.m : p.shape.k, b = flags & 2 ? p.shape.k : p.shape.n;
                    p.pad[0] = (per - a % per) % per;
                    p.pad[1] = (per - b % per) % per;
                } else if (random_below(2)) {
                    p.pad[0] = random_below(5), p.pad[1] = random_below(5);
                    p.shift[0] = random_below(3), p.shift[1] = random_below(3);
                }
                if (random_below(2)) p.pad[2] = random_below(5), p.pad[3] = random_below(5);
                if (!random_below(3)) p.shift[2] = random_below(5), p.shift[3] = random_below(5);
                if (random_below(2)) p.beta = (float)random_within(2);
                if (random_below(2)) p.alpha = (float)random_within(3);
                p.tile = (int)(i / 2);
                p.parts = random_below(3) ? 1 : (int)(1 + random_below(4));
                p.desc.activation = random_below(8) ? 0 : random_below(4);
                if (types[t] == PTX_S8 && p.desc.out_type == PTX_F16) p.alpha = 1e-3f;
                problem_run(&p);
            }
        }
    }
}

/* Sizes 0 too; products that the batch shares or that lie apart; C in D's place. */
static void batches(void)
{
    uint32_t i;
    for (i = 0; i < 10; i++) {
        problem p = problem_new(i & 1 ? PTX_BF16 : PTX_F16, PTX_F32, random_below(8), any_size(140), any_size(140),
                                random_below(100));
        if (i > 7) p.shape.m = 0;
        if (i == 6) p.shape.k = 0;
        p.shape.batch = 1 + random_below(4);
        p.pack = i % 3;
        p.beta = i & 2 ? 0.5f : 0;
        p.in_place = (i & 6) == 2;
        p.tile = (int)(i & 1);
        p.parts = (int)(1 + random_below(3));
        problem_run(&p);
    }
}

static void factors_of_every_kind(void)
{
    static const uint32_t types[] = {PTX_E4M3, PTX_S8, PTX_E5M2};
    uint32_t a, b, i = 0;
    for (a = 0; a < 5; a++) {
        for (b = 0; b < 5; b++, i++) {
            problem p = problem_new(types[i % 3], PTX_F32, i & 8 ? 0 : PTXK_MATMUL_TRANS_B, any_size(200),
                                    any_size(200), 16 * random_below(40) + (i & 4 ? 5 : 0));
            if (p.desc.a_type == PTX_E5M2 && i & 1) p.desc.b_type = PTX_E4M3;
            p.desc.a_factors = a, p.desc.b_factors = b;
            p.tile = (int)(i & 1);
            p.parts = (int)(1 + random_below(3));
            p.shape.batch = 1 + random_below(2);
            problem_run(&p);
        }
    }
    for (i = 0; i < 4; i++) {
        problem p = problem_new(i & 1 ? PTX_F16 : PTX_F32, PTX_F32, 0, any_size(140), any_size(140), 100);
        p.desc.a_factors = random_below(3), p.desc.b_factors = random_below(3);
        problem_run(&p);
    }
}

/* Groups of all sizes, some of them empty, with fewer tiles than blocks and with more. */
static void groups(void)
{
    enum { GROUPS = 9 };
    static const uint32_t types[] = {PTX_F16, PTX_E4M3, PTX_F32, PTX_S8};
    uint32_t i, round;
    for (round = 0; round < 6; round++) {
        problem p[GROUPS];
        ptxk_matmul_group list[GROUPS];
        ptxk_matmul_args args, one_args;
        ptxk_matmul_desc desc;
        ptx_plan plan;
        ptxk_matmul_shape shape;
        ptxk_message why;
        device_ptr memory;
        uint32_t flags = random_below(8), out = random_below(2) ? PTX_F32 : PTX_BF16;
        memset(&args, 0, sizeof args);
        for (i = 0; i < GROUPS; i++) {
            p[i] = problem_new(types[round % 4], out, flags, any_size(200), any_size(200), random_below(200));
            if (i) p[i].shape.target = p[0].shape.target;
            if (i == 3) p[i].shape.m = 0;
            if (i == 5) p[i].shape.k = 0;
            p[i].desc.a_factors = p[i].desc.b_factors = round == 1 ? PTXK_FACTORS_BLOCK : PTXK_FACTORS_NONE;
            p[i].alpha = 0.5f, p[i].beta = round & 1 ? 2.0f : 0.0f;
            p[i].pad[0] = random_below(3), p[i].pad[1] = random_below(3);
            if (i & 1) { /* aligned */
                uint32_t per = 16 / ptxk__matmul_bytes(types[round % 4]);
                p[i].pad[0] = (per - (flags & 1 ? p[i].shape.m : p[i].shape.k) % per) % per;
                p[i].pad[1] = (per - (flags & 2 ? p[i].shape.k : p[i].shape.n) % per) % per;
            }
            problem_fill(&p[i]);
            problem_upload(&p[i], &one_args);
            memcpy(&list[i], &one_args, sizeof list[i]);
            list[i].reserved = 0;
        }
        desc = p[0].desc;
        desc.flags |= PTXK_MATMUL_GROUPED;
        shape = p[1].shape;
        shape.batch = args.batch = GROUPS;
        shape.sm_count = round & 1 ? 2 : 20;
        CHECK_MORE(!ptxk_matmul_plan(&desc, &shape, &plan, &why), why.text);
        if (round & 2) {
            ptxk__matmul f;
            CHECK(!ptxk__matmul_form(&desc, shape.target, &f, NULL));
            ptxk__matmul_lay_out(&f, &shape, 1 - plan.launch[0].entry, 1, &plan);
        }
        args.groups = memory = upload(list, sizeof list);
        args.alpha = p[0].alpha, args.beta = p[0].beta, args.sm_count = shape.sm_count;
        run_kernel(&desc, shape.target, &plan, &args, 1);
        for (i = 0; i < GROUPS; i++) {
            problem_download(&p[i]);
            problem_compare(&p[i]);
            problem_free(&p[i]);
        }
        cu.cuMemFree(memory);
    }
}

/* The most products that an s32 sum takes, and one more promotion; sums of 13 bits would show. */
static void long_k(void)
{
    static const uint32_t types[] = {PTX_S8, PTX_E4M3, PTX_F16, PTX_F32};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        problem p = problem_new(types[i], PTX_F32, PTXK_MATMUL_TRANS_B, 5, 7, i ? 9000 : 150001);
        size_t x;
        p.tile = 1, p.parts = 1;
        p.shape.target = PTX_SM(capability >= 89 ? 89 : capability);
        p.pad[0] = p.pad[1] = 16 - p.shape.k % 16;
        problem_fill(&p);
        if (i == 0)
            for (x = 0; x < p.elements[0]; x++) p.data[0][x] = p.data[1][x % p.elements[1]] = 0x80; /* -128 */
        problem_launch(&p);
        problem_compare(&p);
        problem_free(&p);
    }
}

/* Puts a value at element i of the first factor, and says what the row must be. */
static void specials(void)
{
    static const float values[] = {INFINITY, NAN, 65504, -INFINITY};
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32, PTX_F32, PTX_E5M2};
    uint32_t t, v;
    size_t i, j;
    for (t = 0; t < 5; t++) {
        for (v = 0; v < 4; v++) {
            problem p = problem_new(types[t], PTX_F32, PTXK_MATMUL_TRANS_B, 70, 66, 64 + 8 * t);
            int type = number_of(types[t]);
            uint32_t bad = random_below(70), at = random_below(p.shape.k);
            p.desc.precision = t == 3;
            problem_fill(&p);
            for (i = 0; i < p.elements[1]; i++)
                if (type == REF_E5M2) p.data[1][i] = 0x3c;
                else ref_put(p.data[1], (enum ref_format)type, i, 1);
            for (i = 0; type == REF_E5M2 && i < p.elements[0]; i++) p.data[0][i] &= 0xbf; /* below 2 */
            if (type == REF_E5M2)
                p.data[0][bad * p.shape.k + at] = v == 0 ? 0x7c : v == 1 ? 0x7e : v == 2 ? 0x7b : 0xfc;
            else
                ref_put(p.data[0], (enum ref_format)type, bad * p.shape.k + at, (double)values[v]);
            problem_launch(&p);
            for (i = 0; i < 70; i++) {
                for (j = 0; j < 66; j++) {
                    float x = ((float *)p.data[3])[i * 66 + j];
                    if (i != bad) CHECK(x - x == 0 && fabsf(x) < 200);
                    else if (v == 1) CHECK(isnan(x));
                    else if (v == 2) CHECK(x > 57000 && x < 66000);
                    else CHECK(isinf(x) && (x > 0) == (v == 0));
                }
            }
            problem_free(&p);
        }
    }
}

/* Beta 0 does not read C, alpha 0 neither A nor B: not even NaN there matters. */
static void nothing_needless_is_read(void)
{
    uint32_t i;
    size_t x;
    for (i = 0; i < 3; i++) {
        problem p = problem_new(PTX_F16, PTX_F16, 0, 100, 72, 64);
        if (i != 1) p.alpha = 0;
        if (i == 2) p.beta = 1.5f;
        problem_fill(&p);
        if (p.alpha == 0)
            for (x = 0; x < p.elements[0]; x++) ref_put(p.data[0], REF_F16, x, (double)NAN);
        problem_launch(&p);
        problem_compare(&p);
        problem_free(&p);
    }
}

static void the_same_bits_in_every_run(void)
{
    problem p = problem_new(PTX_F16, PTX_F32, PTXK_MATMUL_TRANS_B, 150, 90, 1000);
    float *first;
    uint32_t i;
    p.tile = 1, p.parts = 4;
    problem_fill(&p);
    problem_launch(&p);
    first = (float *)malloc(all_bytes(&p, 3));
    memcpy(first, p.data[3], all_bytes(&p, 3));
    for (i = 0; i < 3; i++) {
        problem_launch(&p);
        CHECK(!memcmp(first, p.data[3], all_bytes(&p, 3)));
    }
    problem_compare(&p);
    free(first);
    problem_free(&p);
}

/* The workspace is as it was: three launches one after the other. */
static void parts_leave_their_counters_zero(void)
{
    problem p = problem_new(PTX_BF16, PTX_F32, 0, 100, 200, 500);
    ptxk_matmul_args args;
    p.tile = 0, p.parts = 3;
    problem_fill(&p);
    problem_plan(&p);
    problem_upload(&p, &args);
    run_kernel(&p.desc, p.shape.target, &p.plan, &args, 3);
    problem_download(&p);
    problem_compare(&p);
    problem_free(&p);
}

/* Rows 2^31 and more elements apart, in sparse memory. */
static void addresses_past_2_32(void)
{
    enum { M = 3, N = 65, K = 40 };
    const uint32_t ld = 0x90000000u;
    ptxk_matmul_desc desc;
    ptxk_matmul_shape shape;
    ptxk_matmul_args args;
    ptxk_message why;
    ptx_plan plan;
    uint16_t a[M][K], b[N][K];
    float d[N];
    uint32_t i, j, x, side;
    if (!cu.ptxsim_report) {
        printf("SKIP addresses_past_2_32: needs the CPU driver's sparse memory\n");
        return;
    }
    for (side = 0; side < 2; side++) { /* the second time through elements: not aligned */
        device_ptr memory[3];
        memset(&desc, 0, sizeof desc);
        memset(&shape, 0, sizeof shape);
        memset(&args, 0, sizeof args);
        desc.a_type = desc.b_type = PTX_F16, desc.out_type = PTX_F32, desc.flags = PTXK_MATMUL_TRANS_B;
        shape.m = M, shape.n = N, shape.k = K, shape.batch = 1, shape.sm_count = 4;
        shape.target = PTX_SM(capability >= 80 ? 80 : 75);
        CHECK_MORE(!ptxk_matmul_plan(&desc, &shape, &plan, &why), why.text);
        CHECK(cu.cuMemAlloc(&memory[0], ((size_t)ld * (M - 1) + K + 8) * 2) == 0);
        CHECK(cu.cuMemAlloc(&memory[2], ((size_t)ld * (M - 1) + N) * 4) == 0);
        for (i = 0; i < N; i++)
            for (x = 0; x < K; x++) {
                b[i][x] = ref_to_f16(random_within(1));
                if (i < M) a[i][x] = ref_to_f16(random_within(1));
            }
        args.a = memory[0] + 2 * side, args.d = memory[2], args.lda = args.ldd = ld, args.ldb = K, args.alpha = 1;
        for (i = 0; i < M; i++) CHECK(cu.cuMemcpyHtoD(args.a + (uint64_t)ld * i * 2, a[i], sizeof a[i]) == 0);
        args.b = memory[1] = upload(b, sizeof b);
        args.m = M, args.n = N, args.k = K, args.batch = 1, args.sm_count = shape.sm_count;
        run_kernel(&desc, shape.target, &plan, &args, 1);
        for (i = 0; i < M; i++) {
            CHECK(cu.cuMemcpyDtoH(d, args.d + (uint64_t)ld * i * 4, sizeof d) == 0);
            for (j = 0; j < N; j++) {
                double want = 0;
                for (x = 0; x < K; x++) want += ref_from_f16(a[i][x]) * ref_from_f16(b[j][x]);
                CHECK(fabs((double)d[j] - want) < 1e-4);
            }
        }
        for (i = 0; i < 3; i++) cu.cuMemFree(memory[i]);
    }
}

/* -- what the CPU driver and the assembler count -- */

/* At multiples of the tile no product is computed twice; shared memory has next to no bank conflicts. Sectors: a
   tile reads its rows and columns once. */
static void work_and_conflicts(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_F32, PTX_F32, PTX_E4M3};
    uint32_t t, flags, tile;
    if (!cu.ptxsim_counters_get || capability < 80) {
        printf("SKIP work_and_conflicts: only the CPU driver counts, from sm_80 on\n");
        return;
    }
    for (t = 0; t < 4; t++) {
        for (flags = 0; flags < 4; flags++) {
            for (tile = 0; tile < 2; tile++) {
                problem p = problem_new(types[t], PTX_F16, flags, 256, 256, 256);
                ptxsim_counters c;
                char what[200];
                double products, conflicts, sectors, needed = 2.0 * 256 * 256 * 256 * (t == 2 ? 3 : 1);
                if (t == 3 && (flags != 2 || capability < 89)) continue; /* others are copied by elements */
                p.desc.precision = t == 1;
                p.shape.target = PTX_SM(t == 3 ? 89 : 80);
                p.tile = (int)tile, p.parts = 1;
                p.size = 0.1;
                p.step = 37;
                problem_run(&p);
                CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
                products = (double)c.tensor_operations / needed;
                conflicts = (double)c.shared_bank_conflicts / (double)c.shared_wavefronts;
                sectors = 32.0 * (double)(c.global_load_sectors + c.global_store_sectors)
                          / ((tile ? 4 : 2) * 2.0 * 256 * 256 * ptxk__matmul_bytes(types[t]) + 2.0 * 256 * 256);
                (void)snprintf(what, sizeof what,
                               "%s, flags %u, precision %u, tile %u: %.3f of the products needed, %.4f of the "
                               "wavefronts are conflicts, %.3f of the sectors",
                               ptx_type_name((ptx_type)types[t]), flags, p.desc.precision, tile ? 64 : 128, products,
                               conflicts, sectors);
                printf("note: %s\n", what);
                CHECK_MORE(products >= 1 && products <= 1.07, what);
                CHECK_MORE(conflicts < 0.02, what);
                CHECK_MORE(sectors <= 1.05, what);
            }
        }
    }
}

/* Machine instructions in the loop for one that multiplies matrices. At most 1.6 keep the tensor cores busy; with
   both of k across in memory the addresses take more. */
static void instructions_per_product(void)
{
    static const double most[] = {1.6, 1.64, 1.6, 1.6};
    static unsigned char image[1 << 20];
    uint32_t flags, count, first = 0, loop, products;
    if (!sass_possible("instructions_per_product")) return;
    for (flags = 0; flags < 4; flags++) {
        ptxk_matmul_desc desc = {PTX_F16, PTX_F16, PTX_F16, 0, 0, 0, 0, 0};
        ptx_module_desc module_desc;
        ptx_module *m;
        ptx_entry_info info;
        const unsigned char *code;
        memset(&module_desc, 0, sizeof module_desc);
        module_desc.target = PTX_SM(90);
        m = ptx_module_new(&module_desc);
        desc.flags = flags;
        CHECK(ptxk_matmul_emit(m, &desc) == PTX_E_NONE);
        if (CHECK(ptx_text(m, NULL) != NULL) && sass_assemble(ptx_text(m, NULL), image, sizeof image)
            && CHECK(ptx_entry_get(m, 0, &info)) && (code = sass_code(image, info.name, &count)) != NULL) {
            while (count && sass_opcode(code, count - 1) == SASS_NOP) count--;
            loop = sass_inner_loop(code, count, &first);
            products = loop ? sass_products(code, first, first + loop - 1) : 0;
            printf("note: sm_90: %s: %u instructions, %u in the loop, %u of them products: %.3f each\n", info.name,
                   count, loop, products, (double)loop / products);
            CHECK_MORE(products == 384 && loop <= most[flags] * products, info.name);
        }
        ptx_module_free(m);
    }
}

/* Multiprocessors that work, on average over the time of the one with most steps: the shapes of models of 3 to 8
   billion weights. Adding parts costs as well, so that with 64 rows fewer may be the faster plan. */
static void plans_fill_the_device(void)
{
    static const double least[][3] = {{0.8, 0.95, 0.95}, {0.74, 0.88, 0.95}, {0.82, 0.95, 0.95}};
    static const uint32_t shapes[][2] = {{6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {128256, 4096},
                                         {4608, 3584},  {37888, 3584}, {3584, 18944}, {2560, 2048},  {22016, 2048},
                                         {2048, 11008}},
                          rows[] = {64, 512, 2048}, sms[] = {132, 108, 128};
    uint32_t i, j, d;
    for (d = 0; d < 3; d++) {
        for (i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            for (j = 0; j < 3; j++) {
                problem p = problem_new(PTX_F16, PTX_F16, PTXK_MATMUL_TRANS_B, rows[j], shapes[i][0], shapes[i][1]);
                uint32_t parts, tile, tiles, steps, time;
                double full;
                char what[160];
                p.shape.sm_count = sms[d];
                p.shape.target = PTX_SM(90);
                problem_plan(&p);
                parts = parts_of(&p);
                tile = p.plan.launch[0].entry ? 64 : 128;
                steps = (shapes[i][1] + 31) / 32;
                tiles = (rows[j] + tile - 1) / tile * ((shapes[i][0] + tile - 1) / tile);
                time = tiles / sms[d] * steps
                       + (tiles % sms[d] * parts + sms[d] - 1) / sms[d] * ((steps + parts - 1) / parts);
                full = (double)tiles * steps / ((double)time * sms[d]);
                (void)snprintf(what, sizeof what,
                               "%u multiprocessors, %u x %u x %u: %u tiles of %u, the last %u in %u parts: %.3f busy",
                               sms[d], rows[j], shapes[i][0], shapes[i][1], tiles, tile, tiles % sms[d], parts, full);
                if (full < 0.9) printf("note: %s\n", what);
                CHECK_MORE(full >= least[d][j], what);
                CHECK_MORE(p.plan.min_bytes
                               == 2ull * ((uint64_t)(rows[j] + shapes[i][0]) * shapes[i][1]
                                          + (uint64_t)rows[j] * shapes[i][0]),
                           what);
            }
        }
    }
}

int main(void)
{
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!open_driver()) return 1;
    every_type_and_transpose();
    batches();
    factors_of_every_kind();
    groups();
    long_k();
    specials();
    nothing_needless_is_read();
    the_same_bits_in_every_run();
    parts_leave_their_counters_zero();
    addresses_past_2_32();
    work_and_conflicts();
    instructions_per_product();
    plans_fill_the_device();
    printf("note: worst error %.3g of its bound\n", most_of_bound);
    return check_end();
}
