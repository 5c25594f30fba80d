/* video.c - the video instructions: scalar (vadd ... vset), and of halves and bytes (vadd2 ... vset4).
 *
 * A selector is 16 bits of sim_operand.special: bit 15: bytes (else halves); bits 14-12: their number; then three
 * bits for each, the first in the text uppermost. 0: no selector. The parser makes them. */
#include "sim.h"
#include "lower.h"

enum { V_ADD, V_SUB, V_ABSDIFF, V_MIN, V_MAX, V_SHL, V_SHR, V_MAD, V_SET, V_AVRG };
enum { SEC_NONE, SEC_ADD, SEC_MIN, SEC_MAX };

typedef struct video { /* packed into the instruction: see pack() */
    uint16_t d, a, b;  /* selectors */
    bool d_signed, a_signed, b_signed, sat, wrap, plus_one, negate_product, negate_c;
    uint8_t secondary, relation, lanes, shift;
} video;

static void pack(const video *v, sim_ins *i)
{
    i->imm = (int64_t)((uint64_t)v->d << 32 | (uint64_t)v->a << 16 | v->b);
    i->x = (uint32_t)v->d_signed | (uint32_t)v->a_signed << 1 | (uint32_t)v->b_signed << 2
           | (uint32_t)v->sat << 3 | (uint32_t)v->wrap << 4 | (uint32_t)v->plus_one << 5
           | (uint32_t)v->negate_product << 6 | (uint32_t)v->negate_c << 7;
    i->size = v->secondary;
    i->count = v->relation;
    i->width = v->lanes;
    i->space = v->shift;
}

static video unpack(const sim_ins *i)
{
    uint64_t s = (uint64_t)i->imm;
    return (video){ (uint16_t)(s >> 32),
                    (uint16_t)(s >> 16),
                    (uint16_t)s,
                    i->x & 1,
                    i->x >> 1 & 1,
                    i->x >> 2 & 1,
                    i->x >> 3 & 1,
                    i->x >> 4 & 1,
                    i->x >> 5 & 1,
                    i->x >> 6 & 1,
                    i->x >> 7 & 1,
                    i->size,
                    i->count,
                    i->width,
                    i->space };
}

/* --- values ----------------------------------------------------------------------------------- */

static int64_t part_of(uint64_t v, uint32_t at, uint32_t bits, bool is_signed)
{
    uint64_t part = v >> at & ((UINT64_C(1) << bits) - 1);
    if (is_signed && part >> (bits - 1)) part |= ~UINT64_C(0) << bits;
    return (int64_t)part;
}

static int64_t selected(uint32_t v, uint16_t selector, bool is_signed)
{
    uint32_t which = selector & 7;
    if (!selector) return part_of(v, 0, 32, is_signed);
    return selector >> 15 ? part_of(v, which * 8, 8, is_signed) : part_of(v, which * 16, 16, is_signed);
}

static int64_t clamped(int64_t v, uint32_t bits, bool is_signed)
{
    int64_t top = (INT64_C(1) << (bits - is_signed)) - 1, bottom = is_signed ? -top - 1 : 0;
    return v < bottom ? bottom : v > top ? top : v;
}

static bool holds(int64_t a, int64_t b, uint32_t relation)
{
    switch (relation) {
    case CMP_EQ: return a == b;
    case CMP_NE: return a != b;
    case CMP_LT: return a < b;
    case CMP_LE: return a <= b;
    case CMP_GT: return a > b;
    default: return a >= b;
    }
}

static int64_t primary(const video *v, uint32_t op, int64_t a, int64_t b)
{
    switch (op) {
    case V_ADD: return a + b;
    case V_SUB: return a - b;
    case V_ABSDIFF: return a < b ? b - a : a - b;
    case V_MIN: return a < b ? a : b;
    case V_MAX: return a > b ? a : b;
    case V_SET: return holds(a, b, v->relation);
    case V_AVRG: return (a + b + (a + b >= 0)) >> 1;
    default: { /* shifts: b is unsigned */
        uint32_t n = v->wrap ? (uint32_t)b & 31 : b > 32 ? 32 : (uint32_t)b;
        if (op == V_SHL && n == 32 && a > INT32_MAX) return (int64_t)0x7fffffff << 32; /* clamps as 2^63 would */
        return op == V_SHL ? (int64_t)((uint64_t)a << n) : a >> n;
    }
    }
}

static uint32_t secondary(const video *v, uint32_t t, uint32_t c)
{
    bool less = v->d_signed ? (int32_t)t < (int32_t)c : t < c;
    switch (v->secondary) {
    case SEC_ADD: return t + c;
    case SEC_MIN: return less ? t : c;
    case SEC_MAX: return less ? c : t;
    default: return t;
    }
}

