/* vectors.c - vectors, matrices, random numbers, noise and colour of ptxgen.h's [MATH], run on the driver and compared
 * with C; and what they refuse. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../kerneltest.h"

#include <math.h>

enum { THREADS = 4096, IN = 40, OUT = 80 };
static float in[THREADS][IN], out[THREADS][OUT];

static uint32_t bits_of(float v) {
    uint32_t x;
    memcpy(&x, &v, sizeof x);
    return x;
}
static float float_of(uint32_t x) {
    float v;
    memcpy(&v, &x, sizeof v);
    return v;
}

/* Runs the kernel "f" of m over in[] and out[]. */
static void run(ptx_module *m) {
    const char *text = ptx_text(m, NULL);
    uint64_t from, to;
    void *module, *function = NULL, *params[2];
    CHECK_MORE(text != NULL, ptx_get_error(m)->message);
    if (!text || !(module = load_text(text))) return;
    from = upload(in, sizeof in), to = upload(out, sizeof out);
    params[0] = &from, params[1] = &to;
    CHECK(cu.cuModuleGetFunction(&function, module, "f") == 0);
    CHECK(cu.cuLaunchKernel(function, THREADS / 64, 1, 1, 64, 1, 1, 0, NULL, params, NULL) == 0);
    CHECK(cu.cuMemcpyDtoH(out, to, sizeof out) == 0);
    check_reports();
    CHECK(cu.cuMemFree(from) == 0 && cu.cuMemFree(to) == 0 && cu.cuModuleUnload(module) == 0);
}

static ptx_val results;
static int place;
static void give(ptx_kernel *k, uint32_t n, const ptx_val *v) {
    for (uint32_t i = 0; i < n; i++, place++)
        ptx_st(k, PTX_B32, ptx_at(results, 4 * place), v[i]);
}

/* A kernel, and its thread's operands. */
static ptx_kernel *start(ptx_module *m, ptx_type type, ptx_val *v) {
    ptx_kernel *k = ptx_entry(m, "f");
    ptx_val from = ptx_param_ptr(k, "from", PTX_GLOBAL), to = ptx_param_ptr(k, "to", PTX_GLOBAL);
    ptx_val i = ptx_global_x(k);
    from = ptx_ptr_add(k, from, i, IN * 4);
    results = ptx_ptr_add(k, to, i, OUT * 4);
    place = 0;
    for (int j = 0; j < IN; j++) v[j] = ptx_ld(k, type, ptx_at(from, 4 * j));
    return k;
}

static int near(double a, double b, double size, double tolerance) { return fabs(a - b) <= size * tolerance; }

