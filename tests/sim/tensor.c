/* tensor.c - matrix instructions: ldmatrix, stmatrix, movmatrix, mma, wmma, wgmma.
 *
 * A warp's fragments are expanded to matrices of doubles, multiplied by plain loops that the compiler
 * vectorises, and packed again. Products of the formats here are exact in double, and so are the
 * integers. Sums of floats are those of the described chip (tensor_sum.c); with the option "exact-sums" a sum
 * starts with C, adds products in order of k in double and is rounded once to D's type. f64 rounds each step, as
 * its fma does.
 *
 * With g = lane / 4, t = lane % 4 and `per` elements in a register, register r of
 *   A holds row g + 8 (r & 1), columns t per + 4 per (r >> 1) + 0, 1, ...; of 8 rows: columns t per + 4 per r
 *   B holds column g, rows t per + 4 per r + 0, 1, ...
 *   C and D hold row g + 8 (e >> 1 & 1), column 2 t + (e & 1), where e is the element's index
 * and larger matrices (wmma, wgmma) are sequences of such tiles. */
#include "tensor.h"
#include "async.h"
#include "tensor_memory.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")
#endif
#include "arith.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

enum { MAX_PER = 8 };

const sim_element_info sim_elements[E_COUNT] = {
    [E_NONE] = { "", 0 },           [E_F16] = { "f16", 16 },    [E_BF16] = { "bf16", 16 },
    [E_TF32] = { "tf32", 32 },      [E_F32] = { "f32", 32 },    [E_F64] = { "f64", 64 },
    [E_S32] = { "s32", 32 },        [E_S8] = { "s8", 8 },       [E_U8] = { "u8", 8 },
    [E_S4] = { "s4", 4 },           [E_U4] = { "u4", 4 },       [E_B1] = { "b1", 1 },
    [E_E4M3] = { "e4m3", 8 },       [E_E5M2] = { "e5m2", 8 },   [E_E3M2] = { "e3m2", 8 },
    [E_E2M3] = { "e2m3", 8 },       [E_E2M1] = { "e2m1", 4 },   [E_E2M1_BYTE] = { "e2m1 in a byte", 8 },
    [E_UE8M0] = { "ue8m0", 8 },     [E_UE4M3] = { "ue4m3", 8 }, [E_B16] = { "b16", 16 },
    [E_B8] = { "b8", 8 },           [E_B8X16] = { "b8x16", 8 }, [E_B6X16] = { "b6x16_p32", 8 },
    [E_B4X16] = { "b4x16_p64", 8 },
};

/* --- elements --------------------------------------------------------------------------------- */

static double byte_values[E_COUNT][256];
bool sim_tensor_avx2;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* The value of a format without infinity or NaN, with the given widths of exponent and mantissa. */
static double plain_float(uint32_t x, int exponent, int mantissa, int bias)
{
    uint32_t e = x >> mantissa & ((1u << exponent) - 1), m = x & ((1u << mantissa) - 1);
    double v = e ? ldexp((double)(m + (1u << mantissa)), (int)e - bias - mantissa)
                 : ldexp((double)m, 1 - bias - mantissa);
    return x >> (exponent + mantissa) & 1 ? -v : v;
}

static void prepare(void)
{
    for (uint32_t x = 0; x < 256; x++) {
        byte_values[E_S8][x] = (int8_t)x;
        byte_values[E_U8][x] = x;
        byte_values[E_S4][x] = (int)((x & 15) ^ 8) - 8;
        byte_values[E_U4][x] = x & 15;
        byte_values[E_E4M3][x] = unpack_small(x, &small_e4m3);
        byte_values[E_E5M2][x] = unpack_small(x, &small_e5m2);
        byte_values[E_E3M2][x] = plain_float(x & 63, 3, 2, 3);
        byte_values[E_E2M3][x] = plain_float(x & 63, 2, 3, 1);
        byte_values[E_E2M1][x] = plain_float(x & 15, 2, 1, 1);
        byte_values[E_E2M1_BYTE][x] = plain_float(x >> 2 & 15, 2, 1, 1);
        byte_values[E_UE8M0][x] = x == 255 ? (double)NAN : ldexp(1, (int)x - 127);
        byte_values[E_UE4M3][x] = unpack_small(x & 127, &small_e4m3);
    }
    byte_values[E_E4M3][0x7f] = byte_values[E_E4M3][0xff] = byte_values[E_UE4M3][0x7f] = (double)NAN;
    byte_values[E_UE4M3][0xff] = (double)NAN;
#if defined(__x86_64__) && defined(__GNUC__)
    const char *wish = getenv("PTXSIM_LEVEL");
    sim_tensor_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !(wish && !strcmp(wish, "base"));
#endif
}

static inline double tf32_value(uint32_t x) { return (double)F(x & 0xffffe000); }

static uint32_t per_register(uint8_t type)
{
    return sim_elements[type].bits >= 32 ? 1 : 32u / sim_elements[type].bits;
}

