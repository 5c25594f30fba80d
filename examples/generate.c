/* generate - a language model writes text: reads a GGUF file, continues a prompt, or answers in a chat.
   cc -O2 examples/generate.c -o generate -ldl -lm

     generate MODEL.gguf "Once upon a time" [--tokens 128] [--temperature 0.8] [--seed 1] [--top-k 40]
              [--top-p 0.95] [--stop "text"] [--graph | --persistent | --draft SMALL.gguf] [--context 2048]
              [--batch 512] [--page-size 64] [--cache q8_0] [--serial] [--progress] [--help]
     generate MODEL.gguf --chat ["first message"] [--system "text"] [--template chatml]
     generate MODEL.gguf --prompts FILE [--sequences 8] [--chat]

   Models of the architectures in the table of models.h (llama, qwen, gemma, phi, ...), their matrices in the
   types that LLAMA_FORMATS lists there, their tokeniser in the file. --temperature 0, the default, takes
   the likeliest token; --graph makes each token one launch of a graph, --persistent all tokens behind the
   first one launch of one kernel; with --draft a smaller model of the same tokens guesses some, and one step
   verifies them, with --draft-width also other guesses for the first of them. The prompt is fed --batch
   tokens at a time: each time the weights are read once. --page-size keeps keys and values in pages, --cache
   q8_0 or e4m3 in 8 bits each.

   --chat writes messages as the file's own template has them, where that is one of those in chat.h; further
   messages are the lines of standard input. --stop ends the text before such words. --prompts takes a prompt
   from each line of a file (\n: a new line, \\: a backslash), --sequences of them in one step; what these
   begin with is fed and read once for all.

   Several GPUs share a model that is too large for one: each is a process (ranks.h), started by mpirun -n 2
   generate ..., by torchrun --nproc-per-node 2 --no-python generate ..., or by hand with RANK=0 WORLD_SIZE=2,
   RANK=1 WORLD_SIZE=2. They need NCCL; rank 0 reads and writes for all.

   The text goes to standard output as it comes; tokens per second of the prompt and of the text, the bytes of
   weights that a token reads, and what fraction of the device's bandwidth that is, to standard error. Runs on
   the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./generate tests/model/fables.gguf "Once upon a time" */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "llama.h"
#include "tokeniser.h"
#include "chat.h"
#include "example.h"

/* -- options -- */

typedef struct options {
    const char *model, *prompt, *system, *template_name, *draft, *prompts;
    llama_options llama;
    uint32_t tokens, draft_tokens, draft_width, sequences;
    text_list stop;
    int graph, persistent, chat, progress, serial;
} options;

static const char no_prompt[] = "";

