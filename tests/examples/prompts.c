/* prompts.c - prompts fed many tokens at a time, and drafts verified in one step (examples/llama.h): a few of the
 * lengths of prompt_lengths.c, the persistent kernel behind them, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../prompttest.h"

/* -- lengths -- */

/* A prompt of a few tokens and one past a tile, in one pass and in several, of each architecture. */
static void test_lengths(void)
{
    static const uint32_t lengths[] = {7, 65, 66, 1};
    static sequences s;
    uint32_t a;
    for (a = 0; a < sizeof architectures / sizeof *architectures; a++) {
        llama_options o;
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.batch = s.batch = 1;
        o.prompt_tokens = a & 1 ? 64 : 0;
        o.page_size = a == 2 ? 16 : 0;
        s.steps = 2;
        o.max_seq = lengths[a] + s.steps + 1;
        random_tokens(&s, 0, lengths[a], architectures[a].vocab);
        check_shape(&architectures[a], &o, &s, architecture_names[a]);
    }
}

/* -- from the passes into the persistent kernel, and as a graph -- */

static void test_taken_up(void)
{
    enum { PROMPT = 70, TOKENS = 12 };
    static sequences s, steps;
    model_file f;
    llama m;
    llama_options o;
    llama_persistent p;
    gguf_error why;
    float *logits;
    uint32_t b;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    o.batch = s.batch = 2;
    o.max_seq = PROMPT + TOKENS + 2;
    o.prompt_tokens = 64;
    random_tokens(&s, 0, PROMPT, architectures[0].vocab);
    random_tokens(&s, 1, PROMPT / 2, architectures[0].vocab);
    if (!open_shape(&f, &m, &architectures[0], &o)) return;
    logits = (float *)malloc(4 * (size_t)m.config.vocab * sizeof *logits);
    steps = s;
    steps.steps = TOKENS;
    CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text); /* passes are queued, steps are a graph */
    if (CHECK(logits) && run_prompts(&m, &steps, logits) && run_prompts(&m, &s, logits)
        && CHECK_MORE(llama_persistent_open(&m, &p, TOKENS, NULL, 0, &why) == 0, why.text)) {
        CHECK_MORE(llama_persistent_resume(&m, &p, TOKENS, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_launch(&m, &p, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_end(&m, &p, stream, &why) == 0, why.text);
        for (b = 0; b < 2; b++) {
            CHECK(s.token[b][s.length[b]] == steps.token[b][s.length[b]]);
            CHECK(p.state->written[b] == TOKENS
                  && !memcmp(p.tokens + b * TOKENS, steps.token[b] + s.length[b] + 1, TOKENS * 4ull));
        }
        llama_persistent_close(&m, &p);
    }
    free(logits);
    close_shape(&f, &m);
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
    enum { TOKENS = 16 };
    static sequences s, truth;
    uint32_t round, b;
    for (round = 3; round < 5; round++) {
        const model_shape *shape = &architectures[round % 4];
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
        o.batch = s.batch = round == 4 ? 3 : 1;
        o.max_seq = 160;
        o.page_size = round & 1 ? 16 : 0;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, 1 + random_below(20), shape->vocab);
        if (!open_shape(&f, &m, shape, &o)) continue;
        logits = (float *)malloc(2 * LLAMA_DRAFTS * BATCH_MAX * (size_t)m.config.vocab * sizeof *logits);
        truth = s;
        truth.steps = TOKENS;
        if (CHECK(logits) && run_prompts(&m, &truth, logits) && run_prompts(&m, &s, logits)
            && (steps = run_drafts(&m, &s, &truth, TOKENS)) > 0) {
            reference_of(&reference, &m, &f);
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
        close_shape(&f, &m);
    }
}

/* Random trees: the tokens that they gain are those of *truth; logits of each row beside the reference, which is fed
 * what the row follows. */
static void test_trees(void)
{
    enum { TOKENS = 20 };
    static sequences s, truth;
    uint32_t round, b, i, j, k, n;
    for (round = 0; round < 2; round++) {
        const model_shape *shape = &architectures[round ? 0 : 3];
        model_file f;
        llama m;
        llama_options o;
        gguf_error why;
        ref_llama reference;
        float *logits;
        uint32_t drafts[BATCH_MAX * LLAMA_DRAFTS], parent[LLAMA_DRAFTS], line[BATCH_MAX * LLAMA_DRAFTS];
        uint32_t gained[BATCH_MAX], known[BATCH_MAX], have[BATCH_MAX] = {0}, least = 0, steps = 0, more = 0, wrong = 0;
        double worst = 0;
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.batch = s.batch = round ? 2 : 1;
        o.max_seq = 80;
        o.page_size = round ? 0 : 16;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, 1 + random_below(20), shape->vocab);
        if (!open_shape(&f, &m, shape, &o)) continue;
        logits = (float *)malloc(2 * LLAMA_DRAFTS * BATCH_MAX * (size_t)m.config.vocab * sizeof *logits);
        truth = s;
        truth.steps = TOKENS + LLAMA_DRAFTS;
        reference_of(&reference, &m, &f);
        CHECK(llama_can_branch(&m));
        if (CHECK(logits) && run_prompts(&m, &truth, logits) && run_prompts(&m, &s, logits))
            for (; least < TOKENS && !wrong; steps++) {
                uint32_t depth[LLAMA_DRAFTS] = {0};
                n = 2 + random_below(LLAMA_DRAFTS - 1);
                for (i = 1; i < n; i++) { /* rows of a chain, and alternatives */
                    parent[i - 1] = random_below(3) ? i - 1 : random_below(i);
                    depth[i] = depth[parent[i - 1]] + 1;
                    for (b = 0; b < s.batch; b++)
                        drafts[b * (n - 1) + i - 1] = random_below(3)
                                                          ? truth.token[b][s.length[b] + have[b] + depth[i]]
                                                          : random_below(shape->vocab);
                }
                if (!CHECK_MORE(llama_verify_tree(&m, drafts, parent, n, line, gained, known, NULL, stream, &why) == 0,
                                why.text))
                    break;
                fine(ptxcu_download(device, logits, m.draft.logits, 0, (size_t)n * s.batch * m.config.vocab * 4,
                                    stream));
                fine(ptxcu_stream_sync(device, stream));
                for (b = 0, least = TOKENS; b < s.batch; b++) {
                    uint32_t first = s.length[b] + have[b], path[LLAMA_DRAFTS];
                    for (i = 0; steps < 2 && i < n; i++) {
                        reference_run run;
                        for (k = 0, j = i; j; j = parent[j - 1]) path[k++] = drafts[b * (n - 1) + j - 1];
                        if (!reference_start(&run, &reference)) break;
                        for (j = 0; j <= first; j++) reference_step(&run, truth.token[b][j], j == first && !k);
                        while (k) k--, reference_step(&run, path[k], !k);
                        wrong += logits_wrong(&run, logits + (size_t)(b * n + i) * m.config.vocab, &worst);
                        reference_end(&run);
                    }
                    CHECK(gained[b] >= 1 && gained[b] + known[b] <= n);
                    for (i = 0; i < gained[b] + known[b] && line[b * n + i] == truth.token[b][first + 1 + i];) i++;
                    if (i < gained[b] + known[b]) { /* unless two tokens are as likely: then it parts here */
                        reference_run run;
                        if (!reference_start(&run, &reference)) break;
                        for (j = 0; j <= first + i; j++) reference_step(&run, truth.token[b][j], j == first + i);
                        CHECK(run.want[ref_argmax(run.want, reference.vocab)] - run.want[line[b * n + i]]
                              <= 2 * run.tolerance);
                        reference_end(&run);
                        least = TOKENS;
                        break;
                    }
                    more += known[b] > 0;
                    have[b] += gained[b];
                    if (have[b] < least) least = have[b];
                }
                for (b = 0; b < s.batch; b++) /* what is in front goes on from where the last one is */
                    if (have[b] > TOKENS) least = TOKENS;
            }
        CHECK(wrong == 0 && steps < TOKENS);
        printf("trees of drafts, %s, batch %u: %u steps, %u with an alternative that was right; logits off by %.3f of "
               "the tolerance\n",
               shape->architecture, s.batch, steps, more, worst);
        parent[1] = 2;
        CHECK(llama_verify_tree(&m, drafts, parent, 3, line, gained, known, NULL, stream, &why)
              && strstr(why.text, "draft 2 follows row 2, must follow one before its own"));
        ref_llama_free(&reference);
        free(logits);
        close_shape(&f, &m);
    }
}

