/* divergence.c - kernels that a GPU punishes and the assembler accepts in silence, beside tricky ones that
 * are right. Each wrong one is an error, no right one is.
 *
 *   make build/tests/builder/divergence */
#include "../../ptxgen.h"
#include "../check.h"

#include <stdio.h>
#include <string.h>

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, q, n, sh, tid, lane, warp, mine, zero, bar;
static const char *name_of;

enum { RIGHT, ERROR };
static int want;

static void start(const char *name, int verdict, ptx_target target) {
    ptx_module_desc d;
    memset(&d, 0, sizeof d);
    d.target = target;
    m = ptx_module_new(&d);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    q = ptx_param_ptr(k, "q", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    sh = ptx_shared(k, "sh", PTX_U32, 4096, 128);
    bar = ptx_shared(k, "bar", PTX_U64, 4, 8);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    warp = ptx_shr(k, tid, ptx_imm(5));
    mine = ptx_ptr_add(k, sh, tid, 4);
    zero = ptx_mov(k, ptx_u32(0));
    name_of = name;
    want = verdict;
}

static void judge(void) {
    const char *says = "accepted";
    int got = RIGHT;
    ptx_ret(k);
    if (!ptx_text(m, NULL)) got = ERROR, says = ptx_get_error(m)->message;
    CHECK_AT(got == want, __LINE__, name_of, says);
    ptx_module_free(m);
}
#define I ptx_imm
#define IF(order, a, b) ptx_if(k, ptx_setp(k, order, a, b))
#define BAR ptx_bar_sync(k, ptx_imm(0))
#define LD(a) ptx_ld(k, PTX_U32, ptx_at(a, 0))
#define ST(a, v) ptx_st(k, PTX_U32, ptx_at(a, 0), v)
#define FULL ptx_b32(0xffffffff)

static void wait_on(ptx_val barrier, ptx_val parity) {
    ptx_val done;
    ptx_loop(k);
    done = ptx_mbarrier_try_wait(k, barrier, parity);
    ptx_while(k, ptx_inv(done));
    ptx_end(k);
}

static void wrong_kernels(void) {
    ptx_val x, v[16], o[16], d[8];
    ptx_var s4[4];
    int i;

    start("bar_in_tid_loop", ERROR, PTX_SM(80));
    ptx_for(k, tid, n, ptx_u32(32));
    BAR;
    ptx_end(k);
    judge();

    start("bar_after_tid_break", ERROR, PTX_SM(80));
    ptx_loop(k);
    IF(PTX_GE, tid, n);
    ptx_break(k);
    ptx_end(k);
    BAR;
    ptx_while(k, ptx_setp(k, PTX_LT, n, I(4)));
    ptx_end(k);
    judge();

    start("early_ret_then_bar", ERROR, PTX_SM(80));
    IF(PTX_GE, ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid), n);
    ptx_ret(k);
    ptx_end(k);
    BAR;
    judge();

    start("shfl_in_tail", ERROR, PTX_SM(80));
    IF(PTX_LT, tid, n);
    x = LD(mine);
    ptx_shfl_down(k, x, I(16), I(31), FULL);
    ptx_end(k);
    judge();

    start("ballot_in_loop", ERROR, PTX_SM(80));
    ptx_for(k, tid, n, ptx_u32(128));
    ptx_ballot(k, ptx_setp(k, PTX_LT, LD(p), n), FULL);
    ptx_end(k);
    judge();

    start("bar_only_in_else", ERROR, PTX_SM(80));
    IF(PTX_EQ, lane, zero);
    ptx_else(k);
    BAR;
    ptx_end(k);
    judge();

    start("named_bar_count_lane", ERROR, PTX_SM(80));
    IF(PTX_LT, tid, I(48));
    ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(64));
    ptx_end(k);
    judge();

    start("bar_id_16", ERROR, PTX_SM(80));
    ptx_bar_sync(k, I(16));
    judge();

    start("cp_async_no_wait", ERROR, PTX_SM(80));
    ptx_cp_async_16(k, ptx_ptr_add(k, sh, tid, 16), ptx_ptr_add(k, p, tid, 16));
    ptx_cp_async_commit(k);
    BAR;
    LD(sh);
    judge();

    start("cp_async_misaligned", ERROR, PTX_SM(80));
    ptx_cp_async_16(k, ptx_off(sh, 8), p);
    ptx_cp_async_wait_all(k);
    judge();

    start("ld_v4_misaligned", ERROR, PTX_SM(80));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(sh, 8), o);
    judge();

    start("ldmatrix_row_8", ERROR, PTX_SM(80));
    ptx_ldmatrix(k, 4, ptx_off(sh, 8), o);
    judge();

    start("mma_in_if", ERROR, PTX_SM(80));
    IF(PTX_LT, lane, n);
    for (i = 0; i < 4; i++) {
        v[i] = n;
    }
    for (i = 0; i < 4; i++) d[i] = ptx_mov(k, ptx_f32(0));
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, o, v, v, d);
    ptx_end(k);
    judge();

    start("bulk_size_24", ERROR, PTX_SM_A(90));
    ptx_bulk_load(k, sh, p, I(24), bar);
    judge();

    start("bulk_misaligned", ERROR, PTX_SM_A(90));
    ptx_bulk_load(k, ptx_off(sh, 8), p, I(16), bar);
    judge();

    start("mbar_misaligned", ERROR, PTX_SM_A(90));
    ptx_mbarrier_init(k, ptx_off(bar, 4), I(1));
    judge();

    start("mbar_oob", ERROR, PTX_SM_A(90));
    ptx_mbarrier_init(k, ptx_off(bar, 32), I(1));
    judge();

    start("wgmma_one_warp", ERROR, PTX_SM_A(90));
    IF(PTX_EQ, warp, zero);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_end(k);
    judge();

    start("setmaxnreg_div", ERROR, PTX_SM_A(90));
    ptx_max_registers(k, 128);
    IF(PTX_LT, tid, I(64));
    ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(40));
    ptx_end(k);
    judge();

    start("st_const", ERROR, PTX_SM(80));
    ST(ptx_ptr(p, PTX_CONST), n);
    judge();

    start("st_param", ERROR, PTX_SM(80));
    x = ptx_param_bytes(k, "blk", 16, 8);
    ST(x, n);
    judge();

    start("shared_oob_idx", ERROR, PTX_SM(80));
    LD(ptx_ptr_add(k, sh, I(4096), 4));
    judge();

    start("ptr32_global", ERROR, PTX_SM(80));
    LD(ptx_ptr(n, PTX_GLOBAL));
    judge();

    start("signed_unsigned", ERROR, PTX_SM(80));
    ptx_add(k, n, ptx_mov(k, ptx_s32(-1)));
    judge();

    start("div0", ERROR, PTX_SM(80));
    ptx_div(k, n, I(0));
    judge();

    start("shift32", ERROR, PTX_SM(80));
    ptx_shl(k, n, I(32));
    judge();

    start("uninit_var_path", ERROR, PTX_SM(80));
    IF(PTX_LT, n, I(4));
    x = ptx_add(k, n, n);
    ptx_end(k);
    ST(p, x);
    judge();

    start("endless", ERROR, PTX_SM(80));
    ptx_loop(k);
    ST(p, n);
    ptx_end(k);
    judge();

    start("atom_f16_sm75_shared", ERROR, PTX_SM(80));
    ptx_atom(k, PTX_ATOM_ADD, ptx_at(sh, 0), ptx_mov(k, ptx_f16(1)));
    judge();

    start("volatile_relaxed", ERROR, PTX_SM(80));
    ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_VOLATILE | PTX_RELAXED));
    judge();

    start("vote_uni_mask", ERROR, PTX_SM(80));
    IF(PTX_LT, lane, I(8));
    ptx_op2(k, PTX_VOTE_ALL, 0, ptx_setp(k, PTX_LT, n, I(3)), FULL);
    ptx_end(k);
    judge();

    start("match_div", ERROR, PTX_SM(80));
    IF(PTX_EQ, LD(p), n);
    ptx_op2(k, PTX_MATCH_ANY, 0, n, FULL);
    ptx_end(k);
    judge();

    start("griddep_none", RIGHT, PTX_SM(90));
    ptx_op0(k, PTX_GRIDDEPCONTROL_WAIT, 0);
    judge();

    start("trap_guard_bar", RIGHT, PTX_SM(80));
    ptx_guard(k, ptx_setp(k, PTX_GE, tid, n));
    ptx_trap(k);
    BAR;
    judge();

    start("barred_div", ERROR, PTX_SM(80));
    IF(PTX_LT, tid, I(7));
    ptx_op2(k, PTX_BAR_RED_OR, 0, I(0), ptx_setp(k, PTX_LT, n, I(3)));
    ptx_end(k);
    judge();

    start("arrive_div", ERROR, PTX_SM(80));
    IF(PTX_LT, tid, I(7));
    ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(64));
    ptx_end(k);
    judge();

    start("named_bar_reg_id", ERROR, PTX_SM(80));
    ptx_op2(k, PTX_BAR_SYNC, 0, lane, I(64));
    judge();

    start("wgmma_read_early", ERROR, PTX_SM_A(90));
    {
        for (i = 0; i < 4; i++) s4[i] = ptx_var_new(k, ptx_f32(0));
        x = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
        v[0] = x;
        v[1] = x;
        v[2] = ptx_setp(k, PTX_NE, n, zero);
        v[3] = v[4] = I(1);
        v[5] = v[6] = I(0);
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, s4, 7, v);
        ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
        ptx_st(k, PTX_F32, ptx_at(p, 0), ptx_get(k, s4[0]));
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(0));
    }
    judge();

    start("wait_parity_in_if_full", RIGHT, PTX_SM_A(90));
    IF(PTX_EQ, tid, zero);
    ptx_mbarrier_init(k, bar, I(128));
    ptx_end(k);
    BAR;
    ptx_mbarrier_arrive(k, bar);
    wait_on(bar, I(0));
    judge();

    start("shfl_clamp_big", ERROR, PTX_SM(80));
    ptx_shfl_up(k, n, I(1), I(0x2000), FULL);
    judge();

    start("shfl_bfly_32", ERROR, PTX_SM(80));
    ptx_shfl_bfly(k, n, I(32), I(31), FULL);
    judge();

    /* -64 / 32 is -2, and of the rest of that warp -1: division rounds to zero */
    start("signed_quotient_of_difference", ERROR, PTX_SM(80));
    x = ptx_op2(k, PTX_DIV, 0, ptx_sub(k, ptx_as(tid, PTX_S32), I(64)), I(32));
    IF(PTX_EQ, x, I(-1));
    ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    ptx_end(k);
    judge();

    /* all threads of each warp have an index below 32, or none has: and yet each goes its own way */
    start("switch_tid", ERROR, PTX_SM(80));
    ptx_switch(k, tid, 32);
    ptx_case(k, 3);
    ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    ptx_end(k);
    judge();

    start("switch_tid_of_whole_block", ERROR, PTX_SM(80));
    ptx_require_block(k, 64, 1, 1);
    ptx_switch(k, tid, 64);
    ptx_case(k, 0);
    BAR;
    ptx_end(k);
    judge();

    start("two_barrier_arms", ERROR, PTX_SM(80));
    IF(PTX_LT, tid, I(64));
    BAR;
    ptx_else(k);
    BAR;
    ptx_end(k);
    judge();
}

