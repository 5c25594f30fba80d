/* test_traps.c - mistakes in the kernels that are written most: reductions, scans, tiles, pipelines, rings of
 * mbarriers, products, locks. Each is made twice, wrong and right: of the one the right thing is said, of the
 * other nothing.
 *
 *   cc -std=c99 tests/test_traps.c -o test_traps && ./test_traps */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "trap.h"

static void leaving(void) {
    /* raw exit guard */
    PAIR(AMPERE, "!divergent") {
        if (!bad) BAR;
        ptx_guard(k, one);
        RAW0("exit;");
        if (bad) BAR;
    }

    /* raw exit if */
    PAIR(AMPERE, "!divergent") {
        if (!bad) BAR;
        IF(one);
        RAW0("exit;");
        END;
        if (bad) BAR;
    }

    /* raw ret if */
    PAIR(AMPERE, "!divergent") {
        if (!bad) BAR;
        IF(LT(tid, n));
        RAW0("ret;");
        END;
        if (bad) out(wsum(n));
    }
}

static void reductions(void) {
    /* reduce loop no bar end */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        ST(mine, 0, n);
        BAR;
        s = ptx_var_new(k, U(128));
        ptx_loop(k);
        ptx_while(k, GT(GET(s), U(0)));
        IF(LT(tid, GET(s)));
        x = LD(mine, 0);
        y = LD(AT(mine, GET(s)), 0);
        ST(mine, 0, ADD(x, y));
        END;
        if (!bad) BAR;
        SET(s, SHR(GET(s), 1));
        END;
        if (bad) BAR;
        IF(one);
        out(LD(sh, 0));
        END;
    }

    /* reduce loop no bar first */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        ST(mine, 0, n);
        if (!bad) BAR;
        s = ptx_var_new(k, U(128));
        ptx_loop(k);
        ptx_while(k, GT(GET(s), U(0)));
        IF(LT(tid, GET(s)));
        x = LD(mine, 0);
        y = LD(AT(mine, GET(s)), 0);
        ST(mine, 0, ADD(x, y));
        END;
        BAR;
        SET(s, SHR(GET(s), 1));
        END;
        IF(one);
        out(LD(sh, 0));
        END;
    }

    /* reduce unrolled no bar */
    PAIR(AMPERE, "race") {
        uint32_t o;
        BLOCK(256);
        ST(mine, 0, n);
        BAR;
        for (o = 128; o >= 64; o >>= 1) {
            IF(LT(tid, U(o)));
            x = LD(mine, 0);
            y = LD(mine, 4 * o);
            ST(mine, 0, ADD(x, y));
            END;
            if (!bad) BAR;
        }
        if (bad) BAR;
        IF(one);
        out(LD(sh, 0));
        END;
    }

    /* reduce last warp no sync */
    PAIR(AMPERE, "race") {
        uint32_t o;
        BLOCK(256);
        ST(mine, 0, n);
        BAR;
        IF(LT(tid, U(32)));
        for (o = 16; o; o >>= 1) {
            x = LD(mine, 0);
            y = LD(mine, 4 * o);
            if (!bad) ptx_bar_warp_sync(k, FULL);
            ST(mine, 0, ADD(x, y));
            if (!bad) ptx_bar_warp_sync(k, FULL);
        }
        END;
    }

    /* warp sums no bar */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = wsum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        if (!bad) BAR;
        IF(EQ(warp, zero));
        y = LD(AT(sh, low(lane, 7)), 0);
        out(y);
        END;
    }

    /* warp sums no bar undeclared */
    PAIR(AMPERE, "race") {
        x = wsum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        if (!bad) BAR;
        IF(EQ(warp, zero));
        y = LD(AT(sh, lane), 0);
        out(y);
        END;
    }

    /* total no bar */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = wsum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        BAR;
        IF(EQ(warp, zero));
        y = wsum(LD(AT(sh, low(lane, 7)), 0));
        IF(EQ(lane, zero));
        ST(sh, 128, y);
        END;
        END;
        if (!bad) BAR;
        out(LD(sh, 128));
    }

    /* softmax two reductions */
    PAIR(AMPERE, "race") {
        uint32_t r;
        BLOCK(256);
        for (r = 0; r < 2; r++) {
            x = wsum(n);
            IF(EQ(lane, zero));
            ST(AT(sh, warp), 0, x);
            END;
            BAR;
            y = wsum(LD(AT(sh, low(lane, 7)), 0));
            out(y);
            if (!bad) BAR;
        }
    }

    /* softmax two reductions dyn */
    PAIR(AMPERE, "race") {
        uint32_t r;
        at = ptx_shared_dynamic(k);
        for (r = 0; r < 2; r++) {
            x = wsum(n);
            IF(EQ(lane, zero));
            ST(AT(at, warp), 0, x);
            END;
            BAR;
            y = wsum(LD(AT(at, lane), 0));
            out(y);
            if (!bad) BAR;
        }
    }

    /* bcast loop no bar */
    PAIR(AMPERE, "race") {
        FOR(n);
        IF(one);
        ST(sh, 0, LD(q, 0));
        END;
        BAR;
        out(LD(sh, 0));
        if (!bad) BAR;
        END;
    }
}

