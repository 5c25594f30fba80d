/* driver.c - the CPU driver's surface: streams that lag, races, events, memory of all kinds, graphs,
 * devices, modules, links, occupancy, failure injection.
 *
 *   driver [library]       or PTXGEN_CUDA_LIBRARY; run from the root of the repository */
#include "../simtest.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MORE(X) \
    X(cuStreamCreateWithPriority, (handle *, unsigned, int)) X(cuEventQuery, (handle)) \
    X(cuMemcpyDtoHAsync_v2, (void *, dptr, size_t, handle)) \
    X(cuMemcpyDtoDAsync_v2, (dptr, dptr, size_t, handle)) \
    X(cuMemsetD32Async, (dptr, unsigned, size_t, handle)) \
    X(cuMemsetD8Async, (dptr, unsigned char, size_t, handle)) \
    X(cuLaunchHostFunc, (handle, void (*)(void *), void *)) \
    X(cuStreamAddCallback, (handle, void (*)(handle, int, void *), void *, unsigned)) \
    X(cuStreamGetCtx, (handle, handle *)) X(cuStreamGetFlags, (handle, unsigned *)) \
    X(cuStreamGetPriority, (handle, int *)) X(cuStreamWaitValue32_v2, (handle, dptr, uint32_t, unsigned)) \
    X(cuStreamWriteValue32_v2, (handle, dptr, uint32_t, unsigned)) \
    X(cuMemAllocPitch_v2, (dptr *, size_t *, size_t, size_t, unsigned)) \
    X(cuMemAllocManaged, (dptr *, size_t, unsigned)) \
    X(cuMemHostRegister_v2, (void *, size_t, unsigned)) X(cuMemHostUnregister, (void *)) \
    X(cuMemHostGetFlags, (unsigned *, void *)) X(cuMemHostGetDevicePointer_v2, (dptr *, void *, unsigned)) \
    X(cuMemAllocAsync, (dptr *, size_t, handle)) X(cuMemFreeAsync, (dptr, handle)) \
    X(cuDeviceGetDefaultMemPool, (handle *, int)) X(cuMemPoolCreate, (handle *, const void *)) \
    X(cuMemPoolDestroy, (handle)) X(cuMemPoolGetAttribute, (handle, int, void *)) \
    X(cuMemAllocFromPoolAsync, (dptr *, size_t, handle, handle)) \
    X(cuPointerGetAttribute, (void *, int, dptr)) \
    X(cuPointerGetAttributes, (unsigned, int *, void **, dptr)) \
    X(cuMemcpy2D_v2, (const void *)) X(cuMemcpy2DAsync_v2, (const void *, handle)) \
    X(cuMemcpy3D_v2, (const void *)) \
    X(cuMemsetD2D8_v2, (dptr, size_t, unsigned char, size_t, size_t)) \
    X(cuMemsetD2D16_v2, (dptr, size_t, unsigned short, size_t, size_t)) \
    X(cuMemsetD2D32_v2, (dptr, size_t, unsigned, size_t, size_t)) \
    X(cuMemcpyPeer, (dptr, handle, dptr, handle, size_t)) X(cuMemAdvise, (dptr, size_t, int, int)) \
    X(cuStreamBeginCapture_v2, (handle, int)) X(cuStreamEndCapture, (handle, handle *)) \
    X(cuStreamIsCapturing, (handle, int *)) \
    X(cuStreamGetCaptureInfo_v2, (handle, int *, uint64_t *, handle *, handle **, size_t *)) \
    X(cuGraphCreate, (handle *, unsigned)) X(cuGraphDestroy, (handle)) X(cuGraphClone, (handle *, handle)) \
    X(cuGraphAddKernelNode_v2, (handle *, handle, handle *, size_t, const void *)) \
    X(cuGraphAddMemsetNode, (handle *, handle, handle *, size_t, const void *, handle)) \
    X(cuGraphAddMemcpyNode, (handle *, handle, handle *, size_t, const void *, handle)) \
    X(cuGraphAddHostNode, (handle *, handle, handle *, size_t, const void *)) \
    X(cuGraphAddEmptyNode, (handle *, handle, handle *, size_t)) \
    X(cuGraphAddChildGraphNode, (handle *, handle, handle *, size_t, handle)) \
    X(cuGraphAddEventRecordNode, (handle *, handle, handle *, size_t, handle)) \
    X(cuGraphAddDependencies, (handle, handle *, handle *, size_t)) \
    X(cuGraphGetNodes, (handle, handle *, size_t *)) \
    X(cuGraphGetEdges, (handle, handle *, handle *, size_t *)) \
    X(cuGraphGetRootNodes, (handle, handle *, size_t *)) X(cuGraphNodeGetType, (handle, int *)) \
    X(cuGraphKernelNodeGetParams_v2, (handle, void *)) \
    X(cuGraphKernelNodeSetParams_v2, (handle, const void *)) \
    X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long)) X(cuGraphExecDestroy, (handle)) \
    X(cuGraphExecKernelNodeSetParams_v2, (handle, handle, const void *)) \
    X(cuGraphExecUpdate_v2, (handle, handle, void *)) X(cuGraphLaunch, (handle, handle)) \
    X(cuGraphUpload, (handle, handle)) X(cuGraphNodeSetEnabled, (handle, handle, unsigned)) \
    X(cuGraphAddMemAllocNode, (handle *, handle, handle *, size_t, void *)) \
    X(cuGraphAddMemFreeNode, (handle *, handle, handle *, size_t, dptr)) \
    X(cuGraphMemAllocNodeGetParams, (handle, void *)) X(cuGraphMemFreeNodeGetParams, (handle, dptr *)) \
    X(cuDeviceGetGraphMemAttribute, (int, int, uint64_t *)) \
    X(cuDeviceSetGraphMemAttribute, (int, int, const uint64_t *)) X(cuDeviceGraphMemTrim, (int)) \
    X(cuGraphMemcpyNodeGetParams, (handle, void *)) \
    X(cuGraphExecChildGraphNodeSetParams, (handle, handle, handle)) \
    X(cuUserObjectCreate, (handle *, void *, void (*)(void *), unsigned, unsigned)) \
    X(cuUserObjectRetain, (handle, unsigned)) X(cuUserObjectRelease, (handle, unsigned)) \
    X(cuGraphRetainUserObject, (handle, handle, unsigned, unsigned)) \
    X(cuGraphReleaseUserObject, (handle, handle, unsigned)) \
    X(cuLibraryGetManaged, (dptr *, size_t *, handle, const char *)) \
    X(cuDeviceGetPCIBusId, (char *, int, int)) X(cuDeviceGetByPCIBusId, (int *, const char *)) \
    X(cuCtxCreate_v4, (handle *, void *, unsigned, int)) X(cuCtxGetLimit, (size_t *, int)) \
    X(cuCtxSetLimit, (int, size_t)) X(cuCtxGetFlags, (unsigned *)) \
    X(cuCtxGetId, (handle, unsigned long long *)) \
    X(cuCtxGetApiVersion, (handle, unsigned *)) X(cuDevicePrimaryCtxSetFlags_v2, (int, unsigned)) \
    X(cuModuleLoad, (handle *, const char *)) X(cuModuleLoadFatBinary, (handle *, const void *)) \
    X(cuModuleGetFunctionCount, (unsigned *, handle)) \
    X(cuModuleEnumerateFunctions, (handle *, unsigned, handle)) \
    X(cuFuncGetModule, (handle *, handle)) X(cuFuncGetName, (const char **, handle)) \
    X(cuFuncGetParamInfo, (handle, size_t, size_t *, size_t *)) \
    X(cuLibraryLoadData, (handle *, const void *, int *, void **, unsigned, int *, void **, unsigned)) \
    X(cuLibraryUnload, (handle)) X(cuLibraryGetKernel, (handle *, handle, const char *)) \
    X(cuLibraryGetModule, (handle *, handle)) \
    X(cuLibraryGetGlobal, (dptr *, size_t *, handle, const char *)) \
    X(cuKernelGetFunction, (handle *, handle)) X(cuKernelGetName, (const char **, handle)) \
    X(cuLinkAddFile_v2, (handle, int, const char *, unsigned, int *, void **)) \
    X(cuOccupancyMaxPotentialBlockSize, (int *, int *, handle, size_t (*)(int), size_t, int)) \
    X(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *, handle, int, int)) \
    X(cuLaunchCooperativeKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, \
                                  handle, void **)) \
    X(cuProfilerStart, (void)) X(cuProfilerStop, (void))
#define X(name, args) static int (*name##_) args;
MORE(X)
#undef X

static int has(const char *kind)
{
    int n = 0;
    size_t length = strlen(kind);
    for (const char *p = findings(); *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : p + strlen(p))
        if (!strncmp(p, kind, length) && p[length] == ':') n++;
    return n;
}
#define CLEAN() CHECK(!report_count(), "nothing is wrong, found: %s", findings())

