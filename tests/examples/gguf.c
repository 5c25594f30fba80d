/* gguf.c - the reader of GGUF files and their tokenisers (examples/gguf.h, examples/tokeniser.h): what
 * whole files hold, how broken ones are refused, and texts that come back from tokens as they went. Needs no
 * driver. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../check.h"
#include "../ggufmake.h"
#include "../../examples/tokeniser.h"
#include <unistd.h>

static const char *const model_path = "tests/model/fables.gguf";

/* GGUFTEST_KEEP names a folder: files made here are written into it, to begin fuzzing with. */
static void keep(const gguf_maker *m, const char *name)
{
    const char *folder = getenv("GGUFTEST_KEEP");
    char path[400];
    FILE *f;
    if (!folder || snprintf(path, sizeof path, "%s/%s.gguf", folder, name) >= (int)sizeof path) return;
    f = fopen(path, "wb");
    if (!CHECK_MORE(f != NULL, path)) return;
    CHECK(fwrite(m->at, 1, m->bytes, f) == m->bytes);
    fclose(f);
}

/* -- a file with a value of each type and three tensors -- */

static void whole_file(gguf_maker *m)
{
    unsigned i;
    make_start(m, 3, 15);
    make_key(m, "u8", GGUF_U8), make_little(m, 200, 1);
    make_key(m, "i8", GGUF_I8), make_little(m, 0xff, 1);
    make_key(m, "u16", GGUF_U16), make_little(m, 60000, 2);
    make_key(m, "i16", GGUF_I16), make_little(m, 30000, 2);
    make_value_u32(m, "u32", 4000000000u);
    make_key(m, "i32", GGUF_I32), make_little(m, 0x80000000u, 4);
    make_value_float(m, "f32", 0.25f);
    make_key(m, "bool", GGUF_BOOL), make_little(m, 1, 1);
    make_value_text(m, "string", "a text");
    make_array(m, "strings", GGUF_STRING, 3), make_text(m, "one"), make_text(m, ""), make_text(m, "three");
    make_array(m, "bools", GGUF_BOOL, 2), make_little(m, 0x0100, 2);
    make_key(m, "u64", GGUF_U64), make_little(m, 77, 8);
    make_key(m, "i64", GGUF_I64), make_little(m, 1ull << 40, 8);
    make_key(m, "f64", GGUF_F64), make_little(m, 0x3fe0000000000000u, 8); /* 0.5 */
    make_array(m, "empty", GGUF_F32, 0);
    make_tensor(m, "norm", 5, 0, GGUF_FORMAT_F32, 0);
    make_tensor(m, "matrix", 256, 2, GGUF_FORMAT_Q4_K, 32);
    make_tensor(m, "last", 32, 1, GGUF_FORMAT_Q8_0, 320);
    make_padding(m);
    for (i = 0; i < 320 + 34; i++) make_little(m, i, 1);
}

static void test_whole(void)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    gguf_text text, *texts;
    const gguf_tensor *t;
    uint32_t x = 0;
    double d = 0;
    int b = 0;
    size_t n = 0;
    whole_file(&m);
    keep(&m, "whole");
    if (!CHECK_MORE(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0, why.text)) return;
    CHECK(g.version == 3 && g.values == 15 && g.tensors == 3 && g.alignment == 32);
    CHECK(gguf_get_u32(&g, "u8", &x) && x == 200);
    CHECK(!gguf_get_u32(&g, "i8", &x)); /* -1 */
    CHECK(gguf_get_u32(&g, "u16", &x) && x == 60000);
    CHECK(gguf_get_u32(&g, "i16", &x) && x == 30000);
    CHECK(gguf_get_u32(&g, "u32", &x) && x == 4000000000u);
    CHECK(!gguf_get_u32(&g, "i32", &x));
    CHECK(gguf_get_u32(&g, "u64", &x) && x == 77);
    CHECK(!gguf_get_u32(&g, "i64", &x)); /* past 32 bits */
    CHECK(!gguf_get_u32(&g, "f32", &x) && !gguf_get_u32(&g, "string", &x)
          && !gguf_get_u32(&g, "nothing", &x));
    CHECK(gguf_get_float(&g, "f32", &d) && d == 0.25);
    CHECK(gguf_get_float(&g, "f64", &d) && d == 0.5);
    CHECK(!gguf_get_float(&g, "u32", &d));
    CHECK(gguf_get_bool(&g, "bool", &b) && b == 1 && !gguf_get_bool(&g, "u8", &b));
    CHECK(gguf_get_text(&g, "string", &text) && gguf_is(text, "a text")
          && !gguf_get_text(&g, "strings", &text));
    texts = gguf_get_texts(&g, "strings", &n);
    CHECK(texts && n == 3 && gguf_is(texts[0], "one") && gguf_is(texts[1], "") && gguf_is(texts[2], "three"));
    free(texts);
    CHECK(gguf_get_texts(&g, "bools", &n) == NULL && gguf_get_texts(&g, "empty", &n) == NULL);
    t = gguf_tensor_find(&g, "matrix");
    CHECK(t && t->dimensions == 2 && t->size[0] == 256 && t->size[1] == 2 && t->size[2] == 1
          && t->bytes == 288);
    CHECK(t && t->format == GGUF_FORMAT_Q4_K && m.at[t->offset] == 32);
    t = gguf_tensor_find(&g, "norm");
    CHECK(t && t->dimensions == 1 && t->bytes == 20 && m.at[t->offset] == 0);
    t = gguf_tensor_find(&g, "last");
    CHECK(t && t->offset + t->bytes == m.bytes && m.at[t->offset] == (320 & 255));
    CHECK(gguf_tensor_find(&g, "lastly") == NULL && gguf_tensor_find(&g, "") == NULL);
    gguf_free(&g);
    free(m.at);
}

/* -- every way to be wrong -- */

/* The offset of the first such bytes in the file. */
static size_t place_of(const gguf_maker *m, const char *word)
{
    size_t i, n = strlen(word);
    for (i = 0; i + n <= m->bytes; i++)
        if (memcmp(m->at + i, word, n) == 0) return i;
    return 0;
}

