/* ptxgen_cuda.h - v0.1 - load and launch PTX through the CUDA driver. Public domain or MIT, at your choice.

   WHAT   Finds the driver at run time, loads what ptxgen.h builds, caches it, launches it. No CUDA toolkit,
          no cuda.h, nothing to link but the C library (and -ldl where dlopen is apart from it).
   DO     In exactly one C or C++ file:   #define PTXGEN_IMPLEMENTATION
                                          #include "ptxgen_cuda.h"
          Everywhere else include it plainly. ptxgen.h must lie beside it.

   A module m of ptxgen.h, whose first entry is saxpy(x, y, a, n), on the GPU:

       ptxcu *cu;
       if (ptxcu_open(&cu, NULL)) { puts(ptxcu_get_error(cu)->message); ptxcu_close(cu); return 1; }
       ptxcu_program *p;
       ptxcu_buffer x, y;                                        // of 1000 floats each
       ptxcu_load(cu, m, &p);                                    // every call returns 0 or an error's code
       ptxcu_alloc(cu, 4000, &x);
       ptxcu_alloc(cu, 4000, &y);
       ptxcu_upload(cu, x, 0, host_x, 4000, NULL);
       ptxcu_upload(cu, y, 0, host_y, 4000, NULL);
       ptx_launch g = { 0, { 4, 1, 1 }, { 256, 1, 1 }, 0 };      // entry, grid, block, dynamic shared bytes
       ptxcu_arg a[4] = { ptxcu_arg_buffer(x), ptxcu_arg_buffer(y), ptxcu_arg_f32(2), ptxcu_arg_u32(1000) };
       ptxcu_launch(cu, p, &g, a, 4, NULL);
       ptxcu_download(cu, host_y, y, 0, 4000, NULL);
       ptxcu_sync(cu);
       ptxcu_free(cu, x);
       ptxcu_free(cu, y);
       ptxcu_close(cu);                                          // unloads p

   INDEX  (the same tags in the same order in all three headers; search for the tag)
     [MANUAL]     how to think about it, rules, what it does not do
     [CONFIG]     macros that you may define before including
     [ERRORS]     the catalogue: one line makes the code, its name and its meaning
     [TYPES]      handles, descriptions, arguments
     [TABLE]      the driver's functions: pointers, loader and message are made from it
     [INTERFACE]  functions
     [SUPPORT]    implementation: memory, errors, library
     [CORE]       implementation: handle, memory, streams, programs, cache, launch
     [LICENSE]

   [MANUAL]
   LIBRARY  ptxcu_desc.library, else the variable PTXGEN_CUDA_LIBRARY, else libcuda.so.1, libcuda.so
          (nvcuda.dll on Windows). If that gives no working driver with a device: ptxcu_desc.fallback, else
          PTXGEN_CUDA_FALLBACK. So a machine without a GPU runs the same program on the CPU driver of
          tests/sim. An empty variable is none. The library stays loaded when the handle is closed: its own
          threads may still run.
   CONTEXT  The device's primary context, shared with everything else that uses it (the CUDA runtime too),
          or the caller's current one. Each call that reaches the driver makes the handle's context current
          on the calling thread and leaves it so; ptxcu_close puts back what was current at ptxcu_open, if
          it is still this one.
   THREADS  One thread per handle at a time; any number of handles, also on one context. The functions that
          take no handle, and ptxcu_device_info, are free.
   ERRORS  Every call returns 0 (PTXCU_E_NONE) or a code; ptxcu_get_error says the rest, until the next call
          fails. Not sticky: after an error the handle is as before the call. A handle whose opening failed
          keeps that error, and every call returns its code. A kernel's own faults arrive at the next call
          that waits.
   STREAMS  NULL is the context's default stream. Copies and fills are asynchronous: host memory must stay
          until the stream has passed them (the driver itself waits for pageable memory; ptxcu_host_alloc
          gives pinned).
   LAUNCH  Checked against the entry's parameters and limits before the driver sees it. Launching allocates
          nothing, waits for nothing, formats nothing, and may be captured into a graph.
   GRAPHS  What is queued on a stream between ptxcu_graph_begin and ptxcu_graph_end becomes one launch, to be
          repeated at little cost. Arguments are frozen; what changes from round to round is read from device
          memory, as lengths and positions are by the operations of ptxgen_kernels.h.
   CACHE  ptxcu_operation builds and loads a kernel at the first call and finds it again by the operation
          and the bytes of its description (set them all: start from zero). Device, context and driver are
          the handle's.
   DISK   With ptxcu_desc.cache_folder, machine code is kept there between runs: one file for each of
          cache_files slots, chosen by a hash of the text, the target and the driver's version, which stand
          in the file in full length or as 128 bits beside its length and check sum. A file is written under
          a name of its own and then renamed, so that others see the old or the new one, never half of it; a
          file that is damaged, foreign or refused by the driver is ignored and replaced. What cannot be
          read or written costs time, and is no error.

   DOES NOT  track buffers, streams and events (destroy what you create, before ptxcu_close); build
          graphs node by node; use several devices through one handle (open one each).
*/
#ifndef PTXGEN_CUDA_H
#define PTXGEN_CUDA_H

#include "ptxgen.h"

/* ---- [CONFIG] ------------------------------------------------------------------------------------------

   PTXGEN_IMPLEMENTATION, PTXGEN_STATIC, PTXGEN_API   as in ptxgen.h
*/
#ifdef __cplusplus
extern "C" {
#endif

/* ---- [ERRORS] ------------------------------------------------------------------------------------------

   X(code, name, meaning): the enumerator PTXCU_E_<code>, ptxcu_error_name(), and the text in the
   documentation. */
#define PTXCU_ERRORS(X)                                                                                      \
    X(NONE, "none", "no error")                                                                              \
    X(MEMORY, "memory", "the allocator returned NULL")                                                       \
    X(ARGUMENT, "argument", "an argument of a call is NULL or out of its range")                             \
    X(LIBRARY, "library", "no driver library could be loaded; the message lists what was tried")             \
    X(SYMBOL, "symbol", "the library is not a driver, or too old: it lacks the symbols named")               \
    X(NO_DEVICE, "no-device", "the driver has no device")                                                    \
    X(DEVICE, "device", "there is no device of that ordinal")                                                \
    X(DRIVER, "driver", "a call of the driver failed; the message names call and reason")                    \
    X(JIT, "jit", "the driver did not take the PTX; see the log")                                            \
    X(ENTRY, "entry", "the program has no such entry")                                                       \
    X(ARGS, "args", "number, type or size of the arguments is not that of the entry's parameters")           \
    X(LAUNCH, "launch", "a grid, block or shared size beyond the limits of entry or device")                 \
    X(EMIT, "emit", "the builder's module has an error; the message is the builder's")                       \
    X(WRONG_HANDLE, "wrong-handle", "a program of another ptxcu handle")

#define PTXCU__ENUM(code, name, meaning) PTXCU_E_##code,
typedef enum ptxcu_code { PTXCU_ERRORS(PTXCU__ENUM) PTXCU_E_COUNT } ptxcu_code;
#undef PTXCU__ENUM

/* The last failure of a handle. All pointers live until the next call that fails, or ptxcu_close. */
typedef struct ptxcu_error {
    ptxcu_code code;
    const char *message;     /* the whole story; "" when nothing has failed */
    int driver_result;       /* CUresult, 0 when it was not the driver */
    const char *driver_name; /* "CUDA_ERROR_OUT_OF_MEMORY", or "" */
    const char *call;        /* "cuMemAlloc_v2(123 bytes)", or "" */
    const char *log;         /* jit: what the driver's compiler wrote, else "" */
} ptxcu_error;

/* ---- [TYPES] ---------------------------------------------------------------------------------------- */

typedef struct ptxcu ptxcu;                 /* a driver, a device, a context, a cache */
typedef struct ptxcu_program ptxcu_program; /* a loaded module */
typedef void *ptxcu_stream;                 /* CUstream; NULL is the default stream */
typedef void *ptxcu_event;                  /* CUevent */
typedef void *ptxcu_graph;                  /* CUgraphExec: ready to be launched */

/* Zero means default everywhere. */
typedef struct ptxcu_desc {
    const char *library;     /* path or name, instead of PTXGEN_CUDA_LIBRARY and the usual names */
    const char *fallback;    /* tried when no other gives a device, instead of PTXGEN_CUDA_FALLBACK */
    int device;              /* ordinal */
    int use_current_context; /* 1: the context that is current now, if there is one, and its device */
    const char *cache_folder; /* exists and can be written: compiled programs are kept there. NULL: nowhere */
    uint32_t cache_files;    /* most files there, 4 MiB each at most; 0: 256 */
    ptx_alloc_fn alloc;      /* default realloc and free */
    void *alloc_user;
} ptxcu_desc;

/* What ptxcu_open found. */
typedef struct ptxcu_device {
    char name[128];
    const char *library; /* as it was opened */
    int ordinal;
    int is_cpu_driver;    /* 1: tests/sim */
    int driver_version;   /* 12040 is CUDA 12.4 */
    ptx_target target;    /* PTX_SM(90), for ptx_module_desc */
    uint32_t max_version; /* the newest PTX that the driver takes, for ptx_module_desc: 84 is 8.4 */
    uint32_t sm_count;
    uint32_t max_threads_per_block;
    uint32_t max_grid[3], max_block[3];
    uint32_t shared_static; /* bytes per block without asking for more: 48 KiB */
    uint32_t shared_optin;  /* bytes per block, dynamic included; ptxcu_launch asks by itself */
    uint64_t l2_bytes, memory_bytes;
    uint32_t memory_clock_khz; /* 0 where the driver does not tell */
    uint32_t memory_bus_bits;
} ptxcu_device;

/* Device memory, by value. All zero is none. A part of one is { address + offset, bytes of the part }. */
typedef struct ptxcu_buffer {
    uint64_t address;
    size_t bytes;
} ptxcu_buffer;

/* An argument of a launch; make it with the ptxcu_arg_ functions. */
typedef struct ptxcu_arg {
    union {
        uint64_t u64;
        double f64;
        float f32;
        uint32_t u32;
        const void *pointer;
    } value;
    uint32_t bytes;
    uint8_t kind; /* PTXCU__ADDRESS, PTXCU__BYTES, or a ptx_type */
} ptxcu_arg;

/* As many arguments as a launch may have. */
#define PTXCU_ARGS_MAX 256

/* ---- [TABLE] -------------------------------------------------------------------------------------------

   X(function, parameters): what is used of the driver, under the names of its ABI; all return CUresult, an
   int. From these lines come the pointers, the loader and the list of missing symbols. CUdevice is an int,
   CUdeviceptr 64 bits, handles are pointers. */
#define PTXCU_DRIVER(X)                                                                                      \
    X(cuInit, (unsigned flags))                                                                              \
    X(cuDriverGetVersion, (int *version))                                                                    \
    X(cuGetErrorName, (int result, const char **name))                                                       \
    X(cuGetErrorString, (int result, const char **text))                                                     \
    X(cuDeviceGetCount, (int *count))                                                                        \
    X(cuDeviceGet, (int *device, int ordinal))                                                               \
    X(cuDeviceGetName, (char *name, int size, int device))                                                   \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                                         \
    X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                                     \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                                \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                                            \
    X(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))                                \
    X(cuCtxGetCurrent, (void **context))                                                                     \
    X(cuCtxSetCurrent, (void *context))                                                                      \
    X(cuCtxGetDevice, (int *device))                                                                         \
    X(cuCtxSynchronize, (void))                                                                              \
    X(cuModuleLoadDataEx, (void **module_, const void *image, unsigned n, int *options, void **values))      \
    X(cuLinkCreate_v2, (unsigned n, int *options, void **values, void **state))                              \
    X(cuLinkAddData_v2, (void *state, int type, void *data, size_t bytes, const char *name, unsigned n,      \
                         int *options, void **values))                                                       \
    X(cuLinkComplete, (void *state, void **image, size_t *bytes))                                            \
    X(cuLinkDestroy, (void *state))                                                                          \
    X(cuModuleUnload, (void *module_))                                                                       \
    X(cuModuleGetFunction, (void **function, void *module_, const char *name))                               \
    X(cuFuncGetAttribute, (int *value, int attribute, void *function))                                       \
    X(cuFuncSetAttribute, (void *function, int attribute, int value))                                        \
    X(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                                     \
    X(cuMemFree_v2, (uint64_t address))                                                                      \
    X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                         \
    X(cuMemFreeHost, (void *memory))                                                                         \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                                          \
    X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))                     \
    X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))                           \
    X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))                        \
    X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t n, void *stream))                           \
    X(cuMemsetD32Async, (uint64_t to, unsigned value, size_t n, void *stream))                               \
    X(cuStreamCreate, (void **stream, unsigned flags))                                                       \
    X(cuStreamDestroy_v2, (void *stream))                                                                    \
    X(cuStreamSynchronize, (void *stream))                                                                   \
    X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                        \
    X(cuStreamBeginCapture_v2, (void *stream, int mode))                                                     \
    X(cuStreamEndCapture, (void *stream, void **graph))                                                      \
    X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))                     \
    X(cuGraphLaunch, (void *exec, void *stream))                                                             \
    X(cuGraphExecDestroy, (void *exec))                                                                      \
    X(cuGraphDestroy, (void *graph))                                                                         \
    X(cuEventCreate, (void **event, unsigned flags))                                                         \
    X(cuEventDestroy_v2, (void *event))                                                                      \
    X(cuEventRecord, (void *event, void *stream))                                                            \
    X(cuEventSynchronize, (void *event))                                                                     \
    X(cuEventElapsedTime, (float *milliseconds, void *start, void *stop))                                    \
    X(cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                       unsigned bz, unsigned shared_bytes, void *stream, void **params, void **extra))

