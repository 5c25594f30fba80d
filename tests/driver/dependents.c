/* dependents.c - programmatic dependent launch: kernels that may begin before the one before them
 * has ended, in streams and graphs; what they touch too early, each fault beside its twin. */
#include "../simtest.h"

static int (*launch_ex)(const launch_config *, handle, void **, void **);
static int (*begin_capture)(handle, int), (*end_capture)(handle, handle *);
static int (*instantiate)(handle *, handle, unsigned long long), (*graph_launch)(handle, handle);
static int (*get_edges)(handle, handle *, handle *, size_t *);
static int (*get_edges_v2)(handle, handle *, handle *, void *, size_t *);
static int (*exec_destroy)(handle), (*graph_destroy)(handle);
static int (*memset_async)(dptr, unsigned, size_t, handle);

static void open_more(void) {
    *(void **)&launch_ex = symbol(sim_library, "cuLaunchKernelEx");
    *(void **)&begin_capture = symbol(sim_library, "cuStreamBeginCapture_v2");
    *(void **)&end_capture = symbol(sim_library, "cuStreamEndCapture");
    *(void **)&instantiate = symbol(sim_library, "cuGraphInstantiateWithFlags");
    *(void **)&graph_launch = symbol(sim_library, "cuGraphLaunch");
    *(void **)&get_edges = symbol(sim_library, "cuGraphGetEdges");
    *(void **)&get_edges_v2 = symbol(sim_library, "cuGraphGetEdges_v2");
    *(void **)&exec_destroy = symbol(sim_library, "cuGraphExecDestroy");
    *(void **)&graph_destroy = symbol(sim_library, "cuGraphDestroy");
    *(void **)&memset_async = symbol(sim_library, "cuMemsetD32Async");
}

/* --- three kernels ----------------------------------------------------------------------------- */

enum { THREADS = 64, BLOCKS = 4, WORDS = THREADS * BLOCKS };
#define GO "griddepcontrol.launch_dependents;\n"
#define WAIT "griddepcontrol.wait;\n"
/* d0 and d1: two buffers; d2, d3: the thread's word in each; r0 thread, r1 block, r2 both; r31 shared. */
#define KERNEL(name, body)                                                                                   \
    ".visible .entry " name "(.param .u64 a, .param .u64 b) {\n" REGS                                        \
    "ld.param.u64 d0, [a]; ld.param.u64 d1, [b]; mov.u32 r0, %%tid.x; mov.u32 r1, %%ctaid.x;\n"              \
    "mad.lo.u32 r2, r1, 64, r0; mul.wide.u32 d2, r2, 4; add.u64 d3, d1, d2; add.u64 d2, d0, d2; mov.u32 "    \
    "r31, sm;\n" body "\nret;\n}\n"

static uint32_t result[WORDS];
static handle module, streams[2];

/* Two or three kernels (the first may be NULL) in a stream; only the first is launched plainly, or all are,
 * or all but one. */
enum { PLAIN = 1, CAPTURED = 2, MEMSET_BETWEEN = 4, OTHER_STREAM = 8, PLAIN_P = 16, PLAIN_S = 32 };

static handle kernels(const char *const body[3]) {
    static char text[20000];
    static const char *const names[] = {"q", "p", "s"};
    int n = snprintf(text, sizeof text,
                     ".version 8.6\n.target sm_90a\n.address_size 64\n"
                     ".shared .align 128 .b8 sm[1024]; .shared .align 8 .b64 bar;\n");
    for (int k = 0; k < 3; k++) {
        char whole[4000];
        snprintf(whole, sizeof whole, KERNEL("%s", "%s"), names[k], body[k] ? body[k] : "");
        n += snprintf(text + n, sizeof text - (size_t)n, "%s", whole);
    }
    return load(text);
}

static int launch(handle f, handle stream, void **params, bool programmatic) {
    launch_attribute a = {.id = 6, .value.n = {1}};
    launch_config c = {{BLOCKS, 1, 1}, {THREADS, 1, 1}, 0, stream, &a, programmatic};
    return launch_ex(&c, f, params, NULL);
}

