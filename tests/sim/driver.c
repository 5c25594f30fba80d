/* driver.c - the driver's front door: calls counted and failed on demand, the device, errors, modules,
 * linking, launches. */
#include "driver.h"
#include <dlfcn.h>
#include <stdarg.h>

/* --- every call ------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ullong calls[E_COUNT];
static atomic_uint fail_in[E_COUNT];
static atomic_int fail_code[E_COUNT];
static bool initialised;

static const char *const entry_names[E_COUNT] = {
#define X(name) [E_##name] = #name,
    SIM_ENTRIES(X)
#undef X
};

static int entered;                    /* under the lock */

int sim_enter(int entry, bool needs_init)
{
    atomic_fetch_add_explicit(&calls[entry], 1, memory_order_relaxed);
    if (SIM_UNLIKELY(atomic_load_explicit(&fail_in[entry], memory_order_relaxed))
        && atomic_fetch_sub(&fail_in[entry], 1) == 1) return atomic_load(&fail_code[entry]);
    pthread_mutex_lock(&lock);
    entered = entry;
    if (needs_init && !initialised) return sim_leave(CU_NOT_INITIALIZED);
    return CU_OK;
}

/* Where the host waits for a device, what kernels printed comes out. */
static bool synchronises(int entry)
{
    static const short those[] = {
        E_cuCtxSynchronize, E_cuStreamSynchronize, E_cuEventSynchronize, E_cuMemcpyHtoD_v2, E_cuMemcpyDtoH_v2,
        E_cuMemcpyDtoD_v2, E_cuMemcpy, E_cuModuleLoadData, E_cuModuleLoadDataEx, E_cuModuleUnload,
        E_cuCtxDestroy_v2, E_cuDevicePrimaryCtxRelease_v2, E_cuDevicePrimaryCtxReset_v2 };
    for (size_t k = 0; k < sizeof those / sizeof *those; k++) if (those[k] == entry) return true;
    return false;
}

int sim_leave(int code)
{
    if (synchronises(entered)) sim_output_flush(true);
    pthread_mutex_unlock(&lock);
    return code;
}

