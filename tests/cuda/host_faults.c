/* host_faults.c - every driver call of every public path of ptxgen_cuda.h fails once, each at its first,
   second, third ... use in that path: `host_faults [LIBRARY]`, which must be the CPU driver (else all is
   skipped).

   After each failure: the code says so and the message names the call; what was made is given back, which the
   CPU driver counts when the context is destroyed; and the same path, in the same handle, works.

   make build/tests/cuda/host_faults */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"

#include <math.h>

static unsigned (*report_count)(void);
static size_t (*report)(char *, size_t);
static void (*report_clear)(void);
static int (*context_create)(void **, unsigned, int);
static int (*context_destroy)(void *), (*context_pop)(void **), (*context_flags)(unsigned *);

static void find_more(const ptxcu *cu) {
    void *p;
#define FIND(pointer, name)                                                                                  \
    p = ptxcu_symbol(cu, name);                                                                              \
    memcpy(&pointer, &p, sizeof p)
    FIND(report_count, "ptxsim_report_count");
    FIND(report, "ptxsim_report");
    FIND(report_clear, "ptxsim_report_clear");
    FIND(context_create, "cuCtxCreate_v2");
    FIND(context_destroy, "cuCtxDestroy_v2");
    FIND(context_pop, "cuCtxPopCurrent_v2");
    FIND(context_flags, "cuCtxGetFlags");
#undef FIND
}

/* A path: returns the first failure's code. It frees what it made whatever happened, and frees again what the
   driver would not take the first time. */
typedef struct path {
    ptxcu *cu;
    ptxcu_code code;
    char message[600]; /* of the first failure */
    int wrong;         /* results that are not right although nothing failed */
} path;

static int note(path *p, ptxcu_code code) {
    unsigned flags;
    if (context_flags(&flags) == 0) p->wrong++; /* there is a current context: asked in a way of its own */
    if (code != PTXCU_E_NONE && p->code == PTXCU_E_NONE) {
        p->code = code;
        snprintf(p->message, sizeof p->message, "%s", ptxcu_get_error(p->cu)->message);
        if (ptxcu_get_error(p->cu)->code != code) p->wrong++;
    }
    return code == PTXCU_E_NONE;
}
/* Only while nothing has failed. */
#define WENT(call) (p->code == PTXCU_E_NONE && note(p, (call)))
#define STEP(call) ((void)WENT(call))
/* Always, and once more if it fails. */
#define GIVE_BACK(call)                                                                                      \
    do {                                                                                                     \
        if (!note(p, (call)) && (call) != PTXCU_E_NONE) p->wrong++;                                          \
    } while (0)
/* Of results, when nothing has failed. */
#define RIGHT(condition)                                                                                     \
    do {                                                                                                     \
        if (p->code == PTXCU_E_NONE && !(condition)) p->wrong++;                                             \
    } while (0)

static void path_memory(path *p) {
    ptxcu_buffer a, b;
    void *pinned = NULL;
    uint32_t host[16], back[16], i;
    size_t free_bytes, total;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(back, 0, sizeof back);
    for (i = 0; i < 16; i++) host[i] = i;
    STEP(ptxcu_memory_info(p->cu, &free_bytes, &total));
    STEP(ptxcu_alloc(p->cu, 64, &a));
    STEP(ptxcu_alloc(p->cu, 64, &b));
    STEP(ptxcu_host_alloc(p->cu, 64, &pinned));
    STEP(ptxcu_upload(p->cu, a, 0, host, 64, NULL));
    STEP(ptxcu_copy(p->cu, b, 0, a, 0, 64, NULL));
    STEP(ptxcu_fill8(p->cu, b, 4, 0, 4, NULL));
    STEP(ptxcu_fill32(p->cu, b, 8, 7, 1, NULL));
    STEP(ptxcu_download(p->cu, back, b, 0, 64, NULL));
    STEP(ptxcu_sync(p->cu));
    RIGHT(back[1] == 0 && back[2] == 7 && back[15] == 15);
    GIVE_BACK(ptxcu_host_free(p->cu, pinned));
    GIVE_BACK(ptxcu_free(p->cu, a));
    GIVE_BACK(ptxcu_free(p->cu, b));
}

