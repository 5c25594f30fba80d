/* libraries.c - entry points for libraries and their kernels: modules that need no current context. Here a library
 * is loaded into the context that is current at its load. */
#include "driver.h"

typedef struct sim_library {
    sim_handle *handle;
    struct sim_library *next;
    sim_context *context;
    sim_module *module;
} sim_library;

void sim_libraries_report(sim_context *c, sim_leak_fn tell)
{ for (const sim_library *l = c->libraries; l; l = l->next) tell("a library", l->handle); }

void sim_libraries_free(sim_context *c)
{
    while (c->libraries) {
        sim_library *l = c->libraries;
        c->libraries = l->next;
        sim_handle_drop(l->handle);
        free(l);                                              /* its module is freed with the context */
    }
}

static sim_library *library_of(const void *handle) { return sim_handle_get(H_LIBRARY, handle); }
static sim_kernel *kernel_of(const void *handle) { return sim_handle_get(H_KERNEL, handle); }

static int load(sim_context *c, void **out, const void *code, const int *jit, void **jit_values,
                unsigned jit_count, const int *options, unsigned option_count)
{
    sim_jit j;
    if (!out || !code) return CU_INVALID_VALUE;
    for (unsigned k = 0; k < option_count; k++)
        if (!options || options[k] < 0 || options[k] > 1) return CU_INVALID_VALUE;
    int failed = sim_jit_options(jit_count, jit, jit_values, &j);
    sim_library *l = failed ? NULL : calloc(1, sizeof *l);
    if (!l) return failed ? failed : CU_OUT_OF_MEMORY;
    if ((failed = sim_load_image(c, code, &j, &l->module)) != 0) { free(l); return failed; }
    if (!(l->handle = sim_handle_new(H_LIBRARY, l))) {
        sim_module_unload(c, l->module);
        free(l);
        return CU_OUT_OF_MEMORY;
    }
    l->module->library = l;
    l->context = c;
    l->next = c->libraries;
    c->libraries = l;
    *out = l->handle;
    return CU_OK;
}

SIM_API cuLibraryLoadData(void **out, const void *code, int *jit, void **jit_values, unsigned jit_count,
                          int *options, void **values, unsigned count)
{
    ENTER(cuLibraryLoadData);
    USABLE();
    (void)values;
    return leave(load(c, out, code, jit, jit_values, jit_count, options, count));
}

SIM_API cuLibraryLoadFromFile(void **out, const char *path, int *jit, void **jit_values, unsigned jit_count,
                              int *options, void **values, unsigned count)
{
    ENTER(cuLibraryLoadFromFile);
    USABLE();
    size_t length;
    (void)values;
    if (!out || !path) return leave(CU_INVALID_VALUE);
    char *text = sim_read_file(path, &length);
    if (!text) return leave(301);
    int code = load(c, out, text, jit, jit_values, jit_count, options, count);
    free(text);
    return leave(code);
}

