/* tensor_sum.c - proves how the CPU driver's mma, wmma and wgmma add, chip by chip: results worked out by hand,
 * and what holds for any numbers (tensor.c compares every form bit by bit with sums by integers).
 *
 *   tensor_sum [library]      or PTXGEN_CUDA_LIBRARY
 *
 * The rules are those of P. Xie and others, "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix
 * Cores", arXiv 2511.10909 (2025). A case is row 0 of A times column 0 of B, plus C. */
#include "../simtest.h"

typedef enum type { F16, BF16, TF32, E4M3, E5M2, F32 } type;
static const struct { const char *name; int bits, mantissa, bias; } types[] = {
    { "f16", 16, 10, 15 }, { "bf16", 16, 7, 127 }, { "tf32", 32, 23, 127 },
    { "e4m3", 8, 3, 7 },   { "e5m2", 8, 2, 15 },   { "f32", 32, 23, 127 },
};

typedef struct instruction {
    char kind; /* m: mma, w: wmma, g: wgmma */
    type ab, d;
    int k, first_chip, last_chip;
} instruction;

/* The bits of x, which the type has. */
static uint32_t encode(type t, double x)
{
    uint32_t sign = signbit(x) ? 1u << (types[t].bits - 1) : 0, top = (1u << (types[t].bits - 1)) - 1;
    int e, least = 1 - types[t].bias, m = types[t].mantissa;
    if (isnan(x)) return t == F16 ? 0x7e01 : t == BF16 ? 0x7fc1 : t == E4M3 ? 0x7f : t == E5M2 ? 0x7d : 0x7fc12345;
    if (isinf(x)) return sign | (t == F16 ? 0x7c00 : t == BF16 ? 0x7f80 : t == E5M2 ? 0x7c : 0x7f800000);
    if (x == 0) return sign;
    e = ilogb(x) < least ? least : ilogb(x);
    uint32_t size = (uint32_t)ldexp(fabs(x), m - e);
    CHECK(ldexp(size, e - m) == fabs(x) && size <= top, "%g is no %s", x, types[t].name);
    return sign | (uint32_t)((e - least) * (1 << m) + (int)size);
}

/* --- running one sum --------------------------------------------------------------------------- */

enum { LANE = 64 }; /* bytes of a lane's registers in memory: A 0, B 16, C 32 */

static int registers(const char *name, int first, int count, char *to)
{
    int n = sprintf(to, "{");
    for (int k = 0; k < count; k++) n += sprintf(to + n, "%s%s%d", k ? "," : "", name, first + k);
    return n + sprintf(to + n, "}");
}