/* add n to each of the words of p */
static const char adder[] =
    HEAD ".visible .entry add(.param .u64 p, .param .u32 n) {\n" REGS
         "ld.param.u64 d0, [p]; ld.param.u32 r1, [n]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 "
             "d1, d0, d1;\n"
         "ld.global.u32 r2, [d1]; add.u32 r2, r2, r1; st.global.u32 [d1], r2; ret; }\n"
         ".visible .entry twice(.param .u64 p) {\n" REGS
         "ld.param.u64 d0, [p]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n"
         "ld.global.u32 r2, [d1]; shl.b32 r2, r2, 1; st.global.u32 [d1], r2; ret; }\n"
         ".visible .entry wrong(.param .u64 p) { " REGS "mov.u64 d0, 16; st.global.u32 [d0], 1; ret; }\n"
         ".visible .entry parity(.param .u64 p, .param .u32 odd) {\n" REGS
         "ld.param.u64 d0, [p]; ld.param.u32 r1, [odd]; mov.u32 r0, %tid.x; shl.b32 r0, r0, 1; add.u32 "
             "r0, r0, r1;\n"
         "mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1; st.global.u32 [d1], r0; ret; }\n"
         ".visible .entry count(.param .u64 p) {\n" REGS
         "ld.param.u64 d0, [p]; red.global.add.u32 [d0], 1; ret; }\n"
         ".visible .entry empty() { ret; }\n.visible .global .align 4 .u32 gv[3];\n";
static handle module, add, twice, wrong, empty;
enum { N = 32, BYTES = N * 4 };

static int launch_add(dptr p, unsigned n, handle s)
{ void *a[] = { &p, &n }; return cuLaunchKernel_(add, 1, 1, 1, N, 1, 1, 0, s, a, NULL); }
static int launch_twice(dptr p, handle s)
{ void *a[] = { &p }; return cuLaunchKernel_(twice, 1, 1, 1, N, 1, 1, 0, s, a, NULL); }

static uint32_t word(dptr p)
{
    uint32_t v = 0xdeadbeef;
    cuMemcpyDtoH_v2_(&v, p, 4);
    return v;
}

/* --- streams that lag ------------------------------------------------------------------------- */

static void note(void *p) { __atomic_add_fetch((int *)p, 1, __ATOMIC_SEQ_CST); }
static int inside = -1;
static void calls_back(void *p) { (void)p; dptr d; inside = cuMemAlloc_v2_(&d, 4); }
static int callback_status = -1;
static void callback(handle s, int status, void *p) { (void)s; callback_status = status; ++*(int *)p; }

static void test_lag(void)
{
    handle s, t, e;
    dptr d = alloc(BYTES);
    uint32_t *pinned, host[N] = { 0 };
    int count = 0;
    SAME(cuMemHostAlloc_((void **)&pinned, BYTES, 0), 0);
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    SAME(cuEventCreate_(&e, 0), 0);
    /* nothing happens before somebody waits, and everything has happened then */
    memset(pinned, 0, BYTES);
    SAME(cuMemsetD32Async_(d, 5, N, s), 0);
    SAME(launch_add(d, 2, s), 0);
    SAME(cuMemcpyDtoHAsync_v2_(pinned, d, BYTES, s), 0);
    SAME(cuLaunchHostFunc_(s, note, &count), 0);
    SAME(((volatile uint32_t *)pinned)[3], 0);
    SAME(count, 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(((volatile uint32_t *)pinned)[3], 7);
    SAME(count, 1);
    SAME(has("host-race"), 1);                                /* that was a look too early */
    CHECK(strstr(found, "byte 12 of the 128-byte pinned allocation") && strstr(found,
        "cuMemcpyDtoHAsync_v2"), "%s",
          found);
    report_clear();
    /* only as far as the event; the parameters are those of the launch */
    unsigned n = 1;
    void *a[] = { &d, &n };
    SAME(cuLaunchKernel_(add, 1, 1, 1, N, 1, 1, 0, s, a, NULL), 0);
    n = 100;
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuLaunchHostFunc_(s, note, &count), 0);
    SAME(cuEventSynchronize_(e), 0);
    SAME(count, 1);
    SAME(cuEventQuery_(e), 0);
    SAME(cuStreamQuery_(s), 600);
    SAME(cuStreamQuery_(s), 0);
    SAME(count, 2);
    SAME(word(d), 8);
    /* a wait pulls the other stream's work in */
    SAME(launch_add(d, 1, s), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 0);
    SAME(launch_twice(d, t), 0);
    SAME(cuStreamSynchronize_(t), 0);
    SAME(word(d), 18);
    /* polling ends */
    SAME(launch_add(d, 1, t), 0);
    int polls = 0;
    while (cuStreamQuery_(t) == 600 && polls < 100) polls++;
    CHECK(polls >= 1 && polls < 10, "%d polls", polls);
    /* pageable memory: taken at the call; written when the call returns */
    for (int k = 0; k < N; k++) host[k] = 3;
    SAME(cuMemcpyHtoDAsync_v2_(d, host, BYTES, s), 0);
    memset(host, 0, sizeof host);
    SAME(cuMemcpyDtoHAsync_v2_(host, d, BYTES, s), 0);
    SAME(host[7], 3);
    /* host functions may not call the driver */
    SAME(cuLaunchHostFunc_(s, calls_back, NULL), 0);
    SAME(cuStreamAddCallback_(s, callback, &count, 0), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(inside, 800);
    SAME(callback_status, 0);
    SAME(count, 3);
    /* the fastest chip, if wanted */
    set_option("lag", 0);
    SAME(cuLaunchHostFunc_(s, note, &count), 0);
    SAME(count, 4);
    set_option("lag", 2);
    CLEAN();
    cuStreamDestroy_v2_(s);
    cuStreamDestroy_v2_(t);
    cuEventDestroy_v2_(e);
    cuMemFreeHost_(pinned);
    cuMemFree_v2_(d);
}

static void test_default_streams(void)
{
    handle blocking, loose;
    int first = 0, second = 0, third = 0;
    dptr d = alloc(BYTES);
    SAME(cuStreamCreate_(&blocking, 0), 0);
    SAME(cuStreamCreate_(&loose, 1), 0);
    SAME(cuLaunchHostFunc_(blocking, note, &first), 0);
    SAME(cuLaunchHostFunc_(loose, note, &third), 0);
    SAME(cuLaunchHostFunc_(NULL, note, &second), 0);
    SAME(cuStreamSynchronize_(NULL), 0);
    SAME(first, 1);
    SAME(second, 1);
    SAME(third, 0);                                           /* non-blocking: not in that order */
    SAME(cuLaunchHostFunc_(NULL, note, &first), 0);
    SAME(cuStreamSynchronize_(blocking), 0);
    SAME(first, 1);                                           /* nothing of its own follows the legacy work */
    SAME(cuLaunchHostFunc_(blocking, note, &second), 0);
    SAME(cuStreamSynchronize_(blocking), 0);
    SAME(first, 2);
    SAME(second, 2);
    SAME(cuLaunchHostFunc_((handle)2, note, &first), 0);      /* the thread's: blocking as well */
    SAME(cuStreamSynchronize_((handle)1), 0);
    SAME(first, 2);
    SAME(cuStreamSynchronize_((handle)2), 0);
    SAME(first, 3);
    SAME(cuCtxSynchronize_(), 0);
    SAME(third, 1);
    /* a stream may go before its work */
    SAME(cuMemsetD32Async_(d, 9, N, loose), 0);
    SAME(cuStreamDestroy_v2_(loose), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(word(d), 9);
    /* memory is waited for before it goes */
    SAME(cuMemsetD32Async_(d, 1, N, blocking), 0);
    SAME(cuMemFree_v2_(d), 0);
    CLEAN();
    cuStreamDestroy_v2_(blocking);
}

static void test_sticky(void)
{
    handle s;
    dptr d = 0;
    void *a[] = { &d };
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuLaunchKernel_(wrong, 1, 1, 1, 1, 1, 1, 0, s, a, NULL), 0);
    SAME(cuMemAlloc_v2_(&d, 64), 0);                          /* nothing has noticed yet */
    SAME(cuStreamSynchronize_(s), 700);
    SAME(cuMemAlloc_v2_(&d, 64), 700);
    SAME(has("out-of-bounds"), 1);
    report_clear();
    SAME(cuStreamSynchronize_(s), 0);
    SAME(cuMemFree_v2_(d), 0);
    SAME(cuStreamDestroy_v2_(s), 0);
}

static void *late_writer(void *p)
{
    usleep(20000);
    __atomic_store_n((uint32_t *)p, 7, __ATOMIC_SEQ_CST);
    return NULL;
}

static void test_values(void)
{
    handle s, t;
    uint32_t *flag;
    int count = 0;
    SAME(cuMemHostAlloc_((void **)&flag, 64, 0), 0);
    *flag = 0;
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    dptr at = (dptr)(uintptr_t)flag;
    SAME(cuStreamWaitValue32_v2_(s, at, 3, 1), 0);
    SAME(cuLaunchHostFunc_(s, note, &count), 0);
    SAME(cuStreamWriteValue32_v2_(t, at, 3, 0), 0);
    SAME(cuStreamSynchronize_(s), 0);                         /* the other stream writes it */
    SAME(count, 1);
    pthread_t thread;
    SAME(cuStreamWaitValue32_v2_(s, at, 5, 0), 0);
    pthread_create(&thread, NULL, late_writer, flag);
    SAME(cuStreamSynchronize_(s), 0);                         /* the host does */
    pthread_join(thread, NULL);
    SAME(cuStreamWaitValue32_v2_(s, at + 1, 5, 0), 1);
    SAME(cuStreamDestroy_v2_(s), 0);
    SAME(cuStreamDestroy_v2_(t), 0);
    SAME(cuMemFreeHost_(flag), 0);
}

static void test_background(void)
{
    handle s;
    int volatile done = 0;
    set_option("lag", 1);
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuLaunchHostFunc_(s, note, (void *)(uintptr_t)&done), 0);
    for (int k = 0; k < 500 && !__atomic_load_n(&done, __ATOMIC_SEQ_CST); k++) usleep(10000);
    SAME(__atomic_load_n(&done, __ATOMIC_SEQ_CST), 1);        /* a host that only looks at memory is served */
    SAME(cuStreamSynchronize_(s), 0);
    SAME(cuStreamDestroy_v2_(s), 0);
    set_option("lag", 2);
}

