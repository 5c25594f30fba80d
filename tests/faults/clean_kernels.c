/* clean_kernels.c - right kernels of the kinds that projects are made of: the builder takes them, and
 * the CPU driver finds nothing in a run of them. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../faults.h"

#define SETP(order, a, b) ptx_setp(k, order, a, b)

static ptx_val at(ptx_val base, ptx_val index, uint32_t bytes) { return ptx_ptr_add(k, base, index, bytes); }
static ptx_val modulo(ptx_val x, uint32_t by) { return ptx_rem(k, x, U(by)); }

/* A matrix product with `stages` stages of cp.async: how: 0 a guard on the copy and a commit in every round;
   1 a remainder by a rising counter; 2 a stage that is a variable and wraps by selp; 3 stages unrolled. */
static void product_stages(uint32_t stages, int how, int dynamic) {
    uint32_t s, tile = 4096;
    ptx_val base, i, stage, next, a[4], b[2], c[4], d[4], more, row, thread16;
    ptx_var sum[4], now, filled;
    start(AMPERE), BLOCK(128);
    base = dynamic ? DYNAMIC(stages * tile) : ptx_shared(k, "tiles", PTX_B8, stages * tile, 16);
    thread16 = at(base, tid, 16);
    for (s = 0; s < 4; s++) sum[s] = ptx_var_new(k, ptx_f32(0));
    for (s = 0; s + 1 < stages; s++) {
        ptx_val from = at(p, ADD(tid, U(s * 256)), 16);
        IF(SETP(PTX_LT, U(s), n)), ptx_cp_async_16(k, ptx_off(thread16, (int64_t)(s * tile)), from), END;
        IF(SETP(PTX_LT, U(s), n)), ptx_cp_async_16(k, ptx_off(thread16, (int64_t)(s * tile + 2048)), from),
            END;
        ptx_cp_async_commit(k);
    }
    now = ptx_var_new(k, U(0)), filled = ptx_var_new(k, U(stages - 1));
    i = ptx_for(k, U(0), n, U(1));
    ptx_cp_async_wait(k, (int)stages - 2);
    BAR;
    stage = how == 1 ? modulo(i, stages) : ptx_get(k, now);
    next = how == 1 ? modulo(ADD(i, U(stages - 1)), stages) : ptx_get(k, filled);
    more = SETP(PTX_LT, ADD(i, U(stages - 1)), n);
    if (how == 0) {
        IF(more), ptx_cp_async_16(k, at(thread16, next, tile), at(q, ADD(tid, ptx_mul(k, i, U(256))), 16)),
            END;
        IF(more), ptx_cp_async_16(k, ptx_off(at(thread16, next, tile), 2048), q), END;
        ptx_cp_async_commit(k);
    } else {
        IF(more);
        ptx_cp_async_16(k, at(thread16, next, tile), at(q, ADD(tid, ptx_mul(k, i, U(256))), 16));
        ptx_cp_async_16(k, ptx_off(at(thread16, next, tile), 2048), q);
        END;
        ptx_cp_async_commit(k);
    }
    row = at(at(base, stage, tile), ptx_and(k, lane, U(15)), 32);
    row = at(row, ptx_shr(k, lane, I(4)), 16);
    ptx_ldmatrix(k, 4, row, a);
    ptx_ldmatrix_trans(k, 2, ptx_off(row, 2048), b);
    for (s = 0; s < 4; s++) c[s] = ptx_get(k, sum[s]);
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, d, a, b, c);
    for (s = 0; s < 4; s++) ptx_set(k, sum[s], d[s]);
    if (how != 1) {
        stage = ADD(stage, U(1)), next = ADD(next, U(1));
        ptx_set(k, now, ptx_selp(k, U(0), stage, SETP(PTX_EQ, stage, U(stages))));
        ptx_set(k, filled, ptx_selp(k, U(0), next, SETP(PTX_EQ, next, U(stages))));
    }
    END;
    ptx_cp_async_wait(k, 0);
    BAR;
    for (s = 0; s < 4; s++) c[s] = ptx_get(k, sum[s]);
    ptx_st_vec(k, PTX_F32, 4, ptx_at(thread16, 0), c);
    BAR;
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(at(base, ptx_xor(k, tid, U(1)), 16), 0), c);
    ptx_st_vec(k, PTX_F32, 4, ptx_at(at(p, tid, 16), 0), c);
    CLEAN;
}

/* The barrier behind the wait of a pipeline, and one that is for the warp alone. */
static void met_behind_the_wait(int barrier) {
    ptx_val i, a[4];
    start(AMPERE), BLOCK(barrier == 2 ? 32u : 128u), ptx_cp_async_16(k, wide, q), ptx_cp_async_commit(k);
    i = ptx_for(k, U(0), n, U(1)), ptx_cp_async_wait(k, 0);
    if (barrier == 1) BAR;
    if (barrier == 2) ptx_bar_warp_sync(k, FULL);
    ptx_cp_async_16(k, at(wide, ptx_as(ptx_xor(k, modulo(i, 2), I(1)), PTX_U32), 2048), q),
        ptx_cp_async_commit(k);
    ptx_ldmatrix(k, 4, at(at(sh, lane, 16), modulo(i, 2), 2048), a);
    out(ptx_as(a[0], PTX_U32));
    if (barrier == 1) BAR;
    END, ptx_cp_async_wait(k, 0);
    if (barrier)
        CLEAN;
    else
        WRONG("race");
}

/* Two halves of one array, the parity of the round says which. */
static void double_buffer(void) {
    ptx_val i, now, other;
    start(AMPERE), ptx_launch_bounds(k, 128, 1);
    ptx_cp_async_16(k, wide, q), ptx_cp_async_commit(k);
    i = ptx_for(k, U(0), n, U(1));
    now = ptx_and(k, i, U(1)), other = ptx_xor(k, now, I(1));
    IF(SETP(PTX_LT, ADD(i, U(1)), n));
    ptx_cp_async_16(k, at(wide, ptx_as(other, PTX_U32), 2048), at(q, tid, 16)), ptx_cp_async_commit(k),
        ptx_cp_async_wait(k, 1);
    ptx_else(k);
    ptx_cp_async_wait(k, 0);
    END;
    BAR;
    out(LD(at(at(sh, ptx_xor(k, tid, U(7)), 4), ptx_as(now, PTX_U32), 2048), 0));
    BAR;
    END;
    ptx_cp_async_wait(k, 0); /* of n = 0 */
    CLEAN;
    /* by addresses that are exchanged */
    {
        ptx_var a, b;
        ptx_val x, y;
        start(AMPERE), BLOCK(128);
        a = ptx_var_new(k, sh), b = ptx_var_new(k, ptx_mov(k, ptx_off(sh, 2048)));
        ptx_cp_async_16(k, at(sh, tid, 16), at(q, tid, 16)), ptx_cp_async_commit(k);
        i = ptx_for(k, U(1), n, U(1));
        x = ptx_get(k, a), y = ptx_get(k, b);
        ptx_cp_async_16(k, at(y, tid, 16), at(q, tid, 16)), ptx_cp_async_commit(k), ptx_cp_async_wait(k, 1),
            BAR;
        out(LD(at(x, ptx_xor(k, tid, U(7)), 4), 0));
        BAR;
        ptx_set(k, a, y), ptx_set(k, b, x);
        END;
        ptx_cp_async_wait(k, 0), BAR;
        out(LD(at(ptx_get(k, a), ptx_xor(k, tid, U(7)), 4), 0));
        CLEAN;
    }
    /* registers in between: loads of the next tile before the barrier, stores behind it */
    {
        ptx_var r;
        start(AMPERE), BLOCK(128);
        r = ptx_var_new(k, LD(at(q, tid, 4), 0));
        i = ptx_for(k, U(0), n, U(1));
        ST(mine, 0, ptx_get(k, r)), BAR;
        ptx_set(k, r, LD(at(q, ADD(tid, ptx_shl(k, i, I(7))), 4), 0));
        out(LD(at(sh, ptx_xor(k, tid, U(64)), 4), 0));
        BAR;
        END;
        CLEAN;
        /* one barrier a round, two halves */
        start(AMPERE), BLOCK(128);
        i = ptx_for(k, U(0), n, U(1));
        ST(at(mine, ptx_as(ptx_and(k, i, U(1)), PTX_U32), 512), 0, LD(at(q, tid, 4), 0));
        BAR;
        out(LD(at(at(sh, ptx_xor(k, tid, U(64)), 4), ptx_as(ptx_and(k, i, U(1)), PTX_U32), 512), 0));
        END;
        CLEAN;
    }
}

