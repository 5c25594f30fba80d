/* global_memory.c - global memory: blocks that work together, locks, bounds, dependent launches; loops.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static void blocks(void) {
    /* A barrier of the grid has no fence in front of its counter. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        ptx_loop(k);
        x = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* The same with atom. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        ptx_loop(k);
        x = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* A barrier of the grid has no block barrier in front of its counter. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        if (!bad) BAR;
        IF(one);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        ptx_loop(k);
        x = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        BAR;
        out(LD(AT(q, tid), 0));
    }

    /* A barrier of the grid has no block barrier behind it. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        BAR;
        IF(one);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        ptx_loop(k);
        x = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        END;
        if (!bad) BAR;
        out(LD(AT(q, tid), 0));
    }

    /* All threads draw a ticket instead of one of each block. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        FENCE(PTX_ACQ_REL | PTX_GPU);
        BAR;
        if (!bad) IF(one);
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        IF(EQ(x, U(3)));
        out(LD(AT(q, U(3 * 128)), 0));
        out(LD(AT(q, U(0)), 0));
        END;
        if (!bad) END;
    }

    /* The fence in front of the counter has the scope of the block. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        BAR;
        IF(one);
        FENCE(PTX_ACQ_REL | (bad ? PTX_CTA : PTX_GPU));
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        ST(sh, 0, x);
        END;
        BAR;
        IF(EQ(ptx_uniform(k, LD(sh, 0)), U(3)));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        out(LD(AT(q, XOR(i, U(128))), 0));
        END;
    }

    /* The fence stands behind the counter instead of in front of it. */
    PAIR(AMPERE, "race") {
        GRID(4);
        i = ptx_mad(k, ptx_ctaid_x(k), U(128), tid);
        ST(AT(q, i), 0, n);
        BAR;
        IF(one);
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(sh, 0, x);
        END;
        BAR;
        IF(EQ(ptx_uniform(k, LD(sh, 0)), U(3)));
        out(LD(AT(q, XOR(i, U(128))), 0));
        END;
    }

    /* The last block reads what others have stored without a fence. */
    PAIR(AMPERE, "race") {
        GRID(4);
        IF(one);
        ST(AT(p, ptx_ctaid_x(k)), 0, n);
        x = ptx_atom(k, PTX_ATOM_ADD | (bad ? 0 : PTX_ACQ_REL | PTX_GPU), ptx_at(p, 4096), U(1));
        IF(EQ(x, U(3)));
        i = FOR(U(4));
        ST(AT(p, i), 8192, LD(AT(p, i), 0));
        END;
        END;
        END;
    }
}

