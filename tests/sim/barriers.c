/* barriers.c - faults at block barriers (counts, kinds, threads that miss them), and spinning that never ends.
 *
 * A thread that exits no longer counts, so `if (tid >= n) return;` before a barrier is legal and not reported.
 * Reported is a warp (`barrier-exit`), or a lane of a warp that executes an aligned barrier
 * (`barrier-divergence`), that went around the barrier: it exited after it had executed code behind the barrier,
 * other than the way out of the kernel. Code is behind a barrier if the barrier can lead to it and it cannot lead
 * back to the barrier. Its entries, where control flow reaches it, are marked once for each kernel; lanes that
 * execute one are recorded by barrier and warp. */
#include "race.h"

/* --- the code behind a barrier, once for each kernel ------------------------------------------- */

enum { MOST_STEPS = 1 << 24 };
enum { FROM_START = 1, FROM_BARRIER = 2, TO_BARRIER = 4 };

struct sim_past_barrier { uint32_t code, site; };    /* an entry (pc) of the code behind that barrier */

/* Control flow graph: the successors of pc are next[first[pc]] up to next[first[pc + 1]]. */
typedef struct flow_graph { uint32_t *first, *next; } flow_graph;

static bool aligned_barrier(const sim_ins *i)
{
    return i->x & X_ALIGNED && (i->flow == F_BARRIER || i->flow == F_ARRIVE || i->flow == F_WAIT);
}

static const sim_routine *routine_of(const sim_kernel *k, uint32_t pc)
{
    const sim_routine *best = NULL;
    for (uint32_t r = 0; r < k->routine_count; r++)
        if (k->routines[r].pc <= pc && (!best || k->routines[r].pc > best->pc)) best = &k->routines[r];
    return best;
}

/* Writes at most code_count + 2 successors of pc to out. A return leads to the code after each call. */
static uint32_t followers(const sim_kernel *k, uint32_t pc, uint32_t *out)
{
    const sim_ins *i = &k->code[pc];
    uint32_t n = 0;
    bool jumps = i->flow == F_BRANCH || i->flow == F_INDEXED || (i->flow == F_CALL && !i->op);
    if (jumps && i->imm >= 0 && (uint64_t)i->imm < k->code_count) out[n++] = (uint32_t)i->imm;
    if (i->flow == F_RETURN) {
        const sim_routine *r = routine_of(k, pc);
        for (uint32_t c = 0; r && c + 1 < k->code_count; c++)
            if (k->code[c].flow == F_CALL && (k->code[c].op || k->code[c].imm == r->pc)) out[n++] = c + 1;
    }
    bool ends = i->flow == F_BRANCH || i->flow == F_EXIT || i->flow == F_RETURN || i->flow == F_TRAP;
    if ((!ends || i->guard) && pc + 1 < k->code_count) out[n++] = pc + 1;
    return n;
}

static bool make_graph(const sim_kernel *k, flow_graph *g, bool backwards)
{
    uint32_t *out = malloc((k->code_count + 2u) * sizeof *out), edges = 0;
    g->first = calloc(k->code_count + 2u, sizeof *g->first);
    g->next = NULL;
    for (int pass = 0; pass < 2 && out && g->first; pass++) {
        for (uint32_t pc = 0; pc < k->code_count; pc++) {
            uint32_t n = followers(k, pc, out);
            for (uint32_t e = 0; e < n; e++) {
                uint32_t from = backwards ? out[e] : pc, to = backwards ? pc : out[e];
                if (!pass) { g->first[from + 2]++; edges++; }
                else g->next[g->first[from + 1]++] = to;
            }
        }
        if (pass) break;
        for (uint32_t pc = 0; pc < k->code_count; pc++) g->first[pc + 2] += g->first[pc + 1];
        if (!(g->next = malloc((edges + 1u) * sizeof *g->next))) break;
    }
    free(out);
    return g->next != NULL;
}

static void mark_reachable(const sim_kernel *k, const flow_graph *g, uint32_t start, uint32_t around, uint8_t bit,
                           uint8_t *seen, uint32_t *stack)
{
    uint32_t depth = 0;
    stack[depth++] = start;
    seen[start] |= bit;
    while (depth) {
        uint32_t pc = stack[--depth];
        if (pc == around && !k->code[pc].guard) continue;
        for (uint32_t e = g->first[pc]; e < g->first[pc + 1]; e++) {
            uint32_t to = g->next[e];
            if (!(seen[to] & bit)) { seen[to] |= bit; stack[depth++] = to; }
        }
    }
}

