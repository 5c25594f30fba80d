/* unwritten.c - what nothing has written, from where it is read to where it shows. Every fault
 * beside a near twin that only moves such a value, or computes with it and does not want the result.
 *
 *   unwritten [library]   or PTXGEN_CUDA_LIBRARY; run from the root of the repository */
#include "../simtest.h"

/* d1: the thread's word of the result, d0 its first; d9: its word of memory that nothing wrote, d8 the first
 * there; s0: shared memory of 1 KiB, r9 the thread's word there; p7, r20 and h5 are never written. */
#define BODY                                                                                                 \
    HEAD ".shared .align 16 .b8 s[1024];\n.func f(.param .b32 a) { .reg .b32 x, y, z;\n"                     \
         "ld.param.b32 x, [a]; mov.u32 z, s;\nadd.u32 x, x, 1;\natom.shared.exch.b32 y, [z], x; ret; }\n"    \
         ".visible .entry k(.param .u64 out, .param .u64 in) {\n" REGS ".reg .b32 s0;\n"                     \
         "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d1, d0;\n"        \
         "ld.param.u64 d8, [in]; mul.wide.u32 d9, r0, 4; add.u64 d9, d9, d8; mov.u32 s0, s;\n"               \
         "mad.lo.u32 r9, r0, 4, s0;\n%s\nret; }\n"

static char ptx[1 << 15], body[1 << 14];
static uint32_t result[64];

/* Runs 32 threads. `written` words of the input's 4 KiB are; the host reads `words` of the result. */
static int go(const char *text, unsigned written, unsigned words) {
    static const uint32_t ones[1024] = {1, 1, 1, 1, 1, 1, 1, 1};
    handle m;
    dptr out = alloc(256), in = alloc(4096);
    void *params[] = {&out, &in};
    snprintf(ptx, sizeof ptx, BODY, text);
    report_clear();
    if (!(m = load(ptx))) {
        CHECK(0, "does not load: %s\n%s", log_text, text);
        return -1;
    }
    cuMemsetD8_v2_(out, 0, 256);
    if (written) cuMemcpyHtoD_v2_(in, ones, written * 4);
    int code = run(function(m, "k"), 1, 32, 0, params);
    if (!code && words) cuMemcpyDtoH_v2_(result, out, words * 4);
    findings();
    cuMemFree_v2_(out);
    cuMemFree_v2_(in);
    cuModuleUnload_(m);
    report_clear();
    return code;
}

static void quiet_with(const char *name, const char *text, unsigned written) {
    int code = go(text, written, 0);
    CHECK(!code && !*found, "%s gives %d: %s", name, code, found);
}
static void quiet(const char *name, const char *text) { quiet_with(name, text, 0); }

/* The finding's kind, what it says, and the line of the text that it is headed by (1 is the first). */
static void shown_with(const char *name, const char *text, const char *kind, const char *say, unsigned line,
                       unsigned written) {
    char head[64];
    int code = go(text, written, 0);
    unsigned first = 1;
    for (const char *p = strstr(ptx, text) ? ptx : ""; *p && p < strstr(ptx, text); p++) first += *p == '\n';
    snprintf(head, sizeof head, "line %u:", first + line - 1);
    CHECK(code < 700 && !strncmp(found, kind, strlen(kind)) && strstr(found, say) && strstr(found, head),
          "%s gives %d, expected '%s', '%s', %s: %s", name, code, kind, say, head, found);
}
static void shown(const char *name, const char *text, const char *kind, const char *say, unsigned line) {
    shown_with(name, text, kind, say, line, 0);
}

#define READ "uninitialised-read"
#define REG "uninitialised-register"

