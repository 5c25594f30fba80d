/* hopper.c - clusters, mbarriers, bulk and tensor copies of the CPU driver against loops of the
 * host, and every finding of theirs with a twin that is right. */
#include "../simtest.h"

/* --- launching with clusters ------------------------------------------------------------------ */

static int (*launch_ex)(const launch_config *, handle, void **, void **);
static int (*max_active_clusters)(int *, handle, const launch_config *);
static int (*max_cluster)(int *, handle, const launch_config *);
static int (*encode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                     const unsigned *, int, int, int, int);
static int (*replace_address)(void *, void *);
static int (*encode_im2col)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const int *,
                            const int *, unsigned, unsigned, const unsigned *, int, int, int, int);

static void open_hopper(void) {
    *(void **)&launch_ex = symbol(sim_library, "cuLaunchKernelEx");
    *(void **)&max_active_clusters = symbol(sim_library, "cuOccupancyMaxActiveClusters");
    *(void **)&max_cluster = symbol(sim_library, "cuOccupancyMaxPotentialClusterSize");
    *(void **)&encode = symbol(sim_library, "cuTensorMapEncodeTiled");
    *(void **)&encode_im2col = symbol(sim_library, "cuTensorMapEncodeIm2col");
    *(void **)&replace_address = symbol(sim_library, "cuTensorMapReplaceAddress");
}

static int start(handle f, unsigned grid, unsigned block, unsigned cluster, unsigned shared, void **params) {
    launch_attribute a = {.id = 4, .value.n = {cluster, 1, 1}};
    launch_config c = {{grid, 1, 1}, {block, 1, 1}, shared, NULL, &a, cluster ? 1 : 0};
    int code = launch_ex(&c, f, params, NULL);
    return code ? code : cuCtxSynchronize_();
}

enum { WORDS = 1 << 14 };
static uint32_t input[WORDS], output[WORDS];

static void make_input(void) {
    for (unsigned k = 0; k < WORDS; k++) input[k] = k * 2654435761u ^ k >> 3;
}

/* Runs `body` in a kernel of two pointers: d0 out, d1 in; r0 tid, r1 block, r31 `sm`, r30 `bars`. */
static char text[(1 << 16) + 1000];

static const char *kernel(const char *body, const char *change, const char *directives) {
    static char full[1 << 16];
    size_t n = 0;
    for (const char *p = body; *p; p++) {
        if (*p != '@' || p[1] != '@') {
            full[n++] = *p;
            continue;
        }
        n += (size_t)sprintf(full + n, "%s", change ? change : "");
        p++;
    }
    full[n] = 0;
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 sm[32768];\n"
             ".shared .align 8 .b64 bars[16];\n.visible .entry k(.param .u64 out, .param .u64 in) %s\n{\n"
             ".reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<40>; .reg .b64 d<20>; .reg .f32 f<8>;\n"
             "ld.param.u64 d0, [out]; ld.param.u64 d1, [in]; mov.u32 r0, %%tid.x; mov.u32 r1, %%ctaid.x;\n"
             "mov.u32 r31, sm; mov.u32 r30, bars;\n%s\nret;\n}\n",
             directives ? directives : "", full);
    return text;
}

static int execute(const char *ptx, unsigned grid, unsigned block, unsigned cluster) {
    handle m = load(ptx), f = function(m, "k");
    dptr out = alloc(sizeof output), in = alloc(sizeof input);
    void *params[] = {&out, &in};
    if (!f || !out || !in) {
        fprintf(stderr, "%s\n", ptx);
        return -1;
    }
    memset(output, 0xee, sizeof output);
    cuMemcpyHtoD_v2_(out, output, sizeof output);
    cuMemcpyHtoD_v2_(in, input, sizeof input);
    report_clear();
    int code = start(f, grid, block, cluster, 0, params);
    findings();
    if (code >= 700)
        report_clear();
    else
        cuMemcpyDtoH_v2_(output, out, sizeof output);
    cuMemFree_v2_(out);
    cuMemFree_v2_(in);
    cuModuleUnload_(m);
    return code;
}

static void clean(const char *name, int code) {
    check_at(__FILE__, __LINE__, code == 0 && !*found, "%s: code %d, found: %s", name, code, found);
}

/* `body` with the fault in place of @@ gives `code` and a finding of that kind at the line marked "here";
 * with the other text it gives neither. */
static void pair(const char *name, const char *body, const char *bad, const char *good, int code,
                 const char *kind, unsigned grid, unsigned block, unsigned cluster) {
    size_t n = strlen(kind);
    int got = execute(kernel(body, bad, NULL), grid, block, cluster);
    check_at(__FILE__, __LINE__, got == code, "%s: gives %d, expected %d: %s", name, got, code, found);
    check_at(__FILE__, __LINE__, !strncmp(found, kind, n) && found[n] == ':' && strstr(found, "// here"),
             "%s: expected %s, found: %s", name, kind, found);
    report_clear();
    got = execute(kernel(body, good, NULL), grid, block, cluster);
    check_at(__FILE__, __LINE__, !got && !*found, "the twin of %s: gives %d, found: %s", name, got, found);
    report_clear();
}

/* --- mbarrier --------------------------------------------------------------------------------- */

/* One thread goes through the phases of a barrier for three arrivals; what a host's model says stands
 * beside each step. */
static void test_phases(void) {
    int code =
        execute(kernel("mbarrier.init.shared.b64 [r30], 3;\n"
                       "mbarrier.arrive.shared.b64 d2, [r30];\nmbarrier.pending_count.b64 r2, d2;\n"
                       "st.global.u32 [d0], r2;\n"
                       "mbarrier.arrive.shared.b64 d3, [r30], 1;\nmbarrier.pending_count.b64 r2, d3;\n"
                       "st.global.u32 [d0+4], r2;\n"
                       "mbarrier.test_wait.shared.b64 p0, [r30], d2;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+8], r2;\n"
                       "mbarrier.test_wait.parity.shared.b64 p0, [r30], 1;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+12], r2;\n"
                       "mbarrier.arrive.expect_tx.shared.b64 _, [r30], 100;\n"
                       "mbarrier.test_wait.parity.shared.b64 p0, [r30], 0;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+16], r2;\n"
                       "mbarrier.complete_tx.shared.b64 [r30], 60;\n"
                       "mbarrier.test_wait.shared.b64 p0, [r30], d2;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+20], r2;\n"
                       "mbarrier.complete_tx.shared.b64 [r30], 40;\n"
                       "mbarrier.test_wait.shared.b64 p0, [r30], d2;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+24], r2;\n"
                       "mbarrier.test_wait.parity.shared.b64 p0, [r30], 0;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+28], r2;\n"
                       "mbarrier.arrive_drop.shared.b64 d4, [r30];\nmbarrier.pending_count.b64 r2, d4;\n"
                       "st.global.u32 [d0+32], r2;\n"
                       "mbarrier.arrive.shared.b64 _, [r30], 2;\n" /* phase 1 ends; 2 arrivals from now */
                       "mbarrier.arrive.noComplete.shared.b64 d4, [r30], 1;\n"
                       "mbarrier.pending_count.b64 r2, d4;\nst.global.u32 [d0+36], r2;\n"
                       "mbarrier.arrive.shared.b64 d4, [r30];\n"
                       "mbarrier.pending_count.b64 r2, d4;\nst.global.u32 [d0+40], r2;\n"
                       "cp.async.mbarrier.arrive.shared.b64 [r30];\n"
                       "mbarrier.arrive.shared.b64 d4, [r30];\n"
                       "mbarrier.pending_count.b64 r2, d4;\nst.global.u32 [d0+44], r2;\n"
                       "cp.async.mbarrier.arrive.noinc.shared.b64 [r30];\n"
                       "mbarrier.try_wait.shared.b64 p0, [r30], d4;\nselp.u32 r2, 1, 0, p0;\n"
                       "st.global.u32 [d0+48], r2;\n"
                       "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [r30], 8;\n"
                       "mbarrier.inval.shared.b64 [r30];\nst.shared.u64 [r30], 0;\n",
                       NULL, NULL),
                1, 1, 0);
    static const uint32_t want[] = {3, 2, 0, 1, 0, 0, 1, 1, 3, 2, 1, 2, 1};
    clean("phases", code);
    for (unsigned k = 0; k < sizeof want / sizeof *want; k++)
        CHECK(output[k] == want[k], "phases: step %u gives %u, expected %u", k, output[k], want[k]);
}

/* Four stages; warp 0 fills them, three warps consume, each number once; `fill` writes 32 words. */
static void test_ring(const char *name, const char *fill, const char *arrivals) {
    static const char body[] =
        "setp.ne.u32 p0, r0, 0;\n@p0 bra READY;\nmov.u32 r2, 0;\n"
        "INIT: shl.b32 r3, r2, 3; add.u32 r3, r3, r30;\n"
        "mbarrier.init.shared.b64 [r3], %s;\nmbarrier.init.shared.b64 [r3+32], 96;\n"
        "add.u32 r2, r2, 1; setp.lt.u32 p1, r2, 4;\n@p1 bra INIT;\nfence.mbarrier_init.release.cluster;\n"
        "READY: bar.sync 0;\nmov.u32 r2, 0; mov.u32 r20, 0; and.b32 r21, r0, 31; shr.u32 r22, r0, 5;\n"
        "setp.ne.u32 p0, r22, 0;\n@p0 bra CONSUME;\n"
        "PRODUCE: and.b32 r3, r2, 3; shl.b32 r4, r3, 3; add.u32 r4, r4, r30; shr.u32 r5, r2, 2;\n"
        "add.u32 r6, r5, 1; and.b32 r6, r6, 1;\n"
        "PW: mbarrier.try_wait.parity.shared.b64 p2, [r4+32], r6;\n@!p2 bra PW;\n"
        "shl.b32 r7, r3, 7; add.u32 r7, r7, r31; shl.b32 r8, r2, 7; cvt.u64.u32 d2, r8; add.u64 d2, d2, d1;\n"
        "%s"
        "add.u32 r2, r2, 1; setp.lt.u32 p1, r2, 24;\n@p1 bra PRODUCE;\nbra END;\n"
        "CONSUME: and.b32 r3, r2, 3; shl.b32 r4, r3, 3; add.u32 r4, r4, r30; shr.u32 r5, r2, 2;\n"
        "and.b32 r6, r5, 1;\n"
        "CW: mbarrier.try_wait.parity.shared.b64 p2, [r4], r6;\n@!p2 bra CW;\n"
        "shl.b32 r7, r3, 7; add.u32 r7, r7, r31; shl.b32 r9, r21, 2; add.u32 r7, r7, r9;\n"
        "ld.shared.u32 r10, [r7]; mad.lo.u32 r20, r20, 31, r10;\n"
        "mbarrier.arrive.shared.b64 _, [r4+32];\n"
        "add.u32 r2, r2, 1; setp.lt.u32 p1, r2, 24;\n@p1 bra CONSUME;\n"
        "mad.lo.u32 r11, r1, 128, r0; mul.wide.u32 d3, r11, 4; add.u64 d3, d3, d0; st.global.u32 [d3], r20;\n"
        "END:\n";
    static char full[8000];
    for (int threads = 1; threads <= 4; threads += 3) {
        set_option("threads", threads);
        snprintf(full, sizeof full, body, arrivals, fill);
        int code = execute(kernel(full, NULL, NULL), 3, 128, 0);
        clean(name, code);
        bool good = true;
        for (unsigned k = 0; k < 3 * 128; k++) {
            uint32_t sum = 0;
            if (k % 128 < 32) continue;
            for (unsigned n = 0; n < 24; n++) sum = sum * 31 + input[n * 32 + k % 32];
            good &= output[k] == sum;
        }
        CHECK(good, "%s with %d threads: sums differ", name, threads);
    }
    set_option("threads", 0);
}

