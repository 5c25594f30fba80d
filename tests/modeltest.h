/* modeltest.h - models for tests: random ones of any shape, as GGUF files in memory, and the reference of any
 * file's model. Include it behind examples/llama.h and check.h (or kerneltest.h). */
#ifndef MODELTEST_H
#define MODELTEST_H

#include "ggufmake.h"
#include "reference/llama.h"

/* -- random models -- */

typedef struct model_shape {
    const char *architecture; /* "llama", "qwen2" or "qwen3": that has norms of heads */
    uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    uint32_t rope_dims;        /* 0: head_dim */
    uint32_t embedding_format; /* GGUF_FORMAT_... */
    uint32_t format;           /* of the layers' matrices, ... */
    uint32_t down_format;      /* ... but the last, and of an output of its own */
    int bias, tied;            /* of Q, K and V; the output is the embedding */
    int factors;               /* 1: rope_freqs.weight; 2: rope_scale is YaRN's, 3: with limits of its own */
    float rope_theta, rope_scale;      /* 0: 10000; 0: 1 */
    uint32_t window;                   /* positions that attention sees; 0: all, and no such key */
} model_shape;

#define MODEL_YARN_CONTEXT 400

typedef struct model_line {
    char name[48];
    uint32_t columns, rows, format; /* rows 0: a vector */
    int kind;                       /* 0: matrix; 1: around 1, a norm's; 2: a bias; 3: 1 ... 8 */
} model_line;

static inline void model_add(model_line *lines, uint32_t *count, const char *name, uint32_t columns,
                             uint32_t rows, uint32_t format, int kind)
{
    model_line *l = &lines[(*count)++];
    snprintf(l->name, sizeof l->name, "%s", name);
    l->columns = columns;
    l->rows = rows;
    l->format = format;
    l->kind = kind;
}

static inline model_line *model_lines(const model_shape *s, uint32_t *count)
{
    model_line *lines = (model_line *)calloc(4 + 14 * (size_t)s->layers, sizeof *lines);
    uint32_t wide = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, i;
    char name[48];
    *count = 0;
    model_add(lines, count, "token_embd.weight", s->hidden, s->vocab, s->embedding_format, 0);
    model_add(lines, count, "output_norm.weight", s->hidden, 0, GGUF_FORMAT_F32, 1);
    if (!s->tied) model_add(lines, count, "output.weight", s->hidden, s->vocab, s->down_format, 0);
    if (s->factors == 1)
        model_add(lines, count, "rope_freqs.weight", (s->rope_dims ? s->rope_dims : s->head_dim) / 2, 0,
                  GGUF_FORMAT_F32, 3);
#define MODEL_LINE(what, columns, rows, format, kind)                                                        \
    snprintf(name, sizeof name, "blk.%u.%s", i, what);                                                       \
    model_add(lines, count, name, columns, rows, format, kind)
    for (i = 0; i < s->layers; i++) {
        MODEL_LINE("attn_norm.weight", s->hidden, 0, GGUF_FORMAT_F32, 1);
        MODEL_LINE("attn_q.weight", s->hidden, wide, s->format, 0);
        MODEL_LINE("attn_k.weight", s->hidden, kv, s->format, 0);
        MODEL_LINE("attn_v.weight", s->hidden, kv, s->format, 0);
        MODEL_LINE("attn_output.weight", wide, s->hidden, s->format, 0);
        MODEL_LINE("ffn_norm.weight", s->hidden, 0, GGUF_FORMAT_F32, 1);
        MODEL_LINE("ffn_gate.weight", s->hidden, s->ffn, s->format, 0);
        MODEL_LINE("ffn_up.weight", s->hidden, s->ffn, s->format, 0);
        MODEL_LINE("ffn_down.weight", s->ffn, s->hidden, s->down_format, 0);
        if (!strcmp(s->architecture, "qwen3")) {
            MODEL_LINE("attn_q_norm.weight", s->head_dim, 0, GGUF_FORMAT_F32, 1);
            MODEL_LINE("attn_k_norm.weight", s->head_dim, 0, GGUF_FORMAT_F32, 1);
        }
        if (!s->bias) continue;
        MODEL_LINE("attn_q.bias", wide, 0, GGUF_FORMAT_F32, 2);
        MODEL_LINE("attn_k.bias", kv, 0, GGUF_FORMAT_F32, 2);
        MODEL_LINE("attn_v.bias", kv, 0, GGUF_FORMAT_F32, 2);
    }
#undef MODEL_LINE
    return lines;
}

