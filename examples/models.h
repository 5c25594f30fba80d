/* models.h - language models as GGUF files hold them: one table of what differs between architectures, the
   numbers of a model, its tensors. Nothing here needs a device; llama.h computes.

   What a model of any row of llama_architectures computes, for each token t of a sequence:

     x = e E[t]                                               e: embedding_scale
     each layer, where before and after are norms, or nothing if the row does not have them:
         q, k, v = W before(x) + bias;  q and k may be normalised, then rotated (RoPE); k and v are cached
         x += r after(W attention(q, k, v) + bias)            r: residual_scale
         x += r after(W f(before(x)) + bias)                  f: silu(gate) up, gelu(gate) up, gelu(up), or
                                                              PTXK_SWIGLU_CLAMPED of both
       PARALLEL: attention and feed-forward read the norm of the same x
       mixture of experts: x += sum of w_e(x) W_e f_e(before(x)) over the chosen experts e (+ sigmoid(u
       before(x)) W f(before(x)) of the shared expert). Those with the largest scores W before(x) (+ bias) are
       chosen; w is the softmax of the scores; W_e may have biases
       LATENT: attention as in llama_read_latent, the choice of experts as in llama_read_routing
     logits = cap(l (W norm(x)))                              l: logit_scale; cap(z) = c tanh(z / c)

   residual_scale and logit_scale need no launch: device memory holds x / r instead of x, norms of which use
   eps / r^2; the weights of the last norm are multiplied by l when they are uploaded. */
#ifndef EXAMPLES_MODELS_H
#define EXAMPLES_MODELS_H

#include <math.h>

#include "gguf.h"

/* -- architectures -- */

/* The kind of the norms of x; their places in a layer; norms of q and k, of each head or of whole rows; the
   activation of the feed-forward (GELU: without a gate). */
enum { LLAMA_RMS = 0, LLAMA_LAYER = 1, LLAMA_LAYER_BIAS = 2 };
enum { LLAMA_BEFORE = 1, LLAMA_AFTER = 2, LLAMA_BOTH = 3, LLAMA_PARALLEL = 5 };
enum { LLAMA_QK_PLAIN = 0, LLAMA_QK_HEADS = 1, LLAMA_QK_ROWS = 2 };
enum { LLAMA_SWIGLU = 0, LLAMA_GEGLU = 1, LLAMA_GELU = 2, LLAMA_CLAMPED = 3 };

/* GGUF keys that change what is computed: those that an architecture supports. It refuses the others. */
enum {
    LLAMA_KEYS_NONE = 0,
    LLAMA_KEYS_CAPS = 1,    /* attn_logit_softcapping, final_logit_softcapping */
    LLAMA_KEYS_SCALES = 2,  /* embedding_scale, residual_scale, attention.scale */
    LLAMA_KEYS_TIMES = 4,   /* logit_scale multiplies */
    LLAMA_KEYS_DIVIDED = 8, /* logit_scale divides */
    LLAMA_KEYS_LONG = 16,   /* rope.scaling.attn_factor; factors for short and for long contexts */
    LLAMA_KEYS_SWITCH = 32, /* rope.scaling.finetuned false: nothing is rotated */
    LLAMA_KEYS_LATENT = 64, /* rope.scaling.yarn_log_multiplier */
    LLAMA_KEYS_GRANITE = LLAMA_KEYS_SCALES | LLAMA_KEYS_DIVIDED | LLAMA_KEYS_SWITCH
};

/* ROOT: embeddings are multiplied by sqrt(hidden). FUSED: ffn_up holds gate and up, gate's rows first.
   MAY_MIX: a mixture of experts if the file has experts. MIX: always. SHARED: with a shared expert; weights
   of the chosen experts are not normalised. SINKS: each head has an attention sink, a score without a key;
   router and experts have biases; the norm before the experts is named post_attention_norm. LATENT: keys and
   values are computed from one latent; the first layers have no experts; the shared expert has no router. */
enum {
    LLAMA_FEATURE_NONE = 0,
    LLAMA_FEATURE_ROOT = 1,
    LLAMA_FEATURE_FUSED = 2,
    LLAMA_FEATURE_MAY_MIX = 4,
    LLAMA_FEATURE_MIX = 8,
    LLAMA_FEATURE_SHARED = 24, /* and MIX */
    LLAMA_FEATURE_SINKS = 40,  /* and MIX */
    LLAMA_FEATURE_LATENT = 72  /* and MIX */
};

/* RoPE of layers with a window, in a model that also has layers without: the same; with its own base,
   unscaled; with the same base, unscaled; only these layers are rotated, even if no window is set. */
enum { LLAMA_ROPE_SAME = 0, LLAMA_ROPE_BASE = 1, LLAMA_ROPE_UNSCALED = 2, LLAMA_ROPE_ONLY = 3 };

typedef struct llama_architecture {
    const char *name;
    uint32_t rope_pairs; /* PTXK_ROPE_... */
    uint32_t norm, norm_places, qk_norm, activation, keys, features;
    uint32_t full_attention_period; /* layer n has no window if n % period == period - 1; 0: all layers have
                                       the window, if there is one */
    uint32_t local_rope; /* LLAMA_ROPE_... */
    uint32_t window;     /* default if the file has none; 0: no window. Likewise the caps */
    float attention_cap, final_cap;
    uint32_t layers_scaled_by_hidden; /* with this number of layers, scores are scaled by
                                         sqrt(heads / hidden) */
} llama_architecture;

/* A related architecture needs a row, and code for what is new in it. Files of Mistral's models, and of
   others with the same layers, have the architecture llama. ROW_: with window, caps and
   layers_scaled_by_hidden. */
