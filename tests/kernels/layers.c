/* layers.c - the operations of a layer: norms, softmax, activations, rotary positions, embeddings,
 * sampling; every shape against double, with bounds derived from the arithmetic (tests/reference/layers.h).
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY (PTXK_OP_NORM | PTXK_OP_SOFTMAX | PTXK_OP_ACTIVATION | PTXK_OP_ROPE | PTXK_OP_EMBED | PTXK_OP_SAMPLE)
#include "../../ptxgen_kernels.h"

#include "../reference/layers.h"
#include "../kerneltest.h"

#define GUARD 64u /* bytes of poison behind an output that must stay */

static const unsigned targets[] = {75, 80, 86, 89, 90};
static ptx_target next_target(void) {
    static uint32_t turn;
    unsigned t = targets[turn++ % (sizeof targets / sizeof *targets)];
    return PTX_SM((int)t <= capability ? t : (unsigned)capability);
}

typedef ptx_code (*emit_fn)(ptx_module *m, const char *site, const void *desc);

static void run_plan(emit_fn emit, const void *desc, const ptx_plan *plan, void *args, size_t bytes) {
    ptx_module_desc module_desc;
    ptx_module *m;
    const char *text;
    void *module;
    uint32_t i;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = next_target();
    m = ptx_module_new(&module_desc);
    emit(m, PTX__AT, desc);
    text = ptx_text(m, NULL);
    if (CHECK_MORE(text != NULL, ptx_get_error(m)->message) && (module = load_text(text)) != NULL) {
        CHECK(plan->args_bytes == bytes);
        if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
        for (i = 0; i < plan->launches; i++) launch_entry(m, module, &plan->launch[i], args, bytes);
        CHECK(cu.cuCtxSynchronize() == 0);
        cu.cuModuleUnload(module);
    }
    check_reports();
    ptx_module_free(m);
}

/* The traffic of the last launches beside the plan's lower bound. */
static void check_traffic(const char *what, const ptx_plan *plan, double most) {
    ptxsim_counters c;
    double ratio;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic of %s: only the CPU driver counts\n", what);
        return;
    }
    cu.ptxsim_counters_get(&c, sizeof c);
    ratio = 32.0 * (double)(c.global_load_sectors + c.global_store_sectors) / (double)plan->min_bytes;
    printf("note: traffic of %s: %.4f of the lower bound\n", what, ratio);
    CHECK_MORE(ratio <= most, what);
}

static enum ref_format ref_of(uint32_t type) {
    return type == PTX_F32 ? REF_F32 : type == PTX_F16 ? REF_F16 : REF_BF16;
}

/* n random numbers of a type, with poison behind. */
static void *random_array(uint32_t type, size_t n, double size) {
    size_t i, bytes = n * ref_bytes(ref_of(type));
    char *p = (char *)malloc(bytes + GUARD);
    for (i = 0; i < n; i++) ref_put(p, ref_of(type), i, random_within(size));
    memset(p + bytes, 0xff, GUARD);
    return p;
}

static void *poison(size_t bytes) {
    void *p = malloc(bytes + GUARD);
    memset(p, 0xff, bytes + GUARD);
    return p;
}

static device_ptr upload_guarded(const void *p, size_t bytes) { return upload(p, bytes + GUARD); }

static void download(void *to, device_ptr from, size_t bytes) {
    const unsigned char *end = (const unsigned char *)to + bytes;
    uint32_t i;
    CHECK(cu.cuMemcpyDtoH(to, from, bytes + GUARD) == 0);
    for (i = 0; i < GUARD && end[i] == 0xff; i++) continue;
    CHECK(i == GUARD);
}

/* What storing adds to an error: half a unit in the last place. */
static double store_error(uint32_t type, double x) {
    if (type == PTX_F16) return fabs(x) * 0x1.01p-11 + 0x1p-25;
    return type == PTX_BF16 ? fabs(x) * 0x1.01p-8 + 1e-40 : 1e-44;
}

static uint32_t any_type(void) {
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    return types[random_below(3)];
}

static double worst; /* of a test: the largest error beside its bound */

static int beside(double have, double want, double bound) {
    double error = fabs(have - want);
    if (isnan(want)) return isnan(have);
    if (error > worst * bound) worst = error / bound;
    return error <= bound;
}

/* -- norm -- */

