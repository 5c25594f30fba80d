/* race.c - races, asynchronous copies, adversarial order, barriers, deadlock: each fault beside a
 * twin that has not got it.
 *
 * The lines of a body that a finding must name carry the comments //A and //B. */
#include "../simtest.h"

/* --- running ---------------------------------------------------------------------------------- */

static unsigned line_of(const char *text, const char *mark) {
    const char *at = strstr(text, mark);
    unsigned n = 1;
    if (!at) return 0;
    for (const char *p = text; p < at; p++) n += *p == '\n';
    return n;
}

#define PROLOGUE                                                                                             \
    ".version 8.1\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 sm[4096];\n"                       \
    ".global .align 16 .b32 gv[64];\n.global .align 4 .u32 flag;\n"                                          \
    ".visible .entry k(.param .u64 out) %s {\n" REGS ".reg .b16 t<4>; .reg .b32 s<4>;\n"                     \
    "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n"             \
    "mov.u32 r30, %%ctaid.x; mov.u32 s0, sm; shl.b32 s1, r0, 2; add.u32 s2, s0, s1; xor.b32 s3, s1, 4;"      \
    "add.u32 s3, s0, s3; mov.u64 d9, gv; mov.u64 d8, flag;\n"

static const char *directives = "";
static uint32_t result[4096];
static int result_code;

static const char *program(const char *body, unsigned grid, unsigned block) {
    static char ptx[20000];
    report_clear();
    found[0] = 0;
    snprintf(ptx, sizeof ptx, PROLOGUE "%s\nret; }\n", directives, body);
    handle m = load(ptx), f = function(m, "k");
    dptr d = alloc(sizeof result);
    void *params[] = {&d};
    result_code = -1;
    if (f) {
        cuMemsetD32_v2_(d, 0, sizeof result / 4);
        result_code = run(f, grid, block, 0, params);
        if (result_code < 700) cuMemcpyDtoH_v2_(result, d, sizeof result);
        findings();
    }
    if (result_code >= 700) report_clear();
    cuMemFree_v2_(d);
    cuModuleUnload_(m);
    report_clear();
    return ptx;
}

/* kind NULL: nothing is to be found. */
static void expect_at(int at, const char *name, unsigned grid, unsigned block, const char *kind, int code,
                      const char *body) {
    const char *ptx = program(body, grid, block);
    check_at(__FILE__, at, result_code == code, "%s: gives %d, expected %d: %s", name, result_code, code,
             found);
    if (!kind) {
        check_at(__FILE__, at, !*found, "%s: nothing is wrong, found: %s", name, found);
        return;
    }
    char want[40], first[40], second[40];
    unsigned a = line_of(ptx, "//A"), b = line_of(ptx, "//B");
    snprintf(want, sizeof want, "%s: kernel 'k', line ", kind);
    snprintf(first, sizeof first, "line %u", a);
    snprintf(second, sizeof second, "line %u", b ? b : a);
    const char *it = strstr(found, want);
    for (; it && !(strstr(it, first) && strstr(it, second)); it = strstr(it + 1, want)) {
    }
    check_at(__FILE__, at, it != NULL, "%s: expected %s at %s and %s, found: %s", name, kind, first, second,
             found);
}
/* Which of two lines heads the finding depends on who comes first. */
static void expect_any(int at, const char *name, unsigned grid, unsigned block, const char *kind,
                       const char *body) {
    size_t n = strlen(kind);
    (void)program(body, grid, block);
    check_at(__FILE__, at, !result_code && !strncmp(found, kind, n) && found[n] == ':', "%s: gives %d, found: %s",
             name, result_code, found);
}
#define RACE(name, grid, block, body) expect_at(__LINE__, name, grid, block, "race", 0, body)
#define FOUND(kind, name, grid, block, body) expect_at(__LINE__, name, grid, block, kind, 0, body)
#define QUIET(name, grid, block, body) expect_at(__LINE__, name, grid, block, NULL, 0, body)

/* --- shared memory ---------------------------------------------------------------------------- */

