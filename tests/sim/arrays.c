/* arrays.c - entry points for arrays, mipmapped arrays, texture and surface objects. */
#include "texture.h"
#include <stdarg.h>

_Static_assert(sizeof(sim_texture_desc) == 104 && sizeof(sim_resource_desc) == 144
                   && sizeof(sim_view_desc) == 112,
               "as the driver has them");

static sim_array *arrays;
static sim_mipmap *mipmaps;
static sim_texture *objects;

int sim_refuse(const char *format, ...) {
    va_list list;
    if (sim_option.quiet || getenv("PTXSIM_QUIET")) return CU_NOT_SUPPORTED;
    fputs("ptxsim: not implemented by this CPU driver: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return CU_NOT_SUPPORTED;
}

uint32_t sim_format_bytes(uint32_t format) {
    switch (format) {
    case AF_U8:
    case AF_S8: return 1;
    case AF_U16:
    case AF_S16:
    case AF_HALF: return 2;
    case AF_U32:
    case AF_S32:
    case AF_FLOAT: return 4;
    default: return 0;
    }
}

/* --- arrays ----------------------------------------------------------------------------------- */

typedef struct descriptor {
    size_t width, height, depth;
    unsigned format, channels, flags;
} descriptor;
_Static_assert(sizeof(descriptor) == 40, "CUDA_ARRAY3D_DESCRIPTOR");

static bool within(size_t n, uint32_t most) { return n >= 1 && n <= most; }

/* Whether the extents are within the limits of compute capability 7.5 to 12.0. */
static bool extents_allowed(const descriptor *d, bool mipmapped) {
    bool layered = d->flags & ARRAY_LAYERED, surface = d->flags & ARRAY_SURFACE;
    if (d->flags & ARRAY_CUBE)
        return within(d->width, 32768) && d->height == d->width
               && (layered ? d->depth % 6 == 0 && within(d->depth, 2046) : d->depth == 6);
    if (layered) return within(d->width, 32768) && d->height <= 32768 && within(d->depth, 2048);
    if (!d->width || (d->depth && !d->height)) return false;
    if (d->depth)
        return (d->width <= 16384 && d->height <= 16384 && d->depth <= 16384)
               || (!surface && d->width <= 8192 && d->height <= 8192 && d->depth <= 32768);
    if (d->height) {
        if (mipmapped || d->flags & ARRAY_GATHER) return d->width <= 32768 && d->height <= 32768;
        return d->width <= 131072 && d->height <= 65536;
    }
    return d->width <= (mipmapped || surface ? 32768u : 131072u);
}

static int check(const descriptor *d, bool mipmapped) {
    const unsigned known = ARRAY_LAYERED | ARRAY_SURFACE | ARRAY_CUBE | ARRAY_GATHER;
    if (!d) return CU_INVALID_VALUE;
    if (d->channels != 1 && d->channels != 2 && d->channels != 4) return CU_INVALID_VALUE;
    if (!sim_format_bytes(d->format)) {
        bool exists = (d->format >= 0x91 && d->format <= 0x9f) || (d->format >= 0xc0 && d->format <= 0xcb)
                      || d->format == 0x50 || d->format == 0xb0;
        return exists ? sim_refuse("arrays of format 0x%x (formats are 8, 16, 32 bits, half and float)",
                                   d->format)
                      : CU_INVALID_VALUE;
    }
    if (d->flags & 0xf0 & ~known && !(d->flags & ~0xffu))
        return sim_refuse("arrays with flags 0x%x (depth textures, colour attachments, sparse or deferred)",
                          d->flags & ~known);
    if (d->flags & ~known || !extents_allowed(d, mipmapped)) return CU_INVALID_VALUE;
    if (d->flags & ARRAY_GATHER && (!d->height || (d->depth && !(d->flags & (ARRAY_LAYERED | ARRAY_CUBE)))))
        return CU_INVALID_VALUE;
    return CU_OK;
}

static uint32_t at_least_1(size_t n) { return n ? (uint32_t)n : 1u; }

/* Fills all but handle and allocation; returns the size in bytes. */
static uint64_t describe(sim_array *a, const descriptor *d, uint32_t level) {
    a->layered = d->flags & (ARRAY_LAYERED | ARRAY_CUBE);
    a->cube = d->flags & ARRAY_CUBE;
    a->dims = d->depth && !a->layered ? 3 : d->height ? 2 : 1;
    a->format = d->format;
    a->channels = d->channels;
    a->flags = d->flags;
    a->element = sim_format_bytes(d->format) * d->channels;
    a->width = at_least_1(d->width >> level);
    a->height = at_least_1(d->height >> level);
    a->depth = a->layered ? 1 : at_least_1(d->depth >> level);
    a->layers = a->layered ? (uint32_t)d->depth : 1;
    a->asked[0] = a->width;
    a->asked[1] = d->height ? a->height : 0;
    a->asked[2] = a->layered ? a->layers : d->depth ? a->depth : 0;
    a->pitch = (uint64_t)a->width * a->element;
    a->slice = a->pitch * a->height;
    return a->slice * a->depth * a->layers;
}

static int create(sim_context *c, sim_handle **out, const descriptor *d) {
    int code = out ? check(d, false) : CU_INVALID_VALUE;
    if (code) return code;
    sim_array *a = calloc(1, sizeof *a);
    if (!a) return CU_OUT_OF_MEMORY;
    code = sim_memory_alloc(c, describe(a, d, 0), MEM_ARRAY, NULL, &a->a);
    if (!code && !(a->handle = sim_handle_new(H_ARRAY, a))) code = CU_OUT_OF_MEMORY;
    if (code) {
        if (a->a) (void)sim_memory_free(a->a->base, MEM_ARRAY);
        free(a);
        return code;
    }
    a->a->entry = (uint16_t)sim_current_entry(&a->a->call);
    a->context = c;
    a->next = arrays;
    arrays = a;
    *out = a->handle;
    return CU_OK;
}

SIM_API cuArray3DCreate_v2(sim_handle **out, const descriptor *d) {
    ENTER(cuArray3DCreate_v2);
    USABLE();
    return leave(create(c, out, d));
}

typedef struct flat_descriptor {
    size_t width, height;
    unsigned format, channels;
} flat_descriptor;

SIM_API cuArrayCreate_v2(sim_handle **out, const flat_descriptor *d) {
    ENTER(cuArrayCreate_v2);
    USABLE();
    if (!d) return leave(CU_INVALID_VALUE);
    descriptor all = {d->width, d->height, 0, d->format, d->channels, 0};
    return leave(create(c, out, &all));
}

sim_array *sim_array_of(const void *handle) { return sim_handle_get(H_ARRAY, handle); }

SIM_API cuArray3DGetDescriptor_v2(descriptor *out, const void *handle) {
    ENTER(cuArray3DGetDescriptor_v2);
    USABLE();
    (void)c;
    const sim_array *a = sim_array_of(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    if (!a) return leave(CU_INVALID_HANDLE);
    *out = (descriptor){a->asked[0], a->asked[1], a->asked[2], a->format, a->channels, a->flags};
    return leave(CU_OK);
}

SIM_API cuArrayGetDescriptor_v2(flat_descriptor *out, const void *handle) {
    ENTER(cuArrayGetDescriptor_v2);
    USABLE();
    (void)c;
    const sim_array *a = sim_array_of(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    if (!a) return leave(CU_INVALID_HANDLE);
    *out = (flat_descriptor){a->asked[0], a->asked[1], a->format, a->channels};
    return leave(CU_OK);
}

static void drop_array(sim_array *a) {
    for (sim_array **at = &arrays; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            break;
        }
    (void)sim_memory_free(a->a->base, MEM_ARRAY);
    sim_handle_drop(a->handle);
    free(a);
}

SIM_API cuArrayDestroy(const void *handle) {
    ENTER(cuArrayDestroy);
    USABLE();
    sim_array *a = sim_array_of(handle);
    if (!a || a->of) return leave(CU_INVALID_HANDLE);
    if (sim_forbidden_in_capture(c)) return leave(900);
    int code = sim_synchronise(c); /* waits for work that uses it */
    drop_array(a);
    return leave(code);
}

/* --- mipmapped arrays ------------------------------------------------------------------------- */

SIM_API cuMipmappedArrayCreate(sim_handle **out, const descriptor *d, unsigned levels) {
    ENTER(cuMipmappedArrayCreate);
    USABLE();
    uint64_t bytes = 0;
    int code = out ? check(d, true) : CU_INVALID_VALUE;
    if (code) return leave(code);
    sim_mipmap *m = calloc(1, sizeof *m);
    if (!m) return leave(CU_OUT_OF_MEMORY);
    size_t longest = d->width > d->height ? d->width : d->height;
    if (!(d->flags & (ARRAY_LAYERED | ARRAY_CUBE)) && d->depth > longest) longest = d->depth;
    uint32_t most = 1;
    while (longest >>= 1) most++;
    m->count = !levels ? 1 : levels < most ? levels : most;
    for (uint32_t k = 0; k < m->count; k++) {
        sim_array *a = &m->level[k];
        a->offset = bytes;
        bytes += (describe(a, d, k) + 511) / 512 * 512;
        a->of = m;
        a->context = c;
    }
    code = sim_memory_alloc(c, bytes, MEM_ARRAY, NULL, &m->a);
    if (!code && !(m->handle = sim_handle_new(H_MIPMAP, m))) code = CU_OUT_OF_MEMORY;
    if (code) {
        if (m->a) (void)sim_memory_free(m->a->base, MEM_ARRAY);
        free(m);
        return leave(code);
    }
    m->a->entry = (uint16_t)sim_current_entry(&m->a->call);
    for (uint32_t k = 0; k < m->count; k++) m->level[k].a = m->a;
    m->context = c;
    m->next = mipmaps;
    mipmaps = m;
    *out = m->handle;
    return leave(CU_OK);
}

SIM_API cuMipmappedArrayGetLevel(sim_handle **out, const void *handle, unsigned level) {
    ENTER(cuMipmappedArrayGetLevel);
    USABLE();
    (void)c;
    sim_mipmap *m = sim_handle_get(H_MIPMAP, handle);
    if (!out) return leave(CU_INVALID_VALUE);
    if (!m) return leave(CU_INVALID_HANDLE);
    if (level >= m->count) return leave(CU_INVALID_VALUE);
    sim_array *a = &m->level[level];
    if (!a->handle && !(a->handle = sim_handle_new(H_ARRAY, a))) return leave(CU_OUT_OF_MEMORY);
    *out = a->handle;
    return leave(CU_OK);
}

static void drop_mipmap(sim_mipmap *m) {
    for (sim_mipmap **at = &mipmaps; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    for (uint32_t k = 0; k < m->count; k++) sim_handle_drop(m->level[k].handle);
    (void)sim_memory_free(m->a->base, MEM_ARRAY);
    sim_handle_drop(m->handle);
    free(m);
}

SIM_API cuMipmappedArrayDestroy(const void *handle) {
    ENTER(cuMipmappedArrayDestroy);
    USABLE();
    sim_mipmap *m = sim_handle_get(H_MIPMAP, handle);
    if (!m) return leave(CU_INVALID_HANDLE);
    if (sim_forbidden_in_capture(c)) return leave(900);
    int code = sim_synchronise(c);
    drop_mipmap(m);
    return leave(code);
}

/* --- copies ----------------------------------------------------------------------------------- */

int sim_array_side(const void *handle, size_t x, size_t y, size_t z, size_t bytes, size_t rows, size_t depth,
                   sim_copy_side *out) {
    const sim_array *a = sim_array_of(handle);
    if (!a) return CU_INVALID_HANDLE;
    size_t slices = (size_t)a->depth * a->layers;
    if (x % a->element || bytes % a->element || x > a->pitch || bytes > a->pitch - x || y > a->height
        || rows > a->height - y || z > slices || depth > slices - z)
        return CU_INVALID_VALUE;
    out->address = a->a->base + a->offset + z * a->slice + y * a->pitch + x;
    out->pitch = a->pitch;
    out->slice = a->slice;
    return CU_OK;
}

/* --- texture and surface objects -------------------------------------------------------------- */

const sim_array *sim_texture_level(const sim_texture *t, uint32_t level, sim_array *own) {
    if (!t->resource) {
        memset(own, 0, sizeof *own);
        own->width = (uint32_t)t->asked.u.memory.width;
        own->height = t->asked.type == RES_PITCH ? (uint32_t)t->asked.u.memory.height : 1;
        own->depth = own->layers = 1;
        own->dims = t->dims;
        own->element = t->element;
        own->pitch = own->slice = t->asked.type == RES_PITCH ? t->asked.u.memory.pitch : 0;
        return own;
    }
    if (!t->resource->object) return NULL;
    if (t->resource->kind == H_ARRAY) return t->resource->object;
    return &((const sim_mipmap *)t->resource->object)->level[t->first_level + level];
}

static int check_view(sim_texture *t, const sim_array *a, uint32_t levels) {
    static const uint8_t formats[] = {AF_U8, AF_S8, AF_U16, AF_S16, AF_U32, AF_S32, AF_HALF, AF_FLOAT};
    static const uint8_t channels[] = {1, 2, 4};
    const sim_view_desc *v = &t->view;
    if (v->format >= 0x19 && v->format <= 0x22)
        return sim_refuse("views of block-compressed formats (view format 0x%x)", (unsigned)v->format);
    if (v->format < 0 || v->format > 0x18) return CU_INVALID_VALUE;
    if (v->format) {
        t->format = formats[(v->format - 1) / 3];
        t->channels = channels[(v->format - 1) % 3];
        if (sim_format_bytes(t->format) * t->channels != a->element) return CU_INVALID_VALUE;
    }
    if (v->width != a->asked[0] || v->height != a->asked[1] || v->depth != a->asked[2])
        return CU_INVALID_VALUE;
    if (v->first_level > v->last_level || v->last_level >= levels || v->first_layer > v->last_layer
        || v->last_layer >= a->layers)
        return CU_INVALID_VALUE;
    t->first_level = v->first_level;
    t->levels = v->last_level - v->first_level + 1;
    t->first_layer = v->first_layer;
    t->layers = v->last_layer - v->first_layer + 1;
    return CU_OK;
}

static int check_memory(sim_texture *t) {
    sim_resource_desc *r = &t->asked;
    size_t bytes = r->u.memory.width; /* linear: u.memory.width is the size in bytes */
    t->format = (uint32_t)r->u.memory.format;
    t->channels = r->u.memory.channels;
    t->dims = r->type == RES_PITCH ? 2 : 1;
    t->levels = t->layers = 1;
    if (!sim_format_bytes(t->format) || (t->channels != 1 && t->channels != 2 && t->channels != 4))
        return CU_INVALID_VALUE;
    t->element = sim_format_bytes(t->format) * t->channels;
    if (!r->u.memory.address || r->u.memory.address % 512) return CU_INVALID_VALUE;
    if (r->type == RES_PITCH) {
        size_t pitch = r->u.memory.pitch, height = r->u.memory.height;
        if (!within(r->u.memory.width, 131072) || !within(height, 65000) || pitch % 32 || pitch > 2097120
            || pitch < r->u.memory.width * t->element)
            return CU_INVALID_VALUE;
        bytes = (height - 1) * pitch + r->u.memory.width * t->element;
    } else if (bytes < t->element || bytes / t->element > 1u << 28)
        return CU_INVALID_VALUE;
    const sim_allocation *a = sim_memory_find(r->u.memory.address);
    if (!a || a->kind == MEM_ARRAY || bytes > a->size - (r->u.memory.address - a->base))
        return CU_INVALID_VALUE;
    return CU_OK;
}

static int check_sampling(const sim_texture *t) {
    const sim_texture_desc *d = &t->t;
    uint32_t bytes = t->element / t->channels;
    bool integers = t->format != AF_HALF && t->format != AF_FLOAT, normalised = d->flags & TRSF_NORMALISED;
    for (int k = 0; k < 3; k++)
        if (d->address[k] < ADDRESS_WRAP || d->address[k] > ADDRESS_BORDER) return CU_INVALID_VALUE;
    if (d->filter & ~1 || d->mip_filter & ~1) return CU_INVALID_VALUE;
    if (d->flags
        & ~(unsigned)(TRSF_INTEGER | TRSF_NORMALISED | TRSF_SRGB | TRSF_NO_TRILINEAR | TRSF_SEAMLESS))
        return CU_INVALID_VALUE;
    /* Linear memory is never filtered: the filter mode is ignored. */
    if (d->filter && t->asked.type != RES_LINEAR && integers && (bytes == 4 || d->flags & TRSF_INTEGER))
        return CU_INVALID_VALUE;
    if (t->asked.type == RES_MIPMAPPED && !normalised) return CU_INVALID_VALUE;
    if (t->cube && d->flags & TRSF_SEAMLESS)
        return sim_refuse("seamless cube maps (CU_TRSF_SEAMLESS_CUBEMAP)");
    if (d->flags & TRSF_SRGB && (t->format != AF_U8 || d->flags & TRSF_INTEGER)) return CU_INVALID_VALUE;
    return CU_OK;
}

static int create_object(sim_context *c, uint64_t *out, const sim_resource_desc *r, const sim_texture_desc *d,
                         const sim_view_desc *v, bool surface) {
    sim_texture made = {.surface = surface}, *t;
    const sim_array *a = NULL;
    uint32_t levels = 1;
    int code = CU_OK;
    if (!out || !r || (!surface && !d) || r->flags) return CU_INVALID_VALUE;
    made.asked = *r;
    if (r->type == RES_ARRAY) {
        a = sim_array_of(r->u.handle);
        if (!a) return CU_INVALID_HANDLE;
        made.resource = a->handle;
    } else if (r->type == RES_MIPMAPPED && !surface) {
        const sim_mipmap *m = sim_handle_get(H_MIPMAP, r->u.handle);
        if (!m) return CU_INVALID_HANDLE;
        a = &m->level[0];
        levels = m->count;
        made.resource = m->handle;
    } else if ((r->type != RES_LINEAR && r->type != RES_PITCH) || surface || v)
        return CU_INVALID_VALUE;
    if (a) {
        made.format = a->format;
        made.channels = a->channels;
        made.element = a->element;
        made.dims = a->dims;
        made.layered = a->layered;
        made.cube = a->cube;
        made.cubes = a->cube && a->flags & ARRAY_LAYERED;
        made.levels = levels;
        made.layers = a->layers;
    } else
        code = check_memory(&made);
    if (!code && v) {
        made.view = *v;
        made.has_view = true;
        code = check_view(&made, a, levels);
    }
    if (!code && !a && r->type == RES_LINEAR) made.asked.u.memory.width = r->u.memory.width / made.element;
    if (!code && surface && !(a->flags & ARRAY_SURFACE)) { /* drivers accept it, and published programs do it */
        char maker[96];
        sim_describe_creator(made.resource, maker, sizeof maker);
        sim_report_host(
            "surface-flag",
            "a surface object of an array that was made without CUDA_ARRAY3D_SURFACE_LDST (by %s)", maker);
    }
    if (!code && !surface) {
        made.t = *d;
        code = check_sampling(&made);
    }
    if (code) return code;
    if (!(t = malloc(sizeof *t))) return CU_OUT_OF_MEMORY;
    *t = made;
    if (!(t->handle = sim_handle_new(surface ? H_SURFACE : H_TEXTURE, t))) {
        free(t);
        return CU_OUT_OF_MEMORY;
    }
    if (surface) a->a->surfaced = true;
    t->context = c;
    t->next = objects;
    objects = t;
    *out = (uint64_t)(uintptr_t)t->handle;
    return CU_OK;
}

static sim_texture *object_of(uint64_t handle, bool surface) {
    return sim_handle_get(surface ? H_SURFACE : H_TEXTURE, (const void *)(uintptr_t)handle);
}

static void drop_object(sim_texture *t) {
    for (sim_texture **at = &objects; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    sim_handle_drop(t->handle);
    free(t);
}

SIM_API cuTexObjectCreate(uint64_t *out, const sim_resource_desc *r, const sim_texture_desc *d,
                          const sim_view_desc *v) {
    ENTER(cuTexObjectCreate);
    USABLE();
    return leave(create_object(c, out, r, d, v, false));
}

SIM_API cuSurfObjectCreate(uint64_t *out, const sim_resource_desc *r) {
    ENTER(cuSurfObjectCreate);
    USABLE();
    return leave(create_object(c, out, r, NULL, NULL, true));
}

static int destroy_object(uint64_t handle, bool surface) {
    sim_texture *t = object_of(handle, surface);
    if (!t) return CU_INVALID_VALUE;
    drop_object(t);
    return CU_OK;
}

SIM_API cuTexObjectDestroy(uint64_t handle) {
    ENTER(cuTexObjectDestroy);
    USABLE();
    (void)c;
    return leave(destroy_object(handle, false));
}
SIM_API cuSurfObjectDestroy(uint64_t handle) {
    ENTER(cuSurfObjectDestroy);
    USABLE();
    (void)c;
    return leave(destroy_object(handle, true));
}

static int resource_of(sim_resource_desc *out, uint64_t handle, bool surface) {
    const sim_texture *t = object_of(handle, surface);
    if (!t || !out) return CU_INVALID_VALUE;
    *out = t->asked;
    if (out->type == RES_LINEAR) out->u.memory.width *= t->element;
    return CU_OK;
}

SIM_API cuTexObjectGetResourceDesc(sim_resource_desc *out, uint64_t handle) {
    ENTER(cuTexObjectGetResourceDesc);
    USABLE();
    (void)c;
    return leave(resource_of(out, handle, false));
}
SIM_API cuSurfObjectGetResourceDesc(sim_resource_desc *out, uint64_t handle) {
    ENTER(cuSurfObjectGetResourceDesc);
    USABLE();
    (void)c;
    return leave(resource_of(out, handle, true));
}

SIM_API cuTexObjectGetTextureDesc(sim_texture_desc *out, uint64_t handle) {
    ENTER(cuTexObjectGetTextureDesc);
    USABLE();
    (void)c;
    const sim_texture *t = object_of(handle, false);
    if (!t || !out) return leave(CU_INVALID_VALUE);
    *out = t->t;
    return leave(CU_OK);
}

SIM_API cuTexObjectGetResourceViewDesc(sim_view_desc *out, uint64_t handle) {
    ENTER(cuTexObjectGetResourceViewDesc);
    USABLE();
    (void)c;
    const sim_texture *t = object_of(handle, false);
    if (!t || !out || !t->has_view) return leave(CU_INVALID_VALUE);
    *out = t->view;
    return leave(CU_OK);
}

/* --- contexts --------------------------------------------------------------------------------- */

void sim_arrays_report(sim_context *c, sim_leak_fn tell) {
    for (const sim_array *a = arrays; a; a = a->next)
        if (a->context == c) tell("an array", a->handle);
    for (const sim_mipmap *m = mipmaps; m; m = m->next)
        if (m->context == c) tell("a mipmapped array", m->handle);
    for (const sim_texture *t = objects; t; t = t->next)
        if (t->context == c) tell(t->surface ? "a surface object" : "a texture object", t->handle);
}

void sim_arrays_free(sim_context *c) {
    for (sim_texture *t = objects, *next; t; t = next) {
        next = t->next;
        if (t->context == c) drop_object(t);
    }
    for (sim_array *a = arrays, *next; a; a = next) {
        next = a->next;
        if (a->context == c) drop_array(a);
    }
    for (sim_mipmap *m = mipmaps, *next; m; m = next) {
        next = m->next;
        if (m->context == c) drop_mipmap(m);
    }
}
