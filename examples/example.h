/* example.h - what the example programs share: options, memory, random data, progress.
 *
 * Options have one form in all examples: `--name value` or `--name=value`; a flag has no value. `--help`
 * prints the table of options; what is not in the table is refused with exit status 2. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -- options -- */

enum option_kind {
    OPTION_FLAG,   /* int: 1 if it is on the command line */
    OPTION_U32,    /* uint32_t, whole, low to high */
    OPTION_U64,    /* uint64_t, whole, low to high (at most 2^53) */
    OPTION_F32,    /* float, low to high */
    OPTION_CHOICE, /* uint32_t: the position in `words`, which are separated by '|' */
    OPTION_LIST,   /* uint32_list: numbers separated by commas, low to high each */
    OPTION_TEXT,   /* const char *: any text */
    OPTION_TEXTS   /* text_list: any texts, one for each use of the option */
};

enum { LIST_MAX = 256 };
typedef struct uint32_list {
    uint32_t count, at[LIST_MAX];
} uint32_list;

enum { TEXTS_MAX = 16 };
typedef struct text_list {
    uint32_t count;
    const char *at[TEXTS_MAX];
} text_list;

typedef struct option {
    const char *name; /* without the dashes */
    enum option_kind kind;
    void *value; /* before: the default, which --help prints; afterwards: what was given */
    double low, high;
    const char *words, *help;
} option;

typedef struct command_line {
    const char *program, *what; /* its name, and a line that says what it does */
    const option *options;
    unsigned option_count;
    const char *names; /* of the arguments that are not options, for --help; NULL: there are none */
    const char **arguments;
    unsigned argument_count; /* maximum; an argument is required if it is NULL before parsing */
} command_line;

static void print_default(const option *o) {
    const char *word = o->words;
    uint32_t i;
    switch (o->kind) {
    case OPTION_U32: printf("; default %lu", (unsigned long)*(const uint32_t *)o->value); break;
    case OPTION_U64: printf("; default %llu", (unsigned long long)*(const uint64_t *)o->value); break;
    case OPTION_F32: printf("; default %g", (double)*(const float *)o->value); break;
    case OPTION_LIST:
        for (i = 0; i < ((const uint32_list *)o->value)->count; i++)
            printf("%s%lu", i ? "," : "; default ", (unsigned long)((const uint32_list *)o->value)->at[i]);
        break;
    case OPTION_CHOICE:
        for (i = *(const uint32_t *)o->value; i; i--) word = strchr(word, '|') + 1;
        printf("; default %.*s", (int)strcspn(word, "|"), word);
        break;
    default: break;
    }
}

static void print_help(const command_line *c) {
    unsigned i;
    printf("%s - %s\n\n  %s%s%s [options]\n\n", c->program, c->what, c->program, c->names ? " " : "",
           c->names ? c->names : "");
    for (i = 0; i < c->option_count; i++) {
        static const char *const values[] = {"", "N", "N", "X", "", "N,N...", "TEXT", "TEXT"};
        const option *o = &c->options[i];
        int width = printf("  --%s %s", o->name, o->kind == OPTION_CHOICE ? o->words : values[o->kind]);
        if (width >= 80) printf("\n"), width = 0;
        printf("%*s%s", width < 26 ? 26 - width : 1, "", o->help);
        print_default(o);
        printf("\n");
    }
    printf("  --help                  this text\n");
}

static int refuse_option(const command_line *c, const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s; --help lists the options\n", c->program, what, why);
    return 0;
}

/* Parses a decimal number of `bytes` characters; strtod alone would accept 0x3, infinity and blanks, too. */
static int parse_number(const command_line *c, const option *o, const char *text, size_t bytes, double *x) {
    int whole = o->kind != OPTION_F32;
    char copy[64], message[160], *end = NULL;
    if (bytes && bytes < sizeof copy) {
        memcpy(copy, text, bytes);
        copy[bytes] = 0;
        errno = 0;
        if (!copy[strspn(copy, whole ? "0123456789" : "0123456789.eE+-")]) *x = strtod(copy, &end);
        if (end && !*end && !errno && *x >= o->low && *x <= o->high) return 1;
    }
    snprintf(message, sizeof message, "'%.*s' is no %snumber from %.16g to %.16g",
             (int)(bytes < 40 ? bytes : 40), text, whole ? "whole " : "", o->low, o->high);
    return refuse_option(c, o->name, message);
}

static int parse_value(const command_line *c, const option *o, const char *text) {
    double x = 0;
    switch (o->kind) {
    case OPTION_FLAG: *(int *)o->value = 1; return 1;
    case OPTION_TEXT: *(const char **)o->value = text; return 1;
    case OPTION_TEXTS: {
        text_list *list = (text_list *)o->value;
        if (list->count == TEXTS_MAX) return refuse_option(c, o->name, "more than 16 of them");
        list->at[list->count++] = text;
        return 1;
    }
    case OPTION_CHOICE: {
        uint32_t i = 0;
        const char *word = o->words;
        char message[320];
        for (;; i++) {
            size_t length = strcspn(word, "|");
            if (strlen(text) == length && !strncmp(word, text, length)) {
                *(uint32_t *)o->value = i;
                return 1;
            }
            if (!word[length]) break;
            word += length + 1;
        }
        snprintf(message, sizeof message, "'%.40s' is none of %s", text, o->words);
        return refuse_option(c, o->name, message);
    }
    case OPTION_LIST: {
        uint32_list *list = (uint32_list *)o->value;
        list->count = 0;
        for (;; text++) {
            size_t length = strcspn(text, ",");
            if (list->count == LIST_MAX) return refuse_option(c, o->name, "more than 256 numbers");
            if (!parse_number(c, o, text, length, &x)) return 0;
            list->at[list->count++] = (uint32_t)x;
            text += length;
            if (!*text) return 1;
        }
    }
    default: break;
    }
    if (!parse_number(c, o, text, strlen(text), &x)) return 0;
    if (o->kind == OPTION_U32) *(uint32_t *)o->value = (uint32_t)x;
    if (o->kind == OPTION_U64) *(uint64_t *)o->value = (uint64_t)x;
    if (o->kind == OPTION_F32) *(float *)o->value = (float)x;
    return 1;
}

