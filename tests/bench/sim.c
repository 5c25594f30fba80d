/* bench/sim.c - how fast the CPU driver runs: `make bench`, or build/bench_sim build/libptxsim.so.
 *
 * Each kernel runs several times; the figure is the best run, in million thread instructions a second on one
 * core, once with nothing but the checks of bounds and alignment, once with every check. Then launches of an
 * empty kernel, and the same work on one thread and on two. Other work on the machine makes all of it slower:
 * compare within one run only. */
#include "../simtest.h"
#include <unistd.h>

enum { ROUNDS = 5 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Everything but bounds and alignment.  A name that this driver does not have is ignored. */
static void checks(int on)
{
    static const char *const names[] = { "uninitialised", "registers", "barriers",
                                         "sync-masks",    "races",     "async" };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) set_option(names[k], on);
}

typedef struct figure { double instructions, bytes, seconds; } figure;

static dptr in, out;
enum { BYTES = 16 << 20 };

/* The best of some runs; seconds is 0 when the kernel does not load. */
static figure measure(const char *ptx, unsigned grid, unsigned block)
{
    figure f = { 0, 0, 0 };
    void *params[] = { &in, &out };
    handle m = NULL;
    if (cuModuleLoadData_(&m, ptx)) return f;
    for (int k = 0; k <= ROUNDS; k++) {
        ptxsim_counters c;
        counters_reset();
        double start = seconds();
        SAME(run(function(m, "k"), grid, block, 0, params), 0);
        double time = seconds() - start;
        ptxsim_counters_get_(&c, sizeof c);
        if (k && (k == 1 || time < f.seconds)) f.seconds = time;         /* the first one warms up */
        f.instructions = (double)c.thread_instructions;
        f.bytes = (double)(c.global_load_bytes + c.global_store_bytes + c.shared_load_bytes
                           + c.shared_store_bytes);
    }
    cuModuleUnload_(m);
    return f;
}

/* --- kernels ---------------------------------------------------------------------------------- */

#define START(target) \
    ".version 8.0\n.target " target "\n.address_size 64\n.shared .align 16 .b8 room[4096];\n" \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS \
    "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x;\n" \
    "mov.u32 r2, %ntid.x; mad.lo.u32 r3, r1, r2, r0; mul.wide.u32 d2, r3, 4; mov.u32 r10, 0;\n"
#define LOOP(times) "LOOP: add.u32 r10, r10, 1; setp.lt.u32 p0, r10, " #times ";\n"
#define END "@p0 bra LOOP;\n ret; }\n"
#define FOUR(text) text text text text

