/* kv_scatter.c - the scatter writes the rows that it shall, converted right, and no other byte.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. Caches are filled with a pattern, and every element is looked at. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/numbers.h"
#include "../kerneltest.h"

#define TOKENS_MAX 64
#define BATCH_MAX 8
#define ABSENT 0xffffffffu

typedef struct problem {
    ptxk_kv_scatter_desc desc;
    ptxk_kv_scatter_args args; /* sizes, strides and steps; addresses are filled in by the run */
    ptx_target target;
    int by_arrays;             /* sequences and positions from device memory */
    uint32_t sequences[TOKENS_MAX], positions[TOKENS_MAX], *table;
    size_t elements;           /* of one cache, or of the pool */
    uint64_t where[TOKENS_MAX];
} problem;

static enum ref_format format_of(uint32_t type)
{
    return type == PTX_F32 ? REF_F32 : type == PTX_F16 ? REF_F16 : REF_BF16;
}

static problem problem_new(uint32_t heads, uint32_t d, uint32_t source, uint32_t cache, uint32_t page_size,
                           uint32_t tokens, uint32_t batch, uint32_t max_seq)
{
    problem p;
    uint32_t i;
    memset(&p, 0, sizeof p);
    p.target = PTX_SM(75);
    p.desc.kv_heads = heads;
    p.desc.head_dim = d;
    p.desc.source_type = source;
    p.desc.cache_type = cache;
    p.desc.page_size = page_size;
    p.args.tokens = tokens;
    p.args.batch = batch;
    p.args.max_seq = max_seq;
    p.args.head_stride = (uint64_t)max_seq * d;
    p.args.row_stride = d;
    p.elements = (size_t)heads * max_seq * d;
    p.by_arrays = 1;
    if (page_size) {
        p.args.max_pages = (max_seq + page_size - 1) / page_size;
        p.args.pool_pages = p.args.max_pages * batch + 3;
        p.elements = (size_t)p.args.pool_pages * heads * page_size * d;
        p.table = (uint32_t *)malloc(sizeof *p.table * batch * p.args.max_pages);
        for (i = 0; i < batch * p.args.max_pages; i++) p.table[i] = i + 3; /* no page twice */
        for (i = batch * p.args.max_pages; i-- > 1;) {
            uint32_t j = random_below(i + 1), kept = p.table[i];
            p.table[i] = p.table[j];
            p.table[j] = kept;
        }
    }
    for (i = 0; i < tokens; i++) { /* no place twice */
        p.sequences[i] = i % batch;
        p.positions[i] = (i / batch * 7 + i % batch) % max_seq;
    }
    return p;
}

static void *random_source(const problem *p)
{
    enum ref_format f = format_of(p->desc.source_type);
    size_t n = (size_t)p->args.tokens * p->desc.kv_heads * p->desc.head_dim, i;
    void *x = malloc(n * ref_bytes(f) + 1);
    for (i = 0; i < n; i++) {
        uint32_t kind = random_below(40);
        double v = random_within(4) * ldexp(1, (int)random_below(30) - 20);
        ref_put(x, f, i,
                kind == 0   ? 0.0
                : kind == 1 ? -0.0
                : kind == 2 ? INFINITY
                : kind == 3 ? NAN
                : kind == 4 ? random_within(1) * 0x1p-24
                : kind == 5 ? random_within(1) * 3e38
                            : v);
    }
    return x;
}

/* Where row (token, head) goes in the cache of its sequence, or in the pool; ABSENT: nowhere. */
static uint64_t row_of(const problem *p, uint32_t token, uint32_t head)
{
    uint32_t s = p->by_arrays ? p->sequences[token] : token * p->args.sequence_step;
    uint32_t at = p->by_arrays ? p->positions[token] : p->args.position + token * p->args.position_step, page;
    if (s >= p->args.batch || at >= p->args.max_seq) return ABSENT;
    if (!p->desc.page_size) return head * p->args.head_stride + at * p->args.row_stride;
    if (at / p->desc.page_size >= p->args.max_pages) return ABSENT;
    page = p->table[s * p->args.max_pages + at / p->desc.page_size];
    if (page >= p->args.pool_pages) return ABSENT;
    if (p->desc.flags & PTXK_SCATTER_PAGE_ROWS)
        return (((uint64_t)page * p->desc.page_size + at % p->desc.page_size) * p->desc.kv_heads + head)
               * p->desc.head_dim;
    return (((uint64_t)page * p->desc.kv_heads + head) * p->desc.page_size + at % p->desc.page_size)
           * p->desc.head_dim;
}

