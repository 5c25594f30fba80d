/* driver.h - what the files with the driver's entry points share (driver.c, context.c, stream.c, ...).
 *
 * An entry point is SIM_API cuFoo(...) { ENTER(cuFoo); ...; return leave(code); }, with its name in
 * SIM_ENTRIES. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H
#include "sim.h"

SIM_PRIVATE_BEGIN

enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_DEINITIALIZED = 4,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY = 209,
    CU_INVALID_PTX = 218,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_NOT_PERMITTED = 800,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_COOPERATIVE_TOO_LARGE = 720,
    CU_INVALID_CLUSTER_SIZE = 912,
    CU_NOT_SUPPORTED = 801
};

#define SIM_ENTRIES(X) \
    X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) \
    X(cuDeviceGetAttribute) X(cuDeviceGetUuid_v2) X(cuDeviceTotalMem_v2) X(cuDevicePrimaryCtxRetain) \
    X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxGetState) \
    X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuCtxGetCurrent) X(cuCtxSetCurrent) X(cuCtxPushCurrent_v2) \
    X(cuCtxPopCurrent_v2) X(cuCtxGetDevice) X(cuCtxSynchronize) X(cuCtxGetStreamPriorityRange) \
    X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) \
    X(cuModuleGetGlobal_v2) X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocHost_v2) \
    X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostGetDevicePointer_v2) X(cuMemGetInfo_v2) \
    X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoD_v2) X(cuMemcpyHtoDAsync_v2) \
    X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpy) X(cuMemcpyAsync) X(cuMemsetD8_v2) \
    X(cuMemsetD16_v2) X(cuMemsetD32_v2) X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async) \
    X(cuMemGetAddressRange_v2) X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) \
    X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) X(cuEventCreate) X(cuEventDestroy_v2) \
    X(cuEventRecord) X(cuEventSynchronize) X(cuEventQuery) X(cuEventElapsedTime) X(cuLaunchKernel) \
    X(cuLaunchCooperativeKernel) X(cuGetErrorName) X(cuGetErrorString) X(cuLinkCreate_v2) \
    X(cuLinkAddData_v2) X(cuLinkComplete) X(cuLinkDestroy) X(cuGetProcAddress_v2) \
    SIM_ENTRIES_MORE(X)

/* The other entry points. */
#define SIM_ENTRIES_MORE(X) \
    X(cuLaunchKernelEx) X(cuOccupancyMaxActiveClusters) X(cuOccupancyMaxPotentialClusterSize) \
    X(cuTensorMapEncodeTiled) X(cuTensorMapEncodeIm2col) X(cuTensorMapReplaceAddress) \
    X(cuDeviceGetUuid) X(cuGetProcAddress) X(cuGraphAddNode) X(cuGraphAddNode_v2) X(cuGraphNodeSetParams) \
    X(cuGraphExecNodeSetParams) X(cuGraphExecChildGraphNodeSetParams) X(cuGraphMemcpyNodeGetParams) \
    X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode) X(cuGraphMemAllocNodeGetParams) \
    X(cuGraphMemFreeNodeGetParams) X(cuDeviceGraphMemTrim) X(cuDeviceGetGraphMemAttribute) \
    X(cuDeviceSetGraphMemAttribute) X(cuUserObjectCreate) X(cuUserObjectRetain) X(cuUserObjectRelease) \
    X(cuGraphRetainUserObject) X(cuGraphReleaseUserObject) X(cuMemPoolSetAccess) X(cuMemPoolGetAccess) \
    X(cuEventRecord_ptsz) X(cuGraphLaunch_ptsz) X(cuLaunchCooperativeKernel_ptsz) X(cuLaunchHostFunc_ptsz) \
    X(cuLaunchKernel_ptsz) X(cuMemAllocAsync_ptsz) X(cuMemFreeAsync_ptsz) X(cuMemcpy2DAsync_v2_ptsz) \
    X(cuMemcpy3DAsync_v2_ptsz) X(cuMemcpyAsync_ptsz) X(cuMemcpyDtoDAsync_v2_ptsz) X(cuMemcpyDtoD_v2_ptds) \
    X(cuMemcpyDtoHAsync_v2_ptsz) X(cuMemcpyDtoH_v2_ptds) X(cuMemcpyHtoDAsync_v2_ptsz) \
    X(cuMemcpyHtoD_v2_ptds) X(cuMemcpy_ptds) X(cuMemsetD16Async_ptsz) X(cuMemsetD16_v2_ptds) \
    X(cuMemsetD32Async_ptsz) X(cuMemsetD32_v2_ptds) X(cuMemsetD8Async_ptsz) X(cuMemsetD8_v2_ptds) \
    X(cuStreamBeginCapture_v2_ptsz) X(cuStreamEndCapture_ptsz) X(cuStreamGetCtx_ptsz) \
    X(cuStreamGetFlags_ptsz) X(cuStreamGetPriority_ptsz) X(cuStreamIsCapturing_ptsz) X(cuStreamQuery_ptsz) \
    X(cuStreamSynchronize_ptsz) X(cuStreamWaitEvent_ptsz) X(cuStreamWaitValue32_v2_ptsz) \
    X(cuStreamWriteValue32_v2_ptsz) \
    X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle) X(cuIpcGetMemHandle) X(cuIpcOpenEventHandle) \
    X(cuIpcOpenMemHandle_v2) X(cuLinkAddFile_v2) \
    X(cuCtxCreate_v3) X(cuCtxCreate_v4) X(cuCtxDisablePeerAccess) X(cuCtxEnablePeerAccess) \
    X(cuCtxGetApiVersion) X(cuCtxGetCacheConfig) X(cuCtxGetFlags) X(cuCtxGetId) X(cuCtxGetLimit) \
    X(cuCtxGetSharedMemConfig) X(cuCtxResetPersistingL2Cache) X(cuCtxSetCacheConfig) X(cuCtxSetFlags) \
    X(cuCtxSetLimit) X(cuCtxSetSharedMemConfig) X(cuDeviceCanAccessPeer) X(cuDeviceComputeCapability) \
    X(cuDeviceGetByPCIBusId) X(cuDeviceGetDefaultMemPool) X(cuDeviceGetExecAffinitySupport) \
    X(cuDeviceGetLuid) X(cuDeviceGetMemPool) X(cuDeviceGetP2PAttribute) X(cuDeviceGetPCIBusId) \
    X(cuDevicePrimaryCtxSetFlags_v2) X(cuDeviceSetMemPool) X(cuEventElapsedTime_v2) \
    X(cuEventRecordWithFlags) X(cuFuncGetModule) X(cuFuncGetName) X(cuFuncGetParamInfo) X(cuFuncIsLoaded) \
    X(cuFuncLoad) X(cuFuncSetSharedMemConfig) X(cuGraphAddChildGraphNode) X(cuGraphAddDependencies) \
    X(cuGraphAddDependencies_v2) X(cuGraphAddEmptyNode) X(cuGraphAddEventRecordNode) \
    X(cuGraphAddEventWaitNode) X(cuGraphAddHostNode) X(cuGraphAddKernelNode) X(cuGraphAddKernelNode_v2) \
    X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphChildGraphNodeGetGraph) X(cuGraphClone) \
    X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphDestroyNode) X(cuGraphEventRecordNodeGetEvent) \
    X(cuGraphEventRecordNodeSetEvent) X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent) \
    X(cuGraphExecDestroy) X(cuGraphExecEventRecordNodeSetEvent) X(cuGraphExecEventWaitNodeSetEvent) \
    X(cuGraphExecGetFlags) X(cuGraphExecHostNodeSetParams) X(cuGraphExecKernelNodeSetParams) \
    X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecMemcpyNodeSetParams) X(cuGraphExecMemsetNodeSetParams) \
    X(cuGraphExecUpdate) X(cuGraphExecUpdate_v2) X(cuGraphGetEdges) X(cuGraphGetEdges_v2) X(cuGraphGetNodes) \
    X(cuGraphGetRootNodes) X(cuGraphHostNodeGetParams) X(cuGraphHostNodeSetParams) \
    X(cuGraphInstantiateWithFlags) X(cuGraphInstantiateWithParams) X(cuGraphInstantiate_v2) \
    X(cuGraphKernelNodeGetParams) X(cuGraphKernelNodeGetParams_v2) X(cuGraphKernelNodeSetParams) \
    X(cuGraphKernelNodeSetParams_v2) X(cuGraphLaunch) X(cuGraphMemcpyNodeSetParams) \
    X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) X(cuGraphNodeFindInClone) \
    X(cuGraphNodeGetDependencies) X(cuGraphNodeGetDependencies_v2) X(cuGraphNodeGetDependentNodes) \
    X(cuGraphNodeGetDependentNodes_v2) X(cuGraphNodeGetEnabled) X(cuGraphNodeGetType) \
    X(cuGraphNodeSetEnabled) X(cuGraphRemoveDependencies) X(cuGraphRemoveDependencies_v2) X(cuGraphUpload) \
    X(cuKernelGetAttribute) X(cuKernelGetFunction) X(cuKernelGetLibrary) X(cuKernelGetName) \
    X(cuKernelGetParamInfo) X(cuKernelSetAttribute) X(cuKernelSetCacheConfig) X(cuLaunchHostFunc) \
    X(cuLibraryEnumerateKernels) X(cuLibraryGetGlobal) X(cuLibraryGetKernel) X(cuLibraryGetKernelCount) \
    X(cuLibraryGetManaged) X(cuLibraryGetModule) X(cuLibraryLoadData) X(cuLibraryLoadFromFile) \
    X(cuLibraryUnload) X(cuMemAdvise) X(cuMemAdvise_v2) X(cuMemAllocAsync) X(cuMemAllocFromPoolAsync) \
    X(cuMemAllocManaged) X(cuMemAllocPitch_v2) X(cuMemFreeAsync) X(cuMemHostGetFlags) \
    X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemPoolCreate) X(cuMemPoolDestroy) \
    X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute) X(cuMemPoolTrimTo) X(cuMemPrefetchAsync) \
    X(cuMemPrefetchAsync_v2) X(cuMemcpy2DAsync_v2) X(cuMemcpy2DUnaligned_v2) X(cuMemcpy2D_v2) \
    X(cuMemcpy3DAsync_v2) X(cuMemcpy3D_v2) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) X(cuMemsetD2D16Async) \
    X(cuMemsetD2D16_v2) X(cuMemsetD2D32Async) X(cuMemsetD2D32_v2) X(cuMemsetD2D8Async) X(cuMemsetD2D8_v2) \
    X(cuModuleEnumerateFunctions) X(cuModuleGetFunctionCount) X(cuModuleGetLoadingMode) X(cuModuleLoad) \
    X(cuModuleLoadFatBinary) X(cuOccupancyAvailableDynamicSMemPerBlock) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) X(cuOccupancyMaxPotentialBlockSize) \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags) X(cuPointerGetAttribute) X(cuPointerGetAttributes) \
    X(cuPointerSetAttribute) X(cuProfilerStart) X(cuProfilerStop) X(cuStreamAddCallback) \
    X(cuStreamAttachMemAsync) X(cuStreamBeginCapture) X(cuStreamBeginCaptureToGraph) \
    X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuStreamGetCaptureInfo_v2) \
    X(cuStreamGetCaptureInfo_v3) X(cuStreamGetCtx) X(cuStreamGetDevice) X(cuStreamGetFlags) X(cuStreamGetId) \
    X(cuStreamGetPriority) X(cuStreamIsCapturing) X(cuStreamUpdateCaptureDependencies) \
    X(cuStreamUpdateCaptureDependencies_v2) X(cuStreamWaitValue32_v2) X(cuStreamWaitValue64_v2) \
    X(cuStreamWriteValue32_v2) X(cuStreamWriteValue64_v2) X(cuThreadExchangeStreamCaptureMode) \
    X(cuGraphDebugDotPrint) X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute) \
    X(cuGraphKernelNodeSetAttribute) X(cuMemRangeGetAttribute) X(cuMemRangeGetAttributes) \
    X(cuStreamCopyAttributes) X(cuStreamGetAttribute) X(cuStreamSetAttribute) \
    X(cuArray3DCreate_v2) X(cuArray3DGetDescriptor_v2) X(cuArrayCreate_v2) X(cuArrayDestroy) \
    X(cuArrayGetDescriptor_v2) X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) \
    X(cuMipmappedArrayGetLevel) X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc) \
    X(cuTexObjectGetResourceViewDesc) X(cuTexObjectGetTextureDesc) X(cuSurfObjectCreate) \
    X(cuSurfObjectDestroy) X(cuSurfObjectGetResourceDesc) X(cuMemcpyHtoA_v2) X(cuMemcpyAtoH_v2) \
    X(cuMemcpyHtoAAsync_v2) X(cuMemcpyAtoHAsync_v2) X(cuMemcpyDtoA_v2) X(cuMemcpyAtoD_v2) X(cuMemcpyAtoA_v2) \
    X(cuImportExternalMemory) X(cuExternalMemoryGetMappedBuffer) \
    X(cuExternalMemoryGetMappedMipmappedArray) X(cuDestroyExternalMemory) X(cuImportExternalSemaphore) \
    X(cuSignalExternalSemaphoresAsync) X(cuWaitExternalSemaphoresAsync) X(cuDestroyExternalSemaphore)

