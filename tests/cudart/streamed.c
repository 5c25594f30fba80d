/* streamed.c - the functions that take a stream, or use the default one. Compiled twice, see cudart.h. */
#include "cudart.h"

#ifdef PER_THREAD
#define S(s) ((s) ? (CUstream)(s) : CU_STREAM_PER_THREAD)
#else
#define S(s) ((CUstream)(s))
#endif

/* A call that waits, of work for the default stream. The driver's own calls that wait are those of the legacy
 * stream. */
#ifdef PER_THREAD
static CUresult then_wait(CUresult code) {
    return code ? code : cuStreamSynchronize(CU_STREAM_PER_THREAD);
}
#define WAITING(call, async) then_wait(async)
#else
#define WAITING(call, async) (call)
#endif

/* --- launches -------------------------------------------------------------------------------- */

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream) {
    CUfunction f;
    CUresult code = runtime_function(host, &f);
    if (!code) code = runtime_shape(grid, block);
    return runtime_keep(code ? code
                             : cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              (unsigned)shared, S(stream), args, NULL));
}
#ifdef PER_THREAD
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream) {
    CUfunction f;
    CUresult code = runtime_function(host, &f);
    if (!code) code = runtime_shape(grid, block);
    return runtime_keep(code ? code
                             : cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                         (unsigned)shared, S(stream), args));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args) {
    CUfunction f;
    CUlaunchConfig d;
    CUresult code = c ? runtime_function(host, &f) : CUDA_ERROR_INVALID_VALUE;
    if (!code) code = runtime_shape(c->gridDim, c->blockDim);
    if (code) return runtime_keep(code);
    runtime_launch_config(c, &d);
    d.hStream = S(d.hStream);
    return runtime_keep(cuLaunchKernelEx(&d, f, args, NULL));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t call, void *argument) {
    CALL(cuLaunchHostFunc(S(s), call, argument));
}

/* --- copies ---------------------------------------------------------------------------------- */

