/* nvcc.c - runs what nvcc makes of the .cu files in tests/nvcc, in every mode of
 * tests/nvcc/build.sh, and compares with references computed here. All checks are on and must stay silent.
 *
 *   nvcc [library]        or PTXGEN_CUDA_LIBRARY; run from the root of the repository
 *
 * The program runs itself once for each simulated chip. Integers are compared bit for bit; floating point
 * within the bounds that CUDA documents for each function. */
#include "../simtest.h"
#include "../nvcc/shared.h"
#include <fenv.h>
#include <float.h>
#include <unistd.h>

/* --- the archive: tar, unpacked here ---------------------------------------------------------- */

typedef struct variant {
    char file[32], mode[8], arch[8];
    char *text;
} variant;
enum { MAX_VARIANTS = 128 };
static variant variants[MAX_VARIANTS];
static int variant_count;

static bool read_archive(const char *path)
{
    char command[200];
    unsigned char head[512];
    snprintf(command, sizeof command, "gzip -dc %s 2>/dev/null", path);
    FILE *f = popen(command, "r");
    while (f && fread(head, 1, 512, f) == 512 && head[0]) {
        size_t size = strtoul((char *)head + 124, NULL, 8), padded = (size + 511) / 512 * 512;
        char *text = calloc(1, padded + 1);
        variant *v = &variants[variant_count];
        if (!text || fread(text, 1, padded, f) != padded) {
            free(text);
            break;
        }
        head[100] = 0;
        if (variant_count < MAX_VARIANTS
            && sscanf((char *)head, "ptx/%31[^.].%7[^.].%7[^.].ptx", v->file, v->mode, v->arch) == 3) {
            v->text = text;
            variant_count++;
        } else
            free(text);
    }
    if (f) pclose(f);
    return variant_count > 0;
}

/* --- running a kernel of the present variant -------------------------------------------------- */

static const variant *now;
static handle module;

static const char *where(const char *kernel)
{
    static char text[128];
    snprintf(text, sizeof text, "%s.%s.%s: %s", now->file, now->mode, now->arch, kernel);
    return text;
}

static bool fast(void) { return !strcmp(now->mode, "fast"); }

static int launch(const char *kernel, const unsigned grid[3], const unsigned block[3], unsigned shared,
                  void **params)
{
    handle f = function(module, kernel);
    if (!CHECK(f != NULL, "%s is not there", where(kernel))) return -1;
    if (shared > 49152) SAME(cuFuncSetAttribute_(f, 8, (int)shared), 0);
    int code = cuLaunchKernel_(f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, NULL,
                               params, NULL);
    return code ? code : cuCtxSynchronize_();
}

/* Runs and expects no finding. */
static bool runs(const char *kernel, unsigned grid, unsigned block, unsigned shared, void **params)
{
    const unsigned g[3] = {grid, 1, 1}, b[3] = {block, 1, 1};
    int code = launch(kernel, g, b, shared, params);
    bool good = CHECK(code == 0 && !report_count(), "%s gives %d: %s", where(kernel), code, findings());
    if (!good) report_clear();
    return good;
}

static dptr upload(const void *from, size_t bytes)
{
    dptr p = alloc(bytes);
    SAME(cuMemcpyHtoD_v2_(p, from, bytes), 0);
    return p;
}

static void *download(dptr from, size_t bytes)
{
    void *p = malloc(bytes);
    SAME(cuMemcpyDtoH_v2_(p, from, bytes), 0);
    SAME(cuMemFree_v2_(from), 0);
    if (report_count()) {
        CHECK(false, "%s: %s", where("copy"), findings());
        report_clear();
    }
    return p;
}

/* Counts the differing elements; tells the first. */
#define EQUAL_ARRAYS(kernel, have, want, count, format)                                                      \
    do {                                                                                                     \
        size_t n_ = (count), bad_ = 0, first_ = 0;                                                           \
        for (size_t k_ = 0; k_ < n_; k_++)                                                                   \
            if ((have)[k_] != (want)[k_] && !bad_++) first_ = k_;                                            \
        CHECK(!bad_, "%s: %zu of %zu differ, [%zu] is " format ", expected " format, where(kernel), bad_,    \
              n_, first_, (have)[first_], (want)[first_]);                                                   \
    } while (0)

/* --- integers --------------------------------------------------------------------------------- */

static uint32_t reversed(uint32_t v)
{
    uint32_t r = 0;
    for (int k = 0; k < 32; k++) r |= (v >> k & 1) << (31 - k);
    return r;
}
static uint64_t reversed64(uint64_t v)
{
    return (uint64_t)reversed((uint32_t)v) << 32 | reversed((uint32_t)(v >> 32));
}
static uint32_t leading(uint64_t v, int bits)
{
    uint32_t n = 0;
    while (bits-- && !(v >> bits & 1)) n++;
    return n;
}
static uint32_t first_one(uint64_t v) { return v ? (uint32_t)__builtin_ctzll(v) + 1 : 0; }

static uint32_t permuted(uint32_t a, uint32_t b, uint32_t s)
{
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int k = 0; k < 4; k++) r |= (uint32_t)(both >> (s >> 4 * k & 7) * 8 & 255) << 8 * k;
    return r;
}

static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, bool is_signed)
{
    for (int k = 0; k < 32; k += 8)
        c += is_signed ? (uint32_t)((int8_t)(a >> k) * (int8_t)(b >> k)) : (a >> k & 255) * (b >> k & 255);
    return c;
}

static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, bool is_signed, int high)
{
    for (int k = 0; k < 2; k++) {
        uint32_t x = a >> 16 * k, y = b >> (16 * high + 8 * k);
        c += is_signed ? (uint32_t)((int16_t)x * (int8_t)y) : (x & 0xffff) * (y & 255);
    }
    return c;
}

static void bits_of(uint32_t i, uint32_t *o)
{
    uint32_t a = mix(i), b = mix(i + 1000000u), c = mix(i + 2000000u);
    int32_t x = (int32_t)a, y = (int32_t)b;
    int64_t xs = (int32_t)(a << 8) >> 8, ys = (int32_t)(b << 8) >> 8;
    uint64_t m = mix64(i), n = mix64(i + 9);
    o[0] = (uint32_t)__builtin_popcount(a) + 100 * leading(a, 32) + 10000 * first_one(a)
           + leading((uint64_t)a << 7, 64);
    o[1] = reversed(a) ^ permuted(a, b, c & 0x7777);
    uint32_t s = c & 31, r = (c >> 8) < 32 ? c >> 8 : 32;
    o[2] = (uint32_t)(((uint64_t)b << 32 | a) << s >> 32) ^ (uint32_t)(((uint64_t)b << 32 | a) >> r);
    o[3] = (uint32_t)((uint64_t)a * b >> 32) + (uint32_t)((int64_t)x * y >> 32);
    o[4] = (uint32_t)(xs * ys) ^ (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff));
    o[5] = (a > b ? a - b : b - a) + c
           + (uint32_t)(x > y ? (uint32_t)x - (uint32_t)y : (uint32_t)y - (uint32_t)x) + c;
    o[6] = (uint32_t)(((int64_t)x + y) >> 1) ^ (uint32_t)(((int64_t)x + y + 1) >> 1)
           ^ (uint32_t)(((uint64_t)a + b) >> 1) ^ (uint32_t)(((uint64_t)a + b + 1) >> 1);
    o[7] = (uint32_t)((x < y ? x : y) ^ (x > 5 ? x : 5)) + (a < b ? a : b) + (b > c ? b : c)
           + (x < 0 ? 0u - a : a);
    o[8] = (a / (b | 1)) ^ (a % (b >> 9 | 1)) ^ (uint32_t)(x / (y >> 7 | 1)) ^ (uint32_t)(x % (y >> 7 | 1));
    o[9] = (a & b) | ((~a & c) ^ (a ^ b ^ c));
    o[10] = dot4(a, b, c, true) ^ dot4(a, b, c, false);
    o[11] = dot2(a, b, c, true, 0) ^ dot2(a, b, c, false, 1);
    o[12] = (uint32_t)(int8_t)a * (uint32_t)(int16_t)b + (uint8_t)(a * 3) + (uint16_t)(b << 3);
    o[13] = (a << (c & 31)) + (a >> (c >> 5 & 31)) + (uint32_t)(x >> (c >> 10 & 31));
    o[14] = (uint32_t)__builtin_popcountll(m) + first_one(m) * 64 + (uint32_t)(reversed64(m) >> 32);
    o[15] = (uint32_t)((uint64_t)((unsigned __int128)m * n >> 64) >> 32
                       ^ (uint32_t)(uint64_t)((__int128)(int64_t)m * (int64_t)n >> 64));
}

static void sha_constants(uint32_t *k) /* the fractional parts of the cube roots of the first 64 primes */
{
    for (uint32_t n = 2, count = 0; count < 64; n++) {
        bool prime = true;
        for (uint32_t d = 2; d * d <= n; d++) prime &= n % d != 0;
        if (!prime) continue;
        long double root = cbrtl((long double)n);
        k[count++] = (uint32_t)((root - floorl(root)) * 4294967296.0L);
    }
}

