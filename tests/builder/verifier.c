/* What the verifier finds out about a whole kernel: divergence, endless loops, copies under way, pressure;
   and the way back from a line of text. Each rule is tripped and nearly tripped.

     make build/tests/builder/verifier */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* -- a kernel with what the cases need -- */

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, n, tid, lane, warp, sh, mine, zero;

static void start(void) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM(80);
    m = ptx_module_new(&desc);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    sh = ptx_shared(k, "sh", PTX_U32, 1024, 16);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    warp = ptx_shr(k, tid, ptx_imm(5));
    mine = ptx_ptr_add(k, sh, tid, 4);
    zero = ptx_mov(k, ptx_u32(0));
}
static void barrier(void) { ptx_bar_sync(k, ptx_imm(0)); }
static void shuffle(void) { ptx_shfl_bfly(k, zero, ptx_imm(1), ptx_imm(31), ptx_b32(0xffffffff)); }
static ptx_val load(int64_t offset) { return ptx_ld(k, PTX_U32, ptx_at(p, offset)); }
static void store(ptx_val x) { ptx_st(k, PTX_U32, ptx_at(p, 0), x); }

/* Ends the kernel: want is the error's code, says what its message holds. */
static int with_ret = 1;
static void done(int line, ptx_code want, const char *says) {
    const ptx_error *e;
    if (with_ret) ptx_ret(k);
    with_ret = 1;
    ptx_text(m, NULL);
    e = ptx_get_error(m);
    CHECK_AT(e->code == want, line, ptx_error_name(want), e->message);
    if (says && !strstr(e->message, says)) CHECK_AT(0, line, says, e->message);
    ptx_module_free(m);
}
#define FINE done(__LINE__, PTX_E_NONE, NULL)
#define WRONG(code, says) done(__LINE__, PTX_E_##code, says)

static void test_divergence(void) {
    ptx_val x, y;
    ptx_var v;
    ptx_label l;
    /* conditions: what they depend on */
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(16))), barrier(), ptx_end(k),
        WRONG(DIVERGENT, "%tid.x");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "%laneid");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, load(0), n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "ld");
    start(), x = ptx_uniform(k, load(0)), ptx_if(k, ptx_setp(k, PTX_LT, x, n)), barrier(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, ptx_ctaid_x(k), n)), barrier(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(7))), barrier(), ptx_end(k), FINE;
    start(), x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), n);
    ptx_if(k, ptx_setp(k, PTX_EQ, x, n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "atom");
    start(), x = ptx_mad(k, n, n, tid), y = ptx_min(k, x, n);
    ptx_if(k, ptx_setp(k, PTX_GT, y, zero)), barrier(), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    /* a carry comes from an earlier instruction, whatever its operands */
    start(), ptx_add_cc(k, tid, n), x = ptx_addc(k, zero, zero);
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), barrier(), ptx_end(k), WRONG(DIVERGENT, "addc");
    start(), ptx_sub_cc(k, tid, n), x = ptx_subc(k, zero, zero);
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), shuffle(), ptx_end(k), WRONG(DIVERGENT, "subc");
    start(), ptx_add_cc(k, tid, n), x = ptx_op3(k, PTX_MADC, PTX_LO, n, n, zero);
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), barrier(), ptx_end(k), WRONG(DIVERGENT, "madc");
    start(), ptx_add_cc(k, n, n), x = ptx_uniform(k, ptx_addc(k, zero, zero));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), barrier(), ptx_end(k), FINE;
    /* places: before, behind, in the other branch */
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), store(n), ptx_end(k), barrier(), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), store(n), ptx_else(k), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "only some come here");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(9))), ptx_if(k, ptx_setp(k, PTX_LT, tid, n));
    store(n), ptx_end(k), barrier(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(9)));
    barrier(), ptx_end(k), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    /* threads that have left */
    start(), ptx_guard(k, ptx_setp(k, PTX_GE, tid, n)), ptx_ret(k), barrier(),
        WRONG(DIVERGENT, "others have left");
    start(), ptx_guard(k, ptx_setp(k, PTX_GE, ptx_ctaid_x(k), n)), ptx_ret(k), barrier(), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_GE, tid, n)), ptx_ret(k), ptx_end(k), barrier(),
        WRONG(DIVERGENT, "only some");
    start(), barrier(), ptx_guard(k, ptx_setp(k, PTX_GE, tid, n)), ptx_ret(k), store(n), FINE;
    start(), ptx_guard(k, ptx_setp(k, PTX_GE, tid, n)), ptx_exit(k), shuffle(), WRONG(DIVERGENT, "shfl");
    /* guards */
    start(), ptx_guard(k, ptx_setp(k, PTX_LT, tid, n)), barrier(), WRONG(DIVERGENT, "guard");
    start(), ptx_guard(k, ptx_setp(k, PTX_LT, n, ptx_imm(3))), barrier(), FINE;
    /* loops: the trip count */
    start(), ptx_for(k, ptx_u32(0), n, ptx_u32(1)), barrier(), ptx_end(k), FINE;
    start(), ptx_for(k, ptx_u32(0), tid, ptx_u32(1)), barrier(), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    start(), ptx_for(k, tid, n, ptx_u32(256)), barrier(), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    start(), ptx_for(k, tid, n, ptx_u32(256)), ptx_end(k), barrier(), FINE;
    start(), ptx_loop(k), barrier(), ptx_while(k, ptx_setp(k, PTX_NE, load(0), zero)), ptx_end(k);
    WRONG(DIVERGENT, "ld");
    start(), ptx_loop(k), x = ptx_uniform(k, load(0)), barrier(), ptx_while(k, ptx_setp(k, PTX_NE, x, zero));
    ptx_end(k), FINE;
    /* variables: what was set where only some threads came, and counts of rounds */
    start(), v = ptx_var_new(k, zero), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), ptx_set(k, v, ptx_imm(1));
    ptx_end(k), ptx_if(k, ptx_setp(k, PTX_EQ, ptx_get(k, v), zero)), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "condition at");
    start(), v = ptx_var_new(k, zero), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(4))),
             ptx_set(k, v, ptx_imm(1));
    ptx_end(k), ptx_if(k, ptx_setp(k, PTX_EQ, ptx_get(k, v), zero)), barrier(), ptx_end(k), FINE;
    start(), v = ptx_var_new(k, zero), ptx_loop(k), x = ptx_get(k, v),
             ptx_set(k, v, ptx_add(k, x, ptx_imm(1)));
    ptx_while(k, ptx_setp(k, PTX_LT, x, tid)), ptx_end(k);
    ptx_if(k, ptx_setp(k, PTX_GT, ptx_get(k, v), n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "condition at");
    start(), v = ptx_var_new(k, zero), ptx_loop(k), x = ptx_get(k, v),
             ptx_set(k, v, ptx_add(k, x, ptx_imm(1)));
    ptx_while(k, ptx_setp(k, PTX_LT, x, tid)), ptx_end(k); /* a value of the round in which a thread left */
    ptx_if(k, ptx_setp(k, PTX_GT, x, n)), barrier(), ptx_end(k), WRONG(DIVERGENT, "by the branch at");
    start(), v = ptx_var_new(k, zero), ptx_loop(k), x = ptx_get(k, v),
             ptx_set(k, v, ptx_add(k, x, ptx_imm(1)));
    ptx_while(k, ptx_setp(k, PTX_LT, x, n)), ptx_end(k);
    ptx_if(k, ptx_setp(k, PTX_GT, x, n)), barrier(), ptx_end(k), FINE;
    start(), v = ptx_var_new(k, tid), ptx_set(k, v, n),
             ptx_if(k, ptx_setp(k, PTX_LT, ptx_get(k, v), ptx_imm(64)));
    barrier(), ptx_end(k), FINE; /* what it held before does not matter */
    start(), v = ptx_var_new(k, n), ptx_set(k, v, tid),
             ptx_if(k, ptx_setp(k, PTX_LT, ptx_get(k, v), ptx_imm(64)));
    barrier(), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    start(), v = ptx_var_new(k, tid), ptx_guard(k, ptx_setp(k, PTX_LT, n, zero)), ptx_set(k, v, n);
    ptx_if(k, ptx_setp(k, PTX_LT, ptx_get(k, v), ptx_imm(64))), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "%tid.x");
    /* set to what is the same in a round, and left in different rounds */
    start(), v = ptx_var_new(k, zero), y = zero, l = ptx_label_new(k), ptx_place(k, l);
    ptx_set(k, v, ptx_add(k, ptx_get(k, v), ptx_imm(1)));
    ptx_guard(k, ptx_setp(k, PTX_LT, ptx_get(k, v), tid)), ptx_bra(k, l);
    ptx_if(k, ptx_setp(k, PTX_LT, ptx_get(k, v), ptx_imm(9))), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "by the branch at");
    /* warps: whole ones may part */
    start(), ptx_if(k, ptx_setp(k, PTX_EQ, warp, zero)), shuffle(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_EQ, warp, zero)), barrier(), ptx_end(k), WRONG(DIVERGENT, "block");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(64))), shuffle(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(63))), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "warp");
    start(), ptx_if(k, ptx_setp(k, PTX_LE, tid, ptx_imm(63))), shuffle(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LE, tid, ptx_imm(64))), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "warp");
    start(), ptx_if(k, ptx_setp(k, PTX_GE, tid, ptx_imm(32))), shuffle(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_EQ, tid, ptx_imm(32))), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "warp");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, ptx_imm(31))), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "%laneid");
    start(), x = ptx_div(k, tid, ptx_u32(32)), ptx_if(k, ptx_setp(k, PTX_LT, x, n)), shuffle(), ptx_end(k),
             FINE;
    start(), x = ptx_div(k, tid, ptx_u32(16)), ptx_if(k, ptx_setp(k, PTX_LT, x, n)), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "warp");
    start(), x = ptx_and(k, tid, ptx_b32(~31u)), ptx_if(k, ptx_setp(k, PTX_LT, ptx_as(x, PTX_U32), n)),
             shuffle();
    ptx_end(k), FINE;
    start(), ptx_for(k, warp, n, ptx_u32(8)), shuffle(), ptx_end(k), FINE;
    start(), ptx_for(k, lane, n, ptx_u32(32)), shuffle(), ptx_end(k), WRONG(DIVERGENT, "shfl");
    start(), x = ptx_shfl_idx(k, load(0), ptx_imm(0), ptx_imm(31), ptx_b32(0xffffffff));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), shuffle(), ptx_end(k), FINE;
    start(), x = ptx_shfl_idx(k, load(0), lane, ptx_imm(31), ptx_b32(0xffffffff));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), shuffle(), ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), x = ptx_op2(k, PTX_VOTE_ANY, 0, ptx_setp(k, PTX_EQ, load(0), zero), ptx_b32(0xffffffff));
    ptx_if(k, x), shuffle(), ptx_end(k), FINE;
    start(), x = ptx_op2(k, PTX_VOTE_ANY, 0, ptx_setp(k, PTX_EQ, load(0), zero), ptx_b32(0xffffffff));
    ptx_if(k, x), barrier(), ptx_end(k), WRONG(DIVERGENT, "vote");
    /* masks: of all lanes, of some, of those that are here */
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, ptx_imm(8)));
    ptx_shfl_bfly(k, zero, ptx_imm(1), ptx_imm(31), ptx_b32(0xff)), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, n)), x = ptx_op0(k, PTX_ACTIVEMASK, 0);
    ptx_shfl_bfly(k, zero, ptx_imm(1), ptx_imm(31), x), ptx_end(k), FINE;
    /* lanes need not have come together again, so they may read different masks */
    start(), x = ptx_activemask(k), ptx_if(k, ptx_setp(k, PTX_EQ, x, n)), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "activemask");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, n)), ptx_op1(k, PTX_BAR_WARP_SYNC, 0, ptx_b32(0xffffffff));
    ptx_end(k), WRONG(DIVERGENT, "bar.warp.sync");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, n)), ptx_op2(k, PTX_REDUX_ADD, 0, zero, ptx_b32(0xffffffff));
    ptx_end(k), WRONG(DIVERGENT, "redux");
    /* assertions of less: the same in a warp */
    start(), x = ptx_warp_uniform(k, load(0)), ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), shuffle(), ptx_end(k),
             FINE;
    start(), x = ptx_warp_uniform(k, load(0)), ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "block");
    start(), ptx_uniform(k, ptx_u32(3)), ptx_uniform(k, zero), FINE;
    /* labels and branches */
    start(), l = ptx_label_new(k), ptx_guard(k, ptx_setp(k, PTX_LT, tid, n)), ptx_bra(k, l), barrier();
    ptx_place(k, l), WRONG(DIVERGENT, "bar.sync");
    start(), l = ptx_label_new(k), ptx_guard(k, ptx_setp(k, PTX_LT, tid, n)), ptx_bra(k, l), store(n);
    ptx_place(k, l), barrier(), FINE;
    start(), l = ptx_label_new(k), ptx_place(k, l), barrier(), ptx_guard(k, ptx_setp(k, PTX_LT, load(0), n));
    ptx_bra(k, l), WRONG(DIVERGENT, "ld");
}

