/* test_pitfalls.c - mistakes that real kernels are made with, each beside the kernel made right: the one is
 * refused or advised by that name, of the other nothing is said.
 *
 *   cc -std=c99 tests/test_pitfalls.c -o test_pitfalls -lm && ./test_pitfalls */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "pitfall.h"

#include <math.h>

#define FOR(a, b, c) ptx_for(k, a, b, c)

static void bar_n(int number, int count) { ptx_op2(k, PTX_BAR_SYNC, 0, I(number), I(count)); }
static void fetch_sh(void) {
    IF(EQ(tid, zero));
    fetch(sh, bar);
    END;
}

/* Conditions that are decided before the kernel runs, and registers beyond what .maxnreg leaves. */
static void decided(void) {
    ptx_val x, v[60];
    int i, count;
    PAIR(AMPERE, "idle") {
        IF(LT(tid, bad ? tid : n));
        out(n);
        END;
    }
    PAIR(AMPERE, "idle") {
        x = ptx_rem(k, tid, I(8));
        IF(EQ(x, bad ? I(8) : I(7)));
        out(n);
        END;
    }
    PAIR(AMPERE, "idle") {
        x = low(tid, 7);
        IF(bad ? ptx_setp(k, PTX_GT, x, I(7)) : ptx_setp(k, PTX_GE, x, I(7)));
        out(n);
        END;
    }
    for (i = 0; i < 7; i++)
        PAIR(AMPERE, "idle") { /* the most that these make, and one less */
            static const uint32_t most[] = {255, 65535, 32, 15, 7, 1023, 63};
            x = i == 0   ? ptx_ld(k, PTX_U8, ptx_at(p, 0))
                : i == 1 ? ptx_cvt(k, PTX_U32, ptx_ld(k, PTX_U16, ptx_at(p, 0)))
                : i == 2 ? ptx_popc(k, n)
                : i == 3 ? ptx_shr(k, n, I(28))
                : i == 4 ? ptx_min(k, n, U(7))
                : i == 5 ? ptx_tid_y(k)
                         : ptx_tid_z(k);
            IF(ptx_setp(k, PTX_GT, x, U(most[i] - !bad)));
            out(n);
            END;
        }
    PAIR(AMPERE, "idle") out(ptx_shfl_bfly(k, tid, bad ? I(8) : I(4), I(0x181f), FULL)); /* segments of 8 */
    PAIR(AMPERE, "pressure") {
        count = bad ? 60 : 12;
        ptx_max_registers(k, 32);
        for (i = 0; i < count; i++) v[i] = LD(p, 4 * i);
        for (x = v[0], i = 1; i < count; i++) x = ptx_add(k, x, v[i]);
        out(x);
    }
    PAIR(HOPPER, "pressure") { /* what setmaxnreg.inc gives counts */
        ptx_max_registers(k, 24);
        ptx_op1(k, bad ? PTX_SETMAXNREG_DEC : PTX_SETMAXNREG_INC, 0, bad ? I(24) : I(240));
        for (i = 0; i < 60; i++) v[i] = LD(p, 4 * i);
        for (x = v[0], i = 1; i < 60; i++) x = ptx_add(k, x, v[i]);
        out(x);
    }
}

/* Loops, variables and arrays that do nothing, or no good. */
static void idle(void) {
    ptx_val x, c;
    ptx_var a;
    PAIR(AMPERE, "idle") { /* the condition is of the number that it had before the loop */
        a = ptx_var_new(k, zero);
        x = ptx_get(k, a);
        ptx_loop(k);
        if (!bad) x = ptx_get(k, a);
        c = LT(x, n);
        ptx_while(k, c);
        ST(p, 0, n);
        ptx_set(k, a, ptx_add(k, x, I(1)));
        END;
        out(ptx_get(k, a));
    }
    PAIR(AMPERE, "idle") {
        a = ptx_var_new(k, zero);
        FOR(U(0), n, U(1));
        ptx_set(k, a, tid);
        END;
        if (!bad) out(ptx_get(k, a));
    }
    PAIR(AMPERE, "unwritten") {
        x = ptx_local(k, "own", PTX_U32, 8, 4);
        if (!bad) ST(AT(x, tid), 0, n);
        out(LD(x, 4));
    }
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST, bad ? ptx_f32(1.5) : ptx_f32(1));
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST, bad ? ptx_f32(0) : ptx_f32(0.5));
}

/* Shared memory at places that the data choose, or that some warp shares with another. */
static void places(void) {
    ptx_val x, v[4];
    int which;
    PAIR(AMPERE, "race") { /* bins are counted up while others still clear them */
        ST(mine, 0, zero);
        if (!bad) BAR;
        x = low(LD(AT(p, tid), 0), 255);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, x), 0), U(1));
        BAR;
        ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(q, tid), 0), LD(mine, 0));
    }
    for (which = 0; which < 2; which++)
        PAIR(AMPERE, "race") { /* counted up by a load and a store; in bins of each thread's own is right */
            ST(mine, 0, zero);
            BAR;
            x = low(LD(AT(p, tid), 0), 7);
            if (!bad && which) x = ptx_mad(k, x, U(128), tid);
            x = AT(sh, x);
            if (bad || which) ST(x, 0, ptx_add(k, LD(x, 0), I(1)));
            else
                ptx_red(k, PTX_ATOM_ADD, ptx_at(x, 0), U(1));
            BAR;
            ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(q, tid), 0), LD(mine, 0));
        }
    PAIR(AMPERE, "race") ST(AT(sh, bad ? lane : tid), 0, tid), BAR, out(LD(sh, 0));
    PAIR(AMPERE, "race") { /* what is loaded differs too */
        x = LD(AT(p, bad ? tid : lane), 0);
        ST(AT(sh, lane), 0, x);
        BAR;
        out(LD(sh, 0));
    }
    PAIR(AMPERE, "race") { /* slices that overlap */
        BLOCK(128);
        x = ptx_mul(k, warp, U(bad ? 16 : 32));
        x = AT(sh, ptx_add(k, x, lane));
        ST(x, 0, tid);
        out(n);
    }
    PAIR(AMPERE, "align") { /* rows of 33 words: aligned for the first warp alone */
        ST(mine, 0, n);
        BAR;
        x = ptx_mad(k, warp, U(bad ? 33 : 36), ptx_shl(k, lane, I(2)));
        ptx_ld_vec(k, PTX_F32, 4, ptx_at(AT(sh, x), 0), v);
        ptx_st(k, PTX_F32, ptx_at(AT(q, tid), 0), v[0]);
    }
}

