/* suspect.c - legal PTX that is likely a mistake: reported when a thread executes it.
 *
 *   immediate-cut          a constant with bits that its type does not hold
 *   count-range            a shift or field that lies outside its operand; a barrier for 0 threads; bits of
 *                          shfl's c that have no meaning
 *   division-by-zero       by a constant
 *   carry-flag             addc after sub.cc, subc after add.cc, or a carry from another basic block: the flag is
 *                          for straight-line code, and its value after a borrow depends on the chip
 *   duplicate-destination  a vector load that gives one register two values
 *   alignment-luck         a variable declared with less alignment than its access needs
 *
 * Option "suspects". They are found when code is lowered; a finding is an instruction of its own
 * before the suspect, so other code pays nothing. */
#include "sim.h"
#include "lower.h"
#include "unwritten.h"
#include <stdarg.h>

static void report_suspect(sim_warp *w, const sim_ins *i, uint32_t m)
{
    static const char *const kinds[] = { "immediate-cut", "count-range", "duplicate-destination",
                                         "alignment-luck", "division-by-zero", "carry-flag" };
    if (m) sim_report_at(w, i, kinds[i->op], sim_lowest(m), "%s", (const char *)(intptr_t)i->imm);
}
enum { CUT, RANGE, DUPLICATE, LUCK, ZERO, CARRY };

static void suspect(sim_lower *lw, int kind, const char *format, ...) SIM_PRINTF(3, 4);
static void suspect(sim_lower *lw, int kind, const char *format, ...)
{
    char *text = sim_alloc(lw->m, 200);
    va_list a;
    va_start(a, format);
    vsnprintf(text, 200, format, a);
    va_end(a);
    sim_ins *i = sim_emit(lw, report_suspect, F_PLAIN);
    i->imm = (int64_t)(intptr_t)text;
    i->op = (uint8_t)kind;
}

static void look_at_constant(sim_lower *lw, const sim_operand *o, sim_type t)
{
    uint32_t bits = sim_types[t].bytes * 8u;
    if (o->kind != O_INT || !bits || bits > 32 || sim_types[t].kind == K_PACKED) return;
    int64_t top = (INT64_C(1) << bits) - 1, bottom = -(INT64_C(1) << (bits - 1));
    if (o->value > top || o->value < bottom)
        suspect(lw, CUT, "%lld does not fit .%s", (long long)o->value, sim_types[t].name);
}

static void look_at_constants(sim_lower *lw, const sim_statement *s)
{
    const sim_form *f = s->form;
    sim_type t = (sim_type)s->types[0];
    uint32_t n = 0;
    if (f->lower == sim_lower_mov || f->lower == sim_lower_setp) {
        for (n = 1; n < s->operand_count && n < 3; n++) look_at_constant(lw, &s->operands[n], t);
        return;
    }
    if (f->lower) return;
    for (const char *p = f->args; *p && n < s->operand_count; p++) {
        if (*p == ' ') continue;
        if (*p == 'a') look_at_constant(lw, &s->operands[n], t);
        n++;
    }
}

static bool constant_over(const sim_statement *s, uint32_t n, int64_t most)
{
    return n < s->operand_count && s->operands[n].kind == O_INT
           && (s->operands[n].value < 0 || s->operands[n].value > most);
}