static void locks_and_flags(void) {
    /* The release of a counter has the scope of the block. */
    PAIR(AMPERE, "race") {
        GRID(4);
        IF(one);
        ST(AT(p, ptx_ctaid_x(k)), 0, n);
        ptx_red(k, PTX_ATOM_ADD | PTX_RELEASE | (bad ? PTX_CTA : PTX_GPU), ptx_at(p, 4096), U(1));
        ptx_loop(k);
        x = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, LT(x, n));
        END;
        y = AT(p, XOR(ptx_ctaid_x(k), U(1)));
        ST(y, 8192, LD(y, 0));
        END;
    }

    /* A lock is taken without an acquire. */
    PAIR(AMPERE, "race") {
        GRID(4);
        IF(one);
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 4096), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(q, 0, ADD(LD(q, 0), U(1)));
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_EXCH, ptx_at(p, 4096), U(0));
        END;
    }

    /* A lock is given back without a release. */
    PAIR(AMPERE, "race") {
        GRID(4);
        IF(one);
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 4096), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        FENCE(PTX_ACQ_REL | PTX_GPU);
        ST(q, 0, ADD(LD(q, 0), U(1)));
        if (!bad) FENCE(PTX_ACQ_REL | PTX_GPU);
        ptx_atom(k, PTX_ATOM_EXCH, ptx_at(p, 4096), U(0));
        END;
    }

    /* A lock is given back by a plain store. */
    PAIR(AMPERE, "race") {
        GRID(4);
        IF(one);
        ptx_loop(k);
        x = ptx_atom_cas(k, ptx_at(p, 4096), U(0), U(1));
        ptx_while(k, NE(x, zero));
        END;
        FENCE(PTX_ACQ_REL | PTX_GPU);
        y = LD_WITH(q, PTX_VOLATILE);
        ptx_st(k, PTX_U32, ptx_with(ptx_at(q, 0), PTX_VOLATILE), ADD(y, I(1)));
        ptx_st(k, PTX_U32, bad ? ptx_at(p, 4096) : ptx_with(ptx_at(p, 4096), PTX_RELEASE | PTX_GPU), U(0));
        END;
    }

    /* A flag is stored relaxed, and orders nothing. */
    PAIR(AMPERE, "race") {
        GRID(2);
        x = ptx_ctaid_x(k);
        IF(EQ(x, zero));
        IF(one);
        ST(q, 0, n);
        ST_WITH(ptx_off(p, 4096), (bad ? PTX_RELAXED : PTX_RELEASE) | PTX_GPU, U(1));
        END;
        ELSE;
        IF(one);
        ptx_loop(k);
        y = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, EQ(y, zero));
        END;
        ST(p, 64, LD(q, 0));
        END;
        END;
    }

    /* A flag is stored plainly. */
    PAIR(AMPERE, "race") {
        GRID(2);
        x = ptx_ctaid_x(k);
        IF(EQ(x, zero));
        IF(one);
        ST(q, 0, n);
        if (bad)
            ST(p, 4096, U(1));
        else
            ST_WITH(ptx_off(p, 4096), PTX_RELEASE | PTX_GPU, U(1));
        END;
        ELSE;
        IF(one);
        ptx_loop(k);
        y = LD_WITH(ptx_off(p, 4096), PTX_ACQUIRE | PTX_GPU);
        ptx_while(k, EQ(y, zero));
        END;
        ST(p, 64, LD(q, 0));
        END;
        END;
    }
}

static void one_place(void) {
    /* The index leaves the thread out. */
    PAIR(AMPERE, "race") {
        x = ptx_mul(k, ptx_ctaid_x(k), ptx_ntid_x(k));
        if (!bad) x = ADD(x, tid);
        ST(AT(q, x), 0, LD(AT(q, tid), 0));
    }

    /* A sum of all threads without an atomic. */
    PAIR(AMPERE, "race") {
        x = LD(AT(q, tid), 0);
        if (!bad) IF(one);
        ST(q, 0, ADD(LD(q, 0), x));
        if (!bad) END;
    }

    /* Values are exchanged through global memory without a barrier. */
    PAIR(AMPERE, "race") {
        ST(AT(q, tid), 0, n);
        if (!bad) BAR;
        out(LD(AT(q, XOR(tid, U(32))), 0));
    }

    /* Values are moved by one in place, without a barrier. */
    PAIR(AMPERE, "race") {
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        x = LD(AT(q, ADD(i, U(1))), 0);
        if (!bad) BAR;
        ST(AT(q, i), 0, x);
    }

    /* ld.global.nc reads what the kernel changes by red. */
    PAIR(AMPERE, "race") {
        x = LD_WITH(AT(q, tid), bad ? PTX_NC : PTX_RELAXED | PTX_GPU);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(q, 0), x);
    }

    /* All threads of a block store a value of their own at one place. */
    PAIR(AMPERE, "race") { ST(AT(p, ptx_ctaid_x(k)), 0, bad ? tid : n); }

    /* All threads add to one place by a load and a store; one thread alone may. */
    PAIR(AMPERE, "race") {
        if (!bad) BLOCK(1);
        ST(p, 0, ADD(LD(p, 0), n));
    }

    /* A flag in shared memory is stored and loaded plainly. */
    PAIR(AMPERE, "race") {
        ST(mine, 0, zero);
        BAR;
        IF(EQ(warp, zero));
        IF(one);
        if (bad)
            ST(sh, 0, U(1));
        else
            ST_WITH(sh, PTX_VOLATILE, U(1));
        END;
        ELSE;
        ptx_loop(k);
        x = bad ? LD(sh, 0) : LD_WITH(sh, PTX_VOLATILE);
        ptx_while(k, EQ(x, zero));
        END;
        END;
    }
}

