/* race.h - happens-before: who knows of whose accesses (clocks.c), what was accessed by whom (race.c).
 *
 * Time is counted in eras. A block has one counter; a warp stamps its accesses with the era at which it
 * last published something (a barrier, a warp sync, a release, a fence), so what a thread publishes is
 * "everything of mine up to this era". What a thread knows of others comes in layers, the cheap ones first:
 * `base` (its whole block up to that era: block barriers), `warp_base` (its warp: bar.warp.sync), `lanes`
 * (lanes of its warp one by one: syncs of a part of the warp), `known` (warps of the block one by one:
 * barriers of some warps), and clocks (sparse vector clocks: acquired from atomics, mbarriers, other
 * blocks). Nothing of this depends on when a worker happened to run. */
#ifndef SIM_RACE_H
#define SIM_RACE_H
#include "sim.h"

SIM_PRIVATE_BEGIN

/* Order and scope of ld, st, atom, red and fences, in i->x beside X_VOLATILE (strong: relaxed or more). */
/* X_GUESS: a load whose value a compare-and-swap of the same address checks. */
enum { X_ACQUIRE = 1, X_RELEASE = 2, X_SCOPE_SHIFT = 2, X_SCOPE = 3 << 2, X_GUESS = 16 };
enum { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU };

typedef struct sim_record {            /* one instruction of a warp at one era: shared by many cells */
    uint64_t block;
    const sim_ins *ins;
    uint32_t era;
    uint8_t warp, flags;
} sim_record;
enum { REC_STRONG = 1, REC_WRITE = 2, REC_ATOMIC = 4, REC_WIDE = 8, REC_ASYNC = 16 };

/* --- clocks.c ---------------------------------------------------------------------------------- */

typedef struct sim_clock_vector sim_clock_vector;   /* immutable, counted */

typedef struct sim_view { uint32_t era, base, warp_base; bool set, wide; sim_clock_vector *clock; } sim_view;

typedef struct sim_lane_order {        /* made when a warp first uses fences or acquires */
    sim_clock_vector *clock[SIM_LANES];    /* acquired */
    sim_clock_vector *pending[SIM_LANES];  /* read from strong locations; acquired by the next fence */
    sim_clock_vector *counted[SIM_LANES];  /* the same from atom's old values: block barriers take it too */
    sim_view fence[SIM_LANES];             /* what the last fence lets strong writes publish */
} sim_lane_order;

typedef struct sim_warp_order {
    uint32_t era, base, warp_base;
    uint32_t *lanes;                   /* [lane][of lane], or NULL */
    sim_clock_vector *clock;           /* known to all lanes */
    sim_lane_order *lane;
} sim_warp_order;

struct sim_race_block {
    uint64_t index;
    uint32_t era, warps, capacity;
    sim_warp_order *w;
    uint32_t *known;                   /* [warp][of warp], or NULL */
    uint32_t *gathered;                /* [barrier][of warp]: what arrivals brought, or NULL */
    sim_clock_vector *gathered_clock[16];
    sim_clock_vector *clock;           /* known to all threads of the block */
    bool fenced;                       /* a thread has executed a fence since the last full barrier */
    struct sim_race_page **pages; uint32_t page_count;
    uint64_t serial;
};

bool sim_order_known(const struct sim_race_block *b, uint32_t warp, uint32_t lane, const sim_record *r,
                     uint32_t record_lane);
static inline bool sim_order_known_of(const struct sim_race_block *b, uint32_t warp, uint32_t lane,
                                      const sim_record *r, uint32_t record_lanes)   /* of any of these */
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
void sim_race_barrier(struct sim_block *b, uint32_t id);      /* it completes; masks and paths as they wait */
void sim_race_arrive(sim_warp *w, uint32_t id);
void sim_race_warp_sync(sim_warp *w, uint32_t mask);
void sim_race_shuffle(sim_warp *w, uint32_t mask, const uint32_t *from);
void sim_fence(sim_warp *w, const sim_ins *i, uint32_t mask);

/* For other rooms (mbarriers, clusters): what the lanes know is published to an object and taken from it.
 * The key of an object in shared memory is sim_race_key(w, SP_SHARED, its address). */
uint64_t sim_race_key(const sim_warp *w, sim_space space, uint64_t address);
uint64_t sim_race_key_in(const struct sim_block *b, uint64_t address); /* shared memory of that block */
void sim_race_release(sim_warp *w, uint32_t mask, uint64_t key);
void sim_race_release_fenced(sim_warp *w, uint32_t mask, uint64_t key);  /* what the last fences gave out */
void sim_race_acquire(sim_warp *w, uint32_t mask, uint64_t key);
/* Objects of 8 bytes with phases: arrivals release to the key; sim_race_phase when a phase is over; those
 * who wait acquire from sim_race_key_done. */
