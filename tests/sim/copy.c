/* copy.c - copies and memory sets of one to three dimensions, synchronous or in a stream.
 *
 * Pageable host memory is read at the call and written before the call returns; pinned memory is read
 * and written when the work runs, which may be late. */
#include "texture.h"

uint64_t sim_checked_copies;           /* queued copies whose pinned source is checked for changes */

/* --- the sides of a copy ---------------------------------------------------------------------- */

/* More than any address space: sums of a few such numbers do not wrap. */
#define FAR (UINT64_C(1) << 60)

static uint64_t product_limited(uint64_t a, uint64_t b) { return b && a > FAR / b ? FAR : a * b; }

static uint64_t span(const sim_copy_side *s, size_t width, size_t height, size_t depth)
{
    return product_limited(depth - 1, s->slice) + product_limited(height - 1, s->pitch) + product_limited(width, 1);
}

static bool device_address(uint64_t address) { return address >> 40 == 0x30; }

/* Finds the allocation that holds all the bytes; NULL and true: the caller's own memory. Memory of a graph may be
 * named before it is allocated, but must be allocated when the work runs. */
static bool find(const sim_copy_side *s, uint64_t bytes, sim_allocation **out, bool runs)
{
    *out = sim_memory_find(s->address);
    if (!*out && !runs) {
        sim_allocation *a = sim_memory_at(s->address);
        if (a && a->of_graph) *out = a;
    }
    if (*out) return bytes <= (*out)->size - (s->address - (*out)->base);
    return s->address && !device_address(s->address) && bytes < FAR;
}

static uint64_t checksum(const uint8_t *p, size_t n)
{
    enum { MOST = 1 << 24 };
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15), v;
    if (n > MOST) n = MOST;
    for (; n >= 8; n -= 8, p += 8) {
        memcpy(&v, p, 8);
        h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 29;
    }
    for (; n; n--) h = (h ^ *p++) * UINT64_C(1099511628211);
    return h;
}

static uint64_t copy_checksum(const sim_copy *k, const uint8_t *p)
{
    uint64_t h = 0;
    for (size_t z = 0; z < k->depth; z++)
        for (size_t y = 0; y < k->height; y++)
            h = h * 31 + checksum(p + z * k->from.slice + y * k->from.pitch, k->width);
    return h;
}

/* --- executing copies ------------------------------------------------------------------------- */

static void copy_row(sim_allocation *to, uint8_t *d, const sim_allocation *from, const uint8_t *s,
                     size_t size)
{
    if ((!to || !to->shadow) && from && from->shadow)
        sim_host_read(from->base + (uint64_t)(s - from->host), size);
    memmove(d, s, size);
    if (!to || !to->shadow) return;
    uint64_t at = (uint64_t)(d - to->host), f = from && from->shadow ? (uint64_t)(s - from->host) : 0;
    if (!from || !from->shadow || sim_shadow_all(from->shadow, f, size)) {
        sim_shadow_set(to->shadow, at, size);
        return;
    }
    bool backwards = to == from && at > f;
    for (size_t k = 0; k < size; k++) {                       /* unwritten bytes stay unwritten */
        size_t n = backwards ? size - 1 - k : k;
        if (from->shadow[(f + n) >> 3] >> ((f + n) & 7) & 1) sim_shadow_set(to->shadow, at + n, 1);
        else sim_shadow_clear(to->shadow, at + n, 1);
    }
}

static int report_freed_memory(const sim_work *w, uint64_t address)
{
    char label[160], where[200];
    sim_label(w, label, sizeof label);
    sim_memory_describe(address, 1, where, sizeof where);
    sim_report_host("use-after-free", "%s runs when its memory is gone: %s", label, where);
    return SIM_ERROR_ILLEGAL_ADDRESS;
}

static void look_at_source(const sim_work *w, const sim_allocation *a, const uint8_t *p)
{
    const sim_copy *k = &w->u.copy;
    char label[160];
    if (!sim_driver_option.host_races || a->written_at > k->executed || sim_host_calls > k->host_calls)
        return;
    if (copy_checksum(k, p) == k->checksum) return;
    sim_label(w, label, sizeof label);
    sim_report_host("host-race",
                    "the pinned source of %s was changed by the host between the call and the copy: "
                    "%llu-byte allocation at 0x%llx (%s, call %llu)",
                    label, (unsigned long long)a->size, (unsigned long long)a->base, sim_entry_name(a->entry),
                    (unsigned long long)a->call);
}