static void path_streams(path *p) {
    ptxcu_stream s = NULL, t = NULL;
    ptxcu_event e = NULL, f = NULL;
    float ms = 0;
    STEP(ptxcu_stream_create(p->cu, &s));
    STEP(ptxcu_stream_create(p->cu, &t));
    STEP(ptxcu_event_create(p->cu, &e));
    STEP(ptxcu_event_create(p->cu, &f));
    STEP(ptxcu_event_record(p->cu, e, s));
    STEP(ptxcu_stream_wait_event(p->cu, t, e));
    STEP(ptxcu_event_record(p->cu, f, t));
    STEP(ptxcu_event_sync(p->cu, f));
    STEP(ptxcu_stream_sync(p->cu, t));
    STEP(ptxcu_event_elapsed_ms(p->cu, e, f, &ms));
    GIVE_BACK(ptxcu_event_destroy(p->cu, e));
    GIVE_BACK(ptxcu_event_destroy(p->cu, f));
    GIVE_BACK(ptxcu_stream_destroy(p->cu, s));
    GIVE_BACK(ptxcu_stream_destroy(p->cu, t));
}

static void path_graph(path *p) {
    ptxcu_stream s = NULL;
    ptxcu_graph graph = NULL, unwanted = NULL;
    ptxcu_buffer b;
    uint32_t back = 0;
    int capturing;
    memset(&b, 0, sizeof b);
    STEP(ptxcu_stream_create(p->cu, &s));
    STEP(ptxcu_alloc(p->cu, 4, &b));
    STEP(ptxcu_fill32(p->cu, b, 0, 1, 1, s));
    capturing = WENT(ptxcu_graph_begin(p->cu, s));
    STEP(ptxcu_fill32(p->cu, b, 0, 2, 1, s));
    if (capturing) { /* ends in any case; a failed end may be tried again */
        if (!note(p, ptxcu_graph_end(p->cu, s, &graph))
            && ptxcu_graph_end(p->cu, s, &unwanted) == PTXCU_E_NONE)
            GIVE_BACK(ptxcu_graph_destroy(p->cu, unwanted));
    }
    STEP(ptxcu_graph_launch(p->cu, graph, s));
    STEP(ptxcu_download(p->cu, &back, b, 0, 4, s));
    STEP(ptxcu_stream_sync(p->cu, s));
    RIGHT(back == 2);
    GIVE_BACK(ptxcu_graph_destroy(p->cu, graph));
    GIVE_BACK(ptxcu_free(p->cu, b));
    GIVE_BACK(ptxcu_stream_destroy(p->cu, s));
}

static ptx_code shared_emit(ptx_module *m, const char *site, const void *desc) {
    ptx_kernel *k = ptx_entry(m, "shared");
    ptx_val args = ptx_param_bytes(k, "args", 8, 8), to, tid = ptx_tid_x(k), place, x;
    (void)site;
    place = ptx_ptr_add(k, ptx_shared_dynamic(k), tid, 4);
    to = ptx_ptr(ptx_ld(k, PTX_U64, ptx_at(args, 0)), PTX_GLOBAL);
    ptx_st(k, PTX_U32, ptx_at(place, 0), ptx_u32(*(const uint32_t *)desc));
    x = ptx_ld(k, PTX_U32, ptx_at(place, 0));
    ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, to, tid, 4), 0), x);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

static void path_programs(path *p) {
    static const uint32_t value = 77;
    ptx_module *m = ptx_module_new(NULL);
    ptxcu_program *loaded = NULL, *text = NULL, *cached = NULL;
    ptx_operation op;
    ptx_launch g;
    ptxcu_arg arg;
    ptxcu_buffer b;
    uint32_t back[32], entry;
    memset(&b, 0, sizeof b);
    memset(&g, 0, sizeof g);
    memset(back, 0, sizeof back);
    op.name = "shared";
    op.desc_bytes = 4;
    op.emit = shared_emit;
    g.grid[0] = g.grid[1] = g.grid[2] = g.block[1] = g.block[2] = 1;
    g.block[0] = 32;
    g.shared_bytes = 60000; /* above what is there unasked */
    shared_emit(m, "", &value);
    STEP(ptxcu_alloc(p->cu, sizeof back, &b));
    arg = ptxcu_arg_bytes(&b.address, 8);
    STEP(ptxcu_load(p->cu, m, &loaded));
    STEP(ptxcu_launch(p->cu, loaded, &g, &arg, 1, NULL));
    STEP(ptxcu_load_text(p->cu, ptx_text(m, NULL), &text));
    STEP(ptxcu_entry_by_name(p->cu, text, "shared", &entry));
    STEP(ptxcu_operation(p->cu, &op, &value, &cached));
    STEP(ptxcu_launch(p->cu, cached, &g, &arg, 1, NULL));
    STEP(ptxcu_download(p->cu, back, b, 0, sizeof back, NULL));
    STEP(ptxcu_sync(p->cu));
    RIGHT(back[0] == 77 && back[31] == 77);
    GIVE_BACK(ptxcu_unload(p->cu, loaded));
    GIVE_BACK(ptxcu_unload(p->cu, text));
    GIVE_BACK(ptxcu_cache_clear(p->cu));
    GIVE_BACK(ptxcu_free(p->cu, b));
    ptx_module_free(m);
}