static void test_integers(void)
{
    enum { N = 1000 };
    static uint32_t want[N * 16], k[64];
    static uint64_t wide[N];
    uint32_t n = N, width = 40;
    dptr d = alloc(sizeof want), constants;
    void *params[] = {&d, &n, &width};
    size_t size;
    for (uint32_t i = 0; i < N; i++) bits_of(i, want + 16 * i);
    if (runs("bits", 8, 128, 0, params)) {
        uint32_t *have = download(d, sizeof want);
        EQUAL_ARRAYS("bits", have, want, N * 16, "%08x");
        free(have);
    }
    d = alloc(sizeof wide);
    for (uint32_t i = 0; i < N; i++) wide[i] = wide_of(i);
    if (runs("wide", 8, 128, 0, params)) {
        uint64_t *have = download(d, sizeof wide);
        EQUAL_ARRAYS("wide", have, wide, N, "%016lx");
        free(have);
    }
    sha_constants(k);
    SAME(k[0], 0x428a2f98);
    SAME(cuModuleGetGlobal_v2_(&constants, &size, module, "sha_constants"), 0);
    SAME(size, sizeof k);
    SAME(cuMemcpyHtoD_v2_(constants, k, sizeof k), 0);
    n = 100;
    d = alloc(n * 8);
    for (uint32_t i = 0; i < n; i++) {
        want[2 * i] = crc32_of(i);
        want[2 * i + 1] = sha256_of(i, k);
    }
    if (runs("digests", 2, 64, 0, params)) {
        uint32_t *have = download(d, n * 8);
        EQUAL_ARRAYS("digests", have, want, 2 * n, "%08x");
        free(have);
    }
    n = 40 * 30;
    d = alloc(n * 4);
    for (uint32_t i = 0; i < n; i++) want[i] = mandelbrot_of(i, width);
    if (runs("mandelbrot", 10, 128, 0, params)) {
        uint32_t *have = download(d, n * 4);
        EQUAL_ARRAYS("mandelbrot", have, want, n, "%u");
        free(have);
    }
    static const double numbers[3] = {0.5, -2.25, 1e300};
    static const char text[14] = "constant text";
    static const uint64_t first[3] = {500 * 256 - 1, 65535 * 256 + 7, 256}, second[3] = {2, 11, 0};
    uint64_t table[26];
    for (int i = 0; i < 3; i++) {
        table[4 * i] = first[i];
        table[4 * i + 1] = second[i];
        memcpy(&table[4 * i + 2], &numbers[i], 8);
        table[4 * i + 3] = (uint64_t)(i == 0 ? 3 : i == 1 ? 5 : 7);
    }
    for (int i = 0; i < 14; i++) table[12 + i] = (uint64_t)(text[i] + small_table[(i + 3) & 15]);
    d = alloc(sizeof table);
    if (runs("tables", 1, 32, 0, params)) {
        uint64_t *have = download(d, sizeof table);
        EQUAL_ARRAYS("tables", have, table, 26, "%lx");
        free(have);
    }
}

/* --- packed bytes and halfwords --------------------------------------------------------------- */

typedef int64_t (*lane_operation)(int64_t a, int64_t b);

static int64_t limited(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }
static int64_t op_add(int64_t a, int64_t b) { return a + b; }
static int64_t op_sub(int64_t a, int64_t b) { return a - b; }
static int64_t op_distance(int64_t a, int64_t b) { return a > b ? a - b : b - a; }
static int64_t op_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t op_min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t op_above(int64_t a, int64_t b) { return a > b ? -1 : 0; }
static int64_t op_set(int64_t a, int64_t b) { return a > b; }
static int64_t op_same(int64_t a, int64_t b) { return a == b ? -1 : 0; }
static int64_t op_add_s8(int64_t a, int64_t b) { return limited(a + b, -128, 127); }
static int64_t op_sub_u16(int64_t a, int64_t b) { return limited(a - b, 0, 65535); }
static int64_t op_mean(int64_t a, int64_t b) { return (a + b + 1) >> 1; }
static int64_t op_mean_s(int64_t a, int64_t b) { return (a + b + (a + b >= 0)) >> 1; }
static int64_t op_negate(int64_t a, int64_t b)
{
    (void)b;
    return limited(-a, -32768, 32767);
}
static int64_t op_absolute(int64_t a, int64_t b)
{
    (void)b;
    return limited(a < 0 ? -a : a, -128, 127);
}

static uint32_t lanes(uint32_t a, uint32_t b, int bits, bool is_signed, lane_operation f, int64_t *sum)
{
    uint32_t r = 0, mask = (1u << bits) - 1;
    for (int k = 0; k < 32; k += bits) {
        int64_t x = a >> k & mask, y = b >> k & mask;
        if (is_signed && x >> (bits - 1)) x -= mask + 1ll;
        if (is_signed && y >> (bits - 1)) y -= mask + 1ll;
        int64_t v = f(x, y);
        r |= ((uint32_t)v & mask) << k;
        if (sum) *sum += v;
    }
    return r;
}

static void test_packed(void)
{
    enum { N = 500 };
    static uint32_t want[N * 8];
    uint32_t n = N;
    dptr d = alloc(sizeof want);
    void *params[] = {&d, &n};
    for (uint32_t i = 0; i < N; i++) {
        uint32_t a = mix(i), b = mix(i + 1000000u), *o = want + 8 * i;
        int64_t u = 0, s = 0;
        lanes(a, b, 8, false, op_distance, &u);
        lanes(a, b, 16, true, op_distance, &s);
        o[0] = lanes(a, b, 8, false, op_add, NULL) ^ lanes(a, b, 16, false, op_sub, NULL);
        o[1] = lanes(a, b, 8, false, op_distance, NULL) ^ lanes(a, b, 16, true, op_distance, NULL);
        o[2] = lanes(a, b, 8, true, op_max, NULL) ^ lanes(a, b, 16, false, op_min, NULL);
        o[3] = lanes(a, b, 8, false, op_above, NULL)
               ^ lanes(a & 0xffff0000u, b & 0xffff, 16, false, op_same, NULL);
        o[4] = lanes(a, b, 8, true, op_add_s8, NULL) ^ lanes(a, b, 16, false, op_sub_u16, NULL);
        o[5] = lanes(a, b, 8, false, op_mean, NULL) ^ lanes(a, b, 16, true, op_mean_s, NULL);
        o[6] = (uint32_t)(u + s);
        o[7] = lanes(a, b, 16, true, op_negate, NULL) ^ lanes(b, a, 8, true, op_absolute, NULL)
               ^ lanes(a, b, 8, false, op_set, NULL);
    }
    if (!runs("packed", 4, 128, 0, params)) return;
    uint32_t *have = download(d, sizeof want);
    EQUAL_ARRAYS("packed", have, want, N * 8, "%08x");
    free(have);
}

/* --- floating point --------------------------------------------------------------------------- */

enum { POINTS = 512 };
static float xs[POINTS], ys[POINTS];

static void make_points(void)
{
    for (uint32_t i = 0; i < POINTS; i++) {
        xs[i] = (float)(int32_t)mix(i) * (20.0f / 2147483648.0f);
        ys[i] = ((float)mix(i + POINTS) + 1.0f) * (50.0f / 4294967296.0f);
    }
}

/* The distance in units of the last place of the wanted value, for a format of `bits` bits. */
static double in_ulps(double have, double want, int bits, int least)
{
    int e;
    if (isnan(have) && isnan(want)) return 0;
    if (have == want) return 0;
    if (!isfinite(want) || !isfinite(have)) return INFINITY;
    frexp(want, &e);
    e = e - bits < least ? least : e - bits;
    return fabs(have - want) / ldexp(1, e);
}

static void compare_columns(const char *kernel, const void *have, const double *want, int columns,
                            const double *bounds, bool is_double)
{
    for (int c = 0; c < columns; c++) {
        double worst = 0;
        int at = 0;
        if (bounds[c] < 0) continue;
        for (int i = 0; i < POINTS; i++) {
            int k = i * columns + c;
            double h = is_double ? ((const double *)have)[k] : ((const float *)have)[k];
            double e = in_ulps(h, want[k], is_double ? 53 : 24, is_double ? -1074 : -149);
            if (!(e <= worst)) {
                worst = e;
                at = k;
            }
        }
        double h = is_double ? ((const double *)have)[at] : ((const float *)have)[at];
        CHECK(worst <= bounds[c], "%s: column %d is off by %.2f ulp (bound %.1f): %.17g, expected %.17g",
              where(kernel), c, worst, bounds[c], h, want[at]);
    }
}

/* CUDA's documented bounds, and half a unit for the rounding of the reference to the format. */
static const double single_bounds[20] = {2.5, 2.5, 2.5, 1.5, 8.5, 2.5, 2.5, .5,  .5,  .5,
                                         0,   3.5, 1.5, 2.5, 1.5, 2.5, 3.5, 6.5, 4.5, 2.5};
/* --use_fast_math: sin, cos, exp, log, pow become approximate (checked apart), division and roots 2 ulp. */
static const double fast_bounds[20] = {-1, -1, -1, -1,  -1, -1,  4, 3.5, 2.5, 1.5,
                                       -1, 8,  4,  2.5, -1, 2.5, 6, -1,  8,   -1};