enum {
#define X(name) E_##name,
    SIM_ENTRIES(X)
#undef X
    E_COUNT
};

#define SIM_API SIM_EXPORT int
int sim_enter(int entry,
              bool needs_init); /* counts the call, injects failures, takes the lock; not 0: return it */
int sim_count(int entry);               /* counts the call, injects failures */
int sim_leave(int code);                         /* releases the lock */
#define ENTER(name) do { int failed_ = sim_enter(E_##name, true); if (failed_) return failed_; } while (0)
#define leave(code) sim_leave(code)

/* --- handles.c: what the caller holds; a handle is never given out twice ---------------------- */

typedef enum sim_handle_kind {
    H_FREE, H_CONTEXT, H_MODULE, H_FUNCTION, H_STREAM, H_EVENT, H_LINK, H_GRAPH, H_NODE, H_EXEC, H_LIBRARY,
    H_KERNEL, H_POOL, H_PHYSICAL, H_OBJECT, H_ARRAY, H_MIPMAP, H_TEXTURE, H_SURFACE, H_EXTERNAL
} sim_handle_kind;
typedef struct sim_handle {
    void *object;                      /* NULL: destroyed */
    uint64_t call;                     /* the driver call that made it: its number, */
    uint16_t kind, entry;              /* its function */
} sim_handle;
sim_handle *sim_handle_new(sim_handle_kind kind, void *object);      /* NULL: out of memory */
void *sim_handle_get(sim_handle_kind kind, const void *handle);      /* NULL: no live handle of that kind */
const sim_handle *sim_handle_of_any_kind(const void *handle);         /* of any kind; NULL: no handle */
void  sim_handle_drop(sim_handle *h);
void  sim_handles_release(void);
void  sim_describe_creator(const sim_handle *h, char *out, size_t cap); /* "cuEventCreate call 3" */
void sim_initialised(void);
const char *sim_entry_name(int entry);
int   sim_current_entry(uint64_t *call); /* the entry point that runs in this thread; its call number */
void  sim_api_pause(void);             /* releases the driver's lock; sim_api_resume takes it again */
void  sim_api_resume(void);
void  sim_api_wait(unsigned milliseconds);
void  sim_api_signal(void);
extern _Thread_local bool sim_in_host_function;

