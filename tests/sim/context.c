/* context.c - contexts: creation, the thread's stack, limits, leak reports. */
#include "texture.h"

static sim_context *contexts, *primary;
static uint64_t context_ids;
static unsigned primary_flags;
static _Thread_local struct { sim_handle *stack[32]; uint32_t depth; } here;

sim_context *sim_context_of(const void *handle) { return sim_handle_get(H_CONTEXT, handle); }

/* The context on top of this thread's stack; NULL if there is none or it was destroyed. */
sim_context *sim_current(void)
{
    return here.depth ? here.stack[here.depth - 1]->object : NULL;
}

int sim_usable_context(sim_context **out)
{
    sim_context *c = sim_current();
    if (!c) return here.depth ? 709 : CU_INVALID_CONTEXT;
    *out = c;
    return c->sticky;
}

uint64_t sim_times_cleared;                  /* how often the findings were cleared */

void sim_contexts_revive(void)
{
    sim_times_cleared++;
    for (sim_context *c = contexts; c; c = c->next) c->sticky = 0;
}

void sim_contexts_progress(void) { for (sim_context *c = contexts; c; c = c->next) sim_context_progress(c); }

static sim_context *create(bool is_primary, unsigned flags)
{
    sim_context *c = calloc(1, sizeof *c);
    if (!c || !(c->handle = sim_handle_new(H_CONTEXT, c))) { free(c); return NULL; }
    c->primary = is_primary;
    c->flags = flags;
    c->id = ++context_ids;
    static const size_t limits[] = { 1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0 };
    memcpy(c->limits, limits, sizeof limits);
    c->next = contexts;
    contexts = c;
    return c;
}

/* --- leaks ------------------------------------------------------------------------------------ */

static void leak(const char *what, const sim_handle *h)
{
    char maker[96];
    sim_describe_creator(h, maker, sizeof maker);
    sim_report_host("leak", "%s (made by %s) still exists when its context ends", what, maker);
}

static void report_leaks(sim_context *c)
{
    sim_allocation *a;
    uint32_t at = 0;
    if (!sim_driver_option.leaks || c->sticky) return;
    while ((a = sim_memory_next(c, &at)) != NULL) {
        if ((a->kind != MEM_DEVICE && a->kind != MEM_HOST) || a->label) continue;   /* variables: with modules */
        sim_report_host("leak",
                        "%s%llu bytes at 0x%llx (made by %s, call %llu) still exist when the context ends",
                        a->owned_by_caller    ? "registered memory, "
                        : a->managed          ? "managed memory, "
                        : a->kind == MEM_HOST ? "pinned memory, "
                                              : "",
                        (unsigned long long)a->size, (unsigned long long)a->base, sim_entry_name(a->entry),
                        (unsigned long long)a->call);
    }
    for (const sim_stream *s = c->streams; s; s = s->next) if (s->handle) leak("a stream", s->handle);
    for (const sim_event *e = c->events; e; e = e->next) leak("an event", e->handle);
    for (const sim_module *m = c->modules; m; m = m->next) if (!m->library) leak("a module", m->handle);
    for (const sim_link *k = c->links; k; k = k->next) leak("a link state", k->handle);
    sim_graphs_report(c, leak);
    sim_libraries_report(c, leak);
    sim_arrays_report(c, leak);
    sim_external_report(c, leak);
}

static void empty(sim_context *c, bool look)
{
    (void)sim_synchronise(c);
    if (look) report_leaks(c);
    sim_graphs_free(c);
    sim_streams_free(c);
    sim_libraries_free(c);
    while (c->modules) { sim_module *m = c->modules; c->modules = m->next; sim_module_free(m); }
    sim_links_free(c);
    sim_pools_free(c);
    sim_arrays_free(c);
    sim_external_free(c);
    sim_memory_free_context(c);
    c->grid_workspace = 0;
    c->sticky = 0;
    c->id = ++context_ids;
}

static void destroy(sim_context *c, bool look)
{
    empty(c, look);
    for (sim_context **at = &contexts; *at; at = &(*at)->next) if (*at == c) { *at = c->next; break; }
    if (c == primary) primary = NULL;
    sim_handle_drop(c->handle);
    free(c);
}

#if defined(__GNUC__)
__attribute__((destructor)) static void at_unload(void)
{
    sim_streams_stop();
    sim_api_resume();
    for (sim_context *c = contexts; c; c = c->next) c->sticky = CU_DEINITIALIZED; /* no more work runs */
    while (contexts) destroy(contexts, false);
    sim_streams_shutdown();
    sim_guards_stop();
    sim_handles_release();
    sim_api_pause();
    sim_exec_shutdown();
    sim_output_flush(false);
    sim_memory_release_all();
    ptxsim_report_clear();
}
#endif

/* --- the primary context ---------------------------------------------------------------------- */