static handle load_instruction(const instruction *i, int chip)
{
    static char ptx[8000];
    char a[100], b[100], c[200], d[200];
    int bits = types[i->ab].bits, n = 0, wide = i->kind == 'w' ? 8 : i->d == F16 ? 2 : 4;
    n += sprintf(ptx, ".version 8.7\n.target sm_%d%s\n.address_size 64\n.shared .align 128 .b8 room[1024];\n"
                      ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
                      ".reg .b32 r<90>; .reg .b64 d<8>; .reg .pred p<2>;\n"
                      "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r80, %%tid.x;\n"
                      "mul.wide.u32 d2, r80, %d; add.u64 d2, d0, d2;\n", chip, i->kind == 'g' ? "a" : "", LANE);
    int na = 16 * i->k * bits / 1024, nb = 8 * i->k * bits / 1024;
    registers("r", 0, na, a);
    registers("r", 20, nb, b);
    registers("r", 40, wide, c);
    registers("r", 60, wide, d);
    if (i->kind == 'w') { /* matrices row by row, of 16 columns; B and C behind A */
        registers("r", 0, i->ab == F16 ? 8 : 4, a);
        registers("r", 20, i->ab == F16 ? 8 : 4, b);
        const char *shape = i->k == 8 ? "m16n16k8" : "m16n16k16", *t = types[i->ab].name;
        char four[40];
        snprintf(four, sizeof four, i->ab == F16 ? "f32.f32" : "f32.%s.%s.f32", t, t);
        n += sprintf(ptx + n, "add.u64 d3, d0, 1024; add.u64 d4, d0, 2048;\n"
                              "wmma.load.a.sync.aligned.row.%s.global.%s %s, [d0], %d;\n"
                              "wmma.load.b.sync.aligned.col.%s.global.%s %s, [d3], %d;\n"
                              "wmma.load.c.sync.aligned.row.%s.global.f32 %s, [d4], 16;\n"
                              "wmma.mma.sync.aligned.row.col.%s.%s %s, %s, %s, %s;\n"
                              "wmma.store.d.sync.aligned.row.%s.global.f32 [d1], %s, 16;\n",
                     shape, t, a, i->k, shape, t, b, i->k, shape, c, shape, four, d, a, b, c, shape, d);
    } else {
        for (int k = 0; k < 4 && k < na; k++) n += sprintf(ptx + n, "ld.global.b32 r%d, [d2+%d];\n", k, k * 4);
        for (int k = 0; k < nb && i->kind == 'm'; k++)
            n += sprintf(ptx + n, "ld.global.b32 r%d, [d2+%d];\n", 20 + k, 16 + k * 4);
        for (int k = 0; k < wide; k++) n += sprintf(ptx + n, "ld.global.b32 r%d, [d2+%d];\n", 40 + k, 32 + k * 4);
    }
    if (i->kind == 'm')
        n += sprintf(ptx + n, "mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s %s, %s, %s, %s;\n", i->k,
                     types[i->d].name, types[i->ab].name, types[i->ab].name, types[i->d].name, d, a, b, c);
    if (i->kind == 'g')
        n += sprintf(ptx + n, "shl.b32 r81, r80, 3; mov.u32 r82, room; add.u32 r81, r81, r82;\n"
                              "mul.wide.u32 d3, r80, 8; add.u64 d3, d0, d3; ld.global.b64 d4, [d3+8192];\n"
                              "st.shared.b64 [r81], d4; fence.proxy.async; bar.sync 0;\n"
                              "shr.u32 r82, r82, 4; cvt.u64.u32 d5, r82; or.b64 d5, d5, 0x800080000;\n"
                              "setp.eq.u32 p0, r80, r80; wgmma.fence.sync.aligned;\n"
                              "wgmma.mma_async.sync.aligned.m64n8k%d.%s.%s.%s %s, %s, d5, p0, 1, 1%s;\n"
                              "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
                     i->k, types[i->d].name, types[i->ab].name, types[i->ab].name, c, a,
                     bits == 16 ? ", 0" : "");
    if (i->kind != 'w')
        n += sprintf(ptx + n, "setp.eq.u32 p1, r80, 0; @p1 st.global.b32 [d1], r%d;\n", i->kind == 'g' ? 40 : 60);
    sprintf(ptx + n, "ret; }\n");
    handle m = load(ptx);
    CHECK(m != NULL, "does not load: %s", ptx);
    return m;
}

static uint32_t run_sum(const instruction *i, handle f, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    static uint8_t in[8192 + 1024], out[1024];
    int bytes = types[i->ab].bits / 8, line = 16 / bytes; /* elements of four lanes' registers */
    memset(in, 0, sizeof in);
    for (int z = 0; z < i->k; z++) {
        int lane = z % line * bytes / 4, at = z % line * bytes % 4, reg = z / line;
        uint8_t *x = in + lane * LANE + reg * 8 + at, *y = in + lane * LANE + 16 + reg * 4 + at;
        if (i->kind == 'g') y = in + 8192 + z / line * 128 + z % line * bytes;
        if (i->kind == 'w') x = in + z * bytes, y = in + 1024 + z * bytes;
        memcpy(x, &a[z], (size_t)bytes);
        memcpy(y, &b[z], (size_t)bytes);
    }
    memcpy(in + (i->kind == 'w' ? 2048 : 32), &c, 4);
    dptr from = alloc(sizeof in), to = alloc(sizeof out);
    void *params[] = { &from, &to };
    cuMemcpyHtoD_v2_(from, in, sizeof in);
    cuMemsetD8_v2_(to, 0, sizeof out);
    SAME(run(f, 1, i->kind == 'g' ? 128 : 32, 0, params), 0);
    if (!CHECK(report_count() == 0, "%s", findings())) report_clear();
    cuMemcpyDtoH_v2_(out, to, sizeof out);
    cuMemFree_v2_(from);
    cuMemFree_v2_(to);
    uint32_t d;
    memcpy(&d, out, 4);
    return i->d == F16 ? d & 0xffff : d;
}

