/* tensor.c - tensors on the device, and the operations of ptxgen_kernels.h as calls on them: what they
   refuse, their three forms, streams, graphs, contexts, threads. `tensor [LIBRARY]`, as launch.c.

   make build/tests/cuda/tensor */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"
#include "../reference/numbers.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

/* -- the CPU driver's findings -- */

static unsigned (*report_count)(void);
static size_t (*report)(char *, size_t);
static void (*report_clear)(void);
static void (*option)(const char *, int);

static void find_reports(const ptxcu *cu) {
    void *p;
#define FIND(pointer, name)                                                                                  \
    p = ptxcu_symbol(cu, name);                                                                              \
    memcpy(&pointer, &p, sizeof p)
    FIND(report_count, "ptxsim_report_count");
    FIND(report, "ptxsim_report");
    FIND(report_clear, "ptxsim_report_clear");
    FIND(option, "ptxsim_set");
#undef FIND
}

static void no_findings(int line) {
    static char text[4000];
    if (!report_count) return;
    CHECK_AT(report_count() == 0, line, "the CPU driver has found nothing", "");
    if (report_count()) {
        report(text, sizeof text);
        printf("%s\n", text);
        report_clear();
    }
}
#define CLEAN() no_findings(__LINE__)

static uint64_t seed;
static uint32_t below(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 32) * n >> 32);
}
static float uniform(void) { return (float)below(1u << 24) / 8388608.0f - 1; }

static ptxcu_tensor make(ptxcu *cu, ptx_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c,
                         uint64_t d) {
    ptxcu_tensor t;
    uint64_t shape[4];
    shape[0] = a;
    shape[1] = b;
    shape[2] = c;
    shape[3] = d;
    WORKS(cu, ptxcu_tensor_create(cu, type, rank, shape, &t));
    return t;
}

static ptxcu_tensor zero_tensor(void) {
    ptxcu_tensor t;
    memset(&t, 0, sizeof t);
    return t;
}

/* ---- tensors ---- */

static void test_create(ptxcu *cu) {
    static const struct bad {
        uint32_t type, rank;
        uint64_t shape[5];
        ptxcu_code code;
        const char *text;
    } bads[] = {
        {PTX_F32, 0, {1, 1, 1, 1, 1}, PTXCU_E_ARGUMENT, "rank is 0, must be 1 to 5"},
        {PTX_F32, 6, {1, 1, 1, 1, 1}, PTXCU_E_ARGUMENT, "rank is 6, must be 1 to 5"},
        {PTX_PRED, 1, {4, 0, 0, 0, 0}, PTXCU_E_ARGUMENT, "type is pred"},
        {PTX_U4, 1, {4, 0, 0, 0, 0}, PTXCU_E_ARGUMENT, "type is u4"},
        {PTXK_Q8_0, 1, {4, 0, 0, 0, 0}, PTXCU_E_ARGUMENT, "type is ?, not a ptx_type"},
        {9999, 1, {4, 0, 0, 0, 0}, PTXCU_E_ARGUMENT, "type is"},
        {PTX_F32, 2, {1ull << 32, 1ull << 32, 0, 0, 0}, PTXCU_E_OVERFLOW, "[4294967296, 4294967296] of f32"},
        {PTX_F32, 1, {1ull << 62, 0, 0, 0, 0}, PTXCU_E_OVERFLOW, "passes 64 bits"},
        {PTX_F32, 1, {UINT64_MAX, 0, 0, 0, 0}, PTXCU_E_OVERFLOW, "passes 64 bits"},
        {PTX_B8, 1, {UINT64_MAX, 0, 0, 0, 0}, PTXCU_E_OVERFLOW, "passes 64 bits"},
        {PTX_F64, 5, {1u << 13, 1u << 13, 1u << 13, 1u << 13, 1u << 13}, PTXCU_E_OVERFLOW, "passes 64 bits"},
        {PTX_F32, 5, {2, UINT64_MAX, 3, UINT64_MAX, 1}, PTXCU_E_OVERFLOW, "passes 64 bits"},
        {PTX_B8, 1, {1ull << 60, 0, 0, 0, 0}, PTXCU_E_DRIVER, "cuMemAlloc_v2(1152921504606846976 bytes)"},
    };
    ptxcu_tensor t, copy;
    uint64_t shape[5] = {2, 3, 4, 0, 0}, before = calls ? calls("cuMemAlloc_v2") : 0;
    char bytes[96];
    size_t i;
    for (i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        memset(&t, 1, sizeof t);
        EXPECT(cu, ptxcu_tensor_create(cu, (ptx_type)bads[i].type, bads[i].rank, bads[i].shape, &t),
               bads[i].code, bads[i].text);
        CHECK(t.owner == NULL && t.rank == 0 && t.address == 0);
    }
    EXPECT(cu, ptxcu_tensor_create(cu, PTX_F32, 1, NULL, &t), PTXCU_E_ARGUMENT, "shape is NULL");
    EXPECT(cu, ptxcu_tensor_create(cu, PTX_F32, 1, shape, NULL), PTXCU_E_ARGUMENT, "tensor is NULL");
    if (calls) CHECK(calls("cuMemAlloc_v2") == before + 1); /* the one that the driver refused */

    WORKS(cu, ptxcu_tensor_create(cu, PTX_F32, 3, shape, &t));
    CHECK(t.rank == 3 && t.stride[0] == 12 && t.stride[1] == 4 && t.stride[2] == 1 && t.address % 256 == 0);
    CHECK(ptxcu_tensor_bytes(&t) == 96 && ptxcu_tensor_bytes(NULL) == 0);
    memset(bytes, 7, sizeof bytes);
    EXPECT(cu, ptxcu_tensor_write(cu, &t, bytes, 95, NULL), PTXCU_E_SHAPE,
           "95 bytes are given, to [2, 3, 4] of f32 has 96");
    EXPECT(cu, ptxcu_tensor_upload(cu, &t, bytes, 97, NULL), PTXCU_E_SHAPE, "97 bytes are given");
    EXPECT(cu, ptxcu_tensor_write(cu, &t, NULL, 96, NULL), PTXCU_E_ARGUMENT, "from is NULL");
    EXPECT(cu, ptxcu_tensor_read(cu, NULL, &t, 96, NULL), PTXCU_E_ARGUMENT, "to is NULL");
    EXPECT(cu, ptxcu_tensor_download(cu, bytes, &t, 0, NULL), PTXCU_E_SHAPE, "0 bytes are given");
    EXPECT(cu, ptxcu_tensor_read(cu, bytes, NULL, 96, NULL), PTXCU_E_ARGUMENT, "from is NULL");
    copy = zero_tensor();
    EXPECT(cu, ptxcu_tensor_read(cu, bytes, &copy, 0, NULL), PTXCU_E_ARGUMENT,
           "from is a zero tensor");
    /* fields that somebody has changed do not reach beyond the memory */
    copy = t;
    copy.shape[0] = 3;
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, bytes, 144, NULL), PTXCU_E_SHAPE, "its fields were changed");
    copy = t;
    copy.address -= 4;
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, bytes, 96, NULL), PTXCU_E_SHAPE, "its fields were changed");
    copy = t;
    copy.stride[0] = UINT64_MAX / 2;
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, bytes, 96, NULL), PTXCU_E_SHAPE, "its fields were changed");
    copy = t;
    copy.rank = 77;
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, bytes, 96, NULL), PTXCU_E_SHAPE, "its fields were changed");
    copy = t;
    copy.allocation = 123456;
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, bytes, 96, NULL), PTXCU_E_FREED, "to was freed");
    WORKS(cu, ptxcu_tensor_write(cu, &t, bytes, 96, NULL));
    memset(bytes, 0, sizeof bytes);
    WORKS(cu, ptxcu_tensor_read(cu, bytes, &t, 96, NULL));
    CHECK(bytes[0] == 7 && bytes[95] == 7);
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    CHECK(t.owner == NULL);
    WORKS(cu, ptxcu_tensor_free(cu, &t)); /* zero now */
    WORKS(cu, ptxcu_tensor_free(cu, NULL));

    shape[1] = 0; /* empty: no memory, and nothing to copy */
    shape[0] = UINT64_MAX;
    WORKS(cu, ptxcu_tensor_create(cu, PTX_F64, 3, shape, &t));
    CHECK(t.address == 0 && ptxcu_tensor_bytes(&t) == 0 && t.owner == cu);
    WORKS(cu, ptxcu_tensor_write(cu, &t, NULL, 0, NULL));
    WORKS(cu, ptxcu_tensor_narrow(cu, &t, 0, 5, 6, &copy));
    WORKS(cu, ptxcu_tensor_read(cu, NULL, &copy, 0, NULL));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    CHECK(ptxcu_tensor_create(NULL, PTX_F32, 1, shape, &t) == PTXCU_E_MEMORY);
    CHECK(ptxcu_tensor_narrow(NULL, &t, 0, 0, 0, &copy) == PTXCU_E_MEMORY);
    CHECK(ptxcu_tensor_free(NULL, &t) == PTXCU_E_MEMORY);
}

/* Every view of an iota against indices computed here. */
static void test_views(ptxcu *cu) {
    ptxcu_tensor t = make(cu, PTX_U32, 4, 3, 4, 5, 6), v, w;
    uint32_t host[360], back[360], i, j, k, wrong = 0;
    uint64_t shape[5] = {12, 30, 0, 0, 0}, before;
    for (i = 0; i < 360; i++) host[i] = i;
    WORKS(cu, ptxcu_tensor_write(cu, &t, host, sizeof host, NULL));
    WORKS(cu, ptxcu_tensor_narrow(cu, &t, 2, 1, 3, &v)); /* [3, 4, 3, 6] */
    before = calls ? calls("cuMemcpyDtoHAsync_v2") : 0;
    WORKS(cu, ptxcu_tensor_read(cu, back, &v, 3 * 4 * 3 * 6 * 4, NULL));
    if (calls) CHECK(calls("cuMemcpyDtoHAsync_v2") == before + 12); /* rows that lie together are one copy */
    for (i = 0; i < 12; i++)
        for (j = 0; j < 18; j++) wrong += back[i * 18 + j] != i * 30 + 6 + j;
    CHECK(wrong == 0);
    WORKS(cu, ptxcu_tensor_select(cu, &v, 1, 3, &v)); /* in place: [3, 3, 6] */
    CHECK(v.rank == 3 && v.shape[1] == 3 && v.shape[3] == 0 && v.stride[3] == 0 && v.view);
    WORKS(cu, ptxcu_tensor_transpose(cu, &v, 0, 2, &w)); /* [6, 3, 3] */
    WORKS(cu, ptxcu_tensor_read(cu, back, &w, 54 * 4, NULL));
    for (i = 0; i < 6; i++)
        for (j = 0; j < 3; j++)
            for (k = 0; k < 3; k++) wrong += back[(i * 3 + j) * 3 + k] != k * 120 + 90 + (j + 1) * 6 + i;
    CHECK(wrong == 0);
    for (i = 0; i < 54; i++) back[i] = 1000 + i;
    WORKS(cu, ptxcu_tensor_write(cu, &w, back, 54 * 4, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, back, &t, sizeof back, NULL));
    for (i = 0; i < 6; i++)
        for (j = 0; j < 3; j++)
            for (k = 0; k < 3; k++) host[k * 120 + 90 + (j + 1) * 6 + i] = 1000 + (i * 3 + j) * 3 + k;
    CHECK(memcmp(host, back, sizeof host) == 0); /* these, and no others */
    WORKS(cu, ptxcu_tensor_reshape(cu, &t, 2, shape, &v));
    WORKS(cu, ptxcu_tensor_select(cu, &v, 0, 11, &v));
    WORKS(cu, ptxcu_tensor_read(cu, back, &v, 120, NULL));
    CHECK(memcmp(back, host + 330, 120) == 0);
    WORKS(cu, ptxcu_tensor_select(cu, &v, 0, 29, &v)); /* of rank 1: one element stays */
    CHECK(v.rank == 1 && v.shape[0] == 1);
    WORKS(cu, ptxcu_tensor_read(cu, back, &v, 4, NULL));
    CHECK(back[0] == host[359]);
    WORKS(cu, ptxcu_tensor_narrow(cu, &t, 0, 3, 0, &v)); /* nothing, at the end */
    WORKS(cu, ptxcu_tensor_read(cu, NULL, &v, 0, NULL));

    WORKS(cu, ptxcu_tensor_transpose(cu, &t, 1, 2, &w));
    EXPECT(cu, ptxcu_tensor_reshape(cu, &w, 2, shape, &v), PTXCU_E_SHAPE, "is not dense");
    shape[1] = 31;
    EXPECT(cu, ptxcu_tensor_reshape(cu, &t, 2, shape, &v), PTXCU_E_SHAPE,
           "[12, 31] does not have as many elements");
    shape[0] = UINT64_MAX;
    EXPECT(cu, ptxcu_tensor_reshape(cu, &t, 2, shape, &v), PTXCU_E_OVERFLOW, "passes 64 bits");
    EXPECT(cu, ptxcu_tensor_narrow(cu, &t, 4, 0, 1, &v), PTXCU_E_ARGUMENT, "dimension 4");
    EXPECT(cu, ptxcu_tensor_narrow(cu, &t, 1, 3, 2, &v), PTXCU_E_ARGUMENT,
           "2 indices from 3 on, dimension 1");
    EXPECT(cu, ptxcu_tensor_narrow(cu, &t, 1, UINT64_MAX, 2, &v), PTXCU_E_ARGUMENT,
           "from 18446744073709551615");
    EXPECT(cu, ptxcu_tensor_narrow(cu, &t, 1, 2, UINT64_MAX, &v), PTXCU_E_ARGUMENT,
           "18446744073709551615 ind");
    EXPECT(cu, ptxcu_tensor_select(cu, &t, 1, 4, &v), PTXCU_E_ARGUMENT,
           "index 4, dimension 1 of [3, 4, 5, 6]");
    EXPECT(cu, ptxcu_tensor_select(cu, &t, 9, 0, &v), PTXCU_E_ARGUMENT, "dimension 9");
    EXPECT(cu, ptxcu_tensor_transpose(cu, &t, 0, 4, &v), PTXCU_E_ARGUMENT, "dimension 4");
    EXPECT(cu, ptxcu_tensor_transpose(cu, &t, 0, 1, NULL), PTXCU_E_ARGUMENT, "view is NULL");
    EXPECT(cu, ptxcu_tensor_transpose(cu, NULL, 0, 1, &v), PTXCU_E_ARGUMENT, "tensor is NULL");
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    CLEAN();
}

static void test_free(ptxcu *cu, ptxcu *other) {
    ptxcu_tensor t = make(cu, PTX_F32, 2, 4, 4, 0, 0), copy = t, view, next;
    float host[16];
    uint64_t freed;
    memset(host, 0, sizeof host);
    WORKS(cu, ptxcu_tensor_narrow(cu, &t, 0, 1, 2, &view));
    EXPECT(cu, ptxcu_tensor_free(cu, &view), PTXCU_E_ARGUMENT, "a view cannot be freed");
    EXPECT(other, ptxcu_tensor_free(other, &t), PTXCU_E_WRONG_HANDLE, "a tensor of another handle");
    EXPECT(other, ptxcu_tensor_write(other, &t, host, 64, NULL), PTXCU_E_WRONG_HANDLE,
           "to is a tensor of another");
    EXPECT(other, ptxcu_tensor_narrow(other, &t, 0, 0, 1, &view), PTXCU_E_WRONG_HANDLE, "another handle");
    if (make_fail) { /* the driver does not take it: still there */
        make_fail("cuMemFree_v2", 1, 999);
        EXPECT(cu, ptxcu_tensor_free(cu, &t), PTXCU_E_DRIVER, "cuMemFree_v2(0x");
        WORKS(cu, ptxcu_tensor_write(cu, &t, host, 64, NULL));
    }
    freed = calls ? calls("cuMemFree_v2") : 0;
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    if (calls) CHECK(calls("cuMemFree_v2") == freed + 1);
    EXPECT(cu, ptxcu_tensor_free(cu, &copy), PTXCU_E_FREED, "tensor was freed");
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, host, 64, NULL), PTXCU_E_FREED, "to was freed");
    EXPECT(cu, ptxcu_tensor_read(cu, host, &view, 32, NULL), PTXCU_E_FREED, "from was freed");
    EXPECT(cu, ptxcu_tensor_narrow(cu, &view, 0, 0, 1, &view), PTXCU_E_FREED, "tensor was freed");
    next = make(cu, PTX_F32, 2, 4, 4, 0, 0); /* takes its place, perhaps its address: not its name */
    EXPECT(cu, ptxcu_tensor_write(cu, &copy, host, 64, NULL), PTXCU_E_FREED, "to was freed");
    if (calls) CHECK(calls("cuMemFree_v2") == freed + 1);
    WORKS(cu, ptxcu_tensor_free(cu, &next));
    CLEAN();
}