static void barriers(void) {
    PAIR(AMPERE, "order") { /* all come, and it opens four times */
        BLOCK(256);
        bar_n(1, bad ? 64 : 256);
    }
    PAIR(AMPERE, "order") { /* one number for two purposes */
        BLOCK(128);
        IF(LT(tid, I(64)));
        bar_n(1, 64);
        ST(mine, 0, n);
        ptx_else(k);
        bar_n(bad ? 1 : 2, 64);
        ST(mine, 0, n);
        END;
    }
    PAIR(AMPERE, "race") {
        ST(mine, 0, n);
        if (bad) ptx_bar_warp_sync(k, FULL);
        else
            BAR;
        out(LD(AT(sh, ptx_xor(k, tid, I(32))), 0));
    }
}

/* cp.async, of which some round commits no group. */
static void groups(void) {
    ptx_val i, next, at;
    PAIR(AMPERE, "race race") {
        copy(0), commit();
        i = FOR(U(0), n, U(1));
        next = ptx_add(k, i, I(1));
        at = ptx_add(k, wide, ptx_shl(k, low(next, 1), I(12)));
        IF(LT(next, n));
        ptx_cp_async_16(k, at, p);
        if (bad) commit();
        END;
        if (!bad) commit();
        wait_for(1);
        BAR;
        at = ptx_add(k, wide, ptx_shl(k, low(i, 1), I(12)));
        out(LD(at, 16));
        BAR;
        END;
        wait_for(0);
    }
}

static void mbarriers(void) {
    ptx_val c, state;
    PAIR(HOPPER, "order") { /* bytes are expected, and nobody arrives */
        make(1, 1);
        IF(EQ(tid, zero));
        if (bad) ptx_op2(k, PTX_MBARRIER_EXPECT_TX, PTX_RELAXED | PTX_CTA, bar, I(1024));
        else
            ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_bulk_load(k, sh, p, I(1024), bar);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
    }
    PAIR(HOPPER, "order") make(bad ? 128 : 1, 1), fetch_sh(), wait_on(bar, 0), out(LD(mine, 0));
    PAIR(HOPPER, "order") make(1, 1), fetch_sh(), wait_on(bad ? ptx_off(bar, 8) : bar, 0), out(LD(mine, 0));
    PAIR(HOPPER, "order") { /* left while it is not over */
        make(1, 1), fetch_sh();
        ptx_loop(k);
        c = ptx_mbarrier_try_wait(k, bar, U(0));
        ptx_while(k, bad ? c : ptx_inv(c));
        END;
        out(LD(mine, 0));
    }
    PAIR(HOPPER, "order") { /* tried once, and a nap */
        make(1, 1), fetch_sh();
        if (!bad) ptx_loop(k);
        c = ptx_mbarrier_try_wait(k, bar, U(0));
        if (bad) ptx_if(k, ptx_inv(c));
        else
            ptx_while(k, ptx_inv(c));
        ptx_nanosleep(k, I(20));
        END;
        out(LD(mine, 0));
    }
    PAIR(HOPPER, "order") { /* asked once, and then in a loop, is right */
        make(1, 1), fetch_sh();
        c = ptx_mbarrier_try_wait(k, bar, U(0));
        ptx_if(k, ptx_inv(c));
        if (bad) ptx_nanosleep(k, I(20));
        else
            wait_on(bar, 0);
        END;
        out(LD(mine, 0));
    }
    PAIR(HOPPER, "order") {
        make(1, 1);
        IF(EQ(tid, zero));
        state = ptx_mbarrier_arrive(k, bar);
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        ptx_loop(k);
        c = ptx_mbarrier_test_wait(k, bad ? ptx_off(bar, 8) : bar, state);
        ptx_while(k, ptx_inv(c));
        END;
        END;
    }
    PAIR(HOPPER, "order") make(1, 1), fetch_sh(), ST(AT(bar, zero), bad ? 0 : 16, n), wait_on(bar, 0);
    PAIR(HOPPER, "order") { /* made twice */
        make(128, 1);
        ptx_mbarrier_arrive(k, bar);
        wait_on(bar, 0);
        BAR;
        IF(EQ(tid, zero));
        if (!bad) ptx_mbarrier_inval(k, bar);
        ptx_mbarrier_init(k, bar, I(128));
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_on(bar, 0);
    }
    PAIR(HOPPER, "order") { /* made in each round, and undone in an if before, or not */
        FOR(U(0), n, U(1));
        IF(EQ(tid, zero));
        ptx_mbarrier_init(k, bar, I(128));
        ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
        END;
        BAR;
        ptx_mbarrier_arrive(k, bar);
        wait_on(bar, 0);
        BAR;
        IF(EQ(tid, zero));
        if (!bad) ptx_mbarrier_inval(k, bar);
        else
            out(n);
        END;
        BAR;
        END;
    }
}

static void bulk_stores(void) {
    ptx_val v[2];
    PAIR(HOPPER, "race") { /* the next round stores over what is being read */
        FOR(U(0), n, U(1));
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(EQ(tid, zero));
        ptx_bulk_store(k, q, sh, I(1024));
        ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
        if (!bad) ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(0));
        END;
        BAR;
        END;
        IF(EQ(tid, zero));
        ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0));
        END;
    }
    PAIR(HOPPER, "unwaited") { /* one thread begins it, another waits */
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        IF(EQ(tid, zero));
        ptx_bulk_store(k, q, sh, I(1024));
        ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
        END;
        IF(EQ(tid, bad ? I(32) : I(0)));
        ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0));
        END;
    }
    PAIR(HOPPER, "proxy") {
        v[0] = wide, v[1] = n;
        PLAIN(PTX_STMATRIX, 2, v);
        if (!bad) proxy_fence();
        BAR;
        IF(EQ(tid, zero));
        ptx_bulk_store(k, q, sh, I(1024));
        ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
        ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0));
        END;
    }
}

static void start_sums(void) {
    int i;
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
}
static void use_sums(void) { ptx_st(k, PTX_F32, ptx_at(q, 0), ptx_get(k, sums[0])); }

