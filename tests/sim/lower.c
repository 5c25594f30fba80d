/* lower.c - turns statements into code: operand checks, slots, control flow, barriers, moves.
 *
 * The code of an entry is that of all functions which it can reach, each once, callees first: so a
 * warp, which runs its lowest path first, completes a call before it goes on. A frame (sim_frame) is a function
 * while it is lowered: its slots, labels and variables; calls.c makes the frames of a kernel. Loads,
 * stores, atomics, conversions and warp-wide instructions are in lower_memory.c. */
#include "sim.h"
#include "lower.h"
#include "race.h"
#include "unwritten.h"
#include <stdarg.h>

enum { SPECIAL_SLOTS = 32, MAX_CODE = 1 << 22 };

/* --- messages --------------------------------------------------------------------------------- */

static void describe(const sim_operand *o, char *out, size_t size)
{
    switch (o->kind) {
    case O_REG:     snprintf(out, size, "register '%s' of type .%s", o->name, sim_types[o->type].name); break;
    case O_INT:     snprintf(out, size, "the integer %lld", (long long)o->value); break;
    case O_FLOAT:   snprintf(out, size, "a floating-point constant"); break;
    case O_SYMBOL:  snprintf(out, size, "the symbol '%s'", o->name); break;
    case O_SPECIAL: snprintf(out, size, "the special register '%s'", o->name); break;
    case O_SINK:    snprintf(out, size, "'_'"); break;
    case O_VECTOR:  snprintf(out, size, "a vector of %u", o->count); break;
    case O_ADDRESS: snprintf(out, size, "an address"); break;
    case O_PAIR:    snprintf(out, size, "a pair"); break;
    default:        snprintf(out, size, "nothing"); break;
    }
}

void sim_mismatch(sim_lower *lw, uint32_t index, const char *format, ...)
{
    char text[300], have[120] = "";
    va_list a;
    va_start(a, format);
    vsnprintf(text, sizeof text, format, a);
    va_end(a);
    if (index < lw->s->operand_count) describe(&lw->s->operands[index], have, sizeof have);
    sim_reject(lw, "Arguments mismatch for instruction '%s' (operand %u%s%s; %s)", lw->full, index,
               *have ? " is " : "", have, text);
}

bool sim_operands_between(sim_lower *lw, uint32_t least, uint32_t most)
{
    uint32_t n = lw->s->operand_count;
    if (n >= least && n <= most) return true;
    if (least == most)
        sim_reject(lw, "Arguments mismatch for instruction '%s' (%u operands, expected %u)", lw->full, n,
                   least);
    else
        sim_reject(lw, "Arguments mismatch for instruction '%s' (%u operands, expected %u to %u)", lw->full, n,
                   least, most);
    return false;
}

/* --- growing arrays --------------------------------------------------------------------------- */

static void *grow(sim_lower *lw, void *old, uint32_t count, uint32_t *capacity, size_t item)
{
    if (count < *capacity) return old;
    uint32_t wanted = *capacity ? *capacity * 2 : 32;
    void *p = realloc(old, wanted * item);
    if (!p) { lw->m->out_of_memory = true; longjmp(*lw->m->bail, 1); }
    memset((char *)p + *capacity * item, 0, (wanted - *capacity) * item);
    *capacity = wanted;
    return p;
}

sim_ins *sim_emit(sim_lower *lw, sim_handler fn, sim_flow flow)
{
    sim_kernel *k = lw->k;
    if (k->code_count >= MAX_CODE)
        sim_fatal(lw->m, lw->s->line, "The code of '%s' is too large", k->function->name);
    k->code = grow(lw, k->code, k->code_count, &k->code_capacity, sizeof *k->code);
    sim_ins *i = &k->code[k->code_count++];
    memset(i, 0, sizeof *i);
    i->fn = fn;
    i->flow = (uint8_t)flow;
    i->line = lw->s ? lw->s->line : k->function->end_line;
    i->cls = lw->s && lw->s->form ? lw->s->form->cls : C_CONTROL;
    return i;
}

uint32_t sim_list_begin(sim_lower *lw, uint32_t count)
{
    sim_kernel *k = lw->k;
    uint32_t at = k->list_count;
    for (uint32_t n = 0; n < count; n++) {
        k->lists = grow(lw, k->lists, k->list_count, &k->list_capacity, sizeof *k->lists);
        k->lists[k->list_count++] = 0;
    }
    return at;
}

uint32_t sim_constant(sim_lower *lw, uint64_t value, uint32_t width)
{
    sim_kernel *k = lw->k;
    uint32_t h = (uint32_t)((value * UINT64_C(0x9e3779b97f4a7c15)) >> 54) & 1023;
    for (uint32_t n = lw->consts_hash[h]; n; n = 0) {
        const sim_const_fill *c = &k->consts[n - 1];
        if (c->value == value && c->width == width) return SIM_CONST_BANK | c->slot;
    }
    k->consts = grow(lw, k->consts, k->const_fill_count, &lw->const_capacity, sizeof *k->consts);
    k->consts[k->const_fill_count] = (sim_const_fill){ k->const_slots, (uint8_t)width, value };
    lw->consts_hash[h] = ++k->const_fill_count;
    k->const_slots += width;
    return SIM_CONST_BANK | (k->const_slots - width);
}

uint32_t sim_temporary(sim_lower *lw, uint32_t width)
{
    sim_kernel *k = lw->k;
    uint32_t at = k->reg_slots;
    k->reg_slots += width;
    if (width == 1) return at;
    for (uint32_t n = at; n < k->reg_slots; n += 2) {
        k->pairs = grow(lw, k->pairs, k->pair_count, &lw->pair_capacity, sizeof *k->pairs);
        k->pairs[k->pair_count++] = n;
    }
    return at;
}

uint32_t sim_new_pred(sim_lower *lw) { return lw->k->preds++; }

uint32_t sim_register_slot(sim_lower *lw, uint32_t reg)
{
    uint32_t *at = &lw->frame->slots[reg];
    sim_type t = (sim_type)lw->frame->function->register_types[reg];
    if (*at) return *at - 1;
    *at = (t == T_PRED ? sim_new_pred(lw) : sim_temporary(lw, sim_slots_of(t))) + 1;
    if (t != T_PRED && sim_types[t].bytes < 4) sim_unwritten_narrow(lw, *at - 1, sim_types[t].bytes);
    return *at - 1;
}

uint32_t sim_special_slot(sim_lower *lw, const sim_operand *o)
{
    sim_kernel *k = lw->k;
    uint32_t width = o->type == T_U64 ? 2 : 1;
    if (o->special == SR_RESERVED_OFFSET) k->uses_reserved = true;
    switch (o->special) {
    case SR_CLOCK:
    case SR_CLOCK_HI:
    case SR_CLOCK64:
    case SR_GLOBALTIMER:
    case SR_GLOBALTIMER_LO:
    case SR_GLOBALTIMER_HI: {
        uint32_t d = sim_temporary(lw, width);
        sim_ins *i = sim_emit(lw, sim_clock, F_PLAIN);
        i->d = d;
        i->op = (uint8_t)o->special;
        i->width = (uint8_t)width;
        return d;
    }
    case SR_TID_X:
    case SR_TID_Y:
    case SR_TID_Z:
    case SR_LANEID:
    case SR_WARPID:
    case SR_CTAID_X:
    case SR_CTAID_Y:
    case SR_CTAID_Z:
    case SR_SMID:
    case SR_LANEMASK_EQ:
    case SR_LANEMASK_LE:
    case SR_LANEMASK_LT:
    case SR_LANEMASK_GE:
    case SR_LANEMASK_GT: case SR_CLUSTERID_X: case SR_CLUSTERID_Y: case SR_CLUSTERID_Z:
    case SR_CLUSTER_CTAID_X: case SR_CLUSTER_CTAID_Y: case SR_CLUSTER_CTAID_Z: case SR_CLUSTER_CTARANK:
        for (uint32_t n = 0; n < k->special_count; n++)
            if (k->specials[n].special == o->special) return k->specials[n].slot;
        k->specials = grow(lw, k->specials, k->special_count, &lw->special_capacity, sizeof *k->specials);
        k->specials[k->special_count] = (sim_slot_fill){ o->special, k->special_count + 1 };
        return k->specials[k->special_count++].slot;
    default:
        for (uint32_t n = 0; n < k->launch_special_count; n++)
            if (k->launch_specials[n].special == o->special)
                return SIM_CONST_BANK | k->launch_specials[n].slot;
        k->launch_specials = grow(lw, k->launch_specials, k->launch_special_count,
                                  &lw->launch_special_capacity, sizeof *k->launch_specials);
        k->launch_specials[k->launch_special_count++] = (sim_slot_fill){ o->special, k->const_slots };
        k->const_slots += width;
        return SIM_CONST_BANK | (k->const_slots - width);
    }
}

