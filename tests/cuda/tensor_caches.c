/* tensor_caches.c - tensor calls on caches of 8-bit numbers: kv_scatter, flash_decode with and without appended rows,
   and flash_prefill give what the same calls give on f32 caches of the numbers that were stored; flash_mla on caches
   of latents gives what its definition says; and a prefix that sequences share is read once:
   `tensor_caches [LIBRARY]`. Data is fresh in every run; PTXGEN_SEED=n repeats one. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"
#include "../reference/numbers.h"

enum { BATCH = 2, KV_HEADS = 2, HEADS = 6, DIM = 64, PAGE = 16, PAGES = 3, ROWS = PAGE * PAGES };

static ptxcu_tensor make(ptxcu *cu, uint32_t type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    ptxcu_tensor t;
    uint64_t shape[4];
    shape[0] = a, shape[1] = b, shape[2] = c, shape[3] = d;
    WORKS(cu, ptxcu_tensor_create(cu, (ptx_type)type, rank, shape, &t));
    return t;
}

/* A tensor of random numbers. */
static ptxcu_tensor numbers(ptxcu *cu, uint32_t type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    ptxcu_tensor t = make(cu, type, rank, a, b, c, d);
    size_t i, bytes = (size_t)ptxcu_tensor_bytes(&t);
    void *host = malloc(bytes);
    enum ref_format f = type == PTX_F32 ? REF_F32 : REF_F16;
    for (i = 0; i < bytes / ref_bytes(f); i++) ref_put(host, f, i, random_within(1));
    WORKS(cu, ptxcu_tensor_write(cu, &t, host, bytes, NULL));
    free(host);
    return t;
}

static double from_e4m3(uint8_t b) {
    int e = b >> 3 & 15, m = b & 7;
    double x = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    return b & 0x80 ? -x : x;
}

typedef struct caches {
    ptxcu_kv_cache bytes, plain;
    ptxcu_tensor k, v, k_factors, v_factors, blocks, plain_k, plain_v;
    float factor[2][KV_HEADS];
    uint32_t type;
    int paged;
} caches;

static void make_caches(ptxcu *cu, caches *c) {
    uint64_t first = c->paged ? BATCH * PAGES : BATCH, rows = c->paged ? PAGE : ROWS;
    static uint32_t table[BATCH * PAGES] = {3, 1, 4, 0, 5, 2};
    uint32_t i;
    memset(&c->blocks, 0, sizeof c->blocks);
    if (c->paged) {
        c->blocks = make(cu, PTX_U32, 2, BATCH, PAGES, 0, 0);
        WORKS(cu, ptxcu_tensor_write(cu, &c->blocks, table, sizeof table, NULL));
    }
    c->plain_k = make(cu, PTX_F32, 4, first, KV_HEADS, rows, DIM);
    c->plain_v = make(cu, PTX_F32, 4, first, KV_HEADS, rows, DIM);
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &c->plain_k, &c->plain_v, c->paged ? &c->blocks : NULL, &c->plain));
    for (i = 0; i < 2 * KV_HEADS; i++) c->factor[i / KV_HEADS][i % KV_HEADS] = (float)(0.004 + random_within(0.001));
    if (c->type == PTXK_Q8_0 && !c->paged) { /* the library's own */
        WORKS(cu, ptxcu_kv_cache_create(cu, PTXK_Q8_0, BATCH, KV_HEADS, ROWS, DIM, &c->bytes));
        c->k = c->bytes.k, c->v = c->bytes.v, c->k_factors = c->bytes.k_factors, c->v_factors = c->bytes.v_factors;
        return;
    }
    c->k = make(cu, PTX_B8, 4, first, KV_HEADS, rows, DIM);
    c->v = make(cu, PTX_B8, 4, first, KV_HEADS, rows, DIM);
    if (c->type == PTXK_Q8_0) {
        c->k_factors = make(cu, PTX_F16, 4, first, KV_HEADS, rows, DIM / 32);
        c->v_factors = make(cu, PTX_F16, 4, first, KV_HEADS, rows, DIM / 32);
    } else {
        c->k_factors = make(cu, PTX_F32, 1, KV_HEADS, 0, 0, 0);
        c->v_factors = make(cu, PTX_F32, 1, KV_HEADS, 0, 0, 0);
        WORKS(cu, ptxcu_tensor_write(cu, &c->k_factors, c->factor[0], sizeof c->factor[0], NULL));
        WORKS(cu, ptxcu_tensor_write(cu, &c->v_factors, c->factor[1], sizeof c->factor[1], NULL));
    }
    WORKS(cu, ptxcu_kv_cache_wrap_bytes(cu, c->type, &c->k, &c->v, &c->k_factors, &c->v_factors,
                                        c->paged ? &c->blocks : NULL, &c->bytes));
}