static void test_wrap(ptxcu *cu) {
    ptxcu_buffer b, part;
    ptxcu_tensor t, copy;
    uint32_t host[16], back[24], i;
    uint64_t shape[2] = {4, 4}, stride[2] = {6, 1}, address;
    for (i = 0; i < 16; i++) host[i] = i;
    WORKS(cu, ptxcu_alloc(cu, 96, &b));
    WORKS(cu, ptxcu_fill8(cu, b, 0, 0xff, 96, NULL));
    WORKS(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t));
    WORKS(cu, ptxcu_tensor_write(cu, &t, host, 64, NULL));
    WORKS(cu, ptxcu_download(cu, back, b, 0, 96, NULL));
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 24; i++) CHECK(back[i] == (i % 6 < 4 ? i / 6 * 4 + i % 6 : UINT32_MAX));
    copy = t;
    address = calls ? calls("cuMemFree_v2") : 0;
    WORKS(cu, ptxcu_tensor_free(cu, &t)); /* lets go */
    if (calls) CHECK(calls("cuMemFree_v2") == address);
    EXPECT(cu, ptxcu_tensor_read(cu, back, &copy, 64, NULL), PTXCU_E_FREED, "was freed");
    stride[0] = 7;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t), PTXCU_E_SHAPE,
           "needs 100 bytes, memory has 96");
    stride[0] = 3;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t), PTXCU_E_SHAPE, "overlap");
    stride[0] = 0;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t), PTXCU_E_SHAPE, "overlap");
    stride[0] = UINT64_MAX / 2;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t), PTXCU_E_OVERFLOW, "passes 64 bits");
    stride[0] = 1ull << 61;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t), PTXCU_E_OVERFLOW, "passes 64 bits");
    stride[0] = 1, stride[1] = 4; /* columns */
    WORKS(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, stride, &t));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    part = b;
    part.address += 2;
    part.bytes -= 2;
    EXPECT(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 2, shape, NULL, &t), PTXCU_E_SHAPE,
           "is not aligned to u32");
    WORKS(cu, ptxcu_tensor_wrap(cu, part, PTX_B16, 2, shape, NULL, &t));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    shape[0] = 1ull << 33;
    shape[1] = 1ull << 33;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, NULL, &t), PTXCU_E_OVERFLOW, "passes 64 bits");
    shape[0] = shape[1] = 4;
    EXPECT(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 2, shape, NULL, NULL), PTXCU_E_ARGUMENT, "tensor is NULL");
    memset(&part, 0, sizeof part);
    EXPECT(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 2, shape, NULL, &t), PTXCU_E_SHAPE, "memory has 0");
    shape[1] = 0;
    WORKS(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 2, shape, NULL, &t));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    shape[1] = 4;
    part.address = (uint64_t)(uintptr_t)host & ~(uint64_t)15;
    part.bytes = 64;
    EXPECT(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 2, shape, NULL, &t), PTXCU_E_ARGUMENT,
           "is not the driver's");
    part = b;
    part.bytes = (size_t)1 << 40; /* says more than there is */
    shape[0] = 1ull << 35;
    EXPECT(cu, ptxcu_tensor_wrap(cu, part, PTX_U32, 2, shape, NULL, &t), PTXCU_E_ARGUMENT,
           "is not the driver's");
    WORKS(cu, ptxcu_free(cu, b));
    CLEAN();
}

/* ---- the operations ---- */

/* Attention over f32 caches of some size, with its truth. */
enum { BATCH = 3, HEADS = 4, KV_HEADS = 2, DIM = 32, ROWS = 700 };
enum {
    Q_COUNT = BATCH * HEADS * DIM,
    KV_COUNT = BATCH * KV_HEADS * DIM,
    CACHE = BATCH * KV_HEADS * ROWS * DIM
};

typedef struct attention {
    float *q, *k, *v; /* [BATCH, HEADS, DIM], [BATCH, KV_HEADS, ROWS, DIM] */
    double *want;
    uint32_t lengths[BATCH];
    ptxcu_kv_cache cache;
    ptxcu_flash_decode_desc desc;
    ptxcu_call call;
} attention;

static float *numbers(size_t n) {
    float *p = (float *)malloc(n * sizeof *p);
    size_t i;
    if (!p) exit(1);
    for (i = 0; i < n; i++) p[i] = uniform();
    return p;
}

static void truth(attention *a) {
    static const uint32_t group = HEADS / KV_HEADS;
    uint32_t b, h, i, e;
    for (b = 0; b < BATCH; b++)
        for (h = 0; h < HEADS; h++) {
            const float *q = a->q + (b * HEADS + h) * DIM;
            const float *k = a->k + (b * KV_HEADS + h / group) * ROWS * DIM;
            const float *v = a->v + (b * KV_HEADS + h / group) * ROWS * DIM;
            double *out = a->want + (b * HEADS + h) * DIM, sum = 0, most = -1e30, score[ROWS];
            memset(out, 0, DIM * sizeof *out);
            for (i = 0; i < a->lengths[b]; i++) {
                for (score[i] = 0, e = 0; e < DIM; e++) score[i] += (double)q[e] * k[i * DIM + e];
                score[i] /= sqrt((double)DIM);
                if (score[i] > most) most = score[i];
            }
            for (i = 0; i < a->lengths[b]; i++) {
                double w = exp(score[i] - most);
                sum += w;
                for (e = 0; e < DIM; e++) out[e] += w * v[i * DIM + e];
            }
            for (e = 0; e < DIM && sum > 0; e++) out[e] /= sum;
        }
}

static void attention_open(ptxcu *cu, attention *a, ptxcu_stream stream) {
    uint64_t bytes;
    uint32_t i;
    memset(a, 0, sizeof *a);
    a->q = numbers(Q_COUNT);
    a->k = numbers(CACHE);
    a->v = numbers(CACHE);
    a->want = (double *)malloc(Q_COUNT * sizeof *a->want);
    for (i = 0; i < BATCH; i++) a->lengths[i] = i == 0 ? 0 : 1 + below(ROWS);
    truth(a);
    WORKS(cu, ptxcu_kv_cache_create(cu, PTX_F32, BATCH, KV_HEADS, ROWS, DIM, &a->cache));
    a->desc.q = make(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    a->desc.out = make(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    a->desc.lengths = make(cu, PTX_U32, 1, BATCH, 0, 0, 0);
    a->desc.cache = &a->cache;
    WORKS(cu, ptxcu_tensor_upload(cu, &a->cache.k, a->k, CACHE * sizeof(float), stream));
    WORKS(cu, ptxcu_tensor_upload(cu, &a->cache.v, a->v, CACHE * sizeof(float), stream));
    WORKS(cu, ptxcu_tensor_upload(cu, &a->desc.q, a->q, Q_COUNT * sizeof(float), stream));
    WORKS(cu, ptxcu_tensor_upload(cu, &a->desc.lengths, a->lengths, sizeof a->lengths, stream));
    WORKS(cu, ptxcu_flash_decode_prepare(cu, &a->desc, &a->call));
    bytes = a->call.plan.workspace_bytes;
    if (bytes) {
        EXPECT(cu, ptxcu_call_run(cu, &a->call, stream), PTXCU_E_WORKSPACE,
               "flash_decode: workspace has 0 bytes");
        WORKS(cu, ptxcu_workspace_create(cu, &a->call, stream, &a->desc.workspace));
        CHECK(ptxcu_tensor_bytes(&a->desc.workspace) == bytes);
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &a->desc, &a->call));
    }
}

/* What is in `out`, read behind the stream's work, is right. The tolerance: every term is computed in f32
   with a few dozen roundings (below 2^-18 together), sums of weights of at most 1 times values of at most
   1. */
static int attention_right(ptxcu *cu, const attention *a, ptxcu_stream stream) {
    float out[Q_COUNT];
    uint32_t i, wrong = 0;
    memset(out, 0xff, sizeof out);
    if (ptxcu_tensor_read(cu, out, &a->desc.out, sizeof out, stream)) return 0;
    for (i = 0; i < Q_COUNT; i++) wrong += !(fabs((double)out[i] - a->want[i]) < 1e-5);
    return wrong == 0;
}

static void attention_poison(ptxcu *cu, const attention *a, ptxcu_stream stream) {
    ptxcu_buffer b;
    b.address = a->desc.out.address;
    b.bytes = Q_COUNT * sizeof(float);
    WORKS(cu, ptxcu_fill8(cu, b, 0, 0xff, b.bytes, stream));
}

static void attention_close(ptxcu *cu, attention *a) {
    WORKS(cu, ptxcu_tensor_free(cu, &a->desc.q));
    WORKS(cu, ptxcu_tensor_free(cu, &a->desc.out));
    WORKS(cu, ptxcu_tensor_free(cu, &a->desc.lengths));
    WORKS(cu, ptxcu_tensor_free(cu, &a->desc.workspace));
    WORKS(cu, ptxcu_kv_cache_free(cu, &a->cache));
    free(a->q);
    free(a->k);
    free(a->v);
    free(a->want);
}

/* What a launch may call. */
static const char *const launching[] = {
    "cuLaunchKernel", "cuLaunchKernelEx", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2",
    "cuEventRecord", "cuStreamWaitEvent", "cuEventQuery", "cuStreamIsCapturing", "cuStreamGetCtx", NULL};

static uint64_t launched(void) { return calls("cuLaunchKernel") + calls("cuLaunchKernelEx"); }

/* The three forms; launching in any of them allocates nothing and waits for nothing, on either side. */
static void test_three_forms(ptxcu *cu, const counter *c) {
    attention a;
    ptxcu_stream stream;
    ptxcu_result *r = NULL;
    uint64_t before = 0, launches = 0;
    long requests;
    int done = 9;
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    attention_open(cu, &a, stream);
    CHECK(a.call.plan.workspace_bytes > 0); /* long enough for several blocks */
    WORKS(cu, ptxcu_result_create(cu, &r));
    attention_poison(cu, &a, stream);
    WORKS(cu, ptxcu_call_finish(cu, &a.call, stream)); /* synchronous */
    CHECK(attention_right(cu, &a, stream));

    attention_poison(cu, &a, stream);
    requests = c->requests;
    if (calls) before = other_calls(launching), launches = launched();
    WORKS(cu, ptxcu_call_run(cu, &a.call, stream));     /* on the caller's stream */
    WORKS(cu, ptxcu_flash_decode(cu, &a.desc, stream)); /* checked again, as one call */
    CHECK(c->requests == requests);
    if (calls) CHECK(other_calls(launching) == before && launched() > launches);
    CHECK(attention_right(cu, &a, stream));

    WORKS(cu, ptxcu_result_wait(cu, r)); /* nothing yet: done */
    WORKS(cu, ptxcu_result_poll(cu, r, &done));
    CHECK(done == 1);
    attention_poison(cu, &a, stream);
    requests = c->requests;
    if (calls) before = other_calls(launching);
    WORKS(cu, ptxcu_call_start(cu, &a.call, stream, r)); /* asynchronous */
    CHECK(c->requests == requests);
    if (calls) CHECK(other_calls(launching) == before);
    if (option) EXPECT(cu, ptxcu_call_start(cu, &a.call, stream, r), PTXCU_E_BUSY, "has not finished");
    WORKS(cu, ptxcu_result_wait(cu, r));
    WORKS(cu, ptxcu_result_poll(cu, r, &done));
    CHECK(done == 1 && attention_right(cu, &a, NULL));

    attention_poison(cu, &a, stream);
    WORKS(cu, ptxcu_call_start(cu, &a.call, stream, r));
    for (done = 0; !done;)
        if (ptxcu_result_poll(cu, r, &done)) break;
    CHECK(done == 1 && attention_right(cu, &a, NULL));

    attention_poison(cu, &a, stream); /* a stream waits, the host does not */
    WORKS(cu, ptxcu_call_start(cu, &a.call, stream, r));
    WORKS(cu, ptxcu_stream_wait_result(cu, stream, r));
    CHECK(attention_right(cu, &a, stream));
    WORKS(cu, ptxcu_result_free(cu, r));
    WORKS(cu, ptxcu_result_free(cu, NULL));
    EXPECT(cu, ptxcu_result_create(cu, NULL), PTXCU_E_ARGUMENT, "result is NULL");
    EXPECT(cu, ptxcu_result_wait(cu, NULL), PTXCU_E_ARGUMENT, "result is NULL");
    EXPECT(cu, ptxcu_call_start(cu, &a.call, stream, NULL), PTXCU_E_ARGUMENT, "result is NULL");
    attention_close(cu, &a);
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
    CLEAN();
}

/* A result keeps the memory that its call reads: nothing is freed while the GPU still reads it. */
static void test_result_keeps_memory(ptxcu *cu) {
    attention a;
    ptxcu_result *r;
    ptxcu_tensor out;
    uint64_t freed = 0;
    ptxcu_stream stream;
    float host[Q_COUNT];
    uint32_t i, wrong = 0;
    int done;
    ptxcu_buffer kept;
    if (!calls) return;
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    WORKS(cu, ptxcu_result_create(cu, &r));
    attention_open(cu, &a, stream);
    option("lag", 2); /* nothing runs until it is waited for */
    attention_poison(cu, &a, stream);
    WORKS(cu, ptxcu_call_start(cu, &a.call, stream, r));
    freed = calls("cuMemFree_v2");
    kept.address = a.desc.out.address;
    kept.bytes = sizeof host;
    out = a.desc.out;
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.q));
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.out));
    WORKS(cu, ptxcu_kv_cache_free(cu, &a.cache));
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.lengths));
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.workspace));
    CHECK(calls("cuMemFree_v2") == freed); /* of eight blocks */
    EXPECT(cu, ptxcu_tensor_read(cu, host, &out, sizeof host, NULL), PTXCU_E_FREED, "from was freed");
    EXPECT(cu, ptxcu_call_run(cu, &a.call, stream), PTXCU_E_FREED, "flash_decode: q was freed");
    EXPECT(cu, ptxcu_call_start(cu, &a.call, stream, r), PTXCU_E_BUSY, "");
    /* the memory is still there, and so is the answer */
    WORKS(cu, ptxcu_stream_wait_result(cu, stream, r));
    WORKS(cu, ptxcu_download(cu, host, kept, 0, sizeof host, stream));
    WORKS(cu, ptxcu_stream_sync(cu, stream));
    for (i = 0; i < Q_COUNT; i++) wrong += !(fabs((double)host[i] - a.want[i]) < 1e-5);
    CHECK(wrong == 0);
    WORKS(cu, ptxcu_result_poll(cu, r, &done));
    CHECK(done == 1 && calls("cuMemFree_v2") == freed + 7);
    option("lag", 1);
    WORKS(cu, ptxcu_result_free(cu, r));
    attention_close(cu, &a);

    attention_open(cu, &a, stream); /* let go by freeing the result itself */
    WORKS(cu, ptxcu_result_create(cu, &r));
    WORKS(cu, ptxcu_call_start(cu, &a.call, stream, r));
    freed = calls("cuMemFree_v2");
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.q));
    CHECK(calls("cuMemFree_v2") == freed);
    WORKS(cu, ptxcu_result_free(cu, r));
    CHECK(calls("cuMemFree_v2") == freed + 1);
    attention_close(cu, &a);
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
    CLEAN();
}