/* --- operands --------------------------------------------------------------------------------- */

/* Whether a register of type r is allowed where the instruction says t. */
static bool compatible(sim_type r, sim_type t, int flags)
{
    const sim_type_info *a = &sim_types[r], *b = &sim_types[t];
    if (r == T_PRED || t == T_PRED) return r == t;
    if (flags & WIDER_OK ? a->bytes < b->bytes : a->bytes != b->bytes) return false;
    switch (b->kind) {
    case K_BITS:  return true;
    case K_UINT: case K_SINT: return a->kind != K_FLOAT;
    case K_FLOAT: return a->kind == K_BITS || r == t;
    case K_PACKED: return a->kind == K_BITS || r == t || (r == T_F16X2 && (t == T_U16X2 || t == T_S16X2));
    default: return false;
    }
}

static uint64_t truncate_to(uint64_t v, sim_type t)
{
    uint32_t bytes = sim_types[t].bytes;
    return bytes >= 8 ? v : v & ((UINT64_C(1) << bytes * 8) - 1);
}

static uint32_t emit_two(sim_lower *lw, int op, uint32_t a, uint32_t b, uint32_t width)
{
    uint32_t d = sim_temporary(lw, width);
    sim_ins *i = sim_emit(lw, sim_op_handler(op), F_PLAIN);
    i->a = a;
    i->b = b;
    i->d = d;
    return d;
}

static uint32_t narrow(sim_lower *lw, uint32_t slot, uint32_t bytes)
{
    return bytes < 4 ? emit_two(lw, bytes == 1 ? OP_zext_8 : OP_zext_16, slot, 0, 1) : slot;
}

/* register + constant: a sum of the register's width, then zero-extended or truncated to the expected width. */
static uint32_t add_constant(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type to)
{
    const sim_type_info *t = &sim_types[o->type], *wanted = &sim_types[to];
    bool store = lw->s->form->lower == sim_lower_st;
    if (t->kind == K_PRED || t->bytes > 8 || wanted->bytes > 8
        || (t->kind == K_FLOAT && (!store || wanted->kind == K_UINT || wanted->kind == K_SINT))
        || (t->bytes != wanted->bytes && wanted->kind != K_BITS && wanted->kind != K_UINT && wanted->kind != K_SINT)) {
        sim_mismatch(lw, index, "a constant can be added to an integer register only");
        return 0;
    }
    uint32_t slot = sim_register_slot(lw, o->reg);
    sim_note(lw, slot, false, false, o->name);
    uint32_t width = sim_slots_of((sim_type)o->type);
    slot = emit_two(lw, width == 2 ? OP_add_64 : OP_add_32, slot,
                    sim_constant(lw, width == 2 ? (uint64_t)o->value : (uint32_t)o->value, width), width);
    slot = narrow(lw, slot, t->bytes);
    if (t->bytes == wanted->bytes) return slot;
    if (wanted->bytes == 8) return emit_two(lw, OP_zext_64, slot, 0, 2);
    if (width == 2) slot = emit_two(lw, OP_low_half, slot, 0, 1);
    return narrow(lw, slot, wanted->bytes);
}

/* The bytes that `sym[register]` adds to the address of sym: a product of 32 bits, zero-extended. */
uint32_t sim_index_offset(sim_lower *lw, const sim_operand *o, uint32_t index)
{
    const sim_operand *r = o->items;
    const sim_type_info *t = &sim_types[r->type];
    if (t->kind == K_FLOAT || t->kind == K_PRED || t->kind == K_PACKED || t->bytes > 8) {
        sim_reject(lw, "Illegal to use symbol '%s' of type .%s as array index. Use integer or bit only.", r->name,
                   t->name);
        return sim_constant(lw, 0, 2);
    }
    uint32_t slot = sim_source_of(lw, r, index, (sim_type)r->type, 0);
    const sim_symbol *y = o->symbol;
    uint32_t element = sim_types[y->type].bytes * (y->vector ? y->vector : 1u);
    if (t->bytes == 8) slot = emit_two(lw, OP_low_half, slot, 0, 1);
    slot = emit_two(lw, OP_mul_lo_32, slot, sim_constant(lw, element, 1), 1);
    return emit_two(lw, OP_zext_64, slot, 0, 2);
}

uint32_t sim_add_64(sim_lower *lw, uint32_t a, uint32_t b) { return emit_two(lw, OP_add_64, a, b, 2); }

/* The value of an operand that names an address: sym, sym+3, sym[3], sym[register], or a function. */
uint32_t sim_address_value(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t)
{
    uint64_t address;
    sim_space space;
    const sim_symbol *y = o->symbol;
    while (y->alias) y = y->alias;
    if (sim_types[t].kind == K_FLOAT || sim_types[t].kind == K_PACKED || sim_types[t].bytes > 8) {
        sim_mismatch(lw, index, "an address does not fit a .%s", sim_types[t].name);
        return 0;
    }
    if (y->kind == SYM_FUNC) {
        if (o->offset) sim_reject(lw, "Cannot take address of function '%s' in arithmetic expressions", y->name);
        else if (!y->function->has_body && !lw->m->part && !lw->m->error_count)
            sim_reject(lw, "Cannot take address of function '%s', which is not defined", y->name);
        return sim_constant(lw, truncate_to(y->function->address, t), sim_slots_of(t));
    }
    if (!sim_symbol_address(lw, y, &address, &space)) {
        sim_mismatch(lw, index, "'%s' has no address", o->name);
        return 0;
    }
    if (!o->offset && y->space == SP_PARAM && !y->is_formal)
        sim_reject(lw, "Illegal to take address of parameter '%s'", y->name);
    if ((!o->offset || o->indexed) && sim_types[t].bytes == 4 && y->space == SP_GLOBAL)
        sim_reject(lw, "Program uses 32-bit address of '%s' which is conflicting with .address_size 64", y->name);
    address += (uint64_t)o->value;
    if (!o->items && !sim_on_stack(lw, y)) return sim_constant(lw, truncate_to(address, t), sim_slots_of(t));
    uint32_t slot = sim_constant(lw, address, 2);
    if (sim_on_stack(lw, y)) slot = sim_add_64(lw, slot, lw->k->frame_pointer);
    if (o->items) slot = sim_add_64(lw, slot, sim_index_offset(lw, o, index));
    if (sim_types[t].bytes == 8) return slot;
    slot = emit_two(lw, OP_low_half, slot, 0, 1);
    return narrow(lw, slot, sim_types[t].bytes);
}