/* ---- [INTERFACE] ---------------------------------------------------------------------------------------

   A function that returns ptxcu_code returns PTXCU_E_NONE (0) or what ptxcu_get_error tells more of; DRIVER
   is possible everywhere. Results come through the last pointer (before the stream), and are zero on error. A
   NULL handle is one for which there was no memory. */

/* -- handle -- */

/* Find a driver, open a device.
   cu: gets a handle to be closed, on error too (to read the error), except that it is NULL without memory
   desc: may be NULL
   Errors: MEMORY, LIBRARY, SYMBOL, NO_DEVICE, DEVICE. */
PTXGEN_API ptxcu_code ptxcu_open(ptxcu **cu, const ptxcu_desc *desc);
/* Unload all programs, let the context go. Does not wait: synchronise what still runs. NULL is fine. */
PTXGEN_API void ptxcu_close(ptxcu *cu);
/* The last failure, never NULL; code PTXCU_E_MEMORY for a NULL handle. */
PTXGEN_API const ptxcu_error *ptxcu_get_error(const ptxcu *cu);
/* "memory", "launch" ... as in the catalogue; "?" for a code that is none. */
PTXGEN_API const char *ptxcu_error_name(ptxcu_code code);
/* Never NULL; all zero when there is no device. Lives as long as the handle. */
PTXGEN_API const ptxcu_device *ptxcu_device_info(const ptxcu *cu);
/* Any symbol of the driver library, or NULL. Copy it into a function pointer with memcpy. */
PTXGEN_API void *ptxcu_symbol(const ptxcu *cu, const char *name);
/* Wait for everything in the context. */
PTXGEN_API ptxcu_code ptxcu_sync(ptxcu *cu);

/* -- memory: sizes and offsets in bytes; nothing is copied unless all of it lies in the buffer -- */