static void test_memory(void) {
    shown("a sum of shared words", "ld.shared.u32 r1, [r9];\nadd.u32 r2, r1, r0;\nst.global.u32 [d1], r2;",
          READ, "line 17 stores it", 1);
    quiet("that nobody wants", "ld.shared.u32 r1, [r9]; add.u32 r2, r1, r0; setp.lt.u32 p0, r0, 64;\n"
                               "selp.b32 r3, r0, r2, p0; st.global.u32 [d1], r3;");
    shown("the other one is chosen",
          "ld.shared.u32 r1, [r9]; add.u32 r2, r1, r0; setp.lt.u32 p0, r0, 31;\n"
          "selp.b32 r3, r0, r2, p0; st.global.u32 [d1], r3;",
          READ, "thread (31,0,0)", 1);
    shown("a shared word that is stored", "ld.shared.u32 r1, [r9];\nst.global.u32 [d1], r1;", READ,
          "read of 4 bytes at shared address", 1);
    quiet("and one of a struct of three", "ld.shared.u32 r1, [r9]; mad.wide.u32 d3, r0, 12, d8;\n"
                                          "st.global.u32 [d3], r1;");
    shown("a moved word of global memory",
          "setp.eq.u32 p0, r0, 9; @p0 ld.global.u32 r1, [d8+512]; @!p0 mov.u32 "
          "r1, 5;\nmul.wide.u32 d3, r0, 4; add.u64 d3, d3, d8; st.global.u32 [d3], r1; ld.global.u32 r2, "
          "[d3];\n"
          "add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
          READ, "thread (9,0,0)", 1);
    shown_with("a global word with nothing around it", "ld.global.u32 r1, [d9];\nst.global.u32 [d1], r1;",
               READ, "global", 1, 3);
    quiet_with("and written", "ld.global.u32 r1, [d9]; st.global.u32 [d1], r1;", 32);
    shown("a branch",
          "ld.shared.u32 r1, [r9];\nsetp.eq.u32 p0, r1, 0;\n@p0 bra E; st.global.u32 [d1], r0;\nE:", READ,
          "decides by it where to go", 1);
    quiet("decided without it", "ld.shared.u32 r1, [r9]; setp.gt.u32 p1, r0, 99;\n"
                                "setp.eq.and.u32 p0, r1, 0, p1; @p0 bra E; st.global.u32 [d1], r0;\nE:");
    shown("a guard", "ld.shared.u32 r1, [r9];\nsetp.eq.u32 p0, r1, 0;\n@p0 st.global.u32 [d1], r0;", READ,
          "does something or nothing", 1);
    shown("an address",
          "ld.shared.u32 r1, [r9];\nand.b32 r1, r1, 4; add.u32 r1, r1, s0; st.shared.u32 [r1], r0;\n", READ,
          "takes it as an address", 1);
    shown("an atomic", "ld.shared.u32 r1, [r9];\nred.global.add.u32 [d0], r1;", READ, "makes use of it", 1);
    shown("through shared memory",
          "ld.shared.u32 r1, [r9];\nadd.u32 r1, r1, 1; st.shared.u32 [r9+512], r1; bar.sync 0;\nxor.b32 r2, "
          "r9, 4;\n"
          "ld.shared.u32 r3, [r2+512]; st.global.u32 [d1], r3;",
          READ, "line 18 stores it", 1);
    quiet(
        "and written over there",
        "ld.shared.u32 r1, [r9]; add.u32 r1, r1, 1; st.shared.u32 [r9+512], r1; st.shared.u32 [r9+512], r0;\n"
        "bar.sync 0; xor.b32 r2, r9, 4; ld.shared.u32 r3, [r2+512]; st.global.u32 [d1], r3;");
    shown("through another lane",
          "ld.shared.u32 r1, [r9];\nshfl.sync.bfly.b32 r2, r1, 1, 31, -1; "
          "add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
          READ, "thread (1,0,0)", 1);
    shown("a vote",
          "ld.shared.u32 r1, [r9];\nsetp.eq.u32 p0, r1, 3; vote.sync.ballot.b32 r2, p0, -1; "
          "st.global.u32 [d1], r2;",
          READ, "stores it", 1);
    shown("a result that nobody reads", "ld.shared.u32 r1, [r9];\nadd.u32 r1, r1, 1;", READ,
          "computes with it", 1);
    shown("a load that nobody reads", "ld.shared.u32 r1, [r9];", READ, "byte 0 was never written", 1);
    shown("a copy to shared memory",
          "cp.async.ca.shared.global [r9], [d9], 4; cp.async.wait_all; bar.sync 0;\nld.shared.u32 r1, [r9]; "
          "add.u32 r1, r1, 1; st.global.u32 [d1], r1;",
          READ, "shared address", 2);
    quiet("that nobody reads", "cp.async.ca.shared.global [r9], [d9], 4; cp.async.wait_all; bar.sync 0;");
}

