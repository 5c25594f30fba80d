/* tensor_memory.c - tensor memory: allocation, tcgen05.ld, st, wait and fences, and the order of accesses.
 *
 * Every tcgen05 instruction is carried out when it is executed. To find accesses that are not ordered, each
 * granule (sixteen lanes of a column) keeps its last access of each kind, with its number among those
 * of its thread (mma, cp, shift) or warp (ld, st). Such numbers are entries of vector clocks (race.h): a commit
 * publishes to its mbarrier how many operations are complete; fence::before_thread_sync adds to a thread's
 * clock what it has waited for; fence::after_thread_sync records what the thread's warp knows then. That record
 * must cover the granule's last access before the next one. Source of the rules: the PTX ISA, "TensorCore 5th
 * Generation Family Instructions", memory consistency model. */
#include "tensor_memory.h"
#include "async.h"
#include "unwritten.h"
#include <stdarg.h>

enum { GROUP_LANES = 16, MOST_PAIRED = 64 };

/* --- the state of a block --------------------------------------------------------------------- */

sim_tensor_memory *sim_tensor_of_block(sim_block *b) {
    sim_tensor_memory *t = b->tensor;
    if (!t && !(t = b->tensor = calloc(1, sizeof *t))) return NULL;
    if (t->used) return t;
    if (t->warp_capacity < b->warp_count) {
        free(t->warp);
        t->warp = calloc(b->warp_count, sizeof *t->warp);
        t->warp_capacity = t->warp ? b->warp_count : 0;
        if (!t->warp) return NULL;
    }
    t->used = true;
    return t;
}

void sim_tensor_begin(sim_block *b) {
    sim_tensor_memory *t = b->tensor;
    if (!t || !t->used) return;
    t->used = t->relinquished = false;
    t->pieces = t->last_size = t->pair_calls = t->pipes = t->allocations = 0;
    memset(t->owner, 0, sizeof t->owner);
    for (uint32_t n = 0; n < t->warp_capacity; n++) {
        sim_clock_forget(&t->warp[n].seen);
        t->warp[n] = (sim_tensor_warp){0};
    }
}

void sim_tensor_free(sim_block *b) {
    sim_tensor_memory *t = b->tensor;
    if (!t) return;
    sim_tensor_begin(b);
    sim_tensor_room_free(t->room);
    free(t->warp);
    free(t->pipe);
    free(t);
    b->tensor = NULL;
}

bool sim_tensor_fault(sim_warp *w, const sim_ins *i, uint32_t lane, const char *kind, const char *format,
                      ...) {
    char text[400];
    va_list a;
    va_start(a, format);
    vsnprintf(text, sizeof text, format, a);
    va_end(a);
    sim_report_at(w, i, kind, lane, "%s", text);
    sim_warp_fault(w, SIM_ERROR_ILLEGAL_INSTRUCTION);
    return false;
}

static sim_tensor_memory *memory_of(sim_warp *w) {
    sim_tensor_memory *t = sim_tensor_of_block(w->block);
    if (!t) sim_warp_fault(w, 2);
    return t;
}

sim_tensor_pipe *sim_tensor_pipe_of(sim_warp *w, uint32_t lane) {
    sim_tensor_memory *t = memory_of(w);
    uint32_t thread = sim_thread_of(w, lane);
    if (!t) return NULL;
    for (uint32_t n = 0; n < t->pipes; n++)
        if (t->pipe[n].thread == thread) return &t->pipe[n];
    if (t->pipes == t->pipe_capacity) {
        uint32_t wanted = t->pipe_capacity * 2 + 4;
        sim_tensor_pipe *grown = realloc(t->pipe, wanted * sizeof *grown);
        if (!grown) {
            sim_warp_fault(w, 2);
            return NULL;
        }
        t->pipe = grown;
        t->pipe_capacity = wanted;
    }
    t->pipe[t->pipes] = (sim_tensor_pipe){.thread = thread};
    return &t->pipe[t->pipes++];
}

sim_tensor_pipe *sim_tensor_issue(sim_warp *w, const sim_ins *i, uint32_t lane) {
    sim_tensor_pipe *p = sim_tensor_pipe_of(w, lane);
    if (p) {
        p->issued++;
        p->last = i;
    }
    return p;
}

