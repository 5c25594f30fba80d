/* tcgen05.c - proves tensor memory on the CPU driver: tcgen05.ld, st, mma, cp, shift.
 *
 *   tcgen05 [library] [seed]
 *
 * Matrices of small whole numbers, whose sums are exact in any order, lie where the documentation says, written
 * down here once more element by element; results are compared with a sum in double. tests/faults/tensor_memory.c
 * has the wrong programs. */
#include "../simtest.h"

static uint64_t state;
static uint32_t random32(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* --- text ------------------------------------------------------------------------------------- */

static char text[1 << 20];
static size_t used;
static void put(const char *format, ...) {
    va_list a;
    va_start(a, format);
    used += (size_t)vsnprintf(text + used, sizeof text - used, format, a);
    va_end(a);
    if (used >= sizeof text) abort();
}

/* A list of registers: "{r100,r101}". */
static const char *list(char name, int first, int count) {
    static char out[4][2000];
    static int turn;
    char *to = out[turn = (turn + 1) & 3];
    size_t n = (size_t)sprintf(to, "{");
    for (int k = 0; k < count; k++) n += (size_t)sprintf(to + n, "%s%c%d", k ? "," : "", name, first + k);
    strcpy(to + n, "}");
    return to;
}

/* Warp r1 of four; r5 its quarter's address of tensor memory, r4 the memory's; d0 in, d1 out of this block. */
static void begin(int blocks, int in_words, int out_words, int columns) {
    used = 0;
    put(".version 8.8\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 sm[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) .reqntid 128");
    if (blocks > 1) put(" .reqnctapercluster %d", blocks);
    put("\n{\n.reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<700>; .reg .b64 d<20>;\n"
        ".shared .align 8 .b64 bar; .shared .align 4 .b32 slot;\n"
        "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %%tid.x; shr.u32 r1, r0, 5;\n"
        "mov.u32 r2, %%cluster_ctarank; mul.wide.u32 d2, r2, %d; add.u64 d0, d0, d2; mul.wide.u32 d2, r2, "
        "%d; add.u64 "
        "d1, d1, d2;\n"
        "mov.u32 r3, slot; mov.u32 r30, bar; mov.u32 r31, sm; setp.eq.u32 p0, r0, 0; setp.eq.u32 p1, r1, 0;\n"
        "@p0 mbarrier.init.shared::cta.b64 [r30], 1;\n@p0 fence.mbarrier_init.release.cluster;\n"
        "@p1 tcgen05.alloc.cta_group::%d.sync.aligned.shared::cta.b32 [r3], %d;\n",
        in_words * 4, out_words * 4, blocks, columns);
    put("bar.sync 0;\nld.shared.b32 r4, [r3]; shl.b32 r5, r1, 21; add.u32 r5, r5, r4;\n");
}
static void end(int blocks, int columns) {
    put("bar.sync 0;\n@p1 tcgen05.dealloc.cta_group::%d.sync.aligned.b32 r4, %d;\n", blocks, columns);
    if (blocks > 1) put("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n");
    put("ret;\n}\n");
}
/* d10: the address of word `first` of d + thread * stride words */
static void word(const char *base, int first, int stride) {
    put("mul.wide.u32 d10, r0, %d; add.u64 d10, d10, %s; add.u64 d10, d10, %d;\n", stride * 4, base,
        first * 4);
}
static void store_cells(int columns, int column,
                        int first) { /* of 128 lanes, to out[first + lane * columns ...] */
    word("d1", first, columns);
    for (int c = 0; c < columns; c += 8) {
        int n = columns - c < 8 ? columns - c : 8;
        put("tcgen05.ld.sync.aligned.32x32b.x%d.b32 %s, [r5+%d]; tcgen05.wait::ld.sync.aligned;\n", n,
            list('r', 600, n), column + c);
        for (int k = 0; k < n; k++) put("st.global.b32 [d10+%d], r%d;\n", (c + k) * 4, 600 + k);
    }
}
static void load_cells(int columns, int column, int first) {
    word("d0", first, columns);
    for (int c = 0; c < columns; c += 8) {
        int n = columns - c < 8 ? columns - c : 8;
        for (int k = 0; k < n; k++) put("ld.global.b32 r%d, [d10+%d];\n", 600 + k, (c + k) * 4);
        put("tcgen05.st.sync.aligned.32x32b.x%d.b32 [r5+%d], %s; tcgen05.wait::st.sync.aligned;\n", n,
            column + c, list('r', 600, n));
    }
}

/* Runs the text; the output of all blocks, or NULL. */
static uint32_t *go(const char *what, int blocks, const uint32_t *in, size_t in_words, size_t out_words,
                    int shared) {
    static uint32_t *out;
    free(out);
    out = calloc(out_words * (size_t)blocks + 1, 4);
    handle m = load(text), f = function(m, "k");
    if (!CHECK(f != NULL, "%s does not load", what)) return NULL;
    dptr from = alloc(in_words * (size_t)blocks * 4 + 16), to = alloc(out_words * (size_t)blocks * 4 + 16);
    void *params[] = {&from, &to};
    cuMemcpyHtoD_v2_(from, in, in_words * (size_t)blocks * 4);
    cuMemsetD32_v2_(to, 0, out_words * (size_t)blocks);
    if (shared) cuFuncSetAttribute_(f, 8, shared);
    report_clear();
    int code = run(f, (unsigned)blocks, 128, (unsigned)shared, params);
    findings();
    bool good = CHECK(!code && !*found, "%s: gives %d: %s", what, code, found);
    report_clear();
    if (good) cuMemcpyDtoH_v2_(out, to, out_words * (size_t)blocks * 4);
    cuMemFree_v2_(from);
    cuMemFree_v2_(to);
    cuModuleUnload_(m);
    return good ? out : NULL;
}

/* --- ld and st ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int regs, columns, most; /* registers and columns of x1 */
} shapes[] = {{"32x32b", 1, 1, 128},
              {"16x64b", 1, 2, 128},
              {"16x128b", 2, 4, 64},
              {"16x256b", 4, 8, 32},
              {"16x32bx2", 1, 1, 128}};

