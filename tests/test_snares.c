/* test_snares.c - further mistakes that the assembler takes in silence: what one lane has taken for what all
 * have, loops that go nowhere, swaps that never succeed, stages that overlap, carries, cells that nobody
 * fills. Each is made twice, wrong and right: of the one the right thing is said, of the other nothing.
 *
 *   cc -std=c99 tests/test_snares.c -o test_snares && ./test_snares */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "trap.h"

static ptx_val down(ptx_val v, uint32_t step, uint32_t clamp) {
    return ptx_as(ptx_shfl_down(k, v, I(step), I(clamp), FULL), PTX_U32);
}
static ptx_val up(ptx_val v, uint32_t step) {
    return ptx_as(ptx_shfl_up(k, v, I(step), I(0), FULL), PTX_U32);
}
static ptx_val from_lane(ptx_val v, int which) {
    return ptx_as(ptx_shfl_idx(k, v, I(which), I(31), FULL), PTX_U32);
}
/* The sum of a warp, which its first lane gets. */
static ptx_val tree(ptx_val v) {
    uint32_t o;
    for (o = 16; o; o >>= 1) v = ADD(v, down(v, o, 31));
    return v;
}
/* The sums up to each lane. */
static ptx_val scan(ptx_val v) {
    uint32_t o;
    for (o = 1; o < 32; o *= 2) {
        ptx_val w_ = up(v, o);
        v = ADD(v, ptx_as(ptx_selp(k, w_, U(0), GE(lane, U(o))), PTX_U32));
    }
    return v;
}

static void lanes(void) {
    uint32_t o;
    /* a tree down, used by all */
    PAIR(AMPERE, "lanes") {
        y = LD(AT(q, tid), 0);
        x = bad ? tree(y) : wsum(y);
        out(ptx_div(k, y, x));
    }

    /* stored as it is */
    PAIR(AMPERE, "lanes") {
        x = tree(LD(AT(q, tid), 0));
        if (!bad) x = from_lane(x, 0);
        out(x);
    }

    /* the last lane stores it */
    PAIR(AMPERE, "lanes") {
        x = tree(LD(AT(q, tid), 0));
        IF(EQ(lane, I(bad ? 31 : 0)));
        ST(AT(q, warp), 0, x);
        END;
    }

    /* of the last lane to all */
    PAIR(AMPERE, "lanes") {
        x = tree(LD(AT(q, tid), 0));
        out(from_lane(x, bad ? 31 : 0));
    }

    /* a scan up, of whose total the first lane tells */
    PAIR(AMPERE, "lanes") {
        x = scan(LD(AT(q, tid), 0));
        IF(EQ(lane, I(bad ? 0 : 31)));
        ST(AT(q, warp), 0, x);
        END;
    }

    /* the same by a shuffle */
    PAIR(AMPERE, "lanes") {
        x = scan(LD(AT(q, tid), 0));
        out(ADD(x, from_lane(x, bad ? 0 : 31)));
    }

    /* halves of a warp */
    PAIR(AMPERE, "lanes") {
        x = LD(AT(q, tid), 0);
        for (o = 8; o; o >>= 1) x = ADD(x, down(x, o, 0x101f));
        if (!bad) IF(EQ(low(lane, 15), zero));
        out(x);
        if (!bad) END;
    }

    /* all branch on it */
    PAIR(AMPERE, "lanes") {
        x = bad ? tree(LD(AT(q, tid), 0)) : wsum(LD(AT(q, tid), 0));
        IF(GT(x, U(7)));
        out(n);
        END;
    }

    /* all add it */
    PAIR(AMPERE, "lanes") {
        x = tree(LD(AT(q, tid), 0));
        if (!bad) IF(EQ(lane, zero));
        ptx_red(k, PTX_ATOM_ADD, ptx_at(q, 0), x);
        if (!bad) END;
    }

    /* a mean and then the variance */
    PAIR(AMPERE, "lanes") {
        y = LD(AT(q, tid), 0);
        x = tree(y);
        if (!bad) x = from_lane(x, 0);
        y = ptx_sub(k, y, SHR(x, 5));
        x = tree(ptx_mul(k, y, y));
        IF(EQ(lane, zero));
        ST(AT(q, warp), 0, x);
        END;
    }

    /* the largest, by a guard of the store */
    PAIR(AMPERE, "lanes") {
        x = LD(AT(q, tid), 0);
        for (o = 16; o; o >>= 1) x = ptx_max(k, x, down(x, o, 31));
        at = AT(q, warp);
        w = bad ? NE(lane, zero) : EQ(lane, zero);
        ptx_guard(k, w);
        ST(at, 0, x);
    }
}

