/* refused.c - what the runtime knows by name and does not offer: each call says so once, and returns
 * cudaErrorNotSupported. The functions have no parameters here; what callers pass is not looked at. */
#include <stdio.h>

enum { NOT_SUPPORTED = 801 };
int runtime_keep(int code) __attribute__((visibility("hidden")));
int runtime_refuse(const char *function, const char *why) __attribute__((visibility("hidden")));

int runtime_refuse(const char *function, const char *why) {
    static const char *told[128];
    int n = 0;
    while (n < 128 && told[n] && told[n] != function) n++;
    if (n == 128 || !told[n]) {
        fprintf(stderr, "%s: the CUDA runtime over the CPU driver does not offer %s\n", function, why);
        if (n < 128) told[n] = function;
    }
    return runtime_keep(NOT_SUPPORTED);
}

#define TEXTURES "planar, deferred and sparse arrays"
#define IPC "memory and events of other processes (IPC)"
#define EXTERNAL "external memory and semaphores"
#define GRAPHICS "the buffers of graphics libraries"
#define PEERS "notifications and atomics between devices"
#define TABLES "the driver's private tables"
#define LOGS "logs of errors"
#define DISCARD "batches that discard memory"
#define CONDITIONAL "conditional nodes"
#define BATCH_3D "batches of copies in three dimensions"

#define REFUSED(X) \
    X(cudaArrayGetPlane, TEXTURES) X(cudaArrayGetMemoryRequirements, TEXTURES) \
    X(cudaMipmappedArrayGetMemoryRequirements, TEXTURES) X(cudaArrayGetSparseProperties, TEXTURES) \
    X(cudaMipmappedArrayGetSparseProperties, TEXTURES) \
    X(cudaIpcGetEventHandle, IPC) X(cudaIpcOpenEventHandle, IPC) X(cudaIpcGetMemHandle, IPC) \
    X(cudaIpcOpenMemHandle, IPC) X(cudaIpcCloseMemHandle, IPC) X(cudaMemPoolExportPointer, IPC) \
    X(cudaMemPoolImportPointer, IPC) X(cudaMemPoolExportToShareableHandle, IPC) \
    X(cudaMemPoolImportFromShareableHandle, IPC) \
    X(cudaImportExternalMemory, EXTERNAL) X(cudaExternalMemoryGetMappedBuffer, EXTERNAL) \
    X(cudaExternalMemoryGetMappedMipmappedArray, EXTERNAL) X(cudaDestroyExternalMemory, EXTERNAL) \
    X(cudaImportExternalSemaphore, EXTERNAL) X(cudaDestroyExternalSemaphore, EXTERNAL) \
    X(cudaSignalExternalSemaphoresAsync, EXTERNAL) X(cudaWaitExternalSemaphoresAsync, EXTERNAL) \
    X(cudaGraphAddExternalSemaphoresSignalNode, EXTERNAL) X(cudaGraphAddExternalSemaphoresWaitNode, EXTERNAL) \
    X(cudaGraphExternalSemaphoresSignalNodeGetParams, EXTERNAL) \
    X(cudaGraphExternalSemaphoresSignalNodeSetParams, EXTERNAL) \
    X(cudaGraphExternalSemaphoresWaitNodeGetParams, EXTERNAL) \
    X(cudaGraphExternalSemaphoresWaitNodeSetParams, EXTERNAL) \
    X(cudaGraphExecExternalSemaphoresSignalNodeSetParams, EXTERNAL) \
    X(cudaGraphExecExternalSemaphoresWaitNodeSetParams, EXTERNAL) X(cudaDeviceGetNvSciSyncAttributes, EXTERNAL) \
    X(cudaGraphicsMapResources, GRAPHICS) X(cudaGraphicsUnmapResources, GRAPHICS) \
    X(cudaGraphicsUnregisterResource, GRAPHICS) X(cudaGraphicsResourceSetMapFlags, GRAPHICS) \
    X(cudaGraphicsResourceGetMappedPointer, GRAPHICS) X(cudaGraphicsSubResourceGetMappedArray, GRAPHICS) \
    X(cudaGraphicsResourceGetMappedMipmappedArray, GRAPHICS) X(cudaGraphicsGLRegisterBuffer, GRAPHICS) \
    X(cudaGraphicsGLRegisterImage, GRAPHICS) X(cudaGLGetDevices, GRAPHICS) \
    X(cudaDeviceRegisterAsyncNotification, PEERS) X(cudaDeviceUnregisterAsyncNotification, PEERS) \
    X(cudaDeviceGetHostAtomicCapabilities, PEERS) X(cudaDeviceGetP2PAtomicCapabilities, PEERS) \
    X(cudaGetExportTable, TABLES) X(cudaLibraryGetUnifiedFunction, TABLES) \
    X(cudaLogsRegisterCallback, LOGS) X(cudaLogsUnregisterCallback, LOGS) X(cudaLogsCurrent, LOGS) \
    X(cudaLogsDumpToFile, LOGS) X(cudaLogsDumpToMemory, LOGS) \
    X(cudaMemDiscardBatchAsync, DISCARD) X(cudaMemDiscardAndPrefetchBatchAsync, DISCARD) \
    X(cudaMemcpy3DBatchAsync, BATCH_3D) X(cudaGraphConditionalHandleCreate, CONDITIONAL)

#define X(name, why)                                                                                         \
    int name(void);                                                                                          \
    int name(void) { return runtime_refuse(#name, why); }
REFUSED(X)
#undef X

/* The names of those with a stream in programs whose default stream is the thread's own. */
#define X(name, suffix, why)                                                                                 \
    int name##suffix(void);                                                                                  \
    int name##suffix(void) { return runtime_refuse(#name, why); }
X(cudaSignalExternalSemaphoresAsync, _ptsz, EXTERNAL) X(cudaWaitExternalSemaphoresAsync, _ptsz, EXTERNAL)
X(cudaMemDiscardBatchAsync, _ptsz, DISCARD) X(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, DISCARD)
X(cudaMemcpy3DBatchAsync, _ptsz, BATCH_3D)
