/* tcgen05.c - operations on tensor memory that one thread starts: tcgen05.mma, cp, shift and commit.
 *
 * Layouts and descriptors: PTX ISA, "TensorCore 5th Generation Family Instructions", whose figures NVIDIA/cutlass
 * has as CuTe layouts (include/cute/atom/mma_traits_sm100.hpp, copy_traits_sm100.hpp,
 * arch/mma_sm100_desc.hpp). What these leave open is refused; README.md lists it. Sums: tensor_sum.c. */
#include "async.h"
#include "tensor_memory.h"
#include "arith.h"
#include <stdarg.h>

enum { MOST_K = 128, MOST_N = 256, SLICE = 16, ALL_GROUPS = 0xff };

/* --- the instruction descriptor ----------------------------------------------------------------- */

/* The layout of D in tensor memory. In a pair of blocks, the even one has the first half of M. */
typedef enum layout {
    L_WHOLE,   /* row m: lane m */
    L_SPLIT,   /* 64 rows: lane 32 (m / 16) + m % 16 */
    L_HALVES,  /* 64 rows: lane m, of the second half of N lane m + 64 */
    L_QUARTERS /* 32 rows: lane m + 32 (n / (N / 4)) */
} layout;

typedef struct product {
    const sim_tcgen05 *o;
    sim_tensor t;           /* types, K, scale factors, the rule of its sums */
    uint32_t m, n, k, rows; /* rows: of M in one block */
    uint8_t layout, selector;
    uint8_t scale_id[2];
    bool a_trans, b_trans, a_negative, b_negative;
} product;

static uint32_t field(uint64_t x, uint32_t low, uint32_t bits) {
    return (uint32_t)(x >> low) & ((1u << bits) - 1);
}

typedef struct reader {
    sim_warp *w;
    const sim_ins *ins;
    uint32_t lane, bits;
} reader;

static bool wrong_field(const reader *r, const char *name, uint32_t low, uint32_t bits, const char *want) {
    return sim_tensor_fault(r->w, r->ins, r->lane, "instruction-descriptor",
                            "0x%08x: %s (bits %u to %u) is %u; %s", r->bits, name, low, low + bits - 1,
                            field(r->bits, low, bits), want);
}

static bool is_zero(const reader *r, uint32_t low, uint32_t bits) {
    return !field(r->bits, low, bits) || wrong_field(r, "a reserved field", low, bits, "it has to be 0");
}

static uint8_t element(uint32_t kind, uint32_t code) {
    static const uint8_t narrow[8] = {E_E4M3, E_E5M2, E_NONE, E_E2M3, E_E3M2, E_E2M1_BYTE, E_NONE, E_NONE};
    switch (kind) {
    case TK_F16: return code == 0 ? E_F16 : code == 1 ? E_BF16 : E_NONE;
    case TK_TF32: return code == 2 ? E_TF32 : E_NONE;
    case TK_I8: return code == 0 ? E_U8 : code == 1 ? E_S8 : E_NONE;
    case TK_F8F6F4:
    case TK_MXF8F6F4: return narrow[code];
    default: return code == 1 ? E_E2M1 : E_NONE;
    }
}

static bool block_scaled(const sim_tcgen05 *o) { return o->kind >= TK_MXF8F6F4; }

static bool read_types(const reader *r, const sim_tcgen05 *o, product *p) {
    uint32_t b_bits = o->kind >= TK_MXF4 ? 2 : 3;
    p->t.a.type = element(o->kind, field(r->bits, 7, 3));
    p->t.b.type = element(o->kind, field(r->bits, 10, b_bits));
    if (!p->t.a.type) return wrong_field(r, "the type of A", 7, 3, "this kind has no such type");
    if (!p->t.b.type) return wrong_field(r, "the type of B", 10, b_bits, "this kind has no such type");
    if (o->kind == TK_F16 && p->t.a.type != p->t.b.type)
        return wrong_field(r, "the type of B", 10, 3, "A and B have to be both f16 or both bf16");
    if (o->kind >= TK_MXF4 && !is_zero(r, 12, 1)) return false;
    if (block_scaled(o)) {
        p->t.d.type = E_F32;
        return true;
    }
    uint32_t d = field(r->bits, 4, 2);
    bool half = (o->kind == TK_F16 && p->t.a.type == E_F16) || o->kind == TK_F8F6F4;
    if (o->kind == TK_I8 ? d != 2 : d != 1 && !(d == 0 && half))
        return wrong_field(r, "the type of D", 4, 2,
                           o->kind == TK_I8 ? "it has to be 2 (s32)"
                           : half           ? "it has to be 0 (f16) or 1 (f32)"
                                            : "it has to be 1 (f32)");
    p->t.d.type = d == 0 ? E_F16 : d == 1 ? E_F32 : E_S32;
    return true;
}

static bool read_scales(const reader *r, const sim_tcgen05 *o, product *p) {
    static const char *const even = "with two factors along K it has to be 0 or 2", *const none =
                                                                                        "it has to be 0";
    uint32_t ue8m0 = field(r->bits, 23, 1);
    p->scale_id[0] = (uint8_t)field(r->bits, 29, 2);
    p->scale_id[1] = (uint8_t)field(r->bits, 4, 2);
    if (!ue8m0 && (o->kind != TK_MXF4NVF4 || o->vectors != 4))
        return wrong_field(r, "the type of scale factors", 23, 1,
                           o->kind == TK_MXF4NVF4 ? "ue4m3 (0) needs a factor for every 16 elements"
                                                  : "it has to be 1 (ue8m0)");
    p->t.scale_type = ue8m0 ? E_UE8M0 : E_UE4M3;
    p->t.scale_vectors = o->vectors;
    for (uint32_t n = 0; n < 2; n++)
        if ((o->vectors == 2 && p->scale_id[n] & 1) || (o->vectors == 4 && p->scale_id[n]))
            return wrong_field(r, n ? "the scale factor id of B" : "the scale factor id of A", n ? 4 : 29, 2,
                               o->vectors == 2 ? even : none);
    return true;
}