/* Who waits is set going by who arrives: in other warps, in the same warp; copies arrive though somebody
 * polls ordinary memory all the time. */
static void test_progress(void) {
    int code =
        execute(kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
                       "setp.lt.u32 p1, r0, 32;\n@!p1 bra LATE;\n"
                       "mov.u32 r2, 0;\nW: add.u32 r2, r2, 1; mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n"
                       "@!p2 bra W;\n"
                       "mul.wide.u32 d2, r0, 4; add.u64 d2, d2, d0; st.global.u32 [d2], r2;\nbra END;\n"
                       "LATE: mov.u32 r3, 0;\nL: add.u32 r3, r3, 1; setp.lt.u32 p3, r3, 20000;\n@p3 bra L;\n"
                       "setp.eq.u32 p4, r0, 63;\n@p4 mbarrier.arrive.shared.b64 _, [r30];\nEND:\n",
                       NULL, NULL),
                1, 64, 0);
    bool good = true;
    for (unsigned k = 0; k < 32; k++) good &= output[k] == 2;
    clean("the second look waits long enough", code);
    CHECK(good, "the second look waits long enough");
    code = execute(
        kernel(
            "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 31;\nbar.sync 0;\n@!p0 bra GIVE;\n"
            "W: mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\n"
            "ld.shared.u32 r2, [r31+124]; st.global.u32 [d0], r2;\nbra END;\n"
            "GIVE: shl.b32 r3, r0, 2; add.u32 r3, r3, r31; st.shared.u32 [r3], r0;\n"
            "mbarrier.arrive.shared.b64 _, [r30];\nEND:\n",
            NULL, NULL),
        1, 32, 0);
    clean("lanes of one warp", code);
    SAME(output[0], 31);
    set_option("watchdog", 20);
    code = execute(
        kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n@p0 st.shared.u32 [r31], 0;\n"
               "bar.sync 0;\nsetp.lt.u32 p1, r0, 32;\n@!p1 bra SPIN;\n"
               "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n"
               "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31+64], [d1], 64, "
               "[r30];\n"
               "W: mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\n"
               "@p0 atom.shared.exch.b32 r4, [r31], 1;\nbra END;\n"
               "SPIN: ld.volatile.shared.u32 r2, [r31]; setp.eq.u32 p3, r2, 0;\n@p3 bra SPIN;\n"
               "ld.shared.u32 r2, [r31+64]; st.global.u32 [d0], r2;\nEND:\n",
               NULL, NULL),
        1, 64, 0);
    clean("polling ordinary memory", code);
    SAME(output[0], input[0]);
    code = execute(
        kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
               "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n"
               "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31+64], [d1], 64, "
               "[r30];\n"
               "mov.u32 r3, 0;\nW: add.u32 r3, r3, 1;\n"
               "mbarrier.test_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\nst.global.u32 [d0], r3;\n",
               NULL, NULL),
        1, 32, 0);
    clean("test_wait in a loop", code);
    CHECK(output[0] > 1 && output[0] < 100, "test_wait in a loop: %u rounds", output[0]);
    set_option("watchdog", 300);
    code =
        execute(kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
                       "setp.lt.u32 p1, r0, 32;\n@!p1 bra LATE;\n@!p0 bra MEET;\n"
                       "W: mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\n"
                       "MEET: shfl.sync.bfly.b32 r2, r0, 1, 31, 0xffffffff;\n"
                       "mul.wide.u32 d2, r0, 4; add.u64 d2, d2, d0; st.global.u32 [d2], r2;\nbra END;\n"
                       "LATE: mov.u32 r3, 0;\nL: add.u32 r3, r3, 1; setp.lt.u32 p3, r3, 20000;\n@p3 bra L;\n"
                       "setp.eq.u32 p4, r0, 63;\n@p4 mbarrier.arrive.shared.b64 _, [r30];\nEND:\n",
                       NULL, NULL),
                1, 64, 0);
    clean("a warp meets after the wait", code);
    CHECK(output[0] == 1 && output[31] == 30, "a warp meets after the wait");
    pair("a mask with a lane that waits",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n@!p0 bra GIVE;\n"
         "W: mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\nbra END;\n"
         "GIVE: bar.warp.sync @@; // here\nsetp.eq.u32 p3, r0, 1;\n@p3 mbarrier.arrive.shared.b64 _, "
         "[r30];\nEND:\n",
         "0xffffffff", "0xfffffffe", 0, "absent-lane", 1, 32, 0);
}

static void test_mbarrier(void) {
    test_phases();
    test_progress();
    test_ring("ring of stores",
              "shl.b32 r9, r21, 2; add.u32 r7, r7, r9; cvt.u64.u32 d3, r9; add.u64 d2, d2, d3;\n"
              "ld.global.u32 r10, [d2]; st.shared.u32 [r7], r10;\nmbarrier.arrive.shared.b64 _, [r4];\n",
              "32");
    test_ring(
        "ring of bulk copies",
        "setp.eq.u32 p3, r21, 0;\n@p3 mbarrier.arrive.expect_tx.shared.b64 _, [r4], 128;\n"
        "@p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r7], [d2], 128, [r4];\n",
        "1");
}

/* --- findings of mbarrier --------------------------------------------------------------------- */

static void test_mbarrier_faults(void) {
    pair("use without init", "@@\nbar.sync 0;\nmbarrier.arrive.shared.b64 _, [r30]; // here\n", "",
         "mbarrier.init.shared.b64 [r30], 4;", 719, "mbarrier-uninitialised", 1, 1, 0);
    pair("use after inval",
         "mbarrier.init.shared.b64 [r30], 4;\n@@\nmbarrier.arrive.shared.b64 _, [r30]; // here\n",
         "mbarrier.inval.shared.b64 [r30];", "", 719, "mbarrier-uninitialised", 1, 1, 0);
    pair("too many arrivals",
         "mbarrier.init.shared.b64 [r30], 4;\nmbarrier.arrive.shared.b64 _, [r30], @@; // here\n", "5", "4",
         0, "mbarrier-overflow", 1, 1, 0);
    pair("init for nobody", "mov.u32 r2, @@;\nmbarrier.init.shared.b64 [r30], r2; // here\n", "0", "1", 719,
         "mbarrier-overflow", 1, 1, 0);
    pair("too many bytes",
         "mbarrier.init.shared.b64 [r30], 4;\nmbarrier.expect_tx.shared.b64 [r30], 1048575;\n"
         "mbarrier.@@ [r30], 1; // here\n",
         "expect_tx.shared.b64", "complete_tx.shared.b64", 0, "mbarrier-overflow", 1, 1, 0);
    pair("noComplete that completes",
         "mbarrier.init.shared.b64 [r30], @@;\nmbarrier.arrive.noComplete.shared.b64 d2, [r30], 2; // here\n",
         "2", "3", 0, "mbarrier-overflow", 1, 1, 0);
    pair("overwritten",
         "mbarrier.init.shared.b64 [r30], 4;\nst.shared.u32 [r30+@@], 7;\n"
         "mbarrier.arrive.shared.b64 _, [r30]; // here\n",
         "4", "8", 0, "mbarrier-overwritten", 1, 1, 0);
    pair("misaligned", "add.u32 r2, r30, @@;\nmbarrier.init.shared.b64 [r2], 4; // here\n", "4", "8", 716,
         "misaligned", 1, 1, 0);
    pair("out of bounds", "add.u32 r2, r30, @@;\nmbarrier.init.shared.b64 [r2], 4; // here\n", "0x100000",
         "8", 700, "out-of-bounds", 1, 1, 0);
    pair("no token",
         "mbarrier.init.shared.b64 [r30], 2;\nmbarrier.arrive.shared.b64 d2, [r30];\n"
         "mbarrier.test_wait.shared.b64 p0, [r30], @@; // here\n",
         "d0", "d2", 719, "mbarrier-token", 1, 1, 0);
    pair("a wait without end",
         "setp.eq.u32 p1, r0, 0;\n@p1 mbarrier.init.shared.b64 [r30], @@;\nbar.sync 0;\n"
         "mbarrier.arrive.shared.b64 _, [r30];\n"
         "W: mbarrier.try_wait.parity.shared.b64 p0, [r30], 0; // here\n@!p0 bra W;\n",
         "65", "64", 702, "deadlock", 1, 64, 0);
    execute(kernel("setp.eq.u32 p1, r0, 0;\n@p1 mbarrier.init.shared.b64 [r30], 65;\nbar.sync 0;\n"
                   "mbarrier.arrive.expect_tx.shared.b64 _, [r30], 2;\n"
                   "W: mbarrier.try_wait.parity.shared.b64 p0, [r30], 0;\n@!p0 bra W;\n",
                   NULL, NULL),
            1, 64, 0);
    CHECK(strstr(found, "lacks 1 of 65 arrivals and 128 bytes"), "a deadlock names what is missing: %s",
          found);
    report_clear();
    /* try_wait gives up after a time: a program that looks once goes on */
    int code =
        execute(kernel("mbarrier.init.shared.b64 [r30], 1;\n"
                       "mbarrier.try_wait.parity.shared.b64 p0, [r30], 0, 100;\nselp.u32 r2, 1, 0, p0;\n"
                       "mbarrier.try_wait.parity.shared.b64 p0, [r30], 1;\nselp.u32 r3, 1, 0, p0;\n"
                       "st.global.u32 [d0], r2; st.global.u32 [d0+4], r3;\n",
                       NULL, NULL),
                1, 1, 0);
    clean("a time limit", code);
    CHECK(output[0] == 0 && output[1] == 1, "try_wait: %u %u", output[0], output[1]);
}

/* --- clusters --------------------------------------------------------------------------------- */

#define CLUSTER_SYNC "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"

