/* driver.h - what the files with the driver's entry points share (driver.c, context.c, launch.c).
 *
 * An entry point: SIM_API cuFoo(...) { ENTER(cuFoo); ...; return leave(code); } and its name in
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
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY = 209,
    CU_INVALID_PTX = 218,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
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
    X(cuLaunchCooperativeKernel) X(cuLaunchKernelEx) X(cuOccupancyMaxActiveClusters) \
    X(cuOccupancyMaxPotentialClusterSize) X(cuTensorMapEncodeTiled) X(cuTensorMapEncodeIm2col) \
    X(cuTensorMapReplaceAddress) X(cuGetErrorName) X(cuGetErrorString) X(cuLinkCreate_v2) \
    X(cuLinkAddData_v2) X(cuLinkComplete) X(cuLinkDestroy) X(cuGetProcAddress_v2)

enum {
#define X(name) E_##name,
    SIM_ENTRIES(X)
#undef X
    E_COUNT
};

#define SIM_API SIM_EXPORT int
int sim_enter(int entry,
              bool needs_init); /* counts, injects failures, takes the lock; not 0: return it at once */
int sim_leave(int code);                         /* releases the lock */
#define ENTER(name) do { int failed_ = sim_enter(E_##name, true); if (failed_) return failed_; } while (0)
#define leave(code) sim_leave(code)

typedef struct sim_stream {
    uint32_t magic;
    struct sim_stream *next;
    unsigned flags;
    int priority;
    sim_context *context;
} sim_stream;
typedef struct sim_event {
    uint32_t magic;
    struct sim_event *next;
    unsigned flags;
    uint64_t time;
    bool recorded;
    sim_context *context;
} sim_event;
typedef struct sim_link {
    uint32_t magic;
    struct sim_link *next;
    char *text;
    size_t length;
    uint8_t *cubin;
    size_t cubin_size;
    char *log;
    size_t log_size, *log_used;
    sim_context *context;
} sim_link;

sim_context *sim_current(void);
int  sim_usable(sim_context **out);              /* the current context, or why it cannot be used */
bool sim_context_exists(const sim_context *c);
bool sim_stream_valid(const sim_context *c, const void *stream);
sim_module *sim_module_of(const void *handle);
void sim_links_free(sim_context *c);

/* launches: driver.c; clusters: launch.c */
sim_kernel *sim_kernel_of(sim_context *c, const void *handle);
uint32_t sim_occupancy(const sim_kernel *k, uint32_t threads, uint64_t dynamic);
int sim_launch_kernel(sim_context *c, void *function, const uint32_t grid[3], const uint32_t block[3],
                      uint32_t dynamic, const void *stream, void *const *params, void *const *extra,
                      bool cooperative, const uint32_t *cluster);
int sim_cluster_shape(const sim_kernel *k, sim_launch *l, const uint32_t grid[3], const uint32_t *wish);

/* A "cubin" of this driver: this header and the PTX text. */
#define SIM_CUBIN_MAGIC "PTXSIMCB"
typedef struct sim_cubin { char magic[8]; uint32_t version, sm; uint64_t length, check; } sim_cubin;

SIM_PRIVATE_END
#endif
