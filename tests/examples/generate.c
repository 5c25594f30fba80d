/* generate.c - the model by separate launches (examples/llama.h): beside the reference in double
 * precision, by launches and as a graph, alone and in a batch, of many shapes, and files that are refused. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../llamatest.h"

/* Opens a model, runs sequences with random prompts, and checks every logit; then again as a graph: the same
 * tokens and the same bits. */
static void check_model(model_file *f, uint32_t batch, uint32_t steps, uint32_t max_seq, const char *what)
{
    llama m;
    llama_options o;
    gguf_error why;
    ref_llama reference;
    static sequences s, again;
    float *logits, *twice;
    double worst = 0, one;
    size_t count;
    uint32_t b, i;
    memset(&o, 0, sizeof o);
    o.batch = batch;
    o.max_seq = max_seq;
    if (!CHECK_MORE(llama_open(&m, device, &f->g, f->file, &o, NULL, &why) == 0, why.text)) return;
    memset(&s, 0, sizeof s);
    s.batch = batch;
    s.steps = steps;
    for (b = 0; b < batch; b++) {
        s.length[b] = 1 + random_below(steps < 6 ? steps : 6);
        for (i = 0; i < s.length[b]; i++) s.token[b][i] = random_below(m.config.vocab);
    }
    again = s;
    count = (size_t)steps * batch * m.config.vocab;
    logits = (float *)malloc(count * sizeof *logits);
    twice = (float *)malloc(count * sizeof *twice);
    if (CHECK(logits && twice) && run_model(&m, &s, logits)) {
        model_reference(&reference, &m.config, &f->g, f->data);
        for (b = 0; b < batch; b++) {
            one = beside_reference(&reference, &s, b, logits, what);
            if (one > worst) worst = one;
        }
        ref_llama_free(&reference);
        CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text);
        if (run_model(&m, &again, twice)) {
            CHECK_MORE(memcmp(s.token, again.token, sizeof s.token) == 0, what);
            CHECK_MORE(memcmp(logits, twice, count * sizeof *logits) == 0, what);
        }
        printf("%s: error at most %.3f of the tolerance\n", what, worst);
    }
    free(logits);
    free(twice);
    llama_close(&m);
}

/* -- shapes -- */

