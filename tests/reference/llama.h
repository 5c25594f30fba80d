/* llama.h - the truth about a language model, in double precision: what the next token's logits are.
 *
 * Written from the architectures' definitions, one token at a time, with nothing fused and nothing clever:
 *
 *   x = embedding_scale E[token]
 *   each layer:   h = norm(x, attn_norm);  q = Wq h + bq,  k = Wk h + bk,  v = Wv h + bv
 *                 each head of q and k by its norm, or all of q and all of k, where there is one;
 *                 the pairs of q's and k's heads are turned by position * theta^(-2i / rope_dims)
 *                 a_h = sum_t softmax_t(cap(q_h . k_g(t) scale)) v_g(t),  t <= now, t > now - window; a sink of
 *                 the head is one more score in that softmax, of no value
 *                 g = h kv_heads / heads
 *                 x += residual_scale norm(Wo a + bo, post_attn_norm)
 *                 h = norm(x, ffn_norm)
 *                 x += residual_scale norm(Wdown f + bdown, post_ffn_norm),  f = act(Wgate h) * Wup h, or act(Wup h)
 *                 of latents, instead: q = Wqb norm(Wqa h), or Wq h; (c, r) = Wkva h, c by its norm, r turned, and the
 *                 last rope_dims elements of each head of q; k_h = (Wk_h c, r), v_h = Wv_h c
 *                 of a mixture, instead: s = Wrouter h;  the `chosen` experts e with the largest s_e;
 *                 x += sum_e p_e Wdown_e act(Wgate_e h) * Wup_e h,  p = softmax of s over the chosen, or over all
 *                 (+ sigmoid(Wshared_router h) times the same of the shared expert)
 *   logits = cap(logit_scale Wout norm(x, output_norm))
 *
 *   norm(x, g) = g x / sqrt(mean x^2 + eps), or with layer_norm g (x - mean) / sqrt(variance + eps) + b; x where
 *   there is no g. act: silu(z) = z / (1 + e^-z), or gelu(z) = z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))) / 2.
 *   cap(z) = c tanh(z / c). With `parallel` the second h is the first one. Layers n with n % period == period - 1
 *   see all keys; local_theta and global_unturned say how the two kinds are turned.
 *
 * Matrices are kept as double, so models must be small. To learn how far errors of the arithmetic move the
 * logits, set `noise`: what each operation gives is then moved at random within the bounds that the model's
 * fields state (see ref_llama_noise). */
#ifndef REFERENCE_LLAMA_H
#define REFERENCE_LLAMA_H

#include "blocks.h"

enum { REF_LLAMA_CHOICES = 256 }; /* of groups and of experts, in all layers */
enum { REF_ROPE_INTERLEAVED = 0, REF_ROPE_HALVES = 1 }; /* pairs (2i, 2i + 1); pairs (i, i + rope_dims / 2) */

/* y = W x + bias */
typedef struct ref_matrix {
    uint32_t rows, columns;
    double *w;         /* [rows, columns]; NULL: no matrix */
    const float *bias; /* [rows] or NULL */
    int plain;         /* of f32, f16 or bf16: multiplied in f32 */
} ref_matrix;

typedef struct ref_llama_layer {
    const float *attn_norm, *ffn_norm;            /* NULL: there is none */
    const float *attn_norm_bias, *ffn_norm_bias;
    const float *post_attn_norm, *post_ffn_norm;
    const float *q_norm, *k_norm; /* [head_dim], of each head before it is turned; or NULL */
    const float *sinks;           /* [heads], or NULL */
    const float *q_a_norm, *kv_a_norm, *balance;
    ref_matrix q_a, q_b, kv_a;
    ref_matrix k_b, v_b; /* of all heads, one below the other: [latent, plain] each; [value_dim, latent] each */
    ref_matrix q, k, v, o, gate, up, down; /* of a mixture: the shared expert's */
    ref_matrix router, shared_router;
    ref_matrix gates, ups, downs; /* of all experts, one below the other */
} ref_llama_layer;