typedef struct sim_driver_options { int lag, host_races, stream_races, leaks, stale_handles; }
    sim_driver_options;
extern sim_driver_options sim_driver_option;

/* --- stream.c: queued work -------------------------------------------------------------------- */

/* Vector clock: what is ordered before a piece of work: for each stream, by its `id`, the number of pieces. */
typedef struct sim_order { uint32_t references, count; uint64_t at[]; } sim_order;

typedef struct sim_stream {
    sim_handle *handle;                /* NULL: a default stream */
    struct sim_stream *next;
    sim_context *context;
    unsigned flags;
    int priority;
    uint8_t attributes[4][64];         /* stream_attributes.c: as the caller gave them */
    uint32_t id;                       /* index in vector clocks */
    bool legacy, blocking, destroyed, busy;
    struct sim_work *head, *tail;
    uint64_t queued, done, first;      /* pieces of work queued, finished; `queued` when the stream was made */
    sim_order *clock;
    uint64_t host_seen;
    uint64_t serial;                   /* for cuStreamGetId and reports */
    struct sim_capture *capture;       /* graph.c */
    struct sim_node **capture_deps; uint32_t capture_dep_count; /* nodes that the next captured node depends on */
} sim_stream;

typedef struct sim_event {
    sim_handle *handle;
    struct sim_event *next;
    sim_context *context;
    unsigned flags;
    uint64_t time;
    uint64_t recorded, finished;       /* serials of records: last requested, last executed */
    sim_stream *stream; uint64_t seq;  /* of the last record, valid while it has not finished */
    uint32_t id;
    sim_order *clock;
    uint32_t pending;                  /* queued pieces of work that name it */
    struct sim_capture *capture; struct sim_node **capture_deps; uint32_t capture_dep_count;
} sim_event;

