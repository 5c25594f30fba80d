/* cache_formats.c - caches of 8-bit numbers: what kv_scatter and flash_decode write is what the formats say, bit
 * for bit, and attention over them is as double precision has it for the same quantised numbers.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. Caches are filled with NaN, and every byte is looked at. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/numbers.h"
#include "../kerneltest.h"

#define BATCH_MAX 4
enum layout { HEADS_FIRST, ROWS_FIRST, WIDE_STRIDES };
typedef struct problem {
    uint32_t target, type, source, d, heads, kv_heads, batch, max_seq, lengths[BATCH_MAX];
    uint32_t page_size, page_rows, queries, append, q_type, out_type, window, scalar, lse, scattered;
    uint32_t merged;  /* decode: a tree that is a chain, merged with attention to nothing: the same as without */
    uint32_t prefill; /* type of the prompt's q and out; 0: none */
    float cap, scale;
    enum layout layout;
    /* made */
    uint64_t head_stride, row_stride, elements; /* of one sequence, or of the pool */
    uint32_t max_pages, pool_pages, *table;
    float *values[2];        /* [batch][kv_heads][max_seq][d] */
    uint8_t *bytes[2];       /* the caches, one after the other */
    uint16_t *factors[2];    /* q8_0: of the caches */
    float head_factor[2][8]; /* e4m3 */
    device_ptr at[2], factors_at[2], addresses[4], table_at;
} problem;

static enum ref_format format_of(uint32_t type) {
    return type == PTX_F32 ? REF_F32 : type == PTX_F16 ? REF_F16 : REF_BF16;
}

static uint32_t caches(const problem *p) { return p->page_size ? 1 : p->batch; }

/* -- the formats, on the host -- */

static double from_e4m3(uint8_t b) {
    int e = b >> 3 & 15, m = b & 7;
    double x = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    if ((b & 0x7f) == 0x7f) return NAN;
    return b & 0x80 ? -x : x;
}

static uint8_t to_e4m3(float x) {
    double a = fabs((double)x), scaled;
    uint8_t sign = signbit(x) ? 0x80 : 0;
    int e;
    if (isnan(x)) return (uint8_t)(sign | 0x7f);
    if (a >= 448) return (uint8_t)(sign | 0x7e);
    if (a < 0x1p-6) return (uint8_t)(sign | (int)nearbyint(ldexp(a, 9)));
    (void)frexp(a, &e);
    scaled = nearbyint(ldexp(a, 4 - e)); /* 8 ... 16 */
    return (uint8_t)(sign | (((e + 6) << 3) + (int)scaled - 8));
}

/* Where row (sequence, head, position) lies, in elements from the first cache. */
static uint64_t row_at(const problem *p, uint32_t b, uint32_t g, uint32_t i) {
    uint64_t page;
    if (!p->page_size) return b * p->elements + g * p->head_stride + i * p->row_stride;
    page = p->table[b * p->max_pages + i / p->page_size];
    if (p->page_rows) return ((page * p->page_size + i % p->page_size) * p->kv_heads + g) * p->d;
    return ((page * p->kv_heads + g) * p->page_size + i % p->page_size) * p->d;
}

static size_t value_at(const problem *p, uint32_t b, uint32_t g, uint32_t i) {
    return (((size_t)b * p->kv_heads + g) * p->max_seq + i) * p->d;
}

/* Quantises a row into the host's caches. */
static void store_row(problem *p, int which, uint32_t b, uint32_t g, uint32_t i) {
    const float *x = p->values[which] + value_at(p, b, g, i);
    uint64_t at = row_at(p, b, g, i);
    uint32_t e, j;
    if (p->type == PTX_E4M3) {
        float inverse = 1 / p->head_factor[which][g];
        for (e = 0; e < p->d; e++) p->bytes[which][at + e] = to_e4m3(x[e] * inverse);
        return;
    }
    for (e = 0; e < p->d; e += 32) {
        float most = 0, factor, inverse;
        int bad = 0;
        for (j = 0; j < 32; j++) {
            if (isnan(x[e + j])) bad = 1;
            if (fabsf(x[e + j]) > most) most = fabsf(x[e + j]);
        }
        factor = bad ? NAN : most / 127;
        inverse = factor < 0 || factor > 0 || bad ? 1 / factor : 0;
        p->factors[which][(at + e) / 32] = ref_to_f16((double)factor);
        for (j = 0; j < 32; j++) {
            float q = x[e + j] * inverse;
            p->bytes[which][at + e + j] = (uint8_t)(isnan(q) ? 0 : (int)nearbyintf(q));
        }
    }
}

static double read_value(const problem *p, int which, uint32_t b, uint32_t g, uint32_t i, uint32_t e) {
    uint64_t at = row_at(p, b, g, i) + e;
    if (p->type == PTX_E4M3) return from_e4m3(p->bytes[which][at]) * (double)p->head_factor[which][g];
    return (int8_t)p->bytes[which][at] * ref_from_f16(p->factors[which][at / 32]);
}

/* -- a problem -- */

static void *random_rows(size_t n, uint32_t type, double size) {
    void *x = malloc(n * ref_bytes(format_of(type)) + 1);
    size_t i;
    for (i = 0; i < n; i++) ref_put(x, format_of(type), i, random_within(size));
    return x;
}

