/* cudart.h - what the files of the runtime share. */
#ifndef CUDART_H
#define CUDART_H
#include <cuda.h>
/* streamed.c is compiled twice: the second time its functions have the names (_ptsz, _ptds) that programs call
 * whose default stream is the thread's own. Only the runtime's header may see this: the driver is always called
 * with the stream itself. */
#ifdef PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(hidden)
cudaError_t runtime_keep(int code);    /* remembers an error of this thread, and returns it */
CUresult runtime_ready(void);          /* makes the primary context current where none is */
CUresult runtime_function(const void *host, CUfunction *out);
const void *runtime_host_function(CUfunction f);
CUresult runtime_symbol(const void *host, CUdeviceptr *at, size_t *size);
CUresult runtime_symbol_part(const void *host, size_t n, size_t offset, void **at);
CUresult runtime_shape(dim3 grid, dim3 block);
CUresult runtime_copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
size_t runtime_texel_bytes(const void *array);
void runtime_line_3d(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *out);
void runtime_launch_config(const cudaLaunchConfig_t *c, CUlaunchConfig *out);
void runtime_unload(void);             /* all modules: their context ends */
cudaError_t runtime_refuse(const char *function, const char *why);
#pragma GCC visibility pop

#define D(p) ((CUdeviceptr)(uintptr_t)(p))
#define CALL(expression)                                                                                     \
    do {                                                                                                     \
        CUresult code_ = runtime_ready();                                                                    \
        if (!code_) code_ = (CUresult)(expression);                                                          \
        return runtime_keep(code_);                                                                          \
    } while (0)
#endif
