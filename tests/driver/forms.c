/* forms.c - every form of every instruction family that the CPU driver runs: it loads on its first
 * version and target and on none before; and what scalar, packed, converting and video forms give is
 * evaluated again here, in integers (exact.h), on edge values and random ones.
 *
 *   forms [library] [seed]        run from the root of the repository */
#include "../simtest.h"
#include "../forms/exact.h"
#include "../forms/cases.h"

/* --- the table of forms ----------------------------------------------------------------------- */

static const struct {
    int sm;
    char suffix;
    int version;
} chips[] = { { 20, 0, 20 },  { 30, 0, 30 },    { 32, 0, 40 },   { 35, 0, 31 }, { 37, 0, 41 },
              { 50, 0, 40 },  { 52, 0, 41 },    { 53, 0, 42 },   { 60, 0, 50 }, { 61, 0, 50 },
              { 62, 0, 50 },  { 70, 0, 60 },    { 72, 0, 61 },   { 75, 0, 63 }, { 80, 0, 70 },
              { 86, 0, 71 },  { 87, 0, 74 },    { 89, 0, 78 },   { 90, 0, 78 }, { 90, 'a', 80 },
              { 100, 0, 86 }, { 100, 'a', 86 }, { 100, 'f', 88 } };
enum { CHIPS = sizeof chips / sizeof *chips };
static const int versions[] = { 23, 30, 31, 32, 40, 41, 42, 43, 50, 60, 61, 62, 63, 64, 65, 70, 71,
                                72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 };

/* Families that are not implemented, by the beginning of their instruction. */
static const char *const others[] = { "mma",
                                      "wmma",
                                      "wgmma",
                                      "ldmatrix",
                                      "stmatrix",
                                      "movmatrix",
                                      "istypep",
                                      "cp.async.bulk",
                                      "cp.async.mbarrier",
                                      "cp.reduce",
                                      "mbarrier",
                                      "st.async",
                                      "st.bulk",
                                      "red.async",
                                      "multimem",
                                      "mapa",
                                      "getctarank",
                                      "barrier.cluster",
                                      "createpolicy",
                                      "setmaxnreg",
                                      "griddepcontrol.launch_dependents",
                                      "tensormap",
                                      "prefetch.tensormap",
                                      "prefetch.param",
                                      "stacksave",
                                      "stackrestore",
                                      "alloca",
                                      "clusterlaunchcontrol" };

/* The instruction in the registers that the table uses; or, where it needs more, the module beside it. */
static void module_text(char *out, size_t size, const char *text, const char *module, int version, int sm,
                        char suffix)
{
    char *to = out
               + snprintf(out, size, ".version %d.%d\n.target sm_%d%.1s\n.address_size 64\n", version / 10,
                          version % 10, sm, &suffix);
    if (module) {
        for (; *module; module++) {
            if (*module == '\\' && module[1] == 'n') {
                *to++ = '\n';
                module++;
            } else
                *to++ = *module;
        }
        *to++ = '\n';
        *to = 0;
        return;
    }
    snprintf(to, size - (size_t)(to - out),
             ".shared .align 128 .b8 smem[8192];\n.visible .global .align 16 .b8 gbuf[1024];\n"
             ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .align 64 .b8 tmap[128])\n{\n"
             ".reg .pred p<8>; .reg .b8 e<8>; .reg .b16 h<32>; .reg .b32 r<160>; .reg .b64 d<32>; .reg .f32 "
             "f<264>;\n"
             ".reg .f64 g<40>; %s\n%s\nret;\n}\n",
             strstr(text, "q0") ? ".reg .b128 q<4>;" : "", text);
}

static int first_version(int sm, char suffix)
{
    for (int k = 0; k < CHIPS; k++)
        if (chips[k].sm == sm && chips[k].suffix == suffix) return chips[k].version;
    return 90;
}

/* The documentation asks more than the assembler that the table was read from; 0: it does not. */
static const struct {
    const char *text;
    int version, sm;
} documented[] = { { "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4", 87, 120 },
                   { "fence.acquire.", 86, 90 },
                   { "fence.release.", 86, 90 },
                   { "subc.u64", 43, 20 },
                   { "madc.lo.u64", 43, 20 },
                   { "nanosleep", 63, 70 } };

static bool documented_later(const char *text, int *version, int *sm)
{
    for (size_t k = 0; k < sizeof documented / sizeof *documented; k++)
        if (!strncmp(text, documented[k].text, strlen(documented[k].text))) {
            *version = documented[k].version;
            *sm = documented[k].sm;
            return true;
        }
    return false;
}

static bool by_others(const char *text)
{
    static const char *const words[] = { "Textures and surfaces are not implemented", "Indirect calls" };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strstr(log_text, words[k])) return true;
    const char *p = strstr(log_text, "Instruction '");
    if (!p || !strstr(log_text, "not implemented by this CPU driver")) return false;
    p += 13;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        size_t n = strlen(others[k]);
        if (!strncmp(p, others[k], n) && (p[n] == '.' || p[n] == '\'' || p[n] == ':')) return true;
    }
    (void)text;
    return false;
}

