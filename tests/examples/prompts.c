/* prompts.c - prompts fed many tokens at a time, and drafts verified in one step (examples/llama.h): beside the
 * reference in double precision and beside the same tokens fed one by one; and what a pass reads and executes. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../llamatest.h"

/* -- runs -- */

/* Feeds the prompts in passes, then takes `steps` tokens one by one. logits: [batch, vocab], behind the prompts,
 * and again [batch, vocab] behind the last step. Returns 0 when something failed. */
static int run_prompts(llama *m, sequences *s, float *logits)
{
    gguf_error why;
    uint32_t b, i, next[BATCH_MAX];
    uint32_t *prompts = (uint32_t *)calloc((size_t)s->batch * m->options.max_seq, 4);
    size_t bytes = (size_t)s->batch * m->config.vocab * 4;
    int ok = prompts != NULL;
    for (b = 0; ok && b < s->batch; b++)
        memcpy(prompts + b * m->options.max_seq, s->token[b], s->length[b] * 4ull);
    ok = ok && CHECK_MORE(llama_begin(m, prompts, s->length, stream, &why) == 0, why.text)
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
static double beside_both(ref_llama *r, const sequences *s, const sequences *other, uint32_t b,
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
static void check_prompts(model_file *f, const llama_options *o, const sequences *prompts, const char *what)
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
        model_reference(&reference, &m.config, &f->g, f->data);
        reference.context = m.options.max_seq;
        reference.kv_f16 = m.options.kv_type == PTX_F16;
        reference.kv_bf16 = m.options.kv_type == PTX_BF16;
        if (reference.kv_bf16) reference.attention_bound = 0x1p-8; /* q and weights are rounded to it, too */
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

static void random_tokens(sequences *s, uint32_t b, uint32_t length, uint32_t vocab)
{
    uint32_t i;
    s->length[b] = length;
    for (i = 0; i < length; i++) s->token[b][i] = random_below(vocab);
}

/* -- lengths, batches, caches, architectures -- */

#define F(name) GGUF_FORMAT_##name
/* vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context, rope_dims; formats of embedding, matrices, down;
   bias, tied, factors; theta, scale, window */
static const model_shape architectures[] = {
    {"llama", 61, 32, 2, 4, 2, 16, 40, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 0},
    {"llama", 61, 32, 2, 2, 1, 16, 40, 600, 0, F(F16), F(F16), F(F16), 0, 1, 0, 0, 0, 50},
    {"qwen2", 77, 64, 2, 4, 2, 24, 64, 600, 0, F(Q8_0), F(Q8_0), F(F16), 1, 1, 0, 0, 0, 0},
    {"qwen3", 40, 64, 2, 4, 2, 40, 96, 600, 0, F(Q8_0), F(Q4_0), F(F16), 0, 1, 0, 1e6f, 4.0f, 0},
};
static const char *const architecture_names[] = {"llama", "a window", "biases", "norms of heads"};
#undef F

static void test_lengths(void)
{
    static const uint32_t lengths[] = {1, 2, 7, 63, 64, 65, 511, 513}, at_once[] = {1, 3, 64, 512},
                          pages[] = {0, 16, 64}, types[] = {PTX_F16, PTX_F32, PTX_BF16};
    static sequences s;
    uint32_t a, i, n = 0;
    for (a = 0; a < sizeof architectures / sizeof *architectures; a++) {
        gguf_maker made = {0};
        model_file f;
        make_model(&made, &architectures[a]);
        if (!open_made(&f, &made)) continue;
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++, n++) {
            llama_options o;
            char what[160];
            memset(&o, 0, sizeof o);
            memset(&s, 0, sizeof s);
            o.batch = s.batch = 1;
            o.prompt_tokens = at_once[(n + a) % 4];
            if (lengths[i] > 100 && o.prompt_tokens < 64) o.prompt_tokens = n & 1 ? 64 : 100;
            o.page_size = pages[n % 3];
            o.kv_type = types[(n / 3 + a) % 3];
            s.steps = 3;
            o.max_seq = lengths[i] + s.steps + 1;
            random_tokens(&s, 0, lengths[i], architectures[a].vocab);
            snprintf(what, sizeof what, "%s: %u tokens, %u at a time, pages of %u, type %u",
                     architecture_names[a], lengths[i], o.prompt_tokens, o.page_size, o.kv_type);
            check_prompts(&f, &o, &s, what);
        }
        close_file(&f);
    }
}

/* Sequences of different lengths: a pass ends in the middle of one, holds several, ends where one ends. */
static void test_sequences(void)
{
    static const struct {
        uint32_t batch, length[4], at_once, page_size;
    } cases[] = {{3, {5, 70, 1, 0}, 64, 0},  {3, {5, 70, 1, 0}, 3, 16},   {2, {64, 64, 0, 0}, 64, 64},
                 {4, {1, 1, 1, 1}, 512, 0},  {4, {9, 40, 3, 17}, 512, 16}, {4, {9, 40, 3, 17}, 10, 0}};
    static sequences s;
    uint32_t i, b;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const model_shape *shape = &architectures[i % 4];
        gguf_maker made = {0};
        model_file f;
        llama_options o;
        char what[80];
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        make_model(&made, shape);
        o.batch = s.batch = cases[i].batch;
        o.max_seq = 160;
        o.prompt_tokens = cases[i].at_once;
        o.page_size = cases[i].page_size;
        s.steps = 2;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, cases[i].length[b], shape->vocab);
        snprintf(what, sizeof what, "%u sequences, %u at a time", s.batch, o.prompt_tokens);
        if (open_made(&f, &made)) check_prompts(&f, &o, &s, what);
        close_file(&f);
    }
}

