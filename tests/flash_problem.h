/* flash_problem.h - a problem of decode attention: descriptions, data on the host, what came out, and the
 * comparison with the truth.
 *
 * Include it behind kerneltest.h and reference/flash_decode.h. Data is fresh in every run; PTXGEN_SEED=n
 * repeats one. Outputs and workspace are filled with NaN before each run, and so are the rows of the caches
 * past the end of a sequence. */
#ifndef FLASH_PROBLEM_H
#define FLASH_PROBLEM_H

#define BATCH_MAX 16
enum layout { HEADS_FIRST, ROWS_FIRST, WIDE_STRIDES };
typedef struct problem {
    ptxk_flash_decode_desc desc;
    ptxk_flash_decode_shape shape;
    ptx_target target;
    enum layout layout;
    int runs; /* launches of the plan, one after the other; 0: 1 */
    uint32_t most; /* blocks of a cluster, from sm_90 on; 0: 8 */
    int by_number; /* the lengths are one, which the arguments name */
    enum ref_format format, q_format, out_format, fresh_format;
    uint32_t queries, lengths[BATCH_MAX], *table, max_pages, pool_pages;
    const uint32_t *tree; /* [batch][queries], with PTXK_FLASH_TREE */
    const float *prior, *prior_lse; /* with PTXK_FLASH_PRIOR */
    float *sinks; /* [heads], with PTXK_FLASH_SINK */
    void *q, *out, *fresh[2]; /* as the kernel has them */
    float *lse;
    void *keys[BATCH_MAX], *values[BATCH_MAX]; /* [kv_heads][max_seq][d], appended rows and all */
    ptx_plan plan;
} problem;

static float *pool_f32;
static uint16_t *pool_f16, *pool_bf16;
#define POOL 300007u

static void fill_pools(void) {
    uint32_t i;
    pool_f32 = (float *)malloc(POOL * sizeof *pool_f32);
    pool_f16 = (uint16_t *)malloc(POOL * sizeof *pool_f16);
    pool_bf16 = (uint16_t *)malloc(POOL * sizeof *pool_bf16);
    for (i = 0; i < POOL; i++) {
        double x = random_within(2);
        pool_f32[i] = (float)x;
        pool_f16[i] = ref_to_f16(x);
        pool_bf16[i] = ref_to_bf16(x);
    }
}

static size_t head_bytes(const problem *p) {
    return (size_t)p->shape.max_seq * p->desc.head_dim * ref_bytes(p->format);
}

/* Random rows up to the length, NaN behind. */
static void *random_cache(const problem *p, uint32_t length) {
    size_t row = p->desc.head_dim * ref_bytes(p->format), g, i;
    char *cache = (char *)malloc(p->desc.kv_heads * head_bytes(p) + 1);
    const char *pool = p->format == REF_F32   ? (const char *)pool_f32
                       : p->format == REF_F16 ? (const char *)pool_f16
                                              : (const char *)pool_bf16;
    memset(cache, 0xff, p->desc.kv_heads * head_bytes(p));
    for (g = 0; g < p->desc.kv_heads; g++)
        for (i = 0; i < length && i < p->shape.max_seq; i++)
            memcpy(cache + g * head_bytes(p) + i * row,
                   pool + random_below(POOL - p->desc.head_dim) * ref_bytes(p->format), row);
    return cache;
}

static uint32_t type_of(enum ref_format format) {
    return format == REF_F32 ? PTX_F32 : format == REF_F16 ? PTX_F16 : PTX_BF16;
}

static enum ref_format format_of(uint32_t type) {
    return type == PTX_F16 ? REF_F16 : type == PTX_BF16 ? REF_BF16 : REF_F32;
}

static size_t q_rows(const problem *p) { return (size_t)p->shape.batch * p->queries * p->desc.heads; }

static size_t lse_count(const problem *p) { return q_rows(p); }

