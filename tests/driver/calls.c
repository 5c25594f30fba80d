/* calls.c - functions, frames, pointers, the device's library, in PTX written by hand; what
 * compilers write is in nvcc.c. Every finding is shown by a program that has
 * the fault and by a near twin.
 *
 *   calls [library]       or PTXGEN_CUDA_LIBRARY; run from the root of the repository */
#include "../simtest.h"
#include <unistd.h>

static char ptx[1 << 16];

/* Functions, then the body of an entry that has its thread's place in d1, its index in r0. */
static const char *module_of(const char *functions, const char *body) {
    snprintf(ptx, sizeof ptx, "%s%s\n%s%s ret; }\n", HEAD, functions, OUT, body);
    return ptx;
}

/* Runs 32 threads; each word must be want(index). */
static void gives(const char *name, const char *functions, const char *body, uint32_t (*want)(uint32_t)) {
    uint32_t x[32];
    int bad = 0, code = run_out(module_of(functions, body), 1, 32, 0, x, 32);
    if (!CHECK(code == 0 && !report_count(), "%s gives %d: %s", name, code, code ? found : findings())) {
        report_clear();
        return;
    }
    for (uint32_t t = 0; t < 32; t++) bad += x[t] != want(t);
    CHECK(!bad, "%s: %d of 32 are wrong, the last is %u, expected %u", name, bad, x[31], want(31));
}

/* Ends with this code and, unless it is empty, this finding and text. */
static void ends(const char *name, const char *functions, const char *body, int want, const char *kind,
                 const char *text) {
    uint32_t x[32];
    int code = run_out(module_of(functions, body), 1, 32, 0, x, 32);
    if (code < 700) findings();
    size_t n = strlen(kind);
    CHECK(code == want
              && (n ? !strncmp(found, kind, n) && found[n] == ':' && strstr(found, text) != NULL : !*found),
          "%s gives %d, expected %d and '%s', '%s': %s", name, code, want, kind, text, found);
    report_clear();
    found[0] = 0;
}

static uint32_t ten_more(uint32_t t) { return t + 10; }
static uint32_t same(uint32_t t) { return t; }
static uint32_t doubled(uint32_t t) { return 2 * t; }
static uint32_t seven(uint32_t t) {
    (void)t;
    return 7;
}
static uint32_t triangle(uint32_t t) { return t * (t + 1) / 2; }

#define ADD10 ".func (.reg .b32 o) add10(.reg .b32 i) { add.u32 o, i, 10; ret; }\n"
#define TWICE                                                                                                \
    ".func (.param .b32 o) twice(.param .b32 i) { .reg .b32 a; ld.param.b32 a, [i]; add.u32 a, a, a; "       \
    "st.param.b32 [o], a; ret; }\n"
#define SUM                                                                                                  \
    ".func (.param .b32 o) sum(.param .b32 i) { .reg .b32 a<8>; .reg .pred p; ld.param.b32 a0, [i];\n"       \
    "setp.eq.u32 p, a0, 0; @p bra Z; { .param .b32 x; .param .b32 y; sub.u32 a1, a0, 1; st.param.b32 [x], "  \
    "a1;\n"                                                                                                  \
    "call (y), sum, (x); ld.param.b32 a2, [y]; } add.u32 a3, a2, a0; st.param.b32 [o], a3; ret;\n"           \
    "Z: st.param.b32 [o], 0; ret; }\n"