/* A kernel as start() makes it, of another target. */
static void start_on(ptx_target target) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = target;
    m = ptx_module_new(&desc);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    sh = ptx_shared(k, "sh", PTX_U32, 1024, 128);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    warp = ptx_shr(k, tid, ptx_imm(5));
    mine = ptx_ptr_add(k, sh, tid, 4);
    zero = ptx_mov(k, ptx_u32(0));
}

static void masked(ptx_val mask) { ptx_shfl_bfly(k, zero, ptx_imm(1), ptx_imm(31), mask); }
#define IF(order, a, b) ptx_if(k, ptx_setp(k, order, a, b))

/* The mask of all lanes is for a whole warp; which lanes another mask names depends on values. */
static void test_members(void) {
    ptx_val x, q;
    ptx_label l;
    start(), IF(PTX_LT, tid, n), masked(ptx_b32(~0u)), ptx_end(k), WRONG(DIVERGENT, "%tid.x");
    start(), x = ptx_mov(k, ptx_b32(~0u)), masked(x), FINE;
    start(), IF(PTX_LT, lane, ptx_imm(16)), masked(ptx_b32(0xffff)), ptx_end(k), FINE;
    start(), IF(PTX_LT, tid, ptx_imm(16)), masked(ptx_b32(0xffff)), ptx_end(k), FINE;
    start(), x = ptx_and(k, lane, ptx_u32(1)), IF(PTX_EQ, x, zero);
    ptx_shfl_bfly(k, zero, ptx_imm(2), ptx_imm(31), ptx_b32(0x55555555)), ptx_end(k), FINE;
    start(), IF(PTX_LT, lane, ptx_imm(16)), store(n), ptx_else(k), masked(ptx_b32(0xffff0000)), ptx_end(k);
    FINE;
    start(), ptx_guard(k, ptx_setp(k, PTX_GE, lane, ptx_imm(8))), ptx_exit(k), masked(ptx_b32(0xff)), FINE;
    start(), ptx_guard(k, ptx_setp(k, PTX_GE, lane, ptx_imm(8))), ptx_exit(k), masked(ptx_b32(~0u));
    WRONG(DIVERGENT, "others have left");
    start(), l = ptx_label_new(k), ptx_guard(k, ptx_setp(k, PTX_GE, lane, ptx_imm(4))), ptx_bra(k, l);
    masked(ptx_b32(0xf)), ptx_place(k, l), FINE;
    start(), ptx_require_block(k, 8, 1, 1), masked(ptx_b32(0xff)), FINE;
    start(), x = ptx_and(k, lane, ptx_u32(3)), ptx_switch(k, x, 3), ptx_case(k, 1), masked(ptx_b32(~0u));
    ptx_end(k), WRONG(DIVERGENT, "shfl");
    start(), ptx_switch(k, n, 3), ptx_case(k, 1), masked(ptx_b32(~0u)), ptx_end(k), FINE;
    /* shfl.idx: all read the same lane only if the segment is the warp; others may keep their own value */
    start(), x = ptx_shfl_idx(k, lane, zero, ptx_imm(31), ptx_b32(~0u)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), FINE;
    start(), x = ptx_shfl_idx(k, lane, zero, ptx_imm(0x181f), ptx_b32(~0u)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "shfl.sync.idx");
    start(), x = ptx_shfl_idx(k, lane, ptx_imm(20), ptx_imm(15), ptx_b32(~0u)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "shfl.sync.idx");
    /* a vote among the lanes of a mask: two masks, two results */
    start(), q = ptx_setp(k, PTX_LT, lane, ptx_imm(16));
    x = ptx_selp(k, ptx_u32(0xffff), ptx_u32(0xffff0000), q), x = ptx_ballot(k, q, x);
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), WRONG(DIVERGENT, "%laneid");
    start(), q = ptx_setp(k, PTX_LT, lane, n), x = ptx_ballot(k, q, ptx_b32(~0u)), x = ptx_ballot(k, q, x);
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), x = ptx_activemask(k), masked(x), FINE;
    start(), IF(PTX_LT, tid, n), x = ptx_activemask(k), masked(x), ptx_end(k), FINE;
    start(), q = ptx_setp(k, PTX_LT, tid, n), x = ptx_ballot(k, q, ptx_b32(~0u)), ptx_if(k, q), masked(x);
    ptx_end(k), FINE;
    start(), q = ptx_setp(k, PTX_LT, lane, ptx_imm(4)), ptx_guard(k, q);
    ptx_bar_warp_sync(k, ptx_b32(0xf)), FINE;
    start(), q = ptx_setp(k, PTX_LT, lane, ptx_imm(4)), ptx_guard(k, q);
    ptx_bar_warp_sync(k, ptx_b32(~0u)), WRONG(DIVERGENT, "its guard depends on %laneid");
}

/* The number of a warp: all the ways to write it, and what is none. */
static void test_warp_numbers(void) {
    ptx_val y, x, i;
    ptx_var v;
    int bounds;
    for (bounds = 0; bounds < 4; bounds++) { /* declared, bounded, of another size, not at all */
        int known = bounds < 2;
        start(), i = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
        if (bounds == 0) ptx_require_block(k, 128, 1, 1);
        if (bounds == 1) ptx_launch_bounds(k, 256, 1);
        if (bounds == 2) ptx_require_block(k, 48, 1, 1);
        IF(PTX_LT, ptx_shr(k, i, ptx_imm(5)), n), shuffle(), ptx_end(k);
        if (known) FINE;
        else
            WRONG(DIVERGENT, "warp");
    }
    start(), i = ptx_mad(k, ptx_ctaid_x(k), ptx_u32(128), tid), x = ptx_shr(k, i, ptx_imm(5));
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), i = ptx_mad(k, ptx_ctaid_x(k), ptx_u32(100), tid), x = ptx_shr(k, i, ptx_imm(5));
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), i = ptx_add(k, ptx_mul(k, ptx_ctaid_x(k), ptx_u32(128)), tid), x = ptx_div(k, i, ptx_u32(32));
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), i = ptx_add(k, ptx_shl(k, ptx_ctaid_x(k), ptx_imm(5)), tid), x = ptx_shr(k, i, ptx_imm(5));
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), i = ptx_add(k, ptx_shl(k, ptx_ctaid_x(k), ptx_imm(4)), tid), x = ptx_shr(k, i, ptx_imm(5));
    IF(PTX_LT, x, n), shuffle(), ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), x = ptx_shr(k, ptx_add(k, tid, ptx_imm(32)), ptx_imm(5)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), FINE;
    start(), x = ptx_shr(k, ptx_add(k, tid, ptx_imm(33)), ptx_imm(5)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), x = ptx_shr(k, ptx_sub(k, tid, ptx_imm(64)), ptx_imm(5)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), FINE;
    start(), x = ptx_shr(k, ptx_add(k, tid, load(0)), ptx_imm(5)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), x = ptx_bfe(k, tid, ptx_imm(5), ptx_imm(3)), IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), x = ptx_bfe(k, tid, ptx_imm(4), ptx_imm(3)), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), x = ptx_bfe(k, tid, ptx_imm(5), n), IF(PTX_LT, x, n), shuffle(), ptx_end(k), FINE;
    start(), x = ptx_bfe(k, tid, ptx_imm(5), ptx_and(k, tid, ptx_imm(3))), IF(PTX_LT, x, n), shuffle();
    ptx_end(k), WRONG(DIVERGENT, "warp");
    /* the same bits as floats: NaN begins at 0x7f800001, sums are rounded, products have no zeros */
    start(), x = ptx_as(ptx_add(k, tid, ptx_u32(0x7f800000)), PTX_F32);
    IF(PTX_LTU, x, ptx_as(ptx_shl(k, n, ptx_imm(5)), PTX_F32)), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "warp");
    start(), y = ptx_as(ptx_shl(k, n, ptx_imm(5)), PTX_F32), x = ptx_add(k, ptx_as(tid, PTX_F32), y);
    x = ptx_shr(k, ptx_as(x, PTX_U32), ptx_imm(5)), IF(PTX_LT, x, n), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "warp");
    start(), y = ptx_as(ptx_shl(k, n, ptx_imm(5)), PTX_F32), x = ptx_mul(k, y, y);
    x = ptx_shr(k, ptx_add(k, tid, ptx_as(x, PTX_U32)), ptx_imm(5)), IF(PTX_LT, x, n), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "warp");
    start(), IF(PTX_LT, tid, ptx_shl(k, n, ptx_imm(5))), shuffle(), ptx_end(k), FINE;
    start(), IF(PTX_LT, tid, ptx_shl(k, n, ptx_imm(4))), shuffle(), ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), IF(PTX_LE, tid, ptx_shl(k, n, ptx_imm(5))), shuffle(), ptx_end(k), WRONG(DIVERGENT, "warp");
    start(), IF(PTX_LT, tid, ptx_shl(k, n, ptx_imm(5))), barrier(), ptx_end(k), WRONG(DIVERGENT, "block");
    start(), v = ptx_var_new(k, ptx_shr(k, tid, ptx_imm(5))), ptx_loop(k), x = ptx_get(k, v);
    ptx_while(k, ptx_setp(k, PTX_LT, x, n)), shuffle(), ptx_set(k, v, ptx_add(k, x, ptx_imm(8))), ptx_end(k);
    FINE;
    start_on(PTX_SM_A(90)), x = ptx_shr(k, ptx_add(k, tid, ptx_imm(32)), ptx_imm(7));
    IF(PTX_LT, x, n), ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_end(k), WRONG(DIVERGENT, "warpgroup");
    start_on(PTX_SM_A(90)), x = ptx_shr(k, ptx_add(k, tid, ptx_imm(128)), ptx_imm(7));
    IF(PTX_LT, x, n), ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_end(k), FINE;
    start_on(PTX_SM_A(90)), x = ptx_shr(k, warp, ptx_imm(2));
    IF(PTX_EQ, x, zero), ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_end(k), FINE;
    start_on(PTX_SM_A(90)), x = ptx_shr(k, warp, ptx_imm(1));
    IF(PTX_EQ, x, zero), ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_end(k), WRONG(DIVERGENT, "warpgroup");
}

static void cluster_barrier(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }

