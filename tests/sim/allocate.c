/* allocate.c - memory of all kinds: device, pitched, pinned, registered, managed, pools, graphs; queries about
 * pointers. */
#include "driver.h"

static sim_allocation *record_call(sim_allocation *a)
{
    a->entry = (uint16_t)sim_current_entry(&a->call);
    return a;
}

/* Returns if an active capture forbids calls that could wait for the device. */
#define ALLOWED() do { if (sim_forbidden_in_capture(c)) return leave(900); } while (0)

/* --- device memory ---------------------------------------------------------------------------- */

static int device_alloc(sim_context *c, uint64_t *out, size_t size)
{
    sim_allocation *a;
    if (!out || !size) return CU_INVALID_VALUE;
    int error = sim_memory_alloc(c, size, MEM_DEVICE, NULL, &a);
    if (!error) *out = record_call(a)->base;
    return error;
}

SIM_API cuMemAlloc_v2(uint64_t *out, size_t size)
{
    ENTER(cuMemAlloc_v2);
    USABLE();
    ALLOWED();
    return leave(device_alloc(c, out, size));
}

SIM_API cuMemAllocPitch_v2(uint64_t *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    ENTER(cuMemAllocPitch_v2);
    USABLE();
    ALLOWED();
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return leave(CU_INVALID_VALUE);
    if (width > INT32_MAX || height > SIZE_MAX / 4 / (width + 511)) return leave(CU_INVALID_VALUE);
    size_t row = (width + 511) / 512 * 512;
    int code = device_alloc(c, out, row * height);
    if (!code) *pitch = row;
    return leave(code);
}

/* Freeing waits for the device. Accesses of streams that nothing else has waited for are still reported as races. */
static int release(sim_context *c, sim_allocation *a)
{
    sim_stream *s = sim_stream_legacy(c);
    sim_work *w = s ? sim_work_new(W_FREE, 0) : NULL;
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.release.address = a->base;
    w->synchronous = true;
    int code = sim_enqueue(s, w);
    return code ? code : sim_synchronise(c);
}

sim_allocation *sim_memory_of_call(uint64_t address)
{
    sim_allocation *a = sim_memory_at(address);
    return a && a->base == address && (a->of_graph ? a->graph_live : !a->freed) ? a : NULL;
}

static int report_bad_address(uint64_t address, const char *what)
{
    const sim_allocation *a = sim_memory_at(address);
    uint64_t call;
    int entry = sim_current_entry(&call);
    if (a && a->freed && a->base == address)
        sim_report_host("use-after-free",
                        "%s (call %llu) is given %s that was freed before: %llu bytes at 0x%llx",
                        sim_entry_name(entry), (unsigned long long)call, what, (unsigned long long)a->size,
                        (unsigned long long)a->base);
    else if (a && !a->freed && a->base != address)
        sim_report_host("bad-free", "%s (call %llu) is given 0x%llx, which is %llu bytes into an allocation",
                        sim_entry_name(entry), (unsigned long long)call, (unsigned long long)address,
                        (unsigned long long)(address - a->base));
    return CU_INVALID_VALUE;
}

SIM_API cuMemFree_v2(uint64_t address)
{
    ENTER(cuMemFree_v2);
    USABLE();
    if (!address) return leave(CU_OK);
    ALLOWED();
    sim_allocation *a = sim_memory_of_call(address);
    if (!a || a->freed_later || !(a->kind == MEM_DEVICE || (a->managed && !a->label)))
        return leave(report_bad_address(address, "memory"));
    a->graph_live = false;
    return leave(release(c, a));
}

SIM_API cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    ENTER(cuMemGetInfo_v2);
    USABLE();
    (void)c;
    if (free_bytes) *free_bytes = (size_t)(sim_device_memory() - sim_memory_used());
    if (total) *total = (size_t)sim_device_memory();
    return leave(CU_OK);
}

SIM_API cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t address)
{
    ENTER(cuMemGetAddressRange_v2);
    USABLE();
    (void)c;
    const sim_allocation *a = sim_memory_find(address);
    if (!a) return leave(CU_NOT_FOUND);
    if (base) *base = a->base;
    if (size) *size = (size_t)a->size;
    return leave(CU_OK);
}

