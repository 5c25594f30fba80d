/* gemm.h - elements of a product with weights (operation gemm) in double precision, with a bound of the error that is
 * derived from the arithmetic. Weights are blocks, see blocks.h, or bytes times factors, see matmul.h. */
#ifndef REFERENCE_GEMM_H
#define REFERENCE_GEMM_H

#include "blocks.h"
#include "matmul.h"

typedef struct ref_gemm {
    int type;             /* of blocks.h; REF_BLOCK_F32 where `byte` is set */
    int byte;             /* 0, or weights are bytes: REF_E4M3, REF_E5M2, REF_S8 */
    ref_factor w;         /* of bytes: row, factors and kind; else row alone, in bytes. data: the first row */
    uint32_t k, columns;  /* columns: of the description */
    int fast, warpgroups; /* PTXK_GEMM_FAST; the target is sm_90a */
    uint32_t sm;          /* of the target */
} ref_gemm;

/* Weight j of row r. size: what its parts add up to. */
static inline double ref_gemm_weight(const ref_gemm *p, size_t r, uint32_t j, double *size)
{
    const unsigned char *row = (const unsigned char *)p->w.data + r * p->w.row;
    const uint32_t values = (uint32_t)ref_block_values(p->type);
    double w;
    if (!p->byte)
        return ref_weight(p->type, row + j / values * ref_block_bytes(p->type), (int)(j % values), size);
    w = ref_number(row, p->byte, j) * ref_factor_at(&p->w, p->k, r, j, p->w.kind >= 3);
    *size = fabs(w);
    return w;
}

/* Whether weights of a format are unpacked into shared memory where columns are many. */
static inline int ref_gemm_is_unpacked(int type)
{
    return type == REF_BLOCK_Q4_K || type == REF_BLOCK_Q5_K || type == REF_BLOCK_Q6_K || type == REF_BLOCK_Q8_0
           || type == REF_BLOCK_Q4_0;
}

/* Whether warpgroups multiply weights of a format times factors of 32 values, as f16 numbers. */
static inline int ref_gemm_is_scaled(int type)
{
    return type == REF_BLOCK_Q4_1 || type == REF_BLOCK_Q5_0 || type == REF_BLOCK_Q5_1 || type == REF_BLOCK_IQ4_NL
           || type == REF_BLOCK_IQ4_XS || type == REF_BLOCK_MXFP4 || type == REF_BLOCK_TQ1_0 || type == REF_BLOCK_TQ2_0;
}

/* FAST, many columns: how large the factors of a row are, as the power of two that it is scaled by is chosen: each
 * rounding of a weight may be wrong by 2^-31 of that. */
static inline double ref_gemm_row_factor(const ref_gemm *p, size_t r)
{
    const unsigned char *row = (const unsigned char *)p->w.data + r * p->w.row;
    double most = 0, size;
    size_t i, bytes = ref_row_bytes(p->type, p->k);
    for (i = 0; i < bytes; i += ref_block_bytes(p->type)) {
        double d = fabs(ref_from_f16(ref_u16(row + i + (p->type == REF_BLOCK_Q6_K ? 208 : 0))));
        size = p->type == REF_BLOCK_Q6_K   ? d * 0x1p25
               : p->type == REF_BLOCK_Q4_0 ? d * 0x1p18
               : p->type == REF_BLOCK_Q8_0 ? d * 2 * 44 /* its f16 factor may be wrong, times 128 */
                                           : fmax(d * 0x1p24, fabs(ref_from_f16(ref_u16(row + i + 2))));
        if (size > most) most = size;
    }
    return most;
}

/* What weight i of a block has besides where few columns multiply unsigned integers: its offset, and 1024, as which
 * tensor cores align a subnormal 2^-24 q (Q4_0 2^-20 q, TQ 2^-16 q); times its factor. */
static inline double ref_gemm_offset(int type, const unsigned char *block, uint32_t i)
{
    const int factor = ref_layout_of(type)->factor, n = (int)i >> 5;
    const double d = factor < 0 ? 0 : fabs(ref_from_f16(ref_u16(block + factor)));
    switch (type) {
    case REF_BLOCK_Q8_0:
    case REF_BLOCK_IQ4_NL: return d * (1024 + 128);
    case REF_BLOCK_IQ4_XS:
        return d * (1024 + 128)
               * abs(((block[4 + (n >> 1)] >> 4 * (n & 1) & 15) | (ref_u16(block + 2) >> 2 * n & 3) << 4) - 32);
    case REF_BLOCK_Q6_K: return d * (1024 + 32) * abs((signed char)block[192 + (i >> 4)]);
    case REF_BLOCK_Q5_0: return d * (1024 + 16);
    case REF_BLOCK_Q4_1:
    case REF_BLOCK_Q5_1: return d * 1024;
    case REF_BLOCK_Q4_0: return d * (64 + 8);
    case REF_BLOCK_TQ1_0:
    case REF_BLOCK_TQ2_0: return d * (4 + 1);
    default: return 0;
    }
}