/* Reads M and N, and checks that this form has them. */
static bool read_shape(const reader *r, const sim_tcgen05 *o, product *p) {
    bool scaled = block_scaled(o), pair = o->group == 2, bytes = sim_elements[p->t.b.type].bits == 8;
    p->n = field(r->bits, 17, 6) << 3;
    p->m = field(r->bits, 24, 5) << 4;
    bool good = o->ws  ? p->m == 32 || p->m == 64 || p->m == 128
                : pair ? p->m == 256 || (p->m == 128 && !(scaled && o->sparse))
                       : p->m == 128 || (p->m == 64 && !scaled);
    if (!good) return wrong_field(r, "M / 16", 24, 5, "this form has no such M");
    if (o->ws)
        good = p->n == 64 || p->n == 128 || (p->n == 256 && !o->sparse);
    else if (o->kind == TK_I8)
        good = p->n && (p->n % (pair ? 32 : 16) == 0 || (!pair && (p->n == 8 || p->n == 24)));
    else
        good = p->n && p->n % (pair ? 16 : 8) == 0;
    good &= p->n <= MOST_N;
    if (good && p->b_trans && bytes && p->n % (pair ? 32 : 16)) good = false;
    if (!good) return wrong_field(r, "N / 8", 17, 6, "this form has no such N");
    p->rows = pair ? p->m / 2 : p->m;
    p->layout = p->rows == 32                      ? L_QUARTERS
                : p->rows == 64 && (o->ws || pair) ? L_HALVES
                : p->rows == 64                    ? L_SPLIT
                                                   : L_WHOLE;
    return true;
}

/* Refuses forms whose layout no source gives. */
static bool is_known(const reader *r, const product *p) {
    const sim_tcgen05 *o = p->o;
    const char *open = NULL;
    if (o->sparse && p->rows != 128) open = "sparse A of fewer than 128 rows a block";
    if (block_scaled(o) && o->group == 2 && p->m == 128) open = "scale factors of M = 128 over two blocks";
    if (o->a_in_memory && o->ws && p->rows != 128) open = "A in tensor memory for .ws of fewer than 128 rows";
    if (!open) return true;
    return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                            "%s: this CPU driver does not know how they lie", open);
}

static bool read_instruction(sim_warp *w, const sim_ins *i, uint32_t lane, product *p) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    const reader r = {w, i, lane, sim_slot(w, o->instruction)[lane]};
    bool scaled = block_scaled(o);
    memset(p, 0, sizeof *p);
    p->o = o;
    p->selector = (uint8_t)field(r.bits, 0, 2);
    if (p->selector && (!o->sparse || scaled || (o->kind != TK_F16 && o->kind != TK_TF32) || p->selector > 1))
        return wrong_field(&r, "the sparsity selector", 0, 2,
                           o->sparse && !scaled ? "this kind has no such selector" : "it has to be 0");
    if (field(r.bits, 2, 1) != o->sparse)
        return wrong_field(&r, "the sparsity flag", 2, 1,
                           o->sparse ? "with .sp it has to be 1" : "without .sp it has to be 0");
    if (o->kind != TK_I8 && field(r.bits, 3, 1))
        return wrong_field(&r, "saturate", 3, 1, "only kind::i8 saturates");
    p->t.saturate = field(r.bits, 3, 1);
    if (!is_zero(&r, 6, 1) || !read_types(&r, o, p)) return false;
    p->a_negative = field(r.bits, 13, 1);
    p->b_negative = field(r.bits, 14, 1);
    if (o->kind == TK_I8 && field(r.bits, 13, 2))
        return wrong_field(&r, "negation", 13, 2, "integers have none");
    p->a_trans = field(r.bits, 15, 1);
    p->b_trans = field(r.bits, 16, 1);
    if (o->kind >= TK_MXF4 && field(r.bits, 15, 2))
        return wrong_field(&r, "transposition", 15, 2, "this kind takes matrices along K only");
    if (o->a_in_memory && p->a_trans)
        return wrong_field(&r, "transposition of A", 15, 1, "in tensor memory A lies along K");
    if (scaled && !read_scales(&r, o, p)) return false;
    if (!scaled && !is_zero(&r, 23, 1)) return false;
    if (scaled ? !is_zero(&r, 24, 3) : !is_zero(&r, 29, 1)) return false;
    if (scaled) {
        if (field(r.bits, 31, 1))
            return wrong_field(&r, o->kind == TK_MXF8F6F4 ? "a reserved field" : "K", 31, 1,
                               o->kind == TK_MXF8F6F4 ? "it has to be 0"
                                                      : "this CPU driver does not know K = 96");
    } else if (field(r.bits, 30, 2) && !o->ws)
        return wrong_field(&r, "the largest shift of B", 30, 2, "only .ws has one");
    if (!read_shape(&r, o, p) || !is_known(&r, p)) return false;
    uint32_t bits = o->kind == TK_F16 ? 16 : o->kind == TK_TF32 ? 32 : o->kind >= TK_MXF4 ? 4 : 8;
    p->k = 256 / bits * (o->sparse ? 2 : 1);
    p->t.sparse = o->sparse;
    p->t.m = SLICE;
    p->t.n = (uint16_t)p->n;
    p->t.k = (uint16_t)p->k;
    p->t.c = p->t.d;
    p->t.sum = sim_sum_rule(&p->t, SIM_TCGEN05);
    return true;
}

/* --- matrices in shared memory ------------------------------------------------------------------ */

typedef struct matrix {
    uint64_t start, leading, stride;
    uint32_t width;         /* bytes of the swizzle; 0: none */
    bool wide_atoms, trans; /* wide_atoms: the swizzle moves 32-byte units */
} matrix;

