/* blackwell.c - instructions of sm_100 that no other test has room for: st.bulk. */
#include "../simtest.h"

static char ptx[4000];

/* One block of 64 threads; r31: shared memory of 1 KiB, all of it 5; d1: the size that each thread has. */
static int go(const char *body, uint32_t *out) {
    snprintf(
        ptx, sizeof ptx,
        ".version 8.6\n.target sm_100\n.address_size 64\n.shared .align 16 .b8 sm[1024];\n"
        ".visible .entry k(.param .u64 out) {\n" REGS
        "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mul.wide.u32 d2, r0, 4; add.u64 d2, d0, d2; mov.u32 "
        "r31, sm;\n"
        "mad.lo.u32 r30, r0, 16, r31; mov.u32 r1, 5; st.shared.v4.u32 [r30], {r1,r1,r1,r1}; bar.sync 0;\n"
        "setp.eq.u32 p0, r0, 0; mov.u64 d1, 64; mov.u64 d3, sm; cvta.shared.u64 d3, d3;\n%s\n"
        "bar.sync 0; mad.lo.u32 r30, r0, 4, r31; ld.shared.u32 r2, [r30]; st.global.u32 [d2], r2;\nret; }\n",
        body);
    report_clear();
    found[0] = 0;
    int code = run_out(ptx, 1, 64, 0, out, 64);
    if (code < 700) findings();
    return code;
}

static void zeros(const char *body, unsigned first, unsigned end) {
    uint32_t x[64];
    int code = go(body, x);
    CHECK(!code && !*found, "%s gives %d: %s", body, code, found);
    for (unsigned k = 0; k < 64 && !code; k++)
        if (!CHECK(x[k] == (k >= first && k < end ? 0 : 5), "%s: word %u is %u", body, k, x[k])) break;
}

static void wrong(const char *body, int want, const char *kind) {
    uint32_t x[64];
    int code = go(body, x);
    CHECK(code == want && !strncmp(found, kind, strlen(kind)), "%s gives %d: %s", body, code, found);
    report_clear();
}

static void test_store_bulk(void) {
    static const char *const bad[] = {
        "st.bulk.weak.shared::cta [r31], r1, 0;", "st.bulk.weak.shared::cta [r31], 12, 0;",
        "st.bulk.weak.shared::cta [r31], 64, 1;", "st.bulk.weak.shared [r31], 64, 0;",
        "st.bulk.weak.shared::cta [r31], 16777224, 0;"};
    zeros("@p0 st.bulk.weak.shared::cta [r31], d1, 0;", 0, 16);
    zeros("@p0 st.bulk.shared::cta [r31+8], 16, 0;", 2, 6);
    zeros("@p0 st.bulk.weak [d3], d1, 0;", 0, 16);
    zeros("@p0 st.bulk [d3+128], 128, 0;", 32, 64);
    zeros("@p0 st.bulk.weak.shared::cta [r31], 0, 0;", 0, 0);
    wrong("mov.u64 d1, 12; @p0 st.bulk.weak.shared::cta [r31], d1, 0;", 716, "misaligned:");
    wrong("mov.u64 d1, 1032; @p0 st.bulk.weak.shared::cta [r31], d1, 0;", 700, "out-of-bounds:");
    wrong("@p0 st.bulk.weak [d0], d1, 0;", 700, "out-of-bounds:");
    wrong("st.bulk.weak.shared::cta [r31], d1, 0; ld.shared.u32 r3, [r31+32];", 0, "race:");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        snprintf(ptx, sizeof ptx,
                 ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k() {\n" REGS
                 "%s\nret; }\n",
                 bad[k]);
        CHECK(refused(ptx) == 218, "accepted: %s", bad[k]);
    }
}

int main(int argc, char **argv) {
    setenv("PTXSIM_DEVICE", "sm_100", 1);
    sim_open(argc, argv);
    test_store_bulk();
    return sim_close();
}
