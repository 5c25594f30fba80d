/* pitfall.h - words of the kernels that test_pitfalls.c and test_traps.c make wrong and right, and
   test_right.c right only. */
#ifndef PITFALL_H
#define PITFALL_H

#include "verdict.h"

#define AMPERE PTX_SM(80)
#define HOPPER PTX_SM_A(90)
#define BLACKWELL PTX_SM_A(100)
#define U ptx_u32
#define AT(base, index) ptx_ptr_add(k, base, index, 4)
#define BLOCK(x) ptx_require_block(k, x, 1, 1)
#define PLAIN(op, n, operands) ptx_opn(k, op, 0, PTX_NONE, PTX_NONE, n, operands, 0, NULL)

#define LT(a, b) ptx_setp(k, PTX_LT, a, b)
#define GE(a, b) ptx_setp(k, PTX_GE, a, b)
#define EQ(a, b) ptx_setp(k, PTX_EQ, a, b)
#define NE(a, b) ptx_setp(k, PTX_NE, a, b)

static ptx_val q;
static void begin(ptx_target target) {
    start(target);
    q = ptx_param_ptr(k, "q", PTX_GLOBAL);
}
static ptx_val low(ptx_val x, int mask) { return ptx_as(ptx_and(k, x, I(mask)), PTX_U32); }
static void meet(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static void proxy_fence(void) { ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); }

/* Two mbarriers, at bar and behind it, for so many arrivals each. */
static void make(int first, int second) {
    IF(one);
    ptx_mbarrier_init(k, bar, I(first));
    ptx_mbarrier_init(k, ptx_off(bar, 8), I(second));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
}
/* As wait_on, for a parity that the kernel computes. */
static void wait_val(ptx_val at, ptx_val parity) {
    ptx_val over;
    ptx_loop(k);
    over = ptx_mbarrier_try_wait(k, at, parity);
    ptx_while(k, ptx_inv(over));
    END;
}

/* A kilobyte of p comes into shared memory; the mbarrier expects it. */
static inline void fetch(ptx_val to, ptx_val by) {
    ptx_mbarrier_arrive_expect(k, by, I(1024));
    ptx_bulk_load(k, to, p, I(1024), by);
}
static inline void bulk_commit(void) { ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0); }
static inline void bulk_wait(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(left)); }
static inline void bulk_wait_read(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(left)); }
static inline ptx_val flip(ptx_val bit) { return ptx_as(ptx_xor(k, bit, I(1)), PTX_U32); }
/* A product of matrices into these sums, of one tile by itself, under way; and the wait for all but some. */
static ptx_var sums[4];
static inline void issue(ptx_val tile) {
    ptx_val o[7];
    o[0] = o[1] = ptx_wgmma_descriptor(k, tile, 128, 256, 128);
    o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}
static inline void product_wait(int left) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(left)); }

/* What follows is recorded twice: with the mistake, and without. */
static int bad, turn;
static inline int again(ptx_target target, const char *file, int line, const char *want) {
    if (turn) done(file, line, bad ? want : "", NULL);
    if (turn == 2) return turn = 0;
    bad = !turn++;
    begin(target);
    return 1;
}
#define PAIR(target, want) while (again(target, __FILE__, __LINE__, want))

#endif