static void test_results(void) {
    gives("a register to a register", ADD10, "call (r1), add10, (r0); st.global.u32 [d1], r1;", ten_more);
    gives("a register to .param", TWICE, "call (r1), twice, (r0); st.global.u32 [d1], r1;", doubled);
    gives("constants", ADD10, "call (r1), add10, (0); add.u32 r1, r1, r0; st.global.u32 [d1], r1;", ten_more);
    gives("an empty list, a result thrown away", ADD10 ".func f() { ret; }\n",
          "call f, (); call f; call (), f, (); call (_), add10, (r0); st.global.u32 [d1], r0;", same);
    gives("a guarded call", ADD10,
          "setp.lt.u32 p0, r0, 7; add.u32 r1, r0, 10; @p0 call (r1), add10, (r0); st.global.u32 [d1], r1;",
          ten_more);
    gives("a call in a divergent branch", ADD10,
          "and.b32 r2, r0, 1; setp.eq.u32 p0, r2, 0; @p0 bra E; call (r1), add10, (r0); bra J;\n"
          "E: call (r1), add10, (r0); J: bar.warp.sync -1; st.global.u32 [d1], r1;",
          ten_more);
    gives("parameters that change places",
          ".func (.reg .b32 o) f(.reg .b32 a, .reg .b32 b, .reg .b32 n) {\n"
          ".reg .pred p; .reg .b32 m; setp.eq.u32 p, n, 0; @p bra Z; sub.u32 m, n, 1; call (o), f, (b, a, "
          "m); ret;\n"
          "Z: sub.u32 o, a, b; ret; }\n",
          "add.u32 r1, r0, 17; call (r2), f, (r0, r1, 3); sub.u32 r2, r2, 17; "
          "add.u32 r2, r2, r0; add.u32 r2, r2, 10; st.global.u32 [d1], r2;",
          ten_more);
    gives("a barrier and shuffle inside",
          ".func (.reg .b32 o) f(.reg .b32 i) { bar.sync 0; "
          "shfl.sync.idx.b32 o, i, 7, 31, -1; ret; }\n",
          "call (r1), f, (r0); st.global.u32 [d1], r1;", seven);
    gives("exit inside", ".func f(.reg .b32 i) { .reg .pred p; setp.gt.u32 p, i, 100; @p exit; ret; }\n",
          "call f, (r0); st.global.u32 [d1], r0;", same);
    gives("a weak function, an alias, one that does not return",
          ".weak .func (.reg .b32 o) add10(.reg .b32 i) { add.u32 o, i, 10; ret; }\n"
          ".func (.reg .b32 o) other(.reg .b32 i);\n.alias other, add10;\n.func gone() .noreturn { exit; }\n",
          "call (r1), other, (r0); st.global.u32 [d1], r1; call gone;", ten_more);
    gives(
        "64 bits and structs",
        ".func (.param .align 8 .b8 o[24]) f(.param .align 8 .b8 s[24], .param .b64 k) {\n"
        ".reg .b64 a<8>; ld.param.v2.b64 {a0, a1}, [s]; ld.param.b64 a2, [s+16]; ld.param.b64 a3, [k];\n"
        "add.u64 a0, a0, a3; st.param.b64 [o], a2; st.param.b64 [o+8], a1; st.param.b64 [o+16], a0; ret; }\n"
        ".func dummy(.param .align 16 .b8 q[16]) { ret; }\n",
        ".param .align 8 .b8 in[24]; .param .b64 k; .param .align 8 .b8 back[24];\n"
        "cvt.u64.u32 d2, r0; st.param.b64 [in], d2; st.param.b64 [in+8], 1; st.param.b64 [in+16], 2; "
        "st.param.b64 [k], 10;\n"
        "call (back), f, (in, k); ld.param.b64 d3, [back+16]; st.global.u32 [d1], d3;",
        ten_more);
}

static void test_recursion(void) {
    gives("recursion of different depths", SUM, "call (r1), sum, (r0); st.global.u32 [d1], r1;", triangle);
    gives("registers and predicates live across a recursion",
          ".func (.reg .b32 o) f(.reg .b32 n) { .reg .pred p, q; .reg .b32 a, b; setp.eq.u32 p, n, 0; @p bra "
          "Z;\n"
          "and.b32 a, n, 1; setp.ne.u32 q, a, 0; sub.u32 b, n, 1; call (a), f, (b); @q add.u32 a, a, n; "
          "mov.u32 o, a; ret;\n"
          "Z: mov.u32 o, 0; ret; }\n",
          "shl.b32 r2, r0, 1; call (r1), f, (r2); sqrt.rn.f64 g0, 0d4010000000000000;\n"
          "mul.lo.u32 r3, r0, r0; sub.u32 r1, r1, r3; add.u32 r1, r1, r0; st.global.u32 [d1], r1;",
          same);
    gives("each level has its own array",
          ".func (.reg .b32 o) f(.reg .b32 n) { .local .align 8 .b8 a[16]; .reg .pred p; .reg .b64 d; .reg "
          ".b32 r<4>;\n"
          "mov.u64 d, a; st.local.u32 [d], n; st.local.u32 [a+4], n; setp.eq.u32 p, n, 0; mov.u32 o, 0; @p "
          "ret;\n"
          "sub.u32 r0, n, 1; call (r1), f, (r0); ld.local.u32 r2, [d]; add.u32 o, r1, r2; ret; }\n",
          "call (r1), f, (r0); st.global.u32 [d1], r1;", triangle);
#define ENDLESS                                                                                              \
    ".func (.reg .b32 o) f(.reg .b32 n) { .local .align 4 .b8 a[64]; .reg .pred p; .reg .b32 m;\n"           \
    "setp.ge.u32 p, n, %s; mov.u32 o, n; @p ret; add.u32 m, n, 1; call (o), f, (m); ret; }\n"
    static char endless[1000];
    snprintf(endless, sizeof endless, ENDLESS, "1000000");
    ends("an endless recursion", endless, "call (r1), f, (r0);", 700, "stack-overflow",
         "the call of 'f' needs");
    snprintf(endless, sizeof endless, ENDLESS, "100");
    ends("its twin", endless, "call (r1), f, (r0);", 0, "", "");
    set_option("stack", 2048);
    ends("a smaller stack", endless, "call (r1), f, (r0);", 700, "stack-overflow", "stack of 2048");
    set_option("stack", 65536);
    gives(
        "alloca", "",
        "and.b32 r1, r0, 3; add.u32 r1, r1, 1; mul.wide.u32 d2, r1, 4; stacksave.u64 d5; alloca.u64 d3, d2;\n"
        "cvta.local.u64 d4, d3; st.u32 [d4], r0; stackrestore.u64 d5; alloca.u64 d6, 8, 32; st.local.u32 "
        "[d6], 10; "
        "ld.local.u32 r2, [d6]; add.u32 r2, r2, r0; st.global.u32 [d1], r2;",
        ten_more);
    ends("alloca beyond the stack", "", "alloca.u64 d3, 100000;", 700, "stack-overflow",
         "100000 bytes asked for");
    ends("alloca within", "", "alloca.u64 d3, 1000;", 0, "", "");
}

