/* api.c - hostile calls of the CPU driver: a libFuzzer target with the driver's sources linked in.
 *
 * An input is a sequence of calls in bytes: which function, then a byte for each argument, which picks one of
 * the handles, addresses or sizes made so far, one that was destroyed, or garbage. Whatever is called in
 * whatever order, nothing may crash, hang or leak, with one exception: memory of the caller's own is as large
 * as the caller says, as it is with a real driver, so sizes that go with it are kept true. */
#include "../sim/driver.h"

typedef void *handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(handle *, int), cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxReset_v2(int), cuCtxCreate_v2(handle *, unsigned, int), cuCtxDestroy_v2(handle);
int cuCtxSetCurrent(handle), cuCtxPushCurrent_v2(handle), cuCtxPopCurrent_v2(handle *);
int cuCtxGetCurrent(handle *), cuCtxSynchronize(void), cuCtxSetLimit(int, size_t),
    cuCtxGetLimit(size_t *, int);
int cuModuleLoadData(handle *, const void *), cuModuleUnload(handle);
int cuModuleGetFunction(handle *, handle, const char *), cuModuleGetFunctionCount(unsigned *, handle);
int cuModuleGetGlobal_v2(uint64_t *, size_t *, handle, const char *);
int cuModuleEnumerateFunctions(handle *, unsigned, handle);
int cuFuncGetAttribute(int *, int, handle), cuFuncSetAttribute(handle, int, int),
    cuFuncGetModule(handle *, handle);
int cuFuncGetName(const char **, handle), cuFuncGetParamInfo(handle, size_t, size_t *, size_t *);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, handle, int, size_t);
int cuLibraryLoadData(handle *, const void *, int *, void **, unsigned, int *, void **, unsigned);
int cuLibraryUnload(handle), cuLibraryGetKernel(handle *, handle, const char *),
    cuLibraryGetModule(handle *, handle);
int cuKernelGetFunction(handle *, handle), cuKernelGetName(const char **, handle);
int cuLibraryGetGlobal(uint64_t *, size_t *, handle, const char *), cuKernelGetLibrary(handle *, handle);
int cuLinkCreate_v2(unsigned, int *, void **, handle *), cuLinkDestroy(handle);
int cuLinkAddData_v2(handle, int, void *, size_t, const char *, unsigned, int *, void **);
int cuLinkComplete(handle, void **, size_t *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemFree_v2(uint64_t), cuMemAllocAsync(uint64_t *, size_t, handle);
int cuMemAllocPitch_v2(uint64_t *, size_t *, size_t, size_t, unsigned), cuMemFreeAsync(uint64_t, handle);
int cuMemAllocFromPoolAsync(uint64_t *, size_t, handle, handle),
    cuMemAllocManaged(uint64_t *, size_t, unsigned);
int cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *), cuMemHostUnregister(void *);
int cuMemHostRegister_v2(void *, size_t, unsigned),
    cuMemHostGetDevicePointer_v2(uint64_t *, void *, unsigned);
int cuMemGetAddressRange_v2(uint64_t *, size_t *, uint64_t), cuMemGetInfo_v2(size_t *, size_t *);
int cuPointerGetAttribute(void *, int, uint64_t), cuMemPrefetchAsync(uint64_t, size_t, int, handle);
int cuMemPoolCreate(handle *, const void *), cuMemPoolDestroy(handle), cuMemPoolTrimTo(handle, size_t);
int cuDeviceSetMemPool(int, handle), cuDeviceGetMemPool(handle *, int),
    cuDeviceGetDefaultMemPool(handle *, int);
int cuMemPoolGetAttribute(handle, int, void *), cuMemPoolSetAttribute(handle, int, void *);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t),
    cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, handle);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t), cuMemcpyDtoHAsync_v2(void *, uint64_t, size_t, handle);
int cuMemcpyDtoD_v2(uint64_t, uint64_t, size_t), cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, handle);
int cuMemcpy(uint64_t, uint64_t, size_t), cuMemcpyAsync(uint64_t, uint64_t, size_t, handle);
int cuMemcpy2DAsync_v2(const void *, handle), cuMemcpy3DAsync_v2(const void *, handle);
int cuMemcpy2D_v2(const void *), cuMemcpy3D_v2(const void *);
int cuMemcpyPeerAsync(uint64_t, handle, uint64_t, handle, size_t, handle);
int cuMemsetD8_v2(uint64_t, unsigned char, size_t),
    cuMemsetD16Async(uint64_t, unsigned short, size_t, handle);