/* Which thread and register hold the cell at (lane, column) of the shape; false: none does. split: 16x32bx2. */
static bool holder(int shape, int count, int split, int lane, int column, int *t, int *r) {
    if (shape != 0 && lane >= 16) return false;
    switch (shape) {
    case 0: *t = lane, *r = column; return true;
    case 1: /* rows 0-7 are in even threads, rows 8-15 in odd ones; columns alternate between pairs of threads */
        *t = lane % 8 * 4 + lane / 8 + column % 2 * 2, *r = column / 2;
        return true;
    case 2: *t = lane % 8 * 4 + column % 4, *r = column / 4 * 2 + lane / 8; return true;
    case 3: *t = lane % 8 * 4 + column % 8 / 2, *r = column / 8 * 4 + lane / 8 * 2 + column % 2; return true;
    default:
        if (column >= split)
            *t = 16 + lane, *r = column - split;
        else
            *t = lane, *r = column;
        return *r < count;
    }
}

/* Stores by one shape, loads all cells; loads by that shape, too. */
static void test_shape(int shape, int count, bool packed, int half) {
    int regs = shapes[shape].regs * count, logical = shapes[shape].columns * count * (shape == 4 ? 2 : 1),
        wide = packed ? 2 : 1, columns = logical * wide, split = count,
        place = 512 - columns < 3 ? 512 - columns : 3;
    char what[100];
    static uint32_t in[128 * 128];
    snprintf(what, sizeof what, "%s.x%d%s at lane %d", shapes[shape].name, count, packed ? ", packed" : "",
             half);
    if (columns > 512) return;
    for (int k = 0; k < 128 * regs; k++) in[k] = random32();
    begin(1, 128 * regs, 128 * (columns + regs), 512);
    if (half) put("add.u32 r5, r5, %d;\n", half << 16);
    word("d0", 0, regs);
    for (int k = 0; k < regs; k++) put("ld.global.b32 r%d, [d10+%d];\n", 100 + k, k * 4);
    char extra[20] = "";
    if (shape == 4) snprintf(extra, sizeof extra, ", %d", split * wide);
    put("tcgen05.st.sync.aligned.%s.x%d%s.b32 [r5+%d]%s, %s;\ntcgen05.wait::st.sync.aligned;\n",
        shapes[shape].name, count, packed ? ".unpack::16b" : "", place, extra, list('r', 100, regs));
    put("tcgen05.ld.sync.aligned.%s.x%d%s.b32 %s, [r5+%d]%s;\ntcgen05.wait::ld.sync.aligned;\n",
        shapes[shape].name, count, packed ? ".pack::16b" : "", list('r', 300, regs), place, extra);
    word("d1", 128 * columns, regs);
    for (int k = 0; k < regs; k++) put("st.global.b32 [d10+%d], r%d;\n", k * 4, 300 + k);
    if (half) put("sub.u32 r5, r5, %d;\n", half << 16);
    /* lanes that nothing wrote are not stored: their halves of the output stay 0 */
    word("d1", 0, columns);
    put("and.b32 r6, r0, 31; setp.lt.u32 p2, r6, %d; setp.ge.u32 p3, r6, %d; and.pred p2, p2, p3;\n",
        shape ? half + 16 : 32, half);
    for (int c = 0; c < columns; c++)
        put("tcgen05.ld.sync.aligned.32x32b.x1.b32 {r600}, [r5+%d]; tcgen05.wait::ld.sync.aligned;\n"
            "@p2 st.global.b32 [d10+%d], r600;\n",
            place + c, c * 4);
    end(1, 512);
    uint32_t *out = go(what, 1, in, (size_t)(128 * regs), (size_t)(128 * (columns + regs)), 0);
    int bad = 0;
    for (int lane = 0; out && lane < 128; lane++)
        for (int c = 0; c < columns; c++) {
            int t, r, in_quarter = lane % 32 - half;
            uint32_t want = 0;
            if (in_quarter >= 0 && holder(shape, count, split, in_quarter, c / wide, &t, &r)) {
                want = in[(lane / 32 * 32 + t) * regs + r];
                if (packed) want = c % 2 ? want >> 16 : want & 0xffff;
            }
            bad += out[lane * columns + c] != want;
        }
    if (out) {
        CHECK(!bad, "%s: %d cells differ", what, bad);
        CHECK(!memcmp(out + 128 * columns, in, 4u * 128 * (unsigned)regs), "%s: what comes back differs",
              what);
    }
}

static void test_shapes(void) {
    for (int shape = 0; shape < 5; shape++)
        for (int count = 1; count <= shapes[shape].most; count *= 2) {
            test_shape(shape, count, count == 4 || random32() % 4 == 0, 0);
            if (shape && random32() % 2) test_shape(shape, count, random32() % 2, 16);
        }
}

