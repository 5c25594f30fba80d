// calls.cu - a program that calls the runtime's functions by family: tests/driver/runtime.c compiles it twice, for
// the legacy default stream and for the thread's own, and runs both.
#include <cstdio>
#include <cstring>
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_profiler_api.h>

static int wrong;
#define CHECK(good) do { if (!(good)) printf("WRONG line %d: %s\n", __LINE__, #good), wrong++; } while (0)
#define FINE(call) is((call), cudaSuccess, __LINE__, #call)
#define GIVES(error, call) is((call), (error), __LINE__, #call)
static void is(cudaError_t got, cudaError_t want, int line, const char *call) {
    if (got != want) {
        printf("WRONG line %d: %s: %s, not %s\n", line, call, cudaGetErrorName(got), cudaGetErrorName(want));
        wrong++;
    }
    if (got) cudaGetLastError();
}

__device__ int table[4] = {2, 3, 5, 7};
__managed__ int shared_by_both = 5;
__global__ void add(int *p, int n, int v) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < n) p[k] += v;
}
__global__ void use_table(int *p) { p[threadIdx.x] = table[threadIdx.x] * shared_by_both; }
__global__ void whole_grid(int *p) {
    atomicAdd(p, 1);
    cooperative_groups::this_grid().sync();
    if (!blockIdx.x && !threadIdx.x) p[1] = p[0];
}
__global__ void ranks(int *p) {
    if (!threadIdx.x) p[blockIdx.x] = (int)cooperative_groups::this_cluster().block_rank();
}
__global__ void dynamic(int *p) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

enum { N = 1000 };
static int host[N], result[N];
static int first(const int *device) {
    int v = -1;
    FINE(cudaMemcpy(&v, device, sizeof v, cudaMemcpyDeviceToHost));
    return v;
}
static bool all(const int *device, int n, int v) {
    FINE(cudaMemcpy(result, device, n * sizeof(int), cudaMemcpyDefault));
    for (int k = 0; k < n; k++) if (result[k] != v) return false;
    return true;
}

