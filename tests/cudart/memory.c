/* memory.c - memory of all kinds, pools, what a pointer is. */
#include "cudart.h"

/* --- allocating ------------------------------------------------------------------------------ */

cudaError_t cudaMalloc(void **p, size_t n) {
    CUdeviceptr d = 0;
    CUresult code = runtime_ready();
    if (!p) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    if (!code && n) code = cuMemAlloc(&d, n);
    *p = (void *)(uintptr_t)d;
    return runtime_keep(code);
}
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned flags) {
    CUdeviceptr d = 0;
    CUresult code = runtime_ready();
    if (!p) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    if (!code) code = cuMemAllocManaged(&d, n, flags);
    *p = (void *)(uintptr_t)d;
    return runtime_keep(code);
}
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr d = 0;
    CUresult code = runtime_ready();
    if (!p || !pitch) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    if (!code && width && height) code = cuMemAllocPitch(&d, pitch, width, height, 4);
    else *pitch = 0;
    *p = (void *)(uintptr_t)d;
    return runtime_keep(code);
}
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent e) {
    void *p = NULL;
    size_t pitch = 0;
    if (!out || (e.height && e.depth > SIZE_MAX / e.height)) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    cudaError_t code = cudaMallocPitch(&p, &pitch, e.width, e.height * e.depth);
    *out = (struct cudaPitchedPtr){p, pitch, e.width, e.height};
    return code;
}
cudaError_t cudaFree(void *p) { CALL(p ? cuMemFree(D(p)) : CUDA_SUCCESS); }
cudaError_t cudaMallocHost(void **p, size_t n) { CALL(cuMemHostAlloc(p, n, 0)); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags) { CALL(cuMemHostAlloc(p, n, flags)); }
cudaError_t cudaFreeHost(void *p) { CALL(p ? cuMemFreeHost(p) : CUDA_SUCCESS); }
cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags) { CALL(cuMemHostRegister(p, n, flags)); }
cudaError_t cudaHostUnregister(void *p) { CALL(cuMemHostUnregister(p)); }
cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned flags) {
    CUdeviceptr d = 0;
    CUresult code = runtime_ready();
    if (!out) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    if (!code) code = cuMemHostGetDevicePointer(&d, p, flags);
    *out = (void *)(uintptr_t)d;
    return runtime_keep(code);
}
cudaError_t cudaHostGetFlags(unsigned *out, void *p) { CALL(cuMemHostGetFlags(out, p)); }
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) { CALL(cuMemGetInfo(left, all)); }

/* --- copies in any shape --------------------------------------------------------------------- */

/* The types of memory that a kind of copy names; an unknown kind has none. */
static bool types_of(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from) {
    static const CUmemorytype of_kind[][2] = {
        [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
        [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED}};
    if ((unsigned)kind >= sizeof of_kind / sizeof *of_kind) return false;
    *from = of_kind[kind][0], *to = of_kind[kind][1];
    return true;
}

CUresult runtime_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out) {
    CUmemorytype to, from;
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    size_t from_texel = p->srcArray ? runtime_texel_bytes(p->srcArray) : 1,
           to_texel = p->dstArray ? runtime_texel_bytes(p->dstArray) : 1;
    if (!from_texel || !to_texel) return CUDA_ERROR_INVALID_HANDLE;
    if (!types_of(p->kind, &to, &from)) return (CUresult)cudaErrorInvalidMemcpyDirection;
    if (p->srcArray) from = CU_MEMORYTYPE_ARRAY;
    if (p->dstArray) to = CU_MEMORYTYPE_ARRAY;
    /* With an array, its places and the width count texels. */
    *out = (CUDA_MEMCPY3D){.srcXInBytes = p->srcPos.x * from_texel, .srcY = p->srcPos.y, .srcZ = p->srcPos.z,
                           .srcMemoryType = from, .srcHost = p->srcPtr.ptr, .srcDevice = D(p->srcPtr.ptr),
                           .srcPitch = p->srcPtr.pitch, .srcHeight = p->srcPtr.ysize,
                           .dstXInBytes = p->dstPos.x * to_texel, .dstY = p->dstPos.y, .dstZ = p->dstPos.z,
                           .dstMemoryType = to, .dstHost = p->dstPtr.ptr, .dstDevice = D(p->dstPtr.ptr),
                           .dstPitch = p->dstPtr.pitch, .dstHeight = p->dstPtr.ysize,
                           .srcArray = (CUarray)p->srcArray, .dstArray = (CUarray)p->dstArray,
                           .WidthInBytes = p->extent.width * (p->srcArray ? from_texel : to_texel),
                           .Height = p->extent.height,
                           .Depth = p->extent.depth};
    return CUDA_SUCCESS;
}
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n) {
    CALL(to_device || from_device ? CUDA_ERROR_INVALID_DEVICE : n ? cuMemcpyDtoD(D(to), D(from), n) : CUDA_SUCCESS);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t n,
                                cudaStream_t s) {
    CALL(to_device || from_device ? CUDA_ERROR_INVALID_DEVICE
         : n                      ? cuMemcpyDtoDAsync(D(to), D(from), n, s)
                                  : CUDA_SUCCESS);
}