static const struct { const char *name, *ptx; unsigned grid, block;
} kernels[] = {
    {"integer loop",
     START("sm_80") "mov.u32 r4, r0; mov.u32 r5, r1;\n" LOOP(2000)
         FOUR("mad.lo.u32 r4, r4, r5, r0; xor.b32 r5, r5, r4; shl.b32 r6, r4, 3; add.u32 r5, r5, r6;\n") END,
     16, 256},
    {"float loop",
     START("sm_80") "cvt.rn.f32.u32 f0, r0; mov.f32 f1, 0f3f000000;\n"
                    "mov.f32 f2, f0;\n" LOOP(2000) FOUR("fma.rn.f32 f0, f0, f1, f2; mul.rn.f32 f3, f0, f1; "
                                                        "add.rn.f32 f2, f3, f1; max.f32 f0, f0, f2;\n") END,
     16, 256},
    {"copy of 16 MiB",
     START(
         "sm_80") "mul.wide.u32 d2, r3, 16; add.u64 d3, d0, d2; add.u64 d4, d1, d2;\n"
                  "ld.global.v4.f32 {f0, f1, f2, f3}, [d3]; st.global.v4.f32 [d4], {f0, f1, f2, f3}; ret; }",
     BYTES / 16 / 256, 256},
    {"reduction, shared",
     START("sm_80") "add.u64 d3, d0, d2; ld.global.f32 f0, [d3]; mov.u32 r4, room;\n"
                    "shl.b32 r5, r0, 2; add.u32 r4, r4, r5; st.shared.f32 [r4], f0; bar.sync 0; mov.u32 r6, "
                    "128;\n"
                    "LOOP: setp.lt.u32 p1, r0, r6; shl.b32 r7, r6, 2; add.u32 r8, r4, r7;\n"
                    "@p1 ld.shared.f32 f1, [r8]; @p1 ld.shared.f32 f2, [r4]; @p1 add.f32 f2, f2, f1;\n"
                    "@p1 st.shared.f32 [r4], f2; bar.sync 0; shr.u32 r6, r6, 1; setp.ne.u32 p0, r6, 0;\n"
                    "@p0 bra LOOP; mul.wide.u32 d4, r1, 4; add.u64 d4, d1, d4; setp.eq.u32 p2, r0, 0;\n"
                    "@p2 st.global.f32 [d4], f2; ret; }",
     1024, 256},
    {"divergent branches",
     START("sm_80") "mov.u32 r4, r0; and.b32 r9, r0, 7;\n" LOOP(
         500) "add.u32 r9, r9, 1; and.b32 r9, r9, 7; setp.lt.u32 p1, r9, 4; @p1 bra A;\n"
              "mad.lo.u32 r4, r4, 5, 1; setp.lt.u32 p2, r9, 6; @p2 bra B; add.u32 r4, r4, 1; bra B;\n"
              "A: xor.b32 r4, r4, 99; setp.lt.u32 p2, r9, 2; @p2 bra B; add.u32 r4, r4, 3;\n"
              "B:\n" END,
     16, 256},
    {"mma m16n8k16, f16",
     START(
         "sm_80") ".reg .b32 a<4>, b<2>; .reg .f32 c<4>;\n"
                  "mov.u32 a0, 0x3c003c00; mov.u32 a1, a0; mov.u32 a2, a0; mov.u32 a3, a0; mov.u32 b0, a0;\n"
                  "mov.u32 b1, a0;\n"
                  "mov.f32 c0, 0f00000000; mov.f32 c1, c0; mov.f32 c2, c0; mov.f32 c3, c0;\n" LOOP(200)
                      FOUR("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {c0, c1, c2, c3}, {a0, a1, a2, "
                           "a3}, {b0, b1}, "
                           "{c0, c1, c2, c3};\n") END,
     16, 128},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static void rates(void)
{
    set_option("threads", 1);
    puts("one core                 bounds only          all checks   (million thread instructions a second)");
    for (size_t k = 0; k < KERNELS; k++) {
        checks(0);
        figure few = measure(kernels[k].ptx, kernels[k].grid, kernels[k].block);
        checks(1);
        figure all = measure(kernels[k].ptx, kernels[k].grid, kernels[k].block);
        if (few.seconds == 0 || all.seconds == 0) {
            printf("%-20s skip: not loaded\n", kernels[k].name);
            continue;
        }
        printf("%-20s %12.0f %19.0f", kernels[k].name, few.instructions / few.seconds * 1e-6,
               all.instructions / all.seconds * 1e-6);
        if (all.bytes > 0.1 * all.instructions)
            printf("   %.1f GB/s with all checks", all.bytes / all.seconds * 1e-9);
        putchar('\n');
    }
}

static void launches(void)
{
    handle m = load(HEAD ".visible .entry k() { ret; }"), f = function(m, "k");
    enum { COUNT = 32768 };
    double best = 0;
    for (int round = 0; round < 3; round++) {
        double start = seconds();
        for (int k = 0; k < COUNT; k++) cuLaunchKernel_(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        SAME(cuCtxSynchronize_(), 0);
        double time = seconds() - start;
        if (!round || time < best) best = time;
    }
    printf("empty kernel         %12.0f launches a second (wanted: 32768)\n", COUNT / best);
    cuModuleUnload_(m);
}

static void scaling(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < 2) { puts("scaling              skip: one core"); return; }
    printf("%ld cores here        ", cores);
    for (int threads = 1; threads <= cores && threads <= 64; threads *= 2) {
        set_option("threads", threads);
        figure f = measure(kernels[1].ptx, 64, 256);
        static double one;
        if (threads == 1) one = f.seconds;
        else printf(" float loop on %d threads: %.2f times as fast as on one;", threads, one / f.seconds);
    }
    putchar('\n');
    set_option("threads", 0);
}

int main(int argc, char **argv)
{
    sim_open(argc, argv);
    in = alloc(BYTES);
    out = alloc(BYTES);
    cuMemsetD32_v2_(in, 0x3f800000, BYTES / 4);
    cuMemsetD32_v2_(out, 0, BYTES / 4);
    rates();
    launches();
    scaling();
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    if (report_count()) printf("findings:\n%s", findings());
    cuDevicePrimaryCtxRelease_v2_(0);
    dlclose(sim_library);
    return failed != 0;
}
