/* clusters.c - clusters: ranks, what orders blocks, copies into other blocks.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static void ranks(void) {
    /* A loop over the blocks runs beyond the cluster. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(4);
        ST(mine, 0, n);
        cluster_sync();
        i = FOR(U(bad ? 8 : 4));
        out(LD(ptx_mapa(k, mine, i), 0));
        END;
        cluster_sync();
    }

    /* The index in the grid is taken for the rank in the cluster. */
    PAIR(HOPPER, "cluster-rank") {
        GRID(4);
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        x = bad ? ptx_ctaid_x(k) : ptx_sreg(k, PTX_CLUSTER_CTARANK);
        out(LD(ptx_mapa(k, mine, flip(x)), 0));
        cluster_sync();
    }

    /* The neighbour's rank is taken from the index in the grid. */
    PAIR(HOPPER, "cluster-rank") {
        launch.cluster = 2;
        GRID(4);
        ST(mine, 0, n);
        cluster_sync();
        x = ADD(ptx_ctaid_x(k), U(1));
        if (!bad) x = ptx_as(ptx_rem(k, x, ptx_sreg(k, PTX_CLUSTER_NCTARANK)), PTX_U32);
        out(LD(ptx_mapa(k, mine, x), 0));
        cluster_sync();
    }

    /* The number of the cluster is taken for a rank in it. */
    PAIR(HOPPER, "cluster-rank") {
        GRID(8);
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        x = ptx_sreg(k, bad ? PTX_CLUSTERID_X : PTX_CLUSTER_CTAID_X);
        out(LD(ptx_mapa(k, mine, x), 0));
        cluster_sync();
    }

    /* The number of blocks of the cluster is no rank. */
    PAIR(HOPPER, "cluster-rank") {
        launch.cluster = 2;
        ST(mine, 0, n);
        cluster_sync();
        x = ptx_sreg(k, PTX_CLUSTER_NCTARANK);
        if (!bad) x = ptx_sub(k, x, U(1));
        out(LD(ptx_mapa(k, mine, x), 0));
        cluster_sync();
    }

    /* The next rank, without the first behind the last. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = ADD(w, U(1));
        if (!bad) y = low(y, 1);
        out(LD(ptx_mapa(k, mine, y), 0));
        cluster_sync();
    }

    /* The remainder is that of another size. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(4);
        ST(mine, 0, n);
        cluster_sync();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = ptx_as(ptx_rem(k, ADD(w, U(1)), U(bad ? 8 : 4)), PTX_U32);
        out(LD(ptx_mapa(k, mine, y), 0));
        cluster_sync();
    }

    /* The partner is too far away. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = XOR(w, U(bad ? 2 : 1));
        out(LD(ptx_mapa(k, mine, y), 0));
        cluster_sync();
    }

    /* The rank before the first. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(4);
        ST(mine, 0, n);
        cluster_sync();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = ptx_sub(k, w, U(1));
        if (!bad) y = low(y, 3);
        out(LD(ptx_mapa(k, mine, y), 0));
        cluster_sync();
    }

    /* The rank is one that the cluster does not have. */
    PAIR(HOPPER, "cluster-rank") {
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        w = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        y = ptx_mov(k, U(bad ? 2 : 1));
        out(LD(ptx_mapa(k, mine, y), 0));
        cluster_sync();
    }

    /* An address that ptx_mapa gives is taken for one of this block. */
    PAIR(HOPPER, "out-of-bounds") {
        CLUSTER(2);
        ST(mine, 0, n);
        cluster_sync();
        x = ptx_mapa(k, mine, other_rank());
        out(LD(bad ? ptx_ptr(x, PTX_SHARED) : x, 0));
        cluster_sync();
    }
}

