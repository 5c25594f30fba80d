/* scalar.c - compiles the 32-lane operations of lanes.def for each level of the CPU, and provides
 * their handlers.
 *
 * A new operation is one line in lanes.def (a G line has its function in general.inc), and a row
 * in isa.c. */
#include "sim.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno")
#endif
#include "arith.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed"              /* not every lane loop can be vectorised */
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define IVDEP _Pragma("GCC ivdep")
#else
#define IVDEP
#endif

static const u32 lane_bit[SIM_LANES] = { 1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,
                                         1u << 7,  1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13,
                                         1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20,
                                         1u << 21, 1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27,
                                         1u << 28, 1u << 29, 1u << 30, 1u << 31 };
static const int host_rounding[4] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

static inline void merge_u32(u32 *d, const u32 *o, u32 m)
{ for (u32 l = 0; l < SIM_LANES; l++) d[l] = m & lane_bit[l] ? o[l] : d[l]; }
static inline void merge_u64(u64 *d, const u64 *o, u32 m)
{ for (u32 l = 0; l < SIM_LANES; l++) d[l] = m & lane_bit[l] ? o[l] : d[l]; }

/* --- helpers of comparisons ------------------------------------------------------------------- */

static u32 combine(const sim_warp *w, const sim_ins *i, u32 r)
{
    switch ((i->x & X_BOOL) >> X_BOOL_SHIFT) {
    case BOOL_AND: return r & sim_pred(w, i->c);
    case BOOL_OR:  return r | sim_pred(w, i->c);
    case BOOL_XOR: return r ^ sim_pred(w, i->c);
    default:       return r;
    }
}

/* i->op 0: setp p|q, where q takes the negated relation. i->op 1: set, a value of type i->type. */
static void finish_compare(sim_warp *w, const sim_ins *i, u32 m, u32 r)
{
    if (!i->op) {
        u32 p = combine(w, i, r);
        if (i->q) sim_pred_write(w, i->q - 1, combine(w, i, ~r), m);
        sim_pred_write(w, i->d, p, m);
        return;
    }
    u32 one = i->type == T_F32 ? 0x3f800000 : i->type == T_F16 ? 0x3c00 : i->type == T_BF16 ? 0x3f80
            : sim_types[i->type].bytes == 2 ? 0xffff : ~0u;
    u32 *d = sim_slot(w, i->d);
    r = combine(w, i, r);
    for (u32 l = 0; l < SIM_LANES; l++) if (m >> l & 1) d[l] = r >> l & 1 ? one : 0;
}

static bool relation(float a, float b, u32 cmp)
{
    switch (cmp) {
    case CMP_EQ:  return a == b;
    case CMP_NE:  return a < b || a > b;
    case CMP_LT:  return a < b;
    case CMP_LE:  return a <= b;
    case CMP_GT:  return a > b;
    case CMP_GE:  return a >= b;
    case CMP_EQU: return !(a < b || a > b);
    case CMP_NEU: return a != b;
    case CMP_LTU: return !(a >= b);
    case CMP_LEU: return !(a > b);
    case CMP_GTU: return !(a <= b);
    case CMP_GEU: return !(a < b);
    case CMP_NUM: return a == a && b == b;
    default:      return a != a || b != b;
    }
}

/* op: finite, infinite, number, notanumber, normal (zero included), subnormal */
static u32 testp(int op, bool top, bool bottom, bool fraction)
{
    switch (op) {
    case 0:  return !top;
    case 1:  return top && !fraction;
    case 2:  return !(top && fraction);
    case 3:  return top && fraction;
    case 4:  return !top && !(bottom && fraction);
    default: return bottom && fraction;
    }
}

/* --- halves ----------------------------------------------------------------------------------- */

static float half_in(u32 h, u32 bf, u32 ftz)
{
    if (ftz && !(h & (bf ? 0x7f80 : 0x7c00))) h &= 0x8000;
    return bf ? Bf(h) : H(h);
}

