/* profile.c - the CPU driver's profile of a launch: counters against numbers worked out by hand,
 * distinct bytes, lines, the estimate, both formats, the environment variable; the same for any number of
 * threads. And the budget of instructions. */
#include "../simtest.h"
#include <sys/wait.h>
#include <unistd.h>

static size_t (*profile)(int, char *, size_t);
static void (*profile_clear)(void);
static char *library;

/* What ptxsim_profile says, in memory of the caller. */
static char *told(int format)
{
    size_t n = profile(format, NULL, 0);
    char *p = malloc(n + 1);
    SAME(profile(format, p, n + 1), n);
    SAME(strlen(p), n);
    return p;
}

/* The number behind "name": after the place `from`; -1 if there is none. */
static double number(const char *from, const char *name)
{
    char key[80];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *p = from ? strstr(from, key) : NULL;
    return p ? strtod(p + strlen(key), NULL) : -1;
}
#define IS(json, name, want) SAME(number(json, name), want)

/* --- JSON, strictly --------------------------------------------------------------------------- */

static const char *value(const char *p);

static const char *blank(const char *p) { while (p && *p && strchr(" \t\r\n", *p)) p++; return p; }

static const char *string(const char *p)
{
    if (*p++ != '"') return NULL;
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x80) return NULL;
        if (*p != '\\') continue;
        if (*++p != 'u') { if (!*p || !strchr("\"\\/bfnrt", *p)) return NULL; continue; }
        for (int k = 0; k < 4; k++) if (!*++p || !strchr("0123456789abcdefABCDEF", *p)) return NULL;
    }
    return p + 1;
}

static const char *number_end(const char *p)
{
    size_t n;
    if (*p == '-') p++;
    if (!(n = strspn(p, "0123456789")) || (*p == '0' && n > 1)) return NULL;
    p += n;
    if (*p != '.') return p;
    return (n = strspn(p + 1, "0123456789")) ? p + 1 + n : NULL;
}

static const char *list(const char *p, char end)
{
    p = blank(p + 1);
    if (*p == end) return p + 1;
    for (;;) {
        if (end == '}') {
            if (!(p = string(p)) || *(p = blank(p)) != ':') return NULL;
            p = blank(p + 1);
        }
        if (!(p = value(p))) return NULL;
        p = blank(p);
        if (*p == end) return p + 1;
        if (*p != ',') return NULL;
        p = blank(p + 1);
    }
}

static const char *value(const char *p)
{
    if (*p == '{') return list(p, '}');
    if (*p == '[') return list(p, ']');
    if (*p == '"') return string(p);
    if (!strncmp(p, "true", 4)) return p + 4;
    if (!strncmp(p, "false", 5)) return p + 5;
    return number_end(p);
}

static bool valid_json(const char *text) { const char *p = value(blank(text)); return p && !*blank(p); }

/* --- kernels ---------------------------------------------------------------------------------- */

#define COPY \
    ".visible .entry copy(.param .u64 in, .param .u64 out) {\n" REGS \
    "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x;\n" \
    "mov.u32 r2, %ntid.x; mad.lo.u32 r0, r1, r2, r0; mul.wide.u32 d2, r0, 4;\n" \
    "add.u64 d0, d0, d2; add.u64 d1, d1, d2;\n" \
    "ld.global.f32 f0, [d0];\n" \
    "st.global.f32 [d1], f0;\n" \
    "ret; }\n"

static char *launch(const char *ptx, const char *kernel, unsigned grid, unsigned block, int level, int want)
{
    handle m = load(ptx), f = function(m, kernel);
    dptr in = alloc(1 << 16), out = alloc(1 << 16);
    void *params[] = { &in, &out };
    cuMemsetD32_v2_(in, 1, 1 << 14);
    cuMemsetD32_v2_(out, 0, 1 << 14);
    profile_clear();
    set_option("profile", level);
    int code = run(f, grid, block, 0, params);
    set_option("profile", 0);
    SAME(code, want);
    if (code) { findings(); report_clear(); }
    char *json = told(1);
    CHECK(valid_json(json), "%s: not JSON: %s", kernel, json);
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
    return json;
}

static void test_off(void)
{
    char *json = launch(HEAD COPY, "copy", 2, 64, 0, 0);
    CHECK(!strstr(json, "\"kernel\""), "a launch is recorded though nobody asked");
    free(json);
    char *table = told(0);
    CHECK(!strcmp(table, "no launches\n"), "an empty table: %s", table);
    free(table);
}

