/* tensor.c - proves the matrix instructions of the CPU driver: ldmatrix, stmatrix, movmatrix, mma,
 * wmma, wgmma.
 *
 *   tensor [library]      or PTXGEN_CUDA_LIBRARY; run from the root of the repository
 *
 * Every shape and type is run on whole numbers (where any order of summation is exact), on random bits
 * and on edge values, and compared over the layout that the PTX ISA documents, written down here once more,
 * element by element: with exact sums (the option) to a sum in long double, and on six chips bit by bit to
 * the sum that the chip makes, by integers (tensor_sum.c has cases worked out by hand). */
#include "../simtest.h"

/* --- numbers ---------------------------------------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

enum type {
    F16,
    BF16,
    TF32,
    F32,
    F64,
    S32,
    S8,
    U8,
    S4,
    U4,
    B1,
    E4M3,
    E5M2,
    E3M2,
    E2M3,
    E2M1,
    E2M1B,
    UE8M0,
    UE4M3,
    TYPES
};
static const struct {
    const char *name;
    int bits, exponent, mantissa, bias, special; /* 1: IEEE, 2: one NaN, 0: none */
} types[TYPES] = {
    { "f16", 16, 5, 10, 15, 1 },  { "bf16", 16, 8, 7, 127, 1 },   { "tf32", 32, 8, 10, 127, 1 },
    { "f32", 32, 8, 23, 127, 1 }, { "f64", 64, 11, 52, 1023, 1 }, { "s32", 32, 0, 0, 0, 0 },
    { "s8", 8, 0, 0, 0, 0 },      { "u8", 8, 0, 0, 0, 0 },        { "s4", 4, 0, 0, 0, 0 },
    { "u4", 4, 0, 0, 0, 0 },      { "b1", 1, 0, 0, 0, 0 },        { "e4m3", 8, 4, 3, 7, 2 },
    { "e5m2", 8, 5, 2, 15, 1 },   { "e3m2", 8, 3, 2, 3, 0 },      { "e2m3", 8, 2, 3, 1, 0 },
    { "e2m1", 4, 2, 1, 1, 0 },    { "e2m1", 8, 2, 1, 1, 0 },      { "ue8m0", 8, 8, 0, 127, 3 },
    { "ue4m3", 8, 4, 3, 7, 2 }
};

static double value_of(int t, uint64_t bits)
{
    switch (t) {
    case S32: return (int32_t)bits;
    case S8: return (int8_t)bits;
    case U8: return (uint8_t)bits;
    case S4: return (double)((int)(bits & 7) - (int)(bits & 8));
    case U4:
    case B1: return (double)bits;
    case F64: {
        double d;
        memcpy(&d, &bits, 8);
        return d;
    }
    case UE8M0: return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
    case TF32: bits >>= 13; break;
    case E2M1B: bits = bits >> 2 & 15; break;
    default: break;
    }
    int e = (int)(bits >> types[t].mantissa) & ((1 << types[t].exponent) - 1),
        top = (1 << types[t].exponent) - 1;
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
    case S8:
    case S4:
    case S32: return (uint64_t)(int64_t)v & (types[t].bits == 32 ? 0xffffffff : (1u << types[t].bits) - 1);
    case U8:
    case U4:
    case B1: return random32() & (t == B1 ? 1 : 7);
    case F64: {
        double d = v;
        uint64_t b;
        memcpy(&b, &d, 8);
        return b;
    }
    case UE8M0: return 126 + random32() % 3;
    case UE4M3: return 0x38;
    default: break;
    }
    if (!v) return 0;
    if (t == E2M1B) return (uint64_t)((v < 0) << 3 | (abs(v) == 1 ? 2 : 4)) << 2;
    uint64_t e = (uint64_t)(types[t].bias + (abs(v) == 2)),
             b = e << types[t].mantissa | (uint64_t)(v < 0) << (types[t].mantissa + types[t].exponent);
    return t == TF32 ? b << 13 | (random32() & 0x1fff) : b;
}

static uint64_t any_number(int t)
{
    uint64_t b = (uint64_t)random32() << 32 | random32();
    if (t == F64) {
        double d = ldexp((double)(int32_t)b, (int)(random32() % 20) - 10);
        memcpy(&b, &d, 8);
        return b;
    }
    if (t == F32 || t == TF32 || t == BF16) { /* of moderate size, so that sums stay finite */
        uint32_t f = (uint32_t)(b & 0x807fffff) | (110 + random32() % 30) << 23;
        return t == BF16 ? f >> 16 : f;
    }
    if (t == UE8M0) return 110 + random32() % 34;
    if (t == F16) return (b & 0x83ff) | (8 + random32() % 12) << 10;
    if (types[t].bits < 64) b &= ((uint64_t)1 << types[t].bits) - 1;
    return b;
}

static uint64_t edge_number(int t)
{
    static const uint64_t
        f16[] = { 0, 0x8000, 1, 0x83ff, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0xfbff, 0x3c00, 0x0400 },
        bf16[] = { 0, 0x8000, 1, 0x7f80, 0xff80, 0x7fc0, 0x3f80, 0xbf80, 0x0080 },
        f32[] = { 0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0x80700000, 0xbf800000 },
        f64[] = { 0, 1, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3ff0000000000000 },
        s32[] = { 0x7fffffff, 0x80000000, 0, 0xffffffff },
        bytes[] = { 0, 0x7f, 0x80, 0xff, 0x7c, 0xfc, 1, 0x7e, 0x38 };
#define PICK(list) list[random32() % (sizeof list / sizeof *list)]
    if (random32() % 4) return small_number(t); /* few of them, else all is NaN */
    switch (t) {
    case F16: return PICK(f16);
    case BF16: return PICK(bf16);
    case F32:
    case TF32: return PICK(f32);
    case F64: return PICK(f64);
    case S32: return PICK(s32);
    default: return types[t].bits == 8 ? PICK(bytes) : any_number(t);
    }
}

/* Any finite number of the format. */
static uint64_t wide_number(int t)
{
    for (;;) {
        uint64_t b = (uint64_t)random32() << 32 | random32();
        if (types[t].bits < 64) b &= ((uint64_t)1 << types[t].bits) - 1;
        if (t == S32 || isfinite(value_of(t, b))) return b;
    }
}

static int chip; /* 75, ...: sums are the chip's; 0: exact */
static int kind_of_number;

/* Pass 0: small ones, and what else a run on a chip is to see; 1: any of moderate size; 2: edges. */
static uint64_t number_of(int pass, int t)
{
    if (!pass && chip) switch (kind_of_number) {
        case 0: return any_number(t);
        case 1: return wide_number(t);
        case 2: return edge_number(t);
        default: return random32() % 3 ? any_number(t) : random32() % 2 ? small_number(t) : wide_number(t);
        }
    return pass == 0 ? small_number(t) : pass == 1 ? any_number(t) : edge_number(t);
}

/* --- layouts of the ISA ----------------------------------------------------------------------- */

/* Element i of lane l of A. */
static void isa_a(int m, int k, int t, int l, int i, int *row, int *col)
{
    int g = l / 4, q = l % 4, bits = types[t].bits;
    if (t == F64) {
        *row = i % 2 && m == 16 ? g + 8 : g;
        *col = m == 8 ? q : q + i / 2 * 4;
        return;
    }
    if (m == 8) {
        int n = 32 / bits;
        *row = g;
        *col = q * n + i % n;
        return;
    }
    switch (bits) {
    case 32:
        *row = i == 0 || i == 2 ? g : g + 8;
        *col = i < 2 ? q : q + 4;
        break;
    case 16:
        *row = i < 2 || (i >= 4 && i < 6) ? g : g + 8;
        *col = q * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        break;
    case 8:
        *row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
        *col = q * 4 + (i & 3) + (i >= 8 ? 16 : 0);
        break;
    case 4:
        *row = i < 8 || (i >= 16 && i < 24) ? g : g + 8;
        *col = q * 8 + (i & 7) + (i >= 16 ? 32 : 0);
        break;
    default:
        *row = i < 32 || (i >= 64 && i < 96) ? g : g + 8;
        *col = q * 32 + (i & 31) + (i >= 64 ? 128 : 0);
        break;
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
    case 8: *row = q * 4 + (i & 3) + i / 4 * 16; break;
    case 4: *row = q * 8 + (i & 7) + i / 8 * 32; break;
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

enum { LANES = 32, MOST = 80 }; /* 32-bit words of a thread: what an instruction reads */

typedef struct machine {
    int a_words, b_words, c_words, d_words, extra; /* per thread; extra: metadata, scales */
    uint32_t in[LANES][MOST], out[LANES][MOST];
} machine;

static int words_of(int elements, int t) { return elements * types[t].bits / 32 / 32; }

/* `text` holds the operands behind the destination as %d, %a, %b, %c, %x<n>. */
static bool run_instruction(const char *head, const char *text, bool wide, bool wide_ab, machine *x)
{
    static char ptx[20000];
    int n = 0, total = x->a_words + x->b_words + x->c_words + x->extra;
    const char *ld = wide_ab ? "g" : "r";
    n += sprintf(ptx + n,
                 "%s.visible .entry k(.param .u64 pi, .param .u64 po) {\n.reg .b32 r<100>; .reg .f64 g<100>; "
                 ".reg .b64 d<8>; .reg .b16 h<8>;"
                 " .reg .b32 d0<100>;\nld.param.u64 d2, [pi]; ld.param.u64 d3, [po]; mov.u32 r99, %%tid.x; "
                 "mul.wide.u32 d4, r99, %d;\n"
                 "add.u64 d2, d2, d4; add.u64 d3, d3, d4;\n",
                 head, MOST * 4);
    int step = wide_ab ? 2 : 1;
    for (int k = 0; k < total; k += step)
        n += sprintf(ptx + n, "ld.global.b%d %s%d, [d2+%d];\n", 32 * step, ld, k / step, k * 4);
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            ptx[n++] = *p;
            continue;
        }
        int first = 0, count = 0;
        const char *name = ld;
        switch (*++p) {
        case 'd':
            count = x->d_words;
            name = wide ? "g" : "r";
            first = wide ? 60 * step : 60;
            break;
        case 'a': count = x->a_words; break;
        case 'b':
            first = x->a_words;
            count = x->b_words;
            break;
        case 'c':
            first = x->a_words + x->b_words;
            count = x->c_words;
            break;
        default: n += sprintf(ptx + n, "r%d", x->a_words + x->b_words + x->c_words + (*p - '0')); continue;
        }
        n += sprintf(ptx + n, "{");
        for (int k = 0; k < count; k += step)
            n += sprintf(ptx + n, "%s%s%d", k ? "," : "", name, (first + k) / step);
        n += sprintf(ptx + n, "}");
    }
    n += sprintf(ptx + n, "\n");
    for (int k = 0; k < x->d_words; k += step)
        n += sprintf(ptx + n, "st.global.b%d [d3+%d], %s%d;\n", 32 * step, k * 4, wide ? "g" : "r",
                     60 + k / step);
    sprintf(ptx + n, "ret; }\n");
    handle m = load(ptx), f = function(m, "k");
    if (!CHECK(f != NULL, "does not load: %s", text)) {
        fprintf(stderr, "%s", ptx);
        return false;
    }
    dptr in = alloc(sizeof x->in), out = alloc(sizeof x->out);
    void *params[] = { &in, &out };
    cuMemcpyHtoD_v2_(in, x->in, sizeof x->in);
    cuMemsetD8_v2_(out, 0, sizeof x->out);
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
    if (bits == 64) {
        words[at / 32] = (uint32_t)v;
        words[at / 32 + 1] = (uint32_t)(v >> 32);
        return;
    }
    words[at / 32] &= ~((bits == 32 ? 0xffffffffu : (1u << bits) - 1) << at % 32);
    words[at / 32] |= (uint32_t)v << at % 32;
}

