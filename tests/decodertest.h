/* decodertest.h - what the tests of the persistent decoder share: models of random weights, on the device and
 * in double; launches of them; each launch beside what follows from the weights.
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef DECODERTEST_H
#define DECODERTEST_H

#include "reference/layers.h"
#include "reference/llama.h"
#include "kerneltest.h"

#define MOST_TOKENS 40u
#define NOISY 6u /* sequences in double that are off at random, beside the one that is not */

static const struct decoder_format {
    uint32_t format;
    int type;
    double size; /* of weights, beside the factor (the first) */
} decoder_formats[] = {{PTXK_Q4_K, REF_BLOCK_Q4_K, 180}, {PTXK_Q6_K, REF_BLOCK_Q6_K, 1360},
                       {PTXK_Q5_K, REF_BLOCK_Q5_K, 360}, {PTXK_Q4_0, REF_BLOCK_Q4_0, 4.6},
                       {PTXK_Q8_0, REF_BLOCK_Q8_0, 74},  {PTXK_F32, REF_BLOCK_F32, 0},
                       {PTXK_F16, REF_BLOCK_F16, 0},     {PTXK_BF16, REF_BLOCK_BF16, 0},
                       {PTXK_Q4_1, REF_BLOCK_Q4_1, 4.6}, {PTXK_Q5_0, REF_BLOCK_Q5_0, 9.2},
                       {PTXK_Q5_1, REF_BLOCK_Q5_1, 9.2}, {PTXK_Q2_K, REF_BLOCK_Q2_K, 10},
                       {PTXK_Q3_K, REF_BLOCK_Q3_K, 42},  {PTXK_IQ4_NL, REF_BLOCK_IQ4_NL, 67},
                       {PTXK_IQ4_XS, REF_BLOCK_IQ4_XS, 1230}, {PTXK_MXFP4, REF_BLOCK_MXFP4, 2.9},
                       {PTXK_NVFP4, REF_BLOCK_NVFP4, 2.9}, {PTXK_IQ2_XXS, REF_BLOCK_IQ2_XXS, 50},
                       {PTXK_IQ2_XS, REF_BLOCK_IQ2_XS, 50}, {PTXK_IQ2_S, REF_BLOCK_IQ2_S, 50},
                       {PTXK_IQ3_XXS, REF_BLOCK_IQ3_XXS, 130}, {PTXK_IQ3_S, REF_BLOCK_IQ3_S, 130},
                       {PTXK_IQ1_S, REF_BLOCK_IQ1_S, 7.5}, {PTXK_IQ1_M, REF_BLOCK_IQ1_M, 7.5},
                       {PTXK_TQ1_0, REF_BLOCK_TQ1_0, 0.82}, {PTXK_TQ2_0, REF_BLOCK_TQ2_0, 1.22}};

static inline const struct decoder_format *decoder_format_of(uint32_t format) {
    const struct decoder_format *f = decoder_formats;
    while (f->format != format) f++;
    return f;
}

static inline int ref_type(uint32_t format) { return decoder_format_of(format)->type; }

/* The unit of columns. */
static inline size_t ref_unit(uint32_t format) {
    return ref_block_values(ref_type(format)) << ref_block_bytes(ref_type(format)) % 2;
}

/* A model, in host memory, on the device, and as the reference has it. */
typedef struct model {
    ptxk_decoder_desc desc;
    uint32_t layers, max_seq, blocks, prompt_stride, n;
    uint32_t period; /* of layers that see all keys; 0: none does */
    uint32_t positions[4], prompt_lengths[4], prompts[4 * 16];
    ptx_target target;
    float temperature, top_p, eps;
    uint32_t top_k, end_tokens[PTXK_DECODER_ENDS], end_count, watchdog;
    uint64_t seed, stop;
    ptxk_rope_scaling scaling;
    float *rope_factors;
    ref_llama ref;
    ref_llama_state follow[4][1 + NOISY]; /* what each sequence is in double: as it is, and with noise */
    int followed, goes_on;                /* goes_on: a launch takes caches and sequences as they are */
    ptxk_decoder_layer *table;
    ptxk_decoder_args args;
    device_ptr owned[2048];
    void *kept[1024];
    uint32_t owned_count, kept_count;
    uint32_t tokens[4 * MOST_TOKENS];
    ptxk_decoder_state state;
    float *logits;
    ptxsim_counters counters;
    uint32_t poison_at, poison; /* a word of the workspace, written between the two launches */
    double worst, worst_of;     /* the last logits' error beside the largest of them; beside its tolerance */
    uint32_t close;             /* choices too close to tell */
} model;