static CUresult copy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, bool async, CUstream s) {
    if (!n) return CUDA_SUCCESS;
    if (!async) {
        switch (kind) {
        case cudaMemcpyHostToHost: return WAITING(cuMemcpy(D(to), D(from), n), cuMemcpyAsync(D(to), D(from), n, s));
        case cudaMemcpyHostToDevice:
            return WAITING(cuMemcpyHtoD(D(to), from, n), cuMemcpyHtoDAsync(D(to), from, n, s));
        case cudaMemcpyDeviceToHost:
            return WAITING(cuMemcpyDtoH(to, D(from), n), cuMemcpyDtoHAsync(to, D(from), n, s));
        case cudaMemcpyDeviceToDevice:
            return WAITING(cuMemcpyDtoD(D(to), D(from), n), cuMemcpyDtoDAsync(D(to), D(from), n, s));
        case cudaMemcpyDefault: return WAITING(cuMemcpy(D(to), D(from), n), cuMemcpyAsync(D(to), D(from), n, s));
        default: return (CUresult)cudaErrorInvalidMemcpyDirection;
        }
    }
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(D(to), from, n, s);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(to, D(from), n, s);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoDAsync(D(to), D(from), n, s);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return cuMemcpyAsync(D(to), D(from), n, s);
    default: return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
    CALL(copy(to, from, n, kind, false, S(NULL)));
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy(to, from, n, kind, true, S(s)));
}
cudaError_t cudaMemcpyToSymbol(const void *host, const void *from, size_t n, size_t offset,
                               enum cudaMemcpyKind kind) {
    void *at;
    CUresult code = runtime_symbol_part(host, n, offset, &at);
    return runtime_keep(code ? code : copy(at, from, n, kind, false, S(NULL)));
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *host, size_t n, size_t offset,
                                 enum cudaMemcpyKind kind) {
    void *at;
    CUresult code = runtime_symbol_part(host, n, offset, &at);
    return runtime_keep(code ? code : copy(to, at, n, kind, false, S(NULL)));
}
cudaError_t cudaMemcpyToSymbolAsync(const void *host, const void *from, size_t n, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t s) {
    void *at;
    CUresult code = runtime_symbol_part(host, n, offset, &at);
    return runtime_keep(code ? code : copy(at, from, n, kind, true, S(s)));
}
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *host, size_t n, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t s) {
    void *at;
    CUresult code = runtime_symbol_part(host, n, offset, &at);
    return runtime_keep(code ? code : copy(to, at, n, kind, true, S(s)));
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, bool async, CUstream s) {
    return async ? cuMemcpy3DAsync(p, s) : WAITING(cuMemcpy3D(p), cuMemcpy3DAsync(p, s));
}
static CUresult copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                        size_t height, enum cudaMemcpyKind kind, bool async, CUstream s) {
    CUDA_MEMCPY3D d;
    struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)from, from_pitch, width, height},
                                  .dstPtr = {to, to_pitch, width, height},
                                  .extent = {width, height, 1},
                                  .kind = kind};
    if (to_pitch < width || from_pitch < width) return (CUresult)cudaErrorInvalidPitchValue;
    CUresult code = width && height ? runtime_copy_3d(&p, &d) : CUDA_SUCCESS;
    return code || !width || !height ? code : copy_3d(&d, async, s);
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind) {
    CALL(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, false, S(NULL)));
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, true, S(s)));
}
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) {
    CUDA_MEMCPY3D d;
    CUresult code = runtime_copy_3d(p, &d);
    CALL(code ? code : copy_3d(&d, false, S(NULL)));
}
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) {
    CUDA_MEMCPY3D d;
    CUresult code = runtime_copy_3d(p, &d);
    CALL(code ? code : copy_3d(&d, true, S(s)));
}
/* To and from arrays: places and widths in bytes. One of `array` and `memory` of each side is NULL. */
static CUresult copy_array(cudaArray_t to, void *memory, size_t to_pitch, size_t to_x, size_t to_y,
                           cudaArray_const_t from, const void *source, size_t from_pitch, size_t from_x, size_t from_y,
                           size_t width, size_t height, enum cudaMemcpyKind kind, bool async, CUstream s) {
    CUDA_MEMCPY3D d;
    struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)source, from_pitch, width, height},
                                  .dstPtr = {memory, to_pitch, width, height},
                                  .extent = {width, height, 1},
                                  .kind = kind};
    /* One row needs no pitch. */
    if ((memory && to_pitch < width && (to_pitch || height > 1))
        || (source && from_pitch < width && (from_pitch || height > 1)))
        return (CUresult)cudaErrorInvalidPitchValue;
    if (!width || !height) return CUDA_SUCCESS;
    CUresult code = runtime_copy_3d(&p, &d);
    if (code) return code;
    if (to) d.dstMemoryType = CU_MEMORYTYPE_ARRAY, d.dstArray = (CUarray)to;
    if (from) d.srcMemoryType = CU_MEMORYTYPE_ARRAY, d.srcArray = (CUarray)(uintptr_t)from;
    d.dstXInBytes = to_x, d.dstY = to_y, d.srcXInBytes = from_x, d.srcY = from_y;
    return copy_3d(&d, async, s);
}
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, enum cudaMemcpyKind kind) {
    CALL(copy_array(to, NULL, 0, x, y, NULL, from, pitch, 0, 0, width, height, kind, false, S(NULL)));
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy_array(to, NULL, 0, x, y, NULL, from, pitch, 0, 0, width, height, kind, true, S(s)));
}
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                  size_t height, enum cudaMemcpyKind kind) {
    CALL(copy_array(NULL, to, pitch, 0, 0, from, NULL, 0, x, y, width, height, kind, false, S(NULL)));
}
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                       size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy_array(NULL, to, pitch, 0, 0, from, NULL, 0, x, y, width, height, kind, true, S(s)));
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                     size_t from_y, size_t width, size_t height, enum cudaMemcpyKind kind) {
    CALL(copy_array(to, NULL, 0, to_x, to_y, from, NULL, 0, from_x, from_y, width, height, kind, false, S(NULL)));
}
/* A count of bytes goes on in the rows below. */
static CUresult copy_bytes(cudaArray_t to, void *memory, cudaArray_const_t from, const char *source, size_t x, size_t y,
                           size_t n, enum cudaMemcpyKind kind, bool async, CUstream s) {
    struct cudaExtent e;
    const void *array = to ? (const void *)to : (const void *)from;
    CUresult code = (CUresult)cudaArrayGetInfo(NULL, &e, NULL, (cudaArray_t)(uintptr_t)array);
    size_t row = code ? 0 : e.width * runtime_texel_bytes(array);
    for (; n && !code; y++, x = 0) {
        if (x >= row) return CUDA_ERROR_INVALID_VALUE;
        size_t part = n < row - x ? n : row - x;
        code = copy_array(to, memory, part, to ? x : 0, to ? y : 0, from, source, part, from ? x : 0, from ? y : 0,
                          part, 1, kind, async, s);
        if (memory) memory = (char *)memory + part;
        if (source) source += part;
        n -= part;
    }
    return code;
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t n,
                              enum cudaMemcpyKind kind) {
    CALL(copy_bytes(to, NULL, NULL, (const char *)from, x, y, n, kind, false, S(NULL)));
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t n,
                                   enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy_bytes(to, NULL, NULL, (const char *)from, x, y, n, kind, true, S(s)));
}
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t n,
                                enum cudaMemcpyKind kind) {
    CALL(copy_bytes(NULL, to, from, NULL, x, y, n, kind, false, S(NULL)));
}
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t n,
                                     enum cudaMemcpyKind kind, cudaStream_t s) {
    CALL(copy_bytes(NULL, to, from, NULL, x, y, n, kind, true, S(s)));
}
/* Within one row of each. */
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x,
                                   size_t from_y, size_t n, enum cudaMemcpyKind kind) {
    CALL(copy_array(to, NULL, 0, to_x, to_y, from, NULL, 0, from_x, from_y, n, 1, kind, false, S(NULL)));
}

