/* calls.c - functions: which ones a kernel's code contains, where their variables are, call and return.
 *
 * Every function that an entry can reach is in the entry's code once, with registers of its own. If a
 * thread cannot have two calls of a function open, its variables have fixed places in the thread's local memory,
 * and a call only records the return address. Functions that are recursive, are called through a
 * pointer, or use alloca, have frames on a stack behind the fixed part; a function that may be re-entered
 * during a call saves its registers across it. All this is per lane: lanes of different depth share a path.
 *
 * The bytes of a call are the .param parameters, then the .param results, each aligned, at the
 * start of the callee's frame or fixed place. .reg parameters and results use registers of their own.
 * The functions of CUDA's library (vprintf, malloc, ...) are in library.c. */
#include "sim.h"
#include "lower.h"
#include "unwritten.h"
#include <stdarg.h>

enum { NO_ROUTINE = UINT16_MAX, MAX_REGISTERS_PASSED = 64, MAX_CHARGE = 256 };
enum { SAVED = 1u << 31 }; /* in the record of a call: saved registers of the caller lie below */

static const sim_symbol *resolve(const sim_symbol *y)
{
    while (y && y->alias) y = y->alias;
    return y;
}

/* --- the functions of a module ---------------------------------------------------------------- */

/* Assigns offsets to the .param parameters and results. */
static void place_formals(sim_function *f)
{
    uint64_t at = 0;
    for (int results = 0; results < 2; results++) {
        if (results) f->return_at = (uint32_t)at;
        for (sim_symbol *y = results ? f->returns : f->params; y; y = y->list_next) {
            if (y->kind == SYM_REG) continue;
            at = (at + y->align - 1) / y->align * y->align;
            y->address = at;
            at += y->size;
            if (at > 1u << 20) sim_fatal(f->module, f->line, "Too many bytes of parameters of '%s'", f->name);
        }
    }
    f->param_bytes = (uint32_t)at;
}

static void take_address(const sim_operand *o)
{
    const sim_symbol *y = o->kind == O_SYMBOL ? resolve(o->symbol) : NULL;
    if (y && y->kind == SYM_FUNC) y->function->address_taken = true;
    if (y && y->kind == SYM_TARGETS)
        for (uint32_t k = 0; k < y->target_count; k++) take_address(&y->targets[k]);
    if (!o->items) return;
    for (uint32_t k = 0; k < (o->kind == O_ADDRESS ? 1u : o->count); k++) take_address(&o->items[k]);
}

static const sim_operand *call_target(const sim_statement *s)
{
    uint32_t k = s->operand_count && s->operands[0].kind == O_LIST;
    return k < s->operand_count ? &s->operands[k] : NULL;
}

static void take_addresses_in(sim_module *m, sim_symbol *variables)
{
    for (sim_symbol *y = variables; y; y = y->list_next)
        for (sim_reloc *r = y->relocs; r; r = r->next)
            for (sim_function *f = m->functions; f; f = f->next)
                if (!strcmp(f->name, r->name)) f->address_taken = true;
}

void sim_prepare_functions(sim_module *m)
{
    static uint64_t serial; /* under the driver's lock */
    for (sim_function *f = m->functions; f; f = f->next) {
        f->address = SIM_CODE_BASE + ++serial * 64;
        if (!f->is_entry) place_formals(f);
        for (uint32_t k = 0; k < f->statement_count; k++) {
            const sim_statement *s = &f->body[k];
            const sim_operand *target = s->form->lower == sim_lower_call ? call_target(s) : NULL;
            for (uint32_t n = 0; n < s->operand_count; n++)
                if (&s->operands[n] != target) take_address(&s->operands[n]);
        }
        take_addresses_in(m, f->variables);
    }
    take_addresses_in(m, m->variables);
}

/* --- the functions of a kernel ---------------------------------------------------------------- */

static sim_frame *frame_of(const sim_lower *lw, const sim_function *f)
{
    return f->frame && f->frame->lw == lw ? f->frame : NULL;
}

static sim_function *direct_callee(const sim_statement *s)
{
    if (s->form->lower != sim_lower_call) return NULL;
    const sim_operand *o = call_target(s);
    const sim_symbol *y = o && o->kind == O_SYMBOL ? resolve(o->symbol) : NULL;
    return y && y->kind == SYM_FUNC && y->function->has_body && !y->function->is_entry ? y->function : NULL;
}

/* Adds the frames of f and of the functions that it calls, callees first. */
static void collect(sim_lower *lw, sim_function *f, sim_frame ***tail, uint32_t depth)
{
    if (depth > 4000) sim_fatal(lw->m, f->line, "Calls nested too deeply");
    bool indirect = false, allocates = false;
    f->busy = true;
    for (uint32_t k = 0; k < f->statement_count; k++) {
        const sim_statement *s = &f->body[k];
        sim_function *g = direct_callee(s);
        allocates |= s->form->lower == sim_lower_alloca;
        if (s->form->lower == sim_lower_call && !g) {
            const sim_operand *o = call_target(s);
            indirect |= o && o->kind == O_REG;
        }
        if (g && !g->busy) collect(lw, g, tail, depth + 1);
    }
    for (sim_function *g = lw->m->functions; g && indirect; g = g->next)
        if (g->address_taken && g->has_body && !g->is_entry && !g->busy) collect(lw, g, tail, depth + 1);
    sim_frame *frame = sim_new_frame(lw, f); /* busy stays set until all frames exist */
    frame->indirect = indirect;
    frame->allocates = allocates;
    **tail = frame;
    *tail = &frame->next;
}

/* Makes the kernel's frames: f and all that it can reach; f alone if it is only checked for errors. */
void sim_collect_frames(sim_lower *lw, sim_function *f)
{
    sim_frame **tail = &lw->frames;
    uint32_t n = 0;
    if (!f->is_entry || lw->m->error_count)
        lw->frames = sim_new_frame(lw, f);
    else
        collect(lw, f, &tail, 0);
    for (sim_frame *x = lw->frames; x; x = x->next) {
        x->function->busy = false;
        x->index = n++;
    }
    if (n >= NO_ROUTINE) sim_fatal(lw->m, f->line, "Too many functions");
}

