/* simtest.h - what the tests of the CPU driver share: the driver's entry points by name, checks that
 * count, running a kernel, and a fault beside its twin.
 *
 * A test program defines its tests and ends with
 *
 *     int main(int argc, char **argv) { sim_open(argc, argv); test_this(); ...; return sim_close(); }
 *
 * and is run from the root of the repository, with the library's path as its argument or in
 * PTXGEN_CUDA_LIBRARY.  Every test of tests/driver is built and run by `make test`. */
#ifndef SIMTEST_H
#define SIMTEST_H
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sim/ptxsim.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

/* --- the driver, by name ---------------------------------------------------------------------- */

typedef unsigned long long dptr;
typedef void *handle;

/* What cuLaunchKernelEx takes. */
typedef struct launch_attribute {
    int id;
    char pad[4];
    union {
        char room[64];
        unsigned n[3];
    } value;
} launch_attribute;
typedef struct launch_config {
    unsigned grid[3], block[3], shared;
    handle stream;
    launch_attribute *attributes;
    unsigned count;
} launch_config;

#define ENTRIES(X) \
    X(cuInit, (unsigned)) X(cuDriverGetVersion, (int *)) X(cuDeviceGetCount, (int *)) \
    X(cuDeviceGet, (int *, int)) X(cuDeviceGetName, (char *, int, int)) \
    X(cuDeviceGetAttribute, (int *, int, int)) X(cuDeviceTotalMem_v2, (size_t *, int)) \
    X(cuDevicePrimaryCtxRetain, (handle *, int)) X(cuDevicePrimaryCtxRelease_v2, (int)) \
    X(cuCtxSetCurrent, (handle)) X(cuDevicePrimaryCtxGetState, (int, unsigned *, int *)) \
    X(cuCtxCreate_v2, (handle *, unsigned, int)) X(cuCtxDestroy_v2, (handle)) \
    X(cuCtxGetCurrent, (handle *)) X(cuCtxPushCurrent_v2, (handle)) X(cuCtxPopCurrent_v2, (handle *)) \
    X(cuCtxGetDevice, (int *)) X(cuCtxSynchronize, (void)) X(cuModuleLoadData, (handle *, const void *)) \
    X(cuModuleLoadDataEx, (handle *, const void *, unsigned, int *, void **)) X(cuModuleUnload, (handle)) \
    X(cuModuleGetFunction, (handle *, handle, const char *)) \
    X(cuModuleGetGlobal_v2, (dptr *, size_t *, handle, const char *)) \
    X(cuFuncGetAttribute, (int *, int, handle)) X(cuFuncSetAttribute, (handle, int, int)) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, handle, int, size_t)) \
    X(cuMemAlloc_v2, (dptr *, size_t)) X(cuMemFree_v2, (dptr)) \
    X(cuMemHostAlloc, (void **, size_t, unsigned)) X(cuMemFreeHost, (void *)) \
    X(cuMemGetInfo_v2, (size_t *, size_t *)) X(cuMemcpyHtoD_v2, (dptr, const void *, size_t)) \
    X(cuMemcpyDtoH_v2, (void *, dptr, size_t)) X(cuMemcpyDtoD_v2, (dptr, dptr, size_t)) \
    X(cuMemcpy, (dptr, dptr, size_t)) X(cuMemcpyHtoDAsync_v2, (dptr, const void *, size_t, handle)) \
    X(cuMemsetD8_v2, (dptr, unsigned char, size_t)) X(cuMemsetD16_v2, (dptr, unsigned short, size_t)) \
    X(cuMemsetD32_v2, (dptr, unsigned, size_t)) X(cuStreamCreate, (handle *, unsigned)) \
    X(cuStreamDestroy_v2, (handle)) X(cuStreamSynchronize, (handle)) X(cuStreamQuery, (handle)) \
    X(cuStreamWaitEvent, (handle, handle, unsigned)) X(cuEventCreate, (handle *, unsigned)) \
    X(cuEventDestroy_v2, (handle)) X(cuEventRecord, (handle, handle)) X(cuEventSynchronize, (handle)) \
    X(cuEventElapsedTime, (float *, handle, handle)) X(cuGetErrorName, (int, const char **)) \
    X(cuGetErrorString, (int, const char **)) X(cuLinkCreate_v2, (unsigned, int *, void **, handle *)) \
    X(cuLinkAddData_v2, (handle, int, void *, size_t, const char *, unsigned, int *, void **)) \
    X(cuLinkComplete, (handle, void **, size_t *)) X(cuLinkDestroy, (handle)) \
    X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *)) \
    X(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, \
                       void **, void **)) \
    X(ptxsim_counters_get, (ptxsim_counters *, size_t)) X(ptxsim_fail, (const char *, unsigned, int))

