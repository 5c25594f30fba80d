/* tensor_layouts.c - attention on tensors in one buffer, in every way that strides can say: rows of
   q, k, v and out together, K and V in turns, batches inside rows, gaps, heads outside, strides that mean
   nothing because there is but one, tensors with nothing in them. Right beside double precision, and no other
   byte is touched: `tensor_layouts [LIBRARY [ROUNDS]]`. Data is fresh in every run; PTXGEN_SEED=n
   repeats one.

   make build/tests/cuda/tensor_layouts */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"

#include "../reference/numbers.h"

#include <math.h>

enum { BYTES = 1 << 21, PART = 1 << 16 };
static unsigned char host[BYTES], have[BYTES];
static unsigned char written[BYTES]; /* 1: what a call has to write, and has been looked at */
static ptxcu_buffer memory;

static const ptx_type types[3] = {PTX_F32, PTX_F16, PTX_BF16};
static const enum ref_format formats[3] = {REF_F32, REF_F16, REF_BF16};

/* A tensor, where it lies in the buffer, and the index of its type. */
typedef struct place {
    ptxcu_tensor t;
    size_t at;
    uint32_t type;
} place;

static uint64_t below(uint64_t n) {
    return random_below((uint32_t)n);
}

static uint64_t element(const place *p, const uint64_t *index) {
    uint64_t i, e = 0;
    for (i = 0; i < p->t.rank; i++) e += index[i] * p->t.stride[i];
    return e;
}

static double number(const place *p, uint64_t a, uint64_t b, uint64_t c, uint64_t e) {
    uint64_t index[4];
    index[0] = a, index[1] = b, index[2] = c, index[3] = e;
    return ref_get(host + p->at, formats[p->type], element(p, index));
}

/* Random numbers in all of a tensor [a, b, c, d]. */
static void fill(const place *p, double size) {
    uint64_t i[4];
    for (i[0] = 0; i[0] < p->t.shape[0]; i[0]++)
        for (i[1] = 0; i[1] < p->t.shape[1]; i[1]++)
            for (i[2] = 0; i[2] < p->t.shape[2]; i[2]++)
                for (i[3] = 0; i[3] < p->t.shape[3]; i[3]++)
                    ref_put(host + p->at, formats[p->type], element(p, i), random_within(size));
}

/* A tensor [shape] at an element of the buffer. Strides of dimensions of one become nonsense: they are never
   stepped over. */
static place lay(ptxcu *cu, uint32_t type, size_t at, const uint64_t shape[4], const uint64_t stride[4]) {
    place p;
    ptxcu_buffer part;
    uint64_t s[4];
    uint32_t i;
    for (i = 0; i < 4; i++) s[i] = shape[i] > 1 || i == 3 ? stride[i] : below(1000);
    part.address = memory.address + at;
    part.bytes = memory.bytes - at;
    WORKS(cu, ptxcu_tensor_wrap(cu, part, types[type], 4, shape, s, &p.t));
    p.at = at;
    p.type = type;
    return p;
}

/* -- what calls have to give -- */

typedef struct wish {
    uint32_t causal, window;
    double scale, cap;
} wish;

/* One query at `position` of `length` keys: out[d], and the logarithm of the sum. */
static void truth(const wish *w, const place *q, const uint64_t qi[3], const place *k, const place *v,
                  const uint64_t kv[2], int keys_at, int64_t position, int64_t length, uint64_t d,
                  double *out, double *lse) {
    static double score[512];
    double most = -INFINITY, total = 0;
    int64_t j;
    uint64_t e;
    for (e = 0; e < d; e++) out[e] = 0;
    for (j = 0; j < length; j++) {
        score[j] = -INFINITY;
        if (w->causal && j > position) continue;
        if (w->window && (j <= position - (int64_t)w->window || j >= position + (int64_t)w->window)) continue;
        score[j] = 0;
        for (e = 0; e < d; e++)
            score[j] += number(q, qi[0], qi[1], qi[2], e)
                        * (keys_at == 1 ? number(k, kv[0], (uint64_t)j, kv[1], e)
                                        : number(k, kv[0], kv[1], (uint64_t)j, e));
        score[j] *= w->scale;
        if (w->cap > 0) score[j] = w->cap * tanh(score[j] / w->cap);
        if (score[j] > most) most = score[j];
    }
    for (j = 0; j < length; j++) {
        double x = score[j] == -INFINITY ? 0 : exp(score[j] - most);
        total += x;
        for (e = 0; x > 0 && e < d; e++)
            out[e] += x
                      * (keys_at == 1 ? number(v, kv[0], (uint64_t)j, kv[1], e)
                                      : number(v, kv[0], kv[1], (uint64_t)j, e));
    }
    for (e = 0; total > 0 && e < d; e++) out[e] /= total;
    *lse = total > 0 ? log(total) + most : -INFINITY;
}