static void norm_one(ptxk_norm_desc desc, uint32_t rows, double eps, double traffic) {
    ptxk_norm_shape shape;
    ptxk_norm_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxk__row form;
    enum ref_format xf = ref_of(desc.x_type), yf = ref_of(desc.y_type), wf = ref_of(desc.weight_type);
    size_t n = desc.n, total = n * rows, i, xb = total * ref_bytes(xf), yb = total * ref_bytes(yf);
    int adds = (desc.flags & PTXK_NORM_ADD) != 0;
    void *x = random_array(desc.x_type, total, 3), *r = random_array(desc.x_type, total, 2);
    void *y = adds ? random_array(desc.y_type, total, 2) : poison(yb), *added = malloc(yb);
    void *gamma = random_array(desc.weight_type, n, 2), *beta = random_array(desc.weight_type, n, 2), *old;
    double *row = (double *)malloc(n * sizeof *row);
    uint32_t t, wrong = 0, chain;
    char detail[240] = "";
    for (i = 0; i < total; i++) ref_put(x, xf, i, ref_get(x, xf, i) + 0.5); /* a mean that is not 0 */
    old = malloc(xb);
    memcpy(old, x, xb);
    memcpy(added, y, yb);
    shape.rows = rows;
    CHECK_MORE(!ptxk_norm_plan(&desc, &shape, &plan, &why), why.text);
    CHECK(!ptxk__norm_form(&desc, &form, &why));
    chain = form.rounds * form.vec * form.passes;
    memset(&args, 0, sizeof args);
    args.x = upload_guarded(x, xb);
    args.residual = upload(r, xb);
    args.y = upload_guarded(y, yb);
    args.gamma = upload(gamma, n * ref_bytes(wf));
    args.beta = upload(beta, n * ref_bytes(wf));
    args.rows = rows;
    args.eps = (float)eps;
    CHECK_MORE(!ptxk_norm_check(&desc, &args, &why), why.text);
    run_plan(ptxk_norm_emit_, &desc, &plan, &args, sizeof args);
    /* each row reads gamma and beta again, from the L2 cache: beside the plan's bound, which has them once */
    for (t = 1; t < rows; t++) plan.min_bytes += (1 + (desc.flags & PTXK_NORM_BETA) / 2) * n * ref_bytes(wf);
    if (traffic > 0) check_traffic("norm", &plan, traffic);
    download(y, args.y, yb);
    download(x, args.x, xb);
    for (t = 0; t < rows; t++) {
        for (i = 0; i < n; i++) {
            size_t at = t * n + i;
            double stored = ref_get(old, xf, at);
            if (desc.flags & PTXK_NORM_RESIDUAL) { /* one addition in f32, rounded to the type */
                unsigned char one[4];
                ref_put(one, xf, 0, (double)(float)(stored + ref_get(r, xf, at)));
                stored = ref_get(one, xf, 0);
            }
            row[i] = ref_get(x, xf, at);
            if (row[i] != stored && !wrong++)
                (void)snprintf(detail, sizeof detail, "x[%u,%u] is %g, not %g", t, (uint32_t)i, row[i],
                               stored);
        }
        for (i = 0; i<n; i += n> 3000 ? 1 + random_below(200) : 1) {
            double bound, want, have = ref_get(y, yf, t * n + i);
            want = ref_norm(row, (uint32_t)n, (uint32_t)i, desc.kind == PTXK_NORM_LAYER, (double)args.eps,
                            desc.flags & PTXK_NORM_PLAIN ? 1 : ref_get(gamma, wf, i),
                            desc.flags & PTXK_NORM_BETA ? ref_get(beta, wf, i) : 0, chain, &bound);
            if (adds) {
                want += ref_get(added, yf, t * n + i);
                bound += 0x1p-24 * fabs(want);
            }
            bound = 1.01 * bound + store_error(desc.y_type, want);
            if (!beside(have, want, bound) && !wrong++)
                (void)snprintf(detail, sizeof detail,
                               "n %u kind %u types %u %u %u flags %u: y[%u,%u] is %.9g, "
                               "not %.9g +- %.3g",
                               desc.n, desc.kind, desc.x_type, desc.y_type, desc.weight_type, desc.flags, t,
                               (uint32_t)i, have, want, bound);
            if (n > 40) i += random_below(5);
        }
    }
    CHECK_MORE(wrong == 0, detail);
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.residual);
    cu.cuMemFree(args.y);
    cu.cuMemFree(args.gamma);
    cu.cuMemFree(args.beta);
    free(x);
    free(r);
    free(y);
    free(gamma);
    free(beta);
    free(old);
    free(added);
    free(row);
}

static ptxk_norm_desc norm_desc(uint32_t n, uint32_t kind, uint32_t x, uint32_t y, uint32_t w,
                                uint32_t flags) {
    ptxk_norm_desc d;
    d.n = n;
    d.kind = kind;
    d.x_type = x;
    d.y_type = y;
    d.weight_type = w;
    d.flags = flags;
    return d;
}

static void norms_of_every_length(void) {
    static const uint32_t n[] = {1,    2,     3,     8,     31,    32,    33,   100,  256,
                                 896,  1000,  1023,  1024,  1025,  1026,  2047, 2048, 4096,
                                 4104, 16381, 16384, 16385, 20000, 65537, 40960};
    static const ptxk_norm_shape one_row = {1};
    ptxk_norm_desc d;
    ptxk_message why;
    ptx_plan plan;
    uint32_t i, kind;
    worst = 0;
    for (i = 0; i < sizeof n / sizeof *n; i++)
        for (kind = 0; kind < 2; kind++) {
            uint32_t flags = random_below(2) | (kind ? random_below(2) * PTXK_NORM_BETA : 0)
                             | random_below(2) * PTXK_NORM_ADD;
            norm_one(norm_desc(n[i], kind, any_type(), any_type(), any_type(), flags),
                     n[i] > 3000 ? 1 + random_below(2) : 1 + random_below(17), 1e-5, 0);
            norm_one(norm_desc(n[i], kind, PTX_F32, PTX_F32, PTX_F32, 1), 1, 1e-6, 0);
            norm_one(norm_desc(n[i], kind, PTX_F32, PTX_F32, PTX_F32, 0), 1, 0, 0);
            norm_one(norm_desc(n[i], kind, PTX_F32, PTX_F32, PTX_F32, PTXK_NORM_ADD), 2, 1e-5, 0);
        }
    for (kind = 0; kind < 2; kind++) norm_one(norm_desc(300, kind, PTX_F32, PTX_F32, PTX_F32, 4), 9, 1e-5, 0);
    for (kind = 0; kind < 2; kind++) norm_one(norm_desc(300, kind, PTX_F16, PTX_F32, 0, 4), 9, 1e-5, 0);
    d = norm_desc(300, PTXK_NORM_RMS, PTX_F32, PTX_F32, PTX_F64, 4); /* without gamma, still no wrong type */
    CHECK(ptxk_norm_plan(&d, &one_row, &plan, &why) == PTX_E_DESC && strstr(why.text, "weight_type"));
    printf("note: norms: at most %.3f of the bound\n", worst);
    norm_one(norm_desc(4096, PTXK_NORM_RMS, PTX_F32, PTX_F16, PTX_F32, 1), 100, 1e-5, 1.01);
    norm_one(norm_desc(1024, PTXK_NORM_LAYER, PTX_F16, PTX_F16, PTX_F16, 2), 200, 1e-5, 1.01);
    norm_one(norm_desc(2048, PTXK_NORM_RMS, PTX_F32, PTX_F32, PTX_F32, PTXK_NORM_ADD), 50, 1e-5, 1.01);
}

