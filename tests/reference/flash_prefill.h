/* flash_prefill.h - the truth about attention over many queries, in double precision.
 *
 * Written from the definition, a query at a time: two passes, no tiles, no base 2. Beside each output stands
 * a bound of the error that the arithmetic may make; its derivation is above ref_prefill_row. */
#ifndef REFERENCE_FLASH_PREFILL_H
#define REFERENCE_FLASH_PREFILL_H

#include "numbers.h"

/* How exact a type is: the unit roundoff of its products, and of what is stored in it. */
static double ref_unit(enum ref_format format) {
    return format == REF_F32 ? 0x1p-24 : format == REF_F16 ? 0x1p-11 : 0x1p-8;
}

/* One query: out[d], bound[d], and the logarithm of the sum of exponentials with its bound in lse[2]. q is
 * row q_at (elements) of its tensor, key j is row k_at + j * k_stride, likewise v. tile: keys of a tile.
 *
 * Rules at the edges: a score of -inf (or below -2^100) has weight 0; if all have, or no key is seen, the
 * output is 0 and lse -inf; scores of +inf (or above 2^100) share the weight equally; NaN makes the query
 * NaN. With a cap they are +-cap instead.
 *
 * The bound, with u = 2^-24 and e the roundoff of the type that products are made of:
 *   score      products of 16-bit types are exact. Tensor cores add s of them and the sum so far in one
 *              step: each addend but the largest loses up to u of the largest, and the sum up to 2u: (d + 2
 *              (d / s + 1)) u sum |q k| c, 2 (d + 2) u for s = 8, and for f32, of three products with s = 4
 *              (one if FAST), 5 (d + 2) u. In both a subnormal f16 counts as 2^-14. f32: each factor is
 *              off by `product`. A cap: 2^x and the quotient are good to 8 u of at most 2, their product to u:
 *              20 u cap log2 e.
 *   weight     (score - maximum) * c + lift: difference, product and sum are rounded, u (3 |s - m| + 32);
 *              ex2.approx: 4 u. The largest weight is 2^lift: 2^15 in f16, else 2^-32.
 *   rescaling  each change of the maximum, at most one a tile, C in all: 6 u, and ln 2 u 2 (m' - m), which
 *              add up to 2 range.
 *   rounding   weights are rounded to the type for their product with v: e each, and those of f16 below
 *              2^-14 by 2^-25 at most, of a total of 2^15 at least; below 2^-126 2^x is 0, of 2^-32.
 *   sums       n terms, 2 u each, f32 5 u, as for scores; the quotient 4 u.
 *   e4m3       a step adds 32 products and the sum so far, cut to 13 bits below the largest of them, and cuts the
 *              sum: 34 2^-13 of the largest product or sum, for each step; likewise the steps of a tile of weights
 *              times v, of sum w |v|. Weights below 2^-14 of the largest are off by 2^-18 of it.
 * With w_i the true weights, E_i = ln 2 (score error + weight error) + 6 u C + 2 u n (f32: 5 u n) + 4 u:
 *   |error| <= sum w_i |v_i| (E_i + e) + |out| (sum w_i E_i + 4 u + roundoff of out)
 *              + sum |v_i| 2^-40 (f16), 2^-18 (e4m3) or 2^-94 / total,
 * times 1.1 for the second order; 2^-24 (f16) or 1e-37 for what underflows in out; and for what underflows in
 * the sums, 2^-149 for each of n terms, n 2^-117. */
typedef struct ref_prefill {
    const void *q, *k, *v;
    enum ref_format format, out;
    uint32_t d;
    double scale, cap; /* cap 0: none */
    int causal;
    int64_t window;
    uint32_t tile;
    double product; /* roundoff of a factor of q k and of v: 0 where products are exact */
    double weight;  /* roundoff of a weight */
    int e4m3;       /* q, k and v hold such numbers: f16 products, but 13 bits of sums */
    const uint32_t *tree; /* of the query: it sees key tree_base + j if bit j is 1, and all before; NULL: none */
    int64_t tree_base;
} ref_prefill;

/* How much larger subnormal numbers count among the addends. */
static double ref_prefill_lifted(enum ref_format format, double x) {
    return format == REF_F16 && x != 0 && fabs(x) < 0x1p-14 ? 0x1p-14 - fabs(x) : 0;
}

