/* fault_words.h - wrong programs that only a run can tell, each beside a right one:
 *
 *     PAIR(HOPPER, "race") {
 *         ST(mine, 0, n);
 *         if (!bad) BAR;
 *         out(LD(AT(sh, XOR(tid, U(32))), 0));
 *     }
 *
 * records and runs the body twice, with `bad` set and without. The first run has to end with a finding of
 * that kind, the second with none. PAIR(HOPPER, "!range") runs nothing: the builder has to refuse the one with
 * that error, and to take the other. Also the words of such programs: values and variables at hand, asynchronous
 * copies, mbarriers, rings of stages, products of matrices. */
#ifndef FAULT_WORDS_H
#define FAULT_WORDS_H

#include "faults.h"

static ptx_val x, y, z, i, w, at, v4[8];
static ptx_var a, s, ph;

/* -- asynchronous copies -- */

static inline void copy(int64_t offset) { ptx_cp_async_16(k, ptx_off(wide, offset), q); }
static inline void copy_commit(void) { ptx_cp_async_commit(k); }
static inline void copy_wait(int left) { ptx_cp_async_wait(k, left); }
static inline void proxy_fence(void) { ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); }
static inline void bulk_commit(void) { ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0); }
static inline void bulk_wait(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(left)); }
static inline void bulk_wait_read(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(left)); }
static inline void bulk_store(int bytes) {
    ptx_bulk_store(k, p, sh, I(bytes));
    bulk_commit();
}

/* -- mbarriers -- */

/* Two mbarriers, at bar and at bar + 8, for so many arrivals each. */
static inline void init_mbarriers(int first, int second) {
    IF(one);
    ptx_mbarrier_init(k, bar, I(first));
    ptx_mbarrier_init(k, ptx_off(bar, 8), I(second));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
}
static inline void wait_parity(ptx_val barrier, ptx_val parity) {
    ptx_val over;
    ptx_loop(k);
    over = ptx_mbarrier_try_wait(k, barrier, parity);
    ptx_while(k, ptx_inv(over));
    END;
}
/* A kilobyte of q goes to shared memory; the mbarrier expects it, and takes one arrival. */
static inline void fetch(ptx_val to, ptx_val barrier) {
    ptx_mbarrier_arrive_expect(k, barrier, I(1024));
    ptx_bulk_load(k, to, q, I(1024), barrier);
}

static inline void fetch_by_one(void) {
    IF(one);
    fetch(sh, bar);
    END;
}

/* -- a ring of stages in shared memory: `full` and `empty` mbarriers, one producer, four consumer warps -- */

static ptx_val full, empty;
#define FULL_S ptx_ptr_add(k, full, GET(s), 8)
#define EMPTY_S ptx_ptr_add(k, empty, GET(s), 8)
#define TILE_S ptx_ptr_add(k, sh, GET(s), 1024)

static inline void init_rings(uint32_t full_count, uint32_t empty_count, int full_arrivals,
                              int empty_arrivals) {
    full = ptx_shared(k, "full", PTX_U64, full_count, 8);
    empty = ptx_shared(k, "empty", PTX_U64, empty_count, 8);
    IF(one);
    i = FOR(U(full_count));
    ptx_mbarrier_init(k, ptx_ptr_add(k, full, i, 8), I(full_arrivals));
    ptx_mbarrier_init(k, ptx_ptr_add(k, empty, i, 8), I(empty_arrivals));
    END;
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
    s = ptx_var_new(k, U(0));
    ph = ptx_var_new(k, U(0));
}
static inline void next_stage(uint32_t stages) {
    SET(s, ADD(GET(s), U(1)));
    IF(EQ(GET(s), U(stages)));
    SET(s, U(0));
    SET(ph, flip(GET(ph)));
    END;
}
/* One thread of the fifth warp is the producer, in a loop that consumers() ends; the others are consumers. */
static inline void producer(void) {
    IF(EQ(warp, I(4)));
    IF(ptx_elect(k, FULL));
}
static inline void consumers(void) {
    END;
    END;
    ELSE;
}
/* The producer of a ring of four stages, and the start of the consumers. */
static inline void ring_producer(uint32_t full_count, int empty_arrivals) {
    BLOCK(160);
    init_rings(full_count, 4, 1, empty_arrivals);
    producer();
    FOR(n);
    wait_parity(EMPTY_S, flip(GET(ph)));
    fetch(TILE_S, FULL_S);
    next_stage(4);
    consumers();
}
static inline void read_stage(ptx_val parity) {
    wait_parity(FULL_S, parity);
    out(LD(AT(TILE_S, lane), 0));
}
/* Lane 0 of each warp gives the stage back after its warp has read it. */
static inline void release_stage(void) {
    ptx_bar_warp_sync(k, FULL);
    IF(EQ(lane, zero));
    ptx_mbarrier_arrive(k, EMPTY_S);
    END;
}
static inline void ring_end(uint32_t stages) {
    next_stage(stages);
    END;
    END;
}

/* -- products of matrices -- */

static ptx_var sums[4];
static inline void init_sums(void) {
    int j;
    for (j = 0; j < 4; j++) sums[j] = ptx_var_new(k, ptx_f32(0));
}
static inline void store_sums(void) { ptx_st(k, PTX_F32, ptx_at(AT(p, tid), 0), GET(sums[0])); }
/* One product of a tile of 2 KB by itself, as a group of its own. */
static inline void start_product(ptx_val tile) {
    ptx_val o[7];
    o[0] = o[1] = ptx_wgmma_descriptor(k, tile, 128, 256, 0);
    o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}
static inline void product_wait(int left) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(left)); }

/* The body is recorded and run twice. */
static int bad, turn;
static inline int next_program(ptx_target target, const char *file, int line, const char *want) {
    if (turn && *want == '!')
        end_build(file, line, bad ? want + 1 : "");
    else if (turn)
        end_case(file, line, bad ? want : "");
    if (turn == 2) return turn = 0;
    bad = !turn++;
    start(target);
    x = y = z = i = w = at = zero; /* nothing of the program before */
    memset(v4, 0, sizeof v4);
    memset(&a, 0, sizeof a);
    return 1;
}
#define PAIR(target, want) while (next_program(target, __FILE__, __LINE__, want))

#endif