static bool has_effect(const sim_ins *i)
{
    return i->last && i->flow != F_EXIT && i->flow != F_BRANCH && i->flow != F_RETURN && i->cls != C_MOVE;
}

/* Marks the entries of the code behind a barrier, if a thread can reach it without the barrier or by leaving a loop
 * that contains the barrier. */
static bool mark_bypass_entries(sim_kernel *k, const flow_graph *g, const flow_graph *back, uint32_t site,
                                uint8_t *seen, uint32_t *stack, uint32_t *capacity)
{
    uint32_t pc = k->barrier_sites[site];
    memset(seen, 0, k->code_count);
    mark_reachable(k, g, k->entry, pc, FROM_START, seen, stack);
    if (pc + 1 < k->code_count) mark_reachable(k, g, pc + 1, UINT32_MAX, FROM_BARRIER, seen, stack);
    bool loop = seen[pc] & FROM_BARRIER, known = false;
    mark_reachable(k, back, pc, UINT32_MAX, TO_BARRIER, seen, stack);
    for (uint32_t c = 0; c < k->code_count; c++) {
        bool past_barrier = seen[c] & FROM_BARRIER && !(seen[c] & TO_BARRIER) && (loop || seen[c] & FROM_START);
        bool straight = c && back->first[c + 1] - back->first[c] == 1 && back->next[back->first[c]] == c - 1;
        if (!past_barrier || !straight) known = false;              /* known: its only predecessor is marked */
        if (!past_barrier || known || !has_effect(&k->code[c])) continue;
        known = true;
        if (k->past_barrier_count == *capacity) {
            uint32_t wanted = *capacity ? *capacity * 2 : 16;
            struct sim_past_barrier *grown = realloc(k->past_barrier, wanted * sizeof *grown);
            if (!grown) return false;
            k->past_barrier = grown;
            *capacity = wanted;
        }
        k->past_barrier[k->past_barrier_count++] = (struct sim_past_barrier){ c, site };
    }
    return true;
}

static int by_code(const void *a, const void *b)
{
    const struct sim_past_barrier *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

/* Finds the code behind each aligned barrier. i->type of a block barrier becomes its number mod 64. */
void sim_barriers_prepare(sim_kernel *k)
{
    uint32_t count = 0, sites = 0, capacity = 0, returns = 0;
    for (uint32_t pc = 0; pc < k->code_count; pc++) {
        returns += k->code[pc].flow == F_RETURN;
        if (k->code[pc].flow == F_BARRIER) k->code[pc].type = count++ & 63;
        sites += aligned_barrier(&k->code[pc]);
    }
    if (!sites || (uint64_t)returns * k->code_count > MOST_STEPS) return;
    flow_graph g = { NULL, NULL }, back = { NULL, NULL };
    uint8_t *seen = malloc(k->code_count + 1u);
    uint32_t *stack = malloc((k->code_count + 1u) * sizeof *stack);
    k->barrier_sites = malloc(sites * sizeof *k->barrier_sites);
    bool good = seen && stack && k->barrier_sites && make_graph(k, &g, false) && make_graph(k, &back, true);
    for (uint32_t pc = 0; pc < k->code_count && good; pc++) {
        if (!aligned_barrier(&k->code[pc])) continue;
        if ((uint64_t)(k->barrier_site_count + 1) * k->code_count > MOST_STEPS) break;
        k->barrier_sites[k->barrier_site_count++] = pc;
        good = mark_bypass_entries(k, &g, &back, k->barrier_site_count - 1, seen, stack, &capacity);
    }
    if (k->past_barrier_count) qsort(k->past_barrier, k->past_barrier_count, sizeof *k->past_barrier, by_code);
    for (uint32_t n = k->past_barrier_count; n-- > 0;) {
        k->code[k->past_barrier[n].code].past_barrier = n + 1;
        k->code[k->past_barrier[n].code].watch |= SIM_WATCH_PAST_BARRIER;
    }
    if (!k->past_barrier_count) k->barrier_site_count = 0;
    free(g.first); free(g.next); free(back.first); free(back.next);
    free(seen);
    free(stack);
}

/* These lanes execute an entry of the code behind one or more barriers. */
void sim_pass_barriers(sim_warp *w, const sim_ins *i, uint32_t lanes)
{
    const sim_kernel *k = w->kernel;
    uint32_t code = (uint32_t)(i - k->code);
    for (uint32_t n = i->past_barrier - 1; n < k->past_barrier_count && k->past_barrier[n].code == code; n++)
        w->block->past_barrier[(size_t)k->past_barrier[n].site * w->block->warp_count + w->index] |= lanes;
}

/* By warp: the lanes that have executed code behind this barrier; NULL: it has no such code. */
static uint32_t *lanes_past_barrier(const sim_block *b, const sim_ins *barrier)
{
    const sim_kernel *k = b->launch->kernel;
    uint32_t code = (uint32_t)(barrier - k->code), low = 0, high = k->barrier_site_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (k->barrier_sites[mid] < code) low = mid + 1; else high = mid;
    }
    return low < k->barrier_site_count && k->barrier_sites[low] == code ? b->past_barrier + (size_t)low * b->warp_count
                                                                      : NULL;
}