static bool wrong_matrix(const reader *r, uint64_t d, char which, const char *format, ...) SIM_PRINTF(4, 5);
static bool wrong_matrix(const reader *r, uint64_t d, char which, const char *format, ...) {
    char text[240];
    va_list a;
    va_start(a, format);
    vsnprintf(text, sizeof text, format, a);
    va_end(a);
    return sim_tensor_fault(r->w, r->ins, r->lane, "matrix-descriptor", "of %c, 0x%016llx: %s", which,
                            (unsigned long long)d, text);
}

/* Decodes a matrix descriptor. bits: of an element; depth: bytes along K. */
static bool read_matrix(const reader *r, uint64_t d, char which, bool trans, uint32_t bits, uint32_t depth,
                        matrix *y) {
    static const uint8_t widths[8] = {0, 128, 128, 0, 64, 0, 32, 0};
    uint32_t mode = field(d, 61, 3), base = field(d, 49, 3);
    if (field(d, 14, 2)) return wrong_matrix(r, d, which, "bits 14 to 15 are reserved and have to be 0");
    if (field(d, 30, 2)) return wrong_matrix(r, d, which, "bits 30 to 31 are reserved and have to be 0");
    if (field(d, 46, 3) != 1)
        return wrong_matrix(r, d, which, "the constant in bits 46 to 48 is %u; it has to be 1 (wgmma's is 0)",
                            field(d, 46, 3));
    if (field(d, 52, 1))
        return wrong_matrix(r, d, which,
                            "the mode of the leading dimension (bit 52) is 1, which sm_103a alone has, "
                            "and this CPU driver does not");
    if (field(d, 53, 8)) return wrong_matrix(r, d, which, "bits 53 to 60 are reserved and have to be 0");
    if (mode && !widths[mode])
        return wrong_matrix(r, d, which,
                            "the swizzle (bits 61 to 63) is %u; there are 0 (none), 1 (128 bytes, atoms of "
                            "32), 2 (128), 4 (64) and 6 (32)",
                            mode);
    *y = (matrix){(uint64_t)field(d, 0, 14) << 4,
                  (uint64_t)field(d, 16, 14) << 4,
                  (uint64_t)field(d, 32, 14) << 4,
                  widths[mode],
                  mode == 1,
                  trans};
    if (mode == 1 ? !trans || bits != 32 : trans && bits == 32 && mode)
        return wrong_matrix(r, d, which,
                            "the swizzle of 128 bytes with atoms of 32 is the one for transposed tf32, and "
                            "for nothing else; here it is %u",
                            mode);
    if (!trans && y->width && depth > y->width)
        return wrong_matrix(r, d, which,
                            "%u bytes along K are more than the %u of its swizzle; this CPU driver does not "
                            "know how they lie",
                            depth, y->width);
    uint32_t rows = mode == 1 ? 4 : y->width / 16;
    if (base) return wrong_matrix(r, d, which, "the base offset is %u; this CPU driver knows 0 only", base);
    if (rows && (y->start >> 7 & (rows - 1)))
        return wrong_matrix(r, d, which,
                            "it starts at shared address 0x%llx, %llu rows of 128 bytes into its swizzle's "
                            "pattern of %u, and its base offset is 0",
                            (unsigned long long)y->start, (unsigned long long)(y->start >> 7 & (rows - 1)),
                            rows);
    return true;
}

/* The shared address of 16 bytes: `across` is a row (transposed: an element of k), `chunk` is along k (M or N). */
static uint64_t chunk_address(const matrix *y, uint32_t across, uint32_t chunk) {
    uint64_t at = y->start, bytes = (uint64_t)chunk * 16;
    if (!y->width && !y->trans)
        at += across / 8 * y->stride + across % 8 * 16 + chunk * y->leading;
    else if (!y->width)
        at += across / 8 * y->leading + across % 8 * 16 + chunk * y->stride;
    else if (!y->trans)
        at += across / 8 * y->stride + (uint64_t)across % 8 * y->width + bytes;
    else {
        uint32_t rows = y->wide_atoms ? 4 : 8;
        at += bytes / y->width * y->leading + bytes % y->width + (uint64_t)across % rows * y->width
              + across / rows * y->stride;
    }
    if (y->wide_atoms) return at ^ (at >> 7 & 3) << 5;
    return y->width ? at ^ (at >> 7 & (y->width / 16 - 1u)) << 4 : at;
}

/* Reads a chunk in the shared memory of `b`; NULL after a fault. */
static const uint8_t *fetch_chunk(const reader *r, sim_block *b, const matrix *y, uint32_t across,
                                  uint32_t chunk, uint32_t bytes) {
    sim_warp *w = r->w;
    uint64_t at = chunk_address(y, across, chunk);
    const uint8_t *p = sim_reach(w, r->ins, r->lane, b == w->block ? at : sim_in_block(at, b->rank),
                                 SP_SHARED, bytes, SIM_READ);
    if (p)
        sim_operand_read_by(w, r->ins, r->lane, b, (uint64_t)(p - b->shared),
                            sim_tensor_pipe_of(w, r->lane)->issued);
    return p;
}

/* --- elements ----------------------------------------------------------------------------------- */

