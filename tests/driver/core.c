/* core.c - proves the CPU driver (tests/sim): arithmetic, kernels, checks, refusals, the API's
 * errors.
 *
 *   core [library]        or PTXGEN_CUDA_LIBRARY; run from the root of the repository
 *
 * Every fault that the driver reports is shown twice: by a program that has it and by a near twin that
 * has not. */
#include "../simtest.h"

/* --- arithmetic: 3,200 single instructions ---------------------------------------------------- */

static float as_float(uint32_t x) {
    float f;
    memcpy(&f, &x, 4);
    return f;
}

/* The documented bound of the approximate instruction that the snippet ends in. */
static bool close_enough(const char *snippet, uint32_t have, uint32_t want) {
    float a = as_float(have), b = as_float(want);
    if (have == want || (isnan(a) && isnan(b))) return true;
    if (strstr(snippet, ".f64")) { /* rcp, rsqrt .approx.ftz.f64: the upper word is looked at */
        return llabs((long long)have - (long long)want) <= 1;
    }
    double error = fabs((double)a - (double)b), relative = b != 0 ? error / fabs((double)b) : error;
    if (strstr(snippet, "sin.approx") || strstr(snippet, "cos.approx")) {
        const char *x = strstr(snippet, "a,");
        bool far = x && fabsf(as_float((uint32_t)strtoul(x + 2, NULL, 10))) > 6.283f; /* nothing is promised */
        return far ? fabsf(a) <= 1 : error <= ldexp(1, -20);
    }
    if (strstr(snippet, "lg2.approx")) return error <= ldexp(1, -21) || relative <= ldexp(1, -21);
    return relative <= ldexp(1, -21)
           || (fabsf(b) < 1.2e-38f && llabs((long long)have - (long long)want) <= 4);
}

static void test_semantics(void) {
    enum { MAX = 4000, PER_KERNEL = 64 };
    static uint32_t want[MAX], have[MAX];
    static char class_of[MAX], *snippet[MAX];
    FILE *file = fopen("tests/data/semantics.tsv", "r");
    char line[2048];
    int n = 0;
    if (!CHECK(file != NULL, "tests/data/semantics.tsv cannot be opened (run from the root)")) return;
    if (!fgets(line, sizeof line, file)) line[0] = 0;
    while (n < MAX && fgets(line, sizeof line, file)) {
        char *class = strchr(line, '\t'), *code = class ? strchr(class + 1, '\t') : NULL;
        if (!code) continue;
        want[n] = (uint32_t)strtoul(line, NULL, 16);
        class_of[n] = class[1];
        code[strcspn(code, "\n")] = 0;
        snippet[n] = strdup(code + 1);
        n++;
    }
    fclose(file);
    CHECK(n > 3000, "only %d cases", n);
    size_t room = 1 << 20, used;
    char *ptx = malloc(room);
    used = (size_t)sprintf(ptx, HEAD);
    for (int k = 0; k < n; k++) {
        if (k % PER_KERNEL == 0)
            used += (size_t)sprintf(
                ptx + used,
                ".visible .entry k%d(.param .u64 o) { .reg .b64 %%out; .reg .b32 a,b,c,d,e; "
                ".reg .b64 w,x,y,z; .reg .b16 h,k,m; .reg .pred p,q; ld.param.u64 %%out,[o];\n",
                k / PER_KERNEL);
        used += (size_t)sprintf(ptx + used, "%s st.global.b32 [%%out+%d], d;\n", snippet[k], k * 4);
        if (k % PER_KERNEL == PER_KERNEL - 1 || k == n - 1) used += (size_t)sprintf(ptx + used, "ret; }\n");
        if (used + 4096 > room) ptx = realloc(ptx, room *= 2);
    }
    set_option("suspects", 0); /* the cases shift by 40 and more, and divide by 0, on purpose */
    handle m = load(ptx);
    free(ptx);
    if (!CHECK(m != NULL, "the module of all cases does not load")) return;
    dptr out = alloc(MAX * 4);
    void *params[] = {&out};
    for (int k = 0; k * PER_KERNEL < n; k++) {
        char name[16];
        sprintf(name, "k%d", k);
        SAME(run(function(m, name), 1, 1, 0, params), 0);
    }
    set_option("suspects", 1);
    cuMemcpyDtoH_v2_(have, out, (size_t)n * 4);
    for (int k = 0; k < n; k++) {
        bool good = class_of[k] == 'a'   ? close_enough(snippet[k], have[k], want[k])
                    : class_of[k] == 'o' ? true
                                         : have[k] == want[k];
        CHECK(good, "%s gives %08x, expected %08x", snippet[k], have[k], want[k]);
        free(snippet[k]);
    }
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
}

/* --- refusals: what ptxas rejects, with its line; what it accepts, loads ---------------------- */

static void test_mistakes(void) {
    char *list = read_file("tests/data/mistakes/expected.tsv"), *save = NULL;
    int n = 0;
    if (!CHECK(list != NULL, "tests/data/mistakes/expected.tsv cannot be opened")) return;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *tab = strchr(line, '\t'), path[300], *text;
        if (*line == '#' || !tab) continue;
        int want = atoi(tab + 1), at = 0;
        *tab = 0;
        snprintf(path, sizeof path, "tests/data/mistakes/%s", line);
        if (!CHECK((text = read_file(path)) != NULL, "%s cannot be opened", path)) continue;
        int code = refused(text);
        const char *p = strstr(log_text, "line ");
        if (p) at = atoi(p + 5);
        if (!want)
            CHECK(code == 0, "%s: refused with %d: %s", line, code, log_text);
        else {
            CHECK(code == 218 || code == 222, "%s: gives %d, expected a refusal", line, code);
            CHECK(at == want, "%s: line %d, expected %d: %s", line, at, want, log_text);
        }
        free(text);
        n++;
    }
    free(list);
    CHECK(n > 80, "only %d mistakes", n);
}

