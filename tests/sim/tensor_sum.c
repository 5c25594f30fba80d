/* tensor_sum.c - sums of products as the tensor cores of the described chip compute them.
 *
 * Source: P. Xie, Y. Wang, F. Yang, M. Yang, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and
 * Matrix Cores", arXiv 2511.10909 (2025). One step adds C and some products:
 *
 *   1. A NaN, an infinity times 0, or infinities of both signs: NaN. Otherwise an infinity is the result.
 *   2. Every product is exact. Its exponent is the sum of its factors' exponents, so that its significand
 *      lies in [1, 4). A subnormal factor has the least exponent of its format; a zero has -126.
 *   3. All terms, C included, are truncated to `fraction` bits after the binary point of the largest
 *      exponent, and added exactly.
 *   4. The sum is truncated to `kept` bits after its leading one (an f32; never -0), or rounded to
 *      nearest even (an f16).
 *
 * An instruction is one step or several, each of which starts with the result of the one before. */
#include "tensor.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")
#endif
#include "arith.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

enum {
    ZERO = -126,    /* exponent of zero */
    SPECIAL = 600,  /* exponent of infinity and NaN: too large for sum_columns with any other factor */
    COLUMNS = 8,    /* summed side by side */
    CHUNK = 8       /* products whose sum as integers is below 2^30 */
};

/* --- the rule of an instruction ---------------------------------------------------------------- */

static int16_t least_exponent(uint8_t type) /* of the format's subnormal numbers */
{
    switch (type) {
    case E_F16:
    case E_E5M2: return -14;
    case E_E4M3: return -6;
    case E_E3M2: return -2;
    case E_E2M3:
    case E_E2M1:
    case E_E2M1_BYTE: return 0;
    default: return -126;
    }
}

/* How the described chip adds the products of this instruction. What the source leaves open follows the machine
 * instructions that ptxas emits: wmma becomes the chip's mma (tf32: of k 4), sums whose C is f32 are f32, with D
 * rounded to f16 at the end; mma of 8-bit floats on sm_90 and sm_100 becomes mma of elements converted to f16,
 * with C added at the end. Sparse forms have steps of as many products as dense ones; so has m8n8k4, which ptxas
 * replaces by other instructions from sm_80 on. */
sim_sum sim_sum_rule(const sim_tensor *t, sim_matrix_kind kind)
{
    uint32_t sm = sim_the_device()->sm, bits = sim_elements[t->a.type].bits,
             products = t->sparse ? t->k / 2u : t->k, step = products;
    bool f16 = t->d.type == E_F16 && t->c.type == E_F16;
    sim_sum s = { .kept = 23, .group = 1, .f16 = f16,
                  .wide = t->a.type == E_BF16 || t->a.type == E_TF32, .scaled = t->scale_vectors,
                  .least_a = least_exponent(t->a.type), .least_b = least_exponent(t->b.type),
                  .least_c = least_exponent(f16 ? E_F16 : E_F32) };
    if ((t->d.type != E_F32 && t->d.type != E_F16) || sim_option.exact_sums) return s;
    s.fraction = sm < 90 ? 24 : 25;
    if (bits == 16 && sm < 90) step = 8;
    if (bits == 32 && (kind == SIM_WMMA || sm < 90)) step = 4;
    if (bits == 8 && sm < 90) step = 16;
    if (bits == 8 && (kind == SIM_WGMMA || sm < 90)) s.fraction = s.kept = 13;
    if (bits == 8 && kind == SIM_MMA && sm >= 90 && sm < 120) {
        step = products / 2;
        s.pairs = s.c_last = true;
        s.least_a = s.least_b = -14;
    }
    if (bits == 4) {
        s.fraction = 35;
        s.group = t->sparse ? 32 : 16;
    }
    if (step > products) step = products;
    s.step = (uint8_t)(t->sparse ? 2 * step : step);
    return s;
}

/* --- exponents --------------------------------------------------------------------------------- */

static SIM_INLINE int32_t exponent_of(double x, int32_t least)
{
    int32_t e = (int32_t)(UD(x) >> 52 & 0x7ff) - 1023;
    e = e < least ? least : e;
    return UD(x) << 1 ? e : ZERO;
}

static SIM_INLINE double power_of_two(int32_t e) /* -1022 ... 1023 */
{ return D((u64)(e + 1023) << 52); }

void sim_sum_exponents(const double *x, uint32_t n, int32_t least, int32_t *e)
{
    for (uint32_t k = 0; k < n; k++) e[k] = exponent_of(x[k], least);
}

