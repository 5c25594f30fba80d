/* strict.c - texts that ptxas 13.0 rejects for a reason other than an unknown word, each beside a
 * near twin that it takes: the loader has to agree on both. Where ptxas is found, it is asked as well. */
#include "../simtest.h"
#include <unistd.h>

static const struct { const char *wrong, *twin; } pairs[] = {
    /* registers of atomics: the very size, and no float for an integer */
    { "atom.global.add.f32 f0, [d0], g3;", "atom.global.add.f32 f0, [d0], f3;" },
    { "atom.global.max.s32 d1, [d0], d2;", "atom.global.max.s64 d1, [d0], d2;" },
    { "atom.global.exch.b32 d1, [d0], d2;", "atom.global.exch.b64 d1, [d0], d2;" },
    { "red.global.add.f32 [d0], g1;", "red.global.add.f32 [d0], f1;" },
    { "atom.global.add.noftz.bf16x2 f3, [d0], r1;", "atom.global.add.noftz.bf16x2 r3, [d0], r1;" },
    /* a store of a register and a constant */
    { "st.global.u32 [d0], f1+1;", "st.global.f32 [d0], f1+1;" },
    { "st.global.s64 [d0], g1+1;", "st.global.b64 [d0], g1+1;" },
    /* conversions */
    { "cvt.rn.bf16.f16 g3, h1;", "cvt.rn.bf16.f16 h3, h1;" },
    { "cvt.rna.tf32.f32 f3, f0;", "cvt.rna.tf32.f32 r3, f0;" },
    { "cvt.rn.bf16.s32 h0, d3;", "cvt.rn.bf16.s64 h0, d3;" },
    { "cvt.rn.bf16x2.f32 d3, f0, f1;", "cvt.rn.bf16x2.f32 r3, f0, f1;" },
    { "cvt.rzi.s32.bf16 r0, r9;", "cvt.rzi.s32.f16 r0, r9;" },
    { "cvt.rzi.s32.f16 r0, f0;", "cvt.rzi.s32.f32 r0, f0;" },
    { "cvt.rn.bf16.s8 h0, h1;", "cvt.rn.f16.s8 h0, h1;" },
    { "cvt.rn.ftz.f16.bf16 h0, h1;", "cvt.rn.f16.bf16 h0, h1;" },
    { "cvt.rn.sat.bf16.f32 h0, f1;", "cvt.rn.sat.f16.f32 h0, f1;" },
    { "cvt.rn.ftz.f16.s32 h0, r1;", "cvt.rn.ftz.f32.s32 f0, r1;" },
    /* packed arithmetic */
    { "mul.f16x2 f3, r1, r2;", "mul.f16x2 r3, r1, r2;" },
    { "sub.bf16x2 r0, r1, f3;", "sub.bf16x2 r0, r1, r3;" },
    { "add.u16x2 f3, r1, r2;", "add.u16x2 r3, r1, r2;" },
    { "abs.f16x2 f0, f1;", "abs.f16x2 r0, r1;" },
    /* _ as a result */
    { "cvt.sat.f32.f32 _, f1;", "cvt.sat.f32.f32 f0, f1;" },
    { "mov.u32 _, r0;", "mov.b32 {_, h1}, r0;" },
    { "ld.relaxed.gpu.global.u32 _, [d0];", "ld.global.v2.u32 {_, r1}, [d0];" },
    { "testp.notanumber.f64 _, g1;", "setp.eq.f64 p0|_, g1, g2;" },
    { "shfl.sync.idx.b32 _|p0, r1, 0, 31, -1;", "shfl.sync.idx.b32 r0|_, r1, 0, 31, -1;" },
    { "match.any.sync.b32 _, r1, -1;", "elect.sync _|p0, -1;" },
    { "mbarrier.pending_count.b64 _, d0;", "mbarrier.arrive.shared.b64 _, [r0];" },
    { "add.u32 _, r0, r1;", "atom.global.add.u32 _, [d0], r1;" },
    /* special registers */
    { "abs.s32 r0, %tid.x;", "mov.u32 r0, %tid.x;" },
    { "mad.lo.s32 r0, r1, r2, %tid.x;", "cvt.u64.u32 d0, %tid.x;" },
    { "cvt.rn.f32.u32 f0, %tid.x;", "cvt.u16.u32 h0, %tid.x;" },
    { "st.global.u32 [d0], %tid.x;", "mov.b64 d0, {%tid.x, %tid.y};" },
    /* state spaces */
    { "cp.async.cg.global.shared [r0], [d0], 16;", "cp.async.cg.shared.global [r0], [d0], 16;" },
    { "cp.async.bulk.global.shared::cluster.mbarrier::complete_tx::bytes [r0], [d0], 16, [r2];",
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r0], [d0], 16, [r2];" },
    { "cp.async.bulk.shared::cta.global.bulk_group [d0], [r0], 16;",
      "cp.async.bulk.global.shared::cta.bulk_group [d0], [r0], 16;" },
    { "ld.acquire.const.sys.u32 r0, [d0];", "ld.acquire.global.sys.u32 r0, [d0];" },
    { "ld.volatile.local.u32 r0, [d0];", "ld.volatile.shared.u32 r0, [r1];" },
    { "ld.shared.L1::evict_last.u32 r0, [r1];", "ld.global.L1::evict_last.u32 r0, [d1];" },
    { "ld.const.L2::64B.u32 r0, [d0];", "ld.L2::64B.u32 r0, [d0];" },
    { "ld.global.cv.L1::evict_last.u32 r0, [d0];", "ld.global.cv.u32 r0, [d0];" },
    { "ld.global.nc.weak.u32 r0, [d0];", "ld.global.nc.u32 r0, [d0];" },
    { "ld.mmio.relaxed.gpu.global.u32 r0, [d0];", "ld.mmio.relaxed.sys.global.u32 r0, [d0];" },
    /* words in their places */
    { "bar.sync.warp 0xffffffff;", "bar.warp.sync 0xffffffff;" },
    { "bar.sync.cta 0;", "bar.cta.sync 0;" },
    { "mbarrier.parity.test_wait.shared.b64 p0, [r0], r1;",
      "mbarrier.test_wait.parity.shared.b64 p0, [r0], r1;" },
    { "mbarrier.shared.arrive.b64 d0, [r0];", "mbarrier.arrive.shared.b64 d0, [r0];" },
    { "cp.bulk.async.wait_group 0;", "cp.async.bulk.wait_group 0;" },
    { "div.f32.full f0, f1, f2;", "div.full.f32 f0, f1, f2;" },
    { "mul.s32.lo r0, r1, r2;", "mul.lo.s32 r0, r1, r2;" },
    { "cvta.global.to.u64 d0, d1;", "cvta.to.global.u64 d0, d1;" },
    { "shf.wrap.l.b32 r0, r1, r2, r3;", "shf.l.wrap.b32 r0, r1, r2, r3;" },
    { "setmaxnreg.sync.dec.aligned.u32 40;", "setmaxnreg.dec.sync.aligned.u32 40;" },
    /* constants */
    { "selp.b32 r0, r1, 1.5, p0;", "selp.b32 r0, r1, 0f3fc00000, p0;" },
    { "mov.b32 r0, 1.5;", "mov.b64 d0, 1.5;" },
    { "mov.u32 r0, 0f3f800000;", "mov.b32 r0, 0f3f800000;" },
    { "bar.warp.sync 1.5;", "bar.warp.sync 1;" },
    { "mbarrier.test_wait.parity.shared.b64 p0, [r0], 2;",
      "mbarrier.test_wait.parity.shared.b64 p0, [r0], 1;" },
    { "bfe.u32 r0, r1, r2, -1;", "bfe.u32 r0, r1, r2, 255;" },
    { "bfi.b32 r0, r1, r2, 256, 3;", "bfi.b32 r0, r1, r2, 255, 3;" },
    /* packing */
    { "mov.u32 {h0, h1}, r0;", "mov.b32 {h0, h1}, r0;" },
    { "mov.s64 d0, {r1, r2};", "mov.b64 d0, {r1, r2};" },
    { "mov.f32 f0, {h0, h1};", "mov.b32 f0, {h0, h1};" },
    /* directives */
    { ".pragma \"nounroll;", ".pragma \"no\nunroll\";" },
    { ".loc 1, 3, 5;", ".loc 1 3 5" },
    { ".loc 1.5 3 5", ".loc 1 3 0" },
    { "cvt.pack.sat.u16.s32 f3, r1, r2;", "cvt.pack.sat.u16.s32 r3, r1, r2;" },
    /* offsets and indices */
    { "add.u32 r0, r1-1, 5;", "add.u32 r0, r1+-1, 5;" },
    { "ld.global.u32 r0, [d0-4];", "ld.global.u32 r0, [d0+-4];" },
    { "mov.u32 r0, sm-4;", "mov.u32 r0, sm+(4-8);" },
    { "st.global.v2.u32 [d0], {r1+1, r2};", "st.global.u32 [d0], r1+1;" },
    { "add.u32 r0+1, r1, r2;", "add.u32 r0, r1+1, r2+1;" },
    { "ld.shared.b8 r0, [sm[1]];", "ld.shared.b8 r0, sm[1];" },
    { "ld.shared.b8 r0, sm[1]+4;", "ld.shared.b8 r0, [sm+1+4];" },
    { "ld.shared.b8 r0, sm[f1];", "ld.shared.b8 r0, sm[r1];" },
    { "ld.shared.b8 r0, sm[r1-1];", "ld.shared.b8 r0, sm[r1+-1];" },
    { "ld.shared.b8 r0, d0[1];", "ld.shared.b8 r0, [d0+1];" },
    { "atom.shared.add.u32 r0, sm[0], 1;", "atom.shared.add.u32 r0, [sm], 1;" },
    { "mov.u32 r0, sm[1]+4;", "mov.u32 r0, sm[1+4];" },
    { "add.u64 d0, d1, sm;", "add.u64 d0, d1, sm+0;" },
    { "add.u64 d0, d1, sm[1];", "mov.u64 d0, sm[r1];" },
    { "mov.u64 d0, k+4;", "mov.u64 d0, k;" },
    { "mov.u32 r0, k[1];", "mov.u32 r0, sm[1];" },
    { "{ .param .b32 q; mov.u64 d0, q; }", "{ .local .b32 q; mov.u64 d0, q; }" },
    { ".reg .v4 .b32 v; ld.shared.u32 r0, [v.x];", ".reg .v4 .b32 v; mov.b32 v.x, r0;" },
    { "ld.u32 r0, [cn];", "ld.const.u32 r0, [cn];" },
    { "st.u32 [cn], r0;", "st.u32 [sm], r0;" },
    { "red.add.u32 [cn], 1;", "red.add.u32 [sm], 1;" },
    { "prefetch.L1 [cn];", "prefetch.L1 [sm];" },
    { "prefetchu.L1 [sm];", "prefetch.L1 [sm];" },
    { "mbarrier.init.b64 [gl], 1;", "mbarrier.init.b64 [sm], 1;" },
    { "mov.u32 r0, gl;", "mov.u32 r0, sm;" },
    { "mapa.shared::cluster.u32 r0, gl, 1;", "mapa.shared::cluster.u32 r0, sm+4, 1;" },
    /* types of operands that no type of the instruction names */
    { "ld.global.L2::cache_hint.u32 r0, [d0], g1;", "ld.global.L2::cache_hint.u32 r0, [d0], d1;" },
    { "cp.async.cg.shared.global.L2::cache_hint [r0], [d0], 16, g1;",
      "cp.async.cg.shared.global.L2::cache_hint [r0], [d0], 16, d1;" },
    { "atom.global.add.L2::cache_hint.u32 r0, [d0], r1, 1.5;", "atom.global.add.L2::cache_hint.u32 r0, [d0], r1, d2;" },
    { "mbarrier.test_wait.shared.b64 p0, [r0], g1;", "mbarrier.test_wait.shared.b64 p0, [r0], d1;" },
    { "shfl.sync.down.b32 r0, r1, 16, 31, f1;", "shfl.sync.down.b32 r0, r1, 16, 31, r2;" },
    { "elect.sync r0|p0, 0f3f800000;", "elect.sync r0|p0, -1;" },
    { "match.all.sync.b64 r0|p0, d1, f1;", "match.all.sync.b64 r0|p0, d1, r1;" },
    { "bar.warp.sync f1;", "bar.warp.sync r1;" },
    { "stackrestore.u64 5;", "stackrestore.u64 d0;" },
    { "fence.async.proxy;", "fence.proxy.async;" },
    { "cvt.sat.pack.u16.s32 r0, r1, r2;", "cvt.pack.sat.u16.s32 r0, r1, r2;" },
    { "createpolicy.L2::evict_last.fractional.b64 d0, 1.0;", "createpolicy.fractional.L2::evict_last.b64 d0, 1.0;" },
    { ".reg .f16x2 x; add.f32 f0, x, f1;", ".reg .f16x2 x; add.u32 r0, x, r1;" },
    { "vadd4.s32.s32.s32 r0, r1, 5, r3;", "vadd4.s32.s32.s32 r0, r1, r2, r3;" },
    { "vset2.u32.u32.lt r0, r1, r2, 0;", "vadd.s32.s32.s32 r0, 5, r2;" },
    { "st.mmio.release.sys.global.b32 [d0], r0;", "st.mmio.relaxed.sys.global.b32 [d0], r0;" },
    /* vectors */
    { "mov.v2.u32 {f0, f1}, {r2, r3};", "mov.v2.u32 {f0, r1}, {r2, r3};" },
    { "mov.v2.u32 {r0, r1}, {f2, f3};", "mov.v2.b32 {r0, r1}, {f2, f3};" },
    { "mov.v2.u32 r0, {r1, r2};", "mov.v2.u32 {r0, r3}, r1;" },
    { "mov.v4.b64 {d0, d1, d2, d3}, {d0, d1, d2, d3};", "mov.v2.b64 {d0, d1}, {d2, d3};" },
    { "mov.v2.b8 {h0, h1}, {h2, h3};", "mov.v2.b16 {h0, h1}, {h2, h3};" },
    { "mov.v2.pred {p0, p1}, {p2, p3};", "mov.pred p0, p2;" },
    { "mov.v2.u32 {r0, r1}, {r2, r3, r4, r5};", "mov.v4.u32 {r0, r1, r2, r3}, {r2, r3, r4, r5};" },
    { "mov.v2.u32 {_, _}, {r2, r3};", "mov.v2.u32 {r0, _}, {r2, r3};" },
    { "mov.b64 {_, _}, d0;", "mov.b64 {_, r0}, d0;" },
    { "mov.v2.u32 {r0, r1}, %tid;", "mov.v4.u32 {r0, r1, r2, r3}, %tid;" },
    { "mov.u32 r0, %tid;", "mov.u32 r0, %tid.w;" },
    { "mov.u32 r0, 1 ? 2;", "mov.u32 r0, 1 ? 2 : 3;" },
    { "mov.f32 f0, 1.0*2;", "mov.f32 f0, (1.0)*2.0;" },
    { "L: bra L+0;", "L: bra L;" },
    { "mov.f32 f0, 1 ? 1.0 : 2.0;", "mov.u32 r0, 1.0 < 2.0 ? 1 : 2;" },
    { "mov.f32 f0, 0f3f800000+1.0;", "mov.f32 f0, 0f3f800000;" },
    { "mov.f32 f0, 1.0/0.0;", "mov.f32 f0, 0.0/1.0;" } };
