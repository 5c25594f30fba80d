/* narrow.c - conversions with formats of at most 8 bits and with stochastic rounding; min and max of
 * three; redux of floats.
 *
 * Stochastic rounding adds random bits below the last place: 13 for f16 and 16 for bf16, for each half of the
 * result from the same half of rbits; of four results the upper two share the upper 16 bits and the lower two the
 * lower ones. Exact values do not change; which of its neighbours another value becomes is this driver's choice. */
#include "sim.h"
#include "lower.h"
#include "arith.h"

/* Refuses targets that are not in `list`, names of architectures and families between spaces. */
static void require_targets(sim_lower *lw, const char *what, uint32_t version, const char *list)
{
    char name[16];
    snprintf(name, sizeof name, " %u%c ", lw->m->target, lw->m->target_suffix ? lw->m->target_suffix : ' ');
    sim_require_version(lw, what, version, 0);
    if (strstr(list, name)) return;
    sim_reject(lw, "Feature '%s' not supported on .target 'sm_%u%.1s'", what, lw->m->target,
               &lw->m->target_suffix);
}

static const char narrow_targets[] = " 100a 100f 103a 103f 110a 110f 120a 120f 121a 121f ";

/* --- values ----------------------------------------------------------------------------------- */

/* mantissa bits, least and greatest exponent, infinity, NaN, greatest finite value, bits; ~0: does not exist */
static const small_format f_e2m1 = { 1, 0, 2, ~0u, ~0u, 0x7, 4 };
static const small_format f_e2m3 = { 3, 0, 2, ~0u, ~0u, 0x1f, 6 };
static const small_format f_e3m2 = { 2, -2, 4, ~0u, ~0u, 0x1f, 6 };

static const small_format *format_of(sim_type t)
{
    switch (t) {
    case T_E2M1X2:
    case T_E2M1X4: return &f_e2m1;
    case T_E2M3X2:
    case T_E2M3X4: return &f_e2m3;
    case T_E3M2X2:
    case T_E3M2X4: return &f_e3m2;
    case T_E4M3X4: return &small_e4m3;
    case T_E5M2X4: return &small_e5m2;
    case T_F16X2: return &small_f16;
    default: return &small_bf16;
    }
}

static double stochastic(double v, const small_format *f, uint32_t random, int bits)
{
    double a = fabs(v);
    if (a == 0 || isnan(v) || isinf(v)) return v;
    int e = (int)(UD(a) >> 52) - 1023;
    if (e < f->min_exponent) e = f->min_exponent;
    double scaled = ldexp(a, f->mantissa - e), whole = floor(scaled),
           rest = floor(ldexp(scaled - whole, bits));
    if (rest + random >= ldexp(1, bits)) whole += 1;
    return copysign(ldexp(whole, e - f->mantissa), v);
}

static uint32_t pack(double v, const small_format *f, bool relu, bool satfinite)
{
    if (isnan(v)) return f->nan == ~0u ? f->top : f->nan;
    if (relu && (v < 0 || (v == 0 && signbit(v)))) return 0;
    return pack_small(v, f, R_RN, satfinite);
}

/* The exponent of the magnitude. 0xff is NaN, and what overflows, unless satfinite. */
static uint32_t to_ue8m0(uint32_t x, bool up, bool satfinite)
{
    uint32_t a = x & 0x7fffffff, e = a >> 23;
    if (isnan32(x)) return 0xff;
    if (up && (a & 0x7fffff) && a > 0x00400000) e++;
    return satfinite && e > 0xfe ? 0xfe : e;
}

static uint32_t from_ue8m0(uint32_t e) { return e == 0xff ? 0x7fff : e ? e << 7 : 0x40; }