static void test_shared(void) {
    RACE("neighbours of another warp without a barrier", 1, 64,
         "st.shared.u32 [s2], r0; //A\nxor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3]; //B\n"
         "st.global.u32 [d1], r1;");
    QUIET("the same with a barrier", 1, 64,
          "st.shared.u32 [s2], r0;\nbar.sync 0; xor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, "
          "[s3];"
          "st.global.u32 [d1], r1;");
    RACE("neighbours in a warp without a sync", 1, 32,
         "st.shared.u32 [s2], r0; //A\nld.shared.u32 r1, [s3]; //B\nst.global.u32 [d1], r1;");
    RACE("shfl does not order memory", 1, 32,
         "st.shared.u32 [s2], r0; //A\nshfl.sync.bfly.b32 r2, r0, 1, 31, -1;\nld.shared.u32 r1, [s3]; //B\n");
    RACE("shfl hands on what one lane acquired, and nothing of its own", 1, 64,
         "setp.lt.u32 p0, r0, 32; setp.eq.u32 p1, r0, 32; @!p0 bra W;\n"
         "st.shared.u32 [s2], r0;\nbar.warp.sync -1;\nsetp.eq.u32 p2, r0, 0;\n"
         "@p2 st.release.gpu.global.u32 [d8], 1;\n"
         "bra E;\nW: mov.u32 r5, 0;\n"
         "st.shared.u32 [s2], r0; //A\n"
         "L: @p1 ld.acquire.gpu.global.u32 r5, [d8];\nshfl.sync.idx.b32 r6, r5, 0, 31, -1;\n"
         "setp.eq.u32 p3, r6, 0; @p3 bra L;\nld.shared.u32 r7, [s3]; //B\nE:");
    RACE("a flag that one lane alone has acquired", 1, 64,
         "setp.lt.u32 p0, r0, 32; setp.eq.u32 p1, r0, 32; @!p0 bra W;\nst.shared.u32 [s2], r0; //A\n"
         "bar.warp.sync -1;\n"
         "setp.eq.u32 p2, r0, 0; @p2 st.release.gpu.global.u32 [d8], 1;\nbra E;\nW: mov.u32 r5, 1;\n"
         "L: @p1 ld.acquire.gpu.global.u32 r5, [d8];\nshfl.sync.idx.b32 r6, r5, 1, 31, -1;\n"
         "setp.eq.u32 p3, r5, 0; @p3 bra L;\nadd.u32 s3, s2, -128; ld.shared.u32 r7, [s3]; //B\nE:");
    QUIET("a flag that one lane has acquired and shfl told", 1, 64,
          "setp.lt.u32 p0, r0, 32; setp.eq.u32 p1, r0, 32; @!p0 bra W;\n"
          "st.shared.u32 [s2], r0;\nbar.warp.sync -1;\nsetp.eq.u32 p2, r0, 0;\n"
          "@p2 st.release.gpu.global.u32 [d8], 1;\nbra E;\nW: mov.u32 r5, 0;\n"
          "L: @p1 ld.acquire.gpu.global.u32 r5, [d8];\nshfl.sync.idx.b32 r6, r5, 0, 31, -1;\n"
          "setp.eq.u32 p3, r6, 0; @p3 bra L;\nadd.u32 s3, s2, -128; ld.shared.u32 r7, [s3];\n"
          "st.global.u32 [d1], r7;\nE:");
    FOUND("nc-written", "a read-only load of what the kernel wrote", 1, 32,
          "st.global.u32 [d1], r0; //A\nld.global.nc.u32 r1, [d1]; //B\nst.shared.u32 [s2], r1;");
    QUIET("the same by a plain load", 1, 32,
          "st.global.u32 [d1], r0;\nld.global.u32 r1, [d1];\nst.shared.u32 [s2], r1;");
    QUIET("a read-only load of what is written afterwards", 1, 32,
          "ld.global.nc.u32 r1, [d1+1024];\nst.global.u32 [d1], r1;");
    QUIET("the same with a warp sync", 1, 32,
          "st.shared.u32 [s2], r0;\nbar.warp.sync -1;\nld.shared.u32 r1, [s3];st.global.u32 [d1], r1;");
    QUIET("a sync of pairs", 1, 32,
          "mov.u32 r4, 3; and.b32 r5, r0, 30; shl.b32 r4, r4, r5;\n"
          "st.shared.u32 [s2], r0;\nbar.warp.sync r4;\nld.shared.u32 r1, [s3];st.global.u32 [d1], r1;");
    RACE("a sync of pairs, read from another pair", 1, 32,
         "mov.u32 r4, 3; and.b32 r5, r0, 30; shl.b32 r4, r4, r5;\nxor.b32 s3, s1, 8; add.u32 s3, s0, s3;\n"
         "st.shared.u32 [s2], r0; //A\nbar.warp.sync r4;\nld.shared.u32 r1, [s3]; //B\n");
    RACE("a warp sync does not reach other warps", 1, 64,
         "st.shared.u32 [s2], r0; //A\nbar.warp.sync -1;\n"
         "xor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3]; //B\n");
    RACE("written while others still read", 1, 64,
         "st.shared.u32 [s2], r0;\nbar.sync 0;\nld.shared.u32 r1, [s0]; //A\n"
         "setp.eq.u32 p0, r0, 0;\n@p0 st.shared.u32 [s0], 7; //B\n");
    QUIET("written after all have read", 1, 64,
          "st.shared.u32 [s2], r0;\nbar.sync 0;\nld.shared.u32 r1, [s0];bar.sync 0;\n"
          "setp.eq.u32 p0, r0, 0;\n@p0 st.shared.u32 [s0], 7;");
    RACE("two warps write different values", 1, 64, "st.shared.u32 [s0+8], r0; //A\n");
    QUIET("all write the same value", 1, 64, "st.shared.u32 [s0+8], 5;");
    set_option("race-strict", 1);
    RACE("all write the same value, strictly", 1, 64, "st.shared.u32 [s0+8], 5; //A\n");
    set_option("race-strict", 0);
    RACE("one instruction writes different values", 1, 32, "st.shared.u32 [s0+8], r0; //A\n");
    CHECK(strstr(found, "same instruction") != NULL, "%s", found);
    QUIET("halves of words side by side", 1, 64,
          "cvt.u16.u32 t0, r0; shl.b32 r1, r0, 1; add.u32 r1, r1, s0; st.shared.u16 [r1], t0; ld.shared.u16 "
          "t1, "
          "[r1];");
    QUIET("rows that cross the pages of the shadow", 1, 256,
          "shr.u32 r1, r0, 5; and.b32 r2, r0, 31; mad.lo.u32 r1, r1, 132, 0; mad.lo.u32 r1, r2, 4, r1; "
          "add.u32 r1, r1, s0; add.u32 r1, r1, 920; st.shared.u32 [r1], r0; ld.shared.u32 r3, [r1]; "
          "st.shared.u32 [r1], r3;");
    RACE("rows that cross the pages of the shadow and meet", 1, 256,
         "shr.u32 r1, r0, 5; and.b32 r2, r0, 31; mad.lo.u32 r1, r1, 124, 0; mad.lo.u32 r1, r2, 4, r1; "
         "add.u32 r1, r1, s0; add.u32 r1, r1, 920;\nst.shared.u32 [r1], r0; //A\n");
    RACE("a byte of another's word", 1, 64,
         "st.shared.u32 [s2], r0; //A\nxor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u8 r1, [s3+3]; "
         "//B\n");
    QUIET("bytes side by side", 1, 64,
          "add.u32 r1, r0, s0; st.shared.u8 [r1], r0; ld.shared.u8 r2, [r1]; bar.sync 0; ld.shared.u32 r3, "
          "[s0];");
    QUIET("atomics", 1, 64,
          "mov.u32 r2, 0; st.shared.u32 [s2+256], r2; setp.eq.u32 p0, r0, 0; "
          "@p0 st.shared.u32 [s0], r2; bar.sync 0; atom.shared.add.u32 r1, [s0], 1;");
    RACE("an atomic and a plain read", 1, 64,
         "setp.eq.u32 p0, r0, 0; @p0 st.shared.u32 [s0], 0; bar.sync 0;\natom.shared.add.u32 r1, [s0], 1; "
         "//A\n"
         "ld.shared.u32 r2, [s0]; //B\n");
    QUIET("an atomic, a barrier, a plain read", 1, 64,
          "setp.eq.u32 p0, r0, 0; @p0 st.shared.u32 [s0], 0; bar.sync 0;\natom.shared.add.u32 r1, [s0], 1;"
          "bar.sync 0; ld.shared.u32 r2, [s0];");
    RACE("no barrier after the first value", 1, 64,
         "setp.eq.u32 p0, r0, 0;\n@p0 st.shared.u32 [s0], 0; //A\natom.shared.add.u32 r1, [s0], 1; //B\n");
    QUIET("volatile in one warp", 1, 32,
          "st.volatile.shared.u32 [s2], r0; ld.volatile.shared.u32 r1, [s3]; st.global.u32 [d1], r1;");
    RACE("through generic addresses", 1, 64,
         "cvt.u64.u32 d2, s2; cvta.shared.u64 d2, d2; xor.b64 d3, d2, 128;\nst.u32 [d2], r0; //A\n"
         "ld.u32 r1, [d3]; //B\n");
    CHECK(strstr(found, "'sm'") && strstr(found, "thread (") && strstr(found, "write")
              && strstr(found, "read"),
          "%s", found);
}

static void test_barriers(void) {
    /* warp 0 produces, warps 1 and 2 consume: barrier 1 full, barrier 2 empty */
    QUIET("producer and consumer by arrive and sync", 1, 64,
          "setp.ge.u32 p0, r0, 32; mov.u32 r5, 0;\n@p0 bra C;\n"
          "P: st.shared.u32 [s2], r5; bar.arrive 1, 64; bar.sync 2, 64; add.u32 r5, r5, 1; "
          "setp.lt.u32 p1, r5, 4; @p1 bra P; bra E;\n"
          "C: bar.sync 1, 64; ld.shared.u32 r1, [s2+-128]; bar.arrive 2, 64; add.u32 r5, r5, 1; "
          "setp.lt.u32 p1, r5, 4; @p1 bra C; E:");
    RACE("the producer does not wait for the consumer", 1, 64,
         "setp.ge.u32 p0, r0, 32; mov.u32 r5, 0;\n@p0 bra C;\n"
         "P:\nst.shared.u32 [s2], r5; //A\nbar.sync 1, 64; add.u32 r5, r5, 1; setp.lt.u32 p1, r5, 4; @p1 bra "
         "P; "
         "bra E;\nC: bar.sync 1, 64;\nld.shared.u32 r1, [s2+-128]; //B\nadd.u32 r5, r5, 1; "
         "setp.lt.u32 p1, r5, 4; @p1 bra C; E:");
    RACE("the consumer only arrives", 1, 64,
         "setp.ge.u32 p0, r0, 32;\n@p0 bra C;\nst.shared.u32 [s2], r0; //A\nbar.sync 1, 64; bra E;\n"
         "C: bar.arrive 1, 64;\nld.shared.u32 r1, [s2+-128]; //B\nE:");
    RACE("a barrier of two of three warps", 1, 96,
         "setp.lt.u32 p0, r0, 64;\n@!p0 bra C;\nst.shared.u32 [s0+64], 3; bar.sync 1, 64; bra E;\n"
         "C:\nld.shared.u32 r1, [s0+64]; //A\nE: ");
    QUIET("barriers of pairs of warps, one after the other", 1, 96,
          "setp.lt.u32 p0, r0, 32; setp.lt.u32 p1, r0, 64;\n@p0 bra W0;\n@p1 bra W1;\n"
          "bar.sync 2, 64; ld.shared.u32 r1, [s0+64]; bra E;\n"
          "W0: st.shared.u32 [s0+64], 3; bar.sync 1, 64; bra E;\nW1: bar.sync 1, 64; bar.sync 2, 64;\nE: ");
    QUIET(
        "a barrier of some warps orders the lanes of each", 1, 96,
        "setp.ge.u32 p0, r0, 64; @p0 bra E; st.shared.u32 [s2], r0; bar.sync 1, 64; ld.shared.u32 r1, [s3]; "
        "st.global.u32 [d1], r1;\nE:");
    QUIET("bar.red orders", 1, 64,
          "st.shared.u32 [s2], r0; setp.eq.u32 p0, r0, 0; bar.red.popc.u32 r1, 0, p0;\n"
          "xor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3];");
}

/* --- global memory ---------------------------------------------------------------------------- */