static int parse(options *o, int argc, char **argv) {
    const char *names[2] = {NULL, no_prompt};
    char templates[300];
    uint32_t i;
    const option table[] = {
        {"tokens", OPTION_U32, &o->tokens, 1, 1e9, NULL, "tokens to write at most"},
        {"temperature", OPTION_F32, &o->llama.temperature, 0, 100, NULL, "0: takes the likeliest token"},
        {"seed", OPTION_U64, &o->llama.seed, 0, 9007199254740991.0, NULL, "of drawn tokens"},
        {"top-k", OPTION_U32, &o->llama.top_k, 0, 1e9, NULL, "draws from the k likeliest; 0: from all"},
        {"top-p", OPTION_F32, &o->llama.top_p, 0, 1, NULL,
         "draws from the likeliest of this probability in all; 0: from all"},
        {"stop", OPTION_TEXTS, &o->stop, 0, 0, NULL, "ends before this text; up to 16 of them"},
        {"context", OPTION_U32, &o->llama.max_seq, 0, 1e9, NULL, "positions at most; 0: as the model has"},
        {"batch", OPTION_U32, &o->llama.prompt_tokens, 1, LLAMA_PROMPT_MAX, NULL,
         "tokens of the prompt that are fed at a time"},
        {"page-size", OPTION_U32, &o->llama.page_size, 0, 65536, NULL,
         "positions of a page of keys and values, a power of two from 16; 0: no pages"},
        {"cache", OPTION_CHOICE, &o->llama.kv_type, 0, 0, "f16|q8_0|e4m3", "numbers of keys and values"},
        {"graph", OPTION_FLAG, &o->graph, 0, 0, NULL, "each token is one launch of a graph"},
        {"persistent", OPTION_FLAG, &o->persistent, 0, 0, NULL, "all tokens are one launch of one kernel"},
        {"chat", OPTION_FLAG, &o->chat, 0, 0, NULL, "prompts are messages; more come from standard input"},
        {"system", OPTION_TEXT, &o->system, 0, 0, NULL, "the system's message in a chat"},
        {"template", OPTION_TEXT, &o->template_name, 0, 0, NULL, "the chat's, instead of the file's"},
        {"draft", OPTION_TEXT, &o->draft, 0, 0, NULL, "a smaller model whose guesses are verified"},
        {"draft-tokens", OPTION_U32, &o->draft_tokens, 0, LLAMA_DRAFTS - 1, NULL, "guesses in a step; 0: 4"},
        {"draft-width", OPTION_U32, &o->draft_width, 0, 4, NULL,
         "guesses for the first of these tokens; 0: 1"},
        {"prompts", OPTION_TEXT, &o->prompts, 0, 0, NULL, "a file with a prompt in each line"},
        {"sequences", OPTION_U32, &o->sequences, 0, LLAMA_SEQUENCES, NULL,
         "prompts of the file in a step; 0: 8"},
        {"progress", OPTION_FLAG, &o->progress, 0, 0, NULL, "told even where standard error is no terminal"},
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
    if (o->draft_tokens && !o->draft) return refuse_option(&line, "draft-tokens", "goes with --draft");
    if (o->sequences && !o->prompts) return refuse_option(&line, "sequences", "goes with --prompts");
    if (o->draft_width && !o->draft) return refuse_option(&line, "draft-width", "goes with --draft");
    if (!o->draft_tokens) o->draft_tokens = 4;
    if (!o->draft_width) o->draft_width = 1;
    if (o->draft_tokens + o->draft_width > LLAMA_DRAFTS)
        return refuse_option(&line, "draft-width", "and --draft-tokens are 8 together at most");
    if (!o->sequences) o->sequences = LLAMA_SEQUENCES;
    if (o->prompt == no_prompt && !o->chat && !o->prompts) return refuse_option(&line, line.names, "needed");
    if (o->prompts && o->prompt != no_prompt) return refuse_option(&line, "prompts", "beside a prompt");
    if (o->template_name && !chat_find(o->template_name)) {
        char message[400];
        snprintf(message, sizeof message, "'%.40s' is none of %s", o->template_name, chat_names(templates));
        return refuse_option(&line, "template", message);
    }
    if ((o->template_name || o->system) && !o->chat)
        return refuse_option(&line, o->system ? "system" : "template", "goes with --chat");
    if (o->llama.kv_type && o->persistent)
        return refuse_option(&line, "--cache --persistent", "the persistent kernel takes caches of f16");
    o->llama.kv_type = o->llama.kv_type == 0   ? (uint32_t)PTX_F16
                       : o->llama.kv_type == 1 ? (uint32_t)PTXK_Q8_0
                                               : (uint32_t)PTX_E4M3;
    for (i = 0; i < o->stop.count; i++)
        if (!*o->stop.at[i]) return refuse_option(&line, "stop", "an empty text is everywhere");
    if (o->llama.page_size && (o->llama.page_size < 16 || o->llama.page_size & (o->llama.page_size - 1)))
        return refuse_option(&line, "page-size", "must be 0 or a power of two from 16 to 65536");
    if (o->llama.page_size && o->persistent)
        return refuse_option(&line, "--page-size --persistent", "the persistent kernel takes no pages");
    if (o->persistent && o->prompts)
        return refuse_option(&line, "--prompts --persistent", "prompts of a file go by steps");
    if (o->draft && (o->prompts || o->graph || o->persistent))
        return refuse_option(&line, "draft", "beside --graph, --persistent or --prompts");
    return !(o->graph && o->persistent) || refuse_option(&line, "--graph --persistent", "one of the two");
}

/* The ranks, mostly one. Before they compute, rank 0 says what is wrong with any of them: others keep it. */
static ranks_group world;
static char problem[RANKS_TEXT];
static int computing;

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void
tell(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(problem, sizeof problem, format, list);
    va_end(list);
    if (!world.rank)
        fprintf(stderr, "generate: %s\n", problem);
    else if (computing)
        fprintf(stderr, "generate: rank %u: %s\n", (unsigned)world.rank, problem);
}

static int refuse(const char *what, const char *why) {
    tell("%s: %s", what, why);
    return 0;
}

/* What can be wrong with a model's file, with its place. */
static int bad_file(const char *path, const gguf_error *why) {
    if (why->offset != GGUF_NOWHERE)
        tell("%s: at byte %llu: %s", path, (unsigned long long)why->offset, why->text);
    else
        tell("%s: %s", path, why->text);
    return 1;
}

/* Whether all ranks go on; this one does unless it has failed. */
static int all_fine(int failed) {
    if (world.failed || (world.count == 1 && failed)) return 0;
    if (!ranks_agree(&world, failed ? problem : NULL)) return 1;
    if (!world.rank && !failed) tell("%s", world.error);
    return 0;
}

/* A number of some bytes, behind that of others: FNV-1a. */
static uint64_t digest(uint64_t before, const void *data, size_t bytes) {
    const unsigned char *at = (const unsigned char *)data;
    while (bytes--) before = (before ^ *at++) * 1099511628211ull;
    return before;
}

/* Several ranks compute one thing: whether this one, too, has failed, or has `what`, by its number, unlike
   rank 0. All ranks call it, those that have failed as well. */
static int check_alike(int failed, const char *what, uint64_t number) {
    uint64_t first = number;
    if (world.count == 1) return failed;
    if (ranks_share(&world, &first, sizeof first)) {
        if (!failed) tell("%s", world.error);
        return 1;
    }
    if (failed || first == number) return failed;
    return !refuse(what, "not that of rank 0; all ranks need the same command line and the same files");
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int shows_progress(const options *o) { return !world.rank && (o->progress || isatty(2)); }

/* How much of the model has been loaded. */
static void loading(uint64_t done, uint64_t of) {
    static progress p = {"loading", 0, 0};
    show_progress(&p, done, of);
}

/* How much of the prompt has been fed. */
static void reading(uint64_t done, uint64_t of) {
    static progress p = {"reading the prompt", 0, 0};
    if (!done) p.begun = 0;
    show_progress(&p, done, of);
}

/* -- text as it comes -- */

/* The text of one sequence: what has come, and how much of that has been shown. */
typedef struct text {
    char *at;
    size_t bytes, room, shown;
    int held; /* see show */
} text;

/* A file may hold anything: what could steer a terminal is not passed on. The controls beyond ASCII are two
   bytes in UTF-8, of which the first may end a token and the second begin the next: it waits in *held. */
static void show(const char *at, size_t bytes, int *held) {
    size_t i;
    for (i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)at[i];
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

/* Nobody takes the text any more: a full disk, or a pipe whose reader has gone where SIGPIPE is ignored. Of
   several ranks, which have to end at one token, the first goes on. */
static int lost(void) { return world.count == 1 && ferror(stdout) != 0; }

/* Where the first stop word begins in what has come since `from`, or SIZE_MAX. *safe: how much can be no part
   of one, whatever comes. */
static size_t find_stop(const text_list *stop, const text *t, size_t from, size_t *safe) {
    size_t found = SIZE_MAX, i, n;
    uint32_t w;
    *safe = t->bytes;
    for (w = 0; w < stop->count; w++) {
        size_t length = strlen(stop->at[w]);
        for (i = length && from > length ? from - length : 0; length && i < t->bytes; i++) {
            n = t->bytes - i < length ? t->bytes - i : length;
            if (memcmp(t->at + i, stop->at[w], n)) continue;
            if (n == length && i < found) found = i;
            if (i < *safe) *safe = i;
            break;
        }
    }
    return found;
}

/* -- a run -- */

typedef struct run {
    const options *o;
    llama model, draft;
    tokeniser words;
    const chat_template *chat;
    ptxcu *cu;
    ptxcu_stream stream;
    ptxcu_event event[2];
    uint32_t *host;    /* pinned: the tokens, as they come */
    uint32_t *history; /* [max_seq]: all tokens so far */
    uint32_t positions;        /* most that the models have, ... */
    const char *positions_of;  /* ... and whose file says so */
    float *logits;     /* [vocab], of the smaller model, where it makes alternatives */
    uint32_t length;   /* of those */
    char *piece;       /* room for the text of any token */
    text text;
    uint32_t end[4], ends;
    int alone;                      /* there is no prompt: the text does not begin with a space */
    int over;                       /* an end token, a stop word */
    uint32_t made, prompt;          /* tokens, of all messages */
    uint32_t drafted, taken;        /* guesses, and how many were right */
    double prompt_seconds, seconds; /* to the first token of each message; from there on */
} run;

static int is_end(const run *r, uint32_t token) {
    uint32_t i;
    for (i = 0; i < r->ends; i++)
        if (token == r->end[i]) return 1;
    return 0;
}

static void add_end(run *r, uint32_t token) {
    if (token != TOKEN_NONE && !is_end(r, token)) r->end[r->ends++] = token;
}

/* Adds the text of a token, and shows what is no part of a stop word. Returns 0 without memory. */
static int add_text(const run *r, text *t, uint32_t token, int first, int shown, int *stopped) {
    size_t n, from = t->bytes, safe, found;
    if (t->bytes + r->words.longest + 1 > t->room) {
        size_t room = 2 * t->room + r->words.longest + 256;
        char *more = (char *)realloc(t->at, room);
        if (!more) return 0;
        t->at = more;
        t->room = room;
    }
    n = tokeniser_piece(&r->words, token, first, t->at + t->bytes, r->words.longest);
    t->bytes += n;
    found = find_stop(&r->o->stop, t, from, &safe);
    if (found != SIZE_MAX) t->bytes = safe = found, *stopped = 1;
    if (shown && safe > t->shown) show(t->at + t->shown, safe - t->shown, &t->held), t->shown = safe;
    return 1;
}

/* Takes a token that has come: keeps it, and shows it unless it ends the text. */
static void take_token(run *r, uint32_t token) {
    r->history[r->length++] = token;
    if (is_end(r, token)) {
        r->over = 1;
        return;
    }
    if (!add_text(r, &r->text, token, r->alone && !r->text.bytes, 1, &r->over)) r->over = 1;
    r->made++;
    if (lost()) r->over = 1;
}

/* Shows what was held back. */
static void end_text(run *r) {
    text *t = &r->text;
    if (t->bytes > t->shown) show(t->at + t->shown, t->bytes - t->shown, &t->held);
    show("\n", 1, &t->held); /* in front of what goes to standard error */
    t->bytes = t->shown = 0;
}

/* Notes the seconds to the first token of a message, or from there to the last. */
static void note(run *r, double start, double *first) {
    double now = seconds();
    if (*first > 0)
        r->seconds += now - *first;
    else
        r->prompt_seconds += now - start;
    *first = now;
}

/* One token after the other, behind the first. The launches of a token are queued before the one before it is
   waited for and shown, so the device does not wait for the host. */
static int generate(run *r, uint32_t tokens, double *first, gguf_error *why) {
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
        note(r, 0, first);
        take_token(r, r->host[i - 1]);
        if (r->over) break;
    }
    return llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why);
}

/* Adds the likeliest tokens but one to n guesses, so that there are `to`. */
static void add_alternatives(const run *r, uint32_t but, uint32_t *guess, uint32_t n, uint32_t to) {
    uint32_t first = n, i, j, best;
    for (; n < to; n++) {
        for (i = 0, best = UINT32_MAX; i < r->draft.config.vocab; i++) {
            for (j = first; j < n && guess[j] != i;) j++;
            if (i != but && j == n && (best == UINT32_MAX || r->logits[i] > r->logits[best])) best = i;
        }
        guess[n] = best == UINT32_MAX ? but : best;
    }
}

/* The same by guesses of the smaller model, which stands where the larger one does: it takes a step for each
   guess and one more, so that its caches hold all guesses, should all be right. Of the first token that is
   not known there may be several guesses. Where one of these alternatives is right, what follows it is known,
   and is guessed with it in the next step: keys and values of the two then lie where they belong. */
static int generate_drafted(run *r, uint32_t tokens, double *first, gguf_error *why) {
    uint32_t made = 1, i, n, rows, guess[LLAMA_DRAFTS], parent[LLAMA_DRAFTS], line[LLAMA_DRAFTS];
    uint32_t gained, known = 0, wide = r->o->draft_width - 1, sure[LLAMA_DRAFTS];
    while (made < tokens && !r->over) {
        n = r->o->draft_tokens + 1 < tokens - made ? r->o->draft_tokens + 1 : tokens - made;
        if (n < 2) /* the smaller model takes the token, too: the next message goes on behind it */
            return llama_step(&r->draft, 1, r->stream, why) || generate(r, 2, first, why);
        if (known > n - 1) known = n - 1;
        for (i = 0; i < n; i++) {
            if (llama_step(&r->draft, 1, r->stream, why)
                || llama_cuda(&r->model,
                              ptxcu_download(r->cu, &r->host[i], r->draft.step.tokens, 0, 4, r->stream), why)
                || (wide && i == known
                    && llama_cuda(&r->model,
                                  ptxcu_download(r->cu, r->logits, r->draft.step.logits, 0,
                                                 r->draft.step.logits.bytes, r->stream),
                                  why))
                || llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why))
                return 1;
            if (i >= known) continue;
            r->host[i] = sure[i];
            if (llama_set_state(&r->draft, 0, sure[i], r->length + i, r->stream, why)) return 1;
        }
        memcpy(guess, r->host, (n - 1) * sizeof *guess);
        for (i = 0; i + 1 < n; i++) parent[i] = i;
        rows = known < n - 1 && n + wide <= tokens - made ? n + wide : n;
        for (i = n; i < rows; i++) parent[i - 1] = known;
        if (rows > n) add_alternatives(r, guess[known], guess, n - 1, rows - 1);
        if (llama_verify_tree(&r->model, guess, rows > n ? parent : NULL, rows, line, &gained, &i, NULL,
                              r->stream, why))
            return 1;
        note(r, 0, first);
        r->drafted += n - 1 - known;
        r->taken += gained + i - 1 > known ? gained + i - 1 - known : 0;
        made += gained;
        known = i;
        for (i = 0; i < known; i++) sure[i] = line[gained + i];
        for (i = 0; i < gained && !r->over; i++) take_token(r, line[i]);
        if (!r->over && llama_set_state(&r->draft, 0, line[gained - 1], r->length - 1, r->stream, why))
            return 1;
    }
    return 0;
}

