/* external.c - external memory: an opaque descriptor (a memfd, a file of shared memory) is imported and
 * mapped. Other handles, arrays in such memory and semaphores are refused by name. */
#include "texture.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct external {
    sim_handle *handle;
    struct external *next;
    sim_context *context;
    int fd;
    uint64_t size;
} external;

static external *imported;

typedef struct handle_desc { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC, and _SEMAPHORE_, which has no size */
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } u;
    unsigned long long size;
    unsigned flags, reserved[16];
} handle_desc;

typedef struct buffer_desc { /* CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
    unsigned long long offset, size;
    unsigned flags, reserved[16];
} buffer_desc;

_Static_assert(sizeof(handle_desc) == 104 && sizeof(buffer_desc) == 88, "as the driver has them");

enum { OPAQUE_FD = 1, MEMORY_TYPES = 9, SEMAPHORE_TYPES = 10, DEDICATED = 1 };

SIM_API cuImportExternalMemory(sim_handle **out, const handle_desc *d) {
    static const char *const types[] = {
        "",           "OPAQUE_FD",      "OPAQUE_WIN32",   "OPAQUE_WIN32_KMT",
        "D3D12_HEAP", "D3D12_RESOURCE", "D3D11_RESOURCE", "D3D11_RESOURCE_KMT",
        "NVSCIBUF",   "DMABUF_FD"};
    ENTER(cuImportExternalMemory);
    USABLE();
    struct stat s;
    if (!out || !d || d->type < 1 || d->type > MEMORY_TYPES || d->flags & ~(unsigned)DEDICATED)
        return leave(CU_INVALID_VALUE);
    if (d->type != OPAQUE_FD)
        return leave(sim_refuse("external memory by CU_EXTERNAL_MEMORY_HANDLE_TYPE_%s (OPAQUE_FD is)",
                                types[d->type]));
    if (!d->size) return leave(CU_INVALID_VALUE);
    if (fstat(d->u.fd, &s)) return leave(errno == EBADF ? CU_INVALID_HANDLE : 304);
    if (!S_ISREG(s.st_mode) || (uint64_t)s.st_size < d->size) return leave(CU_INVALID_VALUE);
    external *e = calloc(1, sizeof *e);
    if (!e || !(e->handle = sim_handle_new(H_EXTERNAL, e))) {
        free(e);
        return leave(CU_OUT_OF_MEMORY);
    }
    e->context = c;
    e->fd = d->u.fd; /* the driver owns it from now on */
    e->size = d->size;
    e->next = imported;
    imported = e;
    *out = e->handle;
    return leave(CU_OK);
}

SIM_API cuExternalMemoryGetMappedBuffer(uint64_t *out, const void *handle, const buffer_desc *d) {
    ENTER(cuExternalMemoryGetMappedBuffer);
    USABLE();
    const external *e = sim_handle_get(H_EXTERNAL, handle);
    sim_allocation *a;
    if (!e) return leave(CU_INVALID_HANDLE);
    if (!out || !d || !d->size || d->flags || d->offset > e->size || d->size > e->size - d->offset)
        return leave(CU_INVALID_VALUE);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = d->offset % page;
    void *at = mmap(NULL, (size_t)(before + d->size), PROT_READ | PROT_WRITE, MAP_SHARED, e->fd,
                    (off_t)(d->offset - before));
    if (at == MAP_FAILED) return leave(304);
    int code = sim_memory_adopt(c, (uint8_t *)at + before, d->size, &a);
    if (code) {
        (void)munmap(at, (size_t)(before + d->size));
        return leave(code);
    }
    a->entry = (uint16_t)sim_current_entry(&a->call);
    *out = a->base;
    return leave(CU_OK);
}

SIM_API cuExternalMemoryGetMappedMipmappedArray(void **out, const void *handle, const void *d) {
    ENTER(cuExternalMemoryGetMappedMipmappedArray);
    USABLE();
    (void)c;
    if (!sim_handle_get(H_EXTERNAL, handle)) return leave(CU_INVALID_HANDLE);
    if (!out || !d) return leave(CU_INVALID_VALUE);
    return leave(sim_refuse("arrays in external memory: how their texels lie is known to the driver alone"));
}

static void drop(external *e) {
    for (external **at = &imported; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
    (void)close(e->fd);
    sim_handle_drop(e->handle);
    free(e);
}

/* Mapped buffers stay until cuMemFree. */
SIM_API cuDestroyExternalMemory(const void *handle) {
    ENTER(cuDestroyExternalMemory);
    USABLE();
    (void)c;
    external *e = sim_handle_get(H_EXTERNAL, handle);
    if (!e) return leave(CU_INVALID_HANDLE);
    drop(e);
    return leave(CU_OK);
}

SIM_API cuImportExternalSemaphore(void **out, const handle_desc *d) {
    ENTER(cuImportExternalSemaphore);
    USABLE();
    (void)c;
    if (!out || !d || d->type < 1 || d->type > SEMAPHORE_TYPES) return leave(CU_INVALID_VALUE);
    return leave(sim_refuse("external semaphores: nothing here would signal them"));
}

static int no_semaphore(void) { return sim_refuse("external semaphores: none can have been imported"); }

SIM_API cuSignalExternalSemaphoresAsync(void *const *s, const void *p, unsigned n, void *stream) {
    ENTER(cuSignalExternalSemaphoresAsync);
    (void)s, (void)p, (void)n, (void)stream;
    return leave(no_semaphore());
}
SIM_API cuWaitExternalSemaphoresAsync(void *const *s, const void *p, unsigned n, void *stream) {
    ENTER(cuWaitExternalSemaphoresAsync);
    (void)s, (void)p, (void)n, (void)stream;
    return leave(no_semaphore());
}
SIM_API cuDestroyExternalSemaphore(void *s) {
    ENTER(cuDestroyExternalSemaphore);
    (void)s;
    return leave(no_semaphore());
}

void sim_external_report(sim_context *c, sim_leak_fn tell) {
    for (const external *e = imported; e; e = e->next)
        if (e->context == c) tell("external memory", e->handle);
}

void sim_external_free(sim_context *c) {
    for (external *e = imported, *next; e; e = next) {
        next = e->next;
        if (e->context == c) drop(e);
    }
}