static void problem_make(problem *p) {
    uint32_t b, g, i, e, j;
    int which;
    uint64_t d = p->d;
    p->head_stride = p->layout == HEADS_FIRST ? p->max_seq * d : d;
    p->row_stride = p->layout == HEADS_FIRST ? d : d * p->kv_heads;
    if (p->layout == WIDE_STRIDES) {
        uint64_t gap = p->type == PTX_E4M3 ? 32 : d % 256 ? d & (0 - d) : 256;
        p->row_stride = d + gap;
        p->head_stride = p->max_seq * p->row_stride + gap;
    }
    p->elements = p->layout == ROWS_FIRST ? p->max_seq * p->row_stride : p->kv_heads * p->head_stride;
    if (p->page_size) {
        p->max_pages = (p->max_seq + p->page_size - 1) / p->page_size;
        p->pool_pages = p->max_pages * p->batch + 2;
        p->elements = (uint64_t)p->pool_pages * p->kv_heads * p->page_size * d;
        p->table = (uint32_t *)malloc(sizeof *p->table * p->batch * p->max_pages);
        for (i = 0; i < p->batch * p->max_pages; i++) p->table[i] = i + 1;
        for (i = p->batch * p->max_pages; i-- > 1;) {
            uint32_t k = random_below(i + 1), kept = p->table[i];
            p->table[i] = p->table[k], p->table[k] = kept;
        }
        p->table_at = upload(p->table, 4 * (size_t)p->batch * p->max_pages);
    }
    for (which = 0; which < 2; which++) {
        size_t n = (size_t)(caches(p) * p->elements), rows = (size_t)p->batch * p->kv_heads * p->max_seq;
        p->values[which] = (float *)malloc(rows * d * sizeof(float));
        for (i = 0; i < rows; i++) {
            double size = ldexp(1, (int)random_below(6) - 3);
            for (e = 0; e < d; e++) {
                float x;
                ref_put(&x, format_of(p->source), 0, random_within(size));
                p->values[which][i * d + e] = (float)ref_get(&x, format_of(p->source), 0);
            }
            if (i % 11 == 5) /* a block of zeros */
                for (e = 0; e < 32 && e < d; e++) p->values[which][i * d + e] = 0;
        }
        p->bytes[which] = (uint8_t *)malloc(n + 1);
        p->factors[which] = (uint16_t *)malloc(n / 16 + 2);
        memset(p->bytes[which], 0xff, n);
        memset(p->factors[which], 0xff, n / 16);
        for (g = 0; g < 8; g++) p->head_factor[which][g] = (float)ldexp(1 + random_within(0.4), (int)g % 3 - 8);
        p->at[which] = upload(p->bytes[which], n);
        p->factors_at[which] = p->type == PTX_E4M3
                                   ? upload(p->head_factor[which], sizeof p->head_factor[which])
                                   : upload(p->factors[which], n / 16);
    }
    for (j = 0; j < 4 && !p->page_size; j++) {
        device_ptr list[BATCH_MAX];
        for (b = 0; b < p->batch; b++)
            list[b] = j < 2 ? p->at[j] + b * p->elements : p->factors_at[j - 2] + b * p->elements / 16;
        p->addresses[j] = upload(list, sizeof list);
    }
}

static void problem_free(problem *p) {
    int i;
    for (i = 0; i < 4 && !p->page_size; i++) cu.cuMemFree(p->addresses[i]);
    for (i = 0; i < 2; i++) {
        cu.cuMemFree(p->at[i]);
        cu.cuMemFree(p->factors_at[i]);
        free(p->values[i]);
        free(p->bytes[i]);
        free(p->factors[i]);
    }
    if (p->page_size) cu.cuMemFree(p->table_at);
    free(p->table);
}

static device_ptr factors_arg(const problem *p, int which) {
    return p->type == PTX_E4M3 || p->page_size ? p->factors_at[which] : p->addresses[2 + which];
}

static char place[200];
static ptxsim_counters counted; /* of the last run, by the CPU driver */

/* Builds the operation and runs the plan's launch. */
static int run(const problem *p, const char *name, const void *desc, const ptx_plan *plan, void *args,
               size_t args_bytes) {
    ptx_module_desc module_desc;
    ptx_module *m;
    const char *text;
    void *module = NULL;
    uint32_t i;
    int ok;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(p->target);
    m = ptx_module_new(&module_desc);
    ptxk_operation_find(name)->emit(m, PTX__AT, desc);
    text = ptx_text(m, NULL);
    ok = CHECK_MORE(text != NULL, ptx_get_error(m)->message);
    if (ok) module = load_text(text);
    ok = ok && module;
    CHECK(plan->args_bytes == args_bytes);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (i = 0; ok && i < plan->launches; i++)
        ok = launch_entry(m, module, &plan->launch[i], args, args_bytes);
    ok = CHECK_MORE(cu.cuCtxSynchronize() == 0, place) && ok;
    if (cu.ptxsim_counters_get) cu.ptxsim_counters_get(&counted, sizeof counted);
    if (module) cu.cuModuleUnload(module);
    ptx_module_free(m);
    check_reports();
    return ok;
}