static void free_caches(ptxcu *cu, caches *c) {
    int owns = (int)c->bytes.owns;
    WORKS(cu, ptxcu_kv_cache_free(cu, &c->bytes));
    WORKS(cu, ptxcu_kv_cache_free(cu, &c->plain));
    if (!owns) {
        WORKS(cu, ptxcu_tensor_free(cu, &c->k));
        WORKS(cu, ptxcu_tensor_free(cu, &c->v));
        WORKS(cu, ptxcu_tensor_free(cu, &c->k_factors));
        WORKS(cu, ptxcu_tensor_free(cu, &c->v_factors));
    }
    WORKS(cu, ptxcu_tensor_free(cu, &c->plain_k));
    WORKS(cu, ptxcu_tensor_free(cu, &c->plain_v));
    if (c->paged) WORKS(cu, ptxcu_tensor_free(cu, &c->blocks));
}

/* Fills the f32 caches with the numbers that the 8-bit ones have. */
static void copy_numbers(ptxcu *cu, const caches *c) {
    enum { N = BATCH * KV_HEADS * ROWS * DIM };
    static uint8_t bytes[N];
    static uint16_t factors[N / 32];
    static float x[N];
    int v;
    size_t i, head = (size_t)(c->paged ? PAGE : ROWS) * DIM;
    for (v = 0; v < 2; v++) {
        WORKS(cu, ptxcu_tensor_read(cu, bytes, v ? &c->v : &c->k, sizeof bytes, NULL));
        if (c->type == PTXK_Q8_0)
            WORKS(cu, ptxcu_tensor_read(cu, factors, v ? &c->v_factors : &c->k_factors, sizeof factors, NULL));
        for (i = 0; i < N; i++)
            x[i] = c->type == PTXK_Q8_0 ? (float)((int8_t)bytes[i] * ref_from_f16(factors[i / 32]))
                                        : (float)from_e4m3(bytes[i]) * c->factor[v][i / head % KV_HEADS];
        WORKS(cu, ptxcu_tensor_write(cu, v ? &c->plain_v : &c->plain_k, x, sizeof x, NULL));
    }
}

#define HALVES 0x1p-9 /* weighted means of numbers below 1, weights and numbers in f16 */

static void compare(ptxcu *cu, const ptxcu_tensor *have, const ptxcu_tensor *want, double most, const char *what) {
    enum { N = BATCH * ROWS * HEADS * DIM };
    static uint16_t half[N];
    static float x[N], y[N];
    size_t n = (size_t)(ptxcu_tensor_bytes(want) / 4), i;
    double worst = 0;
    char more[100];
    WORKS(cu, ptxcu_tensor_read(cu, y, want, n * 4, NULL));
    if (have->type == PTX_F16) {
        WORKS(cu, ptxcu_tensor_read(cu, half, have, n * 2, NULL));
        for (i = 0; i < n; i++) x[i] = (float)ref_from_f16(half[i]);
    } else {
        WORKS(cu, ptxcu_tensor_read(cu, x, have, n * 4, NULL));
    }
    for (i = 0; i < n; i++) {
        double error = fabs((double)x[i] - (double)y[i]);
        if (!(error <= worst)) worst = error; /* NaN too */
    }
    (void)snprintf(more, sizeof more, "%s: error %g", what, worst);
    CHECK_MORE(worst <= most, more);
}

