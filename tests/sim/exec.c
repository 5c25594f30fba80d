/* exec.c - runs a kernel: paths within a warp, warps within a block, block barriers, blocks on threads.
 *
 * A warp is a set of paths (pc, lanes). One runs at a time: the one with the lowest pc, so that paths
 * reconverge; paths with the same pc merge. A path with many backward branches while others can run
 * lets another one run, so that lanes that spin on a lock cannot starve the lane that holds it. An
 * instruction that needs lanes that have not arrived (*.sync, an aligned barrier) parks its path
 * (P_SYNC) until they come, or until nothing else can run: then the absence is reported and the
 * instruction is executed without them. A block can be suspended and resumed: a worker that has run one for a
 * long time starts others beside it, as far as the chip could hold them, so that blocks may wait for each other. */
#include "async.h"
#include "dependents.h"
#include "race.h"
#include "pace.h"
#include "unwritten.h"
#include <unistd.h>

enum { QUANTUM = 4096, QUANTUM_POLLING = 256, BACKWARD_LIMIT = 64,
       BLOCK_SLICE = 1 << 26, SEEDED_SLICE = 1 << 20, CLUSTER_SLICE = 1 << 15 };

/* --- paths ------------------------------------------------------------------------------------ */

static void add_path(sim_warp *w, uint32_t pc, uint32_t mask, int state)
{
    if (!mask) return;
    for (uint32_t k = 0; k < w->path_count; k++) {
        sim_path *p = &w->paths[k];
        if (p->pc != pc || p->state == P_BARRIER || (state == P_BARRIER)) continue;
        p->mask |= mask;
        if (state == P_RUN || p->state == P_RUN) p->state = P_RUN;      /* new lanes: test again */
        return;
    }
    sim_path *p = &w->paths[w->path_count++];
    p->pc = pc;
    p->mask = mask;
    p->state = (uint8_t)state;
    p->force = false;
    p->turn = 0;
}

static void remove_path(sim_warp *w, uint32_t k) { w->paths[k] = w->paths[--w->path_count]; }

/* Lanes that the parked path's instruction still needs. */
static uint32_t awaited_lanes(sim_warp *w, const sim_path *p)
{
    const sim_ins *i = &w->kernel->code[p->pc];
    if (i->flow != F_SYNC) return w->live & ~p->mask;
    uint32_t need = 0;
    SIM_EACH_LANE(l, p->mask) need |= sim_slot(w, i->e)[l];
    return need & w->live & ~p->mask;
}

/* With a seed: draws whether this path is taken instead of the one found before. */
static bool other_path(sim_warp *w)
{
    return sim_chance(w->launch, sim_block_index(w->block), 5000 + w->index, w->picks++) & 1;
}

/* Makes the next path the running one. False: none can run now. */
static bool take_path(sim_warp *w, bool fair)
{
    uint32_t best = UINT32_MAX;
    for (int round = 0; round < 2 && best == UINT32_MAX; round++) {
        for (uint32_t k = 0; k < w->path_count; k++) {
            sim_path *p = &w->paths[k];
            if (round && p->state == P_SYNC
                && !awaited_lanes(w, p)) { /* the missing lanes have exited */
                const sim_ins *i = &w->kernel->code[p->pc];
                p->state = P_RUN;
                uint32_t around = i->flow != F_SYNC && sim_option.barriers ? sim_lanes_that_bypassed(w, i) : 0;
                if (around)
                    sim_report_at(w, i, "barrier-divergence", sim_lowest(p->mask),
                                  "lanes 0x%08x wait at this barrier; "
                                  "lanes 0x%08x of the warp went around it and exited",
                                  p->mask, around);
            }
            if (p->state != P_RUN) continue;
            if (best != UINT32_MAX && w->launch->seed && !fair) { if (other_path(w)) best = k; continue; }
            if (best == UINT32_MAX || (fair ? p->turn < w->paths[best].turn : p->pc < w->paths[best].pc))
                best = k;
        }
    }
    if (best == UINT32_MAX) { /* all are parked: go on without the absent lanes */
        bool barrier = false;
        for (uint32_t k = 0; k < w->path_count; k++) {
            barrier |= w->paths[k].state == P_BARRIER || w->paths[k].state == P_WAIT;
            if (w->paths[k].state == P_SYNC && (best == UINT32_MAX || w->paths[k].pc < w->paths[best].pc))
                best = k;
        }
        if (best == UINT32_MAX || barrier) return false;
        w->paths[best].force = true;
    }
    w->pc = w->paths[best].pc;
    w->active = w->paths[best].mask;
    w->force = w->paths[best].force;
    remove_path(w, best);
    return true;
}

/* Merges the paths at this pc into the running one; returns the next higher pc of a path, at which to merge again. */
static uint32_t merge_paths_at(sim_warp *w, uint32_t pc, uint32_t *active)
{
    uint32_t stop = UINT32_MAX;
    for (uint32_t k = 0; k < w->path_count;) {
        const sim_path *p = &w->paths[k];
        if (p->state == P_BARRIER) { k++; continue; }
        if (p->pc == pc) { *active |= p->mask; remove_path(w, k); continue; }
        if (p->pc > pc && p->pc < stop) stop = p->pc;
        k++;
    }
    return stop;
}

static bool has_lower_runnable_path(const sim_warp *w, uint32_t pc)
{
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k].state == P_RUN && w->paths[k].pc < pc) return true;
    return false;
}

/* --- barriers --------------------------------------------------------------------------------- */

static void release_barrier(sim_block *b, uint32_t id)
{
    sim_barrier *s = &b->barriers[id];
    sim_barrier_complete(b, id);
    sim_race_barrier(b, id);
    sim_changed(b->launch);
    for (uint32_t n = 0; n < b->warp_count; n++) {
        sim_warp *w = &b->warps[n];
        b->barrier_masks[id * b->warp_count + n] = 0;
        for (uint32_t k = 0; k < w->path_count; k++) {
            sim_path p = w->paths[k];
            if (p.state != P_BARRIER || p.barrier != id) continue;
            const sim_ins *i = &w->kernel->code[p.pc];
            if (i->op == 1) SIM_EACH_LANE(l, p.mask) sim_slot(w, i->d)[l] = s->popc;
            if (i->op > 1) sim_pred_write(w, i->d, (i->op == 2 ? s->all : s->any) ? SIM_FULL : 0, p.mask);
            remove_path(w, k);
            add_path(w, p.pc + 1, p.mask, P_RUN);
            k = UINT32_MAX;                                   /* the list has changed: start again */
        }
    }
    memset(s, 0, sizeof *s);
}

