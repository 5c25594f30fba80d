/* accepted.c - kernels that are made right, in ways that look like a mistake from some way off: the
 * builder accepts them.
 *
 *   make build/tests/builder/accepted */
#include "../../ptxgen.h"
#include "../check.h"

#include <string.h>
#include <time.h>

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, n, tid, lane, warp, sh, mine, wide, zero, bar, one;

static void start(ptx_target target) {
    ptx_module_desc d;
    memset(&d, 0, sizeof d);
    d.target = target;
    m = ptx_module_new(&d);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    sh = ptx_shared(k, "sh", PTX_U32, 4096, 128);
    bar = ptx_shared(k, "bar", PTX_U64, 4, 8);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    warp = ptx_shr(k, tid, ptx_imm(5));
    mine = ptx_ptr_add(k, sh, tid, 4);
    wide = ptx_ptr_add(k, sh, tid, 16);
    zero = ptx_mov(k, ptx_u32(0));
    one = ptx_setp(k, PTX_EQ, tid, zero);
}

static void accepted(const char *file, int line) {
    ptx_ret(k);
    check_at(ptx_text(m, NULL) != NULL, file, line, "accepted", ptx_get_error(m)->message);
    ptx_module_free(m);
}
#define RIGHT accepted(__FILE__, __LINE__)
#define I ptx_imm
#define FULL ptx_b32(0xffffffff)
#define BAR ptx_bar_sync(k, ptx_imm(0))
#define LD(a, offset) ptx_ld(k, PTX_U32, ptx_at(a, offset))
#define ST(a, offset, v) ptx_st(k, PTX_U32, ptx_at(a, offset), v)
#define IF(p) ptx_if(k, p)
#define END ptx_end(k)

static void out(ptx_val x) { ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, p, tid, 4), 0), x); }
static void copy(int64_t to) { ptx_cp_async_16(k, ptx_off(wide, to), p); }
static void commit(void) { ptx_cp_async_commit(k); }
static void wait_for(int left) { ptx_cp_async_wait(k, left); }
static void wait_on(ptx_val at, uint32_t parity) {
    ptx_val done_;
    ptx_loop(k);
    done_ = ptx_mbarrier_try_wait(k, at, ptx_u32(parity));
    ptx_while(k, ptx_inv(done_));
    END;
}

#define AMPERE PTX_SM(80)
#define HOPPER PTX_SM_A(90)
#define BLACKWELL PTX_SM_A(100)
#define U ptx_u32
#define AT(base, index) ptx_ptr_add(k, base, index, 4)
#define BLOCK(x) ptx_require_block(k, x, 1, 1)
#define PLAIN(op, n, operands) ptx_opn(k, op, 0, PTX_NONE, PTX_NONE, n, operands, 0, NULL)

#define LT(a, b) ptx_setp(k, PTX_LT, a, b)
#define GE(a, b) ptx_setp(k, PTX_GE, a, b)
#define EQ(a, b) ptx_setp(k, PTX_EQ, a, b)
#define NE(a, b) ptx_setp(k, PTX_NE, a, b)

static ptx_val q;
static void begin(ptx_target target) {
    start(target);
    q = ptx_param_ptr(k, "q", PTX_GLOBAL);
}
static ptx_val low(ptx_val x, int mask) { return ptx_as(ptx_and(k, x, I(mask)), PTX_U32); }
static void meet(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static void proxy_fence(void) { ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); }

/* Two mbarriers, at bar and behind it, for so many arrivals each. */
static void make(int first, int second) {
    IF(one);
    ptx_mbarrier_init(k, bar, I(first));
    ptx_mbarrier_init(k, ptx_off(bar, 8), I(second));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
}
/* As wait_on, for a parity that the kernel computes. */
static void wait_val(ptx_val at, ptx_val parity) {
    ptx_val over;
    ptx_loop(k);
    over = ptx_mbarrier_try_wait(k, at, parity);
    ptx_while(k, ptx_inv(over));
    END;
}

/* A kilobyte of p comes into shared memory; the mbarrier expects it. */
static inline void fetch(ptx_val to, ptx_val by) {
    ptx_mbarrier_arrive_expect(k, by, I(1024));
    ptx_bulk_load(k, to, p, I(1024), by);
}
static inline void bulk_commit(void) { ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0); }
static inline void bulk_wait(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(left)); }
static inline void bulk_wait_read(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(left)); }
static inline ptx_val flip(ptx_val bit) { return ptx_as(ptx_xor(k, bit, I(1)), PTX_U32); }
/* A product of matrices into these sums, of one tile by itself, under way; and the wait for all but some. */
static ptx_var sums[4];
static inline void issue(ptx_val tile) {
    ptx_val o[7];
    o[0] = o[1] = ptx_wgmma_descriptor(k, tile, 128, 256, 128);
    o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}
static inline void product_wait(int left) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(left)); }

#define CMP(how, a, b) ptx_setp(k, PTX_##how, a, b)
#define FOR(b) ptx_for(k, U(0), b, U(1))

static void bar_n(ptx_val number, int count) { ptx_op2(k, PTX_BAR_SYNC, 0, number, I(count)); }
static void arrive_n(ptx_val number, int count) { ptx_op2(k, PTX_BAR_ARRIVE, 0, number, I(count)); }

