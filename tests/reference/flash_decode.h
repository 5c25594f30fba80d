/* flash_decode.h - decode attention in double precision, and how far an f32 kernel may be from it. */
#ifndef REFERENCE_FLASH_DECODE_H
#define REFERENCE_FLASH_DECODE_H

#include "numbers.h"

/* One sequence. Zero means: one query, no window, no cap. */
typedef struct ref_attention {
    uint32_t heads, kv_heads, d, queries, window;
    enum ref_format q_format, kv_format, out_format;
    double scale, soft_cap;
    uint64_t rows, length; /* of the caches, [kv_heads][rows][d]; the new tokens are the last of the length */
    uint64_t max_seq;      /* a length above makes all NaN */
    uint32_t chunk, splits; /* how the kernel splits the keys */
    int tensor;             /* by tensor cores */
    const float *sinks;     /* [heads]; NULL: none */
} ref_attention;

/* To tensor cores a number of f16 below 2^-14 has the exponent -14: how much larger they take it. */
static double ref_lifted(const ref_attention *r, double x) {
    if (!r->tensor || r->kv_format != REF_F16 || x == 0 || fabs(x) >= 0x1p-14) return 0;
    return 0x1p-14 - fabs(x);
}

/* The scores of all keys for one row of q, the sizes A = sum |q_j k_j| and B = max |q_j| sum |k_j|. */
static void ref_scores(const ref_attention *r, const void *q, size_t q_row, const double *keys, double *score,
                       double *size, double *floor_size) {
    uint64_t i;
    uint32_t e;
    double x[256], most = 0;
    for (e = 0; e < r->d; e++) {
        x[e] = ref_get(q, r->q_format, q_row * r->d + e);
        if (fabs(x[e]) > most) most = fabs(x[e]);
    }
    for (i = 0; i < r->length; i++) {
        double s = 0, a = 0, b = 0;
        for (e = 0; e < r->d; e++) {
            double k = keys[i * r->d + e], product = x[e] * k;
            s += product;
            a += fabs(product);
            if (ref_lifted(r, k) > 0) a += fabs(x[e]) * ref_lifted(r, k);
            b += fabs(k);
        }
        score[i] = s * r->scale;
        size[i] = a * fabs(r->scale);
        floor_size[i] = b * most * fabs(r->scale);
        if (r->soft_cap > 0) score[i] = r->soft_cap * tanh(score[i] / r->soft_cap);
        if (r->soft_cap > 0 && isinf(a)) size[i] = floor_size[i] = 0; /* the cap itself */
    }
}

