/* image.h - what the examples that draw share: PNG files (RFC 2083), compressed by deflate (RFC 1951).
 *
 *     write_png("out.png", width, height, 1, 0, pixels)    1: written; 0: not, errno says why
 *     write_png("out.png", width, height, 24, 90, pixels)  24 pictures, each shown for 90 ms (APNG)
 *
 * A pixel is 0x00bbggrr, rows from the top. Rows are filtered by the predictor with the smallest sum of
 * differences; repeats are found by a hash of four bytes; each block has Huffman codes of its own. */
#ifndef IMAGE_H
#define IMAGE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- checksums -- */

/* CRC-32 of the bytes behind those that gave `crc`; 0 for the first. */
static uint32_t crc32_of(uint32_t crc, const void *data, size_t bytes) {
    const unsigned char *p = (const unsigned char *)data;
    int bit;
    crc = ~crc;
    while (bytes--)
        for (crc ^= *p++, bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1u)));
    return ~crc;
}

/* -- deflate -- */

enum { IMAGE_LITERALS = 286, IMAGE_DISTANCES = 30, IMAGE_TOKENS = 1 << 16, IMAGE_HASH = 1 << 15 };

typedef struct bit_writer {
    unsigned char *at;
    uint64_t held;
    unsigned count;
} bit_writer;

static void put_bits(bit_writer *w, uint32_t value, unsigned count) {
    w->held |= (uint64_t)value << w->count;
    for (w->count += count; w->count >= 8; w->count -= 8, w->held >>= 8) *w->at++ = (unsigned char)w->held;
}

/* The lengths of a Huffman code, at most 15 bits: counts are halved until the tree is flat enough. */
static void huffman_lengths(uint32_t *count, int n, unsigned char *length) {
    uint32_t weight[2 * IMAGE_LITERALS];
    int parent[2 * IMAGE_LITERALS], i, nodes, deepest;
    count[0] += !count[0], count[1] += !count[1]; /* two symbols at least: a complete code */
    do {
        for (i = 0; i < 2 * n; i++) parent[i] = -1, weight[i] = i < n ? count[i] : 0;
        for (nodes = n;; nodes++) { /* joins the two lightest of the nodes without a parent */
            int first = -1, second = -1;
            for (i = 0; i < nodes; i++) {
                if (parent[i] >= 0 || !weight[i]) continue;
                if (first < 0 || weight[i] < weight[first])
                    second = first, first = i;
                else if (second < 0 || weight[i] < weight[second])
                    second = i;
            }
            if (second < 0) break;
            parent[first] = parent[second] = nodes;
            weight[nodes] = weight[first] + weight[second];
        }
        for (deepest = i = 0; i < n; i++) {
            int depth = 0, node;
            for (node = i; parent[node] >= 0; node = parent[node]) depth++;
            length[i] = (unsigned char)depth;
            if (depth > deepest) deepest = depth;
            count[i] -= count[i] / 2;
        }
    } while (deepest > 15);
}

/* Canonical codes of these lengths, their bits in the order in which deflate sends them. */
static void huffman_codes(const unsigned char *length, int n, uint32_t *code) {
    uint32_t next = 0;
    int bits, i, bit;
    for (bits = 1; bits <= 15; bits++, next <<= 1)
        for (i = 0; i < n; i++)
            if (length[i] == bits) {
                for (code[i] = 0, bit = 0; bit < bits; bit++)
                    code[i] |= (next >> bit & 1u) << (bits - 1 - bit);
                next++;
            }
}

/* The symbol of a length (3 to 258) or a distance, its extra bits and their number. `step`: symbols for each
   number of extra bits. */
static unsigned extra_bits(uint32_t value, uint32_t step, uint32_t *symbol, uint32_t *extra) {
    unsigned bits = 0;
    uint32_t first = 0, end = 2 * step; /* the first 2 * step symbols have none */
    for (*symbol = 0; value >= end; bits++) {
        first = end;
        *symbol += step + (bits ? 0 : step);
        end += step << (bits + 1);
    }
    *symbol += (value - first) >> bits;
    *extra = (value - first) & ((1u << bits) - 1u);
    return bits;
}