typedef enum sim_work_kind { W_KERNEL, W_COPY, W_SET, W_HOST, W_RECORD, W_WAIT, W_ALLOC, W_FREE, W_VALUE,
                             W_EMPTY, W_GRAPH } sim_work_kind;
typedef struct sim_dep { sim_stream *stream; uint64_t seq; } sim_dep;

/* Rows of `width` bytes: `height` of them `pitch` apart, `depth` such planes `slice` apart. */
typedef struct sim_copy_side { uint64_t address; size_t pitch, slice; } sim_copy_side;
typedef struct sim_copy {
    sim_copy_side to, from;
    size_t width, height, depth;
    uint8_t *staged;                   /* copy of the source, taken at the call */
    uint64_t checksum, executed, host_calls;         /* of a pinned source, at the call */
    bool checked;
    int guard;                         /* of a pinned destination: number for guard.c */
} sim_copy;
typedef struct sim_set { sim_copy_side to; size_t width, height; uint32_t value, bytes; } sim_set;

typedef struct sim_work {
    struct sim_work *next;
    sim_stream *stream;
    uint64_t seq, call;
    sim_order *clock;
    sim_dep *deps, inline_deps[2]; uint32_t dep_count;
    uint16_t entry; uint8_t kind;
    bool synchronous;                  /* the host waits for it */
    bool programmatic;                 /* W_KERNEL: may begin before piece `after` of its stream ends */
    uint64_t after;
    sim_handle *function;              /* W_KERNEL */
    union {
        sim_launch launch;             /* its parameters follow the struct */
        sim_copy copy;
        sim_set set;
        struct { void (*call)(void *); void (*callback)(void *, int, void *); void *argument; } host;
        struct { sim_event *event; uint64_t serial; } event;
        struct { uint64_t address; } release;    /* W_ALLOC (graphs only), W_FREE; W_EMPTY: from a pool */
        struct { uint64_t address, value; unsigned flags; uint8_t bytes; bool write; } value;
        struct sim_graph *graph;       /* W_GRAPH: a child, in graphs only */
    } u;
} sim_work;

