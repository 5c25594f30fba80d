/* warpgroup.c - what a warpgroup may do wrong: setmaxnreg and wgmma, each fault beside its twin. */
#include "../simtest.h"

static char text[1 << 15];

/* Runs `body` with a fault in place of @@ and then with its twin: the first gives that finding at a line
 * marked "here", the second none. `head`: directives of the entry. d0 points to 4096 words, r0 is the
 * thread, r1 the warp, r2 the warpgroup, r31 shared memory of 32 KiB, r30 two mbarriers. */
static int execute(const char *head, const char *body, const char *change, unsigned block) {
    size_t n = (size_t)snprintf(
        text, sizeof text,
        ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 sm[32768];\n"
        ".shared .align 8 .b64 bars[2];\n.visible .entry k(.param .u64 out) %s\n{\n"
        ".reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<40>; .reg .b64 d<20>; .reg .f32 f<200>;\n"
        "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; shr.u32 r1, r0, 5; shr.u32 r2, r0, 7;\n"
        "mov.u32 r31, sm; mov.u32 r30, bars;\n",
        head);
    for (; *body && n < sizeof text - 4096; body++) {
        if (body[0] != '@' || body[1] != '@') {
            text[n++] = *body;
            continue;
        }
        n += (size_t)sprintf(text + n, "%s", change);
        body++;
    }
    strcpy(text + n, "\nret;\n}\n");
    handle m = load(text), f = function(m, "k");
    dptr out = alloc(16384);
    void *params[] = {&out};
    if (!f) {
        fprintf(stderr, "%s\n", text);
        cuMemFree_v2_(out);
        return -1;
    }
    cuMemsetD32_v2_(out, 0, 4096);
    report_clear();
    int code = run(f, 1, block, 0, params);
    findings();
    if (code >= 700) report_clear();
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
    return code;
}

static void pair(const char *name, const char *head, const char *body, const char *bad, const char *good,
                 int code, const char *kind, unsigned block) {
    size_t n = strlen(kind);
    int got = execute(head, body, bad, block);
    CHECK(got == code, "%s: gives %d, expected %d: %s", name, got, code, found);
    CHECK(!strncmp(found, kind, n) && found[n] == ':' && strstr(found, "// here"),
          "%s: expected %s, found: %s", name, kind, found);
    report_clear();
    got = execute(head, body, good, block);
    CHECK(!got && !*found, "the twin of %s: gives %d, found: %s", name, got, found);
    report_clear();
}

static void silent(const char *name, const char *head, const char *body, unsigned block) {
    int got = execute(head, body, "", block);
    CHECK(!got && !*found, "%s: gives %d, found: %s", name, got, found);
    report_clear();
}

/* --- setmaxnreg ------------------------------------------------------------------------------- */

#define DEC(n) "setmaxnreg.dec.sync.aligned.u32 " #n ";\n"
#define INC(n) "setmaxnreg.inc.sync.aligned.u32 " #n ";\n"
#define PAIR_SYNC "bar.sync 1, 256;\n"
#define BOUNDS(t) ".maxntid " #t ", 1, 1 .minnctapersm 1"
/* One warpgroup gives up, two ask. */
#define ROLES(give, take)                                                                                    \
    "setp.ne.u32 p0, r2, 0;\n@p0 bra CONSUMER;\n" give "bra DONE;\nCONSUMER:\n" take "DONE:\n"

