/* layers.h - the truth about the operations of a layer, in double precision: norms, softmax, activations,
 * rotary positions, embeddings, sampling. */
#ifndef REFERENCE_LAYERS_H
#define REFERENCE_LAYERS_H

#include "gemv.h"

/* -- norms: y = (x - mean) / sqrt(mean (x - mean)^2 + eps) gamma + beta; without `layer` the mean is 0 --

   The bound, with u = 2^-24 and chains of `chain` additions in a thread and 10 between threads:
     mean      m is off by dm = (chain + 12) u mean|x|
     squares   positive terms: (chain + 12) u relative; a wrong mean adds dm^2 for each element (the
               linear term sums to zero)
     factor    the root halves what is relative; division, addition, root, reciprocal: 4 u
     y         (x - m) has dm + u |x - m|, then two products and a sum: 3 u. */
static inline double ref_norm(const double *x, uint32_t n, uint32_t i, int layer, double eps, double gamma,
                              double beta, uint32_t chain, double *bound) {
    const double u = 0x1p-24;
    double mean = 0, squares = 0, size = 0, dm = 0, d, y, relative;
    uint32_t j;
    for (j = 0; j < n; j++) mean += x[j], size += fabs(x[j]);
    mean = layer ? mean / n : 0;
    if (layer) dm = (chain + 12) * u * size / n;
    for (j = 0; j < n; j++) squares += (x[j] - mean) * (x[j] - mean);
    squares = squares / n + eps;
    d = x[i] - mean;
    y = squares > 0 ? d / sqrt(squares) * gamma : 0;
    relative = ((chain + 12) * u + (squares > 0 ? dm * dm / squares : 0)) / 2 + 4 * u;
    *bound = fabs(y) * (relative + 4 * u) + (squares > 0 ? fabs(gamma) * dm / sqrt(squares) : 0)
             + u * fabs(y + beta);
    return y + beta;
}

/* -- softmax: out gets the whole row; with relative bounds --
   An exponent in base 2 is a = x s log2 e, rounded twice (constant, product), the difference once more: off
   by u (2 |a| + 2 |top| + |a - top|); with |s| log2 e above 1 the difference comes first, and is off by
   3 u |a - top|. Times ln 2, and ex2's own 2^-22. A long row rescales its sum once a pass. */
static inline void ref_softmax(const double *x, uint32_t n, double scale, uint32_t chain, uint32_t passes,
                               double *out, double *bound) {
    const double u = 0x1p-24;
    double top = -INFINITY, sum = 0, worst = 0;
    int late = fabs(scale) * 1.4426950408889634 > 1;
    uint32_t j;
    for (j = 0; j < n; j++)
        if (x[j] * scale > top) top = x[j] * scale;
    for (j = 0; j < n; j++) {
        double a = x[j] * scale;
        out[j] = exp(a - top);
        sum += out[j];
        bound[j] = u * (late ? 3 * fabs(a - top) : 2 * fabs(a) + 2 * fabs(top) + fabs(a - top)) + 4 * u;
        if (out[j] > 1e-9 && bound[j] > worst) worst = bound[j];
    }
    for (j = 0; j < n; j++) {
        out[j] /= sum;
        bound[j] = out[j] * (bound[j] + worst + (chain + 14 + 8 * passes) * u) + 1e-37;
    }
}

/* -- activations; kind as PTXK_SILU ... -- */
static inline double ref_activation(uint32_t kind, double x, double *bound) {
    const double u = 0x1p-24, c = sqrt(2 / acos(-1.0));
    double y, v;
    if (kind == 3) { /* up: see ref_clamped_up */
        x = fmin(x, 7);
        y = x / (1 + exp(-1.702 * x));
        *bound = fabs(y) * (4 * fabs(x) + 9) * u + 1e-37;
        return y;
    }
    if (kind == 0) { /* the exponent is rounded twice: 2 u |x|; ex2 4 u, sum u, reciprocal 2 u, product u */
        y = x / (1 + exp(-x));
        *bound = fabs(y) * (2 * fabs(x) + 9) * u + 1e-37;
    } else if (kind == 1) { /* five roundings of the exponent */
        v = 2 * c * (x + 0.044715 * x * x * x);
        y = x / (1 + exp(-v));
        *bound = fabs(y) * (5 * fabs(v) + 9) * u + 1e-37;
    } else { /* the polynomial's own 1.5e-7 of erf; |x| h has 20 roundings and an exponent of x^2 / 2 */
        double h = erfc(fabs(x) / sqrt(2.0)) / 2;
        y = (x > 0 ? x : 0) - fabs(x) * h;
        *bound = fabs(x) * 0.75e-7 + fabs(x) * h * (1.5 * x * x + 20) * u + u * fabs(y) + 1e-37;
    }
    return y;
}

