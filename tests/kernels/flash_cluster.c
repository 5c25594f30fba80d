/* flash_cluster.c - decode attention in clusters is right with every size of them, and holds the traffic
 * where one sequence has to fill a large machine.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU, from sm_90 on. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/flash_decode.h"
#include "../kerneltest.h"
#include "../flash_problem.h"

/* -- the plan -- */

static ptx_plan planned(uint32_t heads, uint32_t kv_heads, uint32_t d, uint32_t type, uint32_t flags,
                        uint32_t batch, uint32_t length, uint32_t sm_count, uint32_t most) {
    ptxk_flash_decode_desc desc = plain(heads, kv_heads, d, type);
    ptxk_flash_decode_shape shape = {batch, length, length, sm_count, most, 0};
    ptxk_message why;
    ptx_plan plan;
    desc.flags = flags;
    CHECK_MORE(!ptxk_flash_decode_plan(&desc, &shape, &plan, &why), why.text);
    CHECK(plan.launches == 1);
    if (plan.launch[0].cluster[2]) {
        CHECK(plan.launch[0].cluster[0] == 1 && plan.launch[0].cluster[1] == 1);
        CHECK(plan.launch[0].grid[2] % plan.launch[0].cluster[2] == 0);
    }
    return plan;
}

static void the_plan_chooses_the_smallest_cluster_that_will_do(void) {
    static const struct {
        uint32_t heads, kv_heads, d, type, flags, batch, length, sm_count, most, cluster, splits;
    } rows[] = {
        {64, 8, 128, PTX_F16, 0, 1, 4096, 132, 8, 4, 16},   /* 2 would leave 1.0506 */
        {64, 8, 128, PTX_F16, 0, 1, 4096, 132, 2, 2, 16},   /* the best there is */
        {64, 8, 128, PTX_F16, 0, 1, 4096, 132, 0, 0, 17},   /* sm_80 */
        {32, 8, 128, PTX_F16, 0, 1, 4096, 132, 8, 2, 16},
        {8, 8, 128, PTX_F16, 0, 1, 4096, 132, 8, 0, 32},    /* no need */
        {64, 8, 128, PTX_F16, 0, 16, 4096, 132, 8, 0, 5},   /* nor here: heads fill the machine */
        {64, 8, 128, PTX_F16, 0, 1, 300, 132, 8, 4, 4},     /* 3 chunks in one cluster: nothing to join */
        {64, 8, 128, PTX_F16, 0, 1, 100, 132, 8, 0, 1},
        {64, 8, 128, PTX_F16, PTXK_FLASH_CLUSTER_1, 1, 4096, 132, 8, 0, 17},
        {64, 8, 128, PTX_F16, PTXK_FLASH_CLUSTER_2, 1, 4096, 132, 8, 2, 16},
        {64, 8, 128, PTX_F16, PTXK_FLASH_CLUSTER_8, 1, 4096, 132, 8, 8, 16},
        {8, 8, 128, PTX_F16, PTXK_FLASH_CLUSTER_8 | PTXK_FLASH_SCALAR, 1, 1, 132, 8, 8, 8},
    };
    uint32_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptx_plan plan = planned(rows[i].heads, rows[i].kv_heads, rows[i].d, rows[i].type, rows[i].flags,
                                rows[i].batch, rows[i].length, rows[i].sm_count, rows[i].most);
        char text[100];
        (void)snprintf(text, sizeof text, "row %u: clusters of %u, %u splits", i,
                       plan.launch[0].cluster[2], plan.launch[0].grid[2]);
        CHECK_MORE(plan.launch[0].cluster[2] == rows[i].cluster && plan.launch[0].grid[2] == rows[i].splits,
                   text);
        CHECK((plan.workspace_bytes == 0)
              == (plan.launch[0].grid[2] == (rows[i].cluster ? rows[i].cluster : 1)));
    }
}

/* Keys, without a window, of the multiprocessor that has most of them. */
static uint64_t most_keys(const ptxk_flash_decode_desc *desc, const ptxk_flash_decode_shape *shape,
                          const ptx_launch *l) {
    uint64_t chunk = ptxk_flash_decode_chunk(desc, shape->max_len, l->grid[2]), blocks;
    blocks = (shape->max_len + chunk - 1) / chunk * l->grid[0] * l->grid[1];
    return (blocks + shape->sm_count - 1) / shape->sm_count * chunk;
}