/* The loads of a tile that two threads' loops share, with a tail. */
static void tiles_of_loops(void) {
    ptx_val i, x, y, s[4];
    ptx_var v;
    start(AMPERE), BLOCK3(16, 16, 1), y = ptx_tid_y(k);
    v = ptx_var_new(k, ptx_f32(0));
    x = ptx_mad(k, y, U(16), tid);
    i = ptx_for(k, U(0), n, U(16));
    ptx_st(k, PTX_F32, ptx_at(at(sh, x, 4), 0), ptx_ld(k, PTX_F32, ptx_at(at(q, ADD(x, i), 4), 0)));
    ptx_st(k, PTX_F32, ptx_at(at(sh, x, 4), 1024), ptx_ld(k, PTX_F32, ptx_at(at(q, ADD(x, i), 4), 0)));
    BAR;
    {
        ptx_val j = ptx_for(k, U(0), U(16), U(1));
        s[0] = ptx_ld(k, PTX_F32, ptx_at(at(sh, ptx_mad(k, y, U(16), j), 4), 0));
        s[1] = ptx_ld(k, PTX_F32, ptx_at(at(sh, ptx_mad(k, j, U(16), tid), 4), 1024));
        ptx_set(k, v, ptx_fma(k, s[0], s[1], ptx_get(k, v)));
        END;
    }
    BAR;
    END;
    ptx_st(k, PTX_F32, ptx_at(at(p, x, 4), 0), ptx_get(k, v));
    CLEAN;
    /* a strided load of a whole array */
    start(AMPERE), ptx_launch_bounds(k, 256, 1);
    i = ptx_for(k, tid, U(4096), ptx_ntid_x(k));
    ST(at(sh, i, 4), 0, LD(at(q, i, 4), 0)), END, BAR;
    i = ptx_for(k, tid, U(4096), ptx_ntid_x(k));
    out(LD(at(sh, ptx_sub(k, U(4095), i), 4), 0)), END;
    CLEAN;
    /* the same by vectors, and a bound that is not a multiple */
    start(AMPERE), BLOCK(96);
    i = ptx_for(k, tid, U(1000), U(96));
    ptx_ld_vec(k, PTX_U32, 4, ptx_at(at(q, i, 16), 0), s);
    ptx_st_vec(k, PTX_U32, 4, ptx_at(at(sh, i, 16), 0), s);
    END, BAR;
    i = ptx_for(k, tid, U(4000), U(96)), out(LD(at(sh, i, 4), 0)), END;
    CLEAN;
}

static ptx_val warp_total(ptx_val x) {
    int s;
    for (s = 16; s; s /= 2) x = ADD(x, ptx_shfl_bfly(k, x, I(s), I(31), FULL));
    return x;
}
static ptx_val warp_scan(ptx_val x) {
    int s;
    ptx_var v = ptx_var_new(k, x);
    for (s = 1; s < 32; s *= 2) {
        ptx_val was = ptx_get(k, v), from = ptx_shfl_up(k, was, I(s), I(0), FULL), both = ADD(was, from);
        IF(SETP(PTX_GE, lane, U((uint32_t)s))), ptx_set(k, v, both), END;
    }
    return ptx_get(k, v);
}

static void reductions_and_scans(void) {
    ptx_val x, y, z, i;
    ptx_var v;
    int s;
    start(AMPERE), BLOCK(256), x = warp_total(LD(at(q, tid, 4), 0));
    IF(SETP(PTX_EQ, lane, U(0))), ST(at(sh, warp, 4), 0, x), END, BAR;
    IF(SETP(PTX_LT, tid, U(8)));
    x = LD(mine, 0);
    for (s = 4; s; s /= 2) x = ADD(x, ptx_shfl_bfly(k, x, I(s), I(31), ptx_b32(0xff)));
    IF(one), ST(p, 0, x), END, END, CLEAN;
    /* all threads take the sum: broadcast through shared memory, a barrier, twice */
    start(AMPERE), BLOCK(256);
    for (s = 0; s < 2; s++) {
        x = warp_total(LD(at(q, tid, 4), 4 * s));
        IF(SETP(PTX_EQ, lane, U(0))), ST(at(sh, warp, 4), 0, x), END;
        BAR;
        IF(SETP(PTX_EQ, warp, U(0)));
        y = ptx_ld_if(k, SETP(PTX_LT, lane, U(8)), PTX_U32, ptx_at(at(sh, lane, 4), 0), I(0));
        y = warp_total(y);
        IF(SETP(PTX_EQ, lane, U(0))), ST(sh, 128, y), END;
        END;
        BAR;
        out(LD(sh, 128));
        BAR;
    }
    CLEAN;
    /* scan of a block */
    start(AMPERE), BLOCK(512), x = warp_scan(LD(at(q, tid, 4), 0));
    IF(SETP(PTX_EQ, lane, U(31))), ST(at(sh, warp, 4), 0, x), END;
    BAR;
    IF(SETP(PTX_EQ, warp, U(0)));
    y = ptx_ld_if(k, SETP(PTX_LT, lane, U(16)), PTX_U32, ptx_at(at(sh, lane, 4), 0), I(0));
    y = warp_scan(y);
    IF(SETP(PTX_LT, lane, U(16))), ST(at(sh, lane, 4), 0, y), END;
    END;
    BAR;
    z = ptx_ld_if(k, SETP(PTX_GT, warp, U(0)), PTX_U32, ptx_at(at(sh, warp, 4), -4), I(0));
    out(ADD(x, z)), CLEAN;
    /* scan by doubling, with two barriers a step */
    start(AMPERE), BLOCK(256), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
    for (s = 1; s < 256; s *= 2) {
        x = ptx_ld_if(k, SETP(PTX_GE, tid, U((uint32_t)s)), PTX_U32, ptx_at(mine, -4 * s), I(0));
        BAR;
        IF(SETP(PTX_GE, tid, U((uint32_t)s))), ST(mine, 0, ADD(x, LD(mine, 0))), END;
        BAR;
    }
    out(LD(mine, 0)), CLEAN;
    /* the same in a loop, the step a variable */
    start(AMPERE), BLOCK(256), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
    v = ptx_var_new(k, U(1));
    ptx_loop(k), i = ptx_get(k, v), ptx_while(k, SETP(PTX_LT, i, U(256)));
    x = ptx_ld_if(k, SETP(PTX_GE, tid, i), PTX_U32, ptx_at(at(sh, ptx_sub(k, tid, i), 4), 0), I(0));
    BAR;
    IF(SETP(PTX_GE, tid, i)), ST(mine, 0, ADD(x, LD(mine, 0))), END;
    BAR, ptx_set(k, v, ptx_shl(k, i, I(1))), END, out(LD(mine, 0)), CLEAN;
    /* a tree in a loop */
    start(AMPERE), BLOCK(256), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
    v = ptx_var_new(k, U(128));
    ptx_loop(k), i = ptx_get(k, v), ptx_while(k, SETP(PTX_GT, i, U(0)));
    IF(SETP(PTX_LT, tid, i)), ST(mine, 0, ADD(LD(mine, 0), LD(at(mine, i, 4), 0))), END;
    BAR, ptx_set(k, v, ptx_as(ptx_shr(k, i, I(1)), PTX_U32)), END;
    IF(one), ST(p, 0, LD(sh, 0)), END, CLEAN;
    /* bitonic sort of 256 in shared memory */
    {
        ptx_var size, step;
        ptx_val a, b, up, less, partner, low;
        start(AMPERE), BLOCK(256), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
        size = ptx_var_new(k, U(2));
        ptx_loop(k), x = ptx_get(k, size), ptx_while(k, SETP(PTX_LE, x, U(256)));
        step = ptx_var_new(k, ptx_as(ptx_shr(k, x, I(1)), PTX_U32));
        ptx_loop(k), y = ptx_get(k, step), ptx_while(k, SETP(PTX_GT, y, U(0)));
        partner = ptx_as(ptx_xor(k, tid, y), PTX_U32);
        IF(SETP(PTX_GT, partner, tid));
        a = LD(mine, 0), b = LD(at(sh, partner, 4), 0);
        up = SETP(PTX_EQ, ptx_as(ptx_and(k, tid, x), PTX_U32), U(0));
        less = SETP(PTX_GT, a, b);
        low = ptx_op2(k, PTX_XOR, 0, up, less);
        IF(ptx_inv(low)), ST(mine, 0, b), END;
        IF(ptx_inv(low)), ST(at(sh, partner, 4), 0, a), END;
        END;
        BAR, ptx_set(k, step, ptx_as(ptx_shr(k, y, I(1)), PTX_U32)), END;
        ptx_set(k, size, ptx_as(ptx_shl(k, x, I(1)), PTX_U32)), END;
        out(LD(mine, 0)), CLEAN;
        /* unrolled */
        start(AMPERE), BLOCK(64), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
        for (s = 32; s; s /= 2) {
            IF(SETP(PTX_EQ, ptx_as(ptx_and(k, tid, U((uint32_t)s)), PTX_U32), U(0)));
            a = LD(mine, 0), b = LD(mine, 4 * s);
            ST(mine, 0, ptx_min(k, a, b)), ST(mine, 4 * s, ptx_max(k, a, b));
            END, BAR;
        }
        out(LD(mine, 0)), CLEAN;
    }
}

