/* test_sim_race.c - races, asynchronous copies, adversarial order, barriers, deadlock: each fault beside a
 * twin that has not got it.
 *
 * The lines of a body that a finding must name carry the comments //A and //B. */
#include "simtest.h"

/* --- running ---------------------------------------------------------------------------------- */

static unsigned line_of(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    unsigned n = 1;
    if (!at) return 0;
    for (const char *p = text; p < at; p++) n += *p == '\n';
    return n;
}

#define PROLOGUE \
    HEAD ".shared .align 16 .b8 sm[4096];\n.global .align 16 .b32 gv[64];\n.global .align 4 .u32 flag;\n" \
    ".visible .entry k(.param .u64 out) {\n" REGS \
    ".reg .b16 t<4>; .reg .b32 s<4>;\n" \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n" \
    "mov.u32 r30, %ctaid.x; mov.u32 s0, sm; shl.b32 s1, r0, 2; add.u32 s2, s0, s1; xor.b32 s3, s1, 4;" \
    "add.u32 s3, s0, s3; mov.u64 d9, gv; mov.u64 d8, flag;\n"

static uint32_t result[4096];
static int result_code;

static const char *program(const char *body, unsigned grid, unsigned block)
{
    static char ptx[20000];
    report_clear();
    found[0] = 0;
    snprintf(ptx, sizeof ptx, "%s%s\nret; }\n", PROLOGUE, body);
    handle m = load(ptx), f = function(m, "k");
    dptr d = alloc(sizeof result);
    void *params[] = { &d };
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
                      const char *body)
{
    const char *ptx = program(body, grid, block);
    check_at(__FILE__, at, result_code == code, "%s: gives %d, expected %d: %s", name, result_code, code, found);
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
    for (; it && !(strstr(it, first) && strstr(it, second)); it = strstr(it + 1, want)) {}
    check_at(__FILE__, at, it != NULL,
             "%s: expected %s at %s and %s, found: %s", name, kind, first, second, found);
}
#define RACE(name, grid, block, body) expect_at(__LINE__, name, grid, block, "race", 0, body)
#define FOUND(kind, name, grid, block, body) expect_at(__LINE__, name, grid, block, kind, 0, body)
#define QUIET(name, grid, block, body) expect_at(__LINE__, name, grid, block, NULL, 0, body)

/* --- shared memory ---------------------------------------------------------------------------- */

static void test_shared(void)
{
    RACE("neighbours of another warp without a barrier", 1, 64,
         "st.shared.u32 [s2], r0; //A\nxor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3]; //B\n"
         "st.global.u32 [d1], r1;");
    QUIET("the same with a barrier", 1, 64,
          "st.shared.u32 [s2], r0;\nbar.sync 0; xor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3];"
          "st.global.u32 [d1], r1;");
    RACE("neighbours in a warp without a sync", 1, 32,
         "st.shared.u32 [s2], r0; //A\nld.shared.u32 r1, [s3]; //B\nst.global.u32 [d1], r1;");
    RACE("shfl does not order memory", 1, 32,
         "st.shared.u32 [s2], r0; //A\nshfl.sync.bfly.b32 r2, r0, 1, 31, -1;\nld.shared.u32 r1, [s3]; //B\n");
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
          "cvt.u16.u32 t0, r0; shl.b32 r1, r0, 1; add.u32 r1, r1, s0; st.shared.u16 [r1], t0; ld.shared.u16 t1, "
          "[r1];");
    QUIET("rows that cross the pages of the shadow", 1, 256,
          "shr.u32 r1, r0, 5; and.b32 r2, r0, 31; mad.lo.u32 r1, r1, 132, 0; mad.lo.u32 r1, r2, 4, r1; "
          "add.u32 r1, r1, s0; add.u32 r1, r1, 920; st.shared.u32 [r1], r0; ld.shared.u32 r3, [r1]; "
          "st.shared.u32 [r1], r3;");
    RACE("rows that cross the pages of the shadow and meet", 1, 256,
         "shr.u32 r1, r0, 5; and.b32 r2, r0, 31; mad.lo.u32 r1, r1, 124, 0; mad.lo.u32 r1, r2, 4, r1; "
         "add.u32 r1, r1, s0; add.u32 r1, r1, 920;\nst.shared.u32 [r1], r0; //A\n");
    RACE("a byte of another's word", 1, 64,
         "st.shared.u32 [s2], r0; //A\nxor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u8 r1, [s3+3]; //B\n");
    QUIET("bytes side by side", 1, 64,
          "add.u32 r1, r0, s0; st.shared.u8 [r1], r0; ld.shared.u8 r2, [r1]; bar.sync 0; ld.shared.u32 r3, [s0];");
    QUIET("atomics", 1, 64, "mov.u32 r2, 0; st.shared.u32 [s2+256], r2; setp.eq.u32 p0, r0, 0; "
          "@p0 st.shared.u32 [s0], r2; bar.sync 0; atom.shared.add.u32 r1, [s0], 1;");
    RACE("an atomic and a plain read", 1, 64,
         "setp.eq.u32 p0, r0, 0; @p0 st.shared.u32 [s0], 0; bar.sync 0;\natom.shared.add.u32 r1, [s0], 1; //A\n"
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
    CHECK(strstr(found, "'sm'") && strstr(found, "thread (") && strstr(found, "write") && strstr(found, "read"),
          "%s", found);
}