/* Every special register of a 2x3x1 cluster in a 4x6x2 grid. */
static void test_cluster_registers(void) {
    static const char *const names[] = {
        "cluster_ctaid.x",  "cluster_ctaid.y", "cluster_ctaid.z",  "cluster_nctaid.x", "cluster_nctaid.y",
        "cluster_nctaid.z", "cluster_ctarank", "cluster_nctarank", "clusterid.x",      "clusterid.y",
        "clusterid.z",      "nclusterid.x",    "nclusterid.y",     "nclusterid.z",     "ctaid.x"};
    char body[4000];
    size_t n =
        (size_t)sprintf(body, "mov.u32 r2, %%ctaid.y; mov.u32 r3, %%ctaid.z; mad.lo.u32 r4, r3, 6, r2;\n"
                              "mad.lo.u32 r4, r4, 4, r1; mul.wide.u32 d2, r4, 64; add.u64 d2, d2, d0;\n"
                              "mov.pred p1, %%is_explicit_cluster; selp.u32 r5, 1, 0, p1;\n"
                              "st.global.u32 [d2+60], r5;\n");
    for (unsigned k = 0; k < 15; k++)
        n += (size_t)sprintf(body + n, "mov.u32 r5, %%%s; st.global.u32 [d2+%u], r5;\n", names[k], k * 4);
    handle m = load(kernel(body, NULL, NULL)), f = function(m, "k");
    dptr out = alloc(sizeof output);
    void *params[] = {&out, &out};
    launch_attribute a[2] = {{.id = 4, .value.n = {2, 3, 1}}, {.id = 6, .value.n = {1, 0, 0}}};
    launch_config c = {{4, 6, 2}, {32, 1, 1}, 0, NULL, a, 2};
    SAME(launch_ex(&c, f, params, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    cuMemcpyDtoH_v2_(output, out, sizeof output);
    bool good = true;
    for (unsigned z = 0; z < 2; z++)
        for (unsigned y = 0; y < 6; y++)
            for (unsigned x = 0; x < 4; x++) {
                const unsigned want[] = {x % 2, y % 3, 0, 2, 3, 1, x % 2 + y % 3 * 2, 6, x / 2, y / 3,
                                         z,     2,     2, 2, x, 1};
                good &= !memcmp(output + ((z * 6 + y) * 4 + x) * 16, want, sizeof want);
            }
    CHECK(good, "cluster registers");
    c.count = 0;
    SAME(launch_ex(&c, f, params, NULL), 0); /* no cluster: one block each */
    SAME(cuCtxSynchronize_(), 0);
    cuMemcpyDtoH_v2_(output, out, 64);
    CHECK(output[3] == 1 && output[7] == 1 && output[6] == 0 && output[11] == 4 && !output[15],
          "without a cluster: %u %u %u %u %u", output[3], output[7], output[6], output[11], output[15]);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
}

static void test_cluster_launches(void) {
    handle m = load(kernel("", NULL, NULL)), f = function(m, "k");
    handle fixed_module = load(kernel("", NULL, ".reqnctapercluster 2, 1, 1")),
           fixed = function(fixed_module, "k");
    handle limited_module = load(kernel("", NULL, ".explicitcluster .maxclusterrank 4")),
           limited = function(limited_module, "k");
    dptr none = 0;
    void *params[] = {&none, &none};
    SAME(start(f, 6, 32, 4, 0, params), 1); /* 6 blocks are no clusters of 4 */
    SAME(start(f, 8, 32, 8, 0, params), 0);
    SAME(start(f, 16, 32, 16, 0, params), 912);
    SAME(cuFuncSetAttribute_(f, 14, 1), 0);
    SAME(start(f, 16, 32, 16, 0, params), 0);
    SAME(start(f, 17, 32, 17, 0, params), 912);
    SAME(start(fixed, 4, 32, 2, 0, params), 0);
    SAME(start(fixed, 4, 32, 0, 0, params), 0);
    SAME(start(fixed, 4, 32, 4, 0, params), 912);
    SAME(start(fixed, 3, 32, 0, 0, params), 1);
    SAME(run(fixed, 4, 32, 0, params), 0);
    SAME(start(limited, 4, 32, 0, 0, params), 912); /* .explicitcluster: the launch has to say */
    SAME(start(limited, 4, 32, 4, 0, params), 0);
    SAME(start(limited, 8, 32, 8, 0, params), 912);
    int n = 0;
    launch_attribute a = {.id = 4, .value.n = {2, 1, 1}};
    launch_config c = {{8, 1, 1}, {32, 1, 1}, 0, NULL, &a, 1};
    SAME(max_active_clusters(&n, f, &c), 0);
    CHECK(n > 0, "active clusters: %d", n);
    SAME(max_cluster(&n, f, &c), 0);
    SAME(n, 16);
    a.id = 99;
    SAME(launch_ex(&c, f, params, NULL), 1);
    SAME(launch_ex(NULL, f, params, NULL), 1);
    c.attributes = NULL;
    SAME(launch_ex(&c, f, params, NULL), 1);
    cuModuleUnload_(m);
    cuModuleUnload_(fixed_module);
    cuModuleUnload_(limited_module);
}

/* Each block sums its part of the input; rank 0 adds the sums of the others, read over shared::cluster;
 * then every block fetches the total from rank 0, by a generic address. */
static void test_cluster_reduction(void) {
    for (int threads = 1; threads <= 4; threads += 3) {
        set_option("threads", threads);
        int code = execute(
            kernel("mad.lo.u32 r2, r1, 64, r0; mul.wide.u32 d2, r2, 4; add.u64 d2, d2, d1; ld.global.u32 r3, "
                   "[d2];\n"
                   "setp.eq.u32 p0, r0, 0;\n@p0 st.shared.u32 [r31], 0;\nbar.sync 0;\n"
                   "red.shared.add.u32 [r31], r3;\nmov.u32 r4, %cluster_ctarank;\n" CLUSTER_SYNC
                   "setp.ne.u32 p1, r4, 0;\nor.pred p1, p1, p1;\n@p1 bra WAIT;\n@!p0 bra WAIT;\n"
                   "mov.u32 r5, 0; mov.u32 r6, 0;\n"
                   "L: mapa.shared::cluster.u32 r7, r31, r5;\nld.shared::cluster.u32 r8, [r7];\n"
                   "add.u32 r6, r6, r8; add.u32 r5, r5, 1; setp.lt.u32 p2, r5, 4;\n@p2 bra L;\n"
                   "st.shared.u32 [r31+4], r6;\n"
                   "WAIT: " CLUSTER_SYNC "cvta.shared.u64 d3, d4;\nmov.u64 d4, sm; cvta.shared.u64 d3, d4;\n"
                   "mapa.u64 d5, d3, 0;\nld.u32 r9, [d5+4];\ngetctarank.u64 r10, d5;\nadd.u32 r9, r9, r10;\n"
                   "mad.lo.u32 r2, r1, 64, r0; mul.wide.u32 d2, r2, 4; add.u64 d2, d2, d0; st.global.u32 "
                   "[d2], r9;\n" CLUSTER_SYNC,
                   NULL, NULL),
            8, 64, 4);
        check_at(__FILE__, __LINE__, code == 0, "cluster reduction: %d %s", code, found);
        bool good = true;
        for (unsigned k = 0; k < 8 * 64; k++) {
            uint32_t sum = 0;
            for (unsigned n = 0; n < 256; n++) sum += input[k / 256 * 256 + n];
            good &= output[k] == sum;
        }
        CHECK(good, "cluster reduction with %d threads", threads);
        /* atomics and stores to the next block, with its barrier as signal */
        code = execute(
            kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 32;\n"
                   "shl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n" CLUSTER_SYNC
                   "mov.u32 r4, %cluster_ctarank; add.u32 r5, r4, 1; and.b32 r5, r5, 3;\n"
                   "mapa.shared::cluster.u32 r6, r3, r5; mapa.shared::cluster.u32 r7, r30, r5;\n"
                   "mad.lo.u32 r8, r4, 1000, 5;\natom.shared::cluster.add.u32 r9, [r6], r8;\n"
                   "red.shared::cluster.add.u32 [r6], r9;\n"
                   "st.shared::cluster.u32 [r6+128], r4;\n"
                   "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r7];\n"
                   "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p1, [r30], 0;\n@!p1 bra W;\n"
                   "ld.shared.u32 r10, [r3]; ld.shared.u32 r11, [r3+128]; mad.lo.u32 r10, r11, 7, r10;\n"
                   "mad.lo.u32 r2, r1, 32, r0; mul.wide.u32 d2, r2, 4; add.u64 d2, d2, d0;\n"
                   "st.global.u32 [d2], r10;\n" CLUSTER_SYNC,
                   NULL, NULL),
            8, 32, 4);
        clean("stores into the next block", code);
        good = true;
        for (unsigned k = 0; k < 8 * 32; k++) {
            unsigned from = (k / 32 + 3) & 3, t = k % 32;
            good &= output[k] == t + from * 1000 + 5 + t + from * 7;
        }
        CHECK(good, "stores into the next block with %d threads", threads);
    }
    set_option("threads", 0);
}

/* Threads that exit do not keep the cluster's barrier waiting. */
static void test_cluster_exits(void) {
    int code = execute(kernel("mov.u32 r2, %cluster_ctarank; setp.ge.u32 p0, r0, 40; setp.eq.u32 p1, r2, 1;\n"
                              "and.pred p0, p0, p1;\nmov.u32 r3, 0;\n@!p0 bra GO;\n"
                              "L: add.u32 r3, r3, 1; setp.lt.u32 p2, r3, 50000;\n@p2 bra L;\nexit;\n"
                              "GO: barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                              "mad.lo.u32 r4, r1, 64, r0; mul.wide.u32 d2, r4, 4; add.u64 d2, d2, d0; "
                              "st.global.u32 [d2], r4;\n",
                              NULL, NULL),
                       2, 64, 2);
    clean("exits at the cluster's barrier", code);
    CHECK(output[103] == 103 && output[104] == 0xeeeeeeee && output[63] == 63,
          "exits at the cluster's barrier");
}

/* Whoever lends its shared memory has to stay until it was read, whichever block runs first. */
static void test_cluster_lender(void) {
    static const char *const waits[] = { "", CLUSTER_SYNC };
    for (long seed = -1; seed < 5; seed++)
        for (int n = 0; n < 2; n++) {
            char body[1500];
            snprintf(body, sizeof body,
                     "st.shared.u32 [r31], 5;\n" CLUSTER_SYNC "mov.u32 r2, %%cluster_ctarank; "
                     "setp.eq.u32 p0, r2, 0;\n@p0 bra E;\nmapa.shared::cluster.u32 r3, r31, 0;\n"
                     "ld.shared::cluster.u32 r4, [r3]; st.global.u32 [d0], r4;\nE:\n%s", waits[n]);
            set_option("seed", seed);
            int code = execute(kernel(body, NULL, NULL), 2, 1, 2);
            if (n) clean("a block that stays", code);
            else CHECK(!strncmp(found, "ended-block:", 12), "seed %ld: a block that leaves: %s", seed, found);
            report_clear();
        }
    set_option("seed", -1);
}

/* st.async and red.async: the values arrive with their bytes at the other block's barrier. */
static void test_store_async(void) {
    int code =
        execute(kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n"
                       "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 896;\n"
                       "shl.b32 r2, r0, 4; add.u32 r3, r31, r2; shl.b32 r12, r0, 3; add.u32 r13, r31, r12;\n"
                       "st.shared.u32 [r13+1024], r0;\n" CLUSTER_SYNC
                       "mov.u32 r4, %cluster_ctarank; xor.b32 r5, r4, 1;\n"
                       "mapa.shared::cluster.u32 r6, r3, r5; mapa.shared::cluster.u32 r7, r30, r5;\n"
                       "mapa.shared::cluster.u32 r14, r13, r5;\n"
                       "add.u32 r8, r0, 1; add.u32 r9, r0, 2;\n"
                       "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [r6], {r0, r8, r9, "
                       "r4}, [r7];\n"
                       "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
                       "[r14+1024], r9, [r7];\n"
                       "cvt.u64.u32 d6, r0;\n"
                       "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [r14+2048], d6, [r7];\n"
                       "W: mbarrier.try_wait.parity.shared.b64 p1, [r30], 0;\n@!p1 bra W;\n"
                       "ld.shared.v4.u32 {r10, r11, r15, r16}, [r3]; ld.shared.u32 r17, [r13+1024];\n"
                       "ld.shared.u64 d7, [r13+2048]; cvt.u32.u64 r18, d7;\n"
                       "mad.lo.u32 r19, r1, 32, r0; mul.wide.u32 d2, r19, 24; add.u64 d2, d2, d0;\n"
                       "st.global.u32 [d2], r10; st.global.u32 [d2+4], r11; st.global.u32 [d2+8], r15;\n"
                       "st.global.u32 [d2+12], r16; st.global.u32 [d2+16], r17; st.global.u32 [d2+20], "
                       "r18;\n" CLUSTER_SYNC,
                       NULL, NULL),
                2, 32, 2);
    clean("st.async and red.async", code);
    bool good = true;
    for (unsigned k = 0; k < 64; k++) {
        unsigned t = k % 32;
        const uint32_t want[] = {t, t + 1, t + 2, k < 32, t + t + 2, t};
        good &= !memcmp(output + k * 6, want, sizeof want);
    }
    CHECK(good, "st.async and red.async");
}