static void check_barrier(sim_block *b, uint32_t id)
{
    sim_barrier *s = &b->barriers[id];
    uint32_t arrived = 0, waiting = 0;
    if (!s->active) return;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        uint32_t live = b->warps[n].live, here = b->barrier_masks[id * b->warp_count + n];
        if (here && !(live & ~here)) arrived++;
        else if (live) waiting++;
    }
    if (s->expected ? arrived * SIM_LANES >= s->expected : !waiting) release_barrier(b, id);
}

static void arrive(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    sim_block *b = w->block;
    uint32_t lane = sim_lowest(mask), id = sim_slot(w, i->a)[lane] & 15,
             here = b->barrier_masks[id * b->warp_count + w->index];
    sim_barrier *s = &b->barriers[id];
    sim_barrier_arrives(w, i, id, mask);
    if (!s->active) { s->active = true; s->all = true; s->expected = i->count ? sim_slot(w, i->b)[lane] : 0; }
    b->barrier_masks[id * b->warp_count + w->index] = here | mask;
    if (i->op) {
        uint32_t p = sim_pred(w, i->c) & mask;
        s->popc += sim_popcount(p);
        s->all &= p == mask;
        s->any |= p != 0;
    }
    w->worker->counts.c.barriers++;
    if (i->flow == F_BARRIER) {
        add_path(w, w->pc, mask, P_BARRIER);
        w->paths[w->path_count - 1].barrier = (uint8_t)id;
    } else sim_race_arrive(w, id);
    check_barrier(b, id);
}