/* All tokens behind the first in one launch, shown as they come: the device writes them, how many there are,
   and that it has ended, into host memory. A launch that fails says nothing there: where nothing comes for
   long, the driver is asked (cuStreamQuery). */
static int generate_persistent(run *r, uint32_t tokens, double *first, gguf_error *why) {
    enum { NOT_READY = 600, PATIENCE = 30 };
    int (*query)(void *) = NULL, over = 0, bad;
    void *symbol = ptxcu_symbol(r->cu, "cuStreamQuery");
    double last = seconds();
    llama_persistent p;
    uint32_t seen = 0;
    memcpy(&query, &symbol, sizeof symbol);
    if (tokens == 1) return 0;
    if (llama_persistent_open(&r->model, &p, tokens - 1, r->end, r->ends, why)) return 1;
    bad = llama_persistent_resume(&r->model, &p, tokens - 1, r->stream, why)
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
        while (seen < written && !r->over) {
            uint32_t token = *(volatile uint32_t *)&p.tokens[seen++];
            last = seconds();
            note(r, 0, first);
            take_token(r, token);
        }
        if (r->over) *(volatile uint32_t *)p.stop = 1;
        if (!over) nanosleep(&pause, NULL);
    }
    bad = bad || llama_persistent_end(&r->model, &p, r->stream, why);
    llama_persistent_close(&r->model, &p);
    return bad;
}