#define PROTO "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"

static void test_pointers(void) {
    gives("a pointer in a register",
          ADD10 ".func (.reg .b32 o) less(.reg .b32 i) { sub.u32 o, i, 10; ret; }\n",
          PROTO "mov.u64 d2, add10; mov.u64 d3, less; setp.lt.u32 p0, r0, 16; selp.b64 d4, d2, d3, p0; call "
                "(r1), d4, (r0), P;\n"
                "@!p0 add.u32 r1, r1, 20; st.global.u32 [d1], r1;",
          ten_more);
    gives("a list of targets", ADD10 ".func (.reg .b32 o) less(.reg .b32 i) { sub.u32 o, i, 10; ret; }\n",
          "T: .calltargets add10, less;\nmov.u64 d4, add10; call (r1), d4, (r0), T; st.global.u32 [d1], r1;",
          ten_more);
    gives(
        "tables of functions",
        ADD10 TWICE
        ".func (.reg .b32 o) less(.reg .b32 i) { sub.u32 o, i, 10; ret; }\n"
        ".global .align 8 .u64 table[3] = { add10, less, twice };\n.const .align 8 .u64 ct[1] = { add10 };\n",
        PROTO
        "and.b32 r2, r0, 1; mul.wide.u32 d2, r2, 8; mov.u64 d3, table; add.u64 d3, d3, d2; ld.global.u64 d4, "
        "[d3];\n"
        "call (r1), d4, (r0), P; setp.ne.u32 p0, r2, 0; @p0 add.u32 r1, r1, 20; ld.const.u64 d5, [ct];\n"
        "ld.global.u64 d6, [table]; setp.ne.u64 p1, d5, d6; @p1 mov.u32 r1, 0; st.global.u32 [d1], r1;",
        ten_more);
    gives("recursion through a pointer",
          ".func (.param .b32 o) f(.param .b32 n, .param .b64 g) {\n"
          ".reg .b32 a<4>; .reg .b64 d; .reg .pred p; P: .callprototype (.param .b32 _) _ (.param .b32 _, "
          ".param .b64 _);\n"
          "ld.param.b32 a0, [n]; ld.param.b64 d, [g]; setp.eq.u32 p, a0, 0; @p bra Z; sub.u32 a1, a0, 1;\n"
          "{ .param .b32 x; .param .b64 y; .param .b32 z; st.param.b32 [x], a1; st.param.b64 [y], d; call "
          "(z), d, (x, y), P;\n"
          "ld.param.b32 a2, [z]; } add.u32 a3, a2, a0; st.param.b32 [o], a3; ret; Z: st.param.b32 [o], 0; "
          "ret; }\n",
          "mov.u64 d2, f; call (r1), f, (r0, d2); st.global.u32 [d1], r1;", triangle);
    const char *const two =
        ADD10 ".func (.reg .b64 o) wide(.reg .b32 i, .reg .b32 j) { mov.b64 o, 1; ret; }\n";
    ends("a pointer that is none", two,
         PROTO "mov.u64 d2, 4096; setp.gt.u32 p0, r0, 5; mov.u64 d3, add10;\n"
               "selp.b64 d2, d2, d3, p0; call (r1), d2, (r0), P;",
         718, "call-target", "0x1000 is no function of this module");
    ends("a null pointer", two, PROTO "mov.u64 d2, 0; call (r1), d2, (r0), P;", 718, "call-target",
         "0x0 is no function");
    ends("another prototype", two, PROTO "mov.u64 d2, wide; call (r1), d2, (r0), P;", 718, "call-target",
         "'wide' takes 2 parameters and returns 1");
    ends("the twin of both", two, PROTO "mov.u64 d2, add10; call (r1), d2, (r0), P;", 0, "", "");
}