static void test_cluster_faults(void) {
    pair("a block that is not there", "mov.u32 r2, @@;\nmapa.shared::cluster.u32 r3, r31, r2; // here\n", "2",
         "1", 700, "cluster-rank", 2, 32, 2);
    pair("a block that has ended",
         "setp.eq.u32 p7, r0, 0;\n@p7 st.shared.u32 [r31], r0;\n" CLUSTER_SYNC
         "mov.u32 r2, %cluster_ctarank;\nxor.b32 r3, r2, 1;\n"
         "setp.eq.u32 p0, r2, 0;\nmapa.shared::cluster.u32 r4, r31, 1;\nmov.u32 r5, 0;\n@!p0 bra OUT;\n"
         "L: add.u32 r5, r5, 1; setp.lt.u32 p1, r5, 300000;\n@p1 bra L;\n"
         "ld.shared::cluster.u32 r6, [r4]; // here\nOUT: @@\n",
         "", CLUSTER_SYNC, 719, "ended-block", 2, 32, 2);
    pair("another block's through shared::cta",
         "setp.eq.u32 p7, r0, 0;\n@p7 st.shared.u32 [r31], r0;\n" CLUSTER_SYNC
         "mapa.shared::cluster.u32 r4, r31, 1;\n"
         "ld.@@.u32 r6, [r4]; // here\n" CLUSTER_SYNC,
         "shared", "shared::cluster", 700, "out-of-bounds", 2, 32, 2);
    static const char *const past[][2] = {{"0x1000000", "0"}, {"0x2000000", "0"}, {"0x5000000", "16"}};
    for (unsigned k = 0; k < 3; k++)   /* past the window of the own block, without a cluster and with one */
        for (unsigned cluster = 0; cluster < 3; cluster += 2) {
            pair("a generic address past the own window",
                 "mov.u64 d3, sm; cvta.shared.u64 d3, d3; add.u64 d3, d3, @@;\nst.u32 [d3], r0; // here\n",
                 past[k][0], past[k][1], 700, "out-of-bounds", 2, 1, cluster);
            pair("an atomic there",
                 "mov.u64 d3, sm; cvta.shared.u64 d3, d3; add.u64 d3, d3, @@;\nst.shared.u32 [r31], r0;\n"
                 "st.shared.u32 [r31+16], r0;\natom.add.u32 r2, [d3], r0; // here\n",
                 past[k][0], past[k][1], 700, "out-of-bounds", 2, 1, cluster);
            pair("mapa of it", "add.u32 r2, r31, @@;\nmapa.shared::cluster.u32 r3, r2, 0; // here\n", past[k][0],
                 past[k][1], 700, "cluster-rank", 2, 1, cluster);
            pair("a bulk copy to it",
                 "mbarrier.init.shared.b64 [r30], 1;\nfence.proxy.async;\nadd.u32 r2, r31, @@;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 d4, [r30], 16;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r2], [d1], 16, [r30]; // here\n"
                 "W: mbarrier.try_wait.parity.shared.b64 p1, [r30], 0;\n@!p1 bra W;\n",
                 past[k][0], past[k][1], 700, "out-of-bounds", 2, 1, cluster);
        }
    pair("a read-only load of what a bulk store wrote",
         "shl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\nfence.proxy.async;\nbar.sync 0;\n"
         "setp.eq.u32 p0, r0, 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128;\n"
         "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\nbar.sync 0;\n"
         "cvt.u64.u32 d3, r2; add.u64 d3, d3, d0;\nld.global.nc.u32 r4, [d3+@@]; // here\n"
         "add.u32 r4, r4, 1; st.global.u32 [d3+4096], r4;\n",
         "0", "256", 0, "nc-written", 1, 32, 0);
    pair("arriving twice",
         "barrier.cluster.arrive.aligned;\n@@\nbarrier.cluster.arrive.aligned; // "
         "here\nbarrier.cluster.wait.aligned;\n",
         "", "barrier.cluster.wait.aligned;", 0, "cluster-barrier", 2, 32, 2);
    pair("waiting without arriving", "@@\nbarrier.cluster.wait.aligned; // here\n", "",
         "barrier.cluster.arrive.aligned;", 0, "cluster-barrier", 2, 32, 2);
    pair("half a warp at the cluster's barrier",
         "setp.lt.u32 p0, r0, 16;\n@p0 bra OUT;\nbarrier.cluster.arrive@@; // here\nbarrier.cluster.wait@@; "
         "// here\n"
         "bra END;\nOUT: barrier.cluster.arrive;\nbarrier.cluster.wait;\nEND:\n",
         ".aligned", "", 0, "barrier-divergence", 2, 32, 2);
    pair("one block never arrives",
         "mov.u32 r2, %cluster_ctarank; setp.eq.u32 p0, r2, 1; setp.ne.u32 p3, r2, "
         "r2;\nbarrier.cluster.arrive;\n"
         "@@ mbarrier.init.shared.b64 [r30], 1;\n"
         "W: @@ mbarrier.try_wait.parity.shared.b64 p1, [r30], 0; // here\n@@ bra W;\n"
         "barrier.cluster.wait;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
         "@p0", "@p3", 702, "deadlock", 2, 1, 2);
}

/* --- bulk copies ------------------------------------------------------------------------------ */

#define INIT_BAR "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
#define LOAD_1K                                                                                              \
    "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 1024;\n"                                             \
    "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1], 1024, [r30];\n"
#define WAIT_BAR(n) "W" n ": mbarrier.try_wait.parity.shared.b64 p6, [r30], 0;\n@!p6 bra W" n ";\n"

static void test_bulk_copies(void) {
    /* in, one word changed by each thread, out */
    int code = execute(
        kernel(
            INIT_BAR LOAD_1K WAIT_BAR(
                "1") "shl.b32 r2, r0, 2; add.u32 r3, r31, r2; ld.shared.u32 r4, [r3]; add.u32 r4, r4, r0;\n"
                     "st.shared.u32 [r3], r4;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
                     "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 512;\n"
                     "@p0 cp.async.bulk.commit_group;\n"
                     "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0+1024], [r31+512], 512;\n"
                     "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 1;\n"
                     "ld.global.u32 r5, [d0]; st.global.u32 [d0+2048], r5;\n"
                     "@p0 cp.async.bulk.wait_group.read 0;\n",
            NULL, NULL),
        1, 32, 0);
    clean("bulk copies", code);
    bool good = output[512] == input[0];
    for (unsigned k = 0; k < 256; k++)
        good &= output[k < 128 ? k : 256 + k - 128] == input[k] + (k < 32 ? k : 0);
    CHECK(good && output[128] == 0xeeeeeeee, "bulk copies");

    /* multicast: block 0 sends to all four; then block 3 sends its own to block 1 */
    code = execute(
        kernel("setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n"
               "@p0 mbarrier.init.shared.b64 [r30+8], 1;\n@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], "
               "256;\n"
               "mov.u32 r4, %cluster_ctarank; setp.eq.u32 p1, r4, 0; and.pred p1, p1, p0;\n"
               "setp.eq.u32 p2, r4, 1; and.pred p3, p2, p0;\nsetp.eq.u32 p4, r4, 3; and.pred p4, p4, p0;\n"
               "@p3 mbarrier.arrive.expect_tx.shared.b64 _, [r30+8], 128;\n"
               "shl.b32 r2, r0, 2; add.u32 r3, r31, r2; add.u32 r5, r4, r0; st.shared.u32 [r3+512], r5;\n"
               "fence.proxy.async;\n" CLUSTER_SYNC "mov.u16 h0, 0xf;\n"
               "@p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
               "[r31], [d1], 256, [r30], h0;\n"
               "mapa.shared::cluster.u32 r6, r31, 1; mapa.shared::cluster.u32 r7, r30, 1;\n"
               "@p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r6+1024], "
               "[r31+512], 128, [r7+8];\n" WAIT_BAR(
                   "1") "@!p2 bra NO;\n"
                        "W2: mbarrier.try_wait.parity.shared.b64 p6, [r30+8], 0;\n@!p6 bra W2;\n"
                        "ld.shared.u32 r8, [r3+1024]; mul.wide.u32 d2, r0, 4; add.u64 d2, d2, d0; "
                        "st.global.u32 [d2+4096], r8;\n"
                        "NO: ld.shared.u32 r8, [r3]; ld.shared.u32 r9, [r3+128]; xor.b32 r8, r8, r9;\n"
                        "mad.lo.u32 r2, r1, 32, r0; mul.wide.u32 d2, r2, 4; add.u64 d2, d2, d0; "
                        "st.global.u32 [d2], r8;\n" CLUSTER_SYNC,
               NULL, NULL),
        4, 32, 4);
    clean("multicast", code);
    good = true;
    for (unsigned k = 0; k < 128; k++) good &= output[k] == (input[k % 32] ^ input[32 + k % 32]);
    for (unsigned k = 0; k < 32; k++) good &= output[1024 + k] == 3 + k;
    CHECK(good, "multicast");
}