int cuMemsetD32Async(uint64_t, unsigned, size_t, handle);
int cuMemsetD2D8Async(uint64_t, size_t, unsigned char, size_t, size_t, handle);
int cuMemsetD2D32_v2(uint64_t, size_t, unsigned, size_t, size_t);
int cuStreamCreate(handle *, unsigned), cuStreamDestroy_v2(handle), cuStreamSynchronize(handle);
int cuStreamQuery(handle), cuStreamWaitEvent(handle, handle, unsigned), cuStreamGetCtx(handle, handle *);
int cuStreamAddCallback(handle, void (*)(void *, int, void *), void *, unsigned);
int cuLaunchHostFunc(handle, void (*)(void *), void *);
int cuStreamWaitValue32_v2(handle, uint64_t, uint32_t, unsigned);
int cuStreamWriteValue64_v2(handle, uint64_t, uint64_t, unsigned);
int cuEventCreate(handle *, unsigned), cuEventDestroy_v2(handle), cuEventRecord(handle, handle);
int cuEventSynchronize(handle), cuEventQuery(handle), cuEventElapsedTime(float *, handle, handle);
int cuStreamBeginCapture_v2(handle, int), cuStreamEndCapture(handle, handle *),
    cuStreamIsCapturing(handle, int *);
int cuStreamBeginCaptureToGraph(handle, handle, handle const *, const void *, size_t, int);
int cuStreamGetCaptureInfo_v2(handle, int *, uint64_t *, handle *, handle **, size_t *);
int cuStreamUpdateCaptureDependencies(handle, handle const *, size_t, unsigned);
int cuThreadExchangeStreamCaptureMode(int *);
int cuGraphCreate(handle *, unsigned), cuGraphDestroy(handle), cuGraphClone(handle *, handle);
int cuGraphNodeFindInClone(handle *, handle, handle), cuGraphDestroyNode(handle);
int cuGraphAddKernelNode_v2(handle *, handle, handle const *, size_t, const void *);
int cuGraphAddHostNode(handle *, handle, handle const *, size_t, const void *);
int cuGraphAddEventRecordNode(handle *, handle, handle const *, size_t, handle);
int cuGraphAddEventWaitNode(handle *, handle, handle const *, size_t, handle);
int cuGraphAddMemcpyNode(handle *, handle, handle const *, size_t, const void *, handle);
int cuGraphAddMemsetNode(handle *, handle, handle const *, size_t, const void *, handle);
int cuGraphAddEmptyNode(handle *, handle, handle const *, size_t);
int cuGraphAddChildGraphNode(handle *, handle, handle const *, size_t, handle);
int cuGraphChildGraphNodeGetGraph(handle, handle *), cuGraphNodeGetType(handle, int *);
int cuGraphKernelNodeGetParams_v2(handle, void *), cuGraphKernelNodeSetParams_v2(handle, const void *);
int cuGraphMemcpyNodeSetParams(handle, const void *), cuGraphMemsetNodeSetParams(handle, const void *);
int cuGraphMemsetNodeGetParams(handle, void *), cuGraphHostNodeGetParams(handle, void *);
int cuGraphEventRecordNodeGetEvent(handle, handle *), cuGraphEventWaitNodeSetEvent(handle, handle);
int cuGraphGetNodes(handle, handle *, size_t *), cuGraphGetRootNodes(handle, handle *, size_t *);
int cuGraphGetEdges(handle, handle *, handle *, size_t *);
int cuGraphNodeGetDependencies(handle, handle *, size_t *);
int cuGraphNodeGetDependentNodes(handle, handle *, size_t *);
int cuGraphAddDependencies(handle, handle const *, handle const *, size_t);
int cuGraphRemoveDependencies(handle, handle const *, handle const *, size_t);
int cuGraphInstantiateWithFlags(handle *, handle, unsigned long long), cuGraphExecDestroy(handle);
int cuGraphLaunch(handle, handle), cuGraphUpload(handle, handle),
    cuGraphExecUpdate_v2(handle, handle, void *);
int cuGraphExecKernelNodeSetParams_v2(handle, handle, const void *),
    cuGraphNodeSetEnabled(handle, handle, unsigned);
int cuGraphExecEventRecordNodeSetEvent(handle, handle, handle);
int cuGraphExecMemcpyNodeSetParams(handle, handle, const void *, handle);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle,
                   void **, void **);
int cuLaunchKernelEx(const void *, handle, void **, void **);
int cuLaunchCooperativeKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              handle, void **);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char module_text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 8 .b64 g[8];\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .shared .b8 dynamic[];\n"
    ".visible .entry fill(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
    ".reg .b64 d<3>; .reg .b32 r<3>;\nld.param.u64 d0, [a]; ld.param.u32 r0, [n]; mov.u32 r1, %tid.x;\n"
    "mul.wide.u32 d1, r1, 4; add.u64 d0, d0, d1; st.global.u32 [d0], r0; ret;\n}\n"
    ".visible .entry copy(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
    ".reg .b64 d<3>; .reg .b32 r<3>;\nld.param.u64 d0, [a]; ld.param.u64 d1, [b];\n"
    "ld.global.u32 r0, [d1]; atom.global.add.u32 r1, [d0], r0; st.global.u32 [g], r1; ret;\n}\n"
    ".visible .entry object(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
    ".reg .b64 d<3>;\n.param .b64 m; .param .b64 p; st.param.b64 [m], 24; call (p), malloc, (m);\n"
    "ld.param.b64 d0, [p]; ld.param.u64 d1, [a]; st.global.u64 [d0], d0; st.global.u64 [d1], d0; ret;\n}\n"
    ".visible .entry fault(.param .u64 a, .param .u64 b, .param .u32 n) { trap; ret; }\n"
    ".visible .entry pair(.param .u64 a, .param .u64 b, .param .u32 n) .reqnctapercluster 2, 1, 1\n"
    "{ .reg .b32 r; mov.u32 r, dynamic; st.shared.u32 [r], r;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }\n";