/* Whether the barrier's number, which may be in a register, is below 16; so the `& 15` of arrive() changes none. */
static bool is_barrier_number_valid(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    const uint32_t *id = sim_slot(w, i->a);
    SIM_EACH_LANE(l, mask) {
        if (id[l] < 16) continue;
        sim_report_at(w, i, "barrier-number", l, "there is no barrier %u, only 0 to 15", id[l]);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    return true;
}

/* --- one warp --------------------------------------------------------------------------------- */

void sim_warp_fault(sim_warp *w, int code)
{
    int none = 0;
    w->fault = true;
    atomic_compare_exchange_strong(&w->launch->error, &none, code);
}

static void lanes_exit(sim_warp *w, uint32_t mask)
{
    if (SIM_UNLIKELY(sim_async_pending(w->block))) sim_async_exit(w, mask);
    sim_changed(w->launch);
    w->live &= ~mask;
    if (!w->live) w->block->live_warps--;
    for (uint32_t id = 0; id < 16; id++) if (w->block->barriers[id].active) check_barrier(w->block, id);
    sim_cluster_exits(w);
}

/* Reports lanes of `done` that are not in their own mask, and lanes that a mask names which give another mask. */
static void check_masks(sim_warp *w, const sim_ins *i, uint32_t m, uint32_t done)
{
    const uint32_t *e = sim_slot(w, i->e);
    uint32_t differ = 0, first = e[sim_lowest(m)];
    SIM_EACH_LANE(l, m) differ |= e[l] ^ first;
    if (!differ && !(m & ~first)) return;
    SIM_EACH_LANE(l, done) {
        if (!(e[l] >> l & 1)) {
            sim_report_at(w, i, "membermask", l, "the mask 0x%08x does not name lane %u, which executes this",
                          e[l], l);
            return;
        }
        for (uint32_t k = 0; k < SIM_LANES; k++) if (m >> k & e[l] >> k & 1 && e[k] != e[l]) {
            sim_report_at(w, i, "membermask", l,
                          "lane %u gives the mask 0x%08x, lane %u, which is in it, 0x%08x", l, e[l], k, e[k]);
            return;
        }
    }
}

/* Executes a *.sync instruction for the lanes of m whose partners are all here. *waiting_lanes: the other lanes of m,
 * which the caller parks. True: none. */
static bool synchronise(sim_warp *w, const sim_ins *i, uint32_t m, uint32_t *waiting_lanes)
{
    const uint32_t *e = sim_slot(w, i->e);
    uint32_t waits = 0, absent = 0, freed = 0;
    SIM_EACH_LANE(l, m) {
        uint32_t need = (e[l] & w->live) | 1u << l;
        if (need & ~m) { waits |= 1u << l; absent |= need & ~m; }
    }
    if (i->op == 1 && i->fn == sim_nop && waits) { /* bar.warp.sync: partners may wait at another bar.warp.sync */
        uint32_t here = m;
        for (uint32_t k = 0; k < w->path_count; k++) {
            const sim_path *p = &w->paths[k];
            const sim_ins *j = &w->kernel->code[p->pc];
            if (p->state == P_SYNC && j->flow == F_SYNC && j->fn == sim_nop) here |= p->mask;
        }
        if (!(absent & ~here)) {
            for (uint32_t k = 0; k < w->path_count; k++) {
                sim_path p = w->paths[k];
                const sim_ins *j = &w->kernel->code[p.pc];
                if (p.state != P_SYNC || j->flow != F_SYNC || j->fn != sim_nop || !(p.mask & absent))
                    continue;
                freed |= p.mask;
                remove_path(w, k);
                add_path(w, p.pc + 1, p.mask, P_RUN);
                k = UINT32_MAX;
            }
            waits = 0;
        }
    }
    if (waits && w->force) {
        if (sim_option.sync_masks) {
            uint32_t lane = sim_lowest(waits);
            if (i->cls == C_TENSOR)
                sim_report_at(w, i, "absent-lane", lane,
                              "the whole warp is needed, but lanes 0x%08x never come here", absent);
            else sim_report_at(w, i, "absent-lane", lane,
                               "the mask 0x%08x names lanes 0x%08x, which never come here (here: 0x%08x)",
                               e[lane], absent, m);
        }
        waits = 0;
    }
    w->force = false;
    *waiting_lanes = waits;
    if (sim_option.sync_masks) check_masks(w, i, m, m & ~waits);
    if (m & ~waits) i->fn(w, i, m & ~waits);
    if (i->op == 1 && i->fn == sim_nop && w->launch->races)
        for (uint32_t left = m & ~waits; left;) {             /* masks may differ: one sync for each mask */
            uint32_t group = (e[sim_lowest(left)] & ((m & ~waits) | freed)) | 1u << sim_lowest(left);
            sim_race_warp_sync(w, group);
            left &= ~group;
        }
    return !waits;
}

/* Runs at most `budget` instructions of the warp; returns how many. Compiled twice, so that the profile by line,
 * which needs a call for every instruction, costs nothing when it is off. */
static SIM_INLINE uint32_t run_paths(sim_warp *w, uint32_t budget, const bool lines)
{
    const sim_ins *code = w->kernel->code;
    sim_counts *counts = &w->worker->counts;
    uint32_t done = 0;
    uint32_t unwritten = w->unwritten;
    bool fair = w->yielded;                                   /* after nanosleep the other paths run first */
    w->yielded = false;
    while (done < budget && take_path(w, fair)) {
        uint32_t pc = w->pc, active = w->active, stop, backward = 0;
        bool own_turn = fair;
        fair = false;
        stop = merge_paths_at(w, pc, &active);
        for (;;) {
            const sim_ins *i = &code[pc];
            uint32_t m = active;
            if (i->guard) m &= i->guard_negate ? ~w->p[i->guard] : w->p[i->guard];
            if (i->last) {
                counts->warp[i->cls]++;
                counts->thread[i->cls] += m == SIM_FULL ? SIM_LANES : sim_popcount(m);
            }
            done++;
            if (lines) sim_profile_line(w->worker, pc, i->last, m);
            if (SIM_UNLIKELY(i->watch | unwritten)) {
                if (i->past_barrier) sim_pass_barriers(w, i, active);
                if (i->watch & ~SIM_WATCH_PAST_BARRIER) sim_watch(w, i, active, m);
                if (w->unwritten) sim_unwritten_step(w, i, active, m);
                unwritten = w->unwritten;
            }
            switch (i->flow) {
            case F_PLAIN:
                if (m) i->fn(w, i, m);
                pc++;
                break;
            case F_MEMORY:
                if (m) i->fn(w, i, m);
                pc++;
                if (SIM_UNLIKELY(w->fault)) { w->issued += done; return done; }
                unwritten = w->unwritten;
                break;
            case F_INDEXED: {
                uint32_t to = 0;
                SIM_EACH_LANE(l, m) if (sim_slot(w, i->a)[l] == i->c) to |= 1u << l;
                if (i->op && (m & ~to)) {
                    sim_report_at(w, i, "branch-index", sim_lowest(m & ~to),
                                  "the index is outside the list of targets");
                    sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
                    w->issued += done;
                    return done;
                }
                m = to;
            }   /* fall through */
            case F_BRANCH: {
                uint32_t target = (uint32_t)i->imm;
                if (!m) { pc++; break; }
                if (m != active) {
                    counts->c.divergent_branches++;
                    add_path(w, pc + 1, active & ~m, P_RUN);
                    for (uint32_t k = 0; k < w->path_count; k++)
                        if (w->paths[k].pc == pc + 1) w->paths[k].turn = w->backward;
                }
                if (target <= pc) backward++;
                active = m;
                pc = target;
                if (!w->path_count) { stop = UINT32_MAX; if (done >= budget) goto pause; continue; }
                stop = merge_paths_at(w, pc, &active);
                if (backward > BACKWARD_LIMIT && w->path_count) { fair = true; goto pause; }
                if (!own_turn && has_lower_runnable_path(w, pc)) goto pause;
                if (done >= budget) goto pause;
                continue;
            }
            case F_EXIT:
                if (m) {
                    w->left |= m != w->live;
                    active &= ~m;
                    w->pc = pc;
                    lanes_exit(w, m);
                }
                pc++;
                if (!active) goto next;
                stop = merge_paths_at(w, pc, &active);
                break;
            case F_TRAP:
                if (m) {
                    sim_report_at(w, i, i->op ? "assert" : "trap", sim_lowest(m),
                                  i->op ? "an assertion failed" : "the kernel executed trap");
                    sim_warp_fault(w, i->op ? SIM_ERROR_ASSERT : SIM_ERROR_LAUNCH_FAILED);
                    w->issued += done;
                    return done;
                }
                pc++;
                break;
            case F_CALL: case F_RETURN: { /* lanes with other targets execute this instruction again */
                uint32_t target, group = m;
                if (!m) { pc++; break; }
                if (i->flow == F_RETURN) target = sim_return(w, &group);
                else if (!sim_call(w, i, &group, pc, &target)) { w->issued += done; return done; }
                if (group != active) {
                    add_path(w, pc, m & ~group, P_RUN);
                    add_path(w, pc + 1, active & ~m, P_RUN);
                }
                active = group;
                pc = target;
                if (!w->path_count) { stop = UINT32_MAX; if (done >= budget) goto pause; continue; }
                stop = merge_paths_at(w, pc, &active);
                if (done >= budget || (!own_turn && has_lower_runnable_path(w, pc))) goto pause;
                continue;
            }
            case F_SYNC: {
                uint32_t waiting_lanes = 0;
                bool here = !m || synchronise(w, i, m, &waiting_lanes);
                if (SIM_UNLIKELY(w->fault)) { w->issued += done; return done; }
                unwritten = w->unwritten;
                if (!here) {
                    add_path(w, pc, waiting_lanes, P_SYNC);
                    add_path(w, pc + 1, active & ~waiting_lanes, P_RUN);
                    goto next;
                }
                if (w->path_count) stop = merge_paths_at(w, pc, &active);
                pc++;
                break;
            }
            case F_BARRIER: case F_ARRIVE: case F_WAIT: {
                if (!m) { pc++; break; }
                bool alone = (i->x & X_ALIGNED) && m != w->live;
                if (alone && !w->force) {                     /* the other lanes may still arrive */
                    add_path(w, pc, m, P_SYNC);
                    add_path(w, pc + 1, active & ~m, P_RUN);
                    goto next;
                }
                if (alone && sim_option.barriers)
                    sim_report_at(w, i, "barrier-divergence", sim_lowest(m),
                                  "only lanes 0x%08x of the warp's 0x%08x reach this barrier", m, w->live);
                if (SIM_UNLIKELY(w->left) && i->x & X_ALIGNED && sim_option.barriers) {
                    uint32_t around = sim_lanes_that_bypassed(w, i);
                    if (around)
                        sim_report_at(w, i, "barrier-divergence", sim_lowest(m),
                                      "lanes 0x%08x wait at this barrier; "
                                      "lanes 0x%08x of the warp went around it and exited",
                                      m, around);
                }
                if (i->flow == F_WAIT) {
                    if (alone) w->force = false;
                    w->waiting_lanes = 0;
                    i->fn(w, i, m);
                    w->force = false;
                    if (SIM_UNLIKELY(w->fault)) { w->issued += done; return done; }
                    if (!w->waiting_lanes) { pc++; if (w->path_count) stop = merge_paths_at(w, pc, &active); break; }
                    w->waits = true;
                    w->events = w->block->cluster->events;
                    add_path(w, pc, w->waiting_lanes, P_WAIT);
                    add_path(w, pc + 1, active & ~w->waiting_lanes, P_RUN);
                    goto next;
                }
                w->force = false;
                w->pc = pc;
                if (!is_barrier_number_valid(w, i, m)) { w->issued += done; return done; }
                if (i->flow == F_ARRIVE) { arrive(w, i, m); pc++; stop = merge_paths_at(w, pc, &active); break; }
                add_path(w, pc + 1, active & ~m, P_RUN);
                arrive(w, i, m);
                goto next;
            }
            default:                                          /* F_YIELD */
                pc++;
                add_path(w, pc, active, P_RUN);
                for (uint32_t k = 0; k < w->path_count; k++)
                    if (w->paths[k].pc == pc) w->paths[k].turn = ++w->backward;
                w->yielded = w->path_count > 1;
                w->issued += done;
                return done;
            }
            if (pc >= stop) {
                stop = merge_paths_at(w, pc, &active);
                if (!own_turn && has_lower_runnable_path(w, pc)) goto pause;
            }
            if (SIM_UNLIKELY(done >= budget)) goto pause;
        }
pause:
        add_path(w, pc, active, P_RUN);
        w->backward++;
        for (uint32_t k = 0; k < w->path_count; k++) if (w->paths[k].pc == pc) w->paths[k].turn = w->backward;
next:;
    }
    w->issued += done;
    return done;
}

static uint32_t warp_run_lines(sim_warp *w, uint32_t budget) { return run_paths(w, budget, true); }
static uint32_t warp_run(sim_warp *w, uint32_t budget)
{
    return SIM_UNLIKELY(w->launch->profile_lines) ? warp_run_lines(w, budget) : run_paths(w, budget, false);
}

/* --- one block -------------------------------------------------------------------------------- */

static void *grow_buffer(void *old, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity) return old;
    free(old);
    bytes = (bytes + 127) / 64 * 64;
    void *p = aligned_alloc(64, bytes);
    *capacity = p ? bytes : 0;
    return p;
}