static void test_table(void)
{
    static char ptx[1 << 15];
    char *list = read_file("tests/data/forms.tsv"), *save = NULL;
    int loaded = 0, missing = 0, elsewhere = 0, below = 0, rows = 0;
    if (!CHECK(list != NULL, "tests/data/forms.tsv cannot be opened (run from the root)")) return;
    for (char *line = strtok_r(list, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *field[6] = {line, NULL, NULL,
                          NULL, NULL, NULL}; /* stem, family, version, targets, text, module */
        for (int k = 1; k < 6 && field[k - 1] && (field[k] = strchr(field[k - 1], '\t')); k++)
            *field[k]++ = 0;
        if (!strcmp(line, "stem") || !field[4]) continue;
        char *targets = field[3], *text = field[4];
        const char *module = field[5];
        int version = 10 * (field[2][0] - '0') + field[2][2] - '0', sm = atoi(targets);
        bool exact = targets[strspn(targets, "0123456789")] != '+';
        char suffix = 0;
        rows++;
        if (exact) { /* one that the device of this test has, if any */
            if (strstr(targets, "100a") && !documented_later(text, &version, &sm))
                sm = 100;
            else {
                elsewhere++;
                continue;
            }
            suffix = 'a';
        }
        documented_later(text, &version, &sm);
        int from = first_version(sm, suffix), use = version > from ? version : from;
        module_text(ptx, sizeof ptx, text, module, use, sm, suffix);
        int code = refused(ptx);
        if (code && by_others(text)) {
            missing++;
            continue;
        }
        if (!CHECK(code == 0, "%s on .version %d.%d, sm_%d%.1s: %d %s", text, use / 10, use % 10, sm, &suffix,
                   code, log_text))
            continue;
        loaded++;
        if (version > from && version > 23) { /* the version before */
            size_t k = 0;
            while (versions[k] < use) k++;
            module_text(ptx, sizeof ptx, text, module, versions[k - 1], sm, suffix);
            CHECK(refused(ptx) != 0, "%s is taken on .version %d.%d", text, versions[k - 1] / 10,
                  versions[k - 1] % 10);
            below++;
        }
        if (exact) { /* the chip without its suffix */
            module_text(ptx, sizeof ptx, text, module, use, sm, 0);
            CHECK(refused(ptx) != 0, "%s is taken on sm_%d", text, sm);
            below++;
        } else if (sm > 20) { /* the chip before */
            int k = 0;
            while (chips[k].sm != sm) k++;
            while (chips[k].sm == sm || chips[k].suffix) k--;
            int v = use > chips[k].version ? use : chips[k].version;
            module_text(ptx, sizeof ptx, text, module, v, chips[k].sm, 0);
            CHECK(refused(ptx) != 0, "%s is taken on sm_%d", text, chips[k].sm);
            below++;
        }
    }
    free(list);
    printf("note: %d forms: %d load, %d refused one step below, %d not implemented, %d for chips not tried "
           "here\n",
           rows, loaded, below, missing, elsewhere);
    CHECK(rows > 750 && loaded > 500, "only %d of %d forms load", loaded, rows);
}

/* --- running the forms ------------------------------------------------------------------------ */

static size_t form_kernel(char *out, const form *p, int n)
{
    static const char names[] = "ABCE";
    char *to = out;
    to += sprintf(
        to,
        ".visible .entry k%d(.param .u64 in, .param .u64 out) {\n"
        ".reg .b64 %%in, %%out, %%n, P; .reg .b32 %%t, %%u; .reg .b32 t<16>; .reg .b16 s<8>; .reg .b64 "
        "l<8>;\n"
        ".reg .pred %%q, c<4>; .reg .b8 y<4>;\n"
        "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; mov.u32 %%t, %%tid.x; mov.u32 %%u, %%ctaid.x;\n"
        "mad.lo.u32 %%t, %%u, 256, %%t; mul.wide.u32 %%n, %%t, 64; add.u64 %%in, %%in, %%n;\n"
        "add.u64 %%out, %%out, %%n; add.u64 P, %%out, 32;\n",
        n);
    for (int k = 0; p->sig[2 + k]; k++) {
        char c = p->sig[2 + k];
        if (c == 'p')
            to += sprintf(to, ".reg .pred %c; ld.global.u32 %%u, [%%in+%d]; setp.ne.u32 %c, %%u, 0;\n",
                          names[k], 8 * k, names[k]);
        else
            to += sprintf(to, ".reg .b%d %c; ld.global.b%d %c, [%%in+%d];\n", width_of(c), names[k],
                          width_of(c), names[k], 8 * k);
    }
    char d = *p->sig;
    if (d == 'p')
        to += sprintf(to, ".reg .pred D;\n%s\nselp.u32 %%u, 1, 0, D; st.global.b32 [%%out], %%u;\nret; }\n",
                      p->text);
    else
        to += sprintf(to, ".reg .b%d D;\n%s\nst.global.b%d [%%out], D;\nret; }\n", width_of(d), p->text,
                      width_of(d));
    return (size_t)(to - out);
}

static bool both_nan(const form *p, uint64_t a, uint64_t b)
{
    const fmt *f = float_of(*p->sig);
    return f == &F64 && get(f, a).kind == NAN_ && get(f, b).kind == NAN_;
}

static void run_form(const form *p, handle f, dptr in, dptr out)
{
    static uint64_t v[CASES][INPUTS], have[CASES][INPUTS];
    int inputs = (int)strlen(p->sig + 2), wrong = 0;
    void *params[] = { &in, &out };
    for (int n = 0; n < CASES; n++)
        for (int k = 0; k < INPUTS; k++) v[n][k] = k < inputs ? pool(p->sig[2 + k], n, inputs == 1) : 0;
    cuMemcpyHtoD_v2_(in, v, sizeof v);
    cuMemsetD32_v2_(out, 0, sizeof have / 4);
    int code = run(f, CASES / 256, 256, 0, params);
    if (!CHECK(code == 0, "%s: launch gives %d", p->text, code)) return;
    cuMemcpyDtoH_v2_(have, out, sizeof have);
    for (int n = 0; n < CASES; n++) {
        skip_case = false;
        uint64_t want = p->eval(p, v[n]);
        if (skip_case || have[n][0] == want || both_nan(p, have[n][0], want)) continue;
        if (p->good && p->good(p, v[n], have[n][0], want)) continue;
        if (wrong++ < 2)
            fprintf(stderr, "%s of %llx %llx %llx %llx gives %llx, expected %llx\n", p->text,
                    (unsigned long long)v[n][0], (unsigned long long)v[n][1], (unsigned long long)v[n][2],
                    (unsigned long long)v[n][3], (unsigned long long)have[n][0], (unsigned long long)want);
    }
    CHECK(wrong == 0, "%s: %d of %d cases", p->text, wrong, CASES);
}

static void run_forms(void)
{
    enum { EACH = 200 };
    dptr in = alloc(CASES * INPUTS * 8), out = alloc(CASES * INPUTS * 8);
    char *text = malloc((size_t)EACH * 2400 + 200), name[16];
    for (int first = 0; first < form_count; first += EACH) {
        int last = first + EACH < form_count ? first + EACH : form_count;
        char *to = text + sprintf(text, ".version 9.0\n.target sm_100a\n.address_size 64\n");
        for (int k = first; k < last; k++) to += form_kernel(to, &forms[k], k);
        handle m = load(text);
        if (!CHECK(m != NULL, "the forms from '%s' on do not load", forms[first].text)) continue;
        for (int k = first; k < last; k++) {
            sprintf(name, "k%d", k);
            run_form(&forms[k], function(m, name), in, out);
        }
        cuModuleUnload_(m);
    }
    free(text);
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    printf("note: %d forms executed, %d cases each\n", form_count, CASES);
}

#include "../forms/integer.h"
#include "../forms/float.h"
#include "../forms/convert.h"

/* --- a warp and its surroundings -------------------------------------------------------------- */

/* redux of floats: lane l holds a value of its own, and groups of 8 stand for themselves */
static void test_redux(void)
{
    for (int k = 0; k < 8; k++) {
        bool most_ = k & 1, nan = k & 2, magnitude = k & 4;
        char text[1600];
        uint32_t out[32], value[32];
        form p = { .flags = (nan ? PROPAGATE : 0) | (magnitude ? MAGNITUDE : 0) };
        char *to = text + sprintf(text, ".version 9.0\n.target sm_100a\n.address_size 64\n%s", OUT);
        to += sprintf(
            to,
            "mov.b32 r1, %%laneid; mul.lo.u32 r1, r1, 0x9e3779b1; mov.b32 f1, r1; setp.eq.u32 p0, r0, 13;\n"
            "@p0 mov.b32 f1, 0xffc00000; and.b32 r2, r0, 24; shl.b32 r3, 255, r2;\n");
        sprintf(to, "redux.sync.%s%s%s.f32 f2, f1, r3; st.global.f32 [d1], f2; ret; }", most_ ? "max" : "min",
                magnitude ? ".abs" : "", nan ? ".NaN" : "");
        SAME(run_out(text, 1, 32, 0, out, 32), 0);
        for (uint32_t l = 0; l < 32; l++) value[l] = l == 13 ? 0xffc00000 : l * 0x9e3779b1u;
        for (uint32_t l = 0; l < 32; l++) {
            uint64_t want = value[l & 24];
            for (uint32_t n = 0; n < 8; n++) want = extreme(&p, &F32, most_, want, value[(l & 24) + n]);
            CHECK(out[l] == want, "redux %d: lane %u gives %08x, expected %08x", k, l, out[l],
                  (unsigned)want);
        }
    }
}

/* Special registers with a value that is known; and that the rest can be read. */
static void test_specials(void)
{
    static const struct {
        const char *name;
        uint32_t first, step;
    } known[] = { { "%laneid", 0, 1 },
                  { "%tid.x", 0, 1 },
                  { "%tid.y", 0, 0 },
                  { "%ntid.x", 32, 0 },
                  { "%ntid.z", 1, 0 },
                  { "%ctaid.x", 0, 0 },
                  { "%nctaid.x", 1, 0 },
                  { "%warpid", 0, 0 },
                  { "%lanemask_eq", 1, ~0u },
                  { "%lanemask_lt", 0, ~1u },
                  { "%lanemask_le", 1, ~2u },
                  { "%lanemask_ge", ~0u, ~3u },
                  { "%lanemask_gt", ~1u, ~4u },
                  { "%cluster_ctarank", 0, 0 },
                  { "%cluster_nctarank", 1, 0 },
                  { "%cluster_ctaid.x", 0, 0 },
                  { "%nclusterid.x", 1, 0 },
                  { "%pm0", 0, 0 },
                  { "%pm7", 0, 0 },
                  { "%envreg0", 0, 0 },
                  { "%envreg31", 0, 0 },
                  { "WARP_SZ", 32, 0 } };
    static const char *const other[] = { "u32 r1, %clock",
                                         "u32 r1, %clock_hi",
                                         "u64 d2, %clock64",
                                         "u64 d2, %globaltimer",
                                         "u32 r1, %globaltimer_lo",
                                         "u32 r1, %globaltimer_hi",
                                         "u32 r1, %nwarpid",
                                         "u32 r1, %smid",
                                         "u32 r1, %nsmid",
                                         "u64 d2, %gridid",
                                         "u32 r1, %total_smem_size",
                                         "u32 r1, %dynamic_smem_size",
                                         "u32 r1, %aggr_smem_size",
                                         "b32 r1, %reserved_smem_offset_begin",
                                         "b32 r1, %reserved_smem_offset_end",
                                         "b32 r1, %reserved_smem_offset_cap",
                                         "b32 r1, %reserved_smem_offset_1",
                                         "u64 d2, %current_graph_exec",
                                         "pred p0, %is_explicit_cluster",
                                         "u64 d2, %pm0_64",
                                         "u64 d2, %pm7_64",
                                         "u32 r1, %clusterid.z",
                                         "u32 r1, %nclusterid.y",
                                         "u32 r1, %cluster_nctaid.x" };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        char text[1200];
        uint32_t out[32];
        snprintf(text, sizeof text, "%s%smov.u32 r1, %s; st.global.u32 [d1], r1; ret; }", HEAD, OUT,
                 known[k].name);
        SAME(run_out(text, 1, 32, 0, out, 32), 0);
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t bit = 1u << l, want = known[k].first + l * known[k].step;
            switch (known[k].step) {
            case ~0u: want = bit; break;
            case ~1u: want = bit - 1; break;
            case ~2u: want = bit | (bit - 1); break;
            case ~3u: want = ~(bit - 1); break;
            case ~4u: want = ~(bit | (bit - 1)); break;
            default: break;
            }
            CHECK(out[l] == want, "%s in lane %u is %08x, expected %08x", known[k].name, l, out[l], want);
        }
    }
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        char text[1200];
        uint32_t out[32];
        snprintf(text, sizeof text, "%s%smov.%s; ret; }", ".version 8.1\n.target sm_90\n.address_size 64\n",
                 OUT, other[k]);
        CHECK(run_out(text, 1, 32, 0, out, 1) == 0, "mov.%s", other[k]);
    }
}

