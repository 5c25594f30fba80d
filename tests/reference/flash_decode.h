/* flash_decode.h - the truth about decode attention, in double precision.
 *
 * Written from the definition (softmax over the keys of a sequence), not from the kernel: two passes, no
 * online softmax, no base 2. Beside each output stands a bound of the error that f32 arithmetic may make;
 * its derivation is above ref_flash_decode. */
#ifndef REFERENCE_FLASH_DECODE_H
#define REFERENCE_FLASH_DECODE_H

#include "numbers.h"


/* One sequence: out[heads][d] and bound[heads][d] from q[heads][d] and caches [kv_heads][max_seq][d].
 *
 * Rules at the edges: a score of -inf has weight 0; if all have, or there is none, the output is 0; keys
 * with +inf share the weight equally; NaN in a score makes that head NaN; length > max_seq makes all NaN.
 *
 * The bound, with u = 2^-24, for an f32 kernel that keeps scores in base 2, splits a sequence into `splits`
 * parts of at most `chunk` keys, and each part over 4 warps and groups of lanes:
 *
 *   score      c = scale log2 e and q c are rounded (2u), a lane sums at most 8 terms, 5 steps join 32 lanes
 *              (13u): |error of s_i| <= 15 u A_i with A_i = sum |q_j k_j| |c|; 16 for the second order. f16
 *              and bf16 are exact in f32.
 *   weight     2^(s_i - m): the subtraction is rounded, u |s_i - m| (m grows, so the final m bounds it);
 *              ex2.approx is good to 2 ulp <= 4u. m itself cancels in the quotient, whatever its error.
 *   rescaling  each change of m multiplies by 2^(m - m'): 4u, u for the product, and ln 2 u |m - m'|, where
 *              the m - m' add up to max - min of the scores at most. Where m does not change the factor is
 *              exactly 1. A lane group sees at least every 8th key of its block in one step, then come lanes,
 *              warps and parts: C = chunk / 8 + 5 + 4 + splits changes at most.
 *   sums       a lane group adds at most chunk / 4 terms, then the joins: G = (chunk / 4 + 5 + 4 + splits) u.
 *   quotient   the reciprocal and its product: 2u.
 *
 * With E_i = ln 2 (16 u A_i + u (|s_i - m| + range)) + 4u + 5uC + G and w_i the true weights:
 *   |error| <= sum w_i |v_i| E_i + |out| sum w_i E_i + 2u |out|,
 * times 1.1 for the second order, and an absolute 1e-37 for what underflows. */
static void ref_flash_decode(double *out, double *bound, const float *q, const void *keys,
                             const void *values, enum ref_format format, uint32_t heads, uint32_t kv_heads,
                             uint32_t d, uint64_t max_seq, uint64_t length, double scale, uint32_t chunk,
                             uint32_t splits)
{
    const double u = 0x1p-24, ln2 = 0.69314718055994530942;
    uint32_t group = heads / kv_heads, g, h, e;
    uint64_t i;
    double *row, *score, *size;
    if (chunk > length) chunk = (uint32_t)length;
    for (i = 0; i < (uint64_t)heads * d; i++) {
        out[i] = length > max_seq ? (double)NAN : 0;
        bound[i] = 0;
    }
    if (!length || length > max_seq) return;
    row = (double *)malloc(d * sizeof *row);
    score = (double *)malloc((size_t)(length * group) * sizeof *score);
    size = (double *)malloc((size_t)(length * group) * sizeof *size);
    for (g = 0; g < kv_heads; g++) {
        for (i = 0; i < length; i++) {
            for (e = 0; e < d; e++) row[e] = ref_get(keys, format, (size_t)((g * max_seq + i) * d + e));
            for (h = 0; h < group; h++) {
                const float *x = q + (size_t)(g * group + h) * d;
                double s = 0, a = 0;
                for (e = 0; e < d; e++) {
                    double product = x[e] * row[e];
                    s += product;
                    a += fabs(product);
                }
                score[h * length + i] = s * scale;
                size[h * length + i] = a * fabs(scale) / ln2;
            }
        }
        for (h = 0; h < group; h++) { /* scores become weights, sizes become E_i */
            double *s = score + h * length, *a = size + h * length, most = -INFINITY, least = INFINITY,
                   total = 0;
            double fixed = (4 + 5 * (chunk / 8.0 + 9 + splits) + (chunk / 4.0 + 9 + splits)) * u, error = 0;
            int nan = 0;
            for (i = 0; i < length; i++) {
                if (isnan(s[i])) nan = 1;
                if (s[i] > most) most = s[i];
                if (s[i] < least && s[i] > -INFINITY) least = s[i];
            }
            for (i = 0; i < length; i++) {
                double below = most - s[i];
                if (isinf(s[i]) || isinf(most)) { /* weights 0 or 1, exactly */
                    a[i] = fixed;
                    s[i] = s[i] == most && most > 0 ? 1 : 0;
                    if (!isinf(most)) s[i] = 0;
                } else {
                    a[i] = ln2 * (16 * u * a[i] + u * (below + (most - least)) / ln2) + fixed;
                    s[i] = exp(-below);
                }
                total += s[i];
            }
            for (i = 0; i < length && total > 0; i++) {
                s[i] /= total;
                error += s[i] * a[i];
            }
            for (e = 0; e < d; e++) {
                double *o = out + (size_t)(g * group + h) * d + e,
                       *b = bound + (size_t)(g * group + h) * d + e;
                *o = nan ? (double)NAN : 0;
                *b = 0;
                if (nan) continue;
                *b = 1e-37;
            }
            for (i = 0; i < length && !nan; i++) {
                double *o = out + (size_t)(g * group + h) * d, *b = bound + (size_t)(g * group + h) * d;
                if (s[i] <= 0) continue;
                for (e = 0; e < d; e++) {
                    double v = ref_get(values, format, (size_t)((g * max_seq + i) * d + e));
                    o[e] += s[i] * v;
                    b[e] += s[i] * a[i] * fabs(v);
                }
            }
            for (e = 0; e < d && !nan; e++) {
                double *o = out + (size_t)(g * group + h) * d + e,
                       *b = bound + (size_t)(g * group + h) * d + e;
                *b = 1.1 * (*b + fabs(*o) * (error + 2 * u));
            }
        }
    }
    free(row);
    free(score);
    free(size);
}

#endif