static void test_refusals(void) {
    static const struct {
        const char *body, *message;
    } cases[] = {{"add.f32 f0, f1, r1x;", "Unknown symbol"},
                 {"add.f32 f0, f1, 1;", "floating-point constant"},
                 {"tcgen05.wait::ld.sync.aligned;", "requires .target sm_100"},
                 {"multimem.red.relaxed.sys.global.add.u32 [d0], r1;", "not implemented by this CPU driver"},
                 {"ld.relaxed.global.u32 r0, [d0];", "Scope modifier required"},
                 {"st.shared.nc.u32 [r0], r1;", "Illegal modifier"},
                 {"ld.global.v2.u32 {r0,r1,r2,r3}, [d0];", "vector size mismatch"},
                 {"atom.global.add.s64 d1, [d0], d2;", "Unexpected instruction types"},
                 {"cvt.rn.f32.f16 f0, h0;", "Illegal rounding"},
                 {"setp.lo.f32 p0, f0, f1;", "comparison qualifier"},
                 {"call nowhere, (r0);", "Unknown symbol"},
                 {"bra f0;", "expected a label"},
                 {"lop3.b32 r0, r1, r2, r3, r4;", "expected a constant"},
                 {"mov.u32 r0, %clusterx;", "Unknown symbol"},
                 {"add.rn.rz.f32 f0, f1, f2;", "cannot be combined"},
                 {"atom.global.add.f16 h0, [d0], h1;", "noftz"},
                 {"bar.sync 0, 48;", "multiple of warp size"}};
    char ptx[2000];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        snprintf(ptx, sizeof ptx, HEAD ".visible .entry k(.param .u64 o) {\n" REGS "%s\nret; }\n",
                 cases[k].body);
        SAME(refused(ptx), 218);
        CHECK(strstr(log_text, cases[k].message) != NULL, "'%s' says: %s", cases[k].body, log_text);
        CHECK(strstr(log_text, "line 6;") != NULL || strstr(log_text, "line 7;") != NULL,
              "'%s' names another line: %s", cases[k].body, log_text);
    }
    SAME(refused(".version 9.1\n.target sm_90\n.visible .entry k() { ret; }"), 222);
    SAME(refused(".version 9.0\n.target sm_120\n.visible .entry k() { ret; }"), 209);
    SAME(refused(""), 218);
    SAME(refused("hello"), 218);
    /* several errors in one log, with the driver's form */
    SAME(refused(HEAD ".visible .entry k() {\n" REGS
                      "add.f32 f0, f1;\nadd.u32 f0, r1, r2;\nfadd.f32 f0, f1, f2;\nret; }"),
         218);
    CHECK(strstr(log_text,
                 "ptxas application ptx input, line 6; error   : Arguments mismatch for instruction 'add'")
              != NULL,
          "%s", log_text);
    CHECK(strstr(log_text, "line 7;")
              && strstr(log_text, "line 8; error   : Not a name of any known instruction: 'fadd'"),
          "%s", log_text);
    CHECK(strstr(log_text, "expected a .u32 register") != NULL, "%s", log_text);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static void test_saxpy(void) {
    enum { N = 100003 };
    handle m = load(
        HEAD
        ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {\n" REGS
        "ld.param.u64 d0, [x]; ld.param.u64 d1, [y]; ld.param.f32 f0, [a]; ld.param.u32 r0, [n];\n"
        "mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, %tid.x; mad.lo.s32 r4, r1, r2, r3;\n"
        "setp.ge.u32 p0, r4, r0; @p0 bra END;\n"
        "mul.wide.u32 d2, r4, 4; add.s64 d3, d0, d2; add.s64 d4, d1, d2;\n"
        "ld.global.f32 f1, [d3]; ld.global.f32 f2, [d4]; fma.rn.f32 f3, f0, f1, f2; st.global.f32 [d4], f3;\n"
        "END: ret; }\n");
    handle f = function(m, "saxpy");
    float *x = malloc(N * 4), *y = malloc(N * 4), *z = malloc(N * 4), a = 2.5f;
    dptr dx = alloc(N * 4), dy = alloc(N * 4);
    unsigned n = N;
    int bad = 0;
    for (int k = 0; k < N; k++) {
        x[k] = (float)k * 0.37f;
        y[k] = 1.0f / (float)(k + 1);
    }
    cuMemcpyHtoD_v2_(dx, x, N * 4);
    cuMemcpyHtoD_v2_(dy, y, N * 4);
    void *params[] = {&dx, &dy, &a, &n};
    counters_reset();
    SAME(run(f, (N + 255) / 256, 256, 0, params), 0);
    cuMemcpyDtoH_v2_(z, dy, N * 4);
    for (int k = 0; k < N; k++) bad += z[k] != fmaf(a, x[k], y[k]);
    SAME(bad, 0);
    ptxsim_counters c;
    ptxsim_counters_get_(&c, sizeof c);
    SAME(c.launches, 1);
    SAME(c.blocks, (N + 255) / 256);
    SAME(c.global_load_bytes, 8 * N);
    SAME(c.global_store_bytes, 4 * N);
    SAME(c.global_store_sectors, (N * 4 + 31) / 32);
    SAME(c.thread_float, N);
    SAME(c.divergent_branches, 1);
    /* the same through `extra` */
    struct {
        dptr x, y;
        float a;
        unsigned n;
    } packed = {dx, dy, 0, N};
    size_t size = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &size, NULL};
    SAME(cuLaunchKernel_(f, 10, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), 0);
    cuMemFree_v2_(dx);
    cuMemFree_v2_(dy);
    cuModuleUnload_(m);
    free(x);
    free(y);
    free(z);
}

#define REDUCE                                                                                               \
    ".shared .align 4 .b8 part[128];\n"                                                                      \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS                                            \
    "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d2, r0, 4;\n"           \
    "add.u64 d2, d0, d2;\n"                                                                                  \
    "ld.global.f32 f0, [d2];\n"                                                                              \
    "mov.b32 r1, f0; shfl.sync.bfly.b32 r2, r1, 16, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"           \
    "mov.b32 r1, f0; shfl.sync.bfly.b32 r2, r1, 8, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "mov.b32 r1, f0; shfl.sync.bfly.b32 r2, r1, 4, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "mov.b32 r1, f0; shfl.sync.bfly.b32 r2, r1, 2, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "mov.b32 r1, f0; shfl.sync.bfly.b32 r2, r1, 1, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "and.b32 r3, r0, 31; shr.u32 r4, r0, 5; mov.u32 r5, part; mad.lo.u32 r6, r4, 4, r5;\n"                   \
    "setp.eq.u32 p0, r3, 0; @p0 st.shared.f32 [r6], f0;\n"                                                   \
    "bar.sync 0;\n"                                                                                          \
    "setp.ge.u32 p1, r0, 32; @p1 bra END;\n"                                                                 \
    "mad.lo.u32 r6, r3, 4, r5; mov.f32 f0, 0f00000000; setp.lt.u32 p2, r3, 8; @p2 ld.shared.f32 f0, [r6];\n" \
    "mov.b32 r1, f0; shfl.sync.down.b32 r2, r1, 4, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "mov.b32 r1, f0; shfl.sync.down.b32 r2, r1, 2, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "mov.b32 r1, f0; shfl.sync.down.b32 r2, r1, 1, 31, -1; mov.b32 f1, r2; add.f32 f0, f0, f1;\n"            \
    "@p0 st.global.f32 [d1], f0;\n"                                                                          \
    "END: ret; }\n"

static void test_reduction(void) {
    handle m = load(HEAD REDUCE);
    float x[256], y = 0, want = 0;
    dptr in = alloc(sizeof x), out = alloc(4);
    for (int k = 0; k < 256; k++) {
        x[k] = (float)(k * k % 97);
        want += x[k];
    }
    cuMemcpyHtoD_v2_(in, x, sizeof x);
    void *params[] = {&in, &out};
    SAME(run(function(m, "k"), 1, 256, 0, params), 0);
    cuMemcpyDtoH_v2_(&y, out, 4);
    CHECK(y == want, "sum is %g, expected %g", y, want);
    SAME(report_count(), 0);
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
}

/* Runs a kernel of one parameter (u32 out[count]) and hands the results back; the code of the launch is
 * returned. */
