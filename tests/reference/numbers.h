/* numbers.h - the number formats that kernels store, read and written in double precision. */
#ifndef REFERENCE_NUMBERS_H
#define REFERENCE_NUMBERS_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* -- f16: 1 sign, 5 exponent (bias 15), 10 fraction; bf16: the upper half of an f32 -- */

static inline double ref_from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + fraction, exponent - 25)
                              : ldexp(fraction, -24);
    return h & 0x8000 ? -x : x;
}

/* To nearest, ties to even. */
static inline uint16_t ref_to_f16(double x)
{
    uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
    double a = fabs(x), scaled;
    int exponent, n;
    if (isnan(x)) return 0x7fff;
    if (a >= 65520) return (uint16_t)(sign | 0x7c00);
    if (a < 0x1p-14)
        return (uint16_t)(sign | (int)nearbyint(ldexp(a, 24))); /* may round up to the first normal */
    (void)frexp(a, &exponent);
    scaled = ldexp(a, 11 - exponent); /* 1024 ... 2048 */
    n = (int)nearbyint(scaled);
    return (uint16_t)(sign | (((exponent + 14) << 10) + (n - 1024)));
}

static inline float ref_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double ref_from_bf16(uint16_t h)
{
    return ref_float((uint32_t)h << 16);
}

static inline uint16_t ref_to_bf16(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (isnan(f)) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* What a cache of that type holds. */
enum ref_format { REF_F32, REF_F16, REF_BF16 };

static inline size_t ref_bytes(enum ref_format format)
{
    return format == REF_F32 ? 4 : 2;
}

static inline double ref_get(const void *array, enum ref_format format, size_t index)
{
    if (format == REF_F32) return ((const float *)array)[index];
    return format == REF_F16 ? ref_from_f16(((const uint16_t *)array)[index])
                             : ref_from_bf16(((const uint16_t *)array)[index]);
}

static inline void ref_put(void *array, enum ref_format format, size_t index, double x)
{
    if (format == REF_F32)
        ((float *)array)[index] = (float)x;
    else
        ((uint16_t *)array)[index] = format == REF_F16 ? ref_to_f16(x) : ref_to_bf16(x);
}

/* Adds a sink to a row of attention: a score without a value, by which out[d] shrinks and the log-sum-exp grows.
 * The weight that is left, w = 1 / (1 + e^(sink - lse)), is off by w (1 - w) times the error of the exponent: that
 * of lse, and of differences of base-2 numbers, 8 u (1 + |lse| + |sink|), u = 2^-24. It is 0 where the reciprocal of
 * the total underflows, at 2^126: with f16 products a key counts up to 2^15, so below n 2^-111, 2^-100 for at most 2048
 * keys. A sink of +inf, as which counts what is so times log2(e), has all the weight; NaN makes all NaN. */
static inline void ref_add_sink(double sink, double *out, double *bound, uint32_t d, enum ref_format format,
                                double *lse, double *lse_bound)
{
    const double u = 0x1p-24;
    double w = 1, error = *lse_bound, most = fmax(sink, *lse), keys = *lse > -INFINITY ? fabs(*lse) : 0;
    uint32_t e;
    if (isnan(*lse) || sink < -2.35e38 || (*lse > 0 && isinf(*lse))) return;
    if (!(sink <= 2.35e38)) {
        for (e = 0; e < d; e++) out[e] = isnan(sink) ? sink : 0;
        *lse = isnan(sink) ? sink : INFINITY;
        return;
    }
    if (*lse > -INFINITY) {
        w = 1 / (1 + exp(sink - *lse));
        error += 8 * u * (1 + fabs(*lse) + fabs(sink));
    }
    for (e = 0; e < d && *lse > -INFINITY; e++) {
        bound[e] = 1.1 * (w * bound[e] + fabs(out[e]) * (w * ((1 - w) * error + 6 * u) + 0x1p-100))
                   + (format == REF_F16 ? 0x1p-24 : 1e-37);
        out[e] *= w;
    }
    *lse = *lse > -INFINITY ? most + log1p(exp(fmin(sink, *lse) - most)) : sink;
    *lse_bound = 1.1 * (w * error + 8 * u * (1 + fabs(*lse) + keys));
}

#endif