static void test_global(void) {
    QUIET("each its own", 4, 64,
          "mad.lo.u32 r1, r30, 64, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d0, d2; "
          "ld.global.u32 r2, [d2]; add.u32 r2, r2, 1; st.global.u32 [d2], r2; ld.global.u32 r3, [d0+8192];");
    RACE("blocks write the same place", 4, 32, "st.global.u32 [d1], r30; //A\n");
    CHECK(strstr(found, "block (") && strstr(found, "16384-byte allocation"), "%s", found);
    RACE("a barrier does not reach other blocks", 2, 32,
         "setp.eq.u32 p0, r30, 0; @!p0 bra L;\nst.global.u32 [d1], 5; //A\nL: bar.sync 0; @p0 bra E;\n"
         "ld.global.u32 r1, [d1]; //B\nE:");
    RACE("read first, written by another block later", 2, 32,
         "setp.eq.u32 p0, r30, 1; @!p0 bra L;\nst.global.u32 [d1], 5; //A\nbra E;\nL:\nld.global.u32 r1, "
         "[d1]; //B\nE:");
    QUIET("read by all", 64, 64, "ld.global.u32 r1, [d1]; ld.global.u32 r2, [d0+4];");
    QUIET("atomics across blocks", 16, 64, "red.global.add.u32 [d0], 1; atom.global.add.u32 r1, [d0], 1;");
    QUIET("a compare-and-swap loop that guesses first", 8, 32,
          "ld.global.u32 r1, [d0];\nL: add.u32 r2, r1, 1; atom.global.cas.b32 r3, [d0], r1, r2; "
          "setp.ne.u32 p0, r3, r1; mov.u32 r1, r3; @p0 bra L;");
    SAME(result[0], 256);
    RACE("atomics of block scope across blocks", 4, 32, "red.relaxed.cta.global.add.u32 [d0], 1; //A\n");
    CHECK(strstr(found, "scope") != NULL, "%s", found);
    RACE("neighbours in one block", 1, 64,
         "st.global.u32 [d1], r0; //A\nxor.b32 s3, r0, 32; mul.wide.u32 d2, s3, 4; add.u64 d2, d2, d0;\n"
         "ld.global.u32 r1, [d2]; //B\n");
    QUIET("neighbours in one block, with a barrier", 1, 64,
          "st.global.u32 [d1], r0;\nbar.sync 0; xor.b32 s3, r0, 32; mul.wide.u32 d2, s3, 4; add.u64 d2, d2, "
          "d0;\n"
          "ld.global.u32 r1, [d2];");
    RACE("a module variable", 2, 1, "st.global.u32 [gv+8], r30; //A\n");
    CHECK(strstr(found, "variable 'gv'") != NULL, "%s", found);
}

/* --- fences, acquire, release ----------------------------------------------------------------- */

/* Block 0 writes and raises a flag; block 1 waits and reads. */
#define MESSAGE(write, raise, wait, read)                                                                    \
    "setp.ne.u32 p1, r30, 0; @p1 bra W;\n" write raise "bra E;\nW: " wait                                    \
    "setp.eq.u32 p2, r1, 0; @p2 bra W;\n" read "E:"
#define DATA_W "st.global.u32 [gv], 42; //A\n"
#define DATA_R "ld.global.u32 r2, [gv]; //B\nst.global.u32 [d0], r2;"

/* Memory of the host has a name of its own in findings, not the distance to a variable of the device. */
static void test_host_memory(void) {
    uint32_t *words = NULL;
    report_clear();
    handle m = load(HEAD OUT "mov.u32 r1, %ctaid.x; st.global.u32 [d1+8], r1; ret; }\n"), f = function(m, "k");
    SAME(cuMemHostAlloc_((void **)&words, 4096, 2), 0);
    dptr d = (dptr)(uintptr_t)words;
    void *params[] = {&d};
    SAME(run(f, 2, 1, 0, params), 0);
    findings();
    CHECK(strstr(found, "race:") && strstr(found, "byte 8 of the 4096 bytes of host or managed memory"), "%s", found);
    report_clear();
    SAME(cuMemFreeHost_(words), 0);
    SAME(cuModuleUnload_(m), 0);
}

static void test_order(void) {
    QUIET(
        "release and acquire", 2, 1,
        MESSAGE(DATA_W, "st.release.gpu.global.u32 [d8], 1;", "ld.acquire.gpu.global.u32 r1, [d8];", DATA_R));
    SAME(result[0], 42);
    QUIET("fences and volatile", 2, 1,
          MESSAGE(DATA_W, "membar.gl; st.volatile.global.u32 [d8], 1;", "ld.volatile.global.u32 r1, [d8];",
                  "membar.gl;" DATA_R));
    QUIET("fences and atomics", 2, 1,
          MESSAGE(DATA_W, "fence.acq_rel.gpu; red.global.add.u32 [d8], 1;", "atom.global.or.b32 r1, [d8], 0;",
                  "fence.acq_rel.gpu;" DATA_R));
    RACE("no fence before the flag", 2, 1,
         MESSAGE(DATA_W, "st.volatile.global.u32 [d8], 1;", "ld.volatile.global.u32 r1, [d8];",
                 "membar.gl;" DATA_R));
    RACE("no fence after the flag", 2, 1,
         MESSAGE(DATA_W, "membar.gl; st.volatile.global.u32 [d8], 1;", "ld.volatile.global.u32 r1, [d8];",
                 DATA_R));
    RACE(
        "relaxed flag", 2, 1,
        MESSAGE(DATA_W, "st.relaxed.gpu.global.u32 [d8], 1;", "ld.acquire.gpu.global.u32 r1, [d8];", DATA_R));
    RACE("a fence of block scope", 2, 1,
         MESSAGE(DATA_W, "membar.cta; st.volatile.global.u32 [d8], 1;", "ld.volatile.global.u32 r1, [d8];",
                 "membar.gl;" DATA_R));
    RACE("a plain flag", 2, 1,
         MESSAGE("", "st.global.u32 [d8], 1; //A\n", "\nld.volatile.global.u32 r1, [d8]; //B\n", ""));
    RACE("written after the fence", 2, 1,
         MESSAGE("membar.gl;\n" DATA_W, "st.volatile.global.u32 [d8], 1;", "ld.volatile.global.u32 r1, [d8];",
                 "membar.gl;" DATA_R));
    /* a lock */
    static const char lock[] = "L: atom.global.cas.b32 r1, [d8], 0, 1; setp.ne.u32 p0, r1, 0; @p0 bra L;\n%s"
                               "ld.global.u32 r2, [gv]; add.u32 r2, r2, 1;\nst.global.u32 [gv], r2; //A\n%s"
                               "atom.global.exch.b32 r3, [d8], 0;";
    char body[1000];
    snprintf(body, sizeof body, lock, "membar.gl;", "membar.gl;");
    QUIET("a lock", 8, 1, body);
    snprintf(body, sizeof body, lock, "", "");
    RACE("a lock without fences", 8, 1, body);
    /* all of a block write, a barrier, one thread tells; the last block adds up */
    static const char last[] =
        "mad.lo.u32 r1, r30, 64, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d2, d0;\nst.global.u32 [d2], 1; "
        "//A\n"
        "%s\nbar.sync 0; setp.ne.u32 p0, r0, 0; @p0 bra W;\n%s\natom.global.add.u32 r2, [d8], 1; %s "
        "st.shared.u32 [s0], r2;\nW: bar.sync 0; ld.shared.u32 r2, [s0]; setp.ne.u32 p1, r2, 3; @p1 bra E;\n"
        "mov.u32 r3, 0; mov.u32 r4, 0;\nS: mad.lo.u32 r5, r3, 64, r0; mul.wide.u32 d3, r5, 4; "
        "add.u64 d3, d3, d0;\nld.global.u32 r6, [d3]; //B\nadd.u32 r4, r4, r6; add.u32 r3, r3, 1; "
        "setp.lt.u32 p2, r3, 4; @p2 bra S; st.global.u32 [d1+4096], r4; E:";
    char text[2000];
    snprintf(text, sizeof text, last, "", "membar.gl;", "membar.gl;");
    QUIET("the last block adds up", 4, 64, text);
    SAME(result[1024 + 63], 4);
    snprintf(text, sizeof text, last, "", "membar.gl;", "");
    QUIET("the last block adds up, as in the samples: no fence after the ticket", 4, 64, text);
    snprintf(text, sizeof text, last, "membar.gl;", "", "membar.gl;");
    QUIET("the last block adds up, every thread fences", 4, 64, text);
    snprintf(text, sizeof text, last, "", "", "");
    RACE("the last block adds up without a fence", 4, 64, text);
    /* a grid-wide barrier, twice */
    static const char grid[] =
        "mov.u32 r10, 0;\nR: mad.lo.u32 r1, r30, 32, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d2, d0; "
        "mad.lo.u32 r7, r10, 4, 0; cvt.u64.u32 d5, r7;\nst.global.u32 [d2], r10; //A\n"
        "bar.sync 0; setp.ne.u32 p0, r0, 0; @p0 bra W;\n%s red.global.add.u32 [d8], 1; add.u32 r8, r10, 1; "
        "mul.lo.u32 r8, r8, 8;\nP: ld.volatile.global.u32 r2, [d8]; setp.lt.u32 p1, r2, r8; @p1 bra P; %s\n"
        "W: bar.sync 0; add.u32 r3, r1, 32; rem.u32 r3, r3, 256; mul.wide.u32 d3, r3, 4; add.u64 d3, d3, "
        "d0;\n"
        "ld.global.u32 r6, [d3]; //B\nadd.u32 r10, r10, 1; bar.sync 0; setp.ne.u32 p0, r0, 0; @p0 bra V;\n"
        "%s red.global.add.u32 [d8+256], 1; mul.lo.u32 r8, r10, 8;\nQ: ld.volatile.global.u32 r2, [d8+256]; "
        "setp.lt.u32 p1, r2, r8; @p1 bra Q; %s\nV: bar.sync 0; setp.lt.u32 p2, r10, 2; @p2 bra R;";
    char grids[2000];
    snprintf(grids, sizeof grids, grid, "membar.gl;", "membar.gl;", "membar.gl;", "membar.gl;");
    for (char *p; (p = strstr(grids, "[d8+256]"));) memcpy(p, "[gv+128]", 8);
    QUIET("barriers of the grid", 8, 32, grids);
    snprintf(grids, sizeof grids, grid, "membar.gl;", "", "membar.gl;", "");
    for (char *p; (p = strstr(grids, "[d8+256]"));) memcpy(p, "[gv+128]", 8);
    RACE("a barrier of the grid that does not take", 8, 32, grids);
}

