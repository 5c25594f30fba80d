/* pictures - the examples that draw: each file is decoded by a PNG reader of its own and compared with the picture
   that C computes, level by level of 0 to 255; `pictures BUILD`. The largest differences are printed. On the CPU
   driver without perturbation the pixels also have the checksum that stands here. */
#include <math.h>
#include <string.h>

#include "../../examples/image.h"
#include "../../examples/photograph.h"
#include "../check.h"

enum { MOST = 1 << 20 };
static const char *build;
static uint32_t picture[MOST], expected[MOST], width, height; /* height: of all frames, one below the other */

/* -- reading PNG -- */

typedef struct bit_reader {
    const unsigned char *at, *end;
    uint32_t held;
    unsigned count;
} bit_reader;

static uint32_t read_bits(bit_reader *r, unsigned count) {
    uint32_t value;
    for (; r->count < count; r->count += 8) r->held |= (uint32_t)(r->at < r->end ? *r->at++ : 0) << r->count;
    value = r->held & ((1u << count) - 1);
    r->held >>= count, r->count -= count;
    return value;
}

/* The next symbol of a canonical code with these lengths, bit by bit. */
static unsigned read_symbol(bit_reader *r, const unsigned char *length, unsigned n) {
    unsigned bits, i, code = 0, first = 0;
    for (bits = 1; bits <= 15; bits++) {
        unsigned index = 0, with = 0;
        code = code << 1 | read_bits(r, 1);
        for (i = 0; i < n; i++) with += length[i] == bits;
        if (code - first < with)
            for (i = 0; i < n; i++)
                if (length[i] == bits && index++ == code - first) return i;
        first = (first + with) << 1;
    }
    return ~0u;
}

/* Blocks with codes of their own, which is all that image.h writes. Returns the bytes, 0: something is wrong. */
static size_t inflate(const unsigned char *in, size_t bytes, unsigned char *out, size_t capacity) {
    static const unsigned char order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    bit_reader r = {NULL, NULL, 0, 0};
    size_t n = 0, i;
    uint32_t last, a = 1, b = 0;
    r.at = in, r.end = in + bytes;
    if (read_bits(&r, 8) != 0x78 || read_bits(&r, 8) != 1) return 0;
    do {
        unsigned char length[19] = {0}, both[320] = {0};
        unsigned literals, distances, lengths;
        last = read_bits(&r, 1);
        if (read_bits(&r, 2) != 2) return 0;
        literals = read_bits(&r, 5) + 257, distances = read_bits(&r, 5) + 1, lengths = read_bits(&r, 4) + 4;
        for (i = 0; i < lengths; i++) length[order[i]] = (unsigned char)read_bits(&r, 3);
        for (i = 0; i < literals + distances;) {
            unsigned s = read_symbol(&r, length, 19), repeat = 1, value = s;
            if (s > 18) return 0;
            if (s == 16) repeat = 3 + read_bits(&r, 2), value = i ? both[i - 1] : 0;
            if (s > 16) repeat = s == 17 ? 3 + read_bits(&r, 3) : 11 + read_bits(&r, 7), value = 0;
            while (repeat-- && i < literals + distances) both[i++] = (unsigned char)value;
        }
        for (;;) {
            unsigned s = read_symbol(&r, both, literals), run, back, extra;
            if (s > 285) return 0;
            if (s == 256) break;
            if (s < 256) {
                if (n == capacity) return 0;
                out[n++] = (unsigned char)s;
                continue;
            }
            s -= 257, extra = s < 8 || s == 28 ? 0 : s / 4 - 1;
            run = s < 8 ? s + 3 : s == 28 ? 258 : ((4 + s % 4) << extra) + 3 + read_bits(&r, extra);
            s = read_symbol(&r, both + literals, distances), extra = s < 4 ? 0 : s / 2 - 1;
            back = s < 4 ? s + 1 : ((2 + s % 2) << extra) + 1 + read_bits(&r, extra);
            if (s > 29 || back > n || run > capacity - n) return 0;
            for (; run--; n++) out[n] = out[n - back];
        }
    } while (!last);
    for (i = 0; i < n; i++) a = (a + out[i]) % 65521, b = (b + a) % 65521;
    read_bits(&r, r.count % 8);
    for (i = 0; i < 4; i++)
        if (read_bits(&r, 8) != ((b << 16 | a) >> (24 - 8 * i) & 255)) return 0;
    return n;
}

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Unpacks the rows of a frame into `to`; 1: they are whole. */
static int read_rows(const unsigned char *data, size_t n, uint32_t *to) {
    static unsigned char raw[4 * MOST];
    size_t row = 3 * (size_t)width, x, y;
    if (inflate(data, n, raw, sizeof raw) != (row + 1) * height) return 0;
    for (y = 0; y < height; y++)
        for (x = 0; x < row; x++) {
            unsigned char *p = raw + y * (row + 1) + 1 + x;
            int left = x > 2 ? p[-3] : 0, up = y ? *(p - row - 1) : 0,
                corner = x > 2 && y ? *(p - row - 4) : 0;
            if (raw[y * (row + 1)] > 4) return 0;
            *p = (unsigned char)(*p + png_predict(raw[y * (row + 1)], left, up, corner));
            if (x % 3 == 2)
                to[y * width + x / 3] = 0xff000000u | (uint32_t)p[0] << 16 | (uint32_t)p[-1] << 8 | p[-2];
        }
    return 1;
}

