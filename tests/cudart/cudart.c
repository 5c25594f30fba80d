/* cudart.c - the CUDA Runtime API over the driver: whole programs that nvcc has compiled run on the CPU driver.
 *
 *   make runtime
 *   nvcc -cudart shared --no-compress -gencode arch=compute_90,code=compute_90 prog.cu -o prog
 *   LD_LIBRARY_PATH=build ./prog
 *
 * Built where the toolkit is; its headers check the signatures. A runtime keeps the primary context, loads a
 * program's fat binaries when one of their kernels or variables is first used, and remembers each thread's
 * last error; all else is the driver's. This file: what programs register, kernels, launches, libraries.
 * streamed.c: functions that take a stream. memory.c, device.c, graphs.c; refused.c: what is not offered. */
#include "cudart.h"

/* --- what a program registers before main ---------------------------------------------------- */

typedef struct loaded {                /* an image, in one context */
    struct loaded *next;
    CUcontext context;
    CUlibrary library;
} loaded;
typedef struct image {
    struct image *next;
    const void *fat;
    loaded *libraries;
} image;
typedef struct entry {
    struct entry *next;
    const void *host;                  /* the stub, or the host's copy of a variable */
    const char *name;
    image *from;
    void **pointer;                    /* of a managed variable: where the host's code looks for its address */
    CUkernel kernel;                   /* of the last context that asked */
    CUcontext context;
} entry;
static image *images;
static entry *functions, *variables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread cudaError_t last;

cudaError_t runtime_keep(int code) {
    if (code) last = (cudaError_t)code;
    return (cudaError_t)code;
}
cudaError_t cudaPeekAtLastError(void) { return last; }
cudaError_t cudaGetLastError(void) {
    cudaError_t e = last;
    last = cudaSuccess;
    return e;
}

void **__cudaRegisterFatBinary(void *fat) {
    image *m = calloc(1, sizeof *m);
    if (!m) abort();
    pthread_mutex_lock(&lock);
    *m = (image){images, fat, NULL};
    images = m;
    pthread_mutex_unlock(&lock);
    return (void **)m;
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; } /* the context goes with the process */

static entry *add(entry **list, void **handle, const void *host, const char *name) {
    entry *e = calloc(1, sizeof *e);
    if (!e) abort();
    pthread_mutex_lock(&lock);
    *e = (entry){.next = *list, .host = host, .name = name, .from = (image *)handle};
    *list = e;
    pthread_mutex_unlock(&lock);
    return e;
}
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp) {
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add(&functions, handle, host, name);
}
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size,
                       int constant, int global) {
    (void)device, (void)ext, (void)size, (void)constant, (void)global;
    add(&variables, handle, host, name);
}
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size,
                              int constant, int global) {
    (void)device, (void)ext, (void)size, (void)constant, (void)global;
    add(&variables, handle, host, name)->pointer = host;
}
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
    (void)handle, (void)name, (void)host, (void)size; /* is found by its name on the device alone */
}
cudaError_t __cudaRegisterUnifiedTable(void **handle, void *table) {
    (void)handle, (void)table;
    return cudaSuccess;
}

/* --- the primary context, modules ------------------------------------------------------------ */

static CUcontext primary;

CUresult runtime_ready(void) {
    CUcontext now = NULL;
    CUresult code = cuInit(0);
    pthread_mutex_lock(&lock);
    if (!code && !primary) code = cuDevicePrimaryCtxRetain(&primary, 0);
    pthread_mutex_unlock(&lock);
    if (!code) code = cuCtxGetCurrent(&now);
    return code || now ? code : cuCtxSetCurrent(primary);
}

/* The lock is held. */
static CUresult library_of(image *m, CUcontext context, CUlibrary *out) {
    loaded *l = m->libraries;
    while (l && l->context != context) l = l->next;
    if (!l) {
        CUlibrary library;
        CUresult code = cuLibraryLoadData(&library, m->fat, NULL, NULL, 0, NULL, NULL, 0);
        if (code) return code;
        if (!(l = malloc(sizeof *l))) abort();
        *l = (loaded){m->libraries, context, library};
        m->libraries = l;
    }
    *out = l->library;
    return CUDA_SUCCESS;
}

void runtime_unload(void) {
    pthread_mutex_lock(&lock);
    for (image *m = images; m; m = m->next)
        while (m->libraries) {
            loaded *l = m->libraries;
            m->libraries = l->next;
            cuLibraryUnload(l->library);
            free(l);
        }
    for (entry *e = functions; e; e = e->next) e->kernel = NULL, e->context = NULL;
    primary = NULL;
    pthread_mutex_unlock(&lock);
}

/* A registered kernel, in the current context. */
static CUresult kernel_of(const void *host, CUkernel *out) {
    CUcontext context = NULL;
    CUlibrary library;
    CUresult code = runtime_ready();
    if (!code) code = cuCtxGetCurrent(&context);
    if (code) return code;
    pthread_mutex_lock(&lock);
    entry *e = functions;
    while (e && e->host != host) e = e->next;
    if (!e) code = (CUresult)cudaErrorInvalidDeviceFunction;
    else if (!e->kernel || e->context != context) {
        code = library_of(e->from, context, &library);
        if (!code) code = cuLibraryGetKernel(&e->kernel, library, e->name);
        e->context = code ? NULL : context;
        if (code) e->kernel = NULL;
    }
    if (!code) *out = e->kernel;
    pthread_mutex_unlock(&lock);
    return code;
}

