/* async_copies.c - cp.async and its groups; bulk stores and proxies.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static void waits_for_groups(void) {
    /* A wait leaves two groups in flight; the loop needs one more of them. */
    PAIR(AMPERE, "async-read") {
        s = ptx_var_new(k, U(0));
        copy(0), copy_commit(), copy(2048), copy_commit();
        FOR(n);
        copy_wait(bad ? 2 : 1);
        BAR;
        x = GET(s);
        out(LD(ADD(mine, SHL(x, 11)), 16));
        y = ADD(x, U(2));
        y = ptx_rem(k, y, U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), q);
        copy_commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        copy_wait(0);
    }

    /* No barrier between the wait and the reads of what other threads have copied. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        copy(0), copy_commit(), copy(2048), copy_commit();
        FOR(n);
        copy_wait(1);
        if (!bad) BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), XOR(tid, U(33))), 0));
        if (bad) BAR;
        y = ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), q);
        copy_commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        copy_wait(0);
    }

    /* The stage that is being read is filled again. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        copy(0), copy_commit(), copy(2048), copy_commit();
        FOR(n);
        copy_wait(1);
        BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), XOR(tid, U(33))), 0));
        y = bad ? x : ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), q);
        copy_commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        copy_wait(0);
    }

    /* The first group is not committed, so the wait counts one too few. */
    PAIR(AMPERE, "async-read") {
        s = ptx_var_new(k, U(0));
        copy(0);
        if (!bad) copy_commit();
        copy(2048);
        copy_commit();
        FOR(n);
        copy_wait(1);
        BAR;
        x = GET(s);
        out(LD(AT(ADD(sh, SHL(x, 11)), XOR(tid, U(33))), 0));
        y = ptx_rem(k, ADD(x, U(2)), U(3));
        ptx_cp_async_16(k, ADD(wide, SHL(y, 11)), q);
        copy_commit();
        SET(s, ptx_rem(k, ADD(x, U(1)), U(3)));
        END;
        copy_wait(0);
    }

    /* The two stages overlap. */
    PAIR(AMPERE, "race") {
        s = ptx_var_new(k, U(0));
        copy(0), copy_commit(), copy(bad ? 1024 : 2048), copy_commit();
        FOR(n);
        copy_wait(1);
        BAR;
        x = GET(s);
        out(LD(ADD(mine, SHL(x, bad ? 10 : 11)), 16));
        BAR;
        ptx_cp_async_16(k, ADD(wide, SHL(x, bad ? 10 : 11)), q);
        copy_commit();
        SET(s, flip(x));
        END;
        copy_wait(0);
    }

    /* With one group ahead, a wait for all but one leaves the needed group in flight. */
    PAIR(AMPERE, "async-read") {
        s = ptx_var_new(k, U(0));
        copy(0), copy_commit();
        FOR(n);
        x = GET(s);
        if (!bad) {
            ptx_cp_async_16(k, ADD(wide, SHL(flip(x), 11)), q);
            copy_commit();
        }
        copy_wait(1);
        BAR;
        out(LD(ADD(mine, SHL(x, 11)), 16));
        BAR;
        if (bad) {
            ptx_cp_async_16(k, ADD(wide, SHL(flip(x), 11)), q);
            copy_commit();
        }
        SET(s, flip(x));
        END;
        copy_wait(0);
    }

    /* A wait leaves three groups in flight; the first of three is needed. */
    PAIR(AMPERE, "async-read") {
        copy(0), copy_commit(), copy(2048), copy_commit(), copy(4096), copy_commit();
        copy_wait(bad ? 3 : 2);
        BAR;
        out(LD(mine, 16));
        copy_wait(0);
    }

    /* A round that commits no group shifts the count of the wait. */
    PAIR(AMPERE, "async-read") {
        copy(0), copy_commit();
        i = FOR(n);
        y = ADD(i, I(1));
        at = ADD(wide, ptx_shl(k, low(y, 1), I(12)));
        IF(LT(y, n));
        ptx_cp_async_16(k, at, q);
        if (bad) copy_commit();
        END;
        if (!bad) copy_commit();
        copy_wait(1);
        BAR;
        out(LD(ADD(mine, ptx_shl(k, low(i, 1), I(12))), 16));
        BAR;
        END;
        copy_wait(0);
    }

    /* The last copy is not waited for. */
    PAIR(AMPERE, "async-read") {
        copy(0), copy_commit(), copy_wait(0);
        BAR;
        copy(0), copy_commit();
        if (!bad) copy_wait(0);
        BAR;
        out(LD(mine, 0));
        copy_wait(0);
    }

    /* A wait for all but one group leaves the last one in flight. */
    PAIR(AMPERE, "async-read") {
        copy(0), copy_commit(), copy(4096), copy_commit();
        copy_wait(1);
        BAR;
        out(LD(mine, bad ? 4096 : 0));
        copy_wait(0);
    }

    /* The barrier stands in front of the wait. */
    PAIR(AMPERE, "race") {
        copy(0), copy_commit();
        if (bad) BAR;
        copy_wait(0);
        if (!bad) BAR;
        out(LD(mine, 0));
    }

    /* A store goes where a copy is on its way. */
    PAIR(AMPERE, "race") {
        copy(0), copy_commit();
        if (!bad) copy_wait(0);
        ST(wide, 4, n);
        copy_wait(0);
    }

    /* The next round copies over what other threads still read. */
    PAIR(AMPERE, "race") {
        FOR(n);
        copy(0), copy_commit(), copy_wait(0);
        BAR;
        out(LD(mine, 0));
        if (!bad) BAR;
        END;
    }

    /* A copy of 16 bytes is told to read 17. */
    PAIR(AMPERE, "async-size") {
        ptx_cp_async_16_zfill(k, wide, q, ptx_mov(k, U(bad ? 17 : 16)));
        copy_commit(), copy_wait(0);
    }
}

