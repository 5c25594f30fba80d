/* generate - a language model writes text: reads a GGUF file, continues a prompt.
   cc -O2 examples/generate.c -o generate -ldl -lm

     generate MODEL.gguf "Once upon a time" [--tokens 128] [--temperature 0.8] [--seed 1] [--top-k 40]
              [--top-p 0.95] [--graph | --persistent] [--context 2048] [--batch 512] [--page-size 64] [--help]

   Models of the architectures in the table of models.h (llama, qwen, gemma, phi and others), their matrices in
   F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K, their tokeniser in the file. --temperature 0, the default,
   takes the likeliest token; --graph makes each token one launch of a graph, --persistent all tokens behind
   the first one launch of one kernel. The prompt is fed --batch tokens at a time: each time the weights are
   read once. --page-size keeps keys and values in pages, --cache q8_0 or e4m3 in 8 bits each. The text goes to
   standard output as it comes; tokens per second, the bytes of weights that a token reads, and what fraction of
   the device's bandwidth that is, to standard error. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./generate tests/model/fables.gguf "Once upon a time" */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
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
#include "example.h"

typedef struct options {
    const char *model, *prompt;
    llama_options llama;
    uint32_t tokens;
    int graph, persistent, serial;
} options;

static int parse(options *o, int argc, char **argv) {
    const char *names[2] = {NULL, NULL};
    const option table[] = {
        {"tokens", OPTION_U32, &o->tokens, 1, 1e9, NULL, "tokens to write at most"},
        {"temperature", OPTION_F32, &o->llama.temperature, 0, 100, NULL, "0: takes the likeliest token"},
        {"seed", OPTION_U64, &o->llama.seed, 0, 9007199254740991.0, NULL, "of drawn tokens"},
        {"top-k", OPTION_U32, &o->llama.top_k, 0, 1e9, NULL, "draws from the k likeliest; 0: from all"},
        {"top-p", OPTION_F32, &o->llama.top_p, 0, 1, NULL,
         "draws from the likeliest of this probability in all; 0: from all"},
        {"context", OPTION_U32, &o->llama.max_seq, 0, 1e9, NULL, "positions at most; 0: as the model has"},
        {"batch", OPTION_U32, &o->llama.prompt_tokens, 1, LLAMA_PROMPT_MOST, NULL,
         "tokens of the prompt that are fed at a time"},
        {"page-size", OPTION_U32, &o->llama.page_size, 0, 65536, NULL,
         "positions of a page of keys and values, a power of two from 16; 0: no pages"},
        {"cache", OPTION_CHOICE, &o->llama.kv_type, 0, 0, "f16|q8_0|e4m3", "numbers of keys and values"},
        {"graph", OPTION_FLAG, &o->graph, 0, 0, NULL, "each token is one launch of a graph"},
        {"persistent", OPTION_FLAG, &o->persistent, 0, 0, NULL, "all tokens are one launch of one kernel"},
        {"serial", OPTION_FLAG, &o->serial, 0, 0, NULL,
         "no kernel starts before the one before it has ended"},
    };
    const command_line line = {"generate",
                               "a language model continues a text",
                               table,
                               sizeof table / sizeof *table,
                               "MODEL.gguf \"prompt\"",
                               names,
                               2};
    memset(o, 0, sizeof *o);
    o->tokens = 128;
    o->llama.batch = 1;
    o->llama.prompt_tokens = 512;
    if (!parse_command_line(&line, argc, argv)) return 0;
    o->model = names[0], o->prompt = names[1];
    if (o->llama.kv_type && o->persistent)
        return refuse_option(&line, "--cache --persistent", "the persistent kernel takes caches of f16");
    o->llama.kv_type = o->llama.kv_type == 0   ? (uint32_t)PTX_F16
                       : o->llama.kv_type == 1 ? (uint32_t)PTXK_Q8_0
                                               : (uint32_t)PTX_E4M3;
    if (o->llama.page_size && (o->llama.page_size < 16 || o->llama.page_size & (o->llama.page_size - 1)))
        return refuse_option(&line, "page-size", "must be 0 or a power of two from 16 to 65536");
    if (o->llama.page_size && o->persistent)
        return refuse_option(&line, "--page-size --persistent", "the persistent kernel takes no pages");
    return !(o->graph && o->persistent) || refuse_option(&line, "--graph --persistent", "one of the two");
}

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "generate: %s: %s\n", what, why);
    return 0;
}

