/* perturb.c - approximate instructions that use their whole documented error bound.
 *
 * Without it they are computed in double and rounded, better than any chip: a kernel that relies on that
 * passes here and fails there. With option "perturb" = n each result moves by a pseudo-random part of its
 * bound, which depends on n, the instruction's line and the operands' bits alone: not on threads or time.
 * Special results (0, infinities, NaN, subnormals) stay. The f64 approximations and what lies outside the
 * documented range (sin and cos beyond two pi, div.approx by huge or tiny numbers) stay too. */
#include "sim.h"
#include "lower.h"
#include "arith.h"

enum { P_EX2, P_LG2, P_SIN, P_COS, P_RCP, P_RSQRT, P_SQRT, P_DIV, P_FULL, P_TANH };

static const struct {
    int op;
    uint8_t function, format, two;
} approximate[] = { /* format: of sim_type */
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

static double bound(int function, int format, double a, double b, double v)
{
    double size = fabs(v), ulp = ldexp(1, ilogb(v) - 23);
    if (format == T_F16) return function == P_TANH ? 0x1.02p-11 : size * 0x1.12p-10; /* 2^-10.987, 2^-9.9 */
    if (format == T_BF16) return size * (function == P_TANH ? 0x1p-8 : 0x1p-7);
    switch (function) {
    case P_EX2:
    case P_FULL: return 2 * ulp;
    case P_DIV: return fabs(b) >= 0x1p-126 && fabs(b) <= 0x1p126 ? 2 * ulp : 0;
    case P_RCP: return ulp;
    case P_LG2: return a > 0.5 && a < 2 ? 0x1p-22 : size * 0x1p-22;
    case P_SIN:
    case P_COS: return fabs(a) <= 6.283185 ? 0x1.6ap-21 : 0; /* 2^-20.5 */
    case P_RSQRT: return size * 0x1.12p-23;                  /* 2^-22.9 */
    case P_SQRT: return size * 0x1p-23;
    default: return size * 0x1p-11;
    }
}

/* From -1 to 1 */
static double part(uint32_t line, uint32_t a, uint32_t b)
{
    uint64_t z = (uint64_t)(uint32_t)sim_option.perturb * UINT64_C(0x9e3779b97f4a7c15) + line;
    z = (z ^ z >> 31 ^ a) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27 ^ b) * UINT64_C(0x94d049bb133111eb);
    z = (z ^ z >> 31) * UINT64_C(0xd6e8feb86659fd93);
    return (double)(int64_t)(z ^ z >> 32) * 0x1p-63;
}

static double read(int format, uint32_t x)
{
    return format == T_F16 ? (double)H(x & 0xffff) : format == T_BF16 ? (double)Bf(x & 0xffff) : (double)F(x);
}

static uint32_t moved(const sim_ins *i, int function, int format, uint32_t a, uint32_t b, uint32_t d)
{
    double x = read(format, a), y = read(format, b), v = exact(function, x, y), was = read(format, d);
    double least = format == T_F16 ? 0x1p-14 : 0x1p-126;
    if (!isfinite(was) || fabs(was) < least || !isfinite(v) || fabs(v) < least) return d;
    if (function == P_EX2 && fabs(x) < least) return d;
    double most = bound(function, format, x, y, v), goal = v + part(i->line, a, b) * most;
    uint32_t r = format == T_F16    ? h16(F(c32((float)goal)))
                 : format == T_BF16 ? b16((float)goal)
                                    : U((float)goal);
    double now = read(format, r);
    bool within_one = function == P_TANH || function == P_SIN || function == P_COS;
    if (!isfinite(now) || fabs(now) < least || fabs(now - v) > most || (within_one && fabs(now) > 1))
        return d;
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
            d[l] = moved(i, function, format, a[l], b[l], d[l]);
            continue;
        }
        d[l] = pair16(moved(i, function, format, a[l] & 0xffff, 0, d[l] & 0xffff),
                      moved(i, function, format, a[l] >> 16, 0, d[l] >> 16));
    }
}

/* Called for every instruction that the table lowers. sqrt.rn shares its operation with sqrt.approx. */
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
    const char *perturb = getenv("PTXSIM_PERTURB"), *contract = getenv("PTXSIM_CONTRACT");
    if (perturb && !sim_option.perturb) sim_option.perturb = atoi(perturb);
    if (contract && !sim_option.contract) sim_option.contract = atoi(contract);
}

void sim_read_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
}
