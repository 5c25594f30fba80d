/* test_rules.c - rules that a kernel trips by one mistake, each beside the same kernel without it: what the
 * mistake is called, or "" where nothing is to be said.
 *
 *   cc -std=c99 tests/test_rules.c -o test_rules -lm && ./test_rules */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "verdict.h"

/* cp.async, copy by copy. */
static void test_copies(void) {
    ptx_val stage, next;
    ptx_var v;
    /* the last wait is before the last copy */
    start(80), copy(0), commit(), wait_for(0), BAR, copy(0), commit(), BAR, out(LD(mine, 0)), wait_for(0);
    WRONG("race", "may not have brought yet");
    start(80), copy(0), commit(), wait_for(0), BAR, copy(0), commit(), wait_for(0), BAR, out(LD(mine, 0)),
        RIGHT;
    /* which group a wait is for */
    start(80), copy(0), commit(), copy(4096), commit(), wait_for(1), BAR, out(LD(mine, 4096)), wait_for(0);
    WRONG("race", "may not have brought yet");
    start(80), copy(0), commit(), copy(4096), commit(), wait_for(1), BAR, out(LD(mine, 0)), wait_for(0),
        RIGHT;
    start(80), copy(0), commit(), wait_for(1), BAR, out(LD(mine, 0)), wait_for(0);
    WRONG("race", "may not have brought yet");
    start(80), copy(0), commit(), commit(), wait_for(1), BAR, out(LD(mine, 0)), wait_for(0), RIGHT;
    /* a barrier where it is of use */
    start(80), copy(0), BAR, ptx_cp_async_wait_all(k), out(LD(mine, 0)), WRONG("race", "behind the wait");
    start(80), copy(0), ptx_cp_async_wait_all(k), BAR, out(LD(mine, 0)), RIGHT;
    start(80), copy(0), ptx_cp_async_wait_all(k), out(LD(wide, 4)), RIGHT; /* what it brought itself */
    /* stores over what is to come */
    start(80), copy(0), ST(wide, 4, n), ptx_cp_async_wait_all(k), WRONG("race", "written here");
    start(80), copy(0), ptx_cp_async_wait_all(k), ST(wide, 4, n), RIGHT;
    start(80), ptx_guard(k, one), copy(0), ptx_guard(k, ptx_inv(one)), ST(wide, 4, n),
        ptx_cp_async_wait_all(k);
    RIGHT; /* one or the other */
    /* the next round's copy over what others still read */
    start(80), ptx_for(k, zero, n, ptx_u32(1)), copy(0), commit(), wait_for(0), BAR, out(LD(mine, 0)), END;
    WRONG("race", "still be reading");
    start(80), ptx_for(k, zero, n, ptx_u32(1)), copy(0), commit(), wait_for(0), BAR, out(LD(mine, 0)), BAR,
        END;
    RIGHT;
    /* a pipeline of four stages, by a variable */
    start(80), ptx_require_block(k, 128, 1, 1), v = ptx_var_new(k, zero);
    copy(0), commit(), copy(2048), commit(), ptx_for(k, zero, n, ptx_u32(1)), wait_for(1), BAR;
    stage = ptx_get(k, v), next = ptx_as(ptx_and(k, ptx_add(k, stage, ptx_u32(2)), ptx_u32(3)), PTX_U32);
    ptx_cp_async_16(k, ptx_ptr_add(k, wide, next, 2048), p), commit();
    out(LD(ptx_ptr_add(k, mine, stage, 2048), 0));
    ptx_set(k, v, ptx_as(ptx_and(k, ptx_add(k, stage, ptx_u32(1)), ptx_u32(3)), PTX_U32)), END;
    ptx_cp_async_wait_all(k), RIGHT;
    /* another array may be read meanwhile */
    start(80), stage = ptx_shared(k, "other", PTX_U32, 64, 4), ST(stage, 0, n), BAR, copy(0);
    out(LD(stage, 0));
    ptx_cp_async_wait_all(k), RIGHT;
    start(80), stage = ptx_shared(k, "other", PTX_U32, 64, 4), copy(0), out(LD(sh, 0));
    WRONG("!async", "under way");
    /* more bytes than the copy has */
    start(80), ptx_cp_async_16_zfill(k, wide, p, ptx_u32(17)), ptx_cp_async_wait_all(k),
        WRONG("!range", "17");
    start(80), ptx_cp_async_16_zfill(k, wide, p, ptx_u32(16)), ptx_cp_async_wait_all(k), RIGHT;
}

