/* trap.h - words of the kernels that test_traps.c and test_snares.c make wrong and right: rings of mbarriers
 * with a producer and consumers, products, tensor memory. */
#ifndef TRAP_H
#define TRAP_H

#include "pitfall.h"

#define GT(a, b) ptx_setp(k, PTX_GT, a, b)
#define FOR(n) ptx_for(k, U(0), n, U(1))
#define ADD(a, b) ptx_add(k, a, b)
#define GET(v) ptx_get(k, v)
#define SET(v, x) ptx_set(k, v, x)
#define SHR(a, b) ptx_as(ptx_shr(k, a, I(b)), PTX_U32)
#define SHL(a, b) ptx_as(ptx_shl(k, a, I(b)), PTX_U32)
#define XOR(a, b) ptx_as(ptx_xor(k, a, b), PTX_U32)
#define RAW0(text) ptx_raw(k, text, 0, NULL, 0, NULL, NULL)
#define FENCE(m) ptx_fence(k, m)
static ptx_val x, y, z, i, w, at, full, empty, v4[8];
static ptx_var a, s, ph;
static inline ptx_val wsum(ptx_val sum) {
    uint32_t o;
    for (o = 16; o; o >>= 1) sum = ADD(sum, ptx_as(ptx_shfl_bfly(k, sum, I(o), I(31), FULL), PTX_U32));
    return sum;
}
static inline void rings(uint32_t nfull, uint32_t nempty, int cf, int ce) {
    full = ptx_shared(k, "full", PTX_U64, nfull, 8);
    empty = ptx_shared(k, "empty", PTX_U64, nempty, 8);
    IF(one);
    i = FOR(U(nfull));
    ptx_mbarrier_init(k, ptx_ptr_add(k, full, i, 8), I(cf));
    ptx_mbarrier_init(k, ptx_ptr_add(k, empty, i, 8), I(ce));
    END;
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
    s = ptx_var_new(k, U(0));
    ph = ptx_var_new(k, U(0));
}
static inline void turn_stage(uint32_t n4) {
    SET(s, ADD(GET(s), U(1)));
    IF(EQ(GET(s), U(n4)));
    SET(s, U(0));
    SET(ph, flip(GET(ph)));
    END;
}
#define FULL_S ptx_ptr_add(k, full, GET(s), 8)
#define EMPTY_S ptx_ptr_add(k, empty, GET(s), 8)
#define TILE_S ptx_ptr_add(k, sh, GET(s), 1024)
static inline void start_sums(void) {
    int j;
    BLOCK(128);
    for (j = 0; j < 4; j++) sums[j] = ptx_var_new(k, ptx_f32(0));
}
static inline void use_sums(void) { ptx_st(k, PTX_F32, ptx_at(AT(q, tid), 0), GET(sums[0])); }
#define LDA(a, how) ptx_ld(k, PTX_U32, ptx_with(ptx_at(a, 0), how))
#define STA(a, how, v) ptx_st(k, PTX_U32, ptx_with(ptx_at(a, 0), how), v)

#define ALLOC(nc) (IF(EQ(warp, zero)), ptx_op2(k, PTX_TCGEN05_ALLOC, 0, sh, I(nc)), END)
#define DEALLOC(at, nc) (IF(EQ(warp, zero)), ptx_op2(k, PTX_TCGEN05_DEALLOC, 0, at, I(nc)), END)
#define RELINQ (IF(EQ(warp, zero)), ptx_op0(k, PTX_TCGEN05_RELINQUISH, 0), END)
#define TLD(at)                                                                                              \
    (ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &at, 1, &x),                                \
     ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0), out(ptx_as(x, PTX_U32)))
#define TMMA(at)                                                                                             \
    (v4[0] = at, v4[1] = v4[2] = ptx_mov(k, ptx_u64(0x4000)), v4[3] = zero, v4[4] = NE(n, zero),             \
     PLAIN(PTX_TCGEN05_MMA_F16, 5, v4))

/* A ring of four stages, filled by one thread of the fifth warp; a round of the other four has begun. */
static inline void producer_turn(ptx_val parity) {
    wait_val(EMPTY_S, parity);
    fetch(TILE_S, FULL_S);
    turn_stage(4);
}
static inline void as_producer(void) {
    IF(EQ(warp, I(4)));
    IF(ptx_elect(k, FULL));
}
static inline void as_consumers(void) {
    END;
    END;
    ptx_else(k);
}
static inline void ring_producer(uint32_t nfull, int ce) {
    BLOCK(160);
    rings(nfull, 4, 1, ce);
    as_producer();
    FOR(n);
    producer_turn(flip(GET(ph)));
    as_consumers();
}
/* One lane of each warp gives the stage back, when its warp has read it. */
static inline void release_stage(void) {
    ptx_bar_warp_sync(k, FULL);
    IF(EQ(lane, zero));
    ptx_mbarrier_arrive(k, EMPTY_S);
    END;
}
static inline void read_stage(ptx_val parity) {
    wait_val(FULL_S, parity);
    out(LD(AT(TILE_S, lane), 0));
}
static inline void ring_end(uint32_t stages) {
    turn_stage(stages);
    END;
    END;
}

#endif
