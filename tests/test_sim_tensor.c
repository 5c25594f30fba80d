/* test_sim_tensor.c - proves the matrix instructions of the CPU driver: ldmatrix, stmatrix, movmatrix, mma, wmma,
 * wgmma.
 *
 *   test_sim_tensor [library]      or PTXGEN_CUDA_LIBRARY; run from the root of the repository
 *
 * Every shape and type is run on whole numbers (where any order of summation is exact), on random bits
 * and on edge values, and compared with a sum in long double over the layout that the PTX ISA documents,
 * written down here once more, element by element. */
#include "simtest.h"
#include <sys/wait.h>
#include <unistd.h>

/* --- numbers ---------------------------------------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

enum type { F16, BF16, TF32, F32, F64, S32, S8, U8, S4, U4, B1, E4M3, E5M2, E3M2, E2M3, E2M1, E2M1B, UE8M0, UE4M3, TYPES };
static const struct { const char *name; int bits, exponent, mantissa, bias, special; /* 1: IEEE, 2: one NaN, 0: none */
} types[TYPES] = {
    { "f16", 16, 5, 10, 15, 1 }, { "bf16", 16, 8, 7, 127, 1 }, { "tf32", 32, 8, 10, 127, 1 }, { "f32", 32, 8, 23, 127, 1 },
    { "f64", 64, 11, 52, 1023, 1 }, { "s32", 32, 0, 0, 0, 0 }, { "s8", 8, 0, 0, 0, 0 }, { "u8", 8, 0, 0, 0, 0 },
    { "s4", 4, 0, 0, 0, 0 }, { "u4", 4, 0, 0, 0, 0 }, { "b1", 1, 0, 0, 0, 0 }, { "e4m3", 8, 4, 3, 7, 2 },
    { "e5m2", 8, 5, 2, 15, 1 }, { "e3m2", 8, 3, 2, 3, 0 }, { "e2m3", 8, 2, 3, 1, 0 }, { "e2m1", 4, 2, 1, 1, 0 },
    { "e2m1", 8, 2, 1, 1, 0 }, { "ue8m0", 8, 8, 0, 127, 3 }, { "ue4m3", 8, 4, 3, 7, 2 } };

static double value_of(int t, uint64_t bits)
{
    switch (t) {
    case S32: return (int32_t)bits;
    case S8: return (int8_t)bits;
    case U8: return (uint8_t)bits;
    case S4: return (double)((int)(bits & 7) - (int)(bits & 8));
    case U4: case B1: return (double)bits;
    case F64: { double d; memcpy(&d, &bits, 8); return d; }
    case UE8M0: return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
    case TF32: bits >>= 13; break;
    case E2M1B: bits = bits >> 2 & 15; break;
    default: break;
    }
    int e = (int)(bits >> types[t].mantissa) & ((1 << types[t].exponent) - 1), top = (1 << types[t].exponent) - 1;
    long m = (long)(bits & ((1ul << types[t].mantissa) - 1));
    double sign = bits >> (types[t].mantissa + types[t].exponent) & 1 && t != UE4M3 ? -1 : 1;
    if (types[t].special == 1 && e == top) return m ? NAN : sign * INFINITY;
    if (types[t].special == 2 && e == top && m == 7) return NAN;
    if (!e) return sign * ldexp((double)m, 1 - types[t].bias - types[t].mantissa);
    return sign * ldexp((double)(m + (1l << types[t].mantissa)), e - types[t].bias - types[t].mantissa);
}