static void bounds(void) {
    /* The left neighbour of the first element. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_sub(k, tid, U(1));
        if (!bad) IF(GT(tid, zero));
        out(LD(AT(q, x), 0));
        if (!bad) END;
    }

    /* The same with the index in the grid. */
    PAIR(AMPERE, "out-of-bounds") {
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        IF(LT(i, n));
        if (!bad) IF(GT(i, zero));
        ST(AT(p, i), 0, LD(AT(q, ptx_sub(k, i, U(1))), 0));
        if (!bad) END;
        END;
    }

    /* The element is loaded before the bound is looked at. */
    PAIR(AMPERE, "out-of-bounds") {
        launch.words = 4;
        i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        w = LT(i, n);
        at = AT(q, bad ? i : ptx_min(k, i, ptx_sub(k, n, U(1))));
        x = ptx_as(ptx_selp(k, LD(at, 0), U(0), w), PTX_U32);
        ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), x);
    }

    /* A negative index of 32 bits without a sign. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_sub(k, tid, I(1));
        out(LD(AT(ptx_off(q, 64), bad ? x : ptx_as(x, PTX_S32)), 0));
    }

    /* The same for the lane's neighbour. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_ptr_add(k, q, ptx_sub(k, lane, I(1)), 4);
        if (!bad) IF(NE(lane, U(0)));
        out(LD(x, 0));
        if (!bad) END;
    }

    /* A number is taken for an address. */
    PAIR(AMPERE, "out-of-bounds") { out(LD(bad ? ptx_ptr(ptx_mov(k, ptx_u64(64)), PTX_GLOBAL) : q, 0)); }

    /* The upper half of an address is cut off. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_cvt(k, PTX_U32, q);
        out(LD(bad ? ptx_ptr(ptx_cvt(k, PTX_U64, x), PTX_GLOBAL) : q, 0)), out(x);
    }

    /* discard.L2 takes lines of 128 bytes. */
    PAIR(AMPERE, "misaligned") { ptx_op2(k, PTX_DISCARD, 0, ptx_off(q, bad ? 64 : 128), I(128)); }

    /* applypriority takes lines of 128 bytes. */
    PAIR(AMPERE, "misaligned") { ptx_op2(k, PTX_APPLYPRIORITY, 0, ptx_off(q, bad ? 64 : 128), I(128)); }

    /* red of a vector of two takes 8 bytes at a multiple of 8. */
    PAIR(HOPPER, "misaligned") {
        v4[0] = ptx_off(q, bad ? 4 : 8);
        v4[1] = v4[2] = ptx_f32(1);
        ptx_opn(k, PTX_RED_VECTOR, PTX_ATOM_ADD, PTX_F32, PTX_NONE, 3, v4, 0, NULL);
    }

    /* A shared address is used as a global one. */
    PAIR(AMPERE, "out-of-bounds") {
        ST(mine, 0, n);
        x = bad ? ptx_ptr(ptx_cvt(k, PTX_U64, mine), PTX_GLOBAL) : ptx_cvta(k, mine);
        out(LD(x, 0));
    }

    /* A global address is taken for a shared one. */
    PAIR(AMPERE, "out-of-bounds") {
        ST(mine, 0, n);
        BAR;
        out(LD(ptx_cvta_to(k, PTX_SHARED, bad ? q : ptx_cvta(k, sh)), 0));
    }

    /* A shared address is taken for a global one. */
    PAIR(AMPERE, "out-of-bounds") {
        ST(mine, 0, n);
        out(LD(ptx_cvta_to(k, PTX_GLOBAL, bad ? ptx_cvta(k, mine) : q), 0));
    }

    /* A kernel writes its own parameters. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_cvta(k, ptx_param_bytes(k, "map", 128, 64));
        launch.box[0] = launch.box[1] = 8;
        if (bad)
            ST(x, 0, n);
        else
            out(LD(x, 0));
    }

    /* A parameter is read beyond its end, by a generic address. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_cvta(k, ptx_param_bytes(k, "map", 128, 64));
        launch.box[0] = launch.box[1] = 8;
        out(LD(x, bad ? 128 : 124));
    }

    /* A local array is read beyond its end, by a generic address. */
    PAIR(AMPERE, "out-of-bounds") {
        x = ptx_local(k, "own", PTX_U32, 4, 8);
        ST(x, 0, n), ST(x, 4, n), ST(x, 8, n), ST(x, 12, n);
        out(ADD(LD(ptx_cvta(k, x), bad ? 16 : 12), n));
    }
}