/* Reads a file of write_png into `picture`; 1: it is whole, of 8 bits of red, green and blue, and the frames of
   an animation are as many as it says, of its size, numbered without a gap. */
static int read_png(const char *path) {
    static unsigned char file[8 * MOST];
    size_t bytes = 0, at = 8, length;
    uint32_t frames = 0, told = 1, number = 0, controls = 0;
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    bytes = fread(file, 1, sizeof file, f);
    fclose(f);
    if (bytes < 57 || memcmp(file, "\x89PNG\r\n\x1a\n", 8)) return 0;
    for (; at + 12 <= bytes; at += length + 12) {
        length = big_endian(file + at);
        if (length > bytes - at - 12) return 0;
        const unsigned char *name = file + at + 4, *data = file + at + 8;
        if (big_endian(data + length) != crc32_of(0, name, length + 4)) return 0;
        if (!memcmp(name, "IHDR", 4)) {
            width = big_endian(data), height = big_endian(data + 4);
            if (memcmp(data + 8, "\x08\x02\0\0", 5) || (uint64_t)width * height > MOST) return 0;
        }
        if (!memcmp(name, "acTL", 4)) told = big_endian(data);
        if (!memcmp(name, "fcTL", 4)) {
            if (big_endian(data) != number++ || big_endian(data + 4) != width || big_endian(data + 8) != height)
                return 0;
            controls++;
        }
        if (!memcmp(name, "IDAT", 4) || !memcmp(name, "fdAT", 4)) {
            size_t behind = *name == 'f' ? 4 : 0;
            if ((uint64_t)width * height * (frames + 1) > MOST || (behind && big_endian(data) != number++)) return 0;
            if (!read_rows(data + behind, length - behind, picture + (size_t)frames++ * width * height)) return 0;
        }
    }
    height *= frames;
    return at == bytes && frames == told && controls == (told > 1 ? told : 0);
}

/* -- running an example -- */

/* Runs build/NAME OPTIONS and reads its picture. The checksum that it prints is that of the file's pixels, and
   `checksum` where nothing is perturbed on the CPU driver. */
