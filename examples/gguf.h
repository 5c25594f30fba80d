/* gguf.h - reads the head of a GGUF file (versions 2 and 3): its values, its tensors and where they lie.

   Every count, length, type, offset and size is checked before it is used, against the file's real size: a
   file that is broken, cut short or made to harm is refused with the offset and the reason. Nothing is
   believed, nothing is allocated by a count that the bytes do not back. C99 and fseeko; functions are static.

       gguf g;
       gguf_error why;
       FILE *f = fopen(path, "rb");
       if (gguf_read(&g, f, &why)) printf("%s, at byte %llu\n", why.text, (unsigned long long)why.offset);
       ... gguf_get_u32(&g, "llama.block_count", ...), gguf_tensor_find(&g, "token_embd.weight") ...
       gguf_free(&g);

   The format: "GGUF", u32 version, u64 tensors, u64 values; each value a string key, u32 type, and the value;
   each tensor a string name, u32 dimensions, u64 sizes (fastest first), u32 type, u64 offset into the data,
   which begin at the next multiple of the alignment. A string is u64 bytes and those; an array u32 type, u64
   count and so many. */
#ifndef EXAMPLES_GGUF_H
#define EXAMPLES_GGUF_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types of values. */
enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPES
};

/* X(name, number, values of a block, bytes of a block): types of tensors. */
#define GGUF_FORMATS(X)                                                                                      \
    X(F32, 0, 1, 4)                                                                                          \
    X(F16, 1, 1, 2)                                                                                          \
    X(Q4_0, 2, 32, 18)                                                                                       \
    X(Q4_1, 3, 32, 20)                                                                                       \
    X(Q5_0, 6, 32, 22)                                                                                       \
    X(Q5_1, 7, 32, 24)                                                                                       \
    X(Q8_0, 8, 32, 34)                                                                                       \
    X(Q8_1, 9, 32, 36)                                                                                       \
    X(Q2_K, 10, 256, 84)                                                                                     \
    X(Q3_K, 11, 256, 110)                                                                                    \
    X(Q4_K, 12, 256, 144)                                                                                    \
    X(Q5_K, 13, 256, 176)                                                                                    \
    X(Q6_K, 14, 256, 210)                                                                                    \
    X(Q8_K, 15, 256, 292)                                                                                    \
    X(IQ2_XXS, 16, 256, 66)                                                                                  \
    X(IQ2_XS, 17, 256, 74)                                                                                   \
    X(IQ3_XXS, 18, 256, 98)                                                                                  \
    X(IQ1_S, 19, 256, 50)                                                                                    \
    X(IQ4_NL, 20, 32, 18)                                                                                    \
    X(IQ3_S, 21, 256, 110)                                                                                   \
    X(IQ2_S, 22, 256, 82)                                                                                    \
    X(IQ4_XS, 23, 256, 136)                                                                                  \
    X(I8, 24, 1, 1)                                                                                          \
    X(I16, 25, 1, 2)                                                                                         \
    X(I32, 26, 1, 4)                                                                                         \
    X(I64, 27, 1, 8)                                                                                         \
    X(F64, 28, 1, 8)                                                                                         \
    X(IQ1_M, 29, 256, 56)                                                                                    \
    X(BF16, 30, 1, 2)                                                                                        \
    X(TQ1_0, 34, 256, 54)                                                                                    \
    X(TQ2_0, 35, 256, 66)                                                                                    \
    X(MXFP4, 39, 32, 17)                                                                                     \
    X(NVFP4, 40, 64, 36)
#define GGUF_FORMAT_ENUM(name, number, values, bytes) GGUF_FORMAT_##name = number,
enum gguf_format { GGUF_FORMATS(GGUF_FORMAT_ENUM) GGUF_FORMAT_NONE = -1 };

/* What is wrong, and where in the file; what is missing is missed where it would have stood. */
#define GGUF_NOWHERE UINT64_MAX /* of what is wrong with something else: memory, a device */

/* What a head may hold: the largest in circulation have 20 MB, and single strings of 100 KB. */
#define GGUF_HEAD_MAX (256ull << 20)
#define GGUF_STRING_MAX (16ull << 20)
typedef struct gguf_error {
    uint64_t offset;
    char text[320];
} gguf_error;

/* A string in the file: not terminated. */
typedef struct gguf_text {
    const char *at;
    size_t bytes;
} gguf_text;

