/* prefilltest.h - what the tests of flash_prefill share: problems with random data, launched and compared with
 * double, and what holds on every target.
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef PREFILLTEST_H
#define PREFILLTEST_H

#include "kerneltest.h"
#include "reference/flash_prefill.h"

/* -- a problem: description, data on the host, and what came out -- */

/* Where a test does not choose. */
static ptx_target base_target = PTX_SM(80);

#define BATCH_MAX 8
enum layout { ROWS, HEADS, PACKED }; /* [seq, heads, d]; [heads, seq, d]; q, k and v of a row side by side */

typedef struct problem {
    ptxk_flash_prefill_desc desc;
    ptxk_flash_prefill_shape shape;
    ptx_target target;
    enum ref_format format, out_format;
    enum layout layout;
    int ragged;
    uint32_t q_lens[BATCH_MAX], kv_lens[BATCH_MAX], cu_q[BATCH_MAX + 1], cu_kv[BATCH_MAX + 1];
    char *q, *k, *v, *out; /* q, k, v: three tensors, or one */
    float *lse;
    size_t q_count, kv_count, out_count, lse_count;
    ptxk_flash_prefill_args args; /* strides */
    ptx_plan plan;
    uint32_t tile;
    float *sinks; /* [heads], with PTXK_PREFILL_SINK */
    uint32_t *tree; /* with PTXK_PREFILL_TREE */
    int e4m3; /* q, k and v: numbers of e4m3, here in f16 */
    float factors[2][64]; /* of scores, of v */
} problem;

static uint32_t type_of(enum ref_format format) {
    return format == REF_F32 ? PTX_F32 : format == REF_F16 ? PTX_F16 : PTX_BF16;
}

static ptxk_flash_prefill_desc describe(uint32_t heads, uint32_t kv_heads, uint32_t d, enum ref_format format,
                                        uint32_t flags) {
    ptxk_flash_prefill_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.heads = heads;
    desc.kv_heads = kv_heads;
    desc.head_dim = d;
    desc.type = desc.out_type = type_of(format);
    desc.flags = flags;
    return desc;
}

static enum ref_format format_of(uint32_t type) {
    return type == PTX_F32 ? REF_F32 : type == PTX_BF16 ? REF_BF16 : REF_F16;
}

/* A number of e4m3 near x, of size 2^-3 to 2: or 0. */
static double e4m3_near(double x) {
    int exponent;
    if (fabs(x) < 0.125) return 0;
    (void)frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(x, 4 - exponent)), exponent - 4);
}

/* On the device: the same, or the bytes of e4m3. */
static device_ptr upload_elements(const problem *p, const char *from, size_t count) {
    unsigned char *bytes;
    device_ptr at;
    size_t i;
    if (!p->e4m3) return upload(from, count * ref_bytes(p->format));
    bytes = (unsigned char *)malloc(count + 1);
    for (i = 0; i < count; i++) {
        double x = ref_get(from, REF_F16, i);
        int exponent = 0;
        if (!isnan(x) && x != 0) (void)frexp(x, &exponent);
        bytes[i] = (unsigned char)(isnan(x) ? 0x7f
                                   : x == 0 ? 0
                                            : ((exponent + 6) << 3) + (int)ldexp(fabs(x), 4 - exponent) - 8);
        if (x < 0) bytes[i] |= 0x80;
    }
    at = upload(bytes, count);
    free(bytes);
    return at;
}

static void upload_factors(problem *p) {
    if (!p->e4m3) return;
    p->args.k_factors = upload(p->factors[0], sizeof p->factors[0]);
    p->args.v_factors = upload(p->factors[1], sizeof p->factors[1]);
}

/* Element (sequence, row, head, 0) of a tensor. */
static size_t place(const problem *p, const uint64_t *strides, const uint32_t *first, uint32_t sequence,
                    uint32_t row, uint32_t head) {
    return (size_t)((p->ragged ? first[sequence] * strides[1] : sequence * strides[0]) + row * strides[1]
                    + head * strides[2]);
}

static void put(char *tensor, enum ref_format format, size_t at, double x) { ref_put(tensor, format, at, x); }

