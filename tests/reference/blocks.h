/* blocks.h - weights in GGUF's block layouts: what they mean, in double precision, and how to make them.
 *
 * Decoders are written from the formats' rules, weight by weight. Types have GGUF's own numbers.
 *
 *   type   block  bytes  layout (byte offsets)                      weight
 *   F32        1      4
 *   F16        1      2
 *   Q4_0      32     18  f16 d, u8 q[16]@2                          d (nibble - 8)
 *   Q8_0      32     34  f16 d, s8 q[32]@2                          d q
 *   Q4_K     256    144  f16 d, f16 dmin, u8 s[12]@4, u8 q[128]@16  d scale nibble - dmin min
 *   Q5_K     256    176  ..., u8 h[32]@16, u8 q[128]@48             the same with a fifth bit
 *   Q6_K     256    210  u8 q[128], u8 h[64]@128, s8 s[16]@192, f16 d@208   d scale (6 bits - 32)
 *   BF16       1      2
 *   Q4_1      32     20  f16 d, f16 m, u8 q[16]@4                   d nibble + m
 *   Q5_0      32     22  f16 d, u32 h@2, u8 q[16]@6                 d (5 bits - 16)
 *   Q5_1      32     24  f16 d, f16 m, u32 h@4, u8 q[16]@8          d (5 bits) + m
 *   Q2_K     256     84  u8 s[16], u8 q[64]@16, f16 d@80, f16 dmin@82   d scale (2 bits) - dmin min
 *   Q3_K     256    110  u8 h[32], u8 q[64]@32, u8 s[12]@96, f16 d@108  d (scale - 32) (3 bits - 4)
 *   IQ4_NL    32     18  f16 d, u8 q[16]@2                          d table[nibble]
 *   IQ4_XS   256    136  f16 d, u16 h, u8 s[4]@4, u8 q[128]@8       d (scale - 32) table[nibble]
 *   MXFP4     32     17  e8m0, u8 q[16]@1                           2^(e - 128) e2m1[nibble], which are twice e2m1
 *   NVFP4     64     36  e4m3 s[4], u8 q[32]@4                      s / 2 e2m1[nibble]
 *   IQ2_XXS  256     66  f16 d, of each 32: u8 q[4], u32 (4 signs of 7 bits, scale)      d (2 scale + 1) / 8 table
 *   IQ2_XS   256     74  f16 d, u16 q[32]@2 (9 bits, signs of 7), u8 s[8]@66             the same
 *   IQ2_S    256     82  f16 d, u8 q[32]@2, u8 signs[32]@34, u8 h[8]@66, u8 s[8]@74      the same
 *   IQ3_XXS  256     98  f16 d, u8 q[64]@2, of each 32 a u32@66 as IQ2_XXS               d (2 scale + 1) / 4 table
 *   IQ3_S    256    110  f16 d, u8 q[64]@2, u8 h[8]@66, u8 signs[32]@74, u8 s[4]@106     d (2 scale + 1) table
 *   IQ1_S    256     50  f16 d, u8 q[32]@2, u16 h[8]@34 (3 bits of 4 q, scale, sign)     d (2 scale + 1) (table +- 1/8)
 *   IQ1_M    256     56  u8 q[32], u8 h[16]@32 (3 bits of q, sign), u16 s[4]@48 (4 scales, 4 bits of d)      the same
 *   TQ1_0    256     54  u8 q[48], u8 h[4]@48 (5 and 4 digits of base 3), f16 d@52       d (digit - 1)
 *   TQ2_0    256     66  u8 q[64], f16 d@64                                              d (2 bits - 1)
 *
 * The quantisers choose each group's scale (and minimum) by trying some twenty and solving for the best real
 * one behind each choice of integers: least squares, unweighted. x must be finite. */
#ifndef REFERENCE_BLOCKS_H
#define REFERENCE_BLOCKS_H

#include "grids.h"
#include "numbers.h"