/* Bits of a small whole number; of anything; of something at the edge. */
static uint64_t small_number(int t)
{
    int v = (int)(random32() % 5) - 2;
    switch (t) {
    case S8: case S4: case S32: return (uint64_t)(int64_t)v & (types[t].bits == 32 ? 0xffffffff : (1u << types[t].bits) - 1);
    case U8: case U4: case B1: return random32() & (t == B1 ? 1 : 7);
    case F64: { double d = v; uint64_t b; memcpy(&b, &d, 8); return b; }
    case UE8M0: return 126 + random32() % 3;
    case UE4M3: return 0x38;
    default: break;
    }
    if (!v) return 0;
    if (t == E2M1B) return (uint64_t)((v < 0) << 3 | (abs(v) == 1 ? 2 : 4)) << 2;
    uint64_t e = (uint64_t)(types[t].bias + (abs(v) == 2)), b = e << types[t].mantissa | (uint64_t)(v < 0) << (types[t].mantissa + types[t].exponent);
    return t == TF32 ? b << 13 | (random32() & 0x1fff) : b;
}

static uint64_t any_number(int t)
{
    uint64_t b = (uint64_t)random32() << 32 | random32();
    if (t == F64) { double d = ldexp((double)(int32_t)b, (int)(random32() % 20) - 10); memcpy(&b, &d, 8); return b; }
    if (t == F32 || t == TF32 || t == BF16) {                 /* of moderate size, so that sums stay finite */
        uint32_t f = (uint32_t)(b & 0x807fffff) | (110 + random32() % 30) << 23;
        return t == BF16 ? f >> 16 : f;
    }
    if (t == F16) return (b & 0x83ff) | (8 + random32() % 12) << 10;
    if (types[t].bits < 64) b &= ((uint64_t)1 << types[t].bits) - 1;
    return b;
}

static uint64_t edge_number(int t)
{
    static const uint64_t f16[] = { 0, 0x8000, 1, 0x83ff, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0xfbff, 0x3c00, 0x0400 },
        bf16[] = { 0, 0x8000, 1, 0x7f80, 0xff80, 0x7fc0, 0x3f80, 0xbf80, 0x0080 },
        f32[] = { 0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0x80700000, 0xbf800000 },
        f64[] = { 0, 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000 },
        s32[] = { 0x7fffffff, 0x80000000, 0, 0xffffffff }, bytes[] = { 0, 0x7f, 0x80, 0xff, 0x7c, 0xfc, 1, 0x7e, 0x38 };
#define PICK(list) list[random32() % (sizeof list / sizeof *list)]
    if (random32() % 4) return small_number(t);               /* few of them, else all is NaN */
    switch (t) {
    case F16: return PICK(f16);
    case BF16: return PICK(bf16);
    case F32: case TF32: return PICK(f32);
    case F64: return PICK(f64);
    case S32: return PICK(s32);
    default: return types[t].bits == 8 ? PICK(bytes) : any_number(t);
    }
}

static uint64_t number_of(int pass, int t)
{ return pass == 0 ? small_number(t) : pass == 1 ? any_number(t) : edge_number(t); }

/* --- layouts of the ISA ----------------------------------------------------------------------- */

/* Element i of lane l of A. */
static void isa_a(int m, int k, int t, int l, int i, int *row, int *col)
{
    int g = l / 4, q = l % 4, bits = types[t].bits;
    if (t == F64) { *row = i % 2 && m == 16 ? g + 8 : g; *col = m == 8 ? q : q + i / 2 * 4; return; }
    if (m == 8) { int n = 32 / bits; *row = g; *col = q * n + i % n; return; }
    switch (bits) {
    case 32: *row = i == 0 || i == 2 ? g : g + 8; *col = i < 2 ? q : q + 4; break;
    case 16: *row = i < 2 || (i >= 4 && i < 6) ? g : g + 8; *col = q * 2 + (i & 1) + (i >= 4 ? 8 : 0); break;
    case 8:  *row = i < 4 || (i >= 8 && i < 12) ? g : g + 8; *col = q * 4 + (i & 3) + (i >= 8 ? 16 : 0); break;
    case 4:  *row = i < 8 || (i >= 16 && i < 24) ? g : g + 8; *col = q * 8 + (i & 7) + (i >= 16 ? 32 : 0); break;
    default: *row = i < 32 || (i >= 64 && i < 96) ? g : g + 8; *col = q * 32 + (i & 31) + (i >= 64 ? 128 : 0); break;
    }
    (void)k;
}

