/* persistent.c - a model in one launch for all tokens beside the same by separate launches
 * (examples/llama.h): token for token, batch 1 to 4, each type of cache, in adversarial schedules, taken up
 * from caches that are filled, read and stopped by the host while it runs.
 *
 * PTXGEN_STORY=256 takes so many tokens of the repository's model, batch 1 to 4 (or PTXGEN_BATCH), and does
 * nothing else: half an hour on a core. PTXGEN_SEEDS=1000 goes through so many schedules, and takes 256
 * tokens in every batch. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../llamatest.h"
#include <pthread.h>

static uint32_t number_of(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

/* -- one launch -- */

/* Follows run_model's prompts with one launch of n tokens. Returns 0 when something failed. */
static int run_persistent(llama *m, sequences *s, uint32_t n, float *logits)
{
    llama_persistent p;
    gguf_error why;
    uint32_t b, i;
    uint32_t *prompts = (uint32_t *)calloc((size_t)s->batch * m->options.max_seq, 4);
    int ok = prompts != NULL;
    for (b = 0; ok && b < s->batch; b++)
        memcpy(prompts + b * m->options.max_seq, s->token[b], s->length[b] * 4ull);
    ok = ok && CHECK_MORE(llama_begin(m, prompts, s->length, stream, &why) == 0, why.text);
    free(prompts);
    if (!ok || !CHECK_MORE(llama_persistent_open(m, &p, n, NULL, 0, &why) == 0, why.text)) return 0;
    ok = CHECK_MORE(llama_persistent_launch(m, &p, stream, &why) == 0, why.text)
         && CHECK_MORE(llama_persistent_end(m, &p, stream, &why) == 0, why.text)
         && CHECK(p.state->status == PTXK_DECODER_DONE)
         && (!logits || fine(ptxcu_download(device, logits, m->step.logits, 0, m->step.logits.bytes, stream)))
         && fine(ptxcu_stream_sync(device, stream));
    for (b = 0; ok && b < s->batch; b++) {
        ok = CHECK(p.state->written[b] == n) && CHECK(p.state->length[b] == s->length[b] + n - 1);
        for (i = 0; i < n; i++) s->token[b][s->length[b] + i] = p.tokens[b * n + i];
    }
    llama_persistent_close(m, &p);
    check_reports();
    return ok;
}

/* -- both forms of a model -- */

/* Where two forms of sequence b choose differently, whether the two tokens' logits lie within the tolerance
 * of each other: no arithmetic has to tell them apart. From there on the texts may differ. */
static int too_close(ref_llama *r, const sequences *s, uint32_t b, uint32_t at, uint32_t other)
{
    reference_run run;
    double gap;
    uint32_t i;
    if (!reference_start(&run, r)) return 0;
    for (i = 0; i < at; i++) reference_step(&run, s->token[b][i], i + 1 == at);
    gap = fabs(run.want[s->token[b][at]] - run.want[other]);
    printf("note: sequence %u, token %u: %u or %u, %.3g apart, tolerance %.3g\n", b, at, s->token[b][at],
           other, gap, run.tolerance);
    reference_end(&run);
    return gap <= 2 * run.tolerance;
}

/* The tokens of both forms; the last logits of the one launch beside the reference. */
static void compare(ref_llama *r, const sequences *one, const sequences *many, uint32_t n,
                    const float *logits, const char *what)
{
    uint32_t b, i, same = 0;
    double worst = 0;
    for (b = 0; b < one->batch; b++) {
        const uint32_t *x = one->token[b], *y = many->token[b];
        double error;
        for (i = 0; i < one->length[b] + n && x[i] == y[i]; i++) continue;
        if (i == one->length[b] + n)
            same++;
        else
            CHECK_MORE(too_close(r, one, b, i, y[i]), what);
        if (!logits) continue;
        error = beside_last(r, one, b, one->length[b] + n - 1, logits + (size_t)b * r->vocab, what);
        if (error > worst) worst = error;
    }
    printf("%s: %u of %u sequences the same for %u tokens; logits off by %.3f of the tolerance\n", what, same,
           one->batch, n, worst);
}