static uint32_t read_pair(const sim_ins *i, uint32_t v) /* two narrow values to f16x2 or bf16x2 */
{
    const small_format *f = format_of((sim_type)i->op);
    uint32_t bits = f->bits <= 4 ? 4 : 8, out[2];
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t x = v >> k * bits & ((1u << bits) - 1);
        if (i->op == T_UE8M0X2) {
            out[k] = from_ue8m0(v >> 8 * k & 255);
            continue;
        }
        double value = unpack_small(x & ((1u << f->bits) - 1), f);
        out[k] = i->x & X_RELU && signbit(value) ? 0 : h16((float)value);
    }
    return pair16(out[0], out[1]);
}

/* i->op: from; i->type: to; i->list: the sources, that for the upper bits first; i->c: random bits */
static void sim_narrow(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *list = w->kernel->lists + i->list, *random = sim_slot(w, i->c);
    uint32_t *d = sim_slot(w, i->d), count = i->count;
    const small_format *f = format_of((sim_type)i->type);
    uint32_t bits = i->type == T_UE8M0X2 || (f->bits > 4 && f->bits < 8) ? 8u : (uint32_t)f->bits;
    bool relu = i->x & X_RELU, fin = i->x & X_SATFINITE, up = (i->x & X_ROUND) >> X_ROUND_SHIFT == R_RP;
    SIM_EACH_LANE(l, m)
    {
        uint32_t r = 0;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t x = sim_slot(w, list[i->op == T_BF16X2 ? 0 : k])[l], one;
            if (i->op == T_BF16X2) x = k ? x << 16 : x & 0xffff0000;
            double v = F(x);
            if (i->width) {
                uint32_t own = random[l] >> (k < count / 2 ? 16 : 0) & 0xffff;
                int n = i->type == T_F16X2 ? 13 : 16;
                v = stochastic(v, f, own & ((1u << n) - 1), n);
            }
            one = i->type == T_UE8M0X2 ? to_ue8m0(x, up, fin) : pack(v, f, relu, fin);
            r = r << bits | one;
        }
        d[l] = r;
    }
}

static void sim_widen(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *a = sim_slot(w, i->a);
    uint32_t *d = sim_slot(w, i->d);
    SIM_EACH_LANE(l, m) d[l] = read_pair(i, a[l]);
}

/* --- cvt -------------------------------------------------------------------------------------- */

static bool allow_modifiers(sim_lower *lw, const sim_statement *s, const uint16_t *allowed, size_t count)
{
    for (int id = 1; id < M_COUNT; id++) {
        bool good = !sim_has(s, id);
        for (size_t k = 0; k < count; k++) good |= allowed[k] == id;
        if (good) continue;
        sim_reject(lw, "%s modifier '.%s' for instruction 'cvt' of these types",
                   id >= M_rn && id <= M_rpi ? "Illegal rounding" : "Illegal", sim_mod_name(id));
        return false;
    }
    return true;
}

static bool check_narrow(sim_lower *lw, const sim_statement *s, sim_type d, sim_type a, uint32_t count)
{
    static const uint16_t stochastically[] = { M_rs, M_relu, M_satfinite },
                          nearest[] = { M_rn, M_relu, M_satfinite }, exactly[] = { M_rn, M_relu },
                          exponent[] = { M_rz, M_rp, M_satfinite }, plain[] = { M_rn };
    bool rs = sim_has(s, M_rs), finite = d != T_F16X2 && d != T_BF16X2 && d != T_UE8M0X2;
    if (a == T_UE8M0X2) {
        if (!allow_modifiers(lw, s, plain, 1)) return false;
    } else if (a != T_F32 && a != T_BF16X2) {
        if (!allow_modifiers(lw, s, exactly, 2)) return false;
    } else if (d == T_UE8M0X2) {
        if (!allow_modifiers(lw, s, exponent, 3)) return false;
        if (sim_has(s, M_rz) == sim_has(s, M_rp)) {
            sim_reject(lw, "Rounding modifier required for instruction 'cvt'");
            return false;
        }
    } else if (!(rs ? allow_modifiers(lw, s, stochastically, 3) : allow_modifiers(lw, s, nearest, 3)))
        return false;
    if (!rs && d != T_UE8M0X2 && !sim_has(s, M_rn)) {
        sim_reject(lw, "Rounding modifier required for instruction 'cvt'");
        return false;
    }
    if (finite && !sim_has(s, M_satfinite)) {
        sim_reject(lw, "Modifier '.satfinite' required for instruction 'cvt'");
        return false;
    }
    if (count == 4 && !rs) {
        sim_reject(lw, "Modifier '.rs' required for instruction 'cvt'");
        return false;
    }
    if (rs)
        require_targets(lw, ".rs", 87, " 100a 103a ");
    else
        require_targets(lw, sim_types[a == T_F32 || a == T_BF16X2 ? d : a].name, 86, narrow_targets);
    return true;
}