/* flash_prefill of queries that are e4m3, too, over the cache, and where it is not paged over k and v by themselves. */
static void attention_of_bytes(ptxcu *cu, caches *c) {
    enum { QUERIES = 17, N = BATCH * QUERIES * HEADS * DIM };
    ptxcu_flash_prefill_desc p;
    ptxcu_tensor q, out, plain_q, plain_out, factors;
    static uint8_t bytes[N];
    static float x[N];
    float factor[HEADS];
    uint32_t i;
    memset(&p, 0, sizeof p);
    q = make(cu, PTX_B8, 4, BATCH, QUERIES, HEADS, DIM);
    out = make(cu, PTX_F16, 4, BATCH, QUERIES, HEADS, DIM);
    plain_q = make(cu, PTX_F32, 4, BATCH, QUERIES, HEADS, DIM);
    plain_out = make(cu, PTX_F32, 4, BATCH, QUERIES, HEADS, DIM);
    factors = make(cu, PTX_F32, 1, HEADS, 0, 0, 0);
    for (i = 0; i < HEADS; i++) factor[i] = (float)(3 + random_within(1));
    for (i = 0; i < N; i++) {
        bytes[i] = (uint8_t)(random_below(2) << 7 | random_below(0x3c)); /* to 1.4 */
        x[i] = (float)from_e4m3(bytes[i]) * factor[i / DIM % HEADS];
    }
    WORKS(cu, ptxcu_tensor_write(cu, &q, bytes, sizeof bytes, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &plain_q, x, sizeof x, NULL));
    for (i = 0; i < HEADS; i++) factor[i] *= c->factor[0][i * KV_HEADS / HEADS];
    WORKS(cu, ptxcu_tensor_write(cu, &factors, factor, sizeof factor, NULL));
    p.causal = 1, p.kv_len = 40;
    p.q = plain_q, p.out = plain_out, p.cache = &c->plain;
    WORKS(cu, ptxcu_flash_prefill(cu, &p, NULL));
    p.score_factors = factors;
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_ARGUMENT, "score_factors is given, and type is not");
    p.q = q, p.out = out, p.cache = &c->bytes, p.type = PTX_E4M3, p.v_factors = c->v_factors;
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_ARGUMENT, "v_factors is given, and cache is not NULL");
    memset(&p.v_factors, 0, sizeof p.v_factors);
    if (ptxcu_device_info(cu)->target != PTX_SM_A(90)) {
        EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_SHAPE, "type is e4m3, which needs the target sm_90a");
    } else {
        WORKS(cu, ptxcu_flash_prefill(cu, &p, NULL));
        compare(cu, &out, &plain_out, 0x1p-4, "prefill of e4m3"); /* weights in e4m3 */
        if (!c->paged) {
            p.cache = NULL, p.v_factors = c->v_factors;
            WORKS(cu, ptxcu_tensor_transpose(cu, &c->k, 1, 2, &p.k));
            WORKS(cu, ptxcu_tensor_transpose(cu, &c->v, 1, 2, &p.v));
            WORKS(cu, ptxcu_tensor_narrow(cu, &p.k, 1, 0, 40, &p.k));
            WORKS(cu, ptxcu_tensor_narrow(cu, &p.v, 1, 0, 40, &p.v));
            WORKS(cu, ptxcu_flash_prefill(cu, &p, NULL));
            compare(cu, &out, &plain_out, 0x1p-4, "prefill of e4m3 without a cache");
            p.v_factors = p.score_factors;
            EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_SHAPE, "v_factors has shape [6], must be [kv_heads]");
            p.cache = &c->bytes;
        }
    }
    memset(&p.v_factors, 0, sizeof p.v_factors);
    WORKS(cu, ptxcu_tensor_free(cu, &p.score_factors));
    memset(&p.score_factors, 0, sizeof p.score_factors);
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_ARGUMENT, "score_factors is a zero tensor");
    p.cache = &c->plain;
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_SHAPE, "cache->k is of type f32, must be q's, b8");
    p.type = 0;
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_SHAPE, "q is of type b8, must be f16, bf16 or f32");
    p.type = PTX_E5M2;
    EXPECT(cu, ptxcu_flash_prefill(cu, &p, NULL), PTXCU_E_ARGUMENT, "type is PTX_E5M2, must be 0 or PTX_E4M3");
    WORKS(cu, ptxcu_tensor_free(cu, &q));
    WORKS(cu, ptxcu_tensor_free(cu, &out));
    WORKS(cu, ptxcu_tensor_free(cu, &plain_q));
    WORKS(cu, ptxcu_tensor_free(cu, &plain_out));
}