static inline device_ptr own(model *m, device_ptr p) { return m->owned[m->owned_count++] = p; }

static inline void *keep(model *m, void *p) { return m->kept[m->kept_count++] = p; }

static inline void half_at(unsigned char *at, double x) { ref_put_u16(at, ref_to_f16(x)); }

static int bare; /* no reference: weights are of no meaning, many rows the same */

static inline ptxk_decoder_matrix bare_matrix(model *m, uint32_t format, uint32_t rows, uint32_t columns) {
    size_t row = ref_row_bytes(ref_type(format), columns), i, n;
    unsigned char *w = (unsigned char *)malloc(64 * row);
    ptxk_decoder_matrix out;
    device_ptr p = 0;
    for (i = 0; i < 64 * row; i++) w[i] = (unsigned char)random_below(16); /* halves below 2^-12 */
    memset(&out, 0, sizeof out);
    CHECK(cu.cuMemAlloc(&p, rows * row) == 0);
    for (i = 0; i < rows; i += 64) {
        n = rows - i < 64 ? rows - i : 64;
        CHECK(cu.cuMemcpyHtoD(p + i * row, w, n * row) == 0);
    }
    free(w);
    out.weights = own(m, p);
    out.format = format;
    return out;
}

/* rows x columns of random weights of some 1 / sqrt(columns), to the device and the reference. */
static inline ptxk_decoder_matrix matrix(model *m, uint32_t format, uint32_t rows, uint32_t columns, int bias,
                                         ref_matrix *ref, double factor) {
    int type = ref_type(format);
    size_t bytes = ref_row_bytes(type, columns) * rows, block = ref_block_bytes(type), i;
    unsigned char *w = (unsigned char *)malloc(bytes + 16);
    double size = factor / sqrt((double)columns);
    ptxk_decoder_matrix out;
    float *b = NULL;
    m->desc.formats |= PTXK_SET(format);
    if (bare) return free(w), bare_matrix(m, format, rows, columns);
    for (i = 0; i < bytes; i += 4) {
        uint32_t r = random_u32();
        memcpy(w + i, &r, 4);
    }
    for (i = 0; i < bytes; i += block) {
        double d = size * (1 + random_within(0.3)), x = random_within(1.7 * size);
        float f = (float)x;
        const struct ref_layout *l = ref_layout_of(type);
        if (l->factor >= 0) half_at(w + i + l->factor, d / decoder_format_of(format)->size);
        if (format == PTXK_Q4_K || format == PTXK_Q5_K) half_at(w + i + 2, d / 24);
        if (format == PTXK_Q2_K) half_at(w + i + l->second, d / 5);
        if (format == PTXK_Q4_1 || format == PTXK_Q5_1) half_at(w + i + 2, -d * (format == PTXK_Q4_1 ? 1.63 : 1.68));
        if (format == PTXK_MXFP4) w[i] = (unsigned char)(127 + floor(log2(d / 2)));
        if (format == PTXK_NVFP4)
            for (size_t j = 0; j < 4; j++)
                w[i + j] = (unsigned char)(d < 0x1p-5 ? d * 256 : 8 * (7 + floor(log2(d / 2))));
        if (format == PTXK_IQ1_M)
            for (size_t j = 0; j < 4; j++)
                w[i + 49 + 2 * j] = (unsigned char)((w[i + 49 + 2 * j] & 15)
                                                    | (ref_to_f16(d / 7.5) >> 4 * j & 15) << 4);
        if (format == PTXK_F32) memcpy(w + i, &f, 4);
        if (format == PTXK_F16) half_at(w + i, x);
        if (format == PTXK_BF16) ref_put(w, REF_BF16, i / 2, x);
    }
    memset(&out, 0, sizeof out);
    out.format = format;
    out.weights = own(m, upload(w, bytes));
    if (bias) {
        b = (float *)keep(m, malloc(rows * sizeof *b));
        for (i = 0; i < rows; i++) b[i] = (float)random_within(0.3);
        out.bias = own(m, upload(b, rows * sizeof *b));
    }
    *ref = ref_matrix_make(type, w, rows, columns, b);
    free(w);
    return out;
}

static inline const float *some_floats(model *m, uint32_t n, double most, uint64_t *at) {
    float *w = (float *)keep(m, malloc(n * sizeof *w));
    uint32_t i;
    for (i = 0; i < n; i++) w[i] = (float)random_within(most);
    *at = own(m, upload(w, n * sizeof *w));
    return w;
}

