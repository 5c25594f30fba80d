/* test_sim_strict.c - texts that ptxas 13.0 rejects for a reason other than an unknown word, each beside a
 * near twin that it takes: the loader has to agree on both. Where ptxas is found, it is asked as well. */
#include "simtest.h"
#include <unistd.h>

static const struct { const char *wrong, *twin; } pairs[] = {
    /* registers of atomics: the very size, and no float for an integer */
    { "atom.global.add.f32 f0, [d0], g3;", "atom.global.add.f32 f0, [d0], f3;" },
    { "atom.global.max.s32 d1, [d0], d2;", "atom.global.max.s64 d1, [d0], d2;" },
    { "atom.global.exch.b32 d1, [d0], d2;", "atom.global.exch.b64 d1, [d0], d2;" },
    { "red.global.add.f32 [d0], g1;", "red.global.add.f32 [d0], f1;" },
    { "atom.global.add.noftz.bf16x2 f3, [d0], r1;", "atom.global.add.noftz.bf16x2 r3, [d0], r1;" },
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
    { "mov.u32 r0, 1 ? 2;", "mov.u32 r0, 1 ? 2 : 3;" } };
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
    char path[] = "/tmp/test_sim_strict_XXXXXX", command[200];
    int f = mkstemp(path);
    if (f < 0) return -1;
    bool written = write(f, text, strlen(text)) == (ssize_t)strlen(text);
    close(f);
    snprintf(command, sizeof command, "ptxas -O0 -arch sm_90a -o /dev/null %s > /dev/null 2>&1", path);
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
    test_linkage();
    return sim_close();
}