static void test_control_flow(void) {
    uint32_t x[1024];
    int bad = 0;
    /* Collatz lengths: every lane leaves the loop at its own time */
    SAME(run_out(
             HEAD OUT
             "add.u32 r1, r0, 1; mov.u32 r2, 0;\n"
             "L: setp.eq.u32 p0, r1, 1; @p0 bra E; and.b32 r3, r1, 1; setp.eq.u32 p1, r3, 0; @p1 bra EVEN;\n"
             "mad.lo.u32 r1, r1, 3, 1; bra NEXT;\nEVEN: shr.u32 r1, r1, 1;\nNEXT: add.u32 r2, r2, 1; bra L;\n"
             "E: st.global.u32 [d1], r2; ret; }",
             1, 256, 0, x, 256),
         0);
    for (uint32_t t = 0; t < 256; t++) {
        uint32_t n = t + 1, steps = 0;
        while (n != 1) {
            n = n & 1 ? 3 * n + 1 : n / 2;
            steps++;
        }
        bad += x[t] != steps;
    }
    SAME(bad, 0);
    /* a spin lock inside one warp, and over blocks */
    SAME(run_out(HEAD OUT "add.u64 d2, d0, 4;\n"
                          "SPIN: atom.global.cas.b32 r1, [d0], 0, 1; setp.ne.u32 p0, r1, 0; @p0 bra SPIN;\n"
                          "ld.volatile.global.u32 r2, [d2]; add.u32 r2, r2, 1; st.volatile.global.u32 [d2], "
                          "r2; membar.gl; atom.global.exch.b32 r3, [d0], 0; ret; }",
                 6, 64, 0, x, 2),
         0);
    SAME(x[1], 6 * 64);
    /* brx.idx */
    SAME(run_out(HEAD OUT "and.b32 r1, r0, 3; T: .branchtargets A, B, C, D; brx.idx r1, T;\n"
                          "A: mov.u32 r2, 10; bra E;\nB: mov.u32 r2, 20; bra E;\nC: mov.u32 r2, 30; bra "
                          "E;\nD: mov.u32 r2, 40;\nE: st.global.u32 [d1], r2; ret; }",
                 1, 32, 0, x, 32),
         0);
    for (int t = bad = 0; t < 32; t++) bad += x[t] != (uint32_t)(t % 4 + 1) * 10;
    SAME(bad, 0);
    /* calls: parameters in registers and in .param space, a divergent return, a call within a call */
    SAME(
        run_out(
            HEAD
            ".func (.param .b32 res) twice(.param .b32 v) { .reg .b32 a; .reg .pred p; ld.param.b32 a, [v];\n"
            "setp.gt.u32 p, a, 9; @!p bra SMALL; st.param.b32 [res], 1000; ret; SMALL: add.u32 a, a, a; "
            "st.param.b32 [res], a; ret; }\n"
            ".func (.reg .b32 o) next(.reg .b32 i) { { .param .b32 v; .param .b32 r; .reg .b32 t; "
            "st.param.b32 [v], i; call (r), twice, (v);\n"
            "ld.param.b32 t, [r]; add.u32 o, t, 1; } ret; }\n" OUT
            "call (r1), next, (r0); st.global.u32 [d1], r1; ret; }",
            1, 32, 0, x, 32),
        0);
    for (int t = bad = 0; t < 32; t++) bad += x[t] != (t > 9 ? 1001u : (uint32_t)(2 * t + 1));
    SAME(bad, 0);
    /* a grid-wide barrier by hand: blocks wait for blocks that come later */
    SAME(run_out(
             HEAD OUT
             "mov.u32 r1, %nctaid.x; atom.global.add.u32 r2, [d0], 1;\n"
             "W: nanosleep.u32 20; ld.relaxed.gpu.global.u32 r3, [d0]; setp.lt.u32 p0, r3, r1; @p0 bra W;\n"
             "red.global.add.u32 [d0+4], r3; ret; }",
             40, 1, 0, x, 2),
         0);
    SAME(x[0], 40);
    SAME(x[1], 1600);
    /* lanes that sleep while they wait for one of their warp that stands further down */
    SAME(run_out(HEAD OUT "setp.eq.u32 p0, r0, 5; mov.u32 r2, 7; @p0 bra R;\n"
                          "W: nanosleep.u32 20; ld.relaxed.gpu.global.u32 r3, [d0]; setp.eq.u32 p1, r3, 0; "
                          "@p1 bra W; bra E;\nR: st.relaxed.gpu.global.u32 [d0], r2;\nE: ret; }",
                 1, 32, 0, x, 1),
         0);
    SAME(x[0], 7);
}