uint32_t sim_source_of(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t, int flags)
{
    uint32_t width = sim_slots_of(t);
    switch (o->kind) {
    case O_REG: {
        sim_type r = (sim_type)o->type;
        if (o->offset) return add_constant(lw, o, index, t);
        if (!compatible(r, t, flags)) {
            sim_mismatch(lw, index, "expected a .%s register", sim_types[t].name);
            return 0;
        }
        uint32_t slot = sim_register_slot(lw, o->reg);
        sim_note(lw, slot, false, false, o->name);
        if (sim_slots_of(r) > 1 && width == 1 && sim_types[r].bytes == 8) {
            uint32_t d = sim_temporary(lw, 1);
            sim_ins *i = sim_emit(lw, sim_op_handler(OP_low_half), F_PLAIN);
            i->a = slot;
            i->d = d;
            return d;
        }
        return slot;
    }
    case O_INT:
        if (sim_types[t].kind == K_FLOAT || sim_types[t].kind == K_PACKED) {
            sim_mismatch(lw, index, "expected a .%s register%s", sim_types[t].name,
                         t == T_F32 || t == T_F64 ? " or floating-point constant" : "");
            return 0;
        }
        return sim_constant(lw, truncate_to((uint64_t)o->value, t), width);
    case O_FLOAT: {
        double d;
        float f;
        uint32_t b;
        memcpy(&d, &o->value, 8);
        f = (float)d;
        memcpy(&b, &f, 4);
        if (t == T_F64 || (t == T_B64 && !o->bare_float_single))
            return sim_constant(lw, (uint64_t)o->value, 2);
        if (t == T_F32 || (t == T_B32 && o->bare_float_single)) return sim_constant(lw, b, 1);
        sim_mismatch(lw, index, "expected .%s", sim_types[t].name);
        return 0;
    }
    case O_SPECIAL:
        if (!sim_special_allowed(lw->s)) {
            sim_reject(lw, "Special register argument not allowed for instruction '%s' ('%s')", lw->full,
                       o->name);
            return 0;
        }
        if (o->type == T_PRED || sim_types[t].kind == K_FLOAT || sim_types[t].kind == K_PACKED
            || (flags & WIDER_OK ? sim_types[o->type].bytes < sim_types[t].bytes
                                 : sim_types[o->type].bytes != sim_types[t].bytes)) {
            sim_mismatch(lw, index, "expected .%s", sim_types[t].name);
            return 0;
        }
        return sim_special_slot(lw, o);
    case O_SYMBOL:
        if (o->offset && !o->indexed && o->symbol->kind == SYM_VAR) return sim_address_value(lw, o, index, t);
        /* fall through */
    default:
        sim_mismatch(lw, index, "expected a .%s register or constant", sim_types[t].name);
        return 0;
    }
}

uint32_t sim_source(sim_lower *lw, uint32_t index, sim_type t, int flags)
{ return sim_source_of(lw, &lw->s->operands[index], index, t, flags); }

uint32_t sim_dest_of(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t, int flags)
{
    if (o->kind == O_SPECIAL) {
        sim_reject(lw, "Read-only special register cannot be destination argument ('%s')", o->name);
        return 0;
    }
    if (o->kind == O_SINK && !sim_sink_allowed(lw->s, index, t)) {
        sim_reject(lw, "Result discard mode is not allowed for instruction '%s'", lw->full);
        return 0;
    }
    if (o->kind == O_SINK) return t == T_PRED ? sim_new_pred(lw) : sim_temporary(lw, sim_slots_of(t));
    if (o->kind == O_INT || o->kind == O_FLOAT || (o->kind == O_REG && o->offset)) {
        sim_reject(lw, "Result register required for instruction '%s'", lw->full);
        return 0;
    }
    if (o->kind != O_REG || !compatible((sim_type)o->type, t, flags) || o->negate) {
        sim_mismatch(lw, index, "expected a .%s register", sim_types[t].name);
        return 0;
    }
    sim_note(lw, sim_register_slot(lw, o->reg), t == T_PRED, true, o->name);
    return sim_register_slot(lw, o->reg);
}

uint32_t sim_dest(sim_lower *lw, uint32_t index, sim_type t, int flags)
{ return sim_dest_of(lw, &lw->s->operands[index], index, t, flags); }

uint32_t sim_dest_pred(sim_lower *lw, const sim_operand *o, uint32_t index)
{
    return sim_dest_of(lw, o, index, T_PRED, 0);
}

uint32_t sim_source_pred(sim_lower *lw, uint32_t index)
{
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind == O_REG && o->type == T_PRED && !o->offset) {
        sim_note(lw, sim_register_slot(lw, o->reg), true, false, o->name);
        return sim_register_slot(lw, o->reg) | (o->negate ? SIM_PRED_NOT : 0);
    }
    if (o->kind == O_INT) return o->value ? 0 : SIM_PRED_NOT;           /* predicate 0 is always true */
    if (o->kind == O_SPECIAL && o->type == T_PRED) {          /* %is_explicit_cluster: a launch constant */
        uint32_t a = sim_special_slot(lw, o), p = sim_new_pred(lw);
        sim_ins *i = sim_emit(lw, sim_op_handler(OP_cmp_u32), F_PLAIN);
        i->d = p; i->a = a; i->b = SIM_CONST_BANK;            /* the constants' first slot is zero */
        i->x = CMP_NE << X_CMP_SHIFT;
        return p;
    }
    sim_mismatch(lw, index, "expected a predicate");
    return 0;
}

static int64_t immediate(sim_lower *lw, uint32_t index)
{
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind == O_INT) return o->value;
    sim_mismatch(lw, index, "expected a constant");
    return 0;
}

uint32_t sim_flags_of(const sim_statement *s)
{
    const sim_mods *m = &s->mods;
    uint32_t x = s->form->x;
    if (sim_mod(m, M_ftz)) x |= X_FTZ;
    if (sim_mod(m, M_sat)) x |= X_SAT;
    if (sim_mod(m, M_relu)) x |= X_RELU;
    if (sim_mod(m, M_NaN)) x |= X_NAN;
    if (sim_mod(m, M_satfinite)) x |= X_SATFINITE;
    if (sim_mod(m, M_rz)) x |= R_RZ << X_ROUND_SHIFT;
    if (sim_mod(m, M_rm)) x |= R_RM << X_ROUND_SHIFT;
    if (sim_mod(m, M_rp)) x |= R_RP << X_ROUND_SHIFT;
    if (sim_mod(m, M_rna)) x |= R_RNA << X_ROUND_SHIFT;
    if (sim_mod(m, M_rni)) x |= X_INTROUND;
    if (sim_mod(m, M_rzi)) x |= X_INTROUND | R_RZ << X_ROUND_SHIFT;
    if (sim_mod(m, M_rmi)) x |= X_INTROUND | R_RM << X_ROUND_SHIFT;
    if (sim_mod(m, M_rpi)) x |= X_INTROUND | R_RP << X_ROUND_SHIFT;
    return x;
}

/* --- forms whose operands the table describes ------------------------------------------------- */

static sim_type double_width(sim_type t)
{
    switch (t) {
    case T_U16: return T_U32;
    case T_S16: return T_S32;
    case T_U32: return T_U64;
    default:    return T_S64;
    }
}