/* Lengths of each sequence; ragged: by cumulative lengths, else all must be those of the first. */
static problem problem_new(ptxk_flash_prefill_desc desc, enum layout layout, int ragged,
                           const uint32_t *q_lens, const uint32_t *kv_lens, uint32_t batch) {
    problem p;
    uint64_t q_heads = desc.heads, kv_heads = desc.kv_heads, d = desc.head_dim, qs[3], ks[3], os[3];
    uint32_t b, i, h, e;
    memset(&p, 0, sizeof p);
    p.desc = desc;
    p.target = base_target;
    p.format = format_of(desc.type);
    p.out_format = format_of(desc.out_type);
    p.e4m3 = desc.type == PTX_E4M3;
    for (i = 0; i < 2 * 64; i++) p.factors[i / 64][i % 64] = (float)(0.5 + fabs(random_within(1)));
    p.layout = layout;
    p.ragged = ragged;
    p.shape.batch = batch;
    for (b = 0; b < batch; b++) {
        p.q_lens[b] = q_lens[b];
        p.kv_lens[b] = kv_lens[b];
        p.cu_q[b + 1] = p.cu_q[b] + q_lens[b];
        p.cu_kv[b + 1] = p.cu_kv[b] + kv_lens[b];
        if (q_lens[b] > p.shape.q_len) p.shape.q_len = q_lens[b];
        if (kv_lens[b] > p.shape.kv_len) p.shape.kv_len = kv_lens[b];
    }
    p.shape.q_total = p.cu_q[batch];
    p.shape.kv_total = p.cu_kv[batch];
    if (layout == PACKED) { /* needs q_len == kv_len */
        qs[1] = ks[1] = (q_heads + 2 * kv_heads) * d;
        qs[2] = ks[2] = d;
        qs[0] = ks[0] = p.shape.q_len * qs[1];
        os[1] = q_heads * d, os[2] = d, os[0] = p.shape.q_len * os[1];
    } else if (layout == ROWS) {
        qs[1] = q_heads * d, qs[2] = d, qs[0] = p.shape.q_len * qs[1];
        ks[1] = kv_heads * d, ks[2] = d, ks[0] = p.shape.kv_len * ks[1];
        memcpy(os, qs, sizeof os);
    } else { /* with a gap of a vector between rows, and one row more for each head */
        uint64_t rows = ragged ? p.cu_q[batch] + 1 : p.shape.q_len + 1;
        uint64_t kv_rows = ragged ? p.cu_kv[batch] + 1 : p.shape.kv_len + 1;
        qs[1] = d + (p.e4m3 ? 16 : 8), qs[2] = rows * qs[1], qs[0] = q_heads * qs[2];
        ks[1] = d + (p.e4m3 ? 16 : 8), ks[2] = kv_rows * ks[1], ks[0] = kv_heads * ks[2];
        memcpy(os, qs, sizeof os);
    }
    p.q_count = (size_t)(layout == HEADS ? (ragged ? qs[0] : batch * qs[0])
                                         : (ragged ? p.cu_q[batch] : batch * p.shape.q_len) * qs[1]);
    p.kv_count = (size_t)(layout == HEADS ? (ragged ? ks[0] : batch * ks[0])
                                          : (ragged ? p.cu_kv[batch] : batch * p.shape.kv_len) * ks[1]);
    p.out_count = (size_t)(layout == PACKED ? p.q_count / qs[1] * os[1] : p.q_count);
    p.args.q_batch_stride = qs[0], p.args.q_row_stride = qs[1], p.args.q_head_stride = qs[2];
    p.args.k_batch_stride = ks[0], p.args.k_row_stride = ks[1], p.args.k_head_stride = ks[2];
    p.args.v_batch_stride = ks[0], p.args.v_row_stride = ks[1], p.args.v_head_stride = ks[2];
    p.args.out_batch_stride = os[0], p.args.out_row_stride = os[1], p.args.out_head_stride = os[2];
    p.args.lse_head_stride = ragged ? p.cu_q[batch] : p.shape.q_len;
    p.args.lse_batch_stride = p.args.lse_head_stride * q_heads;
    p.lse_count = (size_t)(ragged ? p.args.lse_batch_stride : batch * p.args.lse_batch_stride);
    p.q = (char *)malloc(p.q_count * ref_bytes(p.format) + 1);
    memset(p.q, 0xff, p.q_count * ref_bytes(p.format));
    if (layout == PACKED) {
        p.k = p.q + q_heads * d * ref_bytes(p.format);
        p.v = p.k + kv_heads * d * ref_bytes(p.format);
    } else {
        p.k = (char *)malloc(p.kv_count * ref_bytes(p.format) + 1);
        p.v = (char *)malloc(p.kv_count * ref_bytes(p.format) + 1);
        memset(p.k, 0xff, p.kv_count * ref_bytes(p.format));
        memset(p.v, 0xff, p.kv_count * ref_bytes(p.format));
    }
    if (desc.flags & PTXK_PREFILL_SINK) {
        p.sinks = (float *)malloc(desc.heads * sizeof *p.sinks);
        for (i = 0; i < desc.heads; i++)
            p.sinks[i] = any_sink();
    }
    if (desc.flags & PTXK_PREFILL_TREE) { /* what each query sees: here anything, but itself for sure */
        size_t words = (p.shape.q_len + 31) / 32, rows = ragged ? p.cu_q[batch] : batch * p.shape.q_len, j;
        p.tree = (uint32_t *)malloc((rows * words + 1) * sizeof *p.tree);
        for (j = 0; j < rows * words; j++) p.tree[j] = random_below(3) ? random_u32() : 0;
        for (b = 0; b < batch; b++)
            for (i = 0; i < q_lens[b]; i++)
                p.tree[((ragged ? p.cu_q[b] : b * p.shape.q_len) + i) * words + i / 32] |= 1u << i % 32;
    }
    p.out = (char *)malloc(p.out_count * ref_bytes(p.out_format) + 1);
    p.lse = (float *)malloc(p.lse_count * sizeof *p.lse + 1);
    for (b = 0; b < batch; b++) {
        for (i = 0; i < q_lens[b]; i++)
            for (h = 0; h < q_heads; h++)
                for (e = 0; e < d; e++) {
                    double x = random_within(2);
                    put(p.q, p.format, place(&p, qs, p.cu_q, b, i, h) + e, p.e4m3 ? e4m3_near(x) : x);
                }
        for (i = 0; i < kv_lens[b]; i++)
            for (h = 0; h < kv_heads; h++)
                for (e = 0; e < d; e++) {
                    size_t at = place(&p, ks, p.cu_kv, b, i, h) + e;
                    double x = random_within(2), y = random_within(2);
                    put(p.k, p.format, at, p.e4m3 ? e4m3_near(x) : x);
                    put(p.v, p.format, at, p.e4m3 ? e4m3_near(y) : y);
                }
    }
    return p;
}

static void problem_free(problem *p) {
    free(p->q);
    if (p->layout != PACKED) {
        free(p->k);
        free(p->v);
    }
    free(p->out);
    free(p->lse);
    free(p->sinks);
    free(p->tree);
}

static size_t key_at(const problem *p, uint32_t sequence, uint32_t row, uint32_t head) {
    uint64_t strides[3];
    strides[0] = p->args.k_batch_stride, strides[1] = p->args.k_row_stride,
    strides[2] = p->args.k_head_stride;
    return place(p, strides, p->cu_kv, sequence, row, head);
}

static size_t query_at(const problem *p, uint32_t sequence, uint32_t row, uint32_t head) {
    uint64_t strides[3];
    strides[0] = p->args.q_batch_stride, strides[1] = p->args.q_row_stride,
    strides[2] = p->args.q_head_stride;
    return place(p, strides, p->cu_q, sequence, row, head);
}

static size_t out_at(const problem *p, uint32_t sequence, uint32_t row, uint32_t head) {
    uint64_t strides[3];
    strides[0] = p->args.out_batch_stride, strides[1] = p->args.out_row_stride;
    strides[2] = p->args.out_head_stride;
    return place(p, strides, p->cu_q, sequence, row, head);
}

/* The module of a description, loaded. The last one is kept: most tests ask for it again and again. */
static struct {
    ptxk_flash_prefill_desc desc;
    ptx_target target;
    ptx_module *m;
    void *module;
} built;

static void build(const ptxk_flash_prefill_desc *desc, ptx_target target) {
    ptx_module_desc module_desc;
    const char *text;
    if (built.m && desc && built.target == target && !memcmp(desc, &built.desc, sizeof *desc)) return;
    if (built.module) cu.cuModuleUnload(built.module);
    ptx_module_free(built.m);
    memset(&built, 0, sizeof built);
    if (!desc) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = target;
    built.m = ptx_module_new(&module_desc);
    built.desc = *desc;
    built.target = target;
    ptxk_flash_prefill_emit(built.m, desc);
    text = ptx_text(built.m, NULL);
    if (CHECK_MORE(text != NULL, ptx_get_error(built.m)->message)) built.module = load_text(text);
}

/* Launch by the plan; args has the addresses of q, k, v and the cumulative lengths. */
static int launch(problem *p) {
    ptxk_message why;
    uint32_t i;
    size_t out_bytes = p->out_count * ref_bytes(p->out_format), lse_bytes = p->lse_count * sizeof *p->lse;
    int ok;

    p->shape.target = p->target = runnable(p->target);
    if (!CHECK_MORE(ptxk_flash_prefill_plan(&p->desc, &p->shape, &p->plan, &why) == PTX_E_NONE, why.text))
        return 0;
    build(&p->desc, p->target);
    ok = built.module != NULL;
    memset(p->out, 0xff, out_bytes);
    memset(p->lse, 0xff, lse_bytes);
    p->args.out = upload(p->out, out_bytes);
    p->args.lse = upload(p->lse, lse_bytes);
    p->args.sinks = p->sinks ? upload(p->sinks, p->desc.heads * sizeof *p->sinks) : 0;
    i = p->ragged ? p->cu_q[p->shape.batch] : p->shape.batch * p->shape.q_len;
    p->args.tree = p->tree ? upload(p->tree, (size_t)i * ((p->shape.q_len + 31) / 32) * sizeof *p->tree) : 0;
    p->args.batch = p->shape.batch;
    p->args.q_len = p->shape.q_len;
    p->args.kv_len = p->shape.kv_len;
    CHECK(p->plan.args_bytes == sizeof p->args);
    if (p->plan.launches) CHECK_MORE(!ptxk_flash_prefill_check(&p->desc, &p->args, &why), why.text);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (i = 0; ok && i < p->plan.launches; i++)
        ok = launch_with_maps(built.m, built.module, &p->plan.launch[i], &p->plan, i, &p->args,
                              sizeof p->args);
    ok = CHECK(cu.cuCtxSynchronize() == 0) && ok;
    if (ok && out_bytes) ok = CHECK(cu.cuMemcpyDtoH(p->out, p->args.out, out_bytes) == 0);
    if (ok && lse_bytes) ok = CHECK(cu.cuMemcpyDtoH(p->lse, p->args.lse, lse_bytes) == 0);
    check_reports();
    cu.cuMemFree(p->args.out);
    cu.cuMemFree(p->args.lse);
    if (p->args.sinks) cu.cuMemFree(p->args.sinks);
    if (p->args.tree) cu.cuMemFree(p->args.tree);
    return ok;
}

