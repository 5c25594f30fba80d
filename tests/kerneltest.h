/* kerneltest.h - what the tests of kernels share: the driver by name, loading, launching, and what the CPU
 * driver has found.
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef KERNELTEST_H
#define KERNELTEST_H

#include "check.h"
#include "sim/ptxsim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the driver, what of it is needed -- */

typedef uint64_t device_ptr;
static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGet)(int *, int);
    int (*cuDeviceGetAttribute)(int *, int, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuCtxSynchronize)(void);
    int (*cuMemAlloc)(device_ptr *, size_t);
    int (*cuMemFree)(device_ptr);
    int (*cuMemcpyHtoD)(device_ptr, const void *, size_t);
    int (*cuMemcpyDtoH)(void *, device_ptr, size_t);
    int (*cuModuleLoadDataEx)(void **, const void *, unsigned, int *, void **);
    int (*cuModuleUnload)(void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuFuncSetAttribute)(void *, int, int);
    int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          void *, void **, void **);
    int (*cuLaunchCooperativeKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, void *, void **);
    int (*cuLaunchKernelEx)(const void *, void *, void **, void **); /* NULL before 11.8 */
    int (*cuTensorMapEncodeTiled)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                                  const uint32_t *, const uint32_t *, int, int, int, int); /* NULL before 12.0 */
    /* of the CPU driver only */
    int (*ptxsim_counters_get)(ptxsim_counters *, size_t);
    void (*ptxsim_counters_reset)(void);
    size_t (*ptxsim_report)(char *, size_t);
    unsigned (*ptxsim_report_count)(void);
    void (*ptxsim_report_clear)(void);
    void (*ptxsim_set)(const char *, int);
} cu;
static int capability;

static int open_driver(void)
{
    const char *path = getenv("PTXGEN_CUDA_LIBRARY");
    void *lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW), *context;
    int device, major, minor, missing = 0;
    if (!lib) {
        printf("cannot open the driver: %s\n", dlerror());
        return 0;
    }