/* --- reads that a compare-and-swap checks -------------------------------------------------------- */

/* r1: the guess, by an address register of its own; r3: what the compare-and-swap found. */
#define GUESS "mov.u64 d2, d0;\nld.global.u32 r1, [d2]; //%s\n"
#define SWAP(at)                                                                                             \
    "L: add.u32 r2, r1, 1;\natom.global.cas.b32 r3, [" at "], r1, r2; //%s\nsetp.ne.u32 p0, r3, r1; "        \
    "mov.u32 r1, r3; @p0 bra L;\n"

static void test_guesses(void) {
    char body[1500];
    snprintf(body, sizeof body, GUESS SWAP("d0"), "", "");
    QUIET("a compare-and-swap checks what was read", 8, 64, body);
    SAME(result[0], 512);
    snprintf(body, sizeof body, "setp.lt.u32 p1, r0, 7; @p1 bra E;\n" GUESS SWAP("d0") "E:\n", "", "");
    QUIET("the same by some lanes", 8, 64, body);
    snprintf(body, sizeof body, "mov.u32 r9, 3; G:\n" GUESS SWAP("d0")
             "sub.u32 r9, r9, 1; setp.ne.u32 p1, r9, 0; @p1 bra G;\n", "", "");
    QUIET("the same again and again", 8, 64, body);
    SAME(result[0], 1536);
    snprintf(body, sizeof body, GUESS SWAP("d0+4"), "A", "");
    QUIET("the read of a word that nobody writes", 8, 64, body);
    snprintf(body, sizeof body, GUESS "atom.global.add.u32 r4, [d0], 1; //%s\n", "A", "B");
    RACE("an addition does not check what was read", 8, 64, body);
    snprintf(body, sizeof body, GUESS "red.global.add.u32 [d0], 1; //%s\n" SWAP("d0"), "A", "B", "");
    RACE("an addition comes before the compare-and-swap", 8, 64, body);
    snprintf(body, sizeof body, GUESS SWAP("d0+4") "red.global.add.u32 [d0], 1; //%s\n", "A", "", "B");
    RACE("the compare-and-swap is of the next word", 8, 64, body);
    snprintf(body, sizeof body, "setp.lt.u32 p1, r0, 32; @p1 bra P;\n" GUESS "bra E;\nP: mov.u32 r1, 0;\n"
             SWAP("d0") "E:\n", "A", "B");
    RACE("others compare and swap, the reader does not", 8, 64, body);
    snprintf(body, sizeof body, "mov.u32 r1, 0;\n" SWAP("d0") "st.global.u32 [d1+4096], r3;\n" GUESS, "A",
             "B");
    RACE("read after the compare-and-swap", 8, 64, body);
    snprintf(body, sizeof body, "mov.u32 r1, 0;\n" SWAP("d0") "ld.global.u32 r4, [d0]; //%s\n", "A", "B");
    RACE("read after the compare-and-swap by the same register", 8, 64, body);
    snprintf(body, sizeof body, "setp.ne.u32 p1, r0, 0;\n@!p1 st.global.u32 [d0], 9; //%s\n@!p1 bra E;\n"
             GUESS SWAP("d0") "E:\n", "A", "B", "");
    RACE("a plain write beside the guess", 1, 64, body);
    /* in shared memory, in halves of words */
    QUIET("a guess in shared memory", 1, 128,
          "setp.eq.u32 p1, r0, 0; @p1 st.shared.u32 [s0], 0; bar.sync 0; mov.u32 r7, s0;\n"
          "ld.shared.u32 r1, [r7];\nL: add.u32 r2, r1, 1; atom.shared.cas.b32 r3, [s0], r1, r2; "
          "setp.ne.u32 p0, r3, r1; mov.u32 r1, r3; @p0 bra L;");
    RACE("a guess in shared memory, another address", 1, 128,
         "setp.eq.u32 p1, r0, 0; @p1 st.shared.v2.u32 [s0], {0, 0}; bar.sync 0; mov.u32 r7, s0;\n"
         "ld.shared.u32 r1, [r7+4]; //A\nL: add.u32 r2, r1, 1; atom.shared.cas.b32 r3, [s0], r1, r2; "
         "setp.ne.u32 p0, r3, r1; mov.u32 r1, r3; @p0 bra L;\natom.shared.cas.b32 r3, [s0], 1, 2;\n"
         "atom.shared.add.u32 r3, [s0+4], 1; //B\n");
    QUIET("a guess of 16 bits", 4, 64,
          "mov.u64 d2, d0; ld.global.u16 t1, [d2];\nL: add.u16 t2, t1, 1; atom.global.cas.b16 t3, [d0], t1, "
          "t2; setp.ne.u16 p0, t3, t1; mov.u16 t1, t3; @p0 bra L;");
    RACE("a histogram read without a barrier", 1, 256,
         "and.b32 r1, r0, 7; shl.b32 r1, r1, 2; add.u32 r1, r1, s0; setp.lt.u32 p1, r0, 8;\n"
         "@p1 st.shared.u32 [s2], 0; bar.sync 0;\nred.shared.add.u32 [r1], 1; //A\n"
         "@p1 ld.shared.u32 r2, [s2]; //B\n@p1 st.global.u32 [d1], r2;");
    QUIET("a histogram read behind its barrier", 1, 256,
          "and.b32 r1, r0, 7; shl.b32 r1, r1, 2; add.u32 r1, r1, s0; setp.lt.u32 p1, r0, 8;\n"
          "@p1 st.shared.u32 [s2], 0; bar.sync 0; red.shared.add.u32 [r1], 1; bar.sync 0;\n"
          "@p1 ld.shared.u32 r2, [s2]; @p1 st.global.u32 [d1], r2;");
}

/* --- shared memory of other blocks of a cluster -------------------------------------------------- */

#define TOGETHER "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
/* r6: the other block's [s2], r7: its [s0] */
#define PEER "mov.u32 r4, %cluster_ctarank; xor.b32 r5, r4, 1; mapa.shared::cluster.u32 r6, s2, r5; "        \
             "mapa.shared::cluster.u32 r7, s0, r5; setp.eq.u32 p1, r0, 0; setp.eq.u32 p2, r4, 0;\n"
#define ARRIVE(at) "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [" at "];\n"
#define AWAIT(at) "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p4, [" at "], 0; @!p4 bra W;\n"