static void test_registers(void) {
    pair("more than the block has", BOUNDS(384),
         ROLES(DEC(40), "setmaxnreg.inc.sync.aligned.u32 @@; // here\n"), "240", "232", 702, "deadlock", 384);
    execute(BOUNDS(384), ROLES(DEC(40), INC(240)), "", 384);
    CHECK(strstr(found, "wait here for registers; this warp has 168 of 240") != NULL, "what is missing: %s",
          found);
    pair("a producer that gives up nothing", BOUNDS(384),
         ROLES("@@", "setmaxnreg.inc.sync.aligned.u32 232; // here\n"), "", DEC(40), 702, "deadlock", 384);
    pair("a producer that waits for those who wait for it", BOUNDS(384),
         ROLES("@@", "setmaxnreg.inc.sync.aligned.u32 232; // here\nbar.sync 1, 384;\n"),
         "bar.sync 1, 384;\n" DEC(40), DEC(40) "bar.sync 1, 384;\n", 702, "deadlock", 384);
    pair("one group takes twice", BOUNDS(384),
         ROLES(DEC(40),
               INC(216) "bar.sync 1, 256;\nsetp.eq.u32 p1, r2, 2;\n@p1 bra THIRD;\n@@bra DONE;\nTHIRD:\n"
                        "setmaxnreg.inc.sync.aligned.u32 256; // here\n"),
         "", DEC(168), 702, "deadlock", 384);
    pair("inc to fewer", ".maxnreg 128", INC(128) "bar.sync 0;\nsetmaxnreg.@@.sync.aligned.u32 96; // here\n",
         "inc", "dec", 0, "register-count", 128);
    pair("dec to more", ".maxnreg 128", DEC(64) "bar.sync 0;\nsetmaxnreg.dec.sync.aligned.u32 @@; // here\n",
         "72", "56", 0, "register-count", 128);
    pair("a count that differs within the group", ".maxnreg 128",
         "setp.ge.u32 p0, r1, @@;\n@p0 bra TWO;\n"
         "setmaxnreg.dec.sync.aligned.u32 64; // here\nbra DONE;\nTWO:\n"
         "setmaxnreg.dec.sync.aligned.u32 56; // here\nDONE:\n",
         "2", "4", 0, "warpgroup", 256);
    pair("two warps of four", ".maxnreg 128",
         "setp.ge.u32 p0, r1, @@;\n@p0 bra DONE;\nsetmaxnreg.dec.sync.aligned.u32 56; // here\nDONE:\n", "2",
         "4", 0, "warpgroup", 128);
    pair("half a warp", ".maxnreg 128",
         "and.b32 r3, r0, 31;\nsetp.ge.u32 p0, r3, @@;\n@p0 bra DONE;\nsetmaxnreg.dec.sync.aligned.u32 56; "
         "// here\n"
         "DONE:\nst.global.u32 [d0], 1;\n",
         "16", "32", 0, "barrier-divergence", 128);
    pair("a second one without a barrier between", ".maxnreg 128",
         DEC(64) "@@\nsetmaxnreg.dec.sync.aligned.u32 56; // here\n", "", "bar.sync 0;", 0, "warpgroup", 128);
    execute(".maxntid 128, 1, 1", DEC(40), "", 128);
    CHECK(!strncmp(found, "setmaxnreg-ignored:", 19), "threads alone are no cap: %s", found);
    silent("bounds are a cap", BOUNDS(128), DEC(40), 128);
    silent("so is a number", ".maxnreg 100", DEC(104), 128);
    silent("the count at entry follows the largest inc", BOUNDS(256), ROLES(DEC(40), INC(232)), 256);
    silent("three roles", BOUNDS(384), ROLES(DEC(24), INC(240)), 384);
    silent("there and back", BOUNDS(256),
           ROLES(DEC(40) PAIR_SYNC PAIR_SYNC INC(160), INC(240) PAIR_SYNC DEC(160) PAIR_SYNC), 256);
    silent("one warp has no group", ".maxnreg 128", DEC(40), 32);
}

/* --- wgmma -------------------------------------------------------------------------------------- */