/* What can be wrong with a model's file, with its place. */
static int bad_file(const char *path, const gguf_error *why) {
    if (why->offset != GGUF_NOWHERE)
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

/* How much of the model has been loaded. */
static void loading(uint64_t done, uint64_t of) {
    static progress p = {"loading", 0, 0};
    show_progress(&p, done, of);
}

/* How much of the prompt has been fed. */
static void reading(uint64_t done, uint64_t of) {
    static progress p = {"reading the prompt", 0, 0};
    show_progress(&p, done, of);
}

/* A file may hold anything: what could steer a terminal is not passed on. The controls beyond ASCII are two
   bytes in UTF-8, of which the first may end a token and the second begin the next: it waits in *held. */
static void show(const char *text, size_t bytes, int *held) {
    size_t i;
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        int first = *held;
        *held = 0;
        if (first && c >= 0x80 && c < 0xa0) {
            putchar('?');
            continue;
        }
        if (first) putchar(first);
        if (c == 0xc2)
            *held = c;
        else
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
    char *piece;    /* room for the text of any token */
    int held;       /* see show */
    int alone;      /* there is no prompt: the text does not begin with a space */
    uint32_t made;
    double prompt_seconds, seconds; /* to the first token; from there on */
} run;

static int ends(const run *r, uint32_t token) { return token == r->words.eos || token == r->words.eot; }

/* Nobody takes the text any more: a full disk, or a pipe whose reader has gone where SIGPIPE is ignored. */
static int lost(void) { return ferror(stdout) != 0; }

static void show_token(run *r, uint32_t token) {
    int first = r->alone && r->made == 0;
    show(r->piece, tokeniser_piece(&r->words, token, first, r->piece, r->words.longest), &r->held);
    r->made++;
}

/* Notes when a token came. */
static void note(run *r, double start) {
    if (r->made == 0)
        r->prompt_seconds = seconds() - start;
    else
        r->seconds = seconds() - start - r->prompt_seconds;
}

/* One token after the other, behind the first. The launches of a token are queued before the one before it is
   waited for and shown, so the device does not wait for the host. */
static int generate(run *r, uint32_t tokens, double start, gguf_error *why) {
    uint32_t i;
    for (i = 1; i <= tokens; i++) {
        if (i < tokens
            && (llama_step(&r->model, 1, r->stream, why)
                || llama_cuda(&r->model,
                              ptxcu_download(r->cu, &r->host[i], r->model.step.tokens, 0, 4, r->stream), why)
                || llama_cuda(&r->model, ptxcu_event_record(r->cu, r->event[i & 1], r->stream), why)))
            return 1;
        if (i == 1) continue; /* the first is shown already */
        if (llama_cuda(&r->model, ptxcu_event_sync(r->cu, r->event[(i - 1) & 1]), why)) return 1;
        note(r, start);
        if (ends(r, r->host[i - 1])) break;
        show_token(r, r->host[i - 1]);
        if (lost()) break;
    }
    return llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why);
}

/* All tokens behind the first in one launch, shown as they come: the device writes them, how many there are,
   and that it has ended, into host memory. A launch that fails says nothing there: where nothing comes for
   long, the driver is asked (cuStreamQuery). */
static int generate_persistent(run *r, uint32_t tokens, double start, gguf_error *why) {
    enum { NOT_READY = 600, PATIENCE = 30 };
    int (*query)(void *) = NULL, over = 0, bad;
    void *symbol = ptxcu_symbol(r->cu, "cuStreamQuery");
    double last = seconds();
    llama_persistent p;
    uint32_t end[2], first = r->made;
    end[0] = r->words.eos;
    end[1] = r->words.eot;
    memcpy(&query, &symbol, sizeof symbol);
    if (tokens == first) return 0;
    if (llama_persistent_open(&r->model, &p, tokens - first, end, 2, why)) return 1;
    bad = llama_persistent_take_up(&r->model, &p, tokens - first, r->stream, why)
          || llama_persistent_launch(&r->model, &p, r->stream, why);
    while (!bad && !over) {
        struct timespec pause = {0, 100000};
        uint32_t written;
        over = *(volatile uint32_t *)&p.state->status != PTXK_DECODER_RUNS; /* before the last look */
        if (!over && seconds() - last > PATIENCE) {
            over = !query || query(r->stream) != NOT_READY;
            last = seconds();
        }
        written = *(volatile uint32_t *)&p.state->written[0];
        while (r->made - first < written && r->made < tokens) {
            uint32_t token = *(volatile uint32_t *)&p.tokens[r->made - first];
            last = seconds();
            note(r, start);
            if (ends(r, token)) {
                over = 1;
                break;
            }
            show_token(r, token);
        }
        if (lost()) *(volatile uint32_t *)p.stop = 1;
        if (!over) nanosleep(&pause, NULL);
    }
    bad = bad || llama_persistent_end(&r->model, &p, r->stream, why);
    llama_persistent_close(&r->model, &p);
    return bad;
}