/* cp.async */
static void groups(void) {
    ptx_val i, at, x;
    ptx_var stage, sum;
    begin(AMPERE), copy(0), commit(); /* the last round waits for all */
    i = FOR(n);
    IF(CMP(LT, ptx_add(k, i, I(1)), n));
    ptx_cp_async_16(k, ptx_add(k, wide, ptx_shl(k, low(ptx_add(k, i, I(1)), 1), I(12))), p), commit();
    wait_for(1), ptx_else(k), wait_for(0), END;
    BAR, at = ptx_add(k, wide, ptx_shl(k, low(i, 1), I(12))), out(LD(at, 16)), BAR, END, wait_for(0), RIGHT;

    begin(AMPERE), copy(0), commit(), copy(4096), commit(); /* a loop, and what is left behind it */
    i = FOR(n), wait_for(1), BAR, at = ptx_add(k, wide, ptx_shl(k, low(i, 1), I(12))), out(LD(at, 16));
    BAR, ptx_cp_async_16(k, at, p), commit(), END;
    wait_for(1), BAR, out(LD(wide, 16)), wait_for(0), BAR, out(LD(wide, 4112)), RIGHT;

    begin(AMPERE), stage = ptx_var_new(k, U(0)), copy(0), commit(); /* groups of parts of a round */
    FOR(n), FOR(U(2));
    at = ptx_add(k, wide, ptx_shl(k, flip(ptx_get(k, stage)), I(12))), ptx_cp_async_16(k, at, p), commit();
    wait_for(1), BAR, at = ptx_add(k, wide, ptx_shl(k, ptx_get(k, stage), I(12))), out(LD(at, 16)), BAR;
    ptx_set(k, stage, flip(ptx_get(k, stage))), END, END, wait_for(0), RIGHT;

    begin(AMPERE), sum = ptx_var_new(k, U(0)); /* one stage, nothing ahead */
    FOR(n), copy(0), commit(), wait_for(0), BAR, x = LD(AT(sh, ptx_xor(k, tid, I(1))), 0);
    ptx_set(k, sum, ptx_add(k, ptx_get(k, sum), x)), BAR, END, out(ptx_get(k, sum)), RIGHT;

    begin(AMPERE), FOR(n), copy(0), commit(), END, wait_for(0), BAR; /* all of many groups */
    FOR(U(4)), wait_for(0), BAR, out(LD(wide, 16)), END, RIGHT;

    begin(AMPERE); /* begun by half of the warps, waited for by all */
    FOR(n), IF(CMP(LT, warp, I(2))), copy(0), END, commit(), wait_for(0), BAR, out(LD(sh, 0)), BAR, END;
    RIGHT;
}

/* Histograms, tables and scans in shared memory. */
static void tables(void) {
    ptx_val x, y, own, mask;
    ptx_var v;
    begin(AMPERE), own = ptx_add(k, sh, ptx_shl(k, warp, I(9))); /* bins of each warp */
    FOR(U(4)), ST(AT(own, lane), 0, zero), END, ptx_bar_warp_sync(k, FULL);
    x = low(LD(AT(p, tid), 0), 127), ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(own, x), 0), U(1));
    BAR, out(LD(mine, 0)), RIGHT;

    begin(AMPERE), BLOCK(128), own = AT(sh, ptx_mul(k, warp, U(128)));
    ST(AT(own, lane), 0, zero), ptx_bar_warp_sync(k, FULL);
    x = low(LD(AT(p, tid), 0), 31), ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(own, x), 0), U(1));
    BAR, out(LD(mine, 0)), RIGHT;

    begin(AMPERE), own = AT(sh, ptx_mul(k, warp, U(128))); /* one of the lanes that have met adds for all */
    ST(AT(own, lane), 0, zero), ptx_bar_warp_sync(k, FULL), x = low(LD(AT(p, tid), 0), 31);
    mask = ptx_as(ptx_op2(k, PTX_MATCH_ANY, 0, ptx_as(x, PTX_B32), FULL), PTX_U32);
    y = ptx_as(ptx_and(k, mask, ptx_sreg(k, PTX_LANEMASK_LT)), PTX_U32);
    IF(CMP(EQ, y, zero)), x = AT(own, x), ST(x, 0, ptx_add(k, LD(x, 0), ptx_popc(k, mask))), END;
    BAR, out(LD(mine, 0)), RIGHT;

    begin(AMPERE), FOR(n), ST(mine, 0, zero), BAR; /* cleared in each round, counted, read */
    x = low(LD(AT(p, tid), 0), 127), ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(sh, x), 0), U(1)), BAR;
    ptx_red(k, PTX_ATOM_ADD, ptx_at(AT(q, tid), 0), LD(mine, 0)), BAR, END, RIGHT;

    begin(AMPERE), y = ptx_shared(k, "heads", PTX_U32, 128, 4); /* cleared here, counted there */
    ST(AT(y, low(tid, 127)), 0, zero), BAR, ST(mine, 0, zero), x = low(LD(AT(p, tid), 0), 7);
    IF(CMP(LT, warp, I(1))), ptx_red(k, PTX_ATOM_ADD, ptx_at(y, 512 - 4), U(1)), END;
    BAR, out(ptx_add(k, LD(AT(sh, x), 0), LD(y, 0))), RIGHT;

    begin(AMPERE), ST(mine, 0, zero), ptx_red(k, PTX_ATOM_ADD, ptx_at(mine, 0), n); /* its own */
    BAR, out(LD(AT(sh, ptx_xor(k, tid, I(1))), 0)), RIGHT;

    begin(AMPERE), y = AT(sh, low(ptx_mul(k, tid, U(7)), 127)); /* slots that are taken and freed in rounds */
    FOR(n), ST(y, 0, zero), BAR, x = ptx_atom_cas(k, ptx_at(y, 0), U(0), tid), out(ptx_as(x, PTX_U32));
    BAR, END, RIGHT;

    begin(AMPERE), v = ptx_var_new(k, U(1)); /* a scan by doubling */
    ST(mine, 0, n), BAR, ptx_loop(k), ptx_while(k, CMP(LT, ptx_get(k, v), U(128)));
    x = LD(AT(sh, ptx_sub(k, ptx_max(k, tid, ptx_get(k, v)), ptx_get(k, v))), 0), BAR;
    IF(CMP(GE, tid, ptx_get(k, v))), ST(mine, 0, ptx_add(k, LD(mine, 0), x)), END, BAR;
    ptx_set(k, v, ptx_as(ptx_shl(k, ptx_get(k, v), I(1)), PTX_U32)), END, out(LD(mine, 0)), RIGHT;

    begin(AMPERE), BLOCK(128), x = ptx_as(ptx_shfl_bfly(k, tid, I(1), I(31), FULL), PTX_U32); /* a sum each */
    IF(CMP(EQ, lane, zero)), ST(AT(sh, warp), 0, x), END, BAR;
    IF(CMP(LT, tid, I(4))), x = LD(mine, 0);
    x = ptx_as(ptx_shfl_bfly(k, x, I(2), I(31), ptx_b32(15)), PTX_U32), out(x), END, RIGHT;

    begin(AMPERE), BLOCK(64); /* which half comes last is known */
    IF(CMP(LT, tid, I(32))), ST(AT(sh, lane), 0, tid), END, BAR;
    IF(CMP(GE, tid, I(32))), ST(AT(sh, lane), 0, tid), END, BAR, out(LD(sh, 0)), RIGHT;

    begin(AMPERE), IF(CMP(EQ, LD(AT(p, tid), 0), n)), ST(sh, 0, tid), END, BAR, out(LD(sh, 0)), RIGHT;
    begin(AMPERE), x = LD(AT(p, lane), 0), ST(AT(sh, lane), 0, x), BAR, out(LD(sh, 0)), RIGHT;
    begin(AMPERE), y = AT(sh, low(LD(AT(p, tid), 0), 255)); /* a far offset is a number and no register */
    ST(y, 0, LD(q, 0x7000000)), BAR, out(LD(mine, 0)), RIGHT;
    begin(AMPERE), ST(AT(sh, ptx_mad(k, lane, U(33), warp)), 0, tid), BAR; /* a transposition */
    out(LD(AT(sh, ptx_mad(k, warp, U(33), lane)), 0)), RIGHT;
}