/* The caches on the device are those of the host, byte for byte. */
static void check_caches(const problem *p, const char *after) {
    int which;
    char detail[260];
    for (which = 0; which < 2; which++) {
        size_t n = (size_t)(caches(p) * p->elements), i, wrong = 0, first = 0;
        uint8_t *have = (uint8_t *)malloc(n + 1);
        uint16_t *factors = (uint16_t *)malloc(n / 16 + 2);
        CHECK(cu.cuMemcpyDtoH(have, p->at[which], n) == 0);
        for (i = 0; i < n; i++)
            if (have[i] != p->bytes[which][i] && !wrong++) first = i;
        (void)snprintf(detail, sizeof detail, "%s, %s: %u bytes of %c differ, the first, %u, is %u, not %u", place,
                       after, (unsigned)wrong, which ? 'v' : 'k', (unsigned)first, have[first],
                       p->bytes[which][first]);
        CHECK_MORE(wrong == 0, detail);
        if (p->type == PTXK_Q8_0) {
            CHECK(cu.cuMemcpyDtoH(factors, p->factors_at[which], n / 16) == 0);
            for (i = wrong = 0; i < n / 32; i++)
                if (factors[i] != p->factors[which][i]
                    && !(isnan(ref_from_f16(factors[i])) && isnan(ref_from_f16(p->factors[which][i]))) && !wrong++)
                    first = i;
            (void)snprintf(detail, sizeof detail, "%s, %s: %u factors of %c differ, the first, %u, is %x, not %x",
                           place, after, (unsigned)wrong, which ? 'v' : 'k', (unsigned)first, factors[first],
                           p->factors[which][first]);
            CHECK_MORE(wrong == 0, detail);
        }
        free(have);
        free(factors);
    }
}

/* Writes the rows that are not appended. */
static void scatter(problem *p) {
    ptxk_kv_scatter_desc desc;
    ptxk_kv_scatter_shape shape;
    ptxk_kv_scatter_args args;
    ptxk_message why;
    ptx_plan plan;
    uint32_t b, g, i, e, t = 0, tokens = 0, *sequences, *positions;
    void *rows[2];
    int which;
    memset(&desc, 0, sizeof desc);
    memset(&args, 0, sizeof args);
    for (b = 0; b < p->batch; b++) tokens += p->lengths[b] - (p->append ? p->queries : 0);
    tokens++; /* one past the end of its cache: nothing is written for it */
    sequences = (uint32_t *)malloc(tokens * sizeof *sequences);
    positions = (uint32_t *)malloc(tokens * sizeof *positions);
    for (which = 0; which < 2; which++)
        rows[which] = random_rows((size_t)tokens * p->kv_heads * p->d, p->source, 1);
    for (b = 0; b < p->batch; b++)
        for (i = 0; i < p->lengths[b] - (p->append ? p->queries : 0); i++, t++) {
            sequences[t] = b;
            positions[t] = i;
            for (which = 0; which < 2; which++)
                for (g = 0; g < p->kv_heads; g++) {
                    store_row(p, which, b, g, i);
                    for (e = 0; e < p->d; e++)
                        ref_put(rows[which], format_of(p->source), ((size_t)t * p->kv_heads + g) * p->d + e,
                                (double)p->values[which][value_at(p, b, g, i) + e]);
                }
        }
    sequences[t] = 0;
    positions[t] = p->max_seq;
    desc.kv_heads = p->kv_heads;
    desc.head_dim = p->d;
    desc.source_type = p->source;
    desc.cache_type = p->type;
    desc.page_size = p->page_size;
    desc.flags = p->page_rows ? (uint32_t)PTXK_SCATTER_PAGE_ROWS : 0;
    shape.tokens = args.tokens = tokens;
    if (!CHECK_MORE(!ptxk_kv_scatter_plan(&desc, &shape, &plan, &why), why.text)) return;
    for (which = 0; which < 2; which++) {
        device_ptr x = upload(rows[which], (size_t)tokens * p->kv_heads * p->d * ref_bytes(format_of(p->source)));
        device_ptr cache = p->page_size ? p->at[which] : p->addresses[which];
        if (which)
            args.v = x, args.v_caches = cache, args.v_factors = factors_arg(p, 1);
        else
            args.k = x, args.k_caches = cache, args.k_factors = factors_arg(p, 0);
        free(rows[which]);
    }
    args.sequences = upload(sequences, tokens * sizeof *sequences);
    args.positions = upload(positions, tokens * sizeof *positions);
    args.block_table = p->table_at;
    args.head_stride = p->head_stride;
    args.row_stride = p->row_stride;
    args.batch = p->batch;
    args.max_seq = p->max_seq;
    args.max_pages = p->max_pages;
    args.pool_pages = p->pool_pages;
    CHECK_MORE(!ptxk_kv_scatter_check(&desc, &args, &why), why.text);
    if (run(p, "kv_scatter", &desc, &plan, &args, sizeof args)) check_caches(p, "scattered");
    cu.cuMemFree(args.k);
    cu.cuMemFree(args.v);
    cu.cuMemFree(args.sequences);
    cu.cuMemFree(args.positions);
    free(sequences);
    free(positions);
}

/* -- attention in double precision -- */

/* What rounding costs: of a score, times the sum of |scale q k|; of a value; of a sum, for each key. */
typedef struct precision {
    double score, value, key, capped;
} precision;

static double worst[3];