/* --- numbers ---------------------------------------------------------------------------------- */

enum { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, S8, U8, FORMATS };
static const struct {
    const char *name;
    int bits, exponent, mantissa, bias, code; /* code: in an instruction descriptor */
} formats[FORMATS] = {{"f16", 16, 5, 10, 15, 0}, {"bf16", 16, 8, 7, 127, 1}, {"tf32", 32, 8, 23, 127, 2},
                      {"e4m3", 8, 4, 3, 7, 0},   {"e5m2", 8, 5, 2, 15, 1},   {"e2m3", 6, 2, 3, 1, 3},
                      {"e3m2", 6, 3, 2, 3, 4},   {"e2m1", 4, 2, 1, 1, 5},    {"s8", 8, 0, 0, 0, 1},
                      {"u8", 8, 0, 0, 0, 0}};

/* The bits of a whole number from -2 to 2. */
static uint32_t encode(int f, int v) {
    if (f == S8 || f == U8) return (uint32_t)v & 255;
    if (!v) return 0;
    uint32_t sign = v < 0, e = (uint32_t)(formats[f].bias + (abs(v) == 2));
    return sign << (formats[f].exponent + formats[f].mantissa) | e << formats[f].mantissa;
}

/* --- products ----------------------------------------------------------------------------------- */

enum { K_F16, K_TF32, K_F8F6F4, K_I8, K_MXF8F6F4, K_MXF4, K_MXF4NVF4 };
static const char *const kinds[] = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};

typedef struct problem {
    int kind, a, b, d; /* d: 0 f16, 1 f32, 2 s32 */
    int m, n, blocks;
    int swizzle[2]; /* of A and B: 0, 32, 64, 128 bytes */
    bool trans[2], a_in_memory, ws, sparse, adds;
    int vectors, scale_id[2]; /* block scaling: factors along K */
    bool ue4m3, negative[2];
    int scale_d, masked, lane; /* masked: lanes are; lane: 16 where 64 rows lie in the second halves */
} problem;

static int depth(const problem *p) {
    int bits = p->kind == K_F16 ? 16 : p->kind == K_TF32 ? 32 : p->kind >= K_MXF4 ? 4 : 8;
    return 256 / bits * (p->sparse ? 2 : 1);
}

/* Bits from the start of a matrix to element (line, k): no swizzle yet. Unswizzled matrices have gaps. */
static long place(bool trans, int swizzle, int element, int line, int k, long leading, long stride) {
    int per = 128 / element, across = trans ? k : line,
        along = trans ? line : k; /* element: its room in bits */
    long chunk = along / per, in = (long)(along % per) * element;
    long at;
    if (!swizzle)
        at = trans ? across / 8 * leading + across % 8 * 16 + chunk * stride
                   : across / 8 * stride + across % 8 * 16 + chunk * leading;
    else {
        long width = swizzle, row = chunk * 16 % width, next = chunk * 16 / width;
        long rows = trans && element == 32 ? 4 : 8; /* transposed tf32: atoms of 32 bytes */
        at = across / rows * stride + across % rows * width + row + next * leading;
    }
    return at * 8 + in;
}
static long swizzled(bool wide_atoms, int swizzle, long byte) {
    if (wide_atoms) return byte ^ (byte >> 7 & 3) << 5;
    return swizzle ? byte ^ (byte >> 7 & (swizzle / 16 - 1)) << 4 : byte;
}

static void set_bits(uint8_t *p, long at, int n, uint32_t v) {
    for (int k = 0; k < n; k++, at++)
        if (v >> k & 1)
            p[at / 8] |= (uint8_t)(1 << at % 8);
        else
            p[at / 8] &= (uint8_t) ~(1 << at % 8);
}

enum {
    A_AT = 0,
    B_AT = 40960,
    IMAGE = 40960 + 73728,
    CELLS = 320,
    D_COLUMN = 0,
    A_COLUMN = 256,
    S_COLUMN = 272
};
typedef struct image {
    uint8_t shared[IMAGE];
    uint32_t
        cell[128]
            [CELLS]; /* tensor memory, before: from S_COLUMN on scale factors, 8 for B, 4 for A, metadata */
} image;
static image images[2];
static int a_value[256][128], b_value[256][128], d_value[256][256], factor_a[256][4], factor_b[256][4];

/* Room for a matrix; fills in the strides. */
static uint64_t descriptor(const problem *p, int which, long at, long *leading, long *stride) {
    bool trans = p->trans[which], tf32 = p->kind == K_TF32;
    int swizzle = p->swizzle[which], element = which ? formats[p->b].bits : formats[p->a].bits;
    int room = p->kind >= K_MXF4 ? 4 : element < 8 ? 8 : element, lines = which ? p->n : p->m, k = depth(p);
    if (p->blocks == 2) lines /= 2;
    if (p->sparse && !which) k /= 2;
    int across = trans ? k : lines, rows = trans && tf32 && swizzle ? 4 : 8;
    long along = (long)(trans ? lines : k) * room / 8;
    long groups = (across + rows - 1) / rows;
    if (!swizzle) { /* chunks of 8 x 16 bytes: one after the other, with a gap here and there */
        long gap = 16 * (random32() % 3), one = 128 + gap, all = one * (along / 16);
        *(trans ? stride : leading) = one;
        *(trans ? leading : stride) = all + 16 * (random32() % 3);
    } else {
        *stride = (long)rows * swizzle;
        *leading = trans ? *stride * groups : 16;
    }
    uint64_t mode = !swizzle ? 0 : swizzle == 64 ? 4 : swizzle == 32 ? 6 : trans && tf32 ? 1 : 2;
    return (uint64_t)(at >> 4) | (uint64_t)(*leading >> 4) << 16 | (uint64_t)(*stride >> 4) << 32
           | (uint64_t)1 << 46 | mode << 61;
}