uint32_t sim_tensor_counts(sim_warp *w, uint32_t lane, bool commit, sim_clock_entry out[4]) {
    const sim_tensor_memory *t = w->block->tensor;
    const sim_tensor_warp *x = &t->warp[w->index];
    uint32_t n = 0, thread = sim_thread_of(w, lane), issued = 0;
    for (uint32_t k = 0; k < t->pipes; k++)
        if (t->pipe[k].thread == thread) issued = t->pipe[k].issued;
    if (commit) out[n++] = (sim_clock_entry){SIM_COUNT_DONE + thread, issued};
    out[n++] = (sim_clock_entry){SIM_COUNT_ISSUED + thread, issued};
    out[n++] = (sim_clock_entry){SIM_COUNT_LOADED + w->index, x->loads_done};
    out[n++] = (sim_clock_entry){SIM_COUNT_STORED + w->index, x->stores_done};
    return n;
}

/* --- whether an access is ordered after an earlier one ---------------------------------------- */

typedef struct verdict {
    const char *kind, *lacks; /* of a finding; kind NULL: it is ordered */
} verdict;
static const verdict over = {NULL, NULL};

static sim_block *block_of(const sim_warp *w, uint64_t index) {
    const sim_cluster *c = w->block->cluster;
    for (uint32_t r = 0; r < c->size; r++)
        if (c->blocks[r] && sim_block_index(c->blocks[r]) == index) return c->blocks[r];
    return NULL;
}

/* Whether an access of w is ordered after a tcgen05.ld (or st) of some warp. */
static verdict after_warp(const sim_warp *w, const sim_tensor_touch *x, bool load, bool write) {
    const sim_block *b = block_of(w, x->block);
    const sim_tensor_warp *t = b && b->tensor ? &b->tensor->warp[x->unit] : NULL;
    const char *kind = write ? "async-write" : "async-read";
    uint32_t what = (load ? SIM_COUNT_LOADED : SIM_COUNT_STORED) + x->unit;
    if (t && (load ? t->loads_done : t->stores_done) < x->count)
        return (verdict){kind, load ? "no tcgen05.wait::ld has waited for it"
                                    : "no tcgen05.wait::st has waited for it"};
    if ((b == w->block && x->unit == w->index) || !w->launch->races) return over;
    if (sim_clock_seen(w->block->tensor->warp[w->index].seen, x->block, what, x->count)) return over;
    if (sim_clock_knows(w, x->block, what, x->count))
        return (verdict){"missing-fence",
                         "no tcgen05.fence::after_thread_sync follows the synchronisation with it"};
    const sim_record r = {.block = x->block, .ins = x->ins, .era = x->era, .warp = (uint8_t)x->unit};
    for (uint32_t l = 0; l < SIM_LANES; l++)
        if (sim_order_known_of(w->block->race, w->index, l, &r, SIM_FULL))
            return (verdict){"missing-fence",
                             "no tcgen05.fence::before_thread_sync stands between the wait for it "
                             "and the synchronisation"};
    return (verdict){"race", "nothing orders the two"};
}

/* Whether an access of w is ordered after the end of an mma, cp or shift. */
static verdict after_operation(const sim_warp *w, const sim_tensor_touch *x, bool write) {
    const sim_block *b = block_of(w, x->block);
    uint32_t committed = UINT32_MAX;
    for (uint32_t n = 0; b && b->tensor && n < b->tensor->pipes; n++)
        if (b->tensor->pipe[n].thread == x->unit) committed = b->tensor->pipe[n].committed;
    const char *kind = write ? "async-write" : "async-read";
    if (committed < x->count) return (verdict){kind, "no tcgen05.commit follows it"};
    if (!w->launch->races) return over;
    if (sim_clock_seen(w->block->tensor->warp[w->index].seen, x->block, SIM_COUNT_DONE + x->unit, x->count))
        return over;
    if (sim_clock_knows(w, x->block, SIM_COUNT_DONE + x->unit, x->count))
        return (verdict){"missing-fence", "no tcgen05.fence::after_thread_sync follows the wait for its end"};
    return (verdict){kind,
                     "nobody that this thread knows of has waited at the mbarrier of its tcgen05.commit"};
}