void sim_lower_table(sim_lower *lw, const sim_statement *s)
{
    const sim_form *f = s->form;
    uint32_t n = 0, slots[6] = { 0 }, args = 0;
    sim_type t = s->type_count ? (sim_type)s->types[0] : T_NONE,
             t2 = s->type_count > 1 ? (sim_type)s->types[1] : t;
    for (const char *p = f->args; *p; p++) args += *p != ' ';
    if (!sim_operands_between(lw, args, args)) return;
    if (!sim_field_in_range(lw->m, s)) { lw->errors++; return; }
    for (const char *p = f->args; *p; p++) {
        switch (*p) {
        case ' ': continue;
        case 'd': slots[n] = sim_dest(lw, n, t, 0); break;
        case 'D': slots[n] = sim_dest(lw, n, double_width(t), 0); break;
        case 'W': slots[n] = sim_dest(lw, n, T_U32, 0); break;
        case 'a': slots[n] = sim_source(lw, n, t, 0); break;
        case 'A': slots[n] = sim_source(lw, n, double_width(t), 0); break;
        case 'b': slots[n] = sim_source(lw, n, t2, 0); break;
        case 'w': case 'u': slots[n] = sim_source(lw, n, T_U32, 0); break;
        case 'P': slots[n] = sim_dest_pred(lw, &s->operands[n], n); break;
        case 'p': slots[n] = sim_source_pred(lw, n); break;
        default:  (void)immediate(lw, n); break;
        }
        n++;
    }
    uint32_t x = sim_flags_of(s);
    int op = x == 0 ? f->op : x == X_FTZ ? f->op_ftz : f->op_any;
    if (op == SIM_NO_OP) op = f->op;
    sim_ins *i = sim_emit(lw, sim_op_handler(op), F_PLAIN);
    i->d = slots[0];
    i->a = slots[1];
    i->b = slots[2];
    i->c = slots[3];
    i->e = slots[4];
    i->x = x;
    i->op = f->sub;
    i->count = f->lanes;
    i->imm = f->imm;
    i->type = (uint8_t)t;
    sim_perturb(i, op, sim_mod(&s->mods, M_rn));
    if (f->cls == C_INT && (!strcmp(s->opcode, "div") || !strcmp(s->opcode, "rem"))) {
        i->fn = sim_divide;
        i->flow = F_MEMORY;                                   /* so that unwritten values are noticed: see sim_divide */
        i->imm = op;
        i->width = sim_types[t].bytes == 2 ? 0 : (uint8_t)sim_slots_of(t);
    }
}

/* --- comparisons, logic, moves ---------------------------------------------------------------- */

static uint32_t comparison(const sim_statement *s, bool is_unsigned)
{
    static const struct { uint16_t mod; uint8_t cmp;
    } table[] = { { M_eq, CMP_EQ },   { M_ne, CMP_NE },   { M_lt, CMP_LT },   { M_le, CMP_LE },
                  { M_gt, CMP_GT },   { M_ge, CMP_GE },   { M_lo, CMP_LT },   { M_ls, CMP_LE },
                  { M_hi, CMP_GT },   { M_hs, CMP_GE },   { M_equ, CMP_EQU }, { M_neu, CMP_NEU },
                  { M_ltu, CMP_LTU }, { M_leu, CMP_LEU }, { M_gtu, CMP_GTU }, { M_geu, CMP_GEU },
                  { M_num, CMP_NUM }, { M_nan, CMP_NAN } };
    (void)is_unsigned;
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (sim_mod(&s->mods, table[k].mod)) return (uint32_t)table[k].cmp << X_CMP_SHIFT;
    return 0;
}

static uint32_t boolean_flags(const sim_statement *s)
{
    return sim_mod(&s->mods, M_and)   ? BOOL_AND << X_BOOL_SHIFT
           : sim_mod(&s->mods, M_or)  ? BOOL_OR << X_BOOL_SHIFT
           : sim_mod(&s->mods, M_xor) ? BOOL_XOR << X_BOOL_SHIFT
                                      : 0;
}

static int compare_operation(sim_type t, bool ftz)
{
    switch (t) {
    case T_S16: return OP_cmp_s16;
    case T_U16: case T_B16: return OP_cmp_u16;
    case T_S32: return OP_cmp_s32;
    case T_U64: case T_B64: return OP_cmp_u64;
    case T_S64: return OP_cmp_s64;
    case T_F32: return ftz ? OP_cmp_f32_ftz : OP_cmp_f32;
    case T_F64: return OP_cmp_f64;
    case T_F16: return ftz ? OP_cmp_f16_ftz : OP_cmp_f16;
    case T_BF16: return OP_cmp_bf16;
    case T_F16X2: case T_BF16X2: return OP_cmp_half2;
    default: return OP_cmp_u32;
    }
}

static void lower_compare(sim_lower *lw, const sim_statement *s, sim_type t, sim_type result)
{
    uint32_t d, q = 0, a, b, c = 0, logic = boolean_flags(s);
    bool pair = s->operand_count && s->operands[0].kind == O_PAIR;
    if (!sim_operands_between(lw, logic ? 4 : 3, logic ? 4 : 3)) return;
    if (result == T_PRED) {
        const sim_operand *o = &s->operands[0];
        if (pair && s->form->lanes != 2 && o->items[1].kind == O_SINK && o->items[0].kind == O_SINK)
            pair = true;
        d = sim_dest_pred(lw, pair ? &o->items[0] : o, 0);
        if (pair) q = sim_dest_pred(lw, &o->items[1], 0) + 1;
        if (s->form->lanes == 2 && !pair) sim_mismatch(lw, 0, "expected two predicates, p|q");
    } else d = sim_dest(lw, 0, result, 0);
    a = sim_source(lw, 1, t, 0);
    b = sim_source(lw, 2, t, 0);
    if (logic) c = sim_source_pred(lw, 3);
    sim_ins *i = sim_emit(lw, sim_op_handler(compare_operation(t, sim_mod(&s->mods, M_ftz))), F_PLAIN);
    i->d = d; i->q = q; i->a = a; i->b = b; i->c = c;
    i->x = sim_flags_of(s) | comparison(s, false) | logic;
    i->op = result != T_PRED;
    i->type = (uint8_t)result;
}

void sim_lower_setp(sim_lower *lw, const sim_statement *s)
{
    lower_compare(lw, s, (sim_type)s->types[0], T_PRED);
}
void sim_lower_set(sim_lower *lw, const sim_statement *s)
{
    lower_compare(lw, s, (sim_type)s->types[1], (sim_type)s->types[0]);
}

void sim_lower_pred(sim_lower *lw, const sim_statement *s)
{
    uint32_t n = s->form->sub == 3 ? 2 : 3;
    if (!sim_operands_between(lw, n, n)) return;
    uint32_t d = sim_dest_pred(lw, &s->operands[0], 0), a = sim_source_pred(lw, 1),
             b = n == 3 ? sim_source_pred(lw, 2) : 0;
    sim_ins *i = sim_emit(lw, sim_pred_logic, F_PLAIN);
    i->d = d; i->a = a; i->b = b; i->op = s->form->sub;
}

void sim_lower_lop3(sim_lower *lw, const sim_statement *s)
{
    bool with_pred = s->form->sub;
    uint32_t q = 0, d;
    if (!sim_operands_between(lw, with_pred ? 6 : 5, with_pred ? 6 : 5)) return;
    const sim_operand *o = &s->operands[0];
    if (with_pred) {
        if (o->kind != O_PAIR) { sim_mismatch(lw, 0, "expected d|p"); return; }
        d = sim_dest_of(lw, &o->items[0], 0, T_B32, 0);
        q = sim_dest_pred(lw, &o->items[1], 0) + 1;
    } else d = sim_dest(lw, 0, T_B32, 0);
    uint32_t a = sim_source(lw, 1, T_B32, 0), b = sim_source(lw, 2, T_B32, 0),
             c = sim_source(lw, 3, T_B32, 0);
    int64_t table = immediate(lw, 4);
    uint32_t p = with_pred ? sim_source_pred(lw, 5) : 0;
    sim_ins *i = sim_emit(lw, sim_op_handler(OP_lop3), F_PLAIN);
    i->d = d; i->a = a; i->b = b; i->c = c; i->imm = table & 255;
    if (!with_pred) return;
    i = sim_emit(lw, sim_op_handler(OP_cmp_u32), F_PLAIN);    /* p = (d != 0) or/and q */
    i->d = q - 1; i->a = d; i->b = sim_constant(lw, 0, 1); i->c = p;
    i->x = CMP_NE << X_CMP_SHIFT | (s->form->sub == 1 ? BOOL_OR : BOOL_AND) << X_BOOL_SHIFT;
}