/* The kernel is launched twice; the second may begin when the first has executed this. */
static void dependent(void) {
    launch.dependent = 1;
    ptx_op0(k, PTX_GRIDDEPCONTROL_LAUNCH, 0);
}

static void dependent_launches(void) {
    /* A dependent kernel stores before griddepcontrol.wait. */
    PAIR(HOPPER, "dependent-race") {
        dependent();
        if (bad) out(n);
        ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        if (!bad) out(n);
    }

    /* One thread executes griddepcontrol.wait, and all load. */
    PAIR(HOPPER, "dependent-race") {
        dependent();
        if (bad) IF(one);
        ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        if (bad) END;
        out(ADD(LD(AT(p, tid), 0), U(1)));
    }

    /* A dependent kernel loads before griddepcontrol.wait. */
    PAIR(HOPPER, "dependent-race") {
        dependent();
        if (!bad) ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        x = LD(AT(p, tid), 0);
        if (bad) ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
        out(ADD(x, n));
    }
}

static void loops(void) {
    /* A counter that doubles starts at 0. */
    PAIR(AMPERE, "timeout") {
        a = ptx_var_new(k, U(bad ? 0 : 1));
        ptx_loop(k);
        ptx_while(k, LT(GET(a), n));
        SET(a, SHL(GET(a), 1));
        END;
        out(GET(a));
    }

    /* The step of a loop is 0. */
    PAIR(AMPERE, "timeout") {
        a = ptx_var_new(k, U(0));
        ptx_loop(k);
        ptx_while(k, LT(GET(a), n));
        SET(a, ADD(GET(a), U(bad ? 0 : 4)));
        END;
        out(GET(a));
    }

    /* The counter wraps around before it reaches the limit. */
    PAIR(AMPERE, "timeout") {
        i = ptx_for(k, U(0xfffffff0), U(0xffffffff), U(bad ? 2 : 1));
        out(i);
        END;
    }

    /* The condition uses the value of before the loop. */
    PAIR(AMPERE, "timeout") {
        a = ptx_var_new(k, zero);
        x = GET(a);
        ptx_loop(k);
        if (!bad) x = GET(a);
        ptx_while(k, LT(x, n));
        SET(a, ADD(GET(a), U(1)));
        END;
        out(GET(a));
    }

    /* The counter steps over its limit. */
    PAIR(AMPERE, "out-of-bounds") {
        IF(one);
        a = ptx_var_new(k, U(0));
        ptx_loop(k);
        ptx_while(k, NE(GET(a), U(bad ? 10 : 12)));
        ST(AT(p, GET(a)), 0, n);
        SET(a, ADD(GET(a), U(4)));
        END;
        END;
    }

    /* A counter without a sign goes down until it is below 0. */
    PAIR(AMPERE, "out-of-bounds") {
        IF(one);
        a = ptx_var_new(k, n);
        ptx_loop(k);
        ptx_while(k, bad ? GE(GET(a), U(0)) : GT(GET(a), U(0)));
        ST(AT(p, GET(a)), 0, n);
        SET(a, ptx_sub(k, GET(a), U(1)));
        END;
        END;
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    blocks();
    locks_and_flags();
    one_place();
    bounds();
    dependent_launches();
    loops();
    return check_end();
}