static void scans(void) {
    /* scan const no bar */
    PAIR(AMPERE, "race") {
        uint32_t o;
        BLOCK(128);
        ST(mine, 0, n);
        BAR;
        for (o = 1; o < 128; o *= 2) {
            a = ptx_var_new(k, U(0));
            IF(GE(tid, U(o)));
            SET(a, LD(mine, -4 * (int64_t)o));
            END;
            if (!bad) BAR;
            ST(mine, 0, ADD(LD(mine, 0), GET(a)));
            BAR;
        }
        out(LD(mine, 0));
    }

    /* scan rt no bar mid */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(1));
        ST(mine, 0, n);
        BAR;
        ptx_loop(k);
        ptx_while(k, LT(GET(s), U(128)));
        a = ptx_var_new(k, U(0));
        IF(GE(tid, GET(s)));
        SET(a, LD(AT(sh, ptx_sub(k, tid, GET(s))), 0));
        END;
        if (!bad) BAR;
        ST(mine, 0, ADD(LD(mine, 0), GET(a)));
        BAR;
        SET(s, SHL(GET(s), 1));
        END;
        out(LD(mine, 0));
    }

    /* scan rt no bar end */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(1));
        ST(mine, 0, n);
        BAR;
        ptx_loop(k);
        ptx_while(k, LT(GET(s), U(128)));
        a = ptx_var_new(k, U(0));
        IF(GE(tid, GET(s)));
        SET(a, LD(AT(sh, ptx_sub(k, tid, GET(s))), 0));
        END;
        BAR;
        ST(mine, 0, ADD(LD(mine, 0), GET(a)));
        if (!bad) BAR;
        SET(s, SHL(GET(s), 1));
        END;
        out(LD(mine, 0));
    }

    /* scan rt in if no bar */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(1));
        ST(mine, 0, n);
        BAR;
        ptx_loop(k);
        ptx_while(k, LT(GET(s), U(128)));
        if (bad) {
            IF(GE(tid, GET(s)));
            x = LD(AT(sh, ptx_sub(k, tid, GET(s))), 0);
            ST(mine, 0, ADD(LD(mine, 0), x));
            END;
            BAR;
        } else {
            a = ptx_var_new(k, U(0));
            IF(GE(tid, GET(s)));
            SET(a, LD(AT(sh, ptx_sub(k, tid, GET(s))), 0));
            END;
            BAR;
            IF(GE(tid, GET(s)));
            ST(mine, 0, ADD(LD(mine, 0), GET(a)));
            END;
            BAR;
        }
        SET(s, SHL(GET(s), 1));
        END;
        out(LD(mine, 0));
    }

    /* blelloch no bar */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(1));
        ST(mine, 0, n);
        BAR;
        ptx_loop(k);
        ptx_while(k, LT(GET(s), U(128)));
        x = ptx_mul(k, ptx_add(k, SHL(tid, 1), U(2)), GET(s));
        x = ptx_sub(k, x, U(1));
        IF(LT(x, U(128)));
        y = AT(sh, x);
        z = AT(sh, ptx_sub(k, x, GET(s)));
        ST(y, 0, ADD(LD(y, 0), LD(z, 0)));
        END;
        if (!bad) BAR;
        SET(s, SHL(GET(s), 1));
        END;
        BAR;
        out(LD(mine, 0));
    }

    /* transpose no bar */
    PAIR(AMPERE, "race") {
        ptx_require_block(k, 32, 8, 1);
        y = ptx_tid_y(k);
        uint32_t r;
        for (r = 0; r < 32; r += 8) ST(AT(sh, ptx_mad(k, ADD(y, U(r)), U(33), tid)), 0, n);
        if (!bad) BAR;
        for (r = 0; r < 32; r += 8) out(LD(AT(sh, ptx_mad(k, tid, U(33), ADD(y, U(r)))), 0));
    }

    /* transpose loop no end bar */
    PAIR(AMPERE, "race") {
        ptx_require_block(k, 32, 8, 1);
        y = ptx_tid_y(k);
        FOR(n);
        ST(AT(sh, ptx_mad(k, y, U(33), tid)), 0, n);
        BAR;
        out(LD(AT(sh, ptx_mad(k, low(tid, 7), U(33), ADD(ptx_as(ptx_and(k, tid, I(24)), PTX_U32), y))), 0));
        if (!bad) BAR;
        END;
    }
}

