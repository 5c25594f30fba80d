/* functions.c - entry points for kernel attributes and occupancy. */
#include "driver.h"

uint32_t sim_max_threads(const sim_kernel *k)
{
    const sim_function *f = k->function;
    const uint32_t *n = f->reqntid_count ? f->reqntid : f->maxntid_count ? f->maxntid : NULL;
    uint64_t total = n ? (uint64_t)n[0] * n[1] * n[2] : 1024;
    return total > 1024 ? 1024 : (uint32_t)total;
}

uint32_t sim_register_estimate(const sim_kernel *k)
{
    uint32_t n = k->reg_slots - k->special_slots + 8, threads = sim_max_threads(k);
    bool bounded = k->function->maxntid_count || k->function->reqntid_count;
    n = n > 255 ? 255 : n < 16 ? 16 : (n + 7) / 8 * 8;
    if (k->function->maxnreg && k->function->maxnreg < n && k->function->maxnreg >= 16)
        n = k->function->maxnreg;
    while (n > 32 && (threads == 1024 && !bounded ? 256 : threads) * n > 65536) n -= 8;
    return n > 64 && !k->function->maxntid_count ? 64 : n;
}

static uint32_t reserved(void) { return sim_the_device()->sm >= 80 ? 1024 : 0; }

/* The largest dynamic shared memory that a launch may ask for. */
uint32_t sim_dynamic_limit(const sim_kernel *k)
{
    if (k->dynamic_set) return k->max_dynamic_shared;
    return 49152 - (k->static_shared > 49152 ? 49152 : k->static_shared);
}

uint32_t sim_occupancy(const sim_kernel *k, uint32_t threads, uint64_t dynamic)
{
    const sim_device *d = sim_the_device();
    uint32_t warps = (threads + 31) / 32, n = d->blocks_per_sm,
             registers = sim_register_estimate(k) * warps * 32;
    uint64_t shared = k->static_shared + dynamic + reserved();
    if (!warps || threads > sim_max_threads(k)) return 0;
    if (d->threads_per_sm / (warps * 32) < n) n = d->threads_per_sm / (warps * 32);
    if (d->registers_per_sm / registers < n) n = d->registers_per_sm / registers;
    if (shared && d->shared_per_sm / shared < n) n = (uint32_t)(d->shared_per_sm / shared);
    return n;
}

/* --- attributes ------------------------------------------------------------------------------- */

enum {
    A_MAX_THREADS,
    A_SHARED,
    A_CONST,
    A_LOCAL,
    A_REGISTERS,
    A_PTX_VERSION,
    A_BINARY_VERSION,
    A_CACHE_CA,
    A_MAX_DYNAMIC,
    A_CARVEOUT,
    A_CLUSTER_MUST,
    A_CLUSTER_X,
    A_CLUSTER_Y,
    A_CLUSTER_Z,
    A_NON_PORTABLE,
    A_POLICY,
    A_COUNT
};

int sim_function_attribute(const sim_kernel *k, int attribute, int *out)
{
    const sim_function *f = k->function;
    if (!out) return CU_INVALID_VALUE;
    switch (attribute) {
    case A_MAX_THREADS:    *out = (int)sim_max_threads(k); break;
    case A_SHARED:         *out = (int)k->static_shared; break;
    case A_CONST:          *out = 0; break;
    case A_LOCAL:          *out = (int)k->local_fixed; break;
    case A_REGISTERS:      *out = (int)sim_register_estimate(k); break;
    case A_PTX_VERSION:    *out = (int)k->module->target; break;
    case A_BINARY_VERSION: *out = (int)sim_the_device()->sm; break;
    case A_CACHE_CA:       *out = 0; break;
    case A_MAX_DYNAMIC:    *out = (int)sim_dynamic_limit(k); break;
    case A_CARVEOUT:       *out = k->carveout ? k->carveout - 2 : -1; break;
    case A_CLUSTER_MUST:   *out = f->explicitcluster && !f->reqnctapercluster[0]; break;
    case A_CLUSTER_X: case A_CLUSTER_Y: case A_CLUSTER_Z:
        *out = (int)f->reqnctapercluster[attribute - A_CLUSTER_X];
        break;
    case A_NON_PORTABLE: case A_POLICY: *out = k->cluster_flags[attribute - A_NON_PORTABLE]; break;
    default: return CU_INVALID_VALUE;
    }
    return CU_OK;
}