/* Feeds what the history holds past `kept` tokens, then writes up to `tokens` more. */
static int answer(run *r, uint32_t kept, uint32_t tokens, gguf_error *why) {
    const options *o = r->o;
    double start = seconds(), first = 0;
    r->over = 0;
    if (llama_resume(&r->model, r->history, &r->length, &kept, r->stream, why)
        || llama_prompt(&r->model, shows_progress(o) ? reading : NULL, r->stream, why)
        || (o->draft
            && (llama_resume(&r->draft, r->history, &r->length, &kept, r->stream, why)
                || llama_prompt(&r->draft, NULL, r->stream, why)))
        || llama_cuda(&r->model, ptxcu_download(r->cu, r->host, r->model.step.tokens, 0, 4, r->stream), why)
        || llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why))
        return 1;
    r->prompt += r->length - kept;
    note(r, start, &first);
    if (!o->chat) show(o->prompt, strlen(o->prompt), &r->text.held); /* behind the line of progress */
    take_token(r, r->host[0]);
    if (r->over) return 0;
    if (o->draft)
        return llama_set_state(&r->draft, 0, r->host[0], r->length - 1, r->stream, why)
               || generate_drafted(r, tokens, &first, why);
    return o->persistent ? generate_persistent(r, tokens, &first, why) : generate(r, tokens, &first, why);
}

/* Where the prompt comes from, for messages. */
static char source[400] = "prompt";

/* Tokens of a text, in an array to be freed, *count of them; NULL after a message. */
static uint32_t *encode(const run *r, const char *at, size_t bytes, const char *marks, uint32_t *count) {
    uint32_t *tokens = (uint32_t *)malloc(tokeniser_room(bytes) * sizeof *tokens);
    size_t n = tokens ? tokeniser_encode_marked(&r->words, at, bytes, marks, tokens) : SIZE_MAX;
    if (n == SIZE_MAX || n > UINT32_MAX)
        refuse(source, "no memory");
    else if (n == 0)
        refuse(source, "is empty, and the model has no token for a beginning");
    else {
        *count = (uint32_t)n;
        return tokens;
    }
    free(tokens);
    return NULL;
}

/* Tokens of a prompt, or of a message of a chat; first 0: behind an answer. NULL after a message. */
static uint32_t *encode_message(run *r, const char *message, int first, uint32_t *count) {
    chat_text c;
    uint32_t *tokens = NULL;
    int begins = r->words.add_bos;
    memset(&c, 0, sizeof c);
    c.words = &r->words;
    if (!r->chat) return encode(r, message, strlen(message), NULL, count);
    if (!first) {
        uint32_t *last = &r->history[r->length - 1]; /* chosen, not fed */
        r->words.add_bos = 0;
        chat_close(&c, r->chat, !is_end(r, *last), last);
    }
    chat_ask(&c, r->chat, first, r->o->system, message);
    if (c.failed)
        refuse(source, "no memory");
    else
        tokens = encode(r, c.text, c.bytes, c.marks, count);
    r->words.add_bos = begins;
    chat_free(&c);
    return tokens;
}

/* A line of a file without its end, to be freed; NULL: there is none, or *bad after a message. */
static char *read_line(FILE *file, int *bad) {
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, file);
    if (n >= 0 && memchr(line, 0, (size_t)n)) *bad = 2, refuse(source, "holds a NUL");
    if (n < 0 || *bad) {
        free(line);
        return NULL;
    }
    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
    return line;
}

/* A line of standard input, which rank 0 reads for all; as read_line(). */
static char *read_message(int *bad) {
    static unsigned long lines;
    char *line;
    uint64_t bytes;
    snprintf(source, sizeof source, "standard input: line %lu", ++lines);
    line = world.rank ? NULL : read_line(stdin, bad);
    bytes = line ? strlen(line) + 1 : 0;
    if (world.count == 1) return line;
    if (ranks_share(&world, &bytes, sizeof bytes)) {
        free(line);
        return NULL;
    }
    if (world.rank && bytes) line = (char *)malloc((size_t)bytes);
    if (!line || !ranks_share(&world, line, (size_t)bytes)) return line;
    free(line);
    return NULL;
}

/* The tokens of the next message on standard input, an empty line is none; NULL: there is none, or *bad. */
static uint32_t *next_message(run *r, uint32_t *count, int *bad) {
    uint32_t *tokens = NULL;
    char *line;
    while (!tokens && !*bad && (line = read_message(bad)) != NULL) {
        if (*line) {
            tokens = encode_message(r, line, 0, count);
            *bad = tokens ? 0 : 2;
        }
        free(line);
    }
    return tokens;
}

