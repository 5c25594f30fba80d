/* test_sim_warpgroup.c - what a warpgroup may do wrong: setmaxnreg and wgmma, each fault beside its twin. */
#include "simtest.h"

static char text[1 << 15];

/* Runs `body` with a fault in place of @@ and then with its twin: the first gives that finding at a line
 * marked "here", the second none. `head`: directives of the entry. d0 points to 4096 words, r0 is the thread, r1 the
 * warp, r2 the warpgroup, r31 shared memory of 32 KiB, r30 two mbarriers. */
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
         "setp.ge.u32 p0, r1, @@;\n@p0 bra TWO;\n" DEC(
             64) "bra DONE;\nTWO:\n"
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

int main(int argc, char **argv) {
    sim_open(argc, argv);
    test_registers();
    return sim_close();
}