static inline const float *norm_weights(model *m, uint32_t n, uint64_t *at) {
    float *w = (float *)keep(m, malloc(n * sizeof *w));
    uint32_t i;
    for (i = 0; i < n; i++) w[i] = (float)(1 + random_within(0.5));
    *at = own(m, upload(w, n * sizeof *w));
    return w;
}

/* -- sequences: their caches, and what they are in double -- */

/* The caches of the layers, in which the first positions[b] rows of each sequence are as random ones before
   left them; the others nobody has written. */
static inline void model_begin(model *m) {
    const ptxk_decoder_desc *d = &m->desc;
    enum ref_format type = d->kv_type == PTX_F32 ? REF_F32 : d->kv_type == PTX_F16 ? REF_F16 : REF_BF16;
    size_t rows = d->kv_heads * m->max_seq, row = d->head_dim * ref_bytes(type);
    size_t wide = d->kv_heads * d->head_dim;
    unsigned char *part = (unsigned char *)malloc(m->max_seq * row);
    uint32_t layer, value, b, g, e, n;
    size_t t;
    m->ref.context = m->max_seq;
    for (b = 0; b < 4 * (1 + NOISY) && m->followed; b++) ref_llama_end(&m->follow[0][0] + b);
    m->followed = !bare;
    for (b = 0; b < d->batch && m->followed; b++)
        for (n = 0; n <= NOISY; n++) CHECK(ref_llama_start(&m->ref, &m->follow[b][n]));
    for (layer = 0; layer < m->layers; layer++) {
        device_ptr p[2] = {0, 0};
        for (value = 0; value < 2; value++) {
            CHECK(cu.cuMemAlloc(&p[value], d->batch * rows * row + 16) == 0);
            own(m, p[value]);
        }
        m->table[layer].k_cache = p[0];
        m->table[layer].v_cache = p[1];
        for (b = 0; b < d->batch && m->followed; b++) {
            uint32_t filled = m->positions[b] < m->max_seq ? m->positions[b] : m->max_seq;
            for (n = 0; n <= NOISY; n++) m->follow[b][n].length = filled;
            for (value = 0; value < 2 && filled; value++)
                for (g = 0; g < d->kv_heads; g++) {
                    for (t = 0; t < filled; t++)
                        for (e = 0; e < d->head_dim; e++) {
                            size_t at = (layer * (size_t)m->max_seq + t) * wide + g * d->head_dim + e;
                            ref_put(part, type, t * d->head_dim + e, random_within(value ? 1 : 2));
                            for (n = 0; n <= NOISY; n++)
                                (value ? m->follow[b][n].v : m->follow[b][n].k)[at] =
                                    ref_get(part, type, t * d->head_dim + e);
                        }
                    CHECK(cu.cuMemcpyHtoD(p[value] + (b * rows + g * m->max_seq) * row, part, filled * row)
                          == 0);
                }
        }
    }
    free(part);
}

/* -- models -- */

/* The next of the formats that rows of so many columns can have; the last of the list must have blocks that
   divide all. */
static inline uint32_t model_format(const uint32_t *formats, uint32_t count, uint32_t *turn,
                                    uint32_t columns) {
    while (columns % ref_unit(formats[*turn % count])) ++*turn;
    return formats[(*turn)++ % count];
}

/* The weights of a model whose description and number of layers stand there. formats: a list, taken in turn
   by the matrices that may have them. */