/* A token is a literal, or length << 16 | distance. */
static void put_block(bit_writer *w, const uint32_t *token, size_t tokens, int last) {
    static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint32_t count[2][IMAGE_LITERALS], code[2][IMAGE_LITERALS], symbol, extra;
    unsigned char length[2][IMAGE_LITERALS];
    int pass, i;
    size_t t;
    memset(count, 0, sizeof count);
    for (pass = 0; pass < 2; pass++) { /* counts, then writes */
        for (t = 0; t <= tokens; t++) {
            uint32_t run = t < tokens ? token[t] >> 16 : 0, half;
            for (half = 0; half < (run ? 2u : 1u); half++) {
                unsigned bits = 0;
                if (!run)
                    symbol = t < tokens ? token[t] : 256;
                else if (half)
                    bits = extra_bits((token[t] & 0xffff) - 1, 2, &symbol, &extra);
                else if (run == 258)
                    symbol = 285;
                else
                    bits = extra_bits(run - 3, 4, &symbol, &extra), symbol += 257;
                if (!pass)
                    count[half][symbol]++;
                else
                    put_bits(w, code[half][symbol], length[half][symbol]);
                if (pass && bits) put_bits(w, extra, bits);
            }
        }
        if (pass) break;
        huffman_lengths(count[0], IMAGE_LITERALS, length[0]);
        huffman_lengths(count[1], IMAGE_DISTANCES, length[1]);
        huffman_codes(length[0], IMAGE_LITERALS, code[0]);
        huffman_codes(length[1], IMAGE_DISTANCES, code[1]);
        put_bits(w, (uint32_t)last | 2 << 1, 3);
        put_bits(w, (IMAGE_LITERALS - 257) | (IMAGE_DISTANCES - 1) << 5 | 15u << 10, 14);
        for (i = 0; i < 19; i++) put_bits(w, order[i] < 16 ? 4 : 0, 3); /* a length is four bits, reversed */
        for (i = 0; i < IMAGE_LITERALS + IMAGE_DISTANCES; i++) {
            uint32_t l = i < IMAGE_LITERALS ? length[0][i] : length[1][i - IMAGE_LITERALS];
            put_bits(w, (l & 1) << 3 | (l & 2) << 1 | (l & 4) >> 1 | l >> 3, 4);
        }
    }
}

/* A zlib stream of these bytes, in memory of `bytes` * 5 / 4 + 1024; returns its length, 0: out of memory. */
static size_t zlib_stream(const unsigned char *data, size_t bytes, unsigned char *out) {
    uint32_t *token = (uint32_t *)malloc(IMAGE_TOKENS * sizeof *token), a = 1, b = 0;
    size_t *head = (size_t *)calloc(IMAGE_HASH, sizeof *head); /* position + 1 of the last with this hash */
    size_t *before = (size_t *)malloc((bytes + 1) * sizeof *before), at = 0, tokens = 0, i;
    bit_writer w = {NULL, 0, 0};
    w.at = out;
    put_bits(&w, 0x0178, 16);
    while (token && head && before && at < bytes) {
        size_t best = 0, distance = 0, most = bytes - at < 258 ? bytes - at : 258, end, p, tries = 0;
        for (p = 0, i = 0; most >= 4 && i < 4; i++) p = p << 8 | data[at + i];
        for (p = most < 4 ? 0 : head[(uint32_t)(p * 2654435761u) >> 17]; p && at - p < 32768;
             p = before[p - 1]) {
            for (i = 0; i < most && data[p - 1 + i] == data[at + i]; i++) {
            }
            if (i > best) best = i, distance = at - (p - 1);
            if (++tries == 64 || best == most) break;
        }
        token[tokens++] = best < 4 ? data[at] : (uint32_t)(best << 16 | distance);
        for (end = at + (best < 4 ? 1 : best); at < end; at++) {
            size_t key = 0, *slot;
            a = (a + data[at]) % 65521, b = (b + a) % 65521;
            if (bytes - at < 4) continue;
            for (i = 0; i < 4; i++) key = key << 8 | data[at + i];
            slot = &head[(uint32_t)(key * 2654435761u) >> 17];
            before[at] = *slot, *slot = at + 1;
        }
        if (tokens == IMAGE_TOKENS || at == bytes) put_block(&w, token, tokens, at == bytes), tokens = 0;
    }
    put_bits(&w, 0, 7); /* to a whole byte */
    for (i = 0; i < 4; i++) *w.at++ = (unsigned char)((b << 16 | a) >> (24 - 8 * i));
    if (!token || !head || !before) w.at = out;
    free(token);
    free(head);
    free(before);
    return (size_t)(w.at - out);
}