/* --- perturbed approximations ----------------------------------------------------------------- */

static void one_run(form *p, uint64_t seed, int threads, uint64_t *out)
{
    static char text[6000];
    static uint64_t v[CASES][INPUTS], have[CASES][INPUTS];
    random_state = seed;
    set_option("threads", threads);
    dptr in = alloc(sizeof v), result = alloc(sizeof have);
    void *params[] = { &in, &result };
    form_kernel(text + sprintf(text, ".version 9.0\n.target sm_100a\n.address_size 64\n"), p, 0);
    for (int n = 0; n < CASES; n++)
        for (int k = 0; k < INPUTS; k++) v[n][k] = pool(p->sig[2 + (k && p->sig[3])], n, false);
    handle m = load(text);
    cuMemcpyHtoD_v2_(in, v, sizeof v);
    cuMemsetD32_v2_(result, 0, sizeof have / 4);
    SAME(run(function(m, "k0"), CASES / 256, 256, 0, params), 0);
    cuMemcpyDtoH_v2_(have, result, sizeof have);
    for (int n = 0; n < CASES; n++) {
        out[n] = have[n][0];
        if (!p->good(p, v[n], have[n][0], 0) && have[n][0] != p->eval(p, v[n]))
            CHECK(false, "%s of %llx %llx gives %llx, beyond the bound", p->text, (unsigned long long)v[n][0],
                  (unsigned long long)v[n][1], (unsigned long long)have[n][0]);
    }
    passed++;
    cuModuleUnload_(m);
    cuMemFree_v2_(in);
    cuMemFree_v2_(result);
    set_option("threads", 0);
}