/* --- by hand ----------------------------------------------------------------------------------- */

enum { ALL = 16, NONE = 1 }; /* ALL: every element of k; NONE: not on this chip */

typedef struct factor { int z; double a, b; } factor;
typedef struct example {
    const char *why;
    instruction i;
    factor factors[4];
    uint32_t c, d[6]; /* on sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 */
} example;

static const int chips[6] = { 75, 80, 89, 90, 100, 120 };

#define EACH(x)    { x, x, x, x, x, x }
#define FROM_80(x) { NONE, x, x, x, x, x }
#define K8         { 'm', F16, F32, 8, 75, 200 }
#define K16        { 'm', F16, F32, 16, 80, 200 }
#define HALF       { 'm', F16, F16, 16, 80, 200 }
#define HALF8      { 'm', F16, F16, 8, 75, 200 }
#define BF8        { 'm', BF16, F32, 8, 80, 200 }
#define TF8        { 'm', TF32, F32, 8, 80, 200 }
#define BYTES      { 'm', E4M3, F32, 32, 89, 200 }
#define WARP       { 'w', F16, F32, 16, 75, 200 }
#define WARP_TF    { 'w', TF32, F32, 8, 80, 200 }
#define GROUP      { 'g', F16, F32, 16, 90, 90 }
#define GROUP_TF   { 'g', TF32, F32, 8, 90, 90 }
#define GROUP_B    { 'g', E4M3, F32, 32, 90, 90 }