static void fill_slot(sim_warp *w, uint32_t slot, uint32_t v)
{
    uint32_t *at = w->bank[0] + (size_t)slot * SIM_LANES;
    for (uint32_t l = 0; l < SIM_LANES; l++) at[l] = v;
}

static void fill_specials(sim_block *b, sim_warp *w, bool all)
{
    const sim_kernel *k = w->kernel;
    const uint32_t *n = w->launch->block;
    for (uint32_t s = 0; s < k->special_count; s++) {
        uint32_t slot = k->specials[s].slot, *at = w->bank[0] + (size_t)slot * SIM_LANES;
        switch (k->specials[s].special) {
        case SR_CTAID_X: fill_slot(w, slot, b->ctaid[0]); continue;
        case SR_CTAID_Y: fill_slot(w, slot, b->ctaid[1]); continue;
        case SR_CTAID_Z: fill_slot(w, slot, b->ctaid[2]); continue;
        case SR_CLUSTERID_X: fill_slot(w, slot, b->ctaid[0] / w->launch->cluster[0]); continue;
        case SR_CLUSTERID_Y: fill_slot(w, slot, b->ctaid[1] / w->launch->cluster[1]); continue;
        case SR_CLUSTERID_Z: fill_slot(w, slot, b->ctaid[2] / w->launch->cluster[2]); continue;
        case SR_CLUSTER_CTAID_X: fill_slot(w, slot, b->ctaid[0] % w->launch->cluster[0]); continue;
        case SR_CLUSTER_CTAID_Y: fill_slot(w, slot, b->ctaid[1] % w->launch->cluster[1]); continue;
        case SR_CLUSTER_CTAID_Z: fill_slot(w, slot, b->ctaid[2] % w->launch->cluster[2]); continue;
        case SR_CLUSTER_CTARANK: fill_slot(w, slot, b->rank); continue;
        case SR_SMID:
            fill_slot(w, slot,
                      (uint32_t)((b->ctaid[0] + (uint64_t)b->ctaid[1] * w->launch->grid[0])
                                 % sim_the_device()->sm_count));
            continue;
        default: break;
        }
        if (!all) continue;
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            uint32_t t = sim_thread_of(w, l), v;
            switch (k->specials[s].special) {
            case SR_TID_X: v = t % n[0]; break;
            case SR_TID_Y: v = t / n[0] % n[1]; break;
            case SR_TID_Z: v = t / (n[0] * n[1]); break;
            case SR_LANEID: v = l; break;
            case SR_WARPID: v = w->index; break;
            case SR_LANEMASK_EQ: v = 1u << l; break;
            case SR_LANEMASK_LT: v = (1u << l) - 1; break;
            case SR_LANEMASK_LE: v = (1u << l) - 1 + (1u << l); break;
            case SR_LANEMASK_GT: v = ~((1u << l) - 1 + (1u << l)); break;
            default: v = ~((1u << l) - 1); break;
            }
            at[l] = v;
        }
    }
}