/* The prompt, the first token behind it, then the others. */
static int generate_all(run *r, const options *o, gguf_error *why) {
    double start = seconds();
    if (llama_prompt(&r->model, reading, r->stream, why)
        || llama_cuda(&r->model, ptxcu_download(r->cu, r->host, r->model.step.tokens, 0, 4, r->stream), why)
        || llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why))
        return 1;
    note(r, start);
    show(o->prompt, strlen(o->prompt), &r->held); /* behind the line that progress has written over */
    if (ends(r, r->host[0])) return 0;
    show_token(r, r->host[0]);
    if (lost()) return 0;
    return o->persistent ? generate_persistent(r, o->tokens, start, why) : generate(r, o->tokens, start, why);
}

static void report(const run *r, uint32_t prompt) {
    const ptxcu_device *d = ptxcu_device_info(r->cu);
    double bytes = (double)r->model.weight_bytes;
    double bandwidth = 2e3 * d->memory_clock_khz * (d->memory_bus_bits / 8.0); /* two transfers a clock */
    /* behind the first token, unless all were first seen at the end */
    int timed = r->made > 1 && r->seconds > 1e-3 * r->prompt_seconds;
    double rate = timed ? (r->made - 1) / r->seconds : 0;
    fprintf(stderr, "%s%s\n", d->name, d->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "");
    fprintf(stderr, "%u tokens of prompt and the first of text in %.2f s, %.0f a second; ", (unsigned)prompt,
            r->prompt_seconds, prompt / r->prompt_seconds);
    fprintf(stderr, "%u tokens written in %.2f s", (unsigned)r->made, r->prompt_seconds + r->seconds);
    if (timed) fprintf(stderr, ", %.1f a second behind the first", rate);
    fprintf(stderr, "%s\n",
            d->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    fprintf(stderr, "%.3f MB of weights a token", 1e-6 * bytes);
    if (!d->is_cpu_driver && bandwidth > 0 && timed)
        fprintf(stderr, ": %.1f GB/s, %.3f of the device's %.0f GB/s", 1e-9 * bytes * rate,
                bytes * rate / bandwidth, 1e-9 * bandwidth);
    fprintf(stderr, "\n");
}

/* Opens the device and the model, and writes. tokens: of the prompt, in room for all positions. */
static int write_text(run *r, options *o, const gguf *g, FILE *file, uint32_t *tokens, uint32_t prompt,
                      gguf_error *why) {
    ptxcu_desc desc = PTX_ZERO;
    void *host;
    int bad;
    desc.dependent_launch = !o->serial;
    if (ptxcu_open(&r->cu, &desc)) {
        fprintf(stderr, "generate: %s\n", ptxcu_get_error(r->cu)->message);
        return 1;
    }
    if (llama_open(&r->model, r->cu, g, file, &o->llama, loading, why)) return bad_file(o->model, why);
    bad = llama_cuda(&r->model, ptxcu_stream_create(r->cu, &r->stream), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[0]), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[1]), why)
          || llama_cuda(&r->model, ptxcu_host_alloc(r->cu, 4ull * o->tokens, &host), why)
          || llama_begin(&r->model, tokens, &prompt, r->stream, why)
          || (o->graph && llama_record(&r->model, r->stream, why));
    if (!bad) {
        r->host = (uint32_t *)host;
        bad = generate_all(r, o, why);
        show("\n", 1, &r->held); /* in front of what goes to standard error */
    }
    if (bad)
        bad_file(o->model, why);
    else if (lost())
        bad = 1, refuse("standard output", "cannot be written");
    else
        report(r, prompt);
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
    if (o->llama.max_seq > c->context)
        fprintf(stderr, "generate: --context %lu: the model has %lu positions, which are taken\n",
                (unsigned long)o->llama.max_seq, (unsigned long)c->context);
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
        gguf_fail(&why, gguf_place(&g, "tokenizer.ggml.tokens"),
                  "%u tokens, and 'token_embd.weight' has %u rows", (unsigned)r.words.count,
                  (unsigned)config.vocab);
        bad_file(o.model, &why);
    } else {
        size_t bytes = strlen(o.prompt), room = tokeniser_room(bytes);
        tokens = (uint32_t *)malloc(room * sizeof *tokens);
        r.piece = (char *)malloc(r.words.longest + 1);
        r.alone = !bytes;
        prompt = tokens && r.piece ? tokeniser_encode(&r.words, o.prompt, bytes, tokens) : SIZE_MAX;
        if (prompt == SIZE_MAX)
            refuse("prompt", "no memory");
        else if (prompt == 0)
            refuse("prompt", "is empty, and the model has no token for a beginning");
        else if (fit(&o, &config, prompt))
            failed = write_text(&r, &o, &g, file, tokens, (uint32_t)prompt, &why);
    }
    free(tokens);
    free(r.piece);
    ptxcu_close(r.cu);
    tokeniser_free(&r.words);
    gguf_free(&g);
    fclose(file);
    return failed;
}