static const example examples[] = {
    /* 1 + 4 * 2^-25: from Hopper on the terms have 25 bits behind the point, before 24 */
    { "terms of 2^-25", K8, { { 0, 0x1p-12, 0x1p-13 }, { 1, 0x1p-12, 0x1p-13 }, { 2, 0x1p-12, 0x1p-13 },
                              { 3, 0x1p-12, 0x1p-13 } }, 0x3f800000,
      { 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800001, 0x3f800001, 0x3f800001 } },
    /* 1 + 2 * 2^-24 = 1 + 2^-23 everywhere */
    { "terms of 2^-24", K8, { { 0, 0x1p-12, 0x1p-12 }, { 7, 0x1p-12, 0x1p-12 } }, 0x3f800000, EACH(0x3f800001) },
    /* 1 - 2^-26: the term is cut towards zero, not down (floor: 0x3f7fffff) */
    { "a small negative term", K8, { { 0, -0x1p-13, 0x1p-13 } }, 0x3f800000, EACH(0x3f800000) },
    /* 1 + 3 * 2^-24: the sum is cut; to nearest even it would be 0x3f800002 */
    { "the sum is cut", K8, { { 0, 0x1p-12, 0x1p-12 }, { 1, 0x1p-12, 0x1p-11 } }, 0x3f800000, EACH(0x3f800001) },
    { "so is a negative one", K8, { { 0, -0x1p-12, 0x1p-12 }, { 1, 0x1p-12, -0x1p-11 } }, 0xbf800000,
      EACH(0xbf800001) },
    /* 1.5 * 1.5 has the exponent 0, not 1: 2.25 - 2.25 + 2^-24 keeps the last term everywhere */
    { "exponents are not normalised", K8, { { 0, 1.5, 1.5 }, { 1, 1.5, -1.5 }, { 2, 0x1p-12, 0x1p-12 } }, 0,
      EACH(0x33800000) },
    { "2^-25 beside it", K8, { { 0, 1.5, 1.5 }, { 1, 1.5, -1.5 }, { 2, 0x1p-12, 0x1p-13 } }, 0,
      { 0, 0, 0, 0x33000000, 0x33000000, 0x33000000 } },
    /* 8 * (2047/1024)^2 = 0x3ff001 * 2^-17, and 2^-20 below the last place, 2^-19 */
    { "carries", K8, { { ALL, 2047.0 / 1024, 2047.0 / 1024 } }, 0x35800000, EACH(0x41ffc004) },
    /* the lower 8 of k first: 1 + 2^-24 is cut to 1, and - 1 leaves nothing; in one step 2^-24 is left */
    { "k in two steps", K16, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-12 }, { 8, -1, 1 } }, 0,
      { NONE, 0, 0, 0x33800000, 0x33800000, 0x33800000 } },
    { "the upper half second", K16, { { 0, 1, 1 }, { 8, 0x1p-12, 0x1p-12 }, { 9, -1, 1 } }, 0, FROM_80(0x33800000) },
    { "wmma in two steps", WARP, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-12 }, { 8, -1, 1 } }, 0,
      { 0, 0, 0, 0x33800000, 0x33800000, 0x33800000 } },
    { "tf32 in two steps", TF8, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-12 }, { 4, -1, 1 } }, 0,
      { NONE, 0, 0, 0x33800000, 0x33800000, 0x33800000 } },
    { "wmma of tf32 is of k 4", WARP_TF, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-12 }, { 4, -1, 1 } }, 0, FROM_80(0) },
    { "wgmma", GROUP, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-13 }, { 8, -1, 1 } }, 0,
      { NONE, NONE, NONE, 0x33000000, NONE, NONE } },
    { "wgmma of tf32", GROUP_TF, { { 0, 1, 1 }, { 1, 0x1p-12, 0x1p-13 }, { 4, -1, 1 } }, 0,
      { NONE, NONE, NONE, 0x33000000, NONE, NONE } },
    /* inputs of tf32 lose 13 bits: 1 + 2^-11 is 1, 1 + 2^-10 stays */
    { "tf32 is cut", TF8, { { 0, 1 + 0x1p-11, 1 }, { 1, -1 - 0x1p-10, 1 } }, 0, FROM_80(0xba800000) },
    /* subnormal numbers count in full */
    { "subnormal f16", K8, { { 0, 0x1p-24, 1 } }, 0, EACH(0x33800000) },
    { "the product of two", K8, { { 0, 0x1p-24, 0x1p-24 } }, 0, EACH(0x27800000) },
    /* 2^-24 * 2 has the exponent -14 + 1: above 2^-14 - 2^-14, so that 2^-38 is its last bit of 25, not of 24 */
    { "the exponent of subnormals", K8, { { 0, 0x1p-24, 2 }, { 1, 0x1p-24, -2 }, { 2, 0x1p-19, 0x1p-19 } }, 0,
      { 0, 0, 0, 0x2c800000, 0x2c800000, 0x2c800000 } },
    { "subnormal results", BF8, { { 0, 0x1p-100, 0x1p-49 } }, 0, FROM_80(1) },
    { "below them", BF8, { { 0, 0x1p-100, 0x1p-50 } }, 0, FROM_80(0) },
    { "below them, negative", BF8, { { 0, -0x1p-100, 0x1p-50 } }, 0, FROM_80(0) },
    { "subnormal C", K8, { { 0, 0, 0 } }, 0x80000003, EACH(0x80000003) },
    { "-0 in C", K8, { { 0, 0, 0 } }, 0x80000000, EACH(0) },
    /* results of f16 are rounded to nearest even, after every step */
    { "a tie down", HALF8, { { 0, 0x1p-11, 1 } }, 0x3c00, EACH(0x3c00) },
    { "a tie up", HALF8, { { 0, 0x1p-11, 1 } }, 0x3c01, EACH(0x3c02) },
    { "above a tie", HALF8, { { 0, 0x1p-11, 1 }, { 1, 0x1p-12, 0x1p-12 } }, 0x3c00, EACH(0x3c01) },
    { "two ties", HALF, { { 0, 0x1p-11, 1 }, { 8, 0x1p-11, 1 } }, 0x3c00,
      { NONE, 0x3c00, 0x3c00, 0x3c01, 0x3c01, 0x3c01 } },
    { "the least infinite", HALF8, { { 0, 16, 1 } }, 0x7bff, EACH(0x7c00) },
    { "the largest finite", HALF8, { { 0, 8, 1 }, { 1, 4, 1 } }, 0x7bff, EACH(0x7bff) },
    { "subnormal f16 results", HALF8, { { 0, 0x1p-12, 0x1p-13 }, { 1, 0x1p-13, 0x1p-13 } }, 0, EACH(1) },
    { "below them, negative", HALF8, { { 0, -0x1p-12, 0x1p-14 } }, 0, EACH(0) },
    /* infinity and NaN */
    { "infinity", K8, { { 3, INFINITY, -1 } }, 0x3f800000, EACH(0xff800000) },
    { "infinity - infinity", K8, { { 3, INFINITY, -1 }, { 5, INFINITY, 1 } }, 0, EACH(0x7fffffff) },
    { "in two steps", K16, { { 3, INFINITY, -1 }, { 9, INFINITY, 1 } }, 0, FROM_80(0x7fffffff) },
    { "infinity * 0", K8, { { 3, INFINITY, 0 } }, 0, EACH(0x7fffffff) },
    { "C against it", K8, { { 3, INFINITY, 1 } }, 0xff800000, EACH(0x7fffffff) },
    { "NaN", K8, { { 3, NAN, 1 } }, 0, EACH(0x7fffffff) },
    { "NaN in C", K8, { { 0, 0, 0 } }, 0xffc12345, EACH(0x7fffffff) },
    { "NaN of f16", HALF8, { { 3, NAN, 1 } }, 0, EACH(0x7fff) },
    /* what is too large in one step is infinite; terms that cancel in it are not */
    { "2^128", BF8, { { 0, 0x1p127, 2 } }, 0, FROM_80(0x7f800000) },
    { "2^128 - 2^127", BF8, { { 0, 0x1p127, 2 }, { 1, 0x1p127, -1 } }, 0, FROM_80(0x7f000000) },
    { "2^254 - 2^254 + 2^229", BF8, { { 0, 0x1p127, 0x1p127 }, { 1, 0x1p127, -0x1p127 }, { 2, 0x1p102, 0x1p127 } },
      0, { NONE, 0, 0, 0x7f800000, 0x7f800000, 0x7f800000 } },
    { "2^127 - 2^127 + 2^102", BF8, { { 0, 0x1p127, 1 }, { 1, 0x1p127, -1 }, { 2, 0x1p102, 1 } }, 0,
      { NONE, 0, 0, 0x72800000, 0x72800000, 0x72800000 } },
    /* 8-bit floats: Ada keeps 13 bits of terms and results. sm_90 and sm_100 run it as mma of f16 and add C
     * at the end, to nearest. sm_120 has 25 bits. */
    { "2^-13 beside 1", BYTES, { { 0, 0x1p-7, 0x1p-6 } }, 0x3f800000,
      { NONE, NONE, 0x3f800400, 0x3f800400, 0x3f800400, 0x3f800400 } },
    { "2^-14 beside 1", BYTES, { { 0, 0x1p-7, 0x1p-7 } }, 0x3f800000,
      { NONE, NONE, 0x3f800000, 0x3f800200, 0x3f800200, 0x3f800200 } },
    { "C with 14 bits", BYTES, { { 0, 0, 0 } }, 0x3f800200,
      { NONE, NONE, 0x3f800000, 0x3f800200, 0x3f800200, 0x3f800200 } },
    { "C to nearest", BYTES, { { 0, 0x1p-9, 0x1p-8 }, { 1, 0x1p-9, 0x1p-9 } }, 0x42800000, /* 64 + 1.5 * 2^-17 */
      { NONE, NONE, 0x42800000, 0x42800002, 0x42800002, 0x42800001 } },
    /* 64 - 64 + 2^-18: elements 0 and 2 are of two steps on sm_90 and sm_100, and 64 + 2^-18 is cut to 64 */
    { "steps of pairs", BYTES, { { 0, 8, 8 }, { 1, 0x1p-9, 0x1p-9 }, { 2, -8, 8 } }, 0,
      { NONE, NONE, 0, 0, 0, 0x36800000 } },
    { "the same pair", BYTES, { { 0, 8, 8 }, { 1, -8, 8 }, { 4, 0x1p-9, 0x1p-9 } }, 0,
      { NONE, NONE, 0, 0x36800000, 0x36800000, 0x36800000 } },
    { "wgmma of bytes", GROUP_B, { { 0, 0x1p-7, 0x1p-7 }, { 1, 0x1p-7, 0x1p-6 } }, 0x3f800200,
      { NONE, NONE, NONE, 0x3f800400, NONE, NONE } },
};