sim_work *sim_work_new(sim_work_kind kind, size_t more);              /* `more` bytes follow the struct */
sim_work *sim_work_copy(const sim_work *w);
void sim_work_free(sim_work *w);
/* The stream of a handle (NULL and 1: legacy, 2: this thread's); NULL: no such stream. */
sim_stream *sim_stream_of(sim_context *c, const void *handle);
sim_stream *sim_stream_legacy(sim_context *c);
int  sim_submit(sim_stream *s, sim_work *w);                  /* queues or captures; owns the work from then on */
int  sim_submit_wait(sim_stream *s, sim_work *w);             /* the same, and waits for it */
int  sim_enqueue(sim_stream *s, sim_work *w);                 /* never captures */
int  sim_drain(sim_stream *s, uint64_t seq);
int  sim_synchronise(sim_context *c);                         /* all streams */
void sim_streams_free(sim_context *c);
void sim_streams_shutdown(void);
void sim_idle_call(void);
void sim_context_progress(sim_context *c);
void sim_contexts_progress(void);
void sim_clock_drop(sim_order *k);
sim_event *sim_event_of(const void *handle);
void sim_label(const sim_work *w, char *out, size_t cap);     /* for findings */
bool sim_is_capturing(sim_stream *s);
int  sim_forbidden_in_capture(sim_context *c);                /* 900 while a capture forbids unsafe calls */
bool sim_legacy_in_capture(sim_context *c);                   /* invalidates the capture; true: return 906 */
int  sim_capture_work(sim_stream *s, sim_work *w);            /* graph.c */
int  sim_capture_record(sim_stream *s, sim_event *e);
int  sim_capture_wait(sim_stream *s, sim_event *e);
void sim_capture_invalidate(sim_stream *s);
void sim_capture_abandon(sim_stream *s);
void sim_graphs_free(sim_context *c);
typedef void (*sim_leak_fn)(const char *what, const sim_handle *h);
void sim_graphs_report(sim_context *c, sim_leak_fn tell);
void sim_libraries_free(sim_context *c);                      /* libraries.c */
void sim_libraries_report(sim_context *c, sim_leak_fn tell);
void sim_pools_free(sim_context *c);                          /* allocate.c */
void sim_pool_returned(sim_allocation *a);
sim_allocation *sim_memory_of_call(uint64_t address);         /* of this base address, live in the order of calls */
int  sim_graph_alloc(sim_context *c, uint64_t size, sim_work **out);
int  sim_graph_free(uint64_t address, sim_work **out);
void sim_streams_stop(void);           /* ends the background thread; the caller does not hold the lock */

