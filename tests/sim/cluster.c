/* cluster.c - clusters of blocks: their blocks, shared::cluster addresses, barrier.cluster, and deadlocks.
 *
 * A launch without clusters has clusters of one block, so that all waiting uses one mechanism (async.h). */
#include "async.h"
#include "dependents.h"
#include "race.h"
#include "tensor_memory.h"

enum { STALLS_ALONE = 64, STALLS_MOST = 4096 };
#define STALL_NS UINT64_C(500000000) /* how long other clusters may take to end a stall */

/* --- beginning and ending --------------------------------------------------------------------- */

sim_cluster *sim_cluster_begin(sim_block *first, sim_launch *l) {
    sim_cluster *c = first->own;
    if (!c && !(c = first->own = calloc(1, sizeof *c))) return NULL;
    sim_copies_discard(c);
    memset(c, 0, sizeof *c);
    c->launch = l;
    c->size = l->cluster_size;
    c->pending_tail = &c->pending;
    return c;
}

bool sim_cluster_join(sim_cluster *c, sim_block *b, uint32_t rank) {
    c->blocks[rank] = b;
    c->random = 2463534242u ^ (b->ctaid[0] * 40503u + b->ctaid[1] * 9973u + b->ctaid[2] * 131u)
                ^ c->launch->seed * 2654435761u;
    b->cluster = c;
    b->rank = rank;
    b->mbarrier_count = 0;
    sim_operands_forget(b);
    if (b->tensor) sim_tensor_begin(b);
    b->remote_ranks = 0;
    b->pool_used = false;
    if (b->group_logs_used) sim_group_forget(b);
    if (b->groups) memset(b->groups, 0, b->group_capacity * sizeof *b->groups);
    if (!c->launch->kernel->bulk_stores) return true;
    b->watched = true;
    return sim_proxy_begin(b);
}

void sim_cluster_free(sim_block *b) {
    if (b->own) sim_copies_discard(b->own);
    free(b->own);
    free(b->mbarriers);
    free(b->proxy);
    sim_operands_forget(b);
    sim_tensor_free(b);
    free(b->groups);
    free(b->remote);
    sim_pool_free(b);
    sim_group_free(b);
}

/* The last access of another block's thread to b's shared memory, by that block's rank; kept until b ends. */
struct sim_remote { sim_record record; uint32_t lane; };

void sim_cluster_record_access(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b) {
    const struct sim_race_block *r = w->block->race;
    if (!w->launch->races || w->block == b) return;
    if (!b->remote && !(b->remote = calloc(SIM_MAX_CLUSTER, sizeof *b->remote))) return;
    struct sim_remote *s = &b->remote[w->block->rank];
    s->record = (sim_record){ .block = r->index, .ins = i, .era = r->w[w->index].era,
                              .warp = (uint8_t)w->index };
    s->lane = lane;
    b->remote_ranks |= 1u << w->block->rank;
}

static bool is_known_to_block(const sim_block *b, const struct sim_remote *s) {
    for (uint32_t n = 0; n < b->warp_count; n++)
        for (uint32_t l = 0; l < SIM_LANES; l++)
            if (sim_order_known(b->race, n, l, &s->record, s->lane)) return true;
    return false;
}

/* Reports accesses from other blocks that no thread of this block waited for before it exited: they came in time
 * only by chance. */
static void check_remote(const sim_block *b) {
    for (uint32_t rank = 0; rank < b->cluster->size; rank++) {
        if (!(b->remote_ranks >> rank & 1) || is_known_to_block(b, &b->remote[rank])) continue;
        const struct sim_remote *s = &b->remote[rank];
        sim_site at = { s->record.ins, s->record.block, s->record.warp * SIM_LANES + s->lane };
        char text[120];
        snprintf(text, sizeof text, "block %u of the cluster, whose shared memory this is, exits without "
                 "having waited for it", b->rank);
        sim_report_pair(b->launch, "ended-block", &at, NULL, text);
    }
}

void sim_cluster_leave(sim_block *b) {
    if (b->remote_ranks) check_remote(b);
    sim_pool_leave(b);
    sim_group_leave(b);
    sim_tensor_leave(b);
    sim_grid_leave(b);
    b->ended = true;
    b->cluster->changes++;
    sim_copies_finish(b->cluster, b);
}

/* --- waiting ---------------------------------------------------------------------------------- */

void sim_cluster_wake(sim_warp *w) {
    w->waits = false;
    w->events = w->block->cluster->events;
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k].state == P_WAIT) w->paths[k].state = P_RUN;
}

bool sim_cluster_waits(sim_block *b) {
    bool any = false;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        sim_warp *w = &b->warps[n];
        if (!w->waits) continue;
        w->waits = false;
        for (uint32_t k = 0; k < w->path_count; k++) w->waits |= w->paths[k].state == P_WAIT;
        any |= w->waits;
    }
    return any;
}