/* --- cycles of calls: Tarjan's strongly connected components ---------------------------------- */

typedef struct search {
    sim_lower *lw;
    sim_frame *top, *pointers;         /* pointers: a node for all functions whose address is taken */
    uint32_t seen, cycles;
} search;

static void visit(search *c, sim_frame *x);

static void follow(search *c, sim_frame *x, sim_frame *y)
{
    if (!y) return;
    if (x == y) x->r.reenters = true;
    if (!y->order) {
        visit(c, y);
        if (y->low < x->low) x->low = y->low;
    } else if (y->open && y->order < x->low) x->low = y->order;
}

static void visit(search *c, sim_frame *x)
{
    const sim_function *f = x->function;
    x->order = x->low = ++c->seen;
    x->open = true;
    x->below = c->top;
    c->top = x;
    for (uint32_t k = 0; f && k < f->statement_count; k++) {
        const sim_function *g = direct_callee(&f->body[k]);
        if (g) follow(c, x, frame_of(c->lw, g));
    }
    if (x->indirect) follow(c, x, c->pointers);
    for (sim_frame *y = c->lw->frames; y && !f; y = y->next)
        if (y->function->address_taken && !y->function->is_entry) follow(c, x, y);
    if (x->low != x->order) return;
    bool alone = c->top == x;
    c->cycles++;
    for (sim_frame *y = NULL; y != x;) {
        y = c->top;
        c->top = y->below;
        y->open = false;
        y->cycle = c->cycles;
        y->r.reenters |= !alone;
    }
}

/* Numbers the cycles: functions of one cycle may re-enter each other. */
static void find_cycles(sim_lower *lw)
{
    search c = { .lw = lw, .pointers = sim_alloc(lw->m, sizeof *c.pointers) };
    c.pointers->lw = lw;
    lw->pointers = c.pointers;
    for (sim_frame *x = lw->frames; x; x = x->next) if (!x->order) visit(&c, x);
}

static uint32_t round_up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/* Number of registers that pass .reg arguments of this function or prototype: one for each position up to the last. */
static uint32_t registers_passed(const sim_function *f)
{
    uint32_t most = 0;
    for (int results = 0; results < 2; results++) {
        uint32_t n = 0;
        for (const sim_symbol *y = results ? f->returns : f->params; y; y = y->list_next, n++)
            if (y->kind == SYM_REG && n + 1 > most) most = n + 1;
    }
    return most > MAX_REGISTERS_PASSED ? MAX_REGISTERS_PASSED : most;
}

static uint32_t call_registers(const sim_lower *lw)
{
    uint32_t most = 0, n;
    for (const sim_frame *x = lw->frames; x; x = x->next) {
        if ((n = registers_passed(x->function)) > most && !x->function->is_entry) most = n;
        for (uint32_t k = 0; k < x->function->statement_count; k++) {
            const sim_statement *s = &x->function->body[k];
            for (uint32_t o = 0; s->form->lower == sim_lower_call && o < s->operand_count; o++) {
                const sim_symbol *y = s->operands[o].kind == O_SYMBOL ? resolve(s->operands[o].symbol) : NULL;
                if (y && (y->kind == SYM_PROTO || y->kind == SYM_FUNC)
                    && (n = registers_passed(y->function)) > most)
                    most = n;
            }
        }
    }
    return most;
}

/* Decides which functions have frames on the stack, and places the bytes of calls. */
void sim_place_calls(sim_lower *lw)
{
    sim_kernel *k = lw->k;
    bool indirect = false;
    for (sim_frame *x = lw->frames; x; x = x->next) indirect |= x->indirect;
    find_cycles(lw);
    k->stack_align = 16;
    k->uses_stack = indirect;
    for (sim_frame *x = lw->frames; x; x = x->next) {
        sim_function *f = x->function;
        if (x->allocates) k->uses_stack = true;
        if (f->is_entry) continue;
        x->r.on_stack = x->r.reenters || x->allocates || (indirect && f->address_taken);
        k->uses_stack |= x->r.on_stack;
        k->has_calls = true;
        if (f->param_bytes > k->call_room) k->call_room = f->param_bytes;
        for (int pass = 0; pass < 3 && x->r.on_stack; pass++)
            for (sim_symbol *y = pass == 0   ? f->params
                                 : pass == 1 ? f->returns
                                             : f->variables;
                 y; y = y->list_next)
                if ((y->space == SP_LOCAL || y->space == SP_PARAM) && y->align > k->stack_align)
                    k->stack_align = y->align;
    }
    for (sim_frame *x = lw->frames; x; x = x->next) {
        sim_function *f = x->function;
        if (f->is_entry) continue;
        x->r.abi_bytes = f->param_bytes;
        if (x->r.on_stack)
            x->stack_used = f->param_bytes;
        else {
            uint32_t align = 16;
            for (int results = 0; results < 2; results++)
                for (sim_symbol *y = results ? f->returns : f->params; y; y = y->list_next)
                    if (y->align > align) align = y->align;
            x->r.base = round_up(lw->local_used, align);
            if ((uint64_t)x->r.base + f->param_bytes > 512 * 1024)
                sim_fatal(lw->m, f->line, "Local memory of '%s' exceeds 512 KiB", k->function->name);
            lw->local_used = x->r.base + f->param_bytes;
        }
        for (int results = 0; results < 2; results++)
            for (sim_symbol *y = results ? f->returns : f->params; y; y = y->list_next) {
                if (y->kind == SYM_REG) continue;
                sim_placed *p = sim_alloc(lw->m, sizeof *p);
                p->symbol = y;
                p->offset = x->r.base + (uint32_t)y->address;
                p->next = x->placed;
                x->placed = p;
            }
    }
    uint32_t passed = call_registers(lw);
    lw->call_slots = sim_temporary(lw, 4 * passed);
    lw->call_preds = k->preds;
    k->preds += passed;
    if (!k->has_calls && !k->uses_stack) return;
    k->stack_pointer = sim_temporary(lw, 2);
    k->frame_pointer = sim_temporary(lw, 2);
}