static void histograms_and_compaction(void) {
    int64_t w;
    ptx_val x, y, z, i, has, mask, before, total;
    start(AMPERE), BLOCK(256), ST(mine, 0, U(0)), BAR;
    i = ptx_for(k, ptx_mad(k, ptx_ctaid_x(k), U(256), tid), n, ptx_shl(k, ptx_nctaid_x(k), I(8)));
    x = ptx_ld(k, PTX_U8, ptx_at(at(q, i, 1), 0));
    ptx_red(k, PTX_ATOM_ADD, ptx_at(at(sh, ptx_as(x, PTX_U32), 4), 0), U(1));
    END, BAR;
    ptx_red(k, PTX_ATOM_ADD, ptx_at(at(p, tid, 4), 0), LD(mine, 0)), CLEAN;
    /* one histogram a warp, added up */
    start(AMPERE), BLOCK(256);
    i = ptx_for(k, tid, U(2048), U(256)), ST(at(sh, i, 4), 0, U(0)), END, BAR;
    y = at(sh, warp, 1024);
    i = ptx_for(k, tid, n, U(256)), x = ptx_and(k, LD(at(q, i, 4), 0), I(255));
    ptx_red(k, PTX_ATOM_ADD, ptx_at(at(y, ptx_as(x, PTX_U32), 4), 0), U(1)), END, BAR;
    z = LD(mine, 0);
    for (w = 1; w < 8; w++) z = ADD(z, LD(mine, w * 1024));
    out(z), CLEAN;
    /* compaction in a warp: place by ballot and lanemask, one atomic by the first lane */
    start(AMPERE), x = LD(at(q, tid, 4), 0), has = SETP(PTX_NE, x, U(0)), mask = ptx_ballot(k, has, FULL);
    before = ptx_popc(k, ptx_and(k, mask, ptx_sreg(k, PTX_LANEMASK_LT)));
    total = ptx_popc(k, mask);
    {
        ptx_var base = ptx_var_new(k, U(0));
        IF(SETP(PTX_EQ, lane, U(0)));
        ptx_set(k, base, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), total));
        END;
        y = ptx_shfl_idx(k, ptx_get(k, base), I(0), I(31), FULL);
        IF(has), ST(at(p, ADD(y, before), 4), 4, x), END;
    }
    CLEAN;
    /* the leader is the first lane of an active mask */
    start(AMPERE), x = LD(at(q, tid, 4), 0), has = SETP(PTX_LT, x, n), mask = ptx_ballot(k, has, FULL),
                   IF(has);
    {
        ptx_val leader = ptx_bfind(k, ptx_as(mask, PTX_U32));
        ptx_var base = ptx_var_new(k, U(0));
        IF(SETP(PTX_EQ, lane, leader));
        ptx_set(k, base, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), ptx_popc(k, mask)));
        END;
        ptx_bar_warp_sync(k, mask);
        y = ptx_shfl_idx(k, ptx_get(k, base), leader, I(31), mask);
        y = ADD(y, ptx_popc(k, ptx_and(k, mask, ptx_sreg(k, PTX_LANEMASK_LT))));
        ST(at(p, y, 4), 4, x);
    }
    END, CLEAN;
    /* compaction of a block: count of warps in shared memory */
    start(AMPERE), BLOCK(128);
    x = LD(at(q, tid, 4), 0), has = SETP(PTX_NE, x, U(0)), mask = ptx_ballot(k, has, FULL);
    IF(SETP(PTX_EQ, lane, U(0))), ST(at(sh, warp, 4), 0, ptx_popc(k, mask)), END;
    BAR;
    IF(one);
    {
        int s;
        ptx_val sum = U(0);
        for (s = 0; s < 4; s++) {
            y = LD(sh, 4 * s);
            ST(sh, 4 * s, s ? sum : ptx_mov(k, U(0)));
            sum = s ? ADD(sum, y) : y;
        }
        ST(sh, 16, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), sum));
    }
    END, BAR;
    y = ADD(LD(sh, 16), LD(at(sh, warp, 4), 0));
    IF(has), ST(at(p, ADD(y, ptx_popc(k, ptx_and(k, mask, ptx_sreg(k, PTX_LANEMASK_LT)))), 4), 4, x), END;
    CLEAN;
    /* aggregated by value: match */
    start(AMPERE), ST(mine, 0, U(0)), BAR, x = ptx_and(k, LD(at(q, tid, 4), 0), I(15));
    mask = ptx_op2(k, PTX_MATCH_ANY, 0, x, FULL);
    has = SETP(PTX_EQ, ptx_popc(k, ptx_and(k, mask, ptx_sreg(k, PTX_LANEMASK_LT))), U(0));
    IF(has), ptx_red(k, PTX_ATOM_ADD, ptx_at(at(sh, ptx_as(x, PTX_U32), 4), 0), ptx_popc(k, mask)), END;
    CLEAN;
}

#define EACH(i, limit) i = ptx_for(k, U(0), limit, U(1))
static ptx_val stages_full, stages_empty;
static void wait_at(ptx_val barrier, ptx_val parity) {
    ptx_val come;
    ptx_loop(k), come = ptx_mbarrier_try_wait(k, barrier, parity), ptx_while(k, ptx_inv(come)), END;
}
/* Barriers of `stages` stages: full by one arrival and bytes, empty by `readers`. */
static void make_stages(uint32_t stages, uint32_t readers, int in_loop) {
    uint32_t s;
    stages_full = ptx_shared(k, "full", PTX_U64, stages, 8);
    stages_empty = ptx_shared(k, "empty", PTX_U64, stages, 8);
    IF(one);
    if (in_loop) {
        ptx_val i;
        EACH(i, U(stages));
        ptx_mbarrier_init(k, at(stages_full, i, 8), I(1)),
            ptx_mbarrier_init(k, at(stages_empty, i, 8), U(readers));
        END;
    } else
        for (s = 0; s < stages; s++) {
            ptx_mbarrier_init(k, ptx_off(stages_full, s * 8), I(1));
            ptx_mbarrier_init(k, ptx_off(stages_empty, s * 8), U(readers));
        }
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
}
static void tensor_2d(ptx_val to, ptx_val map, ptx_val x, ptx_val y, ptx_val barrier) {
    ptx_val o[5];
    o[0] = to, o[1] = map, o[2] = x, o[3] = y, o[4] = barrier;
    ptx_opn(k, PTX_TENSOR_G2S, 0, PTX_NONE, PTX_NONE, 5, o, 0, NULL);
}
static ptx_val descriptor(ptx_val address) { return ptx_wgmma_descriptor(k, address, 16, 1024, 128); }
static void products(const ptx_var *sums, ptx_val a, ptx_val b, ptx_val scale, int depth) {
    ptx_val o[7];
    int i;
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    for (i = 0; i < depth; i++) {
        o[0] = i ? ptx_add(k, a, ptx_u64((uint64_t)i * 2)) : a,
        o[1] = i ? ptx_add(k, b, ptx_u64((uint64_t)i * 2)) : b;
        o[2] = scale, o[3] = o[4] = I(1), o[5] = o[6] = I(0);
        ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    }
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}
static void finished(int left) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(left)); }
static void sums_out(const ptx_var *sums) {
    int i;
    for (i = 0; i < 4; i++) ptx_st(k, PTX_F32, ptx_at(at(p, tid, 16), 4 * i), ptx_get(k, sums[i]));
}
static void next_stage(ptx_var stage, ptx_var phase, uint32_t stages) {
    ptx_val s = ADD(ptx_get(k, stage), U(1)), wraps = SETP(PTX_EQ, s, U(stages)), was = ptx_get(k, phase);
    ptx_set(k, stage, ptx_selp(k, U(0), s, wraps));
    ptx_set(k, phase, ptx_selp(k, ptx_as(ptx_xor(k, was, U(1)), PTX_U32), was, wraps));
}