/* --- host memory ------------------------------------------------------------------------------ */

static int host_alloc(sim_context *c, void **out, size_t size, unsigned flags)
{
    sim_allocation *a;
    if (!out || !size) return CU_INVALID_VALUE;
    int error = sim_memory_alloc(c, size, MEM_HOST, NULL, &a);
    if (error) return error;
    record_call(a)->flags = flags;
    *out = a->host;
    return CU_OK;
}

SIM_API cuMemAllocHost_v2(void **out, size_t size)
{
    ENTER(cuMemAllocHost_v2);
    USABLE();
    ALLOWED();
    return leave(host_alloc(c, out, size, 0));
}

SIM_API cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    ENTER(cuMemHostAlloc);
    USABLE();
    ALLOWED();
    if (flags & ~7u) return leave(CU_INVALID_VALUE);
    return leave(host_alloc(c, out, size, flags));
}

SIM_API cuMemFreeHost(void *p)
{
    ENTER(cuMemFreeHost);
    USABLE();
    if (!p) return leave(CU_OK);
    ALLOWED();
    sim_allocation *a = sim_memory_find((uint64_t)(uintptr_t)p);
    if (!a || a->host != p || a->kind != MEM_HOST || a->managed || a->owned_by_caller)
        return leave(CU_INVALID_VALUE);
    return leave(release(c, a));
}

SIM_API cuMemHostRegister_v2(void *p, size_t size, unsigned flags)
{
    ENTER(cuMemHostRegister_v2);
    USABLE();
    ALLOWED();
    uint64_t address = (uint64_t)(uintptr_t)p;
    sim_allocation *a;
    if (!p || !size || flags & ~15u) return leave(CU_INVALID_VALUE);
    if (flags & 4) return leave(CU_NOT_SUPPORTED);            /* I/O memory of a device */
    if (sim_memory_find(address) || sim_memory_find(address + size - 1)) return leave(712);
    int error = sim_memory_register(c, p, size, &a);
    if (!error) record_call(a)->flags = flags;
    return leave(error);
}

SIM_API cuMemHostUnregister(void *p)
{
    ENTER(cuMemHostUnregister);
    USABLE();
    ALLOWED();
    if (!p) return leave(CU_INVALID_VALUE);
    sim_allocation *a = sim_memory_find((uint64_t)(uintptr_t)p);
    if (!a || a->host != p || !a->owned_by_caller) return leave(713);
    return leave(release(c, a));
}

static sim_allocation *host_of(const void *p)
{
    sim_allocation *a = sim_memory_find((uint64_t)(uintptr_t)p);
    return a && a->kind == MEM_HOST ? a : NULL;
}

SIM_API cuMemHostGetDevicePointer_v2(uint64_t *out, void *p, unsigned flags)
{
    ENTER(cuMemHostGetDevicePointer_v2);
    USABLE();
    (void)c;
    if (!out || flags || !host_of(p)) return leave(CU_INVALID_VALUE);
    *out = (uint64_t)(uintptr_t)p;
    return leave(CU_OK);
}

SIM_API cuMemHostGetFlags(unsigned *out, void *p)
{
    ENTER(cuMemHostGetFlags);
    USABLE();
    (void)c;
    const sim_allocation *a = host_of(p);
    if (!out || !a || a->owned_by_caller) return leave(CU_INVALID_VALUE);
    *out = a->flags | 2;                                      /* all of it is mapped to the device */
    return leave(CU_OK);
}

SIM_API cuMemAllocManaged(uint64_t *out, size_t size, unsigned flags)
{
    ENTER(cuMemAllocManaged);
    USABLE();
    ALLOWED();
    sim_allocation *a;
    if (!out || !size || (flags != 1 && flags != 2)) return leave(CU_INVALID_VALUE);
    int error = sim_memory_alloc(c, size, MEM_HOST, NULL, &a);
    if (error) return leave(error);
    record_call(a)->managed = true;
    *out = a->base;
    return leave(CU_OK);
}

static int check_advice(sim_context *c, uint64_t address, size_t size, const void *stream)
{
    const sim_allocation *a = sim_memory_find(address);
    if (!sim_stream_of(c, stream)) return CU_INVALID_HANDLE;
    return !a || !a->managed || !size || size > a->size - (address - a->base) ? CU_INVALID_VALUE : CU_OK;
}