/* Behind what has too many tokens for the context: what can be done. */
static const char *context_hint(const run *r, uint32_t context) {
    static char hint[300];
    if (context < r->positions)
        snprintf(hint, sizeof hint, "--context goes up to %u", (unsigned)r->positions);
    else
        snprintf(hint, sizeof hint, "%.200s has no more positions", r->positions_of);
    return hint;
}

/* Messages, and an answer to each: `tokens`, to be freed here, are those of the first. Returns 1 with *why, 2
   after a message. */
static int converse(run *r, uint32_t *tokens, uint32_t count, gguf_error *why) {
    uint32_t kept = 0, limit = r->model.options.max_seq, left;
    int bad = 0;
    while (!bad && tokens) {
        if (count >= limit - r->length) {
            tell("the chat has %u tokens, at most %u fit into the context of %u; %s",
                 (unsigned)(r->length + count), (unsigned)limit - 1, (unsigned)limit, context_hint(r, limit));
            bad = 2;
            break;
        }
        memcpy(r->history + r->length, tokens, count * sizeof *tokens);
        r->length += count;
        left = limit - r->length;
        bad = answer(r, kept, r->o->tokens < left ? r->o->tokens : left, why);
        end_text(r);
        free(tokens);
        tokens = NULL;
        kept = r->length - 1; /* the last token has been chosen, not fed */
        if (!bad && r->o->chat && !lost()) tokens = next_message(r, &count, &bad);
    }
    free(tokens);
    return bad;
}

/* -- prompts of a file -- */

/* A prompt of the file, and what became of it. */
typedef struct task {
    char *prompt;
    uint32_t *tokens, count;
    text text;
    uint32_t made;
    int over;
} task;

static void unescape(char *s) {
    char *to = s;
    for (; *s; s++)
        if (s[0] == '\\' && (s[1] == 'n' || s[1] == '\\'))
            *to++ = *++s == 'n' ? '\n' : '\\';
        else
            *to++ = *s;
    *to = 0;
}

/* All prompts of the file, with their tokens; NULL after a message. */
static task *read_tasks(run *r, const char *path, uint32_t *count) {
    FILE *file = fopen(path, "r");
    task *tasks = NULL;
    char *line;
    int bad = 0;
    *count = 0;
    if (!file) return refuse(path, strerror(errno)), NULL;
    for (;;) {
        snprintf(source, sizeof source, "%.300s: line %lu", path, *count + 1ul);
        if (bad || (line = read_line(file, &bad)) == NULL) break;
        task *more = (task *)realloc(tasks, (*count + 1ull) * sizeof *tasks), *one;
        if (!more) {
            bad = 1, refuse(path, "no memory");
            free(line);
            break;
        }
        tasks = more;
        one = &tasks[(*count)++];
        memset(one, 0, sizeof *one);
        unescape(line);
        one->prompt = line;
        one->tokens = encode_message(r, line, 1, &one->count);
        bad = !one->tokens;
    }
    if (!bad && ferror(file)) bad = 1, refuse(path, strerror(errno));
    fclose(file);
    if (!bad && !*count) bad = 1, refuse(path, "has no lines");
    if (!bad) return tasks;
    for (; *count; (*count)--) free(tasks[*count - 1].prompt), free(tasks[*count - 1].tokens);
    free(tasks);
    return NULL;
}

/* What a step has chosen for the tasks of a group. Returns whether one of them goes on. */
static int take_tokens(run *r, task *group, uint32_t count, uint32_t tokens) {
    uint32_t b, going = 0;
    for (b = 0; b < count; b++) {
        task *t = &group[b];
        if (t->over || t->made == tokens) continue;
        if (is_end(r, r->host[b])) {
            t->over = 1;
        } else {
            int first = !t->text.bytes && (r->chat || !*t->prompt);
            if (!add_text(r, &t->text, r->host[b], first, 0, &t->over)) t->over = 1;
            t->made++, r->made++;
        }
        going += !t->over && t->made < tokens;
    }
    return going > 0;
}

/* How many tokens all prompts of a group begin with, the last of each apart. */
static uint32_t common_prefix(const task *group, uint32_t count) {
    uint32_t n = group->count - 1, b, i;
    for (b = 1; b < count; b++) {
        if (group[b].count - 1 < n) n = group[b].count - 1;
        for (i = 0; i < n && group[b].tokens[i] == group->tokens[i];) i++;
        n = i;
    }
    return n;
}

/* A group of prompts side by side; sequences past them write for nobody. */
static int write_group(run *r, task *group, uint32_t count, uint32_t *prompts, gguf_error *why) {
    uint32_t batch = r->model.options.batch, limit = r->model.options.max_seq, b, lengths[LLAMA_SEQUENCES];
    uint32_t longest = 0, tokens = r->o->tokens, shared;
    double start = seconds(), first = 0;
    int going;
    shared = count > 1 ? llama_can_share(&r->model, common_prefix(group, count)) : 0;
    for (b = 0; b < batch; b++) {
        const task *t = &group[b < count ? b : 0];
        lengths[b] = b < count ? t->count : shared + 1;
        memcpy(prompts + (size_t)b * limit, t->tokens, lengths[b] * sizeof *prompts);
        if (lengths[b] > longest) longest = lengths[b];
        if (b < count) r->prompt += lengths[b];
    }
    if (tokens > limit - longest) tokens = limit - longest;
    if (llama_begin(&r->model, prompts, lengths, r->stream, why)
        || llama_share_prefix(&r->model, shared, r->stream, why)
        || llama_prompt(&r->model, shows_progress(r->o) ? reading : NULL, r->stream, why))
        return 1;
    for (going = 1; going;) {
        if (first > 0 && llama_step(&r->model, 1, r->stream, why)) return 1;
        if (llama_cuda(&r->model,
                       ptxcu_download(r->cu, r->host, r->model.step.tokens, 0, batch * 4u, r->stream), why)
            || llama_cuda(&r->model, ptxcu_stream_sync(r->cu, r->stream), why))
            return 1;
        note(r, start, &first);
        going = take_tokens(r, group, count, tokens);
    }
    for (b = 0; b < count; b++) {
        task *t = &group[b];
        if (!r->chat) show(t->prompt, strlen(t->prompt), &t->text.held);
        show(t->text.at ? t->text.at : "", t->text.bytes, &t->text.held);
        show("\n\n", 2, &t->text.held);
    }
    return 0;
}