/* copy.c */
int  sim_copy_run(sim_work *w);
int  sim_set_run(sim_work *w);
int  sim_copy_of_3d(const void *description, sim_copy *k);    /* a CUDA_MEMCPY3D */
void sim_copy_to_3d(const sim_copy *k, void *description);
int  sim_set_check(const sim_set *k);

/* guard.c */
int  sim_guard_raise(const sim_work *w, const sim_allocation *a, uint64_t lo, uint64_t hi);
void sim_guard_drop(int number);
void sim_guards_down(void);
void sim_guards_up(void);
void sim_guards_stop(void);
extern _Thread_local bool sim_in_driver;

/* order.c: which stream touched which memory, and whether the accesses are ordered */
void sim_order_range(const sim_work *w, sim_allocation *a, uint64_t lo, uint64_t hi, size_t pitch, size_t
    width,
                     bool write);
extern uint64_t sim_order_writes, sim_host_calls, sim_checked_copies;
extern uint64_t sim_times_cleared;
extern bool sim_running_early;         /* work runs although the host does not wait for it */
bool sim_order_is_checked(const sim_work *w);
void sim_order_kernel(const sim_work *w, sim_launch *l);
bool sim_clock_covers(const sim_order *k, uint32_t id, uint64_t seq);
bool sim_streams_idle(const sim_context *c);                  /* no work is queued */
bool sim_host_knows(uint32_t id, uint64_t seq);