static const char *const entries[] = { "fill", "copy", "object", "fault", "pair", "g", "", "none" };

/* --- the bytes and what they choose ----------------------------------------------------------- */

enum { CTX, MOD, FUN, STR, EVT, GRA, NOD, EXE, LIB, KER, POOL, LINK, KINDS, SLOTS = 8, ADDRESSES = 16,
       HOST = 1 << 20, RENEW = 500, MOST_CALLS = 96 };

static const uint8_t *bytes;
static size_t left;
static handle handles[KINDS][SLOTS];
static unsigned handle_count[KINDS], address_count, waits;
static uint64_t addresses[ADDRESSES];
static void *pinned[SLOTS];
static unsigned pinned_count;
static uint8_t *host;                                         /* the caller's own memory */
static void *parameters[3];
static uint64_t parameter_values[3];

static unsigned byte(void)
{
    if (!left) return 0;
    left--;
    return *bytes++;
}

/* Contexts are all kept: they have to be destroyed at the end. */
static void made(unsigned kind, handle h)
{
    if (!h) return;
    if (kind == CTX && handle_count[kind] == SLOTS) cuCtxDestroy_v2(h);
    else handles[kind][handle_count[kind]++ % SLOTS] = h;
}

/* Mostly one of the right kind, which may have been destroyed since. */
static handle pick(unsigned kind)
{
    unsigned b = byte();
    if (b < 232) return handles[kind][b % SLOTS];
    switch (b % 6) {
    case 0: return NULL;
    case 1: return (handle)1;
    case 2: return (handle)(uintptr_t)(b * 8);
    case 3: return host;
    case 4: return handles[byte() % KINDS][byte() % SLOTS];
    default: return (handle)((uintptr_t)handles[kind][0] + byte());
    }
}

static handle stream(void)
{
    unsigned b = byte();
    if (b >= 64) return handles[STR][b % SLOTS];
    return b < 32 ? NULL : b < 40 ? (handle)1 : b < 56 ? (handle)2 : pick(b % KINDS);
}

/* An address on the device, or pinned memory: of `least` bytes if it is the caller's. */
static uint64_t address(void)
{
    static const uint16_t offsets[] = { 0, 0, 0, 4, 8, 1, 252, 4095 };
    unsigned b = byte();
    uint64_t at = addresses[b % ADDRESSES];
    switch (b >> 4) {
    case 15: return UINT64_C(0x302000000000) + (uint64_t)byte() * 64;
    case 14: return 0;
    default: return at ? at + offsets[b >> 5] : 0;
    }
}

static size_t size(void)
{
    static const size_t sizes[] = {0,
                                   1,
                                   3,
                                   4,
                                   8,
                                   16,
                                   64,
                                   255,
                                   256,
                                   1024,
                                   4096,
                                   65536,
                                   SIZE_MAX,
                                   SIZE_MAX - 255,
                                   (size_t)1 << 40,
                                   (size_t)1 << 63,
                                   (size_t)1 << 32,
                                   (size_t)1 << 31,
                                   2,
                                   512};
    return sizes[byte() % (sizeof sizes / sizeof *sizes)];
}

/* Of something that is made: small, or more than there is. */
static size_t room(void)
{
    size_t n = size();
    return n > 65536 && n < (size_t)1 << 40 ? 100 : n;
}

static unsigned small(void) { return byte() % 5; }
static bool rare(void) { return byte() > 250; }

static void host_function(void *argument)
{
    uint64_t a;
    host[0]++;
    if (argument) cuMemAlloc_v2(&a, 16);                      /* is forbidden here */
}
static void host_callback(void *s, int code, void *argument)
{
    (void)s;
    (void)code;
    host_function(argument);
}

/* Results go to x or, rarely, nowhere. */
#define TO(x) (rare() ? NULL : &(x))
#define MAKE(kind, call) do { handle h_ = NULL, *out_ = TO(h_); if (!(call)) made(kind, h_); } while (0)
#define MAKE_MEMORY(call)                                                                                    \
    do {                                                                                                     \
        uint64_t a_ = 0, *out_ = TO(a_);                                                                     \
        if (!(call) && a_) addresses[address_count++ % ADDRESSES] = a_;                                      \
    } while (0)