/* What is the same in a block, and not in its cluster. */
static void test_clusters(void) {
    ptx_val x;
    start_on(PTX_SM(90)), IF(PTX_EQ, ptx_sreg(k, PTX_CLUSTER_CTARANK), zero), cluster_barrier(), ptx_end(k);
    WRONG(DIVERGENT, "cluster");
    start_on(PTX_SM(90)), IF(PTX_EQ, ptx_ctaid_x(k), zero), cluster_barrier(), ptx_end(k);
    WRONG(DIVERGENT, "ptx_cluster_uniform");
    start_on(PTX_SM(90)), IF(PTX_EQ, ptx_ctaid_x(k), zero), barrier(), ptx_end(k), cluster_barrier(), FINE;
    start_on(PTX_SM(90)), IF(PTX_EQ, ptx_sreg(k, PTX_CLUSTERID_X), zero), cluster_barrier(), ptx_end(k), FINE;
    start_on(PTX_SM(90)), IF(PTX_LT, n, ptx_imm(5)), cluster_barrier(), ptx_end(k), FINE;
    start_on(PTX_SM(90)), ptx_require_cluster(k, 2, 1, 1), IF(PTX_EQ, ptx_ctaid_y(k), zero);
    cluster_barrier(), ptx_end(k), FINE;
    start_on(PTX_SM(90)), ptx_require_cluster(k, 2, 2, 1), IF(PTX_EQ, ptx_ctaid_y(k), zero);
    cluster_barrier(), ptx_end(k), WRONG(DIVERGENT, "cluster");
    start_on(PTX_SM(90)), x = ptx_cluster_uniform(k, ptx_shr(k, ptx_ctaid_x(k), ptx_imm(1)));
    IF(PTX_LT, x, n), cluster_barrier(), ptx_end(k), FINE;
    start_on(PTX_SM(90)), x = ptx_uniform(k, load(0)), IF(PTX_LT, x, n), cluster_barrier(), ptx_end(k);
    WRONG(DIVERGENT, "cluster");
    start_on(PTX_SM(90)), ptx_for(k, ptx_ctaid_x(k), n, ptx_u32(8)), cluster_barrier(), ptx_end(k);
    WRONG(DIVERGENT, "cluster");
    start_on(PTX_SM(90)), ptx_for(k, ptx_sreg(k, PTX_CLUSTERID_X), n, ptx_u32(8)), cluster_barrier();
    ptx_end(k), FINE;
    start_on(PTX_SM(90)), ptx_guard(k, ptx_setp(k, PTX_NE, ptx_sreg(k, PTX_CLUSTER_CTARANK), zero));
    ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE_UNALIGNED, 0), WRONG(DIVERGENT, "guard");
}

static int prints(const char *what) {
    const char *text;
    int found;
    ptx_ret(k);
    text = ptx_text(m, NULL);
    found = text && strstr(text, what);
    if (!found) printf("%s\n", text ? text : ptx_get_error(m)->message);
    ptx_module_free(m);
    return found;
}

/* An address and an offset are an address, wherever one goes. */
static void test_places(void) {
    ptx_val x, blk;
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_off(p, 16), 4));
    CHECK(prints("ld.global.u32 %r7, [%d1+20];"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_off(ptx_off(p, 16), -32), 4));
    CHECK(prints("[%d1+-12];"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, ptx_off(p, 16), tid, 4), 4)), CHECK(prints("+20];"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, ptx_off(sh, 16), ptx_imm(3), 4), 4));
    CHECK(prints("+20];"));
    start(), x = ptx_add(k, ptx_off(sh, 16), ptx_u32(1)), CHECK(ptx_space_of(x) == PTX_SHARED);
    CHECK(prints("add.u32 %r7, %r1, 16;"));
    start(), ptx_cvta(k, ptx_off(sh, 8)), CHECK(prints("add.u32 %r7, %r1, 8;"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_as(ptx_off(sh, 8), PTX_U32), 0)), CHECK(prints("+8];"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(ptx_off(sh, 8), PTX_SHARED), 0)), CHECK(prints("+8];"));
    start(), blk = ptx_param_bytes(k, "blk", 32, 8), x = ptx_ld(k, PTX_U32, ptx_at(ptx_off(blk, 8), 4));
    CHECK(prints("[blk+12];"));
    start(), ptx_cp_async_16(k, ptx_off(ptx_ptr_add(k, sh, tid, 16), 64), ptx_off(p, 32));
    ptx_cp_async_wait_all(k);
    CHECK(prints("+64], [%d1+32], 16;"));
    start(), ptx_st(k, PTX_U64, ptx_at(p, 0), ptx_as(ptx_off(p, -8), PTX_U64));
    CHECK(prints("add.u64 %d2, %d1, 18446744073709551608;"));
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_off(p, 8388607), 2147483647)), WRONG(RANGE, "2155872254");
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_off(p, 8388608), 0)), WRONG(RANGE, "8388608");
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_off(sh, 8), 16384)), WRONG(ADDRESS, "16392");
    start(), ptx_guard(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_st(k, PTX_U32, ptx_at(p, 0), ptx_off(sh, 4));
    CHECK(prints("@%p0 st.global.u32 [%d1], %r7;"));
}