int sim_copy_run(sim_work *w)
{
    sim_copy *k = &w->u.copy;
    sim_allocation *to, *from = NULL;
    uint64_t to_span = span(&k->to, k->width, k->height, k->depth),
             from_span = span(&k->from, k->width, k->height, k->depth);
    if (!find(&k->to, to_span, &to, true)) return report_freed_memory(w, k->to.address);
    if (!k->staged && !find(&k->from, from_span, &from, true)) return report_freed_memory(w, k->from.address);
    uint8_t *d = to ? to->host + (k->to.address - to->base) : (uint8_t *)(uintptr_t)k->to.address;
    const uint8_t *s = k->staged ? k->staged
                       : from    ? from->host + (k->from.address - from->base)
                                 : (const uint8_t *)(uintptr_t)k->from.address;
    if (k->checked && from) look_at_source(w, from, s);
    size_t row = k->staged ? k->width : k->from.pitch,
           slice = k->staged ? k->width * k->height : k->from.slice;
    if (to) sim_order_range(w, to, k->to.address, k->to.address + to_span, k->to.pitch, k->width, true);
    if (from)
        sim_order_range(w, from, k->from.address, k->from.address + from_span, k->from.pitch, k->width,
                        false);
    for (size_t z = 0; z < k->depth; z++)
        for (size_t y = 0; y < k->height; y++)
            copy_row(to, d + z * k->to.slice + y * k->to.pitch, from, s + z * slice + y * row, k->width);
    return CU_OK;
}

int sim_set_run(sim_work *w)
{
    const sim_set *k = &w->u.set;
    sim_allocation *a;
    size_t width = k->width * k->bytes;
    uint64_t total = span(&k->to, width, k->height, 1);
    if (!find(&k->to, total, &a, true) || !a) return report_freed_memory(w, k->to.address);
    bool same = k->bytes == 1 || k->value == (k->value & 0xff) * (k->bytes == 2 ? 0x101u : 0x1010101u);
    sim_order_range(w, a, k->to.address, k->to.address + total, k->to.pitch, width, true);
    for (size_t y = 0; y < k->height; y++) {
        uint64_t at = k->to.address - a->base + y * k->to.pitch;
        if (same) memset(a->host + at, (int)(k->value & 0xff), width);
        else for (size_t n = 0; n < k->width; n++) memcpy(a->host + at + n * k->bytes, &k->value, k->bytes);
        if (a->shadow) sim_shadow_set(a->shadow, at, width);
    }
    return CU_OK;
}

/* --- submitting copies ------------------------------------------------------------------------ */

typedef enum sides { ANY, TO_DEVICE, FROM_DEVICE, BOTH_DEVICES } sides;

/* Reads pageable memory now, so that the caller may change it after the call. */
static bool stage_source(sim_copy *k)
{
    size_t rows = k->height * k->depth, row = k->width;
    if (!(k->staged = malloc(rows * row))) return false;
    const uint8_t *from = (const uint8_t *)(uintptr_t)k->from.address;
    for (size_t z = 0; z < k->depth; z++)
        for (size_t y = 0; y < k->height; y++)
            memcpy(k->staged + (z * k->height + y) * row, from + z * k->from.slice + y * k->from.pitch, row);
    return true;
}