/* --- descriptions, as cuda.h has them --------------------------------------------------------- */

typedef struct copy_2d {
    struct {
        size_t x, y;
        unsigned type;
        const void *host;
        uint64_t device;
        void *array;
        size_t pitch;
    } from, to;
    size_t width, height;
} copy_2d;
typedef struct copy_3d {
    struct { size_t x, y, z, lod; unsigned type; const void *host; uint64_t device; void *array, *reserved;
             size_t pitch, height; } from, to;
    size_t width, height, depth;
} copy_3d;
typedef struct kernel_node {
    handle function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    handle kernel, context;
} kernel_node;
typedef struct set_node { uint64_t to; size_t pitch; unsigned value, bytes; size_t width, height; } set_node;
typedef struct host_node { void (*call)(void *); void *argument; } host_node;
typedef struct pool_description { int type, handles, place, device; char rest[72]; } pool_description;
typedef struct launch_attribute { int id; char pad[4]; union { char room[64]; uint32_t n[3]; } value; }
    launch_attribute;
typedef struct launch_config {
    uint32_t grid[3], block[3], shared;
    handle stream;
    launch_attribute *attributes;
    uint32_t count;
} launch_config;

/* The caller's memory is 1 MiB, so a side of it must be small; then the whole copy is. */
static bool fits(size_t x, size_t y, size_t z, size_t pitch, size_t height, size_t width, size_t rows,
                 size_t depth)
{
    return x <= 4096 && y <= 4 && z <= 4 && pitch <= 4096 && height <= 16 && width <= 4096 && rows <= 16
           && depth <= 4;
}

static copy_2d any_2d(void)
{
    copy_2d k;
    memset(&k, 0, sizeof k);
    k.from.x = byte() < 200 ? 0 : size();
    k.to.y = byte() < 200 ? 0 : size();
    k.from.pitch = byte() < 100 ? 0 : size();
    k.to.pitch = byte() < 100 ? 0 : size();
    k.width = size();
    k.height = byte() < 200 ? small() : size();
    k.from.type = byte() & 1 ? 2 : byte() % 6;
    k.to.type = byte() & 1 ? 2 : byte() % 6;
    k.from.device = address();
    k.to.device = address();
    k.from.host = k.to.host = host;
    if (k.from.type == 1 && !fits(k.from.x, 0, 0, k.from.pitch, 0, k.width, k.height, 1)) k.from.type = 2;
    if (k.to.type == 1 && !fits(0, k.to.y, 0, k.to.pitch, 0, k.width, k.height, 1)) k.to.type = 2;
    return k;
}

static copy_3d any_3d(void)
{
    copy_2d flat = any_2d();
    copy_3d k;
    memset(&k, 0, sizeof k);
    k.from.x = flat.from.x;
    k.to.y = flat.to.y;
    k.from.z = byte() < 200 ? 0 : size();
    k.from.pitch = flat.from.pitch;
    k.to.pitch = flat.to.pitch;
    k.from.height = byte() < 100 ? 0 : size();
    k.to.height = byte() < 100 ? 0 : size();
    k.width = flat.width;
    k.height = flat.height;
    k.depth = byte() < 200 ? 1 + byte() % 2 : size();
    k.from.type = flat.from.type;
    k.to.type = flat.to.type;
    k.from.device = flat.from.device;
    k.to.device = flat.to.device;
    k.from.host = k.to.host = host;
    if (k.from.type == 1
        && !fits(k.from.x, 0, k.from.z, k.from.pitch, k.from.height, k.width, k.height, k.depth))
        k.from.type = 2;
    if (k.to.type == 1 && !fits(0, k.to.y, 0, k.to.pitch, k.to.height, k.width, k.height, k.depth))
        k.to.type = 2;
    return k;
}

static void **any_parameters(void)
{
    parameter_values[0] = address();
    parameter_values[1] = address();
    parameter_values[2] = byte();
    for (int k = 0; k < 3; k++) parameters[k] = &parameter_values[k];
    return parameters;
}

static unsigned dimension(void)
{
    unsigned b = byte();
    return b < 200 ? 1 + b % 3 : b < 240 ? 40 : b < 245 ? 0 : b < 250 ? 0xffffffffu : 2000;
}

static kernel_node any_kernel(void)
{
    kernel_node p;
    memset(&p, 0, sizeof p);
    p.function = pick(byte() & 1 ? KER : FUN);
    p.grid[0] = 1 + byte() % 4;
    p.grid[1] = p.grid[2] = 1;
    p.block[0] = dimension();
    p.block[1] = p.block[2] = 1;
    p.shared = (unsigned)room();
    p.params = any_parameters();
    return p;
}

static set_node any_set(void)
{
    set_node p = {address(), byte() < 128 ? 0 : size(), byte(), 1u << byte() % 4,
                  size(),    byte() < 200 ? 1 : size()};
    return p;
}

