/* prompttest.h - prompts fed many tokens at a time, beside the reference and beside the same tokens fed one by
 * one, for tests of examples/llama.h. Include it behind the headers with their implementations. */
#ifndef PROMPTTEST_H
#define PROMPTTEST_H

#include "llamatest.h"

/* -- models -- */

/* A random model of a shape, as a file and on the device. */
static inline int open_shape(model_file *f, llama *m, const model_shape *shape, const llama_options *o)
{
    gguf_maker made = {0};
    gguf_error why;
    make_model(&made, shape);
    if (!open_made(f, &made)) return 0;
    if (CHECK_MORE(llama_open(m, device, &f->g, f->file, o, NULL, &why) == 0, why.text)) return 1;
    close_file(f);
    return 0;
}

static inline void close_shape(model_file *f, llama *m)
{
    check_reports();
    llama_close(m);
    close_file(f);
}

/* The reference of an opened model, with its caches. */
static inline void reference_of(ref_llama *r, const llama *m, const model_file *f)
{
    model_reference(r, &m->config, &f->g, f->data);
    r->context = m->options.max_seq;
    r->kv_f16 = m->options.kv_type == PTX_F16;
    r->kv_bf16 = m->options.kv_type == PTX_BF16;
    r->kv_e4m3 = m->options.kv_type == PTX_E4M3;
    r->kv_q8_0 = m->options.kv_type == PTXK_Q8_0;
    if (r->kv_bf16) r->attention_bound = 0x1p-8; /* q and weights are rounded to it, too */
}

/* -- runs -- */

/* Feeds the prompts in passes, then takes `steps` tokens one by one. logits: [batch, vocab], behind the prompts,
 * and again [batch, vocab] behind the last step. Returns 0 when something failed. */
static inline int run_prompts(llama *m, sequences *s, float *logits)
{
    gguf_error why;
    uint32_t b, i, next[BATCH_MAX];
    uint32_t *prompts = (uint32_t *)calloc((size_t)s->batch * m->options.max_seq, 4);
    size_t bytes = (size_t)s->batch * m->config.vocab * 4;
    int ok = prompts != NULL;
    for (b = 0; ok && b < s->batch; b++)
        memcpy(prompts + b * m->options.max_seq, s->token[b], s->length[b] * 4ull);
    ok = ok && CHECK_MORE(llama_begin(m, prompts, s->length, stream, &why) == 0, why.text)
         && CHECK_MORE(llama_share_prefix(m, s->shared, stream, &why) == 0, why.text)
         && CHECK_MORE(llama_prompt(m, NULL, stream, &why) == 0, why.text);
    for (i = 0; ok && i <= s->steps; i++) {
        ok = (i == 0 || CHECK_MORE(llama_step(m, 1, stream, &why) == 0, why.text))
             && fine(ptxcu_download(device, next, m->step.tokens, 0, s->batch * 4ull, stream))
             && fine(ptxcu_download(device, logits + (i ? (size_t)s->batch * m->config.vocab : 0),
                                    m->step.logits, 0, bytes, stream))
             && fine(ptxcu_stream_sync(device, stream));
        for (b = 0; ok && b < s->batch; b++) s->token[b][s->length[b] + i] = next[b];
    }
    free(prompts);
    check_reports();
    return ok;
}

/* The sequence beside the reference: logits behind its prompt and behind its last step, every token the
 * likeliest, unless two lie within the tolerance. other: the same sequence fed one by one; where it parts, both
 * tokens must be the likeliest. Returns the largest error as a fraction of the tolerance. */
static inline double beside_both(ref_llama *r, const sequences *s, const sequences *other, uint32_t b,
                          const float *logits, const char *what)
{
    reference_run run;
    double worst = 0;
    uint32_t i, wrong = 0, end = s->length[b] + s->steps;
    int same = 1;
    if (!reference_start(&run, r)) return 0;
    for (i = 0; i < end; i++) {
        int chosen = i + 1 >= s->length[b];
        reference_step(&run, s->token[b][i], chosen);
        if (logits && i + 1 == s->length[b]) wrong += logits_wrong(&run, logits + (size_t)b * r->vocab, &worst);
        if (logits && s->steps && i + 1 == end)
            wrong += logits_wrong(&run, logits + (size_t)(s->batch + b) * r->vocab, &worst);
        if (chosen) {
            double best = run.want[ref_argmax(run.want, r->vocab)];
            CHECK_MORE(best - run.want[s->token[b][i + 1]] <= 2 * run.tolerance, what);
            if (same) CHECK_MORE(best - run.want[other->token[b][i + 1]] <= 2 * run.tolerance, what);
            same = same && s->token[b][i + 1] == other->token[b][i + 1];
        }
    }
    CHECK_MORE(wrong == 0, what);
    reference_end(&run);
    return worst;
}

/* One model, one set of prompts: in passes of `at_once` tokens and one by one. */
static inline void check_prompts(model_file *f, const llama_options *o, const sequences *prompts, const char *what)
{
    llama m;
    gguf_error why;
    ref_llama reference;
    static sequences passes, single;
    float *logits;
    double worst = 0, one;
    uint32_t b, longest = 0;
    if (!CHECK_MORE(llama_open(&m, device, &f->g, f->file, o, NULL, &why) == 0, why.text)) return;
    passes = single = *prompts;
    for (b = 0; b < o->batch; b++) longest = single.length[b] > longest ? single.length[b] : longest;
    single.steps = longest + passes.steps;
    logits = (float *)malloc(2 * (size_t)o->batch * m.config.vocab * sizeof *logits);
    if (CHECK(logits) && run_prompts(&m, &passes, logits) && run_model(&m, &single, NULL)) {
        reference_of(&reference, &m, f);
        for (b = 0; b < o->batch; b++) {
            one = beside_both(&reference, &passes, &single, b, logits, what);
            if (one > worst) worst = one;
        }
        ref_llama_free(&reference);
    }
    printf("%s: error at most %.3f of the tolerance\n", what, worst);
    free(logits);
    llama_close(&m);
}

/* The same for a random model of a shape. */
static inline void check_shape(const model_shape *shape, const llama_options *o, const sequences *prompts,
                               const char *what)
{
    gguf_maker made = {0};
    model_file f;
    make_model(&made, shape);
    if (open_made(&f, &made)) check_prompts(&f, o, prompts, what);
    close_file(&f);
}

static inline void random_tokens(sequences *s, uint32_t b, uint32_t length, uint32_t vocab)
{
    uint32_t i;
    s->length[b] = length;
    for (i = 0; i < length; i++) s->token[b][i] = random_below(vocab);
}

#define F(name) GGUF_FORMAT_##name
/* vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context, rope_dims; formats of embedding, matrices, down;
   bias, tied, factors; theta, scale, window */
static const model_shape architectures[] = {
    {"llama", 61, 32, 2, 4, 2, 16, 40, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0},
    {"llama", 61, 32, 2, 2, 1, 16, 40, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 50},
    {"qwen2", 77, 64, 2, 4, 2, 24, 64, 600, 0, F(Q8_0), F(Q8_0), F(F16), 1, 1, 6, 0, 0, 0},
    {"qwen3", 40, 64, 2, 4, 2, 40, 96, 600, 0, F(Q8_0), F(Q4_0), F(F16), 0, 1, 0, 1e6f, 4.0f, 0},
};
static const char *const architecture_names[] = {"llama", "a window", "biases, gate and up of two formats",
                                                 "norms of heads"};
#undef F

#endif