static void products(void) {
    PAIR(HOPPER, "race") { /* the tile is given back before it is read */
        start_sums();
        make(1, 128);
        FOR(U(0), n, U(1));
        fetch_sh();
        wait_val(bar, zero);
        issue(sh);
        if (bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        product_wait(0);
        if (!bad) ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        BAR;
        ptx_break(k);
        END;
        use_sums();
        wait_on(ptx_off(bar, 8), 0);
    }
    PAIR(HOPPER, "race") { /* and stored over */
        start_sums();
        FOR(U(0), n, U(1));
        ST(mine, 0, n);
        proxy_fence();
        BAR;
        issue(sh);
        if (!bad) product_wait(0);
        BAR;
        END;
        product_wait(0);
        use_sums();
    }
    PAIR(HOPPER, "!align") start_sums(), issue(ptx_off(sh, bad ? 8 : 1024)), product_wait(0), use_sums();
}

static void clusters(void) {
    ptx_val x, v[5];
    PAIR(HOPPER, "order") { /* bytes there, and their mbarrier here */
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        meet();
        v[0] = ptx_mapa(k, mine, I(1)), v[1] = n;
        v[2] = bad ? bar : ptx_mapa(k, bar, I(1));
        IF(EQ(tid, zero));
        ptx_mbarrier_arrive_expect(k, bar, I(4));
        ptx_opn(k, PTX_ST_ASYNC, 0, PTX_U32, PTX_NONE, 3, v, 0, NULL);
        END;
        wait_on(bar, 0);
        out(LD(sh, 0));
        meet();
    }
    PAIR(HOPPER, "race") { /* others store here, and no barrier of the cluster follows */
        ptx_require_cluster(k, 2, 1, 1);
        meet();
        x = ptx_mapa(k, mine, ptx_xor(k, ptx_sreg(k, PTX_CLUSTER_CTARANK), I(1)));
        ST(x, 0, n);
        if (bad) BAR;
        else
            meet();
        out(LD(mine, 0));
        meet();
    }
    PAIR(HOPPER, "race") { /* an arrival that publishes nothing */
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, bad ? PTX_RELAXED : PTX_RELEASE);
        ptx_cluster_wait(k);
        out(LD(ptx_mapa(k, mine, I(1)), 0));
        meet();
    }
    PAIR(HOPPER, "race") { /* is right behind a fence */
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        if (!bad) ptx_fence(k, PTX_ACQ_REL | PTX_CLUSTER);
        ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, PTX_RELAXED);
        ptx_cluster_wait(k);
        out(LD(ptx_mapa(k, mine, I(1)), 0));
        meet();
    }
    PAIR(HOPPER, "order") { /* another block's mbarrier, before it has one */
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        if (!bad) meet();
        IF(EQ(tid, zero));
        ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, ptx_mapa(k, bar, I(1)));
        END;
        wait_on(bar, 0);
        meet();
    }
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        meet();
        v[0] = sh, v[1] = p, v[2] = I(1024), v[3] = bar, v[4] = bad ? I(0xf) : I(3);
        IF(EQ(tid, zero));
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v, 0, NULL);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        meet();
    }
    PAIR(HOPPER, "!address") { /* what ptx_mapa gives, as an address in this block */
        ptx_require_cluster(k, 2, 1, 1);
        ST(mine, 0, n);
        meet();
        x = ptx_mapa(k, sh, I(1));
        out(LD(bad ? ptx_ptr(x, PTX_SHARED) : x, 0));
        meet();
    }
}

static ptx_val tensor(void) {
    IF(EQ(warp, zero));
    ptx_op2(k, PTX_TCGEN05_ALLOC, 0, sh, I(128));
    END;
    BAR;
    return LD(sh, 0);
}
static void tensor_end(ptx_val at, ptx_mods group) {
    BAR;
    IF(EQ(warp, zero));
    ptx_op2(k, PTX_TCGEN05_DEALLOC, group, at, I(128));
    END;
}
static void tensor_load(ptx_val at) {
    ptx_val x;
    ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &at, 1, &x);
    ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0);
    out(ptx_as(x, PTX_U32));
}

static void tensor_memory(void) {
    ptx_val at, v[5];
    int which;
    for (which = 0; which < 2; which++) /* a product by all threads, and one that nobody can wait for */
        PAIR(BLACKWELL, which ? "order" : "race") {
            at = tensor();
            make(1, 1);
            v[0] = at, v[1] = v[2] = ptx_mov(k, ptx_u64(0x4000)), v[3] = zero, v[4] = NE(n, zero);
            IF(bad && !which ? EQ(n, zero) : EQ(tid, zero));
            if (bad && which) PLAIN(PTX_TCGEN05_MMA_F16, 5, v);
            else
                PLAIN(PTX_TCGEN05_MMA_F16, 5, v), ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar);
            END;
            if (!bad || !which) wait_on(bar, 0);
            tensor_load(at);
            tensor_end(at, 0);
        }
    PAIR(BLACKWELL, "!modifier") tensor_end(tensor(), bad ? PTX_CTA_GROUP_2 : PTX_CTA_GROUP_1);
    PAIR(BLACKWELL, "order") {
        at = tensor();
        v[0] = at, v[1] = n;
        PLAIN(PTX_TCGEN05_ST_32X32B, 2, v);
        if (!bad) ptx_op0(k, PTX_TCGEN05_WAIT_ST, 0);
        tensor_load(at);
        tensor_end(at, 0);
    }
}

/* Among blocks. */
static void scopes(void) {
    ptx_val x, y;
    int which;
    for (which = 0; which < 2; which++)
        PAIR(AMPERE, "order") {
            ptx_mods first = bad && !which ? PTX_CTA : PTX_GPU, second = bad && which ? PTX_CTA : PTX_GPU;
            IF(EQ(tid, zero));
            ptx_red(k, PTX_ATOM_ADD | PTX_RELEASE | first, ptx_at(p, 0), U(1));
            ptx_loop(k);
            x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_ACQUIRE | second));
            ptx_while(k, LT(x, n));
            END;
            END;
            BAR;
        }
    for (which = 0; which < 2; which++)
        PAIR(AMPERE, "race") { /* the last block sums up what the others have stored */
            y = AT(q, ptx_ctaid_x(k));
            IF(EQ(tid, zero));
            ST(y, 0, n);
            if (!bad && !which) ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
            x = ptx_atom(k, PTX_ATOM_ADD | (bad || !which ? 0 : PTX_ACQ_REL | PTX_GPU), ptx_at(p, 0), U(1));
            ST(sh, 0, x);
            END;
            BAR;
            IF(EQ(ptx_uniform(k, LD(sh, 0)), n));
            out(LD(AT(q, tid), 0));
            END;
        }
    PAIR(AMPERE, "race") { /* a lock */
        IF(EQ(tid, zero));
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 0), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
        y = ptx_ld(k, PTX_U32, ptx_with(ptx_at(q, 0), PTX_VOLATILE));
        ptx_st(k, PTX_U32, ptx_with(ptx_at(q, 0), PTX_VOLATILE), ptx_add(k, y, I(1)));
        ptx_st(k, PTX_U32, bad ? ptx_at(p, 0) : ptx_with(ptx_at(p, 0), PTX_RELEASE | PTX_GPU), U(0));
        END;
    }
}