/* driver.c: a launch, for all entry points that ask for one */
typedef struct sim_launch_request {
    const void *function;
    uint32_t grid[3], block[3], dynamic;
    const void *stream;
    void *const *params, *const *extra;
    bool cooperative;
    const uint32_t *cluster;           /* NULL: the kernel's own */
    bool programmatic;
} sim_launch_request;
int  sim_launch_new(sim_context *c, const sim_launch_request *r, sim_work **out);
int  sim_launch_kernel(sim_context *c, const void *function, const uint32_t grid[3], const uint32_t block[3],
                       uint32_t dynamic, const void *stream, void *const *params, void *const *extra,
                       bool cooperative, const uint32_t *cluster);
int  sim_launch_submit(sim_context *c, const sim_launch_request *r);
int  sim_launch_work(sim_work *w);     /* runs it now; returns a CUresult */
sim_kernel *sim_kernel_of(sim_context *c, const void *handle);
uint32_t sim_max_threads(const sim_kernel *k);                /* functions.c */
uint32_t sim_register_estimate(const sim_kernel *k);
uint32_t sim_occupancy(const sim_kernel *k, uint32_t threads, uint64_t dynamic);      /* blocks per SM */
uint32_t sim_dynamic_limit(const sim_kernel *k);
int  sim_function_attribute(const sim_kernel *k, int attribute, int *out);
int  sim_function_set_attribute(sim_kernel *k, int attribute, int value);

/* driver.c: modules, for libraries and links */
typedef struct sim_jit {
    unsigned count;
    const int *options;
    void **values;
    char *logs[2];                     /* information, errors */
    size_t sizes[2];
    unsigned target;
    bool verbose;
    uint64_t started;
} sim_jit;
int  sim_jit_options(unsigned count, const int *options, void *const *values, sim_jit *out);
void sim_jit_finish(sim_jit *j);
int  sim_load_image(sim_context *c, const void *image, sim_jit *j, sim_module **out);
char *sim_read_file(const char *path, size_t *length);        /* caller frees; ends with NULs */
bool sim_is_fatbinary(const void *image);                     /* fatbinary.c */
int  sim_fatbinary_text(const void *image, const char **text, size_t *length);
int  sim_image_text(const void *image, const char **text, size_t *length);
uint64_t sim_text_checksum(const char *text, size_t n);
sim_module *sim_module_of(sim_context *c, const void *handle);
void sim_module_unload(sim_context *c, sim_module *m);
sim_handle *sim_function_handle(sim_kernel *k);
int  sim_module_function(sim_module *m, const char *name, sim_kernel **out);
int  sim_module_global(const sim_module *m, const char *name, bool managed, uint64_t *address, size_t *size);

typedef struct sim_link {
    sim_handle *handle;
    struct sim_link *next;
    struct sim_input *inputs;
    uint8_t *cubin;
    size_t cubin_size;
    char *log;
    size_t log_size;
    uint32_t errors;
    sim_context *context;
} sim_link;

sim_context *sim_current(void);
int  sim_usable_context(sim_context **out);      /* the current context, or the error that prevents its use */
sim_context *sim_context_of(const void *handle);
void sim_links_free(sim_context *c);

int sim_cluster_shape(const sim_kernel *k, sim_launch *l, const uint32_t grid[3], const uint32_t *wish);

/* The "cubin" of this driver: this header, then the PTX text. */
#define SIM_CUBIN_MAGIC "PTXSIMCB"
typedef struct sim_cubin { char magic[8]; uint32_t version, sm; uint64_t length, check; } sim_cubin;

#define USABLE() sim_context *c; int bad_ = sim_usable_context(&c); if (bad_) return leave(bad_)

SIM_PRIVATE_END
#endif