static bool same_bits(const form *p, const uint64_t *v, uint64_t have, uint64_t want)
{
    (void)p;
    (void)v;
    return have == want && !want;
}

static void test_perturb(void)
{
    static uint64_t plain[CASES], once[CASES], again[CASES], other[CASES];
    int first = form_count, sizes = sizeof plain;
    uint64_t seed = random_state;
    approximate_forms();
    for (int k = first; k < form_count; k++) {
        int differ = 0, differ_by_seed = 0;
        one_run(&forms[k], seed + (uint64_t)k, 1, plain);
        set_option("perturb", 7);
        one_run(&forms[k], seed + (uint64_t)k, 1, once);
        one_run(&forms[k], seed + (uint64_t)k, 4, again);
        set_option("perturb", 8);
        one_run(&forms[k], seed + (uint64_t)k, 1, other);
        set_option("perturb", 0);
        for (int n = 0; n < CASES; n++) {
            differ += plain[n] != once[n];
            differ_by_seed += other[n] != once[n];
        }
        CHECK(differ > CASES / 50 && differ_by_seed > CASES / 50, "%s: %d results move, %d with the seed",
              forms[k].text, differ, differ_by_seed);
        CHECK(!memcmp(once, again, (size_t)sizes), "%s: perturbed results depend on threads", forms[k].text);
    }
    form_count = first;
    form *p = &forms[form_count]; /* exact ones stay */
    memset(p, 0, sizeof *p);
    strcpy(p->text, "sqrt.rn.f32 D, A;");
    strcpy(p->sig, "f:f");
    p->eval = eval_float;
    p->op = O_SQRT;
    p->f = &F32;
    p->bits = 1;
    p->good = same_bits;
    set_option("perturb", 7);
    one_run(p, seed, 1, once);
    set_option("perturb", 0);
}

