/* cudart.c - the part of the CUDA Runtime API that ordinary programs use, over the driver: whole programs
 * that nvcc has compiled run on the CPU driver.
 *
 *   make runtime
 *   nvcc -cudart shared --no-compress -gencode arch=compute_90,code=compute_90 prog.cu -o prog
 *   LD_LIBRARY_PATH=build ./prog
 *
 * Built where the toolkit is; its headers check the signatures. A runtime keeps the primary context, loads a
 * program's fat binaries when one of their kernels or variables is first used, and remembers each thread's
 * last error; all else is the driver's. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- what a program registers before main ------------------------------------------------------ */

typedef struct image {
    struct image *next;
    const void *fat;
    CUmodule module;
} image;
typedef struct entry {
    struct entry *next;
    const void *host; /* the stub, or the host's copy of a variable */
    const char *name;
    image *from;
    CUfunction function;
} entry;
static image *images;
static entry *functions, *variables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread cudaError_t last;

static cudaError_t keep(CUresult code) {
    if (code) last = (cudaError_t)code;
    return (cudaError_t)code;
}

void **__cudaRegisterFatBinary(void *fat) {
    image *m = calloc(1, sizeof *m);
    if (!m) abort();
    *m = (image){images, fat, NULL};
    return (void **)(images = m);
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; } /* the context goes with the process */
char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

static void add(entry **list, void **handle, const void *host, const char *name) {
    entry *e = calloc(1, sizeof *e);
    if (!e) abort();
    *e = (entry){*list, host, name, (image *)handle, NULL};
    *list = e;
}
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp) {
    (void)device;
    (void)limit;
    (void)tid;
    (void)bid;
    (void)block;
    (void)grid;
    (void)warp;
    add(&functions, handle, host, name);
}
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size,
                       int constant, int global) {
    (void)device;
    (void)ext;
    (void)size;
    (void)constant;
    (void)global;
    add(&variables, handle, host, name);
}

/* --- the primary context, modules --------------------------------------------------------------- */

static CUresult ready(void) {
    static CUcontext primary;
    CUcontext now = NULL;
    CUresult code = cuInit(0);
    pthread_mutex_lock(&lock);
    if (!code && !primary) code = cuDevicePrimaryCtxRetain(&primary, 0);
    pthread_mutex_unlock(&lock);
    if (!code) code = cuCtxGetCurrent(&now);
    return code || now ? code : cuCtxSetCurrent(primary);
}
#define CALL(expression)                                                                                     \
    do {                                                                                                     \
        CUresult code_ = ready();                                                                            \
        return keep(code_ ? code_ : (expression));                                                           \
    } while (0)

static CUresult module_of(image *m) {
    pthread_mutex_lock(&lock);
    CUresult code = m->module ? CUDA_SUCCESS : cuModuleLoadData(&m->module, m->fat);
    pthread_mutex_unlock(&lock);
    return code;
}

static CUresult function_of(const void *host, CUfunction *out) {
    entry *e = functions;
    CUresult code = ready();
    while (e && e->host != host) e = e->next;
    if (code || !e) return code ? code : (CUresult)cudaErrorInvalidDeviceFunction;
    if (!e->function && !(code = module_of(e->from)))
        code = cuModuleGetFunction(&e->function, e->from->module, e->name);
    *out = e->function;
    return code;
}

static CUresult symbol_of(const void *host, CUdeviceptr *at, size_t *size) {
    const entry *e = variables;
    CUresult code = ready();
    while (e && e->host != host) e = e->next;
    if (code || !e) return code ? code : (CUresult)cudaErrorInvalidSymbol;
    code = module_of(e->from);
    return code ? code : cuModuleGetGlobal(at, size, e->from->module, e->name);
}

/* --- launches ------------------------------------------------------------------------------------ */

static __thread struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed[8];
static __thread unsigned depth;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
    if (depth == sizeof pushed / sizeof *pushed) return 1;
    pushed[depth].grid = grid, pushed[depth].block = block, pushed[depth].shared = shared;
    pushed[depth++].stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (!depth) return cudaErrorMissingConfiguration;
    *grid = pushed[--depth].grid, *block = pushed[depth].block, *shared = pushed[depth].shared;
    *(cudaStream_t *)stream = pushed[depth].stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    *kernel = (cudaKernel_t)(uintptr_t)host;
    return cudaSuccess;
}