static int problem_run(problem *p) {
    int ok, half = p->e4m3 ? 2 : 1;
    p->args.q = upload_elements(p, p->q, p->q_count);
    if (p->layout == PACKED) {
        p->args.k = p->args.q + (uint64_t)(p->k - p->q) / (uint64_t)half;
        p->args.v = p->args.q + (uint64_t)(p->v - p->q) / (uint64_t)half;
    } else {
        p->args.k = upload_elements(p, p->k, p->kv_count);
        p->args.v = upload_elements(p, p->v, p->kv_count);
    }
    upload_factors(p);
    p->args.cu_q = p->args.cu_kv = 0;
    if (p->ragged) {
        p->args.cu_q = upload(p->cu_q, (p->shape.batch + 1) * sizeof *p->cu_q);
        p->args.cu_kv = upload(p->cu_kv, (p->shape.batch + 1) * sizeof *p->cu_kv);
    }
    ok = launch(p);
    cu.cuMemFree(p->args.q);
    if (p->layout != PACKED) {
        cu.cuMemFree(p->args.k);
        cu.cuMemFree(p->args.v);
    }
    if (p->ragged) {
        cu.cuMemFree(p->args.cu_q);
        cu.cuMemFree(p->args.cu_kv);
    }
    return ok;
}

/* Every element against the truth; the worst error as a fraction of what arithmetic allows. What belongs to
   no row must be as it was. */
static double worst, worst_lse;

static void problem_compare(problem *p) {
    uint32_t d = p->desc.head_dim, b, h, i, e;
    double *truth = (double *)malloc(2 * d * sizeof *truth), *bound = truth + d, lse[2];
    size_t wrong = 0, wrong_lse = 0, seen = 0, filled = 0, n;
    char text[512], first[200] = "";
    ref_prefill r;
    memset(&r, 0, sizeof r);
    r.q = p->q, r.k = p->k, r.v = p->v;
    r.format = p->format, r.out = p->out_format;
    r.d = d;
    r.scale = p->desc.scale < 0 || p->desc.scale > 0 ? (double)p->desc.scale : 1 / sqrt(d);
    r.cap = (double)p->desc.soft_cap;
    r.causal = (p->desc.flags & PTXK_PREFILL_CAUSAL) != 0;
    r.window = p->desc.window;
    r.tile = 16;
    r.weight = ref_unit(p->format);
    r.e4m3 = p->e4m3;
    if (p->e4m3) r.weight = 0x1p-4 + 128 / 32 * 34 * 0x1p-13;
    if (p->format
        == REF_F32) /* one tf32, or two: what the second's truncation loses, and the product of both */
        r.weight = r.product = p->desc.precision == PTXK_PREFILL_FAST ? 0x1p-11 : 1.5 * 0x1p-20;
    for (b = 0; b < p->shape.batch; b++) {
        for (h = 0; h < p->desc.heads; h++) {
            uint32_t g = h / (p->desc.heads / p->desc.kv_heads);
            double scale = r.scale, factor = p->e4m3 ? (double)p->factors[1][g] : 1;
            if (p->e4m3) r.scale *= (double)p->factors[0][h];
            for (i = 0; i < p->q_lens[b]; i++) {
                size_t at = out_at(p, b, i, h), row = (p->ragged ? p->cu_q[b] : b * p->shape.q_len) + i;
                r.tree = p->tree ? p->tree + row * ((p->shape.q_len + 31) / 32) : NULL;
                r.tree_base = (int64_t)p->kv_lens[b] - p->q_lens[b];
                ref_prefill_row(&r, query_at(p, b, i, h), key_at(p, b, 0, g), (size_t)p->args.k_row_stride,
                                key_at(p, b, 0, g), (size_t)p->args.v_row_stride,
                                (int64_t)i + p->kv_lens[b] - p->q_lens[b], p->kv_lens[b], truth, bound, lse);
                if (p->sinks)
                    ref_add_sink((double)p->sinks[h], truth, bound, d, p->out_format, &lse[0], &lse[1]);
                for (e = 0; e < d; e++, seen++) {
                    truth[e] *= factor, bound[e] *= factor * (1 + 0x1p-20);
                    double out = ref_get(p->out, p->out_format, at + e), error = fabs(out - truth[e]);
                    int ok = isnan(truth[e]) ? isnan(out) : error <= bound[e];
                    if (!ok && !wrong++)
                        (void)snprintf(first, sizeof first,
                                       "first: sequence %u, query %u, head %u, element %u: %g, not %g +- %g",
                                       b, i, h, e, out, truth[e], bound[e]);
                    if (ok && bound[e] > 0 && error / bound[e] > worst) worst = error / bound[e];
                }
                if (p->desc.flags & PTXK_PREFILL_LSE) {
                    size_t l = (size_t)(p->ragged ? p->cu_q[b] : b * p->args.lse_batch_stride)
                               + (size_t)(h * p->args.lse_head_stride) + i;
                    double out = p->lse[l], error = isinf(lse[0]) && isinf(out) && (lse[0] > 0) == (out > 0)
                                                        ? 0
                                                        : fabs(out - lse[0]);
                    int ok = isnan(lse[0]) ? isnan(out) : error <= lse[1];
                    if (!ok && !wrong_lse++)
                        (void)snprintf(first, sizeof first,
                                       "first lse: sequence %u, query %u, head %u: %g, not %g +- %g", b, i, h,
                                       out, lse[0], lse[1]);
                    if (ok && lse[1] > 0 && error / lse[1] > worst_lse) worst_lse = error / lse[1];
                }
            }
            r.scale = scale;
        }
    }
    for (n = 0; n < p->out_count * ref_bytes(p->out_format) / 2; n++)
        filled += ((uint16_t *)(void *)p->out)[n] != 0xffff;
    (void)snprintf(
        text, sizeof text,
        "(h%u kv%u d%u type %u to %u, flags %u, window %u, layout %u, ragged %d, sm_%u, batch %u, q %u, "
        "kv %u: %u + %u of %u wrong; %s)",
        p->desc.heads, p->desc.kv_heads, d, (unsigned)p->format, (unsigned)p->out_format, p->desc.flags,
        p->desc.window, (unsigned)p->layout, p->ragged, p->target, p->shape.batch, p->shape.q_len,
        p->shape.kv_len, (unsigned)wrong, (unsigned)wrong_lse, (unsigned)seen, first);
    CHECK_MORE(wrong + wrong_lse == 0, text);
    CHECK_MORE(filled <= seen * ref_bytes(p->out_format) / 2, text);
    free(truth);
}

static void problem_check(problem *p) {
    if (problem_run(p)) problem_compare(p);
}

static void check_one(ptxk_flash_prefill_desc desc, uint32_t q_len, uint32_t kv_len) {
    problem p = problem_new(desc, ROWS, 0, &q_len, &kv_len, 1);
    problem_check(&p);
    problem_free(&p);
}