/* Converts the elements of 16 bytes to double (packed: 6- or 4-bit elements without padding). */
static uint32_t expand(uint8_t type, const uint8_t *p, bool packed, double *x) {
    const double *table = sim_byte_values(type);
    uint32_t words[4];
    switch (type) {
    case E_F16:
    case E_BF16:
        memcpy(words, p, 16);
        for (uint32_t e = 0; e < 8; e++) {
            u32 v = words[e / 2] >> e % 2 * 16 & 0xffff;
            x[e] = (double)(type == E_F16 ? H(v) : Bf(v));
        }
        return 8;
    case E_TF32:
        memcpy(words, p, 16);
        for (uint32_t e = 0; e < 4; e++) x[e] = (double)F(words[e] & 0xffffe000);
        return 4;
    case E_E2M1:
        for (uint32_t e = 0; e < 32; e++) x[e] = table[p[e / 2] >> e % 2 * 4 & 15];
        return 32;
    default:
        for (uint32_t e = 0; e < 16; e++) {
            uint32_t v = p[e];
            if (packed && type == E_E2M1_BYTE)
                v = (p[e / 2] >> e % 2 * 4 & 15u) << 2;
            else if (packed && (type == E_E2M3 || type == E_E3M2)) {
                uint32_t at = e * 6;
                v = p[at / 8] | (at % 8 > 2 ? (uint32_t)p[at / 8 + 1] << 8 : 0);
                v = v >> at % 8 & 63;
            }
            x[e] = table[v];
        }
        return 16;
    }
}

static uint32_t packed_bytes(uint8_t type) {
    return type == E_E2M1_BYTE ? 8 : type == E_E2M3 || type == E_E3M2 ? 12 : 16;
}

/* Reads `lines` rows or columns from `first` on; element (line, z) goes to out[line * line_step + z * k_step]. */
static bool fetch_matrix(const reader *r, sim_block *b, const matrix *y, uint8_t type, uint32_t first,
                         uint32_t lines, uint32_t k, double *out, uint32_t line_step, uint32_t k_step,
                         bool negative) {
    double x[32], sign = negative ? -1 : 1;
    uint32_t bytes = packed_bytes(type), per = type == E_E2M1                  ? 32
                                               : type == E_TF32                ? 4
                                               : sim_elements[type].bits == 16 ? 8
                                                                               : 16;
    uint32_t across = y->trans ? k : lines, along = y->trans ? lines : k;
    for (uint32_t c = 0; c < along; c += per)
        for (uint32_t a = 0; a < across; a++) {
            const uint8_t *p = y->trans ? fetch_chunk(r, b, y, a, (first + c) / per, bytes)
                                        : fetch_chunk(r, b, y, first + a, c / per, bytes);
            if (!p) return false;
            expand(type, p, true, x);
            double *to = out + (y->trans ? c * line_step + a * k_step : a * line_step + c * k_step);
            uint32_t step = y->trans ? line_step : k_step;
            for (uint32_t e = 0; e < per && c + e < along; e++) to[e * step] = sign * x[e];
        }
    return true;
}

/* --- matrices in tensor memory ------------------------------------------------------------------ */

typedef struct sim_tensor_room { /* buffers of one product */
    double a[SIM_TENSOR_LANES * MOST_K], stored[SIM_TENSOR_LANES * MOST_K], b[MOST_N * MOST_K],
        scaled_a[SLICE * MOST_K], c[SLICE * MOST_N];
    int32_t ea[SLICE * MOST_K], eb[MOST_N * MOST_K];
} room;

void sim_tensor_room_free(struct sim_tensor_room *r) { free(r); }

static bool cell_known(const reader *r, const sim_block *b, uint32_t lane, uint32_t column,
                       const char *what) {
    if (b->tensor->written[column][lane / 32] >> lane % 32 & 1 || !sim_option.uninitialised) return true;
    sim_report_at(r->w, r->ins, "uninitialised-read", r->lane,
                  "nothing has written lane %u of column %u of tensor memory, which is read as %s", lane,
                  column, what);
    return false;
}

/* An operand in tensor memory: checks its lane, and that its columns are allocated in each block. */
static bool operand_part(const reader *r, sim_block *b, const sim_tensor_address *at, const char *name,
                         uint32_t columns, bool half, sim_tensor_part *p) {
    uint32_t address = sim_tensor_place(r->w, at, r->lane), lane = address >> 16;
    if (lane && !(half && lane == 16))
        return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                                "%s at 0x%08x: its lane has to be 0%s, not %u", name, address,
                                half ? " or 16" : "", lane);
    *p = (sim_tensor_part){b, address & 0xffff, columns, ALL_GROUPS};
    if (half) p->groups = lane ? 0xaa : 0x55;
    return sim_tensor_allocated(r->w, r->ins, r->lane, p);
}

/* Lane and column, relative to D's first column, of an element of the block's rows. */
static void place_of(const product *p, uint32_t m, uint32_t n, uint32_t *lane, uint32_t *column) {
    uint32_t part;
    switch (p->layout) {
    case L_SPLIT:
        *lane = 32 * (m / 16) + m % 16;
        *column = n;
        return;
    case L_HALVES:
        part = p->n / 2;
        *lane = m + 64 * (n / part);
        *column = n % part;
        return;
    case L_QUARTERS:
        part = p->n / 4;
        *lane = m + 32 * (n / part);
        *column = n % part;
        return;
    default: *lane = m; *column = n;
    }
}

static uint32_t d_columns(const product *p) {
    return p->layout == L_HALVES ? p->n / 2 : p->layout == L_QUARTERS ? p->n / 4 : p->n;
}