static void test_cluster(void) {
    directives = ".explicitcluster .reqnctapercluster 2";
    QUIET("written, a barrier of the cluster, read by the other block", 4, 64,
          PEER "st.shared.u32 [s2], r0;" TOGETHER "ld.shared::cluster.u32 r1, [r6]; st.global.u32 [d1], 5;"
               TOGETHER);
    RACE("written, a barrier of each block, read by the other block", 4, 64,
         PEER "st.shared.u32 [s2], r0;" TOGETHER "\nst.shared.u32 [s2], r4; //A\nbar.sync 0;\n"
         "ld.shared::cluster.u32 r1, [r6]; //B\n" TOGETHER);
    CHECK(strstr(found, "of block rank") != NULL, "%s", found);
    RACE("the same through a generic address", 4, 64,
         PEER "cvta.shared.u64 d2, d9; mov.u64 d3, sm; cvta.shared.u64 d3, d3; mapa.u64 d3, d3, r5; "
              "cvt.u64.u32 d4, s1; add.u64 d3, d3, d4; st.shared.u32 [s2], r0;" TOGETHER
              "\nst.shared.u32 [s2], r4; //A\nld.u32 r1, [d3]; //B\n" TOGETHER);
    RACE("written by the other block while this one reads", 2, 64,
         PEER "st.shared.u32 [s2], r0;" TOGETHER "\nld.shared.u32 r1, [s2]; //A\n"
              "st.shared::cluster.u32 [r6], r4; //B\n" TOGETHER);
    QUIET("written by the other block after a barrier", 2, 64,
          PEER "st.shared.u32 [s2], r0;" TOGETHER "ld.shared.u32 r1, [s2];" TOGETHER
               "st.shared::cluster.u32 [r6], r4;" TOGETHER "ld.shared.u32 r1, [s2];");
    RACE("the barrier's arrival is relaxed", 2, 64,
         PEER "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nst.shared.u32 [s2], r0; //A\n"
              "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
              "ld.shared::cluster.u32 r1, [r6]; //B\n" TOGETHER);
    QUIET("the barrier's arrival is relaxed, behind a fence", 2, 64,
          PEER TOGETHER "st.shared.u32 [s2], r0; fence.acq_rel.cluster; "
               "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
               "ld.shared::cluster.u32 r1, [r6];" TOGETHER);
    QUIET("atomics in one block's memory", 4, 64,
          PEER "@p1 st.shared.u32 [s0], 0;" TOGETHER "mapa.shared::cluster.u32 r7, s0, 0; "
               "atom.shared::cluster.add.u32 r1, [r7], 1; red.shared::cluster.add.u32 [r7], 1;" TOGETHER
               "ld.shared.u32 r1, [s0];");
    RACE("an atomic of a block's scope in another block's memory", 2, 64,
         PEER "@p1 st.shared.u32 [s0], 0;" TOGETHER "mapa.shared::cluster.u32 r7, s0, 0;\n"
              "atom.relaxed.cta.shared::cluster.add.u32 r1, [r7], 1; //A\n" TOGETHER);
    RACE("an atomic, read by its block", 2, 64,
         PEER "@p1 st.shared.u32 [s0], 0;" TOGETHER "\natom.shared::cluster.add.u32 r1, [r7], 1; //A\n"
              "ld.shared.u32 r2, [s0]; //B\n" TOGETHER);
    QUIET("a compare-and-swap of another block's memory, guessed first", 2, 64,
          PEER "@p1 st.shared.u32 [s0], 0;" TOGETHER "mapa.shared::cluster.u32 r7, s0, 0; mov.u32 r8, r7;\n"
               "ld.shared::cluster.u32 r1, [r8];\nL: add.u32 r2, r1, 1; atom.shared::cluster.cas.b32 r3, "
               "[r7], r1, r2; setp.ne.u32 p0, r3, r1; mov.u32 r1, r3; @p0 bra L;\n" TOGETHER);
    /* a flag in the other block's memory */
    static const char flag[] =
        "%s@p1 st.shared.u32 [s0], 0;" TOGETHER "@!p1 bra E; @!p2 bra W;\n"
             "st.shared::cluster.u32 [r7+64], 77; //A\nst.release.%s.shared::cluster.u32 [r7], 1; bra E;\n"
             "W: ld.acquire.%s.shared.u32 r1, [s0]; setp.eq.u32 p3, r1, 0; @p3 bra W;\n"
             "ld.shared.u32 r2, [s0+64]; //B\nE: " TOGETHER;
    char body[2000];
    snprintf(body, sizeof body, flag, PEER, "cluster", "cluster");
    QUIET("a flag of the cluster's scope", 2, 32, body);
    snprintf(body, sizeof body, flag, PEER, "cta", "cluster");
    RACE("a flag of a block's scope", 2, 32, body);
    /* an mbarrier in the reader's block, where the writers of the other block arrive */
    QUIET("an mbarrier tells that the other block has written", 2, 32,
          PEER "@p1 mbarrier.init.shared.b64 [s0+2048], 32; fence.mbarrier_init.release.cluster; "
               "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
               "@!p2 bra R; st.shared::cluster.u32 [r6], r0;" ARRIVE("r7+2048") "bra E;\nR: " AWAIT("s0+2048")
               "ld.shared.u32 r1, [s0];\nE: " TOGETHER);
    RACE("an mbarrier, arrived at before the other block has written", 2, 32,
         PEER "@p1 mbarrier.init.shared.b64 [s0+2048], 32; fence.mbarrier_init.release.cluster; "
              "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
              "@!p2 bra R;" ARRIVE("r7+2048") "st.shared::cluster.u32 [r6], r0; //A\nbra E;\nR: "
              AWAIT("s0+2048") "ld.shared.u32 r1, [s0]; //B\nE: " TOGETHER);
    RACE("an mbarrier that the other block may not know yet", 2, 32,
         PEER "@p1 mbarrier.init.shared.b64 [s0+2048], 1; //A\n"
              "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"
              "@p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r7+2048]; //B\n" TOGETHER);
    QUIET("st.async, waited for at the mbarrier", 2, 32,
          PEER "@p1 mbarrier.init.shared.b64 [s0+2048], 1; fence.mbarrier_init.release.cluster;" TOGETHER
               "@p1 mbarrier.arrive.expect_tx.shared.b64 _, [s0+2048], 128; add.u32 r8, r7, 2048; "
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r6], r0, [r8];\n" AWAIT("s0+2048")
               "ld.shared.u32 r1, [s0]; st.shared.u32 [s2+512], r1;" TOGETHER);
    directives = "";
}

/* --- asynchronous copies ---------------------------------------------------------------------- */

#define SOURCE                                                                                               \
    "mov.u32 r9, 9; mul.wide.u32 d2, r0, 16; add.u64 d2, d0, d2; shl.b32 r8, r0, 4; add.u32 r8, r8, s0; "
#define COPY "cp.async.ca.shared.global [r8], [d2], 16; //B\n"

static void test_async(void) {
    QUIET("a copy, waited for", 1, 32,
          SOURCE COPY "cp.async.commit_group; cp.async.wait_group 0; "
                      "ld.shared.u32 r1, [r8]; st.global.u32 [d1+8192], r1;");
    FOUND("async-read", "read before the wait", 1, 32,
          SOURCE COPY "cp.async.commit_group;\n"
                      "ld.shared.u32 r1, [r8]; //A\ncp.async.wait_group 0;");
    FOUND("async-read", "the wait leaves a group out", 1, 32,
          SOURCE "cp.async.cg.shared.global [r8], [d2], 16; "
                 "cp.async.commit_group;\ncp.async.ca.shared.global [r8+1024], [d2], 4; //B\n"
                 "cp.async.commit_group; cp.async.wait_group 1;\n"
                 "ld.shared.u32 r1, [r8]; ld.shared.u32 r1, [r8+1024]; //A\ncp.async.wait_all;");
    QUIET("the older group only", 1, 32,
          SOURCE COPY
          "cp.async.commit_group; "
          "cp.async.ca.shared.global [r8+1024], [d2], 4; cp.async.commit_group; cp.async.wait_group 1; "
          "ld.shared.u32 r1, [r8]; cp.async.wait_all; ld.shared.u32 r1, [r8+1024];");
    FOUND("async-read", "never committed, so not waited for", 1, 32,
          SOURCE COPY "cp.async.wait_group 0;\n"
                      "ld.shared.u32 r1, [r8]; //A\ncp.async.wait_all;");
    QUIET("wait_all needs no commit", 1, 32, SOURCE COPY "cp.async.wait_all; ld.shared.u32 r1, [r8];");
    FOUND("async-read", "another thread, a barrier, but no wait", 1, 64,
          SOURCE COPY "bar.sync 0; xor.b32 r7, r8, 512;\n"
                      "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
                      "ld.shared.u32 r1, [r7]; //A\ncp.async.wait_all;");
    RACE("another thread, a wait, but no barrier", 1, 64,
         SOURCE COPY "cp.async.wait_all;\n"
                     "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
                     "ld.shared.u32 r1, [r7]; //A\n");
    QUIET("another thread, wait and barrier", 1, 64,
          SOURCE COPY "cp.async.wait_all; bar.sync 0;\n"
                      "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
                      "ld.shared.u32 r1, [r7];");
    FOUND("async-unwaited", "nobody waits", 1, 32, SOURCE "cp.async.ca.shared.global [r8], [d2], 16; //A\n");
    RACE("the source is overwritten", 1, 32,
         SOURCE "cp.async.ca.shared.global [r8], [d2], 16; //A\n"
                "st.global.u32 [d2], r9; cp.async.wait_all;");
    QUIET("the source is overwritten after the wait", 1, 32,
          SOURCE COPY "cp.async.wait_all; st.global.u32 [d2], r9;");
    RACE("the destination is overwritten", 1, 32,
         SOURCE COPY "\nst.shared.u32 [r8+4], r9; //A\ncp.async.wait_all;");
    RACE("the next stage lands where others still read", 1, 64,
         SOURCE
         "cp.async.ca.shared.global [r8], [d2], 16; "
         "cp.async.wait_all; bar.sync 0; add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 "
         "r7, r7, s0;\n"
         "ld.shared.u32 r1, [r7]; //A\ncp.async.ca.shared.global [r8], [d2], 16; //B\ncp.async.wait_all;");
    set_option("async", 0);
    QUIET("switched off", 1, 32, SOURCE COPY "ld.shared.u32 r1, [r8];");
    set_option("async", 1);
}

