/* shared_memory.c - shared memory: races, block barriers, words that nobody has written, bounds.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static void reductions(void) {
    /* In the loop of a tree reduction, no barrier follows the store. */
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

    /* No barrier lies between the first stores and the reduction. */
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

    /* The steps of an unrolled reduction have no barrier between them. */
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

    /* The last warp of a reduction relies on lockstep: no bar.warp.sync. */
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

    /* Sums of warps are read without a barrier behind the stores. */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = warp_sum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        if (!bad) BAR;
        IF(EQ(warp, zero));
        y = LD(AT(sh, low(lane, 7)), 0);
        out(y);
        END;
    }

    /* The total that one thread stores is read without a barrier. */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = warp_sum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        BAR;
        IF(EQ(warp, zero));
        y = warp_sum(LD(AT(sh, low(lane, 7)), 0));
        IF(EQ(lane, zero));
        ST(sh, 128, y);
        END;
        END;
        if (!bad) BAR;
        out(LD(sh, 128));
    }

    /* The second reduction writes the sums that others still read. */
    PAIR(AMPERE, "race") {
        uint32_t r;
        BLOCK(256);
        for (r = 0; r < 2; r++) {
            x = warp_sum(n);
            IF(EQ(lane, zero));
            ST(AT(sh, warp), 0, x);
            END;
            BAR;
            y = warp_sum(LD(AT(sh, low(lane, 7)), 0));
            out(y);
            if (!bad) BAR;
        }
    }

    /* The same in dynamic shared memory. */
    PAIR(AMPERE, "race") {
        uint32_t r;
        at = DYNAMIC(64);
        for (r = 0; r < 2; r++) {
            x = warp_sum(n);
            IF(EQ(lane, zero));
            ST(AT(at, warp), 0, x);
            END;
            BAR;
            y = warp_sum(LD(AT(at, low(lane, 3)), 0));
            out(y);
            if (!bad) BAR;
        }
    }

    /* In a loop, the value that is broadcast is overwritten while others still read it. */
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

    /* The number of the next tile is overwritten while others still read it. */
    PAIR(AMPERE, "race") {
        FOR(n);
        IF(one);
        ST(sh, 0, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1)));
        END;
        BAR;
        x = ptx_uniform(k, LD(sh, 0));
        out(x);
        if (!bad) BAR;
        END;
    }

    /* The number of the tile is read without a barrier behind its store. */
    PAIR(AMPERE, "race") {
        FOR(n);
        IF(one);
        ST(sh, 0, ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1)));
        END;
        if (!bad) BAR;
        x = ptx_uniform(k, LD(sh, 0));
        out(x);
        BAR;
        END;
    }

    /* bar.warp.sync stands where the sums of several warps need a block barrier. */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = warp_sum(n);
        IF(EQ(lane, zero));
        ST(AT(sh, warp), 0, x);
        END;
        if (bad)
            ptx_bar_warp_sync(k, FULL);
        else
            BAR;
        IF(LT(tid, U(8)));
        out(LD(mine, 0));
        END;
    }
}