static void put_matrix(const problem *p, int which, long at, long leading, long stride) {
    int f = which ? p->b : p->a, k = depth(p), lines = which ? p->n : p->m,
        room = p->kind >= K_MXF4     ? 4
               : formats[f].bits < 8 ? 8
                                     : formats[f].bits,
        swizzle = p->swizzle[which];
    bool trans = p->trans[which];
    int half = p->blocks == 2 ? lines / 2 : lines;
    if (p->sparse && !which) k /= 2;
    for (int line = 0; line < lines; line++)
        for (int z = 0; z < k; z++) {
            int v = which ? b_value[line][z] : a_value[line][z];
            long bit = place(trans, swizzle, room, line % half, z, leading, stride);
            int per = 128 / room, along = trans ? line % half : z; /* 6 and 4 bits are packed in 16 bytes */
            if (formats[f].bits < room) bit += (long)(along % per) * (formats[f].bits - room);
            long byte = swizzled(trans && room == 32 && swizzle, swizzle, at + bit / 8);
            set_bits(images[line / half].shared, byte * 8 + bit % 8, formats[f].bits, encode(f, v));
        }
}

/* The lane and column of D's element, from those of its address on. */
static void d_place(const problem *p, int m, int n, int *block, int *lane, int *column) {
    int rows = p->m / p->blocks, parts = 1;
    *block = m / rows;
    m %= rows;
    *lane = m;
    if (rows == 64 && (p->blocks == 2 || p->ws))
        parts = 2;
    else if (rows == 64)
        *lane = m / 16 * 32 + m % 16 + p->lane;
    else if (rows == 32)
        parts = 4;
    *lane += n / (p->n / parts) * (128 / parts);
    *column = n % (p->n / parts);
}

static uint32_t float_bits(double v) {
    float f = (float)v;
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}
static double half_value(uint32_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    double v = e ? ldexp(m + 1024, e - 25) : ldexp(m, -24);
    return h >> 15 & 1 ? -v : v;
}
static uint32_t half_bits(double v) { /* of a number that has one */
    for (uint32_t e = 0; e < 31 && v != 0; e++) {
        double m = fabs(v) * ldexp(1, 25 - (int)e);
        if (m >= 1024 && m < 2048 && m == floor(m))
            return (uint32_t)(v < 0) << 15 | e << 10 | ((uint32_t)m & 1023);
    }
    return 0;
}

static void fill(const problem *p) {
    int k = depth(p), stored = p->sparse ? k / 2 : k;
    for (int m = 0; m < p->m; m++)
        for (int z = 0; z < stored; z++) a_value[m][z] = (int)(random32() % 5) - (p->a == U8 ? 0 : 2);
    for (int n = 0; n < p->n; n++)
        for (int z = 0; z < k; z++) b_value[n][z] = (int)(random32() % 5) - (p->b == U8 ? 0 : 2);
    for (int m = 0; m < p->m; m++)
        for (int n = 0; n < p->n; n++) d_value[m][n] = (int)(random32() % 65) - 32;
    for (int x = 0; x < 256; x++)
        for (int j = 0; j < 4; j++)
            factor_a[x][j] = (int)(random32() % 3), factor_b[x][j] = (int)(random32() % 3);
    for (size_t b = 0; b < 2; b++) {
        for (size_t n = 0; n < IMAGE; n++) images[b].shared[n] = (uint8_t)random32();
        for (int lane = 0; lane < 128; lane++)
            for (int c = 0; c < CELLS; c++) images[b].cell[lane][c] = random32() & 0x3bff3bff;
    }
}

/* Where the elements of A that are not zero lie: index[m][j] of stored element j. */
static int index_of[256][64];
static void choose_sparse(const problem *p) {
    int k = depth(p), unit = p->kind >= K_MXF4 ? 2 : 1, rows = p->m / p->blocks;
    for (int m = 0; m < p->m; m++)
        for (int group = 0; group < k / (p->kind == K_TF32 ? 2 : 4 * unit); group++) {
            int first = (int)(random32() % 3), second = first + 1 + (int)(random32() % (uint32_t)(3 - first));
            uint32_t code = (uint32_t)(first | second << 2);
            int bits = 4, at = group * 4; /* bit of the row's metadata */
            if (p->kind == K_TF32) {
                first = (int)(random32() % 2);
                code = first ? 14 : 4;
                index_of[m][group] = group * 2 + first;
            } else
                for (int q = 0; q < 2; q++)
                    for (int e = 0; e < unit; e++)
                        index_of[m][(group * 2 + q) * unit + e] =
                            (group * 4 + (q ? second : first)) * unit + e;
            int row = m % rows, lane = row, bit = at;
            if (p->kind == K_F16 || p->kind == K_TF32) { /* 32 bits a row: two halves, 8 lanes apart */
                lane = row / 16 * 16 + row % 8 + (at >= 16 ? 8 : 0);
                bit = at % 16 + (row % 16 >= 8 ? 16 : 0);
            }
            set_bits((uint8_t *)&images[m / rows].cell[lane][S_COLUMN + 12 + bit / 32], bit % 32, bits, code);
        }
}