/* -- the grid of shapes -- */

static void every_tile_edge(void) {
    static const uint32_t lengths[] = {0, 1, 15, 16, 17, 31, 47, 48, 49, 63, 64, 65, 127, 128, 129, 191, 257};
    uint32_t i, j, n = sizeof lengths / sizeof *lengths;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++)
            if ((i + j) % 3 == 0 || i == j)
                check_one(describe(1, 1, 64, REF_F16, (i + j) & 1), lengths[i], lengths[j]);
}

static void every_head_dim(void) {
    uint32_t d;
    for (d = 8; d <= 256; d += 8) {
        check_one(describe(2, 1, d, REF_F16, 1), 70, 130);
        check_one(describe(1, 1, d, REF_BF16, 0), 40, 33);
    }
}

/* -- everything with everything -- */

static uint32_t one_of(const uint32_t *list, uint32_t n) { return list[random_below(n)]; }

/* Another order of the CPU driver's warps and copies. */
static void other_schedule(void) {
    if (cu.ptxsim_set) cu.ptxsim_set("seed", (int)random_below(1u << 30));
}

static void random_product(void) {
    static const uint32_t dims[] = {8, 16, 24, 32, 40, 64, 72, 80, 96, 104, 128, 160, 192, 256},
                          lens[] = {0, 1, 2, 15, 33, 63, 64, 65, 100, 127, 128, 129, 200},
                          targets[] = {75, 80, 86, 89, 90}, groups[] = {1, 2, 3, 7, 8},
                          windows[] = {0, 0, 1, 2, 17, 64, 65, 150};
    uint32_t round, b;
    for (round = 0; round < 60; round++) {
        uint32_t kv_heads = 1 + random_below(3), q_lens[BATCH_MAX], kv_lens[BATCH_MAX],
                 batch = 1 + random_below(3), ragged = random_below(2);
        enum layout layout = (enum layout)random_below(3);
        ptxk_flash_prefill_desc desc = describe(kv_heads * one_of(groups, 5), kv_heads, one_of(dims, 14),
                                                (enum ref_format)random_below(3), random_below(4));
        problem p;
        if (!is_drawn(2)) continue;
        if (random_below(2)) desc.flags |= PTXK_PREFILL_SINK;
        if (random_below(2)) desc.out_type = type_of((enum ref_format)random_below(3));
        desc.window = one_of(windows, 8);
        if (desc.type == PTX_F32) desc.precision = random_below(2);
        if (!random_below(4)) desc.scale = (float)random_within(0.5);
        if (!random_below(4)) desc.soft_cap = (float)(1 + random_below(50));
        for (b = 0; b < batch; b++) {
            int again = b && !ragged;
            q_lens[b] = again ? q_lens[0] : one_of(lens, 13);
            kv_lens[b] = again ? kv_lens[0] : layout == PACKED ? q_lens[b] : one_of(lens, 13);
        }
        p = problem_new(desc, layout, (int)ragged, q_lens, kv_lens, batch);
        p.target = base_target == PTX_SM(80) ? PTX_SM(one_of(targets, 5)) : base_target;
        if (base_target != PTX_SM(80)) other_schedule();
        problem_check(&p);
        problem_free(&p);
    }
}

static void window_edges(void) {
    static const uint32_t windows[] = {1, 2, 31, 32, 33, 63, 64, 65, 128, 1000, 1u << 30};
    uint32_t i, causal;
    for (i = 0; i < 11; i++) {
        for (causal = 0; causal < 2; causal++) {
            ptxk_flash_prefill_desc desc = describe(1, 1, 32, REF_F16, causal | PTXK_PREFILL_LSE);
            desc.window = windows[i];
            check_one(desc, 150, 150);
            check_one(desc, 130, 300); /* the first query is at position 170 */
            check_one(desc, 150, 20);  /* ... at -130: sees nothing */
        }
    }
}

static void ragged_batches_with_empty_sequences(void) {
    static const uint32_t q[] = {0, 130, 1, 0, 64, 5, 0}, kv[] = {0, 130, 200, 70, 0, 5, 0};
    uint32_t format, layout;
    for (format = 0; format < 3; format++) {
        for (layout = 0; layout < 4; layout++) {
            problem p = problem_new(describe(4, 2, 64, (enum ref_format)format, 3),
                                    layout % 2 ? HEADS : ROWS, 1, q, kv, 7);
            if (layout > 1) p.shape.q_len = 2000, p.shape.kv_len = 3000; /* bounds above all rows */
            problem_check(&p);
            problem_free(&p);
        }
    }
}

/* Cumulative lengths that promise more than the arguments allow: keys: NaN, and k and v are not touched;
   queries: nothing is written. Other sequences are right. */
static void lengths_beyond_the_arguments(void) {
    static const uint32_t q[] = {20, 20, 20}, kv[] = {30, 30, 30};
    uint32_t i, e, good = 0, bad = 0, round;
    for (round = 0; round < 2; round++) {
        problem p = problem_new(describe(1, 1, 16, REF_F16, 1), ROWS, 1, q, kv, 3);
        uint32_t *begins = round ? p.cu_q : p.cu_kv;
        uint16_t *out;
        begins[2] =
            0xfffffff0u; /* sequence 1 is too long, sequence 2 longer than any: the difference wraps */
        if (problem_run(&p)) {
            out = (uint16_t *)(void *)p.out;
            for (i = 0; i < 20; i++) {
                for (e = 0; e < 16; e++) {
                    good += isfinite(ref_from_f16(out[i * 16 + e])) ? 1 : 0;
                    bad += round ? out[(20 + i) * 16 + e] == 0xffff
                                 : isnan(ref_from_f16(out[(20 + i) * 16 + e]))
                                       && out[(20 + i) * 16 + e] != 0xffff;
                }
            }
        }
        problem_free(&p);
    }
    CHECK(good == 2 * 320 && bad == 2 * 320);
}

/* -- SEEDS.md, 001: one test for each input on which the original fails -- */

static void all_of_every_tile_is_stored(void) {
    static const uint32_t dims[] = {16, 32, 64, 128, 256};
    uint32_t i, n, missing = 0;
    for (i = 0; i < 5; i++) {
        uint32_t length = 16;
        problem p = problem_new(describe(1, 1, dims[i], REF_F16, 0), ROWS, 0, &length, &length, 1);
        if (problem_run(&p))
            for (n = 0; n < 16 * dims[i]; n++) missing += ((uint16_t *)(void *)p.out)[n] == 0xffff;
        problem_free(&p);
    }
    CHECK(missing == 0);
}

/* Query i sees key 15 - i almost alone, and the value of key j, column e, is 100 j + e. */
static void weights_and_values_are_not_transposed(void) {
    uint32_t length = 16, i, e, wrong = 0;
    problem p = problem_new(describe(1, 1, 16, REF_F16, 0), ROWS, 0, &length, &length, 1);
    for (i = 0; i < 16; i++) {
        for (e = 0; e < 16; e++) {
            put(p.q, REF_F16, i * 16 + e, e == 15 - i ? 64 : 0);
            put(p.k, REF_F16, i * 16 + e, e == i ? 64 : 0);
            put(p.v, REF_F16, i * 16 + e, 100 * i + e);
        }
    }
    problem_check(&p);
    for (i = 0; i < 16; i++)
        for (e = 0; e < 16; e++)
            wrong += fabs(ref_get(p.out, REF_F16, i * 16 + e) - (100.0 * (15 - i) + e)) > 1;
    CHECK(wrong == 0);
    problem_free(&p);
}