static int close_to(double x, double want, double off) {
    return (isinf(want) && x == want) || fabs(x - want) <= off;
}

/* Element `index` of a result is `want`, and was to be written. */
static int right(const place *p, const uint64_t *index, double want, double off) {
    uint64_t e = element(p, index), bytes = ref_bytes(formats[p->type]);
    memset(written + p->at + e * bytes, 1, bytes);
    return close_to(ref_get(have + p->at, formats[p->type], e), want, off);
}

static void before(ptxcu *cu) {
    memset(written, 0, sizeof written);
    WORKS(cu, ptxcu_upload(cu, memory, 0, host, BYTES, NULL));
}

static void after(ptxcu *cu) {
    WORKS(cu, ptxcu_download(cu, have, memory, 0, BYTES, NULL));
    WORKS(cu, ptxcu_sync(cu));
}

static void untouched(const char *what) {
    size_t i, wrong = 0;
    for (i = 0; i < BYTES; i++) wrong += !written[i] && host[i] != have[i];
    if (!CHECK(wrong == 0)) printf("  %s: %u bytes beside the results were touched\n", what, (unsigned)wrong);
}

/* NaN everywhere, whatever a type: what is read beside the tensors shows. */
static void poison(void) {
    size_t n;
    for (n = 0; n < BYTES; n += 2) host[n] = 0xff, host[n + 1] = 0x7f;
}

/* Strides of [batch, rows, heads, d] for an order of the first three, `row` elements for each index of the
   innermost, with gaps. Returns the elements that it takes. */
static uint64_t strides(uint64_t n0, uint64_t n1, uint64_t n2, uint64_t row, uint64_t whole,
                        uint64_t stride[4]) {
    static const uint32_t orders[6][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {0, 1, 2}};
    const uint32_t *order = orders[random_below(6)];
    uint64_t n[3], next = row, gaps = random_below(2);
    uint32_t i;
    n[0] = n0, n[1] = n1, n[2] = n2;
    stride[3] = 1;
    for (i = 0; i < 3; i++) { /* from the innermost */
        stride[order[i]] = next;
        next = next * (n[order[i]] ? n[order[i]] : 1) + (gaps ? whole * below(3) : 0);
    }
    return next;
}

/* -- prefill -- */

enum { Q, K, V, OUT };
typedef struct sizes {
    uint64_t batch, qn, kn, g, h, d; /* sequences, queries, keys, KV heads, heads, elements of one */
    uint64_t whole;                  /* elements of 16 bytes */
    uint32_t in_place;               /* out is q */
} sizes;

/* One row has all of a token: heads together, or q, k and v of each head; the batch outside or inside. */
static void fused(const sizes *z, uint64_t stride[4][4], uint64_t at[4]) {
    uint32_t apart = z->h == z->g && random_below(2), n;
    uint64_t gap = random_below(2) ? z->whole : 0, parts = z->in_place ? 3 : 4, d = z->d;
    uint64_t row = apart ? parts * d * z->h + gap : (2 * z->h + 2 * z->g) * d + 3 * gap;
    uint64_t inside = random_below(2);
    for (n = 0; n < 4; n++) {
        stride[n][0] = inside ? row : row * (z->qn ? z->qn : 1) + gap;
        stride[n][1] = inside ? row * z->batch + gap : row;
        stride[n][2] = apart ? parts * d : d;
        stride[n][3] = 1;
    }
    at[Q] = 0;
    at[K] = apart ? d : z->h * d + gap;
    at[V] = at[K] + (apart ? d : z->g * d + gap);
    at[OUT] = z->in_place ? 0 : at[V] + (apart ? d : z->g * d + gap);
}

