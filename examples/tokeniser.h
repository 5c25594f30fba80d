/* tokeniser.h - text to tokens and back, by the tokeniser that a GGUF file carries.

   Two kinds, by tokenizer.ggml.model:
     "llama"  SentencePiece: the text, with spaces as U+2581, in characters; again and again the adjacent pair
              whose joined piece has the highest score becomes one; characters that are no piece become bytes
              (T. Kudo, J. Richardson, "SentencePiece", 2018)
     "gpt2"   byte pair encoding: the text is cut into words, their bytes are written as printable
              characters, and the pair that stands first in the list of merges becomes one (R. Sennrich,
              B. Haddow, A. Birch, "Neural machine translation of rare words with subword units", 2016)

   Words of "gpt2" are cut by the rules that tokenizer.ggml.pre names (TOKENISER_RULES). Tokens that the file
   calls user-defined are found in every text, the longest first; control tokens only where the caller says
   so, as in what a chat puts around messages, never in the messages. */
#ifndef EXAMPLES_TOKENISER_H
#define EXAMPLES_TOKENISER_H

#include "gguf.h"
#include "unicode.h"

enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_BYTE = 6
}; /* tokenizer.ggml.token_type */
#define TOKEN_NONE 0xffffffffu

typedef struct tokeniser_merge {
    gguf_text left, right;
    uint32_t rank;
} tokeniser_merge;

/* How words are cut: as GPT-2 does; that, digits one by one first; as Llama 3 and Qwen 2 do; as GPT-4o does,
   which parts words where case changes; that, Chinese characters apart, as Kimi K2 does; as DeepSeek's first
   models, its Coder, and V3 and R1 do. */
enum {
    TOKENISER_GPT2,
    TOKENISER_APART,
    TOKENISER_LLAMA3,
    TOKENISER_GPT4O,
    TOKENISER_KIMI,
    TOKENISER_DEEPSEEK,
    TOKENISER_CODER,
    TOKENISER_DEEPSEEK3
};

typedef struct tokeniser_rules {
    const char *name; /* in the file */
    uint32_t kind;    /* TOKENISER_GPT2 ... */
    uint32_t digits;  /* of a word at most, LLAMA3 and behind it; 0: any number */
    int suffixes;     /* GPT4O: 's and the like stay with the word */
    int whole;        /* a word that is a token needs no merges */
    int begins;       /* texts begin with a token, unless the file says other */
} tokeniser_rules;

typedef struct tokeniser {
    int bpe;               /* 1: "gpt2" */
    tokeniser_rules rules; /* bpe */
    uint32_t *classes;     /* bpe: of characters, see unicode.h */
    uint32_t *special;     /* [specials] user-defined and control tokens, the longest first */
    uint32_t specials;
    int strip;                           /* white space behind those is dropped */
    uint32_t count;                      /* tokens */
    gguf_text *token;                    /* [count] */
    uint32_t *sorted;                    /* [count] tokens by their text */
    const unsigned char *scores, *types; /* f32, i32 [count], in the file's head; or NULL */
    tokeniser_merge *merge;              /* bpe: sorted by left, right */
    size_t merges;
    uint32_t bos, eos, unknown, eot; /* TOKEN_NONE: there is none */
    int add_bos, add_space;
    size_t longest;     /* bytes of the longest token: room for any piece */
    uint32_t byte[256]; /* the token of each byte, or TOKEN_NONE */
} tokeniser;

static inline void tokeniser_free(tokeniser *t) {
    free(t->token);
    free(t->sorted);
    free(t->merge);
    free(t->classes);
    free(t->special);
    memset(t, 0, sizeof *t);
}

/* -- looking things up: sorted arrays, which no choice of texts makes slow -- */

static inline uint32_t tokeniser_find(const tokeniser *t, gguf_text text) {
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = gguf_compare_texts(t->token[t->sorted[middle]], text);
        if (order == 0) return t->sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return TOKEN_NONE;
}

static inline int tokeniser_by_pair(const void *a, const void *b) {
    const tokeniser_merge *x = (const tokeniser_merge *)a, *y = (const tokeniser_merge *)b;
    int order = gguf_compare_texts(x->left, y->left);
    return order ? order : gguf_compare_texts(x->right, y->right);
}

/* Sorts the tokens' numbers by their texts: a heap sort, as qsort has no way to pass the texts. */
static inline void tokeniser_sort(tokeniser *t) {
    uint32_t *a = t->sorted, n = t->count, start = n / 2, end = n;
    while (end > 1) {
        uint32_t at, child, keep;
        if (start > 0) {
            start--;
        } else {
            end--;
            keep = a[0], a[0] = a[end], a[end] = keep;
        }
        for (at = start; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && gguf_compare_texts(t->token[a[child]], t->token[a[child + 1]]) < 0)
                child++;
            if (gguf_compare_texts(t->token[a[at]], t->token[a[child]]) >= 0) break;
            keep = a[at], a[at] = a[child], a[child] = keep;
        }
    }
}

static inline uint32_t tokeniser_type(const tokeniser *t, uint32_t token) {
    return t->types ? (uint32_t)gguf_little(t->types + 4 * (size_t)token, 4) : (uint32_t)TOKEN_NORMAL;
}

/* -- bytes as characters, GPT-2's way: printable Latin-1 as itself, the other bytes from U+0100 on -- */

static inline uint32_t tokeniser_byte_character(unsigned b) {
    if (b <= 0x20) return 0x100 + b;
    if (b >= 0x7f && b <= 0xa0) return 0x121 + (b - 0x7f);
    return b == 0xad ? 0x143 : b;
}

/* The byte that a character stands for, or 256. */
static inline unsigned tokeniser_character_byte(uint32_t c) {
    if (c < 0x100) return tokeniser_byte_character(c) == c ? c : 256;
    if (c <= 0x120) return c - 0x100;
    if (c <= 0x142) return 0x7f + (c - 0x121);
    return c == 0x143 ? 0xad : 256;
}