/* --- the chip's sums, by integers -------------------------------------------------------------- */

static double ma[64][256], mb[256][256], mc[64][256];
static double scale_a[16][128], scale_b[128][8]; /* the factors of scaled forms */

/* What the form under test does, set by describe_form. */
static struct {
    int a, b, c, d, scale;     /* types; c: of the sums */
    int k, step, group;        /* elements */
    int fraction, kept;        /* bits behind the point */
    bool pairs, c_last;
} form;

enum { MMA, WMMA, WGMMA };

/* From which chip on, in which instructions and for which bits of an element: bits of terms, bits of an f32
 * result, products of a step (0: all of the instruction). The first row that fits. From the table of the
 * published model; sm_90 and sm_100 have no mma of 8-bit floats, ptxas makes two of f16 of it. */
static const struct { int chip, kinds, bits, fraction, kept, step; } chips[] = {
    { 120, 1 << MMA, 4, 35, 23, 0 },
    { 90, 1 << WGMMA, 8, 13, 13, 0 },
    { 90, 1 << WMMA, 32, 25, 23, 4 },
    { 90, 7, 0, 25, 23, 0 },
    { 89, 7, 8, 13, 13, 16 },
    { 80, 7, 16, 24, 23, 8 },
    { 80, 7, 32, 24, 23, 4 },
    { 75, 7, 16, 24, 23, 8 },
};

static void describe_form(int kind, int at, int bt, int ct, int dt, int k, bool sparse, int scale)
{
    int bits = types[at].bits, products = sparse ? k / 2 : k;
    kind_of_number = (int)(random32() % 4);
    memset(&form, 0, sizeof form);
    form.a = at, form.b = bt, form.c = ct == F32 ? F32 : dt, form.d = dt, form.k = k, form.scale = scale;
    if (!chip || (dt != F32 && dt != F16)) return;
    for (size_t n = 0; n < sizeof chips / sizeof *chips && !form.fraction; n++) {
        if (chip < chips[n].chip || !(chips[n].kinds >> kind & 1)) continue;
        if (chips[n].bits && chips[n].bits != bits) continue;
        form.fraction = chips[n].fraction;
        form.kept = chips[n].kept;
        form.step = chips[n].step;
    }
    form.group = form.fraction == 35 ? (sparse ? 32 : 16) : 1;
    if (bits == 8 && kind == MMA && (chip == 90 || chip == 100)) {
        form.pairs = form.c_last = true;
        form.a = form.b = F16;
        form.step = products / 2;
    }
    if (!form.step || form.step > products) form.step = products;
    if (sparse) form.step *= 2;
}

/* A number of that type as significand * 2^-23 * 2^exponent: subnormal ones have the least exponent. */
static int64_t take_apart(int t, double x, int *exponent)
{
    int least = t == UE8M0 ? -127 : 1 - types[t].bias;
    if (x == 0) {
        *exponent = -126;
        return 0;
    }
    *exponent = ilogb(x) < least ? least : ilogb(x);
    return (int64_t)ldexp(x, 23 - *exponent);
}

/* x / 2^n, cut towards zero. */
static int64_t cut(int64_t x, int n)
{
    int64_t size = x < 0 ? -x : x;
    if (n < 0) size <<= -n;
    else size = n > 62 ? 0 : size >> n;
    return x < 0 ? -size : size;
}

/* total * 2^exponent as a number of type F32, cut to `kept` bits, or of type F16, the nearest. */
static uint64_t compose(int64_t total, int exponent, int t, int kept)
{
    int mantissa = types[t].mantissa, least = 1 - types[t].bias, top = 0;
    uint64_t size = (uint64_t)(total < 0 ? -total : total), sign = (uint64_t)(total < 0);
    if (!size) return 0;
    while (size >> top > 1) top++;
    int e = exponent + top, drop;
    if (e < least) e = least;
    drop = e - (t == F32 ? kept : mantissa) - exponent; /* bits of total below the last place */
    uint64_t m;
    if (drop <= 0) m = size << -drop;
    else if (t == F32) m = drop > 62 ? 0 : size >> drop;
    else {
        uint64_t half = drop > 62 ? 0 : (uint64_t)1 << (drop - 1), rest = half ? size & (half * 2 - 1) : 0;
        m = drop > 62 ? 0 : size >> drop;
        m += rest > half || (rest == half && half && m & 1);
    }
    if (t == F32) m <<= mantissa - kept;
    if (!m) return 0;
    if (m >> (mantissa + 1)) m >>= 1, e++; /* rounded up to the next power of two */
    uint64_t bits = m >> mantissa ? (uint64_t)(e - least) << mantissa : 0;
    bits += m;
    uint64_t infinity = (((uint64_t)1 << types[t].exponent) - 1) << mantissa;
    if (bits > infinity) bits = infinity;
    return sign << (types[t].bits - 1) | bits;
}

/* The elements of k in the order in which their steps take them. */
static int element_of_step(int n)
{
    if (!form.pairs) return n;
    int half = n >= form.k / 2, m = n - (half ? form.k / 2 : 0);
    return m / 2 * 4 + m % 2 + (half ? 2 : 0);
}

static int64_t finite_parts(int t, double x, int *exponent) { return take_apart(t, isfinite(x) ? x : 0, exponent); }

static uint64_t chip_step(int row, int col, int first, double c)
{
    int64_t terms[130], total = 0;
    int exponents[130], count = 0, top;
    long double plain = c;
    terms[0] = finite_parts(form.c, c, &exponents[0]) * (1 << 23);
    top = exponents[count++];
    for (int n = first; n < first + form.step; n += form.group, count++) {
        int z = element_of_step(n), e[4] = { 0 };
        int64_t factors = 1;
        if (form.scale) { /* of three bits behind the point */
            factors = finite_parts(form.scale, scale_a[row][z], &e[0]) >> 20;
            factors *= finite_parts(form.scale, scale_b[z][col], &e[1]) >> 20;
        }
        if (form.group > 1) {
            int64_t quarters = 0;
            for (int y = n; y < n + form.group; y++) quarters += (int64_t)(ma[row][y] * mb[y][col] * 4);
            terms[count] = quarters * factors * ((int64_t)1 << 38);
        } else {
            terms[count] = finite_parts(form.a, ma[row][z], &e[2]);
            terms[count] *= finite_parts(form.b, mb[z][col], &e[3]);
        }
        exponents[count] = e[0] + e[1] + e[2] + e[3];
        top = exponents[count] > top ? exponents[count] : top;
    }
    for (int n = first; n < first + form.step; n++) {
        int z = element_of_step(n);
        long double x = ma[row][z], y = mb[z][col];
        if (form.scale) x *= scale_a[row][z], y *= scale_b[z][col];
        plain += x * y;
    }
    if (isnan(plain)) return form.c == F16 ? 0x7fff : 0x7fffffff;
    if (isinf(plain)) return form.c == F16 ? (plain < 0 ? 0xfc00 : 0x7c00) : plain < 0 ? 0xff800000 : 0x7f800000;
    for (int n = 0; n < count; n++) total += cut(terms[n], top - exponents[n] + 46 - form.fraction);
    return compose(total, top - form.fraction, form.c, form.kept);
}

/* The f16 next to x, which is a multiple of 2^-24 or an f32. */
static uint64_t nearest_f16(double x)
{
    if (isnan(x) || isinf(x)) return isnan(x) ? 0x7fff : x < 0 ? 0xfc00 : 0x7c00;
    if (fabs(x) < 0x1p-30) return signbit(x) ? 0x8000 : 0;
    uint64_t bits = fabs(x) > 0x1p17 ? 0x7c00 : compose((int64_t)ldexp(fabs(x), 44), -44, F16, 10);
    return bits | (signbit(x) ? 0x8000u : 0);
}

static uint64_t chip_sum(int row, int col)
{
    double c = form.c_last ? 0 : mc[row][col];
    uint64_t bits = 0;
    for (int first = 0; first < form.k; first += form.step) {
        bits = chip_step(row, col, first, c);
        c = value_of(form.c, bits);
    }
    if (!form.c_last) return form.c == form.d ? bits : nearest_f16(c);
    if (form.d == F16) return nearest_f16(mc[row][col] + c);
    float sum = (float)mc[row][col] + (float)c;
    uint32_t word;
    memcpy(&word, &sum, 4);
    return isnan(sum) ? 0x7fffffff : word;
}

static uint64_t expected; /* the bits of the element that evaluate has looked at last */

/* Is `have` the sum? `size` adds up the magnitudes of the terms. */
static bool right(int t, uint64_t have_bits, long double want, long double size, int k, bool exact,
                  bool saturate)
{
    double have = value_of(t, have_bits);
    if (chip && (t == F32 || t == F16)) return have_bits == expected;
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
    long double bound = (k + 1) * (t == F64 ? ldexpl(size, -52) : ldexpl(size, -23)); /* .rz cuts */
    if (t == F16) bound += ldexpl(fabsl(want), -11) + ldexpl(1, -25);
    bound += ldexpl(1, t == F64 ? -1074 : -149);
    return fabsl((long double)have - want) <= bound;
}

static void evaluate(int m, int n, int k, int row, int col, int op, long double *sum, long double *size)
{
    (void)m;
    (void)n;
    if (chip && (form.d == F32 || form.d == F16)) expected = chip_sum(row, col);
    *sum = mc[row][col];
    *size = fabs(mc[row][col]);
    for (int z = 0; z < k; z++) {
        long double p = op == 'x'   ? (ma[row][z] != mb[z][col])
                        : op == '&' ? (ma[row][z] && mb[z][col])
                                    : (long double)ma[row][z] * mb[z][col];
        if (form.scale) p *= (long double)scale_a[row][z] * scale_b[z][col];
        *sum += p;
        *size += fabsl(p);
    }
}

/* What every chip under test takes, or the family of sm_120. */
static const char *head_of(bool kind)
{
    static char head[80];
    snprintf(head, sizeof head, ".version 8.7\n.target sm_%s\n.address_size 64\n",
             kind ? "120a" : chip == 75 ? "75" : chip == 80 ? "80" : chip == 89 ? "89" : "90");
    return head;
}

/* On a chip only sums of floats are of interest, in forms that it has. */
static bool on_chip(int at, int dt, int least)
{
    if (!chip) return true;
    return (dt == F32 || dt == F16) && chip >= (types[at].bits == 8 ? 89 : least);
}