/* One thread makes an mbarrier, fetches `bytes` by it, and all wait. */
static void make(void) { IF(one), ptx_mbarrier_init(k, bar, I(1)), END, BAR; }
static void fetch(uint32_t expect, uint32_t bytes) {
    ptx_mbarrier_arrive_expect(k, bar, ptx_u32(expect)), ptx_bulk_load(k, sh, p, ptx_u32(bytes), bar);
}
static void test_mbarriers(void) {
    ptx_val other;
    start(90), make(), IF(one), fetch(4096, 4096), END, wait_on(bar, 0), out(LD(mine, 0)), RIGHT;
    start(90), make(), IF(one), fetch(2048, 4096), END, wait_on(bar, 0), out(LD(mine, 0));
    WRONG("order", "expects 2048 bytes");
    start(90), make(), IF(one), ptx_mbarrier_arrive_expect(k, bar, ptx_u32(4096));
    ptx_bulk_load(k, sh, p, ptx_u32(2048), bar), ptx_bulk_load(k, ptx_off(sh, 2048), p, ptx_u32(2048), bar);
    END, wait_on(bar, 0), out(LD(mine, 0)), RIGHT; /* in two halves */
    start(90), make(), IF(one), ptx_mbarrier_arrive(k, bar), ptx_bulk_load(k, sh, p, ptx_u32(4096), bar), END;
    wait_on(bar, 0), out(LD(mine, 0)), WRONG("order", "expects the bytes");
    start(90), make(), IF(one), fetch(4096, 4096), END, wait_on(bar, 1), out(LD(mine, 0));
    WRONG("order", "has parity 0");
    start(90), make(), IF(one), fetch(4096, 4096), END, wait_on(bar, 0), wait_on(bar, 1), out(LD(mine, 0)),
        RIGHT;
    start(90), make(), IF(one), fetch(4096, 4096), wait_on(bar, 0), END, out(LD(mine, 0));
    WRONG("race", "not all have waited");
    start(90), make(), IF(one), fetch(4096, 4096), wait_on(bar, 0), END, BAR, out(LD(mine, 0)), RIGHT;
    start(90), make(), IF(one), fetch(4096, 4096), END, ptx_mbarrier_try_wait(k, bar, zero), out(LD(mine, 0));
    WRONG("order", "is not used");
    start(90), ptx_mbarrier_init(k, bar, I(1)), BAR, IF(one), fetch(64, 64), END, wait_on(bar, 0);
    WRONG("race", "every thread that comes makes");
    start(90), ptx_require_block(k, 1, 1, 1), ptx_mbarrier_init(k, bar, I(1)), BAR, fetch(64, 64);
    wait_on(bar, 0), RIGHT; /* a block of one */
    start(90), make(), fetch(64, 64), wait_on(bar, 0);
    WRONG("order race", "every thread that comes here begins");
    start(90), make(), IF(ptx_elect(k, FULL)), IF(one), fetch(64, 64), END, END, wait_on(bar, 0), RIGHT;
    start(90), other = ptx_shared(k, "b2", PTX_U64, 1, 8), IF(one), ptx_mbarrier_init(k, other, I(1)), END,
               BAR;
    wait_on(bar, 0), WRONG("order", "no mbarrier.init");
    start(90), make(), IF(one), ptx_mbarrier_inval(k, bar), ptx_mbarrier_arrive(k, bar), END;
    WRONG("order", "no mbarrier any more");
    start(90), make(), IF(one), ptx_mbarrier_inval(k, bar), ptx_mbarrier_init(k, bar, I(1));
    ptx_mbarrier_arrive(k, bar), END, RIGHT;
    start(90), make(), IF(one), ptx_st(k, PTX_U64, ptx_at(bar, 0), ptx_u64(0)), ptx_mbarrier_arrive(k, bar),
        END;
    WRONG("order", "goes into the mbarrier");
    start(90), make(), IF(one), ptx_mbarrier_inval(k, bar), ptx_st(k, PTX_U64, ptx_at(bar, 0), ptx_u64(0)),
        END;
    RIGHT;
}

