/* paged_steps.c - caches as a server has them: sequences that grow by random tokens in random order, and
 * end, whose pages others get, and attention over them after each step, beside double. Scatter and append put
 * the tokens there; pages, block tables, lengths, strides and types are random.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/flash_decode.h"
#include "../kerneltest.h"

#define BATCH 3u
#define TOKENS 200u
#define PAGES 64u

typedef struct server {
    ptxk_kv_scatter_desc put;
    ptxk_flash_decode_desc attend;
    ptx_module *m;
    void *module;
    uint32_t first_of_attend; /* entry */
    uint32_t batch, max_seq, max_pages, pool_pages, queries;
    uint32_t length[BATCH], table[BATCH * PAGES], pages[BATCH * PAGES], free_pages;
    uint64_t head_stride, row_stride;
    size_t elements;        /* of a cache, or of the pool */
    void *truth[2][BATCH];  /* [kv_heads][max_seq][d] */
    device_ptr store[2], caches[2]; /* all caches or the pool; their addresses */
} server;

static enum ref_format format_of(uint32_t type) {
    return type == PTX_F16 ? REF_F16 : type == PTX_BF16 ? REF_BF16 : REF_F32;
}

static uint32_t random_type(void) {
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    return types[random_below(3)];
}

static size_t truth_bytes(const server *s) {
    return (size_t)s->put.kv_heads * s->max_seq * s->put.head_dim * ref_bytes(format_of(s->put.cache_type));
}

static void server_new(server *s, uint32_t turn) {
    static const uint32_t dims[] = {8, 40, 64, 128, 136}, groups[] = {1, 3, 4, 8, 9};
    ptx_module_desc desc;
    device_ptr at[BATCH];
    uint32_t i, which, d = dims[random_below(5)];
    size_t bytes;
    void *poison;
    memset(s, 0, sizeof *s);
    s->put.kv_heads = s->attend.kv_heads = 1 + random_below(3);
    s->put.head_dim = s->attend.head_dim = d;
    s->put.source_type = random_type();
    s->put.cache_type = s->attend.kv_type = random_type();
    s->put.page_size = s->attend.page_size = turn % 4 ? 16u << random_below(3) : 0;
    s->attend.heads = s->attend.kv_heads * groups[random_below(5)];
    s->put.flags = s->put.page_size && random_below(2) ? PTXK_SCATTER_PAGE_ROWS : 0;
    s->attend.flags = s->put.flags ? PTXK_FLASH_PAGE_ROWS : 0;
    s->attend.q_type = s->attend.out_type = PTX_F32;
    s->attend.append_type = turn & 1 ? random_type() : 0;
    s->attend.queries = s->queries = 1 + (random_below(2) ? random_below(8) : 0);
    s->attend.window = random_below(3) ? 0 : 1 + random_below(150);
    s->batch = 1 + random_below(BATCH);
    s->max_seq = 100 + random_below(300);
    s->row_stride = turn % 8 == 4 ? (uint64_t)s->put.kv_heads * d : d + 8 * random_below(3);
    s->head_stride = turn % 8 == 4 ? d : s->max_seq * s->row_stride + 8 * random_below(9);
    s->elements = (size_t)(s->put.kv_heads * s->head_stride + s->max_seq * s->row_stride);
    if (s->put.page_size) { /* some sequences wait until others end */
        s->max_pages = (s->max_seq + s->put.page_size - 1) / s->put.page_size;
        s->pool_pages = s->max_pages + random_below(s->max_pages * s->batch);
        s->elements = (size_t)s->pool_pages * s->put.kv_heads * s->put.page_size * d;
        for (i = 0; i < s->pool_pages; i++) s->pages[i] = i;
        s->free_pages = s->pool_pages;
        memset(s->table, 0xff, sizeof s->table);
    }
    memset(&desc, 0, sizeof desc);
    desc.target = runnable(PTX_SM(random_below(3) ? 80 : 75));
    s->m = ptx_module_new(&desc);
    CHECK(!ptxk_kv_scatter_emit(s->m, &s->put) && !ptxk_flash_decode_emit(s->m, &s->attend));
    s->first_of_attend = 1;
    s->module = ptx_text(s->m, NULL) ? load_text(ptx_text(s->m, NULL)) : NULL;
    bytes = s->elements * ref_bytes(format_of(s->put.cache_type));
    poison = malloc(bytes * s->batch);
    memset(poison, 0xff, bytes * s->batch);
    for (which = 0; which < 2; which++) {
        s->store[which] = upload(poison, s->put.page_size ? bytes : bytes * s->batch);
        for (i = 0; i < s->batch; i++) {
            s->truth[which][i] = malloc(truth_bytes(s));
            memset(s->truth[which][i], 0xff, truth_bytes(s));
            at[i] = s->store[which] + i * bytes;
        }
        s->caches[which] = s->put.page_size ? s->store[which] : upload(at, s->batch * sizeof *at);
    }
    free(poison);
}