static int submit_copy(sim_context *c, const sim_copy *asked, const void *stream, bool synchronous,
                       sides which)
{
    sim_stream *s = sim_stream_of(c, stream);
    sim_allocation *to, *from;
    if (!s) return CU_INVALID_HANDLE;
    if (!asked->width || !asked->height || !asked->depth) return CU_OK;
    if (!find(&asked->to, span(&asked->to, asked->width, asked->height, asked->depth), &to, false)
        || !find(&asked->from, span(&asked->from, asked->width, asked->height, asked->depth), &from, false))
        return CU_INVALID_VALUE;
    if ((which & TO_DEVICE && !to) || (which & FROM_DEVICE && !from)) return CU_INVALID_VALUE;
    bool to_device = to && to->kind != MEM_HOST, from_device = from && from->kind != MEM_HOST;
    sim_work *w = sim_work_new(W_COPY, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.copy = *asked;
    if (sim_is_capturing(s) && !synchronous) return sim_submit(s, w);
    /* A copy within the device is never waited for; one with pageable host memory may be. */
    if (synchronous ? !(to_device && from_device) : !to || (!to_device && !from_device))
        return sim_submit_wait(s, w);
    if (!from && !stage_source(&w->u.copy)) return sim_submit_wait(s, w);
    if (from && !from_device && sim_driver_option.host_races && sim_driver_option.lag && !from->managed) {
        w->u.copy.checked = true;
        sim_guards_down();
        w->u.copy.executed = sim_order_writes;
        w->u.copy.host_calls = sim_host_calls;
        w->u.copy.checksum = copy_checksum(&w->u.copy, from->host + (asked->from.address - from->base));
        sim_checked_copies++;
    }
    return sim_submit(s, w);
}

static int copy_linear(sim_context *c, uint64_t to, uint64_t from, size_t n, const void *stream, bool synchronous,
                       sides which)
{
    sim_copy k = { .to = { to, n, n }, .from = { from, n, n }, .width = n, .height = 1, .depth = 1 };
    return submit_copy(c, &k, stream, synchronous, which);
}

#define HOST(p) ((uint64_t)(uintptr_t)(p))
SIM_API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{ ENTER(cuMemcpyHtoD_v2); USABLE(); return leave(copy_linear(c, to, HOST(from), n, NULL, true, TO_DEVICE)); }
SIM_API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream)
{ ENTER(cuMemcpyHtoDAsync_v2); USABLE(); return leave(copy_linear(c, to, HOST(from), n, stream, false, TO_DEVICE)); }
SIM_API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n)
{ ENTER(cuMemcpyDtoH_v2); USABLE(); return leave(copy_linear(c, HOST(to), from, n, NULL, true, FROM_DEVICE)); }
SIM_API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{
    ENTER(cuMemcpyDtoHAsync_v2);
    USABLE();
    return leave(copy_linear(c, HOST(to), from, n, stream, false, FROM_DEVICE));
}
SIM_API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n)
{ ENTER(cuMemcpyDtoD_v2); USABLE(); return leave(copy_linear(c, to, from, n, NULL, true, BOTH_DEVICES)); }
SIM_API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{ ENTER(cuMemcpyDtoDAsync_v2); USABLE(); return leave(copy_linear(c, to, from, n, stream, false, BOTH_DEVICES)); }
SIM_API cuMemcpy(uint64_t to, uint64_t from, size_t n)
{ ENTER(cuMemcpy); USABLE(); return leave(copy_linear(c, to, from, n, NULL, true, ANY)); }
SIM_API cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *stream)
{ ENTER(cuMemcpyAsync); USABLE(); return leave(copy_linear(c, to, from, n, stream, false, ANY)); }

static bool peers(sim_context *c, const void *a, const void *b)
{ return (!a || sim_context_of(a) == c) && (!b || sim_context_of(b) == c); }

SIM_API cuMemcpyPeer(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n)
{
    ENTER(cuMemcpyPeer);
    USABLE();
    if (!peers(c, to_context, from_context)) return leave(CU_INVALID_CONTEXT);
    return leave(copy_linear(c, to, from, n, NULL, true, BOTH_DEVICES));
}
SIM_API cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n,
                          void *stream)
{
    ENTER(cuMemcpyPeerAsync);
    USABLE();
    if (!peers(c, to_context, from_context)) return leave(CU_INVALID_CONTEXT);
    return leave(copy_linear(c, to, from, n, stream, false, BOTH_DEVICES));
}

/* --- two and three dimensions ----------------------------------------------------------------- */

typedef struct sim_memcpy2d {
    size_t src_x, src_y;
    unsigned src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    unsigned dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
} sim_memcpy2d;