/* The character of U+0000 to U+07FF at s (n bytes); 0 and *used 1 for anything else. */
static inline uint32_t tokeniser_character(const char *s, size_t n, size_t *used) {
    unsigned char a = (unsigned char)s[0], b = (unsigned char)(n > 1 ? s[1] : 0);
    *used = 1;
    if (a < 0x80) return a;
    if (a < 0xc2 || a > 0xdf || (b & 0xc0) != 0x80) return 0;
    *used = 2;
    return (uint32_t)(a & 31) << 6 | (b & 63);
}

static inline size_t tokeniser_put(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    to[0] = (char)(0xc0 | c >> 6);
    to[1] = (char)(0x80 | (c & 63));
    return 2;
}

/* -- reading -- */

static inline const unsigned char *tokeniser_array(const gguf *g, const char *key, uint32_t element,
                                                   size_t count) {
    const gguf_value *v = gguf_find(g, key);
    return v && v->type == GGUF_ARRAY && v->element == element && v->count == count ? v->at : NULL;
}

/* A token with a task; the key may be missing, and must be right where it is there. */
static inline int tokeniser_special(const gguf *g, const tokeniser *t, const char *key, uint32_t *id,
                                    gguf_error *why) {
    *id = TOKEN_NONE;
    if (!gguf_find(g, key)) return 0;
    if (!gguf_get_u32(g, key, id)) return gguf_fail(why, gguf_place(g, key), "'%s' is no whole number", key);
    if (*id < t->count) return 0;
    return gguf_fail(why, gguf_place(g, key), "'%s' is %u, of %u tokens", key, (unsigned)*id,
                     (unsigned)t->count);
}

/* A switch that may be missing. */
static inline int tokeniser_switch(const gguf *g, const char *key, int *x, gguf_error *why) {
    if (!gguf_find(g, key) || gguf_get_bool(g, key, x)) return 0;
    return gguf_fail(why, gguf_place(g, key), "'%s' is no bool", key);
}

static inline int tokeniser_read_merges(tokeniser *t, const gguf *g, gguf_error *why) {
    size_t i;
    gguf_text *lines = gguf_get_texts(g, "tokenizer.ggml.merges", &t->merges);
    if (!lines)
        return gguf_fail(why, gguf_place(g, "tokenizer.ggml.merges"),
                         "'tokenizer.ggml.merges' is missing, or no array of strings");
    t->merge = (tokeniser_merge *)malloc(t->merges * sizeof *t->merge);
    for (i = 0; t->merge && i < t->merges; i++) {
        const char *space = lines[i].bytes ? (const char *)memchr(lines[i].at, ' ', lines[i].bytes) : NULL;
        if (!space || i >= UINT32_MAX) {
            gguf_fail(why, (uint64_t)((const unsigned char *)lines[i].at - g->head),
                      "merge '%.*s' is no pair", gguf_shown(lines[i]), lines[i].at);
            free(lines);
            return 1;
        }
        t->merge[i].left.at = lines[i].at;
        t->merge[i].left.bytes = (size_t)(space - lines[i].at);
        t->merge[i].right.at = space + 1;
        t->merge[i].right.bytes = lines[i].bytes - t->merge[i].left.bytes - 1;
        t->merge[i].rank = (uint32_t)i;
    }
    free(lines);
    if (!t->merge) return gguf_fail(why, GGUF_NOWHERE, "no memory for the tokeniser");
    qsort(t->merge, t->merges, sizeof *t->merge, tokeniser_by_pair);
    return 0;
}

/* Whether special token a stands behind b. */
static inline int tokeniser_is_later(const tokeniser *t, uint32_t a, uint32_t b) {
    size_t x = t->token[a].bytes, y = t->token[b].bytes;
    return x < y || (x == y && a > b);
}

/* Lets special token number `at` sink in a heap of n. */
static inline void tokeniser_sift(tokeniser *t, uint32_t at, uint32_t n) {
    uint32_t child, keep;
    for (; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && tokeniser_is_later(t, t->special[child + 1], t->special[child])) child++;
        if (!tokeniser_is_later(t, t->special[child], t->special[at])) return;
        keep = t->special[at], t->special[at] = t->special[child], t->special[child] = keep;
    }
}

static inline void tokeniser_find_bytes(tokeniser *t) {
    unsigned b;
    for (b = 0; b < 256; b++) {
        char name[8];
        gguf_text text;
        text.at = name;
        if (t->bpe)
            text.bytes = tokeniser_put(name, tokeniser_byte_character(b));
        else
            text.bytes = (size_t)snprintf(name, sizeof name, "<0x%02X>", b);
        t->byte[b] = tokeniser_find(t, text);
    }
}

/* X(name in the file, kind, digits, suffixes, whole, begins) */
#define TOKENISER_RULES(X)                                                                                   \
    X("default", GPT2, 0, 0, 0, 0)                                                                           \
    X("gpt-2", GPT2, 0, 0, 0, 0)                                                                             \
    X("phi-2", GPT2, 0, 0, 0, 0)                                                                             \
    X("mpt", GPT2, 0, 0, 0, 0)                                                                               \
    X("olmo", GPT2, 0, 0, 0, 0)                                                                              \
    X("starcoder", APART, 0, 0, 0, 0)                                                                        \
    X("refact", APART, 0, 0, 0, 0)                                                                           \
    X("command-r", APART, 0, 0, 0, 0)                                                                        \
    X("smollm", APART, 0, 0, 0, 0)                                                                           \
    X("codeshell", APART, 0, 0, 0, 0)                                                                        \
    X("llama-bpe", LLAMA3, 3, 0, 1, 1)                                                                       \
    X("llama3", LLAMA3, 3, 0, 1, 1)                                                                          \
    X("llama-v3", LLAMA3, 3, 0, 1, 1)                                                                        \
    X("falcon3", LLAMA3, 3, 0, 1, 1)                                                                         \
    X("pixtral", LLAMA3, 3, 0, 1, 1)                                                                         \
    X("dbrx", LLAMA3, 3, 0, 0, 0)                                                                            \
    X("smaug-bpe", LLAMA3, 3, 0, 0, 0)                                                                       \
    X("qwen2", LLAMA3, 1, 0, 0, 0)                                                                           \
    X("stablelm2", LLAMA3, 1, 0, 0, 0)                                                                       \
    X("deepseek-r1-qwen", LLAMA3, 1, 0, 0, 0)                                                                \
    X("gpt-4o", GPT4O, 3, 1, 0, 0)                                                                           \
    X("llama4", GPT4O, 3, 1, 0, 0)                                                                           \
    X("tekken", GPT4O, 1, 0, 1, 1)                                                                           \
    X("kimi-k2", KIMI, 3, 1, 0, 0)                                                                           \
    X("deepseek-llm", DEEPSEEK, 0, 0, 0, 0)                                                                  \
    X("deepseek-coder", CODER, 1, 0, 0, 0)                                                                   \
    X("deepseek-v3", DEEPSEEK3, 3, 0, 0, 0)