/* From a description: types, pages, queries and all. desc.head_dim ... are set; batch, max_seq are given. */
static problem problem_of(const ptxk_flash_decode_desc *desc, uint32_t max_seq, const uint32_t *lengths,
                          uint32_t batch) {
    problem p;
    uint32_t i, which;
    size_t n, row;
    memset(&p, 0, sizeof p);
    p.desc = *desc;
    p.format = format_of(desc->kv_type);
    p.q_format = format_of(desc->q_type);
    p.out_format = format_of(desc->out_type);
    p.fresh_format = format_of(desc->append_type);
    p.queries = desc->queries;
    p.shape.batch = batch;
    p.shape.max_seq = max_seq;
    p.shape.sm_count = 132;
    p.target = PTX_SM(75);
    n = q_rows(&p) * desc->head_dim;
    p.q = malloc(n * ref_bytes(p.q_format) + 1);
    p.out = malloc(n * ref_bytes(p.out_format) + 1);
    p.lse = (float *)malloc(lse_count(&p) * sizeof *p.lse + 1);
    for (i = 0; i < n; i++) ref_put(p.q, p.q_format, i, random_within(3));
    for (i = 0; i < batch; i++) {
        p.lengths[i] = lengths[i];
        if (lengths[i] <= max_seq && lengths[i] > p.shape.max_len) p.shape.max_len = lengths[i];
        p.keys[i] = random_cache(&p, lengths[i]);
        p.values[i] = random_cache(&p, lengths[i]);
    }
    if (desc->flags & PTXK_FLASH_SINK) {
        p.sinks = (float *)malloc(desc->heads * sizeof *p.sinks);
        for (i = 0; i < desc->heads; i++)
            p.sinks[i] = (float)(random_below(8) ? random_within(8) : random_below(2) ? -INFINITY : random_within(300));
    }
    if (desc->page_size) {
        p.max_pages = (max_seq + desc->page_size - 1) / desc->page_size;
        p.pool_pages = p.max_pages * batch + 2;
        p.table = (uint32_t *)malloc(sizeof *p.table * (batch * p.max_pages + 1));
        for (i = 0; i < batch * p.max_pages; i++) p.table[i] = i + 1; /* no page twice */
        for (i = batch * p.max_pages; i-- > 1;) {
            uint32_t j = random_below(i + 1), kept = p.table[i];
            p.table[i] = p.table[j];
            p.table[j] = kept;
        }
    }
    row = (size_t)desc->kv_heads * desc->head_dim;
    for (which = 0; which < 2 && desc->append_type; which++) {
        uint32_t t, g, e, b;
        n = (size_t)batch * p.queries * row;
        p.fresh[which] = malloc(n * ref_bytes(p.fresh_format) + 1);
        for (i = 0; i < n; i++) ref_put(p.fresh[which], p.fresh_format, i, random_within(2));
        for (b = 0; b < batch; b++) {
            void *cache = which ? p.values[b] : p.keys[b];
            for (t = 0; t < p.queries; t++) {
                uint32_t position = lengths[b] + t - p.queries;
                if (lengths[b] > max_seq || lengths[b] + t < p.queries) continue;
                for (g = 0; g < desc->kv_heads; g++)
                    for (e = 0; e < desc->head_dim; e++)
                        ref_put(cache, p.format, ((size_t)g * max_seq + position) * desc->head_dim + e,
                                ref_get(p.fresh[which], p.fresh_format,
                                        ((size_t)(b * p.queries + t)) * row + g * desc->head_dim + e));
            }
        }
    }
    return p;
}

static ptxk_flash_decode_desc plain(uint32_t heads, uint32_t kv_heads, uint32_t d, uint32_t kv_type) {
    ptxk_flash_decode_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.heads = heads;
    desc.kv_heads = kv_heads;
    desc.head_dim = d;
    desc.kv_type = kv_type;
    desc.q_type = desc.out_type = PTX_F32;
    desc.queries = 1;
    return desc;
}

static problem problem_new(uint32_t heads, uint32_t kv_heads, uint32_t d, enum ref_format format,
                           uint32_t max_seq, const uint32_t *lengths, uint32_t batch) {
    ptxk_flash_decode_desc desc = plain(heads, kv_heads, d, type_of(format));
    return problem_of(&desc, max_seq, lengths, batch);
}

static void problem_free(problem *p) {
    uint32_t i;
    for (i = 0; i < p->shape.batch; i++) {
        free(p->keys[i]);
        free(p->values[i]);
    }
    free(p->q);
    free(p->out);
    free(p->lse);
    free(p->table);
    free(p->sinks);
    free(p->fresh[0]);
    free(p->fresh[1]);
}

static void strides(const problem *p, uint64_t *head, uint64_t *row) {
    uint64_t d = p->desc.head_dim;
    *head = p->layout == HEADS_FIRST ? p->shape.max_seq * d : d;
    *row = p->layout == HEADS_FIRST ? d : d * p->desc.kv_heads;
    if (p->layout == WIDE_STRIDES) *head = p->shape.max_seq * (d + 24) + 8, *row = d + 24;
}