static void server_free(server *s) {
    uint32_t i, which;
    for (which = 0; which < 2; which++) {
        for (i = 0; i < s->batch; i++) free(s->truth[which][i]);
        if (!s->put.page_size) cu.cuMemFree(s->caches[which]);
        cu.cuMemFree(s->store[which]);
    }
    if (s->module) cu.cuModuleUnload(s->module);
    ptx_module_free(s->m);
}

/* A sequence has pages for `length` tokens, any of those that are free; 0: there are too few. */
static int server_room(server *s, uint32_t b, uint32_t length) {
    uint32_t i, need = s->put.page_size ? (length + s->put.page_size - 1) / s->put.page_size : 0, missing = 0;
    if (length > s->max_seq) return 0;
    for (i = 0; i < need; i++) missing += s->table[b * s->max_pages + i] == UINT32_MAX;
    if (missing > s->free_pages) return 0;
    for (i = 0; i < need; i++) {
        uint32_t *entry = &s->table[b * s->max_pages + i], taken = random_below(s->free_pages + 1);
        if (*entry != UINT32_MAX) continue;
        taken %= s->free_pages;
        *entry = s->pages[taken];
        s->pages[taken] = s->pages[--s->free_pages];
    }
    return 1;
}

/* A sequence ends: its pages are free, with what they hold. */
static void server_end(server *s, uint32_t b) {
    uint32_t i;
    for (i = 0; i < s->max_pages; i++) {
        uint32_t *entry = &s->table[b * s->max_pages + i];
        if (*entry != UINT32_MAX) s->pages[s->free_pages++] = *entry;
        *entry = UINT32_MAX;
    }
    for (i = 0; i < 2; i++) memset(s->truth[i][b], 0xff, truth_bytes(s));
    s->length[b] = 0;
}

/* Tokens of `format`, and the n-th of them as row `position` of the truth. */
static void *random_rows(size_t elements, enum ref_format format) {
    void *rows = malloc(elements * ref_bytes(format) + 1);
    size_t i;
    for (i = 0; i < elements; i++) ref_put(rows, format, i, random_within(2));
    return rows;
}

static void truth_put(server *s, uint32_t which, uint32_t b, uint32_t position, const void *rows,
                      enum ref_format format, size_t n) {
    uint32_t g, e, d = s->put.head_dim;
    for (g = 0; g < s->put.kv_heads; g++)
        for (e = 0; e < d; e++)
            ref_put(s->truth[which][b], format_of(s->put.cache_type),
                    ((size_t)g * s->max_seq + position) * d + e,
                    ref_get(rows, format, (n * s->put.kv_heads + g) * d + e));
}