static void rounds(void) {
    /* up from 0 */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(bad ? 0 : 1));
        ptx_loop(k);
        ptx_while(k, LT(GET(a), n));
        ST(AT(q, GET(a)), 0, n);
        SET(a, SHL(GET(a), 1));
        END;
    }

    /* a product from 0 */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(bad ? 0 : 1));
        ptx_loop(k);
        ptx_while(k, LT(GET(a), n));
        ST(AT(q, GET(a)), 0, n);
        SET(a, ptx_mul(k, GET(a), U(3)));
        END;
    }

    /* a step of 0 */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(0));
        ptx_loop(k);
        ptx_while(k, LT(GET(a), n));
        ST(AT(q, GET(a)), 0, n);
        SET(a, ADD(GET(a), U(bad ? 0 : 4)));
        END;
    }

    /* the limit is jumped over */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(0));
        ptx_loop(k);
        ptx_while(k, NE(GET(a), U(bad ? 10 : 12)));
        ST(AT(q, GET(a)), 0, n);
        SET(a, ADD(GET(a), U(4)));
        END;
    }

    /* and downwards */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(bad ? 31 : 30));
        ptx_loop(k);
        ptx_while(k, NE(GET(a), U(0)));
        ST(AT(q, GET(a)), 0, n);
        SET(a, ptx_sub(k, GET(a), U(2)));
        END;
    }

    /* bits that a mask has taken */
    PAIR(AMPERE, "idle") {
        x = SHR(low(n, 255), bad ? 8 : 4);
        IF(EQ(x, U(1)));
        out(n);
        END;
    }

    /* below the least of what has a sign */
    PAIR(AMPERE, "idle") {
        x = ptx_as(n, PTX_S32);
        IF(ptx_setp(k, PTX_LT, x, ptx_s32(bad ? INT32_MIN : -1)));
        out(n);
        END;
    }

    /* no more than the most */
    PAIR(AMPERE, "idle") {
        IF(ptx_setp(k, bad ? PTX_LE : PTX_LT, n, U(0xffffffff)));
        out(n);
        END;
    }

    /* halves for ever */
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, U(0));
        s = ptx_var_new(k, n);
        ptx_loop(k);
        ptx_while(k, bad ? GE(GET(s), U(0)) : GT(GET(s), U(0)));
        SET(a, ADD(GET(a), U(1)));
        SET(s, SHR(GET(s), 1));
        END;
        out(GET(a));
    }
}

static void swaps(void) {
    /* what is expected is never asked again */
    PAIR(AMPERE, "idle") {
        x = LD(q, 0);
        a = ptx_var_new(k, x);
        ptx_loop(k);
        z = bad ? x : GET(a);
        y = ptx_as(ptx_atom_cas(k, ptx_at(q, 0), z, ADD(z, n)), PTX_U32);
        ptx_while(k, NE(y, z));
        if (!bad) SET(a, y);
        END;
        out(GET(a));
    }

    /* what is stored is made of the first */
    PAIR(AMPERE, "race") {
        x = LD(q, 0);
        w = ADD(x, n);
        a = ptx_var_new(k, x);
        ptx_loop(k);
        z = GET(a);
        y = ptx_as(ptx_atom_cas(k, ptx_at(q, 0), z, bad ? w : ADD(z, n)), PTX_U32);
        ptx_while(k, NE(y, z));
        SET(a, y);
        END;
    }

    /* a flag that orders nothing */
    PAIR(AMPERE, "race") {
        x = ptx_ctaid_x(k);
        IF(EQ(x, zero));
        IF(one);
        ST(q, 0, n);
        STA(p, (bad ? PTX_RELAXED : PTX_RELEASE) | PTX_GPU, U(1));
        END;
        ptx_else(k);
        IF(one);
        ptx_loop(k);
        y = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, EQ(y, zero));
        END;
        ST(p, 64, LD(q, 0));
        END;
        END;
    }

    /* a flag stored plainly */
    PAIR(AMPERE, "race") {
        x = ptx_ctaid_x(k);
        IF(EQ(x, zero));
        IF(one);
        ST(q, 0, n);
        if (bad)
            ST(p, 0, U(1));
        else
            STA(p, PTX_RELEASE | PTX_GPU, U(1));
        END;
        ptx_else(k);
        IF(one);
        ptx_loop(k);
        y = LDA(p, PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, EQ(y, zero));
        END;
        ST(p, 64, LD(q, 0));
        END;
        END;
    }

    /* read before it is waited for */
    PAIR(AMPERE, "race") {
        IF(one);
        ST(sh, 0, zero);
        END;
        BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(sh, 0), n);
        if (!bad) BAR;
        out(LD(sh, 0));
    }

    /* a list whose places are handed out */
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
}