/* Rows whose scores are far from each other's: a maximum shared by rows would make weights of 0. */
static void each_row_has_its_own_maximum_and_sum(void) {
    uint32_t length = 128, i, e, format;
    for (format = 0; format < 3; format++) {
        problem p = problem_new(describe(1, 1, 64, (enum ref_format)format, 2), ROWS, 0, &length, &length, 1);
        for (i = 0; i < length; i++)
            for (e = 0; e < 64; e++)
                put(p.q, p.format, i * 64 + e,
                    random_within(1) * ldexp(1, (int)(i % 13) - 6) + (i % 5 ? 0.5 : -4));
        problem_check(&p);
        problem_free(&p);
    }
}

/* The maximum grows in every tile: what has been summed must shrink each time. */
static void sums_are_rescaled_between_tiles(void) {
    uint32_t lengths[2] = {40, 500}, i, e;
    problem p = problem_new(describe(1, 1, 64, REF_F16, 2), ROWS, 0, &lengths[0], &lengths[1], 1);
    for (i = 0; i < 40; i++)
        for (e = 0; e < 64; e++) put(p.q, REF_F16, i * 64 + e, e ? random_within(0.1) : 1);
    for (i = 0; i < 500; i++) put(p.k, REF_F16, i * 64, i / 10.0);
    problem_check(&p);
    problem_free(&p);
}

/* Future keys would have all the weight. */
static void the_diagonal_tile_is_masked(void) {
    uint32_t i, e, format;
    for (format = 0; format < 3; format++) {
        uint32_t length = 100;
        problem p = problem_new(describe(1, 1, 32, (enum ref_format)format, 1), ROWS, 0, &length, &length, 1);
        for (i = 0; i < length; i++)
            for (e = 0; e < 32; e++) {
                put(p.q, p.format, i * 32 + e, 1);
                put(p.k, p.format, i * 32 + e, i / 4.0);
            }
        problem_check(&p);
        problem_free(&p);
    }
}

static void seq_that_is_no_multiple_of_16(void) {
    uint32_t length;
    for (length = 1; length < 48; length += 3)
        check_one(describe(1, 1, 32, REF_F16, length & 1), length, length);
}

static void d_that_is_no_multiple_of_16(void) {
    uint32_t d, format;
    for (format = 0; format < 3; format++)
        for (d = 8; d <= 256; d += 48) check_one(describe(1, 1, d, (enum ref_format)format, 1), 37, 61);
}

static void gqa_of_every_kind(void) {
    static const uint32_t heads[] = {8, 7, 32, 12, 6}, kv_heads[] = {1, 1, 8, 12, 2};
    uint32_t i;
    for (i = 0; i < 5; i++) {
        static const uint32_t q[] = {20, 40}, kv[] = {90, 41};
        problem p = problem_new(describe(heads[i], kv_heads[i], 64, REF_BF16, 1), HEADS, 1, q, kv, 2);
        problem_check(&p);
        problem_free(&p);
    }
}

/* f16: 900 keys whose weights are 2^-22 to 2^-36 of the largest, whose value is 0, make all of the output. */
static void small_weights_count(void) {
    uint32_t rows = 20, length = 901, i, e, target, zeros = 0;
    for (target = 75; target <= 80; target += 5) {
        ptxk_flash_prefill_desc desc = describe(1, 1, 16, REF_F16, 0);
        problem p;
        desc.scale = 0.69314718f;
        desc.out_type = PTX_F32;
        p = problem_new(desc, ROWS, 0, &rows, &length, 1);
        p.target = PTX_SM(target);
        for (i = 0; i < rows; i++)
            for (e = 0; e < 16; e++) put(p.q, REF_F16, i * 16 + e, e ? 0 : 1);
        for (i = 0; i < length; i++)
            for (e = 0; e < 16; e++) {
                put(p.k, REF_F16, i * 16 + e, e || i == 450 ? 0 : -22 - (double)(i % 15));
                put(p.v, REF_F16, i * 16 + e, i == 450 ? 0 : 60000);
            }
        problem_check(&p);
        for (i = 0; i < rows; i++) zeros += ref_get(p.out, REF_F32, i * 16) < 1;
        problem_free(&p);
    }
    CHECK(zeros == 0);
}

/* Scores of 2^40 and more, which differ from their products with the scale by more than 2^x can take: equal
   keys share the weight all the same. */
static void scores_of_any_size(void) {
    static const double sizes[3] = {2e13, 55555, 2e13};
    uint32_t rows = 30, length = 200, i, e, format, target, wrong = 0;
    for (target = 75; target <= 80; target += 5)
        for (format = 0; format < 3; format++) {
            problem p = problem_new(describe(1, 1, 128, (enum ref_format)format, 0), ROWS, 0, &rows, &length,
                                    1);
            double mean = 0;
            p.target = PTX_SM(target);
            for (e = 0; e < 128; e++) {
                double q = (1 - random_within(0.5)) * sizes[format],
                       x = (1 - random_within(0.5)) * sizes[format];
                if (format == REF_F16) q /= 2, x /= 2;
                for (i = 0; i < rows; i++) put(p.q, p.format, i * 128 + e, q);
                for (i = 0; i < length; i++) put(p.k, p.format, i * 128 + e, i % 2 ? x : x / 2);
            }
            for (i = 0; i < length; i++) {
                put(p.v, p.format, i * 128 + 7, i % 8);
                mean += i % 2 ? i % 8 : 0;
            }
            mean /= length / 2;
            problem_check(&p);
            for (i = 0; i < rows; i++) wrong += !(fabs(ref_get(p.out, p.format, i * 128 + 7) - mean) < 0.05);
            problem_free(&p);
        }
    CHECK(wrong == 0);
}

/* -- what is not finite -- */

/* Infinite elements of q, alone and beside others, with small ones and zeros that meet infinite K. */
static void infinite_elements_of_q(void) {
    uint32_t turn, i, length = 80;
    for (turn = 0; turn < 48; turn++) {
        enum ref_format format = (enum ref_format)(turn % 3);
        ptxk_flash_prefill_desc desc = describe(1, 1, 64, format, turn / 24 ? 3 : 2);
        problem p;
        desc.scale = turn / 3 % 2 ? -0.25f : 0;
        desc.soft_cap = turn / 6 % 2 ? 5 : 0;
        if (format == REF_F32 && turn / 12 % 2) desc.precision = PTXK_PREFILL_FAST;
        p = problem_new(desc, ROWS, 0, &length, &length, 1);
        p.target = PTX_SM(turn / 12 % 2 ? 80 : 75);
        for (i = 0; i < length; i++) {
            put(p.q, p.format, i * 64 + i % 7, (double)(i % 2 ? INFINITY : -INFINITY));
            if (i % 5 == 1) put(p.q, p.format, i * 64 + 9, (double)INFINITY); /* its opposite: some NaN */
            if (i % 5 == 2) put(p.q, p.format, i * 64 + 30, 1e-7);
            if (i % 16 == 3) put(p.q, p.format, i * 64 + 31, (double)NAN);
        }
        put(p.k, p.format, 9 * 64 + 30, (double)-INFINITY);
        if (turn % 4 == 3) put(p.k, p.format, 70 * 64 + 2, 0); /* NaN in the queries whose element it meets */
        problem_check(&p);
        problem_free(&p);
    }
}

