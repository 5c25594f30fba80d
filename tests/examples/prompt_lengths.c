/* prompt_lengths.c - prompts of many lengths fed many tokens at a time (examples/llama.h), of each architecture, in
 * caches of each type, of rows and of pages; and what a pass reads and executes, as the CPU driver counts. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../prompttest.h"

/* -- lengths, passes, caches, architectures -- */

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
        llama_options o;
        char what[80];
        memset(&o, 0, sizeof o);
        memset(&s, 0, sizeof s);
        o.batch = s.batch = cases[i].batch;
        o.max_seq = 160;
        o.prompt_tokens = cases[i].at_once;
        o.page_size = cases[i].page_size;
        s.steps = 2;
        for (b = 0; b < s.batch; b++) random_tokens(&s, b, cases[i].length[b], shape->vocab);
        snprintf(what, sizeof what, "%u sequences, %u at a time", s.batch, o.prompt_tokens);
        check_shape(shape, &o, &s, what);
    }
}

/* -- what a pass reads and executes, as the CPU driver counts -- */

typedef struct counted {
    double read, instructions, seconds; /* distinct bytes of each launch, less those that it writes: partial sums,
                                           which a launch reads again; of warps; here */
} counted;

/* Counts what feeding a prompt costs, at_once 0: in steps, each a token. */
static int count_prompt(model_file *f, sequences *s, uint32_t length, uint32_t at_once, counted *c)
{
    void (*clear)(void);
    void *clearer = ptxcu_symbol(device, "ptxsim_profile_clear");
    gguf_error why;
    llama_options o;
    llama m;
    uint32_t i;
    char *text;
    clock_t start;
    int ok = 1;
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
    text = profile_of();
    if (ok && CHECK(text)) {
        CHECK(strstr(text, "\"launches_not_kept\":0,") != NULL);
        c->read = sum_of(text, "", "\"distinct_bytes_read\"") - sum_of(text, "", "\"distinct_bytes_written\"");
        c->instructions = sum_of(text, "", "\"warp_instructions\"");
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
        printf("a prompt of 512 tokens reads weights of %.3f MB %.3f times; in two passes %.3f MB more\n",
               1e-6 * (double)bytes, weights / (double)bytes, 1e-6 * (two.read - all.read));
        printf("%.0f warp instructions and %.1f ms a token, in steps %.0f and %.1f: a ratio of %.1f, and %.1f\n",
               all.instructions / 512, 1e3 * all.seconds / 512, steps.instructions / 4, 1e3 * steps.seconds / 4,
               ratio, steps.seconds / 4 / (all.seconds / 512));
        CHECK(weights > 0.97 * (double)bytes && weights < 1.03 * (double)bytes);
        /* The first of two passes reads no output matrix. Keys and values come through tensor maps on sm_90a,
         * which this count leaves out. */
        CHECK(two.read - all.read > 0.8 * (double)bytes);
        CHECK(ratio >= 8);
    }
    close_file(&f);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    test_sequences();
    test_lengths();
    test_costs();
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