static void test_barriers(void)
{
    /* warp 0 produces, warps 1 and 2 consume: barrier 1 full, barrier 2 empty */
    QUIET("producer and consumer by arrive and sync", 1, 64,
          "setp.ge.u32 p0, r0, 32; mov.u32 r5, 0;\n@p0 bra C;\n"
          "P: st.shared.u32 [s2], r5; bar.arrive 1, 64; bar.sync 2, 64; add.u32 r5, r5, 1; "
          "setp.lt.u32 p1, r5, 4; @p1 bra P; bra E;\n"
          "C: bar.sync 1, 64; ld.shared.u32 r1, [s2+-128]; bar.arrive 2, 64; add.u32 r5, r5, 1; "
          "setp.lt.u32 p1, r5, 4; @p1 bra C; E:");
    RACE("the producer does not wait for the consumer", 1, 64,
         "setp.ge.u32 p0, r0, 32; mov.u32 r5, 0;\n@p0 bra C;\n"
         "P:\nst.shared.u32 [s2], r5; //A\nbar.sync 1, 64; add.u32 r5, r5, 1; setp.lt.u32 p1, r5, 4; @p1 bra P; "
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
    QUIET("bar.red orders", 1, 64,
          "st.shared.u32 [s2], r0; setp.eq.u32 p0, r0, 0; bar.red.popc.u32 r1, 0, p0;\n"
          "xor.b32 s3, s1, 128; add.u32 s3, s0, s3; ld.shared.u32 r1, [s3];");
}

/* --- global memory ---------------------------------------------------------------------------- */

static void test_global(void)
{
    QUIET("each its own", 4, 64, "mad.lo.u32 r1, r30, 64, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d0, d2; "
          "ld.global.u32 r2, [d2]; add.u32 r2, r2, 1; st.global.u32 [d2], r2; ld.global.u32 r3, [d0+8192];");
    RACE("blocks write the same place", 4, 32, "st.global.u32 [d1], r30; //A\n");
    CHECK(strstr(found, "block (") && strstr(found, "16384-byte allocation"), "%s", found);
    RACE("a barrier does not reach other blocks", 2, 32,
         "setp.eq.u32 p0, r30, 0; @!p0 bra L;\nst.global.u32 [d1], 5; //A\nL: bar.sync 0; @p0 bra E;\n"
         "ld.global.u32 r1, [d1]; //B\nE:");
    RACE("read first, written by another block later", 2, 32,
         "setp.eq.u32 p0, r30, 1; @!p0 bra L;\nst.global.u32 [d1], 5; //A\nbra E;\nL:\nld.global.u32 r1, [d1]; //B\nE:");
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
          "st.global.u32 [d1], r0;\nbar.sync 0; xor.b32 s3, r0, 32; mul.wide.u32 d2, s3, 4; add.u64 d2, d2, d0;\n"
          "ld.global.u32 r1, [d2];");
    RACE("a module variable", 2, 1, "st.global.u32 [gv+8], r30; //A\n");
    CHECK(strstr(found, "variable 'gv'") != NULL, "%s", found);
}

/* --- fences, acquire, release ----------------------------------------------------------------- */

/* Block 0 writes and raises a flag; block 1 waits and reads. */
#define MESSAGE(write, raise, wait, read) \
    "setp.ne.u32 p1, r30, 0; @p1 bra W;\n" write raise "bra E;\nW: " wait "setp.eq.u32 p2, r1, 0; @p2 bra W;\n" \
    read "E:"