/* Expands one register of every lane to its elements. */
static SIM_INLINE void expand_by(uint8_t type, const uint32_t *s, double out[MAX_PER][SIM_LANES])
{
    const double *table = byte_values[type];
    switch (type) {
    case E_F16:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = (double)H(s[l] & 0xffff);
        for (uint32_t l = 0; l < SIM_LANES; l++) out[1][l] = (double)H(s[l] >> 16);
        break;
    case E_BF16:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = (double)F(s[l] << 16);
        for (uint32_t l = 0; l < SIM_LANES; l++) out[1][l] = (double)F(s[l] & 0xffff0000);
        break;
    case E_TF32:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = tf32_value(s[l]);
        break;
    case E_F32:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = (double)F(s[l]);
        break;
    case E_S32:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = (double)(s32)s[l];
        break;
    case E_F64: {
        const uint64_t *x = (const uint64_t *)(const void *)s;
        for (uint32_t l = 0; l < SIM_LANES; l++) out[0][l] = D(x[l]);
        break;
    }
    case E_S4:
    case E_U4:
    case E_E2M1:
        for (uint32_t e = 0; e < 8; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) out[e][l] = table[s[l] >> e * 4 & 15];
        break;
    default:
        for (uint32_t e = 0; e < 4; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) out[e][l] = table[s[l] >> e * 8 & 255];
        break;
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void expand_avx2(uint8_t type, const uint32_t *s,
                                                            double out[MAX_PER][SIM_LANES])
{ expand_by(type, s, out); }
#endif

static void expand(uint8_t type, const uint32_t *s, double out[MAX_PER][SIM_LANES])
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (sim_tensor_avx2) {
        expand_avx2(type, s, out);
        return;
    }
#endif
    expand_by(type, s, out);
}

/* The bits of a result of this type. */
static uint64_t pack(uint8_t type, double x, bool saturate)
{
    switch (type) {
    case E_F16: return h16(narrow_odd(x));
    case E_F32: return c32((float)x);
    case E_F64: return isnan(x) ? UINT64_C(0x7ff8000000000000) : UD(x);
    default: return saturate ? clamp_s32((s64)x) : (uint32_t)(s64)x;
    }
}

/* --- where an element lies -------------------------------------------------------------------- */

typedef struct place {
    uint32_t row, col;
} place;

/* The first element of register r in lane 0. The register's other elements follow along k; those of lane l are
 * l / 4 rows (B: columns) and l % 4 * per elements of k further on. */
static inline place corner_a(uint32_t rows, uint32_t k, uint32_t per, uint32_t r)
{
    if (rows == 8) return (place){ 0, 4 * r * per };
    uint32_t block = k / (2 * per); /* registers of 16 rows */
    uint32_t tile = r / block, in = r % block;
    return (place){ tile * 16 + 8 * (in & 1), 4 * (in >> 1) * per };
}

static inline place corner_b(uint32_t k, uint32_t per, uint32_t r)
{
    uint32_t block = k / (4 * per); /* registers of 8 columns */
    return (place){ 4 * (r % block) * per, r / block * 8 };
}

/* Element e of lane 0; that of lane l is l / 4 rows and l % 4 * 2 columns further on. */
static inline place corner_c(uint32_t rows, uint32_t columns, uint32_t e)
{
    uint32_t each = rows == 8 ? 2 : 4, tile = e / each, in = e % each;
    return (place){ tile / (columns / 8) * 16 + 8 * (in >> 1), tile % (columns / 8) * 8 + (in & 1) };
}

static inline place place_a(uint32_t rows, uint32_t k, uint32_t per, uint32_t r, uint32_t l)
{
    place p = corner_a(rows, k, per, r);
    return (place){ p.row + (l >> 2), p.col + (l & 3) * per };
}

static inline place place_b(uint32_t k, uint32_t per, uint32_t r, uint32_t l)
{
    place p = corner_b(k, per, r);
    return (place){ p.row + (l & 3) * per, p.col + (l >> 2) };
}

static inline place place_c(uint32_t rows, uint32_t columns, uint32_t e, uint32_t l)
{
    place p = corner_c(rows, columns, e);
    return (place){ p.row + (l >> 2), p.col + (l & 3) * 2 };
}

/* m8n8k4 of f16: lanes 4q..4q+3 and 16+4q..16+4q+3 compute product q. */
static inline place place_quad_c(uint8_t type, uint32_t e, uint32_t l)
{
    uint32_t half = l >> 4 & 1;
    if (type == E_F16) return (place){ (l & 3) + 4 * half, e };
    return (place){ (l & 1) + (e & 2) + 4 * half, (e & 4) + (l & 2) + (e & 1) };
}

/* --- fragments -------------------------------------------------------------------------------- */

/* Registers that hold each element once; wmma's f16 fragments repeat them in further registers. */
static uint32_t needed(const sim_fragment *f, uint32_t elements)
{
    uint32_t n = elements / (SIM_LANES * per_register(f->type));
    return n < f->regs ? n : f->regs;
}

static const uint32_t *slot_of(const sim_warp *w, const sim_fragment *f, uint32_t r)
{
    return sim_slot(w, w->kernel->lists[f->list + r]);
}

static void read_a(const sim_warp *w, const sim_fragment *f, uint32_t rows, uint32_t k, double *a)
{
    double x[MAX_PER][SIM_LANES];
    uint32_t per = per_register(f->type), n = needed(f, rows * k);
    for (uint32_t r = 0; r < n; r++) {
        place p = corner_a(rows, k, per, r);
        expand(f->type, slot_of(w, f, r), x);
        for (uint32_t g = 0; g < 8; g++) {
            double *row = a + (p.row + g) * k + p.col;
            for (uint32_t l = 0; l < 4; l++)
                for (uint32_t e = 0; e < per; e++) row[l * per + e] = x[e][g * 4 + l];
        }
    }
}

static void read_b(const sim_warp *w, const sim_fragment *f, uint32_t k, uint32_t columns, double *b)
{
    double x[MAX_PER][SIM_LANES];
    uint32_t per = per_register(f->type), n = needed(f, columns * k);
    for (uint32_t r = 0; r < n; r++) {
        place p = corner_b(k, per, r);
        expand(f->type, slot_of(w, f, r), x);
        for (uint32_t l = 0; l < 4; l++)
            for (uint32_t e = 0; e < per; e++) {
                double *row = b + (p.row + l * per + e) * columns + p.col;
                for (uint32_t g = 0; g < 8; g++) row[g] = x[e][g * 4 + l];
            }
    }
}

static void read_c(const sim_warp *w, const sim_fragment *f, uint32_t rows, uint32_t columns, double *c)
{
    double x[MAX_PER][SIM_LANES];
    uint32_t per = per_register(f->type);
    for (uint32_t r = 0; r < f->regs; r++) {
        expand(f->type, slot_of(w, f, r), x);
        for (uint32_t e = 0; e < per; e++) {
            place p = corner_c(rows, columns, r * per + e);
            for (uint32_t g = 0; g < 8; g++)
                for (uint32_t l = 0; l < 4; l++)
                    c[(p.row + g) * columns + p.col + l * 2] = x[e][g * 4 + l];
        }
    }
}

static void write_register(sim_warp *w, const sim_fragment *f, uint32_t r, const double x[2][SIM_LANES],
                           bool saturate, uint32_t m)
{
    uint32_t *d = (uint32_t *)(uintptr_t)slot_of(w, f, r);
    uint64_t *wide = (uint64_t *)(void *)d;
    uint32_t out[SIM_LANES];
    switch (f->type) {
    case E_F64: SIM_EACH_LANE(l, m) wide[l] = pack(E_F64, x[0][l], false); return;
    case E_F16:
        for (uint32_t l = 0; l < SIM_LANES; l++)
            out[l] = h16(narrow_odd(x[0][l])) | h16(narrow_odd(x[1][l])) << 16;
        break;
    case E_F32:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[l] = c32((float)x[0][l]);
        break;
    default:
        for (uint32_t l = 0; l < SIM_LANES; l++) out[l] = (uint32_t)pack(E_S32, x[0][l], saturate);
    }
    if (m == SIM_FULL)
        memcpy(d, out, sizeof out);
    else
        SIM_EACH_LANE(l, m) d[l] = out[l];
}

static void write_d(sim_warp *w, const sim_fragment *f, uint32_t rows, uint32_t columns, const double *c,
                    bool saturate, uint32_t m)
{
    double x[2][SIM_LANES];
    uint32_t per = per_register(f->type);
    for (uint32_t r = 0; r < f->regs; r++) {
        for (uint32_t e = 0; e < per; e++) {
            place p = corner_c(rows, columns, r * per + e);
            for (uint32_t g = 0; g < 8; g++)
                for (uint32_t l = 0; l < 4; l++)
                    x[e][g * 4 + l] = c[(p.row + g) * columns + p.col + l * 2];
        }
        write_register(w, f, r, (const double(*)[SIM_LANES])x, saturate, m);
    }
}

/* --- products --------------------------------------------------------------------------------- */

/* c[m][n] += a[m][k] b[k][n] in order of k; n is a multiple of 8. `fused` is for f64, whose products are inexact. */
static SIM_INLINE void multiply_by(const double *restrict a, const double *restrict b, double *restrict c,
                                      uint32_t m, uint32_t n, uint32_t k, bool fused)
{
    for (uint32_t i = 0; i < m; i += 2)
        for (uint32_t j = 0; j < n; j += 8) {
            double s[8], t[8], *c0 = c + i * n + j, *c1 = c0 + n;
            const double *a0 = a + i * k, *a1 = a0 + k;
            for (uint32_t q = 0; q < 8; q++) {
                s[q] = c0[q];
                t[q] = c1[q];
            }
            for (uint32_t z = 0; z < k; z++) {
                const double *x = b + z * n + j;
                double u = a0[z], v = a1[z];
                if (fused)
                    for (uint32_t q = 0; q < 8; q++) {
                        s[q] = fma(u, x[q], s[q]);
                        t[q] = fma(v, x[q], t[q]);
                    }
                else
                    for (uint32_t q = 0; q < 8; q++) {
                        s[q] += u * x[q];
                        t[q] += v * x[q];
                    }
            }
            for (uint32_t q = 0; q < 8; q++) {
                c0[q] = s[q];
                c1[q] = t[q];
            }
        }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static void multiply_avx2(const double *a, const double *b, double *c,
                                                              uint32_t m, uint32_t n, uint32_t k)
{
    multiply_by(a, b, c, m, n, k, true);                      /* products are exact: fused or not gives the same */
}
#endif

static void multiply(const double *a, const double *b, double *c, uint32_t m, uint32_t n, uint32_t k,
                     bool rounds)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (sim_tensor_avx2) {
        multiply_avx2(a, b, c, m, n, k);
        return;
    }
#endif
    if (rounds)
        multiply_by(a, b, c, m, n, k, true);
    else
        multiply_by(a, b, c, m, n, k, false);
}

/* Before an instruction on matrices: fills the tables, once; the whole warp must be here. */
static void begin_matrix(sim_warp *w, const sim_ins *i, uint32_t m)
{
    pthread_once(&prepared, prepare);
    sim_check_whole_warp(w, i, m);
}

/* --- sparse A --------------------------------------------------------------------------------- */

/* Expands sparse A. Two bits give the position among four of a stored element (4-bit types: of a pair); tf32: four
 * bits, one of two. */
static void spread(const sim_warp *w, const sim_tensor *t, const double *stored, double *a)
{
    const uint32_t *meta = sim_slot(w, t->metadata);
    uint32_t bits = sim_elements[t->a.type].bits, unit = bits == 4 ? 2 : 1, row_units = t->k / 2 / unit;
    bool halves = bits >= 16; /* 16 bits for rows g and g + 8, or 32 for one */
    uint32_t index_bits = bits == 32 ? 4 : 2, each = (halves ? 16 : 32) / index_bits,
             words = row_units / each * (halves ? 1 : 2), first = words < 4 ? t->selector * words : 0;
    memset(a, 0, sizeof *a * 16 * t->k);
    for (uint32_t row = 0; row < 16; row++)
        for (uint32_t j = 0; j < row_units; j++) {
            uint32_t word = halves ? j / each : j / each * 2 + (row >> 3);
            uint32_t shift = j % each * index_bits + (halves ? row >> 3 << 4 : 0);
            uint32_t index = meta[(row & 7) * 4 + ((first + word) & 3)] >> shift & 3;
            uint32_t to = bits == 32 ? j * 2 + (index >> 1) : (j / 2 * 4 + index) * unit;
            for (uint32_t e = 0; e < unit; e++)
                a[row * t->k + to + e] = stored[row * (t->k / 2) + j * unit + e];
        }
}

/* --- block scales ----------------------------------------------------------------------------- */

/* Applies a scale factor to an element and its exponent; if groups are added to one term (sim_sum.group), the
 * exponent becomes that of the factors alone. */
static void scale_element(const sim_tensor *t, double *x, int32_t *e, double factor)
{
    int32_t f;
    sim_sum_exponents(&factor, 1, t->scale_type == E_UE8M0 ? -127 : -6, &f);
    *x *= factor;
    *e = t->sum.group > 1 ? f : *e + f;
}

static void scale_blocks(const sim_warp *w, const sim_tensor *t, double *a, int32_t *ea, double *b, int32_t *eb)
{
    const double *table = byte_values[t->scale_type];
    const uint32_t *sa = sim_slot(w, t->scale[0]), *sb = sim_slot(w, t->scale[1]);
    uint32_t byte_a = sim_slot(w, t->scale_byte[0])[0], byte_b = sim_slot(w, t->scale_byte[1])[0],
             thread_a = sim_slot(w, t->scale_thread[0])[0], thread_b = sim_slot(w, t->scale_thread[1])[0];
    uint32_t block = t->k / t->scale_vectors;
    for (uint32_t row = 0; row < t->m; row++)
        for (uint32_t z = 0; z < t->k; z++) {
            uint32_t lane = (row & 7) * 4 + (thread_a & 1) * 2 + (row >> 3);
            scale_element(t, &a[row * t->k + z], &ea[row * t->k + z],
                          table[sa[lane] >> ((byte_a + z / block) & 3) * 8 & 255]);
        }
    for (uint32_t z = 0; z < t->k; z++)
        for (uint32_t col = 0; col < t->n; col++)
            scale_element(t, &b[z * t->n + col], &eb[z * t->n + col],
                          table[sb[col * 4 + (thread_b & 3)] >> ((byte_b + z / block) & 3) * 8 & 255]);
}

const double *sim_byte_values(uint8_t type)
{
    pthread_once(&prepared, prepare);
    return byte_values[type];
}

void sim_tensor_products(const sim_tensor *t, double *a, double *b, const int32_t *const scaled[2], double *c,
                         uint32_t m, uint32_t n, uint32_t k)
{
    if (t->sum.fraction) sim_sum_products(&t->sum, a, b, scaled, c, m, n, k);
    else multiply(a, b, c, m, n, k, t->a.type == E_F64);
}

/* c += a b, with the instruction's rounding and scale factors. */
static void add_products(const sim_warp *w, const sim_tensor *t, double *a, double *b, double *c, uint32_t m,
                         uint32_t n, uint32_t k)
{
    int32_t ea[SIM_MAX_A], eb[SIM_MAX_B];
    const int32_t *const scaled[2] = { ea, eb };
    if (t->scale_vectors) {
        sim_sum_exponents(a, m * k, t->sum.least_a, ea);
        sim_sum_exponents(b, k * n, t->sum.least_b, eb);
        scale_blocks(w, t, a, ea, b, eb);
    }
    sim_tensor_products(t, a, b, t->scale_vectors ? scaled : NULL, c, m, n, k);
}

/* --- mma, wmma.mma ---------------------------------------------------------------------------- */

static void mma_bits(sim_warp *w, const sim_tensor *t, uint32_t m)
{
    uint32_t a[16][8], b[8][8], words = t->k / 32;
    double c[SIM_MAX_C];
    for (uint32_t r = 0; r < t->a.regs; r++) {
        const uint32_t *s = slot_of(w, &t->a, r);
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            place p = place_a(t->m, t->k, 32, r, l);
            a[p.row][p.col / 32] = s[l];
        }
    }
    for (uint32_t r = 0; r < t->b.regs; r++) {
        const uint32_t *s = slot_of(w, &t->b, r);
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            place p = place_b(t->k, 32, r, l);
            b[p.col][p.row / 32] = s[l];
        }
    }
    read_c(w, &t->c, t->m, t->n, c);
    for (uint32_t row = 0; row < t->m; row++)
        for (uint32_t col = 0; col < 8; col++)
            for (uint32_t z = 0; z < words; z++)
                c[row * 8 + col] += popc32(t->bit_and ? a[row][z] & b[col][z] : a[row][z] ^ b[col][z]);
    write_d(w, &t->d, t->m, t->n, c, false, m);
}

