/* arena.c - device memory: allocations, their shadow, and the allocation at an address.
 *
 * Device addresses are never reused and are not valid on the host (a host that dereferences one crashes, as it
 * would with a GPU); gaps lie between allocations. Data and shadow are mapped without reserve, so untouched pages
 * cost nothing. Pinned host memory has its host address and no shadow. All changes happen under the
 * driver's lock, while no kernel runs. */
#include "sim.h"
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_ADDRESS UINT64_C(0x302000000000)
#define GUARD         UINT64_C(0x10000)

static sim_allocation **device_list, **host_list;             /* sorted by base */
static uint32_t device_count, device_capacity, host_count, host_capacity;
static uint64_t next_address = FIRST_ADDRESS, used, serial, graph_memory[4];

static void *map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static size_t pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (size_t)((bytes + page - 1) / page * page);
}

static sim_allocation *search(sim_allocation **list, uint32_t n,
                              uint64_t address) /* the last with base <= address */
{
    uint32_t lo = 0;
    while (lo < n) {
        uint32_t mid = (lo + n) / 2;
        if (list[mid]->base <= address) lo = mid + 1; else n = mid;
    }
    return lo ? list[lo - 1] : NULL;
}

static int allocate(sim_context *c, uint64_t size, int kind, const char *label, void *mine,
    sim_allocation **out)
{
    bool host = kind == MEM_HOST;
    sim_allocation ***list = host ? &host_list : &device_list, *a;
    uint32_t *count = host ? &host_count : &device_count,
             *capacity = host ? &host_capacity : &device_capacity;
    if (!size) return 1;
    if (!host && (size > sim_device_memory() || used > sim_device_memory() - size)) return 2;
    if (*count == *capacity) {
        uint32_t wanted = *capacity ? *capacity * 2 : 256;
        sim_allocation **grown = realloc(*list, wanted * sizeof *grown);
        if (!grown) return 2;
        *list = grown;
        *capacity = wanted;
    }
    if (!(a = calloc(1, sizeof *a))) return 2;
    a->host_mapped = pages(size);
    a->owned_by_caller = mine != NULL;
    a->host = mine ? mine : map(a->host_mapped);
    if (a->host && !host) {
        a->shadow_mapped = pages(size / 8 + 16);
        a->shadow = map(a->shadow_mapped);
    }
    if (!a->host || (!host && !a->shadow)) {
        if (a->host && !mine) munmap(a->host, a->host_mapped);
        free(a);
        return 2;
    }
    a->size = size;
    a->kind = (uint8_t)kind;
    a->context = c;
    a->serial = ++serial;
    if (label && (a->label = strdup(label)) == NULL) a->label = "";
    uint32_t at = *count;
    if (host) {
        a->base = (uint64_t)(uintptr_t)a->host;
        while (at && (*list)[at - 1]->base > a->base) { (*list)[at] = (*list)[at - 1]; at--; }
    } else {
        a->base = next_address;
        next_address = (next_address + size + GUARD + 511) / 512 * 512;
        used += size;
    }
    (*list)[at] = a;
    ++*count;
    *out = a;
    return 0;
}

int sim_memory_alloc(sim_context *c, uint64_t size, int kind, const char *label, sim_allocation **out)
{ return allocate(c, size, kind, label, NULL, out); }

int sim_memory_register(sim_context *c, void *host, uint64_t size, sim_allocation **out)
{ return allocate(c, size, MEM_HOST, NULL, host, out); }

int sim_memory_adopt(sim_context *c, void *mapped, uint64_t size, sim_allocation **out)
{
    int code = allocate(c, size, MEM_DEVICE, NULL, mapped, out);
    if (code) return code;
    sim_allocation *a = *out;
    a->owned_by_caller = false;
    a->host_mapped = pages((uintptr_t)mapped % (uint64_t)sysconf(_SC_PAGESIZE) + size);
    sim_shadow_set(a->shadow, 0, size);
    return 0;
}

static void unmap(sim_allocation *a)
{
    sim_order_freed(a);
    /* Adopted memory may begin inside a page. */
    uint8_t *first = a->host - (uintptr_t)a->host % (uint64_t)sysconf(_SC_PAGESIZE);
    if (a->host && !a->owned_by_caller) munmap(first, a->host_mapped);
    if (a->shadow) munmap(a->shadow, a->shadow_mapped);
    free(atomic_exchange(&a->races, NULL));
    a->host = a->shadow = NULL;
    if (!a->freed && a->kind != MEM_HOST) used -= a->size;
    if (!a->freed && a->of_graph) graph_memory[0] -= a->size;
    a->freed = true;
}

