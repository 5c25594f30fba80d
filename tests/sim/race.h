/* race.h - happens-before: which accesses a thread knows of (clocks.c), last accesses of each cell (race.c).
 *
 * A thread "knows" an access that happens before its own. Time is counted in eras. A block has one counter; a
 * warp stamps its accesses with the era at which it last published something (at a barrier, warp sync, release or
 * fence), so that what a thread publishes is "everything of mine up to this era". What a thread knows of others is
 * kept in layers, the cheap ones first: `base` (its whole block up to that era: block barriers), `warp_base` (its
 * warp: bar.warp.sync), `lanes` (single lanes of its warp: syncs of a part of the warp), `known` (single warps of
 * the block: barriers of some warps), and clocks (sparse vector clocks: acquired from atomics, mbarriers, other
 * blocks). Nothing of this depends on the order in which workers run. */
#ifndef SIM_RACE_H
#define SIM_RACE_H
#include "sim.h"

SIM_PRIVATE_BEGIN

/* Order and scope of ld, st, atom, red and fences, in i->x beside X_VOLATILE (strong: .relaxed and stronger).
 * X_GUESS: a load whose value a compare-and-swap of the same address checks. */
enum { X_ACQUIRE = 1, X_RELEASE = 2, X_SCOPE_SHIFT = 2, X_SCOPE = 3 << 2, X_GUESS = 16 };
enum { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU };

typedef struct sim_record {            /* one instruction of a warp in one era; many cells refer to it */
    uint64_t block;
    const sim_ins *ins;
    uint32_t era;
    uint8_t warp, flags;
} sim_record;
enum { REC_STRONG = 1, REC_WRITE = 2, REC_ATOMIC = 4, REC_WIDE = 8, REC_ASYNC = 16 };

/* --- clocks.c ---------------------------------------------------------------------------------- */

typedef struct sim_clock_vector sim_clock_vector;   /* immutable, reference-counted */

typedef struct sim_view { uint32_t era, base, warp_base; bool set, wide; sim_clock_vector *clock; } sim_view;

typedef struct sim_lane_order {        /* made when a warp first uses fences or acquires */
    sim_clock_vector *clock[SIM_LANES];    /* what the lane has acquired */
    sim_clock_vector *pending[SIM_LANES];  /* read from strong locations; the next fence acquires it */
    sim_clock_vector *counted[SIM_LANES];  /* the same, from old values of atom: block barriers acquire it too */
    sim_view fence[SIM_LANES];             /* what strong writes publish: the state at the last fence */
} sim_lane_order;

typedef struct sim_warp_order {
    uint32_t era, base, warp_base;
    uint32_t *lanes;                   /* [lane][of lane]: eras of single lanes, or NULL */
    sim_clock_vector *clock;           /* known to all lanes */
    sim_lane_order *lane;
} sim_warp_order;

struct sim_race_block {
    uint64_t index;
    uint32_t era, warps, capacity;
    sim_warp_order *w;
    uint32_t *known;                   /* [warp][of warp]: eras of single warps, or NULL */
    uint32_t *gathered;                /* [barrier][of warp]: eras that arriving warps published, or NULL */
    sim_clock_vector *gathered_clock[16];
    sim_clock_vector *clock;           /* known to all threads of the block */
    bool fenced;                       /* a thread has executed a fence since the last full barrier */
    struct sim_race_page **pages; uint32_t page_count;
    uint64_t serial;
};

bool sim_order_known(const struct sim_race_block *b, uint32_t warp, uint32_t lane, const sim_record *r,
                     uint32_t record_lane);
static inline bool sim_order_known_of(const struct sim_race_block *b, uint32_t warp, uint32_t lane,
                                      const sim_record *r, uint32_t record_lanes)   /* true if it knows any of these */
{
    SIM_EACH_LANE(l, record_lanes) if (sim_order_known(b, warp, lane, r, l)) return true;
    return false;
}
void sim_order_block_begin(struct sim_race_block *b, uint64_t index, uint32_t warps);
void sim_order_block_free(struct sim_race_block *b);
void sim_order_launch_end(void);
bool sim_order_uses_clocks(const sim_kernel *k);
void sim_order_before(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner);
void sim_order_after(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner);