static void mma_quads(sim_warp *w, const sim_tensor *t, uint32_t m)
{
    double a[4][8][4] = { { { 0 } } }, b[4][4][8] = { { { 0 } } }, c[4][8][8] = { { { 0 } } },
           x[MAX_PER][SIM_LANES];
    for (uint32_t r = 0; r < 2; r++) {
        expand(E_F16, slot_of(w, &t->a, r), x);
        for (uint32_t e = 0; e < 2; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                uint32_t n = r * 2 + e, up = l >> 4 ? 4 : 0;
                if (t->a_col)
                    a[l >> 2 & 3][n + up][l & 3] = x[e][l];
                else
                    a[l >> 2 & 3][(l & 3) + up][n] = x[e][l];
            }
        expand(E_F16, slot_of(w, &t->b, r), x);
        for (uint32_t e = 0; e < 2; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                uint32_t n = r * 2 + e, up = l >> 4 ? 4 : 0;
                if (t->b_col)
                    b[l >> 2 & 3][n][(l & 3) + up] = x[e][l];
                else
                    b[l >> 2 & 3][l & 3][n + up] = x[e][l];
            }
    }
    uint32_t per = per_register(t->c.type);
    for (uint32_t r = 0; r < t->c.regs; r++) {
        expand(t->c.type, slot_of(w, &t->c, r), x);
        for (uint32_t e = 0; e < per; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                place p = place_quad_c(t->c.type, r * per + e, l);
                c[l >> 2 & 3][p.row][p.col] = x[e][l];
            }
    }
    for (uint32_t q = 0; q < 4; q++) add_products(w, t, a[q][0], b[q][0], c[q][0], 8, 8, 4);
    per = per_register(t->d.type);
    for (uint32_t r = 0; r < t->d.regs; r++) {
        for (uint32_t e = 0; e < per; e++)
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                place p = place_quad_c(t->d.type, r * per + e, l);
                x[e][l] = c[l >> 2 & 3][p.row][p.col];
            }
        write_register(w, &t->d, r, (const double(*)[SIM_LANES])x, false, m);
    }
}

