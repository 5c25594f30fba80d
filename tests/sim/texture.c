/* texture.c - tex, tld4, txq, suld, sust, sured, suq.
 *
 * Filtering is that of the chips: a coordinate is rounded to 1/256 of a texel, weights are integers that sum to 256,
 * texels of 8 and 16 bits are filtered as integers. Where NVIDIA's documentation leaves details open, they are
 * as measured on compute capability 8.6; but sums of float texels are exact here and rounded once. */
#include "texture.h"
#include "arith.h"
#include <math.h>

/* The kind of number of a texel while it is filtered. */
typedef enum texel_kind {
    V_FLOAT,
    V_HALF,
    V_UNORM8,
    V_UNORM16,
    V_SNORM8,
    V_SNORM16,
    V_SRGB,
    V_INTEGER
} texel_kind;

typedef struct fetch { /* the fetch of one thread */
    sim_warp *w;
    const sim_ins *i;
    uint32_t lane;
    const sim_texture *t;
    texel_kind kind;
    const sim_array *level;
    sim_array own;
    sim_allocation *a;
    uint64_t base;  /* offset of the level in the allocation */
    uint32_t slice; /* layer or face */
    uint32_t dims;
} fetch;

typedef struct texel {
    double v[4];
    uint32_t bits[4];
} texel;

static uint32_t word(const sim_warp *w, const sim_ins *i, uint32_t entry, uint32_t lane) {
    return sim_slot(w, w->kernel->lists[i->list + entry])[lane];
}
static float real(const sim_warp *w, const sim_ins *i, uint32_t entry, uint32_t lane) {
    return F(word(w, i, entry, lane));
}

/* --- objects ---------------------------------------------------------------------------------- */

static const char *const geometry_names[GEO_COUNT] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

static const char *shape_of(const sim_texture *t) {
    if (t->asked.type == RES_LINEAR) return "linear memory";
    if (t->asked.type == RES_PITCH) return "pitched memory";
    if (t->cube) return t->cubes ? "an array of cube maps" : "a cube map";
    if (t->layered)
        return t->dims == 1 ? "a layered array of one dimension" : "a layered array of two dimensions";
    return t->dims == 1   ? "an array of one dimension"
           : t->dims == 2 ? "an array of two dimensions"
                          : "an array of three dimensions";
}

/* Whether the object fits the geometry. An image of one row is accepted as one-dimensional, and vice versa. */
static bool geometry_fits(const sim_texture *t, uint32_t geometry) {
    sim_array own;
    const sim_array *first = sim_texture_level(t, 0, &own);
    uint32_t dims = t->dims == 3 || !first || first->height > 1 ? t->dims : 0;
    switch (geometry) {
    case GEO_1D: return (dims == 1 || !dims) && !t->layered;
    case GEO_2D: return (dims == 2 || !dims) && !t->layered;
    case GEO_3D: return t->dims == 3;
    case GEO_A1D: return (dims == 1 || !dims) && t->layered && !t->cube;
    case GEO_A2D: return (dims == 2 || !dims) && t->layered && (t->surface || !t->cube);
    default: return t->cube && (geometry == GEO_ACUBE) == t->cubes;
    }
}

/* The object of a handle; NULL after a fault. */
static const sim_texture *object_of(sim_warp *w, const sim_ins *i, uint32_t lane, bool surface) {
    uint64_t handle = sim_slot64(w, w->kernel->lists[i->list + T_OBJECT])[lane];
    const sim_handle *h = sim_handle_of_any_kind((const void *)(uintptr_t)handle);
    const char *wanted = surface ? "surface" : "texture";
    char maker[96];
    if (h && h->kind == (surface ? H_SURFACE : H_TEXTURE) && h->object) {
        const sim_texture *t = h->object;
        if (!t->resource || t->resource->object) return t;
        sim_describe_creator(t->resource, maker, sizeof maker);
        sim_report_at(w, i, "use-after-free", lane,
                      "the array behind the %s object was destroyed; it was made by %s", wanted, maker);
    } else if (h && (h->kind == H_TEXTURE || h->kind == H_SURFACE)) {
        sim_describe_creator(h, maker, sizeof maker);
        if (h->object)
            sim_report_at(w, i, "texture-object", lane,
                          "a %s object is wanted, and 0x%llx is a %s object (made by %s)", wanted,
                          (unsigned long long)handle, surface ? "texture" : "surface", maker);
        else
            sim_report_at(w, i, "use-after-free", lane, "the %s object was destroyed; it was made by %s",
                          h->kind == H_SURFACE ? "surface" : "texture", maker);
    } else
        sim_report_at(w, i, "texture-object", lane, "0x%llx is no %s object", (unsigned long long)handle,
                      wanted);
    sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
    return NULL;
}

static bool check_geometry(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_texture *t) {
    if (geometry_fits(t, i->op)) return true;
    sim_report_at(w, i, "texture-type", lane, "the instruction is for geometry .%s, and the object is of %s",
                  geometry_names[i->op], shape_of(t));
    sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
    return false;
}