static sim_ins *emit_move(sim_lower *lw, uint32_t d, uint32_t a, uint32_t width)
{
    sim_ins *i = sim_emit(lw, sim_pass, F_PLAIN);
    i->d = d;
    i->a = a;
    i->count = (uint8_t)width;
    return i;
}

static uint32_t elements_of(const sim_symbol *formal) { return formal->vector ? formal->vector : 1u; }

/* Moves element k of the nth .reg parameter or result to (leaves) or from the registers that pass it. */
static void move_element(sim_lower *lw, const sim_symbol *formal, uint32_t n, uint32_t k, uint32_t slot, bool leaves)
{
    if (formal->type == T_PRED) {
        sim_ins *i = sim_emit(lw, sim_pred_logic, F_PLAIN);
        i->d = leaves ? lw->call_preds + n : slot;
        i->a = leaves ? slot : lw->call_preds + n;
        i->op = 4;                                            /* move */
        return;
    }
    uint32_t width = sim_slots_of((sim_type)formal->type), at = lw->call_slots + 4 * n + k * width;
    emit_move(lw, leaves ? at : slot, leaves ? slot : at, width);
}

/* Begins a function's code: takes its .reg parameters. */
void sim_routine_begin(sim_lower *lw, sim_frame *frame)
{
    sim_kernel *k = lw->k;
    sim_function *f = frame->function;
    uint32_t n = 0;
    frame->r.pc = k->code_count;
    frame->r.slot_lo = k->reg_slots;
    frame->r.pair_lo = k->pair_count;
    frame->r.pred_lo = k->preds;
    frame->r.local_lo = lw->local_used;
    if (f->is_entry) {
        k->entry = k->code_count;
        if (k->uses_stack) emit_move(lw, k->stack_pointer, sim_constant(lw, 0, 2), 2); /* constant set later */
        return;
    }
    for (const sim_symbol *y = f->params; y; y = y->list_next, n++) {
        if (y->kind != SYM_REG || n >= MAX_REGISTERS_PASSED) continue;
        for (uint32_t e = 0; e < elements_of(y); e++) {
            uint32_t d = sim_register_slot(lw, y->index + e), first = lw->note_count, code = k->code_count;
            move_element(lw, y, n, e, d, false);
            sim_note(lw, d, false, true, y->name);
            sim_note_end(lw, first);
            sim_unwritten_statement(lw, first, code);
        }
    }
}

/* `ret`, and the end of a function: passes its .reg results. */
void sim_routine_end(sim_lower *lw, sim_frame *frame)
{
    uint32_t n = 0;
    for (const sim_symbol *y = frame->function->returns; y; y = y->list_next, n++) {
        if (y->kind != SYM_REG || n >= MAX_REGISTERS_PASSED) continue;
        for (uint32_t e = 0; e < elements_of(y); e++) {
            uint32_t a = sim_register_slot(lw, y->index + e);
            if (lw->s) sim_note(lw, a, y->type == T_PRED, false, y->name);
            move_element(lw, y, n, e, a, true);
        }
    }
    sim_emit(lw, sim_nop, F_RETURN);
}

/* When all code is emitted: the table of functions, the targets of calls, the size of local memory. */
void sim_settle_calls(sim_lower *lw)
{
    sim_kernel *k = lw->k;
    uint32_t count = 0;
    for (sim_frame *x = lw->frames; x; x = x->next) count++;
    k->routines = calloc(count, sizeof *k->routines);
    if (!k->routines) {
        lw->m->out_of_memory = true;
        longjmp(*lw->m->bail, 1);
    }
    k->routine_count = count;
    for (sim_frame *x = lw->frames; x; x = x->next) {
        uint32_t saved = 4 * (x->r.slot_hi - x->r.slot_lo);
        if (x->r.on_stack)
            x->r.frame_bytes =
                round_up(x->stack_used + 16 + (saved > MAX_CHARGE ? MAX_CHARGE : saved), k->stack_align);
        k->routines[x->index] = x->r;
    }
    for (uint32_t c = 0; c < k->code_count; c++) {
        sim_ins *i = &k->code[c];
        if (i->flow == F_CALL && !i->op && i->c < count) i->imm = k->routines[i->c].pc;
    }
    k->local_fixed = round_up(lw->local_used, k->stack_align);
    k->local_bytes = k->local_fixed;
    if (!k->uses_stack) return;
    if (k->function->is_entry) {
        uint32_t slot = sim_constant(lw, k->local_fixed, 2);
        k->code[k->entry].a = slot;
    }
}

/* Finds the watched registers of each function: they are unwritten again when it is entered. */
void sim_settle_watches(sim_kernel *k)
{
    for (uint32_t r = 0; r < k->routine_count; r++) {
        sim_routine *x = &k->routines[r];
        uint32_t end = r + 1 < k->routine_count ? k->routines[r + 1].pc : k->code_count;
        x->watch_lo = UINT32_MAX;
        for (uint32_t n = 0; n < k->watch_entry_count; n++) {
            const sim_watch_entry *e = &k->watches[n];
            if (e->code < x->pc || e->code >= end) continue;
            if (e->watched < x->watch_lo) x->watch_lo = e->watched;
            if (e->watched >= x->watch_hi) x->watch_hi = e->watched + 1;
        }
        if (x->watch_lo > x->watch_hi) x->watch_lo = x->watch_hi = 0;
    }
}

/* --- lowering of a call ----------------------------------------------------------------------- */

typedef struct place {
    uint32_t slot;
    int64_t offset;
} place;