static void test_mma_form(int m, int k, int at, int bt, int ct, const char *infix, const char *suffix,
                          bool saturate, int op)
{
    static machine x;
    char text[300], what[200];
    bool wide = at == F64;
    if (!on_chip(at, ct, 16 * k > 128 || at != F16 ? 80 : 75)) return;
    int ea = m * k / 32, eb = k * 8 / 32, ec = m * 8 / 32;
    x.a_words = words_of(m * k, at);
    x.b_words = words_of(k * 8, bt);
    x.c_words = x.d_words = words_of(m * 8, ct);
    x.extra = 0;
    snprintf(what, sizeof what, "mma.sync.aligned.m%dn8k%d.row.col%s.%s.%s.%s.%s%s", m, k, infix,
             types[ct].name, types[at].name, types[bt].name, types[ct].name, suffix);
    snprintf(text, sizeof text, "%s %%d, %%a, %%b, %%c;", what);
    bool kind = strstr(infix, "kind") != NULL;
    for (int pass = 0; pass < 3; pass++) {
        describe_form(MMA, at, bt, ct, ct, k, false, 0);
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
        if (!run_instruction(head_of(kind), text, wide, wide, &x)) return;
        int bad = 0;
        for (int l = 0; l < 32 && !bad; l++)
            for (int i = 0; i < ec && !bad; i++) {
                int row, col;
                long double want, size;
                isa_c(l, i, &row, &col);
                evaluate(m, 8, k, row, col, op, &want, &size);
                uint64_t have = get_bits(x.out[l], i * types[ct].bits, types[ct].bits);
                if (!right(ct, have, want, size, k, pass == 0, saturate)) {
                    CHECK(false, "%s, pass %d: row %d column %d is %g, expected %Lg", what, pass, row, col,
                          value_of(ct, have), want);
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

/* --- m8n8k4 of f16: four products by quads of lanes ------------------------------------------- */

static void test_quads(void)
{
    static machine x;
    static const char *const layouts[] = { "row", "col" };
    static const int kinds[3][2] = { { F16, F16 }, { F32, F16 }, { F32, F32 } };
    for (int form = 0; form < 12; form++) {
        int acol = form & 1, bcol = form >> 1 & 1, dt = kinds[form / 4][0], ct = kinds[form / 4][1], bad = 0;
        char text[200];
        static double a[4][8][4], b[4][4][8], c[4][8][8];
        x.a_words = x.b_words = 2;
        x.c_words = ct == F16 ? 4 : 8;
        x.d_words = dt == F16 ? 4 : 8;
        describe_form(MMA, F16, F16, ct, dt, 4, false, 0);
        snprintf(text, sizeof text, "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s %%d, %%a, %%b, %%c;",
                 layouts[acol], layouts[bcol], types[dt].name, types[ct].name);
        for (int l = 0; l < 32; l++) {
            int q = l % 16 / 4, up = l < 16 ? 0 : 4;
            for (int i = 0; i < 4; i++) {
                uint64_t v = number_of(0, F16);
                put_bits(x.in[l], i * 16, 16, v);
                *(acol ? &a[q][i % 4 + up][l % 4] : &a[q][l % 4 + up][i]) = value_of(F16, v);
                v = number_of(0, F16);
                put_bits(x.in[l] + 2, i * 16, 16, v);
                *(bcol ? &b[q][i][l % 4 + up] : &b[q][l % 4][i + up]) = value_of(F16, v);
            }
            for (int i = 0; i < 8; i++) {
                uint64_t v = number_of(0, ct);
                put_bits(x.in[l] + 4, i * types[ct].bits, types[ct].bits, v);
                if (ct == F16)
                    c[q][l % 4 + up][i] = value_of(ct, v);
                else
                    c[q][(l & 1) + (i & 2) + up][(i & 4) + (l & 2) + (i & 1)] = value_of(ct, v);
            }
        }
        if (!run_instruction(head_of(false), text, false, false, &x)) return;
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 8; i++) {
                int q = l % 16 / 4, up = l < 16 ? 0 : 4;
                int row = dt == F16 ? l % 4 + up : (l & 1) + (i & 2) + up,
                    col = dt == F16 ? i : (i & 4) + (l & 2) + (i & 1);
                long double want, size;
                mc[row][col] = c[q][row][col];
                for (int z = 0; z < 4; z++) {
                    ma[row][z] = a[q][row][z];
                    mb[z][col] = b[q][z][col];
                }
                evaluate(8, 8, 4, row, col, 0, &want, &size);
                bad += !right(dt, get_bits(x.out[l], i * types[dt].bits, types[dt].bits), want, size, 4, true,
                              false);
            }
        CHECK(!bad, "%s: %d elements differ", text, bad);
    }
}

/* --- sparse A --------------------------------------------------------------------------------- */

/* The ISA's figures: which lane of each four, and which of its bits, hold the metadata of a row's group. */
static uint32_t *metadata_of(machine *x, int lane)
{
    return &x->in[lane][x->a_words + x->b_words + x->c_words];
}

static void test_sparse_form(int k, int at, int bt, int dt, int selector, bool ordered, const char *infix)
{
    static machine x;
    char text[300];
    int bits = types[at].bits, ea = 16 * k / 2 / 32, eb = k * 8 / 32, unit = bits == 4 ? 2 : 1, bad = 0;
    static double packed[16][128];
    if (!on_chip(at, dt, 80)) return;
    x.a_words = words_of(16 * k / 2, at);
    x.b_words = words_of(k * 8, bt);
    x.c_words = x.d_words = words_of(16 * 8, dt);
    x.extra = 1;
    snprintf(text, sizeof text,
             "mma.sp%s.sync.aligned.m16n8k%d.row.col%s.%s.%s.%s.%s %%d, %%a, %%b, %%c, %%0, %d;",
             ordered ? "::ordered_metadata" : "", k, infix, types[dt].name, types[at].name, types[bt].name,
             types[dt].name, selector);
    describe_form(MMA, at, bt, dt, dt, k, true, 0);
    memset(x.in, 0, sizeof x.in);
    for (int l = 0; l < 32; l++)
        *metadata_of(&x, l) = random32(); /* lanes that are not asked hold anything */
    for (int l = 0; l < 32; l++) {
        int row, col;
        for (int i = 0; i < ea; i++) {
            uint64_t v = number_of(0, at);
            isa_a(16, k / 2, at, l, i, &row, &col);
            put_bits(x.in[l], i * bits, bits, v);
            packed[row][col] = value_of(at, v);
        }
        for (int i = 0; i < eb; i++) {
            uint64_t v = number_of(0, bt);
            isa_b(k, bt, l, i, &row, &col);
            put_bits(x.in[l] + x.a_words, i * types[bt].bits, types[bt].bits, v);
            mb[row][col] = value_of(bt, v);
        }
        for (int i = 0; i < 4; i++) {
            uint64_t v = number_of(0, dt);
            isa_c(l, i, &row, &col);
            put_bits(x.in[l] + x.a_words + x.b_words, i * types[dt].bits, types[dt].bits, v);
            mc[row][col] = value_of(dt, v);
        }
    }
    memset(ma, 0, sizeof ma);
    for (int row = 0; row < 16; row++)
        for (int j = 0; j < k / 2 / unit;
             j += bits == 32 ? 1 : 2) { /* one group: two of four; tf32: one of two */
            int g = row % 8, high = row / 8;
            if (bits == 32) { /* 4 bits a group, 4 groups in 16 bits */
                int which = random32() & 1, thread = k == 8 ? selector : selector * 2 + j / 4;
                put_bits(metadata_of(&x, g * 4 + thread), high * 16 + j % 4 * 4, 4, which ? 14 : 4);
                ma[row][j * 2 + which] = packed[row][j];
                continue;
            }
            int first = (int)(random32() % 3), second = first + 1 + (int)(random32() % (3 - (unsigned)first)),
                thread, bit;
            if (bits == 16) {
                thread = k == 16 ? selector : selector * 2 + j / 8;
                bit = high * 16 + j % 8 * 2;
            } else { /* 32 bits of one row: row g from an even thread */
                bool few = k * bits == 32 * 8;
                thread = few ? selector * 2 + high : j / 16 * 2 + high;
                bit = j % 16 * 2;
            }
            put_bits(metadata_of(&x, g * 4 + thread), bit, 4, (unsigned)(first | second << 2));
            for (int e = 0; e < unit; e++) {
                ma[row][(j / 2 * 4 + first) * unit + e] = packed[row][j * unit + e];
                ma[row][(j / 2 * 4 + second) * unit + e] = packed[row][(j + 1) * unit + e];
            }
        }
    if (!run_instruction(head_of(strstr(infix, "kind") != NULL), text, false, false, &x)) return;
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            int row, col;
            long double want, size;
            isa_c(l, i, &row, &col);
            evaluate(16, 8, k, row, col, 0, &want, &size);
            bad += !right(dt, get_bits(x.out[l], i * types[dt].bits, types[dt].bits), want, size, k, true,
                          false);
        }
    CHECK(!bad, "%s: %d elements differ", text, bad);
    x.extra = 0;
}

static void test_sparse(void)
{
    for (int n = 0; n < 2; n++)
        for (int sel = 0; sel < 4; sel++) {
            test_sparse_form(16, F16, F16, n ? F32 : F16, sel, n, "");
            test_sparse_form(16, BF16, BF16, F32, sel, n, "");
            test_sparse_form(8, TF32, TF32, F32, sel, n, "");
            if (sel > 1) continue;
            test_sparse_form(32, F16, F16, n ? F32 : F16, sel, n, "");
            test_sparse_form(32, BF16, BF16, F32, sel, n, "");
            test_sparse_form(16, TF32, TF32, F32, sel, n, "");
            test_sparse_form(32, n ? S8 : U8, S8, S32, sel, n, "");
            test_sparse_form(64, n ? S4 : U4, S4, S32, sel, n, "");
            if (sel) continue;
            test_sparse_form(64, n ? S8 : U8, U8, S32, sel, n, "");
            test_sparse_form(128, n ? S4 : U4, U4, S32, sel, n, "");
            test_sparse_form(64, n ? E4M3 : E5M2, E4M3, F32, sel, n, "");
        }
}

/* --- block scales ----------------------------------------------------------------------------- */

static void test_scaled_form(const char *kind, int k, int at, int bt, int st, int vectors, int byte,
                             int thread_a, int thread_b)
{
    static machine x;
    char text[400];
    int bad = 0, ea = 16 * k / 32, eb = k * 8 / 32;
    x.a_words = words_of(16 * k, at);
    x.b_words = words_of(k * 8, bt);
    x.c_words = x.d_words = 4;
    x.extra = 2;
    snprintf(text, sizeof text,
             "mma.sync.aligned.m16n8k%d.row.col.%s.block_scale.scale_vec::%dX.f32.%s.%s.f32.%s "
             "%%d, %%a, %%b, %%c, %%0, {%d,%d}, %%1, {%d,%d};",
             k, kind, vectors, types[at].name, types[bt].name, types[st].name, byte, thread_a, byte,
             thread_b);
    describe_form(MMA, at, bt, F32, F32, k, false, st);
    for (int l = 0; l < 32; l++) {
        uint32_t *scales = metadata_of(&x, l);
        int row, col;
        scales[0] = scales[1] = 0;
        for (int n = 0; n < 4; n++) {
            scales[0] |= (uint32_t)number_of(0, st) << 8 * n;
            scales[1] |= (uint32_t)(st == UE8M0 ? number_of(0, st) : 0x30 + random32() % 16) << 8 * n;
        }
        for (int i = 0; i < ea; i++) {
            uint64_t v = number_of(0, at);
            isa_a(16, k, at, l, i, &row, &col);
            put_bits(x.in[l], i * types[at].bits, types[at].bits, v);
            ma[row][col] = value_of(at, v);
        }
        for (int i = 0; i < eb; i++) {
            uint64_t v = number_of(0, bt);
            isa_b(k, bt, l, i, &row, &col);
            put_bits(x.in[l] + x.a_words, i * types[bt].bits, types[bt].bits, v);
            mb[row][col] = value_of(bt, v);
        }
        for (int i = 0; i < 4; i++) {
            uint64_t v = number_of(0, F32);
            isa_c(l, i, &row, &col);
            put_bits(x.in[l] + x.a_words + x.b_words, i * 32, 32, v);
            mc[row][col] = value_of(F32, v);
        }
    }
    for (int z = 0; z < k; z++) { /* rows g and g + 8: the even and odd lane of a pair */
        int at_byte = (byte + z / (k / vectors)) * 8;
        for (int row = 0; row < 16; row++)
            scale_a[row][z] =
                value_of(st, metadata_of(&x, row % 8 * 4 + thread_a * 2 + row / 8)[0] >> at_byte & 255);
        for (int col = 0; col < 8; col++)
            scale_b[z][col] = value_of(st, metadata_of(&x, col * 4 + thread_b)[1] >> at_byte & 255);
    }
    if (!run_instruction(".version 8.7\n.target sm_120a\n.address_size 64\n", text, false, false, &x)) return;
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            int row, col;
            long double want, size;
            isa_c(l, i, &row, &col);
            evaluate(16, 8, k, row, col, 0, &want, &size);
            bad += !right(F32, get_bits(x.out[l], i * 32, 32), want, size, k, true, false);
        }
    CHECK(!bad, "%s: %d elements differ", text, bad);
    x.extra = 0;
}

static void test_scaled(void)
{
    static const int small[] = { E4M3, E5M2, E3M2, E2M3, E2M1B };
    for (int n = 0; n < 5; n++)
        test_scaled_form("kind::mxf8f6f4", 32, small[n], small[(n + 2) % 5], UE8M0, 1, n & 3, n & 1,
                         n >> 1 & 3);
    for (int n = 0; n < 8; n++) {
        test_scaled_form("kind::mxf4", 64, E2M1, E2M1, UE8M0, 2, n & 2, n & 1, n & 3);
        test_scaled_form("kind::mxf4nvf4", 64, E2M1, E2M1, UE8M0, 2, n & 2, n & 1, n & 3);
        test_scaled_form("kind::mxf4nvf4", 64, E2M1, E2M1, UE4M3, 4, 0, n & 1, n & 3);
    }
    test_sparse_form(64, E4M3, E2M1B, F32, 0, true, ".kind::f8f6f4");
    test_sparse_form(64, E2M1B, E3M2, F16, 0, true, ".kind::f8f6f4");
    test_mma_form(16, 16, E4M3, E5M2, F32, ".kind::f8f6f4", "", false, 0);
    test_mma_form(16, 16, E5M2, E4M3, F16, ".kind::f8f6f4", "", false, 0);
}

/* --- ldmatrix, stmatrix, movmatrix ------------------------------------------------------------ */

/* A block of one warp over 1 KiB of shared memory, filled from and written back to global memory. */
static uint8_t shared_in[1024], shared_out[1024];
static uint32_t lane_out[32][4], lane_in[32][4], row_of[32];

static int run_matrix(const char *head, const char *code)
{
    static char ptx[4000];
    snprintf(ptx, sizeof ptx,
             "%s.visible .entry k(.param .u64 pi, .param .u64 po, .param .u64 pl, .param .u64 pr, .param "
             ".u64 pq) {\n"
             ".shared .align 128 .b8 sm[1024];\n" REGS ".reg .b32 o<4>, i<4>;\n"
             "mov.u32 r0, %%tid.x; mul.wide.u32 d5, r0, 32; mul.wide.u32 d6, r0, 16; mul.wide.u32 d7, r0, 4; "
             "mov.u32 r1, sm; shl.b32 r2, r0, 5;"
             " add.u32 r2, r2, r1;\n"
             "ld.param.u64 d0, [pi]; add.u64 d0, d0, d5; ld.global.v4.b32 {r4,r5,r6,r7}, [d0]; "
             "ld.global.v4.b32 {r8,r9,r10,r11}, [d0+16];\n"
             "st.shared.v4.b32 [r2], {r4,r5,r6,r7}; st.shared.v4.b32 [r2+16], {r8,r9,r10,r11};\n"
             "ld.param.u64 d1, [pl]; add.u64 d1, d1, d6; ld.global.v4.b32 {i0,i1,i2,i3}, [d1];\n"
             "ld.param.u64 d2, [pr]; add.u64 d2, d2, d7; ld.global.u32 r3, [d2]; add.u32 r3, r3, r1; "
             "cvt.u64.u32 d9, r3; cvta.shared.u64 d8, d9;\n"
             "mov.u32 o0, 0; mov.u32 o1, 0; mov.u32 o2, 0; mov.u32 o3, 0; bar.sync 0;\n%s\nbar.sync 0;\n"
             "ld.shared.v4.b32 {r4,r5,r6,r7}, [r2]; ld.shared.v4.b32 {r8,r9,r10,r11}, [r2+16];\n"
             "ld.param.u64 d3, [po]; add.u64 d3, d3, d5; st.global.v4.b32 [d3], {r4,r5,r6,r7}; "
             "st.global.v4.b32 [d3+16], {r8,r9,r10,r11};\n"
             "ld.param.u64 d4, [pq]; add.u64 d4, d4, d6; st.global.v4.b32 [d4], {o0,o1,o2,o3}; ret; }\n",
             head, code);
    handle m = load(ptx), f = function(m, "k");
    if (!CHECK(f != NULL, "%s does not load", code)) return -1;
    dptr in = alloc(1024), out = alloc(1024), lanes = alloc(512), rows = alloc(128), result = alloc(512);
    void *params[] = { &in, &out, &lanes, &rows, &result };
    cuMemcpyHtoD_v2_(in, shared_in, 1024);
    cuMemcpyHtoD_v2_(lanes, lane_in, 512);
    cuMemcpyHtoD_v2_(rows, row_of, 128);
    int status = run(f, 1, 32, 0, params);
    cuMemcpyDtoH_v2_(shared_out, out, 1024);
    cuMemcpyDtoH_v2_(lane_out, result, 512);
    unsigned told = report_count();
    findings();
    if (told) report_clear();
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    cuMemFree_v2_(lanes);
    cuMemFree_v2_(rows);
    cuMemFree_v2_(result);
    cuModuleUnload_(m);
    return status ? status : (int)told;
}

static void shuffle_rows(void)
{
    for (int n = 0; n < 1024; n++) shared_in[n] = (uint8_t)random32();
    for (int l = 0; l < 32; l++)
        for (int k = 0; k < 4; k++) lane_in[l][k] = random32();
    for (unsigned l = 0; l < 32; l++) row_of[l] = l;
    for (unsigned l = 31; l > 0; l--) {
        unsigned other = random32() % (l + 1), keep = row_of[l];
        row_of[l] = row_of[other];
        row_of[other] = keep;
    }
    for (int l = 0; l < 32; l++) row_of[l] = row_of[l] * 32 + 16 * (random32() & 1);
}

static const char *const lists[] = { "{o0}", "{o0,o1}", "{o0,o1,o2,o3}" }, *const sources[] = {
    "{i0}", "{i0,i1}", "{i0,i1,i2,i3}"
};

static void test_ldmatrix(void)
{
    char code[200];
    ptxsim_counters before, after;
    for (int form = 0; form < 12; form++) {
        int log = form % 3, count = 1 << log, trans = form / 3 % 2, generic = form / 6, bad = 0;
        shuffle_rows();
        snprintf(code, sizeof code, "ldmatrix.sync.aligned.m8n8.x%d%s%s.b16 %s, [%s];", count,
                 trans ? ".trans" : "", generic ? "" : ".shared", lists[log], generic ? "d8" : "r3");
        SAME(run_matrix(HEAD, code), 0);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < count; r++)
                for (int e = 0; e < 2; e++) {
                    int row = trans ? l % 4 * 2 + e : l / 4, col = trans ? l / 4 : l % 4 * 2 + e;
                    uint16_t want;
                    memcpy(&want, shared_in + row_of[r * 8 + row] + col * 2, 2);
                    bad += (uint16_t)(lane_out[l][r] >> 16 * e) != want;
                }
        CHECK(!bad, "%s: %d elements differ", code, bad);
        shuffle_rows();
        snprintf(code, sizeof code, "stmatrix.sync.aligned.m8n8.x%d%s%s.b16 [%s], %s;", count,
                 trans ? ".trans" : "", generic ? "" : ".shared", generic ? "d8" : "r3", sources[log]);
        SAME(run_matrix(HEAD, code), 0);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < count; r++)
                for (int e = 0; e < 2; e++) {
                    int row = trans ? l % 4 * 2 + e : l / 4, col = trans ? l / 4 : l % 4 * 2 + e;
                    uint16_t v = (uint16_t)(lane_in[l][r] >> 16 * e);
                    memcpy(shared_in + row_of[r * 8 + row] + col * 2, &v, 2);
                }
        CHECK(!memcmp(shared_in, shared_out, 1024), "%s: shared memory differs", code);
    }
    shuffle_rows();
    SAME(run_matrix(HEAD, "movmatrix.sync.aligned.m8n8.trans.b16 o0, i0;"), 0);
    int bad = 0;
    for (int row = 0; row < 8; row++)
        for (int col = 0; col < 8; col++)
            bad += (uint16_t)(lane_out[row * 4 + col / 2][0] >> 16 * (col & 1))
                   != (uint16_t)(lane_in[col * 4 + row / 2][0] >> 16 * (row & 1));
    CHECK(!bad, "movmatrix: %d elements differ", bad);
    /* faults: a row that is not aligned, one outside; rows of lanes that are not asked may be anything */
    shuffle_rows();
    row_of[9] = 8;
    SAME(run_matrix(HEAD, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {o0,o1}, [r3];"), 716);
    CHECK(strstr(found, "misaligned") == found && strstr(found, "thread (9,0,0)"), "found %s", found);
    SAME(run_matrix(HEAD, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {o0}, [r3];"), 0);
    row_of[9] = 1024;
    SAME(run_matrix(HEAD, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r3], {i0,i1};"), 700);
    CHECK(strstr(found, "out-of-bounds") == found && strstr(found, "thread (9,0,0)"), "found %s", found);
    SAME(run_matrix(HEAD, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r3], {i0};"), 0);
    /* counters: eight rows in one go fill a wavefront; rows 128 bytes apart do not */
    for (unsigned l = 0; l < 32; l++) row_of[l] = l * 16;
    cuMemFree_v2_(alloc(16));
    ptxsim_counters_get_(&before, sizeof before);
    SAME(run_matrix(HEAD, ""), 0);
    ptxsim_counters_get_(&after, sizeof after);
    uint64_t plain = after.shared_wavefronts - before.shared_wavefronts,
             loads = after.shared_load_requests - before.shared_load_requests;
    for (int apart = 0; apart < 2; apart++) {
        for (unsigned l = 0; l < 32; l++) row_of[l] = apart ? l % 8 * 128 : l * 16;
        ptxsim_counters_get_(&before, sizeof before);
        SAME(run_matrix(HEAD, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {o0,o1,o2,o3}, [r3];"), 0);
        ptxsim_counters_get_(&after, sizeof after);
        SAME(after.shared_wavefronts - before.shared_wavefronts - plain, apart ? 32 : 4);
        SAME(after.shared_load_requests - before.shared_load_requests - loads, 1);
    }
}

static void test_byte_matrices(void)
{
    static const char head[] = ".version 8.6\n.target sm_100a\n.address_size 64\n";
    char code[200];
    for (int form = 0; form < 6; form++) {
        static const char *const formats[] = { "b8", "b8x16.b6x16_p32", "b8x16.b4x16_p64" };
        int log = form % 2, format = form / 2, count = 1 << log, bad = 0;
        shuffle_rows();
        snprintf(code, sizeof code, "ldmatrix.sync.aligned.m16n16.x%d.trans.shared.%s %s, [r3];", count,
                 formats[format], lists[log + 1]);
        SAME(run_matrix(head, code), 0);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < 2 * count; r++)
                for (int e = 0; e < 4; e++) {
                    const uint8_t *p = shared_in + row_of[r / 2 * 16 + l % 4 * 4 + e];
                    int col = l / 4 + 8 * (r & 1), bit = col * (format == 1 ? 6 : 4);
                    unsigned want = format == 0 ? p[col]
                                                : ((p[bit / 8] | (unsigned)p[bit / 8 + 1] << 8) >> bit % 8)
                                                      & (format == 1 ? 63 : 15);
                    bad += (lane_out[l][r] >> 8 * e & 255) != want;
                }
        CHECK(!bad, "%s: %d elements differ", code, bad);
    }
    for (int form = 0; form < 6; form++) {
        int log = form % 3, six = form / 3, bad = 0;
        shuffle_rows();
        snprintf(code, sizeof code, "ldmatrix.sync.aligned.m8n16.x%d.shared.b8x16.%s %s, [r3];", 1 << log,
                 six ? "b6x16_p32" : "b4x16_p64", lists[log]);
        SAME(run_matrix(head, code), 0);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < 1 << log; r++)
                for (int e = 0; e < 4; e++) {
                    const uint8_t *p = shared_in + row_of[r * 8 + l / 4];
                    int bit = (l % 4 * 4 + e) * (six ? 6 : 4);
                    bad += (lane_out[l][r] >> 8 * e & 255)
                           != (((p[bit / 8] | (unsigned)p[bit / 8 + 1] << 8) >> bit % 8) & (six ? 63 : 15));
                }
        CHECK(!bad, "%s: %d elements differ", code, bad);
    }
    for (int log = 0; log < 3; log++) {
        shuffle_rows();
        snprintf(code, sizeof code, "stmatrix.sync.aligned.m16n8.x%d.trans.shared.b8 [r3], %s;", 1 << log,
                 sources[log]);
        SAME(run_matrix(head, code), 0);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < 1 << log; r++)
                for (int e = 0; e < 4; e++)
                    shared_in[row_of[r * 8 + l % 4 * 2 + (e & 1)] + (uint32_t)(l / 4 + 8 * (e >> 1))] =
                        (uint8_t)(lane_in[l][r] >> 8 * e);
        CHECK(!memcmp(shared_in, shared_out, 1024), "%s: shared memory differs", code);
    }
}

/* --- wmma ------------------------------------------------------------------------------------- */

static void braces(char *out, const char *prefix, int first, int count)
{
    int n = sprintf(out, "{");
    for (int k = 0; k < count; k++) n += sprintf(out + n, "%s%s%d", k ? "," : "", prefix, first + k);
    sprintf(out + n, "}");
}

static void test_wmma_form(int m, int n, int k, int t, int ct, int dt, int ra, int rb, int acol, int bcol,
                           int ccol, bool shared, const char *before, const char *suffix, int op)
{
    static char ptx[9000];
    static uint8_t a[4096], b[4096], c[8192], d[8192];
    char fa[100], fb[100], fc[200], fd[200], types4[60];
    int bits = types[t].bits, pad = 128 / bits, lda = (acol ? m : k) + pad, ldb = (bcol ? k : n) + pad,
        ldc = (ccol ? m : n) + 16, bad = 0;
    int rc = m * n * types[ct].bits / 32 / (ct == F64 ? 64 : 32),
        rd = m * n * types[dt].bits / 32 / (dt == F64 ? 64 : 32);
    const char *p = t == F64 ? "g" : "r";
    if (!on_chip(t, dt, t == F16 ? 75 : 80)) return;
    if (bits < 8) lda = k + pad, ldb = k + pad;
    describe_form(WMMA, t, t, ct, dt, k, false, 0);
    braces(fa, p, 0, ra);
    braces(fb, p, 10, rb);
    braces(fc, p, 20, rc);
    braces(fd, p, 40, rd);
    if (t == F16)
        snprintf(types4, sizeof types4, "%s.%s", types[dt].name, types[ct].name);
    else
        snprintf(types4, sizeof types4, "%s.%s.%s.%s", types[dt].name, types[t].name, types[t].name,
                 types[ct].name);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    memset(c, 0, sizeof c);
    for (int row = 0; row < m; row++)
        for (int z = 0; z < k; z++) {
            uint64_t v = number_of(0, t);
            put_bits((uint32_t *)(void *)a, (acol ? z * lda + row : row * lda + z) * bits, bits, v);
            ma[row][z] = value_of(t, v);
        }
    for (int col = 0; col < n; col++)
        for (int z = 0; z < k; z++) {
            uint64_t v = number_of(0, t);
            put_bits((uint32_t *)(void *)b, (bcol ? col * ldb + z : z * ldb + col) * bits, bits, v);
            mb[z][col] = value_of(t, v);
        }
    for (int row = 0; row < m; row++)
        for (int col = 0; col < n; col++) {
            uint64_t v = number_of(0, ct);
            put_bits((uint32_t *)(void *)c, (ccol ? col * ldc + row : row * ldc + col) * types[ct].bits,
                     types[ct].bits, v);
            mc[row][col] = value_of(ct, v);
        }
    static const char *const names[] = { "row", "col" };
    int at = sprintf(
        ptx, "%s.shared .align 128 .b8 sa[4096]; .shared .align 128 .b8 sb[4096];\n"
             ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n"
             ".reg .b32 r<100>; .reg .b64 d<16>; .reg .f64 g<100>;\n"
             "ld.param.u64 d0, [pa]; ld.param.u64 d1, [pb]; ld.param.u64 d2, [pc]; ld.param.u64 d3, [pd];\n"
             "mov.u32 r90, %%tid.x; mul.wide.u32 d4, r90, 128; cvt.u32.u64 r91, d4; mov.u32 r92, sa; mov.u32 "
             "r93, sb;\n"
             "add.u64 d5, d0, d4; add.u64 d6, d1, d4; add.u32 r94, r92, r91; add.u32 r95, r93, r91;\n",
             head_of(false));
    for (int x = 0; x < 128 && shared; x += 4)
        at += sprintf(ptx + at,
                      "ld.global.b32 r96, [d5+%d]; st.shared.b32 [r94+%d], r96; ld.global.b32 r96, [d6+%d]; "
                      "st.shared.b32 [r95+%d], r96;\n",
                      x, x, x, x);
    at += sprintf(ptx + at, "bar.sync 0; mov.u32 r97, %d;\n", lda);
    at += sprintf(ptx + at, "wmma.load.a.sync.aligned.%s.m%dn%dk%d%s.%s %s, [%s], r97;\n", names[acol], m, n,
                  k, shared ? ".shared" : ".global", types[t].name, fa, shared ? "r92" : "d0");
    at += sprintf(ptx + at, "wmma.load.b.sync.aligned.%s.m%dn%dk%d%s.%s %s, [%s], %d;\n", names[bcol], m, n,
                  k, shared ? ".shared" : "", types[t].name, fb, shared ? "r93" : "d1", ldb);
    at += sprintf(ptx + at, "wmma.load.c.sync.aligned.%s.m%dn%dk%d.global.%s %s, [d2], %d;\n", names[ccol], m,
                  n, k, types[ct].name, fc, ldc);
    at += sprintf(ptx + at, "wmma.mma%s.sync.aligned.%s.%s.m%dn%dk%d.%s%s %s, %s, %s, %s;\n", before,
                  names[acol], names[bcol], m, n, k, types4, suffix, fd, fa, fb, fc);
    sprintf(ptx + at, "wmma.store.d.sync.aligned.%s.m%dn%dk%d.global.%s [d3], %s, %d;\nret; }\n", names[ccol],
            m, n, k, types[dt].name, fd, ldc);
    handle module = load(ptx), f = function(module, "k");
    if (!CHECK(f != NULL, "wmma %s m%dn%dk%d does not load", types[t].name, m, n, k)) return;
    dptr da = alloc(4096), db = alloc(4096), dc = alloc(8192), dd = alloc(8192);
    void *params[] = { &da, &db, &dc, &dd };
    cuMemcpyHtoD_v2_(da, a, 4096);
    cuMemcpyHtoD_v2_(db, b, 4096);
    cuMemcpyHtoD_v2_(dc, c, 8192);
    cuMemsetD8_v2_(dd, 0, 8192);
    SAME(run(f, 1, 32, 0, params), 0);
    CHECK(report_count() == 0, "%s", findings());
    cuMemcpyDtoH_v2_(d, dd, 8192);
    for (int row = 0; row < m; row++)
        for (int col = 0; col < n; col++) {
            long double want, size;
            evaluate(m, n, k, row, col, op, &want, &size);
            uint64_t have =
                get_bits((uint32_t *)(void *)d, (ccol ? col * ldc + row : row * ldc + col) * types[dt].bits,
                         types[dt].bits);
            bad += !right(dt, have, want, size, k, true, false);
        }
    CHECK(!bad, "wmma %s m%dn%dk%d %s %s %s: %d elements differ", types4, m, n, k, names[acol], names[bcol],
          names[ccol], bad);
    cuMemFree_v2_(da);
    cuMemFree_v2_(db);
    cuMemFree_v2_(dc);
    cuMemFree_v2_(dd);
    cuModuleUnload_(module);
}

static void test_wmma(void)
{
    static const int shapes[3][3] = { { 16, 16, 16 }, { 8, 32, 16 }, { 32, 8, 16 } };
    static const int bf16[3][2] = { { 4, 4 }, { 2, 8 }, { 8, 2 } },
                     bytes[3][2] = { { 2, 2 }, { 1, 4 }, { 4, 1 } };
    for (int form = 0; form < 16; form++) {
        int acol = form & 1, bcol = form >> 1 & 1, ccol = form >> 2 & 1, shared = form >> 3;
        for (int s = 0; s < 3; s++) {
            int m = shapes[s][0], n = shapes[s][1];
            for (int acc = 0; acc < 4; acc++)
                test_wmma_form(m, n, 16, F16, acc & 1 ? F32 : F16, acc & 2 ? F32 : F16, 8, 8, acol, bcol,
                               ccol, shared, "", "", 0);
            test_wmma_form(m, n, 16, BF16, F32, F32, bf16[s][0], bf16[s][1], acol, bcol, ccol, shared, "", "",
                           0);
            test_wmma_form(m, n, 16, S8, S32, S32, bytes[s][0], bytes[s][1], acol, bcol, ccol, shared, "", "",
                           0);
            test_wmma_form(m, n, 16, U8, S32, S32, bytes[s][0], bytes[s][1], acol, bcol, ccol, shared, "",
                           ".satfinite", 0);
        }
        test_wmma_form(16, 16, 8, TF32, F32, F32, 4, 4, acol, bcol, ccol, shared, "", "", 0);
        test_wmma_form(8, 8, 4, F64, F64, F64, 1, 1, acol, bcol, ccol, shared, "", "", 0);
        if (acol || !bcol) continue;
        test_wmma_form(8, 8, 32, S4, S32, S32, 1, 1, 0, 1, ccol, shared, "", "", 0);
        test_wmma_form(8, 8, 32, U4, S32, S32, 1, 1, 0, 1, ccol, shared, "", "", 0);
        test_wmma_form(8, 8, 128, B1, S32, S32, 1, 1, 0, 1, ccol, shared, ".xor.popc", "", 'x');
        test_wmma_form(8, 8, 128, B1, S32, S32, 1, 1, 0, 1, ccol, shared, ".and.popc", "", '&');
    }
}

/* --- wgmma ------------------------------------------------------------------------------------ */

typedef struct operand {
    int swizzle, leading, stride;
    bool trans;
} operand; /* swizzle: 16 (none), 32, 64, 128 bytes */

/* Where the ISA's canonical layouts put element z of line r (a row of A, a column of B), in bits. */
static long where(const operand *o, int bits, int r, int z)
{
    int s = o->swizzle, bit;
    long at;
    if (o->trans) { /* lines follow along: s bytes of them, then the next k */
        int lines = s * 8 / bits;
        if (s == 16)
            at = r / 8 * o->stride + z % 8 * 16 + z / 8 * o->leading;
        else
            at = (long)r / lines * o->leading + z / 8 * o->stride + z % 8 * s;
        bit = r % lines * bits;
    } else {
        int column = z * bits / 8;
        at = r / 8 * o->stride + r % 8 * s + column % s / 16 * 16 + column / s * (long)o->leading;
        bit = z * bits % 128;
    }
    at += bit / 8;
    at ^= (at >> 7 & (s / 16 - 1)) << 4; /* the tile begins at a multiple of 1024 */
    return at * 8 + bit % 8;
}

static uint64_t descriptor_of(const operand *o, int offset)
{
    uint64_t mode = o->swizzle == 16 ? 0 : o->swizzle == 128 ? 1 : o->swizzle == 64 ? 2 : 3;
    return (uint64_t)(offset >> 4) | (uint64_t)(o->leading >> 4) << 16 | (uint64_t)(o->stride >> 4) << 32
           | mode << 62;
}

enum { TILE_B = 8192, IMAGE = 8192 + 36864 };

static void test_wgmma_form(int n, int at, int bt, int dt, operand oa, operand ob, bool registers, int sa,
                            int sb, bool accumulate, bool satfinite, bool sparse)
{
    static char ptx[60000], list[2000], a_list[40];
    static uint32_t image[IMAGE / 4], out[128 * 128], in[128 * 132];
    int bits = types[at].bits, k = 256 / bits * (sparse ? 2 : 1), ka = sparse ? k / 2 : k,
        regs = n * types[dt].bits / 64, bad = 0, per = 32 / bits, unit = 1;
    static double packed[64][256];
    if (!on_chip(at, dt, 90)) return;
    describe_form(WGMMA, at, bt, dt, dt, k, sparse, 0);
    memset(image, 0, sizeof image);
    memset(in, 0, sizeof in);
    for (int row = 0; row < 64; row++)
        for (int z = 0; z < ka; z++) {
            uint64_t v = number_of(0, at);
            packed[row][z] = value_of(at, v) * sa;
            if (!registers) {
                put_bits(image, (int)where(&oa, bits, row, z), bits, v);
                continue;
            }
            int g = row % 8, t = z / per % 4, r = row / 8 % 2 + z / per / 4 * 2;
            put_bits(&in[(row / 16 * 32 + g * 4 + t) * 132 + r], z % per * bits, bits, v);
        }
    for (int col = 0; col < n; col++)
        for (int z = 0; z < k; z++) {
            uint64_t v = number_of(0, bt);
            put_bits(image, TILE_B * 8 + (int)where(&ob, bits, col, z), bits, v);
            mb[z][col] = value_of(bt, v) * sb;
        }
    memset(ma, 0, sizeof ma);
    for (int l = 0; l < 128; l++) in[l * 132 + 131] = random32();
    for (int row = 0; row < 64; row++)
        for (int z = 0; z < ka; z++) {
            if (!sparse) {
                ma[row][z] = packed[row][z];
                continue;
            }
            /* the same pattern everywhere: elements 1 and 3 of four, 0b1101 */
            uint32_t *lanes = &in[(row / 16 * 32 + row % 8 * 4) * 132 + 131];
            if (bits == 32) {
                ma[row][z * 2 + 1] = packed[row][z];
                for (int t = 0; t < 4; t++) lanes[t * 132] = 0xeeeeeeee;
            } else {
                ma[row][z / 2 * 4 + (z & 1 ? 3 : 1)] = packed[row][z];
                for (int t = 0; t < 4; t++) lanes[t * 132] = 0xdddddddd;
            }
        }
    (void)unit;
    for (int w = 0; w < 4; w++)
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < n / 2; i++) {
                uint64_t v = number_of(0, dt);
                put_bits(&in[(w * 32 + l) * 132 + 4], i * types[dt].bits % 4096, types[dt].bits, v);
                mc[w * 16 + l / 4 + 8 * (i >> 1 & 1)][i / 4 * 8 + l % 4 * 2 + (i & 1)] =
                    accumulate ? value_of(dt, v) : 0;
            }
    if (regs > 127)
        for (int l = 0; l < 128; l++) in[l * 132 + 131] = in[l * 132 + 131];
    braces(list, "c", 0, regs);
    braces(a_list, "r", 0, 4);
    int p = sprintf(
        ptx,
        ".version 8.2\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 sm[%d];\n"
        ".visible .entry k(.param .u64 pi, .param .u64 pm, .param .u64 po, .param .u64 da, .param .u64 db) "
        "{\n"
        ".reg .b32 r<16>, c<128>; .reg .b64 d<16>; .reg .pred p<4>;\n"
        "mov.u32 r8, %%tid.x; mul.wide.u32 d0, r8, 4; ld.param.u64 d1, [pm]; add.u64 d1, d1, d0; mov.u32 r9, "
        "sm; cvt.u32.u64 r10, d0; add.u32 r10, r10, r9;\n"
        "mov.u32 r11, 0;\nL: ld.global.b32 r12, [d1]; st.shared.b32 [r10], r12; add.u64 d1, d1, 512; add.u32 "
        "r10, r10, 512; add.u32 r11, r11, 512;"
        " setp.lt.u32 p1, r11, %d; @p1 bra L;\nfence.proxy.async; bar.sync 0;\n"
        "mul.wide.u32 d2, r8, 528; ld.param.u64 d3, [pi]; add.u64 d3, d3, d2; ld.global.b32 r13, [d3+524];\n",
        IMAGE, IMAGE);
    for (int i = 0; i < 4; i++) p += sprintf(ptx + p, "ld.global.b32 r%d, [d3+%d];\n", i, i * 4);
    for (int i = 0; i < regs; i++)
        p += sprintf(ptx + p, "ld.global.b32 c%d, [d3+%d];\n", i, 16 + (i < 127 ? i : 126) * 4);
    p += sprintf(ptx + p,
                 "shr.u32 r9, r9, 4; cvt.u64.u32 d4, r9; ld.param.u64 d5, [da]; ld.param.u64 d6, [db]; "
                 "add.u64 d5, d5, d4; add.u64 d6, d6, d4;\n"
                 "setp.%s.u32 p0, r9, r9; wgmma.fence.sync.aligned;\n",
                 accumulate ? "eq" : "ne");
    p += sprintf(ptx + p, "wgmma.mma_async%s.sync.aligned.m64n%dk%d%s.%s.%s.%s%s %s, %s, d6, %sp0",
                 sparse ? ".sp" : "", n, k, satfinite ? ".satfinite" : "", types[dt].name, types[at].name,
                 types[bt].name, at == B1 ? ".and.popc" : "", list, registers ? a_list : "d5",
                 sparse ? "r13, 0, " : "");
    if (dt != S32) p += sprintf(ptx + p, ", %d, %d", sa, sb);
    if (bits == 16 && !registers) p += sprintf(ptx + p, ", %d", oa.trans);
    if (bits == 16) p += sprintf(ptx + p, ", %d", ob.trans);
    p += sprintf(ptx + p, ";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned "
                          "0;\nmul.wide.u32 d2, r8, 512; ld.param.u64 d3, [po]; add.u64 d3, d3, d2;\n");
    for (int i = 0; i < regs; i++) p += sprintf(ptx + p, "st.global.b32 [d3+%d], c%d;\n", i * 4, i);
    sprintf(ptx + p, "ret; }\n");
    handle m = load(ptx), f = function(m, "k");
    if (!CHECK(f != NULL, "wgmma n%d %s does not load", n, types[at].name)) return;
    dptr di = alloc(sizeof in), dm = alloc(sizeof image), d = alloc(sizeof out);
    uint64_t desc_a = descriptor_of(&oa, 0), desc_b = descriptor_of(&ob, TILE_B);
    void *params[] = { &di, &dm, &d, &desc_a, &desc_b };
    cuMemcpyHtoD_v2_(di, in, sizeof in);
    cuMemcpyHtoD_v2_(dm, image, sizeof image);
    cuMemsetD8_v2_(d, 0, sizeof out);
    SAME(run(f, 1, 128, 0, params), 0);
    if (!CHECK(report_count() == 0, "%s", findings())) report_clear();
    cuMemcpyDtoH_v2_(out, d, (size_t)128 * 512);
    for (int l = 0; l < 128; l++)
        for (int i = 0; i < n / 2; i++) {
            long double want, size;
            int row = l / 32 * 16 + l % 32 / 4 + 8 * (i >> 1 & 1), col = i / 4 * 8 + l % 4 * 2 + (i & 1);
            evaluate(64, n, k, row, col, at == B1 ? '&' : 0, &want, &size);
            bad += !right(dt, get_bits(&out[l * 128], i * types[dt].bits, types[dt].bits), want, size, k,
                          true, satfinite);
        }
    CHECK(!bad, "wgmma m64n%dk%d %s.%s.%s, A %s %d%s, B %d%s: %d elements differ", n, k, types[dt].name,
          types[at].name, types[bt].name, registers ? "registers" : "swizzle", oa.swizzle,
          oa.trans ? " transposed" : "", ob.swizzle, ob.trans ? " transposed" : "", bad);
    cuMemFree_v2_(di);
    cuMemFree_v2_(dm);
    cuMemFree_v2_(d);
    cuModuleUnload_(m);
}

/* Strides of a tile of so many lines, k 32 bytes (64 where B stands beside a sparse A). */
static operand canonical(int swizzle, bool trans, int lines, int bits, int k)
{
    operand o = { swizzle, 0, 0, trans };
    if (!trans && swizzle == 16) {
        o.leading = 128;
        o.stride = 128 * (k * bits / 128);
    } else if (!trans) {
        o.stride = swizzle * 8;
        o.leading = lines * swizzle;
    } else if (swizzle == 16) {
        o.stride = 128;
        o.leading = lines / 8 * 128;
    } else {
        o.stride = swizzle * 8;
        o.leading = swizzle * k;
    }
    return o;
}

static void test_wgmma(void)
{
    static const int swizzles[] = { 16, 32, 64, 128 }, ns[] = { 8, 24, 64, 192 };
    static const int forms[][3] = { { F16, F16, F32 },   { F16, F16, F16 },   { BF16, BF16, F32 },
                                    { TF32, TF32, F32 }, { E4M3, E5M2, F32 }, { E5M2, E4M3, F16 },
                                    { S8, S8, S32 },     { U8, S8, S32 },     { S8, U8, S32 },
                                    { B1, B1, S32 } };
    for (unsigned n = 0; n < sizeof forms / sizeof *forms; n++)
        for (int s = 0; s < 16; s++) {
            const int *t = forms[n];
            int bits = types[t[0]].bits, k = 256 / bits, size = ns[(s + (int)n) % 4],
                transposes = bits == 16 ? 4 : 1;
            bool integer = t[2] == S32;
            for (int trans = 0; trans < transposes; trans++) {
                bool ta = trans & 1, tb = trans >> 1;
                int wide = swizzles[s / 4] * 8 / bits; /* transposed tiles are whole rows of the swizzle */
                if (tb && size % wide) size = wide;
                operand oa = canonical(swizzles[s % 4], ta, 64, bits, k),
                        ob = canonical(swizzles[s / 4], tb, size, bits, k);
                test_wgmma_form(size, t[0], t[1], t[2], oa, ob, false, s & 1 && !integer ? -1 : 1,
                                s & 2 && !integer ? -1 : 1, s % 3 != 0, integer && t[0] != B1 && s % 5 == 0,
                                false);
                if (!ta)
                    test_wgmma_form(size, t[0], t[1], t[2], oa, ob, true, 1, 1, s % 3 != 0, false, false);
            }
        }
    for (unsigned n = 0; n < 9; n++) {
        const int *t = forms[n];
        int bits = types[t[0]].bits, k = 512 / bits;
        for (int s = 0; s < 4; s++) {
            operand oa = canonical(swizzles[s], false, 64, bits, k / 2),
                    ob = canonical(swizzles[s], false, 64, bits, k);
            test_wgmma_form(64, t[0], t[1], t[2], oa, ob, s & 1, 1, 1, true, false, true);
        }
    }
}

/* --- faults and their twins ------------------------------------------------------------------- */

static void judge(const char *name, const char *head, const char *body, unsigned block, const char *want)
{
    static char ptx[8000];
    static uint32_t out[256];
    snprintf(ptx, sizeof ptx,
             "%s.shared .align 1024 .b8 sm[32768];\n.visible .entry k(.param .u64 out) {\n"
             ".reg .pred p<4>; .reg .b32 r<64>; .reg .b64 d<16>; .reg .f32 f<64>;\n"
             "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; setp.lt.u32 p0, r0, 16; setp.ge.u32 p1, r0, 0;\n"
             "mov.u32 r1, 0; mov.u32 r2, 0; mov.u32 r3, 0; mov.u32 r4, 0; mov.u32 r5, 0; mov.u32 r6, 0;\n"
             "mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0;\n"
             "mov.u32 r10, sm; shl.b32 r11, r0, 7; add.u32 r11, r11, r10; mov.u32 r12, 0;\n"
             "L: st.shared.v4.b32 [r11], {r1,r1,r1,r1}; add.u32 r11, r11, 16; add.u32 r12, r12, 1; "
             "setp.lt.u32 p2, r12, 8; @p2 bra L; fence.proxy.async; bar.sync 0;\n"
             "shr.u32 r13, r10, 4; cvt.u64.u32 d1, r13; add.u64 d1, d1, 0x0000001000080000; mov.u64 d2, d1;\n"
             "%s\nret; }",
             head, body);
    report_clear();
    found[0] = 0;
    int code = run_out(ptx, 1, block, 0, out, 256);
    if (code < 700) findings();
    const char *at = strstr(found, want); /* the kind begins a line */
    if (*want)
        CHECK(at && (at == found || at[-1] == '\n') && at[strlen(want)] == ':',
              "%s: expected %s, found %d: %s", name, want, code, found);
    else
        CHECK(code == 0 && !*found, "%s: nothing is wrong, found %d: %s", name, code, found);
    report_clear();
}

static void test_faults(void)
{
#define MMA "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r1,r2}, {r3}, {f0,f1,f2,f3};"
#define HOPPER ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define ADD "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, d1, d2, p1, 1, 1, 0, 0;\n"
#define ADD_R                                                                                                \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, {r1,r2,r3,r4}, d2, p1, 1, 1, 0;\n"
#define FENCE "wgmma.fence.sync.aligned;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define USE "st.global.f32 [d0], f0;\n"
    judge("mma by all lanes", HEAD, MMA, 32, "");
    judge("mma behind a branch", HEAD, "@!p0 bra E; " MMA " E:", 32, "absent-lane");
    judge("mma under a guard that is on", HEAD, "@p1 " MMA, 32, "");
    judge("mma under a guard", HEAD, "@p0 " MMA, 32, "absent-lane");
    judge("mma in half a warp", HEAD, MMA, 16, "absent-lane");
    judge("mma after half the warp has left", HEAD, "@p0 exit; " MMA, 32, "absent-lane");
    judge("mma with a register that nothing wrote", HEAD,
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r1,r40}, {r3}, {f0,f1,f2,f3};",
          32, "uninitialised-register");
    judge("ldmatrix of bytes that nothing wrote", HEAD,
          "mov.u32 r10, sm; add.u32 r10, r10, 8192; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r1}, [r10];",
          32, "uninitialised-read");
    judge("ldmatrix", HEAD, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r1}, [r10];", 32, "");
    judge("stmatrix writes", HEAD,
          "and.b32 r14, r0, 7; mad.lo.u32 r10, r14, 16, r10; add.u32 r10, r10, 8192; "
          "stmatrix.sync.aligned.m8n8.x1.shared.b16 [r10], {r1}; "
          "bar.warp.sync -1; "
          "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r1}, [r10];",
          32, "");
    judge("wmma.load outside", HEAD,
          "wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {r1,r2,r3,r4}, [d0], 64;", 32, "out-of-bounds");
    judge("wmma.load at an odd place", HEAD,
          "add.u64 d0, d0, 8; wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {r1,r2,r3,r4}, [d0], 16;",
          32, "misaligned");
    judge("wmma.store", HEAD, "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [d0], {r1,r2,r3,r4}, 16;",
          32, "");
    judge("wgmma", HOPPER, FENCE ADD COMMIT WAIT(0) USE, 128, "");
    judge("wgmma, read before the wait", HOPPER, FENCE ADD COMMIT USE WAIT(0), 128, "async-read");
    judge("wgmma, read without a commit", HOPPER, FENCE ADD WAIT(0) USE, 128, "async-read");
    judge("wgmma, waiting for all but one", HOPPER, FENCE ADD COMMIT WAIT(1) USE, 128, "async-read");
    judge("wgmma, two groups, the first is done", HOPPER,
          FENCE ADD_R COMMIT
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f4,f5,f6,f7}, d1, d2, !p1, 1, 1, 0, 0;\n" COMMIT
              WAIT(1) USE WAIT(0),
          128, "");
    judge("wgmma, two groups, the second is not", HOPPER,
          FENCE ADD_R COMMIT
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f4,f5,f6,f7}, d1, d2, !p1, 1, 1, 0, 0;\n" COMMIT
              WAIT(1) "st.global.f32 [d0], f4;\n" WAIT(0),
          128, "async-read");
    judge("wgmma, A overwritten before the wait", HOPPER, FENCE ADD_R COMMIT "mov.u32 r2, 1;\n" WAIT(0), 128,
          "async-read");
    judge("wgmma, A overwritten after the wait", HOPPER, FENCE ADD_R COMMIT WAIT(0) "mov.u32 r2, 1;\n", 128,
          "");
    judge("wgmma without a fence", HOPPER, ADD COMMIT WAIT(0) USE, 128, "missing-fence");
    judge("wgmma after another write", HOPPER, FENCE "mov.f32 f1, 0f3f800000;\n" ADD COMMIT WAIT(0) USE, 128,
          "missing-fence");
    judge("wgmma twice in the same registers", HOPPER,
          FENCE ADD ADD COMMIT WAIT(0) USE FENCE ADD COMMIT WAIT(0) USE, 128, "");
    judge("wgmma twice, touched between", HOPPER, FENCE ADD COMMIT WAIT(0) USE ADD COMMIT WAIT(0), 128,
          "missing-fence");
    judge("wgmma in two warps", HOPPER, FENCE ADD COMMIT WAIT(0) USE, 64, "warpgroup");
    judge("wgmma in six warps", HOPPER,
          "setp.lt.u32 p2, r0, 128; @p2 bra E; " FENCE ADD COMMIT WAIT(0) " E:", 128 + 64, "warpgroup");
#define REFILL "st.shared.u32 [r10], r12;\n"   /* all threads the same value */
    judge("wgmma, its matrix written behind the fence", HOPPER,
          REFILL "bar.sync 0;\n" FENCE ADD COMMIT WAIT(0), 128, "missing-proxy-fence");
    judge("wgmma, a fence of both proxies", HOPPER,
          REFILL "fence.proxy.async.shared::cta; bar.sync 0;\n" FENCE ADD COMMIT WAIT(0), 128, "");
    judge("wgmma, a fence of both proxies behind the barrier", HOPPER, REFILL
          "bar.sync 0; fence.proxy.async;\n" FENCE ADD COMMIT WAIT(0), 128, "");
    judge("wgmma, B overwritten before the wait", HOPPER,
          FENCE ADD COMMIT "bar.sync 0;\n" REFILL WAIT(0), 128, "async-write");
    judge("wgmma, B overwritten after the wait", HOPPER,
          FENCE ADD COMMIT WAIT(0) "bar.sync 0;\n" REFILL, 128, "");
    judge("wgmma, beside B overwritten before the wait", HOPPER, FENCE ADD COMMIT
          "bar.sync 0; st.shared.u32 [r10+8192], r12;\n" WAIT(0), 128, "");
    judge("wgmma, two groups, B of the second overwritten", HOPPER,
          FENCE ADD COMMIT "add.u64 d2, d1, 512;\n" ADD_R COMMIT WAIT(1)
          "bar.sync 0; st.shared.u32 [r10+8192], r12;\n" WAIT(0), 128, "async-write");
    judge("wgmma, two groups, B of the first overwritten", HOPPER,
          FENCE ADD COMMIT "add.u64 d2, d1, 512;\n" ADD_R COMMIT WAIT(1)
          "bar.sync 0; st.shared.u32 [r10+192], r12;\n" WAIT(0), 128, "");
    judge("wgmma, B outside", HOPPER, "add.u64 d2, d2, 0x3f8;" FENCE ADD COMMIT WAIT(0) USE, 128,
          "uninitialised-read");
    judge("wgmma, B far outside", HOPPER, "add.u64 d2, d2, 0x2000;" FENCE ADD COMMIT WAIT(0) USE, 128,
          "out-of-bounds");
}