SIM_API cuDevicePrimaryCtxRetain(sim_handle **out, int device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!primary && !(primary = create(true, primary_flags))) return leave(CU_OUT_OF_MEMORY);
    primary->references++;
    *out = primary->handle;
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!primary || !primary->references) return leave(CU_INVALID_CONTEXT);
    if (!--primary->references) destroy(primary, true);
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxReset_v2(int device)
{
    ENTER(cuDevicePrimaryCtxReset_v2);
    if (device) return leave(CU_INVALID_DEVICE);
    if (primary) empty(primary, true);
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    ENTER(cuDevicePrimaryCtxGetState);
    if (device) return leave(CU_INVALID_DEVICE);
    if (flags) *flags = primary_flags;
    if (active) *active = primary != NULL;
    return leave(CU_OK);
}

static bool flags_valid(unsigned flags)
{
    unsigned schedule = flags & 7;
    return !(flags & ~0xffu) && (schedule == 0 || schedule == 1 || schedule == 2 || schedule == 4);
}

SIM_API cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    ENTER(cuDevicePrimaryCtxSetFlags_v2);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!flags_valid(flags)) return leave(CU_INVALID_VALUE);
    primary_flags = flags;
    if (primary) primary->flags = flags;
    return leave(CU_OK);
}

/* --- created contexts, and the thread's stack ------------------------------------------------- */

static int push(sim_context *c)
{
    if (here.depth == sizeof here.stack / sizeof *here.stack) return CU_OUT_OF_MEMORY;
    here.stack[here.depth++] = c->handle;
    return CU_OK;
}

static int create_own(sim_handle **out, unsigned flags, int device)
{
    if (!out || !flags_valid(flags)) return CU_INVALID_VALUE;
    if (device) return CU_INVALID_DEVICE;
    sim_context *c = create(false, flags);
    if (!c) return CU_OUT_OF_MEMORY;
    *out = c->handle;
    return push(c);
}

SIM_API cuCtxCreate_v2(sim_handle **out, unsigned flags, int device)
{ ENTER(cuCtxCreate_v2); return leave(create_own(out, flags, device)); }

SIM_API cuCtxCreate_v3(sim_handle **out, const void *affinity, int count, unsigned flags, int device)
{
    ENTER(cuCtxCreate_v3);
    if (count < 0 || (count && !affinity)) return leave(CU_INVALID_VALUE);
    return leave(count ? 224 : create_own(out, flags, device));
}

typedef struct create_params { const void *affinity; int count; const void *cig; } create_params;

SIM_API cuCtxCreate_v4(sim_handle **out, const create_params *p, unsigned flags, int device)
{
    ENTER(cuCtxCreate_v4);
    if (p && p->count) return leave(224);
    if (p && p->cig) return leave(CU_NOT_SUPPORTED);
    return leave(create_own(out, flags, device));
}

SIM_API cuCtxDestroy_v2(void *handle)
{
    ENTER(cuCtxDestroy_v2);
    sim_context *c = sim_context_of(handle);
    if (!c || c->primary) return leave(CU_INVALID_CONTEXT);
    if (here.depth && here.stack[here.depth - 1] == c->handle) here.depth--;
    destroy(c, true);
    return leave(CU_OK);
}

SIM_API cuCtxGetCurrent(void **out)
{
    ENTER(cuCtxGetCurrent);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = sim_current() ? here.stack[here.depth - 1] : NULL;
    return leave(CU_OK);
}

SIM_API cuCtxSetCurrent(void *handle)
{
    ENTER(cuCtxSetCurrent);
    sim_context *c = handle ? sim_context_of(handle) : NULL;
    if (handle && !c) return leave(CU_INVALID_CONTEXT);
    if (!here.depth) return leave(c ? push(c) : CU_OK);
    if (c) here.stack[here.depth - 1] = c->handle;
    else here.depth--;
    return leave(CU_OK);
}

SIM_API cuCtxPushCurrent_v2(void *handle)
{
    ENTER(cuCtxPushCurrent_v2);
    sim_context *c = sim_context_of(handle);
    return leave(c ? push(c) : CU_INVALID_CONTEXT);
}

SIM_API cuCtxPopCurrent_v2(void **out)
{
    ENTER(cuCtxPopCurrent_v2);
    if (!here.depth) return leave(CU_INVALID_CONTEXT);
    void *handle = here.stack[--here.depth];
    if (out) *out = handle;
    return leave(CU_OK);
}

SIM_API cuCtxGetDevice(int *out)
{
    ENTER(cuCtxGetDevice);
    if (!sim_current()) return leave(CU_INVALID_CONTEXT);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return leave(sim_current() ? CU_OK : CU_INVALID_CONTEXT);
}

/* --- settings --------------------------------------------------------------------------------- */

SIM_API cuCtxGetApiVersion(void *handle, unsigned *out)
{
    ENTER(cuCtxGetApiVersion);
    if (!out) return leave(CU_INVALID_VALUE);
    if (handle ? !sim_context_of(handle) : !sim_current()) return leave(CU_INVALID_CONTEXT);
    *out = 3020;
    return leave(CU_OK);
}