/* Where the bytes of the call are: at the stack pointer, or at the callee's fixed place. */
static place call_bytes(sim_lower *lw, const sim_frame *callee, bool indirect)
{
    if (indirect || (callee && callee->r.on_stack)) return (place){lw->k->stack_pointer, 0};
    return (place){sim_constant(lw, 0, 2), callee ? callee->r.base : 0};
}

static bool variable_place(sim_lower *lw, const sim_symbol *y, place *out)
{
    uint64_t at;
    sim_space space;
    if (!sim_symbol_address(lw, y, &at, &space)) return false;
    *out = (place){sim_on_stack(lw, y) ? lw->k->frame_pointer : sim_constant(lw, 0, 2), (int64_t)at};
    return true;
}

static void copy_bytes(sim_lower *lw, place from, place to, uint32_t bytes)
{
    sim_ins *i = sim_emit(lw, sim_copy_local, F_PLAIN);
    i->a = from.slot;
    i->imm = from.offset;
    i->b = to.slot;
    i->e = (uint32_t)to.offset;
    i->x = bytes;
}

/* Moves a register of `bytes` bytes to or from local memory. */
static void transfer(sim_lower *lw, place at, uint32_t slot, uint32_t bytes, bool wide, bool store)
{
    uint32_t list = sim_list_begin(lw, 1);
    lw->k->lists[list] = slot | (wide ? SIM_WIDE : 0);
    sim_ins *i = sim_emit(lw, store ? sim_st : sim_ld, F_MEMORY);
    i->list = list;
    i->a = at.slot;
    i->imm = at.offset;
    i->q = 1;
    i->space = SP_LOCAL;
    i->size = (uint8_t)bytes;
    i->count = 1;
    i->x = X_PARAM;
    i->d = store ? 0 : lw->k->lists[list];
}

static const sim_symbol *param_variable(const sim_operand *o)
{
    const sim_symbol *y = o->kind == O_SYMBOL ? resolve(o->symbol) : NULL;
    return y && y->kind == SYM_VAR && y->space == SP_PARAM && !(y->is_formal && y->function->is_entry) ? y
                                                                                                       : NULL;
}

static bool same_kind(const sim_symbol *formal, sim_type t)
{
    const sim_type_info *a = &sim_types[formal->type], *b = &sim_types[t];
    bool floats = (a->kind == K_FLOAT) == (b->kind == K_FLOAT);
    return (a->kind == K_PRED) == (b->kind == K_PRED) && a->bytes == b->bytes
           && (a->kind == K_BITS || b->kind == K_BITS || floats);
}

/* Whether this argument or result fits the formal one: a .param variable of the same shape, a register, a vector of
 * registers, a constant. */
static bool argument_matches(const sim_symbol *formal, const sim_operand *actual, bool result)
{
    const sim_symbol *y = param_variable(actual);
    if (formal->type == T_PRED && !result) return false;
    if (y)
        return y->size == formal->size && y->is_array == formal->is_array && y->vector == formal->vector
               && same_kind(formal, (sim_type)y->type) && (formal->kind == SYM_REG || y->align == formal->align);
    if (actual->kind == O_SINK) return result;
    if (formal->kind != SYM_REG && formal->is_array) return false;
    if (actual->kind == O_VECTOR)
        return formal->vector == actual->count && same_kind(formal, (sim_type)actual->items[0].type);
    if (formal->vector) return false;
    if (actual->kind == O_REG)
        return sim_types[actual->type].bytes == sim_types[formal->type].bytes
               && (actual->type == T_PRED) == (formal->type == T_PRED);
    return !result && (actual->kind == O_INT || actual->kind == O_FLOAT);
}

/* Moves a .reg formal between its registers and the caller's .param variable. */
static void transfer_elements(sim_lower *lw, const sim_symbol *formal, uint32_t number, place at, bool leaves)
{
    sim_type t = (sim_type)formal->type;
    uint32_t bytes = sim_types[t].bytes, width = sim_slots_of(t);
    for (uint32_t e = 0; e < elements_of(formal); e++) {
        uint32_t slot = sim_temporary(lw, width);
        place of = { at.slot, at.offset + (int64_t)(e * bytes) };
        if (!leaves) move_element(lw, formal, number, e, slot, false);
        transfer(lw, of, slot, bytes, width == 2, !leaves);
        if (leaves) move_element(lw, formal, number, e, slot, true);
    }
}

static void pass_argument(sim_lower *lw, const sim_symbol *formal, const sim_operand *actual, place call,
                          uint32_t number)
{
    sim_type t = (sim_type)formal->type;
    const sim_symbol *y = param_variable(actual);
    place from;
    if (y) {
        if (!variable_place(lw, y, &from)) return;
        call.offset += (int64_t)formal->address;
        if (formal->kind == SYM_REG) transfer_elements(lw, formal, number, from, true);
        else copy_bytes(lw, from, call, (uint32_t)y->size);
        return;
    }
    for (uint32_t e = 0; e < elements_of(formal) && formal->kind == SYM_REG; e++)
        move_element(lw, formal, number, e,
                     sim_source_of(lw, formal->vector ? &actual->items[e] : actual, 0, t, 0), true);
    if (formal->kind == SYM_REG) return;
    uint32_t slot = sim_source_of(lw, actual, 0, t, 0);
    call.offset += (int64_t)formal->address;
    transfer(lw, call, slot, sim_types[t].bytes, sim_slots_of(t) == 2, true);
}

static void take_result(sim_lower *lw, const sim_symbol *formal, const sim_operand *actual, place call,
                        uint32_t number)
{
    sim_type t = (sim_type)formal->type;
    const sim_symbol *y = param_variable(actual);
    place to;
    if (actual->kind == O_SINK) return;
    if (y) {
        if (!variable_place(lw, y, &to)) return;
        call.offset += (int64_t)formal->address;
        if (formal->kind == SYM_REG) transfer_elements(lw, formal, number, to, false);
        else copy_bytes(lw, call, to, (uint32_t)y->size);
        return;
    }
    for (uint32_t e = 0; e < elements_of(formal) && formal->kind == SYM_REG; e++)
        move_element(lw, formal, number, e,
                     sim_dest_of(lw, formal->vector ? &actual->items[e] : actual, 0, t, 0), false);
    if (formal->kind == SYM_REG) return;
    uint32_t slot = sim_dest_of(lw, actual, 0, t, 0);
    call.offset += (int64_t)formal->address;
    transfer(lw, call, slot, sim_types[t].bytes, sim_slots_of(t) == 2, false);
}