/* Reads this block's part of A: p->rows rows of `stored` elements. */
static bool fetch_a(const reader *r, const product *p, sim_block *b, uint32_t stored, double *out) {
    const sim_tcgen05 *o = p->o;
    uint8_t type = p->t.a.type;
    uint32_t bits = sim_elements[type].bits;
    if (!o->a_in_memory) {
        matrix y;
        return read_matrix(r, sim_slot64(r->w, o->a_descriptor)[r->lane], 'A', p->a_trans, bits, 32, &y)
               && fetch_matrix(r, b, &y, type, 0, p->rows, stored, out, stored, 1, p->a_negative);
    }
    sim_tensor_part part;
    uint32_t columns = stored * bits / 32, reported = 0;
    if (!operand_part(r, b, &o->a, "A", columns, p->layout == L_SPLIT, &part)) return false;
    sim_tensor_operate(r->w, r->ins, r->lane, &part, false, 0);
    const sim_tensor_memory *t = b->tensor;
    uint32_t up = part.groups == 0xaa ? 16 : 0;
    for (uint32_t m = 0; m < p->rows; m++) {
        uint32_t lane, column, used = o->shifts && m + 1 < p->rows ? m + 1 : m;
        place_of(p, used, 0, &lane, &column);
        lane += up;
        for (uint32_t c = 0; c < columns; c += 4) {
            uint8_t bytes[16];
            for (uint32_t e = 0; e < 4; e++) {
                uint32_t v = t->cell[part.column + c + e][lane];
                if (!reported && !cell_known(r, b, lane, part.column + c + e, "A")) reported = 1;
                if (!reported && p->layout == L_HALVES && v != t->cell[part.column + c + e][lane + 64])
                    return sim_tensor_fault(
                        r->w, r->ins, r->lane, "tensor-memory",
                        "A in tensor memory: lanes %u and %u of column %u differ; both halves of the "
                        "lanes have to hold the same rows",
                        lane, lane + 64, part.column + c + e);
                memcpy(bytes + 4 * e, &v, 4);
            }
            double x[32];
            uint32_t n = expand(type, bytes, false, x);
            for (uint32_t e = 0; e < n; e++) out[m * stored + c / 4 * n + e] = p->a_negative ? -x[e] : x[e];
        }
    }
    return true;
}

/* --- sparse A ----------------------------------------------------------------------------------- */

/* The two bits of metadata of elements k and k + 1 of a row (4-bit kinds: of k to k + 3). */
static uint32_t metadata(const sim_tensor_memory *t, const product *p, uint32_t column, uint32_t m,
                         uint32_t k) {
    uint32_t lane = m, bit = k;
    switch (p->o->kind) {
    case TK_F16:
        lane = m % 8 + 8 * (k / 16) + 16 * (m / 16);
        bit = k % 16 + 16 * (m / 8 % 2);
        break;
    case TK_TF32:
        lane = m % 8 + 8 * (k / 8) + 16 * (m / 16);
        bit = 2 * (k % 8) + 16 * (m / 8 % 2);
        break;
    case TK_MXF4:
    case TK_MXF4NVF4: bit = k / 2; break;
    default: break;
    }
    return t->cell[column + bit / 32][lane] >> bit % 32 & 3;
}

static bool spread(const reader *r, const product *p, sim_block *b, const double *stored, double *a) {
    const sim_tensor_memory *t = b->tensor;
    bool words = p->o->kind == TK_F16 || p->o->kind == TK_TF32;
    uint32_t unit = p->t.a.type == E_E2M1 ? 2 : 1, half = p->k / 2, address;
    sim_tensor_part part;
    if (!operand_part(r, b, &p->o->metadata, "the metadata", words ? 1 : 2, false, &part)) return false;
    address = part.column;
    if (words && (address & 1) != p->selector)
        return sim_tensor_fault(
            r->w, r->ins, r->lane, "tensor-memory",
            "metadata in column %u with sparsity selector %u: this CPU driver knows even columns with "
            "selector 0 and odd ones with 1",
            address, p->selector);
    sim_tensor_operate(r->w, r->ins, r->lane, &part, false, 0);
    for (uint32_t m = 0; m < SIM_TENSOR_LANES; m++)
        for (uint32_t c = 0; c < part.columns; c++)
            if (!cell_known(r, b, m, address + c, "metadata")) return true;
    memset(a, 0, sizeof *a * p->rows * p->k);
    for (uint32_t m = 0; m < p->rows; m++)
        for (uint32_t j = 0; j < half; j += unit) {
            uint32_t to;
            if (p->o->kind == TK_TF32) { /* one of two elements is stored: 0100 or 1110 */
                uint32_t v = metadata(t, p, address, m, 2 * j) | metadata(t, p, address, m, 2 * j + 1) << 2;
                if (v != 4 && v != 14) goto bad;
                to = 2 * j + (v == 14);
            } else { /* two stored of every four along k */
                uint32_t q = j / unit, k = q / 2 * 4 * unit;
                uint32_t first = metadata(t, p, address, m, k),
                         second = metadata(t, p, address, m, k + 2 * unit);
                if (first >= second) goto bad;
                to = k + (q & 1 ? second : first) * unit;
            }
            for (uint32_t e = 0; e < unit; e++) a[m * p->k + to + e] = stored[m * half + j + e];
            continue;
        bad:
            return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                                    "the metadata of row %u, element %u, is no choice in rising order", m, j);
        }
    return true;
}

/* --- scale factors ------------------------------------------------------------------------------ */

/* The j-th scale factor along K of row or column x. */
static double factor(const sim_tensor_memory *t, const product *p, uint32_t which, uint32_t column,
                     uint32_t x, uint32_t j) {
    uint32_t byte = p->scale_id[which] + j;
    return sim_byte_values(p->t.scale_type)[t->cell[column + x / 32][x % 32] >> byte * 8 & 255];
}

static bool scale_part(const reader *r, const product *p, sim_block *b, uint32_t which, uint32_t count,
                       uint32_t *column) {
    sim_tensor_part part;
    const char *name = which ? "the scale factors of B" : "the scale factors of A";
    const sim_tensor_memory *t = b->tensor;
    if (!operand_part(r, b, &p->o->scale[which], name, (count + 31) / 32, false, &part)) return false;
    sim_tensor_operate(r->w, r->ins, r->lane, &part, false, 0);
    *column = part.column;
    uint32_t used = ((UINT64_C(1) << 8 * p->o->vectors) - 1) << 8 * p->scale_id[which] & UINT32_MAX;
    for (uint32_t x = 0; x < count; x++)
        for (uint32_t q = 0; q < 4; q++) {
            uint32_t at = part.column + x / 32, lane = x % 32 + 32 * q;
            if (!cell_known(r, b, lane, at, name)) return true;
            if (!((t->cell[at][lane] ^ t->cell[at][x % 32]) & used)) continue;
            return sim_tensor_fault(
                r->w, r->ins, r->lane, "tensor-memory",
                "%s: lanes %u and %u of column %u differ; all four quarters of the lanes have to hold "
                "the same",
                name, x % 32, lane, at);
        }
    return true;
}