static void isa_b(int k, int t, int l, int i, int *row, int *col)
{
    int g = l / 4, q = l % 4;
    *col = g;
    switch (types[t].bits) {
    case 64: *row = q + 4 * i; break;
    case 32: *row = q + 4 * i; break;
    case 16: *row = q * 2 + (i & 1) + i / 2 * 8; break;
    case 8:  *row = q * 4 + (i & 3) + i / 4 * 16; break;
    case 4:  *row = q * 8 + (i & 7) + i / 8 * 32; break;
    default: *row = q * 32 + (i & 31) + i / 32 * 128; break;
    }
    (void)k;
}

static void isa_c(int l, int i, int *row, int *col)
{
    *row = i < 2 ? l / 4 : l / 4 + 8;
    *col = l % 4 * 2 + (i & 1);
}

/* --- running one instruction ------------------------------------------------------------------ */

enum { LANES = 32, MOST = 80 };        /* 32-bit words of a thread: what an instruction reads */

typedef struct machine {
    int a_words, b_words, c_words, d_words, extra;            /* per thread; extra: metadata, scales */
    uint32_t in[LANES][MOST], out[LANES][MOST];
} machine;

static int words_of(int elements, int t) { return elements * types[t].bits / 32 / 32; }

/* `text` holds the operands behind the destination as %d, %a, %b, %c, %x<n>. */
static bool run_instruction(const char *head, const char *text, bool wide, bool wide_ab, machine *x)
{
    static char ptx[20000];
    int n = 0, total = x->a_words + x->b_words + x->c_words + x->extra;
    const char *ld = wide_ab ? "g" : "r";
    n += sprintf(ptx + n, "%s.visible .entry k(.param .u64 pi, .param .u64 po) {\n.reg .b32 r<100>; .reg .f64 g<100>; .reg .b64 d<8>; .reg .b16 h<8>;"
                          " .reg .b32 d0<100>;\nld.param.u64 d2, [pi]; ld.param.u64 d3, [po]; mov.u32 r99, %%tid.x; mul.wide.u32 d4, r99, %d;\n"
                          "add.u64 d2, d2, d4; add.u64 d3, d3, d4;\n", head, MOST * 4);
    int step = wide_ab ? 2 : 1;
    for (int k = 0; k < total; k += step)
        n += sprintf(ptx + n, "ld.global.b%d %s%d, [d2+%d];\n", 32 * step, ld, k / step, k * 4);
    for (const char *p = text; *p; p++) {
        if (*p != '%') { ptx[n++] = *p; continue; }
        int first = 0, count = 0;
        const char *name = ld;
        switch (*++p) {
        case 'd': count = x->d_words; name = wide ? "g" : "r"; first = wide ? 60 * step : 60; break;
        case 'a': count = x->a_words; break;
        case 'b': first = x->a_words; count = x->b_words; break;
        case 'c': first = x->a_words + x->b_words; count = x->c_words; break;
        default:  n += sprintf(ptx + n, "r%d", x->a_words + x->b_words + x->c_words + (*p - '0')); continue;
        }
        n += sprintf(ptx + n, "{");
        for (int k = 0; k < count; k += step) n += sprintf(ptx + n, "%s%s%d", k ? "," : "", name, (first + k) / step);
        n += sprintf(ptx + n, "}");
    }
    n += sprintf(ptx + n, "\n");
    for (int k = 0; k < x->d_words; k += step)
        n += sprintf(ptx + n, "st.global.b%d [d3+%d], %s%d;\n", 32 * step, k * 4, wide ? "g" : "r", 60 + k / step);
    sprintf(ptx + n, "ret; }\n");
    handle m = load(ptx), f = function(m, "k");
    if (!CHECK(f != NULL, "does not load: %s", text)) { fprintf(stderr, "%s", ptx); return false; }
    dptr in = alloc(sizeof x->in), out = alloc(sizeof x->out);
    void *params[] = { &in, &out };
    cuMemcpyHtoD_v2_(in, x->in, sizeof x->in);
    int code = run(f, 1, 32, 0, params);
    cuMemcpyDtoH_v2_(x->out, out, sizeof x->out);
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
    return CHECK(code == 0 && report_count() == 0, "%s: %d %s", text, code, findings());
}