/* Byte by byte, bit by bit. */
static void test_parts(void) {
    const char *const half = "st.shared.u16 [r9], h0;\nld.shared.u32 r1, [r9];\n";
    static const char *const wants[][3] = {
        {"its lower half is taken", "and.b32 r2, r1, 0xffff; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", ""},
        {"its upper half is taken", "shr.u32 r2, r1, 16; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", READ},
        {"a permuted byte", "prmt.b32 r2, r1, 0, 0x4401; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", ""},
        {"a permuted byte of the others",
         "prmt.b32 r2, r1, 0, 0x4421; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", READ},
        {"a field", "bfe.u32 r2, r1, 4, 8; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", ""},
        {"a field that begins too high", "bfe.u32 r2, r1, 9, 8; add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
         READ},
        {"unpacked", "mov.b32 {h1, h2}, r1; cvt.u32.u16 r2, h1; add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
         ""},
        {"unpacked, the wrong one",
         "mov.b32 {h1, h2}, r1; cvt.u32.u16 r2, h2; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", READ},
        {"a short number", "cvt.s32.s16 r2, r1; neg.s32 r2, r2; st.global.u32 [d1], r2;", ""},
        {"a packed sum, its lower half",
         "add.f16x2 r2, r1, r1; and.b32 r2, r2, 0xffff; st.global.u32 [d1], r2;", ""},
        {"a packed sum", "add.f16x2 r2, r1, r1; st.global.u32 [d1], r2;", READ},
        {"masked away",
         "and.b32 r2, r1, 0; or.b32 r2, r2, r0; mad.lo.u32 r2, r2, 3, 1; st.global.u32 [d1], r2;", ""},
        {"a bit of it", "and.b32 r2, r1, 0x10000; st.global.u32 [d1], r2;", READ},
        {"set by or", "or.b32 r2, r1, 0xffff0000; add.u32 r2, r2, 1; st.global.u32 [d1], r2;", ""},
        {"unequal already",
         "setp.eq.u32 p0, r1, 4; @p0 bra E; "
         "st.global.u32 [d1], r0;\nE:",
         ""},
        {"equal so far",
         "setp.eq.u32 p0, r1, 3; @p0 bra E; "
         "st.global.u32 [d1], r0;\nE:",
         READ},
        {"lop3, in parts", "lop3.b32 r2, r1, 0xffff, r0, 0xea; add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
         ""},
        {"lop3, all", "lop3.b32 r2, r1, 0xffffff, r0, 0xea; add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
         READ},
    };
    for (size_t k = 0; k < sizeof wants / sizeof *wants; k++) {
        snprintf(body, sizeof body, "mov.u16 h0, 3; %s%s", half, wants[k][1]);
        if (*wants[k][2])
            shown(wants[k][0], body, READ, "never written", 2);
        else
            quiet(wants[k][0], body);
    }
    shown("the sign of a byte",
          "ld.shared.s8 r1, [r9];\nshr.u32 r1, r1, 8; add.u32 r1, r1, 1; st.global.u32 [d1], r1;", READ,
          "stores it", 1);
    quiet("above a byte without one", "ld.shared.u8 r1, [r9]; shr.u32 r1, r1, 8; add.u32 r1, r1, 1; "
                                      "st.global.u32 [d1], r1;");
    quiet("a field is filled",
          "ld.shared.u32 r1, [r9]; and.b32 r2, r1, -256; or.b32 r3, r2, r0; st.shared.u32 [r9], "
          "r3;\nld.shared.u8 r4, [r9]; add.u32 r4, r4, 1; st.global.u32 [d1], r4;");
    shown("and its neighbour used",
          "ld.shared.u32 r1, [r9];\nand.b32 r2, r1, -256; or.b32 r3, r2, r0; "
          "st.shared.u32 [r9], r3;\nld.shared.u8 r4, [r9+1]; add.u32 r4, r4, 1; st.global.u32 [d1], r4;",
          READ, "stores it", 1);
}