enum ref_block {
    REF_BLOCK_F32 = 0,
    REF_BLOCK_F16 = 1,
    REF_BLOCK_Q4_0 = 2,
    REF_BLOCK_Q4_1 = 3,
    REF_BLOCK_Q5_0 = 6,
    REF_BLOCK_Q5_1 = 7,
    REF_BLOCK_Q8_0 = 8,
    REF_BLOCK_Q2_K = 10,
    REF_BLOCK_Q3_K = 11,
    REF_BLOCK_Q4_K = 12,
    REF_BLOCK_Q5_K = 13,
    REF_BLOCK_Q6_K = 14,
    REF_BLOCK_IQ2_XXS = 16,
    REF_BLOCK_IQ2_XS = 17,
    REF_BLOCK_IQ3_XXS = 18,
    REF_BLOCK_IQ1_S = 19,
    REF_BLOCK_IQ4_NL = 20,
    REF_BLOCK_IQ3_S = 21,
    REF_BLOCK_IQ2_S = 22,
    REF_BLOCK_IQ4_XS = 23,
    REF_BLOCK_IQ1_M = 29,
    REF_BLOCK_BF16 = 30,
    REF_BLOCK_TQ1_0 = 34,
    REF_BLOCK_TQ2_0 = 35,
    REF_BLOCK_MXFP4 = 39,
    REF_BLOCK_NVFP4 = 40
};

/* Where the factors of a block lie that may be any f16: -1: there is none. `most` is the largest multiple of
   the factor that a weight can be, `most_low` of the second. */
static const struct ref_layout {
    int type;
    size_t values, bytes;
    int factor, second;
    double most, most_low;
} ref_layouts[] = {
    {REF_BLOCK_F32, 1, 4, -1, -1, 0, 0},         {REF_BLOCK_F16, 1, 2, -1, -1, 0, 0},
    {REF_BLOCK_BF16, 1, 2, -1, -1, 0, 0},        {REF_BLOCK_Q4_0, 32, 18, 0, -1, 8, 0},
    {REF_BLOCK_Q8_0, 32, 34, 0, -1, 128, 0},     {REF_BLOCK_Q4_K, 256, 144, 0, 2, 15 * 63, 63},
    {REF_BLOCK_Q5_K, 256, 176, 0, 2, 31 * 63, 63}, {REF_BLOCK_Q6_K, 256, 210, 208, -1, 32 * 128, 0},
    {REF_BLOCK_Q4_1, 32, 20, 0, 2, 15, 1},       {REF_BLOCK_Q5_0, 32, 22, 0, -1, 16, 0},
    {REF_BLOCK_Q5_1, 32, 24, 0, 2, 31, 1},       {REF_BLOCK_Q2_K, 256, 84, 80, 82, 45, 15},
    {REF_BLOCK_Q3_K, 256, 110, 108, -1, 128, 0}, {REF_BLOCK_IQ4_NL, 32, 18, 0, -1, 127, 0},
    {REF_BLOCK_IQ4_XS, 256, 136, 0, -1, 127 * 32, 0}, {REF_BLOCK_MXFP4, 32, 17, -1, -1, 0, 0},
    {REF_BLOCK_NVFP4, 64, 36, -1, -1, 0, 0},     {REF_BLOCK_IQ2_XXS, 256, 66, 0, -1, 167, 0},
    {REF_BLOCK_IQ2_XS, 256, 74, 0, -1, 167, 0},  {REF_BLOCK_IQ2_S, 256, 82, 0, -1, 167, 0},
    {REF_BLOCK_IQ3_XXS, 256, 98, 0, -1, 481, 0}, {REF_BLOCK_IQ3_S, 256, 110, 0, -1, 465, 0},
    {REF_BLOCK_IQ1_S, 256, 50, 0, -1, 17, 0},    {REF_BLOCK_IQ1_M, 256, 56, -1, -1, 17, 0},
    {REF_BLOCK_TQ1_0, 256, 54, 52, -1, 1, 0},    {REF_BLOCK_TQ2_0, 256, 66, 64, -1, 2, 0}};

/* NULL for a type that is none of the above. */
static inline const struct ref_layout *ref_layout_of(int type)
{
    size_t i;
    for (i = 0; i < sizeof ref_layouts / sizeof *ref_layouts; i++)
        if (ref_layouts[i].type == type) return &ref_layouts[i];
    return NULL;
}

/* Values of a block; 0 for a type that is none of the above. */
static inline size_t ref_block_values(int type)
{
    const struct ref_layout *l = ref_layout_of(type);
    return l ? l->values : 0;
}

static inline size_t ref_block_bytes(int type)
{
    const struct ref_layout *l = ref_layout_of(type);
    return l ? l->bytes : 0;
}

/* Bytes of `values` values, a multiple of the block's. */
static inline size_t ref_row_bytes(int type, size_t values)
{
    size_t block = ref_block_values(type);
    return block ? values / block * ref_block_bytes(type) : 0;
}

/* -- what blocks mean -- */

static inline uint16_t ref_u16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline void ref_put_u16(unsigned char *at, uint16_t x)
{
    at[0] = (unsigned char)x;
    at[1] = (unsigned char)(x >> 8);
}