/* Overwrites `bytes` bytes of the whole file, `skip` past the first `word`; it must be refused with these
 * words. */
static void broken(const char *word, size_t skip, uint64_t x, unsigned bytes, const char *reason,
                   int64_t offset)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    size_t at, i;
    char more[400];
    whole_file(&m);
    at = place_of(&m, word) + skip;
    for (i = 0; i < bytes; i++) m.at[at + i] = (unsigned char)(x >> 8 * i & 255);
    snprintf(more, sizeof more, "%s + %u = %llx", word, (unsigned)skip, (unsigned long long)x);
    if (CHECK_MORE(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 1, more)) {
        snprintf(more, sizeof more, "%s + %u: '%s' at %llu, not '%s' at %lld", word, (unsigned)skip, why.text,
                 (unsigned long long)why.offset, reason, (long long)(offset < 0 ? (int64_t)at : offset));
        CHECK_MORE(strstr(why.text, reason) && why.offset == (offset < 0 ? at : (uint64_t)offset), more);
    } else {
        gguf_free(&g);
    }
    free(m.at);
}

static void test_broken(void)
{
    const uint64_t most = UINT64_MAX;
    gguf_maker m = {0};
    size_t name;
    whole_file(&m);
    name = place_of(&m, "matrix"); /* what is wrong with a tensor's place is told at its name */
    broken("GGUF", 0, 'g', 1, "begin with GGUF", -1);
    broken("GGUF", 4, 1, 4, "version 1", -1);
    broken("GGUF", 4, 4, 4, "version 4", -1);
    broken("GGUF", 4, 0x03000000, 4, "big-endian", -1);
    broken("u8", 2, 13, 4, "type 13 is none", -1);
    broken("u8", 2, 0xffffffffu, 4, "is none", -1);
    broken("bool", 8, 2, 1, "a bool that is 2", -1);
    broken("bools", 5 + 4 + 4 + 8 + 1, 255, 1, "a bool that is 255", -1);
    broken("string", 6 + 4, most, 8, "a string of 18446744073709551615 bytes", -1);
    broken("string", 6 + 4, 1u << 20, 8, "the file ends", (int64_t)place_of(&m, "string") + 6 + 4 + 8);
    broken("strings", 7 + 4, GGUF_ARRAY, 4, "array of arrays", -1);
    broken("strings", 7 + 4, 99, 4, "type 99", -1);
    broken("empty", 5 + 4 + 4, most, 8, "an array of", (int64_t)place_of(&m, "empty") + 5 + 16);
    broken("empty", 5 + 4 + 4, 1u << 20, 8, "the file ends", (int64_t)place_of(&m, "empty") + 5 + 16);
    broken("matrix", 6, 0, 4, "0 dimensions", -1);
    broken("matrix", 6, 5, 4, "5 dimensions", -1);
    broken("matrix", 6 + 4, 0, 8, "size 0 of dimension 0", -1);
    broken("matrix", 6 + 4 + 8, most, 8, "of dimension 1", -1);
    broken("matrix", 6 + 4 + 8, 1ull << 55, 8, "of dimension 1", -1);
    broken("matrix", 6 + 4, 255, 8, "blocks of 256", (int64_t)name + 6 + 20);
    broken("matrix", 6 + 20, 4, 4, "type 4 is not known", -1);
    broken("matrix", 6 + 20, 1000, 4, "type 1000 is not known", -1);
    broken("matrix", 6 + 24, 33, 8, "no multiple of the alignment", (int64_t)name);
    broken("matrix", 6 + 24, 96, 8, "pass the end", (int64_t)name);
    broken("matrix", 6 + 24, most - 31, 8, "pass the end", (int64_t)name);
    broken("matrix", 6 + 4 + 8, 3, 8, "pass the end", (int64_t)name);
    broken("last", 4 + 4 + 16 + 4, 288, 8, "lies within 'matrix'", (int64_t)(m.bytes - 354 + 288));
    broken("u16", 0, 'i', 1, "two values 'i16'", (int64_t)place_of(&m, "i16") + 3 + 4);
    free(m.at);
}

/* What a file that begins well says of another beginning. */
static void refused(gguf_maker *m, const char *reason)
{
    gguf g;
    gguf_error why;
    if (CHECK_MORE(gguf_parse(&g, m->at, m->bytes, m->bytes, &why) == 1, reason))
        CHECK_MORE(strstr(why.text, reason) != NULL && why.offset <= m->bytes, why.text);
    else
        gguf_free(&g);
}

static void test_small(void)
{
    static const uint32_t alignments[] = {0, 4, 24, 48, 1u << 21, 0x80000000u};
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    unsigned i;
    CHECK(gguf_parse(&g, "", 0, 0, &why) == 1 && why.offset == 0 && why.text[0]);
    make_start(&m, 0, 0); /* a file of nothing is well-formed */
    CHECK(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0 && g.values == 0 && !gguf_find(&g, "x"));
    gguf_free(&g);
    make_start(&m, 0, UINT64_MAX);
    refused(&m, "ends after 0");
    make_start(&m, UINT64_MAX, 0);
    refused(&m, "ends after 0");
    make_start(&m, 0, 1);
    make_key(&m, "", GGUF_U8), make_little(&m, 0, 1);
    refused(&m, "a key of 0 bytes");
    make_start(&m, 2, 0);
    make_tensor(&m, "x", 1, 0, GGUF_FORMAT_F32, 0);
    make_tensor(&m, "x", 1, 0, GGUF_FORMAT_F32, 32);
    make_padding(&m);
    for (i = 0; i < 36; i++) make_little(&m, 0, 1);
    refused(&m, "two tensors 'x'");
    for (i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        make_start(&m, 0, 1);
        make_value_u32(&m, "general.alignment", alignments[i]);
        refused(&m, "power of two");
    }
    make_start(&m, 0, 1);
    make_key(&m, "general.alignment", GGUF_U64), make_little(&m, 32, 8);
    refused(&m, "as u32");
    for (i = 0; i < 2; i++) { /* 64: an offset of 32 is none */
        make_start(&m, 1, 1);
        make_value_u32(&m, "general.alignment", 64);
        make_tensor(&m, "x", 1, 0, GGUF_FORMAT_F32, i ? 32 : 0);
        while (m.bytes < 256) make_little(&m, 0, 1);
        if (i) {
            refused(&m, "multiple of the alignment, 64");
        } else {
            CHECK(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0 && g.tensor[0].offset == 128);
            gguf_free(&g);
        }
    }
    make_start(&m, 1, 0); /* the data would begin behind the file's end */
    make_tensor(&m, "x", 1, 0, GGUF_FORMAT_F32, 0);
    refused(&m, "ends before the tensors' data");
    free(m.at);
}