/* Registers that nothing wrote, some of them in part (F9). */
static void test_registers(void) {
    shown("F9 half of a pair, stored",
          "mov.b64 d3, {r0, r20};\nsetp.eq.u32 p0, r0, 0; @p0 st.global.b64 [d0], d3;", REG, "'r20'", 1);
    shown("F9 half of a pair, stored side by side",
          "mov.b64 d3, {r20, r0};\nmul.wide.u32 d4, r0, 8; add.u64 d4, d4, d0; st.global.b64 [d4], d3;", REG,
          "'r20'", 1);
    shown("F9 half of a pair, added to",
          "mov.b64 d3, {r0, r20};\nadd.u64 d3, d3, 1;\nshr.u64 d3, d3, 32; cvt.u32.u64 r2, d3; st.global.u32 "
          "[d1], r2;",
          REG, "'r20'", 2);
    quiet("F9 the other half is used",
          "mov.b64 d3, {r0, r20}; add.u64 d3, d3, 1; cvt.u32.u64 r2, d3; st.global.u32 [d1], r2;");
    quiet("F9 both are written", "mov.u32 r20, 1; mov.b64 d3, {r0, r20}; shr.u64 d3, d3, 32; cvt.u32.u64 r2, "
                                 "d3; st.global.u32 [d1], r2;");
    quiet("F9 half of a struct in shared memory",
          "mov.b64 d3, {r0, r20}; mad.lo.u32 r2, r0, 8, s0; st.shared.b64 [r2], d3; ld.shared.u32 r3, [r2]; "
          "add.u32 r3, r3, 1; st.global.u32 [d1], r3;");
    shown("a quarter",
          "mov.u16 h0, 1; mov.b64 d3, {h0, h0, h5, h0};\nshr.u64 d3, d3, 32; cvt.u32.u64 r2, d3; "
          "add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
          REG, "'h5'", 2);
    quiet("the others", "mov.u16 h0, 1; mov.b64 d3, {h0, h0, h5, h0}; cvt.u32.u64 r2, d3; "
                        "add.u32 r2, r2, 1; st.global.u32 [d1], r2;");
    shown("a predicate", "setp.gt.and.u32 p1, r0, 3, p7;\nselp.b32 r2, 1, 2, p1; st.global.u32 [d1], r2;",
          REG, "'p7'", 1);
    quiet("that does not matter",
          "setp.gt.and.u32 p1, r0, 99, p7; selp.b32 r2, 1, 2, p1; st.global.u32 [d1], r2;");
    quiet("a choice between equals", "selp.b32 r2, 7, 7, p7; st.global.u32 [d1], r2;");
    shown("computed, then stored", "add.u32 r2, r20, 1;\nmul.lo.u32 r2, r2, 3;\nst.global.u32 [d1], r2;", REG,
          "line 17 stores it", 1);
    shown("computed, for nothing", "add.u32 r2, r20, 1;", REG, "'r20'", 1);
    quiet("computed, and not chosen", "add.u32 r2, r20, 1; setp.lt.u32 p0, r0, 64; selp.b32 r2, r0, r2, p0; "
                                      "st.global.u32 [d1], r2;");
    quiet("times zero", "mul.lo.u32 r2, r20, 0; add.u32 r2, r2, r0; st.global.u32 [d1], r2;");
    int code = go("{ .param .b32 x; st.param.b32 [x], r20; call f, (x); }", 0, 0);
    CHECK(!code && strstr(found, REG) && strstr(found, "line 7: add.u32 x, x, 1;") && strstr(found, "'r20'")
              && strstr(found, "line 8 makes use of it"),
          "a parameter of a call: %s", found);
    quiet("and its twin", "{ .param .b32 x; mov.u32 r20, 1; st.param.b32 [x], r20; call f, (x); }");
}