typedef struct ref_llama {
    uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    uint32_t experts, chosen, expert_ffn; /* 0: no mixture; ffn is then the most of any */
    int over_all;       /* the softmax of scores */
    int sigmoid, normalise; /* weights: of scores; over the sum of the chosen */
    double route_scale;     /* 0: 1 */
    uint32_t groups, chosen_groups; /* experts are chosen from so many groups; 0: from all experts */
    uint32_t dense_layers;  /* of no mixture */
    uint32_t latent, q_latent, value_dim; /* 0; 0; head_dim */
    uint32_t rope_dims; /* even, at most head_dim: the first so many of each head are turned */
    int rope;           /* REF_ROPE_... */
    double theta, eps;
    double scale;              /* of scores; 0: 1 / sqrt(head_dim) */
    double local_scale;        /* of scores of layers with a local_theta; 0: as the others */
    double rope_scale;         /* positions are divided by it; 1 */
    const float *rope_factors; /* [rope_dims / 2] frequencies are divided by these; or NULL */
    double yarn[3];            /* 0, or YaRN's context; turns in it of what is kept, of what is not */
    uint32_t window;           /* keys that a token sees, its own the last; 0: all */
    uint32_t period;           /* 0: in all layers */
    double local_theta;        /* of layers with a window beside others, unscaled; 0: as the others */
    int global_unturned;       /* the others are not turned; without windows those in their places */
    int unturned;              /* no layer is */
    int layer_norm, parallel;
    int norm_rows;             /* q_norm and k_norm are of whole rows */
    int gelu;
    int clamped;               /* f = g / (1 + e^(-1.702 g)) (u + 1), g = min(gate, 7), u = up within 7 of 0 */
    double attention_cap, final_cap;                     /* 0: none */
    double embedding_scale, residual_scale, logit_scale; /* 0: 1 */
    int kv_f16, kv_bf16, kv_e4m3, kv_q8_0; /* 1: keys and values are rounded to it on their way into the cache */
    const float *output_norm, *output_norm_bias;
    ref_matrix embedding, output; /* output.w NULL: the embedding's */
    ref_llama_layer *layer;
    double noise;         /* 0, or how many of its own bounds an operation may be off */
    uint64_t noise_state; /* of the noise, not 0 */
    uint32_t copy, ties[5]; /* which run with noise this is, 0 to 4; near choices in each, see ref_llama_choose */
    uint32_t choices, near[REF_LLAMA_CHOICES][2]; /* of this step; the two that were near each other, or one twice */
    double levels;          /* of an x that meets weights in blocks: noise is its steps'; 0: the promise */
    double attention_bound; /* of noise in scores and results; 0: 2^-11, as with tensor cores */
} ref_llama;

/* One sequence. */
typedef struct ref_llama_state {
    uint32_t length;
    double *k, *v; /* [layers, context, kv_heads, head_dim] */
    double *scratch;
} ref_llama_state;

static inline ref_matrix ref_matrix_make(int type, const void *blocks, uint32_t rows, uint32_t columns,
                                         const float *bias)
{
    ref_matrix m;
    uint32_t r;
    m.rows = rows;
    m.columns = columns;
    m.bias = bias;
    m.plain = type == REF_BLOCK_F32 || type == REF_BLOCK_F16 || type == REF_BLOCK_BF16;
    m.w = (double *)malloc((size_t)rows * columns * sizeof(double));
    for (r = 0; m.w && r < rows; r++)
        ref_dequantise(type, (const char *)blocks + r * ref_row_bytes(type, columns), columns,
                       m.w + (size_t)r * columns, NULL);
    return m;
}

static inline void ref_llama_free(ref_llama *m)
{
    uint32_t i;
    for (i = 0; i < m->layers; i++) {
        ref_llama_layer *l = &m->layer[i];
        free(l->q.w), free(l->k.w), free(l->v.w), free(l->o.w);
        free(l->gate.w), free(l->up.w), free(l->down.w);
        free(l->q_a.w), free(l->q_b.w), free(l->kv_a.w), free(l->k_b.w), free(l->v_b.w);
        free(l->router.w), free(l->shared_router.w), free(l->gates.w), free(l->ups.w), free(l->downs.w);
    }
    free(m->embedding.w);
    free(m->output.w);
    free(m->layer);
}

/* Of latents k holds those and what is turned, v the keys and values that come of them. */
static inline size_t ref_llama_kv(const ref_llama *m)
{
    if (m->latent) return (size_t)m->heads * (m->head_dim + m->value_dim) + m->latent;
    return (size_t)m->kv_heads * m->head_dim;
}

/* Returns 0 without memory. */
static inline int ref_llama_start(const ref_llama *m, ref_llama_state *s)
{
    size_t cache = m->layers * (size_t)m->context * ref_llama_kv(m);
    size_t wide = (size_t)m->heads * m->head_dim;
    s->length = 0;
    s->k = (double *)malloc((cache + 1) * sizeof(double));
    s->v = (double *)malloc((cache + 1) * sizeof(double));
    s->scratch = (double *)malloc((4 * m->hidden + 2 * wide + 2 * m->ffn + m->context + 1 + m->q_latent
                                    + m->heads * m->value_dim + 2 * m->latent) * sizeof(double));
    return s->k && s->v && s->scratch;
}