static void check_cache(const problem *p, const void *source, const void *before, const void *after,
                        uint32_t sequence)
{
    enum ref_format from = format_of(p->desc.source_type), to = format_of(p->desc.cache_type);
    size_t bytes = ref_bytes(to), i, wrong = 0;
    char *want = (char *)malloc(p->elements * bytes);
    uint32_t t, h;
    char detail[120];
    memcpy(want, before, p->elements * bytes);
    for (t = 0; t < p->args.tokens; t++)
        for (h = 0; h < p->desc.kv_heads; h++) {
            uint64_t row = row_of(p, t, h);
            uint32_t s = p->by_arrays ? p->sequences[t] : t * p->args.sequence_step;
            size_t first = ((size_t)t * p->desc.kv_heads + h) * p->desc.head_dim;
            if (row == ABSENT || (!p->desc.page_size && s != sequence)) continue;
            for (i = 0; i < p->desc.head_dim; i++)
                if (from == to)
                    memcpy(want + (row + i) * bytes, (const char *)source + (first + i) * bytes, bytes);
                else
                    ref_put(want, to, row + i, ref_get(source, from, first + i));
        }
    for (i = 0; i < p->elements; i++) {
        const char *have = (const char *)after + i * bytes;
        if (!memcmp(have, want + i * bytes, bytes)) continue;
        if (from != to && isnan(ref_get(want, to, i)) && isnan(ref_get(after, to, i))) continue;
        if (!wrong++)
            (void)snprintf(detail, sizeof detail, "element %lu is %g, not %g", (unsigned long)i,
                           ref_get(after, to, i), ref_get(want, to, i));
    }
    CHECK_MORE(wrong == 0, wrong ? detail : "");
    free(want);
}

static void problem_run(problem *p)
{
    ptx_module_desc module_desc;
    ptxk_kv_scatter_shape shape;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m;
    const char *text;
    void *module, *source[2], *before, *after;
    device_ptr caches[2][BATCH_MAX];
    uint32_t i, which, count = p->desc.page_size ? 1 : p->args.batch,
                       kinds = p->desc.flags & PTXK_SCATTER_SINGLE ? 1 : 2;
    size_t bytes = p->elements * ref_bytes(format_of(p->desc.cache_type));
    size_t from = (size_t)p->args.tokens * p->desc.kv_heads * p->desc.head_dim
                  * ref_bytes(format_of(p->desc.source_type));
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = p->target;
    m = ptx_module_new(&module_desc);
    ptxk_kv_scatter_emit(m, &p->desc);
    text = ptx_text(m, NULL);
    shape.tokens = p->args.tokens;
    CHECK_MORE(!ptxk_kv_scatter_plan(&p->desc, &shape, &plan, &why), why.text);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message) || !(module = load_text(text))) return;
    before = malloc(bytes + 1);
    after = malloc(bytes + 1);
    for (i = 0; i < bytes; i++) ((unsigned char *)before)[i] = (unsigned char)(0x5a + i % 7);
    for (which = 0; which < 2; which++) {
        source[which] = random_source(p);
        for (i = 0; i < count; i++) caches[which][i] = upload(before, bytes);
    }
    p->args.k = upload(source[0], from);
    p->args.v = kinds > 1 ? upload(source[1], from) : 0;
    p->args.k_caches = p->desc.page_size ? caches[0][0] : upload(caches[0], sizeof caches[0]);
    p->args.v_caches = 0;
    if (kinds > 1) p->args.v_caches = p->desc.page_size ? caches[1][0] : upload(caches[1], sizeof caches[1]);
    p->args.sequences = p->by_arrays ? upload(p->sequences, sizeof p->sequences) : 0;
    p->args.positions = p->by_arrays ? upload(p->positions, sizeof p->positions) : 0;
    p->args.block_table = 0;
    if (p->desc.page_size)
        p->args.block_table = upload(p->table, sizeof *p->table * p->args.batch * p->args.max_pages);
    CHECK_MORE(!ptxk_kv_scatter_check(&p->desc, &p->args, &why), why.text);
    for (i = 0; i < plan.launches; i++) launch_entry(m, module, &plan.launch[i], &p->args, sizeof p->args);
    CHECK(cu.cuCtxSynchronize() == 0);
    for (which = 0; which < 2; which++)
        for (i = 0; i < count; i++) {
            CHECK(cu.cuMemcpyDtoH(after, caches[which][i], bytes) == 0);
            if (which < kinds)
                check_cache(p, source[which], before, after, i);
            else
                CHECK(!memcmp(before, after, bytes));
            cu.cuMemFree(caches[which][i]);
        }
    check_reports();
    cu.cuMemFree(p->args.k);
    if (p->args.v) cu.cuMemFree(p->args.v);
    if (!p->desc.page_size) cu.cuMemFree(p->args.k_caches);
    if (!p->desc.page_size && p->args.v_caches) cu.cuMemFree(p->args.v_caches);
    if (p->args.sequences) cu.cuMemFree(p->args.sequences);
    if (p->args.positions) cu.cuMemFree(p->args.positions);
    if (p->args.block_table) cu.cuMemFree(p->args.block_table);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
    free(source[0]);
    free(source[1]);
    free(before);
    free(after);
    free(p->table);
}

