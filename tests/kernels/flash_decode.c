/* flash_decode.c - decode attention is right, on odd shapes, at every edge, and moves only what it must.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU.
 *
 * Data is fresh in every run; PTXGEN_SEED=n repeats one. Outputs and workspace are filled with NaN before
 * each run, and so are the rows of the caches past the end of a sequence. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"
#include "../../examples/operation_examples.h"

#include "../reference/flash_decode.h"
#include "../kerneltest.h"
#include "../flash_problem.h"
#include "../sass.h"

/* Keys of the smallest chunk: a length of which two chunks are made at least. */
static uint32_t chunk_of(uint32_t heads, uint32_t kv_heads, uint32_t d, enum ref_format format)
{
    ptxk_flash_decode_desc desc = plain(heads, kv_heads, d, type_of(format));
    return ptxk_flash_decode_chunk(&desc, 1, 1);
}

/* -- the grid of shapes -- */

static void every_head_dim_type_group_and_length(void)
{
    static const uint32_t dims[] = {16, 40, 64, 96, 128, 192, 256}, groups[] = {1, 4, 7, 8};
    uint32_t i, j, format, turn = 0;
    for (i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (format = 0; format < 3; format++) {
            for (j = 0; j < sizeof groups / sizeof *groups; j++, turn++) {
                uint32_t kv_heads = 1 + turn % 2, chunk, lengths[8];
                problem p;
                if (!is_drawn(4)) continue;
                chunk = chunk_of(groups[j] * kv_heads, kv_heads, dims[i], (enum ref_format)format);
                lengths[0] = chunk;
                lengths[1] = 0;
                lengths[2] = chunk + 1;
                lengths[3] = 1;
                lengths[4] = 4095;
                lengths[5] = 2;
                lengths[6] = chunk - 1;
                lengths[7] = 1 + random_below(turn % 4 ? 600 : 4097);
                p = problem_new(groups[j] * kv_heads, kv_heads, dims[i], (enum ref_format)format, 4097,
                                lengths, 8);
                if (turn % 3 && capability >= 80) p.target = PTX_SM(80); /* another way to clamp scores */
                problem_check(&p);
                CHECK(p.plan.launch[0].grid[2] > 1); /* several chunks were tested */
                problem_free(&p);
            }
        }
    }
}

/* -- SEEDS.md, 000: one test for each input on which the original fails -- */

static void d_above_128_is_stored(void)
{
    static const uint32_t lengths[] = {300, 5};
    static const uint32_t dims[] = {136, 144, 160, 192, 200, 248, 256};
    uint32_t i, format;
    for (i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (format = 0; format < 3; format++) {
            problem p = problem_new(3, 1, dims[i], (enum ref_format)format, 300, lengths, 2);
            problem_check(&p);
            problem_free(&p);
        }
    }
}

static void mixed_lengths_and_empty_chunks(void)
{
    uint32_t format, i, lengths[BATCH_MAX];
    for (format = 0; format < 3; format++) {
        problem p;
        for (i = 0; i < BATCH_MAX; i++) lengths[i] = i % 4 == 3 ? random_below(8) : random_below(5000);
        lengths[5] = 5000;
        lengths[6] = 0;
        p = problem_new(4, 2, 64, (enum ref_format)format, 5000, lengths, BATCH_MAX);
        p.shape.sm_count = 1000;
        problem_check(&p);
        CHECK(p.plan.launch[0].grid[2] > 4);
        problem_free(&p);
    }
}

static void infinite_scores(void)
{
    uint32_t format, round, i, h;
    for (format = 0; format < 3; format++) {
        for (round = 0; round < 4; round++) {
            uint32_t chunk = chunk_of(4, 1, 64, (enum ref_format)format), lengths[6];
            problem p;
            for (i = 0; i < 6; i++) lengths[i] = round < 2 ? 37 : 3 * chunk + 5;
            p = problem_new(4, 1, 64, (enum ref_format)format, 4 * chunk, lengths, 6);
            if (round % 2 && capability >= 80) p.target = PTX_SM(80);
            for (i = 0; i < 6;
                 i++) { /* q[0] > 0: K[0] = +-inf makes the score of that sign, for all heads */
                for (h = 0; h < 4; h++) {
                    float *q = (float *)p.q + (size_t)(i * 4 + h) * 64;
                    *q = fabsf(*q) + 0.125f;
                }
            }
            for (i = 0; i < lengths[0]; i++) {
                size_t at = (size_t)i * 64;
                ref_put(p.keys[0], p.format, at, i % 3 ? (double)-INFINITY : 0.5); /* some are -inf */
                ref_put(p.keys[1], p.format, at, (double)-INFINITY);               /* all are */
                if (i % 11 == 4)
                    ref_put(p.keys[2], p.format, at, (double)INFINITY); /* some share the weight */
                ref_put(p.keys[3], p.format, at, i == lengths[0] / 2 ? (double)INFINITY : (double)-INFINITY);
                ref_put(p.keys[4], p.format, at, (double)INFINITY); /* all share it */
                if (i + 1 == lengths[0]) ref_put(p.keys[5], p.format, at, (double)-INFINITY); /* the last */
            }
            problem_check(&p);
            problem_free(&p);
        }
    }
}

static void nan_scores_make_their_head_nan_and_no_other(void)
{
    uint32_t round;
    for (round = 0; round < 4; round++) {
        uint32_t chunk = chunk_of(4, 2, 64, REF_F16), lengths[2];
        const float *out;
        problem p;
        lengths[0] = lengths[1] = round < 2 ? 50 : 2 * chunk + 9;
        p = problem_new(4, 2, 64, REF_F16, 3 * chunk, lengths, 2);
        if (round % 2 && capability >= 80) p.target = PTX_SM(80);
        ref_put(p.keys[0], REF_F16, (size_t)(lengths[0] - 3) * 64 + 17,
                (double)NAN);                    /* KV head 0 of sequence 0 */
        ((float *)p.q)[(size_t)(1 * 4 + 3) * 64 + 5] = NAN; /* head 3 of sequence 1 */
        problem_check(&p);
        out = (const float *)p.out;
        CHECK(isnan(out[0]) && isnan(out[64]) && !isnan(out[128]) && !isnan(out[192]));
        CHECK(!isnan(out[256]) && !isnan(out[384]) && isnan(out[448]));
        problem_free(&p);
    }
}

static void zero_length_gives_zeros(void)
{
    static const uint32_t lengths[] = {0, 0, 0};
    uint32_t splits;
    for (splits = 0; splits < 2; splits++) {
        problem p = problem_new(8, 2, 128, REF_F16, 4096, lengths, 3);
        device_ptr nowhere[3] = {0, 0, 0}; /* nothing of a cache may be touched */
        uint32_t i, wrong = 0;
        p.shape.max_len = splits ? 0 : 1; /* 0: max_seq */
        if (launch(&p, nowhere, nowhere)) {
            for (i = 0; i < 3 * 8 * 128; i++) wrong += ((float *)p.out)[i] == 0 ? 0 : 1;
            CHECK(wrong == 0);
            CHECK((p.plan.launch[0].grid[2] > 1) == (splits == 1));
        }
        problem_free(&p);
    }
}