/* Order between streams: by events it is right, and without them the CPU driver says so. */
static void test_order(ptxcu *cu) {
    attention a;
    ptxcu_stream producer, consumer;
    ptxcu_result *r;
    uint32_t i;
    if (!report_count) return;
    WORKS(cu, ptxcu_stream_create(cu, &producer));
    WORKS(cu, ptxcu_stream_create(cu, &consumer));
    WORKS(cu, ptxcu_result_create(cu, &r));
    attention_open(cu, &a, producer); /* q, k, v are under way when the call starts */
    WORKS(cu, ptxcu_call_start(cu, &a.call, producer, r));
    WORKS(cu, ptxcu_stream_wait_result(cu, consumer, r));
    CHECK(attention_right(cu, &a, consumer));
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_result_wait(cu, r));
    CLEAN();
    /* the twin: another stream that nothing makes wait */
    WORKS(cu, ptxcu_call_run(cu, &a.call, producer));
    for (i = 0; i < Q_COUNT; i++) a.q[i] = -a.q[i];
    option("quiet", 1);
    WORKS(cu, ptxcu_tensor_upload(cu, &a.desc.q, a.q, Q_COUNT * sizeof(float), consumer));
    WORKS(cu, ptxcu_sync(cu));
    CHECK(report_count() > 0);
    report_clear();
    WORKS(cu, ptxcu_result_free(cu, r));
    attention_close(cu, &a);
    WORKS(cu, ptxcu_stream_destroy(cu, producer));
    WORKS(cu, ptxcu_stream_destroy(cu, consumer));
}

/* A tensor that is spoiled, what must be said, and the tensor as it was. */
#define SPOILED(cu, tensor, change, call, code, text)                                                        \
    do {                                                                                                     \
        ptxcu_tensor good_ = (tensor);                                                                       \
        change;                                                                                              \
        EXPECT(cu, call, code, text);                                                                        \
        (tensor) = good_;                                                                                    \
    } while (0)

static void test_decode_refuses(ptxcu *cu, ptxcu *other) {
    attention a;
    ptxcu_tensor half, freed, t, wide;
    ptxcu_call call, empty;
    ptxcu_flash_decode_desc *x = &a.desc;
    ptxcu_kv_cache cache;
    uint64_t before, shape[4] = {BATCH, HEADS, DIM, 0};
    attention_open(cu, &a, NULL);
    freed = make(cu, PTX_F32, 3, BATCH, HEADS, DIM, 0);
    t = freed;
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    half = make(cu, PTX_F16, 3, BATCH, HEADS, DIM, 0);
    wide = make(cu, PTX_F32, 3, BATCH, HEADS + 2, DIM + 4, 0);
    memset(&empty, 0, sizeof empty);
    before = calls ? launched() : 0;
#define BAD(tensor, change, code, text)                                                                      \
    SPOILED(cu, tensor, change, ptxcu_flash_decode_prepare(cu, x, &call), code, text);                       \
    CHECK(call.owner == NULL)
    BAD(x->q, x->q = zero_tensor(), PTXCU_E_ARGUMENT, "flash_decode: q is a zero tensor");
    BAD(x->q, x->q = freed, PTXCU_E_FREED, "flash_decode: q was freed");
    BAD(x->q, x->q.type = PTX_U32, PTXCU_E_SHAPE, "flash_decode: q is of type u32, must be f16, bf16 or f32");
    BAD(x->q, ptxcu_tensor_select(cu, &x->q, 0, 0, &x->q), PTXCU_E_SHAPE,
        "flash_decode: q has shape [4, 32], must be [batch, (queries,) heads, head_dim]");
    BAD(x->q, ptxcu_tensor_transpose(cu, &x->q, 0, 1, &x->q), PTXCU_E_SHAPE, "must be dense");
    BAD(x->q, ptxcu_tensor_narrow(cu, &x->q, 1, 0, 3, &x->q), PTXCU_E_SHAPE, "must be dense");
    BAD(x->q, ptxcu_tensor_narrow(cu, &x->q, 0, 0, 2, &x->q), PTXCU_E_SHAPE,
        "cache->k has shape [3, 2, 700, 32], must be [batch, kv_heads, max_seq, head_dim]; dimension 0 must "
        "be 2");
    BAD(x->q, (x->q.address += 4, x->q.shape[0]--), PTXCU_E_SHAPE, "must be aligned to 16 bytes");
    BAD(x->out, x->out = zero_tensor(), PTXCU_E_ARGUMENT, "flash_decode: out is a zero tensor");
    BAD(x->out, x->out = wide, PTXCU_E_SHAPE,
        "flash_decode: out has shape [3, 1, 6, 36], must be [batch, (queries,) heads, head_dim]: [3, 1, 4, "
        "32]");
    BAD(x->out, x->out = x->q, PTXCU_E_SHAPE, "flash_decode: out overlaps q");
    BAD(x->k, x->k = half, PTXCU_E_SHAPE, "flash_decode: k has shape [3, 1, 4, 32]");
    BAD(x->k, ptxcu_tensor_narrow(cu, &x->q, 1, 0, KV_HEADS, &x->k), PTXCU_E_SHAPE,
        "k has shape [3, 1, 2, 32] and");
    BAD(x->lse, x->lse = x->q, PTXCU_E_SHAPE,
        "lse has shape [3, 4, 32], must be [batch, heads, queries]: [3, 4, 1]");
    BAD(x->lse, ptxcu_tensor_select(cu, &x->out, 2, 0, &x->lse), PTXCU_E_SHAPE, "must be dense");
    x->window = 0x80000000u;
    BAD(x->out, (void)0, PTXCU_E_SHAPE, "flash_decode: window is 2147483648");
    x->window = 0;
    x->soft_cap = -1;
    BAD(x->out, (void)0, PTXCU_E_SHAPE, "flash_decode: soft_cap is");
    x->soft_cap = 0;
    BAD(x->lengths, x->lengths = zero_tensor(), PTXCU_E_ARGUMENT, "lengths is zero and length is 0");
    BAD(x->lengths, ptxcu_tensor_narrow(cu, &x->lengths, 0, 0, 2, &x->lengths), PTXCU_E_SHAPE,
        "lengths has shape [2], must be [batch]: [3]");
    BAD(x->lengths, x->lengths.type = PTX_F32, PTXCU_E_SHAPE, "lengths is of type f32, must be u32");
    BAD(x->workspace, x->workspace = x->q, PTXCU_E_SHAPE, "workspace overlaps q");
    BAD(x->workspace, x->workspace = x->out, PTXCU_E_SHAPE, "overlaps");
    BAD(x->workspace, x->workspace = freed, PTXCU_E_FREED, "workspace was freed");
    BAD(x->workspace, x->workspace.address += 16, PTXCU_E_SHAPE, "fields were changed");
    BAD(x->workspace, (x->workspace.address += 16, x->workspace.shape[0] -= 16), PTXCU_E_SHAPE,
        "must be aligned to 256 bytes");
    BAD(a.cache.k, a.cache.k = zero_tensor(), PTXCU_E_ARGUMENT, "cache->k is a zero tensor");
    BAD(a.cache.v, a.cache.v.type = PTX_F16, PTXCU_E_SHAPE, "cache->v is of type f16, must be f32");
    BAD(a.cache.v, ptxcu_tensor_narrow(cu, &a.cache.v, 2, 0, 8, &a.cache.v), PTXCU_E_SHAPE,
        "cache->v has shape [3, 2, 8, 32]");
    BAD(a.cache.addresses, a.cache.addresses = zero_tensor(), PTXCU_E_ARGUMENT,
        "cache->addresses is a zero tensor");
    BAD(x->out, (x->cache = NULL), PTXCU_E_ARGUMENT, "flash_decode: cache is NULL");
    x->cache = &a.cache;
    x->scale = NAN;
    BAD(x->out, (void)0, PTXCU_E_SHAPE, "flash_decode: scale is");
    x->scale = 0;
    x->max_len = ROWS + 1;
    BAD(x->out, (void)0, PTXCU_E_SHAPE, "flash_decode: max_len is 701, must be at most max_seq, 700");
    x->max_len = 0;
    EXPECT(cu, ptxcu_flash_decode_prepare(cu, NULL, &call), PTXCU_E_ARGUMENT, "the description is NULL");
    EXPECT(cu, ptxcu_flash_decode_prepare(cu, x, NULL), PTXCU_E_ARGUMENT, "call is NULL");
    EXPECT(cu, ptxcu_flash_decode(cu, NULL, NULL), PTXCU_E_ARGUMENT, "the description is NULL");
    EXPECT(other, ptxcu_flash_decode(other, x, NULL), PTXCU_E_WRONG_HANDLE,
           "q is a tensor of another handle");
    EXPECT(other, ptxcu_call_run(other, &a.call, NULL), PTXCU_E_WRONG_HANDLE,
           "was prepared by another handle");
    EXPECT(cu, ptxcu_call_run(cu, &empty, NULL), PTXCU_E_ARGUMENT, "the call is zero");
    EXPECT(cu, ptxcu_call_run(cu, NULL, NULL), PTXCU_E_ARGUMENT, "call is NULL");
    EXPECT(cu, ptxcu_call_finish(cu, NULL, NULL), PTXCU_E_ARGUMENT, "call is NULL");
    /* heads that are no multiple of kv_heads */
    shape[1] = 3;
    {
        ptxcu_tensor q = x->q, out = x->out;
        WORKS(cu, ptxcu_tensor_create(cu, PTX_F32, 3, shape, &x->q));
        WORKS(cu, ptxcu_tensor_create(cu, PTX_F32, 3, shape, &x->out));
        EXPECT(cu, ptxcu_flash_decode(cu, x, NULL), PTXCU_E_SHAPE,
               "heads is 3, must be a multiple of kv_heads, 2");
        WORKS(cu, ptxcu_tensor_free(cu, &x->q));
        WORKS(cu, ptxcu_tensor_free(cu, &x->out));
        x->q = q;
        x->out = out;
    }
    if (calls) CHECK(launched() == before);
    /* caches: shapes that differ, strides that differ, one that overlaps the other */
    t = a.cache.k;
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &t, &t, NULL, &cache), PTXCU_E_SHAPE,
           "k, which is written, overlaps v");
    t.type = PTX_U32;
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &t, &a.cache.v, NULL, &cache), PTXCU_E_SHAPE,
           "must be f16, bf16 or f32");
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, NULL, &a.cache.v, NULL, &cache), PTXCU_E_ARGUMENT, "k is NULL");
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &a.cache.k, NULL, NULL, &cache), PTXCU_E_ARGUMENT, "v is NULL");
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &a.cache.k, &a.cache.v, NULL, NULL), PTXCU_E_ARGUMENT, "NULL");
    WORKS(cu, ptxcu_tensor_transpose(cu, &a.cache.k, 2, 3, &t));
    EXPECT(cu, ptxcu_kv_cache_wrap(cu, &t, &t, NULL, &cache), PTXCU_E_SHAPE, "dense in its last dimension");
    EXPECT(cu, ptxcu_kv_cache_create(cu, PTX_F16, 1u << 20, 1u << 20, 1u << 20, 1u << 20, &cache),
           PTXCU_E_OVERFLOW, "passes 64 bits");
    EXPECT(cu, ptxcu_kv_cache_create(cu, PTX_F16, 1, 1, 1, 1, NULL), PTXCU_E_ARGUMENT, "cache is NULL");
    EXPECT(cu, ptxcu_kv_cache_create(cu, PTX_U32, 1, 1, 1, 1, &cache), PTXCU_E_SHAPE,
           "must be f16, bf16 or f32");
    WORKS(cu, ptxcu_kv_cache_free(cu, NULL));

    /* a program that was unloaded */
    WORKS(cu, ptxcu_cache_clear(cu));
    EXPECT(cu, ptxcu_call_run(cu, &a.call, NULL), PTXCU_E_FREED,
           "ptxcu_cache_clear has unloaded the program");
    WORKS(cu, ptxcu_flash_decode(cu, x, NULL));
    CHECK(attention_right(cu, &a, NULL));
    WORKS(cu, ptxcu_tensor_free(cu, &half));
    WORKS(cu, ptxcu_tensor_free(cu, &wide));
    attention_close(cu, &a);
    CLEAN();
#undef BAD
}

/* A workspace that is any tensor: zeroed by the first run, and again when another operation has used it; in a
   capture by the graph, each time. */
static void test_workspace(ptxcu *cu) {
    enum { N = 5, K = 512 };
    attention a;
    ptxcu_gemv_desc g;
    ptxcu_call call;
    ptxcu_stream stream;
    ptxcu_graph graph = NULL;
    uint64_t before;
    uint32_t i;
    if (!calls) return;
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    attention_open(cu, &a, stream);
    CHECK(a.call.plan.zero_bytes > 0);
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_tensor_free(cu, &a.desc.workspace));
    a.desc.workspace = make(cu, PTX_F32, 2, 256, a.call.plan.workspace_bytes / 4, 0, 0);
    WORKS(cu, ptxcu_flash_decode_prepare(cu, &a.desc, &a.call));
    memset(&g, 0, sizeof g);
    g.format = PTXK_Q4_K;
    g.weights = make(cu, PTX_B8, 2, N, K / 256 * 144, 0, 0);
    g.x = make(cu, PTX_F32, 2, 1, K, 0, 0);
    g.y = make(cu, PTX_F32, 2, 1, N, 0, 0);
    g.workspace = a.desc.workspace;
    {
        ptxcu_buffer b;
        b.address = g.weights.address;
        b.bytes = ptxcu_tensor_bytes(&g.weights);
        WORKS(cu, ptxcu_fill8(cu, b, 0, 1, b.bytes, stream));
        b.address = g.x.address;
        b.bytes = ptxcu_tensor_bytes(&g.x);
        WORKS(cu, ptxcu_fill8(cu, b, 0, 1, b.bytes, stream));
    }
    WORKS(cu, ptxcu_gemv_prepare(cu, &g, &call));
    for (i = 0; i < 3; i++) {
        attention_poison(cu, &a, stream);
        before = calls("cuMemsetD8Async");
        WORKS(cu, ptxcu_call_run(cu, &a.call, stream));
        CHECK(calls("cuMemsetD8Async") == before + (i != 1));
        CHECK(attention_right(cu, &a, stream));
        if (i == 1) WORKS(cu, ptxcu_call_run(cu, &call, stream)); /* leaves numbers there */
    }
    WORKS(cu, ptxcu_call_run(cu, &call, stream));
    WORKS(cu, ptxcu_graph_begin(cu, stream));
    WORKS(cu, ptxcu_call_run(cu, &a.call, stream));
    WORKS(cu, ptxcu_call_run(cu, &call, stream));
    WORKS(cu, ptxcu_graph_end(cu, stream, &graph));
    for (i = 0; i < 2; i++) {
        attention_poison(cu, &a, stream);
        WORKS(cu, ptxcu_graph_launch(cu, graph, stream));
        CHECK(attention_right(cu, &a, stream));
    }
    attention_poison(cu, &a, stream);
    WORKS(cu, ptxcu_call_run(cu, &a.call, stream)); /* the graph has left numbers there */
    CHECK(attention_right(cu, &a, stream));
    WORKS(cu, ptxcu_graph_destroy(cu, graph));
    WORKS(cu, ptxcu_tensor_free(cu, &g.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &g.x));
    WORKS(cu, ptxcu_tensor_free(cu, &g.y));
    attention_close(cu, &a);
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
    CLEAN();
}

/* Two queries, appended on the way, with log-sum-exp and a window: on a cache [batch, max_seq, kv_heads, d],
   and on pages in any order, of heads and of rows. Against double; the tolerance as above. */
