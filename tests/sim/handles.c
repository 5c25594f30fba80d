/* handles.c - the handles of contexts, modules, functions, streams, events, graphs, ...
 *
 * A handle is the address of a record in one reserved range. Records are never reused, so a
 * handle of a destroyed object is recognised for ever, and any other pointer is told from
 * a handle without access to the memory that it points to. */
#include "driver.h"
#include <sys/mman.h>

enum { MOST = 1 << 24, LEAST = 1 << 16 };

static sim_handle *records;
static uint32_t count, capacity;

static const char *const kind_names[] = {
    [H_FREE] = "handle",     [H_CONTEXT] = "context", [H_MODULE] = "module",   [H_FUNCTION] = "function",
    [H_STREAM] = "stream",   [H_EVENT] = "event",     [H_LINK] = "link state", [H_GRAPH] = "graph",
    [H_NODE] = "graph node", [H_EXEC] = "graph exec", [H_LIBRARY] = "library", [H_KERNEL] = "kernel",
    [H_POOL] = "memory pool", [H_PHYSICAL] = "memory handle", [H_OBJECT] = "user object",
    [H_ARRAY] = "array", [H_MIPMAP] = "mipmapped array", [H_TEXTURE] = "texture object",
    [H_SURFACE] = "surface object", [H_EXTERNAL] = "external memory"
};

static bool reserve(void)
{
    for (uint32_t n = MOST; n >= LEAST && !records; n /= 2) {
        void *p = mmap(NULL, (size_t)n * sizeof *records, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) continue;
        records = p;
        capacity = n;
        count = 1;                                            /* record 0 stays unused */
    }
    return records != NULL;
}

sim_handle *sim_handle_new(sim_handle_kind kind, void *object)
{
    if (!records && !reserve()) return NULL;
    if (count == capacity) return NULL;
    sim_handle *h = &records[count++];
    h->object = object;
    h->kind = (uint16_t)kind;
    h->entry = (uint16_t)sim_current_entry(&h->call);
    return h;
}

void sim_describe_creator(const sim_handle *h, char *out, size_t cap)
{
    snprintf(out, cap, "%s, call %llu", sim_entry_name(h->entry), (unsigned long long)h->call);
}

const sim_handle *sim_handle_of_any_kind(const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)records;
    bool one = handle && records && offset < count * sizeof *records && offset % sizeof *records == 0;
    return one ? &records[offset / sizeof *records] : NULL;
}

void *sim_handle_get(sim_handle_kind kind, const void *handle)
{
    const sim_handle *h = sim_handle_of_any_kind(handle);
    if (!h || h->kind != kind) return NULL;
    if (!h->object && sim_driver_option.stale_handles) {
        char maker[96];
        uint64_t call;
        int now = sim_current_entry(&call);
        sim_describe_creator(h, maker, sizeof maker);
        sim_report_host("stale-handle",
                        "%s (call %llu) is given a %s that was destroyed before; it was made by %s",
                        sim_entry_name(now), (unsigned long long)call, kind_names[kind], maker);
    }
    return h->object;
}

void sim_handle_drop(sim_handle *h) { if (h) h->object = NULL; }

void sim_handles_release(void)
{
    if (records) munmap(records, (size_t)capacity * sizeof *records);
    records = NULL;
    count = capacity = 0;
}