static int draw(const char *name, const char *options, int perturbed, uint32_t checksum) {
    char command[1000], path[300], line[300] = "", *word;
    unsigned long told = 0;
    int read = 0;
    FILE *f;
    snprintf(path, sizeof path, "%s/picture_%s", build, name);
    snprintf(command, sizeof command, "%s NVRTC_LIBRARY=/nowhere %s/%s %s --out %s.png >%s.txt",
             perturbed ? "" : "PTXSIM_PERTURB=0", build, name, options, path, path);
    if (!CHECK_MORE(system(command) == 0, command)) return 0;
    snprintf(command, sizeof command, "%s.txt", path);
    f = fopen(command, "r");
    while (f && fgets(line, sizeof line, f))
        if ((word = strstr(line, "checksum ")) != NULL) told = strtoul(word + 9, NULL, 16), read = 1;
    if (f) fclose(f);
    remove(command);
    snprintf(command, sizeof command, "%s.png", path);
    if (!CHECK_MORE(read && read_png(command), name)) return 0;
    CHECK_MORE(told == crc32_of(0, picture, (size_t)width * height * 4), name);
    if (!perturbed && strstr(line, "ptxsim") && !CHECK_MORE(told == checksum, name))
        printf("  %s: checksum %08lx, %08lx stands in the test\n", name, told, (unsigned long)checksum);
    remove(command);
    return 1;
}

/* Compares with `expected`; at most `few` of a million levels may differ by more than `levels`. */
static void compare(const char *name, int levels, double few) {
    size_t i, beyond = 0, count = (size_t)width * height;
    int largest = 0, c;
    for (i = 0; i < count; i++)
        for (c = 0; c < 24; c += 8) {
            int d = abs((int)(picture[i] >> c & 255) - (int)(expected[i] >> c & 255));
            if (d > largest) largest = d;
            beyond += d > levels;
        }
    printf("note: %s: largest difference %d of 255; %.0f of a million levels differ by more than %d\n", name,
           largest, 1e6 * (double)beyond / (3.0 * (double)count), levels);
    CHECK_MORE((double)beyond <= few * 3e-6 * (double)count, name);
}

/* The next of the random numbers of example.h, by xorshift64*. */
static double drawn(uint64_t *state) {
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717ull) >> 11) / 4503599627370496.0 - 1.0;
}

static uint32_t level(double x) { return (uint32_t)((x < 0 ? 0 : x > 1 ? 1 : x) * 255 + 0.5); }
static uint32_t pixel(double r, double g, double b) {
    return 0xff000000u | level(r) | level(g) << 8 | level(b) << 16;
}

/* -- references -- */

/* The points are iterated in f32 as the kernel does, so that the numbers of rounds are the same. */
static void expect_mandelbrot(float centre_x, float centre_y, float size, uint32_t samples, uint32_t rounds) {
    static const double phase[3] = {3.9, 3.3, 2.4};
    float step = size / (float)(height * samples), left = centre_x - step * (float)(width * samples) * 0.5f;
    float top = centre_y - size * 0.5f;
    uint32_t x, y, i, n, c;
    for (y = 0; y < height; y++)
        for (x = 0; x < width; x++) {
            double rgb[3] = {0, 0, 0};
            for (i = 0; i < samples * samples; i++) {
                float cx = fmaf((float)(x * samples + i % samples), step, left), zx = 0, zy = 0, square;
                float cy = fmaf((float)(y * samples + i / samples), step, top);
                for (n = 0; square = fmaf(zy, zy, zx * zx), square < 256 && n < rounds; n++) {
                    float next = fmaf(-zy, zy, zx * zx) + cx;
                    zy = fmaf(zx + zx, zy, cy), zx = next;
                }
                if (n == rounds) continue;
                for (c = 0; c < 3; c++)
                    rgb[c] += 0.5 + 0.5 * cos(2.2 * log2(n + 4 - log2(log2((double)square))) + phase[c]);
            }
            expected[y * width + x] = pixel(rgb[0] / (samples * samples), rgb[1] / (samples * samples),
                                            rgb[2] / (samples * samples));
        }
}

static void expect_graph(void) {
    uint32_t i, j;
    for (j = 0; j < height; j++)
        for (i = 0; i < width; i++) {
            double x = (i + 0.5 - 0.5 * width) * 2 / height, y = -(j + 0.5 - 0.5 * height) * 2 / height;
            double q = x + sin(2 * y), s = y + sin(2.3 * q), u = q + sin(3.1 * s) / 2,
                   v = s + sin(3.7 * u) / 2;
            double d = fabs(sin(4 * u) * sin(4 * v)), e = exp2(-6 * d);
            expected[j * width + i] = pixel(e + v / 10, 0.6 * e + d / 4, d / 2 + 0.4 * e * e);
        }
}

