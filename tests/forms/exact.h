/* exact.h - floating point in integers, for tests: a value is m * 2^e, operations are exact up to a sticky
 * bit, and `put` rounds once. It shares nothing with the CPU driver. */
#ifndef EXACT_H
#define EXACT_H
#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

enum { RN, RZ, RM, RP, RNA };
enum { ZERO, FINITE, INF, NAN_ };

typedef struct fmt {
    int p, emin, bits;
    uint64_t top, inf, nan;
} fmt; /* inf 0: has none */
static const fmt F16 = { 10, -14, 16, 0x7bff, 0x7c00, 0x7fff },
                 BF16 = { 7, -126, 16, 0x7f7f, 0x7f80, 0x7fff },
                 F32 = { 23, -126, 32, 0x7f7fffff, 0x7f800000, 0x7fffffff },
                 F64 = { 52, -1022, 64, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7fffffffffffffff },
                 TF32 = { 10, -126, 19, 0x3fbff, 0x3fc00, 0x3ffff }, E5M2 = { 2, -14, 8, 0x7b, 0x7c, 0x7f },
                 E4M3 = { 3, -6, 8, 0x7e, 0, 0x7f }, E2M1 = { 1, 0, 4, 7, 0, 0 },
                 E2M3 = { 3, 0, 6, 0x1f, 0, 0 }, E3M2 = { 2, -2, 6, 0x1f, 0, 0 };

typedef struct num {
    int kind;
    bool neg, sticky;
    u128 m;
    int e;
} num;

static int top_bit(u128 m)
{
    int n = -1;
    while (m) {
        m >>= 1;
        n++;
    }
    return n;
}
static num special(int kind, bool neg)
{
    num r = { kind, neg, false, 0, 0 };
    return r;
}

static num get(const fmt *f, uint64_t x)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1), a = x & (sign - 1), frac = a & ((UINT64_C(1) << f->p) - 1);
    bool neg = x & sign;
    int e = (int)(a >> f->p);
    if (f->inf ? a > f->inf : f->nan && a == f->nan) return special(NAN_, false);
    if (f->inf && a == f->inf) return special(INF, neg);
    if (!a) return special(ZERO, neg);
    num r = { FINITE, neg, false, e ? frac | UINT64_C(1) << f->p : frac, (e ? e - 1 : 0) + f->emin - f->p };
    return r;
}

static bool rounds_up(int mode, bool neg, bool odd, int against_half, bool inexact)
{
    switch (mode) {
    case RN: return against_half > 0 || (against_half == 0 && odd);
    case RM: return neg && inexact;
    case RP: return !neg && inexact;
    case RNA: return against_half >= 0;
    default: return false;
    }
}

/* v / 2^(quantum - v.e), rounded to an integer */
static u128 rounded(num v, int quantum, int mode)
{
    int shift = quantum - v.e;
    if (shift <= 0) return v.m << -shift;
    u128 q = shift > 127 ? 0 : v.m >> shift, rest = shift > 127 ? v.m : v.m & (((u128)1 << shift) - 1);
    u128 half = shift > 128 ? 0 : (u128)1 << (shift - 1);
    int against = shift > 128 ? -1 : rest > half ? 1 : rest < half ? -1 : v.sticky ? 1 : 0;
    return q + rounds_up(mode, v.neg, q & 1, against, rest || v.sticky);
}

static uint64_t put(const fmt *f, num v, int mode, bool finite)
{
    uint64_t sign = v.neg ? UINT64_C(1) << (f->bits - 1) : 0, code;
    if (v.kind == NAN_) return f->nan ? f->nan : f->top;
    if (v.kind == ZERO) return sign;
    if (v.kind == INF) return sign | (finite || !f->inf ? f->top : f->inf);
    int e = v.e + top_bit(v.m);
    if (e < f->emin) e = f->emin;
    if (e > 5000) e = 5000;
    code = (uint64_t)rounded(v, e - f->p, mode);
    u128 whole = ((u128)(unsigned)(e - f->emin) << f->p) + code;
    if (whole <= f->top) return sign | (uint64_t)whole;
    bool down = mode == RZ || (mode == RM && !v.neg) || (mode == RP && v.neg);
    return sign | (finite || down || !f->inf ? f->top : f->inf);
}

static num negated(num v)
{
    v.neg = !v.neg;
    return v;
}