typedef struct location { int type, id; } location;

SIM_API cuMemPrefetchAsync(uint64_t address, size_t size, int device, void *stream)
{
    ENTER(cuMemPrefetchAsync);
    USABLE();
    return leave(device != 0 && device != -1 ? CU_INVALID_DEVICE : check_advice(c, address, size, stream));
}

SIM_API cuMemPrefetchAsync_v2(uint64_t address, size_t size, location where, unsigned flags, void *stream)
{
    ENTER(cuMemPrefetchAsync_v2);
    USABLE();
    if (flags || where.type < 1 || where.type > 4) return leave(CU_INVALID_VALUE);
    return leave(where.type == 1 && where.id ? CU_INVALID_DEVICE : check_advice(c, address, size, stream));
}

SIM_API cuMemAdvise(uint64_t address, size_t size, int advice, int device)
{
    ENTER(cuMemAdvise);
    USABLE();
    if (advice < 1 || advice > 6) return leave(CU_INVALID_VALUE);
    return leave(device != 0 && device != -1 ? CU_INVALID_DEVICE : check_advice(c, address, size, NULL));
}

SIM_API cuMemAdvise_v2(uint64_t address, size_t size, int advice, location where)
{
    ENTER(cuMemAdvise_v2);
    USABLE();
    (void)where;
    return leave(advice < 1 || advice > 6 ? CU_INVALID_VALUE : check_advice(c, address, size, NULL));
}

/* Managed memory is equally available everywhere: no advice, preferred location or prefetch is stored. */
static int range_attribute(sim_context *c, int attribute, int *out, size_t size, uint64_t address,
                           size_t bytes)
{
    enum { READ_MOSTLY = 1, PREFERRED, ACCESSED_BY, LAST_PREFETCH };
    int code = check_advice(c, address, bytes, NULL);
    if (code) return code;
    if (!out || !size || size % sizeof *out || attribute < READ_MOSTLY || attribute > LAST_PREFETCH)
        return CU_INVALID_VALUE;
    if (attribute != ACCESSED_BY && size != sizeof *out) return CU_INVALID_VALUE;
    for (size_t k = 0; k < size / sizeof *out; k++) out[k] = attribute == READ_MOSTLY ? 0 : -2;
    return CU_OK;
}

SIM_API cuMemRangeGetAttribute(void *out, size_t size, int attribute, uint64_t address, size_t bytes)
{
    ENTER(cuMemRangeGetAttribute);
    USABLE();
    return leave(range_attribute(c, attribute, out, size, address, bytes));
}

SIM_API cuMemRangeGetAttributes(void **out, const size_t *sizes, const int *attributes, size_t count,
                                uint64_t address, size_t bytes)
{
    ENTER(cuMemRangeGetAttributes);
    USABLE();
    if (!out || !sizes || !attributes || !count) return leave(CU_INVALID_VALUE);
    for (size_t k = 0; k < count; k++) {
        int code = range_attribute(c, attributes[k], out[k], sizes[k], address, bytes);
        if (code) return leave(code);
    }
    return leave(CU_OK);
}

/* --- stream-ordered allocation, pools --------------------------------------------------------- */

typedef struct sim_pool {
    sim_handle *handle;
    struct sim_pool *next;
    bool standard, gone;
    int reuse[3];
    uint64_t threshold, used, high;
} sim_pool;

static sim_pool *new_pool(sim_context *c)
{
    sim_pool *p = calloc(1, sizeof *p);
    if (!p || !(p->handle = sim_handle_new(H_POOL, p))) { free(p); return NULL; }
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    p->next = c->pools;
    c->pools = p;
    return p;
}

static sim_pool *standard_pool(sim_context *c)
{
    for (sim_pool *p = c->pools; p; p = p->next) if (p->standard) return p;
    sim_pool *p = new_pool(c);
    if (p) p->standard = true;
    return p;
}

void sim_pools_free(sim_context *c)
{
    while (c->pools) {
        sim_pool *p = c->pools;
        c->pools = p->next;
        sim_handle_drop(p->handle);
        free(p);
    }
}