/* -- the file -- */

static int put_chunk(FILE *f, const char *name, const unsigned char *data, size_t bytes) {
    unsigned char length[4], crc[4];
    uint32_t sum = crc32_of(crc32_of(0, name, 4), data, bytes);
    int i;
    for (i = 0; i < 4; i++) {
        length[i] = (unsigned char)(bytes >> (24 - 8 * i));
        crc[i] = (unsigned char)(sum >> (24 - 8 * i));
    }
    return fwrite(length, 1, 4, f) == 4 && fwrite(name, 1, 4, f) == 4 && fwrite(data, 1, bytes, f) == bytes
           && fwrite(crc, 1, 4, f) == 4;
}

/* The byte that filter 0 to 4 predicts from its left, upper and upper left neighbours. */
static int png_predict(int filter, int left, int up, int corner) {
    int toward = left + up - corner, a = abs(toward - left), b = abs(toward - up), c = abs(toward - corner);
    int paeth = a <= b && a <= c ? left : b <= c ? up : corner;
    return filter == 0 ? 0 : filter == 1 ? left : filter == 2 ? up : filter == 3 ? (left + up) / 2 : paeth;
}

static void put_u32(unsigned char *to, uint32_t value) {
    int i;
    for (i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* The filtered and packed rows of a picture; `raw` has room for them, a byte a row more. 0: no memory. */
static size_t pack_rows(uint32_t width, uint32_t height, const uint32_t *pixels, unsigned char *raw,
                        unsigned char *out) {
    size_t row = 3 * (size_t)width, x, y;
    int filter;
    for (y = 0; y < height; y++) {
        uint64_t least = UINT64_MAX;
        int best = 0;
        for (filter = 0; filter < 6; filter++) { /* the last round keeps the best */
            uint64_t sum = 0;
            int use = filter == 5 ? best : filter;
            raw[y * (row + 1)] = (unsigned char)use;
            for (x = 0; x < row; x++) {
                const uint32_t *p = pixels + y * width + x / 3;
                unsigned shift = 8 * (unsigned)(x % 3);
                int left = x > 2 ? (int)(p[-1] >> shift & 255) : 0;
                int up = y ? (int)(*(p - width) >> shift & 255) : 0;
                int corner = x > 2 && y ? (int)(*(p - width - 1) >> shift & 255) : 0;
                int d = ((int)(*p >> shift & 255) - png_predict(use, left, up, corner)) & 255;
                raw[y * (row + 1) + 1 + x] = (unsigned char)d;
                sum += (uint64_t)(d < 128 ? d : 256 - d);
            }
            if (sum < least) least = sum, best = use;
        }
    }
    return zlib_stream(raw, (row + 1) * height, out);
}

/* Several pictures are an animated PNG: acTL, then fcTL before the data of each, which is IDAT for the first
   and fdAT for the others. What knows no animation shows the first. */
static int write_png(const char *path, uint32_t width, uint32_t height, uint32_t pictures,
                     uint32_t milliseconds, const uint32_t *pixels) {
    size_t bytes = (3 * (size_t)width + 1) * height, packed;
    unsigned char *raw = (unsigned char *)malloc(bytes), *out = (unsigned char *)malloc(bytes / 4 * 5 + 1024);
    unsigned char header[13] = {0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0}; /* 8 bits of red, green, blue */
    unsigned char control[26] = {0}, total[8] = {0};
    int written;
    uint32_t i, number = 0;
    FILE *f = raw && out ? fopen(path, "wb") : NULL;
    put_u32(header, width), put_u32(header + 4, height), put_u32(total, pictures);
    put_u32(control + 4, width), put_u32(control + 8, height);
    put_u32(control + 20, milliseconds << 16 | 1000); /* a fraction of a second */
    written = f && fwrite("\x89PNG\r\n\x1a\n", 1, 8, f) == 8 && put_chunk(f, "IHDR", header, 13);
    if (pictures > 1) written = written && put_chunk(f, "acTL", total, 8);
    for (i = 0; written && i < pictures; i++) {
        packed = pack_rows(width, height, pixels + i * (size_t)width * height, raw, out + 4);
        put_u32(control, number), put_u32(out, number + 1);
        if (pictures > 1) written = put_chunk(f, "fcTL", control, 26), number += i ? 2 : 1;
        written =
            written && packed && put_chunk(f, i ? "fdAT" : "IDAT", out + (i ? 0 : 4), packed + (i ? 4 : 0));
    }
    written = written && put_chunk(f, "IEND", out, 0);
    if (f && fclose(f)) written = 0;
    free(raw);
    free(out);
    return written;
}

#ifdef EXAMPLE /* the name that messages begin with; behind ptxgen_cuda.h and example.h */
/* -- kernels that draw, and the end of a program that drew -- */

/* A pixel of red, green and blue from 0 to 1; what lies outside is clamped. */
static inline ptx_val pack_pixel(ptx_kernel *k, const ptx_val rgb[3]) {
    ptx_val rgba[4];
    rgba[0] = rgb[0], rgba[1] = rgb[1], rgba[2] = rgb[2], rgba[3] = ptx_f32(1);
    return ptx_pack_rgba8(k, rgba);
}

/* The thread ends where p holds. */
#define leave_where(k, p) (ptx_guard(k, p), ptx_ret(k))

/* Where the centre of pixel `index` of `size` lies, 0 in the middle, in halves of the height. */
static inline ptx_val from_centre(ptx_kernel *k, ptx_val index, ptx_val size, ptx_val height) {
    ptx_val middle = ptx_mul(k, ptx_cvt(k, PTX_F32, size), ptx_f32(0.5));
    ptx_val at = ptx_sub(k, ptx_add(k, ptx_cvt(k, PTX_F32, index), ptx_f32(0.5)), middle);
    return ptx_mul(k, at, ptx_div(k, ptx_f32(2), ptx_cvt(k, PTX_F32, height)));
}

/* Opens a device and loads the module's kernels. */
static inline ptxcu_program *open_program(ptxcu **cu, ptx_module *m) {
    ptxcu_program *program = NULL;
    ptxcu_code failed = ptxcu_open(cu, NULL);
    must(*cu, failed ? failed : ptxcu_load(*cu, m, &program));
    return program;
}

/* Copies the pixels from the device, writes the file, says so with the checksum of the pixels, and frees the
   device, the module and what device_bytes and to_device gave. Several pictures lie one behind the other.
   Returns the exit status. */
static inline int finish_pictures(ptxcu *cu, ptx_module *m, ptxcu_buffer pixels, uint32_t width,
                                  uint32_t height, uint32_t pictures, uint32_t milliseconds,
                                  const char *path) {
    size_t bytes = (size_t)width * height * 4 * pictures;
    uint32_t *host = (uint32_t *)need(bytes);
    int written;
    must(cu, ptxcu_download(cu, host, pixels, 0, bytes, NULL));
    must(cu, ptxcu_sync(cu));
    written = write_png(path, width, height, pictures, milliseconds, host);
    if (written)
        printf("%s on %s: %lu x %lu, checksum %08lx, in %s\n", EXAMPLE, ptxcu_device_info(cu)->name,
               (unsigned long)width, (unsigned long)height, (unsigned long)crc32_of(0, host, bytes), path);
    else
        fprintf(stderr, "%s: %s: %s\n", EXAMPLE, path, strerror(errno));
    free(host);
    free_device(cu);
    ptx_module_free(m);
    ptxcu_close(cu);
    return !written;
}

static inline int finish_picture(ptxcu *cu, ptx_module *m, ptxcu_buffer pixels, uint32_t width,
                                 uint32_t height, const char *path) {
    return finish_pictures(cu, m, pixels, width, height, 1, 0, path);
}

/* A picture by entry 0, whose parameters are the pixels, width and height. Returns the exit status. */
static inline int draw_picture(ptx_module *m, uint32_t width, uint32_t height, const char *path) {
    ptxcu *cu = NULL;
    ptxcu_program *program = open_program(&cu, m);
    ptxcu_buffer out = device_bytes(cu, (size_t)width * height * 4);
    ptx_launch launch = ptx_launch_2d(width, height, 32, 8);
    ptxcu_arg args[3];
    args[0] = ptxcu_arg_buffer(out), args[1] = ptxcu_arg_u32(width), args[2] = ptxcu_arg_u32(height);
    must(cu, ptxcu_launch(cu, program, &launch, args, 3, NULL));
    return finish_picture(cu, m, out, width, height, path);
}
#endif

#endif