/* One query over keys first ... end - 1: out[d] and its bound; returns the log-sum-exp. */
static double attend(const problem *p, const precision *u, const double *q, uint32_t b, uint32_t g, uint32_t first,
                     uint32_t end, double *out, double *bound, double *lse_bound) {
    double scale = p->scale < 0 || p->scale > 0 ? (double)p->scale : 1 / sqrt(p->d), most = -INFINITY, total = 0,
           slack = 0, *score = (double *)malloc((end + 1) * sizeof *score);
    uint32_t i, e;
    for (i = first; i < end; i++) {
        double sum = 0, size = 0;
        for (e = 0; e < p->d; e++) {
            double x = scale * q[e] * read_value(p, 0, b, g, i, e);
            sum += x, size += fabs(x);
        }
        if (p->cap > 0) sum = (double)p->cap * tanh(sum / (double)p->cap);
        score[i] = sum;
        if (sum > most) most = sum;
        if (size * u->score > slack) slack = size * u->score;
    }
    if (p->cap > 0) slack += u->capped * (double)p->cap;
    for (e = 0; e < p->d; e++) out[e] = bound[e] = 0;
    for (i = first; i < end; i++) {
        double w = exp(score[i] - most);
        total += w;
        for (e = 0; e < p->d; e++) {
            double v = w * read_value(p, 1, b, g, i, e);
            out[e] += v, bound[e] += fabs(v);
        }
    }
    for (e = 0; e < p->d && total > 0; e++) {
        out[e] /= total;
        bound[e] = bound[e] / total * (exp(2 * slack) - 1 + u->value + u->key * (end - first)) + 0x1p-24;
    }
    *lse_bound = slack + u->key * (end - first) + 0x1p-19 * (1 + fabs(most));
    free(score);
    return total > 0 ? most + log(total) : -INFINITY;
}

static void compare(int kind, const double *want, const double *bound, const void *have, enum ref_format format,
                    size_t first, uint32_t d) {
    double u = format == REF_F32 ? 0x1p-23 : format == REF_F16 ? 0x1p-11 : 0x1p-8;
    char detail[300];
    uint32_t e;
    for (e = 0; e < d; e++) {
        double x = ref_get(have, format, first + e), limit = bound[e] + u * fabs(want[e]) + 0x1p-25,
               error = fabs(x - want[e]);
        if (error / limit > worst[kind]) worst[kind] = error / limit;
        (void)snprintf(detail, sizeof detail, "%s: element %u is %g, not %g +- %g", place, (unsigned)(first + e), x,
                       want[e], limit);
        if (!CHECK_MORE(error <= limit, detail)) return;
    }
}