#define SYMBOL(field, name)                                                                                 \
    do {                                                                                                    \
        void *symbol = dlsym(lib, name);                                                                    \
        memcpy(&cu.field, &symbol, sizeof symbol);                                                          \
        if (!symbol && !strncmp(name, "cu", 2) && strcmp(name, "cuLaunchKernelEx")                          \
            && strcmp(name, "cuTensorMapEncodeTiled"))                                                      \
            missing++;                                                                                      \
    } while (0)
    setenv("PTXSIM_PERTURB", "1", 0); /* approximate instructions err as much as they may */
    SYMBOL(cuInit, "cuInit");
    SYMBOL(cuDeviceGet, "cuDeviceGet");
    SYMBOL(cuDeviceGetAttribute, "cuDeviceGetAttribute");
    SYMBOL(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    SYMBOL(cuCtxSetCurrent, "cuCtxSetCurrent");
    SYMBOL(cuCtxSynchronize, "cuCtxSynchronize");
    SYMBOL(cuMemAlloc, "cuMemAlloc_v2");
    SYMBOL(cuMemFree, "cuMemFree_v2");
    SYMBOL(cuMemcpyHtoD, "cuMemcpyHtoD_v2");
    SYMBOL(cuMemcpyDtoH, "cuMemcpyDtoH_v2");
    SYMBOL(cuModuleLoadDataEx, "cuModuleLoadDataEx");
    SYMBOL(cuModuleUnload, "cuModuleUnload");
    SYMBOL(cuModuleGetFunction, "cuModuleGetFunction");
    SYMBOL(cuFuncSetAttribute, "cuFuncSetAttribute");
    SYMBOL(cuLaunchKernel, "cuLaunchKernel");
    SYMBOL(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel");
    SYMBOL(cuLaunchKernelEx, "cuLaunchKernelEx");
    SYMBOL(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
    SYMBOL(ptxsim_counters_get, "ptxsim_counters_get");
    SYMBOL(ptxsim_counters_reset, "ptxsim_counters_reset");
    SYMBOL(ptxsim_report, "ptxsim_report");
    SYMBOL(ptxsim_report_count, "ptxsim_report_count");
    SYMBOL(ptxsim_report_clear, "ptxsim_report_clear");
    SYMBOL(ptxsim_set, "ptxsim_set");
#undef SYMBOL
    if (missing || cu.cuInit(0) || cu.cuDeviceGet(&device, 0) || cu.cuDeviceGetAttribute(&major, 75, device)
        || cu.cuDeviceGetAttribute(&minor, 76, device) || cu.cuDevicePrimaryCtxRetain(&context, device)
        || cu.cuCtxSetCurrent(context)) {
        printf("cannot start the driver (%d functions missing)\n", missing);
        return 0;
    }
    capability = 10 * major + minor;
    printf("driver: %s, sm_%d\n", cu.ptxsim_report ? "CPU" : "GPU", capability);
    return 1;
}

static device_ptr upload(const void *data, size_t bytes)
{
    device_ptr p = 0;
    if (!CHECK(cu.cuMemAlloc(&p, bytes ? bytes : 16) == 0)) return 0;
    if (bytes) CHECK(cu.cuMemcpyHtoD(p, data, bytes) == 0);
    return p;
}

/* The CPU driver has found nothing. */
static inline void check_reports(void)
{
    static char text[4000];
    if (!cu.ptxsim_report_count) return;
    if (!CHECK(cu.ptxsim_report_count() == 0)) {
        cu.ptxsim_report(text, sizeof text);
        printf("%s\n", text);
        cu.ptxsim_report_clear();
    }
}

/* A module of the text, loaded; NULL, and a failed check with the driver's log, when it is refused. */
static void *load_text(const char *text)
{
    static char log[8192];
    int options[2] = {5, 6}; /* error log buffer, its size */
    void *values[2], *module = NULL;
    log[0] = 0;
    values[0] = log;
    values[1] = (void *)(uintptr_t)sizeof log;
    CHECK_MORE(cu.cuModuleLoadDataEx(&module, text, 2, options, values) == 0, log);
    return module;
}

/* In clusters, as the plan says: 0 when all is well. */
static int launch_clusters(void *function, const ptx_launch *l, void **params)
{
    struct {
        uint32_t id, pad, value[16];
    } attribute;
    struct {
        uint32_t grid[3], block[3], shared_bytes;
        void *stream, *attributes;
        uint32_t count;
    } config;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    attribute.id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    memcpy(attribute.value, l->cluster, sizeof l->cluster);
    memcpy(config.grid, l->grid, sizeof l->grid);
    memcpy(config.block, l->block, sizeof l->block);
    config.shared_bytes = l->shared_bytes;
    config.attributes = &attribute;
    config.count = 1;
    return cu.cuLaunchKernelEx ? cu.cuLaunchKernelEx(&config, function, params, NULL) : 801;
}

/* The target, or, where the device cannot run it, the device's own: then the form of the first is not tested. */
static inline ptx_target runnable(ptx_target target) {
    static unsigned left_out;
    unsigned number = (unsigned)(target & 0xfff);
    if ((int)number <= capability) return target;
    if (left_out < number) printf("SKIP the form of sm_%u: the device is sm_%d\n", left_out = number, capability);
    return PTX_SM((unsigned)capability);
}

/* Launches an entry with a block of arguments, and the tensor maps that the plan (or NULL) lists for launch `index`. */
static inline int launch_with_maps(const ptx_module *m, void *module, const ptx_launch *l, const ptx_plan *plan,
                                   uint32_t index, void *args, size_t args_bytes)
{
    ptx_entry_info info;
    char room[PTX_PLAN_MAPS][192];
    void *function = NULL, *params[1 + PTX_PLAN_MAPS];
    uint32_t i, n = 1;
    params[0] = args;
    for (i = 0; plan && i < plan->maps; i++) {
        ptx_map_values v;
        const char *rule;
        if (plan->map[i].launch != index) continue;
        rule = ptx_map_resolve(&plan->map[i], args, &v);
        params[n] = room[i] + (64 - (uintptr_t)room[i] % 64) % 64;
        if (!CHECK_MORE(!rule, rule ? rule : "")
            || !CHECK(cu.cuTensorMapEncodeTiled
                      && !cu.cuTensorMapEncodeTiled(params[n], v.type, v.rank, v.address, v.size, v.stride, v.box,
                                                    v.element_stride, 0, v.swizzle, v.l2_promotion, 0)))
            return 0;
        n++;
    }
    return CHECK(ptx_entry_get(m, l->entry, &info)) && CHECK(info.param_count == n)
           && CHECK(info.params[0].bytes == args_bytes)
           && CHECK(cu.cuModuleGetFunction(&function, module, info.name) == 0)
           && CHECK(l->shared_bytes <= 49152
                    || cu.cuFuncSetAttribute(function, 8, (int)l->shared_bytes) == 0)
           && CHECK((l->cluster[0] ? launch_clusters(function, l, params)
                     : l->cooperative
                         ? cu.cuLaunchCooperativeKernel(function, l->grid[0], l->grid[1], l->grid[2],
                                                        l->block[0], l->block[1], l->block[2],
                                                        l->shared_bytes, NULL, params)
                         : cu.cuLaunchKernel(function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                             l->block[1], l->block[2], l->shared_bytes, NULL, params, NULL))
                    == 0);
}

/* Launches an entry without tensor maps. */
static inline int launch_entry(const ptx_module *m, void *module, const ptx_launch *l, void *args, size_t args_bytes)
{
    return launch_with_maps(m, module, l, NULL, 0, args, args_bytes);
}

#endif