static num sum(num a, num b, int mode)
{
    if (a.kind == NAN_ || b.kind == NAN_) return special(NAN_, false);
    if (a.kind == INF && b.kind == INF) return a.neg == b.neg ? a : special(NAN_, false);
    if (a.kind == INF || b.kind == ZERO) {
        if (a.kind == ZERO && a.neg != b.neg) return special(ZERO, mode == RM);
        return a;
    }
    if (b.kind == INF || a.kind == ZERO) return b;
    if (a.e + top_bit(a.m) < b.e + top_bit(b.m)) {
        num t = a;
        a = b;
        b = t;
    }
    int up = 124 - top_bit(a.m);
    a.m <<= up;
    a.e -= up;
    int down = a.e - b.e;
    bool lost = false;
    if (down <= 0)
        b.m <<= -down;
    else {
        lost = down > 127 ? b.m != 0 : (b.m & (((u128)1 << down) - 1)) != 0;
        b.m = down > 127 ? 0 : b.m >> down;
    }
    if (a.m < b.m) {
        u128 m = a.m;
        a.m = b.m;
        b.m = m;
        bool neg = a.neg;
        a.neg = b.neg;
        b.neg = neg;
    }
    a.m = a.neg == b.neg ? a.m + b.m : a.m - b.m - lost;
    a.sticky = lost;
    if (!a.m && !lost) return special(ZERO, mode == RM);
    if (!a.m) {
        a.m = 1;
        a.e -= 200;
        a.sticky = false;
    } /* cannot happen: lost bits lie far below */
    return a;
}

static num product(num a, num b)
{
    bool neg = a.neg != b.neg;
    if (a.kind == NAN_ || b.kind == NAN_) return special(NAN_, false);
    if (a.kind == INF || b.kind == INF)
        return a.kind == ZERO || b.kind == ZERO ? special(NAN_, false) : special(INF, neg);
    if (a.kind == ZERO || b.kind == ZERO) return special(ZERO, neg);
    num r = { FINITE, neg, false, a.m * b.m, a.e + b.e };
    return r;
}

static num quotient(num a, num b)
{
    bool neg = a.neg != b.neg;
    if (a.kind == NAN_ || b.kind == NAN_ || (a.kind == b.kind && a.kind != FINITE))
        return special(NAN_, false);
    if (a.kind == INF || b.kind == ZERO) return special(INF, neg);
    if (a.kind == ZERO || b.kind == INF) return special(ZERO, neg);
    int up = 126 - top_bit(a.m);
    u128 n = a.m << up;
    num r = { FINITE, neg, n % b.m != 0, n / b.m, a.e - up - b.e };
    return r;
}

static num root(num a)
{
    if (a.kind == NAN_ || a.kind == ZERO) return a;
    if (a.neg) return special(NAN_, false);
    if (a.kind == INF) return a;
    int up = 124 - top_bit(a.m);
    if ((a.e - up) & 1) up--;
    u128 n = a.m << up, r = 0;
    for (u128 bit = (u128)1 << 62; bit; bit >>= 1)
        if ((r | bit) * (r | bit) <= n) r |= bit;
    num v = { FINITE, false, r * r != n, r, (a.e - up) / 2 };
    return v;
}

static num whole_number(s128 v)
{
    num r = { v ? FINITE : ZERO, v < 0, false, v < 0 ? (u128)-v : (u128)v, 0 };
    return r;
}

/* rounded and clamped; NaN is the caller's */
static s128 integer_of(num v, int mode, int bits, bool is_signed)
{
    s128 top = ((s128)1 << (bits - is_signed)) - 1, bottom = is_signed ? -top - 1 : 0, r;
    if (v.kind == ZERO || v.kind == NAN_) return 0;
    if (v.kind == INF || v.e + top_bit(v.m) > 70) return v.neg ? bottom : top;
    r = (s128)rounded(v, 0, mode);
    if (v.neg) r = -r;
    return r < bottom ? bottom : r > top ? top : r;
}

/* -1, 0, 1; 2 when a NaN is there */
static int compared(num a, num b)
{
    if (a.kind == NAN_ || b.kind == NAN_) return 2;
    if (a.kind == INF || b.kind == INF) {
        int x = a.kind == INF ? (a.neg ? -1 : 1) : 0, y = b.kind == INF ? (b.neg ? -1 : 1) : 0;
        return x < y ? -1 : x > y;
    }
    num d = sum(a, negated(b), RN);
    return d.kind == ZERO ? 0 : d.neg ? -1 : 1;
}

#endif
