/* barriers.c - what is wrong at block barriers: counts, kinds, threads that go around them, who waits where;
 * and spinning that can never end.
 *
 * A warp that exits no longer counts, so `if (tid >= n) return;` before a barrier is legal and silent. What
 * is told (`barrier-exit`) is a warp that never came to the barrier although it executed code that the others
 * execute after it: code that only follows the barrier, other than leaving the kernel. */
#include "race.h"

/* --- which barriers can be gone around, once for each kernel ---------------------------------- */

enum { FROM_START = 1, FROM_BARRIER = 2, TO_BARRIER = 4 };
enum { MOST_STEPS = 1 << 24 };

/* The instructions that may follow pc. */
static uint32_t followers(const sim_kernel *k, uint32_t pc, uint32_t out[2])
{
    const sim_ins *i = &k->code[pc];
    uint32_t n = 0;
    bool jumps = i->flow == F_BRANCH || i->flow == F_INDEXED;
    if (jumps && i->imm >= 0 && (uint64_t)i->imm < k->code_count) out[n++] = (uint32_t)i->imm;
    bool ends = i->flow == F_BRANCH || i->flow == F_EXIT || i->flow == F_RETURN;
    if ((!ends || i->guard) && pc + 1 < k->code_count) out[n++] = pc + 1;
    return n;
}

static void flood(const sim_kernel *k, uint32_t start, uint32_t around, uint8_t bit, uint8_t *seen,
                  uint32_t *stack)
{
    uint32_t depth = 0, next[2];
    if (start >= k->code_count) return;
    stack[depth++] = start;
    seen[start] |= bit;
    while (depth) {
        uint32_t pc = stack[--depth], n;
        if (pc == around && !k->code[pc].guard) continue;
        n = followers(k, pc, next);
        while (n--) if (!(seen[next[n]] & bit)) { seen[next[n]] |= bit; stack[depth++] = next[n]; }
    }
}

static bool can_be_missed(const sim_kernel *k, uint32_t barrier, uint8_t *seen, uint32_t *stack)
{
    uint32_t next[2];
    memset(seen, 0, k->code_count);
    flood(k, k->entry, barrier, FROM_START, seen, stack);
    flood(k, barrier + 1, UINT32_MAX, FROM_BARRIER, seen, stack);
    seen[barrier] |= TO_BARRIER;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t pc = k->code_count; pc-- > 0;) {
            if (seen[pc] & TO_BARRIER) continue;
            for (uint32_t n = followers(k, pc, next); n--;)
                if (seen[next[n]] & TO_BARRIER) { seen[pc] |= TO_BARRIER; more = true; break; }
        }
    }
    for (uint32_t pc = 0; pc < k->code_count; pc++)
        if (seen[pc] == (FROM_START | FROM_BARRIER) && k->code[pc].last && k->code[pc].flow != F_EXIT
            && k->code[pc].flow != F_BRANCH && k->code[pc].cls != C_MOVE)
            return true;
    return false;
}

/* Leaves in i->type the barrier's number and in i->width whether it can be gone around. */
void sim_barriers_prepare(sim_kernel *k)
{
    uint32_t count = 0;
    uint8_t *seen = malloc(k->code_count + 1);
    uint32_t *stack = malloc((k->code_count + 1) * sizeof *stack);
    for (uint32_t pc = 0; pc < k->code_count && seen && stack; pc++) {
        sim_ins *i = &k->code[pc];
        if (i->flow != F_BARRIER) continue;
        i->type = count++ & 63;
        if ((uint64_t)count * k->code_count > MOST_STEPS) break;
        i->width = !i->count && can_be_missed(k, pc, seen, stack);
    }
    free(seen);
    free(stack);
}

/* --- arriving and leaving --------------------------------------------------------------------- */

void sim_barrier_arrives(sim_warp *w, const sim_ins *i, uint32_t id, uint32_t mask)
{
    sim_block *b = w->block;
    sim_barrier *s = &b->barriers[id];
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
    if (!s->first) { s->first = i; return; }
    if ((expected ? expected : all) != (s->expected ? s->expected : all))
        sim_report_at(w, i, "barrier-count", lane,
                      "barrier %u waits for %u threads here and for %u since line %u", id,
                      expected ? expected : all, s->expected ? s->expected : all, s->first->line);
    if (i != s->first && sim_option.barrier_places && i->x & s->first->x & X_ALIGNED && !i->count
        && !s->first->count && i->flow == F_BARRIER && i->op == s->first->op)
        sim_report_at(w, i, "barrier-place", lane,
                      "barrier %u of all threads is reached here, and by other warps at line %u", id,
                      s->first->line);
    if ((i->op != 0) != (s->first->op != 0))
        sim_report_at(w, i, "barrier-mix", lane,
                      "barrier %u is met with .red on one side and without it at line %u", id,
                      s->first->line);
    if (b->barrier_masks[id * b->warp_count + w->index] & mask)
        sim_report_at(w, i, "barrier-count", lane,
                      "the thread arrives at barrier %u again before it is complete", id);
}