/* Prepares block `rank` of cluster `unit`; a launch without clusters has clusters of one block. */
static bool block_begin(sim_block *b, sim_worker *worker, sim_launch *l, uint64_t unit, uint32_t rank)
{
    const sim_kernel *k = l->kernel;
    uint32_t warps = l->warps;
    size_t bank = (size_t)k->reg_slots * SIM_LANES * 4, local = (size_t)k->local_bytes * warps * SIM_LANES,
           shadow_capacity = 0;
    size_t clear = (size_t)k->special_slots * SIM_LANES * 4;
    if (warps > b->warp_capacity) {
        free(b->warps);
        free(b->barrier_masks);
        b->warps = calloc(warps, sizeof *b->warps);
        b->barrier_masks = calloc((size_t)warps * 16, 4);
        b->warp_capacity = b->warps && b->barrier_masks ? warps : 0;
        b->configured = 0;
    }
    uint32_t *old = b->registers;
    b->registers = grow_buffer(b->registers, &b->register_capacity, bank * warps);
    if (old != b->registers) b->configured = 0;
    b->predicates = grow_buffer(b->predicates, &b->predicate_capacity, (size_t)k->preds * 4 * warps);
    b->watch = grow_buffer(b->watch, &b->watch_capacity, (size_t)(k->watch_count + 1) * 4 * warps);
    if (!b->watch) return false;
    memset(b->watch, 0, (size_t)(k->watch_count + 1) * 4 * warps);
    if (k->past_barrier_count) {
        size_t sites = (size_t)k->barrier_site_count * 4 * warps;
        b->past_barrier = grow_buffer(b->past_barrier, &b->past_barrier_capacity, sites);
        if (!b->past_barrier) return false;
        memset(b->past_barrier, 0, sites);
    }
    if (l->shared_bytes + 64 > b->shared_capacity) {
        free(b->shared);
        b->shared = aligned_alloc(64, (l->shared_bytes + 127) / 64 * 64);
        free(b->shared_shadow);
        b->shared_shadow = aligned_alloc(64, (l->shared_bytes / 8 + 127) / 64 * 64);
        b->shared_capacity = b->shared && b->shared_shadow ? l->shared_bytes + 64 : 0;
    }
    if (local) {
        shadow_capacity = b->local_capacity;
        b->local = grow_buffer(b->local, &b->local_capacity, local);
        if (shadow_capacity != b->local_capacity) {
            free(b->local_shadow);
            b->local_shadow = aligned_alloc(64, (local / 8 + 127) / 64 * 64);
        }
        if (!b->local || !b->local_shadow) return false;
        sim_local_begin(b, k, warps * SIM_LANES);
    }
    if (k->has_calls && !sim_calls_begin(b, warps)) return false;
    if (!b->warp_capacity || !b->registers || !b->predicates || !b->shared_capacity) return false;
    b->worker = worker;
    b->launch = l;
    const uint32_t *n_of = l->cluster;
    uint64_t row = l->grid[0] / n_of[0], column = l->grid[1] / n_of[1];
    b->ctaid[0] = (uint32_t)(unit % row) * n_of[0] + rank % n_of[0];
    b->ctaid[1] = (uint32_t)(unit / row % column) * n_of[1] + rank / n_of[0] % n_of[1];
    b->ctaid[2] = (uint32_t)(unit / row / column) * n_of[2] + rank / (n_of[0] * n_of[1]);
    b->rank = rank;
    b->warp_count = b->live_warps = warps;
    b->shared_lo = k->shared_base;
    b->shared_hi = k->shared_base + l->shared_bytes;
    b->done = b->ended = b->idle = b->polls = b->watched = false;
    b->rounds = 0;
    if (b->unwritten) sim_unwritten_begin(b);
    if (l->shared_bytes) {
        memset(b->shared, 0xcd, l->shared_bytes);
        memset(b->shared_shadow, 0, l->shared_bytes / 8 + 1);
    }
    if (k->uses_reserved) {
        memset(b->shared + l->reserved_at, 0, SIM_RESERVED_SHARED);
        sim_shadow_set(b->shared_shadow, l->reserved_at, SIM_RESERVED_SHARED);
    }
    memset(b->barriers, 0, sizeof b->barriers);
    sim_barriers_begin(b);
    memset(b->barrier_masks, 0, (size_t)warps * 64);
    memset(b->predicates, 0, (size_t)k->preds * 4 * warps);
    bool all = b->configured != l->launch_serial;
    b->configured = l->launch_serial;
    for (uint32_t n = 0; n < warps; n++) {
        sim_warp *w = &b->warps[n];
        uint32_t left = l->threads - n * SIM_LANES;
        memset(w, 0, offsetof(sim_warp, paths));
        w->bank[0] = b->registers + bank / 4 * n;
        w->bank[1] = k->const_bank;
        w->p = b->predicates + (size_t)k->preds * n;
        w->p[0] = SIM_FULL;
        w->watch = b->watch + (size_t)k->watch_count * n;
        w->scratch = worker->scratch;
        w->index = n;
        w->live = left >= SIM_LANES ? SIM_FULL : (1u << left) - 1;
        w->block = b;
        w->worker = worker;
        w->kernel = k;
        w->launch = l;
        w->path_count = 0;
        w->issued = 0;
        if (k->clear_registers || all) memset((char *)w->bank[0] + clear, 0xcd, bank - clear);
        fill_specials(b, w, all);
        if (k->has_calls) w->calls = b->calls + (size_t)n * SIM_LANES;
        add_path(w, k->entry, w->live, P_RUN);
    }
    worker->counts.c.blocks++;
    worker->work_since_check += SIM_BLOCK_WORK;
    b->quiet = b->unchanged_since = 0;
    sim_changed(l);
    sim_async_block_begin(b);
    return sim_race_block_begin(b, sim_block_index(b));
}

/* Nothing can run: resumes a path that waits for absent lanes, which are then reported; if there is none, reports
 * a deadlock. */