/* Fills in options and arguments. Returns 0 after an error message: exit with status 2. --help exits here. */
static int parse_command_line(const command_line *c, int argc, char **argv) {
    unsigned found = 0, i;
    int a, only_arguments = 0;
    for (a = 1; a < argc; a++) {
        const char *text = argv[a], *value;
        const option *o = NULL;
        size_t length;
        if (!only_arguments && !strcmp(text, "--")) {
            only_arguments = 1;
            continue;
        }
        if (!only_arguments && !strcmp(text, "--help")) {
            print_help(c);
            exit(fflush(stdout) ? 1 : 0);
        }
        if (only_arguments || strncmp(text, "--", 2)) {
            if (!c->argument_count) return refuse_option(c, text, "not an option");
            if (found == c->argument_count) {
                char message[160];
                snprintf(message, sizeof message, "one argument too many, there are %s", c->names);
                return refuse_option(c, text, *text == '-' ? "unknown option, they begin with --" : message);
            }
            c->arguments[found++] = text;
            continue;
        }
        length = strcspn(text + 2, "=");
        for (i = 0; i < c->option_count; i++)
            if (strlen(c->options[i].name) == length && !strncmp(c->options[i].name, text + 2, length))
                o = &c->options[i];
        if (!o) return refuse_option(c, text, "unknown option");
        value = text[2 + length] ? text + 3 + length : NULL;
        if (o->kind == OPTION_FLAG ? value != NULL : !value && !(value = argv[++a]))
            return refuse_option(c, text, value ? "takes no value" : "needs a value");
        if (!parse_value(c, o, value)) return 0;
    }
    if (found < c->argument_count && !c->arguments[found]) return refuse_option(c, c->names, "needed");
    return 1;
}

/* -- memory, data, progress -- */

/* Allocates zeroed memory; without memory, exits with a message. */
static inline void *need(uint64_t bytes) {
    void *p = bytes <= SIZE_MAX ? calloc(bytes ? (size_t)bytes : 1, 1) : NULL;
    if (p) return p;
    fprintf(stderr, "out of memory on the host: %llu bytes\n", (unsigned long long)bytes);
    exit(1);
}

/* A random number from -1 to 1, by xorshift64*; *state must not be 0. */
static inline double uniform(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717ull) >> 11) / 4503599627370496.0 - 1.0;
}

/* Shows the progress of work that takes longer than two seconds, on standard error, once a second. The last
   call must have done == of, which ends the line. */
typedef struct progress {
    const char *what;
    time_t begun, told;
} progress;

static inline void show_progress(progress *p, uint64_t done, uint64_t of) {
    time_t now = time(NULL);
    if (!p->begun) p->begun = p->told = now;
    if (now - p->begun >= 2 && (now != p->told || done == of)) {
        fprintf(stderr, "\r%s %3.0f %%%s", p->what, 100.0 * (double)done / (double)of,
                done == of ? "\n" : "");
        fflush(stderr);
        p->told = now;
    }
}

/* Keeps the error that is largest relative to its bound, and that bound. Both start as 0. */
static inline void keep_worst(double error, double bound, double *worst, double *worst_bound) {
    int none = !(*worst > 0 || *worst_bound > 0);
    if (none || error * *worst_bound > *worst * bound) *worst = error, *worst_bound = bound;
}

#ifdef EXAMPLE /* the name that messages begin with */
/* -- the device: calls that may fail, memory that is freed at the end -- */

/* Exits with the message of a call that failed. */
static inline void must(ptxcu *cu, ptxcu_code failed) {
    if (!failed) return;
    fprintf(stderr, "%s: %s\n", EXAMPLE, ptxcu_get_error(cu)->message);
    ptxcu_close(cu);
    exit(1);
}

static ptxcu_buffer device_buffers[2 * LIST_MAX + 8];
static unsigned device_buffer_count;

static inline ptxcu_buffer device_bytes(ptxcu *cu, size_t bytes) {
    ptxcu_buffer *b = &device_buffers[device_buffer_count++];
    must(cu, ptxcu_alloc(cu, bytes, b));
    return *b;
}

static inline ptxcu_buffer to_device(ptxcu *cu, const void *data, size_t bytes) {
    ptxcu_buffer b = device_bytes(cu, bytes);
    must(cu, ptxcu_upload(cu, b, 0, data, bytes, NULL));
    return b;
}

/* Frees everything that device_bytes and to_device allocated. */
static inline void free_device(ptxcu *cu) {
    while (device_buffer_count) ptxcu_free(cu, device_buffers[--device_buffer_count]);
}
#endif

#endif