/* Memory of the host's reads: a hole among equals is told, the padding of structs is not. */
static void test_host(void) {
    for (int strange = 0; strange < 2; strange++) {
        dptr in = alloc(1024), out = alloc(1024);
        static uint32_t host[256];
        handle m;
        snprintf(
            ptx, sizeof ptx,
            HEAD
            ".visible .entry k(.param .u64 out, .param .u64 in) {\n" REGS
            "ld.param.u64 d0, [out]; ld.param.u64 d8, [in]; mov.u32 r0, %%tid.x;\n"
            "mul.wide.u32 d1, r0, 16; add.u64 d0, d0, d1; add.u64 d8, d8, d1;\n"
            "ld.global.v4.b32 {r1, r2, r3, r4}, [d8]; st.global.v4.b32 [d0], {r1, r2, r3, r4}; ret; }\n");
        for (int k = 0; k < 64; k++) {
            cuMemcpyHtoD_v2_(in + 16 * k, host, 8);
            cuMemcpyHtoD_v2_(in + 16 * k + 12, host, 4);
            if (strange && k != 20) cuMemcpyHtoD_v2_(in + 16 * k + 8, host, 4);
        }
        report_clear();
        m = load(ptx);
        void *params[] = {&out, &in};
        SAME(run(function(m, "k"), 1, 64, 0, params), 0);
        CHECK(!report_count(), "the copy itself: %s", findings());
        cuMemcpyDtoH_v2_(host, out, 1024);
        findings();
        CHECK(strange ? strstr(found, READ) && strstr(found, "takes 4 bytes") && strstr(found, "byte 328")
                      : !*found,
              "%s: %s", strange ? "a hole" : "padding", found);
        cuMemFree_v2_(in);
        cuMemFree_v2_(out);
        cuModuleUnload_(m);
        report_clear();
    }
}

/* Structs that a kernel writes member by member: the host may copy them whole, and is told of missing members. */
static void test_members(void) {
    static const struct {
        const char *name, *stores;
        unsigned bytes; /* of a struct */
        bool shows;
    } cases[] = {
        {"char, int, char, double", "st.global.u8 [d1], r0; st.global.u32 [d1+4], r0; st.global.u8 [d1+8], r0;\n"
         "st.global.u64 [d1+16], d1;", 24, false},
        {"char, int", "st.global.u8 [d1], r0; st.global.u32 [d1+4], r0;", 8, false},
        {"double, int", "st.global.u64 [d1], d1; st.global.u32 [d1+8], r0;", 16, false},
        {"every other int", "st.global.u32 [d1], r0;", 8, true},
        {"three ints of four", "st.global.v2.u32 [d1], {r0, r0}; st.global.u32 [d1+8], r0;", 16, true},
        {"double, int, the int in some", "st.global.u64 [d1], d1; setp.eq.u32 p0, r0, 20; @!p0 st.global.u32 [d1+8], "
         "r0;", 16, true},
        {"a double is missing", "st.global.u64 [d1], d1;", 16, true}};
    static uint8_t host[32 * 24];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dptr out = alloc(32 * cases[k].bytes);
        void *params[] = {&out};
        snprintf(ptx, sizeof ptx,
                 HEAD ".visible .entry k(.param .u64 out) {\n" REGS "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x;\n"
                      "mul.wide.u32 d1, r0, %u; add.u64 d1, d1, d0; %s\nret; }\n",
                 cases[k].bytes, cases[k].stores);
        handle m = load(ptx);
        report_clear();
        SAME(run(function(m, "k"), 1, 32, 0, params), 0);
        cuMemcpyDtoH_v2_(host, out, 32 * cases[k].bytes);
        findings();
        CHECK(cases[k].shows == (strstr(found, "a copy to the host") != NULL), "%s: %s", cases[k].name, found);
        report_clear();
        cuMemFree_v2_(out);
        cuModuleUnload_(m);
    }
}

