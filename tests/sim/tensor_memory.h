/* tensor_memory.h - tensor memory (tcgen05): decoded instructions that lower_tcgen05.c makes, and what
 * tensor_memory.c and tcgen05.c share. */
#ifndef SIM_TENSOR_MEMORY_H
#define SIM_TENSOR_MEMORY_H
#include "race.h"
#include "tensor.h"

SIM_PRIVATE_BEGIN

enum { SIM_TENSOR_LANES = 128, SIM_TENSOR_COLUMNS = 512, SIM_TENSOR_UNIT = 32 };   /* columns of the allocation unit */

/* --- instructions ----------------------------------------------------------------------------- */

typedef enum sim_tensor_shape {        /* first those of ld and st, then those of cp */
    TS_32X32B, TS_16X64B, TS_16X128B, TS_16X256B, TS_16X32BX2,
    TS_128X256B, TS_128X128B, TS_4X256B, TS_64X128B_02, TS_64X128B_01, TS_32X128B
} sim_tensor_shape;

typedef enum sim_mma_kind { TK_F16, TK_TF32, TK_F8F6F4, TK_I8, TK_MXF8F6F4, TK_MXF4, TK_MXF4NVF4 } sim_mma_kind;

typedef struct sim_tensor_address { uint32_t slot, offset; } sim_tensor_address;

typedef struct sim_tcgen05 {
    uint8_t group;                     /* cta_group: blocks, 1 or 2 */
    uint8_t shape, regs;               /* regs: of ld and st */
    bool pack, wide;                   /* pack::16b, unpack::16b; an address is in a 64-bit register */
    uint8_t bits;                      /* cp: bits of a source element that is unpacked to a byte: 8, 6, 4 */
    uint8_t reduce, reduce_type;       /* ld.red: 1 min, 2 max; T_F32, T_U32, T_S32 */
    bool abs, nan;
    uint32_t list, touched, result;    /* registers; their watches; result of ld.red */
    uint32_t split;                    /* .16x32bx2: column offset of the second half */
    sim_tensor_address d, a, metadata, scale[2];
    uint8_t kind, vectors;             /* vectors: scale factors along K; 0: none */
    bool ws, sparse, a_in_memory, shifts;
    uint32_t a_descriptor, b_descriptor, instruction, enable;
    uint32_t masks, mask_count;        /* lanes of D that are not written: a list of slots */
    bool has_zero_mask;
    uint32_t zero_mask;
    uint8_t scale_d;                   /* D is divided by 2^scale_d */
} sim_tcgen05;

static inline const sim_tcgen05 *sim_tcgen05_of(const sim_ins *i)
{ return (const sim_tcgen05 *)(uintptr_t)i->imm; }

/* --- the memory of a block ---------------------------------------------------------------------- */

/* The last access to a granule: an operation of a thread (unit: the thread), or tcgen05.ld or st of a warp. */
typedef struct sim_tensor_touch {
    const sim_ins *ins;                /* NULL: no access */
    uint64_t block;
    uint32_t count, era, shape;        /* count: its number in the unit; shape: of D, for an mma */
    uint32_t unit;
} sim_tensor_touch;

/* Sixteen lanes of a column. */
typedef struct sim_granule { sim_tensor_touch written, read, stored, loaded; } sim_granule;

typedef struct sim_tensor_warp {
    uint32_t loads, stores, loads_done, stores_done;
    sim_clock_vector *seen;            /* what it knew at its last fence::after_thread_sync */
    uint32_t pair_number;              /* number of the cta_group::2 alloc in which it waits, from 1 */
    bool waits;
} sim_tensor_warp;

typedef struct sim_tensor_pipe {       /* the operations of one thread */
    uint32_t thread, issued, committed;
    const sim_ins *last;
} sim_tensor_pipe;

typedef struct sim_tensor_piece { uint32_t column, count, warp; const sim_ins *ins; } sim_tensor_piece;

typedef struct sim_tensor_memory {
    uint32_t cell[SIM_TENSOR_COLUMNS][SIM_TENSOR_LANES];
    uint32_t written[SIM_TENSOR_COLUMNS][SIM_TENSOR_LANES / 32];
    sim_granule granule[SIM_TENSOR_COLUMNS][SIM_TENSOR_LANES / 16];
    uint8_t owner[SIM_TENSOR_COLUMNS / SIM_TENSOR_UNIT];     /* TO_ */
    sim_tensor_piece piece[SIM_TENSOR_COLUMNS / SIM_TENSOR_UNIT];
    uint32_t pieces, last_size, allocations;
    bool used, relinquished;
    const sim_ins *relinquished_at;
    uint32_t pair_calls, pair_columns[64]; /* cta_group::2: allocs so far; columns of the last ones + 1 */
    uint32_t pair_sizes[64];
    sim_tensor_warp *warp; uint32_t warp_capacity;
    sim_tensor_pipe *pipe; uint32_t pipes, pipe_capacity;
    struct sim_tensor_room *room;      /* tcgen05.c: buffers for the matrices of a product */
} sim_tensor_memory;
enum { TO_FREE, TO_ALLOCATED, TO_FREED };

sim_tensor_memory *sim_tensor_of_block(sim_block *b);        /* NULL: out of memory */
static inline uint32_t sim_tensor_place(const sim_warp *w, const sim_tensor_address *a, uint32_t lane)
{ return sim_slot(w, a->slot)[lane] + a->offset; }

/* A part of a block's tensor memory. groups: one bit for each sixteen lanes. */
typedef struct sim_tensor_part { sim_block *block; uint32_t column, columns, groups; } sim_tensor_part;

/* Whether its columns are allocated; if not, reports and ends the launch. */
bool sim_tensor_allocated(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_tensor_part *p);
/* Checks and records that an operation of this thread reads or writes the part. shape: of D for an mma; for shift,
 * which is ordered after every mma of the thread, SIM_TENSOR_IN_LINE; else 0. */
#define SIM_TENSOR_IN_LINE UINT32_MAX
void sim_tensor_operate(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_tensor_part *p, bool writes,
                        uint32_t shape);
/* Counts one more operation of the thread. */
sim_tensor_pipe *sim_tensor_issue(sim_warp *w, const sim_ins *i, uint32_t lane);
sim_tensor_pipe *sim_tensor_pipe_of(sim_warp *w, uint32_t lane);
/* The counters that fence::before_thread_sync or a commit of the lane publishes. */
uint32_t sim_tensor_counts(sim_warp *w, uint32_t lane, bool commit, sim_clock_entry out[4]);
bool sim_tensor_fault(sim_warp *w, const sim_ins *i, uint32_t lane, const char *kind, const char *format, ...)
    SIM_PRINTF(5, 6);                  /* reports, ends the launch; returns false */
void sim_tensor_room_free(struct sim_tensor_room *r);

void sim_tcgen05_alloc(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_dealloc(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_relinquish(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_ld(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_st(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_wait(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_fence(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_mma(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_cp(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_shift(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_tcgen05_commit(sim_warp *w, const sim_ins *i, uint32_t m);

/* Hooks: a block begins, ends, is abandoned; a register that tcgen05.ld loads is accessed; a deadlock. */
void sim_tensor_begin(sim_block *b);
void sim_tensor_leave(sim_block *b);
void sim_tensor_free(sim_block *b);
void sim_tensor_register(sim_warp *w, const sim_ins *i, const sim_watch_entry *e, uint32_t m);
void sim_tensor_describe(const sim_warp *w, const sim_ins *i, char *out, size_t size);

SIM_PRIVATE_END
#endif