/* --- barriers met wrongly ----------------------------------------------------------------------- */

static void expect_end(int at, const char *name, unsigned grid, unsigned block, const char *body) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    expect_at(at, name, grid, block, "deadlock", 702, body);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    check_at(__FILE__, at, seconds < 20, "%s: %.1f s until it was told", name, seconds);
}
#define ENDLESS(name, grid, block, body) expect_end(__LINE__, name, grid, block, body)

static void test_barrier_faults(void) {
    FOUND("barrier-count", "two counts at one barrier", 1, 96,
          "shr.u32 r5, r0, 5; setp.eq.u32 p0, r5, 1; @p0 bra A;\nbar.sync 1, 96; //B\nbra E;\nA:\nbar.sync "
          "1, 64; //A\nE:");
    QUIET("one says all, the other the number of all", 1, 64,
          "setp.lt.u32 p0, r0, 32; @p0 bra A;\nbar.sync 1;bra E;\nA:\nbar.sync 1, 64;\nE:");
    FOUND("barrier-count", "a count that is no multiple of 32", 1, 64,
          "mov.u32 r5, 40;\nbar.sync 1, r5; //A\n");
    QUIET("a count in a register", 1, 64, "mov.u32 r5, 64;\nbar.sync 1, r5;");
    expect_at(__LINE__, "a count beyond the block", 1, 64, "barrier-count", 702, "bar.sync 1, 96; //A\n");
    for (int seed = 0; seed < 5; seed++) {
        set_option("seed", seed);
        expect_any(__LINE__, "one barrier, for a warp and for all, in any order", 1, 96, "barrier-count",
                   "setp.ge.u32 p0, r0, 32; @p0 bra W; bar.sync 0, 32; bra E;\nW: bar.sync 0;\nE:");
        QUIET("with another barrier between", 1, 96,
              "setp.ge.u32 p0, r0, 32; @p0 bra W; bar.sync 1, 32; W: bar.sync 0; bar.sync 1;");
    }
    set_option("seed", -1);
    FOUND("barrier-count", "a warp arrives twice", 1, 96,
          "setp.ge.u32 p0, r0, 32; @p0 bra W;\nbar.arrive 1, 96; \nbar.arrive 1, 96; //A\nbra E;\nW: "
          "bar.sync 1, 96;\nE:");
    QUIET("a warp arrives at two barriers", 1, 96,
          "setp.ge.u32 p0, r0, 32; @p0 bra W;\nbar.arrive 1, 96; \nbar.arrive 2, 96; bra E;\nW: bar.sync 1, "
          "96; "
          "bar.sync 2, 96;\nE:");
    FOUND("barrier-mix", "red and sync at one barrier", 1, 64,
          "setp.ge.u32 p0, r0, 32; @p0 bra W;\nbar.sync 1, 64; //A\nbra E;\nW:\nbar.red.popc.u32 r1, 1, 64, "
          "p0; //B\nE:");
    FOUND("barrier-exit", "a warp goes around a barrier to where the others come", 1, 64,
          "setp.lt.u32 p0, r0, 32; @!p0 bra L;\nbar.sync 0; //A\nL: st.global.u32 [d1], r0;");
    FOUND("barrier-exit", "a barrier under a guard", 1, 64,
          "setp.lt.u32 p0, r0, 32;\n@p0 bar.sync 0; //A\nst.global.u32 [d1], r0;");
    QUIET("a warp that has nothing to do leaves", 1, 64,
          "setp.ge.u32 p0, r0, 32; @p0 bra E; st.shared.u32 [s2], r0; bar.sync 0; ld.shared.u32 r1, [s0]; "
          "st.global.u32 [d1], r1; E:");
    QUIET("the same by ret", 1, 64,
          "setp.ge.u32 p0, r0, 32; @p0 ret; st.shared.u32 [s2], r0; bar.sync 0; ld.shared.u32 r1, [s0]; "
          "st.global.u32 [d1], r1; E:");
    QUIET("all warps come", 1, 64,
          "setp.lt.u32 p0, r0, 99; @!p0 bra L; bar.sync 0; L: st.global.u32 [d1], r0;");
    set_option("barriers", 0);
    QUIET("switched off", 1, 64,
          "setp.lt.u32 p0, r0, 32; @!p0 bra L; bar.sync 0; L: st.global.u32 [d1], r0;");
    set_option("barriers", 1);
    FOUND("barrier-place", "two warps at two lines", 1, 64,
          "setp.lt.u32 p0, r0, 32; @p0 bra L;\nbar.sync 0; //A\nbra E;\nL: bar.sync 0; //B\nE:");
    QUIET("the same, by number and count", 1, 64,
          "setp.lt.u32 p0, r0, 32; @p0 bra L;\nbar.sync 1, 64;\nbra E;\nL: bar.sync 1, 64;\nE:");
    QUIET("the same, not aligned", 1, 64,
          "setp.lt.u32 p0, r0, 32; @p0 bra L;\nbarrier.sync 0;\nbra E;\nL: barrier.sync 0;\nE:");
    QUIET("one line, and then another one", 1, 64, "bar.sync 0;\nbar.sync 0;");
    set_option("barrier-places", 0);
    QUIET("switched off", 1, 64,
          "setp.lt.u32 p0, r0, 32; @p0 bra L;\nbar.sync 0;\nbra E;\nL: bar.sync 0;\nE:");
    set_option("barrier-places", 1);
    ENDLESS("two barriers that wait for each other", 1, 64,
            "setp.lt.u32 p0, r0, 32; @p0 bra L;\nbar.sync 1; //A\nbra E;\nL:\nbar.sync 2; //B\nE:");
}

static void test_endless(bool all) {
    ENDLESS("a flag that nobody sets", 1, 32,
            "L:\nld.volatile.global.u32 r1, [d8]; //A\nsetp.eq.u32 p0, r1, 0; @p0 bra L;");
    ENDLESS(
        "all blocks wait", 6, 64,
        "L:\natom.global.or.b32 r1, [d8], 0; //A\nsetp.eq.u32 p0, r1, 0; @p0 bra L; st.global.u32 [d1], r0;");
    ENDLESS("a lock that is never given back", 4, 1,
            "L:\natom.global.cas.b32 r1, [d8], 0, 1; //A\nsetp.ne.u32 p0, r1, 0; @p0 bra L;");
    ENDLESS("some wait at a barrier for one that spins", 1, 64,
            "setp.ne.u32 p1, r0, 0; @p1 bra W; st.volatile.shared.u32 [s0], 0;\nL:\nld.volatile.shared.u32 "
            "r1, [s0]; //A\n"
            "setp.ne.u32 p0, r1, 7; @p0 bra L; W: bar.sync 0;");
    if (!all) return;
    QUIET("a flag that is set late", 2, 1,
          "setp.ne.u32 p1, r30, 0; @p1 bra W; mov.u32 r5, 0;\n"
          "C: mad.lo.u32 r6, r5, 3, 1; add.u32 r5, r5, 1; setp.lt.u32 p0, r5, 12000000; @p0 bra C;\n"
          "st.release.gpu.global.u32 [d8], 1; bra E;\n"
          "W: ld.acquire.gpu.global.u32 r1, [d8]; setp.eq.u32 p0, r1, 0; @p0 bra W;\nE:");
    QUIET("long work without memory", 2, 64,
          "mov.u32 r5, 0;\nC: mad.lo.u32 r6, r5, 3, 1; add.u32 r5, r5, 1; setp.lt.u32 p0, r5, 4000000; @p0 "
          "bra C;\n"
          "st.global.u32 [d0+8], r6;");
}