/* -- sequences that go on behind what has been fed -- */

/* A prompt, some tokens behind it, then more of a prompt: the same as all of that as one prompt. */
static void test_resumed(void)
{
    enum { FIRST = 21, CHOSEN = 4, MORE = 18, TOKENS = 3 };
    static sequences s, all;
    const model_shape *shape = &architectures[1]; /* with a window */
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    ref_llama reference;
    float *logits;
    uint32_t i, kept = FIRST + CHOSEN, *room;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    o.batch = s.batch = 1;
    o.max_seq = 80;
    o.prompt_tokens = 16;
    random_tokens(&s, 0, FIRST, shape->vocab);
    s.steps = CHOSEN;
    if (!open_shape(&f, &m, shape, &o)) return;
    logits = (float *)malloc(2 * (size_t)m.config.vocab * sizeof *logits);
    room = (uint32_t *)calloc(o.max_seq, sizeof *room);
    if (CHECK(logits && room) && run_prompts(&m, &s, logits)) {
        for (i = 0; i < MORE; i++) s.token[0][kept + 1 + i] = random_below(shape->vocab);
        s.length[0] = kept + 1 + MORE; /* the last chosen token has not been fed */
        s.steps = TOKENS;
        all = s;
        memcpy(room, s.token[0], s.length[0] * sizeof *room);
        CHECK_MORE(llama_resume(&m, room, s.length, &kept, stream, &why) == 0, why.text);
        CHECK_MORE(llama_prompt(&m, NULL, stream, &why) == 0, why.text);
        for (i = 0; i <= TOKENS; i++) {
            if (i) CHECK_MORE(llama_step(&m, 1, stream, &why) == 0, why.text);
            fine(ptxcu_download(device, &s.token[0][s.length[0] + i], m.step.tokens, 0, 4, stream));
            fine(ptxcu_download(device, logits + (i ? m.config.vocab : 0), m.step.logits, 0, m.step.logits.bytes,
                                stream));
            fine(ptxcu_stream_sync(device, stream));
        }
        reference_of(&reference, &m, &f);
        printf("resumed: error at most %.3f of the tolerance\n",
               beside_both(&reference, &s, &s, 0, logits, "resumed"));
        if (run_prompts(&m, &all, logits)) (void)beside_both(&reference, &all, &s, 0, NULL, "resumed, and anew");
        ref_llama_free(&reference);
        kept = s.length[0];
        CHECK(llama_resume(&m, room, s.length, &kept, stream, &why) == 1
              && strstr(why.text, "a prompt of 44 tokens, of which 44 have been fed"));
    }
    free(room);
    free(logits);
    close_shape(&f, &m);
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
    o.prompt_tokens = LLAMA_PROMPT_MAX + 1;
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
        CHECK(llama_persistent_open(&m, &p, 2, NULL, 0, &why) == 1
              && strstr(why.text, "does not have: caches of pages"));
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
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    o.batch = 1;
    o.max_seq = 64;
    o.prompt_tokens = 16;
    random_tokens(&s, 0, 50, architectures[0].vocab);
    if (open_shape(&f, &m, &architectures[0], &o)) {
        CHECK_MORE(llama_begin(&m, s.token[0], s.length, stream, &why) == 0, why.text);
        CHECK_MORE(llama_prompt(&m, note_progress, stream, &why) == 0, why.text);
        CHECK(progress_calls >= 8 && progress_wrong == 0 && progressed == progress_of);
        close_shape(&f, &m);
    }
}