static int chip; /* the index of the one under test */

static void test_examples(void)
{
    for (size_t n = 0; n < sizeof examples / sizeof *examples; n++) {
        const example *x = &examples[n];
        uint32_t a[32], b[32], want = x->d[chip];
        if (want == NONE) continue;
        if (!CHECK(chips[chip] >= x->i.first_chip && chips[chip] <= x->i.last_chip, "%s", x->why)) continue;
        for (int z = 0; z < 32; z++) {
            a[z] = encode(x->i.ab, x->factors[0].z == ALL ? x->factors[0].a : 0);
            b[z] = encode(x->i.ab, x->factors[0].z == ALL ? x->factors[0].b : 0);
        }
        for (int k = 0; k < 4 && x->factors[0].z != ALL; k++) {
            const factor *f = &x->factors[k];
            if (k && !f->z) break;
            a[f->z] = encode(x->i.ab, f->a);
            b[f->z] = encode(x->i.ab, f->b);
        }
        handle m = load_instruction(&x->i, chips[chip]);
        uint32_t d = run_sum(&x->i, function(m, "k"), a, b, x->c);
        CHECK(d == want, "sm_%d, %s: 0x%08x, expected 0x%08x", chips[chip], x->why, d, want);
        cuModuleUnload_(m);
    }
}