/* Traffic is not saved by leaving multiprocessors without a block. */
static void no_cluster_costs_an_eighth_of_the_time(void) {
    static const uint32_t machines[] = {16, 66, 108, 132, 144, 148, 160, 188, 300}, heads[] = {32, 64, 28, 8};
    uint32_t i, h, length, wrong = 0, clusters = 0;
    for (h = 0; h < 4; h++)
        for (i = 0; i < 9; i++)
            for (length = 300; length < 40000; length += length / 5) {
                uint32_t kv_heads = heads[h] % 8 ? 4 : heads[h] / 8;
                ptxk_flash_decode_desc desc = plain(heads[h], kv_heads, 128, PTX_F16);
                ptxk_flash_decode_shape with = {1, 0, 40000, 0, 8, 0}, without;
                ptx_plan plan, alone;
                desc.queries = 1 + length % 8;
                with.batch = 1 + length % 3;
                with.max_len = length;
                with.sm_count = machines[i];
                without = with;
                without.cluster = 0;
                CHECK(!ptxk_flash_decode_plan(&desc, &with, &plan, NULL));
                CHECK(!ptxk_flash_decode_plan(&desc, &without, &alone, NULL));
                clusters += plan.launch[0].cluster[2] > 1;
                wrong += 8 * most_keys(&desc, &with, &plan.launch[0])
                         > 9 * most_keys(&desc, &without, &alone.launch[0]);
            }
    CHECK(wrong == 0 && clusters > 300);
}

static void a_cluster_that_the_device_has_not_is_refused(void) {
    ptxk_flash_decode_desc desc = plain(1, 1, 64, PTX_F16);
    ptxk_flash_decode_shape shape = {1, 4096, 4096, 132, 2, 0};
    ptxk_message why;
    ptx_plan plan;
    desc.flags = PTXK_FLASH_CLUSTER_4;
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && plan.launches == 0);
    CHECK_MORE(strstr(why.text, "cluster is 2, must be 8 at most, at least 4") != NULL, why.text);
    shape.cluster = 9;
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "cluster is 9, must be 8 at most") != NULL, why.text);
}

/* -- traffic -- */

/* Counted bytes over the lower bound. */
static double traffic(uint32_t heads, uint32_t kv_heads, uint32_t d, uint32_t type, uint32_t flags,
                      uint32_t batch, uint32_t length, uint32_t sm_count) {
    uint32_t lengths[BATCH_MAX], i;
    ptxk_flash_decode_desc desc = plain(heads, kv_heads, d, type);
    ptxsim_counters c;
    problem p;
    double ratio;
    for (i = 0; i < batch; i++) lengths[i] = length;
    desc.flags = flags;
    p = problem_of(&desc, length, lengths, batch);
    p.shape.sm_count = sm_count;
    p.target = PTX_SM(90);
    (void)problem_run(&p);
    cu.ptxsim_counters_get(&c, sizeof c);
    ratio = bytes_moved(&p, &c) / (double)p.plan.min_bytes;
    printf("note: %u heads on %u, d %u, %s, batch %u, length %u, %u multiprocessors: %u chunks in clusters "
           "of %u, traffic %.4f of the lower bound; %.4f bank conflicts an instruction\n",
           heads, kv_heads, d, ptx_type_name((ptx_type)type), batch, length, sm_count,
           p.plan.launch[0].grid[2], p.plan.launch[0].cluster[2], ratio,
           (double)c.shared_bank_conflicts / (double)c.warp_instructions);
    CHECK(c.local_requests == 0);
    problem_free(&p);
    return ratio;
}

/* 16 chunks of 256 keys for each of 8 KV heads. K, V, q and out are 16.84 MB; a block reads 16 sectors of
   lengths and the like, a cluster 4 KB of q, once of which is in the bound, and writes and reads 8 records of
   544 bytes: 65,536 + 3 * 32,768 + 2 * 4 * 64 * 544 = 442,368 bytes with clusters of 4, 2.6 %; with none
   65,536 + 15 * 32,768 + 2 * 16 * 64 * 544 = 1,671,168, 9.9 %. */