/* --- races ------------------------------------------------------------------------------------ */

static void races(bool fault)
{
    const char *const what = fault ? "fault" : "twin";
    handle s, t, e;
    dptr d = alloc(2 * BYTES);
    uint32_t *pinned, host[N];
    SAME(cuMemHostAlloc_((void **)&pinned, BYTES, 0), 0);
    memset(pinned, 0, BYTES);
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    SAME(cuEventCreate_(&e, 2), 0);
    SAME(cuMemsetD32Async_(d, 0, 2 * N, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    report_clear();
    /* two kernels, one word */
    SAME(launch_add(d, 1, s), 0);
    SAME(cuEventRecord_(e, s), 0);
    if (!fault) SAME(cuStreamWaitEvent_(t, e, 0), 0);
    SAME(launch_twice(d, t), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK(has("stream-race") == fault, "kernels, %s: %s", what, findings());
    if (fault)
        CHECK(strstr(found, "kernel 'add'") && strstr(found, "kernel 'twice'") && strstr(found,
            "256-byte allocation"),
              "%s", found);
    report_clear();
    /* two kernels, the halves of an allocation: fine; the same half: not */
    SAME(launch_add(d, 1, s), 0);
    SAME(launch_add(fault ? d : d + BYTES, 1, t), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK((has("stream-race") != 0) == fault, "halves, %s: %s", what, findings());
    report_clear();
    /* every other word: fine, with a map; two counters that only atomics touch: fine */
    handle parity = function(module, "parity");
    for (unsigned odd = 0; odd < 2; odd++) {
        unsigned which = fault ? 0 : odd;
        void *a[] = { &d, &which };
        SAME(cuLaunchKernel_(parity, 1, 1, 1, N, 1, 1, 0, odd ? t : s, a, NULL), 0);
    }
    SAME(cuCtxSynchronize_(), 0);
    CHECK((has("stream-race") != 0) == fault, "every other word, %s: %s", what, findings());
    report_clear();
    handle count = function(module, "count");
    for (unsigned k = 0; k < 2; k++) {
        void *a[] = { &d };
        SAME(k && fault ? launch_add(d, 1, t) : cuLaunchKernel_(count, 1, 1, 1, N, 1, 1, 0, k ? t : s, a,
            NULL), 0);
    }
    SAME(cuCtxSynchronize_(), 0);
    CHECK((has("stream-race") != 0) == fault, "counters, %s: %s", what, findings());
    report_clear();
    /* columns of a matrix */
    struct { size_t x, y; unsigned t; const void *h; dptr d; void *a; size_t p, dx, dy; unsigned dt; void
        *dh; dptr dd;
             void *da; size_t dp, w, height; } m = { 0, 0, 1, pinned, 0, 0, 8, 0, 0, 2, NULL, d, NULL,
                 16, 8, 4 };
    SAME(cuMemcpy2DAsync_v2_(&m, s), 0);
    m.dx = fault ? 4 : 8;
    SAME(cuMemcpy2DAsync_v2_(&m, t), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK(has("stream-race") == fault, "columns, %s: %s", what, findings());
    report_clear();
    /* the host reads what a non-blocking stream writes */
    SAME(launch_add(d, 1, s), 0);
    if (!fault) SAME(cuStreamSynchronize_(s), 0);
    SAME(cuMemcpyDtoH_v2_(host, d, BYTES), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK(has("host-race") == fault, "host read, %s: %s", what, findings());
    report_clear();
    /* a memset before a kernel of a non-blocking stream: asynchronous, and not in its order */
    SAME(cuMemsetD32_v2_(d, 0, N), 0);
    if (!fault) SAME(cuCtxSynchronize_(), 0);
    SAME(launch_add(d, 1, s), 0);
    SAME(cuCtxSynchronize_(), 0);
    CHECK((has("stream-race") != 0) == fault, "memset, %s: %s", what, findings());
    report_clear();
    /* the target of a copy is looked at before it is written; the page beside it is not its */
    uint8_t volatile *pages;
    SAME(cuMemHostAlloc_((void **)(uintptr_t)&pages, 3 * 4096, 0), 0);
    dptr big = alloc(3 * 4096);
    SAME(cuMemsetD32Async_(big, 0x01010101, 3 * 1024, s), 0);
    SAME(cuMemcpyDtoHAsync_v2_((void *)(uintptr_t)(pages + 4096), big, 4096, s), 0);
    if (!fault) SAME(cuStreamSynchronize_(s), 0);
    SAME(pages[0] + pages[3 * 4096 - 1], 0);
    SAME(pages[4096 + 100], !fault);
    SAME(pages[4096 + 101], !fault);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(pages[4096 + 100], 1);
    CHECK(has("host-race") == fault, "target, %s: %s", what, findings());
    report_clear();
    SAME(cuMemFreeHost_((void *)(uintptr_t)pages), 0);
    SAME(cuMemFree_v2_(big), 0);
    /* the source of a copy is changed before it is read */
    SAME(cuMemcpyHtoDAsync_v2_(d, pinned, BYTES, s), 0);
    if (!fault) SAME(cuStreamSynchronize_(s), 0);
    pinned[5] += 1;
    SAME(cuStreamSynchronize_(s), 0);
    CHECK(has("host-race") == fault, "source, %s: %s", what, findings());
    report_clear();
    /* by a host function in the stream: fine */
    SAME(cuMemcpyDtoHAsync_v2_(pinned, d + BYTES, BYTES, s), 0);
    SAME(cuMemcpyHtoDAsync_v2_(d, pinned, BYTES, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    CLEAN();
    /* freed while a stream may use it */
    dptr x = alloc(BYTES);
    SAME(cuMemsetD32Async_(x, 1, N, s), 0);
    if (!fault) SAME(cuStreamSynchronize_(s), 0);
    SAME(cuMemFree_v2_(x), 0);
    CHECK(has("host-race") == fault, "free, %s: %s", what, findings());
    report_clear();
    /* in stream order, and out of it */
    SAME(cuMemAllocAsync_(&x, BYTES, s), 0);
    SAME(cuMemsetD32Async_(x, 1, N, fault ? t : s), 0);
    SAME(cuMemFreeAsync_(x, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    int last = cuCtxSynchronize_();
    SAME(last, fault ? 700 : 0);
    CHECK(has(fault ? "use-after-free" : "stream-race") == fault, "pool, %s: %s", what, findings());
    report_clear();
    cuStreamDestroy_v2_(s);
    cuStreamDestroy_v2_(t);
    cuEventDestroy_v2_(e);
    cuMemFreeHost_(pinned);
    cuMemFree_v2_(d);
    CLEAN();
}

static void test_races(void)
{
    races(true);
    races(false);
    for (int threads = 1; threads <= 4; threads += 3) {       /* found by any number of workers */
        set_option("threads", threads);
        races(true);
    }
    set_option("threads", 0);
    set_option("stream-races", 0);                            /* and switched off */
    handle s, t;
    dptr d = alloc(BYTES);
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    SAME(cuMemsetD32Async_(d, 1, N, s), 0);
    SAME(cuMemsetD32Async_(d, 2, N, t), 0);
    SAME(cuCtxSynchronize_(), 0);
    CLEAN();
    set_option("stream-races", 1);
    cuStreamDestroy_v2_(s);
    cuStreamDestroy_v2_(t);
    cuMemFree_v2_(d);
}

/* --- handles, leaks --------------------------------------------------------------------------- */

static void test_handles(void)
{
    handle s, e, m, f, g, x;
    report_clear();
    SAME(cuStreamCreate_(&s, 0), 0);
    SAME(cuStreamDestroy_v2_(s), 0);
    for (int k = 0; k < 50; k++) {                            /* nothing else takes the handle over */
        SAME(cuStreamCreate_(&x, 0), 0);
        CHECK(x != s, "a handle came back");
        cuStreamDestroy_v2_(x);
    }
    SAME(cuStreamSynchronize_(s), 400);
    SAME(has("stale-handle"), 1);
    CHECK(strstr(found, "cuStreamSynchronize") && strstr(found, "cuStreamCreate"), "%s", found);
    report_clear();
    SAME(cuEventCreate_(&e, 0), 0);
    SAME(cuEventDestroy_v2_(e), 0);
    SAME(cuEventRecord_(e, NULL), 400);
    m = load(adder);
    f = function(m, "add");
    SAME(cuModuleUnload_(m), 0);
    m = load(adder);
    dptr d = 0;
    void *a[] = { &d, &d };
    SAME(cuLaunchKernel_(f, 1, 1, 1, 1, 1, 1, 0, NULL, a, NULL), 400);
    SAME(cuModuleUnload_(m), 0);
    SAME(cuModuleUnload_(m), 400);
    SAME(cuGraphCreate_(&g, 0), 0);
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuGraphDestroy_(g), 400);
    SAME(has("stale-handle"), 4);
    report_clear();
    set_option("stale-handles", 0);
    SAME(cuGraphDestroy_(g), 400);
    CLEAN();
    set_option("stale-handles", 1);
}

static void test_leaks(void)
{
    for (int fault = 1; fault >= 0; fault--) {
        handle c, s, e, m, before;
        dptr d;
        void *p;
        SAME(cuCtxGetCurrent_(&before), 0);
        SAME(cuCtxCreate_v4_(&c, NULL, 0, 0), 0);
        SAME(cuMemAlloc_v2_(&d, 1234), 0);
        SAME(cuMemHostAlloc_(&p, 99, 0), 0);
        SAME(cuStreamCreate_(&s, 0), 0);
        SAME(cuEventCreate_(&e, 0), 0);
        m = load(adder);
        if (!fault) {
            SAME(cuMemFree_v2_(d), 0);
            SAME(cuMemFreeHost_(p), 0);
            SAME(cuStreamDestroy_v2_(s), 0);
            SAME(cuEventDestroy_v2_(e), 0);
            SAME(cuModuleUnload_(m), 0);
        }
        SAME(cuCtxDestroy_v2_(c), 0);
        SAME(has("leak"), fault ? 5 : 0);
        if (fault) CHECK(strstr(found, "1234 bytes") && strstr(found, "a module"), "%s", found);
        report_clear();
        handle now;
        SAME(cuCtxGetCurrent_(&now), 0);
        CHECK(now == before, "the context below is current again");
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static void test_memory_kinds(void)
{
    size_t pitch, bytes;
    dptr d, base;
    unsigned flags;
    uint8_t host[6][10], back[6][10];
    SAME(cuMemAllocPitch_v2_(&d, &pitch, 10, 6, 4), 0);
    SAME(pitch, 512);
    SAME(cuMemAllocPitch_v2_(&base, &pitch, 10, 6, 5), 1);
    for (int k = 0; k < 60; k++) host[k / 10][k % 10] = (uint8_t)k;
    struct { size_t x, y; unsigned t; const void *h; dptr d; void *a; size_t p, dx, dy; unsigned dt; void
        *dh; dptr dd;
             void *da; size_t dp, w, height; }
        to = { 0, 0, 1, host, 0, NULL, 10, 0, 0, 2, NULL, d, NULL, 512, 10, 6 },
        from = { 2, 1, 2, NULL, d, NULL, 512, 0, 0, 1, back, 0, NULL, 10, 8, 5 };
    SAME(cuMemcpy2D_v2_(&to), 0);
    SAME(cuMemcpy2D_v2_(&from), 0);
    SAME(back[0][0], 12);
    SAME(back[4][7], 59);
    SAME(cuMemsetD2D8_v2_(d, 512, 9, 4, 6), 0);
    SAME(cuMemsetD2D16_v2_(d + 4, 512, 0x0102, 1, 6), 0);
    SAME(cuMemsetD2D32_v2_(d + 8, 512, 0x01020304, 1, 6), 0);
    uint8_t row[12];
    SAME(cuMemcpyDtoH_v2_(row, d + 512 * 5, 12), 0);
    CHECK(row[3] == 9 && row[4] == 2 && row[5] == 1 && row[6] == 56 && row[8] == 4 && row[11] == 1,
        "memset2D");
    to.dp = 4;
    SAME(cuMemcpy2D_v2_(&to), 1);                             /* a pitch below the width */
    to.dp = 512; to.height = 100;
    SAME(cuMemcpy2D_v2_(&to), 1);                             /* beyond the allocation */
    struct { size_t x, y, z, lod; unsigned t; const void *h; dptr d; void *a, *r; size_t p, hh, dx, dy,
        dz, dl; unsigned dt;
             void *dh; dptr dd; void *da, *dr; size_t dp, dhh, w, height, depth; }
        cube = { 0, 0, 0, 0, 1, host, 0, NULL, NULL, 5, 2, 0, 0, 0, 0, 2, NULL, d, NULL, NULL, 8, 4, 5,
            2, 3 };
    SAME(cuMemcpy3D_v2_(&cube), 0);
    SAME(cuMemcpyDtoH_v2_(row, d + 8 * 4 * 2 + 8, 5), 0);
    SAME(row[0], 25);
    SAME(cuMemcpyPeer_(d, NULL, d + 512, NULL, 4), 0);
    SAME(cuMemFree_v2_(d), 0);
    /* registered, pinned, managed */
    uint32_t *own = aligned_alloc(4096, 4096);
    memset(own, 0, 4096);
    SAME(cuMemHostRegister_v2_(own, 4096, 0), 0);
    SAME(cuMemHostRegister_v2_(own, 4096, 0), 712);
    SAME(cuMemHostGetDevicePointer_v2_(&base, own, 0), 0);
    SAME(launch_add(base, 4, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(own[31], 4);
    SAME(cuMemHostUnregister_(own), 0);
    SAME(cuMemHostUnregister_(own), 713);
    free(own);
    void *p;
    SAME(cuMemHostAlloc_(&p, 64, 4), 0);
    SAME(cuMemHostGetFlags_(&flags, p), 0);
    SAME(flags & 4, 4);
    int kind = 0;
    SAME(cuPointerGetAttribute_(&kind, 2, (dptr)(uintptr_t)p), 0);
    SAME(kind, 1);
    SAME(cuMemFreeHost_(p), 0);
    SAME(cuMemAllocManaged_(&d, BYTES, 1), 0);
    SAME(cuMemAllocManaged_(&base, BYTES, 7), 1);
    memset((void *)(uintptr_t)d, 0, BYTES);
    SAME(launch_add(d, 6, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(*(uint32_t *)(uintptr_t)d, 6);
    SAME(cuMemAdvise_(d, BYTES, 3, 0), 0);
    bool managed = false;
    void *out[] = { &managed, &base, &bytes };
    int attributes[] = { 8, 11, 12 };
    SAME(cuPointerGetAttributes_(3, attributes, out, d + 4), 0);
    CHECK(managed && base == d && bytes == BYTES, "attributes of managed memory");
    SAME(cuMemFree_v2_(d), 0);
    SAME(cuPointerGetAttribute_(&kind, 2, d), 1);
    /* pools */
    handle pool;
    uint64_t used;
    struct { int type, handles, where, id; void *w; size_t most; unsigned char zero[54]; } wanted = { 1,
        0, 1, 0, NULL, 0, { 0 } };
    SAME(cuDeviceGetDefaultMemPool_(&pool, 0), 0);
    SAME(cuMemPoolDestroy_(pool), 1);
    SAME(cuMemPoolCreate_(&pool, &wanted), 0);
    SAME(cuMemAllocFromPoolAsync_(&d, BYTES, pool, NULL), 0);
    SAME(cuMemPoolGetAttribute_(pool, 7, &used), 0);
    SAME(used, BYTES);
    SAME(cuMemFreeAsync_(d, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(cuMemPoolGetAttribute_(pool, 7, &used), 0);
    SAME(used, 0);
    SAME(cuMemPoolDestroy_(pool), 0);
    CLEAN();
    d = alloc(8);
    SAME(cuMemFree_v2_(d), 0);
    SAME(cuMemFree_v2_(d), 1);                                /* twice */
    SAME(has("use-after-free"), 1);
    report_clear();
}

/* --- graphs ----------------------------------------------------------------------------------- */

typedef struct kernel_node { handle f; unsigned grid[3], block[3], shared; void **params, **extra; handle
    k, c; } kernel_node;

static void test_capture(void)
{
    handle s, t, e, g = NULL, x, nodes[16], from[16], to[16];
    size_t count = 16, edges = 16;
    int status, type;
    dptr d = alloc(BYTES), q;
    SAME(cuStreamCreate_(&s, 0), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    SAME(cuEventCreate_(&e, 2), 0);
    SAME(cuMemsetD32_v2_(d, 0, N), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuStreamIsCapturing_(s, &status), 0);
    SAME(status, 1);
    SAME(launch_add(d, 3, s), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 0);                     /* the capture takes the other stream in */
    SAME(launch_twice(d, t), 0);
    SAME(cuEventRecord_(e, t), 0);
    SAME(cuEventQuery_(e), 907);
    SAME(cuStreamWaitEvent_(s, e, 0), 0);
    SAME(launch_add(d, 1, s), 0);
    SAME(cuStreamEndCapture_(s, &g), 0);
    SAME(cuStreamIsCapturing_(t, &status), 0);
    SAME(status, 0);
    SAME(word(d), 0);                                         /* nothing ran */
    SAME(cuGraphGetNodes_(g, nodes, &count), 0);
    SAME(count, 3);
    SAME(cuGraphGetEdges_(g, from, to, &edges), 0);
    SAME(edges, 3);
    SAME(cuGraphNodeGetType_(nodes[1], &type), 0);
    SAME(type, 0);
    SAME(cuGraphInstantiateWithFlags_(&x, g, 0), 0);
    SAME(cuGraphUpload_(x, s), 0);
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(word(d), 21);                                        /* ((0 + 3) * 2 + 1 + 3) * 2 + 1 */
    /* other parameters in the exec; the graph keeps its own */
    unsigned five = 5;
    void *a[] = { &d, &five };
    kernel_node k = { add, { 1, 1, 1 }, { N, 1, 1 }, 0, a, NULL, NULL, NULL };
    SAME(cuGraphExecKernelNodeSetParams_v2_(x, nodes[0], &k), 0);
    SAME(cuMemsetD32Async_(d, 0, N, s), 0);
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(word(d), 11);
    kernel_node have;
    SAME(cuGraphKernelNodeGetParams_v2_(nodes[0], &have), 0);
    SAME(*(unsigned *)have.params[1], 3);
    struct { int result; handle node, from; } info;
    SAME(cuGraphExecUpdate_v2_(x, g, &info), 0);
    SAME(cuMemsetD32Async_(d, 0, N, s), 0);
    SAME(cuGraphNodeSetEnabled_(x, nodes[1], 0), 0);
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(word(d), 4);
    handle other;
    SAME(cuGraphCreate_(&other, 0), 0);
    SAME(cuGraphExecUpdate_v2_(x, other, &info), 910);
    SAME(info.result, 2);
    SAME(cuGraphDestroy_(other), 0);
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuGraphLaunch_(x, s), 0);                            /* the exec lives on */
    SAME(cuStreamSynchronize_(s), 0);
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphLaunch_(x, s), 400);
    report_clear();
    /* what a capture does not allow */
    SAME(cuStreamBeginCapture_v2_(NULL, 0), 900);
    SAME(cuStreamEndCapture_(s, &g), 401);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuStreamSynchronize_(s), 900);
    SAME(launch_add(d, 3, s), 901);
    SAME(cuStreamEndCapture_(s, &g), 901);
    CHECK(!g, "no graph");
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuMemAlloc_v2_(&q, 4), 900);
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuStreamBeginCapture_v2_(s, 2), 0);                  /* relaxed */
    SAME(cuMemAlloc_v2_(&q, 4), 0);
    SAME(launch_add(d, 3, NULL), 906);                        /* the legacy stream would wait for it */
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuMemcpyHtoDAsync_v2_(q, &g, 4, NULL), 906);         /* refused with the bytes it has taken */
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuMemFree_v2_(q), 0);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 0);
    SAME(launch_add(d, 3, t), 0);
    SAME(cuStreamEndCapture_(t, &g), 903);
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 0);
    SAME(launch_add(d, 3, t), 0);
    SAME(cuStreamEndCapture_(s, &g), 904);                    /* t has not come back */
    SAME(cuEventRecord_(e, t), 0);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuStreamWaitEvent_(s, e, 0), 905);
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuStreamBeginCapture_v2_(t, 0), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 902);
    SAME(cuStreamEndCapture_(s, &g), 901);
    SAME(cuStreamEndCapture_(t, &g), 901);
    CLEAN();
    cuStreamDestroy_v2_(s);
    cuStreamDestroy_v2_(t);
    cuEventDestroy_v2_(e);
    cuMemFree_v2_(d);
}

/* Entry points that keep what they are given. */
static void test_kept(void)
{
    int (*set_stream)(handle, int, const void *) = NULL, (*get_stream)(handle, int, void *) = NULL,
        (*copy_stream)(handle, handle) = NULL, (*set_node)(handle, int, const void *) = NULL,
        (*get_node)(handle, int, void *) = NULL, (*dot)(handle, const char *, unsigned) = NULL,
        (*range)(void *, size_t, int, dptr, size_t) = NULL;
    *(void **)&set_stream = symbol(sim_library, "cuStreamSetAttribute");
    *(void **)&get_stream = symbol(sim_library, "cuStreamGetAttribute");
    *(void **)&copy_stream = symbol(sim_library, "cuStreamCopyAttributes");
    *(void **)&set_node = symbol(sim_library, "cuGraphKernelNodeSetAttribute");
    *(void **)&get_node = symbol(sim_library, "cuGraphKernelNodeGetAttribute");
    *(void **)&dot = symbol(sim_library, "cuGraphDebugDotPrint");
    *(void **)&range = symbol(sim_library, "cuMemRangeGetAttribute");
    handle s, t, g, node;
    int in[16] = { 0 }, out[16] = { 7, 7 };
    unsigned n = 2;
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuStreamCreate_(&t, 1), 0);
    in[0] = -3;
    SAME(set_stream(s, 8, in), 0);                            /* priority */
    in[0] = -9;
    SAME(set_stream(s, 8, in), 1);
    SAME(set_stream(s, 77, in), 1);
    in[0] = 2;
    SAME(set_stream(s, 3, in), 0);                            /* how to wait */
    SAME(copy_stream(t, s), 0);
    SAME(get_stream(t, 8, out), 0);
    SAME(out[0], -3);
    SAME(get_stream(t, 3, out), 0);
    SAME(out[0], 2);
    SAME(cuStreamDestroy_v2_(s), 0);
    SAME(get_stream(s, 3, out), 400);
    report_clear();
    dptr d = alloc(BYTES), managed = 0;
    void *args[] = { &d, &n };
    kernel_node twice_node = { twice, { 1, 1, 1 }, { N, 1, 1 }, 0, args, NULL, NULL, NULL };
    SAME(cuGraphCreate_(&g, 0), 0);
    SAME(cuGraphAddKernelNode_v2_(&node, g, NULL, 0, &twice_node), 0);
    in[0] = -1;
    SAME(set_node(node, 8, in), 0);
    SAME(get_node(node, 8, out), 0);
    SAME(out[0], -1);
    SAME(get_node(node, 2, out), 0);
    SAME(out[0], 0);
    SAME(set_node(g, 8, in), 1);
    char path[] = "/tmp/ptxsim_driver_XXXXXX";
    int f = mkstemp(path);
    if (f >= 0) {
        close(f);
        SAME(dot(g, path, 0), 0);
        char *text = read_file(path);
        CHECK(text && strstr(text, "digraph") && strstr(text, "kernel twice"), "the picture: %s", text);
        free(text);
        unlink(path);
    }
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuMemAllocManaged_(&managed, BYTES, 1), 0);
    SAME(range(out, 4, 1, managed, BYTES), 0);
    SAME(out[0], 0);
    SAME(range(out, 8, 3, managed, BYTES), 0);
    SAME(out[1], -2);
    SAME(range(out, 4, 1, d, BYTES), 1);                      /* memory of another kind */
    SAME(cuMemFree_v2_(managed), 0);
    SAME(cuMemFree_v2_(d), 0);
    SAME(cuStreamDestroy_v2_(t), 0);
    report_clear();
}

static void test_graph_nodes(void)
{
    handle g, clone, child, x, a, b, h, set, all, e;
    dptr d = alloc(BYTES);
    int count = 0;
    unsigned n = 2;
    void *args[] = { &d, &n };
    kernel_node plus = { add, { 1, 1, 1 }, { N, 1, 1 }, 0, args, NULL, NULL, NULL },
                times = { twice, { 1, 1, 1 }, { N, 1, 1 }, 0, args, NULL, NULL, NULL };
    struct { dptr to; size_t pitch; unsigned value, bytes; size_t width, height; } fill = { d, 0, 1, 4,
        N, 1 };
    struct { void (*call)(void *); void *user; } host = { note, &count };
    SAME(cuEventCreate_(&e, 0), 0);
    SAME(cuGraphCreate_(&g, 0), 0);
    SAME(cuGraphAddMemsetNode_(&set, g, NULL, 0, &fill, NULL), 0);
    SAME(cuGraphAddKernelNode_v2_(&a, g, &set, 1, &plus), 0);
    SAME(cuGraphAddKernelNode_v2_(&b, g, &set, 1, &times), 0);
    SAME(cuGraphAddDependencies_(g, &b, &a, 1), 0);           /* first twice, then add */
    SAME(cuGraphAddDependencies_(g, &a, &b, 1), 1);           /* a circle */
    SAME(cuGraphAddHostNode_(&h, g, &a, 1, &host), 0);
    SAME(cuGraphAddEventRecordNode_(&all, g, &h, 1, e), 0);
    SAME(cuGraphAddEmptyNode_(&all, g, &h, 1), 0);
    SAME(cuGraphClone_(&clone, g), 0);
    SAME(cuGraphCreate_(&child, 0), 0);
    SAME(cuGraphAddChildGraphNode_(&x, child, NULL, 0, clone), 0);
    SAME(cuGraphAddKernelNode_v2_(&b, child, &x, 1, &times), 0);
    SAME(cuGraphAddKernelNode_v2_(&b, child, &a, 1, &times), 1);       /* a node of another graph */
    SAME(cuGraphInstantiateWithFlags_(&x, child, 0), 0);
    SAME(cuGraphLaunch_(x, NULL), 0);
    SAME(cuEventSynchronize_(e), 0);
    SAME(count, 1);
    SAME(word(d), 8);                                         /* (1 * 2 + 2) * 2 */
    size_t roots = 0;
    SAME(cuGraphGetRootNodes_(g, NULL, &roots), 0);
    SAME(roots, 1);
    /* a module that is gone */
    handle m = load(adder);
    plus.f = function(m, "add");
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphKernelNodeSetParams_v2_(a, &plus), 0);
    SAME(cuGraphInstantiateWithFlags_(&x, g, 0), 0);
    SAME(cuModuleUnload_(m), 0);
    SAME(cuGraphLaunch_(x, NULL), 400);
    SAME(has("stale-handle"), 1);
    report_clear();
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuGraphDestroy_(clone), 0);
    SAME(cuGraphDestroy_(child), 0);
    cuEventDestroy_v2_(e);
    cuMemFree_v2_(d);
}

typedef struct alloc_params {
    int type, handles, where, device;
    char rest[80];
    size_t access_count, size;
    dptr address;
} alloc_params;

/* Memory that comes and goes with a graph's launches, or stays with the caller. */
static void test_graph_memory(void)
{
    handle g, x, s, alloc_node, set, node, free_node;
    alloc_params wish = { 1, 0, 1, 0, { 0 }, 0, BYTES, 0 }, back;
    uint32_t out[N];
    uint64_t used = 9, zero = 0;
    dptr p = 0, q = 0;
    unsigned n = 3;
    SAME(cuStreamCreate_(&s, 1), 0);
    SAME(cuGraphCreate_(&g, 0), 0);
    SAME(cuGraphAddMemAllocNode_(&alloc_node, g, NULL, 0, &wish), 0);
    p = wish.address;
    SAME(cuGraphMemAllocNodeGetParams_(alloc_node, &back), 0);
    CHECK(p && back.address == p && back.size == BYTES, "the node tells what it allocates");
    struct { dptr to; size_t pitch; unsigned value, bytes; size_t width, height; } fill = { p, 0, 4, 4, N, 1 };
    SAME(cuGraphAddMemsetNode_(&set, g, &alloc_node, 1, &fill, NULL), 0);
    void *args[] = { &p, &n };
    kernel_node plus = { add, { 1, 1, 1 }, { N, 1, 1 }, 0, args, NULL, NULL, NULL };
    SAME(cuGraphAddKernelNode_v2_(&node, g, &set, 1, &plus), 0);
    SAME(cuGraphAddMemFreeNode_(&free_node, g, &node, 1, 16), 1);      /* no memory of a graph */
    SAME(cuGraphAddMemFreeNode_(&free_node, g, &node, 1, p), 0);
    SAME(cuGraphMemFreeNodeGetParams_(free_node, &q), 0);
    SAME(q, p);
    SAME(cuGraphInstantiateWithFlags_(&x, g, 0), 0);
    for (int round = 0; round < 2; round++) SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(cuDeviceGetGraphMemAttribute_(0, 0, &used), 0);
    SAME(used, 0);
    SAME(cuDeviceGetGraphMemAttribute_(0, 1, &used), 0);
    SAME(used, BYTES);
    SAME(cuDeviceSetGraphMemAttribute_(0, 1, &zero), 0);
    SAME(cuDeviceGetGraphMemAttribute_(0, 1, &used), 0);
    SAME(used, 0);
    SAME(cuDeviceGraphMemTrim_(0), 0);
    CLEAN();
    SAME(launch_add(p, 1, s), 0);                             /* the memory is gone */
    SAME(cuStreamSynchronize_(s), 700);
    SAME(has("use-after-free"), 1);
    report_clear();
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphDestroy_(g), 0);
    /* captured, and left to the caller; the destroyed stream has come back */
    handle t, e;
    SAME(cuStreamCreate_(&t, 1), 0);
    SAME(cuEventCreate_(&e, 2), 0);
    SAME(cuStreamBeginCapture_v2_(s, 0), 0);
    SAME(cuMemAllocAsync_(&p, BYTES, s), 0);
    SAME(cuEventRecord_(e, s), 0);
    SAME(cuStreamWaitEvent_(t, e, 0), 0);
    SAME(cuMemsetD32Async_(p, 2, N, t), 0);
    SAME(cuEventRecord_(e, t), 0);
    SAME(cuStreamWaitEvent_(s, e, 0), 0);
    SAME(cuStreamDestroy_v2_(t), 0);
    SAME(launch_add(p, n, s), 0);
    SAME(cuStreamEndCapture_(s, &g), 0);
    SAME(cuGraphInstantiateWithFlags_(&x, g, 0), 0);
    SAME(cuMemFreeAsync_(p, s), 1);                           /* it is not there yet */
    report_clear();
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuGraphLaunch_(x, s), 1);                            /* it is there */
    SAME(cuMemcpyDtoHAsync_v2_(out, p, BYTES, s), 0);
    SAME(out[N - 1], 5);
    SAME(cuMemFreeAsync_(p, s), 0);
    SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuMemFree_v2_(p), 0);
    SAME(cuMemFree_v2_(p), 1);
    report_clear();
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphInstantiateWithFlags_(&x, g, 1), 0);          /* what is left is freed at the next launch */
    for (int round = 0; round < 3; round++) SAME(cuGraphLaunch_(x, s), 0);
    SAME(cuMemFreeAsync_(p, s), 0);
    SAME(cuStreamSynchronize_(s), 0);
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuEventDestroy_v2_(e), 0);
    SAME(cuStreamDestroy_v2_(s), 0);
    CLEAN();
}