/* Cut at each byte: refused where the cut is the file's end; "more" where only the reading stopped. */
static void cut_everywhere(const unsigned char *file, size_t bytes, size_t head, const char *what)
{
    size_t cut, wrong = 0, silent = 0, early = 0;
    for (cut = 0; cut < bytes; cut = cut < head + 64 ? cut + 1 : cut + 1 + (bytes - cut) / 8) {
        gguf g;
        gguf_error why;
        int result = gguf_parse(&g, file, cut, cut, &why);
        if (result != 1) wrong++;
        if (result == 1 && (why.offset > cut || !why.text[0])) silent++;
        if (result == 0) gguf_free(&g);
        result = gguf_parse(&g, file, cut, bytes, &why);
        if (result != (cut < head ? 2 : 0)) early++;
        if (result == 0) gguf_free(&g);
    }
    CHECK_MORE(wrong == 0, what);
    CHECK_MORE(silent == 0, what);
    CHECK_MORE(early == 0, what);
}

/* Where the tensors' lines end: behind the padding's beginning at most by the alignment. */
static size_t head_of(const unsigned char *file, size_t bytes)
{
    size_t head = 24;
    gguf g;
    gguf_error why;
    while (gguf_parse(&g, file, head, bytes, &why) == 2) head++;
    gguf_free(&g);
    return head;
}

static unsigned char *whole_model(size_t *bytes)
{
    FILE *f = fopen(model_path, "rb");
    unsigned char *data = NULL;
    long size;
    if (!CHECK_MORE(f != NULL, model_path)) return NULL;
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    data = (unsigned char *)malloc((size_t)size);
    *bytes = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    return data;
}

static void test_cuts(void)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    size_t bytes = 0, low, high;
    unsigned char *model = whole_model(&bytes);
    whole_file(&m);
    cut_everywhere(m.at, m.bytes, head_of(m.at, m.bytes), "cuts of the made file");
    free(m.at);
    if (!model) return;
    /* the model's head is long: find its end by halving, then cut at a byte in seven, and at each of its last
     */
    for (low = 0, high = bytes; low + 1 < high;) {
        size_t middle = low + (high - low) / 2;
        int result = gguf_parse(&g, model, middle, bytes, &why);
        if (result == 0) gguf_free(&g);
        if (result == 2)
            low = middle;
        else
            high = middle;
    }
    CHECK(bytes <= 4u << 20);
    {
        size_t cut, wrong = 0;
        for (cut = 0; cut < high + 64; cut += cut < 4096 || cut + 512 > high ? 1 : 7) {
            int result = gguf_parse(&g, model, cut, cut, &why);
            if (result != 1 || why.offset > cut || !why.text[0]) wrong++;
            if (result == 0) gguf_free(&g);
        }
        CHECK(wrong == 0);
    }
    CHECK(gguf_parse(&g, model, bytes - 1, bytes - 1, &why) <= 1); /* the end may be padding */
    gguf_free(&g);
    free(model);
}

/* Bytes changed at random: whatever comes of it, it is a result; found by the sanitizers if not. */
static void test_random_bytes(void)
{
    gguf_maker m = {0};
    uint32_t round, good = 0;
    whole_file(&m);
    for (round = 0; round < 20000; round++) {
        gguf g;
        gguf_error why;
        uint32_t at[4], n = 1 + random_below(4), i;
        unsigned char old[4];
        for (i = 0; i < n; i++) {
            at[i] = random_below((uint32_t)m.bytes);
            old[i] = m.at[at[i]];
            m.at[at[i]] = (unsigned char)random_u32();
        }
        if (gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0) {
            good++;
            for (i = 0; i < g.tensors; i++) {
                const gguf_tensor *t = &g.tensor[i];
                if (t->offset > m.bytes || t->bytes > m.bytes - t->offset)
                    CHECK_MORE(0, "a tensor out of the file");
            }
            gguf_free(&g);
        }
        while (n--) m.at[at[n]] = old[n];
    }
    CHECK(good > 0 && good < round);
    free(m.at);
}

/* A file on disk whose head is longer than what is read at first. */
static void test_file(void)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    size_t i, n = 0;
    gguf_text *texts;
    FILE *f = tmpfile();
    if (!CHECK(f != NULL)) return;
    make_start(&m, 0, 1);
    make_array(&m, "strings", GGUF_STRING, 100000);
    for (i = 0; i < 100000; i++) make_text(&m, "twelve bytes");
    CHECK(fwrite(m.at, 1, m.bytes, f) == m.bytes);
    if (CHECK_MORE(gguf_read(&g, f, &why) == 0, why.text)) {
        texts = gguf_get_texts(&g, "strings", &n);
        CHECK(n == 100000 && gguf_is(texts[99999], "twelve bytes"));
        free(texts);
        gguf_free(&g);
    }
    fclose(f);
    free(m.at);
}

/* Refused by gguf_read, with these words. */
static void unreadable(FILE *f, const char *reason)
{
    gguf g;
    gguf_error why;
    if (!CHECK_MORE(f != NULL, reason)) return;
    if (CHECK_MORE(gguf_read(&g, f, &why) == 1, reason))
        CHECK_MORE(strstr(why.text, reason) != NULL, why.text);
    else
        gguf_free(&g);
    fclose(f);
}

