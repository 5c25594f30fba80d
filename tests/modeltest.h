/* modeltest.h - models for tests: random ones of any shape, as GGUF files in memory, and the reference of any
 * file's model. Include it behind examples/llama.h and check.h (or kerneltest.h). */
#ifndef MODELTEST_H
#define MODELTEST_H

#include "ggufmake.h"
#include "reference/llama.h"

/* -- random models -- */

typedef struct model_shape {
    const char *architecture;
    uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    uint32_t rope_dims;        /* 0: head_dim */
    uint32_t embedding_format; /* GGUF_FORMAT_... */
    uint32_t format;           /* of the layers' matrices, ... */
    uint32_t down_format;      /* ... but the last, and of an output of its own */
    int bias, tied;            /* 1: of Q, K and V; 2: of all matrices; the output is the embedding */
    int factors;               /* 1: rope_freqs.weight; 2: rope_scale is YaRN's, 3: with limits of its own;
                                  4: tables for short and long contexts;
                                  5: none, but a mixture, as in architectures that are always one; up in
                                  down_format; 6: none, but up in down_format */
    float rope_theta, rope_scale;      /* 0: 10000; 0: 1 */
    uint32_t window;                   /* positions that attention sees; 0: all, and no such key */
} model_shape;

#define MODEL_YARN_CONTEXT 400

/* Of mixtures. */
enum { MODEL_EXPERTS = 6, MODEL_CHOSEN = 2, MODEL_SHARED_FFN = 64 };
#define MODEL_MIX "qwen2moe qwen3moe gpt-oss deepseek2"

/* Of latents; q has one where the shape has a bias. kv_heads 1: attn_k_b and attn_v_b, else one attn_kv_b. bias 0:
   softmax; 1: sigmoid, balance, groups; 2: softmax, groups. The first layer has no experts. */
enum { MODEL_LATENT = 128, MODEL_Q_LATENT = 64, MODEL_VALUE_DIM = 32 };