static void test_graph_objects(void)
{
    handle g, clone, inner, child, x, o;
    int destroyed = 0;
    dptr d = alloc(BYTES);
    struct { size_t at[4]; unsigned type, pad; const void *host; dptr device; void *array, *more; size_t pitch, height;
             size_t to[4]; unsigned to_type, to_pad; void *to_host; dptr to_device; void *to_array, *to_more;
             size_t to_pitch, to_height, width, rows, depth; } copy, back;
    uint32_t out[N];
    SAME(cuUserObjectCreate_(&o, &destroyed, note, 1, 0), 1);          /* must say that destroying waits for nobody */
    SAME(cuUserObjectCreate_(&o, &destroyed, note, 1, 1), 0);
    SAME(cuUserObjectRetain_(o, 2), 0);
    SAME(cuUserObjectRelease_(o, 4), 1);
    SAME(cuUserObjectRelease_(o, 2), 0);
    SAME(cuGraphCreate_(&g, 0), 0);
    SAME(cuGraphRetainUserObject_(g, o, 1, 1), 0);            /* the caller's reference moves */
    SAME(cuGraphRetainUserObject_(g, o, 1, 0), 0);
    SAME(cuGraphReleaseUserObject_(g, o, 3), 1);
    SAME(cuGraphReleaseUserObject_(g, o, 1), 0);
    memset(&copy, 0, sizeof copy);
    copy.type = 2, copy.device = d, copy.to_type = 1, copy.to_host = out;
    copy.width = 8, copy.rows = 4, copy.depth = 1, copy.pitch = 16, copy.to_pitch = 8;
    SAME(cuGraphAddMemcpyNode_(&inner, g, NULL, 0, &copy, NULL), 0);
    SAME(cuGraphMemcpyNodeGetParams_(inner, &back), 0);
    CHECK(back.type == 2 && back.device == d && back.to_type == 1 && back.to_host == out && back.width == 8
              && back.rows == 4 && back.depth == 1 && back.pitch == 16 && back.to_pitch == 8,
          "a copy comes back as it was given");
    SAME(cuGraphClone_(&clone, g), 0);
    SAME(cuGraphCreate_(&child, 0), 0);
    SAME(cuGraphAddChildGraphNode_(&inner, child, NULL, 0, g), 0);
    SAME(cuGraphInstantiateWithFlags_(&x, child, 0), 0);
    SAME(cuGraphExecChildGraphNodeSetParams_(x, inner, clone), 0);
    SAME(cuGraphExecChildGraphNodeSetParams_(x, inner, child), 910);
    SAME(cuGraphDestroy_(g), 0);
    SAME(cuGraphDestroy_(clone), 0);
    SAME(cuGraphDestroy_(child), 0);
    SAME(destroyed, 0);                                       /* the exec needs it */
    SAME(cuGraphExecDestroy_(x), 0);
    SAME(destroyed, 1);
    SAME(cuUserObjectRetain_(o, 1), 1);
    report_clear();
    cuMemFree_v2_(d);
}