static uint64_t get_bits(const uint32_t *words, int at, int bits)
{
    if (bits == 64) return words[at / 32] | (uint64_t)words[at / 32 + 1] << 32;
    return words[at / 32] >> at % 32 & (bits == 32 ? 0xffffffffu : (1u << bits) - 1);
}

static void put_bits(uint32_t *words, int at, int bits, uint64_t v)
{
    if (bits == 64) { words[at / 32] = (uint32_t)v; words[at / 32 + 1] = (uint32_t)(v >> 32); return; }
    words[at / 32] &= ~((bits == 32 ? 0xffffffffu : (1u << bits) - 1) << at % 32);
    words[at / 32] |= (uint32_t)v << at % 32;
}

/* Is `have` the sum? `size` adds up the magnitudes of the terms. */
static bool right(int t, uint64_t have_bits, long double want, long double size, int k, bool exact, bool saturate)
{
    double have = value_of(t, have_bits);
    if (t == S32) {
        int64_t w = (int64_t)want;
        if (saturate) w = w > INT32_MAX ? INT32_MAX : w < INT32_MIN ? INT32_MIN : w;
        return (int32_t)have_bits == (int32_t)(uint32_t)(uint64_t)w;
    }
    if (isnan(want)) return isnan(have);
    if (isinf(want)) return have == (double)want;
    if (t == F16 && fabsl(want) >= 65520) return isinf(have) && (have > 0) == (want > 0);
    if (t == F32 && fabsl(want) > 3.4028235e38L) return isinf(have) || fabs(have) > 3.3e38;
    if (exact) return have == (double)want;
    long double bound = (k + 1) * (t == F64 ? ldexpl(size, -53) : ldexpl(size, -23));
    if (t == F16) bound += ldexpl(fabsl(want), -11) + ldexpl(1, -25);
    bound += ldexpl(1, t == F64 ? -1074 : -149);
    return fabsl((long double)have - want) <= bound;
}

static double ma[64][256], mb[256][256], mc[64][256];

static void evaluate(int m, int n, int k, int row, int col, int op, long double *sum, long double *size)
{
    (void)m; (void)n;
    *sum = mc[row][col];
    *size = fabs(mc[row][col]);
    for (int z = 0; z < k; z++) {
        long double p = op == 'x' ? (ma[row][z] != mb[z][col]) : op == '&' ? (ma[row][z] && mb[z][col])
                                                             : (long double)ma[row][z] * mb[z][col];
        *sum += p;
        *size += fabsl(p);
    }
}