static void scans(void) {
    /* A scan writes its array while others still read the old sums. */
    PAIR(AMPERE, "race") {
        uint32_t o;
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

    /* The same in a loop: no barrier between the loads and the stores. */
    PAIR(AMPERE, "race") {
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

    /* The same in a loop: no barrier between the stores and the next loads. */
    PAIR(AMPERE, "race") {
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

    /* The same with load and store in one branch. */
    PAIR(AMPERE, "race") {
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

    /* The up-sweep of a scan has no barrier between its steps. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(1));
        ST(mine, 0, n);
        BAR;
        ptx_loop(k);
        ptx_while(k, LT(GET(s), U(128)));
        x = ptx_mul(k, ADD(SHL(tid, 1), U(2)), GET(s));
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

    /* A tile is stored in rows and loaded in columns, with no barrier between. */
    PAIR(AMPERE, "race") {
        BLOCK3(32, 8, 1);
        y = ptx_tid_y(k);
        uint32_t r;
        for (r = 0; r < 32; r += 8) ST(AT(sh, ptx_mad(k, ADD(y, U(r)), U(33), tid)), 0, n);
        if (!bad) BAR;
        for (r = 0; r < 32; r += 8) out(LD(AT(sh, ptx_mad(k, tid, U(33), ADD(y, U(r)))), 0));
    }

    /* In a loop, the next tile is stored while others still load columns. */
    PAIR(AMPERE, "race") {
        BLOCK3(32, 8, 1);
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
    /* A product of tiles has no barrier at the end of its loop. */
    PAIR(AMPERE, "race") {
        BLOCK3(16, 16, 1);
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

    /* A product of tiles has no barrier between the stores and the loads. */
    PAIR(AMPERE, "race") {
        BLOCK3(16, 16, 1);
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

    /* A double buffer stores into the half that is being read. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        ST(mine, 0, n), ST(mine, 4096, n);
        FOR(n);
        BAR;
        x = GET(s);
        z = AT(ADD(sh, SHL(x, 12)), XOR(tid, U(33)));
        out(LD(z, 0));
        y = ADD(mine, SHL(bad ? x : flip(x), 12));
        ST(y, 0, n);
        SET(s, flip(x));
        END;
    }

    /* A double buffer has no barrier between store and load. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        FOR(n);
        x = GET(s);
        ST(ADD(mine, SHL(x, 12)), 0, n);
        if (!bad) BAR;
        z = AT(ADD(sh, SHL(x, 12)), XOR(tid, U(33)));
        out(LD(z, 0));
        SET(s, flip(x));
        END;
    }

    /* The halves of a double buffer overlap. */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        s = ptx_var_new(k, U(0));
        FOR(n);
        x = GET(s);
        y = SHL(x, bad ? 9 : 10);
        ST(ADD(mine, y), 0, n);
        BAR;
        out(LD(ADD(AT(sh, XOR(tid, U(33))), y), 0));
        SET(s, flip(x));
        END;
    }

    /* A table that one thread fills is read without a barrier. */
    PAIR(AMPERE, "race") {
        IF(one);
        i = FOR(U(64));
        ST(AT(sh, i), 0, i);
        END;
        END;
        if (!bad) BAR;
        out(LD(AT(sh, low(tid, 63)), 0));
    }

    /* Counters are raised by a load and a store instead of an atomic. */
    PAIR(AMPERE, "race") {
        ST(mine, 0, zero);
        BAR;
        x = low(LD(AT(q, tid), 0), 7);
        x = AT(sh, x);
        if (bad)
            ST(x, 0, ADD(LD(x, 0), I(1)));
        else
            ptx_red(k, PTX_ATOM_ADD, ptx_at(x, 0), U(1));
        BAR;
        out(LD(mine, 0));
    }

    /* Counters are raised while others still clear them. */
    PAIR(AMPERE, "race") {
        ST(mine, 0, zero);
        if (!bad) BAR;
        x = low(LD(AT(q, tid), 0), 7);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, x), 0), U(1));
        BAR;
        out(LD(mine, 0));
    }

    /* Every warp stores its own values to the same words. */
    PAIR(AMPERE, "race") {
        ST(AT(sh, bad ? lane : tid), 0, tid);
        BAR;
        out(LD(sh, 0));
    }

    /* Every warp stores what it has loaded from different places to the same words. */
    PAIR(AMPERE, "race") {
        x = LD(AT(q, bad ? tid : lane), 0);
        ST(AT(sh, lane), 0, x);
        BAR;
        out(LD(sh, 0));
    }

    /* The slices of two warps overlap. */
    PAIR(AMPERE, "race") {
        x = ptx_mul(k, warp, U(bad ? 16 : 32));
        x = AT(sh, ADD(x, lane));
        ST(x, 0, tid);
        out(n);
    }

    /* bar.warp.sync stands where a block barrier is needed. */
    PAIR(AMPERE, "race") {
        ST(mine, 0, n);
        if (bad)
            ptx_bar_warp_sync(k, FULL);
        else
            BAR;
        out(LD(AT(sh, XOR(tid, U(32))), 0));
    }

    /* A sum by atomics is read without a barrier behind them. */
    PAIR(AMPERE, "race") {
        IF(one);
        ST(sh, 0, zero);
        END;
        BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n);
        if (!bad) BAR;
        out(LD(sh, 0));
    }

    /* A list whose places an atomic counter hands out is read without a barrier. */
    PAIR(AMPERE, "race") {
        y = ptx_shared(k, "count", PTX_U32, 1, 4);
        IF(one);
        ST(y, 0, zero);
        END;
        BAR;
        x = ptx_as(ptx_atom(k, PTX_ATOM_ADD, ptx_at(y, 0), U(1)), PTX_U32);
        ST(AT(sh, low(x, 127)), 0, tid);
        if (!bad) BAR;
        out(LD(mine, 0));
    }

    /* Each thread stores its own word and its neighbour's. */
    PAIR(AMPERE, "race") {
        ST(mine, 0, tid);
        if (!bad) BAR;
        ST(mine, 4, n);
    }

    /* A sum is cleared while others already add to it. */
    PAIR(AMPERE, "race") {
        IF(one);
        ST(sh, 0, zero);
        END;
        if (!bad) BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n);
        BAR;
        out(LD(sh, 0));
    }
}

static void barriers_with_numbers(void) {
    /* bar.arrive and bar.sync of one barrier give different counts. */
    PAIR(AMPERE, "barrier-count") {
        BLOCK(256);
        IF(LT(tid, U(128)));
        ST(mine, 0, n);
        ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(256));
        ELSE;
        NAMED_BAR(I(1), bad ? 128 : 256);
        out(LD(ptx_off(mine, -512), 0));
        END;
    }

    /* A barrier for 64 threads, reached by 256, opens four times. */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        ST(mine, 0, n);
        NAMED_BAR(I(1), bad ? 64 : 256);
        out(LD(AT(sh, XOR(tid, U(128))), 0));
    }

    /* Both halves of the block use one barrier: its counts mix their warps. */
    PAIR(AMPERE, "race") {
        launch.orders = 8;
        ST(mine, 0, n);
        NAMED_BAR(bad ? U(1) : ADD(SHR(tid, 6), U(1)), 64);
        out(LD(AT(sh, XOR(tid, U(32))), 0));
    }

    /* Two groups wait at two barriers in opposite order. */
    PAIR(AMPERE, "deadlock") {
        BLOCK(256);
        IF(LT(tid, U(128)));
        NAMED_BAR(I(1), 256);
        NAMED_BAR(I(2), 256);
        ELSE;
        NAMED_BAR(I(bad ? 2 : 1), 256);
        NAMED_BAR(I(bad ? 1 : 2), 256);
        END;
    }

    /* Warp 0 uses barrier 0 for itself, while others wait there for the whole block. */
    PAIR(AMPERE, "barrier-count") {
        launch.orders = 8;
        ST(mine, 0, n);
        x = bad ? warp : ADD(warp, U(1));
        NAMED_BAR(x, 32);
        out(LD(AT(sh, XOR(tid, U(1))), 0));
        BAR;
    }

    /* Half of the block uses barrier 0 for itself, while others wait there for the whole block. */
    PAIR(AMPERE, "barrier-count") {
        launch.orders = 8;
        BLOCK(256);
        IF(LT(tid, U(128)));
        NAMED_BAR(I(bad ? 0 : 1), 128);
        END;
        BAR;
    }

    /* Two warps expect 64 threads at a barrier, the other two 96. */
    PAIR(AMPERE, "deadlock") {
        IF(LT(warp, U(2)));
        NAMED_BAR(I(1), 64);
        ELSE;
        NAMED_BAR(I(bad ? 1 : 2), bad ? 96 : 64);
        END;
    }

    /* Two warps come to a barrier that expects four. */
    PAIR(AMPERE, "deadlock") {
        IF(LT(warp, U(2)));
        NAMED_BAR(I(1), bad ? 128 : 64);
        END;
    }
}

