/* tensor_layers.c - the operations of a layer on tensors: gemv, gemm, norm, softmax,
   activation, rope, embed and sample are right in all three forms of a call, and refuse what they cannot do:
   `tensor_layers [LIBRARY]`. Data is fresh in every run; PTXGEN_SEED=n repeats one.

   make build/tests/cuda/tensor_layers */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"

#include <math.h>

static ptxcu_tensor make(ptxcu *cu, ptx_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    ptxcu_tensor t;
    uint64_t shape[3];
    shape[0] = a, shape[1] = b, shape[2] = c;
    WORKS(cu, ptxcu_tensor_create(cu, type, rank, shape, &t));
    return t;
}

/* A tensor of numbers in (-1, 1), and the numbers. */
static ptxcu_tensor numbers(ptxcu *cu, float *host, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    ptxcu_tensor t = make(cu, PTX_F32, rank, a, b, c);
    size_t i, n = ptxcu_tensor_bytes(&t) / 4;
    for (i = 0; i < n; i++) host[i] = (float)random_within(1);
    WORKS(cu, ptxcu_tensor_write(cu, &t, host, n * 4, NULL));
    return t;
}

#define MOST 4096
typedef struct result { /* what a call has to give, and in which tensor */
    ptxcu_tensor *t;
    double want[MOST];
    uint32_t n;
    double off; /* largest error */
} result;

/* The call in its three forms. again: a tensor to be written before each, for it is changed in place. */
static void three_forms(ptxcu *cu, const char *name, const ptxcu_call *call, result *out, uint32_t outs,
                        const ptxcu_tensor *again, const float *host) {
    static float have[MOST], poison[MOST];
    ptxcu_stream stream;
    ptxcu_result *r;
    uint32_t form, i, o;
    for (i = 0; i < MOST; i++) poison[i] = (float)NAN;
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    WORKS(cu, ptxcu_result_create(cu, &r));
    for (form = 0; form < 3; form++) {
        for (o = 0; o < outs; o++)
            WORKS(cu, ptxcu_tensor_write(cu, out[o].t, poison, out[o].n * 4, stream));
        if (again) WORKS(cu, ptxcu_tensor_write(cu, again, host, ptxcu_tensor_bytes(again), stream));
        if (form == 0) WORKS(cu, ptxcu_call_run(cu, call, stream));
        if (form == 1) WORKS(cu, ptxcu_call_finish(cu, call, stream));
        if (form == 2) {
            WORKS(cu, ptxcu_call_start(cu, call, stream, r));
            WORKS(cu, ptxcu_result_wait(cu, r));
        }
        for (o = 0; o < outs; o++) {
            uint32_t wrong = 0, first = 0;
            WORKS(cu, ptxcu_tensor_read(cu, have, out[o].t, out[o].n * 4, stream));
            for (i = 0; i < out[o].n; i++)
                if (!(fabs((double)have[i] - out[o].want[i]) <= out[o].off) && !wrong++) first = i;
            if (wrong)
                printf("%s, form %u, output %u: %u of %u wrong; [%u] is %g, not %g\n", name, form, o, wrong,
                       out[o].n, first, (double)have[first], out[o].want[first]);
            CHECK(!wrong);
        }
    }
    WORKS(cu, ptxcu_result_free(cu, r));
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
}

static result out[3]; /* large */

/* The call is refused, and the tensor is as before. */
#define BAD(op, what, change, code, text)                                                                    \
    do {                                                                                                     \
        ptxcu_##op##_desc kept_ = d;                                                                         \
        change;                                                                                              \
        EXPECT(cu, ptxcu_##op##_prepare(cu, &d, &call), code, text);                                         \
        CHECK(call.owner == NULL);                                                                           \
        d = kept_;                                                                                           \
    } while (0)

/* -- gemv: Q, K and V over one x, with bias; gate and up -- */

enum { K = 64, C = 2 };

static double dot(const float *w, const float *x, uint32_t k) {
    double sum = 0;
    uint32_t i;
    for (i = 0; i < k; i++) sum += (double)w[i] * (double)x[i];
    return sum;
}

static void test_gemv_of_three(ptxcu *cu) {
    static const uint32_t rows[3] = {40, 24, 9};
    static float w[3][40 * K], bias[3][40], x[C * K];
    ptxcu_gemv_desc d;
    ptxcu_call call;
    ptxcu_tensor *weights[3], *biases[3], *y[3], spare;
    uint32_t i, r, c;
    memset(&d, 0, sizeof d);
    weights[0] = &d.weights, biases[0] = &d.bias, y[0] = &d.y;
    for (i = 0; i < 2; i++)
        weights[i + 1] = &d.more[i].weights, biases[i + 1] = &d.more[i].bias, y[i + 1] = &d.more[i].y;
    d.x = numbers(cu, x, 2, C, K, 0);
    d.format = d.more[0].format = d.more[1].format = PTXK_F32;
    for (i = 0; i < 3; i++) {
        *weights[i] = numbers(cu, w[i], 2, rows[i], K, 0);
        *biases[i] = numbers(cu, bias[i], 1, rows[i], 0, 0);
        *y[i] = make(cu, PTX_F32, 2, C, rows[i], 0);
        out[i].t = y[i], out[i].n = C * rows[i], out[i].off = 1e-4;
        for (c = 0; c < C; c++)
            for (r = 0; r < rows[i]; r++)
                out[i].want[c * rows[i] + r] = dot(w[i] + r * K, x + c * K, K) + (double)bias[i][r];
    }
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_WORKSPACE, "gemv: workspace has 0 bytes");
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    CHECK(call.tensors == 11);
    three_forms(cu, "gemv of three", &call, out, 3, NULL, NULL);
    spare = make(cu, PTX_F32, 2, C, 40, 0);
    BAD(gemv, eps, d.eps = (float)NAN, PTXCU_E_ARGUMENT, "gemv: eps is ");
    BAD(gemv, eps, d.eps = -1, PTXCU_E_ARGUMENT, "gemv: eps is -1");
    BAD(gemv, eps, d.eps = (float)INFINITY, PTXCU_E_ARGUMENT, "gemv: eps is inf");
    BAD(gemv, eps, (d.eps = -1, d.workspace.owner = NULL), PTXCU_E_ARGUMENT, "gemv: eps is -1");
    BAD(gemv, norm, d.norm = 2, PTXCU_E_ARGUMENT, "gemv: norm is 2, must be 0 or 1");
    BAD(gemv, swiglu, d.swiglu = 2, PTXCU_E_ARGUMENT, "gemv: swiglu is 2, must be 0 or 1");
    BAD(gemv, swiglu, d.swiglu = 1, PTXCU_E_SHAPE, "SwiGLU (PTXK_GEMV_SWIGLU) takes two matrices");
    BAD(gemv, unused, d.unused = 1, PTXCU_E_ARGUMENT, "gemv: unused is 1, must be 0");
    BAD(gemv, unused, d.more[1].unused = 1, PTXCU_E_ARGUMENT, "gemv: more[1].unused is 1, must be 0");
    BAD(gemv, format, d.format = 99, PTXCU_E_ARGUMENT,
        "format of weights is 99, must be one of PTXK_FORMATS, such as PTXK_Q4_K");
    BAD(gemv, format, d.more[0].format = PTXK_F16, PTXCU_E_SHAPE, "more[0].weights");
    BAD(gemv, format, d.more[0].format = 0, PTXCU_E_ARGUMENT, "format of more[0].weights is 0");
    BAD(gemv, bias, d.more[0].bias.owner = NULL, PTXCU_E_ARGUMENT, "more[0].bias is a zero tensor");
    BAD(gemv, bias, d.bias.owner = NULL, PTXCU_E_SHAPE, "more[0].bias is set, and bias is not");
    BAD(gemv, y, d.more[1].y.owner = NULL, PTXCU_E_ARGUMENT, "more[1].y is a zero tensor");
    BAD(gemv, y, d.more[0].y = d.y, PTXCU_E_SHAPE, "more[0].y has shape [2, 40], must be [columns, n]");
    BAD(gemv, y, d.y = d.more[0].y = spare, PTXCU_E_SHAPE, "");
    BAD(gemv, second, memset(&d.more[0], 0, sizeof d.more[0]), PTXCU_E_ARGUMENT,
        "more[0].weights is zero, and must not be with more[1]");
    BAD(gemv, residual, d.residual = spare, PTXCU_E_SHAPE, "a residual (PTXK_GEMV_RESIDUAL) goes with one");
    BAD(gemv, third, d.more[1].weights.owner = NULL, PTXCU_E_ARGUMENT, "more[1].y is set, and must not be");
    BAD(gemv, third, d.more[1].weights.owner = d.more[1].y.owner = NULL, PTXCU_E_ARGUMENT,
        "more[1].bias is set, and must not be without weights");
    WORKS(cu, ptxcu_tensor_free(cu, &spare));
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    for (i = 0; i < 3; i++) {
        WORKS(cu, ptxcu_tensor_free(cu, weights[i]));
        WORKS(cu, ptxcu_tensor_free(cu, biases[i]));
        WORKS(cu, ptxcu_tensor_free(cu, y[i]));
    }
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "was freed");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
}