static u32 half_op(const sim_ins *i, u32 a, u32 b, u32 c)
{
    bool bf = i->x & X_BF16;
    u32 z = i->x & X_FTZ, infinity = bf ? 0x7f80 : 0x7c00, r;
    if ((i->x & X_OOB) && (a == 0xffff || b == 0xffff || c == 0xffff)) return 0;
    float x = half_in(a, bf, z), y = half_in(b, bf, z), t = half_in(c, bf, z);
    switch (i->op) {
    case 0:  r = bf ? b16(x + y) : h16(x + y); break;
    case 1:  r = bf ? b16(x - y) : h16(x - y); break;
    case 2:  r = bf ? b16(narrow_odd((double)x * y)) : h16(x * y); break;
    default: r = bf ? b16(fmab(x, y, t)) : h16(fmah(x, y, t)); break;
    }
    if (z && !(r & infinity)) r &= 0x8000;
    bool nan = (r & 0x7fff) > infinity;
    if (i->x & X_SAT) {
        u32 one = bf ? 0x3f80 : 0x3c00;
        r = nan || (r & 0x8000) ? 0 : r > one ? one : r;
    }
    if ((i->x & X_RELU) && !nan && (r & 0x8000)) r = 0;
    return r;
}

static u32 minmax_half(const sim_ins *i, u32 a, u32 b)
{
    u32 infinity = i->x & X_BF16 ? 0x7f80 : 0x7c00, sign = (a ^ b) & 0x8000;
    if (i->x & X_FTZ) { if (!(a & infinity)) a &= 0x8000; if (!(b & infinity)) b &= 0x8000; }
    if ((i->x & X_NAN) && ((a & 0x7fff) > infinity || (b & 0x7fff) > infinity)) return 0x7fff;
    if (i->x & X_ABS) { a &= 0x7fff; b &= 0x7fff; }
    u32 r = i->op ? max16(a, b, infinity) : min16(a, b, infinity);
    return (i->x & X_XORSIGN) && (r & 0x7fff) <= infinity ? (r & 0x7fff) | sign : r;
}

static u32 minmax_bits(const sim_ins *i, u32 a, u32 b)
{
    if (i->type == T_F16 || i->type == T_BF16) return minmax_half(i, a & 0xffff, b & 0xffff);
    if (i->type == T_F16X2 || i->type == T_BF16X2)
        return pair16(minmax_half(i, a & 0xffff, b & 0xffff), minmax_half(i, a >> 16, b >> 16));
    u32 sign = (a ^ b) & 0x80000000;
    if (i->x & X_FTZ) { a = fz(a); b = fz(b); }
    if ((i->x & X_NAN) && (isnan32(a) || isnan32(b))) return 0x7fffffff;
    if (i->x & X_ABS) { a &= 0x7fffffff; b &= 0x7fffffff; }
    u32 r = i->op ? max32(a, b) : min32(a, b);
    return (i->x & X_XORSIGN) && !isnan32(r) ? (r & 0x7fffffff) | sign : r;
}

/* --- conversions ------------------------------------------------------------------------------ */

static double round_whole(double v, int mode)
{
    switch (mode) {
    case R_RN: return nearbyint(v);
    case R_RZ: return trunc(v);
    case R_RM: return floor(v);
    default:   return ceil(v);
    }
}

static u64 integer_in(u64 a, sim_type t)                      /* sign- or zero-extended to 64 bits */
{
    switch (t) {
    case T_S8:  return (u64)(s64)(int8_t)a;
    case T_S16: return (u64)(s64)(int16_t)a;
    case T_S32: return (u64)(s64)(s32)a;
    case T_U8:  case T_B8:  return (uint8_t)a;
    case T_U16: case T_B16: return (uint16_t)a;
    case T_U32: case T_B32: return (u32)a;
    default:    return a;
    }
}

static u64 clamp_integer(u64 a, bool from_signed, sim_type to)
{
    u32 bits = sim_types[to].bytes * 8u;
    bool to_signed = sim_types[to].kind == K_SINT, negative = from_signed && (s64)a < 0;
    u64 top = to_signed    ? (UINT64_C(1) << (bits - 1)) - 1
              : bits == 64 ? UINT64_MAX
                           : (UINT64_C(1) << bits) - 1;
    if (!negative) return a > top ? top : a;
    if (!to_signed) return 0;
    return (s64)a < -(s64)top - 1 ? (u64)(-(s64)top - 1) : a;
}