void sim_mma(sim_warp *w, const sim_ins *i, uint32_t m)
{
    static const int modes[4] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
    const sim_tensor *t = sim_tensor_of(i);
    double a[SIM_MAX_A], b[SIM_MAX_B], c[SIM_MAX_C];
    begin_matrix(w, i, m);
    w->worker->counts.c.tensor_operations += 2u * t->m * t->n * t->k * (t->quads ? 4u : 1u);
    if (t->quads) {
        mma_quads(w, t, m);
        return;
    }
    if (t->a.type == E_B1) {
        mma_bits(w, t, m);
        return;
    }
    if (t->sparse) {
        double stored[SIM_MAX_A / 2];
        read_a(w, &t->a, t->m, t->k / 2u, stored);
        spread(w, t, stored, a);
    } else
        read_a(w, &t->a, t->m, t->k, a);
    read_b(w, &t->b, t->k, t->n, b);
    read_c(w, &t->c, t->m, t->n, c);
    if (t->rounding) fesetround(modes[t->rounding]);
    add_products(w, t, a, b, c, t->m, t->n, t->k);
    if (t->rounding) fesetround(FE_TONEAREST);
    write_d(w, &t->d, t->m, t->n, c, t->saturate, m);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void lane_addresses(const sim_warp *w, const sim_tensor *t, uint64_t *at)
{
    const uint32_t *narrow = sim_slot(w, t->address);
    const uint64_t *wide = sim_slot64(w, t->address);
    for (uint32_t l = 0; l < SIM_LANES; l++)
        at[l] = t->wide ? wide[l] + (uint64_t)t->offset : (uint32_t)(narrow[l] + (uint32_t)t->offset);
}

/* Reads or writes the 16 bytes at the addresses of the first `rows` lanes. */
static bool reach_rows(sim_warp *w, const sim_ins *i, const sim_tensor *t, uint32_t rows, uint32_t m,
                       sim_access access, uint8_t **row)
{
    uint64_t at[SIM_LANES];
    uint32_t lanes = rows == 32 ? SIM_FULL : (1u << rows) - 1;
    lane_addresses(w, t, at);
    if (t->space == SP_GENERIC) /* generic addresses must point to shared memory */
        for (uint32_t l = 0; l < SIM_LANES; l++) at[l] -= SIM_SHARED_WINDOW;
    for (uint32_t l = 0; l < SIM_LANES; l++) row[l] = NULL;
    return sim_reach_all(w, i, lanes & m, at, SP_SHARED, 16, 16, access, row);
}

void sim_ldmatrix(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const sim_tensor *t = sim_tensor_of(i);
    bool big = t->m == 16, packed = t->a.type == E_B6X16 || t->a.type == E_B4X16;
    uint32_t rows = (big ? 16u : 8u) * t->count, out[4][SIM_LANES] = { { 0 } };
    uint8_t *row[SIM_LANES], bytes[SIM_LANES][16] = { { 0 } };
    begin_matrix(w, i, m);
    if (!reach_rows(w, i, t, rows, m, SIM_READ, row)) return;
    for (uint32_t l = 0; l < rows; l++) {
        if (!row[l]) continue;
        if (!packed) {
            memcpy(bytes[l], row[l], 16);
            continue;
        }
        uint32_t bits = t->a.type == E_B6X16 ? 6 : 4;
        for (uint32_t e = 0; e < 16; e++) {
            uint32_t at = e * bits, two = row[l][at / 8] | (uint32_t)row[l][(at + 7) / 8] << 8;
            if (at / 8 == (at + 7) / 8) two = row[l][at / 8];
            bytes[l][e] = (uint8_t)(two >> at % 8 & ((1u << bits) - 1));
        }
    }
    for (uint32_t r = 0; r < t->d.regs; r++)
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            uint32_t g = l >> 2, s = l & 3, v;
            if (big) { /* b8: transposed, two registers for each matrix */
                const uint8_t(*p)[16] = (const uint8_t(*)[16])bytes + r / 2 * 16 + s * 4;
                uint32_t col = g + 8 * (r & 1);
                v = p[0][col] | (uint32_t)p[1][col] << 8 | (uint32_t)p[2][col] << 16
                    | (uint32_t)p[3][col] << 24;
            } else if (t->trans) {
                const uint8_t *p = bytes[r * 8 + s * 2] + g * 2, *q = bytes[r * 8 + s * 2 + 1] + g * 2;
                v = p[0] | (uint32_t)p[1] << 8 | (uint32_t)q[0] << 16 | (uint32_t)q[1] << 24;
            } else
                memcpy(&v, bytes[r * 8 + g] + s * 4, 4);
            out[r][l] = v;
        }
    for (uint32_t r = 0; r < t->d.regs; r++) {
        uint32_t *d = (uint32_t *)(uintptr_t)slot_of(w, &t->d, r);
        SIM_EACH_LANE(l, m) d[l] = out[r][l];
    }
}