/* Calls one of CUDA's own functions: arguments and result are in 64-bit slots. */
static void lower_library(sim_lower *lw, sim_handler fn, const sim_function *f, const sim_operand *args,
                          const sim_operand *returns)
{
    uint32_t list = sim_list_begin(lw, args->count + 1u), n = 0, d = sim_temporary(lw, 2);
    lw->k->cannot_undo |= strcmp(f->name, "__assertfail") != 0;
    for (const sim_symbol *y = f->params; y; y = y->list_next, n++) {
        const sim_operand *o = &args->items[n];
        const sim_symbol *v = param_variable(o);
        uint32_t slot = sim_temporary(lw, 2);
        place from;
        if (v && variable_place(lw, v, &from))
            transfer(lw, from, slot, (uint32_t)v->size, true, false);
        else if (sim_types[y->type].bytes == 8)
            slot = sim_source_of(lw, o, n, (sim_type)y->type, 0);
        else {
            uint32_t low = sim_source_of(lw, o, n, (sim_type)y->type, 0);
            sim_ins *i = sim_emit(lw, sim_op_handler(OP_pack_64), F_PLAIN);
            i->d = slot;
            i->a = low;
            i->b = sim_constant(lw, 0, 1);
        }
        lw->k->lists[list + n] = slot;
    }
    sim_ins *i = sim_emit(lw, fn, F_MEMORY);
    i->list = list;
    i->d = d;
    i->last = 1;
    if (!returns->count) return;
    const sim_operand *o = &returns->items[0];
    const sim_symbol *v = param_variable(o);
    uint32_t bytes = (uint32_t)f->returns->size;
    place to;
    if (v && variable_place(lw, v, &to)) {
        if (bytes < 8) {                                      /* its 32 bits are not where a lane's 64 are */
            i = sim_emit(lw, sim_op_handler(OP_low_half), F_PLAIN);
            i->a = d;
            d = i->d = sim_temporary(lw, 1);
        }
        transfer(lw, to, d, bytes, bytes == 8, true);
    }
    else if (o->kind == O_REG) {
        uint32_t slot = sim_dest_of(lw, o, 0, (sim_type)f->returns->type, 0);
        if (bytes == 8)
            emit_move(lw, slot, d, 2);
        else {
            i = sim_emit(lw, sim_op_handler(OP_low_half), F_PLAIN);
            i->d = slot;
            i->a = d;
        }
    }
}

/* The function that describes what a call through a pointer passes: a prototype, or the first target. */
static sim_function *prototype_of(sim_lower *lw, const sim_operand *o)
{
    const sim_symbol *y = o && o->kind == O_SYMBOL ? resolve(o->symbol) : NULL;
    if (y && y->kind == SYM_TARGETS && y->target_count) y = resolve(y->targets[0].symbol);
    if (!y || (y->kind != SYM_PROTO && y->kind != SYM_FUNC)) {
        sim_reject(lw, "An indirect call requires a call prototype or a list of targets");
        return NULL;
    }
    if (y->kind == SYM_PROTO) place_formals(y->function);
    return y->function;
}

/* Whether this call can lead back to the function that makes it. */
static bool in_cycle(const sim_lower *lw, const sim_frame *callee)
{
    if (!lw->frame->r.reenters) return false;
    return (callee ? callee : lw->pointers)->cycle == lw->frame->cycle;
}

static void check_known(sim_lower *lw, const sim_function *f)
{
    if (!f->has_body && !lw->m->part && !lw->m->error_count)
        sim_reject(lw, "Unresolved extern function '%s'", f->name);
}