/* The same for an operation of a thread of w; `same`: the pipe itself orders it after x. */
static verdict in_line(const sim_warp *w, uint32_t thread, const sim_tensor_touch *x, bool write, bool same) {
    uint64_t own = sim_block_index(w->block);
    if (!same) {
        verdict v = after_operation(w, x, write);
        if (v.kind && x->block == own && x->unit == thread && strcmp(v.kind, "missing-fence"))
            v.lacks = "it is no accumulation of the same shape, so that its end has to be waited for";
        return v;
    }
    if (x->block == own && x->unit == thread) return over;
    if (!w->launch->races) return over;
    const sim_clock_vector *seen = w->block->tensor->warp[w->index].seen;
    if (sim_clock_seen(seen, x->block, SIM_COUNT_ISSUED + x->unit, x->count)
        || sim_clock_seen(seen, x->block, SIM_COUNT_DONE + x->unit, x->count))
        return over;
    if (sim_clock_knows(w, x->block, SIM_COUNT_ISSUED + x->unit, x->count)
        || sim_clock_knows(w, x->block, SIM_COUNT_DONE + x->unit, x->count))
        return (verdict){"missing-fence",
                         "no tcgen05.fence::after_thread_sync follows the synchronisation with it"};
    const sim_record r = {
        .block = x->block, .ins = x->ins, .era = x->era, .warp = (uint8_t)(x->unit / SIM_LANES)};
    if (sim_order_known(w->block->race, w->index, thread % SIM_LANES, &r, x->unit % SIM_LANES))
        return (verdict){"missing-fence", "no tcgen05.fence::before_thread_sync stands between it and the "
                                          "synchronisation"};
    return (verdict){"race", "nothing orders the two"};
}

typedef struct access {
    sim_warp *w;
    const sim_ins *ins;
    uint32_t lane;
    bool writes, reported;
    sim_tensor_touch good[4]; /* by kind: the last one found to be ordered */
} access;

static void tell(access *c, uint32_t column, uint32_t group, const sim_tensor_touch *x, const verdict *v) {
    char place[SIM_LINE_TEXT];
    bool race = !strcmp(v->kind, "race");
    c->reported = true;
    if (race ? !sim_option.races : !sim_option.async) return;
    sim_report_at(c->w, c->ins, v->kind, c->lane,
                  "%s lanes %u to %u of column %u of tensor memory, which the instruction at %s accesses: %s",
                  c->writes ? "writes" : "reads", group * GROUP_LANES, group * GROUP_LANES + GROUP_LANES - 1,
                  column, sim_line_text(c->w->kernel->module, x->ins->line, place), v->lacks);
}

static bool same_touch(const sim_tensor_touch *a, const sim_tensor_touch *b) {
    return a->ins == b->ins && a->count == b->count && a->unit == b->unit && a->block == b->block
           && a->shape == b->shape;
}

enum { WRITTEN, READ, STORED, LOADED };

/* Whether this access still has to be checked; granules often name the same one. */
static bool asks(access *c, const sim_tensor_touch *x, uint32_t sort) {
    if (!x->ins || c->reported || same_touch(x, &c->good[sort])) return false;
    c->good[sort] = *x;
    return true;
}

void sim_tensor_operate(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_tensor_part *p, bool writes,
                        uint32_t shape) {
    sim_tensor_memory *t = sim_tensor_of_block(p->block);
    const sim_tensor_pipe *pipe = sim_tensor_pipe_of(w, lane);
    if (!t || !pipe) return;
    uint32_t thread = sim_thread_of(w, lane);
    bool any = shape == SIM_TENSOR_IN_LINE;
    access c = {.w = w, .ins = i, .lane = lane, .writes = writes};
    sim_tensor_touch now = {.ins = i,
                            .block = sim_block_index(w->block),
                            .count = pipe->issued,
                            .unit = thread,
                            .shape = any ? 0 : shape,
                            .era = w->launch->races ? w->block->race->w[w->index].era : 0};
    for (uint32_t n = p->column; n < p->column + p->columns; n++)
        for (uint32_t g = 0; g < SIM_TENSOR_LANES / GROUP_LANES; g++) {
            if (!(p->groups >> g & 1)) continue;
            sim_granule *x = &t->granule[n][g];
            verdict v = over;
            const sim_tensor_touch *who = NULL;
            if (asks(&c, &x->stored, STORED)) v = after_warp(w, who = &x->stored, false, writes);
            if (!v.kind && writes && asks(&c, &x->loaded, LOADED))
                v = after_warp(w, who = &x->loaded, true, true);
            /* accumulations of one shape are ordered by the pipe, and so are operations after cp and shift */
            if (!v.kind && asks(&c, &x->written, WRITTEN))
                v = in_line(w, thread, who = &x->written, writes,
                            any || x->written.shape == shape || !x->written.shape);
            if (!v.kind && writes && asks(&c, &x->read, READ))
                v = in_line(w, thread, who = &x->read, true, true);
            if (v.kind) tell(&c, n, g, who, &v);
            if (!writes) {
                x->read = now;
                continue;
            }
            x->written = now;
            x->read.ins = x->stored.ins = x->loaded.ins = NULL;
        }
}