static inline void model_fill(model *m, const uint32_t *formats, uint32_t count, int tied) {
    const ptxk_decoder_desc *d = &m->desc;
    uint32_t i, turn = random_below(count), wide = d->heads * d->head_dim, narrow = d->kv_heads * d->head_dim;
    ref_llama *r = &m->ref;
    r->vocab = d->vocab, r->hidden = d->hidden, r->layers = m->layers, r->heads = d->heads;
    r->kv_heads = d->kv_heads, r->head_dim = d->head_dim, r->ffn = d->ffn;
    r->rope_dims = d->rope_dims;
    r->rope = d->rope_pairs == PTXK_ROPE_NEOX ? REF_ROPE_HALVES : REF_ROPE_INTERLEAVED;
    r->window = d->window, r->scale = (double)d->scale;
    r->embedding_scale = (double)d->embedding_scale, r->gelu = d->activation == PTXK_GELU;
    r->clamped = d->activation == PTXK_SWIGLU_CLAMPED;
    r->period = m->period;
    if (d->route.experts) {
        r->experts = d->route.experts, r->chosen = d->route.chosen, r->expert_ffn = d->expert_ffn;
        if (r->ffn < d->expert_ffn) r->ffn = d->expert_ffn;
        r->sigmoid = d->route.kind == PTXK_ROUTE_SIGMOID, r->over_all = d->route.kind == PTXK_ROUTE_SOFTMAX;
        r->normalise = d->route.flags & PTXK_ROUTE_NORMALIZE, r->route_scale = (double)d->route.scale;
        r->groups = d->route.groups, r->chosen_groups = d->route.chosen_groups;
    }
    r->theta = m->scaling.theta > 0 ? m->scaling.theta : 10000;
    r->rope_scale = m->scaling.factor > 0 ? m->scaling.factor : 1;
    r->rope_factors = m->scaling.factors;
    m->eps = 1e-5f;
    r->eps = (double)m->eps;
    r->noise_state = random_u32() | 1;
    r->attention_bound = 0x1p-18; /* see model_compare */
    r->layer = (ref_llama_layer *)calloc(m->layers, sizeof *r->layer);
    m->table = (ptxk_decoder_layer *)calloc(m->layers, sizeof *m->table);
    m->logits = (float *)malloc((size_t)d->vocab * d->batch * sizeof *m->logits);
#define MATRIX(rows, columns, biased, ref, factor)                                                           \
    matrix(m, model_format(formats, count, &turn, columns), rows, columns, biased, ref, factor)
    m->args.embedding = MATRIX(d->vocab, d->hidden, 0, &r->embedding, 10);
    m->args.output = m->args.embedding;
    if (!tied) m->args.output = MATRIX(d->vocab, d->hidden, (int)random_below(2), &r->output, 3);
    r->output_norm = norm_weights(m, d->hidden, &m->args.final_norm);
    for (i = 0; i < m->layers; i++) {
        ptxk_decoder_layer *l = &m->table[i];
        ref_llama_layer *to = &r->layer[i];
        int bias = (int)random_below(2);
        to->attn_norm = norm_weights(m, d->hidden, &l->attention_norm);
        to->ffn_norm = norm_weights(m, d->hidden, &l->ffn_norm);
        if (d->head_norms) {
            to->q_norm = norm_weights(m, d->head_dim, &l->q_norm);
            to->k_norm = norm_weights(m, d->head_dim, &l->k_norm);
        }
        l->q = MATRIX(wide, d->hidden, bias, &to->q, 2);
        l->k = MATRIX(narrow, d->hidden, bias, &to->k, 2);
        l->v = MATRIX(narrow, d->hidden, bias, &to->v, 1);
        bias = (int)random_below(2);
        l->output = MATRIX(d->hidden, wide, bias, &to->o, 1);
        l->sees_all = m->period && i % m->period == m->period - 1;
        if (d->sinks) to->sinks = some_floats(m, d->heads, 3, &l->sinks);
        if (d->ffn) {
            l->gate = MATRIX(d->ffn, d->hidden, bias, &to->gate, 2);
            l->up = MATRIX(d->ffn, d->hidden, bias, &to->up, 1);
            l->down = MATRIX(d->hidden, d->ffn, bias, &to->down, 1);
        }
        if (!d->route.experts) continue;
        bias = (int)random_below(2);
        l->router = matrix(m, PTXK_F32, d->route.experts, d->hidden, bias, &to->router, 4);
        if (d->shared_router) l->shared_router = matrix(m, PTXK_F32, 1, d->hidden, 0, &to->shared_router, 2);
        if (d->route.flags & PTXK_ROUTE_BIAS) to->balance = some_floats(m, d->route.experts, 0.2, &l->balance);
        l->expert_gate = MATRIX(d->route.experts * d->expert_ffn, d->hidden, bias, &to->gates, 2);
        l->expert_up = MATRIX(d->route.experts * d->expert_ffn, d->hidden, bias, &to->ups, 1);
        l->expert_down = MATRIX(d->route.experts * d->hidden, d->expert_ffn, bias, &to->downs, 1);
    }
#undef MATRIX
}