static void separate(const sizes *z, uint64_t stride[4][4], uint64_t at[4]) {
    at[Q] = 0;
    at[K] = at[Q] + strides(z->batch, z->qn, z->h, z->d, z->whole, stride[Q]);
    at[V] = at[K] + strides(z->batch, z->kn, z->g, z->d, z->whole, stride[K]);
    at[OUT] = at[V] + strides(z->batch, z->kn, z->g, z->d, z->whole, stride[V]);
    (void)strides(z->batch, z->qn, z->h, z->d, z->whole, stride[OUT]);
    if (!z->in_place) return;
    memcpy(stride[OUT], stride[Q], sizeof stride[OUT]);
    at[OUT] = at[Q];
}

static void look_prefill(const wish *w, const sizes *z, const place t[4], const place *lse, int with_lse,
                         double off) {
    uint64_t i[4], kv[2], at[4];
    uint32_t bad = 0;
    double want[64], sum;
    for (i[0] = 0; i[0] < z->batch; i[0]++)
        for (i[1] = 0; i[1] < z->qn; i[1]++)
            for (i[2] = 0; i[2] < z->h; i[2]++) {
                kv[0] = i[0], kv[1] = i[2] / (z->h / z->g);
                truth(w, &t[Q], i, &t[K], &t[V], kv, 1, (int64_t)(i[1] + z->kn) - (int64_t)z->qn,
                      (int64_t)z->kn, z->d, want, &sum);
                for (i[3] = 0; i[3] < z->d; i[3]++) bad += !right(&t[OUT], i, want[i[3]], off);
                at[0] = i[0], at[1] = i[2], at[2] = i[1], at[3] = 0;
                if (with_lse) bad += !right(lse, at, sum, 1e-3);
            }
    if (!CHECK(bad == 0))
        printf("  prefill: %u wrong: type %u, in place %u, batch %u, %u queries, %u keys, %u on %u heads of "
               "%u, causal %u, window %u, cap %g\n",
               bad, t[Q].type, z->in_place, (unsigned)z->batch, (unsigned)z->qn, (unsigned)z->kn,
               (unsigned)z->h, (unsigned)z->g, (unsigned)z->d, w->causal, w->window, w->cap);
}

static void test_prefill(ptxcu *cu) {
    static const uint32_t lengths[] = {0, 1, 2, 5, 17, 33, 64, 70}, of[] = {8, 16, 24, 40, 64};
    /* f32: 2^-18 of each product, f16 and bf16: weights and out rounded to 2^-11 and 2^-8, twice of each. */
    static const double off[3] = {2e-4, 2e-3, 2e-2}, most[3] = {3.402e38, 1, 3.38e38};
    uint32_t type = random_below(3), together = random_below(2), n;
    uint64_t stride[4][4], at[4], shape[4], base = 16 * below(9);
    double big = random_below(3) ? 1 : most[type];
    sizes z;
    place t[4], lse;
    ptxcu_flash_prefill_desc x;
    ptxcu_call call;
    wish w;
    memset(&x, 0, sizeof x);
    z.batch = 1 + below(3), z.d = of[random_below(5)], z.g = 1 + below(3), z.h = z.g * (1 + below(3));
    z.qn = lengths[random_below(8)], z.kn = together ? z.qn : lengths[random_below(8)];
    z.in_place = random_below(2), z.whole = 16 / ref_bytes(formats[type]);
    if (together) fused(&z, stride, at);
    else separate(&z, stride, at);
    poison();
    shape[0] = z.batch, shape[3] = z.d;
    for (n = 0; n < 4; n++) {
        shape[1] = n == K || n == V ? z.kn : z.qn;
        shape[2] = n == K || n == V ? z.g : z.h;
        t[n] = lay(cu, type, base + at[n] * ref_bytes(formats[type]), shape, stride[n]);
        if (n != OUT) fill(&t[n], n == V ? big : 1);
    }
    shape[1] = z.h, shape[2] = z.qn, shape[3] = 1;
    stride[0][1] = z.qn + below(3), stride[0][0] = stride[0][1] * z.h + below(3);
    stride[0][2] = stride[0][3] = 1;
    lse = lay(cu, 0, BYTES - PART + 4 * below(5), shape, stride[0]);
    x.q = t[Q].t, x.k = t[K].t, x.v = t[V].t, x.out = t[OUT].t;
    if (random_below(2)) x.lse = lse.t, x.lse.rank = 3;
    x.causal = w.causal = random_below(2);
    x.window = w.window = random_below(3) ? 0 : 1 + random_below(40);
    x.soft_cap = random_below(3) ? 0 : 2;
    w.cap = (double)x.soft_cap;
    w.scale = 1 / sqrt((double)z.d);
    before(cu);
    WORKS(cu, ptxcu_flash_prefill_prepare(cu, &x, &call));
    WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
    after(cu);
    look_prefill(&w, &z, t, &lse, x.lse.owner != NULL, off[type] * big);
    untouched("prefill");
    for (n = 0; n < 4; n++) WORKS(cu, ptxcu_tensor_free(cu, &t[n].t));
    WORKS(cu, ptxcu_tensor_free(cu, &lse.t));
}