/* Up to 60 tokens for each sequence, in any order. */
static void step_put(server *s) {
    uint32_t b, i, n = 0, which, sequence[TOKENS], position[TOKENS];
    enum ref_format format = format_of(s->put.source_type);
    ptxk_kv_scatter_shape shape;
    ptxk_kv_scatter_args args;
    ptxk_message why;
    ptx_plan plan;
    void *rows[2];
    for (b = 0; b < s->batch; b++) {
        uint32_t more = random_below(3) ? random_below(60) : random_below(2);
        if (!server_room(s, b, s->length[b] + more)) {
            if (random_below(2)) server_end(s, b);
            continue;
        }
        for (i = 0; i < more; i++, n++) sequence[n] = b, position[n] = s->length[b]++;
    }
    for (i = n; i-- > 1;) {
        uint32_t j = random_below(i + 1), x = sequence[i], y = position[i];
        sequence[i] = sequence[j], position[i] = position[j];
        sequence[j] = x, position[j] = y;
    }
    if (!n) return;
    memset(&args, 0, sizeof args);
    for (which = 0; which < 2; which++) {
        rows[which] = random_rows((size_t)n * s->put.kv_heads * s->put.head_dim, format);
        for (i = 0; i < n; i++) truth_put(s, which, sequence[i], position[i], rows[which], format, i);
    }
    args.k = upload(rows[0], (size_t)n * s->put.kv_heads * s->put.head_dim * ref_bytes(format));
    args.v = upload(rows[1], (size_t)n * s->put.kv_heads * s->put.head_dim * ref_bytes(format));
    args.k_caches = s->caches[0];
    args.v_caches = s->caches[1];
    args.sequences = upload(sequence, n * 4);
    args.positions = upload(position, n * 4);
    args.block_table = s->put.page_size ? upload(s->table, s->batch * s->max_pages * 4) : 0;
    args.head_stride = s->head_stride;
    args.row_stride = s->row_stride;
    args.tokens = shape.tokens = n;
    args.batch = s->batch;
    args.max_seq = s->max_seq;
    args.max_pages = s->max_pages;
    args.pool_pages = s->pool_pages;
    CHECK_MORE(!ptxk_kv_scatter_plan(&s->put, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_kv_scatter_check(&s->put, &args, &why), why.text);
    for (i = 0; i < plan.launches; i++) launch_entry(s->m, s->module, &plan.launch[i], &args, sizeof args);
    CHECK(cu.cuCtxSynchronize() == 0);
    check_reports();
    for (which = 0; which < 2; which++) free(rows[which]);
    cu.cuMemFree(args.k);
    cu.cuMemFree(args.v);
    cu.cuMemFree(args.sequences);
    cu.cuMemFree(args.positions);
    if (args.block_table) cu.cuMemFree(args.block_table);
}

static double worst;

static void compare(const server *s, uint32_t b, const float *out, const void *q, uint32_t splits,
                    int tensor) {
    size_t rows = (size_t)s->queries * s->attend.heads, n = rows * s->attend.head_dim, i, wrong = 0;
    double *truth = (double *)malloc(n * 8), *bound = (double *)malloc(n * 8);
    double *lse = (double *)malloc(rows * 8), *lse_bound = (double *)malloc(rows * 8);
    ref_attention r;
    char text[200];
    memset(&r, 0, sizeof r);
    r.heads = s->attend.heads;
    r.kv_heads = s->attend.kv_heads;
    r.d = s->attend.head_dim;
    r.queries = s->queries;
    r.window = s->attend.window;
    r.q_format = r.out_format = REF_F32;
    r.kv_format = format_of(s->attend.kv_type);
    r.scale = 1 / sqrt(s->attend.head_dim);
    r.rows = r.max_seq = s->max_seq;
    r.length = s->length[b];
    r.splits = splits;
    r.chunk = ptxk_flash_decode_chunk(&s->attend, s->length[b], splits);
    r.tensor = tensor;
    ref_flash_decode(&r, truth, bound, lse, lse_bound, (const char *)q + b * n * 4, s->truth[0][b],
                     s->truth[1][b]);
    for (i = 0; i < n; i++) {
        double error = fabs((double)out[b * n + i] - truth[i]);
        if (!(error <= bound[i])) wrong++;
        else if (bound[i] > 0 && error / bound[i] > worst) worst = error / bound[i];
    }
    (void)snprintf(text, sizeof text,
                   "sequence %u of %u, length %u of %u, pages of %u, d %u, %u queries: %u wrong", b, s->batch,
                   s->length[b], s->max_seq, s->put.page_size, s->attend.head_dim, s->queries,
                   (unsigned)wrong);
    CHECK_MORE(wrong == 0, text);
    free(truth);
    free(bound);
    free(lse);
    free(lse_bound);
}

/* All sequences get `queries` more tokens, appended on the way, or the last ones are asked again. */
static void step_attend(server *s) {
    size_t rows = (size_t)s->batch * s->queries, n = rows * s->attend.heads * s->attend.head_dim;
    size_t fresh_n = rows * s->put.kv_heads * s->put.head_dim;
    enum ref_format format = format_of(s->attend.append_type);
    ptxk_flash_decode_shape shape;
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_launch launch;
    ptx_plan plan;
    void *q, *fresh[2] = {NULL, NULL};
    float *out;
    uint32_t b, t, which, append = s->attend.append_type;
    int tensor = (ptx_module_target(s->m) & 0xfffu) >= 80 && s->attend.kv_type != PTX_F32;
    for (b = 0; b < s->batch && append; b++) {
        while (!server_room(s, b, s->length[b] + s->queries)) {
            uint32_t ends = s->length[b] ? b : random_below(s->batch); /* to make room */
            server_end(s, ends);
        }
        s->length[b] += s->queries;
    }
    memset(&args, 0, sizeof args);
    for (which = 0; which < 2 && append; which++) {
        fresh[which] = random_rows(fresh_n, format);
        for (b = 0; b < s->batch; b++)
            for (t = 0; t < s->queries && s->length[b]; t++)
                if (s->length[b] + t >= s->queries)
                    truth_put(s, which, b, s->length[b] + t - s->queries, fresh[which], format,
                              b * s->queries + t);
    }
    q = random_rows(n, REF_F32);
    out = (float *)malloc(n * 4);
    memset(out, 0xff, n * 4);
    memset(&shape, 0, sizeof shape);
    shape.batch = s->batch;
    shape.max_len = shape.max_seq = s->max_seq;
    shape.sm_count = random_below(2) ? 132 : 1;
    shape.cluster = (ptx_module_target(s->m) & 0xfffu) >= 90 ? 8 : 0;
    shape.target = ptx_module_target(s->m);
    CHECK_MORE(!ptxk_flash_decode_plan(&s->attend, &shape, &plan, &why), why.text);
    args.q = upload(q, n * 4);
    args.k_caches = s->caches[0];
    args.v_caches = s->caches[1];
    args.lengths = upload(s->length, s->batch * 4);
    args.out = upload(out, n * 4);
    if (append) {
        args.k = upload(fresh[0], fresh_n * ref_bytes(format));
        args.v = upload(fresh[1], fresh_n * ref_bytes(format));
    }
    args.block_table = s->put.page_size ? upload(s->table, s->batch * s->max_pages * 4) : 0;
    if (!s->put.page_size) args.head_stride = s->head_stride, args.row_stride = s->row_stride;
    args.max_seq = s->max_seq;
    args.max_pages = s->max_pages;
    args.pool_pages = s->pool_pages;
    if (plan.workspace_bytes) {
        void *zero = calloc(1, (size_t)plan.workspace_bytes);
        args.workspace = upload(zero, (size_t)plan.workspace_bytes);
        free(zero);
    }
    CHECK_MORE(!ptxk_flash_decode_check(&s->attend, &args, &why), why.text);
    launch = plan.launch[0];
    launch.entry = s->first_of_attend;
    launch_entry(s->m, s->module, &launch, &args, sizeof args);
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuMemcpyDtoH(out, args.out, n * 4) == 0);
    check_reports();
    for (b = 0; b < s->batch; b++)
        compare(s, b, out, q, plan.launch[0].grid[2], tensor);
    cu.cuMemFree(args.q);
    cu.cuMemFree(args.lengths);
    cu.cuMemFree(args.out);
    if (append) cu.cuMemFree(args.k), cu.cuMemFree(args.v);
    if (args.block_table) cu.cuMemFree(args.block_table);
    if (args.workspace) cu.cuMemFree(args.workspace);
    free(q);
    free(out);
    free(fresh[0]);
    free(fresh[1]);
}

int main(void) {
    const char *rounds = getenv("PAGED_ROUNDS");
    uint32_t turn, step, n = rounds ? (uint32_t)atoi(rounds) : 80;
    start_random();
    if (CHECK(open_driver())) {
        for (turn = 0; turn < n; turn++) {
            uint32_t before = failed;
            server s;
            server_new(&s, turn);
            if (CHECK(s.module != NULL))
                for (step = 0; step < 5; step++) {
                    step_put(&s);
                    step_attend(&s);
                }
            if (failed != before) printf("  round %u\n", turn);
            server_free(&s);
        }
        printf("note: %u caches in 5 steps each, largest error %.3f of its bound\n", n, worst);
    }
    return check_end();
}