void sim_lower_carry(sim_lower *lw, const sim_statement *s)
{
    uint32_t n = s->form->sub >= 2 ? 4 : 3;
    sim_type t = (sim_type)s->types[0];
    if (!sim_operands_between(lw, n, n)) return;
    uint32_t d = sim_dest(lw, 0, t, 0), a = sim_source(lw, 1, t, 0), b = sim_source(lw, 2, t, 0),
             c = n == 4 ? sim_source(lw, 3, t, 0) : 0;
    sim_ins *i = sim_emit(lw, sim_op_handler(OP_carry), F_PLAIN);
    i->d = d; i->a = a; i->b = b; i->c = c;
    i->op = s->form->sub;
    i->width = (uint8_t)sim_slots_of(t);
    i->x = s->form->x | (sim_types[t].kind == K_SINT ? X_SIGNED : 0);
}

/* The address of a variable. Shared, local and parameter addresses are offsets in their space. */
bool sim_symbol_address(sim_lower *lw, const sim_symbol *y, uint64_t *address, sim_space *space)
{
    while (y->alias) y = y->alias;
    if (y->kind != SYM_VAR) return false;
    *space = (sim_space)y->space;
    sim_placed *list = y->space == SP_SHARED ? lw->shared : NULL;
    switch (y->space) {
    case SP_GLOBAL: case SP_CONST: *address = y->address; return true;
    case SP_PARAM:
        if (y->is_formal && y->function && y->function->is_entry) { *address = y->address; return true; }
        break;
    default: break;
    }
    if (!list) list = lw->frame->placed;
    if (y->space == SP_PARAM) *space = SP_LOCAL; /* parameters of calls are in local memory */
    for (sim_placed *p = list; p; p = p->next) if (p->symbol == y) { *address = p->offset; return true; }
    if (y->space == SP_LOCAL || y->space == SP_PARAM) {
        sim_placed *p = sim_alloc(lw->m, sizeof *p);
        uint32_t *used = lw->frame->r.on_stack ? &lw->frame->stack_used : &lw->local_used;
        uint64_t at = ((uint64_t)*used + y->align - 1) / y->align * y->align;
        if (at + y->size > 512 * 1024)
            sim_fatal(lw->m, lw->s->line, "Local memory of '%s' exceeds 512 KiB", lw->k->function->name);
        p->symbol = y;
        p->offset = (uint32_t)at;
        p->next = lw->frame->placed;
        lw->frame->placed = p;
        *used = (uint32_t)(at + y->size);
        *address = p->offset;
        return true;
    }
    return false;
}

/* Whether the variable's address is relative to the frame pointer. */
bool sim_on_stack(const sim_lower *lw, const sim_symbol *y)
{
    while (y->alias) y = y->alias;
    return lw->frame->r.on_stack && (y->space == SP_LOCAL || y->space == SP_PARAM);
}

void sim_vector_mov(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    const uint32_t *list = w->kernel->lists
                           + i->list; /* count destinations, then op sources; bytes of each: b, c */
    SIM_EACH_LANE(l, mask) {
        uint8_t bytes[16] = { 0 };
        for (uint32_t k = 0; k < i->op; k++) {
            uint64_t v = i->c >= 8 ? sim_slot64(w, list[i->count + k])[l]
                                   : sim_slot(w, list[i->count + k])[l];
            memcpy(bytes + k * i->c, &v, i->c > 8 ? 8u : i->c);
            if (i->c == 16) memcpy(bytes + 8, &sim_slot64(w, list[i->count + k] + 2)[l], 8);
        }
        for (uint32_t k = 0; k < i->count; k++) {
            uint64_t v = 0;
            if (list[k] == UINT32_MAX) continue;
            memcpy(&v, bytes + k * i->b, i->b > 8 ? 8u : i->b);
            if (i->b >= 8) sim_slot64(w, list[k])[l] = v; else sim_slot(w, list[k])[l] = (uint32_t)v;
            if (i->b == 16) memcpy(&sim_slot64(w, list[k] + 2)[l], bytes + 8, 8);
        }
    }
}

static uint32_t move_source(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t)
{
    const sim_symbol *y = o->kind == O_SYMBOL ? o->symbol : NULL;
    bool address = y && (y->kind == SYM_VAR || y->kind == SYM_FUNC || y->alias);
    return address ? sim_address_value(lw, o, index, t) : sim_source_of(lw, o, index, t, 0);
}

/* The kind of a vector's registers: K_BITS if one of them is, K_NONE if there is none, -1 if they differ. */
static int vector_kind(const sim_operand *v)
{
    int kind = K_NONE;
    for (uint32_t k = 0; k < v->count; k++) {
        if (v->items[k].kind != O_REG) continue;
        int of = sim_types[v->items[k].type].kind;
        if (of == K_SINT) of = K_UINT;
        if (kind == K_NONE || of == K_BITS) kind = of;
        else if (kind != K_BITS && kind != of) return -1;
    }
    return kind;
}

/* mov.v2, mov.v4: all elements are read before one is written; a scalar source becomes element 0, the others are 0. */
static void lower_wide_mov(sim_lower *lw, const sim_statement *s, sim_type t)
{
    static const sim_operand zero = { .kind = O_INT };
    const sim_operand *v[2] = { &s->operands[0], &s->operands[1] };
    uint32_t n = sim_mod(&s->mods, M_v4) ? 4 : 2, bytes = sim_types[t].bytes, list = sim_list_begin(lw, 2 * n);
    if (v[0]->kind != O_VECTOR) { sim_reject(lw, "Result vector expected"); return; }
    if (n * bytes > 16) { sim_mismatch(lw, 0, "a vector has 128 bits or fewer"); return; }
    for (uint32_t side = 2; side--;) {                        /* the sources first */
        if (v[side]->kind == O_VECTOR && v[side]->count != n) {
            sim_reject(lw, "Argument vector size mismatch for instruction '%s'", lw->full);
            return;
        }
        int kind = v[side]->kind == O_VECTOR ? vector_kind(v[side]) : K_BITS;
        if (!side && kind == K_NONE) { sim_reject(lw, "Unable to infer type of vector elements"); return; }
        if (kind < 0) { sim_reject(lw, "Incompatible elements of vector expression"); return; }
        sim_type e = kind != K_BITS || v[side]->kind != O_VECTOR ? t : bytes == 2 ? T_B16 : bytes == 4 ? T_B32 : T_B64;
        for (uint32_t k = 0; k < n; k++) {
            const sim_operand *o = v[side]->kind == O_VECTOR ? &v[side]->items[k] : k ? &zero : v[side];
            sim_type each = o == &zero || o->kind == O_SPECIAL ? (bytes == 2 ? T_B16 : bytes == 4 ? T_B32 : T_B64)
                            : o->kind == O_REG                 ? e
                                                               : t;
            uint32_t slot = UINT32_MAX;
            if (o->kind == O_SPECIAL && bytes < 4) slot = sim_special_slot(lw, o);
            else if (side) slot = sim_source_of(lw, o, 1, each, 0);
            else if (o->kind != O_SINK) slot = sim_dest_of(lw, o, 0, each, 0);
            lw->k->lists[list + (side ? n : 0) + k] = slot;
        }
    }
    sim_ins *i = sim_emit(lw, sim_vector_mov, F_PLAIN);
    i->list = list;
    i->count = i->op = (uint8_t)n;
    i->b = i->c = bytes;
}

