/* hostile.c - hostile PTX: no text may crash, hang or leak. The files of tests/data/hostile are what
 * the fuzzer found (`make fuzz`), each with the codes it must end with in its first line; those of
 * tests/data/fuzz are what the fuzzer starts from and must load. Texts that are hostile by their size are
 * made here: they must be refused, or load, in good time. */
#include "../simtest.h"
#include <dirent.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static dptr buffer;

/* The sanitizers take their time. */
#if defined(__SANITIZE_ADDRESS__)
enum { SLOW = 20 };
#else
enum { SLOW = 2 };
#endif

/* Launches every entry that the text names; the last code that is not 0. */
static int launch_all(handle m, const char *text)
{
    void *params[64];
    static uint64_t words[4096];
    int code = 0;
    for (size_t k = 0; k < 4096; k++) words[k] = buffer;
    for (size_t k = 0; k < 64; k++) params[k] = words;
    for (const char *p = text; (p = strstr(p, ".entry ")) != NULL;) {
        char name[80];
        handle f;
        if (sscanf(p += 7, "%79[A-Za-z0-9_$%]", name) != 1 || cuModuleGetFunction_(&f, m, name)) continue;
        int one = run(f, 2, 40, 256, params);
        if (one) { code = one; findings(); report_clear(); }
    }
    return code;
}

static void one_file(const char *path, bool told)
{
    char *text = read_file(path);
    int load_code = 0, launch_code = -1;
    handle m = NULL;
    if (!CHECK(text != NULL, "%s: cannot be read", path)) return;
    if (told && sscanf(text, "// load %d launch %d", &load_code, &launch_code) < 1)
        CHECK(false, "%s: the first line does not say how it ends", path);
    *log_text = 0;
    int options[2] = { 5, 6 };
    void *values[2] = { log_text, (void *)(uintptr_t)sizeof log_text };
    int code = cuModuleLoadDataEx_(&m, text, 2, options, values);
    CHECK(code == load_code, "%s: loading gives %d, expected %d: %s", path, code, load_code, log_text);
    if (code) CHECK(strstr(log_text, ", line "), "%s: an error without its line: %s", path, log_text);
    else {
        code = launch_all(m, text);
        CHECK(code == launch_code || launch_code < 0, "%s: launching gives %d, expected %d: %s", path, code,
              launch_code, found);
        cuModuleUnload_(m);
    }
    free(text);
}

static int every_file(const char *folder, bool told)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!CHECK(d != NULL, "no folder %s", folder)) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[600];
        size_t length = strlen(e->d_name);
        if (length < 4 || strcmp(e->d_name + length - 4, ".ptx")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        one_file(path, told);
        n++;
    }
    closedir(d);
    return n;
}

/* --- hostile by size -------------------------------------------------------------------------- */

static char *big;
static size_t big_length, big_capacity;

static void add(const char *text, unsigned times)
{
    size_t n = strlen(text);
    if (big_length + n * times + 1 > big_capacity) {
        big_capacity = (big_length + n * times + 1) * 2;
        if (!(big = realloc(big, big_capacity))) exit(2);
    }
    for (; times; times--, big_length += n) memcpy(big + big_length, text, n);
    big[big_length] = 0;
}

#define BODY HEAD ".visible .entry k(.param .u64 out) {\n" REGS

/* head, n times `open`, middle, n times `close`, tail. code < 0: any. */
static void sized(int code, const char *head, const char *open, unsigned n, const char *middle,
                  const char *close, const char *tail)
{
    struct timespec a, b;
    big_length = 0;
    add(head, 1);
    add(open, n);
    add(middle, 1);
    add(close, n);
    add(tail, 1);
    *log_text = 0;
    clock_gettime(CLOCK_MONOTONIC, &a);
    int have = refused(big);
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK(code < 0 || have == code, "%u times '%.20s' after '%.60s...': %d, expected %d: %.300s", n, open,
          head + strlen(head) / 2, have, code, log_text);
    if (have) CHECK(strstr(log_text, ", line "), "%u times '%.20s': an error without its line", n, open);
    long seconds = (long)(b.tv_sec - a.tv_sec);
    CHECK(seconds < 5 * SLOW, "%u times '%.20s' took %ld seconds", n, open, seconds);
}

static void test_depth(void)
{
    sized(-1, HEAD ".visible .entry k() {", "{", 200000, "", "}", "ret; }");
    sized(218, HEAD ".visible .entry k() {", "{", 200000, "", "", "");
    sized(-1, BODY "mov.u32 r0, ", "(", 200000, "1", ")", "; ret; }");
    sized(-1, BODY "mov.u32 r0, ", "-", 200000, "1", "", "; ret; }");
    sized(-1, BODY "mov.u32 r0, ", "~!", 100000, "1", "", "; ret; }");
    sized(-1, BODY "mov.u32 r0, ", "1?", 100000, "1", ":1", "; ret; }");
    sized(-1, BODY "mov.u32 r0, ", "1+", 200000, "1", "", "; ret; }");
    sized(218, BODY "mov.b64 d0, ", "{", 100000, "r0", "}", "; ret; }");
    sized(218, BODY "ld.global.u32 r0, ", "[", 100000, "d0", "]", "; ret; }");
    sized(-1, HEAD ".global .b32 x[4] = ", "{", 100000, "1", "}", ";\n");
    sized(-1, HEAD ".global .b32 y; .global .u64 x = ", "generic(", 100000, "y", ")", ";\n");
    sized(-1, HEAD ".global .b8 x", "[1]", 100000, ";\n", "", "");
}