static void test_single(void)
{
    static double want[POINTS * 20];
    uint32_t n = POINTS;
    dptr x = upload(xs, sizeof xs), y = upload(ys, sizeof ys), out = alloc(sizeof want / 2);
    void *params[] = {&x, &y, &out, &n};
    for (int i = 0; i < POINTS; i++) {
        double a = xs[i], b = ys[i], *o = want + 20 * i;
        double e[20] = {sin(a),
                        cos(a),
                        exp(xs[i] * 0.1f),
                        log(b),
                        pow(b, 1.5),
                        tanh(a),
                        erf(a),
                        sqrt(b),
                        a / b,
                        1 / b,
                        fmod(a, b),
                        atan2(a, b),
                        cbrt(a),
                        exp2(xs[i] * 0.2f),
                        log2(b),
                        1 / sqrt(b),
                        hypot(a, b),
                        lgamma(b),
                        asin(xs[i] * 0.001f),
                        sin(xs[i] * 1e6f)};
        memcpy(o, e, sizeof e);
    }
    if (runs("single", 4, 128, 0, params)) {
        float *have = download(out, sizeof want / 2);
        compare_columns("single", have, want, 20, fast() ? fast_bounds : single_bounds, false);
        double worst[5] = {0};
        for (int i = 0; i < POINTS && fast(); i++) { /* absolute or relative, as the guide says */
            const float *h = have + 20 * i;
            const double *w = want + 20 * i;
            worst[0] = fmax(worst[0], fabs(h[0] - w[0]) / (1 + fabs((double)xs[i])));
            worst[1] = fmax(worst[1], fabs(h[1] - w[1]) / (1 + fabs((double)xs[i])));
            worst[2] = fmax(worst[2], fabs(h[2] / w[2] - 1));
            worst[3] = fmax(worst[3], fabs(h[3] - w[3]) / (1 + fabs(w[3])));
            worst[4] = fmax(worst[4], fabs(h[4] / w[4] - 1));
        }
        for (int k = 0; k < 5; k++)
            CHECK(worst[k] < 4e-6, "%s: column %d is off by %g", where("single"), k, worst[k]);
        free(have);
    }
    SAME(cuMemFree_v2_(x), 0);
    SAME(cuMemFree_v2_(y), 0);
}

static void test_doubles(void)
{
    static double want[POINTS * 12], x[POINTS], y[POINTS];
    static const double bounds[12] = {3, 3, 2, 2, 3, 3, 0, 0, 0, 2, 3, 11};
    uint32_t n = POINTS;
    for (int i = 0; i < POINTS; i++) {
        x[i] = xs[i] * 1.0000001;
        y[i] = ys[i] * 0.9999999;
        double a = x[i], b = y[i];
        double e[12] = {sin(a),  cos(a), exp(a * 0.1),  log(b),  pow(b, 1.5),  tanh(a),
                        sqrt(b), a / b,  fma(a, b, -a), cbrt(a), sin(a * 1e9), tgamma(fma(b, 0.01, 1))};
        memcpy(want + 12 * i, e, sizeof e);
    }
    dptr dx = upload(x, sizeof x), dy = upload(y, sizeof y), out = alloc(sizeof want);
    void *params[] = {&dx, &dy, &out, &n};
    if (runs("doubles", 4, 128, 0, params)) {
        double *have = download(out, sizeof want);
        compare_columns("doubles", have, want, 12, bounds, true);
        free(have);
    }
    SAME(cuMemFree_v2_(dx), 0);
    SAME(cuMemFree_v2_(dy), 0);
}

static void test_rounded(void)
{
    static const int modes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    static float want[POINTS * 20];
    uint32_t n = POINTS;
    for (int m = 0; m < 4; m++) {
        fesetround(modes[m]);
        for (int i = 0; i < POINTS; i++) {
            volatile float a = xs[i], b = ys[i], r;
            float *o = want + 20 * i + m;
            r = a + b;
            o[0] = r;
            r = a * b;
            o[4] = r;
            r = fmaf(a, b, a);
            o[8] = r;
            r = a / b;
            o[12] = r;
            r = sqrtf(b);
            o[16] = r;
        }
    }
    fesetround(FE_TONEAREST);
    dptr x = upload(xs, sizeof xs), y = upload(ys, sizeof ys), out = alloc(sizeof want);
    void *params[] = {&x, &y, &out, &n};
    if (runs("rounded", 4, 128, 0, params)) {
        float *have = download(out, sizeof want);
        EQUAL_ARRAYS("rounded", have, want, POINTS * 20, "%.9g");
        free(have);
    }
    SAME(cuMemFree_v2_(x), 0);
    SAME(cuMemFree_v2_(y), 0);
}

static uint32_t bits32(float f)
{
    uint32_t b;
    memcpy(&b, &f, 4);
    return b;
}
static uint64_t bits64(double f)
{
    uint64_t b;
    memcpy(&b, &f, 8);
    return b;
}

static void test_conversions(void)
{
    static uint64_t want[POINTS * 12];
    uint32_t n = POINTS;
    for (uint32_t i = 0; i < POINTS; i++) {
        float a = xs[i];
        volatile double d = (double)a * 1.0000001;
        volatile float f, g;
        volatile int32_t v = (int32_t)mix(i);
        volatile int64_t w = (int64_t)mix64(i);
        volatile double e;
        uint64_t *o = want + 12 * i;
        o[0] = (uint32_t)(int32_t)rintf(a);
        o[1] = (uint32_t)(int32_t)truncf(a);
        o[2] = (uint32_t)(int32_t)ceilf(a);
        o[3] = (uint32_t)floorf(fabsf(a));
        o[4] = (uint64_t)(int64_t)rintf(a);
        o[5] = (uint64_t)(int64_t)trunc(d);
        fesetround(FE_TOWARDZERO);
        f = (float)v;
        fesetround(FE_UPWARD);
        g = (float)w;
        o[6] = bits32(f) ^ (uint64_t)bits32(g) << 32;
        fesetround(FE_DOWNWARD);
        e = (double)w;
        o[7] = bits64(e);
        fesetround(FE_UPWARD);
        f = (float)d;
        fesetround(FE_TONEAREST);
        g = (float)d;
        o[8] = bits32(f) ^ (uint64_t)bits32(g) << 32;
        o[9] = bits64(trunc(d) + floor(d) * 3 + rint(d) * 5 + ceil(d) * 7 + round(d) * 9);
        o[10] = (uint32_t)(bits32(truncf(a)) + bits32(rintf(a)) * 3 + bits32(floorf(a)) * 5);
        o[11] = (uint64_t)(int64_t)(int8_t)a ^ (uint64_t)(uint16_t)fabsf(a) << 16
                ^ (uint64_t)(4 * (signbit(a) != 0)) << 48;
    }
    dptr x = upload(xs, sizeof xs), out = alloc(sizeof want);
    void *params[] = {&x, &out, &n};
    if (runs("conversions", 4, 128, 0, params)) {
        uint64_t *have = download(out, sizeof want);
        EQUAL_ARRAYS("conversions", have, want, POINTS * 12, "%016lx");
        free(have);
    }
    SAME(cuMemFree_v2_(x), 0);
}

static void test_nbody(void)
{
    enum { N = 256 };
    static float bodies[N][4];
    uint32_t n = N;
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t c = 0; c < 4; c++) bodies[i][c] = (float)(mix(4 * i + c) >> 8) / 16777216.0f;
    dptr in = upload(bodies, sizeof bodies), out = alloc(sizeof bodies);
    void *params[] = {&in, &out, &n};
    if (runs("nbody", N / 64, 64, 0, params)) {
        float(*have)[4] = download(out, sizeof bodies);
        double worst = 0;
        for (int i = 0; i < N; i++) {
            double sum[4] = {0}, size[4] = {0};
            for (int k = 0; k < N; k++) {
                double r2 = 0.01, f;
                for (int c = 0; c < 3; c++)
                    r2 += ((double)bodies[k][c] - bodies[i][c]) * ((double)bodies[k][c] - bodies[i][c]);
                f = bodies[k][3] / (r2 * sqrt(r2));
                for (int c = 0; c < 4; c++) {
                    double d = c < 3 ? ((double)bodies[k][c] - bodies[i][c]) * f : f;
                    sum[c] += d;
                    size[c] += fabs(d);
                }
            }
            for (int c = 0; c < 4; c++) worst = fmax(worst, fabs(have[i][c] - sum[c]) / size[c]);
        }
        CHECK(worst < 64 * ldexp(1, -24), "%s is off by %g", where("nbody"),
              worst); /* far below N roundings */
        free(have);
    }
    SAME(cuMemFree_v2_(in), 0);
}

static void test_floats(void)
{
    make_points();
    test_single();
    test_doubles();
    if (!fast()) test_rounded();
    if (!fast()) test_conversions();
    test_nbody();
}

/* --- halves ----------------------------------------------------------------------------------- */

typedef struct small_format {
    int mantissa, least, bits;
    double largest;
} small_format; /* least: exponent of the last bit */
static const small_format half = {10, -24, 16, 65504}, bfloat = {7, -133, 16, 3.3895313892515355e38},
                          e4m3 = {3, -9, 8, 448}, e5m2 = {2, -16, 8, 57344};