static inline void ref_llama_end(ref_llama_state *s)
{
    free(s->k);
    free(s->v);
    free(s->scratch);
}

/* A random number of -1 ... 1 (xorshift64*). */
static inline double ref_llama_noise(ref_llama *m)
{
    m->noise_state ^= m->noise_state >> 12;
    m->noise_state ^= m->noise_state << 25;
    m->noise_state ^= m->noise_state >> 27;
    return (double)((m->noise_state * 2685821657736338717ull) >> 11) / 4503599627370496.0 - 1;
}

/* The noise of a product: for weights in blocks up to 8.7e-5 |row| |x|, what ptxk_gemv promises for x in 16
   bits (its rounding in f32 lies below); for plain ones each product and each sum in f32 rounds once, a chain
   has one in 32 columns, 5 joins of lanes and up to 8 of warps and slices, so 2^-24 (columns / 32 + 16) |row|
   |x|, by Cauchy and Schwarz; of attention: q and the weights may be rounded to f16 for tensor cores, 2^-11
   each, so a score is off by up to 2^-11 sum |q_i k_i| / sqrt(d) and the result by 2^-11 sum weight |v|; of
   other operations: up to 2^-20 of the value, some sixteen roundings in f32; of what a cache holds in 16
   bits: one element in 16 is a unit off, for who is a little off may round to the other neighbour.

   The promise is for the worst x. With `levels` (32639 for 16 bits, 127 for 8) noise is what steps do to this
   x: each element is up to half a step off, amax of its group of 32 / levels, the same for all rows; and
   sums of terms that have both signs are 1 / sqrt(columns) of |row| |x| on their way, or one term is most. */
static inline double *ref_llama_stepped(ref_llama *m, const double *x, uint32_t n)
{
    double *stepped = (double *)malloc(n * sizeof *stepped);
    uint32_t g, i;
    for (g = 0; stepped && g < n; g += 32) {
        double most = 0;
        for (i = g; i < n && i < g + 32; i++) most = fmax(most, fabs(x[i]));
        for (i = g; i < n && i < g + 32; i++)
            stepped[i] = x[i] + m->noise * most / m->levels / 2 * ref_llama_noise(m);
    }
    return stepped;
}

static inline void ref_llama_product(ref_llama *m, const ref_matrix *a, const double *x, double *y)
{
    uint32_t r, c;
    double xx = 0, *stepped = NULL;
    double chain = a->columns / 32 + 16, bound = a->plain ? 0x1p-24 * chain : 8.7e-5;
    if (m->levels > 0) bound = 0x1p-24 * (2 + chain / sqrt((double)a->columns));
    if (m->noise > 0 && m->levels > 0 && !a->plain) stepped = ref_llama_stepped(m, x, a->columns);
    if (stepped) x = stepped;
    if (m->noise > 0) {
        for (c = 0; c < a->columns; c++) xx += x[c] * x[c];
    }
    for (r = 0; r < a->rows; r++) {
        const double *w = a->w + (size_t)r * a->columns;
        double sum = 0, ww = 0;
        for (c = 0; c < a->columns; c++) sum += w[c] * x[c];
        if (m->noise > 0) {
            for (c = 0; c < a->columns; c++) ww += w[c] * w[c];
            sum += m->noise * bound * sqrt(ww * xx) * ref_llama_noise(m);
        }
        y[r] = sum + (a->bias ? (double)a->bias[r] : 0);
    }
    free(stepped);
}

static inline void ref_llama_blur(ref_llama *m, double *x, uint32_t n)
{
    uint32_t i;
    if (m->noise > 0)
        for (i = 0; i < n; i++) x[i] *= 1 + m->noise * 0x1p-20 * ref_llama_noise(m);
}

/* An RMS norm. */
static inline void ref_llama_norm(ref_llama *m, const double *x, const float *gamma, uint32_t n, double *y)
{
    double sum = 0, size;
    uint32_t i;
    for (i = 0; i < n; i++) sum += x[i] * x[i];
    size = sqrt(sum / n + m->eps);
    for (i = 0; i < n; i++) y[i] = x[i] * (double)gamma[i] / size;
    ref_llama_blur(m, y, n);
}