/* Things that are no files of models; and a file longer than memory, of which only the head is read. */
static void test_odd_files(void)
{
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    int ends[2];
    FILE *f = tmpfile();
    unreadable(tmpfile(), "an empty file");
    unreadable(fopen("tests", "rb"), "cannot be read: Is a directory");
    if (CHECK(pipe(ends) == 0)) {
        unreadable(fdopen(ends[0], "rb"), "not a file that can be measured");
        close(ends[1]);
    }
    make_start(&m, 1, 0);
    make_tensor(&m, "x", 1u << 20, 1u << 20, GGUF_FORMAT_F32, 0);
    make_padding(&m);
    CHECK(f && fwrite(m.at, 1, m.bytes, f) == m.bytes);
    if (fseeko(f, (off_t)(m.bytes + (4ull << 40) - 1), SEEK_SET) == 0 && fputc(0, f) == 0 && fflush(f) == 0) {
        if (CHECK_MORE(gguf_read(&g, f, &why) == 0, why.text)) {
            CHECK(g.tensor[0].bytes == 4ull << 40 && g.head_bytes <= 1 << 18);
            gguf_free(&g);
        }
    } else {
        printf("SKIP a file of 4 TB: not on this file system\n");
    }
    fclose(f);
    free(m.at);
}

/* A sparse file that claims a name, a string or an array of gigabytes is refused before these are read. */
static void test_long_claims(void)
{
    static const struct {
        unsigned key_bytes, type, element;
        uint64_t length;
        const char *reason;
    } claims[] = {{0, 0, 0, 3ull << 30, "a key of 3221225472 bytes, must be 1 to 65535"},
                  {3, GGUF_STRING, 0, 3ull << 30, "a string of 3221225472 bytes"},
                  {3, GGUF_ARRAY, GGUF_U8, 3ull << 30, "an array of 3221225472"}};
    size_t i;
    for (i = 0; i < sizeof claims / sizeof *claims; i++) {
        gguf_maker m = {0};
        FILE *f = tmpfile();
        make_start(&m, 0, 1);
        if (claims[i].key_bytes) {
            make_text(&m, "key");
            make_little(&m, claims[i].type, 4);
            if (claims[i].type == GGUF_ARRAY) make_little(&m, claims[i].element, 4);
        }
        make_little(&m, claims[i].length, 8);
        CHECK(f && fwrite(m.at, 1, m.bytes, f) == m.bytes);
        if (f && fseeko(f, (off_t)(4ull << 30), SEEK_SET) == 0 && fputc(0, f) == 0 && fflush(f) == 0) {
            unreadable(f, claims[i].reason);
        } else {
            printf("SKIP a sparse file of 4 GB: not on this file system\n");
            if (f) fclose(f);
        }
        free(m.at);
    }
}

/* -- tokenisers -- */

/* Bytes and the characters that stand for them, both ways; other characters stand for none. */
static void test_byte_characters(void)
{
    unsigned b, c, bytes = 0;
    for (b = 0; b < 256; b++) CHECK(tokeniser_character_byte(tokeniser_byte_character(b)) == b);
    for (c = 0; c < 0x800; c++) bytes += tokeniser_character_byte(c) < 256;
    CHECK(bytes == 256);
}

/* Encodes; the tokens must be these (ends with TOKEN_NONE), and decode to the text. */
static void encodes(const tokeniser *t, const char *text, size_t bytes, const uint32_t *want,
                    const char *what)
{
    uint32_t *tokens = (uint32_t *)malloc(sizeof(uint32_t) * tokeniser_room(bytes));
    char *back = (char *)malloc(4 * tokeniser_room(bytes) + 64), more[300];
    size_t n = tokeniser_encode(t, text, bytes, tokens), i, at = 0, got = 0, same = 1;
    CHECK_MORE(n <= tokeniser_room(bytes), what);
    for (i = 0; want && want[i] != TOKEN_NONE; i++)
        if (i >= n || tokens[i] != want[i]) same = 0;
    if (want && (!same || i != n)) {
        for (i = 0; i < n && got < 200; i++)
            got += (size_t)snprintf(more + got, sizeof more - got, " %u", tokens[i]);
        CHECK_MORE(0, what);
        printf("    got%s\n", more);
    } else {
        passed++;
    }
    for (i = 0; i < n; i++)
        at += tokeniser_piece(t, tokens[i], i == 0 || (i == 1 && tokens[0] == t->bos), back + at, 64);
    CHECK_MORE(at == bytes && memcmp(back, text, bytes) == 0, what);
    free(tokens);
    free(back);
}

/* <unk> <s> </s>, the 256 bytes, then pieces in order of their scores. */
static void sentence_pieces(gguf_maker *m, const char *const *pieces, unsigned count)
{
    unsigned i, all = 259 + count;
    make_start(m, 0, 6);
    make_value_text(m, "tokenizer.ggml.model", "llama");
    make_array(m, "tokenizer.ggml.tokens", GGUF_STRING, all);
    make_text(m, "<unk>"), make_text(m, "<s>"), make_text(m, "</s>");
    for (i = 0; i < 256; i++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        make_text(m, name);
    }
    for (i = 0; i < count; i++) make_text(m, pieces[i]);
    make_array(m, "tokenizer.ggml.scores", GGUF_F32, all);
    for (i = 0; i < all; i++) make_float(m, i < 259 ? 0 : -(float)i);
    make_array(m, "tokenizer.ggml.token_type", GGUF_I32, all);
    for (i = 0; i < all; i++)
        make_little(m, i == 0 ? TOKEN_UNKNOWN : i < 3 ? TOKEN_CONTROL : i < 259 ? 6 : 1, 4);
    make_value_u32(m, "tokenizer.ggml.bos_token_id", 1);
    make_value_u32(m, "tokenizer.ggml.eos_token_id", 2);
}