static bool returns_integers(const sim_texture *t) {
    return t->format != AF_HALF && t->format != AF_FLOAT
           && (t->t.flags & TRSF_INTEGER || t->element / t->channels == 4);
}

static texel_kind kind_of(const sim_texture *t) {
    if (returns_integers(t)) return V_INTEGER;
    if (t->t.flags & TRSF_SRGB) return V_SRGB;
    return t->format == AF_FLOAT  ? V_FLOAT
           : t->format == AF_HALF ? V_HALF
           : t->format == AF_U8   ? V_UNORM8
           : t->format == AF_U16  ? V_UNORM16
           : t->format == AF_S8   ? V_SNORM8
                                  : V_SNORM16;
}

/* --- texels ----------------------------------------------------------------------------------- */

static double from_srgb(double c) { return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4); }

/* A channel of 8-bit sRGB as linear value; alpha, the fourth of four, is linear already. */
static double srgb(const sim_texture *t, uint32_t channel, uint32_t k) {
    double c = k / 255.0;
    return t->channels == 4 && channel == 3 ? c : (double)(float)from_srgb(c);
}

static void unwritten_texel(const fetch *f, int64_t x, int64_t y, int64_t z) {
    const sim_array *l = f->level;
    sim_report_at(f->w, f->i, "uninitialised-read", f->lane,
                  "texel (%lld, %lld, %lld) of the %u x %u x %u %s was never written", (long long)x,
                  (long long)y, (long long)(l->layers > 1 ? f->slice : z), l->width, l->height,
                  l->depth * l->layers, f->t->resource ? "array" : "texels of memory");
}

