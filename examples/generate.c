/* generate - a language model writes text: reads a GGUF file, continues a prompt.
   cc -O2 examples/generate.c -o generate -ldl -lm

     generate MODEL.gguf "Once upon a time" [--tokens 128] [--temperature 0.8] [--seed 1] [--top-k 40]
              [--top-p 0.95] [--graph | --persistent] [--context 2048]

   Models of the architectures llama and qwen2, their matrices in F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or
   Q6_K, their tokeniser in the file. --temperature 0, the default, takes the likeliest token; --graph makes
   each token one launch of a graph, --persistent all of them one launch of one kernel. The text goes to
   standard output as it comes; tokens per second, the bytes of weights that a token reads, and what fraction
   of the device's bandwidth that is, to standard error. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./generate tests/model/fables.gguf "Once upon a time" */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "llama.h"
#include "tokeniser.h"

typedef struct options {
    const char *model, *prompt;
    llama_options llama;
    uint32_t tokens;
    int graph, persistent;
} options;

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "generate: %s: %s\n", what, why);
    return 0;
}

/* A number of a range behind an option. */
static int number(const char *name, const char *text, double low, double high, double *x) {
    char message[120], *end;
    errno = 0;
    *x = text ? strtod(text, &end) : 0;
    if (text && *text && !*end && !errno && *x >= low && *x <= high) return 1;
    snprintf(message, sizeof message, "'%.40s' is no number from %g to %g", text ? text : "", low, high);
    return refuse(name, message);
}

static int parse(options *o, int argc, char **argv) {
    int i;
    memset(o, 0, sizeof *o);
    o->tokens = 128;
    o->llama.batch = 1;
    for (i = 1; i < argc; i++) {
        double x;
        if (strncmp(argv[i], "--", 2)) {
            if (!o->model)
                o->model = argv[i];
            else if (!o->prompt)
                o->prompt = argv[i];
            else
                return refuse(argv[i], "one model and one prompt");
            continue;
        }
        if (!strcmp(argv[i], "--graph") || !strcmp(argv[i], "--persistent")) {
            if (argv[i][2] == 'g')
                o->graph = 1;
            else
                o->persistent = 1;
            continue;
        }
        if (!strcmp(argv[i], "--tokens")) {
            if (!number(argv[i], argv[i + 1], 1, 1e9, &x)) return 0;
            o->tokens = (uint32_t)x;
        } else if (!strcmp(argv[i], "--temperature")) {
            if (!number(argv[i], argv[i + 1], 0, 100, &x)) return 0;
            o->llama.temperature = (float)x;
        } else if (!strcmp(argv[i], "--seed")) {
            if (!number(argv[i], argv[i + 1], 0, 9007199254740992.0, &x)) return 0;
            o->llama.seed = (uint64_t)x;
        } else if (!strcmp(argv[i], "--top-k")) {
            if (!number(argv[i], argv[i + 1], 0, 1e9, &x)) return 0;
            o->llama.top_k = (uint32_t)x;
        } else if (!strcmp(argv[i], "--top-p")) {
            if (!number(argv[i], argv[i + 1], 0, 1, &x)) return 0;
            o->llama.top_p = (float)x;
        } else if (!strcmp(argv[i], "--context")) {
            if (!number(argv[i], argv[i + 1], 1, 1e9, &x)) return 0;
            o->llama.max_seq = (uint32_t)x;
        } else {
            return refuse(argv[i], "an unknown option");
        }
        i++;
    }
    if (o->model && o->prompt) return 1;
    return refuse("MODEL.gguf \"prompt\"",
                  "are needed; options are --tokens --temperature --seed --top-k --top-p "
                  "--graph --persistent --context");
}

/* What can be wrong with a model's file, with its place. */
static int bad_file(const char *path, const gguf_error *why) {
    if (why->offset)
        fprintf(stderr, "generate: %s: at byte %llu: %s\n", path, (unsigned long long)why->offset, why->text);
    else
        fprintf(stderr, "generate: %s: %s\n", path, why->text);
    return 1;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Tenths of a large model, as they arrive. */
static void progress(uint64_t done, uint64_t of) {
    static unsigned shown;
    unsigned now = (unsigned)(10.0 * (double)done / (double)of);
    if (of < 64u << 20 || now <= shown) return;
    shown = now;
    fprintf(stderr, "\rloading %u0%% of %.2f GB%s", now, 1e-9 * (double)of, now == 10 ? "\n" : "");
}

/* A file may hold anything: what could steer a terminal is not passed on. */
static void show(const char *text, size_t bytes) {
    size_t i;
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i], next = i + 1 < bytes ? (unsigned char)text[i + 1] : 0;
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) c = '?', i++; /* the controls beyond ASCII, in UTF-8 */
        putchar((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c);
    }
    fflush(stdout);
}