static void test_fresh_frames(void) {
    const char *const half =
        ".func (.reg .b32 o) f(.reg .b32 n) { .local .align 4 .b8 a[8]; .reg .pred p; setp.eq.u32 p, n, 0;\n"
        "@!p bra S; %s st.local.u32 [a], 5; S: ld.local.u32 o, [a]; ret; }\n";
    static char text[1000];
    snprintf(text, sizeof text, half, "");
    ends("what an earlier call left", text, "call (r1), f, (0); call (r2), f, (1); add.u32 r1, r1, r2;", 0,
         "uninitialised-read", "byte 0 was never written");
    ends("its twin", text, "call (r1), f, (0); call (r2), f, (0); add.u32 r1, r1, r2;", 0, "", "");
    const char *const reg =
        ".func (.reg .b32 o) f(.reg .b32 n) { .reg .b32 a; .reg .pred p; setp.eq.u32 p, n, 0;\n"
        "@p mov.u32 a, 5; add.u32 o, a, 1; ret; }\n";
    ends("a register that an earlier call wrote", reg,
         "call (r1), f, (0); call (r2), f, (1); st.global.u32 [d1], r2;", 0, "uninitialised-register", "'a'");
    ends("the same, and nobody wants it", reg, "call (r1), f, (0); call (r2), f, (1);", 0, "", "");
    const char *const through =
        ".func (.reg .b32 o) f(.reg .b32 n, .reg .b32 w) { .reg .pred p; setp.eq.u32 p, w, 0; mov.u32 o, 5;\n"
        "@p mov.u32 o, n; ret; }\n"
        ".func (.param .b32 o) g(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; st.param.b32 [o], a; ret; }\n"
        ".func (.param .b32 o) h(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; call (a), g, (a);\n"
        "st.param.b32 [o], a; ret; }\n";
    ends("an argument that nothing wrote", through,
         "call (r1), f, (r9, 0); add.u32 r1, r1, 1; st.global.u32 [d1], r1;", 0, "uninitialised-register", "'r9'");
    ends("and that the function does not use", through,
         "call (r1), f, (r9, 1); add.u32 r1, r1, 1; st.global.u32 [d1], r1;", 0, "", "");
    ends("through .param, by two functions", through,
         "call (r1), h, (r9); add.u32 r1, r1, 1; st.global.u32 [d1], r1;", 0, "uninitialised-register", "'r9'");
    ends("and not used behind them", through, "call (r1), h, (r9); st.global.u32 [d1], r0;", 0, "", "");
    ends("of 64 bits",
         ".func (.reg .b64 o) w(.reg .b64 n) { mov.b64 o, n; ret; }\n",
         "call (d5), w, (d7); add.u64 d5, d5, 1; cvt.u32.u64 r1, d5; st.global.u32 [d1], r1;", 0,
         "uninitialised-register", "'d7'");
    const char *const padded =
        ".func (.param .align 8 .b8 o[16]) f(.param .b32 n) { .reg .b32 a; .reg .b64 d; ld.param.b32 a, [n];\n"
        "st.param.b8 [o], a; cvt.u64.u32 d, a; st.param.b64 [o+8], d; ret; }\n"
        ".func (.param .align 8 .b8 o[16]) g(.param .b32 n) { .reg .b32 a; .reg .b16 h<9>; .reg .b64 d;\n"
        "ld.param.b32 a, [n]; { .param .b32 x; .param .align 8 .b8 r[16]; st.param.b32 [x], a;\n"
        "call (r), f, (x); ld.param.b8 h0, [r]; ld.param.v2.b8 {h1, h2}, [r+2];\n"
        "ld.param.v4.b8 {h3, h4, h5, h6}, [r+4]; ld.param.b8 h7, [r+1]; ld.param.b64 d, [r+8]; }\n"
        "st.param.b8 [o], h0; st.param.b64 [o+8], d; %s ret; }\n";
    char functions[1200];
    snprintf(functions, sizeof functions, padded, "");
    ends("a struct with padding goes through", functions,
         ".param .b32 x; .param .align 8 .b8 r[16]; st.param.b32 [x], r0; call (r), g, (x);\n"
         "ld.param.b64 d5, [r+8]; cvt.u32.u64 r1, d5; st.global.u32 [d1], r1;", 0, "", "");
    snprintf(functions, sizeof functions, padded, "add.u16 h8, h4, 1; st.param.b8 [o+4], h8;");
    ends("its padding is computed with", functions,
         ".param .b32 x; .param .align 8 .b8 r[16]; st.param.b32 [x], r0; call (r), g, (x);\n"
         "ld.param.b8 r1, [r+4]; st.global.u32 [d1], r1;", 0, "uninitialised-read", "local");
    ends("its twin", reg, "call (r1), f, (0); call (r2), f, (0);", 0, "", "");
    const char *const result =
        ".func (.param .b32 o) f(.param .b32 n) { .reg .b32 a; .reg .pred p; ld.param.b32 a, [n];\n"
        "setp.gt.u32 p, a, 3; @p bra E; st.param.b32 [o], 1; E: ret; }\n";
    ends("a result that is not given", result,
         ".param .b32 x, y; st.param.b32 [x], r0; call (y), f, (x); "
         "ld.param.b32 r1, [y]; add.u32 r1, r1, 1; st.global.u32 [d1], r1;",
         0, "uninitialised-read", "local");
    ends("its twin", result,
         ".param .b32 x, y; st.param.b32 [x], 3; call (y), f, (x); ld.param.b32 r1, [y]; "
         "add.u32 r1, r1, 1; st.global.u32 [d1], r1;",
         0, "", "");
}