static void addresses(void) {
    ptx_val x, y;
    PAIR(AMPERE, "!address") {
        ST(mine, 0, n);
        BAR;
        x = ptx_cvta(k, sh);
        if (bad) y = ptx_ptr(ptx_cvt(k, PTX_U32, x), PTX_SHARED);
        else
            y = ptx_cvta_to(k, PTX_SHARED, x);
        out(LD(y, 0));
    }
    PAIR(AMPERE, "!address") {
        ST(mine, 0, n);
        BAR;
        out(LD(ptx_cvta_to(k, PTX_SHARED, ptx_cvta(k, bad ? p : sh)), 0));
    }
}

/* What goes into products: numbers where registers must be, scales and selectors beyond what there is. */
static void fragments(void) {
    ptx_val f = ptx_f32(0), v[20], o[8];
    ptx_var total[4];
    int i, which;
    PAIR(AMPERE, "!type") {
        v[0] = v[1] = ptx_as(n, PTX_B32), v[2] = bad ? I(0) : v[0];
        for (i = 3; i < 7; i++) v[i] = f;
        ptx_opn(k, PTX_MMA_M16N8K8_F32, 0, PTX_F16, PTX_NONE, 7, v, 4, o);
    }
    PAIR(AMPERE, "!type") { /* metadata */
        for (i = 0; i < 4; i++) v[i] = ptx_as(n, PTX_B32), v[4 + i] = f;
        v[8] = bad ? I(5) : v[0], v[9] = I(0);
        ptx_opn(k, PTX_MMA_SP_M16N8K16_F32, 0, PTX_F16, PTX_NONE, 10, v, 4, o);
    }
    for (which = 0; which < 3; which++)
        PAIR(PTX_SM_A(120), "!range") {
            for (i = 0; i < 16; i++) v[i] = i > 5 && i < 10 ? f : ptx_as(n, PTX_B32);
            v[11] = I(bad && which == 0 ? 1 : 2), v[12] = I(bad && which == 1 ? 2 : 1);
            v[14] = I(0), v[15] = I(bad && which == 2 ? 4 : 3);
            ptx_opn(k, PTX_MMA_MXF4, 0, PTX_NONE, PTX_NONE, 16, v, 4, o);
        }
    PAIR(PTX_SM_A(120), "!range") { /* all four threads are asked: there is nothing to select */
        for (i = 0; i < 20; i++) v[i] = i > 7 && i < 12 ? f : ptx_as(n, PTX_B32);
        v[13] = I(bad), v[15] = v[16] = v[18] = v[19] = I(0);
        ptx_opn(k, PTX_MMA_SPO_MXF4NVF4_4X, 0, PTX_NONE, PTX_NONE, 20, v, 4, o);
    }
    for (which = 0; which < 2; which++)
        PAIR(HOPPER, which ? "!type" : "!range") { /* a selector of 2, total in integers */
            for (i = 0; i < 4; i++) total[i] = ptx_var_new(k, bad && which ? U(0) : f);
            v[0] = v[1] = ptx_mov(k, ptx_u64(0)), v[2] = ptx_as(n, PTX_B32), v[3] = I(bad && !which ? 2 : 1);
            v[4] = NE(n, zero), v[5] = v[6] = I(1), v[7] = v[8] = I(0);
            ptx_op0(k, PTX_WGMMA_FENCE, 0);
            ptx_wgmma(k, PTX_WGMMA_SP_F32, 0, PTX_F16, PTX_NONE, 4, total, 9, v);
            ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
            ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(0));
            for (i = 0; i < 4; i++) out(ptx_as(ptx_get(k, total[i]), PTX_U32));
        }
}