static void attention(ptxcu *cu, caches *c) {
    ptxcu_kv_scatter_desc s;
    ptxcu_flash_decode_desc d;
    ptxcu_flash_prefill_desc p;
    ptxcu_tensor positions, sequences, out, plain_out, q, half, length, k, v;
    ptxcu_call call;
    static uint32_t at[BATCH * ROWS], of[BATCH * ROWS], lengths[BATCH];
    uint32_t n = 0, b, i;
    memset(&s, 0, sizeof s);
    memset(&d, 0, sizeof d);
    memset(&p, 0, sizeof p);
    for (b = 0; b < BATCH; b++) {
        lengths[b] = 20 + random_below(ROWS - 21);
        for (i = 0; i < ROWS; i++) at[n] = i, of[n++] = b;
    }
    positions = make(cu, PTX_U32, 1, n, 0, 0, 0);
    sequences = make(cu, PTX_U32, 1, n, 0, 0, 0);
    length = make(cu, PTX_U32, 1, BATCH, 0, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &positions, at, sizeof at, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &sequences, of, sizeof of, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &length, lengths, sizeof lengths, NULL));
    s.k = numbers(cu, PTX_F32, 3, n, KV_HEADS, DIM, 0);
    s.v = numbers(cu, PTX_F32, 3, n, KV_HEADS, DIM, 0);
    s.cache = &c->bytes;
    s.positions = positions;
    s.sequences = sequences;
    WORKS(cu, ptxcu_kv_scatter(cu, &s, NULL));
    copy_numbers(cu, c);

    q = numbers(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    k = numbers(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
    v = numbers(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
    out = make(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    plain_out = make(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    for (i = 0; i < 2; i++) { /* as stored; with an appended row */
        d.q = q, d.out = out, d.cache = &c->bytes, d.lengths = length;
        if (i) d.k = k, d.v = v;
        memset(&d.workspace, 0, sizeof d.workspace);
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &d, &call));
        WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
        WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
        if (d.workspace.owner) WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
        if (i) copy_numbers(cu, c);
        memset(&d.k, 0, sizeof d.k);
        memset(&d.v, 0, sizeof d.v);
        memset(&d.workspace, 0, sizeof d.workspace);
        d.cache = &c->plain, d.out = plain_out;
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &d, &call));
        WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
        WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
        if (d.workspace.owner) WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
        compare(cu, &out, &plain_out, HALVES, i ? "decode with a new row" : "decode");
    }
    WORKS(cu, ptxcu_tensor_free(cu, &q));
    WORKS(cu, ptxcu_tensor_free(cu, &out));
    WORKS(cu, ptxcu_tensor_free(cu, &plain_out));

    half = numbers(cu, PTX_F16, 4, BATCH, 17, HEADS, DIM);
    {
        static uint16_t h[BATCH * 17 * HEADS * DIM];
        static float x[BATCH * 17 * HEADS * DIM];
        WORKS(cu, ptxcu_tensor_read(cu, h, &half, sizeof h, NULL));
        for (i = 0; i < BATCH * 17 * HEADS * DIM; i++) x[i] = (float)ref_from_f16(h[i]);
        q = make(cu, PTX_F32, 4, BATCH, 17, HEADS, DIM);
        WORKS(cu, ptxcu_tensor_write(cu, &q, x, sizeof x, NULL));
    }
    out = make(cu, PTX_F16, 4, BATCH, 17, HEADS, DIM);
    plain_out = make(cu, PTX_F32, 4, BATCH, 17, HEADS, DIM);
    p.q = half, p.out = out, p.cache = &c->bytes, p.causal = 1, p.kv_len = 40;
    WORKS(cu, ptxcu_flash_prefill(cu, &p, NULL));
    p.q = q, p.out = plain_out, p.cache = &c->plain;
    WORKS(cu, ptxcu_flash_prefill(cu, &p, NULL));
    compare(cu, &out, &plain_out, HALVES, "prefill");
    WORKS(cu, ptxcu_tensor_free(cu, &half));
    WORKS(cu, ptxcu_tensor_free(cu, &q));
    WORKS(cu, ptxcu_tensor_free(cu, &out));
    WORKS(cu, ptxcu_tensor_free(cu, &plain_out));
    WORKS(cu, ptxcu_tensor_free(cu, &k));
    WORKS(cu, ptxcu_tensor_free(cu, &v));
    WORKS(cu, ptxcu_tensor_free(cu, &s.k));
    WORKS(cu, ptxcu_tensor_free(cu, &s.v));
    WORKS(cu, ptxcu_tensor_free(cu, &positions));
    WORKS(cu, ptxcu_tensor_free(cu, &sequences));
    WORKS(cu, ptxcu_tensor_free(cu, &length));
}

/* Attention of 4 sequences to 20 keys that they share, read once, then to 12 of their own, which here are the same:
   as attention to all 32. */
static void shared_prefix(ptxcu *cu) {
    enum { N = 4, PREFIX = 20, KEYS = 32 };
    static float x[2][KV_HEADS * KEYS * DIM], y[N * KV_HEADS * KEYS * DIM];
    static const uint32_t all[N] = {15, 15, 15, 15};
    ptxcu_flash_decode_desc d;
    ptxcu_kv_cache whole, own;
    ptxcu_tensor k[2], v[2], q, tree, out, rows, lse, prior, prior_lse;
    uint64_t shape[3] = {N, HEADS, DIM};
    size_t i, b, g, head = KEYS * DIM;
    k[0] = numbers(cu, PTX_F32, 4, 1, KV_HEADS, KEYS, DIM);
    v[0] = numbers(cu, PTX_F32, 4, 1, KV_HEADS, KEYS, DIM);
    k[1] = make(cu, PTX_F32, 4, N, KV_HEADS, KEYS, DIM);
    v[1] = make(cu, PTX_F32, 4, N, KV_HEADS, KEYS, DIM);
    WORKS(cu, ptxcu_tensor_read(cu, x[0], &k[0], sizeof x[0], NULL));
    WORKS(cu, ptxcu_tensor_read(cu, x[1], &v[0], sizeof x[1], NULL));
    for (i = 0; i < 2; i++) {
        for (b = 0; b < N; b++)
            for (g = 0; g < KV_HEADS; g++)
                memcpy(y + (b * KV_HEADS + g) * head, x[i] + g * head + PREFIX * DIM,
                       (KEYS - PREFIX) * DIM * sizeof *y);
        WORKS(cu, ptxcu_tensor_write(cu, i ? &v[1] : &k[1], y, sizeof y, NULL));
    }
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &k[0], &v[0], NULL, &whole));
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &k[1], &v[1], NULL, &own));
    q = numbers(cu, PTX_F32, 4, 1, N, HEADS, DIM);
    out = make(cu, PTX_F32, 4, 1, N, HEADS, DIM);
    prior = make(cu, PTX_F32, 4, 1, N, HEADS, DIM);
    lse = make(cu, PTX_F32, 3, 1, HEADS, N, 0);
    rows = make(cu, PTX_F32, 3, N, HEADS, DIM, 0);
    tree = make(cu, PTX_U32, 2, 1, N, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &tree, all, sizeof all, NULL));
    memset(&d, 0, sizeof d);
    d.q = q, d.out = out, d.cache = &whole, d.tree = tree, d.length = KEYS;
    WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
    d.out = prior, d.lse = lse, d.length = PREFIX;
    WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
    memset(&d, 0, sizeof d);
    WORKS(cu, ptxcu_tensor_reshape(cu, &q, 3, shape, &d.q));
    WORKS(cu, ptxcu_tensor_reshape(cu, &prior, 3, shape, &d.prior));
    shape[0] = HEADS, shape[1] = N;
    WORKS(cu, ptxcu_tensor_reshape(cu, &lse, 2, shape, &prior_lse));
    d.prior_lse = prior_lse, d.out = rows, d.cache = &own, d.length = KEYS - PREFIX;
    WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
    compare(cu, &rows, &out, HALVES, "a shared prefix");
    memset(&d.prior, 0, sizeof d.prior);
    EXPECT(cu, ptxcu_flash_decode(cu, &d, NULL), PTXCU_E_ARGUMENT, "prior");
    for (i = 0; i < 2; i++) {
        WORKS(cu, ptxcu_kv_cache_free(cu, i ? &own : &whole));
        WORKS(cu, ptxcu_tensor_free(cu, &k[i]));
        WORKS(cu, ptxcu_tensor_free(cu, &v[i]));
    }
    WORKS(cu, ptxcu_tensor_free(cu, &q));
    WORKS(cu, ptxcu_tensor_free(cu, &out));
    WORKS(cu, ptxcu_tensor_free(cu, &prior));
    WORKS(cu, ptxcu_tensor_free(cu, &lse));
    WORKS(cu, ptxcu_tensor_free(cu, &rows));
    WORKS(cu, ptxcu_tensor_free(cu, &tree));
}