/* --- adversarial order -------------------------------------------------------------------------- */

static uint32_t digest(void) {
    uint32_t h = 1;
    for (unsigned k = 0; k < sizeof result / 4; k++) h = h * 16777619u ^ result[k];
    return h;
}

/* How many different results seeds 0..15 give, each with 1 and with 3 threads. */
static unsigned outcomes(const char *name, unsigned grid, unsigned block, const char *body) {
    uint32_t seen[64];
    unsigned n = 0;
    for (int seed = 0; seed < 16; seed++) {
        uint32_t first = 0;
        for (int threads = 1; threads <= 3; threads += 2) {
            set_option("seed", seed);
            set_option("threads", threads);
            program(body, grid, block);
            CHECK(result_code == 0, "%s, seed %d: %d", name, seed, result_code);
            uint32_t h = digest();
            if (threads == 1)
                first = h;
            else
                CHECK(h == first, "%s: seed %d gives other results with more threads", name, seed);
            unsigned k = 0;
            while (k < n && seen[k] != h) k++;
            if (k == n) seen[n++] = h;
        }
    }
    set_option("seed", -1);
    set_option("threads", 0);
    return n;
}

static void test_seeds(void) {
    static const char exchange[] =
        "mad.lo.u32 r1, r30, 96, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d2, d0; mov.u32 r2, 0; "
        "st.shared.u32 [s2], r2; bar.sync 0; st.shared.u32 [s2], r1; %s add.u32 r3, r0, 32; rem.u32 r3, r3, "
        "96; "
        "shl.b32 r3, r3, 2; add.u32 r3, r3, s0; ld.shared.u32 r4, [r3]; st.global.u32 [d2], r4;";
    char body[1000];
    set_option("races", 0);
    snprintf(body, sizeof body, exchange, "bar.sync 0;");
    SAME(outcomes("with a barrier", 7, 96, body), 1);
    snprintf(body, sizeof body, exchange, "");
    CHECK(outcomes("without a barrier", 7, 96, body) > 1, "no seed shows the missing barrier");
    /* which path of a warp goes first */
    CHECK(
        outcomes("two paths", 1, 32,
                 "setp.lt.u32 p0, r0, 16; @p0 bra A; mov.u32 r1, 1; st.volatile.shared.u32 [s0], r1; bra E;\n"
                 "A: mov.u32 r1, 2; st.volatile.shared.u32 [s0], r1;\nE: bar.warp.sync -1; "
                 "ld.volatile.shared.u32 r2, [s0]; st.global.u32 [d1], r2;")
            > 1,
        "one path always comes first");
    /* early and late copies */
    set_option("async", 0);
    set_option("uninitialised", 0);
    CHECK(outcomes("a copy", 1, 32,
                   SOURCE "st.shared.u32 [r8], r9; cp.async.ca.shared.global [r8], [d2], 16; "
                          "ld.shared.u32 r1, [r8]; cp.async.wait_all; st.global.u32 [d1+8192], r1;")
              > 1,
          "copies are always late");
    set_option("async", 1);
    set_option("uninitialised", 1);
    set_option("races", 1);
    /* blocks in another order */
    CHECK(outcomes("tickets", 40, 1,
                   "mov.u32 r1, 0; @p7 mov.u32 r1, 1; mul.wide.u32 d2, r30, 4; add.u64 d2, d2, d0; "
                   "st.global.u32 [d2], r30;")
              == 1,
          "private words depend on order");
    for (int seed = 1; seed < 4; seed++) {
        set_option("seed", seed);
        test_shared();
        test_barriers();
        test_global();
        test_order();
        test_guesses();
        test_cluster();
        test_async();
    }
    set_option("seed", -1);
}

/* --- the reference kernels' faults, small ------------------------------------------------------- */

/* 002: rms_inv goes into the place of x[0], while other warps still read the row. */
static void test_seed_002(void) {
    static const char rms[] =
        "add.u32 r1, r0, 1; cvt.rn.f32.u32 f0, r1; st.shared.f32 [s2], f0; bar.sync 0;\n"
        "mov.f32 f1, 0f00000000; mov.u32 r2, 0;\nL: shl.b32 r3, r2, 2; add.u32 r3, r3, s0;\n"
        "ld.shared.f32 f2, [r3]; //A\nfma.rn.f32 f1, f2, f2, f1; add.u32 r2, r2, 1; setp.lt.u32 p0, r2, 64; "
        "@p0 bra L;\n"
        "setp.eq.u32 p1, r0, 0; rsqrt.approx.f32 f3, f1;\n%s\n@p1 st.shared.f32 [s0+%d], f3; //B\nbar.sync "
        "0; "
        "ld.shared.f32 f4, [s0+%d]; ld.shared.f32 f5, [s2]; mul.f32 f6, f5, f4; st.global.f32 [d1], f6;";
    char body[2000];
    float first;
    snprintf(body, sizeof body, rms, "", 0, 0);
    RACE("002: rms_inv over x[0]", 1, 64, body);
    memcpy(&first, result, 4);
    CHECK(first < 1e-3f, "002 keeps x[0]: %g", first); /* rms_inv squared: x[0] is lost */
    snprintf(body, sizeof body, rms, "bar.sync 0;", 0, 0);
    QUIET("002 with a barrier only: silent, and x[0] is still lost", 1, 64, body);
    memcpy(&first, result, 4);
    CHECK(first < 1e-3f, "%g", first);
    snprintf(body, sizeof body, rms, "", 256, 256);
    QUIET("002 with a place of its own", 1, 64, body);
    memcpy(&first, result, 4);
    CHECK(fabs(first - 1 / sqrt(89440.0)) < 1e-6, "%g", first);
}

/* 004: each warp takes its own sum for the block's; what the division leaves over is not written. */
#define WARP_SUM(r)                                                                                          \
    "shfl.sync.bfly.b32 r2, " r ", 16, 31, -1; add.u32 " r ", " r ", r2; shfl.sync.bfly.b32 r2, " r          \
    ", 8, 31, -1; add.u32 " r ", " r ", r2; shfl.sync.bfly.b32 r2, " r ", 4, 31, -1; add.u32 " r ", " r      \
    ", r2; shfl.sync.bfly.b32 r2, " r ", 2, 31, -1; add.u32 " r ", " r ", r2; shfl.sync.bfly.b32 r2, " r     \
    ", 1, 31, -1; add.u32 " r ", " r ", r2;\n"

static void test_seed_004(void) {
    static const char shared_sum[] = "mad.lo.u32 r1, r0, r0, 1;" WARP_SUM(
        "r1") "and.b32 r3, r0, 31; shr.u32 r4, r0, 5; shl.b32 r4, r4, 2; "
              "add.u32 r4, r4, s0; setp.eq.u32 p0, r3, 0;\n";
    char body[3000];
    /* 64 threads: the sum of t * t + 1 is 85408; of the first warp alone 10448 */
    snprintf(body, sizeof body, "%sbar.sync 1; st.global.u32 [d1], r1;", shared_sum);
    QUIET("004: the warp's sum, as the reference has it", 1, 64, body);
    SAME(result[0], 10448);
    CHECK(result[0] != result[63], "every warp has its own sum");
    snprintf(body, sizeof body,
             "%s@p0 st.shared.u32 [s0], r1; //A\nbar.sync 1; ld.shared.u32 r1, [s0]; "
             "st.global.u32 [d1], r1;",
             shared_sum);
    RACE("004: all warps put their sum into one place", 1, 64, body);
    snprintf(body, sizeof body,
             "%s@p0 st.shared.u32 [r4], r1;\nbar.sync 1; ld.shared.u32 r1, [s0]; "
             "ld.shared.u32 r5, [s0+4]; add.u32 r1, r1, r5; st.global.u32 [d1], r1;",
             shared_sum);
    QUIET("004: the sums of the warps are added", 1, 64, body);
    SAME(result[0], 85408);
    SAME(result[63], 85408);
    /* 100 elements over 32 threads: 100 / 32 each */
    for (int whole = 0; whole < 2; whole++) {
        static const char tail[] =
            HEAD ".visible .entry k(.param .u64 out) {\n" REGS
                 "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mov.u32 r1, r0;\n"
                 "L: mul.wide.u32 d1, r1, 4; add.u64 d1, d1, d0; st.global.u32 [d1], r1; add.u32 r1, r1, 32; "
                 "setp.lt.u32 p0, r1, %d; @p0 bra L; ret; }";
        static char ptx[2000];
        uint32_t out[100];
        snprintf(ptx, sizeof ptx, tail, whole ? 100 : 100 / 32 * 32);
        report_clear();
        handle m = load(ptx), f = function(m, "k");
        dptr d = alloc(400 + 128);
        void *params[] = {&d};
        SAME(run(f, 1, 32, 0, params), 0);
        SAME(cuMemcpyDtoH_v2_(out, d, 400), 0);
        findings();
        if (whole)
            CHECK(!*found, "004 with its tail: %s", found);
        else
            CHECK(strstr(found, "uninitialised-read") && strstr(found, "takes 16 bytes")
                      && strstr(found, "byte 384 of the 528-byte allocation"),
                  "004, the tail: %s", found);
        cuMemFree_v2_(d);
        cuModuleUnload_(m);
        report_clear();
    }
}