/* Operands of a type, width or size that only this instruction has not. */
static void slots(void) {
    ptx_val x, at, wide_, v[6];
    int which;
    PAIR(AMPERE, "!type") ptx_op2(k, PTX_REDUX_AND, 0, bad ? ptx_f32(1) : U(1), FULL);
    PAIR(AMPERE, "!type") ptx_st(k, PTX_B8, ptx_at(p, 0), bad ? ptx_f32(1) : I(1));
    PAIR(AMPERE, "!type") {
        v[0] = ptx_param(k, "surface", PTX_U64), v[1] = n, v[2] = bad ? ptx_f32(1) : n;
        ptx_opn(k, PTX_SUST_1D, 0, PTX_B8, PTX_NONE, 3, v, 0, NULL);
    }
    for (which = 0; which < 2; which++) /* 32 bytes at once */
        PAIR(AMPERE, "!vector") {
            v[0] = ptx_param(k, "surface", PTX_U64), v[1] = n;
            if (which) ptx_opn(k, PTX_SULD_1D, 0, PTX_B64, PTX_NONE, 2, v, bad ? 4 : 2, v + 2);
            else
                ptx_opn(k, PTX_LDU, 0, PTX_U64, PTX_NONE, 1, &p, bad ? 4 : 2, v + 2);
        }
    for (which = 0; which < 2; which++)
        PAIR(PTX_SM(100), "!range")
            ptx_op3(k, PTX_ST_BULK, 0, sh, ptx_u64(bad ? (which ? 16777224 : 12) : 16), I(0));
    PAIR(BLACKWELL, "!type") {
        make(1, 1);
        IF(EQ(tid, zero));
        ptx_op2(k, PTX_TCGEN05_COMMIT_MULTICAST, 0, bar, bad ? I(3) : ptx_mov(k, ptx_u16(3)));
        END;
        wait_on(bar, 0);
    }
    PAIR(HOPPER, "!range") ptx_op2(k, PTX_BULK_PREFETCH, 0, p, I(bad ? 1 << 20 : (1 << 20) - 16));
    for (which = 31; which < 34; which++) /* the width is not what it wants; the first of a kind is kept */
        PAIR(AMPERE, "!range") {
            x = ptx_shfl_bfly(k, tid, I(1), I(31), FULL);
            out(ptx_shfl_bfly(k, x, I(2), I(bad ? which == 31 ? 255 : which : 31), FULL));
        }
    for (which = 0; which < 2; which++) /* rows of 8 bytes, and a tile at 8 */
        PAIR(AMPERE, which ? "!align" : "!range") {
            ptx_val frag[8], from[2];
            ST(AT(sh, tid), 0, tid), BAR;
            from[0] = ptx_off(sh, bad && which ? 8 : 32), from[1] = I(bad && !which ? 4 : 24);
            ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, 0, PTX_F16, PTX_NONE, 2, from, 8, frag);
        }
    PAIR(HOPPER, "!range") ptx_op2(k, PTX_TENSORMAP_REPLACE_RANK, 0, sh, I(bad ? 5 : 4));
    for (which = 0; which < 3; which++) /* behind one of the same kind that is right */
        PAIR(HOPPER, which ? "!target" : "!range") {
            static const ptx_op_id op[] = {PTX_TENSORMAP_REPLACE_RANK, PTX_TENSORMAP_REPLACE_ELEMTYPE,
                                           PTX_TENSORMAP_REPLACE_SWIZZLE};
            static const int most[] = {4, 12, 3};
            ptx_op2(k, op[which], 0, sh, I(most[which])), ptx_op2(k, op[which], 0, sh, I(1));
            ptx_op2(k, op[which], 0, sh, I(most[which] + bad));
        }
    PAIR(HOPPER, "!align") ptx_op2(k, PTX_TENSORMAP_REPLACE_RANK, 0, ptx_off(sh, bad ? 64 : 128), I(1));
    PAIR(AMPERE, "!range") ptx_op1(k, PTX_PREFETCH_L2, 0, ptx_off(p, bad ? (int64_t)1 << 33 : 64));
    for (which = 1; which < 3; which++) /* numbers among the parts of a matrix, and nothing but numbers */
        PAIR(AMPERE, "!type") {
            ptx_val part[10], sum[4];
            int i;
            for (i = 0; i < 10; i++)
                part[i] = i < 6 ? i < which || (bad && i < 4) ? ptx_b32(0) : ptx_as(ptx_mov(k, n), PTX_B32)
                                : ptx_f32(0);
            ptx_opn(k, PTX_MMA_M16N8K16_F32, 0, PTX_F16, PTX_NONE, 10, part, 4, sum);
            out(ptx_as(sum[0], PTX_U32));
        }
    PAIR(AMPERE, "!range") ptx_nanosleep(k, I(bad ? -1 : 1000000));
    PAIR(AMPERE, "!type") {
        x = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
        out(ptx_ld(k, PTX_U32, ptx_cached(ptx_at(q, 0), bad ? p : x)));
    }
    PAIR(AMPERE, "!type") {
        wide_ = ptx_mov(k, ptx_f32(1));
        x = ptx_selp(k, bad ? wide_ : ptx_as(wide_, PTX_U32), n, NE(n, zero));
        out(ptx_as(x, PTX_U32));
    }
    PAIR(AMPERE, "!type") out(ptx_op3(k, PTX_SLCT, 0, bad ? ptx_f32(1) : U(1), n, ptx_as(tid, PTX_S32)));
    PAIR(AMPERE, "!address") {
        x = ptx_cvta(k, bad ? n : q);
        out(LD(x, 0));
    }
    PAIR(AMPERE, "!address") out(LD(ptx_add(k, q, bad ? ptx_add(k, p, I(16)) : ptx_u64(16)), 0));
    PAIR(AMPERE, "!address") { /* what a mask leaves is an address, or the rest of one */
        ST(AT(sh, tid), 0, tid), BAR;
        x = ptx_and(k, wide, I(112)), at = ptx_and(k, wide, I(bad ? -128 : 127));
        out(LD(ptx_add(k, sh, at), 0)), out(x);
    }
    PAIR(AMPERE, "!address") out(ptx_add(k, sh, bad ? mine : ptx_ptr(mine, PTX_GENERIC)));
    PAIR(BLACKWELL, "!type") {
        x = ptx_op2(k, bad ? PTX_REDUX_AND : PTX_REDUX_MIN, 0, ptx_f32(2), FULL);
        out(ptx_as(x, PTX_U32));
    }
    PAIR(AMPERE, "!address") { /* no kernel writes its own parameters */
        x = ptx_param_bytes(k, "block", 16, 8);
        if (bad) ST(ptx_cvta(k, x), 0, n);
        else
            out(LD(ptx_cvta(k, x), 0));
    }
    PAIR(HOPPER, "!range") {
        ptx_require_cluster(k, 2, 1, 1);
        make(1, 1);
        meet();
        v[0] = sh, v[1] = p, v[2] = I(1024), v[3] = bar, v[4] = I(bad ? 0 : 3);
        IF(EQ(tid, zero));
        ptx_mbarrier_arrive_expect(k, bar, I(1024));
        ptx_opn(k, PTX_BULK_G2S, PTX_MULTICAST, PTX_NONE, PTX_NONE, 5, v, 0, NULL);
        END;
        wait_on(bar, 0);
        out(LD(mine, 0));
        meet();
    }
}

/* Directives twice, or for more blocks than any multiprocessor has; addresses behind what they point to. */
static void directives(void) {
    static const struct {
        unsigned sm, blocks;
    } most[] = {{75, 16}, {86, 16}, {88, 16}, {89, 24}, {120, 24}};
    ptx_variable_desc desc;
    ptx_symbol to, in;
    unsigned i;
    for (i = 0; i < 5; i++)
        PAIR(PTX_SM(most[i].sm), "!launch-limit") ptx_launch_bounds(k, 32, most[i].blocks + (unsigned)bad);
    PAIR(AMPERE, "!launch-limit") ptx_launch_bounds(k, 128, 2), ptx_launch_bounds(k, bad ? 256 : 128, 2);
    PAIR(AMPERE, "!launch-limit") BLOCK(128), BLOCK(bad ? 64 : 128);
    PAIR(AMPERE, "!argument") {
        memset(&desc, 0, sizeof desc);
        desc.name = "to", desc.space = PTX_GLOBAL, desc.type = PTX_U64, desc.count = 4;
        to = ptx_variable(m, &desc);
        desc.name = "in";
        in = ptx_variable(m, &desc);
        ptx_point(m, in, 0, to, bad ? 33 : 32);
    }
}

/* The address of a function knows what it takes. */
static void indirect(void) {
    ptx_kernel *f;
    ptx_val x, y;
    int which;
    for (which = 0; which < 3; which++)
        PAIR(AMPERE, which == 1 ? "!argument" : "!type") {
            f = ptx_func(m, "f", PTX_U32);
            ptx_return(f, ptx_param(f, "x", PTX_U32));
            x = ptx_func_address(k, f);
            y = bad && which == 0 ? ptx_as(n, PTX_F32) : n;
            y = ptx_call_indirect(k, x, bad && which == 2 ? PTX_F32 : PTX_U32, bad && which == 1 ? 0 : 1, &y);
            out(ptx_as(y, PTX_U32));
        }
}