/* clang-format off */
static const llama_architecture llama_architectures[] = {
#define ROW(name, pairs, norm, places, qk_norm, activation, keys, feature, period, rope)                     \
    ROW_(name, pairs, norm, places, qk_norm, activation, keys, feature, period, rope, 0, 0, 0, 0)
#define ROW_(name, pairs, norm, places, qk_norm, activation, keys, feature, period, rope, window, a_cap,     \
             f_cap, scaled)                                                                                  \
    {name, PTXK_ROPE_##pairs, LLAMA_##norm, LLAMA_##places, LLAMA_QK_##qk_norm, LLAMA_##activation,          \
     LLAMA_KEYS_##keys, LLAMA_FEATURE_##feature, period, LLAMA_ROPE_##rope, window, a_cap, f_cap, scaled},
    /*  name          pairs         norm         places     q, k    activ.   keys      feature period, rope */
    ROW("llama",      INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     MAY_MIX, 0, SAME)
    ROW("qwen2",      NEOX,         RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("qwen3",      NEOX,         RMS,         BEFORE,    HEADS,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("qwen2moe",   NEOX,         RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     SHARED, 0, SAME)
    ROW("qwen3moe",   NEOX,         RMS,         BEFORE,    HEADS,  SWIGLU,  NONE,     MIX,    0, SAME)
    ROW("gpt-oss",    NEOX,         RMS,         BEFORE,    PLAIN,  CLAMPED, NONE,     SINKS,  2, SAME)
    ROW("deepseek2",  INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  LATENT,   LATENT, 0, SAME)
    ROW("smollm3",    INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   4, ONLY)
    ROW("internlm2",  INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("ernie4_5",   INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("exaone",     NEOX,         RMS,         BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("gemma",      NEOX,         RMS,         BEFORE,    PLAIN,  GEGLU,   NONE,     ROOT,   0, SAME)
    ROW_("gemma2",    NEOX,         RMS,         BOTH,      PLAIN,  GEGLU,   CAPS,     ROOT,   2, SAME,
         4096, 50, 30, 46)
    ROW_("gemma3",    NEOX,         RMS,         BOTH,      HEADS,  GEGLU,   NONE,     ROOT,   6, BASE,
         0, 0, 0, 62)
    ROW("glm4",       INTERLEAVED,  RMS,         BOTH,      PLAIN,  SWIGLU,  NONE,     FUSED,  0, SAME)
    ROW("phi2",       NEOX,         LAYER_BIAS,  PARALLEL,  PLAIN,  GELU,    NONE,     NONE,   0, SAME)
    ROW("phi3",       NEOX,         RMS,         BEFORE,    PLAIN,  SWIGLU,  LONG,     FUSED,  0, SAME)
    ROW("olmo2",      NEOX,         RMS,         AFTER,     ROWS,   SWIGLU,  NONE,     NONE,   4, UNSCALED)
    ROW("command-r",  INTERLEAVED,  LAYER,       PARALLEL,  PLAIN,  SWIGLU,  TIMES,    NONE,   0, SAME)
    ROW("cohere2",    INTERLEAVED,  LAYER,       PARALLEL,  PLAIN,  SWIGLU,  TIMES,    NONE,   4, ONLY)
    ROW("starcoder2", NEOX,         LAYER_BIAS,  BEFORE,    PLAIN,  GELU,    NONE,     NONE,   0, SAME)
    ROW("stablelm",   NEOX,         LAYER_BIAS,  BEFORE,    PLAIN,  SWIGLU,  NONE,     NONE,   0, SAME)
    ROW("granite",    INTERLEAVED,  RMS,         BEFORE,    PLAIN,  SWIGLU,  GRANITE,  NONE,   0, SAME)
#undef ROW
#undef ROW_
};
/* clang-format on */
#define LLAMA_ARCHITECTURES (sizeof llama_architectures / sizeof *llama_architectures)

/* X(name, reason): well-known architectures that are not supported, with the reason for the message. */
#define LLAMA_OTHER_ARCHITECTURES(X)                                                                         \
    X("gemma3n", "several streams, embeddings for each layer")                                               \
    X("gpt2", "LayerNorm, learned positions")                                                                \
    X("falcon", "LayerNorm, attention and feed-forward side by side")                                        \
    X("mamba", "no attention")                                                                               \
    X("bert", "no decoder")

/* X(key, neutral, LLAMA_KEYS_ that support it): keys that change what a layer computes. Without support they
   are refused, unless they have the neutral value, which changes nothing. */
#define LLAMA_REFUSED_KEYS(X)                                                                                \
    X("attention.scale", 0, LLAMA_KEYS_SCALES)                                                               \
    X("attention.clamp_kqv", 0, 0)                                                                           \
    X("attention.max_alibi_bias", 0, 0)                                                                      \
    X("attention.temperature_scale", 0, 0)                                                                   \
    X("attn_logit_softcapping", 0, LLAMA_KEYS_CAPS)                                                          \
    X("final_logit_softcapping", 0, LLAMA_KEYS_CAPS)                                                         \
    X("logit_scale", 0, LLAMA_KEYS_TIMES | LLAMA_KEYS_DIVIDED)                                               \
    X("embedding_scale", 0, LLAMA_KEYS_SCALES)                                                               \
    X("residual_scale", 0, LLAMA_KEYS_SCALES)                                                                \
    X("rope.scaling.attn_factor", 1, LLAMA_KEYS_LONG)                                                        \
    X("rope.scaling.yarn_attn_factor", 1, 0)                                                                 \
    X("rope.scaling.yarn_ext_factor", NAN, 0)                                                                \
    X("rope.scaling.yarn_log_multiplier", 0, LLAMA_KEYS_LATENT)

/* X(type in the file, the kernels' name for it) */
#define LLAMA_FORMATS(X)                                                                                     \
    X(F32, PTXK_F32)                                                                                         \
    X(F16, PTXK_F16)                                                                                         \
    X(BF16, PTXK_BF16)                                                                                       \
    X(Q8_0, PTXK_Q8_0)                                                                                       \
    X(Q4_0, PTXK_Q4_0)                                                                                       \
    X(Q4_K, PTXK_Q4_K)                                                                                       \
    X(Q5_K, PTXK_Q5_K)                                                                                       \
    X(Q6_K, PTXK_Q6_K)                                                                                       \
    X(Q4_1, PTXK_Q4_1)                                                                                       \
    X(Q5_0, PTXK_Q5_0)                                                                                       \
    X(Q5_1, PTXK_Q5_1)                                                                                       \
    X(Q2_K, PTXK_Q2_K)                                                                                       \
    X(Q3_K, PTXK_Q3_K)                                                                                       \
    X(IQ4_NL, PTXK_IQ4_NL)                                                                                   \
    X(IQ4_XS, PTXK_IQ4_XS)                                                                                   \
    X(MXFP4, PTXK_MXFP4)                                                                                     \
    X(NVFP4, PTXK_NVFP4)                                                                                     \
    X(IQ2_XXS, PTXK_IQ2_XXS)                                                                                 \
    X(IQ2_XS, PTXK_IQ2_XS)                                                                                   \
    X(IQ2_S, PTXK_IQ2_S)                                                                                     \
    X(IQ3_XXS, PTXK_IQ3_XXS)                                                                                 \
    X(IQ3_S, PTXK_IQ3_S)                                                                                     \
    X(IQ1_S, PTXK_IQ1_S)                                                                                     \
    X(IQ1_M, PTXK_IQ1_M)                                                                                     \
    X(TQ1_0, PTXK_TQ1_0)                                                                                     \
    X(TQ2_0, PTXK_TQ2_0)

/* The numbers of a model, from its file. */
typedef struct llama_config {
    const llama_architecture *architecture;
    uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    uint32_t experts, chosen;        /* of a mixture, in each layer; 0: there are none */
    uint32_t expert_ffn, shared_ffn; /* ffn of an expert, of the shared expert (0: there is none) */
    uint32_t dense_layers;           /* number of layers, the first ones, that have no experts */
    uint32_t route_kind, route_flags, groups, chosen_groups; /* see ptxk_route_desc */
    double route_scale;              /* factor of the experts' weights */
    uint32_t latent, q_latent;       /* elements of the latent of k and v, and of that of q; 0: none */
    uint32_t value_dim;              /* elements of a head of v */
    int has_split_kv_b;              /* attn_k_b and attn_v_b instead of attn_kv_b */
    uint32_t rope_dims, rope_pairs;  /* elements of a head that are rotated; PTXK_ROPE_... */
    double rope_theta, rope_scale;   /* base of the frequencies; positions are divided by the scale */
    double local_theta;              /* base in layers with a window, unscaled; 0: as in the others */
    double yarn_context;             /* YaRN: the original context; 0: no YaRN. Pairs with more rotations */
    double yarn_fast, yarn_slow;     /* in it than `fast` are not scaled, with fewer than `slow` fully */
    uint32_t original_context;       /* beyond it rope_factors_long.weight is used, else _short; 0: neither */
    int unrotated;                   /* no layer is rotated */
    double score_scale;              /* factor of q . k */
    double local_score_scale;        /* the same in layers with a window */
    double attention_cap, final_cap; /* 0: none */
    double embedding_scale, residual_scale, logit_scale; /* 1 where there is none */
    double eps;                                          /* of the norms */
    uint32_t window;                                     /* positions that attention sees; 0: all */
    uint32_t full_attention_period;                      /* see llama_architecture */
} llama_config;

/* The window of a layer; 0: it has none. */
static inline uint32_t llama_layer_window(const llama_config *c, uint32_t layer) {
    return c->full_attention_period && layer % c->full_attention_period == c->full_attention_period - 1
               ? 0
               : c->window;
}

/* Whether a layer has a window, in a model that also has layers without. */
static inline int llama_is_local(const llama_config *c, uint32_t layer) {
    return c->full_attention_period && c->window && llama_layer_window(c, layer);
}

static inline int llama_is_rotated(const llama_config *c, uint32_t layer) {
    return !c->unrotated
           && (c->architecture->local_rope != LLAMA_ROPE_ONLY
               || layer % c->full_attention_period != c->full_attention_period - 1);
}

/* -- tensors -- */

/* Whether a model has a tensor of the tables: no, perhaps, yes. */
enum { LLAMA_NOT = 0, LLAMA_MAY = 1, LLAMA_MUST = 2 };
#define LLAMA_IF(condition) ((condition) ? LLAMA_MUST : LLAMA_NOT)
#define LLAMA_HAS_FFN_NORM(a) ((a)->norm_places == LLAMA_BEFORE || (a)->norm_places == LLAMA_BOTH)
#define LLAMA_HAS_SINKS(a) (((a)->features & LLAMA_FEATURE_SINKS) == LLAMA_FEATURE_SINKS)
#define LLAMA_HAS_LATENT(a) (((a)->features & LLAMA_FEATURE_LATENT) == LLAMA_FEATURE_LATENT)

/* X(name, name in the file, columns, rows, LLAMA_MUST ...): the model's tensors, then those of each layer.
   Rows 0: a vector, in F32. The expressions use the llama_config *c, its architecture *a, the tensors *t that
   precede in the layer, and `mixture`: whether the layer has experts. */
#define LLAMA_TENSORS(X)                                                                                     \
    X(EMBEDDING, "token_embd.weight", c->hidden, c->vocab, LLAMA_MUST)                                       \
    X(OUTPUT_NORM, "output_norm.weight", c->hidden, 0, LLAMA_MUST)                                           \
    X(OUTPUT_NORM_BIAS, "output_norm.bias", c->hidden, 0, LLAMA_IF(a->norm == LLAMA_LAYER_BIAS))             \
    X(OUTPUT, "output.weight", c->hidden, c->vocab, LLAMA_MAY)                                               \
    X(OUTPUT_BIAS, "output.bias", c->vocab, 0, LLAMA_MAY)                                                    \
    X(ROPE_FACTORS, "rope_freqs.weight", c->rope_dims / 2, 0, LLAMA_MAY)                                     \
    X(ROPE_SHORT, "rope_factors_short.weight", c->rope_dims / 2, 0, LLAMA_IF(c->original_context))           \
    X(ROPE_LONG, "rope_factors_long.weight", c->rope_dims / 2, 0, LLAMA_IF(c->original_context))
#define LLAMA_LAYER_TENSORS(X)                                                                               \
    X(ATTENTION_NORM, "attn_norm.weight", c->hidden, 0, LLAMA_IF((a->norm_places & LLAMA_BEFORE)))           \
    X(ATTENTION_NORM_BIAS, "attn_norm.bias", c->hidden, 0,                                                   \
      LLAMA_IF((a->norm_places & LLAMA_BEFORE) && a->norm == LLAMA_LAYER_BIAS))                              \
    X(QKV, "attn_qkv.weight", c->hidden, (c->heads + 2 * c->kv_heads) * c->head_dim, LLAMA_MAY)              \
    X(QKV_BIAS, "attn_qkv.bias", (c->heads + 2 * c->kv_heads) * c->head_dim, 0,                              \
      t[LLAMA_QKV].from ? LLAMA_MAY : LLAMA_NOT)                                                             \
    X(Q, "attn_q.weight", c->hidden, c->heads * c->head_dim, LLAMA_IF(!t[LLAMA_QKV].from && !c->q_latent))   \
    X(K, "attn_k.weight", c->hidden, c->kv_heads * c->head_dim, LLAMA_IF(!t[LLAMA_QKV].from && !c->latent))  \
    X(V, "attn_v.weight", c->hidden, c->kv_heads * c->head_dim, LLAMA_IF(!t[LLAMA_QKV].from && !c->latent))  \
    X(Q_BIAS, "attn_q.bias", c->heads * c->head_dim, 0, t[LLAMA_QKV].from ? LLAMA_NOT : LLAMA_MAY)           \
    X(K_BIAS, "attn_k.bias", c->kv_heads * c->head_dim, 0, t[LLAMA_QKV].from ? LLAMA_NOT : LLAMA_MAY)        \
    X(V_BIAS, "attn_v.bias", c->kv_heads * c->head_dim, 0, t[LLAMA_QKV].from ? LLAMA_NOT : LLAMA_MAY)        \
    X(Q_NORM, "attn_q_norm.weight", a->qk_norm == LLAMA_QK_ROWS ? c->heads * c->head_dim : c->head_dim, 0,   \
      LLAMA_IF(a->qk_norm))                                                                                  \
    X(K_NORM, "attn_k_norm.weight", a->qk_norm == LLAMA_QK_ROWS ? c->kv_heads * c->head_dim : c->head_dim,   \
      0, LLAMA_IF(a->qk_norm))                                                                               \
    X(SINKS, "attn_sinks.weight", c->heads, 0, LLAMA_IF(LLAMA_HAS_SINKS(a)))                                 \
    X(Q_A, "attn_q_a.weight", c->hidden, c->q_latent, LLAMA_IF(c->q_latent))                                 \
    X(Q_A_NORM, "attn_q_a_norm.weight", c->q_latent, 0, LLAMA_IF(c->q_latent))                               \
    X(Q_B, "attn_q_b.weight", c->q_latent, c->heads * c->head_dim, LLAMA_IF(c->q_latent))                    \
    X(KV_A, "attn_kv_a_mqa.weight", c->hidden, c->latent + c->rope_dims, LLAMA_IF(c->latent))                \
    X(KV_A_NORM, "attn_kv_a_norm.weight", c->latent, 0, LLAMA_IF(c->latent))                                 \
    X(KV_B, "attn_kv_b.weight", c->latent, c->heads * (c->head_dim - c->rope_dims + c->value_dim),           \
      LLAMA_IF(c->latent && !c->has_split_kv_b))                                                             \
    X(K_B, "attn_k_b.weight", c->head_dim - c->rope_dims, c->latent,                                         \
      LLAMA_IF(c->latent && c->has_split_kv_b))                                                              \
    X(V_B, "attn_v_b.weight", c->latent, c->value_dim, LLAMA_IF(c->latent && c->has_split_kv_b))             \
    X(O, "attn_output.weight", c->heads * c->value_dim, c->hidden, LLAMA_MUST)                               \
    X(O_BIAS, "attn_output.bias", c->hidden, 0, LLAMA_MAY)                                                   \
    X(POST_ATTENTION_NORM, "post_attention_norm.weight", c->hidden, 0,                                       \
      LLAMA_IF((a->norm_places & LLAMA_AFTER)))                                                              \
    X(FFN_NORM, LLAMA_HAS_SINKS(a) ? "post_attention_norm.weight" : "ffn_norm.weight", c->hidden, 0,         \
      LLAMA_IF(LLAMA_HAS_FFN_NORM(a)))                                                                       \
    X(FFN_NORM_BIAS, "ffn_norm.bias", c->hidden, 0,                                                          \
      LLAMA_IF(LLAMA_HAS_FFN_NORM(a) && a->norm == LLAMA_LAYER_BIAS))                                        \
    X(GATE_UP, "ffn_up.weight", c->hidden, 2 * c->ffn, LLAMA_IF((a->features & LLAMA_FEATURE_FUSED)))        \
    X(GATE, "ffn_gate.weight", c->hidden, c->ffn,                                                            \
      LLAMA_IF(!(a->features & LLAMA_FEATURE_FUSED) && a->activation != LLAMA_GELU && !mixture))             \
    X(UP, "ffn_up.weight", c->hidden, c->ffn, LLAMA_IF(!(a->features & LLAMA_FEATURE_FUSED) && !mixture))    \
    X(DOWN, "ffn_down.weight", c->ffn, c->hidden, LLAMA_IF(!mixture))                                        \
    X(ROUTER, "ffn_gate_inp.weight", c->hidden, c->experts, LLAMA_IF(mixture))                               \
    X(EXPERTS_BALANCE, "exp_probs_b.bias", c->experts, 0, c->latent && mixture ? LLAMA_MAY : LLAMA_NOT)      \
    X(GATE_EXPERTS, "ffn_gate_exps.weight", c->hidden, c->expert_ffn, LLAMA_IF(mixture))                     \
    X(UP_EXPERTS, "ffn_up_exps.weight", c->hidden, c->expert_ffn, LLAMA_IF(mixture))                         \
    X(DOWN_EXPERTS, "ffn_down_exps.weight", c->expert_ffn, c->hidden, LLAMA_IF(mixture))                     \
    X(GATE_EXPERTS_BIAS, "ffn_gate_exps.bias", c->expert_ffn, c->experts, LLAMA_IF(LLAMA_HAS_SINKS(a)))      \
    X(UP_EXPERTS_BIAS, "ffn_up_exps.bias", c->expert_ffn, c->experts, LLAMA_IF(LLAMA_HAS_SINKS(a)))          \
    X(DOWN_EXPERTS_BIAS, "ffn_down_exps.bias", c->hidden, c->experts, LLAMA_IF(LLAMA_HAS_SINKS(a)))          \
    X(ROUTER_BIAS, "ffn_gate_inp.bias", c->experts, 0, LLAMA_IF(LLAMA_HAS_SINKS(a)))                         \
    X(SHARED_ROUTER, "ffn_gate_inp_shexp.weight", c->hidden, 0, LLAMA_IF(c->shared_ffn && !c->latent))       \
    X(SHARED_GATE, "ffn_gate_shexp.weight", c->hidden, c->shared_ffn, LLAMA_IF(c->shared_ffn && mixture))    \
    X(SHARED_UP, "ffn_up_shexp.weight", c->hidden, c->shared_ffn, LLAMA_IF(c->shared_ffn && mixture))        \
    X(SHARED_DOWN, "ffn_down_shexp.weight", c->shared_ffn, c->hidden, LLAMA_IF(c->shared_ffn && mixture))    \
    X(GATE_BIAS, "ffn_gate.bias", c->ffn, 0, t[LLAMA_GATE].from ? LLAMA_MAY : LLAMA_NOT)                     \
    X(UP_BIAS, "ffn_up.bias", c->ffn, 0, t[LLAMA_UP].from ? LLAMA_MAY : LLAMA_NOT)                           \
    X(DOWN_BIAS, "ffn_down.bias", c->hidden, 0, t[LLAMA_DOWN].from ? LLAMA_MAY : LLAMA_NOT)                  \
    X(POST_FFN_NORM, "post_ffw_norm.weight", c->hidden, 0, LLAMA_IF((a->norm_places & LLAMA_AFTER)))
#define LLAMA_ENUM(name, in_file, columns, rows, presence) LLAMA_##name,
enum llama_name { LLAMA_TENSORS(LLAMA_ENUM) LLAMA_MODEL_TENSORS };
enum llama_layer_name { LLAMA_LAYER_TENSORS(LLAMA_ENUM) LLAMA_TENSORS_OF_A_LAYER };

/* A tensor in the file and on the device, or a part of one: of each matrix `rows` rows from `first` on, and
   in these `columns` columns from `column` on; of a vector the elements from `first` on. Elements beyond the
   end of the file's tensor are 0. from NULL: there is no such tensor. is_divided: it is not uploaded, its
   parts (q, k and v, or gate and up) are. */
typedef struct llama_tensor {
    const gguf_tensor *from;
    uint64_t address;
    uint32_t columns, rows; /* rows: at least 1 */
    uint32_t is_part, first, column;
    uint32_t matrix, matrices; /* the first one, and how many */
    uint32_t is_divided;
} llama_tensor;

static inline int llama_is_vector(const llama_tensor *t) { return t->from->size[1] == 1; }

/* Bytes of `columns` columns of a row. */
static inline uint64_t llama_row_bytes(const llama_tensor *t, uint64_t columns) {
    uint64_t values = 1, bytes = 0;
    gguf_block(t->from->format, &values, &bytes);
    return columns / values * bytes;
}

/* gemm requires the columns of a matrix, or of a part of one, to be a multiple of this. */
static inline uint32_t llama_column_unit(const llama_tensor *t) {
    uint64_t values = 1, bytes = 0;
    if (!t->from) return 1;
    gguf_block(t->from->format, &values, &bytes);
    if (bytes % 2) values *= 2; /* rows are 2-byte aligned */
    return values < 8 ? 8 : (uint32_t)values;
}

/* Bytes on the device. */
static inline uint64_t llama_tensor_bytes(const llama_tensor *t) {
    return (uint64_t)t->matrices * t->rows * llama_row_bytes(t, t->columns);
}

static inline int llama_is_mixture(const llama_config *c, uint32_t layer) {
    return c->experts && layer >= c->dense_layers;
}

/* The number of matrices in a tensor of a layer: one for each expert or head, else 1. */
static inline uint32_t llama_matrices(const llama_config *c, enum llama_layer_name name) {
    if (name == LLAMA_K_B || name == LLAMA_V_B) return c->heads;
    return name >= LLAMA_GATE_EXPERTS && name <= LLAMA_DOWN_EXPERTS && c->experts ? c->experts : 1;
}

/* -- what the file says -- */

static inline int llama_format(uint32_t in_file, uint32_t *format) {
#define LLAMA_FORMAT_CASE(name, ours)                                                                        \
    case GGUF_FORMAT_##name: *format = ours; return 1;
    switch (in_file) {
        LLAMA_FORMATS(LLAMA_FORMAT_CASE)
    default: return 0;
    }
}
/* "<architecture>.<key>" */
static inline const char *llama_key(char *room, size_t bytes, const gguf *g, const char *key) {
    gguf_text architecture;
    gguf_get_text(g, "general.architecture", &architecture);
    snprintf(room, bytes, "%.*s.%s", gguf_shown(architecture), architecture.at, key);
    return room;
}

/* Reads a whole number from 1 to `max`. */
static inline int llama_read_count(const gguf *g, const char *key, uint32_t max, uint32_t *x,
                                   gguf_error *why) {
    char room[160];
    if (!gguf_get_u32(g, llama_key(room, sizeof room, g, key), x))
        return gguf_fail(why, gguf_place(g, room), "'%s' is missing, or no whole number", room);
    if (*x < 1 || *x > max)
        return gguf_fail(why, gguf_place(g, room), "'%s' is %u, must be 1 to %u", room, (unsigned)*x,
                         (unsigned)max);
    return 0;
}

/* Reads an optional number, which must be above `above` and below `below`. */
static inline int llama_read_optional(const gguf *g, const char *key, double above, double below, double *x,
                                      gguf_error *why) {
    char room[160];
    if (!gguf_find(g, llama_key(room, sizeof room, g, key))) return 0;
    if (!gguf_get_float(g, room, x))
        return gguf_fail(why, gguf_place(g, room), "'%s' is no floating-point number", room);
    if (*x > above && *x < below) return 0;
    return gguf_fail(why, gguf_place(g, room), "'%s' is %g, must be above %g and below %g", room, *x, above,
                     below);
}

/* Reads YaRN's numbers (B. Peng, J. Quesnelle, H. Fan, E. Shippole, "YaRN: efficient context window extension
   of large language models", 2023). It changes frequencies, see llama_frequency, and multiplies rotated
   elements of q and k by 1 + ln(scale) / 10; if a whole head is rotated, its square multiplies scores. */
static inline int llama_read_yarn(llama_config *c, const gguf *g, uint64_t place, gguf_error *why) {
    double attention_factor;
    char key[160];
    uint32_t context = c->context;
    c->yarn_fast = 32;
    c->yarn_slow = 1;
    if (c->rope_dims != c->head_dim && !c->latent)
        return gguf_fail(why, place, "YaRN, and only %u of a head's %u elements are turned",
                         (unsigned)c->rope_dims, (unsigned)c->head_dim);
    if (!(c->rope_scale >= 1) || !(c->rope_theta > 1))
        return gguf_fail(why, place, "YaRN by %g on a base of %g, must be 1 or more, and above 1",
                         c->rope_scale, c->rope_theta);
    if (gguf_find(g, llama_key(key, sizeof key, g, "rope.scaling.original_context_length"))
        && llama_read_count(g, "rope.scaling.original_context_length", 1u << 30, &context, why))
        return 1;
    if (llama_read_optional(g, "rope.scaling.yarn_beta_fast", 0, 1e30, &c->yarn_fast, why)
        || llama_read_optional(g, "rope.scaling.yarn_beta_slow", 0, c->yarn_fast, &c->yarn_slow, why))
        return 1;
    c->yarn_context = context;
    attention_factor = 1 + 0.1 * log(c->rope_scale);
    if (c->latent) { /* q and k are not multiplied; all of the score is */
        double by = 0;
        if (!gguf_find(g, llama_key(key, sizeof key, g, "rope.scaling.yarn_log_multiplier")))
            return gguf_fail(why, place, "YaRN, and '%s' is missing", key);
        if (llama_read_optional(g, "rope.scaling.yarn_log_multiplier", -1e-30, 10, &by, why)) return 1;
        attention_factor = 1 + by * log(c->rope_scale);
    }
    c->score_scale *= attention_factor * attention_factor;
    return 0;
}

/* The index, not rounded, of the pair that makes `turns` rotations within YaRN's original context. */
static inline double llama_yarn_pair(const llama_config *c, double turns) {
    return c->rope_dims / 2.0 * log(c->yarn_context / (turns * 6.28318530717958647693)) / log(c->rope_theta);
}

/* The frequency of pair i, in radians for each position, divided by the pair's own factor and by the scale.
   YaRN divides only low frequencies by the scale, and those between low and high in part. local: for layers
   with a window that have their own RoPE. */
static inline double llama_frequency(const llama_config *c, uint32_t i, double factor, int local) {
    double theta = local ? c->local_theta : c->rope_theta;
    double f = pow(theta, -2.0 * i / c->rope_dims) / factor, low, high, share;
    if (local) return f;
    if (!(c->yarn_context > 0)) return f / c->rope_scale;
    low = fmax(floor(llama_yarn_pair(c, c->yarn_fast)), 0);
    high = fmin(ceil(llama_yarn_pair(c, c->yarn_slow)), c->rope_dims - 1.0);
    share = fmin(fmax((i - low) / fmax(high - low, 0.001), 0), 1);
    return f * (1 - share) + f / c->rope_scale * share;
}

/* Reads how positions are scaled, by rope.scaling.type; missing: 'linear'. */
static inline int llama_read_scaling(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    gguf_text scaling;
    int yarn = 0;
    if (llama_read_optional(g, "rope.scale_linear", 0, 1e30, &c->rope_scale, why)) return 1;
    if (gguf_find(g, llama_key(key, sizeof key, g, "rope.scaling.type"))) {
        if (!gguf_get_text(g, key, &scaling))
            return gguf_fail(why, gguf_place(g, key), "'%s' is no string", key);
        if (gguf_is(scaling, "none")) {
            c->rope_scale = 1;
            return 0;
        }
        yarn = gguf_is(scaling, "yarn");
        if (gguf_is(scaling, "longrope") && c->architecture->keys & LLAMA_KEYS_LONG) return 0;
        if (!yarn && !gguf_is(scaling, "linear"))
            return gguf_fail(why, gguf_place(g, key), "'%s' is '%.*s', must be 'none', 'linear' or 'yarn'",
                             key, gguf_shown(scaling), scaling.at);
    }
    return llama_read_optional(g, "rope.scaling.factor", 0, 1e30, &c->rope_scale, why)
           || (yarn && llama_read_yarn(c, g, gguf_place(g, key), why));
}

/* Reads LongRoPE: tables of factors up to the original context and beyond; attn_factor multiplies q and k. */
static inline int llama_read_long_rope(llama_config *c, const gguf *g, gguf_error *why) {
    double factor = 1;
    char key[160];
    if (!(c->architecture->keys & LLAMA_KEYS_LONG)) return 0;
    if (gguf_tensor_find(g, "rope_factors_long.weight") || gguf_tensor_find(g, "rope_factors_short.weight"))
        if (llama_read_count(g, "rope.scaling.original_context_length", 1u << 30, &c->original_context, why))
            return 1;
    if (llama_read_optional(g, "rope.scaling.attn_factor", 0, 1e6, &factor, why)) return 1;
    if (c->rope_dims != c->head_dim && (factor < 1 || factor > 1)) {
        llama_key(key, sizeof key, g, "rope.scaling.attn_factor");
        return gguf_fail(why, gguf_place(g, key),
                         "'%s' is %g, and only %u of a head's %u elements are turned", key, factor,
                         (unsigned)c->rope_dims, (unsigned)c->head_dim);
    }
    c->score_scale *= factor * factor; /* both q and k are multiplied */
    return 0;
}

static inline int llama_read_rope(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    int on = 1;
    c->rope_dims = c->head_dim;
    c->rope_theta = 10000;
    c->rope_scale = 1;
    c->score_scale = c->local_score_scale =
        1 / sqrt(c->layers == c->architecture->layers_scaled_by_hidden ? (double)c->hidden / c->heads
                                                                       : (double)c->head_dim);
    if (c->architecture->keys & LLAMA_KEYS_SCALES
        && gguf_find(g, llama_key(key, sizeof key, g, "attention.scale"))) {
        double scale = 0;
        if (llama_read_optional(g, "attention.scale", -1e-30, 1e30, &scale, why)) return 1;
        if (scale > 0) c->score_scale = c->local_score_scale = scale;
    }
    if (c->architecture->keys & LLAMA_KEYS_SWITCH
        && gguf_find(g, llama_key(key, sizeof key, g, "rope.scaling.finetuned"))
        && !gguf_get_bool(g, key, &on))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no bool", key);
    c->unrotated = !on;
    if (gguf_find(g, llama_key(key, sizeof key, g, "rope.dimension_count"))
        && (llama_read_count(g, "rope.dimension_count", c->head_dim, &c->rope_dims, why)))
        return 1;
    if (c->rope_dims % 2)
        return gguf_fail(why, gguf_place(g, key), "'%s' is odd: %u", key, (unsigned)c->rope_dims);
    if (llama_read_optional(g, "rope.freq_base", 0, 1e30, &c->rope_theta, why)) return 1;
    if (c->architecture->local_rope == LLAMA_ROPE_BASE) c->local_theta = 10000;
    if (c->architecture->local_rope == LLAMA_ROPE_UNSCALED) c->local_theta = c->rope_theta;
    if (c->local_theta > 0 && llama_read_optional(g, "rope.freq_base_swa", 0, 1e30, &c->local_theta, why))
        return 1;
    if (llama_read_scaling(c, g, why) || llama_read_long_rope(c, g, why)) return 1;
    if (!(c->local_theta > 0)) c->local_score_scale = c->score_scale;
    return 0;
}

/* The names of the known architectures, each after a space. room: 240 bytes. */
static inline const char *llama_list_architectures(char *room) {
    uint32_t i;
    size_t n = 0;
    room[0] = 0;
    for (i = 0; i < LLAMA_ARCHITECTURES && n < 240; i++)
        n += (size_t)snprintf(room + n, 240 - n, " %s", llama_architectures[i].name);
    return room;
}

/* Finds the architecture, and refuses keys that it does not support. */
static inline int llama_read_architecture(llama_config *c, const gguf *g, gguf_error *why) {
    static const char general[] = "general.architecture";
    gguf_text name;
    char key[160];
    char known[240];
    uint32_t i;
    double x;
    if (!gguf_get_text(g, general, &name))
        return gguf_fail(why, gguf_place(g, general), "'%s' is missing, or no text", general);
    for (i = 0; i < LLAMA_ARCHITECTURES; i++)
        if (gguf_is(name, llama_architectures[i].name)) c->architecture = &llama_architectures[i];
#define LLAMA_OTHER(text, reason)                                                                            \
    if (gguf_is(name, text))                                                                                 \
        return gguf_fail(why, gguf_place(g, general), "architecture '%s' (%s), known are:%s", text, reason,  \
                         llama_list_architectures(known));
#define LLAMA_REFUSED(text, neutral, takes)                                                                  \
    if (!(c->architecture->keys & (takes)) && gguf_find(g, llama_key(key, sizeof key, g, text))              \
        && !(gguf_get_float(g, key, &x) && x >= (neutral) && x <= (neutral)))                                \
        return gguf_fail(why, gguf_place(g, key), "'%s': nothing here does that", key);
    LLAMA_OTHER_ARCHITECTURES(LLAMA_OTHER)
    if (!c->architecture)
        return gguf_fail(why, gguf_place(g, general), "architecture '%.*s', known are:%s", gguf_shown(name),
                         name.at, llama_list_architectures(known));
    c->rope_pairs = c->architecture->rope_pairs;
    LLAMA_REFUSED_KEYS(LLAMA_REFUSED)
    return 0;
}

/* Reads how LATENT architectures choose experts. p is the softmax or sigmoid of scores; the weights p may be
   normalised, and are multiplied by a factor. With groups, experts are chosen from the groups with the
   largest p or, if the file has a balance, with the largest sum of two p + balance, and then by p + balance.
   So do the models' own programs: DeepSeek-V2 (modeling_deepseek_v2.py of Transformers, group_limited_greedy)
   and DeepSeek-V3 (inference/model.py, Gate). llama.cpp takes the sum of two for both. */
static inline int llama_read_routing(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    uint32_t shared = 0, function = 1;
    int normalise = 0;
    if (gguf_find(g, llama_key(key, sizeof key, g, "leading_dense_block_count"))
        && !gguf_get_u32(g, key, &c->dense_layers))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number", key);
    if (gguf_find(g, llama_key(key, sizeof key, g, "expert_shared_count"))
        && (!gguf_get_u32(g, key, &shared) || shared > 1024))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number to 1024", key);
    if ((uint64_t)shared * c->expert_ffn > 1u << 22)
        return gguf_fail(why, gguf_place(g, key), "%u shared experts of %u", (unsigned)shared,
                         (unsigned)c->expert_ffn);
    c->shared_ffn = shared * c->expert_ffn; /* the file has them as one */
    if (gguf_find(g, llama_key(key, sizeof key, g, "expert_gating_func"))
        && (!gguf_get_u32(g, key, &function) || function < 1 || function > 2))
        return gguf_fail(why, gguf_place(g, key), "'%s' is %u, must be 1 (softmax) or 2 (sigmoid)", key,
                         (unsigned)function);
    if (gguf_find(g, llama_key(key, sizeof key, g, "expert_weights_norm"))
        && !gguf_get_bool(g, key, &normalise))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no bool", key);
    c->route_kind = function == 1 ? PTXK_ROUTE_SOFTMAX : PTXK_ROUTE_SIGMOID;
    c->route_flags = normalise ? PTXK_ROUTE_NORMALIZE : 0;
    if (llama_read_optional(g, "expert_weights_scale", -1e-30, 1e6, &c->route_scale, why)) return 1;
    if (!(c->route_scale > 0)) c->route_scale = 1;
    if (!gguf_find(g, llama_key(key, sizeof key, g, "expert_group_count"))) return 0;
    if (!gguf_get_u32(g, key, &c->groups) || c->groups > 32 || (c->groups && c->experts % c->groups))
        return gguf_fail(why, gguf_place(g, key),
                         "'%s' is %u, must be a number to 32 of which %u experts are a multiple", key,
                         (unsigned)c->groups, (unsigned)c->experts);
    if (c->groups == 1) c->groups = 0;
    if (!c->groups) return 0;
    if (llama_read_count(g, "expert_group_used_count", c->groups, &c->chosen_groups, why)) return 1;
    if (c->chosen <= c->chosen_groups * (c->experts / c->groups)) return 0;
    return gguf_fail(why, gguf_place(g, key), "%u experts of %u groups of %u", (unsigned)c->chosen,
                     (unsigned)c->chosen_groups, (unsigned)(c->experts / c->groups));
}

/* Reads the experts. Files of architectures without experts may give their number as 0. */
static inline int llama_read_experts(llama_config *c, const gguf *g, gguf_error *why) {
    uint32_t features = c->architecture->features;
    char key[160];
    c->route_kind = (features & LLAMA_FEATURE_SHARED) == LLAMA_FEATURE_SHARED ? PTXK_ROUTE_SOFTMAX
                                                                              : PTXK_ROUTE_SOFTMAX_CHOSEN;
    c->route_scale = 1;
    if (features & LLAMA_FEATURE_MIX) {
        if (llama_read_count(g, "expert_count", 512, &c->experts, why)
            || llama_read_count(g, "expert_feed_forward_length", 1u << 22, &c->expert_ffn, why)
            || ((features & LLAMA_FEATURE_SHARED) == LLAMA_FEATURE_SHARED
                && llama_read_count(g, "expert_shared_feed_forward_length", 1u << 22, &c->shared_ffn, why)))
            return 1;
    } else {
        if (!gguf_find(g, llama_key(key, sizeof key, g, "expert_count"))) return 0;
        if (!gguf_get_u32(g, key, &c->experts))
            return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number", key);
        if (!c->experts) return 0;
        if (!(features & LLAMA_FEATURE_MAY_MIX))
            return gguf_fail(why, gguf_place(g, key), "a model of %u experts", (unsigned)c->experts);
        if (llama_read_count(g, "expert_count", 512, &c->experts, why)) return 1;
        c->expert_ffn = c->ffn;
    }
    return llama_read_count(g, "expert_used_count", c->experts < 16 ? c->experts : 16, &c->chosen, why)
           || (LLAMA_HAS_LATENT(c->architecture) && llama_read_routing(c, g, why));
}

/* Checks an optional number: if it is there, it must be `one` or `other`. */
static inline int llama_check_optional(const gguf *g, const char *key, uint32_t one, uint32_t other,
                                       gguf_error *why) {
    char room[160];
    uint32_t x;
    if (!gguf_find(g, llama_key(room, sizeof room, g, key))) return 0;
    if (gguf_get_u32(g, room, &x) && (x == one || x == other)) return 0;
    return gguf_fail(why, gguf_place(g, room), "'%s' must be %u or %u", room, (unsigned)one, (unsigned)other);
}

/* Reads the sizes of attention over latents (see ptxk_flash_mla). A head of q has plain, then rotated
   elements. All heads share one key: the normalised latent, then rotated elements. For each head, attn_k_b
   maps the plain elements of q to the latent's space, and attn_v_b maps the result of attention back. Older
   files have both as one matrix, attn_kv_b, which maps the latent to keys and values of all heads. */
static inline int llama_read_latent(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    c->kv_heads = 1;
    if (llama_read_count(g, "attention.kv_lora_rank", 512, &c->latent, why)) return 1;
    if (c->latent != 128 && c->latent != 256 && c->latent != 512)
        return gguf_fail(why, gguf_place(g, llama_key(key, sizeof key, g, "attention.kv_lora_rank")),
                         "'%s' is %u, must be 128, 256 or 512", key, (unsigned)c->latent);
    if (gguf_find(g, llama_key(key, sizeof key, g, "attention.q_lora_rank"))
        && (!gguf_get_u32(g, key, &c->q_latent) || c->q_latent > 1u << 20))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number to 2^20", key);
    c->has_split_kv_b = gguf_find(g, llama_key(key, sizeof key, g, "attention.key_length_mla")) != NULL;
    if (llama_read_count(g, c->has_split_kv_b ? "attention.key_length_mla" : "attention.key_length", 1024,
                         &c->head_dim, why)
        || llama_read_count(g, c->has_split_kv_b ? "attention.value_length_mla" : "attention.value_length",
                            1024, &c->value_dim, why)
        || llama_read_count(g, "rope.dimension_count", 64, &c->rope_dims, why))
        return 1;
    if (c->rope_dims % 16 || c->head_dim % 8 || c->value_dim % 8 || c->head_dim <= c->rope_dims)
        return gguf_fail(why, gguf_place(g, llama_key(key, sizeof key, g, "rope.dimension_count")),
                         "keys of %u elements, %u of them rotated, and values of %u: must be multiples of 8, "
                         "the rotated ones of 16, and some not rotated",
                         (unsigned)c->head_dim, (unsigned)c->rope_dims, (unsigned)c->value_dim);
    return llama_check_optional(g, "attention.head_count_kv", 1, c->heads, why)
           || (c->has_split_kv_b
               && (llama_check_optional(g, "attention.key_length", c->latent + c->rope_dims, c->head_dim, why)
                   || llama_check_optional(g, "attention.value_length", c->latent, c->value_dim, why)));
}

/* Reads heads, kv_heads, head_dim and value_dim. */
static inline int llama_read_heads(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    uint32_t values;
    if (llama_read_count(g, "attention.head_count", 4096, &c->heads, why)) return 1;
    if (LLAMA_HAS_LATENT(c->architecture)) return llama_read_latent(c, g, why);
    c->kv_heads = c->heads;
    if (gguf_find(g, llama_key(key, sizeof key, g, "attention.head_count_kv"))
        && llama_read_count(g, "attention.head_count_kv", c->heads, &c->kv_heads, why))
        return 1;
    if (c->heads % c->kv_heads)
        return gguf_fail(why, gguf_place(g, key), "%u heads on %u", (unsigned)c->heads,
                         (unsigned)c->kv_heads);
    if (gguf_find(g, llama_key(key, sizeof key, g, "attention.key_length"))) {
        if (llama_read_count(g, "attention.key_length", 4096, &c->head_dim, why)) return 1;
    } else {
        if (c->hidden % c->heads)
            return gguf_fail(why, gguf_place(g, llama_key(key, sizeof key, g, "attention.head_count")),
                             "an embedding of %u in %u heads: no whole number for each, and there is no "
                             "'attention.key_length'",
                             (unsigned)c->hidden, (unsigned)c->heads);
        c->head_dim = c->hidden / c->heads;
    }
    if (c->head_dim % 8 || c->head_dim > 256) { /* limits of the attention kernels */
        if (!gguf_find(g, llama_key(key, sizeof key, g, "attention.key_length")))
            llama_key(key, sizeof key, g, "attention.head_count");
        return gguf_fail(why, gguf_place(g, key), "heads of %u elements, must be a multiple of 8 up to 256",
                         (unsigned)c->head_dim);
    }
    c->value_dim = c->head_dim;
    if (!gguf_find(g, llama_key(key, sizeof key, g, "attention.value_length"))) return 0;
    if (gguf_get_u32(g, key, &values) && values == c->head_dim) return 0;
    return gguf_fail(why, gguf_place(g, key), "'%s' is another than that of keys, %u", key,
                     (unsigned)c->head_dim);
}

/* Reads the attention window, and which layers have it. */
static inline int llama_read_window(llama_config *c, const gguf *g, gguf_error *why) {
    char key[160];
    c->window = c->architecture->window;
    c->full_attention_period = c->architecture->full_attention_period;
    if (gguf_find(g, llama_key(key, sizeof key, g, "attention.sliding_window"))
        && !gguf_get_u32(g, key, &c->window))
        return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number", key);
    if (!gguf_find(g, llama_key(key, sizeof key, g, "attention.sliding_window_pattern"))) return 0;
    if (!c->full_attention_period)
        return gguf_fail(why, gguf_place(g, key), "'%s': nothing here does that", key);
    return llama_read_count(g, "attention.sliding_window_pattern", 10000, &c->full_attention_period, why);
}

/* Reads the scales and soft caps. */
static inline int llama_read_scales(llama_config *c, const gguf *g, gguf_error *why) {
    uint32_t keys = c->architecture->keys;
    c->embedding_scale = c->architecture->features & LLAMA_FEATURE_ROOT ? sqrt((double)c->hidden) : 1;
    c->residual_scale = c->logit_scale = 1;
    c->attention_cap = (double)c->architecture->attention_cap;
    c->final_cap = (double)c->architecture->final_cap;
    if (keys & LLAMA_KEYS_CAPS
        && (llama_read_optional(g, "attn_logit_softcapping", 1e-6, 1e6, &c->attention_cap, why)
            || llama_read_optional(g, "final_logit_softcapping", 1e-6, 1e6, &c->final_cap, why)))
        return 1;
    if (keys & LLAMA_KEYS_SCALES
        && (llama_read_optional(g, "embedding_scale", 0, 1e6, &c->embedding_scale, why)
            || llama_read_optional(g, "residual_scale", 0, 1e6, &c->residual_scale, why)))
        return 1;
    if (keys & (LLAMA_KEYS_TIMES | LLAMA_KEYS_DIVIDED)
        && llama_read_optional(g, "logit_scale", 0, 1e6, &c->logit_scale, why))
        return 1;
    if (keys & LLAMA_KEYS_DIVIDED) c->logit_scale = 1 / c->logit_scale;
    return 0;
}

/* Reads and checks the numbers; llama_find_tensors checks the tensors against them. */
static inline int llama_read(llama_config *c, const gguf *g, gguf_error *why) {
    const gguf_tensor *embedding = gguf_tensor_find(g, "token_embd.weight");
    const char *eps;
    char key[160];
    memset(c, 0, sizeof *c);
    if (llama_read_architecture(c, g, why)) return 1;
    if (!embedding) return gguf_fail(why, g->tensors_end, "there is no tensor 'token_embd.weight'");
    if (embedding->dimensions != 2 || embedding->size[1] > 1u << 24)
        return gguf_fail(why, embedding->offset, "'token_embd.weight': not a matrix of at most 2^24 rows");
    c->vocab = (uint32_t)embedding->size[1];
    if (llama_read_count(g, "block_count", 10000, &c->layers, why)
        || llama_read_count(g, "context_length", 1u << 30, &c->context, why)
        || llama_read_count(g, "embedding_length", 1u << 20, &c->hidden, why)
        || llama_read_count(g, "feed_forward_length", 1u << 22, &c->ffn, why) || llama_read_experts(c, g, why)
        || llama_read_heads(c, g, why))
        return 1;
    eps = c->architecture->norm == LLAMA_RMS ? "attention.layer_norm_rms_epsilon"
                                             : "attention.layer_norm_epsilon";
    if (!gguf_get_float(g, llama_key(key, sizeof key, g, eps), &c->eps) || !(c->eps >= 0 && c->eps < 1))
        return gguf_fail(why, gguf_place(g, key), "'%s' is missing, or not from 0 to 1", key);
    return llama_read_window(c, g, why) || llama_read_scales(c, g, why) || llama_read_rope(c, g, why);
}

/* Finds a tensor of the tables, and checks its sizes, its number of matrices and its format. */
static inline int llama_find_tensor(llama_tensor *t, const gguf *g, const char *name, uint32_t columns,
                                    uint32_t rows, uint32_t matrices, int presence, gguf_error *why) {
    uint32_t format;
    memset(t, 0, sizeof *t);
    if (presence == LLAMA_NOT) return 0;
    t->from = gguf_tensor_find(g, name);
    t->columns = columns;
    t->rows = rows ? rows : 1;
    t->matrices = matrices;
    if (!t->from)
        return presence == LLAMA_MAY ? 0 : gguf_fail(why, g->tensors_end, "there is no tensor '%s'", name);
    if (t->from->size[2] * t->from->size[3] != matrices)
        return gguf_fail(why, t->from->offset, "'%s' has %llu matrices, must have %u", name,
                         (unsigned long long)(t->from->size[2] * t->from->size[3]), (unsigned)matrices);
    if (t->from->size[0] != columns || t->from->size[1] != (rows ? rows : 1))
        return gguf_fail(why, t->from->offset, "'%s' is %llu x %llu, must be %llu x %llu", name,
                         (unsigned long long)t->from->size[0], (unsigned long long)t->from->size[1],
                         (unsigned long long)columns, (unsigned long long)(rows ? rows : 1));
    if ((rows == 0 || strstr(name, ".bias")) && t->from->format != GGUF_FORMAT_F32)
        return gguf_fail(why, t->from->offset, "'%s' is %s, must be F32", name,
                         gguf_format_name(t->from->format));
    if (!llama_format(t->from->format, &format))
        return gguf_fail(why, t->from->offset, "'%s': no kernels for %s", name,
                         gguf_format_name(t->from->format));
    if (rows && !strstr(name, ".bias") && columns % llama_column_unit(t))
        return gguf_fail(why, t->from->offset, "'%s': rows of %u values, must be a multiple of %u in %s",
                         name, (unsigned)columns, (unsigned)llama_column_unit(t),
                         gguf_format_name(t->from->format));
    return 0;
}

/* Makes t the next `rows` rows, from *row on, of `whole`, if that tensor exists; advances *row. */
static inline void llama_take_rows(llama_tensor *t, llama_tensor *whole, uint32_t rows, uint32_t *row) {
    if (!whole->from) return;
    *t = *whole;
    whole->is_divided = 1;
    t->is_divided = 0;
    t->is_part = 1;
    t->first = *row;
    if (whole->rows == 1) /* a vector */
        t->columns = rows;
    else
        t->rows = rows;
    *row += rows;
}

/* Splits the tensors of a layer that hold several of its matrices. */
static inline void llama_split_fused(const llama_config *c, llama_tensor *t) {
    uint32_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim, row;
    row = 0;
    llama_take_rows(&t[LLAMA_Q], &t[LLAMA_QKV], q, &row);
    llama_take_rows(&t[LLAMA_K], &t[LLAMA_QKV], kv, &row);
    llama_take_rows(&t[LLAMA_V], &t[LLAMA_QKV], kv, &row);
    row = 0;
    llama_take_rows(&t[LLAMA_Q_BIAS], &t[LLAMA_QKV_BIAS], q, &row);
    llama_take_rows(&t[LLAMA_K_BIAS], &t[LLAMA_QKV_BIAS], kv, &row);
    llama_take_rows(&t[LLAMA_V_BIAS], &t[LLAMA_QKV_BIAS], kv, &row);
    row = 0;
    llama_take_rows(&t[LLAMA_GATE], &t[LLAMA_GATE_UP], c->ffn, &row);
    llama_take_rows(&t[LLAMA_UP], &t[LLAMA_GATE_UP], c->ffn, &row);
    row = 0; /* LLAMA_K: the rows that make the latent; LLAMA_V: the rotated elements of the key */
    llama_take_rows(&t[LLAMA_K], &t[LLAMA_KV_A], c->latent, &row);
    llama_take_rows(&t[LLAMA_V], &t[LLAMA_KV_A], c->rope_dims, &row);
}

/* Finds all tensors of the model; returns an array to be freed, or NULL. An unknown tensor in the file is
   refused: a program that ignored it would compute something else than the model. */
static inline llama_tensor *llama_find_tensors(const llama_config *c, const gguf *g, gguf_error *why) {
    const llama_architecture *a = c->architecture;
    llama_tensor *all, *t;
    size_t i;
    uint32_t layer;
    int bad = 0, mixture;
    char name[64], *known;
    if (g->tensors < c->layers) {
        gguf_fail(why, g->tensors_end, "%u layers, but %llu tensors", (unsigned)c->layers,
                  (unsigned long long)g->tensors);
        return NULL;
    }
    all = t = (llama_tensor *)malloc((LLAMA_MODEL_TENSORS + (size_t)c->layers * LLAMA_TENSORS_OF_A_LAYER)
                                     * sizeof *all);
    if (!all) {
        gguf_fail(why, GGUF_NOWHERE, "no memory");
        return NULL;
    }
#define LLAMA_FIND(id, in_file, columns, rows, presence)                                                     \
    bad = bad || llama_find_tensor(&t[LLAMA_##id], g, in_file, columns, rows, 1, presence, why);
#define LLAMA_FIND_IN_LAYER(id, in_file, columns, rows, presence)                                            \
    snprintf(name, sizeof name, "blk.%u.%s", (unsigned)layer, in_file);                                      \
    bad = bad                                                                                                \
          || llama_find_tensor(&t[LLAMA_##id], g, name, columns, rows, llama_matrices(c, LLAMA_##id),        \
                               presence, why);
    LLAMA_TENSORS(LLAMA_FIND)
    t += LLAMA_MODEL_TENSORS;
    for (layer = 0; !bad && layer < c->layers; layer++, t += LLAMA_TENSORS_OF_A_LAYER) {
        mixture = llama_is_mixture(c, layer);
        LLAMA_LAYER_TENSORS(LLAMA_FIND_IN_LAYER)
        if (!bad) llama_split_fused(c, t);
    }
    known = bad ? NULL : (char *)calloc(g->tensors, 1);
    for (; known && t > all; t--)
        if (t[-1].from) known[t[-1].from - g->tensor] = 1;
    for (i = 0; known && i < g->tensors; i++)
        if (!known[i])
            bad = gguf_fail(why, g->tensor[i].offset, "'%.*s' is no tensor of this architecture",
                            gguf_shown(g->tensor[i].name), g->tensor[i].name.at);
    if (!bad && !known) bad = gguf_fail(why, GGUF_NOWHERE, "no memory");
    free(known);
    if (!bad) return all;
    free(all);
    return NULL;
}

#endif