static void test_decode_more(ptxcu *cu) {
    enum { B = 2, Q = 2, H = 4, G = 2, D = 32, M = 64, P = 16, W = 20 };
    static const uint32_t lengths[B] = {M, 21}, table[B * M / P] = {5, 0, 7, 2, 6, 3, 99, 99};
    static float q[B * Q * H * D], fresh[2][B * Q * G * D], rows[2][B * M * G * D], out[B * Q * H * D];
    static float lse[B * H * Q];
    static float pool[8 * G * P * D];
    ptxcu_flash_decode_desc d;
    ptxcu_tensor k[3], v[3], blocks;
    ptxcu_kv_cache cache[3];
    uint32_t b, t, h, i, e, w, paged, rows_first;
    memset(&d, 0, sizeof d);
    for (i = 0; i < B * Q * H * D; i++) q[i] = uniform();
    for (w = 0; w < 2; w++) {
        for (i = 0; i < B * Q * G * D; i++) fresh[w][i] = uniform();
        for (i = 0; i < B * M * G * D; i++) rows[w][i] = uniform();
    }
    d.q = make(cu, PTX_F32, 4, B, Q, H, D);
    d.out = make(cu, PTX_F32, 4, B, Q, H, D);
    d.k = make(cu, PTX_F32, 4, B, Q, G, D);
    d.v = make(cu, PTX_F32, 4, B, Q, G, D);
    d.lse = make(cu, PTX_F32, 3, B, H, Q, 0);
    d.lengths = make(cu, PTX_U32, 1, B, 0, 0, 0);
    d.window = W;
    WORKS(cu, ptxcu_tensor_write(cu, &d.q, q, sizeof q, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.k, fresh[0], sizeof fresh[0], NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.v, fresh[1], sizeof fresh[1], NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.lengths, lengths, sizeof lengths, NULL));
    k[0] = make(cu, PTX_F32, 4, B, M, G, D);
    v[0] = make(cu, PTX_F32, 4, B, M, G, D);
    WORKS(cu, ptxcu_tensor_write(cu, &k[0], rows[0], sizeof rows[0], NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &v[0], rows[1], sizeof rows[1], NULL));
    k[1] = make(cu, PTX_F32, 4, 8, G, P, D);
    v[1] = make(cu, PTX_F32, 4, 8, G, P, D);
    k[2] = make(cu, PTX_F32, 4, 8, P, G, D);
    v[2] = make(cu, PTX_F32, 4, 8, P, G, D);
    blocks = make(cu, PTX_U32, 2, B, M / P, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &blocks, table, sizeof table, NULL));
    for (w = 0; w < 2; w++) {
        for (rows_first = 0; rows_first < 2; rows_first++) {
            memset(pool, 0, sizeof pool);
            for (b = 0; b < B; b++)
                for (i = 0; i < lengths[b]; i++)
                    for (h = 0; h < G; h++) {
                        uint32_t at = rows_first ? i % P * G + h : h * P + i % P;
                        memcpy(pool + (table[b * M / P + i / P] * G * P + at) * D,
                               rows[w] + ((b * M + i) * G + h) * D, D * sizeof(float));
                    }
            WORKS(cu, ptxcu_tensor_write(cu, &(w ? v : k)[1 + rows_first], pool, sizeof pool, NULL));
        }
        /* what the kernel appends */
        for (b = 0; b < B; b++)
            for (t = 0; t < Q; t++)
                memcpy(rows[w] + (b * M + lengths[b] - Q + t) * G * D, fresh[w] + (b * Q + t) * G * D,
                       G * D * sizeof(float));
    }
    { /* heads before positions by transposing */
        ptxcu_tensor kt, vt;
        WORKS(cu, ptxcu_tensor_transpose(cu, &k[0], 1, 2, &kt));
        WORKS(cu, ptxcu_tensor_transpose(cu, &v[0], 1, 2, &vt));
        WORKS(cu, ptxcu_kv_cache_wrap(cu, &kt, &vt, NULL, &cache[0]));
    }
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &k[1], &v[1], &blocks, &cache[1]));
    { /* pages [page_size, kv_heads, d] by transposing the pools */
        ptxcu_tensor kt, vt;
        WORKS(cu, ptxcu_tensor_transpose(cu, &k[2], 1, 2, &kt));
        WORKS(cu, ptxcu_tensor_transpose(cu, &v[2], 1, 2, &vt));
        WORKS(cu, ptxcu_kv_cache_wrap(cu, &kt, &vt, &blocks, &cache[2]));
        d.cache = &cache[1];
        SPOILED(cu, cache[1].v, cache[1].v.stride[1] = D, ptxcu_flash_decode(cu, &d, NULL), PTXCU_E_SHAPE,
                "flash_decode: cache->v has strides [1024, 32, 32, 1], cache->k has [1024, 512");
        WORKS(cu, ptxcu_tensor_narrow(cu, &k[2], 1, 0, P / 2, &kt)); /* gaps between pages */
        WORKS(cu, ptxcu_tensor_narrow(cu, &v[2], 1, 0, P / 2, &vt));
        WORKS(cu, ptxcu_tensor_transpose(cu, &kt, 1, 2, &cache[1].k));
        WORKS(cu, ptxcu_tensor_transpose(cu, &vt, 1, 2, &cache[1].v));
        EXPECT(cu, ptxcu_flash_decode(cu, &d, NULL), PTXCU_E_SHAPE,
               "flash_decode: cache->k has shape [8, 2, 8, 32] and strides [1024, 32, 64, 1]; pages must be");
        WORKS(cu, ptxcu_kv_cache_wrap(cu, &k[1], &v[1], &blocks, &cache[1]));
    }
    for (paged = 0; paged < 3; paged++) {
        ptxcu_call call;
        uint32_t wrong = 0;
        d.cache = &cache[paged];
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &d, &call));
        WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
        WORKS(cu, ptxcu_flash_decode(cu, &d, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, out, &d.out, sizeof out, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, lse, &d.lse, sizeof lse, NULL));
        for (b = 0; b < B; b++)
            for (t = 0; t < Q; t++)
                for (h = 0; h < H; h++) {
                    uint32_t last = lengths[b] - Q + t, first = last >= W ? last - W + 1 : 0;
                    double sum = 0, want[D] = {0};
                    for (i = first; i <= last; i++) {
                        const float *row = rows[0] + ((b * M + i) * G + h * G / H) * D;
                        const float *value = rows[1] + ((b * M + i) * G + h * G / H) * D;
                        double score = 0;
                        for (e = 0; e < D; e++) score += (double)row[e] * q[((b * Q + t) * H + h) * D + e];
                        score = exp(score / sqrt((double)D));
                        sum += score;
                        for (e = 0; e < D; e++) want[e] += score * value[e];
                    }
                    for (e = 0; e < D; e++)
                        wrong += !(fabs(want[e] / sum - out[((b * Q + t) * H + h) * D + e]) < 1e-5);
                    wrong += !(fabs(log(sum) - lse[(b * H + h) * Q + t]) < 1e-5);
                }
        CHECK(wrong == 0);
        WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
        WORKS(cu, ptxcu_kv_cache_free(cu, &cache[paged]));
        WORKS(cu, ptxcu_tensor_free(cu, &k[paged]));
        WORKS(cu, ptxcu_tensor_free(cu, &v[paged]));
    }
    WORKS(cu, ptxcu_tensor_free(cu, &blocks));
    WORKS(cu, ptxcu_tensor_free(cu, &d.q));
    WORKS(cu, ptxcu_tensor_free(cu, &d.out));
    WORKS(cu, ptxcu_tensor_free(cu, &d.k));
    WORKS(cu, ptxcu_tensor_free(cu, &d.v));
    WORKS(cu, ptxcu_tensor_free(cu, &d.lse));
    WORKS(cu, ptxcu_tensor_free(cu, &d.lengths));
    CLEAN();
}

/* Sequences whose caches are allocated apart, in both orders of heads and rows; one length of the host's. */
static void test_decode_apart(ptxcu *cu) {
    attention a;
    ptxcu_kv_cache cache;
    ptxcu_tensor part[2][BATCH], shown[2][BATCH], t;
    ptxcu_result *r;
    ptxcu_call call;
    ptxcu_kv_scatter_desc x;
    float *row = (float *)malloc(KV_HEADS * ROWS * DIM * sizeof *row);
    const size_t bytes = KV_HEADS * ROWS * DIM * sizeof *row;
    uint64_t freed;
    uint32_t b, h, i, w, layout, wrong;
    if (!row) exit(1);
    attention_open(cu, &a, NULL);
    for (layout = 0; layout < 2; layout++) {
        for (w = 0; w < 2; w++)
            for (b = BATCH; b-- > 0;) { /* not in the order of the batch */
                const float *from = (w ? a.v : a.k) + b * KV_HEADS * ROWS * DIM;
                part[w][b] =
                    make(cu, PTX_F32, 3, layout ? ROWS : KV_HEADS, layout ? KV_HEADS : ROWS, DIM, 0);
                for (h = 0; h < KV_HEADS; h++)
                    for (i = 0; i < ROWS; i++)
                        memcpy(row + (layout ? i * KV_HEADS + h : h * ROWS + i) * DIM,
                               from + (h * ROWS + i) * DIM, DIM * sizeof *row);
                WORKS(cu, ptxcu_tensor_write(cu, &part[w][b], row, bytes, NULL));
                shown[w][b] = part[w][b];
                if (layout) WORKS(cu, ptxcu_tensor_transpose(cu, &part[w][b], 0, 1, &shown[w][b]));
            }
        WORKS(cu, ptxcu_kv_cache_wrap_each(cu, shown[0], shown[1], BATCH, &cache));
        CHECK(cache.k.rank == 4 && cache.k.shape[0] == BATCH && cache.k.stride[0] == 0 && !cache.owns);
        a.desc.cache = &cache;
        attention_poison(cu, &a, NULL);
        WORKS(cu, ptxcu_flash_decode(cu, &a.desc, NULL));
        CHECK(attention_right(cu, &a, NULL));
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &a.desc, &call));

        /* a row of K and V of each sequence */
        memset(&x, 0, sizeof x);
        x.cache = &cache;
        x.k = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
        x.v = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
        x.position = 5;
        x.sequence_step = 1;
        for (i = 0; i < BATCH * KV_HEADS * DIM; i++) row[i] = (float)i;
        WORKS(cu, ptxcu_tensor_write(cu, &x.k, row, BATCH * KV_HEADS * DIM * sizeof *row, NULL));
        for (i = 0; i < BATCH * KV_HEADS * DIM; i++) row[i] = -(float)i;
        WORKS(cu, ptxcu_tensor_write(cu, &x.v, row, BATCH * KV_HEADS * DIM * sizeof *row, NULL));
        WORKS(cu, ptxcu_kv_scatter(cu, &x, NULL));
        for (wrong = 0, w = 0; w < 2; w++)
            for (b = 0; b < BATCH; b++) {
                WORKS(cu, ptxcu_tensor_read(cu, row, &shown[w][b], bytes, NULL)); /* [heads, rows, d] */
                for (h = 0; h < KV_HEADS; h++)
                    for (i = 0; i < DIM; i++) {
                        float want = (float)((b * KV_HEADS + h) * DIM + i);
                        wrong += fabs((double)row[(h * ROWS + 5) * DIM + i] - (w ? -want : want)) > 0;
                    }
            }
        CHECK(wrong == 0);

        /* nothing that is written lies in the cache of any sequence */
        t = a.desc.out;
        for (w = 0; w < 2; w++)
            for (b = 0; b < BATCH; b++) {
                uint64_t flat[1], whole[3] = {BATCH, HEADS, DIM};
                flat[0] = KV_HEADS * ROWS * DIM;
                WORKS(cu, ptxcu_tensor_reshape(cu, &part[w][b], 1, flat, &a.desc.out));
                WORKS(cu, ptxcu_tensor_narrow(cu, &a.desc.out, 0, 64, BATCH * HEADS * DIM, &a.desc.out));
                WORKS(cu, ptxcu_tensor_reshape(cu, &a.desc.out, 3, whole, &a.desc.out));
                EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_SHAPE,
                       w ? "out, which is written, overlaps cache->v"
                         : "out, which is written, overlaps cache->k");
            }
        a.desc.out = t;
        SPOILED(cu, cache.k, cache.k.shape[2] = 8, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_SHAPE,
                "cache->");
        SPOILED(cu, cache.v, cache.v.address += 4 * DIM, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_SHAPE,
                "cache->v");
        SPOILED(cu, cache.k, cache.k = cache.v, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_SHAPE,
                "is not what ptxcu_kv_cache_wrap_each made");

        /* what is under way keeps the memory of every sequence */
        if (calls) {
            WORKS(cu, ptxcu_result_create(cu, &r));
            option("lag", 20);
            WORKS(cu, ptxcu_call_start(cu, &call, NULL, r));
            freed = calls("cuMemFree_v2");
            WORKS(cu, ptxcu_tensor_free(cu, &part[1][2]));
            WORKS(cu, ptxcu_tensor_free(cu, &part[0][1]));
            CHECK(calls("cuMemFree_v2") == freed);
            EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED,
                   "flash_decode: cache->addresses: k of sequence 1 was freed");
            if (layout) WORKS(cu, ptxcu_kv_cache_free(cu, &cache)); /* the table too */
            WORKS(cu, ptxcu_result_wait(cu, r));
            CHECK(calls("cuMemFree_v2") == freed + 2 + layout);
            WORKS(cu, ptxcu_result_free(cu, r));
            option("lag", 1);
        } else {
            WORKS(cu, ptxcu_tensor_free(cu, &part[0][1]));
        }
        if (cache.k.owner) {
            EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "k of sequence 1 was freed");
            EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_FREED, "k of sequence 1 was freed");
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_FREED, "k of sequence 1 was freed");
        }
        WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
        WORKS(cu, ptxcu_tensor_free(cu, &x.k));
        WORKS(cu, ptxcu_tensor_free(cu, &x.v));
        for (w = 0; w < 2; w++)
            for (b = 0; b < BATCH; b++) WORKS(cu, ptxcu_tensor_free(cu, &part[w][b]));
    }

    /* what wrapping refuses */
    for (w = 0; w < 2; w++)
        for (b = 0; b < BATCH; b++) part[w][b] = make(cu, PTX_F32, 3, KV_HEADS, ROWS, DIM, 0);
    EXPECT(cu, ptxcu_kv_cache_wrap_each(cu, NULL, part[1], BATCH, &cache), PTXCU_E_ARGUMENT, "k is NULL");
    EXPECT(cu, ptxcu_kv_cache_wrap_each(cu, part[0], NULL, BATCH, &cache), PTXCU_E_ARGUMENT, "v is NULL");
    EXPECT(cu, ptxcu_kv_cache_wrap_each(cu, part[0], part[1], BATCH, NULL), PTXCU_E_ARGUMENT, "NULL");
    EXPECT(cu, ptxcu_kv_cache_wrap_each(cu, part[0], part[1], 0, &cache), PTXCU_E_ARGUMENT, "batch is 0");
    EXPECT(cu, ptxcu_kv_cache_wrap_each(cu, part[0], part[0], BATCH, &cache), PTXCU_E_SHAPE,
           "v[0] overlaps k[0]");
#define BAD(tensor, change, code, text)                                                                      \
    SPOILED(cu, tensor, change, ptxcu_kv_cache_wrap_each(cu, part[0], part[1], BATCH, &cache), code, text)
    BAD(part[0][2], part[0][2] = zero_tensor(), PTXCU_E_ARGUMENT, "k[2] is a zero tensor");
    BAD(part[0][1], part[0][1] = part[0][0], PTXCU_E_SHAPE, "k[1] overlaps k[0]");
    BAD(part[1][1], part[1][1].type = PTX_U32, PTXCU_E_SHAPE, "v[1] is of type u32, must be f32");
    BAD(part[1][0], ptxcu_tensor_narrow(cu, &part[1][0], 1, 0, 9, &part[1][0]), PTXCU_E_SHAPE,
        "v[0] has shape [2, 9, 32]");
    for (w = 0; w < 2; w++) /* as large, in another order */
        BAD(part[w][2], (part[w][2].stride[0] = DIM, part[w][2].stride[1] = KV_HEADS * DIM), PTXCU_E_SHAPE,
            w ? "v[2] has strides [32, 64, 1], k[0] has [22400, 32, 1]" : "k[2] has strides [32, 64, 1]");