static int entry_of(const char *name)
{
    for (int k = 0; name && k < E_COUNT; k++) if (!strcmp(entry_names[k], name)) return k;
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

/* --- the device ------------------------------------------------------------------------------- */

SIM_API cuInit(unsigned flags)
{
    int failed = sim_enter(E_cuInit, false);
    if (failed) return failed;
    if (flags) return leave(CU_INVALID_VALUE);
    initialised = true;
    (void)sim_the_device();
    return leave(CU_OK);
}

SIM_API cuDriverGetVersion(int *out)
{
    int failed = sim_enter(E_cuDriverGetVersion, false);
    if (failed) return failed;
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 13000;
    return leave(CU_OK);
}

SIM_API cuDeviceGetCount(int *out)
{
    ENTER(cuDeviceGetCount);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 1;
    return leave(CU_OK);
}

SIM_API cuDeviceGet(int *out, int ordinal)
{
    ENTER(cuDeviceGet);
    if (!out) return leave(CU_INVALID_VALUE);
    if (ordinal) return leave(CU_INVALID_DEVICE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuDeviceGetName(char *out, int size, int device)
{
    ENTER(cuDeviceGetName);
    if (!out || size <= 0) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    snprintf(out, (size_t)size, "%s", sim_the_device()->text);
    return leave(CU_OK);
}

SIM_API cuDeviceGetUuid_v2(unsigned char out[16], int device)
{
    ENTER(cuDeviceGetUuid_v2);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    memcpy(out, "ptxsim-cpu-drive", 16);
    out[15] = (unsigned char)sim_the_device()->sm;
    return leave(CU_OK);
}

SIM_API cuDeviceTotalMem_v2(size_t *out, int device)
{
    ENTER(cuDeviceTotalMem_v2);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    *out = (size_t)sim_device_memory();
    return leave(CU_OK);
}

SIM_API cuDeviceGetAttribute(int *out, int attribute, int device)
{
    ENTER(cuDeviceGetAttribute);
    const sim_device *d = sim_the_device();
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    const struct { int attribute; long value;
    } table[] = { { 1, 1024 },
                  { 2, 1024 },
                  { 3, 1024 },
                  { 4, 64 },
                  { 5, 2147483647 },
                  { 6, 65535 },
                  { 7, 65535 },
                  { 8, 49152 },
                  { 9, 65536 },
                  { 10, 32 },
                  { 11, 2147483647 },
                  { 12, 65536 },
                  { 13, d->clock_khz },
                  { 14, 512 },
                  { 15, 1 },
                  { 16, d->sm_count },
                  { 17, 0 },
                  { 18, 0 },
                  { 19, 1 },
                  { 20, 0 },
                  { 30, 512 },
                  { 31, 1 },
                  { 32, 0 },
                  { 33, 1 },
                  { 34, 0 },
                  { 35, 0 },
                  { 36, d->memory_clock_khz },
                  { 37, d->bus_bits },
                  { 38, d->l2_bytes },
                  { 39, d->threads_per_sm },
                  { 40, 2 },
                  { 41, 1 },
                  { 50, 0 },
                  { 75, d->sm / 10 },
                  { 76, d->sm % 10 },
                  { 78, 1 },
                  { 79, 1 },
                  { 80, 1 },
                  { 81, d->shared_per_sm },
                  { 82, 65536 },
                  { 83, 0 },
                  { 84, 0 },
                  { 85, 0 },
                  { 86, 0 },
                  { 87, 64 },
                  { 88, 0 },
                  { 89, 0 },
                  { 90, 1 },
                  { 91, 0 },
                  { 92, 0 },
                  { 93, 0 },
                  { 94, 0 },
                  { 95, 1 },
                  { 96, 0 },
                  { 97, d->shared_optin },
                  { 98, 0 },
                  { 99, 0 },
                  { 100, 0 },
                  { 101, 0 },
                  { 102, 0 },
                  { 103, 0 },
                  { 106, d->blocks_per_sm },
                  { 108, 0 },
                  { 109, 0 },
                  { 110, 0 },
                  { 111, d->sm >= 80 ? 1024 : 0 },
                  { 112, 0 },
                  { 113, 0 },
                  { 114, 0 },
                  { 115, 0 },
                  { 116, 0 },
                  { 120, d->sm >= 90 },               /* clusters */
                  { 121, 0 },
                  { 127, d->sm >= 90 } };             /* tensor maps */
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].attribute == attribute) { *out = (int)table[k].value; return leave(CU_OK); }
    if (attribute < 1 || attribute > 150) return leave(CU_INVALID_VALUE);
    *out = 0;
    return leave(CU_OK);
}

static const struct { int code; const char *name, *text;
} errors[] = {
    { 0, "CUDA_SUCCESS", "no error" },
    { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { 4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
    { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
    { 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
    { 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found" },
    { 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
      "the provided PTX was compiled with an unsupported toolchain." },
    { 300, "CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid" },
    { 301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found" },
    { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
    { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
    { 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated" },
    { 708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process" },
    { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
    { 710, "CUDA_ERROR_ASSERT", "device-side assert triggered" },
    { 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered" },
    { 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch" },
    { 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
    { 999, "CUDA_ERROR_UNKNOWN", "unknown error" }
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
    for (sim_function *f = m->functions; f; f = f->next) {
        sim_kernel_free(f->kernel);
        for (sim_symbol *y = f->variables; y; y = y->list_next)
            if ((y->space == SP_GLOBAL || y->space == SP_CONST) && y->address)
                (void)sim_memory_free(y->address, y->space == SP_CONST ? MEM_CONST : MEM_MODULE);
    }
    for (sim_symbol *y = m->variables; y; y = y->list_next)
        if ((y->space == SP_GLOBAL || y->space == SP_CONST) && y->address)
            (void)sim_memory_free(y->address, y->space == SP_CONST ? MEM_CONST : MEM_MODULE);
    while (m->memory) { sim_chunk *c = m->memory; m->memory = c->next; free(c); }
    free(m->text);
    free(m->log);
    free(m->lines);
    m->magic = 0;
    free(m);
}

static int runs_here(const sim_module *m)
{
    const sim_device *d = sim_the_device();
    if (m->target > d->sm) return CU_NO_BINARY;
    if (m->target_suffix == 'a' && m->target != d->sm) return CU_NO_BINARY;
    if (m->target_suffix == 'f' && m->target / 10 != d->sm / 10) return CU_NO_BINARY;
    return CU_OK;
}

/* The parser and the lowering leave through m->bail; false when they did. */
static bool compile(sim_module *m)
{
    jmp_buf bail;
    m->bail = &bail;
    if (setjmp(bail)) return false;
    sim_parse(m);
    sim_lower_module(m);
    return true;
}

int sim_module_load(sim_context *context, const char *text, size_t length, char *log, size_t log_size,
                    sim_module **out)
{
    sim_module *m = calloc(1, sizeof *m);
    int code = CU_INVALID_PTX;
    if (log && log_size) *log = 0;
    if (!m) return CU_OUT_OF_MEMORY;
    m->context = context;
    m->text = malloc(length + 8);                             /* the parser looks a few characters ahead */
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
        code = runs_here(m);
        if (code)
            log_text(m, "ptxas fatal   : SM version specified by .target is not one that this device runs\n");
    } else log_text(m, "ptxas fatal   : Ptx assembly aborted due to errors\n");
    if (log && log_size && m->log) snprintf(log, log_size, "%s", m->log);
    if (code) { sim_module_free(m); return code; }
    m->magic = 0x4d4f4431;
    *out = m;
    return CU_OK;
}

static uint64_t checksum(const char *text, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)text[k]) * UINT64_C(1099511628211);
    return h;
}

/* The PTX text inside an image: plain text, or a "cubin" of cuLinkComplete. */
static int image_text(const void *image, const char **text, size_t *length)
{
    sim_cubin head;
    const unsigned char *p = image;
    if (!image) return CU_INVALID_VALUE;
    if (p[0] == 'P' && p[1] == 'T' && !strncmp((const char *)p, SIM_CUBIN_MAGIC, 8)) {
        memcpy(&head, image, sizeof head);
        *text = (const char *)image + sizeof head;
        *length = (size_t)head.length;
        if (head.version != 1 || head.length > 1u << 30 || checksum(*text, *length) != head.check)
            return CU_INVALID_IMAGE;
        return head.sm > sim_the_device()->sm ? CU_NO_BINARY : CU_OK;
    }
    if (p[0] == 0x7f || (p[0] == 0x50 && p[1] == 0xed && p[2] == 0x55))
        return CU_INVALID_IMAGE; /* ELF, fat binary */
    *text = image;
    *length = strlen(image);
    return CU_OK;
}

static int load(sim_context *c, sim_module **out, const void *image, unsigned count, const int *options,
                void *const *values)
{
    char *logs[2] = { NULL, NULL };
    size_t sizes[2] = { 0, 0 }, length;
    unsigned size_option[2] = { count, count };
    const char *text;
    sim_module *m;
    if (!out || !image || (count && (!options || !values))) return CU_INVALID_VALUE;
    for (unsigned k = 0; k < count; k++) {
        if (options[k] == 3) logs[0] = (char *)values[k];
        if (options[k] == 5) logs[1] = (char *)values[k];
        if (options[k] == 4) { sizes[0] = (unsigned)(uintptr_t)values[k]; size_option[0] = k; }
        if (options[k] == 6) { sizes[1] = (unsigned)(uintptr_t)values[k]; size_option[1] = k; }
    }
    for (int k = 0; k < 2; k++) if (logs[k] && sizes[k]) *logs[k] = 0;
    int code = image_text(image, &text, &length);
    if (!code) code = sim_module_load(c, text, length, logs[1], sizes[1], &m);
    for (int k = 0; k < 2; k++)
        if (size_option[k] < count && logs[k] && sizes[k])
            ((void **)(uintptr_t)values)[size_option[k]] = (void *)(uintptr_t)(strlen(logs[k])
                                                                               + (*logs[k] != 0));
    if (code) return code;
    m->next = c->modules;
    c->modules = m;
    *out = m;
    return CU_OK;
}

#define USABLE() sim_context *c; int bad_ = sim_usable(&c); if (bad_) return leave(bad_)

SIM_API cuModuleLoadData(sim_module **out, const void *image)
{ ENTER(cuModuleLoadData); USABLE(); return leave(load(c, out, image, 0, NULL, NULL)); }

SIM_API cuModuleLoadDataEx(sim_module **out, const void *image, unsigned count, int *options, void **values)
{ ENTER(cuModuleLoadDataEx); USABLE(); return leave(load(c, out, image, count, options, values)); }

static sim_module *module_of(sim_context *c, const void *handle)
{
    for (sim_module *m = c->modules; m; m = m->next) if (m == handle) return m;
    return NULL;
}

SIM_API cuModuleUnload(sim_module *handle)
{
    ENTER(cuModuleUnload);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    for (sim_module **at = &c->modules; *at; at = &(*at)->next)
        if (*at == handle) { *at = handle->next; sim_module_free(handle); return leave(CU_OK); }
    return leave(CU_INVALID_HANDLE);
}

SIM_API cuModuleGetFunction(sim_kernel **out, sim_module *handle, const char *name)
{
    ENTER(cuModuleGetFunction);
    USABLE();
    sim_module *m = module_of(c, handle);
    if (!out || !name) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    for (sim_function *f = m->functions; f; f = f->next)
        if (f->is_entry && f->kernel && !strcmp(f->name, name)) { *out = f->kernel; return leave(CU_OK); }
    return leave(CU_NOT_FOUND);
}

SIM_API cuModuleGetGlobal_v2(uint64_t *address, size_t *size, sim_module *handle, const char *name)
{
    ENTER(cuModuleGetGlobal_v2);
    USABLE();
    sim_module *m = module_of(c, handle);
    if (!name) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    for (sim_symbol *y = m->variables; y; y = y->list_next) {
        if ((y->space != SP_GLOBAL && y->space != SP_CONST) || strcmp(y->name, name)) continue;
        if (address) *address = y->address;
        if (size) *size = (size_t)y->size;
        return leave(CU_OK);
    }
    return leave(CU_NOT_FOUND);
}

sim_kernel *sim_kernel_of(sim_context *c, const void *handle)
{
    for (sim_module *m = c->modules; m; m = m->next)
        for (sim_function *f = m->functions; f; f = f->next)
            if (f->is_entry && f->kernel == handle) return f->kernel;
    return NULL;
}

static uint32_t max_threads(const sim_kernel *k)
{
    const sim_function *f = k->function;
    const uint32_t *n = f->reqntid_count ? f->reqntid : f->maxntid_count ? f->maxntid : NULL;
    uint64_t total = n ? (uint64_t)n[0] * n[1] * n[2] : 1024;
    return total > 1024 ? 1024 : (uint32_t)total;
}

static uint32_t register_estimate(const sim_kernel *k)
{
    uint32_t n = k->reg_slots - k->special_slots + 8;
    n = n > 255 ? 255 : n < 16 ? 16 : (n + 7) / 8 * 8;
    if (k->function->maxnreg && k->function->maxnreg < n && k->function->maxnreg >= 16)
        n = k->function->maxnreg;
    while (n > 32
           && ((max_threads(k) == 1024 && !k->function->maxntid_count && !k->function->reqntid_count
                    ? 256
                    : max_threads(k))
                   * n
               > 65536))
        n -= 8;
    return n > 64 && !k->function->maxntid_count ? 64 : n;
}

SIM_API cuFuncGetAttribute(int *out, int attribute, void *function)
{
    ENTER(cuFuncGetAttribute);
    USABLE();
    const sim_kernel *k = sim_kernel_of(c, function);
    if (!out) return leave(CU_INVALID_VALUE);
    if (!k) return leave(CU_INVALID_HANDLE);
    switch (attribute) {
    case 0: *out = (int)max_threads(k); break;
    case 1: *out = (int)k->static_shared; break;
    case 2: *out = 0; break;
    case 3: *out = (int)k->local_fixed; break;
    case 4: *out = (int)register_estimate(k); break;
    case 5: *out = (int)k->module->target; break;
    case 6: *out = (int)sim_the_device()->sm; break;
    case 7: *out = 0; break;
    case 8: *out = (int)(k->max_dynamic_shared ? k->max_dynamic_shared : 49152 - k->static_shared); break;
    case 9: *out = -1; break;
    case 10: *out = k->function->explicitcluster && !k->function->reqnctapercluster[0]; break;
    case 11: case 12: case 13: *out = (int)k->function->reqnctapercluster[attribute - 11]; break;
    case 14: *out = k->non_portable_cluster; break;
    default: return leave(attribute >= 10 && attribute < 16 ? (*out = 0, CU_OK) : CU_INVALID_VALUE);
    }
    return leave(CU_OK);
}

SIM_API cuFuncSetAttribute(void *function, int attribute, int value)
{
    ENTER(cuFuncSetAttribute);
    USABLE();
    sim_kernel *k = sim_kernel_of(c, function);
    if (!k) return leave(CU_INVALID_HANDLE);
    if (attribute == 9) return leave(value < -1 || value > 100 ? CU_INVALID_VALUE : CU_OK);
    if (attribute == 14) { k->non_portable_cluster = value != 0; return leave(CU_OK); }
    if (attribute == 15) return leave(value < 0 || value > 2 ? CU_INVALID_VALUE : CU_OK);
    if (attribute != 8 || value < 0 || (uint32_t)value + k->static_shared > sim_the_device()->shared_optin)
        return leave(CU_INVALID_VALUE);
    k->max_dynamic_shared = (uint32_t)value;
    return leave(CU_OK);
}

SIM_API cuFuncSetCacheConfig(void *function, int config)
{
    ENTER(cuFuncSetCacheConfig);
    USABLE();
    return leave(!sim_kernel_of(c, function)    ? CU_INVALID_HANDLE
                 : config < 0 || config > 3 ? CU_INVALID_VALUE
                                            : CU_OK);
}

uint32_t sim_occupancy(const sim_kernel *k, uint32_t threads, uint64_t dynamic)
{
    const sim_device *d = sim_the_device();
    uint32_t warps = (threads + 31) / 32, n = d->blocks_per_sm, reserved = d->sm >= 80 ? 1024 : 0;
    uint64_t shared = k->static_shared + dynamic + reserved;
    if (!warps || threads > max_threads(k)) return 0;
    if (d->threads_per_sm / (warps * 32) < n) n = d->threads_per_sm / (warps * 32);
    if (65536 / (register_estimate(k) * warps * 32) < n) n = 65536 / (register_estimate(k) * warps * 32);
    if (shared && d->shared_per_sm / shared < n) n = (uint32_t)(d->shared_per_sm / shared);
    return n;
}

SIM_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int block, size_t dynamic)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    USABLE();
    const sim_kernel *k = sim_kernel_of(c, function);
    if (!out || block <= 0) return leave(CU_INVALID_VALUE);
    if (!k) return leave(CU_INVALID_HANDLE);
    *out = (int)sim_occupancy(k, (uint32_t)block, dynamic);
    return leave(CU_OK);
}

/* --- launches --------------------------------------------------------------------------------- */

static bool gather(const sim_kernel *k, void *const *params, void *const *extra, uint8_t *buffer)
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

int sim_launch_kernel(sim_context *c, void *function, const uint32_t grid[3], const uint32_t block[3],
                      uint32_t dynamic, const void *stream, void *const *params, void *const *extra,
                      bool cooperative, const uint32_t *cluster)
{
    static uint64_t serial;
    uint8_t small[4400], *buffer = small;
    const sim_kernel *k = sim_kernel_of(c, function);
    const sim_device *d = sim_the_device();
    sim_launch l;
    if (!k) return CU_INVALID_HANDLE;
    if (!sim_stream_valid(c, stream)) return CU_INVALID_HANDLE;
    const sim_function *f = k->function;
    for (int n = 0; n < 3; n++) if (!grid[n] || !block[n]) return CU_INVALID_VALUE;
    if (grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 || block[0] > 1024 || block[1] > 1024
        || block[2] > 64)
        return CU_INVALID_VALUE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > 1024) return CU_INVALID_VALUE;
    if (threads > max_threads(k)) return f->reqntid_count ? CU_INVALID_VALUE : CU_INVALID_VALUE;
    if (f->reqntid_count
        && (block[0] != f->reqntid[0] || block[1] != f->reqntid[1] || block[2] != f->reqntid[2]))
        return CU_INVALID_VALUE;
    uint64_t shared = (uint64_t)k->static_shared + dynamic;
    uint32_t limit = k->max_dynamic_shared ? k->max_dynamic_shared
                                           : 49152 - (k->static_shared > 49152 ? 49152 : k->static_shared);
    if (dynamic > limit || shared > d->shared_optin) return CU_INVALID_VALUE;
    uint32_t resident = sim_occupancy(k, (uint32_t)threads, dynamic) * d->sm_count;
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (cooperative && blocks > resident) return 720;
    memset(&l, 0, sizeof l);
    int refused = sim_cluster_shape(k, &l, grid, cluster);
    if (refused) return refused;
    if (f->param_bytes > sizeof small && !(buffer = malloc(f->param_bytes))) return CU_OUT_OF_MEMORY;
    memset(buffer, 0, f->param_bytes ? f->param_bytes : 1);
    if (!gather(k, params, extra, buffer)) { if (buffer != small) free(buffer); return CU_INVALID_VALUE; }
    l.kernel = k;
    l.context = c;
    memcpy(l.grid, grid, sizeof l.grid);
    memcpy(l.block, block, sizeof l.block);
    l.threads = (uint32_t)threads;
    l.warps = (l.threads + 31) / 32;
    l.dynamic_shared = dynamic;
    l.shared_bytes = (uint32_t)shared;
    l.params = buffer;
    l.param_bytes = f->param_bytes;
    l.block_count = blocks;
    l.grid_id = l.launch_serial = ++serial;
    l.resident_limit = resident > 4096 ? 4096 : resident;
    if (!sim_launch_prepare(&l, cooperative)) { if (buffer != small) free(buffer); return CU_OUT_OF_MEMORY; }
    fill_launch_constants(&l);
    int code = sim_launch_run(&l);
    if (buffer != small) free(buffer);
    if (code >= 700) c->sticky = code;
    return code == CU_OUT_OF_MEMORY ? code : CU_OK; /* as on a chip, the fault shows at the next call */
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

/* --- linking: one PTX text in, one "cubin" out ------------------------------------------------ */

void sim_links_free(sim_context *c)
{
    while (c->links) { sim_link *k = c->links; c->links = k->next; free(k->text); free(k->cubin); free(k); }
}

static sim_link *link_of(sim_context *c, const void *handle)
{
    for (sim_link *k = c->links; k; k = k->next) if (k == handle) return k;
    return NULL;
}

SIM_API cuLinkCreate_v2(unsigned count, int *options, void **values, sim_link **out)
{
    ENTER(cuLinkCreate_v2);
    USABLE();
    if (!out || (count && (!options || !values))) return leave(CU_INVALID_VALUE);
    sim_link *k = calloc(1, sizeof *k);
    if (!k) return leave(CU_OUT_OF_MEMORY);
    for (unsigned n = 0; n < count; n++) {
        if (options[n] == 5) k->log = (char *)values[n];
        if (options[n] == 6) k->log_size = (unsigned)(uintptr_t)values[n];
    }
    if (k->log && k->log_size) *k->log = 0;
    k->next = c->links;
    c->links = *out = k;
    return leave(CU_OK);
}

SIM_API cuLinkAddData_v2(void *handle, int type, void *data, size_t size, const char *name, unsigned count,
                         int *options, void **values)
{
    ENTER(cuLinkAddData_v2);
    USABLE();
    (void)name; (void)count; (void)options; (void)values;
    sim_link *k = link_of(c, handle);
    if (!k) return leave(CU_INVALID_HANDLE);
    if (!data || !size) return leave(CU_INVALID_VALUE);
    if (type != 0 && type != 1) return leave(CU_NOT_SUPPORTED);
    if (k->text) return leave(CU_NOT_SUPPORTED);              /* one input only */
    const char *text = data;
    size_t length = size;
    if (size >= sizeof(sim_cubin) && !memcmp(data, SIM_CUBIN_MAGIC, 8)) {
        sim_cubin head;
        memcpy(&head, data, sizeof head);
        if (head.length > size - sizeof head) return leave(CU_INVALID_IMAGE);
        text += sizeof head;
        length = (size_t)head.length;
    } else while (length && !text[length - 1]) length--;
    sim_module *m;
    int code = sim_module_load(c, text, length, k->log, k->log_size, &m);
    if (code) return leave(code);
    sim_module_free(m);
    if (!(k->text = malloc(length + 1))) return leave(CU_OUT_OF_MEMORY);
    memcpy(k->text, text, length);
    k->text[length] = 0;
    k->length = length;
    return leave(CU_OK);
}

SIM_API cuLinkComplete(void *handle, void **cubin, size_t *size)
{
    ENTER(cuLinkComplete);
    USABLE();
    sim_link *k = link_of(c, handle);
    if (!k) return leave(CU_INVALID_HANDLE);
    if (!cubin || !k->text) return leave(CU_INVALID_VALUE);
    sim_cubin head = { { 0 }, 1, sim_the_device()->sm, k->length, checksum(k->text, k->length) };
    memcpy(head.magic, SIM_CUBIN_MAGIC, 8);
    free(k->cubin);
    k->cubin_size = sizeof head + k->length + 1;
    if (!(k->cubin = malloc(k->cubin_size))) return leave(CU_OUT_OF_MEMORY);
    memcpy(k->cubin, &head, sizeof head);
    memcpy(k->cubin + sizeof head, k->text, k->length + 1);
    *cubin = k->cubin;
    if (size) *size = k->cubin_size;
    return leave(CU_OK);
}

SIM_API cuLinkDestroy(void *handle)
{
    ENTER(cuLinkDestroy);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    for (sim_link **at = &c->links; *at; at = &(*at)->next) {
        sim_link *k = *at;
        if (k != handle) continue;
        *at = k->next;
        free(k->text);
        free(k->cubin);
        free(k);
        return leave(CU_OK);
    }
    return leave(CU_INVALID_HANDLE);
}

/* --- looking entry points up ------------------------------------------------------------------ */

/* The library asks the loader for its own symbols: no table of function types. */
static void *entry_address(int k)
{
    static void *library;
    Dl_info self;
    if (!library && dladdr((const void *)entry_names, &self))
        library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, entry_names[k]) : NULL;
}


SIM_API cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    int failed = sim_enter(E_cuGetProcAddress_v2, false);
    if (failed) return failed;
    (void)version; (void)flags;
    if (!name || !out) return leave(CU_INVALID_VALUE);
    *out = NULL;
    for (int v = 2; v >= 1 && !*out; v--) {                   /* cuMemAlloc means cuMemAlloc_v2 */
        char full[96];
        snprintf(full, sizeof full, v == 2 ? "%s_v2" : "%s", name);
        for (int k = 0; k < E_COUNT; k++) if (!strcmp(entry_names[k], full)) *out = entry_address(k);
    }
    if (status) *status = *out ? 0 : 1;
    return leave(*out ? CU_OK : CU_NOT_FOUND);
}