static void ref_prefill_row(const ref_prefill *r, size_t q_at, size_t k_at, size_t k_stride, size_t v_at,
                            size_t v_stride, int64_t position, int64_t length, double *out, double *bound,
                            double lse[2]) {
    const double u = 0x1p-24, ln2 = 0.69314718055994530942, huge = 0x1p100;
    int64_t first = 0, last = length, j, n;
    const double per = r->format == REF_F32 ? 5 * u : 2 * u;
    double most = -INFINITY, least = INFINITY, top = 0, total = 0, error = 0, fixed, *score, *size;
    uint32_t e;
    int nan = 0;
    if (r->window && position - r->window + 1 > first) first = position - r->window + 1;
    if (r->causal && position + 1 < last) last = position + 1;
    if (r->window && position + r->window < last) last = position + r->window;
    n = last > first ? last - first : 0;
    score = (double *)malloc((size_t)(n + 1) * sizeof *score);
    size = (double *)malloc((size_t)(n + 1) * sizeof *size);
    for (j = 0; j < n; j++) {
        double s = 0, a = 0, largest = 0, error_of;
        for (e = 0; e < r->d; e++) {
            double x = ref_get(r->q, r->format, q_at + e);
            double y = ref_get(r->k, r->format, k_at + (size_t)(first + j) * k_stride + e);
            s += x * y;
            a += (fabs(x) + ref_prefill_lifted(r->format, x)) * (fabs(y) + ref_prefill_lifted(r->format, y));
            if (fabs(x * y) > largest) largest = fabs(x * y);
            if (fabs(s) > largest) largest = fabs(s);
        }
        if (s > huge) s = INFINITY;
        if (s < -huge) s = -INFINITY;
        s *= r->scale;
        error_of = (per * (r->d + 2) + 2 * r->product) * a * fabs(r->scale) / ln2;
        if (r->e4m3) error_of += (r->d + 31) / 32 * 34 * 0x1p-13 * largest * fabs(r->scale) / ln2;
        if (r->cap > 0) {
            s = r->cap * tanh(s / r->cap);
            error_of += 20 * u * r->cap / ln2;
        }
        if (r->tree && first + j >= r->tree_base) {
            int64_t bit = first + j - r->tree_base;
            if (!(r->tree[bit / 32] >> bit % 32 & 1)) s = -INFINITY;
        }
        if (isnan(s)) nan = 1;
        if (s > most) most = s;
        if (s < least && s > -INFINITY) least = s;
        if (!isinf(s) && fabs(s) > top) top = fabs(s);
        score[j] = s;
        size[j] = error_of;
    }
    top /= ln2;
    fixed = 6 * u * ((double)n / r->tile + 2) + per * (double)n + 8 * u;
    for (j = 0; j < n && !nan; j++) {
        if (isinf(score[j]) || isinf(most)) { /* weights 0 or 1, exactly */
            score[j] = score[j] == most && most > 0 ? 1 : 0;
            size[j] = fixed;
        } else {
            double below = most - score[j], range = (most - least) / ln2;
            size[j] =
                ln2
                    * (size[j] + u * (3 * below / ln2 + 2 * range + 32))
                + fixed;
            score[j] = exp(-below);
        }
        total += score[j];
    }
    lse[0] = nan ? (double)NAN : total > 0 ? most + log(total) : -INFINITY;
    for (j = 0; j < n && total > 0 && !nan; j++) {
        score[j] /= total;
        if (score[j] > 0) error += score[j] * size[j]; /* size is infinite where q k is, under a cap */
    }
    lse[1] = 1.1 * (error + 8 * u * (1 + fabs(lse[0]) + top));
    for (e = 0; e < r->d; e++) {
        out[e] = nan ? (double)NAN : 0;
        bound[e] = 0;
    }
    for (j = 0; j < n && total > 0 && !nan; j++) {
        for (e = 0; e < r->d; e++) {
            double v = ref_get(r->v, r->format, v_at + (size_t)(first + j) * v_stride + e);
            out[e] += score[j] * v;
            if (score[j] * fabs(v) > 0) bound[e] += score[j] * fabs(v) * (size[j] + r->weight + r->product);
            bound[e] += score[j] * ref_prefill_lifted(r->format, v) * per * (double)n
                        + fabs(v)
                              * (r->e4m3                ? 0x1p-18
                                 : r->format == REF_F16 ? 0x1p-40
                                                        : 0x1p-94)
                              / total;
        }
    }
    for (e = 0; e < r->d && !nan && total > 0; e++)
        bound[e] = 1.1 * (bound[e] + (out[e] != 0 ? fabs(out[e]) * (error + 4 * u + ref_unit(r->out)) : 0))
                   + (r->out == REF_F16 ? 0x1p-24 : 1e-37)
                   + (r->format == REF_F16 ? 0 : (double)n * 0x1p-117);
    free(score);
    free(size);
}

#endif
