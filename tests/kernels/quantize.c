/* quantize.c - rows to 8 and 4 bits: values and factors of every type against the rules in double, bytes beyond y
 * untouched, groups of zeros, of tiny and of huge elements, NaN and infinities.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../kerneltest.h"
#include "../reference/blocks.h"

static const struct kind {
    uint32_t y_type, group;
    int type; /* of blocks.h; -1: plain */
    uint32_t unit;
} kinds[] = {{PTX_E4M3, 0, -1, 8},
             {PTX_E4M3, 128, -1, 8},
             {PTX_S8, 0, -1, 8},
             {PTX_S8, 128, -1, 8},
             {PTXK_Q8_0, 0, REF_BLOCK_Q8_0, 32},
             {PTXK_MXFP4, 0, REF_BLOCK_MXFP4, 32},
             {PTXK_NVFP4, 0, REF_BLOCK_NVFP4, 64}};

static double from_e4m3(int x)
{
    int e = x >> 3 & 15, m = x & 7;
    double value = (x & 127) == 127 ? (double)NAN : e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m, -9);
    return x & 128 ? -value : value;
}

/* The largest distance of a value from its neighbour in the type, where values are at most |x| and some. */
static double step_of(const struct kind *k, double x)
{
    int e;
    x = fabs(x);
    if (k->y_type == PTX_S8 || k->y_type == PTXK_Q8_0) return 1;
    (void)frexp(x > 0 ? x : 1e-9, &e);
    if (k->y_type == PTX_E4M3) return ldexp(1, (e - 1 < -6 ? -6 : e - 1) - 3);
    return ldexp(1, (e - 1 < 0 ? 0 : e - 1) - 1);
}

enum { ORDINARY, WIDE, ZEROS, BAD, TINY, CONTENTS };

/* Checks one group: x of it, the values that came back and the factor. */
static int right_group(const struct kind *k, const double *x, const double *value, double factor, uint32_t n,
                       char *detail)
{
    double most = 0, top = k->y_type == PTX_E4M3                                      ? 448
                           : k->type == REF_BLOCK_MXFP4 || k->type == REF_BLOCK_NVFP4 ? 6
                                                                                      : 127;
    double want, slack = 1e-6;
    uint32_t i;
    for (i = 0; i < n; i++) {
        if (!isfinite(x[i])) return 1; /* tested apart */
        if (fabs(x[i]) > most) most = fabs(x[i]);
    }
    if (most < 0x1p-100) most = 0;
    want = most / top;
    if (k->type == REF_BLOCK_MXFP4) want = ldexp(1, (int)fmax(most > 0 ? floor(log2(most)) - 2 : -127, -127));
    if (k->type == REF_BLOCK_Q8_0) slack = 0x1.01p-11 + 0x1p-25 / fmax(want, 1e-30);
    if (k->type == REF_BLOCK_NVFP4) {
        if (want > 448) want = 448;
        slack = 0x1p-4 + 0x1p-10 / fmax(want, 1e-30);
    }
    if (want < 65505 && fabs(factor - want) > slack * want) {
        (void)snprintf(detail, 160, "type %u: factor %.9g, not %.9g", k->y_type, factor, want);
        return 0;
    }
    for (i = 0; i < n && most == 0; i++) {
        if (value[i] == 0) continue;
        (void)snprintf(detail, 160, "type %u: element %u, %.9g, is %.9g, not 0", k->y_type, i, x[i], value[i]);
        return 0;
    }
    for (i = 0; i < n && most > 0; i++) { /* Q8_0: by the factor before it is rounded */
        double f = k->type == REF_BLOCK_Q8_0 ? want : factor, ideal = f > 0 ? x[i] / f : 0, q = value[i];
        if (fabs(ideal) > top) ideal = ideal > 0 ? top : -top;
        if (fabs(q - ideal) <= 0.5 * step_of(k, fmax(fabs(q), fabs(ideal))) + 1e-6 * (1 + fabs(ideal))) continue;
        (void)snprintf(detail, 160, "type %u: element %u, %.9g by %.9g, is %.9g", k->y_type, i, x[i], f, q);
        return 0;
    }
    return 1;
}