static void nan_scores_make_their_query_nan_and_no_other(void) {
    uint32_t length = 100, i, target, wrong = 0;
    for (target = 75; target <= 80; target += 5) {
        problem p = problem_new(describe(2, 1, 32, REF_F16, 3), ROWS, 0, &length, &length, 1);
        p.target = PTX_SM(target);
        put(p.k, REF_F16, 60 * 32 + 7, (double)NAN);
        put(p.q, REF_F16, (11 * 2 + 1) * 32 + 5, (double)NAN);
        problem_check(&p);
        for (i = 0; i < 200; i++)
            wrong += (isnan(ref_get(p.out, REF_F16, i * 32)) != 0) != (i / 2 >= 60 || i == 23);
        problem_free(&p);
    }
    CHECK(wrong == 0);
}

static void scale_and_cap_are_used(void) {
    uint32_t i, format;
    for (format = 0; format < 3; format++) {
        for (i = 0; i < 4; i++) {
            ptxk_flash_prefill_desc desc = describe(1, 1, 64, (enum ref_format)format, 3);
            desc.scale = i & 1 ? -0.25f : 1.0f;
            if (i & 2) desc.soft_cap = 5;
            check_one(desc, 70, 90);
        }
    }
}

/* f32 and bf16 keep their range: q and k to 1e6 (scores to 1e12 before a scale of 1e-12), v to 1e30. */
static void values_above_65504_stay_finite(void) {
    uint32_t i, round, length = 70, target;
    for (target = base_target == PTX_SM(80) ? 75 : 80; target <= 80; target += 5) {
        for (round = 0; round < 3; round++) {
            ptxk_flash_prefill_desc desc = describe(1, 1, 64, round < 2 ? REF_F32 : REF_BF16, 1);
            problem p;
            size_t infinite = 0;
            desc.scale = 1e-12f;
            desc.precision = round == 1;
            p = problem_new(desc, ROWS, 0, &length, &length, 1);
            p.target = target == 80 ? base_target : PTX_SM(target);
            for (i = 0; i < length * 64; i++) {
                put(p.q, p.format, i, random_within(1e6));
                put(p.k, p.format, i, random_within(1e6));
                put(p.v, p.format, i, random_within(1e30));
            }
            problem_check(&p);
            for (i = 0; i < length * 64; i++) infinite += isfinite(ref_get(p.out, p.format, i)) ? 0 : 1;
            CHECK(infinite == 0);
            problem_free(&p);
        }
    }
}

/* f32 and bf16 values near the largest there is: the sum of many must not pass it on the way. */
static void values_near_the_largest_of_f32(void) {
    static const uint32_t lengths[] = {1, 70, 600};
    uint32_t i, round, target, n;
    for (target = base_target == PTX_SM(80) ? 75 : 80; target <= 80; target += 5)
        for (round = 0; round < 4; round++)
            for (n = 0; n < 3; n++) {
                ptxk_flash_prefill_desc desc = describe(1, 1, 64, round < 2 ? REF_F32 : REF_BF16, round & 1);
                uint32_t rows = 40;
                problem p;
                if (round == 1) desc.precision = PTXK_PREFILL_FAST;
                desc.out_type = PTX_F32;
                p = problem_new(desc, ROWS, 0, &rows, &lengths[n], 1);
                p.target = target == 80 ? base_target : PTX_SM(target);
                for (i = 0; i < lengths[n] * 64; i++) /* columns of one sign, and of both */
                    put(p.v, p.format, i, i % 4 ? 3.38e38 : random_within(3.38e38));
                for (i = 0; i < rows && round == 3; i++) /* all with the same weight */
                    put(p.q, p.format, i * 64 + 1, fabs(ref_get(p.q, p.format, i * 64 + 1)) + 0.125);
                for (i = 0; i < lengths[n] && round == 3; i++)
                    put(p.k, p.format, i * 64 + 1, (double)INFINITY);
                problem_check(&p);
                problem_free(&p);
            }
}

static void infinite_scores(void) {
    uint32_t format, round, i, length = 150, target, kind;
    for (target = base_target == PTX_SM(80) ? 75 : 80; target <= 80; target += 5) {
        for (format = 0; format < 3; format++) {
            for (round = 0; round < 2; round++) {
                for (kind = 0; kind < 5; kind++) {
                    ptxk_flash_prefill_desc desc = describe(1, 1, 64, (enum ref_format)format, round ? 3 : 2);
                    problem p;
                    if (kind == 4 && format == REF_F32) desc.precision = PTXK_PREFILL_FAST;
                    p = problem_new(desc, ROWS, 0, &length, &length, 1);
                    p.target = target == 80 ? base_target : PTX_SM(target);
                    for (i = 0; i < length; i++) { /* q[0] > 0: K[0] = +-inf makes the score of that sign */
                        size_t at = (size_t)i * 64;
                        put(p.q, p.format, at, fabs(ref_get(p.q, p.format, at)) + 0.125);
                        if (kind == 0 && i % 3) put(p.k, p.format, at, (double)-INFINITY);
                        if (kind == 1) put(p.k, p.format, at, (double)-INFINITY);
                        if ((kind == 2 || kind == 4) && i % 11 == 4) put(p.k, p.format, at, (double)INFINITY);
                        if (kind == 3) put(p.k, p.format, at, (double)(i == 70 ? INFINITY : -INFINITY));
                    }
                    problem_check(&p);
                    problem_free(&p);
                }
            }
        }
    }
}

/* -- offsets -- */

/* Three heads 2^31 + 64 elements apart, and rows 2^22: the last head begins past 2^32 elements. One tensor of
   memory that nobody else touches is q, k, v and, behind them, out. */
static void offsets_past_2_to_32_elements(void) {
    const uint64_t head = ((uint64_t)1 << 31) + 64, row = 1 << 22;
    const uint32_t length = 40, d = 64;
    uint32_t h, i, e;
    problem p = problem_new(describe(3, 3, d, REF_F16, 1), ROWS, 0, &length, &length, 1);
    device_ptr memory = 0;
    size_t bytes = (size_t)(2 * head + length * row + 1024) * 2;
    if (cu.cuMemAlloc(&memory, bytes)) {
        printf("SKIP offsets_past_2_to_32_elements: no %.1f GB of device memory\n", (double)bytes / 1e9);
        problem_free(&p);
        return;
    }
    for (h = 0; h < 3; h++) {
        for (i = 0; i < length; i++) {
            device_ptr at = memory + 2 * (h * head + i * row);
            CHECK(cu.cuMemcpyHtoD(at, p.q + 2 * query_at(&p, 0, i, h), d * 2) == 0);
            CHECK(cu.cuMemcpyHtoD(at + 256, p.k + 2 * key_at(&p, 0, i, h), d * 2) == 0);
            CHECK(cu.cuMemcpyHtoD(at + 512, p.v + 2 * key_at(&p, 0, i, h), d * 2) == 0);
        }
    }
    build(&p.desc, p.target);
    p.shape.target = p.target;
    CHECK(ptxk_flash_prefill_plan(&p.desc, &p.shape, &p.plan, NULL) == PTX_E_NONE);
    if (built.module) {
        ptxk_flash_prefill_args args = p.args;
        args.q = memory, args.k = memory + 256, args.v = memory + 512, args.out = memory + 768;
        args.q_row_stride = args.k_row_stride = args.v_row_stride = args.out_row_stride = row;
        args.q_head_stride = args.k_head_stride = args.v_head_stride = args.out_head_stride = head;
        args.batch = 1, args.q_len = args.kv_len = length;
        CHECK(ptxk_flash_prefill_check(&p.desc, &args, NULL) == PTX_E_NONE);
        CHECK(launch_with_maps(built.m, built.module, &p.plan.launch[0], &p.plan, 0, &args, sizeof args));
        CHECK(cu.cuCtxSynchronize() == 0);
        check_reports();
        for (h = 0; h < 3; h++)
            for (i = 0; i < length; i++)
                CHECK(cu.cuMemcpyDtoH(p.out + 2 * out_at(&p, 0, i, h),
                                      memory + 2 * (h * head + i * row) + 768, d * 2)
                      == 0);
        for (e = 0; e < p.lse_count; e++) p.lse[e] = 0;
        problem_compare(&p);
    }
    cu.cuMemFree(memory);
    problem_free(&p);
}

