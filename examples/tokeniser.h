/* tokeniser.h - text to tokens and back, by the tokeniser that a GGUF file carries.

   Two kinds, by tokenizer.ggml.model:
     "llama"  SentencePiece: the text, with spaces as U+2581, in characters; again and again the adjacent pair
              whose joined piece has the highest score becomes one; characters that are no piece become bytes
              (T. Kudo, J. Richardson, "SentencePiece", 2018)
     "gpt2"   byte pair encoding: the text is cut into words, their bytes are written as printable
              characters, and the pair that stands first in the list of merges becomes one (R. Sennrich,
              B. Haddow, A. Birch, "Neural machine translation of rare words with subword units", 2016)

   Words of "gpt2" are cut by the rules of GPT-2, Llama 3 or Qwen 2 (tokenizer.ggml.pre), where every
   character past ASCII counts as a letter: exact for ASCII and for text of letters, not for punctuation of
   other scripts. Control tokens are not looked for in a text. */
#ifndef EXAMPLES_TOKENISER_H
#define EXAMPLES_TOKENISER_H

#include "gguf.h"

enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_BYTE = 6
}; /* tokenizer.ggml.token_type */
#define TOKEN_NONE 0xffffffffu

typedef struct tokeniser_merge {
    gguf_text left, right;
    uint32_t rank;
} tokeniser_merge;

typedef struct tokeniser {
    int bpe;                             /* 1: "gpt2" */
    int digits;                          /* bpe: digits of a word at most; 0: no limit, GPT-2's rules */
    uint32_t count;                      /* tokens */
    gguf_text *token;                    /* [count] */
    uint32_t *sorted;                    /* [count] tokens by their text */
    const unsigned char *scores, *types; /* f32, i32 [count], in the file's head; or NULL */
    tokeniser_merge *merge;              /* bpe: sorted by left, right */
    size_t merges;
    uint32_t bos, eos, unknown, eot; /* TOKEN_NONE: there is none */
    int add_bos, add_space;
    size_t longest; /* bytes of the longest token: room for any piece */
    uint32_t byte[256]; /* the token of each byte, or TOKEN_NONE */
} tokeniser;