/* Makes a mixture of a description without weights: ffn becomes the shared expert's, or 0. */
static inline void model_mix(model *m, uint32_t expert_ffn, uint32_t experts, uint32_t chosen) {
    ptxk_decoder_desc *d = &m->desc;
    ptxk_route_desc *r = &d->route;
    d->expert_ffn = expert_ffn;
    d->ffn = random_below(2) ? d->ffn : 0;
    d->shared_router = d->ffn ? random_below(2) : 0;
    r->experts = experts;
    r->chosen = chosen;
    r->kind = random_below(3);
    if (r->kind != PTXK_ROUTE_SOFTMAX_CHOSEN) r->flags = random_below(2) ? PTXK_ROUTE_NORMALIZE : 0;
    if (r->kind == PTXK_ROUTE_SIGMOID && random_below(2)) r->flags |= PTXK_ROUTE_BIAS;
    r->scale = random_below(2) ? 0 : 1.5f;
    if (experts % 3 == 0 && experts > 5 && chosen <= 2 * (experts / 3)) r->groups = 3, r->chosen_groups = 2;
}

static inline model model_start(void) {
    model m;
    memset(&m, 0, sizeof m);
    m.desc.kv_type = PTX_F32;
    m.max_seq = 64;
    m.blocks = 4;
    m.n = 2;
    m.prompt_stride = 16;
    m.watchdog = 300000;
    m.target = PTX_SM(80);
    m.poison_at = 0xffffffffu;
    return m;
}

/* formats: a list of up to 8, each of which every matrix may have. mixture: expert_ffn, experts, chosen; or
   NULL. */
static inline model model_of(uint32_t hidden, uint32_t ffn, uint32_t heads, uint32_t kv_heads,
                             uint32_t head_dim, uint32_t vocab, uint32_t layers, uint32_t batch,
                             const uint32_t *formats, uint32_t count, const uint32_t *mixture) {
    model m = model_start();
    ptxk_decoder_desc *d = &m.desc;
    uint32_t i;
    d->hidden = hidden, d->ffn = ffn, d->heads = heads, d->kv_heads = kv_heads, d->head_dim = head_dim;
    d->vocab = vocab, d->batch = batch;
    for (i = 0; i < count; i++) d->formats |= PTXK_SET(formats[i]);
    d->rope_dims = random_below(2) ? head_dim : head_dim / 4 * 2;
    d->rope_pairs = random_below(2) ? PTXK_ROPE_NEOX : PTXK_ROPE_INTERLEAVED;
    d->head_norms = random_below(2);
    d->embedding_scale = random_below(2) ? 0 : 0.5f + 3 * (float)random_below(100) / 100;
    d->activation = random_below(2) ? PTXK_GELU : PTXK_SILU;
    d->window = random_below(2) ? random_below(4) : 0; /* 0: all; sequences are some three tokens long */
    m.layers = layers;
    if (vocab > 10000 || ffn > 2000 || hidden * batch > 1500) m.n = 1;
    for (i = 0; i < batch; i++) m.prompt_lengths[i] = vocab > 10000 ? 1 : 1 + random_below(2);
    for (i = 0; i < 64; i++) m.prompts[i] = random_below(vocab);
    if (mixture) model_mix(&m, mixture[0], mixture[1], mixture[2]);
    model_fill(&m, formats, count, (int)random_below(2));
    return m;
}

static inline model model_new(uint32_t hidden, uint32_t ffn, uint32_t heads, uint32_t kv_heads,
                              uint32_t head_dim, uint32_t vocab, uint32_t layers, uint32_t batch,
                              const uint32_t *formats, uint32_t count) {
    return model_of(hidden, ffn, heads, kv_heads, head_dim, vocab, layers, batch, formats, count, NULL);
}

static inline void model_free(model *m) {
    uint32_t i;
    for (i = 0; i < m->owned_count; i++) cu.cuMemFree(m->owned[i]);
    for (i = 0; i < m->kept_count; i++) free(m->kept[i]);
    for (i = 0; i < 4 * (1 + NOISY) && m->followed; i++) ref_llama_end(&m->follow[0][0] + i);
    ref_llama_free(&m->ref);
    free(m->table);
    free(m->logits);
}

/* -- launches -- */