static void one_sequence_on_132_multiprocessors_is_within_5_percent(void) {
    static const struct {
        uint32_t heads, kv_heads, d, type, flags, batch, length, sm_count;
    } rows[] = {
        {64, 8, 128, PTX_F16, 0, 1, 4096, 132}, {64, 8, 128, PTX_F16, 0, 2, 4096, 132},
        {64, 8, 64, PTX_F16, 0, 1, 4096, 132},  {64, 8, 256, PTX_F16, 0, 1, 4096, 132},
        {64, 8, 128, PTX_F32, 0, 1, 4096, 132}, {64, 8, 128, PTX_BF16, 0, 1, 4096, 132},
        {32, 8, 128, PTX_F16, 0, 1, 4096, 132}, {8, 8, 128, PTX_F16, 0, 1, 4096, 132},
        {8, 1, 128, PTX_F16, 0, 1, 32768, 132}, {64, 8, 128, PTX_F16, 0, 1, 4096, 148},
        {32, 4, 128, PTX_F16, 0, 1, 4096, 170}, {28, 4, 128, PTX_BF16, 0, 1, 4096, 132},
        {8, 1, 128, PTX_F16, 0, 1, 4096, 16},   {16, 2, 128, PTX_F16, 0, 3, 4096, 132},
        {64, 8, 128, PTX_F16, PTXK_FLASH_SCALAR, 1, 4096, 132},
    };
    uint32_t i;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP one_sequence_on_132_multiprocessors_is_within_5_percent: only the CPU driver counts\n");
        return;
    }
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        double ratio = traffic(rows[i].heads, rows[i].kv_heads, rows[i].d, rows[i].type, rows[i].flags,
                               rows[i].batch, rows[i].length, rows[i].sm_count);
        CHECK(ratio <= 1.05);
        if (i == 0) CHECK(ratio <= 1.0263);
    }
    CHECK(traffic(64, 8, 128, PTX_F16, PTXK_FLASH_CLUSTER_1, 1, 4096, 132) > 1.05); /* it is the clusters */
}

/* -- results -- */

static uint32_t cluster_flag(uint32_t size) {
    return size == 8   ? PTXK_FLASH_CLUSTER_8
           : size == 4 ? PTXK_FLASH_CLUSTER_4
           : size == 2 ? PTXK_FLASH_CLUSTER_2
                       : PTXK_FLASH_CLUSTER_1;
}

/* Clusters that are full, that have one block with keys, that have none; all of the sequence in one, and in
   several; with the tensor cores and without. */
static void every_cluster_type_and_length(void) {
    static const uint32_t dims[] = {128, 64, 40, 256, 16}, groups[] = {8, 1, 5, 9, 32};
    uint32_t i, size, turn = 0;
    for (i = 0; i < 5; i++)
        for (size = 2; size <= 8; size *= 2)
            for (turn = 0; turn < 3; turn++) {
                static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32};
                uint32_t lengths[9], chunk, longest;
                ptxk_flash_decode_desc desc;
                problem p;
                memset(&desc, 0, sizeof desc);
                desc.kv_heads = 1 + (i + turn) % 2;
                desc.heads = groups[i] * desc.kv_heads;
                desc.head_dim = dims[i];
                desc.kv_type = types[turn];
                desc.flags = cluster_flag(size) | (turn == 1 ? PTXK_FLASH_LSE : 0)
                             | (turn == 0 && size == 4 ? PTXK_FLASH_SCALAR : 0);
                desc.q_type = size == 4 ? types[turn] : (uint32_t)PTX_F32;
                desc.out_type = PTX_F32;
                desc.queries = 1;
                chunk = ptxk_flash_decode_chunk(&desc, 1, 1);
                longest = (size == 8 ? 9 : 2 * size + 1) * chunk + 17;
                lengths[0] = longest;
                lengths[1] = size * chunk;     /* all in one cluster */
                lengths[2] = size * chunk + 1; /* one key, perhaps, in the next */
                lengths[3] = 1;
                lengths[4] = 0;
                lengths[5] = chunk + 1;
                lengths[6] = chunk;
                lengths[7] = random_below(longest);
                lengths[8] = longest + 1; /* past max_seq */
                p = problem_of(&desc, longest, lengths, 9);
                p.target = PTX_SM(90);
                p.shape.sm_count = 5000; /* chunks of the fewest keys */
                p.layout = (enum layout)(turn % 3);
                p.runs = 1 + (i == 0);
                problem_check(&p);
                CHECK(p.plan.launch[0].cluster[2] == size && p.plan.launch[0].grid[2] > size);
                problem_free(&p);
            }
}