/* Sinks of 0 beside a key of zeros, whose values are 0, are what a second such key would be: in both operations. */
static void sinks(ptxcu *cu) {
    static const float zeros[2 * KV_HEADS * DIM];
    ptxcu_flash_decode_desc d;
    ptxcu_flash_prefill_desc f;
    ptxcu_kv_cache cache;
    ptxcu_tensor k = numbers(cu, PTX_F32, 4, 1, KV_HEADS, 1, DIM), v = numbers(cu, PTX_F32, 4, 1, KV_HEADS, 1, DIM),
                 q = numbers(cu, PTX_F32, 4, 1, 1, HEADS, DIM), out[2], lse,
                 sink = make(cu, PTX_F32, 1, HEADS, 0, 0, 0);
    float have[HEADS * DIM], want[KV_HEADS * DIM], sum[HEADS];
    uint32_t i, e, wrong = 0;
    out[0] = make(cu, PTX_F32, 4, 1, 1, HEADS, DIM);
    out[1] = make(cu, PTX_F32, 4, 1, 1, HEADS, DIM);
    lse = make(cu, PTX_F32, 3, 1, HEADS, 1, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &k, zeros, KV_HEADS * DIM * sizeof *zeros, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &sink, zeros, HEADS * sizeof *zeros, NULL));
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &k, &v, NULL, &cache));
    memset(&d, 0, sizeof d);
    d.q = q, d.out = out[0], d.cache = &cache, d.length = 1, d.lse = lse, d.sinks = sink;
    WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, sum, &lse, sizeof sum, NULL));
    memset(&f, 0, sizeof f);
    f.q = q, f.out = out[1], f.cache = &cache, f.kv_len = 1, f.lse = lse, f.sinks = sink;
    WORKS(cu, ptxcu_flash_prefill(cu, &f, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, want, &v, sizeof want, NULL));
    for (i = 0; i < 2; i++) {
        WORKS(cu, ptxcu_tensor_read(cu, have, &out[i], sizeof have, NULL));
        for (e = 0; e < HEADS * DIM; e++)
            wrong += fabsf(have[e] - want[e / DIM * KV_HEADS / HEADS * DIM + e % DIM] / 2) <= 1e-5f ? 0 : 1;
        for (e = 0; e < HEADS; e++) wrong += fabsf(sum[e] - 0.69314718f) <= 1e-5f ? 0 : 1;
        WORKS(cu, ptxcu_tensor_read(cu, sum, &lse, sizeof sum, NULL));
    }
    CHECK(wrong == 0);
    d.sinks = q;
    EXPECT(cu, ptxcu_flash_decode(cu, &d, NULL), PTXCU_E_SHAPE, "sinks has shape");
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_tensor_free(cu, &k));
    WORKS(cu, ptxcu_tensor_free(cu, &v));
    WORKS(cu, ptxcu_tensor_free(cu, &q));
    WORKS(cu, ptxcu_tensor_free(cu, &out[0]));
    WORKS(cu, ptxcu_tensor_free(cu, &out[1]));
    WORKS(cu, ptxcu_tensor_free(cu, &lse));
    WORKS(cu, ptxcu_tensor_free(cu, &sink));
}