/* -- prompts that begin alike -- */

/* Bytes that attention reads in a step behind the prompts; 0: only the CPU driver counts. */
static double attention_bytes(llama *m)
{
    static double before; /* the profile goes on from time to time */
    gguf_error why;
    double read = 0, all = 0;
    char *json;
    if (!set_option("profile", 1)) return 0;
    CHECK_MORE(llama_step(m, 1, stream, &why) == 0, why.text);
    fine(ptxcu_stream_sync(device, stream));
    set_option("profile", 0);
    json = profile_of();
    if (CHECK(json)) all = sum_of(json, "flash_decode", "\"distinct_bytes_read\"");
    read = all - before;
    before = all;
    free(json);
    return read;
}

/* Sequences that share what they begin with beside the reference, and beside themselves alone; by launches, or as
 * graphs, which the sharing makes anew. */
static void test_shared(void)
{
    enum { SHARED = 80, TOKENS = 6 };
    static const model_shape shapes[] = {
        {"llama", 61, 32, 2, 4, 2, 32, 40, 600, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16, GGUF_FORMAT_F16, 0, 1, 0, 0, 0, 0},
        {"gpt-oss", 61, 64, 2, 4, 2, 16, 64, 600, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16, GGUF_FORMAT_F16, 1, 0, 0, 0, 0,
         20}};
    static sequences s, alone;
    uint32_t i, b, j;
    for (i = 0; i < 3; i++) { /* the second as a graph; the third with caches of 8 bits, beside itself only */
        const model_shape *shape = &shapes[i & 1];
        model_file f;
        llama m;
        llama_options o;
        gguf_error why;
        ref_llama reference;
        float *logits = (float *)malloc(16ull * shape->vocab * sizeof *logits);
        double bytes[2] = {0, 0}, off = 0;
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.batch = s.batch = 4;
        o.prompt_tokens = 64;
        o.max_seq = SHARED + 20 + TOKENS;
        o.kv_type = i == 2 ? (uint32_t)PTXK_Q8_0 : 0;
        s.steps = TOKENS;
        for (b = 0; b < s.batch; b++) {
            random_tokens(&s, b, SHARED + 1 + random_below(9), shape->vocab);
            memcpy(s.token[b], s.token[0], SHARED * 4);
        }
        alone = s;
        s.shared = SHARED;
        if (CHECK(logits) && open_shape(&f, &m, shape, &o)) {
            CHECK(llama_can_share(&m, SHARED + 9) == SHARED);
            if ((i != 1 || CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text))
                && run_prompts(&m, &s, logits)) {
                bytes[0] = i == 1 ? 0 : attention_bytes(&m);
                CHECK(run_prompts(&m, &alone, logits + 8 * shape->vocab)); /* shares no longer */
                bytes[1] = i == 1 ? 0 : attention_bytes(&m);
                for (j = 0; j < 8 * shape->vocab; j++)
                    off = fmax(off, fabs((double)logits[j] - (double)logits[j + 8 * shape->vocab]));
                CHECK_MORE(off < 2e-3, shape->architecture);
                CHECK(bytes[0] <= 0.5 * bytes[1]);
                printf("%s: logits of sequences that share differ by %.2g", shape->architecture, off);
                if (bytes[1] > 0) printf("; attention reads %.3f of the bytes", bytes[0] / bytes[1]);
                printf("\n");
                reference_of(&reference, &m, &f);
                for (b = 0; b < s.batch && i < 2; b++)
                    (void)beside_both(&reference, &s, &alone, b, logits, "sequences that share");
                ref_llama_free(&reference);
            }
            close_shape(&f, &m);
        }
        free(logits);
    }
}