static void test_length(void)
{
    sized(218, BODY, "@", 100000, "", "", "ret; }");
    sized(-1, BODY, ";", 100000, "", "", "ret; }");
    sized(218, BODY "add", ".u32", 100000, " r0, r1, r2; ret; }", "", "");
    sized(218, BODY "add.u32 r0", ", r0", 100000, "; ret; }", "", "");
    sized(218, BODY "mov.u32 r0, 0x", "f", 100000, "; ret; }", "", "");
    sized(218, BODY "mov.u32 r0, ", "9", 100000, "; ret; }", "", "");
    sized(218, HEAD ".global .b32 x[2] = { 1", ", 1", 300000, " };\n", "", "");
    sized(0, HEAD ".global .b32 x[300001] = { 1", ", 1", 300000, " };\n", "", "");
    sized(0, BODY, "add.u32 r0, r0, 1;\n", 100000, "ret; }", "", "");
    sized(0, BODY, "{ .reg .b32 z; mov.u32 z, 1; }\n", 20000, "ret; }", "", "");
    sized(218, HEAD "/*", "x", 300000, "", "", "");
    sized(218, HEAD ".section \"", "x", 300000, "", "", "");
    sized(-1, "", "\r\n", 100000, HEAD, "", "");
}

static void test_numbers(void)
{
    static const char *const sizes[] = { "0x7fffffffffffffff", "0xffffffffffffffff", "0x2000000000000000",
                                         "0x80000000", "-5", "99999999999999999999" };
    static const char *const spaces[] = { ".global", ".const", ".shared", ".local" };
    char text[600];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (size_t s = 0; s < 4; s++) {
            if (s == 0 && !strcmp(sizes[k], "0x80000000")) continue;     /* 16 GiB are allowed */
            snprintf(text, sizeof text, BODY "%s .align 8 .b64 x[%s]; mov.u64 d1, x; ret; }", spaces[s],
                     sizes[k]);
            CHECK(refused(text) != 0, "%s", text + 150);
        }
        snprintf(text, sizeof text, HEAD ".visible .entry k(.param .b8 x[%s]) { ret; }", sizes[k]);
        CHECK(refused(text) != 0, "%s", text);
        snprintf(text, sizeof text, BODY ".reg .b32 q<%s>; ret; }", sizes[k]);
        CHECK(refused(text) != 0, "%s", text + 150);
        snprintf(text, sizeof text, HEAD ".global .align %s .b8 x[4];", sizes[k]);
        CHECK(refused(text) != 0, "%s", text);
    }
    CHECK(refused(HEAD ".global .b32 x[65536][65536][65536][65536];") != 0, "a size that overflows to 0");
    CHECK(refused(".version 99999999999999999999.99999999999\n.target sm_90\n") != 0, "version");
    CHECK(refused(".version 8.0\n.target sm_999999999999999999999\n") != 0, "target");
    snprintf(text, sizeof text, BODY "mov.s64 d1, (-9223372036854775807-1)/-1; mov.u64 d2, 1<<70; ret; }");
    (void)refused(text);
    snprintf(text, sizeof text, BODY "mov.u32 r1, 5%%0; ret; }");
    CHECK(refused(text) != 0, "a division by zero");
    passed++;                                                 /* the sanitizers look at the rest */
}

static void test_many(void)
{
    static const char *const kinds[] = { ".func f%u() { ret; }\n", ".visible .entry f%u() { ret; }\n",
                                         ".global .b32 f%u;\n", ".shared .b32 f%u;\n", ".extern .func f%u();\n" };
    static const char *const in_body[] = { "L%u:\n", ".reg .b32 q%u;\n", "bra L%u;\n" };
    char line[80];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        big_length = 0;
        add(HEAD, 1);
        for (unsigned n = 0; n < 30000; n++) { snprintf(line, sizeof line, kinds[k], n); add(line, 1); }
        char *text = strdup(big);
        sized(0, text, "", 0, ".visible .entry k() { ret; }\n", "", "");
        free(text);
    }
    for (size_t k = 0; k < sizeof in_body / sizeof *in_body; k++) {
        big_length = 0;
        add(HEAD ".visible .entry k() {\n", 1);
        for (unsigned n = 0; n < (k ? 300000 : 1000000); n++) {
            snprintf(line, sizeof line, in_body[k], n);
            add(line, 1);
        }
        char *text = strdup(big);
        sized(k == 2 ? 218 : 0, text, "", 0, "ret; }\n", "", "");
        free(text);
    }
}