/* -- decode, with K and V in turns or apart, and the new rows appended on the way -- */

enum { NEW_K = 4, NEW_V };

/* [batch, rows, 2, kv_heads, d], [batch, rows, kv_heads, 2, d], or apart; where V begins. */
static uint64_t lay_cache(const sizes *z, uint64_t s[4]) {
    uint32_t turns = random_below(3);
    if (turns == 0) return strides(z->batch, z->g, z->kn, z->d, z->whole, s);
    s[1] = turns == 1 ? z->d : 2 * z->d;
    s[2] = 2 * z->g * z->d + z->whole * below(2);
    s[0] = z->kn * s[2] + z->whole * below(3);
    s[3] = 1;
    return turns == 1 ? z->g * z->d : z->d;
}

/* The rows that a call appends, into the host's caches. */
static void append(const sizes *z, const place t[6], const uint32_t *length) {
    uint64_t i[4], q;
    for (i[0] = 0; i[0] < z->batch; i[0]++)
        for (q = 0; q < z->qn; q++)
            for (i[1] = 0; i[1] < z->g; i[1]++)
                for (i[3] = 0; i[3] < z->d; i[3]++) {
                    if (length[i[0]] + q < z->qn) continue;
                    i[2] = length[i[0]] + q - z->qn;
                    ref_put(host + t[K].at, formats[t[K].type], element(&t[K], i),
                            number(&t[NEW_K], i[0], q, i[1], i[3]));
                    ref_put(host + t[V].at, formats[t[V].type], element(&t[V], i),
                            number(&t[NEW_V], i[0], q, i[1], i[3]));
                }
}

static void look_decode(const wish *w, const sizes *z, const place t[6], const uint32_t *length, double off) {
    uint64_t i[4], kv[2];
    uint32_t bad = 0;
    double want[64], sum;
    for (i[0] = 0; i[0] < z->batch; i[0]++)
        for (i[1] = 0; i[1] < z->qn; i[1]++)
            for (i[2] = 0; i[2] < z->h; i[2]++) {
                int64_t p = (int64_t)length[i[0]] - (int64_t)z->qn + (int64_t)i[1];
                kv[0] = i[0], kv[1] = i[2] / (z->h / z->g);
                truth(w, &t[Q], i, &t[K], &t[V], kv, 2, p, p < 0 ? 0 : (int64_t)length[i[0]], z->d, want,
                      &sum);
                for (i[3] = 0; i[3] < z->d; i[3]++) bad += !right(&t[OUT], i, want[i[3]], off);
            }
    if (!CHECK(bad == 0))
        printf("  decode: %u wrong: types %u %u %u %u, batch %u, %u queries, %u rows, %u on %u heads of %u, "
               "window %u, cap %g, lengths %u %u %u\n",
               bad, t[Q].type, t[K].type, t[OUT].type, t[NEW_K].type, (unsigned)z->batch, (unsigned)z->qn,
               (unsigned)z->kn, (unsigned)z->h, (unsigned)z->g, (unsigned)z->d, w->window, w->cap, length[0],
               length[1], length[2]);
}