/* -- from the passes into the persistent kernel, and as a graph -- */

static void test_taken_up(void)
{
    enum { PROMPT = 70, TOKENS = 12 };
    static sequences s, steps;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    llama_persistent p;
    gguf_error why;
    float *logits;
    uint32_t b;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    make_model(&made, &architectures[0]);
    o.batch = s.batch = 2;
    o.max_seq = PROMPT + TOKENS + 2;
    o.prompt_tokens = 64;
    random_tokens(&s, 0, PROMPT, architectures[0].vocab);
    random_tokens(&s, 1, PROMPT / 2, architectures[0].vocab);
    if (!open_made(&f, &made)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
        return;
    logits = (float *)malloc(4 * (size_t)m.config.vocab * sizeof *logits);
    steps = s;
    steps.steps = TOKENS;
    CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text); /* passes are queued, steps are a graph */
    if (CHECK(logits) && run_prompts(&m, &steps, logits) && run_prompts(&m, &s, logits)
        && CHECK_MORE(llama_persistent_open(&m, &p, TOKENS, NULL, 0, &why) == 0, why.text)) {
        CHECK_MORE(llama_persistent_take_up(&m, &p, TOKENS, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_launch(&m, &p, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_end(&m, &p, stream, &why) == 0, why.text);
        for (b = 0; b < 2; b++) {
            CHECK(s.token[b][s.length[b]] == steps.token[b][s.length[b]]);
            CHECK(p.state->written[b] == TOKENS
                  && !memcmp(p.tokens + b * TOKENS, steps.token[b] + s.length[b] + 1, TOKENS * 4ull));
        }
        llama_persistent_close(&m, &p);
    }
    check_reports();
    free(logits);
    llama_close(&m);
    close_file(&f);
}

/* -- drafts -- */

/* Writes `tokens` tokens of each sequence behind those of *s by verifying drafts: the tokens of *truth, of which
 * some are made wrong. Returns how many steps that took, or 0. */
static uint32_t run_drafts(llama *m, sequences *s, const sequences *truth, uint32_t tokens)
{
    gguf_error why;
    uint32_t drafts[BATCH_MAX * LLAMA_DRAFTS], chosen[BATCH_MAX * LLAMA_DRAFTS], gained[BATCH_MAX];
    uint32_t have[BATCH_MAX] = {0}, steps = 0, least = 0, b, i;
    while (least < tokens) {
        uint32_t n = 2 + random_below(LLAMA_DRAFTS - 1);
        for (b = 0; b < s->batch; b++)
            for (i = 0; i + 1 < n; i++) {
                uint32_t at = s->length[b] + have[b] + 1 + i;
                uint32_t guess = at < s->length[b] + tokens ? truth->token[b][at] : 0;
                if (!random_below(5)) guess = (guess + 1) % m->config.vocab;
                drafts[b * (n - 1) + i] = guess;
            }
        if (!CHECK_MORE(llama_verify(m, drafts, n, chosen, gained, stream, &why) == 0, why.text)) return 0;
        steps++;
        for (b = 0, least = tokens; b < s->batch; b++) {
            CHECK(gained[b] >= 1 && gained[b] <= n);
            for (i = 0; i + 1 < gained[b]; i++) CHECK(drafts[b * (n - 1) + i] == chosen[b * n + i]);
            if (gained[b] < n) CHECK(drafts[b * (n - 1) + i] != chosen[b * n + i]);
            for (i = 0; i < gained[b]; i++) s->token[b][s->length[b] + ++have[b]] = chosen[b * n + i];
            if (have[b] < least) least = have[b];
        }
    }
    check_reports();
    return steps;
}

/* The same tokens as one by one, in fewer steps; and each row's logits beside the reference. */
static void test_drafts(void)
{
    enum { TOKENS = 40 };
    static sequences s, truth;
    uint32_t round, b;
    for (round = 0; round < 5; round++) {
        const model_shape *shape = &architectures[round % 4];
        gguf_maker made = {0};
        model_file f;
        llama m;
        llama_options o;
        gguf_error why;
        ref_llama reference;
        float *logits;
        uint32_t steps = 0, i, n, wrong = 0;
        double worst = 0;
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        make_model(&made, shape);
        o.batch = s.batch = round == 4 ? 3 : 1;
        o.max_seq = 160;
        o.page_size = round & 1 ? 16 : 0;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, 1 + random_below(20), shape->vocab);
        if (!open_made(&f, &made)
            || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
            continue;
        logits = (float *)malloc(2 * LLAMA_DRAFTS * BATCH_MAX * (size_t)m.config.vocab * sizeof *logits);
        truth = s;
        truth.steps = TOKENS;
        if (CHECK(logits) && run_prompts(&m, &truth, logits) && run_prompts(&m, &s, logits)
            && (steps = run_drafts(&m, &s, &truth, TOKENS)) > 0) {
            model_reference(&reference, &m.config, &f.g, f.data);
            reference.context = o.max_seq;
            reference.kv_f16 = 1;
            s.steps = TOKENS;
            for (b = 0; b < s.batch; b++) {
                if (memcmp(s.token[b], truth.token[b], (s.length[b] + TOKENS) * 4ull))
                    printf("sequence %u parted from one by one\n", b);
                (void)beside_both(&reference, &s, &truth, b, NULL, "tokens of drafts");
            }
            /* logits of every row, of drafts that need not be right */
            if (s.batch == 1 && run_prompts(&m, &truth, logits)) {
                uint32_t drafts[LLAMA_DRAFTS], chosen[LLAMA_DRAFTS], gained;
                reference_run run;
                n = LLAMA_DRAFTS;
                for (i = 0; i + 1 < n; i++) drafts[i] = random_below(shape->vocab);
                CHECK_MORE(llama_verify(&m, drafts, n, chosen, &gained, stream, &why) == 0, why.text);
                fine(ptxcu_download(device, logits, m.draft.logits, 0, (size_t)n * m.config.vocab * 4, stream));
                fine(ptxcu_stream_sync(device, stream));
                if (reference_start(&run, &reference)) {
                    uint32_t first = truth.length[0] + truth.steps;
                    for (i = 0; i < first; i++) reference_step(&run, truth.token[0][i], 0);
                    for (i = 0; i < n; i++) {
                        reference_step(&run, i ? drafts[i - 1] : truth.token[0][first], 1);
                        wrong += logits_wrong(&run, logits + (size_t)i * m.config.vocab, &worst);
                    }
                    reference_end(&run);
                }
                CHECK(wrong == 0);
            }
            ref_llama_free(&reference);
        }
        CHECK(steps > 0 && steps < TOKENS);
        printf("drafts, %s, batch %u: %u tokens in %u steps; logits off by %.3f of the tolerance\n",
               architecture_names[round % 4], s.batch, (unsigned)TOKENS, steps, worst);
        free(logits);
        llama_close(&m);
        close_file(&f);
    }
}

/* -- what a pass reads and executes, as the CPU driver counts -- */

typedef struct counted {
    double read, instructions, seconds; /* distinct bytes of each launch; of warps; here */
} counted;

/* The sum of a counter over all launches of a profile in JSON. */
static double sum_of(const char *profile, const char *name)
{
    char key[64];
    double sum = 0;
    snprintf(key, sizeof key, "\"%s\": ", name);
    for (profile = strstr(profile, key); profile; profile = strstr(profile + 1, key))
        sum += strtod(profile + strlen(key), NULL);
    return sum;
}

/* Counts what feeding a prompt costs, at_once 0: in steps, each a token. */
static int count_prompt(model_file *f, sequences *s, uint32_t length, uint32_t at_once, counted *c)
{
    size_t (*profile)(int, char *, size_t);
    void (*clear)(void);
    void *symbol = ptxcu_symbol(device, "ptxsim_profile"), *clearer = ptxcu_symbol(device, "ptxsim_profile_clear");
    gguf_error why;
    llama_options o;
    llama m;
    size_t bytes;
    uint32_t i;
    char *text;
    clock_t start;
    int ok = 1;
    memcpy(&profile, &symbol, sizeof profile);
    memcpy(&clear, &clearer, sizeof clear);
    memset(&o, 0, sizeof o);
    memset(c, 0, sizeof *c);
    o.batch = 1;
    o.max_seq = 512;
    o.prompt_tokens = at_once ? at_once : 1;
    s->length[0] = length;
    if (!CHECK_MORE(llama_open(&m, device, &f->g, f->file, &o, NULL, &why) == 0, why.text)) return 0;
    ok = CHECK_MORE(llama_begin(&m, s->token[0], s->length, stream, &why) == 0, why.text);
    clear();
    set_option("profile", 1);
    start = clock();
    if (at_once) ok = ok && CHECK_MORE(llama_prompt(&m, NULL, stream, &why) == 0, why.text);
    for (i = 0; ok && !at_once && i < length; i++)
        ok = CHECK_MORE(llama_step(&m, i + 1 == length, stream, &why) == 0, why.text);
    ok = ok && fine(ptxcu_stream_sync(device, stream));
    c->seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    set_option("profile", 0);
    bytes = profile(1, NULL, 0) + 1;
    text = (char *)malloc(bytes);
    if (ok && CHECK(text)) {
        profile(1, text, bytes);
        CHECK(strstr(text, "\"launches_not_kept\": 0") != NULL);
        c->read = sum_of(text, "distinct_bytes_read");
        c->instructions = sum_of(text, "warp_instructions");
    }
    free(text);
    clear();
    llama_close(&m);
    return ok;
}

/* A prompt of 512 tokens in one pass reads the weights once: of what two prompts read, 512 and 256 tokens, the
 * part that does not grow with the tokens. And it executes less than an eighth of what steps do. */
static void test_costs(void)
{
    static sequences s;
    counted all, half, steps, two;
    model_file f;
    double weights, ratio;
    uint64_t bytes = 0;
    size_t i;
    if (!set_option("profile", 0)) {
        printf("SKIP what a pass reads: only the CPU driver counts\n");
        return;
    }
    if (!open_path(&f, model_path)) return;
    for (i = 0; i < f.g.tensors; i++) bytes += f.g.tensor[i].bytes;
    for (i = 0; i < 512; i++) s.token[0][i] = random_below(2048);
    if (count_prompt(&f, &s, 512, 512, &all) && count_prompt(&f, &s, 256, 256, &half)
        && count_prompt(&f, &s, 512, 256, &two) && count_prompt(&f, &s, 4, 0, &steps)) {
        weights = 2 * half.read - all.read;
        ratio = steps.instructions / 4 / (all.instructions / 512);
        printf("a prompt of 512 tokens: %.3f MB read, weights of %.3f MB %.3f times; in two passes %.3f MB more\n",
               1e-6 * all.read, 1e-6 * (double)bytes, weights / (double)bytes, 1e-6 * (two.read - all.read));
        printf("%.0f warp instructions and %.1f ms a token, in steps %.0f and %.1f: a ratio of %.1f, and %.1f\n",
               all.instructions / 512, 1e3 * all.seconds / 512, steps.instructions / 4, 1e3 * steps.seconds / 4,
               ratio, steps.seconds / 4 / (all.seconds / 512));
        CHECK(weights > 0.97 * (double)bytes && weights < 1.03 * (double)bytes);
        CHECK(two.read - all.read > 0.9 * (double)bytes);
        CHECK(ratio >= 8);
    }
    close_file(&f);
}

/* -- what is refused -- */

static void test_refusals(void)
{
    static sequences s;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    float logits[2 * 61];
    uint32_t drafts[LLAMA_DRAFTS] = {0}, chosen[LLAMA_DRAFTS], gained, prompt[8] = {0}, length = 9;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    make_model(&made, &architectures[0]);
    o.batch = s.batch = 1;
    o.max_seq = 8;
    if (!open_made(&f, &made)) return;
    o.prompt_tokens = LLAMA_PROMPT_MOST + 1;
    CHECK(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 1
          && strstr(why.text, "4097 tokens at a time, must be 1 to 4096"));
    o.prompt_tokens = 0;
    o.page_size = 24;
    CHECK(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 1 && strstr(why.text, "page_size is 24"));
    o.page_size = 16;
    if (CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        llama_persistent p;
        CHECK(llama_begin(&m, prompt, &length, stream, &why) == 1
              && strstr(why.text, "a prompt of 9 tokens, must be 1 to 8"));
        length = 5;
        CHECK_MORE(llama_begin(&m, prompt, &length, stream, &why) == 0, why.text);
        CHECK(llama_verify(&m, drafts, 2, chosen, &gained, stream, &why) == 1
              && strstr(why.text, "at token 0 of a prompt of 5"));
        random_tokens(&s, 0, 5, 61);
        run_prompts(&m, &s, logits);
        CHECK(llama_verify(&m, drafts, 1, chosen, &gained, stream, &why) == 1
              && strstr(why.text, "1 tokens to verify, must be 2 to 8"));
        CHECK(llama_verify(&m, drafts, 9, chosen, &gained, stream, &why) == 1);
        CHECK(llama_verify(&m, drafts, 4, chosen, &gained, stream, &why) == 1
              && strstr(why.text, "4 tokens from position 5 of sequence 0, of 8 positions"));
        drafts[1] = 61;
        CHECK(llama_verify(&m, drafts, 3, chosen, &gained, stream, &why) == 1
              && strstr(why.text, "token 61 is none"));
        drafts[1] = 60;
        CHECK_MORE(llama_verify(&m, drafts, 3, chosen, &gained, stream, &why) == 0, why.text);
        CHECK(llama_persistent_open(&m, &p, 2, NULL, 0, &why) == 1 && strstr(why.text, "no caches of pages"));
        llama_close(&m);
    }
    check_reports();
    close_file(&f);
}

/* -- progress -- */

static uint64_t progressed, progress_of;
static unsigned progress_calls, progress_wrong;

static void note_progress(uint64_t done, uint64_t of)
{
    /* parts of any whole, but never backwards */
    if (of == 0 || done > of || (double)done / (double)of < (double)progressed / (double)(progress_of + !progress_of))
        progress_wrong++;
    progressed = done;
    progress_of = of;
    progress_calls++;
}

static void test_progress(void)
{
    static sequences s;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    make_model(&made, &architectures[0]);
    o.batch = 1;
    o.max_seq = 64;
    o.prompt_tokens = 16;
    random_tokens(&s, 0, 50, architectures[0].vocab);
    if (open_made(&f, &made)
        && CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        CHECK_MORE(llama_begin(&m, s.token[0], s.length, stream, &why) == 0, why.text);
        CHECK_MORE(llama_prompt(&m, note_progress, stream, &why) == 0, why.text);
        CHECK(progress_calls >= 8 && progress_wrong == 0 && progressed == progress_of);
        llama_close(&m);
    }
    close_file(&f);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    test_refusals();
    test_progress();
    test_sequences();
    test_taken_up();
    test_drafts();
    test_lengths();
    test_costs();
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