/* The stars in f32, operation by operation as the kernels do: no level may differ. */
static void expect_particles(uint32_t count) {
    enum { W = 256, H = 160, FRAMES = 24, STEPS = 20 };
    static const double half[2][3] = {{900, 2400, 7000}, {7000, 2200, 900}};
    static float star[100000][6], path[FRAMES * STEPS][6];
    static uint32_t grid[2][W * H];
    const float step = 0.02f, softening = 0.04f, unit = 0.0475f;
    double p[3] = {2.6, -0.9, 0}, v[3] = {-0.42, 0, 0};
    uint64_t state = 1;
    uint32_t i, c, n, frame, core;
    for (i = 0; i < count; i++) {
        double side = i & 1 ? 1 : -1, lean = i & 1 ? -0.9 : 0.35, angle = 3.14159265 * drawn(&state);
        double r = 0.01 - 0.44 * log(0.5 + 0.49 * drawn(&state)), speed;
        speed = r * pow(r * r + softening, -0.75);
        for (c = 0; c < 3; c++) {
            double turn[2] = {r * (c ? sin(angle) : cos(angle)), speed * (c ? cos(angle) : -sin(angle))};
            double part = c == 0 ? 1 : c == 1 ? cos(lean) : sin(lean);
            star[i][c] = (float)(turn[0] * part + side * p[c]);
            star[i][3 + c] = (float)(turn[1] * part + side * v[c]);
        }
    }
    for (n = 0; n < FRAMES * STEPS; n++) {
        double square = 4 * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + softening;
        for (c = 0; c < 3; c++) {
            path[n][c] = (float)-p[c], path[n][3 + c] = (float)p[c];
            v[c] -= 2 * p[c] * step * pow(square, -1.5);
        }
        for (c = 0; c < 3; c++) p[c] += v[c] * step;
    }
    for (frame = 0; frame < FRAMES; frame++) {
        memset(grid, 0, sizeof grid);
        for (i = 0; i < count; i++) {
            float *s = star[i];
            int32_t fine[2];
            for (n = frame * STEPS; n < (frame + 1) * STEPS; n++) {
                for (core = 0; core < 2; core++) {
                    float d[3], square = softening, pull;
                    for (c = 0; c < 3; c++)
                        d[c] = path[n][3 * core + c] - s[c], square = fmaf(d[c], d[c], square);
                    pull = step * (1.0f / (square * sqrtf(square)));
                    for (c = 0; c < 3; c++) s[3 + c] = fmaf(d[c], pull, s[3 + c]);
                }
                for (c = 0; c < 3; c++) s[c] = fmaf(s[3 + c], step, s[c]);
            }
            for (c = 0; c < 2; c++) fine[c] = (int32_t)fmaf(s[c], 256 / unit, c ? 128.0f * H : 128.0f * W);
            if (fine[0] < 0 || fine[1] < 0 || fine[0] >> 8 >= W - 1 || fine[1] >> 8 >= H - 1) continue;
            for (c = 0; c < 4; c++) {
                uint32_t x = (uint32_t)fine[0] & 255, y = (uint32_t)fine[1] & 255;
                size_t at = (size_t)((fine[1] >> 8) + (int)(c >> 1)) * W + (size_t)(fine[0] >> 8) + (c & 1);
                grid[i & 1][at] += (c & 1 ? x : 256 - x) * (c & 2 ? y : 256 - y) >> 8;
            }
        }
        for (i = 0; i < W * H; i++) {
            n = frame * W * H + i;
            expected[n] = 0xff000000u;
            for (c = 0; c < 3; c++) {
                float a = (float)grid[0][i], b = (float)grid[1][i];
                float sum = a / (a + (float)half[0][c]) + b / (b + (float)half[1][c]);
                expected[n] |= (uint32_t)rintf(255.0f * (sum < 1 ? sum : 1)) << 8 * c;
            }
        }
    }
}