typedef struct sim_memcpy3d {
    size_t src_x, src_y, src_z, src_lod;
    unsigned src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array, *reserved0;
    size_t src_pitch, src_height, dst_x, dst_y, dst_z, dst_lod;
    unsigned dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array, *reserved1;
    size_t dst_pitch, dst_height, width, height, depth;
} sim_memcpy3d;

_Static_assert(sizeof(sim_memcpy2d) == 128 && sizeof(sim_memcpy3d) == 200, "as the driver has them");

/* Resolves one side of a copy. Memory types: 1 host, 2 device, 3 array, 4 unified. */
static int resolve_side(unsigned type, const void *host, uint64_t device, const void *array, size_t x, size_t y,
                        size_t z, size_t pitch, size_t height, size_t width, size_t rows, size_t depth,
                        sim_copy_side *out)
{
    if (type == 3) return sim_array_side(array, x, y, z, width, rows, depth, out);
    if (type != 1 && type != 2 && type != 4) return CU_INVALID_VALUE;
    if (x >= FAR || width >= FAR || y > INT32_MAX || rows > INT32_MAX || height > INT32_MAX)
        return CU_INVALID_VALUE;
    uint64_t base = type == 1 ? HOST(host) : device;
    if (!base) return CU_INVALID_VALUE;
    if (!pitch) pitch = width + x;
    if (!height) height = rows + y;
    if (pitch < width + x || height < rows + y || pitch > INT32_MAX) return CU_INVALID_VALUE;
    if (product_limited(z, pitch * height) == FAR) return CU_INVALID_VALUE;
    out->pitch = pitch;
    out->slice = pitch * height;
    out->address = base + z * out->slice + y * pitch + x;
    return CU_OK;
}

int sim_copy_of_3d(const void *description, sim_copy *k)
{
    const sim_memcpy3d *p = description;
    if (!p || p->src_lod || p->dst_lod) return CU_INVALID_VALUE;
    int code = resolve_side(p->src_type, p->src_host, p->src_device, p->src_array, p->src_x, p->src_y, p->src_z,
                            p->src_pitch, p->src_height, p->width, p->height, p->depth, &k->from);
    if (!code)
        code = resolve_side(p->dst_type, p->dst_host, p->dst_device, p->dst_array, p->dst_x, p->dst_y, p->dst_z,
                            p->dst_pitch, p->dst_height, p->width, p->height, p->depth, &k->to);
    k->width = p->width;
    k->height = p->height;
    k->depth = p->depth;
    return code;
}

/* Describes the copy by addresses: the caller's offsets, bases and memory types are not kept. */
void sim_copy_to_3d(const sim_copy *k, void *description)
{
    sim_memcpy3d p = { .width = k->width, .height = k->height, .depth = k->depth };
    p.src_type = device_address(k->from.address) ? 2 : 1;
    p.dst_type = device_address(k->to.address) ? 2 : 1;
    p.src_host = (const void *)(uintptr_t)(p.src_type == 1 ? k->from.address : 0);
    p.dst_host = (void *)(uintptr_t)(p.dst_type == 1 ? k->to.address : 0);
    p.src_device = p.src_type == 2 ? k->from.address : 0;
    p.dst_device = p.dst_type == 2 ? k->to.address : 0;
    p.src_pitch = k->from.pitch;
    p.dst_pitch = k->to.pitch;
    p.src_height = k->from.pitch ? k->from.slice / k->from.pitch : 0;
    p.dst_height = k->to.pitch ? k->to.slice / k->to.pitch : 0;
    memcpy(description, &p, sizeof p);
}

static sides device_sides(unsigned to, unsigned from)
{ return (sides)((to == 2 || to == 3 ? TO_DEVICE : 0) | (from == 2 || from == 3 ? FROM_DEVICE : 0)); }

static int copy_2d(sim_context *c, const sim_memcpy2d *p, const void *stream, bool synchronous)
{
    sim_copy k = { .depth = 1 };
    if (!p) return CU_INVALID_VALUE;
    k.width = p->width;
    k.height = p->height;
    int code = resolve_side(p->src_type, p->src_host, p->src_device, p->src_array, p->src_x, p->src_y, 0, p->src_pitch,
                            0, p->width, p->height, 1, &k.from);
    if (!code)
        code = resolve_side(p->dst_type, p->dst_host, p->dst_device, p->dst_array, p->dst_x, p->dst_y, 0, p->dst_pitch,
                            0, p->width, p->height, 1, &k.to);
    return code ? code : submit_copy(c, &k, stream, synchronous, device_sides(p->dst_type, p->src_type));
}