/* --- refusals --------------------------------------------------------------------------------- */

static void refuse(const char *head, const char *text, const char *message)
{
    static char ptx[4000];
    snprintf(ptx, sizeof ptx,
             "%s.visible .entry k() {\n.reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<64>; .reg .b64 d<16>; "
             ".reg .f32 f<64>; .reg .f64 g<16>;\n%s\nret; }",
             head, text);
    int code = refused(ptx);
    CHECK(code == 218 && strstr(log_text, "line 6;") && strstr(log_text, message),
          "%s: expected '%s', got %d: %s", text, message, code, log_text);
}

static void test_refusals(void)
{
    refuse(HEAD,
           "mma.sync.aligned.m16n8k12.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "m16n8k12");
    refuse(HEAD,
           "mma.sync.aligned.m16n8kx.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "Unknown modifier '.m16n8kx'");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "Unexpected instruction types");
    refuse(HEAD, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {f0,f1,f2,f3}, {r0,r1}, {r2}, {r3,r4};",
           "Unexpected instruction types");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "layouts");
    refuse(HEAD, "mma.sync.aligned.m16n8k8.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "required");
    refuse(HEAD, "mma.sync.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "'.aligned' required");
    refuse(HEAD, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2}, {r0,r1}, {r2}, {f0,f1,f2,f3};",
           "Vector of size 4");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {f4,r1}, {r2}, {f0,f1,f2,f3};",
           "Arguments mismatch");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, r2, {f0,f1,f2,f3};",
           "vector of 1");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {5}, {f0,f1,f2,f3};",
           "Arguments mismatch");
    refuse(HEAD,
           "mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2}, "
           "{f0,f1,f2,f3};",
           "Illegal modifier");
    refuse(HEAD, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1}, {r2};",
           "3 operands, expected 4");
    refuse(HEAD, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {r0,r1}, {r2}, {r3}, {r0,r1};",
           ".xor, .and");
    refuse(HEAD,
           "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {r0,r1,r2,r3}, "
           "{r4,r5,r6,r7}, {f0,f1,f2,f3}, r8, 2;",
           "[0..1]");
    refuse(HEAD,
           "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {r0,r1,r2,r3}, {r0,r1,r2,r3}, {r4,r5,r6,r7}, "
           "{r0,r1,r2,r3}, r8, 1;",
           "[0..0]");
    refuse(".version 7.8\n.target sm_80\n.address_size 64\n",
           "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {g0,g1,g2,g3}, {g4,g5,g6,g7}, {g8,g9}, "
           "{g0,g1,g2,g3};",
           "sm_90");
    refuse(HEAD, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r0,r1,r2}, [r9];", "Vector of size 4");
    refuse(HEAD, "ldmatrix.sync.aligned.m8n8.shared.b16 {r0}, [r9];", ".x1, .x2, .x4");
    refuse(HEAD, "ldmatrix.sync.aligned.m8n16.x1.shared.b16 {r0}, [r9];", "do not go together");
    refuse(HEAD, "ldmatrix.sync.aligned.m8n8.x1.global.b16 {r0}, [d9];", "'.global'");
    refuse(HEAD, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {h0}, [r9];", "Arguments mismatch");
    refuse(HEAD, "movmatrix.sync.aligned.m8n8.b16 r0, r1;", "'.trans' required");
    refuse(HEAD, "wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];",
           "Unexpected instruction types");
    refuse(HEAD, "wmma.load.a.sync.aligned.row.m16n16k32.global.f16 {r0,r1,r2,r3,r4,r5,r6,r7}, [d0];",
           "Shape");
    refuse(HEAD, "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {r0}, [d0];", "layout");
    refuse(HEAD,
           "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32.satfinite {f0,f1,f2,f3,f4,f5,f6,f7}, "
           "{r0,r1,r2,r3,r4,r5,r6,r7}, {r0,r1,r2,r3,r4,r5,r6,r7}, {f0,f1,f2,f3,f4,f5,f6,f7};",
           "do not go together");
    refuse(".version 8.7\n.target sm_90\n.address_size 64\n",
           "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f16.e4m3.e4m3.f16 {r0,r1}, {r0,r1,r2,r3}, "
           "{r4,r5,r6,r7}, {r0,r1}, r8, 0;",
           "sm_120a");
    refuse(HEAD, "wgmma.fence.sync.aligned;", "sm_90a");
    refuse(HOPPER,
           "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {f0,f1,f2,f3,f4,f5}, d0, d1, p0, 1, 1, 0, 0;",
           "m64n12k16");
    refuse(HOPPER,
           "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 "
           "{r0,r1,r2,r3,r4,r5,r6,r7,r8,r9,r10,r11,r12,r13,r14,r15,r16,r17,r18,r19}, d0, d1, p0;",
           "m64n40k32");
    refuse(HOPPER, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, d0, d1, p0, 2, 1, 0, 0;",
           "-1 or 1");
    refuse(HOPPER, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0,f1,f2,f3}, d0, d1, p0, 1, 1, 0;",
           "operands");
    refuse(HOPPER, "wgmma.wait_group.sync.aligned r0;", "constant");
}