/* n tokens of each sequence by separate launches, as a graph, and in one launch. */
static void both_forms(model_file *f, sequences *s, uint32_t kv_type, uint32_t n, int with_logits,
                       const char *what)
{
    llama m;
    llama_options o;
    gguf_error why;
    ref_llama reference;
    static sequences many;
    float *logits = NULL;
    uint32_t b, longest = 0;
    clock_t start = clock(), middle;
    memset(&o, 0, sizeof o);
    for (b = 0; b < s->batch; b++) longest = s->length[b] > longest ? s->length[b] : longest;
    o.batch = s->batch;
    o.max_seq = longest + n;
    o.kv_type = kv_type;
    if (!CHECK_MORE(llama_open(&m, device, &f->g, f->file, &o, NULL, &why) == 0, why.text)) return;
    if (with_logits) logits = (float *)malloc(m.step.logits.bytes);
    many = *s;
    many.steps = longest + n - 1;
    CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text);
    if (run_model(&m, &many, NULL) && (middle = clock(), run_persistent(&m, s, n, logits))) {
        printf("%.1f s by separate launches, %.1f s in one\n", (double)(middle - start) / CLOCKS_PER_SEC,
               (double)(clock() - middle) / CLOCKS_PER_SEC);
        model_reference(&reference, &m.config, &f->g, f->data);
        reference.context = o.max_seq;
        reference.kv_f16 = kv_type == PTX_F16 || !kv_type;
        reference.kv_bf16 = kv_type == PTX_BF16;
        compare(&reference, s, &many, n, logits, what);
        ref_llama_free(&reference);
    }
    free(logits);
    llama_close(&m);
}

#define F(name) GGUF_FORMAT_##name
static const model_shape plain_shape = {"llama", 61, 32, 1, 2, 1, 16, 40, 1000, 0, F(F16), F(F16), F(F16),
                                        0,       1,  0,  0,  0, 0};
static const model_shape blocks_shape = {"qwen2", 77,      256,     2,       4, 2, 64, 256, 1000,
                                         0,       F(Q6_K), F(Q4_K), F(Q6_K), 1, 0, 0,  0,   0, 0};
/* Keys that are seen no more, in one part and in several; norms of heads, whole groups of 32 or not. */
static const model_shape window_shape = {"llama", 61, 32, 1, 2, 1, 16, 40, 1000, 0, F(F16), F(F16), F(F16),
                                         0,       1,  0,  0,  0, 90};
static const model_shape norms_shape = {"qwen3", 40, 64, 2, 4, 2, 40, 96, 1000, 0, F(Q8_0), F(Q8_0), F(F16),
                                        0,       1,  0,  1e6f, 4.0f, 0};
static const model_shape both_shape = {"qwen3", 61, 32, 1, 6, 1, 32, 40, 1000, 16, F(F16), F(F16), F(F16),
                                       0,       1,  0,  0,  0, 5};
static const model_shape yarn_shape = {"llama", 61, 32, 1, 2, 1, 32, 40, 1600, 0, F(F16), F(F16), F(F16),
                                       0,       1,  2,  0, 8.0f, 0};
#undef F

static void random_prompts(sequences *s, uint32_t batch, uint32_t longest, uint32_t vocab)
{
    uint32_t b, i;
    memset(s, 0, sizeof *s);
    s->batch = batch;
    for (b = 0; b < batch; b++) {
        s->length[b] = 1 + random_below(longest);
        for (i = 0; i < s->length[b]; i++) s->token[b][i] = random_below(vocab);
    }
}

static void test_made(void)
{
    static const struct {
        const char *what;
        const model_shape *shape;
        uint32_t batch, tokens, kv_type;
    } cases[] = {
        {"f16, one layer, batch 1", &plain_shape, 1, 256, PTX_F16},
        {"f16, one layer, batch 2", &plain_shape, 2, 48, PTX_F16},
        {"f16, one layer, batch 3", &plain_shape, 3, 48, PTX_F16},
        {"f16, one layer, batch 4", &plain_shape, 4, 128, PTX_F16},
        {"f16, one layer, bf16 caches", &plain_shape, 2, 40, PTX_BF16},
        {"f16, one layer, f32 caches", &plain_shape, 1, 40, PTX_F32},
        {"Q4_K and Q6_K, two layers, bf16 caches", &blocks_shape, 3, 4, PTX_BF16},
        {"a window of 90", &window_shape, 1, 200, PTX_F16},
        {"a window of 90, batch 2", &window_shape, 2, 100, PTX_F32},
        {"norms of heads of 40, Q8_0, batch 3", &norms_shape, 3, 6, PTX_F16},
        {"YaRN, f32 caches, batch 2", &yarn_shape, 2, 60, PTX_F32},
        {"norms of heads of 32, a window of 5, batch 2", &both_shape, 2, 24, PTX_F16},
    };
    static sequences s;
    uint32_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_maker m = {0};
        model_file f;
        uint32_t tokens = cases[i].tokens;
        if (getenv("PTXGEN_SEEDS") && cases[i].shape == &plain_shape) tokens = 256;
        make_model(&m, cases[i].shape);
        random_prompts(&s, cases[i].batch, 4, cases[i].shape->vocab);
        if (open_made(&f, &m)) both_forms(&f, &s, cases[i].kv_type, tokens, 1, cases[i].what);
        close_file(&f);
    }
}