static void length_above_max_seq_is_nan_and_touches_no_cache(void)
{
    static const uint32_t lengths[] = {101, 100, 0xffffffffu, 3, 0x80000000u};
    uint32_t i, h, wrong = 0;
    problem p = problem_new(4, 2, 40, REF_BF16, 100, lengths, 5);
    device_ptr keys[5], values[5];
    for (i = 0; i < 5; i++) {
        int good = lengths[i] <= 100;
        keys[i] = good ? upload(p.keys[i], 2 * head_bytes(&p)) : 0;
        values[i] = good ? upload(p.values[i], 2 * head_bytes(&p)) : 0;
    }
    if (launch(&p, keys, values)) {
        for (i = 0; i < 5; i++) {
            if (lengths[i] <= 100) {
                compare(&p, i, p.keys[i], p.values[i], 100);
            } else {
                for (h = 0; h < 4 * 40; h++) wrong += isnan(((float *)p.out)[i * 160 + h]) ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
    }
    for (i = 0; i < 5; i++) {
        if (keys[i]) cu.cuMemFree(keys[i]);
        if (values[i]) cu.cuMemFree(values[i]);
    }
    problem_free(&p);
}

/* The splits are the plan's, the chunks follow from the length on the device: whatever the plan was made
   for, every key is in one chunk. A length that the plan did not expect is right, too. */
static void grid_cannot_be_chosen_wrong(void)
{
    static const uint32_t sms[] = {1, 7, 132, 100000};
    uint32_t i;
    for (i = 0; i < 8; i++) {
        uint32_t lengths[3] = {3000, 777, 2999};
        problem p = problem_new(5, 1, 128, REF_F16, 3001, lengths, 3);
        ptxk_flash_decode_shape shape;
        p.shape.sm_count = sms[i / 2];
        if (i % 2) p.shape.max_len = 800; /* fewer splits than the longest sequence would get */
        problem_check(&p);
        shape = p.shape;
        CHECK((uint64_t)ptxk_flash_decode_chunk(&p.desc, shape.max_len, p.plan.launch[0].grid[2])
                  * p.plan.launch[0].grid[2]
              >= shape.max_len);
        problem_free(&p);
    }
}

static void offsets_past_2_to_32_elements(void)
{
    static const uint32_t lengths[] = {5};
    const uint32_t d = 256, kv_heads = 17;
    uint32_t rows = (1u << 20) + 3, i;
    size_t head = (size_t)rows * d * 2;
    device_ptr cache[1] = {0};
    problem p = problem_new(kv_heads, kv_heads, d, REF_F16, 5, lengths, 1);
    /* 17 * (2^20 + 3) * 256 elements: head 16 starts past 2^32, and the bytes pass 2^33. One cache is both K
     * and V. */
    if (cu.cuMemAlloc(&cache[0], head * kv_heads)) {
        printf("SKIP offsets_past_2_to_32_elements: no %.1f GB of device memory\n",
               (double)head * kv_heads / 1e9);
        problem_free(&p);
        return;
    }
    for (i = 0; i < kv_heads; i++)
        CHECK(cu.cuMemcpyHtoD(cache[0] + i * head, (char *)p.keys[0] + i * head_bytes(&p), head_bytes(&p))
              == 0);
    p.shape.max_seq = rows;
    for (i = 75; i <= 80; i += 5) {
        p.target = PTX_SM(i);
        if (launch(&p, cache, cache)) compare(&p, 0, p.keys[0], p.keys[0], 5);
    }
    cu.cuMemFree(cache[0]);
    problem_free(&p);
}

/* A pool of 70000 pages of 16 positions, 17 * 16 * 256 elements each: the last page begins past 2^32. */
static void pages_past_2_to_32_elements(void) {
    enum { PAGES = 70000, D = 256, HEADS = 17, LENGTH = 40 };
    static const uint32_t length[] = {LENGTH}, pages[] = {PAGES - 1, 3, PAGES - 2};
    const size_t page_bytes = (size_t)HEADS * 16 * D * 2;
    device_ptr pool = 0;
    uint32_t g, i, target;
    ptxk_flash_decode_desc desc = plain(HEADS, HEADS, D, PTX_F16);
    problem p;
    desc.page_size = 16;
    p = problem_of(&desc, LENGTH, length, 1);
    if (cu.cuMemAlloc(&pool, page_bytes * PAGES)) {
        printf("SKIP pages_past_2_to_32_elements: no %.1f GB of device memory\n",
               (double)page_bytes * PAGES / 1e9);
        problem_free(&p);
        return;
    }
    CHECK(p.max_pages >= 3);
    memcpy(p.table, pages, sizeof pages);
    p.pool_pages = PAGES;
    for (g = 0; g < HEADS; g++)
        for (i = 0; i < LENGTH; i++)
            CHECK(cu.cuMemcpyHtoD(pool + pages[i / 16] * page_bytes + (g * 16 + i % 16) * (size_t)D * 2,
                                  (char *)p.keys[0] + g * head_bytes(&p) + (size_t)i * D * 2, D * 2)
                  == 0);
    for (target = 75; target <= 80; target += 5) {
        p.target = PTX_SM(target);
        if (launch(&p, &pool, &pool)) compare(&p, 0, p.keys[0], p.keys[0], p.shape.max_seq);
    }
    cu.cuMemFree(pool);
    problem_free(&p);
}

static void f16_and_bf16_of_all_magnitudes(void)
{
    uint32_t i, format;
    for (i = 0; i < 65536; i++) { /* the reference's own conversions */
        double h = ref_from_f16((uint16_t)i), b = ref_from_bf16((uint16_t)i);
        if (!isnan(h) && ref_to_f16(h) != i) CHECK_MORE(0, "f16 round trip");
        if (!isnan(b) && ref_to_bf16(b) != i) CHECK_MORE(0, "bf16 round trip");
    }
    for (format = REF_F16; format <= REF_BF16; format++) {
        static const uint32_t lengths[] = {1000};
        problem p = problem_new(2, 1, 64, (enum ref_format)format, 1000, lengths, 1);
        for (i = 0; i < 1000 * 64;
             i++) { /* V: any finite pattern that keeps the sum finite; K: small, subnormal */
            uint16_t *v = &((uint16_t *)p.values[0])[i], *k = &((uint16_t *)p.keys[0])[i];
            *v = (uint16_t)random_u32();
            if (format == REF_F16 && (*v & 0x7c00) == 0x7c00) *v = (uint16_t)(*v & 0x83ff);
            if (format == REF_BF16 && (*v & 0x7f80) > 0x7000) *v = (uint16_t)(*v & 0xbfff);
            if (i % 3 == 0) *k = (uint16_t)(*k & 0x83ff);
        }
        problem_check(&p);
        problem_free(&p);
    }
}

static void scale_is_used(void)
{
    static const float scales[] = {0.5f, -0.25f, 1.0f};
    static const uint32_t lengths[] = {200};
    uint32_t i;
    for (i = 0; i < 3; i++) {
        problem p = problem_new(2, 2, 16, REF_F32, 200, lengths, 1);
        p.desc.scale = scales[i];
        problem_check(&p);
        problem_free(&p);
    }
}

static const uint32_t kv_types[] = {PTX_F32, PTX_F16, PTX_BF16};

static void run_on(problem *p, int target) {
    if (target > 75 && capability < target) target = 75;
    p->target = PTX_SM((unsigned)target);
    problem_check(p);
    problem_free(p);
}

/* 9 heads: tiles of 5 and 4. 64 heads, 20: tiles of 8, and of 7, 7, 6. d 8: one vector a row. */
static void groups_of_more_than_8_heads(void) {
    static const uint32_t lengths[] = {900, 33, 0};
    static const uint32_t heads[] = {9, 64, 20, 71}, dims[] = {64, 128, 136, 8};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        problem p = problem_new(heads[i], 1, dims[i], (enum ref_format)(i % 3), 900, lengths, 3);
        problem_check(&p);
        problem_free(&p);
    }
}

/* Small rows: the ring of tensor cores has 17 to 33 slots, more mbarriers than a warp has lanes; and rows that are
   padded, of two KV heads side by side, are as wide as a slot's. One block reads more keys than the ring holds. */
static void rows_of_one_or_two_vectors(void) {
    static const uint32_t lengths[] = {1200, 77};
    static const uint32_t groups[] = {9, 16, 32, 16, 32, 4, 1, 3}, dims[] = {8, 8, 8, 16, 16, 8, 8, 16};
    uint32_t i;
    for (i = 0; i < 16; i++) {
        uint32_t kv_heads = 1 + i % 2;
        ptxk_flash_decode_desc desc = plain(kv_heads * groups[i / 2], kv_heads, dims[i / 2], kv_types[1 + i / 3 % 2]);
        problem p;
        desc.page_size = i % 4 == 3 ? 16 : 0;
        if (desc.page_size) desc.flags = PTXK_FLASH_PAGE_ROWS;
        p = problem_of(&desc, 1200, lengths, 2);
        p.layout = ROWS_FIRST;
        p.shape.sm_count = 1;
        run_on(&p, i % 3 ? 90 : 80);
    }
}

/* -- every feature with every other: random descriptions -- */

static uint32_t pick(const uint32_t *from, uint32_t n) { return from[random_below(n)]; }
#define PICK(...) pick((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void describe(const problem *p, char *text, size_t capacity) {
    (void)snprintf(
        text, capacity,
        "heads %u kv_heads %u d %u kv %u q %u out %u queries %u window %u cap %g page %u append %u flags "
        "%u, sm_%u, layout %d, max_seq %u, sms %u, batch %u, splits %u",
        p->desc.heads, p->desc.kv_heads, p->desc.head_dim, p->desc.kv_type, p->desc.q_type, p->desc.out_type,
        p->desc.queries, p->desc.window, (double)p->desc.soft_cap, p->desc.page_size, p->desc.append_type,
        p->desc.flags, (unsigned)(p->target & 0xfff), (int)p->layout, p->shape.max_seq, p->shape.sm_count,
        p->shape.batch, p->plan.launch[0].grid[2]);
}