static void test_shapes(void)
{
    static const struct {
        const char *what;
        model_shape shape;
        uint32_t batch, steps, max_seq;
    } cases[] = {
#define F(name) GGUF_FORMAT_##name
        /* clang-format off */
        /* vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context, rope_dims; formats of embedding,
           matrices, down; bias, tied, factors; theta, scale, window; batch, steps, max_seq */
        {"Q4_K and Q6_K, full to the last position",
         {"llama", 300, 256, 2, 4, 2, 64, 512, 9, 0, F(Q6_K), F(Q4_K), F(Q6_K), 0, 1, 0, 0, 0, 0}, 1, 9, 0},
        {"1 layer, its own output, heads turned in part, scaled frequencies, long caches, batch 3",
         {"llama", 77, 256, 1, 8, 4, 32, 256, 3000, 16, F(Q4_K), F(Q4_K), F(Q6_K), 0, 0, 1, 0, 0, 0},
         3, 7, 0},
        {"halves, biases, 14 heads on 2, head_dim 40, hidden 96, f16 and Q8_0, batch 2",
         {"qwen2", 50, 96, 2, 14, 2, 40, 160, 64, 0, F(Q8_0), F(F16), F(Q8_0), 1, 1, 0, 0, 0, 0}, 2, 7, 20},
        {"33 layers, a vocabulary of 1, f16",
         {"llama", 1, 64, 33, 2, 1, 32, 64, 64, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0}, 1, 3, 0},
        {"a vocabulary of 151936, hidden 32, bf16",
         {"llama", 151936, 32, 1, 2, 2, 16, 40, 64, 0, F(BF16), F(BF16), F(BF16), 0, 1, 0, 0, 0, 0}, 1, 1, 0},
        {"head_dim 96, Q4_0 and Q5_K, f32 table, batch 4",
         {"llama", 33, 256, 1, 3, 1, 96, 256, 64, 0, F(F32), F(Q4_0), F(Q5_K), 0, 0, 0, 0, 0, 0}, 4, 6, 0},
        {"norms of heads, wide heads, positions scaled, Q8_0 and f16, batch 2",
         {"qwen3", 40, 64, 2, 4, 2, 40, 96, 64, 0, F(Q8_0), F(Q8_0), F(F16), 0, 1, 0, 1e6f, 4.0f, 0},
         2, 8, 0},
        {"YaRN, f16, batch 2",
         {"llama", 40, 32, 1, 2, 1, 32, 40, 1600, 0, F(F16), F(F16), F(F16), 0, 1, 2, 0, 4.0f, 0}, 2, 40, 0},
        {"YaRN with limits of its own, norms of heads, Q8_0 and f16",
         {"qwen3", 40, 64, 2, 4, 2, 64, 96, 800, 0, F(Q8_0), F(Q8_0), F(F16), 0, 1, 3, 1e6f, 2.5f, 0},
         1, 24, 0},
        {"a window of 3, biases, batch 2",
         {"qwen2", 40, 32, 2, 2, 1, 16, 40, 64, 0, F(F16), F(F16), F(F16), 1, 1, 0, 0, 0, 3}, 2, 9, 0},
        {"140 keys, of which 90 are seen, f16",
         {"llama", 20, 32, 1, 2, 1, 32, 32, 3000, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 90}, 1, 140, 0},
        {"140 keys, read in parts, f16",
         {"llama", 20, 32, 1, 2, 1, 32, 32, 3000, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0}, 1, 140, 0},
        {"MXFP4, Q5_0 and IQ4_NL, batch 2",
         {"qwen2", 40, 64, 1, 2, 1, 32, 128, 64, 0, F(MXFP4), F(Q5_0), F(IQ4_NL), 1, 0, 0, 0, 0, 0}, 2, 4, 0},
        {"Q2_K, Q3_K and IQ4_XS",
         {"llama", 40, 256, 1, 4, 2, 64, 256, 64, 0, F(Q2_K), F(Q3_K), F(IQ4_XS), 0, 0, 0, 0, 0, 0}, 1, 4, 0},
        {"Q4_1, NVFP4 and Q5_1",
         {"llama", 40, 64, 1, 2, 1, 32, 64, 64, 0, F(Q4_1), F(NVFP4), F(Q5_1), 0, 1, 0, 0, 0, 0}, 1, 4, 0},
        /* clang-format on */
#undef F
    };
    uint32_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_maker m = {0};
        model_file f;
        make_model(&m, &cases[i].shape);
        if (open_made(&f, &m))
            check_model(&f, cases[i].batch, cases[i].steps, cases[i].max_seq, cases[i].what);
        close_file(&f);
    }
}

/* -- files that are whole, and no such model -- */

/* `bytes` bytes of x, `skip` past the first `word`, instead of what stands there. */
typedef struct change {
    const char *word;
    size_t skip;
    const char *x;
    size_t bytes;
} change;

/* A made model with changes must be refused with these words, and a place in the file. */
static void unfit_shape(const model_shape *shape, const change *c, unsigned count, const char *reason)
{
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    o.batch = 1;
    make_model(&made, shape);
    for (; count--; c++) {
        size_t at = 0;
        while (at + strlen(c->word) < made.bytes && memcmp(made.at + at, c->word, strlen(c->word))) at++;
        if (!CHECK_MORE(at + strlen(c->word) < made.bytes, c->word)) return;
        memcpy(made.at + at + c->skip, c->x, c->bytes);
    }
    if (open_made(&f, &made)) {
        if (CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 1, reason))
            CHECK_MORE(strstr(why.text, reason) != NULL && why.offset > 0 && why.offset <= f.bytes, why.text);
        else
            llama_close(&m);
    }
    close_file(&f);
}

static void unfit_model(const char *architecture, const change *c, unsigned count, const char *reason)
{
    model_shape shape = {
        "qwen2",         5, 32, 2, 2, 1, 16, 32, 16, 8, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 1, 1,  0, 0, 2, 4};
    shape.architecture = architecture;
    shape.bias = !strcmp(architecture, "qwen2");
    unfit_shape(&shape, c, count, reason);
}