/* What is exact on every chip is not moved; sin and cos beyond two pi get worse and worse. */
static void test_exact(void)
{
    static const char body[] =
        HEAD OUT
        "ld.global.f32 f0, [d1]; ex2.approx.f32 f1, f0; rcp.approx.f32 f2, f1; lg2.approx.f32 f3, f1;\n"
        "mul.f32 f4, f1, f1; sqrt.approx.f32 f5, f4; rsqrt.approx.f32 f6, f4; div.approx.f32 f7, 0f3F9D70A4, f1;\n"
        "div.full.f32 f8, 0f3F9D70A4, f1; cvt.rn.f16.f32 h0, f0; ex2.approx.f16 h0, h0; cvt.f32.f16 f9, h0;\n"
        "mul.wide.u32 d2, r0, 32; add.u64 d2, d2, d0; st.global.v4.f32 [d2+256], {f1, f2, f3, f5};\n"
        "st.global.v4.f32 [d2+272], {f6, f7, f8, f9}; ret; }";
    static const char angles[] =
        HEAD OUT "ld.global.f32 f0, [d1]; sin.approx.f32 f1, f0; cos.approx.f32 f2, f0; neg.f32 f3, f0;\n"
        "sin.approx.f32 f4, f3; cos.approx.f32 f5, f3; neg.f32 f4, f4; mul.wide.u32 d2, r0, 16;\n"
        "add.u64 d2, d2, d0; st.global.v4.f32 [d2+256], {f1, f2, f4, f5}; ret; }";
    float x[64], out[256];
    set_option("perturb", 11);
    handle m = load(body), far = load(angles);
    dptr d = alloc(256 + sizeof out);
    void *params[] = { &d };
    for (int k = 0; k < 25; k++) x[k] = (float)(k - 12);
    cuMemcpyHtoD_v2_(d, x, 100);
    SAME(run(function(m, "k"), 1, 25, 0, params), 0);
    cuMemcpyDtoH_v2_(out, d + 256, 25 * 32);
    for (int k = 0; k < 25; k++) {
        float e = ldexpf(1, k - 12), want[8] = { e, 1 / e, x[k], e, 1 / e, 1.23f / e, 1.23f / e, e };
        CHECK(!memcmp(want, out + 8 * k, sizeof want), "exact results of 2^%d are moved: %g %g %g %g %g %g %g %g",
              k - 12, out[8 * k], out[8 * k + 1], out[8 * k + 2], out[8 * k + 3], out[8 * k + 4], out[8 * k + 5],
              out[8 * k + 6], out[8 * k + 7]);
    }
    for (int k = 0; k < 64; k++) x[k] = ldexpf(1.1f + (float)k / 97, k / 2);
    cuMemcpyHtoD_v2_(d, x, 256);
    SAME(run(function(far, "k"), 1, 64, 0, params), 0);
    cuMemcpyDtoH_v2_(out, d + 256, sizeof out);
    double worst = 0;
    for (int k = 0; k < 64; k++) {
        double e = fmax(fabs(out[4 * k] - sin(x[k])), fabs(out[4 * k + 1] - cos(x[k])));
        CHECK(e <= ldexp(1, -20) + (x[k] > 6.28f ? ldexp(x[k], -22) : 0), "sin or cos of %g is off by %g", x[k], e);
        CHECK(out[4 * k] == out[4 * k + 2] && out[4 * k + 1] == out[4 * k + 3], "sin or cos of -%g differs", x[k]);
        CHECK(fabsf(out[4 * k]) <= 1 && fabsf(out[4 * k + 1]) <= 1, "sin or cos of %g is above 1", x[k]);
        if (k > 48) worst = fmax(worst, e);
    }
    CHECK(worst > 0.5, "sin and cos of 2^24 and more are off by %g at most", worst);
    set_option("perturb", 0);
    cuMemFree_v2_(d);
    cuModuleUnload_(m);
    cuModuleUnload_(far);
}