static void random_problem(uint32_t turn) {
    ptxk_flash_decode_desc desc;
    uint32_t lengths[4], batch = 1 + random_below(4), i, max_seq, chunk, before = failed;
    char text[400];
    problem p;
    memset(&desc, 0, sizeof desc);
    desc.kv_heads = 1 + random_below(2);
    desc.heads = desc.kv_heads * PICK(1, 2, 4, 5, 7, 8, 8, 9, 16);
    desc.head_dim = PICK(8, 16, 32, 40, 64, 64, 72, 80, 96, 112, 128, 128, 128, 136, 192, 248, 256);
    desc.kv_type = PICK(PTX_F32, PTX_F16, PTX_F16, PTX_BF16, PTX_BF16);
    desc.q_type = PICK(PTX_F32, PTX_F32, PTX_F16, PTX_BF16);
    desc.out_type = PICK(PTX_F32, PTX_F32, PTX_F16, PTX_BF16);
    desc.queries = random_below(2) ? 1 + random_below(8) : 1;
    desc.window = random_below(3) ? 0 : PICK(1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 300);
    desc.soft_cap = random_below(4) ? 0.0f : (float)PICK(1, 5, 30, 50);
    desc.page_size = random_below(3) ? 0 : PICK(16, 32, 64, 128, 256);
    desc.append_type = random_below(3) ? 0 : PICK(PTX_F32, PTX_F16, PTX_BF16);
    desc.flags = random_below(2) ? PTXK_FLASH_LSE : 0;
    if (random_below(3) == 0) desc.flags |= PTXK_FLASH_SINK;
    if (turn % 8 == 7) desc.flags |= PTXK_FLASH_SCALAR;
    if (desc.page_size && random_below(2)) desc.flags |= PTXK_FLASH_PAGE_ROWS;
    if (turn % 5 == 4) desc.scale = (float)random_within(0.5);
    chunk = ptxk_flash_decode_chunk(&desc, 1, 1);
    max_seq = chunk * (1 + random_below(3)) + random_below(40);
    if (max_seq > 700) max_seq = 500 + random_below(200);
    for (i = 0; i < batch; i++) {
        static const int beside[] = {-1, 0, 1, 2, 7};
        int64_t near = (int64_t)PICK(0, 1, 16, 32, 48, 64, 80, 128) + beside[random_below(5)];
        if (random_below(2)) near = random_below(max_seq + 1);
        if (random_below(8) == 0) near = (int64_t)chunk + beside[random_below(5)];
        if (random_below(8) == 0) near = max_seq;
        if (random_below(20) == 0) near = (int64_t)max_seq + 1 + random_below(9);
        lengths[i] = near < 0 ? 0 : near > max_seq + 10 ? max_seq : (uint32_t)near;
    }
    p = problem_of(&desc, max_seq, lengths, batch);
    p.target = PTX_SM(turn % 4 && capability >= 80 ? 80 : 75);
    if (turn % 3 == 1 && capability >= 90) {
        p.target = PTX_SM(90);
        p.desc.flags += PTXK_FLASH_CLUSTER_1 * random_below(5); /* the plan's, none, 2, 4, 8 */
    }
    p.layout = (enum layout)random_below(3);
    p.shape.sm_count = PICK(1, 8, 132);
    p.runs = 1 + (int)random_below(2);
    problem_check(&p);
    if (failed != before) {
        describe(&p, text, sizeof text);
        printf("  %s\n", text);
    }
    problem_free(&p);
}

static void random_descriptions(void) {
    const char *rounds = getenv("FLASH_ROUNDS");
    uint32_t i, n = rounds ? (uint32_t)atoi(rounds) : 150;
    for (i = 0; i < n; i++) random_problem(i);
}

/* -- named inputs: 000 had no pages, no window, no cap; 003 no GQA, and a stale length in a graph -- */

static void paged_caches(void) {
    static const uint32_t lengths[] = {16, 17, 300, 15};
    uint32_t i;
    for (i = 0; i < 6; i++) {
        ptxk_flash_decode_desc desc = plain(8, 2, 128, kv_types[i % 3]);
        problem p;
        desc.page_size = i < 3 ? 16 : 128;
        p = problem_of(&desc, 301, lengths, 4);
        run_on(&p, i % 2 ? 75 : 80);
    }
}

/* Pages whose rows, not whose heads, lie side by side: rows that are appended, a sequence whose page is not
   there, and KV heads of which a page is not a multiple. */
static void pages_of_rows(void) {
    static const uint32_t lengths[] = {16, 17, 300, 15};
    uint32_t i;
    for (i = 0; i < 12; i++) {
        ptxk_flash_decode_desc desc = plain(i % 4 ? 9 : 8, i % 4 ? 3 : 1, i % 5 ? 128 : 40, kv_types[i % 3]);
        problem p;
        desc.page_size = i < 6 ? 16 : 128;
        desc.flags = PTXK_FLASH_PAGE_ROWS | (i % 2 ? PTXK_FLASH_LSE : 0) | (i > 9 ? PTXK_FLASH_SCALAR : 0);
        if (i % 3 == 1) desc.append_type = PTX_F16, desc.queries = 1 + i % 4;
        p = problem_of(&desc, 301, lengths, 4);
        run_on(&p, i % 2 ? 75 : i % 4 ? 80 : 90);
    }
}

