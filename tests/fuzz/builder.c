/* builder.c - a libFuzzer target of the builder: an input is the bytes of a random program (tests/program.h),
 * choices that are wrong on purpose included. Whatever they say, the builder ends in a located error or in
 * text that the CPU driver, whose sources are linked in, loads, and whose results are the interpreter's.
 * Built again behind a reset it is the same text, printed into a buffer that is too short it stays inside,
 * and pressure and places cost no crash. `make fuzz` runs it. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"

#include "../kerneltest.h"
#include "../program.h"

#define ENTRIES(X)                                                                                           \
    X(cuInit, cuInit, (unsigned))                                                                            \
    X(cuDeviceGet, cuDeviceGet, (int *, int))                                                                \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void **, int))                                    \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (void *))                                                            \
    X(cuCtxSynchronize, cuCtxSynchronize, (void))                                                            \
    X(cuMemAlloc, cuMemAlloc_v2, (device_ptr *, size_t))                                                     \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2, (device_ptr, const void *, size_t))                                     \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *, device_ptr, size_t))                                           \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))             \
    X(cuModuleUnload, cuModuleUnload, (void *))                                                              \
    X(cuModuleGetFunction, cuModuleGetFunction, (void **, void *, const char *))                             \
    X(cuLaunchKernel, cuLaunchKernel,                                                                        \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,        \
       void **))
#define X(field, name, args) int name args;
ENTRIES(X)
#undef X
int cuDevicePrimaryCtxRelease_v2(int device);
void sim_memory_release_all(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RENEW = 5000, LONGEST = 4000 };
static machine box;
static ptx_module *module;

static void open_all(void) {
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) abort();
    open_machine(&box);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    ptx_module_desc desc;
    (void)argc;
    (void)argv;
    setenv("PTXSIM_DEVICE", "sm_100", 1);
    setenv("PTXSIM_MEMORY", "33554432", 0);
    ptxsim_set("quiet", 1);
    ptxsim_set("threads", 1);
    ptxsim_set("watchdog", 0);
#define X(field, name, args) cu.field = name;
    ENTRIES(X)
#undef X
    cu.ptxsim_report = ptxsim_report;
    cu.ptxsim_report_clear = ptxsim_report_clear;
    capability = 100;
    open_all();
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM_A(100);
    desc.comments = 1;
    module = ptx_module_new(&desc);
    random_state = 1;
    open_bridge();
    collect(module);
    return 0;
}

/* Freed device allocations are remembered as long as the process lives, so begin anew now and then. */
static void renew(void) {
    static unsigned runs;
    if (++runs % RENEW) return;
    cuDevicePrimaryCtxRelease_v2(0);
    sim_memory_release_all();
    open_all();
}

/* What else can be asked of a module that has text. */
static void ask(const char *text, size_t length) {
    static char logged[512], explained[2048];
    ptx_place place;
    ptx_pressure_info pressure;
    if (strlen(text) != length) abort();
    for (uint32_t line = 0; line < 40; line++) ptx_locate(module, line * 7, &place);
    snprintf(logged, sizeof logged, "ptxas k.ptx, line %u; error: x\nline 99999999999; line ",
             (unsigned)(length % 97));
    ptx_explain(module, logged, explained, sizeof explained);
    for (uint32_t i = 0; i < 3; i++) ptx_pressure(module, i, &pressure);
    ptx_pressure(module, 99, &pressure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static program p;
    static char why[4000];
    if (size > LONGEST) return 0;
    if (try_program(&p, module, &box, data, size, why, sizeof why) == P_WRONG) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
    size_t length = 0, again = 0;
    const char *text = ptx_text(module, &length);
    if (text) {
        char *copy = malloc(length + 1);
        if (!copy) return 0;
        memcpy(copy, text, length + 1);
        ask(copy, length);
        ptx_module_reset(module);
        build_program(&p, module, data, size);
        text = ptx_text(module, &again);
        if (!text || again != length || memcmp(text, copy, length)) abort();
        free(copy);
    }
    renew();
    return 0;
}