static inline void tokeniser_free(tokeniser *t) {
    free(t->token);
    free(t->sorted);
    free(t->merge);
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
    return t->types ? (uint32_t)gguf_little(t->types + 4 * (size_t)token, 4) : TOKEN_NORMAL;
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
    if (!lines) return gguf_fail(why, gguf_place(g, "tokenizer.ggml.merges"),
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

/* The rules by which words are cut, by their name in the file. */
#define TOKENISER_RULES(X)                                                                                   \
    X("default", 0)                                                                                          \
    X("gpt-2", 0)                                                                                            \
    X("llama-bpe", 3)                                                                                        \
    X("llama3", 3)                                                                                           \
    X("llama-v3", 3)                                                                                         \
    X("qwen2", 1)

static inline int tokeniser_read_rules(tokeniser *t, const gguf *g, gguf_error *why) {
    static const char key[] = "tokenizer.ggml.pre";
    gguf_text pre;
    if (!gguf_find(g, key)) return 0;
    if (!gguf_get_text(g, key, &pre)) return gguf_fail(why, gguf_place(g, key), "'%s' is no string", key);
#define TOKENISER_RULE(name, limit)                                                                          \
    if (gguf_is(pre, name)) {                                                                                \
        t->digits = limit;                                                                                   \
        return 0;                                                                                            \
    }
    TOKENISER_RULES(TOKENISER_RULE)
#define TOKENISER_RULE_NAME(name, limit) " " name
    return gguf_fail(why, gguf_place(g, key), "words cut by the rules '%.*s', known are:%s", gguf_shown(pre),
                     pre.at, TOKENISER_RULES(TOKENISER_RULE_NAME));
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
    if ((t->bpe && tokeniser_read_rules(t, g, why))
        || tokeniser_special(g, t, "tokenizer.ggml.bos_token_id", &t->bos, why)
        || tokeniser_special(g, t, "tokenizer.ggml.eos_token_id", &t->eos, why)
        || tokeniser_special(g, t, "tokenizer.ggml.eot_token_id", &t->eot, why)
        || tokeniser_special(g, t, "tokenizer.ggml.unknown_token_id", &t->unknown, why)) {
        tokeniser_free(t);
        return 1;
    }
    t->add_bos = t->add_space = !t->bpe;
    if (t->digits == 3) t->add_bos = 1;
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

static inline int tokeniser_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static inline int tokeniser_is_digit(char c) { return c >= '0' && c <= '9'; }

static inline int tokeniser_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static inline int tokeniser_is_other(char c) {
    return !tokeniser_is_letter(c) && !tokeniser_is_digit(c) && !tokeniser_is_space(c);
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

/* Bytes of the word that s begins with; at least 1. GPT-2 (digits 0):
     's 't 're ... |  ?letters |  ?digits |  ?others | spaces but the last before a word | spaces
   Llama 3 and Qwen 2: contractions in any case; one character that is no letter, digit or end of line goes
   with the letters behind it; digits by threes or ones; others take ends of lines behind them; spaces up to
   the last end of line are a word. */
static inline size_t tokeniser_word(const char *s, size_t n, int digits) {
    size_t i = tokeniser_contraction(s, n, digits != 0), line;
    if (i) return i;
    if (digits == 0) {
        size_t space = s[0] == ' ' && n > 1 && !tokeniser_is_space(s[1]);
        int (*is)(char) = tokeniser_is_letter(s[space])  ? tokeniser_is_letter
                          : tokeniser_is_digit(s[space]) ? tokeniser_is_digit
                                                         : tokeniser_is_other;
        for (i = space; i < n && is(s[i]); i++) {
        }
        if (i > space) return i;
    } else {
        size_t lead = !tokeniser_is_letter(s[0]) && !tokeniser_is_digit(s[0]) && s[0] != '\n' && s[0] != '\r'
                      && n > 1 && tokeniser_is_letter(s[1]);
        for (i = lead; i < n && tokeniser_is_letter(s[i]); i++) {
        }
        if (i > lead) return i;
        for (i = 0; i < n && i < (size_t)digits && tokeniser_is_digit(s[i]); i++) {
        }
        if (i) return i;
        lead = s[0] == ' ' && n > 1 && tokeniser_is_other(s[1]);
        for (i = lead; i < n && tokeniser_is_other(s[i]); i++) {
        }
        if (i > lead) {
            while (i < n && (s[i] == '\n' || s[i] == '\r')) i++;
            return i;
        }
    }
    for (i = line = 0; i < n && tokeniser_is_space(s[i]); i++)
        if (s[i] == '\n' || s[i] == '\r') line = i + 1;
    if (digits && line) return line;
    return i < n && i > 1 ? i - 1 : i;
}

/* -- the two ways -- */

/* Room that tokeniser_encode needs: tokens. */
static inline size_t tokeniser_room(size_t bytes) { return 3 * bytes + 8; }

/* Tokens of a text into tokens[tokeniser_room(bytes)]; begins with the token of a beginning, where the file
   asks for it. Returns how many, or SIZE_MAX without memory. */
static inline size_t tokeniser_encode(const tokeniser *t, const char *text, size_t bytes, uint32_t *tokens) {
    char *plain = (char *)malloc(3 * bytes + 4);
    size_t i, n = 0, count = 0, got, word;
    if (!plain) return SIZE_MAX;
    if (t->add_bos && t->bos != TOKEN_NONE) tokens[count++] = t->bos;
    if (!t->bpe) {
        if (t->add_space && bytes) memcpy(plain, "\xe2\x96\x81", 3), n = 3;
        for (i = 0; i < bytes; i++)
            if (text[i] == ' ')
                memcpy(plain + n, "\xe2\x96\x81", 3), n += 3;
            else
                plain[n++] = text[i];
        got = tokeniser_join(t, plain, n, tokens + count);
        count = got == SIZE_MAX ? got : count + got;
    } else {
        for (i = 0; i < bytes && count != SIZE_MAX; i += word) {
            size_t k;
            word = tokeniser_word(text + i, bytes - i, t->digits);
            for (k = n = 0; k < word; k++)
                n += tokeniser_put(plain + n, tokeniser_byte_character((unsigned char)text[i + k]));
            got = tokeniser_join(t, plain, n, tokens + count);
            count = got == SIZE_MAX ? got : count + got;
        }
    }
    free(plain);
    return count;
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
        if (t->bpe) {
            unsigned b = tokeniser_character_byte(tokeniser_character(p.at + i, p.bytes - i, &used));
            if (b < 256) to[n++] = (char)b;
        } else if (p.bytes - i >= 3 && memcmp(p.at + i, "\xe2\x96\x81", 3) == 0) {
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