static double value_of(uint32_t v, const small_format *f)
{
    int sign_at = f->bits - 1;
    uint32_t magnitude = v & ((1u << sign_at) - 1), fraction = magnitude & ((1u << f->mantissa) - 1);
    int e = (int)(magnitude >> f->mantissa);
    double r = e ? ldexp((double)(fraction | 1u << f->mantissa), f->least + e - 1)
                 : ldexp((double)fraction, f->least);
    if (r > f->largest) r = f == &e4m3 || fraction ? NAN : INFINITY;
    return v >> sign_at & 1 ? -r : r;
}

/* One rounding, to nearest even or to zero; beyond the largest: infinity, or saturated. */
static uint32_t bits_in(double v, const small_format *f, bool to_zero, bool saturate)
{
    uint32_t sign = signbit(v) ? 1u << (f->bits - 1) : 0;
    int e;
    if (isnan(v)) return f == &e4m3 ? 0x7f : f == &e5m2 ? 0x7f : 0x7fff;
    v = fabs(v);
    frexp(v, &e);
    int last = e - 1 - f->mantissa < f->least ? f->least : e - 1 - f->mantissa;
    double q = to_zero ? trunc(ldexp(v, -last)) : rint(ldexp(v, -last));
    double r = ldexp(q, last);
    uint32_t infinite = f == &half ? 0x7c00 : 0x7f80;
    if (r > f->largest) {
        if (!saturate && !to_zero) return sign | infinite;
        r = f->largest;
    }
    if (r == 0) return sign;
    frexp(r, &e);
    last = e - 1 - f->mantissa < f->least ? f->least : e - 1 - f->mantissa;
    uint32_t m = (uint32_t)ldexp(r, -last);
    return sign | ((uint32_t)((last - f->least) << f->mantissa) + m);
}

static void test_halves(void)
{
    enum { N = 800 };
    static uint16_t x[N * 3], want[N * 16], want_b[N * 8];
    uint32_t n = N;
    for (uint32_t i = 0; i < N * 3; i++) { /* exponents around one, so that double holds products and sums */
        x[i] = (uint16_t)(mix(i) & 0x83ff) | (uint16_t)((8 + (mix(i) >> 16) % 15) << 10);
        if (i % 97 == 0) x[i] = 0x8000;
        if (i % 89 == 0) x[i] = 0x7bff;
        if (i % 101 == 0) x[i] = 0x0001;
    }
    for (uint32_t i = 0; i < N; i++) {
        double a = value_of(x[3 * i], &half), b = value_of(x[3 * i + 1], &half),
               c = value_of(x[3 * i + 2], &half);
        uint16_t *o = want + 16 * i;
#define HALF(v) (uint16_t) bits_in(v, &half, false, false)
        o[0] = HALF(a + b);
        o[1] = HALF(a * b);
        o[2] = HALF(a * b + c);
        o[3] = HALF(a - b);
        o[4] = HALF(a + c);
        o[5] = HALF(b + a);
        o[6] = HALF(a * c + a);
        o[7] = HALF(b * a + b);
        o[8] = HALF(a == b ? (signbit(a) ? a : b) : fmin(a, b));
        o[9] = HALF(a == b ? (signbit(a) ? b : a) : fmax(a, b));
        o[10] = HALF(fabs(a));
        o[11] = HALF(-b);
        o[12] = (uint16_t)((a < b) + 2 * (a >= b) + 4 * (a == b) + 8 * (a != b));
        o[13] = HALF(a + b > 1 ? 1 : a + b > 0 ? a + b : 0);
        double relu = a * b + c;
        o[14] = HALF(relu > 0 ? relu : 0);
        o[15] = (uint16_t)bits_in((double)((float)a * 1.0009765f), &half, true, false);
    }
    dptr dx = upload(x, sizeof x), out = alloc(sizeof want);
    void *params[] = {&dx, &out, &n};
    if (runs("half_ops", 7, 128, 0, params)) {
        uint16_t *have = download(out, sizeof want);
        EQUAL_ARRAYS("half_ops", have, want, N * 16, "%04x");
        free(have);
    }
    SAME(cuMemFree_v2_(dx), 0);
    for (uint32_t i = 0; i < N * 3; i++)
        x[i] = (uint16_t)((mix(i) & 0x807f) | (120 + (mix(i) >> 16) % 15) << 7);
    for (uint32_t i = 0; i < N; i++) {
        double a = value_of(x[3 * i], &bfloat), b = value_of(x[3 * i + 1], &bfloat),
               c = value_of(x[3 * i + 2], &bfloat);
        uint16_t *o = want_b + 8 * i;
#define BFLOAT(v) (uint16_t) bits_in(v, &bfloat, false, false)
        o[0] = BFLOAT(a + b);
        o[1] = BFLOAT(a * b);
        o[2] = BFLOAT(a * b + c);
        o[3] = BFLOAT(a - b);
        o[4] = BFLOAT(a * c + a);
        o[5] = BFLOAT(b * a + b);
        o[6] = BFLOAT(fmax(a, b));
        o[7] = BFLOAT((double)((float)a * 1.01f));
    }
    dx = upload(x, sizeof x);
    out = alloc(sizeof want_b);
    if (runs("bfloat_ops", 7, 128, 0, params)) {
        uint16_t *have = download(out, sizeof want_b);
        EQUAL_ARRAYS("bfloat_ops", have, want_b, N * 8, "%04x");
        free(have);
    }
    SAME(cuMemFree_v2_(dx), 0);

    static float f[256];
    static uint32_t eight[512];
    n = 256;
    for (uint32_t i = 0; i < 256; i++) {
        f[i] = ldexpf((float)(int32_t)mix(i), (int)(i % 40) - 40);
        if (i < 4)
            f[i] = i < 2 ? 464.0f + (float)i : i == 2 ? 0.0f : 1e9f; /* a tie at the top, one above it */
        double a = value_of(i, &e4m3), b = value_of(i, &e5m2);
        eight[2 * i] = bits_in(f[i], &e4m3, false, true) | bits_in(f[i], &e5m2, false, true) << 8;
        eight[2 * i + 1] = HALF(a) | (uint32_t)HALF(b) << 16;
    }
    dx = upload(f, sizeof f);
    out = alloc(sizeof eight);
    if (runs("eight_bit", 2, 128, 0, params)) {
        uint32_t *have = download(out, sizeof eight);
        EQUAL_ARRAYS("eight_bit", have, eight, 512, "%08x");
        free(have);
    }
    SAME(cuMemFree_v2_(dx), 0);
    make_points();
    n = POINTS;
    dx = upload(xs, sizeof xs);
    out = alloc(POINTS * 24);
    if (runs("half_math", 4, 128, 0, params)) {
        float *have = download(out, POINTS * 24);
        double worst = 0;
        for (int i = 0; i < POINTS; i++) {
            double a = value_of(bits_in((double)(fabsf(xs[i]) * 0.01f + 0.01f), &half, false, false), &half);
            double e[6] = {exp(a), log(a), sqrt(a), 1 / a, sin(a), tanh(a)};
            for (int k = 0; k < 6; k++) worst = fmax(worst, fabs(have[6 * i + k] / e[k] - 1));
        }
        CHECK(worst < 3 * ldexp(1, -11), "%s is off by %g", where("half_math"), worst);
        free(have);
    }
    SAME(cuMemFree_v2_(dx), 0);
}

/* --- atomics ---------------------------------------------------------------------------------- */

typedef struct atomic_results {
    uint32_t u[10];
    int32_t smin, smax;
    uint64_t l[8];
    int64_t lmin, lmax;
    float f;
    uint32_t pad;
    double d;
    uint16_t h2[2], b2[2], h, small;
    uint32_t tickets[64];
    uint64_t total;
} atomic_results;