static void unwritten_cells(void) {
    /* The counters of a histogram are not cleared. */
    PAIR(AMPERE, "uninitialised-read") {
        if (!bad) {
            ST(mine, 0, zero);
            BAR;
        }
        x = low(LD(AT(q, tid), 0), 127);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, x), 0), U(1));
        BAR;
        out(LD(mine, 0));
    }

    /* The array that is read is not the one that was stored. */
    PAIR(AMPERE, "uninitialised-read") {
        y = ptx_shared(k, "other", PTX_U32, 256, 4);
        ST(AT(bad ? sh : y, tid), 0, n);
        BAR;
        out(LD(AT(y, XOR(tid, U(1))), 0));
    }

    /* Dynamic shared memory is read and was never stored. */
    PAIR(AMPERE, "uninitialised-read") {
        y = DYNAMIC(512);
        if (!bad) ST(AT(y, tid), 0, n);
        BAR;
        out(LD(AT(y, XOR(tid, U(1))), 0));
    }

    /* A sum by atomics is not cleared. */
    PAIR(AMPERE, "uninitialised-read") {
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

    /* The border of a tile is not stored. */
    PAIR(AMPERE, "uninitialised-read") {
        y = ptx_shared(k, "rim", PTX_U32, 130, 4);
        ST(AT(y, tid), 4, n);
        if (!bad) {
            IF(one);
            ST(y, 0, zero);
            ST(y, 129 * 4, zero);
            END;
        }
        BAR;
        out(ADD(LD(AT(y, tid), 0), LD(AT(y, tid), 8)));
    }

    /* Half of the threads store half of what all read. */
    PAIR(AMPERE, "uninitialised-read") {
        y = ptx_shared(k, "half", PTX_U32, 128, 4);
        IF(LT(tid, U(64)));
        ST(AT(y, tid), 0, n);
        if (!bad) ST(AT(y, tid), 256, n);
        END;
        BAR;
        out(LD(AT(y, XOR(tid, U(64))), 0));
    }

    /* More sums are read than there are warps to store them. */
    PAIR(AMPERE, "uninitialised-read") {
        y = ptx_shared(k, "sums", PTX_U32, 8, 4);
        x = warp_sum(n);
        IF(EQ(lane, zero));
        ST(AT(y, warp), 0, x);
        END;
        BAR;
        IF(LT(tid, U(bad ? 8 : 4)));
        out(LD(AT(y, tid), 0));
        END;
    }

    /* A sum in shared memory has no first value. */
    PAIR(AMPERE, "uninitialised-read") {
        if (!bad) ST(mine, 0, zero);
        FOR(n);
        ST(mine, 0, ADD(LD(mine, 0), n));
        END;
        BAR;
        out(LD(mine, 0));
    }

    /* A sum in local memory has no first value. */
    PAIR(AMPERE, "uninitialised-read") {
        y = ptx_local(k, "own", PTX_U32, 8, 16);
        i = FOR(U(8));
        if (!bad) ST(AT(y, i), 0, zero);
        END;
        i = FOR(n);
        x = AT(y, low(i, 7));
        ST(x, 0, ADD(LD(x, 0), n));
        END;
        out(LD(y, 0));
    }

    /* A word of local memory is read that was never stored. */
    PAIR(AMPERE, "uninitialised-read") {
        x = ptx_local(k, "own", PTX_U32, 8, 4);
        if (!bad) ST(AT(x, low(tid, 7)), 0, n), ST(x, 4, n);
        out(ADD(LD(x, 4), n));
    }

    /* The store of a padded tile uses the width without padding. */
    PAIR(AMPERE, "uninitialised-read") {
        BLOCK3(32, 32, 1);
        z = ptx_shared(k, "tile", PTX_U32, 32 * 33, 4);
        y = ptx_tid_y(k);
        ST(AT(z, ptx_mad(k, y, U(bad ? 32 : 33), tid)), 0, n);
        BAR;
        out(LD(AT(z, ptx_mad(k, tid, U(33), y)), 0));
    }

    /* One side of a stencil's border is not stored. */
    PAIR(AMPERE, "uninitialised-read") {
        BLOCK(64);
        z = ptx_shared(k, "line", PTX_U32, 66, 4);
        ST(AT(z, tid), 4, n);
        IF(one);
        ST(z, 0, n);
        if (!bad) ST(z, 65 * 4, n);
        END;
        BAR;
        out(ADD(LD(AT(z, tid), 0), LD(AT(z, tid), 8)));
    }
}