static void fence(void) { ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); }
static void put(void) { ptx_bulk_store(k, p, sh, I(1024)); }
static void close(void) { ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0); }
static void sent(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(left)); }
static void test_bulk_stores(void) {
    start(90), ST(mine, 0, tid), fence(), BAR, IF(one), put(), close(), sent(0), END, RIGHT;
    start(90), ST(mine, 0, tid), fence(), IF(one), put(), close(), sent(0), END;
    WRONG("race", "what all have stored");
    start(90), IF(one), put(), close(), sent(1), END, WRONG("unwaited", "when the kernel ends");
    start(90), IF(one), close(), sent(0), put(), END, WRONG("unwaited", "when the kernel ends");
    start(90), IF(one), put(), close(), sent(1), put(), close(), sent(0), END, RIGHT;
    start(90), IF(one), put(), close(), ST(sh, 0, n), sent(0), END, WRONG("race", "still be reading");
    start(90), IF(one), put(), close(), sent(0), ST(sh, 0, n), END, RIGHT;
    start(90), IF(one), put(), close(), ST(sh, 1024, n), sent(0), END, RIGHT; /* behind what it reads */
}

static void together(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static ptx_val far_away(uint32_t rank) { return LD(ptx_mapa(k, mine, ptx_u32(rank)), 0); }
static void test_clusters(void) {
    start(90), ptx_require_cluster(k, 2, 1, 1), ST(mine, 0, tid), together(), out(far_away(1)), together(),
        RIGHT;
    start(90), ptx_require_cluster(k, 2, 1, 1), ST(mine, 0, tid), together(), out(far_away(2)), together();
    WRONG("!range", "block 2 of a cluster of 2");
    start(90), ptx_max_cluster(k, 2), together(), out(far_away(2)), together(), WRONG("!range", "block 2");
    start(90), ptx_require_cluster(k, 2, 1, 1), out(far_away(1)), together(),
        WRONG("order", "not have begun");
    start(90), ptx_require_cluster(k, 2, 1, 1), together(), ST(mine, 0, tid), BAR, out(far_away(1)),
        together();
    WRONG("race", "does not reach it");
    start(90), ptx_require_cluster(k, 2, 1, 1), ptx_cluster_arrive(k), WRONG("order", "never waits");
    start(90), ptx_max_cluster(k, 16), WRONG("launch", "up to 16 blocks");
    start(90), ptx_max_cluster(k, 8), RIGHT;
}

static void dec(int registers) { ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(registers)); }
static void inc(int registers) { ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(registers)); }
static void three_groups(uint32_t cap) {
    start(PTX_SM_A(90)), ptx_require_block(k, 384, 1, 1), ptx_max_registers(k, cap);
    IF(ptx_setp(k, PTX_EQ, ptx_shr(k, tid, I(7)), I(0)));
}
static void product(ptx_val a, ptx_val scale) {
    ptx_var sums[4];
    ptx_val o[7];
    int i;
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
    o[0] = a, o[1] = ptx_mov(k, ptx_u64(0)), o[2] = scale;
    o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
    ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(0));
}
static ptx_val described(ptx_val by) { return ptx_cvt(k, PTX_U64, by); }
static void test_groups(void) {
    ptx_val all;
    three_groups(168), dec(24), ptx_else(k), inc(240), END, RIGHT;
    three_groups(168), dec(160), ptx_else(k), inc(240), END, WRONG("!register-cap", "81920 registers");
    three_groups(168), dec(24), ptx_else(k), inc(248), END, WRONG("!register-cap", "waits for ever");
    start(PTX_SM_A(90)), ptx_require_block(k, 384, 1, 1), ptx_max_registers(k, 168), inc(240);
    WRONG("!register-cap", "92160 registers");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), product(described(n), all), RIGHT;
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), product(described(tid), all);
    WRONG("!divergent", "descriptor");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), product(described(warp), all);
    WRONG("!divergent", "descriptor");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9));
    product(described(ptx_shr(k, tid, I(7))), all), RIGHT; /* one for each warpgroup */
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), product(described(LD(p, 0)), all), RIGHT;
    start(PTX_SM_A(90)), product(described(n), one), WRONG("!divergent", "scales D");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), ptx_require_block(k, 64, 1, 1);
    product(described(n), all), WRONG("!divergent", "a block has 64");
    start(80), ptx_require_block(k, 16, 1, 1), ptx_op1(k, PTX_MOVMATRIX, 0, n);
    WRONG("!divergent", "a block has 16");
    start(80), ptx_require_block(k, 32, 1, 1), ptx_op1(k, PTX_MOVMATRIX, 0, n), RIGHT;
}