/* Lanes of the warp that went around this barrier and exited; each is returned once. */
uint32_t sim_lanes_that_bypassed(const sim_warp *w, const sim_ins *barrier)
{
    uint32_t *past_barrier = lanes_past_barrier(w->block, barrier),
             around = past_barrier ? past_barrier[w->index] & ~w->live : 0;
    if (around) past_barrier[w->index] &= ~around;                  /* reported once */
    return around;
}

/* --- arriving and leaving --------------------------------------------------------------------- */

/* The last use of a barrier, with the record of a warp that took part. */
struct sim_barrier_use { const sim_ins *ins; uint32_t expected; sim_record record; };

void sim_barriers_begin(sim_block *b) { if (b->uses) memset(b->uses, 0, 16 * sizeof *b->uses); }

static void record_use(sim_block *b, uint32_t id, uint32_t all)
{
    const sim_barrier *s = &b->barriers[id];
    if (!b->launch->races || (!b->uses && !(b->uses = calloc(16, sizeof *b->uses)))) return;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (!b->barrier_masks[id * b->warp_count + n]) continue;
        b->uses[id] = (struct sim_barrier_use){ s->first, s->expected ? s->expected : all,
            { .block = b->race->index, .ins = s->first, .era = b->race->w[n].era, .warp = (uint8_t)n } };
        return;
    }
}

/* Reports a use whose thread count differs from the last one's if nothing orders the two: they may overlap. */
static void check_use(sim_warp *w, const sim_ins *i, uint32_t id, uint32_t lane, uint32_t expected)
{
    const sim_block *b = w->block;
    const struct sim_barrier_use *last = b->uses ? &b->uses[id] : NULL;
    char place[SIM_LINE_TEXT];
    if (!last || !last->ins || last->expected == expected || !w->launch->races) return;
    for (uint32_t l = 0; l < SIM_LANES; l++)
        if (sim_order_known(b->race, w->index, lane, &last->record, l)) return;
    sim_report_at(w, i, "barrier-count", lane,
                  "barrier %u waits for %u threads here and for %u at %s, and nothing orders the two", id, expected,
                  last->expected, sim_line_text(w->kernel->module, last->ins->line, place));
}

void sim_barrier_arrives(sim_warp *w, const sim_ins *i, uint32_t id, uint32_t mask)
{
    sim_block *b = w->block;
    sim_barrier *s = &b->barriers[id];
    char place[SIM_LINE_TEXT];
    uint32_t lane = sim_lowest(mask), all = b->warp_count * SIM_LANES;
    uint32_t expected = i->count ? sim_slot(w, i->b)[lane] : 0;
    if (i->flow == F_BARRIER) w->passed |= UINT64_C(1) << i->type;
    if (!sim_option.barriers) { s->first = i; return; }
    if (expected % SIM_LANES)
        sim_report_at(w, i, "barrier-count", lane, "the count is %u, which is no multiple of %d", expected,
                      SIM_LANES);
    else if (i->count && (!expected || expected > all))
        sim_report_at(w, i, "barrier-count", lane, "the count is %u, but the block has %u threads", expected,
                      w->launch->threads);
    if (!s->first) {
        check_use(w, i, id, lane, expected ? expected : all);
        s->first = i;
        return;
    }
    if ((expected ? expected : all) != (s->expected ? s->expected : all))
        sim_report_at(w, i, "barrier-count", lane,
                      "barrier %u waits for %u threads here and for %u since %s", id,
                      expected ? expected : all, s->expected ? s->expected : all,
                      sim_line_text(w->kernel->module, s->first->line, place));
    if (i != s->first && sim_option.barrier_places && i->x & s->first->x & X_ALIGNED && !i->count
        && !s->first->count && i->flow == F_BARRIER && i->op == s->first->op)
        sim_report_at(w, i, "barrier-place", lane,
                      "barrier %u of all threads is reached here, and by other warps at %s", id,
                      sim_line_text(w->kernel->module, s->first->line, place));
    if ((i->op != 0) != (s->first->op != 0))
        sim_report_at(w, i, "barrier-mix", lane,
                      "barrier %u is met with .red on one side and without it at %s", id,
                      sim_line_text(w->kernel->module, s->first->line, place));
    if (b->barrier_masks[id * b->warp_count + w->index] & mask)
        sim_report_at(w, i, "barrier-count", lane,
                      "the thread arrives at barrier %u again before it is complete", id);
}