static int read_tokeniser(tokeniser *t, gguf *g, const gguf_maker *m)
{
    gguf_error why;
    if (!CHECK_MORE(gguf_parse(g, m->at, m->bytes, m->bytes, &why) == 0, why.text)) return 0;
    if (CHECK_MORE(tokeniser_read(t, g, &why) == 0, why.text)) return 1;
    gguf_free(g);
    return 0;
}

#define SP "\xe2\x96\x81"

static void random_round_trips(const tokeniser *t, const char *what)
{
    unsigned round;
    for (round = 0; round < 200; round++) {
        char text[120];
        size_t i, n = random_below(sizeof text);
        for (i = 0; i < n; i++)
            text[i] = round & 1 ? (char)random_u32() : "  abcdeh'12\n.\xc3\xa9"[random_below(15)];
        encodes(t, text, n, NULL, what);
    }
}

/* A whole model, of one layer and the smallest numbers: to begin fuzzing with. */
static void keep_model(void)
{
    static const char *const keys[] = {"qwen3.block_count",          "qwen3.context_length",
                                       "qwen3.embedding_length",     "qwen3.feed_forward_length",
                                       "qwen3.attention.head_count", "qwen3.attention.key_length"};
    static const uint32_t values[] = {1, 9, 8, 8, 1, 8};
    static const char *const names[] = {"attn_norm",   "attn_q",      "attn_k",      "attn_v",
                                        "attn_q_norm", "attn_k_norm", "attn_output", "ffn_norm",
                                        "ffn_gate",    "ffn_up",      "ffn_down"};
    gguf_maker m = {0};
    char name[64];
    unsigned i, n = 0;
    make_start(&m, 13, 8);
    make_value_text(&m, "general.architecture", "qwen3");
    make_value_float(&m, "qwen3.attention.layer_norm_rms_epsilon", 1e-5f);
    for (i = 0; i < 6; i++) make_value_u32(&m, keys[i], values[i]);
    make_tensor(&m, "token_embd.weight", 8, 4, GGUF_FORMAT_F32, 256 * n++);
    make_tensor(&m, "output_norm.weight", 8, 0, GGUF_FORMAT_F32, 256 * n++);
    for (i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "blk.0.%s.weight", names[i]);
        make_tensor(&m, name, 8, strstr(names[i], "norm") ? 0 : 8, GGUF_FORMAT_F32, 256 * n++);
    }
    make_padding(&m);
    for (i = 0; i < 256 * n; i++) make_little(&m, 0, 1);
    keep(&m, "model");
    free(m.at);
}

static void test_sentence_pieces(void)
{
    static const char *const pieces[] = {"he", "ll", SP "he", "hell", "llo", SP "hello",
                                         "o",  "h",  "e",     "l",    SP,    "w"};
    /* 259 he, 260 ll, 261 _he, 262 hell, 263 llo, 264 _hello, 265 o, 266 h, 267 e, 268 l, 269 _, 270 w */
    static const uint32_t hello[] = {1, 264, TOKEN_NONE}; /* he ll, _he, then llo before hell + o ... */
    static const uint32_t twice[] = {1, 264, 264, TOKEN_NONE};
    static const uint32_t bytes[] = {1, 269, 3 + 0xc3, 3 + 0xa9, 270, TOKEN_NONE};
    static const uint32_t none[] = {1, TOKEN_NONE};
    gguf_maker m = {0};
    gguf g;
    tokeniser t;
    sentence_pieces(&m, pieces, 12);
    keep(&m, "pieces");
    if (!read_tokeniser(&t, &g, &m)) return;
    CHECK(t.bos == 1 && t.eos == 2 && t.eot == TOKEN_NONE && t.add_bos && t.add_space && !t.bpe);
    encodes(&t, "hello", 5, hello, "hello");
    encodes(&t, "hello hello", 11, twice, "hello hello");
    encodes(&t, "\xc3\xa9w", 3, bytes, "bytes");
    encodes(&t, "", 0, none, "nothing");
    random_round_trips(&t, "pieces, random");
    tokeniser_free(&t);
    gguf_free(&g);
    free(m.at);
}

/* Makes pieces of sentence_pieces tokens of another type. */
static void set_type(gguf_maker *m, unsigned token, unsigned type)
{
    const char key[] = "tokenizer.ggml.token_type";
    size_t at = 0;
    while (memcmp(m->at + at, key, sizeof key - 1)) at++;
    m->at[at + sizeof key - 1 + 4 + 4 + 8 + 4 * token] = (unsigned char)type;
}

/* User-defined tokens stand in any text, control tokens where they are marked: the longest first. */
static void test_specials(void)
{
    static const char *const pieces[] = {"he", SP "he", SP, "h", "e", "<|a|>", "<|a", "\n", "|"};
    /* 259 he, 260 _he, 261 _, 262 h, 263 e, 264 <|a|> control, 265 <|a user, 266 newline user, 267 | */
    static const uint32_t plain[] = {1, 260, 265, 261, 267, 3 + '>', 259, TOKEN_NONE};
    static const uint32_t control[] = {1, 260, 264, 260, TOKEN_NONE};
    static const uint32_t begun[] = {1, 260, TOKEN_NONE};
    static const uint32_t lines[] = {1, 266, 266, 260, 266, TOKEN_NONE};
    static const struct {
        const char *text, *marks;
        const uint32_t *want;
    } cases[] = {{"he<|a|>he", NULL, plain},
                 {"he<|a|>he", "\1\1\1\1\1\1\1\1\1", control},
                 {"he<|a|>he", "\0\0\1\1\1\1\1\0\0", control},
                 {"he<|a|>he", "\1\1\1\1\0\1\1\1\1", plain}, /* one byte of it comes from elsewhere */
                 {"<s>he", "\1\1\1\1\1", begun},               /* begins with the token of a beginning */
                 {"\n\nhe\n", NULL, lines}};
    gguf_maker m = {0};
    gguf g;
    tokeniser t;
    uint32_t tokens[64];
    unsigned i, k, round;
    sentence_pieces(&m, pieces, 9);
    set_type(&m, 264, TOKEN_CONTROL);
    set_type(&m, 265, TOKEN_USER);
    set_type(&m, 266, TOKEN_USER);
    if (!read_tokeniser(&t, &g, &m)) return;
    CHECK(t.specials == 5 && t.special[0] == 264);
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = tokeniser_encode_marked(&t, cases[i].text, strlen(cases[i].text), cases[i].marks, tokens);
        for (k = 0; cases[i].want[k] != TOKEN_NONE; k++) CHECK(k < n && tokens[k] == cases[i].want[k]);
        CHECK(n == k);
    }
    for (round = 0; round < 2000; round++) { /* the room is enough */
        char text[41], marks[41];
        uint32_t *room;
        size_t n = random_below(sizeof text), have, j;
        for (j = 0; j < n; j++) text[j] = "he \n<|a|>\xff"[random_below(11)], marks[j] = (char)random_below(2);
        room = (uint32_t *)malloc(tokeniser_room(n) * sizeof *room);
        have = room ? tokeniser_encode_marked(&t, text, n, marks, room) : 0;
        CHECK(have >= 1 && have <= tokeniser_room(n));
        free(room);
    }
    tokeniser_free(&t);
    gguf_free(&g);
    free(m.at);
}