/* The repository's model. */
static void test_story(void)
{
    static const char *const texts[4] = {"The king", "Once upon a time", "\"Go away!\" said the wolf", "A"};
    static sequences s;
    uint32_t tokens = number_of("PTXGEN_STORY", 0), batch, b;
    uint32_t first = number_of("PTXGEN_BATCH", 1), last = number_of("PTXGEN_BATCH", 4);
    int all = tokens != 0;
    model_file f;
    char what[80];
    if (!tokens || tokens > TOKENS_MAX - 16) tokens = 4;
    if (!open_path(&f, model_path)) return;
    if (all) set_option("watchdog", 7200); /* for one launch of them all */
    for (batch = first; batch <= (all ? last : 1); batch++) {
        memset(&s, 0, sizeof s);
        s.batch = batch;
        for (b = 0; b < batch; b++) s.length[b] = prompt_of(&f, texts[b], s.token[b]);
        snprintf(what, sizeof what, "%s, batch %u", model_path, batch);
        both_forms(&f, &s, 0, tokens, 1, what);
    }
    close_file(&f);
}

/* -- schedules -- */

/* Blocks, warps and copies in other orders and at other speeds: in both forms the same tokens and the same
 * last logits, nothing found. */
static void test_schedules(void)
{
    uint32_t most = number_of("PTXGEN_SEEDS", 100), seed, wrong = 0, bits = 0;
    static sequences start, one, many, first, first_many;
    enum { TOKENS = 2 };
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    float *logits, *wanted;
    if (!set_option("seed", 0)) {
        printf("SKIP schedules: only the CPU driver has them\n");
        return;
    }
    memset(&o, 0, sizeof o);
    make_model(&made, &plain_shape);
    random_prompts(&start, 2, 2, plain_shape.vocab);
    start.length[0] = 3 - start.length[1]; /* one begins while the other is in its prompt */
    o.batch = 2;
    o.max_seq = 40;
    if (!open_made(&f, &made)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
        return;
    logits = (float *)malloc(m.step.logits.bytes);
    wanted = (float *)malloc(m.step.logits.bytes);
    start.steps = (start.length[0] > start.length[1] ? start.length[0] : start.length[1]) + TOKENS - 1;
    for (seed = 0; logits && wanted && seed <= most; seed++) {
        set_option("seed", (int)seed);
        one = many = start;
        if (!run_model(&m, &many, NULL) || !run_persistent(&m, &one, TOKENS, seed ? logits : wanted)) break;
        if (seed == 0) first = one, first_many = many;
        wrong += memcmp(&one, &first, sizeof one) != 0 || memcmp(&many, &first_many, sizeof many) != 0;
        bits += seed && memcmp(logits, wanted, m.step.logits.bytes) != 0;
    }
    CHECK(seed == most + 1 && wrong == 0 && bits == 0);
    set_option("seed", 0);
    printf("%u schedules of both forms\n", seed - 1);
    free(logits);
    free(wanted);
    llama_close(&m);
    close_file(&f);
}

/* -- caches that are filled, and a host that reads and stops -- */

/* Takes separate launches first, then one launch from where they stand, then another from there. */
static void test_taken_up(void)
{
    enum { SEPARATE = 6, ONE = 9, TWO = 5 };
    static sequences all, part;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    llama_persistent p;
    gguf_error why;
    uint32_t b, i, wrong = 0;
    memset(&o, 0, sizeof o);
    make_model(&made, &plain_shape);
    random_prompts(&all, 2, 4, plain_shape.vocab);
    o.batch = 2;
    o.max_seq = 40;
    if (!open_made(&f, &made)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
        return;
    part = all;
    all.steps = SEPARATE + ONE + TWO;
    part.steps = SEPARATE;
    run_model(&m, &all, NULL);
    run_model(&m, &part, NULL);
    if (CHECK_MORE(llama_persistent_open(&m, &p, ONE, NULL, 0, &why) == 0, why.text)) {
        for (i = 0; i < 2; i++) {
            uint32_t n = i ? TWO : ONE, at = SEPARATE + 1 + (i ? ONE : 0);
            if (!CHECK_MORE(llama_persistent_resume(&m, &p, n, stream, &why) == 0, why.text)
                || !CHECK_MORE(llama_persistent_launch(&m, &p, stream, &why) == 0, why.text)
                || !CHECK_MORE(llama_persistent_end(&m, &p, stream, &why) == 0, why.text))
                break;
            for (b = 0; b < 2; b++) {
                CHECK(p.state->written[b] == n && p.state->length[b] == at - 1 + n);
                wrong += memcmp(p.tokens + b * ONE, all.token[b] + at, n * 4) != 0;
            }
        }
        CHECK(i == 2 && wrong == 0);
        llama_persistent_close(&m, &p);
    }
    check_reports();
    llama_close(&m);
    close_file(&f);
}

/* Either of two end tokens ends a sequence, and only that; the other goes on. */
static void test_ends(void)
{
    enum { TOKENS = 24 };
    static sequences all;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    llama_persistent p;
    gguf_error why;
    uint32_t ends[2], length[2], b, i, *prompts;
    memset(&o, 0, sizeof o);
    make_model(&made, &plain_shape);
    random_prompts(&all, 2, 1, plain_shape.vocab);
    o.batch = 2;
    o.max_seq = TOKENS + 4;
    prompts = (uint32_t *)calloc(2 * (size_t)o.max_seq, 4);
    if (!CHECK(prompts) || !open_made(&f, &made)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
        return;
    all.steps = TOKENS;
    run_model(&m, &all, NULL);
    ends[0] = all.token[0][1 + 7];
    ends[1] = all.token[1][1 + 3];
    for (b = 0; b < 2; b++) {
        prompts[b * o.max_seq] = all.token[b][0];
        for (i = 1; i <= TOKENS && all.token[b][i] != ends[0] && all.token[b][i] != ends[1]; i++) continue;
        length[b] = i < TOKENS ? i : TOKENS;
    }
    CHECK_MORE(llama_begin(&m, prompts, all.length, stream, &why) == 0, why.text);
    if (CHECK_MORE(llama_persistent_open(&m, &p, TOKENS, ends, 2, &why) == 0, why.text)) {
        CHECK_MORE(llama_persistent_launch(&m, &p, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_end(&m, &p, stream, &why) == 0, why.text);
        CHECK(p.state->status == PTXK_DECODER_DONE);
        for (b = 0; b < 2; b++) {
            CHECK(p.state->written[b] == length[b]);
            CHECK(memcmp(p.tokens + b * TOKENS, all.token[b] + 1, length[b] * 4ull) == 0);
        }
        llama_persistent_close(&m, &p);
    }
    check_reports();
    llama_close(&m);
    close_file(&f);
    free(prompts);
}

/* What the host does while the launch runs: reads each token as it comes, and sets the flag behind some. */
typedef struct watcher {
    volatile llama_persistent *p;
    uint32_t stop_behind, looks, seen;
    uint32_t token[TOKENS_MAX];
} watcher;

static void *watch(void *user)
{
    watcher *w = (watcher *)user;
    const volatile ptxk_decoder_state *state = w->p->state;
    const volatile uint32_t *tokens = w->p->tokens;
    while (state->status == PTXK_DECODER_RUNS) {
        struct timespec pause = {0, 200000};
        uint32_t written = state->written[0];
        if (written > w->seen) w->looks++;
        for (; w->seen < written; w->seen++) w->token[w->seen] = tokens[w->seen];
        if (w->seen >= w->stop_behind) *(volatile uint32_t *)w->p->stop = 1;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void test_stopped(void)
{
    enum { TOKENS = 400 };
    static sequences all;
    static watcher w;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    llama_persistent p;
    gguf_error why;
    pthread_t thread;
    uint32_t *prompt, end;
    memset(&o, 0, sizeof o);
    make_model(&made, &plain_shape);
    random_prompts(&all, 1, 4, plain_shape.vocab);
    o.batch = 1;
    o.max_seq = TOKENS + 8;
    prompt = (uint32_t *)calloc(o.max_seq, 4);
    if (!CHECK(prompt) || !open_made(&f, &made)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text))
        return;
    memcpy(prompt, all.token[0], all.length[0] * 4ull);
    CHECK_MORE(llama_begin(&m, prompt, all.length, stream, &why) == 0, why.text);
    if (CHECK_MORE(llama_persistent_open(&m, &p, TOKENS, NULL, 0, &why) == 0, why.text)) {
        w.p = &p;
        w.stop_behind = 5;
        CHECK(pthread_create(&thread, NULL, watch, &w) == 0);
        CHECK_MORE(llama_persistent_launch(&m, &p, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_end(&m, &p, stream, &why) == 0, why.text);
        pthread_join(thread, NULL);
        end = p.state->written[0];
        printf("stopped behind %u tokens, of which %u were read in %u looks\n", end, w.seen, w.looks);
        CHECK(p.state->status == PTXK_DECODER_STOPPED && end >= w.stop_behind && end < TOKENS);
        CHECK(w.looks >= 2 && w.seen <= end && memcmp(w.token, p.tokens, w.seen * 4ull) == 0);
        all.steps = all.length[0] - 1 + end;
        memcpy(w.token, p.tokens, end * 4ull);
        llama_persistent_close(&m, &p);
        if (run_model(&m, &all, NULL)) CHECK(!memcmp(w.token, all.token[0] + all.length[0], end * 4ull));
    }
    check_reports();
    free(prompt);
    llama_close(&m);
    close_file(&f);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    if (!getenv("PTXGEN_STORY")) {
        test_made();
        test_schedules();
        test_taken_up();
        test_ends();
        test_stopped();
    }
    test_story();
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