/* A norm of the stream, of the model's kind; gamma NULL: x as it is. A mean is rounded as its terms are. */
static inline void ref_llama_stream_norm(ref_llama *m, const double *x, const float *gamma, const float *beta,
                                         double *y)
{
    double mean = 0, size = 0;
    uint32_t i, n = m->hidden;
    if (!gamma) {
        memmove(y, x, n * sizeof *y);
        return;
    }
    if (!m->layer_norm) {
        ref_llama_norm(m, x, gamma, n, y);
        return;
    }
    for (i = 0; i < n; i++) mean += x[i] / n, size += fabs(x[i]) / n;
    if (m->noise > 0) mean += m->noise * 0x1p-20 * size * ref_llama_noise(m);
    for (size = 0, i = 0; i < n; i++) size += (x[i] - mean) * (x[i] - mean) / n;
    size = sqrt(size + m->eps);
    for (i = 0; i < n; i++) y[i] = (x[i] - mean) * (double)gamma[i] / size;
    ref_llama_blur(m, y, n);
    for (i = 0; i < n && beta; i++) y[i] += (double)beta[i];
    ref_llama_blur(m, y, n);
}

/* Whether a layer has a window, in a model where others have none. */
static inline int ref_llama_is_local(const ref_llama *m, uint32_t layer)
{
    return m->window && m->period && layer % m->period != m->period - 1;
}

/* Of each head at x, where there is one. */
static inline void ref_llama_head_norm(ref_llama *m, double *x, const float *gamma, uint32_t heads)
{
    uint32_t h;
    if (gamma && m->norm_rows) {
        ref_llama_norm(m, x, gamma, heads * m->head_dim, x);
        return;
    }
    for (h = 0; gamma && h < heads; h++) {
        double *head = x + (size_t)h * m->head_dim;
        ref_llama_norm(m, head, gamma, m->head_dim, head);
    }
}

/* How much of its own frequency pair i keeps, beside so much as rope_scale divides: with YaRN all of it where
   it makes more than yarn[1] turns within the original context, none where it makes fewer than yarn[2];
   between the pairs next to those in equal steps. */
static inline double ref_llama_kept(const ref_llama *m, uint32_t i)
{
    double edge[2];
    int n;
    if (!(m->yarn[0] > 0)) return 0;
    for (n = 0; n < 2; n++) /* theta^(-2 pair / dims) context = 2 pi turns */
        edge[n] = log(m->yarn[0] / (2 * acos(-1.0) * m->yarn[1 + n])) / (2 * log(m->theta)) * m->rope_dims;
    edge[0] = floor(edge[0]) < 0 ? 0 : floor(edge[0]);
    edge[1] = ceil(edge[1]) > m->rope_dims - 1 ? m->rope_dims - 1 : ceil(edge[1]);
    if (i <= edge[0]) return 1;
    return i >= edge[1] ? 0 : (edge[1] - i) / (edge[1] - edge[0]);
}

/* Turns the heads at x by their position. */
static inline void ref_llama_turn(ref_llama *m, uint32_t layer, double *x, uint32_t heads, uint32_t position)
{
    uint32_t h, i, half = m->rope_dims / 2;
    int local = ref_llama_is_local(m, layer), own = local && m->local_theta > 0;
    if (m->unturned || (m->global_unturned && layer % m->period == m->period - 1)) return;
    for (h = 0; h < heads; h++)
        for (i = 0; i < half; i++) {
            double kept = ref_llama_kept(m, i);
            double frequency = own ? pow(m->local_theta, -2.0 * i / m->rope_dims)
                                   : pow(m->theta, -2.0 * i / m->rope_dims) * (kept + (1 - kept) / m->rope_scale);
            double angle = position * (m->rope_factors ? frequency / (double)m->rope_factors[i] : frequency);
            double *head = x + (size_t)h * m->head_dim;
            double *a = head + (m->rope == REF_ROPE_HALVES ? i : 2 * i);
            double *b = head + (m->rope == REF_ROPE_HALVES ? i + half : 2 * i + 1);
            double turned = *a * cos(angle) - *b * sin(angle);
            *b = *a * sin(angle) + *b * cos(angle);
            *a = turned;
        }
    for (h = 0; h < heads; h++) ref_llama_blur(m, x + (size_t)h * m->head_dim, m->rope_dims);
}

/* The number of e4m3 next to x. */
static inline double ref_llama_e4m3(double x)
{
    int e;
    (void)frexp(x, &e);
    if (e < -5) e = -5;
    x = ldexp(nearbyint(ldexp(x, 4 - e)), e - 4);
    return fabs(x) > 448 ? copysign(448, x) : x;
}