/* Zeroes 16 KiB of shared memory and sums; d1, d2: descriptors of A, B without a swizzle. p1 is true. */
#define MATRICES                                                                                             \
    "mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0; setp.ge.u32 p1, r0, 0;\n"       \
    "mov.f32 f4, f0; mov.f32 f5, f0; mov.f32 f6, f0; mov.f32 f7, f0; mov.u32 r4, 0; mov.u32 r12, 0;\n"       \
    "mov.u32 r5, r4; mov.u32 r6, r4; mov.u32 r7, r4; and.b32 r10, r0, 127; shl.b32 r11, r10, 7;\n"           \
    "add.u32 r11, r11, r31;\nsetp.ge.u32 p7, r0, 128;\n@p7 bra READY;\n"                                     \
    "FILL: st.shared.v4.b32 [r11], {r4,r4,r4,r4}; add.u32 r11, r11, 16; add.u32 r12, r12, 1;\n"              \
    "setp.lt.u32 p2, r12, 8;\n@p2 bra FILL;\nREADY:\nfence.proxy.async; bar.sync 0;\n"                       \
    "shr.u32 r13, r31, 4; cvt.u64.u32 d1, r13; add.u64 d1, d1, 0x0000001000080000; mov.u64 d2, d1;\n"
#define ADD_AS(shape, sums, a, b, p, more)                                                                   \
    "wgmma.mma_async.sync.aligned." shape " {" sums "}, " a ", " b ", " p ", 1, 1" more ";\n"
#define SUMS "f0,f1,f2,f3"
#define ADD ADD_AS("m64n8k16.f32.f16.f16", SUMS, "d1", "d2", "p1", ", 0, 0")
#define ADD_TF32 ADD_AS("m64n8k8.f32.tf32.tf32", SUMS, "d1", "d2", "p1", "")
#define ADD_HALF "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {r4,r5,r6,r7}, d1, d2, p1, 1, 1, 0, 0;\n"
#define ADD_R ADD_AS("m64n8k16.f32.f16.f16", SUMS, "{r4,r5,r6,r7}", "d2", "p1", ", 0")
#define FENCE "wgmma.fence.sync.aligned;\n"
#define COMMIT "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n) "wgmma.wait_group.sync.aligned " #n ";\n"
#define DONE COMMIT WAIT(0)
#define USE "st.global.f32 [d0], f0;\n"

/* The line that has to be named is the one before the mark. */
static void wgmma(const char *name, const char *body, const char *bad, const char *good, const char *kind,
                  unsigned block) {
    static char full[8192];
    size_t n = strlen(kind);
    snprintf(full, sizeof full, "%s%s", MATRICES, body);
    int got = execute("", full, bad, block);
    const char *at = strstr(found, kind);
    CHECK(got >= 0 && at && (at == found || at[-1] == '\n') && at[n] == ':', "%s: expected %s, found %d: %s",
          name, kind, got, found);
    report_clear();
    got = execute("", full, good, block);
    CHECK(!got && !*found, "the twin of %s: gives %d, found: %s", name, got, found);
    report_clear();
}

#define ONE_WARP(n, text) "setp.ne.u32 p3, r1, " #n ";\n@p3 bra J" #n ";\n" text "J" #n ":\n"