static void lower_vector_mov(sim_lower *lw, const sim_statement *s, sim_type t)
{
    const sim_operand *d = &s->operands[0], *a = &s->operands[1];
    bool pack = a->kind == O_VECTOR;
    const sim_operand *v = pack ? a : d;
    uint32_t total = sim_types[t].bytes, n = v->count, each = n ? total / n : 0;
    if ((d->kind == O_VECTOR) == pack) {
        sim_mismatch(lw, 0, "one side is a vector, the other a .%s register", sim_types[t].name);
        return;
    }
    if ((n != 2 && n != 4) || each * n != total || each == 0) {
        sim_mismatch(lw, pack, "a .%s cannot be made of %u elements", sim_types[t].name, n);
        return;
    }
    sim_type e = each == 1 ? T_B8 : each == 2 ? T_B16 : each == 4 ? T_B32 : T_B64;
    uint32_t list = sim_list_begin(lw, n + 1), at[4];
    int kind = vector_kind(v);
    if (kind < 0) {
        sim_reject(lw, "Vector with elements of different types are not allowed in mov instruction");
        return;
    }
    if (!pack && kind == K_NONE) {
        sim_reject(lw, "Unable to infer type of vector elements");
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        const sim_operand *o = &v->items[k];
        if (!pack && o->kind == O_SINK) at[k] = UINT32_MAX;
        else at[k] = pack ? sim_source_of(lw, o, 1, e, 0) : sim_dest_of(lw, o, 0, e, 0);
    }
    if (pack) {
        uint32_t dest = sim_dest(lw, 0, t, 0);
        if (n == 2 && each == 4) {
            sim_ins *i = sim_emit(lw, sim_op_handler(OP_pack_64), F_PLAIN);
            i->d = dest; i->a = at[0]; i->b = at[1];
            return;
        }
        if (n == 2 && each == 2) {
            sim_ins *i = sim_emit(lw, sim_op_handler(OP_pack_32), F_PLAIN);
            i->d = dest; i->a = at[0]; i->b = at[1];
            return;
        }
        lw->k->lists[list] = dest;
        for (uint32_t k = 0; k < n; k++) lw->k->lists[list + 1 + k] = at[k];
    } else {
        uint32_t source = move_source(lw, a, 1, t);
        if (n == 2 && each <= 4 && each >= 2) {
            for (uint32_t k = 0; k < 2; k++) {
                if (at[k] == UINT32_MAX) continue;
                int op = each == 4 ? (k ? OP_unpack_hi : OP_low_half) : k ? OP_unpack_16 : OP_zext_16;
                sim_ins *i = sim_emit(lw, sim_op_handler(op), F_PLAIN);
                i->d = at[k]; i->a = source;
            }
            if (at[0] == UINT32_MAX && at[1] == UINT32_MAX) sim_emit(lw, sim_nop, F_PLAIN);
            return;
        }
        for (uint32_t k = 0; k < n; k++) lw->k->lists[list + k] = at[k];
        lw->k->lists[list + n] = source;
    }
    sim_ins *i = sim_emit(lw, sim_vector_mov, F_PLAIN);
    i->list = list;
    i->count = (uint8_t)(pack ? 1 : n);
    i->op = (uint8_t)(pack ? n : 1);
    i->b = pack ? total : each;
    i->c = pack ? each : total;
}

void sim_lower_mov(sim_lower *lw, const sim_statement *s)
{
    sim_type t = (sim_type)s->types[0];
    if (!sim_operands_between(lw, 2, 2)) return;
    const sim_operand *d = &s->operands[0], *a = &s->operands[1];
    if (t == T_PRED) {
        uint32_t p = sim_dest_pred(lw, d, 0), q = sim_source_pred(lw, 1);
        sim_ins *i = sim_emit(lw, sim_pred_logic, F_PLAIN);
        i->d = p; i->a = q; i->op = 4;
        return;
    }
    if (sim_mod(&s->mods, M_v2) || sim_mod(&s->mods, M_v4)) { lower_wide_mov(lw, s, t); return; }
    if (d->kind == O_VECTOR || a->kind == O_VECTOR) {
        if (sim_types[t].kind == K_BITS) lower_vector_mov(lw, s, t);
        else
            sim_mismatch(lw, a->kind == O_VECTOR, "packing and unpacking want a .b type, not .%s",
                         sim_types[t].name);
        return;
    }
    uint32_t slot = move_source(lw, a, 1, t);
    uint32_t dest = sim_dest(lw, 0, t, 0);
    if (t == T_B128) {
        uint32_t list = sim_list_begin(lw, 2);
        lw->k->lists[list] = dest;
        lw->k->lists[list + 1] = slot;
        sim_ins *i = sim_emit(lw, sim_vector_mov, F_PLAIN);
        i->list = list; i->count = i->op = 1; i->b = i->c = 16;
        return;
    }
    sim_ins *i = sim_emit(lw, sim_op_handler(sim_slots_of(t) == 2 ? OP_mov_64 : OP_mov_32), F_PLAIN);
    i->d = dest;
    i->a = slot;
}

/* --- control flow ----------------------------------------------------------------------------- */

static void add_fixup(sim_lower *lw, uint32_t ins, uint32_t statement)
{
    lw->fixups = grow(lw, lw->fixups, lw->fixup_count, &lw->fixup_capacity, sizeof *lw->fixups);
    lw->fixups[lw->fixup_count].ins = ins;
    lw->fixups[lw->fixup_count].statement = statement;
    lw->fixups[lw->fixup_count++].frame = lw->frame;
}

static const sim_symbol *label_of(sim_lower *lw, const sim_operand *o, uint32_t index)
{
    const sim_symbol *y = o->kind == O_SYMBOL ? o->symbol : NULL;
    while (y && y->alias) y = y->alias;
    if (y && !o->offset && y->kind == SYM_LABEL && y->function == lw->frame->function) return y;
    sim_mismatch(lw, index, "expected a label");
    return NULL;
}

void sim_lower_bra(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 1, 1)) return;
    const sim_symbol *y = label_of(lw, &s->operands[0], 0);
    if (!y) return;
    sim_emit(lw, sim_nop, F_BRANCH);
    if (y->index != UINT32_MAX) add_fixup(lw, lw->k->code_count - 1, y->index);
}

void sim_lower_brx(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 2, 2)) return;
    uint32_t a = sim_source(lw, 0, T_U32, 0);
    const sim_operand *o = &s->operands[1];
    if (o->kind != O_SYMBOL || o->symbol->kind != SYM_TARGETS) {
        sim_mismatch(lw, 1, "expected a .branchtargets list");
        return;
    }
    /* one F_INDEXED branch for each target: lanes whose index matches take it */
    const sim_symbol *list = o->symbol;
    for (uint32_t k = 0; k < list->target_count; k++) {
        const sim_symbol *y = label_of(lw, &list->targets[k], 1);
        if (!y || y->index == UINT32_MAX) return;
        sim_ins *i = sim_emit(lw, sim_nop, F_INDEXED);
        i->a = a;
        i->c = k;
        i->op = k + 1 == list->target_count;
        add_fixup(lw, lw->k->code_count - 1, y->index);
    }
}

void sim_lower_ret(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (!sim_operands_between(lw, 0, 0)) return;
    if (lw->frame->function->is_entry) sim_emit(lw, sim_nop, F_EXIT);
    else sim_routine_end(lw, lw->frame);
}

void sim_lower_exit(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (sim_operands_between(lw, 0, 0)) sim_emit(lw, sim_nop, F_EXIT);
}

void sim_lower_trap(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (sim_operands_between(lw, 0, 0)) sim_emit(lw, sim_nop, F_TRAP);
}

void sim_lower_nanosleep(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (!sim_operands_between(lw, 1, 1)) return;
    (void)sim_source(lw, 0, T_U32, 0);
    sim_emit(lw, sim_nop, F_YIELD);
}

void sim_lower_nop(sim_lower *lw, const sim_statement *s)
{
    uint32_t n = *s->form->args == 'i';
    if (!sim_operands_between(lw, n, n)) return;
    if (n) (void)immediate(lw, 0);
    sim_emit(lw, sim_nop, F_PLAIN);
}