#define X(name, args) static int (*name##_) args;
ENTRIES(X)
#undef X
static void (*counters_reset)(void), (*report_clear)(void), (*set_option)(const char *, int);
static size_t (*report)(char *, size_t);
static unsigned (*report_count)(void);
static uint64_t (*calls)(const char *);

static void *symbol(void *library, const char *name)
{
    void *p = dlsym(library, name);
    if (!p) { fprintf(stderr, "missing symbol %s\n", name); exit(2); }
    return p;
}

/* --- checks ----------------------------------------------------------------------------------- */

static int passed, failed;

static bool check_at(const char *file, int line, bool good, const char *format, ...)
{
    if (good) { passed++; return true; }
    va_list a;
    failed++;
    if (failed > 60) return false;
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(a, format);
    vfprintf(stderr, format, a);
    va_end(a);
    fputc('\n', stderr);
    return false;
}
#define CHECK(good, ...) check_at(__FILE__, __LINE__, good, __VA_ARGS__)
#define SAME(have, want)                                                                                     \
    do {                                                                                                     \
        long long have_ = (long long)(have), want_ = (long long)(want);                                      \
        check_at(__FILE__, __LINE__, have_ == want_, "%s is %lld, expected %lld", #have, have_, want_);      \
    } while (0)

static char log_text[1 << 16];

static handle load(const char *ptx)
{
    handle m = NULL;
    int options[2] = { 5, 6 };
    void *values[2] = { log_text, (void *)(uintptr_t)sizeof log_text };
    int code = cuModuleLoadDataEx_(&m, ptx, 2, options, values);
    if (code) fprintf(stderr, "load: %d\n%s", code, log_text);
    return code ? NULL : m;
}

static int refused(const char *ptx)
{
    handle m = NULL;
    int options[2] = { 5, 6 };
    void *values[2] = { log_text, (void *)(uintptr_t)sizeof log_text };
    int code = cuModuleLoadDataEx_(&m, ptx, 2, options, values);
    if (!code) cuModuleUnload_(m);
    return code;
}

static handle function(handle m, const char *name)
{
    handle f = NULL;
    if (m) cuModuleGetFunction_(&f, m, name);
    return f;
}

static dptr alloc(size_t bytes) { dptr p = 0; if (cuMemAlloc_v2_(&p, bytes)) return 0; return p; }

static int run(handle f, unsigned grid, unsigned block, unsigned shared, void **params)
{
    int code = cuLaunchKernel_(f, grid, 1, 1, block, 1, 1, shared, NULL, params, NULL);
    return code ? code : cuCtxSynchronize_();
}

static char found[1 << 16];

static const char *findings(void) { report(found, sizeof found); return found; }

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define REGS \
    ".reg .pred p<8>; .reg .b16 h<16>; .reg .b32 r<32>; .reg .b64 d<16>; .reg .f32 f<16>; .reg .f64 g<8>;\n"

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 17);
    if (!f) { free(text); return NULL; }
    size_t n = fread(text, 1, (1 << 17) - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

/* --- running ---------------------------------------------------------------------------------- */

static int run_out(const char *ptx, unsigned grid, unsigned block, unsigned shared, uint32_t *out,
                   unsigned count)
{
    handle m = load(ptx), f = function(m, "k");
    dptr d = alloc(count * 4 + 4);
    void *params[] = { &d };
    if (!f || !d) return -1;
    cuMemsetD32_v2_(d, 0, count);
    if (shared > 49152) cuFuncSetAttribute_(f, 8, (int)shared);
    int code = run(f, grid, block, shared, params);
    if (code >= 700) report_count();
    if (code < 700) cuMemcpyDtoH_v2_(out, d, count * 4);
    unsigned kept = report_count();
    if (code >= 700) { findings(); report_clear(); }          /* the context has to live for the clean-up */
    cuMemFree_v2_(d);
    cuModuleUnload_(m);
    (void)kept;
    return code;
}

#define OUT \
    ".visible .entry k(.param .u64 out) {\n" REGS \
    "ld.param.u64 d0, [out]; mov.u32 r0, %tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1;\n"

/* --- checks: a fault and its twin ------------------------------------------------------------- */

static void fault(const char *name, const char *body, int want_code, const char *want_kind, unsigned block)
{
    static char ptx[8000];
    uint32_t x[64];
    report_clear();
    found[0] = 0;
    snprintf(ptx, sizeof ptx,
             HEAD ".shared .align 16 .b8 sm[64];\n.visible .entry k(.param .u64 out) {\n" REGS
                  "ld.param.u64 d0, [out]; mov.u32 r0, %%tid.x; mul.wide.u32 d1, r0, 4; add.u64 d1, d0, d1; "
                  "mov.u32 r31, sm;\n%s\nret; }",
             body);
    int code = run_out(ptx, 1, block, 0, x, 64);              /* 64 words and one that nothing has written */
    if (code < 700) findings();
    check_at(__FILE__, __LINE__, code == want_code, "%s: gives %d, expected %d: %s", name, code, want_code,
             found);
    if (*want_kind) {
        size_t n = strlen(want_kind);
        check_at(__FILE__, __LINE__,
                 !strncmp(found, want_kind, n) && found[n] == ':' && strstr(found, "kernel 'k', line 8"),
                 "%s: expected %s at line 8, found: %s", name, want_kind, found);
    } else check_at(__FILE__, __LINE__, !*found, "%s: nothing is wrong, found: %s", name, found);
    report_clear();
}

/* --- keeping -----------------------------------------------------------------------------------

 * SIMTEST_KEEP=folder writes every text that a test loads there: seeds for the fuzzer. */
static int (*load_plain)(handle *, const void *),
    (*load_full)(handle *, const void *, unsigned, int *, void **);

static void keep_text(const char *text)
{
    enum { LONGEST = 20000 };
    uint64_t h = 14695981039346656037u;
    char path[600];
    size_t n = strnlen(text, LONGEST);
    for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)text[k]) * 1099511628211u;
    if (n == LONGEST) return;
    snprintf(path, sizeof path, "%s/%016llx.ptx", getenv("SIMTEST_KEEP"), (unsigned long long)h);
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(text, 1, n, f);
    fclose(f);
}