static void put_factors(const problem *p) {
    int rows = p->m / p->blocks;
    for (int which = 0; which < 2; which++)
        for (int x = 0; x < (which ? p->n : p->m); x++)
            for (int j = 0; j < p->vectors; j++) {
                int f = which ? factor_b[x][j] : factor_a[x][j], byte = p->scale_id[which] + j;
                uint32_t code = p->ue4m3 ? (uint32_t)(7 + f - 1) << 3 : (uint32_t)(127 + f - 1);
                for (int block = 0; block < p->blocks; block++) {
                    int row = which ? x : x - block * rows;
                    if (row < 0 || (!which && row >= rows)) continue;
                    for (int q = 0; q < 4; q++)
                        set_bits((uint8_t *)&images[block]
                                     .cell[row % 32 + 32 * q][S_COLUMN + (which ? 0 : 8) + row / 32],
                                 byte * 8, 8, code);
                }
            }
}

static double expected(const problem *p, int m, int n) {
    int k = depth(p), stored = p->sparse ? k / 2 : k;
    double sum = p->adds ? d_value[m][n] * ldexp(1, -p->scale_d) : 0,
           sign = p->negative[0] != p->negative[1] ? -1 : 1;
    for (int z = 0; z < stored; z++) {
        int to = p->sparse ? index_of[m][z] : z;
        double x = sign * a_value[m][z] * b_value[n][to];
        if (p->vectors) {
            int j = to / (k / p->vectors);
            x *= ldexp(1, factor_a[m][j] - 1 + factor_b[n][j] - 1);
        }
        sum += x;
    }
    return sum;
}

static void describe(const problem *p, char *out, size_t size) {
    snprintf(out, size,
             "%s %s %s D %d, m%dn%d, %d blocks%s%s%s, A %s %d%s, B %d%s, factors %d, adds %d, masked %d, "
             "lane %d, scale-d %d, negative %d %d",
             kinds[p->kind], formats[p->a].name, formats[p->b].name, p->d, p->m, p->n, p->blocks,
             p->ws ? ", ws" : "", p->sparse ? ", sparse" : "", p->ue4m3 ? ", ue4m3" : "",
             p->a_in_memory ? "in tensor memory" : "swizzle", p->swizzle[0], p->trans[0] ? " transposed" : "",
             p->swizzle[1], p->trans[1] ? " transposed" : "", p->vectors, p->adds, p->masked, p->lane,
             p->scale_d, p->negative[0], p->negative[1]);
}

static uint32_t instruction_descriptor(const problem *p) {
    uint32_t a = (uint32_t)formats[p->a].code, b = (uint32_t)formats[p->b].code,
             x = (uint32_t)p->sparse << 2 | (uint32_t)p->negative[0] << 13 | (uint32_t)p->negative[1] << 14
                 | (uint32_t)p->trans[0] << 15 | (uint32_t)p->trans[1] << 16 | (uint32_t)p->n >> 3 << 17;
    if (p->kind >= K_MXF4) a = b = 1;
    x |= a << 7 | b << 10;
    if (p->vectors)
        return x | (uint32_t)p->scale_id[1] << 4 | (uint32_t)!p->ue4m3 << 23 | (uint32_t)p->m >> 7 << 27
               | (uint32_t)p->scale_id[0] << 29;
    return x | (uint32_t)p->d << 4 | (uint32_t)p->m >> 4 << 24;
}

