/* contract.c - fuses mul and add without a rounding modifier, as the assembler may.
 *
 * add, sub and mul of floats without a rounding modifier may be contracted to fma; with .rn they may not. The
 * assembler decides, so code whose result changes with option "contract" should use
 * fma, or .rn. Here an add takes the product of a mul above it in its basic block if nothing else
 * uses that register and the mul's operands still have the same values. The mul itself stays. */
#include "sim.h"
#include "lower.h"

static bool has_rounding(const sim_statement *s)
{
    return sim_mod(&s->mods, M_rn) || sim_mod(&s->mods, M_rz) || sim_mod(&s->mods, M_rm)
           || sim_mod(&s->mods, M_rp);
}

static bool is_float_op(const sim_statement *s, const char *name)
{
    if (strcmp(s->opcode, name) || s->type_count != 1 || s->operand_count != 3 || has_rounding(s)) return false;
    switch (s->types[0]) {
    case T_F32:
    case T_F64:
    case T_F16:
    case T_F16X2:
    case T_BF16:
    case T_BF16X2:
    case T_F32X2: return true;
    default: return false;
    }
}

static void count_registers(const sim_operand *o, uint32_t *counts)
{
    if (o->kind == O_REG) counts[o->reg]++;
    if (o->kind == O_SYMBOL && o->items) count_registers(o->items, counts);
    if (!o->items) return;
    for (uint32_t k = 0; k < (o->kind == O_ADDRESS ? 1u : o->count); k++)
        count_registers(&o->items[k], counts);
}

static bool has_register(const sim_operand *o, uint32_t reg)
{
    if (o->kind == O_REG) return o->reg == reg;
    if (!o->items) return false;
    for (uint32_t k = 0; k < (o->kind == O_ADDRESS ? 1u : o->count); k++)
        if (has_register(&o->items[k], reg)) return true;
    return false;
}

static const uint32_t *occurrences(sim_lower *lw, const sim_function *f)
{
    if (lw->counted == f) return lw->occurrences;
    lw->occurrences = sim_alloc(lw->m, (f->register_count + 1) * sizeof *lw->occurrences);
    lw->counted = f;
    for (uint32_t k = 0; k < f->statement_count; k++)
        for (uint32_t n = 0; n < f->body[k].operand_count; n++)
            count_registers(&f->body[k].operands[n], lw->occurrences);
    return lw->occurrences;
}

/* Whether s may write an operand of the mul, or its guard. Any register in s's first operand counts as written. */
static bool writes_operand_of(const sim_statement *s, const sim_statement *mul)
{
    if (!s->operand_count) return false;
    for (uint32_t n = 1; n < 3; n++) {
        const sim_operand *o = &mul->operands[n];
        if (o->kind == O_REG && has_register(&s->operands[0], o->reg)) return true;
    }
    return mul->guard >= 0 && has_register(&s->operands[0], (uint32_t)mul->guard);
}

static const sim_statement *product_of(sim_lower *lw, const sim_statement *s, const sim_operand *o)
{
    const sim_function *f = lw->frame->function;
    if (o->kind != O_REG || o->offset || occurrences(lw, f)[o->reg] != 2) return NULL;
    for (const sim_statement *at = s; !at->labelled && at-- > f->body;) {
        if (at->form->cls == C_CONTROL) return NULL;
        bool mul = is_float_op(at, "mul") && at->operands[0].kind == O_REG && at->operands[0].reg == o->reg;
        if (!mul) continue;
        if (at->types[0] != s->types[0] || sim_mod(&at->mods, M_sat) || at->guard != s->guard
            || at->guard_negate != s->guard_negate || sim_mod(&at->mods, M_ftz) != sim_mod(&s->mods, M_ftz))
            return NULL;
        for (const sim_statement *k = at; k < s; k++)
            if (writes_operand_of(k, at)) return NULL;
        return at;
    }
    return NULL;
}

static int fused_operation(sim_type t, uint32_t x)
{
    switch (t) {
    case T_F32: return !x ? OP_fma_f32 : x == X_FTZ ? OP_fma_f32_ftz : OP_any_f32;
    case T_F64: return OP_fma_f64;
    case T_F16: return x ? OP_any_half : OP_fma_f16;
    case T_F16X2: return x ? OP_any_half : OP_fma_f16x2;
    case T_BF16: return OP_fma_bf16;
    case T_BF16X2: return OP_fma_bf16x2;
    default: return x ? OP_fma_f32x2_ftz : OP_fma_f32x2;
    }
}

static uint32_t negated(sim_lower *lw, uint32_t slot, sim_type t)
{
    int op = t == T_F32                      ? OP_neg_f32
             : t == T_F64                    ? OP_neg_f64
             : t == T_F16X2 || t == T_BF16X2 ? OP_neg_16fx2
                                             : OP_neg_16f;
    uint32_t d = sim_temporary(lw, t == T_F64 ? 2 : 1);
    sim_ins *i = sim_emit(lw, sim_op_handler(op), F_PLAIN);
    i->a = slot;
    i->d = d;
    return d;
}

/* Emits fma for an add or sub that may be contracted; false: emitted nothing. */
bool sim_contract(sim_lower *lw, const sim_statement *s)
{
    bool sub = is_float_op(s, "sub");
    sim_type t = s->type_count ? (sim_type)s->types[0] : T_NONE;
    if (!sim_option.contract || (!sub && !is_float_op(s, "add")) || (sub && t == T_F32X2)) return false;
    uint32_t which = 1;
    const sim_statement *mul = product_of(lw, s, &s->operands[1]);
    if (!mul) mul = product_of(lw, s, &s->operands[which = 2]);
    if (!mul) return false;
    uint32_t a = sim_source_of(lw, &mul->operands[1], 1, t, 0),
             b = sim_source_of(lw, &mul->operands[2], 2, t, 0), c = sim_source(lw, 3 - which, t, 0),
             d = sim_dest(lw, 0, t, 0), x = sim_flags_of(s);
    if (sub && which == 1) c = negated(lw, c, t);
    if (sub && which == 2) a = negated(lw, a, t);
    sim_ins *i = sim_emit(lw, sim_op_handler(fused_operation(t, x)), F_PLAIN);
    i->d = d;
    i->a = a;
    i->b = b;
    i->c = c;
    i->x = x;
    i->op = 3; /* fma, among the operations of any_f32 and any_half */
    i->count = t == T_F16X2 ? 2 : 1;
    i->type = (uint8_t)t;
    return true;
}