void sim_lower_call(sim_lower *lw, const sim_statement *s)
{
    const sim_operand *o = s->operands, *target, *returns = NULL, *args = NULL, *last = NULL;
    uint32_t n = s->operand_count, k = 0, p, r;
    static const sim_operand none = {.kind = O_LIST};
    if (k < n && o[k].kind == O_LIST) returns = &o[k++];
    if (k >= n) {
        sim_mismatch(lw, 0, "expected a function");
        return;
    }
    target = &o[k++];
    if (k < n && o[k].kind == O_LIST) args = &o[k++];
    if (k < n) last = &o[k++];
    if (!returns) returns = &none;
    if (!args) args = &none;
    const sim_symbol *y = target->kind == O_SYMBOL ? resolve(target->symbol) : NULL;
    bool indirect = target->kind == O_REG;
    sim_function *f = NULL;
    if (indirect && sim_types[target->type].bytes != 8)
        sim_mismatch(lw, returns != &none, "expected a function or a .u64 register");
    else if (indirect)
        f = prototype_of(lw, last);
    else if (!y || y->kind != SYM_FUNC)
        sim_reject(lw, "Call to '%s' requires call prototype", target->name ? target->name : "?");
    else
        f = y->function;
    if (!f) return;
    if (args->count != f->param_count || returns->count != f->return_count) {
        sim_mismatch(lw, 0, "'%s' takes %u arguments and returns %u", f->name, f->param_count,
                     f->return_count);
        return;
    }
    if (f->is_entry) {
        sim_reject(lw, "Entry '%s' cannot be called", f->name);
        return;
    }
    if (f->return_count == 1 && f->returns->type == T_PRED) {
        sim_reject(lw, "A predicate can be one of several results only");
        return;
    }
    const sim_symbol *formal = f->params;
    bool good = true;
    for (uint32_t a = 0; a < args->count; a++, formal = formal->list_next)
        good &= argument_matches(formal, &args->items[a], false);
    formal = f->returns;
    for (uint32_t a = 0; a < returns->count; a++, formal = formal->list_next)
        good &= argument_matches(formal, &returns->items[a], true);
    if (!good) {
        sim_mismatch(lw, 0, "an argument differs in kind or size from the formal one");
        return;
    }
    if (args->count > MAX_REGISTERS_PASSED || returns->count > MAX_REGISTERS_PASSED) {
        sim_reject(lw, "Too many arguments");
        return;
    }
    sim_handler library = indirect || f->has_body ? NULL : sim_library_function(f->name, &p, &r);
    if (library && p == f->param_count && r == f->return_count) {
        lower_library(lw, library, f, args, returns);
        return;
    }
    if (!indirect) check_known(lw, f);
    sim_frame *callee = indirect ? NULL : frame_of(lw, f);
    uint32_t pointer = indirect ? sim_source_of(lw, target, 0, T_U64, 0) : 0;
    place call = call_bytes(lw, callee, indirect);
    if (indirect && f->param_bytes > lw->k->call_room) lw->k->call_room = f->param_bytes;
    formal = f->params;
    for (uint32_t a = 0; a < args->count; a++, formal = formal->list_next)
        pass_argument(lw, formal, &args->items[a], call, a);
    sim_ins *i = sim_emit(lw, sim_nop, F_CALL);
    i->op = indirect;
    i->a = pointer;
    i->c = callee ? callee->index : NO_ROUTINE;
    i->e = lw->frame->index;
    i->d = f->param_count | f->return_count << 16; /* counts that the pointed-to function must have */
    i->b = f->param_bytes;
    i->count = in_cycle(lw, callee);
    i->last = 1;
    formal = f->returns;
    for (uint32_t a = 0; a < returns->count; a++, formal = formal->list_next)
        take_result(lw, formal, &returns->items[a], call, a);
    lw->k->has_calls = true;
    if (lw->k->code[lw->k->code_count - 1].flow == F_CALL) sim_emit(lw, sim_nop, F_PLAIN);
}

void sim_lower_alloca(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 2, 3)) return;
    uint32_t d = sim_dest(lw, 0, T_U64, 0), a = sim_source(lw, 1, T_U64, 0);
    int64_t align = 8;
    if (s->operand_count == 3) {
        align = s->operands[2].kind == O_INT ? s->operands[2].value : 0;
        if (align <= 0 || align > 1 << 16 || align & (align - 1)) {
            sim_mismatch(lw, 2, "the alignment is a power of two");
            return;
        }
    }
    sim_ins *i = sim_emit(lw, sim_alloca, F_MEMORY);
    i->d = d;
    i->a = a;
    i->imm = align;
}

void sim_lower_stack(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 1, 1)) return;
    if (s->form->sub) {
        if (s->operands[0].kind != O_REG) sim_reject(lw, "Result register required for instruction 'stackrestore'");
        uint32_t a = sim_source(lw, 0, T_U64, 0);
        emit_move(lw, lw->k->stack_pointer, a, 2);
    } else {
        uint32_t d = sim_dest(lw, 0, T_U64, 0);
        emit_move(lw, d, lw->k->stack_pointer, 2);
    }
}

/* --- launching -------------------------------------------------------------------------------- */

/* Provides the counter of a cooperative launch's grid barrier, which CUDA's cooperative groups find through
 * %envreg1 and %envreg2. */
static bool grid_workspace(sim_launch *l)
{
    enum { BYTES = 256 };
    sim_context *c = l->context;
    sim_allocation *a = c->grid_workspace ? sim_memory_find(c->grid_workspace) : NULL;
    if (!a && sim_memory_alloc(c, BYTES, MEM_MODULE, "grid workspace", &a)) return false;
    l->workspace = c->grid_workspace = a->base;
    memset(a->host, 0, BYTES);
    sim_shadow_set(a->shadow, 0, BYTES);
    return true;
}

/* Sets what a launch needs besides the caller's request, before its constants are filled. */
bool sim_launch_prepare(sim_launch *l, bool cooperative)
{
    sim_kernel *k = (sim_kernel *)(uintptr_t)l->kernel; /* one launch runs at a time */
    if (k->uses_stack)
        k->local_bytes = k->local_fixed + round_up((uint32_t)sim_option.stack + k->call_room, 16);
    if (k->uses_reserved) {
        l->reserved_at = (l->shared_bytes + 15) / 16 * 16;
        l->shared_bytes = l->reserved_at + SIM_RESERVED_SHARED;
    }
    return !cooperative || grid_workspace(l);
}

/* cuCtxSetLimit: stack (a chip's frames are smaller), vprintf's FIFO, device heap. */
void sim_limit(int limit, uint64_t value)
{
    enum { LEAST_STACK = 65536, MOST_STACK = 512 * 1024 };
    if (limit == 0)
        sim_option.stack = value * 8 > MOST_STACK    ? MOST_STACK
                           : value * 8 < LEAST_STACK ? LEAST_STACK
                                                     : (int)value * 8;
    if (limit == 1) sim_option.fifo = value > INT32_MAX ? INT32_MAX : (int)value;
    if (limit == 2) sim_option.heap = value > INT32_MAX ? INT32_MAX : (int)value;
}

/* --- running ---------------------------------------------------------------------------------- */

bool sim_calls_begin(sim_block *b, uint32_t warps)
{
    uint32_t lanes = warps * SIM_LANES;
    if (b->call_stacks < lanes) {
        sim_lane_stack *grown = realloc(b->calls, lanes * sizeof *grown);
        if (!grown) return false;
        memset(grown + b->call_stacks, 0, (lanes - b->call_stacks) * sizeof *grown);
        b->calls = grown;
        b->call_stacks = lanes;
    }
    for (uint32_t n = 0; n < lanes; n++) b->calls[n].used = 0;
    return true;
}