static void raw(void) {
    static const ptx_type types[1] = {PTX_U32};
    static const char *const unfinished[][2] = {{"{ membar.gl;", "{ membar.gl; }"},
                                                {"membar.gl; }", "{ { membar.gl; } }"},
                                                {"membar.gl; /* {", "membar.gl; /* { */"},
                                                {".pragma \"a;", ".pragma \"nounroll\"; // {"},
                                                {"{ membar.gl; ) }", "{ membar.gl; // )\n}"}};
    ptx_val x[1];
    unsigned i;
    for (i = 0; i < 5; i++)
        PAIR(AMPERE, "!argument") ptx_raw(k, unfinished[i][!bad], 0, NULL, 0, NULL, NULL);
    PAIR(AMPERE, "!argument") {
        ptx_raw(k, bad ? "add.u32 $0, $1, $1" : "add.u32 $0, $1, $1;", 1, &n, 1, types, x);
        out(x[0]);
    }
    PAIR(AMPERE, "!argument") {
        ptx_raw(k, bad ? "st.global.u32 [$1], 0;" : "ld.global.u32 $0, [$1];", 1, &p, 1, types, x);
        out(x[0]);
    }
}

/* The same for what PTX has no such instruction, operands or names for. */
static void raw_words(void) {
    static const struct {
        const char *want, *wrong, *right;
    } texts[] = {
        {"!label", "mov.u32 $0, $1; bra OUT;", "mov.u32 $0, $1; bra OUT; OUT:"},
        {"!label", "L: mov.u32 $0, $1; L:", "{ L: mov.u32 $0, $1; } L:"},
        {"!label", "ld.param.u32 $0, [number];", "ld.param.u32 $0, [n];"},
        {"!label", "mov.u32 $0, %tidx;", "mov.u32 $0, %tid.x;"},
        {"!label", "mov.u32 $0, %r999;", "mov.u32 $0, %envreg7;"},
        {"!label", "{ .reg .u32 a; } mov.u32 a, 1; mov.u32 $0, b;", "{ .reg .u32 a; mov.u32 $0, a; }"},
        {"!name-taken", ".reg .u32 a; mov.u32 $0, 1; .reg .u32 a;",
         ".reg .u32 a; { .reg .u32 a; mov.u32 $0, 1; }"},
        {"!label", "call ($0), nothing, ($1);", "mov.u32 $0, $1; // call nothing"},
        {"!form", "fadd.u32 $0, $1, $1;", "add .u32 $0, $1, $1;"},
        {"!form", "mov.u32 $0, $1; Membar.gl;", "mov.u32 $0, $1; membar.gl;"},
        {"!target", "mov.u32 $0, $1; wgmma.fence.sync.aligned;", "redux.sync.add.u32 $0, $1, -1;"},
        {"!target", "elect.sync $0|%p0, -1;",
         "{ .reg .pred e; vote.sync.any.pred e, 1, -1; mov.u32 $0, $1; }"},
        {"!type", "add.u32 $0, $1;", "add.u32 $0, $1, 0x1f;"},
        {"!type", "add.u64 $0, $1, 1;", "mul.wide.u16 $0, 3, 4;"},
        {"!type", "setp.eq.u32 $0, $1, 0;", "{ .reg .pred e; setp.eq.u32 e, $1, 0; selp.b32 $0, 1, 0, e; }"},
        {"!type", "selp.b32 $0, 1, 0, $1;", "mov.b64 {$0, _}, 5;"},
        {"!type", "mov.u32 $0, 5; @$1 membar.gl;", "mov.u32 $0, 5; @!%p0 membar.gl;"},
        {"!argument", "add.u32 $0 $1, 4;", "add.u32 $0 , $1 , 3 + 4;"},
        {"!argument", "mov.u32 $0, $1;;", "mov.u32 $0, $1; {}"},
        {"!argument", "mov.u32 $0, $1; .target sm_80;", "mov.u32 $0, $1; .pragma \"nounroll\";"},
        {"!address", "ld.u32 $0, [$1];", "ld.shared.u32 $0, [$1];"},
        {"!address", "atom.global.add.u32 $0, [$1 + 4], 1;", "atom.shared.add.u32 $0, [$1 + 4], 1;"}};
    static const ptx_type types[1] = {PTX_U32};
    ptx_val x[1];
    unsigned i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++)
        PAIR(AMPERE, texts[i].want) {
            ptx_raw(k, bad ? texts[i].wrong : texts[i].right, 1, texts[i].want[1] == 'a' ? &sh : &n, 1, types,
                    x);
            out(x[0]);
        }
    PAIR(AMPERE, "!label") { /* from one text to another */
        ptx_raw(k, bad ? "{ BACK: membar.gl; }" : "BACK: membar.gl;", 0, NULL, 0, NULL, NULL);
        ptx_raw(k, bad ? "@$0 bra BEYOND;" : "@$0 bra BACK;", 1, &one, 0, NULL, NULL);
    }
    PAIR(AMPERE, "!label") /* in each turn of the generator */
        for (i = 0; i < 2; i++)
            ptx_raw(k, bad ? "M: membar.gl;" : "{ M: membar.gl; }", 0, NULL, 0, NULL, NULL);
    PAIR(AMPERE, "!address")
        ptx_raw(k, bad ? "st.shared.u32 [$0], 1;" : "st.global.u32 [$0], 1;", 1, &p, 0, NULL, NULL);
}

