/* context.c - contexts, memory, copies, streams, events.  Streams do their work at once. */
#include "driver.h"

static sim_context *contexts, *primary;
static _Thread_local struct { sim_context *stack[32]; uint32_t depth; } here;

/* --- contexts --------------------------------------------------------------------------------- */

bool sim_context_exists(const sim_context *c)
{
    for (const sim_context *k = contexts; k; k = k->next) if (k == c) return true;
    return false;
}

sim_context *sim_current(void)
{
    sim_context *c = here.depth ? here.stack[here.depth - 1] : NULL;
    return c && sim_context_exists(c) ? c : NULL;
}

int sim_usable(sim_context **out)
{
    sim_context *c = sim_current();
    if (!c) return here.depth && here.stack[here.depth - 1] ? 709 : CU_INVALID_CONTEXT;
    *out = c;
    return c->sticky;
}

void sim_contexts_revive(void) { for (sim_context *c = contexts; c; c = c->next) c->sticky = 0; }

static sim_context *create(bool is_primary)
{
    sim_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->magic = 0x43545831;
    c->primary = is_primary;
    c->next = contexts;
    contexts = c;
    return c;
}

static void empty(sim_context *c)
{
    while (c->modules) { sim_module *m = c->modules; c->modules = m->next; sim_module_free(m); }
    while (c->streams) { sim_stream *s = c->streams; c->streams = s->next; free(s); }
    while (c->events) { sim_event *e = c->events; c->events = e->next; free(e); }
    sim_links_free(c);
    sim_memory_free_context(c);
    c->sticky = 0;
}

static void destroy(sim_context *c)
{
    for (sim_context **at = &contexts; *at; at = &(*at)->next) if (*at == c) { *at = c->next; break; }
    empty(c);
    if (c == primary) primary = NULL;
    free(c);
}

#if defined(__GNUC__)
__attribute__((destructor)) static void at_unload(void)
{
    while (contexts) destroy(contexts);
    sim_exec_shutdown();
    sim_output_flush(false);
    sim_memory_release_all();
    ptxsim_report_clear();
}
#endif

SIM_API cuDevicePrimaryCtxRetain(sim_context **out, int device)
{
    ENTER(cuDevicePrimaryCtxRetain);
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!primary && !(primary = create(true))) return leave(CU_OUT_OF_MEMORY);
    primary->references++;
    *out = primary;
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTER(cuDevicePrimaryCtxRelease_v2);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!primary || !primary->references) return leave(CU_INVALID_CONTEXT);
    if (!--primary->references) destroy(primary);
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxReset_v2(int device)
{
    ENTER(cuDevicePrimaryCtxReset_v2);
    if (device) return leave(CU_INVALID_DEVICE);
    if (primary) empty(primary);
    return leave(CU_OK);
}

SIM_API cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    ENTER(cuDevicePrimaryCtxGetState);
    if (device) return leave(CU_INVALID_DEVICE);
    if (flags) *flags = 0;
    if (active) *active = primary != NULL;
    return leave(CU_OK);
}

static int push(sim_context *c)
{
    if (here.depth == sizeof here.stack / sizeof *here.stack) return CU_OUT_OF_MEMORY;
    here.stack[here.depth++] = c;
    return CU_OK;
}

SIM_API cuCtxCreate_v2(sim_context **out, unsigned flags, int device)
{
    ENTER(cuCtxCreate_v2);
    (void)flags;
    if (!out) return leave(CU_INVALID_VALUE);
    if (device) return leave(CU_INVALID_DEVICE);
    sim_context *c = create(false);
    if (!c) return leave(CU_OUT_OF_MEMORY);
    *out = c;
    return leave(push(c));
}

SIM_API cuCtxDestroy_v2(sim_context *c)
{
    ENTER(cuCtxDestroy_v2);
    if (!sim_context_exists(c) || c->primary) return leave(CU_INVALID_CONTEXT);
    if (here.depth && here.stack[here.depth - 1] == c) here.depth--;
    destroy(c);
    return leave(CU_OK);
}

SIM_API cuCtxGetCurrent(sim_context **out)
{
    ENTER(cuCtxGetCurrent);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = sim_current();
    return leave(CU_OK);
}

SIM_API cuCtxSetCurrent(sim_context *c)
{
    ENTER(cuCtxSetCurrent);
    if (c && !sim_context_exists(c)) return leave(CU_INVALID_CONTEXT);
    if (!here.depth) return leave(c ? push(c) : CU_OK);
    here.stack[here.depth - 1] = c;
    if (!c) here.depth--;
    return leave(CU_OK);
}

SIM_API cuCtxPushCurrent_v2(sim_context *c)
{
    ENTER(cuCtxPushCurrent_v2);
    if (!sim_context_exists(c)) return leave(CU_INVALID_CONTEXT);
    return leave(push(c));
}

