/* mbarriers.c - mbarriers: parities, arrivals, bytes, lifetimes; rings of stages with a producer
 * and consumers.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static void parities(void) {
    /* The parity of a wait is a counter. */
    PAIR(HOPPER, "mbarrier-parity") {
        init_mbarriers(1, 1);
        i = FOR(n);
        fetch_by_one();
        wait_parity(bar, bad ? i : low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* The parity of a wait is a variable that counts up. */
    PAIR(HOPPER, "mbarrier-parity") {
        init_mbarriers(1, 1);
        ph = ptx_var_new(k, U(0));
        FOR(n);
        fetch_by_one();
        wait_parity(bar, GET(ph));
        out(LD(mine, 0));
        BAR;
        SET(ph, bad ? ADD(GET(ph), U(1)) : flip(GET(ph)));
        END;
    }

    /* The same where it changes with each turn of the ring. */
    PAIR(HOPPER, "mbarrier-parity") {
        launch.n = 12;
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

    /* The parity changes with every second round. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        i = FOR(n);
        fetch_by_one();
        wait_parity(bar, bad ? SHR(i, 1) : low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* With two stages, the parity changes with every round. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        i = FOR(n);
        x = low(i, 1);
        y = ptx_ptr_add(k, bar, x, 8);
        IF(one);
        fetch(ptx_ptr_add(k, sh, x, 1024), y);
        END;
        wait_parity(y, bad ? low(i, 1) : low(SHR(i, 1), 1));
        out(LD(AT(ptx_ptr_add(k, sh, x, 1024), low(tid, 255)), 0));
        BAR;
        END;
    }

    /* The parity never changes. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        ph = ptx_var_new(k, U(0));
        FOR(n);
        fetch_by_one();
        wait_parity(bar, GET(ph));
        out(LD(mine, 0));
        BAR;
        if (!bad) SET(ph, flip(GET(ph)));
        END;
    }

    /* The producer's first wait for an empty stage asks for parity 0. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), bad ? low(i, 1) : flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* The same in a ring of stages. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, bad ? GET(ph) : flip(GET(ph)));
        fetch(TILE_S, FULL_S);
        next_stage(4);
        consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The same with the parity in a variable. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        ph = ptx_var_new(k, U(bad ? 0 : 1));
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), GET(ph));
        SET(ph, flip(GET(ph)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* The consumers wait for the other parity. */
    PAIR(HOPPER, "async-read") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, bad ? flip(low(i, 1)) : low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* The same in a ring of stages. */
    PAIR(HOPPER, "async-read") {
        ring_producer(4, 4);
        FOR(n);
        wait_parity(FULL_S, bad ? flip(GET(ph)) : GET(ph));
        out(LD(AT(TILE_S, lane), 0));
        release_stage();
        ring_end(4);
    }

    /* The parity changes with every stage instead of every turn of the ring. */
    PAIR(HOPPER, "deadlock") {
        launch.n = 8;
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        if (bad) {
            SET(s, low(ADD(GET(s), U(1)), 3));
            SET(ph, flip(GET(ph)));
        } else
            next_stage(4);
        END;
        END;
    }

    /* The ring has three mbarriers, and the stage wraps at four. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        ring_producer(bad ? 3 : 4, 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The second phase is waited for by the parity of the first. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        BAR;
        fetch_by_one();
        wait_parity(bar, U(bad ? 0 : 1));
        out(LD(mine, 0));
    }

    /* The producer's parity never changes. */
    PAIR(HOPPER, "async-write") {
        launch.n = 12;
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, flip(GET(ph)));
        fetch(TILE_S, FULL_S);
        if (bad)
            SET(s, low(ADD(GET(s), U(1)), 3));
        else
            next_stage(4);
        consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The first wait is for parity 1. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bar, U(bad ? 1 : 0));
        out(LD(mine, 0));
        wait_parity(bar, U(0));
    }

    /* Only the thread that fetches waits. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        IF(one);
        fetch(sh, bar);
        wait_parity(bar, U(0));
        END;
        if (!bad) BAR;
        out(LD(mine, 0));
    }

    /* The result of try_wait is not used. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        if (bad)
            ptx_mbarrier_try_wait(k, bar, zero);
        else
            wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The next copy is started while other threads still read. */
    PAIR(HOPPER, "race") {
        init_mbarriers(1, 1);
        i = FOR(n);
        fetch_by_one();
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        if (!bad) BAR;
        END;
    }
}

