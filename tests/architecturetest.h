/* architecturetest.h - a small random model or two of each architecture (examples/models.h). Include it behind the
 * headers with their implementations. */
#ifndef ARCHITECTURETEST_H
#define ARCHITECTURETEST_H

#include "prompttest.h"

#define F(name) GGUF_FORMAT_##name
/* vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context, rope_dims; formats of embedding, matrices, down;
   bias, tied, factors; theta, scale, window */
static const struct {
    const char *what;
    model_shape shape;
    const char *lacks; /* what the persistent kernel does not have; NULL: it has all */
} models[] = {
    /* clang-format off */
    {"llama", {"llama", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0}, NULL},
    {"llama, biases", {"llama", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(Q8_0), F(Q8_0), F(F16), 2, 0, 0, 0, 0, 0},
     NULL},
    {"qwen2", {"qwen2", 77, 64, 2, 4, 2, 16, 64, 600, 0, F(Q8_0), F(Q8_0), F(F16), 1, 1, 0, 0, 0, 0}, NULL},
    {"qwen3", {"qwen3", 40, 64, 2, 4, 2, 40, 96, 600, 0, F(Q8_0), F(Q4_0), F(F16), 0, 1, 0, 1e6f, 0, 0}, NULL},
    {"llama, experts",
     {"llama", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(Q8_0), F(F16), 0, 0, 5, 0, 0, 0}, NULL},
    {"qwen2moe",
     {"qwen2moe", 61, 64, 2, 4, 4, 16, 96, 600, 0, F(F16), F(F16), F(Q8_0), 1, 0, 0, 1e6f, 0, 0}, NULL},
    {"qwen3moe",
     {"qwen3moe", 61, 64, 2, 4, 2, 24, 96, 600, 0, F(Q8_0), F(Q8_0), F(Q8_0), 0, 0, 0, 1e6f, 0, 0}, NULL},
    {"gpt-oss", {"gpt-oss", 61, 64, 3, 4, 2, 16, 64, 600, 0, F(F16), F(Q8_0), F(Q8_0), 1, 0, 2, 15e4f, 4, 20},
     NULL},
    {"gpt-oss, MXFP4",
     {"gpt-oss", 61, 128, 2, 8, 2, 16, 64, 600, 0, F(Q8_0), F(MXFP4), F(MXFP4), 1, 0, 0, 15e4f, 0, 24}, NULL},
    {"deepseek2",
     {"deepseek2", 61, 64, 2, 4, 4, 56, 64, 600, 16, F(F16), F(F16), F(F16), 0, 0, 0, 0, 0, 0}, "latents"},
    {"deepseek2, sigmoid, groups, scaled",
     {"deepseek2", 61, 64, 3, 4, 1, 64, 64, 900, 32, F(F16), F(Q8_0), F(Q8_0), 1, 0, 2, 1e4f, 8, 0}, "latents"},
    {"deepseek2, groups",
     {"deepseek2", 61, 64, 2, 4, 4, 64, 64, 600, 32, F(F16), F(Q8_0), F(F16), 2, 0, 3, 1e4f, 4, 0}, "latents"},
    {"gemma", {"gemma", 61, 64, 2, 4, 1, 24, 96, 600, 0, F(F16), F(F16), F(Q8_0), 0, 1, 0, 0, 0, 0}, NULL},
    {"gemma2", {"gemma2", 61, 64, 3, 4, 2, 24, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 20},
     "norms behind products"},
    {"gemma2 of 46 layers", {"gemma2", 61, 32, 46, 2, 1, 32, 64, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 5},
     "norms behind products"},
    {"gemma3", {"gemma3", 61, 64, 7, 4, 2, 24, 96, 600, 0, F(Q8_0), F(Q8_0), F(Q8_0), 0, 1, 0, 1e6f, 8, 20},
     "norms behind products"},
    {"phi3", {"phi3", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 0, 0, 0, 0, 0}, NULL},
    {"phi3, scaled for long contexts, tied",
     {"phi3", 61, 96, 2, 3, 1, 32, 96, 600, 0, F(Q8_0), F(Q4_0), F(Q8_0), 0, 1, 4, 0, 0, 0}, NULL},
    {"phi3, rotated in part", {"phi3", 61, 64, 2, 4, 2, 16, 96, 600, 12, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0},
     NULL},
    {"olmo2", {"olmo2", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 0, 0, 5e5f, 0, 0},
     "norms behind products"},
    {"olmo2 with windows", {"olmo2", 61, 64, 5, 4, 4, 16, 64, 900, 0, F(F16), F(F16), F(F16), 0, 0, 2, 5e5f, 8, 24},
     "norms behind products"},
    {"command-r", {"command-r", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0},
     "LayerNorm"},
    {"cohere2", {"cohere2", 61, 64, 5, 4, 2, 16, 96, 600, 0, F(Q8_0), F(F16), F(F16), 0, 1, 0, 5e4f, 0, 24},
     "LayerNorm"},
    {"starcoder2", {"starcoder2", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 2, 1, 0, 1e5f, 0, 0},
     "LayerNorm"},
    {"smollm3", {"smollm3", 61, 64, 5, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 2e6f, 0, 0},
     "layers that are not rotated"},
    {"internlm2", {"internlm2", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 0, 0, 0, 0, 0}, NULL},
    {"ernie4_5", {"ernie4_5", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 5e5f, 0, 0}, NULL},
    {"exaone", {"exaone", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 1, 0, 0, 0}, NULL},
    {"glm4", {"glm4", 61, 64, 2, 4, 2, 16, 96, 600, 8, F(F16), F(F16), F(F16), 1, 0, 0, 0, 0, 0},
     "norms behind products"},
    {"phi2", {"phi2", 61, 64, 2, 4, 4, 16, 96, 600, 8, F(F16), F(F16), F(F16), 2, 0, 0, 0, 0, 0}, "LayerNorm"},
    {"stablelm", {"stablelm", 61, 64, 2, 4, 2, 16, 96, 600, 4, F(F16), F(F16), F(F16), 1, 0, 0, 0, 0, 0}, "LayerNorm"},
    {"granite", {"granite", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 1e4f, 0, 0},
     NULL},
    {"granite, biases", {"granite", 61, 64, 2, 4, 2, 16, 96, 600, 0, F(Q8_0), F(Q8_0), F(F16), 2, 1, 0, 0, 0, 0},
     NULL},
    /* clang-format on */
};
#undef F

#endif