static void stages(void) {
    /* the ring of an array of three */
    PAIR(HOPPER, "beyond") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        z = ptx_shared(k, "tiles", PTX_U32, bad ? 768 : 1024, 128);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, flip(GET(ph)));
        fetch(ptx_ptr_add(k, z, GET(s), 1024), FULL_S);
        turn_stage(4);
        as_consumers();
        FOR(n);
        wait_val(FULL_S, GET(ph));
        out(LD(AT(ptx_ptr_add(k, z, GET(s), 1024), lane), 0));
        release_stage();
        ring_end(4);
    }

    /* stages half as far apart as they are long */
    PAIR(HOPPER, "race") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, flip(GET(ph)));
        fetch(ptx_ptr_add(k, sh, GET(s), bad ? 512 : 1024), FULL_S);
        turn_stage(4);
        as_consumers();
        FOR(n);
        wait_val(FULL_S, GET(ph));
        out(LD(AT(ptx_ptr_add(k, sh, GET(s), bad ? 512 : 1024), lane), 0));
        release_stage();
        ring_end(4);
    }

    /* the same by the bits of a counter */
    PAIR(HOPPER, "race") {
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        i = FOR(n);
        x = ADD(i, U(1));
        IF(one);
        IF(LT(x, n));
        y = low(x, 1);
        fetch(ptx_ptr_add(k, sh, y, bad ? 256 : 1024), ptx_ptr_add(k, bar, y, 8));
        END;
        END;
        y = low(i, 1);
        wait_val(ptx_ptr_add(k, bar, y, 8), low(SHR(i, 1), 1));
        out(LD(AT(ptx_ptr_add(k, sh, y, bad ? 256 : 1024), low(tid, 63)), 0));
        BAR;
        END;
    }

    /* of cp.async */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0), commit(), copy(bad ? 1024 : 2048), commit();
        FOR(n);
        wait_for(1);
        BAR;
        x = GET(s);
        out(LD(ADD(mine, SHL(x, bad ? 10 : 11)), 16));
        BAR;
        ptx_cp_async_16(k, ADD(wide, SHL(x, bad ? 10 : 11)), p);
        commit();
        SET(s, flip(x));
        END;
        wait_for(0);
    }

    /* one group ahead, and a wait for all but one of two */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        s = ptx_var_new(k, U(0));
        copy(0), commit();
        FOR(n);
        x = GET(s);
        if (!bad) {
            ptx_cp_async_16(k, ADD(wide, SHL(flip(x), 11)), p);
            commit();
        }
        wait_for(1);
        BAR;
        out(LD(ADD(mine, SHL(x, 11)), 16));
        BAR;
        if (bad) {
            ptx_cp_async_16(k, ADD(wide, SHL(flip(x), 11)), p);
            commit();
        }
        SET(s, flip(x));
        END;
        wait_for(0);
    }

    /* three stages ahead, and four groups may be under way */
    PAIR(AMPERE, "race") {
        BLOCK(128);
        copy(0), commit(), copy(2048), commit(), copy(4096), commit();
        wait_for(bad ? 3 : 2);
        BAR;
        out(LD(mine, 16));
        wait_for(0);
    }

    /* a double buffer that overlaps */
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

    /* every copy counts at the first mbarrier */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, flip(GET(ph)));
        fetch(TILE_S, bad ? full : FULL_S);
        turn_stage(4);
        as_consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* the stage given back is the one behind */
    PAIR(HOPPER, "order") {
        ring_producer(4, 4);
        FOR(n);
        read_stage(GET(ph));
        ptx_bar_warp_sync(k, FULL);
        IF(EQ(lane, zero));
        ptx_mbarrier_arrive(k, bad ? FULL_S : EMPTY_S);
        END;
        ring_end(4);
    }

    /* the producer never turns */
    PAIR(HOPPER, "order") {
        BLOCK(160);
        rings(4, 4, 1, 4);
        as_producer();
        FOR(n);
        wait_val(EMPTY_S, flip(GET(ph)));
        fetch(TILE_S, FULL_S);
        if (bad)
            SET(s, low(ADD(GET(s), U(1)), 3));
        else
            turn_stage(4);
        as_consumers();
        FOR(n);
        read_stage(GET(ph));
        release_stage();
        ring_end(4);
    }

    /* read back of global memory before the copy out is over */
    PAIR(HOPPER, "race") {
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        if (bad)
            bulk_wait_read(0);
        else
            bulk_wait(0);
        ST(p, 0, LD(q, 0));
        if (bad) bulk_wait(0);
        END;
    }
}