/* Reads a texel inside the image: its channels as numbers of its kind. False after a fault. */
static bool read_texel(const fetch *f, int64_t x, int64_t y, int64_t z, texel *out) {
    const sim_texture *t = f->t;
    const sim_array *l = f->level;
    uint64_t offset =
        f->base + (uint64_t)(f->slice + z) * l->slice + (uint64_t)y * l->pitch + (uint64_t)x * t->element;
    uint32_t each = t->element / t->channels;
    bool unwritten = false;
    const uint8_t *p = sim_reach_texel(f->w, f->i, f->lane, f->a, offset, t->element, SIM_READ, &unwritten);
    memset(out, 0, sizeof *out);
    if (!p) { /* memory that was replaced by a smaller allocation */
        sim_report_at(f->w, f->i, "out-of-bounds", f->lane,
                      "the texture's memory does not hold texel (%lld, %lld)", (long long)x, (long long)y);
        sim_warp_fault(f->w, SIM_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    if (SIM_UNLIKELY(unwritten)) unwritten_texel(f, x, y, z);
    for (uint32_t c = 0; c < t->channels; c++, p += each) {
        uint32_t u = 0;
        memcpy(&u, p, each);
        out->bits[c] = t->format == AF_S8    ? (uint32_t)(int8_t)u
                       : t->format == AF_S16 ? (uint32_t)(int16_t)u
                                             : u;
        switch (f->kind) {
        case V_FLOAT: out->v[c] = F(u); break;
        case V_HALF: out->v[c] = H(u); break;
        case V_UNORM8:
        case V_UNORM16: out->v[c] = u; break;
        case V_SNORM8:
        case V_SNORM16: out->v[c] = (int32_t)out->bits[c]; break;
        case V_SRGB: out->v[c] = srgb(t, c, u); break;
        case V_INTEGER: break;
        }
    }
    return true;
}

static double clamped(double v, double lo, double hi) { return v >= lo ? v <= hi ? v : hi : lo; }

static void border_texel(const fetch *f, texel *out) {
    const sim_texture *t = f->t;
    memset(out, 0, sizeof *out);
    for (uint32_t c = 0; c < t->channels; c++) {
        float b = t->t.border[c];
        uint32_t pattern;
        memcpy(&pattern, &b, 4);
        out->bits[c] = t->format == AF_U8    ? pattern & 0xff
                       : t->format == AF_U16 ? pattern & 0xffff
                       : t->format == AF_S8  ? (uint32_t)(int8_t)pattern
                       : t->format == AF_S16 ? (uint32_t)(int16_t)pattern
                                             : pattern;
        switch (f->kind) {
        case V_FLOAT: out->v[c] = b; break;
        case V_HALF: { /* rounded toward zero */
            uint32_t h = h16(b);
            if (isfinite(b) && fabs((double)H(h)) > fabs((double)b)) h--;
            out->v[c] = H(h);
            break;
        }
        case V_UNORM8: out->v[c] = floor(clamped(b, 0, 1) * 255 + 0.5); break;
        case V_UNORM16: out->v[c] = floor(clamped(b, 0, 1) * 65535 + 0.5); break;
        case V_SNORM8: out->v[c] = floor(clamped(b, -1, 1) * 127 + 0.5); break;
        case V_SNORM16: out->v[c] = floor(clamped(b, -1, 1) * 32767 + 0.5); break;
        case V_SRGB: out->v[c] = clamped(b, 0, 1); break;
        case V_INTEGER: break;
        }
    }
}

/* Applies the address mode to index i; -1: the border colour. */
static int64_t address(int mode, int64_t i, uint32_t n) {
    int64_t size = n, j;
    if (i >= 0 && i < size) return i;
    switch (mode) {
    case ADDRESS_WRAP: j = i % size; return j < 0 ? j + size : j;
    case ADDRESS_MIRROR:
        j = i % (2 * size);
        if (j < 0) j += 2 * size;
        return j < size ? j : 2 * size - 1 - j;
    case ADDRESS_BORDER: return -1;
    default: return i < 0 ? 0 : size - 1;
    }
}

static int mode_of(const sim_texture *t, uint32_t axis) {
    int mode = t->t.address[axis];
    bool repeats = mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR;
    return repeats && !(t->t.flags & TRSF_NORMALISED) && !t->cube ? ADDRESS_CLAMP : mode;
}

static bool take(const fetch *f, const int64_t at[3], texel *out) {
    const uint32_t size[3] = {f->level->width, f->level->height, f->level->depth};
    int64_t n[3] = {0, 0, 0};
    for (uint32_t k = 0; k < f->dims; k++) {
        n[k] = address(mode_of(f->t, k), at[k], size[k]);
        if (n[k] < 0) {
            border_texel(f, out);
            return true;
        }
    }
    return read_texel(f, n[0], n[1], n[2], out);
}

/* --- filtering -------------------------------------------------------------------------------- */

static int64_t rounded(int64_t product) { return (product + 128) >> 8; }

/* Rounds to f32, ties away from zero. */
static float to_float(double v) {
    uint64_t b;
    memcpy(&b, &v, 8);
    if ((b & 0x1fffffff) == 0x10000000) b++;
    memcpy(&v, &b, 8);
    return (float)v;
}

static uint32_t float_bits(double v) {
    float r = to_float(v);
    uint32_t b;
    if (isnan(v)) return 0x7fffffff;
    memcpy(&b, &r, 4);
    return b;
}

/* Converts a channel's weighted sum to f32; `total` is the sum of the weights (256; 65536 between two levels). */
static uint32_t finish(texel_kind kind, double sum, double total) {
    double k;
    switch (kind) {
    case V_HALF: {
        double v = sum / total;
        return isnan(v) ? 0x7fffffff : float_bits(H(h16(to_float(v))));
    }
    case V_UNORM8:
    case V_UNORM16: k = floor(sum * (kind == V_UNORM8 ? 257 : 1) / total + 0.5); return float_bits(k / 65535);
    case V_SNORM16: k = floor(sum / total + 0.5); return float_bits((k < -32767 ? -32767 : k) / 32767);
    case V_SNORM8: {
        int64_t s = (int64_t)floor(sum * 256 / total + 0.5);
        s += (257 * (s >> 4) + 1024) >> 11;
        return float_bits((double)(s < -32767 ? -32767 : s) / 32767);
    }
    default: return float_bits(sum / total);
    }
}

/* Converts a channel of an unfiltered texel to f32. */
static uint32_t convert(texel_kind kind, double v) {
    switch (kind) {
    case V_UNORM8: return float_bits(v / 255);
    case V_UNORM16: return float_bits(v / 65535);
    case V_SNORM8: return float_bits(v < -127 ? -1 : v / 127);
    case V_SNORM16: return float_bits(v < -32767 ? -1 : v / 32767);
    default: return float_bits(v);
    }
}

/* A coordinate in texels of the level: the chip's f32 product, reduced first if the address mode repeats. */
static double in_texels(const fetch *f, uint32_t axis, float u, uint32_t n) {
    if (!(f->t->t.flags & TRSF_NORMALISED) && !f->t->cube) return u;
    int mode = mode_of(f->t, axis);
    if (mode == ADDRESS_WRAP)
        u -= floorf(u);
    else if (mode == ADDRESS_MIRROR)
        u -= 2 * floorf(u * 0.5f);
    return (double)(u * (float)n);
}

static int64_t whole(double v) { return (int64_t)floor(clamped(v, -1e12, 1e12)); }

/* x - 1/2 in units of 1/256 texel. */
static int64_t fixed_point(double x) { return whole((x - 0.5) * 256 + 0.5); }

static bool not_a_number(const fetch *f, const float *c, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        int mode = mode_of(f->t, k < 3 ? k : 2);
        if (!isnan(c[k]) && !(isinf(c[k]) && (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR))) continue;
        sim_report_at(f->w, f->i, "texture-coordinate", f->lane,
                      "coordinate %u is %s: which texel is fetched is documented nowhere", k,
                      isnan(c[k]) ? "no number" : "infinite, and the address mode repeats");
        return true;
    }
    return false;
}

/* Weighted sums of the channels at one level, with weights that sum to 256. A 1D texture is treated as one of height
 * 1 at y = 0, as on the chip: that matters if the second address mode is border. */
static bool filter_linear(const fetch *f, const float *c, const int32_t *offset, double sum[4]) {
    const sim_array *l = f->level;
    const uint32_t size[3] = {l->width, l->height, l->depth};
    int64_t i[3] = {0, 0, 0}, part[3] = {0, 0, 0};
    uint32_t dims = f->dims == 1 && !f->t->layered && mode_of(f->t, 1) == ADDRESS_BORDER ? 2 : f->dims;
    fetch flat = *f;
    flat.dims = dims;
    for (uint32_t k = 0; k < dims; k++) {
        double x = k < f->dims ? in_texels(f, k, c[k], size[k]) + offset[k] : 0;
        if (mode_of(f->t, k) == ADDRESS_CLAMP) x = clamped(x, 0.5, size[k] - 0.5);
        int64_t fixed = fixed_point(x);
        i[k] = fixed >> 8;
        part[k] = fixed & 255;
    }
    memset(sum, 0, 4 * sizeof *sum);
    for (uint32_t corner = 0; corner < 1u << dims; corner++) {
        uint32_t right = corner & 1, down = corner >> 1 & 1, behind = corner >> 2;
        /* Weights split by z, by x, by y; a rounding error in one goes to its neighbour. */
        int64_t wz = dims < 3 ? 256 : behind ? part[2] : 256 - part[2];
        int64_t wx1 = rounded(wz * part[0]), wy1 = dims > 1 ? rounded(wz * part[1]) : 0,
                w11 = rounded(wx1 * part[1]);
        int64_t weight = dims == 1 ? (right ? wx1 : wz - wx1)
                         : right   ? (down ? w11 : wx1 - w11)
                                   : (down ? wy1 - w11 : wz - wx1 - wy1 + w11);
        const int64_t at[3] = {i[0] + right, i[1] + down, i[2] + behind};
        texel v;
        if (!weight) continue;
        if (!take(&flat, at, &v)) return false;
        for (uint32_t k = 0; k < f->t->channels; k++) {
            bool tiny = f->kind == V_FLOAT && fabs(v.v[k]) < 1.17549435082228750797e-38;
            if (!tiny) sum[k] += (double)weight * v.v[k];
        }
    }
    return true;
}

static bool filter_nearest(const fetch *f, const float *c, const int32_t *offset, texel *out) {
    const uint32_t size[3] = {f->level->width, f->level->height, f->level->depth};
    int64_t at[3] = {0, 0, 0};
    for (uint32_t k = 0; k < f->dims; k++) {
        at[k] = whole(in_texels(f, k, c[k], size[k]) + offset[k]);
        if (f->t->cube) at[k] = at[k] < 0 ? 0 : at[k] >= size[k] ? size[k] - 1 : at[k];
    }
    return take(f, at, out);
}

/* --- levels of detail ------------------------------------------------------------------------- */

static bool select_level(fetch *f, uint32_t level) {
    const sim_texture *t = f->t;
    f->level = sim_texture_level(t, level, &f->own);
    if (t->resource) {
        f->a = f->level->a;
        f->base = f->level->offset;
        return true;
    }
    f->a = sim_memory_find(t->asked.u.memory.address);
    if (f->a) f->base = t->asked.u.memory.address - f->a->base;
    if (f->a) return true;
    char where[200] = "";
    sim_memory_describe(t->asked.u.memory.address, 1, where, sizeof where);
    sim_report_at(f->w, f->i, "use-after-free", f->lane, "the memory of the texture object is gone: %s",
                  where);
    sim_warp_fault(f->w, SIM_ERROR_ILLEGAL_ADDRESS);
    return false;
}

static int64_t in_256ths(double v) { return (int64_t)clamped(v * 256, -1e6, 1e6); } /* truncated */

/* The squared length of a gradient, in texels. */
static double squared(const sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t entry, const sim_array *l,
                      uint32_t dims, bool normalised) {
    const uint32_t size[3] = {l->width, l->height, l->depth};
    double sum = 0;
    for (uint32_t k = 0; k < dims; k++) {
        double g = real(w, i, entry + k, lane) * (normalised ? (double)size[k] : 1.0);
        sum += g * g;
    }
    return sum;
}

/* The level of detail, in 1/256. */
static int64_t detail(const fetch *f) {
    const sim_texture *t = f->t;
    const sim_ins *i = f->i;
    int64_t most = ((int64_t)t->levels - 1) * 256, lod;
    if (i->width == TEX_BASE || t->asked.type != RES_MIPMAPPED) return 0;
    if (i->width == TEX_LEVEL && !(i->x & X_FLOAT_COORD)) {
        lod = (int64_t)(int32_t)word(f->w, i, T_LOD, f->lane) * 256;
        return lod < 0 ? 0 : lod > most ? most : lod;
    }
    if (i->width == TEX_LEVEL) {
        double v = real(f->w, i, T_LOD, f->lane);
        lod = isnan(v) ? 0 : in_256ths(v);
    } else {
        bool normalised = t->t.flags & TRSF_NORMALISED;
        double x = squared(f->w, i, f->lane, T_GRAD_X, f->level, f->dims, normalised),
               y = squared(f->w, i, f->lane, T_GRAD_Y, f->level, f->dims, normalised),
               most_squared = x > y ? x : y;
        lod = most_squared > 0 ? in_256ths(0.5 * log2(most_squared)) : -1000000;
    }
    lod += in_256ths(t->t.bias);
    int64_t lo = in_256ths(t->t.least), hi = in_256ths(t->t.most);
    lod = lod < lo ? lo : lod;
    lod = lod > hi ? hi : lod;
    return lod < 0 ? 0 : lod > most ? most : lod;
}

/* --- tex and tld4 ----------------------------------------------------------------------------- */

/* The face of a cube map that a direction hits, and the coordinates on it. */
static uint32_t face_of(const float d[3], float out[2]) {
    float x = fabsf(d[0]), y = fabsf(d[1]), z = fabsf(d[2]), m, s, t;
    uint32_t face;
    if (z >= x && z >= y) {
        face = d[2] < 0 ? 5 : 4;
        m = z;
        s = d[2] < 0 ? -d[0] : d[0];
        t = -d[1];
    } else if (y >= x) {
        face = d[1] < 0 ? 3 : 2;
        m = y;
        s = d[0];
        t = d[1] < 0 ? -d[2] : d[2];
    } else {
        face = d[0] < 0 ? 1 : 0;
        m = x;
        s = d[0] < 0 ? d[2] : -d[2];
        t = -d[1];
    }
    out[0] = (s / m + 1) * 0.5f;
    out[1] = (t / m + 1) * 0.5f;
    return face;
}

static void check_type(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_texture *t) {
    bool integers = i->type == T_U32 || i->type == T_S32;
    if (integers == returns_integers(t)) return;
    sim_report_at(w, i, "texture-type", lane,
                  "the instruction returns .%s, and the texture %s: the bits are not converted",
                  sim_types[i->type].name,
                  integers ? "floats (it is of floats, or of integers read as normalised floats)"
                           : "integers");
}

static void write_result(sim_warp *w, const sim_ins *i, uint32_t lane, const uint32_t v[4]) {
    const uint32_t *list = w->kernel->lists + i->list;
    uint32_t r[4] = {v[0], v[1], v[2], v[3]};
    if (i->type == T_F16 || i->type == T_F16X2)
        for (int k = 0; k < 4; k++) r[k] = h16(F(v[k]));
    if (i->type == T_F16X2) {
        r[0] |= r[1] << 16;
        r[1] = r[2] | r[3] << 16;
    }
    for (uint32_t k = 0; k < i->count; k++)
        if (list[T_RESULTS + k] != UINT32_MAX) sim_slot(w, list[T_RESULTS + k])[lane] = r[k];
}

/* Fetches by integer coordinates; outside the image all channels are 0. */
static bool fetch_texel(const fetch *f, const int32_t *c, const int32_t *offset, uint32_t out[4]) {
    const uint32_t size[3] = {f->level->width, f->level->height, f->level->depth};
    int64_t at[3] = {0, 0, 0};
    texel v;
    memset(out, 0, 4 * sizeof *out);
    for (uint32_t k = 0; k < f->dims; k++) {
        at[k] = (int64_t)c[k] + offset[k];
        if (at[k] < 0 || at[k] >= size[k]) return true;
    }
    if (!read_texel(f, at[0], at[1], at[2], &v)) return false;
    for (uint32_t k = 0; k < f->t->channels; k++)
        out[k] = f->kind == V_INTEGER ? v.bits[k] : convert(f->kind, v.v[k]);
    return true;
}

/* Samples one level: sums of weights 256, and if nothing is filtered the result in `out`. */
static bool sample(fetch *f, const float *c, const int32_t *offset, bool linear, double sum[4],
                   uint32_t out[4]) {
    texel v;
    if (linear) return filter_linear(f, c, offset, sum);
    if (!filter_nearest(f, c, offset, &v)) return false;
    for (uint32_t k = 0; k < f->t->channels; k++) {
        out[k] = f->kind == V_INTEGER ? v.bits[k] : convert(f->kind, v.v[k]);
        sum[k] = v.v[k] * 256;
    }
    return true;
}

static bool sample_levels(fetch *f, const float *c, const int32_t *offset, uint32_t out[4]) {
    const sim_texture *t = f->t;
    bool linear = t->t.filter && t->asked.type != RES_LINEAR && f->kind != V_INTEGER;
    double sum[4] = {0}, next[4] = {0};
    int64_t lod = detail(f), part = 0;
    uint32_t level = (uint32_t)((lod + 128) >> 8);
    if (t->t.mip_filter && f->kind != V_INTEGER) {
        level = (uint32_t)(lod >> 8);
        part = lod & 255;
    }
    if (!select_level(f, level) || !sample(f, c, offset, linear, sum, out)) return false;
    if (part) {
        uint32_t ignored[4];
        if (!select_level(f, level + 1) || !sample(f, c, offset, linear, next, ignored)) return false;
    }
    if (!linear && !part) return true;
    for (uint32_t k = 0; k < t->channels; k++)
        out[k] = part ? finish(f->kind, sum[k] * (double)(256 - part) + next[k] * (double)part, 65536)
                      : finish(f->kind, sum[k], 256);
    return true;
}

/* tld4: one channel of the four texels of linear filtering, counter-clockwise from the lower left. */
static bool gather_channel(const fetch *f, const float *c, const int32_t *offset, uint32_t out[4]) {
    static const uint8_t order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    const uint32_t size[2] = {f->level->width, f->level->height};
    uint32_t channel = f->i->space;
    int64_t i[2];
    for (uint32_t k = 0; k < 2; k++) i[k] = fixed_point(in_texels(f, k, c[k], size[k]) + offset[k]) >> 8;
    for (uint32_t n = 0; n < 4; n++) {
        const int64_t at[3] = {i[0] + order[n][0], i[1] + order[n][1], 0};
        texel v;
        if (!take(f, at, &v)) return false;
        out[n] = channel >= f->t->channels ? 0
                 : f->kind == V_INTEGER    ? v.bits[channel]
                                           : convert(f->kind, v.v[channel]);
    }
    return true;
}

static int32_t sign_extend(uint32_t v, uint32_t bits) {
    uint32_t sign = 1u << (bits - 1);
    return (int32_t)(((v & (2 * sign - 1)) ^ sign) - sign);
}

static bool tex_lane(sim_warp *w, const sim_ins *i, uint32_t lane) {
    static const uint8_t axes[GEO_COUNT] = {1, 2, 3, 1, 2, 2, 2};
    const sim_texture *t = object_of(w, i, lane, false);
    uint32_t out[4] = {0}, layered = i->op == GEO_A1D || i->op == GEO_A2D || i->op == GEO_ACUBE, face = 0;
    bool cube = i->op == GEO_CUBE || i->op == GEO_ACUBE, fine;
    int32_t offset[3] = {0}, n[3] = {0};
    float c[3] = {0};
    if (!t || !check_geometry(w, i, lane, t)) return false;
    check_type(w, i, lane, t);
    if (i->width == TEX_GRAD && t->t.anisotropy > 1 && t->asked.type == RES_MIPMAPPED) {
        sim_report_at(
            w, i, "not-implemented", lane,
            "tex.grad on a texture object with maxAnisotropy %u: this CPU driver has no anisotropic filter",
            t->t.anisotropy);
        sim_warp_fault(w, SIM_ERROR_ILLEGAL_INSTRUCTION);
        return false;
    }
    fetch f = {.w = w, .i = i, .lane = lane, .t = t, .kind = kind_of(t), .dims = axes[i->op]};
    if (!select_level(&f, 0)) return false;
    for (uint32_t k = 0; k < (cube ? 3u : f.dims); k++) {
        c[k] = real(w, i, T_COORD + layered + k, lane);
        n[k] = (int32_t)word(w, i, T_COORD + layered + k, lane);
    }
    for (uint32_t k = 0; k < f.dims && i->x & X_OFFSET; k++)
        offset[k] = sign_extend(word(w, i, T_OFFSET + k, lane), i->width == TEX_GATHER ? 6 : 4);
    if (layered) {
        uint32_t layer = word(w, i, T_COORD, lane), count = cube ? t->layers / 6 : t->layers;
        f.slice = (layer < count ? layer : count - 1) * (cube ? 6 : 1);
    }
    if (i->x & X_FLOAT_COORD && not_a_number(&f, c, cube ? 3 : f.dims)) {
        write_result(w, i, lane, out);
        return true;
    }
    if (cube) {
        float place[2];
        if (c[0] == 0 && c[1] == 0 && c[2] == 0) {
            sim_report_at(w, i, "texture-coordinate", lane, "the direction into the cube map is zero");
            write_result(w, i, lane, out);
            return true;
        }
        face = face_of(c, place);
        c[0] = place[0];
        c[1] = place[1];
        f.slice += face;
    }
    f.slice += t->first_layer;
    if (!(i->x & X_FLOAT_COORD)) {
        uint32_t level = (uint32_t)(detail(&f) >> 8);
        fine = (!level || select_level(&f, level)) && fetch_texel(&f, n, offset, out);
    } else if (i->width == TEX_GATHER)
        fine = gather_channel(&f, c, offset, out);
    else
        fine = sample_levels(&f, c, offset, out);
    if (fine) write_result(w, i, lane, out);
    return fine;
}

void sim_tex(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) if (!tex_lane(w, i, l)) return;
    if (i->q) sim_pred_write(w, i->q - 1, SIM_FULL, m);
}