static int write_tasks(run *r, task *tasks, uint32_t count, gguf_error *why) {
    uint32_t batch = r->model.options.batch, at;
    uint32_t *prompts = (uint32_t *)calloc((size_t)batch * r->model.options.max_seq, sizeof *prompts);
    int bad = prompts ? 0 : gguf_fail(why, GGUF_NOWHERE, "no memory");
    for (at = 0; !bad && at < count && !lost(); at += batch)
        bad = write_group(r, tasks + at, count - at < batch ? count - at : batch, prompts, why);
    free(prompts);
    return bad;
}

/* -- all together -- */

/* What each rank holds. */
static void report_ranks(const run *r) {
    uint64_t own[2], all[2 * RANKS_MAX];
    uint32_t i, what;
    own[0] = r->model.weights.bytes;
    own[1] = r->model.caches.bytes;
    if (world.count == 1 || ranks_collect(&world, own, sizeof own, all) || world.rank) return;
    fprintf(stderr, "%u ranks; MB in each:", (unsigned)world.count);
    for (what = 0; what < 2; what++) {
        fprintf(stderr, what ? "; keys and values" : " weights");
        for (i = 0; i < world.count; i++) fprintf(stderr, " %.3f", 1e-6 * (double)all[2 * i + what]);
    }
    fprintf(stderr, "\n");
}

static void report(const run *r) {
    const ptxcu_device *d = ptxcu_device_info(r->cu);
    double bytes = (double)r->model.weight_bytes;
    double bandwidth = 2e3 * d->memory_clock_khz * (d->memory_bus_bits / 8.0); /* two transfers a clock */
    /* behind the first token, unless all were first seen at the end */
    int timed = r->made > 1 && r->seconds > 1e-3 * r->prompt_seconds;
    double rate = timed ? (r->made - 1) / r->seconds : 0;
    fprintf(stderr, "%s%s\n", d->name, d->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "");
    fprintf(stderr, "%u tokens of prompt and the first of text in %.2f s, %.0f a second; ",
            (unsigned)r->prompt, r->prompt_seconds, r->prompt / r->prompt_seconds);
    fprintf(stderr, "%u tokens written in %.2f s", (unsigned)r->made, r->prompt_seconds + r->seconds);
    if (timed) fprintf(stderr, ", %.1f a second behind the first", rate);
    fprintf(stderr, "%s\n",
            d->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    if (r->drafted)
        fprintf(stderr, "%u of %u guesses were right\n", (unsigned)r->taken, (unsigned)r->drafted);
    fprintf(stderr, "%.3f MB of weights a token", 1e-6 * bytes);
    if (!d->is_cpu_driver && bandwidth > 0 && timed && !r->drafted && r->model.options.batch == 1)
        fprintf(stderr, ": %.1f GB/s, %.3f of the device's %.0f GB/s", 1e-9 * bytes * rate,
                bytes * rate / bandwidth, 1e-9 * bandwidth);
    fprintf(stderr, "\n");
}

/* A model's file, and what its head says. */
typedef struct model_file {
    const char *path;
    FILE *file;
    gguf head;
    llama_config config;
} model_file;

/* Returns 0, or the exit status after a message. */
static int open_file(model_file *f, const char *path, gguf_error *why) {
    memset(f, 0, sizeof *f);
    f->path = path;
    f->file = fopen(path, "rb");
    if (!f->file) return refuse(path, strerror(errno)), 2;
    if (gguf_read(&f->head, f->file, why)) {
        fclose(f->file);
        f->file = NULL;
        return bad_file(path, why), 2;
    }
    return llama_read(&f->config, &f->head, why) ? bad_file(path, why) : 0;
}

static void close_file(model_file *f) {
    if (!f->file) return;
    gguf_free(&f->head);
    fclose(f->file);
}

/* Whether the smaller model has the larger one's tokens, and as many rows for them. */
static int same_tokens(const tokeniser *words, uint32_t rows, const model_file *draft, gguf_error *why) {
    tokeniser other;
    uint32_t i;
    if (draft->config.vocab != rows) {
        gguf_fail(why, gguf_tensor_find(&draft->head, "token_embd.weight")->offset,
                  "'token_embd.weight' has %u rows, that of the model for which this one is to guess %u",
                  (unsigned)draft->config.vocab, (unsigned)rows);
        return 0;
    }
    if (tokeniser_read(&other, &draft->head, why)) return 0;
    for (i = 0; i < words->count && i < other.count; i++)
        if (gguf_compare_texts(words->token[i], other.token[i])) break;
    if (i < words->count || i < other.count) {
        gguf_fail(why, gguf_place(&draft->head, "tokenizer.ggml.tokens"),
                  "token %u is another than that of the model for which this one is to guess", (unsigned)i);
        i = UINT32_MAX;
    }
    tokeniser_free(&other);
    return i != UINT32_MAX;
}

/* Opens this rank's device. Where each rank sees only its own, that is number 0. */
static int open_device(ptxcu **cu, int dependent) {
    ptxcu_desc desc = PTX_ZERO;
    int (*count)(int *), devices = 1;
    void *symbol;
    desc.dependent_launch = (uint32_t)dependent;
    if (world.count > 1) desc.device = (int)world.local;
    if (ptxcu_open(cu, &desc) == PTXCU_E_DEVICE && desc.device) {
        ptxcu_close(*cu);
        desc.device = 0;
        ptxcu_open(cu, &desc);
        symbol = ptxcu_symbol(*cu, "cuDeviceGetCount");
        memcpy(&count, &symbol, sizeof symbol);
        if (symbol && !count(&devices) && devices > 1) {
            tell("no device %u, the rank's number on its machine (LOCAL_RANK), of %d: each rank needs one",
                 (unsigned)world.local, devices);
            return 0;
        }
    }
    if (ptxcu_get_error(*cu)->code == PTXCU_E_NONE) return 1;
    tell("%s", ptxcu_get_error(*cu)->message);
    return 0;
}

/* The device, the models, and what else a run needs. Returns 0 after a message. */
static int open_run(run *r, options *o, model_file *f, model_file *draft, gguf_error *why) {
    llama_progress *told = shows_progress(o) ? loading : NULL;
    llama_options d = o->llama;
    void *host = NULL;
    int bad;
    d.temperature = 0;
    if (!open_device(&r->cu, !o->serial)) return 0;
    if (ranks_open(&world, r->cu)) {
        if (!world.rank || !world.failed) tell("%s", world.error);
        return 0;
    }
    if (llama_open(&r->model, r->cu, &f->head, f->file, &o->llama, told, why)) return !bad_file(f->path, why);
    if (draft->file && llama_open(&r->draft, r->cu, &draft->head, draft->file, &d, told, why))
        return !bad_file(draft->path, why);
    r->history = (uint32_t *)malloc((o->llama.max_seq + LLAMA_DRAFTS + 1ull) * sizeof *r->history);
    if (draft->file) r->logits = (float *)malloc((size_t)r->draft.config.vocab * sizeof *r->logits);
    bad = (r->history && (r->logits || !draft->file) ? 0 : gguf_fail(why, GGUF_NOWHERE, "no memory"))
          || llama_cuda(&r->model, ptxcu_stream_create(r->cu, &r->stream), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[0]), why)
          || llama_cuda(&r->model, ptxcu_event_create(r->cu, &r->event[1]), why)
          || llama_cuda(&r->model, ptxcu_host_alloc(r->cu, 4ull * o->tokens + 64, &host), why);
    r->host = (uint32_t *)host;
    return !bad || !bad_file(f->path, why);
}