/* Row r of the weights times x [k], gamma included; its bound, and |W| |x|, the lengths, where `norms` is no NULL.
 *
 * With u = 2^-24: x is rounded (u) and represented in 22 bits or more, or 2^-39 of the row's largest (fast: 11, bf16
 * 16, 2^-28): e_i. f32 weights: their two numbers lack 2^-20, and the product of the smaller ones 2^-21 (fast:
 * 2^-11). Before sm_80 numbers of f32 and bf16 lack 2^-39 of the largest of a unit. A tensor core cuts each of the at
 * most 17 terms of a step to 24 bits of the largest, and its sum to 2^-23: 19 u of the sum of all sizes in a unit, in
 * at most 64 steps; integers and their offsets count apart. Then sums of units and slices, and factors, in f32. */
static inline double ref_gemm_row(const ref_gemm *p, size_t r, const double *x, double *bound, double *norms)
{
    const double u = 0x1p-24;
    const uint32_t values = (uint32_t)ref_block_values(p->type), k = p->k;
    const uint32_t unit = p->byte ? 128 : p->type == REF_BLOCK_F32 ? 32 : values == 1 ? 64 : 256;
    const int plain = p->type == REF_BLOCK_F32 && !p->byte, fast = p->fast;
    const int powers = p->sm < 80 && (plain || p->type == REF_BLOCK_BF16);
    double y = 0, most = 0, direct = 0, size_sum = 0, w2 = 0, x2 = 0, relative, weight = 0, step = 0, largest;
    uint32_t j;
    relative = p->type == REF_BLOCK_BF16 && !powers ? (fast ? 0x1p-16 : 0x1p-24) : fast ? 0x1p-11 : 0x1p-22;
    if (plain) weight = fast ? 0x1p-11 : 0x1p-20 + 0x1p-21;
    if (p->type == REF_BLOCK_Q6_K && fast) weight = 0x1p-11;
    if (p->columns >= (p->warpgroups ? 64u : 128u) && ref_gemm_is_unpacked(p->type)) {
        /* a scale or minimum, its product, their sum; EXACT: Q4_K and Q5_K are exact, the others lack the product
         * of the smaller numbers */
        weight = fast ? 3 * 0x1p-11 : 0x1p-23;
        step = 3 * 0x1p-31 * ref_gemm_row_factor(p, r);
    }
    if (p->warpgroups && p->columns >= 64 && ref_gemm_is_scaled(p->type)) {
        /* a factor and its product; 2^-23 of the largest factor */
        weight = fast ? 2 * 0x1p-11 : 0x1p-22;
        for (j = 0; j < k; j++) {
            (void)ref_gemm_weight(p, r, j, &largest);
            step = fmax(step, largest * 0x1p-22);
        }
    }
    for (j = 0; j < k; j++) most = fmax(most, fabs(x[j]));
    for (j = 0; j < k; j++) {
        double v = fabs(x[j]), e = (relative + u) * v + most * (fast ? 0x1p-28 : 0x1p-39), size;
        double w = ref_gemm_weight(p, r, j, &size);
        const unsigned char *row = (const unsigned char *)p->w.data + r * p->w.row;
        if (!p->byte && step <= 0)
            size += ref_gemm_offset(p->type, row + j / values * ref_block_bytes(p->type), j % values);
        if (powers && j % unit == 0) { /* f16's smallest, beside 2^14 */
            uint32_t other;
            for (step = 0, other = j; other < j + unit && other < k; other++) {
                (void)ref_gemm_weight(p, r, other, &largest);
                step = fmax(step, largest * 0x1p-39);
            }
        }
        y += w * x[j];
        direct += fabs(w) * e + (weight * size + step) * v;
        size_sum += size * (v + e);
        w2 += w * w;
        x2 += v * v;
    }
    /* FAST, many columns: sums of a whole slice in one tensor-core sum */
    *bound = direct + ((step > 0 && fast && !powers ? k / 16.0 : 64) * 19 + (double)k / unit + 40) * u * size_sum;
    if (norms) *norms = sqrt(w2) * sqrt(x2);
    return y;
}

#endif