/* --- what holds for any numbers ---------------------------------------------------------------- */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static double as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return (double)f;
}

/* A normal number of that type, of 2^-4 to 2^4; e4m3 and e5m2 have such. */
static double draw(type t)
{
    int m = t == TF32 ? 10 : types[t].mantissa;
    double x = ldexp(1 + (double)(random32() % (1u << m)) / (1 << m), (int)(random32() % 9) - 4);
    return random32() & 1 ? x : -x;
}

/* How often the sum is cut, the bits of its terms and those of results. */
static void loss_of(const instruction *i, int *steps, int *fraction, int *kept)
{
    int sm = chips[chip], bits = types[i->ab].bits;
    bool cut = bits == 8 && (sm == 89 || i->kind == 'g');
    *fraction = cut ? 13 : sm < 90 ? 24 : 25;
    *kept = cut ? 13 : 23;
    *steps = sm < 90 || bits == 8 || i->kind == 'w' ? 3 : 1;
}

static void test_any(instruction i)
{
    if (chips[chip] < i.first_chip || chips[chip] > i.last_chip) return;
    handle m = load_instruction(&i, chips[chip]), f = function(m, "k");
    int group = types[i.ab].bits == 16 ? 8 : types[i.ab].bits == 32 ? 4 : 2, steps, fraction, kept;
    loss_of(&i, &steps, &fraction, &kept);
    for (int turn = 0; turn < 24; turn++) {
        uint32_t a[32], b[32], x[32], y[32], c, d, e;
        double plain, size, sign = turn % 3 ? 0 : 1, p, q;
        p = draw(F32) * 8;
        if (sign > 0) p = fabs(p);
        plain = size = p;
        size = fabs(p);
        c = encode(F32, p);
        for (int z = 0; z < i.k; z++) {
            p = draw(i.ab);
            q = draw(i.ab);
            if (sign > 0) p = fabs(p), q = fabs(q);
            a[z] = encode(i.ab, p);
            b[z] = encode(i.ab, q);
            plain += p * q;
            size += fabs(p * q);
        }
        d = run_sum(&i, f, a, b, c);
        double error = as_float(d) - plain, most = steps * size * (ldexp(i.k + 1, -fraction) + ldexp(1, -kept));
        CHECK(fabs(error) <= most, "%s on sm_%d: error %g of %g", types[i.ab].name, chips[chip], error, size);
        bool nearest = types[i.ab].bits == 8 && i.kind == 'm' && chips[chip] >= 90 && chips[chip] < 120;
        CHECK(sign == 0 || nearest || error <= 0, "a sum of positive terms is cut upwards by %g", error);
        for (int z = 0; z < i.k; z++) { /* any order within a step */
            int from = z / group * group + (z + turn) % group;
            x[z] = a[from];
            y[z] = b[from];
        }
        e = run_sum(&i, f, x, y, c);
        CHECK(e == d, "%s on sm_%d: 0x%08x, in another order 0x%08x", types[i.ab].name, chips[chip], d, e);
        for (int z = 0; z < i.k; z++) x[z] = a[z] ^ 1u << (types[i.ab].bits - 1);
        e = run_sum(&i, f, x, b, c ^ 0x80000000);
        CHECK(e == (d ? d ^ 0x80000000 : 0), "%s on sm_%d: 0x%08x, negated 0x%08x", types[i.ab].name,
              chips[chip], d, e);
        int one = i.ab == TF32 ? 23 : types[i.ab].mantissa;
        for (int z = 0; z < i.k; z++) x[z] = a[z] + (1u << one); /* twice as large */
        e = run_sum(&i, f, x, b, c + 0x800000);
        CHECK(as_float(e) == 2 * as_float(d), "%s on sm_%d: 0x%08x, doubled 0x%08x", types[i.ab].name,
              chips[chip], d, e);
    }
    cuModuleUnload_(m);
}