static CUresult of_peers(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D *d) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    struct cudaMemcpy3DParms q = {p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                  p->dstPos,   p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
    return p->srcDevice || p->dstDevice ? CUDA_ERROR_INVALID_DEVICE : runtime_copy_3d(&q, d);
}
cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p) {
    CUDA_MEMCPY3D d;
    CUresult code = of_peers(p, &d);
    CALL(code ? code : copy_3d(&d, false, S(NULL)));
}
cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t s) {
    CUDA_MEMCPY3D d;
    CUresult code = of_peers(p, &d);
    CALL(code ? code : copy_3d(&d, true, S(s)));
}

/* The attributes say where the memory is and when it may be read: neither changes what is copied. */
cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t count,
                                 struct cudaMemcpyAttributes *attributes, size_t *indices, size_t n,
                                 cudaStream_t s) {
    CUresult code = runtime_ready();
    if (!code && (!to || !from || !sizes || !count || !attributes || !indices || !n || n > count || !s))
        code = CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < count && !code; k++)
        code = copy((void *)to[k], from[k], sizes[k], cudaMemcpyDefault, true, S(s));
    return runtime_keep(code);
}

/* --- setting --------------------------------------------------------------------------------- */

static CUresult set(void *p, size_t pitch, int v, size_t width, size_t height, bool async, CUstream s) {
    unsigned char byte = (unsigned char)v;
    if (!width || !height) return CUDA_SUCCESS;
    if (height == 1)
        return async ? cuMemsetD8Async(D(p), byte, width, s)
                     : WAITING(cuMemsetD8(D(p), byte, width), cuMemsetD8Async(D(p), byte, width, s));
    return async ? cuMemsetD2D8Async(D(p), pitch, byte, width, height, s)
                 : WAITING(cuMemsetD2D8(D(p), pitch, byte, width, height),
                           cuMemsetD2D8Async(D(p), pitch, byte, width, height, s));
}
static CUresult set_3d(struct cudaPitchedPtr p, int v, struct cudaExtent e, bool async, CUstream s) {
    CUresult code = CUDA_SUCCESS;
    if (p.ysize < e.height && e.depth > 1) return CUDA_ERROR_INVALID_VALUE;
    for (size_t z = 0; z < e.depth && !code; z++)
        code = set((char *)p.ptr + z * p.pitch * p.ysize, p.pitch, v, e.width, e.height, async, s);
    return code;
}
cudaError_t cudaMemset(void *p, int v, size_t n) { CALL(set(p, n, v, n, 1, false, S(NULL))); }
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) { CALL(set(p, n, v, n, 1, true, S(s))); }
cudaError_t cudaMemset2D(void *p, size_t pitch, int v, size_t width, size_t height) {
    CALL(set(p, pitch, v, width, height, false, S(NULL)));
}
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int v, size_t width, size_t height, cudaStream_t s) {
    CALL(set(p, pitch, v, width, height, true, S(s)));
}
cudaError_t cudaMemset3D(struct cudaPitchedPtr p, int v, struct cudaExtent e) {
    CALL(set_3d(p, v, e, false, S(NULL)));
}
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr p, int v, struct cudaExtent e, cudaStream_t s) {
    CALL(set_3d(p, v, e, true, S(s)));
}