static void tiles(void) {
    /* gemm no end bar */
    PAIR(AMPERE, "race race") {
        ptx_require_block(k, 16, 16, 1);
        y = ptx_tid_y(k);
        z = ptx_shared(k, "bs", PTX_U32, 256, 16);
        a = ptx_var_new(k, U(0));
        FOR(n);
        ST(AT(sh, ptx_mad(k, y, U(16), tid)), 0, LD(q, 0));
        ST(AT(z, ptx_mad(k, y, U(16), tid)), 0, LD(q, 4));
        BAR;
        int t;
        for (t = 0; t < 16; t++)
            SET(a, ptx_mad(k, LD(AT(sh, SHL(y, 4)), 4 * t), LD(AT(z, tid), 64 * t), GET(a)));
        if (!bad) BAR;
        END;
        out(GET(a));
    }

    /* gemm no first bar */
    PAIR(AMPERE, "race") {
        ptx_require_block(k, 16, 16, 1);
        y = ptx_tid_y(k);
        z = ptx_shared(k, "bs", PTX_U32, 256, 16);
        a = ptx_var_new(k, U(0));
        FOR(n);
        ST(AT(sh, ptx_mad(k, y, U(16), tid)), 0, LD(q, 0));
        ST(AT(z, ptx_mad(k, y, U(16), tid)), 0, LD(q, 4));
        if (!bad) BAR;
        FOR(U(16));
        i = ptx_mov(k, U(3));
        SET(a, ptx_mad(k, LD(AT(sh, ADD(SHL(y, 4), i)), 0), LD(AT(z, ADD(tid, SHL(i, 4))), 0), GET(a)));
        END;
        BAR;
        END;
        out(GET(a));
    }

    /* dbl buffer var same */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        ST(mine, 0, n);
        FOR(n);
        BAR;
        x = GET(s);
        z = AT(ADD(sh, SHL(x, 12)), ptx_xor(k, tid, I(33)));
        out(LD(z, 0));
        y = ADD(mine, SHL(bad ? x : flip(x), 12));
        ST(y, 0, n);
        SET(s, flip(x));
        END;
    }

    /* dbl buffer no bar */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        FOR(n);
        x = GET(s);
        ST(ADD(mine, SHL(x, 12)), 0, n);
        if (!bad) BAR;
        z = AT(ADD(sh, SHL(x, 12)), ptx_xor(k, tid, I(33)));
        out(LD(z, 0));
        SET(s, flip(x));
        END;
    }

    /* cp3 wait2 */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0), commit(), copy(2048), commit();
        FOR(n);
        wait_for(bad ? 2 : 1);
        BAR;
        x = GET(s);
        out(LD(ADD(mine, SHL(x, 11)), 16));
        y = ADD(x, U(2));
        y = ptx_rem(k, y, U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), p);
        commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        wait_for(0);
    }

    /* cp3 no bar after wait */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0), commit(), copy(2048), commit();
        FOR(n);
        wait_for(1);
        if (!bad) BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), ptx_xor(k, tid, I(33))), 0));
        if (bad) BAR;
        y = ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), p);
        commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        wait_for(0);
    }

    /* cp refill same stage */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0), commit(), copy(2048), commit();
        FOR(n);
        wait_for(1);
        BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), ptx_xor(k, tid, I(33))), 0));
        y = bad ? x : ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), p);
        commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        wait_for(0);
    }

    /* cp prologue no commit */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0);
        if (!bad) commit();
        copy(2048);
        commit();
        FOR(n);
        wait_for(1);
        BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), ptx_xor(k, tid, I(33))), 0));
        y = ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), p);
        commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        wait_for(0);
    }
}

static void arrivals_of_copies(void) {
    /* cp mbar arrive inc */
    PAIR(HOPPER, "order") {
        BLOCK(128);
        make(128, 1);
        copy(0);
        ptx_op1(k, bad ? PTX_CP_ASYNC_MBARRIER_ARRIVE : PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar);
        wait_on(bar, 0);
        out(LD(sh, 0));
    }

    /* cp mbar noinc count1 */
    PAIR(HOPPER, "order") {
        BLOCK(128);
        make(bad ? 1 : 128, 1);
        copy(0);
        ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar);
        wait_on(bar, 0);
        out(LD(sh, 0));
    }

    /* named arrive count */
    PAIR(AMPERE, "order") {
        BLOCK(256);
        IF(LT(tid, U(128)));
        ST(mine, 0, n);
        ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(256));
        ptx_else(k);
        ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(bad ? 128 : 256));
        out(LD(ptx_off(mine, -512), 0));
        END;
    }
}