/* Elements of one cache, or of a pool. */
static size_t cache_elements(const problem *p) {
    uint64_t head, row;
    if (p->desc.page_size)
        return (size_t)p->pool_pages * p->desc.kv_heads * p->desc.page_size * p->desc.head_dim;
    strides(p, &head, &row);
    if (p->layout == ROWS_FIRST) return (size_t)p->shape.max_seq * row;
    return (size_t)p->desc.kv_heads * head;
}

/* Where row (head, position) of a sequence lies in its cache or the pool, in elements. */
static size_t cache_row(const problem *p, uint32_t sequence, uint32_t head, uint32_t position) {
    uint64_t heads, rows;
    uint32_t page = p->desc.page_size;
    if (page && p->desc.flags & PTXK_FLASH_PAGE_ROWS)
        return (((size_t)p->table[sequence * p->max_pages + position / page] * page + position % page)
                    * p->desc.kv_heads
                + head)
               * p->desc.head_dim;
    if (page)
        return (((size_t)p->table[sequence * p->max_pages + position / page] * p->desc.kv_heads + head) * page
                + position % page)
               * p->desc.head_dim;
    strides(p, &heads, &rows);
    return (size_t)(head * heads + position * rows);
}

/* Emit, load, and launch by the plan. Caches are given by device addresses. 1 when all went well. */
static int launch(problem *p, const device_ptr *keys, const device_ptr *values) {
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_module_desc module_desc;
    ptx_module *m;
    const char *text;
    void *module;
    uint32_t i, run;
    size_t rows = q_rows(p), out_bytes = rows * p->desc.head_dim * ref_bytes(p->out_format);
    size_t fresh_bytes = (size_t)p->shape.batch * p->queries * p->desc.kv_heads * p->desc.head_dim
                         * ref_bytes(p->fresh_format);
    int ok;
    char *poison;

    p->target = runnable(p->target);
    if ((p->target & 0xfff) >= 90) p->shape.cluster = p->most ? p->most : 8;
    p->shape.target = p->target;
    if (!CHECK_MORE(ptxk_flash_decode_plan(&p->desc, &p->shape, &p->plan, &why) == PTX_E_NONE, why.text))
        return 0;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = p->target;
    m = ptx_module_new(&module_desc);
    ptxk_flash_decode_emit(m, &p->desc);
    text = ptx_text(m, NULL);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) return 0;
    module = load_text(text);
    ok = module != NULL;

    memset(&args, 0, sizeof args);
    poison = (char *)malloc(out_bytes + rows * 4 + p->plan.workspace_bytes + 1);
    memset(poison, 0xff, out_bytes + rows * 4 + p->plan.workspace_bytes + 1);
    args.q = upload(p->q, rows * p->desc.head_dim * ref_bytes(p->q_format));
    args.k_caches = p->desc.page_size ? keys[0] : upload(keys, p->shape.batch * sizeof *keys);
    args.v_caches = p->desc.page_size ? values[0] : upload(values, p->shape.batch * sizeof *values);
    if (p->by_number)
        args.length = p->lengths[0];
    else
        args.lengths = upload(p->lengths, p->shape.batch * sizeof *p->lengths);
    args.out = upload(poison, out_bytes);
    args.lse = p->desc.flags & PTXK_FLASH_LSE ? upload(poison, rows * 4) : 0;
    if (p->desc.append_type) {
        args.k = upload(p->fresh[0], fresh_bytes);
        args.v = upload(p->fresh[1], fresh_bytes);
    }
    if (p->desc.page_size)
        args.block_table = upload(p->table, (size_t)p->shape.batch * p->max_pages * sizeof *p->table);
    if (p->desc.flags & PTXK_FLASH_TREE)
        args.tree = upload(p->tree, (size_t)p->shape.batch * p->queries * sizeof *p->tree);
    if (p->desc.flags & PTXK_FLASH_PRIOR) {
        args.prior = upload(p->prior, rows * p->desc.head_dim * 4);
        args.prior_lse = upload(p->prior_lse, rows * 4);
    }
    if (p->sinks) args.sinks = upload(p->sinks, p->desc.heads * sizeof *p->sinks);
    args.max_pages = p->max_pages;
    args.pool_pages = p->pool_pages;
    if (p->layout != HEADS_FIRST) strides(p, &args.head_stride, &args.row_stride);
    if (p->plan.workspace_bytes) {
        memset(poison, 0, (size_t)p->plan.zero_bytes);
        args.workspace = upload(poison, (size_t)p->plan.workspace_bytes);
    }
    args.max_seq = p->shape.max_seq;
    CHECK(p->plan.args_bytes == sizeof args);
    CHECK_MORE(!ptxk_flash_decode_check(&p->desc, &args, &why), why.text);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (run = 0; run == 0 || run < (uint32_t)p->runs; run++)
        for (i = 0; ok && i < p->plan.launches; i++)
            ok = launch_entry(m, module, &p->plan.launch[i], &args, sizeof args);
    ok = CHECK(cu.cuCtxSynchronize() == 0) && ok;
    if (ok) ok = CHECK(cu.cuMemcpyDtoH(p->out, args.out, out_bytes) == 0);
    if (ok && args.lse) ok = CHECK(cu.cuMemcpyDtoH(p->lse, args.lse, rows * 4) == 0);
    if (ok && p->plan.zero_bytes) { /* ready for the next launch */
        CHECK(cu.cuMemcpyDtoH(poison, args.workspace, (size_t)p->plan.zero_bytes) == 0);
        for (i = 0; i < p->plan.zero_bytes; i++) ok = ok && !poison[i];
        CHECK(ok);
    }
    check_reports();
    cu.cuMemFree(args.q);
    if (!p->desc.page_size) cu.cuMemFree(args.k_caches);
    if (!p->desc.page_size) cu.cuMemFree(args.v_caches);
    if (args.lengths) cu.cuMemFree(args.lengths);
    cu.cuMemFree(args.out);
    if (args.lse) cu.cuMemFree(args.lse);
    if (args.k) cu.cuMemFree(args.k);
    if (args.v) cu.cuMemFree(args.v);
    if (args.block_table) cu.cuMemFree(args.block_table);
    if (args.tree) cu.cuMemFree(args.tree);
    if (args.prior) cu.cuMemFree(args.prior), cu.cuMemFree(args.prior_lse);
    if (args.sinks) cu.cuMemFree(args.sinks);
    if (args.workspace) cu.cuMemFree(args.workspace);
    if (module) cu.cuModuleUnload(module);
    ptx_module_free(m);
    free(poison);
    return ok;
}