/* One warpgroup brings, two multiply. roles: 0 by group number, 1 by comparison of tid, 2 by a switch. */
static void specialised(uint32_t stages, int roles, int bulk, int in_loop) {
    ptx_var stage, phase, sums[4];
    ptx_val group, i, s, ph, map, tiles, full, empty, role;
    int j;
    start(HOPPER), BLOCK(384), ptx_max_registers(k, 168);
    map = ptx_param_bytes(k, "map", 128, 64);
    if (!bulk) launch.box[0] = launch.box[1] = 64;
    tiles = DYNAMIC(stages * 16384);
    make_stages(stages, 2, in_loop);
    group = ptx_as(ptx_shr(k, tid, I(7)), PTX_U32);
    role = roles ? SETP(PTX_LT, tid, U(128)) : SETP(PTX_EQ, group, U(0));
    for (j = 0; j < 4; j++) sums[j] = ptx_var_new(k, ptx_f32(0));
    stage = ptx_var_new(k, U(0)), phase = ptx_var_new(k, U(0));
    IF(role);
    ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(40));
    IF(one);
    EACH(i, n);
    s = ptx_get(k, stage), ph = ptx_get(k, phase);
    full = at(stages_full, s, 8), empty = at(stages_empty, s, 8);
    wait_at(empty, ptx_as(ptx_xor(k, ph, U(1)), PTX_U32));
    ptx_mbarrier_arrive_expect(k, full, U(16384));
    if (bulk) {
        ptx_bulk_load(k, at(tiles, s, 16384), at(q, i, 8192), U(8192), full);
        ptx_bulk_load(k, ptx_off(at(tiles, s, 16384), 8192), at(q, i, 8192), U(8192), full);
    } else {
        ptx_val generic = ptx_cvta(k, map);
        tensor_2d(at(tiles, s, 16384), generic, ptx_as(i, PTX_S32), ptx_as(n, PTX_S32), full);
        tensor_2d(ptx_off(at(tiles, s, 16384), 8192), generic, ptx_as(i, PTX_S32), ptx_as(n, PTX_S32), full);
    }
    next_stage(stage, phase, stages);
    END;
    END;
    ptx_else(k);
    ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(232));
    EACH(i, n);
    s = ptx_get(k, stage), ph = ptx_get(k, phase);
    full = at(stages_full, s, 8), empty = at(stages_empty, s, 8);
    wait_at(full, ph);
    products(sums, descriptor(at(tiles, s, 16384)), descriptor(ptx_off(at(tiles, s, 16384), 8192)),
             SETP(PTX_NE, i, U(0)), 4);
    finished(0);
    IF(SETP(PTX_EQ, ptx_as(ptx_and(k, tid, I(127)), PTX_U32), U(0))), ptx_mbarrier_arrive(k, empty), END;
    next_stage(stage, phase, stages);
    END;
    sums_out(sums);
    ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(256));
    END;
    CLEAN;
}

/* All threads wait, one brings: the product of the last stage is still under way when the next is begun. */
static void overlapped(uint32_t stages) {
    ptx_var sums[4];
    ptx_val i, s, tiles, more, next, ph;
    uint32_t j;
    start(HOPPER), BLOCK(128);
    tiles = DYNAMIC(stages * 8192);
    make_stages(stages, 1, 0);
    for (j = 0; j < 4; j++) sums[j] = ptx_var_new(k, ptx_f32(0));
    IF(one);
    for (j = 0; j + 1 < stages; j++) {
        IF(SETP(PTX_LT, U(j), n));
        ptx_mbarrier_arrive_expect(k, ptx_off(stages_full, j * 8), U(8192));
        ptx_bulk_load(k, ptx_off(tiles, j * 8192), at(q, U(j), 8192), U(8192), ptx_off(stages_full, j * 8));
        END;
    }
    END;
    EACH(i, n);
    s = modulo(i, stages), ph = ptx_as(ptx_and(k, ptx_div(k, i, U(stages)), U(1)), PTX_U32);
    wait_at(at(stages_full, s, 8), ph);
    products(sums, descriptor(at(tiles, s, 8192)), descriptor(ptx_off(at(tiles, s, 8192), 4096)),
             SETP(PTX_NE, i, U(0)), 2);
    finished(1);
    BAR;
    next = ADD(i, U(stages - 1)), more = SETP(PTX_LT, next, n);
    IF(more), IF(one);
    {
        ptx_val to = modulo(next, stages);
        ptx_mbarrier_arrive_expect(k, at(stages_full, to, 8), U(8192));
        ptx_bulk_load(k, at(tiles, to, 8192), at(q, next, 8192), U(8192), at(stages_full, to, 8));
    }
    END, END;
    END;
    finished(0);
    sums_out(sums);
    CLEAN;
}

/* A cluster of two: each brings half and sends it to both; the readers give the stage back to both. */
static void together_(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static void store_async(ptx_val to, ptx_val x, ptx_val barrier) {
    ptx_op3(k, PTX_ST_ASYNC, 0, to, x, barrier);
}
static void multicast(void) {
    ptx_val tiles, rank, i, s, o[5], full, empty, ph, lead;
    ptx_var stage, phase;
    start(HOPPER), BLOCK(256), CLUSTER(2);
    tiles = DYNAMIC(4 * 8192);
    make_stages(4, 2, 0);
    ptx_cluster_arrive(k), ptx_cluster_wait(k);
    rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    stage = ptx_var_new(k, U(0)), phase = ptx_var_new(k, U(0));
    IF(SETP(PTX_EQ, warp, U(0)));
    IF(one);
    EACH(i, n);
    s = ptx_get(k, stage), ph = ptx_get(k, phase), full = at(stages_full, s, 8),
    empty = at(stages_empty, s, 8);
    wait_at(empty, ptx_as(ptx_xor(k, ph, U(1)), PTX_U32));
    ptx_mbarrier_arrive_expect(k, full, U(8192));
    o[0] = at(at(tiles, s, 8192), rank, 4096), o[1] = at(q, i, 4096), o[2] = U(4096), o[3] = full;
    o[4] = ptx_u16(3);
    ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, o, 0, NULL);
    next_stage(stage, phase, 4);
    END, END;
    ptx_else(k);
    IF(SETP(PTX_GE, tid, U(128)));
    EACH(i, n);
    s = ptx_get(k, stage), ph = ptx_get(k, phase), full = at(stages_full, s, 8),
    empty = at(stages_empty, s, 8);
    wait_at(full, ph);
    ST(at(p, ADD(tid, ptx_shl(k, rank, I(8))), 4), 0, LD(at(at(tiles, s, 8192), tid, 4), 0));
    ptx_op2(k, PTX_BAR_SYNC, 0, I(2), I(128));
    lead = ptx_as(ptx_and(k, tid, I(127)), PTX_U32);
    IF(SETP(PTX_LT, lead, U(2)));
    ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, ptx_mapa(k, empty, lead));
    END;
    next_stage(stage, phase, 4);
    END, END, END;
    ptx_cluster_arrive(k), ptx_cluster_wait(k);
    CLEAN;
    /* sums of a cluster in the first block's memory */
    start(HOPPER), BLOCK(128), CLUSTER(4);
    rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    ST(mine, 0, LD(at(q, tid, 4), 0)), together_(), IF(SETP(PTX_EQ, rank, U(0)));
    {
        ptx_val x = LD(mine, 0), r;
        ptx_var v = ptx_var_new(k, x);
        r = ptx_for(k, U(1), U(4), U(1));
        ptx_set(k, v, ADD(ptx_get(k, v), LD(ptx_mapa(k, mine, r), 0)));
        END;
        out(ptx_get(k, v));
    }
    END, together_(), CLEAN;
    /* atomics into the other's histogram */
    start(HOPPER), BLOCK(128), CLUSTER(2), ST(mine, 0, U(0)), together_();
    {
        ptx_val x = LD(at(q, tid, 4), 0), bin = ptx_as(ptx_and(k, x, I(127)), PTX_U32);
        ptx_val whose = ptx_as(ptx_and(k, ptx_shr(k, x, I(7)), I(1)), PTX_U32);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_mapa(k, at(sh, bin, 4), whose), 0), U(1));
    }
    together_(), ST(at(p, ADD(tid, ptx_mul(k, ptx_sreg(k, PTX_CLUSTER_CTARANK), U(128))), 4), 0, LD(mine, 0)),
        CLEAN;
    /* st.async into the neighbour, counted by its mbarrier */
    start(HOPPER), BLOCK(128), CLUSTER(2);
    IF(one), ptx_mbarrier_init(k, bar, I(1)), ptx_mbarrier_arrive_expect(k, bar, U(512)),
        ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0), END, together_();
    rank = ptx_as(ptx_xor(k, ptx_sreg(k, PTX_CLUSTER_CTARANK), U(1)), PTX_U32);
    store_async(ptx_mapa(k, mine, rank), tid, ptx_mapa(k, bar, rank));
    wait_at(bar, U(0)), out(LD(mine, 0)), together_(), CLEAN;
}