/* Latents: two scatters, then attention of 2 queries of each sequence beside its definition. */
static void latents(ptxcu *cu, uint32_t type, int paged) {
    enum { C = 128, R = 32, QUERIES = 2, N = BATCH * ROWS, OUT = BATCH * QUERIES * HEADS };
    static const uint32_t table[BATCH * PAGES] = {3, 1, 4, 0, 5, 2};
    static uint32_t at[N], of[N], lengths[BATCH];
    static unsigned char bytes[N * C * 2];
    static uint16_t factors[N * C / 32];
    static double number[2][N * C], want[OUT * C];
    static float q[2][OUT * C], out[OUT * C], lse[OUT];
    const float scale = 0.08f;
    uint64_t first = paged ? BATCH * PAGES : BATCH, rows = paged ? PAGE : ROWS;
    int is_bytes = type == PTX_E4M3 || type == PTXK_Q8_0;
    ptxcu_kv_cache cache;
    ptxcu_kv_scatter_desc s;
    ptxcu_flash_mla_desc d;
    ptxcu_flash_decode_desc decode;
    ptxcu_call call;
    ptxcu_tensor part[2], part_factors[2], blocks, heads_first[2], rest;
    uint32_t n = 0, b, i, j, e, h;
    double worst = 0;
    memset(&s, 0, sizeof s);
    memset(&d, 0, sizeof d);
    memset(&decode, 0, sizeof decode);
    memset(part_factors, 0, sizeof part_factors);
    for (b = 0; b < BATCH; b++) {
        lengths[b] = 20 + random_below(ROWS - 20);
        for (i = 0; i < ROWS; i++) at[n] = i, of[n++] = b;
    }
    if (paged) {
        blocks = make(cu, PTX_U32, 2, BATCH, PAGES, 0, 0);
        WORKS(cu, ptxcu_tensor_write(cu, &blocks, table, sizeof table, NULL));
        for (i = 0; i < 2; i++) {
            part[i] = make(cu, is_bytes ? (uint32_t)PTX_B8 : type, 4, first, 1, rows, i ? R : C);
            if (type == PTXK_Q8_0) part_factors[i] = make(cu, PTX_F16, 4, first, 1, rows, (i ? R : C) / 32);
        }
        if (is_bytes)
            WORKS(cu, ptxcu_kv_cache_wrap_bytes(cu, type, &part[0], &part[1], &part_factors[0], &part_factors[1],
                                                &blocks, &cache));
        else
            WORKS(cu, ptxcu_kv_cache_wrap(cu, &part[0], &part[1], &blocks, &cache));
    } else {
        WORKS(cu, ptxcu_kv_cache_create_latent(cu, type, BATCH, ROWS, C, R, &cache));
    }
    s.positions = make(cu, PTX_U32, 1, N, 0, 0, 0);
    s.sequences = make(cu, PTX_U32, 1, N, 0, 0, 0);
    d.lengths = make(cu, PTX_U32, 1, BATCH, 0, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &s.positions, at, sizeof at, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &s.sequences, of, sizeof of, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.lengths, lengths, sizeof lengths, NULL));
    s.cache = d.cache = decode.cache = &cache;
    for (i = 0; i < 2; i++) {
        const ptxcu_tensor *stored = i ? &cache.v : &cache.k, *beside = i ? &cache.v_factors : &cache.k_factors;
        ptxcu_tensor *one = i ? &s.v : &s.k, other = i ? s.k : s.v;
        *one = rest = numbers(cu, PTX_F32, 3, N, 1, i ? R : C, 0);
        WORKS(cu, ptxcu_kv_scatter(cu, &s, NULL));
        *(i ? &s.k : &s.v) = rest; /* both at once */
        EXPECT(cu, ptxcu_kv_scatter(cu, &s, NULL), PTXCU_E_SHAPE, i ? "cache->k has shape" : "cache->v has shape");
        *(i ? &s.k : &s.v) = other;
        memset(one, 0, sizeof *one);
        WORKS(cu, ptxcu_tensor_free(cu, &rest));
        WORKS(cu, ptxcu_tensor_read(cu, bytes, stored, (size_t)ptxcu_tensor_bytes(stored), NULL));
        if (type == PTXK_Q8_0)
            WORKS(cu, ptxcu_tensor_read(cu, factors, beside, (size_t)ptxcu_tensor_bytes(beside), NULL));
        for (j = 0; j < N * (i ? R : C); j++)
            number[i][j] = type == PTX_F16    ? ref_get(bytes, REF_F16, j)
                           : type == PTX_E4M3 ? from_e4m3(bytes[j])
                                              : (int8_t)bytes[j] * ref_from_f16(factors[j / 32]);
    }
    heads_first[0] = numbers(cu, PTX_F32, 4, HEADS, BATCH, QUERIES, C); /* as views they are [batch, queries, heads] */
    heads_first[1] = make(cu, PTX_F32, 4, HEADS, BATCH, QUERIES, C);
    for (i = 0; i < 2; i++) {
        ptxcu_tensor *view = i ? &d.out : &d.q;
        WORKS(cu, ptxcu_tensor_transpose(cu, &heads_first[i], 0, 1, view));
        WORKS(cu, ptxcu_tensor_transpose(cu, view, 1, 2, view));
    }
    d.q_rope = numbers(cu, PTX_F32, 4, BATCH, QUERIES, HEADS, R);
    d.lse = make(cu, PTX_F32, 3, BATCH, QUERIES, HEADS, 0);
    d.scale = scale;
    WORKS(cu, ptxcu_flash_mla_prepare(cu, &d, &call));
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_flash_mla(cu, &d, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, q[0], &heads_first[0], sizeof q[0], NULL));
    WORKS(cu, ptxcu_tensor_read(cu, q[1], &d.q_rope, OUT * R * 4, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, out, &heads_first[1], sizeof out, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, lse, &d.lse, sizeof lse, NULL));
    for (j = 0; j < OUT; j++) { /* batch, query, head */
        uint32_t seen;
        const float *x;
        double sum = 0, weight;
        h = j % HEADS, i = j / HEADS % QUERIES, b = j / HEADS / QUERIES;
        x = q[0] + ((h * BATCH + b) * QUERIES + i) * C;
        seen = lengths[b] + 1 + i - QUERIES;
        memset(want, 0, C * sizeof *want);
        for (n = 0; n < seen; n++) {
            size_t row = paged ? table[b * PAGES + n / PAGE] * PAGE + n % PAGE : b * ROWS + n;
            for (weight = 0, e = 0; e < C; e++) weight += (double)x[e] * number[0][row * C + e];
            for (e = 0; e < R; e++) weight += (double)q[1][j * R + e] * number[1][row * R + e];
            sum += weight = exp((double)scale * weight);
            for (e = 0; e < C; e++) want[e] += weight * number[0][row * C + e];
        }
        for (e = 0; e < C; e++)
            worst = fmax(worst, fabs(want[e] / sum - (double)out[((h * BATCH + b) * QUERIES + i) * C + e]));
        worst = fmax(worst, fabs(log(sum) - (double)lse[j]));
    }
    printf("latents, type %u: error %g\n", type, worst);
    CHECK(worst <= 0x1p-9);
    decode.q = decode.out = d.q;
    EXPECT(cu, ptxcu_flash_decode(cu, &decode, NULL), PTXCU_E_SHAPE, "must be dense");
    decode.q = decode.out = heads_first[0];
    EXPECT(cu, ptxcu_flash_decode(cu, &decode, NULL), PTXCU_E_SHAPE, "cache->");
    rest = make(cu, PTX_F32, 4, QUERIES, BATCH, HEADS, C);
    WORKS(cu, ptxcu_tensor_transpose(cu, &rest, 0, 1, &d.q));
    EXPECT(cu, ptxcu_flash_mla(cu, &d, NULL), PTXCU_E_SHAPE, "flash_mla: q has strides");
    d.out = heads_first[1];
    EXPECT(cu, ptxcu_flash_mla(cu, &d, NULL), PTXCU_E_SHAPE, "out has shape");
    WORKS(cu, ptxcu_tensor_free(cu, &rest));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
    WORKS(cu, ptxcu_tensor_free(cu, &d.lengths));
    WORKS(cu, ptxcu_tensor_free(cu, &d.q_rope));
    WORKS(cu, ptxcu_tensor_free(cu, &d.lse));
    WORKS(cu, ptxcu_tensor_free(cu, &s.positions));
    WORKS(cu, ptxcu_tensor_free(cu, &s.sequences));
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    if (paged) WORKS(cu, ptxcu_tensor_free(cu, &blocks));
    for (i = 0; i < 2; i++) {
        WORKS(cu, ptxcu_tensor_free(cu, &heads_first[i]));
        if (paged) WORKS(cu, ptxcu_tensor_free(cu, &part[i]));
        if (part_factors[i].owner) WORKS(cu, ptxcu_tensor_free(cu, &part_factors[i]));
    }
}