static ptx_val from_lane(int from, uint32_t mask) {
    return ptx_shfl_idx(k, tid, I(from), I(31), ptx_b32(mask));
}
static ptx_val across(int by, uint32_t mask) { return ptx_shfl_bfly(k, tid, I(by), I(31), ptx_b32(mask)); }
static void low_half(ptx_target target) { start(target), IF(ptx_setp(k, PTX_LT, lane, I(16))); }
static void named(int threads) { ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(threads)); }
static void two_warps(void) {
    start(80), ptx_require_block(k, 128, 1, 1), IF(ptx_setp(k, PTX_LT, warp, I(2)));
}
static void raw(const char *text, ptx_val operand) {
    ptx_raw(k, text, 1, &operand, 0, NULL, NULL);
}
static void test_lanes_and_counts(void) {
    low_half(80), out(from_lane(20, 0xffff)), END, WRONG("!divergent", "lane 20 for one");
    low_half(80), out(from_lane(5, 0xffff)), END, RIGHT;
    low_half(80), out(across(16, 0xffff)), END, WRONG("!divergent", "not in the mask");
    low_half(80), out(across(8, 0xffff)), END, RIGHT;
    low_half(80), out(ptx_shfl_down(k, tid, I(8), I(31), ptx_b32(0xffff))), END,
        RIGHT; /* the lower half does */
    low_half(80), out(ptx_shfl_down(k, tid, I(16), I(31), ptx_b32(0xffff))), END, WRONG("!divergent", "mask");
    two_warps(), named(128), END, WRONG("!divergent", "no more than 64");
    two_warps(), named(64), END, RIGHT;
    two_warps(), named(128), ptx_else(k), ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(128)), END, RIGHT;
    start(80), IF(one), raw("@$0 ret;", one), END, BAR, WRONG("!divergent", "some may have left");
    start(80), raw("@$0 exit;", one), BAR, WRONG("!divergent", "some may have left");
    start(80), BAR, raw("@$0 exit;", one), RIGHT;
    start(80), raw("{ .reg .u32 retired; mov.u32 retired, $0; }", n), BAR, RIGHT;
}

#define A100 PTX_SM_A(100)
static ptx_val first;
static void take(ptx_mods group, int columns) { ptx_op2(k, PTX_TCGEN05_ALLOC, group, sh, I(columns)); }
static void give(ptx_mods group, int columns) { ptx_op2(k, PTX_TCGEN05_DEALLOC, group, first, I(columns)); }
static void tensor(ptx_mods group, int columns) {
    start(A100), ptx_require_block(k, 128, 1, 1), first = ptx_setp(k, PTX_EQ, warp, I(0));
    IF(first), take(group, columns), END, BAR, first = LD(sh, 0);
}
static void last(void) { BAR, IF(ptx_setp(k, PTX_EQ, warp, I(0))); }
static ptx_val drain(void) {
    ptx_val r[2];
    ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &first, 2, r);
    return ptx_as(r[1], PTX_U32);
}
static void test_tensor_memory(void) {
    ptx_val x;
    tensor(PTX_CTA_GROUP_1, 32), x = drain(), ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0), out(x);
    last(), give(PTX_CTA_GROUP_1, 32), END, RIGHT;
    tensor(PTX_CTA_GROUP_1, 32), x = drain(), out(x), last(), give(PTX_CTA_GROUP_1, 32), END;
    WRONG("!async", "PTX_TCGEN05_WAIT_LD");
    tensor(PTX_CTA_GROUP_1, 32), x = drain(), IF(ptx_setp(k, PTX_LT, n, I(4)));
    ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0), END, out(x), last(), give(PTX_CTA_GROUP_1, 32), END;
    WRONG("!async", "PTX_TCGEN05_WAIT_LD");
    tensor(PTX_CTA_GROUP_1, 32), WRONG("order", "never given back");
    tensor(PTX_CTA_GROUP_1, 32), last(), give(PTX_CTA_GROUP_1, 64), END, WRONG("order", "64 columns");
    tensor(PTX_CTA_GROUP_1, 32), last(), give(PTX_CTA_GROUP_2, 32), END, WRONG("!modifier", "another number");
    tensor(PTX_CTA_GROUP_2, 32), last(), give(PTX_CTA_GROUP_2, 32), END, RIGHT;
}