/* Checks and records a tcgen05.ld or st of w. */
static void access_by_warp(sim_warp *w, const sim_ins *i, const sim_tensor_part *p, bool writes) {
    sim_tensor_memory *t = w->block->tensor;
    access c = {.w = w, .ins = i, .lane = 0, .writes = writes};
    sim_tensor_touch now = {.ins = i,
                            .block = sim_block_index(w->block),
                            .unit = w->index,
                            .count = writes ? t->warp[w->index].stores : t->warp[w->index].loads,
                            .era = w->launch->races ? w->block->race->w[w->index].era : 0};
    for (uint32_t n = p->column; n < p->column + p->columns; n++)
        for (uint32_t g = 0; g < SIM_TENSOR_LANES / GROUP_LANES; g++) {
            if (!(p->groups >> g & 1)) continue;
            sim_granule *x = &t->granule[n][g];
            verdict v = over;
            const sim_tensor_touch *who = NULL;
            if (asks(&c, &x->written, WRITTEN)) v = after_operation(w, who = &x->written, writes);
            if (!v.kind && writes && asks(&c, &x->read, READ)) v = after_operation(w, who = &x->read, true);
            if (!v.kind && !same_touch(&x->stored, &now) && asks(&c, &x->stored, STORED))
                v = after_warp(w, who = &x->stored, false, writes);
            if (!v.kind && writes && asks(&c, &x->loaded, LOADED))
                v = after_warp(w, who = &x->loaded, true, true);
            if (v.kind) tell(&c, n, g, who, &v);
            *(writes ? &x->stored : &x->loaded) = now;
            if (writes) x->written.ins = x->read.ins = x->loaded.ins = NULL;
        }
}

bool sim_tensor_allocated(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_tensor_part *p) {
    const sim_tensor_memory *t = sim_tensor_of_block(p->block);
    if (!t) {
        sim_warp_fault(w, 2);
        return false;
    }
    if (p->column + p->columns > SIM_TENSOR_COLUMNS)
        return sim_tensor_fault(w, i, lane, "tensor-memory", "columns %u to %u: tensor memory has %d",
                                p->column, p->column + p->columns - 1, SIM_TENSOR_COLUMNS);
    for (uint32_t n = p->column; n < p->column + p->columns; n++) {
        uint8_t o = t->owner[n / SIM_TENSOR_UNIT];
        if (o == TO_ALLOCATED) continue;
        char which[32] = "";
        if (p->block != w->block) snprintf(which, sizeof which, " of block rank %u", p->block->rank);
        return sim_tensor_fault(w, i, lane, "tensor-memory", "columns %u to %u%s: column %u is %s", p->column,
                                p->column + p->columns - 1, which, n,
                                o == TO_FREED ? "freed already" : "not allocated");
    }
    return true;
}

/* --- alloc, dealloc, relinquish_alloc_permit -------------------------------------------------- */

/* Checks that the value is the same in the whole warp. */
static bool uniform(sim_warp *w, const sim_ins *i, uint32_t slot, uint32_t m, const char *what) {
    const uint32_t *v = sim_slot(w, slot);
    uint32_t first = sim_lowest(m);
    SIM_EACH_LANE(l, m)
    if (v[l] != v[first])
        return sim_tensor_fault(w, i, l, "tensor-memory",
                                "%s is 0x%x in this thread and 0x%x in the warp's first", what, v[l],
                                v[first]);
    return true;
}

static bool good_count(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t n) {
    if (n >= 32 && n <= 512 && !(n & (n - 1))) return true;
    return sim_tensor_fault(w, i, lane, "tensor-memory",
                            "%u columns: the number is a power of two from 32 to 512", n);
}

/* Finds columns that are free in both; with a seed at random, else the first. SIM_TENSOR_COLUMNS: none. */
static uint32_t find_columns(const sim_warp *w, const sim_tensor_memory *t, const sim_tensor_memory *other,
                             uint32_t n) {
    uint32_t units = n / SIM_TENSOR_UNIT, found = SIM_TENSOR_COLUMNS, choices = 0;
    for (uint32_t at = 0; at + units <= SIM_TENSOR_COLUMNS / SIM_TENSOR_UNIT; at++) {
        bool free = true;
        for (uint32_t k = at; k < at + units; k++)
            free &= t->owner[k] != TO_ALLOCATED && (!other || other->owner[k] != TO_ALLOCATED);
        if (!free) continue;
        choices++;
        bool take = choices == 1;
        if (w->launch->seed)
            take |=
                sim_chance(w->launch, sim_block_index(w->block), 7000 + t->allocations, at) % choices == 0;
        if (take) found = at * SIM_TENSOR_UNIT;
        if (!w->launch->seed) break;
    }
    return found;
}