/* --- memory in stream order, managed memory -------------------------------------------------- */

static CUresult pooled(void **p, size_t n, cudaMemPool_t pool, CUstream s) {
    CUdeviceptr d = 0;
    CUresult code = runtime_ready();
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    if (!code && n) code = pool ? cuMemAllocFromPoolAsync(&d, n, (CUmemoryPool)pool, s) : cuMemAllocAsync(&d, n, s);
    *p = (void *)(uintptr_t)d;
    return code;
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) { return runtime_keep(pooled(p, n, NULL, S(s))); }
cudaError_t cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t pool, cudaStream_t s) {
    return runtime_keep(pool ? pooled(p, n, pool, S(s)) : CUDA_ERROR_INVALID_VALUE);
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { CALL(cuMemFreeAsync(D(p), S(s))); }
cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, struct cudaMemLocation where, unsigned flags,
                                 cudaStream_t s) {
    CUmemLocation w = {.type = (CUmemLocationType)where.type, .id = where.id};
    CALL(cuMemPrefetchAsync(D(p), n, w, flags, S(s)));
}
static CUresult prefetch(void **p, size_t *sizes, size_t count, struct cudaMemLocation *where, size_t *indices,
                         size_t n, CUstream s) {
    CUresult code = p && sizes && count && where && indices && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0, at = 0; k < count && !code; k++) {
        while (at + 1 < n && indices[at + 1] <= k) at++;
        CUmemLocation w = {.type = (CUmemLocationType)where[at].type, .id = where[at].id};
        code = cuMemPrefetchAsync(D(p[k]), sizes[k], w, 0, s);
    }
    return code;
}
cudaError_t cudaMemPrefetchBatchAsync(void **p, size_t *sizes, size_t count, struct cudaMemLocation *where,
                                      size_t *indices, size_t n, unsigned long long flags, cudaStream_t s) {
    CALL(flags ? CUDA_ERROR_INVALID_VALUE : prefetch(p, sizes, count, where, indices, n, S(s)));
}

/* --- streams and events ---------------------------------------------------------------------- */