static int run_three(const char *q, const char *p, const char *s, int how) {
    const char *const body[] = {q, p, s};
    static const char *const names[] = {"q", "p", "s"};
    handle stream = streams[how & OTHER_STREAM ? 1 : 0], graph = NULL, exec = NULL;
    dptr a = alloc(WORDS * 4), b = alloc(WORDS * 4);
    void *params[] = {&a, &b};
    int code = 0, first = q ? 0 : 1;
    module = kernels(body);
    report_clear();
    cuMemsetD32_v2_(a, 1, WORDS);
    cuMemsetD32_v2_(b, 2, WORDS);
    if (how & CAPTURED) SAME(begin_capture(stream, 0), 0);
    for (int k = first; k < 3 && !code; k++) {
        if (k == 2 && how & MEMSET_BETWEEN) SAME(memset_async(b, 2, WORDS, stream), 0);
        int plainly = PLAIN | (k == 1 ? PLAIN_P : PLAIN_S);
        code = launch(function(module, names[k]), stream, params, k > first && !(how & plainly));
    }
    if (how & CAPTURED) {
        handle from[4], to[4];
        uint8_t edges[32];
        size_t count = 4;
        SAME(end_capture(stream, &graph), 0);
        SAME(get_edges_v2(graph, from, to, edges, &count), 0);
        CHECK(count == (size_t)(2 - first) && edges[0] == !(how & PLAIN) && edges[2] == !(how & PLAIN),
              "the edge's type");
        count = 4;
        SAME(get_edges(graph, from, to, &count), how & PLAIN ? 0 : 402);
        SAME(instantiate(&exec, graph, 0), 0);
        SAME(graph_launch(exec, stream), 0);
    }
    if (!code) code = cuStreamSynchronize_(stream);
    findings();
    if (code)
        report_clear();
    else
        cuMemcpyDtoH_v2_(result, b, sizeof result);
    if (exec) exec_destroy(exec), graph_destroy(graph);
    cuMemFree_v2_(a), cuMemFree_v2_(b);
    cuModuleUnload_(module);
    return code;
}

static void told(const char *name, const char *q, const char *p, const char *s, int how, const char *says) {
    int code = run_three(q, p, s, how);
    CHECK(!code && !strncmp(found, "dependent-race: kernel 's'", 26) && strstr(found, "// here")
              && strstr(found, "// there") && strstr(found, says),
          "%s: code %d, found: %s", name, code, found);
    report_clear();
}

static void silent(const char *name, const char *q, const char *p, const char *s, int how) {
    int code = run_three(q, p, s, how);
    CHECK(!code && !*found, "%s: code %d, found: %s", name, code, found);
    report_clear();
}

/* --- what is too early ---------------------------------------------------------------------------- */

#define WRITE_A "st.global.u32 [d2], r2; // there\n"
#define READ_A "ld.global.u32 r3, [d2]; // here\nst.global.u32 [d3], r3;\n"
#define TOO_EARLY "for no griddepcontrol.wait comes before this"

static void test_reads(void) {
    told("a read before the wait", NULL, GO WRITE_A, READ_A WAIT, 0, "kernel 'p' (cuLaunchKernelEx");
    told("no wait at all", NULL, GO WRITE_A, READ_A, 0, TOO_EARLY);
    told("what was written before launch_dependents", NULL, WRITE_A GO, READ_A WAIT, 0, "writes at line ");
    silent("the wait first", NULL, GO WRITE_A, WAIT READ_A, 0);
    for (uint32_t k = 0; k < WORDS; k++)
        if (!CHECK(result[k] == k, "result %u is %u", k, result[k])) break;
    silent("a plain launch", NULL, GO WRITE_A, READ_A, PLAIN);
    silent("a kernel that lets nobody go", NULL, WRITE_A, READ_A, 0);
    silent("something between", NULL, GO WRITE_A, READ_A, MEMSET_BETWEEN);
    told("in another stream", NULL, GO WRITE_A, READ_A, OTHER_STREAM, "in stream 2");
    told("one block lets them go, the others end", NULL,
         "setp.ne.u32 p0, r1, 0;\n@p0 bra X;\n" GO "X:\n" WRITE_A, READ_A, 0,
         "block (0,0,0), thread (0,0,0)");
    told("other bytes of a word, and these", NULL, GO "st.global.u8 [d2+1], r0; // there\n",
         "ld.global.u8 r3, [d2]; ld.global.u8 r3, [d2+1]; // here\n", 0, TOO_EARLY);
    silent("other bytes of a word", NULL, GO "st.global.u8 [d2+1], r0;\n", "ld.global.u8 r3, [d2];\n", 0);
    silent("read with .nc, written by nobody", NULL, GO WRITE_A, WAIT "ld.global.nc.u32 r3, [d3];\n" READ_A, 0);
    CHECK(!run_three(NULL, GO WRITE_A, WAIT "ld.global.nc.u32 r3, [d2]; // here\n", 0)
              && !strncmp(found, "nc-written: kernel 's'", 22) && strstr(found, "// here") && strstr(found, "// there")
              && strstr(found, "when this kernel began"),
          "read with .nc behind the wait: %s", found);
    report_clear();
    silent("read with .nc, launched plainly", NULL, GO WRITE_A, "ld.global.nc.u32 r3, [d2];\n" READ_A, PLAIN);
    told("a vector", NULL, GO WRITE_A, "ld.global.v4.u32 {r3,r4,r5,r6}, [d0]; // here\n", 0, TOO_EARLY);
}