static inline float ref_block_f32(const unsigned char *at)
{
    float x;
    memcpy(&x, at, 4);
    return x;
}

/* Scale and minimum of group j, 0 ... 7, from the 12 bytes of Q4_K and Q5_K. */
static inline int ref_k_scale(const unsigned char *b, int j)
{
    return j < 4 ? b[j] & 63 : (b[j + 4] & 15) | (b[j - 4] >> 6) << 4;
}

static inline int ref_k_minimum(const unsigned char *b, int j)
{
    return j < 4 ? b[j + 4] & 63 : (b[j + 4] >> 4) | (b[j] >> 6) << 4;
}

static const signed char ref_iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};

/* e2m1, a sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6. */
static inline double ref_from_e2m1(int x)
{
    int e = x >> 1 & 3, m = x & 1;
    double value = e ? ldexp(1 + m / 2.0, e - 1) : m / 2.0;
    return x & 8 ? -value : value;
}

/* e4m3 whose sign does not count; 127, which is NaN, is 0. */
static inline double ref_from_ue4m3(int x)
{
    int e = x >> 3 & 15, m = x & 7;
    if (x == 127) return 0;
    return e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m, -9);
}

/* Scale j of 16 of Q3_K, from its 12 bytes. */
static inline int ref_q3_scale(const unsigned char *s, int j)
{
    int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
    return (low | (s[8 + (j & 3)] >> 2 * (j >> 2) & 3) << 4) - 32;
}

/* Value i of 8 (IQ2) or of 4 (IQ3) of entry `code` of a table. */
static inline int ref_iq2(unsigned code, int i)
{
    static const int level[4] = {8, 25, 43, 0};
    return level[code >> 2 * i & 3];
}

