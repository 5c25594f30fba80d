/* decoder_faults.c - where the decoder chooses experts: each barrier and acquire is taken out, one at a time: the CPU
 * driver must find it, or the results must be others.
 *
 * Runs on the CPU driver only. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY (PTXK_OP_DECODER | PTXK_OP_ROPE)
#include "../../ptxgen_kernels.h"

#include "../decodertest.h"
#include "../mutations.h"

/* Those that nothing notices, one of each, and why. */
static const struct {
    const char *text, *reason;
} silent[] = {
    {"cp.async.wait_all", "where a wait has timed out"},
    {"bar.sync %", "where a wait has timed out"},
    {"bar.sync 1,", "the wait's second, behind which only words are written that nobody reads before it"},
};
#define SILENT (sizeof silent / sizeof *silent)

static ptx_plan plan;
static ptx_module *module;
static uint32_t right[4 * MOST_TOKENS];
static float *right_logits;

/* 1: something was found, or the results are others; the first run's are the right ones. */
static int run_text(model *m, const char *text)
{
    static char found[4000];
    size_t logits = (size_t)m->desc.vocab * m->desc.batch * 4;
    void *loaded = load_text(text);
    int noticed;
    if (!loaded) return 1;
    memset(m->tokens, 0xff, sizeof m->tokens);
    CHECK(!cu.cuMemcpyHtoD(m->args.tokens, m->tokens, sizeof m->tokens));
    launch_entry(module, loaded, &plan.launch[0], &m->args, sizeof m->args);
    CHECK(!cu.cuCtxSynchronize());
    launch_entry(module, loaded, &plan.launch[1], &m->args, sizeof m->args);
    noticed = cu.cuCtxSynchronize() || cu.ptxsim_report_count();
    if (noticed && !right_logits) cu.ptxsim_report(found, sizeof found), puts(found);
    cu.ptxsim_report_clear();
    if (!noticed) {
        CHECK(!cu.cuMemcpyDtoH(m->tokens, m->args.tokens, sizeof m->tokens));
        CHECK(!cu.cuMemcpyDtoH(&m->state, m->args.state, sizeof m->state));
        CHECK(!cu.cuMemcpyDtoH(m->logits, m->args.logits, logits));
        if (right_logits) {
            noticed = memcmp(right, m->tokens, sizeof right) != 0 || memcmp(right_logits, m->logits, logits) != 0;
        } else if (CHECK(m->state.status == PTXK_DECODER_DONE)) {
            right_logits = (float *)keep(m, malloc(logits));
            memcpy(right, m->tokens, sizeof right);
            memcpy(right_logits, m->logits, logits);
        }
    }
    cu.cuModuleUnload(loaded);
    return noticed;
}

/* The text with an acquire of the part from `first` to `last` made relaxed. */
static int weaken(const char *text, const char *first, const char *last, char *to)
{
    const char *at = strstr(first, ".acquire.");
    if (!CHECK(at && at < last)) return 0;
    memcpy(to, text, (size_t)(at - text));
    sprintf(to + (at - text), ".relaxed.%s", at + strlen(".acquire."));
    return 1;
}

static void take_out_each(uint32_t batch, uint32_t format, unsigned expected)
{
    static const uint32_t mixture[] = {64, 5, 2};
    model m = model_of(64, 32, 4, 2, 32, 20, 2, batch, &format, 1, mixture);
    ptx_module_desc desc;
    ptxk_decoder_shape shape;
    const char *text, *first, *last;
    char *changed, what[160];
    unsigned n, turn, removed = 0, kind, count[SILENT] = {0};
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM(90);
    desc.comments = 1; /* mark the part */
    module = ptx_module_new(&desc);
    ptxk_decoder_emit(module, &m.desc);
    text = ptx_text(module, NULL);
    if (!CHECK(text != NULL)) return;
    first = strstr(text, "the choice of experts");
    last = first ? strstr(first, "the chosen experts") : NULL;
    if (!CHECK(last != NULL)) return;
    shape.layers = m.layers, shape.max_seq = m.max_seq, shape.sm_count = 3;
    CHECK(!ptxk_decoder_plan(&m.desc, &shape, &plan, NULL));
    m.watchdog = 3000;
    model_begin(&m);
    model_arguments(&m, plan.workspace_bytes);
    right_logits = NULL;
    CHECK(!run_text(&m, text));
    changed = (char *)malloc(strlen(text) + 65);
    for (n = 0;; n++) {
        int noticed = 0, more = mutate(text, n, changed, what);
        size_t at = 0;
        while (more && changed[at] == text[at]) at++;
        if (more && text + at < first) continue;
        if (!more || text + at > last) {
            snprintf(what, sizeof what, "acquire");
            more = 0;
            if (!weaken(text, first, last, changed)) break;
        }
        for (kind = 0; kind < SILENT && strncmp(what, silent[kind].text, strlen(silent[kind].text)); kind++) {}
        for (turn = 0; turn < (kind < SILENT ? 2u : 6u) && !noticed; turn++) {
            cu.ptxsim_set("seed", (int)turn);
            noticed = run_text(&m, changed);
        }
        if (!noticed) CHECK_MORE(kind < SILENT && count[kind]++ == 0, what);
        removed++;
        if (!more) break;
    }
    cu.ptxsim_set("seed", 0);
    printf("note: batch %u: %u taken out or weakened, %u not noticed\n", batch, removed,
           count[0] + count[1] + count[2]);
    CHECK(removed == expected);
    free(changed);
    model_free(&m);
    ptx_module_free(module);
}

int main(void)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (!open_driver()) return 1;
    start_random();
    if (!cu.ptxsim_report) {
        puts("SKIP: wrong programs run on the CPU driver only");
        return check_end();
    }
    one_thread();
    cu.ptxsim_set("quiet", 1);
    take_out_each(1, PTXK_F16, 6);
    take_out_each(3, PTXK_Q8_0, 9);
    return check_end();
}