/* Results by way of shared memory and a tensor or bulk store. */
static void stored_in_bulk(void) {
    ptx_val i, o[4], map, v[4], row;
    /* rounds: the last store has read before the array is written again */
    start(HOPPER), BLOCK(128), EACH(i, n);
    IF(one), ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(0)), END, BAR;
    ST(mine, 0, i), ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0), BAR;
    IF(one), ptx_bulk_store(k, at(p, i, 512), sh, I(512)), ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0), END;
    END;
    IF(one), ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0)), END, CLEAN;
    /* ... but not behind the last round */
    start(HOPPER), BLOCK(128), EACH(i, n);
    IF(one), ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(0)), END, BAR;
    ST(mine, 0, i), ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0), BAR;
    IF(one), ptx_bulk_store(k, at(p, i, 512), sh, I(512)), ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0), END;
    END, WRONG("async-exit");
    /* two halves in turn */
    start(HOPPER), BLOCK(128), EACH(i, n);
    row = ptx_as(ptx_and(k, i, U(1)), PTX_U32);
    IF(one), ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(1)), END, BAR;
    ST(at(mine, row, 512), 0, i), ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0), BAR;
    IF(one), ptx_bulk_store(k, at(p, i, 512), at(sh, row, 512), I(512)), ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0),
        END;
    END;
    IF(one), ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0)), END, CLEAN;
    /* by stmatrix and the tensor map */
    start(HOPPER), BLOCK(32), map = ptx_cvta(k, ptx_param_bytes(k, "map", 128, 64));
    launch.box[0] = 8, launch.box[1] = 32, launch.map_of_p = 1;
    v[0] = at(sh, lane, 16), v[1] = v[2] = v[3] = ptx_mov(k, ptx_b32(0));
    {
        ptx_val rows[5];
        rows[0] = v[0], rows[1] = rows[2] = rows[3] = rows[4] = v[1];
        ptx_opn(k, PTX_STMATRIX, 0, PTX_NONE, PTX_NONE, 5, rows, 0, NULL);
    }
    ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0), ptx_bar_warp_sync(k, FULL);
    IF(ptx_elect(k, FULL));
    o[0] = map, o[1] = ptx_s32(0), o[2] = ptx_s32(8), o[3] = sh;
    ptx_opn(k, PTX_TENSOR_S2G, 0, PTX_NONE, PTX_NONE, 4, o, 0, NULL);
    ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0), ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0)), END, CLEAN;
}

/* mbarriers without bulk copies: arrivals by count, state tokens, cp.async that arrives. */
static void arrivals(void) {
    ptx_val state, i, come;
    ptx_var ph;
    start(AMPERE), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    ST(mine, 0, tid), state = ptx_mbarrier_arrive(k, bar);
    ptx_loop(k), come = ptx_mbarrier_test_wait(k, bar, state), ptx_while(k, ptx_inv(come)), END;
    out(LD(at(sh, ptx_xor(k, tid, U(64)), 4), 0)), CLEAN;
    /* in a loop with tokens */
    start(AMPERE), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    EACH(i, n), state = ptx_mbarrier_arrive(k, bar);
    ptx_loop(k), come = ptx_mbarrier_test_wait(k, bar, state), ptx_while(k, ptx_inv(come)), END, END, CLEAN;
    /* cp.async with noinc */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    ptx_cp_async_16(k, wide, at(q, tid, 16)), ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar);
    wait_at(bar, U(0)), out(LD(at(sh, ptx_xor(k, tid, U(64)), 16), 0)), CLEAN;
    /* counted once more by each */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    ptx_cp_async_16(k, wide, at(q, tid, 16)), ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE, 0, bar);
    ptx_mbarrier_arrive(k, bar);
    wait_at(bar, U(0)), out(LD(at(sh, ptx_xor(k, tid, U(64)), 16), 0)), CLEAN;
    /* a phase that turns in a variable, every thread arrives */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    ph = ptx_var_new(k, U(0)), EACH(i, n), ptx_mbarrier_arrive(k, bar), wait_at(bar, ptx_get(k, ph));
    ptx_set(k, ph, ptx_as(ptx_xor(k, ptx_get(k, ph), U(1)), PTX_U32)), END, CLEAN;
    /* parity by the round's number */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    EACH(i, n), ptx_mbarrier_arrive(k, bar), wait_at(bar, ptx_as(ptx_and(k, i, U(1)), PTX_U32)), END, CLEAN;
    /* expect apart from arrive */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(128)), END, BAR;
    IF(one), ptx_op2(k, PTX_MBARRIER_EXPECT_TX, 0, bar, U(1024)), ptx_bulk_load(k, sh, q, U(1024), bar), END;
    ptx_mbarrier_arrive(k, bar), wait_at(bar, U(0)), out(LD(mine, 0)), CLEAN;
    /* a wait with a time, and sleep */
    start(HOPPER), BLOCK(128), IF(one), ptx_mbarrier_init(k, bar, U(1)), END, BAR;
    IF(one), ptx_mbarrier_arrive_expect(k, bar, U(1024)), ptx_bulk_load(k, sh, q, U(1024), bar), END;
    ptx_loop(k), come = ptx_op3(k, PTX_MBARRIER_TRY_WAIT_PARITY, 0, bar, U(0), U(10000));
    ptx_while(k, ptx_inv(come)), ptx_nanosleep(k, U(32)), END, out(LD(mine, 0)), CLEAN;
    /* the init by another warp's elected lane, mbarriers undone at the end */
    start(HOPPER), BLOCK(128), IF(SETP(PTX_EQ, warp, U(1))), IF(ptx_elect(k, FULL));
    ptx_mbarrier_init(k, bar, U(1)), ptx_op0(k, PTX_FENCE_PROXY_ASYNC, 0), END, END, BAR;
    IF(SETP(PTX_EQ, warp, U(0))), IF(ptx_elect(k, FULL));
    ptx_mbarrier_arrive_expect(k, bar, U(1024)), ptx_bulk_load(k, sh, q, U(1024), bar), END, END;
    wait_at(bar, U(0)), out(LD(mine, 0)), BAR, IF(one), ptx_mbarrier_inval(k, bar), END, CLEAN;
}