/* --- the chips ---------------------------------------------------------------------------------- */

static void test_chip(void)
{
    static const instruction some[] = { K8, K16, BF8, TF8, BYTES, WARP, WARP_TF, GROUP, GROUP_TF, GROUP_B };
    test_examples();
    for (size_t n = 0; n < sizeof some / sizeof *some; n++) test_any(some[n]);
}

/* The option: sums are exact and rounded once. */
static void test_exact(void)
{
    uint32_t a[16] = { 0 }, b[16] = { 0 };
    instruction i = K16;
    a[0] = b[0] = a[9] = encode(F16, 1);
    b[9] = encode(F16, -1);
    for (int z = 1; z < 4; z++) a[z] = b[z] = encode(F16, 0x1p-20);
    set_option("exact-sums", 1);
    handle m = load_instruction(&i, 90);
    SAME(run_sum(&i, function(m, "k"), a, b, 0), 0x2c400000); /* 3 * 2^-40 */
    a[9] = 0;
    a[1] = encode(F16, 0x1p-4);
    SAME(run_sum(&i, function(m, "k"), a, b, 0), 0x3f800001); /* 1 + 2^-24 + 2^-39, to nearest */
    cuModuleUnload_(m);
    set_option("exact-sums", 0);
}

int main(int argc, char **argv)
{
    static const char *const names[6] = { "sm_75", "sm_80", "sm_89", NULL, "sm_100", "sm_120" };
    seed ^= (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u;
    if (getenv("PTXGEN_SEED")) seed = strtoull(getenv("PTXGEN_SEED"), NULL, 0);
    printf("seed: PTXGEN_SEED=%llu\n", (unsigned long long)seed);
    for (chip = 0; chip < 6; chip++)
        if (names[chip]) on_device(names[chip], argc, argv, test_chip);
    chip = 3;
    sim_open(argc, argv);
    test_chip();
    test_exact();
    return sim_close();
}