void sim_race_phase(const sim_launch *l, uint64_t key);
static inline uint64_t sim_race_key_done(uint64_t key) { return key | 4; }

/* For tensor memory, whose operations end on their own: counts of what has ended, as entries of clocks. What a
 * thread has learnt of another block's or thread's counter, it hands on as all that it knows. */
enum { SIM_COUNT_DONE = 0x4000,        /* + thread: its operations that a commit says are complete */
       SIM_COUNT_ISSUED = 0x4400,      /* + thread: those that later ones in line come after */
       SIM_COUNT_LOADED = 0x4800,      /* + warp: its tcgen05.ld that it has waited for; its tcgen05.st: */
       SIM_COUNT_STORED = 0x4840 };
typedef struct sim_clock_entry { uint32_t what, value; } sim_clock_entry;
void sim_clock_note(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n);   /* this thread knows */
void sim_clock_publish(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n, uint64_t key);
bool sim_clock_knows(const sim_warp *w, uint64_t block, uint32_t what, uint32_t value);   /* any lane */
/* What the lanes know now, added to *seen. */
void sim_clock_see(const sim_warp *w, uint32_t m, sim_clock_vector **seen);
bool sim_clock_seen(const sim_clock_vector *seen, uint64_t block, uint32_t what, uint32_t value);
void sim_clock_forget(sim_clock_vector **seen);

/* A proxy fence: what these lanes know of writes, their own among them, is ordered before the other proxy for
 * themselves and for whoever learns of the fence. sim_clock_fenced: any of these lanes has learnt of a fence
 * behind what that thread (of whichever block) wrote in that era. */
void sim_clock_fence_proxy(sim_warp *w, uint32_t m);
bool sim_clock_fenced(const sim_warp *w, uint32_t m, uint64_t block, uint32_t era, uint32_t thread);

/* --- race.c ----------------------------------------------------------------------------------- */

/* `bytes` at each at[lane] of m, an access of the kind that the instruction is, in the shared memory of
 * `owner` (of the same cluster) or, where that is NULL, in `a`.
 * side_by_side: all lanes, each where the one before ends. */
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

/* With a seed: the dice, the same for a block whoever runs it. */
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
uint32_t sim_went_around(const sim_warp *w, const sim_ins *barrier);
void sim_come_behind(sim_warp *w, const sim_ins *i, uint32_t lanes);
void sim_barrier_complete(struct sim_block *b, uint32_t id);
void sim_where_text(const struct sim_block *b, char *out, size_t cap);
void sim_spin_watch(sim_launch *l);
bool sim_spins(struct sim_block *b);
static inline bool sim_suspect(const sim_launch *l)
{ return SIM_UNLIKELY(atomic_load_explicit(&l->suspect, memory_order_relaxed)); }
static inline void sim_changed(sim_launch *l) { if (sim_suspect(l)) atomic_fetch_add(&l->changes, 1); }

/* check.c: a finding over two accesses (other NULL: one); the same pair of lines of one launch is told once,
 * of the first of its places. */
typedef struct sim_site { const sim_ins *ins; uint64_t block; uint32_t thread; } sim_site;
typedef struct sim_finding_place {
    uint64_t block, other_block;
    uint32_t thread, other_thread;
} sim_finding_place;
sim_finding_place sim_pair_place(const sim_site *at, const sim_site *other);
bool sim_place_before(const sim_finding_place *a, const sim_finding_place *b);
void sim_report_pair(const sim_launch *l, const char *kind, const sim_site *at, const sim_site *other,
                     const char *detail);
void sim_report_withdraw(uint64_t launch);
void sim_report_settle(uint64_t launch);
void sim_ask_again(const sim_launch *l);        /* race.c */
void sim_site_text(const sim_launch *l, const sim_site *s, char *out, size_t cap);

/* Two accesses that race, for the text. */
typedef struct sim_conflict {
    sim_site a, b;
    uint64_t address, place;           /* place: sim_guess_place of it */
    uint32_t bytes, rank;
    uint8_t a_flags, b_flags;          /* REC_ */
    bool shared;
    const char *more;
} sim_conflict;
void sim_race_tell(const sim_launch *l, const sim_conflict *x);

/* --- guess.c -------------------------------------------------------------------------------------- */

uint64_t sim_guess_place(const sim_block *owner, uint64_t address);
void sim_guess_keep(const sim_conflict *x, const sim_site *reader, const sim_site *other);
void sim_guess_settle(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner,
                      uint32_t bytes);
void sim_guess_launch_end(const sim_launch *l);

SIM_PRIVATE_END
#endif