void sim_lower_bar(sim_lower *lw, const sim_statement *s)
{
    uint32_t sub = s->form->sub, n = s->operand_count, at = 0, d = 0;
    bool popc = sub == 2 && s->types[0] == T_U32;
    if (!sim_operands_between(lw, sub == 2 ? 3 : sub == 1 ? 2 : 1, sub == 2 ? 4 : 2)) return;
    if (sub == 2) d = popc ? sim_dest(lw, at, T_U32, 0) : sim_dest_pred(lw, &s->operands[at], at);
    at = sub == 2;
    const sim_operand *id = &s->operands[at];
    if (id->kind == O_INT && (id->value < 0 || id->value > 15))
        sim_reject(lw, "Barrier number '%lld' out of range, expected to be in range [0..15]",
                   (long long)id->value);
    uint32_t a = sim_source(lw, at, T_U32, 0), b = 0;
    bool counted = sub == 2 ? n == 4 : n == 2;
    at++;
    if (counted) {
        const sim_operand *o = &s->operands[at];
        if (o->kind == O_INT && o->value % 32)
            sim_reject(lw, "Number of threads participating in barrier must be in multiple of warp size");
        b = sim_source(lw, at++, T_U32, 0);
    }
    uint32_t c = sub == 2 ? sim_source_pred(lw, at) : 0;
    sim_ins *i = sim_emit(lw, sim_nop, sub == 1 ? F_ARRIVE : F_BARRIER);
    i->d = d; i->a = a; i->b = b; i->c = c;
    i->count = counted;
    i->op = sub == 2 ? (popc ? 1 : sim_mod(&s->mods, M_and) ? 2 : 3) : 0;
    i->x = s->form->x | (sim_mod(&s->mods, M_aligned) ? X_ALIGNED : 0);
}

/* --- functions -------------------------------------------------------------------------------- */

sim_frame *sim_new_frame(sim_lower *lw, sim_function *f)
{
    sim_frame *frame = sim_alloc(lw->m, sizeof *frame);
    frame->function = f;
    frame->r.function = f;
    frame->lw = lw;
    f->frame = frame;
    frame->slots = sim_alloc(lw->m, (f->register_count + 1) * sizeof *frame->slots);
    frame->labels = sim_alloc(lw->m, (f->statement_count + 1) * sizeof *frame->labels);
    return frame;
}

static void lower_statement(sim_lower *lw, const sim_statement *s)
{
    uint32_t before = lw->k->code_count, first_note = lw->note_count;
    lw->s = s;
    snprintf(lw->full, sizeof lw->full, "%s", s->form->name);
    sim_find_suspects(lw, s);
    if (s->form->lower) s->form->lower(lw, s);
    else if (sim_contract(lw, s)) {}
    else sim_lower_table(lw, s);
    if (s->guard >= 0) {
        uint32_t p = sim_register_slot(lw, (uint32_t)s->guard);
        sim_note(lw, p, true, false, s->guard_name);
        lw->notes[lw->note_count - 1].code = before;
        lw->notes[lw->note_count - 1].guard = true;
        if (p > 65535) sim_fatal(lw->m, s->line, "Too many predicates");
        for (uint32_t k = before; k < lw->k->code_count; k++) {
            lw->k->code[k].guard = (uint16_t)p;
            lw->k->code[k].guard_negate = s->guard_negate;
        }
    }
    if (lw->k->code_count > before && s->form->lower != sim_lower_call)
        lw->k->code[lw->k->code_count - 1].last = 1;
    sim_note_end(lw, first_note);
    sim_unwritten_statement(lw, first_note, before);
}

static void lower_body(sim_lower *lw, sim_frame *frame)
{
    sim_function *f = frame->function;
    lw->frame = frame;
    lw->s = NULL;
    sim_routine_begin(lw, frame);
    for (uint32_t k = 0; k < f->statement_count; k++) {
        frame->labels[k] = lw->k->code_count;
        lower_statement(lw, &f->body[k]);
    }
    frame->labels[f->statement_count] = lw->k->code_count;
    lw->s = NULL;
    if (f->is_entry) sim_emit(lw, sim_nop, F_EXIT)->last = 1; /* falling off the end */
    else sim_routine_end(lw, frame);
    frame->r.slot_hi = lw->k->reg_slots;
    frame->r.pair_hi = lw->k->pair_count;
    frame->r.pred_hi = lw->k->preds;
    frame->r.local_hi = lw->local_used;
}

/* Whether an operand names this symbol, directly or in its parts. */
bool sim_uses_symbol(const sim_operand *o, const sim_symbol *y)
{
    const sim_symbol *z = o->symbol;
    if (o->kind == O_SYMBOL) { while (z && z->alias) z = z->alias; if (z == y) return true; }
    if (o->items)
        for (uint32_t k = 0; k < (o->kind == O_ADDRESS ? 1u : o->count); k++)
            if (sim_uses_symbol(&o->items[k], y)) return true;
    return false;
}

static bool is_symbol_used(const sim_lower *lw, const sim_symbol *y)
{
    for (const sim_frame *frame = lw->frames; frame; frame = frame->next)
        for (uint32_t k = 0; k < frame->function->statement_count; k++) {
            const sim_statement *s = &frame->function->body[k];
            for (uint32_t n = 0; n < s->operand_count; n++)
                if (sim_uses_symbol(&s->operands[n], y)) return true;
        }
    return false;
}

static void place_shared_symbol(sim_lower *lw, sim_symbol *y, uint64_t *at, uint32_t *dynamic_align,
                                bool dynamic)
{
    sim_kernel *k = lw->k;
    if (y->space != SP_SHARED || (y->size == 0) != dynamic) return;
    if (!is_symbol_used(lw, y)) return;
    if (dynamic) {
        if (y->align > *dynamic_align) *dynamic_align = y->align;
        lw->has_dynamic = true;
    } else *at = (*at + y->align - 1) / y->align * y->align;
    sim_placed *p = sim_alloc(lw->m, sizeof *p);
    p->symbol = y;
    p->offset = (uint32_t)*at;
    p->next = lw->shared;
    lw->shared = p;
    sim_shared_symbol *grown = realloc(k->shared_symbols, (k->shared_symbol_count + 1) * sizeof *grown);
    if (!grown) { lw->m->out_of_memory = true; longjmp(*lw->m->bail, 1); }
    k->shared_symbols = grown;
    grown[k->shared_symbol_count++] = (sim_shared_symbol){ y->name, (uint32_t)*at, (uint32_t)y->size };
    if (!dynamic) *at += y->size;
}

static int compare_order(const void *a, const void *b)
{
    const sim_function *f = *(sim_function *const *)a, *g = *(sim_function *const *)b;
    return f->order < g->order ? -1 : f->order > g->order;
}

/* Before code is emitted, assigns offsets to the shared variables: static ones as declared, then dynamic ones. */
static void place_shared(sim_lower *lw)
{
    sim_kernel *k = lw->k;
    uint64_t at = lw->m->shared_base;
    uint32_t align = 1, count = 0;
    sim_function **with_shared;
    for (sim_frame *x = lw->frames; x; x = x->next) count += x->function->has_shared;
    with_shared = sim_alloc(lw->m, (count + 1) * sizeof *with_shared);
    count = 0;
    for (sim_frame *x = lw->frames; x; x = x->next)
        if (x->function->has_shared) with_shared[count++] = x->function;
    qsort(with_shared, count, sizeof *with_shared, compare_order);
    k->shared_base = lw->m->shared_base;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        if (dynamic) {
            for (sim_symbol *y = lw->m->variables; y; y = y->list_next)
                if (y->space == SP_SHARED && !y->size && y->align > align) align = y->align;
            k->static_shared = (uint32_t)(at - k->shared_base);
            if (at - k->shared_base > 49152)
                sim_error(lw->m, k->function->end_line,
                          "Entry function '%s' uses too much shared data (0x%llx bytes, 0xc000 max)",
                          k->function->name, (unsigned long long)(at - k->shared_base));
            at = (at + align - 1) / align * align;
        }
        for (sim_symbol *y = lw->m->variables; y; y = y->list_next)
            place_shared_symbol(lw, y, &at, &align, dynamic);
        for (uint32_t n = 0; n < count; n++)
            for (sim_symbol *y = with_shared[n]->variables; y; y = y->list_next)
                place_shared_symbol(lw, y, &at, &align, dynamic);
    }
    if (lw->has_dynamic) k->static_shared = (uint32_t)(at - k->shared_base);
    k->dynamic_align = align;
}