static void look_at_counts(sim_lower *lw, const sim_statement *s)
{
    int64_t bits = s->type_count ? sim_types[s->types[0]].bytes * 8 : 0;
    bool insert = !strcmp(s->opcode, "bfi");
    if (!strcmp(s->opcode, "shl") || !strcmp(s->opcode, "shr")) {
        if (constant_over(s, 2, bits - 1))
            suspect(lw, RANGE, "a shift by %lld moves every bit out", (long long)s->operands[2].value);
    } else if (insert || !strcmp(s->opcode, "bfe")) {
        uint32_t n = insert ? 3 : 2;
        if (constant_over(s, n, bits - 1) || constant_over(s, n + 1, bits))
            suspect(lw, RANGE, "the field lies outside %lld bits", (long long)bits);
    } else if (!strcmp(s->opcode, "prmt") && !strcmp(s->form->name, "prmt")) {
        if (constant_over(s, 3, 0xffff)) suspect(lw, CUT, "a selector has 16 bits");
    } else if (s->form->lower == sim_lower_lop3) {
        if (constant_over(s, 4, 0xff)) suspect(lw, CUT, "a table has 8 bits");
    } else if (s->form->cls == C_INT && (!strcmp(s->opcode, "div") || !strcmp(s->opcode, "rem"))) {
        if (s->operand_count > 2 && s->operands[2].kind == O_INT && !s->operands[2].value)
            suspect(lw, ZERO, "the divisor is 0, which leaves the result undefined");
    } else if (s->form->lower == sim_lower_shfl) {
        if (s->operand_count > 3 && s->operands[3].kind == O_INT && s->operands[3].value & ~(int64_t)SHFL_C)
            suspect(lw, RANGE, OTHER_BITS, (uint32_t)s->operands[3].value);
    } else if (s->form->lower == sim_lower_bar && s->operand_count == 2 && s->operands[1].kind == O_INT
               && !s->operands[1].value)
        suspect(lw, RANGE, "a barrier for 0 threads");
}

static void look_at_vector(sim_lower *lw, const sim_statement *s)
{
    const sim_operand *v = &s->operands[0];
    if (s->form->lower != sim_lower_ld || v->kind != O_VECTOR) return;
    for (uint32_t k = 0; k < v->count; k++)
        for (uint32_t n = k + 1; n < v->count; n++)
            if (v->items[k].kind == O_REG && v->items[n].kind == O_REG
                && v->items[k].reg == v->items[n].reg) {
                suspect(lw, DUPLICATE, "register '%s' gets two values", v->items[k].name);
                return;
            }
}

static void look_at_alignment(sim_lower *lw, const sim_statement *s)
{
    bool load = s->form->lower == sim_lower_ld;
    if (!load && s->form->lower != sim_lower_st) return;
    const sim_operand *o = &s->operands[load ? 1 : 0];
    if (o->kind != O_ADDRESS || !o->items || o->items[0].kind != O_SYMBOL) return;
    const sim_symbol *y = o->items[0].symbol;
    while (y && y->alias) y = y->alias;
    uint32_t count = sim_mod(&s->mods, M_v2)   ? 2
                     : sim_mod(&s->mods, M_v4) ? 4
                     : sim_mod(&s->mods, M_v8) ? 8
                                               : 1;
    uint32_t bytes = count * sim_types[s->types[0]].bytes;
    if (!y || y->kind != SYM_VAR || y->space == SP_PARAM || !y->align || y->align >= bytes) return;
    suspect(lw, LUCK, "'%s' has .align %u, the access needs %u", y->name, y->align, bytes);
}

enum { NO_CARRY, SUM, DIFFERENCE };

static void look_at_carry(sim_lower *lw, const sim_statement *s)
{
    static const uint16_t jumps[] = { F_BRANCH, F_EXIT, F_TRAP, F_INDEXED, F_CALL, F_RETURN };
    const sim_kernel *k = lw->k;
    uint32_t flow = k->code_count ? k->code[k->code_count - 1].flow : F_EXIT;
    for (size_t n = 0; n < sizeof jumps / sizeof *jumps; n++) if (flow == jumps[n]) lw->carry = NO_CARRY;
    if (s->labelled || s->form->lower == sim_lower_call) lw->carry = NO_CARRY;
    if (s->form->lower != sim_lower_carry) return;
    uint8_t kind = s->form->sub == 1 ? DIFFERENCE : SUM;
    if (s->form->x & X_CARRY && lw->carry != kind)
        suspect(lw, CARRY, "%s", !lw->carry      ? "the carry flag was not set in this basic block"
                                 : kind == SUM ? "the carry flag is that of a subtraction"
                                               : "the carry flag is that of an addition");
    if (s->form->x & X_CC) lw->carry = kind;
}

void sim_find_suspects(sim_lower *lw, const sim_statement *s)
{
    if (!sim_option.suspects) return;
    look_at_carry(lw, s);
    if (!s->operand_count) return;
    if (s->type_count) look_at_constants(lw, s);
    look_at_counts(lw, s);
    look_at_vector(lw, s);
    if (s->type_count && s->operand_count >= 2) look_at_alignment(lw, s);
}