void sim_stmatrix(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const sim_tensor *t = sim_tensor_of(i);
    uint8_t *row[SIM_LANES];
    begin_matrix(w, i, m);
    if (!reach_rows(w, i, t, t->count * 8u, m, SIM_WRITE, row)) return;
    for (uint32_t r = 0; r < t->count; r++) {
        const uint32_t *s = slot_of(w, &t->a, r);
        uint8_t **p = row + r * 8;
        SIM_EACH_LANE(l, m)
        {
            uint32_t g = l >> 2, q = l & 3, v = s[l];
            if (t->a.type == E_B8) { /* bytes: rows 2q and 2q + 1, columns g and g + 8 */
                for (uint32_t e = 0; e < 4; e++)
                    if (p[q * 2 + (e & 1)]) p[q * 2 + (e & 1)][g + 8 * (e >> 1)] = (uint8_t)(v >> e * 8);
            } else if (t->trans) {
                uint16_t low = (uint16_t)v, high = (uint16_t)(v >> 16);
                if (p[q * 2]) memcpy(p[q * 2] + g * 2, &low, 2);
                if (p[q * 2 + 1]) memcpy(p[q * 2 + 1] + g * 2, &high, 2);
            } else if (p[g])
                memcpy(p[g] + q * 4, &v, 4);
        }
    }
}