static void carries(void) {
    ptx_val r[4];
    /* a borrow taken for a carry */
    PAIR(AMPERE, "order") {
        x = ptx_sub_cc(k, n, tid);
        y = bad ? ptx_addc(k, n, tid) : ptx_subc(k, n, tid);
        out(ADD(x, y));
    }

    /* and the other way round */
    PAIR(AMPERE, "order") {
        x = ptx_add_cc(k, n, tid);
        y = bad ? ptx_subc(k, n, tid) : ptx_addc(k, n, tid);
        out(ADD(x, y));
    }

    /* the bit itself is no mistake; of two sums the wrong one's is */
    PAIR(AMPERE, "order") {
        x = ptx_add_cc(k, n, tid);
        if (!bad) w = ptx_addc(k, n, n);
        y = ptx_add_cc(k, tid, tid);
        if (bad) w = ptx_addc(k, n, n);
        z = ptx_addc(k, zero, zero);
        out(ADD(ADD(x, y), ADD(z, w)));
    }

    /* a product whose low half's carry is lost */
    PAIR(AMPERE, "order") {
        r[0] = ptx_op3(k, PTX_MAD, PTX_LO | PTX_CC, n, tid, n);
        r[1] = bad ? ptx_op3(k, PTX_MAD, PTX_HI | PTX_CC, n, tid, n)
                   : ptx_op3(k, PTX_MADC, PTX_HI | PTX_CC, n, tid, n);
        r[2] = ptx_addc(k, zero, zero);
        out(ADD(r[0], ADD(r[1], r[2])));
    }

    /* across a branch */
    PAIR(AMPERE, "order") {
        a = ptx_var_new(k, U(0));
        x = ptx_add_cc(k, n, tid);
        if (!bad) z = ptx_addc(k, n, U(1));
        IF(GT(n, U(5)));
        SET(a, bad ? ptx_addc(k, n, U(1)) : z);
        END;
        out(ADD(x, GET(a)));
    }
}

static void clusters(void) {
    /* the rank of a block in the grid */
    PAIR(HOPPER, "beyond") {
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        x = bad ? ptx_ctaid_x(k) : ptx_sreg(k, PTX_CLUSTER_CTARANK);
        out(LD(ptx_mapa(k, mine, flip(x)), 0));
        meet();
    }

    /* the same, and one further */
    PAIR(HOPPER, "beyond") {
        ST(mine, 0, n);
        meet();
        x = ADD(ptx_ctaid_x(k), U(1));
        if (!bad) x = ptx_as(ptx_rem(k, x, ptx_sreg(k, PTX_CLUSTER_NCTARANK)), PTX_U32);
        out(LD(ptx_mapa(k, mine, x), 0));
        meet();
    }

    /* the number of the cluster */
    PAIR(HOPPER, "beyond") {
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        x = ptx_sreg(k, bad ? PTX_CLUSTERID_X : PTX_CLUSTER_CTAID_X);
        out(LD(ptx_mapa(k, mine, x), 0));
        meet();
    }

    /* the number of blocks is no rank */
    PAIR(HOPPER, "beyond") {
        ST(mine, 0, n);
        meet();
        x = ptx_sreg(k, PTX_CLUSTER_NCTARANK);
        if (!bad) x = ptx_sub(k, x, U(1));
        out(LD(ptx_mapa(k, mine, x), 0));
        meet();
    }

    /* multicast that one block alone expects */
    PAIR(HOPPER, "order") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        meet();
        v4[0] = sh, v4[1] = p, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        if (!bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(w);
        if (bad) ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        meet();
    }

    /* a leader of the grid where each cluster has one */
    PAIR(HOPPER, "order") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        meet();
        v4[0] = sh, v4[1] = p, v4[2] = I(1024), v4[3] = bar, v4[4] = I(3);
        w = EQ(bad ? ptx_ctaid_x(k) : ptx_sreg(k, PTX_CLUSTER_CTARANK), zero);
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        IF(w);
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v4, 0, NULL);
        END;
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        meet();
    }
}