/* Blocks that work together by global memory. */
static void across_blocks(void) {
    ptx_val x, y, i, last, r[4];
    ptx_var v, w;
    int s;
    /* split-K: the last block adds up */
    start(AMPERE), BLOCK(128), GRID(4);
    ST(at(p, ptx_mad(k, ptx_ctaid_x(k), U(128), tid), 4), 0, tid);
    ptx_fence(k, PTX_ACQ_REL | PTX_GPU), BAR;
    IF(one);
    x = ptx_atom(k, PTX_ATOM_INC, ptx_at(p, 4096), n);
    ST(sh, 0, x);
    END, BAR;
    last = SETP(PTX_EQ, ptx_uniform(k, LD(sh, 0)), ptx_sub(k, ptx_nctaid_x(k), U(1)));
    IF(last);
    ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
    v = ptx_var_new(k, U(0)), EACH(i, ptx_nctaid_x(k));
    ptx_set(k, v, ADD(ptx_get(k, v), LD(at(p, ptx_mad(k, i, U(128), tid), 4), 0))), END;
    ST(mine, 16, ptx_get(k, v)), BAR, x = warp_total(LD(mine, 16)), out(x);
    END, CLEAN;
    /* a barrier of the grid */
    start(AMPERE), BLOCK(128), GRID(4), EACH(i, n), out(i), BAR, IF(one);
    ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
    ptx_red(k, PTX_ATOM_ADD | PTX_RELEASE | PTX_GPU, ptx_at(p, 4096), U(1));
    ptx_loop(k), x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 4096), PTX_ACQUIRE | PTX_GPU));
    ptx_while(k, SETP(PTX_LT, x, ptx_mul(k, ADD(i, U(1)), ptx_nctaid_x(k)))), END;
    END, BAR, END, CLEAN;
    /* persistent by an atomic counter, the tile broadcast by shared memory, two slots */
    start(AMPERE), BLOCK(128), v = ptx_var_new(k, U(0));
    ptx_loop(k), y = at(sh, ptx_get(k, v), 4), IF(one);
    ST(y, 0, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1))), END, BAR;
    x = ptx_uniform(k, LD(y, 0)), ptx_while(k, SETP(PTX_LT, x, n)), out(x);
    ptx_set(k, v, ptx_as(ptx_xor(k, ptx_get(k, v), U(1)), PTX_U32)), END, CLEAN;
    /* a lock, taken by one thread of the block */
    start(AMPERE), GRID(4), IF(one), ptx_loop(k);
    x = ptx_atom_cas(k, ptx_with(ptx_at(p, 4096), PTX_ACQUIRE | PTX_GPU), U(0), U(1));
    ptx_while(k, SETP(PTX_NE, x, U(0))), ptx_nanosleep(k, U(64)), END, END, BAR;
    ST(at(p, tid, 4), 64, ADD(LD(at(p, tid, 4), 64), n));
    BAR, IF(one), ptx_st(k, PTX_U32, ptx_with(ptx_at(p, 4096), PTX_RELEASE | PTX_GPU), U(0)), END, CLEAN;
    /* the maximum of floats by compare and swap */
    start(AMPERE), x = ptx_ld(k, PTX_U32, ptx_at(p, 4096)), v = ptx_var_new(k, x), ptx_loop(k);
    x = ptx_get(k, v), ptx_while(k, SETP(PTX_LT, x, tid)), y = ptx_atom_cas(k, ptx_at(p, 4096), x, tid);
    ptx_set(k, v, y), ptx_while(k, SETP(PTX_NE, x, y)), END, CLEAN;
    /* a kernel that begins before the last has ended */
    start(HOPPER), launch.dependent = 1, ptx_op0(k, PTX_GRIDDEPCONTROL_LAUNCH, 0), IF(one), ST(sh, 0, U(0)),
                   END;
    ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0), BAR, out(ADD(LD(sh, 0), LD(q, 0))), CLEAN;
    /* chained scan: blocks look back at flags */
    start(AMPERE), BLOCK(128), IF(one);
    w = ptx_var_new(k, U(0));
    IF(SETP(PTX_GT, ptx_ctaid_x(k), U(0))), v = ptx_var_new(k, ptx_sub(k, ptx_ctaid_x(k), U(1)));
    ptx_loop(k), x = ptx_get(k, v);
    ptx_loop(k), y = ptx_ld(k, PTX_U32, ptx_with(ptx_at(at(p, x, 8), 0), PTX_ACQUIRE | PTX_GPU));
    ptx_while(k, SETP(PTX_EQ, y, U(0))), END;
    ptx_set(k, w, ADD(ptx_get(k, w), LD(at(q, x, 8), 4))), IF(SETP(PTX_EQ, y, U(2))), ptx_break(k), END;
    ptx_while(k, SETP(PTX_GT, x, U(0)));
    ptx_set(k, v, ptx_sub(k, x, U(1))), END, END, ST(sh, 0, ptx_get(k, w)), END, BAR;
    out(ADD(LD(sh, 0), tid)), CLEAN;
    /* vectors, policies */
    start(AMPERE), i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid), IF(SETP(PTX_LT, i, n));
    ptx_ld_vec(k, PTX_U32, 4, ptx_with(ptx_at(at(q, i, 16), 0), PTX_NC), r);
    for (s = 0; s < 4; s++) r[s] = ADD(r[s], U(1));
    END, CLEAN;
}

/* Rows: softmax and norms, a block or a warp each. */
static void rows(void) {
    ptx_val i, x, y, row;
    ptx_var v, most;
    start(AMPERE), BLOCK(256), v = ptx_var_new(k, U(0)), most = ptx_var_new(k, U(0));
    row = ptx_for(k, ptx_ctaid_x(k), n, ptx_nctaid_x(k));
    i = ptx_for(k, tid, U(4096), U(256)), x = LD(at(q, i, 4), 0), ST(at(sh, i, 4), 0, x);
    ptx_set(k, most, ptx_max(k, ptx_get(k, most), x)), END;
    x = ptx_op2(k, PTX_REDUX_MAX, 0, ptx_get(k, most), FULL);
    y = ptx_shared(k, "part", PTX_U32, 8, 4);
    IF(SETP(PTX_EQ, lane, U(0))), ST(at(y, warp, 4), 0, x), END, BAR;
    x = LD(at(y, ptx_as(ptx_and(k, lane, U(7)), PTX_U32), 4), 0);
    x = ptx_op2(k, PTX_REDUX_MAX, 0, x, FULL);
    i = ptx_for(k, tid, U(4096), U(256)), ST(at(p, ADD(i, row), 4), 0, ptx_sub(k, LD(at(sh, i, 4), 0), x)),
    END;
    BAR, END, (void)v, CLEAN;
    /* a warp a row, in a loop by warps */
    start(AMPERE), BLOCK3(32, 4, 1);
    row = ptx_for(k, ptx_mad(k, ptx_ctaid_x(k), U(4), ptx_tid_y(k)), n, ptx_shl(k, ptx_nctaid_x(k), I(2)));
    v = ptx_var_new(k, U(0)), i = ptx_for(k, tid, n, U(32));
    ptx_set(k, v, ADD(ptx_get(k, v), LD(at(q, ADD(i, row), 4), 0))), END;
    x = warp_total(ptx_get(k, v)), IF(SETP(PTX_EQ, tid, U(0))), ST(at(p, row, 4), 0, x), END, END, CLEAN;
    /* the row's warp leaves early, whole */
    start(AMPERE), BLOCK(128), row = ADD(ptx_shl(k, ptx_ctaid_x(k), I(2)), warp);
    IF(SETP(PTX_GE, row, n)), ptx_ret(k), END, x = warp_total(LD(at(q, tid, 4), 0));
    IF(SETP(PTX_EQ, lane, U(0))), ST(at(p, row, 4), 0, x), END, CLEAN;
    /* a quarter of a warp each */
    start(AMPERE), x = LD(at(q, tid, 4), 0);
    x = ADD(x, ptx_shfl_bfly(k, x, I(4), I(0x181f), FULL)),
    x = ADD(x, ptx_shfl_bfly(k, x, I(2), I(0x181f), FULL));
    x = ADD(x, ptx_shfl_bfly(k, x, I(1), I(0x181f), FULL));
    y = SETP(PTX_EQ, ptx_as(ptx_and(k, lane, I(7)), PTX_U32), U(0)), IF(y), out(x), END, CLEAN;
    /* lanes beyond the tail come with a neutral element */
    start(AMPERE), i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
    x = ptx_ld_if(k, SETP(PTX_LT, i, n), PTX_U32, ptx_at(at(q, i, 4), 0), I(0)), x = warp_total(x);
    IF(SETP(PTX_EQ, lane, U(0))), ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), x), END, CLEAN;
}