static void take_columns(sim_warp *w, const sim_ins *i, sim_tensor_memory *t, uint32_t column, uint32_t n) {
    for (uint32_t k = 0; k < n / SIM_TENSOR_UNIT; k++) t->owner[column / SIM_TENSOR_UNIT + k] = TO_ALLOCATED;
    memset(t->granule[column], 0, n * sizeof t->granule[0]);
    memset(t->written[column], 0, n * sizeof t->written[0]);
    t->piece[t->pieces++] = (sim_tensor_piece){column, n, w->index, i};
    t->allocations++;
}

/* The other block of the pair; NULL after a fault. */
static sim_block *pair_of(sim_warp *w, const sim_ins *i, uint32_t lane) {
    sim_cluster *c = w->block->cluster;
    uint32_t rank = w->block->rank ^ 1;
    if (rank < c->size && c->blocks[rank]) return c->blocks[rank];
    (void)sim_tensor_fault(w, i, lane, "tensor-memory",
                           "cta_group::2 is for pairs of blocks; the cluster has %u block%s", c->size,
                           c->size > 1 ? "s, and this one has no partner" : "");
    return NULL;
}

/* alloc of cta_group::2: the n-th ones of both blocks belong together and get the same columns. */
static bool alloc_pair(sim_warp *w, const sim_ins *i, uint32_t m, uint32_t n, uint32_t *column) {
    sim_block *peer = pair_of(w, i, sim_lowest(m));
    sim_tensor_memory *t = w->block->tensor, *other = peer ? sim_tensor_of_block(peer) : NULL;
    sim_tensor_warp *x = &t->warp[w->index];
    if (!other) return false;
    if (!x->pair_number) {
        x->pair_number = ++t->pair_calls;
        t->pair_sizes[x->pair_number % MOST_PAIRED] = n;
        t->pair_columns[x->pair_number % MOST_PAIRED] = 0;
        w->block->cluster->events++;
    }
    uint32_t k = x->pair_number % MOST_PAIRED;
    if (other->pair_calls < x->pair_number) {
        w->waiting_lanes = m;
        return false;
    }
    if (other->pair_sizes[k] != n)
        return sim_tensor_fault(w, i, sim_lowest(m), "tensor-memory",
                                "%u columns here, and %u in the other block of the pair", n,
                                other->pair_sizes[k]);
    if (!t->pair_columns[k]) {
        *column = find_columns(w, t, other, n);
        if (*column == SIM_TENSOR_COLUMNS) {
            w->waiting_lanes = m;
            return false;
        }
        t->pair_columns[k] = other->pair_columns[k] = *column + 1;
        for (uint32_t u = 0; u < n / SIM_TENSOR_UNIT; u++) /* reserved for the other block */
            other->owner[*column / SIM_TENSOR_UNIT + u] = TO_ALLOCATED;
        w->block->cluster->events++;
    }
    *column = t->pair_columns[k] - 1;
    x->pair_number = 0;
    return true;
}

/* i->a: where the address is written; i->b: the number of columns */
void sim_tcgen05_alloc(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    sim_tensor_memory *t = memory_of(w);
    uint32_t lane = sim_lowest(m), n = sim_slot(w, i->b)[lane], column;
    if (!t) return;
    sim_tensor_warp *x = &t->warp[w->index];
    sim_check_whole_warp(w, i, m);
    if (!x->waits) {
        if (!uniform(w, i, i->b, m, "the number of columns") || !good_count(w, i, lane, n)) return;
        if (t->relinquished && sim_option.async)
            sim_report_at(w, i, "tensor-allocation", lane,
                          "a thread of the block has executed tcgen05.relinquish_alloc_permit before");
        if (t->last_size && n > t->last_size && sim_option.async)
            sim_report_at(
                w, i, "tensor-allocation", lane,
                "%u columns after an allocation of %u: the number must not grow from one to the next", n,
                t->last_size);
        t->last_size = n;
    }
    x->waits = false;
    if (o->group == 2) {
        if (!alloc_pair(w, i, m, n, &column)) {
            x->waits = w->waiting_lanes != 0;
            return;
        }
    } else if ((column = find_columns(w, t, NULL, n)) == SIM_TENSOR_COLUMNS) {
        x->waits = true;
        w->waiting_lanes = m;
        return;
    }
    take_columns(w, i, t, column, n);
    uint64_t at = (o->wide ? sim_slot64(w, i->a)[lane] : sim_slot(w, i->a)[lane]) + (uint64_t)o->d.offset;
    if (i->space == SP_SHARED && !o->wide) at = (uint32_t)at;
    if (at & 3) {
        sim_report_at(w, i, "misaligned", lane, "the address 0x%llx is no multiple of 4",
                      (unsigned long long)at);
        sim_warp_fault(w, SIM_ERROR_MISALIGNED);
        return;
    }
    uint8_t *p = sim_reach(w, i, lane, at, (sim_space)i->space, 4, SIM_WRITE);
    if (p) memcpy(p, &column, 4);
    w->block->cluster->changes++;
}

