/* matmul.h - elements of a matrix product in double precision, with a bound of the error that f32 sums on tensor
 * cores may have.
 *
 * The bound follows published models of the chips (P. Xie, Y. Wang, F. Yang, M. Yang, "MMA-Sim: Bit-Accurate
 * Reference Model of Tensor Cores and Matrix Cores", 2025). A step adds some products to a sum c: all terms are
 * aligned to the largest and cut to F fractional bits, the result is cut to 23. Each of n products and c lose less
 * than 2^-F of the largest term, the result less than 2^-23 of itself. Taken here for every chip: F = 24 and the
 * shortest steps (8 products of 16-bit types, 4 of tf32); for fp8 on sm_89, F = 13, 16 products, 13 bits. */
#ifndef REFERENCE_MATMUL_H
#define REFERENCE_MATMUL_H

#include "numbers.h"

/* Types of elements: those of numbers.h, and 8-bit ones. */
enum { REF_E4M3 = REF_BF16 + 1, REF_E5M2, REF_S8 };

static inline size_t ref_number_bytes(int type)
{
    return type >= REF_E4M3 ? 1 : ref_bytes((enum ref_format)type);
}

/* 4 exponent bits with bias 7, no infinity; and 5 with bias 15, the upper half of an f16. */
static inline double ref_from_e4m3(unsigned x)
{
    int exponent = (int)(x >> 3 & 15), fraction = (int)(x & 7);
    double y = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    if ((x & 127) == 127) return NAN;
    return x & 128 ? -y : y;
}

static inline double ref_number(const void *array, int type, size_t index)
{
    switch (type) {
    case REF_E4M3: return ref_from_e4m3(((const unsigned char *)array)[index]);
    case REF_E5M2: return ref_from_f16((uint16_t)(((const unsigned char *)array)[index] << 8));
    case REF_S8: return ((const signed char *)array)[index];
    default: return ref_get(array, (enum ref_format)type, index);
    }
}

/* The factor's kinds are numbered as PTXK_FACTORS_...: none, one, one a row, one a row and 128 along k, one for
   128 x 128. */
typedef struct ref_factor {
    const void *data;
    int type;
    size_t row, step;   /* elements from row to row (of op(B): column to column), and along k */
    const float *factors;
    int kind;
} ref_factor;

typedef struct ref_matmul {
    ref_factor a, b;
    uint32_t k;
    uint32_t parts, depth; /* k is divided into parts, of whole steps of so many elements */
    int single;            /* f32 as one tf32 number */
    int narrow;            /* 13 bits of fp8 sums: sm_89 */
    int together;          /* fp8 sums run through all of k: tcgen05 */
} ref_matmul;

/* The factor of row i and of element x along k. of: whether those that differ along k, or the others. */
static inline double ref_factor_at(const ref_factor *f, uint32_t k, size_t i, uint32_t x, int blocks)
{
    size_t count = (k + 127) / 128;
    if (blocks != (f->kind >= 3)) return 1;
    switch (f->kind) {
    case 1: return (double)f->factors[0];
    case 2: return (double)f->factors[i];
    case 3: return (double)f->factors[i * count + x / 128];
    case 4: return (double)f->factors[i / 128 * count + x / 128];
    default: return 1;
    }
}

/* Element (i, j) of the product of op(A) and op(B) with their factors, and its bound. */
static inline double ref_matmul_element(const ref_matmul *p, size_t i, size_t j, double *bound)
{
    const double u = 0x1p-24;
    int bytes = (int)ref_number_bytes(p->a.type), whole = p->a.type == REF_S8, tf32 = p->a.type == REF_F32;
    int blocks = p->a.kind >= 3 || p->b.kind >= 3, split = bytes == 1 || (tf32 && !p->single);
    uint32_t group = bytes == 1 ? 16 : tf32 ? 4 : 8;
    uint32_t every = whole && !blocks ? 65536 : p->together ? p->k : bytes == 1 ? 128 : 48;
    uint32_t steps = (p->k + p->depth - 1) / p->depth, part, length;
    double cut = p->narrow ? 0x1p-13 : u, last = p->narrow ? 0x1p-13 : 0x1p-23, all = 0, all_bound = 0, outer;
    steps = (steps + p->parts - 1) / p->parts;
    if (blocks) steps = (steps + 1) / 2 * 2;
    length = steps * p->depth;
    for (part = 0; part < p->parts; part++) {
        uint32_t from = part * length < p->k ? part * length : p->k;
        uint32_t to = p->k - from < length ? p->k : from + length, x, y, start = from;
        double total = 0, total_bound = 0, c = 0, c_bound = 0, c_most = 0, adds;
        for (x = from; x < to; x = y) {
            double most = fabs(c) + c_bound, inputs = 0, factor;
            for (y = x; y < to && y < x + group; y++) {
                double t = ref_number(p->a.data, p->a.type, i * p->a.row + y * p->a.step)
                           * ref_number(p->b.data, p->b.type, j * p->b.row + y * p->b.step);
                c += t;
                if (fabs(t) > most) most = fabs(t);
                if (fabs(c) > c_most) c_most = fabs(c);
                inputs += fabs(t);
            }
            if (!whole)
                c_bound += (tf32 && !p->single ? 3 : 1)
                           * ((group + 1) * cut * 1.01 * most + last * (fabs(c) + c_bound));
            if (tf32) c_bound += inputs * (p->single ? 0x1p-10 + 0x1p-22 : 0x1p-21);
            if (!split || (y < to && (y - from) % every)) continue;
            factor = ref_factor_at(&p->a, p->k, i, x, 1) * ref_factor_at(&p->b, p->k, j, x, 1);
            total += factor * c;
            adds = (y - start + p->depth - 1) / p->depth; /* at most: where elements are copied one by one */
            total_bound += fabs(factor) * c_bound + (3 + adds) * u * fabs(factor) * c_most
                           + adds * u * (fabs(total) + total_bound);
            c = c_bound = c_most = 0;
            start = y;
        }
        if (!split) total = c, total_bound = c_bound;
        all += total;
        all_bound += total_bound + u * (fabs(all) + all_bound);
    }
    outer = ref_factor_at(&p->a, p->k, i, 0, 0) * ref_factor_at(&p->b, p->k, j, 0, 0);
    *bound = fabs(outer) * all_bound + 4 * u * fabs(outer * all);
    return outer * all;
}

/* What follows the product: PTXK_MATMUL_RELU (1), _SILU, _GELU; and its bound: the approximate instructions have
   errors of two units, the argument of the exponential some roundings. */
static inline double ref_matmul_activate(int kind, double x, double *bound)
{
    const double u = 0x1p-24;
    double y = -x, result;
    if (kind == 0) return x;
    if (kind == 1) return x > 0 ? x : 0;
    if (kind == 3) y = -2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    result = y > 700 ? 0 : x / (1 + exp(y));
    *bound = 1.2 * *bound + (6 * fabs(y) + 16) * u * fabs(result) + 1e-37;
    return result;
}

#endif