/* Blocks of two and three dimensions. */
static void dimensions(void) {
    ptx_val x, y, z, j, tile, flat;
    uint32_t i;
    ptx_var v;
    /* 32 x 8 threads turn a tile of 32 x 32, padded by one */
    start(AMPERE), BLOCK3(32, 8, 1), tile = ptx_shared(k, "tile", PTX_F32, 32 * 33, 4), y = ptx_tid_y(k);
    flat = ptx_mad(k, y, U(32), tid);
    for (i = 0; i < 4; i++)
        ptx_st(k, PTX_U32, ptx_at(at(tile, ptx_mad(k, ADD(y, U(8 * i)), U(33), tid), 4), 0),
               LD(at(q, tid, 4), 0));
    BAR;
    for (i = 0; i < 4; i++)
        ST(at(p, flat, 4), (int64_t)i * 1024,
           LD(at(tile, ptx_mad(k, tid, U(33), ADD(y, U(8 * i))), 4), 0));
    CLEAN;
    /* the same in a loop, block not declared */
    start(AMPERE), launch.block[0] = 32, launch.block[1] = 8;
    tile = ptx_shared(k, "tile", PTX_F32, 32 * 33, 4), y = ptx_tid_y(k);
    j = ptx_for(k, y, U(32), ptx_sreg(k, PTX_NTID_Y)),
    ST(at(tile, ptx_mad(k, j, U(33), tid), 4), 0, LD(at(q, j, 4), 0));
    END, BAR, j = ptx_for(k, y, U(32), ptx_sreg(k, PTX_NTID_Y));
    ST(at(p, ADD(ptx_shl(k, j, I(5)), tid), 4), 0, LD(at(tile, ptx_mad(k, tid, U(33), j), 4), 0)), END, CLEAN;
    /* a stencil with its border */
    start(AMPERE), BLOCK3(16, 16, 1), tile = ptx_shared(k, "tile", PTX_F32, 18 * 18, 4);
    y = ptx_tid_y(k);
    x = at(tile, ptx_mad(k, ADD(y, U(1)), U(18), ADD(tid, U(1))), 4), ST(x, 0, LD(at(q, tid, 4), 0));
    IF(SETP(PTX_EQ, tid, U(0))), ST(x, -4, U(0)), END, IF(SETP(PTX_EQ, tid, U(15))), ST(x, 4, U(0)), END;
    IF(SETP(PTX_EQ, y, U(0))), ST(x, -72, U(0)), END, IF(SETP(PTX_EQ, y, U(15))), ST(x, 72, U(0)), END, BAR;
    ST(at(p, ptx_mad(k, y, U(16), tid), 4), 0, ADD(ADD(LD(x, -4), LD(x, 4)), ADD(LD(x, -72), LD(x, 72)))),
        CLEAN;
    /* 3-D, flat number, each warp by itself */
    start(AMPERE), BLOCK3(8, 4, 4), y = ptx_tid_y(k), z = ptx_tid_z(k);
    flat = ptx_mad(k, ptx_mad(k, z, U(4), y), U(8), tid), ST(at(sh, flat, 4), 0, n), BAR;
    v = ptx_var_new(k, LD(at(sh, ptx_sub(k, U(127), flat), 4), 0));
    x = ptx_warp_uniform(k, ptx_as(ptx_shr(k, flat, I(5)), PTX_U32));
    IF(SETP(PTX_EQ, x, U(0))), x = warp_total(ptx_get(k, v)), out(x), END, CLEAN;
    /* y alone says the warp */
    start(AMPERE), BLOCK3(32, 4, 1), y = ptx_tid_y(k), IF(SETP(PTX_LT, y, U(2)));
    ST(at(p, y, 4), 0, warp_total(tid)), ptx_else(k), ST(at(p, y, 4), 0, warp_total(y)), END, BAR, CLEAN;
    /* matrices by 64 x 2 threads: a warpgroup is y's */
    start(HOPPER), BLOCK3(128, 2, 1), y = ptx_tid_y(k), IF(SETP(PTX_EQ, y, U(1)));
    ptx_op0(k, PTX_WGMMA_FENCE, 0), END, CLEAN;
}

/* Roles of warps with named barriers, no mbarrier. */
static void named_roles(void) {
    ptx_val i, x;
    ptx_mods none = 0;
    start(AMPERE), BLOCK(256), IF(SETP(PTX_LT, tid, U(128)));
    EACH(i, n), ptx_op2(k, PTX_BAR_SYNC, none, I(2), I(256)), ST(mine, 0, LD(at(q, tid, 4), 0));
    ptx_op2(k, PTX_BAR_ARRIVE, none, I(1), I(256)), END, ptx_else(k);
    ptx_op2(k, PTX_BAR_ARRIVE, none, I(2), I(256));
    EACH(i, n), ptx_op2(k, PTX_BAR_SYNC, none, I(1), I(256));
    out(LD(at(sh, ptx_as(ptx_xor(k, tid, U(191)), PTX_U32), 4), 0));
    ptx_op2(k, PTX_BAR_ARRIVE, none, I(2), I(256)), END, END;
    IF(SETP(PTX_LT, tid, U(128))), ptx_op2(k, PTX_BAR_SYNC, none, I(2), I(256)), END, CLEAN;
    /* two buffers, a barrier pair each, by the round */
    start(AMPERE), BLOCK(64), IF(SETP(PTX_EQ, warp, U(0)));
    EACH(i, n), x = ptx_as(ptx_and(k, i, U(1)), PTX_U32), ptx_op2(k, PTX_BAR_SYNC, none, ADD(x, U(3)), I(64));
    ST(at(at(sh, lane, 4), x, 128), 0, i), ptx_op2(k, PTX_BAR_ARRIVE, none, ADD(x, U(1)), I(64)), END;
    ptx_else(k), ptx_op2(k, PTX_BAR_ARRIVE, none, I(3), I(64)), ptx_op2(k, PTX_BAR_ARRIVE, none, I(4), I(64));
    EACH(i, n), x = ptx_as(ptx_and(k, i, U(1)), PTX_U32), ptx_op2(k, PTX_BAR_SYNC, none, ADD(x, U(1)), I(64));
    out(LD(at(at(sh, lane, 4), x, 128), 0)), ptx_op2(k, PTX_BAR_ARRIVE, none, ADD(x, U(3)), I(64)), END, END;
    CLEAN;
    /* each pair of warps by a barrier of its own */
    start(AMPERE), BLOCK(256), ST(mine, 0, tid);
    ptx_op2(k, PTX_BAR_SYNC, none, ADD(ptx_as(ptx_shr(k, tid, I(6)), PTX_U32), U(1)), I(64));
    out(LD(at(sh, ptx_as(ptx_xor(k, tid, U(32)), PTX_U32), 4), 0)), CLEAN;
    /* a warp by itself, through shared memory */
    start(AMPERE), ST(mine, 0, tid), ptx_bar_warp_sync(k, FULL),
        out(LD(at(sh, ptx_as(ptx_xor(k, tid, U(1)), PTX_U32), 4), 0));
    ptx_bar_warp_sync(k, FULL), ST(mine, 0, n), ptx_bar_warp_sync(k, FULL);
    out(LD(at(sh, ptx_as(ptx_xor(k, tid, U(2)), PTX_U32), 4), 0)), CLEAN;
    /* only the first warps go on, with a barrier for them */
    start(AMPERE), BLOCK(256), ST(mine, 0, tid), BAR, IF(SETP(PTX_GE, tid, U(64))), ptx_ret(k), END;
    x = ADD(LD(mine, 256), LD(mine, 512)), ST(mine, 1024, x), ptx_op2(k, PTX_BAR_SYNC, none, I(1), I(64));
    IF(SETP(PTX_LT, tid, U(32))), out(ADD(LD(mine, 1024), LD(mine, 1152))), END, CLEAN;
}