/* Numbers that an instruction makes nothing of. */
static void numbers(void) {
    ptx_val x, f, h;
    int i;
    PAIR(AMPERE, "number") out(ptx_as(ptx_shl(k, n, ptx_mov(k, U(bad ? 32 : 31))), PTX_U32));
    PAIR(AMPERE, "number") out(ptx_shr(k, n, ptx_add(k, lane, I(bad ? 32 : 1))));
    PAIR(AMPERE, "number") out(ptx_shr(k, n, ptx_as(ptx_or(k, lane, I(bad ? 32 : 16)), PTX_U32)));
    PAIR(AMPERE, "number") out(ptx_bfe(k, n, I(28), I(4))), out(ptx_bfe(k, n, I(28), I(bad ? 5 : 4)));
    PAIR(AMPERE, "number") out(ptx_bfe(k, n, I(28), I(bad ? 0 : 4)));
    PAIR(AMPERE, "number") {
        x = ptx_as(n, PTX_B32);
        out(ptx_as(ptx_bfi(k, x, x, ptx_mov(k, U(bad ? 25 : 24)), I(8)), PTX_U32));
    }
    PAIR(AMPERE, "number") out(ptx_div(k, n, ptx_mov(k, U(!bad))));
    PAIR(AMPERE, "number") out(ptx_rem(k, n, ptx_shr(k, lane, I(bad ? 5 : 4))));
    PAIR(AMPERE, "number") {
        f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
        f = ptx_div(k, f, ptx_mov(k, ptx_f32(!bad)));
        ptx_st(k, PTX_F32, ptx_at(q, 0), f);
    }
    for (i = 0; i < 3; i++)
        PAIR(AMPERE, "number") {
            static const int tables[][2] = {{0xcc, 0xc8}, {0xaa, 0xea}, {0xc0, 0x80}};
            x = ptx_lop3(k, n, tid, lane, I(0x96));
            out(ptx_as(ptx_lop3(k, i == 2 ? x : n, tid, lane, I(tables[i][!bad])), PTX_U32));
            out(ptx_as(ptx_lop3(k, n, tid, n, I(0xb0)), PTX_U32));
            out(ptx_as(ptx_lop3(k, n, tid, U(0), I(0xc0)), PTX_U32));
        }
    PAIR(AMPERE, "number") out(ptx_selp(k, n, bad ? n : tid, one));
    PAIR(AMPERE, "number") out(ptx_selp(k, U(5), bad ? I(5) : I(6), one));
    PAIR(AMPERE, "number") out(ptx_as(ptx_prmt(k, n, tid, I(bad ? 0x7654 : 0x5410)), PTX_U32));
    for (i = 0; i < 2; i++)
        PAIR(AMPERE, "number") { /* what rounds to 0; the first of a kind is kept */
            f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
            f = ptx_add(k, f, ptx_f32(1));
            f = ptx_add(k, f, ptx_f32(bad ? 1e-46 : i ? 0 : 1e-45));
            ptx_st(k, PTX_F32, ptx_at(q, 0), f);
        }
    PAIR(AMPERE, "number") {
        h = ptx_ld(k, PTX_F16, ptx_at(p, 0));
        ptx_st(k, PTX_F16, ptx_at(q, 0), ptx_add(k, h, ptx_f16(bad ? 1e-8 : 6e-8)));
    }
    PAIR(AMPERE, "number") {
        f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
        f = ptx_op2(k, PTX_MUL, bad ? PTX_FTZ : 0, f, ptx_f32(1e-40));
        ptx_st(k, PTX_F32, ptx_at(q, 0), f);
    }
    for (i = 0; i < 5; i++)
        PAIR(PTX_SM(89), "number") { /* conversions of what is known */
            static const double most[][2] = {{-1, 0}, {70000, 65519}, {3e9, 2e9}, {500, 460}, {4e38, 3e38}};
            static const ptx_type to[] = {PTX_U32, PTX_F16, PTX_S32, PTX_E4M3X2, PTX_BF16X2};
            f = ptx_mov(k, ptx_f32(i == 4 ? (bad ? 3.4e38 : 3e38) : most[i][!bad]));
            x = i < 3 ? ptx_cvt(k, to[i], f) : ptx_cvt_pair(k, to[i], ptx_f32(1), f);
            ptx_st(k, to[i], ptx_at(q, 0), x);
        }
    PAIR(AMPERE, "number") {
        f = ptx_sqrt(k, ptx_mov(k, ptx_f32(bad ? -2 : 2)));
        ptx_st(k, PTX_F32, ptx_at(q, 0), f);
    }
    PAIR(AMPERE, "number") ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), U(!bad));
    PAIR(AMPERE, "number") ptx_red(k, PTX_ATOM_AND, ptx_at(p, 0), ptx_b32(bad ? 0xffffffff : 0xfffffffe));
    PAIR(AMPERE, "number") ptx_red(k, PTX_ATOM_INC, ptx_at(p, 0), U(!bad));
    PAIR(AMPERE, "number") {
        f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
        ptx_red(k, PTX_ATOM_ADD, ptx_at(q, 0), bad ? ptx_as(f, PTX_U32) : f);
        ptx_red(k, PTX_ATOM_MAX, ptx_at(q, 4), ptx_as(f, PTX_S32)); /* the order of bits is that of numbers */
    }
}

/* Bits that are read as another format. */
static void formats(void) {
    ptx_val x, f, h;
    int i;
    for (i = 0; i < 4; i++)
        PAIR(AMPERE, "number") {
            f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
            x = i == 0   ? tid
                : i == 1 ? ptx_cvt(k, PTX_U32, f)
                : i == 2 ? ptx_popc(k, n)
                         : ptx_rem(k, n, I(7));
            x = bad ? ptx_as(x, PTX_F32) : ptx_cvt(k, PTX_F32, x);
            ptx_st(k, PTX_F32, ptx_at(q, 0), ptx_mul(k, f, x));
        }
    PAIR(HOPPER, "number") {
        h = ptx_ld(k, PTX_F16X2, ptx_at(p, 0));
        h = ptx_add(k, h, h);
        h = bad ? ptx_as(h, PTX_BF16X2) : h;
        ptx_st(k, ptx_type_of(h), ptx_at(q, 0), ptx_mul(k, h, h));
    }
    PAIR(AMPERE, "number") { /* exponents are added as integers: that is meant */
        f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
        f = ptx_add(k, f, f);
        x = ptx_add(k, ptx_as(f, PTX_U32), ptx_as(ptx_shl(k, n, I(23)), PTX_U32));
        x = bad ? ptx_cvt(k, PTX_U32, f) : x;
        ptx_st(k, PTX_F32, ptx_at(q, 0), ptx_add(k, ptx_as(x, PTX_F32), f));
    }
    for (i = 0; i < 3; i++)
        PAIR(AMPERE, "idle") { /* not equal asks for two numbers, in PTX */
            f = ptx_ld(k, PTX_F32, ptx_at(p, 0));
            IF(i == 0   ? ptx_setp(k, bad ? PTX_NE : PTX_NEU, f, f)
               : i == 1 ? ptx_setp(k, bad ? PTX_NE : PTX_EQU, f, ptx_f32(bad ? NAN : 1))
                        : ptx_setp(k, bad ? PTX_LT : PTX_GE, f, f));
            out(n);
            END;
        }
    PAIR(AMPERE, "idle") {
        x = ptx_as(ptx_ld(k, PTX_U8, ptx_at(p, 0)), PTX_S32);
        IF(LT(x, I(bad ? 0 : 1)));
        out(n);
        END;
    }
    PAIR(AMPERE, "idle") {
        IF(GE(warp, I(bad ? 32 : 31)));
        out(n);
        END;
    }
    PAIR(AMPERE, "idle") {
        ptx_launch_bounds(k, 128, 0);
        IF(GE(tid, I(bad ? 128 : 127)));
        out(n);
        END;
    }
    PAIR(AMPERE, "idle") {
        IF(LT(bad ? n : ptx_as(n, PTX_S32), bad ? zero : ptx_as(zero, PTX_S32)));
        out(n);
        END;
    }
}