/* Barriers by number. */
static void barriers(void) {
    ptx_val i, number;
    begin(AMPERE), BLOCK(256), number = ptx_add(k, ptx_shr(k, warp, I(1)), I(1)); /* one for two warps */
    ST(mine, 0, n), ptx_op2(k, PTX_BAR_SYNC, 0, ptx_as(number, PTX_U32), I(64));
    out(LD(AT(sh, ptx_xor(k, tid, I(32))), 0)), RIGHT;

    begin(AMPERE), BLOCK(128), IF(CMP(LT, warp, I(2))), bar_n(I(1), 128),
        out(n); /* all come, here or there */
    ptx_else(k), bar_n(I(1), 128), out(zero), END, RIGHT;

    begin(AMPERE), BLOCK(256), IF(CMP(LT, warp, I(4))); /* one fills, one uses */
    FOR(n), bar_n(I(2), 256), ST(mine, 0, n), arrive_n(I(1), 256), END, bar_n(I(2), 256);
    ptx_else(k), arrive_n(I(2), 256), FOR(n), bar_n(I(1), 256), out(LD(ptx_off(mine, -512), 0));
    arrive_n(I(2), 256), END, END, RIGHT;

    begin(AMPERE), BLOCK(384), IF(CMP(LT, warp, I(4))), bar_n(I(3), 384),
        ptx_else(k); /* a subset by its own */
    FOR(n), ST(mine, 0, n), bar_n(I(1), 256), out(LD(AT(sh, ptx_xor(k, tid, I(32))), 0)), bar_n(I(1), 256);
    END, bar_n(I(3), 384), END, RIGHT;

    begin(AMPERE), BLOCK(128), i = FOR(n), bar_n(I(1), 128), END, bar_n(I(1), 128), BAR, out(n), RIGHT;
    begin(AMPERE), BLOCK(256), IF(CMP(LT, tid, I(128))), bar_n(I(1), 128), bar_n(I(1), 128), out(n), END;
    (void)i, RIGHT;
    begin(AMPERE), BLOCK(256); /* one number, for these first and then for those */
    IF(CMP(LT, tid, I(128))), bar_n(I(1), 128), END, BAR;
    IF(CMP(GE, tid, I(128))), bar_n(I(1), 128), END, out(n), RIGHT;
}

/* The first thread has left, by a guard of its own or by text; lanes take what others have by their number;
 * mbarriers are waited for in text, and made full before the first round. */