/* Before the warps that wait at the barrier go on. */
void sim_barrier_complete(sim_block *b, uint32_t id)
{
    const sim_ins *i = b->barriers[id].first;
    if (!i || !i->width || !sim_option.barriers) return;
    sim_warp *here = NULL;
    uint32_t missed = 0, which = 0;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (b->warps[n].live) { if (!here) here = &b->warps[n]; continue; }
        if (b->warps[n].passed >> i->type & 1) continue;
        if (!missed++) which = n;
    }
    if (missed && here)
        sim_report_at(here, i, "barrier-exit", sim_lowest(here->live),
                      "%u warp%s (the first: %u) went around this barrier and exited", missed,
                      missed == 1 ? "" : "s", which);
}

/* The instruction that a path of a spinning warp waits with: the next one that touches memory. */
static const sim_ins *awaited(const sim_kernel *k, uint32_t pc)
{
    const sim_ins *here = &k->code[pc];
    for (uint32_t n = 0; n < 64 && pc < k->code_count; n++) {
        const sim_ins *i = &k->code[pc];
        if (i->cls == C_MEMORY || i->flow == F_BARRIER) return i;
        pc = i->flow == F_BRANCH && i->imm >= 0 && i->imm <= (int64_t)pc ? (uint32_t)i->imm : pc + 1;
    }
    return here;
}

/* "line 12 (3 warps), line 40 (1 warp)": where the warps of a block are. */
void sim_where_text(const sim_block *b, char *out, size_t cap)
{
    uint32_t lines[12], warps[12], n = 0;
    size_t length = 0;
    *out = 0;
    for (uint32_t x = 0; x < b->warp_count; x++)
        for (uint32_t k = 0; k < b->warps[x].path_count; k++) {
            uint32_t line = awaited(b->launch->kernel, b->warps[x].paths[k].pc)->line, at = 0;
            while (at < n && lines[at] != line) at++;
            if (at == n && n == 12) continue;
            if (at == n) { lines[n] = line; warps[n++] = 0; }
            warps[at]++;
        }
    for (uint32_t k = 0; k < n && length + 40 < cap; k++)
        length += (size_t)snprintf(out + length, cap - length, "%sline %u (%u warp%s)", k ? ", " : "",
                                   lines[k], warps[k], warps[k] == 1 ? "" : "s");
}

/* --- spinning for ever ------------------------------------------------------------------------ */

/* A launch in which no block has finished for a while is suspected. From then on what changes memory,
 * completes a barrier, exits or starts is counted, and each warp's state is compared with an earlier one:
 * when all warps that do not wait at barriers are where they have been, with the same registers, and nothing
 * was counted between, they will be there again for ever. A loop that counts turns, or reads a clock, is
 * never the same: that is left to the watchdog. */

enum { SUSPECT_NS = 400000000, CALM_ROUNDS = 256 };

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
    uint64_t paths = w->live;
    for (uint32_t k = 0; k < w->path_count; k++)              /* in any order */
        paths += (((uint64_t)w->paths[k].pc << 34) ^ ((uint64_t)w->paths[k].state << 32) ^ w->paths[k].mask)
                 * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ paths;
}

void sim_spin_watch(sim_launch *l)
{
    uint64_t now = sim_now_ns(), then = atomic_load_explicit(&l->watch_ns, memory_order_relaxed);
    if (!then) atomic_store_explicit(&l->watch_ns, now + SUSPECT_NS, memory_order_relaxed);
    else if (now > then) atomic_store_explicit(&l->suspect, true, memory_order_relaxed);
}

static bool waits(const sim_warp *w)
{
    for (uint32_t k = 0; k < w->path_count; k++) if (w->paths[k].state != P_BARRIER) return false;
    return true;
}

/* After a round: are all warps of the block back where they were since memory last changed? */
static bool block_repeats(sim_block *b)
{
    uint64_t changes = atomic_load(&b->launch->changes);
    bool all = true;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        sim_warp *w = &b->warps[n];
        if (!w->path_count) continue;
        if (waits(w)) { w->spin_changes = 0; continue; }
        uint64_t state = state_of(w);
        bool fresh = w->spin_changes != changes + 1;
        if (fresh) w->spin_repeats = false;
        else if (w->spin_state == state && w->turns != w->spin_turns) w->spin_repeats = true; /* no rest */
        if (fresh || (!w->spin_repeats && ++w->spin_age >= w->spin_limit)) {
            w->spin_limit = fresh ? 2 : w->spin_limit * 2;    /* a cycle of any length is found */
            w->spin_state = state;
            w->spin_turns = w->turns;
            w->spin_changes = changes + 1;
            w->spin_age = 0;
        }
        all &= w->spin_repeats;
    }
    return all;
}