void sim_kernel_free(sim_kernel *k)
{
    if (!k) return;
    free(k->code); free(k->lists); free(k->const_bank); free(k->specials); free(k->launch_specials);
    free(k->params); free(k->consts); free(k->shared_symbols); free(k->watches); free(k->routines);
    free(k->barrier_sites); free(k->past_barrier);
    free(k->pairs);
    sim_unwritten_kernel_free(k);
    k->magic = 0;
    free(k);
}

void sim_lower_abandon(sim_module *m)
{
    if (!m->lowering) return;
    free(m->lowering->fixups);
    free(m->lowering->notes);
    free(m->lowering);
    m->lowering = NULL;
}

/* Shrinks a complete array to its size. */
static void *shrink_array(void *array, uint32_t *capacity, uint32_t count, size_t item)
{
    void *p = count && count < *capacity ? realloc(array, count * item) : NULL;
    if (p) *capacity = count;
    return p ? p : array;
}

static void lower_function(sim_module *m, sim_function *f)
{
    sim_lower *lw = calloc(1, sizeof *lw);
    if (!lw) { m->out_of_memory = true; longjmp(*m->bail, 1); }
    m->lowering = lw;
    sim_kernel *k = calloc(1, sizeof *k);
    if (!k) { m->out_of_memory = true; longjmp(*m->bail, 1); }
    k->function = f;
    k->module = m;
    f->kernel = k; /* freed with the module, also after a fatal error */
    lw->m = m;
    lw->k = k;
    k->reg_slots = SPECIAL_SLOTS;
    k->special_slots = SPECIAL_SLOTS;
    k->preds = 1;
    k->const_slots = 1;
    sim_collect_frames(lw, f);
    place_shared(lw);
    sim_place_calls(lw);
    for (sim_frame *frame = lw->frames; frame; frame = frame->next) {
        frame->function->checked = true;
        lower_body(lw, frame);
    }
    sim_settle_calls(lw);
    for (uint32_t n = 0; n < lw->fixup_count; n++)
        k->code[lw->fixups[n].ins].imm = lw->fixups[n].frame->labels[lw->fixups[n].statement];
    free(lw->fixups);
    lw->fixups = NULL;
    if (k->preds > 65535) sim_fatal(m, f->line, "Too many predicates");
    k->const_bank = malloc((size_t)k->const_slots * SIM_LANES * 4);
    if (!k->const_bank) { m->out_of_memory = true; longjmp(*m->bail, 1); }
    memset(k->const_bank, 0, (size_t)k->const_slots * SIM_LANES * 4);
    for (uint32_t n = 0; n < k->const_fill_count; n++) {
        uint32_t *at = k->const_bank + (size_t)k->consts[n].slot * SIM_LANES;
        for (uint32_t l = 0; l < SIM_LANES; l++)
            if (k->consts[n].width == 1) at[l] = (uint32_t)k->consts[n].value;
            else ((uint64_t *)(void *)at)[l] = k->consts[n].value;
    }
    sim_find_unwritten(lw);
    sim_race_prepare(lw->k);
    sim_barriers_prepare(lw->k);
    for (sim_frame *frame = lw->frames; frame; frame = frame->next) frame->function->frame = NULL;
    sim_lower_abandon(m);
    k->code = shrink_array(k->code, &k->code_capacity, k->code_count, sizeof *k->code);
    k->statements = shrink_array(k->statements, &k->statement_capacity, k->code_count, sizeof *k->statements);
    k->uses = shrink_array(k->uses, &k->use_capacity, k->use_count, sizeof *k->uses);
    k->magic = 0x4b524e4c;
}

/* Marks functions with shared variables, and numbers the functions in the order of the text. */
static void find_shared(sim_module *m)
{
    uint32_t order = 0;
    for (sim_function *f = m->functions; f; f = f->next) {
        f->order = order++;
        for (const sim_symbol *y = f->variables; y; y = y->list_next) f->has_shared |= y->space == SP_SHARED;
    }
}

static bool defined_elsewhere(const sim_module *m, const sim_symbol *y)
{
    for (const sim_symbol *z = m->variables; z; z = z->list_next)
        if (z != y && !z->is_extern && !strcmp(z->name, y->name)) return true;
    return false;
}

int sim_variable_kind(const sim_symbol *y)
{ return y->managed ? MEM_HOST : y->space == SP_CONST ? MEM_CONST : MEM_MODULE; }

/* Allocates module variables in device memory, managed ones in host memory: one allocation each, for exact bounds. */
static void place_variables(sim_module *m)
{
    uint64_t constants = 0;
    find_shared(m);
    for (int pass = 0; pass < 2; pass++) {
        sim_symbol *y = m->variables;
        sim_function *f = NULL;
        for (;;) {
            if (!y) {                                         /* then variables declared inside functions */
                f = f ? f->next : m->functions;
                if (!f) break;
                y = f->variables;
                continue;
            }
            if (y->space == SP_GLOBAL || y->space == SP_CONST) {
                if (!pass) {
                    if (y->is_extern && !m->part && !defined_elsewhere(m, y))
                        sim_error(m, y->line, "Unresolved extern variable '%s'", y->name);
                    sim_allocation *a;
                    uint64_t room = UINT64_MAX - constants;
                    if (y->space == SP_CONST) constants += y->size < room ? y->size : room;
                    uint64_t size = y->size ? y->size : 1;
                    int error = sim_memory_alloc(m->context, size, sim_variable_kind(y), y->name, &a);
                    if (error) { m->out_of_memory = true; longjmp(*m->bail, 1); }
                    y->address = a->base;
                    a->managed = y->managed;
                    if (a->shadow) sim_shadow_set(a->shadow, 0, size);       /* without an initialiser they are zero */
                    if (y->init) memcpy(a->host, y->init, (size_t)y->size);
                } else for (sim_reloc *r = y->relocs; r; r = r->next) {
                    sim_symbol *target = NULL;
                    for (sim_symbol *z = m->variables; z; z = z->list_next)
                        if (!strcmp(z->name, r->name)) target = z;
                    uint64_t function = 0;
                    for (sim_function *g = m->functions; g; g = g->next)
                        if (!strcmp(g->name, r->name)) function = g->address;
                    if (!target && !function) {
                        sim_error(m, r->line, "Unknown symbol '%s'", r->name);
                        continue;
                    }
                    uint64_t value = (target ? target->address : function) + (uint64_t)r->addend;
                    if (r->mask) value = (value & r->mask) >> (r->shift & 63);
                    sim_allocation *a = sim_memory_find(y->address);
                    if (a) memcpy(a->host + r->offset, &value, r->bytes);
                }
            }
            y = y->list_next;
        }
    }
    if (constants > 65536)
        sim_error(m, m->line_count, "File uses too much global constant data (0x%llx bytes, 0x10000 max)",
                  (unsigned long long)constants);
}

void sim_lower_module(sim_module *m)
{
    sim_read_environment();
    m->shared_base = sim_the_device()->sm >= 90 ? 0x400 : 0;
    sim_prepare_functions(m);
    place_variables(m);
    for (sim_function *f = m->functions; f; f = f->next)
        if (f->has_body && (f->is_entry || !f->checked)) lower_function(m, f);
}