static void tensors(void) {
    /* not given back on one way */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        IF(NE(ptx_uniform(k, n), zero));
        DEALLOC(at, 128);
        if (!bad) {
            ptx_else(k);
            DEALLOC(at, 128);
        }
        END;
    }

    /* an exit before */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        if (!bad) {
            IF(EQ(n, zero));
            ptx_ret(k);
            END;
        }
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        if (bad) {
            IF(EQ(n, zero));
            ptx_ret(k);
            END;
        }
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* given back by another warp */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        IF(EQ(warp, I(bad ? 1 : 0)));
        ptx_op2(k, PTX_TCGEN05_DEALLOC, 0, at, I(128));
        END;
    }

    /* the commit of another thread */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        ALLOC(128);
        make(1, 1);
        at = LD(sh, 0);
        IF(one);
        TMMA(at);
        if (!bad) ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        END;
        if (bad) {
            IF(EQ(tid, I(32)));
            ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
            END;
        }
        wait_on(bar, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* added to what nothing has filled */
    PAIR(BLACKWELL, "unwritten") {
        BLOCK(128);
        ALLOC(128);
        make(1, 1);
        at = LD(sh, 0);
        IF(one);
        v4[0] = at, v4[1] = v4[2] = ptx_mov(k, ptx_u64(0x4000)), v4[3] = zero;
        v4[4] = bad ? EQ(zero, U(0)) : NE(zero, U(0));
        PLAIN(PTX_TCGEN05_MMA_F16, 5, v4);
        ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        END;
        wait_on(bar, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* given back while the product is under way */
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
        BAR;
        DEALLOC(at, 128);
        if (bad) wait_on(bar, 0);
    }

    /* the sums of every round are new ones */
    PAIR(HOPPER, "idle") {
        ptx_val o[7];
        start_sums();
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        i = FOR(n);
        o[0] = o[1] = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
        o[2] = bad ? NE(zero, U(0)) : NE(i, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
        ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
        ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
        product_wait(0);
        END;
        use_sums();
    }
}

static void cells(void) {
    /* the edges of a tile with a rim */
    PAIR(AMPERE, "unwritten") {
        BLOCK(128);
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

    /* half of the threads fill what all read */
    PAIR(AMPERE, "unwritten") {
        BLOCK(128);
        y = ptx_shared(k, "half", PTX_U32, 128, 4);
        IF(LT(tid, U(64)));
        ST(AT(y, tid), 0, n);
        if (!bad) ST(AT(y, tid), 256, n);
        END;
        BAR;
        out(LD(AT(y, XOR(tid, U(64))), 0));
    }

    /* sums of warps of which there are fewer */
    PAIR(AMPERE, "unwritten") {
        BLOCK(128);
        y = ptx_shared(k, "sums", PTX_U32, 8, 4);
        x = wsum(n);
        IF(EQ(lane, zero));
        ST(AT(y, warp), 0, x);
        END;
        BAR;
        IF(LT(tid, U(bad ? 8 : 4)));
        out(LD(AT(y, tid), 0));
        END;
    }

    /* read before it is ever written */
    PAIR(AMPERE, "unwritten") {
        if (!bad) ST(mine, 0, zero);
        FOR(n);
        ST(mine, 0, ADD(LD(mine, 0), n));
        END;
        BAR;
        out(LD(mine, 0));
    }

    /* the same of a thread's own */
    PAIR(AMPERE, "unwritten") {
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

    /* the left neighbour of the first */
    PAIR(AMPERE, "beyond") {
        x = ptx_sub(k, tid, U(1));
        if (!bad) IF(GT(tid, zero));
        out(LD(AT(q, x), 0));
        if (!bad) END;
    }

    /* the same in the grid */
    PAIR(AMPERE, "beyond") {
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        IF(LT(i, n));
        if (!bad) IF(GT(i, zero));
        ST(AT(p, i), 0, LD(AT(q, ptx_sub(k, i, U(1))), 0));
        if (!bad) END;
        END;
    }
}

static void barriers(void) {
    /* two barriers, and each waits at the other's */
    PAIR(AMPERE, "order") {
        BLOCK(256);
        IF(LT(tid, U(128)));
        ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(256));
        ptx_op2(k, PTX_BAR_SYNC, 0, I(2), I(256));
        ptx_else(k);
        ptx_op2(k, PTX_BAR_SYNC, 0, I(bad ? 2 : 1), I(256));
        ptx_op2(k, PTX_BAR_SYNC, 0, I(bad ? 1 : 2), I(256));
        END;
    }

    /* the barrier of a warp that is that of all */
    PAIR(AMPERE, "order") {
        BLOCK(128);
        ST(mine, 0, n);
        x = bad ? warp : ADD(warp, U(1));
        ptx_op2(k, PTX_BAR_SYNC, 0, x, I(32));
        out(LD(AT(sh, XOR(tid, U(1))), 0));
        BAR;
    }

    /* a barrier for half of the block, under another's number */
    PAIR(AMPERE, "order") {
        BLOCK(256);
        IF(LT(tid, U(128)));
        ptx_op2(k, PTX_BAR_SYNC, 0, I(bad ? 0 : 1), I(128));
        END;
        BAR;
    }
}

static void texts(void) {
    static const char *const wrong[][2] = {
        {"add.u32 $0, $1, 1 // one more;", "add.u32 $0, $1, 1; // one more"},
        {"add.u32 $0, $1, 1 /* one; */", "add.u32 $0, $1, 1; /* one; */"},
        {"add.u32 $0, $1, 1; xor", "add.u32 $0, $1, 1;"},
        {"add.u32 $0, $1, 1;;}", "{add.u32 $0, $1, 1;}"},
        {"{ .reg .b64 t; mov.b64 t, {$1, $1} }", "{ .reg .b64 t; mov.b64 t, {$1, $1}; cvt.u32.u64 $0, t; }"},
    };
    static const ptx_type u32 = PTX_U32;
    uint32_t j;
    for (j = 0; j < sizeof wrong / sizeof *wrong; j++) PAIR(AMPERE, "!argument") {
            ptx_raw(k, wrong[j][!bad], 1, &tid, 1, &u32, &x);
            out(x);
        }
    PAIR(AMPERE, "!label") {
        ptx_raw(k, bad ? "{ mov.u32 $0, $1; bra NOWHERE; }" : "{ mov.u32 $0, $1; bra THERE; THERE: }", 1,
                &tid, 1, &u32, &x);
        out(x);
    }
}

static void others(void) {
    /* memory of another space */
    PAIR(AMPERE, "!address") {
        x = ptx_cvta_to(k, bad ? PTX_SHARED : PTX_GLOBAL, p);
        out(LD(x, 0));
    }
}

static void seconds(void) {
    ptx_val o[8];
    static const ptx_type u32 = PTX_U32;
    /* half of the threads wait for what all have copied */
    PAIR(AMPERE, "!async") {
        BLOCK(128);
        copy(0), commit();
        if (bad) IF(LT(tid, U(64)));
        wait_for(0);
        if (bad) END;
        BAR;
        out(LD(AT(sh, XOR(tid, U(64))), 0));
        wait_for(0);
    }

    /* the second phase by the parity of the first */
    PAIR(HOPPER, "order") {
        make(1, 1);
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        BAR;
        IF(one);
        fetch(sh, bar);
        END;
        wait_on(bar, bad ? 0 : 1);
        out(LD(mine, 0));
    }

    /* one arrival, and two copies that each arrive */
    PAIR(HOPPER, "order") {
        make(bad ? 1 : 2, 1);
        IF(one);
        fetch(sh, bar);
        fetch(ptx_off(sh, 1024), bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }

    /* sums by atomics, copied out */
    PAIR(HOPPER, "proxy") {
        ST(mine, 0, zero);
        BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, low(tid, 7)), 0), n);
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        bulk_wait(0);
        END;
    }

    /* a tile that cp.async has brought, for a product */
    PAIR(HOPPER, "proxy") {
        start_sums();
        copy(0), commit(), wait_for(0);
        if (!bad) proxy_fence();
        BAR;
        issue(sh);
        product_wait(0);
        use_sums();
    }

    /* the commit is one arrival */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        ALLOC(128);
        make(bad ? 128 : 1, 1);
        at = LD(sh, 0);
        IF(one);
        TMMA(at);
        ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
        END;
        wait_on(bar, 0);
        TLD(at);
        BAR;
        DEALLOC(at, 128);
    }

    /* taken in each round, given back once */
    PAIR(BLACKWELL, "order") {
        BLOCK(128);
        FOR(n);
        ALLOC(128);
        BAR;
        at = LD(sh, 0);
        TLD(at);
        BAR;
        if (bad) IF(EQ(ptx_uniform(k, LD(p, 0)), zero));
        DEALLOC(at, 128);
        if (bad) END;
        END;
    }

    /* the last block is one less than there are */
    PAIR(AMPERE, "order") {
        ST(AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        BAR;
        IF(one);
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
        y = ptx_sreg(k, PTX_NCTAID_X);
        IF(EQ(x, bad ? y : ptx_sub(k, y, U(1))));
        out(n);
        END;
        END;
    }

    /* what a count hands out is the same for nobody */
    PAIR(AMPERE, "!divergent") {
        if (bad) {
            x = ptx_uniform(k, ptx_as(ptx_atom(k, PTX_ATOM_ADD, ptx_at(q, 0), U(1)), PTX_U32));
        } else {
            IF(one);
            ST(sh, 0, ptx_as(ptx_atom(k, PTX_ATOM_ADD, ptx_at(q, 0), U(1)), PTX_U32));
            END;
            BAR;
            x = ptx_uniform(k, LD(sh, 0));
        }
        IF(EQ(x, n));
        BAR;
        END;
    }

    /* loaded whether there is such an element or not */
    PAIR(AMPERE, "beyond") {
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        w = LT(i, n);
        at = AT(q, bad ? i : ptx_min(k, i, ptx_sub(k, n, U(1))));
        x = ptx_as(ptx_selp(k, LD(at, 0), U(0), w), PTX_U32);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), x);
    }

    /* no number is below the one and above the other */
    PAIR(AMPERE, "idle") {
        x = ptx_max(k, ptx_min(k, n, U(bad ? 0 : 255)), U(bad ? 255 : 1));
        out(x);
    }

    /* the same of floats */
    PAIR(AMPERE, "idle") {
        x = ptx_cvt(k, PTX_F32, n);
        x = bad ? ptx_min(k, ptx_max(k, x, ptx_f32(6)), ptx_f32(0))
                : ptx_min(k, ptx_max(k, x, ptx_f32(0)), ptx_f32(6));
        ptx_st(k, PTX_F32, ptx_at(AT(q, tid), 0), x);
    }

    /* a table that one thread fills */
    PAIR(AMPERE, "race") {
        IF(one);
        i = FOR(U(64));
        ST(AT(sh, i), 0, i);
        END;
        END;
        if (!bad) BAR;
        out(LD(AT(sh, low(tid, 63)), 0));
    }

    /* exchanged through global memory */
    PAIR(AMPERE, "race") {
        ST(AT(q, tid), 0, n);
        if (!bad) BAR;
        out(LD(AT(q, XOR(tid, U(32))), 0));
    }

    /* moved by one, in place */
    PAIR(AMPERE, "race") {
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        x = LD(AT(q, ADD(i, U(1))), 0);
        if (!bad) BAR;
        ST(AT(q, i), 0, x);
    }

    /* the lanes of a condition that is another's */
    PAIR(AMPERE, "!divergent") {
        w = ptx_as(ptx_ballot(k, LT(lane, U(8)), FULL), PTX_U32);
        IF(LT(lane, U(bad ? 16 : 8)));
        out(ptx_as(ptx_shfl_idx(k, tid, I(0), I(31), w), PTX_U32));
        END;
    }

    /* a break of some, and a barrier for all */
    PAIR(AMPERE, "!divergent") {
        FOR(n);
        IF(EQ(LD(AT(q, tid), 0), zero));
        if (bad) ptx_break(k);
        END;
        BAR;
        END;
    }

    /* bytes go there, and the mbarrier is here */
    PAIR(HOPPER, "order") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        ST(mine, 0, n);
        proxy_fence();
        meet();
        IF(one);
        ptx_mbarrier_arrive_expect(k, bar, I(512));
        x = flip(ptx_sreg(k, PTX_CLUSTER_CTARANK));
        o[0] = ptx_mapa(k, ptx_off(sh, 1024), x), o[1] = sh, o[2] = I(512);
        o[3] = bad ? bar : ptx_mapa(k, bar, x);
        PLAIN(PTX_BULK_S2S, 4, o);
        END;
        wait_on(bar, 0);
        out(LD(mine, 1024));
        meet();
    }

    /* a shuffle in the arm of a select of lanes */
    PAIR(AMPERE, "!divergent") {
        IF(LT(lane, n));
        x = ptx_as(ptx_shfl_down(k, tid, I(1), I(31), bad ? FULL : ptx_activemask(k)), PTX_U32);
        out(x);
        END;
    }

    /* the text of another's result */
    PAIR(AMPERE, "!argument") {
        ptx_raw(k, bad ? "mov.u32 $2, $1;" : "mov.u32 $0, $1;", 1, &tid, 1, &u32, &x);
        out(x);
    }

    /* the arrival of the first round is never waited for by the producer */
    PAIR(HOPPER, "order") {
        make(1, 128);
        BLOCK(128);
        i = FOR(n);
        IF(one);
        if (!bad) wait_val(ptx_off(bar, 8), flip(low(i, 1)));
        fetch(sh, bar);
        END;
        wait_val(bar, low(i, 1));
        out(LD(mine, 0));
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
    }

    /* the fence before what it is for */
    PAIR(HOPPER, "proxy") {
        if (bad) proxy_fence();
        ST(mine, 0, n);
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        ptx_bulk_store(k, q, sh, I(512));
        bulk_commit();
        bulk_wait(0);
        END;
    }

    /* more registers than the others have left */
    PAIR(HOPPER, "!register-cap") {
        BLOCK(256);
        ptx_max_registers(k, 128);
        IF(LT(tid, U(128)));
        ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(bad ? 104 : 40));
        ptx_else(k);
        ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(216));
        END;
        out(n);
    }

    /* the sum of a block by its first warp, which has not all */
    PAIR(AMPERE, "race") {
        BLOCK(256);
        x = wsum(n);
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

    /* the columns of a padded tile by the width of one that is not */
    PAIR(AMPERE, "unwritten") {
        ptx_require_block(k, 32, 32, 1);
        z = ptx_shared(k, "tile", PTX_U32, 32 * 33, 4);
        y = ptx_tid_y(k);
        ST(AT(z, ptx_mad(k, y, U(bad ? 32 : 33), tid)), 0, n);
        BAR;
        out(LD(AT(z, ptx_mad(k, tid, U(33), y)), 0));
    }

    /* a stencil whose rim is of the wrong side */
    PAIR(AMPERE, "unwritten") {
        BLOCK(64);
        z = ptx_shared(k, "line", PTX_U32, 66, 4);
        ST(AT(z, tid), 4, n);
        IF(EQ(tid, zero));
        ST(z, 0, n);
        if (!bad) ST(z, 65 * 4, n);
        END;
        BAR;
        out(ADD(LD(AT(z, tid), 0), LD(AT(z, tid), 8)));
    }
}