static void loops(void) {
    /* for step 0 */
    PAIR(AMPERE, "!range") {
        i = ptx_for(k, U(0), n, U(bad ? 0 : 1));
        out(i);
        END;
    }

    /* countdown wrap */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, n);
        ptx_loop(k);
        ptx_while(k, bad ? GE(GET(a), U(0)) : GT(GET(a), U(0)));
        ST(AT(q, GET(a)), 0, n);
        SET(a, ptx_sub(k, GET(a), U(1)));
        END;
    }

    /* spin weak nanosleep */
    PAIR(AMPERE, "idle") {
        ptx_loop(k);
        x = bad ? LD(p, 0) : ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_ACQUIRE | PTX_GPU));
        ptx_while(k, EQ(x, zero));
        ptx_nanosleep(k, I(20));
        END;
        out(LD(q, 0));
    }

    /* spin weak vec */
    PAIR(AMPERE, "idle") {
        ptx_loop(k);
        if (bad)
            ptx_ld_vec(k, PTX_U32, 2, ptx_at(p, 0), v4);
        else
            ptx_ld_vec(k, PTX_U32, 2, ptx_with(ptx_at(p, 0), PTX_VOLATILE), v4);
        ptx_while(k, EQ(v4[0], zero));
        END;
        out(v4[1]);
    }

    /* spin weak shared */
    PAIR(AMPERE, "idle") {
        IF(LT(warp, I(1)));
        IF(one);
        if (bad)
            ST(sh, 0, U(1));
        else
            ptx_st(k, PTX_U32, ptx_with(ptx_at(sh, 0), PTX_VOLATILE), U(1));
        END;
        ptx_else(k);
        ptx_loop(k);
        x = bad ? LD(sh, 0) : ptx_ld(k, PTX_U32, ptx_with(ptx_at(sh, 0), PTX_VOLATILE));
        ptx_while(k, EQ(x, zero));
        END;
        END;
    }

    /* spin counter limit weak */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(0));
        ptx_loop(k);
        x = bad ? LD(p, 0) : ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_VOLATILE));
        ptx_while(k, EQ(x, zero));
        SET(a, ADD(GET(a), U(1)));
        END;
        out(GET(a));
    }

    /* uniform of tid */
    PAIR(AMPERE, "!divergent") {
        x = ptx_uniform(k, bad ? tid : LD(p, 0));
        IF(EQ(x, n));
        BAR;
        END;
    }

    /* warp uniform of lane */
    PAIR(AMPERE, "!divergent") {
        x = ptx_warp_uniform(k, bad ? lane : warp);
        IF(EQ(x, n));
        out(wsum(n));
        END;
    }
}

static void unwritten(void) {
    /* ballot after exit */
    PAIR(AMPERE, "!divergent") {
        IF(GE(tid, n));
        if (bad) ptx_exit(k);
        END;
        out(ptx_as(ptx_ballot(k, EQ(n, zero), FULL), PTX_U32));
    }

    /* bins not cleared */
    PAIR(AMPERE, "unwritten") {
        if (!bad) {
            ST(mine, 0, zero);
            BAR;
        }
        x = low(LD(AT(q, tid), 0), 127);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, x), 0), U(1));
        BAR;
        out(LD(mine, 0));
    }

    /* shared never written */
    PAIR(AMPERE, "unwritten") {
        y = ptx_shared(k, "other", PTX_U32, 256, 4);
        ST(AT(bad ? sh : y, tid), 0, n);
        BAR;
        out(LD(AT(y, ptx_xor(k, tid, I(1))), 0));
    }

    /* shared dyn never written */
    PAIR(AMPERE, "unwritten") {
        y = ptx_shared_dynamic(k);
        if (!bad) ST(AT(y, tid), 0, n);
        BAR;
        out(LD(AT(y, ptx_xor(k, tid, I(1))), 0));
    }

    /* shared sum not cleared */
    PAIR(AMPERE, "unwritten") {
        if (!bad) {
            IF(one);
            ST(sh, 0, zero);
            END;
            BAR;
        }
        ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n);
        BAR;
        out(LD(sh, 0));
    }

    /* persistent no second bar */
    PAIR(AMPERE, "race") {
        FOR(n);
        IF(one);
        ST(sh, 0, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)));
        END;
        BAR;
        x = ptx_uniform(k, LD(sh, 0));
        out(x);
        if (!bad) BAR;
        END;
    }

    /* persistent no first bar */
    PAIR(AMPERE, "race") {
        FOR(n);
        IF(one);
        ST(sh, 0, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)));
        END;
        if (!bad) BAR;
        x = ptx_uniform(k, LD(sh, 0));
        out(x);
        BAR;
        END;
    }
}