static void resolve_deadlock(sim_block *b)
{
    sim_warp *at = NULL;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        sim_warp *w = &b->warps[n];
        for (uint32_t k = 0; k < w->path_count; k++) {
            if (w->paths[k].state == P_SYNC) { w->paths[k].force = true; w->paths[k].state = P_RUN; return; }
            if (!at) at = w;
        }
    }
    if (!at) { b->done = true; return; }
    char waits[160], where[400];
    size_t length = 0;
    waits[0] = 0;
    for (uint32_t id = 0; id < 16; id++) {
        uint32_t lanes = 0;
        if (!b->barriers[id].active) continue;
        for (uint32_t n = 0; n < b->warp_count; n++)
            lanes += sim_popcount(b->barrier_masks[id * b->warp_count + n]);
        if (length < sizeof waits - 40)
            length += (size_t)snprintf(waits + length, sizeof waits - length, "%sbarrier %u has %u threads",
                                       length ? ", " : "", id, lanes);
    }
    sim_where_text(b, where, sizeof where);
    sim_report_at(at, &at->kernel->code[at->paths[0].pc], "deadlock", sim_lowest(at->paths[0].mask),
                  "no thread of the block can go on: %s; they wait at %s", waits, where);
    sim_warp_fault(at, SIM_ERROR_TIMEOUT);
}

/* Ends a launch that has exceeded a limit; `why` names it. */
static void end_over_limit(sim_block *b, const char *why)
{
    sim_warp *w = &b->warps[0];
    for (uint32_t n = 0; n < b->warp_count; n++) if (b->warps[n].path_count) w = &b->warps[n];
    sim_report_at(w, &w->kernel->code[w->paths[0].pc], "timeout", sim_lowest(w->paths[0].mask), "%s", why);
    sim_warp_fault(w, SIM_ERROR_TIMEOUT);
}

/* One round over the warps: each runs for a quantum. With a seed the first warp and the quanta are random, and some
 * warps pause for several rounds, unless `rest` is false. */
static uint32_t run_round(sim_block *b, bool rest, bool *waits)
{
    const sim_launch *l = b->launch;
    uint32_t ran = 0, first = 0, count = b->warp_count;
    uint64_t index = 0, round = b->rounds++;
    bool reverse = false;
    if (l->seed) {
        index = sim_block_index(b);
        first = sim_chance(l, index, 1, round);
        reverse = first >> 31;
        first %= count;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t n = k + first < count ? k + first : k + first - count;
        uint32_t quantum = b->polls ? QUANTUM_POLLING : QUANTUM;
        if (reverse) n = count - 1 - n;
        if (!b->warps[n].path_count) continue;
        if (SIM_UNLIKELY(b->warps[n].waits)) {
            if (b->warps[n].events != b->cluster->events) sim_cluster_wake(&b->warps[n]);
            *waits = true;
        }
        if (l->seed) {
            if (rest && count > 1 && sim_chance(l, index, 100 + n, round >> 3) % 4 == 0) continue;
            quantum = 1u << sim_chance(l, index, 2000 + n, round) % 13;
        }
        b->warps[n].turns++;
        ran += warp_run(&b->warps[n], quantum);
        *waits |= b->warps[n].waits;
        if (b->warps[n].fault) break;
    }
    return ran;
}

static void wake_helpers(sim_launch *l);

/* Runs the block for a while. True: it has ended (or the launch has failed). */
static bool block_run(sim_block *b, uint64_t slice)
{
    sim_launch *l = b->launch;
    b->idle = false;
    while (b->live_warps) {
        sim_worker *worker = b->worker;
        const sim_counts *counts = &worker->counts;
        if (SIM_UNLIKELY(sim_option.budget) && atomic_load(&l->issued) > (uint64_t)sim_option.budget) {
            end_over_limit(b, "the launch has used up its budget of instructions");
            return true;
        }
        if (SIM_UNLIKELY(worker->work_since_check >= SIM_WATCHED_WORK)) {
            worker->work_since_check = 0;
            sim_spin_watch(l);
            sim_pace_progress(worker, l);
            if (sim_pace_is_over_limit(worker, l)) {
                char text[160];
                snprintf(text, sizeof text, "the launch ran longer than the %d seconds that the watchdog allows "
                         "(option watchdog, PTXSIM_WATCHDOG)", sim_watchdog());
                end_over_limit(b, text);
                return true;
            }
        }
        uint64_t polls = counts->polls, effective_atomics = counts->effective_atomics + counts->c.global_store_requests;
        bool waits = false;
        uint32_t ran = run_round(b, true, &waits);
        if (!ran && l->seed) ran = run_round(b, false, &waits);
        if (atomic_load_explicit(&l->error, memory_order_relaxed)) return true;
        if (SIM_UNLIKELY(b->cluster->pending_count)) sim_copies_advance(b->cluster);
        if (!ran && waits && sim_cluster_waits(b)) { b->idle = true; return false; }
        if (!ran) { resolve_deadlock(b); if (b->done || atomic_load(&l->error)) return true; continue; }
        b->clock += ran;
        worker->work_since_check += ran;
        if (b->live_warps && sim_suspect(l) && sim_check_endless_spin(b)) return true;
        if (SIM_UNLIKELY(sim_option.budget)) atomic_fetch_add(&l->issued, ran);
        b->polls = counts->polls != polls
                   && counts->effective_atomics + counts->c.global_store_requests == effective_atomics;
        if (SIM_UNLIKELY(atomic_load_explicit(&l->asleep, memory_order_relaxed)) && b->live_warps)
            wake_helpers(l);
        if (ran >= slice || b->polls) return false;           /* let another block run */
        slice -= ran;
    }
    return true;
}

/* --- workers ---------------------------------------------------------------------------------- */

static sim_block *fresh_block(sim_worker *w, uint32_t n)
{
    if (n == w->block_capacity) {
        uint32_t wanted = w->block_capacity ? w->block_capacity * 2 : 4;
        sim_block **grown = realloc(w->blocks, wanted * sizeof *grown);
        if (!grown) return NULL;
        memset(grown + w->block_capacity, 0, (wanted - w->block_capacity) * sizeof *grown);
        w->blocks = grown;
        w->block_capacity = wanted;
    }
    if (!w->blocks[n]) w->blocks[n] = calloc(1, sizeof **w->blocks);
    return w->blocks[n];
}

/* Runs the blocks of a cluster in turns. True: all have ended (or the launch has failed). *vain: the blocks only
 * waited. */