static size_t some_nodes(handle out[4])
{
    size_t n = byte() % 4;
    for (size_t k = 0; k < n; k++) out[k] = pick(NOD);
    return n;
}

/* --- the calls -------------------------------------------------------------------------------- */

static void call_memory(void)
{
    size_t n, m;
    uint64_t v[4];
    void *p = NULL;
    unsigned slot = pinned_count % SLOTS;
    switch (byte() % 21) {
    case 0: MAKE_MEMORY(cuMemAlloc_v2(out_, room())); break;
    case 1: MAKE_MEMORY(cuMemAllocPitch_v2(out_, TO(n), room(), small(), 4u << small())); break;
    case 2: MAKE_MEMORY(cuMemAllocAsync(out_, room(), stream())); break;
    case 3: MAKE_MEMORY(cuMemAllocFromPoolAsync(out_, room(), pick(POOL), stream())); break;
    case 4: MAKE_MEMORY(cuMemAllocManaged(out_, room(), 1 + small())); break;
    case 5: cuMemFree_v2(address()); break;
    case 6: cuMemFreeAsync(address(), stream()); break;
    case 7:
        if (!cuMemHostAlloc(TO(p), room(), small()) && p) {
            pinned[slot] = p;
            pinned_count++;
            addresses[address_count++ % ADDRESSES] = (uint64_t)(uintptr_t)p;
        }
        break;
    case 8: cuMemFreeHost(pinned[byte() % SLOTS]); break;
    case 9: cuMemHostRegister_v2(host + (byte() & 3) * 4096, 1 + byte() * 64, small()); break;
    case 10: cuMemHostUnregister(host + (byte() & 3) * 4096); break;
    case 11:
        cuMemHostGetDevicePointer_v2(TO(v[0]), byte() & 1 ? host : pinned[byte() % SLOTS], small() / 4);
        break;
    case 12: cuMemGetAddressRange_v2(TO(v[0]), TO(n), address()); break;
    case 13: cuMemGetInfo_v2(TO(n), TO(m)); break;
    case 14: cuPointerGetAttribute(v, (int)byte() % 24, address()); break;
    case 15: cuMemPrefetchAsync(address(), size(), small() / 4 ? 1 : 0, stream()); break;
    case 16: {
        pool_description d = { .type = 1, .place = 1, .device = rare() };
        MAKE(POOL, cuMemPoolCreate(out_, &d));
        break;
    }
    case 17: cuMemPoolDestroy(pick(POOL)); break;
    case 18: cuDeviceSetMemPool(0, pick(POOL)); break;
    case 19:
        if (byte() & 1) MAKE(POOL, cuDeviceGetMemPool(out_, 0));
        else MAKE(POOL, cuDeviceGetDefaultMemPool(out_, 0));
        break;
    case 20:
        v[0] = byte();
        if (byte() & 1) cuMemPoolGetAttribute(pick(POOL), (int)byte() % 10, v);
        else cuMemPoolSetAttribute(pick(POOL), (int)byte() % 10, v);
        cuMemPoolTrimTo(pick(POOL), 0);
        break;
    }
}

static void call_copy(void)
{
    copy_2d flat;
    copy_3d deep;
    switch (byte() % 15) {
    case 0: cuMemcpyHtoD_v2(address(), host, size()); break;
    case 1: cuMemcpyHtoDAsync_v2(address(), host, size(), stream()); break;
    case 2: cuMemcpyDtoH_v2(host, address(), size()); break;
    case 3: cuMemcpyDtoHAsync_v2(host, address(), size(), stream()); break;
    case 4: cuMemcpyDtoD_v2(address(), address(), size()); break;
    case 5: cuMemcpyDtoDAsync_v2(address(), address(), size(), stream()); break;
    case 6: cuMemcpyPeerAsync(address(), pick(CTX), address(), pick(CTX), size(), stream()); break;
    case 7: cuMemcpyHtoDAsync_v2(address(), (void *)(uintptr_t)address(), size() & 255, stream()); break;
    case 8: flat = any_2d(); cuMemcpy2DAsync_v2(&flat, stream()); break;
    case 9: deep = any_3d(); cuMemcpy3DAsync_v2(&deep, stream()); break;
    case 10: flat = any_2d(); cuMemcpy2D_v2(&flat); break;
    case 11: cuMemsetD8_v2(address(), (unsigned char)byte(), size()); break;
    case 12: cuMemsetD16Async(address(), 0x1234, size(), stream()); break;
    case 13:
        cuMemsetD2D8Async(address(), size(), 7, size(), byte() < 200 ? small() : size(), stream());
        break;
    case 14: cuMemsetD2D32_v2(address(), size(), byte(), size(), byte() < 200 ? small() : size()); break;
    }
}