SIM_API cuLibraryUnload(void *handle)
{
    ENTER(cuLibraryUnload);
    sim_library *l = library_of(handle);
    if (!l) return leave(CU_INVALID_HANDLE);
    sim_module_unload(l->context, l->module);
    for (sim_library **at = &l->context->libraries; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    sim_handle_drop(l->handle);
    free(l);
    return leave(CU_OK);
}

static void *kernel_handle(sim_kernel *k)
{
    if (!k->kernel_handle) k->kernel_handle = sim_handle_new(H_KERNEL, k);
    return k->kernel_handle;
}

SIM_API cuLibraryGetKernel(void **out, void *library, const char *name)
{
    ENTER(cuLibraryGetKernel);
    const sim_library *l = library_of(library);
    sim_kernel *k;
    if (!l) return leave(CU_INVALID_HANDLE);
    if (!out || !name) return leave(CU_INVALID_VALUE);
    int code = sim_module_function(l->module, name, &k);
    if (!code && !(*out = kernel_handle(k))) code = CU_OUT_OF_MEMORY;
    return leave(code);
}

static unsigned kernels(const sim_library *l, void **out, unsigned count)
{
    unsigned n = 0;
    for (sim_function *f = l->module->functions; f; f = f->next) {
        if (!f->is_entry || !f->kernel) continue;
        if (out && n < count) out[n] = kernel_handle(f->kernel);
        n++;
    }
    return n;
}

SIM_API cuLibraryGetKernelCount(unsigned *out, void *library)
{
    ENTER(cuLibraryGetKernelCount);
    const sim_library *l = library_of(library);
    if (!l) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = kernels(l, NULL, 0);
    return leave(CU_OK);
}

SIM_API cuLibraryEnumerateKernels(void **out, unsigned count, void *library)
{
    ENTER(cuLibraryEnumerateKernels);
    const sim_library *l = library_of(library);
    if (!l) return leave(CU_INVALID_HANDLE);
    if (!out || !count) return leave(CU_INVALID_VALUE);
    (void)kernels(l, out, count);
    return leave(CU_OK);
}

SIM_API cuLibraryGetModule(void **out, void *library)
{
    ENTER(cuLibraryGetModule);
    USABLE();
    const sim_library *l = library_of(library);
    if (!l || l->context != c) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = l->module->handle;
    return leave(CU_OK);
}

SIM_API cuLibraryGetGlobal(uint64_t *address, size_t *size, void *library, const char *name)
{
    ENTER(cuLibraryGetGlobal);
    USABLE();
    const sim_library *l = library_of(library);
    if (!l || l->context != c) return leave(CU_INVALID_HANDLE);
    if (!name || (!address && !size)) return leave(CU_INVALID_VALUE);
    return leave(sim_module_global(l->module, name, false, address, size));
}

SIM_API cuLibraryGetManaged(uint64_t *address, size_t *size, void *library, const char *name)
{
    ENTER(cuLibraryGetManaged);
    USABLE();
    const sim_library *l = library_of(library);
    if (!l || l->context != c) return leave(CU_INVALID_HANDLE);
    if (!name || (!address && !size)) return leave(CU_INVALID_VALUE);
    return leave(sim_module_global(l->module, name, true, address, size));
}

SIM_API cuKernelGetFunction(void **out, void *kernel)
{
    ENTER(cuKernelGetFunction);
    USABLE();
    sim_kernel *k = kernel_of(kernel);
    if (!k || k->module->context != c) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = sim_function_handle(k);
    return leave(*out ? CU_OK : CU_OUT_OF_MEMORY);
}

SIM_API cuKernelGetLibrary(void **out, void *kernel)
{
    ENTER(cuKernelGetLibrary);
    const sim_kernel *k = kernel_of(kernel);
    if (!k) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = k->module->library->handle;
    return leave(CU_OK);
}

SIM_API cuKernelGetName(const char **out, void *kernel)
{
    ENTER(cuKernelGetName);
    const sim_kernel *k = kernel_of(kernel);
    if (!k) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = k->function->name;
    return leave(CU_OK);
}

SIM_API cuKernelGetAttribute(int *out, int attribute, void *kernel, int device)
{
    ENTER(cuKernelGetAttribute);
    const sim_kernel *k = kernel_of(kernel);
    if (!k) return leave(CU_INVALID_HANDLE);
    return leave(device ? CU_INVALID_DEVICE : sim_function_attribute(k, attribute, out));
}

SIM_API cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    ENTER(cuKernelSetAttribute);
    sim_kernel *k = kernel_of(kernel);
    if (!k) return leave(CU_INVALID_HANDLE);
    return leave(device ? CU_INVALID_DEVICE : sim_function_set_attribute(k, attribute, value));
}

SIM_API cuKernelSetCacheConfig(void *kernel, int config, int device)
{
    ENTER(cuKernelSetCacheConfig);
    if (!kernel_of(kernel)) return leave(CU_INVALID_HANDLE);
    return leave(device ? CU_INVALID_DEVICE : config < 0 || config > 3 ? CU_INVALID_VALUE : CU_OK);
}
