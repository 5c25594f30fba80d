/* graphs.c - graphs of work. A graph, a node and a graph exec are the driver's own; what differs is how kernels and
 * copies are named. */
#include "cudart.h"

/* --- parameters of nodes: the runtime's and the driver's ------------------------------------- */

static CUresult kernel_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *out) {
    CUfunction f;
    CUresult code = p ? runtime_function(p->func, &f) : CUDA_ERROR_INVALID_VALUE;
    if (!code) code = runtime_shape(p->gridDim, p->blockDim);
    if (code) return code;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                     .gridDimX = p->gridDim.x,
                                     .gridDimY = p->gridDim.y,
                                     .gridDimZ = p->gridDim.z,
                                     .blockDimX = p->blockDim.x,
                                     .blockDimY = p->blockDim.y,
                                     .blockDimZ = p->blockDim.z,
                                     .sharedMemBytes = p->sharedMemBytes,
                                     .kernelParams = p->kernelParams,
                                     .extra = p->extra};
    return CUDA_SUCCESS;
}

void runtime_line_3d(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *out) {
    struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)from, n, n, 1},
                                  .dstPtr = {to, n, n, 1},
                                  .extent = {n, 1, 1},
                                  .kind = kind};
    if (runtime_copy_3d(&p, out)) memset(out, 0, sizeof *out);   /* which the driver refuses */
}

static void params_of_copy(const CUDA_MEMCPY3D *d, struct cudaMemcpy3DParms *out) {
    bool to_host = d->dstMemoryType == CU_MEMORYTYPE_HOST, from_host = d->srcMemoryType == CU_MEMORYTYPE_HOST;
    void *to = to_host ? d->dstHost : (void *)(uintptr_t)d->dstDevice,
         *from = (void *)(uintptr_t)(from_host ? D(d->srcHost) : d->srcDevice);
    *out = (struct cudaMemcpy3DParms){
        .srcPos = {d->srcXInBytes, d->srcY, d->srcZ},
        .srcPtr = {from, d->srcPitch, d->WidthInBytes, d->srcHeight},
        .dstPos = {d->dstXInBytes, d->dstY, d->dstZ},
        .dstPtr = {to, d->dstPitch, d->WidthInBytes, d->dstHeight},
        .extent = {d->WidthInBytes, d->Height, d->Depth},
        .kind = from_host ? to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
                : to_host ? cudaMemcpyDeviceToHost
                          : cudaMemcpyDeviceToDevice};
}

static CUcontext current(void) {
    CUcontext c = NULL;
    cuCtxGetCurrent(&c);
    return c;
}

static CUresult set_params(const struct cudaMemsetParams *p, CUDA_MEMSET_NODE_PARAMS *out) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_MEMSET_NODE_PARAMS){D(p->dst), p->pitch, p->value, p->elementSize, p->width, p->height};
    return CUDA_SUCCESS;
}
static CUresult host_params(const struct cudaHostNodeParams *p, CUDA_HOST_NODE_PARAMS *out) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_HOST_NODE_PARAMS){.fn = p->fn, .userData = p->userData};
    return CUDA_SUCCESS;
}

/* --- nodes of each kind ---------------------------------------------------------------------- */

#define ADD cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count
#define AT out, graph, deps, count
/* `make` fills d from what the caller gave; then the driver's call takes it. */
#define WITH(type, make, call)                                                                               \
    do {                                                                                                     \
        type d;                                                                                              \
        CUresult made_ = runtime_ready();                                                                    \
        if (!made_) made_ = (make);                                                                          \
        return runtime_keep(made_ ? made_ : (call));                                                         \
    } while (0)
#define WITH_KERNEL(call) WITH(CUDA_KERNEL_NODE_PARAMS, kernel_params(p, &d), call)
#define WITH_COPY(call) WITH(CUDA_MEMCPY3D, runtime_copy_3d(p, &d), call)
#define WITH_LINE(to, from, call)                                                                            \
    WITH(CUDA_MEMCPY3D, (runtime_line_3d(to, from, n, kind, &d), CUDA_SUCCESS), call)
#define WITH_SET(call) WITH(CUDA_MEMSET_NODE_PARAMS, set_params(p, &d), call)
#define WITH_HOST(call) WITH(CUDA_HOST_NODE_PARAMS, host_params(p, &d), call)