/* A struct's padding may be copied; a value that nothing wrote may not be used. */
static void test_copies(void) {
    const char *const local =
        ".local .align 16 .b8 a[16]; .local .align 16 .b8 b[16]; .local .align 4 .b8 c[4];\n"
        "st.local.u8 [a], 1; st.local.u64 [a+8], 10; ld.local.v2.b64 {d2, d3}, [a]; ";
    static char text[1000];
    snprintf(
        text, sizeof text,
        "%sst.local.v2.b64 [b], {d2, d3}; ld.local.b64 d4, [b+8]; cvt.u32.u64 r1, d4; add.u32 r1, r1, r0;"
        " st.global.u32 [d1], r1;",
        local);
    gives("padding is copied", "", text, ten_more);
    snprintf(text, sizeof text, "%sst.local.v2.b64 [b], {d2, d3}; ld.local.u32 r1, [b+4]; add.u32 r1, r1, 1;",
             local);
    ends("and used", "", text, 0, "uninitialised-read", "byte 1 was never written; line");
    snprintf(text, sizeof text, "%sadd.u64 d2, d2, d3; cvt.u32.u64 r1, d2; st.global.u32 [d1], r1;", local);
    ends("and added to", "", text, 0, "uninitialised-read", "byte 1 was never written");
    gives("a bit field is filled", "",
          ".local .align 4 .b8 c[4]; ld.local.u32 r1, [c]; and.b32 r2, r1, -256; or.b32 r3, r2, r0;\n"
          "st.local.u32 [c], r3; ld.local.u8 r4, [c]; st.global.u32 [d1], r4;",
          same);
    ends("and tested", "",
         ".local .align 4 .b8 c[4]; ld.local.u32 r1, [c]; and.b32 r2, r1, 255; setp.eq.u32 p0, r2, 0;", 0,
         "uninitialised-read", "byte 0 was never written");
    ends("a value is stored for the host", "",
         ".local .align 4 .b8 c[4]; ld.local.u32 r1, [c]; st.global.u32 [d1], r1;", 0, "uninitialised-read",
         "a copy to the host");
    /* through shared memory, and within global memory: bytes 4 to 7 of each pair are padding */
    const char *const pairs =
        ".shared .align 8 .b8 a[256], b[256]; mov.u32 r2, a; mad.lo.u32 r2, r0, 8, r2; mov.u32 r3, b; "
        "mad.lo.u32 "
        "r3, r0, 8, r3;\nadd.u32 r4, r0, 10; st.shared.u32 [r2], r4; ld.shared.v2.b32 {r5, r6}, [r2]; "
        "st.shared.v2.b32 [r3], {r5, r6};\nld.shared.u32 r7, [r3%s]; add.u32 r7, r7, 0; st.global.u32 [d1], "
        "r7;";
    snprintf(text, sizeof text, pairs, "");
    gives("a struct in shared memory", "", text, ten_more);
    snprintf(text, sizeof text, pairs, "+4");
    ends("its padding is used", "", text, 0, "uninitialised-read", "byte 0 was never written");
}

/* Registers that nothing has written may be moved, but not used. */
static void test_moves(void) {
#define LANE3 "setp.ne.u32 p0, r0, 3; @p0 bra N; mov.u32 r1, 7; N: "
    gives("a broadcast", "",
          LANE3 "shfl.sync.idx.b32 r2, r1, 3, 31, -1; add.u32 r3, r2, 3; add.u32 r3, r3, r0;\n"
                "st.global.u32 [d1], r3;",
          ten_more);
    ends("of another lane", "", LANE3 "shfl.sync.idx.b32 r2, r1, 2, 31, -1; add.u32 r3, r2, 3;", 0,
         "uninitialised-register", "'r1'");
    gives("not selected", "", LANE3 "selp.b32 r2, 10, r1, p0; @!p0 add.u32 r2, r2, 3; add.u32 r2, r2, r0; "
          "st.global.u32 [d1], r2;", ten_more);
    ends("selected", "", LANE3 "selp.b32 r2, r1, 10, p0; add.u32 r2, r2, r0;", 0, "uninitialised-register",
         "'r1'");
    gives("moved", "",
          LANE3 "mov.u32 r2, r1; mov.b64 d2, {r2, r1}; mov.b64 {r3, r4}, d2; add.u32 r5, r0, 10; "
                "st.global.u32 [d1], r5;",
          ten_more);
    ends("moved and used", "", LANE3 "mov.u32 r2, r1; mov.b64 d2, {r2, r1}; mov.b64 {r3, r4}, d2; "
         "add.u32 r5, r4, 10;", 0, "uninitialised-register", "'r1'");
    ends("moved and stored", "", LANE3 "mov.u32 r2, r1; st.global.u32 [d1], r2;", 0, "uninitialised-register",
         "'r1'");
    gives("to local memory", "", ".local .b32 v; " LANE3 "st.local.u32 [v], r1; add.u32 r5, r0, 10; "
          "st.global.u32 [d1], r5;", ten_more);
    ends("and used from there", "", ".local .b32 v; " LANE3 "st.local.u32 [v], r1; ld.local.u32 r2, [v]; "
         "add.u32 r2, r2, 1;", 0, "uninitialised-register", "'r1'");
}

/* --- the device's library --------------------------------------------------------------------- */