static void test_copy(void)
{
    char *json = launch(HEAD COPY, "copy", 3, 64, 1, 0);      /* 6 warps, each 128 bytes in and out */
    CHECK(strstr(json, "\"kernel\":\"copy\"") && strstr(json, "\"grid\":[3,1,1]")
              && strstr(json, "\"block\":[64,1,1]"), "%s", json);
    IS(json, "blocks", 3);
    IS(json, "error", 0);
    IS(json, "warp_instructions", 12 * 6);
    IS(json, "thread_instructions", 12 * 6 * 32);
    IS(json, "global_load_requests", 6);
    IS(json, "global_load_sectors", 24);
    IS(json, "global_load_bytes", 768);
    IS(json, "global_store_sectors", 24);
    IS(json, "distinct_bytes_read", 768);
    IS(json, "distinct_bytes_written", 768);
    IS(json, "distinct_bytes", 1536);
    CHECK(strstr(json, "\"distinct_complete\":true"), "complete");
    CHECK(!strstr(json, "\"lines\""), "lines that nobody asked for");
    free(json);
}

/* All threads read one word; each writes 2 bytes of every 64; one atomic. */
static void test_distinct(void)
{
    char *json = launch(HEAD ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS
                             "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x;\n"
                             "mul.wide.u32 d2, r0, 64; add.u64 d2, d1, d2; ld.global.u32 r1, [d0+4094];\n"
                             "ret; }", "k", 1, 32, 1, 716);
    IS(json, "error", 716);
    IS(json, "distinct_bytes_read", 0);
    free(json);
    json = launch(HEAD ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS
                       "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x;\n"
                       "mul.wide.u32 d2, r0, 64; add.u64 d2, d1, d2;\n"
                       "ld.global.v2.u32 {r1, r2}, [d0+4088]; ld.global.u32 r1, [d0+4092];\n"
                       "ld.global.u32 r1, [d0+4096];\n"
                       "cvt.u16.u32 h0, r0; st.global.u16 [d2+62], h0;\n"
                       "atom.global.add.u32 r3, [d0+8192], 1;\n"
                       "ret; }", "k", 2, 32, 1, 0);
    IS(json, "distinct_bytes_read", 8 + 4 + 4);               /* across a 4 KiB page, one word twice */
    IS(json, "distinct_bytes_written", 32 * 2 + 4);
    IS(json, "distinct_bytes", 12 + 64 + 4);
    IS(json, "global_load_sectors", 2 * 3);
    IS(json, "global_store_sectors", 2 * 32);
    IS(json, "atomics", 2);
    IS(json, "atomic_operations", 64);
    free(json);
}

/* --- other rooms: constants are no global requests, local sectors ------------------------------ */

static void test_spaces(void)
{
    char *json = launch(HEAD ".const .b32 table[4] = { 1, 2, 3, 4 };\n"
                             ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS
                             ".local .align 8 .b8 depot[64];\n"
                             "mov.u32 r0, %tid.x; and.b32 r1, r0, 3; shl.b32 r1, r1, 2;\n"
                             "ld.const.u32 r2, [table+4]; st.local.u32 [depot+8], r2;\n"
                             "st.local.u64 [depot+16], d0; mov.u32 r3, depot; add.u32 r3, r3, r1;\n"
                             "st.local.u32 [r3+32], r2; st.local.u8 [depot], r2;\n"
                             "ret; }", "k", 1, 32, 1, 0);
    IS(json, "global_load_requests", 0);
    IS(json, "local_requests", 4);
    IS(json, "local_sectors", 4 + 8 + 16 + 4);                /* the third: 4 offsets */
    IS(json, "distinct_bytes", 0);
    free(json);
}

/* --- lines ------------------------------------------------------------------------------------ */