/* Hooks of exec.c. */
void sim_race_barrier(struct sim_block *b, uint32_t id);      /* before it completes: masks and paths still wait */
void sim_race_arrive(sim_warp *w, uint32_t id);
void sim_race_warp_sync(sim_warp *w, uint32_t mask);
void sim_race_shuffle(sim_warp *w, uint32_t mask, const uint32_t *from);
void sim_fence(sim_warp *w, const sim_ins *i, uint32_t mask);

/* For mbarriers, clusters and the like: what the lanes know is published to an object, and acquired from it.
 * The key of an object in shared memory is sim_race_key(w, SP_SHARED, its address). */
uint64_t sim_race_key(const sim_warp *w, sim_space space, uint64_t address);
uint64_t sim_race_key_in(const struct sim_block *b, uint64_t address); /* shared memory of that block */
void sim_race_release(sim_warp *w, uint32_t mask, uint64_t key);
void sim_race_release_fenced(sim_warp *w, uint32_t mask, uint64_t key);  /* the state at their last fences */
void sim_race_acquire(sim_warp *w, uint32_t mask, uint64_t key);
/* Objects of 8 bytes with phases: arrivals release to the key; sim_race_phase ends a phase; waiting threads
 * acquire from sim_race_key_done. */
void sim_race_phase(const sim_launch *l, uint64_t key);
static inline uint64_t sim_race_key_done(uint64_t key) { return key | 4; }

/* Counters of asynchronous operations on tensor memory, kept as entries of clocks. A thread that has learnt another
 * block's or thread's counter hands it on with all else that it knows. */
enum { SIM_COUNT_DONE = 0x4000,        /* + thread: its operations that a commit reported complete */
       SIM_COUNT_ISSUED = 0x4400,      /* + thread: its operations that later ones of the pipe are ordered after */
       SIM_COUNT_LOADED = 0x4800,      /* + warp: its tcgen05.ld that it has waited for */
       SIM_COUNT_STORED = 0x4840 };    /* + warp: its tcgen05.st that it has waited for */
typedef struct sim_clock_entry { uint32_t what, value; } sim_clock_entry;
void sim_clock_note(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n);   /* this thread knows */
void sim_clock_publish(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n, uint64_t key);
bool sim_clock_knows(const sim_warp *w, uint64_t block, uint32_t what, uint32_t value);   /* true if any lane does */
/* Adds what the lanes know now to *seen. */
void sim_clock_see(const sim_warp *w, uint32_t m, sim_clock_vector **seen);
bool sim_clock_seen(const sim_clock_vector *seen, uint64_t block, uint32_t what, uint32_t value);
void sim_clock_forget(sim_clock_vector **seen);

/* A proxy fence: the writes that these lanes know of, their own included, become ordered before the other proxy,
 * for these lanes and for whoever learns of the fence. sim_clock_fenced: whether any of these lanes knows of a
 * fence after what that thread (of any block) wrote in that era. */
void sim_clock_fence_proxy(sim_warp *w, uint32_t m);
bool sim_clock_fenced(const sim_warp *w, uint32_t m, uint64_t block, uint32_t era, uint32_t thread);

/* --- race.c ----------------------------------------------------------------------------------- */

/* Checks and records an access of `bytes` at each at[lane] of m, of the kind of the instruction, in the shared
 * memory of `owner` (a block of the same cluster) or, if that is NULL, in `a`.
 * side_by_side: all lanes take part, and each begins where the one before ends. */
void sim_race_access(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner,
                     sim_allocation *a, uint32_t bytes, uint32_t flags, bool side_by_side);
void sim_race_prepare(sim_kernel *k);                         /* once, when its code is complete */
void sim_race_launch_begin(sim_launch *l, uint32_t workers);
bool sim_race_launch_end(sim_launch *l);
bool sim_race_block_begin(struct sim_block *b, uint64_t index);
void sim_race_block_free(struct sim_block *b);
void sim_race_shutdown(void);