static ptxcu_tensor make(path *p, ptx_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    ptxcu_tensor t;
    uint64_t shape[3];
    memset(&t, 0, sizeof t);
    shape[0] = a;
    shape[1] = b;
    shape[2] = c;
    STEP(ptxcu_tensor_create(p->cu, type, rank, shape, &t));
    return t;
}

static void path_tensors(path *p) {
    ptxcu_tensor t = make(p, PTX_U32, 2, 4, 4, 0), w, v;
    ptxcu_buffer b;
    ptxcu_stream s = NULL;
    uint64_t shape[2] = {4, 4};
    uint32_t host[16], back[16], i;
    memset(&b, 0, sizeof b);
    memset(&w, 0, sizeof w);
    memset(&v, 0, sizeof v);
    for (i = 0; i < 16; i++) host[i] = i, back[i] = 99;
    STEP(ptxcu_stream_create(p->cu, &s));
    STEP(ptxcu_alloc(p->cu, 64, &b));
    STEP(ptxcu_tensor_wrap(p->cu, b, PTX_U32, 2, shape, NULL, &w));
    STEP(ptxcu_tensor_transpose(p->cu, &t, 0, 1, &v));
    STEP(ptxcu_tensor_write(p->cu, &v, host, 64, s));
    STEP(ptxcu_tensor_upload(p->cu, &w, host, 64, s));
    STEP(ptxcu_tensor_download(p->cu, back, &w, 64, s));
    STEP(ptxcu_stream_sync(p->cu, s));
    RIGHT(back[1] == 1);
    STEP(ptxcu_tensor_read(p->cu, back, &t, 64, s));
    RIGHT(back[1] == 4 && back[4] == 1 && back[15] == 15);
    STEP(ptxcu_stream_sync(p->cu, s));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &w));
    GIVE_BACK(ptxcu_free(p->cu, b));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &t));
    GIVE_BACK(ptxcu_stream_destroy(p->cu, s));
}