static int kept_plain(handle *out, const void *image)
{
    if (image) keep_text(image);
    return load_plain(out, image);
}

static int kept_full(handle *out, const void *image, unsigned count, int *options, void **values)
{
    if (image) keep_text(image);
    return load_full(out, image, count, options, values);
}

static void keep_texts(void)
{
    if (!getenv("SIMTEST_KEEP")) return;
    load_plain = cuModuleLoadData_;
    load_full = cuModuleLoadDataEx_;
    cuModuleLoadData_ = kept_plain;
    cuModuleLoadDataEx_ = kept_full;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void *sim_library;

static void sim_open(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    setenv("PTXSIM_PERTURB", "1", 0);  /* approximate instructions err as much as they may */
    sim_library = dlopen(path ? path : "build/libptxsim.so", RTLD_NOW | RTLD_LOCAL);
    if (!sim_library) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
#define X(name, args) *(void **)&name##_ = symbol(sim_library, #name);
    ENTRIES(X)
#undef X
    *(void **)&counters_reset = symbol(sim_library, "ptxsim_counters_reset");
    *(void **)&report_clear = symbol(sim_library, "ptxsim_report_clear");
    *(void **)&set_option = symbol(sim_library, "ptxsim_set");
    *(void **)&report = symbol(sim_library, "ptxsim_report");
    *(void **)&report_count = symbol(sim_library, "ptxsim_report_count");
    *(void **)&calls = symbol(sim_library, "ptxsim_calls");
    set_option("quiet", 1);
    keep_texts();
    handle context;
    SAME(cuInit_(0), 0);
    SAME(cuDevicePrimaryCtxRetain_(&context, 0), 0);
    SAME(cuCtxSetCurrent_(context), 0);
}

static int sim_close(void)
{
    SAME(cuDevicePrimaryCtxRelease_v2_(0), 0);
    dlclose(sim_library);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

/* --- other chips run in processes of their own, for the library is one chip for its whole life ---- */

static void on_device(const char *device, int argc, char **argv, void (*tests)(void))
{
    int ends[2], counts[2] = { 0, 1 };
    fflush(NULL);
    if (pipe(ends)) return;
    pid_t child = fork();
    if (!child) {
        setenv("PTXSIM_DEVICE", device, 1);
        sim_open(argc, argv);
        tests();
        SAME(cuDevicePrimaryCtxRelease_v2_(0), 0);
        counts[0] = passed;
        counts[1] = failed;
        _exit(write(ends[1], counts, sizeof counts) != sizeof counts);
    }
    close(ends[1]);
    if (read(ends[0], counts, sizeof counts) != sizeof counts)
        fprintf(stderr, "the tests on %s did not end\n", device);
    close(ends[0]);
    waitpid(child, NULL, 0);
    passed += counts[0];
    failed += counts[1];
}

#endif