/* What ptxas refuses, or falls over. */
static void assembler(void) {
    ptx_val x, v[10], o[2];
    ptx_kernel *other;
    int i;
    for (i = 0; i < 2; i++)
        PAIR(HOPPER, "!type") {
            x = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
            v[0] = v[1] = x;
            x = ptx_pack(k, PTX_B128, 2, v);
            x = ptx_atom_cas(k, ptx_at(p, 0), bad && i ? I(0) : x, bad && !i ? I(0) : x);
            ptx_st(k, PTX_B128, ptx_at(q, 0), x);
        }
    for (i = 0; i < 2; i++)
        PAIR(PTX_SM_A(103), "!type") {
            int j;
            for (j = 0; j < 8; j++) v[j] = ptx_as(ptx_mov(k, n), PTX_B32);
            if (bad) v[6 + i] = I(0);
            ptx_opn(k, PTX_MMA_M16N8K32_F16, 0, PTX_E4M3, PTX_E4M3, 8, v, 2, o);
            out(ptx_as(o[0], PTX_U32));
        }
    PAIR(PTX_SM_F(103), "!target")
        ptx_op2(k, PTX_TENSORMAP_REPLACE_SWIZZLE, 0, sh, I(bad ? 4 : 3));
    for (i = 0; i < 2; i++)
        PAIR(PTX_SM(100), "!modifier") {
            ptx_mem mem = ptx_with(ptx_at(p, 0), PTX_MMIO | PTX_RELAXED | PTX_SYS);
            if (bad) mem = ptx_with(mem, i ? PTX_L2_128B : PTX_L1_NO_ALLOCATE);
            out(ptx_ld(k, PTX_U32, mem));
        }
    PAIR(PTX_SM(100), "!modifier")
        ptx_ld_vec(k, PTX_U32, bad ? 2 : 1, ptx_with(ptx_at(p, 0), PTX_MMIO | PTX_RELAXED | PTX_SYS), v);
    for (i = 0; i < 3; i++) { /* newer than the cap */
        static const char *const pragmas[] = {"used_bytes_mask 0xff", "enable_smem_spilling", "frequency 4"};
        static const unsigned since[] = {83, 87, 90};
        int late;
        for (late = 0; late < 2; late++) {
            ptx_module_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.target = AMPERE, desc.max_version = since[i] - (late ? 0 : since[i] == 90 ? 3 : 1);
            m = ptx_module_new(&desc), k = ptx_entry(m, "k");
            ptx_pragma(k, pragmas[i]);
            done(__FILE__, __LINE__, late ? "" : "!version", NULL);
        }
    }
    for (i = 0; i < 2; i++)
        PAIR(AMPERE, "!name-taken") { /* a kernel behind it is called like a parameter */
            other = i ? ptx_entry(m, bad ? "late" : "later") : NULL;
            ptx_param(k, "late", PTX_U32);
            if (!i) other = ptx_entry(m, bad ? "late" : "later");
            ptx_ret(other);
        }
    PAIR(AMPERE, "!argument") out(LD(ptx_ptr_add(k, p, n, bad ? ptx_type_bytes(PTX_PRED) : 4), 0));
}

/* Addresses that lead nowhere. */
static void nowhere(void) {
    ptx_val x, y;
    int i;
    PAIR(AMPERE, "number") out(LD(bad ? ptx_ptr(ptx_mov(k, ptx_u64(64)), PTX_GLOBAL) : q, 0));
    PAIR(AMPERE, "number") {
        x = ptx_cvt(k, PTX_U32, q);
        out(LD(bad ? ptx_ptr(ptx_cvt(k, PTX_U64, x), PTX_GLOBAL) : q, 0)), out(x);
    }
    PAIR(AMPERE, "beyond") { /* for thread 0, 4 GB on */
        x = ptx_sub(k, tid, I(1));
        out(LD(AT(q, bad ? x : ptx_as(x, PTX_S32)), 0));
    }
    PAIR(AMPERE, "beyond") {
        x = ptx_ptr_add(k, q, ptx_sub(k, lane, I(1)), 4);
        if (!bad) IF(NE(lane, U(0)));
        out(LD(x, 0));
        if (!bad) END;
    }
    PAIR(AMPERE, "beyond") {
        x = ptx_mul(k, ptx_sub(k, tid, I(2)), I(1));
        y = ptx_add(k, q, ptx_cvt(k, PTX_U64, bad ? ptx_sub(k, tid, I(2)) : x));
        ptx_st(k, PTX_U8, ptx_at(y, 0), n);
    }
    for (i = 0; i < 3; i++)
        PAIR(AMPERE, "beyond") { /* generic addresses of arrays */
            x = i == 0   ? ptx_param_bytes(k, "block", 16, 8)
                : i == 1 ? ptx_local(k, "own", PTX_U32, 4, 8)
                         : ptx_shared(k, "more", PTX_U32, 4, 8);
            if (i == 1) ST(x, 0, n);
            if (i == 2) IF(one), ST(x, 0, n), END, BAR;
            out(LD(ptx_cvta(k, x), bad ? 16 : 12));
        }
    PAIR(AMPERE, "!address") ST(ptx_shared_dynamic(k), bad ? 232448 : 232444, n);
    PAIR(AMPERE, "!address") out(LD(AT(q, bad ? mine : tid), 0));
    PAIR(AMPERE, "launch") BLOCK(1024), ptx_max_registers(k, bad ? 72 : 64);
    PAIR(HOPPER, "!type") {
        ptx_val part[2];
        part[0] = ptx_ld(k, PTX_F16, ptx_at(p, 0));
        part[1] = ptx_ld(k, bad ? PTX_BF16 : PTX_F16, ptx_at(p, 2));
        x = ptx_pack(k, PTX_F16X2, 2, part);
        ptx_st(k, PTX_F16X2, ptx_at(q, 0), x);
    }
    PAIR(HOPPER, "!type") {
        ptx_val part[2];
        ptx_unpack(k, bad ? PTX_BF16 : PTX_F16, 2, ptx_ld(k, PTX_F16X2, ptx_at(p, 0)), part);
        ptx_st(k, ptx_type_of(part[0]), ptx_at(q, 0), part[0]);
    }
    PAIR(AMPERE, "!handle") {
        x = n;
        if (bad) x.flags = PTX__INVERTED;
        out(ptx_add(k, x, n));
    }
}

int main(void) {
    decided();
    idle();
    places();
    barriers();
    groups();
    mbarriers();
    bulk_stores();
    products();
    clusters();
    tensor_memory();
    scopes();
    addresses();
    fragments();
    slots();
    directives();
    indirect();
    raw();
    raw_words();
    numbers();
    formats();
    assembler();
    nowhere();
    return check_end();
}