/* cvt between the types above, or with .rs; false: not one of these */
bool sim_lower_narrow_cvt(sim_lower *lw, const sim_statement *s)
{
    if (s->type_count != 2) return false;
    sim_type d = (sim_type)s->types[0], a = (sim_type)s->types[1];
    bool to_two = d == T_E2M1X2 || d == T_E2M3X2 || d == T_E3M2X2 || d == T_UE8M0X2,
         to_four = d == T_E4M3X4 || d == T_E5M2X4 || d == T_E2M1X4 || d == T_E2M3X4 || d == T_E3M2X4,
         from_two = a == T_E2M1X2 || a == T_E2M3X2 || a == T_E3M2X2 || a == T_UE8M0X2, rs = sim_has(s, M_rs);
    if (!to_two && !to_four && !from_two && !rs) return false;
    bool legal = to_four          ? a == T_F32
                 : d == T_UE8M0X2 ? a == T_F32 || a == T_BF16X2
                 : to_two         ? a == T_F32
                 : a == T_UE8M0X2 ? d == T_BF16X2
                 : from_two       ? d == T_F16X2
                                  : (d == T_F16X2 || d == T_BF16X2) && a == T_F32;
    if (!legal || (rs && (to_two || from_two))) {
        sim_reject(lw, "Unexpected instruction types specified for 'cvt'");
        return true;
    }
    uint32_t count = to_four ? 4 : 2, sources = from_two || a == T_BF16X2 || to_four ? 1 : 2,
             operands = 1 + sources + rs;
    if (!check_narrow(lw, s, d, a, count) || !sim_operands_between(lw, operands, operands)) return true;
    static const sim_type raw[] = { T_NONE, T_B8, T_B16, T_NONE, T_B32 };
    sim_type dr = raw[sim_types[d].bytes], ar = raw[sim_types[a].bytes];
    if (to_four && (s->operands[1].kind != O_VECTOR || s->operands[1].count != 4)) {
        sim_mismatch(lw, 1, "expected a vector of 4");
        return true;
    }
    uint32_t list = 0, slot_a = 0;
    if (from_two)
        slot_a = sim_source(lw, 1, ar, 0);
    else {
        list = sim_list_begin(lw, sources == 1 && !to_four ? 1 : count);
        if (a == T_BF16X2)
            lw->k->lists[list] = sim_source(lw, 1, T_BF16X2, 0);
        else
            for (uint32_t k = 0; k < count; k++) {
                uint32_t slot = to_four ? sim_source_of(lw, &s->operands[1].items[k], 1, T_F32, 0)
                                        : sim_source(lw, 1 + k, T_F32, 0);
                lw->k->lists[list + k] = slot;
            }
    }
    uint32_t random = rs ? sim_source(lw, operands - 1, T_B32, 0) : 0;
    uint32_t slot_d = sim_dest(lw, 0, from_two ? d : dr, 0);
    sim_ins *i = sim_emit(lw, from_two ? sim_widen : sim_narrow, F_PLAIN);
    i->d = slot_d;
    i->a = slot_a;
    i->list = list;
    i->c = random;
    i->width = rs;
    i->x = sim_flags_of(s);
    i->type = (uint8_t)d;
    i->op = (uint8_t)a;
    i->count = (uint8_t)count;
    return true;
}