/* What kind 3 multiplies by. */
static inline double ref_clamped_up(double up) { return fmax(fmin(up, 7), -7) + 1; }

/* -- blocks -- */

#define REF_Q6_K_BYTES 210u
#define REF_Q8_0_BYTES 34u

static inline double ref_f16_at(const unsigned char *p) { return ref_from_f16((uint16_t)(p[0] | p[1] << 8)); }

static inline double ref_q6_k_weight(const unsigned char *b, uint32_t i) {
    uint32_t n = i >> 7, k = (i & 127) >> 5, l = i & 31;
    int lo = b[64 * n + 32 * (k & 1) + l] >> 4 * (k >> 1) & 15, hi = b[128 + 32 * n + l] >> 2 * k & 3;
    int scale = b[192 + (i >> 4)];
    if (scale > 127) scale -= 256;
    return ref_f16_at(b + 208) * scale * ((lo | hi << 4) - 32);
}

static inline double ref_q8_0_weight(const unsigned char *b, uint32_t i) {
    int q = b[2 + i];
    if (q > 127) q -= 256;
    return ref_f16_at(b) * q;
}

/* -- sampling -- */

static inline uint64_t ref_random(uint64_t seed, uint64_t counter) {
    uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

typedef struct ref_candidate {
    double logit;
    uint32_t token;
} ref_candidate;

static inline int ref_by_logit(const void *a, const void *b) {
    const ref_candidate *x = (const ref_candidate *)a, *y = (const ref_candidate *)b;
    double p = isnan(x->logit) ? -INFINITY : x->logit, q = isnan(y->logit) ? -INFINITY : y->logit;
    if (isnan(x->logit) != isnan(y->logit) && p == q) return isnan(x->logit) ? 1 : -1;
    if (p != q) return p > q ? -1 : 1;
    return x->token < y->token ? -1 : x->token > y->token;
}

/* Whether `token` is what sampling may give: weights in single precision are within 1e-5 of the true ones, so
   a threshold may fall on either side of it by that much. */
static inline int ref_sample_ok(const double *logits, uint32_t n, double temperature, uint32_t top_k,
                                double top_p, uint64_t random, uint32_t token) {
    const double slack = 1e-5;
    ref_candidate *c = (ref_candidate *)malloc(n * sizeof *c);
    double *cum = (double *)malloc((n + 1) * sizeof *cum), most, mass, share = (double)random / 0x1p64;
    uint32_t i, at = n, keep = top_k && top_k < n ? top_k : n, j;
    int ok = 0;
    for (i = 0; i < n; i++) c[i].logit = logits[i], c[i].token = i;
    qsort(c, n, sizeof *c, ref_by_logit);
    most = fmin(c[0].logit, 3.4028234663852886e38);
    cum[0] = 0;
    for (i = 0; i < n; i++) {
        double w = exp((fmin(c[i].logit, 3.4028234663852886e38) - most) / temperature);
        if (isnan(c[i].logit) || !(w > 0x1p-40)) w = 0;
        cum[i + 1] = cum[i] + w;
        if (c[i].token == token) at = i;
    }
    mass = cum[keep];
    if (!(mass > 0)) ok = at == 0;
    for (j = 1; j <= keep && mass > 0 && at < n; j++) { /* every end of the kept tokens that top_p allows */
        int last = j == keep && !(top_p > 0 && top_p < 1);
        if (top_p > 0 && top_p < 1)
            last = cum[j] >= (top_p - slack) * mass && (j == 1 || cum[j - 1] <= (top_p + slack) * mass);
        if (last && at < j && share * cum[j] >= cum[at] - slack * cum[j] - n * 0x1p-40
            && share * cum[j] <= cum[at + 1] + slack * cum[j] + n * 0x1p-40)
            ok = 1;
    }
    free(c);
    free(cum);
    return ok;
}

#endif