static int copy_3d(sim_context *c, const sim_memcpy3d *p, const void *stream, bool synchronous)
{
    sim_copy k = { 0 };
    int code = sim_copy_of_3d(p, &k);
    return code ? code : submit_copy(c, &k, stream, synchronous, device_sides(p->dst_type, p->src_type));
}

SIM_API cuMemcpy2D_v2(const sim_memcpy2d *p)
{ ENTER(cuMemcpy2D_v2); USABLE(); return leave(copy_2d(c, p, NULL, true)); }
SIM_API cuMemcpy2DUnaligned_v2(const sim_memcpy2d *p)
{ ENTER(cuMemcpy2DUnaligned_v2); USABLE(); return leave(copy_2d(c, p, NULL, true)); }
SIM_API cuMemcpy2DAsync_v2(const sim_memcpy2d *p, void *stream)
{ ENTER(cuMemcpy2DAsync_v2); USABLE(); return leave(copy_2d(c, p, stream, false)); }
SIM_API cuMemcpy3D_v2(const sim_memcpy3d *p)
{ ENTER(cuMemcpy3D_v2); USABLE(); return leave(copy_3d(c, p, NULL, true)); }
SIM_API cuMemcpy3DAsync_v2(const sim_memcpy3d *p, void *stream)
{ ENTER(cuMemcpy3DAsync_v2); USABLE(); return leave(copy_3d(c, p, stream, false)); }

/* --- arrays of one dimension, by bytes -------------------------------------------------------- */

static int resolve_flat_side(const void *handle, size_t offset, size_t n, sim_copy_side *out)
{
    const sim_array *a = sim_array_of(handle);
    if (a && (a->dims != 1 || a->layered)) return CU_INVALID_VALUE;
    return sim_array_side(handle, offset, 0, 0, n, 1, 1, out);
}

/* Copies to or from a one-dimensional array: on each side either the array is NULL or the address is 0. */
static int copy_flat_array(sim_context *c, const void *to_array, uint64_t to, size_t to_offset, const void *from_array,
                           uint64_t from, size_t from_offset, size_t n, const void *stream, bool synchronous,
                           sides which)
{
    sim_copy k = { .to = { to, n, n }, .from = { from, n, n }, .width = n, .height = 1, .depth = 1 };
    int code = to_array ? resolve_flat_side(to_array, to_offset, n, &k.to) : to ? CU_OK : CU_INVALID_VALUE;
    if (!code)
        code = from_array ? resolve_flat_side(from_array, from_offset, n, &k.from) : from ? CU_OK : CU_INVALID_VALUE;
    return code ? code : submit_copy(c, &k, stream, synchronous, which);
}

SIM_API cuMemcpyHtoA_v2(const void *to, size_t offset, const void *from, size_t n)
{
    ENTER(cuMemcpyHtoA_v2);
    USABLE();
    return leave(copy_flat_array(c, to, 0, offset, NULL, HOST(from), 0, n, NULL, true, TO_DEVICE));
}
SIM_API cuMemcpyAtoH_v2(void *to, const void *from, size_t offset, size_t n)
{
    ENTER(cuMemcpyAtoH_v2);
    USABLE();
    return leave(copy_flat_array(c, NULL, HOST(to), 0, from, 0, offset, n, NULL, true, FROM_DEVICE));
}
SIM_API cuMemcpyHtoAAsync_v2(const void *to, size_t offset, const void *from, size_t n, void *s)
{
    ENTER(cuMemcpyHtoAAsync_v2);
    USABLE();
    return leave(copy_flat_array(c, to, 0, offset, NULL, HOST(from), 0, n, s, false, TO_DEVICE));
}
SIM_API cuMemcpyAtoHAsync_v2(void *to, const void *from, size_t offset, size_t n, void *s)
{
    ENTER(cuMemcpyAtoHAsync_v2);
    USABLE();
    return leave(copy_flat_array(c, NULL, HOST(to), 0, from, 0, offset, n, s, false, FROM_DEVICE));
}
SIM_API cuMemcpyDtoA_v2(const void *to, size_t offset, uint64_t from, size_t n)
{
    ENTER(cuMemcpyDtoA_v2);
    USABLE();
    return leave(copy_flat_array(c, to, 0, offset, NULL, from, 0, n, NULL, true, BOTH_DEVICES));
}
SIM_API cuMemcpyAtoD_v2(uint64_t to, const void *from, size_t offset, size_t n)
{
    ENTER(cuMemcpyAtoD_v2);
    USABLE();
    return leave(copy_flat_array(c, NULL, to, 0, from, 0, offset, n, NULL, true, BOTH_DEVICES));
}
SIM_API cuMemcpyAtoA_v2(const void *to, size_t to_offset, const void *from, size_t from_offset, size_t n)
{
    ENTER(cuMemcpyAtoA_v2);
    USABLE();
    return leave(copy_flat_array(c, to, 0, to_offset, from, 0, from_offset, n, NULL, true, BOTH_DEVICES));
}