#undef BAD
    for (w = 0; w < 2; w++)
        for (b = 0; b < BATCH; b++) WORKS(cu, ptxcu_tensor_free(cu, &part[w][b]));

    /* one length, known to the host */
    a.desc.cache = &a.cache;
    t = a.desc.lengths;
    a.desc.length = 7;
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_ARGUMENT, "lengths is set and length is 7");
    a.desc.lengths = zero_tensor();
    for (i = 0; i < 3; i++) {
        a.desc.length = i == 0 ? 1 : i == 1 ? ROWS : 77;
        a.desc.max_len = i == 2 ? 77 : 0;
        for (b = 0; b < BATCH; b++) a.lengths[b] = a.desc.length;
        truth(&a);
        attention_poison(cu, &a, NULL);
        WORKS(cu, ptxcu_flash_decode(cu, &a.desc, NULL));
        CHECK(attention_right(cu, &a, NULL));
    }
    a.desc.length = 78;
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_ARGUMENT,
           "length is 78, must be at most max_len, 77");
    a.desc.max_len = 0;
    a.desc.length = ROWS + 1;
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_ARGUMENT,
           "length is 701, must be at most max_seq, 700");
    a.desc.length = 0;
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_ARGUMENT,
           "lengths is zero and length is 0; give one of them");
    a.desc.unused = 1;
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, NULL), PTXCU_E_ARGUMENT, "unused is 1, must be 0");
    a.desc.lengths = t;
    attention_close(cu, &a);
    free(row);
    CLEAN();
}

/* The same keys in tensors, in a cache and in pages give the same bits, the last queries of each sequence
   included; and what a cache may not be. */
static void test_prefill_of_caches(ptxcu *cu) {
    enum { B = 2, T = 5, N = 37, LAST = 48, H = 4, G = 2, D = 32, PAGE = 16, PAGES = 3 };
    static uint16_t q[B * T * H * D], k[B * LAST * G * D], v[B * LAST * G * D], out[2][B * T * H * D];
    static const uint32_t blocks[B * PAGES] = {5, 2, 0, 4, 1, 3}, begins[B + 1] = {0, T, 2 * T},
                          lengths[B + 1] = {0, N, 2 * N};
    ptxcu_flash_prefill_desc x;
    ptxcu_kv_cache cache, paged, each;
    ptxcu_tensor t[4], pool[2], table, cu_q, cu_kv, view, flat[2], part[2][B];
    uint32_t i, b, r, g;
    memset(&x, 0, sizeof x);
    for (i = 0; i < B * T * H * D; i++) q[i] = ref_to_f16((double)uniform());
    for (i = 0; i < B * LAST * G * D; i++) {
        k[i] = ref_to_f16((double)uniform());
        v[i] = ref_to_f16((double)uniform());
    }
    t[0] = make(cu, PTX_F16, 4, B, T, H, D);
    t[3] = make(cu, PTX_F16, 4, B, T, H, D);
    for (i = 1; i < 3; i++) t[i] = make(cu, PTX_F16, 4, B, G, LAST, D); /* a cache's order */
    for (i = 0; i < 2; i++) pool[i] = make(cu, PTX_F16, 4, B * PAGES, G, PAGE, D);
    table = make(cu, PTX_U32, 2, B, PAGES, 0, 0);
    cu_q = make(cu, PTX_U32, 1, B + 1, 0, 0, 0);
    cu_kv = make(cu, PTX_U32, 1, B + 1, 0, 0, 0);
    for (i = 0; i < 2; i++) flat[i] = make(cu, PTX_F16, 3, B * T, H, D, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &t[0], q, sizeof q, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &flat[0], q, sizeof q, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &t[1], k, sizeof k, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &t[2], v, sizeof v, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &table, blocks, sizeof blocks, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &cu_q, begins, sizeof begins, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &cu_kv, lengths, sizeof lengths, NULL));
    for (i = 0; i < 2; i++) {
        static uint16_t pages[B * LAST * G * D];
        const uint16_t *from = i ? v : k;
        for (b = 0; b < B; b++)
            for (g = 0; g < G; g++)
                for (r = 0; r < LAST; r++)
                    memcpy(pages + ((blocks[b * PAGES + r / PAGE] * G + g) * PAGE + r % PAGE) * D,
                           from + ((b * G + g) * LAST + r) * D, 2 * D);
        WORKS(cu, ptxcu_tensor_write(cu, &pool[i], pages, sizeof pages, NULL));
    }
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &t[1], &t[2], NULL, &cache));
    WORKS(cu, ptxcu_kv_cache_wrap(cu, &pool[0], &pool[1], &table, &paged));
    x.q = t[0], x.out = t[3];
    x.causal = 1;
    WORKS(cu, ptxcu_tensor_narrow(cu, &t[1], 2, 0, N, &view));
    WORKS(cu, ptxcu_tensor_transpose(cu, &view, 1, 2, &x.k));
    WORKS(cu, ptxcu_tensor_narrow(cu, &t[2], 2, 0, N, &view));
    WORKS(cu, ptxcu_tensor_transpose(cu, &view, 1, 2, &x.v));
    WORKS(cu, ptxcu_flash_prefill(cu, &x, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, out[0], &t[3], sizeof out[0], NULL));
    memset(&x.k, 0, sizeof x.k);
    memset(&x.v, 0, sizeof x.v);
    x.kv_len = N;
    for (i = 0; i < 3; i++) { /* of rows, of pages, of pages with cumulative lengths */
        double off = 0;
        x.cache = i ? &paged : &cache;
        if (i == 2) x.q = flat[0], x.out = flat[1], x.cu_q = cu_q, x.cu_kv = cu_kv;
        WORKS(cu, ptxcu_flash_prefill(cu, &x, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, out[1], &x.out, sizeof out[1], NULL));
        for (r = 0; r < B * T * H * D; r++)
            off = fmax(off, fabs(ref_from_f16(out[0][r]) - ref_from_f16(out[1][r])));
        CHECK(i ? off < 2e-3 : off <= 0); /* tiles of 16 keys instead of 64 */
    }
    x.cache = &cache;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "the cache must be paged");
    x.q = t[0], x.out = t[3], x.cu_q = x.cu_kv = zero_tensor();
    x.kv_len = LAST + 1;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_ARGUMENT, "kv_len is 49, and the cache has 48 rows");
    x.cache = &paged;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_ARGUMENT, "kv_len is 49, and the cache has 48 rows");
    x.kv_len = N;
    x.q = make(cu, PTX_F32, 4, B, T, H, D);
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "cache->k is of type f16, must be q's, f32");
    WORKS(cu, ptxcu_tensor_free(cu, &x.q));
    x.q = t[0];
    for (i = 0; i < 2 * B; i++) part[i / B][i % B] = make(cu, PTX_F16, 3, G, LAST, D, 0);
    WORKS(cu, ptxcu_kv_cache_wrap_each(cu, part[0], part[1], B, &each));
    x.cache = &each;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "cache is of ptxcu_kv_cache_wrap_each");
    WORKS(cu, ptxcu_kv_cache_free(cu, &each));
    for (i = 0; i < 2 * B; i++) WORKS(cu, ptxcu_tensor_free(cu, &part[i / B][i % B]));
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    WORKS(cu, ptxcu_kv_cache_free(cu, &paged));
    for (i = 0; i < 4; i++) WORKS(cu, ptxcu_tensor_free(cu, &t[i]));
    for (i = 0; i < 2; i++) WORKS(cu, ptxcu_tensor_free(cu, &pool[i]));
    for (i = 0; i < 2; i++) WORKS(cu, ptxcu_tensor_free(cu, &flat[i]));
    WORKS(cu, ptxcu_tensor_free(cu, &table));
    WORKS(cu, ptxcu_tensor_free(cu, &cu_q));
    WORKS(cu, ptxcu_tensor_free(cu, &cu_kv));
}

/* Causal prefill of a padded batch with heads before rows (a transposed view), then of the same sequences
   packed with cumulative lengths; and what it refuses. Tolerance: two tf32 for each value, 2^-18 of each
   product. */
static void test_prefill(ptxcu *cu) {
    enum { B = 2, T = 37, H = 4, G = 2, D = 32 };
    static float q[B * H * T * D], k[B * G * T * D], v[B * G * T * D], out[B * H * T * D], lse[B * H * T];
    static const uint32_t begins[B + 1] = {0, T, 2 * T};
    ptxcu_flash_prefill_desc x;
    ptxcu_tensor mem[4], flat[4], cu_lens, lse_t[2];
    ptxcu_call call;
    uint64_t packed[3] = {B * T, 0, D};
    uint32_t b, h, t, i, e, packing;
    memset(&x, 0, sizeof x);
    for (i = 0; i < B * H * T * D; i++) q[i] = uniform();
    for (i = 0; i < B * G * T * D; i++) k[i] = uniform(), v[i] = uniform();
    cu_lens = make(cu, PTX_U32, 1, B + 1, 0, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &cu_lens, begins, sizeof begins, NULL));
    lse_t[0] = make(cu, PTX_F32, 3, B, H, T, 0);
    lse_t[1] = make(cu, PTX_F32, 2, H, B * T, 0, 0);
    for (i = 0; i < 4;
         i++) { /* [batch, heads, seq, d] as [batch, seq, heads, d], and [batch * seq, heads, d] */
        mem[i] = make(cu, PTX_F32, 4, B, i == 1 || i == 2 ? G : H, T, D);
        packed[1] = i == 1 || i == 2 ? G : H;
        flat[i] = make(cu, PTX_F32, 3, packed[0], packed[1], packed[2], 0);
    }
    WORKS(cu, ptxcu_tensor_write(cu, &mem[0], q, sizeof q, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &mem[1], k, sizeof k, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &mem[2], v, sizeof v, NULL));
    for (packing = 0; packing < 2; packing++) {
        uint32_t wrong = 0;
        if (packing == 0) {
            WORKS(cu, ptxcu_tensor_transpose(cu, &mem[0], 1, 2, &x.q));
            WORKS(cu, ptxcu_tensor_transpose(cu, &mem[1], 1, 2, &x.k));
            WORKS(cu, ptxcu_tensor_transpose(cu, &mem[2], 1, 2, &x.v));
            WORKS(cu, ptxcu_tensor_transpose(cu, &mem[3], 1, 2, &x.out));
        } else {
            static float row[B * T * H * D];
            for (i = 0; i < 3; i++) { /* the same numbers, rows first */
                ptxcu_tensor from;
                WORKS(cu, ptxcu_tensor_transpose(cu, &mem[i], 1, 2, &from));
                WORKS(cu, ptxcu_tensor_read(cu, row, &from, ptxcu_tensor_bytes(&from), NULL));
                WORKS(cu, ptxcu_tensor_write(cu, &flat[i], row, ptxcu_tensor_bytes(&flat[i]), NULL));
            }
            x.q = flat[0];
            x.k = flat[1];
            x.v = flat[2];
            x.out = flat[3];
            x.cu_q = x.cu_kv = cu_lens;
            x.q_len = x.kv_len = T;
        }
        x.lse = lse_t[packing];
        x.causal = 1;
        WORKS(cu, ptxcu_flash_prefill_prepare(cu, &x, &call));
        WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, out, packing ? &flat[3] : &x.out, sizeof out, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, lse, &lse_t[packing], sizeof lse, NULL));
        for (b = 0; b < B; b++)
            for (h = 0; h < H; h++)
                for (t = 0; t < T; t++) {
                    double sum = 0, want[D] = {0};
                    for (i = 0; i <= t; i++) {
                        size_t key = ((size_t)(b * G + h * G / H) * T + i) * D;
                        double score = 0;
                        for (e = 0; e < D; e++)
                            score += (double)q[((b * H + h) * T + t) * D + e] * k[key + e];
                        score = exp(score / sqrt((double)D));
                        sum += score;
                        for (e = 0; e < D; e++) want[e] += score * v[key + e];
                    }
                    for (e = 0; e < D; e++) /* both are read as [batch, seq, heads, d] */
                        wrong += !(fabs(want[e] / sum - out[((b * T + t) * H + h) * D + e]) < 5e-5);
                    wrong +=
                        !(fabs(log(sum) - lse[packing ? h * B * T + b * T + t : (b * H + h) * T + t]) < 5e-5);
                }
        CHECK(wrong == 0);
    }
    { /* a tree that is a chain: the same as causal attention */
        static uint32_t chain[B * T * 2];
        static float again[B * H * T * D];
        uint32_t wrong = 0;
        x.tree = make(cu, PTX_U32, 2, B * T, 2, 0, 0);
        for (i = 0; i < B * T; i++)
            for (e = 0; e <= i % T; e++) chain[2 * i + e / 32] |= 1u << e % 32;
        WORKS(cu, ptxcu_tensor_write(cu, &x.tree, chain, sizeof chain, NULL));
        x.causal = 0;
        WORKS(cu, ptxcu_flash_prefill(cu, &x, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, again, &flat[3], sizeof again, NULL));
        for (i = 0; i < B * H * T * D; i++) wrong += fabsf(again[i] - out[i]) <= 1e-6f ? 0 : 1;
        CHECK(wrong == 0);
        x.q_len = 100;
        EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "tree has shape [74, 2], must be [rows, ceil");
        x.q_len = T;
        WORKS(cu, ptxcu_tensor_free(cu, &x.tree));
        memset(&x.tree, 0, sizeof x.tree);
        x.causal = 1;
    }
    { /* the rows of all sequences of each head side by side, and bounds above their number */
        ptxcu_tensor rows = make(cu, PTX_F32, 3, H, B * T, D, 0), kept = x.out;
        WORKS(cu, ptxcu_tensor_transpose(cu, &rows, 0, 1, &x.out));
        x.q_len = x.kv_len = 100 * T;
        WORKS(cu, ptxcu_flash_prefill_prepare(cu, &x, &call));
        CHECK(call.plan.launch[0].grid[1] == 1);
        WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
        x.q_len = x.kv_len = T;
        x.out = kept;
        WORKS(cu, ptxcu_tensor_free(cu, &rows));
    }
#define BAD(tensor, change, code, text)                                                                      \
    SPOILED(cu, tensor, change, ptxcu_flash_prefill(cu, &x, NULL), code, text)
    BAD(x.q, x.q = zero_tensor(), PTXCU_E_ARGUMENT, "flash_prefill: q is a zero tensor");
    BAD(x.q, x.q = mem[0], PTXCU_E_SHAPE, "q has shape [2, 4, 37, 32], must be [rows, heads, head_dim]");
    BAD(x.q, x.q.type = PTX_U32, PTXCU_E_SHAPE, "q is of type u32, must be f16, bf16 or f32");
    BAD(x.k, x.k.type = PTX_F16, PTXCU_E_SHAPE, "k is of type f16, must be f32");
    BAD(x.v, ptxcu_tensor_narrow(cu, &x.v, 0, 0, 70, &x.v), PTXCU_E_SHAPE, "v has shape [70, 2, 32]");
    BAD(x.q, ptxcu_tensor_transpose(cu, &x.q, 1, 2, &x.q), PTXCU_E_SHAPE, "dense in its last dimension");
    BAD(x.out, ptxcu_tensor_narrow(cu, &x.out, 0, 0, 70, &x.out), PTXCU_E_SHAPE, "out has shape [70, 4, 32]");
    BAD(x.out, x.out = zero_tensor(), PTXCU_E_ARGUMENT, "out is a zero tensor");
    BAD(x.cu_kv, x.cu_kv = zero_tensor(), PTXCU_E_ARGUMENT, "cu_kv is a zero tensor");
    BAD(x.cu_q, ptxcu_tensor_narrow(cu, &cu_lens, 0, 0, 2, &x.cu_q), PTXCU_E_SHAPE, "cu_kv has shape [3]");
    BAD(x.lse, x.lse = lse_t[0], PTXCU_E_SHAPE, "lse has shape [2, 4, 37], must be [heads, rows]: [4, 74]");
    BAD(x.out, x.out.address = x.k.address - 256, PTXCU_E_SHAPE, "");
    BAD(x.k, (x.k = x.out, ptxcu_tensor_narrow(cu, &x.k, 1, 0, 2, &x.k)), PTXCU_E_SHAPE, "overlaps k");
    x.precision = 9;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "flash_prefill: precision is 9");
    x.precision = 0;
    x.causal = 2;
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_ARGUMENT, "causal is 2, must be 0 or 1");
    x.causal = 0;
    x.out = x.q; /* in place */
    WORKS(cu, ptxcu_flash_prefill(cu, &x, NULL));
    WORKS(cu, ptxcu_tensor_transpose(cu, &x.q, 0, 1, &x.out));
    EXPECT(cu, ptxcu_flash_prefill(cu, &x, NULL), PTXCU_E_SHAPE, "out has shape [4, 74, 32]");