static void waits_by_mbarrier(void) {
    /* cp.async.mbarrier.arrive without .noinc adds the arrival that it makes. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(128, 1);
        copy(0);
        ptx_op1(k, bad ? PTX_CP_ASYNC_MBARRIER_ARRIVE : PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar);
        wait_parity(bar, U(0));
        out(LD(sh, 0));
    }

    /* The mbarrier expects one arrival, and every thread's copies make one. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(bad ? 1 : 128, 1);
        copy(0);
        ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar);
        wait_parity(bar, U(0));
        out(LD(sh, 0));
    }
}

static void bulk_stores(void) {
    /* The proxy fence is executed behind the barrier, by a thread that stored nothing of it. */
    PAIR(HOPPER, "missing-proxy-fence") {
        ST(mine, 0, n);
        if (!bad) proxy_fence();
        BAR;
        if (bad) {
            IF(EQ(warp, I(1)));
            proxy_fence();
            END;
        }
        IF(one);
        bulk_store(512);
        bulk_wait(0);
        END;
    }

    /* The kernel ends while a bulk store still reads shared memory. */
    PAIR(HOPPER, "async-exit") {
        i = FOR(n);
        IF(one);
        bulk_wait_read(0);
        END;
        BAR;
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, ptx_ptr_add(k, p, i, 512), sh, I(512));
        bulk_commit();
        END;
        END;
        if (!bad) {
            IF(one);
            bulk_wait_read(0);
            END;
        }
    }

    /* Global memory is read back after a wait that is for the source only. */
    PAIR(HOPPER, "async-read") {
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        bulk_store(512);
        if (bad)
            bulk_wait_read(0);
        else
            bulk_wait(0);
        ST(p, 4096, LD(p, 0));
        if (bad) bulk_wait(0);
        END;
    }

    /* Sums by atomics are copied out without a proxy fence. */
    PAIR(HOPPER, "missing-proxy-fence") {
        ST(mine, 0, zero);
        BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, low(tid, 7)), 0), n);
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        bulk_store(512);
        bulk_wait(0);
        END;
    }

    /* The proxy fence stands in front of the stores that it is for. */
    PAIR(HOPPER, "missing-proxy-fence") {
        if (bad) proxy_fence();
        ST(mine, 0, n);
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        bulk_store(512);
        bulk_wait(0);
        END;
    }

    /* The next round stores over what a bulk store still reads. */
    PAIR(HOPPER, "async-write") {
        i = FOR(n);
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, ptx_ptr_add(k, p, i, 512), sh, I(512));
        bulk_commit();
        if (!bad) bulk_wait_read(0);
        END;
        BAR;
        END;
        IF(one);
        bulk_wait(0);
        END;
    }

    /* One thread starts a bulk store, and another waits for it. */
    PAIR(HOPPER, "async-exit") {
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        bulk_store(512);
        END;
        IF(EQ(tid, bad ? I(32) : I(0)));
        bulk_wait(0);
        END;
    }

    /* stmatrix has stored what a bulk store reads, without a proxy fence. */
    PAIR(HOPPER, "missing-proxy-fence") {
        v4[0] = wide, v4[1] = n;
        PLAIN(PTX_STMATRIX, 2, v4);
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        bulk_store(512);
        bulk_wait(0);
        END;
    }

    /* No barrier lies between the stores of all threads and the copy of them. */
    PAIR(HOPPER, "race") {
        ST(mine, 0, tid);
        proxy_fence();
        if (!bad) BAR;
        IF(one);
        bulk_store(512), bulk_wait(0);
        END;
    }

    /* A wait for all but one group is the last. */
    PAIR(HOPPER, "async-exit") {
        IF(one);
        ST(sh, 0, n), ST(sh, 4, n), ST(sh, 8, n), ST(sh, 12, n);
        proxy_fence();
        bulk_store(16), bulk_wait(bad ? 1 : 0);
        END;
    }

    /* The thread stores over what its bulk store still reads. */
    PAIR(HOPPER, "async-write") {
        IF(one);
        ST(sh, 0, n), ST(sh, 4, n), ST(sh, 8, n), ST(sh, 12, n);
        proxy_fence();
        bulk_store(16);
        ST(sh, bad ? 0 : 16, n);
        bulk_wait(0);
        END;
    }

    /* The size of a bulk copy is no multiple of 16. */
    PAIR(HOPPER, "misaligned") {
        init_mbarriers(1, 1);
        IF(one);
        x = ptx_mov(k, U(bad ? 72 : 80));
        ptx_mbarrier_arrive_expect(k, bar, x);
        ptx_bulk_load(k, sh, q, x, bar);
        END;
        wait_parity(bar, U(0));
        out(LD(sh, 0));
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    waits_for_groups();
    waits_by_mbarrier();
    bulk_stores();
    return check_end();
}