static uint32_t wide_of(uint32_t x) { return x * 2 + 1; }
/* Functions, jumps, loops. */
static void ways(void) {
    ptx_val i, x, y, a[3];
    ptx_label l[4], behind;
    uint32_t which;
    ptx_var v;
    ptx_kernel *f, *g;
    ptx_module_desc d;
    memset(&d, 0, sizeof d), d.target = PTX_SM(80);
    m = ptx_module_new(&d);
    f = ptx_func(m, "clamped", PTX_U32), x = ptx_param(f, "x", PTX_U32), y = ptx_param(f, "most", PTX_U32);
    ptx_return(f, ptx_min(f, x, y));
    g = ptx_func(m, "summed", PTX_U32), x = ptx_param(g, "x", PTX_U32);
    for (which = 16; which; which /= 2) x = ptx_add(g, x, ptx_shfl_bfly(g, x, U(which), I(31), FULL));
    ptx_return(g, x);
    k = ptx_entry(m, "k"), p = ptx_param_ptr(k, "p", PTX_GLOBAL), q = ptx_param_ptr(k, "q", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32), tid = ptx_tid_x(k);
    a[0] = LD(at(q, tid, 4), 0), a[1] = n, x = ptx_call(k, f, 2, a), a[0] = x, x = ptx_call(k, g, 1, a);
    IF(SETP(PTX_EQ, tid, U(0))), a[0] = x, a[1] = U(7), out(ptx_call(k, f, 2, a)), END;
    a[0] = tid, a[1] = n, y = ptx_func_address(k, f), out(ptx_call_indirect(k, y, PTX_U32, 2, a)), CLEAN;
    /* a jump through a table, by something uniform and by something not */
    for (which = 0; which < 2; which++) {
        uint32_t j;
        start(AMPERE), behind = ptx_label_new(k), v = ptx_var_new(k, U(0));
        for (j = 0; j < 4; j++) l[j] = ptx_label_new(k);
        ptx_brx(k, which ? ptx_as(ptx_and(k, tid, U(3)), PTX_U32) : n, 4, l, behind);
        for (j = 0; j < 4; j++) {
            ptx_place(k, l[j]), ptx_set(k, v, ADD(tid, U(wide_of(j))));
            if (!which) BAR;
            ptx_bra(k, behind);
        }
        ptx_place(k, behind), BAR, out(ptx_get(k, v)), CLEAN;
    }
    /* break and continue where threads differ, a barrier behind */
    start(AMPERE), v = ptx_var_new(k, U(0)), EACH(i, n), x = LD(at(q, ADD(i, tid), 4), 0);
    IF(SETP(PTX_EQ, x, U(0))), ptx_break(k), END, IF(SETP(PTX_EQ, x, U(1))), ptx_continue(k), END;
    ptx_set(k, v, ADD(ptx_get(k, v), x)), END, BAR, out(warp_total(ptx_get(k, v))), CLEAN;
    /* binary search in shared memory, each by itself */
    {
        ptx_var low, high;
        ptx_val lo, hi, mid;
        start(AMPERE), BLOCK(128), ST(mine, 0, LD(at(q, tid, 4), 0)), BAR;
        low = ptx_var_new(k, U(0)), high = ptx_var_new(k, U(128));
        ptx_loop(k), lo = ptx_get(k, low), hi = ptx_get(k, high), ptx_while(k, SETP(PTX_LT, lo, hi));
        mid = ptx_as(ptx_shr(k, ADD(lo, hi), I(1)), PTX_U32);
        IF(SETP(PTX_LT, LD(at(sh, mid, 4), 0), n)), ptx_set(k, low, ADD(mid, U(1)));
        ptx_else(k), ptx_set(k, high, mid), END, END, out(ptx_get(k, low)), CLEAN;
    }
    /* while some lane has work */
    start(AMPERE), v = ptx_var_new(k, LD(at(q, tid, 4), 0)), ptx_loop(k), x = ptx_get(k, v);
    ptx_while(k, ptx_op2(k, PTX_VOTE_ANY, 0, SETP(PTX_GT, x, U(0)), FULL));
    IF(SETP(PTX_GT, x, U(0))), ptx_set(k, v, ptx_as(ptx_shr(k, x, I(1)), PTX_U32)), END, END, CLEAN;
    /* a ballot's lanes, one after the other */
    start(AMPERE), x = LD(at(q, tid, 4), 0), v = ptx_var_new(k, ptx_ballot(k, SETP(PTX_LT, x, n), FULL)),
                   ptx_loop(k);
    y = ptx_get(k, v), ptx_while(k, SETP(PTX_NE, ptx_as(y, PTX_U32), U(0)));
    out(ptx_shfl_idx(k, x, ptx_bfind(k, ptx_as(y, PTX_U32)), I(31), FULL));
    ptx_set(k, v, ptx_as(ptx_and(k, y, ptx_sub(k, ptx_as(y, PTX_U32), U(1))), ptx_type_of(y))), END, CLEAN;
    /* local memory, constants, printf */
    start(AMPERE), x = ptx_local(k, "stack", PTX_U32, 16, 4), v = ptx_var_new(k, U(0));
    EACH(i, U(16)), ST(at(x, i, 4), 0, ptx_mul(k, i, tid)), END,
        out(LD(at(x, ptx_as(ptx_and(k, n, U(15)), PTX_U32), 4), 0));
    a[0] = tid, IF(one), ptx_printf(k, "%u\n", 1, a), END, CLEAN;
    /* arrays cut out of dynamic shared memory, by a size known at run time */
    start(AMPERE), launch.n = 64, x = DYNAMIC(8192), y = at(x, n, 16), ST(at(x, tid, 4), 0, tid),
                   ST(at(y, tid, 4), 0, n), BAR;
    out(ADD(LD(at(x, ptx_as(ptx_xor(k, tid, U(33)), PTX_U32), 4), 0),
            LD(at(y, ptx_as(ptx_xor(k, tid, U(33)), PTX_U32), 4), 0)));
    CLEAN;
    start(AMPERE), x = DYNAMIC(8192), y = ptx_off(x, 4096), ST(at(x, tid, 4), 0, tid),
                   ST(at(y, tid, 4), 0, n), BAR;
    out(LD(at(y, ptx_as(ptx_xor(k, tid, U(33)), PTX_U32), 4), 0)), CLEAN;
    /* wmma */
    {
        ptx_val fa[8], fb[8], fc[8], fd[8], o[10];
        int j;
        start(AMPERE), BLOCK(32);
        for (j = 0; j < 4; j++) ST(at(sh, tid, 4), 128 * j, tid);
        BAR;
        o[0] = sh, o[1] = U(16);
        ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, PTX_ROW, PTX_F16, PTX_NONE, 2, o, 8, fa);
        ptx_opn(k, PTX_WMMA_LOAD_B_M16N16K16, PTX_COL, PTX_F16, PTX_NONE, 2, o, 8, fb);
        for (j = 0; j < 8; j++) fc[j] = ptx_mov(k, ptx_f32(0));
        ptx_mma(k, PTX_WMMA_M16N16K16_F32, PTX_F16, PTX_F16, fd, fa, fb, fc);
        o[0] = p;
        for (j = 0; j < 8; j++) o[j + 1] = fd[j];
        o[9] = U(16);
        ptx_opn(k, PTX_WMMA_STORE_D_M16N16K16, PTX_ROW, PTX_F32, PTX_NONE, 10, o, 0, NULL);
        CLEAN;
    }
}

/* What one thread has set only that thread reads: a branch on it is uniform for the others. */
static void set_by_one_thread(void) {
    ptx_var v;
    ptx_val i;
    start(AMPERE), v = ptx_var_new(k, U(0)), IF(one), ptx_set(k, v, n), out(ptx_get(k, v)), END,
                   ptx_set(k, v, n);
    IF(SETP(PTX_LT, ptx_get(k, v), U(9))), BAR, END, CLEAN;
    start(AMPERE), EACH(i, n), v = ptx_var_new(k, U(0));
    IF(SETP(PTX_LT, ptx_get(k, v), n)), BAR, END, IF(one), ptx_set(k, v, i), END, END, CLEAN;
}

/* Comments stand among the instructions and are none, however many there are. */
static void commented(void) {
    ptx_module_desc d;
    ptx_val low, high;
    int i;
    char text[201];
    memset(&d, 0, sizeof d), d.target = PTX_SM(80), d.comments = 1;
    memset(text, 'x', 200), text[200] = 0;
    m = ptx_module_new(&d), k = ptx_entry(m, "k"), p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    ptx_param(k, "q", PTX_U64), ptx_param(k, "n", PTX_U32);
    tid = ptx_tid_x(k);
    for (i = 0; i < 1000; i++) {
        text[i % 200] = 'y', ptx_comment(k, text);
        low = ptx_add_cc(k, tid, tid), ptx_comment(k, text), high = ptx_addc(k, tid, low);
    }
    out(high), CLEAN;
}

int main(void) {
    uint32_t stages;
    int how;
    if (!open_cpu_driver()) return check_end();
    for (stages = 2; stages <= 4; stages++)
        for (how = 0; how < 3; how++) product_stages(stages, how, 0), product_stages(stages, how, 1);
    for (how = 0; how < 3; how++) met_behind_the_wait(how);
    double_buffer();
    tiles_of_loops();
    reductions_and_scans();
    histograms_and_compaction();
    for (stages = 2; stages <= 4; stages++)
        for (how = 0; how < 8; how++) specialised(stages, how & 1, how >> 1 & 1, how >> 2);
    overlapped(2), overlapped(3), overlapped(4);
    multicast();
    stored_in_bulk();
    arrivals();
    across_blocks(), rows(), dimensions(), named_roles(), ways();
    set_by_one_thread();
    commented();
    return check_end();
}