/* Device memory, 256-byte aligned, contents undefined. 0 bytes give a zero buffer. */
PTXGEN_API ptxcu_code ptxcu_alloc(ptxcu *cu, size_t bytes, ptxcu_buffer *buffer);
/* Waits for the device. A zero buffer is fine. The buffer must be one that ptxcu_alloc gave, whole. */
PTXGEN_API ptxcu_code ptxcu_free(ptxcu *cu, ptxcu_buffer buffer);
/* Pinned host memory, which copies run from and to without waiting. */
PTXGEN_API ptxcu_code ptxcu_host_alloc(ptxcu *cu, size_t bytes, void **memory);
PTXGEN_API ptxcu_code ptxcu_host_free(ptxcu *cu, void *memory); /* NULL is fine */
/* count * element_bytes, or SIZE_MAX (which no allocation gives) where that does not fit. */
PTXGEN_API size_t ptxcu_bytes(size_t count, size_t element_bytes);
PTXGEN_API ptxcu_code ptxcu_upload(ptxcu *cu, ptxcu_buffer to, size_t to_offset, const void *from,
                                   size_t bytes, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_download(ptxcu *cu, void *to, ptxcu_buffer from, size_t from_offset, size_t bytes,
                                     ptxcu_stream stream);
/* Device to device; the two ranges must not overlap. */
PTXGEN_API ptxcu_code ptxcu_copy(ptxcu *cu, ptxcu_buffer to, size_t to_offset, ptxcu_buffer from,
                                 size_t from_offset, size_t bytes, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_fill8(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint8_t value, size_t bytes,
                                  ptxcu_stream stream);
/* count words of 4 bytes; to_offset: a multiple of 4 */
PTXGEN_API ptxcu_code ptxcu_fill32(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint32_t value, size_t count,
                                   ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_memory_info(ptxcu *cu, size_t *free_bytes, size_t *total_bytes);

/* -- streams and events -- */

/* A stream that does not wait for the default stream. */
PTXGEN_API ptxcu_code ptxcu_stream_create(ptxcu *cu, ptxcu_stream *stream);
PTXGEN_API ptxcu_code ptxcu_stream_destroy(ptxcu *cu, ptxcu_stream stream); /* NULL is fine */
PTXGEN_API ptxcu_code ptxcu_stream_sync(ptxcu *cu, ptxcu_stream stream);
/* What follows in the stream happens after what the event's last record stands behind. */
PTXGEN_API ptxcu_code ptxcu_stream_wait_event(ptxcu *cu, ptxcu_stream stream, ptxcu_event event);
/* From here to ptxcu_graph_end, what is queued on the stream (not NULL), and on streams that wait for its
   events, is noted down and not carried out. Load programs and allocate before. */
PTXGEN_API ptxcu_code ptxcu_graph_begin(ptxcu *cu, ptxcu_stream stream);
/* What was noted, ready to be launched. The capture has ended, on an error too. */
PTXGEN_API ptxcu_code ptxcu_graph_end(ptxcu *cu, ptxcu_stream stream, ptxcu_graph *graph);
PTXGEN_API ptxcu_code ptxcu_graph_launch(ptxcu *cu, ptxcu_graph graph, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_graph_destroy(ptxcu *cu, ptxcu_graph graph); /* NULL is fine */
PTXGEN_API ptxcu_code ptxcu_event_create(ptxcu *cu, ptxcu_event *event);
PTXGEN_API ptxcu_code ptxcu_event_destroy(ptxcu *cu, ptxcu_event event); /* NULL is fine */
PTXGEN_API ptxcu_code ptxcu_event_record(ptxcu *cu, ptxcu_event event, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_event_sync(ptxcu *cu, ptxcu_event event);
/* Milliseconds between two records that have both happened. */
PTXGEN_API ptxcu_code ptxcu_event_elapsed_ms(ptxcu *cu, ptxcu_event start, ptxcu_event stop, float *ms);

/* -- programs -- */

/* Load a builder's module. Its signatures are copied: the module may be freed. Entries keep their indices.
   Errors: MEMORY, EMIT, JIT. Lives until ptxcu_unload or ptxcu_close. */
PTXGEN_API ptxcu_code ptxcu_load(ptxcu *cu, ptx_module *m, ptxcu_program **program);
/* Load any PTX. Its signatures are not known, so arguments are not checked: the driver reads as many as the
   entry has. Find entries with ptxcu_entry_by_name.
   ptx: NUL-terminated ASCII
   Errors: MEMORY, JIT. */
PTXGEN_API ptxcu_code ptxcu_load_text(ptxcu *cu, const char *ptx, ptxcu_program **program);
/* NULL is fine; what ptxcu_operation gave belongs to the cache and is refused (ARGUMENT). */
PTXGEN_API ptxcu_code ptxcu_unload(ptxcu *cu, ptxcu_program *program);
/* The index of an entry, for ptx_launch.entry. Errors: ENTRY. */
PTXGEN_API ptxcu_code ptxcu_entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name,
                                          uint32_t *entry);
/* The program of an operation, built for this device at the first call; later calls allocate nothing.
   op: read during the call only; its emit function is what tells operations apart
   desc: op->desc_bytes bytes, of which padding counts, too
   Errors: MEMORY, EMIT (also for a description that the operation refuses), JIT. */
#define ptxcu_operation(cu, op, desc, program) ptxcu_operation_((cu), PTX__AT, (op), (desc), (program))
PTXGEN_API ptxcu_code ptxcu_operation_(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       ptxcu_program **program);
/* Unload all that ptxcu_operation gave. */
PTXGEN_API ptxcu_code ptxcu_cache_clear(ptxcu *cu);

/* -- launch -- */

PTXGEN_API ptxcu_arg ptxcu_arg_buffer(ptxcu_buffer buffer);
PTXGEN_API ptxcu_arg ptxcu_arg_address(uint64_t address);
PTXGEN_API ptxcu_arg ptxcu_arg_u32(uint32_t value);
PTXGEN_API ptxcu_arg ptxcu_arg_s32(int32_t value);
PTXGEN_API ptxcu_arg ptxcu_arg_f32(float value);
PTXGEN_API ptxcu_arg ptxcu_arg_u64(uint64_t value);
PTXGEN_API ptxcu_arg ptxcu_arg_s64(int64_t value);
PTXGEN_API ptxcu_arg ptxcu_arg_f64(double value);
/* For a parameter of any type and exactly that size; read during the launch call only. */
PTXGEN_API ptxcu_arg ptxcu_arg_bytes(const void *bytes, size_t size);

/* Launch one entry.
   geometry: within the limits of entry and device; dynamic shared memory above 48 KiB is asked for by itself
   args: one for each parameter, in order. A pointer takes a buffer or an address; a 64-bit integer these or
   its own type; a b type whatever has its width; every other type its own
   Errors: ENTRY, ARGS, LAUNCH, WRONG_HANDLE. */
PTXGEN_API ptxcu_code ptxcu_launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *geometry,
                                   const ptxcu_arg *args, uint32_t count, ptxcu_stream stream);
/* All launches of a plan, whose entries take one struct by value. All are checked before the first is made. A
   plan without launches does nothing.
   args, args_bytes: the operation's argument struct, which has plan->args_bytes
   Errors: as ptxcu_launch. */
PTXGEN_API ptxcu_code ptxcu_run(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                                size_t args_bytes, ptxcu_stream stream);

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_CUDA_H */

#if defined(PTXGEN_IMPLEMENTATION) && !defined(PTXGEN__CUDA_IMPLEMENTED)
#define PTXGEN__CUDA_IMPLEMENTED

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#define PTXCU__CALL __stdcall
#else
#include <dlfcn.h>
#include <pthread.h>
#define PTXCU__CALL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- [SUPPORT] -------------------------------------------------------------------------------------- */

#define PTXCU__FIELD(name, params) int(PTXCU__CALL * name) params;
typedef struct ptxcu__driver {
    PTXCU_DRIVER(PTXCU__FIELD)
} ptxcu__driver;
#undef PTXCU__FIELD

/* Argument kinds that are no ptx_type. */
#define PTXCU__ADDRESS 200
#define PTXCU__BYTES 201

#define PTXCU__LOG_BYTES 16384u
#define PTXCU__MESSAGE_BYTES 4096u

/* -- threads -- */

#ifdef _WIN32
typedef CRITICAL_SECTION ptxcu__mutex;
typedef DWORD ptxcu__thread;
static int ptxcu__mutex_open(ptxcu__mutex *m) { return InitializeCriticalSectionAndSpinCount(m, 1000) != 0; }
static void ptxcu__mutex_close(ptxcu__mutex *m) { DeleteCriticalSection(m); }
static void ptxcu__lock(ptxcu__mutex *m) { EnterCriticalSection(m); }
static void ptxcu__unlock(ptxcu__mutex *m) { LeaveCriticalSection(m); }
static ptxcu__thread ptxcu__self(void) { return GetCurrentThreadId(); }
static int ptxcu__same_thread(ptxcu__thread a, ptxcu__thread b) { return a == b; }
#else
typedef pthread_mutex_t ptxcu__mutex;
typedef pthread_t ptxcu__thread;
static int ptxcu__mutex_open(ptxcu__mutex *m) { return pthread_mutex_init(m, NULL) == 0; }
static void ptxcu__mutex_close(ptxcu__mutex *m) { pthread_mutex_destroy(m); }
static void ptxcu__lock(ptxcu__mutex *m) { pthread_mutex_lock(m); }
static void ptxcu__unlock(ptxcu__mutex *m) { pthread_mutex_unlock(m); }
static ptxcu__thread ptxcu__self(void) { return pthread_self(); }
static int ptxcu__same_thread(ptxcu__thread a, ptxcu__thread b) { return pthread_equal(a, b) != 0; }
#endif

typedef struct ptxcu__entry {
    void *function;
    char *block; /* params, then all names: one allocation */
    size_t block_bytes;
    const char *name;
    const ptx_param_info *params;
    uint32_t param_count;
    uint32_t known; /* 1: the signature above is known */
    uint32_t max_threads;
    uint32_t shared_bytes; /* static */
    uint32_t dynamic_free; /* dynamic bytes that need no asking */
    uint32_t dynamic_max;  /* what the driver has been asked to allow; of the tables */
} ptxcu__entry;

struct ptxcu_program {
    ptxcu *owner;
    ptxcu_program *next;
    void *module_;
    ptxcu__entry *entries;
    uint32_t count, capacity;
    uint32_t cached; /* belongs to the cache */
};

typedef struct ptxcu__slot {
    uint64_t hash;
    ptx_code (*emit)(ptx_module *m, const char *site, const void *desc);
    uint32_t desc_bytes;
    void *desc;             /* a copy */
    ptxcu_program *program; /* NULL: the slot is free */
} ptxcu__slot;

/* What a thread's last failure was. The handle has one for the thread that opened it; every other thread gets
   its own with its first failure, kept until the handle is closed, so that what ptxcu_get_error gave stays. */
typedef struct ptxcu__record {
    struct ptxcu__record *next;
    ptxcu__thread thread;
    ptxcu_error error;
    size_t message_length;
    char *log; /* PTXCU__LOG_BYTES, or NULL */
    char call[256];
    char message[PTXCU__MESSAGE_BYTES];
} ptxcu__record;

struct ptxcu {
    ptxcu__driver driver;
    void *library;
    void *context, *previous; /* ours; what was current at open */
    int device;
    uint32_t ready;     /* open has succeeded */
    uint32_t retained;  /* the primary context is ours to release */
    uint32_t no_memory; /* the caller's allocator has said no to the builder */
    ptx_alloc_fn alloc;
    void *alloc_user;
    /* building: held while programs are made and unloaded, so that each is made once. tables: the records, the
       kernel cache's slots, the blocks of memory; held shortly, never across a wait, inside building if both.
       Nothing may fail with tables held: a failure writes into the thread's record. */
    ptxcu__mutex building, tables;
    ptxcu_program *programs;
    ptxcu__slot *slots;
    uint32_t slot_count, slot_capacity; /* the capacity is a power of two, or 0 */
    ptxcu_device info;
    ptxcu__record first;
    char library_name[512];
    char cache_folder[512]; /* "": none */
    uint32_t cache_files;
};

static void *ptxcu__default_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

/* The builder's allocations go through the handle, so that a missing module can be told from a missing byte.
 */
static void *ptxcu__module_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    ptxcu *cu = (ptxcu *)user;
    void *p = cu->alloc(cu->alloc_user, block, old_size, new_size);
    if (!p && new_size) cu->no_memory = 1;
    return p;
}

static void *ptxcu__get_zeroed(ptxcu *cu, size_t bytes) {
    void *p = cu->alloc(cu->alloc_user, NULL, 0, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

static void ptxcu__release(ptxcu *cu, void *block, size_t bytes) {
    if (block) cu->alloc(cu->alloc_user, block, bytes, 0);
}

/* The calling thread's record, NULL if it has none. */
static ptxcu__record *ptxcu__find_record(ptxcu *cu) {
    ptxcu__record *r;
    ptxcu__thread self = ptxcu__self();
    ptxcu__lock(&cu->tables);
    for (r = &cu->first; r && !ptxcu__same_thread(r->thread, self);) r = r->next;
    ptxcu__unlock(&cu->tables);
    return r;
}

/* The same, made where there is none: NULL without memory. Nobody else looks for this thread's. */
static ptxcu__record *ptxcu__record_of(ptxcu *cu) {
    ptxcu__record *r = ptxcu__find_record(cu);
    if (r) return r;
    r = (ptxcu__record *)ptxcu__get_zeroed(cu, sizeof *r);
    if (!r) return NULL;
    r->thread = ptxcu__self();
    ptxcu__lock(&cu->tables);
    r->next = cu->first.next;
    cu->first.next = r;
    ptxcu__unlock(&cu->tables);
    return r;
}

static void ptxcu__append_list(ptxcu__record *r, const char *format, va_list list) {
    size_t room = sizeof r->message - r->message_length;
    int n = vsnprintf(r->message + r->message_length, room, format, list);
    if (n > 0) r->message_length += (size_t)n < room ? (size_t)n : room - 1;
}

/* More of the message of the failure that this thread has just had. */
static void ptxcu__append(ptxcu *cu, const char *format, ...) {
    ptxcu__record *r = ptxcu__find_record(cu);
    va_list list;
    if (!r) return;
    va_start(list, format);
    ptxcu__append_list(r, format, list);
    va_end(list);
}

static void ptxcu__clear(ptxcu__record *r, ptxcu_code code) {
    r->message_length = 0;
    r->message[0] = 0;
    r->error.code = code;
    r->error.driver_result = 0;
    r->error.driver_name = "";
    r->error.call = "";
    r->error.log = "";
    r->error.message = r->message;
}

/* This thread's error gets another code. */
static ptxcu_code ptxcu__recode(ptxcu *cu, ptxcu_code code) {
    ptxcu__record *r = ptxcu__find_record(cu);
    if (r) r->error.code = code;
    return code;
}

static ptxcu_code ptxcu__fail(ptxcu *cu, ptxcu_code code, const char *format, ...) {
    ptxcu__record *r = ptxcu__record_of(cu);
    va_list list;
    if (!r) return code; /* without memory for its text */
    ptxcu__clear(r, code);
    va_start(list, format);
    ptxcu__append_list(r, format, list);
    va_end(list);
    return code;
}

static ptxcu_code ptxcu__memory(ptxcu *cu, size_t bytes) {
    return ptxcu__fail(cu, PTXCU_E_MEMORY, "out of host memory (%llu bytes)", (unsigned long long)bytes);
}

/* A call of the driver has failed; the format says which, with its arguments. */
static ptxcu_code ptxcu__driver_fail(ptxcu *cu, int result, const char *format, ...) {
    const char *name = NULL, *text = NULL;
    ptxcu__record *r = ptxcu__record_of(cu);
    va_list list;
    if (!r) return PTXCU_E_DRIVER;
    ptxcu__clear(r, PTXCU_E_DRIVER);
    if (cu->driver.cuGetErrorName(result, &name) || !name) name = "unknown error";
    if (cu->driver.cuGetErrorString(result, &text) || !text) text = "?";
    va_start(list, format);
    vsnprintf(r->call, sizeof r->call, format, list);
    va_end(list);
    r->error.driver_result = result;
    r->error.driver_name = name;
    r->error.call = r->call;
    ptxcu__append(cu, "%s: %s (%d): %s", r->call, name, result, text);
    return PTXCU_E_DRIVER;
}

static void *ptxcu__find(void *library, const char *name) {
#ifdef _WIN32
    void *p = NULL;
    FARPROC f = GetProcAddress((HMODULE)library, name);
    memcpy(&p, &f, sizeof p);
    return p;
#else
    return dlsym(library, name);
#endif
}

/* The library, or NULL and the system's reason. */
static void *ptxcu__load_library(const char *name, char *reason, size_t reason_bytes) {
#ifdef _WIN32
    HMODULE h = LoadLibraryA(name);
    if (!h) snprintf(reason, reason_bytes, "LoadLibrary error %lu", (unsigned long)GetLastError());
    return (void *)h;
#else
    void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *why = h ? NULL : dlerror();
    if (!h) snprintf(reason, reason_bytes, "%s", why ? why : "no reason given");
    return h;
#endif
}

static void ptxcu__unload_library(void *library) {
#ifdef _WIN32
    FreeLibrary((HMODULE)library);
#else
    dlclose(library);
#endif
}

/* The variable's value in the caller's buffer, or NULL for one that is unset, empty or too long. */
static const char *ptxcu__variable(const char *name, char *buffer, size_t capacity) {
#ifdef _WIN32
    DWORD n = GetEnvironmentVariableA(name, buffer, (DWORD)capacity);
    return n > 0 && n < capacity ? buffer : NULL;
#else
    const char *value = getenv(name);
    size_t n = value ? strlen(value) : 0;
    if (n == 0 || n >= capacity) return NULL;
    memcpy(buffer, value, n + 1);
    return buffer;
#endif
}

/* Try one library. The message of the handle grows by a line that says what was wrong with it, and the
   error's code becomes that of the library that came furthest. 1: it works. */
static int ptxcu__try(ptxcu *cu, const char *name, const char *origin) {
    char reason[512];
    ptxcu_code code = PTXCU_E_NONE;
    int result, devices = 0, missing = 0;
    const char *text = NULL;
    void *library = ptxcu__load_library(name, reason, sizeof reason), *symbol;
    if (!library) {
        ptxcu__append(cu, "\n  %s%s: %s", name, origin, reason);
        return 0;
    }
#define PTXCU__LOAD(function, params)                                                                        \
    symbol = ptxcu__find(library, #function);                                                                \
    if (!symbol) {                                                                                           \
        if (!missing) ptxcu__append(cu, "\n  %s%s: missing symbols:", name, origin);                         \
        if (missing < 8) ptxcu__append(cu, " %s", #function);                                                \
        missing++;                                                                                           \
    }                                                                                                        \
    memcpy(&cu->driver.function, &symbol, sizeof symbol);
    PTXCU_DRIVER(PTXCU__LOAD)
#undef PTXCU__LOAD
    if (missing) {
        if (missing > 8) ptxcu__append(cu, " and %d more", missing - 8);
        if (cu->first.error.code == PTXCU_E_LIBRARY) cu->first.error.code = PTXCU_E_SYMBOL;
        memset(&cu->driver, 0, sizeof cu->driver);
        ptxcu__unload_library(library);
        return 0;
    }
    /* From here on the library stays: a driver that was started cannot be unloaded safely. */
    result = cu->driver.cuInit(0);
    if (result) {
        code = result == 100 ? PTXCU_E_NO_DEVICE : PTXCU_E_DRIVER;
        if (cu->driver.cuGetErrorString(result, &text) || !text) text = "?";
        ptxcu__append(cu, "\n  %s%s: cuInit(0): error %d, %s", name, origin, result, text);
    } else {
        result = cu->driver.cuDeviceGetCount(&devices);
        if (result == 0 && devices > 0) {
            cu->library = library;
            cu->info.ordinal = devices; /* until the ordinal is known */
            snprintf(cu->library_name, sizeof cu->library_name, "%s", name);
            cu->info.library = cu->library_name;
            return 1;
        }
        code = PTXCU_E_NO_DEVICE;
        ptxcu__append(cu, "\n  %s%s: the driver has no device (cuDeviceGetCount: error %d)", name, origin,
                      result);
    }
    cu->first.error.driver_result = result;
    cu->first.error.code = code;
    memset(&cu->driver, 0, sizeof cu->driver);
    return 0;
}

/* ---- [CORE] ----------------------------------------------------------------------------------------- */

/* -- handle -- */

/* The handle can be used, and its context is current. */
static ptxcu_code ptxcu__enter(ptxcu *cu) {
    void *current = NULL;
    int result;
    if (!cu) return PTXCU_E_MEMORY;
    if (!cu->ready) return cu->first.error.code;
    result = cu->driver.cuCtxGetCurrent(&current);
    if (result == 0 && current == cu->context) return PTXCU_E_NONE;
    if (result) return ptxcu__driver_fail(cu, result, "cuCtxGetCurrent()");
    result = cu->driver.cuCtxSetCurrent(cu->context);
    return result ? ptxcu__driver_fail(cu, result, "cuCtxSetCurrent()") : PTXCU_E_NONE;
}

static int ptxcu__attribute(const ptxcu *cu, int attribute) {
    int value = 0;
    return cu->driver.cuDeviceGetAttribute(&value, attribute, cu->device) || value < 0 ? 0 : value;
}

/* The newest PTX of a CUDA version. Beyond the last one known: that one's, which every newer driver takes. */
static uint32_t ptxcu__ptx_of_cuda(int version) {
    static const uint16_t known[][2] = {{1300, 90}, {1209, 88}, {1208, 87}, {1207, 86}, {1205, 85},
                                        {1204, 84}, {1203, 83}, {1202, 82}, {1201, 81}, {1200, 80},
                                        {1108, 78}, {1107, 77}, {1106, 76}, {1105, 75}, {1104, 74},
                                        {1103, 73}, {1102, 72}, {1101, 71}, {1100, 70}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (version / 10 >= known[i][0]) return known[i][1];
    return 63;
}

/* PTX for a chip runs on all later ones, so a chip that is not known yet is treated as the one before it. */
static ptx_target ptxcu__target_of(int capability) {
    static const uint8_t known[] = {121, 120, 110, 103, 100, 90, 89, 87, 86, 80, 75};
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (capability >= known[i]) return PTX_SM(known[i]);
    return PTX_SM(capability);
}

static ptxcu_code ptxcu__describe_device(ptxcu *cu) {
    ptxcu_device *d = &cu->info;
    size_t total = 0;
    int i, result, shared;
    result = cu->driver.cuDeviceGetName(d->name, (int)sizeof d->name, cu->device);
    if (result) return ptxcu__driver_fail(cu, result, "cuDeviceGetName(device %d)", d->ordinal);
    d->name[sizeof d->name - 1] = 0;
    result = cu->driver.cuDriverGetVersion(&d->driver_version);
    if (result) return ptxcu__driver_fail(cu, result, "cuDriverGetVersion()");
    result = cu->driver.cuDeviceTotalMem_v2(&total, cu->device);
    if (result) return ptxcu__driver_fail(cu, result, "cuDeviceTotalMem_v2(device %d)", d->ordinal);
    d->is_cpu_driver = strncmp(d->name, "ptxsim", 6) == 0;
    d->memory_bytes = total;
    d->target = ptxcu__target_of(ptxcu__attribute(cu, 75) * 10 + ptxcu__attribute(cu, 76));
    d->max_version = ptxcu__ptx_of_cuda(d->driver_version);
    d->max_threads_per_block = (uint32_t)ptxcu__attribute(cu, 1);
    for (i = 0; i < 3; i++) {
        d->max_block[i] = (uint32_t)ptxcu__attribute(cu, 2 + i);
        d->max_grid[i] = (uint32_t)ptxcu__attribute(cu, 5 + i);
    }
    d->shared_static = (uint32_t)ptxcu__attribute(cu, 8);
    shared = ptxcu__attribute(cu, 97);
    d->shared_optin = (uint32_t)shared > d->shared_static ? (uint32_t)shared : d->shared_static;
    d->sm_count = (uint32_t)ptxcu__attribute(cu, 16);
    d->memory_clock_khz = (uint32_t)ptxcu__attribute(cu, 36);
    d->memory_bus_bits = (uint32_t)ptxcu__attribute(cu, 37);
    d->l2_bytes = (uint64_t)ptxcu__attribute(cu, 38);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__choose_context(ptxcu *cu, const ptxcu_desc *desc, int devices) {
    int result, ordinal = desc->device;
    result = cu->driver.cuCtxGetCurrent(&cu->previous);
    if (result) return ptxcu__driver_fail(cu, result, "cuCtxGetCurrent()");
    if (desc->use_current_context && cu->previous) {
        int i, device = 0;
        result = cu->driver.cuCtxGetDevice(&cu->device);
        if (result) return ptxcu__driver_fail(cu, result, "cuCtxGetDevice()");
        for (i = 0; i < devices; i++)
            if (cu->driver.cuDeviceGet(&device, i) == 0 && device == cu->device) cu->info.ordinal = i;
        cu->context = cu->previous;
        return PTXCU_E_NONE;
    }
    if (ordinal < 0 || ordinal >= devices)
        return ptxcu__fail(cu, PTXCU_E_DEVICE,
                           "there is no device %d: this driver (%s) has %d, counted from 0", ordinal,
                           cu->library_name, devices);
    cu->info.ordinal = ordinal;
    result = cu->driver.cuDeviceGet(&cu->device, ordinal);
    if (result) return ptxcu__driver_fail(cu, result, "cuDeviceGet(%d)", ordinal);
    result = cu->driver.cuDevicePrimaryCtxRetain(&cu->context, cu->device);
    if (result) return ptxcu__driver_fail(cu, result, "cuDevicePrimaryCtxRetain(device %d)", ordinal);
    cu->retained = 1;
    result = cu->driver.cuCtxSetCurrent(cu->context);
    return result ? ptxcu__driver_fail(cu, result, "cuCtxSetCurrent()") : PTXCU_E_NONE;
}

/* Give the context back: all of open that reached into the driver is undone. */
static void ptxcu__leave_context(ptxcu *cu) {
    void *current = NULL;
    unsigned flags = 0;
    int active = 1;
    if (!cu->retained) return;
    if (cu->driver.cuCtxGetCurrent(&current)) current = NULL;
    if (current == cu->context && cu->previous != cu->context) cu->driver.cuCtxSetCurrent(cu->previous);
    cu->driver.cuDevicePrimaryCtxRelease_v2(cu->device);
    /* Another handle may have made it current before this one, and be gone: leave no dead context behind. */
    if (current == cu->context && cu->previous == cu->context
        && cu->driver.cuDevicePrimaryCtxGetState(cu->device, &flags, &active) == 0 && !active)
        cu->driver.cuCtxSetCurrent(NULL);
    cu->retained = 0;
}

PTXGEN_API ptxcu_code ptxcu_open(ptxcu **out, const ptxcu_desc *desc) {
    ptxcu_desc d;
    char buffer[512];
    ptx_alloc_fn alloc;
    ptxcu *cu;
    const char *variable;
    ptxcu_code code;
    int found, devices;
    if (!out) return PTXCU_E_ARGUMENT;
    *out = NULL;
    memset(&d, 0, sizeof d);
    if (desc) d = *desc;
    alloc = d.alloc ? d.alloc : ptxcu__default_alloc;
    cu = (ptxcu *)alloc(d.alloc_user, NULL, 0, sizeof *cu);
    if (!cu) return PTXCU_E_MEMORY;
    memset(cu, 0, sizeof *cu);
    if (!ptxcu__mutex_open(&cu->tables)) {
        alloc(d.alloc_user, cu, sizeof *cu, 0);
        return PTXCU_E_MEMORY;
    }
    if (!ptxcu__mutex_open(&cu->building)) {
        ptxcu__mutex_close(&cu->tables);
        alloc(d.alloc_user, cu, sizeof *cu, 0);
        return PTXCU_E_MEMORY;
    }
    cu->alloc = alloc;
    cu->alloc_user = d.alloc_user;
    cu->first.thread = ptxcu__self();
    if (d.cache_folder && strlen(d.cache_folder) < sizeof cu->cache_folder)
        strcpy(cu->cache_folder, d.cache_folder);
    cu->cache_files = d.cache_files ? d.cache_files : 256;
    cu->info.library = "";
    *out = cu;
    ptxcu__clear(&cu->first, PTXCU_E_LIBRARY);
    ptxcu__append(cu, "no CUDA driver that works; tried");
    if (d.library && !*d.library) d.library = NULL; /* empty is none, as for the variables */
    if (d.fallback && !*d.fallback) d.fallback = NULL;
    variable = d.library ? NULL : ptxcu__variable("PTXGEN_CUDA_LIBRARY", buffer, sizeof buffer);
    if (d.library) {
        found = ptxcu__try(cu, d.library, "");
    } else if (variable) {
        found = ptxcu__try(cu, variable, " (PTXGEN_CUDA_LIBRARY)");
    } else {
#ifdef _WIN32
        found = ptxcu__try(cu, "nvcuda.dll", "");
#else
        found = ptxcu__try(cu, "libcuda.so.1", "") || ptxcu__try(cu, "libcuda.so", "");
#endif
    }
    if (!found && d.fallback) found = ptxcu__try(cu, d.fallback, " (fallback)");
    if (!found && !d.fallback) {
        variable = ptxcu__variable("PTXGEN_CUDA_FALLBACK", buffer, sizeof buffer);
        if (variable) found = ptxcu__try(cu, variable, " (PTXGEN_CUDA_FALLBACK)");
    }
    if (!found) return cu->first.error.code;
    devices = cu->info.ordinal;
    cu->info.ordinal = 0;
    code = ptxcu__choose_context(cu, &d, devices);
    if (code == PTXCU_E_NONE) code = ptxcu__describe_device(cu);
    if (code != PTXCU_E_NONE) {
        const char *library = cu->info.library;
        ptxcu__leave_context(cu);
        memset(&cu->info, 0, sizeof cu->info);
        cu->info.library = library;
        return code;
    }
    ptxcu__clear(&cu->first, PTXCU_E_NONE);
    cu->ready = 1;
    return PTXCU_E_NONE;
}

/* Free the host side; the module must be unloaded, or its context gone. */
static void ptxcu__program_free(ptxcu *cu, ptxcu_program *p) {
    uint32_t i;
    for (i = 0; i < p->count; i++) ptxcu__release(cu, p->entries[i].block, p->entries[i].block_bytes);
    ptxcu__release(cu, p->entries, p->capacity * sizeof *p->entries);
    ptxcu__release(cu, p, sizeof *p);
}

PTXGEN_API void ptxcu_close(ptxcu *cu) {
    uint32_t i;
    if (!cu) return;
    if (cu->ready) {
        int current = ptxcu__enter(cu) == PTXCU_E_NONE; /* not so when the caller has destroyed the context */
        while (cu->programs) {
            ptxcu_program *p = cu->programs;
            cu->programs = p->next;
            if (current) cu->driver.cuModuleUnload(p->module_);
            ptxcu__program_free(cu, p);
        }
        for (i = 0; i < cu->slot_capacity; i++)
            if (cu->slots[i].program) ptxcu__release(cu, cu->slots[i].desc, cu->slots[i].desc_bytes);
        ptxcu__release(cu, cu->slots, cu->slot_capacity * sizeof *cu->slots);
        ptxcu__leave_context(cu);
    }
    ptxcu__release(cu, cu->first.log, PTXCU__LOG_BYTES);
    while (cu->first.next) {
        ptxcu__record *r = cu->first.next;
        cu->first.next = r->next;
        ptxcu__release(cu, r->log, PTXCU__LOG_BYTES);
        ptxcu__release(cu, r, sizeof *r);
    }
    ptxcu__mutex_close(&cu->building);
    ptxcu__mutex_close(&cu->tables);
    cu->alloc(cu->alloc_user, cu, sizeof *cu, 0);
}

PTXGEN_API const ptxcu_error *ptxcu_get_error(const ptxcu *cu) {
    static const ptxcu_error no_handle = {PTXCU_E_MEMORY, "no handle: out of host memory", 0, "", "", ""};
    static const ptxcu_error nothing = {PTXCU_E_NONE, "", 0, "", "", ""};
    const ptxcu__record *r;
    if (!cu) return &no_handle;
    if (!cu->ready) return &cu->first.error;
    r = ptxcu__find_record((ptxcu *)(uintptr_t)cu); /* which locks, and changes nothing else */
    return r ? &r->error : &nothing;
}

PTXGEN_API const char *ptxcu_error_name(ptxcu_code code) {
#define PTXCU__NAME(code_, name, meaning) name,
    static const char *const names[] = {PTXCU_ERRORS(PTXCU__NAME) "?"};
#undef PTXCU__NAME
    return names[(unsigned)code < (unsigned)PTXCU_E_COUNT ? (unsigned)code : (unsigned)PTXCU_E_COUNT];
}

PTXGEN_API const ptxcu_device *ptxcu_device_info(const ptxcu *cu) {
    static const ptxcu_device none = {"", "", 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}, {0, 0, 0}, 0, 0, 0, 0, 0, 0};
    return cu ? &cu->info : &none;
}

PTXGEN_API void *ptxcu_symbol(const ptxcu *cu, const char *name) {
    return cu && cu->library && name ? ptxcu__find(cu->library, name) : NULL;
}

/* Return what a driver call gives; `text` is the argument list of ptxcu__driver_fail. */
#define PTXCU__DO(cu, call, text)                                                                            \
    do {                                                                                                     \
        int result_ = (cu)->driver.call;                                                                     \
        return result_ ? ptxcu__driver_fail text : PTXCU_E_NONE;                                             \
    } while (0)

/* Stands before the first use of the driver: return if the handle cannot be used. */
#define PTXCU__ENTER(cu)                                                                                     \
    do {                                                                                                     \
        ptxcu_code code_ = ptxcu__enter(cu);                                                                 \
        if (code_ != PTXCU_E_NONE) return code_;                                                             \
    } while (0)

PTXGEN_API ptxcu_code ptxcu_sync(ptxcu *cu) {
    PTXCU__ENTER(cu);
    PTXCU__DO(cu, cuCtxSynchronize(), (cu, result_, "cuCtxSynchronize()"));
}

/* -- memory -- */

static ptxcu_code ptxcu__null(ptxcu *cu, const char *function, const char *parameter) {
    return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %s is NULL", function, parameter);
}

PTXGEN_API ptxcu_code ptxcu_alloc(ptxcu *cu, size_t bytes, ptxcu_buffer *buffer) {
    uint64_t address = 0;
    int result;
    if (buffer) buffer->address = 0, buffer->bytes = 0;
    PTXCU__ENTER(cu);
    if (!buffer) return ptxcu__null(cu, "ptxcu_alloc", "buffer");
    if (bytes == 0) return PTXCU_E_NONE;
    result = cu->driver.cuMemAlloc_v2(&address, bytes);
    if (result) return ptxcu__driver_fail(cu, result, "cuMemAlloc_v2(%llu bytes)", (unsigned long long)bytes);
    buffer->address = address;
    buffer->bytes = bytes;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_free(ptxcu *cu, ptxcu_buffer buffer) {
    PTXCU__ENTER(cu);
    if (buffer.address == 0) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuMemFree_v2(buffer.address),
              (cu, result_, "cuMemFree_v2(0x%llx)", (unsigned long long)buffer.address));
}

PTXGEN_API ptxcu_code ptxcu_host_alloc(ptxcu *cu, size_t bytes, void **memory) {
    if (memory) *memory = NULL;
    PTXCU__ENTER(cu);
    if (!memory) return ptxcu__null(cu, "ptxcu_host_alloc", "memory");
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuMemHostAlloc(memory, bytes, 0),
              (cu, result_, "cuMemHostAlloc(%llu bytes)", (unsigned long long)bytes));
}

PTXGEN_API ptxcu_code ptxcu_host_free(ptxcu *cu, void *memory) {
    PTXCU__ENTER(cu);
    if (!memory) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuMemFreeHost(memory), (cu, result_, "cuMemFreeHost()"));
}

PTXGEN_API size_t ptxcu_bytes(size_t count, size_t element_bytes) {
    if (element_bytes && count > SIZE_MAX / element_bytes) return SIZE_MAX;
    return count * element_bytes;
}

static ptxcu_code ptxcu__range(ptxcu *cu, const char *what, ptxcu_buffer b, size_t offset, size_t bytes) {
    if (offset <= b.bytes && bytes <= b.bytes - offset) return PTXCU_E_NONE;
    return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %llu bytes at offset %llu do not lie in a buffer of %llu",
                       what, (unsigned long long)bytes, (unsigned long long)offset,
                       (unsigned long long)b.bytes);
}

PTXGEN_API ptxcu_code ptxcu_upload(ptxcu *cu, ptxcu_buffer to, size_t to_offset, const void *from,
                                   size_t bytes, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (ptxcu__range(cu, "ptxcu_upload", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    if (!from) return ptxcu__null(cu, "ptxcu_upload", "from");
    PTXCU__DO(cu, cuMemcpyHtoDAsync_v2(to.address + to_offset, from, bytes, stream),
              (cu, result_, "cuMemcpyHtoDAsync_v2(%llu bytes)", (unsigned long long)bytes));
}

PTXGEN_API ptxcu_code ptxcu_download(ptxcu *cu, void *to, ptxcu_buffer from, size_t from_offset, size_t bytes,
                                     ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (ptxcu__range(cu, "ptxcu_download", from, from_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    if (!to) return ptxcu__null(cu, "ptxcu_download", "to");
    PTXCU__DO(cu, cuMemcpyDtoHAsync_v2(to, from.address + from_offset, bytes, stream),
              (cu, result_, "cuMemcpyDtoHAsync_v2(%llu bytes)", (unsigned long long)bytes));
}

PTXGEN_API ptxcu_code ptxcu_copy(ptxcu *cu, ptxcu_buffer to, size_t to_offset, ptxcu_buffer from,
                                 size_t from_offset, size_t bytes, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (ptxcu__range(cu, "ptxcu_copy, to", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (ptxcu__range(cu, "ptxcu_copy, from", from, from_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuMemcpyDtoDAsync_v2(to.address + to_offset, from.address + from_offset, bytes, stream),
              (cu, result_, "cuMemcpyDtoDAsync_v2(%llu bytes)", (unsigned long long)bytes));
}

PTXGEN_API ptxcu_code ptxcu_fill8(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint8_t value, size_t bytes,
                                  ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (ptxcu__range(cu, "ptxcu_fill8", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuMemsetD8Async(to.address + to_offset, value, bytes, stream),
              (cu, result_, "cuMemsetD8Async(%llu bytes)", (unsigned long long)bytes));
}

PTXGEN_API ptxcu_code ptxcu_fill32(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint32_t value, size_t count,
                                   ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (ptxcu__range(cu, "ptxcu_fill32", to, to_offset, ptxcu_bytes(count, 4))) return PTXCU_E_ARGUMENT;
    if (count == 0) return PTXCU_E_NONE;
    if ((to.address + to_offset) % 4)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_fill32: the place is not aligned to 4 bytes (offset %llu)",
                           (unsigned long long)to_offset);
    PTXCU__DO(cu, cuMemsetD32Async(to.address + to_offset, value, count, stream),
              (cu, result_, "cuMemsetD32Async(%llu words)", (unsigned long long)count));
}

PTXGEN_API ptxcu_code ptxcu_memory_info(ptxcu *cu, size_t *free_bytes, size_t *total_bytes) {
    size_t unused[2] = {0, 0};
    if (!free_bytes) free_bytes = &unused[0];
    if (!total_bytes) total_bytes = &unused[1];
    *free_bytes = *total_bytes = 0;
    PTXCU__ENTER(cu);
    PTXCU__DO(cu, cuMemGetInfo_v2(free_bytes, total_bytes), (cu, result_, "cuMemGetInfo_v2()"));
}

/* -- streams and events -- */

PTXGEN_API ptxcu_code ptxcu_stream_create(ptxcu *cu, ptxcu_stream *stream) {
    if (stream) *stream = NULL;
    PTXCU__ENTER(cu);
    if (!stream) return ptxcu__null(cu, "ptxcu_stream_create", "stream");
    PTXCU__DO(cu, cuStreamCreate(stream, 1), (cu, result_, "cuStreamCreate(non-blocking)"));
}

PTXGEN_API ptxcu_code ptxcu_stream_destroy(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (!stream) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuStreamDestroy_v2(stream), (cu, result_, "cuStreamDestroy_v2()"));
}

PTXGEN_API ptxcu_code ptxcu_stream_sync(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    PTXCU__DO(cu, cuStreamSynchronize(stream), (cu, result_, "cuStreamSynchronize()"));
}

PTXGEN_API ptxcu_code ptxcu_stream_wait_event(ptxcu *cu, ptxcu_stream stream, ptxcu_event event) {
    PTXCU__ENTER(cu);
    if (!event) return ptxcu__null(cu, "ptxcu_stream_wait_event", "event");
    PTXCU__DO(cu, cuStreamWaitEvent(stream, event, 0), (cu, result_, "cuStreamWaitEvent()"));
}

PTXGEN_API ptxcu_code ptxcu_graph_begin(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (!stream) return ptxcu__null(cu, "ptxcu_graph_begin", "stream");
    PTXCU__DO(cu, cuStreamBeginCapture_v2(stream, 1), (cu, result_, "cuStreamBeginCapture(thread local)"));
}
PTXGEN_API ptxcu_code ptxcu_graph_end(ptxcu *cu, ptxcu_stream stream, ptxcu_graph *graph) {
    void *noted = NULL;
    int result;
    if (graph) *graph = NULL;
    PTXCU__ENTER(cu);
    if (!stream) return ptxcu__null(cu, "ptxcu_graph_end", "stream");
    result = cu->driver.cuStreamEndCapture(stream, &noted);
    if (result) return ptxcu__driver_fail(cu, result, "cuStreamEndCapture()");
    result = graph ? cu->driver.cuGraphInstantiateWithFlags(graph, noted, 0) : 0;
    cu->driver.cuGraphDestroy(noted);
    if (!graph) return ptxcu__null(cu, "ptxcu_graph_end", "graph");
    if (!result) return PTXCU_E_NONE;
    *graph = NULL;
    return ptxcu__driver_fail(cu, result, "cuGraphInstantiate()");
}
PTXGEN_API ptxcu_code ptxcu_graph_launch(ptxcu *cu, ptxcu_graph graph, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (!graph) return ptxcu__null(cu, "ptxcu_graph_launch", "graph");
    PTXCU__DO(cu, cuGraphLaunch(graph, stream), (cu, result_, "cuGraphLaunch()"));
}
PTXGEN_API ptxcu_code ptxcu_graph_destroy(ptxcu *cu, ptxcu_graph graph) {
    PTXCU__ENTER(cu);
    if (!graph) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuGraphExecDestroy(graph), (cu, result_, "cuGraphExecDestroy()"));
}
PTXGEN_API ptxcu_code ptxcu_event_create(ptxcu *cu, ptxcu_event *event) {
    if (event) *event = NULL;
    PTXCU__ENTER(cu);
    if (!event) return ptxcu__null(cu, "ptxcu_event_create", "event");
    PTXCU__DO(cu, cuEventCreate(event, 0), (cu, result_, "cuEventCreate()"));
}

PTXGEN_API ptxcu_code ptxcu_event_destroy(ptxcu *cu, ptxcu_event event) {
    PTXCU__ENTER(cu);
    if (!event) return PTXCU_E_NONE;
    PTXCU__DO(cu, cuEventDestroy_v2(event), (cu, result_, "cuEventDestroy_v2()"));
}

PTXGEN_API ptxcu_code ptxcu_event_record(ptxcu *cu, ptxcu_event event, ptxcu_stream stream) {
    PTXCU__ENTER(cu);
    if (!event) return ptxcu__null(cu, "ptxcu_event_record", "event");
    PTXCU__DO(cu, cuEventRecord(event, stream), (cu, result_, "cuEventRecord()"));
}

PTXGEN_API ptxcu_code ptxcu_event_sync(ptxcu *cu, ptxcu_event event) {
    PTXCU__ENTER(cu);
    if (!event) return ptxcu__null(cu, "ptxcu_event_sync", "event");
    PTXCU__DO(cu, cuEventSynchronize(event), (cu, result_, "cuEventSynchronize()"));
}

PTXGEN_API ptxcu_code ptxcu_event_elapsed_ms(ptxcu *cu, ptxcu_event start, ptxcu_event stop, float *ms) {
    if (ms) *ms = 0;
    PTXCU__ENTER(cu);
    if (!start || !stop || !ms) return ptxcu__null(cu, "ptxcu_event_elapsed_ms", "an argument");
    PTXCU__DO(cu, cuEventElapsedTime(ms, start, stop), (cu, result_, "cuEventElapsedTime()"));
}

/* -- programs -- */

/* The log names a line of the PTX, and nothing else: show what stands there. */
static void ptxcu__append_line(ptxcu *cu, const char *log, const char *ptx) {
    const char *at = log;
    while ((at = strstr(at, "line ")) != NULL) {
        unsigned long number = strtoul(at + 5, NULL, 10), n;
        const char *start = ptx, *end;
        at += 5;
        for (n = 1; n < number && start; n++) {
            start = strchr(start, '\n');
            if (start) start++;
        }
        if (number == 0 || !start || !*start) continue;
        while (*start == ' ' || *start == '\t') start++;
        for (end = start; *end && *end != '\n' && *end != '\r' && end - start < 300; end++) {
        }
        ptxcu__append(cu, "\nPTX line %lu: %.*s", number, (int)(end - start), start);
        return;
    }
}

/* -- programs on disk -- */

#define PTXCU__KEPT_MAX ((size_t)4 << 20)
/* What a file begins with; the machine code follows. */
typedef struct ptxcu__kept {
    char magic[8];
    uint64_t text[2], text_bytes; /* two hashes of the text, and its length */
    uint64_t image_check, image_bytes;
    uint32_t driver, target;
} ptxcu__kept;

/* FNV-1a over 8 bytes at a time; `seed` makes a second one of it. */
static uint64_t ptxcu__sum(const void *data, size_t bytes, uint64_t seed) {
    const unsigned char *p = (const unsigned char *)data;
    uint64_t h = 0xcbf29ce484222325u ^ seed, word;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; bytes; bytes--, p++) h = (h ^ *p) * 0x100000001b3u;
    return h ^ h >> 32;
}

static void ptxcu__kept_key(const ptxcu *cu, const char *ptx, ptxcu__kept *k) {
    memset(k, 0, sizeof *k);
    memcpy(k->magic, "PTXGEN01", 8);
    k->text_bytes = strlen(ptx);
    k->text[0] = ptxcu__sum(ptx, (size_t)k->text_bytes, 0);
    k->text[1] = ptxcu__sum(ptx, (size_t)k->text_bytes, 0x9e3779b97f4a7c15u);
    k->driver = (uint32_t)cu->info.driver_version;
    k->target = cu->info.target;
}

static void ptxcu__kept_name(const ptxcu *cu, const ptxcu__kept *k, char *name, size_t size) {
    uint64_t slot = (k->text[0] ^ k->text[1] * 31 ^ k->driver ^ (uint64_t)k->target << 32) % cu->cache_files;
    snprintf(name, size, "%s/ptxgen-%06lx.cubin", cu->cache_folder, (unsigned long)slot);
}

/* The machine code in the slot's file, if the file is whole and of this text: allocated, or NULL. */
static void *ptxcu__kept_read(ptxcu *cu, const char *name, const ptxcu__kept *want, size_t *bytes) {
    ptxcu__kept k;
    void *image = NULL;
    FILE *f = fopen(name, "rb");
    if (!f) return NULL;
    if (fread(&k, sizeof k, 1, f) == 1 && memcmp(k.magic, want->magic, 8) == 0 && k.text[0] == want->text[0]
        && k.text[1] == want->text[1] && k.text_bytes == want->text_bytes && k.driver == want->driver
        && k.target == want->target && k.image_bytes && k.image_bytes <= PTXCU__KEPT_MAX) {
        *bytes = (size_t)k.image_bytes;
        image = cu->alloc(cu->alloc_user, NULL, 0, *bytes);
        if (image
            && (fread(image, 1, *bytes, f) != *bytes || fgetc(f) != EOF
                || ptxcu__sum(image, *bytes, 0) != k.image_check)) {
            ptxcu__release(cu, image, *bytes);
            image = NULL;
        }
    }
    fclose(f);
    return image;
}

/* Written beside and renamed: whoever reads sees the old file or the new one. */
static void ptxcu__kept_write(ptxcu *cu, const char *name, ptxcu__kept *k, const void *image, size_t bytes) {
    char beside[640];
    FILE *f;
    int good;
    if (!bytes || bytes > PTXCU__KEPT_MAX) return;
    k->image_bytes = bytes;
    k->image_check = ptxcu__sum(image, bytes, 0);
    snprintf(beside, sizeof beside, "%s.%lx%lx.tmp", name, (unsigned long)((uintptr_t)cu >> 4),
             (unsigned long)(time(NULL) * 1000 + clock() % 1000));
    f = fopen(beside, "wb");
    if (!f) return;
    good = fwrite(k, sizeof *k, 1, f) == 1 && fwrite(image, 1, bytes, f) == bytes;
    if (fclose(f) != 0) good = 0;
#ifdef _WIN32
    if (good) remove(name); /* rename does not replace there */
#endif
    if (!good || rename(beside, name) != 0) remove(beside);
}

/* 1: the program is loaded, from its file or from machine code that is kept now. 0: nothing of that kind;
   what is wrong with the text the usual way tells. */
static int ptxcu__load_kept(ptxcu *cu, const char *ptx, void **module_) {
    ptxcu__kept key;
    char name[600];
    void *image, *state = NULL;
    size_t bytes = 0;
    int loaded = 0;
    if (!cu->cache_folder[0]) return 0;
    ptxcu__kept_key(cu, ptx, &key);
    ptxcu__kept_name(cu, &key, name, sizeof name);
    image = ptxcu__kept_read(cu, name, &key, &bytes);
    if (image) {
        loaded = cu->driver.cuModuleLoadDataEx(module_, image, 0, NULL, NULL) == 0;
        ptxcu__release(cu, image, bytes);
        if (loaded) return 1;
    }
    if (cu->driver.cuLinkCreate_v2(0, NULL, NULL, &state) != 0) return 0;
    if (cu->driver.cuLinkAddData_v2(state, 1, (void *)(uintptr_t)ptx, (size_t)key.text_bytes + 1, "ptxgen", 0,
                                    NULL, NULL)
            == 0 /* CU_JIT_INPUT_PTX */
        && cu->driver.cuLinkComplete(state, &image, &bytes) == 0) { /* the image is the state's */
        loaded = cu->driver.cuModuleLoadDataEx(module_, image, 0, NULL, NULL) == 0;
        if (loaded) ptxcu__kept_write(cu, name, &key, image, bytes);
    }
    cu->driver.cuLinkDestroy(state);
    return loaded;
}

static ptxcu_code ptxcu__load_module(ptxcu *cu, const char *ptx, void **module_) {
    int options[2] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER and its size; a value may be the size itself */
    void *values[2];
    int result;
    size_t length;
    ptxcu__record *r = ptxcu__record_of(cu);
    char *log;
    if (r && !r->log) r->log = (char *)ptxcu__get_zeroed(cu, PTXCU__LOG_BYTES);
    if (!r || !r->log) return ptxcu__memory(cu, PTXCU__LOG_BYTES);
    log = r->log;
    log[0] = 0;
    values[0] = log;
    values[1] = (void *)(uintptr_t)PTXCU__LOG_BYTES;
    if (ptxcu__load_kept(cu, ptx, module_)) return PTXCU_E_NONE;
    result = cu->driver.cuModuleLoadDataEx(module_, ptx, 2, options, values);
    if (result == 0) return PTXCU_E_NONE;
    ptxcu__driver_fail(cu, result, "cuModuleLoadDataEx(%llu bytes of PTX)", (unsigned long long)strlen(ptx));
    r->error.code = PTXCU_E_JIT;
    log[PTXCU__LOG_BYTES - 1] = 0;
    length = strlen(log);
    while (length && (log[length - 1] == '\n' || log[length - 1] == ' ')) log[--length] = 0;
    r->error.log = log;
    /* A long log must leave room for the line. */
    if (length) ptxcu__append(cu, "\n%.*s", (int)(length < 3000 ? length : 3000), log);
    ptxcu__append_line(cu, log, ptx);
    return PTXCU_E_JIT;
}

/* An entry's limits, from the driver. */
static ptxcu_code ptxcu__entry_open(ptxcu *cu, void *module_, const char *name, ptxcu__entry *e) {
    int threads = 0, shared = 0;
    int result = cu->driver.cuModuleGetFunction(&e->function, module_, name);
    if (result) {
        ptxcu__driver_fail(cu, result, "cuModuleGetFunction(\"%s\")", name);
        if (result == 500) {
            ptxcu__append(cu, "; the program has no entry of that name");
            return ptxcu__recode(cu, PTXCU_E_ENTRY);
        }
        return PTXCU_E_DRIVER;
    }
    result = cu->driver.cuFuncGetAttribute(&threads, 0, e->function);
    if (result == 0) result = cu->driver.cuFuncGetAttribute(&shared, 1, e->function);
    if (result) return ptxcu__driver_fail(cu, result, "cuFuncGetAttribute(entry '%s')", name);
    e->max_threads = (uint32_t)threads;
    e->shared_bytes = (uint32_t)shared;
    e->dynamic_free = cu->info.shared_static > e->shared_bytes ? cu->info.shared_static - e->shared_bytes : 0;
    e->dynamic_max = e->dynamic_free;
    return PTXCU_E_NONE;
}

/* Copy a signature: the builder's pointers live only until its module changes. info->params may be NULL. */
static ptxcu_code ptxcu__entry_sign(ptxcu *cu, const ptx_entry_info *info, ptxcu__entry *e) {
    size_t names = strlen(info->name) + 1, params = info->param_count * sizeof(ptx_param_info);
    ptx_param_info *p;
    char *text;
    uint32_t i;
    for (i = 0; i < info->param_count; i++) names += strlen(info->params[i].name) + 1;
    e->block = (char *)ptxcu__get_zeroed(cu, params + names);
    if (!e->block) return ptxcu__memory(cu, params + names);
    e->block_bytes = params + names;
    text = e->block + params;
    p = (ptx_param_info *)(void *)e->block;
    if (params) memcpy(p, info->params, params);
    e->params = p;
    e->param_count = info->param_count;
    e->name = text;
    names = strlen(info->name) + 1;
    memcpy(text, info->name, names);
    for (i = 0; i < info->param_count; i++) {
        text += names;
        names = strlen(info->params[i].name) + 1;
        memcpy(text, info->params[i].name, names);
        p[i].name = text;
    }
    return PTXCU_E_NONE;
}

/* Load text with the signatures of m's entries, if there is an m. */
static ptxcu_code ptxcu__program_new(ptxcu *cu, const char *ptx, const ptx_module *m, ptxcu_program **out) {
    uint32_t i, count = m ? ptx_entry_count(m) : 0;
    ptxcu_code code;
    ptxcu_program *p = (ptxcu_program *)ptxcu__get_zeroed(cu, sizeof *p);
    if (!p) return ptxcu__memory(cu, sizeof *p);
    p->owner = cu;
    if (count) {
        p->entries = (ptxcu__entry *)ptxcu__get_zeroed(cu, count * sizeof *p->entries);
        if (!p->entries) {
            code = ptxcu__memory(cu, count * sizeof *p->entries);
            ptxcu__program_free(cu, p);
            return code;
        }
        p->capacity = count;
    }
    code = ptxcu__load_module(cu, ptx, &p->module_);
    if (code != PTXCU_E_NONE) {
        ptxcu__program_free(cu, p);
        return code;
    }
    for (i = 0; i < count && code == PTXCU_E_NONE; i++) {
        ptx_entry_info info;
        ptxcu__entry *e = &p->entries[i];
        p->count++;
        if (!ptx_entry_get(m, i, &info)) {
            code = ptxcu__fail(cu, PTXCU_E_EMIT, "the module does not describe its entry %u", (unsigned)i);
        } else {
            code = ptxcu__entry_open(cu, p->module_, info.name, e);
            if (code == PTXCU_E_NONE) code = ptxcu__entry_sign(cu, &info, e);
            e->known = 1;
        }
    }
    if (code != PTXCU_E_NONE) {
        cu->driver.cuModuleUnload(p->module_);
        ptxcu__program_free(cu, p);
        return code;
    }
    p->next = cu->programs;
    cu->programs = p;
    *out = p;
    return PTXCU_E_NONE;
}

/* The caller's place of the line that the log names. */
static void ptxcu__append_place(ptxcu *cu, const ptx_module *m) {
    const char *at = ptxcu_get_error(cu)->log;
    ptx_place place;
    while (at && (at = strstr(at, "line ")) != NULL) {
        unsigned long number = strtoul(at += 5, NULL, 10);
        if (number == 0 || number > UINT32_MAX || !ptx_locate(m, (uint32_t)number, &place)) continue;
        ptxcu__append(cu, "\n%s: kernel '%s', instruction %lu", place.site, place.kernel,
                      (unsigned long)place.instruction);
        return;
    }
}

static ptxcu_code ptxcu__load(ptxcu *cu, ptx_module *m, ptxcu_program **program) {
    ptxcu_code code;
    const char *text = ptx_text(m, NULL);
    if (!text)
        return ptxcu__fail(cu, ptx_get_error(m)->code == PTX_E_MEMORY ? PTXCU_E_MEMORY : PTXCU_E_EMIT, "%s",
                           ptx_get_error(m)->message);
    code = ptxcu__program_new(cu, text, m, program);
    if (code == PTXCU_E_JIT) ptxcu__append_place(cu, m);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_load(ptxcu *cu, ptx_module *m, ptxcu_program **program) {
    ptxcu_code code;
    if (program) *program = NULL;
    PTXCU__ENTER(cu);
    if (!m) return ptxcu__null(cu, "ptxcu_load", "m");
    if (!program) return ptxcu__null(cu, "ptxcu_load", "program");
    ptxcu__lock(&cu->building);
    code = ptxcu__load(cu, m, program);
    ptxcu__unlock(&cu->building);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_load_text(ptxcu *cu, const char *ptx, ptxcu_program **program) {
    ptxcu_code code;
    if (program) *program = NULL;
    PTXCU__ENTER(cu);
    if (!ptx) return ptxcu__null(cu, "ptxcu_load_text", "ptx");
    if (!program) return ptxcu__null(cu, "ptxcu_load_text", "program");
    ptxcu__lock(&cu->building);
    code = ptxcu__program_new(cu, ptx, NULL, program);
    ptxcu__unlock(&cu->building);
    return code;
}

static ptxcu_code ptxcu__program_unload(ptxcu *cu, ptxcu_program *program) {
    ptxcu_program **at;
    int result;
    for (at = &cu->programs; *at; at = &(*at)->next)
        if (*at == program) {
            *at = program->next;
            result = cu->driver.cuModuleUnload(program->module_);
            ptxcu__program_free(cu, program);
            return result ? ptxcu__driver_fail(cu, result, "cuModuleUnload()") : PTXCU_E_NONE;
        }
    return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "the program is not one of this handle's, or was unloaded");
}

PTXGEN_API ptxcu_code ptxcu_unload(ptxcu *cu, ptxcu_program *program) {
    const ptxcu_program *p;
    ptxcu_code code = PTXCU_E_NONE;
    PTXCU__ENTER(cu);
    if (!program) return PTXCU_E_NONE;
    ptxcu__lock(&cu->building);
    for (p = cu->programs; p; p = p->next) /* a pointer that is none of ours is not looked into */
        if (p == program && p->cached)
            code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                               "ptxcu_unload: this program belongs to the cache of "
                               "ptxcu_operation; see ptxcu_cache_clear");
    if (code == PTXCU_E_NONE) code = ptxcu__program_unload(cu, program);
    ptxcu__unlock(&cu->building);
    return code;
}

static ptxcu_code ptxcu__check_program(ptxcu *cu, const char *function, const ptxcu_program *program) {
    if (!program) return ptxcu__null(cu, function, "program");
    if (program->owner != cu)
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: the program was loaded by another handle",
                           function);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name, uint32_t *entry) {
    ptxcu__entry e;
    ptx_entry_info info;
    ptxcu_code code;
    uint32_t i;
    for (i = 0; i < program->count; i++)
        if (strcmp(program->entries[i].name, name) == 0) {
            *entry = i;
            return PTXCU_E_NONE;
        }
    memset(&e, 0, sizeof e);
    memset(&info, 0, sizeof info);
    info.name = name;
    code = ptxcu__entry_open(cu, program->module_, name, &e);
    if (code != PTXCU_E_NONE) return code;
    if (program->count == program->capacity) {
        uint32_t capacity = program->capacity ? program->capacity * 2 : 4;
        size_t old_bytes = program->capacity * sizeof e, bytes = capacity * sizeof e;
        void *grown = cu->alloc(cu->alloc_user, program->entries, old_bytes, bytes);
        if (!grown) return ptxcu__memory(cu, bytes);
        program->entries = (ptxcu__entry *)grown;
        program->capacity = capacity;
    }
    code = ptxcu__entry_sign(cu, &info, &e);
    if (code != PTXCU_E_NONE) return code;
    *entry = program->count;
    program->entries[program->count++] = e;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name,
                                          uint32_t *entry) {
    ptxcu_code code;
    if (entry) *entry = 0;
    PTXCU__ENTER(cu);
    code = ptxcu__check_program(cu, "ptxcu_entry_by_name", program);
    if (code != PTXCU_E_NONE) return code;
    if (!name) return ptxcu__null(cu, "ptxcu_entry_by_name", "name");
    if (!entry) return ptxcu__null(cu, "ptxcu_entry_by_name", "entry");
    ptxcu__lock(&cu->building);
    code = ptxcu__entry_by_name(cu, program, name, entry);
    ptxcu__unlock(&cu->building);
    return code;
}

/* -- the cache: open addressing; device, context and driver are the handle's, so they need not be in the key
 * -- */

static uint64_t ptxcu__hash(const ptx_operation *op, const void *desc) {
    const unsigned char *p = (const unsigned char *)desc;
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(uintptr_t)op->emit;
    uint32_t i;
    for (i = 0; i < op->desc_bytes; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* The slot of the key, or the free one where it belongs. There is always a free one. */
static ptxcu__slot *ptxcu__probe(const ptxcu *cu, uint64_t hash, const ptx_operation *op, const void *desc) {
    uint32_t mask = cu->slot_capacity - 1, i = (uint32_t)hash & mask;
    for (;; i = (i + 1) & mask) {
        ptxcu__slot *s = &cu->slots[i];
        if (!s->program) return s;
        if (s->hash == hash && s->emit == op->emit && s->desc_bytes == op->desc_bytes
            && (s->desc_bytes == 0 || memcmp(s->desc, desc, s->desc_bytes) == 0))
            return s;
    }
}

/* With building held: nobody else changes the slots, and readers see the old ones or the new. */
static ptxcu_code ptxcu__cache_grow(ptxcu *cu) {
    uint32_t i, old_capacity = cu->slot_capacity;
    ptxcu__slot *old = cu->slots, *slots;
    uint32_t capacity = old_capacity ? old_capacity * 2 : 16;
    if (cu->slot_count + 1 <= old_capacity / 4 * 3) return PTXCU_E_NONE;
    slots = (ptxcu__slot *)ptxcu__get_zeroed(cu, capacity * sizeof *slots);
    if (!slots) return ptxcu__memory(cu, capacity * sizeof *slots);
    for (i = 0; i < old_capacity; i++)
        if (old[i].program) {
            uint32_t at = (uint32_t)old[i].hash & (capacity - 1);
            while (slots[at].program) at = (at + 1) & (capacity - 1);
            slots[at] = old[i];
        }
    ptxcu__lock(&cu->tables);
    cu->slots = slots;
    cu->slot_capacity = capacity;
    ptxcu__unlock(&cu->tables);
    ptxcu__release(cu, old, old_capacity * sizeof *old);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__build(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                               ptxcu_program **out) {
    ptx_module_desc d;
    ptx_module *m;
    ptxcu_code code;
    memset(&d, 0, sizeof d);
    d.target = cu->info.target;
    d.max_version = cu->info.max_version;
    d.alloc = ptxcu__module_alloc;
    d.alloc_user = cu;
    cu->no_memory = 0;
    m = ptx_module_new(&d);
    if (!m && cu->no_memory) return ptxcu__fail(cu, PTXCU_E_MEMORY, "out of host memory for the builder");
    if (!m)
        return ptxcu__fail(cu, PTXCU_E_EMIT, "the builder does not know sm_%u with PTX %u.%u",
                           (unsigned)(cu->info.target & 0xfff), (unsigned)(cu->info.max_version / 10),
                           (unsigned)(cu->info.max_version % 10));
    op->emit(m, site, desc); /* its result is the module's error, which ptx_text asks for */
    code = ptxcu__load(cu, m, out);
    ptx_module_free(m);
    return code;
}

/* The program of the key, or NULL. */
static ptxcu_program *ptxcu__cached(ptxcu *cu, uint64_t hash, const ptx_operation *op, const void *desc) {
    ptxcu_program *program = NULL;
    ptxcu__lock(&cu->tables);
    if (cu->slot_capacity) program = ptxcu__probe(cu, hash, op, desc)->program;
    ptxcu__unlock(&cu->tables);
    return program;
}

static ptxcu_code ptxcu__operation_new(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       uint64_t hash, ptxcu_program **program) {
    ptxcu_program *built = NULL;
    ptxcu__slot *s;
    ptxcu_code code;
    void *copy = NULL;
    *program = ptxcu__cached(cu, hash, op, desc); /* another thread has been quicker */
    if (*program) return PTXCU_E_NONE;
    code = ptxcu__cache_grow(cu);
    if (code != PTXCU_E_NONE) return code;
    if (op->desc_bytes) {
        copy = cu->alloc(cu->alloc_user, NULL, 0, op->desc_bytes);
        if (!copy) return ptxcu__memory(cu, op->desc_bytes);
        memcpy(copy, desc, op->desc_bytes);
    }
    code = ptxcu__build(cu, site, op, desc, &built);
    if (code != PTXCU_E_NONE) {
        ptxcu__release(cu, copy, op->desc_bytes);
        return code;
    }
    built->cached = 1;
    ptxcu__lock(&cu->tables);
    s = ptxcu__probe(cu, hash, op, copy);
    s->hash = hash;
    s->emit = op->emit;
    s->desc_bytes = op->desc_bytes;
    s->desc = copy;
    s->program = built;
    cu->slot_count++;
    ptxcu__unlock(&cu->tables);
    *program = built;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_operation_(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       ptxcu_program **program) {
    ptxcu_code code;
    uint64_t hash;
    if (program) *program = NULL;
    if (!cu) return PTXCU_E_MEMORY;
    if (!cu->ready) return cu->first.error.code;
    if (!op || !op->emit) return ptxcu__null(cu, "ptxcu_operation", "op, or its emit,");
    if (!desc && op->desc_bytes) return ptxcu__null(cu, "ptxcu_operation", "desc");
    if (!program) return ptxcu__null(cu, "ptxcu_operation", "program");
    hash = ptxcu__hash(op, desc);
    *program = ptxcu__cached(cu, hash, op, desc);
    if (*program) return PTXCU_E_NONE;
    PTXCU__ENTER(cu);
    ptxcu__lock(&cu->building);
    code = ptxcu__operation_new(cu, site, op, desc, hash, program);
    ptxcu__unlock(&cu->building);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_cache_clear(ptxcu *cu) {
    ptxcu_code code, worst = PTXCU_E_NONE;
    ptxcu__slot *slots;
    uint32_t i, capacity;
    PTXCU__ENTER(cu);
    ptxcu__lock(&cu->building);
    ptxcu__lock(&cu->tables);
    slots = cu->slots;
    capacity = cu->slot_capacity;
    cu->slots = NULL;
    cu->slot_count = cu->slot_capacity = 0;
    ptxcu__unlock(&cu->tables);
    for (i = 0; i < capacity; i++) {
        if (!slots[i].program) continue;
        code = ptxcu__program_unload(cu, slots[i].program);
        if (code != PTXCU_E_NONE) worst = code;
        ptxcu__release(cu, slots[i].desc, slots[i].desc_bytes);
    }
    ptxcu__release(cu, slots, capacity * sizeof *slots);
    ptxcu__unlock(&cu->building);
    return worst;
}

/* -- launch -- */

static ptxcu_arg ptxcu__arg(uint8_t kind, uint32_t bytes) {
    ptxcu_arg a;
    memset(&a, 0, sizeof a);
    a.kind = kind;
    a.bytes = bytes;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_buffer(ptxcu_buffer buffer) { return ptxcu_arg_address(buffer.address); }

PTXGEN_API ptxcu_arg ptxcu_arg_address(uint64_t address) {
    ptxcu_arg a = ptxcu__arg(PTXCU__ADDRESS, 8);
    a.value.u64 = address;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_u32(uint32_t value) {
    ptxcu_arg a = ptxcu__arg(PTX_U32, 4);
    a.value.u32 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_s32(int32_t value) {
    ptxcu_arg a = ptxcu__arg(PTX_S32, 4);
    a.value.u32 = (uint32_t)value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_f32(float value) {
    ptxcu_arg a = ptxcu__arg(PTX_F32, 4);
    a.value.f32 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_u64(uint64_t value) {
    ptxcu_arg a = ptxcu__arg(PTX_U64, 8);
    a.value.u64 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_s64(int64_t value) {
    ptxcu_arg a = ptxcu__arg(PTX_S64, 8);
    a.value.u64 = (uint64_t)value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_f64(double value) {
    ptxcu_arg a = ptxcu__arg(PTX_F64, 8);
    a.value.f64 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_bytes(const void *bytes, size_t size) {
    ptxcu_arg a = ptxcu__arg(PTXCU__BYTES, size <= UINT32_MAX ? (uint32_t)size : UINT32_MAX);
    a.value.pointer = bytes;
    return a;
}

static int ptxcu__fits(const ptxcu_arg *a, const ptx_param_info *p) {
    if (a->bytes != p->bytes) return 0;
    if (a->kind == PTXCU__BYTES) return 1;
    if (p->type == PTX_B32 || p->type == PTX_B64) return 1;
    if (a->kind == PTXCU__ADDRESS)
        return p->type == PTX_U64 || (p->type == PTX_S64 && p->space == PTX_GENERIC);
    return a->kind == (uint8_t)p->type && p->space == PTX_GENERIC;
}

static ptxcu_code ptxcu__bad_arg(ptxcu *cu, const ptxcu__entry *e, uint32_t index, const ptxcu_arg *a) {
    const ptx_param_info *p = &e->params[index];
    const char *given = a->kind == PTXCU__ADDRESS ? "an address"
                        : a->kind == PTXCU__BYTES ? "a block"
                                                  : ptx_type_name((ptx_type)a->kind);
    const char *wanted = p->space != PTX_GENERIC ? "a pointer"
                         : p->type == PTX_B8     ? "a block"
                                                 : ptx_type_name(p->type);
    return ptxcu__fail(
        cu, PTXCU_E_ARGS,
        "entry '%s', argument %u: parameter '%s' is %s of %u bytes, the argument is %s of %u bytes", e->name,
        (unsigned)index, p->name, wanted, (unsigned)p->bytes, given, (unsigned)a->bytes);
}

static ptxcu_code ptxcu__bad_geometry(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g) {
    const ptxcu_device *d = &cu->info;
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    int i;
    for (i = 0; i < 3; i++) {
        if (g->grid[i] == 0 || g->grid[i] > d->max_grid[i])
            return ptxcu__fail(cu, PTXCU_E_LAUNCH, "entry '%s': grid %c is %u, must be 1 to %u", e->name,
                               "xyz"[i], (unsigned)g -> grid[i], (unsigned)d -> max_grid[i]);
        if (g->block[i] == 0 || g->block[i] > d->max_block[i])
            return ptxcu__fail(cu, PTXCU_E_LAUNCH, "entry '%s': block %c is %u, must be 1 to %u", e->name,
                               "xyz"[i], (unsigned)g -> block[i], (unsigned)d -> max_block[i]);
    }
    if (threads > e->max_threads)
        return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                           "entry '%s': a block of %llu threads, at most %u can be launched", e->name,
                           (unsigned long long)threads, (unsigned)e->max_threads);
    return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                       "entry '%s': %u bytes of dynamic and %u of static shared memory, a block can have %u",
                       e->name, (unsigned)g->shared_bytes, (unsigned)e->shared_bytes,
                       (unsigned)d->shared_optin);
}

/* Everything but the arguments, and the shared memory asked for. */
static ptxcu_code ptxcu__prepare(ptxcu *cu, ptxcu_program *program, const ptx_launch *g,
                                 ptxcu__entry **entry) {
    const ptxcu_device *d = &cu->info;
    ptxcu__entry *e;
    int result;
    if (g->entry >= program->count)
        return ptxcu__fail(cu, PTXCU_E_ENTRY, "there is no entry %u: the program has %u, counted from 0",
                           (unsigned)g->entry, (unsigned)program->count);
    e = &program->entries[g->entry];
    /* x - 1 turns 0 into the largest number, so that one comparison refuses both ends. */
    if (g->grid[0] - 1 >= d->max_grid[0] || g->grid[1] - 1 >= d->max_grid[1]
        || g->grid[2] - 1 >= d->max_grid[2] || g->block[0] - 1 >= d->max_block[0]
        || g->block[1] - 1 >= d->max_block[1] || g->block[2] - 1 >= d->max_block[2]
        || (uint64_t)g->block[0] * g->block[1] * g->block[2] > e->max_threads
        || (uint64_t)g->shared_bytes + e->shared_bytes > d->shared_optin)
        return ptxcu__bad_geometry(cu, e, g);
    if (g->shared_bytes > e->dynamic_free) {
        result = 0;
        ptxcu__lock(&cu->tables);
        if (g->shared_bytes > e->dynamic_max) {
            result = cu->driver.cuFuncSetAttribute(e->function, 8, (int)g->shared_bytes);
            if (!result) e->dynamic_max = g->shared_bytes;
        }
        ptxcu__unlock(&cu->tables);
        if (result)
            return ptxcu__driver_fail(cu, result, "cuFuncSetAttribute(entry '%s', %u bytes of shared memory)",
                                      e->name, (unsigned)g->shared_bytes);
    }
    *entry = e;
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__start(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g, void **params,
                               ptxcu_stream stream) {
    int result = cu->driver.cuLaunchKernel(e->function, g->grid[0], g->grid[1], g->grid[2], g->block[0],
                                           g->block[1], g->block[2], g->shared_bytes, stream, params, NULL);
    if (result == 0) return PTXCU_E_NONE;
    return ptxcu__driver_fail(
        cu, result, "cuLaunchKernel(entry '%s', grid %ux%ux%u, block %ux%ux%u, %u bytes)", e->name,
        (unsigned)g->grid[0], (unsigned)g->grid[1], (unsigned)g->grid[2], (unsigned)g->block[0],
        (unsigned)g->block[1], (unsigned)g->block[2], (unsigned)g->shared_bytes);
}

PTXGEN_API ptxcu_code ptxcu_launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *geometry,
                                   const ptxcu_arg *args, uint32_t count, ptxcu_stream stream) {
    void *params[PTXCU_ARGS_MAX];
    ptxcu__entry *e = NULL;
    ptxcu_code code;
    uint32_t i;
    PTXCU__ENTER(cu);
    code = ptxcu__check_program(cu, "ptxcu_launch", program);
    if (code != PTXCU_E_NONE) return code;
    if (!geometry) return ptxcu__null(cu, "ptxcu_launch", "geometry");
    if (!args && count) return ptxcu__null(cu, "ptxcu_launch", "args");
    code = ptxcu__prepare(cu, program, geometry, &e);
    if (code != PTXCU_E_NONE) return code;
    if (count > PTXCU_ARGS_MAX || (e->known && count != e->param_count))
        return ptxcu__fail(cu, PTXCU_E_ARGS, "entry '%s' takes %u arguments%s, %u are given", e->name,
                           (unsigned)(e->known ? e->param_count : PTXCU_ARGS_MAX), e->known ? "" : " at most",
                           (unsigned)count);
    for (i = 0; i < count; i++) {
        const ptxcu_arg *a = &args[i];
        const void *value = a->kind == PTXCU__BYTES ? a->value.pointer : (const void *)&a->value;
        if (e->known && !ptxcu__fits(a, &e->params[i])) return ptxcu__bad_arg(cu, e, i, a);
        if (!value)
            return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "entry '%s', argument %u is a NULL block", e->name,
                               (unsigned)i);
        params[i] = (void *)(uintptr_t)value; /* the driver reads only */
    }
    return ptxcu__start(cu, e, geometry, params, stream);
}

PTXGEN_API ptxcu_code ptxcu_run(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                                size_t args_bytes, ptxcu_stream stream) {
    ptxcu__entry *entries[PTX_PLAN_MAX];
    void *params[1];
    ptxcu_code code;
    uint32_t i;
    PTXCU__ENTER(cu);
    code = ptxcu__check_program(cu, "ptxcu_run", program);
    if (code != PTXCU_E_NONE) return code;
    if (!plan) return ptxcu__null(cu, "ptxcu_run", "plan");
    if (plan->launches > PTX_PLAN_MAX)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "ptxcu_run: a plan of %u launches, at most %u are possible",
                           (unsigned)plan->launches, (unsigned)PTX_PLAN_MAX);
    if (plan->launches == 0) return PTXCU_E_NONE;
    if (!args) return ptxcu__null(cu, "ptxcu_run", "args");
    if (plan->args_bytes != args_bytes)
        return ptxcu__fail(cu, PTXCU_E_ARGS,
                           "ptxcu_run: the plan is for arguments of %u bytes, %llu are given",
                           (unsigned)plan->args_bytes, (unsigned long long)args_bytes);
    for (i = 0; i < plan->launches; i++) {
        const ptxcu__entry *e;
        code = ptxcu__prepare(cu, program, &plan->launch[i], &entries[i]);
        if (code != PTXCU_E_NONE) return code;
        e = entries[i];
        if (e->known && e->param_count != 1)
            return ptxcu__fail(cu, PTXCU_E_ARGS,
                               "entry '%s' has %u parameters; a plan's entries have one block", e->name,
                               (unsigned)e->param_count);
        if (e->known && e->params[0].bytes != args_bytes)
            return ptxcu__fail(cu, PTXCU_E_ARGS, "entry '%s': parameter '%s' has %u bytes, %llu are given",
                               e->name, e->params[0].name, (unsigned)e->params[0].bytes,
                               (unsigned long long)args_bytes);
    }
    params[0] = (void *)(uintptr_t)args;
    for (i = 0; i < plan->launches; i++) {
        code = ptxcu__start(cu, entries[i], &plan->launch[i], params, stream);
        if (code != PTXCU_E_NONE) return code;
    }
    return PTXCU_E_NONE;
}

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_IMPLEMENTATION */

/* ---- [LICENSE] -----------------------------------------------------------------------------------------

   This software is available under two licenses; choose the one you prefer.

   A - MIT License. Copyright (c) 2026 the ptxgen authors.
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions: The above copyright notice and this permission notice shall be included in all copies
   or substantial portions of the Software.
   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE
   WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS OR
   COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
   TORT OR
   OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
   SOFTWARE.

   B - Public domain (www.unlicense.org). This is free and unencumbered software released into the public
   domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in
   source code form or as a compiled binary, for any purpose, commercial or non-commercial, and by any means.
   THE SOFTWARE IS PROVIDED "AS IS",
   WITHOUT WARRANTY OF ANY KIND, as above. */