/* Called before the warps that wait at the barrier go on: reports warps that went around it. */
void sim_barrier_complete(sim_block *b, uint32_t id)
{
    const sim_ins *i = b->barriers[id].first;
    const uint32_t *past_barrier = i && sim_option.barriers ? lanes_past_barrier(b, i) : NULL;
    if (i && sim_option.barriers) record_use(b, id, b->warp_count * SIM_LANES);
    if (!past_barrier || i->count) return;
    sim_warp *here = NULL;
    uint32_t missed = 0, which = 0;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (b->warps[n].live) { if (!here) here = &b->warps[n]; continue; }
        if (!past_barrier[n] || b->warps[n].passed >> i->type & 1) continue;
        if (!missed++) which = n;
    }
    if (missed && here)
        sim_report_at(here, i, "barrier-exit", sim_lowest(here->live),
                      "%u warp%s (the first: %u) went around this barrier and exited", missed,
                      missed == 1 ? "" : "s", which);
}

/* The instruction that a spinning path waits at: the next memory access or barrier. */
static const sim_ins *next_wait(const sim_kernel *k, uint32_t pc)
{
    const sim_ins *here = &k->code[pc];
    for (uint32_t n = 0; n < 64 && pc < k->code_count; n++) {
        const sim_ins *i = &k->code[pc];
        if (i->cls == C_MEMORY || i->flow == F_BARRIER) return i;
        pc = i->flow == F_BRANCH && i->imm >= 0 && i->imm <= (int64_t)pc ? (uint32_t)i->imm : pc + 1;
    }
    return here;
}

/* "line 12 (3 warps), line 40 (1 warp)": where the block's warps are. */
void sim_where_text(const sim_block *b, char *out, size_t cap)
{
    uint32_t lines[12], warps[12], n = 0;
    size_t length = 0;
    *out = 0;
    for (uint32_t x = 0; x < b->warp_count; x++)
        for (uint32_t k = 0; k < b->warps[x].path_count; k++) {
            uint32_t line = next_wait(b->launch->kernel, b->warps[x].paths[k].pc)->line, at = 0;
            while (at < n && lines[at] != line) at++;
            if (at == n && n == 12) continue;
            if (at == n) { lines[n] = line; warps[n++] = 0; }
            warps[at]++;
        }
    for (uint32_t k = 0; k < n && length + 40 < cap; k++) {
        char place[SIM_LINE_TEXT];
        int more = snprintf(out + length, cap - length, "%s%s (%u warp%s)", k ? ", " : "",
                            sim_line_text(b->launch->kernel->module, lines[k], place), warps[k],
                            warps[k] == 1 ? "" : "s");
        length = length + (size_t)more < cap ? length + (size_t)more : cap - 1;
    }
}

/* --- spinning for ever ------------------------------------------------------------------------ */

/* A launch in which no block has ended for a while is suspected. From then on, events that change memory, complete
 * a barrier, exit or start a block are counted, and each warp's state is compared with an earlier one. If every
 * warp that does not wait at a barrier returns to an earlier state (paths, registers and open calls), and no event
 * was counted between, the launch will repeat for ever. A loop that counts its iterations or reads a clock never
 * repeats: the watchdog ends it. */

enum { SUSPECT_NS = 400000000, UNCHANGED_ROUNDS = 256 };