int sim_function_set_attribute(sim_kernel *k, int attribute, int value)
{
    const sim_device *d = sim_the_device();
    switch (attribute) {
    case A_MAX_DYNAMIC:
        if (value < 0 || (uint64_t)value + k->static_shared > d->shared_optin) return CU_INVALID_VALUE;
        k->max_dynamic_shared = (uint32_t)value;
        k->dynamic_set = true;
        return CU_OK;
    case A_CARVEOUT:
        if (value < -1 || value > 100) return CU_INVALID_VALUE;
        k->carveout = value + 2;
        return CU_OK;
    case A_NON_PORTABLE: case A_POLICY:
        if (d->sm < 90 || value < 0 || value > (attribute == A_POLICY ? 2 : 1)) return CU_INVALID_VALUE;
        k->cluster_flags[attribute - A_NON_PORTABLE] = value;
        return CU_OK;
    default: return CU_INVALID_VALUE;                         /* the others are read-only */
    }
}

#define KERNEL(handle) \
    sim_kernel *k = sim_kernel_of(c, handle); \
    if (!k) return leave(CU_INVALID_HANDLE)

SIM_API cuFuncGetAttribute(int *out, int attribute, void *function)
{
    ENTER(cuFuncGetAttribute);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    KERNEL(function);
    return leave(sim_function_attribute(k, attribute, out));
}

SIM_API cuFuncSetAttribute(void *function, int attribute, int value)
{
    ENTER(cuFuncSetAttribute);
    USABLE();
    KERNEL(function);
    return leave(sim_function_set_attribute(k, attribute, value));
}

SIM_API cuFuncSetCacheConfig(void *function, int config)
{
    ENTER(cuFuncSetCacheConfig);
    USABLE();
    KERNEL(function);
    (void)k;
    return leave(config < 0 || config > 3 ? CU_INVALID_VALUE : CU_OK);
}

SIM_API cuFuncSetSharedMemConfig(void *function, int config)
{
    ENTER(cuFuncSetSharedMemConfig);
    USABLE();
    KERNEL(function);
    (void)k;
    return leave(config < 0 || config > 2 ? CU_INVALID_VALUE : CU_OK);
}

SIM_API cuFuncGetModule(void **out, void *function)
{
    ENTER(cuFuncGetModule);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    KERNEL(function);
    *out = k->module->handle;
    return leave(CU_OK);
}

SIM_API cuFuncGetName(const char **out, void *function)
{
    ENTER(cuFuncGetName);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    KERNEL(function);
    *out = k->function->name;
    return leave(CU_OK);
}

static int param_info(const sim_kernel *k, size_t index, size_t *offset, size_t *size)
{
    const sim_symbol *y = k->function->params;
    if (!offset) return CU_INVALID_VALUE;
    while (y && index--) y = y->list_next;
    if (!y) return CU_INVALID_VALUE;
    *offset = (size_t)y->address;
    if (size) *size = (size_t)y->size;
    return CU_OK;
}

SIM_API cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size)
{
    ENTER(cuFuncGetParamInfo);
    USABLE();
    KERNEL(function);
    return leave(param_info(k, index, offset, size));
}

SIM_API cuKernelGetParamInfo(void *function, size_t index, size_t *offset, size_t *size)
{
    ENTER(cuKernelGetParamInfo);
    USABLE();
    KERNEL(function);
    return leave(param_info(k, index, offset, size));
}

SIM_API cuFuncIsLoaded(int *out, void *function)
{
    ENTER(cuFuncIsLoaded);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    KERNEL(function);
    (void)k;
    *out = 1;
    return leave(CU_OK);
}

SIM_API cuFuncLoad(void *function)
{
    ENTER(cuFuncLoad);
    USABLE();
    KERNEL(function);
    (void)k;
    return leave(CU_OK);
}