/* What stands in r0 after the lines. */
static void test_operands(void) {
    static const struct {
        const char *lines;
        uint32_t want;
    } cases[] = {
        /* register + constant: a sum of the register's width */
        { "mov.u32 r1, 3; add.u32 r0, r1+1, 5;", 9 },
        { "mov.u32 r1, 3; mad.lo.u32 r0, r1+1, r1+2, 5;", 25 },
        { "mov.u32 r1, 3; mov.u32 r0, r1+1;", 4 },
        { "mov.u16 h1, 0xffff; add.u16 h0, h1+1, 5; cvt.u32.u16 r0, h0;", 5 },
        { "mov.u16 h1, 0xffff; cvt.u32.u16 r0, h1+1;", 0 },
        { "mov.u16 h1, 0x7fff; cvt.s32.s16 r0, h1+1;", 0xffff8000 },
        { "mov.u32 r1, -1; mul.wide.u32 d2, r1+2, 5; shr.u64 d2, d2, 32; cvt.u32.u64 r0, d2;", 0 },
        { "mov.u64 d2, 0xffffffff; add.u64 d3, d2+2, 0; shr.u64 d3, d3, 32; cvt.u32.u64 r0, d3;", 1 },
        { "mov.u32 r1, 3; add.cc.u32 r0, r1+0xffffffff, 0xffffffff; addc.u32 r0, r1+1, 0;", 5 },
        { "mov.u32 r1, 3; setp.eq.u32 p0, r1+1, 4; selp.b32 r0, 1, 2, p0;", 1 },
        { "mov.u32 r1, 3; st.shared.u32 [sm], r1+-1; ld.shared.u32 r0, [sm];", 2 },
        { "mov.u64 d2, 1; st.shared.u64 [sm], d2+0x500000000; ld.shared.u32 r0, [sm+4];", 5 },
        { "mov.u32 r1, 3; st.shared.u32 [sm], 1; atom.shared.add.u32 r2, [sm], r1+1; ld.shared.u32 r0, [sm];", 5 },
        { "mov.u32 r1, 3; shfl.sync.idx.b32 r0, r1+4, 0, 31, 1;", 7 },
        { "mov.u32 r1, 3; add.u32 r0, r1+4|1, 0;", 8 },
        { "mov.u16 h1, 0xffff; add.u32 r0, h1+1, 5;", 5 },
        { "mov.u16 h1, 0x8000; add.s32 r0, h1+1, 0;", 0x8001 },
        { "mov.u64 d2, 0x1ffffffff; add.u32 r0, d2+2, 0;", 1 },
        { "mov.u32 r1, 0x12345; add.u16 h0, r1+2, 0; cvt.u32.u16 r0, h0;", 0x2347 },
        { "mov.u32 r1, -1; add.u64 d2, r1+2, 0; shr.u64 d2, d2, 32; cvt.u32.u64 r0, d2;", 0 },
        { ".reg .f16x2 x; mov.b32 x, 3; add.u32 r0, x, 1;", 4 },
        { "mov.u32 r1, 3; add.u32 r0, r1+4>3, 0;", 4 },
        /* symbol + constant as a value */
        { "mov.u64 d2, 4; add.u64 d2, d2, tbl+4; ld.global.u32 r0, [d2];", 12 },
        { "st.shared.u64 [sm], tbl+8; ld.shared.u64 d2, [sm]; ld.global.u32 r0, [d2];", 12 },
        { "mov.b64 {r1, r2}, tbl; mov.b64 d2, {r1, r2}; ld.global.u32 r0, [d2];", 10 },
        /* symbol[index]: elements; a register counts with 32 bits and no sign */
        { "ld.global.u32 r0, tbl[3];", 13 },
        { "mov.u32 r1, 3; ld.global.u32 r0, tbl[r1];", 13 },
        { "mov.u32 r1, 3; ld.global.u32 r0, tbl[r1+2];", 15 },
        { "mov.u64 d2, 0x700000003; ld.global.u32 r0, tbl[d2];", 13 },
        { "mov.u16 h1, 3; ld.u32 r0, tbl[h1];", 13 },
        { "mov.u32 r1, 3; ld.global.u64 d2, wide[r1]; cvt.u32.u64 r0, d2;", 33 },
        { "mov.u32 r1, 4; ld.global.v2.u32 {r2, r3}, tbl[r1]; mad.lo.u32 r0, r2, 100, r3;", 1415 },
        { "mov.u32 r1, 3; ld.const.u32 r0, fixed[r1];", 23 },
        { "mov.u32 r1, 3; st.shared.b32 sm[r1], 77; ld.shared.b32 r0, [sm+12];", 77 },
        { "mov.u32 r1, 3; st.local.b32 lo[r1], 77; ld.local.b32 r0, lo[3];", 77 },
        { "mov.u32 r1, 2; mov.u64 d2, tbl[r1]; ld.global.u32 r0, [d2];", 12 },
        { "mov.u32 r1, 2; cvta.global.u64 d2, tbl[r1]; ld.u32 r0, [d2];", 12 },
        { "mov.u32 r1, 2; st.shared.b32 [sm+8], 9; cvta.shared.u64 d2, sm[r1]; ld.u32 r0, [d2];", 9 },
        /* generic accesses that name a variable */
        { "mov.u32 r1, 3; st.b32 sm[r1], 77; ld.b32 r0, [sm+12];", 77 },
        { "st.b32 [lo+4], 77; ld.local.b32 r0, lo[1];", 77 },
        { "st.shared.b32 [sm], 7; atom.add.u32 r1, [sm], 5; ld.b32 r2, [sm]; mad.lo.u32 r0, r1, 100, r2;", 712 },
        { "st.shared.b32 [sm], 7; red.add.u32 [sm], 5; ld.volatile.b32 r0, [sm];", 12 },
        { "mbarrier.init.b64 [sm], 1; mbarrier.arrive.b64 d2, [sm]; mbarrier.test_wait.b64 p0, [sm], d2; "
          "selp.b32 r0, 1, 2, p0;", 1 },
        /* vectors: all is read before anything is written */
        { "mov.u32 r1, 3; mov.u32 r2, 4; mov.v2.u32 {r1, r2}, {r2, r1}; mad.lo.u32 r0, r1, 16, r2;", 0x43 },
        { "mov.u32 r1, 3; mov.u32 r2, 4; mov.v4.b32 {r1, r2, r3, r4}, {r2, r1, 5, r2}; mad.lo.u32 r0, r1, 16, r2; "
          "mad.lo.u32 r0, r0, 16, r3; mad.lo.u32 r0, r0, 16, r4;", 0x4354 },
        { "mov.u64 d2, 3; mov.u64 d3, 4; mov.v2.u64 {d2, d3}, {d3, d2}; mad.lo.u64 d2, d2, 16, d3; "
          "cvt.u32.u64 r0, d2;", 0x43 },
        { "mov.u16 h1, 3; mov.u16 h2, 4; mov.v2.b16 {h1, h2}, {h2, h1}; mul.wide.u16 r0, h1, 16; cvt.u32.u16 r1, h2; "
          "add.u32 r0, r0, r1;", 0x43 },
        { "mov.v2.f64 {g0, _}, {0d3ff0000000000000, 0d0000000000000000}; cvt.rzi.u32.f64 r0, g0;", 1 },
        { ".reg .v4 .u32 v, w; mov.v4.u32 v, %ntid; mov.v4.u32 w, v; mad.lo.u32 r0, w.x, 16, w.y; "
          "mad.lo.u32 r0, r0, 16, w.z; mad.lo.u32 r0, r0, 16, w.w;", 0x1110 },
        { "mov.u32 r1, 3; mov.v2.u32 {r0, r2}, r1; mad.lo.u32 r0, r2, 16, r0;", 3 },
        { "mov.u32 r0, %tid.w; add.u32 r0, r0, 7;", 7 },
        { "mov.b32 f0, 5; mov.u32 r1, 6; mov.b64 d2, {f0, r1}; shr.u64 d2, d2, 32; cvt.u32.u64 r0, d2;", 6 },
        /* constant expressions: what is a u64 */
        { "mov.u32 r0, 1 ? 2 : 3;", 2 },
        { "mov.u32 r0, 0 ? 2 : 0 ? 4 : 5;", 5 },
        { "mov.u32 r0, -1 > 0;", 0 },
        { "mov.u32 r0, -1 > 0U;", 1 },
        { "mov.u32 r0, 0xffffffffffffffff > 0;", 1 },
        { "mov.u32 r0, ~0 > 0;", 1 },
        { "mov.u32 r0, (.s64)~0 > 0;", 0 },
        { "mov.u32 r0, -7 / 2;", 0xfffffffd },
        { "mov.u32 r0, -1 / 2U >> 32;", 0x7fffffff },
        { "mov.u32 r0, -1 % 2;", 1 },
        { "mov.u32 r0, 1 << 65;", 2 },
        { "mov.u32 r0, (1 ? -1 : 1U) >> 60 == -1;", 1 },
        { "mov.u32 r0, !7 || 1;", 1 },
        { "mov.u32 r0, WARP_SZ - 33 > 0;", 0 },
        { "mov.f32 f0, 2.0 - (1.0 + 4.0) * 2.0; mov.b32 r0, f0;", 0xc1000000 },
        { "mov.f64 g0, -(1.0 / 4.0); mov.b64 {r1, r0}, g0;", 0xbfd00000 },
        { "mov.u32 r0, (1.5 > 1.0) + 1;", 2 },
        { "mov.f32 f0, .5; mov.b32 r0, f0;", 0x3f000000 },
        { "mov.f32 f0, - 1.0; mov.b32 r0, f0;", 0xbf800000 },
        /* rsqrt.approx.f64 is refined, that of .ftz is not */
        { "mov.b64 g0, 0x0000000000000004; rsqrt.approx.f64 g1, g0; mov.b64 {r1, r0}, g1;", 0x61700000 },
        { "mov.b64 g0, 0x4008000000000000; rsqrt.approx.f64 g1, g0; mov.b64 {r0, r1}, g1; add.u32 r0, r0, 1; "
          "shr.u32 r0, r0, 2;", 0x11640cc7 },
        { "mov.b64 g0, 0x800fffffffffffff; rsqrt.approx.f64 g1, g0; testp.notanumber.f64 p0, g1; "
          "selp.b32 r0, 1, 2, p0;", 1 },
        { "mov.b64 g0, 0x800fffffffffffff; rsqrt.approx.ftz.f64 g1, g0; mov.b64 {r1, r0}, g1;", 0xfff00000 },
        { "mov.b64 g0, 0x8000000000000000; rsqrt.approx.f64 g1, g0; mov.b64 {r1, r0}, g1;", 0xfff00000 },
    };
    static const char head[] =
        HEAD ".global .align 8 .u32 tbl[8] = {10, 11, 12, 13, 14, 15, 16, 17};\n"
             ".global .u64 wide[4] = {30, 31, 32, 33};\n.const .u32 fixed[4] = {20, 21, 22, 23};\n"
             ".shared .align 16 .b32 sm[16];\n" OUT ".local .align 16 .b32 lo[8];\n";
    char text[4000];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t have[4] = { 0 };
        snprintf(text, sizeof text, "%s%s\nst.global.u32 [d0], r0; ret; }", head, cases[k].lines);
        int code = run_out(text, 1, 1, 0, have, 4);
        CHECK(!code && have[0] == cases[k].want, "%s gives %d, r0 is 0x%x, expected 0x%x", cases[k].lines,
              code, have[0], cases[k].want);
    }
}