/* What ptxas would not take, or take for something else. */
static void test_refusals(void) {
    ptx_val x, v[3];
    ptx_kernel *f;
    start(), ptx_div(k, n, ptx_imm(0)), WRONG(RANGE, "div by the number 0");
    start(), ptx_div(k, n, ptx_imm(3)), ptx_div(k, n, ptx_imm(0)), WRONG(RANGE, "div by the number 0");
    start(), ptx_rem(k, n, ptx_imm(0)), WRONG(RANGE, "rem by the number 0");
    start(), x = ptx_mov(k, ptx_f32(1)), ptx_div(k, x, ptx_f32(0)), FINE; /* infinite */
    start_on(PTX_SM(90)), x = ptx_shared(k, "b", PTX_U64, 1, 0);
    ptx_op2(k, PTX_MBARRIER_TRY_WAIT_PARITY, 0, x, ptx_imm(2));
    WRONG(RANGE, "parity, 0 or 1");
    start_on(PTX_SM(90)), ptx_op1(k, PTX_MOVMATRIX, 0, ptx_imm(5)), WRONG(TYPE, "expected b32");
    start_on(PTX_SM(90)), ptx_op1(k, PTX_STACKRESTORE, 0, ptx_imm(5)), WRONG(TYPE, "expected");
    start_on(PTX_SM(90)), ptx_op1(k, PTX_TXQ_WIDTH, 0, ptx_imm(5)), WRONG(TYPE, "expected");
    start_on(PTX_SM(90)), v[0] = sh, v[1] = ptx_imm(20);
    ptx_opn(k, PTX_STMATRIX, 0, PTX_NONE, PTX_NONE, 2, v, 0, NULL), WRONG(TYPE, "expected b32");
    start_on(PTX_SM(90)), v[0] = sh, v[1] = n;
    ptx_opn(k, PTX_STMATRIX, 0, PTX_NONE, PTX_NONE, 2, v, 0, NULL), FINE;
    start_on(PTX_SM(90)), x = ptx_as(n, PTX_U16X2), ptx_min(k, x, ptx_imm(3)), WRONG(TYPE, "expected u16x2");
    /* versions that hang on a type, or on a number */
    start(), ptx_ld(k, PTX_B128, ptx_with(ptx_at(p, 0), PTX_RELAXED | PTX_SYS));
    CHECK(prints(".version 8.4"));
    start(), ptx_ld(k, PTX_B128, ptx_with(ptx_at(p, 0), PTX_RELAXED | PTX_GPU));
    CHECK(prints(".version 8.3"));
    start_on(PTX_SM_A(100)), ptx_op2(k, PTX_TENSORMAP_REPLACE_ELEMTYPE, 0, sh, ptx_imm(13));
    CHECK(prints(".version 8.7"));
    start_on(PTX_SM_A(90)), ptx_op2(k, PTX_TENSORMAP_REPLACE_ELEMTYPE, 0, sh, ptx_imm(13));
    WRONG(TARGET, "of 13 needs sm_100a");
    start_on(PTX_SM_A(90)), ptx_op2(k, PTX_TENSORMAP_REPLACE_ELEMTYPE, 0, sh, ptx_imm(12));
    CHECK(prints(".version 8.3"));
    /* one name for two things */
    start(), f = ptx_func(m, "f", PTX_NONE), ptx_ret(f), ptx_shared(k, "f", PTX_U32, 1, 0);
    WRONG(NAME_TAKEN, "function 'f'");
    start(), ptx_func(m, "sh", PTX_NONE), WRONG(NAME_TAKEN, "hide the function");
    start(), ptx_printf(k, "x", 0, NULL), ptx_entry(m, "_printf_0"), WRONG(NAME_TAKEN, "_printf_0");
    start(), f = ptx_entry(m, "_printf_0"), ptx_ret(f), ptx_printf(k, "x", 0, NULL);
    CHECK(prints("_printf_1"));
    /* a guard before a block of raw text */
    start(), ptx_guard(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_raw(k, "{ trap; }", 0, NULL, 0, NULL, NULL);
    WRONG(GUARD, "one instruction");
    start(), ptx_guard(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_raw(k, "trap;", 0, NULL, 0, NULL, NULL), FINE;
    /* directives that exclude or need each other */
    start_on(PTX_SM(90)), ptx_require_cluster(k, 2, 1, 1), ptx_max_cluster(k, 4);
    WRONG(LAUNCH_LIMIT, "exclude each other");
    start_on(PTX_SM(90)), ptx_blocks_are_clusters(k), WRONG(LAUNCH_LIMIT, "needs ptx_require_block");
    start(), f = ptx_func(m, "f", PTX_NONE), ptx_call(f, f, 0, NULL), WRONG(RECURSION, "calls itself");
    start(), ptx_call(k, k, 0, NULL), WRONG(ARGUMENT, "make it by ptx_func");
    /* roles: a switch ends no path, and all meet behind it */
    start(), ptx_switch(k, warp, 2), ptx_case(k, 0), shuffle(), ptx_case(k, 1), store(n), ptx_end(k);
    barrier();
    FINE;
    start(), ptx_switch(k, warp, 2), ptx_case(k, 0), barrier(), ptx_end(k), WRONG(DIVERGENT, "block");
    /* messages without what only the table means */
    start_on(PTX_SM(90)), ptx_ldmatrix(k, 3, sh, v);
    WRONG(ARGUMENT, "xN.shared.b16 does not take 1 operands and give 3 results: there are 1 and 1, 1 and 2");
    /* all threads in a block of known shape */
    start(), ptx_require_block(k, 64, 1, 1), IF(PTX_LT, tid, ptx_imm(64)), barrier(), ptx_end(k), FINE;
    start(), ptx_require_block(k, 64, 1, 1), IF(PTX_LT, tid, ptx_imm(63)), barrier(), ptx_end(k);
    WRONG(DIVERGENT, "block");
    start(), ptx_require_block(k, 64, 1, 1), IF(PTX_LT, load(0), n), store(n), ptx_ret(k), ptx_end(k);
    IF(PTX_LT, tid, ptx_imm(64)), barrier(), ptx_end(k), WRONG(DIVERGENT, "block");
}

/* Every row that says that threads come together has a behaviour, and so has every row that reads memory. */
static void test_behaviours(void) {
    size_t i;
    unsigned together = 0, reads = 0;
    for (i = 0; i < PTX__ROW_COUNT; i++) {
        const ptx__row *row = &ptx__rows[i];
        const char *sync = strstr(row->name, ".sync"), *slots = strchr(row->sig, '=') + 1;
        ptx__form form;
        ptx__set_behaviour(&form, row->op, PTX__M_SHARED);
        if (sync && sync[5] == '_') sync = NULL;
        if (strstr(row->name, ".aligned") || sync || strncmp(row->name, "bar", 3) == 0) {
            together++;
            CHECK_AT(form.collective != PTX__COLLECTIVE_NONE || strcmp(row->name, "barrier.arrive") == 0,
                     __LINE__, "who comes together", row->name);
        }
        if (strncmp(row->name, "wgmma", 5) == 0 || strncmp(row->name, "setmaxnreg", 10) == 0)
            CHECK_AT(form.collective == PTX__COLLECTIVE_GROUP, __LINE__, "a warpgroup", row->name);
        if (row->sig[0] == '=' || row->sig[0] == '_' || strncmp(row->name, "isspacep", 8) == 0
            || strncmp(row->name, "txq", 3) == 0 || strncmp(row->name, "suq", 3) == 0
            || strncmp(row->name, "createpolicy", 12) == 0 || !slots[strcspn(slots, "mgskbrlona[")])
            continue;
        if (strchr("=", row->sig[strspn(row->sig, "*~!")])) continue;
        reads++;
        CHECK_AT(form.result != PTX__RESULT_SAME, __LINE__, "what is read differs", row->name);
    }
    CHECK(together > 150 && reads > 60);
    CHECK(ptx__specials[PTX_SMID].class_ == PTX__CLASS_BLOCK);
    CHECK(ptx__specials[PTX_CLUSTERID_X].class_ == PTX__CLASS_CLUSTER);
    CHECK(ptx__specials[PTX_CTAID_X].class_ == PTX__CLASS_BLOCK);
    CHECK(ptx__specials[PTX_CLUSTER_CTARANK].class_ == PTX__CLASS_BLOCK);
    CHECK(ptx__specials[PTX_WARPID].class_ == PTX__CLASS_WARP);
    CHECK(ptx__specials[PTX_LANEMASK_GT].class_ == PTX__CLASS_LANE);
    CHECK(ptx__specials[PTX_GLOBALTIMER_LO].class_ == PTX__CLASS_LANE);
}

static void wgmma_fence(void) { ptx_op0(k, PTX_WGMMA_FENCE, 0); }

/* Warpgroups, shapes of blocks, raw text, calls. */
static void test_groups_and_calls(void) {
    ptx_val x, args[1];
    ptx_kernel *f, *g;
    uint32_t i;
    start_on(PTX_SM_A(90)), ptx_if(k, ptx_setp(k, PTX_EQ, warp, zero)), wgmma_fence(), ptx_end(k);
    WRONG(DIVERGENT, "warpgroup");
    start_on(PTX_SM_A(90)), x = ptx_shr(k, tid, ptx_imm(7));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), wgmma_fence(), ptx_end(k), FINE;
    start_on(PTX_SM_A(90)), ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(128))), wgmma_fence(), ptx_end(k),
        FINE;
    start_on(PTX_SM_A(90)), ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(96))), wgmma_fence(), ptx_end(k);
    WRONG(DIVERGENT, "warpgroup");
    start_on(PTX_SM_A(90)), x = ptx_div(k, tid, ptx_u32(128));
    x = ptx_shfl_idx(k, x, ptx_imm(0), ptx_imm(31), ptx_b32(0xffffffff));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), wgmma_fence(), ptx_end(k), FINE;
    start_on(PTX_SM_A(90)), x = ptx_warpgroup_uniform(k, ptx_shr(k, warp, ptx_imm(2)));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), wgmma_fence(), ptx_end(k), FINE;
    start_on(PTX_SM_A(90)), x = ptx_warpgroup_uniform(k, ptx_shr(k, warp, ptx_imm(2)));
    ptx_if(k, ptx_setp(k, PTX_EQ, x, zero)), barrier(), ptx_end(k), WRONG(DIVERGENT, "block");
    /* the shape of the block */
    start(), ptx_if(k, ptx_setp(k, PTX_EQ, ptx_tid_y(k), zero)), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "%tid.y");
    start(), ptx_require_block(k, 32, 8, 1);
    ptx_if(k, ptx_setp(k, PTX_EQ, ptx_tid_y(k), zero)), shuffle(), ptx_end(k), FINE;
    start(), ptx_require_block(k, 48, 4, 1);
    ptx_if(k, ptx_setp(k, PTX_EQ, ptx_tid_y(k), zero)), shuffle(), ptx_end(k);
    WRONG(DIVERGENT, "%tid.y");
    start(), ptx_require_block(k, 48, 4, 1);
    ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(32))), shuffle(), ptx_end(k), WRONG(DIVERGENT, "come here");
    start(), ptx_require_block(k, 64, 1, 1);
    ptx_if(k, ptx_setp(k, PTX_EQ, ptx_tid_y(k), zero)), barrier(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, ptx_sreg(k, PTX_SMID), n)), barrier(), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_LT, ptx_sreg(k, PTX_WARPID), n)), barrier(), ptx_end(k),
        WRONG(DIVERGENT, "%warpid");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, ptx_sreg(k, PTX_LANEMASK_LT), n)), shuffle(), ptx_end(k),
        WRONG(DIVERGENT, "%lanemask_lt");
    /* matrices */
    start(), ptx_if(k, ptx_setp(k, PTX_LT, lane, n)), ptx_ldmatrix(k, 1, sh, &x), ptx_end(k),
        WRONG(DIVERGENT, "ldmatrix");
    start(), ptx_ldmatrix(k, 1, sh, &x), ptx_if(k, ptx_setp(k, PTX_EQ, ptx_as(x, PTX_U32), zero)), barrier();
    ptx_end(k), WRONG(DIVERGENT, "ldmatrix");
    /* raw text */
    start(), ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), ptx_raw(k, "{ bar.sync 0; }", 0, NULL, 0, NULL, NULL);
    ptx_end(k), FINE; /* not read */
    {
        ptx_type type = PTX_U32;
        start(), ptx_raw(k, "ld.global.u32 $0, [$1];", 1, &p, 1, &type, &x);
        ptx_if(k, ptx_setp(k, PTX_LT, x, n)), barrier(), ptx_end(k), WRONG(DIVERGENT, NULL);
    }
    /* functions: a barrier inside is for all threads of the block, a shuffle for those of a warp */
    for (i = 0; i < 12; i++) {
        start();
        f = ptx_func(m, "f", PTX_U32);
        x = ptx_param(f, "x", PTX_U32);
        if (i < 4) ptx_bar_sync(f, ptx_imm(0));
        else if (i < 7)
            ptx_shfl_bfly(f, x, ptx_imm(1), ptx_imm(31), ptx_b32(0xffffffff));
        else if (i == 10) {
            ptx_if(f, ptx_setp(f, PTX_EQ, x, ptx_imm(3)));
            ptx_bar_sync(f, ptx_imm(0));
            ptx_end(f);
        }
        ptx_return(f, x);
        g = ptx_func(m, "g", PTX_NONE);
        args[0] = ptx_mov(g, ptx_u32(4));
        ptx_call(g, f, 1, args);
        ptx_ret(g);
        args[0] = n;
        if (i == 0 || i == 4 || i == 7) {
            ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), ptx_call(k, f, 1, args), ptx_end(k);
        } else if (i == 1 || i == 5 || i == 8) {
            ptx_if(k, ptx_setp(k, PTX_LT, tid, n)), ptx_call(k, g, 0, NULL), ptx_end(k);
        } else if (i == 2) {
            ptx_call(k, g, 0, NULL);
        } else if (i == 3) {
            ptx_val address = ptx_func_address(k, f);
            ptx_if(k, ptx_setp(k, PTX_LT, tid, n));
            ptx_call_indirect(k, address, PTX_U32, 1, args), ptx_end(k);
        } else if (i == 6) {
            ptx_if(k, ptx_setp(k, PTX_LT, warp, n)), ptx_call(k, f, 1, args), ptx_end(k);
        } else if (i == 9) {
            x = ptx_call(k, f, 1, args);
            ptx_if(k, ptx_setp(k, PTX_LT, x, n)), barrier(), ptx_end(k);
        }
        if (i < 2 || i == 3) WRONG(DIVERGENT, "a call is for all threads of the block");
        else if (i == 4 || i == 5)
            WRONG(DIVERGENT, "a call is for all threads of a warp");
        else if (i == 9 || i == 10)
            WRONG(DIVERGENT, "bar.sync");
        else
            FINE;
    }
    /* a function that comes back to itself by way of another */
    start();
    f = ptx_func(m, "f", PTX_NONE), g = ptx_func(m, "g", PTX_NONE);
    ptx_call(f, g, 0, NULL), ptx_ret(f);
    ptx_call(g, f, 0, NULL), ptx_ret(g);
    ptx_call(k, f, 0, NULL), WRONG(RECURSION, "leads back");
    start();
    f = ptx_func(m, "f", PTX_NONE), g = ptx_func(m, "g", PTX_NONE);
    ptx_call(f, g, 0, NULL), ptx_ret(f), ptx_ret(g);
    ptx_call(k, f, 0, NULL), ptx_call(k, g, 0, NULL), FINE;
}

static void copy(void) { ptx_cp_async_16(k, ptx_ptr_add(k, sh, tid, 16), p); }
static void read_back(void) { store(ptx_ld(k, PTX_U32, ptx_at(mine, 4))); }

/* cp.async: read only behind a wait, and a wait only behind a commit, on every path. */
static void test_copies(void) {
    ptx_module_desc desc;
    ptx_val i;
    start(), copy(), read_back(), WRONG(ASYNC, "wait_group");
    start(), copy(), ptx_cp_async_commit(k), ptx_cp_async_wait(k, 0), barrier(), read_back(), FINE;
    start(), copy(), ptx_cp_async_wait_all(k), barrier(), read_back(), FINE;
    start(), copy(), ptx_cp_async_wait(k, 0), barrier(), read_back(), WRONG(ASYNC, "not committed");
    start(), copy(), ptx_cp_async_commit(k), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(4)));
    ptx_cp_async_wait(k, 0), ptx_end(k), barrier(), read_back(), WRONG(ASYNC, "some path");
    start(), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(4))), copy(), ptx_cp_async_wait_all(k), ptx_else(k);
    copy(), ptx_end(k), read_back(), WRONG(ASYNC, "some path");
    start(), read_back(), copy(), ptx_cp_async_wait_all(k), FINE;
    /* to an address that the caller gives, in a kernel without an array */
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM(80);
    m = ptx_module_new(&desc), k = ptx_entry(m, "k"), p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    i = ptx_ptr(ptx_param(k, "place", PTX_U32), PTX_SHARED), ptx_cp_async_16(k, i, p);
    store(ptx_ld(k, PTX_U32, ptx_at(i, 0))), ptx_cp_async_wait_all(k), FINE;
    /* ping-pong: the next tile is fetched while the last is used */
    start(), copy(), ptx_cp_async_commit(k), i = ptx_for(k, zero, n, ptx_u32(1)), (void)i;
    copy(), ptx_cp_async_commit(k), ptx_cp_async_wait(k, 1), barrier(), read_back(), barrier(), ptx_end(k);
    ptx_cp_async_wait_all(k), FINE;
    start(), copy(), ptx_cp_async_commit(k), i = ptx_for(k, zero, n, ptx_u32(1)), (void)i;
    copy(), ptx_cp_async_commit(k), barrier(), read_back(), barrier(), ptx_end(k), WRONG(ASYNC, NULL);
    {
        ptx_kernel *f;
        start(), f = ptx_func(m, "f", PTX_NONE), ptx_cp_async_wait_all(f), ptx_bar_sync(f, ptx_imm(0)),
            ptx_ret(f);
        copy(), ptx_call(k, f, 0, NULL), read_back(), FINE;
    }
}