void sim_movmatrix(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *a = sim_slot(w, i->a);
    uint32_t out[SIM_LANES], *d = sim_slot(w, i->d);
    begin_matrix(w, i, m);
    for (uint32_t l = 0; l < SIM_LANES; l++) {
        uint32_t g = l >> 2, t = l & 3, shift = (g & 1) * 16;
        out[l] = pair16(a[t * 8 + g / 2] >> shift, a[t * 8 + 4 + g / 2] >> shift);
    }
    SIM_EACH_LANE(l, m) d[l] = out[l];
}

/* --- wmma.load, wmma.store -------------------------------------------------------------------- */

typedef struct walk {
    uint32_t rows, columns, elements, per;
    bool along_rows;
} walk;

static walk walk_of(const sim_tensor *t, const sim_fragment *f)
{
    walk k = { .per = per_register(f->type) };
    k.rows = t->part == 'b' ? t->k : t->m;
    k.columns = t->part == 'a' ? t->k : t->n;
    k.along_rows = t->part != 'b'; /* elements of a register are consecutive in a row */
    k.elements = f->type == E_F64 ? k.rows * k.columns / SIM_LANES : needed(f, k.rows * k.columns);
    return k;
}

static place place_in(const sim_tensor *t, const sim_fragment *f, const walk *k, uint32_t r, uint32_t e,
                      uint32_t l)
{
    place p;
    (void)f;
    switch (t->part) {
    case 'a':
        p = place_a(t->m, t->k, k->per, r, l);
        p.col += e;
        return p;
    case 'b':
        p = place_b(t->k, k->per, r, l);
        p.row += e;
        return p;
    default: return place_c(t->m, t->n, r * k->per + e, l);
    }
}

/* Moves one register of every lane from or to memory, in as few accesses as the layout allows. */
static bool wmma_register(sim_warp *w, const sim_ins *i, const sim_tensor *t, const sim_fragment *f,
                          const walk *k, uint32_t r, const uint64_t *base, const uint64_t *stride, uint32_t m,
                          bool store)
{
    uint32_t bits = sim_elements[f->type].bits, *s = (uint32_t *)(uintptr_t)slot_of(w, f, r);
    bool together = k->per == 1 || k->along_rows != t->a_col;
    uint32_t steps = together ? 1 : k->per, bytes = together ? (bits == 64 ? 8 : 4) : bits / 8;
    for (uint32_t e = 0; e < steps; e++) {
        uint64_t at[SIM_LANES];
        uint8_t *where[SIM_LANES];
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            place p = place_in(t, f, k, r, e, l);
            uint64_t n = t->a_col ? p.col * stride[l] + p.row : p.row * stride[l] + p.col;
            at[l] = base[l] + (bits < 8 ? n * bits / 8 : n * (bits / 8));
        }
        if (!sim_reach_all(w, i, m, at, (sim_space)t->space, bytes, bytes, store ? SIM_WRITE : SIM_READ,
                           where))
            return false;
        SIM_EACH_LANE(l, m)
        {
            uint8_t *p = (bytes == 8 ? (uint8_t *)&((uint64_t *)(void *)s)[l] : (uint8_t *)&s[l])
                         + (together ? 0 : e * bytes);
            if (store)
                memcpy(where[l], p, bytes);
            else
                memcpy(p, where[l], bytes);
        }
    }
    return true;
}

static void wmma_memory(sim_warp *w, const sim_ins *i, uint32_t m, const sim_fragment *f, bool store)
{
    const sim_tensor *t = sim_tensor_of(i);
    walk k = walk_of(t, f);
    uint64_t base[SIM_LANES], stride[SIM_LANES];
    begin_matrix(w, i, m);
    lane_addresses(w, t, base);
    for (uint32_t l = 0; l < SIM_LANES; l++)
        stride[l] = t->has_stride ? sim_slot(w, t->stride)[l] : t->a_col ? k.rows : k.columns;
    if (!sim_aligned_all(w, i, m, base, 16)) return;
    for (uint32_t r = 0; r < f->regs; r++) {
        if (r < k.elements) {
            if (!wmma_register(w, i, t, f, &k, r, base, stride, m, store)) return;
            continue;
        }
        if (store) break;
        const uint32_t *from = slot_of(w, f, r % k.elements); /* copies, which wmma.mma does not read */
        uint32_t *to = (uint32_t *)(uintptr_t)slot_of(w, f, r);
        SIM_EACH_LANE(l, m) to[l] = from[l];
    }
}

void sim_wmma_load(sim_warp *w, const sim_ins *i, uint32_t m)
{
    wmma_memory(w, i, m, &sim_tensor_of(i)->d, false);
}
void sim_wmma_store(sim_warp *w, const sim_ins *i, uint32_t m)
{
    wmma_memory(w, i, m, &sim_tensor_of(i)->a, true);
}

/* --- wgmma ------------------------------------------------------------------------------------ */

/* The operation is carried out when it is issued, by each warp for its 16 of the 64 rows. To find accesses
 * that are too early, every register that it holds has a word: the number of the group of the last mma_async, a bit
 * for an access by another instruction since the last fence, and how the mma_async used it: whether it adds to it,
 * and, if no fence came since, its shape. */
#define TOUCHED 0x80000000u
#define SUM     0x40000000u
#define SHAPED  0x20000000u
enum { SHAPE_SHIFT = 22, SHAPE = 127 << SHAPE_SHIFT, GROUP = (1 << SHAPE_SHIFT) - 1 };

void sim_wgmma_touch(sim_warp *w, const sim_ins *i, const sim_watch_entry *e, uint32_t m)
{
    uint32_t *word = &w->watch[e->watched];
    if (w->kernel->tensor_memory) { sim_tensor_register(w, i, e, m); return; }
    if (i->fn == sim_wgmma) return;
    if ((*word & GROUP) > w->wgmma_done && sim_option.registers)
        sim_report_at(
            w, i, "async-read", sim_lowest(m),
            "register '%s' is %s while a wgmma.mma_async may still use it: no wgmma.wait_group has waited "
            "for its group",
            e->name ? e->name : "?", e->write ? "written" : "read");
    *word |= TOUCHED;
}