/* Stores over stores, and products of what others store. */
static void test_stores(void) {
    ptx_val at, all;
    start(80), ST(mine, 0, tid), ST(mine, 4, n), WRONG("race", "comes last is luck");
    start(80), ST(mine, 0, tid), BAR, ST(mine, 4, n), RIGHT;
    start(80), ST(mine, 0, n), ST(mine, 4, n), RIGHT; /* the same value */
    start(80), ST(mine, 0, tid), ST(mine, 4096, n), RIGHT;
    start(80), ptx_require_block(k, 32, 1, 1), ST(mine, 0, tid), ST(mine, 4, n),
        RIGHT; /* one warp, in step */
    start(80), IF(one), ST(sh, 0, zero), END, ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n), BAR, out(LD(sh, 0));
    WRONG("race", "comes last is luck");
    start(80), IF(one), ST(sh, 0, zero), END, BAR, ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n), BAR;
    out(LD(sh, 0)), RIGHT;
    /* partial sums of warps, round after round */
    start(80), ptx_require_block(k, 256, 1, 1), at = ptx_ptr_add(k, sh, warp, 4);
    ptx_for(k, zero, n, ptx_u32(1)), ptx_guard(k, ptx_setp(k, PTX_EQ, lane, zero)), ST(at, 0, tid), BAR;
    out(LD(ptx_ptr_add(k, sh, ptx_and(k, lane, I(7)), 4), 0)), END, WRONG("race", "still be reading");
    start(80), ptx_require_block(k, 256, 1, 1), at = ptx_ptr_add(k, sh, warp, 4);
    ptx_for(k, zero, n, ptx_u32(1)), ptx_guard(k, ptx_setp(k, PTX_EQ, lane, zero)), ST(at, 0, tid), BAR;
    out(LD(ptx_ptr_add(k, sh, ptx_and(k, lane, I(7)), 4), 0)), BAR, END, RIGHT;
    /* a tile that is written in rows and read in columns: by number, which threads meet */
    start(80), ptx_require_block(k, 32, 8, 1), at = ptx_mad(k, ptx_tid_y(k), ptx_u32(33), tid);
    ST(ptx_ptr_add(k, sh, at, 4), 0, tid), out(LD(ptx_ptr_add(k, sh, at, 4), 0)), RIGHT;
    start(80), ptx_require_block(k, 32, 8, 1), at = ptx_mad(k, ptx_tid_y(k), ptx_u32(33), tid);
    ST(ptx_ptr_add(k, sh, at, 4), 0, tid), at = ptx_mad(k, tid, ptx_u32(33), ptx_tid_y(k));
    out(LD(ptx_ptr_add(k, sh, at, 4), 0)), WRONG("race", "writing what is read");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), ST(mine, 0, tid), fence();
    product(described(ptx_shr(k, sh, I(4))), all), WRONG("race", "the product reads");
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), ST(mine, 0, tid), fence(), BAR;
    product(described(ptx_shr(k, sh, I(4))), all), RIGHT;
    start(PTX_SM_A(90)), all = ptx_setp(k, PTX_LT, n, I(9)), ST(mine, 0, tid), fence();
    product(described(n), all), RIGHT; /* of something else */
}