static inline void model_arguments(model *m, uint64_t workspace_bytes) {
    double *frequencies = (double *)malloc((m->desc.rope_dims + 2) * sizeof *frequencies);
    size_t logits = (size_t)m->desc.vocab * m->desc.batch * 4;
    ptxk_message why;
    CHECK_MORE(!ptxk_rope_frequencies(m->desc.rope_dims, &m->scaling, frequencies, &why), why.text);
    memset(m->tokens, 0xff, sizeof m->tokens);
    memset(&m->state, 0xff, sizeof m->state);
    memset(m->logits, 0xff, logits);
    m->args.layers = own(m, upload(m->table, m->layers * sizeof *m->table));
    m->args.frequencies = own(m, upload(frequencies, m->desc.rope_dims * 4));
    m->args.prompt = own(m, upload(m->prompts, sizeof m->prompts));
    m->args.prompt_lengths = own(m, upload(m->prompt_lengths, 16));
    m->args.positions = own(m, upload(m->positions, 16));
    m->args.logits = own(m, upload(m->logits, logits));
    m->args.tokens = own(m, upload(m->tokens, sizeof m->tokens));
    m->args.state = own(m, upload(&m->state, sizeof m->state));
    m->args.stop = m->stop == 1 ? 0 : m->stop;
    CHECK(cu.cuMemAlloc(&m->args.workspace, (size_t)workspace_bytes) == 0);
    own(m, m->args.workspace);
    m->args.seed = m->seed;
    m->args.layer_count = m->layers;
    m->args.max_seq = m->max_seq;
    m->args.prompt_stride = m->prompt_stride;
    m->args.tokens_stride = MOST_TOKENS;
    m->args.n = m->n;
    m->args.end_count = m->end_count;
    memcpy(m->args.end_tokens, m->end_tokens, sizeof m->end_tokens);
    m->args.top_k = m->top_k;
    m->args.top_p = m->top_p;
    m->args.watchdog = m->watchdog;
    m->args.temperature = m->temperature;
    m->args.eps = m->eps;
    free(frequencies);
}

static inline void model_launch(model *m) {
    ptx_module_desc module_desc;
    ptxk_decoder_shape shape;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *module;
    const char *text;
    void *loaded;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = m->target;
    module = ptx_module_new(&module_desc);
    ptxk_decoder_emit(module, &m->desc);
    text = ptx_text(module, NULL);
    if (!CHECK_MORE(text != NULL, ptx_get_error(module)->message) || !(loaded = load_text(text))) return;
    shape.layers = m->layers;
    shape.max_seq = m->max_seq;
    shape.sm_count = m->blocks;
    CHECK_MORE(!ptxk_decoder_plan(&m->desc, &shape, &plan, &why), why.text);
    if (!m->goes_on) model_begin(m);
    model_arguments(m, plan.workspace_bytes);
    CHECK_MORE(!ptxk_decoder_check(&m->desc, &m->args, m->table, &why), why.text);
    if (m->stop == 1) { /* the check refuses that: what the kernel itself writes stops it */
        m->args.stop = m->args.state + offsetof(ptxk_decoder_state, written);
        CHECK(ptxk_decoder_check(&m->desc, &m->args, m->table, &why) == PTX_E_ARGUMENT);
    }
    if (CHECK(plan.launches == 2)) {
        launch_entry(module, loaded, &plan.launch[0], &m->args, sizeof m->args);
        CHECK(cu.cuCtxSynchronize() == 0);
        if (m->poison_at != 0xffffffffu)
            CHECK(cu.cuMemcpyHtoD(m->args.workspace + m->poison_at, &m->poison, 4) == 0);
        if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
        launch_entry(module, loaded, &plan.launch[1], &m->args, sizeof m->args);
    }
    CHECK(cu.cuCtxSynchronize() == 0);
    if (cu.ptxsim_counters_get) cu.ptxsim_counters_get(&m->counters, sizeof m->counters);
    CHECK(cu.cuMemcpyDtoH(m->tokens, m->args.tokens, sizeof m->tokens) == 0);
    CHECK(cu.cuMemcpyDtoH(&m->state, m->args.state, sizeof m->state) == 0);
    CHECK(cu.cuMemcpyDtoH(m->logits, m->args.logits, (size_t)m->desc.vocab * m->desc.batch * 4) == 0);
    check_reports();
    cu.cuModuleUnload(loaded);
    ptx_module_free(module);
}

/* -- beside the reference -- */

/* A sequence's next token, with noise and without: its logits, and how far all this arithmetic may move them.

   Six copies of the sequence go astray at random as the device does: x in steps of amax / 32639 (FAST:
   / 127), amax the largest of a group of 32, where it meets quantised weights; roundings of products, norms
   and the other operations as ref_llama_product says; in attention, all f32, a score is a chain of 8
   products, 5 joins, q's and k's own roundings and a weight's exponential: some 30 units of 2^-24 of
   sum |q k|, so 2^-18. What moves one logit is a sum over many such errors: near to normal, and of the size
   that the copies show, of which the root of the mean square over all logits is taken, that of the farthest
   copy. Ten times that is never passed by chance, nor by six copies that were lucky. */