static u64 float_to_integer(double v, const sim_ins *i)
{
    sim_type to = (sim_type)i->type, from = (sim_type)i->op;
    u32 bits = sim_types[to].bytes * 8u;
    bool to_signed = sim_types[to].kind == K_SINT;
    if (isnan(v))
        return bits <= 32 && from != T_F64 ? 0
               : bits == 64                ? UINT64_C(0x8000000000000000)
               : bits == 32                ? 0x80000000
                                           : 0;
    v = round_whole(v, (i->x & X_ROUND) >> X_ROUND_SHIFT);
    double top = ldexp(1.0, (int)bits - to_signed);
    u64 r;
    if (v >= top) r = to_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX;
    else if (to_signed) r = v < -top ? (u64)INT64_MIN >> 0 : (u64)(s64)v;
    else r = v <= 0 ? 0 : (u64)v;
    if (to_signed && v < -top) r = (u64)(-(s64)(UINT64_C(1) << (bits - 2)) * 2);
    return r;
}

static u64 narrow(u64 r, sim_type t) /* as a register of that type holds it: extended by its sign or 0 */
{
    switch (t) {
    case T_U8: case T_B8: return (uint8_t)r;
    case T_S8:  return (u32)(int8_t)r;
    case T_S16: return (u32)(int16_t)r;
    case T_U16: case T_B16: return (uint16_t)r;
    case T_U64: case T_S64: case T_B64: return r;
    default:    return (u32)r;
    }
}

static u64 float_out(double v, const sim_ins *i)              /* v is the source's exact value */
{
    int mode = (i->x & X_ROUND) >> X_ROUND_SHIFT;
    bool fin = i->x & X_SATFINITE;
    u32 r;
    if ((i->x & X_RELU) && v <= 0) v = 0;                     /* -0 too */
    switch (i->type) {
    case T_F32: {
        volatile double in = v;
        r = c32((float)in);
        if (i->x & X_FTZ) r = fz(r);
        return i->x & X_SAT ? sat32(r) : r;
    }
    case T_F64: {
        if (!(i->x & X_SAT)) return UD(v);
        return UD(v > 0 ? v < 1 ? v : 1.0 : 0.0);
    }
    case T_TF32: return pack_small(v, &small_tf32, mode, fin) << 13;
    case T_F16:
        r = pack_small(v, &small_f16, mode, fin);
        if (i->x & X_SAT) r = isnan(v) || (r & 0x8000) ? 0 : r > 0x3c00 ? 0x3c00 : r;
        return r;
    case T_BF16:
        r = pack_small(v, &small_bf16, mode, fin);
        if (i->x & X_SAT) r = isnan(v) || (r & 0x8000) ? 0 : r > 0x3f80 ? 0x3f80 : r;
        return r;
    case T_E4M3: case T_E4M3X2: return pack_small(v, &small_e4m3, mode, fin);
    default: return pack_small(v, &small_e5m2, mode, fin);
    }
}

static double float_in(u64 a, const sim_ins *i)
{
    switch (i->op) {
    case T_F32: return (double)F(i->x & X_FTZ ? fz((u32)a) : (u32)a);
    case T_F16: return (double)H((u32)a & 0xffff);
    case T_BF16: return (double)(i->x & X_FTZ ? Fz((u32)a << 16) : Bf((u32)a & 0xffff));
    case T_E4M3: return unpack_small((u32)a & 255, &small_e4m3);
    case T_E5M2: return unpack_small((u32)a & 255, &small_e5m2);
    default: return D(a);
    }
}