static void test_atomics(void)
{
    enum { N = 1000, BLOCK = 128, GRID = 9 };
    atomic_results want, start;
    uint32_t n = N, highest = 0;
    uint64_t total = 0;
    memset(&start, 0, sizeof start);
    start.u[2] = start.u[4] = UINT32_MAX;
    start.l[1] = start.l[3] = UINT64_MAX;
    want = start;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t v = mix(i);
        uint64_t w = mix64(i);
        want.u[0] += v;
        want.u[1] -= v;
        if (v < want.u[2]) want.u[2] = v;
        if (v > want.u[3]) want.u[3] = v;
        want.u[4] &= v | 0xff0;
        want.u[5] |= v & 0xf00f;
        want.u[6] ^= v;
        want.u[7] = want.u[7] >= 1000 ? 0 : want.u[7] + 1;
        want.u[8] = want.u[8] == 0 || want.u[8] > 77 ? 77 : want.u[8] - 1;
        if ((int32_t)v < want.smin) want.smin = (int32_t)v;
        if ((int32_t)v > want.smax) want.smax = (int32_t)v;
        want.l[0] += w;
        if (w < want.l[1]) want.l[1] = w;
        if (w > want.l[2]) want.l[2] = w;
        want.l[3] &= w | 0xff00;
        want.l[4] |= w & 0xff00ff00;
        want.l[5] ^= w;
        if ((int64_t)w < want.lmin) want.lmin = (int64_t)w;
        if ((int64_t)w > want.lmax) want.lmax = (int64_t)w;
        want.f += (float)(v & 15);
        want.d += (double)(v & 1023) * 0.125;
        if (v > highest) highest = v;
        total += v;
    }
    want.u[9] = 42;
    want.l[6] = 4242;
    want.l[7] = N;
    want.h2[0] = (uint16_t)bits_in(N, &half, false, false);
    want.h2[1] = (uint16_t)bits_in(2 * N, &half, false, false);
    want.b2[0] = (uint16_t)bits_in(256, &bfloat, false, false); /* 256 + 1 rounds to 256: it stays there */
    want.b2[1] = (uint16_t)bits_in(128, &bfloat, false, false);
    want.h = (uint16_t)bits_in(N / 2, &half, false, false);
    want.small = N;
    for (int k = 0; k < 32; k++) want.tickets[k] = 7;
    want.tickets[63] = want.tickets[32] = N;
    want.tickets[33] = highest;
    want.total = total;
    dptr r = upload(&start, sizeof start), a, b;
    void *params[] = {&r, &n};
    if (runs("atomics", GRID, BLOCK, 0, params)) {
        unsigned char *have = download(r, sizeof want), *w = (unsigned char *)&want;
        EQUAL_ARRAYS("atomics", have, w, sizeof want, "%02x");
        free(have);
    }
    uint32_t zero[2] = {0, 0}, sum = 0;
    a = upload(zero, 4);
    b = upload(zero, 4);
    void *locks[] = {&a, &b};
    if (runs("lanes_lock", 3, 64, 0, locks)) {
        uint32_t *have = download(b, 4);
        for (int k = 0; k < 3 * 64; k++) sum = sum * 3 + 1;
        SAME(*have, sum);
        free(have);
    }
    SAME(cuMemFree_v2_(a), 0);
    enum { LINKS = 150 };
    a = upload(zero, 4);
    b = alloc(LINKS * 4);
    if (runs("chain", LINKS, 32, 0, locks)) {
        uint32_t *have = download(b, LINKS * 4), order[LINKS];
        for (uint32_t k = 0; k < LINKS; k++) order[k] = k ? order[k - 1] * 5 + k : 1;
        EQUAL_ARRAYS("chain", have, order, LINKS, "%u");
        free(have);
    }
    SAME(cuMemFree_v2_(a), 0);
}

/* --- warps ------------------------------------------------------------------------------------ */

static void shuffles_of(uint32_t l, uint32_t *o)
{
    uint32_t none = 0, v = mix(l), sum = 0, least = UINT32_MAX, exclusive = 0, all = UINT32_MAX, any = 0,
             same = 0, ballot = 0;
    int32_t most = INT32_MIN;
    for (uint32_t k = 0; k < 32; k++) {
        uint32_t w = mix(k);
        sum += w;
        if (w < least) least = w;
        if ((int32_t)w > most) most = (int32_t)w;
        exclusive ^= w;
        all &= w | 7;
        any |= w & 0xff0;
        if ((w & 3) == (v & 3)) same |= 1u << k;
        ballot |= (w & 1) << k;
        none |= w == 0;
    }
    float other = (float)(l ^ 1) * 0.5f;
    o[0] = mix(l * 7 & 31);
    o[1] = l < 3 ? v : mix(l - 3);
    o[2] = (l & 15) + 5 > 15 ? v : mix(l + 5);
    o[3] = mix(l ^ 9);
    o[4] = (uint32_t)(mix64(31 - l) >> 20);
    o[5] = bits32(other);
    o[6] = ballot ^ !none;
    o[7] = same;
    o[8] = UINT32_MAX + 1;
    o[9] = sum ^ least ^ (uint32_t)most;
    o[10] = exclusive + all + any;
    if (v & 1)
        o[11] = mix((uint32_t)__builtin_ctz(ballot));
    else {
        uint32_t d = 0;
        for (uint32_t k = 0; k < (v >> 8 & 7); k++) d += mix(k);
        o[11] = d & 0xffffff00u;
    }
}

static void tiles_of(uint32_t t, uint32_t *o)
{
    uint32_t v = mix(t) & 0xffff, w = t & ~31u, sum = 0, before = 0, most = 0, group = 0, rank = 0,
             group_sum = 0, alike = 0, alike_rank = 0;
    for (uint32_t k = w; k < w + 32; k++) {
        uint32_t x = mix(k) & 0xffff;
        sum += x;
        if (k < t) before += x;
        if (k >> 2 == t >> 2 && x > most) most = x;
        if (x % 3 == 0) {
            group++;
            group_sum += x;
            rank += k < t;
        }
        if ((x & 1) == (v & 1)) {
            alike++;
            alike_rank += k < t;
        }
    }
    o[0] = sum;
    o[1] = most;
    o[2] = before;
    o[3] = (t / 4 & 7) * 100 + t % 4 + (mix(t ^ 1) & 0xffff) * 1000;
    o[4] = v % 3 ? 0 : group * 1000 + rank + group_sum * 100000;
    o[5] = alike * 64 + alike_rank;
}

static void test_warps(void)
{
    static uint32_t want[128 * 12];
    dptr out = alloc(32 * 12 * 4);
    void *params[] = {&out};
    for (uint32_t l = 0; l < 32; l++) shuffles_of(l, want + 12 * l);
    if (runs("shuffles", 1, 32, 0, params)) {
        uint32_t *have = download(out, 32 * 12 * 4);
        EQUAL_ARRAYS("shuffles", have, want, 32 * 12, "%08x");
        free(have);
    }
    out = alloc(128 * 6 * 4);
    for (uint32_t t = 0; t < 128; t++) tiles_of(t, want + 6 * t);
    if (runs("tiles", 1, 128, 0, params)) {
        uint32_t *have = download(out, 128 * 6 * 4);
        EQUAL_ARRAYS("tiles", have, want, 128 * 6, "%u");
        free(have);
    }
    out = alloc(192 * 8);
    static uint32_t big[384];
    for (uint32_t first = 0; first < 192; first += 64) {
        uint32_t total = 0;
        for (uint32_t t = first; t < first + 64; t++) big[2 * t + 1] = total += mix(t) & 0xffff;
        for (uint32_t t = first; t < first + 64; t++) big[2 * t] = total;
    }
    if (runs("big_tiles", 1, 192, 0, params)) {
        uint32_t *have = download(out, 192 * 8);
        EQUAL_ARRAYS("big_tiles", have, big, 384, "%u");
        free(have);
    }
    enum { GRID = 40, BLOCK = 64, N = GRID * BLOCK };
    static uint32_t data[2 * N], next[2 * N];
    uint32_t steps = 6;
    for (uint32_t i = 0; i < 2 * N; i++) data[i] = next[i] = mix(i);
    out = upload(data, sizeof data);
    for (uint32_t s = 0; s < steps; s++)
        for (uint32_t i = 0; i < N; i++)
            next[(~s & 1) * N + i] =
                next[(s & 1) * N + (i + 1) % N] * 3 + next[(s & 1) * N + (i + N - 33) % N] + s;
    int (*cooperative)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
                       void **);
    *(void **)&cooperative = symbol(sim_library, "cuLaunchCooperativeKernel");
    void *both[] = {&out, &steps};
    handle f = function(module, "grid_steps");
    if (!CHECK(f != NULL, "%s is not there", where("grid_steps"))) return;
    int code = cooperative(f, GRID, 1, 1, BLOCK, 1, 1, 0, NULL, both);
    if (!code) code = cuCtxSynchronize_();
    if (!CHECK(!code && !report_count(), "%s gives %d: %s", where("grid_steps"), code, findings())) {
        report_clear();
        return;
    }
    uint32_t *have = download(out, sizeof data);
    EQUAL_ARRAYS("grid_steps", have, next, 2 * N, "%u");
    free(have);
}