/* Applies a scale factor, as for mma.sync: if groups are added to one term, its exponent is that of the factors. */
static void scale_one(const product *p, double *x, int32_t *e, double f) {
    int32_t more;
    sim_sum_exponents(&f, 1, p->t.scale_type == E_UE8M0 ? -127 : -6, &more);
    *x *= f;
    *e = p->t.sum.group > 1 ? more : *e + more;
}

/* --- mma ------------------------------------------------------------------------------------------ */

static double d_value(uint8_t type, uint32_t v) {
    return type == E_F32 ? (double)F(v) : type == E_F16 ? (double)H(v & 0xffff) : (double)(int32_t)v;
}

static uint32_t d_bits(const product *p, double x) {
    if (p->t.d.type == E_F32) return c32((float)x);
    if (p->t.d.type == E_F16) return h16(narrow_odd(x));
    if (p->t.saturate)
        return x > 2147483647.0 ? 0x7fffffff : x < -2147483648.0 ? 0x80000000 : (uint32_t)(int32_t)x;
    return (uint32_t)(int64_t)x;
}

/* The columns that .ws replaces by 0: one byte for each. */
static bool zero_columns(const reader *r, const product *p, uint8_t *zero) {
    const sim_tcgen05 *o = p->o;
    memset(zero, 0, MOST_N);
    if (!o->has_zero_mask) return true;
    uint64_t d = sim_slot64(r->w, o->zero_mask)[r->lane];
    if (!field(d, 39, 1)) return true;
    uint32_t parts = p->rows == 32 ? 4 : p->rows == 64 ? 2 : 1, each = p->n / parts;
    if (field(d, 56, 6))
        return sim_tensor_fault(
            r->w, r->ins, r->lane, "tensor-memory",
            "the zero-column mask 0x%016llx shifts B by %u columns, which this CPU driver does not do",
            (unsigned long long)d, field(d, 56, 6));
    for (uint32_t q = 0; q < parts; q++) {
        uint32_t drop = field(d, 8 * q, 8), runs[2] = {field(d, 48, 8) + 1, field(d, 40, 8) + 1};
        uint32_t which = field(d, 32 + q, 1), left = runs[which];
        for (uint32_t n = 0; n < each + drop; n++) {
            if (n >= drop) zero[q * each + n - drop] = (uint8_t)which;
            if (!--left) left = runs[which ^= 1];
        }
    }
    return true;
}

/* Multiplies sixteen rows of this block by columns n0 to n0 + count. */
static void multiply_slice(const reader *r, const product *p, sim_block *b, room *x, uint32_t row,
                           uint32_t n0, uint32_t count, uint32_t d_column, uint32_t d_lane, uint32_t sa) {
    const sim_tcgen05 *o = p->o;
    sim_tensor_memory *t = b->tensor;
    uint32_t thread = r->lane, lane, column, scaled = p->t.scale_vectors, block = scaled ? p->k / scaled : 0,
             k = p->k;
    bool adds = sim_pred(r->w, o->enable) >> thread & 1, reported = false;
    double *a = x->a + row * k;
    if (scaled) {
        memcpy(x->scaled_a, a, SLICE * k * sizeof *a);
        a = x->scaled_a;
        sim_sum_exponents(a, SLICE * k, p->t.sum.least_a, x->ea);
        for (uint32_t m = 0; m < SLICE; m++)
            for (uint32_t z = 0; z < k; z++)
                scale_one(p, &a[m * k + z], &x->ea[m * k + z], factor(t, p, 0, sa, row + m, z / block));
    }
    for (uint32_t m = 0; m < SLICE; m++)
        for (uint32_t n = 0; n < count; n++) {
            place_of(p, row + m, n0 + n, &lane, &column);
            lane += d_lane;
            column += d_column;
            double v = 0;
            if (adds) {
                if (!reported && !cell_known(r, b, lane, column, "D")) reported = true;
                v = d_value(p->t.d.type, t->cell[column][lane]);
                if (o->scale_d) v = ldexp(v, -o->scale_d);
            }
            x->c[m * count + n] = v;
        }
    const int32_t *const exponents[2] = {x->ea, x->eb};
    sim_tensor_products(&p->t, a, x->b, scaled ? exponents : NULL, x->c, SLICE, count, k);
    const uint32_t *list = r->w->kernel->lists + o->masks;
    for (uint32_t m = 0; m < SLICE; m++)
        for (uint32_t n = 0; n < count; n++) {
            place_of(p, row + m, n0 + n, &lane, &column);
            lane += d_lane;
            column += d_column;
            uint32_t word = lane / 32 + (o->group == 2 && b->rank & 1 ? 4 : 0);
            if (o->mask_count && sim_slot(r->w, list[word])[thread] >> lane % 32 & 1) continue;
            t->cell[column][lane] = d_bits(p, x->c[m * count + n]);
            t->written[column][lane / 32] |= 1u << lane % 32;
        }
}