static void bounds(void) {
    /* A loop reads one word beyond its array. */
    PAIR(AMPERE, "out-of-bounds") {
        y = last_words;
        ST(AT(y, low(tid, 63)), 0, n);
        BAR;
        i = FOR(U(bad ? 65 : 64));
        out(LD(AT(y, i), 0));
        END;
    }

    /* A loop writes one word beyond a local array. */
    PAIR(AMPERE, "out-of-bounds") {
        y = ptx_local(k, "own", PTX_U32, 8, 16);
        i = FOR(U(bad ? 9 : 8));
        ST(AT(y, i), 0, n);
        END;
        out(LD(y, 0));
    }

    /* A mask is wider than its array. */
    PAIR(AMPERE, "out-of-bounds") {
        y = last_words;
        x = low(LD(AT(q, tid), 0), bad ? 127 : 63);
        ST(AT(y, x), 0, n);
    }

    /* A remainder reaches one word beyond its array. */
    PAIR(AMPERE, "out-of-bounds") {
        y = last_words;
        x = ptx_rem(k, LD(AT(q, tid), 0), U(bad ? 65 : 64));
        ST(AT(y, x), 0, n);
    }

    /* A mask is wider than a local array. */
    PAIR(AMPERE, "out-of-bounds") {
        y = ptx_local(k, "own", PTX_U32, 8, 16);
        x = low(LD(AT(q, tid), 0), bad ? 15 : 7);
        ST(AT(y, x), 0, n);
        out(LD(y, 0));
    }

    /* The number of a stage runs beyond the last stage. */
    PAIR(AMPERE, "out-of-bounds") {
        launch.n = 8;
        i = FOR(n);
        ST(ADD(mine, SHL(low(i, bad ? 7 : 3), 12)), 0, n);
        BAR;
        END;
    }

    /* The bound of a strided loop exceeds the array. */
    PAIR(AMPERE, "out-of-bounds") {
        i = ptx_for(k, tid, U(bad ? 5000 : 4096), U(128));
        ST(AT(sh, i), 0, n);
        END;
    }

    /* Each lane has a word of an array that is too short. */
    PAIR(AMPERE, "out-of-bounds") { ST(AT(last_words, ADD(lane, U(bad ? 48 : 32))), 0, n); }

    /* Rows of 33 words are read by vectors of four. */
    PAIR(AMPERE, "misaligned") {
        ST(mine, 0, n), ST(mine, 512, n);
        BAR;
        x = ptx_mad(k, warp, U(bad ? 33 : 36), ptx_shl(k, lane, I(2)));
        ptx_ld_vec(k, PTX_F32, 4, ptx_at(AT(sh, x), 0), v4);
    }

    /* The address of a vector of four words moves by one word. */
    PAIR(AMPERE, "misaligned") {
        ST(mine, 0, n), ST(mine, 512, n);
        BAR;
        i = ptx_for(k, U(0), U(16), U(bad ? 1 : 4));
        ptx_ld_vec(k, PTX_F32, 4, ptx_at(AT(sh, i), 0), v4);
        END;
    }

    /* The left neighbour of the first word. */
    PAIR(AMPERE, "uninitialised-read") {
        ST(mine, 0, n);
        BAR;
        if (!bad) IF(GT(tid, zero));
        out(LD(AT(sh, ptx_sub(k, tid, U(1))), 0));
        if (!bad) END;
    }

    /* The right neighbour of the last word. */
    PAIR(AMPERE, "out-of-bounds") {
        y = AT(last_words, ptx_sub(k, tid, U(64)));
        ST(y, 0, n);
        BAR;
        if (!bad) IF(LT(tid, U(127)));
        out(LD(y, 4));
        if (!bad) END;
    }

    /* A tile is filled by one row too many. */
    PAIR(AMPERE, "out-of-bounds") {
        y = AT(sh, ADD(tid, U(bad ? 4096 - 3 * 128 : 4096 - 4 * 128)));
        ST(y, 0, n), ST(y, 512, n), ST(y, 1024, n), ST(y, 1536, n);
    }

    /* ldmatrix reads beyond its tile. */
    PAIR(AMPERE, "out-of-bounds") {
        BLOCK(32);
        y = ptx_off(sh, 16384 - 512);
        ST(ptx_ptr_add(k, y, tid, 16), 0, n), ST(ptx_ptr_add(k, y, tid, 16), 4, n);
        ST(ptx_ptr_add(k, y, tid, 16), 8, n), ST(ptx_ptr_add(k, y, tid, 16), 12, n);
        BAR;
        ptx_ldmatrix(k, 4, ptx_off(ptx_ptr_add(k, y, lane, 16), bad ? 16 : 0), v4);
    }

    /* More threads than words store one each. */
    PAIR(AMPERE, "out-of-bounds") {
        BLOCK(1024);
        y = AT(ptx_off(sh, 16384 - 2048), tid);
        if (!bad) IF(LT(tid, U(512)));
        ST(y, 0, n);
        if (!bad) END;
    }
}