/* As the cache holds them. */
static inline void ref_llama_round(ref_llama *m, double *x, uint32_t n)
{
    double unit = m->kv_f16 ? 0x1p-11 : m->kv_bf16 ? 0x1p-8 : m->kv_e4m3 ? 0x1p-4 : 0;
    uint32_t i, j;
    for (i = 0; i < n && m->kv_q8_0; i += 32) { /* a factor for 32 */
        double most = 0, factor;
        for (j = i; j < i + 32; j++) most = fmax(most, fabs(x[j]));
        factor = ref_from_f16(ref_to_f16(most / 127));
        for (j = i; j < i + 32 && most > 0; j++) {
            double by = m->noise > 0 && ref_llama_noise(m) > 0.875 ? m->noise * ref_llama_noise(m) : 0;
            x[j] = nearbyint(x[j] * 127 / most + by) * factor;
        }
    }
    for (i = 0; i < n && m->noise > 0 && unit > 0; i++)
        if (ref_llama_noise(m) > 0.875) x[i] *= 1 + 2 * unit * m->noise * ref_llama_noise(m);
    for (i = 0; i < n && m->kv_e4m3; i++) x[i] = ref_llama_e4m3(x[i]);
    for (i = 0; i < n && m->kv_f16; i++) x[i] = ref_from_f16(ref_to_f16(x[i]));
    for (i = 0; i < n && m->kv_bf16; i++) x[i] = ref_from_bf16(ref_to_bf16(x[i]));
}

/* K and V are the caches of the layer, `length` positions of them are filled. */
static inline void ref_llama_attend(ref_llama *m, uint32_t layer, const double *q, const double *k, const double *v,
                                    uint32_t length, double *weight, double *out)
{
    uint32_t h, t, i, d = m->head_dim, first = 0;
    int local = ref_llama_is_local(m, layer);
    const float *sinks = m->layer[layer].sinks;
    double scale = local && m->local_theta > 0 && m->local_scale > 0 ? m->local_scale : m->scale;
    double bound = m->noise * (m->attention_bound > 0 ? m->attention_bound : 0x1p-11);
    if (!(scale < 0 || scale > 0)) scale = 1 / sqrt((double)d);
    if (m->window && (local || !m->period) && length > m->window) first = length - m->window;
    for (h = 0; h < m->heads; h++) {
        size_t g = (size_t)h * m->kv_heads / m->heads * d;
        double most = -INFINITY, sum = 0;
        for (t = first; t < length; t++) {
            double dot = 0, size = 0;
            for (i = 0; i < d; i++) {
                double product = q[h * d + i] * k[t * ref_llama_kv(m) + g + i];
                dot += product;
                size += fabs(product);
            }
            if (m->noise > 0) dot += bound * size * ref_llama_noise(m);
            weight[t] = dot * scale;
            if (m->attention_cap > 0) /* tanh to 2^-20 */
                weight[t] = m->attention_cap
                            * (tanh(weight[t] / m->attention_cap)
                               + (m->noise > 0 ? m->noise * 0x1p-20 * ref_llama_noise(m) : 0));
            if (weight[t] > most) most = weight[t];
        }
        if (sinks && (double)sinks[h] > most) most = (double)sinks[h];
        for (t = first; t < length; t++) sum += weight[t] = exp(weight[t] - most);
        if (sinks) sum += exp((double)sinks[h] - most);
        for (i = 0; i < d; i++) {
            double size = 0;
            out[h * d + i] = 0;
            for (t = first; t < length; t++) {
                double term = weight[t] / sum * v[t * ref_llama_kv(m) + g + i];
                out[h * d + i] += term;
                size += fabs(term);
            }
            if (m->noise > 0) out[h * d + i] += bound * size * ref_llama_noise(m);
        }
    }
}

/* Rows of one of several matrices that lie one below the other. */
static inline ref_matrix ref_llama_one(const ref_matrix *all, uint32_t rows, uint32_t e)
{
    ref_matrix one = *all;
    one.rows = rows;
    one.w += (size_t)e * rows * all->columns;
    if (one.bias) one.bias += (size_t)e * rows;
    return one;
}

/* The latent and what is turned of the newest token, k, to keys and values of all heads, v. */
static inline void ref_llama_expand(const ref_llama *m, const ref_llama_layer *l, const double *k, double *v)
{
    uint32_t plain = m->head_dim - m->rope_dims, h, i, j;
    for (h = 0; h < m->heads; h++, v += plain + m->value_dim) {
        for (i = 0; i < plain; i++)
            for (v[i] = 0, j = 0; j < m->latent; j++)
                v[i] += l->k_b.w[((size_t)h * m->latent + j) * plain + i] * k[j];
        for (i = 0; i < m->value_dim; i++)
            for (v[plain + i] = 0, j = 0; j < m->latent; j++)
                v[plain + i] += l->v_b.w[((size_t)h * m->value_dim + i) * m->latent + j] * k[j];
    }
}