static ptx_val row(void) { return ptx_mad(k, ptx_ctaid_x(k), ptx_ntid_x(k), tid); }
static void before(ptx_val x) {
    ptx_val y = ptx_sub(k, x, U(1));
    ST(AT(q, x), 0, LD(AT(p, y), 0));
}
static void edges(void) {
    ptx_val x, y, c, i, full, empty;
    int j;
    begin(AMPERE), x = row(), ptx_guard(k, CMP(EQ, x, U(0))), ptx_ret(k), before(x), RIGHT;
    begin(AMPERE), x = row(), c = CMP(GE, x, n), c = ptx_op2(k, PTX_OR, 0, CMP(EQ, x, U(0)), c);
    ptx_guard(k, c), ptx_ret(k), before(x), RIGHT;
    begin(AMPERE), x = row(), c = CMP(EQ, x, U(0)), ptx_raw(k, "@$0 exit;", 1, &c, 0, NULL, NULL);
    before(x), RIGHT;

    begin(AMPERE), x = LD(AT(p, tid), 0); /* sums of all from here on */
    for (j = 1; j < 32; j *= 2) {
        y = ptx_as(ptx_shfl_down(k, x, I(j), I(31), FULL), PTX_U32);
        c = CMP(LT, ptx_add(k, lane, U((uint32_t)j)), U(32)), x = ptx_add(k, x, ptx_selp(k, y, U(0), c));
    }
    out(x), RIGHT;
    begin(HOPPER), make(1, 1), IF(one), fetch(sh, bar), END;
    ptx_raw(k,
            "{ .reg .pred P; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 P, [$0], 0; @P bra OVER; bra "
            "AGAIN; OVER: }",
            1, &bar, 0, NULL, NULL);
    out(LD(mine, 0)), RIGHT;

    begin(HOPPER), BLOCK(160), full = ptx_shared(k, "full", PTX_U64, 2, 8);
    empty = ptx_shared(k, "empty", PTX_U64, 2, 8), IF(one), i = FOR(U(2));
    ptx_mbarrier_init(k, ptx_ptr_add(k, full, i, 8), I(1));
    ptx_mbarrier_init(k, ptx_ptr_add(k, empty, i, 8), I(128)), END;
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0), END, BAR, IF(CMP(EQ, warp, I(4))), IF(ptx_elect(k, FULL));
    i = FOR(n), x = low(i, 1), y = low(ptx_as(ptx_shr(k, i, I(1)), PTX_U32), 1);
    wait_val(ptx_ptr_add(k, empty, x, 8), y);
    fetch(ptx_ptr_add(k, sh, x, 1024), ptx_ptr_add(k, full, x, 8)), END, END, ptx_else(k);
    ptx_mbarrier_arrive(k, empty), ptx_mbarrier_arrive(k, ptx_off(empty, 8));
    i = FOR(n), x = low(i, 1), y = low(ptx_as(ptx_shr(k, i, I(1)), PTX_U32), 1);
    wait_val(ptx_ptr_add(k, full, x, 8), y);
    out(LD(AT(ptx_ptr_add(k, sh, x, 1024), low(tid, 127)), 0));
    ptx_mbarrier_arrive(k, ptx_ptr_add(k, empty, x, 8)), END, END;
    RIGHT;
    {
        const ptx_type u32 = PTX_U32;
        begin(AMPERE), x = n, ptx_raw(k, "add.u32 $0, $1, 1;", 1, &x, 1, &u32, &x), out(x), RIGHT;
    }
    begin(AMPERE), x = ptx_local(k, "own", PTX_U32, 4, 4), ST(x, 0, n), y = ptx_mov(k, U(0)); /* 32 bits do */
    ptx_raw(k, "{ .reg .b32 t; ld.local.u32 t, [$0]; ld.const.u32 t, [$0]; }", 1, &y, 0, NULL, NULL);
    out(LD(x, 0)), RIGHT;
}

/* Phases of mbarriers, asked after in many ways. */
static void phases(void) {
    ptx_val c, i, x, s[3], at;
    ptx_var token, ph, tries;
    begin(HOPPER), make(1, 1), IF(one), fetch(sh, bar), END; /* so many times, then an end */
    tries = ptx_var_new(k, U(0)), ptx_loop(k), c = ptx_mbarrier_try_wait(k, bar, U(0));
    ptx_while(k, ptx_inv(c)), ptx_set(k, tries, ptx_add(k, ptx_get(k, tries), U(1)));
    IF(CMP(GT, ptx_get(k, tries), U(100000))), ptx_trap(k), END, END, out(LD(mine, 0)), RIGHT;

    begin(HOPPER), make(1, 1), token = ptx_var_new(k, U(0)), ph = ptx_var_new(k, U(0)); /* asked ahead */
    FOR(n), IF(one), fetch(sh, bar), END, c = ptx_mbarrier_try_wait(k, bar, ptx_get(k, ph));
    ptx_set(k, token, ptx_selp(k, U(1), U(0), c)), out(n);
    IF(CMP(EQ, ptx_get(k, token), U(0))), wait_val(bar, ptx_get(k, ph)), END;
    x = LD(mine, 0), out(x), ptx_set(k, ph, flip(ptx_get(k, ph))), BAR, END, RIGHT;

    begin(HOPPER), make(1, 1), IF(one), fetch(sh, bar), END; /* other work while it is not over */
    ptx_loop(k), c = ptx_mbarrier_try_wait(k, bar, U(0)), ptx_while(k, ptx_inv(c));
    ptx_red(k, PTX_ATOM_ADD, ptx_at(q, 0), U(1)), END, out(LD(mine, 0)), RIGHT;

    begin(HOPPER), make(1, 1), IF(one), fetch(sh, bar), END; /* with a nap */
    ptx_loop(k), c = ptx_mbarrier_try_wait(k, bar, U(0)), ptx_while(k, ptx_inv(c));
    ptx_nanosleep(k, I(64)), END, out(LD(mine, 0)), RIGHT;

    begin(HOPPER), make(1, 1), IF(one), fetch(sh, bar), END, ptx_loop(k); /* left by a break */
    IF(ptx_mbarrier_try_wait(k, bar, U(0))), ptx_break(k), END, ptx_nanosleep(k, I(64)), END;
    out(LD(mine, 0)), RIGHT;

    begin(HOPPER), make(128, 1), BLOCK(128); /* each copies, and its copies arrive */
    copy(0), ptx_op1(k, PTX_CP_ASYNC_MBARRIER_ARRIVE_NOINC, 0, bar), wait_on(bar, 0), out(LD(sh, 0)), RIGHT;

    begin(HOPPER), IF(one), i = FOR(U(2)), at = ptx_ptr_add(k, bar, i, 8); /* made in a loop */
    ptx_mbarrier_init(k, at, I(128)), END, ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0), END, BAR;
    BLOCK(128), ST(mine, 0, n), ptx_mbarrier_arrive(k, bar), wait_on(bar, 0);
    out(LD(AT(sh, ptx_xor(k, tid, I(32))), 0)), RIGHT;

    /* made anew in each round, by whom it was undone in an if before */
    begin(HOPPER), FOR(n), make(1, 1), IF(one), fetch(sh, bar), END, wait_on(bar, 0), out(LD(mine, 0)), BAR;
    IF(one), ptx_mbarrier_inval(k, bar), ptx_mbarrier_inval(k, ptx_off(bar, 8)), END, BAR, END, RIGHT;

    begin(HOPPER), IF(CMP(EQ, n, zero)), make(1, 1), ptx_else(k), make(1, 2), END; /* one of two ways */
    IF(one), fetch(sh, bar), END, wait_on(bar, 0), out(LD(mine, 0)), RIGHT;

    begin(HOPPER), at = ptx_shared(k, "all", PTX_U8, 8192, 128); /* one array for mbarriers and data */
    IF(one), ptx_mbarrier_init(k, at, I(1)), ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0), END, BAR;
    ST(ptx_off(AT(at, tid), 16), 0, n), IF(one), fetch(ptx_off(at, 4096), at), END, wait_on(at, 0);
    out(LD(ptx_off(AT(at, tid), 4096), 0)), RIGHT;

    begin(HOPPER), make(2, 1), IF(CMP(EQ, low(tid, 31), zero)); /* one of each warp arrives, of two */
    IF(CMP(LT, warp, I(2))), ptx_mbarrier_arrive(k, bar), END, END, wait_on(bar, 0), out(n), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), make(2, 1), meet(); /* one arrival here, one from there */
    IF(one), ptx_mbarrier_arrive(k, bar);
    ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, ptx_mapa(k, bar, flip(ptx_sreg(k, PTX_CLUSTER_CTARANK))));
    END, wait_on(bar, 0), meet(), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), make(1, 1), meet(); /* bytes from another block */
    IF(one), ptx_mbarrier_arrive_expect(k, bar, I(4)), x = flip(ptx_sreg(k, PTX_CLUSTER_CTARANK));
    s[0] = ptx_mapa(k, sh, x), s[1] = n, s[2] = ptx_mapa(k, bar, x);
    ptx_opn(k, PTX_ST_ASYNC, 0, PTX_U32, PTX_NONE, 3, s, 0, NULL), END;
    wait_on(bar, 0), out(LD(sh, 0)), meet(), RIGHT;
}