/* Reports operations that may still access the freed columns, and loads and stores that nothing orders before. */
static void check_freed(sim_warp *w, const sim_ins *i, const sim_tensor_memory *t,
                        const sim_tensor_piece *p) {
    char place[SIM_LINE_TEXT];
    access c = {.w = w};
    for (uint32_t n = p->column; n < p->column + p->count && sim_option.async; n++)
        for (uint32_t g = 0; g < SIM_TENSOR_LANES / GROUP_LANES; g++) {
            const sim_granule *x = &t->granule[n][g];
            const sim_tensor_touch *all[4] = {&x->written, &x->read, &x->stored, &x->loaded};
            for (uint32_t sort = 0; sort < 4; sort++) {
                if (!asks(&c, all[sort], sort)) continue;
                verdict v = sort < STORED ? after_operation(w, all[sort], true)
                                          : after_warp(w, all[sort], sort == LOADED, true);
                if (!v.kind || !strcmp(v.kind, "missing-fence")) continue; /* freeing is no access */
                sim_report_at(
                    w, i, "tensor-allocation", 0,
                    "frees column %u of tensor memory, which the instruction at %s may still access: %s", n,
                    sim_line_text(w->kernel->module, all[sort]->ins->line, place), v.lacks);
                return;
            }
        }
}

/* i->b: the number of columns */
void sim_tcgen05_dealloc(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    sim_tensor_memory *t = memory_of(w);
    uint32_t lane = sim_lowest(m), n = sim_slot(w, i->b)[lane], at;
    if (!t) return;
    sim_check_whole_warp(w, i, m);
    if (!uniform(w, i, o->d.slot, m, "the address") || !uniform(w, i, i->b, m, "the number of columns")
        || !good_count(w, i, lane, n))
        return;
    at = sim_tensor_place(w, &o->d, lane);
    for (uint32_t k = 0; k < t->pieces; k++) {
        sim_tensor_piece p = t->piece[k];
        if (p.column != at || p.count != n) continue;
        check_freed(w, i, t, &p);
        for (uint32_t u = 0; u < n / SIM_TENSOR_UNIT; u++) t->owner[at / SIM_TENSOR_UNIT + u] = TO_FREED;
        t->piece[k] = t->piece[--t->pieces];
        w->block->cluster->events++;
        w->block->cluster->changes++;
        sim_changed(w->launch);
        return;
    }
    uint32_t unit = (at & 0xffff) / SIM_TENSOR_UNIT;
    sim_tensor_fault(w, i, lane, "tensor-memory", "%u columns at 0x%08x are %s", n, at,
                     !(at >> 16) && unit < SIM_TENSOR_COLUMNS / SIM_TENSOR_UNIT && t->owner[unit] == TO_FREED
                         ? "freed already"
                         : "no allocation of this block");
}

void sim_tcgen05_relinquish(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_tensor_memory *t = memory_of(w);
    sim_check_whole_warp(w, i, m);
    if (t) t->relinquished = true;
}

/* --- ld, st ----------------------------------------------------------------------------------- */

/* Lane and column, relative to the address, of register r of thread t of the warp. */
static void cell_of(const sim_tcgen05 *o, uint32_t t, uint32_t r, uint32_t *lane, uint32_t *column) {
    switch (o->shape) {
    case TS_32X32B:
        *lane = t;
        *column = r;
        break;
    case TS_16X64B:
        *lane = (t >> 2) + 8 * (t & 1);
        *column = 2 * r + (t >> 1 & 1);
        break;
    case TS_16X128B:
        *lane = (t >> 2) + 8 * (r & 1);
        *column = 4 * (r >> 1) + (t & 3);
        break;
    case TS_16X256B:
        *lane = (t >> 2) + 8 * (r >> 1 & 1);
        *column = 8 * (r >> 2) + 2 * (t & 3) + (r & 1);
        break;
    default: *lane = t & 15; *column = r;
    }
    if (o->pack) *column *= 2;
    if (o->shape == TS_16X32BX2) *column += (t >> 4) * o->split;
}

/* The number of columns of a load or store. */
static uint32_t columns_of(const sim_tcgen05 *o) {
    uint32_t n = o->regs;
    if (o->shape == TS_16X64B || o->shape == TS_16X128B || o->shape == TS_16X256B) n *= 2;
    return o->pack ? n * 2 : n;
}

typedef struct span {
    uint32_t lane, column;
    sim_tensor_part part[2];
    uint32_t parts;
} span;