static void force_path(sim_path *p, bool *any) {
    p->force = true;
    p->state = P_RUN;
    *any = true;
}

/* Resumes all paths in one state (waiting at one kind of instruction) without what they wait for: try_wait returns
 * false, *.sync goes on without the absent lanes, wgmma.wait_group without the other warps. */
static bool force_paths(sim_cluster *c, int state, sim_handler which) {
    bool any = false;
    for (uint32_t r = 0; r < c->size; r++) {
        sim_block *b = c->blocks[r];
        for (uint32_t n = 0; n < b->warp_count && !b->ended; n++) {
            sim_warp *w = &b->warps[n];
            for (uint32_t k = 0; k < w->path_count; k++) {
                sim_path *p = &w->paths[k];
                if (p->state == state && (!which || w->kernel->code[p->pc].fn == which))
                    force_path(p, &any);
            }
        }
    }
    return any;
}

/* Priority for the deadlock report: an instruction of higher rank says more about the cause. */
static int rank_of(const sim_ins *i)
{ return i->fn == sim_setmaxnreg || i->fn == sim_tcgen05_alloc ? 2 : i->fn == sim_mbarrier_wait; }

static void deadlock(sim_cluster *c) {
    sim_warp *at = NULL;
    uint32_t path = 0;
    for (uint32_t r = 0; r < c->size; r++) {
        sim_block *b = c->blocks[r];
        for (uint32_t n = 0; n < b->warp_count && !b->ended; n++)
            for (uint32_t k = 0; k < b->warps[n].path_count; k++) {
                const sim_path *p = &b->warps[n].paths[k];
                const sim_ins *i = &b->warps[n].kernel->code[p->pc];
                if (at && rank_of(i) <= rank_of(&at->kernel->code[at->paths[path].pc])) continue;
                at = &b->warps[n];
                path = k;
            }
    }
    if (!at) return;
    const sim_ins *i = &at->kernel->code[at->paths[path].pc];
    uint32_t lane = sim_lowest(at->paths[path].mask), absent = 0;
    char text[300] = "";
    if (i->fn == sim_mbarrier_wait)
        sim_mbarrier_describe(at, i, lane, text, sizeof text);
    else if (i->fn == sim_setmaxnreg)
        sim_pool_describe(at, i, text, sizeof text);
    else if (i->fn == sim_tcgen05_alloc)
        sim_tensor_describe(at, i, text, sizeof text);
    else {
        for (uint32_t r = 0; r < c->size; r++)
            for (uint32_t n = 0; n < c->blocks[r]->warp_count; n++)
                absent += sim_popcount(c->blocks[r]->warps[n].live & ~c->blocks[r]->warps[n].cluster_now);
        snprintf(text, sizeof text, "%u threads have not arrived at the cluster's barrier", absent);
    }
    sim_report_at(at, i, "deadlock", lane, "no thread of the %s can go on: %s",
                  c->size > 1 ? "cluster" : "block", text);
    sim_warp_fault(at, SIM_ERROR_TIMEOUT);
}

/* Whether no other cluster of the launch is running or will begin, as far as this worker can tell. */
static bool is_alone(const sim_cluster *c) {
    const sim_launch *l = c->launch;
    return l->block_count == c->size
        || (l->workers == 1 && sim_all_begun(l) && c->blocks[0]->worker->open <= c->size);
}

/* Called when no block can run. True: something can now. False: run other clusters first, or the launch failed. */
bool sim_cluster_stall(sim_cluster *c) {
    if (c->pending_count) {
        sim_copy_complete_random(c);
        return true;
    }
    uint64_t now = 0;
    if (!c->stalls || c->stall_changes != c->changes) {
        c->stalls = 0;
        c->stall_changes = c->changes;
        c->stalled_since = sim_now_ns();
    }
    bool alone = is_alone(c);
    if (++c->stalls > (alone ? STALLS_ALONE : STALLS_MOST)
        && (alone || (now = sim_now_ns()) - c->stalled_since > STALL_NS)) {
        if (force_paths(c, P_SYNC, NULL) || force_paths(c, P_WAIT, sim_wgmma_gather)) {
            c->stalls = 0;
            return true;
        }
        deadlock(c);
        return false;
    }
    if (force_paths(c, P_WAIT, sim_mbarrier_wait)) return false;
    if (force_paths(c, P_SYNC, NULL) || force_paths(c, P_WAIT, sim_wgmma_gather)) return true;
    deadlock(c); /* the remaining waits are at the cluster's barrier */
    return false;
}

/* --- addresses -------------------------------------------------------------------------------- */