/* Of all sequences, without an array in device memory. */
static void a_length_of_the_host(void) {
    static const uint32_t all[] = {300, 1, 301, 16};
    uint32_t i, lengths[3];
    for (i = 0; i < 8; i++) {
        ptxk_flash_decode_desc desc = plain(8, 2, 64, kv_types[i % 3]);
        problem p;
        lengths[0] = lengths[1] = lengths[2] = all[i / 2];
        desc.page_size = i % 4 == 3 ? 16 : 0;
        p = problem_of(&desc, 300, lengths, 3);
        p.by_number = 1;
        run_on(&p, i % 2 ? 75 : 80);
    }
}

static void sliding_window_edges(void) {
    static const uint32_t lengths[] = {63, 64, 65, 200, 16, 700};
    static const uint32_t windows[] = {1, 16, 64, 65, 0x7fffffff};
    uint32_t i;
    for (i = 0; i < 10; i++) {
        ptxk_flash_decode_desc desc = plain(4, 1, 64, kv_types[i % 3]);
        problem p;
        desc.window = windows[i / 2];
        desc.queries = 1 + i % 3;
        p = problem_of(&desc, 700, lengths, 6);
        run_on(&p, i % 2 ? 75 : 80);
    }
}

static void one_to_eight_queries(void) {
    static const uint32_t lengths[] = {0, 1, 7, 8, 9, 130};
    uint32_t i;
    for (i = 1; i <= 8; i++) {
        ptxk_flash_decode_desc desc = plain(8, 2, 64, kv_types[i % 3]);
        problem p;
        desc.queries = i;
        desc.append_type = PTX_F32;
        desc.flags = PTXK_FLASH_LSE;
        p = problem_of(&desc, 130, lengths, 6);
        run_on(&p, 80);
    }
}

static void soft_cap_bounds_infinite_scores(void) {
    static const uint32_t lengths[] = {90};
    uint32_t i, h;
    for (i = 0; i < 6; i++) {
        ptxk_flash_decode_desc desc = plain(4, 1, 32, kv_types[i % 3]);
        problem p;
        desc.soft_cap = 3;
        p = problem_of(&desc, 90, lengths, 1);
        for (h = 0; h < 4; h++) ((float *)p.q)[h * 32] = 1 + (float)h;
        ref_put(p.keys[0], p.format, 5 * 32, (double)INFINITY);
        ref_put(p.keys[0], p.format, 6 * 32, (double)-INFINITY);
        run_on(&p, i < 3 ? 75 : 80);
    }
}

/* q of any size: the power of two that a column is scaled by takes what f16 cannot hold. */
static void q_past_the_range_of_f16(void) {
    static const double sizes[] = {1e30, 1e6, 1e-6, 1e-30};
    static const uint32_t lengths[] = {70};
    uint32_t i, e;
    for (i = 0; i < 8; i++) {
        problem p = problem_new(2, 1, 64, i % 2 ? REF_BF16 : REF_F16, 70, lengths, 1);
        p.desc.scale = (float)(0.1 / sizes[i / 2]);
        for (e = 0; e < 128; e++) ((float *)p.q)[e] *= (float)sizes[i / 2];
        run_on(&p, 80);
    }
}

/* Every type of q and cache, each variant, both signs of the scale, with and without a cap. */
static problem spoilt_problem(uint32_t turn, uint32_t max_seq, const uint32_t *lengths, uint32_t batch) {
    static const float scales[] = {0, -0.25f, 3};
    ptxk_flash_decode_desc desc = plain(4, 1, turn % 5 ? 64 : 40, kv_types[turn % 3]);
    problem p;
    desc.q_type = kv_types[turn / 3 % 3];
    desc.scale = scales[turn / 9 % 3];
    desc.soft_cap = turn / 27 % 2 ? 5 : 0;
    desc.flags = PTXK_FLASH_LSE;
    p = problem_of(&desc, max_seq, lengths, batch);
    p.target = PTX_SM(turn / 54 % 3 == 0 ? 75 : turn / 54 % 3 == 1 ? 80 : 90);
    if (capability < (int)(p.target & 0xfff)) p.target = PTX_SM(75);
    return p;
}

/* Infinite and NaN elements of q, alone, several, beside infinite ones of K, and meeting zeros of it. Keys
   with a score of +inf share the weight, with a cap its ends are scores like others. */
static void infinite_elements_of_q(void) {
    static const uint32_t lengths[] = {70, 1};
    uint32_t turn, i;
    for (turn = 0; turn < 162; turn++) {
        problem p = spoilt_problem(turn, 70, lengths, 2);
        uint32_t d = p.desc.head_dim;
        for (i = 0; i < 2; i++) {
            uint32_t row = 4 * i * d;
            ref_put(p.q, p.q_format, row + 3, (double)INFINITY);
            ref_put(p.q, p.q_format, row + d, (double)-INFINITY);
            ref_put(p.q, p.q_format, row + 2 * d + 1, (double)INFINITY); /* and its own opposite: some NaN */
            ref_put(p.q, p.q_format, row + 2 * d + 9, (double)INFINITY);
            if (turn % 2) ref_put(p.q, p.q_format, row + 3 * d + 5, (double)NAN);
        }
        if (turn % 4 == 3) ref_put(p.keys[0], p.format, 7 * d + 3, 0);           /* NaN in one head */
        if (turn % 4 == 2) { /* meets an infinite element, small ones, a zero */
            ref_put(p.keys[0], p.format, 9 * d + 3, (double)-INFINITY);
            ref_put(p.q, p.q_format, d + 3, turn % 8 == 2 ? 1e-7 : 0);
        }
        for (i = 0; i < 70; i++) /* what rounding may not lose */
            if (!(fabs(ref_get(p.keys[0], p.format, i * d)) > 0.01)) ref_put(p.keys[0], p.format, i * d, 0.5);
        problem_check(&p);
        problem_free(&p);
    }
}

/* Finite q and K of any size, whose scores are of the size of 1: nothing is infinite on the way. */
static void q_and_k_of_any_size(void) {
    static const double q_size[] = {3.3e38, 1.6e38, 1e30, 1e20, 1e-5, 1e-10, 1e-25};
    static const double k_size[] = {1e-30, 1e-25, 1, 6e4, 3.3e38, 1.5e38, 1e20};
    static const uint32_t lengths[] = {70};
    uint32_t turn, i, e, size;
    for (size = 0; size < 7; size++)
        for (turn = 0; turn < 162; turn += 1 + size % 2) {
            problem p;
            uint32_t d;
            double scale = 1 / (q_size[size] * k_size[size]);
            if (kv_types[turn % 3] == PTX_F16 && (k_size[size] > 6e4 || k_size[size] < 1)) continue;
            if (kv_types[turn / 3 % 3] == PTX_F16) continue;
            p = spoilt_problem(turn, 70, lengths, 1);
            d = p.desc.head_dim;
            p.desc.scale = (float)(p.desc.scale < 0 ? -scale : scale);
            for (i = 0; i < 4 * d; i++) ref_put(p.q, p.q_format, i, random_within(1) * q_size[size]);
            for (i = 0; i < 70; i++)
                for (e = 0; e < d; e++)
                    ref_put(p.keys[0], p.format, i * d + e, random_within(1) * k_size[size] / 64);
            problem_check(&p);
            problem_free(&p);
        }
}