enum { PAIRS = sizeof pairs / sizeof *pairs };

static const char *text_of(const char *line) {
    static char text[2000];
    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_90a\n.address_size 64\n.file 1 \"x.cu\"\n"
             ".shared .align 16 .b8 sm[64];.const .u32 cn[4];.global .u64 gl;\n"
             ".visible .entry k() {\n" REGS "%s\nret;\n}\n",
             line);
    return text;
}

/* 1: taken; 0: rejected; -1: there is no ptxas. */
static int asked(const char *text) {
    char path[] = "/tmp/ptxsim_strict_XXXXXX", command[200];
    int f = mkstemp(path);
    if (f < 0) return -1;
    bool written = write(f, text, strlen(text)) == (ssize_t)strlen(text);
    close(f);
    char arch[8] = "";
    sscanf(strstr(text, "sm_") + 3, "%7[0-9a-z]", arch);
    if (atoi(arch) < 75) strcpy(arch, "75");                  /* the oldest that it makes code for */
    snprintf(command, sizeof command, "ptxas -O0 -arch sm_%s -o /dev/null %s > /dev/null 2>&1", arch, path);
    int code = written ? system(command) : -1;
    unlink(path);
    return code < 0 ? -1 : code == 0;
}

static void test_pairs(bool ask) {
    for (int k = 0; k < PAIRS; k++) {
        for (int twin = 0; twin < 2; twin++) {
            const char *line = twin ? pairs[k].twin : pairs[k].wrong, *text = text_of(line);
            int code = refused(text);
            if (twin) CHECK(!code, "%s: gives %d, %.200s", line, code, log_text);
            else
                CHECK(code == 218 && strstr(log_text, "line 8"), "%s: gives %d, %.200s", line, code,
                      log_text);
            if (ask) CHECK(asked(text) == twin, "%s: ptxas %s", line, twin ? "rejects it" : "takes it");
        }
    }
}