/* Values around 0 of a size that keeps activations near 1. */
static inline void model_values(gguf_maker *m, const model_line *l)
{
    size_t n = (size_t)l->columns * (l->rows ? l->rows : 1), bytes = ref_row_bytes((int)l->format, n), i;
    float *x = (float *)malloc(n * sizeof *x);
    unsigned char *blocks = (unsigned char *)malloc(bytes);
    if (!x || !blocks) abort();
    for (i = 0; i < n; i++) {
        double r = random_within(1);
        x[i] = (float)(l->kind == 1 ? 1 + 0.3 * r : l->kind == 3 ? 4.5 + 3.5 * r : l->kind == 2 ? 0.5 * r
                                                                 : 1.7 * r / sqrt((double)l->columns));
    }
    ref_quantise((int)l->format, x, n, blocks);
    make_bytes(m, blocks, bytes);
    free(blocks);
    free(x);
}

/* The head of a model's file, without a tokeniser, and which tensors follow, to be freed; *bytes: theirs. */
static inline model_line *make_model_head(gguf_maker *m, const model_shape *s, uint32_t *tensors,
                                          uint64_t *bytes)
{
    uint32_t count, i;
    uint64_t offset = 0;
    model_line *lines = model_lines(s, &count);
    char key[64];
#define MODEL_KEY(what) (snprintf(key, sizeof key, "%s.%s", s->architecture, what), key)
    make_start(m, count,
               11u + (s->rope_dims != 0) + (s->rope_scale > 0 ? 2 : 0) + (s->factors > 1)
                   + (s->factors > 2 ? 2 : 0) + (s->window != 0));
    make_value_text(m, "general.architecture", s->architecture);
    make_value_u32(m, MODEL_KEY("block_count"), s->layers);
    make_value_u32(m, MODEL_KEY("context_length"), s->context);
    make_value_u32(m, MODEL_KEY("embedding_length"), s->hidden);
    make_value_u32(m, MODEL_KEY("feed_forward_length"), s->ffn);
    make_value_u32(m, MODEL_KEY("attention.head_count"), s->heads);
    make_value_u32(m, MODEL_KEY("attention.head_count_kv"), s->kv_heads);
    make_value_u32(m, MODEL_KEY("attention.key_length"), s->head_dim);
    make_value_u32(m, MODEL_KEY("attention.value_length"), s->head_dim);
    make_value_float(m, MODEL_KEY("attention.layer_norm_rms_epsilon"), 1e-5f);
    make_value_float(m, MODEL_KEY("rope.freq_base"), s->rope_theta > 0 ? s->rope_theta : 10000.0f);
    if (s->rope_scale > 0) {
        make_value_text(m, MODEL_KEY("rope.scaling.type"), s->factors > 1 ? "yarn" : "linear");
        make_value_float(m, MODEL_KEY("rope.scaling.factor"), s->rope_scale);
    }
    if (s->factors > 1)
        make_value_u32(m, MODEL_KEY("rope.scaling.original_context_length"), MODEL_YARN_CONTEXT);
    if (s->factors > 2) {
        make_value_float(m, MODEL_KEY("rope.scaling.yarn_beta_fast"), 8);
        make_value_float(m, MODEL_KEY("rope.scaling.yarn_beta_slow"), 0.25f);
    }
    if (s->rope_dims) make_value_u32(m, MODEL_KEY("rope.dimension_count"), s->rope_dims);
    if (s->window) make_value_u32(m, MODEL_KEY("attention.sliding_window"), s->window);
#undef MODEL_KEY
    for (i = 0; i < count; i++) {
        model_line *l = &lines[i];
        make_tensor(m, l->name, l->columns, l->rows, l->format, offset);
        offset += ref_row_bytes((int)l->format, (size_t)l->columns * (l->rows ? l->rows : 1));
        offset = (offset + 31) & ~31ull;
    }
    *tensors = count;
    *bytes = offset;
    return lines;
}

/* A whole file of a random model. */
static inline void make_model(gguf_maker *m, const model_shape *s)
{
    uint32_t count, i;
    uint64_t bytes;
    model_line *lines = make_model_head(m, s, &count, &bytes);
    for (i = 0; i < count; i++) {
        make_padding(m);
        model_values(m, &lines[i]);
    }
    free(lines);
}

/* -- the reference of a file that lies in memory -- */

static inline const float *model_floats(const gguf *g, const unsigned char *file, const char *name)
{
    const gguf_tensor *t = gguf_tensor_find(g, name);
    return t ? (const float *)(const void *)(file + t->offset) : NULL;
}