/* True: the launch will never end, and has been told so. */
bool sim_spins(sim_block *b)
{
    sim_launch *l = b->launch;
    if (!atomic_load_explicit(&l->suspect, memory_order_relaxed)) return false;
    uint64_t changes = atomic_load(&l->changes) + 1;
    if (b->calm_since != changes) {                           /* states are compared where nothing changes */
        b->calm_since = changes;
        b->calm = 0;
    }
    if (b->calm < CALM_ROUNDS) { b->calm++; b->quiet = 0; return false; }
    b->quiet = block_repeats(b) ? changes : 0;
    if (!b->quiet) return false;
    sim_worker *w = b->worker;
    for (uint32_t n = 0; n < w->open; n++) if (w->blocks[n]->quiet != changes) return false;
    if (atomic_load(&l->next_block) < l->block_count && w->open < l->resident_limit) return false;
    atomic_store(&l->quiet[w->index], changes);
    for (uint32_t n = 0; n < l->workers; n++) {
        uint64_t q = atomic_load(&l->quiet[n]);
        bool gone = q == UINT64_MAX && atomic_load(&l->next_block) >= l->block_count;
        if (!gone && q != changes) return false;
    }
    if (atomic_load(&l->changes) + 1 != changes) return false;
    char where[400];
    int none = 0;
    if (!atomic_compare_exchange_strong(&l->error, &none, SIM_ERROR_TIMEOUT)) return true;
    sim_where_text(b, where, sizeof where);
    sim_warp *at = &b->warps[0];
    for (uint32_t n = b->warp_count; n-- > 0;) if (b->warps[n].path_count) at = &b->warps[n];
    sim_report_at(at, awaited(at->kernel, at->paths[0].pc), "deadlock", sim_lowest(at->paths[0].mask),
                  "all threads that are left wait for memory that nobody changes, or for them: %s", where);
    return true;
}


/* --- lanes that exit instead of coming ---------------------------------------------------------- */

static bool is_target(const sim_kernel *k, uint32_t pc)
{
    for (uint32_t c = 0; c < k->code_count; c++)
        if ((k->code[c].flow == F_BRANCH || k->code[c].flow == F_INDEXED) && (uint64_t)k->code[c].imm == pc)
            return true;
    return false;
}

/* Does the code that runs straight into this exit touch memory?  Where: *first. */
static bool works(const sim_kernel *k, uint32_t exit, uint32_t *first)
{
    bool memory = false;
    uint32_t pc = exit;
    while (pc && !is_target(k, pc)) {
        const sim_ins *i = &k->code[pc - 1];
        if (i->flow != F_PLAIN && i->flow != F_MEMORY) break;
        memory |= i->flow == F_MEMORY;
        pc--;
    }
    *first = pc;
    return memory;
}

static bool leads_to(const sim_kernel *k, uint32_t from, uint32_t to)
{
    uint8_t *seen = calloc(k->code_count, 1);
    uint32_t *queue = malloc((k->code_count + 1u) * sizeof *queue), top = 0;
    bool found = false;
    if (seen && queue) queue[top++] = from;
    while (top && !found) {
        uint32_t pc = queue[--top];
        while (pc < k->code_count && !seen[pc] && !found) {
            const sim_ins *i = &k->code[pc];
            bool ends = i->flow == F_EXIT || i->flow == F_TRAP || i->flow == F_RETURN || i->flow == F_BRANCH;
            seen[pc] = 1;
            found = pc == to;
            if ((i->flow == F_BRANCH || i->flow == F_INDEXED) && (uint64_t)i->imm < k->code_count
                && !seen[i->imm] && top < k->code_count)
                queue[top++] = (uint32_t)i->imm;
            if (ends && !i->guard) break;
            pc++;
        }
    }
    free(seen);
    free(queue);
    return found;
}

/* Lanes that exited, and did there what comes after this barrier. Those that just returned may be absent. */
uint32_t sim_went_around(const sim_warp *w, const sim_ins *barrier)
{
    const sim_kernel *k = w->kernel;
    uint32_t around = 0, left = w->left, at = (uint32_t)(barrier - k->code);
    while (left) {
        uint32_t exit = w->left_at[sim_lowest(left)], same = 0, first;
        SIM_EACH_LANE(l, left) if (w->left_at[l] == exit) same |= 1u << l;
        if (works(k, exit, &first) && leads_to(k, at, first)
            && !leads_to(k, at + 1, at))                      /* in a loop they may have come earlier */
            around |= same;
        left &= ~same;
    }
    return around;
}