/* Reads columns n0 to n0 + count of B, as [k][count], from the block or blocks that hold them. */
static bool fetch_b(const reader *r, const product *p, sim_block *const blocks[2], uint32_t n0,
                    uint32_t count, room *x, const uint8_t *zero) {
    matrix y;
    uint8_t type = p->t.b.type;
    uint32_t bits = sim_elements[type].bits, half = p->n / 2;
    if (!read_matrix(r, sim_slot64(r->w, p->o->b_descriptor)[r->lane], 'B', p->b_trans, bits,
                     p->o->sparse ? 64 : 32, &y))
        return false;
    for (uint32_t q = 0; q < p->o->group; q++) {
        uint32_t first = q * half, end = p->o->group == 2 ? first + half : p->n;
        uint32_t from = n0 > first ? n0 : first, to = n0 + count < end ? n0 + count : end;
        if (from >= to) continue;
        if (!fetch_matrix(r, blocks[q], &y, type, from - first, to - from, p->k, x->b + (from - n0), 1, count,
                          p->b_negative))
            return false;
    }
    for (uint32_t n = 0; n < count; n++)
        if (zero[n0 + n])
            for (uint32_t z = 0; z < p->k; z++) x->b[z * count + n] = 0;
    return true;
}

/* The blocks that take part, the even one first; false after a fault. */
static bool blocks_of(const reader *r, uint32_t group, sim_block *out[2]) {
    sim_block *b = r->w->block;
    const sim_cluster *c = b->cluster;
    out[0] = out[1] = b;
    if (group == 1) return sim_tensor_of_block(b) != NULL;
    uint32_t rank = b->rank ^ 1;
    if (rank >= c->size || !c->blocks[rank])
        return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                                "cta_group::2 is for pairs of blocks; the cluster has %u block%s", c->size,
                                c->size > 1 ? "s, and this one has no partner" : "");
    out[rank & 1] = c->blocks[rank];
    if (c->blocks[rank]->ended)
        return sim_tensor_fault(r->w, r->ins, r->lane, "ended-block",
                                "the other block of the pair has ended");
    return sim_tensor_of_block(out[0]) && sim_tensor_of_block(out[1]);
}

static room *room_of(sim_warp *w) {
    sim_tensor_memory *t = sim_tensor_of_block(w->block);
    if (t && !t->room) t->room = malloc(sizeof *t->room);
    if (t && t->room) return t->room;
    sim_warp_fault(w, 2);
    return NULL;
}

static bool multiply(const reader *r, const product *p) {
    const sim_tcgen05 *o = p->o;
    room *x = room_of(r->w);
    sim_block *blocks[2];
    uint8_t zero[MOST_N];
    uint32_t stored = o->sparse ? p->k / 2 : p->k, most = SIM_MAX_WIDE_B / p->k, shape;
    if (!x || !blocks_of(r, o->group, blocks) || !zero_columns(r, p, zero)) return false;
    if (!sim_tensor_issue(r->w, r->ins, r->lane)) return false;
    shape = 1u | (uint32_t)o->kind << 1 | p->m << 4 | p->n << 13 | (uint32_t)o->ws << 23
            | (uint32_t)p->t.d.type << 24;
    if (most > MOST_N) most = MOST_N;
    for (uint32_t q = 0; q < o->group; q++) {
        sim_block *b = blocks[q];
        sim_tensor_part d;
        uint32_t sa = 0, sb = 0;
        if (!operand_part(r, b, &o->d, "D", d_columns(p), p->layout == L_SPLIT, &d)) return false;
        if (!fetch_a(r, p, b, stored, o->sparse ? x->stored : x->a)) return false;
        if (o->sparse && !spread(r, p, b, x->stored, x->a)) return false;
        if (block_scaled(o) && (!scale_part(r, p, b, 0, p->rows, &sa) || !scale_part(r, p, b, 1, p->n, &sb)))
            return false;
        sim_tensor_operate(r->w, r->ins, r->lane, &d, true, shape);
        for (uint32_t n0 = 0; n0 < p->n; n0 += most) {
            uint32_t count = p->n - n0 < most ? p->n - n0 : most;
            if ((q == 0 || p->n > most || block_scaled(o)) && !fetch_b(r, p, blocks, n0, count, x, zero))
                return false;
            if (block_scaled(o)) {
                sim_sum_exponents(x->b, p->k * count, p->t.sum.least_b, x->eb);
                for (uint32_t z = 0; z < p->k; z++)
                    for (uint32_t n = 0; n < count; n++)
                        scale_one(p, &x->b[z * count + n], &x->eb[z * count + n],
                                  factor(b->tensor, p, 1, sb, n0 + n, z / (p->k / o->vectors)));
            }
            for (uint32_t row = 0; row < p->rows; row += SLICE)
                multiply_slice(r, p, b, x, row, n0, count, d.column, d.groups == 0xaa ? 16 : 0, sa);
        }
    }
    r->w->worker->counts.c.tensor_operations += 2ull * p->m * p->n * p->k;
    return true;
}

void sim_tcgen05_mma(sim_warp *w, const sim_ins *i, uint32_t m) {
    product p;
    SIM_EACH_LANE(l, m) {
        reader r = {w, i, l, 0};
        if (!read_instruction(w, i, l, &p) || !multiply(&r, &p)) return;
    }
}

/* --- cp, shift ------------------------------------------------------------------------------------ */

static void put_row(sim_block *b, uint32_t lane, uint32_t column, const uint8_t *bytes, uint32_t words) {
    for (uint32_t c = 0; c < words; c++) {
        memcpy(&b->tensor->cell[column + c][lane], bytes + 4 * c, 4);
        b->tensor->written[column + c][lane / 32] |= 1u << lane % 32;
    }
}

/* Unpacks sixteen elements of 6 or 4 bits to bytes: 4 bits go to the middle, where kind::f8f6f4 reads them. */
static void unpack(uint32_t bits, const uint8_t *p, uint8_t *out) {
    for (uint32_t e = 0; e < 16; e++) {
        uint32_t at = e * bits, v = p[at / 8] | (at % 8 + bits > 8 ? (uint32_t)p[at / 8 + 1] << 8 : 0);
        v = v >> at % 8 & ((1u << bits) - 1);
        out[e] = (uint8_t)(bits == 4 ? v << 2 : v);
    }
}