#define LINES \
    HEAD /* three lines */ \
    ".shared .align 4 .b8 room[8192];\n" \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS /* 6 */ \
    "mov.u32 r0, %tid.x; mov.u32 r4, 0; mov.u32 r3, room; shl.b32 r1, r0, 7; add.u32 r1, r3, r1;\n" \
    "st.shared.u32 [r1], r0; // \"conflicts\" back\\slash, \ttab\n" /* 8: one bank */ \
    "LOOP: add.u32 r4, r4, 1;\n"                              /* 9 */ \
    "setp.lt.u32 p0, r4, 10;\n" \
    "@p0 bra LOOP;\n" \
    "setp.lt.u32 p1, r0, 8;\n" \
    "@p1 bra OUT;\n"                                          /* 13: splits */ \
    "add.u32 r5, r4, 1;\n"                                    /* 14: 24 lanes */ \
    "OUT: bar.sync 0;\n"                                      /* 15 */ \
    "ret; }\n"

static const char *line_of(const char *json, int line)
{
    char key[40];
    snprintf(key, sizeof key, "{\"line\":%d,", line);
    const char *p = strstr(json, key);
    CHECK(p != NULL, "no line %d", line);
    return p ? p : "";
}

static void test_lines(void)
{
    char *json = launch(LINES, "k", 2, 32, 2, 0);
    const char *eight = line_of(json, 8), *nine = line_of(json, 9);
    IS(line_of(json, 7), "issues", 5 * 2);
    IS(eight, "issues", 2);
    IS(eight, "lanes", 64);
    IS(eight, "shared_requests", 2);
    IS(eight, "shared_wavefronts", 64);
    IS(eight, "shared_bank_conflicts", 62);
    IS(nine, "issues", 20);
    IS(nine, "shared_requests", 0);
    IS(line_of(json, 11), "divergent_branches", 0);
    IS(line_of(json, 13), "divergent_branches", 2);
    IS(line_of(json, 14), "issues", 2);
    IS(line_of(json, 14), "lanes", 48);
    IS(line_of(json, 15), "barriers", 2);
    CHECK(strstr(eight,
                 "\"text\":\"st.shared.u32 [r1], r0; // \\\"conflicts\\\" back\\\\slash, \\u0009tab\""),
          "the text of line 8: %.300s", eight);
    double sum = 0, lanes = 0;
    for (const char *p = json; (p = strstr(p, "{\"line\":")) != NULL; p++) {
        sum += number(p, "issues");
        lanes += number(p, "lanes");
    }
    IS(json, "warp_instructions", sum);
    IS(json, "thread_instructions", lanes);
    free(json);
    char *table = told(0);
    CHECK(strstr(table, "st.shared.u32 [r1], r0;") && strstr(table, "ESTIMATE"), "%s", table);
    free(table);
}

/* --- any number of threads -------------------------------------------------------------------- */

#define MIXED \
    HEAD ".shared .align 4 .b8 room[1024];\n.visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS \
    "ld.param.u64 d0, [in]; ld.param.u64 d1, [out]; mov.u32 r0, %tid.x; mov.u32 r1, %ctaid.x;\n" \
    "mov.u32 r3, room;\n" \
    "mul.lo.u32 r2, r1, 200; mad.lo.u32 r2, r0, 12, r2; cvt.u64.u32 d2, r2; add.u64 d3, d0, d2;\n" \
    "ld.global.u32 r4, [d3]; add.u64 d4, d1, d2; st.global.u8 [d4+3], r4;\n" \
    "and.b32 r5, r0, 15; shl.b32 r5, r5, 6; add.u32 r5, r5, r3; st.shared.u32 [r5], r4; bar.sync 0;\n" \
    "mov.u32 r6, 0; L: add.u32 r6, r6, 1; setp.lt.u32 p0, r6, r0; @p0 bra L;\n" \
    "red.global.add.u32 [d1+60000], 1; ret; }\n"

static void blot(char *json)                                  /* times and serial numbers differ */
{
    static const char *const keys[] = { "\"host_ns\":", "\"launch\":" };
    for (int k = 0; k < 2; k++)
        for (char *p = json; (p = strstr(p, keys[k])) != NULL;)
            for (p += strlen(keys[k]); *p >= '0' && *p <= '9'; p++) *p = ' ';
    size_t n = 0;
    for (char *p = json; *p; p++) if (*p != ' ') json[n++] = *p;
    json[n] = 0;
}

