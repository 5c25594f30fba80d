/* copies.c - registers that only carry bytes from one place in memory to another.
 *
 * Compilers copy structs whole, padding and members without a value included, and they fill bit fields by
 * reading, clearing, inserting and writing back. Such a read of unwritten bytes is no fault. A thread's own
 * memory (.local, generic) may be read into a register found here without a finding; where the register does
 * nothing but go to stores, a mask beside it says which of its bytes were written, and the store passes that
 * on, so that the finding comes where the value is used. With a mask global and shared memory may be read
 * so, too. */
#include "sim.h"
#include "lower.h"

enum { BAD = 1, CLEARED = 2, CHAINED = 4, LOADED = 8, STORED = 16 };

typedef struct edge {
    uint32_t from, to;
} edge;
typedef struct analysis {
    uint8_t *marks;
    edge *edges;
    uint32_t edge_count, edge_capacity;
    sim_lower *lw;
} analysis;

static bool is(const sim_statement *s, const char *opcode) { return !strcmp(s->opcode, opcode); }

static void mark(analysis *a, const sim_operand *o, int marks)
{
    if (o->kind == O_REG) a->marks[o->reg] |= (uint8_t)marks;
    if (!o->items) return;
    for (uint32_t k = 0; k < (o->kind == O_ADDRESS ? 1u : o->count); k++) mark(a, &o->items[k], marks);
}

static void follows(analysis *a, const sim_operand *from, const sim_operand *to)
{
    if (from->kind != O_REG) return;
    if (to->kind != O_REG) {
        a->marks[from->reg] |= BAD;
        return;
    }
    if (a->edge_count == a->edge_capacity) {
        uint32_t capacity = a->edge_capacity ? a->edge_capacity * 2 : 64;
        edge *grown = sim_alloc(a->lw->m, capacity * sizeof *grown);
        if (a->edge_count) memcpy(grown, a->edges, a->edge_count * sizeof *grown);
        a->edges = grown;
        a->edge_capacity = capacity;
    }
    a->edges[a->edge_count++] = (edge){from->reg, to->reg};
    a->marks[from->reg] |= CHAINED;
    a->marks[to->reg] |= CHAINED;
}

/* and with a constant whose zeros lie side by side: a field is cleared */
static bool clears(const sim_statement *s)
{
    if (!is(s, "and") || s->operand_count != 3 || s->operands[2].kind != O_INT) return false;
    uint64_t v = (uint64_t)s->operands[2].value, all = UINT64_MAX;
    if (s->types[0] == T_B32) all = UINT32_MAX;
    if (s->types[0] == T_B16) all = v < 256 ? 255 : 65535;
    uint64_t zeros = ~v & all;
    return zeros && !((zeros + (zeros & (0 - zeros))) & zeros);
}

/* May this load be of a struct?  Values that threads wait for are not. */
static bool plain(const analysis *a, const sim_statement *s)
{
    const sim_mods *m = &s->mods;
    bool param = sim_mod(m, M_param) || sim_mod(m, M_param_entry) || sim_mod(m, M_param_func);
    return !sim_mod(m, M_volatile) && !sim_mod(m, M_relaxed) && !sim_mod(m, M_acquire)
           && !sim_mod(m, M_shared_cluster) && !sim_mod(m, M_const)
           && !(param && a->lw->frame->function->is_entry);
}

static void look_at(analysis *a, const sim_statement *s)
{
    const sim_operand *o = s->operands;
    uint32_t n = s->operand_count;
    if (is(s, "ld") && n >= 2) {
        mark(a, &o[0], plain(a, s) ? LOADED : BAD);
        mark(a, &o[1], BAD);
    } else if (is(s, "st") && n >= 2) {
        mark(a, &o[0], BAD);
        mark(a, &o[1], STORED);
    } else if (is(s, "mov") && n == 2 && o[0].kind == O_REG && o[1].kind == O_REG)
        follows(a, &o[1], &o[0]);
    else if (clears(s)) {
        follows(a, &o[1], &o[0]);
        mark(a, &o[0], CLEARED);
    } else if (is(s, "or") && n == 3) {
        for (uint32_t k = 1; k < 3; k++) {
            if (o[k].kind == O_REG && a->marks[o[k].reg] & CLEARED)
                follows(a, &o[k], &o[0]);
            else
                mark(a, &o[k], BAD);
        }
        if (o[0].kind == O_REG) a->marks[o[0].reg] |= CHAINED;
    } else
        for (uint32_t k = 0; k < n; k++) mark(a, &o[k], BAD);
}