/* --- min and max of three --------------------------------------------------------------------- */

static uint32_t least_or_most(uint32_t a, uint32_t b, bool most, uint32_t x)
{
    if (x & X_FTZ) {
        a = fz(a);
        b = fz(b);
    }
    if ((x & X_NAN) && (isnan32(a) || isnan32(b))) return 0x7fffffff;
    if (x & X_ABS) {
        a &= 0x7fffffff;
        b &= 0x7fffffff;
    }
    return most ? max32(a, b) : min32(a, b);
}

static void sim_minmax3(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *a = sim_slot(w, i->a), *b = sim_slot(w, i->b), *c = sim_slot(w, i->c);
    uint32_t *d = sim_slot(w, i->d);
    SIM_EACH_LANE(l, m) d[l] = least_or_most(least_or_most(a[l], b[l], i->op, i->x), c[l], i->op, i->x);
}

void sim_lower_minmax(sim_lower *lw, const sim_statement *s)
{
    bool magnitudes = s->form->x & X_ABS;
    if (s->operand_count != 4 && !magnitudes) {
        sim_lower_table(lw, s);
        return;
    }
    if (!sim_operands_between(lw, 4, 4)) return;
    sim_require_version(lw, "min and max of three", 88, 100);
    uint32_t a = sim_source(lw, 1, T_F32, 0), b = sim_source(lw, 2, T_F32, 0),
             c = sim_source(lw, 3, T_F32, 0), d = sim_dest(lw, 0, T_F32, 0);
    sim_ins *i = sim_emit(lw, sim_minmax3, F_PLAIN);
    i->d = d;
    i->a = a;
    i->b = b;
    i->c = c;
    i->op = s->form->sub;
    i->x = sim_flags_of(s);
}

/* --- redux of floats -------------------------------------------------------------------------- */

static void sim_redux_f32(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *e = sim_slot(w, i->e), *a = sim_slot(w, i->a);
    uint32_t out[SIM_LANES] = { 0 };
    SIM_EACH_LANE(l, m)
    {
        uint32_t group = e[l] & m, first = group ? sim_lowest(group) : l;
        uint32_t r = least_or_most(a[first], a[first], i->op, i->x);
        SIM_EACH_LANE(k, group) r = least_or_most(r, a[k], i->op, i->x);
        out[l] = r;
    }
    SIM_EACH_LANE(l, m) sim_slot(w, i->d)[l] = out[l];
}

void sim_lower_redux_f32(sim_lower *lw, const sim_statement *s)
{
    require_targets(lw, "redux.f32", 86, " 100a 100f 103a 103f ");
    if (!sim_operands_between(lw, 3, 3)) return;
    uint32_t d = sim_dest(lw, 0, T_F32, 0), a = sim_source(lw, 1, T_F32, 0), e = sim_source(lw, 2, T_B32, 0);
    sim_ins *i = sim_emit(lw, sim_redux_f32, F_SYNC);
    i->d = d;
    i->a = a;
    i->e = e;
    i->op = sim_has(s, M_max);
    i->x = sim_flags_of(s) | (sim_has(s, M_abs) ? X_ABS : 0);
}

/* --- performance monitor events --------------------------------------------------------------- */

void sim_lower_pmevent(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 1, 1)) return;
    const sim_operand *o = &s->operands[0];
    if (o->kind != O_INT || o->value < 0 || o->value > s->form->imm) {
        sim_reject(lw, "Argument 0 of instruction 'pmevent': expected to be in range [0..%d]",
                   (int)s->form->imm);
        return;
    }
    sim_emit(lw, sim_nop, F_PLAIN);
}