/* Vectors a and b at in[0] and in[4], matrices at 8 and 24. */
static void test_vectors(void) {
    for (uint32_t n = 2; n <= 4; n++) {
        ptx_module *m = ptx_module_new(NULL);
        ptx_val v[IN], r[16];
        ptx_kernel *k = start(m, PTX_F32, v);
        unsigned wrong = 0;
        r[0] = ptx_dot(k, n, v, v + 4);
        r[1] = ptx_length(k, n, v);
        give(k, 2, r);
        ptx_normalize(k, n, v, r);
        give(k, n, r);
        ptx_reflect(k, n, v + 4, r, r); /* of the unit vector */
        give(k, n, r);
        ptx_lerp(k, n, v, v + 4, v[8], r);
        give(k, n, r);
        if (n == 3) ptx_cross(k, v, v + 4, r), give(k, 3, r);
        if (n > 2) {
            ptx_mat_vec(k, n, v + 8, v, r), give(k, n, r);
            ptx_mat_mul(k, n, v + 8, v + 24, r), give(k, n * n, r);
        }
        ptx_ret(k);
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < IN; i++) in[t][i] = (float)random_within(4);
        run(m);
        for (int t = 0; t < THREADS; t++) {
            const float *a = in[t], *b = a + 4, *p = a + 8, *q = a + 24, *o = out[t];
            double dot = 0, size = 0, length = 0, along = 0;
            for (uint32_t i = 0; i < n; i++) {
                dot += (double)a[i] * b[i];
                size += fabs((double)a[i] * b[i]);
                length += (double)a[i] * a[i];
            }
            length = sqrt(length);
            wrong += !near(*o++, dot, size, 4e-7);
            wrong += !near(*o++, length, length, 4e-7);
            for (uint32_t i = 0; i < n; i++) {
                wrong += !near(*o++, a[i] / length, 1, 4e-7);
                along += a[i] / length * b[i];
            }
            for (uint32_t i = 0; i < n; i++) wrong += !near(*o++, b[i] - 2 * along * a[i] / length, size + 20, 1e-6);
            for (uint32_t i = 0; i < n; i++) wrong += !near(*o++, a[i] + ((double)b[i] - a[i]) * p[0], 40, 4e-7);
            for (uint32_t i = 0; n == 3 && i < 3; i++) {
                uint32_t j = (i + 1) % 3, l = (i + 2) % 3;
                wrong += !near(*o++, (double)a[j] * b[l] - (double)a[l] * b[j], 32, 4e-7);
            }
            for (uint32_t i = 0; n > 2 && i < n; i++) {
                double sum = 0;
                for (uint32_t j = 0; j < n; j++) sum += (double)p[i * n + j] * a[j];
                wrong += !near(*o++, sum, 64, 4e-7);
            }
            for (uint32_t i = 0; n > 2 && i < n * n; i++) {
                double sum = 0;
                for (uint32_t j = 0; j < n; j++) sum += (double)p[i / n * n + j] * q[j * n + i % n];
                wrong += !near(*o++, sum, 64, 4e-7);
            }
        }
        CHECK(wrong == 0);
        ptx_module_free(m);
    }
}

static uint32_t pcg(uint32_t x) {
    uint32_t s = x * 747796405u + 2891336453u, w = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
    return (w >> 22) ^ w;
}

static void philox(const uint32_t *counter, const uint32_t *key, uint32_t *c) {
    uint32_t k0 = key[0], k1 = key[1];
    memcpy(c, counter, 16);
    for (int i = 0; i < 10; i++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        uint64_t a = (uint64_t)c[0] * 0xd2511f53u, b = (uint64_t)c[2] * 0xcd9e8d57u;
        uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0, c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1, c[3] = (uint32_t)a;
    }
}

static void test_random(void) {
    /* counter, key and result of the Random123 library's known answers */
    static const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1}};
    ptx_module *m = ptx_module_new(NULL);
    ptx_val v[IN], r[6];
    ptx_kernel *k = start(m, PTX_U32, v);
    unsigned wrong = 0;
    ptx_philox(k, v, v + 4, r);
    r[4] = ptx_pcg(k, v[0]);
    r[5] = ptx_unit(k, r[4]);
    give(k, 6, r);
    ptx_ret(k);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < IN; i++) in[t][i] = float_of(t < 3 && i < 6 ? known[t][i] : random_u32());
    run(m);
    for (int t = 0; t < THREADS; t++) {
        uint32_t want[4], words[6];
        memcpy(words, in[t], sizeof words);
        philox(words, words + 4, want);
        for (int i = 0; i < 4; i++) {
            wrong += bits_of(out[t][i]) != want[i];
            if (t < 3) wrong += want[i] != known[t][6 + i];
        }
        wrong += bits_of(out[t][4]) != pcg(words[0]) || out[t][5] != (float)(pcg(words[0]) >> 8) * 0x1p-24f;
    }
    CHECK(wrong == 0);
    ptx_module_free(m);
}

/* -- noise: the definitions in double -- */