/* One large element of q that meets only zeros of K, and small ones that make the scores. */
static void rows_of_q_that_span_magnitudes(void) {
    static const double large[] = {1, 1e4, 1e6, 1e8, 1e10};
    static const uint32_t lengths[] = {90};
    uint32_t turn, i, e;
    for (turn = 0; turn < 5 * 9; turn++) {
        ptxk_flash_decode_desc desc = plain(2, 1, 64, kv_types[turn % 3]);
        problem p;
        desc.q_type = turn / 3 % 3 == 2 ? PTX_BF16 : PTX_F32;
        desc.scale = 100;
        desc.flags = PTXK_FLASH_LSE;
        p = problem_of(&desc, 90, lengths, 1);
        for (i = 0; i < 2; i++)
            for (e = 0; e < 64; e++)
                ref_put(p.q, p.q_format, i * 64 + e, e ? random_within(1e-3) : large[turn / 9]);
        for (i = 0; i < 90; i++) ref_put(p.keys[0], p.format, i * 64, 0);
        run_on(&p, turn / 3 % 3 ? 80 : 75);
    }
}

/* f32 and bf16 values near the largest there is: the sum of many must not pass it on the way, neither in a
   block nor where parts meet. */
static void values_near_the_largest_of_f32(void) {
    uint32_t i, e, round;
    for (round = 0; round < 12; round++) {
        ptxk_flash_decode_desc desc = plain(4, 2, 64, round % 2 ? PTX_BF16 : PTX_F32);
        uint32_t lengths[3], chunk = chunk_of(4, 2, 64, format_of(desc.kv_type));
        problem p;
        lengths[0] = 1, lengths[1] = 70, lengths[2] = 3 * chunk + 5;
        desc.flags = PTXK_FLASH_LSE;
        if (round >= 8) desc.flags |= PTXK_FLASH_SCALAR;
        p = problem_of(&desc, lengths[2], lengths, 3);
        for (e = 0; e < 3; e++)
            for (i = 0; i < 2 * lengths[2] * 64; i++) { /* columns of one sign, and of both */
                ref_put(p.values[e], p.format, i, i % 4 ? 3.38e38 : random_within(3.38e38));
                if (round / 2 % 2 && i % 64 == 1) ref_put(p.keys[e], p.format, i, (double)INFINITY);
            }
        for (i = 0; i < 12; i++) ((float *)p.q)[i * 64 + 1] = 1;
        run_on(&p, round < 4 ? 75 : 80);
    }
}

/* Scores of 2^40 and more, of which the last bit is more than 2^x can take: equal keys share the weight all
   the same, in every step and part. */
static void scores_of_any_size(void) {
    uint32_t i, e, round, wrong = 0;
    for (round = 0; round < 12; round++) {
        ptxk_flash_decode_desc desc = plain(2, 1, 128, kv_types[round % 3]);
        uint32_t length = 3 * chunk_of(2, 1, 128, format_of(desc.kv_type)) + 40;
        double size = round % 3 == 1 ? 60000 : 1e14, even = 0;
        int target = round < 6 || capability < 80 ? 75 : 80;
        problem p = problem_of(&desc, length, &length, 1);
        for (e = 0; e < 128; e++) {
            double q = (1 - fabs(random_within(0.5))) * 1e14, x = (1 - fabs(random_within(0.5))) * size;
            if (round / 3 % 2) q = -q; /* all scores negative: the small keys win */
            ((float *)p.q)[e] = ((float *)p.q)[128 + e] = (float)q;
            for (i = 0; i < length; i++) ref_put(p.keys[0], p.format, i * 128 + e, i % 2 ? x / 2 : x);
        }
        for (i = 0; i < length; i++) {
            ref_put(p.values[0], p.format, i * 128 + 7, i % 8);
            if (i % 2 == round / 3 % 2) even += i % 8 / ceil((length - round / 3 % 2) / 2.0);
        }
        p.target = PTX_SM((unsigned)target);
        problem_check(&p);
        for (i = 0; i < 2; i++) wrong += !(fabs(ref_get(p.out, p.out_format, i * 128 + 7) - even) < 0.02);
        problem_free(&p);
    }
    CHECK(wrong == 0);
}

static void a_missing_page_is_nan_and_not_followed(void) {
    static const uint32_t lengths[] = {100, 100, 100};
    uint32_t i, h, wrong = 0;
    for (i = 0; i < 6; i++) {
        ptxk_flash_decode_desc desc = plain(4, 2, 64, kv_types[i % 3]);
        problem p;
        desc.page_size = 16;
        p = problem_of(&desc, 100, lengths, 3);
        if (i >= 3 && capability >= 80) p.target = PTX_SM(80);
        {
            device_ptr at[2];
            void *keys = physical(&p, 0, 0, 3, 0), *values = physical(&p, 1, 0, 3, 0);
            size_t bytes = cache_elements(&p) * ref_bytes(p.format);
            at[0] = upload(keys, bytes);
            at[1] = upload(values, bytes);
            p.table[p.max_pages + 2] = p.pool_pages + (i % 2 ? 0 : 0xf0000000u); /* of sequence 1 */
            if (launch(&p, &at[0], &at[1])) {
                compare(&p, 0, p.keys[0], p.values[0], 100);
                compare(&p, 2, p.keys[2], p.values[2], 100);
                for (h = 0; h < 256; h++) wrong += isnan(((float *)p.out)[256 + h]) ? 0 : 1;
            }
            cu.cuMemFree(at[0]);
            cu.cuMemFree(at[1]);
            free(keys);
            free(values);
        }
        problem_free(&p);
    }
    CHECK(wrong == 0);
}

/* 003: a graph replayed a stale length. Here each launch reads it; the counters are as they were found. */
static void launches_again_and_again(void) {
    static const uint32_t lengths[] = {700, 5, 699};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        ptxk_flash_decode_desc desc = plain(8, 2, 64, kv_types[i % 3]);
        problem p;
        desc.append_type = i < 2 ? PTX_F16 : 0;
        p = problem_of(&desc, 700, lengths, 3);
        p.runs = 3;
        run_on(&p, i % 2 ? 75 : 80);
    }
}

static void bad_features_are_refused(void) {
    ptxk_flash_decode_desc desc = plain(4, 2, 64, PTX_F16), bad;
    ptxk_flash_decode_shape shape = {1, 10, 10, 100, 0, 0};
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_plan plan;
#define REFUSED(field, value, says)                                                                          \
    bad = desc;                                                                                              \
    bad.field = value;                                                                                       \
    CHECK(ptxk_flash_decode_plan(&bad, &shape, &plan, &why) == PTX_E_DESC);                                  \
    CHECK_MORE(strstr(why.text, says) != NULL, why.text)
    REFUSED(queries, 9, "queries is 9, must be 1 to 8");
    REFUSED(queries, 0, "queries is 0, must be 1 to 8");
    REFUSED(q_type, PTX_F64, "q_type is PTX_F64, must be");
    REFUSED(q_type, PTXK_F16, "q_type is PTXK_F16, must be PTX_F32, PTX_F16 or PTX_BF16");
    REFUSED(q_type, 0, "q_type is 0, must be");
    REFUSED(out_type, 0, "out_type is 0, must be");
    REFUSED(out_type, 999, "out_type is 999");
    REFUSED(append_type, PTX_U32, "append_type is PTX_U32");
    REFUSED(window, 0x80000000u, "window is 2147483648");
    REFUSED(soft_cap, -1.0f, "soft_cap is -1");
    REFUSED(soft_cap, NAN, "soft_cap is ");
    REFUSED(page_size, 8, "page_size is 8, must be 0 or a power of two from 16");
    REFUSED(page_size, 48, "page_size is 48");
    REFUSED(flags, 20, "flags is 20");
    memset(&args, 0, sizeof args);
    args.q = 0x1000, args.k_caches = 0x3000, args.v_caches = 0x3008, args.lengths = 0x4000;
    args.out = 0x5000;
    args.max_seq = 100;
    CHECK(!ptxk_flash_decode_check(&desc, &args, &why));
#undef REFUSED
#define REFUSED(field, value, says)                                                                          \
    do {                                                                                                     \
        ptxk_flash_decode_args other = args;                                                                 \
        other.field = value;                                                                                 \
        CHECK(ptxk_flash_decode_check(&desc, &other, &why) == PTX_E_ARGUMENT);                               \
        CHECK_MORE(strstr(why.text, says) != NULL, why.text);                                                \
    } while (0)
    REFUSED(q, 0, "q is 0");
    REFUSED(out, 8, "out is not aligned to 16 bytes");
    REFUSED(lengths, 2, "lengths is not aligned to 4");
    REFUSED(workspace, 16, "workspace is not aligned to 256");
    REFUSED(row_stride, 63, "must be multiples of 8 elements");
    REFUSED(row_stride, 64, "rows overlap");
    desc.append_type = PTX_F16;
    REFUSED(q, 256, "k is 0");
#undef REFUSED
}