/* Warp specialisation: stages that one warp fills by bulk copies. */
static void specialised(void) {
    ptx_val i, full, empty, tile;
    ptx_var stage, ph;
    begin(HOPPER), BLOCK(160), make(1, 128), IF(CMP(EQ, warp, I(4)));
    IF(ptx_elect(k, FULL)), i = FOR(n), wait_val(ptx_off(bar, 8), flip(low(i, 1))), fetch(sh, bar), END, END;
    ptx_else(k), i = FOR(n), wait_val(bar, low(i, 1)), out(LD(mine, 0));
    ptx_mbarrier_arrive(k, ptx_off(bar, 8)), END, END, RIGHT;

    begin(HOPPER), BLOCK(160), full = ptx_shared(k, "full", PTX_U64, 4, 8);
    empty = ptx_shared(k, "empty", PTX_U64, 4, 8), IF(one), i = FOR(U(4));
    ptx_mbarrier_init(k, ptx_ptr_add(k, full, i, 8), I(1));
    ptx_mbarrier_init(k, ptx_ptr_add(k, empty, i, 8), I(4)), END, ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END, BAR, stage = ptx_var_new(k, U(0)), ph = ptx_var_new(k, U(0)), IF(CMP(EQ, warp, I(4)));
    IF(ptx_elect(k, FULL)), FOR(n);
    wait_val(ptx_ptr_add(k, empty, ptx_get(k, stage), 8), flip(ptx_get(k, ph)));
    tile = ptx_ptr_add(k, sh, ptx_get(k, stage), 1024);
    fetch(tile, ptx_ptr_add(k, full, ptx_get(k, stage), 8));
    ptx_set(k, stage, ptx_add(k, ptx_get(k, stage), U(1))), IF(CMP(EQ, ptx_get(k, stage), U(4)));
    ptx_set(k, stage, U(0)), ptx_set(k, ph, flip(ptx_get(k, ph))), END, END, END, ptx_else(k), FOR(n);
    wait_val(ptx_ptr_add(k, full, ptx_get(k, stage), 8), ptx_get(k, ph));
    out(LD(ptx_ptr_add(k, ptx_ptr_add(k, sh, ptx_get(k, stage), 1024), lane, 4), 0));
    ptx_bar_warp_sync(k, FULL), IF(CMP(EQ, lane, zero));
    ptx_mbarrier_arrive(k, ptx_ptr_add(k, empty, ptx_get(k, stage), 8)), END;
    ptx_set(k, stage, ptx_add(k, ptx_get(k, stage), U(1))), IF(CMP(EQ, ptx_get(k, stage), U(4)));
    ptx_set(k, stage, U(0)), ptx_set(k, ph, flip(ptx_get(k, ph))), END, END, END, RIGHT;
}

