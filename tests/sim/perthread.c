/* perthread.c - entry points for programs with per-thread default streams (names in _ptsz or _ptds): they call the
 * others with stream 2 in place of 0. */
#include "driver.h"

#define COUNT(name) do { int failed_ = sim_count(E_##name); if (failed_) return failed_; } while (0)

static void *per_thread_stream(void *stream) { return stream ? stream : (void *)(uintptr_t)2; }

int cuMemcpyHtoDAsync_v2(uint64_t a, const void *b, size_t n, void *s);
SIM_API cuMemcpyHtoDAsync_v2_ptsz(uint64_t a, const void *b, size_t n, void *s)
{ COUNT(cuMemcpyHtoDAsync_v2_ptsz); return cuMemcpyHtoDAsync_v2(a, b, n, per_thread_stream(s)); }
int cuMemcpyDtoHAsync_v2(void *a, uint64_t b, size_t n, void *s);
SIM_API cuMemcpyDtoHAsync_v2_ptsz(void *a, uint64_t b, size_t n, void *s)
{ COUNT(cuMemcpyDtoHAsync_v2_ptsz); return cuMemcpyDtoHAsync_v2(a, b, n, per_thread_stream(s)); }
int cuMemcpyDtoDAsync_v2(uint64_t a, uint64_t b, size_t n, void *s);
SIM_API cuMemcpyDtoDAsync_v2_ptsz(uint64_t a, uint64_t b, size_t n, void *s)
{ COUNT(cuMemcpyDtoDAsync_v2_ptsz); return cuMemcpyDtoDAsync_v2(a, b, n, per_thread_stream(s)); }
int cuMemcpyAsync(uint64_t a, uint64_t b, size_t n, void *s);
SIM_API cuMemcpyAsync_ptsz(uint64_t a, uint64_t b, size_t n, void *s)
{ COUNT(cuMemcpyAsync_ptsz); return cuMemcpyAsync(a, b, n, per_thread_stream(s)); }
int cuMemsetD8Async(uint64_t a, unsigned char b, size_t n, void *s);
SIM_API cuMemsetD8Async_ptsz(uint64_t a, unsigned char b, size_t n, void *s)
{ COUNT(cuMemsetD8Async_ptsz); return cuMemsetD8Async(a, b, n, per_thread_stream(s)); }
int cuMemsetD16Async(uint64_t a, unsigned short b, size_t n, void *s);
SIM_API cuMemsetD16Async_ptsz(uint64_t a, unsigned short b, size_t n, void *s)
{ COUNT(cuMemsetD16Async_ptsz); return cuMemsetD16Async(a, b, n, per_thread_stream(s)); }
int cuMemsetD32Async(uint64_t a, unsigned b, size_t n, void *s);
SIM_API cuMemsetD32Async_ptsz(uint64_t a, unsigned b, size_t n, void *s)
{ COUNT(cuMemsetD32Async_ptsz); return cuMemsetD32Async(a, b, n, per_thread_stream(s)); }
int cuMemcpy2DAsync_v2(const void *a, void *s);
SIM_API cuMemcpy2DAsync_v2_ptsz(const void *a, void *s)
{ COUNT(cuMemcpy2DAsync_v2_ptsz); return cuMemcpy2DAsync_v2(a, per_thread_stream(s)); }
int cuMemcpy3DAsync_v2(const void *a, void *s);
SIM_API cuMemcpy3DAsync_v2_ptsz(const void *a, void *s)
{ COUNT(cuMemcpy3DAsync_v2_ptsz); return cuMemcpy3DAsync_v2(a, per_thread_stream(s)); }
int cuMemAllocAsync(uint64_t *a, size_t n, void *s);
SIM_API cuMemAllocAsync_ptsz(uint64_t *a, size_t n, void *s)
{ COUNT(cuMemAllocAsync_ptsz); return cuMemAllocAsync(a, n, per_thread_stream(s)); }
int cuMemFreeAsync(uint64_t a, void *s);
SIM_API cuMemFreeAsync_ptsz(uint64_t a, void *s)
{ COUNT(cuMemFreeAsync_ptsz); return cuMemFreeAsync(a, per_thread_stream(s)); }
int cuEventRecord(void *a, void *s);
SIM_API cuEventRecord_ptsz(void *a, void *s)
{ COUNT(cuEventRecord_ptsz); return cuEventRecord(a, per_thread_stream(s)); }
int cuGraphLaunch(void *a, void *s);
SIM_API cuGraphLaunch_ptsz(void *a, void *s)
{ COUNT(cuGraphLaunch_ptsz); return cuGraphLaunch(a, per_thread_stream(s)); }
int cuStreamSynchronize(void *s);
SIM_API cuStreamSynchronize_ptsz(void *s)
{ COUNT(cuStreamSynchronize_ptsz); return cuStreamSynchronize(per_thread_stream(s)); }
int cuStreamQuery(void *s);
SIM_API cuStreamQuery_ptsz(void *s)
{ COUNT(cuStreamQuery_ptsz); return cuStreamQuery(per_thread_stream(s)); }
int cuStreamWaitEvent(void *s, void *a, unsigned b);
SIM_API cuStreamWaitEvent_ptsz(void *s, void *a, unsigned b)
{ COUNT(cuStreamWaitEvent_ptsz); return cuStreamWaitEvent(per_thread_stream(s), a, b); }
int cuLaunchHostFunc(void *s, void (*a)(void *), void *b);
SIM_API cuLaunchHostFunc_ptsz(void *s, void (*a)(void *), void *b)
{ COUNT(cuLaunchHostFunc_ptsz); return cuLaunchHostFunc(per_thread_stream(s), a, b); }
int cuStreamBeginCapture_v2(void *s, int a);
SIM_API cuStreamBeginCapture_v2_ptsz(void *s, int a)
{ COUNT(cuStreamBeginCapture_v2_ptsz); return cuStreamBeginCapture_v2(per_thread_stream(s), a); }
int cuStreamEndCapture(void *s, void **a);
SIM_API cuStreamEndCapture_ptsz(void *s, void **a)
{ COUNT(cuStreamEndCapture_ptsz); return cuStreamEndCapture(per_thread_stream(s), a); }
int cuStreamIsCapturing(void *s, int *a);
SIM_API cuStreamIsCapturing_ptsz(void *s, int *a)
{ COUNT(cuStreamIsCapturing_ptsz); return cuStreamIsCapturing(per_thread_stream(s), a); }
int cuStreamGetFlags(void *s, unsigned *a);
SIM_API cuStreamGetFlags_ptsz(void *s, unsigned *a)
{ COUNT(cuStreamGetFlags_ptsz); return cuStreamGetFlags(per_thread_stream(s), a); }
int cuStreamGetPriority(void *s, int *a);
SIM_API cuStreamGetPriority_ptsz(void *s, int *a)
{ COUNT(cuStreamGetPriority_ptsz); return cuStreamGetPriority(per_thread_stream(s), a); }
int cuStreamGetCtx(void *s, void **a);
SIM_API cuStreamGetCtx_ptsz(void *s, void **a)
{ COUNT(cuStreamGetCtx_ptsz); return cuStreamGetCtx(per_thread_stream(s), a); }
int cuStreamWriteValue32_v2(void *s, uint64_t a, uint32_t b, unsigned n);
SIM_API cuStreamWriteValue32_v2_ptsz(void *s, uint64_t a, uint32_t b, unsigned n)
{ COUNT(cuStreamWriteValue32_v2_ptsz); return cuStreamWriteValue32_v2(per_thread_stream(s), a, b, n); }
int cuStreamWaitValue32_v2(void *s, uint64_t a, uint32_t b, unsigned n);
SIM_API cuStreamWaitValue32_v2_ptsz(void *s, uint64_t a, uint32_t b, unsigned n)
{ COUNT(cuStreamWaitValue32_v2_ptsz); return cuStreamWaitValue32_v2(per_thread_stream(s), a, b, n); }