cudaError_t cudaGraphAddKernelNode(ADD, const struct cudaKernelNodeParams *p) {
    WITH_KERNEL(cuGraphAddKernelNode(AT, &d));
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *p) {
    WITH_KERNEL(cuGraphKernelNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *p) {
    WITH_KERNEL(cuGraphExecKernelNodeSetParams(exec, node, &d));
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *p) {
    CUDA_KERNEL_NODE_PARAMS d;
    CUresult code = p ? cuGraphKernelNodeGetParams(node, &d) : CUDA_ERROR_INVALID_VALUE;
    if (code) return runtime_keep(code);
    *p = (struct cudaKernelNodeParams){(void *)(uintptr_t)runtime_host_function(d.func),
                                       {d.gridDimX, d.gridDimY, d.gridDimZ},
                                       {d.blockDimX, d.blockDimY, d.blockDimZ},
                                       d.sharedMemBytes,
                                       d.kernelParams,
                                       d.extra};
    return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
    CALL(cuGraphKernelNodeCopyAttributes(to, from));
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID id,
                                            cudaKernelNodeAttrValue *out) {
    CALL(cuGraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)id, (CUkernelNodeAttrValue *)(void *)out));
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID id,
                                            const cudaKernelNodeAttrValue *v) {
    CALL(cuGraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)id,
                                       (const CUkernelNodeAttrValue *)(const void *)v));
}

cudaError_t cudaGraphAddMemcpyNode(ADD, const struct cudaMemcpy3DParms *p) {
    WITH_COPY(cuGraphAddMemcpyNode(AT, &d, current()));
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p) {
    WITH_COPY(cuGraphMemcpyNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *p) {
    WITH_COPY(cuGraphExecMemcpyNodeSetParams(exec, node, &d, current()));
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *p) {
    CUDA_MEMCPY3D d;
    CUresult code = p ? cuGraphMemcpyNodeGetParams(node, &d) : CUDA_ERROR_INVALID_VALUE;
    if (!code) params_of_copy(&d, p);
    return runtime_keep(code);
}
cudaError_t cudaGraphAddMemcpyNode1D(ADD, void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
    WITH_LINE(to, from, cuGraphAddMemcpyNode(AT, &d, current()));
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t n,
                                           enum cudaMemcpyKind kind) {
    WITH_LINE(to, from, cuGraphMemcpyNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                               const void *from, size_t n, enum cudaMemcpyKind kind) {
    WITH_LINE(to, from, cuGraphExecMemcpyNodeSetParams(exec, node, &d, current()));
}

/* Copies to and from a variable: a line at its address. */
#define WITH_SYMBOL(to, from, call)                                                                          \
    do {                                                                                                     \
        CUDA_MEMCPY3D d;                                                                                     \
        void *at;                                                                                            \
        CUresult found_ = runtime_symbol_part(symbol, n, offset, &at);                                       \
        if (!found_) runtime_line_3d(to, from, n, kind, &d);                                                 \
        return runtime_keep(found_ ? found_ : (call));                                                       \
    } while (0)
#define SYMBOL_PART size_t n, size_t offset, enum cudaMemcpyKind kind
cudaError_t cudaGraphAddMemcpyNodeToSymbol(ADD, const void *symbol, const void *from, SYMBOL_PART) {
    WITH_SYMBOL(at, from, cuGraphAddMemcpyNode(AT, &d, current()));
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(ADD, void *to, const void *symbol, SYMBOL_PART) {
    WITH_SYMBOL(to, at, cuGraphAddMemcpyNode(AT, &d, current()));
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 SYMBOL_PART) {
    WITH_SYMBOL(at, from, cuGraphMemcpyNodeSetParams(node, &d));
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol,
                                                   SYMBOL_PART) {
    WITH_SYMBOL(to, at, cuGraphMemcpyNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void *symbol, const void *from, SYMBOL_PART) {
    WITH_SYMBOL(at, from, cuGraphExecMemcpyNodeSetParams(exec, node, &d, current()));
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *symbol, SYMBOL_PART) {
    WITH_SYMBOL(to, at, cuGraphExecMemcpyNodeSetParams(exec, node, &d, current()));
}

cudaError_t cudaGraphAddMemsetNode(ADD, const struct cudaMemsetParams *p) {
    WITH_SET(cuGraphAddMemsetNode(AT, &d, current()));
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *p) {
    WITH_SET(cuGraphMemsetNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *p) {
    WITH_SET(cuGraphExecMemsetNodeSetParams(exec, node, &d, current()));
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *p) {
    CUDA_MEMSET_NODE_PARAMS d;
    CUresult code = p ? cuGraphMemsetNodeGetParams(node, &d) : CUDA_ERROR_INVALID_VALUE;
    if (code) return runtime_keep(code);
    *p = (struct cudaMemsetParams){(void *)(uintptr_t)d.dst, d.pitch, d.value, d.elementSize, d.width, d.height};
    return cudaSuccess;
}

cudaError_t cudaGraphAddHostNode(ADD, const struct cudaHostNodeParams *p) { WITH_HOST(cuGraphAddHostNode(AT, &d)); }
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *p) {
    WITH_HOST(cuGraphHostNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *p) {
    WITH_HOST(cuGraphExecHostNodeSetParams(exec, node, &d));
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *p) {
    CUDA_HOST_NODE_PARAMS d;
    CUresult code = p ? cuGraphHostNodeGetParams(node, &d) : CUDA_ERROR_INVALID_VALUE;
    if (!code) *p = (struct cudaHostNodeParams){d.fn, d.userData};
    return runtime_keep(code);
}

cudaError_t cudaGraphAddChildGraphNode(ADD, cudaGraph_t child) { CALL(cuGraphAddChildGraphNode(AT, child)); }
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *out_) {
    CALL(cuGraphChildGraphNodeGetGraph(node, out_));
}
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
    CALL(cuGraphExecChildGraphNodeSetParams(exec, node, child));
}
cudaError_t cudaGraphAddEmptyNode(ADD) { CALL(cuGraphAddEmptyNode(AT)); }
cudaError_t cudaGraphAddEventRecordNode(ADD, cudaEvent_t e) { CALL(cuGraphAddEventRecordNode(AT, e)); }
cudaError_t cudaGraphAddEventWaitNode(ADD, cudaEvent_t e) { CALL(cuGraphAddEventWaitNode(AT, e)); }
#define EVENT_NODE(kind)                                                                                     \
    cudaError_t cudaGraphEvent##kind##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t *e) {                   \
        CALL(cuGraphEvent##kind##NodeGetEvent(node, e));                                                     \
    }                                                                                                        \
    cudaError_t cudaGraphEvent##kind##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t e) {                    \
        CALL(cuGraphEvent##kind##NodeSetEvent(node, e));                                                     \
    }                                                                                                        \
    cudaError_t cudaGraphExecEvent##kind##NodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,           \
                                                       cudaEvent_t e) {                                      \
        CALL(cuGraphExecEvent##kind##NodeSetEvent(exec, node, e));                                           \
    }
EVENT_NODE(Record)
EVENT_NODE(Wait)

/* --- memory that a graph allocates ----------------------------------------------------------- */

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "one struct");

cudaError_t cudaGraphAddMemAllocNode(ADD, struct cudaMemAllocNodeParams *p) {
    CALL(cuGraphAddMemAllocNode(AT, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)p));
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *p) {
    CALL(cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)p));
}
cudaError_t cudaGraphAddMemFreeNode(ADD, void *p) { CALL(cuGraphAddMemFreeNode(AT, D(p))); }
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *p) {
    CALL(cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)p));
}
cudaError_t cudaDeviceGraphMemTrim(int device) { CALL(cuDeviceGraphMemTrim(device)); }
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *v) {
    CALL(cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, v));
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *v) {
    CALL(cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, v));
}