/* The memory that a module of many entries takes: some 2 KB each. */
static void test_memory_of_entries(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    char line[80];
    handle m = NULL;
    big_length = 0;
    add(HEAD, 1);
    for (unsigned n = 0; n < 20000; n++) {
        snprintf(line, sizeof line, ".visible .entry f%u() { ret; }\n", n);
        add(line, 1);
    }
    size_t before = mallinfo2().uordblks;
    SAME(cuModuleLoadData_(&m, big), 0);
    size_t used = mallinfo2().uordblks - before;
    CHECK(used < (size_t)20000 * 4000 * SLOW, "20,000 entries take %zu bytes", used);
    cuModuleUnload_(m);
#endif
}

/* Calls that double at each level: 2^40 calls where they are copied in place. */
static void test_calls(void)
{
    char line[120];
    big_length = 0;
    add(HEAD ".func f0() { ret; }\n", 1);
    for (int k = 1; k < 40; k++) {
        snprintf(line, sizeof line, ".func f%d() { call f%d; call f%d; ret; }\n", k, k - 1, k - 1);
        add(line, 1);
    }
    add(".visible .entry k() { ret; }\n", 1);
    *log_text = 0;
    if (refused(big)) CHECK(strstr(log_text, ", line "), "calls that double: no line");
    passed++;
}

/* An object of the device heap that one stream's kernel writes and another's, with nothing between them,
 * frees: they race, and what is remembered of it must go with the context. */
static void test_heap_of_two_streams(void)
{
    static const char text[] =
        HEAD ".visible .global .b64 kept;\n.extern .func (.param .b64 r) malloc(.param .b64 n);\n"
             ".extern .func free(.param .b64 p);\n.visible .entry make() {\n" REGS
             ".param .b64 n; .param .b64 p; st.param.b64 [n], 131072; call (p), malloc, (n); ld.param.b64 "
             "d0, [p];\n"
             "st.global.u32 [d0+131000], 1; atom.global.exch.b64 d1, [kept], d0; ret; }\n"
             ".visible .entry drop() {\n" REGS
             "atom.global.exch.b64 d0, [kept], 0; st.global.u32 [d0+131000], 2; call free, (d0); ret; }\n";
    handle m = load(text), first = NULL, second = NULL;
    if (!m) { failed++; return; }
    report_clear();
    SAME(cuStreamCreate_(&first, 1), 0);
    SAME(cuStreamCreate_(&second, 1), 0);
    SAME(cuLaunchKernel_(function(m, "make"), 1, 1, 1, 1, 1, 1, 0, first, NULL, NULL), 0);
    SAME(cuLaunchKernel_(function(m, "drop"), 1, 1, 1, 1, 1, 1, 0, second, NULL, NULL), 0);
    SAME(cuStreamSynchronize_(first), 0);
    SAME(cuStreamSynchronize_(second), 0);
    CHECK(strstr(findings(), "stream-race"), "no stream-race: %s", found);
    SAME(cuStreamDestroy_v2_(first), 0);
    SAME(cuStreamDestroy_v2_(second), 0);
    cuModuleUnload_(m);
    report_clear();
}

/* Sizes of copies whose sums or products wrap. */
static void test_wrapping_copies(void)
{
    struct {
        size_t from_x, from_y;
        unsigned from_type;
        const void *from_host;
        dptr from;
        void *from_array;
        size_t from_pitch, to_x, to_y;
        unsigned to_type;
        void *to_host;
        dptr to;
        void *to_array;
        size_t to_pitch, width, height;
    } k = { .from_type = 2, .to_type = 2, .from = buffer, .to = buffer + 1024, .width = 4, .height = 4,
            .from_pitch = 16, .to_pitch = 16 };
    int (*copy)(const void *) = NULL;
    int (*set)(dptr, size_t, unsigned char, size_t, size_t) = NULL;
    *(void **)&copy = symbol(sim_library, "cuMemcpy2D_v2");
    *(void **)&set = symbol(sim_library, "cuMemsetD2D8_v2");
    SAME(copy(&k), 0);
    k.height = ((size_t)1 << 60) + 1;                         /* times 16: nothing */
    SAME(copy(&k), 1);
    k.height = 1;
    k.width = SIZE_MAX;
    k.from_x = k.to_x = 5;                                    /* together 4 */
    SAME(copy(&k), 1);
    k.width = 4;
    k.from_x = 0;
    k.to_x = SIZE_MAX - 3;
    SAME(copy(&k), 1);
    SAME(set(buffer, 16, 1, 4, 4), 0);
    SAME(set(buffer, 16, 1, 4, ((size_t)1 << 60) + 1), 1);
    SAME(set(buffer, (size_t)1 << 63, 1, 4, 3), 1);
}

int main(int argc, char **argv)
{
    sim_open(argc, argv);
    set_option("budget", 100000);
    buffer = alloc(4096);
    cuMemsetD8_v2_(buffer, 1, 2048);
    CHECK(every_file("tests/data/hostile", true) > 0, "no hostile files");
    CHECK(every_file("tests/data/fuzz", false) > 3, "no seeds");
    test_depth();
    test_length();
    test_numbers();
    test_many();
    test_memory_of_entries();
    test_calls();
    test_heap_of_two_streams();
    test_wrapping_copies();
    cuMemFree_v2_(buffer);
    free(big);
    return sim_close();
}