#undef BAD
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 4; i++) WORKS(cu, ptxcu_tensor_free(cu, &mem[i]));
    for (i = 0; i < 4; i++) WORKS(cu, ptxcu_tensor_free(cu, &flat[i]));
    WORKS(cu, ptxcu_tensor_free(cu, &cu_lens));
    WORKS(cu, ptxcu_tensor_free(cu, &lse_t[0]));
    WORKS(cu, ptxcu_tensor_free(cu, &lse_t[1]));
    CLEAN();
}

/* Scatter into caches of both orders, interleaved K and V, and pages; then what it refuses. */
static void test_scatter(ptxcu *cu) {
    enum { B = 3, H = 2, D = 24, M = 40 };
    static float k[B * H * D], v[B * H * D], back[2 * B * M * H * D];
    static const uint32_t order[3] = {7, 39, 0};
    ptxcu_tensor all, both[2], positions, t, k_tensor, v_tensor;
    ptxcu_kv_cache cache;
    ptxcu_kv_scatter_desc x;
    ptxcu_call call;
    uint32_t b, h, e, w, wrong, layout, alone;
    memset(&x, 0, sizeof x);
    for (e = 0; e < B * H * D; e++) k[e] = uniform(), v[e] = uniform();
    x.k = make(cu, PTX_F32, 3, B, H, D, 0);
    x.v = make(cu, PTX_F32, 3, B, H, D, 0);
    positions = make(cu, PTX_U32, 1, B, 0, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &x.k, k, sizeof k, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &x.v, v, sizeof v, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &positions, order, sizeof order, NULL));
    k_tensor = x.k;
    v_tensor = x.v;
    x.cache = &cache;
    for (layout = 0; layout < 2; layout++) {
        /* 0: [batch, K and V, kv_heads, max_seq, d]; 1: [batch, max_seq, K and V, kv_heads, d] */
        uint64_t shape[5] = {B, 2, H, M, D};
        uint64_t other[5] = {B, M, 2, H, D};
        WORKS(cu, ptxcu_tensor_create(cu, PTX_F32, 5, layout ? other : shape, &all));
        memset(back, 0, sizeof back);
        WORKS(cu, ptxcu_tensor_write(cu, &all, back, sizeof back, NULL));
        for (w = 0; w < 2; w++) {
            WORKS(cu, ptxcu_tensor_select(cu, &all, layout ? 2 : 1, w, &both[w]));
            if (layout) WORKS(cu, ptxcu_tensor_transpose(cu, &both[w], 1, 2, &both[w]));
        }
        WORKS(cu, ptxcu_kv_cache_wrap(cu, &both[0], &both[1], NULL, &cache));
        x.positions = positions;
        x.sequence_step = 1;
        for (alone = 0; alone < 3; alone++) { /* K alone, V alone, both */
            memset(back, 0, sizeof back);
            WORKS(cu, ptxcu_tensor_write(cu, &all, back, sizeof back, NULL));
            x.k = alone == 1 ? zero_tensor() : k_tensor;
            x.v = alone == 0 ? zero_tensor() : v_tensor;
            WORKS(cu, ptxcu_kv_scatter(cu, &x, NULL));
            WORKS(cu, ptxcu_tensor_read(cu, back, &all, sizeof back, NULL));
            for (wrong = 0, b = 0; b < B; b++)
                for (w = 0; w < 2; w++)
                    for (h = 0; h < H; h++)
                        for (e = 0; e < M * D; e++) {
                            uint32_t row = e / D, i = e % D;
                            float have = back[layout ? (((b * M + row) * 2 + w) * H + h) * D + i
                                                     : ((b * 2 + w) * H + h) * M * D + e];
                            float want = (w ? v : k)[(b * H + h) * D + i];
                            if (row != order[b] || alone == 1 - w) want = 0;
                            wrong += have < want || have > want;
                        }
            CHECK(wrong == 0);
        }
        if (layout == 0) { /* what it refuses */
            uint64_t before = calls ? launched() : 0;
#define BAD(tensor, change, code, text)                                                                      \
    SPOILED(cu, tensor, change, ptxcu_kv_scatter_prepare(cu, &x, &call), code, text)
            BAD(x.k, x.k = x.v = zero_tensor(), PTXCU_E_ARGUMENT, "kv_scatter: k is a zero tensor");
            x.v = v_tensor;
            BAD(x.v, ptxcu_tensor_narrow(cu, &x.v, 0, 0, 2, &x.v), PTXCU_E_SHAPE,
                "kv_scatter: v has shape [2, 2, 24], must be [tokens, kv_heads, head_dim]: [3, 2, 24]");
            BAD(x.v, x.v.type = PTX_F16, PTXCU_E_SHAPE, "kv_scatter: v is of type f16, must be f32");
            BAD(x.k, x.k.type = PTX_U32, PTXCU_E_SHAPE, "k is of type u32, must be f16, bf16 or f32");
            BAD(x.k, ptxcu_tensor_transpose(cu, &x.k, 1, 2, &x.k), PTXCU_E_SHAPE, "must be dense");
            BAD(x.positions, ptxcu_tensor_narrow(cu, &x.positions, 0, 1, 2, &x.positions), PTXCU_E_SHAPE,
                "positions has shape [2], must be [tokens]: [3]");
            BAD(x.positions, x.positions.type = PTX_F32, PTXCU_E_SHAPE,
                "positions is of type f32, must be u32");
            BAD(x.sequences, x.sequences = x.k, PTXCU_E_SHAPE, "sequences is of type f32, must be u32");
            BAD(cache.k, ptxcu_tensor_narrow(cu, &cache.k, 1, 0, 1, &cache.k), PTXCU_E_SHAPE,
                "cache->k has shape [3, 1, 40, 24], must be [batch, kv_heads, max_seq, head_dim]; dimension "
                "1 must "
                "be 2");
            BAD(x.k, ptxcu_tensor_narrow(cu, &all, 1, 0, 1, &x.k), PTXCU_E_SHAPE,
                "k has shape [3, 1, 2, 40, 24]");
            /* the source inside the cache */
            WORKS(cu, ptxcu_tensor_select(cu, &cache.k, 2, 39, &t)); /* [3, 2, 24], strided */
            BAD(x.k, x.k = t, PTXCU_E_SHAPE, "must be dense");
            BAD(x.positions, x.positions.owner = NULL, PTXCU_E_ARGUMENT,
                "positions has an address and is no tensor");
            x.cache = NULL;
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT, "kv_scatter: cache is NULL");
            x.cache = &cache;
            x.position = 3; /* of both, the host's number would count for nothing */
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "positions is set, and position is 3 and position_step 0");
            x.position = 0;
            x.position_step = 1;
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "positions is set, and position is 0 and position_step 1");
            x.position_step = 0;
            x.sequences = positions;
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "sequences is set and sequence_step is 1; give one");
            x.sequences = zero_tensor();
            x.positions = zero_tensor();
            x.position = M; /* pos < max_seq */
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "position is 40, must be below max_seq, 40");
            x.position = M - 1;
            x.position_step = 0x80000000u;
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "position is 4294967335, must be below");
            x.position_step = 0;
            x.sequence_step = 2;
            EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_ARGUMENT,
                   "sequence is 4, must be below batch, 3");
            x.sequence_step = 1;
            if (calls) CHECK(launched() == before);
            WORKS(cu, ptxcu_kv_scatter(cu, &x, NULL)); /* the twin: the last row */
            WORKS(cu, ptxcu_kv_scatter_prepare(cu, &x, &call));
            x.position = 0;
            WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &t)); /* it needs none */
            CHECK(t.owner == NULL);
            WORKS(cu, ptxcu_sync(cu));
#undef BAD
        }
        WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
        WORKS(cu, ptxcu_tensor_free(cu, &all));
    }
    for (layout = 0; layout < 2; layout++) {
        /* pool of 5 pages of 16, two for each sequence but the last; of heads, then of rows */
        static const uint32_t table[B * 2] = {4, 0, 1, 3, 2, 77};
        ptxcu_tensor pool[2], blocks = make(cu, PTX_U32, 2, B, 2, 0, 0);
        static const uint32_t at[3] = {7, 31, 15};
        for (w = 0; w < 2; w++) {
            pool[w] = make(cu, PTX_F32, 4, 5, layout ? 16 : H, layout ? H : 16, D);
            both[w] = pool[w];
            if (layout) WORKS(cu, ptxcu_tensor_transpose(cu, &pool[w], 1, 2, &both[w]));
        }
        memset(back, 0, sizeof back);
        for (w = 0; w < 2; w++) WORKS(cu, ptxcu_tensor_write(cu, &pool[w], back, 5 * H * 16 * D * 4, NULL));
        WORKS(cu, ptxcu_tensor_write(cu, &blocks, table, sizeof table, NULL));
        WORKS(cu, ptxcu_tensor_write(cu, &positions, at, sizeof at, NULL));
        WORKS(cu, ptxcu_kv_cache_wrap(cu, &both[0], &both[1], &blocks, &cache));
        x.positions = positions;
        WORKS(cu, ptxcu_kv_scatter(cu, &x, NULL));
        for (w = 0; w < 2; w++) {
            WORKS(cu, ptxcu_tensor_read(cu, back, &pool[w], 5 * H * 16 * D * 4, NULL));
            for (wrong = 0, b = 0; b < B; b++)
                for (h = 0; h < H; h++)
                    for (e = 0; e < D; e++) {
                        uint32_t row = layout ? at[b] % 16 * H + h : h * 16 + at[b] % 16;
                        float have = back[(table[b * 2 + at[b] / 16] * H * 16 + row) * D + e];
                        float want = (w ? v : k)[(b * H + h) * D + e];
                        wrong += have < want || have > want;
                    }
            CHECK(wrong == 0);
        }
        t = cache.blocks;
        WORKS(cu, ptxcu_tensor_narrow(cu, &blocks, 1, 0, 1, &cache.blocks));
        EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_SHAPE, "cache->blocks has shape [3, 1]");
        cache.blocks = t;
        WORKS(cu, ptxcu_tensor_free(cu, &blocks));
        EXPECT(cu, ptxcu_kv_scatter(cu, &x, NULL), PTXCU_E_FREED, "cache->blocks was freed");
        WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
        for (w = 0; w < 2; w++) WORKS(cu, ptxcu_tensor_free(cu, &pool[w]));
    }
    WORKS(cu, ptxcu_tensor_free(cu, &x.k));
    WORKS(cu, ptxcu_tensor_free(cu, &x.v));
    WORKS(cu, ptxcu_tensor_free(cu, &positions));
    CLEAN();
}

/* A cache of 64 * 524288 * 128 = 2^32 elements: sizes pass 32 bits and byte offsets 4 GiB. Here the
   last row of such a cache is written and read; its memory is sparse. */
static void test_past_32_bits(ptxcu *cu) {
    static float k[64 * 128];
    static uint16_t row[128];
    ptxcu_kv_cache cache;
    ptxcu_kv_scatter_desc x;
    ptxcu_tensor view;
    uint32_t i, wrong = 0;
    if (!calls) return;
    memset(&x, 0, sizeof x);
    for (i = 0; i < 64 * 128; i++) k[i] = (float)(i % 1999);
    WORKS(cu, ptxcu_kv_cache_create(cu, PTX_F16, 1, 64, 524288, 128, &cache));
    CHECK(ptxcu_tensor_bytes(&cache.k) == 1ull << 33 && cache.k.stride[1] == 1ull << 26);
    x.k = make(cu, PTX_F32, 3, 1, 64, 128, 0);
    x.v = make(cu, PTX_F32, 3, 1, 64, 128, 0);
    x.cache = &cache;
    x.position = 524287;
    WORKS(cu, ptxcu_tensor_write(cu, &x.k, k, sizeof k, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &x.v, k, sizeof k, NULL));
    WORKS(cu, ptxcu_kv_scatter(cu, &x, NULL));
    WORKS(cu, ptxcu_tensor_select(cu, &cache.v, 0, 0, &view));
    WORKS(cu, ptxcu_tensor_select(cu, &view, 0, 63, &view));
    WORKS(cu, ptxcu_tensor_select(cu, &view, 0, 524287, &view));
    CHECK(view.address - cache.v.address == (1ull << 33) - 256);
    WORKS(cu, ptxcu_tensor_read(cu, row, &view, sizeof row, NULL));
    for (i = 0; i < 128; i++) wrong += row[i] != ref_to_f16((double)k[63 * 128 + i]);
    CHECK(wrong == 0);
    WORKS(cu, ptxcu_tensor_free(cu, &x.k));
    WORKS(cu, ptxcu_tensor_free(cu, &x.v));
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    CLEAN();
}

/* The weights of a block of Q4_K whose scales are `scale` and minimums `minimum` everywhere (below 16), so
   that only factors and quants are left to read; the format itself is test_gemv's matter. */
static void plain_block(unsigned char *block, uint32_t scale, uint32_t minimum, double *weights) {
    double factor = ref_from_f16((uint16_t)(block[0] | block[1] << 8));
    double low = ref_from_f16((uint16_t)(block[2] | block[3] << 8));
    uint32_t i;
    for (i = 0; i < 4; i++) {
        block[4 + i] = (unsigned char)scale;
        block[8 + i] = (unsigned char)minimum;
        block[12 + i] = (unsigned char)(scale | minimum << 4);
    }
    for (i = 0; i < 256; i++) {
        uint32_t q = block[16 + 32 * (i / 64) + i % 32] >> (i / 32 % 2 * 4) & 15;
        weights[i] = factor * scale * q - low * minimum;
    }
}

/* y = W norm(x) gamma + residual for 2 columns, in place of the residual and not. */
static void test_gemv(ptxcu *cu) {
    enum { N = 37, K = 512, C = 2, ROW = K / 256 * 144 };
    static unsigned char w[N * ROW];
    static float x[C * K], gamma[K], residual[C * N], y[C * N];
    double want[C * N], weights[256];
    ptxcu_gemv_desc d;
    ptxcu_tensor v_tensor;
    ptxcu_call call;
    uint32_t i, r, c, b, wrong = 0;
    uint64_t before;
    memset(&d, 0, sizeof d);
    d.format = PTXK_Q4_K;
    for (i = 0; i < sizeof w; i++) w[i] = (unsigned char)below(256);
    for (i = 0; i < N * ROW / 144; i++) { /* factors that are numbers, about 1/64 */
        w[i * 144] = w[i * 144 + 2] = 0;
        w[i * 144 + 1] = w[i * 144 + 3] = 0x24;
    }
    for (i = 0; i < C * K; i++) x[i] = uniform();
    for (i = 0; i < K; i++) gamma[i] = 1 + uniform() / 2;
    for (i = 0; i < C * N; i++) residual[i] = 10 * uniform();
    for (c = 0; c < C; c++) {
        double mean = 0;
        for (i = 0; i < K; i++) mean += (double)x[c * K + i] * x[c * K + i] / K;
        for (r = 0; r < N; r++) {
            want[c * N + r] = 0;
            for (b = 0; b < K / 256; b++) {
                plain_block(w + r * ROW + b * 144, 1 + r % 15, (r + b) % 16, weights);
                for (i = 0; i < 256; i++)
                    want[c * N + r] += weights[i] * x[c * K + b * 256 + i] * gamma[b * 256 + i];
            }
            want[c * N + r] = want[c * N + r] / sqrt(mean + 1e-5) + residual[c * N + r];
        }
    }
    d.weights = make(cu, PTX_B8, 2, N, ROW, 0, 0);
    d.x = make(cu, PTX_F32, 2, C, K, 0, 0);
    d.gamma = make(cu, PTX_F32, 1, K, 0, 0, 0);
    d.residual = make(cu, PTX_F32, 2, C, N, 0, 0);
    d.norm = 1;
    d.eps = 1e-5f;
    d.y = d.residual;
    WORKS(cu, ptxcu_tensor_write(cu, &d.weights, w, sizeof w, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.x, x, sizeof x, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.gamma, gamma, sizeof gamma, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.residual, residual, sizeof residual, NULL));
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_WORKSPACE, "ptxcu_workspace_create makes it");
    d.workspace = make(cu, PTX_B8, 1, call.plan.workspace_bytes - 1, 0, 0, 0);
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_WORKSPACE, "gemv: workspace has");
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
    EXPECT(cu, ptxcu_workspace_create(cu, NULL, NULL, &d.workspace), PTXCU_E_ARGUMENT, "call is NULL");
    EXPECT(cu, ptxcu_workspace_create(cu, &call, NULL, NULL), PTXCU_E_ARGUMENT, "workspace is NULL");
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemv(cu, &d, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, y, &d.y, sizeof y, NULL));
    /* the manual's promise is 1e-4 |W| |x|; |x| of 512 numbers below 1 is some 13, |W| some 30, norm 1.7 */
    for (i = 0; i < C * N; i++) wrong += !(fabs((double)y[i] - want[i]) < 0.05);
    CHECK(wrong == 0);

    before = calls ? launched() : 0;
    v_tensor = make(cu, PTX_F16, 2, C, N, 0, 0);