/* Vectors at an address that grows by less than their size from thread to thread: not all threads load. */
static void stepping_kernels(void) {
    ptx_val v[4], x;
    start("vector_of_every_fourth", RIGHT, PTX_SM(80));
    IF(PTX_EQ, ptx_and(k, tid, I(3)), zero);
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, p, tid, 4), 0), v);
    ptx_end(k);
    judge();
    start("vector_of_rounded", RIGHT, PTX_SM(80));
    x = ptx_sub(k, tid, ptx_and(k, tid, I(3)));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, p, x, 4), 0), v);
    judge();
    start("vector_of_group", RIGHT, PTX_SM(80));
    ptx_ld_vec(k, PTX_F32, 4, ptx_at(ptx_ptr_add(k, p, ptx_and(k, tid, I(28)), 4), 0), v);
    judge();
}

static void right_kernels(void) {
    ptx_val x, y, z, v[16];
    ptx_var a, s4[4];
    int i, s, c;

    start("reduction_tree", RIGHT, PTX_SM(80));
    ptx_require_block(k, 256, 1, 1);
    ST(mine, n);
    BAR;
    for (s = 128; s >= 32; s /= 2) {
        IF(PTX_LT, tid, I(s));
        x = ptx_ld(k, PTX_U32, ptx_at(mine, 4 * s));
        y = LD(mine);
        ST(mine, ptx_add(k, x, y));
        ptx_end(k);
        BAR;
    }
    IF(PTX_LT, tid, I(32));
    x = LD(mine);
    for (s = 16; s; s /= 2) x = ptx_add(k, x, ptx_shfl_down(k, x, I(s), I(31), FULL));
    ptx_guard(k, ptx_setp(k, PTX_EQ, tid, zero));
    ST(p, x);
    ptx_end(k);
    judge();

    start("warp_then_block", RIGHT, PTX_SM(80));
    x = n;
    for (s = 16; s; s /= 2) x = ptx_add(k, x, ptx_shfl_bfly(k, x, I(s), I(31), FULL));
    y = ptx_ptr_add(k, sh, warp, 4);
    ptx_guard(k, ptx_setp(k, PTX_EQ, lane, zero));
    ptx_st(k, PTX_U32, ptx_at(y, 0), x);
    BAR;
    IF(PTX_EQ, warp, zero);
    y = ptx_ld_if(k, ptx_setp(k, PTX_LT, lane, ptx_shr(k, ptx_ntid_x(k), I(5))), PTX_U32,
                  ptx_at(ptx_ptr_add(k, sh, lane, 4), 0), I(0));
    for (s = 16; s; s /= 2) y = ptx_add(k, y, ptx_shfl_bfly(k, y, I(s), I(31), FULL));
    ptx_guard(k, ptx_setp(k, PTX_EQ, lane, zero));
    ST(p, y);
    ptx_end(k);
    judge();

    start("scan", RIGHT, PTX_SM(80));
    a = ptx_var_new(k, n);
    for (s = 1; s < 32; s *= 2) {
        x = ptx_get(k, a);
        y = ptx_add(k, x, ptx_shfl_up(k, x, I(s), I(0), FULL));
        ptx_guard(k, ptx_setp(k, PTX_GE, lane, I(s)));
        ptx_set(k, a, y);
    }
    ST(p, ptx_get(k, a));
    judge();

    start("guard_bounds", RIGHT, PTX_SM(80));
    x = ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid);
    IF(PTX_LT, x, n);
    ST(ptx_ptr_add(k, p, x, 4), x);
    ptx_end(k);
    BAR;
    judge();

    start("pipeline_cpasync", RIGHT, PTX_SM(80));
    ptx_cp_async_16(k, ptx_ptr_add(k, sh, tid, 16), ptx_ptr_add(k, p, tid, 16));
    ptx_cp_async_commit(k);
    ptx_for(k, ptx_u32(1), n, ptx_u32(1));
    ptx_cp_async_16(k, ptx_off(ptx_ptr_add(k, sh, tid, 16), 4096), ptx_ptr_add(k, p, tid, 16));
    ptx_cp_async_commit(k);
    ptx_cp_async_wait(k, 1);
    BAR;
    x = LD(ptx_ptr_add(k, sh, ptx_xor(k, tid, I(5)), 16));
    ST(q, x);
    BAR;
    ptx_end(k);
    ptx_cp_async_wait_all(k);
    judge();

    start("warpspec", RIGHT, PTX_SM_A(90));
    ptx_launch_bounds(k, 256, 1);
    IF(PTX_EQ, tid, zero);
    ptx_mbarrier_init(k, bar, I(1));
    ptx_mbarrier_init(k, ptx_off(bar, 8), I(128));
    ptx_end(k);
    BAR;
    IF(PTX_LT, tid, I(128));
    ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(40));
    IF(PTX_EQ, tid, zero);
    ptx_mbarrier_arrive_expect(k, bar, I(4096));
    ptx_bulk_load(k, sh, p, I(4096), bar);
    ptx_end(k);
    ptx_else(k);
    ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(232));
    wait_on(bar, I(0));
    ST(q, LD(ptx_ptr_add(k, sh, ptx_and(k, tid, I(127)), 4)));
    ptx_mbarrier_arrive(k, ptx_off(bar, 8));
    ptx_end(k);
    judge();

    start("named_pair", RIGHT, PTX_SM(80));
    ptx_require_block(k, 64, 1, 1);
    IF(PTX_LT, tid, I(32));
    ST(mine, n);
    ptx_op2(k, PTX_BAR_ARRIVE, 0, I(1), I(64));
    ptx_else(k);
    ptx_op2(k, PTX_BAR_SYNC, 0, I(1), I(64));
    ST(p, LD(ptx_ptr_add(k, sh, lane, 4)));
    ptx_end(k);
    judge();

    start("persistent", RIGHT, PTX_SM(80));
    a = ptx_var_new(k, ptx_ctaid_x(k));
    ptx_loop(k);
    x = ptx_get(k, a);
    ptx_while(k, ptx_setp(k, PTX_LT, x, n));
    ST(mine, x);
    BAR;
    y = LD(ptx_ptr_add(k, sh, ptx_xor(k, tid, I(3)), 4));
    ST(p, y);
    BAR;
    ptx_set(k, a, ptx_add(k, x, ptx_nctaid_x(k)));
    ptx_end(k);
    judge();

    start("dynamic_tiles", RIGHT, PTX_SM(80));
    ptx_loop(k);
    ptx_guard(k, ptx_setp(k, PTX_EQ, tid, zero));
    ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), ptx_u32(1));
    IF(PTX_EQ, tid, zero);
    x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), ptx_u32(1));
    ST(sh, x);
    ptx_end(k);
    BAR;
    y = ptx_uniform(k, LD(sh));
    BAR;
    ptx_while(k, ptx_setp(k, PTX_LT, y, n));
    ST(ptx_ptr_add(k, q, y, 4), tid);
    ptx_end(k);
    judge();

    start("cluster_dsmem", RIGHT, PTX_SM(90));
    ptx_require_cluster(k, 2, 1, 1);
    ST(mine, n);
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
    x = ptx_mapa(k, mine, ptx_xor(k, ptx_sreg(k, PTX_CLUSTER_CTARANK), I(1)));
    y = LD(x);
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
    ST(p, y);
    judge();

    start("elect_init", RIGHT, PTX_SM(90));
    IF(PTX_EQ, warp, zero);
    ptx_if(k, ptx_elect(k, FULL));
    ptx_mbarrier_init(k, bar, I(1));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_end(k);
    ptx_end(k);
    BAR;
    judge();

    start("half_warp", RIGHT, PTX_SM(80));
    IF(PTX_LT, lane, I(16));
    x = n;
    for (s = 8; s; s /= 2) x = ptx_add(k, x, ptx_shfl_down(k, x, I(s), I(31), ptx_b32(0xffff)));
    ptx_end(k);
    judge();

    start("ballot_mask_loop", RIGHT, PTX_SM(80));
    x = ptx_setp(k, PTX_LT, tid, n);
    y = ptx_ballot(k, x, FULL);
    ptx_if(k, x);
    z = ptx_shfl_idx(k, n, I(0), I(31), y);
    ST(p, z);
    ptx_end(k);
    judge();

    start("bar_red", RIGHT, PTX_SM(80));
    x = ptx_op2(k, PTX_BAR_RED_OR, 0, I(0), ptx_setp(k, PTX_LT, LD(p), n));
    ptx_if(k, x);
    BAR;
    ptx_end(k);
    judge();

    start("while_any", RIGHT, PTX_SM(80));
    ptx_loop(k);
    x = ptx_op2(k, PTX_VOTE_ANY, 0, ptx_setp(k, PTX_LT, LD(p), n), FULL);
    ptx_while(k, x);
    ptx_bar_warp_sync(k, FULL);
    ptx_end(k);
    judge();

    start("grid_stride_warp", RIGHT, PTX_SM(80));
    ptx_require_block(k, 128, 1, 1);
    x = ptx_shr(k, ptx_mad(k, ptx_ctaid_x(k), ptx_u32(128), tid), I(5));
    a = ptx_var_new(k, x);
    ptx_loop(k);
    y = ptx_get(k, a);
    ptx_while(k, ptx_setp(k, PTX_LT, y, n));
    ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    ptx_set(k, a, ptx_add(k, y, ptx_shl(k, ptx_nctaid_x(k), I(2))));
    ptx_end(k);
    judge();

    start("transpose", RIGHT, PTX_SM(80));
    ptx_require_block(k, 32, 8, 1);
    x = ptx_mad(k, ptx_tid_y(k), ptx_u32(33), tid);
    ST(ptx_ptr_add(k, sh, x, 4), n);
    BAR;
    y = ptx_mad(k, tid, ptx_u32(33), ptx_tid_y(k));
    ST(p, LD(ptx_ptr_add(k, sh, y, 4)));
    judge();

    start("spin_lock", RIGHT, PTX_SM(80));
    IF(PTX_EQ, tid, zero);
    ptx_loop(k);
    x = ptx_atom_cas(k, ptx_at(p, 0), ptx_u32(0), ptx_u32(1));
    ptx_while(k, ptx_setp(k, PTX_NE, x, I(0)));
    ptx_end(k);
    ptx_end(k);
    BAR;
    judge();

    start("ret_uniform_then_bar", RIGHT, PTX_SM(80));
    IF(PTX_GE, ptx_ctaid_x(k), n);
    ptx_ret(k);
    ptx_end(k);
    BAR;
    judge();

    start("last_block", RIGHT, PTX_SM(80));
    IF(PTX_EQ, tid, zero);
    x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), ptx_u32(1));
    ST(sh, x);
    ptx_end(k);
    BAR;
    y = LD(sh);
    z = ptx_uniform(k, y);
    IF(PTX_EQ, z, n);
    BAR;
    ptx_end(k);
    judge();

    start("wgmma_loop", RIGHT, PTX_SM_A(90));
    IF(PTX_EQ, tid, zero);
    ptx_mbarrier_init(k, bar, I(1));
    ptx_end(k);
    BAR;
    {
        for (i = 0; i < 4; i++) s4[i] = ptx_var_new(k, ptx_f32(0));
        x = ptx_wgmma_descriptor(k, sh, 128, 256, 128);
        v[0] = x;
        v[1] = x;
        v[2] = ptx_setp(k, PTX_NE, n, zero);
        v[3] = v[4] = I(1);
        v[5] = v[6] = I(0);
        x = ptx_for(k, ptx_u32(0), n, ptx_u32(1));
        IF(PTX_EQ, tid, zero);
        ptx_mbarrier_arrive(k, bar);
        ptx_end(k);
        wait_on(bar, ptx_as(ptx_and(k, x, I(1)), PTX_U32));
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, s4, 7, v);
        ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
        ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(0));
        ptx_end(k);
        ptx_st(k, PTX_F32, ptx_at(p, 0), ptx_get(k, s4[0]));
    }
    judge();

    start("switch_warp_role", RIGHT, PTX_SM(80));
    ptx_switch(k, warp, 4);
    for (c = 0; c < 4; c++) {
        ptx_case(k, (uint32_t)c);
        ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    }
    ptx_end(k);
    BAR;
    judge();

    start("signed_quotient_of_tid", RIGHT, PTX_SM(80));
    x = ptx_op2(k, PTX_DIV, 0, ptx_as(tid, PTX_S32), I(32));
    IF(PTX_EQ, x, I(1));
    ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    ptx_end(k);
    judge();

    start("shuffle_after_switch_tid", RIGHT, PTX_SM(80));
    ptx_switch(k, tid, 32);
    ptx_case(k, 3);
    ST(mine, tid);
    ptx_end(k);
    ptx_shfl_bfly(k, n, I(1), I(31), FULL);
    judge();

    start("bulk_store", RIGHT, PTX_SM_A(90));
    ST(mine, n);
    ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0);
    BAR;
    IF(PTX_EQ, tid, zero);
    ptx_bulk_store(k, p, sh, I(1024));
    ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
    ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(0));
    ptx_end(k);
    judge();

    start("histogram", RIGHT, PTX_SM(80));
    ptx_for(k, tid, I(256), ptx_u32(128));
    ptx_end(k);
    ST(mine, zero);
    BAR;
    x = ptx_and(k, LD(p), I(255));
    ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_ptr_add(k, sh, x, 4), 0), ptx_u32(1));
    BAR;
    ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_ptr_add(k, p, tid, 4), 0), LD(mine));
    judge();

    start("same_value_store", RIGHT, PTX_SM(80));
    ST(sh, n);
    BAR;
    ST(p, LD(sh));
    judge();

    start("flag_store", RIGHT, PTX_SM(80));
    ptx_guard(k, ptx_setp(k, PTX_LT, LD(p), n));
    ST(sh, ptx_u32(1));
    BAR;
    ST(p, LD(sh));
    judge();

    start("break_uniform", RIGHT, PTX_SM(80));
    ptx_for(k, ptx_u32(0), n, ptx_u32(1));
    BAR;
    IF(PTX_GT, n, I(100));
    ptx_break(k);
    ptx_end(k);
    ptx_end(k);
    BAR;
    judge();

    start("vote_break", RIGHT, PTX_SM(80));
    ptx_loop(k);
    x = ptx_op2(k, PTX_BAR_RED_AND, 0, I(0), ptx_setp(k, PTX_LT, LD(p), n));
    ptx_if(k, x);
    ptx_break(k);
    ptx_end(k);
    BAR;
    ptx_end(k);
    judge();

    start("group_mma", RIGHT, PTX_SM_A(90));
    x = ptx_shr(k, tid, I(7));
    IF(PTX_NE, x, zero);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_end(k);
    judge();

    start("named_by_group", RIGHT, PTX_SM(80));
    x = ptx_add(k, ptx_shr(k, tid, I(7)), I(1));
    ptx_op2(k, PTX_BAR_SYNC, 0, x, I(128));
    judge();
}

int main(void) {
    wrong_kernels();
    stepping_kernels();
    right_kernels();
    return check_end();
}