static uint32_t merged(uint32_t t, uint16_t selector, uint32_t c)
{
    uint32_t bits = selector >> 15 ? 8 : 16, at = (selector & 7) * bits, mask = ((1u << bits) - 1) << at;
    return selector ? (c & ~mask) | (t << at & mask) : t;
}

static uint32_t one_value(const video *v, uint32_t op, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t bits = !v->d ? 32 : v->d >> 15 ? 8 : 16;
    int64_t t = primary(v, op, selected(a, v->a, v->a_signed), selected(b, v->b, v->b_signed));
    if (v->sat) t = clamped(t, bits, v->d_signed);
    return merged(secondary(v, (uint32_t)t, c), v->d, c);
}

/* vmad. The signed product has up to 65 bits; in 96 bits, shift and saturation are exact. */
static uint32_t multiply_add(const video *v, uint32_t a_word, uint32_t b_word, uint32_t c_word)
{
    int64_t a = selected(a_word, v->a, v->a_signed), b = selected(b_word, v->b, v->b_signed);
    bool is_signed = v->a_signed || v->b_signed || v->negate_product || v->negate_c;
    bool negative = (a < 0) != (b < 0);
    uint64_t product = (a < 0 ? 0 - (uint64_t)a : (uint64_t)a) * (b < 0 ? 0 - (uint64_t)b : (uint64_t)b);
    int64_t c = is_signed ? (int64_t)(int32_t)c_word : (int64_t)c_word;
    if (v->negate_product) negative = !negative;
    if (v->negate_c) c = -c;
    if (v->plus_one) c++;
    /* high * 2^32 + low, with low in 32 bits: no step overflows */
    int64_t high = (int64_t)(product >> 32), low = (int64_t)(product & 0xffffffffu);
    if (negative) {
        high = -high;
        low = -low;
    }
    low += c;
    high += low >> 32;
    low &= 0xffffffff;
    uint64_t wide = (uint64_t)low >> v->shift | (uint64_t)high << (32 - v->shift);
    int64_t above = high >> v->shift; /* the bits above the low word */
    if (!v->sat) return (uint32_t)wide;
    uint32_t word = (uint32_t)wide;
    if (!is_signed) return above ? UINT32_MAX : word;
    if (above == 0 && !(word >> 31)) return word;
    if (above == -1 && word >> 31) return word;
    return above < 0 ? 0x80000000u : 0x7fffffff;
}

/* The lane that lane k of the result reads: the selector's, or without one lane k of a, or of b (second). */
static uint32_t chosen(uint16_t selector, uint32_t lanes, uint32_t k, bool second)
{
    return selector ? selector >> 3 * k & 7 : k + (second ? lanes : 0);
}

static uint32_t in_lanes(const video *v, uint32_t op, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t bits = 32 / v->lanes, all = (1u << bits) - 1, r = c, count = v->d >> 12 & 7;
    uint64_t both = (uint64_t)b << 32 | a;
    for (uint32_t k = 0; k < v->lanes; k++) {
        bool on = !v->d;
        for (uint32_t n = 0; n < count; n++) on |= (v->d >> 3 * n & 7) == k;
        if (!on) continue;
        int64_t x = part_of(both, chosen(v->a, v->lanes, k, false) * bits, bits, v->a_signed);
        int64_t y = part_of(both, chosen(v->b, v->lanes, k, true) * bits, bits, v->b_signed);
        int64_t t = primary(v, op, x, y);
        if (v->sat) t = clamped(t, bits, v->d_signed);
        if (v->secondary)
            r += (uint32_t)t;
        else
            r = (r & ~(all << k * bits)) | ((uint32_t)t & all) << k * bits;
    }
    return r;
}

static void sim_video(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *a = sim_slot(w, i->a), *b = sim_slot(w, i->b), *c = sim_slot(w, i->c);
    uint32_t *d = sim_slot(w, i->d);
    video v = unpack(i);
    SIM_EACH_LANE(l, m)
    d[l] = i->op == V_MAD ? multiply_add(&v, a[l], b[l], c[l])
           : v.lanes == 1 ? one_value(&v, i->op, a[l], b[l], c[l])
                          : in_lanes(&v, i->op, a[l], b[l], c[l]);
}

/* --- lowering --------------------------------------------------------------------------------- */