static void norms_of_zeros_and_what_is_not_finite(void) {
    static const double odd[] = {0, NAN, INFINITY, 3e38};
    uint32_t i, n = 777;
    for (i = 0; i < 4; i++) {
        ptxk_norm_desc desc = norm_desc(n, PTXK_NORM_RMS, PTX_F32, PTX_F32, PTX_F32, PTXK_NORM_PLAIN);
        ptxk_norm_shape shape = {2};
        ptxk_norm_args args;
        ptx_plan plan;
        float x[2 * 777], y[2 * 777];
        uint32_t j;
        for (j = 0; j < 2 * n; j++) x[j] = i || j >= n ? 1.0f : 0.0f;
        if (i) x[123] = (float)odd[i];
        CHECK(!ptxk_norm_plan(&desc, &shape, &plan, NULL));
        memset(&args, 0, sizeof args);
        args.x = args.y = upload(x, sizeof x); /* in place */
        args.rows = 2;
        run_plan(ptxk_norm_emit_, &desc, &plan, &args, sizeof args);
        CHECK(cu.cuMemcpyDtoH(y, args.y, sizeof y) == 0);
        for (j = 0; j < n; j++)
            if (i ? !isnan(y[j]) : y[j] != 0) break;
        CHECK(j == n);
        CHECK(fabs((double)y[n] - 1) < 1e-6 && fabs((double)y[2 * n - 1] - 1) < 1e-6);
        cu.cuMemFree(args.x);
    }
}

/* -- softmax -- */

static void softmax_one(uint32_t n, uint32_t rows, uint32_t xt, uint32_t yt, float scale, double size,
                        double traffic) {
    ptxk_softmax_desc desc;
    ptxk_softmax_shape shape;
    ptxk_softmax_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxk__row form;
    size_t total = (size_t)n * rows, yb = total * ref_bytes(ref_of(yt)), xb = total * ref_bytes(ref_of(xt));
    void *x = random_array(xt, total, size), *y = poison(yb);
    double *row = (double *)malloc(3 * n * sizeof *row), *want = row + n, *bound = want + n;
    uint32_t t, i, wrong = 0;
    char detail[200] = "";
    desc.n = n;
    desc.x_type = xt;
    desc.y_type = yt;
    desc.scale = scale;
    shape.rows = rows;
    CHECK_MORE(!ptxk_softmax_plan(&desc, &shape, &plan, &why), why.text);
    CHECK(!ptxk__softmax_form(&desc, &form, &why));
    memset(&args, 0, sizeof args);
    args.x = upload(x, xb);
    args.y = upload_guarded(y, yb);
    args.rows = rows;
    CHECK_MORE(!ptxk_softmax_check(&desc, &args, &why), why.text);
    run_plan(ptxk_softmax_emit_, &desc, &plan, &args, sizeof args);
    if (traffic > 0) check_traffic("softmax", &plan, traffic);
    download(y, args.y, yb);
    for (t = 0; t < rows; t++) {
        for (i = 0; i < n; i++) row[i] = ref_get(x, ref_of(xt), (size_t)t * n + i);
        ref_softmax(row, n, scale > 0 || scale < 0 ? (double)scale : 1, form.rounds * form.vec * form.passes,
                    form.passes, want, bound);
        for (i = 0; i < n; i++) {
            double have = ref_get(y, ref_of(yt), (size_t)t * n + i);
            if (!beside(have, want[i], 1.01 * bound[i] + store_error(yt, want[i])) && !wrong++)
                (void)snprintf(detail, sizeof detail, "n %u: y[%u,%u] is %.9g, not %.9g +- %.3g", n, t, i,
                               have, want[i], bound[i]);
        }
    }
    CHECK_MORE(wrong == 0, detail);
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.y);
    free(x);
    free(y);
    free(row);
}

static void softmax_of_every_length(void) {
    static const uint32_t n[] = {1,    2,    7,    31,   32,    33,    500,   1000,  1023,
                                 1024, 1025, 1028, 4096, 16383, 16384, 16385, 50257, 151936};
    uint32_t i;
    worst = 0;
    for (i = 0; i < sizeof n / sizeof *n; i++) {
        softmax_one(n[i], n[i] > 3000 ? 1 : 1 + random_below(19), any_type(), any_type(), 0, 8, 0);
        softmax_one(n[i], 1, PTX_F32, PTX_F32, i & 1 ? -0.25f : 2.0f, 30, 0);
    }
    printf("note: softmax: at most %.3f of the bound\n", worst);
    softmax_one(4096, 50, PTX_F32, PTX_F32, 0, 5, 1.01);
}

/* Finite numbers of any size, with any scale: products past the range of f32 on either side, differences past
   it, and numbers that differ by less than the scale makes of them. */
static void softmax_of_any_size_and_scale(void) {
    static const uint32_t n[] = {1, 3, 40, 2000, 17000};
    static const float scales[] = {-3.86f, 3.86f, -1, 0.7f, -0.69f, 1e-38f, -2e-38f, 1e30f, -1e30f, 100};
    static const double sizes[] = {3.4e38, 1e38, 1e9, 1e-30};
    uint32_t i, j, l;
    worst = 0;
    for (l = 0; l < 5; l++)
        for (i = 0; i < 10; i++)
            for (j = 0; j < 4; j++)
                if (l < 3 || (i + j) % 5 == l)
                    softmax_one(n[l], l < 3 ? 5 : 1, j == 2 && i % 2 ? PTX_BF16 : PTX_F32, PTX_F32, scales[i],
                                sizes[j], 0);
    for (i = 0; i < 10; i++) softmax_one(40, 3, PTX_BF16, PTX_F32, scales[i], 3.3e38, 0);
    for (i = 0; i < 10; i++) softmax_one(40, 3, PTX_F16, PTX_F32, scales[i], 65000, 0);
    printf("note: softmax of any size: at most %.3f of the bound\n", worst);
}