/* Lists the entries of a module, at most `count` of them; returns their number. */
static unsigned entries(const sim_module *m, void **out, unsigned count)
{
    unsigned n = 0;
    for (sim_function *f = m->functions; f; f = f->next) {
        if (!f->is_entry || !f->kernel) continue;
        if (out && n < count) out[n] = sim_function_handle(f->kernel);
        n++;
    }
    return n;
}

SIM_API cuModuleGetFunctionCount(unsigned *out, void *handle)
{
    ENTER(cuModuleGetFunctionCount);
    USABLE();
    const sim_module *m = sim_module_of(c, handle);
    if (!out) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    *out = entries(m, NULL, 0);
    return leave(CU_OK);
}

SIM_API cuModuleEnumerateFunctions(void **out, unsigned count, void *handle)
{
    ENTER(cuModuleEnumerateFunctions);
    USABLE();
    const sim_module *m = sim_module_of(c, handle);
    if (!out || !count) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    (void)entries(m, out, count);
    return leave(CU_OK);
}

/* --- occupancy -------------------------------------------------------------------------------- */

static int active_blocks(sim_context *c, int *out, const void *function, int block, size_t dynamic,
                         unsigned flags)
{
    const sim_kernel *k = sim_kernel_of(c, function);
    if (!out || block <= 0 || flags & ~1u) return CU_INVALID_VALUE;
    if (!k) return CU_INVALID_HANDLE;
    *out = (int)sim_occupancy(k, (uint32_t)block, dynamic);
    return CU_OK;
}

SIM_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int block, size_t dynamic)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    USABLE();
    return leave(active_blocks(c, out, function, block, dynamic, 0));
}

SIM_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, void *function, int block,
                                                             size_t dynamic, unsigned flags)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    USABLE();
    return leave(active_blocks(c, out, function, block, dynamic, flags));
}

/* The block size with the most threads on an SM; the largest of several. */
static int potential(sim_context *c, int *grid, int *block, const void *function, size_t (*dynamic_of)(int),
                     size_t dynamic, int limit, unsigned flags)
{
    const sim_kernel *k = sim_kernel_of(c, function);
    uint32_t best = 0, most = 0, blocks = 0;
    if (!grid || !block || limit < 0 || flags & ~1u) return CU_INVALID_VALUE;
    if (!k) return CU_INVALID_HANDLE;
    uint32_t top = sim_max_threads(k);
    if (limit && (uint32_t)limit < top) top = (uint32_t)limit;
    for (uint32_t n = top; n; n = n > 32 && n % 32 ? n / 32 * 32 : n > 32 ? n - 32 : 0) {
        size_t bytes = dynamic_of ? dynamic_of((int)n) : dynamic;
        uint32_t each = bytes > sim_dynamic_limit(k) ? 0 : sim_occupancy(k, n, bytes);
        if (each * n > most) { most = each * n; best = n; blocks = each; }
    }
    *block = (int)best;
    *grid = (int)(blocks * sim_the_device()->sm_count);
    return CU_OK;
}

SIM_API cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*dynamic_of)(int),
                                         size_t dynamic, int limit)
{
    ENTER(cuOccupancyMaxPotentialBlockSize);
    USABLE();
    return leave(potential(c, grid, block, function, dynamic_of, dynamic, limit, 0));
}

SIM_API cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, void *function,
                                                  size_t (*dynamic_of)(int), size_t dynamic, int limit,
                                                  unsigned flags)
{
    ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
    USABLE();
    return leave(potential(c, grid, block, function, dynamic_of, dynamic, limit, flags));
}

SIM_API cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, void *function, int blocks, int block)
{
    ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    USABLE();
    const sim_device *d = sim_the_device();
    if (!out || blocks <= 0 || block <= 0) return leave(CU_INVALID_VALUE);
    KERNEL(function);
    if (sim_occupancy(k, (uint32_t)block, 0) < (uint32_t)blocks) return leave(CU_INVALID_VALUE);
    uint64_t each = d->shared_per_sm / (uint32_t)blocks / 128 * 128,
             taken = k->static_shared + (uint64_t)reserved();
    uint64_t room = each > taken ? each - taken : 0;
    if (room + k->static_shared > d->shared_optin) room = d->shared_optin - k->static_shared;
    *out = (size_t)room;
    return leave(CU_OK);
}