static inline int tokeniser_read_rules(tokeniser *t, const gguf *g, gguf_error *why) {
    static const char key[] = "tokenizer.ggml.pre";
    static const tokeniser_rules rules[] = {
#define TOKENISER_RULE(name, kind, digits, suffixes, whole, begins)                                          \
    {name, TOKENISER_##kind, digits, suffixes, whole, begins},
        TOKENISER_RULES(TOKENISER_RULE)};
    gguf_text pre;
    size_t i;
    t->rules = rules[0];
    if (!gguf_find(g, key)) return 0;
    if (!gguf_get_text(g, key, &pre)) return gguf_fail(why, gguf_place(g, key), "'%s' is no string", key);
    for (i = 0; i < sizeof rules / sizeof *rules; i++)
        if (gguf_is(pre, rules[i].name)) {
            t->rules = rules[i];
            return 0;
        }
    return gguf_fail(why, gguf_place(g, key), "'%s': words cut by the rules '%.*s', which nothing here knows",
                     key, gguf_shown(pre), pre.at);
}

/* Tokens that are found in texts before all else: the longest first, equal ones by their number. */
static inline int tokeniser_read_specials(tokeniser *t, const gguf *g, gguf_error *why) {
    gguf_text architecture;
    uint32_t i, n, at;
    t->strip =
        !t->bpe && gguf_get_text(g, "general.architecture", &architecture) && gguf_is(architecture, "phi3");
    t->classes = (uint32_t *)malloc(UNICODE_RUNS * sizeof *t->classes);
    for (i = n = 0; i < t->count; i++) {
        uint32_t type = tokeniser_type(t, i);
        n += type == TOKEN_USER || type == TOKEN_CONTROL;
    }
    t->special = (uint32_t *)malloc((n + 1ull) * sizeof *t->special);
    if (!t->special || !t->classes) return gguf_fail(why, GGUF_NOWHERE, "no memory for the tokeniser");
    unicode_read(t->classes);
    for (i = 0; i < t->count; i++) {
        uint32_t type = tokeniser_type(t, i);
        if ((type == TOKEN_USER || type == TOKEN_CONTROL) && t->token[i].bytes) t->special[t->specials++] = i;
    }
    for (n = t->specials / 2 + 1; n--;) /* a heap whose root is the last in order, as tokeniser_sort */
        tokeniser_sift(t, n, t->specials);
    for (n = t->specials; n > 1;) {
        at = t->special[0], t->special[0] = t->special[--n], t->special[n] = at;
        tokeniser_sift(t, 0, n);
    }
    return 0;
}

/* Reads the tokeniser of the file, whose head must live as long. Returns 0, or 1 with *why. */
static inline int tokeniser_read(tokeniser *t, const gguf *g, gguf_error *why) {
    gguf_text model;
    size_t count = 0;
    uint32_t i;
    memset(t, 0, sizeof *t);
    if (!gguf_get_text(g, "tokenizer.ggml.model", &model))
        return gguf_fail(why, gguf_place(g, "tokenizer.ggml.model"),
                         "'tokenizer.ggml.model' is missing, or no string");
    t->bpe = gguf_is(model, "gpt2");
    if (!t->bpe && !gguf_is(model, "llama"))
        return gguf_fail(why, gguf_place(g, "tokenizer.ggml.model"),
                         "tokeniser '%.*s', must be 'llama' or 'gpt2'", gguf_shown(model), model.at);
    t->token = gguf_get_texts(g, "tokenizer.ggml.tokens", &count);
    if (!t->token || count >= 1u << 30) {
        free(t->token);
        t->token = NULL;
        return gguf_fail(why, gguf_place(g, "tokenizer.ggml.tokens"),
                         "'tokenizer.ggml.tokens' is missing, or no array of strings, or too long");
    }
    t->count = (uint32_t)count;
    t->sorted = (uint32_t *)malloc(count * sizeof *t->sorted);
    if (!t->sorted) {
        tokeniser_free(t);
        return gguf_fail(why, GGUF_NOWHERE, "no memory for the tokeniser");
    }
    for (i = 0; i < t->count; i++) t->sorted[i] = i;
    tokeniser_sort(t);
    t->scores = tokeniser_array(g, "tokenizer.ggml.scores", GGUF_F32, count);
    t->types = tokeniser_array(g, "tokenizer.ggml.token_type", GGUF_I32, count);
    if (!t->bpe && !t->scores) {
        tokeniser_free(t);
        return gguf_fail(why, gguf_place(g, "tokenizer.ggml.scores"),
                         "'tokenizer.ggml.scores' is missing, or not one f32 for each token");
    }
    if (t->bpe && tokeniser_read_merges(t, g, why)) {
        tokeniser_free(t);
        return 1;
    }
    if ((t->bpe && tokeniser_read_rules(t, g, why)) || tokeniser_read_specials(t, g, why)
        || tokeniser_special(g, t, "tokenizer.ggml.bos_token_id", &t->bos, why)
        || tokeniser_special(g, t, "tokenizer.ggml.eos_token_id", &t->eos, why)
        || tokeniser_special(g, t, "tokenizer.ggml.eot_token_id", &t->eot, why)
        || tokeniser_special(g, t, "tokenizer.ggml.unknown_token_id", &t->unknown, why)) {
        tokeniser_free(t);
        return 1;
    }
    t->add_bos = t->add_space = !t->bpe;
    if (t->bpe) t->add_bos = t->rules.begins;
    if (tokeniser_switch(g, "tokenizer.ggml.add_bos_token", &t->add_bos, why)
        || tokeniser_switch(g, "tokenizer.ggml.add_space_prefix", &t->add_space, why)) {
        tokeniser_free(t);
        return 1;
    }
    for (i = 0; i < t->count; i++)
        if (t->token[i].bytes > t->longest) t->longest = t->token[i].bytes;
    tokeniser_find_bytes(t);
    return 0;
}

/* -- joining pairs: symbols in a list, candidates in a heap, n log n -- */

typedef struct tokeniser_symbol {
    size_t at, bytes;     /* bytes 0: joined to the one before */
    size_t before, after; /* numbers of symbols; SIZE_MAX: none */
} tokeniser_symbol;

typedef struct tokeniser_pair {
    double key;         /* the smallest first, among equals the leftmost */
    size_t left, bytes; /* symbol, and the bytes of both when this was noted */
} tokeniser_pair;

typedef struct tokeniser_work {
    const tokeniser *t;
    const char *text;
    tokeniser_symbol *symbol;
    tokeniser_pair *heap;
    size_t pairs;
} tokeniser_work;

static inline int tokeniser_before(const tokeniser_pair *a, const tokeniser_pair *b) {
    return a->key < b->key || (!(b->key < a->key) && a->left < b->left);
}

/* Notes the pair that begins at a symbol, if it can be joined. */
static inline void tokeniser_offer(tokeniser_work *w, size_t left) {
    tokeniser_symbol *a = &w->symbol[left], *b;
    tokeniser_pair p, *heap = w->heap;
    size_t at;
    if (left == SIZE_MAX || a->after == SIZE_MAX) return;
    b = &w->symbol[a->after];
    p.left = left;
    p.bytes = a->bytes + b->bytes;
    if (w->t->bpe) {
        tokeniser_merge wanted, *found;
        wanted.left.at = w->text + a->at;
        wanted.left.bytes = a->bytes;
        wanted.right.at = w->text + b->at;
        wanted.right.bytes = b->bytes;
        found =
            (tokeniser_merge *)bsearch(&wanted, w->t->merge, w->t->merges, sizeof wanted, tokeniser_by_pair);
        if (!found) return;
        p.key = (double)found->rank;
    } else {
        gguf_text joined;
        uint32_t token;
        joined.at = w->text + a->at;
        joined.bytes = p.bytes;
        token = tokeniser_find(w->t, joined);
        if (token == TOKEN_NONE) return;
        p.key = -(double)gguf_float(w->t->scores + 4 * (size_t)token);
        if (!(p.key < 1e300)) p.key = 1e300; /* a score that is no number comes last */
    }
    for (at = w->pairs++; at > 0 && tokeniser_before(&p, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = p;
}

static inline tokeniser_pair tokeniser_best(tokeniser_work *w) {
    tokeniser_pair best = w->heap[0], last = w->heap[--w->pairs];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < w->pairs) {
        if (child + 1 < w->pairs && tokeniser_before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!tokeniser_before(&w->heap[child], &last)) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return best;
}

/* Bytes of the character at s, as far as they are there. */
static inline size_t tokeniser_utf8_bytes(const char *s, size_t left) {
    unsigned char c = (unsigned char)*s;
    size_t most = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4, n = 1;
    while (n < most && n < left && (s[n] & 0xc0) == 0x80) n++;
    return n;
}

/* Tokens of one word (bpe) or of a whole text. Returns how many, at most `bytes`; SIZE_MAX: no memory. */
static inline size_t tokeniser_join(const tokeniser *t, const char *text, size_t bytes, uint32_t *tokens) {
    tokeniser_work w;
    size_t i, n = 0, at, count = 0;
    if (bytes == 0) return 0;
    if (t->bpe && t->rules.whole) {
        gguf_text all;
        uint32_t token;
        all.at = text;
        all.bytes = bytes;
        token = tokeniser_find(t, all);
        if (token != TOKEN_NONE) {
            *tokens = token;
            return 1;
        }
    }
    w.t = t;
    w.text = text;
    w.pairs = 0;
    w.symbol = (tokeniser_symbol *)malloc(bytes * sizeof *w.symbol);
    w.heap = (tokeniser_pair *)malloc(3 * bytes * sizeof *w.heap); /* one a symbol, two more a join */
    if (!w.symbol || !w.heap) count = SIZE_MAX;
    for (at = 0; count == 0 && at < bytes; at += w.symbol[n++].bytes) {
        w.symbol[n].at = at;
        w.symbol[n].bytes = tokeniser_utf8_bytes(text + at, bytes - at);
        w.symbol[n].before = n ? n - 1 : SIZE_MAX;
        w.symbol[n].after = n + 1;
    }
    if (n) w.symbol[n - 1].after = SIZE_MAX;
    for (i = 0; i + 1 < n; i++) tokeniser_offer(&w, i);
    while (w.pairs) {
        tokeniser_pair p = tokeniser_best(&w);
        tokeniser_symbol *a = &w.symbol[p.left], *b;
        if (a->bytes == 0 || a->after == SIZE_MAX) continue;
        b = &w.symbol[a->after];
        if (a->bytes + b->bytes != p.bytes) continue; /* one of the two has been joined since */
        a->bytes = p.bytes;
        b->bytes = 0;
        a->after = b->after;
        if (b->after != SIZE_MAX) w.symbol[b->after].before = p.left;
        tokeniser_offer(&w, p.left);
        if (a->before != SIZE_MAX) tokeniser_offer(&w, a->before);
    }
    for (i = 0; i < n; i = w.symbol[i].after) {
        gguf_text piece;
        uint32_t token;
        piece.at = text + w.symbol[i].at;
        piece.bytes = w.symbol[i].bytes;
        token = tokeniser_find(t, piece);
        if (token != TOKEN_NONE) {
            tokens[count++] = token;
        } else {
            size_t k = 0, used;
            for (; k < piece.bytes; k += used) {
                unsigned b = (unsigned char)piece.at[k];
                gguf_text one;
                one.at = piece.at + k;
                one.bytes = used = t->bpe ? tokeniser_utf8_bytes(piece.at + k, piece.bytes - k) : 1;
                token = t->bpe ? tokeniser_find(t, one) : t->byte[b];
                if (token == TOKEN_NONE) token = t->unknown;
                if (token != TOKEN_NONE) tokens[count++] = token;
            }
        }
        if (w.symbol[i].after == SIZE_MAX) break;
    }
    free(w.symbol);
    free(w.heap);
    return count;
}

/* -- words of "gpt2" -- */

enum { TOKENISER_ISOLATED = UNICODE_TURNS, TOKENISER_NOTHING = 31 }; /* classes that no character has */

/* Whether c lies in one of the ranges, first and last; a first of 0 ends them. */
static inline int tokeniser_within(const uint32_t (*ranges)[2], uint32_t c) {
    for (; (*ranges)[0]; ranges++)
        if (c >= (*ranges)[0] && c <= (*ranges)[1]) return 1;
    return 0;
}

/* Whether words part around runs of such characters: DEEPSEEK3 Chinese and Japanese ones, KIMI the script
   Han. */
static inline int tokeniser_isolated(const tokeniser *t, uint32_t c) {
    static const uint32_t deepseek[][2] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}, {0, 0}};
    static const uint32_t han[][2] = {{0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},
                                      {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
                                      {0x3038, 0x303b},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                      {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
                                      {0x16ff0, 0x16ff6}, {0x20000, 0x2a6df}, {0x2a700, 0x2ee5d},
                                      {0x2f800, 0x2fa1d}, {0x30000, 0x33479}, {0, 0}};
    if (t->rules.kind == TOKENISER_KIMI) return tokeniser_within(han, c);
    return t->rules.kind == TOKENISER_DEEPSEEK3 && tokeniser_within(deepseek, c);
}

/* The class of the character that s begins with, and its bytes; of nothing: TOKENISER_NOTHING. */
static inline uint32_t tokeniser_class(const tokeniser *t, const char *s, size_t n, size_t *used) {
    uint32_t c, kind;
    *used = 0;
    if (!n) return TOKENISER_NOTHING;
    c = unicode_character(s, n, used);
    kind = unicode_class(t->classes, c);
    if (c < 0x3005 || !tokeniser_isolated(t, c)) return kind;
    if (t->rules.kind != TOKENISER_KIMI || kind == UNICODE_TEXT) return TOKENISER_ISOLATED;
    return kind == UNICODE_MARK ? (uint32_t)UNICODE_OTHER : kind; /* behind another number or sign */
}

enum {
    TOKENISER_UPPER = 1 << UNICODE_UPPER | 1 << UNICODE_TEXT | 1 << UNICODE_MARK, /* GPT4O */
    TOKENISER_LOWER = 1 << UNICODE_LOWER | 1 << UNICODE_TEXT | 1 << UNICODE_MARK,
    TOKENISER_LETTER = 1 << UNICODE_UPPER | 1 << UNICODE_LOWER | 1 << UNICODE_TEXT,
    TOKENISER_DIGIT = 1 << UNICODE_DIGIT,
    TOKENISER_SPACE = 1 << UNICODE_SPACE,
    TOKENISER_SIGN = 1 << UNICODE_PUNCTUATION | 1 << UNICODE_SYMBOL,
    TOKENISER_OTHER = TOKENISER_SIGN | 1 << UNICODE_OTHER | 1 << UNICODE_MARK
};

/* Bytes of the characters of these classes that s begins with, at most `most` of them. */
static inline size_t tokeniser_run(const tokeniser *t, const char *s, size_t n, uint32_t classes,
                                   size_t most) {
    size_t i = 0, used;
    for (; most && i < n && 1u << tokeniser_class(t, s + i, n - i, &used) & classes; most--) i += used;
    return i;
}

/* 's 't 're 've 'm 'll 'd: the bytes of one that s begins with, or 0. */
static inline size_t tokeniser_contraction(const char *s, size_t n, int any_case) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    size_t i, k;
    for (i = 0; n > 1 && s[0] == '\'' && i < sizeof ends / sizeof *ends; i++) {
        for (k = 0; ends[i][k] && k + 1 < n; k++) {
            char c = s[k + 1];
            if (any_case && c >= 'A' && c <= 'Z') c = (char)(c + 32);
            if (c != ends[i][k]) break;
        }
        if (!ends[i][k]) return k + 1;
    }
    return 0;
}

/* GPT4O: letters from i on, which part where a lower case one is followed by an upper case one. capitals:
   upper case ones alone will do. Returns where the word ends, or 0. */
static inline size_t tokeniser_case_word(const tokeniser *t, const char *s, size_t n, size_t i,
                                         int capitals) {
    size_t upper = i + tokeniser_run(t, s + i, n - i, TOKENISER_UPPER, SIZE_MAX), at, used, end = 0;
    size_t lower = upper + tokeniser_run(t, s + upper, n - upper, TOKENISER_LOWER, SIZE_MAX);
    if (lower > upper || (capitals && upper > i)) return lower;
    for (at = i; at < upper; at += used) /* the last that counts as lower case, too */
        if (1u << tokeniser_class(t, s + at, n - at, &used) & TOKENISER_LOWER) end = at + used;
    return end;
}

/* Words of letters, with a character before them that is none. Bytes, or 0. */
static inline size_t tokeniser_letters(const tokeniser *t, const char *s, size_t n) {
    size_t lead, i, end;
    uint32_t c = tokeniser_class(t, s, n, &lead);
    int capitals, led, v3 = t->rules.kind == TOKENISER_DEEPSEEK3;
    uint32_t letters = TOKENISER_LETTER | (v3 ? 1u << UNICODE_MARK : 0);
    if (1u << c & (letters | TOKENISER_DIGIT | (v3 ? TOKENISER_SIGN : 0)) || *s == '\n' || *s == '\r')
        lead = 0;
    if (t->rules.kind != TOKENISER_GPT4O && t->rules.kind != TOKENISER_KIMI) {
        i = tokeniser_run(t, s + lead, n - lead, letters, SIZE_MAX);
        return i ? lead + i : 0;
    }
    for (capitals = 0; capitals < 2; capitals++)
        for (led = lead > 0; led >= 0; led--) {
            end = tokeniser_case_word(t, s, n, led ? lead : 0, capitals);
            if (end) return t->rules.suffixes ? end + tokeniser_contraction(s + end, n - end, 1) : end;
        }
    return 0;
}

/* What DEEPSEEK and CODER part words by. */
enum {
    TOKENISER_SET_LETTER = 1,
    TOKENISER_SET_SIGN = 2,
    TOKENISER_SET_SPACE = 4,
    TOKENISER_SET_ASIAN = 8,
    TOKENISER_SET_DIGIT = 16,
    TOKENISER_SET_LINE = 32 /* an end of line, which is no space here */
};

/* The sets that the first character of s is in. DEEPSEEK's letters are those of its list, which is all with
   case but what `added` has; its signs are in a list, too. */
static inline uint32_t tokeniser_sets(const tokeniser *t, const char *s, size_t n, size_t *used) {
    static const uint32_t added[][2] = {{0x560, 0x588},     {0x10c7, 0x10ff},   {0x1c80, 0x1c88},
                                        {0x2d00, 0x2d2d},   {0xa790, 0xa7fa},   {0xab30, 0xab68},
                                        {0x10500, 0x105ff}, {0x16e40, 0x1e8ff}, {0, 0}};
    static const uint32_t signs[][2] = {
        {0x21, 0x2f},     {0x3a, 0x7e}, {0x2018, 0x201f}, {0x3000, 0x3002}, {0xff01, 0xff0f},
        {0xff1a, 0xff5e}, {0, 0}};
    static const uint32_t asian[][2] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}, {0, 0}};
    uint32_t c, kind, sets = 0;
    *used = 0;
    if (!n) return 0;
    c = unicode_character(s, n, used);
    kind = unicode_class(t->classes, c);
    if (c == '\n' || c == '\r') return TOKENISER_SET_LINE;
    if (t->rules.kind == TOKENISER_CODER) {
        if (1u << kind & TOKENISER_LETTER) sets |= TOKENISER_SET_LETTER;
        if (kind == UNICODE_PUNCTUATION) sets |= TOKENISER_SET_SIGN;
    } else {
        if ((kind == UNICODE_UPPER || kind == UNICODE_LOWER) && !tokeniser_within(added, c))
            sets |= TOKENISER_SET_LETTER;
        if (tokeniser_within(signs, c)) sets |= TOKENISER_SET_SIGN;
    }
    if (kind == UNICODE_SPACE) sets |= TOKENISER_SET_SPACE;
    if (kind == UNICODE_DIGIT) sets |= TOKENISER_SET_DIGIT;
    return sets | (tokeniser_within(asian, c) ? (uint32_t)TOKENISER_SET_ASIAN : 0u);
}