/* --- shared memory ---------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void test_tiles(void)
{
    enum { W = 70, H = 50, N = 300, BYTES = 5000, K = 80 };
    static float in[W * H], across[W * H];
    uint32_t width = W, height = H, n = N, bytes = BYTES;
    for (uint32_t i = 0; i < W * H; i++) {
        in[i] = (float)i;
        across[i % W * H + i / W] = (float)i;
    }
    dptr a = upload(in, sizeof in), b = alloc(sizeof in), c;
    void *params[] = {&a, &b, &width, &height};
    const unsigned grid[3] = {3, 2, 1}, block[3] = {32, 8, 1};
    int code = launch("transpose", grid, block, 0, params);
    if (CHECK(!code && !report_count(), "%s gives %d: %s", where("transpose"), code, findings())) {
        float *have = download(b, sizeof in);
        EQUAL_ARRAYS("transpose", have, across, W * H, "%g");
        free(have);
    } else
        report_clear();
    SAME(cuMemFree_v2_(a), 0);

    static uint32_t words[512], sums[N + 1];
    uint32_t total = 0, odd = 0;
    for (uint32_t i = 0; i < 512; i++) {
        words[i] = mix(i);
        if (i < N) sums[i] = total += words[i];
        odd += words[i] & 1;
    }
    sums[N] = odd;
    a = upload(words, sizeof words);
    b = alloc(sizeof sums);
    void *scan[] = {&a, &b, &n};
    if (runs("scan", 1, 512, 512 * 4, scan)) {
        uint32_t *have = download(b, sizeof sums);
        EQUAL_ARRAYS("scan", have, sums, N + 1, "%u");
        free(have);
    }
    SAME(cuMemFree_v2_(a), 0);

    a = upload(words, sizeof words);
    if (runs("bitonic", 2, 256, 0, params)) {
        uint32_t *have = download(a, sizeof words);
        qsort(words, 256, 4, ascending);
        qsort(words + 256, 256, 4, ascending);
        EQUAL_ARRAYS("bitonic", have, words, 512, "%u");
        free(have);
    }

    static uint8_t text[BYTES];
    static uint32_t bins[256], zero[256];
    for (uint32_t i = 0; i < 256; i++) bins[i] = 0;
    for (uint32_t i = 0; i < BYTES; i++) bins[text[i] = (uint8_t)(mix(i) & mix(i + 1))]++;
    a = upload(text, sizeof text);
    b = upload(zero, sizeof zero);
    void *histogram[] = {&a, &b, &bytes};
    if (runs("histogram", 6, 128, 0, histogram)) {
        uint32_t *have = download(b, sizeof bins);
        EQUAL_ARRAYS("histogram", have, bins, 256, "%u");
        free(have);
    }
    SAME(cuMemFree_v2_(a), 0);

    static float left[64 * K], right[K * 64],
        product[64 * 64]; /* small integers: every order gives the same sum */
    int k = K;
    for (uint32_t i = 0; i < 64 * K; i++) {
        left[i] = (float)(mix(i) & 15) - 8;
        right[i] = (float)(mix(i + 7777) & 15) - 8;
    }
    for (int y = 0; y < 64; y++)
        for (int x = 0; x < 64; x++) {
            product[y * 64 + x] = 0;
            for (int j = 0; j < K; j++) product[y * 64 + x] += left[y * K + j] * right[j * 64 + x];
        }
    a = upload(left, sizeof left);
    b = upload(right, sizeof right);
    c = alloc(sizeof product);
    void *multiply[] = {&a, &b, &c, &k};
    if (runs("product", 1, 256, 0, multiply)) {
        float *have = download(c, sizeof product);
        EQUAL_ARRAYS("product", have, product, 64 * 64, "%g");
        free(have);
    }
    SAME(cuMemFree_v2_(a), 0);
    SAME(cuMemFree_v2_(b), 0);
}

/* --- calls ------------------------------------------------------------------------------------ */

static uint32_t fibonacci(uint32_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
static uint32_t operate(uint32_t f, uint32_t a, uint32_t b)
{
    return f == 0 ? a + b : f == 1 ? a - b : f == 2 ? a * b : a / (b | 1);
}

static body moved(body b, float by)
{
    b.mass *= 2;
    for (int k = 0; k < 3; k++) b.at[k] += by * (float)(k + 1);
    b.id = (int16_t)(b.id - 5);
    b.tag ^= 0x81;
    for (int k = 0; k < 6; k++) b.history[k] += (uint32_t)k * b.tag;
    return b;
}

static void test_calls(void)
{
    static uint32_t want[128 * 4];
    dptr out = alloc(64 * 16);
    void *params[] = {&out};
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t local[24], sum = 0, *o = want + 4 * t;
        o[0] = fibonacci(t % 13);
        o[1] = 2 * (t % 4) + 3; /* ackermann(2, n) */
        for (uint32_t k = 0; k < 24; k++) local[k] = mix(t * 24 + k);
        qsort(local, 24, 4, ascending);
        for (int k = 0; k < 24; k++) sum = sum * 31 + local[k];
        o[2] = sum;
        o[3] = t % 2 ? 1 : 2;
    }
    if (runs("recursion", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 16);
        EQUAL_ARRAYS("recursion", have, want, 64 * 4, "%u");
        free(have);
    }
    out = alloc(64 * 12);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t r = t;
        want[3 * t] = operate(mix(t) & 3, t * 1000, t + 3);
        want[3 * t + 1] = operate(t & 1 ? 0 : 2, t, 17);
        for (uint32_t k = 0; k < 5; k++) r = operate(t % 3, r, k + t);
        want[3 * t + 2] = r;
    }
    if (runs("pointers", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 12);
        EQUAL_ARRAYS("pointers", have, want, 64 * 3, "%u");
        free(have);
    }
    out = alloc(64 * 4);
    for (uint32_t t = 0; t < 64; t++) {
        bool is_box = mix(t) & 1;
        uint32_t area = (t + 1) * (is_box ? 3 * t + 1 : t + 1);
        want[t] = (2 * area + (is_box ? t : 0)) * 7 + area;
    }
    if (runs("objects", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 4);
        EQUAL_ARRAYS("objects", have, want, 64, "%u");
        free(have);
    }
    enum { BODIES = 40 };
    body in, bodies[BODIES], *kept;
    uint32_t index = 3;
    memset(&in, 0, sizeof in);
    in = (body){.mass = 1.5, .at = {1, 2, 3}, .id = -7, .tag = 9, .history = {10, 20, 30, 40, 50, 60}};
    for (uint32_t t = 0; t < BODIES; t++) {
        body b = in;
        b.history[(index + t) % 6] = t;
        b.tag = (uint8_t)t;
        b = moved(b, 0.5f * (float)t);
        bodies[t] = t & 1 ? moved(b, 1) : b;
    }
    out = alloc(sizeof bodies);
    SAME(cuMemsetD8_v2_(out, 0, sizeof bodies), 0);
    void *all[] = {&in, &out, &index};
    if (runs("structs", 1, BODIES, 0, all)) {
        kept = download(out, sizeof bodies);
        int bad = 0;
        for (int t = 0; t < BODIES; t++)
            bad += kept[t].mass != bodies[t].mass || memcmp(kept[t].at, bodies[t].at, 12)
                   || kept[t].id != bodies[t].id || kept[t].tag != bodies[t].tag
                   || memcmp(kept[t].history, bodies[t].history, 24);
        CHECK(!bad, "%s: %d of %d differ", where("structs"), bad, BODIES);
        free(kept);
    }
    static uint32_t large[1500];
    for (uint32_t i = 0; i < 1500; i++) large[i] = mix(i);
    for (uint32_t t = 0; t < 64; t++) want[t] = large[(mix(t) ^ 5) % 1500];
    out = alloc(64 * 4);
    void *big[] = {large, &out};
    if (runs("big_parameter", 1, 64, 0, big)) {
        uint32_t *have = download(out, 64 * 4);
        EQUAL_ARRAYS("big_parameter", have, want, 64, "%u");
        free(have);
    }
    out = alloc(128 * 4);
    for (uint32_t t = 0; t < 128; t++) want[t] = switch_of(t);
    if (runs("switches", 1, 128, 0, params)) {
        uint32_t *have = download(out, 128 * 4);
        EQUAL_ARRAYS("switches", have, want, 128, "%u");
        free(have);
    }
    out = alloc(64 * 4);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t sum = 0, n = t % 9 + 1;
        for (uint32_t k = 0; k < n; k++) sum = sum * 7 + mix(t + n - 1 - k);
        want[t] = sum;
    }
    if (runs("stack_arrays", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 4);
        EQUAL_ARRAYS("stack_arrays", have, want, 64, "%u");
        free(have);
    }
}

typedef struct fields {
    unsigned a : 3, b : 7;
    signed c : 5;
    unsigned long long d : 40;
} fields;

static void test_classes(void)
{
    static uint32_t want[64];
    static uint64_t wide[64];
    dptr out = alloc(64 * 4);
    void *params[] = {&out};
    for (uint32_t t = 0; t < 64; t++) want[t] = (2 + t) * 11 + (t & 1 ? (t + 1) * 7 : t + 8) * 1000;
    if (runs("members", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 4);
        EQUAL_ARRAYS("members", have, want, 64, "%u");
        free(have);
    }
    out = alloc(64 * 8);
    for (uint32_t t = 0; t < 64; t++) {
        fields x;
        memset(&x, 0, sizeof x);
        x.a = t & 7;
        x.b = (t * 3 + 1) & 127;
        x.c = (int)(((0u - t) & 31) ^ 16) - 16;
        x.d = t * 1000000007ull;
        wide[t] = x.a + x.b * 10u + (uint64_t)(int64_t)(x.c * 1000) + x.d;
    }
    if (runs("bit_fields", 1, 64, 0, params)) {
        uint64_t *have = download(out, 64 * 8);
        EQUAL_ARRAYS("bit_fields", have, wide, 64, "%lu");
        free(have);
    }
    out = alloc(64 * 4);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t values[20], r = 0;
        for (uint32_t k = 0; k < 20; k++) values[k] = mix(t * 20 + k);
        qsort(values, 20, 4, ascending);
        for (int k = 0; k < 20; k++) r = r * 31 + values[k];
        want[t] = r;
    }
    if (runs("tree", 1, 64, 0, params)) {
        uint32_t *have = download(out, 64 * 4);
        EQUAL_ARRAYS("tree", have, want, 64, "%u");
        free(have);
    }
}

/* --- the run-time system ---------------------------------------------------------------------- */