static ptx_var sums[4];
static ptx_val desc_of_tile;
/* Four sums, a descriptor; the kernel is launched with so many registers. */
static void start_mma(void) {
    int i;
    start_on(PTX_SM_A(90));
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
    desc_of_tile = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
}
static void product(void) {
    ptx_val o[7];
    o[0] = o[1] = desc_of_tile, o[2] = ptx_setp(k, PTX_NE, n, zero), o[3] = o[4] = ptx_imm(1);
    o[5] = o[6] = ptx_imm(0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
}
static void commit(void) { ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0); }
static void wait_for(int left_open) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(left_open)); }
static void use_sum(void) { store(ptx_as(ptx_get(k, sums[2]), PTX_U32)); }

static void test_products(void) {
    start_mma(), product(), commit(), wait_for(0), use_sum(), WRONG(FENCE, "PTX_WGMMA_FENCE");
    start_mma(), wgmma_fence(), product(), commit(), wait_for(0), use_sum(), FINE;
    start_mma(), wgmma_fence(), product(), commit(), use_sum(), WRONG(ASYNC, "read here");
    start_mma(), wgmma_fence(), product(), wait_for(0), use_sum(), WRONG(ASYNC, "commit_group");
    start_mma(), wgmma_fence(), product(), commit(), ptx_set(k, sums[3], ptx_f32(1)),
        WRONG(ASYNC, "set here");
    start_mma(), wgmma_fence(), product(), commit(), wait_for(1), use_sum(), WRONG(ASYNC, "wait_group");
    start_mma(), wgmma_fence(), product(), commit(), commit(), wait_for(1), use_sum(), FINE;
    start_mma(), wgmma_fence(), product(), product(), commit(), wait_for(0), use_sum(), FINE;
    start_mma(), wgmma_fence(), product(), commit(), wait_for(0), ptx_set(k, sums[1], ptx_f32(2)), product();
    commit(), wait_for(0), WRONG(FENCE, NULL);
    start_mma(), wgmma_fence(), product(), commit(), wait_for(0), ptx_set(k, sums[1], ptx_f32(2));
    wgmma_fence(), product(), commit(), wait_for(0), FINE;
    /* the wait on one path only */
    start_mma(), wgmma_fence(), product(), commit(), ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(4)));
    wait_for(0), ptx_end(k), use_sum(), WRONG(ASYNC, "some path");
    /* around a loop: waited for behind it, or at its end */
    start_mma(), wgmma_fence(), ptx_for(k, zero, n, ptx_u32(1)), product(), commit(), ptx_end(k);
    wait_for(0), use_sum(), FINE;
    start_mma(), ptx_for(k, zero, n, ptx_u32(1)), wgmma_fence(), product(), commit(), use_sum(), wait_for(0);
    ptx_end(k), WRONG(ASYNC, NULL);
    start_mma(), ptx_for(k, zero, n, ptx_u32(1)), product(), commit(), wait_for(0), ptx_end(k);
    WRONG(FENCE, NULL);
    /* two sets of sums, of which the older is waited for */
    {
        ptx_var first[4];
        int i;
        start_mma(), memcpy(first, sums, sizeof first);
        for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
        wgmma_fence(), product(), commit(), memcpy(sums, first, sizeof first), product(), commit();
        wait_for(1), use_sum(), WRONG(ASYNC, NULL);
        start_mma(), memcpy(first, sums, sizeof first);
        wgmma_fence(), product(), commit();
        for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
        wgmma_fence(), product(), commit(), memcpy(sums, first, sizeof first);
        wait_for(1), use_sum(), FINE;
    }
    /* A from registers: written since the fence, or before */
    {
        int late;
        for (late = 0; late < 2; late++) {
            ptx_val o[7];
            int i;
            start_mma();
            if (late) wgmma_fence();
            for (i = 0; i < 4; i++) o[i] = ptx_as(load(4 * i), PTX_B32);
            if (!late) wgmma_fence();
            o[4] = desc_of_tile;
            o[5] = ptx_setp(k, PTX_NE, n, zero);
            {
                ptx_val all[9];
                memcpy(all, o, sizeof o);
                all[6] = all[7] = ptx_imm(1), all[8] = ptx_imm(0);
                ptx_wgmma(k, PTX_WGMMA_A_F32, 0, PTX_F16, PTX_F16, 4, sums, 9, all);
            }
            commit(), wait_for(0);
            if (late) WRONG(FENCE, NULL);
            else
                FINE;
        }
    }
}

static void test_launch(void) {
    start(), ptx_launch_bounds(k, 256, 1), ptx_require_block(k, 256, 1, 1), WRONG(LAUNCH_LIMIT, "exclude");
    start(), ptx_launch_bounds(k, 256, 1), ptx_max_registers(k, 64), WRONG(LAUNCH_LIMIT, "keep one");
    start(), ptx_launch_bounds(k, 256, 0), ptx_max_registers(k, 64), FINE;
    start(), ptx_launch_bounds(k, 1024, 3), WRONG(LAUNCH_LIMIT, "holds 2048");
    start(), ptx_launch_bounds(k, 1024, 2), FINE;
    start_on(PTX_SM(75)), ptx_launch_bounds(k, 1024, 2), WRONG(LAUNCH_LIMIT, "holds 1024");
    start_on(PTX_SM(89)), ptx_launch_bounds(k, 1024, 2), WRONG(LAUNCH_LIMIT, "holds 1536");
    start(), ptx_max_registers(k, 23), WRONG(LAUNCH_LIMIT, "24 to 255");
    start(), ptx_max_registers(k, 24), FINE;
    start(), ptx_max_registers(k, 256), WRONG(LAUNCH_LIMIT, "24 to 255");
}

/* Texts that only the assembler used to refuse. */
static void sparse(ptx_target target, ptx_op_id op, ptx_type type, int selector) {
    uint32_t c[4], i;
    ptx_val a[16], b[16], sum[16], d[16], extra[2];
    start_on(target);
    CHECK(ptx_mma_shape(op, type, c));
    for (i = 0; i < c[1]; i++) a[i] = ptx_mov(k, ptx_b32(0));
    for (i = 0; i < c[2]; i++) b[i] = ptx_mov(k, ptx_b32(0));
    for (i = 0; i < c[3]; i++)
        sum[i] = type == PTX_S8 ? ptx_mov(k, ptx_s32(0)) : ptx_mov(k, ptx_f32(0));
    extra[0] = n;
    extra[1] = ptx_imm(selector);
    ptx_mma_with(k, op, 0, type, type, d, a, b, sum, 2, extra);
}
static void test_assembler_limits(void) {
    ptx_target a = PTX_SM_A(90);
    static const struct {
        ptx_op_id op;
        ptx_type type;
        int most;
        ptx_target target;
    } sp[] = {{PTX_MMA_SP_M16N8K16_F32, PTX_F16, 3, 80},  {PTX_MMA_SP_M16N8K16_F32, PTX_TF32, 1, 80},
              {PTX_MMA_SP_M16N8K32_F32, PTX_BF16, 1, 80}, {PTX_MMA_SP_M16N8K32_S32, PTX_S8, 1, 80},
              {PTX_MMA_SP_M16N8K64_S32, PTX_S8, 0, 80},   {PTX_MMA_SP_M16N8K64_F32, PTX_E4M3, 0, 89},
              {PTX_MMA_SPO_M16N8K32_F32, PTX_F16, 1, 80}, {PTX_MMA_SPO_M16N8K64_S32, PTX_S8, 0, 80},
              {PTX_MMA_SPO_M16N8K64_F32, PTX_E4M3, 0, 89}};
    size_t i;
    for (i = 0; i < sizeof sp / sizeof *sp; i++) {
        sparse(sp[i].target, sp[i].op, sp[i].type, sp[i].most), FINE;
        sparse(sp[i].target, sp[i].op, sp[i].type, sp[i].most + 1), WRONG(RANGE, "immediate");
    }
    start_on(a), ptx_op2(k, PTX_TENSORMAP_REPLACE_SWIZZLE, 0, sh, ptx_imm(3)), FINE;
    start_on(a), ptx_op2(k, PTX_TENSORMAP_REPLACE_SWIZZLE, 0, sh, ptx_imm(4)), WRONG(TARGET, "sm_103a");
    start_on(PTX_SM_A(103)), ptx_op2(k, PTX_TENSORMAP_REPLACE_SWIZZLE, 0, sh, ptx_imm(4));
    CHECK(prints(".version 8.8"));
    start(), ptx_op3(k, PTX_CREATEPOLICY_RANGE, PTX_L2_EVICT_LAST, p, ptx_imm(3), ptx_imm(2));
    WRONG(RANGE, "more than the total");
    start(), ptx_op3(k, PTX_CREATEPOLICY_RANGE, PTX_L2_EVICT_LAST, p, ptx_imm(2), ptx_imm(2)), FINE;
    start_on(PTX_SM(75)), ptx_cvt_with(k, PTX_RN | PTX_SATFINITE, PTX_F16, ptx_cvt(k, PTX_F32, n)), FINE;
    start_on(PTX_SM(75)), ptx_cvt_with(k, PTX_RN | PTX_SATFINITE, PTX_BF16, ptx_cvt(k, PTX_F32, n));
    WRONG(TARGET, "sm_80");
}

/* Values of one format in a product of another, and a for that counts down. */
static void halves(ptx_type of, ptx_type product) {
    ptx_val a[4], b[2], c[4], d[4];
    int i;
    start();
    for (i = 0; i < 4; i++) a[i] = ptx_mov(k, ptx_b32(0)), c[i] = ptx_mov(k, ptx_f32(0));
    b[0] = b[1] = ptx_mov(k, ptx_b32(0));
    a[3] = ptx_as(a[3], of);
    ptx_mma(k, PTX_MMA_M16N8K16_F32, product, product, d, a, b, c);
}
static void test_formats_and_counts(void) {
    ptx_val x;
    halves(PTX_BF16X2, PTX_F16), WRONG(TYPE, "bf16x2");
    halves(PTX_F16X2, PTX_BF16), WRONG(TYPE, "f16x2");
    halves(PTX_F16X2, PTX_F16), FINE;
    halves(PTX_BF16X2, PTX_BF16), FINE;
    start(), ptx_for(k, ptx_s32(10), ptx_as(n, PTX_S32), ptx_s32(-1)), ptx_end(k), WRONG(RANGE, "counts up");
    start(), ptx_for(k, ptx_s32(-10), ptx_as(n, PTX_S32), ptx_s32(1)), ptx_end(k), FINE;
    start(), ptx_for(k, ptx_u32(0), n, ptx_u32(0)), ptx_end(k), WRONG(RANGE, "the step is 0");
    start(), x = ptx_as(ptx_u64(0), PTX_B64), ptx_add(k, x, x), WRONG(HANDLE, "no register");
    start(), x = ptx_as(n, PTX_U64), ptx_add(k, x, x), WRONG(HANDLE, "different widths");
}