typedef struct model_line {
    char name[48];
    uint32_t columns, rows, format; /* rows 0: a vector */
    uint32_t matrices;              /* 0: 1 */
    int kind; /* 0: matrix; 1: around 1, a norm's; 2: a bias; 3: 1 ... 8; 4: a router's; 5: sinks */
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

/* Whether the shape's architecture is one of these, written with spaces between them. */
static inline int model_is(const char *architecture, const char *names)
{
    size_t n = strlen(architecture);
    const char *at;
    for (at = strstr(names, architecture); at; at = strstr(at + 1, architecture))
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return 1;
    return 0;
}

/* What files of these architectures hold. */
#define MODEL_NORMS_BEHIND "gemma2 gemma3 olmo2 glm4"
#define MODEL_LAYER_NORM "command-r cohere2 starcoder2 phi2 stablelm"
#define MODEL_NORM_BIAS "starcoder2 phi2 stablelm"
#define MODEL_PARALLEL "command-r cohere2 phi2"
#define MODEL_GELU "gemma gemma2 gemma3 starcoder2 phi2"
#define MODEL_NO_GATE "starcoder2 phi2"
#define MODEL_FUSED_GATE "phi3 glm4"
#define MODEL_FUSED_QKV "phi3 phi2"

static inline int model_is_mix(const model_shape *s)
{
    return s->factors == 5 || model_is(s->architecture, MODEL_MIX);
}

static inline model_line *model_lines(const model_shape *s, uint32_t *count)
{
    model_line *lines = (model_line *)calloc(8 + 32 * (size_t)s->layers, sizeof *lines);
    uint32_t wide = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, i;
    uint32_t turned = (s->rope_dims ? s->rope_dims : s->head_dim) / 2;
    const char *a = s->architecture;
    int norm_bias = model_is(a, MODEL_NORM_BIAS), no_gate = model_is(a, MODEL_NO_GATE), rows = !strcmp(a, "olmo2");
    int fused = model_is(a, MODEL_FUSED_GATE), qkv = model_is(a, MODEL_FUSED_QKV), bias = no_gate ? 2 : s->bias;
    int oss = !strcmp(a, "gpt-oss"), latent = !strcmp(a, "deepseek2"), mixture;
    uint32_t plain = s->head_dim - s->rope_dims, values = latent ? s->heads * MODEL_VALUE_DIM : wide;
    char name[48];
    *count = 0;
    model_add(lines, count, "token_embd.weight", s->hidden, s->vocab, s->embedding_format, 0);
    model_add(lines, count, "output_norm.weight", s->hidden, 0, GGUF_FORMAT_F32, 1);
    if (norm_bias) model_add(lines, count, "output_norm.bias", s->hidden, 0, GGUF_FORMAT_F32, 2);
    if (!s->tied) model_add(lines, count, "output.weight", s->hidden, s->vocab, s->down_format, 0);
    if (!strcmp(a, "phi2")) model_add(lines, count, "output.bias", s->vocab, 0, GGUF_FORMAT_F32, 2);
    if (s->factors == 1) model_add(lines, count, "rope_freqs.weight", turned, 0, GGUF_FORMAT_F32, 3);
    if (s->factors == 4) model_add(lines, count, "rope_factors_short.weight", turned, 0, GGUF_FORMAT_F32, 3);
    if (s->factors == 4) model_add(lines, count, "rope_factors_long.weight", turned, 0, GGUF_FORMAT_F32, 3);
#define MODEL_LINE(what, columns, rows, format, kind)                                                        \
    snprintf(name, sizeof name, "blk.%u.%s", i, what);                                                       \
    model_add(lines, count, name, columns, rows, format, kind)
#define MODEL_VECTOR(what, columns, kind) MODEL_LINE(what, columns, 0, GGUF_FORMAT_F32, kind)
    for (i = 0; i < s->layers; i++) {
        mixture = model_is_mix(s) && !(latent && i == 0);
        if (!rows) {
            MODEL_VECTOR("attn_norm.weight", s->hidden, 1);
        }
        if (norm_bias) {
            MODEL_VECTOR("attn_norm.bias", s->hidden, 2);
        }
        if (qkv) {
            MODEL_LINE("attn_qkv.weight", s->hidden, wide + 2 * kv, s->format, 0);
            if (bias) {
                MODEL_VECTOR("attn_qkv.bias", wide + 2 * kv, 2);
            }
        } else if (latent) {
            if (bias) {
                MODEL_LINE("attn_q_a.weight", s->hidden, MODEL_Q_LATENT, s->format, 0);
                MODEL_VECTOR("attn_q_a_norm.weight", MODEL_Q_LATENT, 1);
                MODEL_LINE("attn_q_b.weight", MODEL_Q_LATENT, wide, s->format, 0);
            } else {
                MODEL_LINE("attn_q.weight", s->hidden, wide, s->format, 0);
            }
            MODEL_LINE("attn_kv_a_mqa.weight", s->hidden, MODEL_LATENT + s->rope_dims, s->format, 0);
            MODEL_VECTOR("attn_kv_a_norm.weight", MODEL_LATENT, 1);
            if (s->kv_heads > 1) {
                MODEL_LINE("attn_kv_b.weight", MODEL_LATENT, s->heads * (plain + MODEL_VALUE_DIM), s->format, 0);
            } else {
                MODEL_LINE("attn_k_b.weight", plain, MODEL_LATENT, s->format, 0);
                lines[*count - 1].matrices = s->heads;
                MODEL_LINE("attn_v_b.weight", MODEL_LATENT, MODEL_VALUE_DIM, s->format, 0);
                lines[*count - 1].matrices = s->heads;
            }
        } else {
            MODEL_LINE("attn_q.weight", s->hidden, wide, s->format, 0);
            MODEL_LINE("attn_k.weight", s->hidden, kv, s->format, 0);
            MODEL_LINE("attn_v.weight", s->hidden, kv, s->format, 0);
        }
        MODEL_LINE("attn_output.weight", values, s->hidden, s->format, 0);
        if (model_is(a, MODEL_NORMS_BEHIND)) {
            MODEL_VECTOR("post_attention_norm.weight", s->hidden, 1);
            MODEL_VECTOR("post_ffw_norm.weight", s->hidden, 1);
        }
        if (oss) {
            MODEL_VECTOR("post_attention_norm.weight", s->hidden, 1);
            MODEL_VECTOR("attn_sinks.weight", s->heads, 5);
            MODEL_VECTOR("attn_output.bias", s->hidden, 2);
            MODEL_VECTOR("ffn_gate_inp.bias", MODEL_EXPERTS, 2);
            MODEL_LINE("ffn_gate_exps.bias", s->ffn, MODEL_EXPERTS, GGUF_FORMAT_F32, 2);
            MODEL_LINE("ffn_up_exps.bias", s->ffn, MODEL_EXPERTS, GGUF_FORMAT_F32, 2);
            MODEL_LINE("ffn_down_exps.bias", s->hidden, MODEL_EXPERTS, GGUF_FORMAT_F32, 2);
        } else if (!rows && !model_is(a, MODEL_PARALLEL)) {
            MODEL_VECTOR("ffn_norm.weight", s->hidden, 1);
        }
        if (norm_bias && !model_is(a, MODEL_PARALLEL)) {
            MODEL_VECTOR("ffn_norm.bias", s->hidden, 2);
        }
        if (mixture) {
            MODEL_LINE("ffn_gate_inp.weight", s->hidden, MODEL_EXPERTS, GGUF_FORMAT_F32, 4);
            MODEL_LINE("ffn_gate_exps.weight", s->hidden, s->ffn, s->format, 0);
            lines[*count - 1].matrices = MODEL_EXPERTS;
            MODEL_LINE("ffn_up_exps.weight", s->hidden, s->ffn, s->factors == 5 ? s->down_format : s->format, 0);
            lines[*count - 1].matrices = MODEL_EXPERTS;
            MODEL_LINE("ffn_down_exps.weight", s->ffn, s->hidden, s->down_format, 0);
            lines[*count - 1].matrices = MODEL_EXPERTS;
        } else if (!fused && !no_gate) {
            MODEL_LINE("ffn_gate.weight", s->hidden, s->ffn, s->format, 0);
        }
        if (!strcmp(a, "qwen2moe")) {
            MODEL_VECTOR("ffn_gate_inp_shexp.weight", s->hidden, 2);
            MODEL_LINE("ffn_gate_shexp.weight", s->hidden, MODEL_SHARED_FFN, s->format, 0);
            MODEL_LINE("ffn_up_shexp.weight", s->hidden, MODEL_SHARED_FFN, s->format, 0);
            MODEL_LINE("ffn_down_shexp.weight", MODEL_SHARED_FFN, s->hidden, s->down_format, 0);
        }
        if (latent && mixture) {
            MODEL_LINE("ffn_gate_shexp.weight", s->hidden, 2 * s->ffn, s->format, 0);
            MODEL_LINE("ffn_up_shexp.weight", s->hidden, 2 * s->ffn, s->format, 0);
            MODEL_LINE("ffn_down_shexp.weight", 2 * s->ffn, s->hidden, s->down_format, 0);
            if (bias == 1) {
                MODEL_VECTOR("exp_probs_b.bias", MODEL_EXPERTS, 2);
            }
        }
        if (!mixture) {
            MODEL_LINE("ffn_up.weight", s->hidden, fused ? 2 * s->ffn : s->ffn,
                       s->factors == 6 ? s->down_format : s->format, 0);
            MODEL_LINE("ffn_down.weight", s->ffn, s->hidden, s->down_format, 0);
        }
        if (rows || model_is(a, "qwen3 qwen3moe gemma3")) {
            MODEL_VECTOR("attn_q_norm.weight", rows ? wide : s->head_dim, 1);
            MODEL_VECTOR("attn_k_norm.weight", rows ? kv : s->head_dim, 1);
        }
        if (bias && !qkv && !latent) {
            MODEL_VECTOR("attn_q.bias", wide, 2);
            MODEL_VECTOR("attn_k.bias", kv, 2);
            MODEL_VECTOR("attn_v.bias", kv, 2);
        }
        if (bias < 2 || latent) continue;
        MODEL_VECTOR("attn_output.bias", s->hidden, 2);
        MODEL_VECTOR("ffn_up.bias", s->ffn, 2);
        MODEL_VECTOR("ffn_down.bias", s->hidden, 2);
        if (!no_gate) {
            MODEL_VECTOR("ffn_gate.bias", s->ffn, 2);
        }
    }
#undef MODEL_LINE
#undef MODEL_VECTOR
    return lines;
}

/* Values around 0 of a size that keeps activations near 1. */
static inline void model_values(gguf_maker *m, const model_line *l)
{
    size_t n = (size_t)l->columns * (l->rows ? l->rows : 1) * (l->matrices ? l->matrices : 1), i;
    size_t bytes = ref_row_bytes((int)l->format, n);
    float *x = (float *)malloc(n * sizeof *x);
    unsigned char *blocks = (unsigned char *)malloc(bytes);
    if (!x || !blocks) abort();
    for (i = 0; i < n; i++) {
        double r = random_within(1);
        x[i] = (float)(l->kind == 1 ? 1 + 0.3 * r : l->kind == 3 ? 4.5 + 3.5 * r : l->kind == 2 ? 0.5 * r
                                                                 : l->kind == 4 ? 6 * r / sqrt((double)l->columns)
                                                                 : l->kind == 5 ? 2 * r
                                                                 : 1.7 * r / sqrt((double)l->columns));
    }
    ref_quantise((int)l->format, x, n, blocks);
    make_bytes(m, blocks, bytes);
    free(blocks);
    free(x);
}

/* Values of one architecture: each is made, or where m is NULL only counted. Value number `odd` is made wrong. */
typedef struct model_keys {
    gguf_maker *m;
    const char *architecture;
    uint32_t count;
    char key[80];
    uint32_t odd;     /* 0: none; by the count */
    int renamed;      /* 1: under another key, so that it is missing; 0: as a bool */
    char odd_key[80]; /* its key */
} model_keys;

/* Whether the value is to be made here, under k->key. */
static inline int model_key(model_keys *k, const char *what)
{
    snprintf(k->key, sizeof k->key, "%s.%s", k->architecture, what);
    if (++k->count == k->odd) {
        memcpy(k->odd_key, k->key, sizeof k->key);
        if (k->renamed) {
            k->key[strlen(k->key) - 1] ^= 1;
        } else if (k->m) {
            make_key(k->m, k->key, GGUF_BOOL);
            make_little(k->m, 1, 1);
            return 0;
        }
    }
    return k->m != NULL;
}

static inline void model_u32(model_keys *k, const char *what, uint32_t x)
{
    if (model_key(k, what)) make_value_u32(k->m, k->key, x);
}

static inline void model_float(model_keys *k, const char *what, float x)
{
    if (model_key(k, what)) make_value_float(k->m, k->key, x);
}

static inline void model_bool(model_keys *k, const char *what, int x)
{
    if (!model_key(k, what)) return;
    make_key(k->m, k->key, GGUF_BOOL);
    make_little(k->m, (uint64_t)x, 1);
}

static inline void model_text(model_keys *k, const char *what, const char *x)
{
    if (model_key(k, what)) make_value_text(k->m, k->key, x);
}

/* All but general.architecture. */
static inline void make_keys(model_keys *k, const model_shape *s)
{
    const char *a = s->architecture;
    model_u32(k, "vocab_size", s->vocab);
    model_u32(k, "block_count", s->layers);
    model_u32(k, "context_length", s->context);
    model_u32(k, "embedding_length", s->hidden);
    model_u32(k, "feed_forward_length", s->ffn);
    model_u32(k, "attention.head_count", s->heads);
    model_u32(k, "attention.head_count_kv", s->kv_heads);
    if (strcmp(a, "deepseek2")) {
        model_u32(k, "attention.key_length", s->head_dim);
        model_u32(k, "attention.value_length", s->head_dim);
    } else {
        int split = s->kv_heads == 1;
        model_u32(k, "attention.key_length", split ? MODEL_LATENT + s->rope_dims : s->head_dim);
        model_u32(k, "attention.value_length", split ? MODEL_LATENT : MODEL_VALUE_DIM);
        if (split) model_u32(k, "attention.key_length_mla", s->head_dim);
        if (split) model_u32(k, "attention.value_length_mla", MODEL_VALUE_DIM);
        model_u32(k, "attention.kv_lora_rank", MODEL_LATENT);
        if (s->bias) model_u32(k, "attention.q_lora_rank", MODEL_Q_LATENT);
        model_u32(k, "leading_dense_block_count", 1);
        model_u32(k, "expert_shared_count", 2);
        model_float(k, "expert_weights_scale", s->bias == 1 ? 2.5f : 1);
        model_bool(k, "expert_weights_norm", s->bias == 1);
        if (s->bias == 1) model_u32(k, "expert_gating_func", 2);
        if (s->bias) model_u32(k, "expert_group_count", 3);
        if (s->bias) model_u32(k, "expert_group_used_count", s->bias == 1 ? 2 : 1);
        if (s->factors > 1) model_float(k, "rope.scaling.yarn_log_multiplier", 0.0707f);
    }
    model_float(k, model_is(a, MODEL_LAYER_NORM) ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                1e-5f);
    model_float(k, "rope.freq_base", s->rope_theta > 0 ? s->rope_theta : 10000.0f);
    if (s->rope_scale > 0) {
        model_text(k, "rope.scaling.type", s->factors > 1 ? "yarn" : "linear");
        model_float(k, "rope.scaling.factor", s->rope_scale);
    }
    if (s->factors > 1 && s->factors < 5) model_u32(k, "rope.scaling.original_context_length", MODEL_YARN_CONTEXT);
    if (model_is_mix(s)) {
        model_u32(k, "expert_count", MODEL_EXPERTS);
        model_u32(k, "expert_used_count", MODEL_CHOSEN);
    }
    if (model_is(a, MODEL_MIX)) model_u32(k, "expert_feed_forward_length", s->ffn);
    if (!strcmp(a, "qwen2moe")) model_u32(k, "expert_shared_feed_forward_length", MODEL_SHARED_FFN);
    if (s->factors == 3) {
        model_float(k, "rope.scaling.yarn_beta_fast", 8);
        model_float(k, "rope.scaling.yarn_beta_slow", 0.25f);
    }
    if (s->factors == 4) model_float(k, "rope.scaling.attn_factor", 1.19f);
    if (s->rope_dims) model_u32(k, "rope.dimension_count", s->rope_dims);
    if (s->window) model_u32(k, "attention.sliding_window", s->window);
    if (!strcmp(a, "gemma2")) { /* small enough to matter for these models */
        model_float(k, "attn_logit_softcapping", 1.5f);
        model_float(k, "final_logit_softcapping", 2.5f);
    }
    if (model_is(a, "command-r cohere2")) model_float(k, "logit_scale", 0.0625f);
    if (!strcmp(a, "granite")) {
        model_float(k, "logit_scale", 8);
        model_float(k, "embedding_scale", 12);
        model_float(k, "residual_scale", 0.22f);
        model_float(k, "attention.scale", 0.3f);
    }
}

/* The head of a file with these tensors, and one value made wrong where *odd says so. Returns the tensors' bytes. */
static inline uint64_t make_head_of(gguf_maker *m, const model_shape *s, const model_line *lines, uint32_t count,
                                    model_keys *odd)
{
    uint32_t i;
    uint64_t offset = 0;
    odd->architecture = s->architecture;
    odd->count = 2;
    odd->m = NULL;
    make_keys(odd, s);
    make_start(m, count, odd->count);
    make_value_text(m, "general.architecture", s->architecture);
    odd->m = m;
    odd->count = 2;
    make_keys(odd, s);
    make_value_text(m, "tokenizer.ggml.model", "none"); /* so that other readers ask for no tokens */
    for (i = 0; i < count; i++) {
        const model_line *l = &lines[i];
        uint64_t values = 1, bytes = 0;
        make_matrices(m, l->name, l->columns, l->rows, l->matrices ? l->matrices : 1, l->format, offset);
        gguf_block(l->format, &values, &bytes);
        offset += (uint64_t)l->columns * (l->rows ? l->rows : 1) * (l->matrices ? l->matrices : 1) / values * bytes;
        offset = (offset + 31) & ~31ull;
    }
    return offset;
}

/* The head of a model's file, without a tokeniser, and which tensors follow, to be freed; *bytes: theirs. */
static inline model_line *make_model_head(gguf_maker *m, const model_shape *s, uint32_t *tensors,
                                          uint64_t *bytes)
{
    model_keys none;
    model_line *lines = model_lines(s, tensors);
    memset(&none, 0, sizeof none);
    *bytes = make_head_of(m, s, lines, *tensors, &none);
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

/* Rows of a tensor, `of` rows in all, from `first` on; of 0: all of it. */
static inline ref_matrix model_rows(const gguf *g, const unsigned char *file, uint32_t layer, const char *what,
                                    uint32_t first, uint32_t rows)
{
    char name[64], bias[64];
    const gguf_tensor *t;
    const float *b;
    ref_matrix none = {0, 0, NULL, NULL, 0};
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, what);
    snprintf(bias, sizeof bias, "blk.%u.%s.bias", layer, what);
    t = gguf_tensor_find(g, layer == UINT32_MAX ? what : name);
    if (!t) return none;
    b = layer == UINT32_MAX ? NULL : model_floats(g, file, bias);
    return ref_matrix_make((int)t->format,
                           file + t->offset + first * ref_row_bytes((int)t->format, (size_t)t->size[0]),
                           rows ? rows : (uint32_t)t->size[1], (uint32_t)t->size[0], b ? b + first : NULL);
}

static inline ref_matrix model_matrix(const gguf *g, const unsigned char *file, uint32_t layer,
                                      const char *what)
{
    return model_rows(g, file, layer, what, 0, 0);
}

/* A number of the file, or another where there is none. */
static inline double model_number(const gguf *g, const char *what, double otherwise)
{
    gguf_text a;
    char key[100];
    uint32_t whole;
    double x;
    if (!gguf_get_text(g, "general.architecture", &a)) return otherwise;
    snprintf(key, sizeof key, "%.*s.%s", (int)a.bytes, a.at, what);
    if (gguf_get_float(g, key, &x)) return x;
    return gguf_get_u32(g, key, &whole) ? whole : otherwise;
}

/* What the architectures differ in. */
static inline void model_kind(ref_llama *r, const gguf *g, const unsigned char *file)
{
    char a[40] = "";
    gguf_text name;
    int wide;
    if (gguf_get_text(g, "general.architecture", &name)) snprintf(a, sizeof a, "%.*s", (int)name.bytes, name.at);
    r->rope = REF_ROPE_HALVES;
    r->over_all = model_is(a, "qwen2moe deepseek2");
    r->sigmoid = model_number(g, "expert_gating_func", 1) > 1;
    r->route_scale = model_number(g, "expert_weights_scale", 1);
    r->groups = (uint32_t)model_number(g, "expert_group_count", 0);
    r->chosen_groups = (uint32_t)model_number(g, "expert_group_used_count", 0);
    r->dense_layers = (uint32_t)model_number(g, "leading_dense_block_count", 0);
    r->latent = (uint32_t)model_number(g, "attention.kv_lora_rank", 0);
    r->q_latent = (uint32_t)model_number(g, "attention.q_lora_rank", 0);
    r->value_dim = !r->latent ? r->head_dim
                              : (uint32_t)model_number(g, "attention.value_length_mla",
                                                       model_number(g, "attention.value_length", 0));
    if (r->latent && gguf_get_bool(g, "deepseek2.expert_weights_norm", &wide)) r->normalise = wide;
    if (model_is(a, "llama command-r cohere2 granite smollm3 internlm2 ernie4_5 glm4 deepseek2"))
        r->rope = REF_ROPE_INTERLEAVED;
    r->layer_norm = model_is(a, MODEL_LAYER_NORM);
    r->parallel = model_is(a, MODEL_PARALLEL);
    r->norm_rows = !strcmp(a, "olmo2");
    r->gelu = model_is(a, MODEL_GELU);
    r->eps = model_number(g, r->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0);
    r->output_norm_bias = model_floats(g, file, "output_norm.bias");
    if (model_is(a, "gemma gemma2 gemma3")) r->embedding_scale = sqrt((double)r->hidden);
    wide = (!strcmp(a, "gemma2") && r->layers == 46) || (!strcmp(a, "gemma3") && r->layers == 62);
    if (wide) r->scale = 1 / sqrt((double)r->hidden / r->heads);
    r->window = (uint32_t)model_number(g, "attention.sliding_window", !strcmp(a, "gemma2") ? 4096 : 0);
    if (model_is(a, "gemma2 gpt-oss")) r->period = 2;
    r->clamped = !strcmp(a, "gpt-oss");
    if (!strcmp(a, "gemma3")) r->period = 6, r->local_theta = 10000;
    if (model_is(a, "cohere2 olmo2")) r->period = 4;
    if (!strcmp(a, "olmo2")) r->local_theta = r->theta, r->local_scale = 1 / sqrt((double)r->head_dim);
    if (!strcmp(a, "smollm3")) r->period = 4;
    r->global_unturned = model_is(a, "cohere2 smollm3");
    r->attention_cap = model_number(g, "attn_logit_softcapping", 0);
    r->final_cap = model_number(g, "final_logit_softcapping", 0);
    r->logit_scale = model_number(g, "logit_scale", 1);
    if (strcmp(a, "granite")) return;
    r->logit_scale = 1 / r->logit_scale;
    r->embedding_scale = model_number(g, "embedding_scale", 1);
    r->residual_scale = model_number(g, "residual_scale", 1);
    r->scale = model_number(g, "attention.scale", 0);
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
    r->scale = pow(1 + (r->latent ? model_number(g, "rope.scaling.yarn_log_multiplier", 0) : 0.1)
                           * log(r->rope_scale), 2)
               / sqrt((double)r->head_dim);
}

/* The matrices of latents; of an attn_kv_b those of the keys the other way round. */
static inline void model_latents(ref_llama *r, const gguf *g, const unsigned char *file, uint32_t layer)
{
    ref_llama_layer *l = &r->layer[layer];
    uint32_t plain = r->head_dim - r->rope_dims, one = plain + r->value_dim, h, i, j;
    char name[64];
    ref_matrix both;
    l->q_a = model_matrix(g, file, layer, "attn_q_a");
    l->q_b = model_matrix(g, file, layer, "attn_q_b");
    l->kv_a = model_matrix(g, file, layer, "attn_kv_a_mqa");
    snprintf(name, sizeof name, "blk.%u.attn_q_a_norm.weight", layer);
    l->q_a_norm = model_floats(g, file, name);
    snprintf(name, sizeof name, "blk.%u.attn_kv_a_norm.weight", layer);
    l->kv_a_norm = model_floats(g, file, name);
    l->k_b = model_rows(g, file, layer, "attn_k_b", 0, r->heads * r->latent);
    l->v_b = model_rows(g, file, layer, "attn_v_b", 0, r->heads * r->value_dim);
    both = model_matrix(g, file, layer, "attn_kv_b");
    if (!both.w) return;
    l->k_b = l->v_b = both;
    l->k_b.columns = plain;
    l->k_b.plain = 1; /* f32 on the device */
    l->k_b.w = (double *)malloc((size_t)r->heads * r->latent * plain * sizeof(double));
    l->v_b.w = (double *)malloc((size_t)r->heads * r->latent * r->value_dim * sizeof(double));
    for (h = 0; h < r->heads; h++)
        for (j = 0; j < r->latent; j++) {
            for (i = 0; i < plain; i++)
                l->k_b.w[((size_t)h * r->latent + j) * plain + i] = both.w[((size_t)h * one + i) * r->latent + j];
            for (i = 0; i < r->value_dim; i++)
                l->v_b.w[((size_t)h * r->value_dim + i) * r->latent + j] =
                    both.w[((size_t)h * one + plain + i) * r->latent + j];
        }
    free(both.w);
}

/* Numbers from the file's reader, everything else from the file. The file must outlive the reference. */
static inline void model_reference(ref_llama *r, const llama_config *c, const gguf *g,
                                   const unsigned char *file)
{
    uint32_t i, wide = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    char name[64];
    memset(r, 0, sizeof *r);
    r->vocab = c->vocab;
    r->hidden = c->hidden;
    r->layers = c->layers;
    r->heads = c->heads;
    r->kv_heads = c->kv_heads;
    r->head_dim = c->head_dim;
    r->ffn = c->ffn > c->shared_ffn ? c->ffn : c->shared_ffn;
    r->experts = (uint32_t)model_number(g, "expert_count", 0);
    r->chosen = (uint32_t)model_number(g, "expert_used_count", 0);
    r->expert_ffn = (uint32_t)model_number(g, "expert_feed_forward_length", c->ffn);
    if (r->ffn < r->expert_ffn) r->ffn = r->expert_ffn;
    r->context = c->context;
    r->rope_dims = c->rope_dims;
    r->theta = c->rope_theta;
    r->rope_scale = c->rope_scale;
    r->rope_factors = model_floats(g, file, "rope_freqs.weight");
    model_kind(r, g, file);
    model_yarn(r, g);
    if (gguf_tensor_find(g, "rope_factors_short.weight")) {
        double longer = model_number(g, "rope.scaling.attn_factor", 1);
        r->rope_factors = model_floats(g, file, "rope_factors_short.weight");
        r->scale = longer * longer / sqrt((double)r->head_dim);
    }
    r->kv_f16 = 1;
    r->noise_state = 1;
    r->output_norm = model_floats(g, file, "output_norm.weight");
    r->embedding = model_matrix(g, file, UINT32_MAX, "token_embd.weight");
    r->output = model_matrix(g, file, UINT32_MAX, "output.weight");
    r->output.bias = model_floats(g, file, "output.bias");
    r->layer = (ref_llama_layer *)calloc(c->layers, sizeof *r->layer);
    for (i = 0; i < c->layers; i++) {
        ref_llama_layer *l = &r->layer[i];
#define MODEL_FLOATS(what) (snprintf(name, sizeof name, "blk.%u.%s", i, what), model_floats(g, file, name))
        l->attn_norm = MODEL_FLOATS("attn_norm.weight");
        l->attn_norm_bias = MODEL_FLOATS("attn_norm.bias");
        l->ffn_norm = MODEL_FLOATS("ffn_norm.weight");
        l->ffn_norm_bias = MODEL_FLOATS("ffn_norm.bias");
        l->post_attn_norm = MODEL_FLOATS("post_attention_norm.weight");
        l->post_ffn_norm = MODEL_FLOATS("post_ffw_norm.weight");
        l->sinks = MODEL_FLOATS("attn_sinks.weight");
        if (l->sinks) l->ffn_norm = l->post_attn_norm, l->post_attn_norm = NULL;
        l->q_norm = MODEL_FLOATS("attn_q_norm.weight");
        l->k_norm = MODEL_FLOATS("attn_k_norm.weight");
#undef MODEL_FLOATS
        l->q = model_rows(g, file, i, "attn_qkv", 0, wide);
        l->k = model_rows(g, file, i, "attn_qkv", wide, kv);
        l->v = model_rows(g, file, i, "attn_qkv", wide + kv, kv);
        if (!l->q.w) {
            l->q = model_matrix(g, file, i, "attn_q");
            l->k = model_matrix(g, file, i, "attn_k");
            l->v = model_matrix(g, file, i, "attn_v");
        }
        l->o = model_matrix(g, file, i, "attn_output");
        if (r->latent) model_latents(r, g, file, i);
        l->gate = model_matrix(g, file, i, "ffn_gate");
        l->up = model_matrix(g, file, i, "ffn_up");
        if (l->up.rows == 2 * c->ffn) {
            free(l->up.w);
            l->gate = model_rows(g, file, i, "ffn_up", 0, c->ffn);
            l->up = model_rows(g, file, i, "ffn_up", c->ffn, c->ffn);
        }
        l->down = model_matrix(g, file, i, "ffn_down");
        if (!r->experts) continue;
        l->router = model_matrix(g, file, i, "ffn_gate_inp");
        l->gates = model_rows(g, file, i, "ffn_gate_exps", 0, r->expert_ffn * r->experts);
        l->ups = model_rows(g, file, i, "ffn_up_exps", 0, r->expert_ffn * r->experts);
        l->downs = model_rows(g, file, i, "ffn_down_exps", 0, r->hidden * r->experts);
        l->balance = model_floats(g, file, (snprintf(name, sizeof name, "blk.%u.exp_probs_b.bias", i), name));
        l->shared_router = model_matrix(g, file, i, "ffn_gate_inp_shexp");
        if (!l->shared_router.w && (!r->latent || i < r->dense_layers)) continue;
        l->gate = model_matrix(g, file, i, "ffn_gate_shexp");
        l->up = model_matrix(g, file, i, "ffn_up_shexp");
        l->down = model_matrix(g, file, i, "ffn_down_shexp");
    }
}

#endif