SIM_API cuCtxPopCurrent_v2(sim_context **out)
{
    ENTER(cuCtxPopCurrent_v2);
    if (!here.depth) return leave(CU_INVALID_CONTEXT);
    sim_context *c = here.stack[--here.depth];
    if (out) *out = c;
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

SIM_API cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    sim_context *c;
    return leave(sim_usable(&c));
}

SIM_API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return leave(sim_current() ? CU_OK : CU_INVALID_CONTEXT);
}

/* --- memory ----------------------------------------------------------------------------------- */

#define USABLE() sim_context *c; int bad_ = sim_usable(&c); if (bad_) return leave(bad_)

SIM_API cuMemAlloc_v2(uint64_t *out, size_t size)
{
    ENTER(cuMemAlloc_v2);
    USABLE();
    sim_allocation *a;
    if (!out || !size) return leave(CU_INVALID_VALUE);
    int error = sim_memory_alloc(c, size, MEM_DEVICE, NULL, &a);
    if (error) return leave(error);
    *out = a->base;
    return leave(CU_OK);
}

SIM_API cuMemFree_v2(uint64_t address)
{
    ENTER(cuMemFree_v2);
    USABLE();
    if (!address) return leave(CU_OK);
    return leave(sim_memory_free(address, MEM_DEVICE));
}

static int host_alloc(sim_context *c, void **out, size_t size)
{
    sim_allocation *a;
    if (!out || !size) return CU_INVALID_VALUE;
    int error = sim_memory_alloc(c, size, MEM_HOST, NULL, &a);
    if (!error) *out = a->host;
    return error;
}

SIM_API cuMemAllocHost_v2(void **out, size_t size)
{
    ENTER(cuMemAllocHost_v2);
    USABLE();
    return leave(host_alloc(c, out, size));
}

SIM_API cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    ENTER(cuMemHostAlloc);
    USABLE();
    if (flags & ~7u) return leave(CU_INVALID_VALUE);
    return leave(host_alloc(c, out, size));
}

SIM_API cuMemFreeHost(void *p)
{
    ENTER(cuMemFreeHost);
    USABLE();
    if (!p) return leave(CU_OK);
    return leave(sim_memory_free((uint64_t)(uintptr_t)p, MEM_HOST));
}

SIM_API cuMemHostGetDevicePointer_v2(uint64_t *out, void *p, unsigned flags)
{
    ENTER(cuMemHostGetDevicePointer_v2);
    USABLE();
    const sim_allocation *a = sim_memory_find((uint64_t)(uintptr_t)p);
    if (!out || flags || !a || a->kind != MEM_HOST) return leave(CU_INVALID_VALUE);
    *out = (uint64_t)(uintptr_t)p;
    return leave(CU_OK);
}

SIM_API cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER(cuMemGetInfo_v2);
    USABLE();
    if (free_bytes) *free_bytes = (size_t)(sim_device_memory() - sim_memory_used());
    if (total) *total = (size_t)sim_device_memory();
    return leave(CU_OK);
}

SIM_API cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    ENTER(cuMemGetAddressRange_v2);
    USABLE();
    const sim_allocation *a = sim_memory_find(address);
    if (!a) return leave(CU_NOT_FOUND);
    if (base) *base = a->base;
    if (size) *size = (size_t)a->size;
    return leave(CU_OK);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* A side of a copy: device memory (with shadow), or host memory (without). */
typedef struct side { uint8_t *p, *shadow; uint64_t offset; } side;

static bool device_side(uint64_t address, size_t size, side *s)
{
    sim_allocation *a = sim_memory_find(address);
    if (!a || size > a->size - (address - a->base)) return false;
    s->offset = address - a->base;
    s->p = a->host + s->offset;
    s->shadow = a->shadow;
    return true;
}

static bool either_side(uint64_t address, size_t size, side *s)
{
    if (device_side(address, size, s)) return true;
    if (address >> 40 == 0x30 || !address) return false;      /* the range of device addresses */
    s->p = (uint8_t *)(uintptr_t)address;
    s->shadow = NULL;
    s->offset = 0;
    return true;
}

static void copy(side *to, const side *from, size_t size)
{
    memmove(to->p, from->p, size);
    if (!to->shadow) return;
    if (!from->shadow || sim_shadow_all(from->shadow, from->offset, size)) {
        sim_shadow_set(to->shadow, to->offset, size);
        return;
    }
    bool backwards = to->shadow == from->shadow && to->offset > from->offset;
    for (size_t k = 0; k < size; k++) {                       /* what was not written stays so */
        size_t n = backwards ? size - 1 - k : k;
        uint64_t f = from->offset + n;
        if (from->shadow[f >> 3] >> (f & 7) & 1) sim_shadow_set(to->shadow, to->offset + n, 1);
        else sim_shadow_clear(to->shadow, to->offset + n, 1);
    }
}

