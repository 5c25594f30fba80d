/* threads.c - workers of the CPU driver: the same results and findings for any number of them,
 * blocks that wait for one another, the watchdog, and who is woken for how much work. */
#include "../simtest.h"
#include <dirent.h>

static const int counts[] = {1, 2, 3, 5, 8};
enum { COUNTS = 5 };

#define KERNEL                                                                                               \
    ".version 8.1\n.target sm_90\n.address_size 64\n.global .u32 turn[2];\n"                                 \
    ".visible .entry k(.param .u64 out, .param .u32 n) {\n" REGS                                             \
    "ld.param.u64 d0, [out]; ld.param.u32 r20, [n]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x;\n"             \
    "mov.u32 r2, %ntid.x; mad.lo.u32 r3, r1, r2, r0; mul.wide.u32 d1, r3, 4; add.u64 d1, d0, d1;\n"          \
    "mov.u64 d2, turn; setp.ne.u32 p0, r0, 0;\n"

static uint32_t output[4096];
static bool unwritten; /* let it be so */

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Loads the text anew, so that its variables are; leaves findings in `found`. */
static int launch(const char *body, unsigned grid, unsigned block, uint32_t n) {
    static char ptx[8000];
    snprintf(ptx, sizeof ptx, "%s%s\nret; }\n", KERNEL, body);
    report_clear();
    handle m = load(ptx), f = function(m, "k");
    dptr d = alloc(sizeof output);
    void *params[] = {&d, &n};
    if (!unwritten) cuMemsetD32_v2_(d, 0, sizeof output / 4);
    int code = f ? run(f, grid, block, 0, params) : -1;
    findings();
    report_clear();
    if (code < 700) cuMemcpyDtoH_v2_(output, d, sizeof output);
    report_clear();
    cuMemFree_v2_(d);
    cuModuleUnload_(m);
    return code;
}