#define IN(body) \
    ".visible .entry e() { .reg .b32 r<8>; .reg .b64 d<8>; .reg .pred p<4>; .reg .v2 .b32 v; " body " ret; }"

/* Whole modules but for their head. */
static const struct { const char *wrong, *twin; } modules[] = {
    { ".func f();", ".func f(); .func f() { ret; }" },
    { ".visible .func f();", ".extern .func f();" },
    { ".weak .func f();", ".weak .func f() { ret; }" },
    { ".visible .entry e();", ".visible .entry e(); .visible .entry e() { ret; }" },
    { ".extern .func f(); .func f() { ret; }", ".visible .func f(); .func f() { ret; }" },
    { ".func f(); .visible .func f() { ret; }", ".visible .func f(); .visible .func f() { ret; }" },
    { ".func f() { ret; } .func f();", ".func f(); .func f(); .func f() { ret; }" },
    { ".extern .func f() { ret; }", ".visible .func f() { ret; }" },
    { ".func f() .noreturn; .func f() { exit; }", ".func f() .noreturn; .func f() .noreturn { exit; }" },
    { ".func f(.reg .b32 a); .func f(.reg .f32 a) { ret; }",
      ".func f(.reg .b32 a); .func f(.reg .b32 b) { ret; }" },
    { ".func f(.reg .b32 a); .func f(.param .b32 a) { ret; }",
      ".func f(.param .b32 a); .func f(.param .b32 a) { ret; }" },
    { ".func f(.param .align 4 .b8 a[4]); .func f(.param .align 8 .b8 a[4]) { ret; }",
      ".func f(.param .align 4 .b8 a[4]); .func f(.param .align 4 .b8 a[4]) { ret; }" },
    { ".func f(.param .b8 a[], .param .b32 n) { ret; }", ".func f(.param .b32 n, .param .b8 a[]) { ret; }" },
    { ".visible .entry e(.param .b8 a[]) { ret; }", ".visible .entry e(.param .b8 a[1]) { ret; }" },
    { ".func (.param .b32 a, .param .b32 b) f() { ret; }", ".func (.reg .b32 a, .reg .b32 b) f() { ret; }" },
    { ".func f(.param .v2 .b32 a) { ret; }", ".func f(.reg .v2 .b32 a) { ret; }" },
    { ".func f(.reg .b32 a[2]) { ret; }", ".func f(.param .b32 a[2]) { ret; }" },
    { ".visible .entry e() .noreturn { ret; }", ".func f() .noreturn { exit; }" },
    { ".func (.reg .b32 a) f() .noreturn { exit; }", ".func f() .noreturn { exit; }" },
    { ".func f() .maxntid 32 { ret; }", ".visible .entry e() .maxntid 32 { ret; }" },
    { ".func f() .maxnreg 32 { ret; }", ".visible .entry e() .maxnreg 32 { ret; }" },
    { ".func f() .explicitcluster { ret; }", ".visible .entry e() .explicitcluster { ret; }" },
    { ".visible .entry e() .maxntid 0 { ret; }", ".visible .entry e() .maxntid 1 { ret; }" },
    { ".visible .entry e() .reqntid 32, 0 { ret; }", ".visible .entry e() .reqntid 32, 1 { ret; }" },
    { ".visible .entry e() .maxnreg 0 { ret; }", ".visible .entry e() .maxnreg 0x20 { ret; }" },
    { ".visible .entry e() .minnctapersm 0 { ret; }", ".visible .entry e() .minnctapersm 1 { ret; }" },
    { ".visible .entry e() .maxntid 32*2 { ret; }", ".visible .entry e() .maxntid 32, 2 { ret; }" },
    { ".visible .entry e() .maxntid 32 .maxnctapersm 2 { ret; }",
      ".visible .entry e() .maxntid 32 .minnctapersm 2 { ret; }" },
    { ".visible .entry e() .maxclusterrank 8 .reqnctapercluster 2 { ret; }",
      ".visible .entry e() .reqnctapercluster 2 { ret; }" },
    { ".global .v4 .b64 a;", ".global .v2 .b64 a;" },
    { ".global .pred a;", ".global .b8 a;" },
    { ".global .bf16x2 a;", ".global .b32 a;" },
    { ".common .const .u32 a;", ".common .global .u32 a;" },
    { ".shared .u32 a[];", ".extern .shared .u32 a[];" },
    { ".extern .global .u32 a; .visible .global .f32 a;", ".extern .global .u32 a; .visible .global .u32 a;" },
    { ".extern .global .u32 a; .global .u32 a;", ".extern .global .u32 a; .weak .global .u32 a;" },
    { ".global .u32 a = {5};", ".global .u32 a = 5;" },
    { ".global .f32 a = 5.0+1;", ".global .f32 a = 5.0+1.0;" },
    { ".global .f32 a = 5;", ".global .f32 a[2] = {-5.0, 0f3f800000};" },
    { ".section .debug_str { .b8 1 2 }", ".section .debug_str { x: .b8 1, 2 .b32 x+4 .b64 .debug_str }" },
    { ".section .debug_str { .b8 .b8 1 }", ".section .debug_str { .b8 1 .b8 2 }" },
    { ".global .u32 a[2] = 5;", ".global .u32 a[2] = {5};" },
    { ".global .u32 a[2][2] = {1, 2, 3, 4};", ".global .u32 a[2][2] = {{1, 2}, {3, 4}};" },
    { ".global .v2 .u32 a[2] = {1, 2, 3, 4};", ".global .v2 .u32 a[2] = {{1, 2}, {3, 4}};" },
    { ".global .v2 .u32 a[2] = {{1}, {3, 4}};", ".global .v2 .u32 a[2] = {{1, 2}};" },
    { ".global .v2 .u32 a[2] = {{1, 2, 3}};", ".global .v2 .u32 a[] = {{1, 2}, {3, 4}};" },
    { ".global .v2 .u32 a[2][2] = {{1, 2}, {3, 4}};", ".global .v2 .u32 a[1][2] = {{{1, 2}, {3, 4}}};" },
    { ".shared .u32 a[(2 > 1) ? 4 : 2];", ".shared .u32 a[4];" },
    { ".shared .u32 a[2 + 2];", ".shared .u32 a[2][2];" },
    { ".global .u32 a = 1 ? 2;", ".global .u32 a = (1 ? 2 : 3) * 3;" },
    { ".global .u32 t[4]; .global .u64 a = t-4;", ".global .u32 t[4]; .global .u64 a = t+4+4;" },
    { ";", ".global .u32 a;" },
    { ".file 1 \"x.cu", ".file 1 \"x.cu\"" },
    { ".file 1 .global .u32 a;", ".file 1 \"x\" .global .u32 a;" },
    { ".file \"x\"", ".file 1 \"x\n.cu\"" },
    { ".file 1 \"x\" 12", ".file 1 \"x\", 12, 34" },
    { ".file -1 \"x\"", ".file\n1\n\"x\"" },
    { ".file 1 \"x\";", ".file 0 \"x\"" },
    { ".loc 1 1 1", ".file 2 \"x\"" },
    { IN(".reg .v2 .pred q;"), IN(".reg .v2 .b16 q;") },
    { IN(".reg .v4 .b64 q;"), IN(".reg .v4 .b32 q;") },
    { IN(".reg .b32 .v2 q;"), IN(".reg .v2 .b32 q;") },
    { IN(".reg .bf16 q;"), IN(".reg .f16 q;") },
    { IN(".reg .e4m3x2 q;"), IN(".reg .b16 q;") },
    { IN(".reg .b32 q<2*2>;"), IN(".reg .b32 q<4>;") },
    { IN(".reg .b32 q<4>; .reg .b32 q1;"), IN(".reg .b32 q<4>; .reg .b32 q4;") },
    { IN(".reg .b32 q1; .reg .b32 q<4>;"), IN(".reg .b32 q4; .reg .b32 q<4>;") },
    { IN(".reg .b32 %;"), IN(".reg .b32 %1;") },
    { IN(".reg .b32 WARP_SZ;"), IN(".reg .b32 WARP_SIZE;") },
    { IN(";"), IN("{ }") },
    { IN("{ mov.b32 r0, r1; };"), IN("{ mov.b32 r0, r1; }") },
    { IN(".extern .shared .u32 q[];"), IN(".shared .u32 q[4];") },
    { IN(".param .f16x2 q;"), IN(".param .b32 q;") },
    { IN("mov.f32 q, -0f3f800000;"), IN(".reg .f32 q; mov.f32 q, -1.0;") },
    { ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (r0), f, (r1+1);"),
      ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (r0), f, (r1);") },
    { ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (r0), f, (v.x);"),
      ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (r0), f, (5+1);") },
    { ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (r0), f, (%tid.x);"),
      ".func (.reg .b32 a) f(.reg .b32 x) { mov.b32 a, x; ret; } " IN("call (_), f, (r1);") },
    { ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.x; ret; } " IN("call ({r0, r1}), f, (v);"),
      ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.x; ret; } " IN("call (v), f, (v);") },
    { ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.x; ret; } " IN("call (r0), f, (v);"),
      ".func (.reg .v2 .b32 a) f(.reg .v2 .b32 x) { mov.b32 a.x, x.x; ret; } " IN("call (v), f, (v);") },
    { ".func (.reg .b32 a) f(.param .align 4 .b8 x[4]) { ld.param.b32 a, [x]; ret; } "
        IN(".param .b32 q; call (r0), f, (q);"),
      ".func (.reg .b32 a) f(.param .align 4 .b8 x[4]) { ld.param.b32 a, [x]; ret; } "
        IN(".param .align 4 .b8 q[4]; call (r0), f, (q);") },
    { ".func (.reg .b32 a) f(.param .align 4 .b8 x[4]) { ld.param.b32 a, [x]; ret; } "
        IN(".param .b8 q[4]; call (r0), f, (q);"),
      ".func (.reg .b32 a) f(.param .align 4 .b8 x[4]) { ld.param.b32 a, [x]; ret; } "
        IN(".param .align 4 .b8 q[4]; call (r0), f, (q);") },
    { ".func f(); " IN("mov.u64 d0, f;"), ".func f(); .func f() { ret; } " IN("mov.u64 d0, f;") },
};
enum { MODULES = sizeof modules / sizeof *modules };