/* out may be q: a block has read its queries before it writes them. */
static void out_may_be_q(void) {
    uint32_t length = 200;
    problem p = problem_new(describe(2, 1, 64, REF_F16, 1), ROWS, 0, &length, &length, 1), copy = p;
    size_t bytes = p.q_count * 2;
    build(&p.desc, p.target);
    p.shape.target = p.target;
    CHECK(ptxk_flash_prefill_plan(&p.desc, &p.shape, &p.plan, NULL) == PTX_E_NONE);
    ptxk_flash_prefill_pack(&p.desc, &p.shape, &p.args);
    CHECK(p.args.q_row_stride == copy.args.q_row_stride && p.args.k_batch_stride == copy.args.k_batch_stride
          && p.args.out_head_stride == copy.args.out_head_stride
          && p.args.lse_head_stride == copy.args.lse_head_stride);
    p.args.q = p.args.out = upload(p.q, bytes);
    p.args.k = upload(p.k, p.kv_count * 2);
    p.args.v = upload(p.v, p.kv_count * 2);
    p.args.batch = 1, p.args.q_len = p.args.kv_len = length;
    if (built.module
        && launch_with_maps(built.m, built.module, &p.plan.launch[0], &p.plan, 0, &p.args, sizeof p.args)) {
        CHECK(cu.cuMemcpyDtoH(p.out, p.args.out, bytes) == 0);
        check_reports();
        problem_compare(&p);
    }
    cu.cuMemFree(p.args.q);
    cu.cuMemFree(p.args.k);
    cu.cuMemFree(p.args.v);
    problem_free(&p);
}

/* -- keys and values in pages -- */

typedef struct pages {
    uint32_t per_sequence, count, *table;
    char *k, *v; /* the pools */
    size_t bytes;
} pages;

/* The keys of a problem in pages, in any order, among others that are NaN. */
static pages pages_of(const problem *p) {
    uint32_t size = p->desc.page_size, b, i, h, n;
    size_t head = p->desc.head_dim * ref_bytes(p->format), row = head * p->desc.kv_heads;
    pages g;
    g.per_sequence = p->shape.kv_len / size + 1 + random_below(2);
    g.count = g.per_sequence * p->shape.batch + random_below(3);
    g.bytes = g.count * size * row;
    g.table = (uint32_t *)malloc(g.count * sizeof *g.table);
    g.k = (char *)malloc(g.bytes);
    g.v = (char *)malloc(g.bytes);
    memset(g.k, 0xff, g.bytes);
    memset(g.v, 0xff, g.bytes);
    for (i = 0; i < g.count; i++) {
        uint32_t other = random_below(i + 1);
        g.table[i] = g.table[other];
        g.table[other] = i;
    }
    for (b = 0; b < p->shape.batch; b++)
        for (i = 0; i < p->kv_lens[b]; i++)
            for (h = 0; h < p->desc.kv_heads; h++) {
                size_t page = g.table[b * g.per_sequence + i / size], to, from;
                n = p->desc.flags & PTXK_PREFILL_PAGE_ROWS ? i % size * p->desc.kv_heads + h
                                                           : h * size + i % size;
                to = page * size * row + n * head;
                from = key_at(p, b, i, h) * ref_bytes(p->format);
                memcpy(g.k + to, p->k + from, head);
                memcpy(g.v + to, p->v + from, head);
            }
    return g;
}

static int paged_run(problem *p, const pages *g) {
    int ok;
    p->args.q = upload_elements(p, p->q, p->q_count);
    p->args.k = upload_elements(p, g->k, g->bytes / ref_bytes(p->format));
    p->args.v = upload_elements(p, g->v, g->bytes / ref_bytes(p->format));
    upload_factors(p);
    p->args.block_table = upload(g->table, g->per_sequence * p->shape.batch * sizeof *g->table);
    p->args.max_pages = g->per_sequence;
    p->args.pool_pages = g->count;
    p->args.cu_q = p->ragged ? upload(p->cu_q, (p->shape.batch + 1) * sizeof *p->cu_q) : 0;
    p->args.cu_kv = p->ragged ? upload(p->cu_kv, (p->shape.batch + 1) * sizeof *p->cu_kv) : 0;
    ok = launch(p);
    cu.cuMemFree(p->args.q);
    cu.cuMemFree(p->args.k);
    cu.cuMemFree(p->args.v);
    cu.cuMemFree(p->args.block_table);
    if (p->ragged) {
        cu.cuMemFree(p->args.cu_q);
        cu.cuMemFree(p->args.cu_kv);
    }
    return ok;
}

static void pages_free(pages *g) {
    free(g->table);
    free(g->k);
    free(g->v);
}

static void keys_in_pages(void) {
    static const uint32_t lens[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200},
                          dims[] = {8, 40, 64, 96, 128, 256}, targets[] = {75, 80, 89, 90},
                          windows[] = {0, 0, 1, 17, 64, 150};
    uint32_t round, b;
    for (round = 0; round < 48; round++) {
        uint32_t q_lens[BATCH_MAX], kv_lens[BATCH_MAX], batch = 1 + random_below(3), ragged = round & 1,
                 kv_heads = 1 + random_below(3);
        ptxk_flash_prefill_desc desc = describe(kv_heads * (1 + random_below(4)), kv_heads, one_of(dims, 6),
                                                (enum ref_format)random_below(3), random_below(8));
        problem p;
        pages g;
        if (!is_drawn(2)) continue;
        desc.page_size = 16u << random_below(4);
        desc.window = one_of(windows, 6);
        for (b = 0; b < batch; b++) {
            int again = b && !ragged;
            q_lens[b] = again ? q_lens[0] : one_of(lens, 12);
            kv_lens[b] = again ? kv_lens[0] : one_of(lens, 12);
        }
        p = problem_new(desc, ROWS, (int)ragged, q_lens, kv_lens, batch);
        p.target = base_target == PTX_SM(80) ? PTX_SM(one_of(targets, 4)) : base_target;
        g = pages_of(&p);
        if (paged_run(&p, &g)) problem_compare(&p);
        pages_free(&g);
        problem_free(&p);
    }
}

