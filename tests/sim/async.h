/* async.h - clusters, mbarriers and copies in flight: shared by cluster.c, mbarrier.c, bulk.c, tensormap.c.
 *
 * The blocks of a cluster run on one worker, in turns. A path that waits (mbarrier.try_wait, barrier.cluster.wait)
 * is parked (P_WAIT). `events` counts completed phases; parked paths look again when it has changed. Copies wait
 * in `pending` and are carried out as late as a program may expect: when nothing else can run, when a thread polls,
 * when a group is waited for, or after many rounds. */
#ifndef SIM_ASYNC_H
#define SIM_ASYNC_H
#include "sim.h"

SIM_PRIVATE_BEGIN

enum { SIM_MAX_CLUSTER = 16, SIM_MAX_BOX_RANK = 5 };
/* shared::cluster addresses: SIM_RANK_FIRST + rank in the bits from here on; 0: the thread's own block. The values
 * between the two belong to no block, so that an address past the end of the own block's window is recognised. */
#define SIM_RANK_SHIFT 24
#define SIM_RANK_MASK  0xffffffu
#define SIM_RANK_FIRST 0x80u

struct sim_copy;

typedef struct sim_cluster {
    sim_launch *launch;
    sim_block *blocks[SIM_MAX_CLUSTER];
    uint32_t size;
    uint32_t events, changes;          /* phases completed; changes of any barrier's state */
    uint32_t stalls, stall_changes;
    uint64_t stalled_since;
    uint32_t polls, random;
    bool barrier_used;
    struct sim_copy *pending, **pending_tail;
    uint32_t pending_count;
} sim_cluster;

/* --- cluster.c -------------------------------------------------------------------------------- */

sim_cluster *sim_cluster_begin(sim_block *first, sim_launch *l);
bool sim_cluster_join(sim_cluster *c, sim_block *b, uint32_t rank);
void sim_cluster_free(sim_block *b);
void sim_cluster_record_access(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b);
void sim_cluster_leave(sim_block *b);                         /* when the block has ended */
bool sim_cluster_stall(sim_cluster *c);   /* when no block can run; true: a block can run now */
void sim_cluster_wake(sim_warp *w);
bool sim_cluster_waits(sim_block *b);                         /* a path of the block is parked */
void sim_cluster_exits(sim_warp *w);      /* lanes have exited: may complete the barrier */
sim_block *sim_cluster_peer(const sim_block *b, uint64_t *address);   /* NULL: no such block */
static inline uint64_t sim_in_block(uint64_t address, uint32_t rank)  /* the same offset in another block */
{
    return (address & ~((uint64_t)0xff << SIM_RANK_SHIFT)) | (uint64_t)(SIM_RANK_FIRST + rank) << SIM_RANK_SHIFT;
}

void sim_mapa(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_getctarank(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_cluster_arrive(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_cluster_wait(sim_warp *w, const sim_ins *i, uint32_t mask);

void sim_griddep_launch(sim_warp *w, const sim_ins *i, uint32_t mask);    /* dependents.c */
void sim_griddep_wait(sim_warp *w, const sim_ins *i, uint32_t mask);

/* --- warpgroup.c ------------------------------------------------------------------------------ */

typedef struct sim_group_operands { uint64_t value[3]; } sim_group_operands; /* descriptors, scale-d */
void sim_group_step(sim_warp *w, const sim_ins *i, const sim_group_operands *o);
void sim_group_leave(sim_block *b);
void sim_group_forget(sim_block *b);
void sim_group_free(sim_block *b);

/* --- registers_pool.c ------------------------------------------------------------------------- */

void sim_setmaxnreg(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_pool_leave(sim_block *b);
void sim_pool_free(sim_block *b);
void sim_pool_describe(const sim_warp *w, const sim_ins *i, char *out, size_t size);

/* --- mbarrier.c ------------------------------------------------------------------------------- */

enum { MB_INIT, MB_INVAL, MB_ARRIVE, MB_DROP, MB_EXPECT, MB_COMPLETE };
void sim_mbarrier(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_mbarrier_test(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_mbarrier_wait(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_mbarrier_read(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *b,
                       uint32_t bytes);
void sim_mbarrier_pending(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_mbarrier_cp_async(sim_warp *w, const sim_ins *i, uint32_t mask);
/* A copy has written `bytes` that the barrier at `address` of block `b` counts. */
bool sim_mbarrier_complete(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint32_t address,
                           uint32_t bytes);
/* tcgen05.commit: one arrival at the instruction's address, or at the same offset in `b`. Threads that wait for the
 * phase learn the counts. */
struct sim_clock_entry;
bool sim_mbarrier_signal(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b,
                         const struct sim_clock_entry *counts, uint32_t n);
bool sim_mbarrier_known(const sim_block *b, uint32_t address);
void sim_mbarrier_describe(const sim_warp *w, const sim_ins *i, uint32_t lane, char *out, size_t size);

/* --- bulk.c ----------------------------------------------------------------------------------- */

void sim_copy_complete_random(sim_cluster *c);                /* carries out one of the pending copies */
void sim_copies_advance(sim_cluster *c);
void sim_copies_finish(sim_cluster *c, const sim_block *b);   /* the block ends: carries out its copies */
void sim_copies_discard(sim_cluster *c);
bool sim_copy_overlaps(const sim_cluster *c, const uint8_t *host, uint64_t bytes);
void sim_copies_check_access(sim_warp *w, const sim_ins *i, uint32_t lane, const uint8_t *host, uint32_t bytes,
                             bool write);
void sim_proxy_write(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                     uint32_t bytes);
bool sim_proxy_begin(sim_block *b);
void sim_proxy_read(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                    uint32_t bytes);
void sim_forget_copied_bytes(void);
void sim_check_stale_load(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const uint8_t *host,
                          uint64_t base, uint32_t bytes);
void sim_bulk(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_bulk_tensor(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_bulk_commit(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_bulk_wait(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_proxy_fence(sim_warp *w, const sim_ins *i, uint32_t mask);
enum { SIM_STORE_BULK_MOST = 16777216 };
void sim_store_bulk(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_store_async(sim_warp *w, const sim_ins *i, uint32_t mask);

/* --- operands.c: shared memory that wgmma and tcgen05 read --------------------------------------- */

void sim_operand_read(sim_warp *w, const sim_ins *i, uint64_t offset);
/* For tcgen05: operation `number` of the thread reads the shared memory of `b`. */
void sim_operand_read_by(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint64_t offset, uint32_t number);
void sim_operands_done(sim_warp *w);                          /* after a wait */
void sim_operands_write(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                        uint32_t bytes);
void sim_operands_forget(sim_block *b);

/* --- tensormap.c ------------------------------------------------------------------------------ */

typedef struct sim_tensor_map {        /* the 128 opaque bytes */
    uint32_t magic, check;
    uint64_t address;
    uint64_t strides[4];
    uint32_t dims[5];                  /* less 1: a dimension may have 2^32 elements */
    uint16_t box[5];
    uint8_t element_strides[5];
    uint8_t type, rank, interleave, swizzle, promotion, fill;
    uint8_t spare[3];
} sim_tensor_map;
uint32_t sim_tensor_check(const sim_tensor_map *m);
uint32_t sim_tensor_bytes(uint32_t type);                     /* of an element */
void sim_tensormap_replace(sim_warp *w, const sim_ins *i, uint32_t mask);

SIM_PRIVATE_END
#endif
