/* gemv.h - the truth about y = W norm(x), in double precision, W in GGUF's Q4_K.
 *
 * The decoder is written from the format's rules, weight by weight. */
#ifndef REFERENCE_GEMV_H
#define REFERENCE_GEMV_H

#include "numbers.h"

#define REF_Q4_K_BYTES 144u

/* The 256 weights of a block, and of each the size of its two terms: factor * scale * q, minimum. */
static inline void ref_q4_k(const unsigned char *block, double *w, double *size)
{
    double d = ref_from_f16((uint16_t)(block[0] | block[1] << 8));
    double dmin = ref_from_f16((uint16_t)(block[2] | block[3] << 8));
    const unsigned char *b = block + 4, *quants = block + 16;
    int i;
    for (i = 0; i < 256; i++) {
        int j = i >> 5, sc, m, q = quants[32 * (i >> 6) + (i & 31)] >> 4 * (j & 1) & 15;
        if (j < 4) {
            sc = b[j] & 63;
            m = b[j + 4] & 63;
        } else {
            sc = (b[j + 4] & 15) | (b[j - 4] >> 6) << 4;
            m = (b[j + 4] >> 4) | (b[j] >> 6) << 4;
        }
        w[i] = d * sc * q - dmin * m;
        size[i] = fabs(d * sc * q) + fabs(dmin * m);
    }
}

/* The factor that the norm puts before y: 1 / sqrt(mean x^2 + eps), 0 where that is no number. */
static inline double ref_rms(const float *x, uint32_t k, double eps)
{
    double sum = 0;
    uint32_t i;
    for (i = 0; i < k; i++) sum += (double)x[i] * x[i];
    sum = sum / k + eps;
    return sum > 0 ? 1 / sqrt(sum) : sum < 0 || sum > 0 || sum == 0 ? 0 : (double)NAN;
}

/* One row and one column: W_r . (x gamma), with `top` the largest integer that x becomes (127 or 32639).
 *
 * The bound, with u = 2^-24, before the norm's factor:
 *
 *   x          x' = x gamma is rounded (u). A group of 32 has d = amax / top; X = rint(x' top / amax), with
 *              two roundings of the factor, one of the product, one of d:
 *              |X d - x'| <= d / 2 + 5 u amax =: e.
 *   products   sums of integers are exact; they, the scale, the factors and the minimum's product are rounded
 *              at most 8 times on their way into the sum.
 *   sums       a lane adds K / 1024 terms and as many minimums, in slices or not; then 5 steps join the
 *              lanes, and at most K / 1024 slices are added: 3 K / 1024 + 5.
 *
 *   |error| <= sum |w_i| e_i + (3 K / 1024 + 14) u sum size_i (|x'_i| + e_i).
 *
 * *norms gets the product of the 2-norms of the row and of x', for the promise in the manual. */
static inline double ref_gemv(const unsigned char *row, const float *x, const float *gamma, uint32_t k,
                              double top, double *bound, double *norms)
{
    const double u = 0x1p-24;
    double y = 0, direct = 0, rounding = 0, w2 = 0, x2 = 0, w[256], size[256];
    uint32_t b, i, j;
    for (b = 0; b < k / 256; b++) {
        ref_q4_k(row + (size_t)b * REF_Q4_K_BYTES, w, size);
        for (i = 0; i < 256; i += 32) {
            double value[32], most = 0, e;
            for (j = 0; j < 32; j++) {
                value[j] = (double)x[b * 256 + i + j] * (gamma ? (double)gamma[b * 256 + i + j] : 1);
                if (!(fabs(value[j]) <= most)) most = fabs(value[j]);
            }
            e = most / top / 2 + 5 * u * most;
            for (j = 0; j < 32; j++) {
                y += w[i + j] * value[j];
                direct += fabs(w[i + j]) * e;
                rounding += size[i + j] * (fabs(value[j]) + e);
                w2 += w[i + j] * w[i + j];
                x2 += value[j] * value[j];
            }
        }
    }
    *bound = direct + (3 * k / 1024.0 + 14) * u * rounding;
    *norms = sqrt(w2) * sqrt(x2);
    return y;
}

#endif