/* One token appended and attended to, in all three forms. */
static void path_attention(path *p) {
    enum { D = 16, H = 8, M = 1100 }; /* more than one block: a workspace, and clusters where there are any */
    static float zeros[M * D];
    static const uint32_t lengths[1] = {M};
    ptxcu_kv_scatter_desc s;
    ptxcu_flash_decode_desc a;
    ptxcu_kv_cache cache;
    ptxcu_call scatter, attend;
    ptxcu_result *r = NULL;
    ptxcu_stream stream = NULL;
    float row[D], back[H * D];
    uint32_t i;
    int done = 0;
    memset(&s, 0, sizeof s);
    memset(&a, 0, sizeof a);
    memset(&cache, 0, sizeof cache);
    memset(back, 0, sizeof back);
    for (i = 0; i < D; i++) row[i] = (float)M;
    STEP(ptxcu_stream_create(p->cu, &stream));
    STEP(ptxcu_result_create(p->cu, &r));
    STEP(ptxcu_kv_cache_create(p->cu, PTX_F32, 1, 1, M, D, &cache));
    s.k = make(p, PTX_F32, 3, 1, 1, D);
    s.v = make(p, PTX_F32, 3, 1, 1, D);
    s.position = M / 2;
    s.cache = a.cache = &cache;
    a.q = make(p, PTX_F32, 3, 1, H, D);
    a.out = make(p, PTX_F32, 3, 1, H, D);
    a.lengths = make(p, PTX_U32, 1, 1, 0, 0);
    STEP(ptxcu_tensor_upload(p->cu, &cache.k, zeros, sizeof zeros, stream));
    STEP(ptxcu_tensor_upload(p->cu, &cache.v, zeros, sizeof zeros, stream));
    STEP(ptxcu_tensor_upload(p->cu, &s.k, zeros, sizeof row, stream));
    STEP(ptxcu_tensor_upload(p->cu, &s.v, row, sizeof row, stream));
    STEP(ptxcu_tensor_upload(p->cu, &a.q, zeros, H * D * sizeof(float), stream));
    STEP(ptxcu_tensor_upload(p->cu, &a.lengths, lengths, sizeof lengths, stream));
    STEP(ptxcu_kv_scatter_prepare(p->cu, &s, &scatter));
    STEP(ptxcu_flash_decode_prepare(p->cu, &a, &attend));
    RIGHT(attend.plan.zero_bytes > 0);
    RIGHT(!ptxcu_device_info(p->cu)->max_cluster || attend.plan.launch[0].cluster[2] > 1);
    STEP(ptxcu_workspace_create(p->cu, &attend, stream, &a.workspace));
    STEP(ptxcu_flash_decode_prepare(p->cu, &a, &attend));
    STEP(ptxcu_call_run(p->cu, &scatter, stream));
    STEP(ptxcu_call_finish(p->cu, &attend, stream));
    STEP(ptxcu_kv_scatter(p->cu, &s, stream));
    STEP(ptxcu_call_start(p->cu, &attend, stream, r));
    STEP(ptxcu_stream_wait_result(p->cu, stream, r));
    STEP(ptxcu_result_wait(p->cu, r));
    STEP(ptxcu_call_start(p->cu, &attend, stream, r));
    while (!done && WENT(ptxcu_result_poll(p->cu, r, &done))) {
    }
    STEP(ptxcu_tensor_read(p->cu, back, &a.out, sizeof back, stream));
    for (i = 0; i < H * D; i++)
        RIGHT(fabs((double)back[i] - 1) < 1e-5); /* M keys with one weight, one value M */
    STEP(ptxcu_call_start(p->cu, &scatter, stream, r));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &s.k)); /* under way */
    GIVE_BACK(ptxcu_result_free(p->cu, r));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &s.v));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.q));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.out));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.lengths));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.workspace));
    GIVE_BACK(ptxcu_kv_cache_free(p->cu, &cache));
    GIVE_BACK(ptxcu_stream_destroy(p->cu, stream));
}

/* Sequences that are allocated apart, of one length that the host knows; K alone is scattered. */
static void path_apart(path *p) {
    enum { D = 16, M = 16, B = 2 };
    static float rows[B * M * D];
    ptxcu_flash_decode_desc a;
    ptxcu_kv_scatter_desc s;
    ptxcu_kv_cache cache;
    ptxcu_tensor k[B], v[B];
    float back[B * D];
    uint32_t i;
    memset(&a, 0, sizeof a);
    memset(&s, 0, sizeof s);
    memset(&cache, 0, sizeof cache);
    memset(back, 0, sizeof back);
    for (i = 0; i < B * M * D; i++) rows[i] = 3;
    for (i = 0; i < B; i++) {
        k[i] = make(p, PTX_F32, 3, 1, M, D);
        v[i] = make(p, PTX_F32, 3, 1, M, D);
        STEP(ptxcu_tensor_write(p->cu, &k[i], rows, M * D * sizeof *rows, NULL));
        STEP(ptxcu_tensor_write(p->cu, &v[i], rows, M * D * sizeof *rows, NULL));
    }
    STEP(ptxcu_kv_cache_wrap_each(p->cu, k, v, B, &cache));
    s.cache = a.cache = &cache;
    s.k = make(p, PTX_F32, 3, B, 1, D);
    s.sequence_step = 1;
    a.q = make(p, PTX_F32, 3, B, 1, D);
    a.out = make(p, PTX_F32, 3, B, 1, D);
    a.length = M;
    STEP(ptxcu_tensor_write(p->cu, &s.k, rows, B * D * sizeof *rows, NULL));
    STEP(ptxcu_tensor_write(p->cu, &a.q, rows, B * D * sizeof *rows, NULL));
    STEP(ptxcu_kv_scatter(p->cu, &s, NULL));
    STEP(ptxcu_flash_decode(p->cu, &a, NULL));
    STEP(ptxcu_tensor_read(p->cu, back, &a.out, sizeof back, NULL));
    for (i = 0; i < B * D; i++) RIGHT(fabs((double)back[i] - 3) < 1e-5);
    GIVE_BACK(ptxcu_kv_cache_free(p->cu, &cache));
    for (i = 0; i < B; i++) {
        GIVE_BACK(ptxcu_tensor_free(p->cu, &k[i]));
        GIVE_BACK(ptxcu_tensor_free(p->cu, &v[i]));
    }
    GIVE_BACK(ptxcu_tensor_free(p->cu, &s.k));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.q));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &a.out));
}