static void test_gemv_swiglu(ptxcu *cu) {
    enum { N = 33 };
    static float gate[N * K], up[N * K], x[K], residual[N];
    ptxcu_gemv_desc d;
    ptxcu_call call;
    uint32_t r;
    memset(&d, 0, sizeof d);
    d.format = d.more[0].format = PTXK_F32;
    d.swiglu = 1;
    d.x = numbers(cu, x, 2, 1, K, 0);
    d.weights = numbers(cu, gate, 2, N, K, 0);
    d.more[0].weights = numbers(cu, up, 2, N, K, 0);
    d.residual = numbers(cu, residual, 2, 1, N, 0);
    d.y = make(cu, PTX_F32, 2, 1, N, 0);
    for (r = 0; r < N; r++) {
        double g = dot(gate + r * K, x, K), u = dot(up + r * K, x, K);
        out[0].want[r] = g / (1 + exp(-g)) * u + (double)residual[r];
    }
    out[0].t = &d.y, out[0].n = N, out[0].off = 1e-3;
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemv_prepare(cu, &d, &call));
    three_forms(cu, "SwiGLU", &call, out, 1, NULL, NULL);
    BAD(gemv, y, d.more[0].y = d.y, PTXCU_E_ARGUMENT, "more[0].y is set, and must not be with swiglu");
    BAD(gemv, format, d.more[1].format = PTXK_F32, PTXCU_E_ARGUMENT, "more[1].format is set");
    BAD(gemv, up, memset(&d.more[0], 0, sizeof d.more[0]), PTXCU_E_ARGUMENT,
        "more[0].weights is zero, and must not be with swiglu: it is the up matrix");
    BAD(gemv, up, d.more[0].weights.shape[0]--, PTXCU_E_SHAPE, "more[0].n is 32, must be n, 33");
    BAD(gemv, up, (d.more[0].weights.shape[0]--, d.workspace.owner = NULL, d.workspace.address = 0),
        PTXCU_E_SHAPE, "more[0].weights has 32 rows, must have 33");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.more[0].weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.residual));
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
}

/* -- gemm: the same with more rows of x, which lie in wider rows -- */