/* --- cp_async.c ---------------------------------------------------------------------------------- */

void sim_async_issue(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t to, sim_allocation *a,
                     uint64_t address, uint32_t read, uint32_t unwritten);
bool sim_async_pending(const struct sim_block *b);
bool sim_async_touch(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t bytes,
                     bool write);
void sim_async_finish(sim_warp *w, uint32_t m);
void sim_async_group(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_async_exit(sim_warp *w, uint32_t m);
void sim_async_block_begin(struct sim_block *b);
void sim_async_block_free(struct sim_block *b);

static inline uint64_t sim_block_index(const sim_block *b)
{
    const uint32_t *t = b->ctaid, *n = b->launch->grid;
    return t[0] + (uint64_t)n[0] * (t[1] + (uint64_t)n[1] * t[2]);
}

/* A random number for a launch with a seed: the same for a block whichever worker runs it. */
static inline uint32_t sim_chance(const sim_launch *l, uint64_t block, uint32_t what, uint64_t n)
{
    uint64_t x = (uint64_t)l->seed * UINT64_C(0x9e3779b97f4a7c15)
                 ^ block * UINT64_C(0xbf58476d1ce4e5b9) ^ ((uint64_t)what << 40) ^ n;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x >> 32);
}

/* --- barriers.c ------------------------------------------------------------------------------- */

void sim_barriers_prepare(sim_kernel *k);
void sim_barriers_begin(struct sim_block *b);
void sim_barrier_arrives(sim_warp *w, const sim_ins *i, uint32_t id, uint32_t mask);
uint32_t sim_lanes_that_bypassed(const sim_warp *w, const sim_ins *barrier);
void sim_pass_barriers(sim_warp *w, const sim_ins *i, uint32_t lanes);
void sim_barrier_complete(struct sim_block *b, uint32_t id);
void sim_where_text(const struct sim_block *b, char *out, size_t cap);
void sim_spin_watch(sim_launch *l);
bool sim_check_endless_spin(struct sim_block *b);
static inline bool sim_suspect(const sim_launch *l)
{ return SIM_UNLIKELY(atomic_load_explicit(&l->suspect, memory_order_relaxed)); }
static inline void sim_changed(sim_launch *l) { if (sim_suspect(l)) atomic_fetch_add(&l->changes, 1); }

/* check.c: a finding over two accesses (other NULL: over one). The same pair of lines is reported once for each
 * launch, at the first of its places. */
typedef struct sim_site { const sim_ins *ins; uint64_t block; uint32_t thread; } sim_site;
typedef struct sim_finding_place {
    uint64_t block, other_block;
    uint32_t thread, other_thread;
} sim_finding_place;
sim_finding_place sim_pair_place(const sim_site *at, const sim_site *other);
bool sim_place_precedes(const sim_finding_place *a, const sim_finding_place *b);
void sim_report_pair(const sim_launch *l, const char *kind, const sim_site *at, const sim_site *other,
                     const char *detail);
void sim_report_withdraw(uint64_t launch);
void sim_report_settle(uint64_t launch);
void sim_request_rerun(const sim_launch *l);    /* race.c */
void sim_site_text(const sim_launch *l, const sim_site *s, char *out, size_t cap);

/* Two accesses that race, for the finding's text. */
typedef struct sim_conflict {
    sim_site a, b;
    uint64_t address, place;           /* place: sim_guess_place of it */
    uint32_t bytes, rank;
    uint8_t a_flags, b_flags;          /* REC_ */
    bool shared;
    const char *more;
} sim_conflict;
void sim_race_report(const sim_launch *l, const sim_conflict *x);

/* --- guess.c -------------------------------------------------------------------------------------- */

uint64_t sim_guess_place(const sim_block *owner, uint64_t address);
void sim_guess_store(const sim_conflict *x, const sim_site *reader, const sim_site *other);
void sim_guess_settle(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner,
                      uint32_t bytes);
void sim_guess_launch_end(const sim_launch *l);

SIM_PRIVATE_END
#endif