static inline double model_step(model *m, uint32_t b, uint32_t token, double *logits, double *noisy) {
    double worst = 0;
    uint32_t n, i;
    for (n = 0; n <= NOISY; n++) {
        double sum = 0, *to = n ? noisy : logits;
        m->ref.noise = n ? 1 : 0;
        m->ref.copy = n % 5;
        ref_llama_step(&m->ref, &m->follow[b][n], token, logits ? to : NULL);
        for (i = 0; i < m->desc.vocab && logits && n; i++) sum += (to[i] - logits[i]) * (to[i] - logits[i]);
        worst = fmax(worst, sqrt(sum / m->desc.vocab));
    }
    m->ref.noise = 0;
    return 10 * worst;
}

/* The last logits, of a sequence that ended before the others, too; none of one that rests. The token that
   was chosen from them is what they themselves say. */
static inline void model_compare_logits(model *m, uint32_t b, const double *logits, double tolerance) {
    const float *have = m->logits + (size_t)b * m->desc.vocab;
    uint32_t i, wrote = m->state.written[b], vocab = m->desc.vocab, best = 0;
    double most = 1e-30, *own_logits = (double *)malloc(vocab * sizeof *own_logits);
    if (!wrote) {
        for (i = 0; i < vocab && have[i] != have[i]; i++) continue;
        CHECK(i == vocab);
        free(own_logits);
        return;
    }
    for (i = 0; i < vocab; i++) most = fmax(most, fabs(logits[i]));
    for (i = 0; i < vocab; i++) {
        double error = fabs((double)have[i] - logits[i]);
        if (!(error / most <= m->worst)) m->worst = error / most;
        if (!(error / tolerance <= m->worst_of)) m->worst_of = error / tolerance;
        if (have[i] > have[best]) best = i;
        own_logits[i] = (double)have[i];
    }
    CHECK(m->worst_of <= 1);
    i = m->tokens[b * MOST_TOKENS + wrote - 1];
    if (m->temperature > 0) /* the random number of the position that gave these logits */
        CHECK(ref_sample_ok(own_logits, vocab, (double)m->temperature, m->top_k, (double)m->top_p,
                            ref_random(m->seed, (uint64_t)b << 32 | (m->state.length[b] - 1)), i));
    else
        CHECK(i == best);
    free(own_logits);
}

/* Whether a token ends its sequence. */
static inline int model_ends(const model *m, uint32_t token) {
    uint32_t i;
    for (i = 0; i < m->end_count && m->end_tokens[i] != token; i++) continue;
    return i < m->end_count;
}

/* The rows of K (value 0) or V that this launch wrote into caches of 16 bits. The tolerance of logits lets
   one element in 16 be a unit off, so rounding towards zero, which moves one in two, may pass there. Here the
   elements that are not the reference's are counted: of the device's cache, and of those of the copies that
   go astray. What rounds to the nearest differs where those do, at most; twice their share and five standard
   deviations of a count are not passed by chance. */
static inline void model_compare_rows(const model *m, uint32_t value) {
    const ptxk_decoder_desc *d = &m->desc;
    enum ref_format type = d->kv_type == PTX_F16 ? REF_F16 : REF_BF16;
    size_t row = d->head_dim * ref_bytes(type), wide = d->kv_heads * d->head_dim, bytes = m->max_seq * row;
    unsigned char *have = (unsigned char *)malloc(bytes);
    double all = 0, device = 0, copies = 0;
    uint32_t layer, b, g, t, e, n;
    for (layer = 0; layer < m->layers; layer++)
        for (b = 0; b < d->batch; b++)
            for (g = 0; g < d->kv_heads; g++) {
                uint64_t from = value ? m->table[layer].v_cache : m->table[layer].k_cache;
                uint32_t first = m->positions[b], end = m->follow[b][0].length;
                from += (b * d->kv_heads + g) * bytes + first * row;
                if (end > first) CHECK(cu.cuMemcpyDtoH(have, from, (end - first) * row) == 0);
                for (t = first; t < end; t++)
                    for (e = 0; e < d->head_dim; e++) {
                        size_t at = (layer * (size_t)m->max_seq + t) * wide + g * d->head_dim + e;
                        const ref_llama_state *s = m->follow[b];
                        double want = (value ? s->v : s->k)[at];
                        double x = ref_get(have, type, (t - first) * d->head_dim + e);
                        all++;
                        device += x < want || x > want;
                        for (n = 1; n <= NOISY; n++) {
                            x = (value ? s[n].v : s[n].k)[at];
                            copies += x < want || x > want;
                        }
                    }
            }
    copies /= NOISY;
    if (!CHECK(device <= 2 * copies + 5 * sqrt(copies + 1)))
        printf("%s: %.0f of %.0f elements are not the reference's, of copies that go astray %.1f\n",
               value ? "V" : "K", device, all, copies);
    free(have);
}