/* cp.reduce.async.bulk of every operation and type, against the same of one element after the other */
static void test_bulk_reductions(void) {
    static const struct {
        const char *op, *type;
        int size;
    } cases[] = {{"add", "u32", 4}, {"add", "s32", 4}, {"add", "u64", 8},       {"add", "f32", 4},
                 {"add", "f64", 8}, {"min", "u32", 4}, {"max", "s32", 4},       {"min", "s64", 8},
                 {"max", "u64", 8}, {"inc", "u32", 4}, {"dec", "u32", 4},       {"and", "b32", 4},
                 {"or", "b64", 8},  {"xor", "b32", 4}, {"add.noftz", "f16", 2}, {"add.noftz", "bf16", 2},
                 {"min", "f16", 2}, {"max", "bf16", 2}};
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
        char body[2000];
        int size = cases[k].size;
        bool real = *cases[k].type == 'f' || *cases[k].type == 'b'
                        ? cases[k].type[1] != '3' && cases[k].type[1] != '6'
                        : false;
        real |= *cases[k].type == 'f';
        uint64_t start_value = size == 2 ? (cases[k].type[0] == 'f' ? 0x3c00 : 0x3f80)
                               : real    ? (size == 4 ? 0x3f800000 : UINT64_C(0x3ff0000000000000))
                                         : 1000;
        snprintf(body, sizeof body,
                 "setp.eq.u32 p0, r0, 0;\nmov.u64 d2, 0x%llx; mul.wide.u32 d3, r0, 8; add.u64 d4, d0, d3; "
                 "st.global.b64 [d4], d2;\n"
                 "shl.b32 r2, r0, 3; add.u32 r3, r31, r2; mul.lo.u32 r4, r0, 37; cvt.u64.u32 d5, r4; "
                 "st.shared.b64 [r3], %s;\n"
                 "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                 "@p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%s [d0], [r31], 256;\n"
                 "@p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s.%s [d0], [r31], 256;\n"
                 "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n",
                 (unsigned long long)(size == 8   ? start_value
                                      : size == 4 ? start_value | start_value << 32
                                                  : start_value * UINT64_C(0x1000100010001)),
                 real ? "d2" : "d5", cases[k].op, cases[k].type, cases[k].op, cases[k].type);
        int code = execute(kernel(body, NULL, NULL), 1, 32, 0);
        clean(cases[k].op, code);
        bool good = true;
        for (unsigned t = 0; t < 32 * 8 / (unsigned)size; t++) {
            uint64_t have = 0, old = start_value, v = 0, full = t * (unsigned)size / 8 * 37;
            memcpy(&have, (char *)output + t * (unsigned)size, (size_t)size);
            v = real ? start_value : size == 8 ? full : (t & 1 ? 0 : full);
            for (int n = 0; n < 2; n++) {
                const char *o = cases[k].op;
                if (real)
                    old = !strncmp(o, "add", 3) ? 0 : start_value;
                else if (!strcmp(o, "add"))
                    old += v;
                else if (!strcmp(o, "min"))
                    old = v < old ? v : old;
                else if (!strcmp(o, "max"))
                    old = v > old ? v : old;
                else if (!strcmp(o, "inc"))
                    old = old >= v ? 0 : old + 1;
                else if (!strcmp(o, "dec"))
                    old = !old || old > v ? v : old - 1;
                else if (!strcmp(o, "and"))
                    old &= v;
                else if (!strcmp(o, "or"))
                    old |= v;
                else
                    old ^= v;
            }
            if (real && !strncmp(cases[k].op, "add", 3)) /* 1 + 1 + 1 */
                old = size == 8                 ? UINT64_C(0x4008000000000000)
                      : size == 4               ? 0x40400000
                      : cases[k].type[0] == 'f' ? 0x4200
                                                : 0x4040;
            good &= have == old;
        }
        CHECK(good, "cp.reduce %s.%s", cases[k].op, cases[k].type);
    }
}

static void test_bulk_faults(void) {
    pair("size",
         INIT_BAR "mov.u32 r2, @@;\n@p0 mbarrier.expect_tx.shared.b64 [r30], r2;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1], r2, "
                  "[r30]; // here\n"
                  "@p0 mbarrier.arrive.shared.b64 _, [r30];\n" WAIT_BAR("1"),
         "24", "32", 716, "misaligned", 1, 32, 0);
    pair("source",
         INIT_BAR "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 32;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1+@@], 32, "
                  "[r30]; // here\n" WAIT_BAR("1"),
         "8", "16", 716, "misaligned", 1, 32, 0);
    pair("destination",
         INIT_BAR "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 32;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31+@@], [d1], 32, "
                  "[r30]; // here\n" WAIT_BAR("1"),
         "8", "16", 716, "misaligned", 1, 32, 0);
    pair("beyond global memory",
         INIT_BAR "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 32;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1+@@], 32, "
                  "[r30]; // here\n" WAIT_BAR("1"),
         "65520", "65504", 700, "out-of-bounds", 1, 32, 0);
    pair("beyond shared memory",
         INIT_BAR "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31+@@], [d1], 64, "
                  "[r30]; // here\n" WAIT_BAR("1"),
         "32864", "32704", 700, "out-of-bounds", 1, 32, 0);
    pair("no barrier",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30+@@], 1;\nbar.sync 0;\n"
         "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1], 1024, [r30]; // "
         "here\n"
         "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 1024;\n" WAIT_BAR("1"),
         "8", "0", 719, "mbarrier-uninitialised", 1, 32, 0);
    pair("a read before the wait", INIT_BAR LOAD_1K "@@\nld.shared.u32 r2, [r31]; // here\n" WAIT_BAR("2"),
         "", WAIT_BAR("1"), 0, "async-read", 1, 32, 0);
    pair("a write before the wait",
         INIT_BAR LOAD_1K "@p0 st.shared.u32 [r31+@@], r0; // here\n" WAIT_BAR("2"), "0", "1024", 0,
         "async-write", 1, 32, 0);
    pair("no wait at all",
         INIT_BAR "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n"
                  "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1], 64, "
                  "[r30]; // here\n@@\n",
         "", WAIT_BAR("1"), 0, "async-exit", 1, 32, 0);
    pair(
        "a store whose source changes",
        "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n"
        "fence.proxy.async;\nbar.sync 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128;\n"
        "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group.read @@;\nbar.sync 0;\n"
        "st.shared.u32 [r3], 5; // here\n@p0 cp.async.bulk.wait_group 0;\n",
        "1", "0", 0, "async-write", 1, 32, 0);
    CHECK(output[7] == 7, "the store took what was there: %u", output[7]);
    pair(
        "a store that is read before it ended",
        "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n"
        "fence.proxy.async;\nbar.sync 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128;\n"
        "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group@@ 0;\nbar.sync 0;\n"
        "ld.global.u32 r4, [d0+4]; // here\n@p0 cp.async.bulk.wait_group 0;\n",
        ".read", "", 0, "async-read", 1, 32, 0);
    pair("no proxy fence",
         "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n"
         "@@\nbar.sync 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128; // here\n"
         "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n",
         "", "fence.proxy.async.shared::cta;", 0, "missing-proxy-fence", 1, 32, 0);
    pair("a proxy fence before the writes",
         "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; fence.proxy.async;\nst.shared.u32 "
         "[r3], r0;\n"
         "bar.sync 0;\n@@ fence.proxy.async;\n"
         "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128; // here\n"
         "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n",
         "@!p0", "@p0", 0, "missing-proxy-fence", 1, 32, 0);
    pair("the sender's fence, after the writes in time but not in order",
         "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\nmov.u32 r4, 0;\n"
         "LATE:\nadd.u32 r4, r4, 1;\nsetp.lt.u32 p1, r4, 1000;\nand.pred p1, p1, p0;\n@p1 bra LATE;\n"
         "@p0 fence.proxy.async;\nbar.sync 0;\n@@\n"
         "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 256; // here\n"
         "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n",
         "", "@p0 fence.proxy.async;", 0, "missing-proxy-fence", 1, 64, 0);
    pair("the writers' fence behind their arrival",
         INIT_BAR "setp.lt.u32 p1, r0, 32;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n"
                  "@p1 bra SEND;\n@@\nbar.arrive 1, 64;\nfence.proxy.async;\nbra END;\nSEND:\nbar.sync 1, 64;\n"
                  "mov.u32 r4, 0;\nLATE:\nadd.u32 r4, r4, 1;\nsetp.lt.u32 p2, r4, 1000;\n@p2 bra LATE;\n"
                  "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31+128], 128; // here\n"
                  "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\nEND:\n",
         "", "fence.proxy.async;", 0, "missing-proxy-fence", 1, 64, 0);
    pair("a fence by a thread that neither wrote nor sends",
         "setp.eq.u32 p0, r0, 0;\nsetp.eq.u32 p1, r0, 40;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2;\n"
         "@!p1 st.shared.u32 [r3], r0;\nbar.sync 0;\n@p1 st.shared.u32 [r3], r0;\n@p1 fence.proxy.async;\n@@\n"
         "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128; // here\n"
         "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n",
         "", "bar.sync 0;", 0, "missing-proxy-fence", 1, 64, 0);
    execute(kernel(INIT_BAR LOAD_1K "ld.shared.u32 r2, [r31];\n" WAIT_BAR("2"), NULL, NULL), 1, 32, 0);
    CHECK(!strstr(found, "uninitialised"), "one fault, one finding: %s", found);
    report_clear();
    pair(
        "a load into what is still being stored",
        INIT_BAR
        "shl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\nfence.proxy.async;\nbar.sync 0;\n"
        "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128;\n@p0 cp.async.bulk.commit_group;\n"
        "@p0 cp.async.bulk.wait_group.read @@;\n@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 128;\n"
        "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d1], 128, [r30]; // "
        "here\n" WAIT_BAR("1") "@p0 cp.async.bulk.wait_group 0;\n",
        "1", "0", 0, "async-write", 1, 32, 0);
    pair("a store of what is still being loaded",
         INIT_BAR LOAD_1K
         "@@\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128; // here\n"
         "@p0 cp.async.bulk.commit_group;\n" WAIT_BAR("2") "@p0 cp.async.bulk.wait_group 0;\n",
         "", WAIT_BAR("1"), 0, "async-read", 1, 32, 0);
    pair("a group that was not committed",
         "setp.eq.u32 p0, r0, 0;\nshl.b32 r2, r0, 2; add.u32 r3, r31, r2; st.shared.u32 [r3], r0;\n"
         "fence.proxy.async;\nbar.sync 0;\n@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], 128; "
         "// here\n"
         "@@\n@p0 cp.async.bulk.wait_group 0;\n",
         "", "@p0 cp.async.bulk.commit_group;", 0, "async-exit", 1, 32, 0);
    pair("a mask beyond the cluster",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n"
         "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n" CLUSTER_SYNC
         "mov.u32 r4, %cluster_ctarank; setp.eq.u32 p1, r4, 0; and.pred p1, p1, p0;\nmov.u16 h0, @@;\n"
         "@p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r31], "
         "[d1], 64, [r30], h0; // here\n" WAIT_BAR("1") CLUSTER_SYNC,
         "5", "3", 719, "multicast-mask", 2, 32, 2);
    pair("a barrier of another block",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n"
         "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 64;\n" CLUSTER_SYNC
         "mov.u32 r4, %cluster_ctarank; xor.b32 r5, r4, 1;\nmapa.shared::cluster.u32 r6, r31, r5;\n"
         "mapa.shared::cluster.u32 r7, r30, @@;\n"
         "@p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r6], [d1], 64, [r7]; // "
         "here\n" WAIT_BAR("1") CLUSTER_SYNC,
         "r4", "r5", 719, "bulk-barrier", 2, 32, 2);
}