static void test_gemm_of_three(ptxcu *cu) {
    enum { M = 11 };
    static const uint32_t rows[3] = {40, 24, 9};
    static float w[3][40 * K], bias[3][40], x[M * 2 * K];
    ptxcu_gemm_desc d;
    ptxcu_call call;
    ptxcu_tensor *weights[3], *biases[3], *y[3], wide, spare;
    uint32_t i, r, c;
    memset(&d, 0, sizeof d);
    weights[0] = &d.weights, biases[0] = &d.bias, y[0] = &d.y;
    for (i = 0; i < 2; i++)
        weights[i + 1] = &d.more[i].weights, biases[i + 1] = &d.more[i].bias, y[i + 1] = &d.more[i].y;
    wide = numbers(cu, x, 2, M, 2 * K, 0);
    WORKS(cu, ptxcu_tensor_narrow(cu, &wide, 1, K, K, &d.x));
    d.format = d.more[0].format = d.more[1].format = PTXK_F32;
    for (i = 0; i < 3; i++) {
        *weights[i] = numbers(cu, w[i], 2, rows[i], K, 0);
        *biases[i] = numbers(cu, bias[i], 1, rows[i], 0, 0);
        *y[i] = make(cu, PTX_F32, 2, M, rows[i], 0);
        out[i].t = y[i], out[i].n = M * rows[i], out[i].off = 1e-4;
        for (c = 0; c < M; c++)
            for (r = 0; r < rows[i]; r++)
                out[i].want[c * rows[i] + r] = dot(w[i] + r * K, x + c * 2 * K + K, K) + (double)bias[i][r];
    }
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_WORKSPACE, "gemm: workspace has 0 bytes");
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    CHECK(call.tensors == 11);
    three_forms(cu, "gemm of three", &call, out, 3, NULL, NULL);
    spare = make(cu, PTX_F32, 2, M, 40, 0);
    BAD(gemm, eps, d.eps = (float)NAN, PTXCU_E_ARGUMENT, "gemm: eps is ");
    BAD(gemm, norm, d.norm = 2, PTXCU_E_ARGUMENT, "gemm: norm is 2, must be 0 or 1");
    BAD(gemm, gated, d.gated = 1, PTXCU_E_ARGUMENT, "gemm: gated is 1, must be 0, PTXK_GEMM_SWIGLU, _GEGLU or");
    BAD(gemm, gated, d.gated = PTXK_GEMM_GEGLU, PTXCU_E_ARGUMENT, "more[0].y is set, and must not be with gated");
    BAD(gemm, unused, d.unused = 1, PTXCU_E_ARGUMENT, "gemm: unused is 1, must be 0");
    BAD(gemm, precision, d.precision = 7, PTXCU_E_SHAPE, "gemm: precision is 7");
    BAD(gemm, format, d.format = 99, PTXCU_E_ARGUMENT, "format of weights is 99, must be one of PTXK_FORMATS");
    BAD(gemm, format, d.more[0].format = PTXK_F16, PTXCU_E_SHAPE, "more[0].weights");
    BAD(gemm, bias, d.more[0].bias.owner = NULL, PTXCU_E_ARGUMENT, "more[0].bias is a zero tensor");
    BAD(gemm, bias, d.bias.owner = NULL, PTXCU_E_SHAPE, "more[0].bias is set, and bias is not");
    BAD(gemm, y, d.more[1].y.owner = NULL, PTXCU_E_ARGUMENT, "more[1].y is a zero tensor");
    BAD(gemm, y, d.more[0].y = d.y, PTXCU_E_SHAPE, "more[0].y has shape [11, 40], must be [m, n]");
    BAD(gemm, y, d.y = d.x, PTXCU_E_SHAPE, "");
    BAD(gemm, y, ptxcu_tensor_narrow(cu, &d.y, 1, 0, 24, &d.more[0].y), PTXCU_E_SHAPE, "gemm: y overlaps more[0].y");
    BAD(gemm, second, memset(&d.more[0], 0, sizeof d.more[0]), PTXCU_E_ARGUMENT,
        "more[0].weights is zero, and must not be with more[1]");
    BAD(gemm, residual, d.residual = spare, PTXCU_E_SHAPE, "a residual (PTXK_GEMM_RESIDUAL) goes with one");
    BAD(gemm, third, d.more[1].weights.owner = NULL, PTXCU_E_ARGUMENT, "more[1].y is set, and must not be");
    WORKS(cu, ptxcu_tensor_free(cu, &spare));
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    for (i = 0; i < 3; i++) {
        WORKS(cu, ptxcu_tensor_free(cu, weights[i]));
        WORKS(cu, ptxcu_tensor_free(cu, biases[i]));
        WORKS(cu, ptxcu_tensor_free(cu, y[i]));
    }
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "was freed");
    WORKS(cu, ptxcu_tensor_free(cu, &wide));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
}

/* Three groups with 4, 0 and 6 rows of y, which take any rows of x. */
static void test_gemm_groups(ptxcu *cu) {
    enum { N = 12, M = 10, X = 5, G = 3 };
    static const uint32_t offsets[G + 1] = {0, 4, 4, 10}, x_rows[M] = {0, 4, 2, 1, 3, 3, 0, 2, 4, 1};
    static float w[G * N * K], bias[G * N], x[X * K];
    ptxcu_gemm_desc d;
    ptxcu_tensor odd, none;
    ptxcu_call call;
    uint32_t r, c;
    memset(&d, 0, sizeof d);
    d.format = PTXK_F32;
    d.x = numbers(cu, x, 2, X, K, 0);
    d.weights = numbers(cu, w, 3, G, N, K);
    d.bias = numbers(cu, bias, 2, G, N, 0);
    d.offsets = make(cu, PTX_U32, 1, G + 1, 0, 0);
    d.x_rows = make(cu, PTX_U32, 1, M, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &d.offsets, offsets, sizeof offsets, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.x_rows, x_rows, sizeof x_rows, NULL));
    d.y = make(cu, PTX_F32, 2, M, N, 0);
    for (c = 0; c < M; c++)
        for (r = 0; r < N; r++) {
            uint32_t row = (c < 4 ? 0u : 2u) * N + r;
            out[0].want[c * N + r] = dot(w + row * K, x + x_rows[c] * K, K) + (double)bias[row];
        }
    out[0].t = &d.y, out[0].n = M * N, out[0].off = 1e-4;
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    three_forms(cu, "gemm, groups", &call, out, 1, NULL, NULL);
    BAD(gemm, offsets, d.offsets.shape[0]--, PTXCU_E_SHAPE,
        "weights has shape [3, 12, 64], must be [groups, n, a row]");
    none = make(cu, PTX_U32, 1, 0, 0, 0);
    BAD(gemm, offsets, d.offsets = none, PTXCU_E_ARGUMENT, "offsets has 0 elements, must have groups + 1");
    WORKS(cu, ptxcu_tensor_free(cu, &none));
    BAD(gemm, gamma, d.gamma.address = d.x.address, PTXCU_E_ARGUMENT,
        "gemm: gamma has an address and is no tensor: make it with ptxcu_tensor_wrap");
    BAD(gemm, offsets, d.offsets = d.x, PTXCU_E_SHAPE, "offsets is of type f32, must be u32");
    BAD(gemm, offsets, d.offsets.owner = NULL, PTXCU_E_ARGUMENT, "offsets");
    BAD(gemm, bias, d.bias = d.offsets, PTXCU_E_SHAPE, "bias is of type u32");
    odd = make(cu, PTX_U8, 3, G, 11, 2 * 34);
    BAD(gemm, weights, (d.format = PTXK_Q8_0, d.weights = odd, memset(&d.workspace, 0, sizeof d.workspace)),
        PTXCU_E_SHAPE, "weights: a group has 748 bytes, must be a multiple of 16: with rows of 68 bytes, n must be "
                       "a multiple of 4");
    WORKS(cu, ptxcu_tensor_free(cu, &odd));
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.bias));
    WORKS(cu, ptxcu_tensor_free(cu, &d.offsets));
    WORKS(cu, ptxcu_tensor_free(cu, &d.x_rows));
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
}