static bool unit_run(sim_block **blocks, uint32_t n, sim_launch *l, bool *poll_turns)
{
    sim_cluster *c = blocks[0]->cluster;
    uint64_t before = 0, now = 0, slice = l->seed ? SEEDED_SLICE : BLOCK_SLICE;
    for (uint32_t k = 0; k < n; k++) before += blocks[k]->clock;
    *poll_turns = true;
    do {
        bool ended = true, idle = true, polls = true;
        uint32_t changes = c->changes;
        for (uint32_t k = 0; k < n; k++) {
            sim_block *b = blocks[k];
            if (b->ended) continue;
            if (block_run(b, n == 1 ? slice : CLUSTER_SLICE)) {
                if (!atomic_load_explicit(&l->error, memory_order_relaxed)) sim_cluster_leave(b);
                b->ended = true;
                idle = polls = false;
            } else { ended = false; idle &= b->idle; polls &= b->idle | b->polls; }
            if (atomic_load_explicit(&l->error, memory_order_relaxed)) return true;
        }
        if (ended) return true;
        if (idle && changes == c->changes && !sim_cluster_stall(c)) return false;
        if (polls && !idle && changes == c->changes) return false;
        *poll_turns = false;
        if (n == 1 && !idle) return false;                    /* it returned so that other blocks can run */
        now = 0;
        for (uint32_t k = 0; k < n; k++) now += blocks[k]->clock;
    } while (now - before < slice);
    return false;
}

static bool unit_begin(sim_worker *w, sim_launch *l, uint32_t first, uint64_t unit)
{
    for (uint32_t k = 0; k < l->cluster_size; k++) {
        sim_block *b = fresh_block(w, first + k);
        if (!b) return false;
        sim_cluster *c = k ? w->blocks[first]->cluster : sim_cluster_begin(b, l);
        if (!c) return false;
        if (!block_begin(b, w, l, unit, k) || !sim_cluster_join(c, b, k)) return false;
    }
    return true;
}

static void worker_run(sim_worker *w, sim_launch *l)
{
    uint32_t open = 0, at = 0, n = l->cluster_size;
    bool more = true, poll_turns = true;
    w->cached = NULL;
    sim_pace_begin(w, l);
    if (SIM_UNLIKELY(l->profile != NULL)) sim_profile_join(w, l);
    w->open = 0;
    atomic_store(&l->quiet[w->index], 0);
    w->touches = l->touches ? sim_touches_new() : NULL;
    while (!atomic_load_explicit(&l->error, memory_order_relaxed)) {
        if (more && (at >= open || !open) && (open + 1) * n <= l->resident_limit + n - 1) {
            uint64_t index = atomic_fetch_add(&l->next_block, 1);
            uint64_t units = l->block_count / n;
            if (index < units && l->seed) index = (index * l->stride + l->seed) % units;
            if (index >= units) more = false;
            else {
                int none = 0;
                if (!unit_begin(w, l, open * n, index)) {
                    atomic_compare_exchange_strong(&l->error, &none, 2);
                    break;
                }
                at = open++;
                poll_turns = false;
            }
        }
        w->open = open * n;
        if (!open) break;
        if (at >= open) {
            at = 0;
            if (!poll_turns) w->poll_turns = 0;
            else { sim_pace_yield(w, l); sim_spin_watch(l); }
            poll_turns = true;
        }
        bool waited;
        if (unit_run(w->blocks + (size_t)at * n, n, l, &waited)) {
            open--;
            poll_turns = false;
            for (uint32_t k = 0; k < n; k++) {
                sim_block *b = w->blocks[at * n + k];
                sim_output_block(b);
                w->blocks[at * n + k] = w->blocks[open * n + k];
                w->blocks[open * n + k] = b;
            }
            if (!open) at = 0;
            atomic_store_explicit(&l->suspect_ns, 0, memory_order_relaxed);
            atomic_store_explicit(&l->suspect, false, memory_order_relaxed);
        } else { at++; poll_turns &= waited; }
    }
    for (uint32_t k = 0; k < open * n; k++)
        sim_output_block(w->blocks[k]); /* blocks that a fault elsewhere stopped */
    if (SIM_UNLIKELY(l->profile != NULL)) sim_profile_leave(w, l);
    atomic_store(&l->quiet[w->index], UINT64_MAX);
    sim_pace_end(w, l);
    sim_touch_merge(w, l);
    sim_count_merge(&w->counts);
    memset(&w->counts, 0, sizeof w->counts);
}

static sim_worker *new_worker(uint32_t index)
{
    sim_worker *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->index = index;
    w->scratch = aligned_alloc(64, SIM_LANES * 16);
    if (!w->scratch) { free(w); return NULL; }
    return w;
}

static void free_worker(sim_worker *w)
{
    if (!w) return;
    for (uint32_t k = 0; k < w->block_capacity; k++) {
        sim_block *b = w->blocks[k];
        if (!b) continue;
        free(b->warps); free(b->barrier_masks); free(b->registers); free(b->predicates); free(b->shared);
        free(b->shared_shadow); free(b->local); free(b->local_shadow); free(b->watch);
        free(b->printed); free(b->past_barrier); free(b->uses);
        sim_calls_free(b);
        sim_cluster_free(b);
        sim_race_block_free(b);
        sim_async_block_free(b);
        sim_unwritten_free(b);
        free(b);
    }
    free(w->blocks);
    free(w->scratch);
    free(w);
}

enum { MAX_THREADS = 256, FEW_WARPS = 16 };            /* a launch of so few warps first runs alone for a round */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    sim_launch *launch;
    uint64_t generation;
    uint32_t busy, started, wanted;
    bool quit;
    pthread_t threads[MAX_THREADS];
    sim_worker *workers[MAX_THREADS];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .wake = PTHREAD_COND_INITIALIZER,
           .idle = PTHREAD_COND_INITIALIZER };