static void decode(problem *p) {
    ptxk_flash_decode_desc desc;
    ptxk_flash_decode_shape shape;
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_plan plan;
    precision u;
    size_t rows = (size_t)p->batch * p->queries * p->heads, n = rows * p->d, i;
    void *q = random_rows(n, p->q_type, 3), *out = malloc(n * 4), *fresh[2] = {NULL, NULL};
    float *lse = (float *)malloc(rows * 4);
    double *x = (double *)malloc(3 * p->d * sizeof *x);
    uint32_t b, t, h, e, g;
    int which, tensor = p->target >= 80 && !p->scalar;
    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    memset(&args, 0, sizeof args);
    desc.heads = p->heads;
    desc.kv_heads = p->kv_heads;
    desc.head_dim = p->d;
    desc.kv_type = p->type;
    desc.scale = p->scale;
    desc.q_type = p->q_type;
    desc.out_type = p->out_type;
    desc.queries = p->queries;
    desc.window = p->window;
    desc.soft_cap = p->cap;
    desc.page_size = p->page_size;
    desc.append_type = p->append ? p->source : 0;
    desc.flags = (p->lse ? (uint32_t)PTXK_FLASH_LSE : 0) | (p->scalar ? (uint32_t)PTXK_FLASH_SCALAR : 0)
                 | (p->page_rows ? (uint32_t)PTXK_FLASH_PAGE_ROWS : 0)
                 | (p->merged ? (uint32_t)PTXK_FLASH_PRIOR : 0)
                 | (p->merged && !p->window ? (uint32_t)PTXK_FLASH_TREE : 0);
    shape.batch = p->batch;
    shape.max_seq = p->max_seq;
    shape.sm_count = p->max_seq > 1000 ? 1 : random_below(2) ? 132 : 3;
    shape.cluster = p->target >= 90 ? 8 : 0;
    shape.target = PTX_SM(p->target);
    if (!CHECK_MORE(!ptxk_flash_decode_plan(&desc, &shape, &plan, &why), why.text)) return;
    for (which = 0; which < 2 && p->append; which++) {
        size_t row = (size_t)p->kv_heads * p->d, bytes = p->batch * p->queries * row * ref_bytes(format_of(p->source));
        fresh[which] = malloc(bytes);
        for (b = 0; b < p->batch; b++)
            for (t = 0; t < p->queries; t++)
                for (g = 0; g < p->kv_heads; g++) {
                    uint32_t at = p->lengths[b] - p->queries + t;
                    store_row(p, which, b, g, at);
                    for (e = 0; e < p->d; e++)
                        ref_put(fresh[which], format_of(p->source), (b * p->queries + t) * row + g * p->d + e,
                                (double)p->values[which][value_at(p, b, g, at) + e]);
                }
        if (which)
            args.v = upload(fresh[1], bytes);
        else
            args.k = upload(fresh[0], bytes);
        free(fresh[which]);
    }
    memset(out, 0xff, n * 4);
    args.q = upload(q, n * ref_bytes(format_of(p->q_type)));
    args.k_caches = p->page_size ? p->at[0] : p->addresses[0];
    args.v_caches = p->page_size ? p->at[1] : p->addresses[1];
    args.k_factors = factors_arg(p, 0);
    args.v_factors = factors_arg(p, 1);
    args.lengths = upload(p->lengths, p->batch * sizeof *p->lengths);
    args.out = upload(out, n * ref_bytes(format_of(p->out_type)));
    args.lse = p->lse ? upload(out, rows * 4) : 0;
    args.block_table = p->table_at;
    args.max_seq = p->max_seq;
    args.max_pages = p->max_pages;
    args.pool_pages = p->pool_pages;
    if (p->layout != HEADS_FIRST) args.head_stride = p->head_stride, args.row_stride = p->row_stride;
    if (p->merged) {
        uint32_t *tree = (uint32_t *)malloc(rows * sizeof *tree);
        float *prior = (float *)calloc(n, sizeof *prior);
        for (i = 0; i < p->batch * p->queries; i++) tree[i] = (2u << i % p->queries) - 1;
        args.tree = upload(tree, p->batch * p->queries * sizeof *tree);
        args.prior = upload(prior, n * sizeof *prior);
        for (i = 0; i < rows; i++) prior[i] = -INFINITY;
        args.prior_lse = upload(prior, rows * sizeof *prior);
        free(tree);
        free(prior);
    }
    if (plan.workspace_bytes) {
        void *zeros = calloc(1, (size_t)plan.workspace_bytes);
        args.workspace = upload(zeros, (size_t)plan.workspace_bytes);
        free(zeros);
    }
    CHECK_MORE(!ptxk_flash_decode_check(&desc, &args, &why), why.text);
    if (run(p, "flash_decode", &desc, &plan, &args, sizeof args)) {
        CHECK(cu.cuMemcpyDtoH(out, args.out, n * ref_bytes(format_of(p->out_type))) == 0);
        if (p->lse) CHECK(cu.cuMemcpyDtoH(lse, args.lse, rows * 4) == 0);
        /* As flash_decode's manual states; V of q8_0 on tensor cores is rounded to f16. */
        u.score = (tensor ? 2.25 * p->d + 12 : 24) * 0x1p-24 + (tensor ? 0x1p-22 : 0) + p->d * (tensor ? 0 : 0x1p-24);
        u.value = 0x1p-19 + (tensor && p->type == PTXK_Q8_0 ? 0x1p-11 : 0);
        u.key = 0x1p-22;
        u.capped = 0x1p-19;
        for (i = 0; i < rows; i++) {
            uint32_t end, first;
            double lse_want, lse_bound;
            b = (uint32_t)(i / p->heads / p->queries);
            t = (uint32_t)(i / p->heads % p->queries);
            h = (uint32_t)(i % p->heads);
            end = p->lengths[b] + t + 1 > p->queries ? p->lengths[b] + t + 1 - p->queries : 0;
            first = p->window && end > p->window ? end - p->window : 0;
            for (e = 0; e < p->d; e++) x[e] = ref_get(q, format_of(p->q_type), i * p->d + e);
            lse_want = attend(p, &u, x, b, h * p->kv_heads / p->heads, first, end, x + p->d, x + 2 * p->d, &lse_bound);
            compare(tensor ? 0 : 1, x + p->d, x + 2 * p->d, out, format_of(p->out_type), i * p->d, p->d);
            if (p->lse) {
                double have = (double)lse[(b * p->heads + h) * p->queries + t];
                CHECK_MORE(end ? fabs(have - lse_want) <= lse_bound : isinf(have) && have < 0, place);
            }
        }
        check_caches(p, "decoded");
    }
    cu.cuMemFree(args.q);
    cu.cuMemFree(args.out);
    cu.cuMemFree(args.lengths);
    if (args.lse) cu.cuMemFree(args.lse);
    if (args.k) cu.cuMemFree(args.k), cu.cuMemFree(args.v);
    if (p->merged) cu.cuMemFree(args.tree), cu.cuMemFree(args.prior), cu.cuMemFree(args.prior_lse);
    if (args.workspace) cu.cuMemFree(args.workspace);
    free(q);
    free(out);
    free(lse);
    free(x);
}