/* Tokens: the 256 bytes as characters, then what the merges make. */
static void byte_pairs(gguf_maker *m, const char *pre, const char *const *merges, unsigned count)
{
    unsigned i;
    make_start(m, 0, 4);
    make_value_text(m, "tokenizer.ggml.model", "gpt2");
    make_value_text(m, "tokenizer.ggml.pre", pre);
    make_array(m, "tokenizer.ggml.tokens", GGUF_STRING, 256 + count);
    for (i = 0; i < 256; i++) {
        char c[4] = {0};
        c[tokeniser_put(c, tokeniser_byte_character(i))] = 0;
        make_text(m, c);
    }
    for (i = 0; i < count; i++) {
        char both[64];
        const char *space = strchr(merges[i], ' ');
        snprintf(both, sizeof both, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        make_text(m, both);
    }
    make_array(m, "tokenizer.ggml.merges", GGUF_STRING, count);
    for (i = 0; i < count; i++) make_text(m, merges[i]);
}

#define SPACE_CHARACTER "\xc4\xa0" /* U+0120, for the byte 32 */

static void test_byte_pairs(void)
{
    static const char *const merges[] = {"l o", SPACE_CHARACTER " lo", "lo w", SPACE_CHARACTER "lo w", "1 2",
                                         "12 3"};
    /* 256 lo, 257 _lo, 258 low, 259 _low, 260 12, 261 123 */
    static const uint32_t low[] = {258, 259, TOKEN_NONE};
    static const uint32_t gpt2_digits[] = {261, '1', TOKEN_NONE};
    static const uint32_t ones[] = {'1', '2', '3', TOKEN_NONE};
    static const uint32_t coder_digits[] = {'1', '2', '3', '1', TOKEN_NONE};
    static const char *const families[] = {"deepseek-llm", "deepseek-coder", "deepseek-v3", "kimi-k2"};
    static const uint32_t space[] = {' ', 259, TOKEN_NONE};
    gguf_maker m = {0};
    gguf g;
    tokeniser t;
    size_t i;
    byte_pairs(&m, "default", merges, 6);
    keep(&m, "pairs");
    if (!read_tokeniser(&t, &g, &m)) return;
    CHECK(t.bpe && !t.add_bos && t.rules.kind == TOKENISER_GPT2 && t.bos == TOKEN_NONE);
    encodes(&t, "low low", 7, low, "low low");
    encodes(&t, "  low", 5, space, "two spaces");
    encodes(&t, "1231", 4, gpt2_digits, "digits of GPT-2");
    random_round_trips(&t, "pairs, random");
    tokeniser_free(&t);
    gguf_free(&g);
    byte_pairs(&m, "llama-bpe", merges, 6);
    if (!read_tokeniser(&t, &g, &m)) return;
    CHECK(t.rules.digits == 3 && t.rules.kind == TOKENISER_LLAMA3 && t.add_bos);
    encodes(&t, "low low", 7, low, "low low, Llama 3");
    encodes(&t, "1231", 4, gpt2_digits, "digits of Llama 3");
    random_round_trips(&t, "pairs of Llama 3, random");
    tokeniser_free(&t);
    gguf_free(&g);
    byte_pairs(&m, "qwen2", merges, 6);
    if (!read_tokeniser(&t, &g, &m)) return;
    encodes(&t, "123", 3, ones, "digits of Qwen 2");
    random_round_trips(&t, "pairs of Qwen 2, random");
    tokeniser_free(&t);
    gguf_free(&g);
    for (i = 0; i < sizeof families / sizeof *families; i++) {
        byte_pairs(&m, families[i], merges, 6);
        if (!read_tokeniser(&t, &g, &m)) return;
        CHECK_MORE(!strcmp(t.rules.name, families[i]) && !t.add_bos, families[i]);
        encodes(&t, "low low", 7, low, families[i]);
        encodes(&t, "1231", 4, strcmp(families[i], "deepseek-coder") ? gpt2_digits : coder_digits, families[i]);
        random_round_trips(&t, families[i]);
        tokeniser_free(&t);
        gguf_free(&g);
    }
    free(m.at);
}

/* Words, parted by |, by the rules of that name. */
static void words(const char *text, const char *rules, const char *want)
{
    static const tokeniser_rules known[] = {TOKENISER_RULES(TOKENISER_RULE)};
    static uint32_t classes[UNICODE_RUNS];
    tokeniser t;
    char have[200];
    size_t i, at = 0, n = strlen(text), word;
    memset(&t, 0, sizeof t);
    unicode_read(classes);
    t.classes = classes;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, rules)) t.rules = known[i];
    if (!CHECK_MORE(t.rules.name != NULL, rules)) return;
    for (i = 0; i < n; i += word) {
        word = tokeniser_word(&t, text + i, n - i);
        if (!CHECK(word > 0 && word <= n - i)) return;
        if (i) have[at++] = '|';
        memcpy(have + at, text + i, word);
        at += word;
    }
    have[at] = 0;
    CHECK_MORE(strcmp(have, want) == 0, have);
}