static void softmax_of_what_is_not_finite(void) {
    static const uint32_t lengths[] = {40, 2000, 17000};
    static const float scales[] = {0.0f, 0.5f, 1e30f, -0.5f, -1e30f, -1.0f};
    uint32_t l, kind, i, turn;
    for (l = 0; l < 3; l++)
        for (turn = 0; turn < 6 * 5; turn++) { /* x times the sign of the scale */
            ptxk_softmax_desc desc = {0, PTX_F32, PTX_F32, 0.0f};
            ptxk_softmax_shape shape = {1};
            ptxk_softmax_args args;
            ptx_plan plan;
            uint32_t n = lengths[l], wrong = 0;
            float *x = (float *)malloc(n * 4);
            kind = turn % 5;
            desc.n = n;
            desc.scale = scales[turn / 5];
            for (i = 0; i < n; i++) x[i] = kind == 0 ? -INFINITY : kind == 4 ? -3e38f : 1.0f;
            if (kind == 1 || kind == 4) x[3] = x[n - 1] = INFINITY;
            for (i = 0; i < n && desc.scale < 0; i++) x[i] = -x[i];
            if (kind == 2) x[5] = NAN;
            if (kind == 3) x[7] = desc.scale < 0 ? INFINITY : -INFINITY;
            CHECK(!ptxk_softmax_plan(&desc, &shape, &plan, NULL));
            memset(&args, 0, sizeof args);
            args.x = args.y = upload(x, n * 4); /* in place */
            args.rows = 1;
            run_plan(ptxk_softmax_emit_, &desc, &plan, &args, sizeof args);
            CHECK(cu.cuMemcpyDtoH(x, args.y, n * 4) == 0);
            for (i = 0; i < n; i++) {
                double want = kind == 0   ? 0
                              : kind == 1 || kind == 4 ? (i == 3 || i == n - 1) * 0.5
                              : kind == 2 ? (double)NAN
                                          : (i == 7 ? 0 : 1.0 / (n - 1));
                if (!(kind == 2 ? isnan(x[i]) : fabs((double)x[i] - want) < 1e-6)) wrong++;
            }
            CHECK(wrong == 0);
            cu.cuMemFree(args.x);
            free(x);
        }
}

/* -- activation -- */

static void activation_one(uint32_t kind, uint32_t gated, uint32_t xt, uint32_t yt, uint32_t rows, uint32_t n,
                           int joined, double traffic) {
    ptxk_activation_desc desc;
    ptxk_activation_shape shape;
    ptxk_activation_args args;
    ptxk_message why;
    ptx_plan plan;
    size_t stride = joined ? 2 * (size_t)n : n, total = stride * rows + n, i, t,
           bytes = ref_bytes(ref_of(xt));
    size_t yb = (size_t)n * rows * ref_bytes(ref_of(yt));
    void *x = random_array(xt, total, 12), *up = random_array(xt, total, kind < 3 ? 3 : 9), *y = poison(yb);
    uint32_t wrong = 0;
    char detail[200] = "";
    desc.kind = kind;
    desc.gated = gated;
    desc.x_type = xt;
    desc.y_type = yt;
    shape.rows = rows;
    shape.n = n;
    CHECK_MORE(!ptxk_activation_plan(&desc, &shape, &plan, &why), why.text);
    memset(&args, 0, sizeof args);
    args.x = upload(x, total * bytes);
    args.up = joined ? args.x + n * bytes : upload(up, total * bytes);
    args.y = upload_guarded(y, yb);
    if (joined) args.x_stride = args.up_stride = stride;
    args.rows = rows;
    args.n = n;
    CHECK_MORE(!ptxk_activation_check(&desc, &args, &why), why.text);
    run_plan(ptxk_activation_emit_, &desc, &plan, &args, sizeof args);
    if (traffic > 0) check_traffic("activation", &plan, traffic);
    download(y, args.y, yb);
    for (t = 0; t < rows; t++)
        for (i = 0; i < n; i++) {
            double bound, want = ref_activation(kind, ref_get(x, ref_of(xt), t * stride + i), &bound);
            double have = ref_get(y, ref_of(yt), t * n + i), factor = 1;
            if (gated)
                factor =
                    joined ? ref_get(x, ref_of(xt), t * stride + n + i) : ref_get(up, ref_of(xt), t * n + i);
            if (kind == PTXK_SWIGLU_CLAMPED) factor = ref_clamped_up(factor);
            bound = 1.01 * bound * fabs(factor) + 0x1p-23 * fabs(want * factor);
            want *= factor;
            if (!beside(have, want, bound + store_error(yt, want)) && !wrong++)
                (void)snprintf(detail, sizeof detail, "kind %u: f(%g) is %.9g, not %.9g +- %.3g", kind,
                               ref_get(x, ref_of(xt), t * stride + i), have, want, bound);
        }
    CHECK_MORE(wrong == 0, detail);
    cu.cuMemFree(args.x);
    if (!joined) cu.cuMemFree(args.up);
    cu.cuMemFree(args.y);
    free(x);
    free(up);
    free(y);
}

static void every_activation(void) {
    static const uint32_t n[] = {1, 2, 3, 7, 8, 255, 256, 1000, 2049};
    uint32_t i, kind;
    worst = 0;
    for (i = 0; i < sizeof n / sizeof *n; i++)
        for (kind = 0; kind < 4; kind++) {
            activation_one(kind, kind == PTXK_SWIGLU_CLAMPED || random_below(2), any_type(), any_type(),
                           1 + random_below(4), n[i], 0, 0);
            activation_one(kind, 1, PTX_F32, PTX_F32, 2, n[i], 1, 0);
        }
    printf("note: activations: at most %.3f of the bound\n", worst);
    activation_one(PTXK_SILU, 1, PTX_F32, PTX_F32, 4, 14336, 1, 1.01);
}

/* -- rope -- */