/* Opens the device and the models, and writes: `tokens` of the first message, freed here, or tasks. */
static int write_text(run *r, options *o, model_file *f, model_file *draft, uint32_t *tokens, uint32_t count,
                      task *tasks, uint32_t task_count, gguf_error *why) {
    int bad = !open_run(r, o, f, draft, why);
    if (!all_fine(bad)) {
        bad = 2;
    } else {
        computing = 1;
        bad = o->graph && llama_record(&r->model, r->stream, why);
        if (!bad) {
            bad = tasks ? write_tasks(r, tasks, task_count, why) : converse(r, tokens, count, why);
            tokens = NULL;
        }
    }
    free(tokens);
    if (bad == 1)
        bad_file(f->path, why);
    else if (lost())
        bad = 1, refuse("standard output", "cannot be written");
    else if (!bad) {
        if (!world.rank) report(r);
        report_ranks(r);
    }
    if (!r->cu) return 1;
    ptxcu_host_free(r->cu, r->host);
    ptxcu_event_destroy(r->cu, r->event[0]);
    ptxcu_event_destroy(r->cu, r->event[1]);
    ptxcu_stream_destroy(r->cu, r->stream);
    llama_close(&r->model);
    if (draft->file) llama_close(&r->draft);
    ranks_close(&world);
    free(r->history);
    free(r->logits);
    return bad != 0;
}

/* How many positions there are to be, and whether the prompt of `count` tokens fits: of a file, the longest
   of its prompts. A chat has what the model has, or 4096. */
static int fit(run *r, options *o, uint64_t count, const task *tasks, uint32_t tasks_count) {
    enum { CHAT = 4096 };
    uint64_t most = o->llama.max_seq && o->llama.max_seq < r->positions ? o->llama.max_seq : r->positions;
    uint32_t line = 0, long_lines = 0, i;
    if (o->llama.max_seq > r->positions && !world.rank)
        fprintf(stderr, "generate: --context %lu: %s has %lu positions, which are taken\n",
                (unsigned long)o->llama.max_seq, r->positions_of, (unsigned long)r->positions);
    for (i = 0; i < tasks_count; i++) {
        if (tasks[i].count > count) count = tasks[i].count, line = i + 1;
        long_lines += tasks[i].count >= most;
    }
    if (count >= most) {
        char place[400] = "";
        if (tasks && long_lines > 1)
            snprintf(place, sizeof place, "%.300s: line %lu, the longest of %lu that are too long: ",
                     o->prompts, (unsigned long)line, (unsigned long)long_lines);
        else if (tasks)
            snprintf(place, sizeof place, "%.300s: line %lu: ", o->prompts, (unsigned long)line);
        tell("%sthe prompt has %llu tokens, at most %llu fit into the context of %llu; %s", place,
             (unsigned long long)count, (unsigned long long)most - 1, (unsigned long long)most,
             context_hint(r, (uint32_t)most));
        return 0;
    }
    if (o->chat && !o->prompts) {
        if (!o->llama.max_seq && most > CHAT && count + o->tokens < CHAT) most = CHAT;
        o->llama.max_seq = (uint32_t)most;
        if (o->tokens > most) o->tokens = (uint32_t)most;
        return 1;
    }
    if (o->tokens > most - count) o->tokens = (uint32_t)(most - count);
    o->llama.max_seq = (uint32_t)(count + o->tokens);
    return 1;
}

/* Whether the model has all its tensors, and ranks can divide it: before the device is opened. */
static int is_whole(const options *o, const model_file *f) {
    gguf_error why;
    llama m;
    if (llama_prepare(&m, &f->head, &o->llama, &why)) return !bad_file(f->path, &why);
    free(m.tensor);
    return 1;
}

/* Whether the model goes with the options: what the kernels would refuse once the weights are loaded. */
static int suits(const options *o, const model_file *f) {
    const llama_config *c = &f->config;
    uint32_t wide = c->latent ? c->rope_dims : c->head_dim, whole;
    char why[200];
    const char *lacks;
    llama m;
    memset(&m, 0, sizeof m);
    m.config = *c;
    m.options = o->llama;
    lacks = o->persistent ? llama_persistent_lacks(&m) : NULL;
    if (lacks) {
        snprintf(why, sizeof why, "the persistent kernel does not have: %s; --graph goes with all models",
                 lacks);
        return refuse("--persistent", why);
    }
    whole = o->llama.kv_type == PTXK_Q8_0 ? 32 : o->llama.kv_type == PTX_E4M3 ? 16 : 1;
    if (wide % whole) {
        snprintf(why, sizeof why, "--cache: %s takes multiples of %u, this model has %s of %u elements%s",
                 whole == 32 ? "q8_0" : "e4m3", (unsigned)whole, c->latent ? "rotated parts" : "heads",
                 (unsigned)wide, wide % 16 ? "" : ", which e4m3 takes");
        return refuse(f->path, why);
    }
    return 1;
}