static void test_memory(void) {
    uint32_t x[1024];
    int bad = 0;
    /* vectors, sub-words, sign extension, local arrays, generic addresses, constants, initialisers */
    SAME(
        run_out(HEAD
                ".const .align 4 .u32 tab[4] = { 11, 0x16, 0b100001, 054 };\n"
                ".global .align 4 .s32 tab2[2] = { -5, 6 };\n.global .align 8 .u64 ptr = generic(tab2);\n" OUT
                ".local .align 16 .b8 st[32]; mov.u64 d2, st; cvta.local.u64 d3, d2;\n"
                "st.local.v4.u32 [d2], {1, 2, 3, 4}; st.u8 [d3+5], 0xff; ld.local.u32 r1, [st+4]; "
                "ld.local.s8 r2, [d2+5]; st.global.v2.u32 [d0], {r1, r2};\n"
                "ld.const.u32 r3, [tab+8]; ld.const.u32 r4, [tab+12]; st.global.u32 [d0+8], r3; "
                "st.global.u32 [d0+12], r4;\n"
                "ld.global.u64 d4, [ptr]; ld.s32 r5, [d4]; st.global.u32 [d0+16], r5;\n"
                "ld.local.v4.u32 {r6, r7, r8, r9}, [d2]; add.u32 r6, r6, r9; st.global.u32 [d0+20], r6;\n"
                "isspacep.local p0, d3; selp.u32 r10, 1, 0, p0; isspacep.global p1, d3; selp.u32 r11, 1, 0, "
                "p1; mad.lo.u32 r10, r11, 2, r10; st.global.u32 [d0+24], r10;\n"
                "ld.global.s16 d5, [tab2]; shr.u64 d5, d5, 32; cvt.u32.u64 r12, d5; st.global.u32 [d0+28], "
                "r12; ret; }",
                1, 1, 0, x, 8),
        0);
    static const uint32_t want[8] = {0xff02, 0xffffffff, 33, 44, (uint32_t)-5, 5, 1, 0xffffffff};
    for (int k = 0; k < 8; k++) SAME(x[k], want[k]);
    /* atomics: sums, minima, the wrap of inc, f16x2 */
    SAME(run_out(HEAD OUT "red.global.add.u32 [d0], r0; atom.global.max.s32 r1, [d0+4], r0; "
                          "atom.global.inc.u32 r2, [d0+8], 9;\n"
                          "mov.b32 r3, 0x3c003c00; red.global.add.noftz.f16x2 [d0+12], r3; mov.f32 f0, "
                          "0f3F000000; atom.global.add.f32 f1, [d0+16], f0;\n"
                          "and.b32 r4, r0, 31; shl.b32 r5, 1, r4; red.global.or.b32 [d0+20], r5; ret; }",
                 1, 256, 0, x, 6),
         0);
    SAME(x[0], 255 * 128);
    SAME(x[1], 255);
    SAME(x[2], 256 % 10);
    SAME(x[3], 0x5c005c00);
    CHECK(as_float(x[4]) == 128, "%g", as_float(x[4]));
    SAME(x[5], 0xffffffff);
    /* dynamic shared memory beyond 48 KiB, transposed: bank conflicts are counted */
    counters_reset();
    SAME(run_out(HEAD ".extern .shared .align 16 .b8 dyn[];\n" OUT
                      "mov.u32 r1, dyn; shl.b32 r2, r0, 7; add.u32 r3, r1, r2; st.shared.u32 [r3], r0;\n"
                      "bar.sync 0; ld.shared.u32 r4, [r3]; st.global.u32 [d1], r4; mov.u32 r5, "
                      "%dynamic_smem_size; setp.ne.u32 p0, r5, 65536; @p0 st.global.u32 [d1], r5; ret; }",
                 1, 512, 65536, x, 512),
         0);
    for (int t = bad = 0; t < 512; t++) bad += x[t] != (uint32_t)t;
    SAME(bad, 0);
    ptxsim_counters c;
    ptxsim_counters_get_(&c, sizeof c);
    SAME(c.shared_bank_conflicts, 2 * 16 * 31);
    SAME(c.barriers, 16);
    /* cp.async with a short source */
    SAME(run_out(HEAD ".shared .align 16 .b8 s[512];\n.global .align 16 .u32 src[4] = { 1, 2, 3, 4 };\n" OUT
                      "mov.u32 r1, s; mov.u64 d2, src; cp.async.ca.shared.global [r1], [d2], 16, 8; "
                      "cp.async.commit_group; cp.async.wait_group 0;\n"
                      "ld.shared.v4.u32 {r2, r3, r4, r5}, [r1]; add.u32 r2, r2, r3; add.u32 r2, r2, r4; "
                      "add.u32 r2, r2, r5; st.global.u32 [d0], r2; ret; }",
                 1, 1, 0, x, 1),
         0);
    SAME(x[0], 3);
    /* beyond 2^32 elements: a sparse allocation of 64 GiB */
    dptr huge = alloc((size_t)64 << 30);
    CHECK(huge != 0, "64 GiB");
    uint32_t v = 77, w = 0;
    cuMemcpyHtoD_v2_(huge + ((size_t)63 << 30), &v, 4);
    cuMemcpyDtoH_v2_(&w, huge + ((size_t)63 << 30), 4);
    SAME(w, 77);
    SAME(cuMemFree_v2_(huge), 0);
}

#define HEAD_VECTORS ".version 8.1\n.target sm_90\n.address_size 64\n"

static void test_warps(void) {
    uint32_t x[64];
    int bad = 0;
    SAME(run_out(HEAD OUT "shfl.sync.up.b32 r1|p0, r0, 3, 0, -1; selp.u32 r2, 1, 0, p0; mad.lo.u32 r1, r1, "
                          "2, r2; st.global.u32 [d1], r1; ret; }",
                 1, 32, 0, x, 32),
         0);
    for (uint32_t t = bad = 0; t < 32; t++) bad += x[t] != (t >= 3 ? (t - 3) * 2 + 1 : t * 2);
    SAME(bad, 0);
    SAME(run_out(HEAD OUT "shfl.sync.bfly.b32 r1|p0, r0, 5, 0x1807, -1; st.global.u32 [d1], r1; ret; }", 1,
                 32, 0, x, 32),
         0);
    for (uint32_t t = bad = 0; t < 32; t++) bad += x[t] != ((t ^ 5) <= ((t & 24) | 7) ? t ^ 5 : t);
    SAME(bad, 0);
    /* tiles of 8: the mask differs from lane to lane */
    SAME(run_out(HEAD OUT "and.b32 r1, r0, 24; shl.b32 r2, 255, r1; shfl.sync.idx.b32 r3, r0, 2, 0x1807, r2; "
                          "st.global.u32 [d1], r3; ret; }",
                 1, 32, 0, x, 32),
         0);
    for (uint32_t t = bad = 0; t < 32; t++) bad += x[t] != (t & 24) + 2;
    SAME(bad, 0);
    SAME(run_out(HEAD OUT "setp.lt.u32 p0, r0, 5; vote.sync.ballot.b32 r1, p0, -1; vote.sync.any.pred p1, "
                          "p0, -1; vote.sync.all.pred p2, !p0, -1;\n"
                          "and.b32 r2, r0, 3; match.any.sync.b32 r3, r2, -1; redux.sync.add.u32 r4, r0, -1; "
                          "redux.sync.max.s32 r5, r0, -1; activemask.b32 r6;\n"
                          "elect.sync r7|p3, -1; selp.u32 r8, 1, 0, p3; xor.b32 r1, r1, r3; add.u32 r1, r1, "
                          "r4; add.u32 r1, r1, r5; add.u32 r1, r1, r6; add.u32 r1, r1, r8;\n"
                          "@p1 add.u32 r1, r1, 100; @p2 add.u32 r1, r1, 1000; st.global.u32 [d1], r1; ret; }",
                 1, 32, 0, x, 32),
         0);
    for (uint32_t t = bad = 0; t < 32; t++)
        bad += x[t] != (31u ^ 0x11111111u << (t & 3)) + 496 + 31 + 0xffffffffu + (t == 0) + 100;
    SAME(bad, 0);
    /* lanes meet again for a shfl.sync after a divergent branch; bar.warp.sync in both arms */
    SAME(run_out(HEAD OUT "setp.lt.u32 p0, r0, 16; mov.u32 r1, 7; @p0 bra A; mov.u32 r1, 9; bar.warp.sync "
                          "-1; bra B;\nA: bar.warp.sync -1;\n"
                          "B: shfl.sync.bfly.b32 r2, r1, 16, 31, -1; st.global.u32 [d1], r2; ret; }",
                 1, 32, 0, x, 32),
         0);
    for (uint32_t t = bad = 0; t < 32; t++) bad += x[t] != (t < 16 ? 9u : 7u);
    SAME(bad, 0);
    SAME(report_count(), 0);
    /* atomics of vectors through generic addresses, as debug builds write them */
    SAME(run_out(HEAD_VECTORS OUT
                 "mov.f32 f0, 0f3F800000; mov.f32 f1, 0f40000000; st.global.u32 [d1], 0; bar.sync 0;\n"
                 "atom.add.v2.f32 {f2, f3}, [d0], {f0, f1}; red.add.v4.f32 [d0+16], {f0, f1, f0, f1};\n"
                 "mov.b32 r1, 0x3c003c00; atom.add.noftz.v2.f16x2 {r2, r3}, [d0+32], {r1, r1}; ret; }",
                 1, 32, 0, x, 32),
         0);
    SAME(x[0], 0x42000000);
    SAME(x[1], 0x42800000);
    SAME(x[4], 0x42000000);
    SAME(x[7], 0x42800000);
    SAME(x[8], 0x50005000);
    SAME(x[9], 0x50005000);
    SAME(x[10], 0);
    /* barriers with a number and a count: producers arrive, consumers wait; bar.red */
    SAME(
        run_out(
            HEAD
            ".shared .align 4 .u32 box;\n" OUT
            "setp.ge.u32 p0, r0, 32; @p0 bra CONSUMER; st.shared.u32 [box], 42; bar.arrive 1, 64; bra JOIN;\n"
            "CONSUMER: bar.sync 1, 64; ld.shared.u32 r1, [box];\nJOIN: setp.lt.u32 p1, r0, 10; "
            "bar.red.popc.u32 r2, 0, p1; @p0 add.u32 r2, r2, r1; st.global.u32 [d1], r2; ret; }",
            1, 64, 0, x, 64),
        0);
    for (uint32_t t = bad = 0; t < 64; t++) bad += x[t] != (t < 32 ? 10u : 52u);
    SAME(bad, 0);
    SAME(report_count(), 0);
}