static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};

static void every_type_page_and_head_dim(void)
{
    static const uint32_t dims[] = {1, 2, 6, 33, 64, 80, 128};
    uint32_t s, c, i, page;
    for (s = 0; s < 3; s++)
        for (c = 0; c < 3; c++)
            for (i = 0; i < 7; i++)
                for (page = 0; page <= 16; page += 16) {
                    problem p = problem_new(1 + random_below(4), dims[i], types[s], types[c], page,
                                            1 + random_below(20), 1 + random_below(4), 40);
                    p.target = i % 2 ? PTX_SM(75) : PTX_SM(80);
                    problem_run(&p);
                }
}

/* 003: d above 256 lost elements. */
static void d_above_256_is_stored(void)
{
    problem p = problem_new(2, 512, PTX_F32, PTX_F16, 0, 3, 2, 9);
    problem_run(&p);
    p = problem_new(1, 1000, PTX_BF16, PTX_BF16, 16, 3, 1, 20);
    problem_run(&p);
    p = problem_new(1, 257, PTX_F16, PTX_F32, 0, 3, 1, 5);
    problem_run(&p);
}

static void rows_first_layout_by_strides(void)
{
    problem p = problem_new(3, 64, PTX_F16, PTX_F16, 0, 10, 2, 30);
    p.args.head_stride = 64;
    p.args.row_stride = 3 * 64;
    problem_run(&p);
}

/* Pages of rows; K alone; both. */
static void pages_of_rows_and_one_cache_alone(void)
{
    uint32_t i;
    for (i = 1; i < 24; i++) {
        problem p = problem_new(1 + i % 5, i % 7 ? 64 : 33, types[i % 3], types[i / 2 % 3], 16u << i % 2,
                                1 + random_below(20), 1 + random_below(4), 90);
        p.desc.flags = i % 4;
        if (i % 3 == 2 && !(i & PTXK_SCATTER_PAGE_ROWS)) {
            p.desc.page_size = 0;
            p.elements = (size_t)p.desc.kv_heads * 90 * p.desc.head_dim;
        }
        p.target = i % 2 ? PTX_SM(75) : PTX_SM(80);
        problem_run(&p);
    }
}

static void batch_and_prompt_by_steps(void)
{
    problem p = problem_new(2, 16, PTX_F32, PTX_BF16, 0, 4, 4, 50);
    p.by_arrays = 0;
    p.args.position = 49;
    p.args.sequence_step = 1;
    problem_run(&p);
    p = problem_new(2, 16, PTX_F32, PTX_BF16, 16, 30, 1, 50);
    p.by_arrays = 0;
    p.args.position = 5;
    p.args.position_step = 1;
    problem_run(&p);
}

static void tokens_without_a_place_are_not_written(void)
{
    problem p = problem_new(2, 32, PTX_F32, PTX_F32, 0, 6, 3, 10);
    p.positions[0] = 10;
    p.positions[1] = 0xffffffffu;
    p.sequences[2] = 3;
    p.sequences[3] = 0xffffffffu;
    problem_run(&p);
    p = problem_new(2, 32, PTX_F16, PTX_F16, 16, 6, 3, 64);
    p.positions[0] = 64;
    p.table[p.sequences[1] * p.args.max_pages + p.positions[1] / 16] = 0xffffffffu;
    p.table[p.sequences[2] * p.args.max_pages + p.positions[2] / 16] = p.args.pool_pages;
    p.sequences[3] = 17;
    problem_run(&p);
}