static void test_writes(void) {
    told("written while it is read", NULL, GO "ld.global.u32 r3, [d2]; // there\nst.global.u32 [d3], r3;\n",
         "st.global.u32 [d2], 5; // here\n" WAIT, 0, "reads at line ");
    told("written twice", NULL, GO WRITE_A, "st.global.u32 [d2], 5; // here\n" WAIT, 0, "writes at line ");
    silent("read by both", NULL, GO "ld.global.u32 r3, [d2];\n", "ld.global.u32 r3, [d2];\n" WAIT, 0);
    silent("updated by both", NULL, GO "red.global.add.u32 [d0], 1;\n", "red.global.add.u32 [d0], 1;\n", 0);
    told("updated and read", NULL, GO "red.global.add.u32 [d0], 1; // there\n",
         "ld.global.u32 r3, [d0]; // here\n", 0, "updates at line ");
    silent("strong accesses on both sides", NULL, GO "st.release.gpu.global.u32 [d2], 1;\n",
           "ld.acquire.gpu.global.u32 r3, [d2];\n", 0);
    told("an asynchronous copy", NULL, GO WRITE_A,
         "cp.async.ca.shared.global [r31], [d0], 4; // here\n"
         "cp.async.wait_all;\n" WAIT,
         0, TOO_EARLY);
}

#define BULK(before, after)                                                                                  \
    "setp.ne.u32 p0, r0, 0;\n@p0 bra X;\nmov.u32 r4, bar; mbarrier.init.shared.b64 [r4], 1;\n" before        \
    "mbarrier.arrive.expect_tx.shared.b64 _, [r4], 256;\n"                                                   \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r31], [d0], 256, [r4]; // "          \
    "here\n" after "L: mbarrier.try_wait.parity.shared.b64 p1, [r4], 0;\n@!p1 bra L;\nX:\n"

static void test_who_waits(void) {
    told("one thread waits, the others do not know", NULL, GO WRITE_A,
         "setp.ne.u32 p0, r0, 0;\n@p0 bra X;\n" WAIT "X:\n" READ_A, 0, "thread (");
    silent("one thread waits, a barrier tells the others", NULL, GO WRITE_A,
           "setp.ne.u32 p0, r0, 0;\n@p0 bra X;\n" WAIT "X:\nbar.sync 0;\n" READ_A, 0);
    silent("all of a warp wait, its sixth lane tells another", NULL, GO WRITE_A,
           "mov.u32 r4, bar;\nsetp.eq.u32 p0, r0, 0;\n@p0 mbarrier.init.shared.b64 [r4], 1;\nbar.sync 0;\n"
           "setp.ge.u32 p0, r0, 32;\n@p0 bra X;\n" WAIT
           "setp.eq.u32 p0, r0, 5;\n@p0 mbarrier.arrive.shared.b64 _, [r4];\nbra.uni Y;\n"
           "X: mbarrier.try_wait.parity.shared.b64 p1, [r4], 0;\n@!p1 bra X;\nY:\n" READ_A, 0);
    told("a bulk copy before the wait", NULL, GO WRITE_A, BULK("", WAIT), 0, TOO_EARLY);
    silent("a bulk copy behind the wait", NULL, GO WRITE_A, BULK(WAIT, ""), 0);
    silent("a prologue of its own", NULL, GO WRITE_A,
           "mul.wide.u32 d4, r0, 4;\nst.shared.u32 [r31], 7;\nbar.sync 0;\n" WAIT READ_A, 0);
}

static void test_chains(void) {
    told("the one between does not wait", GO WRITE_A, GO, WAIT READ_A, 0, "kernel 'q' (cuLaunchKernelEx");
    silent("the one between waits", GO WRITE_A, GO WAIT, WAIT READ_A, 0);
    told("lets them go before it waits", GO WRITE_A, GO WAIT, READ_A WAIT, 0, TOO_EARLY);
    silent("lets them go behind its wait", GO WRITE_A, WAIT GO, READ_A WAIT, 0);
    told("lets nobody go and does not wait", GO WRITE_A, "", READ_A, 0, TOO_EARLY);
    silent("lets nobody go, and waits", GO WRITE_A, WAIT, READ_A, 0);
}