/* Caches of 8 bits, of latents and of keys and values. */
static void test_bytes(void)
{
    static const model_shape shapes[] = {
        {"deepseek2", 61, 64, 2, 4, 4, 64, 64, 600, 32, GGUF_FORMAT_F16, GGUF_FORMAT_Q8_0, GGUF_FORMAT_F16, 2, 0, 3,
         1e4f, 4, 0},
        {"llama", 61, 32, 2, 4, 2, 32, 40, 600, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16, GGUF_FORMAT_F16, 0, 1, 0, 0, 0,
         0}};
    static sequences s;
    uint32_t i, b;
    for (i = 0; i < 4; i++) {
        llama_options o;
        char what[80];
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.kv_type = i % 2 ? (uint32_t)PTXK_Q8_0 : (uint32_t)PTX_E4M3;
        o.page_size = i == 1 || i == 2 ? 16 : 0;
        o.batch = s.batch = 2;
        o.prompt_tokens = 16;
        o.max_seq = 45;
        s.steps = 4;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, 1 + random_below(40), 61);
        snprintf(what, sizeof what, "%s, caches in %s", shapes[i / 2].architecture, i % 2 ? "q8_0" : "e4m3");
        check_shape(&shapes[i / 2], &o, &s, what);
    }
}

/* What cannot be shared. */
static void refuse_shared(void)
{
    static const uint32_t prompts[2 * 40] = {1, 2, 3}, lengths[2] = {20, 16};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    o.batch = 2;
    o.max_seq = 40;
    if (open_shape(&f, &m, &architectures[0], &o)) {
        CHECK_MORE(llama_begin(&m, prompts, lengths, stream, &why) == 0, why.text);
        CHECK(llama_share_prefix(&m, 17, stream, &why) && strstr(why.text, "17 tokens cannot be shared"));
        CHECK(llama_share_prefix(&m, 16, stream, &why) && strstr(why.text, "16 shared tokens, and a prompt has 16"));
        close_shape(&f, &m);
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    test_refusals();
    test_progress();
    test_lengths();
    test_taken_up();
    test_drafts();
    test_trees();
    test_resumed();
    test_shared();
    refuse_shared();
    test_bytes();
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