static void every_feature_with_every_cluster(void) {
    uint32_t i, size;
    for (i = 0; i < 18; i++) {
        static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32};
        uint32_t lengths[6], chunk;
        ptxk_flash_decode_desc desc = plain(8, 2, i < 9 ? 64 : 128, types[i / 3 % 3]);
        problem p;
        size = 2u << i % 3;
        desc.queries = 1 + i % 8;
        desc.append_type = i % 2 ? PTX_F32 : PTX_F16;
        desc.page_size = i % 4 == 3 ? 16 : i % 4 == 2 ? 64 : 0;
        desc.flags = cluster_flag(size) | PTXK_FLASH_LSE;
        desc.soft_cap = i % 5 == 4 ? 20.0f : 0;
        chunk = ptxk_flash_decode_chunk(&desc, 1, 1);
        if (i % 3 != 2) desc.window = chunk * size + 37; /* begins inside of a chunk of the first cluster */
        lengths[0] = (2 * size + 1) * chunk - 5;
        lengths[1] = chunk * size + 40;
        lengths[2] = desc.queries - 1;
        lengths[3] = 0;
        lengths[4] = chunk + desc.queries / 2; /* new tokens on both sides of a chunk's end */
        lengths[5] = chunk * size + desc.queries / 2;
        p = problem_of(&desc, lengths[0], lengths, 6);
        p.target = PTX_SM(90);
        p.shape.sm_count = 5000;
        problem_check(&p);
        CHECK(p.plan.launch[0].cluster[2] == size);
        problem_free(&p);
    }
}

/* Blocks, warps and copies in other orders and at other speeds: the same bits, nothing found. */
static void every_schedule_gives_the_same(void) {
    const char *path = getenv("PTXGEN_CUDA_LIBRARY"), *most = getenv("PTXGEN_SEEDS");
    void *lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW), *symbol;
    void (*option)(const char *, int) = NULL;
    uint32_t seed, size, last = most ? (uint32_t)atoi(most) : 3, variant;
    if (lib && (symbol = dlsym(lib, "ptxsim_set")) != NULL) memcpy(&option, &symbol, sizeof option);
    if (!option) {
        printf("SKIP every_schedule_gives_the_same: only the CPU driver has other schedules\n");
        return;
    }
    for (variant = 0; variant < 4; variant++) {
        uint32_t lengths[3];
        ptxk_flash_decode_desc desc;
        problem p;
        char *first = NULL;
        size_t bytes;
        size = 2u << variant % 3;
        memset(&desc, 0, sizeof desc);
        desc.heads = 8;
        desc.kv_heads = 1;
        desc.head_dim = 64;
        desc.kv_type = variant % 2 ? PTX_F32 : PTX_F16;
        desc.q_type = desc.out_type = PTX_F32;
        desc.queries = 1;
        desc.append_type = variant < 2 ? PTX_F16 : 0;
        desc.flags = cluster_flag(size);
        lengths[0] = (size + 1) * ptxk_flash_decode_chunk(&desc, 1, 1) - 3;
        lengths[1] = 1;
        lengths[2] = size * ptxk_flash_decode_chunk(&desc, 1, 1);
        p = problem_of(&desc, lengths[0], lengths, 3);
        p.target = PTX_SM(90);
        p.shape.sm_count = 5000;
        bytes = q_rows(&p) * desc.head_dim * 4;
        for (seed = 0; seed <= last; seed++) {
            option("seed", (int)seed);
            problem_check(&p);
            if (!first) first = (char *)malloc(bytes), memcpy(first, p.out, bytes);
            CHECK(!memcmp(first, p.out, bytes));
        }
        option("seed", 0);
        free(first);
        problem_free(&p);
    }
}

/* What is drawn: a description; a plan for longer sequences or shorter ones than there are, for any machine
   and any cluster that it may have; lengths on both sides of a chunk's end, of nothing and past max_seq. */