typedef struct gguf_value {
    gguf_text key;
    uint32_t type, element; /* element: the type within an array */
    uint64_t count;         /* of an array; else 1 */
    const unsigned char *at;
    uint64_t offset;
} gguf_value;

typedef struct gguf_tensor {
    gguf_text name;
    uint32_t dimensions, format;
    uint64_t size[4]; /* fastest first: a matrix has its columns, then its rows; 1 past the dimensions */
    uint64_t offset, bytes; /* in the file */
} gguf_tensor;

typedef struct gguf {
    unsigned char *head; /* the file's first bytes: values and tensors, whose texts point in here */
    size_t head_bytes;
    uint64_t file_bytes;
    uint32_t version;
    uint64_t alignment;
    uint64_t values_end, tensors_end; /* where the lines of values end, and those of tensors */
    size_t values, tensors;
    gguf_value *value;   /* sorted by key */
    gguf_tensor *tensor; /* sorted by name */
} gguf;

/* Bytes that are walked through. */
typedef struct gguf_walk {
    const unsigned char *data;
    uint64_t at, have, file_bytes;
    gguf_error *why;
    int more; /* the walk ended at `have`, which is not the file's end */
} gguf_walk;

static inline int gguf_fail(gguf_error *why, uint64_t offset, const char *format, ...) {
    va_list list;
    why->offset = offset;
    va_start(list, format);
    vsnprintf(why->text, sizeof why->text, format, list);
    va_end(list);
    return 1;
}

/* For "%.*s": at most 80 bytes of a text, and no more than its printable beginning. */
static inline int gguf_shown(gguf_text t) {
    size_t n = 0;
    while (n < t.bytes && n < 80 && t.at[n] >= 0x20 && t.at[n] < 0x7f) n++;
    return (int)n;
}

static inline uint64_t gguf_little(const unsigned char *at, unsigned bytes) {
    uint64_t x = 0;
    while (bytes--) x = x << 8 | at[bytes];
    return x;
}

/* The next `bytes` bytes, or NULL. */
static inline const unsigned char * gguf_take(gguf_walk *w, uint64_t bytes, const char *what) {
    const unsigned char *at = w->data + w->at;
    if (bytes > w->file_bytes - w->at) {
        gguf_fail(w->why, w->at, "%s: %llu bytes, but the file ends after %llu", what,
                  (unsigned long long)bytes, (unsigned long long)(w->file_bytes - w->at));
        return NULL;
    }
    if (bytes > w->have - w->at) {
        w->more = 1;
        return NULL;
    }
    w->at += bytes;
    return at;
}

static inline int gguf_number(gguf_walk *w, unsigned bytes, uint64_t *x, const char *what) {
    const unsigned char *at = gguf_take(w, bytes, what);
    if (at) *x = gguf_little(at, bytes);
    return at == NULL;
}

/* A string of `least` to `most` bytes. The length is checked before the bytes are asked for. */
static inline int gguf_string(gguf_walk *w, gguf_text *t, uint64_t least, uint64_t most, const char *what) {
    uint64_t bytes;
    const unsigned char *at;
    if (gguf_number(w, 8, &bytes, what)) return 1;
    if (bytes < least || bytes > most)
        return gguf_fail(w->why, w->at - 8, "%s of %llu bytes, must be %llu to %llu", what,
                         (unsigned long long)bytes, (unsigned long long)least, (unsigned long long)most);
    at = gguf_take(w, bytes, what);
    if (!at) return 1;
    t->at = (const char *)at;
    t->bytes = (size_t)bytes;
    return 0;
}