/* Attention over latents: without noise by the keys and values of each head, with noise by absorbed products, whose
   operations are those of the kernels. room: [2, latent] */
static inline void ref_llama_attend_latents(ref_llama *m, uint32_t layer, const double *q, const double *k,
                                            const double *v, uint32_t length, double *weight, double *room, double *out)
{
    const ref_llama_layer *l = &m->layer[layer];
    uint32_t plain = m->head_dim - m->rope_dims, h, t, i, one = plain + m->value_dim;
    size_t row = ref_llama_kv(m);
    double scale = m->scale > 0 ? m->scale : 1 / sqrt((double)m->head_dim), bound = m->noise * 0x1p-11;
    double *absorbed = room, *seen = room + m->latent;
    for (h = 0; h < m->heads; h++, q += m->head_dim, out += m->value_dim) {
        ref_matrix w = ref_llama_one(&l->k_b, m->latent, h);
        double most = -INFINITY, sum = 0;
        if (m->noise > 0) ref_llama_product(m, &w, q, absorbed);
        for (t = 0; t < length; t++) {
            double dot = 0, size = 0;
            for (i = 0; i < (m->noise > 0 ? m->latent : plain); i++) {
                double x = m->noise > 0 ? absorbed[i] * k[t * row + i] : q[i] * v[t * row + h * one + i];
                dot += x, size += fabs(x);
            }
            for (i = 0; i < m->rope_dims; i++) {
                double x = q[plain + i] * k[t * row + m->latent + i];
                dot += x, size += fabs(x);
            }
            if (m->noise > 0) dot += bound * size * ref_llama_noise(m);
            weight[t] = dot * scale;
            most = fmax(most, weight[t]);
        }
        for (t = 0; t < length; t++) sum += weight[t] = exp(weight[t] - most);
        for (i = 0; i < (m->noise > 0 ? m->latent : m->value_dim); i++) {
            double size = 0, x = 0;
            for (t = 0; t < length; t++) {
                double term = weight[t] / sum * (m->noise > 0 ? k[t * row + i] : v[t * row + h * one + plain + i]);
                x += term, size += fabs(term);
            }
            if (m->noise > 0)
                seen[i] = x + bound * size * ref_llama_noise(m);
            else
                out[i] = x;
        }
        w = ref_llama_one(&l->v_b, m->value_dim, h);
        if (m->noise > 0) ref_llama_product(m, &w, seen, out);
    }
}

/* The activation between a layer's last products. */
static inline double ref_llama_act(const ref_llama *m, double z)
{
    return m->gelu ? z / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (z + 0.044715 * z * z * z))) : z / (1 + exp(-z));
}

static inline double ref_or_1(double x)
{
    return x < 0 || x > 0 ? x : 1;
}

/* y = Wdown f, f = act(Wgate h) * Wup h, or act(Wup h) without a gate */
static inline void ref_llama_feed(ref_llama *m, const ref_matrix *wgate, const ref_matrix *wup, const ref_matrix *wdown,
                                  const double *h, double *gate, double *up, double *y)
{
    uint32_t i, n = wup->rows;
    ref_llama_product(m, wup, h, up);
    if (wgate->w) ref_llama_product(m, wgate, h, gate);
    for (i = 0; i < n; i++)
        gate[i] = m->clamped   ? fmin(gate[i], 7) / (1 + exp(-1.702 * fmin(gate[i], 7)))
                                     * (fmax(fmin(up[i], 7), -7) + 1)
                  : wgate->w ? ref_llama_act(m, gate[i]) * up[i]
                             : ref_llama_act(m, up[i]);
    ref_llama_blur(m, gate, n);
    ref_llama_product(m, wdown, gate, y);
}

/* Scores of a router, whose products are in f32 as sums of two tf32: 2^-19 of each. */
static inline void ref_llama_scores(ref_llama *m, const ref_matrix *router, const double *h, double *score)
{
    uint32_t e, i;
    ref_llama_product(m, router, h, score);
    for (e = 0; e < router->rows && m->noise > 0; e++) {
        double size = 0;
        for (i = 0; i < router->columns; i++) size += fabs(router->w[(size_t)e * router->columns + i] * h[i]);
        score[e] += m->noise * 0x1p-19 * size * ref_llama_noise(m);
    }
}

/* The n largest of values that are not excluded, in order. If the last of them and the next one are near each other, a
   device that is a little off may choose the other: runs with noise then choose by the copy, the one with the greater
   index in copy 1, with the smaller in copy 2, in turns in copies 3 and 4, and so try all of two near choices. The run
   without noise, which comes first in each step, says which choices are near. */
