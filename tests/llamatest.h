/* llamatest.h - a device, models' files and runs of them, for tests of examples/llama.h. Include it behind
 * the headers with their implementations. */
#ifndef LLAMATEST_H
#define LLAMATEST_H

#include "check.h"
#include <unistd.h>
#include "sim/ptxsim.h"
#include "../examples/llama.h"
#include "../examples/tokeniser.h"
#include "modeltest.h"

static const char *const model_path = "tests/model/fables.gguf";
static ptxcu *device;
static ptxcu_stream stream;

/* The CPU driver has found nothing. */
static inline void check_reports(void)
{
    static char text[4000];
    void *symbol = ptxcu_symbol(device, "ptxsim_report");
    size_t (*report)(char *, size_t);
    if (!symbol) return;
    memcpy(&report, &symbol, sizeof symbol);
    CHECK_MORE(report(text, sizeof text) == 0, text);
}

static inline int fine(ptxcu_code code)
{
    return CHECK_MORE(code == PTXCU_E_NONE, ptxcu_get_error(device)->message);
}

/* An option of the CPU driver. 0: this is another driver. */
static inline int set_option(const char *name, int value)
{
    void (*set)(const char *, int);
    void *symbol = ptxcu_symbol(device, "ptxsim_set");
    if (!symbol) return 0;
    memcpy(&set, &symbol, sizeof symbol);
    set(name, value);
    return 1;
}

/* The sum of "name" over the launches of a profile whose kernel's name holds `kernel`. */
static inline double sum_of(const char *json, const char *kernel, const char *name)
{
    double sum = 0;
    const char *at, *next;
    for (at = strstr(json, "{\"launch\""); at; at = next) {
        const char *own, *value;
        next = strstr(at + 1, "{\"launch\"");
        own = strstr(at, kernel);
        value = strstr(at, name);
        if (own && value && (!next || (own < next && value < next))) sum += strtod(strchr(value, ':') + 1, NULL);
    }
    return sum;
}

/* The profile of what ran since option "profile" was set, to be freed; NULL: no memory. */
static inline char *profile_of(void)
{
    size_t (*profile)(int, char *, size_t);
    void *symbol = ptxcu_symbol(device, "ptxsim_profile");
    size_t bytes;
    char *text;
    memcpy(&profile, &symbol, sizeof symbol);
    bytes = profile(1, NULL, 0);
    text = (char *)calloc(1, bytes + 1);
    if (text) profile(1, text, bytes + 1);
    return text;
}

/* Opens the device; the CPU driver describes one with so few multiprocessors that a block for each is a
 * reasonable number on a CPU. Sets `device` unless the environment names a description. */
static inline int small_device(void)
{
    static char path[] = "/tmp/llamatest-XXXXXX";
    int file;
    if (getenv("PTXSIM_DEVICE")) return 1;
    file = mkstemp(path);
    if (file < 0 || write(file, "sm = 90\nsms = 3\n", 16) != 16 || setenv("PTXSIM_DEVICE", path, 1)) return 0;
    close(file);
    if (!fine(ptxcu_open(&device, NULL))) return 0;
    return unlink(path) == 0;
}

/* A file in memory, on disk as well, for as long as it is tested. */
typedef struct model_file {
    unsigned char *data;
    size_t bytes;
    FILE *file;
    gguf g;
} model_file;

static inline int open_made(model_file *f, const gguf_maker *m)
{
    gguf_error why;
    f->data = m->at;
    f->bytes = m->bytes;
    f->file = tmpfile();
    return CHECK(f->file && fwrite(m->at, 1, m->bytes, f->file) == m->bytes)
           && CHECK_MORE(gguf_read(&f->g, f->file, &why) == 0, why.text);
}

static inline int open_path(model_file *f, const char *path)
{
    gguf_error why;
    f->file = fopen(path, "rb");
    if (!CHECK_MORE(f->file != NULL, path) || !CHECK_MORE(gguf_read(&f->g, f->file, &why) == 0, why.text))
        return 0;
    f->bytes = (size_t)f->g.file_bytes;
    f->data = (unsigned char *)malloc(f->bytes);
    rewind(f->file);
    return CHECK(f->data && fread(f->data, 1, f->bytes, f->file) == f->bytes);
}

static inline void close_file(model_file *f)
{
    gguf_free(&f->g);
    fclose(f->file);
    free(f->data);
}

/* -- runs: prompts first, then chosen tokens; logits of every step where they are wanted -- */

enum { TOKENS_MAX = 640, BATCH_MAX = 8 };

typedef struct sequences {
    uint32_t batch, steps;
    uint32_t shared;                       /* tokens that all prompts begin with, fed once; 0: all by themselves */
    uint32_t length[BATCH_MAX];            /* of the prompts */
    uint32_t token[BATCH_MAX][TOKENS_MAX]; /* in: the prompt; out: and what follows */
} sequences;

/* Takes `steps` tokens of each sequence. logits: NULL or [steps, batch, vocab]. Returns 0 when something
 * failed. */
static inline int run_model(llama *m, sequences *s, float *logits)
{
    gguf_error why;
    uint32_t b, i, next[BATCH_MAX];
    uint32_t *prompts = (uint32_t *)calloc((size_t)s->batch * m->options.max_seq, 4);
    int ok = prompts != NULL;
    for (b = 0; ok && b < s->batch; b++)
        memcpy(prompts + b * m->options.max_seq, s->token[b], s->length[b] * 4ull);
    ok = ok && CHECK_MORE(llama_begin(m, prompts, s->length, stream, &why) == 0, why.text);
    for (i = 0; ok && i < s->steps; i++) {
        int choose = logits != NULL;
        for (b = 0; b < s->batch; b++)
            if (i + 1 >= s->length[b]) choose = 1;
        ok = CHECK_MORE(llama_step(m, choose, stream, &why) == 0, why.text)
             && fine(ptxcu_download(device, next, m->step.tokens, 0, s->batch * 4ull, stream))
             && (!logits
                 || fine(ptxcu_download(device, logits + (size_t)i * s->batch * m->config.vocab, m->step.logits, 0,
                                        m->step.logits.bytes, stream)))
             && fine(ptxcu_stream_sync(device, stream));
        for (b = 0; ok && b < s->batch; b++) s->token[b][i + 1] = next[b];
    }
    free(prompts);
    check_reports();
    return ok;
}