static inline int ref_iq3(int type, unsigned code, int i)
{
    static const int level[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    int digit = code >> 4 * i & 7;
    return type == REF_BLOCK_IQ3_S ? 2 * digit + 1 : level[digit];
}

/* Sign i of 8 in 7 bits, of which an even number is set with the eighth. */
static inline int ref_even_sign(unsigned bits, int i)
{
    unsigned sum = 0;
    int j;
    for (j = 0; j < 7; j++) sum += bits >> j & 1;
    return (i < 7 ? bits >> i & 1 : sum & 1) ? -1 : 1;
}

/* Weight i of a block of IQ2 or IQ3. */
static inline double ref_iq_weight(int type, const unsigned char *block, int i)
{
    const int g = i >> 5, e = i >> 3; /* of 32; of 8 */
    const unsigned char *word = /* that of signs and scale, which two of them have */
        block + (type == REF_BLOCK_IQ2_XXS ? 6 + 8 * g : type == REF_BLOCK_IQ3_XXS ? 66 + 4 * g : 0);
    const unsigned long bits =
        word[0] | (unsigned long)word[1] << 8 | (unsigned long)word[2] << 16 | (unsigned long)word[3] << 24;
    int q, sign, scale;
    double step = 0.125;
    switch (type) {
    case REF_BLOCK_IQ2_XXS:
        q = ref_iq2(ref_iq2_xxs_grid[block[2 + 8 * g + (e & 3)]], i & 7);
        sign = ref_even_sign((unsigned)(bits >> 7 * (e & 3) & 127), i & 7);
        scale = (int)(bits >> 28);
        break;
    case REF_BLOCK_IQ2_XS:
        q = ref_iq2(ref_iq2_xs_grid[ref_u16(block + 2 + 2 * e) & 511], i & 7);
        sign = ref_even_sign(ref_u16(block + 2 + 2 * e) >> 9, i & 7);
        scale = block[66 + g] >> 4 * (i >> 4 & 1) & 15;
        break;
    case REF_BLOCK_IQ2_S:
        q = ref_iq2(ref_iq2_s_grid[block[2 + e] | (block[66 + g] >> 2 * (e & 3) & 3) << 8], i & 7);
        sign = block[34 + e] >> (i & 7) & 1 ? -1 : 1;
        scale = block[74 + g] >> 4 * (i >> 4 & 1) & 15;
        break;
    case REF_BLOCK_IQ3_XXS:
        q = ref_iq3(type, ref_iq3_xxs_grid[block[2 + i / 4]], i & 3);
        sign = ref_even_sign((unsigned)(bits >> 7 * (e & 3) & 127), i & 7);
        scale = (int)(bits >> 28);
        step = 0.25;
        break;
    default:
        q = ref_iq3(type, ref_iq3_s_grid[block[2 + i / 4] | (block[66 + g] >> (i / 4 & 7) & 1) << 8], i & 3);
        sign = block[74 + e] >> (i & 7) & 1 ? -1 : 1;
        scale = block[106 + (g >> 1)] >> 4 * (g & 1) & 15;
        step = 1;
    }
    return ref_from_f16(ref_u16(block)) * step * (2 * scale + 1) * sign * q;
}

/* Weight i of a block of IQ1: an entry of the table, less or plus 1/8. */
static inline double ref_iq1_weight(int type, const unsigned char *block, int i)
{
    int e = i >> 3, high, less, scale, sc; /* e: of 8 */
    unsigned d = ref_u16(block), code;
    if (type == REF_BLOCK_IQ1_S) {
        sc = ref_u16(block + 34 + 2 * (i >> 5));
        high = sc >> 3 * (e & 3) & 7, less = sc >> 15, scale = sc >> 12 & 7;
        code = ref_iq1_grid[block[2 + e] | high << 8];
    } else {
        sc = block[32 + (e >> 1)] >> 4 * (e & 1);
        high = sc & 7, less = sc >> 3 & 1;
        code = ref_iq1_grid[block[e] | high << 8];
        scale = ref_u16(block + 48 + 2 * (i >> 6)) >> 3 * (i >> 4 & 3) & 7;
        d = (unsigned)(block[49] >> 4 | block[51] >> 4 << 4 | block[53] >> 4 << 8 | block[55] >> 4 << 12);
    }
    return ref_from_f16((uint16_t)d) * (2 * scale + 1) * ((int)(code >> 2 * (i & 7) & 3) - 1 + (less ? -0.125 : 0.125));
}

/* Digit n, of base 3, of a byte as a fraction of 256. */
static inline int ref_digit(int byte, int n)
{
    while (n--) byte = byte * 3 & 255;
    return byte * 3 >> 8;
}

/* Weight i of a block; *size gets the sum of the sizes of its two terms, where it has two (the offset of
   Q4_0 is one: its nibbles are unsigned). */
static inline double ref_weight(int type, const unsigned char *block, int i, double *size)
{
    double d, w, low;
    int q, n, l;
    switch (type) {
    case REF_BLOCK_F32: w = (double)ref_block_f32(block); break;
    case REF_BLOCK_F16: w = ref_from_f16(ref_u16(block)); break;
    case REF_BLOCK_BF16: w = ref_from_bf16(ref_u16(block)); break;
    case REF_BLOCK_Q4_0:
        q = block[2 + (i & 15)] >> 4 * (i >> 4) & 15;
        d = ref_from_f16(ref_u16(block));
        if (size) *size = fabs(d) * (q + 8);
        return d * (q - 8);
    case REF_BLOCK_Q8_0: w = ref_from_f16(ref_u16(block)) * (signed char)block[2 + i]; break;
    case REF_BLOCK_Q4_K:
    case REF_BLOCK_Q5_K:
        l = type == REF_BLOCK_Q4_K ? 16 : 48;
        q = block[l + 32 * (i >> 6) + (i & 31)] >> 4 * (i >> 5 & 1) & 15;
        if (type == REF_BLOCK_Q5_K) q |= (block[16 + (i & 31)] >> (i >> 5) & 1) << 4;
        d = ref_from_f16(ref_u16(block)) * ref_k_scale(block + 4, i >> 5) * q;
        low = ref_from_f16(ref_u16(block + 2)) * ref_k_minimum(block + 4, i >> 5);
        if (size) *size = fabs(d) + fabs(low);
        return d - low;
    case REF_BLOCK_Q6_K:
        n = i >> 7;
        l = i & 31;
        q = block[64 * n + 32 * (i >> 5 & 1) + l] >> 4 * (i >> 6 & 1) & 15;
        q |= (block[128 + 32 * n + l] >> 2 * (i >> 5 & 3) & 3) << 4;
        w = ref_from_f16(ref_u16(block + 208)) * (signed char)block[192 + (i >> 4)] * (q - 32);
        break;
    case REF_BLOCK_Q4_1:
    case REF_BLOCK_Q5_1:
        l = type == REF_BLOCK_Q4_1 ? 4 : 8;
        q = block[l + (i & 15)] >> 4 * (i >> 4) & 15;
        if (l == 8) q |= (block[4 + (i >> 3)] >> (i & 7) & 1) << 4;
        d = ref_from_f16(ref_u16(block)) * q;
        low = ref_from_f16(ref_u16(block + 2));
        if (size) *size = fabs(d) + fabs(low);
        return d + low;
    case REF_BLOCK_Q5_0:
        q = block[6 + (i & 15)] >> 4 * (i >> 4) & 15;
        q |= (block[2 + (i >> 3)] >> (i & 7) & 1) << 4;
        w = ref_from_f16(ref_u16(block)) * (q - 16);
        break;
    case REF_BLOCK_Q2_K:
        q = block[16 + 32 * (i >> 7) + (i & 31)] >> 2 * (i >> 5 & 3) & 3;
        d = ref_from_f16(ref_u16(block + 80)) * (block[i >> 4] & 15) * q;
        low = ref_from_f16(ref_u16(block + 82)) * (block[i >> 4] >> 4);
        if (size) *size = fabs(d) + fabs(low);
        return d - low;
    case REF_BLOCK_Q3_K:
        q = block[32 + 32 * (i >> 7) + (i & 31)] >> 2 * (i >> 5 & 3) & 3;
        if (!(block[i & 31] >> (i >> 5) & 1)) q -= 4;
        w = ref_from_f16(ref_u16(block + 108)) * ref_q3_scale(block + 96, i >> 4) * q;
        break;
    case REF_BLOCK_IQ4_NL:
        w = ref_from_f16(ref_u16(block)) * ref_iq4[block[2 + (i & 15)] >> 4 * (i >> 4) & 15];
        break;
    case REF_BLOCK_IQ4_XS:
        n = i >> 5;
        q = (block[4 + (n >> 1)] >> 4 * (n & 1) & 15) | (ref_u16(block + 2) >> 2 * n & 3) << 4;
        w = ref_from_f16(ref_u16(block)) * (q - 32);
        w *= ref_iq4[block[8 + 16 * n + (i & 15)] >> 4 * (i >> 4 & 1) & 15];
        break;
    case REF_BLOCK_MXFP4:
        w = ldexp(ref_from_e2m1(block[1 + (i & 15)] >> 4 * (i >> 4) & 15), block[0] - 127);
        break;
    case REF_BLOCK_NVFP4:
        q = block[4 + 8 * (i >> 4) + (i & 7)] >> 4 * (i >> 3 & 1) & 15;
        w = ref_from_ue4m3(block[i >> 4]) * ref_from_e2m1(q);
        break;
    case REF_BLOCK_IQ2_XXS:
    case REF_BLOCK_IQ2_XS:
    case REF_BLOCK_IQ2_S:
    case REF_BLOCK_IQ3_XXS:
    case REF_BLOCK_IQ3_S: w = ref_iq_weight(type, block, i); break;
    case REF_BLOCK_IQ1_S:
    case REF_BLOCK_IQ1_M: w = ref_iq1_weight(type, block, i); break;
    case REF_BLOCK_TQ1_0:
        q = i < 160 ? ref_digit(block[i & 31], i >> 5)
            : i < 240 ? ref_digit(block[32 + (i & 15)], (i - 160) >> 4)
                      : ref_digit(block[48 + (i & 3)], (i - 240) >> 2);
        w = ref_from_f16(ref_u16(block + 52)) * (q - 1);
        break;
    case REF_BLOCK_TQ2_0:
        w = ref_from_f16(ref_u16(block + 64)) * ((block[32 * (i >> 7) + (i & 31)] >> 2 * (i >> 5 & 3) & 3) - 1);
        break;
    default: w = (double)NAN;
    }
    if (size) *size = fabs(w);
    return w;
}

/* `values` weights (a multiple of the block's) as double; size: NULL, or of each the sizes of its terms. */
static inline void ref_dequantise(int type, const void *blocks, size_t values, double *w, double *size)
{
    const unsigned char *block = (const unsigned char *)blocks;
    size_t per = ref_block_values(type), i, j;
    for (i = 0; per && i + per <= values; i += per, block += ref_block_bytes(type))
        for (j = 0; j < per; j++)
            w[i + j] = ref_weight(type, block, (int)j, size ? size + i + j : NULL);
}

static inline void ref_dequantise_f32(int type, const void *blocks, size_t values, float *w)
{
    const unsigned char *block = (const unsigned char *)blocks;
    size_t per = ref_block_values(type), i, j;
    for (i = 0; per && i + per <= values; i += per, block += ref_block_bytes(type))
        for (j = 0; j < per; j++) w[i + j] = (float)ref_weight(type, block, (int)j, NULL);
}

/* -- how they are made -- */

static inline int ref_rounded(double x, int low, int high)
{
    return x <= low ? low : x >= high ? high : (int)floor(x + 0.5);
}

/* The s for which s * q, q integers of low ... high, comes nearest to x. */
static inline double ref_fit_scale(const float *x, int n, int low, int high)
{
    double most = 0, best = 0, best_error = -1;
    int i, step;
    for (i = 0; i < n; i++)
        if (fabs((double)x[i]) > fabs(most)) most = (double)x[i];
    if (!(fabs(most) > 1e-30)) return 0;
    /* the largest goes to the longer side, or a little past it, or to the shorter */
    for (step = -9; step <= 9; step++) {
        double inverse = (low + 0.1 * step) / most, xq = 0, qq = 0, xx = 0, error;
        int side;
        for (side = 0; side < 2; side++) {
            if (side) inverse = -inverse;
            xq = qq = xx = 0;
            for (i = 0; i < n; i++) {
                int q = ref_rounded((double)x[i] * inverse, low, high);
                xq += (double)x[i] * q;
                qq += (double)q * q;
                xx += (double)x[i] * (double)x[i];
            }
            if (!(qq > 0)) continue;
            error = xx - xq * xq / qq;
            if (best_error < 0 || error < best_error) {
                best_error = error;
                best = xq / qq;
            }
        }
    }
    return best;
}

/* The s >= 0 and m >= 0 for which s * q - m, q of 0 ... top, comes nearest to x. */
static inline void ref_fit_scale_and_minimum(const float *x, int n, int top, double *s, double *m)
{
    double low = 0, high = (double)x[0], best_error = -1;
    int i, step;
    *s = *m = 0;
    for (i = 0; i < n; i++) {
        if ((double)x[i] < low) low = (double)x[i];
        if ((double)x[i] > high) high = (double)x[i];
    }
    *m = -low;
    if (!(high - low > 1e-30)) return;
    for (step = -10; step <= 10; step++) {
        double inverse = (top + 0.1 * step) / (high - low), xs = 0, qs = 0, xq = 0, qq = 0, xx = 0;
        double scale, minimum, error, det;
        for (i = 0; i < n; i++) {
            int q = ref_rounded(((double)x[i] - low) * inverse, 0, top);
            xs += (double)x[i];
            qs += q;
            xq += (double)x[i] * q;
            qq += (double)q * q;
            xx += (double)x[i] * (double)x[i];
        }
        det = n * qq - qs * qs;
        if (!(det > 0)) continue;
        scale = (n * xq - xs * qs) / det;
        minimum = (scale * qs - xs) / n;
        if (minimum < 0) {
            minimum = 0;
            scale = xq / qq;
        }
        if (!(scale > 0)) continue;
        error = xx + scale * scale * qq + n * minimum * minimum
                - 2 * (scale * xq - minimum * xs + scale * minimum * qs);
        if (best_error < 0 || error < best_error) {
            best_error = error;
            *s = scale;
            *m = minimum;
        }
    }
}

static inline void ref_quantise_32(int type, const float *x, unsigned char *block)
{
    int low = type == REF_BLOCK_Q4_0 ? -8 : -127, high = type == REF_BLOCK_Q4_0 ? 7 : 127, i;
    uint16_t half = ref_to_f16(ref_fit_scale(x, 32, low, high));
    double d = ref_from_f16(half), inverse = d > 0 || d < 0 ? 1 / d : 0;
    memset(block, 0, ref_block_bytes(type));
    ref_put_u16(block, half);
    for (i = 0; i < 32; i++) {
        int q = ref_rounded((double)x[i] * inverse, low, high);
        if (type == REF_BLOCK_Q8_0) block[2 + i] = (unsigned char)(q & 255);
        else block[2 + (i & 15)] = (unsigned char)(block[2 + (i & 15)] | (q + 8) << 4 * (i >> 4));
    }
}

/* Q4_K and Q5_K */
static inline void ref_quantise_k(int type, const float *x, unsigned char *block)
{
    int top = type == REF_BLOCK_Q4_K ? 15 : 31, quants = type == REF_BLOCK_Q4_K ? 16 : 48, i, j;
    double s[8], m[8], most_s = 0, most_m = 0, d, dmin;
    unsigned char *b = block + 4;
    memset(block, 0, ref_block_bytes(type));
    for (j = 0; j < 8; j++) {
        ref_fit_scale_and_minimum(x + 32 * j, 32, top, &s[j], &m[j]);
        if (s[j] > most_s) most_s = s[j];
        if (m[j] > most_m) most_m = m[j];
    }
    ref_put_u16(block, ref_to_f16(most_s / 63));
    ref_put_u16(block + 2, ref_to_f16(most_m / 63));
    d = ref_from_f16(ref_u16(block));
    dmin = ref_from_f16(ref_u16(block + 2));
    for (j = 0; j < 8; j++) {
        int sc = d > 0 ? ref_rounded(s[j] / d, 0, 63) : 0,
            mn = dmin > 0 ? ref_rounded(m[j] / dmin, 0, 63) : 0;
        double scale = d * sc, minimum = dmin * mn;
        if (j < 4) {
            b[j] = (unsigned char)(b[j] | sc);
            b[j + 4] = (unsigned char)(b[j + 4] | mn);
        } else {
            b[j + 4] = (unsigned char)((sc & 15) | (mn & 15) << 4);
            b[j - 4] = (unsigned char)(b[j - 4] | sc >> 4 << 6);
            b[j] = (unsigned char)(b[j] | mn >> 4 << 6);
        }
        for (i = 32 * j; i < 32 * j + 32; i++) {
            int q = scale > 0 ? ref_rounded(((double)x[i] + minimum) / scale, 0, top) : 0;
            unsigned char *low = block + quants + 32 * (i >> 6) + (i & 31), *high = block + 16 + (i & 31);
            *low = (unsigned char)(*low | (q & 15) << 4 * (j & 1));
            if (top == 31) *high = (unsigned char)(*high | q >> 4 << j);
        }
    }
}

static inline void ref_quantise_q6_k(const float *x, unsigned char *block)
{
    double s[16], most = 0, d;
    int i, j;
    memset(block, 0, 210);
    for (j = 0; j < 16; j++) {
        s[j] = ref_fit_scale(x + 16 * j, 16, -32, 31);
        if (fabs(s[j]) > fabs(most)) most = s[j];
    }
    ref_put_u16(block + 208, ref_to_f16(most / -128)); /* the largest becomes -128 */
    d = ref_from_f16(ref_u16(block + 208));
    for (j = 0; j < 16; j++) {
        int sc = d > 0 || d < 0 ? ref_rounded(s[j] / d, -128, 127) : 0;
        double scale = d * sc;
        block[192 + j] = (unsigned char)(sc & 255);
        for (i = 16 * j; i < 16 * j + 16; i++) {
            int q = scale > 0 || scale < 0 ? ref_rounded((double)x[i] / scale, -32, 31) + 32 : 32, n = i >> 7;
            unsigned char *low = block + 64 * n + 32 * (i >> 5 & 1) + (i & 31);
            unsigned char *high = block + 128 + 32 * n + (i & 31);
            *low = (unsigned char)(*low | (q & 15) << 4 * (i >> 6 & 1));
            *high = (unsigned char)(*high | q >> 4 << 2 * (i >> 5 & 3));
        }
    }
}

/* Sets the bits of value i of a block to `code`. */
static inline void ref_put_code(int type, unsigned char *block, int i, int code)
{
    int nibble = i & 15, half = i >> 4 & 1, at = 0, shift = 4 * half, bits = 15, fifth = -1;
    switch (type) {
    case REF_BLOCK_Q4_1: at = 4 + nibble; break;
    case REF_BLOCK_Q5_0: at = 6 + nibble, fifth = 2; break;
    case REF_BLOCK_Q5_1: at = 8 + nibble, fifth = 4; break;
    case REF_BLOCK_IQ4_NL: at = 2 + nibble; break;
    case REF_BLOCK_MXFP4: at = 1 + nibble; break;
    case REF_BLOCK_IQ4_XS: at = 8 + 16 * (i >> 5) + nibble; break;
    case REF_BLOCK_NVFP4: at = 4 + 8 * (i >> 4) + (i & 7), shift = 4 * (i >> 3 & 1); break;
    default: at = (type == REF_BLOCK_Q2_K ? 16 : 32) + 32 * (i >> 7) + (i & 31), shift = 2 * (i >> 5 & 3), bits = 3;
    }
    block[at] = (unsigned char)((block[at] & ~(bits << shift)) | (code & bits) << shift);
    if (fifth >= 0)
        block[fifth + i / 8] = (unsigned char)((block[fifth + i / 8] & ~(1 << (i & 7))) | (code >> 4 & 1) << (i & 7));
    if (type == REF_BLOCK_Q3_K)
        block[i & 31] = (unsigned char)((block[i & 31] & ~(1 << (i >> 5))) | (code >> 2 & 1) << (i >> 5));
}

/* The formats that have no quantiser above: factors such that the largest values fit, then the nearest code. */
static inline void ref_quantise_nearest(int type, const float *x, unsigned char *block)
{
    const struct ref_layout *l = ref_layout_of(type);
    int n = (int)l->values, group = type == REF_BLOCK_Q2_K || type == REF_BLOCK_Q3_K || n == 64 ? 16 : 32, i, j;
    int codes = type == REF_BLOCK_Q2_K ? 4 : type == REF_BLOCK_Q3_K ? 8 : l->bytes > 20 && n == 32 ? 32 : 16;
    double low[16], high[16], most = 0, least = 0, d, dmin;
    memset(block, 0, l->bytes);
    for (j = 0; j < n / group; j++) {
        low[j] = high[j] = 0;
        for (i = group * j; i < group * (j + 1); i++) {
            if ((double)x[i] < low[j]) low[j] = (double)x[i];
            if ((double)x[i] > high[j]) high[j] = (double)x[i];
        }
        if (l->second < 0) high[j] = high[j] > -low[j] ? high[j] : -low[j], low[j] = 0; /* the largest size */
        if (high[j] - low[j] > most) most = high[j] - low[j];
        if (low[j] < least) least = low[j];
    }
    d = most / (type == REF_BLOCK_Q2_K   ? 45
                : type == REF_BLOCK_Q3_K ? 4 * 31
                : type == REF_BLOCK_IQ4_XS ? 113 * 31
                : type == REF_BLOCK_IQ4_NL ? 113
                : type == REF_BLOCK_Q5_0   ? 15
                                           : codes - 1);
    dmin = type == REF_BLOCK_Q2_K ? -least / 15 : least;
    if (l->factor >= 0) ref_put_u16(block + l->factor, ref_to_f16(d));
    if (l->second >= 0) ref_put_u16(block + l->second, ref_to_f16(dmin));
    if (type == REF_BLOCK_MXFP4) block[0] = (unsigned char)(most > 0 ? 127 + ceil(log2(most / 6)) : 0);
    for (j = 0; j < n / group; j++) {
        int q = most > 0 ? (int)ceil((high[j] - low[j]) / most * (type == REF_BLOCK_Q2_K ? 15 : 31)) : 0;
        if (type == REF_BLOCK_NVFP4)
            while (block[j] < 126 && ref_from_ue4m3(block[j]) * 6 < high[j]) block[j]++;
        if (type == REF_BLOCK_Q2_K)
            block[j] = (unsigned char)(q | (least < 0 ? ref_rounded(15 * low[j] / least, 0, 15) : 0) << 4);
        q += 32; /* as signed scales of 6 bits */
        if (type == REF_BLOCK_Q3_K) {
            block[96 + j % 8] = (unsigned char)(block[96 + j % 8] | (q & 15) << 4 * (j / 8));
            block[104 + j % 4] = (unsigned char)(block[104 + j % 4] | q >> 4 << 2 * (j / 4));
        }
        if (type == REF_BLOCK_IQ4_XS) {
            block[4 + j / 2] = (unsigned char)(block[4 + j / 2] | (q & 15) << 4 * (j & 1));
            block[2 + j / 4] = (unsigned char)(block[2 + j / 4] | q >> 4 << 2 * (j & 3));
        }
    }
    for (i = 0; i < n; i++) {
        int code, best = 0;
        double error, best_error = -1;
        for (code = 0; code < codes; code++) {
            ref_put_code(type, block, i, code);
            error = fabs(ref_weight(type, block, i, NULL) - (double)x[i]);
            if (best_error >= 0 && !(error < best_error)) continue;
            best = code;
            best_error = error;
        }
        ref_put_code(type, block, i, best);
    }
}

/* `values` values (a multiple of the block's) to blocks. */
static inline void ref_quantise(int type, const float *x, size_t values, void *blocks)
{
    unsigned char *block = (unsigned char *)blocks;
    size_t per = ref_block_values(type), i;
    for (i = 0; per && i + per <= values; i += per, x += per, block += ref_block_bytes(type)) {
        switch (type) {
        case REF_BLOCK_F32: memcpy(block, x, 4); break;
        case REF_BLOCK_F16: ref_put_u16(block, ref_to_f16((double)*x)); break;
        case REF_BLOCK_BF16: ref_put_u16(block, ref_to_bf16((double)*x)); break;
        case REF_BLOCK_Q4_0:
        case REF_BLOCK_Q8_0: ref_quantise_32(type, x, block); break;
        case REF_BLOCK_Q4_K:
        case REF_BLOCK_Q5_K: ref_quantise_k(type, x, block); break;
        case REF_BLOCK_Q6_K: ref_quantise_q6_k(x, block); break;
        default: ref_quantise_nearest(type, x, block);
        }
    }
}

#endif