/* The same for f32; SPECIAL for infinities and NaN. */
static SIM_INLINE int32_t float_exponent(float x, int32_t least)
{
    int32_t field = (int32_t)(U(x) >> 23 & 255), e = field - 127;
    e = e < least ? least : e;
    e = field == 255 ? SPECIAL : e;
    return U(x) << 1 ? e : ZERO;
}

/* --- one sum ------------------------------------------------------------------------------------ */

/* Rounds x to the result's format: towards zero, or for f16 to nearest even. */
static double narrow(const sim_sum *s, double x)
{
    if (s->f16) return (double)H(h16(narrow_odd(x))) + 0.0;
    double size = fabs(x);
    if (size >= 0x1p128) return x > 0 ? (double)INFINITY : -(double)INFINITY;
    if (size >= 0x1p-126) return D(UD(x) & ~((UINT64_C(1) << (52 - s->kept)) - 1));
    double unit = power_of_two(-126 - s->kept);
    return trunc(x / unit) * unit + 0.0;
}

/* One step of one element, for any terms: `count` elements of A, and of B with stride n. */
static double sum_one(const sim_sum *s, const double *a, const int32_t *ea, const double *b,
                      const int32_t *eb, uint32_t n, uint32_t count, double c)
{
    double plain = c;
    for (uint32_t z = 0; z < count; z++) plain += a[z] * b[z * n];
    if (isnan(plain) || isinf(plain)) return plain;
    int32_t top = exponent_of(c, s->least_c);
    for (uint32_t z = 0; z < count; z += s->group) {
        int32_t e = ea[z] + eb[z * n];
        top = e > top ? e : top;
    }
    double scale = power_of_two(s->fraction - top);
    int64_t sum = (int64_t)(c * scale);
    for (uint32_t z = 0; z < count; z += s->group) {
        double term = 0;
        for (uint32_t y = z; y < z + s->group; y++) term += a[y] * b[y * n];
        sum += (int64_t)(term * scale);
    }
    return narrow(s, (double)sum * power_of_two(top - s->fraction));
}

/* --- eight columns at once ---------------------------------------------------------------------- */

typedef float floats __attribute__((vector_size(4 * COLUMNS)));
typedef int32_t ints __attribute__((vector_size(4 * COLUMNS)));

/* Whether one of eight sums has nonzero terms below 2^-100, or a term of 2^121 or more. */
static bool leaves_range(const int32_t *top, const float *a, const float *b, uint32_t n, uint32_t count,
                         const float *c)
{
    bool row = false;
    for (uint32_t z = 0; z < count; z++) row |= a[z] != 0;
    for (uint32_t q = 0; q < COLUMNS; q++) {
        if (top[q] > 120 || (top[q] < -100 && c[q] != 0)) return true;
        for (uint32_t z = 0; row && top[q] < -100 && z < count; z++)
            if (a[z] != 0 && b[z * n + q] != 0) return true;
    }
    return false;
}

/* sum_one for eight columns of B. Products are exact in f32; divided by the unit of the last place they are below
 * 2^27, so that CHUNK of them are added as integers. False, with nothing done, if a product, a scale or a result may
 * leave the range of f32. */
static SIM_INLINE bool sum_columns(const sim_sum *s, const float *a, const int32_t *ea, const float *b,
                                   const int32_t *eb, uint32_t n, uint32_t count, float *c)
{
    int32_t top[COLUMNS], sum[COLUMNS], outside = 0;
    float scale[COLUMNS];
    double total[COLUMNS];
    for (uint32_t q = 0; q < COLUMNS; q++) top[q] = float_exponent(c[q], s->least_c);
    const int32_t *exponents = eb;
    for (uint32_t z = 0; z < count; z++, exponents += n)
        for (uint32_t q = 0; q < COLUMNS; q++) {
            int32_t e = exponents[q] + ea[z];
            top[q] = e > top[q] ? e : top[q];
        }
    for (uint32_t q = 0; q < COLUMNS; q++) outside |= (top[q] + 100) | (120 - top[q]);
    if (outside < 0 && leaves_range(top, a, b, n, count, c)) return false;
    for (uint32_t q = 0; q < COLUMNS; q++) {
        int32_t e = s->fraction - top[q];
        scale[q] = F((u32)((e > 127 ? 127 : e) + 127) << 23);
        total[q] = (double)(int32_t)(c[q] * scale[q]);
    }
    floats x, scales;
    memcpy(&scales, scale, sizeof scales);
    const float *row = b;
    for (uint32_t first = 0; first < count; first += CHUNK) {
        ints sums = { 0 };
        uint32_t end = first + CHUNK < count ? first + CHUNK : count;
        for (uint32_t z = first; z < end; z++, row += n) {
            memcpy(&x, row, sizeof x);
            sums += __builtin_convertvector(x * a[z] * scales, ints);
        }
        memcpy(sum, &sums, sizeof sum);
        for (uint32_t q = 0; q < COLUMNS; q++) total[q] += (double)sum[q];
    }
    u64 kept = ~((UINT64_C(1) << (52 - s->kept)) - 1);
    for (uint32_t q = 0; q < COLUMNS; q++) total[q] *= power_of_two(top[q] - s->fraction);
    if (s->f16)
        for (uint32_t q = 0; q < COLUMNS; q++) c[q] = (float)narrow(s, total[q]);
    else
        for (uint32_t q = 0; q < COLUMNS; q++) c[q] = (float)D(UD(total[q]) & kept);
    return true;
}