static inline ref_matrix model_matrix(const gguf *g, const unsigned char *file, uint32_t layer,
                                      const char *what)
{
    char name[64], bias[64];
    const gguf_tensor *t;
    ref_matrix none = {0, 0, NULL, NULL, 0};
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, what);
    snprintf(bias, sizeof bias, "blk.%u.%s.bias", layer, what);
    t = gguf_tensor_find(g, layer == UINT32_MAX ? what : name);
    if (!t) return none;
    return ref_matrix_make((int)t->format, file + t->offset, (uint32_t)t->size[1], (uint32_t)t->size[0],
                           layer == UINT32_MAX ? NULL : model_floats(g, file, bias));
}

/* What YaRN does, from the file: limits of frequencies; scores of q and k that are both longer. */
static inline void model_yarn(ref_llama *r, const gguf *g)
{
    static const char *const names[] = {"yarn_beta_fast", "yarn_beta_slow"};
    gguf_text type, architecture;
    uint32_t context, i;
    char key[100];
    if (!gguf_get_text(g, "general.architecture", &architecture)) return;
#define MODEL_YARN_KEY(what)                                                                                 \
    (snprintf(key, sizeof key, "%.*s.rope.scaling.%s", (int)architecture.bytes, architecture.at, what), key)
    if (!gguf_get_text(g, MODEL_YARN_KEY("type"), &type) || !gguf_is(type, "yarn")) return;
    if (gguf_get_u32(g, MODEL_YARN_KEY("original_context_length"), &context)) r->yarn[0] = context;
    for (i = 0; i < 2; i++)
        if (!gguf_get_float(g, MODEL_YARN_KEY(names[i]), &r->yarn[1 + i])) r->yarn[1 + i] = i ? 1 : 32;
#undef MODEL_YARN_KEY
    r->scale = pow(1 + 0.1 * log(r->rope_scale), 2) / sqrt((double)r->head_dim);
}

/* Numbers from the file's reader, everything else from the file. The file must outlive the reference. */
static inline void model_reference(ref_llama *r, const llama_config *c, const gguf *g,
                                   const unsigned char *file)
{
    uint32_t i;
    char name[64];
    memset(r, 0, sizeof *r);
    r->vocab = c->vocab;
    r->hidden = c->hidden;
    r->layers = c->layers;
    r->heads = c->heads;
    r->kv_heads = c->kv_heads;
    r->head_dim = c->head_dim;
    r->ffn = c->ffn;
    r->context = c->context;
    r->rope_dims = c->rope_dims;
    r->window = c->window;
    r->rope = c->rope_pairs == PTXK_ROPE_NEOX ? REF_ROPE_HALVES : REF_ROPE_INTERLEAVED;
    r->theta = c->rope_theta;
    r->rope_scale = c->rope_scale;
    r->rope_factors = model_floats(g, file, "rope_freqs.weight");
    model_yarn(r, g);
    r->eps = c->eps;
    r->kv_f16 = 1;
    r->noise_state = 1;
    r->output_norm = model_floats(g, file, "output_norm.weight");
    r->embedding = model_matrix(g, file, UINT32_MAX, "token_embd.weight");
    r->output = model_matrix(g, file, UINT32_MAX, "output.weight");
    r->layer = (ref_llama_layer *)calloc(c->layers, sizeof *r->layer);
    for (i = 0; i < c->layers; i++) {
        ref_llama_layer *l = &r->layer[i];
        snprintf(name, sizeof name, "blk.%u.attn_norm.weight", i);
        l->attn_norm = model_floats(g, file, name);
        snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", i);
        l->ffn_norm = model_floats(g, file, name);
        snprintf(name, sizeof name, "blk.%u.attn_q_norm.weight", i);
        l->q_norm = model_floats(g, file, name);
        snprintf(name, sizeof name, "blk.%u.attn_k_norm.weight", i);
        l->k_norm = model_floats(g, file, name);
        l->q = model_matrix(g, file, i, "attn_q");
        l->k = model_matrix(g, file, i, "attn_k");
        l->v = model_matrix(g, file, i, "attn_v");
        l->o = model_matrix(g, file, i, "attn_output");
        l->gate = model_matrix(g, file, i, "ffn_gate");
        l->up = model_matrix(g, file, i, "ffn_up");
        l->down = model_matrix(g, file, i, "ffn_down");
    }
}

#endif