typedef struct run {
    llama model;
    tokeniser words;
    ptxcu *cu;
    ptxcu_stream stream;
    ptxcu_event event[2];
    uint32_t *host; /* pinned: the tokens, as they come */
    uint32_t made;
    double prompt_seconds, seconds;
} run;

static int ends(const run *r, uint32_t token) { return token == r->words.eos || token == r->words.eot; }

/* The prompt but its last token without a choice; then one token after the other. The launches of a token are
   queued before the one before it is waited for and shown, so the device does not wait for the host. */
static int generate(run *r, uint32_t prompt, uint32_t tokens, gguf_error *why) {
    uint32_t i;
    double start = seconds(), began;
    char piece[256];
    for (i = 0; i + 1 < prompt; i++)
        if (llama_step(&r->model, 0, r->stream, why)) return 1;
    if (llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why)) return 1;
    began = seconds();
    r->prompt_seconds = began - start;
    for (i = 0; i <= tokens; i++) {
        if (i < tokens
            && (llama_step(&r->model, 1, r->stream, why)
                || llama_cuda(&r->model, ptxcu_download(r->cu, &r->host[i], r->model.tokens, 0, 4, r->stream),
                              why)
                || llama_cuda(&r->model, ptxcu_event_record(r->cu, r->event[i & 1], r->stream), why)))
            return 1;
        if (i == 0) continue;
        if (llama_cuda(&r->model, ptxcu_event_sync(r->cu, r->event[(i - 1) & 1]), why)) return 1;
        r->seconds = seconds() - began;
        if (ends(r, r->host[i - 1])) break;
        r->made = i;
        show(piece, tokeniser_piece(&r->words, r->host[i - 1], 0, piece, sizeof piece));
    }
    return llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why);
}

/* All tokens in one launch, shown as they come: the device writes them, and how many there are, into host
   memory. cuStreamQuery tells when it has ended, well or not. */
static int generate_persistent(run *r, uint32_t tokens, gguf_error *why) {
    enum { NOT_READY = 600 };
    int (*query)(void *) = NULL, state = NOT_READY, bad;
    void *symbol = ptxcu_symbol(r->cu, "cuStreamQuery");
    double start = seconds();
    llama_persistent p;
    uint32_t end[2];
    char piece[256];
    end[0] = r->words.eos;
    end[1] = r->words.eot;
    memcpy(&query, &symbol, sizeof symbol);
    if (llama_persistent_open(&r->model, &p, tokens, end, 2, why)) return 1;
    bad = llama_persistent_launch(&r->model, &p, r->stream, why);
    while (!bad && state == NOT_READY) {
        struct timespec pause = {0, 100000};
        uint32_t written;
        if (query)
            state = query(r->stream); /* before the last look at what is written */
        else
            bad = llama_persistent_end(&r->model, &p, r->stream, why), state = 0;
        written = *(volatile uint32_t *)&p.state->written[0];
        for (; r->made < written && r->made < tokens; r->made++) {
            uint32_t token = *(volatile uint32_t *)&p.tokens[r->made];
            if (ends(r, token)) break;
            show(piece, tokeniser_piece(&r->words, token, 0, piece, sizeof piece));
        }
        if (state == NOT_READY) nanosleep(&pause, NULL);
    }
    bad = bad || llama_persistent_end(&r->model, &p, r->stream, why);
    r->seconds = seconds() - start;
    llama_persistent_close(&r->model, &p);
    return bad;
}