static double fade(double t) { return t * t * t * (t * (6 * t - 15) + 10); }
static uint32_t corner(const int *i, int n, uint32_t seed) {
    uint32_t h = seed;
    for (int j = n - 1; j >= 0; j--) h = pcg(h + (uint32_t)i[j]);
    return h;
}
static double slope(uint32_t h, const double *d, int n) {
    if (n == 2) {
        double u = h & 4 ? d[0] : d[1], v = h & 4 ? d[1] : d[0];
        return (h & 1 ? -u : u) + (h & 2 ? -v : v) * (sqrt(2) - 1);
    }
    uint32_t axis = (uint32_t)((uint64_t)h * 3 >> 32);
    double u = axis == 0 ? d[1] : d[0], v = axis == 2 ? d[1] : d[2];
    return (h & 1 ? -u : u) + (h & 2 ? -v : v);
}
static double lattice(const float *p, int n, uint32_t seed, int gradient) {
    double total = 0;
    for (int c = 0; c < 1 << n; c++) {
        int i[3];
        double d[3], weight = 1;
        for (int j = 0; j < n; j++) {
            double whole = floor(p[j]), t = fade(p[j] - whole);
            i[j] = (int)whole + (c >> j & 1);
            d[j] = (double)p[j] - i[j];
            weight *= c >> j & 1 ? t : 1 - t;
        }
        uint32_t h = corner(i, n, seed);
        total += weight * (gradient ? slope(h, d, n) : (double)(int32_t)h * 0x1p-31);
    }
    return gradient ? total * (n == 2 ? 1.398 : 0.9649) : total;
}
static double simplex(const float *p, int n, uint32_t seed) {
    double s = 0, t = 0, d[3], total = 0;
    int base[3], order[3] = {0, 1, 2}, i[3];
    for (int j = 0; j < n; j++) s += p[j];
    s *= n == 2 ? (sqrt(3) - 1) / 2 : 1.0 / 3;
    for (int j = 0; j < n; j++) base[j] = (int)floor((double)p[j] + s), t += base[j];
    t *= n == 2 ? (3 - sqrt(3)) / 6 : 1.0 / 6;
    for (int j = 0; j < n; j++) d[j] = p[j] - (base[j] - t);
    for (int a = 0; a < n; a++) /* the largest first */
        for (int b = a + 1; b < n; b++)
            if (d[order[b]] > d[order[a]]) {
                int swap = order[a];
                order[a] = order[b], order[b] = swap;
            }
    memcpy(i, base, sizeof i);
    for (int c = 0; c <= n; c++) {
        double e[3], r = 0.5;
        for (int j = 0; j < n; j++) {
            e[j] = d[j] - (i[j] - base[j]) + c * (n == 2 ? (3 - sqrt(3)) / 6 : 1.0 / 6);
            r -= e[j] * e[j];
        }
        if (r > 0) total += r * r * r * r * slope(corner(i, n, seed), e, n);
        if (c < n) i[order[c]]++;
    }
    return total * (n == 2 ? 92.4 : 76.88);
}

static void test_noise(void) {
    static const char *const names[] = {"value 2", "value 3", "gradient 2", "gradient 3", "simplex 2", "simplex 3"};
    ptx_module *m = ptx_module_new(NULL);
    ptx_val v[IN], r[6], seed;
    ptx_kernel *k = start(m, PTX_F32, v);
    unsigned wrong[6] = {0};
    double sum[6] = {0}, least[6] = {0}, most[6] = {0};
    seed = ptx_as(v[3], PTX_U32);
    for (uint32_t n = 2; n <= 3; n++) {
        r[n - 2] = ptx_value_noise(k, n, v, seed);
        r[n] = ptx_gradient_noise(k, n, v, seed);
        r[n + 2] = ptx_simplex_noise(k, n, v, seed);
    }
    give(k, 6, r);
    r[0] = ptx_simplex_noise(k, 3, v, ptx_u32(7)); /* the function again */
    give(k, 1, r);
    ptx_ret(k);
    for (int round = 0; round < 4; round++) {
        for (int t = 0; t < THREADS; t++) {
            for (int i = 0; i < 3; i++) in[t][i] = (float)random_within(round == 3 ? 1000 : 20);
            in[t][3] = float_of(random_u32());
        }
        run(m);
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < 6; i++) {
                int n = 2 + i % 2;
                uint32_t s = bits_of(in[t][3]);
                double want = i < 4 ? lattice(in[t], n, s, i > 1) : simplex(in[t], n, s);
                wrong[i] += !near(out[t][i], want, 1, round == 3 ? 1e-3 : 2e-5);
                sum[i] += out[t][i];
                if (out[t][i] < least[i]) least[i] = out[t][i];
                if (out[t][i] > most[i]) most[i] = out[t][i];
            }
    }
    for (int i = 0; i < 6; i++) {
        printf("%s: %.3f to %.3f, mean %.4f\n", names[i], least[i], most[i], sum[i] / (4 * THREADS));
        CHECK_MORE(wrong[i] <= (i > 3 ? 3u : 0u), names[i]); /* a tie of the simplex's order may fall the other way */
        CHECK_MORE(least[i] > -1.001 && most[i] < 1.001 && fabs(sum[i]) / (4 * THREADS) < 0.03, names[i]);
        CHECK_MORE(most[i] > 0.6, names[i]);
    }
    ptx_module_free(m);
}