static void unfit_changes(const change *c, unsigned count, const char *reason)
{
    unfit_model("qwen2", c, count, reason);
}

static void unfit(const char *word, size_t skip, const char *x, size_t bytes, const char *reason)
{
    change c;
    c.word = word;
    c.skip = skip;
    c.x = x;
    c.bytes = bytes;
    unfit_changes(&c, 1, reason);
}

static void test_unfit(void)
{
    static const char two[] = {2, 0, 0, 0}, three[] = {3, 0, 0, 0}, none[] = {0, 0, 0, 0},
                      many[] = {0, 0, 0, -1};
    static const change one_expert[] = {{"expert_count", 12 + 4, "\1", 1},
                                        {"expert_used_count", 17 + 4, "\1", 1},
                                        {"blk.0.ffn_gate_inp.weight", 25 + 4 + 8, "\1", 1}};
    unfit_model("qwen3moe", one_expert, 3, "exps.weight' has 6 matrices, must have 1");
    unfit("general.architecture", 20 + 4 + 8, "mamba", 5, "architecture 'mamba' (no attention)");
    unfit("general.architecture", 20 + 4 + 8, "qwen9", 5,
          "architecture 'qwen9', known are: llama qwen2 qwen3");
    unfit("general.architecture", 20 + 4 + 8, "llama", 5, "'llama.block_count' is missing");
    unfit("general.architecture", 8, "b", 1, "'general.architecture' is missing");
    unfit("block_count", 0, "x", 1, "'qwen2.block_count' is missing");
    unfit("block_count", 11 + 4, none, 4, "'qwen2.block_count' is 0");
    unfit("block_count", 11 + 4, many, 4, "must be 1 to");
    unfit("block_count", 11 + 4, three, 4, "there is no tensor 'blk.2.");
    unfit("embedding_length", 16 + 4, two, 4, "must be 2 x 5");
    unfit("feed_forward_length", 19 + 4, three, 4, "must be 32 x 3");
    unfit("head_count_kv", 13 + 4, three, 4, "'qwen2.attention.head_count_kv' is 3, must be 1 to 2");
    unfit("head_count", 10 + 4, three, 4, "'blk.0.attn_q.weight' is 32 x 32, must be 32 x 48");
    unfit("value_length", 12 + 4, two, 4, "is another than that of keys, 16");
    {
        static const change heads[] = {{"key_length", 0, "x", 1}, {"value_length", 0, "x", 1},
                                       {"head_count", 10 + 4, three, 4}},
                            none_left[] = {{"key_length", 0, "x", 1}, {"value_length", 0, "x", 1},
                                           {"embedding_length", 16 + 4, "\1\0\0\0", 4}};
        unfit_changes(heads, 3, "an embedding of 32 in 3 heads");
        unfit_changes(none_left, 3, "an embedding of 1 in 2 heads");
    }
    unfit("scaling.type", 12 + 4 + 8, "yarn!!", 6, "is 'yarn!!', must be 'none', 'linear' or 'yarn'");
    unfit("scaling.factor", 14 + 4, none, 4, "rope.scaling.factor' is 0, must be above 0");
    unfit("scaling.factor", 14, "\4\0\0\0", 4, "rope.scaling.factor' is no floating-point number");
    unfit("layer_norm_rms_epsilon", 0, "x", 1, "layer_norm_rms_epsilon' is missing");
    unfit("layer_norm_rms_epsilon", 22 + 4, "\0\0\x80\xbf", 4, "layer_norm_rms_epsilon' is missing, or not");
    unfit("rope.freq_base", 14 + 4, none, 4, "rope.freq_base' is 0, must be above 0");
    unfit("rope.dimension_count", 20 + 4, three, 4, "is odd");
    unfit("token_embd", 0, "x", 1, "there is no tensor 'token_embd.weight'");
    unfit("blk.1.attn_k.weight", 7, "x", 1, "there is no tensor 'blk.1.attn_k.weight'");
    unfit("blk.1.attn_k.bias", 13, "x", 1, "'blk.1.attn_k.xias' is no tensor of this architecture");
    unfit("blk.1.ffn_up.weight", 19 + 4 + 16, "\x19", 1, "no kernels for I16");
    unfit("blk.1.ffn_norm.weight", 21 + 4 + 8, "\x1a", 1, "'blk.1.ffn_norm.weight' is I32, must be F32");
}