static void test_words(void)
{
    words("I'm well, it's 1234 o'clock!", "gpt-2", "I|'m| well|,| it|'s| 1234| o|'|clock|!");
    words("I'M", "gpt-2", "I|'|M");
    words("a  b\n\n c\n", "gpt-2", "a| | b|\n\n| c|\n");
    words("x   ", "gpt-2", "x|   ");
    words("f(x)==-1;", "gpt-2", "f|(|x|)==-|1|;");
    words("\xc3\xa9t\xc3\xa9 1", "gpt-2", "\xc3\xa9t\xc3\xa9| 1");
    words("I'M well, (it) 12345", "llama-bpe", "I|'M| well|,| (|it|)| |123|45");
    words("a  b\n\n  c \n", "llama-bpe", "a| | b|\n\n| | c| \n");
    words("f(x)==-1;\nreturn", "llama-bpe", "f|(x|)==-|1|;\n|return");
    words("12345", "qwen2", "1|2|3|4|5");
    words("\tint x", "llama-bpe", "\tint| x");
    words(" 7", "llama-bpe", " |7");
    /* quotation marks, dashes and spaces past ASCII are no letters */
    words("it\xe2\x80\x99s \xe2\x80\x9cso\xe2\x80\x9d", "gpt-2",
          "it|\xe2\x80\x99|s| \xe2\x80\x9c|so|\xe2\x80\x9d");
    words("a\xe2\x80\x94z", "llama3", "a|\xe2\x80\x94z");
    words("a\xc2\xa0 b", "llama3", "a|\xc2\xa0| b");
    /* digits one by one, and what lies between them by itself */
    words("v12  x 3", "starcoder", "v|1|2| | x| |3");
    words("don't 7", "command-r", "don|'t| |7");
    /* where case changes; suffixes stay; ends of lines and slashes behind others */
    words("myHTTPServer's fooBar", "gpt-4o", "my|HTTPServer's| foo|Bar");
    words("WORLD a/b//\n c", "gpt-4o", "WORLD| a|/b|//\n| c");
    words("I'm 12345", "gpt-4o", "I'm| |123|45");
    words("I'm 123", "tekken", "I|'m| |1|2|3");
    words("\xc3\x89\xc3\xa9\xc3\x89", "tekken", "\xc3\x89\xc3\xa9|\xc3\x89"); /* other letters' capitals */
    words("\xff\xfe", "gpt-2", "\xff\xfe");
    /* a space with the letters, letters beyond ASCII apart, Chinese apart, signs in no list together */
    words("I'm f(x) ==-1;", "deepseek-llm", "I|'|m| f|(|x|)| ==-|1|;");
    words("caf\xc3\xa9s 12345  \r\n\tx ", "deepseek-llm", "caf|\xc3\xa9|s| |12345|  |\r|\n|\tx| ");
    words("a\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82\xef\xbc\x8c", "deepseek-llm",
          "a|\xe4\xb8\xad\xe6\x96\x87|\xe3\x80\x82|\xef\xbc\x8c");
    words("\xc2\xac\xc2\xb1  ", "deepseek-llm", "\xc2\xac\xc2\xb1|  "); /* spaces at the end */
    words("  \xe3\x80\x80" "d", "deepseek-llm", "  |\xe3\x80\x80|d"); /* U+3000 goes with letters first */
    words("I'm f(x) ==-1;\n\n", "deepseek-coder", "I|'|m| f|(|x|)| ==|-|1|;|\n|\n");
    words("caf\xc3\xa9 12 = \xe4\xb8\xad", "deepseek-coder", "caf\xc3\xa9| |1|2| =| |\xe4\xb8\xad");
    words("don't f(x) ==-12345;\n\n  y", "deepseek-v3", "don|'t| f|(x|)| ==-|123|45|;\n\n| | y");
    words("it's \xc3\xa9t\xc3\xa9_\xc3\xa9 7  7", "deepseek-v3",
          "it|'s| \xc3\xa9t\xc3\xa9|_|\xc3\xa9| |7|  |7");
    words("a \xe4\xb8\xad\xe3\x83\xbb\xe3\x82\xa2!", "deepseek-v3",
          "a| |\xe4\xb8\xad|\xe3\x83\xbb|\xe3\x82\xa2|!");
    words("\xe2\x80\x8b\xe2\x80\x8b" "e\xcc\x81.", "deepseek-v3",
          "\xe2\x80\x8b|\xe2\x80\x8b" "e\xcc\x81|.");
    words("we'll a\xe4\xb8\xad\xe3\x80\x87" "b 12345/", "kimi-k2",
          "we'll| a|\xe4\xb8\xad\xe3\x80\x87|b| |123|45|/");
}

/* Files that are whole and have a tokeniser that is not. */
static void unfit(gguf_maker *m, const char *reason)
{
    gguf g;
    gguf_error why;
    tokeniser t;
    if (!CHECK_MORE(gguf_parse(&g, m->at, m->bytes, m->bytes, &why) == 0, reason)) return;
    if (CHECK_MORE(tokeniser_read(&t, &g, &why) == 1, reason))
        CHECK_MORE(strstr(why.text, reason), why.text);
    else
        tokeniser_free(&t);
    gguf_free(&g);
}