/* Addresses: of another space, beyond the array for the last thread, from round to round. */
static void test_places(void) {
    ptx_val x, r[4];
    start(80), x = ptx_cvt(k, PTX_U64, mine), out(LD(ptx_ptr(x, PTX_GLOBAL), 0));
    WRONG("!address", "an array in shared space: ptx_cvta");
    start(80), x = ptx_cvt(k, PTX_U64, mine), ptx_st(k, PTX_U64, ptx_at(p, 0), x), RIGHT; /* as a number */
    start(80), x = ptx_cvta(k, mine), out(LD(x, 0)), RIGHT;
    start(80), x = ptx_local(k, "l", PTX_U32, 8, 16), x = ptx_cvta(k, x), out(LD(ptx_ptr(x, PTX_GLOBAL), 0));
    WRONG("!address", "a generic address was made");
    start(80), ptx_require_block(k, 1024, 1, 1), x = ptx_shared(k, "few", PTX_U32, 512, 4);
    ST(ptx_ptr_add(k, x, tid, 4), 0, n), WRONG("!address", "thread 1023 of the block reaches bytes 4092");
    start(80), ptx_require_block(k, 512, 1, 1), x = ptx_shared(k, "few", PTX_U32, 512, 4);
    ST(ptx_ptr_add(k, x, tid, 4), 0, n), RIGHT;
    start(80), ptx_require_block(k, 1024, 1, 1), x = ptx_shared(k, "few", PTX_U32, 512, 4);
    IF(ptx_setp(k, PTX_LT, tid, I(512))), ST(ptx_ptr_add(k, x, tid, 4), 0, n), END, RIGHT;
    start(80), ptx_require_block(k, 512, 1, 1), x = ptx_shared(k, "few", PTX_U32, 8, 4);
    IF(ptx_setp(k, PTX_EQ, lane, zero)), ST(ptx_ptr_add(k, x, warp, 4), 0, n), END;
    WRONG("!address", "thread 480 of the block");
    start(80), ptx_require_block(k, 256, 1, 1), x = ptx_shared(k, "few", PTX_U32, 8, 4);
    IF(ptx_setp(k, PTX_EQ, lane, zero)), ST(ptx_ptr_add(k, x, warp, 4), 0, n), END, RIGHT;
    start(80), ptx_require_block(k, 512, 1, 1), x = ptx_shared(k, "few", PTX_U32, 8, 4);
    IF(ptx_setp(k, PTX_LT, tid, I(8))), ST(ptx_ptr_add(k, x, tid, 4), 0, n), END, RIGHT;
    start(80), ptx_require_block(k, 64, 1, 1), x = ptx_shared(k, "few", PTX_U32, 64, 4);
    ST(ptx_ptr_add(k, x, tid, 4), -4, n), WRONG("!address", "thread 0 of the block reaches bytes -4");
    start(80), ST(mine, 0, n), BAR, x = ptx_for(k, zero, n, ptx_u32(1));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, sh, x, 4), 0), r), END, WRONG("align", "moves by 4");
    start(80), ST(mine, 0, n), BAR, x = ptx_for(k, zero, n, ptx_u32(4));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, sh, x, 4), 0), r), END, RIGHT;
    start(80), ST(mine, 0, n), BAR, x = ptx_for(k, zero, n, ptx_u32(1));
    IF(ptx_setp(k, PTX_EQ, ptx_and(k, x, ptx_u32(3)), zero));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, sh, x, 4), 0), r), END, END,
        RIGHT; /* each fourth round */
}

/* Barriers by number. */
static void test_counts(void) {
    two_warps(), named(64), ptx_else(k), ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(96)), END;
    WRONG("order", "one barrier, one count");
    two_warps(), named(64), ptx_else(k), ptx_op2(k, PTX_BAR_SYNC, 0, I(2), I(64)), END, RIGHT;
    two_warps(), ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(64)), END,
        WRONG("order", "nobody in this kernel waits");
}