/* Bulk copies from shared memory: the thread that begins them waits, in an if of its own. */
static void bulk_stores(void) {
    begin(HOPPER), FOR(n), ST(mine, 0, n), proxy_fence(), BAR;
    IF(one), ptx_bulk_store(k, q, sh, I(512)), bulk_commit(), END;
    IF(one), bulk_wait_read(0), END, BAR, END, IF(one), bulk_wait(0), END, RIGHT;

    begin(HOPPER), FOR(n), IF(one), bulk_wait_read(0), END, BAR, ST(mine, 0, n), proxy_fence(), BAR;
    IF(one), ptx_bulk_store(k, q, sh, I(512)), bulk_commit(), END, END, IF(one), bulk_wait(0), END, RIGHT;

    begin(HOPPER), BLOCK(128), FOR(n), IF(one), bulk_wait_read(1), END, BAR; /* two buffers */
    ST(mine, 0, n), proxy_fence(), BAR, IF(one), ptx_bulk_store(k, q, sh, I(512)), bulk_commit(), END;
    IF(one), bulk_wait_read(1), END, BAR, ST(ptx_off(mine, 512), 0, n), proxy_fence(), BAR;
    IF(one), ptx_bulk_store(k, q, ptx_off(sh, 512), I(512)), bulk_commit(), END, END;
    IF(one), bulk_wait(0), END, RIGHT;

    begin(HOPPER), BLOCK(128), FOR(n), ST(mine, 0, n), proxy_fence(), BAR, IF(CMP(EQ, warp, zero));
    IF(ptx_elect(k, FULL)), ptx_bulk_store(k, q, sh, I(512)), bulk_commit(), bulk_wait_read(0), END, END;
    BAR, END, RIGHT;
}

static void begin_sums(void) {
    int i;
    begin(HOPPER);
    BLOCK(128);
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
}
static void use_sums(void) { ptx_st(k, PTX_F32, ptx_at(AT(q, tid), 0), ptx_get(k, sums[0])); }

static void products(void) {
    ptx_val i;
    begin_sums(), make(1, 128), i = FOR(n), IF(one), wait_val(ptx_off(bar, 8), flip(low(i, 1)));
    fetch(sh, bar), END, wait_val(bar, low(i, 1)), issue(sh), product_wait(0);
    ptx_mbarrier_arrive(k, ptx_off(bar, 8)), END, use_sums(), RIGHT;

    begin_sums(), make(1, 128), i = FOR(n); /* the one before is given back while this is under way */
    IF(one), fetch(sh, bar), END, wait_val(bar, low(i, 1)), issue(sh), product_wait(1), out(n),
        product_wait(0);
    BAR, END, use_sums(), RIGHT;

    begin_sums(), i = FOR(n), ST(mine, 0, n), proxy_fence(), BAR, issue(sh); /* two tiles by hand */
    ST(ptx_off(mine, 8192), 0, n), proxy_fence(), product_wait(0), BAR, END, use_sums(), (void)i, RIGHT;

    begin_sums(), make(1, 128), IF(one), fetch(sh, bar), END, wait_on(bar, 0); /* whose turn it is */
    i = FOR(n), wait_val(ptx_off(bar, 8), flip(low(i, 1))), issue(sh),
    ptx_mbarrier_arrive(k, ptx_off(bar, 8));
    product_wait(0), END, use_sums(), RIGHT;
}

static void clusters(void) {
    ptx_val x, y, i, rank;
    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), ST(mine, 0, n), meet(); /* read of another */
    out(LD(ptx_mapa(k, mine, flip(ptx_sreg(k, PTX_CLUSTER_CTARANK))), 0)), meet(), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), rank = flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)), meet();
    i = FOR(n); /* two halves: there into one, here from the other */
    x = ptx_add(k, mine, ptx_shl(k, low(i, 1), I(12))),
    y = ptx_add(k, mine, ptx_shl(k, flip(low(i, 1)), I(12)));
    ST(ptx_mapa(k, y, rank), 0, n), out(LD(x, 0)), meet(), END, RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), rank = flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)), meet();
    ST(ptx_mapa(k, mine, rank), 0, n), ST(ptx_off(mine, 8192), 0, n), BAR; /* its own part */
    out(LD(AT(ptx_off(sh, 8192), ptx_xor(k, tid, I(32))), 0)), meet(), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), rank = flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)); /* a sum */
    ST(mine, 0, zero), meet(), ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_mapa(k, sh, rank), 0), U(1)), meet();
    out(LD(sh, 0)), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), ST(mine, 0, n), ptx_cluster_arrive(k); /* work between */
    out(n), ptx_cluster_wait(k), out(LD(ptx_mapa(k, mine, I(1)), 0)), ptx_cluster_arrive(k), out(zero);
    ptx_cluster_wait(k), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), make(1, 1);
    ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, PTX_RELAXED), ptx_cluster_wait(k), IF(one); /* behind a fence */
    ptx_op1(k, PTX_MBARRIER_ARRIVE_CLUSTER, 0, ptx_mapa(k, bar, flip(ptx_sreg(k, PTX_CLUSTER_CTARANK))));
    END, wait_on(bar, 0), meet(), RIGHT;

    begin(HOPPER), ptx_require_cluster(k, 2, 1, 1), x = ptx_shared(k, "in", PTX_U32, 1024, 16), meet();
    FOR(n), ST(ptx_mapa(k, AT(x, tid), I(0)), 0, n), out(LD(mine, 0)), ST(mine, 0, n); /* other arrays */
    END, meet(), RIGHT;
}