/* --- memory of graphs: keeps its address, is allocated and freed by launches --------------------- */

uint64_t sim_graph_memory(int attribute) { return graph_memory[attribute]; }

/* 1 and 3: resets the high mark to the current value. 2: trims the reserved memory to what is used. */
void sim_graph_memory_reset(int attribute)
{ graph_memory[attribute] = graph_memory[attribute & 1 ? attribute - 1 : 0]; }

static void count_graph_memory(void)
{
    if (graph_memory[0] > graph_memory[1]) graph_memory[1] = graph_memory[0];
    if (graph_memory[0] > graph_memory[2]) graph_memory[2] = graph_memory[0];
    if (graph_memory[2] > graph_memory[3]) graph_memory[3] = graph_memory[2];
}

static void empty(sim_allocation *a)
{
    (void)madvise(a->host, a->host_mapped, MADV_DONTNEED);
    (void)madvise(a->shadow, a->shadow_mapped, MADV_DONTNEED);
}

void sim_memory_sleep(sim_allocation *a)
{
    if (a->freed) return;
    sim_order_freed(a);
    free(atomic_exchange(&a->races, NULL));
    empty(a);
    a->freed = true;
    used -= a->size;
    graph_memory[0] -= a->size;
}

void sim_memory_of_graph(sim_allocation *a)
{
    a->of_graph = a->freed = true;
    used -= a->size;
}

void sim_memory_wake(sim_allocation *a)
{
    if (!a->freed) { empty(a); return; }
    a->freed = false;
    used += a->size;
    graph_memory[0] += a->size;
    count_graph_memory();
}

static void free_record(sim_allocation *a)
{
    if (a->label && *a->label) free((char *)(uintptr_t)a->label);
    free(a);
}

int sim_memory_free(uint64_t base, int kind)
{
    if (kind == MEM_HOST) {
        for (uint32_t k = 0; k < host_count; k++) {
            if (host_list[k]->base != base) continue;
            unmap(host_list[k]);
            free_record(host_list[k]);
            memmove(&host_list[k], &host_list[k + 1], (--host_count - k) * sizeof *host_list);
            return 0;
        }
        return 1;
    }
    sim_allocation *a = search(device_list, device_count, base);
    if (!a || a->base != base || a->freed || a->kind != kind) return 1;
    unmap(a);
    return 0;
}

/* Frees what a context still has; the records of freed memory stay, to recognise a use after free. */
void sim_memory_free_context(sim_context *c)
{
    sim_heap_release(c);
    for (uint32_t k = 0; k < device_count; k++)
        if (device_list[k]->context == c && device_list[k]->host) unmap(device_list[k]);
    for (uint32_t k = 0; k < host_count;) {
        if (host_list[k]->context == c) (void)sim_memory_free(host_list[k]->base, MEM_HOST);
        else k++;
    }
}

sim_allocation *sim_memory_at(uint64_t address)
{
    sim_allocation *a = sim_memory_find(address);
    if (a) return a;
    a = search(device_list, device_count, address);
    return a && address - a->base < a->size ? a : NULL;
}

sim_allocation *sim_memory_next(const sim_context *c, uint32_t *at)
{
    for (; *at < device_count + host_count; ++*at) {
        sim_allocation *a = *at < device_count ? device_list[*at] : host_list[*at - device_count];
        if (a->context != c || a->freed) continue;
        ++*at;
        return a;
    }
    return NULL;
}

sim_allocation *sim_memory_find(uint64_t address)
{
    if (SIM_UNLIKELY(address - SIM_HEAP_BASE < SIM_HEAP_SPAN)) return sim_heap_find(address);
    sim_allocation *a = search(device_list, device_count, address);
    if (a && !a->freed && address - a->base < a->size) return a;
    a = search(host_list, host_count, address);
    return a && address - a->base < a->size ? a : NULL;
}