static void rope_one(uint32_t heads, uint32_t d, uint32_t dims, uint32_t pairs, uint32_t type,
                     uint32_t tokens, int spread) {
    ptxk_rope_desc desc;
    ptxk_rope_shape shape;
    ptxk_rope_args args;
    ptxk_message why;
    ptx_plan plan;
    uint32_t half = (dims ? dims : d) / 2, t, h, i, wrong = 0, *positions;
    size_t row = (size_t)heads * d, stride = spread ? row + 6 : row, total = stride * tokens;
    size_t bytes = total * ref_bytes(ref_of(type));
    void *x = random_array(type, total, 2), *old = malloc(bytes);
    double *f = (double *)malloc((half + 1) * sizeof *f);
    char detail[200] = "";
    memcpy(old, x, bytes);
    positions = (uint32_t *)malloc(tokens * sizeof *positions);
    for (t = 0; t < tokens; t++)
        positions[t] = t == 0 ? 0 : t == 1 ? 0xffffffffu : random_u32() >> random_below(32);
    desc.heads = heads;
    desc.head_dim = d;
    desc.dims = 2 * half;
    desc.pairs = pairs;
    desc.type = type;
    shape.tokens = tokens;
    CHECK(!ptxk_rope_frequencies(2 * half, NULL, f, &why));
    CHECK_MORE(!ptxk_rope_plan(&desc, &shape, &plan, &why), why.text);
    memset(&args, 0, sizeof args);
    args.x = upload_guarded(x, bytes);
    args.positions = upload(positions, tokens * 4);
    args.frequencies = upload(f, half * 8);
    args.stride = spread ? stride : 0;
    args.tokens = tokens;
    CHECK_MORE(!ptxk_rope_check(&desc, &args, &why), why.text);
    run_plan(ptxk_rope_emit_, &desc, &plan, &args, sizeof args);
    download(x, args.x, bytes);
    for (t = 0; t < tokens; t++)
        for (h = 0; h < heads; h++)
            for (i = 0; i < d; i++) {
                size_t at = t * stride + h * d + i, other = at;
                double have = ref_get(x, ref_of(type), at), want = ref_get(old, ref_of(type), at), bound = 0;
                if (i < 2 * half) {
                    uint32_t pair = pairs == PTXK_ROPE_NEOX ? i % half : i / 2;
                    int first = pairs == PTXK_ROPE_NEOX ? i < half : i % 2 == 0;
                    long double angle = (long double)positions[t] * (long double)f[pair];
                    double a, c = (double)cosl(angle), s = (double)sinl(angle);
                    other = pairs == PTXK_ROPE_NEOX ? (first ? at + half : at - half) : at ^ 0;
                    if (pairs != PTXK_ROPE_NEOX) other = first ? at + 1 : at - 1;
                    a = ref_get(old, ref_of(type), other);
                    /* sin and cos of what is below half a turn: 2^-20.5; the angle: 3 roundings in f32 of
                       at most half a turn, 3 in f64 of the whole; two products and a sum */
                    bound = (fabs(a) + fabs(want))
                            * (0x1p-20 * 0.75 + 3 * 3.2 * 0x1p-24 + 3 * 0x1p-53 * (double)angle + 0x1p-23);
                    want = first ? want * c - a * s : want * c + a * s;
                    bound += store_error(type, want);
                }
                if (!(fabs(have - want) <= bound) && !wrong++)
                    (void)snprintf(detail, sizeof detail,
                                   "position %u, head %u, element %u is %.9g, not %.9g +- %.3g", positions[t],
                                   h, i, have, want, bound);
            }
    CHECK_MORE(wrong == 0, detail);
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.positions);
    cu.cuMemFree(args.frequencies);
    free(x);
    free(old);
    free(f);
    free(positions);
}

static void every_rope(void) {
    static const uint32_t heads[] = {1, 2, 3, 4, 5, 14, 32}, d[] = {8, 40, 64, 80, 96, 128, 256};
    uint32_t i, pairs;
    for (i = 0; i < 7; i++)
        for (pairs = 0; pairs < 2; pairs++) {
            rope_one(heads[i], d[i], 0, pairs, PTX_F32, 5, 0);
            rope_one(heads[6 - i], d[i], 2 + 2 * random_below(d[i] / 2), pairs, any_type(), 3, i & 1);
        }
}