static void prefill(problem *p) {
    ptxk_flash_prefill_desc desc;
    ptxk_flash_prefill_shape shape;
    ptxk_flash_prefill_args args;
    ptxk_message why;
    ptx_plan plan;
    precision u;
    enum ref_format format = format_of(p->prefill);
    uint32_t q_lens[BATCH_MAX], cu_q[BATCH_MAX + 1] = {0}, cu_kv[BATCH_MAX + 1] = {0}, b, t, h, e, longest = 0,
                                most = 0, shortest = p->max_seq;
    size_t n, i;
    void *q, *out;
    float *lse;
    double unit = format == REF_F16 ? 0x1p-11 : format == REF_BF16 ? 0x1p-8 : 0, *x;
    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    memset(&args, 0, sizeof args);
    for (b = 0; b < p->batch; b++) {
        if (p->lengths[b] < shortest) shortest = p->lengths[b];
        if (p->lengths[b] > longest) longest = p->lengths[b];
    }
    for (b = 0; b < p->batch; b++) { /* only pages have a length for each sequence */
        uint32_t keys = p->page_size ? p->lengths[b] : shortest;
        q_lens[b] = p->page_size ? 1 + random_below(keys) : (shortest + 1) / 2;
        if (q_lens[b] > most) most = q_lens[b];
        cu_q[b + 1] = cu_q[b] + q_lens[b];
        cu_kv[b + 1] = cu_kv[b] + keys;
    }
    n = (size_t)cu_q[p->batch] * p->heads * p->d;
    q = random_rows(n, p->prefill, 2);
    out = malloc(n * 4);
    lse = (float *)malloc(n / p->d * 4);
    x = (double *)malloc(3 * p->d * sizeof *x);
    memset(out, 0xff, n * 4);
    desc.heads = p->heads;
    desc.kv_heads = p->kv_heads;
    desc.head_dim = p->d;
    desc.type = desc.out_type = p->prefill;
    desc.kv_type = p->type;
    desc.flags = PTXK_PREFILL_CAUSAL | (p->lse ? (uint32_t)PTXK_PREFILL_LSE : 0)
                 | (p->page_rows ? (uint32_t)PTXK_PREFILL_PAGE_ROWS : 0);
    desc.window = p->window;
    desc.scale = p->scale;
    desc.soft_cap = p->cap;
    desc.page_size = p->page_size;
    shape.batch = p->batch;
    shape.target = PTX_SM(p->target);
    shape.q_len = most;
    shape.kv_len = p->page_size ? longest : shortest;
    args.q = upload(q, n * ref_bytes(format));
    args.out = upload(out, n * ref_bytes(format));
    args.lse = p->lse ? upload(out, n / p->d * 4) : 0;
    args.k = p->at[0];
    args.v = p->at[1];
    args.k_factors = p->factors_at[0];
    args.v_factors = p->factors_at[1];
    if (p->page_size) {
        shape.q_total = cu_q[p->batch];
        shape.kv_total = cu_kv[p->batch];
        args.cu_q = upload(cu_q, sizeof cu_q);
        args.cu_kv = upload(cu_kv, sizeof cu_kv);
        args.block_table = p->table_at;
        args.max_pages = p->max_pages;
        args.pool_pages = p->pool_pages;
    }
    ptxk_flash_prefill_pack(&desc, &shape, &args);
    if (!p->page_size) {
        args.k_batch_stride = args.v_batch_stride = p->elements;
        args.k_head_stride = args.v_head_stride = p->head_stride;
        args.k_row_stride = args.v_row_stride = p->row_stride;
    }
    args.batch = p->batch;
    args.q_len = shape.q_len;
    args.kv_len = shape.kv_len;
    CHECK_MORE(!ptxk_flash_prefill_plan(&desc, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_flash_prefill_check(&desc, &args, &why), why.text);
    if (run(p, "flash_prefill", &desc, &plan, &args, sizeof args)) {
        CHECK(cu.cuMemcpyDtoH(out, args.out, n * ref_bytes(format)) == 0);
        if (p->lse) CHECK(cu.cuMemcpyDtoH(lse, args.lse, n / p->d * 4) == 0);
        /* As flash_prefill's manual states; K and V of q8_0 are rounded to the type. */
        u.score = (p->d + 2) * 0x1p-22 + (p->type == PTXK_Q8_0 ? unit : 0) + (format == REF_F32 ? 0x1p-18 : 0);
        u.value = 0x1p-19 + unit + (p->type == PTXK_Q8_0 ? unit : 0) + (format == REF_F32 ? 0x1p-16 : 0);
        u.key = 0x1p-22;
        u.capped = 0x1p-18;
        for (i = 0; i < n / p->d; i++) {
            uint32_t end, first, row = (uint32_t)(i / p->heads), keys;
            double lse_want, lse_bound;
            size_t lse_at;
            h = (uint32_t)(i % p->heads);
            for (b = 0; cu_q[b + 1] <= row;) b++;
            t = row - cu_q[b];
            keys = cu_kv[b + 1] - cu_kv[b];
            end = keys - q_lens[b] + t + 1;
            first = p->window && end > p->window ? end - p->window : 0;
            for (e = 0; e < p->d; e++) x[e] = ref_get(q, format, i * p->d + e);
            lse_want = attend(p, &u, x, b, h * p->kv_heads / p->heads, first, end, x + p->d, x + 2 * p->d, &lse_bound);
            compare(2, x + p->d, x + 2 * p->d, out, format, i * p->d, p->d);
            lse_at = p->page_size ? (size_t)h * cu_q[p->batch] + row : ((size_t)b * p->heads + h) * most + t;
            if (format != REF_F16) lse_bound += 0x1p-17; /* weights are near 2^-32: lg2 errs by 2^-22 of 32 */
            if (p->lse) CHECK_MORE(fabs((double)lse[lse_at] - lse_want) <= lse_bound, place);
        }
    }
    cu.cuMemFree(args.q);
    cu.cuMemFree(args.out);
    if (args.lse) cu.cuMemFree(args.lse);
    if (args.cu_q) cu.cuMemFree(args.cu_q), cu.cuMemFree(args.cu_kv);
    free(q);
    free(out);
    free(lse);
    free(x);
}

static void problem_check(problem p) {
    uint32_t b;
    for (b = 0; b < p.batch; b++)
        if (p.append && p.lengths[b] < p.queries) p.lengths[b] = p.queries;
    (void)snprintf(place, sizeof place,
                   "(sm_%u %s, source %u, h%u kv%u d%u, page %u rows %u layout %d, q%u append %u, %u, cap %g "
                   "window %u, scalar %u, prefill %u, merged %u)",
                   p.target, p.type == PTX_E4M3 ? "e4m3" : "q8_0", p.source, p.heads, p.kv_heads, p.d, p.page_size,
                   p.page_rows, (int)p.layout, p.queries, p.append, p.q_type, (double)p.cap, p.window, p.scalar,
                   p.prefill, p.merged);
    problem_make(&p);
    scatter(&p);
    decode(&p);
    if (p.prefill) prefill(&p);
    problem_free(&p);
}

/* -- tests -- */

static void every_format_layout_and_target(uint32_t rounds) {
    static const uint32_t targets[] = {75, 80, 89, 90}, dims[] = {16, 32, 48, 64, 80, 96, 128, 160, 192, 256};
    static const uint32_t pages[] = {0, 0, 16, 64}, types[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t i, b;
    for (i = 0; i < rounds; i++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.target = targets[i % 4];
        if (p.target > (uint32_t)capability) continue;
        p.type = i / 4 % 2 ? PTXK_Q8_0 : PTX_E4M3;
        do p.d = dims[random_below(10)];
        while (p.d % 32 && p.type == PTXK_Q8_0);
        p.kv_heads = 1 + random_below(3);
        p.heads = p.kv_heads * (1 + random_below(p.d > 128 ? 4 : 9));
        p.source = types[random_below(3)];
        p.q_type = types[random_below(3)];
        p.out_type = types[random_below(3)];
        p.batch = 1 + random_below(3);
        p.max_seq = 150 + random_below(60);
        for (b = 0; b < p.batch; b++) p.lengths[b] = 1 + random_below(p.max_seq - 1);
        p.page_size = pages[random_below(4)];
        p.page_rows = p.page_size ? random_below(2) : 0;
        p.layout = (enum layout)random_below(3);
        p.queries = random_below(3) ? 1 : 1 + random_below(4);
        p.append = random_below(2);
        p.prefill = random_below(2) ? types[random_below(3)] : 0;
        for (b = 0; b < p.batch; b++) {
            if (p.lengths[b] < p.queries) p.lengths[b] = p.queries;
            if (!p.append && !p.prefill && !random_below(3)) p.lengths[b] = random_below(p.queries); /* 0, too */
        }
        p.window = random_below(4) ? 0 : 1 + random_below(100);
        p.cap = random_below(4) ? 0 : 5;
        p.scale = random_below(4) ? 0 : -0.1f;
        p.lse = random_below(2);
        p.merged = random_below(2);
        p.scalar = !random_below(6);
        problem_check(p);
    }
}

/* Rows of one or two vectors: see flash_decode.c. */
static void rows_of_one_or_two_vectors(void) {
    uint32_t i;
    for (i = 0; i < 8; i++) {
        problem p;
        memset(&p, 0, sizeof p);
        p.target = runnable(PTX_SM(i % 4 < 2 ? 90 : 80)) & 0xfff;
        p.type = i % 4 ? PTX_E4M3 : PTXK_Q8_0;
        p.d = i % 4 ? 16 : 32;
        p.kv_heads = p.batch = 2;
        p.heads = i < 4 ? 32 : 2;
        p.layout = ROWS_FIRST;
        p.page_size = i == 5 ? 16 : 0;
        p.page_rows = i == 5;
        p.queries = 1;
        p.source = p.q_type = p.out_type = PTX_F16;
        p.max_seq = 1200;
        p.lengths[0] = 1200;
        p.lengths[1] = 77;
        problem_check(p);
    }
}

/* Bytes of global memory that attention of 8 heads on one reads for each key: those of K and V, their factors, and
   5 % at most. */
static void no_byte_is_read_twice(void) {
    uint32_t i;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP no_byte_is_read_twice: only the CPU driver counts\n");
        return;
    }
    for (i = 0; i < 4; i++) {
        problem p;
        double keys = 2048, sectors, bytes;
        memset(&p, 0, sizeof p);
        p.target = i < 2 ? 90 : 80;
        if ((runnable(PTX_SM(p.target)) & 0xfff) != p.target) continue;
        p.type = i % 2 ? PTXK_Q8_0 : PTX_E4M3;
        p.d = 128, p.heads = 8, p.kv_heads = p.batch = p.queries = 1;
        p.source = p.q_type = p.out_type = PTX_F32;
        p.max_seq = p.lengths[0] = 2048;
        (void)snprintf(place, sizeof place, "(traffic, %u)", i);
        problem_make(&p);
        scatter(&p);
        decode(&p);
        sectors = 32.0 * (double)counted.global_load_sectors;
        if (p.target >= 90) /* and what is copied in bulk: all but factors */
            sectors += (double)counted.async_copy_bytes - (p.type == PTXK_Q8_0 ? keys * p.d / 8 : 0);
        CHECK(sectors >= keys * 2 * p.d);
        bytes = keys * 2 * (p.d + (p.type == PTXK_Q8_0 ? p.d / 16 : 0)) + p.heads * p.d * 4;
        printf("note: sm_%u, %s: %.1f bytes read and %.1f warp instructions a key; %.4f bank conflicts a wavefront\n",
               p.target, p.type == PTX_E4M3 ? "e4m3" : "q8_0", sectors / keys,
               (double)counted.warp_instructions / keys,
               (double)counted.shared_bank_conflicts / (double)counted.shared_wavefronts);
        CHECK_MORE(sectors <= 1.05 * bytes, place);
        CHECK_MORE((double)counted.shared_bank_conflicts <= 0.02 * (double)counted.shared_wavefronts, place);
        problem_free(&p);
    }
}

/* NaN in a source shall not become a number. */
static void what_is_no_number_stays_none(void) {
    uint32_t i;
    for (i = 0; i < 8; i++) {
        problem p;
        uint32_t b, e;
        memset(&p, 0, sizeof p);
        p.target = runnable(PTX_SM(i < 4 ? 80 : 90)) & 0xfff;
        p.type = i % 2 ? PTXK_Q8_0 : PTX_E4M3;
        p.d = 64, p.heads = p.kv_heads = p.batch = p.queries = 1;
        p.source = p.q_type = p.out_type = i & 2 ? PTX_F16 : PTX_F32;
        p.max_seq = 40;
        p.lengths[0] = 33;
        (void)snprintf(place, sizeof place, "(a NaN, %u)", i);
        problem_make(&p);
        for (b = 0; b < 2; b++) {
            p.values[b][7 * p.d + 3] = NAN;
            p.values[b][9 * p.d + 40] = INFINITY;
            p.values[b][9 * p.d + 8] = 1e30f;
            for (e = 0; e < p.d; e++) p.values[b][11 * p.d + e] = (float)ldexp(1, -20 - (int)(e % 2)); /* factor 0 */
            if (p.source == PTX_F16) p.values[b][9 * p.d + 8] = 60000;
        }
        scatter(&p);
        CHECK(isnan(read_value(&p, 0, 0, 0, 7, 3)));
        CHECK(p.type == PTX_E4M3 ? read_value(&p, 1, 0, 0, 9, 8) > 0 : isnan(read_value(&p, 0, 0, 0, 9, 41)));
        if (p.type == PTXK_Q8_0)
            CHECK((isinf(read_value(&p, 1, 0, 0, 9, 8)) != 0) == (p.source == PTX_F32)
                  && !(fabs(read_value(&p, 1, 0, 0, 11, 8)) > 0));
        problem_free(&p);
    }
}

static void what_does_not_fit_is_refused(void) {
    ptxk_flash_decode_desc decode_desc;
    ptxk_flash_prefill_desc prefill_desc;
    ptxk_kv_scatter_desc scatter_desc;
    ptxk_flash_decode_shape shape = {1, 10, 10, 4, 0, 0};
    ptxk_flash_prefill_shape prompt = {1, 4, 4, 0, 0, 0};
    ptxk_kv_scatter_shape tokens = {4};
    ptxk_message why;
    ptx_plan plan;
    memset(&decode_desc, 0, sizeof decode_desc);
    memset(&prefill_desc, 0, sizeof prefill_desc);
    memset(&scatter_desc, 0, sizeof scatter_desc);
    decode_desc.heads = decode_desc.kv_heads = decode_desc.queries = 1;
    decode_desc.q_type = decode_desc.out_type = PTX_F32;
    decode_desc.kv_type = PTXK_Q8_0;
    decode_desc.head_dim = 80;
    CHECK(ptxk_flash_decode_plan(&decode_desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "head_dim is 80, must be a multiple of 32 where kv_type is PTXK_Q8_0"), why.text);
    decode_desc.kv_type = PTX_E4M3;
    decode_desc.head_dim = 40;
    CHECK(ptxk_flash_decode_plan(&decode_desc, &shape, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "head_dim is 40, must be a multiple of 16 where kv_type is PTX_E4M3"), why.text);
    prefill_desc.heads = prefill_desc.kv_heads = 1;
    prefill_desc.head_dim = 64;
    prefill_desc.type = prefill_desc.out_type = PTX_F32;
    prefill_desc.kv_type = PTX_F16;
    CHECK(ptxk_flash_prefill_plan(&prefill_desc, &prompt, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "kv_type is PTX_F16, must be 0, type, PTX_E4M3 or PTXK_Q8_0"), why.text);
    prefill_desc.type = PTX_E4M3;
    prefill_desc.kv_type = PTXK_Q8_0;
    prompt.target = PTX_SM_A(90);
    CHECK(ptxk_flash_prefill_plan(&prefill_desc, &prompt, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "kv_type is PTXK_Q8_0, must be 0 or type, PTX_E4M3"), why.text);
    scatter_desc.kv_heads = 1;
    scatter_desc.head_dim = 33;
    scatter_desc.source_type = PTX_F32;
    scatter_desc.cache_type = PTXK_Q8_0;
    CHECK(ptxk_kv_scatter_plan(&scatter_desc, &tokens, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "head_dim is 33, must be a multiple of 32 where cache_type is PTXK_Q8_0"), why.text);
    scatter_desc.cache_type = PTX_E5M2;
    CHECK(ptxk_kv_scatter_plan(&scatter_desc, &tokens, &plan, &why) == PTX_E_DESC);
    CHECK_MORE(strstr(why.text, "cache_type is PTX_E5M2, must be PTX_F32"), why.text);
}

int main(int argc, char **argv) {
    start_random();
    what_does_not_fit_is_refused();
    if (CHECK(open_driver())) {
        what_is_no_number_stays_none();
        rows_of_one_or_two_vectors();
        no_byte_is_read_twice();
        every_format_layout_and_target(argc > 1 ? (uint32_t)atoi(argv[1]) : 20);
    }
    printf("note: largest errors: %.3f of their bounds on tensor cores, %.3f scalar, %.3f in prompts\n", worst[0],
           worst[1], worst[2]);
    return check_end();
}