#define BAD(tensor, change, code, text) SPOILED(cu, tensor, change, ptxcu_gemv(cu, &d, NULL), code, text)
    BAD(d.weights, d.weights = zero_tensor(), PTXCU_E_ARGUMENT, "gemv: weights is a zero tensor");
    BAD(d.weights, ptxcu_tensor_narrow(cu, &d.weights, 1, 0, 144, &d.weights), PTXCU_E_SHAPE,
        "gemv: weights has shape [37, 144], must be [n, bytes of a row]; dimension 1 must be 288");
    BAD(d.weights, d.weights.type = PTX_F16, PTXCU_E_SHAPE, "gemv: weights");
    BAD(d.weights, (d.weights.address++, d.weights.shape[0]--), PTXCU_E_SHAPE, "must be aligned to 16 bytes");
    BAD(d.x, ptxcu_tensor_narrow(cu, &d.x, 1, 0, 300, &d.x), PTXCU_E_SHAPE, "must be dense");
    BAD(d.x, d.x.shape[1] = 300, PTXCU_E_SHAPE, "");
    BAD(d.x, d.x = d.gamma, PTXCU_E_SHAPE, "x has shape [512], must be [columns, k]");
    BAD(d.gamma, ptxcu_tensor_narrow(cu, &d.gamma, 0, 0, 256, &d.gamma), PTXCU_E_SHAPE, "must be [k]: [512]");
    BAD(d.y, d.y = zero_tensor(), PTXCU_E_ARGUMENT, "gemv: y is a zero tensor");
    BAD(d.y, d.y = v_tensor, PTXCU_E_SHAPE, "gemv: residual is of type f32, must be f16");
    BAD(d.y, ptxcu_tensor_narrow(cu, &d.y, 0, 0, 1, &d.y), PTXCU_E_SHAPE, "y has shape [1, 37]");
    BAD(d.residual, (d.residual.address += 16, d.residual.shape[1] -= 4), PTXCU_E_SHAPE, "");
    BAD(d.workspace, d.workspace = d.weights, PTXCU_E_SHAPE, "workspace overlaps weights");
    BAD(d.workspace, d.workspace = d.y, PTXCU_E_SHAPE, "overlaps");
#undef BAD
    d.eps = -1;
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_ARGUMENT, "gemv: eps");
    d.eps = 0;
    d.precision = 7;
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_SHAPE, "gemv: precision is 7");
    d.precision = 0;
    d.format = 99;
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_ARGUMENT, "the format of weights is 99");
    d.format = PTX_U8;
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_ARGUMENT, "the format of weights is PTX_U8");
    d.format = 0;
    EXPECT(cu, ptxcu_gemv(cu, &d, NULL), PTXCU_E_ARGUMENT, "the format of weights is 0");
    (void)before;
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_tensor_free(cu, &v_tensor));
    WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.gamma));
    WORKS(cu, ptxcu_tensor_free(cu, &d.residual));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
    CLEAN();
}

/* Decode attention whose blocks form clusters, where the device has any: by one call in a graph and by
   another on a second stream, which has a workspace of its own and was planned for shorter sequences. All
   keys are 0, and row i of V is i: the output is the mean of the rows that are seen. Lengths in device memory
   go over the ends of chunks (128 keys) and clusters, of one sequence up, of the other down. */
static void test_decode_in_clusters(ptxcu *cu) {
    enum { B = 2, H = 16, D = 16, M = 1100 };
    static const uint32_t steps[] = {0, 1, 127, 128, 129, 256, 385, 512, 640, 1024, 1025, M - 1, M};
    static float rows[B * M * D], out[B * H * D];
    const uint32_t last = sizeof steps / sizeof *steps - 1;
    ptxcu_flash_decode_desc d[2];
    ptxcu_kv_cache cache;
    ptxcu_call call[2];
    ptxcu_stream stream[2];
    ptxcu_graph graph = NULL;
    uint32_t lengths[B], i, j, n, wrong = 0, clusters = ptxcu_device_info(cu)->max_cluster;
    uint64_t before;
    WORKS(cu, ptxcu_kv_cache_create(cu, PTX_F32, B, 1, M, D, &cache));
    WORKS(cu, ptxcu_tensor_write(cu, &cache.k, rows, sizeof rows, NULL));
    for (i = 0; i < B * M * D; i++) rows[i] = (float)(i / D % M);
    WORKS(cu, ptxcu_tensor_write(cu, &cache.v, rows, sizeof rows, NULL));
    for (j = 0; j < 2; j++) {
        memset(&d[j], 0, sizeof d[j]);
        WORKS(cu, ptxcu_stream_create(cu, &stream[j]));
        d[j].q = make(cu, PTX_F32, 3, B, H, D, 0);
        d[j].out = make(cu, PTX_F32, 3, B, H, D, 0);
        d[j].lengths = make(cu, PTX_U32, 1, B, 0, 0, 0);
        d[j].cache = &cache;
        d[j].max_len = j ? 5 * 128 : 0;
        WORKS(cu, ptxcu_tensor_write(cu, &d[j].q, rows, sizeof out, NULL));
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &d[j], &call[j]));
        WORKS(cu, ptxcu_workspace_create(cu, &call[j], stream[j], &d[j].workspace));
        WORKS(cu, ptxcu_flash_decode_prepare(cu, &d[j], &call[j]));
        CHECK(!clusters || call[j].plan.launch[0].cluster[2] > 1);
    }
    CHECK(call[0].plan.launch[0].grid[2] > call[1].plan.launch[0].grid[2]);
    CHECK(call[0].plan.workspace_bytes > 0);
    before = calls ? calls("cuLaunchKernelEx") : 0;
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_graph_begin(cu, stream[0]));
    WORKS(cu, ptxcu_call_run(cu, &call[0], stream[0]));
    WORKS(cu, ptxcu_graph_end(cu, stream[0], &graph));
    for (n = 0; n <= last; n++) {
        lengths[0] = steps[n];
        lengths[1] = steps[last - n];
        for (j = 0; j < 2; j++)
            WORKS(cu, ptxcu_tensor_upload(cu, &d[j].lengths, lengths, sizeof lengths, stream[j]));
        WORKS(cu, ptxcu_graph_launch(cu, graph, stream[0]));
        WORKS(cu, ptxcu_call_run(cu, &call[1], stream[1]));
        for (j = 0; j < 2; j++) {
            WORKS(cu, ptxcu_tensor_read(cu, out, &d[j].out, sizeof out, stream[j]));
            for (i = 0; i < B * H * D; i++) {
                double length = lengths[i / (H * D)], mean = length > 0 ? (length - 1) / 2 : 0;
                wrong += !(fabs((double)out[i] - mean) <= 1e-5 * mean);
            }
        }
    }
    CHECK(wrong == 0);
    if (calls && clusters) {
        CHECK(calls("cuLaunchKernelEx") == before + 1 + n);
        make_fail("cuLaunchKernelEx", 1, 701);
        EXPECT(cu, ptxcu_call_run(cu, &call[0], stream[0]), PTXCU_E_DRIVER,
               "cuLaunchKernelEx(entry 'flash_decode");
        WORKS(cu, ptxcu_call_run(cu, &call[0], stream[0])); /* nothing is left of that */
        WORKS(cu, ptxcu_tensor_read(cu, out, &d[0].out, sizeof out, stream[0]));
        CHECK(fabs((double)out[0] - (M - 1) / 2.0) < 0.01);
    }
    WORKS(cu, ptxcu_graph_destroy(cu, graph));
    for (j = 0; j < 2; j++) {
        WORKS(cu, ptxcu_tensor_free(cu, &d[j].q));
        WORKS(cu, ptxcu_tensor_free(cu, &d[j].out));
        WORKS(cu, ptxcu_tensor_free(cu, &d[j].lengths));
        WORKS(cu, ptxcu_tensor_free(cu, &d[j].workspace));
        WORKS(cu, ptxcu_stream_destroy(cu, stream[j]));
    }
    WORKS(cu, ptxcu_kv_cache_free(cu, &cache));
    CLEAN();
}

/* A captured graph reads lengths from device memory, not those of its capture. Scatter and attention in one
   graph; the host changes positions and lengths in device memory between two launches of it. */
static void test_graph_advances(ptxcu *cu) {
    attention a;
    ptxcu_stream stream;
    ptxcu_graph graph = NULL;
    ptxcu_kv_scatter_desc s;
    ptxcu_call scatter;
    ptxcu_result *r;
    uint64_t before;
    uint32_t round, b, h;
    float *row[2];
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    WORKS(cu, ptxcu_result_create(cu, &r));
    attention_open(cu, &a, stream);
    memset(&s, 0, sizeof s);
    s.k = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
    s.v = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM, 0);
    s.positions = make(cu, PTX_U32, 1, BATCH, 0, 0, 0);
    s.sequence_step = 1;
    s.cache = &a.cache;
    WORKS(cu, ptxcu_kv_scatter_prepare(cu, &s, &scatter));
    WORKS(cu, ptxcu_stream_sync(cu, stream));
    before = calls ? calls("cuMemAlloc_v2") + calls("cuModuleLoadDataEx") : 0;
    WORKS(cu, ptxcu_graph_begin(cu, stream));
    WORKS(cu, ptxcu_call_run(cu, &scatter, stream));
    WORKS(cu, ptxcu_call_run(cu, &a.call, stream));
    EXPECT(cu, ptxcu_call_start(cu, &a.call, stream, r), PTXCU_E_ARGUMENT, "the stream is in a capture");
    WORKS(cu, ptxcu_graph_end(cu, stream, &graph));
    if (calls) CHECK(calls("cuMemAlloc_v2") + calls("cuModuleLoadDataEx") == before);
    for (round = 0; round < 3; round++) {
        row[0] = numbers(KV_COUNT);
        row[1] = numbers(KV_COUNT);
        WORKS(cu, ptxcu_tensor_upload(cu, &s.k, row[0], KV_COUNT * 4, stream));
        WORKS(cu, ptxcu_tensor_upload(cu, &s.v, row[1], KV_COUNT * 4, stream));
        WORKS(cu, ptxcu_tensor_upload(cu, &s.positions, a.lengths, sizeof a.lengths, stream));
        for (b = 0; b < BATCH; b++) {
            if (a.lengths[b] == ROWS) a.lengths[b]--;
            for (h = 0; h < KV_HEADS; h++) {
                size_t at = ((size_t)(b * KV_HEADS + h) * ROWS + a.lengths[b]) * DIM;
                memcpy(a.k + at, row[0] + (b * KV_HEADS + h) * DIM, DIM * 4);
                memcpy(a.v + at, row[1] + (b * KV_HEADS + h) * DIM, DIM * 4);
            }
        }
        WORKS(cu, ptxcu_tensor_upload(cu, &s.positions, a.lengths, sizeof a.lengths, stream));
        for (b = 0; b < BATCH; b++) a.lengths[b]++;
        WORKS(cu, ptxcu_tensor_upload(cu, &a.desc.lengths, a.lengths, sizeof a.lengths, stream));
        WORKS(cu, ptxcu_graph_launch(cu, graph, stream));
        truth(&a);
        CHECK(attention_right(cu, &a, stream));
        free(row[0]);
        free(row[1]);
    }
    WORKS(cu, ptxcu_graph_destroy(cu, graph));
    WORKS(cu, ptxcu_tensor_free(cu, &s.k));
    WORKS(cu, ptxcu_tensor_free(cu, &s.v));
    WORKS(cu, ptxcu_tensor_free(cu, &s.positions));
    WORKS(cu, ptxcu_result_free(cu, r));
    attention_close(cu, &a);
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
    CLEAN();
}

/* ---- contexts and threads ---- */

/* Two contexts in one process: each computes, and neither takes what is the other's. */
static void test_contexts(ptxcu *cu, const char *library) {
    int (*create)(void **, unsigned, int), (*destroy)(void *);
    void *p, *own = NULL;
    ptxcu *other;
    ptxcu_desc d = describe(library, NULL);
    attention a, b;
    ptxcu_stream here, there;
    ptxcu_result *r;
    ptxcu_tensor t;
    ptxcu_buffer buffer;
    uint64_t shape[1] = {4};
    uint32_t host[4] = {1, 2, 3, 4};
    p = ptxcu_symbol(cu, "cuCtxCreate_v2");
    if (!p) return;
    memcpy(&create, &p, sizeof p);
    p = ptxcu_symbol(cu, "cuCtxDestroy_v2");
    memcpy(&destroy, &p, sizeof p);
    CHECK(create(&own, 0, 0) == 0);
    d.use_current_context = 1;
    WORKS(other, ptxcu_open(&other, &d));
    CHECK(other->context == own && cu->context != own);
    WORKS(cu, ptxcu_stream_create(cu, &here));
    WORKS(other, ptxcu_stream_create(other, &there));
    WORKS(cu, ptxcu_result_create(cu, &r));
    attention_open(cu, &a, here);
    attention_open(other, &b, there);
    WORKS(cu, ptxcu_call_run(cu, &a.call, here));
    WORKS(other, ptxcu_call_run(other, &b.call, there));
    CHECK(attention_right(cu, &a, here) && attention_right(other, &b, there));
    CHECK(a.call.program != b.call.program); /* the kernel cache knows the context */

    EXPECT(cu, ptxcu_call_run(cu, &b.call, here), PTXCU_E_WRONG_HANDLE, "was prepared by another handle");
    EXPECT(cu, ptxcu_call_run(cu, &a.call, there), PTXCU_E_WRONG_HANDLE,
           "the stream belongs to another context");
    EXPECT(cu, ptxcu_call_finish(cu, &a.call, there), PTXCU_E_WRONG_HANDLE, "belongs to another context");
    EXPECT(cu, ptxcu_call_start(cu, &a.call, there, r), PTXCU_E_WRONG_HANDLE,
           "belongs to another context");
    EXPECT(cu, ptxcu_flash_decode(cu, &a.desc, there), PTXCU_E_WRONG_HANDLE, "belongs to another context");
    EXPECT(cu, ptxcu_run(cu, a.call.program, &a.call.plan, a.call.args, a.call.plan.args_bytes, there),
           PTXCU_E_WRONG_HANDLE, "belongs to another context");
    EXPECT(cu, ptxcu_tensor_upload(cu, &a.desc.lengths, host, 12, there), PTXCU_E_WRONG_HANDLE,
           "belongs to another context");
    EXPECT(cu, ptxcu_tensor_read(cu, host, &a.desc.lengths, 12, there), PTXCU_E_WRONG_HANDLE,
           "belongs to another context");
    EXPECT(other, ptxcu_call_start(other, &b.call, there, r), PTXCU_E_WRONG_HANDLE,
           "the result is of another handle");
    EXPECT(other, ptxcu_result_free(other, r), PTXCU_E_WRONG_HANDLE, "the result is of another handle");
    b.desc.lengths = a.desc.lengths;
    EXPECT(other, ptxcu_flash_decode(other, &b.desc, there), PTXCU_E_WRONG_HANDLE,
           "lengths is a tensor of another");
    b.desc.lengths = make(other, PTX_U32, 1, BATCH, 0, 0, 0);
    WORKS(cu, ptxcu_alloc(cu, 16, &buffer));
    EXPECT(other, ptxcu_tensor_wrap(other, buffer, PTX_U32, 1, shape, NULL, &t), PTXCU_E_WRONG_HANDLE,
           "is of another device or context");
    WORKS(cu, ptxcu_tensor_wrap(cu, buffer, PTX_U32, 1, shape, NULL, &t));
    WORKS(cu, ptxcu_tensor_write(cu, &t, host, 16, NULL));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    WORKS(cu, ptxcu_free(cu, buffer));
    CHECK(attention_right(cu, &a, here) && attention_right(other, &b, there));
    WORKS(cu, ptxcu_result_free(cu, r));
    WORKS(cu, ptxcu_stream_destroy(cu, here));
    WORKS(other, ptxcu_stream_destroy(other, there));
    attention_close(cu, &a);
    attention_close(other, &b); /* one tensor of it is lost: closing gives it back */
    ptxcu_close(other);
    CHECK(current_context() == own);
    CHECK(destroy(own) == 0);
    CHECK(current_context() == NULL);
    CLEAN(); /* no leaks in the context that is gone */
}