static const ptx_val *four(void) {
    v4[0] = v4[1] = v4[2] = v4[3] = n;
    return v4;
}
/* Addresses that are misaligned by what is added to the place of a thread. */
static void alignment(void) {
    PAIR(AMPERE, "misaligned") ST(mine, bad ? 2 : 0, n);
    PAIR(AMPERE, "misaligned") {
        ptx_cp_async_16(k, bad ? ptx_ptr_add(k, ptx_off(sh, 8), tid, 16) : wide, q);
        ptx_cp_async_wait_all(k);
    }
    PAIR(AMPERE, "misaligned") ptx_st_vec(k, PTX_U32, 4, ptx_at(wide, bad ? 8 : 0), four());
    PAIR(AMPERE, "misaligned") {
        x = ptx_mad(k, tid, U(8), U(bad ? 2 : 4));
        ptx_st_vec(k, PTX_U32, 4, ptx_at(AT(sh, x), 0), four());
    }
    PAIR(AMPERE, "misaligned") {
        x = ptx_as(ptx_and(k, SHL(tid, 4), ptx_b32(0xfffffff0u)), PTX_U32);
        ptx_st_vec(k, PTX_U32, 4, ptx_at(ADD(sh, x), bad ? 4 : 16), four());
    }
    PAIR(AMPERE, "misaligned") {
        ST(mine, 0, n), BAR;
        ptx_ldmatrix(k, 1, AT(sh, bad ? low(lane, 7) : SHL(low(lane, 7), 2)), &x);
        out(ptx_as(x, PTX_U32));
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    reductions();
    scans();
    tiles();
    barriers_with_numbers();
    unwritten_cells();
    bounds();
    alignment();
    return check_end();
}