/* --- setting ---------------------------------------------------------------------------------- */

int sim_set_check(const sim_set *k)
{
    sim_allocation *a;
    if (k->bytes != 1 && k->bytes != 2 && k->bytes != 4) return CU_INVALID_VALUE;
    if (k->to.address % k->bytes || k->width > SIZE_MAX / 8 || (k->height > 1 && k->to.pitch % k->bytes))
        return CU_INVALID_VALUE;
    if (k->height > 1 && k->to.pitch < k->width * k->bytes) return CU_INVALID_VALUE;
    if (!find(&k->to, span(&k->to, k->width * k->bytes, k->height, 1), &a, false) || !a) return CU_INVALID_VALUE;
    return CU_OK;
}

static int submit_set(sim_context *c, uint64_t to, size_t pitch, uint32_t value, uint32_t bytes, size_t width,
                      size_t height, const void *stream, bool synchronous)
{
    sim_stream *s = sim_stream_of(c, stream);
    sim_set k = { .to = { to, pitch, 0 }, .width = width, .height = height, .value = value, .bytes = bytes };
    if (!s) return CU_INVALID_HANDLE;
    if (!width || !height) return CU_OK;
    int code = sim_set_check(&k);
    if (code) return code;
    sim_work *w = sim_work_new(W_SET, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.set = k;
    const sim_allocation *a = sim_memory_find(to);
    bool waits = synchronous && a && a->kind == MEM_HOST;
    return waits ? sim_submit_wait(s, w) : sim_submit(s, w);
}

#define SETS(bits, type)                                                                                     \
    SIM_API cuMemsetD##bits##_v2(uint64_t to, type v, size_t n) {                                            \
        ENTER(cuMemsetD##bits##_v2);                                                                         \
        USABLE();                                                                                            \
        return leave(submit_set(c, to, 0, v, bits / 8, n, 1, NULL, true));                                          \
    }                                                                                                        \
    SIM_API cuMemsetD##bits##Async(uint64_t to, type v, size_t n, void *s) {                                 \
        ENTER(cuMemsetD##bits##Async);                                                                       \
        USABLE();                                                                                            \
        return leave(submit_set(c, to, 0, v, bits / 8, n, 1, s, false));                                            \
    }                                                                                                        \
    SIM_API cuMemsetD2D##bits##_v2(uint64_t to, size_t pitch, type v, size_t width, size_t height) {         \
        ENTER(cuMemsetD2D##bits##_v2);                                                                       \
        USABLE();                                                                                            \
        return leave(submit_set(c, to, pitch, v, bits / 8, width, height, NULL, true));                             \
    }                                                                                                        \
    SIM_API cuMemsetD2D##bits##Async(uint64_t to, size_t pitch, type v, size_t width, size_t height,         \
                                     void *s) {                                                              \
        ENTER(cuMemsetD2D##bits##Async);                                                                     \
        USABLE();                                                                                            \
        return leave(submit_set(c, to, pitch, v, bits / 8, width, height, s, false));                               \
    }
SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned)
