/* driver.c - entry points: counting calls and making them fail on demand, the device, errors, modules, linking,
 * launches. */
#include "driver.h"
#include "dependents.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <time.h>

/* --- every call ------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static atomic_ullong calls[E_COUNT];
static atomic_uint fail_in[E_COUNT];
static atomic_int fail_code[E_COUNT];
static bool initialised;
static _Thread_local struct { int entry; uint64_t call; } now;

static const char *const entry_names[E_COUNT] = {
#define X(name) [E_##name] = #name,
    SIM_ENTRIES(X)
#undef X
};

const char *sim_entry_name(int entry) { return entry_names[entry]; }

int sim_current_entry(uint64_t *call)
{
    *call = now.call;
    return now.entry;
}

int sim_count(int entry)
{
    now.entry = entry;
    now.call = atomic_fetch_add_explicit(&calls[entry], 1, memory_order_relaxed) + 1;
    if (SIM_UNLIKELY(atomic_load_explicit(&fail_in[entry], memory_order_relaxed))
        && atomic_fetch_sub(&fail_in[entry], 1) == 1) return atomic_load(&fail_code[entry]);
    return CU_OK;
}

int sim_enter(int entry, bool needs_init)
{
    int failed = sim_count(entry);
    if (failed) return failed;
    if (SIM_UNLIKELY(sim_in_host_function) && needs_init) return CU_NOT_PERMITTED;
    pthread_mutex_lock(&lock);
    sim_in_driver = true;
    sim_idle_call();
    if (needs_init && !initialised) return sim_leave(CU_NOT_INITIALIZED);
    return CU_OK;
}

void sim_initialised(void) { initialised = true; }

int sim_leave(int code)
{
    sim_output_flush(true);            /* output of launches that the host has waited for */
    sim_guards_up();
    sim_in_driver = false;
    pthread_mutex_unlock(&lock);
    return code;
}

void sim_api_pause(void)
{
    sim_in_driver = false;
    pthread_mutex_unlock(&lock);
}

void sim_api_resume(void)
{
    pthread_mutex_lock(&lock);
    sim_in_driver = true;
}

void sim_api_signal(void) { pthread_cond_broadcast(&moved); }

void sim_api_wait(unsigned milliseconds)
{
    struct timespec t;
    if (!milliseconds) { pthread_cond_wait(&moved, &lock); return; }
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    t.tv_sec += (time_t)(milliseconds / 1000) + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&moved, &lock, &t);
}

/* The entry of a name. A name without version that is no entry, as in cuda.h's macros, means the newest version. */
static int entry_of(const char *name)
{
    char text[112];
    if (!name || strlen(name) > 90) return -1;
    for (int k = 0; k < E_COUNT; k++) if (!strcmp(entry_names[k], name)) return k;
    for (int v = 4; v > 1; v--) {
        snprintf(text, sizeof text, "%s_v%d", name, v);
        for (int k = 0; k < E_COUNT; k++) if (!strcmp(entry_names[k], text)) return k;
    }
    return -1;
}

SIM_EXPORT uint64_t ptxsim_calls(const char *name)
{
    int k = entry_of(name);
    return k < 0 ? 0 : atomic_load(&calls[k]);
}