/* Addresses of one space that are used in another. */
static ptx_symbol variable_in(ptx_space space) {
    ptx_variable_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "v";
    desc.space = space;
    desc.type = PTX_U32;
    desc.count = 16;
    return ptx_variable(m, &desc);
}
static void reads_as(ptx_space space, ptx_val address) {
    ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(address, space), 0));
}
static void test_spaces(void) {
    ptx_val x;
    ptx_symbol s;
    int i;
    static const ptx_space others[] = {PTX_GLOBAL, PTX_GENERIC};
    for (i = 0; i < 2; i++) {
        start(), s = variable_in(PTX_CONST), reads_as(others[i], ptx_address(k, s));
        WRONG(ADDRESS, "constant memory");
    }
    start(), s = variable_in(PTX_CONST), reads_as(PTX_CONST, ptx_address(k, s)), FINE;
    start(), s = variable_in(PTX_CONST), reads_as(PTX_GENERIC, ptx_cvta(k, ptx_address(k, s))), FINE;
    start(), s = variable_in(PTX_GLOBAL), x = ptx_cvta(k, ptx_address(k, s));
    ptx_st(k, PTX_U32, ptx_at(x, 0), n), FINE;
    start(), s = variable_in(PTX_GLOBAL), reads_as(PTX_CONST, ptx_address(k, s)), WRONG(ADDRESS, "global");
    start(), s = variable_in(PTX_GLOBAL), reads_as(PTX_LOCAL, ptx_address(k, s)), WRONG(ADDRESS, "global");
    start(), s = variable_in(PTX_GLOBAL), reads_as(PTX_GENERIC, ptx_address(k, s)), FINE;
    start(), reads_as(PTX_GENERIC, p), FINE;
    start(), x = ptx_param(k, "raw", PTX_U64), reads_as(PTX_CONST, x), FINE; /* the host may know */
    start(), x = ptx_local(k, "l", PTX_U32, 4, 4), x = ptx_cvta(k, x), reads_as(PTX_GENERIC, x), FINE;
    start(), x = ptx_local(k, "l", PTX_U32, 4, 4);
    ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_ptr(x, PTX_GENERIC), 0), n), WRONG(ADDRESS, "local memory");
    start(), x = ptx_param_bytes(k, "block", 64, 4), ptx_ptr_add(k, x, tid, 4);
    WRONG(HANDLE, "address of a parameter block");
}

static void wide(ptx_val address, int64_t offset) {
    ptx_val v[4];
    ptx_ld_vec(k, PTX_U32, 4, ptx_at(address, offset), v);
}
/* What is known of an address at build time. sh has 4096 bytes, aligned to 16. */
static void test_addresses(void) {
    ptx_val x, at;
    ptx_var v;
    start(), wide(ptx_add(k, sh, ptx_imm(4)), 0), WRONG(ALIGN, "aligned to 16");
    start(), wide(ptx_add(k, sh, ptx_imm(4)), 12), FINE;
    start(), wide(ptx_add(k, sh, ptx_imm(16)), 0), FINE;
    start(), wide(ptx_sub(k, ptx_add(k, sh, ptx_imm(20)), ptx_imm(4)), 0), FINE;
    start(), wide(ptx_sub(k, ptx_add(k, sh, ptx_imm(20)), ptx_imm(8)), 0), WRONG(ALIGN, "byte 12 of 'sh'");
    start(), wide(ptx_ptr_add(k, sh, tid, 16), 8), FINE; /* a run tells what depends on tid */
    start(), v = ptx_var_new(k, ptx_add(k, sh, ptx_imm(4))), ptx_set(k, v, sh), wide(ptx_get(k, v), 0), FINE;
    start(), x = ptx_mul(k, n, n), wide(ptx_add(k, sh, x), 0), FINE;
    /* range */
    start(), ptx_ld(k, PTX_U32, ptx_at(sh, 4092)), FINE;
    start(), ptx_ld(k, PTX_U32, ptx_at(sh, 4096)), WRONG(ADDRESS, "4096 to 4099 of 'sh', which has 4096");
    start(), ptx_ld(k, PTX_U64, ptx_at(sh, 4088)), FINE;
    start(), wide(sh, 4080), FINE;
    start(), wide(sh, 4096), WRONG(ADDRESS, "4111");
    start(), ptx_st(k, PTX_U32, ptx_at(sh, -4), n), WRONG(ADDRESS, "-4 to -1");
    start(), ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, sh, ptx_s32(-1), 4), 0), n), WRONG(ADDRESS, "-4 to -1");
    start(), ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, sh, ptx_u32(1024), 4), 0), n), WRONG(ADDRESS, "4096");
    start(), ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, sh, ptx_u32(1023), 4), 0), n), FINE;
    start(), ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, sh, tid, 4), 8192), n),
        FINE; /* by hand: tid may be < 0 */
    start(), ptx_atom(k, PTX_ATOM_ADD, ptx_at(sh, 4096), n), WRONG(ADDRESS, "atom");
    start(), at = ptx_shared_dynamic(k), ptx_st(k, PTX_U32, ptx_at(at, 70000), n), FINE;
    start(), at = ptx_shared_dynamic(k), ptx_st(k, PTX_U32, ptx_at(at, -4), n), WRONG(ADDRESS, NULL);
    start(), at = ptx_local(k, "mine", PTX_F32, 8, 0), ptx_st(k, PTX_U32, ptx_at(at, 28), n), FINE;
    start(), at = ptx_local(k, "mine", PTX_F32, 8, 0), ptx_st(k, PTX_U32, ptx_at(at, 32), n),
             WRONG(ADDRESS, "'mine'");
    start(), at = ptx_ptr_add(k, ptx_local(k, "mine", PTX_F32, 8, 0), ptx_u32(8), 4);
    ptx_st(k, PTX_U32, ptx_at(at, 0), n), WRONG(ADDRESS, "'mine'");
    start();
    {
        ptx_variable_desc desc = {"table", PTX_CONST, PTX_U32, 16, 0, NULL, 0};
        at = ptx_address(k, ptx_variable(m, &desc));
        store(ptx_ld(k, PTX_U32, ptx_at(at, 60))), store(ptx_ld(k, PTX_U32, ptx_at(at, 64)));
        WRONG(ADDRESS, "'table'");
    }
    /* other instructions with addresses */
    start(), ptx_ldmatrix(k, 1, ptx_add(k, sh, ptx_imm(8)), &x), WRONG(ALIGN, "ldmatrix");
    start(), ptx_ldmatrix(k, 1, ptx_ptr_add(k, sh, lane, 16), &x), FINE;
    start(), ptx_mbarrier_init(k, ptx_add(k, sh, ptx_imm(4)), ptx_imm(1)), WRONG(ALIGN, "mbarrier");
    start(), ptx_mbarrier_init(k, ptx_off(sh, 4), ptx_imm(1)), WRONG(ALIGN, "mbarrier");
    start(), ptx_mbarrier_init(k, ptx_off(sh, 8), ptx_imm(1)), FINE;
    start(), ptx_cp_async(k, ptx_off(sh, 4), p, ptx_imm(8)), WRONG(ALIGN, "cp.async");
    start(), ptx_cp_async(k, ptx_off(sh, 8), p, ptx_imm(8)), FINE;
    start(), ptx_cp_async_16(k, ptx_off(sh, 4096), p), WRONG(ADDRESS, "cp.async");
    start_on(PTX_SM(90)), ptx_bulk_load(k, sh, p, ptx_imm(4112), sh), WRONG(ADDRESS, "cp.async.bulk");
    start_on(PTX_SM(90)), ptx_bulk_load(k, ptx_off(sh, 16), p, ptx_imm(64), sh), FINE;
    start_on(PTX_SM(90)), ptx_bulk_load(k, ptx_off(sh, 8), p, ptx_imm(64), sh), WRONG(ALIGN, "byte 8");
}