/* --- the sums of an instruction ----------------------------------------------------------------- */

/* scaled: exponents of A's and B's elements with their scale factors, or NULL. */
static SIM_INLINE void products_by(const sim_sum *s, const double *a, const double *b,
                                   const int32_t *const scaled[2], double *c, uint32_t m, uint32_t n, uint32_t k)
{
    float fa[SIM_MAX_A], fb[SIM_MAX_WIDE_B], fc[SIM_MAX_C];
    int32_t own_a[SIM_MAX_A], own_b[SIM_MAX_WIDE_B];
    const int32_t *ea = scaled ? scaled[0] : own_a, *eb = scaled ? scaled[1] : own_b;
    for (uint32_t e = 0; e < m * k && !scaled; e++) {
        fa[e] = (float)a[e];
        own_a[e] = float_exponent(fa[e], s->least_a);
    }
    for (uint32_t e = 0; e < k * n && !scaled; e++) {
        fb[e] = (float)b[e];
        own_b[e] = float_exponent(fb[e], s->least_b);
    }
    for (uint32_t e = 0; e < m * n; e++) fc[e] = (float)c[e];
    for (uint32_t z = 0; z < k; z += s->step)
        for (uint32_t i = 0; i < m; i++)
            for (uint32_t j = 0; j < n; j += COLUMNS) {
                uint32_t at_a = i * k + z, at_b = z * n + j;
                float *to = fc + i * n + j;
                if (!scaled && sum_columns(s, fa + at_a, ea + at_a, fb + at_b, eb + at_b, n, s->step, to))
                    continue;
                for (uint32_t q = 0; q < COLUMNS; q++)
                    to[q] = (float)sum_one(s, a + at_a, ea + at_a, b + at_b + q, eb + at_b + q, n, s->step,
                                           (double)to[q]);
            }
    for (uint32_t e = 0; e < m * n; e++) c[e] = (double)fc[e];
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void
products_avx2(const sim_sum *s, const double *a, const double *b, const int32_t *const scaled[2], double *c,
              uint32_t m, uint32_t n, uint32_t k)
{ products_by(s, a, b, scaled, c, m, n, k); }
#endif

static void products(const sim_sum *s, const double *a, const double *b, const int32_t *const scaled[2],
                     double *c, uint32_t m, uint32_t n, uint32_t k)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (sim_tensor_avx2) {
        products_avx2(s, a, b, scaled, c, m, n, k);
        return;
    }
#endif
    products_by(s, a, b, scaled, c, m, n, k);
}

/* Reorders k for s->pairs: first elements 0 and 1 of every four, then elements 2 and 3. */
static void order_pairs(double *a, double *b, uint32_t m, uint32_t n, uint32_t k)
{
    double x[128];
    for (uint32_t line = 0; line < m + n; line++) {
        double *from = line < m ? a + line * k : b + (line - m);
        uint32_t step = line < m ? 1 : n;
        for (uint32_t z = 0; z < k; z++) x[(z & 2 ? k / 2 : 0) + z / 4 * 2 + (z & 1)] = from[z * step];
        for (uint32_t z = 0; z < k; z++) from[z * step] = x[z];
    }
}

/* c[m][n] += a[m][k] b[k][n]; n is a multiple of 8. scaled: the exponents of a's and b's elements (see
 * sim_sum_exponents) plus those of their scale factors, or NULL if there are none. */
void sim_sum_products(const sim_sum *s, double *a, double *b, const int32_t *const scaled[2], double *c,
                      uint32_t m, uint32_t n, uint32_t k)
{
    double last[16 * 8];
    if (s->pairs) order_pairs(a, b, m, n, k);
    if (!s->c_last) {
        products(s, a, b, scaled, c, m, n, k);
        return;
    }
    memcpy(last, c, m * n * sizeof *c);
    memset(c, 0, m * n * sizeof *c);
    products(s, a, b, scaled, c, m, n, k);
    for (uint32_t e = 0; e < m * n; e++)
        c[e] = s->f16 ? (double)H(h16(narrow_odd(last[e] + c[e]))) : (double)((float)last[e] + (float)c[e]);
}