void sim_memory_describe(uint64_t address, uint64_t size, char *out, size_t cap)
{
    sim_allocation *before = search(device_list, device_count, address), *after = NULL;
    uint32_t lo = 0, n = device_count;
    while (lo < n) {
        uint32_t mid = (lo + n) / 2;
        if (device_list[mid]->base <= address) lo = mid + 1;
        else n = mid;
    }
    if (lo < device_count) after = device_list[lo];
    char what[160];
    (void)size;
    if (sim_heap_describe(address, out, cap)) return;
    if (address < 4096) { snprintf(out, cap, "a null pointer"); return; }
    const sim_allocation *host = search(host_list, host_count, address);
    if (host && address - host->base < host->size) {
        snprintf(out, cap, "byte %llu of the %llu bytes of host or managed memory at 0x%llx",
                 (unsigned long long)(address - host->base), (unsigned long long)host->size,
                 (unsigned long long)host->base);
        return;
    }
    if (before) {
        uint64_t end = before->base + before->size, off = address - before->base;
        if (before->label)
            snprintf(what, sizeof what, "variable '%.100s' (%llu bytes)", before->label,
                     (unsigned long long)before->size);
        else
            snprintf(what, sizeof what, "%llu-byte %s at 0x%llx", (unsigned long long)before->size,
                     before->kind == MEM_ARRAY ? "array" : "allocation", (unsigned long long)before->base);
        if (before->freed && off < before->size) {
            snprintf(out, cap, "byte %llu of the freed %s", (unsigned long long)off, what);
            return;
        }
        if (off < before->size) {
            snprintf(out, cap, "byte %llu of the %s", (unsigned long long)off, what);
            return;
        }
        if (!after || address - end <= after->base - address || address - end < GUARD / 2) {
            snprintf(out, cap, "%llu bytes past the end of the %s", (unsigned long long)(address - end),
                     what);
            return;
        }
    }
    if (after && after->base - address < GUARD) {
        if (after->label) snprintf(what, sizeof what, "variable '%.100s'", after->label);
        else
            snprintf(what, sizeof what, "%llu-byte allocation at 0x%llx", (unsigned long long)after->size,
                     (unsigned long long)after->base);
        snprintf(out, cap, "%llu bytes before the %s", (unsigned long long)(after->base - address), what);
        return;
    }
    snprintf(out, cap, "no allocation is near");
}

uint64_t sim_memory_used(void) { return used; }

void sim_memory_release_all(void)
{
    for (uint32_t k = 0; k < device_count; k++) {
        if (device_list[k]->host) unmap(device_list[k]);
        free_record(device_list[k]);
    }
    for (uint32_t k = 0; k < host_count; k++) { unmap(host_list[k]); free_record(host_list[k]); }
    free(device_list);
    free(host_list);
    device_list = host_list = NULL;
    device_count = device_capacity = host_count = host_capacity = 0;
}

/* --- shadow: other blocks may set bits in the same byte at the same time ---------------------- */

static void set_bits(uint8_t *p, uint8_t bits)
{
#if defined(__GNUC__)
    __atomic_fetch_or(p, bits, __ATOMIC_RELAXED);
#else
    *p |= bits;
#endif
}

static void clear_bits(uint8_t *p, uint8_t bits)
{
#if defined(__GNUC__)
    __atomic_fetch_and(p, (uint8_t)~bits, __ATOMIC_RELAXED);
#else
    *p &= (uint8_t)~bits;
#endif
}

void sim_shadow_set(uint8_t *shadow, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    while (offset < end && (offset & 7)) {
        uint64_t n = 8 - (offset & 7) < end - offset ? 8 - (offset & 7) : end - offset;
        set_bits(shadow + (offset >> 3), (uint8_t)(((1u << n) - 1) << (offset & 7)));
        offset += n;
    }
    if (end - offset >= 8) {
        memset(shadow + (offset >> 3), 0xff, (size_t)((end - offset) >> 3));
        offset += (end - offset) & ~UINT64_C(7);
    }
    if (offset < end) set_bits(shadow + (offset >> 3), (uint8_t)((1u << (end - offset)) - 1));
}

void sim_shadow_clear(uint8_t *shadow, uint64_t offset, uint64_t bytes)
{
    if (bytes && (offset & 7) + bytes <= 8) { /* within one byte of the shadow */
        clear_bits(shadow + (offset >> 3), (uint8_t)(((1u << bytes) - 1) << (offset & 7)));
        return;
    }
    for (uint64_t k = offset; k < offset + bytes;) {
        if (!(k & 7) && offset + bytes - k >= 8) {
            uint64_t n = (offset + bytes - k) >> 3;
            memset(shadow + (k >> 3), 0, (size_t)n);
            k += n * 8;
            continue;
        }
        clear_bits(shadow + (k >> 3), (uint8_t)(1u << (k & 7)));
        k++;
    }
}