static void order(void) {
    /* A block may end before another has stored into it. */
    PAIR(HOPPER, "ended-block") {
        CLUSTER(2);
        cluster_sync();
        x = ptx_mapa(k, mine, other_rank());
        ST(x, 0, n);
        if (!bad) cluster_sync();
    }

    /* In a loop, the next round stores while the neighbour still reads. */
    PAIR(HOPPER, "race") {
        CLUSTER(2);
        FOR(n);
        ST(mine, 0, n);
        cluster_sync();
        out(LD(ptx_mapa(k, mine, other_rank()), 0));
        if (!bad) cluster_sync();
        END;
        cluster_sync();
    }

    /* The neighbour stores here, and a block barrier is no barrier of the cluster. */
    PAIR(HOPPER, "race") {
        CLUSTER(2);
        cluster_sync();
        x = ptx_mapa(k, mine, other_rank());
        ST(x, 0, n);
        if (bad)
            BAR;
        else
            cluster_sync();
        out(LD(mine, 0));
        cluster_sync();
    }

    /* barrier.cluster.arrive.relaxed publishes nothing. */
    PAIR(HOPPER, "race") {
        CLUSTER(2);
        ST(mine, 0, n);
        ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, bad ? PTX_RELAXED : PTX_RELEASE);
        ptx_cluster_wait(k);
        out(LD(ptx_mapa(k, mine, I(1)), 0));
        cluster_sync();
    }

    /* The same without a fence in front. */
    PAIR(HOPPER, "race") {
        CLUSTER(2);
        ST(mine, 0, n);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_CLUSTER);
        ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, PTX_RELAXED);
        ptx_cluster_wait(k);
        out(LD(ptx_mapa(k, mine, I(1)), 0));
        cluster_sync();
    }

    /* A multicast copy reaches a block that has not made its mbarrier yet. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        if (!bad) cluster_sync();
        v4[0] = sh, v4[1] = q, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        END;
        IF(w);
        IF(one);
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        cluster_sync();
    }

    /* The arrival reaches a block that has not made its mbarrier yet. */
    PAIR(HOPPER, "mbarrier-uninitialised") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        if (!bad) cluster_sync();
        IF(one);
        ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, ptx_mapa(k, bar, other_rank()));
        END;
        wait_parity(bar, U(0));
        cluster_sync();
    }

    /* A block reads what its neighbour stores, without a barrier of the cluster. */
    PAIR(HOPPER, "race") {
        CLUSTER(2);
        ST(mine, 0, tid);
        if (!bad) cluster_sync();
        out(LD(ptx_mapa(k, mine, other_rank()), 0));
        cluster_sync();
    }
}

static void copies(void) {
    /* One block alone expects the bytes of a multicast copy. */
    PAIR(HOPPER, "deadlock") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        cluster_sync();
        v4[0] = sh, v4[1] = q, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        if (!bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(w);
        if (bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        cluster_sync();
    }

    /* One block of the grid fetches where one of each cluster has to. */
    PAIR(HOPPER, "deadlock") {
        GRID(4);
        CLUSTER(2);
        init_mbarriers(1, 1);
        cluster_sync();
        v4[0] = sh, v4[1] = q, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(bad ? ptx_ctaid_x(k) : ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(w);
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        cluster_sync();
    }

    /* The bytes go to the neighbour, and the mbarrier is the block's own. */
    PAIR(HOPPER, "bulk-barrier") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        ST(mine, 0, n);
        proxy_fence();
        cluster_sync();
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(512));
        x = other_rank();
        v4[0] = ptx_mapa(k, ptx_off(sh, 1024), x), v4[1] = sh, v4[2] = I(512);
        v4[3] = bad ? bar : ptx_mapa(k, bar, x);
        PLAIN(PTX_BULK_S2S, 4, v4);
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 1024));
        cluster_sync();
    }

    /* st.async stores to the neighbour, and the mbarrier is the block's own. */
    PAIR(HOPPER, "bulk-barrier") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        cluster_sync();
        v4[0] = ptx_mapa(k, sh, other_rank()), v4[1] = n;
        v4[2] = bad ? bar : ptx_mapa(k, bar, other_rank());
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(4));
        ptx_opn(k, PTX_ST_ASYNC, 0, PTX_U32, PTX_NONE, 3, v4, 0, NULL);
        END;
        wait_parity(bar, U(0));
        out(LD(sh, 0));
        cluster_sync();
    }

    /* The mask of a multicast copy names blocks that the cluster does not have. */
    PAIR(HOPPER, "multicast-mask") {
        CLUSTER(2);
        init_mbarriers(1, 1);
        cluster_sync();
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        END;
        v4[0] = sh, v4[1] = q, v4[2] = I(1024), v4[3] = bar, v4[4] = I(bad ? 15 : 3);
        w = EQ(ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(w);
        IF(one);
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_parity(bar, U(0));
        out(LD(mine, 0));
        cluster_sync();
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    ranks();
    order();
    copies();
    return check_end();
}