static int host_to_device(sim_context *c, uint64_t to, const void *from, size_t size, const void *stream)
{
    side a, b;
    if (!sim_stream_valid(c, stream)) return CU_INVALID_HANDLE;
    if (!size) return CU_OK;
    if (!from || !device_side(to, size, &a) || !either_side((uint64_t)(uintptr_t)from, size, &b))
        return CU_INVALID_VALUE;
    copy(&a, &b, size);
    return CU_OK;
}

static int device_to_host(sim_context *c, void *to, uint64_t from, size_t size, const void *stream)
{
    side a, b;
    if (!sim_stream_valid(c, stream)) return CU_INVALID_HANDLE;
    if (!size) return CU_OK;
    if (!to || !device_side(from, size, &b) || !either_side((uint64_t)(uintptr_t)to, size, &a))
        return CU_INVALID_VALUE;
    sim_host_read(from, size);
    copy(&a, &b, size);
    return CU_OK;
}

static int any_to_any(sim_context *c, uint64_t to, uint64_t from, size_t size, const void *stream,
                      bool devices)
{
    side a, b;
    if (!sim_stream_valid(c, stream)) return CU_INVALID_HANDLE;
    if (!size) return CU_OK;
    if (devices ? !device_side(to, size, &a) || !device_side(from, size, &b)
                : !either_side(to, size, &a) || !either_side(from, size, &b))
        return CU_INVALID_VALUE;
    if (!a.shadow && b.shadow) sim_host_read(from, size);
    copy(&a, &b, size);
    return CU_OK;
}

SIM_API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{ ENTER(cuMemcpyHtoD_v2); USABLE(); return leave(host_to_device(c, to, from, n, NULL)); }
SIM_API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream)
{ ENTER(cuMemcpyHtoDAsync_v2); USABLE(); return leave(host_to_device(c, to, from, n, stream)); }
SIM_API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n)
{ ENTER(cuMemcpyDtoH_v2); USABLE(); return leave(device_to_host(c, to, from, n, NULL)); }
SIM_API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{ ENTER(cuMemcpyDtoHAsync_v2); USABLE(); return leave(device_to_host(c, to, from, n, stream)); }
SIM_API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n)
{ ENTER(cuMemcpyDtoD_v2); USABLE(); return leave(any_to_any(c, to, from, n, NULL, true)); }
SIM_API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{ ENTER(cuMemcpyDtoDAsync_v2); USABLE(); return leave(any_to_any(c, to, from, n, stream, true)); }
SIM_API cuMemcpy(uint64_t to, uint64_t from, size_t n)
{ ENTER(cuMemcpy); USABLE(); return leave(any_to_any(c, to, from, n, NULL, false)); }
SIM_API cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *stream)
{ ENTER(cuMemcpyAsync); USABLE(); return leave(any_to_any(c, to, from, n, stream, false)); }

static int set(sim_context *c, uint64_t to, uint32_t value, uint32_t bytes, size_t n, const void *stream)
{
    side a;
    if (!sim_stream_valid(c, stream)) return CU_INVALID_HANDLE;
    if (!n) return CU_OK;
    if (to % bytes || n > SIZE_MAX / bytes || !device_side(to, n * bytes, &a)) return CU_INVALID_VALUE;
    bool same = bytes == 1 || value == (value & 0xff) * (bytes == 2 ? 0x101u : 0x1010101u);
    if (same) memset(a.p, (int)(value & 0xff), n * bytes);
    else for (size_t k = 0; k < n; k++) memcpy(a.p + k * bytes, &value, bytes);
    if (a.shadow) sim_shadow_set(a.shadow, a.offset, n * bytes);
    return CU_OK;
}

SIM_API cuMemsetD8_v2(uint64_t to, unsigned char v, size_t n)
{
    ENTER(cuMemsetD8_v2);
    USABLE();
    return leave(set(c, to, v, 1, n, NULL));
}
SIM_API cuMemsetD16_v2(uint64_t to, unsigned short v, size_t n)
{
    ENTER(cuMemsetD16_v2);
    USABLE();
    return leave(set(c, to, v, 2, n, NULL));
}
SIM_API cuMemsetD32_v2(uint64_t to, unsigned v, size_t n)
{
    ENTER(cuMemsetD32_v2);
    USABLE();
    return leave(set(c, to, v, 4, n, NULL));
}
SIM_API cuMemsetD8Async(uint64_t to, unsigned char v, size_t n, void *s)
{
    ENTER(cuMemsetD8Async);
    USABLE();
    return leave(set(c, to, v, 1, n, s));
}
SIM_API cuMemsetD16Async(uint64_t to, unsigned short v, size_t n, void *s)
{
    ENTER(cuMemsetD16Async);
    USABLE();
    return leave(set(c, to, v, 2, n, s));
}
SIM_API cuMemsetD32Async(uint64_t to, unsigned v, size_t n, void *s)
{
    ENTER(cuMemsetD32Async);
    USABLE();
    return leave(set(c, to, v, 4, n, s));
}