static bool span_of(sim_warp *w, const sim_ins *i, uint32_t m, span *s) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    uint32_t first = sim_lowest(m), at = sim_tensor_place(w, &o->d, first), quarter = w->index & 3;
    if (!uniform(w, i, o->d.slot, m, "the address")) return false;
    s->lane = at >> 16;
    s->column = at & 0xffff;
    bool whole = o->shape == TS_32X32B;
    if (s->lane >= SIM_TENSOR_LANES || s->lane / 32 != quarter)
        return sim_tensor_fault(
            w, i, first, "tensor-memory",
            "address 0x%08x: warp %u, number %u of its four, reaches lanes %u to %u, not lane %u", at,
            w->index, quarter, quarter * 32, quarter * 32 + 31, s->lane);
    if (s->lane % (whole ? 32 : 16))
        return sim_tensor_fault(
            w, i, first, "tensor-memory",
            "address 0x%08x: this shape begins at a lane that is a multiple of %u, not at %u", at,
            whole ? 32u : 16u, s->lane);
    s->part[0] = (sim_tensor_part){w->block, s->column, columns_of(o), (whole ? 3u : 1u) << s->lane / 16};
    s->part[1] = s->part[0];
    s->part[1].column += o->split;
    s->parts = o->shape == TS_16X32BX2 ? 2 : 1;
    for (uint32_t k = 0; k < s->parts; k++)
        if (!sim_tensor_allocated(w, i, first, &s->part[k])) return false;
    return true;
}

static bool was_written(const sim_tensor_memory *t, uint32_t lane, uint32_t column) {
    return t->written[column][lane / 32] >> lane % 32 & 1;
}

static uint32_t reduced(const sim_tcgen05 *o, uint32_t a, uint32_t b) {
    bool less;
    if (o->reduce_type == T_F32) {
        float x, y;
        memcpy(&x, &a, 4);
        memcpy(&y, &b, 4);
        if (x != x) return o->nan ? 0x7fffffff : b;
        if (y != y) return o->nan ? 0x7fffffff : a;
        less = x < y || (x == y && a >> 31 > b >> 31);
    } else
        less = o->reduce_type == T_S32 ? (int32_t)a < (int32_t)b : a < b;
    return less == (o->reduce == 1) ? a : b;
}

void sim_tcgen05_ld(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    const uint32_t *list = w->kernel->lists + o->list, *words = w->kernel->lists + o->touched;
    sim_tensor_memory *t = memory_of(w);
    span s;
    sim_check_whole_warp(w, i, m);
    if (!t || !span_of(w, i, m, &s)) return;
    t->warp[w->index].loads++;
    for (uint32_t k = 0; k < s.parts; k++) access_by_warp(w, i, &s.part[k], false);
    uint32_t result[SIM_LANES] = {0};
    for (uint32_t r = 0; r < o->regs; r++) {
        uint32_t *d = sim_slot(w, list[r]), nothing = 0;
        SIM_EACH_LANE(l, m) {
            uint32_t lane, column;
            cell_of(o, l, r, &lane, &column);
            lane += s.lane;
            column += s.column;
            uint32_t v = t->cell[column][lane];
            bool good = was_written(t, lane, column);
            if (o->pack) {
                v = (v & 0xffff) | t->cell[column + 1][lane] << 16;
                good &= was_written(t, lane, column + 1);
            }
            nothing |= (uint32_t)!good << l;
            d[l] = v;
            if (!o->reduce) continue;
            if (o->abs) v &= 0x7fffffff;
            result[l] = r ? reduced(o, result[l], v) : v;
        }
        if (SIM_UNLIKELY(nothing) && sim_option.uninitialised) {
            uint32_t lane, column;
            cell_of(o, sim_lowest(nothing), r, &lane, &column);
            sim_unwritten_cells(w, i, list[r], nothing, (s.lane + lane) << 16 | (s.column + column));
        }
        if (words[r] != UINT32_MAX) w->watch[words[r]] = t->warp[w->index].loads;
    }
    if (!o->reduce) return;
    SIM_EACH_LANE(l, m) sim_slot(w, o->result)[l] = result[l];
    if (words[o->regs] != UINT32_MAX) w->watch[words[o->regs]] = t->warp[w->index].loads;
}