int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                   void **, void **);
SIM_API cuLaunchKernel_ptsz(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, void *s, void **params, void **extra)
{
    COUNT(cuLaunchKernel_ptsz);
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, per_thread_stream(s), params, extra);
}
int cuLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              void *, void **);
SIM_API cuLaunchCooperativeKernel_ptsz(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                       unsigned by, unsigned bz, unsigned shared, void *s, void **params)
{
    COUNT(cuLaunchCooperativeKernel_ptsz);
    return cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, per_thread_stream(s), params);
}

/* The synchronous copies. */
SIM_API cuMemcpyHtoD_v2_ptds(uint64_t a, const void *b, size_t n)
{
    COUNT(cuMemcpyHtoD_v2_ptds);
    int code = cuMemcpyHtoDAsync_v2(a, b, n, per_thread_stream(NULL));
    return code ? code : cuStreamSynchronize(per_thread_stream(NULL));
}
SIM_API cuMemcpyDtoH_v2_ptds(void *a, uint64_t b, size_t n)
{
    COUNT(cuMemcpyDtoH_v2_ptds);
    int code = cuMemcpyDtoHAsync_v2(a, b, n, per_thread_stream(NULL));
    return code ? code : cuStreamSynchronize(per_thread_stream(NULL));
}
SIM_API cuMemcpyDtoD_v2_ptds(uint64_t a, uint64_t b, size_t n)
{ COUNT(cuMemcpyDtoD_v2_ptds); return cuMemcpyDtoDAsync_v2(a, b, n, per_thread_stream(NULL)); }
SIM_API cuMemcpy_ptds(uint64_t a, uint64_t b, size_t n)
{
    COUNT(cuMemcpy_ptds);
    int code = cuMemcpyAsync(a, b, n, per_thread_stream(NULL));
    return code ? code : cuStreamSynchronize(per_thread_stream(NULL));
}
SIM_API cuMemsetD8_v2_ptds(uint64_t a, unsigned char b, size_t n)
{ COUNT(cuMemsetD8_v2_ptds); return cuMemsetD8Async(a, b, n, per_thread_stream(NULL)); }
SIM_API cuMemsetD16_v2_ptds(uint64_t a, unsigned short b, size_t n)
{ COUNT(cuMemsetD16_v2_ptds); return cuMemsetD16Async(a, b, n, per_thread_stream(NULL)); }
SIM_API cuMemsetD32_v2_ptds(uint64_t a, unsigned b, size_t n)
{ COUNT(cuMemsetD32_v2_ptds); return cuMemsetD32Async(a, b, n, per_thread_stream(NULL)); }