static void indices(void) {
    /* index minus 1 shared */
    PAIR(AMPERE, "!address") {
        BLOCK(128);
        ST(mine, 0, n);
        BAR;
        x = ptx_sub(k, tid, U(1));
        if (!bad) {
            IF(GT(tid, zero));
        }
        out(LD(AT(sh, x), 0));
        if (!bad) END;
    }

    /* neighbour plus 1 shared */
    PAIR(AMPERE, "!address") {
        BLOCK(128);
        y = ptx_shared(k, "line", PTX_U32, 128, 4);
        ST(AT(y, tid), 0, n);
        BAR;
        if (!bad) {
            IF(LT(tid, U(127)));
        }
        out(LD(AT(y, tid), 4));
        if (!bad) END;
    }

    /* loop bound shared */
    PAIR(AMPERE, "beyond") {
        y = ptx_shared(k, "line", PTX_U32, 64, 4);
        ST(AT(y, low(tid, 63)), 0, n);
        BAR;
        i = FOR(U(bad ? 65 : 64));
        out(LD(AT(y, i), 0));
        END;
    }

    /* loop bound local */
    PAIR(AMPERE, "beyond") {
        y = ptx_local(k, "own", PTX_U32, 8, 16);
        i = FOR(U(bad ? 9 : 8));
        ST(AT(y, i), 0, n);
        END;
        out(LD(y, 0));
    }

    /* mask shared */
    PAIR(AMPERE, "beyond") {
        y = ptx_shared(k, "line", PTX_U32, 64, 4);
        x = low(LD(AT(q, tid), 0), bad ? 127 : 63);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(y, x), 0), U(1));
        if (bad) {
        }
        BAR;
        ST(AT(y, low(tid, 63)), 0, n);
    }

    /* rem shared */
    PAIR(AMPERE, "beyond") {
        y = ptx_shared(k, "line", PTX_U32, 64, 4);
        x = ptx_rem(k, LD(AT(q, tid), 0), U(bad ? 65 : 64));
        ST(AT(y, x), 0, n);
    }

    /* mask local */
    PAIR(AMPERE, "beyond") {
        y = ptx_local(k, "own", PTX_U32, 8, 16);
        x = low(LD(AT(q, tid), 0), bad ? 15 : 7);
        ST(AT(y, x), 0, n);
        out(LD(y, 0));
    }

    /* stage mask beyond */
    PAIR(AMPERE, "beyond") {
        BLOCK(128);
        i = FOR(n);
        ST(ADD(mine, SHL(low(i, bad ? 7 : 3), 12)), 0, n);
        BAR;
        END;
    }

    /* grid stride loop beyond */
    PAIR(AMPERE, "beyond") {
        BLOCK(128);
        i = ptx_for(k, tid, U(bad ? 5000 : 4096), U(128));
        ST(AT(sh, i), 0, n);
        END;
    }

    /* last tile row beyond */
    PAIR(AMPERE, "!address") {
        BLOCK(256);
        y = ptx_shared(k, "tile", PTX_U32, 32 * 32, 4);
        uint32_t r;
        for (r = 0; r < (bad ? 5 : 4); r++) ST(AT(y, tid), r * 1024, n);
    }

    /* ldmatrix beyond */
    PAIR(AMPERE, "!address") {
        BLOCK(32);
        y = ptx_shared(k, "tile", PTX_B16, bad ? 128 : 256, 16);
        ST(ptx_ptr_add(k, y, tid, 4), 0, n);
        BAR;
        ptx_ldmatrix(k, 4, ptx_ptr_add(k, y, lane, 16), v4);
    }

    /* lane beyond undeclared */
    PAIR(AMPERE, "beyond") {
        y = ptx_shared(k, "w", PTX_U32, bad ? 16 : 32, 4);
        ST(AT(y, lane), 0, n);
    }
}