static void test_product(problem p) {
    char what[400];
    static uint32_t in[2 * (IMAGE / 4 + 128 * CELLS)];
    long leading[2] = {0, 0}, stride[2] = {0, 0};
    int words = IMAGE / 4 + 128 * CELLS;
    describe(&p, what, sizeof what);
    fill(&p);
    /* shared memory begins at its block's window; dynamic memory is aligned to 1024 */
    uint64_t da = descriptor(&p, 0, A_AT, &leading[0], &stride[0]),
             db = descriptor(&p, 1, B_AT, &leading[1], &stride[1]);
    if (p.sparse) choose_sparse(&p);
    if (!p.a_in_memory) put_matrix(&p, 0, A_AT, leading[0], stride[0]);
    put_matrix(&p, 1, B_AT, leading[1], stride[1]);
    if (p.vectors) put_factors(&p);
    int k = depth(&p), stored = p.sparse ? k / 2 : k,
        room = p.kind >= K_MXF4        ? 4
               : formats[p.a].bits < 8 ? 8
                                       : formats[p.a].bits;
    for (int m = 0; m < p.m && p.a_in_memory; m++)
        for (int z = 0; z < stored; z++) {
            int block, lane, column;
            d_place(&p, m, 0, &block, &lane, &column);
            uint32_t v = encode(p.a, a_value[m][z]);
            if (p.a == E2M1 && room == 8) v <<= 2;
            for (int copy = 0; copy < (p.blocks == 2 && p.m == 128 ? 2 : 1); copy++)
                set_bits((uint8_t *)&images[block].cell[lane + 64 * copy][A_COLUMN], (long)z * room, room, v);
        }
    for (int m = 0; m < p.m; m++)
        for (int n = 0; n < p.n; n++) {
            int block, lane, column;
            d_place(&p, m, n, &block, &lane, &column);
            images[block].cell[lane][D_COLUMN + column] = p.d == 1   ? float_bits(d_value[m][n])
                                                          : p.d == 0 ? half_bits(d_value[m][n])
                                                                     : (uint32_t)d_value[m][n];
        }
    uint32_t mask[8] = {0};
    for (int n = 0; n < 8 && p.masked; n++) mask[n] = random32() & random32();
    for (int b = 0; b < p.blocks; b++) {
        memcpy(in + b * words, images[b].shared, IMAGE);
        memcpy(in + b * words + IMAGE / 4, images[b].cell, sizeof images[b].cell);
    }
    begin(p.blocks, words, 128 * 256, 512);
    put("mov.u32 r6, r0;\ncopy: mul.wide.u32 d10, r6, 4; add.u64 d10, d10, d0; ld.global.b32 r7, [d10]; "
        "shl.b32 r8, r6, 2; "
        "add.u32 r8, r8, r31; st.shared.b32 [r8], r7; add.u32 r6, r6, 128; setp.lt.u32 p2, r6, %d; @p2 bra "
        "copy;\n",
        IMAGE / 4);
    load_cells(CELLS, 0, IMAGE / 4);
    put("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n");
    if (p.blocks > 1) put("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n");
    put("setp.eq.u32 p3, r2, 0; and.pred p3, p3, p0; setp.%s.u32 p4, r2, r2;\n", p.adds ? "eq" : "ne");
    put("@!p3 bra issued;\ntcgen05.fence::after_thread_sync;\nshr.u32 r6, r31, 4; cvt.u64.u32 d3, r6; "
        "add.u64 d4, d3, "
        "0x%llx; add.u64 d5, d3, 0x%llx;\nmov.u32 r7, 0x%x; add.u32 r8, r4, %u;\n",
        (unsigned long long)da, (unsigned long long)db, instruction_descriptor(&p), (unsigned)p.lane << 16);
    for (int n = 0; n < 8; n++) put("mov.u32 r%d, 0x%x;\n", 20 + n, mask[n]);
    put("tcgen05.mma%s%s.cta_group::%d.kind::%s%s [r8+%d], ", p.ws ? ".ws" : "", p.sparse ? ".sp" : "",
        p.blocks, kinds[p.kind],
        !p.vectors       ? ""
        : p.vectors == 1 ? ".block_scale.scale_vec::1X"
        : p.vectors == 2 ? ".block_scale.scale_vec::2X"
        : random32() % 2 ? ".block_scale.block16"
                         : ".block_scale.scale_vec::4X",
        D_COLUMN);
    if (p.a_in_memory)
        put("[r8+%d], d5, ", A_COLUMN);
    else
        put("d4, d5, ");
    if (p.sparse) put("[r4+%d], ", S_COLUMN + 12);
    put("r7, ");
    if (p.vectors) put("[r4+%d], [r4+%d], ", S_COLUMN + 8, S_COLUMN);
    if (p.masked) put("%s, ", list('r', 20, p.blocks * 4));
    put("p4");
    if (p.scale_d) put(", %d", p.scale_d);
    if (p.blocks == 1)
        put(";\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [r30];\n");
    else
        put(";\nmov.u16 h0, 3; "
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
            "[r30], h0;\n");
    put("issued:\nwait: mbarrier.try_wait.parity.shared::cta.b64 p2, [r30], 0; @!p2 bra wait;\n"
        "tcgen05.fence::after_thread_sync;\n");
    store_cells(256, D_COLUMN, 0);
    end(p.blocks, 512);
    uint32_t *out = go(what, p.blocks, in, (size_t)words, 128 * 256, IMAGE);
    if (!out) return;
    static bool covered[2][128][256];
    memset(covered, 0, sizeof covered);
    int bad = 0;
    for (int m = 0; m < p.m; m++)
        for (int n = 0; n < p.n; n++) {
            int block, lane, column;
            d_place(&p, m, n, &block, &lane, &column);
            if (mask[lane / 32 + 4 * block] >> lane % 32 & 1) continue;
            covered[block][lane][column] = true;
            uint32_t have = out[(block * 128 + lane) * 256 + column];
            double got, want = expected(&p, m, n);
            float f;
            memcpy(&f, &have, 4);
            got = p.d == 1 ? (double)f : p.d == 0 ? half_value(have) : (double)(int32_t)have;
            if (got != want && !bad++) printf("  first: m %d n %d is %g, expected %g\n", m, n, got, want);
        }
    CHECK(!bad, "%s: %d elements differ", what, bad);
    for (int b = bad = 0; b < p.blocks; b++)
        for (int lane = 0; lane < 128; lane++)
            for (int c = 0; c < 256; c++)
                if (!covered[b][lane][c])
                    bad += out[(b * 128 + lane) * 256 + c] != images[b].cell[lane][D_COLUMN + c];
    CHECK(!bad, "%s: %d cells beside D are changed", what, bad);
}

static int one_of(const int *from, int n) { return from[random32() % (uint32_t)n]; }