void sim_calls_free(sim_block *b)
{
    for (uint32_t n = 0; n < b->call_stacks; n++) free(b->calls[n].words);
    free(b->calls);
}

/* Marks local memory as unwritten: its fixed part when a block begins, a frame when it is made. */
void sim_local_begin(sim_block *b, const sim_kernel *k, uint32_t threads)
{
    size_t each = k->local_bytes, fixed = k->local_fixed;
    if (each == fixed) {
        memset(b->local, 0xcd, each * threads);
        memset(b->local_shadow, 0, each * threads / 8 + 1);
        return;
    }
    for (uint32_t t = 0; t < threads && fixed; t++) {
        memset(b->local + t * each, 0xcd, fixed);
        memset(b->local_shadow + t * each / 8, 0, (fixed + 7) / 8);
    }
}

static void forget(sim_warp *w, uint32_t lane, uint64_t from, uint64_t to)
{
    size_t start = (size_t)sim_thread_of(w, lane) * w->kernel->local_bytes;
    if (from >= to) return;
    memset(w->block->local + start + from, 0xcd, (size_t)(to - from));
    sim_shadow_clear(w->block->local_shadow + start / 8, from, to - from);
    if (SIM_UNLIKELY(w->block->unwritten != NULL)) sim_unwritten_forgotten(w, lane, from, to);
}

static bool room_for(sim_lane_stack *s, uint32_t words)
{
    if (s->used + words <= s->capacity) return true;
    uint32_t wanted = (s->used + words) * 2;
    uint32_t *grown = realloc(s->words, (size_t)wanted * 4);
    if (!grown) return false;
    s->words = grown;
    s->capacity = wanted;
    return true;
}

static uint32_t bit_words(uint32_t n) { return (n + 31) / 32; }

static uint32_t saved_words(const sim_routine *r)
{
    return r->slot_hi - r->slot_lo + bit_words(r->pred_hi - r->pred_lo)
           + bit_words(r->watch_hi - r->watch_lo);
}

static void save_bits(const uint32_t *masks, uint32_t n, uint32_t lane, uint32_t *to)
{
    memset(to, 0, bit_words(n) * 4);
    for (uint32_t k = 0; k < n; k++) to[k / 32] |= (masks[k] >> lane & 1) << k % 32;
}

static void restore_bits(uint32_t *masks, uint32_t n, uint32_t lane, const uint32_t *from)
{
    for (uint32_t k = 0; k < n; k++)
        masks[k] = (masks[k] & ~(1u << lane)) | (from[k / 32] >> k % 32 & 1) << lane;
}

/* Saves a function's registers of one lane. The two words of a 64-bit register are adjacent in its pair of slots. */
static void save_registers(sim_warp *w, const sim_routine *r, uint32_t lane, uint32_t *to)
{
    const uint32_t *pairs = w->kernel->pairs;
    for (uint32_t s = r->slot_lo, p = r->pair_lo; s < r->slot_hi;) {
        const uint32_t *from = w->bank[0] + (size_t)s * SIM_LANES;
        if (p < r->pair_hi && pairs[p] == s) {
            memcpy(to, from + 2 * lane, 8);
            to += 2;
            s += 2;
            p++;
        } else {
            *to++ = from[lane];
            s++;
        }
    }
    save_bits(w->p + r->pred_lo, r->pred_hi - r->pred_lo, lane, to);
    save_bits(w->watch + r->watch_lo, r->watch_hi - r->watch_lo, lane,
              to + bit_words(r->pred_hi - r->pred_lo));
}

static void restore_registers(sim_warp *w, const sim_routine *r, uint32_t lane, const uint32_t *from)
{
    const uint32_t *pairs = w->kernel->pairs;
    for (uint32_t s = r->slot_lo, p = r->pair_lo; s < r->slot_hi;) {
        uint32_t *to = w->bank[0] + (size_t)s * SIM_LANES;
        if (p < r->pair_hi && pairs[p] == s) {
            memcpy(to + 2 * lane, from, 8);
            from += 2;
            s += 2;
            p++;
        } else {
            to[lane] = *from++;
            s++;
        }
    }
    restore_bits(w->p + r->pred_lo, r->pred_hi - r->pred_lo, lane, from);
    restore_bits(w->watch + r->watch_lo, r->watch_hi - r->watch_lo, lane,
                 from + bit_words(r->pred_hi - r->pred_lo));
}

static const sim_routine *routine_at(const sim_kernel *k, uint64_t pointer)
{
    for (uint32_t n = 0; n < k->routine_count; n++)
        if (k->routines[n].function->address == pointer) return &k->routines[n];
    return NULL;
}

static const char *function_name(const sim_warp *w, uint64_t pointer)
{
    for (const sim_function *f = w->kernel->module->functions; f; f = f->next)
        if (f->address == pointer) return f->name;
    return NULL;
}

/* Reduces *mask to the lanes with the lowest one's pointer; returns their target, NULL after a fault. */
static const sim_routine *pointed_at(sim_warp *w, const sim_ins *i, uint32_t *mask)
{
    const uint64_t *pointers = sim_slot64(w, i->a);
    uint32_t first = sim_lowest(*mask), group = 0;
    uint64_t pointer = pointers[first];
    const sim_routine *r = routine_at(w->kernel, pointer);
    SIM_EACH_LANE(l, *mask) if (pointers[l] == pointer) group |= 1u << l;
    *mask = group;
    const char *name = function_name(w, pointer);
    const sim_function *f = r ? r->function : NULL;
    if (f && !f->is_entry && (f->param_count | f->return_count << 16) == i->d && f->param_bytes == i->b)
        return r;
    if (f && !f->is_entry)
        sim_report_at(w, i, "call-target", first,
                      "'%s' takes %u parameters and returns %u, %u bytes in all; the call's "
                      "prototype has %u and %u, %u bytes",
                      f->name, f->param_count, f->return_count, f->param_bytes, i->d & 0xffff, i->d >> 16,
                      i->b);
    else
        sim_report_at(w, i, "call-target", first, "0x%llx is %s%s%s", (unsigned long long)pointer,
                      name ? "'" : "no function of this module", name ? name : "",
                      name ? "', which cannot be called here" : "");
    sim_warp_fault(w, SIM_ERROR_INVALID_PC);
    return NULL;
}