static uint32_t drawn(const uint32_t *from, uint32_t count) { return from[random_below(count)]; }

static ptxk_flash_decode_desc drawn_description(void) {
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32},
                          dims[] = {8, 16, 40, 64, 72, 128, 200, 256};
    ptxk_flash_decode_desc desc;
    uint32_t forced = random_below(5), group = 1 + random_below(random_below(4) ? 9 : 40);
    memset(&desc, 0, sizeof desc);
    desc.kv_heads = 1 + random_below(3);
    desc.heads = group * desc.kv_heads;
    desc.head_dim = drawn(dims, 8);
    desc.kv_type = drawn(types, 3);
    desc.q_type = drawn(types, 3);
    desc.out_type = drawn(types, 3);
    desc.queries = random_below(2) ? 1 + random_below(8) : 1;
    desc.append_type = random_below(2) ? drawn(types, 3) : 0;
    desc.page_size = random_below(3) ? 0 : 16u << random_below(4);
    desc.window = random_below(3) ? 0 : 1 + random_below(random_below(2) ? 40 : 700);
    desc.soft_cap = random_below(4) ? 0 : (float)(1 + random_below(50));
    desc.scale = random_below(4) ? 0 : (float)random_within(1);
    desc.flags = random_below(4) | forced * PTXK_FLASH_CLUSTER_1; /* 0: the plan chooses */
    if (random_below(3) == 0) desc.flags |= PTXK_FLASH_SINK;
    return desc;
}

static uint32_t drawn_length(uint32_t longest, uint32_t chunk) {
    switch (random_below(8)) {
    case 0: return 0;
    case 1: return 1 + random_below(8); /* fewer than the queries, perhaps */
    case 2: return longest;
    case 3: return longest + 1 + random_below(1000);
    case 4: return chunk * random_below(longest / chunk + 1) + random_below(3);
    default: return random_below(longest + 1);
    }
}

static void drawn_problems(void) {
    static const uint32_t counts[] = {1, 7, 20, 46, 84, 132, 148, 170, 300, 5000};
    static const ptx_target targets[] = {PTX_SM(90), PTX_SM(90), PTX_SM(90),
                                         PTX_SM(80), PTX_SM(100), PTX_SM(120)};
    const char *most = getenv("PTXGEN_ROUNDS");
    uint32_t round, rounds = most ? (uint32_t)atoi(most) : 40, i;
    for (round = 0; round < rounds; round++) {
        ptxk_flash_decode_desc desc = drawn_description();
        uint32_t chunk = ptxk_flash_decode_chunk(&desc, 1, 1), before = failed, batch = 1 + random_below(5),
                 longest = 1 + random_below((random_below(3) ? 4 : 17) * chunk), lengths[BATCH_MAX];
        ptx_target target = targets[random_below(6)];
        problem p;
        if ((int)(target & 0xfff) > capability) target = PTX_SM(90);
        if ((target & 0xfff) < 90) desc.flags &= PTXK_FLASH_LSE | PTXK_FLASH_SCALAR | PTXK_FLASH_SINK;
        for (i = 0; i < batch; i++) lengths[i] = drawn_length(longest, chunk);
        p = problem_of(&desc, longest, lengths, batch);
        p.target = target;
        p.most = desc.flags % PTXK_FLASH_PAGE_ROWS < PTXK_FLASH_CLUSTER_2 ? 1 + random_below(8) : 0;
        p.shape.sm_count = drawn(counts, 10);
        if (random_below(3) == 0) p.shape.max_len = random_below(longest + 1);
        p.layout = (enum layout)random_below(3);
        p.runs = 1 + (random_below(4) == 0);
        problem_check(&p);
        if (failed > before)
            printf("  in round %u: sm_%u, flags %u, %u queries, window %u, pages of %u, append %u, %u in "
                   "clusters of %u\n",
                   round, (unsigned)(target & 0xfff), desc.flags, desc.queries, desc.window, desc.page_size,
                   desc.append_type, p.plan.launch[0].grid[2], p.plan.launch[0].cluster[2]);
        problem_free(&p);
    }
}