static void test_threads(void)
{
    set_option("threads", 1);
    char *one = launch(MIXED, "k", 97, 96, 2, 0);
    blot(one);
    for (int threads = 2; threads <= 7; threads += 5) {
        set_option("threads", threads);
        char *many = launch(MIXED, "k", 97, 96, 2, 0);
        blot(many);
        CHECK(!strcmp(one, many), "%d threads give another profile:\n%s\n%s", threads, one, many);
        free(many);
    }
    CHECK(number(one, "distinct_bytes_read") > 5000 && number(one, "divergent_branches") > 1000, "%s", one);
    free(one);
    set_option("threads", 0);
}

/* --- the estimate ----------------------------------------------------------------------------- */

static void limited(const char *ptx, const char *kernel, unsigned grid, unsigned block, const char *by)
{
    char want[100], *json = launch(ptx, kernel, grid, block, 1, 0);
    snprintf(want, sizeof want, "\"limiter\":\"%s\"", by);
    CHECK(strstr(json, want), "the limiter is not %s: %s", by, json);
    free(json);
}

#define LOOP_OF(stride, body) \
    HEAD ".shared .align 4 .b8 room[8192];\n.visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS \
    "mov.u32 r0, %tid.x; mov.f64 g0, 0d3ff0000000000000; mov.u32 r1, 0; mov.u32 r2, room;\n" \
    "mov.f32 f0, 0f3f800000;\n" \
    "shl.b32 r3, r0, " stride "; and.b32 r3, r3, 4095; add.u32 r2, r2, r3; st.shared.u32 [r2], r0;\n" \
    "L: add.u32 r1, r1, 1; setp.lt.u32 p0, r1, 20;\n" body " @p0 bra L; ret; }\n"

#define ADD "add.f64 g0, g0, g0; "
static void test_estimate(void)
{
    char *json = launch(HEAD COPY, "copy", 100, 64, 1, 0);
    if (strstr(json, "\"device\":\"sm_90\"")) {
        double bytes = 2e-6 * 3201000 * 6144 / 8, clocks = 100 * 1.98;
        double memory = number(json, "device memory, each distinct byte once"),
               issue = number(json, "issue slots");
        CHECK(fabs(memory - 100 * 64 * 8 / bytes) < 1e-3, "memory: %g", memory);
        CHECK(fabs(issue - 100 * 2 * 12 / (4 * clocks)) < 1e-3, "issue: %g", issue);
    } else puts("skip: numbers of the estimate (PTXSIM_DEVICE is not sm_90)");
    CHECK(strstr(json, "\"limiter\":\"device memory, each distinct byte once\""), "a copy: %s", json);
    free(json);
    limited(LOOP_OF("2", ADD ADD ADD ADD ADD ADD), "k", 1, 128, "f64 units");
    limited(LOOP_OF("7", "ld.shared.u32 r5, [r2];"), "k", 1, 32, "shared memory wavefronts");
    limited(LOOP_OF("2", "sin.approx.f32 f1, f0;"), "k", 1, 64, "special function units");
    limited(LOOP_OF("2", "fma.rn.f32 f0, f0, f0, f0; fma.rn.f32 f0, f0, f0, f0;"), "k", 1, 64, "issue slots");
}

/* --- formats ---------------------------------------------------------------------------------- */

static void test_formats(void)
{
    handle m = load(HEAD COPY), f = function(m, "copy");
    dptr in = alloc(4096), out = alloc(4096);
    void *params[] = { &in, &out };
    cuMemsetD32_v2_(in, 1, 1024);
    profile_clear();
    set_option("profile", 1);
    for (int k = 0; k < 3; k++) SAME(run(f, 2, 32, 0, params), 0);
    SAME(run(f, 1, 32, 0, params), 0);
    set_option("profile", 0);
    SAME(run(f, 1, 32, 0, params), 0);                        /* and this one is not */
    char *table = told(0), *json = told(1), small[16];
    int records = 0;
    for (const char *p = json; (p = strstr(p, "\"kernel\":")) != NULL; p++) records++;
    SAME(records, 4);
    CHECK(strstr(table, "3 alike"), "three launches did the same: %s", table);
    SAME(profile(1, small, sizeof small), strlen(json));
    CHECK(!strncmp(small, json, 15) && small[15] == 0, "cut: %s", small);
    free(table);
    free(json);
    cuMemFree_v2_(in);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
    profile_clear();
    table = told(0);
    CHECK(!strcmp(table, "no launches\n"), "after the clear: %s", table);
    free(table);
}

/* --- the environment: this program again, as a program that knows nothing of profiles ---------- */