void sim_tcgen05_st(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    const uint32_t *list = w->kernel->lists + o->list;
    sim_tensor_memory *t = memory_of(w);
    span s;
    sim_check_whole_warp(w, i, m);
    if (!t || !span_of(w, i, m, &s)) return;
    t->warp[w->index].stores++;
    for (uint32_t k = 0; k < s.parts; k++) access_by_warp(w, i, &s.part[k], true);
    for (uint32_t r = 0; r < o->regs; r++) {
        const uint32_t *v = sim_slot(w, list[r]);
        SIM_EACH_LANE(l, m) {
            uint32_t lane, column;
            cell_of(o, l, r, &lane, &column);
            lane += s.lane;
            column += s.column;
            t->cell[column][lane] = o->pack ? v[l] & 0xffff : v[l];
            t->written[column][lane / 32] |= 1u << lane % 32;
            if (!o->pack) continue;
            t->cell[column + 1][lane] = v[l] >> 16;
            t->written[column + 1][lane / 32] |= 1u << lane % 32;
        }
    }
}

/* An instruction accesses a register that a tcgen05.ld may still load. */
void sim_tensor_register(sim_warp *w, const sim_ins *i, const sim_watch_entry *e, uint32_t m) {
    const sim_tensor_memory *t = w->block->tensor;
    if (i->fn == sim_tcgen05_ld || !t || !t->used || !sim_option.registers) return;
    if (w->watch[e->watched] <= t->warp[w->index].loads_done) return;
    w->watch[e->watched] = 0;
    sim_report_at(
        w, i, "async-read", sim_lowest(m),
        "register '%s' is %s while a tcgen05.ld may still load it: no tcgen05.wait::ld has waited for it",
        e->name ? e->name : "?", e->write ? "written" : "read");
}

/* i->op: 0 wait::ld, 1 wait::st */
void sim_tcgen05_wait(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_tensor_memory *t = memory_of(w);
    sim_check_whole_warp(w, i, m);
    if (!t) return;
    sim_tensor_warp *x = &t->warp[w->index];
    if (i->op)
        x->stores_done = x->stores;
    else
        x->loads_done = x->loads;
}

/* i->op: 0 before_thread_sync, 1 after_thread_sync */
void sim_tcgen05_fence(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_tensor_memory *t = memory_of(w);
    sim_clock_entry c[4];
    if (!t) return;
    if (i->op) {
        sim_clock_see(w, m, &t->warp[w->index].seen);
        return;
    }
    SIM_EACH_LANE(l, m) {
        uint32_t n = sim_tensor_counts(w, l, false, c);
        sim_clock_note(w, l, c, n);
    }
}

/* --- the end of a block ----------------------------------------------------------------------- */

/* Whether any warp of the cluster knows that all operations of this thread are complete. */
static bool waited_for(const sim_block *b, const sim_tensor_pipe *p) {
    const sim_cluster *c = b->cluster;
    uint64_t index = sim_block_index(b);
    for (uint32_t r = 0; r < c->size; r++)
        for (uint32_t n = 0; n < c->blocks[r]->warp_count; n++)
            if (sim_clock_knows(&c->blocks[r]->warps[n], index, SIM_COUNT_DONE + p->thread, p->issued))
                return true;
    return false;
}

void sim_tensor_leave(sim_block *b) {
    const sim_tensor_memory *t = b->tensor;
    if (!t || !t->used || !sim_option.async) return;
    for (uint32_t n = 0; n < t->pieces; n++)
        sim_report_at(&b->warps[t->piece[n].warp], t->piece[n].ins, "tensor-allocation", 0,
                      "the block ends, and no tcgen05.dealloc has freed the %u columns at %u",
                      t->piece[n].count, t->piece[n].column);
    for (uint32_t n = 0; n < t->pipes; n++) {
        const sim_tensor_pipe *p = &t->pipe[n];
        bool open = p->committed < p->issued;
        if (!p->issued || (!open && (!b->launch->races || waited_for(b, p)))) continue;
        sim_report_at(
            &b->warps[p->thread / SIM_LANES], p->last, "async-unwaited", p->thread % SIM_LANES, "%s",
            open ? "the block ends, and no tcgen05.commit follows this"
                 : "the block ends, and nobody has waited at the mbarrier of the tcgen05.commit for this");
    }
}

void sim_tensor_describe(const sim_warp *w, const sim_ins *i, char *out, size_t size) {
    const sim_tcgen05 *o = sim_tcgen05_of(i);
    const sim_tensor_memory *t = w->block->tensor;
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->pieces; k++) n += t->piece[k].count;
    if (o->group == 2 && t->warp[w->index].pair_number)
        snprintf(out, size,
                 "the other block of the pair does not execute its tcgen05.alloc, or %u columns are not "
                 "free in both",
                 sim_slot(w, i->b)[0]);
    else
        snprintf(out, size, "%u columns of tensor memory are wanted here, and %u of %d are allocated",
                 sim_slot(w, i->b)[0], n, SIM_TENSOR_COLUMNS);
}