static void parities(void) {
    /* parity counter */
    PAIR(HOPPER, "order") {
        make(1, 1);
        i = FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, bad ? i : low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* parity var counter */
    PAIR(HOPPER, "order") {
        make(1, 1);
        ph = ptx_var_new(k, U(0));
        FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, GET(ph));
        out(LD(mine, 0));
        BAR;
        SET(ph, bad ? ADD(GET(ph), U(1)) : flip(GET(ph)));
        END;
    }

    /* parity var stage counter */
    PAIR(HOPPER, "order") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        SET(s, ADD(GET(s), U(1)));
        IF(EQ(GET(s), U(4)));
        SET(s, U(0));
        SET(ph, bad ? ADD(GET(ph), U(1)) : flip(GET(ph)));
        END;
        END;
        END;
    }

    /* parity shifted counter */
    PAIR(HOPPER, "order") {
        make(1, 1);
        i = FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, bad ? SHR(i, 1) : low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* parity stage wrong shift */
    PAIR(HOPPER, "order") {
        make(1, 1);
        i = FOR(n);
        x = low(i, 1);
        y = ptx_ptr_add(k, bar, x, 8);
        IF(one);
        fetch(ptx_ptr_add(k, sh, x, 1024), y);
        END;
        wait_val(y, bad ? low(i, 1) : low(SHR(i, 1), 1));
        out(LD(AT(ptx_ptr_add(k, sh, x, 1024), low(tid, 255)), 0));
        BAR;
        END;
    }

    /* parity var never turned */
    PAIR(HOPPER, "order") {
        make(1, 1);
        ph = ptx_var_new(k, U(0));
        FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, GET(ph));
        out(LD(mine, 0));
        BAR;
        if (!bad) SET(ph, flip(GET(ph)));
        END;
    }

    /* empty first parity0 */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), bad ? low(i, 1) : flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* empty first parity0 rings */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, bad ? GET(ph) : flip(GET(ph)));
        fetch(TILE_S, FULL_S);
        turn_stage(4);
        as_consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* empty first parity0 var1 */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        ph = ptx_var_new(k, U(bad ? 0 : 1));
        i = FOR(n);
        wait_val(ptx_off(bar, 8), GET(ph));
        SET(ph, flip(GET(ph)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* full wait flipped */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, bad ? flip(low(i, 1)) : low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* full wait flipped rings */
    PAIR(HOPPER, "order") {
        ring_producer(4, 4);
        FOR(n);
        wait_val(FULL_S, bad ? flip(GET(ph)) : GET(ph));
        out(LD(AT(TILE_S, lane), 0));
        release_stage();
        ring_end(4);
    }

    /* turned each round not wrap */
    PAIR(HOPPER, "order") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        if (bad) {
            SET(s, low(ADD(GET(s), U(1)), 3));
            SET(ph, flip(GET(ph)));
        } else
            turn_stage(4);
        END;
        END;
    }

    /* stage wraps late */
    PAIR(HOPPER, "order") {
        ring_producer(bad ? 3 : 4, 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }
}

static void releases(void) {
    /* release before read */
    PAIR(HOPPER, "race") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        if (bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        out(LD(mine, 0));
        if (!bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* release before read rings */
    PAIR(HOPPER, "race") {
        ring_producer(4, 4);
        FOR(n);
        wait_val(FULL_S, GET(ph));
        at = AT(TILE_S, lane);
        x = LD(at, 0);
        if (!bad) out(LD(at, 128));
        release_stage();
        if (bad) out(LD(at, 128));
        out(x);
        ring_end(4);
    }

    /* release no warp sync */
    PAIR(HOPPER, "race") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        if (!bad) ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, EMPTY_S);
        END;
        ring_end(4);
    }

    /* release never */
    PAIR(HOPPER, "order") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        ptx_bar_warp_sync(k, FULL);
        if (!bad) {
            IF(EQ(lane, zero));
            ptx_mbarrier_arrive(k, EMPTY_S);
            END;
        }
        ring_end(4);
    }

    /* release never plain */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        if (!bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* release by all count 1 */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, bad ? 1 : 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* release by one count 128 */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, bad ? 128 : 4);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
        END;
    }

    /* release count rings */
    PAIR(HOPPER, "order") {
        ring_producer(4, bad ? 1 : 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* full count 2 one arrival loop */
    PAIR(HOPPER, "order") {
        make(bad ? 2 : 1, 1);
        i = FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* expect by all copy by one */
    PAIR(HOPPER, "order") {
        make(1, 1);
        if (bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(one);
        if (!bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, p, I(1024), bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }

    /* expect wrong rings */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, flip(GET(ph)));
        at = FULL_S;
        ptx_mbarrier_arrive_expect(k, at, I(bad ? 2048 : 1024));
        ptx_bulk_load(k, TILE_S, p, I(1024), at);
        turn_stage(4);
        as_consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* expect elements not bytes */
    PAIR(HOPPER, "order") {
        make(1, 1);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(bad ? 256 : 1024));
        ptx_bulk_load(k, sh, p, I(512), bar);
        ptx_bulk_load(k, ptx_off(sh, 512), p, I(512), bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }
}

static void lives(void) {
    /* copy to empty bar */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, p, I(1024), bad ? ptx_off(bar, 8) : bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* producer no wait empty */
    PAIR(HOPPER, "order race") {
        BLOCK(160);
        make(1, 128);
        as_producer();
        i = FOR(n);
        if (!bad) wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        as_consumers();
        i = FOR(n);
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* inval before others waited */
    PAIR(HOPPER, "race") {
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        if (!bad) BAR;
        IF(one);
        ptx_mbarrier_inval(k, bar);
        END;
    }

    /* reinit before others waited */
    PAIR(HOPPER, "race") {
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        if (!bad) BAR;
        IF(one);
        ptx_mbarrier_inval(k, bar);
        ptx_mbarrier_init(k, bar, I(1));
        END;
        BAR;
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }

    /* made twice other inval */
    PAIR(HOPPER, "order") {
        make(128, 128);
        ptx_mbarrier_arrive(k, bar);
        wait_on(bar, 0);
        BAR;
        IF(one);
        ptx_mbarrier_inval(k, bad ? ptx_off(bar, 8) : bar);
        ptx_mbarrier_init(k, bar, I(128));
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_on(bar, 0);
    }

    /* init loop same bar */
    PAIR(HOPPER, "order") {
        IF(one);
        i = FOR(U(4));
        at = bad ? bar : ptx_ptr_add(k, bar, i, 8);
        ptx_mbarrier_init(k, at, I(1));
        END;
        END;
        BAR;
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }

    /* init too few const */
    PAIR(HOPPER, "order") {
        IF(one);
        ptx_mbarrier_init(k, bar, I(1));
        if (!bad) ptx_mbarrier_init(k, ptx_off(bar, 8), I(1));
        END;
        BAR;
        IF(one);
        fetch(sh, bar);
        fetch(ptx_off(sh, 1024), ptx_off(bar, 8));
        END;
        wait_on(bar, 0);
        wait_on(ptx_off(bar, 8), 0);
        out(LD(mine, 0));
    }

    /* bar stride 4 */
    PAIR(HOPPER, "align align align") {
        make(1, 1);
        s = ptx_var_new(k, U(0));
        ph = ptx_var_new(k, U(0));
        FOR(n);
        at = ptx_ptr_add(k, bar, GET(s), bad ? 4 : 8);
        IF(one);
        fetch(TILE_S, at);
        END;
        wait_val(at, GET(ph));
        out(LD(TILE_S, 0));
        BAR;
        turn_stage(2);
        END;
    }

    /* wait before fetch */
    PAIR(HOPPER, "order") {
        make(1, 1);
        IF(bad ? one : one);
        if (bad) wait_on(bar, 0);
        fetch(sh, bar);
        END;
        if (!bad) wait_on(bar, 0);
        BAR;
        out(LD(mine, 0));
    }
}

static void bulk_stores(void) {
    /* proxy fence after bar by others */
    PAIR(HOPPER, "proxy") {
        ST(mine, 0, n);
        if (!bad) proxy_fence();
        BAR;
        if (bad) {
            IF(EQ(warp, I(1)));
            proxy_fence();
            END;
        }
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        bulk_wait(0);
        END;
    }

    /* bulk store in loop no final */
    PAIR(HOPPER, "unwaited") {
        FOR(n);
        IF(one);
        bulk_wait_read(0);
        END;
        BAR;
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        END;
        END;
        if (!bad) {
            IF(one);
            bulk_wait_read(0);
            END;
        }
    }
}

static void products(void) {
    /* wgmma release current */
    PAIR(HOPPER, "race") {
        start_sums();
        make(1, 128);
        i = FOR(n);
        IF(one);
        wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        END;
        wait_val(bar, low(i, 1));
        issue(sh);
        product_wait(bad ? 1 : 0);
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        product_wait(0);
        use_sums();
    }

    /* wgmma no commit */
    PAIR(HOPPER, "!async") {
        start_sums();
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        {
            ptx_val o[7];
            o[0] = o[1] = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
            o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
            ptx_op0(k, PTX_WGMMA_FENCE, 0);
            ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
            if (!bad) ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
        }
        product_wait(0);
        use_sums();
    }

    /* wgmma wait1 read */
    PAIR(HOPPER, "!async") {
        start_sums();
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        issue(sh);
        product_wait(bad ? 1 : 0);
        use_sums();
    }

    /* wgmma never waits tile */
    PAIR(HOPPER, "race") {
        start_sums();
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        if (!bad) wait_on(bar, 0);
        issue(sh);
        product_wait(0);
        use_sums();
        wait_on(bar, 0);
    }

    /* wgmma refetch in flight */
    PAIR(HOPPER, "race") {
        start_sums();
        make(1, 1);
        i = FOR(n);
        IF(one);
        fetch(sh, bar);
        END;
        wait_val(bar, low(i, 1));
        issue(sh);
        if (!bad) product_wait(0);
        BAR;
        END;
        product_wait(0);
        use_sums();
    }
}

static void tensor_memory(void) {
    /* alloc no bar */
    PAIR(BLACKWELL, "race") {
        BLOCK(128);
        ALLOC(128);
        if (!bad) BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* dealloc no bar */
    PAIR(BLACKWELL, "race") {
        BLOCK(128);
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        if (!bad) BAR;
        DEALLOC(at, 128);
    }

    /* alloc by all warps */
    PAIR(BLACKWELL, "race") {
        BLOCK(128);
        if (bad)
            ptx_op2(k, PTX_TCGEN05_ALLOC, 0, sh, I(128));
        else
            ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* dealloc by all warps */
    PAIR(BLACKWELL, "race") {
        BLOCK(128);
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        if (bad)
            ptx_op2(k, PTX_TCGEN05_DEALLOC, 0, at, I(128));
        else
            DEALLOC(at, 128);
    }

    /* alloc after relinquish */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        if (bad) RELINQ;
        ALLOC(128);
        if (!bad) RELINQ;
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* mma commit no wait */
    PAIR(BLACKWELL, "race") {
        BLOCK(128);
        ALLOC(128);
        make(1, 1);
        at = LD(sh, 0);
        IF(one);
        TMMA(at);
        ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        END;
        if (!bad) wait_on(bar, 0);
        TLD(at);
        BAR;
        if (bad) wait_on(bar, 0);
        DEALLOC(at, 128);
    }

    /* mma before commit */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        ALLOC(128);
        make(1, 1);
        at = LD(sh, 0);
        IF(one);
        if (bad) ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        TMMA(at);
        if (!bad) ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        END;
        wait_on(bar, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }
}

static void clusters(void) {
    /* mapa rank plus 1 */
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        y = ADD(ptx_sreg(k, PTX_CLUSTER_CTARANK), U(1));
        if (!bad) y = low(y, 1);
        out(LD(ptx_mapa(k, mine, y), 0));
        meet();
    }

    /* mapa rank plus 1 rem */
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 4, 1, 1);
        ST(mine, 0, n);
        meet();
        y = ADD(ptx_sreg(k, PTX_CLUSTER_CTARANK), U(1));
        y = ptx_rem(k, y, U(bad ? 8 : 4));
        out(LD(ptx_mapa(k, mine, y), 0));
        meet();
    }

    /* mapa rank xor too far */
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        y = XOR(ptx_sreg(k, PTX_CLUSTER_CTARANK), U(bad ? 2 : 1));
        out(LD(ptx_mapa(k, mine, y), 0));
        meet();
    }

    /* mapa rank minus 1 */
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 4, 1, 1);
        ST(mine, 0, n);
        meet();
        y = ptx_sub(k, ptx_sreg(k, PTX_CLUSTER_CTARANK), U(1));
        if (!bad) y = low(y, 3);
        out(LD(ptx_mapa(k, mine, y), 0));
        meet();
    }

    /* mapa rank plus 1 guarded */
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = ADD(w, U(1));
        if (!bad) IF(LT(w, U(1)));
        out(LD(ptx_mapa(k, mine, y), 0));
        if (!bad) END;
        meet();
    }

    /* mapa loop beyond */
    PAIR(HOPPER, "beyond") {
        ptx_require_cluster(k, 4, 1, 1);
        ST(mine, 0, n);
        meet();
        i = FOR(U(bad ? 8 : 4));
        out(LD(ptx_mapa(k, mine, i), 0));
        END;
        meet();
    }

    /* cluster exit no meet write */
    PAIR(HOPPER, "order") {
        ptx_require_cluster(k, 2, 1, 1);
        meet();
        x = ptx_mapa(k, mine, flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)));
        ST(x, 0, n);
        if (!bad) meet();
    }

    /* cluster loop one meet */
    PAIR(HOPPER, "race") {
        ptx_require_cluster(k, 2, 1, 1);
        FOR(n);
        ST(mine, 0, n);
        meet();
        out(LD(ptx_mapa(k, mine, flip(ptx_sreg(k, PTX_CLUSTER_CTARANK))), 0));
        if (!bad) meet();
        END;
        meet();
    }

    /* multicast no meet */
    PAIR(HOPPER, "order") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        if (!bad) meet();
        v4[0] = sh, v4[1] = p, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        END;
        IF(w);
        IF(one);
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        meet();
    }
}

