/* ptxgen_cuda.h - v0.2.0 - load and launch PTX through the CUDA driver. Public domain or MIT, at your choice.

   WHAT   Finds the driver at run time, loads what ptxgen.h builds, caches it, launches it. No CUDA toolkit,
          no cuda.h, nothing to link but the C library (and -ldl where it does not contain dlopen).
   DO     In exactly one C or C++ file:   #define PTXGEN_IMPLEMENTATION
                                          #include "ptxgen_cuda.h"
          Everywhere else include it plainly. ptxgen.h must lie beside it.

   Run a module m of ptxgen.h, whose first entry is saxpy(x, y, a, n), on the GPU:

       ptxcu *cu;
       if (ptxcu_open(&cu, NULL)) { puts(ptxcu_get_error(cu)->message); ptxcu_close(cu); return 1; }
       ptxcu_program *p;
       ptxcu_buffer x, y;                                        // of 1000 floats each
       ptxcu_load(cu, m, &p);                                    // every call returns 0 or an error's code
       ptxcu_alloc(cu, 4000, &x);
       ptxcu_alloc(cu, 4000, &y);
       ptxcu_upload(cu, x, 0, host_x, 4000, NULL);
       ptxcu_upload(cu, y, 0, host_y, 4000, NULL);
       ptx_launch g = ptx_launch_1d(1000, 256);                  // 4 blocks of 256 threads
       ptxcu_arg a[4] = { ptxcu_arg_buffer(x), ptxcu_arg_buffer(y), ptxcu_arg_f32(2), ptxcu_arg_u32(1000) };
       ptxcu_launch(cu, p, &g, a, 4, NULL);
       ptxcu_download(cu, host_y, y, 0, 4000, NULL);
       ptxcu_sync(cu);
       ptxcu_free(cu, x);
       ptxcu_free(cu, y);
       ptxcu_close(cu);                                          // unloads p

   INDEX  (search for the tag; the three headers have the same, and [MATH] is in ptxgen.h)
     [MANUAL]     concepts, rules, what it does not do
     [CONFIG]     macros that you may define before including
     [ERRORS]     the catalogue: each line defines a code, its name and its meaning
     [TYPES]      handles, descriptions, arguments
     [TABLE]      the driver's functions: their pointers and their loader are generated from it
     [INTERFACE]  functions; then a part for each operation on tensors
     [SUPPORT]    implementation: memory, errors, library
     [CORE]       implementation: handle, memory, streams, programs, cache, launch, calls, operations
     [LICENSE]

   [MANUAL]
   LIBRARY  ptxcu_open loads ptxcu_desc.library. Without one it loads the library that the environment
          variable PTXGEN_CUDA_LIBRARY names, and without that libcuda.so.1 or libcuda.so (nvcuda.dll on
          Windows). If that fails or finds no device, it loads ptxcu_desc.fallback, or the library that
          PTXGEN_CUDA_FALLBACK names. So a machine without a GPU runs the same program on the CPU driver of
          tests/sim (`make build/libptxsim.so`). An empty variable counts as unset. A program with more
          rights than its caller (setuid) ignores both variables. The library stays loaded after ptxcu_close,
          because its own threads may still run.
   CONTEXT  The handle uses the device's primary context, which it shares with the CUDA runtime and others.
          ptxcu_desc.context selects another one; use_current_context selects the thread's current one. The
          caller must keep such a context until ptxcu_close. Each call pushes the handle's context and pops it
          before it returns, also on errors. It pushes nothing if that context is already current: a thread
          that launches often can make it current (ptxcu_get_context).
   THREADS  Several threads may use one handle at the same time, and several handles may share one context.
          These may not run at the same time:
          - ptxcu_open or ptxcu_close, and any other call with that handle;
          - ptxcu_unload, ptxcu_cache_clear or ptxcu_entry_by_name, and any use of the program;
          - two calls with the same ptxcu_result.
          Threads that ask for the same operation build it once. A caller's allocator must be thread-safe if
          several threads use the handle. Streams and events order work on the GPU.
   ERRORS  Every function returns PTXCU_E_NONE (0) or a code. ptxcu_get_error describes the calling thread's
          last failure. Errors are not sticky: a failed call leaves the handle unchanged. If ptxcu_open fails,
          the handle keeps that error and every call returns its code. A fault in a kernel is reported by the
          next call that waits. ptxcu_desc.log receives each message as it arises.
   STREAMS  NULL is the context's default stream. Streams of ptxcu_stream_create have no order with it or with
          each other: use one stream for an upload and its kernels, or an event, or ptxcu_sync between. Copies
          and fills are asynchronous: host memory must stay valid until the stream has executed the copy.
          Copies from and to pinned memory (ptxcu_host_alloc) overlap with other work; for pageable memory the
          call may wait.
   TARGET  A module of ptx_module_new(NULL) is for sm_75 and runs on every later device. ptxcu_module_new
          makes one for the opened device, with all instructions that it has.
   LAUNCH  ptx_launch_1d and ptx_launch_2d count the blocks for a number of threads; ptx_launch.entry is the
          entry's index in its module. Each launch is checked against the entry's parameters and limits before
          the driver sees it. Launching allocates nothing, waits for nothing, formats no text, and may be
          captured in a graph.
   TENSORS  A ptxcu_tensor is a value: address, shape, strides, type, and the memory that holds it.
          ptxcu_tensor_create allocates the memory, ptxcu_tensor_wrap borrows it, views share it. After the
          memory is freed, every use of a tensor in it is refused (FREED).
   TEXTURES  A ptxcu_array holds texels in the driver's layout. A texture object (ptxcu_texture_create)
          defines how coordinates read an array or memory; a surface object (ptxcu_surface_create) lets
          kernels write an array. Kernels get the 64-bit objects as parameters of type PTX_U64 and use them
          with ptx_tex, ptx_surface_load and ptx_surface_store (ptxgen.h). Destroy an object before its array
          or memory. [INTERFACE] also has copies of arrays, and imports from Vulkan, Direct3D and OpenGL.
   CALLS  A ptxcu_call is an operation of ptxgen_kernels.h on given tensors. Include that header too, before
          or after this one. A field that is 0 means what that header's manual says under ZERO.

              ptxcu_flash_decode_desc d = PTX_ZERO;                // then its tensors
              ptxcu_call call;
              ptxcu_flash_decode_prepare(cu, &d, &call);           // checks, builds, plans
              ptxcu_workspace_create(cu, &call, stream, &d.workspace);
              ptxcu_flash_decode_prepare(cu, &d, &call);
              ptxcu_call_run(cu, &call, stream);                   // every token; or captured in a graph

          ptxcu_flash_decode(cu, &d, stream) prepares and runs in one call. A ptxcu_call is checked once and
          launched often. ptxcu_call_run queues it on the caller's stream.
          ptxcu_call_finish also waits. ptxcu_call_start runs it on the stream of a ptxcu_result, which keeps
          the tensors' memory until the call has finished. The host can wait for a result or poll it; a stream
          can wait for it.
   DEPENDENT LAUNCH  ptxcu_desc.dependent_launch overlaps the launch of a kernel with the end of the previous
          one (programmatic dependent launch). A kernel may start before the previous kernel in its stream has
          ended, on multiprocessors that have room. It executes griddepcontrol.wait before it uses memory that
          other kernels write. Before that, gemv and gemm may prefetch weights into the L2 cache. Results do
          not change. The flag needs sm_90 and driver 12.3; otherwise it has no effect. It applies to
          operations and to modules with ptx_module_desc.dependent_launch, not to cooperative launches. In a
          graph, such launches are connected by programmatic edges.
   GRAPHS  The work queued on a stream between ptxcu_graph_begin and ptxcu_graph_end becomes one graph, which
          is launched by one call. Arguments are frozen. Values that change between launches must be read from
          device memory, as the operations of ptxgen_kernels.h do with lengths and positions.
   CACHE  ptxcu_operation builds and loads a kernel at the first call. Later calls find it by the operation
          and the bytes of its description, padding included: start each description from PTX_ZERO.
   DISK  With ptxcu_desc.cache_folder, machine code is kept between runs in at most cache_files files of at
          most 4 MiB. A hash of PTX text, chip and driver version selects a set of four files; new code
          replaces the oldest file of its set. A file holds chip, driver version, the whole text, the machine
          code and a checksum. It is written under a temporary name and then renamed, so a reader sees the old
          or the new file. Code that cannot be read, written or trusted is built again, without an error. The
          caller makes the folder: while it does not exist, nothing is kept, and ptxcu_open notes this in the
          log. Two faults are errors of ptxcu_open: a path of more than 511 characters (ARGUMENT), and a
          folder that exists and cannot be trusted (FOLDER). Several processes may share a folder. The first
          write of a handle removes temporary files older than an hour, which killed processes leave.
   TRUST  Machine code from the folder runs with the rights of the program and cannot be checked. Only the
          effective user of the program and root are trusted.
          - The folder must belong to that user or root, and nobody else may write to it unless it is sticky
            (/tmp). ptxcu_open and each use check this.
          - A file is used if it is a regular file of that user, without a second hard link, that nobody else
            may write to. It is opened without following a link and without blocking. The lengths in it must
            add up to its size, and its text must equal the requested one, byte by byte.
          - A file is created under a random new name, with access for its user alone.
          The caller chooses the directories above the folder. A user who may rename one of these directories
          can replace the folder, so choose a folder in the user's home, one for each user. On Windows the
          folder's access list says who may write, and is not checked; a reparse point (link) is not followed.
          Two other inputs are code, and must be trusted like the program: the driver library, which
          PTXGEN_CUDA_LIBRARY and the library search path select; and PTX, which can read and write all memory
          of the context.

   DOES NOT  track buffers, arrays, textures, surfaces, streams, events and results (destroy them before
          ptxcu_close); synchronise streams with each other; build graphs node by node; use several devices
          through one handle (open one handle for each).
*/
#ifndef PTXGEN_CUDA_H
#define PTXGEN_CUDA_H

#include "ptxgen.h"

#if PTX_VERSION_NUMBER != 200
#error "ptxgen_cuda.h and ptxgen.h must have the same version: copy both again"
#endif

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
    X(LIBRARY, "library", "no driver library could be loaded; the message lists the attempts")               \
    X(SYMBOL, "symbol", "the library is not a driver, or too old: it lacks the symbols named")               \
    X(NO_DEVICE, "no-device", "the driver has no device")                                                    \
    X(DEVICE, "device", "there is no device of that ordinal")                                                \
    X(DRIVER, "driver", "a driver call failed; the message names call and reason")                           \
    X(JIT, "jit", "the driver refused the PTX; see the log")                                                 \
    X(ENTRY, "entry", "the program has no such entry")                                                       \
    X(ARGS, "args", "number, type or size of the arguments does not match the entry's parameters")           \
    X(LAUNCH, "launch", "a grid, block or shared size exceeds a limit of the entry or device")               \
    X(EMIT, "emit", "the builder's module has an error; the message is the builder's")                       \
    X(WRONG_HANDLE, "wrong-handle", "a program, tensor or stream of another ptxcu handle or context")        \
    X(SHAPE, "shape", "a tensor's type, shape, strides or address does not suit the operation")              \
    X(OVERFLOW, "overflow", "a size or an offset exceeds 64 bits, or a limit of 32 bits")                    \
    X(FREED, "freed", "a tensor that was freed, a program that was unloaded, or a call prepared with one")   \
    X(WORKSPACE, "workspace", "a call needs a larger workspace")                                             \
    X(BUSY, "busy", "the result's last call has not finished")                                               \
    X(CONTEXT, "context", "no context is current, or the given context cannot be used")                      \
    X(VARIABLE, "variable", "the program has no such variable")                                              \
    X(FOLDER, "folder", "the cache folder is no directory, or other users may change it")

#define PTXCU__ENUM(code, name, meaning) PTXCU_E_##code,
typedef enum ptxcu_code { PTXCU_ERRORS(PTXCU__ENUM) PTXCU_E_COUNT } ptxcu_code;
#undef PTXCU__ENUM

/* A thread's last failure with a handle. All pointers stay valid until that thread's next failing call, or
   ptxcu_close. */
typedef struct ptxcu_error {
    ptxcu_code code;
    const char *message;     /* what failed and why; "" without a failure */
    int driver_result;       /* CUresult; 0: not a driver failure */
    const char *driver_name; /* "CUDA_ERROR_OUT_OF_MEMORY", or "" */
    const char *call;        /* "cuMemAlloc_v2(123 bytes)", or "" */
    const char *log;         /* after JIT the log of the driver's compiler, else "" */
} ptxcu_error;

/* ---- [TYPES] ---------------------------------------------------------------------------------------- */

typedef struct ptxcu ptxcu;                 /* the handle: a driver, a device, a context, a kernel cache */
typedef struct ptxcu_program ptxcu_program; /* a loaded module */
typedef void *ptxcu_stream;                 /* CUstream; NULL is the default stream */
typedef void *ptxcu_event;                  /* CUevent */
typedef void *ptxcu_graph;                  /* CUgraphExec */

/* PTXCU_LOG_ERROR: the message of a failed call; later texts may add details to it. PTXCU_LOG_NOTE: the
   driver and device that were opened, and why libraries tried before them failed; a cache folder that does
   not exist; a program that was compiled, or read from the folder. */
enum { PTXCU_LOG_ERROR, PTXCU_LOG_NOTE };
typedef void (*ptxcu_log_fn)(void *user, int kind, const char *text);

/* In each field 0 selects the default. */
typedef struct ptxcu_desc {
    const char *library;       /* path or name; NULL: see LIBRARY */
    const char *fallback;      /* loaded if `library` fails or has no device; NULL: see LIBRARY */
    int device;                /* ordinal; ignored if another context than the primary one is selected */
    int use_current_context;   /* 1: use the thread's current context and its device; none: error CONTEXT */
    void *context;             /* CUcontext to use, with its device; NULL: see CONTEXT */
    const char *cache_folder;  /* folder for machine code, see DISK and TRUST; NULL: none */
    uint32_t cache_files;      /* maximum number of files in it, of at most 4 MiB each; 0: 256 */
    uint32_t dependent_launch; /* 1: see DEPENDENT LAUNCH */
    ptx_alloc_fn alloc;        /* NULL: realloc and free; see THREADS */
    void *alloc_user;
    ptxcu_log_fn log; /* called on the thread of the call; must not use the handle. NULL: none */
    void *log_user;
} ptxcu_desc;

/* The device that ptxcu_open opened. */
typedef struct ptxcu_device {
    char name[128];
    const char *library; /* name or path that was loaded */
    int ordinal;
    int is_cpu_driver;    /* 1: the driver is the CPU driver of tests/sim */
    int driver_version;   /* 12040 is CUDA 12.4 */
    ptx_target target;    /* for ptx_module_desc, such as PTX_SM(80); from sm_90 on with the chip's own
                             features, such as PTX_SM_A(90), if the driver supports them */
    uint32_t max_version; /* newest PTX version of the driver, for ptx_module_desc; 84 is 8.4 */
    uint32_t sm_count;
    uint32_t max_threads_per_block;
    uint32_t max_grid[3], max_block[3];
    uint32_t shared_static; /* bytes of shared memory per block without opt-in: 48 KiB */
    uint32_t shared_optin;  /* bytes per block with opt-in, static plus dynamic; ptxcu_launch opts in */
    uint64_t l2_bytes, memory_bytes;
    uint32_t memory_clock_khz; /* 0: unknown */
    uint32_t memory_bus_bits;
    uint32_t max_cluster;      /* maximum number of blocks in a cluster: 8; 0: no clusters */
    uint32_t dependent_launch; /* 1: requested in ptxcu_desc, and supported by device and driver */
} ptxcu_device;

/* A range of device memory, by value. All zero: none. A sub-range is { address + offset, bytes }. */
typedef struct ptxcu_buffer {
    uint64_t address;
    size_t bytes;
} ptxcu_buffer;

/* One launch argument, made by a ptxcu_arg_ function. */
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

/* Maximum number of dimensions of a tensor. */
#define PTXCU_RANK_MAX 5

/* A tensor in device memory, by value. All zero: none. Copies refer to the same memory. Dense tensors are
   row-major: the last dimension is contiguous. The stride of a dimension of size 1 is ignored. Read the
   fields; only the ptxcu_tensor_ functions may write them. */
typedef struct ptxcu_tensor {
    uint64_t address;                /* address of the first element */
    uint64_t shape[PTXCU_RANK_MAX];  /* size of each dimension, [0] is the outermost; 0 from rank on */
    uint64_t stride[PTXCU_RANK_MAX]; /* distance between neighbours of a dimension, in elements */
    uint32_t rank;
    uint32_t type; /* a ptx_type of at least 1 byte */
    /* private */
    ptxcu *owner;
    uint64_t serial; /* of the allocation; no other has the same, even after this one is freed */
    uint32_t allocation;
    uint32_t view; /* 1: a view, which cannot be freed */
} ptxcu_tensor;

/* Maximum number of tensors in a call; maximum bytes of an argument struct. */
#define PTXCU_CALL_TENSORS 18
#define PTXCU_CALL_ARGS 320

/* A checked and planned operation on given tensors. A value with nothing to free; may be launched any number
   of times. Made by ptxcu_<operation>_prepare or ptxcu_call_prepare. */
typedef struct ptxcu_call {
    ptx_plan plan; /* public: launches, workspace_bytes, min_bytes */
    /* private */
    ptxcu *owner;
    const char *name;
    ptxcu_program *program;
    uint64_t clears;    /* value of ptxcu.clears when the call was prepared */
    uint64_t workspace; /* bytes */
    uint64_t workspace_address;
    uint32_t tensors, workspace_allocation;
    struct {
        uint64_t serial;
        uint32_t allocation;
        const char *name;
    } tensor[PTXCU_CALL_TENSORS];
    uint64_t args[PTXCU_CALL_ARGS / 8];
    uint64_t maps[PTX_PLAN_MAPS * 16]; /* tensor maps of the plan */
} ptxcu_call;

typedef struct ptxcu_result ptxcu_result; /* a running call, see ptxcu_call_start */

/* Maximum number of arguments of a launch. */
#define PTXCU_ARGS_MAX 256

/* ---- [TABLE] -------------------------------------------------------------------------------------------

   X(function, parameters): the driver functions in use, under their ABI names. Each returns CUresult, an int.
   The pointers, the loader and the list of missing symbols are generated from these lines. CUdevice is an
   int, CUdeviceptr has 64 bits, handles are pointers. cuLaunchKernelEx is not listed: it is loaded apart, as
   only clusters and dependent launches need it. */
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
    X(cuCtxGetCurrent, (void **context))                                                                     \
    X(cuCtxPushCurrent_v2, (void *context))                                                                  \
    X(cuCtxPopCurrent_v2, (void **context))                                                                  \
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
    X(cuModuleGetGlobal_v2, (uint64_t * address, size_t * bytes, void *module_, const char *name))           \
    X(cuFuncGetAttribute, (int *value, int attribute, void *function))                                       \
    X(cuFuncSetAttribute, (void *function, int attribute, int value))                                        \
    X(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                                     \
    X(cuMemFree_v2, (uint64_t address))                                                                      \
    X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                         \
    X(cuMemFreeHost, (void *memory))                                                                         \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                                          \
    X(cuPointerGetAttribute, (void *value, int attribute, uint64_t address))                                 \
    X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))                     \
    X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))                           \
    X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))                        \
    X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t n, void *stream))                           \
    X(cuMemsetD32Async, (uint64_t to, unsigned value, size_t n, void *stream))                               \
    X(cuStreamCreate, (void **stream, unsigned flags))                                                       \
    X(cuStreamDestroy_v2, (void *stream))                                                                    \
    X(cuStreamSynchronize, (void *stream))                                                                   \
    X(cuStreamGetCtx, (void *stream, void **context))                                                        \
    X(cuStreamIsCapturing, (void *stream, int *status))                                                      \
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
    X(cuEventQuery, (void *event))                                                                           \
    X(cuEventElapsedTime, (float *milliseconds, void *start, void *stop))                                    \
    X(cuLaunchCooperativeKernel,                                                                             \
      (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,         \
       unsigned shared_bytes, void *stream, void **params))                                                  \
    X(cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                       unsigned bz, unsigned shared_bytes, void *stream, void **params, void **extra))

/* Functions that a library may lack: a call that needs one is then refused (SYMBOL). desc, copy, resource,
   sampling, view and params point to structs with the layout of cuda.h. */
#define PTXCU_DRIVER_OPTIONAL(X)                                                                             \
    X(cuArray3DCreate_v2, (void **array, const void *desc))                                                  \
    X(cuArrayDestroy, (void *array))                                                                         \
    X(cuMipmappedArrayCreate, (void **array, const void *desc, unsigned levels))                             \
    X(cuMipmappedArrayGetLevel, (void **level_array, void *array, unsigned level))                           \
    X(cuMipmappedArrayDestroy, (void *array))                                                                \
    X(cuMemcpy3DAsync_v2, (const void *copy, void *stream))                                                  \
    X(cuTexObjectCreate, (uint64_t * texture, const void *resource, const void *sampling, const void *view)) \
    X(cuTexObjectDestroy, (uint64_t texture))                                                                \
    X(cuSurfObjectCreate, (uint64_t * surface, const void *resource))                                        \
    X(cuSurfObjectDestroy, (uint64_t surface))                                                               \
    X(cuArray3DGetDescriptor_v2, (void *desc, void *array))                                                  \
    X(cuImportExternalMemory, (void **memory, const void *desc))                                             \
    X(cuExternalMemoryGetMappedBuffer, (uint64_t * address, void *memory, const void *desc))                 \
    X(cuExternalMemoryGetMappedMipmappedArray, (void **array, void *memory, const void *desc))               \
    X(cuDestroyExternalMemory, (void *memory))                                                               \
    X(cuImportExternalSemaphore, (void **semaphore, const void *desc))                                       \
    X(cuSignalExternalSemaphoresAsync, (void *const *list, const void *params, unsigned n, void *stream))    \
    X(cuWaitExternalSemaphoresAsync, (void *const *list, const void *params, unsigned n, void *stream))      \
    X(cuDestroyExternalSemaphore, (void *semaphore))                                                         \
    X(cuGraphicsGLRegisterBuffer, (void **resource, unsigned buffer, unsigned flags))                        \
    X(cuGraphicsGLRegisterImage, (void **resource, unsigned image, unsigned target, unsigned flags))         \
    X(cuGraphicsMapResources, (unsigned n, void **resources, void *stream))                                  \
    X(cuGraphicsUnmapResources, (unsigned n, void **resources, void *stream))                                \
    X(cuGraphicsResourceGetMappedPointer_v2, (uint64_t * address, size_t * bytes, void *resource))           \
    X(cuGraphicsSubResourceGetMappedArray, (void **array, void *resource, unsigned index, unsigned level))   \
    X(cuGraphicsUnregisterResource, (void *resource))                                                        \
    X(cuTensorMapEncodeTiled, (void *map, int type, uint32_t rank, void *address, const uint64_t *size,      \
                               const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,  \
                               int interleave, int swizzle, int l2_promotion, int fill))

/* ---- [INTERFACE] ---------------------------------------------------------------------------------------

   A function returns PTXCU_E_NONE (0) or a code, which ptxcu_get_error explains; each may return DRIVER,
   ARGUMENT and MEMORY. A new object or a value returned through a pointer is zero on error (not the handle of
   ptxcu_open). A NULL handle gives MEMORY. Functions are thread-safe but for what the manual lists under
   THREADS. */

/* -- handle -- */

/* Load a driver and open a device. *cu: the handle, to be closed even after an error; NULL only for lack of
   memory. desc: NULL selects all defaults. Errors: LIBRARY, SYMBOL, NO_DEVICE, DEVICE, CONTEXT, FOLDER. */
PTXGEN_API ptxcu_code ptxcu_open(ptxcu **cu, const ptxcu_desc *desc);
/* Unload all programs, free all tensors, release the context. Does not wait for running work: call ptxcu_sync
   first. cu: may be NULL. */
PTXGEN_API void ptxcu_close(ptxcu *cu);
/* The calling thread's last failure. Never NULL; MEMORY for a NULL handle. */
PTXGEN_API const ptxcu_error *ptxcu_get_error(const ptxcu *cu);
/* The name in the catalogue, such as "launch"; "?" for an unknown code. */
PTXGEN_API const char *ptxcu_error_name(ptxcu_code code);
/* The opened device. Never NULL; all zero without a device. Valid until ptxcu_close. */
PTXGEN_API const ptxcu_device *ptxcu_device_info(const ptxcu *cu);
/* A symbol of the driver library, or NULL. Copy it into a function pointer with memcpy. */
PTXGEN_API void *ptxcu_symbol(const ptxcu *cu, const char *name);
/* The handle's CUcontext, or NULL. */
PTXGEN_API void *ptxcu_get_context(const ptxcu *cu);
/* Wait for all work in the context. */
PTXGEN_API ptxcu_code ptxcu_sync(ptxcu *cu);

/* -- memory: sizes and offsets in bytes. A range outside its buffer is refused (ARGUMENT) -- */

/* Allocate device memory, aligned to 256 bytes, contents undefined. 0 bytes give a zero buffer. */
PTXGEN_API ptxcu_code ptxcu_alloc(ptxcu *cu, size_t bytes, ptxcu_buffer *buffer);
/* Free a whole buffer of ptxcu_alloc. Waits for the context. A zero buffer is ignored. */
PTXGEN_API ptxcu_code ptxcu_free(ptxcu *cu, ptxcu_buffer buffer);
/* Allocate pinned host memory: copies from and to it are asynchronous. */
PTXGEN_API ptxcu_code ptxcu_host_alloc(ptxcu *cu, size_t bytes, void **memory);
PTXGEN_API ptxcu_code ptxcu_host_free(ptxcu *cu, void *memory); /* NULL is ignored */
/* count * element_bytes; on overflow SIZE_MAX, which no allocation can have. */
PTXGEN_API size_t ptxcu_bytes(size_t count, size_t element_bytes);
/* Queue a copy of `bytes` bytes on the stream: host to device, device to host. */
PTXGEN_API ptxcu_code ptxcu_upload(ptxcu *cu, ptxcu_buffer to, size_t to_offset, const void *from,
                                   size_t bytes, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_download(ptxcu *cu, void *to, ptxcu_buffer from, size_t from_offset, size_t bytes,
                                     ptxcu_stream stream);
/* The same, device to device. The two ranges must not overlap. */
PTXGEN_API ptxcu_code ptxcu_copy(ptxcu *cu, ptxcu_buffer to, size_t to_offset, ptxcu_buffer from,
                                 size_t from_offset, size_t bytes, ptxcu_stream stream);
/* Queue a fill on the stream. fill32: `count` words of 4 bytes; their address must be a multiple of 4. */
PTXGEN_API ptxcu_code ptxcu_fill8(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint8_t value, size_t bytes,
                                  ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_fill32(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint32_t value, size_t count,
                                   ptxcu_stream stream);
/* Free and total device memory. Either pointer may be NULL. */
PTXGEN_API ptxcu_code ptxcu_memory_info(ptxcu *cu, size_t *free_bytes, size_t *total_bytes);

/* -- arrays: texels in the driver's own layout, for textures and surfaces -- */

/* Flags: cube maps, of six square faces (+x, -x, +y, -y, +z, -z); for surfaces; for gathers (tld4). */
enum { PTXCU_ARRAY_CUBE = 1, PTXCU_ARRAY_SURFACE = 2, PTXCU_ARRAY_GATHER = 4 };

/* In each field 0 selects the default. Sizes are in texels. */
typedef struct ptxcu_array_desc {
    uint32_t type;     /* of a channel: PTX_U8, U16, U32, S8, S16, S32, F16 or F32 */
    uint32_t channels; /* 1, 2 or 4; 0: 1 */
    uint32_t width;    /* at least 1 */
    uint32_t height;   /* 0: one dimension */
    uint32_t depth;    /* 0: one or two dimensions */
    uint32_t layers;   /* number of layers, with PTXCU_ARRAY_CUBE of cube maps; 0: not layered */
    uint32_t levels;   /* mipmap levels, each half the size of the previous one; 0: not mipmapped */
    uint32_t flags;    /* PTXCU_ARRAY_CUBE (height = width), _SURFACE: for ptxcu_surface_create, _GATHER */
} ptxcu_array_desc;

/* An array, by value. All zero: none. */
typedef struct ptxcu_array {
    void *handle; /* CUarray; with levels, CUmipmappedArray */
    ptxcu_array_desc desc;
} ptxcu_array;

/* A box of texels of one level. NULL or all zero: all of level 0. z: slice, layer, or 6 * cube map + face. A
   size of 0: to the end of the array. */
typedef struct ptxcu_region {
    uint32_t x, y, z, width, height, depth, level;
} ptxcu_region;

/* Allocate an array, contents undefined. */
PTXGEN_API ptxcu_code ptxcu_array_create(ptxcu *cu, const ptxcu_array_desc *desc, ptxcu_array *array);
/* Free an array. Waits for the context. *array becomes zero. Destroy its textures and surfaces first. A zero
   array is ignored. */
PTXGEN_API ptxcu_code ptxcu_array_free(ptxcu *cu, ptxcu_array *array);
/* Queue a copy between a region of an array and host memory, where rows are `pitch` bytes apart (0: without
   gaps), and slices or layers pitch * region height. Host memory must stay valid as for ptxcu_upload. */
PTXGEN_API ptxcu_code ptxcu_array_upload(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *region,
                                         const void *from, size_t pitch, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_array_download(ptxcu *cu, void *to, size_t pitch, const ptxcu_array *from,
                                           const ptxcu_region *region, ptxcu_stream stream);
/* The same with device memory, from `offset` on. */
PTXGEN_API ptxcu_code ptxcu_array_load(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *region,
                                       ptxcu_buffer from, size_t offset, size_t pitch, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_array_store(ptxcu *cu, ptxcu_buffer to, size_t offset, size_t pitch,
                                        const ptxcu_array *from, const ptxcu_region *region,
                                        ptxcu_stream stream);
/* Queue a copy of from_region to position (x, y, z, level) of to_region, whose size is ignored. Texels of
   both arrays must have the same number of bytes. */
PTXGEN_API ptxcu_code ptxcu_array_copy(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *to_region,
                                       const ptxcu_array *from, const ptxcu_region *from_region,
                                       ptxcu_stream stream);

/* -- textures and surfaces: 64-bit handles, for parameters of type PTX_U64 (ptxcu_arg_u64) -- */

typedef uint64_t ptxcu_texture; /* CUtexObject; 0: none */
typedef uint64_t ptxcu_surface; /* CUsurfObject; 0: none */

/* What a coordinate outside the texture reads: the nearest texel; the texture repeated; the texture repeated,
   every other copy mirrored; or the border colour. */
enum { PTXCU_ADDRESS_CLAMP, PTXCU_ADDRESS_WRAP, PTXCU_ADDRESS_MIRROR, PTXCU_ADDRESS_BORDER };
enum { PTXCU_FILTER_POINT, PTXCU_FILTER_LINEAR };

/* In each field 0 selects the default. Coordinates are in texels (the first texel has its centre at 0.5), or
   from 0 to 1 (normalized). The weights of linear filtering have 8 fractional bits. */
typedef struct ptxcu_texture_desc {
    ptxcu_array array;   /* the texels; zero: they lie in `memory` */
    ptxcu_buffer memory; /* texels in device memory, aligned to 512 bytes, owned by the caller */
    uint32_t type;       /* of a channel, as in ptxcu_array_desc; array: 0 (its own) or of the same size */
    uint32_t channels;   /* of a texel: 1, 2 or 4; 0: the array's, memory: 1 */
    uint32_t width;      /* of memory, in texels */
    uint32_t height;     /* of memory; 0: one dimension, read by integer coordinates only, never filtered */
    size_t pitch;        /* of memory: bytes from row to row, a multiple of 32; 0: no gaps */
    uint32_t address[3]; /* PTXCU_ADDRESS_ by dimension; WRAP and MIRROR need `normalized` */
    uint32_t filter;     /* PTXCU_FILTER_; LINEAR needs f16, f32 or read_normalized */
    uint32_t mip_filter; /* PTXCU_FILTER_ between levels */
    uint32_t read_normalized; /* 1: integers of 8 and 16 bits are read as floats from 0 (s8, s16: -1) to 1 */
    uint32_t normalized;      /* 1: coordinates from 0 to 1; needed by a mipmapped array */
    uint32_t srgb;            /* 1: u8 with read_normalized is converted from sRGB to linear, except alpha */
    uint32_t seamless;        /* 1: filters across the edges of a cube map */
    uint32_t anisotropy;      /* maximum ratio, 1 to 16; 0: 1 */
    float border[4];          /* border colour */
    float level_bias, min_level, max_level; /* max_level 0: all levels */
    uint32_t first_level, level_count;      /* levels of the array to use; level_count 0: all further ones */
    uint32_t first_layer, layer_count; /* layers, or faces of cube maps; layer_count 0: all further ones */
} ptxcu_texture_desc;

/* Make a texture object. It does not keep the array or memory alive. */
PTXGEN_API ptxcu_code ptxcu_texture_create(ptxcu *cu, const ptxcu_texture_desc *desc, ptxcu_texture *texture);
PTXGEN_API ptxcu_code ptxcu_texture_destroy(ptxcu *cu, ptxcu_texture texture); /* waits; 0 is ignored */
/* Make a surface object of one level of an array made with PTXCU_ARRAY_SURFACE. Kernels may write it. Reading
   texels through a texture or surface in the launch that wrote them gives undefined values. */
PTXGEN_API ptxcu_code ptxcu_surface_create(ptxcu *cu, const ptxcu_array *array, uint32_t level,
                                           ptxcu_surface *surface);
PTXGEN_API ptxcu_code ptxcu_surface_destroy(ptxcu *cu, ptxcu_surface surface); /* waits; 0 is ignored */

/* -- memory and semaphores of Vulkan and Direct3D, buffers and images of OpenGL. Errors: SYMBOL -- */

/* Handle types for imports of memory and semaphores. FD: an opaque file descriptor of Linux; it belongs to
   the driver after a successful import. WIN32, D3D11, D3D12: a Windows NT handle or name; KMT: global. */
enum {
    PTXCU_MEMORY_FD = 1,
    PTXCU_MEMORY_WIN32,
    PTXCU_MEMORY_WIN32_KMT,
    PTXCU_MEMORY_D3D12_HEAP,
    PTXCU_MEMORY_D3D12_RESOURCE,
    PTXCU_MEMORY_D3D11_RESOURCE,
    PTXCU_MEMORY_D3D11_RESOURCE_KMT,
    PTXCU_MEMORY_DMABUF_FD = 9
};
enum {
    PTXCU_SEMAPHORE_FD = 1,
    PTXCU_SEMAPHORE_WIN32,
    PTXCU_SEMAPHORE_WIN32_KMT,
    PTXCU_SEMAPHORE_D3D12_FENCE,
    PTXCU_SEMAPHORE_D3D11_FENCE,
    PTXCU_SEMAPHORE_KEYED_MUTEX = 7,
    PTXCU_SEMAPHORE_KEYED_MUTEX_KMT,
    PTXCU_SEMAPHORE_TIMELINE_FD,
    PTXCU_SEMAPHORE_TIMELINE_WIN32
};

typedef void *ptxcu_external_memory;    /* CUexternalMemory */
typedef void *ptxcu_external_semaphore; /* CUexternalSemaphore */
typedef void *ptxcu_graphics;           /* CUgraphicsResource */

typedef struct ptxcu_external_desc {
    uint32_t type;      /* PTXCU_MEMORY_ or PTXCU_SEMAPHORE_ */
    int fd;             /* for types with FD */
    void *handle;       /* for the other types; NULL: use the name */
    const void *name;   /* wide characters, NUL-terminated */
    uint64_t bytes;     /* of the memory, as the other interface allocated it */
    uint32_t dedicated; /* 1: the memory holds one resource only (dedicated allocation; Direct3D resource) */
} ptxcu_external_desc;

PTXGEN_API ptxcu_code ptxcu_external_memory_import(ptxcu *cu, const ptxcu_external_desc *desc,
                                                   ptxcu_external_memory *memory);
/* Map a range as a buffer; free it with ptxcu_free. */
PTXGEN_API ptxcu_code ptxcu_external_memory_buffer(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                                   size_t bytes, ptxcu_buffer *buffer);
/* Map an image that begins at an offset, as an array of desc->levels levels (0: 1); free it with
   ptxcu_array_free. desc must describe the image as the other interface made it. */
PTXGEN_API ptxcu_code ptxcu_external_memory_array(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                                  const ptxcu_array_desc *desc, ptxcu_array *array);
/* Release imported memory. Free the buffers and arrays mapped from it first. NULL is ignored. */
PTXGEN_API ptxcu_code ptxcu_external_memory_release(ptxcu *cu, ptxcu_external_memory memory);

PTXGEN_API ptxcu_code ptxcu_external_semaphore_import(ptxcu *cu, const ptxcu_external_desc *desc,
                                                      ptxcu_external_semaphore *semaphore);
/* Queue a signal or a wait on the stream. A signal sets a fence or timeline to `value`; a wait ends when it
   has at least that value. For a keyed mutex, value is the key; for binary semaphores it is ignored. */
PTXGEN_API ptxcu_code ptxcu_external_semaphore_signal(ptxcu *cu, ptxcu_external_semaphore semaphore,
                                                      uint64_t value, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_external_semaphore_wait(ptxcu *cu, ptxcu_external_semaphore semaphore,
                                                    uint64_t value, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_external_semaphore_release(ptxcu *cu, ptxcu_external_semaphore semaphore);

/* How kernels access an OpenGL object; 0: they read and write it. */
enum { PTXCU_GL_READ = 1, PTXCU_GL_WRITE_DISCARD = 2, PTXCU_GL_SURFACE = 4, PTXCU_GL_GATHER = 8 };

/* Register an OpenGL buffer, or an image (target: GL_TEXTURE_2D, GL_RENDERBUFFER ...). The OpenGL context
   must be current on this thread. */
PTXGEN_API ptxcu_code ptxcu_gl_register_buffer(ptxcu *cu, uint32_t buffer, uint32_t access,
                                               ptxcu_graphics *resource);
PTXGEN_API ptxcu_code ptxcu_gl_register_image(ptxcu *cu, uint32_t image, uint32_t target, uint32_t access,
                                              ptxcu_graphics *resource);
/* Map n resources for work queued on the stream afterwards; unmap them for use by OpenGL. */
PTXGEN_API ptxcu_code ptxcu_graphics_map(ptxcu *cu, uint32_t n, ptxcu_graphics *resources,
                                         ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_graphics_unmap(ptxcu *cu, uint32_t n, ptxcu_graphics *resources,
                                           ptxcu_stream stream);
/* Memory or array of a mapped resource, valid until unmapped, owned by the driver. index: layer or face. */
PTXGEN_API ptxcu_code ptxcu_graphics_buffer(ptxcu *cu, ptxcu_graphics resource, ptxcu_buffer *buffer);
PTXGEN_API ptxcu_code ptxcu_graphics_array(ptxcu *cu, ptxcu_graphics resource, uint32_t index, uint32_t level,
                                           ptxcu_array *array);
PTXGEN_API ptxcu_code ptxcu_graphics_unregister(ptxcu *cu, ptxcu_graphics resource); /* NULL is ignored */

/* -- tensors: shapes and strides in elements. Errors: SHAPE, OVERFLOW, FREED, WRONG_HANDLE -- */

/* Allocate a dense tensor, aligned to 256 bytes, contents undefined. rank: 1 to PTXCU_RANK_MAX. shape: `rank`
   sizes; a size may be 0. */
PTXGEN_API ptxcu_code ptxcu_tensor_create(ptxcu *cu, ptx_type type, uint32_t rank, const uint64_t *shape,
                                          ptxcu_tensor *tensor);
/* Make a tensor in memory that the caller owns, in this context. All elements must lie inside `memory`, whose
   address must be aligned to the type. stride: `rank` strides, NULL: dense; no two elements may overlap. */
PTXGEN_API ptxcu_code ptxcu_tensor_wrap(ptxcu *cu, ptxcu_buffer memory, ptx_type type, uint32_t rank,
                                        const uint64_t *shape, const uint64_t *stride, ptxcu_tensor *tensor);
/* Free the memory of a created tensor, or release a wrapped tensor. *tensor becomes zero; all its copies and
   views are refused from now on (FREED). A zero tensor is ignored, a view is refused. Waits for the context.
   Memory that the running call of a ptxcu_result uses is freed when the result is known to have finished.
   ptxcu_close frees the remaining tensors. */
PTXGEN_API ptxcu_code ptxcu_tensor_free(ptxcu *cu, ptxcu_tensor *tensor);
/* Views share the memory of `tensor`. `view` may point to `tensor` if that is a view. narrow: `count` indices
   of one dimension, starting at `first`. */
PTXGEN_API ptxcu_code ptxcu_tensor_narrow(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t dim, uint64_t first,
                                          uint64_t count, ptxcu_tensor *view);
/* View one index of a dimension. The dimension is removed; in rank 1 its size becomes 1. */
PTXGEN_API ptxcu_code ptxcu_tensor_select(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t dim, uint64_t index,
                                          ptxcu_tensor *view);
/* View with dimensions a and b exchanged. */
PTXGEN_API ptxcu_code ptxcu_tensor_transpose(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t a, uint32_t b,
                                             ptxcu_tensor *view);
/* View of a dense tensor in another shape of the same number of elements. */
PTXGEN_API ptxcu_code ptxcu_tensor_reshape(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t rank,
                                           const uint64_t *shape, ptxcu_tensor *view);
/* Bytes of all elements without gaps; SIZE_MAX on overflow. Reads the struct only. */
PTXGEN_API size_t ptxcu_tensor_bytes(const ptxcu_tensor *tensor);
/* Queue copies between dense host memory and a tensor, one for each contiguous part. Host memory must stay
   valid as for ptxcu_upload. bytes: exactly ptxcu_tensor_bytes. */
PTXGEN_API ptxcu_code ptxcu_tensor_upload(ptxcu *cu, const ptxcu_tensor *to, const void *from, size_t bytes,
                                          ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_tensor_download(ptxcu *cu, void *to, const ptxcu_tensor *from, size_t bytes,
                                            ptxcu_stream stream);
/* The same, then wait for the stream. Pass the stream that last wrote the tensor, to order the copy. */
PTXGEN_API ptxcu_code ptxcu_tensor_write(ptxcu *cu, const ptxcu_tensor *to, const void *from, size_t bytes,
                                         ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_tensor_read(ptxcu *cu, void *to, const ptxcu_tensor *from, size_t bytes,
                                        ptxcu_stream stream);

/* -- streams and events -- */

/* Create a stream that does not synchronize with the default stream. */
PTXGEN_API ptxcu_code ptxcu_stream_create(ptxcu *cu, ptxcu_stream *stream);
PTXGEN_API ptxcu_code ptxcu_stream_destroy(ptxcu *cu, ptxcu_stream stream); /* NULL is ignored */
PTXGEN_API ptxcu_code ptxcu_stream_sync(ptxcu *cu, ptxcu_stream stream);
/* Later work in `stream` waits for the event's last record. */
PTXGEN_API ptxcu_code ptxcu_stream_wait_event(ptxcu *cu, ptxcu_stream stream, ptxcu_event event);
/* Begin a capture: until ptxcu_graph_end, work queued on this stream (not NULL), and on streams that wait for
   its events, is recorded and not executed. Load programs and allocate memory before. */
PTXGEN_API ptxcu_code ptxcu_graph_begin(ptxcu *cu, ptxcu_stream stream);
/* End the capture, also on errors, and make a graph that can be launched. */
PTXGEN_API ptxcu_code ptxcu_graph_end(ptxcu *cu, ptxcu_stream stream, ptxcu_graph *graph);
PTXGEN_API ptxcu_code ptxcu_graph_launch(ptxcu *cu, ptxcu_graph graph, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_graph_destroy(ptxcu *cu, ptxcu_graph graph); /* NULL is ignored */
PTXGEN_API ptxcu_code ptxcu_event_create(ptxcu *cu, ptxcu_event *event);
PTXGEN_API ptxcu_code ptxcu_event_destroy(ptxcu *cu, ptxcu_event event); /* NULL is ignored */
PTXGEN_API ptxcu_code ptxcu_event_record(ptxcu *cu, ptxcu_event event, ptxcu_stream stream);
PTXGEN_API ptxcu_code ptxcu_event_sync(ptxcu *cu, ptxcu_event event);
/* Milliseconds between the last records of two events, which must both have completed. */
PTXGEN_API ptxcu_code ptxcu_event_elapsed_ms(ptxcu *cu, ptxcu_event start, ptxcu_event stop, float *ms);

/* -- programs -- */

/* Make a builder's module for the opened device: with its target, the newest PTX that its driver takes, the
   handle's dependent_launch and allocator. Free it with ptx_module_free, before ptxcu_close. */
PTXGEN_API ptxcu_code ptxcu_module_new(ptxcu *cu, ptx_module **m);
/* Load a builder's module. Signatures are copied, so the module may be freed. Entries keep their indices. The
   program lives until ptxcu_unload or ptxcu_close. Errors: EMIT, JIT. */
PTXGEN_API ptxcu_code ptxcu_load(ptxcu *cu, ptx_module *m, ptxcu_program **program);
/* Load PTX text (ASCII, NUL-terminated). Its signatures are unknown: arguments are not checked, and the
   driver reads as many as the entry has. Find entries with ptxcu_entry_by_name. Errors: JIT. */
PTXGEN_API ptxcu_code ptxcu_load_text(ptxcu *cu, const char *ptx, ptxcu_program **program);
/* Unload a program. NULL is ignored. A program of ptxcu_operation belongs to the cache and is refused
   (ARGUMENT). The handle keeps 48 bytes of each until ptxcu_close, to refuse its later use (FREED). */
PTXGEN_API ptxcu_code ptxcu_unload(ptxcu *cu, ptxcu_program *program);
/* Find the index of an entry, for ptx_launch.entry. Errors: ENTRY. */
PTXGEN_API ptxcu_code ptxcu_entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name,
                                          uint32_t *entry);
/* Address and size of a variable (ptx_variable_desc.exported, or .visible in PTX text), for copies, fills and
   ptxcu_tensor_wrap. The program owns the memory; ptxcu_free refuses it. Errors: VARIABLE. */
PTXGEN_API ptxcu_code ptxcu_global(ptxcu *cu, ptxcu_program *program, const char *name, ptxcu_buffer *buffer);
/* The program's CUmodule, an entry's CUfunction, for driver functions from ptxcu_symbol. Valid as long as the
   program. Errors: ENTRY. */
PTXGEN_API ptxcu_code ptxcu_get_module(ptxcu *cu, ptxcu_program *program, void **module_);
PTXGEN_API ptxcu_code ptxcu_get_function(ptxcu *cu, ptxcu_program *program, uint32_t entry, void **function);
/* Get the program of an operation. The first call builds it for this device, later calls allocate nothing.
   op: read during the call only; op->emit identifies the operation. desc: op->desc_bytes bytes, padding
   included. Errors: EMIT (also if the operation refuses the description), JIT. */
#define ptxcu_operation(cu, op, desc, program) ptxcu_operation_((cu), PTX__AT, (op), (desc), (program))
PTXGEN_API ptxcu_code ptxcu_operation_(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       ptxcu_program **program);
/* Unload all programs of ptxcu_operation. Calls prepared with them must be prepared again. */
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
/* An argument for a parameter of any type of that size. `bytes` is read during the launch call only. */
PTXGEN_API ptxcu_arg ptxcu_arg_bytes(const void *bytes, size_t size);

/* Launch one entry. geometry: within the limits of entry and device. Dynamic shared memory above 48 KiB needs
   no opt-in by the caller. A cluster has at most ptxcu_device.max_cluster blocks, and the grid is a multiple
   of it. args: one for each parameter, in order. A pointer parameter takes a buffer or an address; a 64-bit
   integer takes these or its own type; b32 and b64 take any type of their width; other types take their own.
   Errors: ENTRY, ARGS, LAUNCH, WRONG_HANDLE. */
PTXGEN_API ptxcu_code ptxcu_launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *geometry,
                                   const ptxcu_arg *args, uint32_t count, ptxcu_stream stream);
/* Launch a plan. Each of its entries takes the argument struct by value, followed by the entry's tensor maps.
   All launches are checked before the first one is queued. A plan may have no launches. args: the operation's
   argument struct of args_bytes bytes, which must be plan->args_bytes. Errors: as ptxcu_launch; SHAPE where
   an address or a stride does not suit a tensor map; SYMBOL. */
PTXGEN_API ptxcu_code ptxcu_run(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                                size_t args_bytes, ptxcu_stream stream);

/* -- calls: operations on tensors. Preparing checks everything; of the tensors, running checks only that none
   was freed. Errors: FREED, WORKSPACE, WRONG_HANDLE, and those of ptxcu_run -- */

/* Prepare a call of any operation: ptxcu_operation builds its program, ptxcu_run launches it with copies of
   plan and args. The operations of ptxgen_kernels.h have ptxcu_<operation>_prepare, which fills in desc, plan
   and args from tensors. op->name: valid as long as the call. tensors: all tensors whose addresses args
   holds, at most PTXCU_CALL_TENSORS; only checked not to be freed. workspace: at least plan->workspace_bytes,
   dense, aligned to 256 bytes, may be one of `tensors`; NULL: none. Errors: FREED, WRONG_HANDLE, SHAPE, and
   those of ptxcu_operation. */
PTXGEN_API ptxcu_code ptxcu_call_prepare(ptxcu *cu, const ptx_operation *op, const void *desc,
                                         const ptx_plan *plan, const void *args, size_t args_bytes,
                                         const ptxcu_tensor *const *tensors, uint32_t count,
                                         const ptxcu_tensor *workspace, ptxcu_call *call);
/* Allocate a call's workspace, aligned to 256 bytes; the zero tensor if the call needs none. Its first
   plan.zero_bytes are zeroed on `stream`: order launches of the call after that. Any other tensor aligned to
   256 bytes may be a workspace: its first run zeroes these bytes, and so does each run after a run of another
   program. A graph that captured the zeroing repeats it at each launch. Calls that may run at the same time
   need separate workspaces; calls on one stream may share one. Different operations in one graph may not, nor
   may a graph and other operations outside it, because a graph does not repeat a zeroing that it has not
   captured. */
PTXGEN_API ptxcu_code ptxcu_workspace_create(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream,
                                             ptxcu_tensor *workspace);
/* Queue the call on the caller's stream. Allocates nothing, waits for nothing, may be captured. */
PTXGEN_API ptxcu_code ptxcu_call_run(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream);
/* The same, then wait for the stream, so that the output can be read. */
PTXGEN_API ptxcu_code ptxcu_call_finish(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream);
/* Queue the call on the result's own stream, after the work now queued on `after`, which must not be
   capturing. `after` does not wait for the call. Allocates nothing, waits for nothing. If a tensor of the
   call is freed, its memory stays until the result is known to have finished. Errors: BUSY while the result's
   last call runs. */
PTXGEN_API ptxcu_code ptxcu_call_start(ptxcu *cu, const ptxcu_call *call, ptxcu_stream after,
                                       ptxcu_result *result);
/* Create a result, without a call. It may start any number of calls, one at a time. */
PTXGEN_API ptxcu_code ptxcu_result_create(ptxcu *cu, ptxcu_result **result);
/* Wait for the result's call, if it has one. */
PTXGEN_API ptxcu_code ptxcu_result_wait(ptxcu *cu, ptxcu_result *result);
/* *done: 1 if the call has finished or there is none, else 0. Does not wait. */
PTXGEN_API ptxcu_code ptxcu_result_poll(ptxcu *cu, ptxcu_result *result, int *done);
/* Later work in `stream` waits for the call. The host does not wait. */
PTXGEN_API ptxcu_code ptxcu_stream_wait_result(ptxcu *cu, ptxcu_stream stream, ptxcu_result *result);
/* Wait for the call and free the result, before ptxcu_close. NULL is ignored. After an error the result still
   exists: call again. */
PTXGEN_API ptxcu_code ptxcu_result_free(ptxcu *cu, ptxcu_result *result);

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_CUDA_H */

#if defined(PTXGEN_KERNELS_H) && !defined(PTXGEN__CUDA_OPERATIONS_H)
#define PTXGEN__CUDA_OPERATIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* -- operations on tensors -- */

/* One part for each operation; ptxgen_kernels.h defines what each computes. ptxcu_<operation>_prepare checks
   every tensor (existence, type, shape, strides, alignment, no overlap with an output), builds the kernel at
   the first call, plans the launches and fills in the call. If the plan needs a workspace: prepare without
   one, call ptxcu_workspace_create, prepare again with it. ptxcu_<operation> prepares and runs; it allocates
   nothing once the kernel is built. Tensors are f32, f16 or bf16, dense and aligned to 16 bytes unless their
   comment says otherwise; u32 tensors and lse are aligned to 4 bytes, f64 to 8, workspaces to 256. A factor
   is a quantisation scale: value = stored number * factor. `unused` must be 0. Errors: SHAPE, OVERFLOW,
   FREED, WRONG_HANDLE, and those of ptxcu_operation. */

/* -- KV caches -- */

/* Cached keys and values of several sequences. k and v have the same shape and strides, and head_dim is
   contiguous. Pass other orders of dimensions as views: transpose [batch, max_seq, kv_heads, head_dim] to
   [batch, kv_heads, max_seq, head_dim]. Each page is dense, [kv_heads, page_size, head_dim] or, with
   dimensions 1 and 2 of the pools transposed, [page_size, kv_heads, head_dim]. A cache of latents (see
   flash_mla) has kv_heads 1; k holds the latents, v the rotated parts, with its own head_dim and strides. */
typedef struct ptxcu_kv_cache {
    /* [batch, kv_heads, max_seq, head_dim]; paged: pools [pages, kv_heads, page_size, head_dim] */
    ptxcu_tensor k, v;
    ptxcu_tensor blocks;    /* paged: the block table, u32 [batch, max_pages]; else zero */
    ptxcu_tensor addresses; /* not paged: u64 [2, batch], addresses of each sequence's k and v; q8_0: [4,
                               batch], also those of their factors */
    uint32_t owns;          /* 1: ptxcu_kv_cache_free frees k and v, and q8_0's factors */
    uint32_t type;          /* PTX_E4M3 or PTXK_Q8_0: k and v are b8 or u8 tensors of such numbers; else 0 */
    /* q8_0: f16, shape of k and v with head_dim / 32 for head_dim; e4m3: f32 [kv_heads], zero: all 1 */
    ptxcu_tensor k_factors, v_factors;
} ptxcu_kv_cache;

/* Allocate a dense cache, contents undefined. type: PTX_F32, PTX_F16, PTX_BF16, PTX_E4M3 (its factors are 1)
   or PTXK_Q8_0. Waits for the default stream. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_create(ptxcu *cu, uint32_t type, uint64_t batch, uint64_t kv_heads,
                                            uint64_t max_seq, uint64_t head_dim, ptxcu_kv_cache *cache);
/* The same for latents of `latent` elements and rotated parts of `rope`, as flash_mla supports them. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_create_latent(ptxcu *cu, uint32_t type, uint64_t batch, uint64_t max_seq,
                                                   uint64_t latent, uint64_t rope, ptxcu_kv_cache *cache);
/* Make a cache from tensors that the caller keeps. blocks: the block table; NULL: not paged, which waits for
   the default stream. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap(ptxcu *cu, const ptxcu_tensor *k, const ptxcu_tensor *v,
                                          const ptxcu_tensor *blocks, ptxcu_kv_cache *cache);
/* The same for 8-bit numbers, type PTX_E4M3 or PTXK_Q8_0. Factors of q8_0 are contiguous in their last
   dimension and have the other strides of k and v / 32; those of e4m3 may be NULL: all 1. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap_bytes(ptxcu *cu, uint32_t type, const ptxcu_tensor *k,
                                                const ptxcu_tensor *v, const ptxcu_tensor *k_factors,
                                                const ptxcu_tensor *v_factors, const ptxcu_tensor *blocks,
                                                ptxcu_kv_cache *cache);
/* Make a cache from sequences in separate allocations. k, v: arrays of `batch` tensors [kv_heads, max_seq,
   head_dim] with the same shape and strides, which the caller keeps. cache->k and cache->v become those of
   the first sequence, with a batch dimension of stride 0. Calls are refused if one of the tensors was freed
   (FREED). Waits for the default stream. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap_each(ptxcu *cu, const ptxcu_tensor *k, const ptxcu_tensor *v,
                                               uint32_t batch, ptxcu_kv_cache *cache);
/* Free what the functions above allocated. NULL and a zero cache are ignored. */
PTXGEN_API ptxcu_code ptxcu_kv_cache_free(ptxcu *cu, ptxcu_kv_cache *cache);

/* -- flash_decode: attention of the newest tokens of each sequence -- */

typedef struct ptxcu_flash_decode_desc {
    /* [batch, heads, head_dim] or [batch, queries, heads, head_dim], 1 to 8 queries */
    ptxcu_tensor q, out;
    ptxcu_tensor k, v;           /* rows to append to the cache, shape of q with kv_heads; zero: none */
    const ptxcu_kv_cache *cache; /* `batch` sequences; read during the call only */
    ptxcu_tensor lengths;        /* u32 [batch], new tokens included; zero: `length` */
    ptxcu_tensor lse;            /* f32 [batch, heads, queries] or [batch, heads]: output; zero: none */
    ptxcu_tensor workspace;      /* see ptxcu_workspace_create; zero: none */
    uint32_t max_len;            /* longest length to plan for; 0: `length`, or max_seq without it */
    uint32_t window;             /* how many of the newest keys a query sees; 0: all */
    float scale;                 /* 0: 1/sqrt(head_dim) */
    float soft_cap;              /* 0: none */
    uint32_t length;             /* length of every sequence; 0: see lengths */
    uint32_t unused;             /* 0 */
    ptxcu_tensor prior;          /* f32, shape of q: result of attention to other keys, merged; zero: none */
    ptxcu_tensor prior_lse;      /* f32 [heads, batch, queries] or [heads, batch]: the lse of prior */
    ptxcu_tensor tree;           /* u32 [batch, queries]: bit j: the query sees new token j; zero: it sees
                                    those up to its own */
    ptxcu_tensor sinks;          /* f32 [heads]: attention sink, a score without a key; zero: none */
} ptxcu_flash_decode_desc;

PTXGEN_API ptxcu_code ptxcu_flash_decode_prepare(ptxcu *cu, const ptxcu_flash_decode_desc *desc,
                                                 ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_flash_decode(ptxcu *cu, const ptxcu_flash_decode_desc *desc, ptxcu_stream stream);

/* -- kv_scatter: write K and V of new tokens into the cache -- */

typedef struct ptxcu_kv_scatter_desc {
    ptxcu_tensor k, v; /* [tokens, kv_heads, head_dim]; one of them may be zero; for latents one must be */
    const ptxcu_kv_cache *cache; /* read during the call only */
    ptxcu_tensor positions;      /* u32 [tokens]; zero: position + token * position_step */
    ptxcu_tensor sequences;      /* u32 [tokens]; zero: token * sequence_step */
    uint32_t position, position_step, sequence_step; /* prepare checks the range; 0 if a tensor is given */
} ptxcu_kv_scatter_desc;

PTXGEN_API ptxcu_code ptxcu_kv_scatter_prepare(ptxcu *cu, const ptxcu_kv_scatter_desc *desc,
                                               ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_kv_scatter(ptxcu *cu, const ptxcu_kv_scatter_desc *desc, ptxcu_stream stream);

/* -- flash_prefill -- */

/* Attention of whole prompts. Only the last dimension must be contiguous: pass [batch, heads, seq, head_dim]
   as a transposed view; q, k and v may be packed in one row. With cumulative lengths the sequences are
   concatenated: q and out are [rows, heads, head_dim], k and v [keys, kv_heads, head_dim]. With a cache the
   keys are the first kv_len rows of each of its sequences; if lengths are cumulative, too, it must be paged,
   and cu_kv only gives the number of keys of each sequence. A cache of ptxcu_kv_cache_wrap_each is refused.
   On sm_90a q, k and v may be of e4m3, head_dim a multiple of 16, at most 128. */
typedef struct ptxcu_flash_prefill_desc {
    ptxcu_tensor q, out;         /* [batch, q_len, heads, head_dim]; out may be q */
    ptxcu_tensor k, v;           /* [batch, kv_len, kv_heads, head_dim], q's type; ignored with a cache */
    ptxcu_tensor cu_q, cu_kv;    /* cumulative lengths, u32 [batch + 1]: first rows, last the end; or zero */
    ptxcu_tensor lse;            /* output, f32 [batch, heads, q_len], cumulative [heads, rows]; zero: none */
    uint32_t q_len, kv_len;      /* cumulative: of the longest sequence, 0: rows, keys. Otherwise q_len is
                                    ignored, and kv_len, too, without a cache */
    uint32_t causal;             /* 1: a query sees the keys up to its position */
    uint32_t window;             /* a query sees keys at a distance below this; 0: at any distance */
    uint32_t precision;          /* PTXK_PREFILL_EXACT or PTXK_PREFILL_FAST */
    float scale;                 /* 0: 1/sqrt(head_dim) */
    float soft_cap;              /* 0: none */
    uint32_t type;               /* PTX_E4M3: q, k and v are b8 or u8 tensors of such numbers; else 0 */
    const ptxcu_kv_cache *cache; /* of q's type or 8-bit; read during the call only; NULL: k and v */
    ptxcu_tensor sinks;          /* f32 [heads]: attention sink, a score without a key; zero: none */
    ptxcu_tensor score_factors;  /* PTX_E4M3: f32 [heads], the factors of q times those of k; zero: all 1 */
    ptxcu_tensor v_factors;      /* PTX_E4M3 without a cache: f32 [kv_heads]; zero: all 1 */
    ptxcu_tensor tree; /* u32 [batch, q_len, ceil(q_len / 32)], cumulative [rows, ceil(q_len / 32)]: see
                          ptxk_flash_prefill_args.tree; zero: none */
} ptxcu_flash_prefill_desc;

PTXGEN_API ptxcu_code ptxcu_flash_prefill_prepare(ptxcu *cu, const ptxcu_flash_prefill_desc *desc,
                                                  ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_flash_prefill(ptxcu *cu, const ptxcu_flash_prefill_desc *desc,
                                          ptxcu_stream stream);

/* -- flash_mla: attention over latents -- */

typedef struct ptxcu_flash_mla_desc {
    /* [batch, heads, latent] or [batch, queries, heads, latent]; q_rope, of q's type, has rope in the place
       of latent. The last dimension is contiguous; all queries of all sequences are equally far apart */
    ptxcu_tensor q, q_rope, out;
    const ptxcu_kv_cache *cache; /* of latents, f16, bf16 or 8-bit; read during the call only */
    ptxcu_tensor lengths;        /* u32 [batch], new tokens included; zero: `length` */
    ptxcu_tensor lse;            /* f32 [batch, queries, heads] or [batch, heads]: output; zero: none */
    ptxcu_tensor workspace;      /* see ptxcu_workspace_create; zero: none */
    uint32_t max_len;            /* longest length to plan for; 0: `length`, or max_seq without it */
    uint32_t length;             /* length of every sequence; 0: see lengths */
    float scale;                 /* 0: 1 */
    uint32_t unused;             /* 0 */
} ptxcu_flash_mla_desc;

PTXGEN_API ptxcu_code ptxcu_flash_mla_prepare(ptxcu *cu, const ptxcu_flash_mla_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_flash_mla(ptxcu *cu, const ptxcu_flash_mla_desc *desc, ptxcu_stream stream);

/* -- gemv: y = W norm(x) + bias + residual -- */

/* Another matrix for the same x: K and V with Q, or the up matrix of SwiGLU. */
typedef struct ptxcu_gemv_matrix {
    ptxcu_tensor weights; /* as in ptxcu_gemv_desc; zero: no matrix */
    ptxcu_tensor bias, y; /* as in ptxcu_gemv_desc; with SwiGLU y is zero */
    uint32_t format;      /* of the weights: PTXK_Q4_K ...; 0 without weights */
    uint32_t unused;      /* 0 */
} ptxcu_gemv_matrix;

typedef struct ptxcu_gemv_desc {
    ptxcu_tensor weights;   /* b8 or u8 [n, ptxk_row_bytes(format, k)]; f32, f16, bf16 also [n, k] */
    ptxcu_tensor x;         /* f32 [columns, k] */
    ptxcu_tensor gamma;     /* f32 [k]; zero: none */
    ptxcu_tensor residual;  /* [columns, n], y's type, may be y; with one y only; zero: none */
    ptxcu_tensor y;         /* f32 or f16 [columns, n] */
    ptxcu_tensor workspace; /* see ptxcu_workspace_create; zero: none */
    uint32_t format;        /* of the weights: PTXK_Q4_K ... */
    uint32_t precision;     /* PTXK_GEMV_EXACT or PTXK_GEMV_FAST */
    uint32_t norm;          /* 1: x is normalised by RMSNorm with eps */
    float eps;              /* finite, at least 0 */
    ptxcu_tensor bias;      /* f32 [n], for all matrices or none; zero: none */
    ptxcu_gemv_matrix more[2];
    uint32_t swiglu; /* 1: weights is the gate matrix, more[0].weights the up matrix */
    uint32_t unused; /* 0 */
} ptxcu_gemv_desc;

PTXGEN_API ptxcu_code ptxcu_gemv_prepare(ptxcu *cu, const ptxcu_gemv_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_gemv(ptxcu *cu, const ptxcu_gemv_desc *desc, ptxcu_stream stream);

/* -- gemm: y = norm(x) W^T + bias + residual, any number of rows of x -- */

/* Another matrix for the same x: K and V with Q, or the up matrix of a gated pair. */
typedef struct ptxcu_gemm_matrix {
    ptxcu_tensor weights; /* as in ptxcu_gemm_desc; zero: no matrix */
    ptxcu_tensor bias, y; /* as in ptxcu_gemm_desc; in a gated pair y is zero */
    uint32_t format;      /* of the weights: PTXK_Q4_K ...; 0 without weights */
    uint32_t unused;      /* 0 */
    ptxcu_tensor factors; /* as in ptxcu_gemm_desc */
} ptxcu_gemm_matrix;

typedef struct ptxcu_gemm_desc {
    ptxcu_tensor weights;   /* b8 or u8 [n, ptxk_row_bytes(format, k)]; f32, f16, bf16 also [n, k]; e4m3,
                               e5m2 or s8 [n, k]. With offsets [groups, n, ...], each group a multiple of 16
                               bytes, and biases [groups, n] */
    ptxcu_tensor x;         /* f32, f16 or bf16 [m, k], rows a multiple of 8 elements apart; with x_rows any
                               number of rows */
    ptxcu_tensor gamma;     /* f32 [k]; zero: none */
    ptxcu_tensor residual;  /* [m, n], y's type, may be y; with one y only; zero: none */
    ptxcu_tensor y;         /* f32, f16 or bf16 [m, n] */
    ptxcu_tensor workspace; /* see ptxcu_workspace_create; zero: none */
    uint32_t format;        /* of the weights: PTXK_Q4_K ...; PTX_E4M3, PTX_E5M2, PTX_S8 */
    uint32_t precision;     /* PTXK_GEMM_EXACT or PTXK_GEMM_FAST */
    uint32_t norm;          /* 1: x is normalised by RMSNorm with eps */
    float eps;              /* finite, at least 0 */
    ptxcu_tensor bias;      /* f32 [n], for all matrices or none; zero: none */
    ptxcu_gemm_matrix more[2];
    uint32_t gated;  /* PTXK_GEMM_SWIGLU, _GEGLU, _CLAMPED: weights is the gate matrix, more[0].weights up;
                        0: none */
    uint32_t unused; /* 0 */
    ptxcu_tensor offsets; /* u32 [groups + 1]: rows of each group, see PTXK_GEMM_GROUPED; zero: no groups */
    ptxcu_tensor x_rows;  /* u32 [m]: the row of x for each row of y; needs offsets; zero: the same row */
    uint32_t factor_kind; /* of e4m3, e5m2 and s8 weights: PTXK_FACTORS_NONE ..., as in matmul */
    ptxcu_tensor factors; /* f32 [1], [n], [n, ceil(k / 128)], [ceil(n / 128), ceil(k / 128)], as factor_kind
                             says; with offsets [groups, ...]; zero: none */
} ptxcu_gemm_desc;

PTXGEN_API ptxcu_code ptxcu_gemm_prepare(ptxcu *cu, const ptxcu_gemm_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_gemm(ptxcu *cu, const ptxcu_gemm_desc *desc, ptxcu_stream stream);

/* -- matmul: d = act(alpha a b + beta c + bias) -- */

/* One of the last two dimensions of a, and of b, must be contiguous: transposed views need no copy. In a
   batch, a or b without the batch dimension, or with stride 0 there, is shared by all products. Tensors are
   aligned to an element; 16 bytes are faster. For groups use ptxk_matmul_args and ptxcu_run. */
typedef struct ptxcu_matmul_desc {
    ptxcu_tensor a, b;      /* [m, k], [k, n] or [batch, m, k], [batch, k, n]: f32, f16, bf16, s8; b8 or u8
                               with a_type, b_type */
    ptxcu_tensor c, d;      /* [m, n] or [batch, m, n]: f32, f16 or bf16, the last dimension contiguous. c may
                               be d or zero: none */
    ptxcu_tensor bias;      /* f32 [n]; zero: none */
    ptxcu_tensor a_factors; /* f32 [1], [m], [m, ceil(k / 128)], [ceil(m / 128), ceil(k / 128)], as a_kind
                               says; for each product its own: [batch, ...]; zero: none */
    ptxcu_tensor b_factors; /* likewise, with n for m */
    ptxcu_tensor workspace; /* see ptxcu_workspace_create; zero: none */
    uint32_t a_type, b_type; /* of elements of b8 and u8 tensors: PTX_E4M3 or PTX_E5M2; else 0 */
    uint32_t a_kind, b_kind; /* PTXK_FACTORS_TENSOR ... with factors, else 0 */
    uint32_t precision;      /* of f32: PTXK_MATMUL_EXACT or PTXK_MATMUL_FAST */
    uint32_t activation;     /* PTXK_MATMUL_LINEAR ... */
    float alpha;             /* 0: 1 */
    float beta;              /* factor of c; 0: it is not read */
} ptxcu_matmul_desc;

PTXGEN_API ptxcu_code ptxcu_matmul_prepare(ptxcu *cu, const ptxcu_matmul_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_matmul(ptxcu *cu, const ptxcu_matmul_desc *desc, ptxcu_stream stream);

/* -- norm: RMSNorm or LayerNorm of each row of x, or of x + residual -- */

typedef struct ptxcu_norm_desc {
    ptxcu_tensor x, y;        /* [rows, n]; y may be x, or with a residual only the residual */
    ptxcu_tensor residual;    /* [rows, n], x's type: added to x first, in place; zero: none */
    ptxcu_tensor gamma, beta; /* [n], of one type; beta needs gamma and PTXK_NORM_LAYER; zero: none */
    uint32_t kind;            /* PTXK_NORM_RMS or PTXK_NORM_LAYER */
    float eps;                /* finite, at least 0 */
} ptxcu_norm_desc;

PTXGEN_API ptxcu_code ptxcu_norm_prepare(ptxcu *cu, const ptxcu_norm_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_norm(ptxcu *cu, const ptxcu_norm_desc *desc, ptxcu_stream stream);

/* -- softmax: softmax of each row of scale * x -- */

typedef struct ptxcu_softmax_desc {
    ptxcu_tensor x, y; /* [rows, n]; y may be x */
    float scale;       /* 0: 1 */
    uint32_t unused;   /* 0 */
} ptxcu_softmax_desc;

PTXGEN_API ptxcu_code ptxcu_softmax_prepare(ptxcu *cu, const ptxcu_softmax_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_softmax(ptxcu *cu, const ptxcu_softmax_desc *desc, ptxcu_stream stream);

/* -- activation: y = activation(x), or activation(x) * up -- */

typedef struct ptxcu_activation_desc {
    ptxcu_tensor x, y; /* [rows, n], any row stride and alignment; y may be x or up */
    ptxcu_tensor up;   /* multiplied in: likewise, x's type; zero: none */
    uint32_t kind;     /* PTXK_SILU, PTXK_GELU, PTXK_GELU_ERF or, with up, PTXK_SWIGLU_CLAMPED */
    uint32_t unused;   /* 0 */
} ptxcu_activation_desc;

PTXGEN_API ptxcu_code ptxcu_activation_prepare(ptxcu *cu, const ptxcu_activation_desc *desc,
                                               ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_activation(ptxcu *cu, const ptxcu_activation_desc *desc, ptxcu_stream stream);

/* -- rope: rotary position embedding, in place -- */

typedef struct ptxcu_rope_desc {
    ptxcu_tensor x;           /* [tokens, heads, head_dim], any token stride; rotated in place */
    ptxcu_tensor positions;   /* u32 [tokens] */
    ptxcu_tensor frequencies; /* f64 [dims / 2], see ptxk_rope_frequencies(); `dims` elements are rotated */
    uint32_t pairs;           /* PTXK_ROPE_INTERLEAVED or PTXK_ROPE_NEOX */
    uint32_t unused;          /* 0 */
} ptxcu_rope_desc;

PTXGEN_API ptxcu_code ptxcu_rope_prepare(ptxcu *cu, const ptxcu_rope_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_rope(ptxcu *cu, const ptxcu_rope_desc *desc, ptxcu_stream stream);

/* -- embed: y[i] = scale * table[ids[i]] -- */

typedef struct ptxcu_embed_desc {
    ptxcu_tensor table; /* b8 or u8 [rows, ptxk_row_bytes(format, n)]; f32, f16, bf16 also [rows, n] */
    ptxcu_tensor ids;   /* u32 [tokens] */
    ptxcu_tensor y;     /* [tokens, n] */
    uint32_t format;    /* of the table: PTXK_Q4_K ... */
    float scale;        /* 0: 1 */
} ptxcu_embed_desc;

PTXGEN_API ptxcu_code ptxcu_embed_prepare(ptxcu *cu, const ptxcu_embed_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_embed(ptxcu *cu, const ptxcu_embed_desc *desc, ptxcu_stream stream);

/* -- quantize: y = x / factor, rounded; each group of elements has its factor -- */

typedef struct ptxcu_quantize_desc {
    ptxcu_tensor x;       /* [rows, n] */
    ptxcu_tensor y;       /* b8 or u8 (or s8, PTX_S8) [rows, n]; formats [rows, ptxk_row_bytes(y_type, n)] */
    ptxcu_tensor factors; /* PTX_E4M3, PTX_S8: f32 [rows], or with group 128 [rows, ceil(n / 128)] */
    uint32_t y_type;      /* PTX_E4M3, PTX_S8, PTXK_Q8_0, PTXK_MXFP4 or PTXK_NVFP4 */
    uint32_t group;       /* PTX_E4M3, PTX_S8: 128, or 0: a row */
} ptxcu_quantize_desc;

PTXGEN_API ptxcu_code ptxcu_quantize_prepare(ptxcu *cu, const ptxcu_quantize_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_quantize(ptxcu *cu, const ptxcu_quantize_desc *desc, ptxcu_stream stream);

/* -- sample: choose one token from each row of logits -- */

typedef struct ptxcu_sample_desc {
    ptxcu_tensor logits;    /* [rows, n] */
    ptxcu_tensor positions; /* u32 [rows]: counters of the random numbers; zero: all 0 */
    ptxcu_tensor tokens;    /* u32 [rows]: output */
    uint64_t seed;
    uint32_t method;   /* PTXK_SAMPLE_DRAW or PTXK_SAMPLE_ARGMAX */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* 0 or 1: all */
    float temperature; /* 0: the largest logit */
} ptxcu_sample_desc;

PTXGEN_API ptxcu_code ptxcu_sample_prepare(ptxcu *cu, const ptxcu_sample_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_sample(ptxcu *cu, const ptxcu_sample_desc *desc, ptxcu_stream stream);

/* -- route: choose experts for each token, and sort the choices by expert -- */

typedef struct ptxcu_route_desc {
    ptxcu_tensor scores;  /* f32 [tokens, experts] */
    ptxcu_tensor bias;    /* f32 [experts]: added for the choice, not in the weights; zero: none */
    ptxcu_tensor choices; /* u32 [tokens, chosen]: output, the chosen experts */
    ptxcu_tensor weights; /* f32 [tokens, chosen]: output */
    ptxcu_tensor offsets; /* u32 [experts + 1]: output, gemm's offsets */
    ptxcu_tensor rows;    /* u32 [tokens * chosen]: output, gemm's x_rows */
    ptxcu_tensor places;  /* u32 [tokens, chosen]: output, the row of each choice */
    uint32_t kind;        /* PTXK_ROUTE_SOFTMAX, _SOFTMAX_CHOSEN or _SIGMOID */
    uint32_t normalize;   /* 1: weights are divided by their sum */
    float scale;          /* factor of the weights; 0: 1 */
    uint32_t unused;      /* 0 */
} ptxcu_route_desc;

PTXGEN_API ptxcu_code ptxcu_route_prepare(ptxcu *cu, const ptxcu_route_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_route(ptxcu *cu, const ptxcu_route_desc *desc, ptxcu_stream stream);

/* -- combine: y[t] = sum_j weights[t,j] x[places[t,j]], or added to y -- */

typedef struct ptxcu_combine_desc {
    ptxcu_tensor x;       /* [rows, n] */
    ptxcu_tensor weights; /* f32 [tokens, chosen] */
    ptxcu_tensor places;  /* u32 [tokens, chosen]; zero: choice j of token t is row t * chosen + j */
    ptxcu_tensor y;       /* [tokens, n]: output */
    uint32_t add;         /* 1: the sum is added to y */
    uint32_t unused;      /* 0 */
} ptxcu_combine_desc;

PTXGEN_API ptxcu_code ptxcu_combine_prepare(ptxcu *cu, const ptxcu_combine_desc *desc, ptxcu_call *call);
PTXGEN_API ptxcu_code ptxcu_combine(ptxcu *cu, const ptxcu_combine_desc *desc, ptxcu_stream stream);

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN__CUDA_OPERATIONS_H */

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
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#define PTXCU__CALL
#endif

PTX__BEGIN_SMALL
#ifdef __cplusplus
extern "C" {
#endif

/* ---- [SUPPORT] -------------------------------------------------------------------------------------- */

#define PTXCU__FIELD(name, params) int(PTXCU__CALL * name) params;
typedef struct ptxcu__driver {
    PTXCU_DRIVER(PTXCU__FIELD)
} ptxcu__driver;
typedef struct ptxcu__optional {
    PTXCU_DRIVER_OPTIONAL(PTXCU__FIELD)
} ptxcu__optional;
#undef PTXCU__FIELD
/* The functions' names in the order of the fields: NUL-terminated strings, then an empty one. */
#define PTXCU__FIELD(name, params) #name "\0"
static const char ptxcu__driver_names[] = PTXCU_DRIVER(PTXCU__FIELD);
static const char ptxcu__optional_names[] = PTXCU_DRIVER_OPTIONAL(PTXCU__FIELD);
#undef PTXCU__FIELD

/* Argument kinds besides ptx_type. */
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
    char *memory; /* one allocation: params, then all names */
    size_t memory_bytes;
    const char *name;
    const ptx_param_info *params;
    uint32_t param_count;
    uint32_t has_signature; /* 1: params and param_count are valid */
    uint32_t max_threads;
    uint32_t dependent_launch; /* 1: may start before the previous kernel in its stream has ended */
    uint32_t shared_bytes; /* static */
    uint32_t dynamic_free; /* dynamic bytes available without opt-in */
    uint32_t dynamic_max;  /* dynamic bytes after the last opt-in; guarded by table_mutex */
} ptxcu__entry;

struct ptxcu_program {
    ptxcu *owner; /* NULL: unloaded */
    ptxcu_program *next;
    void *module_;
    ptxcu__entry *entries;
    uint32_t count, capacity;
    uint32_t cached; /* 1: owned by the kernel cache */
};

typedef struct ptxcu__slot {
    uint64_t hash;
    ptx_code (*emit)(ptx_module *m, const char *site, const void *desc);
    uint32_t desc_bytes;
    void *desc;             /* a copy */
    ptxcu_program *program; /* NULL: the slot is free */
} ptxcu__slot;

/* Device memory that holds tensors. */
typedef struct ptxcu__allocation {
    uint64_t address, bytes;
    uint64_t serial; /* 0: freed, no tensor may use the allocation */
    uint32_t pins;   /* number of running results that use the allocation */
    uint32_t kind;   /* PTXCU__FREE, PTXCU__OWNED, PTXCU__BORROWED */
    /* For an address table of ptxcu_kv_cache_wrap_each: allocated copies of the tensors it points to. A
       result that pins the table also pins their allocations. */
    ptxcu_tensor *sequence_tensors;
    uint32_t sequence_tensor_count;
    /* For a workspace: the program whose runs leave zero_bytes at zero_address zero; NULL: unknown. */
    const ptxcu_program *zero_for;
    uint64_t zero_address, zero_bytes;
} ptxcu__allocation;
enum { PTXCU__FREE, PTXCU__OWNED, PTXCU__BORROWED };

/* A thread's last failure. The handle embeds the record of the thread that opened it. Each other thread gets
   a record at its first failure, which lives until ptxcu_close. */
typedef struct ptxcu__record {
    struct ptxcu__record *next;
    ptxcu__thread thread;
    ptxcu_error error;
    size_t message_length;
    char *log; /* PTXCU__LOG_BYTES, or NULL */
    char call[256];
    char message[PTXCU__MESSAGE_BYTES];
} ptxcu__record;

#define PTXCU__CLUSTER_MAX 8u /* blocks; larger clusters need an opt-in and some devices lack them */

/* CUlaunchAttribute and CUlaunchConfig, for cuLaunchKernelEx. */
typedef struct ptxcu__launch_attribute {
    uint32_t id, unused, value[16];
} ptxcu__launch_attribute;

typedef struct ptxcu__launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    void *stream;
    ptxcu__launch_attribute *attributes;
    uint32_t count;
} ptxcu__launch_config;

struct ptxcu {
    ptxcu__driver driver;
    ptxcu__optional optional; /* each may be NULL */
    int (*launch_ex)(const ptxcu__launch_config *config, void *function, void **params,
                     void **extra); /* or NULL */
    void *library;
    void *context;
    int device;
    uint32_t dependent_launch; /* as in ptxcu_desc */
    uint32_t ready;    /* 1: ptxcu_open has succeeded */
    uint32_t retained; /* 1: the handle must release the primary context */
    uint32_t cleaned;  /* 1: stale temporary files were removed from the cache folder */
    ptx_alloc_fn alloc;
    void *alloc_user;
    ptxcu_log_fn log; /* or NULL */
    void *log_user;
    /* build_mutex serializes building and unloading of programs. table_mutex guards records, slots and
       allocations, for a short time, never across a wait. Lock order: build_mutex, then table_mutex. No
       failure may be reported with table_mutex held, because the report locks it. */
    ptxcu__mutex build_mutex, table_mutex;
    ptxcu_program *programs, *unloaded; /* unloaded: empty, kept so that their use is refused */
    ptxcu__slot *slots;
    uint32_t slot_count, slot_capacity; /* capacity: a power of two, or 0 */
    uint64_t clears;                    /* number of calls of ptxcu_cache_clear */
    ptxcu__allocation *allocations;
    uint32_t allocation_count, allocation_capacity;
    uint64_t serial; /* serial number of the newest allocation */
    ptxcu_device info;
    ptxcu__record first_record;
    char library_name[512];
    char cache_folder[512]; /* "" for none */
    uint32_t cache_files;
    uint32_t capability; /* of the device, such as 90 */
};

/* If `call` fails, return its code from the calling function. */
#define PTXCU__TRY(call)                                                                                     \
    do {                                                                                                     \
        ptxcu_code code_ = (call);                                                                           \
        if (code_ != PTXCU_E_NONE) return code_;                                                             \
    } while (0)

static void *ptxcu__default_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

static void *ptxcu__alloc_zeroed(ptxcu *cu, size_t bytes) {
    void *p = cu->alloc(cu->alloc_user, NULL, 0, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

static void ptxcu__free_host(ptxcu *cu, void *block, size_t bytes) {
    if (block) cu->alloc(cu->alloc_user, block, bytes, 0);
}

/* Find the calling thread's record, or NULL. */
static ptxcu__record *ptxcu__find_record(ptxcu *cu) {
    ptxcu__record *r;
    ptxcu__thread self = ptxcu__self();
    ptxcu__lock(&cu->table_mutex);
    for (r = &cu->first_record; r && !ptxcu__same_thread(r->thread, self);) r = r->next;
    ptxcu__unlock(&cu->table_mutex);
    return r;
}

/* Find or create the calling thread's record; NULL without memory. No other thread looks for it, so finding
   and adding need not be one critical section. */
static ptxcu__record *ptxcu__get_record(ptxcu *cu) {
    ptxcu__record *r = ptxcu__find_record(cu);
    if (r) return r;
    r = (ptxcu__record *)ptxcu__alloc_zeroed(cu, sizeof *r);
    if (!r) return NULL;
    r->thread = ptxcu__self();
    ptxcu__lock(&cu->table_mutex);
    r->next = cu->first_record.next;
    cu->first_record.next = r;
    ptxcu__unlock(&cu->table_mutex);
    return r;
}

static void ptxcu__append_arguments(ptxcu__record *r, const char *format, va_list list) {
    size_t room = sizeof r->message - r->message_length;
    int n = vsnprintf(r->message + r->message_length, room, format, list);
    if (n > 0) r->message_length += (size_t)n < room ? (size_t)n : room - 1;
}

static void ptxcu__log(ptxcu *cu, int kind, const char *text) {
    while (*text == '\n') text++;
    if (cu->log && *text) cu->log(cu->log_user, kind, text);
}

/* Append to the message of this thread's last failure. ptxcu_open logs its message once, when complete. */
static void ptxcu__append(ptxcu *cu, const char *format, ...) {
    ptxcu__record *r = ptxcu__find_record(cu);
    size_t from;
    va_list list;
    if (!r) return;
    from = r->message_length;
    va_start(list, format);
    ptxcu__append_arguments(r, format, list);
    va_end(list);
    if (cu->ready) ptxcu__log(cu, PTXCU_LOG_ERROR, r->message + from);
}

static void ptxcu__clear_record(ptxcu__record *r, ptxcu_code code) {
    r->message_length = 0;
    r->message[0] = 0;
    r->error.code = code;
    r->error.driver_result = 0;
    r->error.driver_name = "";
    r->error.call = "";
    r->error.log = "";
    r->error.message = r->message;
}

/* Change the code of this thread's last failure. */
static ptxcu_code ptxcu__set_error_code(ptxcu *cu, ptxcu_code code) {
    ptxcu__record *r = ptxcu__find_record(cu);
    if (r) r->error.code = code;
    return code;
}

static ptxcu_code ptxcu__fail(ptxcu *cu, ptxcu_code code, const char *format, ...) {
    ptxcu__record *r = ptxcu__get_record(cu);
    va_list list;
    if (!r) return code; /* no memory for the message */
    ptxcu__clear_record(r, code);
    va_start(list, format);
    ptxcu__append_arguments(r, format, list);
    va_end(list);
    if (cu->ready) ptxcu__log(cu, PTXCU_LOG_ERROR, r->message);
    return code;
}

static ptxcu_code ptxcu__fail_memory(ptxcu *cu, size_t bytes) {
    return ptxcu__fail(cu, PTXCU_E_MEMORY, "out of host memory (%llu bytes)", (unsigned long long)bytes);
}

static ptxcu_code ptxcu__fail_null(ptxcu *cu, const char *function, const char *parameter) {
    return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %s is NULL", function, parameter);
}

/* Report a failed driver call; the format names the function and its arguments. */
static ptxcu_code ptxcu__fail_driver_arguments(ptxcu *cu, int result, const char *format, va_list list) {
    const char *name = NULL, *text = NULL;
    ptxcu__record *r = ptxcu__get_record(cu);
    if (!r) return PTXCU_E_DRIVER;
    ptxcu__clear_record(r, PTXCU_E_DRIVER);
    if (cu->driver.cuGetErrorName(result, &name) || !name) name = "unknown error";
    if (cu->driver.cuGetErrorString(result, &text) || !text) text = "?";
    vsnprintf(r->call, sizeof r->call, format, list);
    r->error.driver_result = result;
    r->error.driver_name = name;
    r->error.call = r->call;
    ptxcu__append(cu, "%s: %s (%d): %s", r->call, name, result, text);
    return PTXCU_E_DRIVER;
}

static ptxcu_code ptxcu__fail_driver(ptxcu *cu, int result, const char *format, ...) {
    ptxcu_code code;
    va_list list;
    va_start(list, format);
    code = ptxcu__fail_driver_arguments(cu, result, format, list);
    va_end(list);
    return code;
}

static void *ptxcu__find_symbol(void *library, const char *name) {
#ifdef _WIN32
    void *p = NULL;
    FARPROC f = GetProcAddress((HMODULE)library, name);
    memcpy(&p, &f, sizeof p);
    return p;
#else
    return dlsym(library, name);
#endif
}

/* Load a library; NULL on failure, with the system's reason. */
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

/* Fill a struct of function pointers, missing ones with NULL, and return the number of missing ones. file:
   NULL, or the library's name: the error message then gets a line with the first 8 of them. */
static int ptxcu__load_functions(ptxcu *cu, void *library, const char *names, void *functions,
                                 const char *file, const char *origin) {
    char *to = (char *)functions;
    void *symbol;
    int missing = 0;
    for (; *names; names += strlen(names) + 1, to += sizeof symbol) {
        symbol = ptxcu__find_symbol(library, names);
        memcpy(to, &symbol, sizeof symbol);
        if (symbol) continue;
        if (!missing && file) ptxcu__append(cu, "\n  %s%s: missing symbols:", file, origin);
        if (missing++ < 8 && file) ptxcu__append(cu, " %s", names);
    }
    if (missing > 8 && file) ptxcu__append(cu, " and %d more", missing - 8);
    return missing;
}

static void ptxcu__unload_library(void *library) {
#ifdef _WIN32
    FreeLibrary((HMODULE)library);
#else
    dlclose(library);
#endif
}

/* -- files of the cache folder, see TRUST -- */

#ifdef _WIN32
typedef struct ptxcu__file {
    HANDLE id;
    uint64_t bytes, modified; /* modified: seconds since 1970 */
} ptxcu__file;

static int ptxcu__file_open(const char *name, ptxcu__file *f) {
    BY_HANDLE_FILE_INFORMATION i;
    f->id = CreateFileA(name, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                        FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (f->id == INVALID_HANDLE_VALUE) return 0;
    if (GetFileType(f->id) == FILE_TYPE_DISK && GetFileInformationByHandle(f->id, &i)
        && !(i.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT))
        && i.nNumberOfLinks == 1) {
        f->bytes = (uint64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow;
        f->modified =
            ((uint64_t)i.ftLastWriteTime.dwHighDateTime << 32 | i.ftLastWriteTime.dwLowDateTime) / 10000000u
            - 11644473600u; /* 1601 to 1970 */
        return 1;
    }
    CloseHandle(f->id);
    return 0;
}

static int ptxcu__file_create(const char *name, ptxcu__file *f) {
    f->id = CreateFileA(name, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    return f->id != INVALID_HANDLE_VALUE;
}

static int ptxcu__file_read(ptxcu__file *f, void *to, size_t bytes) {
    DWORD n = 0;
    return ReadFile(f->id, to, (DWORD)bytes, &n, NULL) && n == bytes;
}

static int ptxcu__file_write(ptxcu__file *f, const void *from, size_t bytes) {
    DWORD n = 0;
    return WriteFile(f->id, from, (DWORD)bytes, &n, NULL) && n == bytes;
}

static int ptxcu__file_close(ptxcu__file *f) { return CloseHandle(f->id) != 0; }
static int ptxcu__file_remove(const char *name) { return DeleteFileA(name) != 0; }
static int ptxcu__file_rename(const char *from, const char *to) {
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
}

/* Say why a folder must not be used, or NULL. *missing: the folder does not exist. */
static const char *ptxcu__find_folder_fault(const char *folder, int *missing) {
    DWORD attributes = GetFileAttributesA(folder);
    *missing = attributes == INVALID_FILE_ATTRIBUTES;
    return !*missing && !(attributes & FILE_ATTRIBUTE_DIRECTORY) ? "is no directory" : NULL;
}

static uint64_t ptxcu__get_random(void) {
    LARGE_INTEGER ticks;
    QueryPerformanceCounter(&ticks);
    return (uint64_t)ticks.QuadPart * 0x9e3779b97f4a7c15u ^ (uint64_t)GetCurrentProcessId() << 32;
}

typedef struct ptxcu__listing {
    HANDLE id;
    WIN32_FIND_DATAA found;
    int more;
} ptxcu__listing;

static int ptxcu__listing_open(ptxcu__listing *l, const char *folder) {
    char pattern[600];
    snprintf(pattern, sizeof pattern, "%s\\ptxgen-*.tmp", folder);
    l->id = FindFirstFileA(pattern, &l->found);
    l->more = -1;
    return l->id != INVALID_HANDLE_VALUE;
}

static const char *ptxcu__listing_next(ptxcu__listing *l) {
    l->more = l->more < 0 || FindNextFileA(l->id, &l->found);
    return l->more ? l->found.cFileName : NULL;
}

static void ptxcu__listing_close(ptxcu__listing *l) { FindClose(l->id); }
#else
/* In strict C99, glibc declares these flags under its own names only. */
#if defined(O_NOFOLLOW) && defined(O_CLOEXEC)
#define PTXCU__OPEN_FLAGS (O_NOFOLLOW | O_CLOEXEC)
#elif defined(__O_NOFOLLOW) && defined(__O_CLOEXEC)
#define PTXCU__OPEN_FLAGS (__O_NOFOLLOW | __O_CLOEXEC)
#else
#define PTXCU__OPEN_FLAGS                                                                                    \
    0 /* without these flags only the user and root can place a link, except in a sticky folder */
#endif

typedef struct ptxcu__file {
    int id;
    uint64_t bytes, modified;
} ptxcu__file;

/* Open a file for reading. 0: it does not exist or cannot be trusted. */
static int ptxcu__file_open(const char *name, ptxcu__file *f) {
    struct stat s;
    f->id = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | PTXCU__OPEN_FLAGS);
    if (f->id < 0) return 0;
    if (fstat(f->id, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && !(s.st_mode & 022)
        && s.st_nlink == 1) {
        f->bytes = (uint64_t)s.st_size;
        f->modified = s.st_mtime > 0 ? (uint64_t)s.st_mtime : 0;
        return 1;
    }
    close(f->id);
    return 0;
}

/* Create a file for writing, with access for this user alone. 0: failed, or the name exists. */
static int ptxcu__file_create(const char *name, ptxcu__file *f) {
    f->id = open(name, O_WRONLY | O_CREAT | O_EXCL | PTXCU__OPEN_FLAGS, 0600);
    return f->id >= 0;
}

static int ptxcu__file_read(ptxcu__file *f, void *to, size_t bytes) {
    char *p = (char *)to;
    while (bytes) {
        ssize_t n = read(f->id, p, bytes);
        if (n == 0 || (n < 0 && errno != EINTR)) return 0;
        if (n > 0) p += n, bytes -= (size_t)n;
    }
    return 1;
}

static int ptxcu__file_write(ptxcu__file *f, const void *from, size_t bytes) {
    const char *p = (const char *)from;
    while (bytes) {
        ssize_t n = write(f->id, p, bytes);
        if (n == 0 || (n < 0 && errno != EINTR)) return 0;
        if (n > 0) p += n, bytes -= (size_t)n;
    }
    return 1;
}

static int ptxcu__file_close(ptxcu__file *f) { return close(f->id) == 0; }
static int ptxcu__file_remove(const char *name) { return unlink(name) == 0; }
static int ptxcu__file_rename(const char *from, const char *to) { return rename(from, to) == 0; }

/* Say why a folder must not be used, or NULL. *missing: the folder does not exist. */
static const char *ptxcu__find_folder_fault(const char *folder, int *missing) {
    struct stat s;
    *missing = stat(folder, &s) != 0;
    if (*missing) return NULL;
    if (!S_ISDIR(s.st_mode)) return "is no directory";
    if (s.st_uid != geteuid() && s.st_uid != 0) return "belongs to another user; take one of this user's own";
    if ((s.st_mode & 022) && !(s.st_mode & 01000)) /* not sticky */
        return "can be written by others; take that right away (chmod go-w), or take another folder";
    return NULL;
}

/* Random bits for a file name. A collision is harmless: ptxcu__file_create refuses an existing name. */
static uint64_t ptxcu__get_random(void) {
    uint64_t r = 0;
    ptxcu__file f;
    f.id = open("/dev/urandom", O_RDONLY | O_NONBLOCK | PTXCU__OPEN_FLAGS);
    if (f.id >= 0) {
        if (!ptxcu__file_read(&f, &r, sizeof r)) r = 0;
        close(f.id);
    }
    return r ^ ((uint64_t)time(NULL) << 32) ^ ((uint64_t)clock() << 16) ^ (uint64_t)getpid();
}

typedef struct ptxcu__listing {
    DIR *id;
} ptxcu__listing;

static int ptxcu__listing_open(ptxcu__listing *l, const char *folder) {
    l->id = opendir(folder);
    return l->id != NULL;
}

static const char *ptxcu__listing_next(ptxcu__listing *l) {
    const struct dirent *e = readdir(l->id);
    return e ? e->d_name : NULL;
}

static void ptxcu__listing_close(ptxcu__listing *l) { closedir(l->id); }
#endif

static ptxcu_code ptxcu__set_cache_folder(ptxcu *cu, const char *folder) {
    int missing = 0;
    const char *fault;
    char text[sizeof cu->cache_folder + 80];
    size_t length = strlen(folder);
    if (length >= sizeof cu->cache_folder)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_open: cache_folder has %llu characters, at most %u are possible: %.60s...",
                           (unsigned long long)length, (unsigned)sizeof cu->cache_folder - 1, folder);
    fault = *folder ? ptxcu__find_folder_fault(folder, &missing) : NULL;
    if (fault) return ptxcu__fail(cu, PTXCU_E_FOLDER, "ptxcu_open: cache_folder '%s' %s", folder, fault);
    memcpy(cu->cache_folder, folder, length + 1);
    if (missing) {
        snprintf(text, sizeof text, "cache_folder '%s' does not exist: nothing is kept in it", folder);
        ptxcu__log(cu, PTXCU_LOG_NOTE, text);
    }
    return PTXCU_E_NONE;
}

/* Try one library. Returns 1 if it works and has *devices > 0 devices. Otherwise returns 0, appends the
   reason to the message, and sets the error code to that of the library that got furthest. */
static int ptxcu__try_library(ptxcu *cu, const char *name, const char *origin, int *devices) {
    char reason[512];
    ptxcu_code code = PTXCU_E_NONE;
    int result;
    const char *text = NULL;
    void *library = NULL;
    if (strlen(name) >= sizeof cu->library_name)
        snprintf(reason, sizeof reason, "the name is longer than %u characters",
                 (unsigned)sizeof cu->library_name - 1);
    else
        library = ptxcu__load_library(name, reason, sizeof reason);
    if (!library) {
        ptxcu__append(cu, "\n  %s%s: %s", name, origin, reason);
        return 0;
    }
    if (ptxcu__load_functions(cu, library, ptxcu__driver_names, &cu->driver, name, origin)) {
        if (cu->first_record.error.code == PTXCU_E_LIBRARY) cu->first_record.error.code = PTXCU_E_SYMBOL;
        memset(&cu->driver, 0, sizeof cu->driver);
        ptxcu__unload_library(library);
        return 0;
    }
    /* An initialized driver cannot be unloaded safely, so the library stays loaded from here on. */
    result = cu->driver.cuInit(0);
    if (result) {
        code = result == 100 ? PTXCU_E_NO_DEVICE : PTXCU_E_DRIVER;
        if (cu->driver.cuGetErrorString(result, &text) || !text) text = "?";
        ptxcu__append(cu, "\n  %s%s: cuInit(0): error %d, %s", name, origin, result, text);
    } else {
        *devices = 0;
        result = cu->driver.cuDeviceGetCount(devices);
        if (result == 0 && *devices > 0) {
            cu->library = library;
            snprintf(cu->library_name, sizeof cu->library_name, "%s", name);
            cu->info.library = cu->library_name;
            return 1;
        }
        code = PTXCU_E_NO_DEVICE;
        ptxcu__append(cu, "\n  %s%s: the driver has no device (cuDeviceGetCount: error %d)", name, origin,
                      result);
    }
    cu->first_record.error.driver_result = result;
    cu->first_record.error.code = code;
    memset(&cu->driver, 0, sizeof cu->driver);
    return 0;
}

/* Try the library that a variable names. *set: 0 if the variable is unset or empty, or if the program has
   more rights than its caller (setuid), who must not choose its libraries. */
static int ptxcu__try_variable(ptxcu *cu, const char *variable, int *set, int *devices) {
    char name[sizeof cu->library_name + 1], origin[40];
    size_t length;
#ifdef _WIN32
    length = GetEnvironmentVariableA(variable, name, (DWORD)sizeof name);
    if (length >= sizeof name) memset(name, '?', sizeof name);
#else
    const char *value = getuid() == geteuid() && getgid() == getegid() ? getenv(variable) : NULL;
    length = value ? strlen(value) : 0;
    if (value) snprintf(name, sizeof name, "%s", value);
#endif
    *set = length > 0;
    if (!*set) return 0;
    name[sizeof name - 1] = 0; /* a name that is too long stays too long and is refused */
    snprintf(origin, sizeof origin, " (%s)", variable);
    return ptxcu__try_library(cu, name, origin, devices);
}

/* ---- [CORE] ----------------------------------------------------------------------------------------- */

/* -- handle -- */

/* Make a usable handle's context current on this thread. *pushed: 1 if ptxcu__pop_context must pop it. */
static ptxcu_code ptxcu__push_context(ptxcu *cu, int *pushed) {
    void *current = NULL;
    int result;
    *pushed = 0;
    if (!cu) return PTXCU_E_MEMORY;
    if (!cu->ready) return cu->first_record.error.code;
    result = cu->driver.cuCtxGetCurrent(&current);
    if (result == 0 && current == cu->context) return PTXCU_E_NONE;
    if (result) return ptxcu__fail_driver(cu, result, "cuCtxGetCurrent()");
    result = cu->driver.cuCtxPushCurrent_v2(cu->context);
    if (result) return ptxcu__fail_driver(cu, result, "cuCtxPushCurrent_v2()");
    *pushed = 1;
    return PTXCU_E_NONE;
}

/* Restore the thread's current context. Returns `code`, the result of the call in between, or the failure to
   pop. */
static ptxcu_code ptxcu__pop_context(ptxcu *cu, int pushed, ptxcu_code code) {
    void *popped;
    int result = pushed ? cu->driver.cuCtxPopCurrent_v2(&popped) : 0;
    if (result) result = cu->driver.cuCtxPopCurrent_v2(&popped); /* retry once */
    if (result == 0 || code != PTXCU_E_NONE) return code;
    return ptxcu__fail_driver(cu, result, "cuCtxPopCurrent_v2() after a successful call");
}

/* Return the error of an unusable handle. Every public function makes this check first. */
PTX__NOINLINE static ptxcu_code ptxcu__check_handle(const ptxcu *cu) {
    return !cu ? PTXCU_E_MEMORY : cu->ready ? PTXCU_E_NONE : cu->first_record.error.code;
}
#define PTXCU__REQUIRE_READY(cu) PTXCU__TRY(ptxcu__check_handle(cu))

/* The same, then refuse a NULL argument. */
PTX__NOINLINE static ptxcu_code ptxcu__check_argument(ptxcu *cu, const char *function, const char *parameter,
                                                      const void *argument) {
    PTXCU__REQUIRE_READY(cu);
    return argument ? PTXCU_E_NONE : ptxcu__fail_null(cu, function, parameter);
}
#define PTXCU__REQUIRE(cu, function, argument)                                                               \
    PTXCU__TRY(ptxcu__check_argument(cu, "ptxcu_" #function, #argument, argument))

/* End a public function: check the handle, make its context current, execute `call`, restore the previous
   context, and return the code of `call`. */
#define PTXCU__IN_CONTEXT(cu, call)                                                                          \
    do {                                                                                                     \
        int pushed_;                                                                                         \
        PTXCU__TRY(ptxcu__push_context(cu, &pushed_));                                                       \
        return ptxcu__pop_context(cu, pushed_, (call));                                                      \
    } while (0)

/* Finish a driver call that returned `result`: report an error, with the call and its arguments as `format`
   gives them, and restore the context. */
static ptxcu_code ptxcu__end_driver_call(ptxcu *cu, int pushed, int result, const char *format, ...) {
    ptxcu_code code = PTXCU_E_NONE;
    va_list list;
    va_start(list, format);
    if (result) code = ptxcu__fail_driver_arguments(cu, result, format, list);
    va_end(list);
    return ptxcu__pop_context(cu, pushed, code);
}

/* The same as PTXCU__IN_CONTEXT for one driver call. After `args` follow a format and values that show the
   arguments in an error message. */
#define PTXCU__CALL_DRIVER(cu, name, args, ...) PTXCU__CALL_OF(cu, driver, name, args, #name __VA_ARGS__)
#define PTXCU__CALL_OF(cu, functions, name, args, ...)                                                       \
    do {                                                                                                     \
        int pushed_;                                                                                         \
        PTXCU__TRY(ptxcu__push_context(cu, &pushed_));                                                       \
        return ptxcu__end_driver_call(cu, pushed_, (cu)->functions.name args, __VA_ARGS__);                  \
    } while (0)

static int ptxcu__get_attribute(const ptxcu *cu, int attribute) {
    int value = 0;
    return cu->driver.cuDeviceGetAttribute(&value, attribute, cu->device) || value < 0 ? 0 : value;
}

/* The newest PTX version of a CUDA version. An unknown newer version accepts that of the newest known one. */
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

/* PTX for a chip runs on all later chips, so an unknown chip gets the target of the newest known chip below
   it. A known chip gets its own features (sm_90a) where the PTX version has them. */
static ptx_target ptxcu__target_of(int capability, uint32_t version) {
    static const uint8_t known[][2] = {{121, 88}, {120, 87}, {110, 90}, {103, 88}, {100, 86}, {90, 80},
                                       {89, 255}, {87, 255}, {86, 255}, {80, 255}, {75, 255}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (capability >= known[i][0])
            return capability == known[i][0] && version >= known[i][1] ? PTX_SM_A(known[i][0])
                                                                       : PTX_SM(known[i][0]);
    return PTX_SM(capability);
}

static ptxcu_code ptxcu__describe_device(ptxcu *cu) {
    ptxcu_device *d = &cu->info;
    size_t total = 0;
    void *symbol;
    int i, result, shared;
    result = cu->driver.cuDeviceGetName(d->name, (int)sizeof d->name, cu->device);
    if (result) return ptxcu__fail_driver(cu, result, "cuDeviceGetName(device %d)", d->ordinal);
    d->name[sizeof d->name - 1] = 0;
    result = cu->driver.cuDriverGetVersion(&d->driver_version);
    if (result) return ptxcu__fail_driver(cu, result, "cuDriverGetVersion()");
    result = cu->driver.cuDeviceTotalMem_v2(&total, cu->device);
    if (result) return ptxcu__fail_driver(cu, result, "cuDeviceTotalMem_v2(device %d)", d->ordinal);
    d->is_cpu_driver = strncmp(d->name, "ptxsim", 6) == 0;
    d->memory_bytes = total;
    cu->capability = (uint32_t)(ptxcu__get_attribute(cu, 75) * 10 + ptxcu__get_attribute(cu, 76));
    d->max_version = ptxcu__ptx_of_cuda(d->driver_version);
    d->target = ptxcu__target_of((int)cu->capability, d->max_version);
    d->max_threads_per_block = (uint32_t)ptxcu__get_attribute(cu, 1);
    for (i = 0; i < 3; i++) {
        d->max_block[i] = (uint32_t)ptxcu__get_attribute(cu, 2 + i);
        d->max_grid[i] = (uint32_t)ptxcu__get_attribute(cu, 5 + i);
    }
    d->shared_static = (uint32_t)ptxcu__get_attribute(cu, 8);
    shared = ptxcu__get_attribute(cu, 97);
    d->shared_optin = (uint32_t)shared > d->shared_static ? (uint32_t)shared : d->shared_static;
    d->sm_count = (uint32_t)ptxcu__get_attribute(cu, 16);
    d->memory_clock_khz = (uint32_t)ptxcu__get_attribute(cu, 36);
    d->memory_bus_bits = (uint32_t)ptxcu__get_attribute(cu, 37);
    d->l2_bytes = (uint64_t)ptxcu__get_attribute(cu, 38);
    symbol = ptxcu__find_symbol(cu->library, "cuLaunchKernelEx"); /* since CUDA 11.8 */
    memcpy(&cu->launch_ex, &symbol, sizeof symbol);
    ptxcu__load_functions(cu, cu->library, ptxcu__optional_names, &cu->optional, NULL, NULL);
    d->max_cluster =
        cu->launch_ex && cu->capability >= 90 && ptxcu__get_attribute(cu, 120) ? PTXCU__CLUSTER_MAX : 0;
    /* graphs support such launches since driver 12.3 */
    d->dependent_launch =
        cu->dependent_launch && cu->launch_ex && cu->capability >= 90 && d->driver_version >= 12030;
    return PTXCU_E_NONE;
}

/* Use the caller's context and its device, after a test that the context can be pushed. */
static ptxcu_code ptxcu__use_context(ptxcu *cu, void *context, int devices) {
    void *popped;
    int i, result, device = 0;
    result = cu->driver.cuCtxPushCurrent_v2(context);
    if (result) {
        ptxcu__fail_driver(cu, result, "cuCtxPushCurrent_v2(the caller's context)");
        return ptxcu__set_error_code(cu, PTXCU_E_CONTEXT);
    }
    result = cu->driver.cuCtxGetDevice(&cu->device);
    if (cu->driver.cuCtxPopCurrent_v2(&popped)) cu->driver.cuCtxPopCurrent_v2(&popped);
    if (result) return ptxcu__fail_driver(cu, result, "cuCtxGetDevice()");
    for (i = 0; i < devices; i++)
        if (cu->driver.cuDeviceGet(&device, i) == 0 && device == cu->device) cu->info.ordinal = i;
    cu->context = context;
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__choose_context(ptxcu *cu, const ptxcu_desc *desc, int devices) {
    int result, ordinal = desc->device;
    void *current = NULL;
    if (desc->use_current_context != 0 && desc->use_current_context != 1)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "ptxcu_open: use_current_context is %d, must be 0 or 1",
                           desc->use_current_context);
    if (desc->context && desc->use_current_context)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_open: context and use_current_context exclude each other; give one");
    if (desc->context) return ptxcu__use_context(cu, desc->context, devices);
    if (desc->use_current_context) {
        result = cu->driver.cuCtxGetCurrent(&current);
        if (result) return ptxcu__fail_driver(cu, result, "cuCtxGetCurrent()");
        if (!current)
            return ptxcu__fail(cu, PTXCU_E_CONTEXT,
                               "ptxcu_open: use_current_context is set, and no context is current on this "
                               "thread; make one current, or give it as ptxcu_desc.context, or leave both 0 "
                               "for the device's primary context");
        return ptxcu__use_context(cu, current, devices);
    }
    if (ordinal < 0 || ordinal >= devices)
        return ptxcu__fail(cu, PTXCU_E_DEVICE,
                           "there is no device %d: this driver (%s) has %d, counted from 0", ordinal,
                           cu->library_name, devices);
    cu->info.ordinal = ordinal;
    result = cu->driver.cuDeviceGet(&cu->device, ordinal);
    if (result) return ptxcu__fail_driver(cu, result, "cuDeviceGet(%d)", ordinal);
    result = cu->driver.cuDevicePrimaryCtxRetain(&cu->context, cu->device);
    if (result) return ptxcu__fail_driver(cu, result, "cuDevicePrimaryCtxRetain(device %d)", ordinal);
    cu->retained = 1;
    return PTXCU_E_NONE;
}

/* Release the primary context if ptxcu_open has retained it. */
static void ptxcu__release_context(ptxcu *cu) {
    if (cu->retained) cu->driver.cuDevicePrimaryCtxRelease_v2(cu->device);
    cu->retained = 0;
}

PTX__COLD ptxcu_code ptxcu__open(ptxcu **out, const ptxcu_desc *desc) {
    ptxcu_desc d;
    ptx_alloc_fn alloc;
    ptxcu *cu;
    ptxcu_code code = PTXCU_E_NONE;
    int found, set, devices = 0;
    *out = NULL;
    memset(&d, 0, sizeof d);
    if (desc) d = *desc;
    alloc = d.alloc ? d.alloc : ptxcu__default_alloc;
    cu = (ptxcu *)alloc(d.alloc_user, NULL, 0, sizeof *cu);
    if (!cu) return PTXCU_E_MEMORY;
    memset(cu, 0, sizeof *cu);
    if (!ptxcu__mutex_open(&cu->table_mutex)) {
        alloc(d.alloc_user, cu, sizeof *cu, 0);
        return PTXCU_E_MEMORY;
    }
    if (!ptxcu__mutex_open(&cu->build_mutex)) {
        ptxcu__mutex_close(&cu->table_mutex);
        alloc(d.alloc_user, cu, sizeof *cu, 0);
        return PTXCU_E_MEMORY;
    }
    cu->alloc = alloc;
    cu->alloc_user = d.alloc_user;
    cu->dependent_launch = d.dependent_launch != 0;
    cu->log = d.log;
    cu->log_user = d.log_user;
    cu->first_record.thread = ptxcu__self();
    /* Start with the current time: a tensor of a closed handle must not match an allocation of a new handle
       that lies at the same address. */
    cu->serial = ((uint64_t)time(NULL) << 24) + (uint64_t)clock() % 65536 * 256;
    cu->cache_files = d.cache_files ? d.cache_files : 256;
    cu->info.library = "";
    *out = cu;
    if (d.cache_folder) {
        PTXCU__TRY(ptxcu__set_cache_folder(cu, d.cache_folder));
    }
    ptxcu__clear_record(&cu->first_record, PTXCU_E_LIBRARY);
    ptxcu__append(cu, "no working CUDA driver; tried");
    if (d.library && !*d.library) d.library = NULL; /* as for the variables, empty counts as unset */
    if (d.fallback && !*d.fallback) d.fallback = NULL;
    if (d.library) {
        found = ptxcu__try_library(cu, d.library, "", &devices);
    } else {
        found = ptxcu__try_variable(cu, "PTXGEN_CUDA_LIBRARY", &set, &devices);
#ifdef _WIN32
        if (!set) found = ptxcu__try_library(cu, "nvcuda.dll", "", &devices);
#else
        if (!set)
            found = ptxcu__try_library(cu, "libcuda.so.1", "", &devices)
                    || ptxcu__try_library(cu, "libcuda.so", "", &devices);
#endif
    }
    if (!found)
        found = d.fallback ? ptxcu__try_library(cu, d.fallback, " (fallback)", &devices)
                           : ptxcu__try_variable(cu, "PTXGEN_CUDA_FALLBACK", &set, &devices);
#ifndef _WIN32
    if (!found)
        ptxcu__append(cu, "\nWithout a GPU, use the CPU driver: `make build/libptxsim.so` in ptxgen's folder "
                          "builds it; set PTXGEN_CUDA_FALLBACK, or ptxcu_desc.fallback, to that file.");
#endif
    if (!found) return cu->first_record.error.code;
    code = ptxcu__choose_context(cu, &d, devices);
    if (code == PTXCU_E_NONE) code = ptxcu__describe_device(cu);
    if (code != PTXCU_E_NONE) {
        const char *library = cu->info.library;
        ptxcu__release_context(cu);
        memset(&cu->info, 0, sizeof cu->info);
        cu->info.library = library;
        return code;
    }
    if (strchr(cu->first_record.message, '\n')) /* another library was tried before */
        ptxcu__log(cu, PTXCU_LOG_NOTE, cu->first_record.message);
    ptxcu__clear_record(&cu->first_record, PTXCU_E_NONE);
    cu->ready = 1;
    return PTXCU_E_NONE;
}

static void ptxcu__log_note(ptxcu *cu, const char *format, ...) {
    char text[1024];
    va_list list;
    if (!cu->log) return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    ptxcu__log(cu, PTXCU_LOG_NOTE, text);
}

PTXGEN_API ptxcu_code ptxcu_open(ptxcu **out, const ptxcu_desc *desc) {
    ptxcu_code code = out ? ptxcu__open(out, desc) : PTXCU_E_ARGUMENT;
    ptxcu *cu = out ? *out : NULL;
    if (cu && code != PTXCU_E_NONE) ptxcu__log(cu, PTXCU_LOG_ERROR, cu->first_record.message);
    if (cu && code == PTXCU_E_NONE)
        ptxcu__log_note(cu, "opened %s: device %d, %s, sm_%u, CUDA %d.%d", cu->info.library, cu->info.ordinal,
                        cu->info.name, (unsigned)cu->capability, cu->info.driver_version / 1000,
                        cu->info.driver_version % 1000 / 10);
    return code;
}

/* Free the entries of a program. The module must be unloaded, or its context destroyed. */
PTX__COLD void ptxcu__empty_program(ptxcu *cu, ptxcu_program *p) {
    uint32_t i;
    for (i = 0; i < p->count; i++) ptxcu__free_host(cu, p->entries[i].memory, p->entries[i].memory_bytes);
    ptxcu__free_host(cu, p->entries, p->capacity * sizeof *p->entries);
    memset(p, 0, sizeof *p);
}
PTX__COLD void ptxcu__free_program(ptxcu *cu, ptxcu_program *p) {
    ptxcu__empty_program(cu, p);
    ptxcu__free_host(cu, p, sizeof *p);
}

PTXGEN_API void ptxcu_close(ptxcu *cu) {
    uint32_t i;
    if (!cu) return;
    if (cu->ready) {
        int pushed, current = ptxcu__push_context(cu, &pushed)
                              == PTXCU_E_NONE; /* 0: the caller has destroyed the context */
        while (cu->programs) {
            ptxcu_program *p = cu->programs;
            cu->programs = p->next;
            if (current) cu->driver.cuModuleUnload(p->module_);
            ptxcu__free_program(cu, p);
        }
        while (cu->unloaded) {
            ptxcu_program *p = cu->unloaded;
            cu->unloaded = p->next;
            ptxcu__free_host(cu, p, sizeof *p);
        }
        for (i = 0; i < cu->slot_capacity; i++)
            if (cu->slots[i].program) ptxcu__free_host(cu, cu->slots[i].desc, cu->slots[i].desc_bytes);
        ptxcu__free_host(cu, cu->slots, cu->slot_capacity * sizeof *cu->slots);
        for (i = 0; i < cu->allocation_count; i++) {
            if (current && cu->allocations[i].kind == PTXCU__OWNED)
                cu->driver.cuMemFree_v2(cu->allocations[i].address);
            ptxcu__free_host(cu, cu->allocations[i].sequence_tensors,
                             cu->allocations[i].sequence_tensor_count * sizeof(ptxcu_tensor));
        }
        ptxcu__free_host(cu, cu->allocations, cu->allocation_capacity * sizeof *cu->allocations);
        ptxcu__pop_context(cu, pushed, PTXCU_E_NONE);
        ptxcu__release_context(cu);
    }
    ptxcu__free_host(cu, cu->first_record.log, PTXCU__LOG_BYTES);
    while (cu->first_record.next) {
        ptxcu__record *r = cu->first_record.next;
        cu->first_record.next = r->next;
        ptxcu__free_host(cu, r->log, PTXCU__LOG_BYTES);
        ptxcu__free_host(cu, r, sizeof *r);
    }
    ptxcu__mutex_close(&cu->build_mutex);
    ptxcu__mutex_close(&cu->table_mutex);
    cu->alloc(cu->alloc_user, cu, sizeof *cu, 0);
}

PTXGEN_API const ptxcu_error *ptxcu_get_error(const ptxcu *cu) {
    static const ptxcu_error no_handle = {PTXCU_E_MEMORY, "no handle: out of host memory", 0, "", "", ""};
    static const ptxcu_error nothing = {PTXCU_E_NONE, "", 0, "", "", ""};
    const ptxcu__record *r;
    if (!cu) return &no_handle;
    if (!cu->ready) return &cu->first_record.error;
    r = ptxcu__find_record((ptxcu *)(uintptr_t)cu); /* locks a mutex, changes nothing else */
    return r ? &r->error : &nothing;
}

PTXGEN_API const char *ptxcu_error_name(ptxcu_code code) {
#define PTXCU__NAME(code_, name, meaning) name,
    static const char *const names[] = {PTXCU_ERRORS(PTXCU__NAME) "?"};
#undef PTXCU__NAME
    return names[(unsigned)code < (unsigned)PTXCU_E_COUNT ? (unsigned)code : (unsigned)PTXCU_E_COUNT];
}

PTXGEN_API const ptxcu_device *ptxcu_device_info(const ptxcu *cu) {
    static const ptxcu_device none = {"", "", 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}, {0, 0, 0},
                                      0,  0,  0, 0, 0, 0, 0, 0};
    return cu ? &cu->info : &none;
}

PTXGEN_API void *ptxcu_symbol(const ptxcu *cu, const char *name) {
    return cu && cu->library && name ? ptxcu__find_symbol(cu->library, name) : NULL;
}

PTXGEN_API void *ptxcu_get_context(const ptxcu *cu) { return cu && cu->ready ? cu->context : NULL; }

PTXGEN_API ptxcu_code ptxcu_sync(ptxcu *cu) { PTXCU__CALL_DRIVER(cu, cuCtxSynchronize, (), "()"); }

/* -- memory -- */

static ptxcu_code ptxcu__alloc_device(ptxcu *cu, size_t bytes, ptxcu_buffer *buffer) {
    uint64_t address = 0;
    int result = cu->driver.cuMemAlloc_v2(&address, bytes);
    if (result) return ptxcu__fail_driver(cu, result, "cuMemAlloc_v2(%llu bytes)", (unsigned long long)bytes);
    buffer->address = address;
    buffer->bytes = bytes;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_alloc(ptxcu *cu, size_t bytes, ptxcu_buffer *buffer) {
    if (buffer) buffer->address = 0, buffer->bytes = 0;
    PTXCU__REQUIRE(cu, alloc, buffer);
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__IN_CONTEXT(cu, ptxcu__alloc_device(cu, bytes, buffer));
}

static ptxcu_code ptxcu__free_device(ptxcu *cu, uint64_t address) {
    int result = cu->driver.cuCtxSynchronize(); /* cuMemFree is not documented to wait */
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_free: cuCtxSynchronize()");
    result = cu->driver.cuMemFree_v2(address);
    return result ? ptxcu__fail_driver(cu, result, "cuMemFree_v2(0x%llx)", (unsigned long long)address)
                  : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_free(ptxcu *cu, ptxcu_buffer buffer) {
    PTXCU__REQUIRE_READY(cu);
    if (buffer.address == 0) return PTXCU_E_NONE;
    PTXCU__IN_CONTEXT(cu, ptxcu__free_device(cu, buffer.address));
}

PTXGEN_API ptxcu_code ptxcu_host_alloc(ptxcu *cu, size_t bytes, void **memory) {
    if (memory) *memory = NULL;
    PTXCU__REQUIRE(cu, host_alloc, memory);
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuMemHostAlloc, (memory, bytes, 0), "(%llu bytes)", (unsigned long long)bytes);
}

PTXGEN_API ptxcu_code ptxcu_host_free(ptxcu *cu, void *memory) {
    PTXCU__REQUIRE_READY(cu);
    if (!memory) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuMemFreeHost, (memory), "()");
}

PTXGEN_API size_t ptxcu_bytes(size_t count, size_t element_bytes) {
    if (element_bytes && count > SIZE_MAX / element_bytes) return SIZE_MAX;
    return count * element_bytes;
}

static ptxcu_code ptxcu__check_range(ptxcu *cu, const char *what, ptxcu_buffer b, size_t offset,
                                     size_t bytes) {
    if (offset <= b.bytes && bytes <= b.bytes - offset) return PTXCU_E_NONE;
    return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %llu bytes at offset %llu do not lie in a buffer of %llu",
                       what, (unsigned long long)bytes, (unsigned long long)offset,
                       (unsigned long long)b.bytes);
}

PTXGEN_API ptxcu_code ptxcu_upload(ptxcu *cu, ptxcu_buffer to, size_t to_offset, const void *from,
                                   size_t bytes, ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (ptxcu__check_range(cu, "ptxcu_upload", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__REQUIRE(cu, upload, from);
    PTXCU__CALL_DRIVER(cu, cuMemcpyHtoDAsync_v2, (to.address + to_offset, from, bytes, stream),
                       "(%llu bytes)", (unsigned long long)bytes);
}

PTXGEN_API ptxcu_code ptxcu_download(ptxcu *cu, void *to, ptxcu_buffer from, size_t from_offset, size_t bytes,
                                     ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (ptxcu__check_range(cu, "ptxcu_download", from, from_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__REQUIRE(cu, download, to);
    PTXCU__CALL_DRIVER(cu, cuMemcpyDtoHAsync_v2, (to, from.address + from_offset, bytes, stream),
                       "(%llu bytes)", (unsigned long long)bytes);
}

PTXGEN_API ptxcu_code ptxcu_copy(ptxcu *cu, ptxcu_buffer to, size_t to_offset, ptxcu_buffer from,
                                 size_t from_offset, size_t bytes, ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (ptxcu__check_range(cu, "ptxcu_copy, to", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (ptxcu__check_range(cu, "ptxcu_copy, from", from, from_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    if ((to.address + to_offset) - (from.address + from_offset) < bytes
        || (from.address + from_offset) - (to.address + to_offset) < bytes)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_copy: %llu bytes at 0x%llx and at 0x%llx overlap: copy through another "
                           "buffer",
                           (unsigned long long)bytes, (unsigned long long)(to.address + to_offset),
                           (unsigned long long)(from.address + from_offset));
    PTXCU__CALL_DRIVER(cu, cuMemcpyDtoDAsync_v2,
                       (to.address + to_offset, from.address + from_offset, bytes, stream), "(%llu bytes)",
                       (unsigned long long)bytes);
}

PTXGEN_API ptxcu_code ptxcu_fill8(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint8_t value, size_t bytes,
                                  ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (ptxcu__check_range(cu, "ptxcu_fill8", to, to_offset, bytes)) return PTXCU_E_ARGUMENT;
    if (bytes == 0) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuMemsetD8Async, (to.address + to_offset, value, bytes, stream), "(%llu bytes)",
                       (unsigned long long)bytes);
}

PTXGEN_API ptxcu_code ptxcu_fill32(ptxcu *cu, ptxcu_buffer to, size_t to_offset, uint32_t value, size_t count,
                                   ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (ptxcu__check_range(cu, "ptxcu_fill32", to, to_offset, ptxcu_bytes(count, 4))) return PTXCU_E_ARGUMENT;
    if (count == 0) return PTXCU_E_NONE;
    if ((to.address + to_offset) % 4)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_fill32: the address is not aligned to 4 bytes (offset %llu)",
                           (unsigned long long)to_offset);
    PTXCU__CALL_DRIVER(cu, cuMemsetD32Async, (to.address + to_offset, value, count, stream), "(%llu words)",
                       (unsigned long long)count);
}

PTXGEN_API ptxcu_code ptxcu_memory_info(ptxcu *cu, size_t *free_bytes, size_t *total_bytes) {
    size_t unused[2] = {0, 0};
    if (!free_bytes) free_bytes = &unused[0];
    if (!total_bytes) total_bytes = &unused[1];
    *free_bytes = *total_bytes = 0;
    PTXCU__CALL_DRIVER(cu, cuMemGetInfo_v2, (free_bytes, total_bytes), "()");
}

/* -- arrays -- */

/* Same layouts as CUDA_ARRAY3D_DESCRIPTOR and CUDA_MEMCPY3D. */
typedef struct ptxcu__array_desc {
    size_t width, height, depth;
    uint32_t format, channels, flags;
} ptxcu__array_desc;

typedef struct ptxcu__copy_side {
    size_t x, y, z, level;
    int type;
    void *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
} ptxcu__copy_side;

typedef struct ptxcu__copy_3d {
    ptxcu__copy_side from, to;
    size_t width, height, depth; /* width in bytes */
} ptxcu__copy_3d;
enum { PTXCU__SIDE_HOST = 1, PTXCU__SIDE_DEVICE, PTXCU__SIDE_ARRAY };

/* CUarray_format of a channel type; 0: there is none. */
static uint32_t ptxcu__array_format_of(uint32_t type) {
    switch (type) {
    case PTX_U8: return 1;
    case PTX_U16: return 2;
    case PTX_U32: return 3;
    case PTX_S8: return 8;
    case PTX_S16: return 9;
    case PTX_S32: return 10;
    case PTX_F16: return 16;
    case PTX_F32: return 32;
    default: return 0;
    }
}

static ptxcu_code ptxcu__check_texel(ptxcu *cu, const char *function, uint32_t type, uint32_t channels) {
    if (!ptxcu__array_format_of(type))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "%s: type is %s (%u), must be u8, u16, u32, s8, s16, s32, f16 or f32", function,
                           ptx_type_name((ptx_type)type), (unsigned)type);
    if (channels != 1 && channels != 2 && channels != 4)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "%s: channels is %u, must be 1, 2 or 4 (use 4 for three colours)", function,
                           (unsigned)channels);
    return PTXCU_E_NONE;
}

/* Report that the library lacks an optional function. */
static ptxcu_code ptxcu__fail_symbol(ptxcu *cu, const char *name) {
    return ptxcu__fail(cu, PTXCU_E_SYMBOL, "%s has no %s: use a newer driver", cu->info.library, name);
}

/* Return SYMBOL if the library lacks an optional function. */
#define PTXCU__REQUIRE_SYMBOL(cu, name)                                                                      \
    do {                                                                                                     \
        if (!(cu)->optional.name) return ptxcu__fail_symbol(cu, #name);                                      \
    } while (0)

/* The same as PTXCU__CALL_DRIVER, for an optional function. */
#define PTXCU__CALL_OPTIONAL(cu, name, args, ...)                                                            \
    do {                                                                                                     \
        PTXCU__REQUIRE_SYMBOL(cu, name);                                                                     \
        PTXCU__CALL_OF(cu, optional, name, args, #name __VA_ARGS__);                                         \
    } while (0)

/* The number of slices, layers or cube map faces of an array: the range of the driver's z coordinate. */
static uint32_t ptxcu__array_slices(const ptxcu_array_desc *d) {
    if (d->flags & (uint32_t)PTXCU_ARRAY_CUBE) return 6 * (d->layers ? d->layers : 1);
    return d->layers ? d->layers : d->depth ? d->depth : 1;
}

static uint32_t ptxcu__texel_bytes(const ptxcu_array_desc *d) {
    return ptx_type_bytes((ptx_type)d->type) * d->channels;
}

static uint32_t ptxcu__max_levels(const ptxcu_array_desc *d) {
    uint32_t n = 1, size = d->width;
    if (d->height > size) size = d->height;
    if (d->depth > size) size = d->depth;
    while (size >>= 1) n++;
    return n;
}

PTX__COLD ptxcu_code ptxcu__check_array(ptxcu *cu, const char *function, const ptxcu_array_desc *d) {
    uint32_t cube = d->flags & (uint32_t)PTXCU_ARRAY_CUBE;
    PTXCU__TRY(ptxcu__check_texel(cu, function, d->type, d->channels));
    if (d->flags & ~(uint32_t)(PTXCU_ARRAY_CUBE | PTXCU_ARRAY_SURFACE | PTXCU_ARRAY_GATHER))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: flags is 0x%x, must be a sum of PTXCU_ARRAY_ flags",
                           function, (unsigned)d->flags);
    if (!d->width)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: width is 0, must be at least 1 texel", function);
    if (d->depth && !d->height)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: depth is %u with height 0: set height, or use layers",
                           function, (unsigned)d->depth);
    if (d->depth && (d->layers || cube))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: depth is %u, must be 0 for layers and cube maps",
                           function, (unsigned)d->depth);
    if (cube && d->height != d->width)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: a face of a cube map is %u x %u texels, must be square",
                           function, (unsigned)d->width, (unsigned)d->height);
    if (cube && d->layers > UINT32_MAX / 6)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: layers is %u, cube maps have at most %u", function,
                           (unsigned)d->layers, (unsigned)(UINT32_MAX / 6));
    if (d->levels > ptxcu__max_levels(d))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: levels is %u, at most %u end with one texel", function,
                           (unsigned)d->levels, (unsigned)ptxcu__max_levels(d));
    return PTXCU_E_NONE;
}

/* Check an array's width, height, and depth or layers (layered cube maps: faces) against device limits. */
PTX__COLD ptxcu_code ptxcu__check_extent(ptxcu *cu, const ptxcu_array_desc *d) {
    static const struct {
        const char *name;
        uint8_t limit[6]; /* CUdevice_attribute of the three limits, textures, then surfaces; 0: no limit */
    } kinds[] = {{"one dimension", {21, 0, 0, 55, 0, 0}},
                 {"two dimensions", {22, 23, 0, 56, 57, 0}},
                 {"three dimensions", {24, 25, 26, 58, 59, 60}},
                 {"one dimension in layers", {42, 0, 43, 61, 0, 62}},
                 {"two dimensions in layers", {27, 28, 29, 63, 64, 65}},
                 {"a cube map", {52, 52, 0, 66, 66, 0}},
                 {"cube maps in layers", {53, 53, 54, 67, 67, 68}},
                 {"one dimension with levels", {77, 0, 0, 55, 0, 0}},
                 {"two dimensions with levels", {73, 74, 0, 56, 57, 0}},
                 {"two dimensions for gathers", {45, 46, 0, 56, 57, 0}}};
    const uint32_t size[3] = {d->width, d->height, d->layers ? ptxcu__array_slices(d) : d->depth};
    uint32_t kind = d->depth ? 2 : d->height ? 1 : 0, most[6], faces, i, n = 3;
    if (d->layers) kind += 3;
    if (d->flags & (uint32_t)PTXCU_ARRAY_CUBE) kind = d->layers ? 6 : 5;
    if (kind < 2 && d->levels) kind += 7;
    if (kind == 1 && d->flags & (uint32_t)PTXCU_ARRAY_GATHER) kind = 9;
    if (d->flags & (uint32_t)PTXCU_ARRAY_SURFACE) n = 6;
    for (i = 0; i < n; i++)
        most[i] = kinds[kind].limit[i] ? (uint32_t)ptxcu__get_attribute(cu, kinds[kind].limit[i]) : 0;
    if (kind == 2 && n == 3 && d->depth > most[2]) /* the alternate limits: deeper, but less wide */
        for (i = 0; i < 3; i++) most[i] = (uint32_t)ptxcu__get_attribute(cu, 47 + (int)i);
    for (i = 0; i < n; i++) {
        if (!most[i] || size[i % 3] <= most[i]) continue;
        faces = kind == 6 && i % 3 == 2 ? 6 : 1;
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_array_create: %s is %u, this device has at most %u%s of %s",
                           i % 3 == 0   ? "width"
                           : i % 3 == 1 ? "height"
                           : d->layers  ? "layers"
                                        : "depth",
                           (unsigned)(size[i % 3] / faces), (unsigned)(most[i] / faces),
                           i < 3 ? "" : " for a surface", kinds[kind].name);
    }
    return PTXCU_E_NONE;
}

static ptxcu__array_desc ptxcu__describe_array(const ptxcu_array_desc *d) {
    ptxcu__array_desc a;
    uint32_t cube = d->flags & (uint32_t)PTXCU_ARRAY_CUBE;
    a.width = d->width;
    a.height = d->height;
    a.depth = d->layers || cube ? ptxcu__array_slices(d) : d->depth;
    a.format = ptxcu__array_format_of(d->type);
    a.channels = d->channels;
    a.flags = (d->layers ? 1u : 0) | (d->flags & (uint32_t)PTXCU_ARRAY_SURFACE ? 2u : 0) | (cube ? 4u : 0)
              | (d->flags & (uint32_t)PTXCU_ARRAY_GATHER ? 8u : 0);
    return a;
}

PTX__COLD ptxcu_code ptxcu__create_array(ptxcu *cu, const ptxcu_array_desc *d, ptxcu_array *array) {
    ptxcu__array_desc a = ptxcu__describe_array(d);
    void *handle = NULL;
    int result = d->levels ? cu->optional.cuMipmappedArrayCreate(&handle, &a, d->levels)
                           : cu->optional.cuArray3DCreate_v2(&handle, &a);
    if (result)
        return ptxcu__fail_driver(cu, result, "%s(%u x %s, %u x %u x %u texels, %u levels, flags 0x%x)",
                                  d->levels ? "cuMipmappedArrayCreate" : "cuArray3DCreate_v2",
                                  (unsigned)d->channels, ptx_type_name((ptx_type)d->type), (unsigned)a.width,
                                  (unsigned)a.height, (unsigned)a.depth, (unsigned)d->levels,
                                  (unsigned)a.flags);
    array->handle = handle;
    array->desc = *d;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_array_create(ptxcu *cu, const ptxcu_array_desc *desc, ptxcu_array *array) {
    ptxcu_array_desc d;
    if (array) memset(array, 0, sizeof *array);
    PTXCU__REQUIRE(cu, array_create, array);
    PTXCU__REQUIRE(cu, array_create, desc);
    d = *desc;
    if (!d.channels) d.channels = 1;
    PTXCU__REQUIRE_SYMBOL(cu, cuArray3DCreate_v2);
    PTXCU__REQUIRE_SYMBOL(cu, cuMipmappedArrayCreate);
    PTXCU__TRY(ptxcu__check_array(cu, "ptxcu_array_create", &d));
    PTXCU__TRY(ptxcu__check_extent(cu, &d));
    PTXCU__IN_CONTEXT(cu, ptxcu__create_array(cu, &d, array));
}

PTX__COLD ptxcu_code ptxcu__free_array(ptxcu *cu, ptxcu_array *array) {
    int result = cu->driver.cuCtxSynchronize();
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_array_free: cuCtxSynchronize()");
    result = array->desc.levels ? cu->optional.cuMipmappedArrayDestroy(array->handle)
                                : cu->optional.cuArrayDestroy(array->handle);
    if (result)
        return ptxcu__fail_driver(cu, result, "%s()",
                                  array->desc.levels ? "cuMipmappedArrayDestroy" : "cuArrayDestroy");
    memset(array, 0, sizeof *array);
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_array_free(ptxcu *cu, ptxcu_array *array) {
    PTXCU__REQUIRE_READY(cu);
    if (!array || !array->handle) return PTXCU_E_NONE;
    PTXCU__REQUIRE_SYMBOL(cu, cuArrayDestroy);
    PTXCU__REQUIRE_SYMBOL(cu, cuMipmappedArrayDestroy);
    PTXCU__IN_CONTEXT(cu, ptxcu__free_array(cu, array));
}

static uint32_t ptxcu__level_size(uint32_t size, uint32_t level) { return size >> level ? size >> level : 1; }

static ptxcu_code ptxcu__check_interval(ptxcu *cu, const char *function, const char *axis, uint32_t first,
                                        uint32_t *count, uint32_t size) {
    if (first < size && !*count) *count = size - first;
    if (first < size && *count <= size - first) return PTXCU_E_NONE;
    return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                       "%s: the region has %u texels from %u on in %s, and the array %u there", function,
                       (unsigned)*count, (unsigned)first, axis, (unsigned)size);
}

/* Complete and check a region of an array. `out` may be `region`. */
static ptxcu_code ptxcu__check_region(ptxcu *cu, const char *function, const ptxcu_array *array,
                                      const ptxcu_region *region, ptxcu_region *out) {
    const ptxcu_array_desc *d;
    uint32_t levels, slices;
    if (region)
        *out = *region;
    else
        memset(out, 0, sizeof *out);
    if (!array || !array->handle) return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: the array is zero", function);
    d = &array->desc;
    levels = d->levels ? d->levels : 1;
    if (out->level >= levels)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: level is %u, and the array has %u", function,
                           (unsigned)out->level, (unsigned)levels);
    slices = d->depth ? ptxcu__level_size(d->depth, out->level) : ptxcu__array_slices(d);
    PTXCU__TRY(ptxcu__check_interval(cu, function, "x", out->x, &out->width,
                                     ptxcu__level_size(d->width, out->level)));
    PTXCU__TRY(ptxcu__check_interval(cu, function, "y", out->y, &out->height,
                                     ptxcu__level_size(d->height, out->level)));
    return ptxcu__check_interval(cu, function, "z", out->z, &out->depth, slices);
}

/* The CUarray of a level. Called with the context current. */
static ptxcu_code ptxcu__get_level(ptxcu *cu, const ptxcu_array *array, uint32_t level, void **handle) {
    int result;
    *handle = array->handle;
    if (!array->desc.levels) return PTXCU_E_NONE;
    PTXCU__REQUIRE_SYMBOL(cu, cuMipmappedArrayGetLevel);
    result = cu->optional.cuMipmappedArrayGetLevel(handle, array->handle, level);
    return result ? ptxcu__fail_driver(cu, result, "cuMipmappedArrayGetLevel(%u)", (unsigned)level)
                  : PTXCU_E_NONE;
}

static ptxcu_code ptxcu__set_array_side(ptxcu *cu, ptxcu__copy_side *side, const ptxcu_array *array,
                                        const ptxcu_region *r) {
    side->type = PTXCU__SIDE_ARRAY;
    side->x = (size_t)r->x * ptxcu__texel_bytes(&array->desc);
    side->y = r->y;
    side->z = r->z;
    return ptxcu__get_level(cu, array, r->level, &side->array);
}

/* Compute the bytes that a region takes in memory, gaps included. A pitch of 0 becomes that of dense rows. */
static ptxcu_code ptxcu__check_pitch(ptxcu *cu, const char *function, const ptxcu_array *array,
                                     const ptxcu_region *r, size_t *pitch, size_t *bytes) {
    size_t row = (size_t)r->width * ptxcu__texel_bytes(&array->desc), rows = (size_t)r->height * r->depth;
    if (!*pitch) *pitch = row;
    if (*pitch < row)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: pitch is %llu bytes, and a row of the region has %llu",
                           function, (unsigned long long)*pitch, (unsigned long long)row);
    if (*pitch > SIZE_MAX / rows)
        return ptxcu__fail(cu, PTXCU_E_OVERFLOW, "%s: the region's size overflows", function);
    *bytes = *pitch * (rows - 1) + row;
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__run_copy(ptxcu *cu, const char *function, const ptxcu__copy_3d *c,
                                  ptxcu_stream stream) {
    int result = cu->optional.cuMemcpy3DAsync_v2(c, stream);
    if (!result) return PTXCU_E_NONE;
    return ptxcu__fail_driver(cu, result, "%s: cuMemcpy3DAsync_v2(%llu bytes x %llu x %llu)", function,
                              (unsigned long long)c->width, (unsigned long long)c->height,
                              (unsigned long long)c->depth);
}

static ptxcu_code ptxcu__copy_array(ptxcu *cu, const char *function, ptxcu__copy_3d *c,
                                    const ptxcu_array *array, const ptxcu_region *r, int into_array,
                                    ptxcu_stream stream) {
    PTXCU__TRY(ptxcu__set_array_side(cu, into_array ? &c->to : &c->from, array, r));
    c->width = (size_t)r->width * ptxcu__texel_bytes(&array->desc);
    c->height = r->height;
    c->depth = r->depth;
    return ptxcu__run_copy(cu, function, c, stream);
}

/* Copy between a region of an array and memory of the host, or of the device from `offset` on. */
static ptxcu_code ptxcu__transfer_array(ptxcu *cu, const char *function, const ptxcu_array *array,
                                        const ptxcu_region *region, const void *host,
                                        const ptxcu_buffer *device, size_t offset, size_t pitch,
                                        int into_array, ptxcu_stream stream) {
    ptxcu__copy_3d c;
    ptxcu__copy_side *memory = into_array ? &c.from : &c.to;
    ptxcu_region r;
    size_t bytes = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuMemcpy3DAsync_v2);
    if (!device && !host) return ptxcu__fail_null(cu, function, into_array ? "from" : "to");
    PTXCU__TRY(ptxcu__check_region(cu, function, array, region, &r));
    PTXCU__TRY(ptxcu__check_pitch(cu, function, array, &r, &pitch, &bytes));
    if (device) PTXCU__TRY(ptxcu__check_range(cu, function, *device, offset, bytes));
    memset(&c, 0, sizeof c);
    memory->type = device ? PTXCU__SIDE_DEVICE : PTXCU__SIDE_HOST;
    memory->host = (void *)(uintptr_t)host;
    memory->device = device ? device->address + offset : 0;
    memory->pitch = pitch;
    memory->height = r.height;
    PTXCU__IN_CONTEXT(cu, ptxcu__copy_array(cu, function, &c, array, &r, into_array, stream));
}

PTXGEN_API ptxcu_code ptxcu_array_upload(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *region,
                                         const void *from, size_t pitch, ptxcu_stream stream) {
    return ptxcu__transfer_array(cu, "ptxcu_array_upload", to, region, from, NULL, 0, pitch, 1, stream);
}

PTXGEN_API ptxcu_code ptxcu_array_download(ptxcu *cu, void *to, size_t pitch, const ptxcu_array *from,
                                           const ptxcu_region *region, ptxcu_stream stream) {
    return ptxcu__transfer_array(cu, "ptxcu_array_download", from, region, to, NULL, 0, pitch, 0, stream);
}

PTXGEN_API ptxcu_code ptxcu_array_load(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *region,
                                       ptxcu_buffer from, size_t offset, size_t pitch, ptxcu_stream stream) {
    return ptxcu__transfer_array(cu, "ptxcu_array_load", to, region, NULL, &from, offset, pitch, 1, stream);
}

PTXGEN_API ptxcu_code ptxcu_array_store(ptxcu *cu, ptxcu_buffer to, size_t offset, size_t pitch,
                                        const ptxcu_array *from, const ptxcu_region *region,
                                        ptxcu_stream stream) {
    return ptxcu__transfer_array(cu, "ptxcu_array_store", from, region, NULL, &to, offset, pitch, 0, stream);
}

static ptxcu_code ptxcu__copy_arrays(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *at,
                                     const ptxcu_array *from, const ptxcu_region *r, ptxcu_stream stream) {
    ptxcu__copy_3d c;
    memset(&c, 0, sizeof c);
    PTXCU__TRY(ptxcu__set_array_side(cu, &c.to, to, at));
    return ptxcu__copy_array(cu, "ptxcu_array_copy", &c, from, r, 0, stream);
}

PTXGEN_API ptxcu_code ptxcu_array_copy(ptxcu *cu, const ptxcu_array *to, const ptxcu_region *to_region,
                                       const ptxcu_array *from, const ptxcu_region *from_region,
                                       ptxcu_stream stream) {
    ptxcu_region r, at;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuMemcpy3DAsync_v2);
    PTXCU__TRY(ptxcu__check_region(cu, "ptxcu_array_copy, from", from, from_region, &r));
    memset(&at, 0, sizeof at);
    if (to_region) at = *to_region;
    at.width = r.width;
    at.height = r.height;
    at.depth = r.depth;
    PTXCU__TRY(ptxcu__check_region(cu, "ptxcu_array_copy, to", to, &at, &at));
    if (ptxcu__texel_bytes(&to->desc) != ptxcu__texel_bytes(&from->desc))
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT, "ptxcu_array_copy: texels of %u and %u bytes, must have one size",
            (unsigned)ptxcu__texel_bytes(&from->desc), (unsigned)ptxcu__texel_bytes(&to->desc));
    PTXCU__IN_CONTEXT(cu, ptxcu__copy_arrays(cu, to, &at, from, &r, stream));
}

/* -- textures and surfaces -- */

/* Same layouts as CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC and CUDA_RESOURCE_VIEW_DESC. */
typedef struct ptxcu__resource {
    int type;
    union {
        void *handle;
        struct {
            uint64_t address;
            uint32_t format, channels;
            size_t width, height, pitch;
        } memory;
        int reserved[32];
    } u;
    uint32_t flags;
} ptxcu__resource;
enum { PTXCU__ARRAY, PTXCU__MIPMAPPED, PTXCU__LINEAR, PTXCU__PITCHED };

typedef struct ptxcu__sampling {
    int address[3], filter;
    uint32_t flags, anisotropy;
    int mip_filter;
    float bias, min_level, max_level, border[4];
    int reserved[12];
} ptxcu__sampling;

typedef struct ptxcu__view {
    int format;
    size_t width, height, depth;
    uint32_t first_level, last_level, first_layer, last_layer, reserved[16];
} ptxcu__view;

/* Where an array's texels are: its CUarray or CUmipmappedArray. */
static void ptxcu__set_array_resource(ptxcu__resource *r, const ptxcu_array *array) {
    r->type = array->desc.levels ? PTXCU__MIPMAPPED : PTXCU__ARRAY;
    r->u.handle = array->handle;
}

PTX__COLD ptxcu_code ptxcu__set_memory_resource(ptxcu *cu, ptxcu__resource *r, const ptxcu_texture_desc *d,
                                                uint32_t channels) {
    size_t row = (size_t)d->width * channels * ptx_type_bytes((ptx_type)d->type),
           pitch = d->pitch ? d->pitch : row, rows = d->height ? d->height : 1;
    if (!d->memory.address)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_texture_create: array and memory are zero: set one of them");
    if (d->memory.address % 512)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_texture_create: memory begins at 0x%llx, must be a multiple of 512",
                           (unsigned long long)d->memory.address);
    if (!d->width)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "ptxcu_texture_create: width of memory is 0 texels");
    if (!d->height && (d->filter || d->normalized))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_texture_create: %s is set, and memory of one dimension (height 0) is read "
                           "by integers: set height to 1, or use an array",
                           d->normalized ? "normalized" : "filter");
    if (d->height && (pitch % 32 || pitch < row))
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_texture_create: pitch is %llu bytes, must be a multiple of 32 and at least the %llu "
            "bytes of a row",
            (unsigned long long)pitch, (unsigned long long)row);
    if (pitch > (SIZE_MAX - row) / rows || pitch * (rows - 1) + row > d->memory.bytes)
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_texture_create: %u x %u texels with a pitch of %llu do not lie in %llu bytes",
            (unsigned)d->width, (unsigned)d->height, (unsigned long long)pitch,
            (unsigned long long)d->memory.bytes);
    r->type = d->height ? PTXCU__PITCHED : PTXCU__LINEAR;
    r->u.memory.address = d->memory.address;
    r->u.memory.format = ptxcu__array_format_of(d->type);
    r->u.memory.channels = channels;
    r->u.memory.width = d->height ? d->width : row; /* linear memory: sizeInBytes has this place */
    r->u.memory.height = d->height;
    r->u.memory.pitch = d->height ? pitch : 0;
    return PTXCU_E_NONE;
}

PTX__COLD ptxcu_code ptxcu__set_sampling(ptxcu *cu, ptxcu__sampling *s, const ptxcu_texture_desc *d,
                                         uint32_t type) {
    static const int modes[] = {1, 0, 2, 3};
    uint32_t i, is_integer = type != (uint32_t)PTX_F16 && type != (uint32_t)PTX_F32;
    uint32_t bytes = ptx_type_bytes((ptx_type)type), linear = d->filter == (uint32_t)PTXCU_FILTER_LINEAR;
    for (i = 0; i < 3; i++) {
        if (d->address[i] > (uint32_t)PTXCU_ADDRESS_BORDER)
            return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                               "ptxcu_texture_create: address[%u] is %u, must be a PTXCU_ADDRESS_ constant",
                               (unsigned)i, (unsigned)d->address[i]);
        if (!d->normalized
            && (d->address[i] == (uint32_t)PTXCU_ADDRESS_WRAP
                || d->address[i] == (uint32_t)PTXCU_ADDRESS_MIRROR))
            return ptxcu__fail(
                cu, PTXCU_E_ARGUMENT,
                "ptxcu_texture_create: address[%u] is wrap or mirror, and normalized is 0: the device "
                "would clamp; set normalized and use coordinates from 0 to 1",
                (unsigned)i);
        s->address[i] = modes[d->address[i]];
    }
    if (d->filter > (uint32_t)PTXCU_FILTER_LINEAR || d->mip_filter > (uint32_t)PTXCU_FILTER_LINEAR)
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_texture_create: filter is %u and mip_filter %u, must be PTXCU_FILTER_ constants",
            (unsigned)d->filter, (unsigned)d->mip_filter);
    if (d->read_normalized && (!is_integer || bytes > 2))
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_texture_create: read_normalized is set, and type is %s: only u8, u16, s8 and s16 are "
            "read so",
            ptx_type_name((ptx_type)type));
    if (linear && is_integer && !d->read_normalized)
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT, "ptxcu_texture_create: filter is linear, and %s is read as integers: %s",
            ptx_type_name((ptx_type)type), bytes > 2 ? "use point, or f32 texels" : "set read_normalized");
    if (d->srgb && (type != (uint32_t)PTX_U8 || !d->read_normalized))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_texture_create: srgb is set for %s, needs u8 and read_normalized",
                           ptx_type_name((ptx_type)type));
    if (d->anisotropy > 16)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "ptxcu_texture_create: anisotropy is %u, must be at most 16",
                           (unsigned)d->anisotropy);
    if (!(d->level_bias - d->level_bias <= 0) || !(d->min_level >= 0) || !(d->max_level >= 0)
        || (d->max_level > 0 && d->min_level > d->max_level))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_texture_create: level_bias is %g, must be finite; min_level %g and "
                           "max_level %g must rise from 0 or more (max_level 0: all levels)",
                           (double)d->level_bias, (double)d->min_level, (double)d->max_level);
    s->filter = (int)d->filter;
    s->mip_filter = (int)d->mip_filter;
    s->flags = (is_integer && !d->read_normalized ? 1u : 0) | (d->normalized ? 2u : 0) | (d->srgb ? 0x10u : 0)
               | (d->seamless ? 0x40u : 0);
    s->anisotropy = d->anisotropy;
    s->bias = d->level_bias;
    s->min_level = d->min_level;
    s->max_level = d->max_level > 0 ? d->max_level : 1000.0f;
    memcpy(s->border, d->border, sizeof s->border);
    return PTXCU_E_NONE;
}

/* Fill in a resource view. *needed: 1 if the description selects another type, or some levels or layers. */
PTX__COLD ptxcu_code ptxcu__set_view(ptxcu *cu, ptxcu__view *v, const ptxcu_texture_desc *d, uint32_t type,
                                     uint32_t channels, int *needed) {
    static const uint32_t types[] = {PTX_U8, PTX_S8, PTX_U16, PTX_S16, PTX_U32, PTX_S32, PTX_F16, PTX_F32};
    const ptxcu_array_desc *a = &d->array.desc;
    uint32_t cube = a->flags & (uint32_t)PTXCU_ARRAY_CUBE,
             layers = cube || a->layers ? ptxcu__array_slices(a) : 1;
    uint32_t levels = a->levels ? a->levels : 1, level_count = d->level_count, layer_count = d->layer_count,
             i;
    *needed = d->type || d->channels || d->first_level || level_count || d->first_layer || layer_count;
    if (!*needed) return PTXCU_E_NONE;
    if (ptx_type_bytes((ptx_type)type) * channels != ptxcu__texel_bytes(a))
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_texture_create: %u x %s is read from texels of %u bytes, must have their size",
            (unsigned)channels, ptx_type_name((ptx_type)type), (unsigned)ptxcu__texel_bytes(a));
    PTXCU__TRY(
        ptxcu__check_interval(cu, "ptxcu_texture_create", "levels", d->first_level, &level_count, levels));
    PTXCU__TRY(
        ptxcu__check_interval(cu, "ptxcu_texture_create", "layers", d->first_layer, &layer_count, layers));
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i] == type) v->format = (int)(1 + 3 * i + channels / 2);
    v->width = a->width;
    v->height = a->height;
    v->depth = cube || a->layers ? layers : a->depth;
    v->first_level = d->first_level;
    v->last_level = d->first_level + level_count - 1;
    v->first_layer = d->first_layer;
    v->last_layer = d->first_layer + layer_count - 1;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_texture_create(ptxcu *cu, const ptxcu_texture_desc *desc,
                                           ptxcu_texture *texture) {
    ptxcu__resource r;
    ptxcu__sampling s;
    ptxcu__view v;
    uint32_t type, channels;
    int needs_view = 0;
    if (texture) *texture = 0;
    PTXCU__REQUIRE(cu, texture_create, texture);
    PTXCU__REQUIRE(cu, texture_create, desc);
    memset(&r, 0, sizeof r);
    memset(&s, 0, sizeof s);
    memset(&v, 0, sizeof v);
    type = desc->type ? desc->type : desc->array.desc.type;
    channels = desc->channels ? desc->channels : desc->array.handle ? desc->array.desc.channels : 1;
    PTXCU__TRY(ptxcu__check_texel(cu, "ptxcu_texture_create", type, channels));
    PTXCU__TRY(ptxcu__set_sampling(cu, &s, desc, type));
    if (desc->array.handle) {
        if (desc->memory.address)
            return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                               "ptxcu_texture_create: array and memory are both set: set one of them");
        if (desc->array.desc.levels && !desc->normalized)
            return ptxcu__fail(
                cu, PTXCU_E_ARGUMENT,
                "ptxcu_texture_create: the array has levels, and normalized is 0: set normalized");
        ptxcu__set_array_resource(&r, &desc->array);
        PTXCU__TRY(ptxcu__set_view(cu, &v, desc, type, channels, &needs_view));
    } else {
        PTXCU__TRY(ptxcu__set_memory_resource(cu, &r, desc, channels));
    }
    PTXCU__CALL_OPTIONAL(cu, cuTexObjectCreate, (texture, &r, &s, needs_view ? &v : NULL), "(%u x %s)",
                         (unsigned)channels, ptx_type_name((ptx_type)type));
}

/* Wait for the work that may use a texture or surface object, then destroy it. */
PTX__COLD ptxcu_code ptxcu__destroy_object(ptxcu *cu, uint64_t object, int is_surface) {
    int result = cu->driver.cuCtxSynchronize();
    if (result)
        return ptxcu__fail_driver(cu, result, "ptxcu_%s_destroy: cuCtxSynchronize()",
                                  is_surface ? "surface" : "texture");
    result = is_surface ? cu->optional.cuSurfObjectDestroy(object) : cu->optional.cuTexObjectDestroy(object);
    return result ? ptxcu__fail_driver(cu, result, "%s()",
                                       is_surface ? "cuSurfObjectDestroy" : "cuTexObjectDestroy")
                  : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_texture_destroy(ptxcu *cu, ptxcu_texture texture) {
    PTXCU__REQUIRE_READY(cu);
    if (!texture) return PTXCU_E_NONE;
    PTXCU__REQUIRE_SYMBOL(cu, cuTexObjectDestroy);
    PTXCU__IN_CONTEXT(cu, ptxcu__destroy_object(cu, texture, 0));
}

PTX__COLD ptxcu_code ptxcu__create_surface(ptxcu *cu, const ptxcu_array *array, uint32_t level,
                                           ptxcu_surface *surface) {
    ptxcu__resource r;
    int result;
    memset(&r, 0, sizeof r);
    PTXCU__TRY(ptxcu__get_level(cu, array, level, &r.u.handle));
    result = cu->optional.cuSurfObjectCreate(surface, &r);
    return result ? ptxcu__fail_driver(cu, result, "cuSurfObjectCreate(level %u)", (unsigned)level)
                  : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_surface_create(ptxcu *cu, const ptxcu_array *array, uint32_t level,
                                           ptxcu_surface *surface) {
    ptxcu_region r;
    if (surface) *surface = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuSurfObjectCreate);
    PTXCU__REQUIRE(cu, surface_create, surface);
    memset(&r, 0, sizeof r);
    r.level = level;
    PTXCU__TRY(ptxcu__check_region(cu, "ptxcu_surface_create", array, &r, &r));
    if (!(array->desc.flags & (uint32_t)PTXCU_ARRAY_SURFACE))
        return ptxcu__fail(
            cu, PTXCU_E_ARGUMENT,
            "ptxcu_surface_create: the array was made without PTXCU_ARRAY_SURFACE: add it to flags");
    PTXCU__IN_CONTEXT(cu, ptxcu__create_surface(cu, array, level, surface));
}

PTXGEN_API ptxcu_code ptxcu_surface_destroy(ptxcu *cu, ptxcu_surface surface) {
    PTXCU__REQUIRE_READY(cu);
    if (!surface) return PTXCU_E_NONE;
    PTXCU__REQUIRE_SYMBOL(cu, cuSurfObjectDestroy);
    PTXCU__IN_CONTEXT(cu, ptxcu__destroy_object(cu, surface, 1));
}

/* -- memory and semaphores of other interfaces -- */

/* The common start of CUDA_EXTERNAL_MEMORY_HANDLE_DESC and CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC; then both. */
typedef struct ptxcu__external {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } u;
} ptxcu__external;

typedef struct ptxcu__external_memory {
    ptxcu__external from;
    unsigned long long bytes;
    uint32_t flags, reserved[16];
} ptxcu__external_memory;

typedef struct ptxcu__external_semaphore {
    ptxcu__external from;
    uint32_t flags, reserved[16];
} ptxcu__external_semaphore;

typedef struct ptxcu__external_buffer {
    unsigned long long offset, bytes;
    uint32_t flags, reserved[16];
} ptxcu__external_buffer;

typedef struct ptxcu__external_array {
    unsigned long long offset;
    ptxcu__array_desc array;
    uint32_t levels, reserved[16];
} ptxcu__external_array;

/* CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and _WAIT_PARAMS. */
typedef struct ptxcu__semaphore_params {
    unsigned long long value, sync, key;
    uint32_t timeout_ms, reserved[11], flags, reserved_end[16];
} ptxcu__semaphore_params;

/* Check an import and fill in its driver struct. max_type: the largest type. fd_types: bits of the types that
   use fd. */
PTX__COLD ptxcu_code ptxcu__describe_external(ptxcu *cu, const char *function, const ptxcu_external_desc *d,
                                              uint32_t max_type, uint32_t fd_types, ptxcu__external *out) {
    int is_memory = max_type == (uint32_t)PTXCU_MEMORY_DMABUF_FD, is_fd;
    /* Memory type 8 and semaphore type 6 are NvSci objects, which are not supported. */
    if (!d->type || d->type > max_type || d->type == (is_memory ? 8u : 6u))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: type is %u, must be a PTXCU_%s constant", function,
                           (unsigned)d->type, is_memory ? "MEMORY_" : "SEMAPHORE_");
    is_fd = (int)(fd_types >> d->type & 1);
    if (is_fd && d->fd < 0)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: fd is %d, must be an open file descriptor", function,
                           d->fd);
    if (!is_fd && !d->handle == !d->name)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: set handle or name, one of them", function);
    out->type = (int)d->type;
    if (is_fd)
        out->u.fd = d->fd;
    else
        out->u.win32.handle = d->handle, out->u.win32.name = d->name;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_external_memory_import(ptxcu *cu, const ptxcu_external_desc *desc,
                                                   ptxcu_external_memory *memory) {
    static const char *const name = "ptxcu_external_memory_import";
    ptxcu__external_memory d;
    if (memory) *memory = NULL;
    PTXCU__REQUIRE(cu, external_memory_import, memory);
    PTXCU__REQUIRE(cu, external_memory_import, desc);
    memset(&d, 0, sizeof d);
    PTXCU__TRY(ptxcu__describe_external(cu, name, desc, PTXCU_MEMORY_DMABUF_FD,
                                        1u << PTXCU_MEMORY_FD | 1u << PTXCU_MEMORY_DMABUF_FD, &d.from));
    if (!desc->bytes) return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: bytes is 0", name);
    d.bytes = desc->bytes;
    d.flags = desc->dedicated ? 1 : 0;
    PTXCU__CALL_OPTIONAL(cu, cuImportExternalMemory, (memory, &d), "(type %u, %llu bytes)",
                         (unsigned)desc->type, (unsigned long long)desc->bytes);
}

PTX__COLD ptxcu_code ptxcu__map_external(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                         size_t bytes, ptxcu_buffer *buffer) {
    ptxcu__external_buffer d;
    uint64_t address = 0;
    int result;
    memset(&d, 0, sizeof d);
    d.offset = offset;
    d.bytes = bytes;
    result = cu->optional.cuExternalMemoryGetMappedBuffer(&address, memory, &d);
    if (result)
        return ptxcu__fail_driver(cu, result, "cuExternalMemoryGetMappedBuffer(%llu bytes at %llu)",
                                  (unsigned long long)bytes, (unsigned long long)offset);
    buffer->address = address;
    buffer->bytes = bytes;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_external_memory_buffer(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                                   size_t bytes, ptxcu_buffer *buffer) {
    if (buffer) buffer->address = 0, buffer->bytes = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuExternalMemoryGetMappedBuffer);
    PTXCU__REQUIRE(cu, external_memory_buffer, buffer);
    PTXCU__REQUIRE(cu, external_memory_buffer, memory);
    PTXCU__IN_CONTEXT(cu, ptxcu__map_external(cu, memory, offset, bytes, buffer));
}

PTX__COLD ptxcu_code ptxcu__map_external_array(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                               const ptxcu_array_desc *desc, ptxcu_array *array) {
    ptxcu__external_array d;
    void *handle = NULL;
    int result;
    memset(&d, 0, sizeof d);
    d.offset = offset;
    d.array = ptxcu__describe_array(desc);
    d.levels = desc->levels;
    result = cu->optional.cuExternalMemoryGetMappedMipmappedArray(&handle, memory, &d);
    if (result)
        return ptxcu__fail_driver(cu, result,
                                  "cuExternalMemoryGetMappedMipmappedArray(%u x %u texels, %u levels)",
                                  (unsigned)desc->width, (unsigned)desc->height, (unsigned)desc->levels);
    array->handle = handle;
    array->desc = *desc;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_external_memory_array(ptxcu *cu, ptxcu_external_memory memory, uint64_t offset,
                                                  const ptxcu_array_desc *desc, ptxcu_array *array) {
    ptxcu_array_desc d;
    if (array) memset(array, 0, sizeof *array);
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuExternalMemoryGetMappedMipmappedArray);
    PTXCU__REQUIRE(cu, external_memory_array, array);
    PTXCU__REQUIRE(cu, external_memory_array, memory);
    PTXCU__REQUIRE(cu, external_memory_array, desc);
    d = *desc;
    if (!d.channels) d.channels = 1;
    if (!d.levels) d.levels = 1;
    PTXCU__TRY(ptxcu__check_array(cu, "ptxcu_external_memory_array", &d));
    PTXCU__IN_CONTEXT(cu, ptxcu__map_external_array(cu, memory, offset, &d, array));
}

PTXGEN_API ptxcu_code ptxcu_external_memory_release(ptxcu *cu, ptxcu_external_memory memory) {
    PTXCU__REQUIRE_READY(cu);
    if (!memory) return PTXCU_E_NONE;
    PTXCU__CALL_OPTIONAL(cu, cuDestroyExternalMemory, (memory), "()");
}

PTXGEN_API ptxcu_code ptxcu_external_semaphore_import(ptxcu *cu, const ptxcu_external_desc *desc,
                                                      ptxcu_external_semaphore *semaphore) {
    ptxcu__external_semaphore d;
    if (semaphore) *semaphore = NULL;
    PTXCU__REQUIRE(cu, external_semaphore_import, semaphore);
    PTXCU__REQUIRE(cu, external_semaphore_import, desc);
    memset(&d, 0, sizeof d);
    PTXCU__TRY(
        ptxcu__describe_external(cu, "ptxcu_external_semaphore_import", desc, PTXCU_SEMAPHORE_TIMELINE_WIN32,
                                 1u << PTXCU_SEMAPHORE_FD | 1u << PTXCU_SEMAPHORE_TIMELINE_FD, &d.from));
    PTXCU__CALL_OPTIONAL(cu, cuImportExternalSemaphore, (semaphore, &d), "(type %u)", (unsigned)desc->type);
}

PTXGEN_API ptxcu_code ptxcu_external_semaphore_signal(ptxcu *cu, ptxcu_external_semaphore semaphore,
                                                      uint64_t value, ptxcu_stream stream) {
    ptxcu__semaphore_params p;
    PTXCU__REQUIRE(cu, external_semaphore_signal, semaphore);
    memset(&p, 0, sizeof p);
    p.value = p.key = value;
    PTXCU__CALL_OPTIONAL(cu, cuSignalExternalSemaphoresAsync, (&semaphore, &p, 1, stream), "(value %llu)",
                         (unsigned long long)value);
}

PTXGEN_API ptxcu_code ptxcu_external_semaphore_wait(ptxcu *cu, ptxcu_external_semaphore semaphore,
                                                    uint64_t value, ptxcu_stream stream) {
    ptxcu__semaphore_params p;
    PTXCU__REQUIRE(cu, external_semaphore_wait, semaphore);
    memset(&p, 0, sizeof p);
    p.value = p.key = value;
    p.timeout_ms = 0xffffffffu; /* keyed mutex: no timeout */
    PTXCU__CALL_OPTIONAL(cu, cuWaitExternalSemaphoresAsync, (&semaphore, &p, 1, stream), "(value %llu)",
                         (unsigned long long)value);
}

PTXGEN_API ptxcu_code ptxcu_external_semaphore_release(ptxcu *cu, ptxcu_external_semaphore semaphore) {
    PTXCU__REQUIRE_READY(cu);
    if (!semaphore) return PTXCU_E_NONE;
    PTXCU__CALL_OPTIONAL(cu, cuDestroyExternalSemaphore, (semaphore), "()");
}

/* -- OpenGL -- */

static ptxcu_code ptxcu__check_access(ptxcu *cu, const char *function, uint32_t access,
                                      const ptxcu_graphics *resource) {
    if (!resource) return ptxcu__fail_null(cu, function, "resource");
    if (access & ~(uint32_t)(PTXCU_GL_READ | PTXCU_GL_WRITE_DISCARD | PTXCU_GL_SURFACE | PTXCU_GL_GATHER))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: access is 0x%x, must be a sum of PTXCU_GL_ flags",
                           function, (unsigned)access);
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_gl_register_buffer(ptxcu *cu, uint32_t buffer, uint32_t access,
                                               ptxcu_graphics *resource) {
    if (resource) *resource = NULL;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_access(cu, "ptxcu_gl_register_buffer", access, resource));
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsGLRegisterBuffer, (resource, buffer, access), "(%u)",
                         (unsigned)buffer);
}

PTXGEN_API ptxcu_code ptxcu_gl_register_image(ptxcu *cu, uint32_t image, uint32_t target, uint32_t access,
                                              ptxcu_graphics *resource) {
    if (resource) *resource = NULL;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_access(cu, "ptxcu_gl_register_image", access, resource));
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsGLRegisterImage, (resource, image, target, access),
                         "(%u, target 0x%x)", (unsigned)image, (unsigned)target);
}

PTXGEN_API ptxcu_code ptxcu_graphics_map(ptxcu *cu, uint32_t n, ptxcu_graphics *resources,
                                         ptxcu_stream stream) {
    PTXCU__REQUIRE(cu, graphics_map, resources);
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsMapResources, (n, resources, stream), "(%u resources)", (unsigned)n);
}

PTXGEN_API ptxcu_code ptxcu_graphics_unmap(ptxcu *cu, uint32_t n, ptxcu_graphics *resources,
                                           ptxcu_stream stream) {
    PTXCU__REQUIRE(cu, graphics_unmap, resources);
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsUnmapResources, (n, resources, stream), "(%u resources)", (unsigned)n);
}

PTXGEN_API ptxcu_code ptxcu_graphics_buffer(ptxcu *cu, ptxcu_graphics resource, ptxcu_buffer *buffer) {
    if (buffer) buffer->address = 0, buffer->bytes = 0;
    PTXCU__REQUIRE(cu, graphics_buffer, buffer);
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsResourceGetMappedPointer_v2,
                         (&buffer->address, &buffer->bytes, resource), "()");
}

PTX__COLD ptxcu_code ptxcu__get_graphics_array(ptxcu *cu, ptxcu_graphics resource, uint32_t index,
                                               uint32_t level, ptxcu_array *array) {
    static const uint32_t types[] = {PTX_U8, PTX_U16, PTX_U32, PTX_S8, PTX_S16, PTX_S32, PTX_F16, PTX_F32};
    ptxcu__array_desc a;
    void *handle = NULL;
    uint32_t i;
    int result = cu->optional.cuGraphicsSubResourceGetMappedArray(&handle, resource, index, level);
    if (result)
        return ptxcu__fail_driver(cu, result, "cuGraphicsSubResourceGetMappedArray(index %u, level %u)",
                                  (unsigned)index, (unsigned)level);
    memset(&a, 0, sizeof a);
    result = cu->optional.cuArray3DGetDescriptor_v2(&a, handle);
    if (result) return ptxcu__fail_driver(cu, result, "cuArray3DGetDescriptor_v2()");
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (ptxcu__array_format_of(types[i]) == a.format) array->desc.type = types[i];
    if (!array->desc.type)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_graphics_array: the image has format 0x%x, which has no type here",
                           (unsigned)a.format);
    array->handle = handle;
    array->desc.channels = a.channels;
    array->desc.width = (uint32_t)a.width;
    array->desc.height = (uint32_t)a.height;
    array->desc.layers = a.flags & 1 ? (uint32_t)a.depth / (a.flags & 4 ? 6 : 1) : 0;
    array->desc.depth = a.flags & 5 ? 0 : (uint32_t)a.depth;
    array->desc.flags = (a.flags & 4 ? (uint32_t)PTXCU_ARRAY_CUBE : 0)
                        | (a.flags & 2 ? (uint32_t)PTXCU_ARRAY_SURFACE : 0)
                        | (a.flags & 8 ? (uint32_t)PTXCU_ARRAY_GATHER : 0);
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_graphics_array(ptxcu *cu, ptxcu_graphics resource, uint32_t index, uint32_t level,
                                           ptxcu_array *array) {
    if (array) memset(array, 0, sizeof *array);
    PTXCU__REQUIRE_READY(cu);
    PTXCU__REQUIRE_SYMBOL(cu, cuGraphicsSubResourceGetMappedArray);
    PTXCU__REQUIRE_SYMBOL(cu, cuArray3DGetDescriptor_v2);
    PTXCU__REQUIRE(cu, graphics_array, array);
    PTXCU__IN_CONTEXT(cu, ptxcu__get_graphics_array(cu, resource, index, level, array));
}

PTXGEN_API ptxcu_code ptxcu_graphics_unregister(ptxcu *cu, ptxcu_graphics resource) {
    PTXCU__REQUIRE_READY(cu);
    if (!resource) return PTXCU_E_NONE;
    PTXCU__CALL_OPTIONAL(cu, cuGraphicsUnregisterResource, (resource), "()");
}

/* -- tensors -- */

static int ptxcu__multiply(uint64_t a, uint64_t b, uint64_t *product) {
    if (b && a > UINT64_MAX / b) return 0;
    *product = a * b;
    return 1;
}

/* Count the elements from the first to the last in memory, gaps included; 0 for an empty tensor. Returns 0 on
   overflow. */
static int ptxcu__count_span(uint32_t rank, const uint64_t *shape, const uint64_t *stride, uint64_t *span) {
    uint64_t last = 0, part = 0;
    uint32_t i;
    *span = 0;
    for (i = 0; i < rank; i++)
        if (shape[i] == 0) return 1;
    for (i = 0; i < rank; i++) {
        if (!ptxcu__multiply(shape[i] - 1, stride[i], &part) || last > UINT64_MAX - 1 - part) return 0;
        last += part;
    }
    *span = last + 1;
    return 1;
}

typedef struct ptxcu__text {
    char s[128];
} ptxcu__text;

/* "[2, 8, 64]" */
static ptxcu__text ptxcu__format_shape(uint32_t rank, const uint64_t *shape) {
    ptxcu__text t;
    size_t n = 1;
    uint32_t i;
    strcpy(t.s, "[");
    for (i = 0; i < rank && i < PTXCU_RANK_MAX; i++)
        n += (size_t)snprintf(t.s + n, sizeof t.s - n, i ? ", %llu" : "%llu", (unsigned long long)shape[i]);
    strcpy(t.s + n, "]");
    return t;
}

/* Check type and shape of a dense tensor; compute its strides and bytes. */
static ptxcu_code ptxcu__check_shape(ptxcu *cu, const char *function, uint32_t type, uint32_t rank,
                                     const uint64_t *shape, uint64_t *stride, uint64_t *bytes) {
    uint64_t elements = 1;
    uint32_t i, size = type < (uint32_t)PTX__TYPE_COUNT ? ptx_type_bytes((ptx_type)type) : 0;
    if (!size)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: type is %s, not a ptx_type of whole bytes", function,
                           ptx_type_name((ptx_type)type));
    if (rank < 1 || rank > PTXCU_RANK_MAX)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: rank is %u, must be 1 to %d", function, (unsigned)rank,
                           PTXCU_RANK_MAX);
    if (!shape) return ptxcu__fail_null(cu, function, "shape");
    for (i = 0; i < rank;
         i++) /* a size of 0 makes the tensor empty, and prevents overflow by the other sizes */
        if (shape[i] == 0) elements = 0;
    for (i = rank; i-- > 0;) {
        stride[i] = elements;
        if (!ptxcu__multiply(elements, shape[i], &elements)) elements = UINT64_MAX;
    }
    if (!ptxcu__multiply(elements, size, bytes) || *bytes > SIZE_MAX - 1)
        return ptxcu__fail(cu, PTXCU_E_OVERFLOW, "%s: shape %s of %s passes %u bits of bytes", function,
                           ptxcu__format_shape(rank, shape).s, ptx_type_name((ptx_type)type),
                           (unsigned)sizeof(size_t) * 8);
    if (elements == 0)
        for (i = rank; i-- > 0;) stride[i] = 1;
    return PTXCU_E_NONE;
}

/* Add a allocation to the table and make *t refer to it, with a new serial number. */
static ptxcu_code ptxcu__add_allocation(ptxcu *cu, uint64_t address, uint64_t bytes, uint32_t kind,
                                        ptxcu_tensor *t) {
    ptxcu__allocation *b = NULL, *grown;
    uint32_t i, capacity;
    ptxcu__lock(&cu->table_mutex);
    for (i = 0; i < cu->allocation_count && cu->allocations[i].kind != PTXCU__FREE;) i++;
    if (i == cu->allocation_capacity) {
        capacity = i ? i * 2 : 16;
        grown = (ptxcu__allocation *)cu->alloc(cu->alloc_user, cu->allocations, i * sizeof *b,
                                               capacity * sizeof *b);
        if (grown) {
            cu->allocations = grown;
            cu->allocation_capacity = capacity;
        }
    }
    if (i < cu->allocation_capacity) {
        b = &cu->allocations[i];
        memset(b, 0, sizeof *b);
        b->address = address;
        b->bytes = bytes;
        b->kind = kind;
        b->serial = ++cu->serial;
        if (i == cu->allocation_count) cu->allocation_count++;
        t->owner = cu;
        t->allocation = i;
        t->serial = b->serial;
    }
    ptxcu__unlock(&cu->table_mutex);
    return b ? PTXCU_E_NONE : ptxcu__fail_memory(cu, sizeof *b);
}

/* The index of the first freed tensor of an address table, or UINT32_MAX. Requires table_mutex. */
static uint32_t ptxcu__find_freed_tensor(const ptxcu *cu, const ptxcu__allocation *b) {
    uint32_t i;
    for (i = 0; i < b->sequence_tensor_count; i++) {
        const ptxcu_tensor *t = &b->sequence_tensors[i];
        if (t->allocation >= cu->allocation_count || cu->allocations[t->allocation].serial != t->serial)
            return i;
    }
    return UINT32_MAX;
}

static ptxcu_code ptxcu__fail_freed_tensor(ptxcu *cu, const char *function, const char *name, uint32_t index,
                                           uint32_t count) {
    return ptxcu__fail(cu, PTXCU_E_FREED, "%s: %s: %c of sequence %u was freed", function, name,
                       index < count / 2 ? 'k' : 'v', (unsigned)(index % (count / 2)));
}

/* Check that a tensor can be used; *allocation becomes a copy of its allocation. */
static ptxcu_code ptxcu__check_tensor(ptxcu *cu, const char *function, const char *name,
                                      const ptxcu_tensor *t, ptxcu__allocation *allocation) {
    uint64_t span, size;
    int exists;
    if (!t) return ptxcu__fail_null(cu, function, name);
    if (!t->owner) return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %s is a zero tensor", function, name);
    if (t->owner != cu)
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: %s is a tensor of another handle", function, name);
    ptxcu__lock(&cu->table_mutex);
    exists = t->allocation < cu->allocation_count && cu->allocations[t->allocation].serial == t->serial
             && t->serial;
    if (exists) *allocation = cu->allocations[t->allocation];
    ptxcu__unlock(&cu->table_mutex);
    if (!exists) return ptxcu__fail(cu, PTXCU_E_FREED, "%s: %s was freed", function, name);
    /* The caller can write the public fields, so check them too. */
    size = t->type < (uint32_t)PTX__TYPE_COUNT ? ptx_type_bytes((ptx_type)t->type) : 0;
    if (t->rank < 1 || t->rank > PTXCU_RANK_MAX || !size
        || !ptxcu__count_span(t->rank, t->shape, t->stride, &span) || !ptxcu__multiply(span, size, &span)
        || t->address < allocation->address || t->address - allocation->address > allocation->bytes
        || span > allocation->bytes - (t->address - allocation->address))
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: %s does not lie in its memory: its fields were changed",
                           function, name);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__tensor_create(ptxcu *cu, ptx_type type, uint32_t rank, const uint64_t *shape,
                                       ptxcu_tensor *tensor) {
    ptxcu_tensor t;
    ptxcu_buffer memory;
    ptxcu_code code = PTXCU_E_NONE;
    uint64_t bytes;
    memset(&t, 0, sizeof t);
    PTXCU__TRY(ptxcu__check_shape(cu, "ptxcu_tensor_create", (uint32_t)type, rank, shape, t.stride, &bytes));
    PTXCU__TRY(ptxcu_alloc(cu, (size_t)bytes, &memory));
    code = ptxcu__add_allocation(cu, memory.address, bytes, bytes ? PTXCU__OWNED : PTXCU__BORROWED, &t);
    if (code != PTXCU_E_NONE) {
        cu->driver.cuMemFree_v2(memory.address);
        return code;
    }
    memcpy(t.shape, shape, rank * sizeof *shape);
    t.address = memory.address;
    t.rank = rank;
    t.type = (uint32_t)type;
    *tensor = t;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_create(ptxcu *cu, ptx_type type, uint32_t rank, const uint64_t *shape,
                                          ptxcu_tensor *tensor) {
    if (tensor) memset(tensor, 0, sizeof *tensor);
    PTXCU__REQUIRE(cu, tensor_create, tensor);
    PTXCU__IN_CONTEXT(cu, ptxcu__tensor_create(cu, type, rank, shape, tensor));
}

/* Check that an address is device memory of this context. */
static ptxcu_code ptxcu__check_memory_owner(ptxcu *cu, const char *function, uint64_t address) {
    void *context = NULL;
    int result = cu->driver.cuPointerGetAttribute(&context, 1, address); /* CU_POINTER_ATTRIBUTE_CONTEXT */
    if (result == 1)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: memory at 0x%llx is not the driver's", function,
                           (unsigned long long)address);
    if (result)
        return ptxcu__fail_driver(cu, result, "cuPointerGetAttribute(context of 0x%llx)",
                                  (unsigned long long)address);
    if (context && context != cu->context) /* pool memory and mapped memory have no context */
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: memory at 0x%llx is of another device or context",
                           function, (unsigned long long)address);
    return PTXCU_E_NONE;
}

/* In order of increasing stride, each stride must exceed the extent of all smaller ones. This sufficient
   condition gives each element its own address. */
static int ptxcu__has_distinct_elements(uint32_t rank, const uint64_t *shape, const uint64_t *stride) {
    uint64_t reach = 1, width = 0, part;
    uint32_t done, i, next;
    for (done = 0; done < (1u << rank) - 1;) {
        next = rank;
        for (i = 0; i < rank; i++)
            if (!(done >> i & 1) && (next == rank || stride[i] < stride[next])) next = i;
        done |= 1u << next;
        if (shape[next] <= 1) continue;
        width = stride[next];
        if (width < reach || !ptxcu__multiply(width, shape[next] - 1, &part) || part > UINT64_MAX - reach)
            return 0;
        reach += part;
    }
    return 1;
}

PTX__COLD ptxcu_code ptxcu__tensor_wrap(ptxcu *cu, ptxcu_buffer memory, ptx_type type, uint32_t rank,
                                        const uint64_t *shape, const uint64_t *stride, ptxcu_tensor *tensor) {
    static const char *const name = "ptxcu_tensor_wrap";
    ptxcu_tensor t;
    ptxcu_code code = PTXCU_E_NONE;
    uint64_t bytes, span, size;
    memset(&t, 0, sizeof t);
    PTXCU__TRY(ptxcu__check_shape(cu, name, (uint32_t)type, rank, shape, t.stride, &bytes));
    size = ptx_type_bytes(type);
    if (stride) memcpy(t.stride, stride, rank * sizeof *stride);
    memcpy(t.shape, shape, rank * sizeof *shape);
    if (!ptxcu__count_span(rank, t.shape, t.stride, &span) || !ptxcu__multiply(span, size, &bytes))
        return ptxcu__fail(cu, PTXCU_E_OVERFLOW, "%s: shape %s with strides %s passes 64 bits of bytes", name,
                           ptxcu__format_shape(rank, t.shape).s, ptxcu__format_shape(rank, t.stride).s);
    if (bytes > memory.bytes)
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: shape %s of %s needs %llu bytes, memory has %llu", name,
                           ptxcu__format_shape(rank, t.shape).s, ptx_type_name(type),
                           (unsigned long long)bytes, (unsigned long long)memory.bytes);
    if (memory.address % size)
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: memory at 0x%llx is not aligned to %s", name,
                           (unsigned long long)memory.address, ptx_type_name(type));
    if (memory.bytes > UINT64_MAX - memory.address)
        return ptxcu__fail(cu, PTXCU_E_OVERFLOW, "%s: memory at 0x%llx of %llu bytes passes 2^64", name,
                           (unsigned long long)memory.address, (unsigned long long)memory.bytes);
    if (span && !ptxcu__has_distinct_elements(rank, t.shape, t.stride))
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: elements of shape %s with strides %s overlap", name,
                           ptxcu__format_shape(rank, t.shape).s, ptxcu__format_shape(rank, t.stride).s);
    if (bytes) code = ptxcu__check_memory_owner(cu, name, memory.address);
    if (code == PTXCU_E_NONE && bytes)
        code = ptxcu__check_memory_owner(cu, name, memory.address + (bytes - 1));
    if (code == PTXCU_E_NONE)
        code = ptxcu__add_allocation(cu, memory.address, memory.bytes, PTXCU__BORROWED, &t);
    if (code != PTXCU_E_NONE) return code;
    t.address = memory.address;
    t.rank = rank;
    t.type = (uint32_t)type;
    *tensor = t;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_wrap(ptxcu *cu, ptxcu_buffer memory, ptx_type type, uint32_t rank,
                                        const uint64_t *shape, const uint64_t *stride, ptxcu_tensor *tensor) {
    if (tensor) memset(tensor, 0, sizeof *tensor);
    PTXCU__REQUIRE(cu, tensor_wrap, tensor);
    PTXCU__IN_CONTEXT(cu, ptxcu__tensor_wrap(cu, memory, type, rank, shape, stride, tensor));
}

/* Wait for the context, then free an allocation that no tensor and no result uses. On failure it stays in
   use. */
static ptxcu_code ptxcu__free_allocation(ptxcu *cu, uint32_t index) {
    ptxcu_buffer b;
    ptxcu_tensor *tensors = NULL;
    size_t bytes = 0;
    ptxcu_code code = PTXCU_E_NONE;
    memset(&b, 0, sizeof b);
    ptxcu__lock(&cu->table_mutex);
    if (cu->allocations[index].kind == PTXCU__OWNED) b.address = cu->allocations[index].address;
    ptxcu__unlock(&cu->table_mutex);
    code = ptxcu_free(cu, b);
    ptxcu__lock(&cu->table_mutex);
    if (code == PTXCU_E_NONE) {
        tensors = cu->allocations[index].sequence_tensors;
        bytes = cu->allocations[index].sequence_tensor_count * sizeof *tensors;
        cu->allocations[index].sequence_tensors = NULL;
        cu->allocations[index].sequence_tensor_count = 0;
        cu->allocations[index].kind = PTXCU__FREE;
    }
    ptxcu__unlock(&cu->table_mutex);
    ptxcu__free_host(cu, tensors, bytes);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_tensor_free(ptxcu *cu, ptxcu_tensor *tensor) {
    static const char *const name = "ptxcu_tensor_free";
    ptxcu__allocation b;
    ptxcu_code code = PTXCU_E_NONE;
    uint32_t pins;
    int exists;
    PTXCU__REQUIRE_READY(cu);
    if (!tensor || !tensor->owner) return PTXCU_E_NONE;
    PTXCU__TRY(ptxcu__check_tensor(cu, name, "tensor", tensor, &b));
    if (tensor->view)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: a view cannot be freed; free the tensor it is of",
                           name);
    ptxcu__lock(&cu->table_mutex);
    /* another thread may have freed it */
    exists = cu->allocations[tensor->allocation].serial == tensor->serial;
    if (exists) cu->allocations[tensor->allocation].serial = 0;
    pins = cu->allocations[tensor->allocation].pins;
    ptxcu__unlock(&cu->table_mutex);
    if (!exists) return ptxcu__fail(cu, PTXCU_E_FREED, "%s: tensor was freed", name);
    if (!pins) {
        code = ptxcu__free_allocation(cu, tensor->allocation);
        if (code != PTXCU_E_NONE) { /* undo: the tensor stays valid */
            ptxcu__lock(&cu->table_mutex);
            cu->allocations[tensor->allocation].serial = tensor->serial;
            ptxcu__unlock(&cu->table_mutex);
            return code;
        }
    }
    memset(tensor, 0, sizeof *tensor);
    return PTXCU_E_NONE;
}

/* Begin a view: check the arguments and copy the tensor to *t. */
static ptxcu_code ptxcu__begin_view(ptxcu *cu, const char *function, const ptxcu_tensor *tensor, uint32_t dim,
                                    ptxcu_tensor *view, ptxcu_tensor *t) {
    ptxcu__allocation b;
    PTXCU__REQUIRE_READY(cu);
    if (!view) return ptxcu__fail_null(cu, function, "view");
    PTXCU__TRY(ptxcu__check_tensor(cu, function, "tensor", tensor, &b));
    if (dim >= tensor->rank)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: dimension %u, tensor %s has %u, counted from 0",
                           function, (unsigned)dim, ptxcu__format_shape(tensor->rank, tensor->shape).s,
                           (unsigned)tensor->rank);
    *t = *tensor;
    t->view = 1;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_narrow(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t dim, uint64_t first,
                                          uint64_t count, ptxcu_tensor *view) {
    ptxcu_tensor t;
    PTXCU__TRY(ptxcu__begin_view(cu, "ptxcu_tensor_narrow", tensor, dim, view, &t));
    if (first > t.shape[dim] || count > t.shape[dim] - first)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_tensor_narrow: %llu indices from %llu on, dimension %u of %s has %llu",
                           (unsigned long long)count, (unsigned long long)first, (unsigned)dim,
                           ptxcu__format_shape(t.rank, t.shape).s, (unsigned long long)t.shape[dim]);
    /* An empty view keeps the address, which must stay inside the allocation. */
    if (count && ptxcu_tensor_bytes(&t))
        t.address += first * t.stride[dim] * ptx_type_bytes((ptx_type)t.type);
    t.shape[dim] = count;
    *view = t;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_select(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t dim, uint64_t index,
                                          ptxcu_tensor *view) {
    ptxcu_tensor t;
    uint32_t i;
    PTXCU__TRY(ptxcu__begin_view(cu, "ptxcu_tensor_select", tensor, dim, view, &t));
    if (index >= t.shape[dim])
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                           "ptxcu_tensor_select: index %llu, dimension %u of %s has %llu",
                           (unsigned long long)index, (unsigned)dim, ptxcu__format_shape(t.rank, t.shape).s,
                           (unsigned long long)t.shape[dim]);
    if (ptxcu_tensor_bytes(&t)) t.address += index * t.stride[dim] * ptx_type_bytes((ptx_type)t.type);
    t.shape[dim] = 1;
    if (t.rank > 1) {
        t.rank--;
        for (i = dim; i < t.rank; i++) t.shape[i] = t.shape[i + 1], t.stride[i] = t.stride[i + 1];
        t.shape[t.rank] = t.stride[t.rank] = 0;
    }
    *view = t;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_transpose(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t a, uint32_t b,
                                             ptxcu_tensor *view) {
    ptxcu_tensor t;
    PTXCU__TRY(ptxcu__begin_view(cu, "ptxcu_tensor_transpose", tensor, a > b ? a : b, view, &t));
    *view = t;
    view->shape[a] = t.shape[b];
    view->shape[b] = t.shape[a];
    view->stride[a] = t.stride[b];
    view->stride[b] = t.stride[a];
    return PTXCU_E_NONE;
}

/* Whether the elements are row-major without gaps. */
static int ptxcu__is_dense(const ptxcu_tensor *t) {
    uint64_t next = 1;
    uint32_t i;
    if (!ptxcu_tensor_bytes(t)) return 1;
    for (i = t->rank; i-- > 0;) {
        if (t->shape[i] > 1 && t->stride[i] != next) return 0;
        next *= t->shape[i];
    }
    return 1;
}

PTXGEN_API ptxcu_code ptxcu_tensor_reshape(ptxcu *cu, const ptxcu_tensor *tensor, uint32_t rank,
                                           const uint64_t *shape, ptxcu_tensor *view) {
    static const char *const name = "ptxcu_tensor_reshape";
    ptxcu_tensor t;
    uint64_t bytes;
    PTXCU__TRY(ptxcu__begin_view(cu, name, tensor, 0, view, &t));
    if (!ptxcu__is_dense(&t))
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: tensor %s with strides %s is not dense", name,
                           ptxcu__format_shape(t.rank, t.shape).s, ptxcu__format_shape(t.rank, t.stride).s);
    memset(t.stride, 0, sizeof t.stride);
    PTXCU__TRY(ptxcu__check_shape(cu, name, t.type, rank, shape, t.stride, &bytes));
    if (bytes != ptxcu_tensor_bytes(tensor))
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: shape %s does not have as many elements as %s", name,
                           ptxcu__format_shape(rank, shape).s, ptxcu__format_shape(t.rank, t.shape).s);
    memset(t.shape, 0, sizeof t.shape);
    memcpy(t.shape, shape, rank * sizeof *shape);
    t.rank = rank;
    *view = t;
    return PTXCU_E_NONE;
}

PTXGEN_API size_t ptxcu_tensor_bytes(const ptxcu_tensor *tensor) {
    uint64_t n = 1;
    uint32_t i, size;
    if (!tensor || tensor->rank == 0 || tensor->rank > PTXCU_RANK_MAX) return 0;
    size = tensor->type < (uint32_t)PTX__TYPE_COUNT ? ptx_type_bytes((ptx_type)tensor->type) : 0;
    for (i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] == 0) return 0;
    for (i = 0; i < tensor->rank; i++)
        if (!ptxcu__multiply(n, tensor->shape[i], &n)) return SIZE_MAX;
    return ptxcu__multiply(n, size, &n) && n <= SIZE_MAX ? (size_t)n : SIZE_MAX;
}

/* Check that a stream belongs to this handle's context. The driver checks this for launches, but not for all
   copies. */
static ptxcu_code ptxcu__check_stream(ptxcu *cu, const char *function, ptxcu_stream stream) {
    void *context = NULL;
    int result = stream ? cu->driver.cuStreamGetCtx(stream, &context) : 0;
    if (!stream || (result == 0 && context == cu->context)) return PTXCU_E_NONE;
    if (result == 0 || result == 400) /* CUDA_ERROR_INVALID_HANDLE */
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: the stream belongs to another context", function);
    return result == 801 ? PTXCU_E_NONE /* CUDA_ERROR_NOT_SUPPORTED: a stream of a green context */
                         : ptxcu__fail_driver(cu, result, "cuStreamGetCtx()");
}

/* Copy between dense host memory and a tensor, one contiguous part at a time. */
static ptxcu_code ptxcu__copy_tensor(ptxcu *cu, const char *function, const ptxcu_tensor *t, char *host,
                                     int is_upload, ptxcu_stream stream) {
    uint64_t shape[PTXCU_RANK_MAX], stride[PTXCU_RANK_MAX], indices[PTXCU_RANK_MAX], address = t->address;
    uint64_t size = ptx_type_bytes((ptx_type)t->type), part;
    uint32_t rank = 0, i;
    int result;
    for (i = 0; i < t->rank; i++) { /* merge neighbouring dimensions without a gap */
        if (t->shape[i] == 1) continue;
        if (rank && stride[rank - 1] == t->stride[i] * t->shape[i]) {
            shape[rank - 1] *= t->shape[i];
        } else {
            shape[rank] = t->shape[i];
            rank++;
        }
        stride[rank - 1] = t->stride[i];
        indices[rank - 1] = 0;
    }
    part = size;
    if (rank && stride[rank - 1] == 1) part = size * shape[--rank];
    for (;;) {
        result = is_upload ? cu->driver.cuMemcpyHtoDAsync_v2(address, host, (size_t)part, stream)
                           : cu->driver.cuMemcpyDtoHAsync_v2(host, address, (size_t)part, stream);
        if (result)
            return ptxcu__fail_driver(cu, result, "%s: %s(%llu bytes)", function,
                                      is_upload ? "cuMemcpyHtoDAsync_v2" : "cuMemcpyDtoHAsync_v2",
                                      (unsigned long long)part);
        host += part;
        for (i = rank; i-- > 0;) {
            address += stride[i] * size;
            if (++indices[i] < shape[i]) break;
            address -= stride[i] * size * shape[i];
            indices[i] = 0;
        }
        if (i == UINT32_MAX) return PTXCU_E_NONE;
    }
}

static ptxcu_code ptxcu__transfer_tensor(ptxcu *cu, const char *function, const ptxcu_tensor *t,
                                         const char *name, void *host, size_t bytes, int is_upload, int wait,
                                         ptxcu_stream stream) {
    ptxcu__allocation b;
    size_t expected;
    ptxcu_code code;
    int result;
    code = ptxcu__check_tensor(cu, function, name, t, &b);
    if (code == PTXCU_E_NONE) code = ptxcu__check_stream(cu, function, stream);
    if (code != PTXCU_E_NONE) return code;
    expected = ptxcu_tensor_bytes(t);
    if (bytes != expected)
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: %llu bytes are given, %s %s of %s has %llu", function,
                           (unsigned long long)bytes, name, ptxcu__format_shape(t->rank, t->shape).s,
                           ptx_type_name((ptx_type)t->type), (unsigned long long)expected);
    if (!host && bytes) return ptxcu__fail_null(cu, function, is_upload ? "from" : "to");
    if (bytes) code = ptxcu__copy_tensor(cu, function, t, (char *)host, is_upload, stream);
    if (code != PTXCU_E_NONE || !wait) return code;
    result = cu->driver.cuStreamSynchronize(stream);
    return result ? ptxcu__fail_driver(cu, result, "%s: cuStreamSynchronize()", function) : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_tensor_upload(ptxcu *cu, const ptxcu_tensor *to, const void *from, size_t bytes,
                                          ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__transfer_tensor(cu, "ptxcu_tensor_upload", to, "to", (void *)(uintptr_t)from,
                                                 bytes, 1, 0, stream));
}

PTXGEN_API ptxcu_code ptxcu_tensor_download(ptxcu *cu, void *to, const ptxcu_tensor *from, size_t bytes,
                                            ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(
        cu, ptxcu__transfer_tensor(cu, "ptxcu_tensor_download", from, "from", to, bytes, 0, 0, stream));
}

PTXGEN_API ptxcu_code ptxcu_tensor_write(ptxcu *cu, const ptxcu_tensor *to, const void *from, size_t bytes,
                                         ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__transfer_tensor(cu, "ptxcu_tensor_write", to, "to", (void *)(uintptr_t)from,
                                                 bytes, 1, 1, stream));
}

PTXGEN_API ptxcu_code ptxcu_tensor_read(ptxcu *cu, void *to, const ptxcu_tensor *from, size_t bytes,
                                        ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu,
                      ptxcu__transfer_tensor(cu, "ptxcu_tensor_read", from, "from", to, bytes, 0, 1, stream));
}

/* -- streams and events -- */

PTXGEN_API ptxcu_code ptxcu_stream_create(ptxcu *cu, ptxcu_stream *stream) {
    if (stream) *stream = NULL;
    PTXCU__REQUIRE(cu, stream_create, stream);
    PTXCU__CALL_DRIVER(cu, cuStreamCreate, (stream, 1), "(non-blocking)");
}

PTXGEN_API ptxcu_code ptxcu_stream_destroy(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__REQUIRE_READY(cu);
    if (!stream) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuStreamDestroy_v2, (stream), "()");
}

PTXGEN_API ptxcu_code ptxcu_stream_sync(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__CALL_DRIVER(cu, cuStreamSynchronize, (stream), "()");
}

PTXGEN_API ptxcu_code ptxcu_stream_wait_event(ptxcu *cu, ptxcu_stream stream, ptxcu_event event) {
    PTXCU__REQUIRE(cu, stream_wait_event, event);
    PTXCU__CALL_DRIVER(cu, cuStreamWaitEvent, (stream, event, 0), "()");
}

PTXGEN_API ptxcu_code ptxcu_graph_begin(ptxcu *cu, ptxcu_stream stream) {
    PTXCU__REQUIRE(cu, graph_begin, stream);
    PTXCU__CALL_DRIVER(cu, cuStreamBeginCapture_v2, (stream, 1), "(thread local)");
}

PTX__COLD ptxcu_code ptxcu__graph_end(ptxcu *cu, ptxcu_stream stream, ptxcu_graph *graph) {
    void *captured = NULL;
    int result, destroy_result;
    result = cu->driver.cuStreamEndCapture(stream, &captured);
    if (result) return ptxcu__fail_driver(cu, result, "cuStreamEndCapture()");
    result = graph ? cu->driver.cuGraphInstantiateWithFlags(graph, captured, 0) : 0;
    destroy_result = cu->driver.cuGraphDestroy(captured);
    if (destroy_result) cu->driver.cuGraphDestroy(captured); /* retry once */
    PTXCU__REQUIRE(cu, graph_end, graph);
    if (destroy_result && !result) cu->driver.cuGraphExecDestroy(*graph);
    if (!destroy_result && !result) return PTXCU_E_NONE;
    *graph = NULL;
    if (result) return ptxcu__fail_driver(cu, result, "cuGraphInstantiateWithFlags()");
    return ptxcu__fail_driver(cu, destroy_result, "cuGraphDestroy()");
}

PTXGEN_API ptxcu_code ptxcu_graph_end(ptxcu *cu, ptxcu_stream stream, ptxcu_graph *graph) {
    if (graph) *graph = NULL;
    PTXCU__REQUIRE(cu, graph_end, stream);
    PTXCU__IN_CONTEXT(cu, ptxcu__graph_end(cu, stream, graph));
}

PTXGEN_API ptxcu_code ptxcu_graph_launch(ptxcu *cu, ptxcu_graph graph, ptxcu_stream stream) {
    PTXCU__REQUIRE(cu, graph_launch, graph);
    PTXCU__CALL_DRIVER(cu, cuGraphLaunch, (graph, stream), "()");
}

PTXGEN_API ptxcu_code ptxcu_graph_destroy(ptxcu *cu, ptxcu_graph graph) {
    PTXCU__REQUIRE_READY(cu);
    if (!graph) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuGraphExecDestroy, (graph), "()");
}

PTXGEN_API ptxcu_code ptxcu_event_create(ptxcu *cu, ptxcu_event *event) {
    if (event) *event = NULL;
    PTXCU__REQUIRE(cu, event_create, event);
    PTXCU__CALL_DRIVER(cu, cuEventCreate, (event, 0), "()");
}

PTXGEN_API ptxcu_code ptxcu_event_destroy(ptxcu *cu, ptxcu_event event) {
    PTXCU__REQUIRE_READY(cu);
    if (!event) return PTXCU_E_NONE;
    PTXCU__CALL_DRIVER(cu, cuEventDestroy_v2, (event), "()");
}

PTXGEN_API ptxcu_code ptxcu_event_record(ptxcu *cu, ptxcu_event event, ptxcu_stream stream) {
    PTXCU__REQUIRE(cu, event_record, event);
    PTXCU__CALL_DRIVER(cu, cuEventRecord, (event, stream), "()");
}

PTXGEN_API ptxcu_code ptxcu_event_sync(ptxcu *cu, ptxcu_event event) {
    PTXCU__REQUIRE(cu, event_sync, event);
    PTXCU__CALL_DRIVER(cu, cuEventSynchronize, (event), "()");
}

PTXGEN_API ptxcu_code ptxcu_event_elapsed_ms(ptxcu *cu, ptxcu_event start, ptxcu_event stop, float *ms) {
    if (ms) *ms = 0;
    PTXCU__REQUIRE_READY(cu);
    if (!start || !stop || !ms) return ptxcu__fail_null(cu, "ptxcu_event_elapsed_ms", "an argument");
    PTXCU__CALL_DRIVER(cu, cuEventElapsedTime, (ms, start, stop), "()");
}

/* -- programs -- */

/* Append the text of the first PTX line whose number is in the compiler's log. */
static void ptxcu__append_ptx_line(ptxcu *cu, const char *log, const char *ptx) {
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

/* -- machine code on disk, see DISK and TRUST -- */

#define PTXCU__CACHE_FILE_MAX ((size_t)4 << 20)
#define PTXCU__CACHE_WAYS 4u /* files that may hold a given text */
/* The header of a file. The text follows, then the machine code. */
typedef struct ptxcu__cache_header {
    char magic[8];
    uint64_t check; /* checksum of the following fields and the machine code */
    uint64_t text_bytes, image_bytes;
    uint32_t driver, target, capability, unused;
} ptxcu__cache_header;
#define PTXCU__CHECKSUM_BEGIN offsetof(ptxcu__cache_header, text_bytes)

/* FNV-1a, 8 bytes at a time */
static uint64_t ptxcu__hash_bytes(const void *data, size_t bytes, uint64_t seed) {
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

static uint64_t ptxcu__compute_checksum(const ptxcu__cache_header *k, const void *image, size_t bytes) {
    const char *fields = (const char *)k + PTXCU__CHECKSUM_BEGIN;
    return ptxcu__hash_bytes(image, bytes, ptxcu__hash_bytes(fields, sizeof *k - PTXCU__CHECKSUM_BEGIN, 0));
}

static void ptxcu__make_cache_header(const ptxcu *cu, const char *ptx, ptxcu__cache_header *k) {
    memset(k, 0, sizeof *k);
    memcpy(k->magic, "PTXGEN03", 8);
    k->text_bytes = strlen(ptx);
    k->driver = (uint32_t)cu->info.driver_version;
    k->target = cu->info.target;
    k->capability = cu->capability;
}

static int ptxcu__has_same_key(const ptxcu__cache_header *a, const ptxcu__cache_header *b) {
    return a->text_bytes == b->text_bytes && a->driver == b->driver && a->target == b->target
           && a->capability == b->capability;
}

/* Format the path of file `way` of a hash's set. Sets are disjoint; all have at most cache_files files. */
static void ptxcu__format_cache_path(const ptxcu *cu, uint64_t hash, uint32_t way, char *name, size_t size) {
    uint32_t ways = cu->cache_files < PTXCU__CACHE_WAYS ? cu->cache_files : PTXCU__CACHE_WAYS;
    uint64_t slot = hash % (cu->cache_files / ways) * ways + way % ways;
    snprintf(name, size, "%s/ptxgen-%06lx.cubin", cu->cache_folder, (unsigned long)slot);
}

/* Whether the next bytes of the file are the text. */
static int ptxcu__has_text(ptxcu__file *f, const char *ptx, size_t bytes) {
    char part[4096];
    size_t n;
    for (; bytes; bytes -= n, ptx += n) {
        n = bytes < sizeof part ? bytes : sizeof part;
        if (!ptxcu__file_read(f, part, n) || memcmp(part, ptx, n) != 0) return 0;
    }
    return 1;
}

/* Read the machine code of a text from a file. Returns an allocation, or NULL if the file holds another text
   or is not usable. *write_time: 0 if the file is missing, damaged or not trusted, so that it is replaced
   first. */
static void *ptxcu__read_cache_file(ptxcu *cu, const char *name, const ptxcu__cache_header *want,
                                    const char *ptx, size_t *bytes, uint64_t *write_time) {
    ptxcu__cache_header k;
    ptxcu__file f;
    void *image = NULL;
    *write_time = 0;
    if (!ptxcu__file_open(name, &f)) return NULL;
    if (f.bytes > sizeof k && f.bytes <= PTXCU__CACHE_FILE_MAX && ptxcu__file_read(&f, &k, sizeof k)
        && memcmp(k.magic, want->magic, sizeof k.magic) == 0 && k.text_bytes < f.bytes - sizeof k
        && k.image_bytes == f.bytes - sizeof k - k.text_bytes) {
        *write_time = f.modified;
        if (ptxcu__has_same_key(&k, want) && ptxcu__has_text(&f, ptx, (size_t)k.text_bytes)) {
            *bytes = (size_t)k.image_bytes;
            image = cu->alloc(cu->alloc_user, NULL, 0, *bytes);
            if (image
                && (!ptxcu__file_read(&f, image, *bytes)
                    || ptxcu__compute_checksum(&k, image, *bytes) != k.check)) {
                ptxcu__free_host(cu, image, *bytes);
                image = NULL;
                *write_time = 0;
            }
        }
    }
    ptxcu__file_close(&f);
    return image;
}

/* The name of a temporary file has 16 hexadecimal digits. */
#define PTXCU__TEMPORARY "ptxgen-"
static int ptxcu__is_temporary(const char *name) {
    const char *digits = name + sizeof PTXCU__TEMPORARY - 1;
    return strncmp(name, PTXCU__TEMPORARY, sizeof PTXCU__TEMPORARY - 1) == 0
           && strspn(digits, "0123456789abcdef") == 16 && strcmp(digits + 16, ".tmp") == 0;
}

/* Remove temporary files older than an hour, which killed processes leave. */
static void ptxcu__remove_stale_files(const ptxcu *cu) {
    char path[600];
    const char *name;
    ptxcu__listing list;
    ptxcu__file f;
    uint64_t now = (uint64_t)time(NULL);
    if (!ptxcu__listing_open(&list, cu->cache_folder)) return;
    while ((name = ptxcu__listing_next(&list)) != NULL) {
        if (!ptxcu__is_temporary(name)) continue;
        snprintf(path, sizeof path, "%s/%.60s", cu->cache_folder, name);
        if (!ptxcu__file_open(path, &f)) continue;
        ptxcu__file_close(&f);
        if (f.modified < now && now - f.modified > 3600) ptxcu__file_remove(path);
    }
    ptxcu__listing_close(&list);
}

/* Write a temporary file and rename it, so that a reader sees the old or the new file. Replaces the oldest
   file of the set that can be replaced. */
static void ptxcu__write_cache_file(ptxcu *cu, ptxcu__cache_header *k, const char *ptx, uint64_t hash,
                                    const void *image, size_t bytes, uint64_t *write_time) {
    char temporary[600], name[600];
    ptxcu__file f;
    uint32_t i, way, oldest, ways = cu->cache_files < PTXCU__CACHE_WAYS ? cu->cache_files : PTXCU__CACHE_WAYS;
    int ok = 0;
    if (!bytes || bytes > PTXCU__CACHE_FILE_MAX - sizeof *k - k->text_bytes) return;
    if (!cu->cleaned) ptxcu__remove_stale_files(cu);
    cu->cleaned = 1;
    k->image_bytes = bytes;
    k->check = ptxcu__compute_checksum(k, image, bytes);
    for (i = 0; i < 4 && !ok; i++) {
        snprintf(temporary, sizeof temporary, "%s/" PTXCU__TEMPORARY "%016llx.tmp", cu->cache_folder,
                 (unsigned long long)ptxcu__get_random());
        ok = ptxcu__file_create(temporary, &f);
    }
    if (!ok) return;
    ok = ptxcu__file_write(&f, k, sizeof *k) && ptxcu__file_write(&f, ptx, (size_t)k->text_bytes)
         && ptxcu__file_write(&f, image, bytes);
    if (!ptxcu__file_close(&f)) ok = 0;
    for (i = 0; i < ways && ok; i++) { /* if the rename fails, as onto a directory, try the next oldest */
        for (oldest = way = 0; way < ways; way++)
            if (write_time[way] < write_time[oldest]) oldest = way;
        ptxcu__format_cache_path(cu, hash, oldest, name, sizeof name);
        if (ptxcu__file_rename(temporary, name)) return;
        write_time[oldest] = UINT64_MAX;
    }
    ptxcu__file_remove(temporary);
}

/* Load a program from its file, or compile it and write the file. Returns 0 if it is not loaded: the caller
   then loads the text, which reports any fault in it. */
static int ptxcu__load_from_folder(ptxcu *cu, const char *ptx, void **module_) {
    ptxcu__cache_header key;
    char name[600];
    void *image, *state = NULL;
    size_t bytes = 0;
    uint64_t write_time[PTXCU__CACHE_WAYS], hash;
    uint32_t way;
    int loaded = 0, missing;
    if (!cu->cache_folder[0] || ptxcu__find_folder_fault(cu->cache_folder, &missing) || missing) return 0;
    ptxcu__make_cache_header(cu, ptx, &key);
    if (key.text_bytes > PTXCU__CACHE_FILE_MAX - sizeof key) return 0;
    hash = ptxcu__hash_bytes(ptx, (size_t)key.text_bytes, key.driver ^ (uint64_t)key.capability << 32);
    for (way = 0; way < PTXCU__CACHE_WAYS && way < cu->cache_files; way++) {
        ptxcu__format_cache_path(cu, hash, way, name, sizeof name);
        image = ptxcu__read_cache_file(cu, name, &key, ptx, &bytes, &write_time[way]);
        if (image) {
            loaded = cu->driver.cuModuleLoadDataEx(module_, image, 0, NULL, NULL) == 0;
            ptxcu__free_host(cu, image, bytes);
            if (loaded) ptxcu__log_note(cu, "read machine code from %s", name);
            if (loaded) return 1;
            write_time[way] = 0; /* the driver refuses the file of this text: replace it first */
        }
    }
    if (cu->driver.cuLinkCreate_v2(0, NULL, NULL, &state) != 0) return 0;
    /* input type 1: CU_JIT_INPUT_PTX */
    if (cu->driver.cuLinkAddData_v2(state, 1, (void *)(uintptr_t)ptx, (size_t)key.text_bytes + 1, "ptxgen", 0,
                                    NULL, NULL)
            == 0
        && cu->driver.cuLinkComplete(state, &image, &bytes) == 0) { /* `state` owns the image */
        loaded = cu->driver.cuModuleLoadDataEx(module_, image, 0, NULL, NULL) == 0;
        if (loaded) {
            ptxcu__log_note(cu, "compiled %llu bytes of PTX for the cache folder",
                            (unsigned long long)key.text_bytes);
            ptxcu__write_cache_file(cu, &key, ptx, hash, image, bytes, write_time);
        }
    }
    if (cu->driver.cuLinkDestroy(state)) cu->driver.cuLinkDestroy(state); /* retry once */
    return loaded;
}

static ptxcu_code ptxcu__load_module(ptxcu *cu, const char *ptx, void **module_) {
    int options[2] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER, ..._SIZE_BYTES; a size is passed as the pointer */
    void *values[2];
    int result;
    size_t length;
    ptxcu__record *r = ptxcu__get_record(cu);
    char *log;
    if (r && !r->log) r->log = (char *)ptxcu__alloc_zeroed(cu, PTXCU__LOG_BYTES);
    if (!r || !r->log) return ptxcu__fail_memory(cu, PTXCU__LOG_BYTES);
    log = r->log;
    log[0] = 0;
    values[0] = log;
    values[1] = (void *)(uintptr_t)PTXCU__LOG_BYTES;
    if (ptxcu__load_from_folder(cu, ptx, module_)) return PTXCU_E_NONE;
    result = cu->driver.cuModuleLoadDataEx(module_, ptx, 2, options, values);
    if (result == 0) ptxcu__log_note(cu, "compiled %llu bytes of PTX", (unsigned long long)strlen(ptx));
    if (result == 0) return PTXCU_E_NONE;
    ptxcu__fail_driver(cu, result, "cuModuleLoadDataEx(%llu bytes of PTX)", (unsigned long long)strlen(ptx));
    r->error.code = PTXCU_E_JIT;
    log[PTXCU__LOG_BYTES - 1] = 0;
    length = strlen(log);
    while (length && (log[length - 1] == '\n' || log[length - 1] == ' ')) log[--length] = 0;
    r->error.log = log;
    /* Truncate the log to leave room for the PTX line. */
    if (length) ptxcu__append(cu, "\n%.*s", (int)(length < 3000 ? length : 3000), log);
    ptxcu__append_ptx_line(cu, log, ptx);
    return PTXCU_E_JIT;
}

/* Find an entry's function and read its limits from the driver. */
static ptxcu_code ptxcu__open_entry(ptxcu *cu, void *module_, const char *name, ptxcu__entry *e) {
    int threads = 0, shared = 0;
    int result = cu->driver.cuModuleGetFunction(&e->function, module_, name);
    if (result) {
        ptxcu__fail_driver(cu, result, "cuModuleGetFunction(\"%s\")", name);
        if (result == 500) {
            ptxcu__append(cu, "; the program has no entry of that name");
            return ptxcu__set_error_code(cu, PTXCU_E_ENTRY);
        }
        return PTXCU_E_DRIVER;
    }
    result = cu->driver.cuFuncGetAttribute(&threads, 0, e->function);
    if (result == 0) result = cu->driver.cuFuncGetAttribute(&shared, 1, e->function);
    if (result) return ptxcu__fail_driver(cu, result, "cuFuncGetAttribute(entry '%s')", name);
    e->max_threads = (uint32_t)threads;
    e->shared_bytes = (uint32_t)shared;
    e->dynamic_free = cu->info.shared_static > e->shared_bytes ? cu->info.shared_static - e->shared_bytes : 0;
    e->dynamic_max = e->dynamic_free;
    return PTXCU_E_NONE;
}

/* Copy a signature, because the builder's pointers live only until its module changes. info->params may be
   NULL. */
static ptxcu_code ptxcu__copy_signature(ptxcu *cu, const ptx_entry_info *info, ptxcu__entry *e) {
    size_t names = strlen(info->name) + 1, params = info->param_count * sizeof(ptx_param_info);
    ptx_param_info *p;
    char *text;
    uint32_t i;
    for (i = 0; i < info->param_count; i++) names += strlen(info->params[i].name) + 1;
    e->memory = (char *)ptxcu__alloc_zeroed(cu, params + names);
    if (!e->memory) return ptxcu__fail_memory(cu, params + names);
    e->memory_bytes = params + names;
    text = e->memory + params;
    p = (ptx_param_info *)(void *)e->memory;
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

/* Load PTX text, with the signatures of the entries of m if m is not NULL. */
static ptxcu_code ptxcu__create_program(ptxcu *cu, const char *ptx, const ptx_module *m,
                                        ptxcu_program **out) {
    uint32_t i, count = m ? ptx_entry_count(m) : 0;
    ptxcu_code code;
    ptxcu_program *p = (ptxcu_program *)ptxcu__alloc_zeroed(cu, sizeof *p);
    if (!p) return ptxcu__fail_memory(cu, sizeof *p);
    p->owner = cu;
    if (count) {
        p->entries = (ptxcu__entry *)ptxcu__alloc_zeroed(cu, count * sizeof *p->entries);
        if (!p->entries) {
            code = ptxcu__fail_memory(cu, count * sizeof *p->entries);
            ptxcu__free_program(cu, p);
            return code;
        }
        p->capacity = count;
    }
    code = ptxcu__load_module(cu, ptx, &p->module_);
    if (code != PTXCU_E_NONE) {
        ptxcu__free_program(cu, p);
        return code;
    }
    for (i = 0; i < count && code == PTXCU_E_NONE; i++) {
        ptx_entry_info info;
        ptxcu__entry *e = &p->entries[i];
        p->count++;
        if (!ptx_entry_get(m, i, &info)) {
            code = ptxcu__fail(cu, PTXCU_E_EMIT, "the module does not describe its entry %u", (unsigned)i);
        } else {
            code = ptxcu__open_entry(cu, p->module_, info.name, e);
            if (code == PTXCU_E_NONE) code = ptxcu__copy_signature(cu, &info, e);
            e->has_signature = 1;
            e->dependent_launch = info.dependent_launch && cu->info.dependent_launch;
        }
    }
    if (code != PTXCU_E_NONE) {
        cu->driver.cuModuleUnload(p->module_);
        ptxcu__free_program(cu, p);
        return code;
    }
    p->next = cu->programs;
    cu->programs = p;
    *out = p;
    return PTXCU_E_NONE;
}

/* Append the caller's source line for the PTX line that the log names. */
static void ptxcu__append_site(ptxcu *cu, const ptx_module *m) {
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
    const char *text;
    uint32_t comments = ptx_show_comments(m, 0);
    /* The CPU driver shows the comments in its findings. A GPU driver gets the text that the caller asked
       for. */
    ptx_show_comments(m, comments | (cu->info.is_cpu_driver ? 1u : 0u));
    text = ptx_text(m, NULL);
    ptx_show_comments(m, comments);
    if (!text)
        return ptxcu__fail(cu, ptx_get_error(m)->code == PTX_E_MEMORY ? PTXCU_E_MEMORY : PTXCU_E_EMIT, "%s",
                           ptx_get_error(m)->message);
    code = ptxcu__create_program(cu, text, m, program);
    if (code == PTXCU_E_JIT) ptxcu__append_site(cu, m);
    return code;
}

/* Load m, or the text ptx if m is NULL. */
PTX__COLD ptxcu_code ptxcu__load_locked(ptxcu *cu, ptx_module *m, const char *ptx, ptxcu_program **program) {
    ptxcu_code code;
    ptxcu__lock(&cu->build_mutex);
    code = m ? ptxcu__load(cu, m, program) : ptxcu__create_program(cu, ptx, NULL, program);
    ptxcu__unlock(&cu->build_mutex);
    return code;
}

PTX__COLD ptxcu_code ptxcu__new_module(ptxcu *cu, ptx_module **m) {
    ptx_module_desc d;
    memset(&d, 0, sizeof d);
    d.target = cu->info.target;
    d.max_version = cu->info.max_version;
    d.dependent_launch = cu->info.dependent_launch;
    d.alloc = cu->alloc;
    d.alloc_user = cu->alloc_user;
    *m = ptx_module_new(&d);
    return *m ? PTXCU_E_NONE : ptxcu__fail(cu, PTXCU_E_MEMORY, "out of host memory for the builder");
}

PTX__COLD_API ptxcu_code ptxcu_module_new(ptxcu *cu, ptx_module **m) {
    if (m) *m = NULL;
    PTXCU__REQUIRE(cu, module_new, m);
    return ptxcu__new_module(cu, m);
}

PTXGEN_API ptxcu_code ptxcu_load(ptxcu *cu, ptx_module *m, ptxcu_program **program) {
    if (program) *program = NULL;
    PTXCU__REQUIRE(cu, load, m);
    PTXCU__REQUIRE(cu, load, program);
    PTXCU__IN_CONTEXT(cu, ptxcu__load_locked(cu, m, NULL, program));
}

PTXGEN_API ptxcu_code ptxcu_load_text(ptxcu *cu, const char *ptx, ptxcu_program **program) {
    if (program) *program = NULL;
    PTXCU__REQUIRE(cu, load_text, ptx);
    PTXCU__REQUIRE(cu, load_text, program);
    PTXCU__IN_CONTEXT(cu, ptxcu__load_locked(cu, NULL, ptx, program));
}

static ptxcu_code ptxcu__unload_program(ptxcu *cu, ptxcu_program *program) {
    ptxcu_program **previous;
    int result;
    for (previous = &cu->programs; *previous; previous = &(*previous)->next)
        if (*previous == program) {
            result = cu->driver.cuModuleUnload(program->module_);
            if (result) return ptxcu__fail_driver(cu, result, "cuModuleUnload()");
            *previous = program->next;
            ptxcu__empty_program(cu, program);
            program->next = cu->unloaded;
            cu->unloaded = program;
            return PTXCU_E_NONE;
        }
    return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "the program is not one of this handle's, or was unloaded");
}

PTX__COLD ptxcu_code ptxcu__unload(ptxcu *cu, ptxcu_program *program) {
    const ptxcu_program *p;
    ptxcu_code code = PTXCU_E_NONE;
    ptxcu__lock(&cu->build_mutex);
    for (p = cu->programs; p;
         p = p->next) /* search the list first: a foreign pointer must not be dereferenced */
        if (p == program && p->cached)
            code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                               "ptxcu_unload: this program belongs to the cache of "
                               "ptxcu_operation; see ptxcu_cache_clear");
    if (code == PTXCU_E_NONE) code = ptxcu__unload_program(cu, program);
    ptxcu__unlock(&cu->build_mutex);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_unload(ptxcu *cu, ptxcu_program *program) {
    PTXCU__REQUIRE_READY(cu);
    if (!program) return PTXCU_E_NONE;
    PTXCU__IN_CONTEXT(cu, ptxcu__unload(cu, program));
}

static ptxcu_code ptxcu__check_program(ptxcu *cu, const char *function, const ptxcu_program *program) {
    if (!program) return ptxcu__fail_null(cu, function, "program");
    if (!program->owner) return ptxcu__fail(cu, PTXCU_E_FREED, "%s: the program was unloaded", function);
    if (program->owner != cu)
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: the program was loaded by another handle",
                           function);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__find_entry(ptxcu *cu, ptxcu_program *program, const char *name, uint32_t *entry) {
    ptxcu__entry e;
    ptx_entry_info info;
    uint32_t i;
    for (i = 0; i < program->count; i++)
        if (strcmp(program->entries[i].name, name) == 0) {
            *entry = i;
            return PTXCU_E_NONE;
        }
    memset(&e, 0, sizeof e);
    memset(&info, 0, sizeof info);
    info.name = name;
    PTXCU__TRY(ptxcu__open_entry(cu, program->module_, name, &e));
    if (program->count == program->capacity) {
        uint32_t capacity = program->capacity ? program->capacity * 2 : 4;
        size_t old_bytes = program->capacity * sizeof e, bytes = capacity * sizeof e;
        void *grown = cu->alloc(cu->alloc_user, program->entries, old_bytes, bytes);
        if (!grown) return ptxcu__fail_memory(cu, bytes);
        program->entries = (ptxcu__entry *)grown;
        program->capacity = capacity;
    }
    PTXCU__TRY(ptxcu__copy_signature(cu, &info, &e));
    *entry = program->count;
    program->entries[program->count++] = e;
    return PTXCU_E_NONE;
}

PTX__COLD ptxcu_code ptxcu__entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name,
                                          uint32_t *entry) {
    ptxcu_code code;
    ptxcu__lock(&cu->build_mutex);
    code = ptxcu__find_entry(cu, program, name, entry);
    ptxcu__unlock(&cu->build_mutex);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_entry_by_name(ptxcu *cu, ptxcu_program *program, const char *name,
                                          uint32_t *entry) {
    if (entry) *entry = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_entry_by_name", program));
    PTXCU__REQUIRE(cu, entry_by_name, name);
    PTXCU__REQUIRE(cu, entry_by_name, entry);
    PTXCU__IN_CONTEXT(cu, ptxcu__entry_by_name(cu, program, name, entry));
}

PTX__COLD ptxcu_code ptxcu__global(ptxcu *cu, const ptxcu_program *program, const char *name,
                                   ptxcu_buffer *buffer) {
    ptxcu_buffer b;
    int result = cu->driver.cuModuleGetGlobal_v2(&b.address, &b.bytes, program->module_, name);
    if (result == 0) {
        *buffer = b;
        return PTXCU_E_NONE;
    }
    ptxcu__fail_driver(cu, result, "cuModuleGetGlobal_v2(\"%s\")", name);
    if (result != 500) return PTXCU_E_DRIVER;
    ptxcu__append(cu, "; the program has no such variable: name one that is .visible .global or .const "
                      "(ptx_variable_desc.exported)");
    return ptxcu__set_error_code(cu, PTXCU_E_VARIABLE);
}

PTXGEN_API ptxcu_code ptxcu_global(ptxcu *cu, ptxcu_program *program, const char *name,
                                   ptxcu_buffer *buffer) {
    if (buffer) buffer->address = 0, buffer->bytes = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_global", program));
    PTXCU__REQUIRE(cu, global, name);
    PTXCU__REQUIRE(cu, global, buffer);
    PTXCU__IN_CONTEXT(cu, ptxcu__global(cu, program, name, buffer));
}

PTXGEN_API ptxcu_code ptxcu_get_module(ptxcu *cu, ptxcu_program *program, void **module_) {
    if (module_) *module_ = NULL;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_get_module", program));
    PTXCU__REQUIRE(cu, get_module, module_);
    *module_ = program->module_;
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__fail_entry(ptxcu *cu, const ptxcu_program *program, uint32_t entry) {
    return ptxcu__fail(cu, PTXCU_E_ENTRY, "there is no entry %u: the program has %u, counted from 0",
                       (unsigned)entry, (unsigned)program->count);
}

PTXGEN_API ptxcu_code ptxcu_get_function(ptxcu *cu, ptxcu_program *program, uint32_t entry, void **function) {
    if (function) *function = NULL;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_get_function", program));
    PTXCU__REQUIRE(cu, get_function, function);
    if (entry >= program->count) return ptxcu__fail_entry(cu, program, entry);
    *function = program->entries[entry].function;
    return PTXCU_E_NONE;
}

/* -- kernel cache: a hash table with open addressing, for one device, context and driver -- */

static uint64_t ptxcu__hash_operation(const ptx_operation *op, const void *desc) {
    const unsigned char *p = (const unsigned char *)desc;
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(uintptr_t)op->emit;
    uint32_t i;
    for (i = 0; i < op->desc_bytes; i++) h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 29;
}

/* The slot of the key, or the free slot where it belongs. The table always has a free slot. */
static ptxcu__slot *ptxcu__find_slot(const ptxcu *cu, uint64_t hash, const ptx_operation *op,
                                     const void *desc) {
    uint32_t mask = cu->slot_capacity - 1, i = (uint32_t)hash & mask;
    for (;; i = (i + 1) & mask) {
        ptxcu__slot *s = &cu->slots[i];
        if (!s->program) return s;
        if (s->hash == hash && s->emit == op->emit && s->desc_bytes == op->desc_bytes
            && (s->desc_bytes == 0 || memcmp(s->desc, desc, s->desc_bytes) == 0))
            return s;
    }
}

/* Grow the table if one more program would fill over 3/4 of it. Requires build_mutex, so no other thread
   changes the slots; readers see the old or the new table. */
static ptxcu_code ptxcu__grow_cache(ptxcu *cu) {
    uint32_t i, old_capacity = cu->slot_capacity;
    ptxcu__slot *old = cu->slots, *slots;
    uint32_t capacity = old_capacity ? old_capacity * 2 : 16;
    if (cu->slot_count + 1 <= old_capacity / 4 * 3) return PTXCU_E_NONE;
    slots = (ptxcu__slot *)ptxcu__alloc_zeroed(cu, capacity * sizeof *slots);
    if (!slots) return ptxcu__fail_memory(cu, capacity * sizeof *slots);
    for (i = 0; i < old_capacity; i++)
        if (old[i].program) {
            uint32_t at = (uint32_t)old[i].hash & (capacity - 1);
            while (slots[at].program) at = (at + 1) & (capacity - 1);
            slots[at] = old[i];
        }
    ptxcu__lock(&cu->table_mutex);
    cu->slots = slots;
    cu->slot_capacity = capacity;
    ptxcu__unlock(&cu->table_mutex);
    ptxcu__free_host(cu, old, old_capacity * sizeof *old);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__build_program(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       ptxcu_program **out) {
    ptx_module *m;
    ptxcu_code code;
    PTXCU__TRY(ptxcu__new_module(cu, &m));
    op->emit(m, site, desc); /* ptx_text reports its error */
    code = ptxcu__load(cu, m, out);
    ptx_module_free(m);
    return code;
}

/* The cached program of the key, or NULL. */
static ptxcu_program *ptxcu__find_cached(ptxcu *cu, uint64_t hash, const ptx_operation *op,
                                         const void *desc) {
    ptxcu_program *program = NULL;
    ptxcu__lock(&cu->table_mutex);
    if (cu->slot_capacity) program = ptxcu__find_slot(cu, hash, op, desc)->program;
    ptxcu__unlock(&cu->table_mutex);
    return program;
}

static ptxcu_code ptxcu__add_operation(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       uint64_t hash, ptxcu_program **program) {
    ptxcu_program *built = NULL;
    ptxcu__slot *s;
    ptxcu_code code = PTXCU_E_NONE;
    void *copy = NULL;
    *program = ptxcu__find_cached(cu, hash, op, desc); /* another thread may have added it */
    if (*program) return PTXCU_E_NONE;
    PTXCU__TRY(ptxcu__grow_cache(cu));
    if (op->desc_bytes) {
        copy = cu->alloc(cu->alloc_user, NULL, 0, op->desc_bytes);
        if (!copy) return ptxcu__fail_memory(cu, op->desc_bytes);
        memcpy(copy, desc, op->desc_bytes);
    }
    code = ptxcu__build_program(cu, site, op, desc, &built);
    if (code != PTXCU_E_NONE) {
        ptxcu__free_host(cu, copy, op->desc_bytes);
        return code;
    }
    built->cached = 1;
    ptxcu__lock(&cu->table_mutex);
    s = ptxcu__find_slot(cu, hash, op, copy);
    s->hash = hash;
    s->emit = op->emit;
    s->desc_bytes = op->desc_bytes;
    s->desc = copy;
    s->program = built;
    cu->slot_count++;
    ptxcu__unlock(&cu->table_mutex);
    *program = built;
    return PTXCU_E_NONE;
}

PTX__COLD ptxcu_code ptxcu__add_operation_locked(ptxcu *cu, const char *site, const ptx_operation *op,
                                                 const void *desc, uint64_t hash, ptxcu_program **program) {
    ptxcu_code code;
    ptxcu__lock(&cu->build_mutex);
    code = ptxcu__add_operation(cu, site, op, desc, hash, program);
    ptxcu__unlock(&cu->build_mutex);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_operation_(ptxcu *cu, const char *site, const ptx_operation *op, const void *desc,
                                       ptxcu_program **program) {
    uint64_t hash;
    if (program) *program = NULL;
    PTXCU__REQUIRE_READY(cu);
    if (!op || !op->emit) return ptxcu__fail_null(cu, "ptxcu_operation", "op (an unknown name?) or its emit");
    if (!desc && op->desc_bytes) return ptxcu__fail_null(cu, "ptxcu_operation", "desc");
    PTXCU__REQUIRE(cu, operation, program);
    hash = ptxcu__hash_operation(op, desc);
    *program = ptxcu__find_cached(cu, hash, op, desc);
    if (*program) return PTXCU_E_NONE;
    PTXCU__IN_CONTEXT(cu, ptxcu__add_operation_locked(cu, site, op, desc, hash, program));
}

PTX__COLD ptxcu_code ptxcu__cache_clear(ptxcu *cu) {
    ptxcu_code code, last_error = PTXCU_E_NONE;
    ptxcu__slot *slots;
    uint32_t i, capacity;
    ptxcu__lock(&cu->build_mutex);
    ptxcu__lock(&cu->table_mutex);
    slots = cu->slots;
    capacity = cu->slot_capacity;
    cu->slots = NULL;
    cu->slot_count = cu->slot_capacity = 0;
    cu->clears++;
    ptxcu__unlock(&cu->table_mutex);
    for (i = 0; i < capacity; i++) {
        if (!slots[i].program) continue;
        slots[i].program->cached = 0; /* if unloading fails, it stays until ptxcu_close */
        code = ptxcu__unload_program(cu, slots[i].program);
        if (code != PTXCU_E_NONE) last_error = code;
        ptxcu__free_host(cu, slots[i].desc, slots[i].desc_bytes);
    }
    ptxcu__free_host(cu, slots, capacity * sizeof *slots);
    ptxcu__unlock(&cu->build_mutex);
    return last_error;
}

PTXGEN_API ptxcu_code ptxcu_cache_clear(ptxcu *cu) {
    PTXCU__IN_CONTEXT(cu, ptxcu__cache_clear(cu));
}

/* -- launch -- */

static ptxcu_arg ptxcu__make_arg(uint8_t kind, uint32_t bytes) {
    ptxcu_arg a;
    memset(&a, 0, sizeof a);
    a.kind = kind;
    a.bytes = bytes;
    return a;
}

static ptxcu_arg ptxcu__make_arg32(uint8_t kind, uint32_t bits) {
    ptxcu_arg a = ptxcu__make_arg(kind, 4);
    a.value.u32 = bits;
    return a;
}

static ptxcu_arg ptxcu__make_arg64(uint8_t kind, uint64_t bits) {
    ptxcu_arg a = ptxcu__make_arg(kind, 8);
    a.value.u64 = bits;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_buffer(ptxcu_buffer buffer) { return ptxcu_arg_address(buffer.address); }
PTXGEN_API ptxcu_arg ptxcu_arg_address(uint64_t address) {
    return ptxcu__make_arg64(PTXCU__ADDRESS, address);
}
PTXGEN_API ptxcu_arg ptxcu_arg_u32(uint32_t value) { return ptxcu__make_arg32(PTX_U32, value); }
PTXGEN_API ptxcu_arg ptxcu_arg_s32(int32_t value) { return ptxcu__make_arg32(PTX_S32, (uint32_t)value); }
PTXGEN_API ptxcu_arg ptxcu_arg_u64(uint64_t value) { return ptxcu__make_arg64(PTX_U64, value); }
PTXGEN_API ptxcu_arg ptxcu_arg_s64(int64_t value) { return ptxcu__make_arg64(PTX_S64, (uint64_t)value); }

PTXGEN_API ptxcu_arg ptxcu_arg_f32(float value) {
    ptxcu_arg a = ptxcu__make_arg(PTX_F32, 4);
    a.value.f32 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_f64(double value) {
    ptxcu_arg a = ptxcu__make_arg(PTX_F64, 8);
    a.value.f64 = value;
    return a;
}

PTXGEN_API ptxcu_arg ptxcu_arg_bytes(const void *bytes, size_t size) {
    ptxcu_arg a = ptxcu__make_arg(PTXCU__BYTES, size <= UINT32_MAX ? (uint32_t)size : UINT32_MAX);
    a.value.pointer = bytes;
    return a;
}

static int ptxcu__is_matching_arg(const ptxcu_arg *a, const ptx_param_info *p) {
    if (a->bytes != p->bytes) return 0;
    if (a->kind == PTXCU__BYTES) return 1;
    if (p->type == PTX_B32 || p->type == PTX_B64) return 1;
    if (a->kind == PTXCU__ADDRESS)
        return p->type == PTX_U64 || (p->type == PTX_S64 && p->space == PTX_GENERIC);
    return a->kind == (uint8_t)p->type && p->space == PTX_GENERIC;
}

static ptxcu_code ptxcu__fail_arg(ptxcu *cu, const ptxcu__entry *e, uint32_t index, const ptxcu_arg *a) {
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

/* Report a cluster size that device or grid does not allow. */
static ptxcu_code ptxcu__fail_cluster(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g) {
    const uint32_t *c = g->cluster;
    if (!cu->info.max_cluster)
        return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                           "entry '%s': clusters of %ux%ux%u blocks, this device or driver has none", e->name,
                           (unsigned)c[0], (unsigned)c[1], (unsigned)c[2]);
    return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                       "entry '%s': clusters of %ux%ux%u blocks in a grid of %ux%ux%u, they must have 1 to "
                       "%u and divide it",
                       e->name, (unsigned)c[0], (unsigned)c[1], (unsigned)c[2], (unsigned)g->grid[0],
                       (unsigned)g->grid[1], (unsigned)g->grid[2], (unsigned)cu->info.max_cluster);
}

static int ptxcu__is_valid_cluster(const ptxcu *cu, const ptx_launch *g) {
    const uint32_t *c = g->cluster, most = cu->info.max_cluster;
    return c[0] - 1 < most && c[1] - 1 < most && c[2] - 1 < most && c[0] * c[1] * c[2] <= most
           && g->grid[0] % c[0] == 0 && g->grid[1] % c[1] == 0 && g->grid[2] % c[2] == 0;
}

static ptxcu_code ptxcu__fail_geometry(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g) {
    const ptxcu_device *d = &cu->info;
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    int i;
    for (i = 0; i < 3; i++) { /* block first: for block 0 ptx_launch_1d gives grid 0, a mere consequence */
        if (g->block[i] == 0 || g->block[i] > d->max_block[i])
            return ptxcu__fail(cu, PTXCU_E_LAUNCH, "entry '%s': block %c is %u, must be 1 to %u", e->name,
                               "xyz"[i], (unsigned)g -> block[i], (unsigned)d -> max_block[i]);
        if (g->grid[i] == 0 || g->grid[i] > d->max_grid[i])
            return ptxcu__fail(cu, PTXCU_E_LAUNCH, "entry '%s': grid %c is %u, must be 1 to %u", e->name,
                               "xyz"[i], (unsigned)g -> grid[i], (unsigned)d -> max_grid[i]);
    }
    if (threads > e->max_threads)
        return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                           "entry '%s': a block of %llu threads, at most %u can be launched", e->name,
                           (unsigned long long)threads, (unsigned)e->max_threads);
    if (g->cooperative > 1)
        return ptxcu__fail(cu, PTXCU_E_LAUNCH, "entry '%s': cooperative is %u, must be 0 or 1", e->name,
                           (unsigned)g->cooperative);
    return ptxcu__fail(cu, PTXCU_E_LAUNCH,
                       "entry '%s': %u bytes of dynamic and %u of static shared memory, a block can have %u",
                       e->name, (unsigned)g->shared_bytes, (unsigned)e->shared_bytes,
                       (unsigned)d->shared_optin);
}

/* Check a launch except its arguments, and opt in to its shared memory. */
static ptxcu_code ptxcu__prepare_launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *g,
                                        ptxcu__entry **entry) {
    const ptxcu_device *d = &cu->info;
    ptxcu__entry *e;
    int result;
    if (g->entry >= program->count) return ptxcu__fail_entry(cu, program, g->entry);
    e = &program->entries[g->entry];
    /* 0 - 1 wraps to the maximum, so one comparison refuses 0 and values above the limit. */
    if (g->grid[0] - 1 >= d->max_grid[0] || g->grid[1] - 1 >= d->max_grid[1]
        || g->grid[2] - 1 >= d->max_grid[2] || g->block[0] - 1 >= d->max_block[0]
        || g->block[1] - 1 >= d->max_block[1] || g->block[2] - 1 >= d->max_block[2]
        || (uint64_t)g->block[0] * g->block[1] * g->block[2] > e->max_threads
        || (uint64_t)g->shared_bytes + e->shared_bytes > d->shared_optin || g->cooperative > 1)
        return ptxcu__fail_geometry(cu, e, g);
    if ((g->cluster[0] | g->cluster[1] | g->cluster[2]) && !ptxcu__is_valid_cluster(cu, g))
        return ptxcu__fail_cluster(cu, e, g);
    if (g->shared_bytes > e->dynamic_free) {
        result = 0;
        ptxcu__lock(&cu->table_mutex);
        if (g->shared_bytes > e->dynamic_max) {
            result = cu->driver.cuFuncSetAttribute(e->function, 8, (int)g->shared_bytes);
            if (!result) e->dynamic_max = g->shared_bytes;
        }
        ptxcu__unlock(&cu->table_mutex);
        if (result)
            return ptxcu__fail_driver(cu, result, "cuFuncSetAttribute(entry '%s', %u bytes of shared memory)",
                                      e->name, (unsigned)g->shared_bytes);
    }
    *entry = e;
    return PTXCU_E_NONE;
}

static int ptxcu__launch_ex(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g, void **params,
                            ptxcu_stream stream) {
    ptxcu__launch_attribute attributes[2];
    ptxcu__launch_config config;
    uint32_t n = 0;
    memset(attributes, 0, sizeof attributes);
    memset(&config, 0, sizeof config);
    if (g->cluster[0]) {
        attributes[n].id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
        memcpy(attributes[n++].value, g->cluster, sizeof g->cluster);
    }
    /* CU_LAUNCH_ATTRIBUTE_COOPERATIVE, _PROGRAMMATIC_STREAM_SERIALIZATION */
    if (g->cooperative || e->dependent_launch) {
        attributes[n].id = g->cooperative ? 2 : 6;
        attributes[n++].value[0] = 1;
    }
    memcpy(config.grid, g->grid, sizeof g->grid);
    memcpy(config.block, g->block, sizeof g->block);
    config.shared_bytes = g->shared_bytes;
    config.stream = stream;
    config.attributes = attributes;
    config.count = n;
    return cu->launch_ex(&config, e->function, params, NULL);
}

static ptxcu_code ptxcu__launch_entry(ptxcu *cu, const ptxcu__entry *e, const ptx_launch *g, void **params,
                                      ptxcu_stream stream) {
    int extended = g->cluster[0] || (e->dependent_launch && !g->cooperative), result;
    if (extended)
        result = ptxcu__launch_ex(cu, e, g, params, stream);
    else if (g->cooperative)
        result =
            cu->driver.cuLaunchCooperativeKernel(e->function, g->grid[0], g->grid[1], g->grid[2], g->block[0],
                                                 g->block[1], g->block[2], g->shared_bytes, stream, params);
    else
        result = cu->driver.cuLaunchKernel(e->function, g->grid[0], g->grid[1], g->grid[2], g->block[0],
                                           g->block[1], g->block[2], g->shared_bytes, stream, params, NULL);
    if (result == 0) return PTXCU_E_NONE;
    if (ptxcu__check_stream(cu, e->name, stream) == PTXCU_E_WRONG_HANDLE) return PTXCU_E_WRONG_HANDLE;
    return ptxcu__fail_driver(
        cu, result, "cuLaunch%sKernel%s(entry '%s', grid %ux%ux%u, block %ux%ux%u, %u bytes)",
        !extended && g->cooperative ? "Cooperative" : "", extended ? "Ex" : "", e->name, (unsigned)g->grid[0],
        (unsigned)g->grid[1], (unsigned)g->grid[2], (unsigned)g->block[0], (unsigned)g->block[1],
        (unsigned)g->block[2], (unsigned)g->shared_bytes);
}

static ptxcu_code ptxcu__launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *geometry,
                                const ptxcu_arg *args, uint32_t count, ptxcu_stream stream) {
    void *params[PTXCU_ARGS_MAX];
    ptxcu__entry *e = NULL;
    uint32_t i;
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_launch", program));
    PTXCU__REQUIRE(cu, launch, geometry);
    if (!args && count) return ptxcu__fail_null(cu, "ptxcu_launch", "args");
    PTXCU__TRY(ptxcu__prepare_launch(cu, program, geometry, &e));
    if (count > PTXCU_ARGS_MAX || (e->has_signature && count != e->param_count))
        return ptxcu__fail(cu, PTXCU_E_ARGS, "entry '%s' takes %u arguments%s, %u are given", e->name,
                           (unsigned)(e->has_signature ? e->param_count : PTXCU_ARGS_MAX),
                           e->has_signature ? "" : " at most", (unsigned)count);
    for (i = 0; i < count; i++) {
        const ptxcu_arg *a = &args[i];
        const void *value = a->kind == PTXCU__BYTES ? a->value.pointer : (const void *)&a->value;
        if (e->has_signature && !ptxcu__is_matching_arg(a, &e->params[i]))
            return ptxcu__fail_arg(cu, e, i, a);
        if (!value)
            return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "entry '%s', argument %u is a NULL block", e->name,
                               (unsigned)i);
        params[i] = (void *)(uintptr_t)value; /* the driver only reads it */
    }
    return ptxcu__launch_entry(cu, e, geometry, params, stream);
}

PTXGEN_API ptxcu_code ptxcu_launch(ptxcu *cu, ptxcu_program *program, const ptx_launch *geometry,
                                   const ptxcu_arg *args, uint32_t count, ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__launch(cu, program, geometry, args, count, stream));
}

/* Encode the tensor maps of a plan, 16 words each. */
static ptxcu_code ptxcu__encode_maps(ptxcu *cu, const char *name, const ptx_plan *plan, const void *args,
                                     uint64_t *maps) {
    uint64_t room[24], *map = room + (64 - (uintptr_t)room % 64) % 64 / 8; /* must be 64-byte aligned */
    ptx_map_values v;
    const char *rule;
    uint32_t i;
    int result;
    if (plan->maps > PTX_PLAN_MAPS)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: a plan of %u tensor maps, at most %u are possible",
                           name, (unsigned)plan->maps, (unsigned)PTX_PLAN_MAPS);
    if (!cu->optional.cuTensorMapEncodeTiled)
        return ptxcu__fail(cu, PTXCU_E_SYMBOL, "%s needs cuTensorMapEncodeTiled, which this library lacks",
                           name);
    for (i = 0; i < plan->maps; i++) {
        if ((rule = ptx_map_resolve(&plan->map[i], args, &v)) != NULL)
            return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: tensor map %u: %s", name, (unsigned)i, rule);
        result = cu->optional.cuTensorMapEncodeTiled(map, v.type, v.rank, v.address, v.size, v.stride, v.box,
                                                     v.element_stride, 0, v.swizzle, v.l2_promotion, 0);
        if (result)
            return ptxcu__fail_driver(cu, result, "cuTensorMapEncodeTiled(%s, map %u)", name, (unsigned)i);
        memcpy(maps + 16 * i, map, 128);
    }
    return PTXCU_E_NONE;
}

/* Launch a plan. maps: its encoded tensor maps; NULL: encode them here. */
static ptxcu_code ptxcu__run(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                             size_t args_bytes, const uint64_t *maps, ptxcu_stream stream) {
    ptxcu__entry *entries[PTX_PLAN_MAX];
    uint64_t encoded[PTX_PLAN_MAPS * 16];
    void *params[1 + PTX_PLAN_MAPS];
    uint32_t i, j, n;
    PTXCU__TRY(ptxcu__check_program(cu, "ptxcu_run", program));
    PTXCU__REQUIRE(cu, run, plan);
    if (plan->launches > PTX_PLAN_MAX)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "ptxcu_run: a plan of %u launches, at most %u are possible",
                           (unsigned)plan->launches, (unsigned)PTX_PLAN_MAX);
    if (plan->launches == 0) return PTXCU_E_NONE;
    if (plan->maps > PTX_PLAN_MAPS) return ptxcu__encode_maps(cu, "ptxcu_run", plan, args, encoded);
    PTXCU__REQUIRE(cu, run, args);
    if (plan->args_bytes != args_bytes)
        return ptxcu__fail(cu, PTXCU_E_ARGS,
                           "ptxcu_run: the plan is for arguments of %u bytes, %llu are given",
                           (unsigned)plan->args_bytes, (unsigned long long)args_bytes);
    for (i = 0; i < plan->launches; i++) {
        const ptxcu__entry *e;
        PTXCU__TRY(ptxcu__prepare_launch(cu, program, &plan->launch[i], &entries[i]));
        e = entries[i];
        for (j = n = 0; j < plan->maps; j++) n += plan->map[j].launch == i;
        if (e->has_signature && e->param_count != 1 + n)
            return ptxcu__fail(
                cu, PTXCU_E_ARGS,
                "entry '%s' has %u parameters; this plan gives it one block and %u tensor maps", e->name,
                (unsigned)e->param_count, (unsigned)n);
        for (j = 1; j <= n && e->has_signature; j++)
            if (e->params[j].bytes != 128 || e->params[j].type != PTX_B8)
                return ptxcu__fail(cu, PTXCU_E_ARGS,
                                   "entry '%s': parameter '%s' is no tensor map of 128 bytes", e->name,
                                   e->params[j].name);
        if (e->has_signature && e->params[0].bytes != args_bytes)
            return ptxcu__fail(cu, PTXCU_E_ARGS, "entry '%s': parameter '%s' has %u bytes, %llu are given",
                               e->name, e->params[0].name, (unsigned)e->params[0].bytes,
                               (unsigned long long)args_bytes);
    }
    if (!maps && plan->maps) {
        PTXCU__TRY(ptxcu__encode_maps(cu, "ptxcu_run", plan, args, encoded));
        maps = encoded;
    }
    params[0] = (void *)(uintptr_t)args;
    for (i = 0; i < plan->launches; i++) {
        for (j = n = 0; j < plan->maps; j++)
            if (plan->map[j].launch == i) params[1 + n++] = (void *)(uintptr_t)(maps + 16 * j);
        PTXCU__TRY(ptxcu__launch_entry(cu, entries[i], &plan->launch[i], params, stream));
    }
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_run(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                                size_t args_bytes, ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__run(cu, program, plan, args, args_bytes, NULL, stream));
}

/* -- calls -- */

/* Check that this handle has prepared a call. */
static ptxcu_code ptxcu__check_owner(ptxcu *cu, const char *function, const ptxcu_call *call) {
    if (!call->owner)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: the call is zero: it was not prepared", function);
    if (call->owner != cu)
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: the call of %s was prepared by another handle",
                           function, call->name);
    return PTXCU_E_NONE;
}

/* Check that a call can be launched now. pin 1: pin its allocations, see ptxcu__unpin_allocations. */
static ptxcu_code ptxcu__check_call(ptxcu *cu, const char *function, const ptxcu_call *call, uint32_t pin) {
    uint32_t i, j, freed_tensor = UINT32_MAX, freed_entry = UINT32_MAX, entry_count = 0;
    int cleared, pin_now;
    if (!call) return ptxcu__fail_null(cu, function, "call");
    PTXCU__TRY(ptxcu__check_owner(cu, function, call));
    ptxcu__lock(&cu->table_mutex);
    cleared = call->clears != cu->clears;
    for (i = call->tensors; i-- > 0;) {
        uint32_t b = call->tensor[i].allocation, freed;
        if (b >= cu->allocation_count || cu->allocations[b].serial != call->tensor[i].serial) {
            freed_tensor = i;
            freed_entry = UINT32_MAX;
        } else if ((freed = ptxcu__find_freed_tensor(cu, &cu->allocations[b])) != UINT32_MAX) {
            freed_tensor = i;
            freed_entry = freed;
            entry_count = cu->allocations[b].sequence_tensor_count;
        }
    }
    pin_now = pin && !cleared && freed_tensor == UINT32_MAX && call->workspace >= call->plan.workspace_bytes;
    for (i = 0; pin_now && i < call->tensors; i++) {
        ptxcu__allocation *b = &cu->allocations[call->tensor[i].allocation];
        b->pins++;
        for (j = 0; j < b->sequence_tensor_count; j++)
            cu->allocations[b->sequence_tensors[j].allocation].pins++;
    }
    ptxcu__unlock(&cu->table_mutex);
    if (cleared)
        return ptxcu__fail(cu, PTXCU_E_FREED, "%s: ptxcu_cache_clear has unloaded the program; prepare again",
                           call->name);
    if (freed_entry != UINT32_MAX)
        return ptxcu__fail_freed_tensor(cu, call->name, call->tensor[freed_tensor].name, freed_entry,
                                        entry_count);
    if (freed_tensor != UINT32_MAX)
        return ptxcu__fail(cu, PTXCU_E_FREED, "%s: %s was freed", call->name,
                           call->tensor[freed_tensor].name);
    if (call->workspace < call->plan.workspace_bytes)
        return ptxcu__fail(cu, PTXCU_E_WORKSPACE,
                           "%s: workspace has %llu bytes, must have %llu; ptxcu_workspace_create makes it",
                           call->name, (unsigned long long)call->workspace,
                           (unsigned long long)call->plan.workspace_bytes);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__encode_call(ptxcu *cu, ptxcu_call *call, const char *name, const void *args) {
    if (!call->plan.maps) return PTXCU_E_NONE;
    PTXCU__IN_CONTEXT(cu, ptxcu__encode_maps(cu, name, &call->plan, args, call->maps));
}

/* Complete a call that has its tensors and plan: build the program, encode the tensor maps, copy arguments
   and workspace. */
static ptxcu_code ptxcu__complete_call(ptxcu *cu, ptxcu_call *call, const ptx_operation *op, const void *desc,
                                       const void *args, size_t bytes, const ptxcu_tensor *workspace) {
    ptxcu_code code;
    ptxcu__lock(&cu->table_mutex);
    call->clears = cu->clears;
    ptxcu__unlock(&cu->table_mutex);
    code = ptxcu_operation_(cu, "ptxgen_cuda.h", op, desc, &call->program);
    if (code == PTXCU_E_NONE) code = ptxcu__encode_call(cu, call, op->name, args);
    if (code != PTXCU_E_NONE) {
        memset(call, 0, sizeof *call);
        return code;
    }
    memcpy(call->args, args, bytes);
    if (workspace && workspace->owner) {
        call->workspace = ptxcu_tensor_bytes(workspace);
        call->workspace_address = workspace->address;
        call->workspace_allocation = workspace->allocation;
    }
    call->owner = cu;
    call->name = op->name;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_call_prepare(ptxcu *cu, const ptx_operation *op, const void *desc,
                                         const ptx_plan *plan, const void *args, size_t args_bytes,
                                         const ptxcu_tensor *const *tensors, uint32_t count,
                                         const ptxcu_tensor *workspace, ptxcu_call *call) {
    static const char *const name = "ptxcu_call_prepare";
    ptxcu__allocation b;
    ptxcu_code code;
    uint32_t i;
    if (call) memset(call, 0, sizeof *call);
    PTXCU__REQUIRE_READY(cu);
    if (!op || !op->name) return ptxcu__fail_null(cu, name, "op, or its name,");
    if (!plan) return ptxcu__fail_null(cu, name, "plan");
    if (!args) return ptxcu__fail_null(cu, name, "args");
    if (!tensors && count) return ptxcu__fail_null(cu, name, "tensors");
    if (!call) return ptxcu__fail_null(cu, name, "call");
    if (args_bytes > sizeof call->args || args_bytes != plan->args_bytes)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %llu bytes of arguments, the plan has %u, at most %u",
                           name, (unsigned long long)args_bytes, (unsigned)plan->args_bytes,
                           (unsigned)sizeof call->args);
    if (count > PTXCU_CALL_TENSORS)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: %u tensors, at most %d are possible", name,
                           (unsigned)count, PTXCU_CALL_TENSORS);
    if (plan->zero_bytes > plan->workspace_bytes)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: the plan zeroes %llu bytes of a workspace of %llu",
                           name, (unsigned long long)plan->zero_bytes,
                           (unsigned long long)plan->workspace_bytes);
    for (i = 0; i <= count; i++) {
        const ptxcu_tensor *t = i < count ? tensors[i] : workspace;
        const char *which = i < count ? "a tensor" : "workspace";
        if (i == count && !workspace) break;
        code = ptxcu__check_tensor(cu, op->name, which, t, &b);
        if (code == PTXCU_E_NONE && i == count && (!ptxcu__is_dense(t) || t->address % 256))
            code = ptxcu__fail(
                cu, PTXCU_E_SHAPE,
                "%s: workspace has shape %s and strides %s, must be dense and aligned to 256 bytes", op->name,
                ptxcu__format_shape(t->rank, t->shape).s, ptxcu__format_shape(t->rank, t->stride).s);
        if (code == PTXCU_E_NONE
            && i == PTXCU_CALL_TENSORS) { /* no room for it: it must be one of `tensors` */
            for (i = 0; i < count && call->tensor[i].serial != t->serial;) i++;
            if (i < count) break;
            code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: workspace is not among the %d tensors", name,
                               PTXCU_CALL_TENSORS);
        }
        if (code != PTXCU_E_NONE) {
            memset(call, 0, sizeof *call);
            return code;
        }
        call->tensor[i].serial = t->serial;
        call->tensor[i].allocation = t->allocation;
        call->tensor[i].name = which;
        call->tensors = i + 1;
    }
    call->plan = *plan;
    return ptxcu__complete_call(cu, call, op, desc, args, args_bytes, workspace);
}

/* Record that a workspace holds the zeros that the call's program needs. */
static void ptxcu__mark_zeroed(ptxcu *cu, uint32_t allocation, uint64_t at, const ptxcu_call *call) {
    ptxcu__lock(&cu->table_mutex);
    cu->allocations[allocation].zero_for = call->program;
    cu->allocations[allocation].zero_address = at;
    cu->allocations[allocation].zero_bytes = call->plan.zero_bytes;
    ptxcu__unlock(&cu->table_mutex);
}

static ptxcu_code ptxcu__workspace_create(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream,
                                          ptxcu_tensor *workspace) {
    ptxcu_tensor t;
    ptxcu_buffer b;
    ptxcu_code code = ptxcu__check_owner(cu, "ptxcu_workspace_create", call);
    if (code == PTXCU_E_NONE) code = ptxcu__check_stream(cu, "ptxcu_workspace_create", stream);
    if (code != PTXCU_E_NONE || call->plan.workspace_bytes == 0) return code;
    PTXCU__TRY(ptxcu_tensor_create(cu, PTX_B8, 1, &call->plan.workspace_bytes, &t));
    b.address = t.address;
    b.bytes = ptxcu_tensor_bytes(&t);
    code = ptxcu_fill8(cu, b, 0, 0, (size_t)call->plan.zero_bytes, stream);
    if (code != PTXCU_E_NONE) {
        ptxcu_tensor_free(cu, &t);
        return code;
    }
    ptxcu__mark_zeroed(cu, t.allocation, t.address, call);
    *workspace = t;
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_workspace_create(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream,
                                             ptxcu_tensor *workspace) {
    if (workspace) memset(workspace, 0, sizeof *workspace);
    PTXCU__REQUIRE(cu, workspace_create, call);
    PTXCU__REQUIRE(cu, workspace_create, workspace);
    PTXCU__IN_CONTEXT(cu, ptxcu__workspace_create(cu, call, stream, workspace));
}

/* Launch a checked call. Each program leaves the zeros that it needs in its workspace; if another program
   used it last, zero them on the stream first. A captured memset runs later, so it does not count as done. */
static ptxcu_code ptxcu__launch_call(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream) {
    uint64_t bytes = call->plan.zero_bytes;
    int ready = 1, result, capturing = 0;
    if (call->workspace) {
        ptxcu__allocation *b;
        ptxcu__lock(&cu->table_mutex);
        b = &cu->allocations[call->workspace_allocation];
        ready = b->zero_for == call->program && b->zero_address == call->workspace_address
                && b->zero_bytes == bytes;
        if (!ready) b->zero_for = NULL;
        ptxcu__unlock(&cu->table_mutex);
    }
    if (!ready && bytes) {
        result = cu->driver.cuMemsetD8Async(call->workspace_address, 0, (size_t)bytes, stream);
        if (result && ptxcu__check_stream(cu, call->name, stream) == PTXCU_E_WRONG_HANDLE)
            return PTXCU_E_WRONG_HANDLE;
        if (!result) result = cu->driver.cuStreamIsCapturing(stream, &capturing);
        if (result)
            return ptxcu__fail_driver(cu, result, "%s: cuMemsetD8Async(workspace) or cuStreamIsCapturing()",
                                      call->name);
        if (!capturing) ptxcu__mark_zeroed(cu, call->workspace_allocation, call->workspace_address, call);
    }
    return ptxcu__run(cu, call->program, &call->plan, call->args, call->plan.args_bytes, call->maps, stream);
}

static ptxcu_code ptxcu__run_call(ptxcu *cu, const char *function, const ptxcu_call *call,
                                  ptxcu_stream stream) {
    PTXCU__TRY(ptxcu__check_call(cu, function, call, 0));
    return ptxcu__launch_call(cu, call, stream);
}

PTXGEN_API ptxcu_code ptxcu_call_run(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__run_call(cu, "ptxcu_call_run", call, stream));
}

static ptxcu_code ptxcu__call_finish(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream) {
    int result;
    PTXCU__TRY(ptxcu__run_call(cu, "ptxcu_call_finish", call, stream));
    result = cu->driver.cuStreamSynchronize(stream);
    return result ? ptxcu__fail_driver(cu, result, "%s: cuStreamSynchronize()", call->name) : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_call_finish(ptxcu *cu, const ptxcu_call *call, ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__call_finish(cu, call, stream));
}

/* A running call: its own stream and events, and the allocations that it pins. */
struct ptxcu_result {
    ptxcu *owner;
    void *stream, *begin, *end;
    uint32_t pending, allocations;
    uint32_t allocation[PTXCU_CALL_TENSORS];
};

PTX__COLD ptxcu_code ptxcu__result_create(ptxcu *cu, ptxcu_result **out) {
    ptxcu_result *r;
    ptxcu_code code;
    int result;
    r = (ptxcu_result *)ptxcu__alloc_zeroed(cu, sizeof *r);
    if (!r) return ptxcu__fail_memory(cu, sizeof *r);
    r->owner = cu;
    result = cu->driver.cuStreamCreate(&r->stream, 1);
    if (!result) result = cu->driver.cuEventCreate(&r->begin, 2); /* CU_EVENT_DISABLE_TIMING */
    if (!result) result = cu->driver.cuEventCreate(&r->end, 2);
    if (!result) {
        *out = r;
        return PTXCU_E_NONE;
    }
    code = ptxcu__fail_driver(cu, result, "ptxcu_result_create: %s()",
                              r->begin || r->stream ? "cuEventCreate" : "cuStreamCreate");
    if (r->begin) cu->driver.cuEventDestroy_v2(r->begin);
    if (r->stream) cu->driver.cuStreamDestroy_v2(r->stream);
    ptxcu__free_host(cu, r, sizeof *r);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_result_create(ptxcu *cu, ptxcu_result **out) {
    if (out) *out = NULL;
    PTXCU__REQUIRE_READY(cu);
    if (!out) return ptxcu__fail_null(cu, "ptxcu_result_create", "result");
    PTXCU__IN_CONTEXT(cu, ptxcu__result_create(cu, out));
}

/* Unpin the allocation of tensor `entry` of an address table; UINT32_MAX: `allocation` itself. Free it if
   this was the last pin and its tensor was freed meanwhile. */
static ptxcu_code ptxcu__unpin_allocation(ptxcu *cu, uint32_t allocation, uint32_t entry) {
    ptxcu__allocation *b;
    int last;
    ptxcu__lock(&cu->table_mutex);
    if (entry != UINT32_MAX) allocation = cu->allocations[allocation].sequence_tensors[entry].allocation;
    b = &cu->allocations[allocation];
    last = --b->pins == 0 && b->serial == 0;
    ptxcu__unlock(&cu->table_mutex);
    return last ? ptxcu__free_allocation(cu, allocation) : PTXCU_E_NONE;
}

/* Unpin the allocations of a finished call and free those whose tensors were freed meanwhile. */
static ptxcu_code ptxcu__unpin_allocations(ptxcu *cu, const uint32_t *allocations, uint32_t count) {
    ptxcu_code code = PTXCU_E_NONE, one;
    uint32_t i, j, tensor_count;
    for (i = 0; i < count; i++) {
        ptxcu__lock(&cu->table_mutex);
        /* The tensors of an address table live while its allocation is pinned. */
        tensor_count = cu->allocations[allocations[i]].sequence_tensor_count;
        ptxcu__unlock(&cu->table_mutex);
        for (j = 0; j <= tensor_count; j++) {
            one = ptxcu__unpin_allocation(cu, allocations[i], j < tensor_count ? j : UINT32_MAX);
            if (one != PTXCU_E_NONE) code = one; /* ptxcu_close frees the allocation */
        }
    }
    return code;
}

static ptxcu_code ptxcu__finish_result(ptxcu *cu, ptxcu_result *r) {
    r->pending = 0;
    return ptxcu__unpin_allocations(cu, r->allocation, r->allocations);
}

static ptxcu_code ptxcu__check_result(ptxcu *cu, const char *function, const ptxcu_result *r) {
    if (!r) return ptxcu__fail_null(cu, function, "result");
    if (r->owner != cu)
        return ptxcu__fail(cu, PTXCU_E_WRONG_HANDLE, "%s: the result is of another handle", function);
    return PTXCU_E_NONE;
}

static ptxcu_code ptxcu__result_poll(ptxcu *cu, ptxcu_result *r, int *done) {
    int result = r->pending ? cu->driver.cuEventQuery(r->end) : 0;
    if (result == 600) return PTXCU_E_NONE; /* CUDA_ERROR_NOT_READY */
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_result_poll: cuEventQuery()");
    *done = 1;
    return r->pending ? ptxcu__finish_result(cu, r) : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_result_poll(ptxcu *cu, ptxcu_result *r, int *done) {
    if (done) *done = 0;
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_result(cu, "ptxcu_result_poll", r));
    PTXCU__REQUIRE(cu, result_poll, done);
    PTXCU__IN_CONTEXT(cu, ptxcu__result_poll(cu, r, done));
}

static ptxcu_code ptxcu__result_wait(ptxcu *cu, ptxcu_result *r) {
    int result = cu->driver.cuEventSynchronize(r->end);
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_result_wait: cuEventSynchronize()");
    return ptxcu__finish_result(cu, r);
}

PTXGEN_API ptxcu_code ptxcu_result_wait(ptxcu *cu, ptxcu_result *r) {
    ptxcu_code code;
    PTXCU__REQUIRE_READY(cu);
    code = ptxcu__check_result(cu, "ptxcu_result_wait", r);
    if (code != PTXCU_E_NONE || !r->pending) return code;
    PTXCU__IN_CONTEXT(cu, ptxcu__result_wait(cu, r));
}

static ptxcu_code ptxcu__stream_wait_result(ptxcu *cu, ptxcu_stream stream, ptxcu_result *r) {
    static const char *const name = "ptxcu_stream_wait_result";
    int result;
    PTXCU__TRY(ptxcu__check_stream(cu, name, stream));
    result = cu->driver.cuStreamWaitEvent(stream, r->end, 0);
    return result ? ptxcu__fail_driver(cu, result, "%s: cuStreamWaitEvent()", name) : PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_stream_wait_result(ptxcu *cu, ptxcu_stream stream, ptxcu_result *r) {
    ptxcu_code code;
    PTXCU__REQUIRE_READY(cu);
    code = ptxcu__check_result(cu, "ptxcu_stream_wait_result", r);
    if (code != PTXCU_E_NONE || !r->pending) return code;
    PTXCU__IN_CONTEXT(cu, ptxcu__stream_wait_result(cu, stream, r));
}

PTX__COLD ptxcu_code ptxcu__result_free(ptxcu *cu, ptxcu_result *r) {
    ptxcu_code code = PTXCU_E_NONE, last;
    int result;
    if (r->pending) {
        /* If both waits fail, the context is lost and nothing runs in it. */
        result = cu->driver.cuEventSynchronize(r->end);
        if (result && cu->driver.cuStreamSynchronize(r->stream) == 0) result = 0;
        if (result) code = ptxcu__fail_driver(cu, result, "ptxcu_result_free: cuEventSynchronize()");
        last = ptxcu__finish_result(cu, r);
        if (code != PTXCU_E_NONE || last != PTXCU_E_NONE) return code != PTXCU_E_NONE ? code : last;
    }
    result = r->begin ? cu->driver.cuEventDestroy_v2(r->begin) : 0;
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_result_free: cuEventDestroy_v2()");
    r->begin = NULL;
    result = r->end ? cu->driver.cuEventDestroy_v2(r->end) : 0;
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_result_free: cuEventDestroy_v2()");
    r->end = NULL;
    result = cu->driver.cuStreamDestroy_v2(r->stream);
    if (result) return ptxcu__fail_driver(cu, result, "ptxcu_result_free: cuStreamDestroy_v2()");
    ptxcu__free_host(cu, r, sizeof *r);
    return PTXCU_E_NONE;
}

PTXGEN_API ptxcu_code ptxcu_result_free(ptxcu *cu, ptxcu_result *r) {
    PTXCU__REQUIRE_READY(cu);
    if (!r) return PTXCU_E_NONE;
    PTXCU__TRY(ptxcu__check_result(cu, "ptxcu_result_free", r));
    PTXCU__IN_CONTEXT(cu, ptxcu__result_free(cu, r));
}

static ptxcu_code ptxcu__call_start(ptxcu *cu, const ptxcu_call *call, ptxcu_stream after, ptxcu_result *r) {
    static const char *const name = "ptxcu_call_start";
    ptxcu_code code = PTXCU_E_NONE;
    int result, status = 0, begun = 0;
    uint32_t i;
    if (r->pending) {
        result = cu->driver.cuEventQuery(r->end);
        if (result == 600)
            return ptxcu__fail(cu, PTXCU_E_BUSY, "%s: the result's last call has not finished", name);
        if (result) return ptxcu__fail_driver(cu, result, "%s: cuEventQuery()", name);
        PTXCU__TRY(ptxcu__finish_result(cu, r));
    }
    PTXCU__TRY(ptxcu__check_stream(cu, name, after));
    result = cu->driver.cuStreamIsCapturing(after, &status);
    if (result) return ptxcu__fail_driver(cu, result, "%s: cuStreamIsCapturing()", name);
    if (status)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: the stream is in a capture; use ptxcu_call_run", name);
    PTXCU__TRY(ptxcu__check_call(cu, name, call, 1));
    r->allocations = call->tensors;
    for (i = 0; i < r->allocations; i++) r->allocation[i] = call->tensor[i].allocation;
    result = cu->driver.cuEventRecord(r->begin, after);
    if (result) code = ptxcu__fail_driver(cu, result, "%s: cuEventRecord()", name);
    if (!result) {
        result = cu->driver.cuStreamWaitEvent(r->stream, r->begin, 0);
        if (result) code = ptxcu__fail_driver(cu, result, "%s: cuStreamWaitEvent()", name);
    }
    if (!result) {
        begun = 1;
        code = ptxcu__launch_call(cu, call, r->stream);
    }
    if (code == PTXCU_E_NONE) {
        result = cu->driver.cuEventRecord(r->end, r->stream);
        if (result) code = ptxcu__fail_driver(cu, result, "%s: cuEventRecord()", name);
    }
    if (code == PTXCU_E_NONE) {
        r->pending = 1;
        return PTXCU_E_NONE;
    }
    /* Launched work must end before its memory is freed. */
    if (begun) cu->driver.cuStreamSynchronize(r->stream);
    ptxcu__unpin_allocations(cu, r->allocation, r->allocations);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_call_start(ptxcu *cu, const ptxcu_call *call, ptxcu_stream after,
                                       ptxcu_result *r) {
    PTXCU__REQUIRE_READY(cu);
    PTXCU__TRY(ptxcu__check_result(cu, "ptxcu_call_start", r));
    PTXCU__IN_CONTEXT(cu, ptxcu__call_start(cu, call, after, r));
}

#ifdef __cplusplus
}
#endif
PTX__END_SMALL
#endif /* PTXGEN__CUDA_IMPLEMENTED */

#if defined(PTXGEN_IMPLEMENTATION) && defined(PTXGEN_KERNELS_H)                                              \
    && !defined(PTXGEN__CUDA_OPERATIONS_IMPLEMENTED)
#define PTXGEN__CUDA_OPERATIONS_IMPLEMENTED

#include "ptxgen_kernels.h"

PTX__BEGIN_SMALL
/* -- operations on tensors: checks -- */

#define PTXCU__ANY UINT64_MAX
#define PTXCU__CACHE_DIMS(paged)                                                                             \
    ((paged) ? "pages, kv_heads, page_size, head_dim" : "batch, kv_heads, max_seq, head_dim")
enum { /* one enum: C++20 compilers warn of | between two enums */
    PTXCU__OPTIONAL = 1,
    PTXCU__WRITTEN = 2, /* by the operation */
    PTXCU__DENSE = 4,
    PTXCU__CONTIGUOUS_ROWS = 8, /* the last dimension is contiguous */
    PTXCU__MAY_ALIAS = 16,      /* may equal another tensor with this flag, although one of them is written */
    PTXCU__DENSE_OUTPUT = PTXCU__DENSE | PTXCU__WRITTEN,
    PTXCU__DENSE_OPTIONAL = PTXCU__DENSE | PTXCU__OPTIONAL
};
#define PTXCU__TYPE(type) ((uint64_t)1 << ((type)&63)) /* an invalid type is refused elsewhere */
#define PTXCU__FLOAT_TYPES (PTXCU__TYPE(PTX_F32) | PTXCU__TYPE(PTX_F16) | PTXCU__TYPE(PTX_BF16))

/* State of the check of an operation's tensors. After the first fault, later checks do nothing. */
typedef struct ptxcu__operation_check {
    ptxcu *cu;
    const char *name;
    ptxcu_call *call;
    ptxcu_code code;
    ptxk_message why; /* message of the operation's plan or check */
    const ptxcu_tensor *tensors[PTXCU_CALL_TENSORS];
    uint32_t flags[PTXCU_CALL_TENSORS];
    /* For a cache of ptxcu_kv_cache_wrap_each: the index of k among the tensors (v follows), and the
       allocation of the address table. 0 sequences: no such cache. */
    uint32_t k_index, sequences, addresses_allocation;
    uint32_t renames_matrix_fields; /* 1: gemv and gemm, see ptxcu__report_plan_error */
    /* Sizes of the named dimensions in the rules of tensors. */
    uint32_t sizes;
    struct {
        const char *name;
        size_t length;
        uint64_t size;
    } size[8]; /* a description has fewer */
} ptxcu__operation_check;

/* What an operation requires of one of its tensors. dims: dimensions separated by ", ". Each is a name, such
   as "n", or a sum, product or quotient, such as "experts + 1". The first tensor with a name sets its size;
   later ones must have that size. */
typedef struct ptxcu__rule {
    const char *name, *dims;
    uint64_t types;          /* bits of PTXCU__TYPE */
    uint16_t tensor_offset;  /* of the tensor in the description */
    uint16_t address_offset; /* of its address in the argument struct */
    uint8_t flags, align;
    int8_t same_type_as; /* position relative to this rule of the tensor whose type it must have; 0, or that
                            tensor is absent: types */
} ptxcu__rule;
#define PTXCU__RULE(operation, field, flags, types, same_type_as, align, dims)                               \
    {#field, dims, types, (uint16_t)offsetof(ptxcu_##operation##_desc, field),                               \
     (uint16_t)offsetof(ptxk_##operation##_args, field), flags, align, same_type_as}

/* Begin a prepare function, which then fills in kernel, shape and args, and reports errors through `c`. */
#define PTXCU__PREPARE(operation)                                                                            \
    ptxcu__operation_check c;                                                                                \
    ptxk_##operation##_desc kernel;                                                                          \
    ptxk_##operation##_shape shape;                                                                          \
    ptxk_##operation##_args args;                                                                            \
    PTXCU__TRY(ptxcu__begin_check(&c, cu, #operation, desc, call));                                          \
    memset(&kernel, 0, sizeof kernel);                                                                       \
    memset(&shape, 0, sizeof shape);                                                                         \
    memset(&args, 0, sizeof args)

/* Require the tensors of a list of rules, and fill in their addresses. */
#define PTXCU__REQUIRE_ALL(rules)                                                                            \
    ptxcu__require_all(&c, rules, (uint32_t)(sizeof(rules) / sizeof *(rules)), desc, &args)

/* End a prepare function: plan, check the arguments if `checked`, complete the call. */
#define PTXCU__COMPLETE(operation, checked, workspace)                                                       \
    do {                                                                                                     \
        if (c.code == PTXCU_E_NONE)                                                                          \
            ptxcu__report_plan_error(&c, ptxk_##operation##_plan(&kernel, &shape, &call->plan, &c.why));     \
        if (c.code == PTXCU_E_NONE && (checked))                                                             \
            ptxcu__report_plan_error(&c, ptxk_##operation##_check(&kernel, &args, &c.why));                  \
        return ptxcu__complete_check(&c, &kernel, &args, sizeof args, workspace);                            \
    } while (0)

PTXK__SHARED ptxcu_code ptxcu__begin_check(ptxcu__operation_check *c, ptxcu *cu, const char *name,
                                           const void *desc, ptxcu_call *call) {
    memset(c, 0, sizeof *c);
    if (call) memset(call, 0, sizeof *call);
    PTXCU__REQUIRE_READY(cu);
    c->cu = cu;
    c->name = name;
    c->call = call;
    c->code = !desc ? ptxcu__fail_null(cu, name, "the description") : PTXCU_E_NONE;
    if (!call) c->code = ptxcu__fail_null(cu, name, "call");
    return c->code;
}

/* "f32", "f32 or f16", "f32, f16 or bf16" */
static ptxcu__text ptxcu__format_types(uint64_t types) {
    ptxcu__text t;
    size_t n = 0;
    uint32_t i;
    t.s[0] = 0;
    for (i = 0; i < (uint32_t)PTX__TYPE_COUNT; i++)
        if (types >> i & 1) {
            const char *before = n == 0 ? "" : types >> i > 1 ? ", " : " or ";
            n += (size_t)snprintf(t.s + n, sizeof t.s - n, "%s%s", before, ptx_type_name((ptx_type)i));
        }
    return t;
}

/* Require a tensor of this handle that is not freed, and add it to the call. types: bits of PTXCU__TYPE, 0:
   any. rank: 0: any. d0 to d3: sizes, PTXCU__ANY: any. align: in bytes. dims: names of the dimensions, for
   the message. */
static void ptxcu__require(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t, uint32_t flags,
                           uint64_t types, uint32_t align, const char *dims, uint32_t rank, uint64_t d0,
                           uint64_t d1, uint64_t d2, uint64_t d3) {
    uint64_t sizes[4];
    ptxcu__text shape;
    ptxcu__allocation b;
    uint32_t i, n = c->call ? c->call->tensors : 0;
    int has_shape = 1;
    if (c->code == PTXCU_E_NONE && (flags & PTXCU__OPTIONAL) && !t->owner && t->address)
        c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT,
                              "%s: %s has an address and is no tensor: make it with ptxcu_tensor_wrap",
                              c->name, name);
    if (c->code != PTXCU_E_NONE || ((flags & PTXCU__OPTIONAL) && !t->owner)) return;
    c->code = ptxcu__check_tensor(c->cu, c->name, name, t, &b);
    if (c->code != PTXCU_E_NONE) return;
    sizes[0] = d0;
    sizes[1] = d1;
    sizes[2] = d2;
    sizes[3] = d3;
    shape = ptxcu__format_shape(t->rank, t->shape);
    if (types && !(t->type < 64 && types >> t->type & 1)) {
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s is of type %s, must be %s", c->name, name,
                              ptx_type_name((ptx_type)t->type), ptxcu__format_types(types).s);
        return;
    }
    if (rank && t->rank != rank) has_shape = 0;
    for (i = 0; rank && has_shape && i < rank; i++)
        has_shape = sizes[i] == PTXCU__ANY || sizes[i] == t->shape[i];
    if (!has_shape) {
        for (i = 0; i < rank && sizes[i] != PTXCU__ANY;) i++;
        c->code =
            ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s has shape %s, must be [%s]%s%s", c->name, name, shape.s,
                        dims, i == rank ? ": " : "", i == rank ? ptxcu__format_shape(rank, sizes).s : "");
        for (i = 0; i < rank && t->rank == rank; i++)
            if (sizes[i] != PTXCU__ANY && sizes[i] != t->shape[i])
                ptxcu__append(c->cu, "; dimension %u must be %llu", (unsigned)i,
                              (unsigned long long)sizes[i]);
        return;
    }
    for (i = 0; rank && i < t->rank; i++)
        if (t->shape[i] > UINT32_MAX) {
            c->code =
                ptxcu__fail(c->cu, PTXCU_E_OVERFLOW, "%s: %s has shape %s, dimensions must be below 2^32",
                            c->name, name, shape.s);
            return;
        }
    if (((flags & PTXCU__DENSE) && !ptxcu__is_dense(t))
        || ((flags & PTXCU__CONTIGUOUS_ROWS) && t->shape[t->rank - 1] > 1 && t->stride[t->rank - 1] != 1)) {
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s has shape %s and strides %s, must be %s", c->name,
                              name, shape.s, ptxcu__format_shape(t->rank, t->stride).s,
                              flags & PTXCU__DENSE ? "dense" : "dense in its last dimension");
        return;
    }
    if (t->address % align) {
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s lies at 0x%llx, must be aligned to %u bytes",
                              c->name, name, (unsigned long long)t->address, (unsigned)align);
        return;
    }
    if (n == PTXCU_CALL_TENSORS) {
        c->code =
            ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "%s: more than %d tensors", c->name, PTXCU_CALL_TENSORS);
        return;
    }
    c->tensors[n] = t;
    c->flags[n] = flags;
    c->call->tensor[n].serial = t->serial;
    c->call->tensor[n].allocation = t->allocation;
    c->call->tensor[n].name = name;
    c->call->tensors++;
}

/* The size of a named dimension, or the value of a number; PTXCU__ANY for a name without a size yet. */
static uint64_t ptxcu__find_size(const ptxcu__operation_check *c, const char *name, size_t length) {
    uint32_t i;
    for (i = 0; i < c->sizes; i++)
        if (c->size[i].length == length && memcmp(c->size[i].name, name, length) == 0) return c->size[i].size;
    return *name >= '0' && *name <= '9' ? strtoul(name, NULL, 10) : PTXCU__ANY;
}

/* Parse a dimension of a rule and return the size that it must have; *text moves to the next dimension.
   *length: the name's length if the dimension is a name alone, else 0. */
static uint64_t ptxcu__parse_size(const ptxcu__operation_check *c, const char **text, size_t *length) {
    const char *name = *text, *sign = name + strcspn(name, ",+*/"), *end = sign + strcspn(sign, ",");
    uint64_t size = ptxcu__find_size(c, name, (size_t)(sign - name) - (sign == end ? 0 : 1)), other;
    *text = *end ? end + 2 : end;
    *length = sign == end ? (size_t)(end - name) : 0;
    if (*length || size == PTXCU__ANY) return size;
    other = ptxcu__find_size(c, sign + 2, (size_t)(end - sign) - 2);
    return *sign == '+' ? size + other : *sign == '*' ? size * other : size / other;
}

/* Require the tensors of a description, and fill in their addresses in the arguments of the kernel. */
PTXK__SHARED void ptxcu__require_all(ptxcu__operation_check *c, const ptxcu__rule *rules, uint32_t count,
                                     const void *desc, void *args) {
    uint64_t size[4];
    const char *text, *name[4];
    size_t length[4];
    uint32_t i, rank;
    for (; count; count--, rules++) {
        const char *base = (const char *)desc;
        const ptxcu_tensor *t = (const ptxcu_tensor *)(const void *)(base + rules->tensor_offset);
        const ptxcu_tensor *other =
            (const ptxcu_tensor *)(const void *)(base + rules[rules->same_type_as].tensor_offset);
        uint64_t types = rules->same_type_as && other->owner ? PTXCU__TYPE(other->type) : rules->types;
        memset(size, 0, sizeof size);
        for (rank = 0, text = rules->dims; *text; rank++) {
            name[rank] = text;
            size[rank] = ptxcu__parse_size(c, &text, &length[rank]);
        }
        ptxcu__require(c, rules->name, t, rules->flags, types, rules->align, rules->dims, rank, size[0],
                       size[1], size[2], size[3]);
        if (c->code != PTXCU_E_NONE) return;
        for (i = 0; i < rank && t->owner; i++) {
            if (!length[i] || size[i] != PTXCU__ANY) continue;
            c->size[c->sizes].name = name[i];
            c->size[c->sizes].length = length[i];
            c->size[c->sizes++].size = t->shape[i];
        }
        memcpy((char *)args + rules->address_offset, &t->address, sizeof t->address);
    }
}

/* The stride of a dimension in elements; 0 in an empty tensor and for a size below 2, where any stride is
   valid. */
static uint64_t ptxcu__get_stride(const ptxcu_tensor *t, uint32_t dim) {
    return t->shape[dim] > 1 && ptxcu_tensor_bytes(t) ? t->stride[dim] : 0;
}

/* The memory span of a tensor: one row if it is dense, else rows of the last dimension; rank at most 4. The
   outer dimensions keep their order, so that strides of tensors packed in the same rows are comparable. */
static ptxk__span ptxcu__get_span(const ptxcu_tensor *t, uint32_t flags) {
    uint64_t size = ptx_type_bytes((ptx_type)t->type), bytes = ptxcu_tensor_bytes(t);
    uint32_t i, dense = !bytes || !(flags & PTXCU__CONTIGUOUS_ROWS);
    ptxk__span s = ptxk__span_of("", t->address, dense ? bytes : t->shape[t->rank - 1] * size, 1, 1);
    s.alias_bits = flags & PTXCU__MAY_ALIAS;
    for (i = 0; !dense && i + 1 < t->rank; i++)
        ptxk__span_repeat(&s, t->rank - 2 - i, t->shape[i], ptxcu__get_stride(t, i) * size);
    return s;
}

/* The memory span of tensor i; for k and v of separate sequences, that of one sequence. Needs table_mutex. */
static ptxk__span ptxcu__get_sequence_span(const ptxcu__operation_check *c, uint32_t i, uint32_t sequence) {
    ptxk__span s = ptxcu__get_span(c->tensors[i], c->flags[i]);
    const ptxcu__allocation *b = &c->cu->allocations[c->addresses_allocation];
    if (c->sequences && i - c->k_index < 2 && b->sequence_tensor_count == 2 * c->sequences)
        s.address = b->sequence_tensors[(i - c->k_index) * c->sequences + sequence].address;
    return s;
}

/* Whether output i overlaps tensor j without being the same tensor. */
static int ptxcu__has_overlap(const ptxcu__operation_check *c, uint32_t i, uint32_t j) {
    int i_per_sequence = c->sequences && i - c->k_index < 2;
    int j_per_sequence = c->sequences && j - c->k_index < 2;
    uint32_t m, n;
    if (i_per_sequence && j_per_sequence) return 0; /* checked by ptxcu_kv_cache_wrap_each */
    for (m = 0; m < (i_per_sequence ? c->sequences : 1); m++)
        for (n = 0; n < (j_per_sequence ? c->sequences : 1); n++) {
            ptxk__span a = ptxcu__get_sequence_span(c, i, m), b = ptxcu__get_sequence_span(c, j, n);
            if (!ptxk__spans_overlap(&a, &b)) continue;
            if (c->tensors[i]->type != c->tensors[j]->type || !ptxk__spans_are_equal(&a, &b)) return 1;
        }
    return 0;
}

/* Check that no output overlaps another tensor. The workspace is an output. */
static ptxcu_code ptxcu__check_overlaps(ptxcu__operation_check *c) {
    uint32_t i, j;
    if (c->code != PTXCU_E_NONE) {
        if (c->call) memset(c->call, 0, sizeof *c->call);
        return c->code;
    }
    for (i = 0; i < c->call->tensors; i++)
        for (j = 0; j < c->call->tensors; j++) {
            int overlap;
            if (i == j || !(c->flags[i] & PTXCU__WRITTEN) || (j < i && (c->flags[j] & PTXCU__WRITTEN)))
                continue;
            ptxcu__lock(&c->cu->table_mutex);
            overlap = ptxcu__has_overlap(c, i, j);
            ptxcu__unlock(&c->cu->table_mutex);
            if (!overlap) continue;
            c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s, which is written, overlaps %s", c->name,
                                  c->call->tensor[i].name, c->call->tensor[j].name);
            memset(c->call, 0, sizeof *c->call);
            return c->code;
        }
    return PTXCU_E_NONE;
}

/* Complete the call if tensors and plan are valid. */
PTXK__SHARED ptxcu_code ptxcu__complete_check(ptxcu__operation_check *c, const void *desc, const void *args,
                                              size_t bytes, const ptxcu_tensor *workspace) {
    PTXCU__TRY(ptxcu__check_overlaps(c));
    return ptxcu__complete_call(c->cu, c->call, ptxk_operation_find(c->name), desc, args, bytes, workspace);
}

PTX__NOINLINE PTXK__SHARED ptxcu_code ptxcu__run_prepared(ptxcu *cu, const char *function,
                                                          const ptxcu_call *call, ptxcu_stream stream) {
    PTXCU__IN_CONTEXT(cu, ptxcu__run_call(cu, function, call, stream));
}

/* Define ptxcu_<operation>, and begin ptxcu_<operation>_prepare, whose body follows and is compiled for size.
   The test of the handle stays outside that body: otherwise GCC would compile the callers for size, too. */
#define PTXCU__OPERATION(operation)                                                                          \
    PTX__COLD ptxcu_code ptxcu__prepare_##operation(ptxcu *cu, const ptxcu_##operation##_desc *desc,         \
                                                    ptxcu_call *call);                                       \
    PTXGEN_API ptxcu_code ptxcu_##operation##_prepare(ptxcu *cu, const ptxcu_##operation##_desc *desc,       \
                                                      ptxcu_call *call) {                                    \
        if (call) memset(call, 0, sizeof *call);                                                             \
        PTXCU__REQUIRE_READY(cu);                                                                            \
        return ptxcu__prepare_##operation(cu, desc, call);                                                   \
    }                                                                                                        \
    PTXGEN_API ptxcu_code ptxcu_##operation(ptxcu *cu, const ptxcu_##operation##_desc *desc,                 \
                                            ptxcu_stream stream) {                                           \
        ptxcu_call call;                                                                                     \
        PTXCU__TRY(ptxcu_##operation##_prepare(cu, desc, &call));                                            \
        return ptxcu__run_prepared(cu, "ptxcu_" #operation, &call, stream);                                  \
    }                                                                                                        \
    PTX__COLD ptxcu_code ptxcu__prepare_##operation(ptxcu *cu, const ptxcu_##operation##_desc *desc,         \
                                                    ptxcu_call *call)

/* If `code` is an error of an operation's plan or check, report its message, c->why. In those of gemv and
   gemm, replace the names of kernel fields by those of the tensor description. */
PTXK__SHARED void ptxcu__report_plan_error(ptxcu__operation_check *c, ptx_code code) {
    static const char *const fields[][2] = {{"matrix[0].", ""},
                                            {"matrix[1].", "more[0]."},
                                            {"matrix[2].", "more[1]."},
                                            {"second", "more[0].format"},
                                            {"third", "more[1].format"},
                                            {"x_stride", "x's row stride"},
                                            {"y_stride", "y's row stride"},
                                            {"residual_stride", "residual's row stride"}};
    char text[2 * sizeof c->why.text];
    const char *p = c->why.text;
    size_t n = 0, i, length, field_count = sizeof fields / sizeof *fields;
    if (c->code != PTXCU_E_NONE || !code) return;
    if (!c->renames_matrix_fields) field_count = 0;
    while (*p && n + 32 < sizeof text) {
        int at_word_start = p == c->why.text || p[-1] == ' ' || p[-1] == '.';
        for (i = 0; i < field_count; i++) {
            length = strlen(fields[i][0]);
            if (at_word_start && !strncmp(p, fields[i][0], length)
                && (p[length - 1] == '.' || !p[length] || strchr(" ,.:", p[length])))
                break;
        }
        if (i == field_count) {
            text[n++] = *p++;
            continue;
        }
        p += length;
        length = strlen(fields[i][1]);
        memcpy(text + n, fields[i][1], length);
        n += length;
    }
    text[n] = 0;
    c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s", text);
}

/* Require a field to be at most `most`, which is 0 or 1. */
PTXK__SHARED void ptxcu__require_flag(ptxcu__operation_check *c, const char *name, uint32_t x,
                                      uint32_t most) {
    if (c->code != PTXCU_E_NONE || x <= most) return;
    c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "%s: %s is %u, must be 0%s", c->name, name, (unsigned)x,
                          most ? " or 1" : "");
}

#if PTXK__HAS(PTXK_OP_GEMV | PTXK_OP_GEMM | PTXK_OP_EMBED)
/* Whether `format` is an 8-bit element type that the operation takes as weights. */
static int ptxcu__is_byte_format(const ptxcu__operation_check *c, uint32_t format) {
    return !strcmp(c->name, "gemm") && (format == PTX_E4M3 || format == PTX_E5M2 || format == PTX_S8);
}

/* Require rows of weights: bytes of a format, or elements of a plain type. groups: first dimension, or 0. */
static void ptxcu__require_weights(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t,
                                   uint32_t format, uint64_t k, uint64_t groups) {
    int is_byte = ptxcu__is_byte_format(c, format);
    ptx_type plain = format == PTXK_F32    ? PTX_F32
                     : format == PTXK_F16  ? PTX_F16
                     : format == PTXK_BF16 ? PTX_BF16
                     : is_byte             ? (ptx_type)format
                                           : PTX_NONE;
    uint64_t row = k > UINT32_MAX ? 0 : is_byte ? k : ptxk_row_bytes(format, (uint32_t)k);
    if (c->code == PTXCU_E_NONE && !is_byte && *ptxk_format_name(format) == '?')
        c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT,
                              "%s: the format of %s is %s, must be " PTXK__FORMAT_LIST "%s", c->name, name,
                              ptxk__value_name_of(format).s,
                              ptxcu__is_byte_format(c, PTX_S8) ? ", or PTX_E4M3, PTX_E5M2 or PTX_S8" : "");
    if (c->code == PTXCU_E_NONE && !row)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s: %llu values are no whole number of blocks of %s",
                              c->name, name, (unsigned long long)k, ptxk_format_name(format));
    plain = plain != PTX_NONE && t->type == (uint32_t)plain ? plain : PTX_NONE;
    if (plain != PTX_NONE) row = k;
    ptxcu__require(c, name, t, PTXCU__DENSE,
                   plain != PTX_NONE ? PTXCU__TYPE(plain) : PTXCU__TYPE(PTX_B8) | PTXCU__TYPE(PTX_U8), 16,
                   groups             ? "groups, n, a row"
                   : plain != PTX_NONE ? "n, k"
                                      : "n, bytes of a row",
                   groups ? 3 : 2, groups ? groups : PTXCU__ANY, groups ? PTXCU__ANY : row, row, 0);
}

#endif

PTXK__SHARED void ptxcu__require_workspace(ptxcu__operation_check *c, const ptxcu_tensor *t) {
    ptxcu__require(c, "workspace", t, PTXCU__OPTIONAL | PTXCU__DENSE_OUTPUT, 0, 256, "", 0, 0, 0, 0, 0);
}

/* -- KV caches -- */
#if PTXK__HAS(PTXK_OP_FLASH_DECODE | PTXK_OP_KV_SCATTER | PTXK_OP_FLASH_PREFILL | PTXK_OP_FLASH_MLA)

/* Add an outer dimension of `batch` with a stride of 0 to [kv_heads, max_seq, head_dim]. */
static ptxcu_tensor ptxcu__add_batch_dim(const ptxcu_tensor *t, uint32_t batch) {
    ptxcu_tensor four = *t;
    uint32_t i;
    for (i = 3; i > 0; i--) four.shape[i] = t->shape[i - 1], four.stride[i] = t->stride[i - 1];
    four.shape[0] = batch;
    four.stride[0] = 0;
    four.rank = 4;
    four.view = 1;
    return four;
}

static void ptxcu__require_same_strides(ptxcu__operation_check *c, const char *a_name, const ptxcu_tensor *a,
                                        const char *b_name, const ptxcu_tensor *b, uint32_t rank) {
    uint32_t i;
    for (i = 0; i < rank && c->code == PTXCU_E_NONE; i++)
        if (ptxcu__get_stride(a, i) != ptxcu__get_stride(b, i))
            c->code =
                ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s has strides %s, %s has %s; they must be the same",
                            c->name, a_name, ptxcu__format_shape(rank, a->stride).s, b_name,
                            ptxcu__format_shape(rank, b->stride).s);
}

/* Create made->addresses from made->k and made->v, or from `tensors` if not NULL: k of all sequences, then v.
   On success the address table owns `tensors`. */
PTX__COLD ptxcu_code ptxcu__create_address_table(ptxcu *cu, uint64_t batch, ptxcu_tensor *tensors,
                                                 ptxcu_kv_cache *made) {
    const ptxcu_tensor *k = &made->k, *v = &made->v;
    uint64_t shape[2], i, size = ptx_type_bytes((ptx_type)k->type), *addresses;
    size_t bytes;
    ptxcu_code code = PTXCU_E_NONE;
    shape[0] = made->type == PTXK_Q8_0 ? 4 : 2;
    shape[1] = batch;
    PTXCU__TRY(ptxcu_tensor_create(cu, PTX_U64, 2, shape, &made->addresses));
    bytes = ptxcu_tensor_bytes(&made->addresses);
    addresses = bytes ? (uint64_t *)cu->alloc(cu->alloc_user, NULL, 0, bytes) : NULL;
    if (bytes && !addresses) {
        code = ptxcu__fail_memory(cu, bytes);
    } else {
        for (i = 0; i < batch; i++) {
            addresses[i] = tensors ? tensors[i].address : k->address + i * k->stride[0] * size;
            addresses[batch + i] =
                tensors ? tensors[batch + i].address : v->address + i * v->stride[0] * size;
            if (shape[0] < 4) continue;
            addresses[2 * batch + i] = made->k_factors.address + i * k->stride[0] / 16;
            addresses[3 * batch + i] = made->v_factors.address + i * v->stride[0] / 16;
        }
        code = ptxcu_tensor_write(cu, &made->addresses, addresses, bytes, NULL);
        ptxcu__free_host(cu, addresses, bytes);
    }
    if (code != PTXCU_E_NONE) {
        ptxcu_tensor_free(cu, &made->addresses);
        return code;
    }
    ptxcu__lock(&cu->table_mutex);
    cu->allocations[made->addresses.allocation].sequence_tensors = tensors;
    cu->allocations[made->addresses.allocation].sequence_tensor_count = tensors ? (uint32_t)(2 * batch) : 0;
    ptxcu__unlock(&cu->table_mutex);
    return PTXCU_E_NONE;
}

/* Types of the elements of k and v of a cache. */
static uint64_t ptxcu__get_cache_types(uint32_t type) {
    return type ? PTXCU__TYPE(PTX_B8) | PTXCU__TYPE(PTX_U8) : PTXCU__FLOAT_TYPES;
}

/* Require the factors of k or v. q8_0: its shape with head_dim / 32, its strides / 32; e4m3: [kv_heads]. */
static void ptxcu__require_cache_factors(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t,
                                         uint32_t flags, uint32_t type, const ptxcu_tensor *k) {
    uint64_t shape[4];
    uint32_t i;
    if (c->code != PTXCU_E_NONE || !type) return;
    if (type == PTX_E4M3) {
        ptxcu__require(c, name, t, PTXCU__DENSE | PTXCU__OPTIONAL, PTXCU__TYPE(PTX_F32), 4, "kv_heads", 1,
                       k->shape[1], 0, 0, 0);
        return;
    }
    memcpy(shape, k->shape, sizeof shape);
    ptxcu__require(c, name, t, flags | PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(PTX_F16), 16,
                   "k's shape with head_dim / 32", 4, shape[0], shape[1], shape[2], shape[3] / 32);
    for (i = 0; i < 3 && c->code == PTXCU_E_NONE; i++)
        if (ptxcu__get_stride(t, i) * 32 != ptxcu__get_stride(k, i))
            c->code =
                ptxcu__fail(c->cu, PTXCU_E_SHAPE, "%s: %s has strides %s, must have %c's / 32, %s", c->name,
                            name, ptxcu__format_shape(4, t->stride).s, *name,
                            ptxcu__format_shape(4, k->stride).s);
}

static ptxcu_code ptxcu__wrap_cache(ptxcu *cu, const char *name, uint32_t type, const ptxcu_tensor *k,
                                    const ptxcu_tensor *v, const ptxcu_tensor *k_factors,
                                    const ptxcu_tensor *v_factors, const ptxcu_tensor *blocks,
                                    ptxcu_kv_cache *cache) {
    ptxcu_kv_cache made;
    ptxcu__operation_check c;
    ptxcu_call scratch;
    uint32_t i;
    ptxcu_code code = PTXCU_E_NONE;
    if (cache) memset(cache, 0, sizeof *cache);
    PTXCU__TRY(ptxcu__begin_check(&c, cu, name, cache, &scratch));
    ptxcu__require(&c, "k", k, PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN, ptxcu__get_cache_types(type), 16,
                   PTXCU__CACHE_DIMS(blocks), 4, PTXCU__ANY, PTXCU__ANY, PTXCU__ANY, PTXCU__ANY);
    if (c.code != PTXCU_E_NONE) return c.code;
    ptxcu__require(&c, "v", v, PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN, PTXCU__TYPE(k->type), 16,
                   PTXCU__CACHE_DIMS(blocks), 4, k->shape[0], k->shape[1], k->shape[2],
                   k->shape[1] == 1 ? PTXCU__ANY : k->shape[3]);
    if (blocks)
        ptxcu__require(&c, "blocks", blocks, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 4, "batch, max_pages", 2,
                       PTXCU__ANY, PTXCU__ANY, 0, 0);
    for (i = 0; i < 2 && c.code == PTXCU_E_NONE && !blocks; i++) {
        const ptxcu_tensor *t = i ? v : k;
        if (ptxcu__get_stride(t, 0) * ptx_type_bytes((ptx_type)t->type) % 16
            && ptxcu__get_stride(t, 0) % t->shape[3])
            c.code = ptxcu__fail(
                cu, PTXCU_E_SHAPE,
                "%s: %c has strides %s; the first must be a multiple of 16 bytes or of head_dim", name,
                i ? 'v' : 'k', ptxcu__format_shape(4, t->stride).s);
    }
    if (c.code == PTXCU_E_NONE && k->shape[3] == v->shape[3])
        ptxcu__require_same_strides(&c, "k", k, "v", v, 4);
    memset(&made, 0, sizeof made);
    if (k_factors) made.k_factors = *k_factors;
    if (v_factors) made.v_factors = *v_factors;
    ptxcu__require_cache_factors(&c, "k_factors", &made.k_factors, PTXCU__WRITTEN, type, k);
    ptxcu__require_cache_factors(&c, "v_factors", &made.v_factors, PTXCU__WRITTEN, type, v);
    PTXCU__TRY(ptxcu__check_overlaps(&c));
    made.type = type;
    made.k = *k;
    made.v = *v;
    if (blocks) {
        made.blocks = *blocks;
        *cache = made;
        return PTXCU_E_NONE;
    }
    code = ptxcu__create_address_table(cu, k->shape[0], NULL, &made);
    if (code == PTXCU_E_NONE) *cache = made;
    return code;
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap(ptxcu *cu, const ptxcu_tensor *k, const ptxcu_tensor *v,
                                          const ptxcu_tensor *blocks, ptxcu_kv_cache *cache) {
    return ptxcu__wrap_cache(cu, "ptxcu_kv_cache_wrap", 0, k, v, NULL, NULL, blocks, cache);
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap_bytes(ptxcu *cu, uint32_t type, const ptxcu_tensor *k,
                                                const ptxcu_tensor *v, const ptxcu_tensor *k_factors,
                                                const ptxcu_tensor *v_factors, const ptxcu_tensor *blocks,
                                                ptxcu_kv_cache *cache) {
    static const char *const name = "ptxcu_kv_cache_wrap_bytes";
    PTXCU__REQUIRE_READY(cu);
    if (!ptxk__is_byte_cache(type))
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: type is %s, must be PTX_E4M3 or PTXK_Q8_0", name,
                           ptxk__value_name_of(type).s);
    return ptxcu__wrap_cache(cu, name, type, k, v, k_factors, v_factors, blocks, cache);
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_wrap_each(ptxcu *cu, const ptxcu_tensor *k, const ptxcu_tensor *v,
                                               uint32_t batch, ptxcu_kv_cache *cache) {
    static const char *const name = "ptxcu_kv_cache_wrap_each", *const dims = "kv_heads, max_seq, head_dim";
    ptxcu_kv_cache made;
    ptxcu__operation_check c;
    ptxcu_call scratch;
    ptxcu_tensor *tensors;
    ptxcu_code code = PTXCU_E_NONE;
    ptxk__span a, b;
    char which[32], other[32];
    uint32_t i, j, count = 2 * batch;
    size_t bytes = ptxcu_bytes(2 * sizeof *tensors, batch);
    if (cache) memset(cache, 0, sizeof *cache);
    PTXCU__TRY(ptxcu__begin_check(&c, cu, name, cache, &scratch));
    if (!k || !v) return ptxcu__fail_null(cu, name, k ? "v" : "k");
    if (!batch || batch > UINT32_MAX / 2)
        return ptxcu__fail(cu, PTXCU_E_ARGUMENT, "%s: batch is %u, must be 1 to %u", name, (unsigned)batch,
                           (unsigned)(UINT32_MAX / 2));
    tensors = (ptxcu_tensor *)cu->alloc(cu->alloc_user, NULL, 0, bytes);
    if (!tensors) return ptxcu__fail_memory(cu, bytes);
    memcpy(tensors, k, bytes / 2);
    memcpy(tensors + batch, v, bytes / 2);
    for (i = 0; i < count && c.code == PTXCU_E_NONE; i++) {
        const ptxcu_tensor *t = &tensors[i];
        snprintf(which, sizeof which, "%c[%u]", i < batch ? 'k' : 'v', (unsigned)(i % batch));
        scratch.tensors = 0;
        ptxcu__require(&c, which, t, PTXCU__CONTIGUOUS_ROWS,
                       i ? PTXCU__TYPE(tensors->type) : PTXCU__FLOAT_TYPES, 16, dims, 3,
                       i ? tensors->shape[0] : PTXCU__ANY, i ? tensors->shape[1] : PTXCU__ANY,
                       i ? tensors->shape[2] : PTXCU__ANY, 0);
        ptxcu__require_same_strides(&c, which, t, "k[0]", tensors, 3);
        if (c.code == PTXCU_E_NONE) b = ptxcu__get_span(t, PTXCU__CONTIGUOUS_ROWS);
        for (j = 0; j < i && c.code == PTXCU_E_NONE; j++) {
            a = ptxcu__get_span(&tensors[j], PTXCU__CONTIGUOUS_ROWS);
            if (!ptxk__spans_overlap(&a, &b)) continue;
            snprintf(other, sizeof other, "%c[%u]", j < batch ? 'k' : 'v', (unsigned)(j % batch));
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: %s overlaps %s", name, which, other);
        }
    }
    code = c.code;
    if (code == PTXCU_E_NONE) {
        memset(&made, 0, sizeof made);
        made.k = ptxcu__add_batch_dim(tensors, batch);
        made.v = ptxcu__add_batch_dim(tensors + batch, batch);
        code = ptxcu__create_address_table(cu, batch, tensors, &made);
    }
    if (code == PTXCU_E_NONE)
        *cache = made;
    else
        ptxcu__free_host(cu, tensors, bytes);
    return code;
}

static ptxcu_code ptxcu__create_cache(ptxcu *cu, const char *name, uint32_t type, uint64_t batch,
                                      uint64_t kv_heads, uint64_t max_seq, uint64_t k_dim, uint64_t v_dim,
                                      ptxcu_kv_cache *cache) {
    ptxcu_tensor made[4]; /* k, v, their factors */
    int bytes = ptxk__is_byte_cache(type);
    uint64_t shape[4], dim;
    uint32_t i;
    ptxcu_code code = PTXCU_E_NONE;
    if (cache) memset(cache, 0, sizeof *cache);
    PTXCU__REQUIRE_READY(cu);
    if (!cache) return ptxcu__fail_null(cu, name, "cache");
    dim = k_dim % 32 ? k_dim : v_dim;
    if (type == PTXK_Q8_0 && dim % 32)
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "%s: a row of %llu elements, must be a multiple of 32 in q8_0",
                           name, (unsigned long long)dim);
    memset(made, 0, sizeof made);
    shape[0] = batch;
    shape[1] = kv_heads;
    shape[2] = max_seq;
    for (i = 0; i < (type == PTXK_Q8_0 ? 4 : 2) && code == PTXCU_E_NONE; i++) {
        dim = i % 2 ? v_dim : k_dim;
        shape[3] = i < 2 ? dim : dim / 32;
        code = ptxcu_tensor_create(cu, i > 1 ? PTX_F16 : bytes ? PTX_B8 : (ptx_type)type, 4, shape, &made[i]);
    }
    if (code == PTXCU_E_NONE)
        code = ptxcu__wrap_cache(cu, name, bytes ? type : 0, &made[0], &made[1], &made[2], &made[3], NULL,
                                 cache);
    if (code == PTXCU_E_NONE) {
        cache->owns = 1;
        return code;
    }
    for (i = 4; i > 0; i--) ptxcu_tensor_free(cu, &made[i - 1]);
    return code;
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_create(ptxcu *cu, uint32_t type, uint64_t batch, uint64_t kv_heads,
                                            uint64_t max_seq, uint64_t head_dim, ptxcu_kv_cache *cache) {
    return ptxcu__create_cache(cu, "ptxcu_kv_cache_create", type, batch, kv_heads, max_seq, head_dim,
                               head_dim, cache);
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_create_latent(ptxcu *cu, uint32_t type, uint64_t batch, uint64_t max_seq,
                                                   uint64_t latent, uint64_t rope, ptxcu_kv_cache *cache) {
#if PTXK__HAS(PTXK_OP_FLASH_MLA)
    ptxk_flash_mla_desc desc = PTX_ZERO;
    ptxk_flash_mla_shape shape = PTX_ZERO;
    ptx_plan plan;
    ptxk_message why;
    if (cache) memset(cache, 0, sizeof *cache);
    PTXCU__REQUIRE_READY(cu);
    desc.heads = 1;
    desc.latent = latent > UINT32_MAX ? UINT32_MAX : (uint32_t)latent;
    desc.rope = rope > UINT32_MAX ? UINT32_MAX : (uint32_t)rope;
    desc.kv_type = type;
    desc.q_type = desc.out_type = PTX_F32;
    desc.tile = 16;
    shape.sm_count = 1;
    shape.target = cu->info.target;
    if (ptxk_flash_mla_plan(&desc, &shape, &plan, &why) != PTX_E_NONE)
        return ptxcu__fail(cu, PTXCU_E_SHAPE, "ptxcu_kv_cache_create_latent: %s", why.text);
#endif
    return ptxcu__create_cache(cu, "ptxcu_kv_cache_create_latent", type, batch, 1, max_seq, latent, rope,
                               cache);
}

PTXGEN_API ptxcu_code ptxcu_kv_cache_free(ptxcu *cu, ptxcu_kv_cache *cache) {
    ptxcu_code code, last;
    PTXCU__REQUIRE_READY(cu);
    if (!cache) return PTXCU_E_NONE;
    code = ptxcu_tensor_free(cu, &cache->addresses);
    if (cache->owns) {
        last = ptxcu_tensor_free(cu, &cache->k);
        if (code == PTXCU_E_NONE) code = last;
        last = ptxcu_tensor_free(cu, &cache->v);
        if (code == PTXCU_E_NONE) code = last;
        last = cache->type == PTXK_Q8_0 ? ptxcu_tensor_free(cu, &cache->k_factors) : PTXCU_E_NONE;
        if (code == PTXCU_E_NONE) code = last;
        last = cache->type == PTXK_Q8_0 ? ptxcu_tensor_free(cu, &cache->v_factors) : PTXCU_E_NONE;
        if (code == PTXCU_E_NONE) code = last;
    }
    if (code == PTXCU_E_NONE) memset(cache, 0, sizeof *cache);
    return code;
}

/* Require both tensors of a cache, each with its flags and head_dim, and the block table or address table. */
static void ptxcu__require_cache(ptxcu__operation_check *c, const ptxcu_kv_cache *cache, uint32_t k_flags,
                                 uint32_t v_flags, uint64_t batch, uint64_t kv_heads, uint64_t k_dim,
                                 uint64_t v_dim) {
    const ptxcu_tensor *k, *v;
    ptxcu__allocation *b;
    uint32_t i, freed, tensor_count;
    int paged, is_unchanged = 1;
    if (c->code != PTXCU_E_NONE) return;
    if (!cache) {
        c->code = ptxcu__fail_null(c->cu, c->name, "cache");
        return;
    }
    k = &cache->k;
    v = &cache->v;
    paged = cache->blocks.owner != NULL;
    ptxcu__require_flag(c, "cache->owns", cache->owns, 1);
    if (cache->type && !ptxk__is_byte_cache(cache->type) && c->code == PTXCU_E_NONE)
        c->code =
            ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "%s: cache->type is %s, must be 0, PTX_E4M3 or PTXK_Q8_0",
                        c->name, ptxk__value_name_of(cache->type).s);
    c->k_index = c->call->tensors;
    ptxcu__require(c, "cache->k", k, k_flags | PTXCU__CONTIGUOUS_ROWS, ptxcu__get_cache_types(cache->type),
                   16, PTXCU__CACHE_DIMS(paged), 4, paged ? PTXCU__ANY : batch, kv_heads, PTXCU__ANY, k_dim);
    ptxcu__require(c, "cache->v", v, v_flags | PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(k->type), 16,
                   PTXCU__CACHE_DIMS(paged), 4, k->shape[0], k->shape[1], k->shape[2], v_dim);
    if (c->code == PTXCU_E_NONE && k->shape[3] == v->shape[3])
        ptxcu__require_same_strides(c, "cache->v", v, "cache->k", k, 4);
    ptxcu__require_cache_factors(c, "cache->k_factors", &cache->k_factors, k_flags, cache->type, k);
    ptxcu__require_cache_factors(c, "cache->v_factors", &cache->v_factors, v_flags, cache->type, v);
    if (paged) {
        ptxcu__require(c, "cache->blocks", &cache->blocks, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 4,
                       "batch, max_pages", 2, batch, PTXCU__ANY, 0, 0);
        return;
    }
    ptxcu__require(c, "cache->addresses", &cache->addresses, PTXCU__DENSE, PTXCU__TYPE(PTX_U64), 8,
                   cache->type == PTXK_Q8_0 ? "4, batch" : "2, batch", 2, cache->type == PTXK_Q8_0 ? 4 : 2,
                   k->shape[0], 0, 0);
    if (c->code != PTXCU_E_NONE) return;
    ptxcu__lock(&c->cu->table_mutex);
    b = &c->cu->allocations[cache->addresses.allocation];
    freed = ptxcu__find_freed_tensor(c->cu, b);
    tensor_count = b->sequence_tensor_count;
    if (tensor_count) { /* separate sequences: cache->k and cache->v are the first one's */
        ptxcu_tensor first = ptxcu__add_batch_dim(b->sequence_tensors, tensor_count / 2);
        is_unchanged = first.shape[0] == k->shape[0] && first.shape[2] == k->shape[2] && first.type == k->type
                       && first.address == k->address
                       && b->sequence_tensors[tensor_count / 2].address == v->address;
        for (i = 0; i < 4; i++)
            is_unchanged = is_unchanged && ptxcu__get_stride(&first, i) == ptxcu__get_stride(k, i);
        c->sequences = tensor_count / 2;
        c->addresses_allocation = cache->addresses.allocation;
    }
    ptxcu__unlock(&c->cu->table_mutex);
    if (freed != UINT32_MAX)
        c->code = ptxcu__fail_freed_tensor(c->cu, c->name, "cache->addresses", freed, tensor_count);
    else if (!is_unchanged)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE,
                              "%s: cache->k or cache->v is not what ptxcu_kv_cache_wrap_each made: its "
                              "fields were changed",
                              c->name);
}

/* The address of k's or v's factors; q8_0, not paged: of their row in the address table. */
PTXK__SHARED uint64_t ptxcu__get_factors(const ptxcu_kv_cache *cache, int v) {
    if (cache->type == PTXK_Q8_0 && !cache->blocks.owner)
        return cache->addresses.address + (v ? 24 : 16) * cache->k.shape[0];
    return v ? cache->v_factors.address : cache->k_factors.address;
}

/* Whether the kernels support the page layout of a pool. *rows: 1 for [page_size, kv_heads, head_dim]. */
static int ptxcu__has_page_layout(const ptxcu_tensor *pool, int *rows) {
    ptxcu_tensor t = *pool;
    *rows = 0;
    if (ptxcu__is_dense(&t)) return 1;
    t.shape[1] = pool->shape[2], t.stride[1] = pool->stride[2];
    t.shape[2] = pool->shape[1], t.stride[2] = pool->stride[1];
    *rows = 1;
    return ptxcu__is_dense(&t);
}

/* The positions per sequence of a cache, and its page layout. Paged caches may have at most `max_rows`. */
static uint64_t ptxcu__get_cache_rows(ptxcu__operation_check *c, const ptxcu_kv_cache *cache,
                                      uint32_t max_rows, int *page_rows) {
    uint64_t rows = cache->k.shape[2];
    *page_rows = 0;
    if (!cache->blocks.owner) return rows;
    if (!ptxcu__has_page_layout(&cache->k, page_rows)
        || (cache->v.shape[3] != cache->k.shape[3] && !ptxcu__is_dense(&cache->v))
        || !ptxcu__multiply(rows, cache->blocks.shape[1], &rows) || rows > max_rows)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE,
                              "%s: cache->k has shape %s and strides %s; pages must be dense, [kv_heads, "
                              "page_size, head_dim] or [page_size, kv_heads, head_dim], and max_pages * "
                              "page_size at most %u",
                              c->name, ptxcu__format_shape(4, cache->k.shape).s,
                              ptxcu__format_shape(4, cache->k.stride).s, (unsigned)max_rows);
    return rows;
}

#endif

/* -- flash_decode -- */
#if PTXK__HAS(PTXK_OP_FLASH_DECODE | PTXK_OP_FLASH_MLA)

/* Insert a queries dimension of 1 into [batch, heads, ...]; a copy of other ranks. */
static ptxcu_tensor ptxcu__add_query_dim(const ptxcu_tensor *t) {
    ptxcu_tensor four = *t;
    uint32_t i;
    if (t->rank != 3) return four;
    for (i = 3; i > 1; i--) four.shape[i] = t->shape[i - 1], four.stride[i] = t->stride[i - 1];
    four.shape[1] = 1;
    four.stride[1] = t->stride[0];
    four.rank = 4;
    return four;
}

#endif
#if PTXK__HAS(PTXK_OP_FLASH_DECODE)

PTXCU__OPERATION(flash_decode) {
    static const char *const dims = "batch, (queries,) heads, head_dim";
    ptxcu_tensor q, out, k, v, prior;
    uint32_t appends, written;
    PTXCU__PREPARE(flash_decode);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    q = ptxcu__add_query_dim(&desc->q);
    out = ptxcu__add_query_dim(&desc->out);
    k = ptxcu__add_query_dim(&desc->k);
    v = ptxcu__add_query_dim(&desc->v);
    appends = desc->k.owner || desc->v.owner; /* then both are required */
    ptxcu__require(&c, "q", &q, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 16, dims, 4, PTXCU__ANY, PTXCU__ANY,
                   PTXCU__ANY, PTXCU__ANY);
    written = appends ? PTXCU__WRITTEN : 0;
    ptxcu__require_cache(&c, desc->cache, written, written, q.shape[0], PTXCU__ANY, q.shape[3], q.shape[3]);
    if (c.code == PTXCU_E_NONE && !desc->length && !desc->lengths.owner)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                             "flash_decode: lengths is zero and length is 0; give one of them");
    ptxcu__require(&c, "lengths", &desc->lengths, PTXCU__DENSE | (desc->length ? PTXCU__OPTIONAL : 0),
                   PTXCU__TYPE(PTX_U32), 4, "batch", 1, q.shape[0], 0, 0, 0);
    if (c.code == PTXCU_E_NONE && desc->length && desc->lengths.owner)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                             "flash_decode: lengths is set and length is %u; give one of them",
                             (unsigned)desc->length);
    ptxcu__require(&c, "out", &out, PTXCU__DENSE_OUTPUT, PTXCU__FLOAT_TYPES, 16, dims, 4, q.shape[0],
                   q.shape[1], q.shape[2], q.shape[3]);
    if (appends && c.code == PTXCU_E_NONE) {
        ptxcu__require(&c, "k", &k, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 16,
                       "batch, (queries,) kv_heads, head_dim", 4, q.shape[0], q.shape[1],
                       desc->cache->k.shape[1], q.shape[3]);
        ptxcu__require(&c, "v", &v, PTXCU__DENSE, PTXCU__TYPE(k.type), 16,
                       "batch, (queries,) kv_heads, head_dim", 4, q.shape[0], q.shape[1],
                       desc->cache->k.shape[1], q.shape[3]);
    }
    ptxcu__require(&c, "lse", &desc->lse, PTXCU__OPTIONAL | PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_F32), 4,
                   "batch, heads, queries", desc->lse.rank == 2 && q.shape[1] == 1 ? 2 : 3, q.shape[0],
                   q.shape[2], q.shape[1], 0);
    prior = ptxcu__add_query_dim(&desc->prior);
    if (desc->prior.owner || desc->prior_lse.owner) { /* then both are required */
        ptxcu__require(&c, "prior", &prior, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 16, dims, 4, q.shape[0],
                       q.shape[1], q.shape[2], q.shape[3]);
        ptxcu__require(&c, "prior_lse", &desc->prior_lse, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 4,
                       "heads, batch, queries", desc->prior_lse.rank == 2 && q.shape[1] == 1 ? 2 : 3,
                       q.shape[2], q.shape[0], q.shape[1], 0);
    }
    ptxcu__require(&c, "tree", &desc->tree, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 4, "batch, queries",
                   2, q.shape[0], q.shape[1], 0, 0);
    ptxcu__require(&c, "sinks", &desc->sinks, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 4, "heads", 1,
                   q.shape[2], 0, 0, 0);
    ptxcu__require_workspace(&c, &desc->workspace);
    if (c.code == PTXCU_E_NONE) {
        const ptxcu_kv_cache *cache = desc->cache;
        int paged = cache->blocks.owner != NULL, page_rows;
        uint64_t rows = ptxcu__get_cache_rows(&c, cache, INT32_MAX, &page_rows);
        uint64_t max_length = desc->max_len && desc->max_len < rows ? desc->max_len : rows;
        if (c.code == PTXCU_E_NONE && desc->length > max_length)
            c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "flash_decode: length is %u, must be at most %s, %llu",
                                 (unsigned)desc->length, max_length < rows ? "max_len" : "max_seq",
                                 (unsigned long long)max_length);
        kernel.heads = (uint32_t)q.shape[2];
        kernel.kv_heads = (uint32_t)cache->k.shape[1];
        kernel.head_dim = (uint32_t)q.shape[3];
        kernel.kv_type = cache->type ? cache->type : cache->k.type;
        kernel.scale = desc->scale;
        kernel.q_type = q.type;
        kernel.out_type = out.type;
        kernel.queries = (uint32_t)q.shape[1];
        kernel.window = desc->window;
        kernel.soft_cap = desc->soft_cap;
        kernel.page_size = paged ? (uint32_t)cache->k.shape[2] : 0;
        kernel.append_type = appends ? k.type : 0;
        kernel.flags = (desc->lse.owner ? (uint32_t)PTXK_FLASH_LSE : 0)
                       | (page_rows ? (uint32_t)PTXK_FLASH_PAGE_ROWS : 0)
                       | (desc->tree.owner ? (uint32_t)PTXK_FLASH_TREE : 0)
                       | (prior.owner ? (uint32_t)PTXK_FLASH_PRIOR : 0)
                       | (desc->sinks.owner ? (uint32_t)PTXK_FLASH_SINK : 0);
        args.sinks = desc->sinks.address;
        args.prior = prior.address;
        args.prior_lse = desc->prior_lse.address;
        args.tree = desc->tree.address;
        shape.batch = (uint32_t)q.shape[0];
        shape.max_seq = (uint32_t)rows;
        shape.max_len = desc->max_len ? desc->max_len : desc->length ? desc->length : shape.max_seq;
        shape.sm_count = cu->info.sm_count;
        shape.cluster = cu->info.max_cluster;
        shape.target = cu->info.target;
        args.q = q.address;
        args.k_caches = paged ? cache->k.address : cache->addresses.address;
        args.v_caches = paged ? cache->v.address : cache->addresses.address + 8 * q.shape[0];
        args.lengths = desc->lengths.address;
        args.out = out.address;
        args.workspace = desc->workspace.address;
        args.k = k.address;
        args.v = v.address;
        args.block_table = cache->blocks.address;
        args.lse = desc->lse.address;
        args.head_stride = paged ? 0 : ptxcu__get_stride(&cache->k, 1);
        args.row_stride = paged ? 0 : ptxcu__get_stride(&cache->k, 2);
        args.max_seq = shape.max_seq;
        args.max_pages = paged ? (uint32_t)cache->blocks.shape[1] : 0;
        args.pool_pages = paged ? (uint32_t)cache->k.shape[0] : 0;
        args.length = desc->length;
        args.k_factors = ptxcu__get_factors(cache, 0);
        args.v_factors = ptxcu__get_factors(cache, 1);
    }
    PTXCU__COMPLETE(flash_decode, call->plan.launches, &desc->workspace);
}

#endif

/* -- kv_scatter -- */
#if PTXK__HAS(PTXK_OP_KV_SCATTER)

PTXCU__OPERATION(kv_scatter) {
    const ptxcu_tensor *from; /* k, or v if k is zero */
    int single;
    PTXCU__PREPARE(kv_scatter);
    single = !desc->k.owner != !desc->v.owner;
    from = desc->k.owner ? &desc->k : &desc->v;
    ptxcu__require(&c, desc->k.owner || !single ? "k" : "v", from, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 16,
                   "tokens, kv_heads, head_dim", 3, PTXCU__ANY, PTXCU__ANY, PTXCU__ANY, 0);
    if (!single)
        ptxcu__require(&c, "v", &desc->v, PTXCU__DENSE, PTXCU__TYPE(from->type), 16,
                       "tokens, kv_heads, head_dim", 3, from->shape[0], from->shape[1], from->shape[2], 0);
    ptxcu__require_cache(
        &c, desc->cache, desc->k.owner ? PTXCU__WRITTEN : 0, desc->v.owner ? PTXCU__WRITTEN : 0, PTXCU__ANY,
        from->shape[1], single && from == &desc->v ? PTXCU__ANY : from->shape[2],
        single && from == &desc->k ? PTXCU__ANY : from->shape[2]);
    ptxcu__require(&c, "positions", &desc->positions, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 4,
                   "tokens", 1, from->shape[0], 0, 0, 0);
    ptxcu__require(&c, "sequences", &desc->sequences, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 4,
                   "tokens", 1, from->shape[0], 0, 0, 0);
    if (c.code == PTXCU_E_NONE && desc->positions.owner && (desc->position || desc->position_step))
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                             "kv_scatter: positions is set, and position is %u and position_step %u; give "
                             "positions or the two numbers",
                             (unsigned)desc->position, (unsigned)desc->position_step);
    if (c.code == PTXCU_E_NONE && desc->sequences.owner && desc->sequence_step)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                             "kv_scatter: sequences is set and sequence_step is %u; give one of them",
                             (unsigned)desc->sequence_step);
    if (c.code == PTXCU_E_NONE) {
        const ptxcu_kv_cache *cache = desc->cache;
        const ptxcu_tensor *k = from == &desc->k ? &cache->k : &cache->v;
        int paged = cache->blocks.owner != NULL, page_rows;
        uint64_t batch = paged ? cache->blocks.shape[0] : k->shape[0], last;
        uint64_t rows = ptxcu__get_cache_rows(&c, cache, UINT32_MAX, &page_rows);
        uint64_t k_caches = paged ? cache->k.address : cache->addresses.address;
        uint64_t v_caches = paged ? cache->v.address : cache->addresses.address + 8 * batch;
        /* The host checks values that it knows; the kernel checks values in device memory. */
        last = from->shape[0] ? from->shape[0] - 1 : 0;
        if (!desc->positions.owner && from->shape[0] && last * desc->position_step + desc->position >= rows)
            c.code = ptxcu__fail(
                cu, PTXCU_E_ARGUMENT, "kv_scatter: position is %llu, must be below max_seq, %llu",
                (unsigned long long)(last * desc->position_step + desc->position), (unsigned long long)rows);
        if (!desc->sequences.owner && from->shape[0] && last * desc->sequence_step >= batch)
            c.code =
                ptxcu__fail(cu, PTXCU_E_ARGUMENT, "kv_scatter: sequence is %llu, must be below batch, %llu",
                            (unsigned long long)(last * desc->sequence_step), (unsigned long long)batch);
        kernel.kv_heads = (uint32_t)from->shape[1];
        kernel.head_dim = (uint32_t)from->shape[2];
        kernel.source_type = from->type;
        kernel.cache_type = cache->type ? cache->type : k->type;
        kernel.page_size = paged ? (uint32_t)k->shape[2] : 0;
        kernel.flags =
            (page_rows ? (uint32_t)PTXK_SCATTER_PAGE_ROWS : 0) | (single ? (uint32_t)PTXK_SCATTER_SINGLE : 0);
        shape.tokens = (uint32_t)from->shape[0];
        args.k = from->address;
        args.v = single ? 0 : desc->v.address;
        args.k_caches = from == &desc->k ? k_caches : v_caches;
        args.v_caches = single ? 0 : v_caches;
        args.sequences = desc->sequences.address;
        args.positions = desc->positions.address;
        args.block_table = cache->blocks.address;
        args.head_stride = ptxcu__get_stride(k, 1);
        args.row_stride = ptxcu__get_stride(k, 2);
        args.sequence_step = desc->sequence_step;
        args.position = desc->position;
        args.position_step = desc->position_step;
        args.tokens = shape.tokens;
        args.batch = (uint32_t)batch;
        args.max_seq = (uint32_t)rows;
        args.max_pages = paged ? (uint32_t)cache->blocks.shape[1] : 0;
        args.pool_pages = paged ? (uint32_t)k->shape[0] : 0;
        args.k_factors = ptxcu__get_factors(cache, from != &desc->k);
        args.v_factors = single ? 0 : ptxcu__get_factors(cache, 1);
    }
    PTXCU__COMPLETE(kv_scatter, call->plan.launches, NULL);
}

#endif

/* -- flash_prefill -- */
#if PTXK__HAS(PTXK_OP_FLASH_PREFILL)

/* Require the cache that replaces k and v, and fill in its strides, as those of [batch, rows, kv_heads,
   head_dim], or its pages. Returns the rows of a sequence. */
static uint64_t ptxcu__require_prefill_cache(ptxcu__operation_check *c, const ptxcu_flash_prefill_desc *desc,
                                             uint64_t batch, uint64_t d, ptxk_flash_prefill_desc *kernel,
                                             ptxk_flash_prefill_args *args) {
    const ptxcu_kv_cache *cache = desc->cache;
    int paged, page_rows;
    uint64_t rows;
    ptxcu__require_cache(c, cache, 0, 0, batch, PTXCU__ANY, d, d);
    if (c->code != PTXCU_E_NONE) return 0;
    paged = cache->blocks.owner != NULL;
    rows = ptxcu__get_cache_rows(c, cache, 1u << 30, &page_rows);
    if (c->code == PTXCU_E_NONE && !cache->type && cache->k.type != desc->q.type)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "flash_prefill: cache->k is of type %s, must be q's, %s",
                              ptx_type_name((ptx_type)cache->k.type), ptx_type_name((ptx_type)desc->q.type));
    if (c->code == PTXCU_E_NONE && c->sequences)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE,
                              "flash_prefill: cache is of ptxcu_kv_cache_wrap_each, whose sequences have no "
                              "common stride; call it for one sequence at a time");
    if (c->code == PTXCU_E_NONE && desc->cu_q.owner && !paged)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE,
                              "flash_prefill: with cumulative lengths the cache must be paged");
    if (c->code == PTXCU_E_NONE && desc->kv_len > rows)
        c->code =
            ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "flash_prefill: kv_len is %u, and the cache has %llu rows",
                        (unsigned)desc->kv_len, (unsigned long long)rows);
    kernel->kv_type = cache->type;
    args->k = cache->k.address;
    args->v = cache->v.address;
    args->k_factors = cache->k_factors.address;
    args->v_factors = cache->v_factors.address;
    if (paged) {
        kernel->page_size = (uint32_t)cache->k.shape[2];
        kernel->flags |= page_rows ? (uint32_t)PTXK_PREFILL_PAGE_ROWS : 0;
        args->block_table = cache->blocks.address;
        args->max_pages = (uint32_t)cache->blocks.shape[1];
        args->pool_pages = (uint32_t)cache->k.shape[0];
    } else {
        args->k_batch_stride = args->v_batch_stride = ptxcu__get_stride(&cache->k, 0);
        args->k_head_stride = args->v_head_stride = ptxcu__get_stride(&cache->k, 1);
        args->k_row_stride = args->v_row_stride = ptxcu__get_stride(&cache->k, 2);
    }
    return rows;
}

PTXCU__OPERATION(flash_prefill) {
    uint32_t row_flags = PTXCU__CONTIGUOUS_ROWS | PTXCU__MAY_ALIAS, h, cumulative, tree_words;
    uint64_t batch, rows, keys, heads, kv_heads, d, types;
    PTXCU__PREPARE(flash_prefill);
    ptxcu__require_flag(&c, "causal", desc->causal, 1);
    types = ptxcu__get_cache_types(desc->type);
    if (desc->type && desc->type != PTX_E4M3 && c.code == PTXCU_E_NONE)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "flash_prefill: type is %s, must be 0 or PTX_E4M3",
                             ptxk__value_name_of(desc->type).s);
    cumulative = desc->cu_q.owner || desc->cu_kv.owner; /* then both are required */
    h = cumulative ? 1 : 2;                             /* index of the heads dimension */
    heads = desc->q.shape[h];
    d = desc->q.shape[h + 1];
    kv_heads = desc->cache ? desc->cache->k.shape[1] : desc->k.shape[h];
    rows = desc->q.shape[h - 1];
    keys = desc->k.shape[h - 1];
    batch = cumulative ? 0 : desc->q.shape[0];
    if (cumulative) {
        ptxcu__require(&c, "cu_q", &desc->cu_q, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 4, "batch + 1", 1,
                       PTXCU__ANY, 0, 0, 0);
        ptxcu__require(&c, "cu_kv", &desc->cu_kv, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 4, "batch + 1", 1,
                       desc->cu_q.shape[0], 0, 0, 0);
        if (c.code == PTXCU_E_NONE && desc->cu_q.shape[0] == 0)
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE, "flash_prefill: cu_q has shape [0], must be [batch + 1]");
        batch = desc->cu_q.shape[0] - 1;
        ptxcu__require(&c, "q", &desc->q, row_flags, types, 16, "rows, heads, head_dim", 3, PTXCU__ANY,
                       PTXCU__ANY, PTXCU__ANY, 0);
        if (desc->cache) {
            keys = ptxcu__require_prefill_cache(&c, desc, batch, d, &kernel, &args);
        } else {
            ptxcu__require(&c, "k", &desc->k, PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(desc->q.type), 16,
                           "keys, kv_heads, head_dim", 3, PTXCU__ANY, PTXCU__ANY, d, 0);
            ptxcu__require(&c, "v", &desc->v, PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(desc->q.type), 16,
                           "keys, kv_heads, head_dim", 3, keys, kv_heads, d, 0);
        }
        ptxcu__require(&c, "out", &desc->out, row_flags | PTXCU__WRITTEN, PTXCU__FLOAT_TYPES, 16,
                       "rows, heads, head_dim", 3, rows, heads, d, 0);
        ptxcu__require(&c, "lse", &desc->lse, PTXCU__OPTIONAL | PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN,
                       PTXCU__TYPE(PTX_F32), 4, "heads, rows", 2, heads, rows, 0, 0);
    } else {
        ptxcu__require(&c, "q", &desc->q, row_flags, types, 16, "batch, q_len, heads, head_dim", 4,
                       PTXCU__ANY, PTXCU__ANY, PTXCU__ANY, PTXCU__ANY);
        if (desc->cache) {
            (void)ptxcu__require_prefill_cache(&c, desc, batch, d, &kernel, &args);
            keys = desc->kv_len;
        } else {
            ptxcu__require(&c, "k", &desc->k, PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(desc->q.type), 16,
                           "batch, kv_len, kv_heads, head_dim", 4, batch, PTXCU__ANY, PTXCU__ANY, d);
            ptxcu__require(&c, "v", &desc->v, PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(desc->q.type), 16,
                           "batch, kv_len, kv_heads, head_dim", 4, batch, keys, kv_heads, d);
        }
        ptxcu__require(&c, "out", &desc->out, row_flags | PTXCU__WRITTEN, PTXCU__FLOAT_TYPES, 16,
                       "batch, q_len, heads, head_dim", 4, batch, rows, heads, d);
        ptxcu__require(&c, "lse", &desc->lse, PTXCU__OPTIONAL | PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN,
                       PTXCU__TYPE(PTX_F32), 4, "batch, heads, q_len", 3, batch, heads, rows, 0);
    }
    ptxcu__require(&c, "sinks", &desc->sinks, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 4, "heads", 1,
                   heads, 0, 0, 0);
    if (desc->type) {
        ptxcu__require(&c, "score_factors", &desc->score_factors,
                       desc->cache && desc->cache->k_factors.owner ? (uint32_t)PTXCU__DENSE
                                                                   : (uint32_t)PTXCU__DENSE_OPTIONAL,
                       PTXCU__TYPE(PTX_F32), 4, "heads", 1, heads, 0, 0, 0);
        if (!desc->cache)
            ptxcu__require(&c, "v_factors", &desc->v_factors, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 4,
                           "kv_heads", 1, kv_heads, 0, 0, 0);
        else if (desc->v_factors.owner && c.code == PTXCU_E_NONE)
            c.code =
                ptxcu__fail(cu, PTXCU_E_ARGUMENT, "flash_prefill: v_factors is given, and cache is not NULL");
        args.k_factors = desc->score_factors.address;
        if (!desc->cache) args.v_factors = desc->v_factors.address;
    } else if ((desc->score_factors.owner || desc->v_factors.owner) && c.code == PTXCU_E_NONE)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "flash_prefill: %s is given, and type is not PTX_E4M3",
                             desc->score_factors.owner ? "score_factors" : "v_factors");
    shape.q_len = cumulative && desc->q_len && desc->q_len < rows ? desc->q_len : (uint32_t)rows;
    tree_words = ptxk__ceil_div(shape.q_len, 32);
    ptxcu__require(&c, "tree", &desc->tree, PTXCU__OPTIONAL | PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 4,
                   cumulative ? "rows, ceil(q_len / 32)" : "batch, q_len, ceil(q_len / 32)", 1 + h,
                   cumulative ? rows : batch, cumulative ? tree_words : rows, tree_words, 0);
    if (c.code == PTXCU_E_NONE) {
        kernel.heads = (uint32_t)heads;
        kernel.kv_heads = (uint32_t)kv_heads;
        kernel.head_dim = (uint32_t)d;
        kernel.type = desc->type ? desc->type : desc->q.type;
        kernel.out_type = desc->out.type;
        kernel.flags |= (desc->causal ? (uint32_t)PTXK_PREFILL_CAUSAL : 0)
                        | (desc->lse.owner ? (uint32_t)PTXK_PREFILL_LSE : 0)
                        | (desc->sinks.owner ? (uint32_t)PTXK_PREFILL_SINK : 0)
                        | (desc->tree.owner ? (uint32_t)PTXK_PREFILL_TREE : 0);
        args.sinks = desc->sinks.address;
        args.tree = desc->tree.address;
        kernel.window = desc->window;
        kernel.precision = desc->precision;
        kernel.scale = desc->scale;
        kernel.soft_cap = desc->soft_cap;
        shape.target = cu->info.target;
        shape.batch = (uint32_t)batch;
        shape.kv_len = cumulative && desc->kv_len && desc->kv_len < keys ? desc->kv_len : (uint32_t)keys;
        shape.q_total = cumulative ? (uint32_t)rows : 0;
        shape.kv_total =
            !cumulative ? 0 : (uint32_t)(desc->cache ? rows : keys); /* pages: at least the rows */
        args.q = desc->q.address;
        args.out = desc->out.address;
        args.lse = desc->lse.address;
        args.cu_q = desc->cu_q.address;
        args.cu_kv = desc->cu_kv.address;
        args.q_batch_stride = cumulative ? 0 : ptxcu__get_stride(&desc->q, 0);
        args.q_row_stride = ptxcu__get_stride(&desc->q, h - 1);
        args.q_head_stride = ptxcu__get_stride(&desc->q, h);
        if (!desc->cache) {
            args.k = desc->k.address;
            args.v = desc->v.address;
            args.k_batch_stride = cumulative ? 0 : ptxcu__get_stride(&desc->k, 0);
            args.k_row_stride = ptxcu__get_stride(&desc->k, h - 1);
            args.k_head_stride = ptxcu__get_stride(&desc->k, h);
            args.v_batch_stride = cumulative ? 0 : ptxcu__get_stride(&desc->v, 0);
            args.v_row_stride = ptxcu__get_stride(&desc->v, h - 1);
            args.v_head_stride = ptxcu__get_stride(&desc->v, h);
        }
        args.out_batch_stride = cumulative ? 0 : ptxcu__get_stride(&desc->out, 0);
        args.out_row_stride = ptxcu__get_stride(&desc->out, h - 1);
        args.out_head_stride = ptxcu__get_stride(&desc->out, h);
        args.lse_batch_stride = cumulative ? 0 : ptxcu__get_stride(&desc->lse, 0);
        args.lse_head_stride = ptxcu__get_stride(&desc->lse, h - 1);
        args.batch = shape.batch;
        args.q_len = shape.q_len;
        args.kv_len = shape.kv_len;
    }
    PTXCU__COMPLETE(flash_prefill, call->plan.launches, NULL);
}

#endif

/* -- flash_mla -- */
#if PTXK__HAS(PTXK_OP_FLASH_MLA)

/* Get the strides of q, q_rope or out, [batch, queries, heads, d], from query to query and head to head. */
static void ptxcu__get_mla_strides(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t,
                                   uint64_t *row, uint64_t *head) {
    uint64_t sequence = ptxcu__get_stride(t, 0);
    *row = t->shape[1] > 1 ? ptxcu__get_stride(t, 1) : sequence;
    *head = ptxcu__get_stride(t, 2);
    if (c->code == PTXCU_E_NONE && t->shape[0] > 1 && sequence != t->shape[1] * *row)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE,
                              "flash_mla: %s has strides %s; the first must be %llu times that of a query",
                              name, ptxcu__format_shape(4, t->stride).s, (unsigned long long)t->shape[1]);
}

PTXCU__OPERATION(flash_mla) {
    static const char *const dims = "batch, (queries,) heads, latent";
    ptxcu_tensor q, r, out;
    PTXCU__PREPARE(flash_mla);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    q = ptxcu__add_query_dim(&desc->q);
    r = ptxcu__add_query_dim(&desc->q_rope);
    out = ptxcu__add_query_dim(&desc->out);
    ptxcu__require(&c, "q", &q, PTXCU__CONTIGUOUS_ROWS, PTXCU__FLOAT_TYPES, 16, dims, 4, PTXCU__ANY,
                   PTXCU__ANY, PTXCU__ANY, PTXCU__ANY);
    ptxcu__require(&c, "q_rope", &r, PTXCU__CONTIGUOUS_ROWS, PTXCU__TYPE(q.type), 16,
                   "batch, (queries,) heads, rope", 4, q.shape[0], q.shape[1], q.shape[2], PTXCU__ANY);
    ptxcu__require_cache(&c, desc->cache, 0, 0, q.shape[0], 1, q.shape[3], r.shape[3]);
    ptxcu__require(&c, "lengths", &desc->lengths, PTXCU__DENSE | (desc->length ? PTXCU__OPTIONAL : 0),
                   PTXCU__TYPE(PTX_U32), 4, "batch", 1, q.shape[0], 0, 0, 0);
    ptxcu__require(&c, "out", &out, PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN, PTXCU__FLOAT_TYPES, 16, dims, 4,
                   q.shape[0], q.shape[1], q.shape[2], q.shape[3]);
    ptxcu__require(&c, "lse", &desc->lse, PTXCU__OPTIONAL | PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_F32), 4,
                   "batch, (queries,) heads", desc->lse.rank == 2 && q.shape[1] == 1 ? 2 : 3, q.shape[0],
                   desc->lse.rank == 2 ? q.shape[2] : q.shape[1], q.shape[2], 0);
    ptxcu__require_workspace(&c, &desc->workspace);
    ptxcu__get_mla_strides(&c, "q", &q, &args.q_row_stride, &args.q_head_stride);
    ptxcu__get_mla_strides(&c, "q_rope", &r, &args.rope_row_stride, &args.rope_head_stride);
    ptxcu__get_mla_strides(&c, "out", &out, &args.out_row_stride, &args.out_head_stride);
    if (c.code == PTXCU_E_NONE) {
        const ptxcu_kv_cache *cache = desc->cache;
        int paged = cache->blocks.owner != NULL, page_rows;
        uint64_t rows = ptxcu__get_cache_rows(&c, cache, 1u << 30, &page_rows);
        if (c.code == PTXCU_E_NONE && desc->length > rows)
            c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                                 "flash_mla: length is %u, must be at most max_seq, %llu",
                                 (unsigned)desc->length, (unsigned long long)rows);
        kernel.heads = (uint32_t)q.shape[2];
        kernel.latent = (uint32_t)q.shape[3];
        kernel.rope = (uint32_t)r.shape[3];
        kernel.kv_type = cache->type ? cache->type : cache->k.type;
        kernel.q_type = q.type;
        kernel.out_type = out.type;
        kernel.tile = ptxk_flash_mla_tile(kernel.heads, (uint32_t)q.shape[1]);
        kernel.page_size = paged ? (uint32_t)cache->k.shape[2] : 0;
        kernel.flags = desc->lse.owner ? (uint32_t)PTXK_MLA_LSE : 0;
        kernel.scale = desc->scale;
        shape.batch = args.batch = (uint32_t)q.shape[0];
        shape.queries = args.queries = (uint32_t)q.shape[1];
        shape.max_seq = args.max_seq = (uint32_t)rows;
        shape.max_len = desc->max_len ? desc->max_len : desc->length;
        shape.sm_count = cu->info.sm_count;
        shape.target = cu->info.target;
        args.q = q.address;
        args.q_rope = r.address;
        args.out = out.address;
        args.c_caches = paged ? cache->k.address : cache->addresses.address;
        args.r_caches = paged ? cache->v.address : cache->addresses.address + 8 * q.shape[0];
        args.c_stride = paged ? 0 : ptxcu__get_stride(&cache->k, 2);
        args.r_stride = paged ? 0 : ptxcu__get_stride(&cache->v, 2);
        args.c_factors = ptxcu__get_factors(cache, 0);
        args.r_factors = ptxcu__get_factors(cache, 1);
        args.lengths = desc->lengths.address;
        args.length = desc->length;
        args.block_table = cache->blocks.address;
        args.max_pages = paged ? (uint32_t)cache->blocks.shape[1] : 0;
        args.pool_pages = paged ? (uint32_t)cache->k.shape[0] : 0;
        args.lse = desc->lse.address;
        args.workspace = desc->workspace.address;
    }
    PTXCU__COMPLETE(flash_mla, call->plan.launches, &desc->workspace);
}

#endif

/* -- gemv -- */
#if PTXK__HAS(PTXK_OP_GEMV)

/* Reject fields of matrix i that are set without its weights, or its y with SwiGLU. */
static void ptxcu__reject_stray_fields(ptxcu__operation_check *c, const ptxcu_gemv_desc *desc, uint32_t i,
                                       uint32_t matrices) {
    const ptxcu_gemv_matrix *m = &desc->more[i - 1];
    const char *stray = i < matrices    ? (desc->swiglu && matrices == 2 && m->y.owner ? "y" : NULL)
                        : m->y.owner    ? "y"
                        : m->bias.owner ? "bias"
                        : m->format     ? "format"
                                        : NULL;
    if (c->code == PTXCU_E_NONE && stray)
        c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "gemv: more[%u].%s is set, and must not be %s",
                              (unsigned)(i - 1), stray, i < matrices ? "with swiglu" : "without weights");
}

/* Require the tensors of matrix i of a gemv, from 0; return its format. */
static uint32_t ptxcu__require_gemv_matrix(ptxcu__operation_check *c, const ptxcu_gemv_desc *desc, uint32_t i,
                                           uint64_t k) {
    static const char *const names[3][3] = {{"weights", "bias", "y"},
                                            {"more[0].weights", "more[0].bias", "more[0].y"},
                                            {"more[1].weights", "more[1].bias", "more[1].y"}};
    const ptxcu_tensor *w = i ? &desc->more[i - 1].weights : &desc->weights;
    const ptxcu_tensor *bias = i ? &desc->more[i - 1].bias : &desc->bias,
                       *y = i ? &desc->more[i - 1].y : &desc->y;
    uint32_t format = i ? desc->more[i - 1].format : desc->format;
    ptxcu__require_weights(c, names[i][0], w, format, k, 0);
    if (desc->bias.owner) /* for all matrices or none */
        ptxcu__require(c, names[i][1], bias, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 16, "n", 1, w->shape[0], 0,
                       0, 0);
    if (c->code == PTXCU_E_NONE && bias->owner && !desc->bias.owner)
        c->code = ptxcu__fail(c->cu, PTXCU_E_SHAPE, "gemv: %s is set, and bias is not", names[i][1]);
    if (!i || !desc->swiglu)
        ptxcu__require(c, names[i][2], y, PTXCU__DENSE_OUTPUT | (i ? 0 : PTXCU__MAY_ALIAS),
                       i ? PTXCU__TYPE(desc->y.type) : PTXCU__TYPE(PTX_F32) | PTXCU__TYPE(PTX_F16), 16,
                       "columns, n", 2, desc->x.shape[0], w->shape[0], 0, 0);
    return format;
}

PTXCU__OPERATION(gemv) {
    uint32_t i, matrices;
    uint64_t n, k;
    PTXCU__PREPARE(gemv);
    c.renames_matrix_fields = 1;
    n = desc->weights.shape[0];
    k = desc->x.shape[1];
    ptxcu__require_flag(&c, "norm", desc->norm, 1);
    ptxcu__require_flag(&c, "swiglu", desc->swiglu, 1);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    ptxcu__require_flag(&c, "more[0].unused", desc->more[0].unused, 0);
    ptxcu__require_flag(&c, "more[1].unused", desc->more[1].unused, 0);
    if (c.code == PTXCU_E_NONE && !(desc->eps >= 0 && desc->eps <= 3.402823466e38f))
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemv: eps is %g, must be finite and at least 0",
                             (double)desc->eps);
    ptxcu__require(&c, "x", &desc->x, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 16, "columns, k", 2, PTXCU__ANY,
                   PTXCU__ANY, 0, 0);
    matrices = desc->more[1].weights.owner ? 3 : desc->more[0].weights.owner || desc->swiglu ? 2 : 1;
    if (c.code == PTXCU_E_NONE && matrices > 1 && !desc->more[0].weights.owner)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemv: more[0].weights is zero, and must not be with %s",
                             desc->swiglu ? "swiglu: it is the up matrix" : "more[1]");
    for (i = 1; i < 3; i++) ptxcu__reject_stray_fields(&c, desc, i, matrices);
    kernel.format = ptxcu__require_gemv_matrix(&c, desc, 0, k);
    if (matrices > 1) kernel.second = ptxcu__require_gemv_matrix(&c, desc, 1, k);
    if (matrices > 2) kernel.third = ptxcu__require_gemv_matrix(&c, desc, 2, k);
    ptxcu__require(&c, "gamma", &desc->gamma, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 16, "k", 1, k, 0,
                   0, 0);
    ptxcu__require(&c, "residual", &desc->residual, PTXCU__DENSE_OPTIONAL | PTXCU__MAY_ALIAS,
                   PTXCU__TYPE(desc->y.type), 16, "columns, n", 2, desc->x.shape[0], n, 0, 0);
    ptxcu__require_workspace(&c, &desc->workspace);
    if (c.code == PTXCU_E_NONE) {
        kernel.columns = (uint32_t)desc->x.shape[0];
        kernel.precision = desc->precision;
        kernel.output_type = desc->y.type;
        kernel.flags = (desc->norm ? (uint32_t)PTXK_GEMV_NORM : 0)
                       | (desc->gamma.owner ? (uint32_t)PTXK_GEMV_GAMMA : 0)
                       | (desc->residual.owner ? (uint32_t)PTXK_GEMV_RESIDUAL : 0)
                       | (desc->bias.owner ? (uint32_t)PTXK_GEMV_BIAS : 0)
                       | (desc->swiglu ? (uint32_t)PTXK_GEMV_SWIGLU : 0);
        shape.n = (uint32_t)n;
        shape.k = (uint32_t)k;
        shape.sm_count = cu->info.sm_count;
        shape.second_n = (uint32_t)desc->more[0].weights.shape[0];
        shape.third_n = (uint32_t)desc->more[1].weights.shape[0];
        ptxcu__report_plan_error(&c, ptxk_gemv_plan(&kernel, &shape, &call->plan, &c.why));
        args.weights = desc->weights.address;
        args.x = desc->x.address;
        args.gamma = desc->gamma.address;
        args.residual = desc->residual.address;
        args.y = desc->y.address;
        args.workspace = desc->workspace.address;
        args.bias = desc->bias.address;
        args.n = shape.n;
        args.k = shape.k;
        args.eps = desc->eps;
        for (i = 1; i < matrices; i++) {
            args.more[i - 1].weights = desc->more[i - 1].weights.address;
            args.more[i - 1].bias = desc->more[i - 1].bias.address;
            args.more[i - 1].y = desc->more[i - 1].y.address;
            args.more[i - 1].n = (uint32_t)desc->more[i - 1].weights.shape[0];
        }
        if (c.code == PTXCU_E_NONE && call->plan.launches && args.workspace)
            ptxcu__report_plan_error(&c, ptxk_gemv_check(&kernel, &args, &c.why));
        if (c.code == PTXCU_E_NONE && desc->swiglu && shape.second_n != shape.n)
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE, "gemv: more[0].weights has %u rows, must have %u",
                                 (unsigned)shape.second_n, (unsigned)shape.n);
    }
    return ptxcu__complete_check(&c, &kernel, &args, sizeof args, &desc->workspace);
}

#endif

#if PTXK__HAS(PTXK_OP_GEMM | PTXK_OP_MATMUL)
/* Require the factors of a matrix; return the stride from product to product, 0 if shared. */
static uint64_t ptxcu__require_factors(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t,
                                       uint32_t kind, uint64_t batch, uint64_t matrix_rows, uint64_t k) {
    static const char *const dims[] = {"batch, 1", "batch, rows", "batch, rows, blocks of k",
                                       "batch, blocks of rows, blocks of k"};
    uint64_t blocks = (k + 127) / 128,
             rows = kind == PTXK_FACTORS_SQUARE ? (matrix_rows + 127) / 128 : matrix_rows;
    uint32_t has_k_blocks = kind >= PTXK_FACTORS_BLOCK, per_product;
    if (c->code == PTXCU_E_NONE && (kind != PTXK_FACTORS_NONE) != (t->owner != NULL))
        c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "%s: %s %s, and its kind is %u", c->name, name,
                              t->owner ? "is set" : "is zero", (unsigned)kind);
    if (!t->owner || c->code != PTXCU_E_NONE) return 0;
    per_product = batch && t->rank == 2 + has_k_blocks;
    if (kind == PTXK_FACTORS_TENSOR) rows = 1;
    ptxcu__require(c, name, t, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 4,
                   dims[(kind < 4 ? kind : 4) - 1] + (per_product ? 0 : 7), 1 + per_product + has_k_blocks,
                   per_product ? batch : rows, per_product ? rows : blocks, blocks, 0);
    return per_product ? rows * (has_k_blocks ? blocks : 1) : 0;
}

#endif
/* -- gemm -- */
#if PTXK__HAS(PTXK_OP_GEMM)

PTXCU__OPERATION(gemm) {
    static const char *const names[3][4] = {
        {"weights", "bias", "y", "factors"},
        {"more[0].weights", "more[0].bias", "more[0].y", "more[0].factors"},
        {"more[1].weights", "more[1].bias", "more[1].y", "more[1].factors"}};
    const ptxcu_tensor *w, *bias, *y;
    uint32_t format[3], i, matrices;
    uint32_t n_multiple;
    uint64_t n, k, m, groups, rows, row_bytes; /* rows: of a matrix */
    int is_byte;
    PTXCU__PREPARE(gemm);
    c.renames_matrix_fields = 1;
    groups = desc->offsets.owner && desc->offsets.shape[0] ? desc->offsets.shape[0] - 1 : 0;
    n = desc->weights.shape[groups ? 1 : 0];
    m = desc->x_rows.owner ? desc->x_rows.shape[0] : desc->x.shape[0];
    k = desc->x.shape[1];
    ptxcu__require_flag(&c, "norm", desc->norm, 1);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    ptxcu__require(&c, "offsets", &desc->offsets, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 4,
                   "groups + 1", 1, PTXCU__ANY, 0, 0, 0);
    ptxcu__require(&c, "x_rows", &desc->x_rows, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 4, "m", 1,
                   PTXCU__ANY, 0, 0, 0);
    if (c.code == PTXCU_E_NONE && ((desc->offsets.owner && !groups) || (desc->x_rows.owner && !groups)))
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemm: offsets has %u elements, must have groups + 1%s",
                             (unsigned)(desc->offsets.owner ? desc->offsets.shape[0] : 0),
                             desc->x_rows.owner ? ": x_rows is set" : "");
    ptxcu__require_flag(&c, "more[0].unused", desc->more[0].unused, 0);
    ptxcu__require_flag(&c, "more[1].unused", desc->more[1].unused, 0);
    if (c.code == PTXCU_E_NONE && desc->gated && desc->gated != PTXK_GEMM_SWIGLU
        && desc->gated != PTXK_GEMM_GEGLU && desc->gated != PTXK_GEMM_CLAMPED)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT,
                             "gemm: gated is %u, must be 0, PTXK_GEMM_SWIGLU, _GEGLU or _CLAMPED",
                             (unsigned)desc->gated);
    if (c.code == PTXCU_E_NONE && !(desc->eps >= 0 && desc->eps <= 3.402823466e38f))
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemm: eps is %g, must be finite and at least 0",
                             (double)desc->eps);
    ptxcu__require(&c, "x", &desc->x, PTXCU__CONTIGUOUS_ROWS, PTXCU__FLOAT_TYPES, 16, "m, k", 2, PTXCU__ANY,
                   PTXCU__ANY, 0, 0);
    matrices = desc->more[1].weights.owner ? 3 : desc->more[0].weights.owner || desc->gated ? 2 : 1;
    if (c.code == PTXCU_E_NONE && matrices > 1 && !desc->more[0].weights.owner)
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemm: more[0].weights is zero, and must not be with %s",
                             desc->gated ? "gated: it is the up matrix" : "more[1]");
    for (i = 0; i < 3; i++) {
        const ptxcu_gemm_matrix *more = i ? &desc->more[i - 1] : NULL;
        const char *stray = NULL;
        w = more ? &more->weights : &desc->weights;
        bias = more ? &more->bias : &desc->bias;
        y = more ? &more->y : &desc->y;
        format[i] = more ? more->format : desc->format;
        if (i >= matrices)
            stray = y->owner                      ? "y"
                    : bias->owner                 ? "bias"
                    : format[i]                   ? "format"
                    : more && more->factors.owner ? "factors"
                                                  : NULL;
        else if (i && desc->gated && y->owner)
            stray = "y";
        if (c.code == PTXCU_E_NONE && stray)
            c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "gemm: more[%u].%s is set, and must not be %s",
                                 (unsigned)(i - 1), stray, i < matrices ? "with gated" : "without weights");
        if (i >= matrices) continue;
        ptxcu__require_weights(&c, names[i][0], w, format[i], k, groups);
        rows = w->shape[groups ? 1 : 0];
        is_byte = ptxcu__is_byte_format(&c, format[i]);
        row_bytes = c.code != PTXCU_E_NONE ? 0 : is_byte ? k : ptxk_row_bytes(format[i], (uint32_t)k);
        if (groups > 1 && row_bytes * rows % 16) {
            for (n_multiple = 16; row_bytes * (n_multiple / 2) % 16 == 0;) n_multiple /= 2;
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE,
                                 "gemm: %s: a group has %llu bytes, must be a multiple of 16: with rows of "
                                 "%llu bytes, n must be a multiple of %u",
                                 names[i][0], (unsigned long long)(row_bytes * rows),
                                 (unsigned long long)row_bytes, (unsigned)n_multiple);
        }
        if (desc->bias.owner) /* for all matrices or none */
            ptxcu__require(&c, names[i][1], bias, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 16,
                           groups ? "groups, n" : "n", groups ? 2 : 1, groups ? groups : rows, rows, 0, 0);
        if (c.code == PTXCU_E_NONE && bias->owner && !desc->bias.owner)
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE, "gemm: %s is set, and bias is not", names[i][1]);
        if (!i || !desc->gated)
            ptxcu__require(&c, names[i][2], y,
                           PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN | (i ? 0 : PTXCU__MAY_ALIAS),
                           i ? PTXCU__TYPE(desc->y.type) : PTXCU__FLOAT_TYPES, 16, "m, n", 2, m, rows, 0, 0);
        w = more ? &more->factors : &desc->factors;
        if (!ptxcu__require_factors(&c, names[i][3], w, is_byte ? desc->factor_kind : 0, groups, rows, k)
            && c.code == PTXCU_E_NONE && groups > 1 && w->owner)
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE,
                                 "gemm: %s has %u dimensions, must have those of a group "
                                 "behind [groups]",
                                 names[i][3], (unsigned)w->rank);
        args.factors[i] = w->address;
        w = more ? &more->weights : &desc->weights;
        args.matrix[i].weights = w->address;
        args.matrix[i].bias = bias->address;
        args.matrix[i].y = y->address;
        args.matrix[i].n = (uint32_t)rows;
    }
    ptxcu__require(&c, "gamma", &desc->gamma, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 16, "k", 1, k, 0,
                   0, 0);
    ptxcu__require(&c, "residual", &desc->residual,
                   PTXCU__OPTIONAL | PTXCU__CONTIGUOUS_ROWS | PTXCU__MAY_ALIAS, PTXCU__TYPE(desc->y.type), 16,
                   "m, n", 2, m, n, 0, 0);
    ptxcu__require_workspace(&c, &desc->workspace);
    if (c.code == PTXCU_E_NONE) {
        kernel.format = format[0];
        kernel.second = format[1];
        kernel.third = format[2];
        kernel.factors = desc->factor_kind;
        kernel.x_type = desc->x.type;
        kernel.output_type = desc->y.type;
        kernel.columns = ptxk_gemm_columns((uint32_t)(groups ? (m + groups - 1) / groups : m));
        kernel.precision = desc->precision;
        kernel.flags = (desc->norm ? (uint32_t)PTXK_GEMM_NORM : 0)
                       | (desc->gamma.owner ? (uint32_t)PTXK_GEMM_GAMMA : 0)
                       | (desc->residual.owner ? (uint32_t)PTXK_GEMM_RESIDUAL : 0)
                       | (desc->bias.owner ? (uint32_t)PTXK_GEMM_BIAS : 0)
                       | (groups ? (uint32_t)PTXK_GEMM_GROUPED : 0) | desc->gated;
        shape.groups = args.groups = (uint32_t)groups;
        args.offsets = desc->offsets.address;
        args.x_rows = desc->x_rows.address;
        args.x_count = (uint32_t)desc->x.shape[0];
        shape.m = (uint32_t)m;
        shape.n = (uint32_t)n;
        shape.k = (uint32_t)k;
        shape.second_n = args.matrix[1].n;
        shape.third_n = args.matrix[2].n;
        shape.sm_count = cu->info.sm_count;
        shape.target = cu->info.target;
        if (desc->gated && shape.second_n != shape.n)
            c.code = ptxcu__fail(cu, PTXCU_E_SHAPE, "gemm: more[0].weights has %u rows, must have %u",
                                 (unsigned)shape.second_n, (unsigned)shape.n);
        args.x = desc->x.address;
        args.x_stride = ptxcu__get_stride(&desc->x, 0);
        args.gamma = desc->gamma.address;
        args.residual = desc->residual.address;
        args.residual_stride = desc->residual.owner ? ptxcu__get_stride(&desc->residual, 0) : 0;
        for (i = 0; i < matrices; i++)
            args.matrix[i].y_stride = ptxcu__get_stride(i ? &desc->more[i - 1].y : &desc->y, 0);
        if (desc->gated) args.matrix[1].y_stride = 0;
        args.workspace = desc->workspace.address;
        args.m = shape.m;
        args.k = shape.k;
        args.eps = desc->eps;
    }
    PTXCU__COMPLETE(gemm, call->plan.launches && args.workspace, &desc->workspace);
}

#endif

/* -- matmul -- */
#if PTXK__HAS(PTXK_OP_MATMUL)

/* The tensor with its contiguous dimension last; *transposed: the last two were exchanged. */
static ptxcu_tensor ptxcu__get_row_major(const ptxcu_tensor *t, uint32_t *transposed) {
    ptxcu_tensor rows = *t;
    uint32_t last = t->rank - 1;
    *transposed = 0;
    if (t->rank < 2 || t->rank > 3 || t->stride[last] == 1 || t->shape[last] < 2) return rows;
    if (t->stride[last - 1] != 1 && t->shape[last - 1] > 1) return rows; /* refused later */
    *transposed = 1;
    rows.shape[last] = t->shape[last - 1], rows.shape[last - 1] = t->shape[last];
    rows.stride[last] = 1, rows.stride[last - 1] = t->stride[last];
    return rows;
}

/* Require a matrix, of each product if its rank is 3. rows, columns: after the exchange of dimensions. */
static void ptxcu__require_matrix(ptxcu__operation_check *c, const char *name, const ptxcu_tensor *t,
                                  uint32_t flags, uint64_t types, const char *dims, const char *batch_dims,
                                  uint64_t batch, uint64_t rows, uint64_t columns) {
    uint32_t align = ptx_type_bytes((ptx_type)t->type);
    flags |= PTXCU__CONTIGUOUS_ROWS;
    if (!align) align = 1;
    if (t->rank == 3)
        ptxcu__require(c, name, t, flags, types, align, batch_dims, 3, batch, rows, columns, 0);
    else
        ptxcu__require(c, name, t, flags, types, align, dims, 2, rows, columns, 0, 0);
    if (c->code == PTXCU_E_NONE && t->owner && ptxcu__get_stride(t, t->rank - 2) > UINT32_MAX)
        c->code = ptxcu__fail(c->cu, PTXCU_E_OVERFLOW,
                              "matmul: rows of %s are %llu elements apart, must be less "
                              "than 2^32",
                              name, (unsigned long long)ptxcu__get_stride(t, t->rank - 2));
}

static uint64_t ptxcu__matmul_types(ptxcu__operation_check *c, const char *name, uint32_t type) {
    if (!type) return PTXCU__FLOAT_TYPES | PTXCU__TYPE(PTX_S8);
    if (type != PTX_E4M3 && type != PTX_E5M2 && c->code == PTXCU_E_NONE)
        c->code = ptxcu__fail(c->cu, PTXCU_E_ARGUMENT, "matmul: %s is %s, must be PTX_E4M3, PTX_E5M2 or 0",
                              name, ptxk__value_name_of(type).s);
    return PTXCU__TYPE(PTX_B8) | PTXCU__TYPE(PTX_U8);
}

PTXCU__OPERATION(matmul) {
    ptxcu_tensor a, b;
    uint64_t batch, m, n, k, types;
    uint32_t trans[2], is_single;
    PTXCU__PREPARE(matmul);
    a = ptxcu__get_row_major(&desc->a, &trans[0]);
    b = ptxcu__get_row_major(&desc->b, &trans[1]);
    is_single = desc->d.rank == 2;
    batch = is_single ? 1 : desc->d.shape[0];
    m = desc->d.shape[is_single ? 0 : 1];
    n = desc->d.shape[is_single ? 1 : 2];
    k = desc->a.shape[desc->a.rank == 3 ? 2 : 1];
    ptxcu__require_matrix(&c, "d", &desc->d, PTXCU__WRITTEN | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, "m, n",
                          "batch, m, n", PTXCU__ANY, PTXCU__ANY, PTXCU__ANY);
    types = ptxcu__matmul_types(&c, "a_type", desc->a_type);
    ptxcu__require_matrix(&c, "a", &a, 0, types, trans[0] ? "k, m" : "m, k",
                          trans[0] ? "batch, k, m" : "batch, m, k", batch, trans[0] ? PTXCU__ANY : m,
                          trans[0] ? m : PTXCU__ANY);
    types = ptxcu__matmul_types(&c, "b_type", desc->b_type);
    ptxcu__require_matrix(&c, "b", &b, 0, types, trans[1] ? "n, k" : "k, n",
                          trans[1] ? "batch, n, k" : "batch, k, n", batch, trans[1] ? n : k,
                          trans[1] ? k : n);
    if (desc->c.owner)
        ptxcu__require_matrix(&c, "c", &desc->c, PTXCU__MAY_ALIAS, PTXCU__TYPE(desc->d.type), "m, n",
                              "batch, m, n", batch, m, n);
    if (c.code == PTXCU_E_NONE && !desc->c.owner && !(desc->beta >= 0 && desc->beta <= 0))
        c.code = ptxcu__fail(cu, PTXCU_E_ARGUMENT, "matmul: c is zero, and beta is %g", (double)desc->beta);
    ptxcu__require(&c, "bias", &desc->bias, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 4, "n", 1, n, 0, 0,
                   0);
    args.a_factors_stride =
        ptxcu__require_factors(&c, "a_factors", &desc->a_factors, desc->a_kind, batch, m, k);
    args.b_factors_stride =
        ptxcu__require_factors(&c, "b_factors", &desc->b_factors, desc->b_kind, batch, n, k);
    ptxcu__require_workspace(&c, &desc->workspace);
    if (c.code == PTXCU_E_NONE) {
        kernel.a_type = desc->a_type ? desc->a_type : desc->a.type;
        kernel.b_type = desc->b_type ? desc->b_type : desc->b.type;
        kernel.out_type = desc->d.type;
        kernel.flags = (trans[0] ? (uint32_t)PTXK_MATMUL_TRANS_A : 0)
                       | (trans[1] ? (uint32_t)PTXK_MATMUL_TRANS_B : 0)
                       | (desc->bias.owner ? (uint32_t)PTXK_MATMUL_BIAS : 0);
        kernel.precision = desc->precision;
        kernel.activation = desc->activation;
        kernel.a_factors = desc->a_kind;
        kernel.b_factors = desc->b_kind;
        args.m = shape.m = (uint32_t)m;
        args.n = shape.n = (uint32_t)n;
        args.k = shape.k = (uint32_t)k;
        args.batch = shape.batch = (uint32_t)batch;
        args.sm_count = shape.sm_count = cu->info.sm_count;
        shape.target = cu->info.target;
        args.a = desc->a.address;
        args.b = desc->b.address;
        args.c = desc->c.address;
        args.d = desc->d.address;
        args.bias = desc->bias.address;
        args.a_factors = desc->a_factors.address;
        args.b_factors = desc->b_factors.address;
        args.workspace = desc->workspace.address;
        args.lda = (uint32_t)ptxcu__get_stride(&a, a.rank - 2);
        args.ldb = (uint32_t)ptxcu__get_stride(&b, b.rank - 2);
        args.ldc = desc->c.owner ? (uint32_t)ptxcu__get_stride(&desc->c, desc->c.rank - 2) : 0;
        args.ldd = (uint32_t)ptxcu__get_stride(&desc->d, desc->d.rank - 2);
        args.a_stride = a.rank == 3 ? ptxcu__get_stride(&a, 0) : 0;
        args.b_stride = b.rank == 3 ? ptxcu__get_stride(&b, 0) : 0;
        args.c_stride = desc->c.rank == 3 ? ptxcu__get_stride(&desc->c, 0) : 0;
        args.d_stride = is_single ? 0 : ptxcu__get_stride(&desc->d, 0);
        args.alpha = desc->alpha >= 0 && desc->alpha <= 0 ? 1 : desc->alpha;
        args.beta = desc->beta;
        shape.aligned = (uint32_t)ptxk_matmul_aligned(&kernel, &args);
    }
    PTXCU__COMPLETE(matmul, call->plan.launches && (args.workspace || !call->plan.workspace_bytes),
                    &desc->workspace);
}

#endif

/* -- norm -- */
#if PTXK__HAS(PTXK_OP_NORM)

PTXCU__OPERATION(norm) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(norm, x, PTXCU__DENSE | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, 0, 16, "rows, n"),
        PTXCU__RULE(norm, residual, PTXCU__DENSE_OPTIONAL | PTXCU__MAY_ALIAS, 0, -1, 16, "rows, n"),
        PTXCU__RULE(norm, y, PTXCU__DENSE_OUTPUT | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, 0, 16, "rows, n"),
        PTXCU__RULE(norm, gamma, PTXCU__DENSE_OPTIONAL, PTXCU__FLOAT_TYPES, 0, 16, "n"),
        PTXCU__RULE(norm, beta, PTXCU__DENSE_OPTIONAL, PTXCU__FLOAT_TYPES, -1, 16, "n")};
    PTXCU__PREPARE(norm);
    PTXCU__REQUIRE_ALL(rules);
    if (desc->residual.owner)
        c.flags[0] = PTXCU__DENSE_OUTPUT; /* x is written; y may be the residual alone */
    kernel.n = (uint32_t)desc->x.shape[1];
    kernel.kind = desc->kind;
    kernel.x_type = desc->x.type;
    kernel.y_type = desc->y.type;
    kernel.weight_type = desc->gamma.owner ? desc->gamma.type : (uint32_t)PTX_F32;
    kernel.flags = (desc->residual.owner ? (uint32_t)PTXK_NORM_RESIDUAL : 0)
                   | (desc->beta.owner ? (uint32_t)PTXK_NORM_BETA : 0)
                   | (desc->gamma.owner ? 0 : (uint32_t)PTXK_NORM_PLAIN);
    args.rows = shape.rows = (uint32_t)desc->x.shape[0];
    args.eps = desc->eps;
    PTXCU__COMPLETE(norm, 1, NULL);
}

#endif

/* -- softmax -- */
#if PTXK__HAS(PTXK_OP_SOFTMAX)

PTXCU__OPERATION(softmax) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(softmax, x, PTXCU__DENSE | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, 0, 16, "rows, n"),
        PTXCU__RULE(softmax, y, PTXCU__DENSE_OUTPUT | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, 0, 16,
                    "rows, n")};
    PTXCU__PREPARE(softmax);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    PTXCU__REQUIRE_ALL(rules);
    kernel.n = (uint32_t)desc->x.shape[1];
    kernel.x_type = desc->x.type;
    kernel.y_type = desc->y.type;
    kernel.scale = desc->scale;
    args.rows = shape.rows = (uint32_t)desc->x.shape[0];
    PTXCU__COMPLETE(softmax, 1, NULL);
}

#endif

/* -- activation -- */
#if PTXK__HAS(PTXK_OP_ACTIVATION)

PTXCU__OPERATION(activation) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(activation, x, PTXCU__CONTIGUOUS_ROWS | PTXCU__MAY_ALIAS, PTXCU__FLOAT_TYPES, 0, 1,
                    "rows, n"),
        PTXCU__RULE(activation, up, PTXCU__OPTIONAL | PTXCU__CONTIGUOUS_ROWS | PTXCU__MAY_ALIAS, 0, -1, 1,
                    "rows, n"),
        PTXCU__RULE(activation, y, PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN | PTXCU__MAY_ALIAS,
                    PTXCU__FLOAT_TYPES, 0, 1, "rows, n")};
    PTXCU__PREPARE(activation);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    PTXCU__REQUIRE_ALL(rules);
    kernel.kind = desc->kind;
    kernel.gated = desc->up.owner != NULL;
    kernel.x_type = desc->x.type;
    kernel.y_type = desc->y.type;
    args.rows = shape.rows = (uint32_t)desc->x.shape[0];
    args.n = shape.n = (uint32_t)desc->x.shape[1];
    args.x_stride = ptxcu__get_stride(&desc->x, 0);
    args.up_stride = desc->up.owner ? ptxcu__get_stride(&desc->up, 0) : 0;
    args.y_stride = ptxcu__get_stride(&desc->y, 0);
    PTXCU__COMPLETE(activation, 1, NULL);
}

#endif

/* -- rope -- */
#if PTXK__HAS(PTXK_OP_ROPE)

PTXCU__OPERATION(rope) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(rope, x, PTXCU__CONTIGUOUS_ROWS | PTXCU__WRITTEN, PTXCU__FLOAT_TYPES, 0, 16,
                    "tokens, heads, head_dim"),
        PTXCU__RULE(rope, positions, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 0, 4, "tokens"),
        PTXCU__RULE(rope, frequencies, PTXCU__DENSE, PTXCU__TYPE(PTX_F64), 0, 8, "dims / 2")};
    const ptxcu_tensor *t, *f;
    PTXCU__PREPARE(rope);
    t = &desc->x;
    f = &desc->frequencies;
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    PTXCU__REQUIRE_ALL(rules);
    if (c.code == PTXCU_E_NONE && ptxcu__get_stride(t, 1) && t->stride[1] != t->shape[2])
        c.code =
            ptxcu__fail(cu, PTXCU_E_SHAPE, "rope: x has shape %s and strides %s, must have dense heads",
                        ptxcu__format_shape(t->rank, t->shape).s, ptxcu__format_shape(t->rank, t->stride).s);
    if (c.code == PTXCU_E_NONE && (!f->shape[0] || f->shape[0] > t->shape[2] / 2))
        c.code =
            ptxcu__fail(cu, PTXCU_E_SHAPE, "rope: frequencies has shape %s, must be [1 ... head_dim / 2]",
                        ptxcu__format_shape(f->rank, f->shape).s);
    kernel.heads = (uint32_t)t->shape[1];
    kernel.head_dim = (uint32_t)t->shape[2];
    kernel.dims = 2 * (uint32_t)f->shape[0];
    kernel.pairs = desc->pairs;
    kernel.type = t->type;
    args.tokens = shape.tokens = (uint32_t)t->shape[0];
    args.stride = ptxcu__get_stride(t, 0);
    PTXCU__COMPLETE(rope, 1, NULL);
}

#endif

/* -- embed -- */
#if PTXK__HAS(PTXK_OP_EMBED)

PTXCU__OPERATION(embed) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(embed, ids, PTXCU__DENSE, PTXCU__TYPE(PTX_U32), 0, 4, "tokens"),
        PTXCU__RULE(embed, y, PTXCU__DENSE_OUTPUT, PTXCU__FLOAT_TYPES, 0, 16, "tokens, n")};
    PTXCU__PREPARE(embed);
    PTXCU__REQUIRE_ALL(rules);
    ptxcu__require_weights(&c, "table", &desc->table, desc->format, desc->y.shape[1], 0);
    kernel.n = (uint32_t)desc->y.shape[1];
    kernel.format = desc->format;
    kernel.y_type = desc->y.type;
    kernel.scale = desc->scale;
    args.tokens = shape.tokens = (uint32_t)desc->ids.shape[0];
    args.table = desc->table.address;
    args.rows = (uint32_t)desc->table.shape[0];
    PTXCU__COMPLETE(embed, 1, NULL);
}

#endif

/* -- quantize -- */
#if PTXK__HAS(PTXK_OP_QUANTIZE)

PTXCU__OPERATION(quantize) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(quantize, x, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 0, 16, "rows, n")};
    uint64_t rows, n, bytes;
    uint32_t plain;
    PTXCU__PREPARE(quantize);
    rows = desc->x.shape[0];
    n = desc->x.shape[1];
    plain = desc->y_type == PTX_E4M3 || desc->y_type == PTX_S8;
    bytes = plain || n > UINT32_MAX ? n : ptxk_row_bytes(desc->y_type, (uint32_t)n);
    PTXCU__REQUIRE_ALL(rules);
    kernel.n = (uint32_t)n;
    kernel.x_type = desc->x.type;
    kernel.y_type = desc->y_type;
    kernel.group = desc->group;
    args.rows = shape.rows = (uint32_t)rows;
    if (c.code == PTXCU_E_NONE) /* plan first: it refuses a y_type or n that gives no shape for y */
        ptxcu__report_plan_error(&c, ptxk_quantize_plan(&kernel, &shape, &call->plan, &c.why));
    ptxcu__require(&c, "y", &desc->y, PTXCU__DENSE_OUTPUT,
                   PTXCU__TYPE(PTX_B8) | PTXCU__TYPE(PTX_U8)
                       | (desc->y_type == PTX_S8 ? PTXCU__TYPE(PTX_S8) : 0),
                   16, plain ? "rows, n" : "rows, bytes of a row", 2, rows, bytes, 0, 0);
    if (plain)
        ptxcu__require(&c, "factors", &desc->factors, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_F32), 16,
                       desc->group ? "rows, groups" : "rows", desc->group ? 2 : 1, rows,
                       desc->group ? (n + 127) / 128 : 0, 0, 0);
    args.y = desc->y.address;
    args.factors = plain ? desc->factors.address : 0;
    PTXCU__COMPLETE(quantize, 1, NULL);
}

#endif

/* -- sample -- */
#if PTXK__HAS(PTXK_OP_SAMPLE)

PTXCU__OPERATION(sample) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(sample, logits, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 0, 16, "rows, n"),
        PTXCU__RULE(sample, positions, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 0, 4, "rows"),
        PTXCU__RULE(sample, tokens, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_U32), 0, 4, "rows")};
    PTXCU__PREPARE(sample);
    PTXCU__REQUIRE_ALL(rules);
    kernel.type = desc->logits.type;
    kernel.method = desc->method;
    args.rows = shape.rows = (uint32_t)desc->logits.shape[0];
    args.n = shape.n = (uint32_t)desc->logits.shape[1];
    args.seed = desc->seed;
    args.top_k = desc->top_k;
    args.top_p = desc->top_p;
    args.temperature = desc->temperature;
    PTXCU__COMPLETE(sample, 1, NULL);
}

#endif

/* -- route -- */
#if PTXK__HAS(PTXK_OP_ROUTE)

PTXCU__OPERATION(route) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(route, scores, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 0, 4, "tokens, experts"),
        PTXCU__RULE(route, bias, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_F32), 0, 4, "experts"),
        PTXCU__RULE(route, choices, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_U32), 0, 4, "tokens, chosen"),
        PTXCU__RULE(route, weights, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_F32), 0, 4, "tokens, chosen"),
        PTXCU__RULE(route, offsets, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_U32), 0, 4, "experts + 1"),
        PTXCU__RULE(route, rows, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_U32), 0, 4, "tokens * chosen"),
        PTXCU__RULE(route, places, PTXCU__DENSE_OUTPUT, PTXCU__TYPE(PTX_U32), 0, 4, "tokens, chosen")};
    PTXCU__PREPARE(route);
    PTXCU__REQUIRE_ALL(rules);
    ptxcu__require_flag(&c, "normalize", desc->normalize, 1);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    kernel.experts = (uint32_t)desc->scores.shape[1];
    kernel.chosen = (uint32_t)desc->choices.shape[1];
    kernel.kind = desc->kind;
    kernel.flags = (uint32_t)(desc->normalize ? PTXK_ROUTE_NORMALIZE : 0)
                   | (uint32_t)(desc->bias.address ? PTXK_ROUTE_BIAS : 0);
    kernel.scale = desc->scale;
    args.tokens = shape.tokens = (uint32_t)desc->scores.shape[0];
    PTXCU__COMPLETE(route, 1, NULL);
}

#endif

/* -- combine -- */
#if PTXK__HAS(PTXK_OP_COMBINE)

PTXCU__OPERATION(combine) {
    static const ptxcu__rule rules[] = {
        PTXCU__RULE(combine, x, PTXCU__DENSE, PTXCU__FLOAT_TYPES, 0, 1, "rows, n"),
        PTXCU__RULE(combine, weights, PTXCU__DENSE, PTXCU__TYPE(PTX_F32), 0, 4, "tokens, chosen"),
        PTXCU__RULE(combine, places, PTXCU__DENSE_OPTIONAL, PTXCU__TYPE(PTX_U32), 0, 4, "tokens, chosen"),
        PTXCU__RULE(combine, y, PTXCU__DENSE_OUTPUT, PTXCU__FLOAT_TYPES, 0, 1, "tokens, n")};
    PTXCU__PREPARE(combine);
    PTXCU__REQUIRE_ALL(rules);
    ptxcu__require_flag(&c, "add", desc->add, 1);
    ptxcu__require_flag(&c, "unused", desc->unused, 0);
    kernel.chosen = (uint32_t)desc->weights.shape[1];
    kernel.x_type = desc->x.type;
    kernel.y_type = desc->y.type;
    kernel.flags = desc->add ? PTXK_COMBINE_ADD : 0;
    args.tokens = shape.tokens = (uint32_t)desc->weights.shape[0];
    args.n = shape.n = (uint32_t)desc->x.shape[1];
    args.x_rows = (uint32_t)desc->x.shape[0];
    PTXCU__COMPLETE(combine, 1, NULL);
}

#endif

PTX__END_SMALL
#endif /* PTXGEN__CUDA_OPERATIONS_IMPLEMENTED */

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
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO
   EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
   IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE
   USE OR OTHER DEALINGS IN THE SOFTWARE.

   B - Public domain (www.unlicense.org). This is free and unencumbered software released into the public
   domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in
   source code form or as a compiled binary, for any purpose, commercial or non-commercial, and by any means.
   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, as above. */