/* --- compiled kernels: tests/data/nvcc/matrix_gemm.cu ----------------------------------------- */

static void test_gemm(const char *path, const char *name, unsigned tile, unsigned block)
{
    enum { M = 128, N = 64, K = 192 };
    static uint16_t a[M * K], b[N * K];
    static float c[M * N];
    char *text = read_file(path);
    int n = N, k = K, bad = 0;
    ptxsim_counters counters;
    if (!CHECK(text != NULL, "%s cannot be opened", path)) return;
    for (int x = 0; x < M * K; x++) a[x] = (uint16_t)any_number(F16);
    for (int x = 0; x < N * K; x++) b[x] = (uint16_t)any_number(F16);
    handle m = load(text), f = function(m, name);
    free(text);
    if (!CHECK(f != NULL, "%s: no %s", path, name)) return;
    dptr da = alloc(sizeof a), db = alloc(sizeof b), dc = alloc(sizeof c);
    void *params[] = { &dc, &da, &db, &n, &k };
    cuMemcpyHtoD_v2_(da, a, sizeof a);
    cuMemcpyHtoD_v2_(db, b, sizeof b);
    counters_reset();
    SAME(cuLaunchKernel_(f, N / tile, M / tile, 1, block, 1, 1, 0, NULL, params, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK(report_count() == 0, "%s: %s", name, findings());
    cuMemcpyDtoH_v2_(c, dc, sizeof c);
    ptxsim_counters_get_(&counters, sizeof counters);
    SAME(counters.tensor_operations, 2ll * M * N * K);
    for (int row = 0; row < M; row++)
        for (int col = 0; col < N; col++) {
            long double want = 0, size = 0;
            for (int z = 0; z < K; z++) {
                long double p = (long double)value_of(F16, a[row * K + z]) * value_of(F16, b[col * K + z]);
                want += p;
                size += fabsl(p);
            }
            bad += !(fabsl(c[row * N + col] - want) <= K * ldexpl(size, -23));
        }
    CHECK(!bad, "%s: %d elements differ", name, bad);
    cuMemFree_v2_(da);
    cuMemFree_v2_(db);
    cuMemFree_v2_(dc);
    cuModuleUnload_(m);
}

static void test_compiled(void)
{
    static const char old[] = "tests/data/nvcc/matrix_gemm.ptx",
                      hopper[] = "tests/data/nvcc/matrix_gemm_90a.ptx";
    test_gemm(old, "gemm_wmma", 16, 32);
    test_gemm(old, "gemm_mma", 64, 128);
    test_gemm(hopper, "gemm_wmma", 16, 32);
    test_gemm(hopper, "gemm_mma", 64, 128);
    test_gemm(hopper, "gemm_wgmma", 64, 128);
}

/* --- every form loads ------------------------------------------------------------------------- */

static void test_forms(const char *device, int least)
{
    static const char *const opcodes[] = {"ldmatrix.", "stmatrix.", "movmatrix.", "mma.", "wmma.", "wgmma."};
    char *list = read_file("tests/data/forms.tsv"), *save = NULL;
    int n = 0;
    if (!CHECK(list != NULL, "tests/data/forms.tsv cannot be opened")) return;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        static char ptx[8192];
        char *field[6] = { line }, target[16], *text; /* stem, family, version, targets, text, module */
        bool matrix = false;
        for (int k = 1; k < 6 && field[k - 1] && (field[k] = strchr(field[k - 1], '\t')); k++)
            *field[k]++ = 0;
        if (!(text = field[4])) continue;
        for (size_t k = 0; k < 6; k++) matrix |= !strncmp(text, opcodes[k], strlen(opcodes[k]));
        if (!matrix) continue;
        line = field[2];
        int sm = atoi(field[3]);
        const char *suffix = field[3][strspn(field[3], "0123456789")] == '+' ? "" : "a";
        if (strstr(text, ".kind::f8f6f4")) { line = "8.7"; sm = 120; } /* as documented */
        snprintf(target, sizeof target, "sm_%d%s", sm, suffix);
        bool chip = !strncmp(target, "sm_100", 6) || !strncmp(target, "sm_120", 6);
        if (strcmp(device, chip ? (target[4] == '0' ? "sm_100" : "sm_120") : "sm_90")) continue;
        const char *regs = "{ .reg .pred p<8>; .reg .b16 h<32>; .reg .b32 r<160>; .reg .b64 d<32>; .reg .f32 "
                           "f<264>; .reg .f64 g<40>;";
        snprintf(ptx, sizeof ptx,
                 ".version %s\n.target %s\n.address_size 64\n.shared .align 128 .b8 smem[8192];\n"
                 ".visible .entry k(.param .u64 pa) %s\n%s\nret; }\n",
                 line, target, regs, text);
        int code = refused(ptx);
        CHECK(code == 0, "%s: %d %s", text, code, log_text);
        n++;
        char *version = strstr(ptx, ".version "); /* one version less: refused, with the line */
        if (!strncmp(line, "8.6", 3) || !strncmp(line, "6.3", 3)) continue; /* the target itself needs 8.6 */
        if (version[11] > '0')
            version[11]--;
        else {
            version[9]--;
            version[11] = '5';
        }
        if (!strcmp(target, "sm_70") && version[9] == '6' && version[11] < '0') continue;
        code = refused(ptx);
        CHECK(code != 0, "%s: accepted below its first version %s", text, line);
    }
    CHECK(n >= least, "only %d forms", n);
    free(list);
}

/* --- the chips ---------------------------------------------------------------------------------- */

static void test_sums(int sm)
{
    chip = sm;
    set_option("exact-sums", 0);
    for (int turn = 0; turn < 3; turn++) {
        test_mma();
        test_quads();
        if (sm >= 80) test_sparse();
        if (sm == 120) test_mma_kinds();
        if (sm == 120) test_scaled();
    }
    test_wmma();
    if (sm == 90) test_wgmma();
    chip = 0;
}

static void tests_sm_75(void) { test_sums(75); }
static void tests_sm_80(void) { test_sums(80); }
static void tests_sm_89(void) { test_sums(89); }

static void tests_sm_100(void)
{
    set_option("exact-sums", 1);
    test_forms("sm_100", 4);
    test_byte_matrices();
    test_sums(100);
}

static void tests_sm_120(void)
{
    set_option("exact-sums", 1);
    test_forms("sm_120", 10);
    test_mma_kinds();
    test_scaled();
    test_sums(120);
}

int main(int argc, char **argv)
{
    seed ^= (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
    if (getenv("PTXGEN_SEED")) seed = strtoull(getenv("PTXGEN_SEED"), NULL, 0);
    printf("seed: PTXGEN_SEED=%llu\n", (unsigned long long)seed);
    on_device("sm_75", argc, argv, tests_sm_75);
    on_device("sm_80", argc, argv, tests_sm_80);
    on_device("sm_89", argc, argv, tests_sm_89);
    on_device("sm_100", argc, argv, tests_sm_100);
    on_device("sm_120", argc, argv, tests_sm_120);
    sim_open(argc, argv);
    set_option("exact-sums", 1);
    test_forms("sm_90", 55);
    test_mma();
    test_quads();
    test_sparse();
    test_ldmatrix();
    test_wmma();
    test_wgmma();
    test_faults();
    test_refusals();
    test_compiled();
    test_sums(90);
    return sim_close();
}