#define LIBRARY                                                                                              \
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"                                 \
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"             \
    ".global .align 1 .b8 line[7] = { 37, 100, 32, 37, 100, 10, 0 };\n"                                      \
    ".global .align 1 .b8 plain[4] = { 97, 98, 10, 0 };\n"

/* What a launch writes to stdout up to the synchronisation. */
static void capture(handle f, unsigned grid, unsigned block, void **params, char *text, size_t room) {
    char path[] = "/tmp/sim_calls_XXXXXX";
    fflush(stdout);
    int kept = dup(1), file = mkstemp(path);
    dup2(file, 1);
    int code = cuLaunchKernel_(f, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL);
    if (!code) code = cuCtxSynchronize_();
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    lseek(file, 0, SEEK_SET);
    ssize_t n = read(file, text, room - 1);
    text[n > 0 ? n : 0] = 0;
    close(file);
    unlink(path);
    SAME(code, 0);
}

static void test_printing(void) {
    static char have[1 << 16], want[1 << 16];
    handle m = load(module_of(
        LIBRARY,
        ".param .b64 f, a; .param .b32 r; .local .align 8 .b8 v[8]; mov.u32 r2, %ctaid.x; st.local.v2.u32 "
        "[v], {r2, r0};\n"
        "mov.u64 d2, line; cvta.global.u64 d2, d2; mov.u64 d3, v; cvta.local.u64 d3, d3; st.param.b64 [f], "
        "d2; "
        "st.param.b64 [a], d3; call (r), vprintf, (f, a); ld.param.b32 r3, [r]; st.global.u32 [d1], r3;"));
    dptr out = alloc(64 * 4);
    void *params[] = {&out};
    size_t n = 0;
    for (int b = 0; b < 9; b++)
        for (int t = 0; t < 40; t++) n += (size_t)sprintf(want + n, "%d %d\n", b, t);
    for (int threads = 1; threads <= 4; threads += 3) { /* the order does not depend on who runs the blocks */
        set_option("threads", threads);
        capture(function(m, "k"), 9, 40, params, have, sizeof have);
        CHECK(!strcmp(have, want), "%d threads print\n%.300s", threads, have);
    }
    uint32_t count[40];
    SAME(cuMemcpyDtoH_v2_(count, out, sizeof count), 0);
    for (int k = 0; k < 40; k++) CHECK(count[k] == 2, "thread %d: vprintf gives %u", k, count[k]);
    set_option("threads", 0);
    set_option("fifo", 500);
    capture(function(m, "k"), 9, 40, params, have, sizeof have);
    CHECK(!strcmp(have, want + strlen(want) - 500), "a small FIFO keeps the end: %.100s", have);
    CHECK(!strncmp(findings(), "printf-overflow", 15), "and says so: %s", found);
    set_option("fifo", 1 << 20);
    report_clear();
    capture(function(m, "k"), 9, 40, params, have, sizeof have);
    CHECK(!report_count(), "%s", findings());
    SAME(cuMemFree_v2_(out), 0);
    SAME(cuModuleUnload_(m), 0);
}

static void test_heap(void) {
    const char *const twice =
        ".param .b64 n; .param .b64 p; st.param.b64 [n], %s; call (p), malloc, (n); ld.param.b64 d2, [p];\n"
        "call (d3), malloc, (16); setp.eq.u64 p0, d2, 0; selp.u32 r1, 10, 0, p0; add.u32 r1, r1, r0; "
        "st.global.u32 [d1], r1; call free, (d2); call free, (d3);";
    static char text[1000];
    snprintf(text, sizeof text, twice, "100000000");
    gives("more than the heap has", LIBRARY, text, ten_more);
    snprintf(text, sizeof text, twice, "1000");
    gives("what it has", LIBRARY, text, same);
    set_option("heap", 500);
    snprintf(text, sizeof text, twice, "501");
    gives("a smaller heap", LIBRARY, text, ten_more);
    set_option("heap", 8 << 20);
    /* what is never freed is told when the context goes */
    handle context, old;
    SAME(cuCtxGetCurrent_(&old), 0);
    for (int leaks = 0; leaks < 2; leaks++) {
        SAME(cuCtxCreate_v2_(&context, 0, 0), 0);
        uint32_t x[32];
        SAME(run_out(module_of(LIBRARY, leaks ? "call (d3), malloc, (16);"
                                              : "call (d3), malloc, (16); call free, (d3);"),
                     1, 32, 0, x, 32),
             0);
        SAME(cuCtxDestroy_v2_(context), 0);
        findings();
        if (leaks)
            CHECK(strstr(found, "leak: 32 objects of the device heap (512 bytes)"), "%s", found);
        else
            CHECK(!*found, "%s", found);
        report_clear();
    }
    SAME(cuCtxSetCurrent_(old), 0);
}