/* Follows each sequence in double, fed with what the device chose; every choice must be the largest logit, or
   as large within the tolerance. It ended where it must. */
static inline void model_compare(model *m) {
    uint32_t b, i, t, vocab = m->desc.vocab, full = 0;
    double *logits = (double *)malloc(vocab * sizeof *logits);
    double *noisy = (double *)malloc(vocab * sizeof *noisy);
    m->ref.kv_f16 = m->desc.kv_type == PTX_F16;
    m->ref.kv_bf16 = m->desc.kv_type == PTX_BF16;
    m->ref.levels = m->desc.precision == PTXK_GEMV_FAST ? 127 : 32639;
    for (b = 0; b < m->desc.batch; b++) {
        ref_llama_state *s = &m->follow[b][0];
        const uint32_t *tokens = m->tokens + b * MOST_TOKENS;
        uint32_t token = 0, wrote = 0, wrong = 0;
        double tolerance = 0;
        char detail[200] = "";
        int ended = !m->prompt_lengths[b] || !m->n;
        CHECK(m->state.written[b] <= m->n && m->n <= MOST_TOKENS);
        for (t = 0; !ended; t++) {
            int chosen = t + 1 >= m->prompt_lengths[b];
            if (s->length == m->max_seq) {
                full = 1;
                break;
            }
            token = t < m->prompt_lengths[b] ? m->prompts[b * m->prompt_stride + t] : token;
            tolerance = model_step(m, b, token, chosen ? logits : NULL, noisy);
            if (!chosen) continue;
            token = tokens[wrote++];
            if (!CHECK(token < vocab)) break;
            ended = wrote == m->n || model_ends(m, token);
            i = ref_argmax(logits, vocab);
            if (m->temperature > 0 || token == i) continue;
            m->close++;
            if (!(logits[token] >= logits[i] - 2 * tolerance) && !wrong++)
                (void)snprintf(detail, sizeof detail, "sequence %u, step %u: token %u (%.7g), not %u (%.7g)",
                               b, t, token, logits[token], i, logits[i]);
        }
        CHECK_MORE(wrong == 0, detail);
        CHECK(m->state.written[b] == wrote && m->state.length[b] == s->length);
        model_compare_logits(m, b, logits, tolerance);
        for (i = wrote; i < MOST_TOKENS && tokens[i] == 0xffffffffu; i++) continue;
        CHECK(i == MOST_TOKENS);
    }
    CHECK(m->state.status == (full ? PTXK_DECODER_FULL : PTXK_DECODER_DONE));
    for (i = 0; i < 2 && m->desc.kv_type != PTX_F32; i++) model_compare_rows(m, i);
    free(logits);
    free(noisy);
}

/* Whether a launch came to its end. */
static inline int model_done(const model *m) {
    if (CHECK(m->state.status == PTXK_DECODER_DONE || m->state.status == PTXK_DECODER_FULL)) return 1;
    printf("status %u: '%s' of layer %u waits for tile %u in block %u, token %u\n", m->state.status,
           ptxk_decoder_step_name(m->state.step), m->state.layer, m->state.tile, m->state.block,
           m->state.position);
    return 0;
}

static inline void model_run(model *m) {
    uint32_t b;
    model_launch(m);
    if (!model_done(m)) return;
    for (b = 0; b < m->desc.batch; b++) CHECK(m->state.written[b] == m->n);
    model_compare(m);
}

/* -- the CPU driver's options -- */

static void (*option)(const char *, int);

/* Blocks that wait for one another take turns on one thread: how long a wait is in turns then does not
   depend on what else the machine does. */
static inline void one_thread(void) {
    const char *path = getenv("PTXGEN_CUDA_LIBRARY");
    void *symbol = cu.ptxsim_report
                       ? dlsym(dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW), "ptxsim_set")
                       : NULL;
    memcpy(&option, &symbol, sizeof option);
    if (option) option("threads", 1);
}

#endif