/* -- refusals -- */

static void refuse_desc(uint32_t heads, uint32_t kv_heads, uint32_t d, uint32_t type, float scale,
                        const char *message) {
    ptxk_flash_decode_desc desc;
    ptxk_flash_decode_shape shape = {1, 10, 10, 100, 0, 0};
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    uint32_t length = 5;
    memset(&desc, 0, sizeof desc);
    desc.heads = heads;
    desc.kv_heads = kv_heads;
    desc.head_dim = d;
    desc.kv_type = type;
    desc.q_type = desc.out_type = PTX_F32;
    desc.queries = 1;
    desc.scale = scale;
    CHECK(ptxk_flash_decode_emit(m, &desc) == PTX_E_DESC);
    CHECK_MORE(strstr(ptx_get_error(m)->message, message) != NULL, ptx_get_error(m)->message);
    CHECK_MORE(strstr(ptx_get_error(m)->message, "flash_decode.c:") != NULL, ptx_get_error(m)->message);
    CHECK(ptx_entry_count(m) == 0); /* not a line was emitted */
    CHECK(ptx_text(m, NULL) == NULL);
    ptx_module_free(m);
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, message) != NULL, why.text);
    CHECK(plan.launches == 0);
    CHECK(ptxk_flash_decode_bytes(&desc, &length, 1) == 0);
    CHECK(ptxk_flash_decode_chunk(&desc, 5, 1) == 0);
}

static void heads_not_multiple_of_kv_heads_refused(void) {
    refuse_desc(32, 5, 128, PTX_F16, 0, "heads is 32, must be a multiple of kv_heads, 5");
    refuse_desc(4, 8, 128, PTX_F16, 0, "heads is 4, must be a multiple of kv_heads, 8");
}

static void bad_descriptions_are_refused(void) {
    refuse_desc(0, 1, 128, PTX_F16, 0, "heads is 0, must be 1 to 65536");
    refuse_desc(65537, 1, 128, PTX_F16, 0, "heads is 65537, must be 1 to 65536");
    refuse_desc(1, 0, 128, PTX_F16, 0, "kv_heads is 0, must be 1 to 65536");
    refuse_desc(1, 0xffffffffu, 128, PTX_F16, 0, "kv_heads is 4294967295, must be 1 to 65536");
    refuse_desc(1, 1, 0, PTX_F16, 0, "head_dim is 0, must be a multiple of 8 from 8 to 256");
    refuse_desc(1, 1, 100, PTX_F16, 0, "head_dim is 100, must be a multiple of 8 from 8 to 256");
    refuse_desc(1, 1, 264, PTX_F16, 0, "head_dim is 264, must be a multiple of 8 from 8 to 256");
    refuse_desc(1, 1, 128, PTX_F64, 0, "must be PTX_F32, PTX_F16, PTX_BF16, PTX_E4M3 or PTXK_Q8_0");
    refuse_desc(1, 1, 128, 0, 0, "kv_type is 0, must be PTX_F32, PTX_F16, PTX_BF16");
    refuse_desc(1, 1, 128, 12345, 0, "kv_type is 12345, must be PTX_F32, PTX_F16");
    refuse_desc(1, 1, 128, PTX_F16, NAN, "scale is ");
    refuse_desc(1, 1, 128, PTX_F16, INFINITY, "scale is inf, must be from -1e30 to 1e30");
}

static void refuse_shape(uint32_t batch, uint32_t max_len, uint32_t max_seq, uint32_t sms,
                         const char *message) {
    ptxk_flash_decode_desc desc = {65536, 65536, 256, PTX_F32, 0, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 0};
    ptxk_flash_decode_shape shape;
    ptxk_message why;
    ptx_plan plan;
    shape.batch = batch;
    shape.max_len = max_len;
    shape.max_seq = max_seq;
    shape.sm_count = sms;
    shape.cluster = 0;
    shape.target = 0;
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, message) != NULL, why.text);
    CHECK(plan.launches == 0 && plan.workspace_bytes == 0);
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, NULL) == PTX_E_DESC);
}