SIM_API cuCtxGetId(void *handle, unsigned long long *out)
{
    ENTER(cuCtxGetId);
    const sim_context *c = handle ? sim_context_of(handle) : sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = c->id;
    return leave(CU_OK);
}

SIM_API cuCtxGetFlags(unsigned *out)
{
    ENTER(cuCtxGetFlags);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    *out = c->flags;
    return leave(CU_OK);
}

SIM_API cuCtxSetFlags(unsigned flags)
{
    ENTER(cuCtxSetFlags);
    USABLE();
    if (!flags_valid(flags)) return leave(CU_INVALID_VALUE);
    c->flags = flags;
    return leave(CU_OK);
}

enum { LIMITS = 10, LIMIT_DEPTH = 3, LIMIT_FETCH = 5, LIMIT_PERSISTING = 6, LIMIT_SHARED = 7 };

SIM_API cuCtxGetLimit(size_t *out, int limit)
{
    ENTER(cuCtxGetLimit);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    if (limit < 0 || limit >= LIMITS || limit == LIMIT_DEPTH || limit >= LIMIT_SHARED) return leave(215);
    *out = c->limits[limit];
    return leave(CU_OK);
}

SIM_API cuCtxSetLimit(int limit, size_t value)
{
    ENTER(cuCtxSetLimit);
    USABLE();
    if (limit < 0 || limit >= LIMITS || limit == LIMIT_DEPTH || limit >= LIMIT_SHARED) return leave(215);
    if (limit == LIMIT_FETCH && value > 128) return leave(CU_INVALID_VALUE);
    if (limit == LIMIT_PERSISTING) {
        if (sim_the_device()->sm < 80) return leave(215);
        size_t most = sim_the_device()->l2_bytes / 4 * 3;
        if (value > most) value = most;
    }
    if (limit == 0) {
        size_t each = (sim_the_device()->memory - sim_memory_used()) / sim_the_device()->sm_count
                      / sim_the_device()->threads_per_sm;
        if (value > each || value > 512 * 1024) return leave(CU_INVALID_VALUE);
        value = (value + 15) / 16 * 16;
    }
    c->limits[limit] = value;
    sim_limit(limit, value);
    return leave(CU_OK);
}

SIM_API cuCtxGetCacheConfig(int *out)
{
    ENTER(cuCtxGetCacheConfig);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    *out = c->cache_config;
    return leave(CU_OK);
}

SIM_API cuCtxSetCacheConfig(int config)
{
    ENTER(cuCtxSetCacheConfig);
    USABLE();
    if (config < 0 || config > 3) return leave(CU_INVALID_VALUE);
    c->cache_config = config;
    return leave(CU_OK);
}

SIM_API cuCtxGetSharedMemConfig(int *out)
{
    ENTER(cuCtxGetSharedMemConfig);
    USABLE();
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 1;                                                 /* banks of four bytes, on all these chips */
    return leave(CU_OK);
}

SIM_API cuCtxSetSharedMemConfig(int config)
{
    ENTER(cuCtxSetSharedMemConfig);
    USABLE();
    return leave(config < 0 || config > 2 ? CU_INVALID_VALUE : CU_OK);
}

SIM_API cuCtxResetPersistingL2Cache(void)
{
    ENTER(cuCtxResetPersistingL2Cache);
    USABLE();
    (void)c;
    return leave(CU_OK);
}
SIM_API cuProfilerStart(void) { ENTER(cuProfilerStart); USABLE(); (void)c; return leave(CU_OK); }
SIM_API cuProfilerStop(void) { ENTER(cuProfilerStop); USABLE(); (void)c; return leave(CU_OK); }

/* There is one device: its only peer would be itself. */
SIM_API cuDeviceCanAccessPeer(int *out, int device, int peer)
{
    ENTER(cuDeviceCanAccessPeer);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device || peer) return leave(CU_INVALID_DEVICE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuDeviceGetP2PAttribute(int *out, int attribute, int device, int peer)
{
    ENTER(cuDeviceGetP2PAttribute);
    if (!out || attribute < 1 || attribute > 5) return leave(CU_INVALID_VALUE);
    (void)device;
    (void)peer;
    return leave(CU_INVALID_DEVICE);
}

SIM_API cuCtxEnablePeerAccess(void *handle, unsigned flags)
{
    ENTER(cuCtxEnablePeerAccess);
    USABLE();
    const sim_context *peer = sim_context_of(handle);
    if (!peer || peer == c) return leave(CU_INVALID_CONTEXT);
    return leave(flags ? CU_INVALID_VALUE : 217);
}

SIM_API cuCtxDisablePeerAccess(void *handle)
{
    ENTER(cuCtxDisablePeerAccess);
    USABLE();
    const sim_context *peer = sim_context_of(handle);
    return leave(!peer || peer == c ? CU_INVALID_CONTEXT : 705);
}