/* Bytes with a factor for each row, in groups; s8 tensors and b8. */
static void test_gemm_bytes(ptxcu *cu) {
    enum { N = 12, M = 5, G = 2 };
    static const uint32_t offsets[G + 1] = {0, 2, 5};
    static float factors[G * N], x[M * K], w[G * N * K];
    static signed char bytes[G * N * K];
    ptxcu_gemm_desc d;
    ptxcu_tensor spare;
    ptxcu_call call;
    uint32_t r, c, turn;
    for (turn = 0; turn < 2; turn++) {
        memset(&d, 0, sizeof d);
        d.format = PTX_S8;
        d.factor_kind = PTXK_FACTORS_ROW;
        d.x = numbers(cu, x, 2, M, K, 0);
        d.factors = numbers(cu, factors, 2, G, N, 0);
        d.weights = make(cu, turn ? PTX_U8 : PTX_S8, 3, G, N, K);
        for (r = 0; r < G * N * K; r++) {
            bytes[r] = (signed char)random_u32();
            w[r] = bytes[r] * factors[r / K];
        }
        WORKS(cu, ptxcu_tensor_write(cu, &d.weights, bytes, sizeof bytes, NULL));
        d.offsets = make(cu, PTX_U32, 1, G + 1, 0, 0);
        WORKS(cu, ptxcu_tensor_write(cu, &d.offsets, offsets, sizeof offsets, NULL));
        d.y = make(cu, PTX_F32, 2, M, N, 0);
        for (c = 0; c < M; c++)
            for (r = 0; r < N; r++) out[0].want[c * N + r] = dot(w + ((c < 2 ? 0 : N) + r) * K, x + c * K, K);
        out[0].t = &d.y, out[0].n = M * N, out[0].off = 1e-2;
        WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
        WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
        WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
        three_forms(cu, "gemm, bytes", &call, out, 1, NULL, NULL);
        spare = make(cu, PTX_F32, 1, N, 0, 0);
        BAD(gemm, factors, d.factors = spare, PTXCU_E_SHAPE, "gemm: factors has 1 dimensions, must have those");
        BAD(gemm, factors, d.factors = d.x, PTXCU_E_SHAPE, "gemm: factors has shape [5, 64], must be [batch,");
        BAD(gemm, factors, d.factor_kind = 0, PTXCU_E_ARGUMENT, "gemm: factors is set, and its kind is 0");
        BAD(gemm, factors, d.factors.owner = NULL, PTXCU_E_ARGUMENT, "gemm: factors is zero, and its kind is 2");
        BAD(gemm, factors, d.more[0].factors = d.factors, PTXCU_E_ARGUMENT,
            "gemm: more[0].factors is set, and must not be without weights");
        BAD(gemm, factors, d.more[1].factors = d.factors, PTXCU_E_ARGUMENT,
            "gemm: more[1].factors is set, and must not be without weights");
        BAD(gemm, format, d.format = PTX_E2M1, PTXCU_E_ARGUMENT, "such as PTXK_Q4_K, or PTX_E4M3, PTX_E5M2 or");
        BAD(gemm, offsets,
            memset(&d.offsets, 0, sizeof d.offsets);
            WORKS(cu, ptxcu_tensor_select(cu, &kept_.weights, 0, 0, &d.weights)), PTXCU_E_SHAPE,
            "gemm: factors has shape [2, 12], must be [rows]: [12]");
        WORKS(cu, ptxcu_tensor_free(cu, &spare));
        WORKS(cu, ptxcu_tensor_free(cu, &d.x));
        WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
        WORKS(cu, ptxcu_tensor_free(cu, &d.factors));
        WORKS(cu, ptxcu_tensor_free(cu, &d.offsets));
        WORKS(cu, ptxcu_tensor_free(cu, &d.y));
        WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
    }
}

static void test_gemm_gated(ptxcu *cu, uint32_t gated) {
    enum { N = 33, M = 9 };
    static float gate[N * K], up[N * K], x[M * K], residual[M * N], gamma[K];
    ptxcu_gemm_desc d;
    ptxcu_call call;
    uint32_t r, c, i;
    memset(&d, 0, sizeof d);
    d.format = d.more[0].format = PTXK_F32;
    d.gated = gated;
    d.norm = 1;
    d.eps = 1e-3f;
    d.gamma = numbers(cu, gamma, 1, K, 0, 0);
    d.x = numbers(cu, x, 2, M, K, 0);
    d.weights = numbers(cu, gate, 2, N, K, 0);
    d.more[0].weights = numbers(cu, up, 2, N, K, 0);
    d.residual = numbers(cu, residual, 2, M, N, 0);
    d.y = make(cu, PTX_F32, 2, M, N, 0);
    for (c = 0; c < M; c++) {
        float scaled[K];
        double rms = 0;
        for (i = 0; i < K; i++) rms += (double)x[c * K + i] * (double)x[c * K + i] / K;
        rms = 1 / sqrt(rms + 1e-3);
        for (i = 0; i < K; i++) scaled[i] = x[c * K + i] * gamma[i];
        for (r = 0; r < N; r++) {
            double g = rms * dot(gate + r * K, scaled, K), u = rms * dot(up + r * K, scaled, K);
            double z = gated == PTXK_GEMM_SWIGLU ? g : 1.59576912160573071176 * (g + 0.044715 * g * g * g);
            if (gated == PTXK_GEMM_CLAMPED) z = 1.702 * (g = fmin(g, 7)), u = fmax(fmin(u, 7), -7) + 1;
            out[0].want[c * N + r] = g / (1 + exp(-z)) * u + (double)residual[c * N + r];
        }
    }
    out[0].t = &d.y, out[0].n = M * N, out[0].off = 1e-3;
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
    WORKS(cu, ptxcu_gemm_prepare(cu, &d, &call));
    three_forms(cu, gated == PTXK_GEMM_SWIGLU ? "gemm, SwiGLU" : "gemm, gated", &call, out, 1, NULL, NULL);
    BAD(gemm, y, d.more[0].y = d.y, PTXCU_E_ARGUMENT, "more[0].y is set, and must not be with gated");
    BAD(gemm, format, d.more[1].format = PTXK_F32, PTXCU_E_ARGUMENT, "more[1].format is set");
    BAD(gemm, third, (d.more[1].format = PTXK_F32, d.more[1].weights = d.weights), PTXCU_E_SHAPE,
        "_GEGLU ...) is two matrices, more[1].format is PTXK_F32");
    BAD(gemm, up, memset(&d.more[0], 0, sizeof d.more[0]), PTXCU_E_ARGUMENT,
        "more[0].weights is zero, and must not be with gated: it is the up matrix");
    BAD(gemm, up, d.more[0].weights.shape[0]--, PTXCU_E_SHAPE, "more[0].weights has 32 rows, must have 33");
    WORKS(cu, ptxcu_tensor_free(cu, &d.gamma));
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.more[0].weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.residual));
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
    WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
}

/* -- rows -- */

enum { ROWS = 5, N = 72 };