/* An allocation of which nothing was written has no padding, however small; one of which a part was may. */
static void test_small(void) {
    static const struct {
        const char *name, *text;
        unsigned bytes, written;
        bool shows;
    } cases[] = {
#define ONE "@p0 bra E; "
#define END "\nE:"
        {"a word by one thread",
         ONE "ld.global.u32 r1, [d8];\nst.global.u32 [d0], r1;" END,
         4, 0, true},
        {"a byte", ONE "ld.global.u8 r1, [d8];\nst.global.u8 [d0], r1;" END, 1, 0, true},
        {"two words", ONE "ld.global.v2.u32 {r1, r2}, [d8];\nst.global.v2.u32 [d0], {r1, r2};" END,
         8, 0, true},
        {"half of them",
         ONE "ld.global.u32 r1, [d8+4];\nst.global.u32 [d0+16], r1;" END, 8, 0, true},
        {"64 bits",
         ONE "ld.global.u64 d3, [d8];\nst.global.u64 [d0+16], d3;" END, 24, 0, true},
        {"by all, far apart", "mad.wide.u32 d3, r0, 4, d1; ld.global.u32 r1, [d8];\nst.global.u32 [d3], r1;",
         4, 0, true},
        {"through shared memory",
         "ld.global.u32 r1, [d8]; st.shared.u32 [r9], r1; bar.sync 0; ld.shared.u32 r2, [r9];\n"
         "@!p0 st.global.u32 [d0], r2;", 4, 0, true},
        {"the low byte of a word", "ld.global.u32 r1, [d8]; and.b32 r1, r1, 255;\nst.global.u32 [d1], r1;",
         4, 0, true},
        {"one that is written", ONE "ld.global.u32 r1, [d8]; st.global.u32 [d0], r1;" END, 4, 4, false},
        {"a struct's padding",
         ONE "ld.global.v2.u32 {r1, r2}, [d8];\nst.global.v2.u32 [d0], {r1, r2};" END,
         8, 5, false},
        {"loaded only", ONE "ld.global.u32 r1, [d8]; mov.u32 r2, r1; st.global.u32 [d0], r0;" END,
         4, 0, false},
        {"a bit field, back where it was",
         "ld.global.u32 r1, [d9]; bfi.b32 r1, r0, r1, 3, 9;\nst.global.u32 [d9], r1;", 128, 0, false},
        {"all of a small one",
         ONE "ld.global.u32 r1, [d8]; bfi.b32 r1, r0, r1, 3, 9; st.global.u32 [d8], r1;" END, 4, 0,
         false},
        {"into another place",
         "ld.global.u32 r1, [d9]; bfi.b32 r1, r0, r1, 0, 8;\nst.global.u32 [d1], r1;", 128, 0, true},
    };
    static const uint32_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
        dptr out = alloc(1024), in = alloc(cases[k].bytes);
        void *params[] = {&out, &in};
        snprintf(body, sizeof body, "setp.ne.u32 p0, r0, 0;\n%s", cases[k].text);
        snprintf(ptx, sizeof ptx, BODY, body);
        report_clear();
        handle m = load(ptx);
        cuMemsetD8_v2_(out, 0, 1024);
        if (cases[k].written) cuMemcpyHtoD_v2_(in, ones, cases[k].written);
        CHECK(m, "%s does not load: %s", cases[k].name, log_text);
        if (m) SAME(run(function(m, "k"), 1, 32, 0, params), 0);
        findings();
        CHECK(cases[k].shows ? !strncmp(found, READ, strlen(READ)) && strstr(found, "stores it") : !*found,
              "%s, %u bytes: %s", cases[k].name, cases[k].bytes, found);
        cuMemFree_v2_(in);
        cuMemFree_v2_(out);
        cuModuleUnload_(m);
        report_clear();
    }
}