static void test_checks(void) {
    fault("store inside", "st.global.u32 [d0+252], r0;", 0, "", 1);
    fault("store past the end", "st.global.u32 [d0+260], r0;", 700, "out-of-bounds", 1);
    CHECK(strstr(found, "0 bytes past the end of the 260-byte allocation")
              && strstr(found, "st.global.u32 [d0+260], r0;")
              && strstr(found, "block (0,0,0), thread (0,0,0)"),
          "%s", found);
    fault("store before", "st.global.u32 [d0+-4], r0;", 700, "out-of-bounds", 1);
    fault("null", "mov.u64 d2, 0; ld.global.u32 r1, [d2];", 700, "out-of-bounds", 1);
    fault("vector over the end", "ld.global.v2.u32 {r1, r2}, [d0+256];", 700, "out-of-bounds", 1);
    fault("aligned vector", "ld.global.v4.u32 {r1, r2, r3, r4}, [d0+16];", 0, "", 1);
    fault("misaligned vector", "ld.global.v4.u32 {r1, r2, r3, r4}, [d0+8];", 716, "misaligned", 1);
    fault("misaligned word", "ld.global.u32 r1, [d0+2];", 716, "misaligned", 1);
    fault("written", "ld.global.u32 r1, [d0+252];", 0, "", 1);
    fault("never written", "ld.global.u32 r1, [d0+256];", 0, "uninitialised-read", 1);
    fault("shared written", "st.shared.u32 [r31+60], 1; ld.shared.u32 r1, [r31+60];", 0, "", 1);
    fault("shared never written", "st.shared.u16 [r31+60], 1; ld.shared.u32 r1, [r31+60];", 0,
          "uninitialised-read", 1);
    fault("shared past the end", "st.shared.u32 [r31+64], 1;", 700, "out-of-bounds", 1);
    fault("shared address 0 on sm_90", "mov.u32 r1, 0; st.shared.u32 [r1], 1;", 700, "out-of-bounds", 1);
#define SHORT(bytes, from)                                                                                   \
    "st.global.u32 [d0+256], 1; mov.u32 r2, " bytes "; cp.async.cg.shared.global [r31], [" from "], 16, "    \
    "r2; cp.async.wait_all;"
    fault("copy whose source ends with src-size", SHORT("4", "d0+256"), 0, "", 1);
    fault("copy with src-size past the end", SHORT("8", "d0+256"), 700, "out-of-bounds", 1);
    fault("whole copy past the end", SHORT("16", "d0+256"), 700, "out-of-bounds", 1);
    fault("copy of nothing from anywhere", SHORT("0", "d0+4096"), 0, "", 1);
    fault("short copy, misaligned", SHORT("4", "d0+248"), 716, "misaligned", 1);
#undef SHORT
    fault("local inside",
          ".local .align 8 .b8 a[16]; mov.u64 d2, a; st.local.u64 [d2+8], d0; ld.local.u64 d3, [d2+8];", 0,
          "", 33);
    fault("local outside", ".local .align 8 .b8 a[16]; mov.u64 d2, a; st.local.u64 [d2+16], d0;", 700,
          "out-of-bounds", 33);
    fault("local never written", ".local .align 8 .b8 a[16]; mov.u64 d2, a; ld.local.u64 d3, [d2+8];", 0,
          "uninitialised-read", 33);
    fault("parameter outside", "mov.u64 d2, out; ld.param.u64 d3, [d2+8];", 700, "out-of-bounds", 1);
    fault("barrier for all", "bar.sync 0;", 0, "", 96);
    fault("barrier for half a warp",
          "setp.lt.u32 p0, r0, 16; @!p0 bra E; bar.sync 0; E: st.global.u32 [d0], 1;", 0,
          "barrier-divergence", 32);
    fault("barrier after half a warp exited", "setp.lt.u32 p0, r0, 16; @p0 exit; bar.sync 0;", 0, "", 32);
    fault("barrier after a warp exited", "setp.lt.u32 p0, r0, 32; @p0 exit; bar.sync 0;", 0, "", 96);
    fault("two barriers that wait for each other",
          "setp.lt.u32 p0, r0, 32; @p0 bra A; bar.sync 1; bra E; A: bar.sync 2; E:", 702, "deadlock", 64);
    fault("two barriers, each with its warp",
          "setp.lt.u32 p0, r0, 32; @p0 bra A; bar.sync 1, 32; bra E; A: bar.sync 2, 32; E:", 0, "", 64);
    fault("shfl with all lanes", "shfl.sync.bfly.b32 r1, r0, 1, 31, -1;", 0, "", 32);
    fault("shfl with absent lanes",
          "setp.lt.u32 p0, r0, 16; @!p0 bra E; shfl.sync.bfly.b32 r1, r0, 1, 31, -1; E:", 0, "", 32 - 16);
    fault("shfl with lanes elsewhere",
          "setp.lt.u32 p0, r0, 16; @!p0 bra E; shfl.sync.bfly.b32 r1, r0, 1, 31, -1; bar.warp.sync 0xffff; "
          "E: bar.warp.sync -1;",
          0, "absent-lane", 32);
    fault("shfl with the right mask",
          "setp.lt.u32 p0, r0, 16; @!p0 bra E; shfl.sync.bfly.b32 r1, r0, 1, 31, 0xffff; E:", 0, "", 32);
    fault("shfl by lanes that the mask does not name", "shfl.sync.idx.b32 r1, r0, 3, 31, 0xffff;", 0,
          "membermask", 32);
    fault("vote by lanes that the mask does not name", "vote.sync.ballot.b32 r1, 1, 0xfffe;", 0, "membermask",
          16);
    fault("redux by lanes that the mask does not name", "redux.sync.add.u32 r1, r0, 0xffff;", 0, "membermask",
          32);
    fault("bar.warp.sync by lanes that the mask does not name", "bar.warp.sync 0xffff;", 0, "membermask", 32);
    fault("bar.warp.sync by those that the mask names", "bar.warp.sync 0xffff;", 0, "", 16);
    fault("masks that contradict each other",
          "setp.lt.u32 p0, r0, 16; selp.b32 r1, -1, 0xffff0000, p0; shfl.sync.idx.b32 r2, r0, 3, 31, r1;", 0,
          "membermask", 32);
    fault(
        "masks of two halves",
        "setp.lt.u32 p0, r0, 16; selp.b32 r1, 0xffff, 0xffff0000, p0; shfl.sync.bfly.b32 r2, r0, 3, 31, r1;",
        0, "", 32);
    fault("barrier 15 in a register", "mov.u32 r1, 15; bar.sync r1;", 0, "", 64);
    fault("barrier 16 in a register", "mov.u32 r1, 16; bar.sync r1;", 719, "barrier-number", 64);
    fault("register written on both paths",
          "setp.lt.u32 p0, r0, 7; @p0 mov.u32 r1, 1; @!p0 mov.u32 r1, 2; add.u32 r2, r1, r0;", 0, "", 32);
    fault("register written on one path", "setp.lt.u32 p0, r0, 7; @p0 mov.u32 r1, 1; add.u32 r2, r1, r0;", 0,
          "uninitialised-register", 32);
    CHECK(strstr(found, "register 'r1'") && strstr(found, "thread (7,0,0)"), "%s", found);
    fault("shfl from a lane that has written",
          "setp.eq.u32 p0, r0, 3; @p0 mov.u32 r1, 1; shfl.sync.idx.b32 r2, r1, 3, 31, -1;", 0, "", 32);
    fault("shfl from a lane that has not written, unused",
          "setp.eq.u32 p0, r0, 3; @p0 mov.u32 r1, 1; shfl.sync.idx.b32 r2, r1, 4, 31, -1;", 0, "", 32);
    fault("shfl from a lane that has not written",
          "setp.eq.u32 p0, r0, 3; @p0 mov.u32 r1, 1; shfl.sync.idx.b32 r2, r1, 4, 31, -1; add.u32 r3, r2, 1;",
          0, "uninitialised-register", 32);
    fault("predicate never written", "@p5 st.global.u32 [d0], 1;", 0, "uninitialised-register", 1);
    fault("trap not taken", "setp.gt.u32 p0, r0, 99; @p0 trap;", 0, "", 32);
    fault("trap", "setp.gt.u32 p0, r0, 20; @p0 trap;", 719, "trap", 32);

    /* copies carry what was written; a copy from the host initialises */
    dptr a = alloc(64), b = alloc(64);
    uint32_t zero[4] = {0};
    handle m = load(HEAD ".visible .entry k(.param .u64 p, .param .u64 q) { .reg .b64 d; .reg .b32 r; "
                         "ld.param.u64 d, [p]; ld.global.u32 r, [d]; ret; }");
    handle f = function(m, "k");
    void *params[] = {&b, &a};
    cuMemcpyHtoD_v2_(a, zero, 16);
    cuMemcpyDtoD_v2_(b, a + 32, 16);
    SAME(run(f, 1, 1, 0, params), 0);
    SAME(report_count(), 1);
    report_clear();
    cuMemcpyDtoD_v2_(b, a, 16);
    SAME(run(f, 1, 1, 0, params), 0);
    SAME(report_count(), 0);
    /* use after free; the context stays broken until it is cleared */
    cuMemFree_v2_(b);
    SAME(run(f, 1, 1, 0, params), 700);
    CHECK(strstr(findings(), "use-after-free") == found, "%s", found);
    SAME(cuMemAlloc_v2_(&b, 16), 700);
    SAME(cuCtxSynchronize_(), 700);
    report_clear();
    SAME(cuCtxSynchronize_(), 0);
    /* each check can be switched off */
    params[0] = &a;
    a += 48;
    set_option("uninitialised", 0);
    SAME(run(f, 1, 1, 0, params), 0);
    SAME(report_count(), 0);
    set_option("uninitialised", 1);
    a -= 48;
    cuMemFree_v2_(a);
    cuModuleUnload_(m);
}