/* What all threads do at one place of global memory, and handles of before a reset. */
static void one_place(void) {
    ptx_kernel *g;

    /* the index leaves the thread out */
    PAIR(AMPERE, "race") {
        x = ptx_mul(k, ptx_ctaid_x(k), ptx_ntid_x(k));
        if (!bad) x = ADD(x, tid);
        ST(AT(q, x), 0, LD(AT(p, tid), 0));
    }

    /* a sum of all threads without an atomic */
    PAIR(AMPERE, "race") {
        x = LD(AT(p, tid), 0);
        if (!bad) IF(EQ(tid, zero));
        ST(q, 0, ADD(LD(q, 0), x));
        if (!bad) END;
    }

    /* the same value of all, or a block of one thread: nothing is lost */
    PAIR(AMPERE, "race") ST(AT(q, ptx_ctaid_x(k)), 0, bad ? tid : n);
    PAIR(AMPERE, "") ST(q, 0, tid);
    PAIR(AMPERE, "race") {
        if (!bad) BLOCK(1);
        ST(q, 0, ADD(LD(q, 0), tid));
    }

    /* what is given to the cache by lines of 128 bytes */
    PAIR(AMPERE, "align") ptx_op2(k, PTX_DISCARD, 0, ptx_off(q, bad ? 64 : 128), I(128));
    PAIR(AMPERE, "align") ptx_op2(k, PTX_APPLYPRIORITY, 0, ptx_off(q, bad ? 64 : 128), I(128));

    /* inc to fewer registers than every thread has */
    PAIR(HOPPER, "!register-cap") {
        BLOCK(128);
        ptx_max_registers(k, 168);
        if (!bad) ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(40));
        ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(48));
    }

    /* a barrier that no block has, in raw text */
    PAIR(AMPERE, "!range") RAW0(bad ? "bar.sync 16;" : "bar.sync 15;");
    PAIR(AMPERE, "!range") {
        x = U(bad ? 16 : 15);
        ptx_raw(k, "barrier.sync $0;", 1, &x, 0, NULL, NULL);
    }

    /* a vector that is added in one piece */
    PAIR(HOPPER, "align") {
        v4[0] = ptx_off(q, bad ? 4 : 8);
        v4[1] = v4[2] = ptx_f32(1);
        ptx_opn(k, PTX_RED_VECTOR, PTX_ATOM_ADD, PTX_F32, PTX_NONE, 3, v4, 0, NULL);
    }

    /* an index wider than its address */
    PAIR(AMPERE, "!type") {
        x = bad ? ptx_cvt(k, PTX_U64, tid) : tid;
        ST(AT(sh, x), 0, n);
    }

    /* two atomics in one, and cas with one value */
    PAIR(AMPERE, "!modifier") ptx_atom(k, PTX_ATOM_ADD | (bad ? PTX_ATOM_MAX : 0), ptx_at(q, 0), n);
    PAIR(AMPERE, "!modifier") {
        if (bad)
            ptx_atom(k, PTX_ATOM_CAS, ptx_at(q, 0), n);
        else
            ptx_atom_cas(k, ptx_at(q, 0), n, U(0));
    }

    /* a function, and a kernel, of before a reset */
    PAIR(AMPERE, "!foreign") {
        g = ptx_func(m, "g", PTX_NONE);
        ptx_ret(g);
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_call(k, g, 0, NULL);
    }
    PAIR(AMPERE, "!foreign") {
        g = ptx_func(m, "g", PTX_NONE);
        ptx_ret(g);
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_func_address(k, g);
    }
    PAIR(AMPERE, "!foreign") {
        g = ptx_entry(m, "g");
        if (bad) ptx_module_reset(m), k = ptx_entry(m, "k");
        ptx_ret(g);
    }
}

int main(void) {
    lanes();
    rounds();
    swaps();
    stages();
    carries();
    clusters();
    tensors();
    cells();
    barriers();
    texts();
    others();
    seconds();
    one_place();
    return check_end();
}