static void test_alike(void) {
    wgmma("three warps of four", "setp.ge.u32 p3, r1, @@;\n@p3 bra END;\n" FENCE ADD DONE "END:\n", "3", "4",
          "warpgroup", 128);
    wgmma("another instruction in one warp",
          FENCE "setp.eq.u32 p3, r1, @@;\n@p3 bra OTHER;\n" ADD "bra.uni END;\nOTHER:\n" ADD "END:\n" DONE,
          "3", "4", "warpgroup", 128);
    wgmma("one more in one warp", FENCE ADD ONE_WARP(2, "@@") DONE, ADD, "", "warpgroup", 128);
    wgmma("a descriptor of B that differs in one warp", ONE_WARP(1, "add.u64 d2, d2, @@;\n") FENCE ADD DONE,
          "32", "0", "warpgroup", 128);
    wgmma("a descriptor of A that differs in one warp", ONE_WARP(3, "add.u64 d1, d1, @@;\n") FENCE ADD DONE,
          "8", "0", "warpgroup", 128);
    wgmma("a descriptor that differs in one thread",
          "setp.eq.u32 p3, r0, 5;\n@p3 add.u64 d2, d2, @@;\n" FENCE ADD DONE, "32", "0", "warpgroup", 128);
    wgmma("scale-d of one thread", "setp.ne.u32 p1, r0, @@;\n" FENCE ADD DONE, "5", "500", "warpgroup", 128);
    wgmma("scale-d of one warp", "setp.ne.u32 p1, r1, @@;\n" FENCE ADD DONE, "2", "7", "warpgroup", 128);
    wgmma("a commit in one warp more", FENCE ADD COMMIT ONE_WARP(0, "@@") WAIT(0), COMMIT, "", "warpgroup",
          128);
    wgmma("a loop that one warp leaves early",
          "mov.u32 r20, 4;\nsetp.eq.u32 p3, r1, 2;\n@p3 mov.u32 r20, @@;\nmov.u32 r21, 0;\nROUND:\n" FENCE ADD
              DONE "add.u32 r21, r21, 1;\nsetp.lt.u32 p4, r21, r20;\n@p4 bra ROUND;\n",
          "3", "4", "warpgroup", 128);
    wgmma(
        "a long loop that one warp leaves early",
        "mov.u32 r20, 300;\nsetp.eq.u32 p3, r1, 1;\n@p3 mov.u32 r20, @@;\nmov.u32 r21, 0;\nROUND:\n" FENCE ADD
            DONE "add.u32 r21, r21, 1;\nsetp.lt.u32 p4, r21, r20;\n@p4 bra ROUND;\n",
        "299", "300", "warpgroup", 128);
    wgmma("half a warp",
          "and.b32 r3, r0, 31;\nsetp.ge.u32 p3, r3, @@;\n@p3 bra END;\n" FENCE ADD DONE "END:\n", "16", "32",
          "absent-lane", 128);
    wgmma("another count in the second group",
          FENCE ADD "setp.ne.u32 p3, r1, @@;\n@p3 bra END;\n" ADD "END:\n" DONE, "5", "9", "warpgroup", 256);
    wgmma("under a guard of one warp", FENCE "setp.ne.u32 p3, r1, @@;\n@p3 " ADD DONE, "1", "7", "warpgroup",
          128);
}

static void test_order(void) {
    wgmma("nothing waits", FENCE ADD COMMIT "@@", "", WAIT(0), "async-unwaited", 128);
    wgmma("nothing commits", FENCE ADD "@@" WAIT(0), "", COMMIT, "async-unwaited", 128);
    wgmma("the last group is not waited for",
          FENCE ADD COMMIT ADD COMMIT "wgmma.wait_group.sync.aligned @@;\n", "1", "0", "async-unwaited", 128);
    wgmma("read before the wait", FENCE ADD COMMIT "@@" USE WAIT(0), "", WAIT(0), "async-read", 128);
    wgmma("one wait too few in a pipeline",
          FENCE ADD COMMIT ADD_R COMMIT "wgmma.wait_group.sync.aligned @@;\n" USE WAIT(0), "1", "0",
          "async-read", 128);
    wgmma("zeroed without a fence", FENCE ADD DONE "mov.f32 f0, 0f00000000;\n@@" ADD DONE, "", FENCE,
          "missing-fence", 128);
    wgmma("zeroed while it is added to", FENCE ADD COMMIT "@@mov.f32 f0, 0f00000000;\n" WAIT(0), "", WAIT(0),
          "async-read", 128);
    wgmma("A written while it is read", FENCE ADD_R COMMIT "@@mov.u32 r5, 1;\n" WAIT(0), "", WAIT(0),
          "async-read", 128);
    wgmma("A written behind the fence", FENCE "@@" ADD_R DONE, "mov.u32 r5, 1;\n", "", "missing-fence", 128);
    wgmma("no fence at all", "@@" ADD DONE, "", FENCE, "missing-fence", 128);
    wgmma("another shape into the same sums", FENCE ADD "@@" ADD_TF32 DONE, "", FENCE, "missing-fence", 128);
    wgmma("the same shape into the same sums", FENCE ADD "@@" ADD_R DONE, "mov.f32 f1, f0;\n", "",
          "async-read", 128);
    wgmma("sums as A before the wait", FENCE ADD_HALF COMMIT "@@" FENCE ADD_R DONE, "", WAIT(0), "async-read",
          128);
    wgmma("a store of a vector of sums", FENCE ADD COMMIT "@@st.global.v4.f32 [d0], {f0,f1,f2,f3};\n" WAIT(0),
          "", WAIT(0), "async-read", 128);
}