static void test_mma_form(int m, int k, int at, int bt, int ct, const char *infix, const char *suffix, bool saturate, int op)
{
    static machine x;
    char text[300], what[200];
    bool wide = at == F64;
    int ea = m * k / 32, eb = k * 8 / 32, ec = m * 8 / 32;
    x.a_words = words_of(m * k, at);
    x.b_words = words_of(k * 8, bt);
    x.c_words = x.d_words = words_of(m * 8, ct);
    x.extra = 0;
    snprintf(what, sizeof what, "mma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s%s", m, k, infix, types[ct].name,
             types[at].name, types[bt].name, types[ct].name, suffix);
    snprintf(text, sizeof text, "%s %%d, %%a, %%b, %%c;", what);
    bool kind = strstr(infix, "kind") != NULL;
    for (int pass = 0; pass < 3; pass++) {
        for (int l = 0; l < 32; l++) {
            int row, col;
            for (int i = 0; i < ea; i++) {
                uint64_t b = number_of(pass, at);
                isa_a(m, k, at, l, i, &row, &col);
                put_bits(x.in[l], i * types[at].bits, types[at].bits, b);
                ma[row][col] = value_of(at, b);
            }
            for (int i = 0; i < eb; i++) {
                uint64_t b = number_of(pass, bt);
                isa_b(k, bt, l, i, &row, &col);
                put_bits(x.in[l] + x.a_words, i * types[bt].bits, types[bt].bits, b);
                mb[row][col] = value_of(bt, b);
            }
            for (int i = 0; i < ec; i++) {
                uint64_t b = number_of(pass, ct);
                isa_c(l, i, &row, &col);
                put_bits(x.in[l] + x.a_words + x.b_words, i * types[ct].bits, types[ct].bits, b);
                mc[row][col] = value_of(ct, b);
            }
        }
        if (!run_instruction(kind ? ".version 8.7\n.target sm_120a\n.address_size 64\n" : ".version 8.7\n.target sm_90\n.address_size 64\n",
                             text, wide, wide, &x)) return;
        int bad = 0;
        for (int l = 0; l < 32 && !bad; l++)
            for (int i = 0; i < ec && !bad; i++) {
                int row, col;
                long double want, size;
                isa_c(l, i, &row, &col);
                evaluate(m, 8, k, row, col, op, &want, &size);
                uint64_t have = get_bits(x.out[l], i * types[ct].bits, types[ct].bits);
                if (!right(ct, have, want, size, k, pass == 0, saturate)) {
                    CHECK(false, "%s, pass %d: row %d column %d is %g, expected %Lg", what, pass, row, col, value_of(ct, have), want);
                    bad = 1;
                }
            }
        CHECK(!bad, "%s pass %d", what, pass);
    }
}

static void test_mma(void)
{
    static const int byte[] = { S8, U8 }, nibble[] = { S4, U4 }, fp8[] = { E4M3, E5M2 };
    for (int d = 0; d < 2; d++) {
        test_mma_form(16, 8, F16, F16, d ? F32 : F16, "", "", false, 0);
        test_mma_form(16, 16, F16, F16, d ? F32 : F16, "", "", false, 0);
    }
    test_mma_form(16, 8, BF16, BF16, F32, "", "", false, 0);
    test_mma_form(16, 16, BF16, BF16, F32, "", "", false, 0);
    test_mma_form(16, 4, TF32, TF32, F32, "", "", false, 0);
    test_mma_form(16, 8, TF32, TF32, F32, "", "", false, 0);
    test_mma_form(8, 4, F64, F64, F64, "", "", false, 0);
    for (int k = 4; k <= 16; k *= 2) test_mma_form(16, k, F64, F64, F64, "", "", false, 0);
    test_mma_form(16, 8, F64, F64, F64, ".rz", "", false, 0);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int sat = 0; sat < 2; sat++) {
                const char *s = sat ? ".satfinite" : "";
                test_mma_form(8, 16, byte[a], byte[b], S32, s, "", sat, 0);
                test_mma_form(16, 16, byte[a], byte[b], S32, s, "", sat, 0);
                test_mma_form(16, 32, byte[a], byte[b], S32, s, "", sat, 0);
                test_mma_form(8, 32, nibble[a], nibble[b], S32, s, "", sat, 0);
                test_mma_form(16, 32, nibble[a], nibble[b], S32, s, "", sat, 0);
                test_mma_form(16, 64, nibble[a], nibble[b], S32, s, "", sat, 0);
            }
    for (int op = 0; op < 2; op++) {
        const char *s = op ? ".and.popc" : ".xor.popc";
        test_mma_form(8, 128, B1, B1, S32, "", s, false, op ? '&' : 'x');
        test_mma_form(16, 128, B1, B1, S32, "", s, false, op ? '&' : 'x');
        test_mma_form(16, 256, B1, B1, S32, "", s, false, op ? '&' : 'x');
    }
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int k = 16; k <= 32; k += 16) {
                test_mma_form(16, k, fp8[a], fp8[b], F32, "", "", false, 0);
                test_mma_form(16, k, fp8[a], fp8[b], F16, "", "", false, 0);
            }
}

