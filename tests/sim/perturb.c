/* perturb.c - moves results of approximate instructions within their documented error bounds.
 *
 * Otherwise they are computed in double and rounded, better than on any chip: a kernel that relies on that
 * passes here and fails there. With option "perturb" = n each result moves by a pseudo-random part of its
 * bound. As on a chip it depends only on the operands (and on n): it is the same at every use of the
 * instruction, and odd or even where the function is.
 *
 * What is exact on every chip stays exact, because compilers and kernels rely on it: special results (0, infinities,
 * NaN, subnormals); ex2 of an integer (libdevice's tanh and erf), lg2 of a power of two, rcp of one, sqrt and
 * rsqrt of a power of four, div by a power of two, cos of 0, tanh where it rounds to 1. Scaling by powers of two
 * (of four for sqrt and rsqrt) does not change the error either. Where no bound is documented, sin and cos
 * beyond two pi get the error of a range reduction in f32, until no digit is right; div.approx by huge or tiny
 * numbers is not moved, nor are the f64 approximations, which are coarse already. */
#include "sim.h"
#include "lower.h"
#include "arith.h"

enum { P_EX2, P_LG2, P_SIN, P_COS, P_RCP, P_RSQRT, P_SQRT, P_DIV, P_FULL, P_TANH };

static const struct {
    int op;
    uint8_t function, format, two;
} approximate[] = { /* format: a sim_type */
                    { OP_ex2_approx, P_EX2, T_F32, 0 },      { OP_ex2_approx_ftz, P_EX2, T_F32, 0 },
                    { OP_lg2_approx, P_LG2, T_F32, 0 },      { OP_lg2_approx_ftz, P_LG2, T_F32, 0 },
                    { OP_sin_approx, P_SIN, T_F32, 0 },      { OP_sin_approx_ftz, P_SIN, T_F32, 0 },
                    { OP_cos_approx, P_COS, T_F32, 0 },      { OP_cos_approx_ftz, P_COS, T_F32, 0 },
                    { OP_rcp_approx, P_RCP, T_F32, 0 },      { OP_rcp_approx_ftz, P_RCP, T_F32, 0 },
                    { OP_rsqrt_approx, P_RSQRT, T_F32, 0 },  { OP_rsqrt_approx_ftz, P_RSQRT, T_F32, 0 },
                    { OP_div_approx, P_DIV, T_F32, 0 },      { OP_div_approx_ftz, P_DIV, T_F32, 0 },
                    { OP_div_full, P_FULL, T_F32, 0 },       { OP_div_full_ftz, P_FULL, T_F32, 0 },
                    { OP_tanh_approx, P_TANH, T_F32, 0 },    { OP_tanh_f16, P_TANH, T_F16, 0 },
                    { OP_tanh_f16x2, P_TANH, T_F16, 1 },     { OP_tanh_bf16, P_TANH, T_BF16, 0 },
                    { OP_tanh_bf16x2, P_TANH, T_BF16, 1 },   { OP_ex2_f16, P_EX2, T_F16, 0 },
                    { OP_ex2_f16x2, P_EX2, T_F16, 1 },       { OP_ex2_bf16, P_EX2, T_BF16, 0 },
                    { OP_ex2_bf16x2, P_EX2, T_BF16, 1 },     { OP_sqrt_approx, P_SQRT, T_F32, 0 },
                    { OP_sqrt_approx_ftz, P_SQRT, T_F32, 0 }
};
enum { APPROXIMATE = sizeof approximate / sizeof *approximate };

static double exact(int function, double a, double b)
{
    switch (function) {
    case P_EX2: return exp2(a);
    case P_LG2: return log2(a);
    case P_SIN: return sin(a);
    case P_COS: return cos(a);
    case P_RCP: return 1 / a;
    case P_RSQRT: return 1 / sqrt(a);
    case P_SQRT: return sqrt(a);
    case P_TANH: return tanh(a);
    default: return a / b;
    }
}

static double ulp_of(float v)          /* of a normal number */
{
    uint32_t e = U(v) & 0x7f800000;
    return (double)F(e) * 0x1p-23;
}
static float next_towards_zero(float v) { return F(U(v) - 1); }         /* the next f32 towards 0 */

static double error_bound(int function, int format, double a, double b, double v)
{
    double size = fabs(v);
    if (format == T_F16) return function == P_TANH ? 0x1.02p-11 : size * 0x1.12p-10; /* 2^-10.987, 2^-9.9 */
    if (format == T_BF16) return size * (function == P_TANH ? 0x1p-8 : 0x1p-7);
    switch (function) {
    case P_EX2: /* v is rounded: it may be the power of two above the result */
        return 2 * ulp_of(next_towards_zero((float)v));
    case P_FULL: return 2 * ulp_of((float)v);
    case P_DIV: return fabs(b) >= 0x1p-126 && fabs(b) <= 0x1p126 ? 2 * ulp_of((float)v) : 0;
    case P_RCP: return ulp_of((float)v);
    case P_LG2: return a > 0.5 && a < 2 ? 0x1p-22 : size * 0x1p-22;
    case P_SIN:
    case P_COS: return 0x1.6ap-21;                           /* 2^-20.5 */
    case P_RSQRT: return size * 0x1.12p-23;                  /* 2^-22.9 */
    case P_SQRT: return size * 0x1p-23;
    default: return size * 0x1p-11;
    }
}