static u64 convert(const sim_ins *i, u64 a)
{
    sim_type to = (sim_type)i->type, from = (sim_type)i->op;
    bool to_float = sim_types[to].kind == K_FLOAT, from_float = sim_types[from].kind == K_FLOAT;
    if (!from_float) {
        bool is_signed = sim_types[from].kind == K_SINT;
        a = integer_in(a, from);
        if (!to_float) return narrow(i->x & X_SAT ? clamp_integer(a, is_signed, to) : a, to);
        if (!a) return 0;    /* some compilers' conversions give -0 when the host rounds down */
        volatile u64 in = a; /* volatile: convert under the host's rounding mode */
        if (to == T_F64) {
            volatile double r = is_signed ? (double)(s64)in : (double)in;
            return i->x & X_SAT ? UD(r > 0 ? r < 1 ? r : 1.0 : 0.0) : UD(r);
        }
        if (to == T_F32) {
            volatile float r = is_signed ? (float)(s64)in : (float)in;
            return i->x & X_SAT ? sat32(U(r)) : U(r);
        }
        u64 magnitude = is_signed && (s64)a < 0 ? 0 - a : a;  /* halves: keep 40 bits, the lowest one sticky */
        int shift = 0;
        while (magnitude >> 40) { magnitude = magnitude >> 1 | (magnitude & 1); shift++; }
        double v = ldexp((double)magnitude, shift);
        return float_out(is_signed && (s64)a < 0 ? -v : v, i);
    }
    if (to == T_TF32 && isnan32((u32)a) && (i->x & X_ROUND) >> X_ROUND_SHIFT == R_RNA)
        return (u32)a & 0xffffe000;
    if (to == T_F64 && (i->x & (X_FTZ | X_SAT)) == X_FTZ && isnan32((u32)a))
        return UINT64_C(0x7fffffffe0000000);
    double v = float_in(a, i);
    if (!to_float) return narrow(float_to_integer(v, i), to);
    if (from == T_F64 && to == T_F64 && isnan(v) && !(i->x & X_SAT)) return a | UINT64_C(0x8000000000000);
    if (i->x & X_INTROUND) v = isnan(v) ? v : copysign(round_whole(v, (i->x & X_ROUND) >> X_ROUND_SHIFT), v);
    return float_out(v, i);
}

/* x2 packs: two f32 to two narrow values, the first source in the upper half; or a packed pair to another pair. */
static u64 convert_pair(const sim_ins *i, u32 a, u32 b)
{
    sim_ins one = *i;
    u32 in = 0, out = 16;
    one.count = 1;
    switch (i->type) {
    case T_F16X2:  one.type = T_F16; break;
    case T_BF16X2: one.type = T_BF16; break;
    case T_E4M3X2: one.type = T_E4M3; out = 8; break;
    default:       one.type = T_E5M2; out = 8; break;
    }
    switch (i->op) {
    case T_F16X2:  one.op = T_F16; in = 16; break;
    case T_BF16X2: one.op = T_BF16; in = 16; break;
    case T_E4M3X2: one.op = T_E4M3; in = 8; break;
    case T_E5M2X2: one.op = T_E5M2; in = 8; break;
    default: break;
    }
    if (in) { b = a & ((1u << in) - 1); a >>= in; }
    return (u32)convert(&one, a) << out | ((u32)convert(&one, b) & ((1u << out) - 1));
}

/* --- the levels ------------------------------------------------------------------------------- */

#define TYPE_w u32
#define TYPE_x u64
#define TYPE_n u32
#define SRC_w(s) sim_slot(w, s)
#define SRC_x(s) sim_slot64(w, s)
#define SRC_n(s) lane_bit
#define MERGE_w merge_u32
#define MERGE_x merge_u64

#define NAME(n) n##_base
#define SIM_TABLE handlers_base
#include "general.inc"
#undef NAME
#undef SIM_TABLE

#if defined(__x86_64__) && defined(__GNUC__)
#define SIM_HAVE_LEVELS 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,popcnt,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,popcnt,f16c")
#endif
#define NAME(n) n##_avx2
#define SIM_TABLE handlers_avx2
#include "general.inc"
#undef NAME
#undef SIM_TABLE
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

sim_handler sim_op_handler(int op)
{
#if defined(SIM_HAVE_LEVELS)
    static atomic_int level;                                  /* 0: not determined yet */
    int now = atomic_load_explicit(&level, memory_order_relaxed);
    if (!now) {
        const char *wish = getenv("PTXSIM_LEVEL");
        now = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                      && !(wish && !strcmp(wish, "base"))
                  ? 2
                  : 1;
        atomic_store_explicit(&level, now, memory_order_relaxed);
    }
    if (now == 2) return handlers_avx2[op];
#endif
    return handlers_base[op];
}
