/* twin_prelude.h - the PTX instructions that the formulas of ptxgen.h are made of, as C functions.
 *
 * twin.h turns a kernel's text into C that calls them: an instruction's name with '_' for '.' is the function.
 * Registers are integers that hold the bits. Compile with -ffp-contract=off. Approximate instructions are exact
 * but for `twin_share` times their documented bound (from -1 to 1; 2: a part that depends on the operand). */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define OP static inline __attribute__((unused, always_inline))
#ifndef TWIN_SHARE
static _Thread_local double twin_share;
#else
#define twin_share ((double)(TWIN_SHARE))
#endif
#ifndef TWIN_SIGN
#define TWIN_SIGN 1
#endif
#define twin_sign ((double)(TWIN_SIGN)) /* -1: those of rcp and rsqrt go the other way */

OP float f_(uint32_t x) { float v; memcpy(&v, &x, 4); return v; }
OP uint32_t b_(float v) { uint32_t x; memcpy(&x, &v, 4); return x; }
OP double g_(uint64_t x) { double v; memcpy(&v, &x, 8); return v; }
OP uint64_t d_(double v) { uint64_t x; memcpy(&x, &v, 8); return x; }

/* The result of an approximate instruction: v, moved by a part of `bound`, never beyond it; the other way where
 * it is negative. Without branches, so that a compiler can run several operands at once. */
OP uint32_t moved(uint32_t operand, double v, double bound)
{
    double share = bound < 0 ? -twin_share : twin_share;
    float near = (float)v, far;
    uint32_t r, step, movable;
    if (fabs(share) == 2) {
        uint32_t h = operand * 0x9e3779b9u;
        h = (h ^ h >> 15) * 0x85ebca6bu;
        share = (double)(int32_t)(h ^ h >> 13) * 0x1p-31;
    }
    bound = fabs(bound);
    far = (float)(v + share * bound);
    r = b_(far);
    step = fabs((double)far - v) > bound; /* rounded beyond it: one place back */
    r = fabs((double)far) > fabs(v) ? r - step : r + step;
    movable = (share != 0) & (fabs(v) >= 0x1p-126) & (fabs(v) < 0x1p128);
    movable &= (r << 1 >= 0x01000000u) & (r << 1 < 0xff000000u);
    return movable ? r : b_(near);
}
OP double ulp_(double v) { return g_((d_(v) & UINT64_C(0x7ff) << 52) - (UINT64_C(23) << 52)); }
OP float ftz_(uint32_t x) { return (x & 0x7f800000u) ? f_(x) : f_(x & 0x80000000u); }
OP uint32_t out_(uint32_t x) { return (x & 0x7f800000u) ? x : x & 0x80000000u; }
OP uint32_t ex2_approx_f32(uint32_t a)
{
    double v = exp2((double)f_(a));
    return moved(a, v, 2 * ulp_(v));
}
OP uint32_t ex2_approx_ftz_f32(uint32_t a)
{
    double v = exp2((double)ftz_(a));
    return out_(moved(a, v, 2 * ulp_(v)));
}
OP uint32_t rcp_approx_ftz_f32(uint32_t a)
{
    double v = 1 / (double)ftz_(a);
    return out_(moved(a, v, twin_sign * ulp_(v)));
}
OP uint32_t rsqrt_approx_ftz_f32(uint32_t a)
{
    double v = 1 / sqrt((double)ftz_(a));
    return out_(moved(a, v, twin_sign * fabs(v) * 0x1.125p-23)); /* 2^-22.9 */
}
OP uint32_t lg2_approx_ftz_f32(uint32_t a)
{
    double x = (double)ftz_(a), v = log2(x);
    return out_(moved(a, v, x > 0.5 && x < 2 ? 0x1p-22 : fabs(v) * 0x1p-22));
}
#define PLAIN(name, expression) OP uint32_t name(uint32_t a, uint32_t b) { return expression; }
#define FLOATS(name, expression32, expression64)                                                               \
    OP uint32_t name##_f32(uint32_t x, uint32_t y) { float a = f_(x), b = f_(y); return b_(expression32); }      \
    OP uint64_t name##_f64(uint64_t x, uint64_t y) { double a = g_(x), b = g_(y); return d_(expression64); }
#define FLOATS1(name, expression32, expression64)                                                              \
    OP uint32_t name##_f32(uint32_t x) { float a = f_(x); return b_(expression32); }                             \
    OP uint64_t name##_f64(uint64_t x) { double a = g_(x); return d_(expression64); }
#define COMPARES(name, expression)                                                                             \
    OP int setp_##name##_f32(uint32_t x, uint32_t y) { float a = f_(x), b = f_(y); return expression; }          \
    OP int setp_##name##_f64(uint64_t x, uint64_t y) { double a = g_(x), b = g_(y); return expression; }