/* The same bits as from rows, where tiles are the same: pages hold whole tiles. */
static void pages_and_rows_have_the_same_bits(void) {
    static const uint32_t q_len = 130, kv_len = 200;
    ptxk_flash_prefill_desc desc = describe(4, 2, 64, REF_F16, 3);
    problem p = problem_new(desc, ROWS, 0, &q_len, &kv_len, 1);
    char *out = (char *)malloc(p.out_count * 2);
    pages g;
    problem_run(&p);
    memcpy(out, p.out, p.out_count * 2);
    p.desc.page_size = 64;
    g = pages_of(&p);
    CHECK(paged_run(&p, &g) && !memcmp(out, p.out, p.out_count * 2));
    pages_free(&g);
    free(out);
    problem_free(&p);
}

/* A page that is none makes those rows NaN that see it, tile by tile; so do more keys than pages. */
static void pages_past_the_pool(void) {
    static const uint32_t lens[] = {40, 100, 33};
    ptxk_flash_prefill_desc desc = describe(2, 1, 64, REF_F16, 3);
    uint32_t i, last;
    problem p;
    pages g;
    desc.page_size = 64;
    p = problem_new(desc, ROWS, 1, lens, lens, 3);
    g = pages_of(&p);
    last = p.cu_q[3];
    g.table[g.per_sequence + 1] = g.count; /* of keys 64 ... 99 of the second sequence */
    CHECK(paged_run(&p, &g));
    for (i = 0; i < last; i++) {
        int second = i >= p.cu_q[1] && i < p.cu_q[2];
        CHECK(isnan(ref_get(p.out, REF_F16, out_at(&p, 0, i, 1))) == second);
        CHECK((isnan(p.lse[i]) != 0) == second);
    }
    g.table[g.per_sequence + 1] = 0;
    g.per_sequence = 1; /* 64 positions: the second sequence has more keys */
    CHECK(paged_run(&p, &g));
    for (i = 0; i < last; i++)
        if (i < p.cu_q[1] || (i >= p.cu_q[1] && i < p.cu_q[2]))
            CHECK(isnan(ref_get(p.out, REF_F16, out_at(&p, 0, i, 0))) == (i >= p.cu_q[1]));
    pages_free(&g);
    problem_free(&p);
}

/* Pages before all windows need not be there. */
static void pages_before_the_window(void) {
    static const uint32_t q_len = 140, kv_len = 400, window = 30;
    uint32_t i, size;
    for (size = 16; size <= 64; size *= 2) {
        ptxk_flash_prefill_desc desc = describe(2, 1, 64, REF_F16, 3);
        problem p;
        pages g;
        desc.page_size = size;
        desc.window = window;
        p = problem_new(desc, ROWS, 0, &q_len, &kv_len, 1);
        g = pages_of(&p);
        for (i = 0; (i + 1) * size <= kv_len - q_len - window + 1; i++) g.table[i] = 0xffffffffu - i;
        if (paged_run(&p, &g)) problem_compare(&p);
        pages_free(&g);
        problem_free(&p);
    }
}

/* A sink above the few keys that a query sees: the sum of weights is far from those that keys alone have. */
static void sinks_above_the_keys(void) {
    uint32_t i, h, n = 130;
    for (i = 0; i < 4; i++) {
        ptxk_flash_prefill_desc desc = describe(16, 2, 16, i % 2 ? REF_BF16 : REF_F16,
                                                PTXK_PREFILL_SINK | PTXK_PREFILL_LSE);
        problem p;
        desc.window = 1;
        p = problem_new(desc, ROWS, 0, &n, &n, 1);
        for (h = 0; h < 16; h++) p.sinks[h] = (float)(4 + h / 2 + random_within(0.5));
        if (base_target == PTX_SM(80)) p.target = PTX_SM(i / 2 ? 75 : 80);
        problem_check(&p);
        problem_free(&p);
    }
}

/* -- queries that are a tree of drafts -- */

static void trees(uint32_t rounds) {
    static const uint32_t dims[] = {16, 32, 64, 80, 128, 256}, targets[] = {75, 80, 90, 120},
                          q_sizes[] = {1, 2, 31, 32, 33, 64, 65, 100, 130, 200}, before[] = {0, 1, 30, 64, 100, 200};
    uint32_t round, b;
    for (round = 0; round < rounds; round++) {
        uint32_t kv_heads = 1 + random_below(2), batch = 1 + random_below(2), q_lens[2], kv_lens[2];
        int ragged = random_below(2) != 0, paged = ragged && random_below(2);
        ptxk_flash_prefill_desc desc = describe(kv_heads * (1 + random_below(3)), kv_heads, one_of(dims, 6),
                                                (enum ref_format)random_below(3),
                                                PTXK_PREFILL_TREE | random_below(4));
        problem p;
        if (base_target == PTX_SM_A(90) && desc.head_dim <= 128 && random_below(2)) {
            desc.type = PTX_E4M3;
            desc.out_type = PTX_F16;
        }
        if (random_below(2)) desc.flags |= PTXK_PREFILL_SINK;
        if (!random_below(4)) desc.soft_cap = 20;
        if (paged) desc.page_size = 16u << random_below(4);
        for (b = 0; b < batch; b++) {
            q_lens[b] = b && !ragged ? q_lens[0] : one_of(q_sizes, 10);
            kv_lens[b] = b && !ragged ? kv_lens[0] : q_lens[b] + one_of(before, 6);
            if (!b && random_below(8) == 0) kv_lens[0] = q_lens[0] / 2; /* queries before the sequence */
        }
        p = problem_new(desc, paged || random_below(2) ? ROWS : HEADS, ragged, q_lens, kv_lens, batch);
        if (base_target == PTX_SM(80)) p.target = PTX_SM(one_of(targets, 4));
        if (base_target != PTX_SM(80)) other_schedule();
        if (paged) {
            pages g = pages_of(&p);
            if (paged_run(&p, &g)) problem_compare(&p);
            pages_free(&g);
        } else {
            problem_check(&p);
        }
        problem_free(&p);
    }
}

/* -- e4m3, which sm_90a has -- */

static void bytes_with_factors(uint32_t rounds) {
    static const uint32_t lengths[] = {0, 1, 64, 65, 127, 128, 129, 256, 300, 500},
                          windows[] = {0, 0, 1, 70, 200};
    uint32_t round, b;
    for (round = 0; round < rounds; round++) {
        uint32_t kv_heads = 1 + random_below(2), batch = 1 + random_below(2), ragged = random_below(2),
                 paged = random_below(2), q_lens[2], kv_lens[2];
        ptxk_flash_prefill_desc desc = describe(kv_heads * (1 + random_below(3)), kv_heads,
                                                16 * (1 + random_below(8)), REF_F16, random_below(4));
        problem p;
        desc.type = PTX_E4M3;
        desc.out_type = type_of((enum ref_format)random_below(3));
        if (random_below(2)) desc.flags |= PTXK_PREFILL_SINK;
        desc.window = one_of(windows, 5);
        if (!random_below(4)) desc.soft_cap = 20;
        if (!random_below(4)) desc.scale = -0.1f;
        if (paged) desc.page_size = 16u << random_below(5);
        for (b = 0; b < batch; b++) {
            int again = b && !ragged;
            q_lens[b] = again ? q_lens[0] : one_of(lengths, 9);
            kv_lens[b] = again ? kv_lens[0] : one_of(lengths, 10);
        }
        p = problem_new(desc, paged || random_below(2) ? ROWS : HEADS, (int)ragged, q_lens, kv_lens, batch);
        other_schedule();
        if (paged) {
            pages g = pages_of(&p);
            if (paged_run(&p, &g)) problem_compare(&p);
            pages_free(&g);
        } else
            problem_check(&p);
        problem_free(&p);
    }
}

#endif