static void releases(void) {
    /* A stage is given back before it is read. */
    PAIR(HOPPER, "race") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        if (bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        out(LD(mine, 0));
        if (!bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* The same in a ring, where a part is read afterwards. */
    PAIR(HOPPER, "race") {
        launch.n = 12;
        ring_producer(4, 4);
        FOR(n);
        wait_parity(FULL_S, GET(ph));
        at = AT(TILE_S, lane);
        x = LD(at, 0);
        if (!bad) out(LD(at, 128));
        release_stage();
        if (bad) out(LD(at, 128));
        out(x);
        ring_end(4);
    }

    /* Lane 0 gives a stage back that other lanes may still read. */
    PAIR(HOPPER, "race") {
        launch.n = 12;
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        if (!bad) ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, EMPTY_S);
        END;
        ring_end(4);
    }

    /* The consumers never give a stage back. */
    PAIR(HOPPER, "deadlock") {
        launch.n = 8;
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

    /* The same with one stage. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        if (!bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* All threads give the stage back, and the mbarrier expects one arrival. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, bad ? 1 : 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* One lane of each warp gives the stage back, and the mbarrier expects every thread. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, bad ? 128 : 4);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
        END;
    }

    /* Four warps give a stage back, and the mbarrier expects one arrival. */
    PAIR(HOPPER, "deadlock") {
        launch.n = 8;
        ring_producer(4, bad ? 1 : 4);
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The producer does not wait for an empty stage. */
    PAIR(HOPPER, "mbarrier-overflow") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        if (!bad) wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* The thread that fetches does not wait for an empty stage. */
    PAIR(HOPPER, "race") {
        init_mbarriers(1, 128);
        i = FOR(n);
        IF(one);
        if (!bad) wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        END;
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
    }

    /* Every copy completes at the mbarrier of the first stage. */
    PAIR(HOPPER, "mbarrier-overflow") {
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, flip(GET(ph)));
        fetch(TILE_S, bad ? full : FULL_S);
        next_stage(4);
        consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The consumers arrive at the full mbarrier instead of the empty one. */
    PAIR(HOPPER, "deadlock") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, bad ? FULL_S : EMPTY_S);
        END;
        ring_end(4);
    }
}

static void arrivals_and_bytes(void) {
    /* The mbarrier expects two arrivals, and one comes. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(bad ? 2 : 1, 1);
        i = FOR(n);
        fetch_by_one();
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        BAR;
        END;
    }

    /* All threads arrive with the bytes of one copy. */
    PAIR(HOPPER, "mbarrier-overflow") {
        init_mbarriers(1, 1);
        if (bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(one);
        if (!bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, q, I(1024), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* More bytes are expected than the copy brings. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, flip(GET(ph)));
        at = FULL_S;
        ptx_mbarrier_arrive_expect(k, at, I(bad ? 2048 : 1024));
        ptx_bulk_load(k, TILE_S, q, I(1024), at);
        next_stage(4);
        consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* The number of bytes is that of the elements. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(bad ? 256 : 1024));
        ptx_bulk_load(k, sh, q, I(512), bar);
        ptx_bulk_load(k, ptx_off(sh, 512), q, I(512), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The copy completes at the empty mbarrier. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(160);
        init_mbarriers(1, 128);
        producer();
        i = FOR(n);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, q, I(1024), bad ? ptx_off(bar, 8) : bar);
        consumers();
        i = FOR(n);
        wait_parity(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        END;
    }

    /* Two copies arrive, and the mbarrier expects one arrival. */
    PAIR(HOPPER, "mbarrier-overflow") {
        init_mbarriers(bad ? 1 : 2, 1);
        IF(one);
        fetch(sh, bar);
        fetch(ptx_off(sh, 1024), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* Bytes are expected, and nobody arrives. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        IF(one);
        if (bad)
            ptx_op2(k, PTX_MBARRIER_EXPECT_TX, PTX_RELAXED | PTX_CTA, bar, I(1024));
        else
            ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, q, I(1024), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The mbarrier expects 128 arrivals, and one comes. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(bad ? 128 : 1, 1);
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The wait is at another mbarrier than the copy. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bad ? ptx_off(bar, 8) : bar, U(0));
        out(LD(mine, 0));
    }

    /* The wait ends while the phase is not over. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        ptx_loop(k);
        w = ptx_mbarrier_try_wait(k, bar, U(0));
        ptx_while(k, bad ? w : ptx_inv(w));
        END;
        out(LD(mine, 0));
    }

    /* try_wait is tried once, and a nap follows. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        if (!bad) ptx_loop(k);
        w = ptx_mbarrier_try_wait(k, bar, U(0));
        if (bad)
            IF(ptx_inv(w));
        else
            ptx_while(k, ptx_inv(w));
        ptx_nanosleep(k, I(20));
        END;
        out(LD(mine, 0));
    }

    /* try_wait is tried once, and a nap follows if it has failed. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        fetch_by_one();
        w = ptx_mbarrier_try_wait(k, bar, U(0));
        IF(ptx_inv(w));
        if (bad)
            ptx_nanosleep(k, I(20));
        else
            wait_parity(bar, U(0));
        END;
        out(LD(mine, 0));
    }

    /* The token is that of another mbarrier. */
    PAIR(HOPPER, "mbarrier-token") {
        init_mbarriers(1, 1);
        IF(one);
        x = ptx_mbarrier_arrive(k, bar);
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        ptx_loop(k);
        w = ptx_mbarrier_test_wait(k, bad ? ptx_off(bar, 8) : bar, x);
        ptx_while(k, ptx_inv(w));
        END;
        END;
    }

    /* The thread that starts the copy waits for it first. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        IF(one);
        if (bad) wait_parity(bar, U(0));
        fetch(sh, bar);
        END;
        if (!bad) wait_parity(bar, U(0));
        BAR;
        out(LD(mine, 0));
    }

    /* Fewer bytes are expected than the copy brings. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(bad ? 512 : 1024));
        ptx_bulk_load(k, sh, q, I(1024), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The bytes of a copy are not expected. */
    PAIR(HOPPER, "async-read") {
        init_mbarriers(1, 1);
        IF(one);
        if (bad)
            ptx_mbarrier_arrive(k, bar);
        else
            ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, q, I(1024), bar);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* Every thread fetches. */
    PAIR(HOPPER, "mbarrier-overflow") {
        init_mbarriers(1, 1);
        if (!bad) IF(one);
        fetch(sh, bar);
        if (!bad) END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* 128 threads arrive, and the mbarrier expects 256. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(bad ? 256 : 128, 1);
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
    }

    /* Nobody arrives. */
    PAIR(HOPPER, "deadlock") {
        init_mbarriers(1, 1);
        IF(one);
        if (!bad) ptx_mbarrier_arrive(k, bar);
        END;
        wait_parity(bar, U(0));
    }
}

static void lifetimes(void) {
    /* An mbarrier is invalidated while other threads still wait at it. */
    PAIR(HOPPER, "race") {
        init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        if (!bad) BAR;
        IF(one);
        ptx_mbarrier_inval(k, bar);
        END;
    }

    /* An mbarrier is made anew while other threads still wait at it. */
    PAIR(HOPPER, "race") {
        init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        if (!bad) BAR;
        IF(one);
        ptx_mbarrier_inval(k, bar);
        ptx_mbarrier_init(k, bar, I(1));
        END;
        BAR;
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* The wrong mbarrier is invalidated before one is made anew. */
    PAIR(HOPPER, "mbarrier-live") {
        init_mbarriers(128, 128);
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
        BAR;
        IF(one);
        ptx_mbarrier_inval(k, bad ? ptx_off(bar, 8) : bar);
        ptx_mbarrier_init(k, bar, I(128));
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
    }

    /* A loop makes the same mbarrier in every round. */
    PAIR(HOPPER, "mbarrier-live") {
        IF(one);
        i = FOR(U(4));
        at = bad ? bar : ptx_ptr_add(k, bar, i, 8);
        ptx_mbarrier_init(k, at, I(1));
        END;
        END;
        BAR;
        fetch_by_one();
        wait_parity(bar, U(0));
        out(LD(mine, 0));
    }

    /* One of two mbarriers is not made. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        IF(one);
        ptx_mbarrier_init(k, bar, I(1));
        if (!bad) ptx_mbarrier_init(k, ptx_off(bar, 8), I(1));
        END;
        BAR;
        IF(one);
        fetch(sh, bar);
        fetch(ptx_off(sh, 1024), ptx_off(bar, 8));
        END;
        wait_parity(bar, U(0));
        wait_parity(ptx_off(bar, 8), U(0));
        out(LD(mine, 0));
    }

    /* The mbarriers of an array are taken at a stride of 4 bytes. */
    PAIR(HOPPER, "misaligned") {
        init_mbarriers(1, 1);
        s = ptx_var_new(k, U(0));
        ph = ptx_var_new(k, U(0));
        FOR(n);
        at = ptx_ptr_add(k, bar, GET(s), bad ? 4 : 8);
        IF(one);
        fetch(TILE_S, at);
        END;
        wait_parity(at, GET(ph));
        out(LD(TILE_S, 0));
        BAR;
        next_stage(2);
        END;
    }

    /* A plain store goes into an mbarrier. */
    PAIR(HOPPER, "mbarrier-overwritten") {
        init_mbarriers(1, 1);
        fetch_by_one();
        ST(AT(bar, zero), bad ? 0 : 16, n);
        wait_parity(bar, U(0));
    }

    /* An mbarrier is made anew without mbarrier.inval. */
    PAIR(HOPPER, "mbarrier-live") {
        init_mbarriers(128, 1);
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
        BAR;
        IF(one);
        if (!bad) ptx_mbarrier_inval(k, bar);
        ptx_mbarrier_init(k, bar, I(128));
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
    }

    /* The same in a loop. */
    PAIR(HOPPER, "mbarrier-live") {
        FOR(n);
        IF(one);
        ptx_mbarrier_init(k, bar, I(128));
        ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_parity(bar, U(0));
        BAR;
        IF(one);
        if (!bad)
            ptx_mbarrier_inval(k, bar);
        else
            out(n);
        END;
        BAR;
        END;
    }

    /* Every thread makes the mbarrier. */
    PAIR(HOPPER, "mbarrier-live") {
        if (!bad) IF(one);
        ptx_mbarrier_init(k, bar, I(1));
        if (!bad) END;
        BAR;
        fetch_by_one();
        wait_parity(bar, U(0));
    }

    /* Nobody makes the mbarrier. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        if (!bad) init_mbarriers(1, 1);
        fetch_by_one();
        wait_parity(bar, U(0));
    }

    /* An arrival comes after mbarrier.inval. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        init_mbarriers(1, 1);
        IF(one);
        if (bad) ptx_mbarrier_inval(k, bar);
        ptx_mbarrier_arrive(k, bar);
        END;
    }
}

static void stages(void) {
    /* The array holds three stages of a ring of four. */
    PAIR(HOPPER, "async-write") {
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        z = ptx_shared(k, "tiles", PTX_U32, bad ? 768 : 1024, 128);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, flip(GET(ph)));
        fetch(ptx_ptr_add(k, z, GET(s), 1024), FULL_S);
        next_stage(4);
        consumers();
        FOR(n);
        wait_parity(FULL_S, GET(ph));
        out(LD(AT(ptx_ptr_add(k, z, GET(s), 1024), lane), 0));
        release_stage();
        ring_end(4);
    }

    /* Stages are half as far apart as they are long. */
    PAIR(HOPPER, "async-write") {
        BLOCK(160);
        init_rings(4, 4, 1, 4);
        producer();
        FOR(n);
        wait_parity(EMPTY_S, flip(GET(ph)));
        fetch(ptx_ptr_add(k, sh, GET(s), bad ? 512 : 1024), FULL_S);
        next_stage(4);
        consumers();
        FOR(n);
        wait_parity(FULL_S, GET(ph));
        out(LD(AT(ptx_ptr_add(k, sh, GET(s), bad ? 512 : 1024), lane), 0));
        release_stage();
        ring_end(4);
    }

    /* The same with the stage taken from a counter. */
    PAIR(HOPPER, "async-write") {
        init_mbarriers(1, 1);
        fetch_by_one();
        i = FOR(n);
        x = ADD(i, U(1));
        IF(one);
        IF(LT(x, n));
        y = low(x, 1);
        fetch(ptx_ptr_add(k, sh, y, bad ? 256 : 1024), ptx_ptr_add(k, bar, y, 8));
        END;
        END;
        y = low(i, 1);
        wait_parity(ptx_ptr_add(k, bar, y, 8), low(SHR(i, 1), 1));
        out(LD(AT(ptx_ptr_add(k, sh, y, bad ? 256 : 1024), low(tid, 63)), 0));
        BAR;
        END;
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    parities();
    releases();
    arrivals_and_bytes();
    lifetimes();
    stages();
    return check_end();
}