static void test_norm(ptxcu *cu) {
    static float x[ROWS * N], residual[ROWS * N], gamma[N], beta[N];
    ptxcu_norm_desc d;
    ptxcu_call call;
    uint32_t i, r;
    memset(&d, 0, sizeof d);
    d.x = numbers(cu, x, 2, ROWS, N, 0);
    d.residual = numbers(cu, residual, 2, ROWS, N, 0);
    d.gamma = numbers(cu, gamma, 1, N, 0, 0);
    d.beta = numbers(cu, beta, 1, N, 0, 0);
    d.y = make(cu, PTX_F32, 2, ROWS, N, 0);
    d.kind = PTXK_NORM_LAYER;
    d.eps = 1e-5f;
    for (r = 0; r < ROWS; r++) {
        double mean = 0, square = 0, *sum = out[1].want + r * N;
        for (i = 0; i < N; i++) sum[i] = (double)x[r * N + i] + (double)residual[r * N + i];
        for (i = 0; i < N; i++) mean += sum[i] / N;
        for (i = 0; i < N; i++) square += (sum[i] - mean) * (sum[i] - mean) / N;
        for (i = 0; i < N; i++)
            out[0].want[r * N + i] =
                (sum[i] - mean) / sqrt(square + 1e-5) * (double)gamma[i] + (double)beta[i];
    }
    out[0].t = &d.y, out[1].t = &d.x;
    out[0].n = out[1].n = ROWS * N, out[0].off = out[1].off = 1e-5;
    WORKS(cu, ptxcu_norm_prepare(cu, &d, &call));
    three_forms(cu, "norm", &call, out, 2, &d.x, x);
    BAD(norm, eps, d.eps = (float)NAN, PTXCU_E_SHAPE, "norm: eps");
    BAD(norm, kind, d.kind = 2, PTXCU_E_SHAPE, "norm: kind is 2");
    BAD(norm, kind, d.kind = 0, PTXCU_E_SHAPE, "norm: beta (PTXK_NORM_BETA) goes with LayerNorm");
    BAD(norm, gamma, memset(&d.gamma, 0, sizeof d.gamma), PTXCU_E_SHAPE,
        "norm: beta (PTXK_NORM_BETA) goes with gamma");
    BAD(norm, x, d.x.owner = NULL, PTXCU_E_ARGUMENT, "norm: x is a zero tensor");
    BAD(norm, y, d.y = d.gamma, PTXCU_E_SHAPE, "norm: y has shape [72], must be [rows, n]");
    BAD(norm, y, d.y = d.x, PTXCU_E_SHAPE, "overlap");
    BAD(norm, beta, d.beta.shape[0]--, PTXCU_E_SHAPE, "norm: beta");
    BAD(norm, residual, d.residual = d.x, PTXCU_E_SHAPE, "overlap");
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
    d.y = d.residual;
    WORKS(cu, ptxcu_norm_prepare(cu, &d, &call));
    WORKS(cu, ptxcu_tensor_free(cu, &d.residual));
    EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_FREED, "norm: residual was freed");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.gamma));
    WORKS(cu, ptxcu_tensor_free(cu, &d.beta));
}

static void test_softmax(ptxcu *cu) {
    static float x[ROWS * N];
    ptxcu_softmax_desc d;
    ptxcu_call call;
    uint32_t i, r;
    memset(&d, 0, sizeof d);
    d.x = numbers(cu, x, 2, ROWS, N, 0);
    d.scale = 3;
    for (r = 0; r < ROWS; r++) {
        double sum = 0;
        for (i = 0; i < N; i++) sum += exp(3 * (double)x[r * N + i]);
        for (i = 0; i < N; i++) out[0].want[r * N + i] = exp(3 * (double)x[r * N + i]) / sum;
    }
    d.y = d.x; /* in place */
    out[0].t = &d.y, out[0].n = ROWS * N, out[0].off = 1e-6;
    WORKS(cu, ptxcu_softmax_prepare(cu, &d, &call));
    three_forms(cu, "softmax", &call, out, 1, &d.x, x);
    BAD(softmax, scale, d.scale = (float)INFINITY, PTXCU_E_SHAPE, "softmax: scale");
    BAD(softmax, unused, d.unused = 3, PTXCU_E_ARGUMENT, "softmax: unused is 3, must be 0");
    BAD(softmax, y, d.y.type = PTX_U32, PTXCU_E_SHAPE, "softmax: y is of type u32");
    BAD(softmax, y, (d.y.address += 16, d.y.shape[0]--, d.x.shape[0]--), PTXCU_E_SHAPE, "overlap");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
}

/* Gate and up side by side in one tensor, the result over the gate. */
static void test_activation(ptxcu *cu) {
    static float x[ROWS * 2 * N];
    ptxcu_activation_desc d;
    ptxcu_call call;
    ptxcu_tensor both = numbers(cu, x, 2, ROWS, 2 * N, 0);
    uint32_t i, r;
    memset(&d, 0, sizeof d);
    WORKS(cu, ptxcu_tensor_narrow(cu, &both, 1, 0, N, &d.x));
    WORKS(cu, ptxcu_tensor_narrow(cu, &both, 1, N, N, &d.up));
    d.y = d.x;
    for (r = 0; r < ROWS; r++)
        for (i = 0; i < N; i++) {
            double g = (double)x[r * 2 * N + i], u = (double)x[r * 2 * N + N + i];
            out[0].want[r * N + i] = g / (1 + exp(-g)) * u;
        }
    out[0].t = &d.y, out[0].n = ROWS * N, out[0].off = 1e-5;
    WORKS(cu, ptxcu_activation_prepare(cu, &d, &call));
    three_forms(cu, "activation", &call, out, 1, &both, x);
    BAD(activation, kind, d.kind = 4, PTXCU_E_SHAPE, "activation: kind is 4");
    BAD(activation, unused, d.unused = 1, PTXCU_E_ARGUMENT, "activation: unused is 1");
    BAD(activation, y, d.y.address += 4, PTXCU_E_SHAPE, "overlaps");
    BAD(activation, up, d.up.type = PTX_F16, PTXCU_E_SHAPE, "activation: up is of type f16, must be f32");
    BAD(activation, x, ptxcu_tensor_transpose(cu, &d.x, 0, 1, &d.x), PTXCU_E_SHAPE, "dense in its last");
    WORKS(cu, ptxcu_tensor_free(cu, &both));
}