/* Norms of heads that are not as they must be; windows that are none. */
static void test_unfit_norms_and_windows(void)
{
    static const change missing = {"blk.1.attn_q_norm.weight", 7, "x", 1},
                        length = {"blk.0.attn_k_norm.weight", 24 + 4, "\10", 1},
                        half = {"blk.1.attn_k_norm.weight", 24 + 4 + 8, "\1", 1},
                        negative = {"sliding_window", 14, "\5\0\0\0\377\377\377\377", 8},
                        real = {"sliding_window", 14, "\6\0\0\0", 4};
    unfit_model("qwen3", &missing, 1, "there is no tensor 'blk.1.attn_q_norm.weight'");
    unfit_model("qwen3", &length, 1, "'blk.0.attn_k_norm.weight' is 8 x 1, must be 16 x 1");
    unfit_model("qwen3", &half, 1, "'blk.1.attn_k_norm.weight' is F16, must be F32");
    unfit_model("llama", &negative, 1, "'llama.attention.sliding_window' is no whole number");
    unfit_model("llama", &real, 1, "'llama.attention.sliding_window' is no whole number");
}

/* Positions that YaRN cannot scale. */
static void test_unfit_yarn(void)
{
    static const change context = {"original_context_length", 23 + 4, "\0\0\0\0", 4},
                        slow = {"yarn_beta_slow", 14 + 4, "\0\0\0\x41", 4}, /* 8, as the fast one */
                        fast = {"yarn_beta_fast", 14, "\4\0\0\0", 4};
    const model_shape good = {
        "llama",         5, 32, 1, 2, 1, 16, 32, 16, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 0, 1,  3, 0, 2, 0};
    model_shape shape = good;
    unfit_shape(&good, &context, 1, "original_context_length' is 0, must be 1 to");
    unfit_shape(&good, &slow, 1, "yarn_beta_slow' is 8, must be above 0 and below 8");
    unfit_shape(&good, &fast, 1, "yarn_beta_fast' is no floating-point number");
    shape.rope_dims = 8;
    unfit_shape(&shape, NULL, 0, "YaRN, and only 8 of a head's 16 elements are turned");
    shape = good;
    shape.rope_scale = 0.5f;
    unfit_shape(&shape, NULL, 0, "YaRN by 0.5 on a base of 10000, must be 1 or more");
    shape = good;
    shape.rope_theta = 1;
    unfit_shape(&shape, NULL, 0, "YaRN by 2 on a base of 1, must be");
}

/* Sizes that no kernel takes: told with a place in the file, too. */
static void test_unfit_sizes(void)
{
    const model_shape good = {
        "llama",         5, 32, 1, 2, 1, 16, 32, 16, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 0, 1,  0, 0, 0, 0};
    model_shape shape = good;
    shape.head_dim = 12;
    unfit_shape(&shape, NULL, 0, "heads of 12 elements, must be a multiple of 8 up to 256");
    shape.head_dim = 264;
    unfit_shape(&shape, NULL, 0, "heads of 264 elements, must be");
    shape = good;
    shape.ffn = 20;
    unfit_shape(&shape, NULL, 0, "rows of 20 values, must be a multiple of 8");
    shape = good;
    shape.hidden = 36;
    unfit_shape(&shape, NULL, 0, "rows of 36 values, must be a multiple of 8");
}

/* Tensors of another architecture, of the right sizes, are not passed over: who has no norms of heads would
   write another text than the model's. */