/* Whether the options' drafts may be a tree in so many positions. */
static int may_branch(const options *o, const llama_config *c) {
    llama m;
    memset(&m, 0, sizeof m);
    m.config = *c;
    m.options = o->llama;
    if (o->draft_width < 2 || llama_can_branch(&m)) return 1;
    return refuse("--draft-width", c->latent ? "the model's attention is to latents"
                                             : "the model's attention has windows, shorter than the context");
}

/* The tokeniser, what ends a text, and the chat's template. Returns 0, or 1 with *why. */
static int read_words(run *r, const options *o, const model_file *f, gguf_error *why) {
    gguf_text token;
    if (tokeniser_read(&r->words, &f->head, why)) return 1;
    if (r->words.count > f->config.vocab)
        return gguf_fail(why, gguf_place(&f->head, "tokenizer.ggml.tokens"),
                         "%u tokens, and 'token_embd.weight' has %u rows", (unsigned)r->words.count,
                         (unsigned)f->config.vocab);
    add_end(r, r->words.eos);
    add_end(r, r->words.eot);
    if (!o->chat) return 0;
    r->chat = o->template_name ? chat_find(o->template_name) : chat_recognise(&f->head, why);
    if (!r->chat) return 1;
    token = chat_missing(r->chat, &r->words);
    if (token.bytes)
        return gguf_fail(why, gguf_place(&f->head, "tokenizer.ggml.tokens"),
                         "chats by the template '%s' need the token '%.*s', which there is not",
                         r->chat->name, gguf_shown(token), token.at);
    add_end(r, chat_end(r->chat, &r->words));
    return 0;
}

/* Reads what there is to write behind, and writes. Returns the exit status. */
static int run_all(run *r, options *o, model_file *f, model_file *draft, gguf_error *why) {
    uint32_t *tokens = NULL, count = 0, i, tasks_count = 0;
    task *tasks = NULL;
    uint64_t number = 0;
    char *line = NULL;
    int failed;
    if (o->prompts) {
        tasks = read_tasks(r, o->prompts, &tasks_count);
        for (i = 0; i < tasks_count; i++)
            number = digest(number ^ tasks[i].count, tasks[i].tokens, tasks[i].count * sizeof *tokens);
        o->llama.batch = tasks_count < o->sequences ? tasks_count : o->sequences;
    } else {
        int bad = 0;
        if (o->prompt == no_prompt) line = read_message(&bad); /* the first message of a chat */
        if (o->prompt == no_prompt && !line && !bad) refuse("standard input", "no message");
        if (o->prompt == no_prompt && !line) return 1;
        tokens = encode_message(r, line ? line : o->prompt, 1, &count);
        r->alone = !*(line ? line : o->prompt) || o->chat;
    }
    r->positions = f->config.context, r->positions_of = f->path;
    if (o->draft && draft->config.context < r->positions)
        r->positions = draft->config.context, r->positions_of = draft->path;
    failed = (!tasks && !tokens) || !fit(r, o, count, tasks, tasks_count) || !may_branch(o, &f->config);
    failed = check_alike(failed, "prompts", number);
    if (all_fine(failed))
        failed = write_text(r, o, f, draft, tokens, count, tasks, tasks_count, why);
    else
        failed = 1, free(tokens);
    for (i = 0; i < tasks_count; i++) free(tasks[i].prompt), free(tasks[i].tokens), free(tasks[i].text.at);
    free(tasks);
    free(line);
    return failed;
}

/* What is opened must not become standard input: of the three, a closed one becomes a file that is empty. */
static void fill_standard_files(void) {
    int file;
    do file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= 2);
    if (file > 2) close(file);
}

int main(int argc, char **argv) {
    options o;
    run r;
    gguf_error why;
    model_file f, draft;
    uint64_t command = 0;
    int failed, fine, i;
    fill_standard_files();
    if (!parse(&o, argc, argv)) return 2;
    memset(&r, 0, sizeof r);
    memset(&draft, 0, sizeof draft);
    r.o = &o;
    failed = ranks_read(&world);
    if (!failed && world.count > 1 && o.persistent)
        return refuse("--persistent", "several ranks go by launches or --graph"), 2;
    if (failed || ranks_meet(&world)) {
        computing = !world.failed; /* else rank 0 has said it */
        tell("%s", world.error);
        return 1;
    }
    if (world.rank && !freopen("/dev/null", "w", stdout)) return 1;
    memset(&f, 0, sizeof f);
    if (world.count > 1) o.llama.ranks = &world;
    failed = world.count > 1 && ranks_load(&world);
    if (failed)
        tell("%s", world.error);
    else
        failed = open_file(&f, o.model, &why);
    if (!failed && o.draft) failed = open_file(&draft, o.draft, &why);
    if (!failed && !(suits(&o, &f) && (!o.draft || suits(&o, &draft)))) failed = 1;
    if (!failed && f.config.latent && !may_branch(&o, &f.config)) failed = 1;
    if (!failed && read_words(&r, &o, &f, &why)) failed = bad_file(o.model, &why);
    if (!failed && o.draft && !same_tokens(&r.words, f.config.vocab, &draft, &why))
        failed = bad_file(o.draft, &why);
    for (i = 1; i < argc; i++) command = digest(command, argv[i], strlen(argv[i]) + 1);
    failed = check_alike(failed, "command line", command);
    failed = check_alike(failed, o.model, digest(f.head.file_bytes, f.head.head, f.head.head_bytes));
    failed = check_alike(failed, o.draft,
                         digest(draft.head.file_bytes, draft.head.head, draft.head.head_bytes));
    fine = all_fine(failed);
    if (fine) {
        failed = !is_whole(&o, &f) || (o.draft && !is_whole(&o, &draft));
        fine = all_fine(failed);
    }
    if (fine)
        failed = run_all(&r, &o, &f, &draft, &why);
    else if (!failed)
        failed = 1;
    if (failed && !computing) all_fine(1); /* unless that has been said */
    free(r.text.at);
    ptxcu_close(r.cu);
    tokeniser_free(&r.words);
    close_file(&draft);
    close_file(&f);
    return failed;
}