/* NaN of a missing page reaches the whole sequence, whichever block of the cluster has found it. */
static void a_missing_page_in_a_cluster(void) {
    uint32_t i, h, wrong = 0;
    for (i = 0; i < 4; i++) {
        uint32_t lengths[2];
        ptxk_flash_decode_desc desc;
        device_ptr at[2];
        void *keys, *values;
        size_t bytes;
        problem p;
        memset(&desc, 0, sizeof desc);
        desc.heads = 4;
        desc.kv_heads = 2;
        desc.head_dim = 64;
        desc.kv_type = i % 2 ? PTX_F32 : PTX_F16;
        desc.q_type = desc.out_type = PTX_F32;
        desc.queries = 1;
        desc.page_size = 16;
        desc.flags = cluster_flag(i < 2 ? 4 : 2);
        lengths[0] = lengths[1] = 3 * ptxk_flash_decode_chunk(&desc, 1, 1);
        p = problem_of(&desc, lengths[0], lengths, 2);
        p.target = PTX_SM(90);
        p.shape.sm_count = 5000;
        keys = physical(&p, 0, 0, 2, 0);
        values = physical(&p, 1, 0, 2, 0);
        bytes = cache_elements(&p) * ref_bytes(p.format);
        at[0] = upload(keys, bytes);
        at[1] = upload(values, bytes);
        p.table[p.max_pages + p.max_pages / 2] = p.pool_pages; /* of sequence 1, in its second block */
        if (launch(&p, &at[0], &at[1])) {
            compare(&p, 0, p.keys[0], p.values[0], p.shape.max_seq);
            for (h = 0; h < 256; h++) wrong += isnan(((float *)p.out)[256 + h]) ? 0 : 1;
        }
        CHECK(p.plan.launch[0].cluster[2] == (i < 2 ? 4 : 2));
        cu.cuMemFree(at[0]);
        cu.cuMemFree(at[1]);
        free(keys);
        free(values);
        problem_free(&p);
    }
    CHECK(wrong == 0);
}

/* Head 16 of 17 lies past 2^32 elements; 300 keys are 3 chunks of one cluster. */
static void offsets_past_2_to_32_in_a_cluster(void) {
    static const uint32_t length = 300;
    const uint32_t d = 256, kv_heads = 17, rows = (1u << 20) + 3;
    size_t head = (size_t)rows * d * 2;
    device_ptr cache = 0;
    uint32_t i;
    problem p = problem_new(kv_heads, kv_heads, d, REF_F16, length, &length, 1);
    if (cu.cuMemAlloc(&cache, head * kv_heads)) {
        printf("SKIP offsets_past_2_to_32_in_a_cluster: no %.1f GB of device memory\n",
               (double)head * kv_heads / 1e9);
        problem_free(&p);
        return;
    }
    for (i = 0; i < kv_heads; i++)
        CHECK(cu.cuMemcpyHtoD(cache + i * head, (char *)p.keys[0] + i * head_bytes(&p), head_bytes(&p)) == 0);
    p.shape.max_seq = rows;
    p.target = PTX_SM(90);
    p.desc.flags = PTXK_FLASH_CLUSTER_4;
    if (launch(&p, &cache, &cache)) compare(&p, 0, p.keys[0], p.keys[0], length);
    CHECK(p.plan.launch[0].cluster[2] == 4 && p.plan.workspace_bytes == 0);
    cu.cuMemFree(cache);
    problem_free(&p);
}

int main(void) {
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    fill_pools();
    the_plan_chooses_the_smallest_cluster_that_will_do();
    no_cluster_costs_an_eighth_of_the_time();
    a_cluster_that_the_device_has_not_is_refused();
    if (CHECK(open_driver())) {
        if (capability < 90) {
            printf("SKIP clusters: sm_%d has none\n", capability);
        } else {
            every_cluster_type_and_length();
            every_feature_with_every_cluster();
            every_schedule_gives_the_same();
            drawn_problems();
            a_missing_page_in_a_cluster();
            offsets_past_2_to_32_in_a_cluster();
            one_sequence_on_132_multiprocessors_is_within_5_percent();
        }
        printf("note: largest error: %.3f of its bound\n", worst);
    }
    free(pool_f32);
    free(pool_f16);
    free(pool_bf16);
    return check_end();
}