static void path_gemv(path *p) {
    static unsigned char zeros[4 * 144];
    static float x[256], y[4] = {9, 9, 9, 9};
    ptxcu_gemv_desc d;
    ptxcu_call call;
    memset(&d, 0, sizeof d);
    d.format = PTXK_Q4_K;
    d.weights = make(p, PTX_B8, 2, 4, 144, 0);
    d.x = make(p, PTX_F32, 2, 1, 256, 0);
    d.y = make(p, PTX_F32, 2, 1, 4, 0);
    STEP(ptxcu_gemv_prepare(p->cu, &d, &call));
    STEP(ptxcu_workspace_create(p->cu, &call, NULL, &d.workspace));
    STEP(ptxcu_tensor_write(p->cu, &d.weights, zeros, sizeof zeros, NULL));
    STEP(ptxcu_tensor_write(p->cu, &d.x, x, sizeof x, NULL));
    STEP(ptxcu_gemv(p->cu, &d, NULL));
    STEP(ptxcu_tensor_read(p->cu, y, &d.y, sizeof y, NULL));
    RIGHT(fabs((double)y[0]) + fabs((double)y[3]) < 1e-30);
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.weights));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.x));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.y));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.workspace));
}

static void path_matmul(path *p) {
    static const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {1, 0, 0, 1, 1, 1};
    float d[4] = {9, 9, 9, 9};
    ptxcu_matmul_desc m;
    memset(&m, 0, sizeof m);
    m.a = make(p, PTX_F32, 2, 2, 3, 0);
    m.b = make(p, PTX_F32, 2, 3, 2, 0);
    m.d = make(p, PTX_F32, 2, 2, 2, 0);
    STEP(ptxcu_tensor_write(p->cu, &m.a, a, sizeof a, NULL));
    STEP(ptxcu_tensor_write(p->cu, &m.b, b, sizeof b, NULL));
    STEP(ptxcu_matmul(p->cu, &m, NULL));
    STEP(ptxcu_tensor_read(p->cu, d, &m.d, sizeof d, NULL));
    RIGHT(fabs((double)d[0] - 4) + fabs((double)d[3] - 11) < 1e-5);
    GIVE_BACK(ptxcu_tensor_free(p->cu, &m.a));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &m.b));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &m.d));
}

/* Three matrices over one x. */
static void path_gemv_of_three(path *p) {
    static float w[4 * 32], x[32], y[4] = {9, 9, 9, 9};
    ptxcu_gemv_desc d;
    ptxcu_call call;
    uint32_t i;
    memset(&d, 0, sizeof d);
    d.format = d.more[0].format = d.more[1].format = PTXK_F32;
    d.x = make(p, PTX_F32, 2, 1, 32, 0);
    d.weights = make(p, PTX_F32, 2, 4, 32, 0);
    d.y = make(p, PTX_F32, 2, 1, 4, 0);
    for (i = 0; i < 32; i++) w[3 * 32 + i] = x[i] = 1;
    for (i = 0; i < 2; i++) {
        d.more[i].weights = make(p, PTX_F32, 2, 4, 32, 0);
        d.more[i].y = make(p, PTX_F32, 2, 1, 4, 0);
        STEP(ptxcu_tensor_write(p->cu, &d.more[i].weights, w, sizeof w, NULL));
    }
    STEP(ptxcu_tensor_write(p->cu, &d.weights, w, sizeof w, NULL));
    STEP(ptxcu_tensor_write(p->cu, &d.x, x, sizeof x, NULL));
    STEP(ptxcu_gemv_prepare(p->cu, &d, &call));
    STEP(ptxcu_workspace_create(p->cu, &call, NULL, &d.workspace));
    STEP(ptxcu_gemv(p->cu, &d, NULL));
    STEP(ptxcu_tensor_read(p->cu, y, &d.more[1].y, sizeof y, NULL));
    RIGHT(fabs((double)y[0]) < 1e-6 && fabs((double)y[3] - 32) < 1e-4);
    for (i = 0; i < 2; i++) {
        GIVE_BACK(ptxcu_tensor_free(p->cu, &d.more[i].weights));
        GIVE_BACK(ptxcu_tensor_free(p->cu, &d.more[i].y));
    }
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.weights));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.x));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.y));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &d.workspace));
}