static uint64_t state_of(const sim_warp *w)
{
    const uint32_t *r = w->bank[0];
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t k = 0, n = (size_t)w->kernel->reg_slots * SIM_LANES; k < n; k++) {
        h = (h ^ r[k]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (uint32_t k = 0; k < w->kernel->preds; k++) {
        h = (h ^ w->p[k]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 31;
    }
    if (w->calls)                                             /* return addresses of open calls */
        SIM_EACH_LANE(l, w->live) {
            const sim_lane_stack *s = &w->calls[l];
            for (uint32_t k = 0; k < s->used; k++) {
                h = (h ^ s->words[k]) * UINT64_C(0x9e3779b97f4a7c15);
                h ^= h >> 30;
            }
            h = (h ^ s->used) * UINT64_C(0xbf58476d1ce4e5b9);
        }
    uint64_t paths = w->live;
    for (uint32_t k = 0; k < w->path_count; k++)              /* a sum: independent of their order */
        paths += (((uint64_t)w->paths[k].pc << 34) ^ ((uint64_t)w->paths[k].state << 32) ^ w->paths[k].mask)
                 * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ paths;
}

void sim_spin_watch(sim_launch *l)
{
    uint64_t now = sim_now_ns(), then = atomic_load_explicit(&l->suspect_ns, memory_order_relaxed);
    if (!then) atomic_store_explicit(&l->suspect_ns, now + SUSPECT_NS, memory_order_relaxed);
    else if (now > then) atomic_store_explicit(&l->suspect, true, memory_order_relaxed);
}

static bool is_waiting(const sim_warp *w)
{
    for (uint32_t k = 0; k < w->path_count; k++) if (w->paths[k].state != P_BARRIER) return false;
    return true;
}

/* After a round: whether every warp of the block repeats a state since the last event. */
static bool block_repeats(sim_block *b)
{
    uint64_t changes = atomic_load(&b->launch->changes);
    bool all = true;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        sim_warp *w = &b->warps[n];
        if (!w->path_count) continue;
        if (is_waiting(w)) { w->spin_changes = 0; continue; }
        uint64_t state = state_of(w);
        bool fresh = w->spin_changes != changes + 1;
        if (fresh) w->spin_repeats = false;
        else if (w->spin_state == state && w->turns != w->spin_turns) w->spin_repeats = true; /* it has run since */
        if (fresh || (!w->spin_repeats && ++w->spin_age >= w->spin_limit)) {
            w->spin_limit = fresh ? 2 : w->spin_limit * 2;    /* doubled: finds cycles of any length */
            w->spin_state = state;
            w->spin_turns = w->turns;
            w->spin_changes = changes + 1;
            w->spin_age = 0;
        }
        all &= w->spin_repeats;
    }
    return all;
}

/* Whether the launch will never end; if so, reports it and ends it. */
bool sim_check_endless_spin(sim_block *b)
{
    sim_launch *l = b->launch;
    if (!atomic_load_explicit(&l->suspect, memory_order_relaxed)) return false;
    uint64_t changes = atomic_load(&l->changes) + 1;
    if (b->unchanged_since != changes) {                           /* compare only after rounds without an event */
        b->unchanged_since = changes;
        b->unchanged_rounds = 0;
    }
    if (b->unchanged_rounds < UNCHANGED_ROUNDS) { b->unchanged_rounds++; b->quiet = 0; return false; }
    b->quiet = block_repeats(b) ? changes : 0;
    if (!b->quiet) return false;
    sim_worker *w = b->worker;
    for (uint32_t n = 0; n < w->open; n++) if (w->blocks[n]->quiet != changes) return false;
    if (!sim_all_begun(l) && w->open < l->resident_limit) return false;
    atomic_store(&l->quiet[w->index], changes);
    for (uint32_t n = 0; n < l->workers; n++) {
        uint64_t q = atomic_load(&l->quiet[n]);
        bool waiting_lanes = q == UINT64_MAX && sim_all_begun(l);
        if (!waiting_lanes && q != changes) return false;
    }
    if (atomic_load(&l->changes) + 1 != changes) return false;
    char where[400];
    int none = 0;
    if (!atomic_compare_exchange_strong(&l->error, &none, SIM_ERROR_TIMEOUT)) return true;
    sim_where_text(b, where, sizeof where);
    sim_warp *at = &b->warps[0];
    for (uint32_t n = b->warp_count; n-- > 0;) if (b->warps[n].path_count) at = &b->warps[n];
    sim_report_at(at, next_wait(at->kernel, at->paths[0].pc), "deadlock", sim_lowest(at->paths[0].mask),
                  "all threads that are left wait for memory that nobody changes, or for them: %s", where);
    return true;
}