/* --- managed memory -------------------------------------------------------------------------- */

cudaError_t cudaMemAdvise(const void *p, size_t n, enum cudaMemoryAdvise advice, struct cudaMemLocation where) {
    CUmemLocation w = {.type = (CUmemLocationType)where.type, .id = where.id};
    CALL(cuMemAdvise(D(p), n, (CUmem_advise)advice, w));
}
cudaError_t cudaMemRangeGetAttribute(void *out, size_t size, enum cudaMemRangeAttribute attribute, const void *p,
                                     size_t n) {
    CALL(cuMemRangeGetAttribute(out, size, (CUmem_range_attribute)attribute, D(p), n));
}
cudaError_t cudaMemRangeGetAttributes(void **out, size_t *sizes, enum cudaMemRangeAttribute *attributes,
                                      size_t count, const void *p, size_t n) {
    CALL(cuMemRangeGetAttributes(out, sizes, (CUmem_range_attribute *)attributes, count, D(p), n));
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p) {
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    unsigned type = 0;
    bool managed = false;
    int device = cudaInvalidDeviceId;
    void *on_device = NULL, *on_host = NULL, *values[] = {&type, &managed, &device, &on_device, &on_host};
    CUresult code = runtime_ready();
    if (!out) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    if (!code) code = cuPointerGetAttributes(5, which, values, D(p));
    if (code) return runtime_keep(code);
    memset(out, 0, sizeof *out);
    out->type = managed                    ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                : type                       ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeUnregistered;
    out->device = device, out->devicePointer = on_device;
    out->hostPointer = type ? on_host : (void *)(uintptr_t)p;
    return cudaSuccess;
}

/* --- pools ----------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "one struct, two names");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "one struct, two names");

#define P(pool) ((CUmemoryPool)(pool))
cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *p) {
    CALL(cuMemPoolCreate((CUmemoryPool *)out, (const CUmemPoolProps *)(const void *)p));
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { CALL(cuMemPoolDestroy(P(pool))); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    CALL(cuMemPoolSetAttribute(P(pool), (CUmemPool_attribute)attribute, value));
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    CALL(cuMemPoolGetAttribute(P(pool), (CUmemPool_attribute)attribute, value));
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { CALL(cuMemPoolTrimTo(P(pool), keep)); }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *map, size_t count) {
    CALL(cuMemPoolSetAccess(P(pool), (const CUmemAccessDesc *)(const void *)map, count));
}
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *out, cudaMemPool_t pool, struct cudaMemLocation *where) {
    CALL(cuMemPoolGetAccess((CUmemAccess_flags *)(void *)out, P(pool), (CUmemLocation *)(void *)where));
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int device) {
    CALL(cuDeviceGetDefaultMemPool((CUmemoryPool *)out, device));
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int device) {
    CALL(cuDeviceGetMemPool((CUmemoryPool *)out, device));
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) { CALL(cuDeviceSetMemPool(device, P(pool))); }

/* By place: there is one, the device. */
static CUresult place(struct cudaMemLocation *where, enum cudaMemAllocationType type) {
    if (!where || where->type != cudaMemLocationTypeDevice || type != cudaMemAllocationTypePinned)
        return CUDA_ERROR_INVALID_VALUE;
    return where->id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *out, struct cudaMemLocation *where,
                                     enum cudaMemAllocationType type) {
    CUresult code = place(where, type);
    return code ? runtime_keep(code) : cudaDeviceGetDefaultMemPool(out, 0);
}
cudaError_t cudaMemGetMemPool(cudaMemPool_t *out, struct cudaMemLocation *where,
                              enum cudaMemAllocationType type) {
    CUresult code = place(where, type);
    return code ? runtime_keep(code) : cudaDeviceGetMemPool(out, 0);
}
cudaError_t cudaMemSetMemPool(struct cudaMemLocation *where, enum cudaMemAllocationType type, cudaMemPool_t pool) {
    CUresult code = place(where, type);
    return code ? runtime_keep(code) : cudaDeviceSetMemPool(0, pool);
}

/* The one function about textures that only makes a struct: headers call it for every type. */
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