static void test_endless(void) {
    ptx_label l;
    start(), ptx_loop(k), store(n), ptx_end(k), with_ret = 0, WRONG(ENDLESS, "no way out");
    start(), ptx_loop(k), store(n), ptx_break(k), ptx_end(k), FINE;
    start(), ptx_if(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_loop(k), store(n), ptx_end(k), ptx_end(k);
    WRONG(ENDLESS, "no way out");
    start(), ptx_loop(k), ptx_guard(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_trap(k), ptx_end(k);
    with_ret = 0, FINE;
    start(), ptx_loop(k), ptx_guard(k, ptx_setp(k, PTX_EQ, n, zero)), ptx_ret(k), ptx_end(k), with_ret = 0,
                                                                                              FINE;
    start(), l = ptx_label_new(k), ptx_place(k, l), store(n), ptx_bra(k, l), WRONG(UNREACHABLE, NULL);
    /* a trap in one loop does not excuse another; one that a path leads to does */
    start(), IF(PTX_LT, n, ptx_imm(4)), ptx_loop(k), ptx_trap(k), ptx_end(k), ptx_end(k);
    ptx_loop(k), store(n), ptx_end(k), with_ret = 0, WRONG(ENDLESS, "no way out");
    start(), ptx_loop(k), ptx_trap(k), IF(PTX_LT, n, ptx_imm(4)), ptx_loop(k), store(n), ptx_end(k);
    ptx_end(k), ptx_end(k), with_ret = 0, WRONG(ENDLESS, "no way out");
    start(), ptx_loop(k), IF(PTX_LT, n, ptx_imm(4)), ptx_loop(k), ptx_trap(k), ptx_end(k), ptx_end(k);
    ptx_end(k), with_ret = 0, FINE;
    /* collective instructions in endless loops */
    start(), IF(PTX_LT, lane, n), ptx_loop(k), barrier(), ptx_trap(k), ptx_end(k), ptx_end(k);
    WRONG(DIVERGENT, "%laneid");
    start(), IF(PTX_LT, tid, ptx_imm(64)), ptx_loop(k), barrier(), ptx_trap(k), ptx_end(k), ptx_end(k);
    WRONG(DIVERGENT, "setp");
    start(), IF(PTX_LT, tid, ptx_imm(64)), ptx_loop(k), shuffle(), ptx_trap(k), ptx_end(k), ptx_end(k), FINE;
    start(), ptx_loop(k), ptx_guard(k, ptx_setp(k, PTX_LT, lane, n)), ptx_continue(k), barrier(), ptx_trap(k);
    ptx_end(k), with_ret = 0, WRONG(DIVERGENT, "%laneid");
    start(), ptx_loop(k), IF(PTX_LT, lane, n), ptx_trap(k), ptx_end(k), barrier(), ptx_end(k), with_ret = 0;
    FINE;
    start(), ptx_loop(k), ptx_loop(k), ptx_while(k, ptx_setp(k, PTX_NE, load(0), n)), ptx_end(k), barrier();
    ptx_trap(k), ptx_end(k), with_ret = 0, FINE;
}

static void test_limits(void) {
    start(), ptx_shl(k, n, ptx_imm(31)), FINE;
    start(), ptx_shl(k, n, ptx_imm(40)), WRONG(RANGE, "a count from 0 to 31, not 40");
    start(), ptx_shl(k, ptx_mov(k, ptx_u64(1)), ptx_imm(40)), FINE;
    start(), ptx_shr(k, n, ptx_imm(32)), WRONG(RANGE, "shr");
    start(), ptx_bfe(k, n, ptx_imm(31), ptx_imm(32)), FINE;
    start(), ptx_bfe(k, n, ptx_imm(32), ptx_imm(1)), WRONG(RANGE, "operand 2");
    start(), ptx_bfe(k, n, ptx_imm(0), ptx_imm(33)), WRONG(RANGE, "operand 3");
    start(), ptx_prmt(k, n, n, ptx_imm(0x7654)), FINE;
    start(), ptx_prmt(k, n, n, ptx_imm(0x9999999)), WRONG(RANGE, "65535");
    start(), ptx_shfl_bfly(k, n, ptx_imm(32), ptx_imm(31), ptx_imm(-1)), WRONG(RANGE, "operand 2");
    start(), ptx_shfl_bfly(k, n, ptx_imm(16), ptx_imm(31), ptx_imm(0)), WRONG(RANGE, "operand 4");
    start(), ptx_shfl_bfly(k, n, ptx_imm(16), ptx_imm(31), ptx_imm(-1)), FINE;
    start(), ptx_bar_sync(k, ptx_imm(16)), WRONG(RANGE, "bar.sync");
}

/* Functions, printf and tables: what the assembler would refuse is refused here, in time. */
static void test_calls(void) {
    ptx_val x, args[2], out[2];
    ptx_kernel *g, *e;
    ptx_type ty = PTX_U32;
    start(), ptx_printf(k, "hi\n", 0, NULL), FINE;
    start(), args[0] = n, ptx_printf(k, "%u %%\n", 1, args), FINE;
    start(), args[0] = n, args[1] = n, ptx_printf(k, "%*u\n", 2, args), FINE;
    start(), args[0] = p, ptx_printf(k, "%p\n", 1, args), FINE;
    start(), args[0] = ptx_f64(2), ptx_printf(k, "%g\n", 1, args), FINE;
    start(), args[0] = n, ptx_printf(k, "%f\n", 1, args), WRONG(TYPE, "takes a float");
    start(), args[0] = p, ptx_printf(k, "%d\n", 1, args), WRONG(TYPE, "32 bits");
    start(), args[0] = n, ptx_printf(k, "%s\n", 1, args), WRONG(TYPE, "64 bits");
    start(), ptx_printf(k, "%d\n", 0, NULL), WRONG(ARGUMENT, "takes 1 arguments, 0");
    start(), args[0] = n, ptx_printf(k, "x\n", 1, args), WRONG(ARGUMENT, "takes 0 arguments, 1");
    start(), ptx_printf(k, "%y\n", 0, NULL), WRONG(ARGUMENT, "no conversion");
    start(), ptx_printf(k, "%d\n", 1, NULL), WRONG(ARGUMENT, "NULL");
    start(), ptx_func(m, "vprintf", PTX_U32), WRONG(NAME, "vprintf");
    /* a caller's names are not those of a call's own variables */
    start(), g = ptx_func(m, "g", PTX_U32), x = ptx_param(g, "a0", PTX_U32), ptx_return(g, x);
    e = ptx_entry(m, "e"), args[0] = ptx_param(e, "a0", PTX_U32), ptx_param(e, "r", PTX_U32);
    ptx_call(e, g, 1, args), ptx_printf(e, "x\n", 0, NULL), ptx_ret(e), FINE;
    start(), g = ptx_func(m, "g", PTX_NONE), ptx_ret(g), ptx_call(k, g, 0, NULL),
             ptx_param(g, "late", PTX_U32);
    WRONG(ARGUMENT, "parameters come first");
    start(), g = ptx_func(m, "g", PTX_NONE), ptx_launch_bounds(g, 128, 1), WRONG(ARGUMENT, "function");
    start(), g = ptx_func(m, "g", PTX_U32), ptx_ret(g), WRONG(UNDEFINED, "ptx_return");
    start(), g = ptx_func(m, "g", PTX_NONE), ptx_noreturn(g), ptx_ret(g), WRONG(UNDEFINED, "never returns");
    start(), args[0] = ptx_setp(k, PTX_EQ, n, zero), ptx_call_indirect(k, p, PTX_NONE, 1, args);
    WRONG(TYPE, "predicate");
    start(), ptx_call_indirect(k, p, PTX_PRED, 0, NULL), WRONG(TYPE, "cannot return pred");
    start(), ptx_call_indirect(k, n, PTX_NONE, 0, NULL), WRONG(ADDRESS, "64 bits");
    start(), ptx_switch(k, p, 2), ptx_end(k), WRONG(TYPE, "32-bit integer");
    start(), ptx_switch(k, n, 2), ptx_case(k, 1), store(n), ptx_end(k), FINE;
    start(), ptx_raw(k, "mov.u32 $0, 1;", 0, NULL, 1, &ty, out), store(out[0]), FINE;
    start(), ptx_raw(k, "mov.u32 $0, 1;", 0, NULL, 0xffffffffu, &ty, out), WRONG(ARGUMENT, "at most 64");
    start(), ptx_raw(k, "mov.u32 $0, 1;", 0, NULL, 0, NULL, NULL);
    WRONG(ARGUMENT, "at '$0, 1;': no result or operand has this number");
    start(), ptx_raw(k, "// \x80\n", 0, NULL, 0, NULL, NULL), WRONG(ARGUMENT, "must be ASCII");
    start(), ptx_add(k, ptx_as(n, PTX_U64), p), WRONG(HANDLE, "ptx_as between types of different widths");
    start(), ptx_selp(k, n, n, ptx_inv(n)), WRONG(HANDLE, "ptx_inv of no predicate");
}

/* A kernel's own name would hide a variable of the module, without a word from the assembler. */
static void test_names(void) {
    ptx_variable_desc v;
    memset(&v, 0, sizeof v);
    v.name = "p", v.space = PTX_GLOBAL, v.type = PTX_U32, v.count = 4;
    start(), ptx_variable(m, &v), WRONG(NAME_TAKEN, "hide");
    v.name = "sh";
    start(), ptx_variable(m, &v), WRONG(NAME_TAKEN, "hide");
    v.name = "table";
    start(), ptx_variable(m, &v), ptx_shared(k, "table", PTX_U32, 4, 4);
    WRONG(NAME_TAKEN, "variable 'table'");
    start(), ptx_variable(m, &v), FINE;
}

static ptx_val near_by(int64_t words) { return ptx_ld(k, PTX_U32, ptx_at(mine, 4 * words)); }
static void put(ptx_val x) { ptx_st(k, PTX_U32, ptx_at(mine, 0), x); }

/* Half of the threads add what the other half has, and half of those ...: sync says what stands at the end of
   a round: 1 a barrier for all, 2 one inside of the if. Then, if asked for, the last 32 by themselves. */
static void tree(int sync, int tail) {
    ptx_val far, x, y, half, p_mine;
    ptx_var stride = ptx_var_new(k, ptx_u32(512));
    int i;
    put(n), barrier(), ptx_loop(k);
    half = ptx_get(k, stride), ptx_while(k, ptx_setp(k, PTX_GE, half, ptx_imm(32)));
    p_mine = ptx_setp(k, PTX_LT, tid, half), ptx_if(k, p_mine);
    far = ptx_ptr_add(k, mine, half, 4);
    x = ptx_ld(k, PTX_U32, ptx_at(far, 0)), y = near_by(0), put(ptx_add(k, x, y));
    if (sync == 2) barrier();
    ptx_end(k);
    if (sync == 1) barrier();
    ptx_set(k, stride, ptx_shr(k, half, ptx_imm(1)));
    ptx_end(k);
    if (!tail) return;
    ptx_if(k, ptx_setp(k, PTX_LT, tid, ptx_imm(32)));
    for (i = 16; i; i /= 2) {
        x = near_by(i), y = near_by(0);
        ptx_bar_warp_sync(k, ptx_b32(0xffffffff));
        put(ptx_add(k, x, y));
        ptx_bar_warp_sync(k, ptx_b32(0xffffffff));
    }
    ptx_end(k);
}

static void test_tree_reduction(void) {
    start(), tree(1, 0), FINE;
    start(), tree(2, 0), WRONG(DIVERGENT, "%tid.x");
    start(), tree(1, 1), FINE;
    start(), ptx_for(k, zero, n, ptx_u32(1)), tree(1, 1), barrier(), ptx_end(k), FINE;
}

/* count values live at once, in a loop or not, against the exact number. */
static double cost_of_variables(uint32_t count) {
    static ptx_var v[8000];
    ptx_pressure_info info;
    clock_t from;
    uint32_t i;
    start();
    for (i = 0; i < count; i++) v[i] = ptx_var_new(k, n);
    ptx_loop(k);
    for (i = 0; i < count; i++)
        ptx_if(k, ptx_setp(k, PTX_LT, n, ptx_imm(i & 7))), ptx_set(k, v[i], tid), ptx_end(k);
    ptx_while(k, ptx_setp(k, PTX_LT, ptx_get(k, v[0]), n)), ptx_end(k);
    for (i = 0; i < count; i++) store(ptx_get(k, v[i]));
    ptx_ret(k);
    CHECK(ptx_verify(m) == PTX_E_NONE);
    from = clock();
    CHECK(ptx_pressure(m, 0, &info) && info.registers > count && info.registers < count + 16);
    ptx_module_free(m);
    return (double)(clock() - from) / CLOCKS_PER_SEC;
}

/* Variables that are live over thousands of blocks. */
static void test_wide_pressure(void) {
    printf("note: 2,000 variables over as many blocks take ptx_pressure %.3f s\n", cost_of_variables(2000));
}

/* The index counts entries: functions that were started before do not shift it. */
static void test_pressure_of_entries(void) {
    ptx_module *both = ptx_module_new(NULL);
    ptx_kernel *f = ptx_func(both, "f", PTX_NONE), *entry = ptx_entry(both, "entry");
    ptx_pressure_info peak;
    ptx_val data = ptx_param_ptr(entry, "data", PTX_GLOBAL), a, b;
    ptx_ret(f);
    a = ptx_ld(entry, PTX_F32, ptx_at(data, 0)), b = ptx_ld(entry, PTX_F32, ptx_at(data, 4));
    ptx_st(entry, PTX_F32, ptx_at(data, 8), ptx_add(entry, a, b));
    ptx_ret(entry);
    CHECK(ptx_pressure(both, 0, &peak) && peak.registers >= 4 && !ptx_pressure(both, 1, &peak));
    ptx_module_free(both);
}

static void test_pressure(void) {
    enum { MOST = 400 };
    ptx_val v[MOST], sum;
    ptx_pressure_info peak;
    int counts[] = {1, 7, 100, 240, 300}, i, j;
    for (i = 0; i < 5; i++) {
        uint32_t base;
        int line;
        start();
        for (j = 0; j < counts[i]; j++) v[j] = load(4 * j);
        line = __LINE__ - 1;
        sum = v[0];
        for (j = 1; j < counts[i]; j++) sum = ptx_add(k, sum, v[j]);
        store(sum);
        ptx_ret(k);
        CHECK(ptx_pressure(m, 0, &peak));
        base = 2; /* p; the loads of n and the ids are not used later */
        CHECK_MORE(peak.registers == base + (uint32_t)counts[i] || (counts[i] < 7 && peak.registers <= 7),
                   (snprintf((char *)m->message, sizeof m->message, "%u for %d", (unsigned)peak.registers,
                             counts[i]),
                    m->message));
        if (counts[i] > 7) {
            char site[64];
            snprintf(site, sizeof site, "%s:%d", __FILE__, line);
            CHECK_MORE(strcmp(peak.site, site) == 0 || strstr(peak.site, __FILE__), peak.site);
        }
        ptx_module_free(m);
    }
    /* a value that is needed in every round is live through the whole loop, one that is not is not */
    start();
    v[0] = load(0), v[1] = load(4), v[2] = ptx_mul(k, v[1], v[1]);
    ptx_for(k, ptx_u32(0), v[2], ptx_u32(1));
    store(v[0]);
    ptx_end(k);
    ptx_ret(k);
    CHECK(ptx_pressure(m, 0, &peak));
    CHECK_MORE(peak.registers <= 8 && peak.registers >= 5, peak.site);
    ptx_module_free(m);
}

/* Every line leads back to its call, in a text of several kernels, with and without comments. */
static void test_locate(void) {
    uint32_t comments, e, line = 0;
    for (comments = 0; comments < 2; comments++) {
        ptx_module_desc desc;
        const char *text, *at;
        int where[3] = {0, 0, 0};
        memset(&desc, 0, sizeof desc);
        desc.comments = comments;
        m = ptx_module_new(&desc);
        for (e = 0; e < 3; e++) {
            char name[8];
            ptx_val x;
            snprintf(name, sizeof name, "k%u", (unsigned)e);
            k = ptx_entry(m, name);
            x = ptx_param(k, "n", PTX_U32);
            ptx_shared(k, "buffer", PTX_F32, 4 + e, 16);
            ptx_comment(k, "a comment");
            ptx_if(k, ptx_setp(k, PTX_LT, x, ptx_imm(3)));
            x = ptx_mul(k, x, ptx_u32(1000 + e)), where[e] = __LINE__;
            ptx_end(k);
            ptx_ret(k);
        }
        text = ptx_text(m, NULL);
        CHECK_MORE(text != NULL, ptx_get_error(m)->message);
        for (at = text, line = 1; text && *at; line++) {
            const char *end = strchr(at, '\n'), *mul = strstr(at, "mul.lo");
            ptx_place place;
            int found = ptx_locate(m, line, &place);
            if (mul && mul < end) {
                char want[300], name[8], log[100], out[600];
                e = (uint32_t)(strstr(at, "100")[3] - '0');
                snprintf(want, sizeof want, "%s:%d", __FILE__, where[e]);
                snprintf(name, sizeof name, "k%u", (unsigned)e);
                CHECK(found);
                CHECK_MORE(found && strcmp(place.site, want) == 0, place.site);
                CHECK_MORE(found && strcmp(place.kernel, name) == 0, place.kernel);
                snprintf(log, sizeof log, "ptxas x, line %u; error : no", (unsigned)line);
                CHECK(ptx_explain(m, log, out, sizeof out) == strlen(out));
                CHECK_MORE(strstr(out, want) && strstr(out, "; error : no"), out);
                CHECK(ptx_explain(m, log, out, 10) > 10 && strlen(out) == 9);
                CHECK(ptx_explain(m, log, NULL, 0) > 10);
                where[e] = -1;
            } else if (strncmp(at, ".visible", 8) == 0)
                CHECK(!found);
            at = end + 1;
        }
        for (e = 0; e < 3; e++) CHECK(where[e] == -1);
        {
            ptx_place place;
            CHECK(!ptx_locate(m, 0, &place) && !ptx_locate(m, line + 100, &place));
            CHECK(!ptx_locate(NULL, 1, &place) && !ptx_locate(m, 1, NULL));
        }
        ptx_module_free(m);
    }
}

/* Memory may run out anywhere in the analyses: an error, no crash. */
static long left;
static void *counted(void *user, void *block, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (!new_size) {
        free(block);
        return NULL;
    }
    return left-- > 0 ? realloc(block, new_size) : NULL;
}
static void test_memory(void) {
    long limit;
    int ended = 0;
    for (limit = 0; limit < 400 && !ended; limit++) {
        ptx_module_desc desc;
        ptx_pressure_info peak;
        memset(&desc, 0, sizeof desc);
        desc.alloc = counted;
        left = limit;
        m = ptx_module_new(&desc);
        k = ptx_entry(m, "k");
        p = ptx_param_ptr(k, "p", PTX_GLOBAL);
        n = ptx_param(k, "n", PTX_U32);
        sh = ptx_shared(k, "sh", PTX_U32, 64, 4);
        mine = ptx_ptr_add(k, sh, ptx_tid_x(k), 4);
        ptx_for(k, ptx_u32(0), n, ptx_u32(1));
        put(n), store(near_by(1)), barrier();
        ptx_end(k);
        ptx_ret(k);
        ended = ptx_text(m, NULL) && ptx_pressure(m, 0, &peak);
        if (!ended) CHECK(ptx_get_error(m)->code == PTX_E_MEMORY);
        left = 1000;
        ptx_module_free(m);
    }
    CHECK(ended);
}

/* A count far beyond the array beside it: an error, and the array is left alone; a near miss fills it. */
static ptx_val room[4];
static int room_is_kept(void) {
    static const ptx_val as_made[4] = {{0}};
    return memcmp(room, as_made, sizeof room) == 0;
}
static void test_counts(void) {
    static const ptx_type types[4] = {PTX_U32, PTX_U32, PTX_U32, PTX_U32};
    ptx_label label;
    ptx_var var;
    int broken, which;
    for (broken = 0; broken < 2; broken++) /* in a module without error, and in one with */
        for (which = 0; which < 14; which++) {
            const uint32_t many = 1000000;
            start();
            memset(room, 0, sizeof room);
            label = ptx_label_new(k);
            var = ptx_var_new(k, ptx_u32(0));
            if (broken) ptx_st(k, PTX_U32, ptx_at(n, 0), n);
            switch (which) {
            case 0: ptx_ldmatrix(k, many, sh, room); break;
            case 1: ptx_ldmatrix_trans(k, 5, sh, room); break;
            case 2: ptx_ld_vec(k, PTX_U32, many, ptx_at(p, 0), room); break;
            case 3: ptx_unpack(k, PTX_U16, many, n, room); break;
            case 4: ptx_opn(k, PTX_LDMATRIX, 0, PTX_NONE, PTX_NONE, 1, &sh, many, room); break;
            case 5: ptx_opn(k, PTX_LDMATRIX, 0, PTX_NONE, PTX_NONE, many, room, 4, room); break;
            case 6: ptx_raw(k, "mov.u32 $0, 0;", 0, NULL, many, types, room); break;
            case 7: ptx_raw(k, "mov.u32 $0, 0;", many, room, 0, NULL, NULL); break;
            case 8: ptx_st_vec(k, PTX_U32, many, ptx_at(p, 0), room); break;
            case 9: ptx_pack(k, PTX_B64, many, room); break;
            case 10: ptx_brx(k, n, many, &label, label); break;
            case 11: ptx_switch(k, n, many); break;
            case 12: ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, many, &var, many, room); break;
            default: ptx_printf(k, "%u", many, room); break;
            }
            CHECK_MORE(ptx_get_error(m)->code != PTX_E_NONE, "a count beyond every form is accepted");
            if (which != 5) CHECK(room_is_kept());
            ptx_module_free(m);
        }
    start(), ptx_ldmatrix(k, 4, sh, room), CHECK(!room_is_kept() && ptx_type_of(room[3]) == PTX_B32);
    done(__LINE__, PTX_E_NONE, NULL);
    start(), ptx_ldmatrix(k, 1000000, sh, room), done(__LINE__, PTX_E_ARGUMENT, "");
}

/* What is recorded like one before it is checked like it: a quotient by a number, and products, whose second
   takes the short way. */
static void products(uint32_t times) {
    ptx_val a[4], b[2], c[4], d[4], other;
    ptx_kernel *q;
    uint32_t i, wrong = times >> 8;
    for (i = 0; i < 4; i++) a[i] = ptx_pack(k, PTX_F16X2, 2, (c[0] = ptx_mov(k, ptx_f16(1)), c[1] = c[0], c));
    b[0] = a[0], b[1] = a[1];
    for (i = 0; i < 4; i++) c[i] = ptx_mov(k, ptx_f32(0));
    for (i = 0; i < (times & 255u); i++) ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, d, a, b, c);
    if (wrong == 1) a[2] = ptx_mov(k, ptx_f32(0)); /* not what it takes */
    if (wrong == 2) {                              /* of another kernel, with the same number */
        q = ptx_entry(m, "q");
        for (i = 0; i < 30; i++) other = ptx_mov(q, ptx_u32(i));
        a[2] = ptx_as(other, PTX_F16X2);
        ptx_ret(q);
    }
    if (wrong == 3) ptx_guard(k, ptx_setp(k, PTX_LT, n, zero));
    if (wrong == 4) a[2].handle += 1000; /* of no register */
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, d, a, b, c);
    if (!wrong) CHECK(ptx_type_of(d[0]) == PTX_F32 && d[0].handle + 3 == d[3].handle);
    for (i = 0; i < 4; i++) ptx_st(k, PTX_F32, ptx_at(p, 4 * (int64_t)i), d[i]);
}
static void test_again(void) {
    uint32_t i, times;
    for (times = 0; times < 3; times++) {
        start(), products(times), FINE;
        start(), products(times | 1u << 8), WRONG(TYPE, "f32");
        start(), products(times | 2u << 8), WRONG(FOREIGN, "another kernel");
        start(), products(times | 3u << 8), WRONG(GUARD, "makes a value");
        start(), products(times | 4u << 8), WRONG(HANDLE, "no register");
    }
    for (i = 0; i < 3; i++) {
        start(), store(ptx_div(k, n, ptx_imm(3 + i))), store(ptx_div(k, n, ptx_imm(4))), FINE;
        start(), ptx_div(k, n, ptx_imm(3)), ptx_div(k, n, ptx_imm(4)), ptx_div(k, n, ptx_imm(0));
        WRONG(RANGE, "by the number 0");
        start(), ptx_rem(k, n, ptx_imm(3)), ptx_rem(k, n, ptx_imm(4)), ptx_rem(k, n, ptx_u32(0));
        WRONG(RANGE, "by the number 0");
        start(), ptx_rem(k, n, ptx_u32(3)), ptx_rem(k, n, ptx_u32(0)), WRONG(RANGE, "by the number 0");
    }
}