/* --- nodes of any kind ----------------------------------------------------------------------- */

/* The kinds that name no kernel and no copy have one struct with two names. */
static CUresult any_params(const struct cudaGraphNodeParams *p, CUgraphNodeParams *d) {
    _Static_assert(sizeof *p == sizeof *d, "one struct, two names");
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    memcpy(d, p, sizeof *d);
    if (p->type == cudaGraphNodeTypeKernel) {
        CUDA_KERNEL_NODE_PARAMS k;
        struct cudaKernelNodeParams q = {p->kernel.func,
                                         {p->kernel.gridDim.x, p->kernel.gridDim.y, p->kernel.gridDim.z},
                                         {p->kernel.blockDim.x, p->kernel.blockDim.y, p->kernel.blockDim.z},
                                         p->kernel.sharedMemBytes,
                                         p->kernel.kernelParams,
                                         p->kernel.extra};
        CUresult code = kernel_params(&q, &k);
        memset(d->reserved1, 0, sizeof d->reserved1);
        if (!code)
            d->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = k.func, .gridDimX = k.gridDimX, .gridDimY = k.gridDimY,
                                                     .gridDimZ = k.gridDimZ, .blockDimX = k.blockDimX,
                                                     .blockDimY = k.blockDimY, .blockDimZ = k.blockDimZ,
                                                     .sharedMemBytes = k.sharedMemBytes,
                                                     .kernelParams = k.kernelParams, .extra = k.extra};
        return code;
    }
    if (p->type != cudaGraphNodeTypeMemcpy) return CUDA_SUCCESS;
    memset(d->reserved1, 0, sizeof d->reserved1);
    d->memcpy.copyCtx = current();
    return runtime_copy_3d(&p->memcpy.copyParams, &d->memcpy.copyParams);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *deps,
                             const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *p) {
    CUgraphNodeParams d;
    CUresult code = runtime_ready();
    if (!code) code = any_params(p, &d);
    if (!code)
        code = cuGraphAddNode(out, graph, deps, (const CUgraphEdgeData *)(const void *)edges, count, &d);
    if (!code && p->type == cudaGraphNodeTypeMemAlloc) p->alloc.dptr = (void *)(uintptr_t)d.alloc.dptr;
    return runtime_keep(code);
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *p) {
    WITH(CUgraphNodeParams, any_params(p, &d), cuGraphNodeSetParams(node, &d));
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *p) {
    WITH(CUgraphNodeParams, any_params(p, &d), cuGraphExecNodeSetParams(exec, node, &d));
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *out) {
    CALL(cuGraphNodeGetType(node, (CUgraphNodeType *)(void *)out));
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { CALL(cuGraphDestroyNode(node)); }
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *out, cudaGraphNode_t node, cudaGraph_t clone) {
    CALL(cuGraphNodeFindInClone(out, node, clone));
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
    CALL(cuGraphNodeSetEnabled(exec, node, enabled));
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled) {
    CALL(cuGraphNodeGetEnabled(exec, node, enabled));
}