/* How often threads arrive, and phases after the first. */
static void counted(uint32_t count) {
    start(90), ptx_require_block(k, 128, 1, 1), IF(one), ptx_mbarrier_init(k, bar, ptx_u32(count)), END, BAR;
}
static void rounds(int turning, int last_barrier) {
    ptx_var phase;
    ptx_val now;
    start(90), make(), phase = ptx_var_new(k, zero), ptx_for(k, zero, n, ptx_u32(1)), IF(one);
    fetch(4096, 4096), END;
    now = turning ? ptx_get(k, phase) : ptx_u32(0);
    ptx_loop(k), ptx_while(k, ptx_inv(ptx_mbarrier_try_wait(k, bar, now))), END, out(LD(mine, 0));
    ptx_set(k, phase, ptx_xor(k, ptx_get(k, phase), ptx_u32(1)));
    if (last_barrier) BAR;
    END;
}
static void test_phases(void) {
    counted(128), ptx_mbarrier_arrive(k, bar), wait_on(bar, 0), RIGHT;
    counted(256), ptx_mbarrier_arrive(k, bar), wait_on(bar, 0), WRONG("order", "waits for ever");
    counted(1), ptx_mbarrier_arrive(k, bar), wait_on(bar, 0), WRONG("order", "128 come at once");
    counted(128), ptx_mbarrier_arrive(k, bar), wait_on(bar, 0), ptx_mbarrier_arrive(k, bar), wait_on(bar, 1);
    RIGHT; /* two phases */
    counted(4), IF(ptx_setp(k, PTX_EQ, lane, zero)), ptx_mbarrier_arrive(k, bar), END, wait_on(bar, 0), RIGHT;
    counted(64), IF(ptx_setp(k, PTX_LT, tid, I(64))), ptx_mbarrier_arrive(k, bar), END, wait_on(bar, 0),
        RIGHT;
    counted(1), wait_on(bar, 0), WRONG("order", "0 come in all");
    rounds(1, 1), RIGHT;
    rounds(0, 1), WRONG("order", "the other parity");
    rounds(1, 0), WRONG("race", "what this copy writes over");
}

/* What is always the same. */
static void spin(ptx_mods how) {
    ptx_val x;
    start(80), ptx_loop(k), x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), how));
    ptx_while(k, ptx_setp(k, PTX_EQ, x, zero)), END;
}
static void when(ptx_mods order, ptx_val x, uint32_t y) {
    IF(ptx_setp(k, order, x, ptx_u32(y))), out(n), END;
}
static void test_idle(void) {
    ptx_val x;
    start(80), when(PTX_LT, n, 0), WRONG("idle", "never true");
    start(80), when(PTX_GE, n, 0), WRONG("idle", "always true");
    start(80), when(PTX_GE, n, 1), RIGHT;
    start(80), x = ptx_ld(k, PTX_S32, ptx_at(p, 0)), IF(ptx_setp(k, PTX_LT, x, I(0))), out(n), END, RIGHT;
    start(80), when(PTX_EQ, lane, 32), WRONG("idle", "never true");
    start(80), when(PTX_EQ, lane, 31), RIGHT;
    start(80), ptx_require_block(k, 64, 2, 1), when(PTX_GE, tid, 64), WRONG("idle", "never true");
    start(80), ptx_require_block(k, 64, 2, 1), when(PTX_GE, tid, 63), RIGHT;
    spin(0), WRONG("idle", "loads anew");
    spin(PTX_VOLATILE), RIGHT;
    spin(PTX_ACQUIRE | PTX_GPU), RIGHT;
    start(80), out(ptx_shfl_up(k, tid, I(1), I(31), FULL)), WRONG("idle", "its own value");
    start(80), out(ptx_shfl_up(k, tid, I(1), I(0), FULL)), RIGHT;
    start(80), out(ptx_shfl_down(k, tid, I(1), I(0), FULL)), WRONG("idle", "its own value");
    start(80), out(ptx_shfl_down(k, tid, I(1), I(31), FULL)), RIGHT;
    /* numbers by way of a register */
    start(90), make(), IF(one), x = ptx_mov(k, ptx_u32(72)), ptx_mbarrier_arrive_expect(k, bar, x);
    ptx_bulk_load(k, sh, p, x, bar), END, wait_on(bar, 0), WRONG("!range", "72 where it takes a multiple");
    start(90), make(), IF(one), x = ptx_mov(k, ptx_u32(80)), ptx_mbarrier_arrive_expect(k, bar, x);
    ptx_bulk_load(k, sh, p, x, bar), END, wait_on(bar, 0), RIGHT;
}

int main(void) {
    test_copies();
    test_mbarriers();
    test_bulk_stores();
    test_clusters();
    test_groups();
    test_lanes_and_counts();
    test_tensor_memory();
    test_stores();
    test_places();
    test_counts();
    test_phases();
    test_idle();
    return check_end();
}