static void blocks(void) {
    /* grid barrier no fence */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        ptx_loop(k);
        x = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* grid barrier atom no fence */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        ptx_loop(k);
        x = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* grid barrier no bar before */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        if (!bad) BAR;
        IF(one);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        ptx_loop(k);
        x = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* grid barrier no bar after */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        BAR;
        IF(one);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        ptx_loop(k);
        x = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        if (!bad) BAR;
        out(LD(AT(q, tid), 0));
    }

    /* ticket by all */
    PAIR(AMPERE, "order") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        BAR;
        if (!bad) IF(one);
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        IF(EQ(x, ptx_sub(k, ptx_sreg(k, PTX_NCTAID_X), U(1))));
        out(n);
        END;
        if (!bad) END;
    }

    /* fence cta for gpu */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        BAR;
        IF(one);
        FENCE(PTX_ACQ_REL | (bad ? PTX_CTA : PTX_GPU));
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        ST(sh, 0, x);
        END;
        BAR;
        IF(EQ(ptx_uniform(k, LD(sh, 0)), n));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        out(LD(AT(q, tid), 0));
        END;
    }

    /* fence after atom */
    PAIR(AMPERE, "race") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(sh, 0, x);
        END;
        BAR;
        IF(EQ(ptx_uniform(k, LD(sh, 0)), n));
        out(LD(AT(q, tid), 0));
        END;
    }

    /* lock no acquire */
    PAIR(AMPERE, "race") {
        IF(one);
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 0), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(q, 0, ADD(LD(q, 0), U(1)));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_EXCH, ptx_at(p, 0), U(0));
        END;
    }

    /* lock no release fence */
    PAIR(AMPERE, "race") {
        IF(one);
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 0), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(q, 0, ADD(LD(q, 0), U(1)));
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_EXCH, ptx_at(p, 0), U(0));
        END;
    }
}