static void bad_shapes_are_refused(void)
{
    ptxk_flash_decode_desc desc = {8, 2, 64, PTX_F16, 0, PTX_F32, PTX_F32, 1, 0, 0, 0, 0, 0};
    ptxk_flash_decode_shape shape = {0, 10, 10, 100, 0, 0};
    ptx_plan plan;
    ptxk_message why;
    ptx_module *m;
    refuse_shape(65536, 10, 10, 1, "batch is 65536, must be at most 65535");
    refuse_shape(1, 11, 10, 1, "max_len is 11, must be at most max_seq, 10");
    refuse_shape(1, 10, 0x80000000u, 1, "max_seq is 2147483648, must be at most 2147483647");
    refuse_shape(1, 10, 10, 0, "sm_count is 0, must be at least 1");
    refuse_shape(65535, 10, 0x7fffffffu, 1, "caches pass 2^64 bytes");
    CHECK(ptxk_flash_decode_plan(&desc, &shape, &plan, &why) == PTX_E_NONE); /* nothing to do */
    CHECK(plan.launches == 0 && plan.workspace_bytes == 0 && !why.text[0]);
    CHECK(ptxk_flash_decode_plan(NULL, &shape, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_flash_decode_plan(&desc, NULL, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_flash_decode_plan(&desc, &shape, NULL, &why) == PTX_E_ARGUMENT);
    m = ptx_module_new(NULL);
    CHECK(ptxk_flash_decode_emit(m, NULL) == PTX_E_ARGUMENT);
    ptx_module_free(m);
    CHECK(ptxk_flash_decode_emit(NULL, &desc) != PTX_E_NONE);
}

/* 64 KB of K and V and what is computed with, in less than the 99 KB that a block of every chip from sm_80 on may
   have. */
static void plans_keep_enough_in_flight(void)
{
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_E4M3, PTXK_Q8_0};
    uint32_t i, d, heads;
    for (i = 0; i < 4; i++)
        for (d = 8; d <= 256; d += 8)
            for (heads = 1; heads < 64; heads += 9) {
                ptxk_flash_decode_desc desc = plain(heads, 1, d, types[i]);
                ptxk_flash_decode_shape shape = {1, 4096, 4096, 132, 8, PTX_SM(90)};
                ptx_plan plan;
                if (ptxk_flash_decode_plan(&desc, &shape, &plan, NULL)) continue; /* 8 bits: not every d */
                CHECK(plan.launch[0].shared_bytes > 65536 && plan.launch[0].shared_bytes <= 101376);
                shape.target = PTX_SM(75);
                CHECK(!ptxk_flash_decode_plan(&desc, &shape, &plan, NULL) && !plan.launch[0].shared_bytes);
            }
}

static void registry_finds_its_operations(void)
{
    uint32_t i, v;
    const char *label = NULL;
    CHECK(ptxk_operation_count() >= 1 && !ptxk_operation_get(ptxk_operation_count()));
    CHECK(!ptxk_operation_find("none") && !ptxk_operation_find(NULL));
    for (i = 0; i < ptxk_operation_count(); i++) {
        const ptx_operation *o = ptxk_operation_get(i);
        unsigned char desc[256];
        CHECK(ptxk_operation_find(o->name) == o && o->desc_bytes <= sizeof desc);
        CHECK(!operation_example(i, 0, desc, o->desc_bytes - 1, &label));
        for (v = 0; operation_example(i, v, desc, sizeof desc, &label); v++) {
            ptx_module *m = ptx_module_new(NULL);
            CHECK(o->emit(m, PTX__AT, desc) == PTX_E_NONE);
            CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
            ptx_module_free(m);
        }
        CHECK(v > 0);
    }
}

/* -- traffic: sectors counted by the CPU driver against the bytes that any implementation must move -- */

static void traffic_is_within_5_percent(uint32_t heads, uint32_t kv_heads, uint32_t d, enum ref_format format,
                                        uint32_t batch, uint32_t sm_count, unsigned target)
{
    const uint32_t length = 4096;
    uint32_t lengths[BATCH_MAX], i;
    ptxsim_counters c;
    problem p;
    double ratio;
    for (i = 0; i < batch; i++) lengths[i] = length;
    p = problem_new(heads, kv_heads, d, format, length, lengths, batch);
    p.shape.sm_count = sm_count;
    p.target = PTX_SM(target);
    problem_check(&p);
    cu.ptxsim_counters_get(&c, sizeof c);
    CHECK(p.plan.min_bytes == ptxk_flash_decode_bytes(&p.desc, lengths, batch));
    ratio = bytes_moved(&p, &c) / (double)p.plan.min_bytes;
    printf("note: traffic of %2u heads on %u, d %u, %s, sm_%u, batch %u, length %u, %u splits for %u "
           "multiprocessors: %.4f of the lower bound; %.1f warp instructions a key and KV head, %.2f bank "
           "conflicts a wavefront, %.4f an instruction\n",
           heads, kv_heads, d,
           format == REF_F32   ? "f32"
           : format == REF_F16 ? "f16"
                               : "bf16",
           target, batch, length, p.plan.launch[0].grid[2], sm_count, ratio,
           (double)c.warp_instructions / ((double)length * batch * kv_heads),
           (double)c.shared_bank_conflicts / (double)c.shared_wavefronts,
           (double)c.shared_bank_conflicts / (double)c.warp_instructions);
    CHECK(ratio <= 1.05);
    CHECK(c.local_requests == 0 && p.plan.launches == 1);
    if (tensor_variant(&p)) { /* twice 16 x 8 x 16 for each 16 keys and dimensions, of K and of V */
        double products = (double)length * batch * kv_heads * d * 8;
        CHECK((double)c.tensor_operations >= 2 * products * 2);
        CHECK(c.async_copy_bytes >= 2 * (uint64_t)length * batch * kv_heads * d * 2);
        CHECK(target >= 90 ? c.async_copies < length * batch * kv_heads / 2 /* in bulk, or of 16 bytes */
                           : c.async_copy_bytes == 16 * c.async_copies);
    }
    problem_free(&p);
}

/* On a machine that sequences and KV heads can fill. Where they cannot, chunks are smaller, for time. */
static void traffic_where_the_machine_is_filled(void)
{
    static const struct {
        uint32_t heads, kv_heads, d;
        enum ref_format format;
        uint32_t batch, sm_count, target;
    } shapes[] = {{32, 4, 128, REF_F16, 16, 132, 90}, {64, 8, 128, REF_F16, 2, 16, 90},
                  {64, 8, 128, REF_BF16, 2, 16, 80},  {32, 8, 128, REF_F16, 1, 16, 75},
                  {32, 8, 128, REF_F16, 3, 132, 90},  {32, 8, 128, REF_F32, 1, 132, 90},
                  {8, 8, 128, REF_BF16, 1, 132, 75},  {28, 4, 128, REF_BF16, 1, 16, 90},
                  {16, 2, 64, REF_F16, 1, 8, 90},     {16, 2, 256, REF_F16, 1, 8, 75}};
    uint32_t i;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic_where_the_machine_is_filled: only the CPU driver counts\n");
        return;
    }
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (is_drawn(3))
            traffic_is_within_5_percent(shapes[i].heads, shapes[i].kv_heads, shapes[i].d, shapes[i].format,
                                        shapes[i].batch, shapes[i].sm_count, shapes[i].target);
}

/* One sequence does not fill a machine: chunks are then as small as it takes to give each multiprocessor a
   block, and what a chunk reads and writes for itself is all that is beyond the bound: q, a partial result
   written and read again (from the L2 cache, where it still is), lengths and pointers. With clusters it is
   less: see flash_cluster.c. */
static void traffic_where_the_machine_is_not_filled(void) {
    static const struct {
        uint32_t heads, kv_heads, d, sm_count;
    } shapes[] = {{32, 8, 128, 132}, {64, 8, 128, 132}, {8, 1, 128, 16}, {28, 4, 128, 66}};
    uint32_t i, length = 4096;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic_where_the_machine_is_not_filled: only the CPU driver counts\n");
        return;
    }
    for (i = 0; i < 4; i++) {
        problem p =
            problem_new(shapes[i].heads, shapes[i].kv_heads, shapes[i].d, REF_F16, length, &length, 1);
        ptxsim_counters c;
        double splits, own, ratio, group = shapes[i].heads / shapes[i].kv_heads, d = shapes[i].d;
        p.shape.sm_count = shapes[i].sm_count;
        p.target = PTX_SM(80);
        problem_check(&p);
        cu.ptxsim_counters_get(&c, sizeof c);
        splits = p.plan.launch[0].grid[2];
        own = splits * shapes[i].kv_heads * (group * d * 4 + 512)
              + 2 * (double)(p.plan.workspace_bytes - p.plan.zero_bytes);
        ratio = 32.0 * (double)(c.global_load_sectors + c.global_store_sectors) / (double)p.plan.min_bytes;
        printf("note: traffic of %2u heads on %u, one sequence of 4096, %.0f splits for %u multiprocessors: "
               "%.4f of the lower bound; the chunks' own makes %.4f\n",
               shapes[i].heads, shapes[i].kv_heads, splits, shapes[i].sm_count, ratio,
               1 + own / (double)p.plan.min_bytes);
        CHECK(splits * shapes[i].kv_heads >= shapes[i].sm_count);
        CHECK(ratio <= 1 + own / (double)p.plan.min_bytes);
        problem_free(&p);
    }
}

/* The variant without tensor cores has q and sums in shared memory at the ends of a block, 16 bytes of every
   32 at a time, and nothing in its loop: conflicts do not grow with the length. */
static void scalar_conflicts_are_not_in_the_loop(void) {
    static const uint32_t lengths[] = {256, 2048};
    uint64_t conflicts[2] = {0, 0}, passes[2] = {0, 0};
    uint32_t i;
    if (!cu.ptxsim_counters_get) return;
    for (i = 0; i < 2; i++) {
        problem p = problem_new(32, 8, 128, REF_F16, lengths[i], &lengths[i], 1);
        ptxsim_counters c;
        p.shape.sm_count = 1;
        problem_check(&p);
        cu.ptxsim_counters_get(&c, sizeof c);
        CHECK(p.plan.launch[0].grid[2] == 1);
        conflicts[i] = c.shared_bank_conflicts;
        passes[i] = c.shared_wavefronts;
        problem_free(&p);
    }
    CHECK(conflicts[0] == conflicts[1] && passes[0] == passes[1]);
}