/* --- the API ---------------------------------------------------------------------------------- */

static void test_api(void) {
    int v = 0, junk;
    char name[64];
    size_t total, free_bytes, free_after;
    handle context = NULL, other = NULL, m, f, s, e1, e2;
    dptr p = 0;
    const char *text;
    SAME(cuDriverGetVersion_(&v), 0);
    SAME(v, 13000);
    SAME(cuDeviceGetCount_(&v), 0);
    SAME(v, 1);
    SAME(cuDeviceGet_(&v, 1), 101);
    SAME(cuDeviceGetName_(name, sizeof name, 0), 0);
    CHECK(!strncmp(name, "ptxsim CPU driver (sm_", 22), "%s", name);
    static const struct {
        int attribute, value;
    } attributes[] = {{1, 1024},    {2, 1024}, {4, 64},      {5, 2147483647}, {6, 65535}, {8, 49152},
                      {10, 32},     {16, 132}, {39, 2048},   {41, 1},         {75, 9},    {76, 0},
                      {81, 233472}, {95, 1},   {97, 232448}, {106, 32}};
    for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++) {
        SAME(cuDeviceGetAttribute_(&v, attributes[k].attribute, 0), 0);
        SAME(v, attributes[k].value);
    }
    SAME(cuDeviceGetAttribute_(&v, -1, 0), 1);
    SAME(cuGetErrorName_(700, &text), 0);
    CHECK(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s", text);
    SAME(cuGetErrorString_(12345, &text), 1);
    /* memory */
    SAME(cuMemGetInfo_v2_(&free_bytes, &total), 0);
    SAME(cuMemAlloc_v2_(&p, 0), 1);
    SAME(cuMemAlloc_v2_(&p, total + 1), 2);
    SAME(cuMemAlloc_v2_(&p, 1000), 0);
    SAME(cuMemGetInfo_v2_(&free_after, &total), 0);
    SAME(free_bytes - free_after, 1000);
    SAME(cuMemFree_v2_(p + 8), 1);
    SAME(cuMemcpyDtoH_v2_(name, p + 990, 20), 1);
    SAME(cuMemcpyHtoD_v2_(12345, name, 4), 1);
    SAME(cuMemcpyHtoDAsync_v2_(p, name, 4, &junk), 400);
    SAME(cuMemsetD32_v2_(p + 2, 0, 1), 1);
    SAME(cuMemsetD16_v2_(p, 0x1234, 500), 0);
    uint16_t half;
    SAME(cuMemcpyDtoH_v2_(&half, p + 998, 2), 0);
    SAME(half, 0x1234);
    SAME(cuMemFree_v2_(p), 0);
    SAME(cuMemFree_v2_(p), 1);
    void *pinned;
    SAME(cuMemHostAlloc_(&pinned, 64, 2), 0);
    memset(pinned, 5, 64);
    SAME(cuMemFreeHost_(pinned), 0);
    SAME(cuMemFreeHost_(pinned), 1);
    /* handles that are none */
    SAME(cuModuleUnload_(&junk), 400);
    SAME(cuModuleGetFunction_(&f, &junk, "k"), 400);
    SAME(cuStreamSynchronize_(&junk), 400);
    SAME(cuStreamDestroy_v2_(&junk), 400);
    SAME(cuEventRecord_(&junk, NULL), 400);
    SAME(cuFuncGetAttribute_(&v, 0, &junk), 400);
    SAME(cuLaunchKernel_(&junk, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 400);
    SAME(cuCtxSetCurrent_(&junk), 201);
    SAME(cuLinkComplete_(&junk, (void **)&text, &total), 400);
    /* launches that the hardware refuses */
    m = load(
        HEAD
        ".shared .align 4 .b8 s[1024];\n.visible .entry k(.param .u64 a) .maxntid 128 { .reg .b32 r; mov.u32 "
        "r, s; ret; }\n"
        ".visible .entry q(.param .u64 a) .reqntid 64 { ret; }\n.visible .global .align 4 .u32 gv[3];\n");
    SAME(cuModuleGetFunction_(&f, m, "none"), 500);
    SAME(cuModuleGetFunction_(&f, m, "k"), 0);
    void *params[] = {&p};
    SAME(cuLaunchKernel_(f, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 129, 1, 1, 0, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 1, 65536, 1, 32, 1, 1, 0, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 65, 0, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 1, 49152, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 1, 48128, NULL, params, NULL), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), 1);
    SAME(cuFuncSetAttribute_(f, 8, 100000), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 1, 100000, NULL, params, NULL), 0);
    SAME(cuFuncSetAttribute_(f, 8, 232448), 1);
    SAME(cuFuncGetAttribute_(&v, 1, f), 0);
    SAME(v, 1024);
    SAME(cuOccupancyMaxActiveBlocksPerMultiprocessor_(&v, f, 128, 0), 0);
    CHECK(v >= 8 && v <= 16, "%d blocks", v);
    SAME(cuModuleGetFunction_(&f, m, "q"), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 1);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL), 0);
    size_t bytes;
    SAME(cuModuleGetGlobal_v2_(&p, &bytes, m, "gv"), 0);
    SAME(bytes, 12);
    SAME(cuModuleGetGlobal_v2_(&p, &bytes, m, "gw"), 500);
    SAME(cuModuleUnload_(m), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL), 400);
    /* streams, events */
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuEventCreate_(&e1, 0), 0);
    SAME(cuEventCreate_(&e2, 0), 0);
    float ms = -1;
    SAME(cuEventElapsedTime_(&ms, e1, e2), 400);
    SAME(cuEventRecord_(e1, s), 0);
    SAME(cuEventRecord_(e2, s), 0);
    SAME(cuStreamWaitEvent_(s, e1, 0), 0);
    SAME(cuEventElapsedTime_(&ms, e1, e2), 600); /* nothing has waited for them */
    SAME(cuEventSynchronize_(e2), 0);
    SAME(cuEventElapsedTime_(&ms, e1, e2), 0);
    CHECK(ms >= 0, "%g", ms);
    SAME(cuStreamQuery_(s), 0);
    SAME(cuEventDestroy_v2_(e1), 0);
    SAME(cuEventDestroy_v2_(e1), 400);
    SAME(cuEventDestroy_v2_(e2), 0);
    SAME(cuStreamDestroy_v2_(s), 0);
    SAME(cuStreamDestroy_v2_(s), 400);
    /* linking gives an image that loads */
    char ptx[] = HEAD ".visible .entry k(.param .u64 a) { ret; }";
    handle link;
    void *image;
    SAME(cuLinkCreate_v2_(0, NULL, NULL, &link), 0);
    SAME(cuLinkAddData_v2_(link, 1, ptx, sizeof ptx, "k", 0, NULL, NULL), 0);
    SAME(cuLinkComplete_(link, &image, &bytes), 0);
    char *kept = malloc(bytes);
    memcpy(kept, image, bytes);
    SAME(cuLinkDestroy_(link), 0);
    SAME(cuModuleLoadData_(&m, kept), 0);
    SAME(cuModuleGetFunction_(&f, m, "k"), 0);
    cuModuleUnload_(m);
    kept[bytes - 8] ^= 1;
    SAME(cuModuleLoadData_(&m, kept), 200);
    SAME(cuModuleLoadData_(&m, "\177ELF"), 200);
    free(kept);
    /* contexts */
    SAME(cuCtxGetCurrent_(&context), 0);
    SAME(cuCtxCreate_v2_(&other, 0, 0), 0);
    SAME(cuMemAlloc_v2_(&p, 100), 0);
    SAME(cuCtxPopCurrent_v2_(&f), 0);
    CHECK(f == other, "the wrong context was popped");
    SAME(cuCtxPushCurrent_v2_(other), 0);
    SAME(cuCtxDestroy_v2_(other), 0);
    SAME(cuCtxDestroy_v2_(other), 201);
    SAME(cuMemFree_v2_(p), 1);
    /* counted and failed calls */
    uint64_t before = calls("cuMemAlloc_v2");
    SAME(ptxsim_fail_("cuMemAlloc_v2", 2, 2), 0);
    SAME(cuMemAlloc_v2_(&p, 16), 0);
    cuMemFree_v2_(p);
    SAME(cuMemAlloc_v2_(&p, 16), 2);
    SAME(cuMemAlloc_v2_(&p, 16), 0);
    cuMemFree_v2_(p);
    SAME(calls("cuMemAlloc_v2") - before, 3);
    SAME(ptxsim_fail_("cuNothing", 1, 2), 1);
    SAME(calls("cuMemAlloc") - before, 3);
    SAME(ptxsim_fail_("cuMemAlloc", 1, 2), 0);
    SAME(cuMemAlloc_v2_(&p, 16), 2);
    SAME(cuMemAlloc_v2_(&p, 16), 0);
    report_clear();
    SAME(cuMemFree_v2_(p + 8), 1);
    SAME(report_count(), 1);
    SAME(cuMemFree_v2_(p), 0);
    SAME(report_count(), 1);
    report_clear();
    void *address = NULL;
    SAME(cuGetProcAddress_v2_("cuMemAlloc", &address, 13000, 0, NULL), 0);
    CHECK(address == *(void **)&cuMemAlloc_v2_, "cuMemAlloc is not cuMemAlloc_v2");
}