static inline void ref_llama_choose(ref_llama *m, const double *value, const unsigned char *excluded, uint32_t of,
                                    uint32_t n, uint32_t *list)
{
    uint32_t e, j, k, *near = m->near[m->choices++ % REF_LLAMA_CHOICES], wanted, held = n;
    for (j = 0; j <= n; j++) {
        list[j] = of;
        for (e = 0; e < of; e++) {
            for (k = 0; k < j && list[k] != e; k++) {}
            if (k == j && !excluded[e] && (list[j] == of || value[e] > value[list[j]])) list[j] = e;
        }
    }
    if (!(m->noise > 0)) {
        double last = value[list[n - 1]], next = list[n] < of ? value[list[n]] : -INFINITY;
        int is_near = last - next < 2e-3 * fmin(1, fabs(last) + fabs(next));
        near[0] = is_near && list[n - 1] > list[n] ? list[n - 1] : list[n];
        near[1] = !is_near ? near[0] : near[0] == list[n] ? list[n - 1] : list[n];
        return;
    }
    if (near[0] == near[1]) return;
    e = m->ties[m->copy]++ + m->copy; /* copies 3 and 4 begin with another one */
    wanted = m->copy == 1 ? 0 : m->copy == 2 ? 1 : e & 1;
    for (j = k = 0; j < n; j++) {
        if (list[j] == near[!wanted]) held = j;
        k |= list[j] == near[wanted];
    }
    if (held < n && !k && !excluded[near[wanted]]) list[held] = near[wanted];
}

/* y = the mixture of h; room: [hidden]. */
static inline void ref_llama_mix(ref_llama *m, const ref_llama_layer *l, const double *h, double *gate, double *up,
                                 double *room, double *y)
{
    double score[512], key[512], group[32], most = -INFINITY, sum = 0, weight;
    unsigned char excluded[512] = {0}, none[32] = {0};
    uint32_t list[17], e, i, j, k, size = m->groups ? m->experts / m->groups : 0;
    ref_llama_scores(m, &l->router, h, score);
    for (e = 0; e < m->experts; e++) most = fmax(most, score[e]);
    for (e = 0; e < m->experts; e++) sum += exp(score[e] - most);
    for (e = 0; e < m->experts; e++) {
        key[e] = score[e];
        if (m->groups || l->balance)
            key[e] = m->sigmoid ? 1 / (1 + exp(-score[e])) : exp(score[e] - most) / sum;
        if (l->balance) key[e] += (double)l->balance[e];
    }
    if (m->groups) { /* by the largest key of a group; with a balance by the sum of the two largest */
        for (j = 0; j < m->groups; j++) {
            double first = -INFINITY, second = -INFINITY;
            for (e = j * size; e < (j + 1) * size; e++) {
                second = fmax(second, fmin(first, key[e]));
                first = fmax(first, key[e]);
            }
            group[j] = l->balance ? first + second : first;
        }
        ref_llama_choose(m, group, none, m->groups, m->chosen_groups, list);
        for (e = 0; e < m->experts; e++) {
            for (k = 0; k < m->chosen_groups && list[k] != e / size; k++) {}
            excluded[e] = k == m->chosen_groups;
        }
    }
    ref_llama_choose(m, key, excluded, m->experts, m->chosen, list);
    if (m->sigmoid) {
        for (e = 0; e < m->experts; e++) score[e] = 1 / (1 + exp(-score[e]));
    } else {
        for (e = 0; e < m->experts; e++) score[e] = exp(score[e] - most);
    }
    if (!m->over_all || m->normalise)
        for (sum = 0, j = 0; j < m->chosen; j++) sum += score[list[j]];
    if (m->sigmoid && !m->normalise) sum = 1;
    for (i = 0; i < m->hidden; i++) y[i] = 0;
    for (j = 0; j < m->chosen; j++) {
        ref_matrix g = ref_llama_one(&l->gates, m->expert_ffn, list[j]);
        ref_matrix u = ref_llama_one(&l->ups, m->expert_ffn, list[j]);
        ref_matrix d = ref_llama_one(&l->downs, m->hidden, list[j]);
        ref_llama_feed(m, &g, &u, &d, h, gate, up, room);
        weight = score[list[j]] / sum * ref_or_1(m->route_scale);
        ref_llama_blur(m, &weight, 1);
        for (i = 0; i < m->hidden; i++) y[i] += weight * room[i];
    }
    if (!l->down.w) return;
    weight = 1;
    if (l->shared_router.w) {
        ref_llama_scores(m, &l->shared_router, h, score);
        weight = 1 / (1 + exp(-score[0]));
        ref_llama_blur(m, &weight, 1);
    }
    ref_llama_feed(m, &l->gate, &l->up, &l->down, h, gate, up, room);
    for (i = 0; i < m->hidden; i++) y[i] += weight * room[i];
}

