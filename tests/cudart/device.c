/* device.c - the device, events and streams without work, errors by name. */
#include "cudart.h"
#include <cudaProfiler.h>

/* --- the device ------------------------------------------------------------------------------ */

static CUresult only_device(int device) { return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; }

cudaError_t cudaGetDeviceCount(int *n) { CALL(cuDeviceGetCount(n)); }
cudaError_t cudaGetDevice(int *device) {
    if (device) *device = 0;
    CALL(device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
cudaError_t cudaSetDevice(int device) { CALL(only_device(device)); }
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags;
    CALL(flags > 1 ? CUDA_ERROR_INVALID_VALUE : only_device(device));
}
cudaError_t cudaSetValidDevices(int *devices, int n) {
    CALL(n < 0 || (n && !devices) ? CUDA_ERROR_INVALID_VALUE : n ? only_device(devices[0]) : CUDA_SUCCESS);
}
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wish) {
    if (!device || !wish) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    return cudaGetDevice(device);
}
cudaError_t cudaDeviceSynchronize(void) { CALL(cuCtxSynchronize()); }
cudaError_t cudaDeviceReset(void) {
    CUresult code = runtime_ready();
    if (code) return runtime_keep(code);
    cuCtxSynchronize();                /* an error of a kernel ends with the context */
    runtime_unload();
    cuCtxSetCurrent(NULL);
    return runtime_keep(cuDevicePrimaryCtxReset(0));
}
cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int device) {
    CALL(cuDeviceGetAttribute(v, (CUdevice_attribute)a, device));
}
cudaError_t cudaDriverGetVersion(int *v) { return runtime_keep(cuDriverGetVersion(v)); }
cudaError_t cudaRuntimeGetVersion(int *v) {
    if (v) *v = CUDART_VERSION;
    return runtime_keep(v ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
cudaError_t cudaDeviceGetPCIBusId(char *out, int size, int device) {
    CALL(cuDeviceGetPCIBusId(out, size, device));
}
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) { CALL(cuDeviceGetByPCIBusId(device, id)); }
cudaError_t cudaSetDeviceFlags(unsigned flags) { CALL(cuDevicePrimaryCtxSetFlags(0, flags)); }
cudaError_t cudaGetDeviceFlags(unsigned *flags) { CALL(cuCtxGetFlags(flags)); }
cudaError_t cudaDeviceGetLimit(size_t *v, enum cudaLimit limit) { CALL(cuCtxGetLimit(v, (CUlimit)limit)); }
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t v) { CALL(cuCtxSetLimit((CUlimit)limit, v)); }
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *out) {
    CALL(cuCtxGetCacheConfig((CUfunc_cache *)(void *)out));
}
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
    CALL(cuCtxSetCacheConfig((CUfunc_cache)config));
}
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *out) {
    CALL(cuCtxGetSharedMemConfig((CUsharedconfig *)(void *)out));
}
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
    CALL(cuCtxSetSharedMemConfig((CUsharedconfig)config));
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    CALL(cuCtxGetStreamPriorityRange(least, greatest));
}
cudaError_t cudaCtxResetPersistingL2Cache(void) { CALL(cuCtxResetPersistingL2Cache()); }
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope) {
    (void)target, (void)scope;
    CALL(CUDA_SUCCESS);
}
cudaError_t cudaProfilerStart(void) { CALL(cuProfilerStart()); }
cudaError_t cudaProfilerStop(void) { CALL(cuProfilerStop()); }