void sim_pool_returned(sim_allocation *a) { if (a->pool) a->pool->used -= a->size; }

static int alloc_async(sim_context *c, uint64_t *out, size_t size, sim_pool *pool, const void *stream)
{
    sim_stream *s = sim_stream_of(c, stream);
    if (!s) return CU_INVALID_HANDLE;
    if (!out || !size) return CU_INVALID_VALUE;
    sim_allocation *a;
    sim_work *w;
    int code;
    if (sim_is_capturing(s)) {
        if ((code = sim_graph_alloc(c, size, &w)) != 0) return code;
        *out = w->u.release.address;
        return sim_submit(s, w);
    }
    if (!pool) return CU_OUT_OF_MEMORY;
    if (!(w = sim_work_new(W_EMPTY, 0))) return CU_OUT_OF_MEMORY;
    code = sim_memory_alloc(c, size, MEM_DEVICE, NULL, &a);
    if (code) { sim_work_free(w); return code; }
    record_call(a)->pool = pool;
    pool->used += size;
    if (pool->used > pool->high) pool->high = pool->used;
    *out = w->u.release.address = a->base;
    return sim_submit(s, w);
}

SIM_API cuMemAllocAsync(uint64_t *out, size_t size, void *stream)
{ ENTER(cuMemAllocAsync); USABLE(); return leave(alloc_async(c, out, size, standard_pool(c), stream)); }

SIM_API cuMemAllocFromPoolAsync(uint64_t *out, size_t size, void *pool, void *stream)
{
    ENTER(cuMemAllocFromPoolAsync);
    USABLE();
    sim_pool *p = sim_handle_get(H_POOL, pool);
    return leave(p ? alloc_async(c, out, size, p, stream) : CU_INVALID_HANDLE);
}

SIM_API cuMemFreeAsync(uint64_t address, void *stream)
{
    ENTER(cuMemFreeAsync);
    USABLE();
    sim_stream *s = sim_stream_of(c, stream);
    if (!s) return leave(CU_INVALID_HANDLE);
    if (!address) return leave(CU_OK);
    sim_work *w;
    if (sim_is_capturing(s)) {
        int code = sim_graph_free(address, &w);
        return leave(code ? code : sim_submit(s, w));
    }
    sim_allocation *a = sim_memory_of_call(address);
    if (!a || a->kind != MEM_DEVICE || a->freed_later) return leave(report_bad_address(address, "memory"));
    if (!(w = sim_work_new(W_FREE, 0))) return leave(CU_OUT_OF_MEMORY);
    a->freed_later = true;
    a->graph_live = false;
    w->u.release.address = address;
    return leave(sim_submit(s, w));
}

static int get_pool(sim_context *c, void **out, int device)
{
    if (!out) return CU_INVALID_VALUE;
    if (device) return CU_INVALID_DEVICE;
    sim_pool *p = standard_pool(c);
    if (!p) return CU_OUT_OF_MEMORY;
    *out = p->handle;
    return CU_OK;
}

SIM_API cuDeviceGetDefaultMemPool(void **out, int device)
{ ENTER(cuDeviceGetDefaultMemPool); USABLE(); return leave(get_pool(c, out, device)); }
SIM_API cuDeviceGetMemPool(void **out, int device)
{ ENTER(cuDeviceGetMemPool); USABLE(); return leave(get_pool(c, out, device)); }

SIM_API cuDeviceSetMemPool(int device, void *pool)
{
    ENTER(cuDeviceSetMemPool);
    USABLE();
    sim_pool *p = sim_handle_get(H_POOL, pool);
    if (device) return leave(CU_INVALID_DEVICE);
    if (!p) return leave(CU_INVALID_HANDLE);
    for (sim_pool *q = c->pools; q; q = q->next) q->standard = q == p;
    return leave(CU_OK);
}

typedef struct pool_properties {
    int type, handles;
    location where;
} pool_properties; /* its first members */