OP uint32_t fma_rn_f32(uint32_t a, uint32_t b, uint32_t c) { return b_(fmaf(f_(a), f_(b), f_(c))); }
OP uint64_t fma_rn_f64(uint64_t a, uint64_t b, uint64_t c) { return d_(fma(g_(a), g_(b), g_(c))); }
FLOATS(add_rn, a + b, a + b)
FLOATS(sub_rn, a - b, a - b)
FLOATS(mul_rn, a *b, a *b)
FLOATS(div_rn, a / b, a / b)
FLOATS(min, a < b || b != b ? a : b, a < b || b != b ? a : b)
FLOATS(max, a > b || b != b ? a : b, a > b || b != b ? a : b)
FLOATS(copysign, copysignf(b, a), copysign(b, a))
FLOATS1(sqrt_rn, sqrtf(a), sqrt(a))
FLOATS1(rcp_rn, 1 / a, 1 / a)
OP uint32_t abs_f32(uint32_t a) { return a & 0x7fffffffu; }
OP uint32_t neg_f32(uint32_t a) { return a ^ 0x80000000u; }
OP uint64_t abs_f64(uint64_t a) { return a & ~(UINT64_C(1) << 63); }
OP uint64_t neg_f64(uint64_t a) { return a ^ UINT64_C(1) << 63; }
COMPARES(lt, a < b)
COMPARES(le, a <= b)
COMPARES(gt, a > b)
COMPARES(ge, a >= b)
COMPARES(eq, a == b)
COMPARES(ne, a < b || a > b)
COMPARES(ltu, !(a >= b))
COMPARES(leu, !(a > b))
COMPARES(gtu, !(a <= b))
COMPARES(geu, !(a < b))
COMPARES(neu, a != b)
COMPARES(equ, !(a < b || a > b))
COMPARES(nan, a != a || b != b)
OP int setp_lt_s32(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b; }
OP int setp_gt_s32(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b; }
OP int setp_ge_s32(uint32_t a, uint32_t b) { return (int32_t)a >= (int32_t)b; }
OP int setp_eq_s32(uint32_t a, uint32_t b) { return a == b; }
OP int setp_ne_s32(uint32_t a, uint32_t b) { return a != b; }
OP int setp_ge_u32(uint32_t a, uint32_t b) { return a >= b; }
OP int setp_lt_u32(uint32_t a, uint32_t b) { return a < b; }
OP int and_pred(int a, int b) { return a & b; }
OP int or_pred(int a, int b) { return a | b; }
OP int xor_pred(int a, int b) { return a ^ b; }
OP int not_pred(int a) { return !a; }
PLAIN(and_b32, a &b)
PLAIN(or_b32, a | b)
PLAIN(xor_b32, a ^ b)
PLAIN(add_s32, a + b)
PLAIN(sub_s32, a - b)
PLAIN(add_u32, a + b)
PLAIN(sub_u32, a - b)
PLAIN(mul_lo_u32, a *b)
PLAIN(mul_hi_u32, (uint32_t)((uint64_t)a * b >> 32))
PLAIN(shl_b32, b > 31 ? 0 : a << b)
PLAIN(shr_u32, b > 31 ? 0 : a >> b)
PLAIN(shr_s32, (uint32_t)((int32_t)a >> (b > 31 ? 31 : b)))
OP uint32_t min_s32(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
OP uint32_t max_s32(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }
OP uint64_t and_b64(uint64_t a, uint64_t b) { return a & b; }
OP uint64_t or_b64(uint64_t a, uint64_t b) { return a | b; }
OP uint64_t xor_b64(uint64_t a, uint64_t b) { return a ^ b; }
OP uint64_t add_s64(uint64_t a, uint64_t b) { return a + b; }
OP uint64_t sub_s64(uint64_t a, uint64_t b) { return a - b; }
OP uint64_t shl_b64(uint64_t a, uint32_t b) { return b > 63 ? 0 : a << b; }
OP uint64_t shr_u64(uint64_t a, uint32_t b) { return b > 63 ? 0 : a >> b; }
OP uint64_t mul_lo_u64(uint64_t a, uint64_t b) { return a * b; }
OP uint64_t mul_hi_u64(uint64_t a, uint64_t b) { return (uint64_t)((__uint128_t)a * b >> 64); }
OP uint64_t mad_lo_u64(uint64_t a, uint64_t b, uint64_t c) { return a * b + c; }
OP uint32_t mad_lo_u32(uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }
OP uint64_t mul_wide_u32(uint32_t a, uint32_t b) { return (uint64_t)a * b; }
OP uint64_t mad_wide_u32(uint32_t a, uint32_t b, uint64_t c) { return (uint64_t)a * b + c; }
OP uint32_t shf_l_wrap_b32(uint32_t low, uint32_t high, uint32_t n)
{
    return (uint32_t)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
OP int setp_lt_u64(uint64_t a, uint64_t b) { return a < b; }
OP uint64_t add_u64(uint64_t a, uint64_t b) { return a + b; }
OP uint64_t cvt_rn_f64_u64(uint64_t a) { return d_((double)a); }
OP uint64_t cvt_rni_s64_f64(uint64_t a)
{
    double v = nearbyint(g_(a));
    return v != v || v < -0x1p63 ? UINT64_C(1) << 63 : v >= 0x1p63 ? ~UINT64_C(0) >> 1 : (uint64_t)(int64_t)v;
}
OP uint32_t cvt_rni_s32_f64(uint64_t a)
{
    double v = nearbyint(g_(a));
    return v != v ? 0 : v >= 0x1p31 ? 0x7fffffffu : v < -0x1p31 ? 0x80000000u : (uint32_t)(int32_t)v;
}
/* 20 bits of the upper word, as documented; zero below. */
OP uint64_t rcp_approx_ftz_f64(uint64_t a)
{
    double v = g_(a & ~(uint64_t)UINT32_MAX);
    if (fabs(v) < 0x1p-1022) v = copysign(0, v);
    v = 1 / v;
    if (fabs(v) < 0x1p-1022) v = copysign(0, v);
    return (d_(v * (1 + twin_share * 0x1p-20)) & ~(uint64_t)UINT32_MAX);
}
/* The same: 20 bits of the upper word, of an operand whose lower word is ignored. */
OP uint64_t rsqrt_approx_ftz_f64(uint64_t a)
{
    double v = g_(a & ~(uint64_t)UINT32_MAX);
    if (fabs(v) < 0x1p-1022) v = copysign(0, v);
    v = 1 / sqrt(v);
    return (d_(v * (1 + twin_share * 0x1p-20)) & ~(uint64_t)UINT32_MAX);
}
OP uint32_t selp_b32(uint32_t a, uint32_t b, int p) { return p ? a : b; }
OP uint64_t selp_b64(uint64_t a, uint64_t b, int p) { return p ? a : b; }
#define selp_f32 selp_b32
#define selp_f64 selp_b64
OP uint32_t mov_b32(uint32_t a) { return a; }
OP uint64_t mov_b64(uint64_t a) { return a; }
OP int mov_pred(int a) { return a; }
OP uint32_t cvt_rn_f32_s32(uint32_t a) { return b_((float)(int32_t)a); }
OP uint32_t cvt_rn_f32_u32(uint32_t a) { return b_((float)a); }
OP uint32_t cvt_rn_f32_s64(uint64_t a) { return b_((float)(int64_t)a); }
OP uint64_t cvt_rn_f64_s32(uint32_t a) { return d_((double)(int32_t)a); }
OP uint64_t cvt_rn_f64_u32(uint32_t a) { return d_((double)a); }
OP uint64_t cvt_rn_f64_s64(uint64_t a) { return d_((double)(int64_t)a); }
OP uint64_t cvt_f64_f32(uint32_t a) { return d_((double)f_(a)); }
OP uint32_t cvt_rn_f32_f64(uint64_t a) { return b_((float)g_(a)); }
OP uint32_t cvt_rni_s32_f32(uint32_t a)
{
    float v = nearbyintf(f_(a));
    return v != v ? 0 : v >= 0x1p31f ? 0x7fffffffu : v < -0x1p31f ? 0x80000000u : (uint32_t)(int32_t)v;
}
OP uint64_t cvt_rni_s64_f32(uint32_t a)
{
    float v = nearbyintf(f_(a));
    return v != v || v < -0x1p63f ? UINT64_C(1) << 63 : v >= 0x1p63f ? ~UINT64_C(0) >> 1 : (uint64_t)(int64_t)v;
}
FLOATS1(cvt_rni_f32, nearbyintf(a), nearbyint(a))
FLOATS1(cvt_rmi_f32, floorf(a), floor(a))
FLOATS1(cvt_rpi_f32, ceilf(a), ceil(a))
FLOATS1(cvt_rzi_f32, truncf(a), trunc(a))
FLOATS1(cvt_rni_f64, nearbyintf(a), nearbyint(a))
FLOATS1(cvt_rmi_f64, floorf(a), floor(a))
FLOATS1(cvt_rpi_f64, ceilf(a), ceil(a))
FLOATS1(cvt_rzi_f64, truncf(a), trunc(a))