cudaError_t cudaStreamSynchronize(cudaStream_t s) { CALL(cuStreamSynchronize(S(s))); }
cudaError_t cudaStreamQuery(cudaStream_t s) { CALL(cuStreamQuery(S(s))); }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    CALL(cuStreamWaitEvent(S(s), e, flags));
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *out) { CALL(cuStreamGetPriority(S(s), out)); }
cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned *out) { CALL(cuStreamGetFlags(S(s), out)); }
cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *out) { CALL(cuStreamGetId(S(s), out)); }
cudaError_t cudaStreamGetDevice(cudaStream_t s, int *out) { CALL(cuStreamGetDevice(S(s), out)); }
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    CALL(cuStreamCopyAttributes(S(to), S(from)));
}
cudaError_t cudaStreamGetAttribute(cudaStream_t s, cudaStreamAttrID id, cudaStreamAttrValue *out) {
    CALL(cuStreamGetAttribute(S(s), (CUstreamAttrID)id, (CUstreamAttrValue *)(void *)out));
}
cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID id, const cudaStreamAttrValue *v) {
    CALL(cuStreamSetAttribute(S(s), (CUstreamAttrID)id, (const CUstreamAttrValue *)(const void *)v));
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t call, void *argument, unsigned flags) {
    CALL(cuStreamAddCallback(S(s), (CUstreamCallback)(void (*)(void))call, argument, flags));
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t s, void *p, size_t n, unsigned flags) {
    CALL(cuStreamAttachMemAsync(S(s), D(p), n, flags));
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { CALL(cuEventRecord(e, S(s))); }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags) {
    CALL(cuEventRecordWithFlags(e, S(s), flags));
}

/* --- capture, launches of graphs ------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    CALL(cuStreamBeginCapture(S(s), (CUstreamCaptureMode)mode));
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t *deps,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode) {
    CALL(cuStreamBeginCaptureToGraph(S(s), graph, deps, (const CUgraphEdgeData *)(const void *)edges, count,
                                     (CUstreamCaptureMode)mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) { CALL(cuStreamEndCapture(S(s), out)); }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *out) {
    CALL(cuStreamIsCapturing(S(s), (CUstreamCaptureStatus *)(void *)out));
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **deps,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    cuuint64_t number = 0;
    CUresult code = runtime_ready();
    if (!code)
        code = cuStreamGetCaptureInfo(S(s), (CUstreamCaptureStatus *)(void *)status, &number, graph, deps,
                                      (const CUgraphEdgeData **)(void *)edges, count);
    if (!code && id) *id = number;
    return runtime_keep(code);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *deps,
                                                const cudaGraphEdgeData *edges, size_t count, unsigned flags) {
    CALL(cuStreamUpdateCaptureDependencies(S(s), deps, (const CUgraphEdgeData *)(const void *)edges, count,
                                           flags));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) { CALL(cuGraphLaunch(exec, S(s))); }
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s) { CALL(cuGraphUpload(exec, S(s))); }
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *out, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *p) {
    CUDA_GRAPH_INSTANTIATE_PARAMS d = {0};
    if (!p) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    d.flags = p->flags, d.hUploadStream = S(p->uploadStream);
    CUresult code = runtime_ready();
    if (!code) code = cuGraphInstantiateWithParams(out, graph, &d);
    p->errNode_out = d.hErrNode_out, p->result_out = (cudaGraphInstantiateResult)d.result_out;
    return runtime_keep(code);
}

/* --- the driver's own functions -------------------------------------------------------------- */

#ifdef PER_THREAD
enum { STREAM_FLAG = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
#else
enum { STREAM_FLAG = CU_GET_PROC_ADDRESS_LEGACY_STREAM };
#endif
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult code = cuGetProcAddress(name, out, (int)version, flags ? flags : STREAM_FLAG, &found);
    if (status) *status = (enum cudaDriverEntryPointQueryResult)found;
    return runtime_keep(code == CUDA_ERROR_NOT_FOUND && status ? CUDA_SUCCESS : code);
}
cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(name, out, CUDA_VERSION, flags, status);
}