#define BULK                                                                                                 \
    "setp.ne.u32 p3, r0, 0;\n@p3 bra J;\nmbarrier.init.shared.b64 [r30], 1;\n"                               \
    "mbarrier.arrive.expect_tx.shared.b64 _, [r30], 256;\n"                                                  \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0], 256, [r30];\nJ:\n"       \
    "bar.sync 0;\n"
#define ARRIVED "L: mbarrier.try_wait.parity.shared.b64 p4, [r30], 0;\n@!p4 bra L;\n"

static void test_shared(void) {
    wgmma("stored without a fence of proxies", "st.shared.u32 [r31], r12;\n@@bar.sync 0;\n" FENCE ADD DONE,
          "", "fence.proxy.async.shared::cta;\n", "missing-proxy-fence", 128);
    wgmma("the fence before the store", "@@bar.sync 0;\n" FENCE ADD DONE,
          "fence.proxy.async;\nst.shared.u32 [r31], r12;\n",
          "st.shared.u32 [r31], r12;\nfence.proxy.async;\n", "missing-proxy-fence", 128);
    wgmma("stmatrix without a fence",
          "and.b32 r14, r0, 7; mad.lo.u32 r15, r14, 16, r31;\nsetp.ne.u32 p3, r1, 0;\n"
          "@p3 bra J;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [r15], {r4};\nJ:\n@@bar.sync 0;\n" FENCE ADD
              DONE,
          "", "fence.proxy.async;\n", "missing-proxy-fence", 128);
    wgmma("overwritten before the wait",
          FENCE ADD COMMIT "@@bar.sync 0;\nst.shared.u32 [r31], r12;\n" WAIT(0), "", WAIT(0), "async-write",
          128);
    wgmma("overwritten by a bulk copy before the wait",
          FENCE ADD COMMIT "@@bar.sync 0;\n" BULK ARRIVED WAIT(0), "", WAIT(0), "async-write", 128);
    wgmma(
        "overwritten by cp.async before the wait",
        FENCE ADD COMMIT
        "@@bar.sync 0;\n"
        "setp.eq.u32 p3, r0, 0;\n@p3 cp.async.ca.shared.global [r31], [d0], 4;\ncp.async.wait_all;\n" WAIT(0),
        "", WAIT(0), "async-write", 128);
    wgmma("overwritten by an atomic before the wait",
          FENCE ADD COMMIT "@@bar.sync 0;\nred.shared.add.u32 [r31], 1;\n" WAIT(0), "", WAIT(0),
          "async-write", 128);
    wgmma("a bulk copy that has not arrived", BULK "@@" FENCE ADD DONE, "", ARRIVED, "async-read", 128);
    wgmma("beyond shared memory", "add.u64 d2, d2, @@;\n" FENCE ADD DONE, "0x2000", "32", "out-of-bounds",
          128);
    wgmma("never written", "add.u64 d2, d2, @@;\n" FENCE ADD DONE, "0x500", "0x200", "uninitialised-read",
          128);
    wgmma("a stride beyond what was written", "add.u64 d1, d1, @@;\n" FENCE ADD DONE, "0x0000012000000000",
          "0", "uninitialised-read", 128);
    wgmma("a pattern that begins in its middle",
          "or.b64 d2, d2, 0x4000000000000000;\nadd.u64 d2, d2, @@;\n" FENCE ADD DONE, "8", "64",
          "matrix-descriptor", 128);
    wgmma("another base offset than the pattern's",
          "or.b64 d2, d2, @@;\nadd.u64 d2, d2, 16;\n" FENCE ADD DONE, "0x4002000000000000",
          "0x4004000000000000", "matrix-descriptor", 128);
}