static void frequencies_are_scaled_as_described(void) {
    ptxk_rope_scaling s;
    double f[64];
    float factors[32];
    ptxk_message why;
    uint32_t i;
    CHECK(!ptxk_rope_frequencies(128, NULL, f, &why));
    for (i = 0; i < 64; i++) CHECK(fabs(f[i] / pow(10000, -(double)i / 64) - 1) < 1e-13);
    memset(&s, 0, sizeof s);
    s.theta = 500000;
    s.factor = 4;
    CHECK(!ptxk_rope_frequencies(64, &s, f, &why));
    for (i = 0; i < 32; i++) CHECK(fabs(f[i] * 4 / pow(500000, -(double)i / 32) - 1) < 1e-13);
    s.factor = 8, s.low = 1, s.high = 4, s.original = 8192;
    CHECK(!ptxk_rope_frequencies(128, &s, f, &why));
    for (i = 0; i < 64; i++) {
        double plain = pow(500000, -(double)i / 64), wave = 2 * acos(-1.0) / plain, want = plain;
        double smooth = (8192 / wave - 1) / (4 - 1);
        if (wave > 8192.0 / 1)
            want = plain / 8;
        else if (wave > 8192.0 / 4)
            want = (1 - smooth) * plain / 8 + smooth * plain;
        CHECK(fabs(f[i] / want - 1) < 1e-12);
    }
    memset(&s, 0, sizeof s);
    for (i = 0; i < 32; i++) factors[i] = 1.0f + (float)i / 4;
    s.factors = factors;
    CHECK(!ptxk_rope_frequencies(64, &s, f, &why));
    for (i = 0; i < 32; i++) CHECK(fabs(f[i] * (double)factors[i] / pow(10000, -(double)i / 32) - 1) < 1e-13);
    factors[3] = 0;
    CHECK(ptxk_rope_frequencies(64, &s, f, &why) == PTX_E_ARGUMENT && strstr(why.text, "factor 3"));
    CHECK(ptxk_rope_frequencies(63, NULL, f, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_rope_frequencies(64, NULL, NULL, &why) == PTX_E_ARGUMENT);
    memset(&s, 0, sizeof s);
    s.low = 4, s.high = 1, s.original = 10;
    CHECK(ptxk_rope_frequencies(64, &s, f, &why) == PTX_E_ARGUMENT);
}

/* -- embed -- */

static const struct format {
    uint32_t id, block, bytes;
} formats[] = {{PTXK_Q4_K, 256, 144}, {PTXK_Q5_K, 256, 176}, {PTXK_Q6_K, 256, 210}, {PTXK_Q8_0, 32, 34},
               {PTXK_Q4_0, 32, 18},   {PTXK_F32, 1, 4},      {PTXK_F16, 1, 2},      {PTXK_BF16, 1, 2}};

/* Weight i of a row, and in *size what its terms come to. */
static double table_weight(const struct format *f, const unsigned char *row, uint32_t i, double *size) {
    const unsigned char *b = row + (size_t)(i / f->block) * f->bytes;
    double x;
    i %= f->block;
    if (f->id == PTXK_Q4_K) return ref_weight(REF_BLOCK_Q4_K, b, (int)i, size);
    if (f->id == PTXK_Q5_K) return ref_weight(REF_BLOCK_Q5_K, b, (int)i, size);
    if (f->id == PTXK_Q4_0) return ref_weight(REF_BLOCK_Q4_0, b, (int)i, size);
    x = f->id == PTXK_Q6_K   ? ref_q6_k_weight(b, i)
        : f->id == PTXK_Q8_0 ? ref_q8_0_weight(b, i)
        : f->id == PTXK_F32  ? (double)((const float *)(const void *)b)[0]
        : f->id == PTXK_F16  ? ref_f16_at(b)
                             : ref_from_bf16((uint16_t)(b[0] | b[1] << 8));
    *size = fabs(x);
    return x;
}

static void put_half(unsigned char *at, double x) {
    uint16_t h = ref_to_f16(x);
    at[0] = (unsigned char)h;
    at[1] = (unsigned char)(h >> 8);
}

static unsigned char *random_table(const struct format *f, uint32_t rows, uint32_t n, size_t *bytes) {
    size_t blocks = (size_t)rows * (n / f->block), i, j;
    unsigned char *p;
    *bytes = blocks * f->bytes;
    p = (unsigned char *)malloc(*bytes + 8);
    for (i = 0; i < *bytes; i++) p[i] = (unsigned char)random_u32();
    for (i = 0; i < blocks; i++) {
        unsigned char *b = p + i * f->bytes;
        if (f->id == PTXK_Q4_K || f->id == PTXK_Q5_K)
            for (j = 0; j < 4; j += 2) put_half(b + j, random_within(0.01));
        if (f->id == PTXK_Q6_K) put_half(b + 208, random_within(0.001));
        if (f->id == PTXK_Q8_0 || f->id == PTXK_Q4_0) put_half(b, random_within(0.1));
        if (f->id == PTXK_F32) {
            float x = (float)random_within(1);
            memcpy(b, &x, 4);
        }
        if (f->id == PTXK_F16) put_half(b, random_within(1));
        if (f->id == PTXK_BF16) ref_put(p, REF_BF16, i, random_within(1));
    }
    return p;
}

static void embed_one(const struct format *f, uint32_t n, uint32_t yt, float scale) {
    ptxk_embed_desc desc;
    ptxk_embed_shape shape;
    ptxk_embed_args args;
    ptxk_message why;
    ptx_plan plan;
    uint32_t rows = 13, tokens = 6, ids[6], t, i, wrong = 0;
    size_t bytes, yb = (size_t)tokens * n * ref_bytes(ref_of(yt));
    unsigned char *table = random_table(f, rows, n, &bytes);
    void *y = poison(yb);
    char detail[200] = "";
    desc.n = n;
    desc.format = f->id;
    desc.y_type = yt;
    desc.scale = scale;
    shape.tokens = tokens;
    for (t = 0; t < tokens; t++) ids[t] = t == 0 ? 0 : t == 1 ? rows - 1 : t == 2 ? rows : random_below(rows);
    ids[3] = 0xffffffffu;
    CHECK_MORE(!ptxk_embed_plan(&desc, &shape, &plan, &why), why.text);
    memset(&args, 0, sizeof args);
    args.table = upload(table, bytes);
    args.ids = upload(ids, sizeof ids);
    args.y = upload_guarded(y, yb);
    args.rows = rows;
    args.tokens = tokens;
    CHECK_MORE(!ptxk_embed_check(&desc, &args, &why), why.text);
    run_plan(ptxk_embed_emit_, &desc, &plan, &args, sizeof args);
    download(y, args.y, yb);
    for (t = 0; t < tokens; t++)
        for (i = 0; i < n; i++) {
            double size = 0, have = ref_get(y, ref_of(yt), (size_t)t * n + i),
                   factor = scale > 0 ? (double)scale : 1;
            double want = ids[t] >= rows ? (double)NAN
                                         : table_weight(f, table + bytes / rows * ids[t], i, &size) * factor;
            /* factor * scale, the product, the sum, the scale: four roundings of the terms */
            double bound = 5 * 0x1p-24 * size * factor + store_error(yt, want);
            if (!(isnan(want) ? isnan(have) : fabs(have - want) <= bound) && !wrong++)
                (void)snprintf(detail, sizeof detail,
                               "format %u: weight %u of row %u is %.9g, not %.9g +- %.3g", f->id, i, ids[t],
                               have, want, bound);
        }
    CHECK_MORE(wrong == 0, detail);
    cu.cuMemFree(args.table);
    cu.cuMemFree(args.ids);
    cu.cuMemFree(args.y);
    free(table);
    free(y);
}

static void every_embedding(void) {
    uint32_t i, j;
    for (i = 0; i < sizeof formats / sizeof *formats; i++) {
        uint32_t some[4] = {256, 512, 2304, 4096};
        if (formats[i].block == 32) some[0] = 32, some[1] = 96, some[2] = 896;
        if (formats[i].block == 1) some[0] = 1, some[1] = 33, some[2] = 260;
        for (j = 0; j < 4; j++)
            embed_one(&formats[i], some[j], j ? any_type() : PTX_F32, j == 2 ? 22.5f : 0.0f);
    }
}

/* -- sample -- */

static uint32_t sample_run(uint32_t type, uint32_t method, const void *logits, uint32_t n, uint32_t rows,
                           const ptxk_sample_args *wish, uint32_t *tokens, const uint32_t *positions) {
    ptxk_sample_desc desc;
    ptxk_sample_shape shape;
    ptxk_sample_args args = *wish;
    ptxk_message why;
    ptx_plan plan;
    desc.type = type;
    desc.method = method;
    shape.rows = rows;
    shape.n = n;
    memset(tokens, 0xff, rows * 4);
    CHECK_MORE(!ptxk_sample_plan(&desc, &shape, &plan, &why), why.text);
    args.logits = upload(logits, (size_t)rows * n * ref_bytes(ref_of(type)));
    args.tokens = upload(tokens, rows * 4);
    args.positions = positions ? upload(positions, rows * 4) : 0;
    args.rows = rows;
    args.n = n;
    CHECK_MORE(!ptxk_sample_check(&desc, &args, &why), why.text);
    run_plan(ptxk_sample_emit_, &desc, &plan, &args, sizeof args);
    if (method == PTXK_SAMPLE_ARGMAX && n > 10000 && type == PTX_F32) check_traffic("argmax", &plan, 1.01);
    CHECK(cu.cuMemcpyDtoH(tokens, args.tokens, rows * 4) == 0);
    cu.cuMemFree(args.logits);
    cu.cuMemFree(args.tokens);
    if (positions) cu.cuMemFree(args.positions);
    return tokens[0];
}

static uint32_t ref_argmax(const double *x, uint32_t n) {
    uint32_t i, best = 0;
    for (i = 1; i < n; i++)
        if (x[i] > x[best] || (isnan(x[best]) && !isnan(x[i]))) best = i;
    return best;
}

static void argmax_of_every_length(void) {
    static const uint32_t n[] = {1, 2, 31, 32, 33, 1023, 1024, 1025, 5000, 151936};
    uint32_t i, j, t, kind;
    for (i = 0; i < sizeof n / sizeof *n; i++)
        for (kind = 0; kind < 3; kind++) {
            uint32_t rows = n[i] > 5000 ? 1 : 3, type = kind == 2 ? PTX_F32 : any_type(), tokens[3];
            void *x = random_array(type, (size_t)rows * n[i], 10);
            ptxk_sample_args wish;
            memset(&wish, 0, sizeof wish);
            if (kind == 1) /* many equal ones: the first wins; some NaN, some infinite, zeros of both signs */
                for (j = 0; j < rows * n[i]; j++)
                    ref_put(x, ref_of(type), j,
                            random_below(4)   ? (random_below(2) ? 0.0 : -0.0)
                            : random_below(2) ? NAN
                                              : -INFINITY);
            sample_run(type, kind == 2 ? PTXK_SAMPLE_DRAW : PTXK_SAMPLE_ARGMAX, x, n[i], rows, &wish, tokens,
                       NULL);
            for (t = 0; t < rows; t++) {
                double *row = (double *)malloc(n[i] * sizeof *row);
                for (j = 0; j < n[i]; j++) row[j] = ref_get(x, ref_of(type), (size_t)t * n[i] + j);
                CHECK(tokens[t] == ref_argmax(row, n[i]));
                free(row);
            }
            free(x);
        }
}

static void sampling_one(uint32_t n, uint32_t rows, double temperature, uint32_t top_k, double top_p,
                         int kind) {
    uint32_t type = kind == 0 ? any_type() : PTX_F32, tokens[64], positions[64], t, j;
    void *x = random_array(type, (size_t)rows * n, 6);
    double *row = (double *)malloc(n * sizeof *row);
    ptxk_sample_args wish;
    memset(&wish, 0, sizeof wish);
    wish.temperature = (float)temperature;
    wish.top_k = top_k;
    wish.top_p = (float)top_p;
    wish.seed = (uint64_t)random_u32() << 32 | random_u32();
    for (t = 0; t < rows; t++) positions[t] = random_u32();
    for (j = 0; j < rows * n && kind; j++)
        ref_put(x, ref_of(type), j,
                kind == 1   ? (double)random_below(4)
                : kind == 2 ? (random_below(3) ? -(double)INFINITY : (double)NAN)
                            : (random_below(20)  ? -(double)INFINITY
                               : random_below(2) ? (double)INFINITY
                                                 : 5));
    sample_run(type, PTXK_SAMPLE_DRAW, x, n, rows, &wish, tokens, positions);
    for (t = 0; t < rows; t++) {
        char detail[160];
        for (j = 0; j < n; j++) row[j] = ref_get(x, ref_of(type), (size_t)t * n + j);
        (void)snprintf(detail, sizeof detail, "n %u, temperature %g, top_k %u, top_p %g, kind %d: token %u",
                       n, temperature, top_k, top_p, kind, tokens[t]);
        CHECK_MORE(tokens[t] < n
                       && ref_sample_ok(row, n, (double)wish.temperature, top_k, (double)wish.top_p,
                                        ref_random(wish.seed, (uint64_t)t << 32 | positions[t]), tokens[t]),
                   detail);
    }
    free(x);
    free(row);
}

static void samples_are_where_the_random_number_says(void) {
    static const uint32_t n[] = {1, 2, 33, 1000, 5000}, top_k[] = {0, 1, 5, 40, 100000};
    static const double heat[] = {0.05, 0.7, 1, 4}, top_p[] = {0, 0.1, 0.9, 1};
    uint32_t i, j;
    for (i = 0; i < 5; i++)
        for (j = 0; j < 16; j++)
            sampling_one(n[i], n[i] > 1000 ? 3 : 20, heat[j % 4], top_k[random_below(5)], top_p[j / 4],
                         (int)(j % 5 ? 0 : 1 + random_below(3)));
    sampling_one(151936, 1, 0.8, 40, 0.95, 0);
    sampling_one(151936, 1, 1.5, 0, 0, 0);
}

/* -- what is refused -- */

#define REFUSED(call, words) CHECK_MORE((call) != PTX_E_NONE && strstr(why.text, words), why.text)

static void bad_descriptions_are_refused(void) {
    ptxk_message why;
    ptx_plan plan;
    ptxk_norm_desc nd = norm_desc(64, 0, PTX_F32, PTX_F32, PTX_F32, 0), bad;
    ptxk_norm_shape ns = {4};
    ptxk_norm_args na;
    ptxk_softmax_desc sd = {64, PTX_F32, PTX_F32, 0.0f};
    ptxk_softmax_shape ss = {0};
    ptxk_activation_desc ad = {PTXK_SILU, 1, PTX_F32, PTX_F32};
    ptxk_activation_shape as = {70000, 5};
    ptxk_activation_args aa;
    ptxk_rope_desc rd = {2, 8, 8, PTXK_ROPE_NEOX, PTX_F32};
    ptxk_rope_shape rs = {3};
    ptxk_embed_desc ed = {100, PTXK_Q4_K, PTX_F32, 0.0f};
    ptxk_embed_shape es = {3};
    ptxk_sample_desc pd = {PTX_F32, PTXK_SAMPLE_DRAW};
    ptxk_sample_shape ps = {1, 0};
    ptxk_sample_args pa;
    ptx_module *m;
    memset(&na, 0, sizeof na);
    na.rows = 1;
    CHECK(!ptxk_norm_plan(&nd, &ns, &plan, &why) && plan.launches == 1);
    REFUSED(ptxk_norm_plan(NULL, &ns, &plan, &why), "NULL");
    REFUSED(ptxk_norm_plan(&nd, NULL, &plan, &why), "shape");
    bad = nd, bad.n = 0;
    REFUSED(ptxk_norm_plan(&bad, &ns, &plan, &why), "n is 0");
    bad = nd, bad.y_type = PTX_U32;
    REFUSED(ptxk_norm_plan(&bad, &ns, &plan, &why), "y_type");
    bad = nd, bad.flags = PTXK_NORM_BETA;
    REFUSED(ptxk_norm_plan(&bad, &ns, &plan, &why), "beta");
    m = ptx_module_new(NULL);
    CHECK(ptxk_norm_emit(m, &bad) == PTX_E_DESC && strstr(ptx_get_error(m)->message, "layers.c"));
    ptx_module_free(m);
    REFUSED(ptxk_norm_check(&nd, &na, &why), "x is 0");
    na.x = 8;
    REFUSED(ptxk_norm_check(&nd, &na, &why), "16 bytes");
    na.eps = NAN;
    REFUSED(ptxk_norm_check(&nd, &na, &why), "eps");
    bad = nd, bad.flags = PTXK_NORM_ADD;
    na.eps = 0, na.x = na.y = 256, na.gamma = 4096;
    CHECK_MORE(!ptxk_norm_check(&nd, &na, &why), why.text); /* in place, but not where the result is added */
    REFUSED(ptxk_norm_check(&bad, &na, &why), "overlap");
    bad.flags = 16;
    REFUSED(ptxk_norm_plan(&bad, &ns, &plan, &why), "flags is 16");
    CHECK(!ptxk_softmax_plan(&sd, &ss, &plan, &why) && plan.launches == 0);
    sd.scale = INFINITY;
    REFUSED(ptxk_softmax_plan(&sd, &ss, &plan, &why), "scale");
    REFUSED(ptxk_activation_plan(&ad, &as, &plan, &why), "rows");
    ad.kind = PTXK_SWIGLU_CLAMPED, ad.gated = 0;
    REFUSED(ptxk_activation_plan(&ad, &as, &plan, &why), "gated is 0, must be 1 with PTXK_SWIGLU_CLAMPED");
    ad.kind = PTXK_SILU, ad.gated = 1;
    memset(&aa, 0, sizeof aa);
    aa.x = aa.y = 256, aa.rows = 2, aa.n = 4;
    REFUSED(ptxk_activation_check(&ad, &aa, &why), "up is 0");
    aa.x_stride = 3;
    REFUSED(ptxk_activation_check(&ad, &aa, &why), "stride");
    rd.dims = 9;
    REFUSED(ptxk_rope_plan(&rd, &rs, &plan, &why), "dims");
    rd.dims = 0;
    REFUSED(ptxk_rope_plan(&rd, &rs, &plan, &why), "dims is 0");
    rd.dims = 8, rd.pairs = 2;
    REFUSED(ptxk_rope_plan(&rd, &rs, &plan, &why), "pairs");
    REFUSED(ptxk_embed_plan(&ed, &es, &plan, &why), "multiple of 256");
    ed.format = 99;
    REFUSED(ptxk_embed_plan(&ed, &es, &plan, &why), "format is 99");
    ed.format = PTX_U8;
    REFUSED(ptxk_embed_plan(&ed, &es, &plan, &why), "format is PTX_U8");
    REFUSED(ptxk_sample_plan(&pd, &ps, &plan, &why), "n is 0");
    memset(&pa, 0, sizeof pa);
    pa.temperature = -1;
    REFUSED(ptxk_sample_check(&pd, &pa, &why), "temperature");
    pa.temperature = 1, pa.top_p = 1.5f;
    REFUSED(ptxk_sample_check(&pd, &pa, &why), "top_p");
}

int main(void) {
    if (!open_driver()) return 1;
    start_random();
    norms_of_every_length();
    norms_of_zeros_and_what_is_not_finite();
    softmax_of_every_length();
    softmax_of_any_size_and_scale();
    softmax_of_what_is_not_finite();
    every_activation();
    every_rope();
    frequencies_are_scaled_as_described();
    every_embedding();
    argmax_of_every_length();
    samples_are_where_the_random_number_says();
    bad_descriptions_are_refused();
    return check_end();
}