/* --- graphs ---------------------------------------------------------------------------------- */

#define EDGES(e) ((CUgraphEdgeData *)(void *)(e))
#define CONST_EDGES(e) ((const CUgraphEdgeData *)(const void *)(e))
cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags) { CALL(cuGraphCreate(out, flags)); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { CALL(cuGraphDestroy(graph)); }
cudaError_t cudaGraphClone(cudaGraph_t *out, cudaGraph_t graph) { CALL(cuGraphClone(out, graph)); }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    CALL(cuGraphGetNodes(graph, nodes, count));
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    CALL(cuGraphGetRootNodes(graph, nodes, count));
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
    CALL(cuGraphGetEdges(graph, from, to, EDGES(edges), count));
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps, cudaGraphEdgeData *edges,
                                         size_t *count) {
    CALL(cuGraphNodeGetDependencies(node, deps, EDGES(edges), count));
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *deps,
                                           cudaGraphEdgeData *edges, size_t *count) {
    CALL(cuGraphNodeGetDependentNodes(node, deps, EDGES(edges), count));
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count) {
    CALL(cuGraphAddDependencies(graph, from, to, CONST_EDGES(edges), count));
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count) {
    CALL(cuGraphRemoveDependencies(graph, from, to, CONST_EDGES(edges), count));
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
    CALL(cuGraphDebugDotPrint(graph, path, flags));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    CALL(cuGraphInstantiateWithFlags(out, graph, flags));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags) {
    CALL(cuGraphInstantiateWithFlags(out, graph, flags));
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *out) {
    cuuint64_t flags = 0;
    CUresult code = out ? cuGraphExecGetFlags(exec, &flags) : CUDA_ERROR_INVALID_VALUE;
    if (!code) *out = flags;
    return runtime_keep(code);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { CALL(cuGraphExecDestroy(exec)); }
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    _Static_assert(sizeof *info == sizeof(CUgraphExecUpdateResultInfo), "one struct, two names");
    CALL(cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)(void *)info));
}

/* --- objects that live as long as graphs need them ------------------------------------------- */

#define OBJECT(o) ((CUuserObject)(o))
cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *p, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
    CALL(cuUserObjectCreate((CUuserObject *)out, p, destroy, references, flags));
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t o, unsigned n) { CALL(cuUserObjectRetain(OBJECT(o), n)); }
cudaError_t cudaUserObjectRelease(cudaUserObject_t o, unsigned n) { CALL(cuUserObjectRelease(OBJECT(o), n)); }
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t o, unsigned n, unsigned flags) {
    CALL(cuGraphRetainUserObject(graph, OBJECT(o), n, flags));
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t o, unsigned n) {
    CALL(cuGraphReleaseUserObject(graph, OBJECT(o), n));
}