/* A consumer, warps 4 to 7, hands its buffer back at the mbarrier; thread 0 refills it. */
#define CONSUMER                                                                                             \
    "setp.eq.u32 p3, r0, 0;\n@p3 mbarrier.init.shared.b64 [r30], 1;\n@p3 mbarrier.init.shared.b64 [r30+8], " \
    "1;\n"                                                                                                   \
    "bar.sync 0;\nsetp.lt.u32 p3, r0, 128;\n@p3 bra PRODUCER;\n" FENCE ADD COMMIT "@@"                       \
    "setp.eq.u32 p3, r0, 128;\n@p3 mbarrier.arrive.shared.b64 _, [r30];\n" WAIT(                             \
        0) "bra.uni END;\n"                                                                                  \
           "PRODUCER:\nsetp.ne.u32 p3, r0, 0;\n@p3 bra END;\n"                                               \
           "L: mbarrier.try_wait.parity.shared.b64 p4, [r30], 0;\n@!p4 bra L;\n"

static void test_roles(void) {
    wgmma("a buffer handed back before the wait, stored to", CONSUMER "st.shared.u32 [r31], r12;\nEND:\n", "",
          WAIT(0), "async-write", 256);
    wgmma("a buffer handed back before the wait, refilled",
          CONSUMER
          "mbarrier.arrive.expect_tx.shared.b64 _, [r30+8], 256;\n"
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0], 256, [r30+8];\n"
          "M: mbarrier.try_wait.parity.shared.b64 p4, [r30+8], 0;\n@!p4 bra M;\nEND:\n",
          "", WAIT(0), "async-write", 256);
}

/* Any thread of a warp that has waited may hand the buffer back, and to another block. */
static void test_who_hands_back(void) {
    wgmma("a buffer handed back by the sixth lane",
          "setp.eq.u32 p3, r0, 0;\n@p3 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
          "setp.lt.u32 p3, r0, 128;\n@p3 bra PRODUCER;\n" FENCE ADD COMMIT "@@"
          "setp.eq.u32 p3, r0, 133;\n@p3 mbarrier.arrive.shared.b64 _, [r30];\n" WAIT(0) "bra.uni END;\n"
          "PRODUCER:\nsetp.ne.u32 p3, r0, 7;\n@p3 bra END;\n"
          "L: mbarrier.try_wait.parity.shared.b64 p4, [r30], 0;\n@!p4 bra L;\n"
          "st.shared.u32 [r31], r12;\nEND:\n",
          "", WAIT(0), "async-write", 256);
}

/* A copy from shared memory may read it as late as its thread's wait_group. */
static void test_late_source(void) {
    pair("the source of a bulk copy used again, much later", "",
         "mad.lo.u32 r3, r0, 4, r31;\nst.shared.u32 [r3], r0;\nfence.proxy.async;\nbar.sync 0;\n"
         "setp.ne.u32 p0, r0, 0;\n@p0 bra X;\n"
         "cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 256;\ncp.async.bulk.commit_group;\nX:\n"
         "mov.u32 r4, 0;\nL: bar.sync 0;\nadd.u32 r4, r4, 1;\nsetp.lt.u32 p1, r4, 500;\n@p1 bra L;\n"
         "@@bar.sync 0;\nst.shared.u32 [r3], 7; // here\ncp.async.bulk.wait_group 0;\n",
         "", "cp.async.bulk.wait_group.read 0;\n", 0, "async-write", 128);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_registers();
    test_alike();
    test_order();
    test_shared();
    test_roles();
    test_who_hands_back();
    test_late_source();
    return sim_close();
}