/* Bytes of a value of the type; 0 for strings and arrays. */
static inline unsigned gguf_type_bytes(uint32_t type) {
    static const unsigned char bytes[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < GGUF_TYPES ? bytes[type] : 0;
}

/* Steps over `count` values of the type, looking at each that could be wrong. */
static inline int gguf_skip(gguf_walk *w, uint32_t type, uint64_t count, gguf_text key) {
    const unsigned char *at;
    gguf_text text;
    uint64_t i;
    if (type == GGUF_STRING) {
        for (i = 0; i < count; i++)
            if (gguf_string(w, &text, 0, GGUF_STRING_MAX, "a string")) return 1;
        return 0;
    }
    if (count > GGUF_HEAD_MAX / gguf_type_bytes(type))
        return gguf_fail(w->why, w->at, "'%.*s': an array of %llu", gguf_shown(key), key.at,
                         (unsigned long long)count);
    at = gguf_take(w, count * gguf_type_bytes(type), "a value");
    if (!at) return 1;
    for (i = 0; type == GGUF_BOOL && i < count; i++)
        if (at[i] > 1)
            return gguf_fail(w->why, w->at - count + i, "'%.*s': a bool that is %u", gguf_shown(key), key.at,
                             at[i]);
    return 0;
}

static inline int gguf_take_value(gguf_walk *w, gguf_value *v) {
    uint64_t x;
    if (gguf_string(w, &v->key, 1, 65535, "a key")) return 1;
    if (gguf_number(w, 4, &x, "a value's type")) return 1;
    v->type = v->element = (uint32_t)x;
    v->count = 1;
    if (x == GGUF_ARRAY) {
        if (gguf_number(w, 4, &x, "an array's type")) return 1;
        v->element = (uint32_t)x;
        if (x == GGUF_ARRAY)
            return gguf_fail(w->why, w->at - 4, "'%.*s': an array of arrays", gguf_shown(v->key), v->key.at);
    }
    if (x >= GGUF_TYPES)
        return gguf_fail(w->why, w->at - 4, "'%.*s': type %llu is none", gguf_shown(v->key), v->key.at,
                         (unsigned long long)x);
    if (v->type == GGUF_ARRAY && gguf_number(w, 8, &v->count, "an array's length")) return 1;
    v->offset = w->at;
    v->at = w->data + w->at;
    return gguf_skip(w, v->element, v->count, v->key);
}

/* Values and bytes of a block; 0 for an unknown format. */
static inline int gguf_block(uint32_t format, uint64_t *values, uint64_t *bytes) {
#define GGUF_BLOCK_CASE(name, number, v, b)                                                                  \
    case number: *values = v, *bytes = b; return 1;
    switch (format) {
        GGUF_FORMATS(GGUF_BLOCK_CASE)
    default: return 0;
    }
}

static inline const char * gguf_format_name(uint32_t format) {
#define GGUF_NAME_CASE(name, number, v, b)                                                                   \
    case number: return #name;
    switch (format) {
        GGUF_FORMATS(GGUF_NAME_CASE)
    default: return "?";
    }
}

/* A tensor's lines; its offset stays relative to the data, whose beginning is not known yet. */
static inline int gguf_take_tensor(gguf_walk *w, gguf_tensor *t) {
    uint64_t x, i, values, bytes, elements = 1;
    if (gguf_string(w, &t->name, 1, 65535, "a tensor's name")) return 1;
    if (gguf_number(w, 4, &x, "a tensor's dimensions")) return 1;
    if (x < 1 || x > 4)
        return gguf_fail(w->why, w->at - 4, "'%.*s': %llu dimensions, must be 1 to 4", gguf_shown(t->name),
                         t->name.at, (unsigned long long)x);
    t->dimensions = (uint32_t)x;
    for (i = 0; i < 4; i++) {
        t->size[i] = 1;
        if (i >= t->dimensions) continue;
        if (gguf_number(w, 8, &t->size[i], "a tensor's size")) return 1;
        if (t->size[i] == 0 || t->size[i] > (UINT64_MAX >> 4) / elements)
            return gguf_fail(w->why, w->at - 8, "'%.*s': size %llu of dimension %llu", gguf_shown(t->name),
                             t->name.at, (unsigned long long)t->size[i], (unsigned long long)i);
        elements *= t->size[i];
    }
    if (gguf_number(w, 4, &x, "a tensor's type")) return 1;
    t->format = (uint32_t)x;
    if (!gguf_block(t->format, &values, &bytes))
        return gguf_fail(w->why, w->at - 4, "'%.*s': tensor type %llu is not known", gguf_shown(t->name),
                         t->name.at, (unsigned long long)x);
    if (t->size[0] % values)
        return gguf_fail(w->why, w->at - 4, "'%.*s': rows of %llu values, %s has blocks of %llu",
                         gguf_shown(t->name), t->name.at, (unsigned long long)t->size[0],
                         gguf_format_name(t->format), (unsigned long long)values);
    elements /= values;
    if (elements > UINT64_MAX / bytes)
        return gguf_fail(w->why, w->at - 4, "'%.*s': more than 2^64 bytes", gguf_shown(t->name), t->name.at);
    t->bytes = elements * bytes;
    return gguf_number(w, 8, &t->offset, "a tensor's offset");
}

static inline int gguf_compare_texts(gguf_text a, gguf_text b) {
    int order = memcmp(a.at, b.at, a.bytes < b.bytes ? a.bytes : b.bytes);
    return order ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static inline int gguf_by_key(const void *a, const void *b) {
    return gguf_compare_texts(((const gguf_value *)a)->key, ((const gguf_value *)b)->key);
}

static inline int gguf_by_name(const void *a, const void *b) {
    return gguf_compare_texts(((const gguf_tensor *)a)->name, ((const gguf_tensor *)b)->name);
}

static inline int gguf_by_offset(const void *a, const void *b) {
    uint64_t x = ((const gguf_tensor *)a)->offset, y = ((const gguf_tensor *)b)->offset;
    return (x > y) - (x < y);
}

static inline const gguf_value * gguf_find(const gguf *g, const char *key) {
    gguf_value v;
    v.key.at = key;
    v.key.bytes = strlen(key);
    return g->values ? (const gguf_value *)bsearch(&v, g->value, g->values, sizeof v, gguf_by_key) : NULL;
}

static inline const gguf_tensor * gguf_tensor_find(const gguf *g, const char *name) {
    gguf_tensor t;
    t.name.at = name;
    t.name.bytes = strlen(name);
    return g->tensors ? (const gguf_tensor *)bsearch(&t, g->tensor, g->tensors, sizeof t, gguf_by_name)
                      : NULL;
}

static inline void gguf_free(gguf *g) {
    free(g->head);
    free(g->value);
    free(g->tensor);
    memset(g, 0, sizeof *g);
}

/* Room for one element more. Grows as elements are met, not by what the file claims. */
static inline void *gguf_grow(void *array, size_t count, size_t bytes) {
    if (count & (count - 1)) return array; /* room for the next power of two is there */
    return realloc(array, (count ? 2 * count : 1) * bytes);
}

static inline int gguf_take_all(gguf *g, gguf_walk *w, uint64_t values, uint64_t tensors) {
    uint64_t i;
    for (i = 0; i < values; i++) {
        void *more = gguf_grow(g->value, g->values, sizeof *g->value);
        if (!more) return gguf_fail(w->why, GGUF_NOWHERE, "no memory for %llu values", (unsigned long long)i);
        g->value = (gguf_value *)more;
        if (gguf_take_value(w, &g->value[g->values])) return 1;
        g->values++;
    }
    g->values_end = w->at;
    for (i = 0; i < tensors; i++) {
        void *more = gguf_grow(g->tensor, g->tensors, sizeof *g->tensor);
        if (!more)
            return gguf_fail(w->why, GGUF_NOWHERE, "no memory for %llu tensors", (unsigned long long)i);
        g->tensor = (gguf_tensor *)more;
        if (gguf_take_tensor(w, &g->tensor[g->tensors])) return 1;
        g->tensors++;
    }
    g->tensors_end = w->at;
    return 0;
}

/* Whether every tensor lies in the file, aligned, and none in another; and whether names are single. */
static inline int gguf_check_places(gguf *g, uint64_t data, gguf_error *why) {
    size_t i;
    for (i = 0; i < g->tensors; i++) {
        gguf_tensor *t = &g->tensor[i];
        if (t->offset % g->alignment)
            return gguf_fail(why, (uint64_t)((const unsigned char *)t->name.at - g->head),
                             "'%.*s': offset %llu is no multiple of the alignment, %llu", gguf_shown(t->name),
                             t->name.at, (unsigned long long)t->offset, (unsigned long long)g->alignment);
        if (t->offset > g->file_bytes - data || t->bytes > g->file_bytes - data - t->offset)
            return gguf_fail(why, (uint64_t)((const unsigned char *)t->name.at - g->head),
                             "'%.*s': %llu bytes at offset %llu pass the end of the file's data, %llu",
                             gguf_shown(t->name), t->name.at, (unsigned long long)t->bytes,
                             (unsigned long long)t->offset, (unsigned long long)(g->file_bytes - data));
        t->offset += data;
    }
    if (g->tensors) qsort(g->tensor, g->tensors, sizeof *g->tensor, gguf_by_offset);
    for (i = 1; i < g->tensors; i++)
        if (g->tensor[i].offset - g->tensor[i - 1].offset < g->tensor[i - 1].bytes)
            return gguf_fail(why, g->tensor[i].offset, "'%.*s' lies within '%.*s'",
                             gguf_shown(g->tensor[i].name), g->tensor[i].name.at,
                             gguf_shown(g->tensor[i - 1].name), g->tensor[i - 1].name.at);
    if (g->tensors) qsort(g->tensor, g->tensors, sizeof *g->tensor, gguf_by_name);
    for (i = 1; i < g->tensors; i++)
        if (gguf_by_name(&g->tensor[i - 1], &g->tensor[i]) == 0)
            return gguf_fail(why, (uint64_t)((const unsigned char *)g->tensor[i].name.at - g->head),
                             "two tensors '%.*s'", gguf_shown(g->tensor[i].name), g->tensor[i].name.at);
    return 0;
}

/* Reads the head in g->head. Returns 0; 1 with *why; 2 where the head is longer than what is there of it. */
static inline int gguf_parse_head(gguf *g, gguf_error *why) {
    gguf_walk w;
    const unsigned char *magic;
    const gguf_value *v;
    uint64_t version, tensors, values;
    size_t i;
    memset(&w, 0, sizeof w);
    w.data = g->head;
    w.have = g->head_bytes;
    w.file_bytes = g->file_bytes;
    w.why = why;
    magic = gguf_take(&w, 4, "the word GGUF");
    if (!magic) return 1 + w.more;
    if (memcmp(magic, "GGUF", 4)) return gguf_fail(why, 0, "does not begin with GGUF");
    if (gguf_number(&w, 4, &version, "the version")) return 1 + w.more;
    if (version >> 16 && !(version & 0xffff)) return gguf_fail(why, 4, "a big-endian file");
    if (version != 2 && version != 3)
        return gguf_fail(why, 4, "version %llu, must be 2 or 3", (unsigned long long)version);
    g->version = (uint32_t)version;
    if (gguf_number(&w, 8, &tensors, "the number of tensors")) return 1 + w.more;
    if (gguf_number(&w, 8, &values, "the number of values")) return 1 + w.more;
    if (gguf_take_all(g, &w, values, tensors)) return 1 + w.more;
    if (g->values) qsort(g->value, g->values, sizeof *g->value, gguf_by_key);
    for (i = 1; i < g->values; i++)
        if (gguf_by_key(&g->value[i - 1], &g->value[i]) == 0)
            return gguf_fail(why, g->value[i].offset, "two values '%.*s'", gguf_shown(g->value[i].key),
                             g->value[i].key.at);
    g->alignment = 32;
    v = gguf_find(g, "general.alignment");
    if (v) {
        g->alignment = v->type == GGUF_U32 ? gguf_little(v->at, 4) : 0;
        if (g->alignment < 8 || g->alignment > 1 << 20 || g->alignment & (g->alignment - 1))
            return gguf_fail(why, v->offset,
                             "general.alignment is %llu, must be a power of two, 8 to 2^20, as u32",
                             (unsigned long long)g->alignment);
    }
    /* a file without tensors may end before the padding */
    w.at = (w.at + g->alignment - 1) & ~(g->alignment - 1);
    if (g->tensors && w.at > g->file_bytes)
        return gguf_fail(why, g->file_bytes, "ends before the tensors' data");
    return gguf_check_places(g, w.at < g->file_bytes ? w.at : g->file_bytes, why);
}

/* Takes over `head`, made by malloc: the beginning of a file. Results as of gguf_parse_head. */
static inline int gguf_parse_owned(gguf *g, unsigned char *head, size_t bytes, uint64_t file_bytes,
                                   gguf_error *why) {
    int result;
    memset(g, 0, sizeof *g);
    memset(why, 0, sizeof *why);
    g->head = head;
    g->head_bytes = bytes;
    g->file_bytes = file_bytes;
    result = gguf_parse_head(g, why);
    if (result) gguf_free(g);
    return result;
}

/* A file that lies in memory, or its beginning; `data` is copied. Results as of gguf_parse_head. */
static inline int gguf_parse(gguf *g, const void *data, size_t bytes, uint64_t file_bytes, gguf_error *why) {
    unsigned char *head = (unsigned char *)malloc(bytes ? bytes : 1);
    memset(g, 0, sizeof *g);
    memset(why, 0, sizeof *why);
    if (!head)
        return gguf_fail(why, GGUF_NOWHERE, "no memory for a head of %llu bytes", (unsigned long long)bytes);
    if (bytes) memcpy(head, data, bytes);
    return gguf_parse_owned(g, head, bytes, file_bytes, why);
}

/* The head of an open file: a larger and larger beginning, until the head is in it. Returns 0, or 1 with
   *why; then there is nothing to free. */
static inline int gguf_read(gguf *g, FILE *file, gguf_error *why) {
    size_t bytes = 1 << 18, got;
    long long size;
    memset(g, 0, sizeof *g);
    memset(why, 0, sizeof *why);
    if (fseeko(file, 0, SEEK_END) || (size = (long long)ftello(file)) < 0)
        return gguf_fail(why, GGUF_NOWHERE, "not a file that can be measured: %s", strerror(errno));
    if (size == 0) return gguf_fail(why, 0, "an empty file");
    for (;; bytes *= 4) {
        int result;
        unsigned char *buffer;
        if (bytes > (uint64_t)size) bytes = (size_t)size;
        buffer = (unsigned char *)malloc(bytes ? bytes : 1);
        if (!buffer)
            return gguf_fail(why, GGUF_NOWHERE, "no memory for a head of %llu bytes",
                             (unsigned long long)bytes);
        errno = 0;
        got = fseeko(file, 0, SEEK_SET) ? 0 : fread(buffer, 1, bytes, file);
        if (got != bytes) {
            free(buffer);
            return gguf_fail(why, got, "cannot be read: %s", errno ? strerror(errno) : "it ends here");
        }
        result = gguf_parse_owned(g, buffer, bytes, (uint64_t)size, why);
        if (result != 2) return result;
        if (bytes >= GGUF_HEAD_MAX)
            return gguf_fail(why, bytes, "the head is longer than %llu MiB", GGUF_HEAD_MAX >> 20);
    }
}

/* Where a key's value lies, or would. */
static inline uint64_t gguf_place(const gguf *g, const char *key) {
    const gguf_value *v = gguf_find(g, key);
    return v ? v->offset : g->values_end;
}

/* -- values: each returns 1 and sets *x where the key is there with a value of that sort, else 0 -- */

static inline int gguf_get_u32(const gguf *g, const char *key, uint32_t *x) {
    const gguf_value *v = gguf_find(g, key);
    uint64_t n;
    if (!v || v->type > GGUF_I32) {
        if (!v || (v->type != GGUF_U64 && v->type != GGUF_I64)) return 0;
    }
    n = gguf_little(v->at, gguf_type_bytes(v->type));
    if (v->type == GGUF_I8 && n >> 7) return 0; /* negative */
    if (v->type == GGUF_I16 && n >> 15) return 0;
    if (v->type == GGUF_I32 && n >> 31) return 0;
    if (n > UINT32_MAX) return 0;
    *x = (uint32_t)n;
    return 1;
}

static inline float gguf_float(const unsigned char *at) {
    uint32_t bits = (uint32_t)gguf_little(at, 4);
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline int gguf_get_float(const gguf *g, const char *key, double *x) {
    const gguf_value *v = gguf_find(g, key);
    uint64_t bits;
    if (!v || (v->type != GGUF_F32 && v->type != GGUF_F64)) return 0;
    if (v->type == GGUF_F32) {
        *x = (double)gguf_float(v->at);
    } else {
        bits = gguf_little(v->at, 8);
        memcpy(x, &bits, 8);
    }
    return 1;
}

static inline int gguf_get_bool(const gguf *g, const char *key, int *x) {
    const gguf_value *v = gguf_find(g, key);
    if (!v || v->type != GGUF_BOOL) return 0;
    *x = v->at[0];
    return 1;
}

static inline int gguf_get_text(const gguf *g, const char *key, gguf_text *x) {
    const gguf_value *v = gguf_find(g, key);
    if (!v || v->type != GGUF_STRING) return 0;
    x->bytes = (size_t)gguf_little(v->at, 8);
    x->at = (const char *)v->at + 8;
    return 1;
}

static inline int gguf_is(gguf_text t, const char *word) {
    return t.bytes == strlen(word) && memcmp(t.at, word, t.bytes) == 0;
}

/* The strings of an array, in an array to be freed; NULL without them (or without memory). */
static inline gguf_text * gguf_get_texts(const gguf *g, const char *key, size_t *count) {
    const gguf_value *v = gguf_find(g, key);
    const unsigned char *at;
    gguf_text *texts;
    size_t i;
    if (!v || v->type != GGUF_ARRAY || v->element != GGUF_STRING || v->count == 0) return NULL;
    texts = (gguf_text *)malloc((size_t)v->count
                                * sizeof *texts); /* each stands in the file with 8 bytes or more */
    if (!texts) return NULL;
    for (i = 0, at = v->at; i < v->count; i++, at += texts[i - 1].bytes) {
        texts[i].bytes = (size_t)gguf_little(at, 8);
        at += 8;
        texts[i].at = (const char *)at;
    }
    *count = (size_t)v->count;
    return texts;
}

#endif