/* --- streams and events ----------------------------------------------------------------------- */

bool sim_stream_valid(const sim_context *c, const void *stream)
{
    if ((uintptr_t)stream <= 2) return true;                  /* the default, legacy and per-thread streams */
    for (const sim_stream *s = c->streams; s; s = s->next) if (s == stream) return true;
    return false;
}

static int create_stream(sim_context *c, sim_stream **out, unsigned flags, int priority)
{
    if (!out || flags > 1) return CU_INVALID_VALUE;
    sim_stream *s = calloc(1, sizeof *s);
    if (!s) return CU_OUT_OF_MEMORY;
    s->flags = flags;
    s->priority = priority;
    s->next = c->streams;
    c->streams = *out = s;
    return CU_OK;
}

SIM_API cuStreamCreate(sim_stream **out, unsigned flags)
{
    ENTER(cuStreamCreate);
    USABLE();
    return leave(create_stream(c, out, flags, 0));
}
SIM_API cuStreamCreateWithPriority(sim_stream **out, unsigned flags, int priority)
{ ENTER(cuStreamCreateWithPriority); USABLE(); return leave(create_stream(c, out, flags, priority)); }

SIM_API cuStreamDestroy_v2(sim_stream *stream)
{
    ENTER(cuStreamDestroy_v2);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    for (sim_stream **at = &c->streams; *at; at = &(*at)->next)
        if (*at == stream) { *at = stream->next; free(stream); return leave(CU_OK); }
    return leave(CU_INVALID_HANDLE);
}

SIM_API cuStreamSynchronize(void *s)
{
    ENTER(cuStreamSynchronize);
    USABLE();
    return leave(sim_stream_valid(c, s) ? CU_OK : CU_INVALID_HANDLE);
}
SIM_API cuStreamQuery(void *s)
{
    ENTER(cuStreamQuery);
    USABLE();
    return leave(sim_stream_valid(c, s) ? CU_OK : CU_INVALID_HANDLE);
}

static sim_event *event_of(sim_context *c, const void *event)
{
    for (sim_event *e = c->events; e; e = e->next) if (e == event) return e;
    return NULL;
}

SIM_API cuStreamWaitEvent(void *s, void *event, unsigned flags)
{
    ENTER(cuStreamWaitEvent);
    USABLE();
    if (!sim_stream_valid(c, s) || !event_of(c, event)) return leave(CU_INVALID_HANDLE);
    return leave(flags > 1 ? CU_INVALID_VALUE : CU_OK);
}

SIM_API cuEventCreate(sim_event **out, unsigned flags)
{
    ENTER(cuEventCreate);
    USABLE();
    if (!out || flags > 7) return leave(CU_INVALID_VALUE);
    sim_event *e = calloc(1, sizeof *e);
    if (!e) return leave(CU_OUT_OF_MEMORY);
    e->flags = flags;
    e->next = c->events;
    c->events = *out = e;
    return leave(CU_OK);
}

SIM_API cuEventDestroy_v2(sim_event *event)
{
    ENTER(cuEventDestroy_v2);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    for (sim_event **at = &c->events; *at; at = &(*at)->next)
        if (*at == event) { *at = event->next; free(event); return leave(CU_OK); }
    return leave(CU_INVALID_HANDLE);
}

SIM_API cuEventRecord(void *event, void *s)
{
    ENTER(cuEventRecord);
    USABLE();
    sim_event *e = event_of(c, event);
    if (!e || !sim_stream_valid(c, s)) return leave(CU_INVALID_HANDLE);
    e->time = sim_now_ns();
    e->recorded = true;
    return leave(CU_OK);
}

SIM_API cuEventSynchronize(void *event)
{
    ENTER(cuEventSynchronize);
    USABLE();
    return leave(event_of(c, event) ? CU_OK : CU_INVALID_HANDLE);
}
SIM_API cuEventQuery(void *event)
{
    ENTER(cuEventQuery);
    USABLE();
    return leave(event_of(c, event) ? CU_OK : CU_INVALID_HANDLE);
}

SIM_API cuEventElapsedTime(float *ms, void *start, void *end)
{
    ENTER(cuEventElapsedTime);
    USABLE();
    const sim_event *a = event_of(c, start), *b = event_of(c, end);
    if (!ms) return leave(CU_INVALID_VALUE);
    if (!a || !b || !a->recorded || !b->recorded || ((a->flags | b->flags) & 2))
        return leave(CU_INVALID_HANDLE);
    *ms = (float)((double)((int64_t)b->time - (int64_t)a->time) * 1e-6);
    return leave(CU_OK);
}