/* What the kernel writes to stdout, taken at the file descriptor. */
static char *printed(const char *kernel, unsigned grid, unsigned block, void **params, char *text,
                     size_t room)
{
    char path[] = "/tmp/sim_nvcc_XXXXXX";
    int kept = dup(1), file = mkstemp(path);
    fflush(stdout);
    dup2(file, 1);
    const unsigned g[3] = {grid, 1, 1}, b[3] = {block, 1, 1};
    handle f = function(module, kernel);
    int code = f ? cuLaunchKernel_(f, g[0], 1, 1, b[0], 1, 1, 0, NULL, params, NULL) : -1;
    fflush(stdout);
    long early = lseek(file, 0, SEEK_CUR); /* nothing comes before the host synchronises */
    if (!code) code = cuCtxSynchronize_();
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    lseek(file, 0, SEEK_SET);
    ssize_t n = read(file, text, room - 1);
    text[n > 0 ? n : 0] = 0;
    close(file);
    unlink(path);
    CHECK(code == 0 && !report_count() && early == 0, "%s gives %d, %ld bytes early: %s", where(kernel), code,
          early, findings());
    return text;
}

/* A launch that ends in a finding of this kind, with this text. */
static void faults(const char *kernel, unsigned block, void **params, int code, const char *kind,
                   const char *text)
{
    const unsigned g[3] = {1, 1, 1}, b[3] = {block, 1, 1};
    int have = launch(kernel, g, b, 0, params);
    findings();
    CHECK(have == code && !strncmp(found, kind, strlen(kind)) && strstr(found, text),
          "%s gives %d, expected %d and %s with '%s': %s", where(kernel), have, code, kind, text, found);
    report_clear();
}

static void test_prints(void)
{
    static char have[8192], want[8192];
    static const char *const names[3] = {"zero", "one", "two"};
    size_t n = 0;
    for (int t = 0; t < 6; t++) { /* first the lanes of one printf, then the next */
        n += (size_t)snprintf(want + n, sizeof want - n,
                              "block %d thread %u: %5d|%-5d|%05d|%+d|%x|%#X|%o|%c|%s|%%\n", t / 3,
                              (unsigned)t % 3, t, t, t, t, (unsigned)t * 77, (unsigned)t * 77, (unsigned)t,
                              'a' + t, names[t % 3]);
        if (t == 2)
            n += (size_t)snprintf(want + n, sizeof want - n,
                                  "%.3f %10.2e %g %a|%lld %llx %hhd %p|%*d|%.*f|%-8s|%.2s\nplain\n", 3.14159,
                                  12345.678, 1e-5, 1.0, -1234567890123ll, 0xfedcba9876543210ull,
                                  (signed char)7, (void *)0, 6, 42, 2, 2.71828, "left", "cut");
    }
    void *null = NULL;
    void *params[] = {&null};
    printed("prints", 2, 3, params, have, sizeof have);
    CHECK(!strcmp(have, want), "%s writes\n%s\nexpected\n%s", where("prints"), have, want);
}

static void test_system(void)
{
    enum { N = 200 };
    uint32_t want[N], n = N, limit = 32;
    test_prints();
    dptr out = alloc(N * 4);
    void *params[] = {&out, &n};
    for (uint32_t i = 0; i < N; i++) {
        uint32_t size = mix(i) % 60 + 1;
        want[i] = size * (size - 1) / 2 * i + 2 * i + 2 + n;
    }
    if (runs("heap", 2, 100, 0, params)) {
        uint32_t *have = download(out, N * 4);
        EQUAL_ARRAYS("heap", have, want, N, "%u");
        free(have);
    }
    out = alloc(32 * 4);
    if (runs("too_much", 1, 32, 0, params)) {
        uint32_t *have = download(out, 32 * 4);
        for (int t = 0; t < 32; t++) want[t] = 1;
        EQUAL_ARRAYS("too_much", have, want, 32, "%u");
        free(have);
    }
    void *one[] = {&limit};
    runs("asserts", 1, 32, 0, one);
    faults("asserts", 40, one, 710, "assert", "system.cu:");
    faults("asserts", 40, one, 710, "assert",
           "assertion 'threadIdx.x < limit && \"the index is small\"' failed");
    runs("traps", 1, 32, 0, one);
    faults("traps", 33, one, 719, "trap", "thread (32,0,0)");
    out = alloc(64);
    static const struct {
        uint32_t kind;
        int code;
        const char *finding, *text;
    } list[] = {{1, 700, "out-of-bounds", "0 bytes past the end of the 40-byte object"},
                {2, 700, "use-after-free", "byte 0 of the freed 40-byte object"},
                {3, 719, "double-free", "was freed before"},
                {4, 719, "bad-free", "is not the start of an object"},
                {5, 0, "uninitialised-read", "byte 12 of the 40-byte object"}};
    uint32_t kind = 0;
    void *both[] = {&out, &kind};
    runs("heap_fault", 1, 1, 0, both);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        kind = list[k].kind;
        if (!strcmp(now->mode, "G") || kind == 1 || kind >= 3) /* optimised: the value written is known */
            faults("heap_fault", 1, both, list[k].code, list[k].finding, list[k].text);
    }
    SAME(cuMemFree_v2_(out), 0);
}

/* --- warp specialisation ----------------------------------------------------------------------- */

enum { PIPE_M = 256, PIPE_N = 128, PIPE_K = 512 };

typedef struct schedule {
    const char *name;
    unsigned grids[2], block, tile_m, tile_n; /* tiles: the boxes of A and B */
    const char *findings[16];                 /* of the kernel with mistake 1, 2 ... */
} schedule;
static const schedule schedules[] = {
    {"cooperative",
     {1, 3},
     384,
     128,
     64,
     {"race",                /* mbarriers used before all know them */
      "deadlock",            /* registers taken that nobody gave */
      "async-write",         /* a stage filled that is not empty */
      "deadlock",            /* fewer bytes expected than come */
      "deadlock",            /* more */
      "warpgroup",           /* three warps of four take registers */
      "deadlock",            /* more registers than there are */
      "async-read",          /* a stage read that is not full */
      "missing-fence",       /* no wgmma.fence */
      "async-write",         /* a stage released while it is multiplied */
      "async-read",          /* sums read in flight */
      "async-write",         /* the buffer of the result written over while it goes out */
      "missing-proxy-fence", /* the same, sent without a fence */
      "async-exit"}},        /* nobody waits for the last copies */
    {"alternating",
     {1, 2},
     384,
     64,
     64,
     {"async-write",  /* products out of turn */
      "deadlock",     /* a stage that is not released */
      "async-write",  /* the buffer handed on while it goes out */
      "deadlock"}},   /* half of a group hands it on */
    {"shared_columns",
     {2, 4},
     256,
     128,
     32,
     {"mbarrier-uninitialised", /* the other block is not ready */
      "async-write",            /* a stage released in one block only */
      "ended-block"}},          /* a block ends before the other has written there */
    {"in_turn",
     {1, 3},
     384,
     128,
     64,
     {"async-write",   /* a stage released while it is multiplied */
      "async-write"}}, /* the result sent before all have written */
};

/* A matrix of rows, in boxes of box_columns by box_rows; swizzle 3: 128 bytes. */
typedef int (*tensor_map_encode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *,
                                 const unsigned *, const unsigned *, int, int, int, int);
static int tile_map(tensor_map_encode encode, void *map, int type, dptr matrix, unsigned element,
                    unsigned columns, unsigned rows, unsigned box_columns, unsigned box_rows, int swizzle)
{
    const uint64_t extent[2] = {columns, rows}, stride[1] = {(uint64_t)columns * element};
    const unsigned box[2] = {box_columns, box_rows}, step[2] = {1, 1};
    return encode(map, type, 2, (void *)(uintptr_t)matrix, extent, stride, box, step, 0, swizzle, 0, 0);
}

/* n / 8 as f16, n from -8 to 8: products and sums of them are exact. */
static uint16_t eighths(int n)
{
    static const uint16_t of[9] = {0, 0x3000, 0x3400, 0x3600, 0x3800, 0x3900, 0x3a00, 0x3b00, 0x3c00};
    return n < 0 ? (uint16_t)(0x8000 | of[-n]) : of[n];
}

static struct {
    dptr a, b, c;
    int8_t x[PIPE_M * PIPE_K], y[PIPE_N * PIPE_K];
    tensor_map_encode encode;
} pipes;

/* Runs the kernel with that mistake; C is poisoned before, or zero where it is added to. */
static int run_schedule(const schedule *s, unsigned mistake, unsigned grid)
{
    static _Alignas(64) unsigned char maps[3][128];
    int size[3] = {PIPE_M, PIPE_N, PIPE_K};
    void *params[] = {maps[0], maps[1], maps[2], size};
    const unsigned g[3] = {grid, 1, 1}, t[3] = {s->block, 1, 1};
    char name[64];
    snprintf(name, sizeof name, "%s_%u", s->name, mistake);
    SAME(cuMemsetD8_v2_(pipes.c, strcmp(s->name, "in_turn") ? 0xff : 0, PIPE_M * PIPE_N * 4), 0);
    SAME(tile_map(pipes.encode, maps[0], 6, pipes.a, 2, PIPE_K, PIPE_M, 64, s->tile_m, 3), 0);
    SAME(tile_map(pipes.encode, maps[1], 6, pipes.b, 2, PIPE_K, PIPE_N, 64, s->tile_n, 3), 0);
    SAME(tile_map(pipes.encode, maps[2], 7, pipes.c, 4, PIPE_N, PIPE_M, 64, 64, 0), 0);
    return launch(name, g, t, 110 << 10, params);
}