static void test_unfit(void)
{
    gguf_maker m = {0};
    static const char *const one[] = {"nospace"};
    make_start(&m, 0, 0);
    unfit(&m, "'tokenizer.ggml.model' is missing");
    make_start(&m, 0, 1);
    make_value_text(&m, "tokenizer.ggml.model", "bert");
    unfit(&m, "tokeniser 'bert'");
    make_start(&m, 0, 1);
    make_value_text(&m, "tokenizer.ggml.model", "llama");
    unfit(&m, "'tokenizer.ggml.tokens' is missing");
    make_start(&m, 0, 3);
    make_value_text(&m, "tokenizer.ggml.model", "llama");
    make_array(&m, "tokenizer.ggml.tokens", GGUF_STRING, 1), make_text(&m, "a");
    make_array(&m, "tokenizer.ggml.scores", GGUF_F32, 2), make_little(&m, 0, 8);
    unfit(&m, "'tokenizer.ggml.scores'");
    make_start(&m, 0, 2);
    make_value_text(&m, "tokenizer.ggml.model", "gpt2");
    make_array(&m, "tokenizer.ggml.tokens", GGUF_STRING, 1), make_text(&m, "a");
    unfit(&m, "'tokenizer.ggml.merges' is missing");
    make_start(&m, 0, 3);
    make_value_text(&m, "tokenizer.ggml.model", "gpt2");
    make_array(&m, "tokenizer.ggml.tokens", GGUF_STRING, 1), make_text(&m, "a");
    make_array(&m, "tokenizer.ggml.merges", GGUF_STRING, 1), make_text(&m, one[0]);
    unfit(&m, "merge 'nospace' is no pair");
    free(m.at);
}

/* A token with a task that is none, rules that nobody knows: told where they stand. */
static void test_bad_tasks(void)
{
    static const char *const pieces[] = {"he"}, *const merges[] = {"l o"};
    static const struct {
        const char *word;
        size_t skip;
        unsigned char x[4];
        const char *reason;
    } cases[] = {
        {"eos_token_id", 12 + 4, {0x88, 0x13, 0, 0}, "'tokenizer.ggml.eos_token_id' is 5000, of 260 tokens"},
        {"bos_token_id", 12 + 4, {255, 255, 255, 255}, "is 4294967295, of 260 tokens"},
        {"bos_token_id", 12, {GGUF_F32, 0, 0, 0}, "'tokenizer.ggml.bos_token_id' is no whole number"},
    };
    gguf_maker m = {0};
    gguf g;
    gguf_error why;
    tokeniser t;
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        sentence_pieces(&m, pieces, 1);
        memcpy(m.at + place_of(&m, cases[i].word) + cases[i].skip, cases[i].x, 4);
        if (!CHECK_MORE(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0, why.text)) continue;
        if (CHECK_MORE(tokeniser_read(&t, &g, &why) == 1, cases[i].reason)) {
            CHECK_MORE(strstr(why.text, cases[i].reason) != NULL, why.text);
            CHECK(why.offset == place_of(&m, cases[i].word) + 12 + 4);
        } else {
            tokeniser_free(&t);
        }
        gguf_free(&g);
    }
    byte_pairs(&m, "klingon", merges, 1);
    unfit(&m, "'tokenizer.ggml.pre': words cut by the rules 'klingon', which nothing here knows");
    byte_pairs(&m, "deepseek-v", merges, 1); /* a part of a name is none */
    unfit(&m, "words cut by the rules 'deepseek-v', which nothing here knows");
    make_start(&m, 0, 1); /* what is missing is missed where it would have stood */
    make_value_text(&m, "general.name", "x");
    if (CHECK_MORE(gguf_parse(&g, m.at, m.bytes, m.bytes, &why) == 0, why.text)) {
        CHECK(tokeniser_read(&t, &g, &why) == 1 && why.offset == m.bytes);
        gguf_free(&g);
    }
    free(m.at);
}

/* A token of 3000 bytes is as long again when it is text. */
static void test_long_token(void)
{
    static char word[3001], piece[3001];
    const char *pieces[1];
    gguf_maker m = {0};
    gguf g;
    tokeniser t;
    memset(word, 'x', 3000);
    pieces[0] = word;
    sentence_pieces(&m, pieces, 1);
    if (!read_tokeniser(&t, &g, &m)) return;
    CHECK(t.longest == 3000 && tokeniser_piece(&t, 259, 0, piece, t.longest) == 3000 && !strcmp(word, piece));
    tokeniser_free(&t);
    gguf_free(&g);
    free(m.at);
}

/* The model of the repository. */
static void test_model(void)
{
    static const char text[] =
        "Once upon a time there lived a king\nwho had 3 sons. \"Go!\" said he -- na\xc3\xafve.";
    size_t bytes = 0;
    unsigned char *model = whole_model(&bytes);
    gguf g;
    gguf_error why;
    tokeniser t;
    if (!model) return;
    if (CHECK_MORE(gguf_parse(&g, model, bytes, bytes, &why) == 0, why.text)) {
        if (CHECK_MORE(tokeniser_read(&t, &g, &why) == 0, why.text)) {
            encodes(&t, text, sizeof text - 1, NULL, "the model's tokens");
            random_round_trips(&t, "the model's tokens, random");
            tokeniser_free(&t);
        }
        gguf_free(&g);
    }
    free(model);
}

/* A text made to be slow: many equal characters, 256 KiB; more than n log n would be felt. */
static void test_long(void)
{
    static const char *const pieces[] = {"aa", "aaaa", "aaaaaaaa", "a", SP};
    enum { LONG = 1 << 18 };
    gguf_maker m = {0};
    gguf g;
    tokeniser t;
    char *text = (char *)malloc(LONG);
    clock_t start = clock();
    sentence_pieces(&m, pieces, 5);
    if (!text || !read_tokeniser(&t, &g, &m)) return;
    memset(text, 'a', LONG);
    encodes(&t, text, LONG, NULL, "a long text");
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 30);
    tokeniser_free(&t);
    gguf_free(&g);
    free(m.at);
    free(text);
}

int main(void)
{
    start_random();
    test_whole();
    test_broken();
    test_small();
    test_cuts();
    test_random_bytes();
    test_file();
    test_odd_files();
    test_long_claims();
    test_byte_characters();
    test_specials();
    test_words();
    keep_model();
    test_sentence_pieces();
    test_byte_pairs();
    test_unfit();
    test_bad_tasks();
    test_long_token();
    test_model();
    test_long();
    return check_end();
}