/* One device has no peers. */
cudaError_t cudaDeviceCanAccessPeer(int *out, int device, int peer) {
    CALL(cuDeviceCanAccessPeer(out, device, peer));
}
cudaError_t cudaDeviceGetP2PAttribute(int *out, enum cudaDeviceP2PAttr attribute, int from, int to) {
    CALL(cuDeviceGetP2PAttribute(out, (CUdevice_P2PAttribute)attribute, from, to));
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    (void)peer;
    CALL(flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    CALL(peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

static int attribute(CUdevice_attribute a) {
    int v = 0;
    cuDeviceGetAttribute(&v, a, 0);
    return v;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    CUresult code = runtime_ready();
    if (!p) return runtime_keep(CUDA_ERROR_INVALID_VALUE);
    memset(p, 0, sizeof *p);
    if (!code) code = cuDeviceGetName(p->name, sizeof p->name, device);
    if (!code) code = cuDeviceTotalMem(&p->totalGlobalMem, device);
    if (!code) code = cuDeviceGetUuid((CUuuid *)&p->uuid, device);
    if (code) return runtime_keep(code);
#define FIELD(type, field, name) p->field = (type)attribute(CU_DEVICE_ATTRIBUTE_##name)
#define I(field, name) FIELD(int, field, name)
#define N(field, name) FIELD(size_t, field, name)
#define U(field, name) FIELD(unsigned, field, name)
    I(major, COMPUTE_CAPABILITY_MAJOR), I(minor, COMPUTE_CAPABILITY_MINOR);
    I(multiProcessorCount, MULTIPROCESSOR_COUNT), I(warpSize, WARP_SIZE);
    I(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
    I(maxThreadsDim[0], MAX_BLOCK_DIM_X), I(maxThreadsDim[1], MAX_BLOCK_DIM_Y);
    I(maxThreadsDim[2], MAX_BLOCK_DIM_Z);
    I(maxGridSize[0], MAX_GRID_DIM_X), I(maxGridSize[1], MAX_GRID_DIM_Y), I(maxGridSize[2], MAX_GRID_DIM_Z);
    I(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR);
    I(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR);
    I(regsPerBlock, MAX_REGISTERS_PER_BLOCK), I(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
    N(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
    N(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    N(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    N(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK);
    N(totalConstMem, TOTAL_CONSTANT_MEMORY), N(memPitch, MAX_PITCH);
    I(l2CacheSize, L2_CACHE_SIZE), I(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE);
    I(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE);
    I(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH), I(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED);
    I(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED), I(ECCEnabled, ECC_ENABLED);
    I(integrated, INTEGRATED), I(tccDriver, TCC_DRIVER);
    I(pciBusID, PCI_BUS_ID), I(pciDeviceID, PCI_DEVICE_ID), I(pciDomainID, PCI_DOMAIN_ID);
    U(gpuPciDeviceID, GPU_PCI_DEVICE_ID), U(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID);
    I(isMultiGpuBoard, MULTI_GPU_BOARD), I(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID);
    I(asyncEngineCount, ASYNC_ENGINE_COUNT), I(concurrentKernels, CONCURRENT_KERNELS);
    I(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED);
    I(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED);
    I(cooperativeLaunch, COOPERATIVE_LAUNCH), I(clusterLaunch, CLUSTER_LAUNCH);
    I(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS), I(mpsEnabled, MPS_ENABLED);
    I(canMapHostMemory, CAN_MAP_HOST_MEMORY), I(unifiedAddressing, UNIFIED_ADDRESSING);
    I(managedMemory, MANAGED_MEMORY), I(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS);
    I(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
    I(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
    I(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST);
    I(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED);
    I(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    I(hostRegisterSupported, HOST_REGISTER_SUPPORTED);
    I(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED);
    I(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED);
    U(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES);
    I(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED);
    U(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    I(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING);
    I(ipcEventSupported, IPC_EVENT_SUPPORTED);
    I(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);
    I(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED);
    I(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);
    I(deviceNumaConfig, NUMA_CONFIG), I(deviceNumaId, NUMA_ID), I(hostNumaId, HOST_NUMA_ID);
    I(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED);
    N(textureAlignment, TEXTURE_ALIGNMENT), N(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT);
    N(surfaceAlignment, SURFACE_ALIGNMENT);
#define T1(field, name) I(field, MAXIMUM_##name##_WIDTH)
#define T2(field, name) T1(field[0], name), I(field[1], MAXIMUM_##name##_HEIGHT)
#define T3(field, name) T2(field, name), I(field[2], MAXIMUM_##name##_DEPTH)
    T1(maxTexture1D, TEXTURE1D), T1(maxTexture1DMipmap, TEXTURE1D_MIPMAPPED);
    T2(maxTexture2D, TEXTURE2D), T2(maxTexture2DMipmap, TEXTURE2D_MIPMAPPED);
    T2(maxTexture2DLinear, TEXTURE2D_LINEAR), I(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    T2(maxTexture2DGather, TEXTURE2D_GATHER), T3(maxTexture3D, TEXTURE3D);
    I(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
    I(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE);
    I(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
    T1(maxTextureCubemap, TEXTURECUBEMAP);
    T1(maxTexture1DLayered[0], TEXTURE1D_LAYERED), I(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
    T2(maxTexture2DLayered, TEXTURE2D_LAYERED), I(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
    T1(maxTextureCubemapLayered[0], TEXTURECUBEMAP_LAYERED);
    I(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
    T1(maxSurface1D, SURFACE1D), T2(maxSurface2D, SURFACE2D), T3(maxSurface3D, SURFACE3D);
    T1(maxSurface1DLayered[0], SURFACE1D_LAYERED), I(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS);
    T2(maxSurface2DLayered, SURFACE2D_LAYERED), I(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS);
    T1(maxSurfaceCubemap, SURFACECUBEMAP), T1(maxSurfaceCubemapLayered[0], SURFACECUBEMAP_LAYERED);
    I(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS);
    return cudaSuccess;
}

/* --- streams and events that are made and destroyed ------------------------------------------ */

cudaError_t cudaStreamCreate(cudaStream_t *s) { CALL(cuStreamCreate(s, 0)); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) { CALL(cuStreamCreate(s, flags)); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority) {
    CALL(cuStreamCreateWithPriority(s, flags, priority));
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { CALL(cuStreamDestroy(s)); }
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    CALL(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)(void *)mode));
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { CALL(cuEventCreate(e, 0)); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) { CALL(cuEventCreate(e, flags)); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { CALL(cuEventSynchronize(e)); }
cudaError_t cudaEventQuery(cudaEvent_t e) { CALL(cuEventQuery(e)); }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    CALL(cuEventElapsedTime(ms, a, b));
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { CALL(cuEventDestroy(e)); }

/* --- errors ---------------------------------------------------------------------------------- */

#define ERRORS(X) \
    X(InvalidValue) X(MemoryAllocation) X(InitializationError) X(CudartUnloading) X(ProfilerDisabled) \
    X(ProfilerNotInitialized) X(ProfilerAlreadyStarted) X(ProfilerAlreadyStopped) X(InvalidConfiguration) \
    X(InvalidPitchValue) X(InvalidSymbol) X(InvalidHostPointer) X(InvalidDevicePointer) X(InvalidTexture) \
    X(InvalidTextureBinding) X(InvalidChannelDescriptor) X(InvalidMemcpyDirection) X(AddressOfConstant) \
    X(TextureFetchFailed) X(TextureNotBound) X(SynchronizationError) X(InvalidFilterSetting) \
    X(InvalidNormSetting) X(MixedDeviceExecution) X(NotYetImplemented) X(MemoryValueTooLarge) \
    X(StubLibrary) X(InsufficientDriver) X(CallRequiresNewerDriver) X(InvalidSurface) \
    X(DuplicateVariableName) X(DuplicateTextureName) X(DuplicateSurfaceName) X(DevicesUnavailable) \
    X(IncompatibleDriverContext) X(MissingConfiguration) X(PriorLaunchFailure) X(LaunchMaxDepthExceeded) \
    X(LaunchFileScopedTex) X(LaunchFileScopedSurf) X(SyncDepthExceeded) X(LaunchPendingCountExceeded) \
    X(InvalidDeviceFunction) X(NoDevice) X(InvalidDevice) X(DeviceNotLicensed) \
    X(SoftwareValidityNotEstablished) X(StartupFailure) X(InvalidKernelImage) X(DeviceUninitialized) \
    X(MapBufferObjectFailed) X(UnmapBufferObjectFailed) X(ArrayIsMapped) X(AlreadyMapped) \
    X(NoKernelImageForDevice) X(AlreadyAcquired) X(NotMapped) X(NotMappedAsArray) X(NotMappedAsPointer) \
    X(ECCUncorrectable) X(UnsupportedLimit) X(DeviceAlreadyInUse) X(PeerAccessUnsupported) X(InvalidPtx) \
    X(InvalidGraphicsContext) X(NvlinkUncorrectable) X(JitCompilerNotFound) X(UnsupportedPtxVersion) \
    X(JitCompilationDisabled) X(UnsupportedExecAffinity) X(UnsupportedDevSideSync) X(Contained) \
    X(InvalidSource) X(FileNotFound) X(SharedObjectSymbolNotFound) X(SharedObjectInitFailed) \
    X(OperatingSystem) X(InvalidResourceHandle) X(IllegalState) X(LossyQuery) X(SymbolNotFound) \
    X(NotReady) X(IllegalAddress) X(LaunchOutOfResources) X(LaunchTimeout) X(LaunchIncompatibleTexturing) \
    X(PeerAccessAlreadyEnabled) X(PeerAccessNotEnabled) X(SetOnActiveProcess) X(ContextIsDestroyed) \
    X(Assert) X(TooManyPeers) X(HostMemoryAlreadyRegistered) X(HostMemoryNotRegistered) \
    X(HardwareStackError) X(IllegalInstruction) X(MisalignedAddress) X(InvalidAddressSpace) X(InvalidPc) \
    X(LaunchFailure) X(CooperativeLaunchTooLarge) X(TensorMemoryLeak) X(NotPermitted) X(NotSupported) \
    X(SystemNotReady) X(SystemDriverMismatch) X(CompatNotSupportedOnDevice) X(MpsConnectionFailed) \
    X(MpsRpcFailure) X(MpsServerNotReady) X(MpsMaxClientsReached) X(MpsMaxConnectionsReached) \
    X(MpsClientTerminated) X(CdpNotSupported) X(CdpVersionMismatch) X(StreamCaptureUnsupported) \
    X(StreamCaptureInvalidated) X(StreamCaptureMerge) X(StreamCaptureUnmatched) X(StreamCaptureUnjoined) \
    X(StreamCaptureIsolation) X(StreamCaptureImplicit) X(CapturedEvent) X(StreamCaptureWrongThread) \
    X(Timeout) X(GraphExecUpdateFailure) X(ExternalDevice) X(InvalidClusterSize) X(FunctionNotLoaded) \
    X(InvalidResourceType) X(InvalidResourceConfiguration) X(Unknown) X(ApiFailureBase)

const char *cudaGetErrorName(cudaError_t e) {
    switch (e) {
    case cudaSuccess: return "cudaSuccess";
#define X(name) case cudaError##name: return "cudaError" #name;
    ERRORS(X)
#undef X
    default: return "unrecognized error code";
    }
}

/* Texts of the errors that only the runtime has; the others are the driver's. */
const char *cudaGetErrorString(cudaError_t e) {
    const char *text = NULL;
    switch (e) {
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidSymbol: return "invalid device symbol";
    case cudaErrorInvalidHostPointer: return "invalid host pointer";
    case cudaErrorInvalidDevicePointer: return "invalid device pointer";
    case cudaErrorInvalidTexture: return "invalid texture reference";
    case cudaErrorInvalidChannelDescriptor: return "invalid channel descriptor";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorMissingConfiguration: return "__global__ function call is not configured";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    case cudaErrorStartupFailure: return "startup failure in cuda runtime";
    default: break;
    }
    if (!cuGetErrorString((CUresult)e, &text) && text) return text;
    return strcmp(cudaGetErrorName(e), "unrecognized error code") ? cudaGetErrorName(e) : "unrecognized error code";
}