static void *worker_thread(void *argument)
{
    sim_worker *w = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (!pool.quit && (pool.generation == seen || !pool.launch || w->index >= pool.wanted))
            pthread_cond_wait(&pool.wake, &pool.lock);
        if (pool.quit) break;
        seen = pool.generation;
        sim_launch *l = pool.launch;
        if (sim_all_begun(l)) continue;
        pool.busy++;
        pthread_mutex_unlock(&pool.lock);
        worker_run(w, l);
        pthread_mutex_lock(&pool.lock);
        if (!--pool.busy) pthread_cond_broadcast(&pool.idle);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static uint32_t wanted_threads(void)
{
    static long cores;                                        /* cached: sysconf is slow compared with a small launch */
    if (!cores) cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *text = getenv("PTXSIM_THREADS");
    long n = sim_option.threads ? sim_option.threads : text ? strtol(text, NULL, 10) : cores;
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (uint32_t)n;
}

/* With a seed: the order of the units, by a stride that is coprime to their number. */
static void choose_order(sim_launch *l)
{
    const char *text = getenv("PTXSIM_SEED");
    l->seed = sim_option.seed >= 0 ? (uint32_t)sim_option.seed : text ? (uint32_t)strtoul(text, NULL, 10) : 0;
    if (!l->seed) return;
    uint64_t units = l->block_count / l->cluster_size;
    l->stride = units >> 31 ? 1 : sim_chance(l, 0, 3, 0) % units;
    for (;; l->stride++) {
        uint64_t a = l->stride, b = units;
        while (b) { uint64_t r = a % b; a = b; b = r; }
        if (a == 1) break;
    }
}

/* Gives the helper threads the launch; starts threads that do not exist yet. */
static void wake_helpers(sim_launch *l)
{
    if (!atomic_exchange(&l->asleep, false)) return;
    pthread_mutex_lock(&pool.lock);
    while (pool.started + 1 < l->workers) {
        uint32_t n = pool.started + 1;
        if (!pool.workers[n] && !(pool.workers[n] = new_worker(n))) break;
        if (pthread_create(&pool.threads[n], NULL, worker_thread, pool.workers[n])) break;
        pool.started++;
    }
    pool.launch = l;
    pool.wanted = l->workers;
    pool.generation++;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
}

/* Whether no thread does more than unguarded register arithmetic before it exits, so that no block has to run.
 * Counts what all of them execute. */
static bool ends_at_once(sim_launch *l, sim_counts *c)
{
    const sim_kernel *k = l->kernel;
    uint32_t pc = k->entry;
    if (l->profile || l->in_flight || sim_option.budget) return false;
    for (; pc < k->code_count; pc++) {
        const sim_ins *i = &k->code[pc];
        if (i->guard || i->watch || !i->last) return false;
        if (i->flow == F_EXIT) break;
        if (i->flow != F_PLAIN || i->cls > C_MOVE) return false;
    }
    if (pc == k->code_count) return false;
    for (uint32_t n = k->entry; n <= pc; n++) {
        c->warp[k->code[n].cls] += l->block_count * l->warps;
        c->thread[k->code[n].cls] += l->block_count * l->threads;
    }
    c->c.blocks += l->block_count;
    atomic_store(&l->next_block, l->block_count);
    return true;
}

/* Runs the launch with that many workers. True: it had a finding, was undone, and has to run again. */
static bool run_attempt(sim_launch *l, uint32_t threads)
{
    static atomic_ullong quiet[MAX_THREADS], late[MAX_THREADS];
    pool.workers[0]->counts.c.launches = 1;
    l->resident_limit = l->resident_limit / threads + 1;
    sim_profile_begin(l);
    sim_grid_attempt(l);
    sim_race_launch_begin(l, threads);
    choose_order(l);
    l->quiet = quiet;
    l->workers = threads;
    l->late = late;
    for (uint32_t n = 0; n < threads; n++) {
        atomic_store(&quiet[n], UINT64_MAX);
        atomic_store(&late[n], SIM_GONE);
    }
    l->limit_ns = (uint64_t)sim_watchdog() * 1000000000u;
    bool empty = ends_at_once(l, &pool.workers[0]->counts);
    atomic_store(&l->asleep, threads > 1 && !empty);
    if (l->block_count * l->warps > FEW_WARPS) wake_helpers(l);
    worker_run(pool.workers[0], l);
    if (threads > 1) {
        pthread_mutex_lock(&pool.lock);
        while (pool.busy) pthread_cond_wait(&pool.idle, &pool.lock);
        pool.launch = NULL;
        pthread_mutex_unlock(&pool.lock);
    }
    sim_output_launch(l);
    if (SIM_UNLIKELY(l->profile != NULL)) sim_profile_end(l);
    return sim_race_launch_end(l);
}

/* Restores the launch's state of before its first attempt. */
static void reset_launch(sim_launch *l, uint32_t resident_limit, const ptxsim_counters *counters)
{
    l->resident_limit = resident_limit;
    atomic_store(&l->next_block, 0);
    atomic_store(&l->error, 0);
    atomic_store(&l->issued, 0);
    atomic_store(&l->suspect_ns, 0);
    atomic_store(&l->suspect, false);
    atomic_store(&l->changes, 0);
    sim_forget_copied_bytes();
    sim_count_restore(counters);
}

/* Runs a launch; returns a CUresult. The caller holds the driver's lock: one launch at a time. */
int sim_launch_run(sim_launch *l)
{
    uint32_t threads = wanted_threads(), resident_limit = l->resident_limit;
    ptxsim_counters counters;
    if (!pool.workers[0] && !(pool.workers[0] = new_worker(0))) return 2;
    if (threads > l->block_count / l->cluster_size) threads = (uint32_t)(l->block_count / l->cluster_size);
    if (threads > 1) ptxsim_counters_get(&counters, sizeof counters);
    if (run_attempt(l, threads)) {
        sim_report_withdraw(l->launch_serial);
        reset_launch(l, resident_limit, &counters);
        run_attempt(l, 1);
        sim_report_settle(l->launch_serial);
    }
    return atomic_load(&l->error);
}

void sim_exec_shutdown(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.quit = true;
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    for (uint32_t n = 1; n <= pool.started; n++) pthread_join(pool.threads[n], NULL);
    for (uint32_t n = 0; n < MAX_THREADS; n++) { free_worker(pool.workers[n]); pool.workers[n] = NULL; }
    pool.started = 0;
    pool.quit = false;
    sim_race_shutdown();
}