/* What callers name a kernel by: the stub, or a kernel of cudaGetKernel or cudaLibraryGetKernel, or a function of
 * cudaGetFuncBySymbol. The driver's handles are known without looking behind them. */
CUresult runtime_function(const void *host, CUfunction *out) {
    CUkernel kernel = NULL;
    CUfunction f;
    int loaded_;
    CUresult code = kernel_of(host, &kernel);
    if (code == (CUresult)cudaErrorInvalidDeviceFunction) {
        if (!cuKernelGetFunction(&f, (CUkernel)(uintptr_t)host)) {
            *out = f;
            return CUDA_SUCCESS;
        }
        f = (CUfunction)(uintptr_t)host;
        if (cuFuncIsLoaded((CUfunctionLoadingState *)&loaded_, f)) return code;
        *out = f;
        return CUDA_SUCCESS;
    }
    *out = (CUfunction)kernel;
    return code;
}

const void *runtime_host_function(CUfunction f) {
    const entry *e;
    pthread_mutex_lock(&lock);
    for (e = functions; e && e->kernel != (CUkernel)f; e = e->next) {}
    const void *host = e ? e->host : (const void *)f;
    pthread_mutex_unlock(&lock);
    return host;
}

CUresult runtime_symbol(const void *host, CUdeviceptr *at, size_t *size) {
    CUcontext context = NULL;
    CUlibrary library;
    CUresult code = runtime_ready();
    if (!code) code = cuCtxGetCurrent(&context);
    if (code) return code;
    pthread_mutex_lock(&lock);
    const entry *e = variables;
    while (e && e->host != host && !(e->pointer && *e->pointer == host)) e = e->next;
    code = e ? library_of(e->from, context, &library) : (CUresult)cudaErrorInvalidSymbol;
    if (!code) code = cuLibraryGetGlobal(at, size, library, e->name);
    pthread_mutex_unlock(&lock);
    return code;
}