void sim_wgmma_order(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const sim_group_operands none = { { 0 } };
    begin_matrix(w, i, m);
    sim_group_step(w, i, &none);
    if (i->op == 1) {
        w->wgmma_groups++;
        w->wgmma_open = false;
        w->block->cluster->events++;   /* other warps may wait for this one: sim_wgmma_gather */
        return;
    }
    if (i->op == 2) {
        if (w->wgmma_groups > i->c && w->wgmma_groups - i->c > w->wgmma_done)
            w->wgmma_done = w->wgmma_groups - i->c;
        if (w->block->operands) sim_operands_done(w);
        return;
    }
    w->wgmma_fenced = true;
    for (uint32_t n = 0; n < w->kernel->wgmma_count; n++)
        w->watch[w->kernel->wgmma_first + n] &= ~(TOUCHED | SHAPED);
}

static void check_async(sim_warp *w, const sim_ins *i, const sim_tensor *t)
{
    const uint32_t *words = w->kernel->lists + t->touched;
    uint32_t depth = t->k <= 8 ? 0 : t->k <= 16 ? 1 : t->k <= 32 ? 2 : 3,
             shape = (t->n / 8u - 1) << (SHAPE_SHIFT + 2) | depth << SHAPE_SHIFT;
    bool in_flight, touched = false, others = false, early = false;
    w->wgmma_last = i;
    w->wgmma_open = true;
    if ((w->index | 3) >= w->block->warp_count)
        sim_report_at(w, i, "warpgroup", 0,
                      "wgmma needs four warps from a multiple of four on; the block has %u warps",
                      w->block->warp_count);
    for (uint32_t n = 0; n < t->touched_count && words[n] != UINT32_MAX; n++) {
        uint32_t *word = &w->watch[words[n]];
        bool sum = n < t->d.regs;
        touched |= *word & TOUCHED;
        in_flight = (*word & GROUP) > w->wgmma_done;
        if (sum) others |= in_flight && *word & SHAPED && (*word & SHAPE) != shape;
        else early |= in_flight && *word & SUM;
        *word = (*word & TOUCHED) | (sum ? SUM | SHAPED | shape : *word & (SUM | SHAPED | SHAPE))
                | ((w->wgmma_groups + 1) & GROUP);
    }
    if (early && sim_option.registers)
        sim_report_at(w, i, "async-read", 0,
                      "registers of A are results of a wgmma.mma_async that no wgmma.wait_group has waited "
                      "for");
    if (others && sim_option.registers)
        sim_report_at(w, i, "missing-fence", 0,
                      "a wgmma.mma_async of another shape adds into these registers, and no wgmma.fence "
                      "stands between the two");
    if ((!w->wgmma_fenced || touched) && sim_option.registers)
        sim_report_at(w, i, "missing-fence", 0,
                      touched ? "registers of this operation were touched after the last "
                                "wgmma.fence"
                              : "no wgmma.fence stands before the first wgmma.mma_async");
}

typedef struct layout {
    uint64_t start, leading, stride, base;
    uint32_t width;
    bool trans;
} layout;

static layout layout_of(uint64_t descriptor, bool trans)
{
    static const uint8_t widths[4] = { 1, 8, 4, 2 }; /* none, 128, 64, 32 bytes, in chunks of 16 */
    return (layout){ (descriptor & 0x3fff) << 4,       (descriptor >> 16 & 0x3fff) << 4,
                     (descriptor >> 32 & 0x3fff) << 4, descriptor >> 49 & 7,
                     widths[descriptor >> 62],         trans };
}

/* The shared address of a chunk of 16 bytes: `across` is a line of the stored matrix, `chunk` is along the stored
 * direction (k, or M or N when transposed). Address bits 4..6 are xored with bits 7..9, counted from where the
 * swizzle's pattern starts. */
static uint64_t chunk_address(const layout *y, uint32_t across, uint32_t chunk)
{
    uint64_t at = y->start + (uint64_t)(across & 7) * y->width * 16 + (uint64_t)(chunk % y->width) * 16;
    uint64_t group = across >> 3, next = chunk / y->width;
    if (!y->trans)
        at += group * y->stride + next * y->leading;
    else if (y->width == 1)
        at += group * y->leading + next * y->stride;
    else
        at += group * y->stride + next * y->leading;
    return at ^ (((at - (y->base << 7)) >> 7 & (y->width - 1u)) << 4);
}

/* Converts the elements of 16 bytes to double. */
static void expand_chunk(uint8_t type, const uint32_t words[4], double x[16])
{
    for (uint32_t q = 0; q < 4; q++) {
        uint32_t v = words[q];
        switch (type) {
        case E_F16:
            x[2 * q] = (double)H(v & 0xffff);
            x[2 * q + 1] = (double)H(v >> 16);
            break;
        case E_BF16:
            x[2 * q] = (double)Bf(v & 0xffff);
            x[2 * q + 1] = (double)Bf(v >> 16);
            break;
        case E_TF32: x[q] = tf32_value(v); break;
        default:
            for (uint32_t e = 0; e < 4; e++) x[4 * q + e] = byte_values[type][v >> 8 * e & 255];
        }
    }
}

/* Reads `lines` rows (A) or columns (B) from `first` on, each of k elements, from shared memory;
 * element (line, z) goes to out[line * line_step + z * k_step]. */