/* -- beside the reference -- */

/* What the device may be off at each step: rounding moves the logits in a way that no closed bound follows
 * through the layers usefully, so the reference is run COPIES times more with every operation moved at random
 * within its own derived bound (ref_llama_product and its neighbours); the tolerance is the farthest that any
 * logit of any copy moved at that step or one before: a single logit may come back to where it was by chance. The
 * device's own errors are such a draw, and mostly well inside their bounds. Where copies choose another expert, the
 * device that chooses it moves as far, and by its own rounding beside that: a quarter more is allowed. */
enum { COPIES = 4 };

/* The reference and its moved copies, side by side through one sequence. */
typedef struct reference_run {
    ref_llama *r;
    ref_llama_state state[1 + COPIES];
    double *want; /* [1 + COPIES, vocab] logits of the last step: without noise first */
    double tolerance;
} reference_run;

static inline int reference_start(reference_run *run, ref_llama *r)
{
    uint32_t copy;
    int ok = 1;
    run->r = r;
    run->tolerance = 0;
    memset(r->ties, 0, sizeof r->ties);
    run->want = (double *)malloc((1 + COPIES) * (size_t)r->vocab * sizeof *run->want);
    for (copy = 0; copy <= COPIES; copy++) ok &= ref_llama_start(r, &run->state[copy]);
    return CHECK(run->want && ok);
}

static inline void reference_step(reference_run *run, uint32_t token, int logits)
{
    uint32_t copy, j;
    for (copy = 0; copy <= COPIES; copy++) {
        double *one = run->want + (size_t)copy * run->r->vocab;
        double allowed;
        run->r->noise = copy ? 1 : 0;
        run->r->copy = copy;
        ref_llama_step(run->r, &run->state[copy], token, logits ? one : NULL);
        allowed = run->r->ties[copy] ? 1.25 : 1;
        for (j = 0; logits && j < run->r->vocab; j++)
            run->tolerance = fmax(run->tolerance, allowed * fabs(one[j] - run->want[j]));
    }
}

static inline void reference_end(reference_run *run)
{
    uint32_t copy;
    for (copy = 0; copy <= COPIES; copy++) ref_llama_end(&run->state[copy]);
    free(run->want);
}

/* How many logits are farther off than the tolerance; *worst grows to the largest fraction of it. */
static inline uint32_t logits_wrong(const reference_run *run, const float *have, double *worst)
{
    uint32_t j, wrong = 0;
    for (j = 0; j < run->r->vocab; j++) {
        double error = fabs((double)have[j] - run->want[j]);
        if (!(error <= run->tolerance)) wrong++;
        if (error > *worst * run->tolerance) *worst = error / run->tolerance;
    }
    return wrong;
}

/* Logits of sequence b at all steps, and that each chosen token is the reference's, unless two lie within the
 * tolerance. Returns the largest error as a fraction of its tolerance. */
static inline double beside_reference(ref_llama *r, const sequences *s, uint32_t b, const float *logits,
                                      const char *what)
{
    reference_run run;
    double worst = 0, worst_tolerance = 0;
    uint32_t i, wrong = 0, other = 0, best;
    char more[200];
    if (!reference_start(&run, r)) return 0;
    for (i = 0; i < s->steps; i++) {
        reference_step(&run, s->token[b][i], 1);
        wrong += logits_wrong(&run, logits + ((size_t)i * s->batch + b) * r->vocab, &worst);
        worst_tolerance = fmax(worst_tolerance, run.tolerance);
        best = ref_argmax(run.want, r->vocab);
        if (i + 1 >= s->length[b] && s->token[b][i + 1] != best
            && !(run.want[best] - run.want[s->token[b][i + 1]] <= 2 * run.tolerance))
            other++;
    }
    snprintf(more, sizeof more, "%s, sequence %u: %u logits out of tolerance, worst %.3g of it (%.3g)", what,
             b, wrong, worst, worst_tolerance);
    CHECK_MORE(wrong == 0, more);
    CHECK_MORE(other == 0, what);
    reference_end(&run);
    return worst;
}

/* Only those logits that follow the first `steps` tokens. */
static inline double beside_last(ref_llama *r, const sequences *s, uint32_t b, uint32_t steps,
                                 const float *logits, const char *what)
{
    reference_run run;
    double worst = 0;
    uint32_t i;
    if (!reference_start(&run, r)) return 0;
    for (i = 0; i < steps; i++) reference_step(&run, s->token[b][i], i + 1 == steps);
    CHECK_MORE(logits_wrong(&run, logits, &worst) == 0, what);
    reference_end(&run);
    return worst;
}

/* Tokens of a text, by the file's tokeniser. */
static inline uint32_t prompt_of(const model_file *f, const char *text, uint32_t *tokens)
{
    gguf_error why;
    tokeniser t;
    size_t n;
    if (!CHECK_MORE(tokeniser_read(&t, &f->g, &why) == 0, why.text)) return 0;
    n = tokeniser_encode(&t, text, strlen(text), tokens);
    tokeniser_free(&t);
    return (uint32_t)n;
}

#endif