static void test_rope(ptxcu *cu) {
    enum { HEADS = 3, D = 16 };
    static float x[ROWS * HEADS * D];
    static const uint32_t positions[ROWS] = {0, 1, 77, 5000, 4000000000u};
    ptxcu_rope_desc d;
    ptxcu_call call;
    double f[D / 2];
    uint32_t t, h, i;
    memset(&d, 0, sizeof d);
    d.x = numbers(cu, x, 3, ROWS, HEADS, D);
    d.positions = make(cu, PTX_U32, 1, ROWS, 0, 0);
    d.frequencies = make(cu, PTX_F64, 1, D / 2, 0, 0);
    d.pairs = PTXK_ROPE_NEOX;
    CHECK(!ptxk_rope_frequencies(D, NULL, f, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.positions, positions, sizeof positions, NULL));
    WORKS(cu, ptxcu_tensor_write(cu, &d.frequencies, f, sizeof f, NULL));
    for (t = 0; t < ROWS; t++)
        for (h = 0; h < HEADS; h++)
            for (i = 0; i < D / 2; i++) {
                size_t at = (t * HEADS + h) * D + i;
                double angle = positions[t] * f[i], a = (double)x[at], b = (double)x[at + D / 2];
                out[0].want[at] = a * cos(angle) - b * sin(angle);
                out[0].want[at + D / 2] = a * sin(angle) + b * cos(angle);
            }
    out[0].t = &d.x, out[0].n = ROWS * HEADS * D, out[0].off = 1e-5;
    WORKS(cu, ptxcu_rope_prepare(cu, &d, &call));
    three_forms(cu, "rope", &call, out, 1, &d.x, x);
    BAD(rope, pairs, d.pairs = 2, PTXCU_E_SHAPE, "rope: pairs is 2");
    BAD(rope, unused, d.unused = 2, PTXCU_E_ARGUMENT, "rope: unused is 2");
    BAD(rope, positions, d.positions.shape[0]--, PTXCU_E_SHAPE, "rope: positions");
    BAD(rope, frequencies, d.frequencies.shape[0] = 9, PTXCU_E_SHAPE, "");
    BAD(rope, frequencies, d.frequencies.type = PTX_F32, PTXCU_E_SHAPE, "must be f64");
    BAD(rope, x, ptxcu_tensor_transpose(cu, &d.x, 0, 1, &d.x), PTXCU_E_SHAPE, "");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.positions));
    WORKS(cu, ptxcu_tensor_free(cu, &d.frequencies));
}

static void test_quantize(ptxcu *cu) {
    static float x[ROWS * N];
    static signed char y[ROWS * N];
    ptxcu_quantize_desc d;
    ptxcu_call call;
    uint32_t r, i, wrong = 0;
    memset(&d, 0, sizeof d);
    d.x = numbers(cu, x, 2, ROWS, N, 0);
    d.y = make(cu, PTX_S8, 2, ROWS, N, 0);
    d.factors = make(cu, PTX_F32, 1, ROWS, 0, 0);
    d.y_type = PTX_S8;
    for (r = 0; r < ROWS; r++) {
        double most = 0;
        for (i = 0; i < N; i++) most = fmax(most, fabs((double)x[r * N + i]));
        out[0].want[r] = most / 127;
    }
    out[0].t = &d.factors, out[0].n = ROWS, out[0].off = 1e-8;
    WORKS(cu, ptxcu_quantize_prepare(cu, &d, &call));
    three_forms(cu, "quantize", &call, out, 1, NULL, NULL);
    WORKS(cu, ptxcu_tensor_read(cu, y, &d.y, sizeof y, NULL));
    for (i = 0; i < ROWS * N; i++)
        if (!(fabs(y[i] * out[0].want[i / N] - (double)x[i]) <= 0.501 * out[0].want[i / N])) wrong++;
    CHECK(!wrong);
    BAD(quantize, y_type, d.y_type = PTX_F32, PTXCU_E_SHAPE, "y_type is PTX_F32");
    BAD(quantize, y_type, d.y_type = PTXK_Q8_0, PTXCU_E_SHAPE, "quantize: n is 72, must be a multiple of 32");
    BAD(quantize, group, d.group = 128, PTXCU_E_SHAPE, "factors");
    BAD(quantize, y, d.y = d.x, PTXCU_E_SHAPE, "quantize: y is of type f32");
    BAD(quantize, factors, d.factors.shape[0]--, PTXCU_E_SHAPE, "factors");
    WORKS(cu, ptxcu_tensor_free(cu, &d.x));
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
    WORKS(cu, ptxcu_tensor_free(cu, &d.factors));
}

static void test_embed(ptxcu *cu) {
    enum { VOCAB = 11 };
    static float table[VOCAB * N];
    static const uint32_t ids[ROWS] = {3, 0, 10, 3, 7};
    ptxcu_embed_desc d;
    ptxcu_call call;
    uint32_t t, i;
    memset(&d, 0, sizeof d);
    d.table = numbers(cu, table, 2, VOCAB, N, 0);
    d.ids = make(cu, PTX_U32, 1, ROWS, 0, 0);
    d.y = make(cu, PTX_F32, 2, ROWS, N, 0);
    d.format = PTXK_F32;
    d.scale = 2;
    WORKS(cu, ptxcu_tensor_write(cu, &d.ids, ids, sizeof ids, NULL));
    for (t = 0; t < ROWS; t++)
        for (i = 0; i < N; i++) out[0].want[t * N + i] = 2 * (double)table[ids[t] * N + i];
    out[0].t = &d.y, out[0].n = ROWS * N, out[0].off = 0;
    WORKS(cu, ptxcu_embed_prepare(cu, &d, &call));
    three_forms(cu, "embed", &call, out, 1, NULL, NULL);
    BAD(embed, format, d.format = 0, PTXCU_E_ARGUMENT, "format of table is 0");
    BAD(embed, format, d.format = PTXK_Q8_0, PTXCU_E_SHAPE, "no whole number of blocks");
    BAD(embed, scale, d.scale = (float)NAN, PTXCU_E_SHAPE, "embed: scale");
    BAD(embed, ids, d.ids = d.table, PTXCU_E_SHAPE, "embed: ids is of type f32");
    BAD(embed, y, (d.y = d.table, d.y.shape[0] = ROWS), PTXCU_E_SHAPE, "overlaps");
    WORKS(cu, ptxcu_tensor_free(cu, &d.table));
    WORKS(cu, ptxcu_tensor_free(cu, &d.ids));
    WORKS(cu, ptxcu_tensor_free(cu, &d.y));
}

static void test_sample(ptxcu *cu) {
    static float logits[ROWS * N];
    ptxcu_sample_desc d;
    ptxcu_call call;
    uint32_t r, i, tokens[ROWS], best[ROWS] = {0, 0, 0, 0, 0}, form;
    memset(&d, 0, sizeof d);
    d.logits = numbers(cu, logits, 2, ROWS, N, 0);
    d.tokens = make(cu, PTX_U32, 1, ROWS, 0, 0);
    d.positions = make(cu, PTX_U32, 1, ROWS, 0, 0);
    WORKS(cu, ptxcu_tensor_write(cu, &d.positions, best, sizeof best, NULL));
    for (r = 0; r < ROWS; r++)
        for (i = 1; i < N; i++)
            if (logits[r * N + i] > logits[r * N + best[r]]) best[r] = i;
    for (form = 0; form < 3; form++) { /* the largest by method, by temperature, by top_k */
        d.method = form == 0 ? PTXK_SAMPLE_ARGMAX : PTXK_SAMPLE_DRAW;
        d.temperature = form == 2 ? 5 : 0;
        d.top_k = form == 2;
        d.seed = random_u32();
        memset(tokens, 0xff, sizeof tokens);
        WORKS(cu, ptxcu_tensor_write(cu, &d.tokens, tokens, sizeof tokens, NULL));
        WORKS(cu, ptxcu_sample(cu, &d, NULL));
        WORKS(cu, ptxcu_tensor_read(cu, tokens, &d.tokens, sizeof tokens, NULL));
        CHECK(!memcmp(tokens, best, sizeof best));
    }
    BAD(sample, method, d.method = 2, PTXCU_E_SHAPE, "sample: method is 2");
    BAD(sample, top_p, d.top_p = 2, PTXCU_E_SHAPE, "sample: top_p is 2");
    BAD(sample, temperature, d.temperature = (float)NAN, PTXCU_E_SHAPE, "sample: temperature");
    BAD(sample, tokens, d.tokens = d.positions, PTXCU_E_SHAPE, "overlaps");
    BAD(sample, tokens, d.tokens.type = PTX_F32, PTXCU_E_SHAPE, "sample: tokens is of type f32, must be u32");
    WORKS(cu, ptxcu_tensor_free(cu, &d.logits));
    WORKS(cu, ptxcu_tensor_free(cu, &d.tokens));
    WORKS(cu, ptxcu_tensor_free(cu, &d.positions));
}