static void run_one(const struct kind *k, uint32_t x_type, uint32_t rows, uint32_t n, unsigned target, int content)
{
    ptxk_quantize_desc desc;
    ptxk_quantize_shape shape;
    ptxk_quantize_args args;
    ptx_module_desc module_desc;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m;
    void *module;
    enum ref_format xf = x_type == PTX_F32 ? REF_F32 : x_type == PTX_F16 ? REF_F16 : REF_BF16;
    size_t y_row = k->type < 0 ? n : ref_row_bytes(k->type, n), groups = k->group ? (n + 127) / 128 : 1, e;
    uint32_t size = k->type < 0 ? (k->group ? k->group : n) : k->type == REF_BLOCK_NVFP4 ? 16 : 32, r, i, g;
    void *x = calloc((size_t)rows * n, 4);
    unsigned char *y = (unsigned char *)malloc(rows * y_row + 64);
    float *factors = (float *)malloc(rows * groups * 4 + 64);
    double *xs = (double *)malloc(n * sizeof *xs), *values = (double *)malloc(n * sizeof *values);
    char detail[200] = "";
    uint32_t wrong = 0;
    if ((int)target > capability) target = (unsigned)capability;
    for (e = 0; e < (size_t)rows * n; e++) {
        double v = random_within(1), wide = ldexp(v, (int)random_below(20) - 10
                                                         + (e / 512 % 3         ? 0
                                                            : x_type == PTX_F16 ? -8
                                                                                : -60));
        ref_put(x, xf, e, content == ZEROS  ? 0
                       : content == TINY ? ldexp(v, -100 - (int)random_below(30))
                       : content == WIDE ? wide
                                         : v * v * v * 8);
    }
    if (content == BAD) ref_put(x, xf, (size_t)(rows / 2) * n + n / 2, random_below(2) ? (double)NAN : -HUGE_VAL);
    memset(y, 0xa5, rows * y_row + 64);
    memset(factors, 0xa5, rows * groups * 4 + 64);
    desc.n = n;
    desc.x_type = x_type;
    desc.y_type = k->y_type;
    desc.group = k->group;
    shape.rows = rows;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(target);
    m = ptx_module_new(&module_desc);
    memset(&args, 0, sizeof args);
    args.x = upload(x, (size_t)rows * n * ref_bytes(xf));
    args.y = upload(y, rows * y_row + 64);
    args.factors = upload(factors, rows * groups * 4 + 64);
    args.rows = rows;
    CHECK_MORE(!ptxk_quantize_plan(&desc, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_quantize_check(&desc, &args, &why), why.text);
    CHECK_MORE(!ptxk_quantize_emit(m, &desc), ptx_get_error(m)->message);
    module = load_text(ptx_text(m, NULL));
    if (module) CHECK(launch_entry(m, module, &plan.launch[0], &args, sizeof args));
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuMemcpyDtoH(y, args.y, rows * y_row + 64) == 0);
    CHECK(cu.cuMemcpyDtoH(factors, args.factors, rows * groups * 4 + 64) == 0);
    for (i = 0; i < 64; i++) CHECK(y[rows * y_row + i] == 0xa5);
    for (i = 0; i < 64; i++) CHECK(((unsigned char *)factors)[rows * groups * 4 * (k->type < 0) + i] == 0xa5);
    for (r = 0; r < rows; r++) {
        for (i = 0; i < n; i++) xs[i] = ref_get(x, xf, (size_t)r * n + i);
        for (g = 0; g * size < n; g++) {
            uint32_t first = g * size, count = n - first < size ? n - first : size;
            double factor;
            int bad = 0;
            const unsigned char *row = y + r * y_row, *block = row;
            if (k->type < 0) {
                factor = (double)factors[r * groups + g];
            } else {
                block += first / ref_block_values(k->type) * ref_block_bytes(k->type);
                factor = k->type == REF_BLOCK_Q8_0    ? ref_from_f16(ref_u16(block))
                         : k->type == REF_BLOCK_MXFP4 ? ldexp(1, block[0] - 127)
                                                      : ref_from_ue4m3(block[first / 16 % 4]);
            }
            for (i = 0; i < count; i++) {
                uint32_t at = first + i;
                bad |= !isfinite(xs[at]);
                values[i] = k->y_type == PTX_S8         ? (double)(signed char)row[at]
                            : k->y_type == PTX_E4M3     ? from_e4m3(row[at])
                            : k->type == REF_BLOCK_Q8_0 ? (double)(signed char)block[2 + i]
                            : k->type == REF_BLOCK_MXFP4
                                ? ref_from_e2m1(block[1 + i % 16] >> 4 * (i / 16) & 15)
                                : ref_from_e2m1(block[4 + 8 * (first / 16 % 4) + i % 8] >> 4 * (i / 8) & 15);
            }
            if (bad) {
                CHECK(k->type == REF_BLOCK_MXFP4   ? block[0] == 255
                      : k->type == REF_BLOCK_NVFP4 ? block[first / 16 % 4] == 127
                                                   : isnan(factor));
                continue;
            }
            if (!right_group(k, xs + first, values, factor, count, detail)) wrong++;
        }
    }
    CHECK_MORE(wrong == 0, detail);
    check_reports();
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.y);
    cu.cuMemFree(args.factors);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
    free(x);
    free(y);
    free(factors);
    free(xs);
    free(values);
}

int main(void)
{
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    static const unsigned targets[] = {75, 80, 90};
    uint32_t i, j;
    start_random();
    if (!open_driver()) return 1;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (j = 0; j < 12; j++) {
            uint32_t unit = kinds[i].unit,
                     n = unit * (j < 2 ? 1 : 1 + random_below(j == 11 ? 5000 / unit : 700 / unit));
            run_one(&kinds[i], types[j % 3], 1 + random_below(j == 11 ? 2 : 6), n, targets[(i + j) % 3],
                    (int)j % CONTENTS);
        }
    return check_end();
}