static bool copy(const reader *r, const sim_tcgen05 *o) {
    static const uint16_t rows_of[] = {128, 128, 4, 64, 64, 32};
    uint32_t rows = rows_of[o->shape - TS_128X256B],
             chunks = o->shape == TS_128X256B || o->shape == TS_4X256B ? 2 : 1,
             address = sim_tensor_place(r->w, &o->d, r->lane), lane = address >> 16;
    sim_block *blocks[2];
    matrix y;
    if (!blocks_of(r, o->group, blocks)) return false;
    if (!read_matrix(r, sim_slot64(r->w, o->a_descriptor)[r->lane], 'A', false, 8, chunks * 16, &y))
        return false;
    if (o->shape == TS_4X256B ? lane >= 32 : lane != 0)
        return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                                "the address 0x%08x: its lane has to be %s, not %u", address,
                                o->shape == TS_4X256B ? "below 32" : "0", lane);
    if (!sim_tensor_issue(r->w, r->ins, r->lane)) return false;
    for (uint32_t q = 0; q < o->group; q++) {
        sim_tensor_part part = {blocks[q], address & 0xffff, chunks * 4, ALL_GROUPS};
        if (o->shape == TS_4X256B) part.groups = lane < 16 ? 0x55 : 0xaa;
        if (!sim_tensor_allocated(r->w, r->ins, r->lane, &part)) return false;
        sim_tensor_operate(r->w, r->ins, r->lane, &part, true, 0);
        for (uint32_t row = 0; row < rows; row++) {
            uint8_t bytes[32];
            for (uint32_t c = 0; c < chunks; c++) {
                const uint8_t *p = fetch_chunk(r, blocks[q], &y, row, c, 2u * o->bits);
                if (!p) return false;
                if (o->bits == 8)
                    memcpy(bytes + 16 * c, p, 16);
                else
                    unpack(o->bits, p, bytes + 16 * c);
            }
            uint32_t to[4] = {row, row, row, row}, count = 1;
            switch (o->shape) {
            case TS_4X256B: to[0] = lane + 32 * row; break;
            case TS_64X128B_02:
                to[1] = row + 64;
                count = 2;
                break;
            case TS_64X128B_01:
                to[0] = row + row / 32 * 32;
                to[1] = to[0] + 32;
                count = 2;
                break;
            case TS_32X128B:
                for (count = 1; count < 4; count++) to[count] = row + 32 * count;
                break;
            default: break;
            }
            for (uint32_t k = 0; k < count; k++) put_row(blocks[q], to[k], part.column, bytes, chunks * 4);
        }
    }
    return true;
}

void sim_tcgen05_cp(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        reader r = {w, i, l, 0};
        if (!copy(&r, sim_tcgen05_of(i))) return;
    }
}

/* Shifts eight columns: lanes 1 to 31 of a quarter move down by one. No source says whether the other quarters shift
 * too, or what the last lane holds: these count as unwritten. */
static bool shift(const reader *r, const sim_tcgen05 *o) {
    uint32_t address = sim_tensor_place(r->w, &o->d, r->lane), lane = address >> 16, first = address & 0xffff;
    sim_block *blocks[2];
    if (!blocks_of(r, o->group, blocks)) return false;
    if (lane % 32 || lane >= SIM_TENSOR_LANES)
        return sim_tensor_fault(r->w, r->ins, r->lane, "tensor-memory",
                                "the address 0x%08x: its lane has to be 0, 32, 64 or 96, not %u", address,
                                lane);
    if (!sim_tensor_issue(r->w, r->ins, r->lane)) return false;
    for (uint32_t q = 0; q < o->group; q++) {
        sim_tensor_part part = {blocks[q], first, 8, ALL_GROUPS};
        if (!sim_tensor_allocated(r->w, r->ins, r->lane, &part)) return false;
        sim_tensor_operate(r->w, r->ins, r->lane, &part, true, SIM_TENSOR_IN_LINE);
        sim_tensor_memory *t = blocks[q]->tensor;
        for (uint32_t c = first; c < first + 8; c++) {
            memmove(&t->cell[c][lane], &t->cell[c][lane + 1], 31 * sizeof t->cell[0][0]);
            for (uint32_t k = 0; k < 4; k++) t->written[c][k] = k == lane / 32 ? t->written[c][k] >> 1 : 0;
        }
    }
    return true;
}

void sim_tcgen05_shift(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        reader r = {w, i, l, 0};
        if (!shift(&r, sim_tcgen05_of(i))) return;
    }
}

/* --- commit --------------------------------------------------------------------------------------- */

/* i->c: slot of the multicast mask, or UINT32_MAX */
void sim_tcgen05_commit(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_cluster *c = w->block->cluster;
    SIM_EACH_LANE(l, m) {
        sim_tensor_pipe *p = sim_tensor_pipe_of(w, l);
        sim_clock_entry counts[4];
        if (!p) return;
        p->committed = p->issued;
        uint32_t n = sim_tensor_counts(w, l, true, counts), mask = 0;
        if (i->c == UINT32_MAX) {
            if (!sim_mbarrier_signal(w, i, l, NULL, counts, n)) return;
            continue;
        }
        mask = sim_slot(w, i->c)[l] & 0xffff;
        if (!mask || mask >> c->size) {
            sim_tensor_fault(w, i, l, "multicast-mask", "the mask 0x%04x names %s; the cluster has %u", mask,
                             mask ? "blocks that do not exist" : "no block", c->size);
            return;
        }
        for (uint32_t r = 0; r < c->size; r++)
            if (mask >> r & 1 && !sim_mbarrier_signal(w, i, l, c->blocks[r], counts, n)) return;
    }
}