/* Each lets the next go at once, and waits before it touches what others do. */
static void test_right_chains(void) {
    static const int ways[] = {0, PLAIN, PLAIN_P, PLAIN_S, CAPTURED, CAPTURED | PLAIN};
    for (unsigned n = 0; n < sizeof ways / sizeof *ways; n++) {
        memset(result, 0, sizeof result);
        silent("a right chain", GO WAIT WRITE_A, GO "mov.u32 r9, r2;\n" WAIT READ_A,
               GO "mov.u32 r9, 3;\n" WAIT "ld.global.u32 r3, [d3]; mul.lo.u32 r3, r3, r9;\n"
                  "st.global.u32 [d3], r3; st.global.u32 [d2], r9;\n",
               ways[n]);
        CHECK(result[5] == 15 && result[WORDS - 1] == 3 * (WORDS - 1), "way %u: %u", n, result[5]);
    }
    silent("nothing is left of the first when a plain one has begun", GO WRITE_A, GO, READ_A, PLAIN_P);
    told("only the last may begin early", "", GO WRITE_A, READ_A, PLAIN_P, "kernel 'p'");
    silent("a plain launch waits for all before it", GO WRITE_A, GO, READ_A, PLAIN_S);
}

static void test_graphs(void) {
    told("captured", NULL, GO WRITE_A, READ_A, CAPTURED, "kernel 'p'");
    silent("captured, with its wait", NULL, GO WRITE_A, WAIT READ_A, CAPTURED);
    silent("captured plainly", NULL, GO WRITE_A, READ_A, CAPTURED | PLAIN);
    told("a captured chain", GO WRITE_A, GO, WAIT READ_A, CAPTURED, "the kernel between them");
}

/* The host waits between the two launches, or not. */
static void test_host(void) {
    const char *const body[3] = {NULL, GO WRITE_A, READ_A};
    dptr a = alloc(WORDS * 4), b = alloc(WORDS * 4);
    void *params[] = {&a, &b};
    handle event, stream;
    SAME(cuEventCreate_(&event, 0), 0);
    module = kernels(body);
    for (int how = 0; how < 5; how++) {
        SAME(cuStreamCreate_(&stream, 1), 0);
        report_clear();
        SAME(launch(function(module, "p"), stream, params, false), 0);
        if (how == 1) SAME(cuStreamSynchronize_(stream), 0);
        if (how == 2) SAME(cuCtxSynchronize_(), 0);
        if (how == 3) CHECK(!cuEventRecord_(event, stream) && !cuEventSynchronize_(event), "an event");
        if (how == 4) { /* its number goes to the next stream */
            SAME(cuStreamSynchronize_(stream), 0);
            SAME(cuStreamDestroy_v2_(stream), 0);
            SAME(cuStreamCreate_(&stream, 1), 0);
        }
        SAME(launch(function(module, "s"), stream, params, true), 0);
        SAME(cuStreamSynchronize_(stream), 0);
        findings();
        CHECK(!*found == (how > 0), "the host waits in way %d, found: %s", how, found);
        report_clear();
        SAME(cuStreamDestroy_v2_(stream), 0);
    }
    SAME(cuEventDestroy_v2_(event), 0);
    cuModuleUnload_(module);
    cuMemFree_v2_(a), cuMemFree_v2_(b);
}

/* A long chain keeps what may still run of it, and no more. */
static size_t resident(void) {
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*s %zu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * 4096;
}

static void test_long_chain(void) {
    const char *const body[3] = {NULL, WAIT GO WRITE_A, ""};
    dptr a = alloc(WORDS * 4), b = alloc(WORDS * 4);
    void *params[] = {&a, &b};
    size_t before = 0;
    report_clear();
    module = kernels(body);
    handle f = function(module, "p");
    for (int n = 0; n < 4000; n++) {
        if (n == 200) before = resident();
        SAME(launch(f, streams[1], params, true), 0);
        if (n % 50 == 49) SAME(cuStreamQuery_(streams[1]) % 600, 0);
    }
    SAME(cuStreamSynchronize_(streams[1]), 0);
    size_t more = resident() - before;
#if !defined(__SANITIZE_ADDRESS__) /* which keeps what is freed for a while */
    CHECK(more < (size_t)24 << 20 || more > SIZE_MAX / 2, "%zu bytes more after 4000 launches", more);
#endif
    (void)more;
    findings();
    CHECK(!*found, "found: %s", found);
    cuModuleUnload_(module);
    cuMemFree_v2_(a), cuMemFree_v2_(b);
}