static void tensor_memory(void) {
    ptx_val at, v[5], x, i;
    begin(BLACKWELL), BLOCK(128), IF(CMP(EQ, warp, zero)), ptx_op2(k, PTX_TCGEN05_ALLOC, 0, sh, I(64));
    ptx_op0(k, PTX_TCGEN05_RELINQUISH, 0), END, make(1, 1), at = LD(sh, 0), i = FOR(n);
    v[0] = at, v[1] = n, PLAIN(PTX_TCGEN05_ST_32X32B, 2, v), ptx_op0(k, PTX_TCGEN05_WAIT_ST, 0);
    ptx_op0(k, PTX_TCGEN05_FENCE_BEFORE, 0), BAR, IF(CMP(EQ, warp, zero)), IF(ptx_elect(k, FULL));
    ptx_op0(k, PTX_TCGEN05_FENCE_AFTER, 0), v[1] = v[2] = ptx_mov(k, ptx_u64(0x4000)), v[3] = zero;
    v[4] = CMP(NE, i, zero), PLAIN(PTX_TCGEN05_MMA_F16, 5, v), PLAIN(PTX_TCGEN05_MMA_F16, 5, v);
    ptx_op1(k, PTX_TCGEN05_COMMIT, 0, bar), END, END, wait_val(bar, low(i, 1));
    ptx_op0(k, PTX_TCGEN05_FENCE_AFTER, 0);
    ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &at, 1, &x),
        ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0);
    out(ptx_as(x, PTX_U32)), ptx_op0(k, PTX_TCGEN05_FENCE_BEFORE, 0), BAR, END, BAR;
    IF(CMP(EQ, warp, zero)), ptx_op2(k, PTX_TCGEN05_DEALLOC, 0, at, I(64)), END, RIGHT;
}

/* Conditions, loops and variables. */
static void loops(void) {
    ptx_val x, c, i;
    ptx_var a, b;
    begin(AMPERE), x = ptx_sreg(k, PTX_CLOCK), ptx_loop(k); /* until the time is over */
    ptx_while(k, CMP(LT, ptx_sub(k, ptx_sreg(k, PTX_CLOCK), x), U(1000))), END, out(n), RIGHT;

    begin(AMPERE), c = CMP(NE, n, zero), ptx_loop(k), ptx_while(k, c); /* on a parameter, left by the data */
    x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)), IF(CMP(GE, x, n)), ptx_break(k), END, out(x), END,
    RIGHT;

    begin(AMPERE), ptx_loop(k), x = ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_ACQUIRE | PTX_GPU));
    ptx_while(k, CMP(LT, x, n)), END, out(LD(q, 0)), RIGHT;

    begin(AMPERE), c = CMP(EQ, n, zero), ptx_loop(k), IF(c), ptx_exit(k), END; /* a parameter, or the work */
    x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)), ptx_while(k, CMP(LT, x, n)), out(x), END, RIGHT;

    begin(AMPERE), a = ptx_var_new(k, tid), ptx_loop(k); /* one lane after another */
    x = ptx_as(ptx_ballot(k, CMP(NE, ptx_get(k, a), zero), FULL), PTX_U32), ptx_while(k, CMP(NE, x, zero));
    ptx_set(k, a, ptx_as(ptx_shr(k, ptx_get(k, a), I(1)), PTX_U32)), END, out(ptx_get(k, a)), RIGHT;

    begin(AMPERE), a = ptx_var_new(k, U(0)), b = ptx_var_new(k, U(1)), FOR(n); /* one is the other's past */
    x = ptx_get(k, a), ptx_set(k, a, ptx_get(k, b)), ptx_set(k, b, ptx_add(k, x, ptx_get(k, b))), END;
    out(ptx_get(k, a)), RIGHT;

    begin(AMPERE), x = ptx_as(ptx_rem(k, ptx_as(tid, PTX_S32), ptx_s32(8)), PTX_S32); /* may be negative */
    IF(CMP(EQ, x, ptx_s32(-1))), out(n), END, IF(CMP(LT, x, ptx_s32(0))), out(n), END, RIGHT;
    begin(AMPERE), i = ptx_as(LD(AT(p, tid), 0), PTX_S32), x = ptx_rem(k, i, I(8));
    IF(CMP(EQ, x, I(-1))), out(n), END, IF(CMP(GE, x, I(-7))), out(n), END, RIGHT;
    begin(AMPERE), x = low(tid, 7), a = ptx_var_new(k, x), FOR(n),
                   ptx_set(k, a, ptx_add(k, ptx_get(k, a), x)), END;
    IF(CMP(GT, ptx_get(k, a), I(7))), out(n), END, RIGHT;
    begin(AMPERE), x = ptx_ld(k, PTX_F32, ptx_at(AT(p, tid), 0)), IF(CMP(NEU, x, x)), out(n), END,
                   RIGHT; /* NaN */
    begin(AMPERE), x = ptx_as(ptx_shfl_bfly(k, tid, I(4), I(0x181f), FULL), PTX_U32), out(x), RIGHT;
}

/* Arrays of a thread: filled through other addresses, or by others. */
static void local(void) {
    static const ptx_type types[1] = {PTX_U32};
    ptx_val x, y, args[1], i;
    ptx_kernel *f;
    begin(AMPERE), x = ptx_local(k, "own", PTX_U32, 8, 16), y = ptx_cvta(k, x), ST(AT(y, low(tid, 7)), 0, n);
    out(LD(x, 4)), RIGHT;
    begin(AMPERE), x = ptx_local(k, "own", PTX_U32, 8, 16), i = FOR(U(8)), ST(AT(x, i), 0, i), END;
    out(LD(AT(x, low(tid, 7)), 0)), RIGHT;
    begin(AMPERE), x = ptx_local(k, "own", PTX_U32, 8, 16), args[0] = ptx_as(ptx_cvta(k, x), PTX_U64);
    ptx_raw(k, "st.u32 [$0], 1;", 1, args, 0, types, NULL), out(LD(x, 0)), RIGHT;
    begin(AMPERE), x = ptx_local(k, "own", PTX_U32, 8, 16), f = ptx_func(m, "fill", PTX_NONE);
    y = ptx_param(f, "at", PTX_U64), ptx_st(f, PTX_U32, ptx_at(ptx_ptr(y, PTX_GENERIC), 0), ptx_u32(1));
    ptx_ret(f), args[0] = ptx_as(ptx_cvta(k, x), PTX_U64), ptx_call(k, f, 1, args), out(LD(x, 0)), RIGHT;
}