static void test_norms_of_another_architecture(void)
{
    static const model_shape shape = {
        "qwen3",         5, 32, 2, 2, 1, 16, 32, 16, 8, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 0, 1,  0, 0, 0, 0};
    static const char *const names[] = {"qwen3", "qwen2", "llama"};
    uint32_t i;
    for (i = 0; i < 3; i++) {
        gguf_maker made = {0};
        model_file f;
        llama m;
        llama_options o;
        gguf_error why;
        size_t at;
        int bad;
        memset(&o, 0, sizeof o);
        o.batch = 1;
        make_model(&made, &shape);
        for (at = 0; at + 5 <= made.bytes; at++)
            if (!memcmp(made.at + at, "qwen3", 5)) memcpy(made.at + at, names[i], 5);
        if (open_made(&f, &made)) {
            bad = llama_open(&m, device, &f.g, f.file, &o, NULL, &why);
            if (!bad) llama_close(&m);
            CHECK_MORE(bad == (i > 0), names[i]);
            if (bad)
                CHECK_MORE(strstr(why.text, "_norm.weight' is no tensor of this architecture") != NULL
                               && why.offset > 0 && why.offset <= f.bytes,
                           why.text);
        }
        close_file(&f);
    }
}

/* -- keys that change what is computed, weights that are too many, and progress -- */

/* A model's file with `count` values more, in front of its own. */
static void make_with(gguf_maker *more, const gguf_maker *values, unsigned count)
{
    static const model_shape shape = {
        "llama",         5, 32, 1, 2, 1, 16, 32, 16, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 0, 1,  0, 0, 0, 0};
    gguf_maker made = {0};
    gguf_error why;
    gguf g;
    make_model(&made, &shape);
    make_start(more, gguf_little(made.at + 8, 8), gguf_little(made.at + 16, 8) + count);
    make_bytes(more, values->at, values->bytes);
    if (CHECK(gguf_parse(&g, made.at, made.bytes, made.bytes, &why) == 0)) {
        make_bytes(more, made.at + 24, (size_t)g.tensors_end - 24);
        make_padding(more);
        make_bytes(more, made.at + ((g.tensors_end + 31) & ~31ull),
                   made.bytes - (size_t)((g.tensors_end + 31) & ~31ull));
        gguf_free(&g);
    }
    free(made.at);
}

/* Returns what llama_open does. Takes the values. */
static int open_with_values(gguf_maker *values, unsigned count, uint32_t max_seq, gguf_error *why,
                            llama_config *config)
{
    gguf_maker more = {0};
    model_file f;
    llama m;
    llama_options o;
    int result = 1;
    memset(&o, 0, sizeof o);
    o.batch = 1;
    o.max_seq = max_seq;
    make_with(&more, values, count);
    free(values->at);
    memset(values, 0, sizeof *values);
    if (open_made(&f, &more)) {
        result = llama_open(&m, device, &f.g, f.file, &o, NULL, why);
        if (!result && config) *config = m.config;
        if (!result) llama_close(&m);
        if (result) CHECK_MORE(why->offset > 24 && why->offset < f.bytes, why->text);
    }
    close_file(&f);
    return result;
}

static int open_with(const char *key, uint32_t x, uint32_t max_seq, gguf_error *why)
{
    gguf_maker values = {0};
    make_value_u32(&values, key, x);
    return open_with_values(&values, 1, max_seq, why, NULL);
}

static int open_with_float(const char *key, float x, gguf_error *why)
{
    gguf_maker values = {0};
    make_value_float(&values, key, x);
    return open_with_values(&values, 1, 8, why, NULL);
}