/* Makes the call for the lanes of *mask; for a call through a pointer, *mask becomes those with the same target.
 * False: a fault. */
bool sim_call(sim_warp *w, const sim_ins *i, uint32_t *mask, uint32_t pc, uint32_t *target)
{
    const sim_kernel *k = w->kernel;
    const sim_routine *caller = &k->routines[i->e], *callee;
    callee = i->op ? pointed_at(w, i, mask) : &k->routines[i->c];
    if (!callee) return false;
    uint64_t *sp = sim_slot64(w, k->stack_pointer), *fp = sim_slot64(w, k->frame_pointer);
    uint32_t save = i->count ? saved_words(caller) : 0, words = save + 4;
    SIM_EACH_LANE(l, *mask)
    {
        sim_lane_stack *s = &w->calls[l];
        if (callee->on_stack && sp[l] + callee->frame_bytes + k->call_room > k->local_bytes) {
            sim_report_at(w, i, "stack-overflow", l,
                          "the call of '%s' needs %u bytes, the thread's stack of %u "
                          "has %llu left (calls: option \"stack\")",
                          callee->function->name, callee->frame_bytes + k->call_room,
                          k->local_bytes - k->local_fixed, (unsigned long long)(k->local_bytes - sp[l]));
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
            return false;
        }
        if (!room_for(s, words)) {
            sim_warp_fault(w, 2);
            return false;
        }
        uint32_t *at = s->words + s->used;
        if (save) save_registers(w, caller, l, at);
        at[save] = (uint32_t)fp[l];
        at[save + 1] = (uint32_t)(callee - k->routines);
        at[save + 2] = i->e | (save ? SAVED : 0);
        at[save + 3] = pc + 1;
        s->used += words;
        if (callee->on_stack) {
            fp[l] = sp[l];
            sp[l] += callee->frame_bytes;
            forget(w, l, fp[l] + callee->function->return_at, fp[l] + callee->frame_bytes);
        } else {
            forget(w, l, callee->base + callee->function->return_at, callee->base + callee->abi_bytes);
            forget(w, l, callee->local_lo, callee->local_hi);
        }
    }
    for (uint32_t n = callee->watch_lo; n < callee->watch_hi; n++) w->watch[n] &= ~*mask;
    *target = callee->pc;
    return true;
}

/* Reduces *mask to the lanes with the lowest one's return address, pops their call, and returns that address. */
uint32_t sim_return(sim_warp *w, uint32_t *mask)
{
    const sim_kernel *k = w->kernel;
    uint64_t *sp = sim_slot64(w, k->stack_pointer), *fp = sim_slot64(w, k->frame_pointer);
    const sim_lane_stack *first = &w->calls[sim_lowest(*mask)];
    uint32_t pc = first->words[first->used - 1], group = 0;
    SIM_EACH_LANE(l, *mask)
    {
        sim_lane_stack *s = &w->calls[l];
        const uint32_t *top = s->words + s->used;
        if (top[-1] != pc) continue;
        group |= 1u << l;
        const sim_routine *callee = &k->routines[top[-3]], *caller = &k->routines[top[-2] & ~SAVED];
        uint32_t save = top[-2] & SAVED ? saved_words(caller) : 0;
        if (callee->on_stack) {
            sp[l] = fp[l];
            fp[l] = top[-4];
        }
        if (save) restore_registers(w, caller, l, top - 4 - save);
        if (save && SIM_UNLIKELY(w->unwritten)) sim_unwritten_restored(w, caller, l);
        s->used -= save + 4;
    }
    *mask = group;
    return pc;
}

/* Copies parameters or results, with the marks of unwritten bytes: padding may be unwritten. */
void sim_copy_local(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    const uint64_t *a = sim_slot64(w, i->a), *b = sim_slot64(w, i->b);
    uint32_t bytes = i->x, each = w->kernel->local_bytes;
    SIM_EACH_LANE(l, mask)
    {
        size_t start = (size_t)sim_thread_of(w, l) * each;
        uint64_t from = a[l] + (uint64_t)i->imm, to = b[l] + i->e;
        uint8_t *shadow = w->block->local_shadow + start / 8;
        memmove(w->block->local + start + to, w->block->local + start + from, bytes);
        if (sim_shadow_all(shadow, from, bytes)) {
            sim_shadow_set(shadow, to, bytes);
            continue;
        }
        if (w->block->unwritten) sim_unwritten_copied(w, l, from, to, bytes);
        for (uint32_t n = 0; n < bytes; n++)
            if (shadow[(from + n) >> 3] >> ((from + n) & 7) & 1)
                sim_shadow_set(shadow, to + n, 1);
            else
                sim_shadow_clear(shadow, to + n, 1);
    }
}

void sim_alloca(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    const sim_kernel *k = w->kernel;
    const uint64_t *size = sim_slot64(w, i->a);
    uint64_t *sp = sim_slot64(w, k->stack_pointer), *d = sim_slot64(w, i->d), align = (uint64_t)i->imm;
    SIM_EACH_LANE(l, mask)
    {
        uint64_t at = (sp[l] + align - 1) / align * align, bytes = size[l],
                 room = k->local_bytes - k->call_room;
        if (at > room || bytes > room - at) {
            sim_report_at(w, i, "stack-overflow", l,
                          "%llu bytes asked for, the thread's stack of %u has %llu left",
                          (unsigned long long)bytes, k->local_bytes - k->local_fixed,
                          (unsigned long long)(at > room ? 0 : room - at));
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        d[l] = at;
        sp[l] = (at + bytes + k->stack_align - 1) / k->stack_align * k->stack_align;
        forget(w, l, at, at + bytes);
    }
}