static void test_colour(void) {
    ptx_module *m = ptx_module_new(NULL);
    ptx_val v[IN], r[5];
    ptx_kernel *k = start(m, PTX_F32, v);
    unsigned wrong = 0;
    r[0] = ptx_srgb_to_linear(k, v[0]);
    r[1] = ptx_linear_to_srgb(k, v[0]);
    r[2] = ptx_pack_rgba8(k, v);
    r[3] = ptx_pack_half(k, v[0], v[1]);
    give(k, 4, r);
    ptx_unpack_rgba8(k, r[2], r);
    give(k, 4, r);
    ptx_unpack_half(k, ptx_ld(k, PTX_B32, ptx_at(results, 12)), r);
    give(k, 2, r);
    ptx_ret(k);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < IN; i++) in[t][i] = t < 8 && i ? (float)(t - 3) : (float)fabs(random_within(1.0));
    for (int i = 0; i < 256; i++) in[i][0] = (float)i / 255;
    in[300][1] = NAN;
    run(m);
    for (int t = 0; t < THREADS; t++) {
        const float *o = out[t];
        double c = in[t][0], linear = c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
        double coded = c <= 0.0031308 ? c * 12.92 : 1.055 * pow(c, 1 / 2.4) - 0.055;
        uint32_t packed = bits_of(o[2]);
        wrong += !near(o[0], linear, linear, 0x1p-18) || !near(o[1], coded, coded, 0x1p-18);
        for (int i = 0; i < 4; i++) {
            double x = in[t][i] > 0 ? fmin(in[t][i], 1) : 0, byte = packed >> 8 * i & 255;
            wrong += !near(byte, x * 255, 1, 0.5001) || !near(o[4 + i], byte / 255, 1, 1e-7);
        }
        wrong += !near(o[8], in[t][0], in[t][0], 0x1p-11 + (in[t][0] < 0x1p-13f));
        wrong += t != 300 && !near(o[9], in[t][1], fabs((double)in[t][1]), 0x1p-11 + (fabsf(in[t][1]) < 0x1p-13f));
    }
    CHECK(wrong == 0);
    ptx_module_free(m);
}

/* A call that is wrong: the error's code, and a word of its message. */
#define REFUSED(code_, word, call)                                                                                 \
    do {                                                                                                           \
        ptx_module *m = ptx_module_new(NULL);                                                                      \
        ptx_kernel *k = ptx_entry(m, "f");                                                                         \
        ptx_val x[4], r[4];                                                                                        \
        for (int i_ = 0; i_ < 4; i_++) x[i_] = r[i_] = ptx_mov(k, ptx_f32(1));                                     \
        call;                                                                                                      \
        CHECK_MORE(ptx_get_error(m)->code == (code_), ptx_get_error(m)->message);                                  \
        CHECK_MORE(strstr(ptx_get_error(m)->message, word) != NULL, ptx_get_error(m)->message);                    \
        CHECK_MORE(strstr(ptx_get_error(m)->message, "vectors.c:") != NULL, ptx_get_error(m)->message);            \
        (void)x, (void)r;                                                                                          \
        ptx_module_free(m);                                                                                        \
    } while (0)