/* out[queries][heads][d], bound the same; lse and lse_bound [heads][queries], from q[queries][heads][d].
 *
 * Rules at the edges: a score of -inf has weight 0; if all have, or there is none, the output is 0 and the
 * log-sum-exp -inf; keys with +inf share the weight equally; NaN in a score makes that head NaN; length >
 * max_seq makes all NaN.
 *
 * The bound, with u = 2^-24, for a kernel that keeps scores in base 2, splits a sequence into `splits` parts
 * of at most `chunk` keys, and each part over 4 warps:
 *
 *   score      scalar: c = scale log2 e and q c are rounded (2u), a lane sums at most 8 terms, 5 steps join
 *              32 lanes (13u): |error of s_i| <= 15 u A_i; 16 for the second order. f16 and bf16 are exact
 *              in f32. tensor: q is a sum of terms, exact but for f32 q: two terms of f16 leave 2^-22 of
 *              each element, three of bf16 2^-24. With f16, whose range ends, elements are off by 2^-38 of
 *              the largest, two terms by 2^-51: that much of B_i. Tensor cores add 8 products (or 16, with
 *              one bit more) and the sum so far in one step: each addend but the largest loses up to u of
 *              the largest, and the sum up to 2u: 10u for 8 products, 1.25 d u of A_i in all; the other
 *              terms of q have 2^-8 of A_i at most, and add 2u for d at most 256: 1.3 d u with them. The
 *              sum of the terms, c, and its product: 4u. A subnormal f16 counts as 2^-14 among the
 *              addends: A_i holds it so for K, and for q, whose largest element is 2^14, d 2^-52 of B_i.
 *   cap        2^y, 1 + it, the reciprocal, cap - 2 cap times that: 20 u cap; the derivative is at most 1.
 *   weight     2^(s_i - m): the subtraction is rounded, u |s_i - m| (m grows, so the final m bounds it;
 *              tensor: m may be 15 off, 15 u); ex2.approx is good to 2 ulp <= 4u. m itself cancels in the
 *              quotient, whatever its error. tensor: the weight is the sum of two numbers: f16 2^-22 of it
 *              and 2^-25 beside a total of 2^7 at least, bf16 2^-16.
 *   rescaling  each change of m multiplies by 2^(m - m'): 4u, u for the product, and ln 2 u |m - m'|, where
 *              the m - m' add up to max - min of the scores at most. Where m does not change the factor is
 *              exactly 1. scalar: a lane group sees at least every 8th key of its block in one step, then
 *              come lanes, warps and parts: C = chunk / 8 + 5 + 4 + splits changes at most; tensor: chunk / 64.
 *   sums       scalar: a lane group adds at most chunk / 4 terms, then the joins: G = (chunk / 4 + 5 + 4
 *              + splits) u; tensor: a warp has 16 keys of 64 in two steps of 8 products, twice, for the two
 *              numbers of a weight: 40u for 64 keys, (chunk / 64 + 1) 40u; where v is subnormal, of 2^-14.
 *              In clusters of c blocks splits parts are joined c at a time, then splits / c: together at
 *              most splits + 1, and the first of what is joined is not added to anything.
 *   quotient   the reciprocal and its product: 2u; and the rounding to the output's type.
 *
 * With E_i = (16 u A_i + u (|s_i - m| + range)) + 4u + 5uC + G and w_i the true weights:
 *   |error| <= sum w_i |v_i| E_i + |out| sum w_i E_i + 2u |out|,
 * times 1.1 for the second order, and for what underflows 1e-37 and, with values of f32's range, whose
 * weights are 2^-40 at least, 2^-109 for each addition. The log-sum-exp has sum w_i
 * E_i, and the logarithm's 2^-22 and three roundings. */