static bool fetch_matrix(sim_warp *w, const sim_ins *i, uint8_t type, const layout *y, uint32_t first,
                         uint32_t lines, uint32_t k, double *out, uint32_t line_step, uint32_t k_step,
                         bool negative)
{
    uint32_t per = 128u / sim_elements[type].bits;
    uint32_t across = y->trans ? k : lines, chunks = (y->trans ? lines : k) / per,
             first_chunk = y->trans ? first / per : 0, first_across = y->trans ? 0 : first;
    double sign = negative ? -1 : 1;
    for (uint32_t r = 0; r < across; r++)
        for (uint32_t c = 0; c < chunks; c++) {
            uint32_t words[4];
            double x[16];
            const uint8_t *p = sim_reach(w, i, 0, chunk_address(y, first_across + r, first_chunk + c),
                                         SP_SHARED, 16, SIM_READ);
            if (!p) return false;
            sim_operand_read(w, i, (uint64_t)(p - w->block->shared));
            memcpy(words, p, 16);
            expand_chunk(type, words, x);
            double *to = out + (y->trans ? c * per * line_step + r * k_step : r * line_step + c * per * k_step);
            for (uint32_t e = 0; e < per; e++) to[e * (y->trans ? line_step : k_step)] = sign * x[e];
        }
    return true;
}

static bool fetch_bits(sim_warp *w, const sim_ins *i, const layout *y, uint32_t first, uint32_t lines,
                       uint32_t (*out)[8])
{
    for (uint32_t r = 0; r < lines; r++)
        for (uint32_t c = 0; c < 2; c++) {
            const uint8_t *p = sim_reach(w, i, 0, chunk_address(y, first + r, c), SP_SHARED, 16, SIM_READ);
            if (!p) return false;
            sim_operand_read(w, i, (uint64_t)(p - w->block->shared));
            memcpy(&out[r][c * 4], p, 16);
        }
    return true;
}

static bool wgmma_bits(sim_warp *w, const sim_ins *i, const sim_tensor *t, const layout *a, const layout *b,
                       double *c)
{
    uint32_t rows[16][8], columns[256][8], quarter = (w->index & 3) * 16;
    if (t->a_shared) {
        if (!fetch_bits(w, i, a, quarter, 16, rows)) return false;
    } else
        for (uint32_t r = 0; r < 4; r++)
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                place p = place_a(16, 256, 32, r, l);
                rows[p.row][p.col / 32] = slot_of(w, &t->a, r)[l];
            }
    if (!fetch_bits(w, i, b, 0, t->n, columns)) return false;
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t n = 0; n < t->n; n++)
            for (uint32_t z = 0; z < 8; z++) c[r * t->n + n] += popc32(rows[r][z] & columns[n][z]);
    return true;
}

static void differ(sim_warp *w, const sim_ins *i, uint32_t lane, const char *what)
{ sim_report_at(w, i, "warpgroup", lane, "%s of this thread is not that of the warp's first one", what); }

/* Checks that descriptors and scale-d are the same in all threads of the warp and of the warpgroup. */
static void check_same(sim_warp *w, const sim_ins *i, const sim_tensor *t, uint32_t m)
{
    uint32_t first = sim_lowest(m), p = sim_pred(w, t->scale_d) & m;
    const uint64_t *a = t->a_shared ? sim_slot64(w, t->a_descriptor) : NULL,
                   *b = sim_slot64(w, t->b_descriptor);
    const sim_group_operands o = { { a ? a[first] : 0, b[first], p >> first & 1 } };
    sim_group_step(w, i, &o);
    if (!sim_option.barriers) return;
    if (p && p != m) { differ(w, i, sim_lowest(p >> first & 1 ? m & ~p : p), "scale-d"); return; }
    SIM_EACH_LANE(l, m) {
        if (b[l] == b[first] && (!a || a[l] == a[first])) continue;
        differ(w, i, l, b[l] == b[first] ? "the descriptor of A" : "the descriptor of B");
        return;
    }
}

/* Checks that a swizzled matrix begins where its pattern repeats, unless the base offset says otherwise. */
static void check_pattern(sim_warp *w, const sim_ins *i, const layout *y, char which)
{
    if (!((y->start >> 7 ^ y->base) & (y->width - 1u)) || !sim_option.align) return;
    sim_report_at(w, i, "matrix-descriptor", 0,
                  "the matrix %c starts at shared address 0x%llx, %llu rows of 128 bytes into its swizzle's "
                  "pattern of %u; the descriptor's base offset is %llu",
                  which, (unsigned long long)y->start, (unsigned long long)(y->start >> 7 & (y->width - 1u)),
                  y->width, (unsigned long long)y->base);
}

void sim_wgmma(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const sim_tensor *t = sim_tensor_of(i);
    double a[16 * 64], stored[16 * 32], b[SIM_MAX_WIDE_B], c[SIM_MAX_C];
    uint32_t k = t->sparse ? t->k / 2u : t->k, quarter = (w->index & 3) * 16, lane = sim_lowest(m);
    begin_matrix(w, i, m);
    check_async(w, i, t);
    check_same(w, i, t, m);
    w->worker->counts.c.tensor_operations += 2u * t->m * t->n * t->k;
    layout la = { 0 }, lb = layout_of(sim_slot64(w, t->b_descriptor)[lane], t->b_trans);
    if (t->a_shared) la = layout_of(sim_slot64(w, t->a_descriptor)[lane], t->a_trans);
    check_pattern(w, i, &lb, 'B');
    if (t->a_shared) check_pattern(w, i, &la, 'A');
    if (sim_pred(w, t->scale_d) >> lane & 1)
        read_c(w, &t->c, 16, t->n, c);
    else
        for (uint32_t e = 0; e < 16u * t->n; e++) c[e] = 0;
    if (t->b.type == E_B1) {
        if (!wgmma_bits(w, i, t, &la, &lb, c)) return;
    } else {
        double *to = t->sparse ? stored : a;
        if (!t->a_shared) {
            read_a(w, &t->a, 16, k, to);
            for (uint32_t e = 0; t->a_negative && e < 16 * k; e++) to[e] = -to[e];
        } else if (!fetch_matrix(w, i, t->a.type, &la, quarter, 16, k, to, k, 1, t->a_negative))
            return;
        if (t->sparse) spread(w, t, stored, a);
        if (!fetch_matrix(w, i, t->b.type, &lb, 0, t->n, t->k, b, 1, t->n, t->b_negative)) return;
        add_products(w, t, a, b, c, 16, t->n, t->k);
    }
    write_d(w, &t->d, 16, t->n, c, t->saturate, m);
}