static void test_decode(ptxcu *cu) {
    static const uint32_t rows[] = {1, 2, 16, 33, 100, 260}, of[] = {8, 16, 24, 64};
    static const double off[3] = {8e-5, 2e-3, 2e-2}; /* twice out's rounding; f32: bf16's weights, 2^-16 */
    uint32_t type[6], length[3] = {0, 0, 0}, n, appended = random_below(2);
    uint64_t shape[4], s[4], at[6], base = 16 * below(9);
    sizes z;
    place t[6];
    ptxcu_buffer part;
    ptxcu_kv_cache cache;
    ptxcu_flash_decode_desc x;
    ptxcu_call call;
    wish w;
    double big;
    memset(&x, 0, sizeof x);
    type[Q] = random_below(3), type[K] = type[V] = random_below(3), type[OUT] = random_below(3);
    type[NEW_K] = type[NEW_V] = random_below(3);
    big = random_below(3) || type[V] == 1 || type[OUT] == 1 || type[NEW_V] == 1 ? 1 : 3.38e38;
    z.batch = 1 + below(3), z.d = of[random_below(4)], z.g = 1 + below(3), z.h = z.g * (1 + below(4));
    z.qn = 1 + below(3), z.kn = rows[random_below(6)], z.whole = 16 / ref_bytes(formats[type[K]]);
    poison();
    at[K] = base, at[V] = base + lay_cache(&z, s) * ref_bytes(formats[type[V]]);
    shape[0] = z.batch, shape[3] = z.d;
    for (n = 0; n < 6; n++) {
        uint64_t dense[4];
        int cached = n == K || n == V;
        if (!cached) at[n] = BYTES - (8 - n) * PART;
        shape[1] = cached ? z.g : z.qn, shape[2] = cached ? z.kn : n == Q || n == OUT ? z.h : z.g;
        dense[3] = 1, dense[2] = z.d, dense[1] = z.d * shape[2], dense[0] = dense[1] * shape[1];
        t[n] = lay(cu, type[n], at[n], shape, cached ? s : dense);
        if (n != OUT) fill(&t[n], n == V || n == NEW_V ? big : 1);
    }
    for (n = 0; n < z.batch; n++) length[n] = random_below((uint32_t)z.kn + 1);
    memcpy(host + BYTES - PART, length, sizeof length);
    part.address = memory.address + BYTES - PART, part.bytes = PART;
    WORKS(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 1, &z.batch, NULL, &x.lengths));
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &t[K].t, &t[V].t, NULL, &cache));
    x.q = t[Q].t, x.out = t[OUT].t, x.cache = &cache;
    if (appended) x.k = t[NEW_K].t, x.v = t[NEW_V].t;
    x.window = w.window = random_below(3) ? 0 : 1 + random_below(50);
    x.soft_cap = random_below(3) ? 0 : 2;
    w.causal = 1, w.cap = (double)x.soft_cap, w.scale = 1 / sqrt((double)z.d);
    before(cu);
    WORKS(cu, ptxcu_flash_decode_prepare(cu, &x, &call));
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &x.workspace));
    WORKS(cu, ptxcu_flash_decode_prepare(cu, &x, &call));
    WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
    after(cu);
    if (appended) append(&z, t, length);
    look_decode(&w, &z, t, length, off[type[OUT]] * big);
    untouched("decode");
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_tensor_free(cu, &x.workspace));
    WORKS(cu, ptxcu_tensor_free(cu, &x.lengths));
    for (n = 0; n < 6; n++) WORKS(cu, ptxcu_tensor_free(cu, &t[n].t));
}

/* -- activation, wherever rows begin -- */