/* A flag and a sum in one store, as chained scans publish them. */
static void test_messages(void) {
#define MESSAGE "mul.wide.u32 d2, r0, 8; add.u64 d2, d2, d0; add.u32 r5, r20, 1;\n"
    quiet("a message that nobody reads", MESSAGE "st.relaxed.gpu.global.v2.u32 [d2], {r0, r5};");
    quiet("a message of which the flag is read",
          MESSAGE "st.relaxed.gpu.global.v2.u32 [d2], {r0, r5};\n"
                  "ld.relaxed.gpu.global.v2.u32 {r6, r7}, [d2];\nst.global.u32 [d9], r6;");
    shown("a message that is used",
          MESSAGE
          "st.relaxed.gpu.global.v2.u32 [d2], {r0, r5};\n"
          "ld.relaxed.gpu.global.v2.u32 {r6, r7}, [d2];\nsetp.eq.u32 p1, r7, 5;\n@p1 st.shared.u32 [r9], r6;",
          READ, "does something or nothing by it", 3);
    shown("a plain store of both", MESSAGE "st.global.v2.u32 [d2], {r0, r5};", "uninitialised-register",
          "stores it", 1);
    shown("a strong store of one", MESSAGE "st.relaxed.gpu.global.u32 [d1], r5;", "uninitialised-register",
          "stores it", 1);
}

/* shfl from lanes that do not take part, div by 0: results are undefined, their use is told. */
static void test_undefined(void) {
    const char *const down = "setp.lt.u32 p0, r0, 16; @!p0 bra E;\nshfl.sync.down.b32 r1, r0, 8, 31, 0xffff;\n%s\nE:";
    static const char *const uses[] = {
        "st.global.u32 [d1], r1;", "add.u32 r2, r1, 1; st.global.u32 [d1], r2;",
        "setp.eq.u32 p1, r1, 3; @p1 st.global.u32 [d1], r0;",
        "setp.lt.u32 p1, r0, 9; selp.b32 r2, r1, 0, p1; st.global.u32 [d1], r2;",
        "st.shared.u32 [r9], r1; bar.warp.sync 0xffff; ld.shared.u32 r2, [r9]; st.global.u32 [d1], r2;",
        "shfl.sync.down.b32 r2, r1, 8, 31, 0xffff; setp.eq.u32 p1, r0, 0; @p1 st.global.u32 [d0], r2;" };
    static const char *const leaves[] = {
        "", "setp.lt.u32 p1, r0, 8; @p1 st.global.u32 [d1], r1;",
        "setp.lt.u32 p1, r0, 8; selp.b32 r2, r1, 0, p1; add.u32 r2, r2, 1; st.global.u32 [d1], r2;",
        "add.u32 r2, r1, r0; shfl.sync.down.b32 r3, r2, 4, 31, 0xffff; add.u32 r2, r2, r3;\n"
        "setp.lt.u32 p1, r0, 4; @p1 st.global.u32 [d1], r2;" };
    char text[1000];
    for (unsigned k = 0; k < sizeof uses / sizeof *uses; k++) {
        snprintf(text, sizeof text, down, uses[k]);
        shown(uses[k], text, "absent-lane", "lane 16, which does not take part; line", 2);
    }
    for (unsigned k = 0; k < sizeof leaves / sizeof *leaves; k++) {
        snprintf(text, sizeof text, down, leaves[k]);
        quiet(leaves[k], text);
    }
    shown("a guard that nothing wrote", "mov.u32 r1, 1;\n@p5 st.global.u32 [d1], r1;", REG, "'p5'", 2);
    shown("a lane that has exited", "setp.gt.u32 p0, r0, 19; @p0 ret;\nshfl.sync.bfly.b32 r1, r0, 4, 31, -1;\n"
          "st.global.u32 [d1], r1;", "absent-lane", "lane 20", 2);
    static const char *const divisions[] = {
        "div.u32 r1, r0, r2;", "rem.s32 r1, r0, r2;", "cvt.u16.u32 h1, r2; div.u16 h2, 7, h1; cvt.u32.u16 r1, h2;",
        "cvt.u64.u32 d3, r2; rem.u64 d4, d1, d3; cvt.u32.u64 r1, d4;" };
    for (unsigned k = 0; k < 4; k++) {
        snprintf(text, sizeof text, "and.b32 r2, r0, 7;\n%s\nadd.u32 r1, r1, 1; st.global.u32 [d1], r1;",
                 divisions[k]);
        shown(divisions[k], text, "division-by-zero", "the divisor is 0", 2);
        snprintf(text, sizeof text, "and.b32 r2, r0, 7;\n%s\nadd.u32 r1, r1, 1; setp.ne.u32 p1, r2, 0; "
                 "selp.b32 r1, r1, 5, p1; st.global.u32 [d1], r1;", divisions[k]);
        quiet("a division by 0 that is not used", text);
    }
    shown("0 hides no operand", "mov.u32 r2, 0;\ndiv.u32 r1, r20, r2; st.global.u32 [d1], r1;", REG, "'r20'", 2);
}