/* How positions are scaled, by which keys are there: without a type linearly, with 'none' not at all. */
static void test_scaling_keys(void)
{
    static const struct {
        const char *type;
        float linear, factor; /* 0: no such key */
        double scale;
    } cases[] = {{NULL, 0, 0, 1},     {NULL, 0, 4, 4},     {NULL, 8, 0, 8},     {NULL, 8, 4, 4},
                 {"linear", 0, 4, 4}, {"linear", 8, 0, 8}, {"linear", 8, 4, 4}, {"linear", 0, 0, 1},
                 {"none", 0, 4, 1},   {"none", 8, 0, 1},   {"yarn", 0, 4, 4},   {"yarn", 8, 0, 8}};
    unsigned i, count;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_maker values = {0};
        llama_config c;
        gguf_error why;
        count = (unsigned)(cases[i].type != NULL) + (cases[i].linear > 0) + (cases[i].factor > 0);
        if (cases[i].type) make_value_text(&values, "llama.rope.scaling.type", cases[i].type);
        if (cases[i].linear > 0) make_value_float(&values, "llama.rope.scale_linear", cases[i].linear);
        if (cases[i].factor > 0) make_value_float(&values, "llama.rope.scaling.factor", cases[i].factor);
        if (!CHECK_MORE(open_with_values(&values, count, 8, &why, &c) == 0, why.text)) continue;
        CHECK(c.rope_scale >= cases[i].scale && c.rope_scale <= cases[i].scale);
        CHECK((c.yarn_context > 0) == (cases[i].type && !strcmp(cases[i].type, "yarn")));
    }
}

static void test_keys(void)
{
    gguf_error why;
    CHECK_MORE(open_with("llama.attention.sliding_window", 8, 9, &why) == 0, why.text);
    CHECK_MORE(open_with("llama.attention.sliding_window", 8, 8, &why) == 0, why.text);
    CHECK_MORE(open_with("llama.attention.sliding_window", 0, 8, &why) == 0, why.text); /* none */
    CHECK_MORE(open_with("llama.attention.sliding_window", 0xffffffffu, 8, &why) == 0, why.text);
    CHECK(open_with("llama.attention.sliding_window_pattern", 6, 8, &why) == 1
          && strstr(why.text, "'llama.attention.sliding_window_pattern'"));
    CHECK(open_with("llama.attention.scale", 1, 8, &why) == 1 && strstr(why.text, "'llama.attention.scale'"));
    CHECK(open_with("llama.rope.scaling.yarn_attn_factor", 1, 8, &why) == 1
          && strstr(why.text, "'llama.rope.scaling.yarn_attn_factor'"));
    CHECK(open_with_float("llama.rope.scaling.attn_factor", 0.5f, &why) == 1
          && strstr(why.text, "'llama.rope.scaling.attn_factor'"));
    CHECK(open_with_float("llama.rope.scaling.attn_factor", NAN, &why) == 1);
    CHECK_MORE(open_with_float("llama.rope.scaling.attn_factor", 1, &why) == 0, why.text);
    CHECK_MORE(open_with_float("llama.rope.scaling.yarn_log_multiplier", 0, &why) == 0, why.text);
    CHECK_MORE(open_with_float("llama.logit_scale", 0, &why) == 0, why.text);
    CHECK(open_with_float("llama.logit_scale", 1, &why) == 1);
    CHECK(open_with_float("llama.attention.sliding_window_pattern", 0, &why) == 1);
    CHECK(open_with("llama.expert_count", 8, 8, &why) == 1 && strstr(why.text, "llama.expert_used_count' is missing"));
    CHECK_MORE(open_with("llama.expert_count", 0, 8, &why) == 0, why.text);
    CHECK_MORE(open_with("llama.anything", 1, 8, &why) == 0, why.text);
}

static uint64_t progressed, progress_of;
static unsigned progress_calls, progress_wrong;

static void note_progress(uint64_t done, uint64_t of)
{
    if (done < progressed || done > of || (progress_of && of != progress_of)) progress_wrong++;
    progressed = done;
    progress_of = of;
    progress_calls++;
}