/* The sets of the first character of s, and whether letters or signs begin here, with a space before them.
   A space that is a sign, U+3000, goes with letters behind it before it goes with signs. */
static inline uint32_t tokeniser_begins(const tokeniser *t, const char *s, size_t n, size_t *used) {
    uint32_t sets = tokeniser_sets(t, s, n, used), behind, third;
    size_t next, last;
    if (!(sets & TOKENISER_SET_SPACE)) return sets;
    behind = tokeniser_sets(t, s + *used, n - *used, &next);
    third = tokeniser_sets(t, s + *used + next, n - *used - next, &last);
    if (behind & TOKENISER_SET_SPACE && third & TOKENISER_SET_LETTER) return sets;
    return sets | (behind & (TOKENISER_SET_LETTER | TOKENISER_SET_SIGN));
}

/* DEEPSEEK and CODER cut a text again and again, each time the pieces of the time before: ends of lines one
   by one; letters and signs, each with a space before them; DEEPSEEK: spaces at a piece's end; Asian
   characters; digits. What lies between is a piece, too. A word ends where the first of these cuts falls. */
static inline size_t tokeniser_deepseek_word(const tokeniser *t, const char *s, size_t n) {
    size_t i, used, end = 0, spaces; /* spaces: where those begin that reach to i */
    uint32_t runs = tokeniser_begins(t, s, n, &i), first = tokeniser_sets(t, s, n, &i);
    int strip = t->rules.kind == TOKENISER_DEEPSEEK;
    if (first & TOKENISER_SET_LINE) return i;
    for (spaces = first & TOKENISER_SET_SPACE ? 0 : i;; i += used) {
        uint32_t begins = tokeniser_begins(t, s + i, n - i, &used),
                 sets = tokeniser_sets(t, s + i, n - i, &used);
        uint32_t cut = ((runs & ~sets) | (begins & ~runs)) & (TOKENISER_SET_LETTER | TOKENISER_SET_SIGN);
        if (i == n || cut || sets & TOKENISER_SET_LINE) {
            if (!end) end = i;
            return strip && spaces && spaces < end ? spaces : end;
        }
        if (!end
            && ((sets ^ first) & (TOKENISER_SET_ASIAN | TOKENISER_SET_DIGIT)
                || (first & TOKENISER_SET_DIGIT && t->rules.digits == 1)))
            end = i;
        if (end && !(strip && spaces && spaces < end && sets & TOKENISER_SET_SPACE)) return end;
        if (!(sets & TOKENISER_SET_SPACE)) spaces = i + used;
    }
}