static void compare_product(const schedule *s)
{
    static float c[PIPE_M * PIPE_N];
    int wrong = 0;
    SAME(cuMemcpyDtoH_v2_(c, pipes.c, sizeof c), 0);
    for (int i = 0; i < PIPE_M; i++)
        for (int j = 0; j < PIPE_N; j++) {
            int sum = 0;
            for (int k = 0; k < PIPE_K; k++) sum += pipes.x[i * PIPE_K + k] * pipes.y[j * PIPE_K + k];
            wrong += c[i * PIPE_N + j] != (float)sum / 64;
        }
    CHECK(!wrong, "%s: %d of %d are wrong", where(s->name), wrong, PIPE_M * PIPE_N);
}

static void test_pipelines(void)
{
    static uint16_t a[PIPE_M * PIPE_K], b[PIPE_N * PIPE_K];
    *(void **)&pipes.encode = symbol(sim_library, "cuTensorMapEncodeTiled");
    for (int k = 0; k < PIPE_M * PIPE_K; k++)
        a[k] = eighths(pipes.x[k] = (int8_t)((int)(mix((uint32_t)k) % 17) - 8));
    for (int k = 0; k < PIPE_N * PIPE_K; k++)
        b[k] = eighths(pipes.y[k] = (int8_t)((int)(mix(~(uint32_t)k) % 17) - 8));
    pipes.a = upload(a, sizeof a), pipes.b = upload(b, sizeof b), pipes.c = alloc(PIPE_M * PIPE_N * 4);
    for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) {
        const schedule *s = &schedules[k];
        for (int seed = 0; seed < 3; seed++)
            for (int g = 0; g < 2; g++) {
                set_option("seed", seed);
                int code = run_schedule(s, 0, s->grids[g]);
                CHECK(!code && !report_count(), "%s, seed %d, gives %d: %s", where(s->name), seed, code,
                      findings());
                report_clear();
                compare_product(s);
            }
        set_option("seed", 0);
        for (unsigned mistake = 1; s->findings[mistake - 1]; mistake++) {
            int code = run_schedule(s, mistake, s->grids[0]);
            findings();
            CHECK(strstr(found, s->findings[mistake - 1]), "%s_%u: no %s, code %d: %s", where(s->name),
                  mistake, s->findings[mistake - 1], code, found);
            report_clear();
        }
    }
    SAME(cuMemFree_v2_(pipes.a), 0);
    SAME(cuMemFree_v2_(pipes.b), 0);
    SAME(cuMemFree_v2_(pipes.c), 0);
}

/* --- functions of approximate instructions ------------------------------------------------------ */

enum { WIDE = 8192, FUNCTIONS = 10 };

static void exact_functions(double a, double exponent, double *o)
{
    double b = fabs(a), e[FUNCTIONS] = {tanh(a), erf(a), exp(a),  log(b), pow(b, exponent),
                                        erfc(a), sinh(a), exp2(a), sin(a), 1 / a};
    memcpy(o, e, sizeof e);
}

/* In units of the last place, where the result is a normal number of the format. */
static void compare_functions(const char *kernel, const double *have, const double *want, const double *at,
                              int digits, double least, double most, const double *bounds)
{
    for (int k = 0; k < FUNCTIONS; k++) {
        double worst = 0, where_worst = 0;
        for (int i = 0; i < WIDE; i++) {
            double w = want[i * FUNCTIONS + k], h = have[i * FUNCTIONS + k];
            if (!(fabs(w) >= least && fabs(w) <= most)) continue;
            double e = isnan(h) ? INFINITY : fabs(h - w) / ldexp(1, ilogb(w) - digits);
            if (e > worst) worst = e, where_worst = at[i];
        }
        CHECK(worst <= bounds[k], "%s: column %d is off by %g units at %.17g", where(kernel), k, worst, where_worst);
    }
}

/* As approximate instructions err by default in tests (PTXSIM_PERTURB). The bounds are CUDA's; those of f32 are
 * of chips, whose ex2 errs by less than the 2 units that PTX allows: one more where ex2 is the last step. */
static void test_accuracy(void)
{
    static const double doubles[FUNCTIONS] = {2, 2, 1, 1, 2, 5, 2, 1, 2, 0},
                        singles[FUNCTIONS] = {3, 2, 3, 1, 4, 5, 4, 3, 2, 1};
    static double x[WIDE], want[WIDE * FUNCTIONS], have[WIDE * FUNCTIONS], narrow[WIDE];
    static float y[WIDE];
    uint32_t n = WIDE;
    for (int i = 0; i < WIDE; i++) {
        double share = mix((uint32_t)i) * 0x1p-32, sign = mix(~(uint32_t)i) & 1 ? -1 : 1;
        x[i] = i < 128 ? i - 63.5 + 0.5 * (i & 1) : sign * (i & 1 ? exp2(share * 40 - 30) : share * 20);
        narrow[i] = y[i] = (float)x[i];
    }
    dptr in = upload(x, sizeof x), out = alloc(sizeof have);
    void *params[] = {&in, &out, &n};
    if (runs("double_functions", WIDE / 128, 128, 0, params)) {
        for (int i = 0; i < WIDE; i++) exact_functions(x[i], 1.37, want + i * FUNCTIONS);
        SAME(cuMemcpyDtoH_v2_(have, out, sizeof have), 0);
        compare_functions("double_functions", have, want, x, 52, DBL_MIN, DBL_MAX, doubles);
    }
    SAME(cuMemcpyHtoD_v2_(in, y, sizeof y), 0);
    if (runs("single_functions", WIDE / 128, 128, 0, params)) {
        static float short_have[WIDE * FUNCTIONS];
        for (int i = 0; i < WIDE; i++) exact_functions(narrow[i], (double)1.37f, want + i * FUNCTIONS);
        SAME(cuMemcpyDtoH_v2_(short_have, out, sizeof short_have), 0);
        for (int i = 0; i < WIDE * FUNCTIONS; i++) have[i] = short_have[i];
        compare_functions("single_functions", have, want, narrow, 23, FLT_MIN, FLT_MAX, singles);
    }
    SAME(cuMemFree_v2_(in), 0);
    SAME(cuMemFree_v2_(out), 0);
}

/* --- every variant ---------------------------------------------------------------------------- */

static void run_variant(const variant *v)
{
    static const struct {
        const char *file;
        void (*test)(void);
    } tests[] = {{"integers", test_integers}, {"packed", test_packed},   {"floats", test_floats},
                 {"halves", test_halves},     {"atomics", test_atomics}, {"warps", test_warps},
                 {"tiles", test_tiles},       {"calls", test_calls},     {"calls", test_classes},
                 {"system", test_system},     {"pipelines", test_pipelines}, {"accuracy", test_accuracy}};
    now = v;
    int code = refused(v->text);
    if (code && strstr(log_text, "not implemented by this CPU driver")) {
        printf("skip: %s.%s.%s: %.*s\n", v->file, v->mode, v->arch, (int)strcspn(log_text, "\n"), log_text);
        return;
    }
    if (!CHECK(!code && (module = load(v->text)), "%s does not load: %s", where(""), log_text)) return;
    bool known = false;
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++)
        if (!strcmp(tests[k].file, v->file)) {
            known = true;
            tests[k].test();
        }
    CHECK(known, "%s has no test", v->file);
    SAME(cuModuleUnload_(module), 0);
}

static int run_device(int argc, char **argv, const char *device)
{
    bool hundred = !strcmp(device, "sm_100");
    const char *only = getenv("SIM_NVCC_ONLY"); /* part of a variant's name, to look at one */
    sim_open(argc, argv);
    if (!read_archive("tests/nvcc/ptx.tar.gz"))
        printf("skip: tests/nvcc/ptx.tar.gz cannot be unpacked (gzip?)\n");
    for (int k = 0; k < variant_count; k++) {
        char name[96];
        snprintf(name, sizeof name, "%.31s.%.7s.%.7s", variants[k].file, variants[k].mode, variants[k].arch);
        if (hundred != !strcmp(variants[k].arch, "100") || (only && !strstr(name, only))) continue;
        run_variant(&variants[k]);
    }
    for (int k = 0; k < variant_count; k++) free(variants[k].text);
    return sim_close();
}

/* Runs itself for each chip and adds up what the runs say. */
int main(int argc, char **argv)
{
    static const char *const devices[] = {"sm_90", "sm_100"};
    const char *device = getenv("SIM_NVCC_DEVICE");
    if (device) return run_device(argc, argv, device);
    int sum[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        char command[1000], line[1000];
        bool closed = false;
        snprintf(command, sizeof command, "SIM_NVCC_DEVICE=%s PTXSIM_DEVICE=%s '%s' '%s'", devices[k],
                 devices[k], argv[0], argc > 1 ? argv[1] : "");
        if (argc < 2) command[strlen(command) - 3] = 0;
        FILE *f = popen(command, "r");
        int a, b;
        while (f && fgets(line, sizeof line, f)) {
            if (sscanf(line, "%d passed, %d failed", &a, &b) == 2) {
                sum[0] += a;
                sum[1] += b;
                closed = true;
            } else
                fputs(line, stdout);
        }
        int status = f ? pclose(f) : -1;
        if (!closed || (status && !b)) {
            printf("%s: the run ended early (%d)\n", devices[k], status);
            sum[1]++;
        }
    }
    printf("%d passed, %d failed\n", sum[0], sum[1]);
    return sum[1] != 0;
}