static void call_stream(void)
{
    int status;
    float ms;
    uint64_t id;
    size_t n;
    handle g, some[4], *nodes;
    switch (byte() % 24) {
    case 0: MAKE(STR, cuStreamCreate(out_, byte() & 1)); break;
    case 1: cuStreamDestroy_v2(pick(STR)); break;
    case 2: cuStreamSynchronize(stream()); break;
    case 3: cuStreamQuery(stream()); break;
    case 4: cuStreamWaitEvent(stream(), pick(EVT), rare()); break;
    case 5: cuStreamGetCtx(stream(), TO(g)); break;
    case 6: cuStreamAddCallback(stream(), host_callback, byte() & 1 ? host : NULL, rare()); break;
    case 7: cuLaunchHostFunc(stream(), rare() ? NULL : host_function, byte() & 1 ? host : NULL); break;
    case 8: if (!waits++) cuStreamWaitValue32_v2(stream(), address(), small(), small()); break;
    case 9: cuStreamWriteValue64_v2(stream(), address(), byte(), rare()); break;
    case 10: MAKE(EVT, cuEventCreate(out_, small())); break;
    case 11: cuEventDestroy_v2(pick(EVT)); break;
    case 12: case 13: cuEventRecord(pick(EVT), stream()); break;
    case 14: cuEventSynchronize(pick(EVT)); break;
    case 15: cuEventQuery(pick(EVT)); break;
    case 16: cuEventElapsedTime(TO(ms), pick(EVT), pick(EVT)); break;
    case 17: cuStreamBeginCapture_v2(stream(), (int)small() % 4); break;
    case 18: MAKE(GRA, cuStreamEndCapture(stream(), out_)); break;
    case 19: cuStreamIsCapturing(stream(), TO(status)); break;
    case 20: n = some_nodes(some); cuStreamBeginCaptureToGraph(stream(), pick(GRA), some, NULL, n, 2); break;
    case 21:
        g = NULL;
        if (!cuStreamGetCaptureInfo_v2(stream(), &status, TO(id), TO(g), TO(nodes), TO(n)) && status == 1)
            made(GRA, g);
        break;
    case 22: n = some_nodes(some); cuStreamUpdateCaptureDependencies(stream(), some, n, byte() % 3); break;
    case 23: status = (int)small(); cuThreadExchangeStreamCaptureMode(&status); break;
    }
}

static void add_node(void)
{
    handle some[4], g = pick(GRA);
    size_t n = some_nodes(some);
    kernel_node k;
    set_node s;
    copy_3d c;
    host_node h = { host_function, byte() & 1 ? host : NULL };
    switch (byte() % 8) {
    case 0: k = any_kernel(); MAKE(NOD, cuGraphAddKernelNode_v2(out_, g, some, n, &k)); break;
    case 1: MAKE(NOD, cuGraphAddHostNode(out_, g, some, n, &h)); break;
    case 2: MAKE(NOD, cuGraphAddEventRecordNode(out_, g, some, n, pick(EVT))); break;
    case 3: MAKE(NOD, cuGraphAddEventWaitNode(out_, g, some, n, pick(EVT))); break;
    case 4: c = any_3d(); MAKE(NOD, cuGraphAddMemcpyNode(out_, g, some, n, &c, pick(CTX))); break;
    case 5: s = any_set(); MAKE(NOD, cuGraphAddMemsetNode(out_, g, some, n, &s, pick(CTX))); break;
    case 6: MAKE(NOD, cuGraphAddEmptyNode(out_, g, some, n)); break;
    case 7: MAKE(NOD, cuGraphAddChildGraphNode(out_, g, some, n, pick(GRA))); break;
    }
}