static void test_refusals(void) {
    static const struct {
        const char *functions, *body, *text;
    } list[] = {
        {".extern .func gone(.param .b32 a);\n", "call gone, (r0);", "Unresolved extern function 'gone'"},
        {".func self();\n.alias self, self;\n", "call self;", "Cannot alias a function to itself"},
        {ADD10, "call (r1), add10, (r0, r0);", "takes 1 arguments"},
        {ADD10, "call (r1), add10, (d0);", "differs in kind or size"},
        {ADD10, "call (r1), d2, (r0);", "requires a call prototype"},
        {ADD10, PROTO "call (r1), r2, (r0), P;", "expected a function or a .u64 register"},
        {"", "call (r1), k, (d0);", ""},
        {".func f() { add.u32 r1, r1, 1; ret; }\n", "call f;", "line 4"}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        int code = refused(module_of(list[k].functions, list[k].body));
        CHECK(code == 218 && strstr(log_text, list[k].text), "%s: %d %s", list[k].body, code, log_text);
    }
}

/* Initial values: addresses, parts of addresses, floating point in untyped variables. */
static uint32_t all_good(uint32_t t) {
    (void)t;
    return 127;
}

static void test_initialisers(void) {
    const char *const variables =
        ".const .align 4 .b32 c[4] = { 1, 2, 3, 4 };\n.global .align 4 .b32 g[4] = { 5, 6, 7, 8 };\n"
        ".global .align 8 .u64 a[3] = { generic(c)+4, g+8, 17 };\n.global .align 8 .u64 whole = g;\n"
        ".global .align 8 .u8 bytes[8] = { 0xff(g), 0xff00(g), 0xff0000(g), 0xff000000(g), 0xff00000000(g), "
        "0xff0000000000(g), 0xff000000000000(g), 0xff00000000000000(g) };\n.global .align 8 .u64 one = "
        "0xff00(g);\n"
        ".global .align 8 .b32 m[3] = { 1.5, 0f3f800000, -3 };\n.global .align 16 .b64 n[2] = { 1.5, "
        "0f3f800000 };\n"
        ".global .b32 two[2][3] = { { 1, 2 }, { 3 } };\n.common .global .align 4 .b32 cm;\n.weak .global "
        ".u32 wk = 9;\n"
        ".global .v4 .b32 vv = { 1, 2, 3, 4 };\n.global .attribute(.managed) .align 4 .b32 mg = 3;\n";
    gives("initial values", variables,
          "mov.u32 r9, 0; ld.global.u64 d2, [a]; ld.u32 r1, [d2]; setp.eq.u32 p0, r1, 2; @p0 or.b32 r9, r9, "
          "1;\n"
          "ld.global.u64 d2, [a+8]; ld.global.u32 r1, [d2]; setp.eq.u32 p0, r1, 7; @p0 or.b32 r9, r9, 2;\n"
          "ld.global.u64 d2, [whole]; ld.global.u64 d3, [bytes]; setp.eq.u64 p0, d2, d3; @p0 or.b32 r9, r9, "
          "4;\n"
          "ld.global.u64 d4, [one]; shr.u64 d2, d2, 8; and.b64 d2, d2, 255; setp.eq.u64 p0, d2, d4; @p0 "
          "or.b32 r9, r9, 8;\n"
          "ld.global.v2.u32 {r1, r2}, [m]; setp.eq.u32 p0, r1, 0x3fc00000; @p0 setp.eq.u32 p0, r2, "
          "0x3f800000;\n"
          "@p0 or.b32 r9, r9, 16; ld.global.v2.u64 {d2, d3}, [n]; setp.eq.u64 p0, d2, 0x3ff8000000000000;\n"
          "@p0 setp.eq.u64 p0, d3, 0x3f800000; @p0 or.b32 r9, r9, 32; ld.global.u32 r1, [two+12]; "
          "ld.global.u32 r2, [cm];\n"
          "ld.global.u32 r3, [wk]; ld.global.u32 r4, [vv+8]; ld.global.u32 r5, [mg]; add.u32 r1, r1, r2; "
          "add.u32 r1, r1, r3;\n"
          "add.u32 r1, r1, r4; add.u32 r1, r1, r5; setp.eq.u32 p0, r1, 18; @p0 or.b32 r9, r9, 64; "
          "st.global.u32 [d1], r9;",
          all_good);
    static const char *const wrong[] = {".global .b64 a[1] = { g };",
                                        ".global .u16 a[1] = { g };",
                                        ".global .b8 a[1] = { 0xff(g) };",
                                        ".global .u64 a = later;",
                                        ".global .u64 a = generic(f);",
                                        ".global .u64 a = f+4;",
                                        ".global .u64 a = s;",
                                        ".global .f32 a = 3;",
                                        ".global .u32 a = 1.5;",
                                        ".visible .common .global .b32 a;",
                                        ".global .u64 a = a;"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        static char text[400];
        snprintf(text, sizeof text,
                 ".global .b32 g; .shared .b32 s; .func f() { ret; }\n%s\n.global .u32 later;\n", wrong[k]);
        int code = refused(module_of(text, ""));
        CHECK(code == 218 && strstr(log_text, "line 5"), "%s: %d %s", wrong[k], code, log_text);
    }
}

