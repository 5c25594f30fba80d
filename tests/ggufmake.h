/* ggufmake.h - makes GGUF files in memory, for tests: whole ones and, by its parts, broken ones. */
#ifndef GGUFMAKE_H
#define GGUFMAKE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_maker {
    unsigned char *at;
    size_t bytes, room;
} gguf_maker;

static inline void make_bytes(gguf_maker *m, const void *from, size_t bytes)
{
    if (m->bytes + bytes > m->room) {
        unsigned char *more;
        m->room = 2 * (m->bytes + bytes) + 256;
        more = (unsigned char *)realloc(m->at, m->room);
        if (!more) abort();
        m->at = more;
    }
    if (bytes) memcpy(m->at + m->bytes, from, bytes);
    m->bytes += bytes;
}

static inline void make_little(gguf_maker *m, uint64_t x, unsigned bytes)
{
    unsigned char b[8];
    unsigned i;
    for (i = 0; i < 8; i++) b[i] = (unsigned char)(x >> 8 * i & 255);
    make_bytes(m, b, bytes);
}

static inline void make_text(gguf_maker *m, const char *s)
{
    make_little(m, strlen(s), 8);
    make_bytes(m, s, strlen(s));
}

static inline void make_float(gguf_maker *m, float x)
{
    make_bytes(m, &x, 4);
}

/* The file's first 24 bytes. */
static inline void make_start(gguf_maker *m, uint64_t tensors, uint64_t values)
{
    m->bytes = 0;
    make_bytes(m, "GGUF", 4);
    make_little(m, 3, 4);
    make_little(m, tensors, 8);
    make_little(m, values, 8);
}

/* A value's key and type; the value follows. */
static inline void make_key(gguf_maker *m, const char *key, uint32_t type)
{
    make_text(m, key);
    make_little(m, type, 4);
}

static inline void make_value_u32(gguf_maker *m, const char *key, uint32_t x)
{
    make_key(m, key, 4);
    make_little(m, x, 4);
}

static inline void make_value_float(gguf_maker *m, const char *key, float x)
{
    make_key(m, key, 6);
    make_float(m, x);
}

static inline void make_value_text(gguf_maker *m, const char *key, const char *text)
{
    make_key(m, key, 8);
    make_text(m, text);
}

/* An array's key, element type and length; the elements follow. */
static inline void make_array(gguf_maker *m, const char *key, uint32_t element, uint64_t count)
{
    make_key(m, key, 9);
    make_little(m, element, 4);
    make_little(m, count, 8);
}

/* A tensor of one dimension (rows 0) or two; the offset is relative to the data. */
/* So many matrices; of 0 rows a vector. */
static inline void make_matrices(gguf_maker *m, const char *name, uint64_t columns, uint64_t rows, uint64_t matrices,
                                 uint32_t type, uint64_t offset)
{
    make_text(m, name);
    make_little(m, rows ? matrices > 1 ? 3 : 2 : 1, 4);
    make_little(m, columns, 8);
    if (rows) make_little(m, rows, 8);
    if (rows && matrices > 1) make_little(m, matrices, 8);
    make_little(m, type, 4);
    make_little(m, offset, 8);
}

static inline void make_tensor(gguf_maker *m, const char *name, uint64_t columns, uint64_t rows,
                               uint32_t type, uint64_t offset)
{
    make_matrices(m, name, columns, rows, 1, type, offset);
}

/* Zeros up to a multiple of 32, where the data begin. */
static inline void make_padding(gguf_maker *m)
{
    while (m->bytes % 32) make_little(m, 0, 1);
}

#endif