/* 003: byte offsets wrapped at 4 GiB. One row of a cache of more than 2^33 elements is written and read. */
static void offsets_past_4_gib(void)
{
    problem p = problem_new(2, 128, PTX_F16, PTX_F16, 0, 1, 1, 1u << 26);
    ptxk_kv_scatter_shape shape = {1};
    ptx_plan plan;
    ptx_module *m;
    void *module, *source;
    device_ptr cache = 0;
    uint16_t have[128];
    uint64_t row;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP offsets_past_4_gib: needs the CPU driver's sparse memory\n");
        return;
    }
    if (!CHECK(cu.cuMemAlloc(&cache, p.elements * 2) == 0)) return;
    p.positions[0] = (1u << 26) - 1;
    m = ptx_module_new(NULL);
    ptxk_kv_scatter_emit(m, &p.desc);
    CHECK(!ptxk_kv_scatter_plan(&p.desc, &shape, &plan, NULL));
    module = load_text(ptx_text(m, NULL));
    source = random_source(&p);
    p.args.k = upload(source, 2 * 128 * 2);
    p.args.v = p.args.k;
    p.args.k_caches = upload(&cache, sizeof cache);
    p.args.v_caches = p.args.k_caches;
    p.args.sequences = upload(p.sequences, 4);
    p.args.positions = upload(p.positions, 4);
    CHECK(ptxk_kv_scatter_check(&p.desc, &p.args, NULL) == PTX_E_ARGUMENT);
    plan.launch[0].grid[1] = 1; /* K alone: both caches are one here */
    launch_entry(m, module, &plan.launch[0], &p.args, sizeof p.args);
    CHECK(cu.cuCtxSynchronize() == 0);
    row = row_of(&p, 0, 1);
    CHECK(row > (uint64_t)1 << 33);
    CHECK(cu.cuMemcpyDtoH(have, cache + row * 2, sizeof have) == 0);
    CHECK(!memcmp(have, (const uint16_t *)source + 128, sizeof have));
    check_reports();
    cu.cuMemFree(cache);
    cu.cuMemFree(p.args.k);
    cu.cuMemFree(p.args.k_caches);
    cu.cuMemFree(p.args.sequences);
    cu.cuMemFree(p.args.positions);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
    free(source);
}

static void refused_desc(uint32_t heads, uint32_t d, uint32_t from, uint32_t to, uint32_t page,
                         uint32_t flags, const char *says)
{
    ptxk_kv_scatter_desc desc;
    ptxk_kv_scatter_shape shape = {1};
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    desc.kv_heads = heads;
    desc.head_dim = d;
    desc.source_type = from;
    desc.cache_type = to;
    desc.page_size = page;
    desc.flags = flags;
    CHECK(ptxk_kv_scatter_plan(&desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, says), why.text);
    CHECK(ptxk_kv_scatter_emit(m, &desc) == PTX_E_DESC);
    CHECK_MORE(strstr(ptx_get_error(m)->message, says), ptx_get_error(m)->message);
    ptx_module_free(m);
}

static void bad_descriptions_are_refused(void)
{
    ptx_module *m = ptx_module_new(NULL);
    refused_desc(0, 64, PTX_F16, PTX_F16, 0, 0, "kv_heads is 0");
    refused_desc(65537, 64, PTX_F16, PTX_F16, 0, 0, "kv_heads is 65537");
    refused_desc(1, 0, PTX_F16, PTX_F16, 0, 0, "head_dim is 0");
    refused_desc(1, 65537, PTX_F16, PTX_F16, 0, 0, "head_dim is 65537");
    refused_desc(1, 64, PTX_U32, PTX_F16, 0, 0, "source_type");
    refused_desc(1, 64, PTX_F16, PTX_F64, 0, 0, "cache_type");
    refused_desc(1, 64, PTX_F16, PTX_F16, 8, 0, "page_size is 8");
    refused_desc(1, 64, PTX_F16, PTX_F16, 24, 0, "page_size is 24");
    refused_desc(1, 64, PTX_F16, PTX_F16, 131072, 0, "page_size is 131072");
    refused_desc(1, 64, PTX_F16, PTX_F16, 16, 4, "flags is 4");
    refused_desc(1, 64, PTX_F16, PTX_F16, 0, 1, "page_size is 0");
    CHECK(ptxk_kv_scatter_emit(m, NULL) == PTX_E_ARGUMENT);
    ptx_module_free(m);
}