/* One worker or four: the same results, bit for bit. */
static void test_determinism(void) {
    enum { N = 64 * 256 };
    static uint32_t one[N], four[N];
    static const char ptx[] = HEAD ".visible .entry k(.param .u64 out) {\n" REGS
                                   "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x; "
                                   "mad.lo.u32 r2, r1, 256, r0; mul.wide.u32 d1, r2, 4; add.u64 d1, d0, d1;\n"
                                   "cvt.rn.f32.u32 f0, r2; mov.u32 r3, 0;\nL: sin.approx.f32 f1, f0; "
                                   "fma.rn.f32 f0, f0, f1, f0; ex2.approx.f32 f2, f1; add.f32 f0, f0, f2;\n"
                                   "add.u32 r3, r3, 1; and.b32 r4, r0, 15; setp.le.u32 p0, r3, r4; @p0 bra "
                                   "L; st.global.f32 [d1], f0; ret; }";
    set_option("threads", 1);
    SAME(run_out(ptx, 64, 256, 0, one, N), 0);
    set_option("threads", 4);
    SAME(run_out(ptx, 64, 256, 0, four, N), 0);
    set_option("threads", 0);
    CHECK(!memcmp(one, four, sizeof one), "results depend on the number of threads");
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_semantics();
    test_mistakes();
    test_refusals();
    test_saxpy();
    test_reduction();
    test_control_flow();
    test_operands();
    test_memory();
    test_warps();
    test_checks();
    test_api();
    test_determinism();
    return sim_close();
}