/* --- queries ---------------------------------------------------------------------------------- */

static uint32_t channel_type(uint32_t format, bool integers) {
    switch (format) { /* as in OpenCL */
    case AF_U8: return integers ? 0x10da : 0x10d2;
    case AF_U16: return integers ? 0x10db : 0x10d3;
    case AF_U32: return 0x10dc;
    case AF_S8: return integers ? 0x10d7 : 0x10d0;
    case AF_S16: return integers ? 0x10d8 : 0x10d1;
    case AF_S32: return 0x10d9;
    case AF_HALF: return 0x10dd;
    default: return 0x10de;
    }
}

static uint32_t answer(const sim_ins *i, const sim_texture *t, const sim_array *l) {
    static const uint8_t modes[] = {0, 3, 1, 4}; /* wrap, clamp to edge, mirror, clamp to border */
    bool normalised = t->t.flags & TRSF_NORMALISED;
    switch (i->op) {
    case Q_WIDTH: return l->width;
    case Q_HEIGHT: return t->dims > 1 ? l->height : 0;
    case Q_DEPTH: return t->dims > 2 ? l->depth : 0;
    case Q_DATA_TYPE: return channel_type(t->format, t->surface || returns_integers(t));
    case Q_ORDER: return t->channels == 1 ? 0x10b0 : t->channels == 2 ? 0x10b2 : 0x10b5;
    case Q_NORMALISED: return normalised;
    case Q_ARRAY_SIZE: return t->layered && (!t->cube || t->cubes) ? t->layers / (t->cube ? 6 : 1) : 0;
    case Q_LEVELS: return t->asked.type == RES_MIPMAPPED ? t->levels : 0;
    case Q_SAMPLES: return 0;
    case Q_FILTER: return (uint32_t)t->t.filter;
    case Q_UNNORMALISED: return !normalised;
    case Q_LAYOUT: return 0;
    default: return modes[t->t.address[i->op - Q_ADDRESS_0]];
    }
}