/* Among blocks. */
static void scopes(void) {
    ptx_val x, y;
    begin(AMPERE), y = AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)),
                   ST(y, 0, n); /* the last block sums up */
    ptx_fence(k, PTX_ACQ_REL | PTX_GPU), BAR, IF(one), x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1));
    ST(sh, 0, x), END, BAR, IF(CMP(EQ, ptx_uniform(k, LD(sh, 0)), n)), ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
    out(LD(AT(q, tid), 0)), END, RIGHT;

    begin(AMPERE), y = AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)), ST(y, 0, n),
                   BAR; /* one fences for all */
    IF(one), ptx_fence(k, PTX_SC | PTX_GPU), x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)), ST(sh, 0, x);
    END, BAR, IF(CMP(EQ, ptx_uniform(k, LD(sh, 0)), n)), out(LD(AT(q, tid), 0)), END, RIGHT;

    begin(AMPERE), y = AT(q, ptx_mad(k, ptx_ctaid_x(k), U(128), tid)),
                   ST(y, 0, n); /* it reads its own again */
    IF(one), x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)), ST(sh, 0, x), END, BAR;
    out(ptx_add(k, LD(y, 0), LD(sh, 0))), RIGHT;

    begin(AMPERE), IF(CMP(EQ, ptx_ctaid_x(k), zero)); /* one block alone, among its threads */
    ptx_red(k, PTX_ATOM_ADD | PTX_RELAXED | PTX_CTA, ptx_at(p, 0), U(1)), END, RIGHT;
    begin(AMPERE), y = AT(p, ptx_ctaid_x(k)); /* a place for each block */
    ptx_red(k, PTX_ATOM_ADD | PTX_RELAXED | PTX_CTA, ptx_at(y, 0), U(1)), RIGHT;

    begin(AMPERE), FOR(n), IF(one), x = ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), U(1)), ST(sh, 0, x), END, BAR;
    x = ptx_uniform(k, LD(sh, 0)), BAR, y = AT(q, ptx_mad(k, x, U(128), tid)); /* a queue of work in place */
    ST(y, 0, ptx_add(k, LD(y, 0), I(1))), END, RIGHT;

    begin(AMPERE), IF(one), ptx_loop(k), x = ptx_atom_cas(k, ptx_at(p, 0), U(0), U(1)); /* a lock */
    ptx_while(k, CMP(NE, x, zero)), END, ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
    ptx_st(k, PTX_U32, ptx_with(ptx_at(q, 0), PTX_VOLATILE), n), ptx_fence(k, PTX_ACQ_REL | PTX_GPU);
    ptx_atom(k, PTX_ATOM_EXCH, ptx_at(p, 0), U(0)), END, RIGHT;

    begin(AMPERE), y = AT(p, ptx_mul(k, low(LD(AT(p, tid), 0), 255), U(2))); /* a table of keys and values */
    x = ptx_atom_cas(k, ptx_at(y, 0), U(0), tid), IF(CMP(EQ, x, zero)), ST(y, 4, n), END, RIGHT;
}

/* Text of one's own. */
static void raw(void) {
    static const ptx_type types[2] = {PTX_U32, PTX_U32};
    ptx_val x[2];
    begin(AMPERE), ptx_raw(k, "{ .reg .b32 t; add.u32 t, $1, $1; mov.b32 $0, t; }", 1, &n, 1, types, x),
        out(x[0]);
    RIGHT;
    begin(AMPERE), ptx_raw(k, "add.u32 $0, $1, $1; // twice", 1, &n, 1, types, x), out(x[0]), RIGHT;
    begin(AMPERE), ptx_raw(k, "add.u32 $0, $2, $2;\n\tsub.u32 $1, $2, $0;\n", 1, &n, 2, types, x);
    out(x[1]), out(x[0]), RIGHT;
}

/* Indices within their arrays by conditions on the way; and one that is made of itself over and over, which
   must not be gone through on every way. */
static void indices(void) {
    ptx_val a, i, x;
    clock_t before = clock();
    int j;
    begin(AMPERE), BLOCK(32), a = ptx_shared(k, "a", PTX_U32, 100, 16);
    i = FOR(U(100)), x = ptx_add(k, i, U(5)), IF(CMP(LT, x, U(100))), ST(AT(a, x), 0, n), END, END;
    BAR, out(LD(AT(a, lane), 0)), RIGHT;
    begin(AMPERE), BLOCK(64), a = ptx_shared(k, "a", PTX_U32, 64, 16), ST(AT(a, tid), 0, n), BAR;
    i = FOR(U(100)), IF(CMP(GE, i, U(64))), ptx_break(k), END, out(LD(AT(a, i), 0)), END, RIGHT;
    begin(HOPPER), x = n;
    for (j = 0; j < 40; j++) {
        i = ptx_add(k, x, x);
        x = ptx_add(k, low(i, 0xffff), ptx_mul(k, x, x));
    }
    for (j = 0; j < 500; j++) ST(AT(sh, ptx_min(k, ptx_add(k, x, U((uint32_t)j)), U(4000))), 0, n);
    RIGHT;
    CHECK((double)(clock() - before) / CLOCKS_PER_SEC < 2);
}

int main(void) {
    indices();
    groups();
    tables();
    edges();
    barriers();
    phases();
    specialised();
    bulk_stores();
    products();
    clusters();
    tensor_memory();
    loops();
    local();
    scopes();
    raw();
    return check_end();
}