/* One handle, several threads: each its own stream, tensors and kernels, and its own last error. */
enum { THREADS = 4, ROUNDS = 3 };
typedef struct worker {
    ptxcu *cu;
    pthread_t thread;
    uint32_t number, wrong;
} worker;

/* to[i] = value of the description, for 64 i: a kernel for each value. */
typedef struct fill_desc {
    uint32_t value;
} fill_desc;
static ptx_code fill_emit(ptx_module *m, const char *site, const void *desc) {
    ptx_kernel *k = ptx_entry(m, "fill");
    ptx_val args = ptx_param_bytes(k, "args", 8, 8), to, tid = ptx_tid_x(k);
    (void)site;
    to = ptx_ptr(ptx_ld(k, PTX_U64, ptx_at(args, 0)), PTX_GLOBAL);
    ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, to, tid, 4), 0), ptx_u32(((const fill_desc *)desc)->value));
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

/* A call of an operation that is none of ptxgen_kernels.h. */
static void test_own_operation(ptxcu *cu) {
    static const uint64_t square[2] = {16, 16};
    ptxcu_tensor t = make(cu, PTX_U32, 1, 64, 0, 0, 0), copy = t, w = make(cu, PTX_B8, 1, 256, 0, 0, 0), part;
    const ptxcu_tensor *list[PTXCU_CALL_TENSORS + 1];
    ptx_operation op;
    ptx_plan plan;
    fill_desc d = {4711};
    ptxcu_call call;
    ptxcu_result *r;
    uint32_t back[64], i, wrong = 0;
    memset(&op, 0, sizeof op);
    memset(&plan, 0, sizeof plan);
    for (i = 0; i <= PTXCU_CALL_TENSORS; i++) list[i] = &t;
    op.name = "fill";
    op.desc_bytes = sizeof d;
    op.emit = fill_emit;
    plan.launches = 1;
    plan.args_bytes = 8;
    plan.launch[0].block[0] = 64;
    plan.launch[0].grid[0] = plan.launch[0].grid[1] = plan.launch[0].grid[2] = 1;
    plan.launch[0].block[1] = plan.launch[0].block[2] = 1;
    WORKS(cu, ptxcu_result_create(cu, &r));
    WORKS(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, NULL, &call));
    WORKS(cu, ptxcu_call_start(cu, &call, NULL, r));
    WORKS(cu, ptxcu_result_wait(cu, r));
    WORKS(cu, ptxcu_tensor_read(cu, back, &t, sizeof back, NULL));
    for (i = 0; i < 64; i++) wrong += back[i] != 4711;
    CHECK(wrong == 0);
    EXPECT(cu, ptxcu_call_prepare(cu, NULL, &d, &plan, &t.address, 8, list, 1, NULL, &call), PTXCU_E_ARGUMENT,
           "op");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, NULL, &plan, &t.address, 8, list, 1, NULL, &call),
           PTXCU_E_ARGUMENT, "desc");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, NULL, &t.address, 8, list, 1, NULL, &call), PTXCU_E_ARGUMENT,
           "plan");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, NULL, 8, list, 1, NULL, &call), PTXCU_E_ARGUMENT,
           "args is NULL");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 7, list, 1, NULL, &call), PTXCU_E_ARGUMENT,
           "7 bytes of arguments, the plan has 8");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, NULL, 1, NULL, &call), PTXCU_E_ARGUMENT,
           "tensors");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 19, NULL, &call), PTXCU_E_ARGUMENT,
           "19 tensors, at most 18");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, NULL, NULL), PTXCU_E_ARGUMENT,
           "call is");
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 18, &w, &call), PTXCU_E_ARGUMENT,
           "workspace is not among the 18 tensors");
    plan.workspace_bytes = plan.zero_bytes = 4;
    WORKS(cu, ptxcu_tensor_narrow(cu, &w, 0, 4, 8, &part));
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, &part, &call), PTXCU_E_SHAPE,
           "fill: workspace has shape [8] and strides [1], must be dense and aligned to 256 bytes");
    WORKS(cu, ptxcu_tensor_reshape(cu, &w, 2, square, &part));
    WORKS(cu, ptxcu_tensor_narrow(cu, &part, 1, 0, 4, &part));
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, &part, &call), PTXCU_E_SHAPE,
           "fill: workspace has shape [16, 4] and strides [16, 1]");
    EXPECT(cu, ptxcu_workspace_create(cu, &call, NULL, &part), PTXCU_E_ARGUMENT, "it was not prepared");
    WORKS(cu, ptxcu_tensor_narrow(cu, &w, 0, 0, 4, &part));
    plan.zero_bytes = 8;
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, &part, &call), PTXCU_E_ARGUMENT,
           "the plan zeroes 8 bytes of a workspace of 4");
    plan.zero_bytes = 4;
    WORKS(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, &part, &call));
    plan.workspace_bytes = plan.zero_bytes = 0;
    list[7] = &w;
    WORKS(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 18, &w, &call));
    WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
    list[7] = &t;
    WORKS(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, &w, &call));
    WORKS(cu, ptxcu_call_finish(cu, &call, NULL));
    WORKS(cu, ptxcu_tensor_free(cu, &w));
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "fill: workspace was freed");
    WORKS(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 16, NULL, &call));
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "fill: a tensor was freed");
    list[0] = &copy;
    EXPECT(cu, ptxcu_call_prepare(cu, &op, &d, &plan, &t.address, 8, list, 1, NULL, &call), PTXCU_E_FREED,
           "was freed");
    CHECK(call.owner == NULL);
    WORKS(cu, ptxcu_result_free(cu, r));
    CLEAN();
}

static void *work(void *user) {
    worker *w = (worker *)user;
    ptxcu *cu = w->cu;
    uint32_t round, i, back[64];
    uint64_t shape[1] = {64};
    char text[64];
    ptx_operation op;
    ptx_plan plan;
    ptxcu_stream stream;
    ptxcu_result *r;
    memset(&op, 0, sizeof op);
    memset(&plan, 0, sizeof plan);
    op.name = "fill";
    op.desc_bytes = sizeof(fill_desc);
    op.emit = fill_emit;
    plan.launches = 1;
    plan.args_bytes = 8;
    plan.launch[0].block[0] = 64;
    plan.launch[0].grid[0] = plan.launch[0].grid[1] = plan.launch[0].grid[2] = 1;
    plan.launch[0].block[1] = plan.launch[0].block[2] = 1;
    if (ptxcu_stream_create(cu, &stream) || ptxcu_result_create(cu, &r)) {
        w->wrong = 1000;
        return NULL;
    }
    for (round = 0; round < ROUNDS; round++) {
        ptxcu_tensor t, all[8];
        ptxcu_program *p, *again;
        fill_desc d;
        uint32_t number = w->number;
        int done = 0;
        shape[0] = 64;
        d.value = round * (THREADS + 1) + number; /* kernels of one's own, and one that all want */
        w->wrong += ptxcu_tensor_create(cu, PTX_U32, 1, shape, &t) != 0;
        for (i = 0; i < 8; i++) w->wrong += ptxcu_tensor_create(cu, PTX_U32, 1, shape, &all[i]) != 0;
        w->wrong += ptxcu_operation(cu, &op, &d, &p) != 0;
        w->wrong += ptxcu_operation(cu, &op, &d, &again) != 0 || again != p;
        w->wrong += ptxcu_run(cu, p, &plan, &t.address, 8, stream) != 0;
        w->wrong += ptxcu_tensor_read(cu, back, &t, sizeof back, stream) != 0;
        for (i = 0; i < 64; i++) w->wrong += back[i] != d.value;
        d.value = round * (THREADS + 1) + THREADS;
        w->wrong += ptxcu_operation(cu, &op, &d, &p) != 0;
        w->wrong += ptxcu_run(cu, p, &plan, &t.address, 8, stream) != 0;
        w->wrong += ptxcu_tensor_read(cu, back, &t, sizeof back, stream) != 0;
        for (i = 0; i < 64; i++) w->wrong += back[i] != d.value;
        for (i = 0; i < 8; i++) w->wrong += ptxcu_tensor_free(cu, &all[i]) != 0;
        /* an error of this thread's own */
        shape[0] = (uint64_t)1 << 62;
        w->wrong += ptxcu_tensor_create(cu, PTX_F64, 1, shape, &all[0]) != PTXCU_E_OVERFLOW;
        shape[0] = number;
        w->wrong += ptxcu_tensor_upload(cu, &t, back, number, stream) != PTXCU_E_SHAPE;
        snprintf(text, sizeof text, "%u bytes are given", (unsigned)number);
        w->wrong += strstr(ptxcu_get_error(cu)->message, text) == NULL;
        w->wrong += ptxcu_get_error(cu)->code != PTXCU_E_SHAPE;
        w->wrong += current_context() != NULL;
        { /* a real operation, in three forms */
            ptxcu_kv_cache cache;
            ptxcu_kv_scatter_desc x;
            ptxcu_call call;
            ptxcu_tensor apart[2];
            uint64_t rows[3];
            memset(&x, 0, sizeof x);
            rows[0] = 1;
            rows[1] = 1;
            rows[2] = 8 + 8 * number;
            w->wrong += ptxcu_tensor_create(cu, PTX_F32, 3, rows, &x.k) != 0;
            w->wrong += ptxcu_tensor_create(cu, PTX_F32, 3, rows, &x.v) != 0;
            rows[1] = 4;
            for (i = 0; i < 2; i++) w->wrong += ptxcu_tensor_create(cu, PTX_F32, 3, rows, &apart[i]) != 0;
            if (round % 2)
                w->wrong += ptxcu_kv_cache_wrap_each(cu, &apart[0], &apart[1], 1, &cache) != 0;
            else
                w->wrong += ptxcu_kv_cache_create(cu, PTX_F32, 1, 1, 4, rows[2], &cache) != 0;
            x.cache = &cache;
            memset(back, 0, sizeof back);
            w->wrong += ptxcu_tensor_write(cu, &x.k, back, rows[2] * 4, stream) != 0;
            w->wrong += ptxcu_tensor_write(cu, &x.v, back, rows[2] * 4, stream) != 0;
            w->wrong += ptxcu_kv_scatter_prepare(cu, &x, &call) != 0;
            w->wrong += ptxcu_call_finish(cu, &call, stream) != 0;
            w->wrong += ptxcu_call_start(cu, &call, stream, r) != 0;
            w->wrong += ptxcu_tensor_free(cu, &x.k) != 0;
            for (i = 0; i < 2; i++) w->wrong += ptxcu_tensor_free(cu, &apart[i]) != 0;
            while (!done && !ptxcu_result_poll(cu, r, &done)) {
            }
            w->wrong += ptxcu_tensor_free(cu, &x.v) != 0;
            w->wrong += ptxcu_kv_cache_free(cu, &cache) != 0;
        }
        w->wrong += ptxcu_tensor_free(cu, &t) != 0;
        for (i = 0; i < 200; i++) { /* hardly any of the driver, whose own locks would order the threads */
            shape[0] = 0;
            w->wrong += ptxcu_tensor_create(cu, PTX_U32, 1, shape, &t) != 0;
            w->wrong += ptxcu_tensor_narrow(cu, &t, 0, 0, 0, &all[0]) != 0;
            w->wrong += ptxcu_tensor_narrow(cu, &t, 1, 0, 0, &all[0]) != PTXCU_E_ARGUMENT;
            w->wrong += ptxcu_operation(cu, &op, &d, &again) != 0 || again != p;
            w->wrong += ptxcu_tensor_free(cu, &t) != 0;
        }
    }
    w->wrong += ptxcu_result_free(cu, r) != 0;
    w->wrong += ptxcu_stream_destroy(cu, stream) != 0;
    return NULL;
}

static void test_threads(const char *library) {
    worker w[THREADS];
    ptxcu_desc d = describe(library, NULL);
    ptxcu *cu;
    uint64_t loads;
    uint32_t i;
    WORKS(cu, ptxcu_open(&cu, &d));
    loads = calls ? calls("cuModuleLoadDataEx") : 0;
    for (i = 0; i < THREADS; i++) {
        w[i].cu = cu;
        w[i].number = i;
        w[i].wrong = 0;
        CHECK(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        CHECK(w[i].wrong == 0);
    }
    /* what all wanted was built once */
    if (calls) CHECK(calls("cuModuleLoadDataEx") == loads + ROUNDS * (THREADS + 1) + THREADS);
    CHECK(ptxcu_get_error(cu)->code == PTXCU_E_NONE); /* this thread's */
    ptxcu_close(cu);
    CLEAN();
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY"), *text = getenv("PTXGEN_SEED");
    uint64_t start = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    char opened[1024];
    counter c;
    ptxcu_desc d;
    ptxcu *cu = NULL, *other = NULL;
    if (library && !*library) library = NULL;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    printf("seed: PTXGEN_SEED=%llu\n", (unsigned long long)start);
    seed = start * 2862933555777941757u + 3037000493u;
    memset(&c, 0, sizeof c);
    d = describe(library, &c);
    if (ptxcu_open(&cu, &d)) {
        CHECK(library == NULL); /* one that was asked for opens */
        printf("skip: no driver here: %s\n", ptxcu_get_error(cu)->message);
        ptxcu_close(cu);
    } else {
        find_extras(cu);
        find_reports(cu);
        snprintf(opened, sizeof opened, "%s", ptxcu_device_info(cu)->library);
        library = opened; /* the fallback, perhaps */
        if (!calls) printf("skip: not the CPU driver, so its calls cannot be counted or made to fail\n");
        d = describe(library, NULL);
        if (argc > 2 && !strcmp(argv[2], "threads")) { /* only these: see threads.sh */
            ptxcu_close(cu);
            test_threads(library);
            return check_end();
        }
        WORKS(other, ptxcu_open(&other, &d));
        test_create(cu);
        test_views(cu);
        test_free(cu, other);
        test_wrap(cu);
        test_three_forms(cu, &c);
        test_result_keeps_memory(cu);
        test_order(cu);
        test_decode_refuses(cu, other);
        test_decode_more(cu);
        test_decode_apart(cu);
        test_workspace(cu);
        test_prefill(cu);
    test_prefill_of_caches(cu);
        test_scatter(cu);
        test_past_32_bits(cu);
        test_gemv(cu);
        test_graph_advances(cu);
        test_decode_in_clusters(cu);
        test_own_operation(cu);
        test_contexts(cu, library);
        ptxcu_close(other);
        ptxcu_close(cu);
        CHECK(c.blocks == 0 && c.bytes == 0 && c.wrong_sizes == 0);
        test_threads(library);
    }
    return check_end();
}
