/* gemv.h - the truth about y = W norm(x), in double precision, W in any of blocks.h's types. */
#ifndef REFERENCE_GEMV_H
#define REFERENCE_GEMV_H

#include "blocks.h"

#define REF_Q4_K_BYTES 144u

/* The factor that the norm puts before y: 1 / sqrt(mean x^2 + eps), 0 where that is no number. */
static inline double ref_rms(const float *x, uint32_t k, double eps)
{
    double sum = 0;
    uint32_t i;
    for (i = 0; i < k; i++) sum += (double)x[i] * x[i];
    sum = sum / k + eps;
    return sum > 0 ? 1 / sqrt(sum) : sum < 0 || sum > 0 || sum == 0 ? 0 : (double)NAN;
}

/* One row and one column: W_r . (x gamma), with `top` the largest integer that x becomes (127 or 32639; of no
 * meaning for F32, F16 and BF16, whose x stays f32).
 *
 * The bound, with u = 2^-24, before the norm's factor. Quantised types:
 *
 *   x          x' = x gamma is rounded (u). A group of 32 has d = amax / top; X = rint(x' top / amax), with
 *              two roundings of the factor, one of the product, one of d:
 *              |X d - x'| <= d / 2 + 5 u amax =: e.
 *   products   sums of integers are exact; they, the scale, the factors and the minimum's (or the offset's)
 *              product are rounded at most 8 times on their way into the sum. size_i is what the two terms
 *              of a weight are in size: |d scale q| + |minimum|, for Q4_0 |d| (nibble + 8).
 *   sums       a lane adds K / 1024 terms and as many minimums, in slices or not; then 5 steps join the
 *              lanes, and at most K / 1024 slices are added: 3 K / 1024 + 5, 3 more for partial steps.
 *
 *   |error| <= sum |w_i| e_i + (3 K / 1024 + 17) u sum size_i (|x'_i| + e_i).
 *
 * Plain numbers: x' is rounded (u); a lane adds K / 32 fused products, 8 more for a last partial step; 5
 * steps join the lanes, at most K / 256 + 1 slices are added:
 *
 *   |error| <= (K / 32 + K / 256 + 16) u sum |w_i x'_i|.
 *
 * *norms gets the product of the 2-norms of the row and of x', for the promise in the manual. */
static inline double ref_gemv(int type, const unsigned char *row, const float *x, const float *gamma,
                              uint32_t k, double top, double *bound, double *norms)
{
    const double u = 0x1p-24;
    const uint32_t values = (uint32_t)ref_block_values(type), group = values == 1 ? 8 : 32;
    double y = 0, direct = 0, rounding = 0, w2 = 0, x2 = 0;
    uint32_t b, j;
    for (b = 0; b < k; b += group) {
        double value[32], most = 0, e = 0;
        for (j = 0; j < group; j++) {
            value[j] = (double)x[b + j] * (gamma ? (double)gamma[b + j] : 1);
            if (!(fabs(value[j]) <= most)) most = fabs(value[j]);
        }
        if (values > 1) e = most / top / 2 + 5 * u * most;
        for (j = 0; j < group; j++) {
            uint32_t i = b + j;
            const unsigned char *block = row + i / values * ref_block_bytes(type);
            double size, w = ref_weight(type, block, (int)(i % values), &size);
            y += w * value[j];
            direct += fabs(w) * e;
            rounding += size * (fabs(value[j]) + e);
            w2 += w * w;
            x2 += value[j] * value[j];
        }
    }
    if (values > 1) *bound = direct + (3 * k / 1024.0 + 17) * u * rounding;
    else *bound = (k / 32.0 + k / 256.0 + 16) * u * rounding;
    *norms = sqrt(w2) * sqrt(x2);
    return y;
}

/* g / (1 + e^-g) */
static inline double ref_silu(double g)
{
    return g / (1 + exp(-g));
}

#endif