#define DATA_W "st.global.u32 [gv], 42; //A\n"
#define DATA_R "ld.global.u32 r2, [gv]; //B\nst.global.u32 [d0], r2;"

static void test_order(void)
{
    QUIET("release and acquire", 2, 1, MESSAGE(DATA_W, "st.release.gpu.global.u32 [d8], 1;",
                                               "ld.acquire.gpu.global.u32 r1, [d8];", DATA_R));
    SAME(result[0], 42);
    QUIET("fences and volatile", 2, 1, MESSAGE(DATA_W, "membar.gl; st.volatile.global.u32 [d8], 1;",
                                               "ld.volatile.global.u32 r1, [d8];", "membar.gl;" DATA_R));
    QUIET("fences and atomics", 2, 1, MESSAGE(DATA_W, "fence.acq_rel.gpu; red.global.add.u32 [d8], 1;",
                                              "atom.global.or.b32 r1, [d8], 0;", "fence.acq_rel.gpu;" DATA_R));
    RACE("no fence before the flag", 2, 1, MESSAGE(DATA_W, "st.volatile.global.u32 [d8], 1;",
                                                   "ld.volatile.global.u32 r1, [d8];", "membar.gl;" DATA_R));
    RACE("no fence after the flag", 2, 1, MESSAGE(DATA_W, "membar.gl; st.volatile.global.u32 [d8], 1;",
                                                  "ld.volatile.global.u32 r1, [d8];", DATA_R));
    RACE("relaxed flag", 2, 1, MESSAGE(DATA_W, "st.relaxed.gpu.global.u32 [d8], 1;",
                                       "ld.acquire.gpu.global.u32 r1, [d8];", DATA_R));
    RACE("a fence of block scope", 2, 1, MESSAGE(DATA_W, "membar.cta; st.volatile.global.u32 [d8], 1;",
                                                 "ld.volatile.global.u32 r1, [d8];", "membar.gl;" DATA_R));
    RACE("a plain flag", 2, 1, MESSAGE("", "st.global.u32 [d8], 1; //A\n", "\nld.volatile.global.u32 r1, [d8]; //B\n", ""));
    RACE("written after the fence", 2, 1, MESSAGE("membar.gl;\n" DATA_W, "st.volatile.global.u32 [d8], 1;",
                                                  "ld.volatile.global.u32 r1, [d8];", "membar.gl;" DATA_R));
    /* a lock */
    static const char lock[] =
        "L: atom.global.cas.b32 r1, [d8], 0, 1; setp.ne.u32 p0, r1, 0; @p0 bra L;\n%s"
        "ld.global.u32 r2, [gv]; add.u32 r2, r2, 1;\nst.global.u32 [gv], r2; //A\n%s"
        "atom.global.exch.b32 r3, [d8], 0;";
    char body[1000];
    snprintf(body, sizeof body, lock, "membar.gl;", "membar.gl;");
    QUIET("a lock", 8, 1, body);
    snprintf(body, sizeof body, lock, "", "");
    RACE("a lock without fences", 8, 1, body);
    /* all of a block write, a barrier, one thread tells; the last block adds up */
    static const char last[] =
        "mad.lo.u32 r1, r30, 64, r0; mul.wide.u32 d2, r1, 4; add.u64 d2, d2, d0;\nst.global.u32 [d2], 1; //A\n"
        "%s\nbar.sync 0; setp.ne.u32 p0, r0, 0; @p0 bra W;\n%s\natom.global.add.u32 r2, [d8], 1; %s "
        "st.shared.u32 [s0], r2;\nW: bar.sync 0; ld.shared.u32 r2, [s0]; setp.ne.u32 p1, r2, 3; @p1 bra E;\n"
        "mov.u32 r3, 0; mov.u32 r4, 0;\nS: mad.lo.u32 r5, r3, 64, r0; mul.wide.u32 d3, r5, 4; "
        "add.u64 d3, d3, d0;\nld.global.u32 r6, [d3]; //B\nadd.u32 r4, r4, r6; add.u32 r3, r3, 1; "
        "setp.lt.u32 p2, r3, 4; @p2 bra S; st.global.u32 [d1+4096], r4; E:";
    char text[2000];
    snprintf(text, sizeof text, last, "", "membar.gl;", "membar.gl;");
    QUIET("the last block adds up", 4, 64, text);
    SAME(result[1024 + 63], 4);
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
        "W: bar.sync 0; add.u32 r3, r1, 32; rem.u32 r3, r3, 256; mul.wide.u32 d3, r3, 4; add.u64 d3, d3, d0;\n"
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

/* --- asynchronous copies ---------------------------------------------------------------------- */

#define SOURCE "mov.u32 r9, 9; mul.wide.u32 d2, r0, 16; add.u64 d2, d0, d2; shl.b32 r8, r0, 4; add.u32 r8, r8, s0; "
#define COPY "cp.async.ca.shared.global [r8], [d2], 16; //B\n"

static void test_async(void)
{
    QUIET("a copy, waited for", 1, 32, SOURCE COPY "cp.async.commit_group; cp.async.wait_group 0; "
          "ld.shared.u32 r1, [r8]; st.global.u32 [d1+8192], r1;");
    FOUND("async-read", "read before the wait", 1, 32, SOURCE COPY "cp.async.commit_group;\n"
          "ld.shared.u32 r1, [r8]; //A\ncp.async.wait_group 0;");
    FOUND("async-read", "the wait leaves a group out", 1, 32, SOURCE "cp.async.cg.shared.global [r8], [d2], 16; "
          "cp.async.commit_group;\ncp.async.ca.shared.global [r8+1024], [d2], 4; //B\n"
          "cp.async.commit_group; cp.async.wait_group 1;\n"
          "ld.shared.u32 r1, [r8]; ld.shared.u32 r1, [r8+1024]; //A\ncp.async.wait_all;");
    QUIET("the older group only", 1, 32, SOURCE COPY "cp.async.commit_group; "
          "cp.async.ca.shared.global [r8+1024], [d2], 4; cp.async.commit_group; cp.async.wait_group 1; "
          "ld.shared.u32 r1, [r8]; cp.async.wait_all; ld.shared.u32 r1, [r8+1024];");
    FOUND("async-read", "never committed, so not waited for", 1, 32, SOURCE COPY "cp.async.wait_group 0;\n"
          "ld.shared.u32 r1, [r8]; //A\ncp.async.wait_all;");
    QUIET("wait_all needs no commit", 1, 32, SOURCE COPY "cp.async.wait_all; ld.shared.u32 r1, [r8];");
    FOUND("async-read", "another thread, a barrier, but no wait", 1, 64, SOURCE COPY "bar.sync 0; xor.b32 r7, r8, 512;\n"
          "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
          "ld.shared.u32 r1, [r7]; //A\ncp.async.wait_all;");
    RACE("another thread, a wait, but no barrier", 1, 64, SOURCE COPY "cp.async.wait_all;\n"
         "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
         "ld.shared.u32 r1, [r7]; //A\n");
    QUIET("another thread, wait and barrier", 1, 64, SOURCE COPY "cp.async.wait_all; bar.sync 0;\n"
          "add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
          "ld.shared.u32 r1, [r7];");
    FOUND("async-unwaited", "nobody waits", 1, 32, SOURCE "cp.async.ca.shared.global [r8], [d2], 16; //A\n");
    RACE("the source is overwritten", 1, 32, SOURCE "cp.async.ca.shared.global [r8], [d2], 16; //A\n"
         "st.global.u32 [d2], r9; cp.async.wait_all;");
    QUIET("the source is overwritten after the wait", 1, 32, SOURCE COPY "cp.async.wait_all; st.global.u32 [d2], r9;");
    RACE("the destination is overwritten", 1, 32, SOURCE COPY "\nst.shared.u32 [r8+4], r9; //A\ncp.async.wait_all;");
    RACE("the next stage lands where others still read", 1, 64, SOURCE "cp.async.ca.shared.global [r8], [d2], 16; "
         "cp.async.wait_all; bar.sync 0; add.u32 r7, r0, 32; and.b32 r7, r7, 63; shl.b32 r7, r7, 4; add.u32 r7, r7, s0;\n"
         "ld.shared.u32 r1, [r7]; //A\ncp.async.ca.shared.global [r8], [d2], 16; //B\ncp.async.wait_all;");
    set_option("async", 0);
    QUIET("switched off", 1, 32, SOURCE COPY "ld.shared.u32 r1, [r8];");
    set_option("async", 1);
}

int main(int argc, char **argv)
{
    sim_open(argc, argv);
    for (int threads = 1; threads <= 2; threads++) {
        set_option("threads", threads);
        test_shared();
        test_barriers();
        test_global();
        test_order();
        test_async();
    }
    set_option("threads", 0);
    return sim_close();
}