/* A vector is read as a whole: one register that is used otherwise spoils the others. */
static bool spoils(analysis *a, const sim_statement *s)
{
    const sim_operand *o = s->operands;
    bool bad = false, good = false;
    if (!is(s, "ld") || s->operand_count < 2 || o->kind != O_VECTOR) return false;
    for (uint32_t k = 0; k < o->count; k++) {
        if (o->items[k].kind != O_REG) continue;
        if (a->marks[o->items[k].reg] & BAD)
            bad = true;
        else
            good = true;
    }
    if (bad && good) mark(a, o, BAD);
    return bad && good;
}

void sim_find_copies(sim_lower *lw, sim_frame *frame)
{
    const sim_function *f = frame->function;
    analysis a = {.lw = lw};
    bool changed = true;
    a.marks = sim_alloc(lw->m, f->register_count + 1u);
    for (uint32_t k = 0; k < f->statement_count; k++) look_at(&a, &f->body[k]);
    for (uint32_t r = 0; r < f->register_count; r++)
        if (!(a.marks[r] & (STORED | CHAINED))) a.marks[r] |= BAD;
    while (changed) {
        changed = false;
        for (uint32_t k = 0; k < f->statement_count; k++) changed |= spoils(&a, &f->body[k]);
        for (uint32_t k = 0; k < a.edge_count; k++)
            if (a.marks[a.edges[k].to] & BAD && !(a.marks[a.edges[k].from] & BAD)) {
                a.marks[a.edges[k].from] |= BAD;
                changed = true;
            }
    }
    frame->carriers = a.marks;
    frame->carried = sim_alloc(lw->m, (f->register_count + 1u) * sizeof *frame->carried);
}

/* Marks the access: `operand` is what it loads or stores. The masks follow the slots in the list. */
void sim_lower_copy(sim_lower *lw, sim_ins *i, const sim_operand *operand, bool load)
{
    const sim_frame *frame = lw->frame;
    uint32_t count = operand->kind == O_VECTOR ? operand->count : 1, list;
    if (!frame->carriers) return;
    bool any = false;
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *o = operand->kind == O_VECTOR ? &operand->items[k] : operand;
        bool fit = o->kind == O_SINK
                   || (o->kind == O_REG && o->type != T_PRED && !(frame->carriers[o->reg] & BAD)
                       && frame->carriers[o->reg] & LOADED);
        if (load && !fit) return;
        any |= fit && o->kind == O_REG && !(frame->carriers[o->reg] & CHAINED);
    }
    if (load) i->x |= X_COPY;
    if (!any) return;
    list = i->list;
    if (list + count != lw->k->list_count) { /* other lists have come behind it: a new one */
        list = sim_list_begin(lw, count);
        memcpy(lw->k->lists + list, lw->k->lists + i->list, count * sizeof *lw->k->lists);
        i->list = list;
    }
    uint32_t masks = sim_list_begin(lw, count);
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *o = operand->kind == O_VECTOR ? &operand->items[k] : operand;
        lw->k->lists[masks + k] = UINT32_MAX;
        if (o->kind != O_REG || frame->carriers[o->reg] & (BAD | CHAINED)
            || !(frame->carriers[o->reg] & LOADED))
            continue;
        uint32_t *mask = &frame->carried[o->reg];
        if (!*mask) *mask = sim_temporary(lw, 1);
        lw->k->lists[masks + k] = *mask;
    }
    i->x |= X_COPY | X_MASKS;
}