/* One token after the other through two of three experts, each a factor of its own: route, and the way back. */
static void test_route(ptxcu *cu) {
    enum { EXPERTS = 3, CHOSEN = 2 };
    static float scores[ROWS * EXPERTS], x[ROWS * CHOSEN * N];
    ptxcu_route_desc d;
    ptxcu_combine_desc w;
    ptxcu_call call;
    uint32_t r, i, j, e, choices[ROWS * CHOSEN], places[ROWS * CHOSEN], rows[ROWS * CHOSEN], row = 0, wrong = 0;
    memset(&d, 0, sizeof d);
    memset(&w, 0, sizeof w);
    d.scores = numbers(cu, scores, 2, ROWS, EXPERTS, 0);
    d.choices = make(cu, PTX_U32, 2, ROWS, CHOSEN, 0);
    d.places = make(cu, PTX_U32, 2, ROWS, CHOSEN, 0);
    d.weights = make(cu, PTX_F32, 2, ROWS, CHOSEN, 0);
    d.offsets = make(cu, PTX_U32, 1, EXPERTS + 1, 0, 0);
    d.rows = make(cu, PTX_U32, 1, ROWS * CHOSEN, 0, 0);
    d.kind = PTXK_ROUTE_SOFTMAX_CHOSEN;
    for (r = 0; r < ROWS; r++) { /* all but the smallest */
        const float *s = scores + r * EXPERTS;
        uint32_t least = s[0] < s[1] ? s[0] < s[2] ? 0 : 2 : s[1] < s[2] ? 1 : 2;
        uint32_t a = (least + 1) % 3, b = (least + 2) % 3;
        if (s[b] > s[a]) i = a, a = b, b = i;
        choices[r * 2] = a, choices[r * 2 + 1] = b;
        out[0].want[r * 2] = 1 / (1 + exp((double)s[b] - (double)s[a]));
        out[0].want[r * 2 + 1] = 1 - out[0].want[r * 2];
    }
    out[0].t = &d.weights, out[0].n = ROWS * CHOSEN, out[0].off = 1e-6;
    WORKS(cu, ptxcu_route_prepare(cu, &d, &call));
    three_forms(cu, "route", &call, out, 1, NULL, NULL);
    WORKS(cu, ptxcu_tensor_read(cu, places, &d.places, sizeof places, NULL));
    WORKS(cu, ptxcu_tensor_read(cu, rows, &d.rows, sizeof rows, NULL));
    for (e = 0; e < EXPERTS; e++)
        for (i = 0; i < ROWS * CHOSEN; i++)
            if (choices[i] == e && (places[i] != row || rows[row++] != i / CHOSEN)) wrong++;
    CHECK(!wrong && row == ROWS * CHOSEN);
    w.weights = d.weights;
    w.places = d.places;
    w.x = numbers(cu, x, 2, ROWS * CHOSEN, N, 0);
    w.y = make(cu, PTX_F32, 2, ROWS, N, 0);
    for (r = 0; r < ROWS; r++)
        for (i = 0; i < N; i++) {
            double sum = 0, p = 1 / (1 + exp((double)scores[r * 3 + choices[r * 2 + 1]]
                                             - (double)scores[r * 3 + choices[r * 2]]));
            for (j = 0; j < CHOSEN; j++) sum += (j ? 1 - p : p) * (double)x[places[r * 2 + j] * N + i];
            out[0].want[r * N + i] = sum;
        }
    out[0].t = &w.y, out[0].n = ROWS * N, out[0].off = 1e-5;
    WORKS(cu, ptxcu_combine_prepare(cu, &w, &call));
    three_forms(cu, "combine", &call, out, 1, NULL, NULL);
    BAD(route, kind, d.kind = 3, PTXCU_E_SHAPE, "route: kind is 3");
    BAD(route, normalize, d.normalize = 2, PTXCU_E_ARGUMENT, "normalize is 2");
    BAD(route, offsets, d.offsets.shape[0]--, PTXCU_E_SHAPE, "route: offsets");
    BAD(route, rows, d.rows = d.choices, PTXCU_E_SHAPE, "route: rows");
    {
        ptxcu_combine_desc d_kept = w;
#define BAD_COMBINE(change, code, says)                                                                              \
    change;                                                                                                          \
    EXPECT(cu, ptxcu_combine_prepare(cu, &w, &call), code, says);                                                    \
    w = d_kept
        BAD_COMBINE(w.add = 2, PTXCU_E_ARGUMENT, "add is 2");
        BAD_COMBINE(w.y = w.x, PTXCU_E_SHAPE, "combine: y has shape");
        BAD_COMBINE(w.places = d.rows, PTXCU_E_SHAPE, "combine: places has shape");
    }
    WORKS(cu, ptxcu_tensor_free(cu, &d.scores));
    WORKS(cu, ptxcu_tensor_free(cu, &d.choices));
    WORKS(cu, ptxcu_tensor_free(cu, &d.places));
    WORKS(cu, ptxcu_tensor_free(cu, &d.weights));
    WORKS(cu, ptxcu_tensor_free(cu, &d.offsets));
    WORKS(cu, ptxcu_tensor_free(cu, &d.rows));
    WORKS(cu, ptxcu_tensor_free(cu, &w.x));
    WORKS(cu, ptxcu_tensor_free(cu, &w.y));
}

/* -- matmul -- */