/* Rows of n elements that begin at any element, with strides that are multiples of a vector or not. */
static void test_activation(ptxcu *cu, uint32_t x_type, uint32_t y_type, uint64_t n, const uint64_t first[3],
                            uint64_t gap) {
    const uint32_t type[3] = {x_type, x_type, y_type};
    uint64_t shape[4], s[4], i[4];
    ptxcu_activation_desc d;
    place t[3];
    uint32_t w, bad = 0;
    memset(&d, 0, sizeof d);
    poison();
    shape[0] = shape[1] = 1, shape[2] = 3, shape[3] = n;
    s[0] = s[1] = 0, s[2] = n + gap, s[3] = 1;
    for (w = 0; w < 3; w++) {
        t[w] = lay(cu, type[w], w * PART + first[w] * ref_bytes(formats[type[w]]), shape, s);
        if (w < 2) fill(&t[w], 3);
        t[w].t.rank = 2, t[w].t.shape[0] = 3, t[w].t.shape[1] = n;
        t[w].t.stride[0] = s[2], t[w].t.stride[1] = 1;
    }
    d.x = t[0].t, d.up = t[1].t, d.y = t[2].t;
    before(cu);
    WORKS(cu, ptxcu_activation(cu, &d, NULL));
    after(cu);
    for (i[0] = 0; i[0] < 3; i[0]++)
        for (i[1] = 0; i[1] < n; i[1]++) {
            double x = ref_get(host + t[0].at, formats[x_type], element(&t[0], i));
            double up = ref_get(host + t[1].at, formats[x_type], element(&t[1], i));
            bad += !right(&t[2], i, x / (1 + exp(-x)) * up, y_type ? 0.04 : 1e-5);
        }
    if (!CHECK(bad == 0)) printf("  activation: %u wrong\n", bad);
    untouched("activation");
    for (w = 0; w < 3; w++) WORKS(cu, ptxcu_tensor_free(cu, &t[w].t));
}

static void test_activations(ptxcu *cu) {
    static const uint32_t pairs[][2] = {{0, 0}, {0, 1}, {1, 0}, {2, 2}};
    uint64_t first[3];
    uint32_t p, which, k;
    for (p = 0; p < 4; p++)
        for (which = 0; which < 3; which++)
            for (k = 0; k < 8; k++) {
                first[0] = first[1] = first[2] = 0;
                first[which] = k;
                test_activation(cu, pairs[p][0], pairs[p][1], 32, first, 8);
            }
    for (k = 0; k < 12; k++) {
        for (which = 0; which < 3; which++) first[which] = below(8);
        test_activation(cu, random_below(3), random_below(3), 1 + below(70), first, below(9));
    }
}

/* -- nothing to do, and what cannot be done -- */

static ptxcu_tensor make(ptxcu *cu, ptx_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    ptxcu_tensor t;
    uint64_t shape[3];
    shape[0] = a, shape[1] = b, shape[2] = c;
    WORKS(cu, ptxcu_tensor_create(cu, type, rank, shape, &t));
    return t;
}