SIM_EXPORT int ptxsim_fail(const char *name, unsigned nth, int code)
{
    int k = entry_of(name);
    if (k < 0) return 1;
    atomic_store(&fail_code[k], code);
    atomic_store(&fail_in[k], code ? nth : 0);
    return 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

static const struct { int code; const char *name, *text;
} errors[] = {
    { 0, "CUDA_SUCCESS", "no error" },
    { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { 4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
    { 5, "CUDA_ERROR_PROFILER_DISABLED", "profiler disabled while using external profiling tool" },
    { 6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "profiler not initialized: call cudaProfilerInitialize()" },
    { 7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "profiler already started" },
    { 8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "profiler already stopped" },
    { 34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library" },
    { 36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "API call requires a newer CUDA driver" },
    { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable" },
    { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { 102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "device doesn't have valid Grid license" },
    { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { 202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current" },
    { 205, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed" },
    { 206, "CUDA_ERROR_UNMAP_FAILED", "unmapping of buffer object failed" },
    { 207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped" },
    { 208, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped" },
    { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
    { 210, "CUDA_ERROR_ALREADY_ACQUIRED", "resource already acquired" },
    { 211, "CUDA_ERROR_NOT_MAPPED", "resource not mapped" },
    { 212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "resource not mapped as array" },
    { 213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "resource not mapped as pointer" },
    { 214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered" },
    { 215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported on this architecture" },
    { 216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE",
      "exclusive-thread device already in use by a different thread" },
    { 217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices" },
    { 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { 219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid OpenGL or DirectX context" },
    { 220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution" },
    { 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found" },
    { 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain." },
    { 223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled" },
    { 224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "the provided execution affinity is not supported" },
    { 225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
      "the provided PTX contains unsupported call to cudaDeviceSynchronize" },
    { 226, "CUDA_ERROR_CONTAINED", "Invalid access of peer GPU memory over nvlink or a hardware error" },
    { 300, "CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid" },
    { 301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found" },
    { 302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found" },
    { 303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object initialization failed" },
    { 304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS" },
    { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
    { 402, "CUDA_ERROR_LOSSY_QUERY", "attempted introspection would be semantically lossy" },
    { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
    { 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated" },
    { 703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch uses incompatible texturing mode" },
    { 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled" },
    { 705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled" },
    { 708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process" },
    { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
    { 710, "CUDA_ERROR_ASSERT", "device-side assert triggered" },
    { 711, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted" },
    { 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
      "part or all of the requested memory range is already mapped" },
    { 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
      "pointer does not correspond to a registered memory region" },
    { 714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error" },
    { 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered" },
    { 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
    { 717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space" },
    { 718, "CUDA_ERROR_INVALID_PC", "invalid program counter" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch" },
    { 721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory not completely freed" },
    { 800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted" },
    { 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { 802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized" },
    { 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
      "system has unsupported display driver / cuda driver combination" },
    { 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
      "forward compatibility was attempted on non supported HW" },
    { 805, "CUDA_ERROR_MPS_CONNECTION_FAILED",
      "MPS client failed to connect to the MPS control daemon or the MPS server" },
    { 806, "CUDA_ERROR_MPS_RPC_FAILURE",
      "the remote procedural call between the MPS server and the MPS client failed" },
    { 807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "MPS server is not ready to accept new MPS client requests" },
    { 808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
      "the hardware resources required to create MPS client have been exhausted" },
    { 809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
      "the hardware resources required to support device connections have been exhausted" },
    { 810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS client has been terminated by the server" },
    { 811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "is not supported by device runtime" },
    { 812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "the device runtime and driver versions do not match" },
    { 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing" },
    { 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture" },
    { 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
      "operation would result in a merge of separate capture sequences" },
    { 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began" },
    { 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work" },
    { 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream" },
    { 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
      "operation would make the legacy stream depend on a capturing blocking stream" },
    { 907, "CUDA_ERROR_CAPTURED_EVENT",
      "operation not permitted on an event last recorded in a capturing stream" },
    { 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
      "attempt to terminate a thread-local capture sequence from another thread" },
    { 909, "CUDA_ERROR_TIMEOUT", "wait operation timed out" },
    { 910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
      "the graph update was not performed because it included changes which violated constraints specific "
          "to instantiated graph update" },
    { 911, "CUDA_ERROR_EXTERNAL_DEVICE", "an async error has occured in external entity outside of CUDA" },
    { 912, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
      "a kernel launch error has occurred due to cluster misconfiguration" },
    { 913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "the function handle is not loaded" },
    { 914, "CUDA_ERROR_INVALID_RESOURCE_TYPE",
      "one or more resources passed in are not valid resource types for the operation" },
    { 915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
      "one or more resources are insufficient or non-applicable for the operation" },
    { 916, "CUDA_ERROR_KEY_ROTATION", "an error happened during the key rotation sequence" },
    { 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static int error_text(int code, const char **out, bool name)
{
    if (!out) return CU_INVALID_VALUE;
    *out = NULL;
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
        if (errors[k].code == code) { *out = name ? errors[k].name : errors[k].text; return CU_OK; }
    return CU_INVALID_VALUE;
}

SIM_API cuGetErrorName(int code, const char **out)
{
    int failed = sim_enter(E_cuGetErrorName, false);
    return failed ? failed : leave(error_text(code, out, true));
}

SIM_API cuGetErrorString(int code, const char **out)
{
    int failed = sim_enter(E_cuGetErrorString, false);
    return failed ? failed : leave(error_text(code, out, false));
}

/* --- modules ---------------------------------------------------------------------------------- */

void *sim_alloc(sim_module *m, size_t bytes)
{
    enum { CHUNK = 1 << 16 };
    bytes = (bytes + 15) & ~(size_t)15;
    if (!m->memory || m->memory->size - m->memory->used < bytes) {
        size_t size = bytes > CHUNK ? bytes : CHUNK, head = (sizeof(sim_chunk) + 15) & ~(size_t)15;
        sim_chunk *c = malloc(head + size);
        if (!c) { m->out_of_memory = true; longjmp(*m->bail, 1); }
        c->size = head + size;
        c->used = head;
        c->next = m->memory;
        m->memory = c;
    }
    void *p = (char *)m->memory + m->memory->used;
    m->memory->used += bytes;
    memset(p, 0, bytes);
    return p;
}

static void log_text(sim_module *m, const char *text)
{
    size_t n = strlen(text);
    if (m->log_length + n + 1 > m->log_capacity) {
        size_t wanted = (m->log_length + n + 1) * 2;
        char *grown = realloc(m->log, wanted);
        if (!grown) return;
        m->log = grown;
        m->log_capacity = wanted;
    }
    memcpy(m->log + m->log_length, text, n + 1);
    m->log_length += n;
}

static void log_error(sim_module *m, uint32_t line, const char *severity, const char *format, va_list a)
{
    char text[700], full[800];
    vsnprintf(text, sizeof text, format, a);
    if (++m->error_count > 100) return;
    snprintf(full, sizeof full, "ptxas application ptx input, line %u; %s: %s\n", line, severity, text);
    log_text(m, full);
}

void sim_error(sim_module *m, uint32_t line, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    log_error(m, line, "error   ", format, a);
    va_end(a);
}

void sim_fatal(sim_module *m, uint32_t line, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    log_error(m, line, "fatal   ", format, a);
    va_end(a);
    m->fatal = true;
    longjmp(*m->bail, 1);
}

void sim_module_free(sim_module *m)
{
    if (!m) return;
    sim_handle_drop(m->handle);
    for (sim_function *f = m->functions; f; f = f->next) {
        if (f->kernel) { sim_handle_drop(f->kernel->handle); sim_handle_drop(f->kernel->kernel_handle); }
        sim_kernel_free(f->kernel);
        for (sim_symbol *y = f->variables; y; y = y->list_next)
            if ((y->space == SP_GLOBAL || y->space == SP_CONST) && y->address)
                (void)sim_memory_free(y->address, sim_variable_kind(y));
    }
    for (sim_symbol *y = m->variables; y; y = y->list_next)
        if ((y->space == SP_GLOBAL || y->space == SP_CONST) && y->address)
            (void)sim_memory_free(y->address, sim_variable_kind(y));
    while (m->memory) { sim_chunk *c = m->memory; m->memory = c->next; free(c); }
    free(m->text);
    free(m->log);
    free(m->lines);
    sim_places_free(m->places);
    free(m);
}

static int check_target(const sim_module *m)
{
    const sim_device *d = sim_the_device();
    if (m->target > d->sm) return CU_NO_BINARY;
    if (m->target_suffix == 'a' && m->target != d->sm) return CU_NO_BINARY;
    if (m->target_suffix == 'f' && m->target / 10 != d->sm / 10) return CU_NO_BINARY;
    return CU_OK;
}

/* Parses and lowers; errors leave through m->bail, then false. */
static bool compile(sim_module *m)
{
    jmp_buf bail;
    m->bail = &bail;
    if (setjmp(bail)) return false;
    sim_parse(m);
    sim_lower_module(m);
    return true;
}

static int load_text(sim_context *context, const char *text, size_t length, char *log, size_t log_size,
    bool part,
                     sim_module **out)
{
    sim_module *m = calloc(1, sizeof *m);
    int code = CU_INVALID_PTX;
    if (log && log_size) *log = 0;
    if (!m) return CU_OUT_OF_MEMORY;
    m->context = context;
    m->part = part;
    m->text = malloc(length + 8);                             /* + 8: the parser reads a few characters ahead */
    if (!m->text) { free(m); return CU_OUT_OF_MEMORY; }
    memcpy(m->text, text, length);
    memset(m->text + length, 0, 8);
    m->text_length = length;
    for (size_t k = 0; k < length; k++) m->line_count += text[k] == '\n';
    m->line_count++;
    m->lines = malloc(m->line_count * sizeof *m->lines);
    if (!m->lines) { sim_module_free(m); return CU_OUT_OF_MEMORY; }
    uint32_t n = 0;
    m->lines[n++] = m->text;
    for (size_t k = 0; k < length; k++) if (m->text[k] == '\n') m->lines[n++] = m->text + k + 1;
    if (!compile(m)) sim_lower_abandon(m);
    m->bail = NULL;
    if (m->out_of_memory) code = CU_OUT_OF_MEMORY;
    else if (m->version > 90 && m->version) code = CU_UNSUPPORTED_PTX_VERSION;
    else if (!m->error_count) {
        code = check_target(m);
        if (code)
            log_text(m, "ptxas fatal   : SM version specified by .target is not one that this device runs\n");
    } else log_text(m, "ptxas fatal   : Ptx assembly aborted due to errors\n");
    if (log && log_size && m->log) snprintf(log, log_size, "%s", m->log);
    if (code) { sim_module_free(m); return code; }
    *out = m;
    return CU_OK;
}

int sim_module_load(sim_context *context, const char *text, size_t length, char *log, size_t log_size,
                    sim_module **out)
{ return load_text(context, text, length, log, log_size, false, out); }

/* Checks one input of a link: what it needs from others may be missing. */
int sim_module_check(sim_context *context, const char *text, size_t length, char *log, size_t log_size)
{
    sim_module *m;
    int code = load_text(context, text, length, log, log_size, true, &m);
    if (!code) sim_module_free(m);
    return code;
}

uint64_t sim_text_checksum(const char *text, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)text[k]) * UINT64_C(1099511628211);
    return h;
}

/* The PTX text inside an image: plain text, a fat binary, or a "cubin" of cuLinkComplete. */
int sim_image_text(const void *image, const char **text, size_t *length)
{
    sim_cubin head;
    const unsigned char *p = image;
    if (!image) return CU_INVALID_VALUE;
    if (p[0] == 'P' && p[1] == 'T' && !strncmp((const char *)p, SIM_CUBIN_MAGIC, 8)) {
        memcpy(&head, image, sizeof head);
        *text = (const char *)image + sizeof head;
        *length = (size_t)head.length;
        if (head.version != 1 || head.length > 1u << 30 || sim_text_checksum(*text, *length) != head.check)
            return CU_INVALID_IMAGE;
        return head.sm > sim_the_device()->sm ? CU_NO_BINARY : CU_OK;
    }
    if (p[0] == 0x7f) return CU_INVALID_IMAGE;                /* ELF */
    if (sim_is_fatbinary(image)) return sim_fatbinary_text(image, text, length);
    *text = image;
    *length = strlen(image);
    return CU_OK;
}

/* --- options of the just-in-time compiler ------------------------------------------------------ */

enum { JIT_WALL_TIME = 2, JIT_INFO_LOG = 3, JIT_INFO_SIZE = 4, JIT_ERROR_LOG = 5, JIT_ERROR_SIZE = 6,
    JIT_TARGET = 9,
       JIT_VERBOSE = 12, JIT_OPTIONS = 35 };

/* The largest value of each option; -1: any. */
static const int jit_most[JIT_OPTIONS] = {
    [0] = 255, [1] = 1024, [2] = -1, [3] = -1, [4] = -1, [5] = -1, [6] = -1, [7] = 4, [8] = -1, [9] =
        1000, [10] = 1,
    [11] = 1, [12] = 1, [13] = 1, [14] = 2, [15] = -1, [16] = 1, [17] = -1, [18] = -1, [19] = -1, [20] =
        1, [21] = 1,
    [22] = 1, [23] = 1, [24] = 1, [25] = -1, [26] = -1, [27] = -1, [28] = -1, [29] = 1, [30] = 1, [31] = 32,
    [32] = 1024, [33] = 1, [34] = -1
};

int sim_jit_options(unsigned count, const int *options, void *const *values, sim_jit *out)
{
    memset(out, 0, sizeof *out);
    out->started = sim_now_ns();
    out->count = count;
    if (count && (!options || !values)) return CU_INVALID_VALUE;
    out->options = options;
    out->values = (void **)(uintptr_t)values;
    for (unsigned k = 0; k < count; k++) {
        uintptr_t v = (uintptr_t)values[k];
        if (options[k] < 0 || options[k] >= JIT_OPTIONS) return CU_INVALID_VALUE;
        if (jit_most[options[k]] >= 0 && (unsigned)v > (unsigned)jit_most[options[k]]) return
            CU_INVALID_VALUE;
        switch (options[k]) {
        case JIT_INFO_LOG:   out->logs[0] = (char *)v; break;
        case JIT_ERROR_LOG:  out->logs[1] = (char *)v; break;
        case JIT_INFO_SIZE:  out->sizes[0] = (unsigned)v; break;
        case JIT_ERROR_SIZE: out->sizes[1] = (unsigned)v; break;
        case JIT_TARGET:     out->target = (unsigned)v; break;
        case JIT_VERBOSE:    out->verbose = v != 0; break;
        default: break;
        }
    }
    for (int k = 0; k < 2; k++) if (out->logs[k] && out->sizes[k]) *out->logs[k] = 0;
    return out->target > sim_the_device()->sm ? CU_NO_BINARY : CU_OK;
}

static void verbose(const sim_module *m, sim_jit *j)
{
    size_t used = 0;
    if (!j->verbose || !j->logs[0] || !j->sizes[0]) return;
    for (const sim_function *f = m->functions; f; f = f->next) {
        if (!f->kernel || used + 1 >= j->sizes[0]) continue;
        int n = snprintf(j->logs[0] + used, j->sizes[0] - used,
                         "ptxas info    : Compiling entry function '%s' for 'sm_%u'\n"
                         "ptxas info    : Used %u registers, %u bytes smem, %u bytes cmem[0]\n", f->name,
                         sim_the_device()->sm, sim_register_estimate(f->kernel), f->kernel->static_shared,
                         f->param_bytes + 528);
        if (n > 0) used += (size_t)n;
    }
}

/* Writes back the lengths of the logs, and the time. */
void sim_jit_finish(sim_jit *j)
{
    for (unsigned k = 0; k < j->count; k++) {
        int which = j->options[k] == JIT_INFO_SIZE ? 0 : j->options[k] == JIT_ERROR_SIZE ? 1 : -1;
        if (which >= 0 && j->logs[which] && j->sizes[which]) {
            size_t n = strlen(j->logs[which]);
            j->values[k] = (void *)(uintptr_t)(n + (n != 0));
        }
        if (j->options[k] == JIT_WALL_TIME) {
            float ms = (float)((double)(sim_now_ns() - j->started) * 1e-6);
            memcpy(&j->values[k], &ms, sizeof ms);
        }
    }
}

int sim_load_image(sim_context *c, const void *image, sim_jit *j, sim_module **out)
{
    size_t length;
    const char *text;
    sim_module *m;
    int code = sim_image_text(image, &text, &length);
    if (!code) code = sim_module_load(c, text, length, j->logs[1], j->sizes[1], &m);
    if (!code && !(m->handle = sim_handle_new(H_MODULE, m))) { sim_module_free(m); code = CU_OUT_OF_MEMORY; }
    if (!code) verbose(m, j);
    sim_jit_finish(j);
    if (code) return code;
    m->next = c->modules;
    c->modules = m;
    *out = m;
    return CU_OK;
}

static int load_image(sim_context *c, sim_handle **out, const void *image, unsigned count, const int *options,
                      void *const *values)
{
    sim_jit j;
    sim_module *m;
    if (!out || !image) return CU_INVALID_VALUE;
    int code = sim_jit_options(count, options, values, &j);
    if (!code) code = sim_load_image(c, image, &j, &m);
    if (!code) *out = m->handle;
    return code;
}

SIM_API cuModuleLoadData(sim_handle **out, const void *image)
{ ENTER(cuModuleLoadData); USABLE(); return leave(load_image(c, out, image, 0, NULL, NULL)); }

SIM_API cuModuleLoadDataEx(sim_handle **out, const void *image, unsigned count, int *options, void **values)
{ ENTER(cuModuleLoadDataEx); USABLE(); return leave(load_image(c, out, image, count, options, values)); }

SIM_API cuModuleLoadFatBinary(sim_handle **out, const void *image)
{
    ENTER(cuModuleLoadFatBinary);
    USABLE();
    return leave(load_image(c, out, image, 0, NULL, NULL));
}

char *sim_read_file(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    if (!f) return NULL;
    if (!fseek(f, 0, SEEK_END)) {
        long size = ftell(f);
        rewind(f);
        if (size >= 0 && size < 1L << 30 && (text = malloc((size_t)size + 8)) != NULL) {
            *length = fread(text, 1, (size_t)size, f);
            memset(text + *length, 0, 8);
        }
    }
    fclose(f);
    return text;
}

SIM_API cuModuleLoad(sim_handle **out, const char *path)
{
    ENTER(cuModuleLoad);
    USABLE();
    size_t length;
    if (!out || !path) return leave(CU_INVALID_VALUE);
    char *text = sim_read_file(path, &length);
    if (!text) return leave(301);
    int code = load_image(c, out, text, 0, NULL, NULL);
    free(text);
    return leave(code);
}

sim_module *sim_module_of(sim_context *c, const void *handle)
{
    sim_module *m = sim_handle_get(H_MODULE, handle);
    return m && m->context == c ? m : NULL;
}

void sim_module_unload(sim_context *c, sim_module *m)
{
    (void)sim_synchronise(c);
    for (sim_module **at = &c->modules; *at; at = &(*at)->next) if (*at == m) { *at = m->next; break; }
    sim_module_free(m);
}

SIM_API cuModuleUnload(void *handle)
{
    ENTER(cuModuleUnload);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    sim_module *m = sim_module_of(c, handle);
    if (!m || m->library) return leave(CU_INVALID_HANDLE);
    sim_module_unload(c, m);
    return leave(CU_OK);
}

SIM_API cuModuleGetLoadingMode(int *out)
{
    int failed = sim_enter(E_cuModuleGetLoadingMode, false);
    if (failed) return failed;
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 1;
    return leave(CU_OK);
}

sim_handle *sim_function_handle(sim_kernel *k)
{
    if (!k->handle) k->handle = sim_handle_new(H_FUNCTION, k);
    return k->handle;
}

int sim_module_function(sim_module *m, const char *name, sim_kernel **out)
{
    for (sim_function *f = m->functions; f; f = f->next)
        if (f->is_entry && f->kernel && !strcmp(f->name, name)) { *out = f->kernel; return CU_OK; }
    return CU_NOT_FOUND;
}

SIM_API cuModuleGetFunction(void **out, void *handle, const char *name)
{
    ENTER(cuModuleGetFunction);
    USABLE();
    sim_module *m = sim_module_of(c, handle);
    sim_kernel *k;
    if (!out || !name) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    int code = sim_module_function(m, name, &k);
    if (code) return leave(code);
    *out = sim_function_handle(k);
    return leave(*out ? CU_OK : CU_OUT_OF_MEMORY);
}

/* Finds a global or constant variable; `managed`: only managed ones. */
int sim_module_global(const sim_module *m, const char *name, bool managed, uint64_t *address, size_t *size)
{
    for (const sim_symbol *y = m->variables; y; y = y->list_next) {
        if ((y->space != SP_GLOBAL && y->space != SP_CONST) || strcmp(y->name, name)) continue;
        if (managed && !y->managed) continue;
        if (address) *address = y->address;
        if (size) *size = (size_t)y->size;
        return CU_OK;
    }
    return CU_NOT_FOUND;
}

SIM_API cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *handle, const char *name)
{
    ENTER(cuModuleGetGlobal_v2);
    USABLE();
    const sim_module *m = sim_module_of(c, handle);
    if (!name) return leave(CU_INVALID_VALUE);
    return leave(m ? sim_module_global(m, name, false, address, size) : CU_INVALID_HANDLE);
}

/* The kernel of a function handle or a library's kernel handle: the driver takes either. */
sim_kernel *sim_kernel_of(sim_context *c, const void *handle)
{
    sim_kernel *k = sim_handle_get(H_FUNCTION, handle);
    if (!k) k = sim_handle_get(H_KERNEL, handle);
    return k && k->module->context == c ? k : NULL;
}

/* --- launches --------------------------------------------------------------------------------- */

static bool copy_arguments(const sim_kernel *k, void *const *params, void *const *extra, uint8_t *buffer)
{
    uint32_t bytes = k->function->param_bytes;
    if (params && extra) return false;
    if (extra) {
        const void *from = NULL;
        const size_t *size = NULL;
        for (int n = 0; extra[n] != NULL && n < 16; n += 2) {
            if ((uintptr_t)extra[n] == 1) from = extra[n + 1];
            else if ((uintptr_t)extra[n] == 2) size = extra[n + 1];
            else return false;
        }
        if (!from || !size || *size < bytes) return bytes == 0;
        memcpy(buffer, from, bytes);
        return true;
    }
    for (const sim_symbol *y = k->function->params; y; y = y->list_next, params++) {
        if (!params || !*params) return false;
        memcpy(buffer + y->address, *params, (size_t)y->size);
    }
    return true;
}

static void fill_launch_constants(const sim_launch *l)
{
    const sim_kernel *k = l->kernel;
    for (uint32_t n = 0; n < k->param_fill_count; n++) {
        const sim_param_fill *p = &k->params[n];
        uint64_t v = 0;
        memcpy(&v, l->params + p->offset, p->size);
        if (p->sign && p->size < 8 && v >> (p->size * 8 - 1) & 1) v |= UINT64_MAX << p->size * 8;
        uint32_t *at = k->const_bank + (size_t)p->slot * SIM_LANES;
        for (uint32_t lane = 0; lane < SIM_LANES; lane++)
            if (p->width == 2) ((uint64_t *)(void *)at)[lane] = v; else at[lane] = (uint32_t)v;
    }
    for (uint32_t n = 0; n < k->launch_special_count; n++) {
        uint64_t v = 0;
        bool wide = false;
        switch (k->launch_specials[n].special) {
        case SR_NTID_X: v = l->block[0]; break;
        case SR_NTID_Y: v = l->block[1]; break;
        case SR_NTID_Z: v = l->block[2]; break;
        case SR_NCTAID_X: v = l->grid[0]; break;
        case SR_NCTAID_Y: v = l->grid[1]; break;
        case SR_NCTAID_Z: v = l->grid[2]; break;
        case SR_NCLUSTERID_X: v = l->grid[0] / l->cluster[0]; break;
        case SR_NCLUSTERID_Y: v = l->grid[1] / l->cluster[1]; break;
        case SR_NCLUSTERID_Z: v = l->grid[2] / l->cluster[2]; break;
        case SR_CLUSTER_NCTAID_X: v = l->cluster[0]; break;
        case SR_CLUSTER_NCTAID_Y: v = l->cluster[1]; break;
        case SR_CLUSTER_NCTAID_Z: v = l->cluster[2]; break;
        case SR_CLUSTER_NCTARANK: v = l->cluster_size; break;
        case SR_EXPLICIT_CLUSTER: v = l->explicit_cluster; break;
        case SR_NWARPID: v = sim_the_device()->threads_per_sm / 32; break;
        case SR_NSMID: v = sim_the_device()->sm_count; break;
        case SR_GRIDID: v = l->grid_id; wide = true; break;
        case SR_ZERO64: wide = true; break;
        case SR_TOTAL_SMEM: case SR_AGGR_SMEM: v = l->shared_bytes; break;
        case SR_DYNAMIC_SMEM: v = l->dynamic_shared; break;
        case SR_ONE: v = 1; break;
        case SR_RESERVED_END: case SR_RESERVED_CAP: v = k->shared_base; break;
        case SR_RESERVED_OFFSET: v = k->shared_base + l->reserved_at; break;
        case SR_ENVREG + 1: v = l->workspace >> 32; break;
        case SR_ENVREG + 2: v = (uint32_t)l->workspace; break;
        default: break;
        }
        uint32_t *at = k->const_bank + (size_t)k->launch_specials[n].slot * SIM_LANES;
        for (uint32_t lane = 0; lane < SIM_LANES; lane++)
            if (wide) ((uint64_t *)(void *)at)[lane] = v; else at[lane] = (uint32_t)v;
    }
}

/* Checks everything that a chip checks at the call, copies the parameters and makes the work. */
int sim_launch_new(sim_context *c, const sim_launch_request *r, sim_work **out)
{
    const uint32_t *grid = r->grid, *block = r->block;
    sim_kernel *k = sim_kernel_of(c, r->function);
    const sim_device *d = sim_the_device();
    if (!k) return CU_INVALID_HANDLE;
    const sim_function *f = k->function;
    for (int n = 0; n < 3; n++) if (!grid[n] || !block[n]) return CU_INVALID_VALUE;
    if (grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 || block[0] > 1024 || block[1] > 1024
        || block[2] > 64)
        return CU_INVALID_VALUE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > 1024 || threads > sim_max_threads(k)) return CU_INVALID_VALUE;
    if (f->reqntid_count
        && (block[0] != f->reqntid[0] || block[1] != f->reqntid[1] || block[2] != f->reqntid[2]))
        return CU_INVALID_VALUE;
    uint64_t shared = (uint64_t)k->static_shared + r->dynamic;
    if (r->dynamic > sim_dynamic_limit(k) || shared > d->shared_optin) return CU_INVALID_VALUE;
    if (f->param_bytes > (d->sm >= 70 ? 32764u : 4096u)) return CU_INVALID_VALUE;
    uint32_t resident = sim_occupancy(k, (uint32_t)threads, r->dynamic) * d->sm_count;
    if (!resident) return CU_LAUNCH_OUT_OF_RESOURCES;
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (r->cooperative && blocks > resident) return 720;
    sim_work *w = sim_work_new(W_KERNEL, f->param_bytes);
    if (!w) return CU_OUT_OF_MEMORY;
    sim_launch *l = &w->u.launch;
    l->params = (uint8_t *)(w + 1);
    if (!copy_arguments(k, r->params, r->extra, l->params)) { sim_work_free(w); return CU_INVALID_VALUE; }
    w->function = (sim_handle *)(uintptr_t)r->function;
    w->programmatic = r->programmatic;
    l->kernel = k;
    l->context = c;
    memcpy(l->grid, grid, sizeof l->grid);
    memcpy(l->block, block, sizeof l->block);
    l->threads = (uint32_t)threads;
    l->warps = (l->threads + 31) / 32;
    l->dynamic_shared = r->dynamic;
    l->shared_bytes = (uint32_t)shared;
    l->param_bytes = f->param_bytes;
    l->block_count = blocks;
    l->resident_limit = resident > 4096 ? 4096 : resident;
    l->cooperative = r->cooperative;
    int refused = sim_cluster_shape(k, l, grid, r->cluster);
    if (refused) { sim_work_free(w); return refused; }
    *out = w;
    return CU_OK;
}

int sim_launch_submit(sim_context *c, const sim_launch_request *r)
{
    sim_work *w;
    if (!sim_kernel_of(c, r->function)) return CU_INVALID_HANDLE;
    sim_stream *s = sim_stream_of(c, r->stream);
    if (!s) return CU_INVALID_HANDLE;
    int code = sim_launch_new(c, r, &w);
    return code ? code : sim_submit(s, w);
}

/* Runs a queued launch. */
int sim_launch_work(sim_work *w)
{
    static uint64_t serial;
    sim_launch *l = &w->u.launch;
    if (!sim_launch_prepare(l, l->cooperative)) return CU_OUT_OF_MEMORY;
    l->grid_id = l->launch_serial = ++serial;
    fill_launch_constants(l);
    if (sim_order_is_checked(w)) l->touches = sim_touches_new();
    sim_grid_begin(w, l);
    int code = sim_launch_run(l);
    sim_grid_end(w, l);
    sim_order_kernel(w, l);
    return code;
}

/* Makes and submits a launch from separate arguments. */
int sim_launch_kernel(sim_context *c, const void *function, const uint32_t grid[3], const uint32_t block[3],
                      uint32_t dynamic, const void *stream, void *const *params, void *const *extra,
                      bool cooperative, const uint32_t *cluster)
{
    const sim_launch_request r = { .function = function, .grid = { grid[0], grid[1], grid[2] },
                                   .block = { block[0], block[1], block[2] }, .dynamic = dynamic, .stream
                                       = stream,
                                   .params = params, .extra = extra, .cooperative = cooperative, .cluster
                                       = cluster };
    return sim_launch_submit(c, &r);
}

SIM_API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
    ENTER(cuLaunchKernel);
    USABLE();
    const uint32_t grid[3] = { gx, gy, gz }, block[3] = { bx, by, bz };
    return leave(sim_launch_kernel(c, function, grid, block, shared, stream, params, extra, false, NULL));
}

SIM_API cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                  unsigned by, unsigned bz, unsigned shared, void *stream, void **params)
{
    ENTER(cuLaunchCooperativeKernel);
    USABLE();
    const uint32_t grid[3] = { gx, gy, gz }, block[3] = { bx, by, bz };
    return leave(sim_launch_kernel(c, function, grid, block, shared, stream, params, NULL, true, NULL));
}

/* --- options ---------------------------------------------------------------------------------- */

void sim_driver_set(const char *option, int value)
{
    static const struct { const char *name; int *at;
    } options[] = { { "lag", &sim_driver_option.lag },
                    { "host-races", &sim_driver_option.host_races },
                    { "stream-races", &sim_driver_option.stream_races },
                    { "leaks", &sim_driver_option.leaks },
                    { "stale-handles", &sim_driver_option.stale_handles } };
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        if (!strcmp(options[k].name, option)) *options[k].at = value;
}

/* --- looking entry points up ------------------------------------------------------------------ */

/* Finds an entry's address through the loader, so that no table of function pointers is needed. */
static void *entry_address(int k)
{
    static void *library;
    Dl_info self;
    if (!library && dladdr((const void *)entry_names, &self))
        library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, entry_names[k]) : NULL;
}


/* Functions that changed with a version of CUDA, newest first; the others are their _v2 if they have one. */
static const struct { const char *name; int version; const char *full;
} versions[] = {
    { "cuCtxCreate", 12050, "cuCtxCreate_v4" }, { "cuCtxCreate", 11040, "cuCtxCreate_v3" },
    { "cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2" }, { "cuDeviceGetUuid", 0, "cuDeviceGetUuid" },
    { "cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2" }, { "cuMemPrefetchAsync", 0,
        "cuMemPrefetchAsync" },
    { "cuMemAdvise", 12020, "cuMemAdvise_v2" }, { "cuMemAdvise", 0, "cuMemAdvise" },
    { "cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2" }, { "cuStreamBeginCapture", 0,
        "cuStreamBeginCapture" },
    { "cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3" },
    { "cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2" },
    { "cuStreamUpdateCaptureDependencies", 0, "cuStreamUpdateCaptureDependencies" },
    { "cuEventElapsedTime", 12080, "cuEventElapsedTime_v2" }, { "cuEventElapsedTime", 0,
        "cuEventElapsedTime" },
    { "cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2" }, { "cuGraphAddKernelNode", 0,
        "cuGraphAddKernelNode" },
    { "cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2" },
    { "cuGraphKernelNodeGetParams", 0, "cuGraphKernelNodeGetParams" },
    { "cuGraphKernelNodeSetParams", 12000, "cuGraphKernelNodeSetParams_v2" },
    { "cuGraphKernelNodeSetParams", 0, "cuGraphKernelNodeSetParams" },
    { "cuGraphExecKernelNodeSetParams", 12000, "cuGraphExecKernelNodeSetParams_v2" },
    { "cuGraphExecKernelNodeSetParams", 0, "cuGraphExecKernelNodeSetParams" },
    { "cuGraphAddNode", 12030, "cuGraphAddNode_v2" }, { "cuGraphAddNode", 0, "cuGraphAddNode" },
    { "cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags" }, { "cuGraphInstantiate", 0,
        "cuGraphInstantiate_v2" },
    { "cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2" }, { "cuGraphExecUpdate", 0, "cuGraphExecUpdate" },
    { "cuGraphGetEdges", 12030, "cuGraphGetEdges_v2" }, { "cuGraphGetEdges", 0, "cuGraphGetEdges" },
    { "cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2" },
    { "cuGraphNodeGetDependencies", 0, "cuGraphNodeGetDependencies" },
    { "cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v2" },
    { "cuGraphNodeGetDependentNodes", 0, "cuGraphNodeGetDependentNodes" },
    { "cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v2" },
    { "cuGraphAddDependencies", 0, "cuGraphAddDependencies" },
    { "cuGraphRemoveDependencies", 12030, "cuGraphRemoveDependencies_v2" },
    { "cuGraphRemoveDependencies", 0, "cuGraphRemoveDependencies" },
};

static void *find_entry(const char *name)
{
    for (int k = 0; k < E_COUNT; k++) if (!strcmp(entry_names[k], name)) return entry_address(k);
    return NULL;
}

/* With PER_THREAD_STREAM the variants that use the thread's default stream come first. */
enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };

static int look_up(const char *name, void **out, int version, uint64_t flags)
{
    const char *full = NULL;
    char text[112];
    if (!name || !out || strlen(name) > 90 || flags > PER_THREAD_STREAM) return CU_INVALID_VALUE;
    *out = NULL;
    for (size_t k = 0; k < sizeof versions / sizeof *versions && !full; k++)
        if (!strcmp(versions[k].name, name) && version >= versions[k].version) full = versions[k].full;
    for (int suffix = flags == PER_THREAD_STREAM ? 0 : 2; suffix < 3 && !*out; suffix++)
        for (int v = full ? 0 : 2; v >= (full ? 0 : 1) && !*out; v--) {
            static const char *const suffixes[] = { "_ptsz", "_ptds", "" };
            snprintf(text, sizeof text, "%s%s%s", full ? full : name, v == 2 ? "_v2" : "", suffixes[suffix]);
            *out = find_entry(text);
        }
    return *out ? CU_OK : CU_NOT_FOUND;
}

SIM_API cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    int failed = sim_enter(E_cuGetProcAddress_v2, false);
    if (failed) return failed;
    int code = look_up(name, out, version, flags);
    if (status) *status = code == CU_NOT_FOUND;
    return leave(code);
}

SIM_API cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    int failed = sim_enter(E_cuGetProcAddress, false);
    return failed ? failed : leave(look_up(name, out, version, flags));
}