/* Types and forms that need a version or a chip: the last one that does not have it, and the first that has. */
static const struct { const char *line; int version[2]; const char *target[2]; } gates[] = {
    { ".reg .b128 q;", { 82, 83 }, { "sm_90", "sm_90" } },
    { ".reg .b128 q;", { 83, 83 }, { "sm_60", "sm_70" } },
    { ".local .b128 q;", { 82, 83 }, { "sm_90", "sm_90" } },
    { "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;", { 77, 78 }, { "sm_90", "sm_90" } },
    { "cvt.rn.satfinite.e5m2x2.f16x2 h0, r1;", { 77, 78 }, { "sm_90", "sm_90" } },
    { "cvt.rn.f16x2.e4m3x2 r0, h1;", { 77, 78 }, { "sm_90", "sm_90" } },
    { "cvt.rn.relu.f16x2.e5m2x2 r0, h1;", { 78, 81 }, { "sm_89", "sm_89" } },
    { "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;", { 78, 81 }, { "sm_89", "sm_89" } },
    { "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1;", { 81, 81 }, { "sm_86", "sm_89" } },
};

static void test_gates(bool ask) {
    for (size_t k = 0; k < sizeof gates / sizeof *gates; k++)
        for (int good = 0; good < 2; good++) {
            char text[1000], line[200];
            int version = gates[k].version[good];
            snprintf(text, sizeof text, ".version %d.%d\n.target %s\n.address_size 64\n.visible .entry k() {\n" REGS
                     "%s\nret;\n}\n", version / 10, version % 10, gates[k].target[good], gates[k].line);
            snprintf(line, sizeof line, "%s at %d for %s", gates[k].line, version, gates[k].target[good]);
            int code = refused(text);
            CHECK(good ? !code : code == 218, "%s: gives %d, %.200s", line, code, log_text);
            if (ask) CHECK(asked(text) == good, "%s: ptxas %s", line, good ? "rejects it" : "takes it");
        }
}