/* Bytes moved: sectors, and bulk copies, which are not counted among them. Those are of 16 keys, beyond d 128 of 8. */
static inline double bytes_moved(const problem *p, const ptxsim_counters *c) {
    double bytes = 32.0 * (double)(c->global_load_sectors + c->global_store_sectors);
    uint32_t piece = (p->desc.head_dim > 128 ? 8u : 16u) * 2 * p->desc.head_dim;
    if (p->target < PTX_SM(90) || p->desc.kv_type == PTX_F32) return bytes;
    return bytes + (double)(c->async_copy_bytes - 16 * c->async_copies) * piece / (piece - 16);
}

/* The caches as the kernel finds them, what is to append not there yet; or, after, as it shall leave them. */
static void *physical(const problem *p, int which, uint32_t first, uint32_t count, int after) {
    size_t bytes = ref_bytes(p->format), row = p->desc.head_dim * bytes;
    char *cache = (char *)malloc(cache_elements(p) * bytes + 1);
    uint32_t b, g, i;
    memset(cache, 0xff, cache_elements(p) * bytes);
    for (b = first; b < first + count; b++) {
        const char *from = (const char *)(which ? p->values[b] : p->keys[b]);
        uint32_t length = p->lengths[b] <= p->shape.max_seq ? p->lengths[b] : 0, stored = length;
        if (p->desc.append_type && !after) stored = length > p->queries ? length - p->queries : 0;
        for (g = 0; g < p->desc.kv_heads; g++)
            for (i = 0; i < stored; i++)
                memcpy(cache + cache_row(p, b, g, i) * bytes, from + g * head_bytes(p) + i * row, row);
    }
    return cache;
}

static int problem_run(problem *p) {
    device_ptr at[2][BATCH_MAX];
    uint32_t i, which, count = p->desc.page_size ? 1 : p->shape.batch,
                       each = p->desc.page_size ? p->shape.batch : 1;
    size_t bytes = cache_elements(p) * ref_bytes(p->format);
    char *have = (char *)malloc(bytes + 1);
    int ok;
    for (which = 0; which < 2; which++)
        for (i = 0; i < count; i++) {
            void *cache = physical(p, (int)which, i, each, 0);
            at[which][i] = upload(cache, bytes);
            free(cache);
        }
    ok = launch(p, at[0], at[1]);
    for (which = 0; which < 2; which++)
        for (i = 0; i < count; i++) { /* what had to be appended was, and no other byte was written */
            if (ok && p->desc.append_type) {
                void *cache = physical(p, (int)which, i, each, 1);
                CHECK(cu.cuMemcpyDtoH(have, at[which][i], bytes) == 0);
                CHECK_MORE(!memcmp(have, cache, bytes), "the caches after appending");
                free(cache);
            }
            cu.cuMemFree(at[which][i]);
        }
    free(have);
    return ok;
}