/* What no kernel may be launched with has an error of the runtime's own. */
static CUresult shape(dim3 grid, dim3 block) {
    unsigned long long threads = (unsigned long long)block.x * block.y;
    bool fine = grid.x && grid.y && grid.z && threads && block.z && threads <= 1024 && block.z <= 64
                && threads * block.z <= 1024 && grid.x < 1u << 31 && grid.y < 65536 && grid.z < 65536;
    return fine ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidConfiguration;
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream) {
    CUfunction f;
    CUresult code = function_of(host, &f);
    if (!code) code = shape(grid, block);
    return keep(code ? code
                     : cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared,
                                      stream, args, NULL));
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream) {
    CUfunction f;
    CUresult code = function_of(host, &f);
    if (!code) code = shape(grid, block);
    return keep(code ? code
                     : cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                 (unsigned)shared, stream, args));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args) {
    CUfunction f;
    CUlaunchConfig d = {c->gridDim.x,
                        c->gridDim.y,
                        c->gridDim.z,
                        c->blockDim.x,
                        c->blockDim.y,
                        c->blockDim.z,
                        (unsigned)c->dynamicSmemBytes,
                        c->stream,
                        (CUlaunchAttribute *)(void *)c->attrs,
                        c->numAttrs};
    CUresult code = function_of(host, &f);
    if (!code) code = shape(c->gridDim, c->blockDim);
    return keep(code ? code : cuLaunchKernelEx(&d, f, args, NULL));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *host) {
    CUfunction f;
    int v[10] = {0};
    CUresult code = function_of(host, &f);
    for (int k = 0; k < 10 && !code; k++) code = cuFuncGetAttribute(&v[k], (CUfunction_attribute)k, f);
    memset(out, 0, sizeof *out);
    out->maxThreadsPerBlock = v[0], out->sharedSizeBytes = (size_t)v[1], out->constSizeBytes = (size_t)v[2];
    out->localSizeBytes = (size_t)v[3], out->numRegs = v[4], out->ptxVersion = v[5],
    out->binaryVersion = v[6];
    out->cacheModeCA = v[7], out->maxDynamicSharedSizeBytes = v[8], out->preferredShmemCarveout = v[9];
    return keep(code);
}
cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
    CUfunction f;
    CUresult code = function_of(host, &f);
    return keep(code ? code : cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value));
}
cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) {
    (void)host;
    (void)config;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *host, int block,
                                                                   size_t shared, unsigned flags) {
    CUfunction f;
    CUresult code = function_of(host, &f);
    return keep(code ? code
                     : cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, block, shared, flags));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *host, int block,
                                                          size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, host, block, shared, 0);
}

/* --- memory ---------------------------------------------------------------------------------------- */

#define D(p) ((CUdeviceptr)(uintptr_t)(p))
cudaError_t cudaMalloc(void **p, size_t n) {
    CUdeviceptr d = 0;
    CUresult code = ready();
    if (!code && n) code = cuMemAlloc(&d, n);
    *p = (void *)(uintptr_t)d;
    return keep(code);
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) {
    CUdeviceptr d = 0;
    CUresult code = ready();
    if (!code && n) code = cuMemAllocAsync(&d, n, s);
    *p = (void *)(uintptr_t)d;
    return keep(code);
}
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned flags) {
    CUdeviceptr d = 0;
    CUresult code = ready();
    if (!code) code = cuMemAllocManaged(&d, n, flags);
    *p = (void *)(uintptr_t)d;
    return keep(code);
}
cudaError_t cudaFree(void *p) { CALL(p ? cuMemFree(D(p)) : CUDA_SUCCESS); }
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { CALL(cuMemFreeAsync(D(p), s)); }
cudaError_t cudaMallocHost(void **p, size_t n) { CALL(cuMemHostAlloc(p, n, 0)); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags) { CALL(cuMemHostAlloc(p, n, flags)); }
cudaError_t cudaFreeHost(void *p) { CALL(p ? cuMemFreeHost(p) : CUDA_SUCCESS); }
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) { CALL(cuMemGetInfo(left, all)); }
cudaError_t cudaMemset(void *p, int v, size_t n) {
    CALL(n ? cuMemsetD8(D(p), (unsigned char)v, n) : CUDA_SUCCESS);
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) {
    CALL(n ? cuMemsetD8Async(D(p), (unsigned char)v, n, s) : CUDA_SUCCESS);
}