static void test_modules(bool ask) {
    for (int k = 0; k < MODULES; k++)
        for (int twin = 0; twin < 2; twin++) {
            const char *rest = twin ? modules[k].twin : modules[k].wrong;
            char text[2000];
            snprintf(text, sizeof text, ".version 9.0\n.target sm_90a\n.address_size 64\n%s\n", rest);
            int code = refused(text);
            CHECK(twin ? !code : code == 218, "%s: gives %d, %.200s", rest, code, log_text);
            if (ask) CHECK(asked(text) == twin, "%s: ptxas %s", rest, twin ? "rejects it" : "takes it");
        }
}

static void test_linkage(void) {
    SAME(refused(".version 8.8\n.target sm_90\n.address_size 64\n.weak.visible .entry k() { ret; }\n"), 218);
    SAME(refused(".version 8.8\n.target sm_90\n.address_size 64\n.visible.weak .entry k() { ret; }\n"), 218);
    SAME(refused(".version 8.8\n.target sm_90\n.address_size 64\n.weak .entry k() { ret; }\n"), 0);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    bool ask = system("ptxas --version > /dev/null 2>&1") == 0;
    if (!ask) printf("SKIPPED: there is no ptxas; the pairs are held against the CPU driver alone\n");
    test_pairs(ask);
    test_modules(ask);
    test_gates(ask);
    test_linkage();
    return sim_close();
}