/* Takes the sequence's next token; logits: [vocab], or NULL where they are not wanted. The sequence must not
   be full. */
static inline void ref_llama_step(ref_llama *m, ref_llama_state *s, uint32_t token, double *logits)
{
    uint32_t i, n, now = s->length++, wide = m->heads * m->head_dim, kv = (uint32_t)ref_llama_kv(m);
    double *x = s->scratch, *h = x + m->hidden, *q = h + m->hidden, *a = q + wide, *gate = a + wide;
    double *up = gate + m->ffn, *y = up + m->ffn, *room = y + m->hidden, *weight = room + m->hidden;
    double *q_latent = weight + m->context, *latents = q_latent + m->q_latent;
    double residual = ref_or_1(m->residual_scale);
    const ref_matrix *output = m->output.w ? &m->output : &m->embedding;
    m->choices = 0;
    for (i = 0; i < m->hidden; i++)
        x[i] = m->embedding.w[(size_t)token * m->hidden + i] * ref_or_1(m->embedding_scale);
    for (n = 0; n < m->layers; n++) {
        ref_llama_layer *l = &m->layer[n];
        double *k = s->k + (size_t)n * m->context * kv, *v = s->v + (size_t)n * m->context * kv;
        double *new_k = k + (size_t)now * kv, *new_v = v + (size_t)now * kv;
        ref_llama_stream_norm(m, x, l->attn_norm, l->attn_norm_bias, h);
        if (m->latent) {
            if (m->q_latent) {
                ref_llama_product(m, &l->q_a, h, q_latent);
                ref_llama_norm(m, q_latent, l->q_a_norm, m->q_latent, q_latent);
            }
            ref_llama_product(m, m->q_latent ? &l->q_b : &l->q, m->q_latent ? q_latent : h, q);
            ref_llama_product(m, &l->kv_a, h, new_k);
            ref_llama_norm(m, new_k, l->kv_a_norm, m->latent, new_k);
            for (i = 0; i < m->heads; i++)
                ref_llama_turn(m, n, q + (i + 1) * m->head_dim - m->rope_dims, 1, now);
            ref_llama_turn(m, n, new_k + m->latent, 1, now);
            ref_llama_round(m, new_k, m->latent + m->rope_dims);
            ref_llama_expand(m, l, new_k, new_v);
            ref_llama_attend_latents(m, n, q, k, v, now + 1, weight, latents, a);
        } else {
            ref_llama_product(m, &l->q, h, q);
            ref_llama_product(m, &l->k, h, new_k);
            ref_llama_product(m, &l->v, h, new_v);
            ref_llama_head_norm(m, q, l->q_norm, m->heads);
            ref_llama_head_norm(m, new_k, l->k_norm, m->kv_heads);
            ref_llama_turn(m, n, q, m->heads, now);
            ref_llama_turn(m, n, new_k, m->kv_heads, now);
            ref_llama_round(m, new_k, kv);
            ref_llama_round(m, new_v, kv);
            ref_llama_attend(m, n, q, k, v, now + 1, weight, a);
        }
        ref_llama_product(m, &l->o, a, y);
        ref_llama_stream_norm(m, y, l->post_attn_norm, NULL, y);
        for (i = 0; i < m->hidden; i++) x[i] += residual * y[i];
        if (!m->parallel) ref_llama_stream_norm(m, x, l->ffn_norm, l->ffn_norm_bias, h);
        if (m->experts && n >= m->dense_layers)
            ref_llama_mix(m, l, h, gate, up, room, y);
        else
            ref_llama_feed(m, &l->gate, &l->up, &l->down, h, gate, up, y);
        ref_llama_stream_norm(m, y, l->post_ffn_norm, NULL, y);
        for (i = 0; i < m->hidden; i++) x[i] += residual * y[i];
        ref_llama_blur(m, x, m->hidden);
    }
    if (!logits) return;
    ref_llama_stream_norm(m, x, m->output_norm, m->output_norm_bias, h);
    ref_llama_product(m, output, h, logits);
    for (i = 0; i < m->vocab; i++) {
        logits[i] *= ref_or_1(m->logit_scale);
        if (m->final_cap > 0) logits[i] = m->final_cap * tanh(logits[i] / m->final_cap);
    }
    ref_llama_blur(m, logits, m->final_cap > 0 ? m->vocab : 0);
}

static inline uint32_t ref_argmax(const double *x, uint32_t n)
{
    uint32_t i, best = 0;
    for (i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

#endif