static CUresult copy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, bool async,
                     cudaStream_t s) {
    if (!n) return CUDA_SUCCESS;
    switch (kind) {
    case cudaMemcpyHostToHost: memcpy(to, from, n); return CUDA_SUCCESS;
    case cudaMemcpyHostToDevice:
        return async ? cuMemcpyHtoDAsync(D(to), from, n, s) : cuMemcpyHtoD(D(to), from, n);
    case cudaMemcpyDeviceToHost:
        return async ? cuMemcpyDtoHAsync(to, D(from), n, s) : cuMemcpyDtoH(to, D(from), n);
    case cudaMemcpyDeviceToDevice:
        return async ? cuMemcpyDtoDAsync(D(to), D(from), n, s) : cuMemcpyDtoD(D(to), D(from), n);
    default: return async ? cuMemcpyAsync(D(to), D(from), n, s) : cuMemcpy(D(to), D(from), n);
    }
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
    CALL(copy(to, from, n, kind, false, NULL));
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy(to, from, n, kind, true, s));
}
cudaError_t cudaGetSymbolAddress(void **p, const void *host) {
    CUdeviceptr d = 0;
    CUresult code = symbol_of(host, &d, NULL);
    *p = (void *)(uintptr_t)d;
    return keep(code);
}
/* n bytes of a variable from `offset` on. */
static CUresult part_of(const void *host, size_t n, size_t offset, void **at) {
    CUdeviceptr d = 0;
    size_t size = 0;
    CUresult code = symbol_of(host, &d, &size);
    *at = (void *)(uintptr_t)(d + offset);
    return code ? code : offset > size || n > size - offset ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t n, size_t offset,
                               enum cudaMemcpyKind kind) {
    void *at;
    CUresult code = part_of(host, n, offset, &at);
    return keep(code ? code : copy(at, from, n, kind, false, NULL));
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t n, size_t offset,
                                 enum cudaMemcpyKind kind) {
    void *at;
    CUresult code = part_of(host, n, offset, &at);
    return keep(code ? code : copy(to, at, n, kind, false, NULL));
}

/* --- streams, events, the device, errors ------------------------------------------------------------ */

cudaError_t cudaStreamCreate(cudaStream_t *s) { CALL(cuStreamCreate(s, 0)); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) { CALL(cuStreamCreate(s, flags)); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { CALL(cuStreamDestroy(s)); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { CALL(cuStreamSynchronize(s)); }
cudaError_t cudaStreamQuery(cudaStream_t s) { CALL(cuStreamQuery(s)); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    CALL(cuStreamWaitEvent(s, e, flags));
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { CALL(cuEventCreate(e, 0)); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) { CALL(cuEventCreate(e, flags)); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { CALL(cuEventRecord(e, s)); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { CALL(cuEventSynchronize(e)); }
cudaError_t cudaEventQuery(cudaEvent_t e) { CALL(cuEventQuery(e)); }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    CALL(cuEventElapsedTime(ms, a, b));
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { CALL(cuEventDestroy(e)); }
cudaError_t cudaDeviceSynchronize(void) { CALL(cuCtxSynchronize()); }
cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    CALL(CUDA_SUCCESS);
}
cudaError_t cudaSetDevice(int device) { CALL(device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS); }
cudaError_t cudaGetDeviceCount(int *n) { CALL(cuDeviceGetCount(n)); }
cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int device) {
    CALL(cuDeviceGetAttribute(v, (CUdevice_attribute)a, device));
}
cudaError_t cudaDeviceReset(void) { CALL(cuCtxSynchronize()); }
cudaError_t cudaDriverGetVersion(int *v) { return keep(cuDriverGetVersion(v)); }
cudaError_t cudaRuntimeGetVersion(int *v) {
    *v = CUDART_VERSION;
    return cudaSuccess;
}

static int of_device(CUdevice_attribute a) {
    int v = 0;
    cuDeviceGetAttribute(&v, a, 0);
    return v;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    memset(p, 0, sizeof *p);
    CUresult code = ready();
    if (!code) code = cuDeviceGetName(p->name, sizeof p->name, device);
    if (!code) code = cuDeviceTotalMem(&p->totalGlobalMem, device);
    p->major = of_device(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p->minor = of_device(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p->multiProcessorCount = of_device(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p->warpSize = 32, p->maxThreadsPerBlock = 1024;
    p->sharedMemPerBlock = (size_t)of_device(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p->sharedMemPerBlockOptin = (size_t)of_device(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p->maxThreadsPerMultiProcessor = of_device(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p->regsPerBlock = 65536, p->l2CacheSize = of_device(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return keep(code);
}

cudaError_t cudaPeekAtLastError(void) { return last; }
cudaError_t cudaGetLastError(void) {
    cudaError_t e = last;
    last = cudaSuccess;
    return e;
}
const char *cudaGetErrorString(cudaError_t e) {
    const char *text = NULL;
    return cuGetErrorString((CUresult)e, &text) || !text ? "unrecognized error code" : text;
}
const char *cudaGetErrorName(cudaError_t e) {
    const char *text = NULL;
    return cuGetErrorName((CUresult)e, &text) || !text ? "unrecognized error code" : text;
}