/* The operations of a layer one after the other: a row of a table, normed, activated, turned, made weights
   of, and the largest chosen. */
static void path_layers(path *p) {
    enum { N = 8 };
    static float table[2 * N];
    static const uint32_t id = 1, at = 0;
    static const double frequencies[N / 2] = {1, 1, 1, 1};
    ptxcu_embed_desc e;
    ptxcu_norm_desc n;
    ptxcu_activation_desc a;
    ptxcu_rope_desc r;
    ptxcu_softmax_desc s;
    ptxcu_sample_desc c;
    uint64_t heads[3] = {1, 1, N};
    uint32_t token = 99, i;
    memset(&e, 0, sizeof e);
    memset(&n, 0, sizeof n);
    memset(&a, 0, sizeof a);
    memset(&r, 0, sizeof r);
    memset(&s, 0, sizeof s);
    memset(&c, 0, sizeof c);
    for (i = 0; i < N; i++) table[N + i] = (float)(i == 5 ? 4 : i % 3);
    e.table = make(p, PTX_F32, 2, 2, N, 0);
    e.ids = make(p, PTX_U32, 1, 1, 0, 0);
    e.y = make(p, PTX_F32, 2, 1, N, 0);
    e.format = PTXK_F32;
    r.positions = make(p, PTX_U32, 1, 1, 0, 0);
    r.frequencies = make(p, PTX_F64, 1, N / 2, 0, 0);
    c.tokens = make(p, PTX_U32, 1, 1, 0, 0);
    n.x = n.y = a.x = a.y = s.x = s.y = c.logits = e.y;
    STEP(ptxcu_tensor_write(p->cu, &e.table, table, sizeof table, NULL));
    STEP(ptxcu_tensor_write(p->cu, &e.ids, &id, sizeof id, NULL));
    STEP(ptxcu_tensor_write(p->cu, &r.positions, &at, sizeof at, NULL));
    STEP(ptxcu_tensor_write(p->cu, &r.frequencies, frequencies, sizeof frequencies, NULL));
    STEP(ptxcu_embed(p->cu, &e, NULL));
    STEP(ptxcu_norm(p->cu, &n, NULL));
    STEP(ptxcu_activation(p->cu, &a, NULL));
    STEP(ptxcu_tensor_reshape(p->cu, &e.y, 3, heads, &r.x));
    STEP(ptxcu_rope(p->cu, &r, NULL));
    STEP(ptxcu_softmax(p->cu, &s, NULL));
    STEP(ptxcu_sample(p->cu, &c, NULL));
    STEP(ptxcu_tensor_read(p->cu, &token, &c.tokens, sizeof token, NULL));
    RIGHT(token == 5);
    GIVE_BACK(ptxcu_tensor_free(p->cu, &e.table));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &e.ids));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &e.y));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &r.positions));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &r.frequencies));
    GIVE_BACK(ptxcu_tensor_free(p->cu, &c.tokens));
}

static const struct named {
    const char *name;
    void (*run)(path *);
    int kept; /* with a folder for programs */
} paths[] = {
    {"memory", path_memory, 0},           {"streams", path_streams, 0}, {"graph", path_graph, 0},
    {"programs", path_programs, 0},       {"tensors", path_tensors, 0}, {"attention", path_attention, 0},
    {"programs, kept", path_programs, 1}, {"apart", path_apart, 0},   {"gemv", path_gemv, 0},
    {"gemv of three", path_gemv_of_three, 0}, {"matmul", path_matmul, 0}, {"layers", path_layers, 0}};