/* d = 2 a b - c + bias of two products: a of each, with factors, b shared; each as it is or a transposed view. */
static void test_matmul(ptxcu *cu) {
    enum { M = 5, X = 700, COLUMNS = 9, BATCH = 2 };
    static float a[BATCH * M * X], b[X * COLUMNS], c[BATCH * M * COLUMNS], bias[COLUMNS], factors[BATCH * M];
    ptxcu_matmul_desc d;
    ptxcu_call call;
    ptxcu_tensor a_kept, b_kept, spare;
    uint32_t views, i, j, x, n;
    for (views = 0; views < 4; views++) {
        uint32_t a_step = views & 1 ? M : 1, a_row = views & 1 ? 1 : X;
        uint32_t b_step = views & 2 ? 1 : COLUMNS, b_row = views & 2 ? X : 1;
        memset(&d, 0, sizeof d);
        a_kept = d.a = numbers(cu, a, 3, BATCH, views & 1 ? X : M, views & 1 ? M : X);
        b_kept = d.b = numbers(cu, b, 2, views & 2 ? COLUMNS : X, views & 2 ? X : COLUMNS, 0);
        if (views & 1) WORKS(cu, ptxcu_tensor_transpose(cu, &a_kept, 1, 2, &d.a));
        if (views & 2) WORKS(cu, ptxcu_tensor_transpose(cu, &b_kept, 0, 1, &d.b));
        d.c = numbers(cu, c, 3, BATCH, M, COLUMNS);
        d.bias = numbers(cu, bias, 1, COLUMNS, 0, 0);
        d.a_factors = numbers(cu, factors, 2, BATCH, M, 0);
        d.d = make(cu, PTX_F32, 3, BATCH, M, COLUMNS);
        d.a_kind = PTXK_FACTORS_ROW, d.alpha = 2, d.beta = -1;
        for (n = 0; n < BATCH; n++)
            for (i = 0; i < M; i++)
                for (j = 0; j < COLUMNS; j++) {
                    double sum = 0;
                    for (x = 0; x < X; x++)
                        sum += (double)a[n * M * X + i * a_row + x * a_step] * (double)b[x * b_step + j * b_row];
                    out[0].want[(n * M + i) * COLUMNS + j] = 2 * sum * (double)factors[n * M + i]
                                                             - (double)c[(n * M + i) * COLUMNS + j]
                                                             + (double)bias[j];
                }
        out[0].t = &d.d, out[0].n = BATCH * M * COLUMNS, out[0].off = 1e-3;
        WORKS(cu, ptxcu_matmul_prepare(cu, &d, &call));
        CHECK(call.plan.workspace_bytes > 0);
        EXPECT(cu, ptxcu_call_run(cu, &call, NULL), PTXCU_E_WORKSPACE, "matmul: workspace has 0 bytes");
        WORKS(cu, ptxcu_workspace_create(cu, &call, NULL, &d.workspace));
        WORKS(cu, ptxcu_sync(cu)); /* which clears it in the default stream */
        WORKS(cu, ptxcu_matmul_prepare(cu, &d, &call));
        three_forms(cu, "matmul", &call, out, 1, NULL, NULL);
        spare = d.d; /* in the place of c */
        d.d = d.c;
        WORKS(cu, ptxcu_matmul_prepare(cu, &d, &call));
        three_forms(cu, "matmul in place", &call, out, 1, &d.c, c);
        d.d = spare;
        BAD(matmul, a, d.a.shape[2]--, PTXCU_E_SHAPE, "matmul: b has shape");
        BAD(matmul, a, d.a.type = PTX_BF16, PTXCU_E_SHAPE, "b_type is PTX_F32, must be a_type");
        BAD(matmul, a_type, d.a_type = PTX_F16, PTXCU_E_ARGUMENT, "a_type is PTX_F16, must be PTX_E4M3");
        BAD(matmul, a_type, d.a_type = PTX_E4M3, PTXCU_E_SHAPE, "a is of type f32, must be b8 or u8");
        BAD(matmul, c, memset(&d.c, 0, sizeof d.c), PTXCU_E_ARGUMENT, "c is zero, and beta is -1");
        BAD(matmul, d, d.d = d.bias, PTXCU_E_SHAPE, "matmul: d has shape [9]");
        BAD(matmul, d, d.d = d.a, PTXCU_E_SHAPE, "matmul: ");
        BAD(matmul, d, d.d.address += 36, PTXCU_E_SHAPE, "fields were changed");
        BAD(matmul, bias, d.bias = d.a_factors, PTXCU_E_SHAPE, "matmul: bias has shape");
        BAD(matmul, a_kind, d.a_kind = 0, PTXCU_E_ARGUMENT, "a_factors is set, and its kind is 0");
        BAD(matmul, b_kind, d.b_kind = 2, PTXCU_E_ARGUMENT, "b_factors is zero, and its kind is 2");
        BAD(matmul, a_kind, d.a_kind = 3, PTXCU_E_SHAPE, "matmul: a_factors has shape");
        BAD(matmul, a_kind, d.a_kind = 1, PTXCU_E_SHAPE, "matmul: a_factors has shape");
        BAD(matmul, precision, d.precision = 2, PTXCU_E_SHAPE, "matmul: precision is 2");
        BAD(matmul, activation, d.activation = 9, PTXCU_E_SHAPE, "matmul: activation is 9");
        WORKS(cu, ptxcu_tensor_free(cu, &a_kept));
        WORKS(cu, ptxcu_tensor_free(cu, &b_kept));
        WORKS(cu, ptxcu_tensor_free(cu, &d.c));
        WORKS(cu, ptxcu_tensor_free(cu, &d.d));
        WORKS(cu, ptxcu_tensor_free(cu, &d.bias));
        WORKS(cu, ptxcu_tensor_free(cu, &d.a_factors));
        WORKS(cu, ptxcu_tensor_free(cu, &d.workspace));
    }
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    counter c;
    ptxcu_desc desc;
    ptxcu *cu;
    memset(&c, 0, sizeof c);
    desc = describe(library && *library ? library : NULL, &c);
    start_random();
    WORKS(cu, ptxcu_open(&cu, &desc));
    if (ptxcu_get_error(cu)->code == PTXCU_E_NONE) {
        find_extras(cu);
        test_gemv_of_three(cu);
        test_gemv_swiglu(cu);
        test_gemm_of_three(cu);
        test_gemm_groups(cu);
        test_gemm_bytes(cu);
        test_gemm_gated(cu, PTXK_GEMM_SWIGLU);
        test_gemm_gated(cu, PTXK_GEMM_GEGLU);
        test_gemm_gated(cu, PTXK_GEMM_CLAMPED);
        test_matmul(cu);
        test_norm(cu);
        test_softmax(cu);
        test_activation(cu);
        test_rope(cu);
        test_embed(cu);
        test_quantize(cu);
        test_sample(cu);
        test_route(cu);
    }
    if (calls) CHECK(calls("cuMemAlloc_v2") == calls("cuMemFree_v2"));
    ptxcu_close(cu);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    return check_end();
}