/* Where n bytes of a variable from `offset` on lie. */
CUresult runtime_symbol_part(const void *host, size_t n, size_t offset, void **at) {
    CUdeviceptr d = 0;
    size_t size = 0;
    CUresult code = runtime_symbol(host, &d, &size);
    *at = (void *)(uintptr_t)(d + offset);
    return code ? code : offset > size || n > size - offset ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
cudaError_t cudaGetSymbolAddress(void **p, const void *host) {
    CUdeviceptr d = 0;
    CUresult code = runtime_symbol(host, &d, NULL);
    if (p) *p = (void *)(uintptr_t)d;
    return runtime_keep(p ? code : CUDA_ERROR_INVALID_VALUE);
}
cudaError_t cudaGetSymbolSize(size_t *size, const void *host) {
    CUdeviceptr d;
    return runtime_keep(size ? runtime_symbol(host, &d, size) : CUDA_ERROR_INVALID_VALUE);
}

/* Called before a program's first use of a managed variable: the host reads it through a pointer. */
char __cudaInitModule(void **handle) {
    CUdeviceptr d;
    for (const entry *e = variables; e; e = e->next)
        if (e->pointer && e->from == (image *)handle && !runtime_symbol(e->host, &d, NULL))
            *e->pointer = (void *)(uintptr_t)d;
    return 1;
}

/* --- launches -------------------------------------------------------------------------------- */

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

/* For <<<>>>, which keeps it: the stub itself, as kernels end with their context. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
    *kernel = (cudaKernel_t)(uintptr_t)host;
    return cudaSuccess;
}

/* What no kernel may be launched with has an error of the runtime's own. */
CUresult runtime_shape(dim3 grid, dim3 block) {
    unsigned long long threads = (unsigned long long)block.x * block.y;
    bool fine = grid.x && grid.y && grid.z && threads && block.z && threads <= 1024 && block.z <= 64
                && threads * block.z <= 1024 && grid.x < 1u << 31 && grid.y < 65536 && grid.z < 65536;
    return fine ? CUDA_SUCCESS : (CUresult)cudaErrorInvalidConfiguration;
}

void runtime_launch_config(const cudaLaunchConfig_t *c, CUlaunchConfig *out) {
    *out = (CUlaunchConfig){c->gridDim.x,
                            c->gridDim.y,
                            c->gridDim.z,
                            c->blockDim.x,
                            c->blockDim.y,
                            c->blockDim.z,
                            (unsigned)c->dynamicSmemBytes,
                            c->stream,
                            (CUlaunchAttribute *)(void *)c->attrs,
                            c->numAttrs};
}

/* --- kernels --------------------------------------------------------------------------------- */

#define FUNCTION(call)                                                                                       \
    do {                                                                                                     \
        CUfunction f;                                                                                        \
        CUresult code_ = runtime_function(host, &f);                                                         \
        return runtime_keep(code_ ? code_ : (call));                                                         \
    } while (0)

cudaError_t cudaGetKernel(cudaKernel_t *out, const void *host) {
    CUkernel kernel = NULL;
    CUresult code = out ? kernel_of(host, &kernel) : CUDA_ERROR_INVALID_VALUE;
    if (!code) *out = (cudaKernel_t)kernel;
    return runtime_keep(code);
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *host) {
    CUkernel kernel = NULL;
    CUresult code = out ? kernel_of(host, &kernel) : CUDA_ERROR_INVALID_VALUE;
    return runtime_keep(code ? code : cuKernelGetFunction((CUfunction *)out, kernel));
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *host) {
    CUfunction f;
    int v[16] = {0};
    CUresult code = out ? runtime_function(host, &f) : CUDA_ERROR_INVALID_VALUE;
    for (int k = 0; k < 16 && !code; k++) code = cuFuncGetAttribute(&v[k], (CUfunction_attribute)k, f);
    if (code) return runtime_keep(code);
    memset(out, 0, sizeof *out);
    out->maxThreadsPerBlock = v[0], out->sharedSizeBytes = (size_t)v[1], out->constSizeBytes = (size_t)v[2];
    out->localSizeBytes = (size_t)v[3], out->numRegs = v[4];
    out->ptxVersion = v[5], out->binaryVersion = v[6], out->cacheModeCA = v[7];
    out->maxDynamicSharedSizeBytes = v[8], out->preferredShmemCarveout = v[9];
    out->clusterDimMustBeSet = v[10], out->requiredClusterWidth = v[11], out->requiredClusterHeight = v[12];
    out->requiredClusterDepth = v[13], out->nonPortableClusterSizeAllowed = v[14];
    out->clusterSchedulingPolicyPreference = v[15];
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
    FUNCTION(cuFuncSetAttribute(f, (CUfunction_attribute)attribute, value));
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute, int value,
                                            int device) {
    CALL(cuKernelSetAttribute((CUfunction_attribute)attribute, value, (CUkernel)kernel, device));
}
cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config) {
    FUNCTION(cuFuncSetCacheConfig(f, (CUfunc_cache)config));
}
cudaError_t cudaFuncSetSharedMemConfig(const void *host, enum cudaSharedMemConfig config) {
    FUNCTION(cuFuncSetSharedMemConfig(f, (CUsharedconfig)config));
}
cudaError_t cudaFuncGetName(const char **name, const void *host) { FUNCTION(cuFuncGetName(name, f)); }
cudaError_t cudaFuncGetParamInfo(const void *host, size_t index, size_t *offset, size_t *size) {
    FUNCTION(cuFuncGetParamInfo(f, index, offset, size));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *host, int block,
                                                                   size_t shared, unsigned flags) {
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, block, shared, flags));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *host, int block,
                                                          size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, host, block, shared, 0);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *out, const void *host, int blocks, int block) {
    FUNCTION(cuOccupancyAvailableDynamicSMemPerBlock(out, f, blocks, block));
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *out, const void *host, const cudaLaunchConfig_t *c) {
    CUlaunchConfig d;
    if (!c) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    runtime_launch_config(c, &d);
    FUNCTION(cuOccupancyMaxPotentialClusterSize(out, f, &d));
}
cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *host, const cudaLaunchConfig_t *c) {
    CUlaunchConfig d;
    if (!c) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    runtime_launch_config(c, &d);
    FUNCTION(cuOccupancyMaxActiveClusters(out, f, &d));
}

/* --- libraries that a program loads itself --------------------------------------------------- */

#define L(library) ((CUlibrary)(library))
cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code, enum cudaJitOption *jit, void **jit_values,
                                unsigned jit_count, enum cudaLibraryOption *options, void **values,
                                unsigned count) {
    CALL(cuLibraryLoadData((CUlibrary *)out, code, (CUjit_option *)jit, jit_values, jit_count,
                           (CUlibraryOption *)options, values, count));
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *out, const char *path, enum cudaJitOption *jit,
                                    void **jit_values, unsigned jit_count, enum cudaLibraryOption *options,
                                    void **values, unsigned count) {
    CALL(cuLibraryLoadFromFile((CUlibrary *)out, path, (CUjit_option *)jit, jit_values, jit_count,
                               (CUlibraryOption *)options, values, count));
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) { CALL(cuLibraryUnload(L(library))); }
cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name) {
    CALL(cuLibraryGetKernel((CUkernel *)out, L(library), name));
}
cudaError_t cudaLibraryGetGlobal(void **p, size_t *size, cudaLibrary_t library, const char *name) {
    CALL(cuLibraryGetGlobal((CUdeviceptr *)p, size, L(library), name));
}
cudaError_t cudaLibraryGetManaged(void **p, size_t *size, cudaLibrary_t library, const char *name) {
    CALL(cuLibraryGetManaged((CUdeviceptr *)p, size, L(library), name));
}
cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
    CALL(cuLibraryGetKernelCount(count, L(library)));
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *out, unsigned count, cudaLibrary_t library) {
    CALL(cuLibraryEnumerateKernels((CUkernel *)out, count, L(library)));
}