static void test_refusals(void) {
    REFUSED(PTX_E_TYPE, "ptx_sin: operand 1 is u32, needs f32 or f64", ptx_sin(k, ptx_u32(1)));
    REFUSED(PTX_E_FORM, "ptx_sinus does not exist", ptx_math1(k, "sinus", ptx_f32(1)));
    REFUSED(PTX_E_FORM, "ptx_NULL does not exist", ptx_math1(k, NULL, ptx_f32(1)));
    /* a formula that only others use, of f32 alone: f64 would read behind its numbers */
    REFUSED(PTX_E_FORM, "ptx_sin_pi does not exist", ptx_math1(k, "sin_pi", ptx_f64(1)));
    REFUSED(PTX_E_ARGUMENT, "ptx_atan2: 1 operands, must be 2", ptx_math1(k, "atan2", ptx_f32(1)));
    REFUSED(PTX_E_ARGUMENT, "ptx_tgamma: 2 operands, must be 1",
            ptx_math2(k, "tgamma", ptx_f32(1), ptx_f32(1)));
    REFUSED(PTX_E_TYPE, "ptx_pow: operand 2 is f64, needs f32", ptx_pow(k, x[0], ptx_f64(1)));
    REFUSED(PTX_E_TYPE, "ptx_clamp: operand 3 is f16", ptx_clamp(k, x[0], x[1], ptx_f16(1)));
    REFUSED(PTX_E_ARGUMENT, "5 dimensions, must be 2 to 4", ptx_dot(k, 5, x, x));
    REFUSED(PTX_E_ARGUMENT, "2 dimensions, must be 3 to 4", ptx_mat_mul(k, 2, x, x, r));
    REFUSED(PTX_E_ARGUMENT, "error: ptx_value_noise: 4 dimensions, must be 2 to 3",
            ptx_value_noise(k, 4, x, ptx_u32(1)));
    REFUSED(PTX_E_TYPE, "error: ptx_simplex_noise: the seed is f32, must be u32", ptx_simplex_noise(k, 2, x, x[0]));
    ptx_sin(NULL, ptx_f32(1)); /* as everywhere: a NULL kernel does nothing */
    ptx_value_noise(NULL, 2, NULL, ptx_u32(1));
}

/* Names that the library gives to its own variables and functions: whoever comes second is told. */
static void test_names(void) {
    static const char *const names[] = {"ptxgen_reciprocal_of_pi", "ptxgen_simplex_noise3_f32"};
    for (int i = 0; i < 8; i++) {
        ptx_module *m = ptx_module_new(NULL);
        ptx_variable_desc d = {names[i & 1], PTX_CONST, PTX_U64, 20, 0, NULL, 0};
        ptx_kernel *k = i & 4 ? NULL : ptx_entry(m, "f");
        ptx_val x[3];
        for (int after = 0; after < 2; after++) {
            if (after == !(i & 4)) { /* the user's */
                ptx_kernel *own = i & 2 ? ptx_func(m, names[i & 1], PTX_NONE) : NULL;
                if (i & 2)
                    ptx_ret(own);
                else
                    ptx_variable(m, &d);
                continue;
            }
            if (!k) k = ptx_entry(m, "f");
            x[0] = x[1] = x[2] = ptx_mov(k, ptx_f32(1));
            if (i & 1)
                ptx_simplex_noise(k, 3, x, ptx_u32(1)), ptx_simplex_noise(k, 3, x, ptx_u32(2));
            else
                ptx_sin(k, ptx_cvt(k, PTX_F64, x[0])), ptx_sin(k, ptx_cvt(k, PTX_F64, x[1]));
            ptx_ret(k);
            CHECK_MORE(!ptx_get_error(m)->code == !(i & 4), ptx_get_error(m)->message);
        }
        CHECK_MORE(ptx_get_error(m)->code == PTX_E_NAME_TAKEN, ptx_get_error(m)->message);
        CHECK_MORE(strstr(ptx_get_error(m)->message, names[i & 1]), ptx_get_error(m)->message);
        ptx_module_free(m);
    }
}

int main(void) {
    start_random();
    if (!open_driver()) return 1;
    test_vectors();
    test_random();
    test_noise();
    test_colour();
    test_refusals();
    test_names();
    return check_end();
}