/* A pseudo-random number from -1 to 1 */
static double error_share(int function, uint32_t a, uint32_t b)
{
    uint64_t z = (uint64_t)(uint32_t)sim_option.perturb * UINT64_C(0x9e3779b97f4a7c15) + (uint32_t)function;
    z = (z ^ z >> 31 ^ a) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27 ^ b) * UINT64_C(0x94d049bb133111eb);
    z = (z ^ z >> 31) * UINT64_C(0xd6e8feb86659fd93);
    return (double)(int64_t)(z ^ z >> 32) * 0x1p-63;
}

static double read(int format, uint32_t x)
{
    return format == T_F16 ? (double)H(x & 0xffff) : format == T_BF16 ? (double)Bf(x & 0xffff) : (double)F(x);
}

/* The key that the error depends on: equal for operands that differ only by sign or scale. False: result is exact. */
static bool inexact(int function, double x, double y, double was, uint32_t key[2])
{
    uint32_t a = U((float)x) & 0x7fffffff, b = U((float)y) & 0x7fffffff, mantissa = 0x7fffff;
    key[0] = a;
    key[1] = 0;
    switch (function) {
    case P_EX2: key[0] = U((float)(x - floor(x))); return key[0] && F(key[0]) != 1;
    case P_LG2: return a & mantissa;
    case P_RCP: key[0] = a & mantissa; return key[0];
    case P_RSQRT:
    case P_SQRT: key[0] = a & 0xffffff; return key[0] != 0x800000; /* with the exponent's parity */
    case P_DIV:
    case P_FULL:
        key[0] = a & mantissa;
        key[1] = b & mantissa;
        return key[1];
    case P_COS: return x != 0;
    case P_TANH: return fabs(was) != 1;
    default: return true;
    }
}

/* sin and cos beyond two pi: the angle has the error of x / (2 pi) in f32, at most pi. */
static double perturb_large_angle(int function, double x, double share)
{
    double angle = fabs(x) * 0x1p-23, most = 3.141592653589793;
    double v = x + (x < 0 ? -share : share) * (angle < most ? angle : most);
    return function == P_SIN ? sin(v) : cos(v);
}

static uint32_t perturbed_value(int function, int format, uint32_t a, uint32_t b, uint32_t d)
{
    double x = read(format, a), y = read(format, b), was = read(format, d), v = was;
    double least = format == T_F16 ? 0x1p-14 : 0x1p-126;
    uint32_t key[2];
    if (!isfinite(was) || !(fabs(was) >= least) || (function != P_LG2 && fabs(x) < least)
        || !inexact(function, x, y, was, key))
        return d;
    bool odd = function == P_RCP || function == P_SIN || function == P_TANH || function == P_DIV
               || function == P_FULL;
    bool slow = function <= P_COS || function == P_TANH;      /* of f32: d is nearer than its bound by far */
    double share = error_share(function, key[0], key[1]), most;
    if (odd && was < 0) share = -share;
    if (format != T_F32 || !slow) v = exact(function, x, y);
    if (!(fabs(v) >= least)) return d;
    most = error_bound(function, format, x, y, v);
    if (format == T_F32 && slow) most -= 0.5 * ulp_of((float)was);
    if (format == T_F32 && (function == P_SIN || function == P_COS) && fabs(x) > 6.283185) {
        v = perturb_large_angle(function, x, error_share(function, key[0], ~0u));
        most = 0x1p-20;
    }
    double goal = v + share * most;
    uint32_t r = format == T_F16    ? h16(F(c32((float)goal)))
                 : format == T_BF16 ? b16((float)goal)
                                    : U((float)goal);
    double now = read(format, r);
    bool within_one = function == P_TANH || function == P_SIN || function == P_COS;
    if (within_one && fabs(now) > 1) now = now < 0 ? -1 : 1, r = format == T_F32 ? U((float)now) : d;
    if (!isfinite(now) || fabs(now) < least || fabs(now - v) > most) return d;
    return r;
}

static void sim_perturbed(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *from_a = sim_slot(w, i->a), *from_b = sim_slot(w, i->b);
    uint32_t *d = sim_slot(w, i->d), a[SIM_LANES], b[SIM_LANES];
    int function = approximate[i->imm].function, format = approximate[i->imm].format;
    bool binary = function == P_DIV || function == P_FULL;
    for (uint32_t l = 0; l < SIM_LANES; l++) { /* d may be one of the sources */
        a[l] = from_a[l];
        b[l] = binary ? from_b[l] : 0;
    }
    sim_op_handler(approximate[i->imm].op)(w, i, m);
    SIM_EACH_LANE(l, m)
    {
        if (!approximate[i->imm].two) {
            d[l] = perturbed_value(function, format, a[l], b[l], d[l]);
            continue;
        }
        d[l] = pair16(perturbed_value(function, format, a[l] & 0xffff, 0, d[l] & 0xffff),
                      perturbed_value(function, format, a[l] >> 16, 0, d[l] >> 16));
    }
}

/* Called for every instruction lowered by the table. sqrt.rn shares its operation with sqrt.approx. */
void sim_perturb(sim_ins *i, int op, bool exact_form)
{
    if (!sim_option.perturb || exact_form) return;
    for (int k = 0; k < APPROXIMATE; k++)
        if (approximate[k].op == op) {
            i->fn = sim_perturbed;
            i->imm = k;
        }
}

static void read_environment(void)
{
    const char *perturb = getenv("PTXSIM_PERTURB"), *contract = getenv("PTXSIM_CONTRACT"),
               *exact_sums = getenv("PTXSIM_EXACT_SUMS");
    if (perturb && !sim_option.perturb) sim_option.perturb = atoi(perturb);
    if (contract && !sim_option.contract) sim_option.contract = atoi(contract);
    if (exact_sums && !sim_option.exact_sums) sim_option.exact_sums = atoi(exact_sums);
}

void sim_read_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}
