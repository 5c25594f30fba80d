/* verdict.h - a kernel with the usual values at hand, and what is said of it when it is done: for tests of
 * what the builder refuses and advises. Include it behind the implementation of ptxgen.h. */
#ifndef VERDICT_H
#define VERDICT_H

#include "check.h"

#include <string.h>

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

/* want: the identifier of the only thing that is said, with a "!" in front where it is an error. says: what
   the message holds. */
static void done(const char *file, int line, const char *want, const char *says) {
    char got[600] = "", message[1000] = "";
    ptx_advice a;
    uint32_t i, count;
    ptx_ret(k);
    if (!ptx_text(m, NULL)) {
        snprintf(got, sizeof got, "!%s", ptx_error_name(ptx_get_error(m)->code));
        snprintf(message, sizeof message, "%s", ptx_get_error(m)->message);
    }
    for (i = 0, count = ptx_advise(m); i < count; i++) {
        if (!ptx_advice_get(m, i, &a) || a.code == PTX_ADVICE_CONTRACTION) continue;
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", *got ? " " : "",
                 ptx_advice_name(a.code));
        snprintf(message, sizeof message, "%s", a.message);
    }
    if (!check_at(strcmp(got, want) == 0 && (!says || strstr(message, says)), file, line, want, message))
        printf("    it got \"%s\"\n", got);
    ptx_module_free(m);
}
#define WRONG(want, says) done(__FILE__, __LINE__, want, says)
#define RIGHT done(__FILE__, __LINE__, "", NULL)
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

#endif