/* Bytes of the isolated characters that s begins with; DEEPSEEK3 parts signs among them from the others. */
static inline size_t tokeniser_isolated_word(const tokeniser *t, const char *s, size_t n) {
    size_t i, used;
    int first = 0;
    for (i = 0; i < n; i += used) {
        uint32_t c = unicode_character(s + i, n - i, &used);
        int sign =
            t->rules.kind == TOKENISER_DEEPSEEK3 && 1u << unicode_class(t->classes, c) & TOKENISER_SIGN;
        if (i == 0) first = sign;
        if (sign != first || !tokeniser_isolated(t, c)) break;
    }
    return i;
}

/* Bytes of the word that s begins with; at least 1. GPT-2:
     's 't 're ... |  ?letters |  ?digits |  ?others | spaces but the last before a word | spaces
   Llama 3 and those behind it: contractions in any case; one character that is no letter, digit or end of
   line goes with the letters behind it; a few digits; others take ends of lines behind them; spaces up to the
   last end of line are a word. Digits one by one: what lies between them is cut as if it stood alone. V3: so
   are digits and isolated characters; no contractions, but one sign of ASCII with letters of ASCII behind it;
   marks count as letters; what is none of all this stays together. */
static inline size_t tokeniser_word(const tokeniser *t, const char *s, size_t n) {
    uint32_t kind = t->rules.kind, others = TOKENISER_OTHER;
    int old = kind == TOKENISER_GPT2 || kind == TOKENISER_APART, v3 = kind == TOKENISER_DEEPSEEK3;
    size_t i, line, used, space, last;
    if (kind == TOKENISER_DEEPSEEK || kind == TOKENISER_CODER) return tokeniser_deepseek_word(t, s, n);
    if (kind == TOKENISER_APART) {
        if ((i = tokeniser_run(t, s, n, TOKENISER_DIGIT, 1)) > 0) return i;
        i = tokeniser_run(t, s, n, TOKENISER_SPACE, SIZE_MAX); /* no word goes past the spaces behind it */
        n = i + tokeniser_run(t, s + i, n - i, ~(uint32_t)(TOKENISER_DIGIT | TOKENISER_SPACE), SIZE_MAX);
    }
    if ((i = tokeniser_isolated_word(t, s, n)) > 0) return i;
    if (kind == TOKENISER_LLAMA3 || old) i = tokeniser_contraction(s, n, !old);
    if (i) return i;
    space = s[0] == ' ';
    if (old) {
        static const uint32_t classes[] = {TOKENISER_LETTER, TOKENISER_DIGIT, TOKENISER_OTHER};
        for (line = 0; line < 3; line++)
            if ((i = tokeniser_run(t, s + space, n - space, classes[line], SIZE_MAX)) > 0) return space + i;
    } else {
        if (v3) {
            others = TOKENISER_SIGN;
            for (i = 1; i < n && ((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z'));) i++;
            if (i > 1 && s[0] > ' ' && s[0] < 127 && 1u << tokeniser_class(t, s, n, &used) & TOKENISER_SIGN)
                return i;
        }
        if ((i = tokeniser_letters(t, s, n)) > 0) return i;
        if ((i = tokeniser_run(t, s, n, TOKENISER_DIGIT, t->rules.digits)) > 0) return i;
        if ((i = tokeniser_run(t, s + space, n - space, others, SIZE_MAX)) > 0) {
            i += space;
            while (i < n && (s[i] == '\n' || s[i] == '\r' || (s[i] == '/' && kind == TOKENISER_GPT4O))) i++;
            return i;
        }
        for (i = 0; v3 && tokeniser_class(t, s + i, n - i, &used) == UNICODE_OTHER; i += used)
            if (i && tokeniser_letters(t, s + i, n - i)) break;
        if (i) return i;
    }
    for (i = line = last = 0; i < n && tokeniser_class(t, s + i, n - i, &used) == UNICODE_SPACE; i += used) {
        if (s[i] == '\n' || s[i] == '\r') line = i + 1;
        last = i;
    }
    if (!old && line) return line;
    if (v3 && 1u << tokeniser_class(t, s + i, n - i, &used) & (TOKENISER_DIGIT | 1 << TOKENISER_ISOLATED))
        return i; /* as at the text's end */
    return i < n && last ? last : i;
}

/* -- the two ways -- */

/* Room that tokeniser_encode needs: tokens. */
static inline size_t tokeniser_room(size_t bytes) { return 4 * bytes + 8; }

/* A part of a text: between special tokens, or one of those. */
typedef struct tokeniser_part {
    size_t at, bytes;
    uint32_t token; /* TOKEN_NONE: text */
} tokeniser_part;

/* Where a special token stands in text[at ... end - 1], SIZE_MAX: nowhere. A control token must be marked. */
static inline size_t tokeniser_place(const tokeniser *t, uint32_t token, const char *text, const char *marks,
                                     size_t at, size_t end) {
    gguf_text p = t->token[token];
    int control = tokeniser_type(t, token) == TOKEN_CONTROL;
    for (; at + p.bytes <= end; at++) {
        const char *first = (const char *)memchr(text + at, p.at[0], end - p.bytes - at + 1);
        size_t k;
        if (!first) return SIZE_MAX;
        at = (size_t)(first - text);
        if (memcmp(first, p.at, p.bytes)) continue;
        for (k = 0; control && marks && k < p.bytes && marks[at + k];) k++;
        if (!control || (marks && k == p.bytes)) return at;
    }
    return SIZE_MAX;
}

static inline void tokeniser_push(tokeniser_part *part, size_t *n, size_t at, size_t end, uint32_t token) {
    if (at == end) return;
    part[*n].at = at;
    part[*n].bytes = end - at;
    part[(*n)++].token = token;
}

/* The parts of a text, in an array to be freed, *count of them; NULL: no memory. */
static inline tokeniser_part *tokeniser_parts(const tokeniser *t, const char *text, size_t bytes,
                                              const char *marks, size_t *count) {
    tokeniser_part *part = (tokeniser_part *)malloc((bytes + 1) * sizeof *part); /* each has a byte or more */
    tokeniser_part *next = (tokeniser_part *)malloc((bytes + 1) * sizeof *part), *keep;
    size_t n = 0, i, made;
    uint32_t s;
    if (part && next) tokeniser_push(part, &n, 0, bytes, TOKEN_NONE);
    for (s = 0; n && s < t->specials; s++) {
        uint32_t token = t->special[s];
        if (tokeniser_place(t, token, text, marks, 0, bytes) == SIZE_MAX) continue;
        for (i = made = 0; i < n; i++) {
            size_t at = part[i].at, end = at + part[i].bytes, found;
            while (part[i].token == TOKEN_NONE
                   && (found = tokeniser_place(t, token, text, marks, at, end)) != SIZE_MAX) {
                tokeniser_push(next, &made, at, found, TOKEN_NONE);
                at = found + t->token[token].bytes;
                tokeniser_push(next, &made, found, at, token);
            }
            tokeniser_push(next, &made, at, end, part[i].token);
        }
        keep = part, part = next, next = keep;
        n = made;
    }
    *count = n;
    if (!part || !next) {
        free(part);
        part = NULL;
    }
    free(next);
    return part;
}

/* Tokens of a part between special tokens. plain: room for 3 bytes + 4 bytes. */
static inline size_t tokeniser_encode_part(const tokeniser *t, const char *text, size_t bytes, char *plain,
                                           uint32_t *tokens) {
    size_t i, n = 0, count = 0, got, word;
    if (!t->bpe) {
        if (t->add_space && bytes) memcpy(plain, "\xe2\x96\x81", 3), n = 3;
        for (i = 0; i < bytes; i++)
            if (text[i] == ' ')
                memcpy(plain + n, "\xe2\x96\x81", 3), n += 3;
            else
                plain[n++] = text[i];
        return tokeniser_join(t, plain, n, tokens);
    }
    for (i = 0; i < bytes; i += word) {
        size_t k;
        word = tokeniser_word(t, text + i, bytes - i);
        for (k = n = 0; k < word; k++)
            n += tokeniser_put(plain + n, tokeniser_byte_character((unsigned char)text[i + k]));
        got = tokeniser_join(t, plain, n, tokens + count);
        if (got == SIZE_MAX) return SIZE_MAX;
        count += got;
    }
    return count;
}

/* Tokens of a text into tokens[tokeniser_room(bytes)]; begins with the token of a beginning, where the file
   asks for it. marks: NULL, or a byte for each of the text's, 1 where control tokens are looked for. Returns
   how many, or SIZE_MAX without memory. */
static inline size_t tokeniser_encode_marked(const tokeniser *t, const char *text, size_t bytes,
                                             const char *marks, uint32_t *tokens) {
    char *plain = (char *)malloc(3 * bytes + 4);
    size_t i, count = 0, got, parts = 0;
    tokeniser_part *part = plain ? tokeniser_parts(t, text, bytes, marks, &parts) : NULL;
    if (!part) count = SIZE_MAX;
    if (part && t->add_bos && t->bos != TOKEN_NONE && !(parts && part[0].token == t->bos))
        tokens[count++] = t->bos;
    for (i = 0; count != SIZE_MAX && i < parts; i++) {
        size_t at = part[i].at, left = part[i].bytes;
        if (part[i].token != TOKEN_NONE) {
            tokens[count++] = part[i].token;
            continue;
        }
        for (; t->strip && i && left && strchr(" \n\t\r\v\f", text[at]) && text[at]; left--) at++;
        got = tokeniser_encode_part(t, text + at, left, plain, tokens + count);
        count = got == SIZE_MAX ? got : count + got;
    }
    free(plain);
    free(part);
    return count;
}

static inline size_t tokeniser_encode(const tokeniser *t, const char *text, size_t bytes, uint32_t *tokens) {
    return tokeniser_encode_marked(t, text, bytes, NULL, tokens);
}

/* The bytes of a token into to[room]; control tokens have none. `first`: the token stands at the beginning,
   where the space that encoding puts before a text is dropped. Returns how many. */
static inline size_t tokeniser_piece(const tokeniser *t, uint32_t token, int first, char *to, size_t room) {
    gguf_text p;
    uint32_t type;
    size_t i, n = 0, used;
    if (token >= t->count) return 0;
    p = t->token[token];
    type = tokeniser_type(t, token);
    if (type == TOKEN_CONTROL || type == TOKEN_UNKNOWN) return 0;
    if (type == TOKEN_BYTE && p.bytes == 6) {
        unsigned b;
        for (b = 0; b < 256; b++)
            if (t->byte[b] == token && room) {
                to[0] = (char)b;
                return 1;
            }
    }
    for (i = 0; i < p.bytes && n < room; i += used) {
        if (t->bpe && type != TOKEN_USER) {
            unsigned b = tokeniser_character_byte(tokeniser_character(p.at + i, p.bytes - i, &used));
            if (b < 256) to[n++] = (char)b;
        } else if (!t->bpe && p.bytes - i >= 3 && memcmp(p.at + i, "\xe2\x96\x81", 3) == 0) {
            used = 3;
            if (!(first && i == 0 && t->add_space)) to[n++] = ' ';
        } else {
            used = 1;
            to[n++] = p.at[i];
        }
    }
    return n;
}

#endif