static int tasks(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    if (!d) return -1;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* First of all: once they are there, helpers stay. */
static void test_waking(void) {
    set_option("threads", 8);
    SAME(launch("st.global.u32 [d1], r3;", 1, 32, 0), 0);
    int before = tasks();
    if (before < 0) { printf("no /proc/self/task: who is woken is not tested\n"); return; }
    for (unsigned k = 0; k < 20; k++) SAME(launch("st.global.u32 [d1], r3;", 1 + k % 4, 32, 0), 0);
    SAME(tasks(), before);
    SAME(launch("st.global.u32 [d1], r3;", 64, 64, 0), 0);
    CHECK(tasks() == before + 7, "64 blocks: %d threads, %d before", tasks(), before);
}

/* Few blocks with much to do: the helpers come all the same. */
static void test_late_waking(void) {
    set_option("threads", 2);
    SAME(launch("L: ld.acquire.gpu.u32 r5, [d2]; setp.ne.u32 p1, r5, r1;\n@p1 bra L;\n"
                "mov.u32 r6, 0;\nM: add.u32 r6, r6, 1; setp.lt.u32 p2, r6, 100000; @p2 bra M;\n"
                "add.u32 r5, r1, 1; st.release.gpu.u32 [d2], r5; st.global.u32 [d1], r6;",
                2, 1, 0),
         0);
    SAME(output[0] + output[1], 200000);
    CHECK(!*found, "nothing is wrong, found: %s", found);
}

/* Each block waits for the one before, all for all, polling with plain code: what they do in vain must not
 * keep the others from doing it. */
static const char chain[] =
    "@p0 bra E;\nL: ld.acquire.gpu.u32 r5, [d2]; setp.ne.u32 p1, r5, r1;\n@p1 bra L;\n"
    "setp.eq.u32 p2, r1, 0; mov.u32 r6, 1;\n@!p2 ld.global.u32 r6, [d1+-128];\n"
    "@!p2 mad.lo.u32 r6, r6, 5, r1;\nst.global.u32 [d1], r6;\n"
    "add.u32 r5, r1, 1; st.release.gpu.u32 [d2], r5;\nE:";
static const char steps[] =
    "mov.u32 r9, 0; mov.u32 r10, r3;\n"
    "S: st.global.u32 [d1], r10; bar.sync 0;\n@p0 bra W;\n"
    "atom.add.acq_rel.gpu.u32 r5, [d2], 1; add.u32 r8, r9, 1; mul.lo.u32 r8, r8, r20;\n"
    "L: ld.acquire.gpu.u32 r5, [d2]; setp.lt.u32 p1, r5, r8; add.u32 r15, r15, 1;\n@p1 bra L;\n"
    "W: bar.sync 0;\n"
    "add.u32 r11, r3, r2; mul.lo.u32 r12, r20, r2; rem.u32 r11, r11, r12; mul.wide.u32 d3, r11, 4;\n"
    "add.u64 d3, d0, d3; ld.global.u32 r13, [d3]; bar.sync 0;\n"
    "@p0 bra X; atom.add.acq_rel.gpu.u32 r5, [d2+4], 1;\n"
    "Y: ld.acquire.gpu.u32 r5, [d2+4]; setp.lt.u32 p1, r5, r8;\n@p1 bra Y;\nX: bar.sync 0;\n"
    "mad.lo.u32 r10, r10, 3, r13; add.u32 r9, r9, 1; setp.lt.u32 p3, r9, 6;\n@p3 bra S;\n"
    "st.global.u32 [d1], r10;";

static void test_waiting(void) {
    enum { LINKS = 120, BLOCKS = 40, THREADS = 64 };
    static uint32_t ring[BLOCKS * THREADS], next[BLOCKS * THREADS];
    uint32_t want = 1;
    for (uint32_t k = 0; k < BLOCKS * THREADS; k++) ring[k] = k;
    for (int step = 0; step < 6; step++) {
        for (uint32_t k = 0; k < BLOCKS * THREADS; k++)
            next[k] = ring[k] * 3 + ring[(k + THREADS) % (BLOCKS * THREADS)];
        memcpy(ring, next, sizeof ring);
    }
    for (uint32_t k = 1; k < LINKS; k++) want = want * 5 + k;
    for (int k = 0; k < COUNTS; k++) {
        double start = cpu_seconds();
        set_option("threads", counts[k]);
        int code = launch(chain, LINKS, 32, 0);
        CHECK(!code && !*found, "a chain, %d threads: gives %d, found: %s", counts[k], code, found);
        SAME(output[(LINKS - 1) * 32], want);
        static char text[8000];
        snprintf(text, sizeof text, "mov.u32 r15, 0;\n%s", steps);
        code = launch(text, BLOCKS, THREADS, BLOCKS);
        CHECK(!code, "steps, %d threads: gives %d, found: %s", counts[k], code, found);
        CHECK(!memcmp(output, ring, sizeof ring), "steps, %d threads: the numbers differ", counts[k]);
        CHECK(cpu_seconds() - start < 20, "%d threads: %.1f s of polling", counts[k], cpu_seconds() - start);
    }
}

/* Addresses are never the same again. */
static void hide_addresses(char *text) {
    for (char *p = text; (p = strstr(p, "0x302")); p++) memset(p + 2, '.', strspn(p + 2, "0123456789abcdef"));
}

/* The same findings, word for word, and the same numbers, in whatever order blocks ran. */
static void same_for_all(const char *what, const char *body, unsigned grid, const char *const kinds[2]) {
    static char first[sizeof found];
    static uint32_t numbers[sizeof output / 4];
    int first_code = 0;
    for (int k = 0; k < 4 * COUNTS; k++) {
        set_option("threads", counts[k % COUNTS]);
        int code = launch(body, grid, 32, grid);
        if (!k) first_code = code;
        SAME(code, first_code);
        for (int n = 0; n < 2; n++)
            if (kinds[n]) CHECK(strstr(found, kinds[n]), "%s: no %s in: %s", what, kinds[n], found);
        hide_addresses(found);
        if (!k) {
            memcpy(first, found, sizeof first);
            memcpy(numbers, output, sizeof output);
        }
        CHECK(!strcmp(first, found), "%s, %d threads: found: %s\nwith one: %s", what, counts[k % COUNTS],
              found, first);
        CHECK(!memcmp(numbers, output, sizeof output), "%s, %d threads: other numbers", what,
              counts[k % COUNTS]);
    }
}

static void test_findings(void) {
    static const char *both[2] = {"race:", "uninitialised-register:"}, *race[2] = {"race:", NULL};
    same_for_all("neighbours",
                 "xor.b32 r5, r3, 32; mul.wide.u32 d3, r5, 4; add.u64 d3, d0, d3;\n"
                 "st.global.u32 [d1], r3;\n"
                 "ld.global.u32 r6, [d3];\nadd.u32 r7, r6, r28;\nst.global.u32 [d1], 7;",
                 64, both);
    same_for_all("a sum without atomics, in place",
                 "ld.global.u32 r5, [d0]; mad.lo.u32 r5, r5, 3, r1;\nst.global.u32 [d0], r5;\n"
                 "st.global.u32 [d1+2048], r5;",
                 60, race);
    same_for_all("numbers drawn", "mov.u32 r7, 1; atom.add.u32 r5, [d0], 1;\nld.global.u32 r6, [d0+64];\n"
                 "add.u32 r6, r6, r3;\nst.global.u32 [d0+64], r6;\nst.global.u32 [d1+4096], r6;", 50, race);
}

/* The first block takes long. */
#define SLOW                                                                                                 \
    "setp.eq.u32 p2, r1, 0; selp.u32 r10, 3000, 1, p2; mov.u32 r11, 0; setp.ge.u32 p1, r1, 3;\n"             \
    "L: add.u32 r11, r11, 1; setp.lt.u32 p3, r11, r10; @p3 bra L;\n"

/* What the first attempt wrote is unwritten again, counters count one launch. */
static void test_again(void) {
    static const char *kinds[2] = {"race:", "uninitialised-read:"};
    ptxsim_counters before, now;
    unwritten = true;
    same_for_all("unwritten once more",
                 "add.u32 r6, r3, 1;\nst.global.u32 [d0], r6;\n"
                 "ld.global.u32 r5, [d1+4096]; st.global.u32 [d1+4096], r3;\nadd.u32 r5, r5, 1;\n"
                 "st.global.u32 [d1+8192], r5;", 30, kinds);
    same_for_all("the first to add",
                 SLOW "atom.global.add.u32 r5, [d0+16380], 1;\nst.global.u32 [d1], r3;", 40,
                 (const char *[2]){"uninitialised-read:", "block (0,0,0)"});
    unwritten = false;
    same_for_all("which fault",
                 SLOW "mul.wide.u32 d3, r1, 524288; add.u64 d3, d3, d1;\n"
                 "st.global.u32 [d1], r3;\n@p1 st.global.u32 [d3], r3;\nst.global.u32 [d1], 5;",
                 40, (const char *[2]){"out-of-bounds:", NULL});
    uint64_t one = 0;
    for (int k = 0; k < COUNTS; k++) {
        set_option("threads", counts[k]);
        ptxsim_counters_get_(&before, sizeof before);
        launch("st.global.u32 [d0], r3; st.global.u32 [d1], r3;", 64, 32, 0);
        ptxsim_counters_get_(&now, sizeof now);
        uint64_t ran = now.thread_instructions - before.thread_instructions;
        if (!k) one = ran;
        CHECK(now.launches - before.launches == 1 && ran == one, "%d threads: %llu launches, %llu for %llu",
              counts[k], (unsigned long long)(now.launches - before.launches), (unsigned long long)ran,
              (unsigned long long)one);
    }
}

/* The watchdog counts what each thread has had for the whole launch. */
static void test_watchdog(void) {
    static const char turns[] = "mov.u32 r5, 0; mov.u32 r7, 0;\nL: add.u32 r5, r5, 1; xor.b32 r7, r7, r5;\n"
                                "setp.lt.u32 p1, r5, r20; @p1 bra L;\nst.global.u32 [d1], r7;";
    const uint32_t rounds = 1500000;
    double start = cpu_seconds();
    set_option("threads", 1);
    SAME(launch(turns, 1, 32, rounds), 0);
    double one = cpu_seconds() - start;
    set_option("watchdog", 1);
    unsigned blocks = (unsigned)(6 / (one + 1e-3)) + 2;
    if (blocks > sizeof output / 128) blocks = sizeof output / 128;
    int code = launch(turns, blocks, 32, rounds);
    CHECK(code == 702 && !strncmp(found, "timeout:", 8), "blocks that take too long together: gives %d, found: %s",
          code, found);
    set_option("watchdog", (int)(20 * one) + 2);
    code = launch(turns, 4, 32, rounds);
    CHECK(!code && !*found, "four blocks within the limit: gives %d, found: %s", code, found);
    set_option("watchdog", 1);
    for (int k = 0; k < COUNTS; k += 2) { /* blocks that are done before anybody looks */
        set_option("threads", counts[k]);
        start = cpu_seconds();
        code = launch("setp.ge.u32 p1, r1, 0; @p1 ret; st.global.u32 [d1], r1;", 2147483647, 32, 0);
        CHECK(code == 702 && !strncmp(found, "timeout:", 8), "2^31 short blocks: gives %d, found: %s", code, found);
        CHECK(cpu_seconds() - start < 15, "%d threads: %.1f s", counts[k], cpu_seconds() - start);
    }
    set_option("budget", 100000);
    code = launch("setp.ge.u32 p1, r1, 0; @p1 ret; st.global.u32 [d1], r1;", 2147483647, 32, 0);
    CHECK(code == 702 && strstr(found, "budget"), "the budget of short blocks: gives %d, found: %s", code, found);
    set_option("budget", 0);
    handle m = load(HEAD ".visible .entry k() { .reg .b32 a; mov.u32 a, %tid.x; ret; }");
    ptxsim_counters before, now;
    ptxsim_counters_get_(&before, sizeof before);
    start = cpu_seconds();
    SAME(run(function(m, "k"), 2147483647, 33, 0, NULL), 0); /* nothing to see: no block runs */
    ptxsim_counters_get_(&now, sizeof now);
    CHECK(cpu_seconds() - start < 1, "an empty grid: %.1f s", cpu_seconds() - start);
    SAME(now.blocks - before.blocks, 2147483647);
    SAME(now.warp_instructions - before.warp_instructions, 4 * 2147483647ll);
    SAME(now.thread_instructions - before.thread_instructions, 66 * 2147483647ll);
    cuModuleUnload_(m);
    for (int k = 0; k < COUNTS; k += 2) { /* a loop that counts its turns ends by it alone */
        set_option("threads", counts[k]);
        start = cpu_seconds();
        code = launch("mov.u32 r5, 0; setp.eq.u32 p2, r1, 0;\nL: add.u32 r5, r5, 1; @p2 bra L;\n"
                      "M: ld.volatile.global.u32 r6, [d2]; setp.eq.u32 p1, r6, 0;\n@p1 bra M;",
                      6, 32, 0);
        CHECK(code == 702 && !strncmp(found, "timeout:", 8), "%d threads: gives %d, found: %s", counts[k],
              code, found);
        CHECK(cpu_seconds() - start < 15, "%d threads: %.1f s", counts[k], cpu_seconds() - start);
    }
    set_option("watchdog", -1);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_waking();
    test_late_waking();
    test_waiting();
    test_findings();
    test_again();
    test_watchdog();
    return sim_close();
}