/* --- tensors ---------------------------------------------------------------------------------- */

typedef struct shape {
    int type, size;
    unsigned rank;
    uint64_t dims[5], strides[4]; /* bytes */
    unsigned box[5], steps[5];
    int swizzle, fill;
    int32_t at[5];
} shape;

static _Alignas(64) uint8_t map_bytes[128];

/* What byte `offset` of the box in shared memory (from a 1024-byte boundary) has to be: plain loops. */
static void expect_box(const shape *s, const uint8_t *memory, uint8_t *box, unsigned *bytes) {
    static const unsigned masks[] = {0, 1, 3, 7};
    unsigned n[5] = {1, 1, 1, 1, 1}, at = 0, x[5];
    for (unsigned k = 0; k < s->rank; k++) n[k] = k ? (s->box[k] + s->steps[k] - 1) / s->steps[k] : s->box[0];
    for (x[4] = 0; x[4] < n[4]; x[4]++)
        for (x[3] = 0; x[3] < n[3]; x[3]++)
            for (x[2] = 0; x[2] < n[2]; x[2]++)
                for (x[1] = 0; x[1] < n[1]; x[1]++)
                    for (x[0] = 0; x[0] < n[0]; x[0]++)
                        for (int b = 0; b < s->size; b++, at++) {
                            bool inside = true;
                            int64_t offset = b;
                            for (unsigned k = 0; k < s->rank; k++) {
                                int64_t c = s->at[k] + (int64_t)x[k] * (k ? (int64_t)s->steps[k] : 1);
                                inside &= c >= 0 && c < (int64_t)s->dims[k];
                                offset += c * (k ? (int64_t)s->strides[k - 1] : s->size);
                            }
                            unsigned to = at ^ (at >> 7 & masks[s->swizzle]) << 4;
                            box[to] = inside    ? memory[offset]
                                      : s->fill ? (b == s->size - 1 ? 0x7f : 0xff)
                                                : 0;
                        }
    *bytes = at;
}

static int make_map(const shape *s, dptr memory) {
    return encode(map_bytes, s->type, s->rank, (void *)(uintptr_t)memory, s->dims, s->strides, s->box,
                  s->steps, 0, s->swizzle, 0, s->fill);
}

static const char *coordinates(const shape *s) {
    static char list[100];
    size_t n = (size_t)sprintf(list, "{");
    for (unsigned k = 0; k < s->rank; k++) n += (size_t)sprintf(list + n, "%s%d", k ? ", " : "", s->at[k]);
    sprintf(list + n, "}");
    return list;
}