/* A problem of this kind, all that may be chosen drawn by chance. */
static problem draw(int kind, int blocks, int m, int n) {
    static const int widths[] = {0, 32, 64, 128}, narrow[] = {E4M3, E5M2, E2M3, E3M2, E2M1};
    problem p = {.kind = kind, .blocks = blocks, .m = m, .n = n, .d = 1, .adds = random32() % 2};
    bool scaled = kind >= K_MXF8F6F4;
    switch (kind) {
    case K_F16:
        p.a = p.b = random32() % 2 ? F16 : BF16;
        if (p.a == F16) p.d = random32() % 2;
        break;
    case K_TF32: p.a = p.b = TF32; break;
    case K_I8: p.a = random32() % 2 ? S8 : U8, p.b = random32() % 2 ? S8 : U8, p.d = 2; break;
    case K_F8F6F4: p.d = random32() % 2; /* fall through */
    case K_MXF8F6F4: p.a = one_of(narrow, 5), p.b = one_of(narrow, 5); break;
    default: p.a = p.b = E2M1;
    }
    p.a_in_memory = random32() % 4 == 0;
    for (int k = 0; k < 2; k++) {
        int lines = (k ? n : m) / blocks, bytes = kind == K_TF32 ? 4 : kind == K_F16 ? 2 : 1;
        p.swizzle[k] = one_of(widths, 4);
        p.trans[k] = kind < K_MXF4 && random32() % 3 == 0 && !(k == 0 && p.a_in_memory);
        if (kind == K_TF32 && p.trans[k] && p.swizzle[k]) p.swizzle[k] = 128;
        if (p.trans[k] && bytes == 1 && k && n % (16 * blocks)) p.trans[k] = false;
        /* whole rows of the swizzle */
        while (p.trans[k] && p.swizzle[k] && lines * bytes % p.swizzle[k]) p.trans[k] = false;
        p.negative[k] = kind != K_I8 && random32() % 4 == 0;
    }
    if (scaled) {
        p.vectors = kind == K_MXF8F6F4 ? 1 : kind == K_MXF4 ? 2 : random32() % 2 ? 2 : 4;
        p.ue4m3 = p.vectors == 4 && random32() % 2;
        for (int k = 0; k < 2; k++)
            p.scale_id[k] = p.vectors == 1   ? (int)(random32() % 4)
                            : p.vectors == 2 ? (int)(random32() % 2) * 2
                                             : 0;
    } else {
        p.masked = random32() % 4 == 0;
        if (p.adds && (kind == K_F16 || kind == K_TF32) && p.d == 1 && random32() % 3 == 0)
            p.scale_d = 1 + (int)(random32() % 4);
        if (blocks == 1 && m == 64) p.lane = random32() % 2 ? 16 : 0;
    }
    return p;
}

static void test_products(void) {
    static const struct { int blocks, m; } sizes[] = {{1, 128}, {1, 64}, {2, 256}, {2, 128}};
    for (int kind = 0; kind <= K_MXF4NVF4; kind++)
        for (int s = 0; s < 4; s++)
            for (int turn = 0; turn < 3; turn++) {
                int blocks = sizes[s].blocks, m = sizes[s].m, step = kind == K_I8 ? 32 : 16 * blocks;
                int n = turn == 0 ? 256 : step * (1 + (int)(random32() % (uint32_t)(128 / step)));
                if (turn == 1 && blocks == 1 && kind != K_I8) n -= 8;
                if (kind >= K_MXF8F6F4 && (m == 64 || (blocks == 2 && m == 128))) continue;
                test_product(draw(kind, blocks, m, n));
            }
    /* .ws: 32, 64, 128 rows */
    for (int m = 32; m <= 128; m *= 2)
        for (int kind = K_F16; kind <= K_I8; kind++) {
            problem p = draw(kind, 1, m, 64 << random32() % 3);
            p.ws = true;
            p.masked = p.scale_d = p.lane = 0;
            p.a_in_memory = p.a_in_memory && m == 128;
            test_product(p);
        }
    /* sparse A */
    for (int kind = K_F16; kind <= K_MXF4NVF4; kind++)
        for (int blocks = 1; blocks <= 2; blocks++) {
            problem p = draw(kind, blocks, 128 * blocks, 32 * blocks * (1 + (int)(random32() % 4)));
            p.sparse = true;
            p.trans[0] = p.trans[1] = false;
            if (p.swizzle[1] == 32) p.swizzle[1] = 64; /* 64 bytes of B along K */
            test_product(p);
        }
}

/* --- sums ----------------------------------------------------------------------------------------- */

/* One element, worked out by hand: terms are cut towards zero to 25 bits behind the point of the largest exponent,
 * their sum to the 23 bits of an f32, or rounded to an f16. d and the products a[z] b[z], z < count, others 0. */