/* Weights that go in several pieces; and more of them than the device has room for. */
static void test_sizes(void)
{
    static const model_shape large = {
        "llama",         9000, 256, 1, 2, 1, 16, 32, 16, 8, GGUF_FORMAT_F32, GGUF_FORMAT_F16,
        GGUF_FORMAT_F16, 0,    1,   0, 0, 0, 0};
    static const model_shape huge = {
        "llama",         1u << 24,        1u << 16,        1, 2, 1, 16, 32, 16, 8,
        GGUF_FORMAT_F32, GGUF_FORMAT_F16, GGUF_FORMAT_F16, 0, 1, 0, 0,  0, 0};
    model_line *lines;
    uint32_t count;
    uint64_t bytes;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    o.batch = 1;
    make_model(&made, &large);
    if (open_made(&f, &made)) {
        CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, note_progress, &why) == 0, why.text);
        CHECK(progress_calls >= 3 && !progress_wrong && progressed == progress_of
              && progress_of >= 9000u * 1024);
        llama_close(&m);
    }
    close_file(&f);
    memset(&made, 0, sizeof made); /* 4 TB, of which only the head is written */
    lines = make_model_head(&made, &huge, &count, &bytes);
    make_padding(&made);
    f.file = tmpfile();
    if (!CHECK(f.file && fwrite(made.at, 1, made.bytes, f.file) == made.bytes)
        || fseeko(f.file, (off_t)(made.bytes + bytes - 1), SEEK_SET) || fputc(0, f.file) || fflush(f.file)) {
        printf("SKIP a model of 4 TB: not on this file system\n");
    } else if (CHECK_MORE(gguf_read(&f.g, f.file, &why) == 0, why.text)) {
        CHECK(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 1);
        CHECK_MORE(strstr(why.text, "weights of 4398") != NULL, why.text);
        gguf_free(&f.g);
    }
    if (f.file) fclose(f.file);
    free(lines);
    free(made.at);
}


/* -- the model of the repository -- */

/* One sequence by launches and as a graph; drawn; then in a batch beside three others. PTXGEN_STORY=256 makes
 * the first one so long. */
static void test_story(void)
{
    enum { SHORT = 7 };
    const char *wanted = getenv("PTXGEN_STORY");
    uint32_t tokens = wanted ? (uint32_t)strtoul(wanted, NULL, 10) : 7;
    static const char *const texts[4] = {"Once upon a time", "The king", "\"Go away!\" said the wolf", "A"};
    static sequences s, again, batch, drawn[3];
    llama m;
    llama_options o;
    gguf_error why;
    model_file f;
    uint32_t b;
    if (tokens < SHORT || tokens > TOKENS_MAX - 16) tokens = SHORT;
    if (!open_path(&f, model_path)) return;
    memset(&o, 0, sizeof o);
    o.batch = 1;
    o.max_seq = tokens + 8;
    if (CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        s.batch = 1;
        s.length[0] = prompt_of(&f, texts[0], s.token[0]);
        s.steps = s.length[0] - 1 + tokens;
        again = s;
        run_model(&m, &s, NULL);
        CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text);
        run_model(&m, &again, NULL);
        CHECK(memcmp(s.token, again.token, sizeof s.token) == 0);
        llama_close(&m);
    }
    o.temperature = 0.8f; /* drawn: a seed is a text, another seed another one */
    for (b = 0; b < 3; b++) {
        o.seed = b < 2 ? 5 : 6;
        if (!CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) break;
        drawn[b].batch = 1;
        drawn[b].length[0] = prompt_of(&f, texts[0], drawn[b].token[0]);
        drawn[b].steps = SHORT;
        run_model(&m, &drawn[b], NULL);
        llama_close(&m);
    }
    CHECK(memcmp(drawn[0].token, drawn[1].token, sizeof s.token) == 0);
    CHECK(memcmp(drawn[0].token, drawn[2].token, sizeof s.token) != 0);
    o.temperature = 0;
    o.batch = 4;
    if (CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        batch.batch = 4;
        batch.steps = SHORT;
        for (b = 0; b < 4; b++) batch.length[b] = prompt_of(&f, texts[b], batch.token[b]);
        run_model(&m, &batch, NULL);
        CHECK(memcmp(s.token[0], batch.token[0], (SHORT + 1) * 4) == 0);
        llama_close(&m);
    }
    close_file(&f);
}

int main(void)
{
    start_random();
    if (!fine(ptxcu_open(&device, NULL))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    test_unfit();
    test_unfit_norms_and_windows();
    test_unfit_yarn();
    test_unfit_sizes();
    test_norms_of_another_architecture();
    test_keys();
    test_scaling_keys();
    test_sizes();
    test_shapes();
    test_story();
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