static void ref_flash_decode(const ref_attention *r, double *out, double *bound, double *lse,
                             double *lse_bound, const void *q, const void *keys, const void *values) {
    const double u = 0x1p-24;
    uint32_t group = r->heads / r->kv_heads, queries = r->queries ? r->queries : 1, g, h, e, t;
    double chunk = (double)(r->chunk > r->length ? r->length : r->chunk), splits = r->splits;
    double per_score, per_weight, floor_score = 0, floor_weight = 0, changes, adds,
           out_error = r->out_format == REF_F32   ? 0
                       : r->out_format == REF_F16 ? 0x1p-11
                                                  : 0x1p-8;
    double *k_rows, *v_rows, *score, *size, *low;
    uint64_t i;
    per_score = 16 * u;
    per_weight = 4 * u;
    changes = chunk / 8 + 9 + splits;
    adds = chunk / 4 + 9 + splits;
    if (r->tensor) {
        per_score = (1.3 * r->d + 8) * u; /* a step that is not full loses 2u as well */
        if (r->q_format == REF_F32) per_score += r->kv_format == REF_F16 ? 4 * u : u;
        if (r->kv_format == REF_F16) floor_score = (r->q_format == REF_F32 ? 0x1p-51 : 0x1p-38) + r->d * 0x1p-52;
        per_weight += r->kv_format == REF_F16 ? 4 * u : 256 * u;
        if (r->kv_format == REF_F16) floor_weight = 0x1p-32;
        changes = chunk / 64 + 6 + splits;
        adds = 40 * (chunk / 64 + 1) + 9 + splits;
    }
    for (t = 0; t < queries; t++)
        for (h = 0; h < r->heads; h++) {
            lse[h * queries + t] = r->length > r->max_seq ? (double)NAN : (double)-INFINITY;
            lse_bound[h * queries + t] = 0;
            for (e = 0; e < r->d; e++) {
                out[(t * r->heads + h) * r->d + e] = r->length > r->max_seq ? (double)NAN : 0;
                bound[(t * r->heads + h) * r->d + e] = 0;
            }
        }
    if (r->length > r->max_seq) return;
    k_rows = (double *)malloc((size_t)(r->length + 1) * r->d * sizeof *k_rows);
    v_rows = (double *)malloc((size_t)(r->length + 1) * r->d * sizeof *v_rows);
    score = (double *)malloc((size_t)(r->length + 1) * sizeof *score);
    size = (double *)malloc((size_t)(r->length + 1) * sizeof *size);
    low = (double *)malloc((size_t)(r->length + 1) * sizeof *low);
    for (g = 0; g < r->kv_heads; g++) {
        for (i = 0; i < r->length * r->d; i++) {
            k_rows[i] = ref_get(keys, r->kv_format, (size_t)(g * r->rows * r->d + i));
            v_rows[i] = ref_get(values, r->kv_format, (size_t)(g * r->rows * r->d + i));
        }
        for (t = 0; t < queries; t++) {
            uint64_t end = r->length + t + 1 > queries ? r->length + t + 1 - queries : 0, begin = 0;
            if (r->window && end > r->window) begin = end - r->window;
            for (h = g * group; h < (g + 1) * group; h++) { /* scores become weights, sizes become E_i */
                double most = -INFINITY, least = INFINITY, total = 0, error = 0;
                double fixed = (5 * changes + adds) * u + per_weight;
                double *o = out + (size_t)(t * r->heads + h) * r->d,
                       *b = bound + (size_t)(t * r->heads + h) * r->d;
                int nan = 0;
                ref_scores(r, q, (size_t)t * r->heads + h, k_rows, score, size, low);
                for (i = begin; i < end; i++) {
                    if (isnan(score[i])) nan = 1;
                    if (score[i] > most) most = score[i];
                    if (score[i] < least && score[i] > -INFINITY) least = score[i];
                }
                for (i = begin; i < end; i++) {
                    double below = most - score[i];
                    if (isinf(score[i]) || isinf(most)) { /* weights 0 or 1, exactly */
                        size[i] = fixed;
                        score[i] = score[i] == most && most > 0 ? 1 : 0;
                        if (!isinf(most)) score[i] = 0;
                    } else {
                        size[i] = per_score * size[i] + floor_score * low[i] + 20 * u * r->soft_cap
                                  + u * (below + (most - least)) + (r->tensor ? 15 * u : 0) + fixed;
                        score[i] = exp(-below);
                    }
                    total += score[i];
                }
                if (nan) {
                    lse[h * queries + t] = (double)NAN;
                    for (e = 0; e < r->d; e++) o[e] = (double)NAN;
                    continue;
                }
                for (e = 0; e < r->d; e++)
                    b[e] = 1e-37 + (r->kv_format == REF_F16 ? 0 : (adds + changes) * 0x1p-109);
                if (!(total > 0)) continue;
                for (i = begin; i < end; i++) {
                    score[i] /= total;
                    error += score[i] * size[i] + floor_weight;
                }
                lse[h * queries + t] = most + log(total);
                lse_bound[h * queries + t] =
                    1.1 * (error + 4 * u * (fabs(most) + fabs(log(total)) + 20) + 4 * u);
                if (isinf(most)) lse[h * queries + t] = most, lse_bound[h * queries + t] = 0;
                for (i = begin; i < end; i++) {
                    double w = score[i], per = w * size[i] + floor_weight;
                    if (!(w > 0) && !(floor_weight > 0)) continue;
                    for (e = 0; e < r->d; e++) {
                        double v = v_rows[i * r->d + e];
                        if (w > 0) o[e] += w * v;
                        b[e] += per * fabs(v) + w * adds * u * ref_lifted(r, v);
                    }
                }
                for (e = 0; e < r->d; e++) {
                    b[e] = 1.1 * (b[e] + fabs(o[e]) * (error + 2 * u));
                    b[e] += out_error * (fabs(o[e]) + b[e]) + (r->out_format == REF_F16 ? 0x1p-25 : 0);
                }
            }
        }
    }
    for (t = 0; t < queries && r->sinks; t++)
        for (h = 0; h < r->heads; h++)
            ref_add_sink((double)r->sinks[h], out + (size_t)(t * r->heads + h) * r->d,
                         bound + (size_t)(t * r->heads + h) * r->d, r->d, r->out_format, &lse[h * queries + t],
                         &lse_bound[h * queries + t]);
    free(k_rows);
    free(v_rows);
    free(score);
    free(size);
    free(low);
}

#endif
