/* arith.h - the arithmetic of one lane: bit casts, half formats, rounding, approximations.
 *
 * Everything here has few branches and no state, so that the 32-lane loops of scalar.c vectorise.
 * Values are passed as their bits. NaN results are canonical: f32 0x7fffffff, f16 and bf16 0x7fff; f64 keeps
 * a payload, as the chip does. */
#ifndef SIM_ARITH_H
#define SIM_ARITH_H

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t  s32;
typedef int64_t  s64;

static inline float  F(u32 x)     { float f;  memcpy(&f, &x, 4); return f; }
static inline u32    U(float f)   { u32 x;    memcpy(&x, &f, 4); return x; }
static inline double D(u64 x)     { double d; memcpy(&d, &x, 8); return d; }
static inline u64    UD(double d) { u64 x;    memcpy(&x, &d, 8); return x; }

/* --- f32 -------------------------------------------------------------------------------------- */
static inline u32 nan32(u32 x) { return (x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : x; }
static inline u32 c32(float f) { return nan32(U(f)); }
static inline u32 fz(u32 x) { return x & 0x7f800000 ? x : x & 0x80000000; } /* flush, keep the sign */
static inline float Fz(u32 x)  { return F(fz(x)); }
static inline u32 cz(float f)  { return fz(c32(f)); }
static inline u32 sat32(u32 x) /* NaN and -0 become +0 */
{ float f = F(x); return f > 0.0f ? (f < 1.0f ? x : 0x3f800000) : 0; }
static inline int isnan32(u32 x) { return (x & 0x7fffffff) > 0x7f800000; }
static inline u32 min32(u32 a, u32 b)
{
    u32 r = F(a) < F(b) ? a : F(b) < F(a) ? b : a | b;
    r = isnan32(b) ? a : r;
    r = isnan32(a) ? b : r;
    return nan32(r);
}
static inline u32 max32(u32 a, u32 b)
{
    u32 r = F(a) > F(b) ? a : F(b) > F(a) ? b : a & b;
    r = isnan32(b) ? a : r;
    r = isnan32(a) ? b : r;
    return nan32(r);
}

/* --- f64: the first NaN operand is the result, made quiet ------------------------------------- */
static inline int isnan64(u64 x) { return (x & INT64_MAX) > UINT64_C(0x7ff0000000000000); }
static inline u64 min64(u64 a, u64 b)
{
    if (isnan64(a)) return isnan64(b) ? a | UINT64_C(0x8000000000000) : b;
    if (isnan64(b)) return a;
    return D(a) < D(b) ? a : D(b) < D(a) ? b : a | b;
}
static inline u64 max64(u64 a, u64 b)
{
    if (isnan64(a)) return isnan64(b) ? a | UINT64_C(0x8000000000000) : b;
    if (isnan64(b)) return a;
    return D(a) > D(b) ? a : D(b) > D(a) ? b : a & b;
}

/* --- f16 -------------------------------------------------------------------------------------- */
static inline float H(u32 h)
{
    u32 em = (h & 0x7fff) << 13;
    u32 r = U(F(em) * 0x1p112f);                              /* exact for subnormals too */
    r = em >= 0x0f800000 ? em | 0x7f800000 : r;
    return F(r | (h & 0x8000) << 16);
}
static inline float Hz(u32 h) { return H(h & 0x7c00 ? h : h & 0x8000); }
static inline u32 h16(float f)                                /* to nearest even */
{
    u32 x = U(f), s = x >> 16 & 0x8000, a = x & 0x7fffffff;
    u32 normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
    u32 tiny = U(F(a) + 0.5f) - 0x3f000000;                   /* 0.5f has the spacing of f16 subnormals */
    u32 r = a < 0x38800000 ? tiny : normal;
    r = a >= 0x477ff000 ? 0x7c00 : r;
    r |= s;
    return a > 0x7f800000 ? 0x7fff : r;
}
static inline float odd32(float s, float error) /* s + error, rounded to odd: a later rounding is correct */
{
    u32 x = U(s);
    u32 away = (error > 0) == (s > 0) ? x + 1 : x - 1;
    u32 inexact = (error > 0) | (error < 0);
    return F(inexact && !(x & 1) ? away : x);
}
static inline float fmah(float a, float b, float c) /* f16 operands; round the result to f16 afterwards */
{
    float p = a * b, s = p + c, t = s - p;
    return odd32(s, (p - (s - t)) + (c - t));
}
static inline u32 min16(u32 a, u32 b, u32 infinity)           /* f16 and bf16 are sign and magnitude */
{
    u32 an = (a & 0x7fff) > infinity, bn = (b & 0x7fff) > infinity;
    s32 x = a & 0x8000 ? -(s32)(a & 0x7fff) - 1 : (s32)a, y = b & 0x8000 ? -(s32)(b & 0x7fff) - 1 : (s32)b;
    u32 r = x < y ? a : b;
    r = bn ? a : r;
    r = an ? b : r;
    return an & bn ? 0x7fff : r;
}
static inline u32 max16(u32 a, u32 b, u32 infinity)
{
    u32 an = (a & 0x7fff) > infinity, bn = (b & 0x7fff) > infinity;
    s32 x = a & 0x8000 ? -(s32)(a & 0x7fff) - 1 : (s32)a, y = b & 0x8000 ? -(s32)(b & 0x7fff) - 1 : (s32)b;
    u32 r = x > y ? a : b;
    r = bn ? a : r;
    r = an ? b : r;
    return an & bn ? 0x7fff : r;
}

/* --- bf16 ------------------------------------------------------------------------------------- */
static inline float Bf(u32 b) { return F(b << 16); }
static inline u32 b16(float f)
{
    u32 x = U(f), r = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    return (x & 0x7fffffff) > 0x7f800000 ? 0x7fff : r;
}
static inline float narrow_odd(double d)                      /* double to float, rounded to odd */
{
    float f = (float)d;
    double e = d - (double)f;
    if (!(e > 0 || e < 0) || (U(f) & 1) || isinf(f))
        return isinf(f) && !isinf(d) ? F((U(f) & 0x80000000) | 0x7f7fffff) : f;
    if (f == 0) return F((d < 0 ? 0x80000000 : 0) | 1);
    return F((e > 0) == (f > 0) ? U(f) + 1 : U(f) - 1);
}
static inline double odd64(double s, double error)
{
    u64 x = UD(s);
    if (!(error > 0 || error < 0) || (x & 1)) return s;
    return D((error > 0) == (s > 0) ? x + 1 : x - 1);
}
static inline float fmab(float a, float b, float c)           /* bf16 operands */
{
    double p = (double)a * b, s = p + c, t = s - p;
    return narrow_odd(odd64(s, (p - (s - t)) + (c - t)));
}

/* --- a double (exact or rounded to odd) to a small format, any rounding ----------------------- */
typedef struct small_format {
    int mantissa, min_exponent, max_exponent;
    u32 infinity, nan, top;
    int bits;
} small_format;
static const small_format small_f16  = { 10,  -14,  15, 0x7c00, 0x7fff, 0x7bff, 16 };
static const small_format small_bf16 = {  7, -126, 127, 0x7f80, 0x7fff, 0x7f7f, 16 };
static const small_format small_e4m3 = {  3,   -6,   8, 0x7e,   0x7f,   0x7e,    8 };
static const small_format small_e5m2 = {  2,  -14,  15, 0x7c,   0x7f,   0x7b,    8 };
static const small_format small_tf32 = { 10, -126, 127, 0x3fc00, 0x3ffff, 0x3fbff, 19 };

static inline u32 pack_small(double v, const small_format *f, int mode,
                             int satfinite) /* mode: R_... of sim.h */
{
    u32 sign = UD(v) >> 63 ? 1u << (f->bits - 1) : 0;
    if (isnan(v)) return f->nan;
    double a = fabs(v);
    if (isinf(a)) return sign | (satfinite ? f->top : f->infinity);
    if (a == 0) return sign;
    int e = (int)(UD(a) >> 52) - 1023; /* subnormal doubles are far below every format here */
    if (e < f->min_exponent) e = f->min_exponent;
    double scaled = ldexp(a, f->mantissa - e), whole = floor(scaled), rest = scaled - whole;
    u64 m = (u64)whole;
    switch (mode) {
    case 0: m += rest > 0.5 || (rest == 0.5 && (m & 1)); break;
    case 1: break;
    case 2: m += sign && rest > 0; break;
    case 3: m += !sign && rest > 0; break;
    default: m += rest >= 0.5; break;
    }
    u64 r = m >> f->mantissa ? ((u64)(e - f->min_exponent) << f->mantissa) + m : m;
    if (r > f->top) {
        int down = mode == 1 || (mode == 2 && !sign) || (mode == 3 && sign);
        r = satfinite || down ? f->top : f->infinity;
    }
    return sign | (u32)r;
}
static inline double unpack_small(u32 x, const small_format *f)
{
    u32 a = x & ((1u << (f->bits - 1)) - 1), m = a & ((1u << f->mantissa) - 1);
    int e = (int)(a >> f->mantissa);
    double v;
    if (a > f->infinity || a == f->nan) v = NAN;
    else if (a == f->infinity && f->infinity != f->top) v = INFINITY;
    else v = e ? ldexp((double)(m + (1u << f->mantissa)), e - 1 + f->min_exponent - f->mantissa)
               : ldexp((double)m, f->min_exponent - f->mantissa);
    return x >> (f->bits - 1) & 1 ? -v : v;
}

/* --- approximations: computed in double and rounded, so well within the documented bounds ----- */
static inline u32 ex2_32(float x)
{
    double t = x;
    t = t < -200.0 ? -200.0 : t;
    t = t > 200.0 ? 200.0 : t;
    double shifted = t + 0x1.8p52, y = (t - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1;
    double p = 1.0 / 362880;
    p = p * y + 1.0 / 40320;
    p = p * y + 1.0 / 5040;
    p = p * y + 1.0 / 720;
    p = p * y + 1.0 / 120;
    p = p * y + 1.0 / 24;
    p = p * y + 1.0 / 6;
    p = p * y + 0.5;
    p = p * y + 1.0;
    p = p * y + 1.0;
    return x != x ? 0x7fffffff : U((float)D(UD(p) + (UD(shifted) << 52)));
}
static inline u32 lg2_32(float x)   { return c32((float)log2((double)x)); }
static inline u32 sin_32(u32 x)     { return c32((float)sin((double)Fz(x))); }
static inline u32 cos_32(u32 x)     { return c32((float)cos((double)Fz(x))); }
static inline u32 tanh_32(float x)  { return c32((float)tanh((double)x)); }
static inline u32 rcp_32(float x)   { return c32((float)(1.0 / (double)x)); }
static inline u32 rsqrt_32(float x) { return c32((float)(1.0 / sqrt((double)x))); }
static inline u32 sqrt_32(float x)  { return c32(sqrtf(x)); }
static inline u32 div_32(float a, float b)                    /* div.approx gives 0 for huge divisors */
{
    float r = (float)((double)a / (double)b);
    u32 huge = fabsf(b) > 0x1p126f && fabsf(b) < INFINITY && !isinf(a);
    return huge && a == a ? U(r) & 0x80000000 : c32(r);
}
static inline u32 divfull_32(float a, float b) { return c32((float)((double)a / (double)b)); }
static inline u64 high_half(double v) /* the f64 approximations read and write the upper word only */
{ return UD(v) & UINT64_C(0xffffffff00000000); }
static inline u64 flush64(u64 x)
{
    return x & UINT64_C(0x7ff0000000000000) ? x : x & UINT64_C(0x8000000000000000);
}
static inline u64 rcp_64(u64 x)
{
    x = flush64(x & UINT64_C(0xffffffff00000000));
    return isnan64(x) ? UINT64_C(0x7fffffff00000000) : flush64(high_half(1.0 / D(x)));
}
static inline u64 rsqrt_64(u64 x)
{
    x = flush64(x & UINT64_C(0xffffffff00000000));
    double r = 1.0 / sqrt(D(x));
    return isnan(r) ? UINT64_C(0x7fffffff00000000) : high_half(r);
}

/* --- integers --------------------------------------------------------------------------------- */
static inline u32 clamp_s32(s64 x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? 0x80000000 : (u32)x; }
static inline u32 mulhi_s32(u32 a, u32 b) { return (u32)((u64)((s64)(s32)a * (s32)b) >> 32); }
static inline u32 mulhi_u32(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
static inline u64 mulhi_u64(u64 a, u64 b)
{
    u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
    u64 mid = ah * bl + (al * bl >> 32), low = al * bh + (u32)mid;
    return ah * bh + (mid >> 32) + (low >> 32);
}
static inline u64 mulhi_s64(u64 a, u64 b)
{ return mulhi_u64(a, b) - ((s64)a < 0 ? b : 0) - ((s64)b < 0 ? a : 0); }
static inline s64 sx24(u32 x) { return (s32)(x << 8) >> 8; }
static inline u32 div_s32(u32 a, u32 b) { return !b ? ~0u : b == ~0u ? 0u - a : (u32)((s32)a / (s32)b); }
static inline u32 rem_s32(u32 a, u32 b) { return !b ? ~0u : b == ~0u ? 0u : (u32)((s32)a % (s32)b); }
static inline u64 div_s64(u64 a, u64 b)
{
    return !b ? ~UINT64_C(0) : b == ~UINT64_C(0) ? 0u - a : (u64)((s64)a / (s64)b);
}
static inline u64 rem_s64(u64 a, u64 b)
{
    return !b ? ~UINT64_C(0) : b == ~UINT64_C(0) ? 0u : (u64)((s64)a % (s64)b);
}
static inline u32 popc32(u32 x)
{
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}
static inline u32 clz32(u32 x)
{ x |= x >> 1; x |= x >> 2; x |= x >> 4; x |= x >> 8; x |= x >> 16; return 32 - popc32(x); }
static inline u32 popc64(u64 x) { return popc32((u32)x) + popc32((u32)(x >> 32)); }
static inline u32 clz64(u64 x)  { return x >> 32 ? clz32((u32)(x >> 32)) : 32 + clz32((u32)x); }
static inline u32 brev32(u32 x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return x >> 24 | (x >> 8 & 0xff00) | (x & 0xff00) << 8 | x << 24;
}
static inline u64 brev64(u64 x) { return (u64)brev32((u32)x) << 32 | brev32((u32)(x >> 32)); }
static inline u32 shl32(u32 a, u32 n) { return n > 31 ? 0 : a << (n & 31); }
static inline u32 shr32(u32 a, u32 n) { return n > 31 ? 0 : a >> (n & 31); }
static inline u32 sar32(u32 a, u32 n) { return (u32)((s32)a >> (n > 31 ? 31 : n)); }
static inline u64 shl64(u64 a, u32 n) { return n > 63 ? 0 : a << (n & 63); }
static inline u64 shr64(u64 a, u32 n) { return n > 63 ? 0 : a >> (n & 63); }
static inline u64 sar64(u64 a, u32 n) { return (u64)((s64)a >> (n > 63 ? 63 : n)); }
static inline u32 funnel_l(u32 a, u32 b, u32 n) { return n ? n > 31 ? a : b << n | a >> (32 - n) : b; }
static inline u32 funnel_r(u32 a, u32 b, u32 n) { return n ? n > 31 ? b : b << (32 - n) | a >> n : a; }
static inline u32 bfe_u32(u32 a, u32 p, u32 n)
{
    p &= 255;
    n &= 255;
    return shr32(a, p) & (n > 31 ? ~0u : (1u << n) - 1);
}
static inline u64 bfe_u64(u64 a, u32 p, u32 n)
{
    p &= 255;
    n &= 255;
    return shr64(a, p) & (n > 63 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1);
}
static inline u32 bfe_s32(u32 a, u32 p, u32 n)
{
    p &= 255; n &= 255;
    if (!n) return 0;
    u32 top = p + n - 1 > 31 ? 31 : p + n - 1, sign = a >> top & 1, r = sar32(a, p);
    return n > 31 ? r : (r & ((1u << n) - 1)) | (sign ? ~0u << n : 0);
}
static inline u64 bfe_s64(u64 a, u32 p, u32 n)
{
    p &= 255; n &= 255;
    if (!n) return 0;
    u32 top = p + n - 1 > 63 ? 63 : p + n - 1;
    u64 sign = a >> top & 1, r = sar64(a, p);
    return n > 63 ? r : (r & ((UINT64_C(1) << n) - 1)) | (sign ? ~UINT64_C(0) << n : 0);
}
static inline u32 bfi_32(u32 a, u32 b, u32 p, u32 n)          /* low bits of a into b */
{
    p &= 255; n &= 255;
    u32 mask = p > 31 ? 0 : (n > 31 ? ~0u : (1u << n) - 1) << p;
    return (b & ~mask) | (shl32(a, p) & mask);
}
static inline u64 bfi_64(u64 a, u64 b, u32 p, u32 n)
{
    p &= 255; n &= 255;
    u64 mask = p > 63 ? 0 : (n > 63 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1) << p;
    return (b & ~mask) | (shl64(a, p) & mask);
}
static inline u32 bfind_u32(u32 x, u32 shift) { return !x ? ~0u : shift ? clz32(x) : 31 - clz32(x); }
static inline u32 bfind_u64(u64 x, u32 shift) { return !x ? ~0u : shift ? clz64(x) : 63 - clz64(x); }
static inline u32 fns_32(u32 mask, u32 base, s32 offset) /* the nth set bit from base, upwards or downwards */
{
    if (base > 31) return ~0u;
    if (offset == 0) return mask >> base & 1 ? base : ~0u;
    s32 step = offset > 0 ? 1 : -1;
    u32 left = offset > 0 ? (u32)offset : 0u - (u32)offset;
    for (s32 at = (s32)base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0) return (u32)at;
    return ~0u;
}
static inline u32 szext_32(u32 a, u32 n, u32 wrap, u32 is_signed)
{
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    if (!n) return 0;
    return n == 32 ? a : is_signed ? (u32)((s32)(a << (32 - n)) >> (32 - n)) : a & ((1u << n) - 1);
}
static inline u32 bmsk_32(u32 a, u32 b, u32 wrap)
{
    if (wrap) { a &= 31; b &= 31; }
    return shl32(b > 31 ? ~0u : (1u << b) - 1, a);
}
static inline u32 lop3_32(u32 a, u32 b, u32 c, u32 t)
{
    u32 r = (0u - (t & 1)) & ~a & ~b & ~c;
    r |= (0u - (t >> 1 & 1)) & ~a & ~b & c;
    r |= (0u - (t >> 2 & 1)) & ~a & b & ~c;
    r |= (0u - (t >> 3 & 1)) & ~a & b & c;
    r |= (0u - (t >> 4 & 1)) & a & ~b & ~c;
    r |= (0u - (t >> 5 & 1)) & a & ~b & c;
    r |= (0u - (t >> 6 & 1)) & a & b & ~c;
    r |= (0u - (t >> 7 & 1)) & a & b & c;
    return r;
}
static inline u32 prmt_byte(u64 ab, u32 s)
{
    u32 byte = (u32)(ab >> ((s & 7) * 8)) & 0xff;
    return s & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
static inline u32 prmt_32(u32 a, u32 b, u32 s)
{
    u64 ab = (u64)b << 32 | a;
    return prmt_byte(ab, s) | prmt_byte(ab, s >> 4) << 8 | prmt_byte(ab, s >> 8) << 16
           | prmt_byte(ab, s >> 12) << 24;
}
static inline u32 prmt_select(u32 mode,
                              u32 c) /* mode: f4e b4e rc8 rc16 ecl ecr, from 1: as a general selector */
{
    static const u32 table[6][4] = { { 0x3210, 0x4321, 0x5432, 0x6543 }, { 0x5670, 0x6701, 0x7012, 0x0123 },
                                     { 0x0000, 0x1111, 0x2222, 0x3333 }, { 0x1010, 0x3232, 0x1010, 0x3232 },
                                     { 0x3210, 0x3211, 0x3222, 0x3333 }, { 0x0000, 0x1110, 0x2210, 0x3210 } };
    return table[mode - 1][c & 3];
}
static inline u32 dp4(u32 a, u32 b, u32 c, int sa, int sb)
{
    u32 r = c;
    for (int k = 0; k < 32; k += 8) {
        s32 x = sa ? (int8_t)(a >> k) : (s32)(a >> k & 255), y = sb ? (int8_t)(b >> k) : (s32)(b >> k & 255);
        r += (u32)(x * y);
    }
    return r;
}
static inline u32 dp2(u32 a, u32 b, u32 c, int sa, int sb, int hi)
{
    u32 r = c;
    for (int k = 0; k < 2; k++) {
        s32 x = sa ? (int16_t)(a >> k * 16) : (s32)(a >> k * 16 & 0xffff);
        u32 byte = b >> (hi * 16 + k * 8) & 255;
        s32 y = sb ? (int8_t)byte : (s32)byte;
        r += (u32)x * (u32)y;
    }
    return r;
}
static inline u32 pair16(u32 lo, u32 hi) { return (lo & 0xffff) | hi << 16; }
static inline u64 pair32(u32 lo, u32 hi) { return (u64)hi << 32 | lo; }
static inline u32 lo32(u64 x) { return (u32)x; }
static inline u32 hi32(u64 x) { return (u32)(x >> 32); }
static inline s32 s16(u32 x) { return (int16_t)x; }

#endif