static void test_mma_kinds(void)
{
    static const int small[] = { E4M3, E5M2, E3M2, E2M3, E2M1B };
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            test_mma_form(16, 32, small[a], small[b], F32, ".kind::f8f6f4", "", false, 0);
            test_mma_form(16, 32, small[a], small[b], F16, ".kind::f8f6f4", "", false, 0);
        }
}

/* --- every form loads ------------------------------------------------------------------------- */

static void test_forms(const char *device, int least)
{
    char *list = read_file("tests/data/matrix_forms.tsv"), *save = NULL;
    int n = 0;
    if (!CHECK(list != NULL, "tests/data/matrix_forms.tsv cannot be opened")) return;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        static char ptx[8192];
        char *target = strchr(line, '\t'), *text = target ? strchr(target + 1, '\t') : NULL;
        if (*line == '#' || !text) continue;
        *target++ = *text++ = 0;
        bool chip = !strncmp(target, "sm_100", 6) || !strncmp(target, "sm_120", 6);
        if (strcmp(device, chip ? (target[4] == '0' ? "sm_100" : "sm_120") : "sm_90")) continue;
        const char *regs = "{ .reg .pred p<8>; .reg .b16 h<32>; .reg .b32 r<160>; .reg .b64 d<32>; .reg .f32 f<264>; .reg .f64 g<40>;";
        snprintf(ptx, sizeof ptx, ".version %s\n.target %s\n.address_size 64\n.shared .align 128 .b8 smem[8192];\n"
                 ".visible .entry k(.param .u64 pa) %s\n%s\nret; }\n", line, target, regs, text);
        int code = refused(ptx);
        CHECK(code == 0, "%s: %d %s", text, code, log_text);
        n++;
        char *version = strstr(ptx, ".version ");             /* one version less: refused, with the line */
        if (!strncmp(line, "8.6", 3) || !strncmp(line, "6.3", 3)) continue;   /* the target itself needs 8.6 */
        if (version[11] > '0') version[11]--;
        else { version[9]--; version[11] = '5'; }
        if (!strcmp(target, "sm_70") && version[9] == '6' && version[11] < '0') continue;
        code = refused(ptx);
        CHECK(code != 0, "%s: accepted below its first version %s", text, line);
    }
    CHECK(n >= least, "only %d forms", n);
    free(list);
}

/* --- other chips run in processes of their own, for the library is one chip for its whole life ---- */

static void on_device(const char *device, int argc, char **argv, void (*tests)(void))
{
    int ends[2], counts[2] = { 0, 1 };
    fflush(NULL);
    if (pipe(ends)) return;
    pid_t child = fork();
    if (!child) {
        setenv("PTXSIM_DEVICE", device, 1);
        sim_open(argc, argv);
        tests();
        SAME(cuDevicePrimaryCtxRelease_v2_(0), 0);
        counts[0] = passed;
        counts[1] = failed;
        _exit(write(ends[1], counts, sizeof counts) != sizeof counts);
    }
    close(ends[1]);
    if (read(ends[0], counts, sizeof counts) != sizeof counts) fprintf(stderr, "the tests on %s did not end\n", device);
    close(ends[0]);
    waitpid(child, NULL, 0);
    passed += counts[0];
    failed += counts[1];
}

static void tests_sm_100(void)
{
    test_forms("sm_100", 4);
}

static void tests_sm_120(void)
{
    test_forms("sm_120", 10);
    test_mma_kinds();
}

int main(int argc, char **argv)
{
    on_device("sm_100", argc, argv, tests_sm_100);
    on_device("sm_120", argc, argv, tests_sm_120);
    sim_open(argc, argv);
    test_forms("sm_90", 55);
    test_mma();
    return sim_close();
}