/* --- contraction of mul and add --------------------------------------------------------------- */

/* (1 + 2^-12)^2 - (1 + 2^-11) is 0 when the product rounds and 2^-24 when it does not. */
static const struct {
    const char *code;
    bool may;
} contractions[] = {
    { "mul.f32 f3, f1, f1; add.f32 f0, f3, f2;", true },
    { "mul.f32 f3, f1, f1; add.f32 f0, f2, f3;", true },
    { "mul.f32 f3, f1, f1; sub.f32 f0, f3, f4;", true },
    { "mul.f32 f3, f1, f1; sub.f32 f0, f4, f3;", true },
    { "mul.ftz.f32 f3, f1, f1; add.ftz.f32 f0, f3, f2;", true },
    { "mul.f32 f3, f1, f1; mov.u32 r1, r2; add.sat.f32 f0, f3, f2;", true },
    { "@p0 mul.f32 f3, f1, f1; @p0 add.f32 f0, f3, f2;", true },
    { "mul.f32 f3, f1, 0f3F800800; add.f32 f0, f3, 0fBF801000;", true },
    { "mul.f64 g3, g5, g5; sub.f64 g4, g3, g6; cvt.rn.f32.f64 f0, g4;", true },
    { "mul.rn.f64 g3, g5, g5; sub.f64 g4, g3, g6; cvt.rn.f32.f64 f0, g4;", false },
    { "mov.b16 h1, 0x3C10; mov.b16 h2, 0xBC20; mul.f16 h3, h1, h1; add.f16 h4, h3, h2; cvt.f32.f16 f0, h4;",
      true },
    { "mov.b32 r1, 0x3F883F88; mov.b32 r2, 0xBF90BF90; mul.bf16x2 r3, r1, r1; add.bf16x2 r4, r3, r2; shl.b32 "
      "r4, r4, 16;"
      " mov.b32 f0, r4;",
      true },
    { "L: mul.f32 f3, f1, f1; add.f32 f0, f3, f2;", true },
    { "mul.rn.f32 f3, f1, f1; add.f32 f0, f3, f2;", false },
    { "mul.f32 f3, f1, f1; add.rn.f32 f0, f3, f2;", false },
    { "mul.rz.f32 f3, f1, f1; add.f32 f0, f3, f2;", false },
    { "mul.f32 f3, f1, f1; add.f32 f0, f3, f2; mov.f32 f5, f3;", false },
    { "mul.f32 f3, f1, f1; L: add.f32 f0, f3, f2;", false },
    { "mul.f32 f3, f1, f1; bar.sync 0; add.f32 f0, f3, f2;", false },
    { "mov.f32 f5, f1; mul.f32 f3, f5, f5; mov.f32 f5, 0f00000000; add.f32 f0, f3, f2;", false },
    { "mul.ftz.f32 f3, f1, f1; add.f32 f0, f3, f2;", false },
    { "@p0 mul.f32 f3, f1, f1; add.f32 f0, f3, f2;", false }
};

static void test_contraction(void)
{
    for (int on = 0; on < 2; on++)
        for (size_t k = 0; k < sizeof contractions / sizeof *contractions; k++) {
            char text[2000];
            uint32_t out[2] = { 0, 0 };
            snprintf(
                text, sizeof text, "%s%s\nst.global.f32 [d1], f0; ret; }",
                HEAD OUT
                "mov.f32 f1, 0f3F800800; mov.f32 f2, 0fBF801000; neg.f32 f4, f2; setp.eq.u32 p0, r0, r0;\n"
                "mov.b64 g5, 0d3FF0000002000000; mov.b64 g6, 0d3FF0000004000000;\n",
                contractions[k].code);
            set_option("contract", on);
            SAME(run_out(text, 1, 1, 0, out, 1), 0);
            CHECK((out[0] != 0) == (on && contractions[k].may), "%s gives %08x with contract %d",
                  contractions[k].code, out[0], on);
        }
    set_option("contract", 0);
}

/* --- what the assembler takes in silence, when it runs ----------------------------------------- */