static void test_sum(int kind, int format, double d, const double (*factors)[2], int count, double want) {
    static uint32_t in[IMAGE / 4 + 128];
    uint8_t *bytes = (uint8_t *)in;
    int words = IMAGE / 4 + 128, bits = formats[format].bits;
    memset(in, 0, sizeof in);
    for (int z = 0; z < count; z++)
        for (int which = 0; which < 2; which++) {
            int e;
            double v = factors[z][which], m = frexp(fabs(v), &e);
            int least = 1 - formats[format].bias, mantissa = formats[format].mantissa,
                field = e - 1 + formats[format].bias;
            uint32_t code = v == 0      ? 0
                            : field < 1 ? (uint32_t)ldexp(m, e - least + mantissa)
                                        : (uint32_t)field << mantissa
                                              | ((uint32_t)ldexp(m, mantissa + 1) & ((1u << mantissa) - 1));
            code |= (uint32_t)(v < 0) << (bits - 1);
            for (int line = 0; line < (which ? 8 : 128); line++)
                set_bits(bytes, place(false, 0, bits, line, z, 128, 256) + (which ? B_AT * 8 : 0), bits,
                         code);
        }
    for (int lane = 0; lane < 128; lane++) in[IMAGE / 4 + lane] = float_bits(d);
    begin(1, words, 128, 32);
    put("mov.u32 r6, r0;\ncopy: mul.wide.u32 d10, r6, 4; add.u64 d10, d10, d0; ld.global.b32 r7, [d10]; "
        "shl.b32 r8, r6, "
        "2; add.u32 r8, r8, r31; st.shared.b32 [r8], r7; add.u32 r6, r6, 128; setp.lt.u32 p2, r6, %d; @p2 "
        "bra copy;\n",
        IMAGE / 4);
    for (int c = 0; c < 8; c++) load_cells(1, c, IMAGE / 4);
    put("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\nsetp.eq.u32 p4, "
        "r0, r0;\n"
        "@!p0 bra issued;\ntcgen05.fence::after_thread_sync;\nshr.u32 r6, r31, 4; cvt.u64.u32 d3, r6; "
        "add.u64 d4, d3, "
        "0x%llx; add.u64 d5, d3, 0x%llx;\ntcgen05.mma.cta_group::1.kind::%s [r4], d4, d5, 0x%x, p4;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [r30];\nissued:\n"
        "wait: mbarrier.try_wait.parity.shared::cta.b64 p2, [r30], 0; @!p2 bra wait;\n"
        "tcgen05.fence::after_thread_sync;\n",
        8ull << 16 | 16ull << 32 | 1ull << 46,
        (unsigned long long)B_AT >> 4 | 8ull << 16 | 16ull << 32 | 1ull << 46, kinds[kind],
        1u << 4 | (unsigned)formats[format].code << 7 | (unsigned)formats[format].code << 10 | 1u << 17
            | 8u << 24);
    store_cells(1, 0, 0);
    end(1, 32);
    uint32_t *out = go("a sum", 1, in, (size_t)words, 128, IMAGE);
    float f = 0;
    for (int lane = 0; out && lane < 128; lane += 127) {
        memcpy(&f, &out[lane], 4);
        CHECK((double)f == want, "%s %s: d = %g gives %.9g, expected %.9g", kinds[kind], formats[format].name,
              d, (double)f, want);
    }
}

static void test_sums(void) {
    static const double quarters[][2] = {{0.75, 1}, {0.75, 1}, {0.75, 1}},
                        minus[][2] = {{-0.75, 1}, {0.75, -1}, {-0.75, 1}},
                        half[][2] = {{-4096, 4096}, {0.5, 1}},
                        quarter[][2] = {{-4096, 4096}, {0.25, 1}, {0.25, 1}},
                        kept[][2] = {{-256, 256}, {0.001953125, 1}},
                        lost[][2] = {{-256, 256}, {0.001953125, 0.5}},
                        far[][2] = {{0x1p-60, 0x1p-60}, {1, 1}};
    test_sum(K_F16, F16, 0x1p25, quarters, 3,
             0x1p25); /* each is cut to a multiple of 1: exactly it were 2^25 + 4 */
    test_sum(K_F16, F16, -0x1p25, minus, 3, -0x1p25);
    test_sum(K_F16, F16, 0x1p24, half, 2, 0.5); /* the 25th bit is there: with 24 it were 0 */
    test_sum(K_F16, F16, 0x1p24, quarter, 3, 0);
    test_sum(K_F16, BF16, 0x1p24, half, 2, 0.5);
    test_sum(K_F16, BF16, 0x1p-120, far, 2, 1);
    test_sum(K_TF32, TF32, 0x1p24, half, 2, 0.5);
    test_sum(K_TF32, TF32, 0x1p24, quarter, 3, 0);
    test_sum(K_F8F6F4, E4M3, 0x1p16, kept, 2,
             0x1p-9); /* 8-bit floats lose no more than others, unlike wgmma's */
    test_sum(K_F8F6F4, E4M3, 0x1p16, lost, 2, 0);
}

/* A register of a load is touched before wait::ld: the builder of ptxgen would not write this. */
static void test_early_touch(void) {
    static const char *const touch[] = {"", "st.global.b32 [d1], r600;\n", "mov.u32 r600, 1;\n"};
    for (int k = 0; k < 3; k++) {
        begin(1, 1, 1, 32);
        put("mov.u32 r600, 1; tcgen05.st.sync.aligned.32x32b.x1.b32 [r5], {r600}; "
            "tcgen05.wait::st.sync.aligned;\n"
            "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r600}, [r5];\n%stcgen05.wait::ld.sync.aligned;\n"
            "@p0 st.global.b32 [d1], r600;\n",
            touch[k]);
        end(1, 32);
        handle m = load(text), f = function(m, "k");
        dptr to = alloc(4);
        void *params[] = {&to, &to};
        report_clear();
        int code = run(f, 1, 128, 0, params);
        findings();
        CHECK(!code && (k ? strstr(found, "async-read:") == found : !*found), "early touch %d: gives %d: %s",
              k, code, found);
        report_clear();
        cuMemFree_v2_(to);
        cuModuleUnload_(m);
    }
}

int main(int argc, char **argv) {
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    sim_open(argc, argv);
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)state);
    state = state * 0x9e3779b97f4a7c15u | 1;
    test_shapes();
    test_products();
    test_sums();
    test_early_touch();
    return sim_close();
}