SIM_API cuMemPoolCreate(void **out, const pool_properties *p)
{
    ENTER(cuMemPoolCreate);
    USABLE();
    if (!out || !p || p->type != 1 || p->where.type != 1) return leave(CU_INVALID_VALUE);
    if (p->handles) return leave(CU_NOT_SUPPORTED);
    if (p->where.id) return leave(CU_INVALID_DEVICE);
    sim_pool *pool = new_pool(c);
    if (!pool) return leave(CU_OUT_OF_MEMORY);
    *out = pool->handle;
    return leave(CU_OK);
}

SIM_API cuMemPoolDestroy(void *handle)
{
    ENTER(cuMemPoolDestroy);
    USABLE();
    (void)c;
    sim_pool *p = sim_handle_get(H_POOL, handle);
    if (!p) return leave(CU_INVALID_HANDLE);
    if (p->standard) return leave(CU_INVALID_VALUE);
    sim_handle_drop(p->handle);                               /* it remains until its allocations are freed */
    p->gone = true;
    return leave(CU_OK);
}

static int pool_attribute(void *handle, int attribute, void *value, bool set)
{
    sim_pool *p = sim_handle_get(H_POOL, handle);
    if (!p) return CU_INVALID_HANDLE;
    if (!value || attribute < 1 || attribute > 8) return CU_INVALID_VALUE;
    uint64_t *at = attribute == 4 ? &p->threshold : attribute == 6 || attribute == 8 ? &p->high : &p->used;
    if (attribute <= 3) {
        if (set) p->reuse[attribute - 1] = *(int *)value != 0;
        else *(int *)value = p->reuse[attribute - 1];
        return CU_OK;
    }
    if (!set) { *(uint64_t *)value = *at; return CU_OK; }
    if (attribute == 4) *at = *(uint64_t *)value;
    else if (attribute == 5 || attribute == 7 || *(uint64_t *)value) return CU_INVALID_VALUE;
    else *at = p->used;
    return CU_OK;
}

SIM_API cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{ ENTER(cuMemPoolSetAttribute); return leave(pool_attribute(pool, attribute, value, true)); }
SIM_API cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{ ENTER(cuMemPoolGetAttribute); return leave(pool_attribute(pool, attribute, value, false)); }

SIM_API cuMemPoolTrimTo(void *pool, size_t keep)
{
    ENTER(cuMemPoolTrimTo);
    (void)keep;
    return leave(sim_handle_get(H_POOL, pool) ? CU_OK : CU_INVALID_HANDLE);
}

typedef struct access { location where; int flags; } access;

/* There is one device, which can always read and write. */
SIM_API cuMemPoolSetAccess(void *pool, const access *map, size_t count)
{
    ENTER(cuMemPoolSetAccess);
    if (!sim_handle_get(H_POOL, pool)) return leave(CU_INVALID_HANDLE);
    if (!map || !count) return leave(CU_INVALID_VALUE);
    for (size_t k = 0; k < count; k++) {
        if (map[k].where.type == 1 && map[k].where.id) return leave(CU_INVALID_DEVICE);
        if (map[k].flags != 3) return leave(CU_INVALID_VALUE);
    }
    return leave(CU_OK);
}

SIM_API cuMemPoolGetAccess(int *flags, void *pool, const location *where)
{
    ENTER(cuMemPoolGetAccess);
    if (!sim_handle_get(H_POOL, pool)) return leave(CU_INVALID_HANDLE);
    if (!flags || !where) return leave(CU_INVALID_VALUE);
    *flags = where->type == 1 && !where->id ? 3 : 0;
    return leave(CU_OK);
}

/* --- memory of graphs: the address exists with the node, the memory from launch to free ----------- */

int sim_graph_alloc(sim_context *c, uint64_t size, sim_work **out)
{
    sim_allocation *a;
    if (!size) return CU_INVALID_VALUE;
    sim_work *w = sim_work_new(W_ALLOC, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    int code = sim_memory_alloc(c, size, MEM_DEVICE, NULL, &a);
    if (code) { sim_work_free(w); return code; }
    sim_memory_of_graph(record_call(a));
    w->u.release.address = a->base;
    *out = w;
    return CU_OK;
}

int sim_graph_free(uint64_t address, sim_work **out)
{
    const sim_allocation *a = sim_memory_at(address);
    if (!a || !a->of_graph || a->base != address) return CU_INVALID_VALUE;
    if (!(*out = sim_work_new(W_FREE, 0))) return CU_OUT_OF_MEMORY;
    (*out)->u.release.address = address;
    return CU_OK;
}

SIM_API cuDeviceGraphMemTrim(int device)
{
    ENTER(cuDeviceGraphMemTrim);
    if (device) return leave(CU_INVALID_DEVICE);
    sim_graph_memory_reset(2);
    return leave(CU_OK);
}

static int graph_memory(int device, int attribute, const void *value)
{ return device ? CU_INVALID_DEVICE : !value || attribute < 0 || attribute > 3 ? CU_INVALID_VALUE : CU_OK; }

SIM_API cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
    ENTER(cuDeviceGetGraphMemAttribute);
    int code = graph_memory(device, attribute, value);
    if (!code) *value = sim_graph_memory(attribute);
    return leave(code);
}