static int child(void)
{
    uint32_t x[32];
    handle context, m;
    if (cuInit_(0) || cuDevicePrimaryCtxRetain_(&context, 0) || cuCtxSetCurrent_(context)) return 1;
    if (!(m = load(HEAD COPY))) return 1;
    dptr p = alloc(4096);
    void *params[] = { &p, &p };
    cuMemsetD32_v2_(p, 1, 1024);
    if (run(function(m, "copy"), 2, 32, 0, params)) return 1;
    return cuMemcpyDtoH_v2_(x, p, sizeof x);
}

static int again(const char *program, const char *wish, const char *output)
{
    pid_t id = fork();
    if (!id) {
        setenv("PTXSIM_PROFILE", wish, 1);
        if (output && !freopen(output, "w", stderr)) _exit(9);
        execl(program, program, library, "child", (char *)NULL);
        _exit(9);
    }
    int status = 1;
    waitpid(id, &status, 0);
    return status;
}

static void test_environment(const char *program)
{
    char path[64], wish[128], *text;
    snprintf(path, sizeof path, "/tmp/ptxsim-profile-%ld", (long)getpid());
    static const struct { const char *wish, *has; bool json; } wishes[] = {
        { "json", "\"kernel\":\"copy\"", true }, { "lines-json", "\"text\":\"ld.global.f32", true },
        { "table", "ESTIMATE", false }, { "lines", "ld.global.f32 f0, [d0];", false } };
    for (size_t k = 0; k < 8; k++) {
        bool to_path = k < 4;
        snprintf(wish, sizeof wish, to_path ? "%s:%s" : "%s", wishes[k % 4].wish, path);
        SAME(again(program, wish, to_path ? NULL : path), 0);
        text = read_file(path);
        CHECK(text && strstr(text, wishes[k % 4].has), "%s: %s", wish, text ? text : "no file");
        if (text && wishes[k % 4].json) CHECK(valid_json(text), "%s: not JSON: %s", wish, text);
        if (k == 1 && text) {
            snprintf(wish, sizeof wish, "python3 -m json.tool %s >/dev/null", path);
            if (system("command -v python3 >/dev/null 2>&1")) puts("skip: no python3 to read the JSON with");
            else SAME(system(wish), 0);
        }
        free(text);
    }
    SAME(again(program, "nonsense", path), 0);
    text = read_file(path);
    CHECK(text && strstr(text, "PTXSIM_PROFILE is not") && !strstr(text, "ESTIMATE"), "%s", text ? text : "");
    free(text);
    remove(path);
}

/* --- the budget ------------------------------------------------------------------------------- */

static void test_budget(void)
{
    static const char loop[] = HEAD ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS
        "mov.u32 r0, 0; L: add.u32 r0, r0, 1; setp.lt.u32 p0, r0, 20000; @p0 bra L; ret; }";
    static const char endless[] = HEAD ".visible .entry k(.param .u64 in, .param .u64 out) {\n" REGS
        "L: nanosleep.u32 10; bra L; ret; }";
    set_option("budget", 60010);                              /* the loop issues 60002 */
    free(launch(loop, "k", 1, 32, 0, 0));
    set_option("budget", 50000);
    free(launch(loop, "k", 1, 32, 0, 702));
    CHECK(strstr(found, "timeout: kernel 'k'") && strstr(found, "budget of instructions"), "%s", found);
    free(launch(loop, "k", 3, 32, 0, 702));                   /* of the launch, not of a block */
    free(launch(endless, "k", 4, 64, 0, 702));
    set_option("budget", 0);
    free(launch(loop, "k", 3, 32, 0, 0));
}

int main(int argc, char **argv)
{
    char *again_as[] = { argv[0], argc > 1 ? argv[1] : NULL, NULL };
    sim_open(again_as[1] ? 2 : 1, again_as);
    *(void **)&profile = symbol(sim_library, "ptxsim_profile");
    *(void **)&profile_clear = symbol(sim_library, "ptxsim_profile_clear");
    if (argc > 2) return child();
    library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    if (!library) library = "build/libptxsim.so";
    test_off();
    test_copy();
    test_distinct();
    test_spaces();
    test_lines();
    test_threads();
    test_estimate();
    test_formats();
    test_environment(argv[0]);
    test_budget();
    return sim_close();
}