/* Two entries share a function that has an error: it is told once. */
static void test_one_error(void) {
    refused(HEAD ".func f() { .reg .b32 a; add.u32 a, a; ret; }\n.visible .entry k() { call f; ret; }\n"
                 ".visible .entry q() { call f; ret; }\n");
    const char *first = strstr(log_text, "line 4");
    CHECK(first && !strstr(first + 1, "line 4"), "%s", log_text);
}

/* Vectors, predicates and .param variables for .reg parameters and results. */
static void test_register_shapes(void) {
    gives("several results, one a predicate",
          ".func (.reg .b32 a, .reg .pred b) f(.reg .b32 x) { add.u32 a, x, 10; setp.ge.u32 b, x, 0; ret; }\n",
          "call (r1, p0), f, (r0); @!p0 mov.u32 r1, 0; st.global.u32 [d1], r1;", ten_more);
    gives("a predicate per lane",
          ".func (.reg .pred b, .reg .pred c) f(.reg .b32 x) { setp.ge.u32 b, x, 16; setp.lt.u32 c, x, 16; ret; }\n",
          "call (p0, p1), f, (r0); mov.u32 r1, 0; @p0 mov.u32 r1, r0; @p1 mov.u32 r1, r0; "
          "st.global.u32 [d1], r1;", same);
    gives("a vector as parameter and result",
          ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.y; mov.b32 a.y, x.x; ret; }\n",
          ".reg .v2 .b32 v; mov.b32 v.x, r0; mov.b32 v.y, 10; call (v), f, (v); add.u32 r1, v.x, v.y;\n"
          "setp.ne.u32 p0, v.x, 10; @p0 mov.u32 r1, 0; st.global.u32 [d1], r1;", ten_more);
    gives("wide and narrow vectors",
          ".func (.reg .v4 .b16 a, .reg .v2 .f64 b) f(.reg .v2 .b64 x) { cvt.u16.u64 a.x, x.x; cvt.u16.u64 a.w, x.y; "
          "mov.b16 a.y, 0; mov.b16 a.z, 0; cvt.rn.f64.u64 b.x, x.y; mov.f64 b.y, b.x; ret; }\n",
          ".reg .v2 .b64 v; .reg .v4 .b16 w; .reg .v2 .f64 z; cvt.u64.u32 v.x, r0; mov.b64 v.y, 5; "
          "call (w, z), f, (v); cvt.u32.u16 r1, w.x; cvt.u32.u16 r2, w.w; add.u32 r1, r1, r2; "
          "cvt.rzi.u32.f64 r2, z.y; add.u32 r1, r1, r2; st.global.u32 [d1], r1;", ten_more);
    gives(".param variables for registers",
          ".func (.reg .b32 a) f(.reg .b32 x) { add.u32 a, x, 10; ret; }\n",
          "{ .param .b32 x; .param .b32 y; st.param.b32 [x], r0; call (y), f, (x); ld.param.b32 r1, [y]; } "
          "st.global.u32 [d1], r1;", ten_more);
    gives("a vector through a pointer",
          ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.y; add.u32 a.y, x.x, 10; ret; }\n",
          "P: .callprototype (.reg .v2 .b32 a) _ (.reg .v2 .b32 b); .reg .v2 .b32 v; mov.b32 v.x, r0; mov.b32 v.y, 0; "
          "mov.u64 d2, f; call (v), d2, (v), P; st.global.u32 [d1], v.y;", ten_more);
    gives("a vector across a recursion",
          ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { .reg .pred p; .reg .v2 .b32 y; mov.b32 a.x, x.x; "
          "mov.b32 a.y, x.y;\n"
          "setp.eq.u32 p, x.x, 0; @p ret; sub.u32 y.x, x.x, 1; add.u32 y.y, x.y, x.x; call (a), f, (y); "
          "add.u32 a.x, x.x, 0; ret; }\n",
          ".reg .v2 .b32 v; mov.b32 v.x, r0; mov.b32 v.y, 0; call (v), f, (v); st.global.u32 [d1], v.y;", triangle);
}

/* Calls that change nothing but where they return to are no spinning, however long they take. */
static void test_long_tree(void) {
    enum { DEPTH = 24 };
    uint32_t x = 0;
    char functions[4000] = ".func leaf0() { ret; }\n", body[100];
    for (unsigned k = 1; k <= DEPTH; k++) {
        size_t at = strlen(functions);
        snprintf(functions + at, sizeof functions - at, ".func leaf%u() { call leaf%u; call leaf%u; ret; }\n", k,
                 k - 1, k - 1);
    }
    snprintf(body, sizeof body, "call leaf%u; st.global.u32 [d1], 7;", DEPTH);
    int code = run_out(module_of(functions, body), 1, 1, 0, &x, 1);
    CHECK(code == 0 && x == 7 && !report_count(), "a long tree of calls gives %d: %s", code, code ? found : findings());
    report_clear();
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_results();
    test_recursion();
    test_pointers();
    test_fresh_frames();
    test_copies();
    test_moves();
    test_printing();
    test_heap();
    test_refusals();
    test_initialisers();
    test_one_error();
    test_register_shapes();
    test_long_tree();
    return sim_close();
}
