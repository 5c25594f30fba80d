/* experts.c - what a token reads of a mixture of experts (examples/llama.h): of the experts' weights only those of
 * the chosen ones, counted by the CPU driver; several prompts at a time, in passes of many tokens. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../architecturetest.h"

/* The same token in one launch: the bytes that it reads. before: those of what ran earlier. */
static double check_persistent_bytes(llama *m, const sequences *s, double before, const char *what)
{
    llama_persistent p;
    gguf_error why;
    double read = 0;
    char *json;
    uint32_t *prompt = (uint32_t *)calloc(m->options.max_seq, 4);
    if (!CHECK(prompt)) return 0;
    prompt[0] = s->token[0][0];
    if (CHECK_MORE(llama_begin(m, prompt, s->length, stream, &why) == 0, why.text)
        && CHECK_MORE(llama_persistent_open(m, &p, 1, NULL, 0, &why) == 0, why.text)) {
        set_option("profile", 1);
        CHECK_MORE(llama_persistent_launch(m, &p, stream, &why) == 0, why.text);
        CHECK_MORE(llama_persistent_end(m, &p, stream, &why) == 0, why.text);
        set_option("profile", 0);
        json = profile_of();
        if (CHECK(json)) read = sum_of(json, "", "\"distinct_bytes_read\"") - before;
        printf("%s: %.0f bytes in one launch: %.3f of the weights that a token reads\n", what, read,
               read / (double)m->weight_bytes);
        CHECK(read >= 0.95 * (double)m->weight_bytes && read <= 1.05 * (double)m->weight_bytes);
        CHECK(p.tokens[0] == s->token[0][1]);
        free(json);
        llama_persistent_close(m, &p);
    }
    free(prompt);
    return read;
}

/* One token: the launches' distinct bytes beside the chosen experts' weights. */
static void check_bytes(const model_shape *shape, const char *what)
{
    static sequences s;
    static double before; /* the profile goes on */
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    uint32_t i;
    double read, chosen = 0, all = 0;
    char *json;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    o.batch = s.batch = 1;
    o.max_seq = 16;
    s.steps = 1;
    random_tokens(&s, 0, 1, shape->vocab);
    make_model(&made, shape);
    if (open_made(&f, &made) && CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        for (i = m.config.dense_layers; i < m.config.layers; i++) {
            double bytes = (double)llama_layer_tensor(&m, i, LLAMA_GATE_EXPERTS)->from->bytes
                           + (double)llama_layer_tensor(&m, i, LLAMA_UP_EXPERTS)->from->bytes
                           + (double)llama_layer_tensor(&m, i, LLAMA_DOWN_EXPERTS)->from->bytes;
            all += bytes;
            chosen += bytes * m.config.chosen / m.config.experts;
        }
        if (set_option("profile", 1)) {
            run_model(&m, &s, NULL);
            set_option("profile", 0);
            json = profile_of();
            if (CHECK(json)) {
                read = sum_of(json, "_f32_f83\"", "\"distinct_bytes_read\"") /* flags of grouped products */
                       + sum_of(json, "_f32_f64\"", "\"distinct_bytes_read\"");
                if (!m.config.latent) { /* else heads are groups, too */
                    printf("%s: a token reads %.0f bytes in the products of experts: %.3f of the chosen ones' "
                           "weights, %.3f of all\n", what, read, read / chosen, read / all);
                    CHECK(read >= chosen && read <= 1.05 * chosen);
                }
                read = sum_of(json, "", "\"distinct_bytes_read\"") - before;
                before += read;
                printf("%s: %.0f bytes in all launches: %.3f of the weights that a token reads\n", what, read,
                       read / (double)m.weight_bytes);
                CHECK(read <= 1.05 * (double)m.weight_bytes);
            }
            free(json);
            if (!llama_persistent_lacks(&m)) before += check_persistent_bytes(&m, &s, before, what);
        } else {
            printf("SKIP %s: only the CPU driver counts\n", what);
        }
        llama_close(&m);
    }
    close_file(&f);
}

/* Sequences of several lengths, whose prompts are fed 70 tokens at a time: more rows for an expert than a tile has. */
static void check_batch(const model_shape *shape, const char *what)
{
    static sequences s;
    gguf_maker made = {0};
    model_file f;
    llama_options o;
    uint32_t b;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    o.batch = s.batch = 3;
    o.prompt_tokens = 70;
    o.max_seq = 64;
    o.page_size = random_below(2) ? 16 : 0;
    s.steps = 2;
    for (b = 0; b < s.batch; b++) random_tokens(&s, b, 10 + 13 * b + random_below(8), shape->vocab);
    make_model(&made, shape);
    if (open_made(&f, &made)) check_prompts(&f, &o, &s, what);
    close_file(&f);
}

int main(void)
{
    static const model_shape counted = {"qwen2moe", 61, 1024, 1, 8, 2, 64, 1024, 64, 0, GGUF_FORMAT_F16,
                                        GGUF_FORMAT_Q8_0, GGUF_FORMAT_Q8_0, 0, 0, 0, 1e6f, 0, 0};
    static const model_shape latents = {"deepseek2", 61, 512, 2, 8, 1, 96, 512, 64, 32, GGUF_FORMAT_F16,
                                        GGUF_FORMAT_Q8_0, GGUF_FORMAT_Q8_0, 1, 0, 0, 1e6f, 0, 0};
    uint32_t i;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    if (!small_device() || (!device && !fine(ptxcu_open(&device, NULL)))) return 1;
    fine(ptxcu_stream_create(device, &stream));
    check_bytes(&counted, counted.architecture);
    check_bytes(&latents, latents.architecture);
    for (i = 0; i < sizeof models / sizeof *models; i++)
        if (model_is_mix(&models[i].shape)) check_batch(&models[i].shape, models[i].what);
    fine(ptxcu_stream_destroy(device, stream));
    ptxcu_close(device);
    return check_end();
}
