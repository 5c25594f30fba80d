/* architectures.c - small random models of each architecture (examples/models.h): 64 tokens beside the reference in
 * double precision, by launches, as a graph, persistent where that reaches, with prompts in passes and in pages.
 *
 * ARCHITECTURES_KEEP=FOLDER writes the models there, for another implementation to read. An argument: only models
 * whose names hold it. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../architecturetest.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Where two forms of a sequence part, both tokens must be the likeliest: see beside_both, which the first form has
 * been through. */
static void check_form(ref_llama *r, const sequences *one, const sequences *other, const char *what)
{
    (void)beside_both(r, other, one, 0, NULL, what);
}

/* The same in one launch, behind the passes; or refused with the reason. */
static void check_persistent(llama *m, ref_llama *r, const sequences *passes, uint32_t tokens, const char *lacks,
                             const char *what)
{
    static sequences s;
    llama_persistent p;
    gguf_error why;
    float *logits = (float *)malloc(2 * (size_t)m->config.vocab * sizeof *logits);
    int bad;
    s = *passes;
    s.steps = 0;
    if (!CHECK(logits) || !run_prompts(m, &s, logits)) return;
    free(logits);
    bad = llama_persistent_open(m, &p, tokens, NULL, 0, &why);
    if (lacks) {
        CHECK_MORE(bad && strstr(why.text, "does not have: ") && strstr(why.text, lacks), bad ? why.text : what);
        return;
    }
    if (!CHECK_MORE(!bad, why.text)) return;
    if (CHECK_MORE(llama_persistent_resume(m, &p, tokens, stream, &why) == 0, why.text)
        && CHECK_MORE(llama_persistent_launch(m, &p, stream, &why) == 0, why.text)
        && CHECK_MORE(llama_persistent_end(m, &p, stream, &why) == 0, why.text)
        && CHECK(p.state->written[0] == tokens)) {
        memcpy(s.token[0] + s.length[0] + 1, p.tokens, tokens * 4ull);
        s.steps = tokens;
        check_form(r, passes, &s, what);
    }
    llama_persistent_close(m, &p);
    check_reports();
}

static void check_model(model_file *f, const model_shape *shape, uint32_t prompt, uint32_t tokens, const char *lacks,
                        const char *what)
{
    static sequences passes, single, graph;
    llama m;
    llama_options o;
    gguf_error why;
    ref_llama reference;
    float *logits = (float *)malloc(2 * (size_t)shape->vocab * sizeof *logits);
    double worst = 0;
    uint32_t i, same = 0;
    memset(&o, 0, sizeof o);
    memset(&passes, 0, sizeof passes);
    o.batch = passes.batch = 1;
    o.max_seq = prompt + tokens + 1;
    o.prompt_tokens = 16;
    random_tokens(&passes, 0, prompt, shape->vocab);
    single = graph = passes;
    passes.steps = tokens - 1;
    single.steps = graph.steps = prompt + tokens - 1;
    if (!CHECK(logits) || !CHECK_MORE(llama_open(&m, device, &f->g, f->file, &o, NULL, &why) == 0, why.text)) {
        free(logits);
        return;
    }
    model_reference(&reference, &m.config, &f->g, f->data);
    reference.context = o.max_seq;
    if (run_prompts(&m, &passes, logits) && run_model(&m, &single, NULL)
        && CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text) && run_model(&m, &graph, NULL)) {
        worst = beside_both(&reference, &passes, &single, 0, logits, what);
        CHECK_MORE(memcmp(single.token, graph.token, sizeof single.token) == 0, what);
        for (i = 0; i < prompt + tokens && passes.token[0][i] == single.token[0][i]; i++) same = i + 1 - prompt;
        check_persistent(&m, &reference, &passes, tokens - 1, lacks, what);
    }
    printf("%s: %u of %u tokens the same in passes and one by one; error at most %.3f of the tolerance\n", what,
           least(same, tokens), tokens, worst);
    ref_llama_free(&reference);
    llama_close(&m);
    free(logits);
}

static void keep(const gguf_maker *m, uint32_t n)
{
    const char *folder = getenv("ARCHITECTURES_KEEP");
    char path[400];
    FILE *file;
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%02u.gguf", folder, (unsigned)n);
    file = fopen(path, "wb");
    if (!CHECK_MORE(file && fwrite(m->at, 1, m->bytes, file) == m->bytes, path)) return;
    fclose(file);
}

int main(int argc, char **argv)
{
    uint32_t i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    for (i = 0; i < sizeof models / sizeof *models; i++) {
        gguf_maker made = {0};
        model_file f;
        if (argc > 1 && !strstr(models[i].what, argv[1])) continue;
        make_model(&made, &models[i].shape);
        keep(&made, i);
        if (open_made(&f, &made))
            check_model(&f, &models[i].shape, 40, models[i].shape.layers > 20 ? 8 : 64, models[i].lacks,
                        models[i].what);
        close_file(&f);
    }
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