/* Tensors of no rows have no memory; what else the description says is looked at all the same. */
static void test_empty(ptxcu *cu) {
    ptxcu_tensor none = make(cu, PTX_F32, 2, 0, 8, 0), ids = make(cu, PTX_U32, 1, 0, 0, 0);
    ptxcu_tensor three = make(cu, PTX_F32, 3, 0, 2, 8), f = make(cu, PTX_F64, 1, 4, 0, 0);
    ptxcu_norm_desc n;
    ptxcu_softmax_desc s;
    ptxcu_activation_desc a;
    ptxcu_rope_desc r;
    ptxcu_embed_desc e;
    ptxcu_sample_desc m;
    ptxcu_flash_decode_desc d;
    ptxcu_kv_cache cache;
    ptxcu_call call;
    memset(&n, 0, sizeof n), memset(&s, 0, sizeof s), memset(&a, 0, sizeof a), memset(&r, 0, sizeof r);
    memset(&e, 0, sizeof e), memset(&m, 0, sizeof m), memset(&d, 0, sizeof d);
    n.x = n.y = s.x = s.y = a.x = a.y = e.y = e.table = m.logits = none;
    r.x = three, r.positions = e.ids = m.tokens = ids, r.frequencies = f, e.format = PTXK_F32;
    WORKS(cu, ptxcu_norm(cu, &n, NULL));
    WORKS(cu, ptxcu_softmax(cu, &s, NULL));
    WORKS(cu, ptxcu_activation(cu, &a, NULL));
    WORKS(cu, ptxcu_rope(cu, &r, NULL));
    WORKS(cu, ptxcu_embed(cu, &e, NULL));
    WORKS(cu, ptxcu_sample(cu, &m, NULL));
    n.eps = -1;
    EXPECT(cu, ptxcu_norm_prepare(cu, &n, &call), PTXCU_E_SHAPE, "norm: eps is -1");
    WORKS(cu, ptxcu_kv_cache_create(cu, PTX_F32, 0, 2, 10, 8, &cache));
    d.q = d.out = three, d.lengths = ids, d.cache = &cache;
    WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_tensor_free(cu, &none));
    WORKS(cu, ptxcu_tensor_free(cu, &ids));
    WORKS(cu, ptxcu_tensor_free(cu, &three));
    WORKS(cu, ptxcu_tensor_free(cu, &f));
}

static void test_refused(ptxcu *cu) {
    uint64_t shape[4] = {2, 1, 33, 16}, s[4] = {33 * 16 + 4, 16, 16, 1};
    ptxcu_kv_cache cache;
    ptxcu_flash_prefill_desc x;
    ptxcu_call call;
    place k, v;
    k = lay(cu, 1, 0, shape, s), v = lay(cu, 1, BYTES / 2, shape, s);
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &k.t, &v.t, NULL, &cache), PTXCU_E_SHAPE, "multiple of 16 bytes");
    WORKS(cu, ptxcu_tensor_free(cu, &k.t));
    WORKS(cu, ptxcu_tensor_free(cu, &v.t));
    memset(&x, 0, sizeof x);
    s[0] = 33 * 16;
    k = lay(cu, 1, 0, shape, s), v = lay(cu, 2, 0, shape, s);
    x.q = x.k = x.v = x.out = k.t; /* but for out they may be one */
    EXPECT(cu, ptxcu_flash_prefill_prepare(cu, &x, &call), PTXCU_E_SHAPE, "out overlaps k");
    x.k = x.v = make(cu, PTX_F16, 1, 2 * 33 * 16, 0, 0);
    WORKS(cu, ptxcu_tensor_reshape(cu, &x.k, 4, shape, &x.v));
    x.out = v.t; /* where q is, of another type */
    {
        ptxcu_tensor owner = x.k;
        x.k = x.v;
        EXPECT(cu, ptxcu_flash_prefill_prepare(cu, &x, &call), PTXCU_E_SHAPE, "out");
        x.out = k.t;
        WORKS(cu, ptxcu_flash_prefill_prepare(cu, &x, &call));
        WORKS(cu, ptxcu_tensor_free(cu, &owner));
    }
    WORKS(cu, ptxcu_tensor_free(cu, &k.t));
    WORKS(cu, ptxcu_tensor_free(cu, &v.t));
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    ptxcu_desc desc = describe(library && *library ? library : NULL, NULL);
    ptxcu *cu;
    int n, rounds = argc > 2 ? atoi(argv[2]) : 40;
    start_random();
    WORKS(cu, ptxcu_open(&cu, &desc));
    if (ptxcu_get_error(cu)->code == PTXCU_E_NONE) {
        find_extras(cu);
        WORKS(cu, ptxcu_alloc(cu, BYTES, &memory));
        test_empty(cu);
        test_refused(cu);
        test_activations(cu);
        for (n = 0; n < rounds; n++) {
            test_prefill(cu);
            test_decode(cu);
        }
        WORKS(cu, ptxcu_free(cu, memory));
    }
    ptxcu_close(cu);
    if (calls) CHECK(calls("cuMemAlloc_v2") == calls("cuMemFree_v2"));
    return check_end();
}