static void what_does_not_fit_is_refused(ptxcu *cu) {
    static const struct { /* what flash_mla does not take, no cache of latents does */
        uint32_t type;
        uint64_t latent, rope;
        const char *says;
    } wrong[] = {{PTX_U32, 512, 64, "ptxcu_kv_cache_create_latent: flash_mla: kv_type is PTX_U32, must be PTX_F16"},
                 {PTX_F32, 512, 64, "flash_mla: kv_type is PTX_F32, must be PTX_F16"},
                 {PTX_F16, 576, 64, "flash_mla: latent is 576, must be 128, 256 or 512"},
                 {PTX_F16, 0x100000200u, 64, "flash_mla: latent is 4294967295, must be 128, 256 or 512"},
                 {PTX_BF16, 512, 40, "flash_mla: rope is 40, must be 16, 32, 48 or 64"},
                 {PTXK_Q8_0, 512, 48, "flash_mla: rope is 48, must be 32 or 64 in PTXK_Q8_0"}};
    ptxcu_tensor k = make(cu, PTX_B8, 4, 1, 1, 8, 64), v = make(cu, PTX_B8, 4, 1, 1, 8, 64),
                 good = make(cu, PTX_F16, 4, 1, 1, 8, 2), more = make(cu, PTX_F16, 4, 1, 1, 8, 2),
                 bad = make(cu, PTX_F16, 4, 1, 1, 8, 4);
    ptxcu_kv_cache cache;
    ptxcu_flash_decode_desc d;
    ptxcu_call call;
    uint32_t i;
    memset(&d, 0, sizeof d);
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &k, &v, NULL, &cache), PTXCU_E_SHAPE, "k is of type b8, must be");
    EXPECT(cu, ptxcu_kv_cache_wrap_bytes(cu, PTX_F16, &k, &v, NULL, NULL, NULL, &cache), PTXCU_E_ARGUMENT,
           "type is PTX_F16, must be PTX_E4M3 or PTXK_Q8_0");
    EXPECT(cu, ptxcu_kv_cache_wrap_bytes(cu, PTXK_Q8_0, &k, &v, &good, &bad, NULL, &cache), PTXCU_E_SHAPE,
           "v_factors has shape [1, 1, 8, 4]");
    EXPECT(cu, ptxcu_kv_cache_wrap_bytes(cu, PTX_E4M3, &k, &v, &good, &more, NULL, &cache), PTXCU_E_SHAPE,
           "k_factors is of type f16, must be f32");
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(cu, ptxcu_kv_cache_create_latent(cu, wrong[i].type, 1, 4, wrong[i].latent, wrong[i].rope, &cache),
               PTXCU_E_SHAPE, wrong[i].says);
        CHECK(!cache.k.owner && !cache.owns);
    }
    WORKS(cu, ptxcu_kv_cache_create_latent(cu, PTX_E4M3, 1, 4, 128, 48, &cache));
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_kv_cache_wrap_bytes(cu, PTXK_Q8_0, &k, &v, &good, &more, NULL, &cache));
    d.q = make(cu, PTX_F32, 3, 1, 1, 64, 0);
    d.out = make(cu, PTX_F32, 3, 1, 1, 64, 0);
    d.cache = &cache;
    d.length = 4;
    cache.type = PTX_S8;
    EXPECT(cu, ptxcu_flash_decode_prepare(cu, &d, &call), PTXCU_E_ARGUMENT, "cache->type is PTX_S8");
    cache.type = PTXK_Q8_0;
    WORKS(cu, ptxcu_tensor_free(cu, &more));
    EXPECT(cu, ptxcu_flash_decode_prepare(cu, &d, &call), PTXCU_E_FREED, "cache->v_factors");
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_tensor_free(cu, &d.q));
    WORKS(cu, ptxcu_tensor_free(cu, &d.out));
    WORKS(cu, ptxcu_tensor_free(cu, &good));
    WORKS(cu, ptxcu_tensor_free(cu, &bad));
    WORKS(cu, ptxcu_tensor_free(cu, &k));
    WORKS(cu, ptxcu_tensor_free(cu, &v));
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    counter counts;
    ptxcu_desc desc;
    ptxcu *cu;
    int i;
    memset(&counts, 0, sizeof counts);
    desc = describe(library && *library ? library : NULL, &counts);
    start_random();
    WORKS(cu, ptxcu_open(&cu, &desc));
    if (ptxcu_get_error(cu)->code == PTXCU_E_NONE) {
        find_extras(cu);
        for (i = 0; i < 4; i++) {
            caches c;
            memset(&c, 0, sizeof c);
            c.type = i % 2 ? (uint32_t)PTXK_Q8_0 : (uint32_t)PTX_E4M3;
            c.paged = i / 2;
            make_caches(cu, &c);
            attention(cu, &c);
            if (c.type == PTX_E4M3) attention_of_bytes(cu, &c);
            free_caches(cu, &c);
        }
        latents(cu, PTX_F16, 1);
        latents(cu, PTX_E4M3, 0);
        latents(cu, PTXK_Q8_0, 0);
        latents(cu, PTXK_Q8_0, 1);
        shared_prefix(cu);
        sinks(cu);
        what_does_not_fit_is_refused(cu);
    }
    if (calls) CHECK(calls("cuMemAlloc_v2") == calls("cuMemFree_v2"));
    ptxcu_close(cu);
    CHECK(counts.blocks == 0 && counts.wrong_sizes == 0);
    return check_end();
}