/* Whether operand n may have this selector. A mask names each lane at most once, from the highest down. */
static bool selector_fits(const sim_operand *o, uint32_t lanes, bool mask)
{
    uint32_t count = o->special >> 12 & 7, limit = o->special >> 15 ? 4 : 2;
    if (o->kind != O_REG || !o->special) return true;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t which = o->special >> 3 * k & 7;
        if (which >= limit * (lanes > 1 && !mask ? 2 : 1)) return false;
        if (mask && k && which <= (o->special >> 3 * (k - 1) & 7)) return false;
    }
    if (lanes == 1) return count == 1;
    return limit == lanes && (mask || count == lanes);
}

static uint8_t relation_of(const sim_mods *m)
{
    static const uint16_t mods[] = { M_eq, M_ne, M_lt, M_le, M_gt, M_ge };
    static const uint8_t relations[] = { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };
    for (size_t k = 0; k < sizeof mods / sizeof *mods; k++)
        if (sim_mod(m, mods[k])) return relations[k];
    return CMP_EQ;
}

/* vmad: finds which operands are negated, and checks what that may be combined with. */
static void lower_negation(sim_lower *lw, const sim_statement *s, video *v)
{
    const sim_operand *o = s->operands;
    v->plus_one = sim_mod(&s->mods, M_po);
    v->negate_product = o[1].negate != o[2].negate;
    v->negate_c = o[3].negate;
    v->shift = sim_mod(&s->mods, M_shr7) ? 7 : sim_mod(&s->mods, M_shr15) ? 15 : 0;
    if (v->plus_one && (o[1].negate || o[2].negate || o[3].negate))
        sim_reject(lw, "Conflicting use of '.po' modifier with operand negation");
    else if (v->negate_product && v->negate_c)
        sim_reject(lw, "Operand negation limited to either (source A xor source B) or source C");
}

void sim_lower_video(sim_lower *lw, const sim_statement *s)
{
    uint32_t op = s->form->sub, lanes = s->form->lanes, first = op == V_SET ? 0 : 1;
    const sim_operand *o = s->operands;
    video v = { 0 };
    v.lanes = (uint8_t)lanes;
    v.secondary = sim_mod(&s->mods, M_add)   ? SEC_ADD
                  : sim_mod(&s->mods, M_min) ? SEC_MIN
                  : sim_mod(&s->mods, M_max) ? SEC_MAX
                                             : SEC_NONE;
    bool merge = lanes == 1 && s->operand_count && o[0].kind == O_REG && o[0].special;
    bool three = lanes > 1 || op == V_MAD || v.secondary || merge;
    if (!sim_operands_between(lw, three ? 4 : 3, three ? 4 : 3)) return;
    for (uint32_t n = 0; n < s->operand_count; n++) {
        bool fits = n < 3 ? selector_fits(&o[n], lanes, n == 0) : !o[n].special || o[n].kind != O_REG;
        if (op == V_MAD && n == 0 && o[n].special) fits = false;
        if (o[n].offset || (lanes > 1 && o[n].kind != O_REG)) fits = false;      /* a constant has no lanes */
        if (!fits) {
            sim_mismatch(lw, n, "incorrect video selector");
            return;
        }
        if (o[n].negate && (op != V_MAD || !n)) {
            sim_mismatch(lw, n, "a negated operand");
            return;
        }
    }
    if (merge && v.secondary) {
        sim_reject(lw, "Video instruction cannot have destination selector and secondary operation");
        return;
    }
    v.sat = sim_mod(&s->mods, M_sat);
    if (lanes > 1 && v.sat && v.secondary) {
        sim_reject(lw, "Modifier '.sat' cannot be combined with modifier '.add'");
        return;
    }
    v.wrap = sim_mod(&s->mods, M_wrap);
    v.relation = relation_of(&s->mods);
    v.d_signed = first && s->types[0] == T_S32;
    v.a_signed = s->types[first] == T_S32;
    v.b_signed = s->types[first + 1] == T_S32;
    if (op == V_MAD) lower_negation(lw, s, &v);
    sim_operand plain[4];
    for (uint32_t n = 0; n < s->operand_count; n++) {
        plain[n] = o[n];
        if (n < 3 && o[n].kind == O_REG) (n ? n == 1 ? &v.a : &v.b : &v.d)[0] = o[n].special;
        plain[n].negate = false;
    }
    uint32_t a = sim_source_of(lw, &plain[1], 1, (sim_type)s->types[first], 0),
             b = sim_source_of(lw, &plain[2], 2, (sim_type)s->types[first + 1], 0),
             c = three ? sim_source_of(lw, &plain[3], 3, T_B32, 0) : 0,
             d = sim_dest_of(lw, &plain[0], 0, T_B32, 0);
    sim_ins *i = sim_emit(lw, sim_video, F_PLAIN);
    i->d = d;
    i->a = a;
    i->b = b;
    i->c = three ? c : a;
    i->op = (uint8_t)op;
    pack(&v, i);
}