sim_block *sim_cluster_peer(const sim_block *b, uint64_t *address) {
    uint64_t rank = *address >> SIM_RANK_SHIFT;
    if (!rank) return (sim_block *)(uintptr_t)b;
    if (rank < SIM_RANK_FIRST || rank - SIM_RANK_FIRST >= b->cluster->size) return NULL;
    *address &= SIM_RANK_MASK;
    return b->cluster->blocks[rank - SIM_RANK_FIRST];
}

/* i->op: 1 for 64-bit addresses; i->space SP_GENERIC: generic addresses */
void sim_mapa(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_cluster *c = w->block->cluster;
    SIM_EACH_LANE(l, m) {
        uint64_t a = i->op ? sim_slot64(w, i->a)[l] : sim_slot(w, i->a)[l];
        uint64_t base = i->space == SP_GENERIC ? SIM_SHARED_WINDOW : 0, at = a - base + (uint64_t)i->imm;
        uint64_t own = at;
        uint32_t rank = sim_slot(w, i->b)[l];
        bool nowhere = at >> 32 || !sim_cluster_peer(w->block, &own);
        if (rank >= c->size || nowhere) {
            sim_report_at(w, i, "cluster-rank", l,
                          nowhere ? "mapa of 0x%llx, which is no address of shared memory"
                                  : "mapa of 0x%llx for block %u of a cluster of %u",
                          (unsigned long long)a, rank, c->size);
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        at = base + sim_in_block(at, rank);
        if (i->op)
            sim_slot64(w, i->d)[l] = at;
        else
            sim_slot(w, i->d)[l] = (uint32_t)at;
    }
}

void sim_getctarank(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        uint64_t a = i->op ? sim_slot64(w, i->a)[l] : sim_slot(w, i->a)[l];
        uint32_t rank = (uint32_t)a >> SIM_RANK_SHIFT;
        sim_slot(w, i->d)[l] = rank >= SIM_RANK_FIRST ? rank - SIM_RANK_FIRST : w->block->rank;
    }
}

/* --- barrier.cluster -------------------------------------------------------------------------- */

/* Key of the object through which barrier.cluster orders accesses: an address of its own in the first block. */
static uint64_t barrier_key(const sim_cluster *c) {
    return sim_race_key(&c->blocks[0]->warps[0], SP_SHARED, SIM_RANK_MASK & ~7u);
}

static void complete_if_all_arrived(sim_cluster *c, const sim_block *first) {
    bool any = false;
    for (uint32_t n = 0; n < first->warp_count; n++) /* usually this block has not arrived yet */
        if (first->warps[n].live & ~first->warps[n].cluster_now) return;
    for (uint32_t r = 0; r < c->size; r++) {
        const sim_block *b = c->blocks[r];
        for (uint32_t n = 0; n < b->warp_count; n++) {
            if (b->warps[n].live & ~b->warps[n].cluster_now) return;
            any |= b->warps[n].cluster_now != 0;
        }
    }
    if (!any) return;
    for (uint32_t r = 0; r < c->size; r++)
        for (uint32_t n = 0; n < c->blocks[r]->warp_count; n++) {
            sim_warp *w = &c->blocks[r]->warps[n];
            w->cluster_done |= w->cluster_now;
            w->cluster_now = 0;
        }
    c->events++;
    c->changes++;
    if (c->launch->races) sim_race_phase(c->launch, barrier_key(c));
}

void sim_cluster_exits(sim_warp *w) {
    sim_cluster *c = w->block->cluster;
    if (c->barrier_used) complete_if_all_arrived(c, w->block);
}

/* i->op: 1 with .relaxed */
void sim_cluster_arrive(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t twice = m & (w->cluster_now | w->cluster_done);
    if (twice && sim_option.barriers)
        sim_report_at(w, i, "cluster-barrier", sim_lowest(twice),
                      "lanes 0x%08x arrive again at the cluster's barrier without having waited", twice);
    w->cluster_now |= m & ~twice;
    w->block->cluster->changes++;
    w->block->cluster->barrier_used = true;
    sim_changed(w->launch);
    if (w->launch->races)
        (i->op ? sim_race_release_fenced : sim_race_release)(w, m, barrier_key(w->block->cluster));
    w->worker->counts.c.barriers++;
    complete_if_all_arrived(w->block->cluster, w->block);
}

void sim_cluster_wait(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t never = m & ~(w->cluster_now | w->cluster_done);
    if (never && sim_option.barriers)
        sim_report_at(w, i, "cluster-barrier", sim_lowest(never),
                      "lanes 0x%08x wait at the cluster's barrier without having arrived", never);
    w->waiting_lanes = m & w->cluster_now;
    w->cluster_done &= ~m;
    if (w->launch->races && m & ~w->waiting_lanes)
        sim_race_acquire(w, m & ~w->waiting_lanes, sim_race_key_done(barrier_key(w->block->cluster)));
}