/* Failures that are no error, because there is another way. */
static int recovers(const char *function, const path *p, int kept) {
    static const char *const
        quiet[] = {"cuDeviceGetAttribute", "cuGetErrorName",    "cuGetErrorString", "cuCtxPopCurrent_v2",
                   "cuLinkCreate_v2",      "cuLinkAddData_v2",  "cuLinkComplete",
                   "cuLinkDestroy",        "cuEventSynchronize" /* ptxcu_result_free has the stream, too */};
    size_t i;
    (void)p;
    if (kept && !strcmp(function, "cuModuleLoadDataEx")) return 1; /* a file that is not taken is replaced */
    for (i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        if (!strcmp(function, quiet[i])) return 1;
    return 0;
}

static char folder[300];

static void empty_folder(void) {
    char command[400];
    snprintf(command, sizeof command, "rm -f %s/*", folder);
    if (system(command)) printf("cannot empty %s\n", folder);
}

/* The path in a context of its own, with the nth call of a function failing: 0 when there is no nth call. */
static int once(const char *library, const struct named *which, const char *function, unsigned nth) {
    ptxcu_desc d = describe(library, NULL);
    void *context = NULL;
    path p;
    uint64_t before;
    int reached = 0;
    char text[900];
    counter c;
    memset(&p, 0, sizeof p);
    memset(&c, 0, sizeof c);
    d.alloc = counted;
    d.alloc_user = &c;
    if (which->kept) d.cache_folder = folder;
    if (context_create(&context, 0, 0)) return 0;
    context_pop(&context); /* no context is current, before and after each call */
    d.context = context;
    WORKS(p.cu, ptxcu_open(&p.cu, &d));
    if (ptxcu_get_error(p.cu)->code == PTXCU_E_NONE) {
        before = calls(function);
        make_fail(function, nth, 999);
        which->run(&p);
        make_fail(function, 0, 0);
        reached = calls(function) >= before + nth;
        snprintf(text, sizeof text, "%s, call %u of %s: code '%s', %d wrong: %s", which->name, nth, function,
                 ptxcu_error_name(p.code), p.wrong, p.message);
        if (!reached && p.code != PTXCU_E_NONE) p.wrong++;
        if (reached && p.code == PTXCU_E_NONE && !recovers(function, &p, which->kept)) p.wrong++;
        if (reached && p.code != PTXCU_E_NONE && !strstr(p.message, function)) p.wrong++;
        if (p.wrong) printf("%s\n", text);
        CHECK(p.wrong == 0);
        p.code = PTXCU_E_NONE; /* the handle and its context are usable */
        p.wrong = 0;
        which->run(&p);
        if (p.code || p.wrong) printf("after %s\n  again: %s\n", text, p.message);
        CHECK(p.code == PTXCU_E_NONE && p.wrong == 0);
    }
    ptxcu_close(p.cu);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    CHECK(current_context() == NULL);
    CHECK(context_destroy(context) == 0);
    if (!CHECK(report_count() == 0)) { /* leaks, and whatever else it saw */
        static char findings[3000];
        report(findings, sizeof findings);
        printf("%s, call %u of %s:\n%s\n", which->name, nth, function, findings);
        report_clear();
    }
    return reached;
}

/* Every call that the path makes of any function, counted in one good run. */
static void test_path(const char *library, const struct named *which) {
    static const char *const none[] = {NULL};
    uint64_t before = other_calls(none);
    size_t i;
    unsigned nth, made = 0;
    for (i = 0; i < FUNCTIONS; i++) {
        for (nth = 1; nth < 200; nth++) {
            if (which->kept) empty_folder();
            if (!once(library, which, functions[i], nth)) break;
            made++;
        }
    }
    printf("note: %s: %u failures in %llu calls\n", which->name, made,
           (unsigned long long)(other_calls(none) - before));
    CHECK(made > 8);
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY"), *temporary = getenv("TMPDIR");
    ptxcu_desc d = describe(library && *library ? library : NULL, NULL);
    ptxcu_buffer b;
    ptxcu *cu;
    size_t i;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (ptxcu_open(&cu, &d) == PTXCU_E_NONE) find_extras(cu);
    if (!calls) {
        printf("skip: not the CPU driver, so its calls cannot be made to fail\n");
    } else {
        char opened[1024];
        snprintf(opened, sizeof opened, "%s", ptxcu_device_info(cu)->library);
        snprintf(folder, sizeof folder, "%s/ptxgen_XXXXXX", temporary && *temporary ? temporary : "/tmp");
        CHECK(mkdtemp(folder) != NULL);
        find_more(cu);
        make_fail("cuMemAlloc_v2", 1, 999);
        EXPECT(cu, ptxcu_alloc(cu, 4, &b), PTXCU_E_DRIVER, "cuMemAlloc_v2(4 bytes)");
        for (i = 0; i < sizeof paths / sizeof paths[0]; i++) test_path(opened, &paths[i]);
        empty_folder();
        CHECK(remove(folder) == 0);
    }
    ptxcu_close(cu);
    return check_end();
}