/* Who calls whom: rings are found wherever they are entered, and what only has many ways to it is none. */
static void test_rings(void) {
    ptx_kernel *f[6];
    char name[2] = "a";
    uint32_t i, j, ring;
    for (ring = 0; ring < 12; ring++) {
        start();
        for (i = 0; i < 6; i++) name[0] = (char)('a' + i), f[i] = ptx_func(m, name, PTX_NONE);
        for (i = 0; i < 6; i++) { /* each calls all that come later; a ring, one that came before */
            for (j = 5; j > i; j--) ptx_call(f[i], f[j], 0, NULL);
            if (ring / 2 == i && ring % 2 && i) ptx_call(f[i], f[i / 2], 0, NULL);
            ptx_ret(f[i]);
        }
        ptx_call(k, f[ring % 6], 0, NULL);
        if (ring % 2 && ring > 1) WRONG(RECURSION, "leads back");
        else
            FINE;
    }
}

/* Classes of variables that take rounds to settle: through each other, around loops, by what is set where
   only some come. */
static void test_settling(void) {
    ptx_var v[8];
    ptx_val x;
    uint32_t i, turn, links;
    for (links = 1; links <= 8; links++)
        for (turn = 0; turn < 4; turn++) { /* 1: the last is of the thread; 2: only some set it; 3: as 1 */
            start();
            for (i = 0; i < links; i++) v[i] = ptx_var_new(k, n);
            ptx_for(k, ptx_u32(0), n, ptx_u32(1));
            for (i = 0; i + 1 < links; i++) {
                uint32_t to = turn == 3 ? links - 2 - i : i;
                x = ptx_get(k, v[to + 1]);
                ptx_set(k, v[to], i % 2 ? x : ptx_add(k, ptx_xor(k, x, n), n));
            }
            if (turn == 2) ptx_if(k, ptx_setp(k, PTX_LT, tid, n));
            ptx_set(k, v[links - 1], turn == 1 || turn == 3 ? ptx_add(k, n, tid) : ptx_u32(7));
            if (turn == 2) ptx_end(k);
            ptx_if(k, ptx_setp(k, PTX_EQ, ptx_get(k, v[0]), n));
            barrier();
            ptx_end(k);
            ptx_end(k);
            if (turn) WRONG(DIVERGENT, "only some come here");
            else
                FINE;
        }
}

int main(void) {
    test_again();
    test_rings();
    test_settling();
    test_counts();
    test_divergence();
    test_members();
    test_warp_numbers();
    test_clusters();
    test_places();
    test_refusals();
    test_behaviours();
    test_groups_and_calls();
    test_copies();
    test_products();
    test_launch();
    test_assembler_limits();
    test_formats_and_counts();
    test_spaces();
    test_addresses();
    test_endless();
    test_limits();
    test_calls();
    test_names();
    test_tree_reduction();
    test_pressure();
    test_pressure_of_entries();
    test_wide_pressure();
    test_locate();
    test_memory();
    return check_end();
}