static void test_silent_mistakes(void)
{
    static const struct {
        const char *name, *body;
        int code;
        const char *kind;
        unsigned block;
    } cases[] = {
        { "I2 add.u16 of 70000", "mov.b16 h1, 1; add.u16 h0, h1, 70000;", 0, "immediate-cut", 32 },
        { "its twin", "mov.b16 h1, 1; add.u16 h0, h1, 65535; add.s16 h0, h1, -32768;", 0, "", 32 },
        { "mov.u16 of 65536", "mov.u16 h0, 65536;", 0, "immediate-cut", 32 },
        { "mov.b32 of -1", "mov.b32 r1, -1; mov.b32 r2, 0xffffffff;", 0, "", 32 },
        { "setp.lt.u16 with 100000", "mov.b16 h1, 1; setp.lt.u16 p0, h1, 100000;", 0, "immediate-cut", 32 },
        { "I11 shl by 40", "shl.b32 r1, r0, 40;", 0, "count-range", 32 },
        { "its twin", "shl.b32 r1, r0, 31; mov.u32 r2, 40; shl.b32 r1, r0, r2; shl.b64 d2, d1, 40;", 0, "",
         32 },
        { "I12 bfe at 40", "bfe.u32 r1, r0, 40, 50;", 0, "count-range", 32 },
        { "its twin", "bfe.u32 r1, r0, 24, 32; bfe.u64 d2, d1, 40, 20;", 0, "", 32 },
        { "bfi with length 33", "bfi.b32 r1, r0, r0, 0, 33;", 0, "count-range", 32 },
        { "I13 prmt selector", "prmt.b32 r1, r0, r0, 0x12345678;", 0, "immediate-cut", 32 },
        { "its twin", "prmt.b32 r1, r0, r0, 0x9999;", 0, "", 32 },
        { "I17 a barrier for 0 threads", "bar.sync 1, 0;", 0, "count-range", 32 },
        { "its twin", "bar.sync 1, 32;", 0, "", 32 },
        { "M6 one register twice",
         "st.global.v2.f32 [d0], {0f00000000, 0f00000000}; ld.global.v2.f32 {f0, f0}, [d0];", 0,
         "duplicate-destination", 1 },
        { "its twin", "st.global.v2.f32 [d0], {0f00000000, 0f00000000}; ld.global.v2.f32 {f0, _}, [d0];", 0,
         "", 1 },
        { "M7 v4 at offset 4", "ld.global.v4.f32 {f0, f1, f2, f3}, [d0+4];", 716, "misaligned", 1 },
        { "its twin", "ld.global.v4.f32 {f0, f1, f2, f3}, [d0+16];", 0, "", 1 },
        { "M8 alignment by luck", "{ .shared .align 4 .b8 sv[64]; st.shared.v4.b32 [sv], {r0, r0, r0, r0}; }",
         0, "alignment-luck", 1 },
        { "its twin", "{ .shared .align 16 .b8 sv[64]; st.shared.v4.b32 [sv], {r0, r0, r0, r0}; }", 0, "",
          1 },
        { "M12 a parameter at offset 4", "ld.param.u64 d2, [out+4];", 716, "misaligned", 1 },
        { "its twin", "ld.param.u32 r1, [out+4];", 0, "", 1 },
        { "M35 an offset of 2^33", "ld.global.u32 r1, [d0+8589934592];", 700, "out-of-bounds", 1 },
        { "F2 an unset guard", "@p3 st.global.u32 [d0], 1;", 0, "uninitialised-register", 1 },
        { "its twin", "setp.eq.u32 p3, r0, 0; @p3 st.global.u32 [d0], 1;", 0, "", 1 },
        { "F8 a barrier for half a warp",
         "setp.lt.u32 p0, r0, 16; @!p0 bra E; bar.sync 0; E: st.global.u32 [d0], 1;", 0, "barrier-divergence",
         32 },
        { "its twin", "setp.lt.u32 p0, r0, 32; @!p0 bra E; bar.sync 0; E: st.global.u32 [d1], 1;", 0, "",
          32 },
        { "F10 shfl that reads lanes not there",
         "setp.lt.u32 p0, r0, 16; @!p0 bra E; shfl.sync.bfly.b32 r1, r0, 16, 31, -1; st.global.u32 [d1], r1; E:",
         0, "absent-lane", 32 },
        { "its twin",
         "setp.lt.u32 p0, r0, 16; @!p0 bra E; shfl.sync.bfly.b32 r1, r0, 1, 31, 0xffff; st.global.u32 [d1], r1; "
         "E:", 0, "", 32 },
        { "shfl with bits 5 to 7 of c", "shfl.sync.bfly.b32 r1, r0, 1, 0x3f, -1;", 0, "count-range", 32 },
        { "its twin", "shfl.sync.bfly.b32 r1, r0, 1, 0x1f1f, -1;", 0, "", 32 },
        { "the same in a register",
         "add.u32 r2, r0, 0x80; shfl.sync.idx.b32 r1, r0, 1, r2, -1; st.global.u32 [d1], r1;", 0, "count-range", 32 },
        { "and not used", "add.u32 r2, r0, 0x80; shfl.sync.idx.b32 r1, r0, 1, r2, -1;", 0, "", 32 },
        { "a clamp that is negative where nobody reads the result",
         "mov.u32 r2, 15; setp.lt.u32 p0, r0, 16; @!p0 mov.u32 r2, -1;\n"
         "shfl.sync.down.b32 r1, r0, 1, r2, -1; @p0 st.global.u32 [d1], r1;", 0, "", 32 },
        { "its twin", "add.u32 r2, r0, 0x1000; shfl.sync.idx.b32 r1, r0, 1, r2, -1;", 0, "", 32 },
        { "shfl with bits above the segments", "shfl.sync.up.b32 r1, r0, 1, -1, -1;", 0, "count-range", 32 },
        { "lop3 with a table of 9 bits", "lop3.b32 r1, r0, r0, r0, 0x1ca;", 0, "immediate-cut", 32 },
        { "lop3 with a negative table", "lop3.b32 r1, r0, r0, r0, -1;", 0, "immediate-cut", 32 },
        { "its twin", "lop3.b32 r1, r0, r0, r0, 0xff;", 0, "", 32 },
        { "addc after sub.cc", "sub.cc.u32 r1, r0, 1; addc.u32 r2, r0, 0;", 0, "carry-flag", 32 },
        { "subc after mad.lo.cc", "mad.lo.cc.u32 r1, r0, r0, r0; subc.u32 r2, r0, 0;", 0, "carry-flag", 32 },
        { "addc where nothing was added", "addc.u32 r2, r0, 0;", 0, "carry-flag", 32 },
        { "addc behind a label", "add.cc.u32 r1, r0, r0; setp.eq.u32 p0, r0, 1; @p0 bra E; E: addc.u32 r2, r0, 0;", 0,
          "carry-flag", 32 },
        { "addc behind a branch", "add.cc.u32 r1, r0, r0; setp.eq.u32 p0, r0, 1; @p0 bra E; addc.u32 r2, r0, 0; E:", 0,
          "carry-flag", 32 },
        { "their twin",
          "add.cc.u32 r1, r0, r0; addc.cc.u32 r2, r0, 0; madc.hi.cc.u32 r3, r0, r0, 0; addc.u32 r4, r0, 0;\n"
          "sub.cc.u32 r1, r0, r0; subc.cc.u32 r2, r0, 0; subc.u32 r4, r0, 0;", 0, "", 32 },
        { "div by 0", "div.u32 r1, r0, 0;", 0, "division-by-zero", 32 },
        { "rem by 0 of 64 bits", "rem.s64 d2, d1, 0;", 0, "division-by-zero", 32 },
        { "its twin", "rem.s64 d2, d1, 1;", 0, "", 32 },
        { "div by 0 of what nothing wrote", "div.u32 r1, r9, 0; st.global.u32 [d1], r1;", 0,
         "division-by-zero", 32 },
        { "F13 a predicate that the loop does not set", "L: @p1 bra L;", 0, "uninitialised-register", 1 },
        { "F25 exit before the barrier: who has left is not waited for",
         "setp.lt.u32 p0, r0, 16; @p0 exit; bar.sync 0;", 0, "", 32 },
        { "its twin", "setp.lt.u32 p0, r0, 0; @p0 exit; bar.sync 0;", 0, "", 32}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        fault(cases[k].name, cases[k].body, cases[k].code, cases[k].kind, cases[k].block);
    set_option("suspects", 0);
    fault("I11 with the option off", "shl.b32 r1, r0, 40;", 0, "", 32);
    set_option("suspects", 1);
    set_option("watchdog", 1);
    fault("F6 an endless loop", "L: bra L;", 702, "deadlock", 1);
    set_option("watchdog", 300);
    static const char *const fine[] = {
        /* rows where nothing is wrong when run */
        ".visible .entry k(.param .u64 out) { .reg .u32 r; mov.u32 r, %tid.x; }",
        ".visible .entry k(.param .u64 out) { .reg .b32 add; mov.b32 add, 1; bra E; mov.b32 add, 2; E: ret; "
        "}",
        ".extern .shared .align 16 .b8 dyn[];\n.visible .entry k(.param .u64 out) { .reg .b32 r; mov.b32 r, "
        "1; ret; }"
    };
    for (size_t k = 0; k < sizeof fine / sizeof *fine; k++) {
        char text[600];
        uint32_t out[2];
        snprintf(text, sizeof text, "%s%s\n", HEAD, fine[k]);
        report_clear();
        SAME(run_out(text, 1, 32, 0, out, 1), 0);
        CHECK(!*findings(), "%s: nothing is wrong, found %s", fine[k], found);
    }
    SAME(refused(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n"),
         209); /* V9 */
    SAME(refused(".version 8.7\n.target sm_120\n.address_size 64\n.visible .entry k() { ret; }\n"),
         209); /* V10 */
}

/* --- main ------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    setenv("PTXSIM_DEVICE", "sm_100", 1);
    sim_open(argc, argv);
    random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
    printf("seed: %llu\n", (unsigned long long)random_state);
    forms = calloc(MAX_FORMS, sizeof *forms);
    if (!forms) return 2;
    test_table();
    integer_forms();
    float_forms();
    conversion_forms();
    run_forms();
    test_redux();
    test_specials();
    test_perturb();
    test_exact();
    test_contraction();
    test_silent_mistakes();
    free(forms);
    return sim_close();
}