/* 000: the path of an empty chunk uses a register that only the other path defines. */
static void test_seed_000(void) {
    FOUND(
        "uninitialised-register", "000: defined on one path", 2, 1,
        "setp.eq.u32 p0, r30, 0; @p0 bra N;\nmul.wide.u32 d5, r30, 4; add.u64 d5, d5, d0; bra S;\nN: "
        "mov.u32 r1, 1;\nS:\n"
        "add.u64 d7, d5, 4; //A\nsetp.eq.u32 p0, r30, 0; selp.u64 d6, d7, d0, p0; st.global.u64 [d0], d6;");
    QUIET("000: an operand that is not selected", 2, 1,
          "setp.eq.u32 p0, r30, 0; @p0 bra N;\nmul.wide.u32 d5, r30, 4; add.u64 d5, d5, d0; bra S;\nN: "
          "mov.u32 r1, 1;\nS:\n"
          "setp.eq.u32 p0, r30, 1; selp.u64 d6, d5, d0, p0; st.global.u32 [d6], r30;");
    QUIET("000: computed with, and not selected", 2, 1,
          "setp.eq.u32 p0, r30, 0; @p0 bra N;\nmul.wide.u32 d5, r30, 4; add.u64 d5, d5, d0; bra S;\nN: "
          "mov.u32 r1, 1;\nS:\nadd.u64 d7, d5, 4; "
          "setp.eq.u32 p0, r30, 1; selp.u64 d6, d7, d0, p0; st.global.u32 [d6], r30;");
    QUIET("000: defined on both", 2, 1,
          "mov.u64 d5, d0; setp.eq.u32 p0, r30, 0; @p0 bra N;\nmul.wide.u32 d5, r30, 4; add.u64 d5, d5, d0; "
          "bra S;\n"
          "N: mov.u32 r1, 1;\nS: st.global.u32 [d5], r30;");
}

/* Threads may return early; those that go around a barrier and go on are told, whoever runs first. */
static void test_early_return(void) {
    for (int seed = 0; seed < 7; seed++) {
        set_option("seed", seed);
        QUIET("early return in a warp", 1, 64,
              "setp.gt.u32 p0, r0, 39; @p0 bra E; bar.sync 0; st.global.u32 [d1], r0;\nE: ret;");
        FOUND("barrier-divergence", "around a barrier", 1, 32,
              "setp.gt.u32 p0, r0, 15; @p0 bra E; bar.sync 0; //A\nE: st.global.u32 [d1], r0;");
        QUIET("its twin", 1, 32,
              "setp.gt.u32 p0, r0, 15; bar.sync 0; @p0 bra E; \nE: st.global.u32 [d1], r0;");
        static const char *const behind[] = {
            "add.u32 r2, r0, 1;", "atom.global.add.u32 r2, [d1], r0;", "@p0 st.global.u32 [d1], r0;",
            "setp.gt.u32 p1, r0, 40; @p1 bra X; st.global.u32 [d1], r0;\nX: mov.u32 r2, 1;",
            "mov.u32 r2, 0;\nX: add.u32 r2, r2, 1; setp.lt.u32 p1, r2, 3; @p1 bra X;",
            "bra X;\nY: ret;\nX: st.global.u32 [d1], r0; bra Y;",
            "setp.gt.u32 p1, r0, 15; @p1 ret; st.global.u32 [d1], r0;" };
        for (unsigned k = 0; k < sizeof behind / sizeof *behind; k++) {
            static char body[500];
            snprintf(body, sizeof body, "setp.gt.u32 p0, r0, 15; @p0 bra E; bar.sync 0; //A\nE: %s", behind[k]);
            FOUND("barrier-divergence", "around a barrier, whatever lies behind", 1, 32, body);
            snprintf(body, sizeof body,
                     "setp.gt.u32 p0, r0, 15; @p0 bra R; bar.sync 0;\nE: %s ret;\nR:", behind[k]);
            QUIET("threads that return in front of it", 1, 32, body);
            snprintf(body, sizeof body, "setp.gt.u32 p0, r0, 31; @p0 bra E; bar.sync 0; //A\nE: %s", behind[k]);
            FOUND("barrier-exit", "a warp around a barrier, whatever lies behind", 1, 64, body);
            snprintf(body, sizeof body,
                     "setp.gt.u32 p0, r0, 31; @p0 bra R; setp.eq.u32 p2, r30, 9; @p2 bra E; bar.sync 0;\n"
                     "E: %s ret;\nR:", behind[k]);
            QUIET("a warp that returns where others might have gone around", 1, 64, body);
        }
        FOUND("barrier-divergence", "lanes leave a loop with a barrier early, and go on", 1, 32,
              "and.b32 r2, r0, 1; add.u32 r2, r2, 1;\nL: sub.u32 r2, r2, 1; bar.sync 0; //A\n"
              "setp.ne.u32 p0, r2, 0; @p0 bra L; st.global.u32 [d1], r0;");
        QUIET("and return", 1, 32,
              "and.b32 r2, r0, 1; add.u32 r2, r2, 1;\nL: sub.u32 r2, r2, 1; bar.sync 0;\n"
              "setp.ne.u32 p0, r2, 0; @p0 bra L; ret;");
    }
    set_option("seed", -1);
}

/* 001: 32 of a tile's outputs are stored; addresses that assume shared memory to begin at 0. */
static void test_seed_001(void) {
    for (int whole = 0; whole < 2; whole++) {
        static const char tile[] =
            HEAD ".visible .entry k(.param .u64 out) {\n" REGS
                 "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mov.u32 r1, r0;\n"
                 "L: mul.wide.u32 d1, r1, 4; add.u64 d1, d1, d0; st.global.u32 [d1], r1; add.u32 r1, r1, 32; "
                 "setp.lt.u32 p0, r1, %d; @p0 bra L; ret; }";
        static char ptx[2000];
        static uint32_t out[16 * 64];
        snprintf(ptx, sizeof ptx, tile, whole ? 16 * 64 : 32);
        report_clear();
        handle m = load(ptx), f = function(m, "k");
        dptr d = alloc(sizeof out);
        void *params[] = {&d};
        SAME(run(f, 1, 32, 0, params), 0);
        SAME(cuMemcpyDtoH_v2_(out, d, sizeof out), 0);
        findings();
        if (whole)
            CHECK(!*found, "001 with all outputs: %s", found);
        else
            CHECK(strstr(found, "uninitialised-read") && strstr(found, "takes 3968 bytes"), "001: %s", found);
        cuMemFree_v2_(d);
        cuModuleUnload_(m);
        report_clear();
    }
    /* sm_90: the first symbol lies at 0x400 */
    expect_at(__LINE__, "001: stores at raw offset 0", 1, 32, "out-of-bounds", 700,
              "st.shared.u32 [s1], r0; //A\n");
    QUIET("001: relative to the symbol", 1, 32, "st.shared.u32 [s2], r0;");
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    for (int threads = 1; threads <= 2; threads++) {
        set_option("threads", threads);
        test_shared();
        test_barriers();
        test_global();
        test_order();
        test_guesses();
        test_cluster();
        test_async();
        test_barrier_faults();
        test_endless(threads == 2);
    }
    set_option("threads", 0);
    test_seeds();
    test_seed_000();
    test_early_return();
    test_seed_001();
    test_seed_002();
    test_seed_004();
    return sim_close();
}