SIM_API cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value)
{
    ENTER(cuDeviceSetGraphMemAttribute);
    int code = graph_memory(device, attribute, value);
    if (!code && (!(attribute & 1) || *value)) code = CU_INVALID_VALUE;      /* only the high marks, to 0 */
    if (!code) sim_graph_memory_reset(attribute);
    return leave(code);
}

/* --- pointer attributes ----------------------------------------------------------------------- */

static int pointer_attribute(void *out, int attribute, uint64_t address, bool strict)
{
    const sim_allocation *a = sim_memory_find(address);
    bool host = a && a->kind == MEM_HOST && !a->managed;
#define PUT(type, v) do { *(type *)out = (type)(v); return CU_OK; } while (0)
    if (!out || attribute < 1 || attribute > 20) return CU_INVALID_VALUE;
    if (!a) {
        if (strict) return CU_INVALID_VALUE;
        switch (attribute) {
        case 1: case 3: case 4: case 11: case 17: PUT(void *, NULL);
        case 9: PUT(int, -2);
        case 6: case 8: case 10: case 13: case 15: PUT(bool, false);
        case 7: case 12: case 14: case 18: case 19: case 20: PUT(uint64_t, 0);
        case 5: return CU_INVALID_VALUE;
        default: PUT(unsigned, 0);
        }
    }
    switch (attribute) {
    case 1: PUT(void *, a->context->handle);
    case 2: PUT(unsigned, host ? 1 : 2);
    case 3: PUT(uint64_t, address);
    case 4:
        if (a->kind != MEM_HOST) { if (strict) return CU_INVALID_VALUE; PUT(void *, NULL); }
        PUT(uint64_t, address);
    case 6: PUT(bool, a->flags >> 31);
    case 7: case 20: PUT(uint64_t, a->serial);
    case 8: PUT(bool, a->managed);
    case 9: PUT(int, 0);
    case 10: PUT(bool, false);
    case 11: case 19: PUT(uint64_t, a->base);
    case 12: case 18: PUT(size_t, a->size);
    case 13: PUT(bool, true);
    case 14: PUT(uint64_t, 0);
    case 15: PUT(bool, false);
    case 16: PUT(unsigned, 3);
    case 17: PUT(void *, a->pool ? a->pool->handle : NULL);
    default: return CU_NOT_SUPPORTED;
    }
#undef PUT
}

SIM_API cuPointerGetAttribute(void *out, int attribute, uint64_t address)
{
    ENTER(cuPointerGetAttribute);
    USABLE();
    (void)c;
    return leave(pointer_attribute(out, attribute, address, true));
}

SIM_API cuPointerGetAttributes(unsigned count, int *attributes, void **out, uint64_t address)
{
    ENTER(cuPointerGetAttributes);
    USABLE();
    (void)c;
    if (!count || !attributes || !out) return leave(CU_INVALID_VALUE);
    int code = CU_OK;
    for (unsigned k = 0; k < count && !code; k++)
        code = pointer_attribute(out[k], attributes[k], address, false);
    return leave(code);
}

SIM_API cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
    ENTER(cuPointerSetAttribute);
    USABLE();
    (void)c;
    sim_allocation *a = sim_memory_find(address);
    if (!value || !a || attribute != 6) return leave(CU_INVALID_VALUE);
    a->flags = (a->flags & 0x7fffffffu) | (*(const int *)value ? 1u << 31 : 0);
    return leave(CU_OK);
}