/* Every element against the truth; the worst error as a fraction of what arithmetic allows. */
static double worst;

static int tensor_variant(const problem *p) {
    if (p->format == REF_F32 || (p->target & 0xfff) < 80 || p->desc.flags & PTXK_FLASH_SCALAR) return 0;
    return 1;
}

static void compare(const problem *p, uint32_t sequence, const void *keys, const void *values,
                    uint64_t rows) {
    size_t count = (size_t)p->queries * p->desc.heads, n = count * p->desc.head_dim, i, wrong = 0, first = 0;
    double *truth = (double *)malloc(n * sizeof *truth), *bound = (double *)malloc(n * sizeof *bound);
    double *lse = (double *)malloc(count * sizeof *lse), *lse_bound = (double *)malloc(count * sizeof *lse);
    ref_attention r;
    char text[300];
    memset(&r, 0, sizeof r);
    r.heads = p->desc.heads;
    r.kv_heads = p->desc.kv_heads;
    r.d = p->desc.head_dim;
    r.queries = p->queries;
    r.window = p->desc.window;
    r.q_format = p->q_format;
    r.kv_format = p->format;
    r.out_format = p->out_format;
    r.scale = p->desc.scale < 0 || p->desc.scale > 0 ? (double)p->desc.scale : 1 / sqrt(p->desc.head_dim);
    r.soft_cap = (double)p->desc.soft_cap;
    r.rows = rows;
    r.max_seq = p->shape.max_seq;
    r.length = p->lengths[sequence];
    r.splits = p->plan.launch[0].grid[2];
    r.chunk = r.length > r.max_seq ? 0 : ptxk_flash_decode_chunk(&p->desc, p->lengths[sequence], r.splits);
    r.tensor = tensor_variant(p);
    r.sinks = p->sinks;
    ref_flash_decode(&r, truth, bound, lse, lse_bound,
                     (const char *)p->q + sequence * n * ref_bytes(p->q_format), keys, values);
    for (i = 0; i < n; i++) {
        double have = ref_get(p->out, p->out_format, sequence * n + i), error = fabs(have - truth[i]);
        int ok = isnan(truth[i]) ? isnan(have) : error <= bound[i];
        if (!ok && !wrong++) first = i;
        if (ok && bound[i] > 0 && error / bound[i] > worst) worst = error / bound[i];
    }
    (void)snprintf(
        text, sizeof text,
        "(h%u kv%u d%u type %u, sequence %u, length %u: %u of %u wrong, first [%u][%u] is %g, not %g +- %g)",
        p->desc.heads, p->desc.kv_heads, p->desc.head_dim, (unsigned)p->format, sequence,
        p->lengths[sequence], (unsigned)wrong, (unsigned)n, (unsigned)(first / p->desc.head_dim),
        (unsigned)(first % p->desc.head_dim), ref_get(p->out, p->out_format, sequence * n + first),
        truth[first], bound[first]);
    CHECK_MORE(wrong == 0, text);
    for (i = 0; i < count && p->desc.flags & PTXK_FLASH_LSE; i++) {
        double have = (double)p->lse[sequence * count + i];
        int ok = isnan(lse[i])   ? isnan(have)
                 : isinf(lse[i]) ? !(have < lse[i]) && !(have > lse[i])
                                 : fabs(have - lse[i]) <= lse_bound[i];
        (void)snprintf(text, sizeof text, "log-sum-exp %u of sequence %u, length %u, is %g, not %g +- %g",
                       (unsigned)i, sequence, p->lengths[sequence], have, lse[i], lse_bound[i]);
        CHECK_MORE(ok, text);
    }
    free(truth);
    free(bound);
    free(lse);
    free(lse_bound);
}

static void problem_check(problem *p)
{
    uint32_t i;
    if (!problem_run(p)) return;
    for (i = 0; i < p->shape.batch; i++) compare(p, i, p->keys[i], p->values[i], p->shape.max_seq);
}

#endif