/* The scene of raymarch in double: silhouettes and edges of shadows may fall on another pixel. */
static double clamped(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double mixed(double a, double b, double t) { return a * (1 - t) + b * t; }
static double smoothly(double low, double high, double x) {
    double t = clamped((x - low) / (high - low));
    return t * t * (3 - 2 * t);
}
static double melted(double a, double b, double size) {
    double h = clamped(0.5 + 0.5 * (b - a) / size);
    return mixed(b, a, h) - size * h * (1 - h);
}
static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
static double scene(const double *p) {
    double bumps = 0.07 * sin(8 * p[0]) * sin(8 * p[1]) * sin(8 * p[2]);
    double ring = hypot(hypot(p[0], p[2]) - 1.35, p[1] + 0.75) - 0.17;
    return melted(melted(sqrt(dot(p, p)) - 0.85 + bumps, ring, 0.3), p[1] + 0.9, 0.25);
}
static double marched(const double *from, const double *to, int steps, double *light) {
    double t = (double)0.02f, least = 1, p[3], d;
    int c;
    while (steps--) {
        for (c = 0; c < 3; c++) p[c] = from[c] + to[c] * t;
        d = scene(p), least = fmin(least, 9 * d / t);
        if (d <= 0.001) break;
        t += 0.9 * d;
        if (t >= 30) break;
    }
    *light = smoothly(0, 1, least);
    return t;
}
static void expect_raymarch(void) {
    static const double sun[3] = {-0.72, 0.49, 0.49}, eye[3] = {2.3, 0.9, 3.1};
    static const double camera[3][3] = {
        {0.803, 0, -0.596}, {-0.162, 0.962, -0.219}, {-0.573, -0.272, -0.773}};
    static const double low[3] = {0.82, 0.60, 0.46}, high[3] = {0.06, 0.19, 0.46},
                        glow[3] = {0.9, 0.55, 0.25};
    static const double ball[3] = {0.78, 0.17, 0.06}, ring[3] = {0.03, 0.25, 0.30};
    static const double direct[3] = {1.9, 1.6, 1.25}, around[3] = {0.24, 0.30, 0.42};
    uint32_t i, bounce;
    int c, corner;
    for (i = 0; i < width * height; i++) {
        double x = (i % width + 0.5 - 0.5 * width) * 2 / height,
               y = -(i / width + 0.5 - 0.5 * height) * 2 / height;
        double from[3], to[3], sum[3] = {0, 0, 0}, rest = 1, size;
        for (c = 0; c < 3; c++)
            from[c] = eye[c], to[c] = x * camera[0][c] + y * camera[1][c] + 1.9 * camera[2][c];
        for (size = sqrt(dot(to, to)), c = 0; c < 3; c++) to[c] /= size;
        for (bounce = 0; bounce < 2; bounce++) {
            double light, n[3] = {0, 0, 0}, p[3], q[3], t = marched(from, to, 96, &light), floor_, outer,
                          tile, open;
            double halo = pow(fmax(dot(to, sun), 0), 24), up, mirror, haze = exp(-0.006 * t * t), weight;
            for (c = 0; c < 3; c++) p[c] = from[c] + t * to[c];
            for (corner = 0; corner < 4; corner++) {
                const double at[3] = {corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner % 3 ? -1 : 1};
                for (c = 0; c < 3; c++) q[c] = p[c] + 0.002 * at[c];
                for (size = scene(q), c = 0; c < 3; c++) n[c] += size * at[c];
            }
            for (size = sqrt(dot(n, n)), c = 0; c < 3; c++) n[c] /= size;
            floor_ = smoothly(-0.8, -0.89, p[1]), outer = smoothly(0.8, 1.3, hypot(p[0], p[2]));
            tile = floor(1.25 * p[0]) + floor(1.25 * p[2]), tile = 0.25 + 0.35 * (tile - 2 * floor(tile / 2));
            for (c = 0; c < 3; c++) q[c] = p[c] + 0.02 * n[c];
            marched(q, sun, 28, &light), light *= fmax(dot(n, sun), 0);
            for (c = 0; c < 3; c++) q[c] = p[c] + 0.3 * n[c];
            open = clamped(scene(q) / 0.3), up = smoothly(-0.1, 0.7, to[1]);
            mirror = 0.6 * pow(clamped(1 + dot(n, to)), 5) + 0.2 * floor_ + 0.04, mirror *= haze;
            weight = rest * (1 - mirror), rest *= mirror;
            for (c = 0; c < 3; c++) {
                double rgb = mixed(mixed(ball[c], ring[c], outer), tile, floor_)
                             * (light * direct[c] + open * around[c]);
                sum[c] += weight * mixed(halo * glow[c] + mixed(low[c], high[c], up), rgb, haze);
            }
            for (size = -2 * dot(n, to), c = 0; c < 3; c++)
                to[c] += size * n[c], from[c] = p[c] + 0.02 * n[c];
        }
        for (c = 0; c < 3; c++)
            sum[c] = sum[c] <= 0.0031308 ? 12.92 * sum[c] : 1.055 * pow(sum[c], 1 / 2.4) - 0.055;
        expected[i] = pixel(sum[0], sum[1], sum[2]);
    }
}

/* Both halves of blur's picture: the photograph, and two passes in double, rounded to levels between them. */
static void expect_blur(int radius) {
    static uint32_t photo[MOST], between[MOST];
    int w = (int)width, h = (int)height, x, y, tap, pass, c;
    double weight[33], sum = -1;
    for (tap = 0; tap <= radius; tap++)
        weight[tap] = exp(-2.0 * tap * tap / (radius * radius)), sum += 2 * weight[tap];
    for (y = 0; y < h; y++)
        for (x = 0; x < w; x++) photo[y * w + x] = photograph((x + 0.5) / h, (y + 0.5) / h);
    for (pass = 0; pass < 2; pass++)
        for (y = 0; y < h; y++)
            for (x = 0; x < w; x++) {
                const uint32_t *from = pass ? between : photo;
                double rgb[3] = {0, 0, 0};
                for (tap = -radius; tap <= radius; tap++) {
                    int i = pass ? x : x + tap, j = pass ? y + tap : y;
                    i = i < 0 ? 0 : i >= w ? w - 1 : i, j = j < 0 ? 0 : j >= h ? h - 1 : j;
                    for (c = 0; c < 3; c++)
                        rgb[c] += weight[abs(tap)] / sum / 255 * (from[j * w + i] >> 8 * c & 255);
                }
                (pass ? expected : between)[y * w + x] = pixel(rgb[0], rgb[1], rgb[2]);
            }
    for (y = 0; y < h; y++)
        for (x = 0; x < w / 2; x++) expected[y * w + x] = photo[y * w + x];
}

/* The steps in f32 in the kernel's order, the picture in double. */
static void expect_operators(int steps) {
    enum { W = 160, H = 100, SCALE = 3 };
    static float now[2][W * H], next[2][W * H];
    uint64_t state = 1;
    int n, x = 0, y = 0, corner;
    for (n = 0; n < W * H; n++) now[0][n] = 1, now[1][n] = 0;
    for (n = 0; n < 150 * 36; n++) {
        if (n % 36 == 0)
            x = (int)((drawn(&state) + 1) * 0.499 * (W - 6)),
            y = (int)((drawn(&state) + 1) * 0.499 * (H - 6));
        now[0][(y + n / 6 % 6) * W + x + n % 6] = 0.5f, now[1][(y + n / 6 % 6) * W + x + n % 6] = 0.25f;
    }
    while (steps--) {
        for (y = 0; y < H; y++)
            for (x = 0; x < W; x++) {
                int left = y * W + (x ? x - 1 : 0), right = y * W + (x < W - 1 ? x + 1 : x), i = y * W + x;
                int up = (y ? y - 1 : 0) * W + x, down = (y < H - 1 ? y + 1 : y) * W + x;
                float feed = 0.024f + 0.034f * ((float)y * (1.0f / H)), u = now[0][i], v = now[1][i],
                      around[2];
                float kill = 0.0578f + 0.0052f * ((float)x * (1.0f / W)), reaction = u * v * v;
                for (n = 0; n < 2; n++) around[n] = now[n][left] + now[n][right] + now[n][up] + now[n][down];
                next[0][i] = u + ((around[0] - 4.0f * u) * 0.11f - reaction + feed * (1.0f - u));
                next[1][i] = v + ((around[1] - 4.0f * v) * 0.055f + reaction - (feed + kill) * v);
            }
        memcpy(now, next, sizeof now);
    }
    for (n = 0; n < W * H * SCALE * SCALE; n++) {
        double right = n % (W * SCALE) % SCALE / (double)SCALE,
               below = n / (W * SCALE) % SCALE / (double)SCALE;
        double rise = 0, slope = 0, light;
        for (corner = 0; corner < 4; corner++) {
            double weight = (corner % 2 ? right : 1 - right) * (corner / 2 ? below : 1 - below);
            x = n % (W * SCALE) / SCALE + corner % 2, y = n / (W * SCALE) / SCALE + corner / 2;
            if (x > W - 1) x = W - 1;
            if (y > H - 1) y = H - 1;
            rise += weight * (double)now[1][y * W + x];
            slope += weight * (double)now[1][(y ? y - 1 : 0) * W + (x ? x - 1 : 0)];
            slope -= weight * (double)now[1][(y < H - 1 ? y + 1 : y) * W + (x < W - 1 ? x + 1 : x)];
        }
        light = 1 + 1.2 * slope;
        expected[n] =
            pixel((0.96 - 1.1 * rise) * light, (0.90 - 2.0 * rise) * light, (0.78 - 1.3 * rise) * light);
    }
}

int main(int argc, char **argv) {
    char operators[300];
    FILE *f;
    if (argc != 2) {
        fprintf(stderr, "pictures: the build folder is missing\n");
        return 2;
    }
    build = argv[1];
    draw("mandelbrot", "--width 320 --height 200", 0, 0xf8fda081);
    if (draw("mandelbrot", "--width 250 --height 131 --samples 3", 1, 0)) {
        expect_mandelbrot(-0.7453f, 0.1127f, 0.0065f, 3, 500);
        compare("mandelbrot", 1, 0);
    }
    if (draw("mandelbrot", "--width 131 --height 100 --samples 1 --rounds 40 --x -0.5 --y 0 --size 3", 1,
             0)) {
        expect_mandelbrot(-0.5f, 0, 3, 1, 40);
        compare("mandelbrot, whole", 1, 0);
    }
    draw("particles", "--count 30000", 0, 0x36cc6e36);
    if (draw("particles", "--count 10001", 1, 0)) {
        expect_particles(10001);
        compare("particles", 0, 0);
    }
    draw("blur", "--width 320 --height 200", 0, 0x079e1926);
    if (draw("blur", "--width 201 --height 111 --radius 7", 1, 0)) {
        expect_blur(7);
        compare("blur", 1, 0);
    }
    draw("shader_graph", "--width 320 --height 200", 0, 0xe0812e21);
    if (draw("shader_graph", "--width 333 --height 200", 1, 0)) {
        expect_graph();
        compare("shader_graph", 1, 0);
    }
    draw("raymarch", "--width 240 --height 150", 0, 0xec0f8fe0);
    if (draw("raymarch", "--width 160 --height 100", 1, 0)) {
        expect_raymarch();
        compare("raymarch", 1, 100);
    }
    snprintf(operators, sizeof operators, "%s/operators", build);
    f = fopen(operators, "rb");
    if (f) {
        fclose(f);
        draw("operators", "--steps 2", 0, 0x5f2ba2d5);
        if (draw("operators", "--steps 150 --compared 10", 1, 0)) {
            expect_operators(150);
            compare("operators", 1, 0);
        }
    } else
        puts("skip: operators was not built: there is no C++ compiler");
    return check_end();
}