static void call_graph(void)
{
    handle some[4], others[4], h;
    size_t n = 4;
    int type;
    kernel_node k;
    set_node s;
    copy_3d c;
    host_node function;
    uint64_t info[4];
    switch (byte() % 30) {
    case 0: MAKE(GRA, cuGraphCreate(out_, rare())); break;
    case 1: cuGraphDestroy(pick(GRA)); break;
    case 2: MAKE(GRA, cuGraphClone(out_, pick(GRA))); break;
    case 3: MAKE(NOD, cuGraphNodeFindInClone(out_, pick(NOD), pick(GRA))); break;
    case 4: cuGraphDestroyNode(pick(NOD)); break;
    case 5: MAKE(GRA, cuGraphChildGraphNodeGetGraph(pick(NOD), out_)); break;
    case 6: cuGraphNodeGetType(pick(NOD), TO(type)); break;
    case 7: cuGraphKernelNodeGetParams_v2(pick(NOD), &k); break;
    case 8: k = any_kernel(); cuGraphKernelNodeSetParams_v2(pick(NOD), &k); break;
    case 9: c = any_3d(); cuGraphMemcpyNodeSetParams(pick(NOD), &c); break;
    case 10: s = any_set(); cuGraphMemsetNodeSetParams(pick(NOD), &s); break;
    case 11: cuGraphMemsetNodeGetParams(pick(NOD), &s); break;
    case 12: cuGraphHostNodeGetParams(pick(NOD), &function); break;
    case 13: MAKE(EVT, cuGraphEventRecordNodeGetEvent(pick(NOD), out_)); break;
    case 14: cuGraphEventWaitNodeSetEvent(pick(NOD), pick(EVT)); break;
    case 15: if (!cuGraphGetNodes(pick(GRA), some, &n) && n && n <= 4) made(NOD, some[n - 1]); break;
    case 16: if (!cuGraphGetRootNodes(pick(GRA), some, &n) && n && n <= 4) made(NOD, some[0]); break;
    case 17: cuGraphGetEdges(pick(GRA), some, others, &n); break;
    case 18: cuGraphNodeGetDependencies(pick(NOD), some, &n); break;
    case 19: cuGraphNodeGetDependentNodes(pick(NOD), some, &n); break;
    case 20: case 21:
        n = some_nodes(some);
        for (size_t j = 0; j < n; j++) others[j] = pick(NOD);
        h = pick(GRA);
        if (byte() & 1) cuGraphAddDependencies(h, some, others, n);
        else cuGraphRemoveDependencies(h, some, others, n);
        break;
    case 22: case 23: MAKE(EXE, cuGraphInstantiateWithFlags(out_, pick(GRA), rare() ? byte() : 0)); break;
    case 24: cuGraphExecDestroy(pick(EXE)); break;
    case 25: cuGraphLaunch(pick(EXE), stream()); break;
    case 26: cuGraphExecUpdate_v2(pick(EXE), pick(GRA), info); break;
    case 27: k = any_kernel(); cuGraphExecKernelNodeSetParams_v2(pick(EXE), pick(NOD), &k); break;
    case 28: cuGraphNodeSetEnabled(pick(EXE), pick(NOD), byte() & 1); break;
    case 29: cuGraphExecEventRecordNodeSetEvent(pick(EXE), pick(NOD), pick(EVT)); break;
    }
}

static void call_module(void)
{
    unsigned count;
    handle some[4];
    uint64_t at;
    size_t n, m;
    int value;
    const char *name = entries[byte() % (sizeof entries / sizeof *entries)];
    void *cubin;
    switch (byte() % 22) {
    case 0: MAKE(MOD, cuModuleLoadData(out_, module_text)); break;
    case 1: cuModuleUnload(pick(MOD)); break;
    case 2: case 3: MAKE(FUN, cuModuleGetFunction(out_, pick(MOD), name)); break;
    case 4: if (!cuModuleGetGlobal_v2(TO(at), TO(n), pick(MOD), name)) break; break;
    case 5: cuModuleGetFunctionCount(TO(count), pick(MOD)); break;
    case 6: cuModuleEnumerateFunctions(some, byte() % 5, pick(MOD)); break;
    case 7: cuFuncGetAttribute(TO(value), (int)byte() % 20, pick(FUN)); break;
    case 8: cuFuncSetAttribute(pick(FUN), (int)byte() % 20, (int)room()); break;
    case 9: MAKE(MOD, cuFuncGetModule(out_, pick(FUN))); break;
    case 10: cuFuncGetName(TO(name), pick(FUN)); break;
    case 11: cuFuncGetParamInfo(pick(FUN), byte() % 5, TO(n), TO(m)); break;
    case 12: cuOccupancyMaxActiveBlocksPerMultiprocessor(TO(value), pick(FUN), (int)size(), size()); break;
    case 13: MAKE(LIB, cuLibraryLoadData(out_, module_text, NULL, NULL, 0, NULL, NULL, 0)); break;
    case 14: cuLibraryUnload(pick(LIB)); break;
    case 15: MAKE(KER, cuLibraryGetKernel(out_, pick(LIB), name)); break;
    case 16: MAKE(MOD, cuLibraryGetModule(out_, pick(LIB))); break;
    case 17: MAKE(FUN, cuKernelGetFunction(out_, pick(KER))); break;
    case 18: MAKE(LINK, cuLinkCreate_v2(0, NULL, NULL, out_)); break;
    case 19:
        cuLinkAddData_v2(pick(LINK), 1 + (int)small() / 4, (void *)(uintptr_t)module_text, sizeof module_text,
                         "m", 0, NULL, NULL);
        break;
    case 20: if (!cuLinkComplete(pick(LINK), &cubin, TO(n))) MAKE(MOD, cuModuleLoadData(out_, cubin)); break;
    case 21: cuLinkDestroy(pick(LINK)); break;
    }
}