/* -- machine instructions: ptxas alone can tell -- */

/* Whether an instruction is what a round is made of: of the computing warps LDSM and HMMA, of the loader UBLKCP. */
static uint32_t is_work(const unsigned char *code, uint32_t i, int loads) {
    uint32_t op = sass_opcode(code, i), low = op & 255;
    return loads ? op == 0x3ba : low == 0x3b || low == SASS_HMMA;
}

static uint32_t work_between(const unsigned char *code, uint32_t first, uint32_t last, int loads) {
    uint32_t n = 0;
    for (; first <= last; first++) n += is_work(code, first, loads);
    return n;
}

/* The fewest instructions on a way once around the loop first ... last that meets `work` of those. */
static uint32_t shortest_round(const unsigned char *code, uint32_t count, uint32_t first, uint32_t last,
                               uint32_t work, int loads) {
    uint32_t row = work + 1, i, w, e, changed = 1, *best = (uint32_t *)malloc(sizeof(uint32_t) * count * row),
             result;
    for (i = 0; i < count * row; i++) best[i] = UINT32_MAX; /* [i][w]: before instruction i, having met w */
    best[first * row] = 0;
    while (changed)
        for (changed = 0, i = 0; i < count; i++) {
            uint32_t to[2], op = sass_opcode(code, i);
            to[0] = op == SASS_BRA ? (uint32_t)sass_target(code, i) : op == SASS_EXIT ? UINT32_MAX : i + 1;
            to[1] = sass_guarded(code, i) ? i + 1 : UINT32_MAX;
            for (w = 0; w <= work && i != last; w++)
                for (e = 0; e < 2; e++) {
                    uint32_t met = w + is_work(code, i, loads) > work ? work : w + is_work(code, i, loads), *there;
                    if (best[i * row + w] == UINT32_MAX || to[e] >= count) continue;
                    there = &best[to[e] * row + met];
                    if (*there > best[i * row + w] + 1) *there = best[i * row + w] + 1, changed = 1;
                }
        }
    result = best[last * row + work];
    free(best);
    return result == UINT32_MAX ? result : result + 1;
}

/* The loop with most work, the shortest of those, and the fewest instructions on a way around it that does `work`. */
static uint32_t round_with(const unsigned char *code, uint32_t count, uint32_t work, int loads) {
    uint32_t j, first = 0, last = 0;
    for (j = 0; j < count; j++) {
        uint32_t to = sass_opcode(code, j) == SASS_BRA ? (uint32_t)sass_target(code, j) : j + 1;
        if (to < j && work_between(code, to, j - 1, loads) == work && (!last || j - to <= last - first))
            first = to, last = j;
    }
    return CHECK(last) ? shortest_round(code, count, first, last, work, loads) : 0;
}

/* Instructions of warps for a key, on sm_90. A step of the block is 64 keys, or 128: each of four warps has a quarter
   of them, for which it reads matrices of 16 x 16 and multiplies each by every 8 columns, once for each term of q and
   of the weights; the loader issues 16 bulk copies. */
static void instructions_per_key(uint32_t heads, uint32_t kv_type, uint32_t q_type, uint32_t d, uint32_t page,
                                 uint32_t terms, uint32_t keys, double most_computing, double most_loading) {
    ptxk_flash_decode_desc desc = plain(heads, 4, d, kv_type);
    ptx_module_desc module_desc;
    ptx_entry_info info;
    ptx_module *m;
    static unsigned char image[1 << 18];
    const unsigned char *code;
    unsigned remarks;
    uint32_t count, matrices = keys / 4 * d / 256, tiles = (heads / 4 + 7) / 8, computing, loading;
    memset(&module_desc, 0, sizeof module_desc);
    desc.q_type = q_type;
    desc.page_size = page;
    module_desc.target = PTX_SM(90);
    m = ptx_module_new(&module_desc);
    ptxk_flash_decode_emit(m, &desc);
    if (sass_assemble_for("sm_90", ptx_text(m, NULL), image, sizeof image, &remarks)
        && CHECK(ptx_entry_get(m, 0, &info)) && (code = sass_code(image, info.name, &count)) != NULL) {
        CHECK(remarks == 0); /* no spill */
        computing = round_with(code, count, matrices * (2 + tiles * (terms + 2)), 0);
        loading = round_with(code, count, 16, 1);
        printf("note: sm_90, %u heads of %u on one KV head, %s, q %s%s: %u instructions for %u keys, %.2f a key; "
               "the loader %u for %u keys, %.2f a key\n",
               heads / 4, d, ptx_type_name((ptx_type)kv_type), ptx_type_name((ptx_type)q_type),
               page ? ", pages" : "", computing, keys / 4, 4.0 * computing / keys, loading, keys,
               (double)loading / keys);
        CHECK(computing <= most_computing * keys / 4 && loading <= most_loading * keys);
    }
    ptx_module_free(m);
}

static void few_instructions_per_key(void) {
    if (!sass_possible("few_instructions_per_key")) return;
    instructions_per_key(32, PTX_F16, PTX_F32, 128, 0, 2, 128, 6.6, 1.2);
    instructions_per_key(16, PTX_F16, PTX_F16, 128, 64, 1, 128, 6.1, 2.3);
    instructions_per_key(64, PTX_BF16, PTX_F32, 64, 0, 3, 128, 8.8, 1.2);
    instructions_per_key(16, PTX_BF16, PTX_F32, 256, 0, 3, 64, 13.6, 2.4);
}

int main(void) {
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    fill_pools();
    bad_descriptions_are_refused();
    heads_not_multiple_of_kv_heads_refused();
    bad_shapes_are_refused();
    bad_features_are_refused();
    registry_finds_its_operations();
    plans_keep_enough_in_flight();
    few_instructions_per_key();
    if (CHECK(open_driver())) {
        zero_length_gives_zeros();
        length_above_max_seq_is_nan_and_touches_no_cache();
        infinite_scores();
        nan_scores_make_their_head_nan_and_no_other();
        d_above_128_is_stored();
        mixed_lengths_and_empty_chunks();
        grid_cannot_be_chosen_wrong();
        f16_and_bf16_of_all_magnitudes();
        scale_is_used();
        groups_of_more_than_8_heads();
        rows_of_one_or_two_vectors();
        offsets_past_2_to_32_elements();
        pages_past_2_to_32_elements();
        paged_caches();
        pages_of_rows();
        a_length_of_the_host();
        sliding_window_edges();
        one_to_eight_queries();
        soft_cap_bounds_infinite_scores();
        q_past_the_range_of_f16();
        infinite_elements_of_q();
        q_and_k_of_any_size();
        rows_of_q_that_span_magnitudes();
        values_near_the_largest_of_f32();
        scores_of_any_size();
        a_missing_page_is_nan_and_not_followed();
        launches_again_and_again();
        random_descriptions();
        every_head_dim_type_group_and_length();
        traffic_where_the_machine_is_filled();
        traffic_where_the_machine_is_not_filled();
        scalar_conflicts_are_not_in_the_loop();

        printf("note: largest error: %.3f of its bound\n", worst);
    }
    free(pool_f32);
    free(pool_f16);
    free(pool_bf16);
    return check_end();
}