static void report(const run *r, uint32_t prompt) {
    const ptxcu_device *d = ptxcu_device_info(r->cu);
    double bytes = (double)r->model.weight_bytes;
    double bandwidth = 2e3 * d->memory_clock_khz * (d->memory_bus_bits / 8.0); /* two transfers a clock */
    double rate = r->made && r->seconds > 0 ? r->made / r->seconds : 0;
    fprintf(stderr, "%s%s\n", d->name, d->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "");
    fprintf(stderr, "%u tokens of prompt in %.2f s; %u tokens written in %.2f s: %.1f a second%s\n",
            (unsigned)prompt, r->prompt_seconds, (unsigned)r->made, r->seconds, rate,
            d->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    fprintf(stderr, "%.3f MB of weights a token", 1e-6 * bytes);
    if (!d->is_cpu_driver && bandwidth > 0)
        fprintf(stderr, ": %.1f GB/s, %.3f of the device's %.0f GB/s", 1e-9 * bytes * rate,
                bytes * rate / bandwidth, 1e-9 * bandwidth);
    fprintf(stderr, "\n");
}

/* Opens the device and the model, and writes. tokens: of the prompt, in room for all positions. */
static int write_text(run *r, options *o, const gguf *g, FILE *file, uint32_t *tokens, uint32_t prompt,
                      gguf_error *why) {
    void *host;
    int bad;
    if (ptxcu_open(&r->cu, NULL)) {
        fprintf(stderr, "generate: %s\n", ptxcu_get_error(r->cu)->message);
        return 1;
    }
    if (llama_open(&r->model, r->cu, g, file, &o->llama, progress, why)) return bad_file(o->model, why);
    bad = llama_cuda(&r->model, ptxcu_stream_create(r->cu, &r->stream), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[0]), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[1]), why)
          || llama_cuda(&r->model, ptxcu_host_alloc(r->cu, 4ull * o->tokens, &host), why)
          || llama_begin(&r->model, tokens, &prompt, r->stream, why)
          || (o->graph && llama_record(&r->model, r->stream, why));
    if (!bad) {
        r->host = (uint32_t *)host;
        show(o->prompt, strlen(o->prompt));
        bad = o->persistent ? generate_persistent(r, o->tokens, why) : generate(r, prompt, o->tokens, why);
        printf("\n");
    }
    if (!bad)
        report(r, prompt);
    else
        fprintf(stderr, "generate: %s\n", why->text);
    ptxcu_host_free(r->cu, r->host);
    ptxcu_event_destroy(r->cu, r->event[0]);
    ptxcu_event_destroy(r->cu, r->event[1]);
    ptxcu_stream_destroy(r->cu, r->stream);
    llama_close(&r->model);
    return bad;
}

/* How many positions there are to be, and whether the prompt fits. */
static int fit(options *o, const llama_config *c, uint64_t prompt) {
    uint64_t most = o->llama.max_seq && o->llama.max_seq < c->context ? o->llama.max_seq : c->context;
    if (prompt >= most) {
        fprintf(stderr, "generate: the prompt has %llu tokens, the context %llu\n",
                (unsigned long long)prompt, (unsigned long long)most);
        return 0;
    }
    if (o->tokens > most - prompt) o->tokens = (uint32_t)(most - prompt);
    o->llama.max_seq = (uint32_t)(prompt + o->tokens);
    return 1;
}

int main(int argc, char **argv) {
    options o;
    run r;
    gguf g;
    gguf_error why;
    llama_config config;
    FILE *file;
    uint32_t *tokens = NULL;
    size_t prompt;
    int failed = 1;
    if (!parse(&o, argc, argv)) return 2;
    memset(&r, 0, sizeof r);
    file = fopen(o.model, "rb");
    if (!file) return refuse(o.model, strerror(errno)), 2;
    if (gguf_read(&g, file, &why)) {
        fclose(file);
        return bad_file(o.model, &why), 2;
    }
    if (llama_read(&config, &g, &why) || tokeniser_read(&r.words, &g, &why)) {
        bad_file(o.model, &why);
    } else if (r.words.count > config.vocab) {
        refuse(o.model, "more tokens than rows of 'token_embd.weight'");
    } else {
        size_t bytes = strlen(o.prompt), room = tokeniser_room(bytes);
        tokens = (uint32_t *)malloc(room * sizeof *tokens);
        prompt = tokens ? tokeniser_encode(&r.words, o.prompt, bytes, tokens) : SIZE_MAX;
        if (prompt == SIZE_MAX)
            refuse("prompt", "no memory");
        else if (prompt == 0)
            refuse("prompt", "is empty, and the model has no token for a beginning");
        else if (fit(&o, &config, prompt))
            failed = write_text(&r, &o, &g, file, tokens, (uint32_t)prompt, &why);
    }
    free(tokens);
    ptxcu_close(r.cu);
    tokeniser_free(&r.words);
    gguf_free(&g);
    fclose(file);
    return failed;
}