/* i->width 1: suq; X_OFFSET: an operand gives the level of detail. */
void sim_texture_query(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        const sim_texture *t = object_of(w, i, l, i->width == 1);
        uint32_t level = i->x & X_OFFSET ? word(w, i, T_LOD, l) : 0;
        sim_array own;
        if (!t) return;
        if (level >= t->levels) {
            sim_report_at(w, i, "out-of-bounds", l, "level of detail %u of a texture that has %u", level,
                          t->levels);
            level = t->levels - 1;
        }
        sim_slot(w, i->d)[l] = answer(i, t, sim_texture_level(t, level, &own));
    }
}

/* --- surfaces --------------------------------------------------------------------------------- */

typedef struct place {
    sim_allocation *a;
    uint64_t offset;
    bool outside;
} place;

/* The allocation and offset of `bytes` at a surface's coordinates. x is a byte offset, or for forms with .p the index
 * of a texel. False after a fault. */
static bool surface_place(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_texture *t, uint32_t bytes,
                          place *out) {
    const sim_array *a = t->resource->object;
    uint32_t layered = i->op == GEO_A1D || i->op == GEO_A2D, axes = i->op == GEO_3D                       ? 3
                                                                    : i->op == GEO_2D || i->op == GEO_A2D ? 2
                                                                                                          : 1;
    int64_t at[3] = {0}, size[3] = {a->width, a->height, a->depth}, layer = 0;
    bool formatted = i->x & X_FORMATTED;
    for (uint32_t k = 0; k < axes; k++) at[k] = (int32_t)word(w, i, T_COORD + layered + k, lane);
    if (formatted) at[0] *= a->element;
    size[0] = (int64_t)a->width * a->element - bytes + 1; /* x of the first access that does not fit */
    if (layered) layer = word(w, i, T_COORD, lane);
    uint32_t align = formatted ? 1 : bytes;
    if (at[0] & (align - 1)) {
        sim_report_at(w, i, "misaligned", lane,
                      "surface access of %u bytes at byte %lld of a row, which is no multiple of %u", bytes,
                      (long long)at[0], align);
        sim_warp_fault(w, SIM_ERROR_MISALIGNED);
        return false;
    }
    out->a = a->a;
    out->outside = layer >= a->layers;
    for (uint32_t k = 0; k < axes; k++) out->outside |= at[k] < 0 || at[k] >= size[k];
    if (out->outside && i->space == SURF_TRAP) {
        sim_report_at(w, i, "out-of-bounds", lane,
                      "surface access of %u bytes at byte %lld of row %lld, slice or layer %lld: the surface "
                      "has rows of %llu "
                      "bytes, %u rows, %u slices or layers",
                      bytes, (long long)at[0], (long long)at[1], (long long)(layered ? layer : at[2]),
                      (unsigned long long)a->pitch, a->height, a->depth * a->layers);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    if (out->outside && i->space == SURF_CLAMP) {
        for (uint32_t k = 0; k < axes; k++) at[k] = at[k] < 0 ? 0 : at[k] >= size[k] ? size[k] - 1 : at[k];
        at[0] = at[0] / align * align;
        layer = layer >= a->layers ? a->layers - 1 : layer;
        out->outside = size[0] <= 0;
    }
    out->offset =
        a->offset + (uint64_t)(layer + at[2]) * a->slice + (uint64_t)at[1] * a->pitch + (uint64_t)at[0];
    return true;
}

static const sim_texture *surface_of(sim_warp *w, const sim_ins *i, uint32_t lane) {
    const sim_texture *t = object_of(w, i, lane, true);
    return t && check_geometry(w, i, lane, t) ? t : NULL;
}

static void tell_unwritten(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t bytes, const sim_texture *t,
                           const place *p) {
    const sim_array *a = t->resource->object;
    uint64_t in = p->offset - a->offset;
    sim_report_at(
        w, i, "uninitialised-read", lane,
        "surface access of %u bytes at byte %llu of row %llu, slice or layer %llu, which was never written",
        bytes, (unsigned long long)(in % a->pitch), (unsigned long long)(in % a->slice / a->pitch),
        (unsigned long long)(in / a->slice));
}

void sim_surface_load(sim_warp *w, const sim_ins *i, uint32_t m) {
    const uint32_t *list = w->kernel->lists + i->list;
    uint32_t bytes = (uint32_t)i->size * i->count;
    SIM_EACH_LANE(l, m) {
        const sim_texture *t = surface_of(w, i, l);
        uint8_t raw[16] = {0};
        bool unwritten = false;
        place p;
        if (!t || !surface_place(w, i, l, t, bytes, &p)) return;
        if (!p.outside) {
            const uint8_t *from = sim_reach_texel(w, i, l, p.a, p.offset, bytes, SIM_READ, &unwritten);
            if (from) memcpy(raw, from, bytes);
            if (SIM_UNLIKELY(unwritten)) tell_unwritten(w, i, l, bytes, t, &p);
        }
        for (uint32_t k = 0; k < i->count; k++) {
            uint64_t v = 0;
            if (list[T_RESULTS + k] == UINT32_MAX) continue;
            memcpy(&v, raw + k * i->size, i->size);
            if (list[T_RESULTS + k] & SIM_WIDE)
                sim_slot64(w, list[T_RESULTS + k] & ~SIM_WIDE)[l] = v;
            else
                sim_slot(w, list[T_RESULTS + k])[l] = (uint32_t)v;
        }
    }
}

/* sust.p: converts a channel from 32 bits to the surface's format. */
static uint32_t to_format(uint32_t format, uint32_t v) {
    int32_t s = (int32_t)v;
    switch (format) {
    case AF_U8: return v > 255 ? 255 : v;
    case AF_U16: return v > 65535 ? 65535 : v;
    case AF_S8: return (uint32_t)(s < -128 ? -128 : s > 127 ? 127 : s);
    case AF_S16: return (uint32_t)(s < -32768 ? -32768 : s > 32767 ? 32767 : s);
    case AF_HALF: { /* toward zero */
        uint32_t h = h16(F(v));
        return isfinite(F(v)) && fabsf(H(h)) > fabsf(F(v)) ? h - 1 : h;
    }
    default: return v;
    }
}

void sim_surface_store(sim_warp *w, const sim_ins *i, uint32_t m) {
    const uint32_t *list = w->kernel->lists + i->list;
    SIM_EACH_LANE(l, m) {
        const sim_texture *t = surface_of(w, i, l);
        bool formatted = i->x & X_FORMATTED, unwritten = false;
        uint32_t bytes = t && formatted ? t->element : (uint32_t)i->size * i->count;
        uint8_t raw[16] = {0};
        place p;
        if (!t || !surface_place(w, i, l, t, bytes, &p)) return;
        if (p.outside) continue;
        uint32_t each = formatted ? t->element / t->channels : i->size,
                 n = formatted ? t->channels : i->count;
        for (uint32_t k = 0; k < n && k < i->count; k++) {
            uint32_t slot = list[T_VALUES + k];
            uint64_t v = slot & SIM_WIDE ? sim_slot64(w, slot & ~SIM_WIDE)[l] : sim_slot(w, slot)[l];
            if (formatted) v = to_format(t->format, (uint32_t)v);
            memcpy(raw + k * each, &v, each);
        }
        uint8_t *to = sim_reach_texel(w, i, l, p.a, p.offset, bytes, SIM_WRITE, &unwritten);
        if (to) memcpy(to, raw, bytes);
    }
}

void sim_surface_reduce(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        const sim_texture *t = surface_of(w, i, l);
        bool unwritten = false;
        sim_ins how = *i;
        place p;
        if (!t) return;
        if (i->x & X_FORMATTED) {
            bool is_signed = t->format == AF_S32;
            if (t->channels != 1 || (t->format != AF_U32 && t->format != AF_S32) || i->size != 4) {
                sim_report_at(w, i, "texture-type", l,
                              "sured.p of %u bits on a surface of %u channels of %u bits", i->size * 8u,
                              t->channels, t->element / t->channels * 8u);
                sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
                return;
            }
            how.type = is_signed ? T_S32 : T_U32;
        }
        if (!surface_place(w, i, l, t, i->size, &p)) return;
        if (p.outside) continue;
        uint8_t *to = sim_reach_texel(w, i, l, p.a, p.offset, i->size, SIM_UPDATE, &unwritten);
        if (SIM_UNLIKELY(unwritten)) tell_unwritten(w, i, l, i->size, t, &p);
        uint32_t slot = w->kernel->lists[i->list + T_VALUES];
        how.op = (uint8_t)i->imm;
        if (to)
            sim_combine(&how, to, i->size,
                        slot & SIM_WIDE ? sim_slot64(w, slot & ~SIM_WIDE)[l] : sim_slot(w, slot)[l], true);
    }
}