static void call_launch(void)
{
    kernel_node k = any_kernel();
    launch_attribute a = { .id = 4, .value.n = { 1 + byte() % 3, 1, 1 } };
    launch_config c = { { k.grid[0], k.grid[1], k.grid[2] }, { k.block[0], k.block[1], k.block[2] }, k.shared,
                        stream(), &a, byte() & 1 };
    switch (byte() % 4) {
    case 0: cuLaunchKernelEx(&c, k.function, k.params, NULL); break;
    case 1:
        cuLaunchCooperativeKernel(k.function, k.grid[0], 1, 1, k.block[0], 1, 1, k.shared, c.stream,
                                  k.params);
        break;
    default:
        cuLaunchKernel(k.function, k.grid[0], dimension() % 3, 1, k.block[0], 1, 1, k.shared, c.stream,
                       k.params, NULL);
    }
}

static void call_context(void)
{
    handle h;
    size_t n;
    switch (byte() % 14) {
    case 0: MAKE(CTX, cuCtxCreate_v2(out_, small(), 0)); break;
    case 1: cuCtxDestroy_v2(pick(CTX)); break;
    case 2: cuCtxSetCurrent(pick(CTX)); break;
    case 3: cuCtxPushCurrent_v2(pick(CTX)); break;
    case 4: cuCtxPopCurrent_v2(TO(h)); break;
    case 5: MAKE(CTX, cuCtxGetCurrent(out_)); break;
    case 6: cuCtxSynchronize(); break;
    case 7:
        if (byte() < 128)
            cuCtxSetLimit((int)byte() % 8, byte() * 64);
        else
            cuCtxGetLimit(TO(n), (int)byte() % 8);
        break;
    case 8: MAKE(CTX, cuDevicePrimaryCtxRetain(out_, 0)); break;
    case 9: cuDevicePrimaryCtxRelease_v2(0); break;
    case 10: cuDevicePrimaryCtxReset_v2(0); break;
    case 11: ptxsim_report_clear(); break;
    case 12: ptxsim_set("lag", (int)byte() % 3); break;
    case 13: {                                                /* the host touches what it has pinned */
        volatile uint8_t *p = NULL;
        uint64_t at = (uint64_t)(uintptr_t)pinned[byte() % SLOTS], base;
        if (at && !cuMemGetAddressRange_v2(&base, &n, at) && base == at)
            p = (volatile uint8_t *)(uintptr_t)at;
        if (p) { *p = (uint8_t)(*p + 1); }
        break;
    }
    }
}

/* --- an input --------------------------------------------------------------------------------- */

static void begin(void)
{
    handle h;
    memset(handles, 0, sizeof handles);
    memset(handle_count, 0, sizeof handle_count);
    memset(addresses, 0, sizeof addresses);
    memset(pinned, 0, sizeof pinned);
    address_count = pinned_count = waits = 0;
    ptxsim_set("lag", 2);
    if (cuCtxCreate_v2(&h, 0, 0)) abort();
    made(CTX, h);
    if (cuModuleLoadData(&h, module_text)) abort();
    made(MOD, h);
    for (int k = 0; k < 5; k++) {
        if (cuModuleGetFunction(&h, handles[MOD][0], entries[k])) abort();
        made(FUN, h);
    }
    for (int k = 0; k < 2; k++) {
        cuStreamCreate(&h, (unsigned)k);
        made(STR, h);
        cuEventCreate(&h, 0);
        made(EVT, h);
        cuMemAlloc_v2(&addresses[address_count++], 4096);
        cuGraphCreate(&h, 0);
        made(GRA, h);
    }
    cuMemsetD8_v2(addresses[0], 1, 4096);
}

/* Everything goes with its context, in the state in which it is. */
static void end(void)
{
    static unsigned runs;
    handle h;
    while (!cuDevicePrimaryCtxRelease_v2(0)) {}
    for (int k = 0; k < SLOTS; k++) cuCtxDestroy_v2(handles[CTX][k]);
    ptxsim_report_clear();
    while (!cuCtxPopCurrent_v2(&h)) {}
    if (++runs % RENEW == 0) sim_memory_release_all();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("PTXSIM_MEMORY", "33554432", 0);
    setenv("PTXSIM_DEVICE", "sm_90a", 0);
    ptxsim_set("quiet", 1);
    ptxsim_set("threads", 1);
    ptxsim_set("budget", 2000);
    ptxsim_set("heap", 65536);
    ptxsim_set("watchdog", 1);                                /* cuStreamWaitValue may wait for ever */
    if (posix_memalign((void **)&host, 4096, HOST) || cuInit(0)) abort();
    memset(host, 1, HOST);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    bytes = data;
    left = length;
    begin();
    for (int calls = 0; left && calls < MOST_CALLS; calls++) {
        switch (byte() % 8) {
        case 0: call_memory(); break;
        case 1: call_copy(); break;
        case 2: call_stream(); break;
        case 3: call_graph(); break;
        case 4: add_node(); break;
        case 5: call_module(); break;
        case 6: call_launch(); break;
        case 7: call_context(); break;
        }
    }
    end();
    return 0;
}