/* A managed variable has an address that the host may follow. */
static void test_managed(void)
{
    static const char text[] = HEAD ".visible .global .attribute(.managed) .align 4 .u32 both = 5;\n"
                                    ".visible .global .align 4 .u32 own = 6;\n"
                                    ".visible .entry more() { " REGS "ld.global.u32 r0, [both];\n"
                                    "ld.global.u32 r1, [own]; add.u32 r0, r0, r1; st.global.u32 [both], r0; ret; }\n";
    handle l, k;
    dptr p = 0;
    size_t size = 0;
    SAME(cuLibraryLoadData_(&l, text, NULL, NULL, 0, NULL, NULL, 0), 0);
    SAME(cuLibraryGetManaged_(&p, &size, l, "own"), 500);
    SAME(cuLibraryGetManaged_(&p, &size, l, "both"), 0);
    SAME(size, 4);
    SAME(*(uint32_t *)(uintptr_t)p, 5);
    *(uint32_t *)(uintptr_t)p = 7;
    SAME(cuLibraryGetKernel_(&k, l, "more"), 0);
    SAME(cuLaunchKernel_(k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    SAME(cuCtxSynchronize_(), 0);
    SAME(*(uint32_t *)(uintptr_t)p, 13);
    SAME(cuMemFree_v2_(p), 1);
    SAME(cuLibraryUnload_(l), 0);
    CLEAN();
}

/* --- modules, libraries, links ---------------------------------------------------------------- */

static void test_modules(void)
{
    handle m, f, lib, k, list[8];
    unsigned count;
    const char *name;
    size_t offset, size;
    char info[2000] = "", errors[2000] = "";
    int options[] = { 3, 4, 5, 6, 12, 2, 7, 9 };
    void *values[] = { info, (void *)sizeof info, errors, (void *)sizeof errors, (void *)1, NULL, (void
        *)3, (void *)80 };
    SAME(cuModuleLoadDataEx_(&m, adder, 8, options, values), 0);
    CHECK(strstr(info, "ptxas info    : Compiling entry function 'add' for 'sm_90'"), "%s", info);
    float ms;
    memcpy(&ms, &values[5], 4);
    CHECK(ms > 0 && ms < 60000, "wall time %g", ms);
    SAME((uintptr_t)values[1], strlen(info) + 1);
    SAME((uintptr_t)values[3], 0);
    options[0] = 99;
    SAME(cuModuleLoadDataEx_(&f, adder, 1, options, values), 1);
    options[0] = 7;
    values[0] = (void *)9;                                    /* an optimisation level that is none */
    SAME(cuModuleLoadDataEx_(&f, adder, 1, options, values), 1);
    options[0] = 9;
    values[0] = (void *)100;                                  /* a later chip */
    SAME(cuModuleLoadDataEx_(&f, adder, 1, options, values), 209);
    uint32_t fat[16] = { 0xba55ed50u };
    SAME(cuModuleLoadFatBinary_(&f, fat), 200);
    SAME(cuModuleLoad_(&f, "build/no-such-file.ptx"), 301);
    SAME(cuModuleGetFunctionCount_(&count, m), 0);
    SAME(count, 6);
    SAME(cuModuleEnumerateFunctions_(list, 8, m), 0);
    SAME(cuFuncGetName_(&name, list[0]), 0);
    CHECK(!strcmp(name, "add"), "%s", name);
    SAME(cuFuncGetModule_(&k, list[0]), 0);
    CHECK(k == m, "the function's module");
    SAME(cuFuncGetParamInfo_(list[0], 1, &offset, &size), 0);
    SAME(offset * 100 + size, 804);
    SAME(cuFuncGetParamInfo_(list[0], 2, &offset, &size), 1);
    SAME(cuModuleUnload_(m), 0);
    /* libraries */
    SAME(cuLibraryLoadData_(&lib, adder, NULL, NULL, 0, NULL, NULL, 0), 0);
    SAME(cuLibraryGetKernel_(&k, lib, "none"), 500);
    SAME(cuLibraryGetKernel_(&k, lib, "add"), 0);
    SAME(cuKernelGetName_(&name, k), 0);
    CHECK(!strcmp(name, "add"), "%s", name);
    SAME(cuKernelGetFunction_(&f, k), 0);
    dptr d = alloc(BYTES), gv;
    unsigned n = 3;
    void *a[] = { &d, &n };
    SAME(cuMemsetD32_v2_(d, 1, N), 0);
    SAME(cuLaunchKernel_(f, 1, 1, 1, N, 1, 1, 0, NULL, a, NULL), 0);
    SAME(cuLaunchKernel_(k, 1, 1, 1, N, 1, 1, 0, NULL, a, NULL), 0);        /* a kernel is as good */
    SAME(word(d), 7);
    SAME(cuLibraryGetGlobal_(&gv, &size, lib, "gv"), 0);
    SAME(size, 12);
    SAME(cuLibraryGetModule_(&m, lib), 0);
    SAME(cuModuleUnload_(m), 400);                            /* it belongs to the library */
    SAME(cuLibraryUnload_(lib), 0);
    SAME(cuLaunchKernel_(k, 1, 1, 1, N, 1, 1, 0, NULL, a, NULL), 400);
    SAME(cuMemFree_v2_(d), 0);
    report_clear();
}

static int linked(const char *const *inputs, int count, handle *out, char *log)
{
    handle link;
    void *image;
    size_t size;
    int options[] = { 5, 6 };
    void *values[] = { log, (void *)2000 };
    *log = 0;
    SAME(cuLinkCreate_v2_(2, options, values, &link), 0);
    int code = 0;
    for (int k = 0; k < count && !code; k++) {
        char name[16];
        snprintf(name, sizeof name, "input%d", k + 1);
        code = cuLinkAddData_v2_(link, 1, (void *)(uintptr_t)inputs[k], strlen(inputs[k]) + 1, name, 0,
            NULL, NULL);
    }
    if (!code) code = cuLinkComplete_(link, &image, &size);
    if (!code) code = cuModuleLoadData_(out, image);
    SAME(cuLinkDestroy_(link), 0);
    return code;
}

static void test_links(void)
{
    static const char *const user =
        HEAD ".extern .func (.param .b32 r) triple(.param .b32 a);\n.extern .global .align 4 .u32 "
            "shared_count;\n"
             ".func (.param .b32 r) helper(.param .b32 a) {\n" REGS
             "ld.param.b32 r0, [a]; add.u32 r0, r0, 1; st.param.b32 [r], r0; ret; }\n"
             ".visible .entry k(.param .u64 out) {\n" REGS
             "ld.param.u64 d0, [out]; mov.u32 r0, 5;\n"
             "{ .param .b32 x; .param .b32 y; st.param.b32 [x], r0; call.uni (y), triple, (x); "
                 "ld.param.b32 r1, [y]; }\n"
             "{ .param .b32 x; .param .b32 y; st.param.b32 [x], r1; call.uni (y), helper, (x); "
                 "ld.param.b32 r1, [y]; }\n"
             "ld.global.u32 r2, [shared_count]; add.u32 r1, r1, r2; st.global.u32 [d0], r1; ret; }\n";
    static const char *const maker =
        HEAD ".visible .global .align 4 .u32 shared_count = 1000;\n"
             "// a private helper of the same name\n"
             ".func (.param .b32 r) helper(.param .b32 a) {\n" REGS
             "ld.param.b32 r0, [a]; mul.lo.u32 r0, r0, 3; st.param.b32 [r], r0; ret; }\n"
             ".visible .func (.param .b32 r) triple(.param .b32 a) {\n" REGS
             "ld.param.b32 r0, [a]; { .param .b32 x; .param .b32 y; st.param.b32 [x], r0; call.uni (y), "
                 "helper, (x); "
             "ld.param.b32 r1, [y]; }\nst.param.b32 [r], r1; ret; }\n";
    const char *both[] = { user, maker }, *turned[] = { maker, user }, *again[] = { user, maker, maker },
        *alone[] = { user };
    char log[2000];
    handle m = NULL;
    for (int k = 0; k < 2; k++) {
        int code = linked(k ? turned : both, 2, &m, log);
        if (!CHECK(!code, "link: %d %s", code, log)) continue;
        dptr d = alloc(4);
        void *a[] = { &d };
        SAME(run(function(m, "k"), 1, 1, 0, a), 0);
        SAME(word(d), 1016);                                  /* 5 * 3 + 1 + 1000 */
        cuMemFree_v2_(d);
        cuModuleUnload_(m);
    }
    SAME(linked(again, 3, &m, log), 218);
    CHECK(strstr(log, "Multiple definition of 'triple'") && strstr(log, "input3"), "%s", log);
    SAME(linked(alone, 1, &m, log), 218);
    CHECK(strstr(log, "Undefined reference to 'triple'") && strstr(log,
        "Undefined reference to 'shared_count'"), "%s", log);
}

/* --- limits, occupancy, devices --------------------------------------------------------------- */

static size_t eight_a_thread(int block) { return (size_t)block * 8; }

static void test_limits(void)
{
    int grid, block, v;
    size_t bytes;
    unsigned flags;
    unsigned long long id;
    SAME(cuOccupancyMaxPotentialBlockSize_(&grid, &block, empty, NULL, 0, 0), 0);
    SAME(block, 1024);
    SAME(grid, 2 * 132);
    SAME(cuOccupancyMaxPotentialBlockSize_(&grid, &block, empty, eight_a_thread, 0, 256), 0);
    SAME(block, 256);
    SAME(cuOccupancyAvailableDynamicSMemPerBlock_(&bytes, empty, 2, 256), 0);
    SAME(bytes, 233472 / 2 - 1024);
    SAME(cuFuncSetAttribute_(empty, 0, 5), 1);
    SAME(cuFuncSetAttribute_(empty, 9, 50), 0);
    SAME(cuFuncGetAttribute_(&v, 9, empty), 0);
    SAME(v, 50);
    SAME(cuLaunchCooperativeKernel_(empty, 264, 1, 1, 1024, 1, 1, 0, NULL, NULL), 0);
    SAME(cuLaunchCooperativeKernel_(empty, 265, 1, 1, 1024, 1, 1, 0, NULL, NULL), 720);
    SAME(cuCtxSynchronize_(), 0);
    SAME(cuCtxGetLimit_(&bytes, 0), 0);
    SAME(bytes, 1024);
    SAME(cuCtxSetLimit_(0, 2000), 0);
    SAME(cuCtxGetLimit_(&bytes, 0), 0);
    SAME(bytes, 2000);
    SAME(cuCtxSetLimit_(77, 1), 215);
    SAME(cuCtxGetFlags_(&flags), 0);
    SAME(cuCtxGetId_(NULL, &id), 0);
    SAME(cuCtxGetApiVersion_(NULL, &flags), 0);
    SAME(flags, 3020);
    SAME(cuDevicePrimaryCtxSetFlags_v2_(0, 3), 1);
    char bus[32];
    SAME(cuDeviceGetPCIBusId_(bus, sizeof bus, 0), 0);
    SAME(cuDeviceGetByPCIBusId_(&v, bus), 0);
    SAME(cuDeviceGetByPCIBusId_(&v, "0000:09:00.0"), 101);
    for (int k = 1; k < 148; k++)
        CHECK(!cuDeviceGetAttribute_(&v, k, 0), "attribute %d", k);
    SAME(cuDeviceGetAttribute_(&v, 0, 0), 1);
    SAME(cuProfilerStart_(), 0);
    SAME(cuProfilerStop_(), 0);
    const char *text;
    for (int k = 900; k <= 908; k++) CHECK(!cuGetErrorName_(k, &text) && strstr(text, "CAPTURE"),
        "error %d", k);
    SAME(cuGetErrorName_(916, &text), 0);
}

/* Grid-wide synchronisation as compilers write it: through the words at %envreg1:%envreg2. */
static void test_cooperative(void)
{
    static const char ptx[] =
        HEAD ".visible .entry k(.param .u64 out) {\n" REGS
             "ld.param.u64 d0, [out]; mov.u32 r0, %envreg1; mov.u32 r1, %envreg2; mov.b64 d1, {r1, r0};\n"
             "mov.u32 r2, %ctaid.x; mul.wide.u32 d2, r2, 4; add.u64 d2, d0, d2; st.global.u32 [d2], 1;\n"
             "fence.sc.gpu; atom.global.add.u32 r3, [d1+4], 1; mov.u32 r4, %nctaid.x;\n"
             "L: ld.acquire.gpu.global.u32 r3, [d1+4]; setp.lt.u32 p0, r3, r4; @p0 bra L;\n"
             "sub.u32 r5, r4, 1; sub.u32 r5, r5, r2; mul.wide.u32 d3, r5, 4; add.u64 d3, d0, d3;\n"
             "ld.relaxed.gpu.global.u32 r6, [d3]; add.u32 r6, r6, 1; st.global.u32 [d2+64], r6; ret; }";
    handle m = load(ptx), f = function(m, "k");
    dptr d = alloc(128);
    void *a[] = { &d };
    SAME(cuMemsetD32_v2_(d, 0, 32), 0);
    for (int k = 0; k < 2; k++) {                             /* the words are zero again each time */
        SAME(cuLaunchCooperativeKernel_(f, 16, 1, 1, 1, 1, 1, 0, NULL, a), 0);
        SAME(cuCtxSynchronize_(), 0);
        SAME(word(d + 64 + 4 * 15), 2);
    }
    SAME(cuMemFree_v2_(d), 0);
    SAME(cuModuleUnload_(m), 0);
}

/* Another chip needs another process: this program, with the argument "device". */
static void device_child(const char *library)
{
    setenv("PTXGEN_CUDA_LIBRARY", library, 1);
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned), (*attribute)(int *, int, int), (*name)(char *, int, int), v[3];
    char text[80];
    *(void **)&init = dlsym(lib, "cuInit");
    *(void **)&attribute = dlsym(lib, "cuDeviceGetAttribute");
    *(void **)&name = dlsym(lib, "cuDeviceGetName");
    int code = init(0);
    if (code) { printf("init %d\n", code); exit(0); }
    attribute(&v[0], 16, 0);
    attribute(&v[1], 75, 0);
    attribute(&v[2], 97, 0);
    name(text, sizeof text, 0);
    printf("%s: %d SMs, %d.x, %d\n", text, v[0], v[1], v[2]);
    exit(0);
}

static void device(const char *self, const char *library, const char *description, const char *want)
{
    char command[1000], path[64], line[200] = "", all[600] = "";
    snprintf(path, sizeof path, "/tmp/ptxsim-device-%d", (int)getpid());
    bool file = strchr(description, '=') != NULL;
    if (file) {
        FILE *f = fopen(path, "w");
        if (!f) { CHECK(false, "cannot write %s", path); return; }
        fputs(description, f);
        fclose(f);
    }
    snprintf(command, sizeof command, "PTXSIM_DEVICE=%s %s %s device 2>&1", file ? path : description,
        self, library);
    FILE *p = popen(command, "r");
    while (p && fgets(line, sizeof line, p)) strncat(all, line, sizeof all - strlen(all) - 1);
    if (p) pclose(p);
    CHECK(strstr(all, want) != NULL, "%s: expected '%s', got '%s'", description, want, all);
    if (file) unlink(path);
}

static void test_devices(const char *self, const char *library)
{
    device(self, library, "sm_120", "170 SMs, 12.x, 101376");
    device(self, library, "sm = 80 # comment\nname = tiny\nsms = 4\nmemory = 64M\n",
        "ptxsim CPU driver (tiny): 4 SMs, 8.x, 166912");
    device(self, library, "sm = 80\n\nsms = many\n", ":3: sms is a number from 1 to 4096, not 'many'");
    device(self, library, "sm = 80\nsmx = 2\n", ":2: unknown key 'smx'");
    device(self, library, "sms = 2\n", "the line 'sm = ...' is missing");
    device(self, library, "sm = 80\nnonsense\n", ":2: expected key = value, found 'nonsense'");
    device(self, library, "sm = 77\n", ":1: unknown chip");
    device(self, library, "sm_78", "init 1");
}

/* --- failures, threads, speed ----------------------------------------------------------------- */

static void test_failures(void)
{
    handle s;
    SAME(ptxsim_fail_("cuStreamCreate", 1, 2), 0);
    SAME(cuStreamCreate_(&s, 0), 2);
    SAME(ptxsim_fail_("cuGraphLaunch", 1, 719), 0);
    SAME(cuGraphLaunch_(NULL, NULL), 719);
    SAME(ptxsim_fail_("cuMemcpy3D_v2", 1, 700), 0);
    SAME(cuMemcpy3D_v2_(NULL), 700);
    void *p = NULL;
    SAME(cuGetProcAddress_v2_("cuGraphAddKernelNode", &p, 12000, 0, NULL), 0);
    CHECK(p == *(void **)&cuGraphAddKernelNode_v2_, "the second version from CUDA 12 on");
    SAME(cuGetProcAddress_v2_("cuGraphAddKernelNode", &p, 11000, 0, NULL), 0);
    CHECK(p && p != *(void **)&cuGraphAddKernelNode_v2_, "the first version before");
    int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
        void **, void **);
    SAME(cuGetProcAddress_v2_("cuLaunchKernel", (void **)&launch, 13000, 2, NULL), 0);
    CHECK(launch != cuLaunchKernel_, "the per-thread variant");
    SAME(launch(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    SAME(cuStreamQuery_((handle)2), 600);                     /* it went into the thread's stream */
    SAME(cuStreamSynchronize_((handle)2), 0);
    SAME(ptxsim_fail_("cuLaunchKernel_ptsz", 1, 701), 0);
    SAME(launch(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 701);
    SAME(cuGetProcAddress_v2_("cuCtxCreate", &p, 13000, 0, NULL), 0);
    CHECK(p == *(void **)&cuCtxCreate_v4_, "the fourth version from CUDA 13 on");
}

static void *worker(void *context)
{
    handle s;
    dptr d;
    long bad = 0;
    uint32_t host[N];
    bad += cuCtxSetCurrent_(context) != 0;
    bad += cuStreamCreate_(&s, 1) != 0;
    bad += cuMemAlloc_v2_(&d, BYTES) != 0;
    for (unsigned k = 1; k <= 50; k++) {
        bad += cuMemsetD32Async_(d, k, N, s) != 0;
        bad += launch_add(d, 1, s) != 0;
        bad += cuMemcpyDtoHAsync_v2_(host, d, BYTES, s) != 0;
        bad += host[9] != k + 1;
        while (cuStreamQuery_(s) == 600) {}
    }
    bad += cuMemFree_v2_(d) != 0;
    bad += cuStreamDestroy_v2_(s) != 0;
    return (void *)bad;
}

static void test_threads(void)
{
    pthread_t threads[4];
    handle context;
    SAME(cuCtxGetCurrent_(&context), 0);
    for (int k = 0; k < 4; k++) pthread_create(&threads[k], NULL, worker, context);
    for (int k = 0; k < 4; k++) {
        void *bad;
        pthread_join(threads[k], &bad);
        SAME((long)bad, 0);
    }
    CLEAN();
}

static void test_speed(void)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int k = 0; k < 32768; k++)
        if (cuLaunchKernel_(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)) { SAME(k, 32768); break; }
    SAME(cuCtxSynchronize_(), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    printf("note: 32,768 launches of an empty kernel: %.2f s\n", s);
    CHECK(s < 20, "launches take %.2f s", s);
}

int main(int argc, char **argv)
{
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    if (!library) library = "build/libptxsim.so";
    if (argc > 2 && !strcmp(argv[2], "device")) device_child(library);
    sim_open(argc, argv);
#define X(name, args) *(void **)&name##_ = symbol(sim_library, #name);
    MORE(X)
#undef X
    set_option("lag", 2);                                     /* nothing in the background */
    module = load(adder);
    add = function(module, "add");
    twice = function(module, "twice");
    wrong = function(module, "wrong");
    empty = function(module, "empty");
    test_lag();
    test_default_streams();
    test_sticky();
    test_values();
    test_background();
    test_races();
    test_handles();
    test_leaks();
    test_memory_kinds();
    test_capture();
    test_graph_nodes();
    test_graph_memory();
    test_graph_objects();
    test_managed();
    test_kept();
    test_modules();
    test_links();
    test_limits();
    test_cooperative();
    test_devices(argv[0], library);
    test_failures();
    test_threads();
    test_speed();
    SAME(cuModuleUnload_(module), 0);
    report_clear();
    int code = sim_close();
    return code;
}