/* A finding names the lines of the source that the text tells of: by a comment, by .loc and .file. */
static void test_places(void) {
    static const char *const texts[] = {
        "ld.shared.u32 r1, [r9]; // dir/first.c:12\nadd.u32 r2, r1, r0;\n\tst.global.u32 [d1], r2;   // other.c:345",
        ".loc 2 7 3\nld.shared.u32 r1, [r9];\n.loc 1 12 0\nadd.u32 r2, r1, r0;\nst.global.u32 [d1], r2;",
        "ld.shared.u32 r1, [r9]; // 12\nadd.u32 r2, r1, r0; // a:b\nst.global.u32 [d1], r2; // twice :3" };
    static const char *const heads[] = {
        "line 15, dir/first.c:12: ld.shared.u32 r1, [r9];\n", "line 16, a file.cu:7: ld.shared.u32 r1, [r9];\n",
        "line 15: ld.shared.u32 r1, [r9]; // 12\n" };
    static const char *const ends[] = {
        "; line 17, other.c:345 stores it", "; line 19, dir/b.h:12 stores it", "; line 17 stores it" };
    char whole[1000];
    for (unsigned k = 0; k < 3; k++) {
        snprintf(whole, sizeof whole, "%s\nret; }\n%s{", texts[k],
                 k == 1 ? ".file 1 \"dir/b.h\"\n.file 2 \"a file.cu\"\n.func g() " : ".func g() ");
        int code = go(whole, 0, 0);
        CHECK(!code && strstr(found, heads[k]) && strstr(found, ends[k]), "expected '%s', '%s': %s", heads[k],
              ends[k], found);
    }
    int code = go(".loc 1 5 0\nld.shared.u32 r1, [r9];\nadd.u32 r2, r1, r0; // x.c:77\nst.global.u32 [d1], r2; ret; }\n"
                  ".file 1 \"c.c\"\n.func g() {", 0, 0);
    CHECK(!code && strstr(found, "line 16, c.c:5: ") && strstr(found, "; line 18, c.c:5 stores it"), "%s", found);
    code = go(".loc 1 9 30\nmov.u32 r3, 0;\n.loc 2 69 9, function_name N, inlined_at 1 8 30\nmov.u32 r3, 1;\n"
              ".loc 2 20 9, function_name N, inlined_at 2 69 9\nld.shared.u32 r1, [r9];\n.loc 1 9 3\n"
              "st.global.u32 [d1], r1; ret; }\n.file 1 \"c.c\"\n.file 2 \"lib.h\"\n.func g() {", 0, 0);
    CHECK(!code && strstr(found, ", lib.h:20 inlined at c.c:8: ") && strstr(found, ", c.c:9 stores it"), "%s", found);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_memory();
    test_parts();
    test_registers();
    test_host();
    test_members();
    test_small();
    test_messages();
    test_undefined();
    test_places();
    return sim_close();
}