#define TENSOR_HEAD                                                                                          \
    ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 sm[32768];\n"                   \
    ".shared .align 8 .b64 bars[2];\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{\n" \
    ".reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<40>; .reg .b64 d<20>;\n"                                   \
    "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mov.u32 r31, sm; mov.u32 r30, bars; setp.eq.u32 p0, r0, "  \
    "0;\n"

static int run_tensor(const char *ptx, dptr out) {
    handle m = load(ptx), f = function(m, "k");
    void *params[] = {map_bytes, &out};
    if (!f) {
        fprintf(stderr, "%s\n", ptx);
        return -1;
    }
    report_clear();
    int code = start(f, 1, 32, 0, 0, params);
    findings();
    if (code >= 700) report_clear();
    cuModuleUnload_(m);
    return code;
}

static void tensor_load(const char *name, const shape *s, dptr memory, const uint8_t *host,
                        bool by_register) {
    static uint8_t want[40000], have[40000];
    char ptx[4000], map[200];
    unsigned bytes;
    dptr out = alloc(sizeof want);
    expect_box(s, host, want, &bytes);
    if (!CHECK(make_map(s, memory) == 0, "%s: the map is refused", name)) {
        cuMemFree_v2_(out);
        return;
    }
    snprintf(map, sizeof map, by_register ? "d5" : "map");
    snprintf(
        ptx, sizeof ptx,
        TENSOR_HEAD
        "mov.b64 d4, map; cvta.param.u64 d5, d4;\n@p0 prefetch.tensormap [d5];\n"
        "@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"
        "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], %u;\n"
        "@p0 cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes [r31], [%s, "
        "%s], [r30];\n"
        "W: mbarrier.try_wait.parity.shared.b64 p1, [r30], 0;\n@!p1 bra W;\n"
        "@p0 cp.async.bulk.global.shared::cta.bulk_group [d0], [r31], %u;\n@p0 cp.async.bulk.commit_group;\n"
        "@p0 cp.async.bulk.wait_group 0;\nret;\n}\n",
        bytes, s->rank, map, coordinates(s), (bytes + 127) / 128 * 128);
    clean(name, run_tensor(ptx, out));
    cuMemcpyDtoH_v2_(have, out, bytes);
    for (unsigned b = 0; s->type >= 11 && b < bytes; b += 4) { /* TFLOAT32: 13 bits of the mantissa go */
        uint32_t word;
        memcpy(&word, want + b, 4);
        uint32_t tail = word & 0x1fff;
        if ((word >> 23 & 255) == 255) continue;
        word += (tail >= 0x1000 ? 0x2000 : 0) - tail;
        memcpy(want + b, &word, 4);
    }
    unsigned bad = 0;
    while (bad < bytes && have[bad] == want[bad]) bad++;
    CHECK(bad == bytes, "%s: byte %u is %02x, expected %02x", name, bad, have[bad], want[bad]);
    cuMemFree_v2_(out);
}

/* Stores (or adds) a box of k * 3 + 1 in every 16-bit word, through the swizzle. */
static void tensor_store(const char *name, const shape *s, bool add) {
    static uint8_t host[1 << 16], want[1 << 16];
    char ptx[4000];
    unsigned bytes = (unsigned)s->size;
    dptr memory = alloc(sizeof host);
    for (unsigned k = 0; k < sizeof host; k++) host[k] = (uint8_t)(k * 7);
    cuMemcpyHtoD_v2_(memory, host, sizeof host);
    if (!CHECK(make_map(s, memory) == 0, "%s: the map is refused", name)) {
        cuMemFree_v2_(memory);
        return;
    }
    for (unsigned k = 0; k < s->rank; k++) bytes *= s->box[k];
    snprintf(ptx, sizeof ptx,
             TENSOR_HEAD
             "mov.u32 r1, r0;\nL: mad.lo.u32 r2, r1, 3, 1; shl.b32 r3, r1, 1; add.u32 r3, r3, r31;\n"
             "cvt.u16.u32 h0, r2; st.shared.u16 [r3], h0; add.u32 r1, r1, 32; setp.lt.u32 p1, r1, %u;\n@p1 "
             "bra L;\n"
             "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
             "@p0 cp%s.async.bulk.tensor.%ud.global.shared::cta%s.tile.bulk_group [map, %s], [r31];\n"
             "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\nret;\n}\n",
             bytes / 2, add ? ".reduce" : "", s->rank, add ? ".add" : "", coordinates(s));
    clean(name, run_tensor(ptx, memory));
    memcpy(want, host, sizeof want);
    static const unsigned masks[] = {0, 1, 3, 7};
    unsigned x[3], at = 0;
    for (x[2] = 0; x[2] < (s->rank > 2 ? s->box[2] : 1); x[2]++)
        for (x[1] = 0; x[1] < s->box[1]; x[1]++)
            for (x[0] = 0; x[0] < s->box[0]; x[0]++, at += 2) {
                unsigned from = at ^ (at >> 7 & masks[s->swizzle]) << 4;
                uint16_t v = (uint16_t)(from / 2 * 3 + 1), old;
                bool inside = true;
                int64_t offset = 0;
                for (unsigned k = 0; k < s->rank; k++) {
                    int64_t c = s->at[k] + (int64_t)x[k];
                    inside &= c >= 0 && c < (int64_t)s->dims[k];
                    offset += c * (k ? (int64_t)s->strides[k - 1] : 2);
                }
                if (!inside) continue;
                memcpy(&old, want + offset, 2);
                if (add) v = (uint16_t)(v + old); /* of u32 elements: see the caller */
                memcpy(want + offset, &v, 2);
            }
    cuMemcpyDtoH_v2_(host, memory, sizeof host);
    unsigned bad = 0;
    while (bad < sizeof host && host[bad] == want[bad]) bad++;
    CHECK(bad == sizeof host, "%s: byte %u differs", name, bad);
    cuMemFree_v2_(memory);
}

static void test_tensor_loads(void) {
    static uint8_t host[1 << 18];
    static const int sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    dptr memory = alloc(sizeof host);
    for (unsigned k = 0; k < sizeof host; k++) host[k] = (uint8_t)((k * 2654435761u) >> 13);
    cuMemcpyHtoD_v2_(memory, host, sizeof host);
    for (int type = 0; type < 13; type++) {
        unsigned size = (unsigned)sizes[type];
        char name[60];
        for (int swizzle = 0; swizzle < 4; swizzle++) {
            shape s = {.type = type,
                       .size = (int)size,
                       .rank = 2,
                       .dims = {400 / size, 37},
                       .strides = {464},
                       .box = {(swizzle ? 16u << swizzle : 48) / size, 20},
                       .steps = {1, 1},
                       .swizzle = swizzle,
                       .at = {(int32_t)(32 / size), 3}};
            snprintf(name, sizeof name, "type %d, swizzle %d, inside", type, swizzle);
            tensor_load(name, &s, memory, host, type & 1);
            s.at[0] = -3;
            s.at[1] = 30;
            snprintf(name, sizeof name, "type %d, swizzle %d, over the edge", type, swizzle);
            tensor_load(name, &s, memory, host, true);
            if (type < 6) continue;
            s.fill = 1;
            snprintf(name, sizeof name, "type %d, swizzle %d, filled with NaN", type, swizzle);
            tensor_load(name, &s, memory, host, true);
        }
    }
    shape line = {.type = 7, .size = 4, .rank = 1, .dims = {1000}, .box = {256}, .steps = {1}, .at = {900}};
    tensor_load("1d", &line, memory, host, true);
    shape three = {.type = 6,
                   .size = 2,
                   .rank = 3,
                   .dims = {40, 9, 5},
                   .strides = {96, 1024},
                   .box = {32, 4, 3},
                   .steps = {1, 1, 1},
                   .swizzle = 2,
                   .at = {8, -2, 3}};
    tensor_load("3d", &three, memory, host, true);
    shape four = {.type = 0,
                  .size = 1,
                  .rank = 4,
                  .dims = {64, 5, 4, 3},
                  .strides = {80, 512, 4096},
                  .box = {32, 3, 2, 2},
                  .steps = {1, 1, 1, 1},
                  .swizzle = 1,
                  .at = {16, 1, 3, -1}};
    tensor_load("4d", &four, memory, host, true);
    shape five = {.type = 3,
                  .size = 4,
                  .rank = 5,
                  .dims = {16, 3, 4, 2, 3},
                  .strides = {64, 256, 2048, 8192},
                  .box = {8, 2, 3, 2, 2},
                  .steps = {1, 1, 1, 1, 1},
                  .at = {12, -1, 2, 1, 2}};
    tensor_load("5d", &five, memory, host, true);
    shape steps = {.type = 1,
                   .size = 2,
                   .rank = 3,
                   .dims = {64, 20, 9},
                   .strides = {128, 4096},
                   .box = {64, 16, 5},
                   .steps = {1, 3, 2},
                   .swizzle = 3,
                   .at = {0, 6, 1}};
    tensor_load("element strides", &steps, memory, host, true);
    shape bottom = {.type = 2,
                    .size = 4,
                    .rank = 2,
                    .dims = {16, 8},
                    .strides = {64},
                    .box = {16, 8},
                    .steps = {1, 1},
                    .swizzle = 2,
                    .at = {-2147483647 - 1, 2147483647}};
    tensor_load("far away", &bottom, memory, host, true);
    cuMemFree_v2_(memory);
}

static void test_tensor_stores(void) {
    shape s = {.type = 6,
               .size = 2,
               .rank = 2,
               .dims = {100, 30},
               .strides = {224},
               .box = {64, 16},
               .steps = {1, 1},
               .swizzle = 3,
               .at = {16, 4}};
    tensor_store("a store", &s, false);
    s.at[0] = 70;
    s.at[1] = 20;
    tensor_store("a store that is clipped", &s, false);
    s.at[0] = -5;
    s.at[1] = -7;
    tensor_store("a store that is clipped below", &s, false);
    s.swizzle = 0;
    s.rank = 3;
    s.dims[2] = 3;
    s.strides[1] = 8192;
    s.box[2] = 2;
    s.at[2] = 2;
    s.steps[2] = 1;
    tensor_store("a store of rank 3", &s, false);
}

/* One block loads a tile for all of its cluster; each checks it; f32 reduction into a tensor from all. */
static void test_tensor_multicast(void) {
    static float host[64 * 64], have[64 * 64];
    dptr memory = alloc(sizeof host), sum = alloc(sizeof host);
    _Alignas(64) uint8_t maps[2][128];
    shape s = {.type = 7,
               .size = 4,
               .rank = 2,
               .dims = {64, 64},
               .strides = {256},
               .box = {32, 8},
               .steps = {1, 1},
               .swizzle = 3};
    for (unsigned k = 0; k < 64 * 64; k++) host[k] = (float)k;
    cuMemcpyHtoD_v2_(memory, host, sizeof host);
    cuMemsetD32_v2_(sum, 0, 64 * 64);
    SAME(make_map(&s, memory), 0);
    memcpy(maps[0], map_bytes, 128);
    memcpy(maps[1], map_bytes, 128);
    SAME(replace_address(maps[1], (void *)(uintptr_t)sum), 0);
    handle m = load(
               ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 1024 .b8 sm[4096];\n"
               ".shared .align 8 .b64 bars[2];\n"
               ".visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 "
               "b[128])\n.reqnctapercluster 4\n{\n"
               ".reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<40>;\n"
               "mov.u32 r0, %tid.x; mov.u32 r31, sm; mov.u32 r30, bars; setp.eq.u32 p0, r0, 0;\n"
               "@p0 mbarrier.init.shared.b64 [r30], 1;\n@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], "
               "1024;\n"
               "mov.u32 r1, %cluster_ctarank; setp.eq.u32 p1, r1, 2; and.pred p1, p1, p0;\nmov.u16 h0, 15;\n"
               "mov.u32 r2, 32; mov.u32 r3, 24;\n" CLUSTER_SYNC
               "@p1 "
               "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
               "cluster "
               "[r31], [a, {r2, r3}], [r30], h0;\n"
               "W: mbarrier.try_wait.parity.shared.b64 p2, [r30], 0;\n@!p2 bra W;\n"
               "@p0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [b, {r2, r3}], "
               "[r31];\n"
               "@p0 cp.async.bulk.commit_group;\n@p0 cp.async.bulk.wait_group 0;\n" CLUSTER_SYNC "ret;\n}\n"),
           f = function(m, "k");
    void *params[] = {maps[0], maps[1]};
    report_clear();
    SAME(start(f, 8, 32, 0, 0, params), 0);
    CHECK(!*findings(), "multicast of a tile: %s", found);
    cuMemcpyDtoH_v2_(have, sum, sizeof have);
    bool good = true;
    for (unsigned y = 0; y < 64; y++)
        for (unsigned x = 0; x < 64; x++)
            good &= have[y * 64 + x] == (x >= 32 && y >= 24 && y < 32 ? 8 * host[y * 64 + x] : 0);
    CHECK(good, "a tile to four blocks, added by all");
    cuModuleUnload_(m);
    cuMemFree_v2_(memory);
    cuMemFree_v2_(sum);
}

/* The rules of cuTensorMapEncodeTiled: from a map that is right, one value at a time is made wrong. */
static void test_map_rules(void) {
    dptr memory = alloc(1 << 16);
    const shape good = {.type = 6,
                        .size = 2,
                        .rank = 3,
                        .dims = {64, 16, 4},
                        .strides = {128, 2048},
                        .box = {32, 8, 2},
                        .steps = {1, 1, 1},
                        .swizzle = 2};
    shape s = good;
    SAME(make_map(&s, memory), 0);
    SAME(make_map(&s, memory + 8), 1);
#define WRONG(change)                                                                                        \
    do {                                                                                                     \
        s = good;                                                                                            \
        s.change;                                                                                            \
        SAME(make_map(&s, memory), 1);                                                                       \
    } while (0)
    WRONG(rank = 0);
    WRONG(rank = 6);
    WRONG(dims[1] = 0);
    WRONG(dims[1] = (UINT64_C(1) << 32) + 1);
    WRONG(strides[0] = 120);
    WRONG(strides[1] = UINT64_C(1) << 40);
    WRONG(box[0] = 0);
    WRONG(box[0] = 12);
    WRONG(box[0] = 33);
    WRONG(box[0] = 64);
    WRONG(box[1] = 257);
    WRONG(steps[1] = 0);
    WRONG(steps[2] = 9);
    WRONG(swizzle = 7);
    WRONG(type = 16);
    WRONG(type = -1);
    WRONG(fill = 2);
    s = good;
    s.type = 1;
    s.fill = 1;
    SAME(make_map(&s, memory), 1); /* NaN for integers */
    s = good;
    SAME(encode(map_bytes + 32, 6, 3, (void *)(uintptr_t)memory, s.dims, s.strides, s.box, s.steps, 0, 2, 0,
                0),
         1);
    SAME(encode(map_bytes, 6, 3, (void *)(uintptr_t)memory, s.dims, s.strides, s.box, s.steps, 1, 0, 0, 0),
         801);
    SAME(encode(map_bytes, 6, 2, (void *)(uintptr_t)memory, s.dims, s.strides, s.box, s.steps, 1, 0, 0, 0),
         1);
    SAME(encode(NULL, 6, 3, (void *)(uintptr_t)memory, s.dims, s.strides, s.box, s.steps, 0, 0, 0, 0), 1);
    SAME(encode_im2col(map_bytes, 6, 4, (void *)(uintptr_t)memory, s.dims, s.strides, NULL, NULL, 8, 8,
                       s.steps, 0, 0, 0, 0),
         801);
    SAME(make_map(&s, memory), 0);
    SAME(replace_address(map_bytes, (void *)(uintptr_t)(memory + 64)), 0);
    SAME(replace_address(map_bytes, (void *)(uintptr_t)(memory + 8)), 1);
    map_bytes[9] ^= 1;
    SAME(replace_address(map_bytes, (void *)(uintptr_t)memory), 1);
    cuMemFree_v2_(memory);
}

static void tensor_fault(const char *name, const char *body, const char *kind, int code, dptr out) {
    char ptx[4000];
    snprintf(ptx, sizeof ptx, TENSOR_HEAD "%s\nret;\n}\n", body);
    int got = run_tensor(ptx, out);
    CHECK(got == code, "%s: %d, expected %d: %s", name, got, code, found);
    size_t n = strlen(kind);
    if (n)
        CHECK(!strncmp(found, kind, n) && found[n] == ':' && strstr(found, "// here"), "%s: %s", name, found);
    else
        CHECK(!*found, "%s: %s", name, found);
    report_clear();
}

#define TILE(map, where)                                                                                     \
    "@p0 mbarrier.init.shared.b64 [r30], 1;\nbar.sync 0;\n"                                                  \
    "@p0 mbarrier.arrive.expect_tx.shared.b64 _, [r30], 1024;\n"                                             \
    "@p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r31+" where "], [" map \
    ", {0, 0}], [r30]; // here\n"                                                                            \
    "W: mbarrier.try_wait.parity.shared.b64 p1, [r30], 0;\n@!p1 bra W;\n"

static void test_tensor_faults(void) {
    dptr memory = alloc(4096);
    shape s = {.type = 6,
               .size = 2,
               .rank = 2,
               .dims = {64, 32},
               .strides = {128},
               .box = {64, 8},
               .steps = {1, 1},
               .swizzle = 3};
    cuMemsetD8_v2_(memory, 1, 4096);
    SAME(make_map(&s, memory), 0);
    tensor_fault("a tile", TILE("map", "0"), "", 0, memory);
    tensor_fault("a tile at 128", TILE("map", "128"), "", 0, memory);
    tensor_fault("a tile at 64", TILE("map", "64"), "misaligned", 716, memory);
    tensor_fault("no map", "mov.u64 d5, d0;\n" TILE("d5", "0"), "tensor-map", 715, memory);
    map_bytes[20] ^= 64;
    tensor_fault("a map that was changed", TILE("map", "0"), "tensor-map", 715, memory);
    s.dims[1] = 33; /* the tensor is larger than its memory */
    SAME(make_map(&s, memory), 0);
    tensor_fault("the first rows exist", TILE("map", "0"), "", 0, memory);
    s.dims[1] = 7;
    s.strides[0] = 1024;
    SAME(make_map(&s, memory), 0);
    tensor_fault("rows beyond the memory", TILE("map", "0"), "out-of-bounds", 700, memory);
    s = (shape){.type = 2,
                .size = 4,
                .rank = 3,
                .dims = {16, 4, 4},
                .strides = {64, 256},
                .box = {16, 4, 4},
                .steps = {1, 1, 1}};
    SAME(make_map(&s, memory), 0);
    tensor_fault("a map of rank 3", TILE("map", "0"), "tensor-map", 715, memory);
    cuMemFree_v2_(memory);
}

/* --- compiled CUDA ---------------------------------------------------------------------------- */

/* tests/data/nvcc/hopper_pipeline.cu: tiles by multicast, a ring of barriers over two blocks. */
static void test_compiled(void) {
    enum { TILES = 7, CLUSTERS = 3, ROWS = 16, COLUMNS = 64 };
    static float host[CLUSTERS * TILES * ROWS * COLUMNS], have[CLUSTERS * 2 * COLUMNS];
    char *ptx = read_file("tests/data/nvcc/hopper_pipeline.ptx");
    if (!CHECK(ptx != NULL, "tests/data/nvcc/hopper_pipeline.ptx is not there")) return;
    handle m = load(ptx), f = function(m, "column_sums");
    dptr memory = alloc(sizeof host), out = alloc(sizeof have);
    int tiles = TILES;
    shape s = {.type = 7,
               .size = 4,
               .rank = 2,
               .dims = {COLUMNS, CLUSTERS * TILES * ROWS},
               .strides = {256},
               .box = {COLUMNS, ROWS / 2},
               .steps = {1, 1}};
    for (size_t k = 0; k < sizeof host / sizeof *host; k++) host[k] = (float)(k * 37 % 1001);
    cuMemcpyHtoD_v2_(memory, host, sizeof host);
    SAME(make_map(&s, memory), 0);
    void *params[] = {map_bytes, &out, &tiles};
    for (int threads = 1; threads <= 3; threads++) {
        set_option("threads", threads);
        cuMemsetD32_v2_(out, 0, sizeof have / 4);
        report_clear();
        SAME(start(f, CLUSTERS * 2, 96, 0, 0, params), 0);
        CHECK(!*findings(), "compiled pipeline: %s", found);
        cuMemcpyDtoH_v2_(have, out, sizeof have);
        bool good = true;
        for (unsigned b = 0; b < CLUSTERS * 2; b++)
            for (unsigned c = 0; c < COLUMNS; c++) {
                float sum = 0;
                for (unsigned r = 0; r < TILES * ROWS; r++)
                    sum += host[(b / 2 * TILES * ROWS + r) * COLUMNS + c] * (float)(b % 2 + 1);
                good &= have[b * COLUMNS + c] == sum;
            }
        CHECK(good, "compiled pipeline with %d threads", threads);
    }
    set_option("threads", 0);
    cuMemFree_v2_(memory);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
    free(ptx);
}

/* --- races: mbarriers and the cluster's barrier order what they should -------------------------- */

static void test_order(void) {
    pair("a consumer that does not wait",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n@p0 st.shared.u32 [r31], "
         "4;\nbar.sync 0;\n"
         "setp.eq.u32 p1, r0, 32;\n@p0 st.shared.u32 [r31], 5; // here\n@p0 mbarrier.arrive.shared.b64 _, "
         "[r30];\n@!p1 bra END;\n"
         "@@ld.shared.u32 r2, [r31]; // here\nst.global.u32 [d0], r2;\nEND:\n",
         "", WAIT_BAR("1"), 0, "race", 1, 64, 0);
    pair("an mbarrier made twice",
         "mbarrier.init.shared.b64 [r30], 1;\n@@\nmbarrier.init.shared.b64 [r30], 2; // here\n", "",
         "mbarrier.inval.shared.b64 [r30];", 0, "mbarrier-live", 1, 1, 0);
    pair("an mbarrier read as data",
         "mbarrier.init.shared.b64 [r30], 1;\n@@\nld.shared.u64 d5, [r30]; // here\n"
         "st.global.u64 [d0], d5;\n",
         "",
         "mbarrier.inval.shared.b64 [r30];\nst.shared.u64 [r30], d0;", 0, "mbarrier-read", 1, 1, 0);
    pair("a producer that does not wait for its consumer",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 1;\n@p0 st.shared.u32 [r31], "
         "5;\nbar.sync 0;\n"
         "setp.eq.u32 p1, r0, 32;\n@p1 ld.shared.u32 r2, [r31]; // here\n@p1 mbarrier.arrive.shared.b64 _, "
         "[r30];\n"
         "@!p0 bra END;\n@@st.shared.u32 [r31], 6; // here\nEND:\n",
         "", WAIT_BAR("1"), 0, "race", 1, 64, 0);
    pair("an init that nobody was told of",
         "setp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r30], 32; // here\n@@\n"
         "mbarrier.arrive.shared.b64 _, [r30]; // here\n",
         "", "bar.warp.sync 0xffffffff;", 0, "race", 1, 32, 0);
    pair("the cluster's barrier",
         "setp.eq.u32 p0, r0, 0;\nsetp.eq.u32 p1, r0, 32;\n@p0 st.shared.u32 [r31], 4;\nbar.sync 0;\n@p0 "
         "st.shared.u32 [r31], 5; // here\n@@\n"
         "@p1 ld.shared.u32 r2, [r31]; // here\n",
         "", CLUSTER_SYNC, 0, "race", 2, 64, 2);
    pair("global memory over the cluster's barrier",
         "mov.u32 r2, %cluster_ctarank;\nsetp.eq.u32 p0, r2, 0;\n@p0 st.global.u32 [d0], 5; // here\n@@\n"
         "@!p0 ld.global.u32 r3, [d0]; // here\n",
         "", CLUSTER_SYNC, 0, "race", 2, 1, 2);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void test_small_things(void) {
    int code = execute(
        kernel("setmaxnreg.dec.sync.aligned.u32 40; // here\ngriddepcontrol.wait;\n"
               "griddepcontrol.launch_dependents;\ncreatepolicy.fractional.L2::evict_last.b64 d2, 1.0;\n"
               "ld.global.L2::cache_hint.u32 r2, [d1], d2;\nst.global.u32 [d0], r2;\n"
               "prefetch.tensormap [d1];\nfence.proxy.tensormap::generic.release.gpu;\n"
               "fence.proxy.tensormap::generic.acquire.gpu [d1], 128;\n",
               NULL, ".maxntid 32, 1, 1 .minnctapersm 1"),
        1, 32, 0);
    clean("small things", code);
    CHECK(output[0] == input[0], "small things");
    code = execute(kernel("setmaxnreg.inc.sync.aligned.u32 240; // here\n", NULL, NULL), 1, 32, 0);
    CHECK(!code && !strncmp(found, "setmaxnreg-ignored:", 19), "setmaxnreg without a cap: %s", found);
    report_clear();
    static const char *const wrong[] = {
        "setmaxnreg.inc.sync.aligned.u32 241;",
        "setmaxnreg.inc.sync.aligned.u32 16;",
        "setmaxnreg.inc.sync.aligned.u32 r0;",
        "mbarrier.arrive.shared::cluster.b64 d2, [r30];",
        "mbarrier.try_wait.shared::cluster.b64 p0, [r30], d2;",
        "mbarrier.init.shared::cluster.b64 [r30], 1;",
        "mbarrier.arrive.relaxed.shared::cta.b64 d2, [r30];",
        "mbarrier.arrive.cta.shared::cta.b64 d2, [r30];",
        "mbarrier.arrive.shared::cta.b64 [r30];",
        "getctarank.u32 r2, d1;",
        "barrier.cluster.arrive.acquire;",
        "barrier.cluster.wait.relaxed;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [r31], {d1,d2,d3,d4}, [r30];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.u64 [r31], d1, [r30];",
        "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r31], r1, [r30];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0], 24, [r30];",
        "cp.async.bulk.wait_group r0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [d0], [r31], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [d0], [r31], 16;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0, r1], [r30];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0, {r1,r2}], "
        "[r30];",
        "ld.global.u32 r2, [d0, {r1}];",
        "fence.proxy.tensormap::generic.acquire.sys [d0], 64;",
        "multimem.ld_reduce.relaxed.gpu.global.add.u32 r2, [d0];",
        "mbarrier.arrive.shared.b64 d2, [r30], 0;"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        CHECK(refused(kernel(wrong[k], NULL, NULL)) == 218, "accepted: %s", wrong[k]);
    static const char *const right[] = {
        "mbarrier.arrive.b64 d2, [d1];",
        "mbarrier.arrive.expect_tx.b64 d2, [d1], 16;",
        "mbarrier.arrive_drop.expect_tx.shared::cta.b64 d2, [r30], 4;",
        "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [r30];",
        "cp.async.mbarrier.arrive.noinc.b64 [d1];",
        "mbarrier.try_wait.parity.b64 p0, [d0], 1, 100;",
        "mbarrier.complete_tx.shared::cluster.b64 [r30], 4;",
        "mapa.shared::cluster.u64 d2, d1, r2;",
        "mapa.u32 r2, r3, r4;", "getctarank.u32 r2, r3;",
        "mapa.shared::cluster.u32 r2, sm+4, 1;",
        "getctarank.shared::cluster.u64 r2, d1;",
        "st.async.mbarrier::complete_tx::bytes.b32 [d0], r1, [d2];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [r31], [d0], r1, "
        "[r30], d1;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [d0], r1, d2;",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [d0, {r1,r2}], [r31], d2;",
        "cp.async.bulk.prefetch.tensor.3d.L2.global [d0, {r1,r2,r4}];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.L2::cache_hint.u32 [d0], [r31], r1, d2;"};
    for (size_t k = 0; k < sizeof right / sizeof *right; k++)
        CHECK(refused(kernel(right[k], NULL, NULL)) == 0, "refused: %s\n%s", right[k], log_text);
}

static void test_rest(void) {
    test_cluster_registers();
    test_cluster_launches();
    test_cluster_reduction();
    test_cluster_exits();
    test_cluster_lender();
    test_store_async();
    test_cluster_faults();
    test_bulk_copies();
    test_bulk_reductions();
    test_bulk_faults();
    test_tensor_loads();
    test_tensor_stores();
    test_tensor_multicast();
    test_map_rules();
    test_tensor_faults();
    test_compiled();
    test_order();
    test_small_things();
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    open_hopper();
    make_input();
    test_mbarrier();
    test_mbarrier_faults();
    test_rest();
    return sim_close();
}