static void bad_shapes_and_arguments_are_refused(void)
{
    ptxk_kv_scatter_desc desc = {8, 128, PTX_F32, PTX_F16, 0, 0}, paged = {8, 128, PTX_F32, PTX_F16, 16, 0},
                         single = {8, 128, PTX_F32, PTX_F16, 0, PTXK_SCATTER_SINGLE};
    ptxk_kv_scatter_shape shape = {0xffffffffu};
    ptxk_kv_scatter_args good, a;
    ptxk_message why;
    ptx_plan plan;
    CHECK(ptxk_kv_scatter_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && strstr(why.text, "tokens"));
    CHECK(ptxk_kv_scatter_plan(&desc, NULL, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_kv_scatter_plan(&desc, &shape, NULL, &why) == PTX_E_ARGUMENT);
    shape.tokens = 0;
    CHECK(!ptxk_kv_scatter_plan(&desc, &shape, &plan, &why) && plan.launches == 0);
    shape.tokens = 3;
    CHECK(!ptxk_kv_scatter_plan(&desc, &shape, &plan, &why) && plan.min_bytes == 2 * 3 * 8 * 128 * 6);
    memset(&good, 0, sizeof good);
    good.k = good.v = good.block_table = 0x10000;
    good.k_caches = 0x100000, good.v_caches = 0x800000;
    good.tokens = good.batch = good.max_pages = good.pool_pages = 4;
    good.max_seq = 64;
    good.head_stride = 64 * 128;
    good.row_stride = 128;
    CHECK(!ptxk_kv_scatter_check(&desc, &good, &why) && !ptxk_kv_scatter_check(&paged, &good, &why));
    CHECK(!ptxk_kv_scatter_plan(&single, &shape, &plan, &why) && plan.min_bytes == 3 * 8 * 128 * 6);
    CHECK(plan.launch[0].grid[1] == 1);
    a = good, a.v = a.v_caches = 0;
    CHECK(!ptxk_kv_scatter_check(&single, &a, &why));
#define BAD(which, change, says)                                                                             \
    do {                                                                                                     \
        a = good;                                                                                            \
        change;                                                                                              \
        CHECK(ptxk_kv_scatter_check(&which, &a, &why) == PTX_E_ARGUMENT);                                    \
        CHECK_MORE(strstr(why.text, says), why.text);                                                        \
    } while (0)
    BAD(single, a.k = 0, "k is 0");
    BAD(single, a.k_caches = 0, "k_caches is 0");
    BAD(desc, a.k = 0, "k is 0");
    BAD(desc, a.v = 0, "v is 0");
    BAD(desc, a.v_caches = 0, "v_caches is 0");
    BAD(paged, a.block_table = 0, "block_table is 0");
    BAD(desc, a.k = 0x10008, "k is not aligned to 16");
    BAD(desc, a.k_caches = 0x10004, "k_caches is not aligned to 8");
    BAD(paged, a.k_caches = 0x10008, "k_caches is not aligned to 16");
    BAD(desc, a.positions = 0x10002, "positions is not aligned to 4");
    BAD(desc, a.position = 0xffffffffu; a.position_step = 1, "passes 2^32");
    BAD(desc, a.sequence_step = 0x80000000u, "passes 2^32");
    BAD(desc, a.row_stride = 129, "multiples of 4");
    BAD(desc, a.row_stride = 64, "overlap");
    BAD(desc, a.head_stride = 128, "overlap");
    BAD(desc, a.head_stride = (uint64_t)1 << 62, "2^60");
#undef BAD
    CHECK(ptxk_kv_scatter_check(&desc, NULL, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_kv_scatter_check(NULL, &good, &why) == PTX_E_ARGUMENT);
}

int main(void)
{
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    bad_descriptions_are_refused();
    bad_shapes_and_arguments_are_refused();
    if (CHECK(open_driver())) {
        every_type_page_and_head_dim();
        d_above_256_is_stored();
        rows_first_layout_by_strides();
        pages_of_rows_and_one_cache_alone();
        batch_and_prompt_by_steps();
        tokens_without_a_place_are_not_written();
        offsets_past_4_gib();
    }
    return check_end();
}