static void others(void) {
    /* nc of red */
    PAIR(AMPERE, "race") {
        x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(AT(q, tid), 0), bad ? PTX_NC : 0));
        ptx_red(k, PTX_ATOM_ADD, ptx_at(q, 0), x);
    }

    /* nc of bulk store */
    PAIR(HOPPER, "race") {
        x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(AT(q, tid), 0), bad ? PTX_NC : 0));
        ST(mine, 0, x);
        proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        bulk_wait(0);
        END;
    }

    /* griddep store before wait */
    PAIR(HOPPER, "order") {
        if (bad) out(n);
        ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        if (!bad) out(n);
    }

    /* griddep wait by one */
    PAIR(HOPPER, "order") {
        if (bad) IF(one);
        ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        if (bad) END;
        out(LD(q, 0));
    }

    /* griddep wait in loop end */
    PAIR(HOPPER, "order") {
        x = LD(AT(q, tid), 0);
        if (!bad) ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        out(ADD(x, LD(AT(p, tid), 0)));
        if (bad) ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
    }
}

int main(void) {
    leaving();
    reductions();
    scans();
    tiles();
    arrivals_of_copies();
    loops();
    unwritten();
    indices();
    parities();
    releases();
    lives();
    bulk_stores();
    products();
    tensor_memory();
    clusters();
    blocks();
    others();
    return check_end();
}