static void devices() {
    int count = -1, v = -1, device = -1, least = 9, greatest = 9;
    size_t limit = 0;
    unsigned flags = 99;
    char id[20];
    cudaDeviceProp p;
    const cudaDeviceAttr attributes[] = {
        cudaDevAttrMaxGridDimX, cudaDevAttrMaxBlockDimZ, cudaDevAttrCooperativeLaunch, cudaDevAttrConcurrentKernels,
        cudaDevAttrCanMapHostMemory, cudaDevAttrAsyncEngineCount, cudaDevAttrManagedMemory,
        cudaDevAttrUnifiedAddressing, cudaDevAttrMaxRegistersPerMultiprocessor, cudaDevAttrMemoryPoolsSupported,
        cudaDevAttrStreamPrioritiesSupported, cudaDevAttrGlobalMemoryBusWidth, cudaDevAttrMaxPitch,
        cudaDevAttrMaxTexture2DWidth, cudaDevAttrMaxBlocksPerMultiprocessor, cudaDevAttrClusterLaunch,
        cudaDevAttrHostRegisterSupported, cudaDevAttrReservedSharedMemoryPerBlock};
    FINE(cudaGetDeviceCount(&count));
    FINE(cudaGetDeviceProperties(&p, 0));
    const int fields[] = {
        p.maxGridSize[0], p.maxThreadsDim[2], p.cooperativeLaunch, p.concurrentKernels, p.canMapHostMemory,
        p.asyncEngineCount, p.managedMemory, p.unifiedAddressing, p.regsPerMultiprocessor, p.memoryPoolsSupported,
        p.streamPrioritiesSupported, p.memoryBusWidth, (int)p.memPitch, p.maxTexture2D[0],
        p.maxBlocksPerMultiProcessor, p.clusterLaunch, p.hostRegisterSupported, (int)p.reservedSharedMemPerBlock};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        FINE(cudaDeviceGetAttribute(&v, attributes[k], 0));
        CHECK(fields[k] == v && v != 0);
    }
    CHECK(count == 1 && p.warpSize == 32 && p.totalConstMem == 65536 && p.uuid.bytes[0]);
    GIVES(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 1));
    GIVES(cudaErrorInvalidDevice, cudaSetDevice(1));
    FINE(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    FINE(cudaSetDevice(0));
    FINE(cudaGetDevice(&device));
    FINE(cudaFree(0));
    FINE(cudaGetDeviceFlags(&flags));
    CHECK(device == 0 && flags != 99);
    FINE(cudaChooseDevice(&device, &p));
    FINE(cudaDeviceGetPCIBusId(id, sizeof id, 0));
    FINE(cudaDeviceGetByPCIBusId(&device, id));
    FINE(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
    FINE(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    CHECK(limit >= 2 << 20);
    FINE(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least == 0 && greatest < 0);
    FINE(cudaDeviceCanAccessPeer(&v, 0, 0));
    CHECK(v == 0);
    GIVES(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(1, 0));
    FINE(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    FINE(cudaProfilerStart());
    FINE(cudaProfilerStop());
    FINE(cudaRuntimeGetVersion(&v));
    CHECK(v == CUDART_VERSION);
    CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
    CHECK(!strcmp(cudaGetErrorName(cudaErrorInvalidSymbol), "cudaErrorInvalidSymbol"));
    CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidSymbol), "invalid device symbol"));
    CHECK(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
}

// What is not offered is refused, and says so by name.
static void refusals() {
    cudaIpcMemHandle_t handle;
    cudaArray_t array;
    cudaExternalMemory_t memory;
    GIVES(cudaErrorNotSupported, cudaIpcGetMemHandle(&handle, NULL));
    GIVES(cudaErrorNotSupported, cudaArrayGetPlane(&array, NULL, 0));
    GIVES(cudaErrorNotSupported, cudaImportExternalMemory(&memory, NULL));
}

// Arrays, texture and surface objects: compiled by nvcc, each geometry that it has an intrinsic for.
__global__ void mirror(cudaTextureObject_t t, cudaSurfaceObject_t s, int width) {
    int x = threadIdx.x, y = threadIdx.y;
    surf2Dwrite(tex2D<float>(t, width - 1 - x + 0.5f, y + 0.5f), s, x * 4, y);
}
__global__ void fetch(cudaTextureObject_t linear, cudaTextureObject_t pixels, cudaTextureObject_t layers,
                      cudaTextureObject_t volume, cudaTextureObject_t levels, float *out) {
    out[0] = tex1Dfetch<float>(linear, 3);
    uchar4 c = tex2D<uchar4>(pixels, 1, 2);
    out[1] = c.x + 256 * c.y + 65536 * c.z;
    out[2] = tex2DLayered<float>(layers, 0.5f, 1.5f, 1);
    out[3] = tex3D<float>(volume, 1.5f, 0.5f, 1.5f);
    out[4] = tex2DLod<float>(levels, 0.25f, 0.25f, 1);
    float4 g = tex2Dgather<float4>(levels, 0.5f, 0.5f, 0);
    out[5] = g.x + 10 * g.y + 100 * g.z + 1000 * g.w;
}
static cudaTextureObject_t texture_of(cudaResourceDesc r, bool normalised = false) {
    cudaTextureDesc d = {};
    cudaTextureObject_t t = 0;
    d.readMode = cudaReadModeElementType;
    d.normalizedCoords = normalised;
    for (int k = 0; k < 3; k++) d.addressMode[k] = cudaAddressModeClamp;
    d.maxMipmapLevelClamp = 9;
    FINE(cudaCreateTextureObject(&t, &r, &d, NULL));
    return t;
}
static cudaResourceDesc resource_of(cudaArray_t a) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
}
static void textures(cudaStream_t s) {
    enum { W = 6, H = 4 };
    float image[H][W], back[H][W], numbers[16], six[6];
    cudaArray_t a, b, layered, volume, level;
    cudaMipmappedArray_t levels;
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(), got;
    cudaExtent e;
    unsigned flags;
    cudaSurfaceObject_t surface;
    cudaResourceDesc r = {}, shown;
    cudaTextureDesc how;
    float *d, *line;
    unsigned char *pixels;
    size_t pitch, widest;
    for (int k = 0; k < W * H; k++) image[k / W][k % W] = (float)k;
    for (int k = 0; k < 16; k++) numbers[k] = (float)k;
    FINE(cudaMallocArray(&a, &f, W, H));
    FINE(cudaMallocArray(&b, &f, W, H, cudaArraySurfaceLoadStore));
    FINE(cudaArrayGetInfo(&got, &e, &flags, b));
    CHECK(got.x == 32 && !got.y && got.f == cudaChannelFormatKindFloat && e.width == W && e.height == H && !e.depth);
    CHECK(flags == cudaArraySurfaceLoadStore);
    FINE(cudaMemcpy2DToArray(a, 0, 0, image, sizeof image[0], sizeof image[0], H, cudaMemcpyHostToDevice));
    cudaTextureObject_t t = texture_of(resource_of(a));
    r = resource_of(b);
    FINE(cudaCreateSurfaceObject(&surface, &r));
    mirror<<<1, dim3(W, H), 0, s>>>(t, surface, W);
    FINE(cudaMemcpy2DFromArrayAsync(back, sizeof back[0], b, 0, 0, sizeof back[0], H, cudaMemcpyDeviceToHost, s));
    FINE(cudaStreamSynchronize(s));
    for (int y = 0; y < H; y++) for (int x = 0; x < W; x++) CHECK(back[y][x] == image[y][W - 1 - x]);
    FINE(cudaGetTextureObjectResourceDesc(&shown, t));
    CHECK(shown.resType == cudaResourceTypeArray && shown.res.array.array == a);
    FINE(cudaGetTextureObjectTextureDesc(&how, t));
    CHECK(how.readMode == cudaReadModeElementType && how.addressMode[0] == cudaAddressModeClamp);
    FINE(cudaMemcpy2DArrayToArray(b, 4, 1, a, 0, 0, 8, 2, cudaMemcpyDeviceToDevice));
    FINE(cudaMemcpy2DFromArray(back, sizeof back[0], b, 0, 0, sizeof back[0], H, cudaMemcpyDeviceToHost));
    CHECK(back[1][1] == 0 && back[1][2] == 1 && back[2][1] == W && back[2][2] == W + 1 && back[2][3] == 2 * W + 2);

    FINE(cudaMalloc((void **)&line, 64));
    FINE(cudaMemcpy(line, numbers, 64, cudaMemcpyHostToDevice));
    r = cudaResourceDesc();
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = line;
    r.res.linear.desc = f;
    r.res.linear.sizeInBytes = 64;
    cudaTextureObject_t linear = texture_of(r);
    FINE(cudaMallocPitch((void **)&pixels, &pitch, 16, 4));
    FINE(cudaMemset2D(pixels, pitch, 7, 16, 4));
    r = cudaResourceDesc();
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = pixels;
    r.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    r.res.pitch2D.width = 4;
    r.res.pitch2D.height = 4;
    r.res.pitch2D.pitchInBytes = pitch;
    cudaTextureObject_t flat = texture_of(r);
    cudaMemcpy3DParms copy = {};
    FINE(cudaMalloc3DArray(&layered, &f, make_cudaExtent(2, 2, 4), cudaArrayLayered));
    FINE(cudaMalloc3DArray(&volume, &f, make_cudaExtent(2, 2, 4)));
    copy.srcPtr = make_cudaPitchedPtr(numbers, 8, 2, 2);
    copy.dstArray = layered;
    copy.extent = make_cudaExtent(2, 2, 4);
    copy.kind = cudaMemcpyHostToDevice;
    FINE(cudaMemcpy3D(&copy));
    copy.dstArray = volume;
    FINE(cudaMemcpy3D(&copy));
    FINE(cudaMallocMipmappedArray(&levels, &f, make_cudaExtent(4, 4, 0), 2, cudaArrayTextureGather));
    FINE(cudaGetMipmappedArrayLevel(&level, levels, 0));
    FINE(cudaMemcpy2DToArray(level, 0, 0, numbers, 16, 16, 4, cudaMemcpyHostToDevice));
    FINE(cudaGetMipmappedArrayLevel(&level, levels, 1));
    FINE(cudaMemcpy2DToArray(level, 0, 0, numbers + 5, 8, 8, 2, cudaMemcpyHostToDevice));
    r = cudaResourceDesc();
    r.resType = cudaResourceTypeMipmappedArray;
    r.res.mipmap.mipmap = levels;
    cudaTextureObject_t of_levels = texture_of(r, true);
    FINE(cudaMalloc((void **)&d, sizeof six));
    cudaTextureObject_t of_layers = texture_of(resource_of(layered)), of_volume = texture_of(resource_of(volume));
    fetch<<<1, 1, 0, s>>>(linear, flat, of_layers, of_volume, of_levels, d);
    FINE(cudaMemcpyAsync(six, d, sizeof six, cudaMemcpyDeviceToHost, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(six[0] == 3 && six[1] == 7 * 65793 && six[2] == 6 && six[3] == 5 && six[4] == 5);
    CHECK(six[5] == 9 + 10 * 10 + 100 * 6 + 1000 * 5);
    FINE(cudaDeviceGetTexture1DLinearMaxWidth(&widest, &f, 0));
    CHECK(widest == 1u << 28);
    GIVES(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&level, &(got = cudaCreateChannelDesc<double>()), 4));
    for (cudaTextureObject_t one : {t, linear, flat, of_layers, of_volume, of_levels})
        FINE(cudaDestroyTextureObject(one));
    FINE(cudaDestroySurfaceObject(surface));
    FINE(cudaFreeArray(a));
    FINE(cudaFreeArray(b));
    FINE(cudaFreeArray(layered));
    FINE(cudaFreeArray(volume));
    FINE(cudaFreeMipmappedArray(levels));
    FINE(cudaFree(line));
    FINE(cudaFree(pixels));
    FINE(cudaFree(d));
}

static void memory(cudaStream_t s) {
    int *a, *b, *managed, *pinned, *d, own[64];
    size_t pitch, size;
    cudaPitchedPtr volume;
    cudaPointerAttributes what;
    cudaMemPool_t pool, other;
    void *p;
    FINE(cudaMallocPitch((void **)&a, &pitch, 20, 6));
    CHECK(pitch >= 20 && pitch % 256 == 0);
    for (int k = 0; k < 30; k++) host[k] = k;
    FINE(cudaMemset2D(a, pitch, 0, 20, 6));
    FINE(cudaMemcpy2D(a, pitch, host, 20, 20, 6, cudaMemcpyHostToDevice));
    FINE(cudaMemcpy2DAsync(result, 20, a, pitch, 20, 6, cudaMemcpyDeviceToHost, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(!memcmp(host, result, 120));
    GIVES(cudaErrorInvalidPitchValue, cudaMemcpy2D(a, 16, host, 20, 20, 6, cudaMemcpyHostToDevice));
    GIVES(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, host, 4, (cudaMemcpyKind)7));
    FINE(cudaFree(a));
    FINE(cudaMalloc3D(&volume, make_cudaExtent(12, 3, 2)));
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(host, 12, 12, 3), in.dstPtr = volume;
    in.extent = make_cudaExtent(12, 3, 2), in.kind = cudaMemcpyHostToDevice;
    FINE(cudaMemset3D(volume, 0, in.extent));
    FINE(cudaMemcpy3D(&in));
    cudaMemcpy3DParms out = {};
    out.srcPtr = volume, out.dstPtr = make_cudaPitchedPtr(result, 8, 8, 2), out.srcPos = make_cudaPos(4, 1, 0);
    out.extent = make_cudaExtent(8, 2, 2), out.kind = cudaMemcpyDeviceToHost;
    FINE(cudaMemcpy3DAsync(&out, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(result[0] == 4 && result[1] == 5 && result[2] == 7 && result[4] == 13 && result[7] == 17);
    FINE(cudaFree(volume.ptr));

    FINE(cudaHostRegister(own, sizeof own, cudaHostRegisterMapped));
    FINE(cudaHostGetDevicePointer((void **)&d, own, 0));
    memset(own, 0, sizeof own);
    add<<<1, 64>>>(d, 64, 3);
    FINE(cudaDeviceSynchronize());
    CHECK(own[0] == 3 && own[63] == 3);
    FINE(cudaPointerGetAttributes(&what, own));
    CHECK(what.type == cudaMemoryTypeHost && what.devicePointer == d);
    FINE(cudaHostUnregister(own));
    GIVES(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
    FINE(cudaPointerGetAttributes(&what, own));
    CHECK(what.type == cudaMemoryTypeUnregistered);
    FINE(cudaMallocManaged(&managed, sizeof own));
    FINE(cudaPointerGetAttributes(&what, managed));
    CHECK(what.type == cudaMemoryTypeManaged);
    memset(managed, 0, sizeof own);
    cudaMemLocation here = {};
    here.type = cudaMemLocationTypeDevice;
    FINE(cudaMemAdvise(managed, sizeof own, cudaMemAdviseSetReadMostly, here));
    FINE(cudaMemPrefetchAsync(managed, sizeof own, here, 0, s));
    add<<<1, 64, 0, s>>>(managed, 64, 4);
    FINE(cudaStreamSynchronize(s));
    CHECK(managed[0] == 4 && managed[63] == 4);
    FINE(cudaFree(managed));
    FINE(cudaHostAlloc((void **)&pinned, 256, cudaHostAllocMapped));
    unsigned flags;
    FINE(cudaHostGetFlags(&flags, pinned));
    CHECK(flags & cudaHostAllocMapped);
    FINE(cudaFreeHost(pinned));

    FINE(cudaMalloc(&b, 4 * sizeof(int)));
    shared_by_both = 10;
    use_table<<<1, 4>>>(b);
    FINE(cudaMemcpy(result, b, 16, cudaMemcpyDeviceToHost));
    CHECK(result[0] == 20 && result[3] == 70);
    host[0] = 11;
    FINE(cudaMemcpyToSymbolAsync(table, host, 4, 8, cudaMemcpyHostToDevice, s));
    FINE(cudaMemcpyFromSymbolAsync(result, table, 12, 4, cudaMemcpyDeviceToHost, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(result[0] == 3 && result[1] == 11 && result[2] == 7);
    FINE(cudaGetSymbolSize(&size, table));
    FINE(cudaGetSymbolAddress(&p, table));
    CHECK(size == 16 && first((int *)p) == 2);
    GIVES(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, host));
    FINE(cudaFree(b));

    cudaMemPoolProps wish = {};
    wish.allocType = cudaMemAllocationTypePinned, wish.location = here;
    cuuint64_t threshold = 1 << 20, used = 0;
    FINE(cudaMemPoolCreate(&other, &wish));
    FINE(cudaMemPoolSetAttribute(other, cudaMemPoolAttrReleaseThreshold, &threshold));
    FINE(cudaMallocFromPoolAsync((void **)&a, 4000, other, s));
    FINE(cudaMemPoolGetAttribute(other, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK(used >= 4000);
    FINE(cudaMemsetAsync(a, 0, 4000, s));
    add<<<4, 256, 0, s>>>(a, N, 2);
    FINE(cudaMemcpyAsync(result, a, 4000, cudaMemcpyDeviceToHost, s));
    FINE(cudaFreeAsync(a, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(result[0] == 2 && result[N - 1] == 2);
    FINE(cudaDeviceGetDefaultMemPool(&pool, 0));
    FINE(cudaDeviceSetMemPool(0, other));
    FINE(cudaDeviceSetMemPool(0, pool));
    FINE(cudaMallocAsync((void **)&a, 64, s));
    FINE(cudaFreeAsync(a, s));
    FINE(cudaMemPoolTrimTo(pool, 0));
    FINE(cudaMemPoolDestroy(other));
}

static void count(void *p) { ++*(int *)p; }
static void CUDART_CB called_back(cudaStream_t, cudaError_t e, void *p) { *(int *)p += e == cudaSuccess ? 10 : 1000; }

static void streams(int *d) {
    cudaStream_t low, high;
    cudaEvent_t a, b, quiet;
    int least, greatest, priority = 9, calls = 0;
    unsigned flags = 9;
    unsigned long long id1 = 0, id2 = 0;
    float ms = -1;
    FINE(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    FINE(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
    FINE(cudaStreamCreateWithPriority(&high, cudaStreamDefault, greatest));
    FINE(cudaStreamGetPriority(high, &priority));
    FINE(cudaStreamGetFlags(low, &flags));
    FINE(cudaStreamGetId(low, &id1));
    FINE(cudaStreamGetId(high, &id2));
    CHECK(priority == greatest && flags == cudaStreamNonBlocking && id1 != id2);
    cudaStreamAttrValue policy = {}, back = {};
    policy.syncPolicy = cudaSyncPolicyYield;
    FINE(cudaStreamSetAttribute(low, cudaStreamAttributeSynchronizationPolicy, &policy));
    FINE(cudaStreamCopyAttributes(high, low));
    FINE(cudaStreamGetAttribute(high, cudaStreamAttributeSynchronizationPolicy, &back));
    CHECK(back.syncPolicy == cudaSyncPolicyYield);
    FINE(cudaEventCreate(&a));
    FINE(cudaEventCreateWithFlags(&b, cudaEventBlockingSync));
    FINE(cudaEventCreateWithFlags(&quiet, cudaEventDisableTiming));
    FINE(cudaMemset(d, 0, N * sizeof(int)));
    FINE(cudaDeviceSynchronize());
    FINE(cudaEventRecord(a, low));
    add<<<4, 256, 0, low>>>(d, N, 1);
    FINE(cudaLaunchHostFunc(low, count, &calls));
    FINE(cudaStreamAddCallback(low, called_back, &calls, 0));
    FINE(cudaEventRecordWithFlags(b, low, 0));
    FINE(cudaStreamWaitEvent(high, b, 0));
    add<<<4, 256, 0, high>>>(d, N, 1);
    FINE(cudaEventRecord(quiet, high));
    FINE(cudaEventSynchronize(quiet));
    FINE(cudaEventElapsedTime(&ms, a, b));
    CHECK(calls == 11 && ms >= 0 && all(d, N, 2));
    GIVES(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, quiet));
    FINE(cudaStreamQuery(high));
    FINE(cudaEventDestroy(a));
    FINE(cudaEventDestroy(b));
    FINE(cudaEventDestroy(quiet));
    FINE(cudaStreamDestroy(low));
    FINE(cudaStreamDestroy(high));
}

static void launches(int *d, cudaStream_t s) {
    int blocks = 0, grid = 0, block = 0, v = 3, n = N;
    size_t bytes = 0;
    const char *name;
    void *args[] = {&d, &n, &v}, *one[] = {&d};
    cudaKernel_t kernel;
    cudaFunction_t function;
    cudaFuncAttributes attributes;
    FINE(cudaMemset(d, 0, N * sizeof(int)));
    FINE(cudaLaunchCooperativeKernel((void *)whole_grid, dim3(4), dim3(64), one, 0, 0));
    FINE(cudaMemcpy(result, d, 8, cudaMemcpyDeviceToHost));
    CHECK(result[0] == 256 && result[1] == 256);
    GIVES(cudaErrorCooperativeLaunchTooLarge,
          cudaLaunchCooperativeKernel((void *)whole_grid, dim3(1 << 20), dim3(64), one, 0, 0));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 4, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8), config.blockDim = dim3(32), config.attrs = &attribute, config.numAttrs = 1;
    config.stream = s;
    FINE(cudaLaunchKernelEx(&config, ranks, d));
    FINE(cudaStreamSynchronize(s));
    FINE(cudaMemcpy(result, d, 32, cudaMemcpyDeviceToHost));
    CHECK(result[0] == 0 && result[3] == 3 && result[4] == 0 && result[7] == 3);
    FINE(cudaOccupancyMaxActiveClusters(&blocks, ranks, &config));
    CHECK(blocks > 0);
    FINE(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add));
    CHECK(grid > 0 && block >= 32);
    FINE(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, dynamic, 2, 128));
    CHECK(bytes >= 16384);
    FINE(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    FINE(cudaFuncGetAttributes(&attributes, dynamic));
    CHECK(attributes.maxDynamicSharedSizeBytes == 100000 && attributes.ptxVersion >= 75);
    dynamic<<<1, 100, 100000>>>(d);
    CHECK(first(d) == 99);
    FINE(cudaFuncSetCacheConfig(dynamic, cudaFuncCachePreferShared));
    FINE(cudaFuncGetName(&name, add));
    CHECK(strstr(name, "add"));

    // A kernel of the program in the driver's hands, and as a handle in the runtime's.
    FINE(cudaMemset(d, 0, N * sizeof(int)));
    FINE(cudaDeviceSynchronize());
    cudaDriverEntryPointQueryResult status;
    decltype(&cuLaunchKernel) launch = NULL;
    FINE(cudaGetDriverEntryPointByVersion("cuLaunchKernel", (void **)&launch, 12000, cudaEnableDefault, &status));
    CHECK(status == cudaDriverEntryPointSuccess && launch);
    FINE(cudaGetKernel(&kernel, (const void *)add));
    CHECK(!launch((CUfunction)kernel, 4, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    FINE(cudaGetFuncBySymbol(&function, (const void *)add));
    CHECK(!launch((CUfunction)function, 4, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    FINE(cudaDeviceSynchronize());
    FINE(cudaLaunchKernel((const void *)kernel, dim3(4), dim3(256), args, 0, 0));
    CHECK(all(d, N, 9));
    GIVES(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((const void *)host, dim3(1), dim3(1), args, 0, 0));

    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .u32 seen = 6;\n"
                              ".visible .entry put(.param .u64 p, .param .u32 v) { .reg .b64 a; .reg .b32 x;\n"
                              "ld.param.u64 a, [p]; ld.param.u32 x, [v]; st.global.u32 [a], x; ret; }\n";
    cudaLibrary_t library;
    unsigned count_ = 0;
    void *pair[] = {&d, &v}, *p;
    FINE(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    FINE(cudaLibraryGetKernelCount(&count_, library));
    FINE(cudaLibraryGetKernel(&kernel, library, "put"));
    v = 41;
    FINE(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), pair, 0, 0));
    FINE(cudaLibraryGetGlobal(&p, &bytes, library, "seen"));
    CHECK(count_ == 1 && bytes == 4 && first((int *)p) == 6 && first(d) == 41);
    GIVES(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "nobody"));
    FINE(cudaLibraryUnload(library));

    FINE(cudaGetDriverEntryPointByVersion("cuNothing", &p, 12000, cudaEnableDefault, &status));
    CHECK(status == cudaDriverEntryPointSymbolNotFound);
}

static int destroyed;
static void destroy(void *p) { destroyed += *(int *)p; }

static void graphs(int *d, cudaStream_t s) {
    cudaGraph_t g, captured, clone, child;
    cudaGraphExec_t exec;
    cudaGraphNode_t set, kernel, copy, call, inner, alloc, release, nodes[8], again;
    cudaGraphNodeType type;
    cudaStreamCaptureStatus status;
    int v = 5, n = N, calls = 0, *mem = NULL, one = 1;
    size_t count_ = 0;
    void *args[] = {&d, &n, &v};
    cudaMemsetParams zero = {d, 0, 0, 4, N, 1};
    cudaHostNodeParams host_call = {count, &calls};
    cudaKernelNodeParams k = {}, back = {};
    cudaGraphExecUpdateResultInfo info;
    k.func = (void *)add, k.gridDim = dim3(4), k.blockDim = dim3(256), k.kernelParams = args;
    FINE(cudaGraphCreate(&g, 0));
    FINE(cudaGraphAddMemsetNode(&set, g, NULL, 0, &zero));
    FINE(cudaGraphAddKernelNode(&kernel, g, &set, 1, &k));
    FINE(cudaGraphAddMemcpyNode1D(&copy, g, &kernel, 1, result, d, N * sizeof(int), cudaMemcpyDeviceToHost));
    FINE(cudaGraphAddHostNode(&call, g, &copy, 1, &host_call));
    FINE(cudaGraphGetNodes(g, NULL, &count_));
    CHECK(count_ == 4);
    FINE(cudaGraphKernelNodeGetParams(kernel, &back));
    CHECK(back.func == (void *)add && back.gridDim.x == 4 && *(int *)back.kernelParams[2] == 5);
    cudaMemcpy3DParms line;
    FINE(cudaGraphMemcpyNodeGetParams(copy, &line));
    CHECK(line.srcPtr.ptr == d && line.extent.width == N * sizeof(int) && line.kind == cudaMemcpyDeviceToHost);
    FINE(cudaGraphNodeGetType(call, &type));
    CHECK(type == cudaGraphNodeTypeHost);
    FINE(cudaGraphInstantiate(&exec, g, 0));
    FINE(cudaGraphUpload(exec, s));
    FINE(cudaGraphLaunch(exec, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(calls == 1 && result[0] == 5 && result[N - 1] == 5);
    v = 8;
    FINE(cudaGraphExecKernelNodeSetParams(exec, kernel, &k));
    FINE(cudaGraphNodeSetEnabled(exec, set, 0));
    FINE(cudaGraphLaunch(exec, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(calls == 2 && result[0] == 13);
    FINE(cudaGraphClone(&clone, g));
    FINE(cudaGraphNodeFindInClone(&again, kernel, clone));
    FINE(cudaGraphExecUpdate(exec, clone, &info));
    CHECK(info.result == cudaGraphExecUpdateSuccess);
    FINE(cudaGraphExecDestroy(exec));
    FINE(cudaGraphDestroy(clone));

    // Captured work, with a branch in another stream, then a graph inside of a graph.
    cudaStream_t other;
    cudaEvent_t fork, join;
    FINE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    FINE(cudaEventCreate(&fork));
    FINE(cudaEventCreate(&join));
    FINE(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    FINE(cudaMemsetAsync(d, 0, N * sizeof(int), s));
    FINE(cudaEventRecord(fork, s));
    FINE(cudaStreamWaitEvent(other, fork, 0));
    add<<<2, 256, 0, s>>>(d, 500, 1);
    add<<<2, 256, 0, other>>>(d + 500, 500, 1);
    FINE(cudaEventRecord(join, other));
    FINE(cudaStreamWaitEvent(s, join, 0));
    FINE(cudaStreamIsCapturing(other, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    FINE(cudaStreamGetCaptureInfo(s, &status, NULL, &captured, NULL, NULL, &count_));
    CHECK(captured && count_ == 2);
    FINE(cudaStreamEndCapture(s, &captured));
    FINE(cudaGraphCreate(&child, 0));
    FINE(cudaGraphAddChildGraphNode(&inner, child, NULL, 0, captured));
    FINE(cudaGraphAddKernelNode(&kernel, child, &inner, 1, &k));
    FINE(cudaGraphInstantiateWithFlags(&exec, child, 0));
    FINE(cudaGraphLaunch(exec, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(all(d, N, 9));
    FINE(cudaGraphExecChildGraphNodeSetParams(exec, inner, captured));
    GIVES(cudaErrorGraphExecUpdateFailure, cudaGraphExecChildGraphNodeSetParams(exec, inner, g));
    FINE(cudaGraphExecDestroy(exec));
    FINE(cudaGraphDestroy(child));
    FINE(cudaGraphDestroy(captured));
    FINE(cudaEventDestroy(fork));
    FINE(cudaEventDestroy(join));
    FINE(cudaStreamDestroy(other));

    // Memory of the graph: there from its node on, or captured, or left to the caller.
    cudaGraph_t m;
    cudaMemAllocNodeParams wish = {};
    cuuint64_t used = 1;
    wish.poolProps.allocType = cudaMemAllocationTypePinned, wish.poolProps.location.type = cudaMemLocationTypeDevice;
    wish.bytesize = N * sizeof(int);
    FINE(cudaGraphCreate(&m, 0));
    FINE(cudaGraphAddMemAllocNode(&alloc, m, NULL, 0, &wish));
    mem = (int *)wish.dptr;
    zero.dst = mem;
    FINE(cudaGraphAddMemsetNode(&set, m, &alloc, 1, &zero));
    args[0] = &mem;
    FINE(cudaGraphAddKernelNode(&kernel, m, &set, 1, &k));
    FINE(cudaGraphAddMemcpyNode1D(&copy, m, &kernel, 1, result, mem, N * sizeof(int), cudaMemcpyDeviceToHost));
    FINE(cudaGraphAddMemFreeNode(&release, m, &copy, 1, mem));
    FINE(cudaGraphInstantiate(&exec, m, 0));
    for (int round = 0; round < 2; round++) {
        memset(result, 0, sizeof result);
        FINE(cudaGraphLaunch(exec, s));
        FINE(cudaStreamSynchronize(s));
        CHECK(result[0] == 8 && result[N - 1] == 8);
    }
    FINE(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    CHECK(used == 0);
    FINE(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
    CHECK(used >= N * sizeof(int));
    FINE(cudaDeviceGraphMemTrim(0));
    FINE(cudaGraphExecDestroy(exec));
    FINE(cudaGraphDestroy(m));
    FINE(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    FINE(cudaMallocAsync((void **)&mem, N * sizeof(int), s));
    FINE(cudaMemsetAsync(mem, 0, N * sizeof(int), s));
    add<<<4, 256, 0, s>>>(mem, N, 6);
    FINE(cudaStreamEndCapture(s, &m));
    FINE(cudaGraphInstantiate(&exec, m, 0));
    FINE(cudaGraphLaunch(exec, s));
    GIVES(cudaErrorInvalidValue, cudaGraphLaunch(exec, s));              // it is still there
    FINE(cudaMemcpyAsync(result, mem, N * sizeof(int), cudaMemcpyDeviceToHost, s));
    FINE(cudaFreeAsync(mem, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(result[0] == 6 && result[N - 1] == 6);
    FINE(cudaGraphExecDestroy(exec));
    FINE(cudaGraphInstantiate(&exec, m, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    for (int round = 0; round < 3; round++) FINE(cudaGraphLaunch(exec, s));
    FINE(cudaFreeAsync(mem, s));
    FINE(cudaStreamSynchronize(s));
    FINE(cudaGraphExecDestroy(exec));
    FINE(cudaGraphDestroy(m));

    // By the general call, with an object that lives as long as the graph and its exec.
    cudaUserObject_t object;
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    any.kernel.func = (void *)add, any.kernel.gridDim = dim3(4), any.kernel.blockDim = dim3(256);
    any.kernel.kernelParams = args, args[0] = &d;
    FINE(cudaUserObjectCreate(&object, &one, destroy, 1, cudaUserObjectNoDestructorSync));
    FINE(cudaGraphCreate(&m, 0));
    FINE(cudaGraphRetainUserObject(m, object, 1, cudaGraphUserObjectMove));
    FINE(cudaGraphAddNode(&nodes[0], m, NULL, NULL, 0, &any));
    cudaGraphInstantiateParams how = {};
    FINE(cudaGraphInstantiateWithParams(&exec, m, &how));
    FINE(cudaGraphDestroy(m));
    CHECK(destroyed == 0);
    FINE(cudaGraphLaunch(exec, s));
    FINE(cudaStreamSynchronize(s));
    CHECK(all(d, N, 17));
    FINE(cudaGraphExecDestroy(exec));
    CHECK(destroyed == 1);
    FINE(cudaGraphDestroy(g));
}

int main() {
    int *d;
    cudaStream_t s;
    devices();
    refusals();
    FINE(cudaMalloc(&d, N * sizeof(int)));
    FINE(cudaStreamCreate(&s));
    textures(s);
    memory(s);
    streams(d);
    launches(d, s);
    graphs(d, s);
    FINE(cudaStreamDestroy(s));
    FINE(cudaFree(d));
    FINE(cudaDeviceReset());
    FINE(cudaMalloc(&d, N * sizeof(int)));                               // a context begins anew
    FINE(cudaMemset(d, 0, N * sizeof(int)));
    add<<<4, 256>>>(d, N, 1);
    CHECK(all(d, N, 1));
    FINE(cudaFree(d));
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