/* More pages than are kept: what is found of them is the same for any number of threads. */
#define EACH_PAGE(what)                                                                                      \
    "mov.u32 r5, 0;\nL: mad.lo.u32 r6, r5, 256, r2; mul.wide.u32 d4, r6, 1024; add.u64 d4, d0, d4;\n" what   \
    "\nadd.u32 r5, r5, 1; setp.lt.u32 p1, r5, 80; @p1 bra L;\n"

static void test_many_pages(void) {
    const char *const body[3] = {NULL, GO EACH_PAGE("st.global.u32 [d4], r5; // there"),
                                 EACH_PAGE("ld.global.u32 r7, [d4]; // here")};
    static char first[sizeof found];
    dptr a = alloc(80 * 256 * 1024), b = alloc(4);
    void *params[] = {&a, &b};
    module = kernels(body);
    for (int threads = 1; threads <= 4; threads++) {
        set_option("threads", threads);
        SAME(launch(function(module, "p"), streams[1], params, false), 0);
        SAME(launch(function(module, "s"), streams[1], params, true), 0);
        SAME(cuStreamSynchronize_(streams[1]), 0);
        findings();
        char *call = strstr(found, ", call ");
        if (CHECK(call, "found: %s", found)) memset(call, ' ', 12);
        if (threads == 1) strcpy(first, found);
        const char *times = strrchr(found, '(');
        unsigned n = times ? (unsigned)strtoul(times + 1, NULL, 10) : 0;
        CHECK(!strcmp(first, found) && n > 1000 && n < 20480, "%d threads: %s", threads, found);
        report_clear();
    }
    set_option("threads", 0);
    cuModuleUnload_(module);
    cuMemFree_v2_(a), cuMemFree_v2_(b);
}

static void test_same_for_all(void) {
    static char first[sizeof found];
    for (int threads = 1; threads <= 4; threads++) {
        set_option("threads", threads);
        SAME(run_three(NULL, GO WRITE_A, READ_A, 0), 0);
        if (threads == 1) strcpy(first, found);
        /* addresses differ */
        const char *a = strstr(first, "reads global"), *b = strstr(found, "reads global");
        CHECK(a && b && a - first == b - found && !strncmp(first, found, (size_t)(a - first))
                  && !strcmp(strstr(a, ", in stream"), strstr(b, ", in stream")),
              "%d threads: %s", threads, found);
        report_clear();
    }
    set_option("threads", 0);
    set_option("races", 0);
    silent("switched off", NULL, GO WRITE_A, READ_A, 0);
    set_option("races", 1);
}

static void test_attributes(void) {
    static const int ignored[] = {0, 1, 3, 5, 8, 9, 10, 11, 14, 16}, refused_here[] = {7, 12, 13, 15};
    const char *const body[3] = {""};
    module = kernels(body);
    handle f = function(module, "q");
    dptr none = 0;
    void *params[] = {&none, &none};
    launch_attribute a = {.id = 0};
    launch_config c = {{1, 1, 1}, {1, 1, 1}, 0, NULL, &a, 1};
    for (unsigned k = 0; k < sizeof ignored / sizeof *ignored; k++) {
        a.id = ignored[k];
        SAME(launch_ex(&c, f, params, 0), 0);
    }
    for (unsigned k = 0; k < sizeof refused_here / sizeof *refused_here; k++) {
        a.id = refused_here[k];
        SAME(launch_ex(&c, f, params, 0), 801);
    }
    a.id = 99;
    SAME(launch_ex(&c, f, params, 0), 1);
    SAME(cuCtxSynchronize_(), 0);
    cuModuleUnload_(module);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
    open_more();
    SAME(cuStreamCreate_(&streams[0], 0), 0);
    SAME(cuStreamCreate_(&streams[1], 1), 0);
    test_reads();
    test_writes();
    test_who_waits();
    test_chains();
    test_right_chains();
    test_graphs();
    test_host();
    test_long_chain();
    test_many_pages();
    test_same_for_all();
    test_attributes();
    for (int k = 0; k < 2; k++) SAME(cuStreamDestroy_v2_(streams[k]), 0);
    return sim_close();
}
