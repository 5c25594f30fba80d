/* texture.h - arrays, texture and surface objects: created by arrays.c, read by texture.c. */
#ifndef SIM_TEXTURE_H
#define SIM_TEXTURE_H
#include "driver.h"

SIM_PRIVATE_BEGIN

/* Array formats (CUarray_format). */
enum {
    AF_U8 = 1,
    AF_U16 = 2,
    AF_U32 = 3,
    AF_S8 = 8,
    AF_S16 = 9,
    AF_S32 = 10,
    AF_HALF = 16,
    AF_FLOAT = 32
};
uint32_t sim_format_bytes(uint32_t format);        /* of a channel; 0: format not implemented */

enum { ARRAY_LAYERED = 1, ARRAY_SURFACE = 2, ARRAY_CUBE = 4, ARRAY_GATHER = 8 };

/* An array, or a level of a mipmapped array. Texels are stored by rows, then slices, then layers. */
typedef struct sim_array {
    struct sim_handle *handle;
    struct sim_array *next;            /* list of all arrays; levels are not in it */
    struct sim_mipmap *of;             /* the mipmapped array that it is a level of */
    sim_context *context;
    sim_allocation *a;
    uint64_t offset, pitch, slice;     /* bytes: offset in the allocation, size of a row, of a slice or layer */
    uint32_t asked[3];                 /* width, height, depth of the descriptor; 0: dimension absent */
    uint32_t width, height, depth;     /* at least 1; depth does not count layers */
    uint32_t dims, layers;
    uint32_t format, channels, element, flags;
    bool layered, cube;
} sim_array;

enum { SIM_MAX_LEVELS = 18 };
typedef struct sim_mipmap {
    struct sim_handle *handle;
    struct sim_mipmap *next;
    sim_context *context;
    sim_allocation *a;
    uint32_t count;
    sim_array level[SIM_MAX_LEVELS];
} sim_mipmap;

sim_array *sim_array_of(const void *handle);       /* NULL: no live array */
/* Where in an array a copy of `bytes` x rows x depth at x, y, z begins; 0 or a CUresult. */
int  sim_array_side(const void *handle, size_t x, size_t y, size_t z, size_t bytes, size_t rows, size_t depth,
                    sim_copy_side *out);
void sim_arrays_free(sim_context *c);
void sim_arrays_report(sim_context *c, sim_leak_fn tell);
void sim_external_free(sim_context *c);        /* external.c */
void sim_external_report(sim_context *c, sim_leak_fn tell);

enum { RES_ARRAY, RES_MIPMAPPED, RES_LINEAR, RES_PITCH };
enum { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER };
enum { TRSF_INTEGER = 1, TRSF_NORMALISED = 2, TRSF_SRGB = 0x10, TRSF_NO_TRILINEAR = 0x20, TRSF_SEAMLESS = 0x40 };

typedef struct sim_texture_desc {      /* CUDA_TEXTURE_DESC */
    int address[3], filter;
    unsigned flags, anisotropy;
    int mip_filter;
    float bias, least, most, border[4];
    int reserved[12];
} sim_texture_desc;

typedef struct sim_resource_desc {     /* CUDA_RESOURCE_DESC */
    int type;
    union {
        void *handle;
        struct { uint64_t address; int format; unsigned channels; size_t width, height, pitch; } memory;
        int reserved[32];
    } u;
    unsigned flags;
} sim_resource_desc;

typedef struct sim_view_desc {         /* CUDA_RESOURCE_VIEW_DESC */
    int format;
    size_t width, height, depth;
    unsigned first_level, last_level, first_layer, last_layer, reserved[16];
} sim_view_desc;

typedef struct sim_texture {           /* a texture or surface object */
    struct sim_handle *handle;
    struct sim_texture *next;
    sim_context *context;
    const struct sim_handle *resource; /* the array's or mipmapped array's record; NULL: memory */
    sim_resource_desc asked;
    sim_texture_desc t;
    sim_view_desc view;
    bool has_view, surface;
    uint32_t format, channels, element;
    uint32_t dims;
    bool layered, cube, cubes;         /* cubes: cube map array */
    uint32_t first_level, levels, first_layer, layers;
} sim_texture;

/* A level of the object's array, NULL if the array was destroyed; for memory, it fills and returns `own`. */
const sim_array *sim_texture_level(const sim_texture *t, uint32_t level, sim_array *own);

/* memory.c: address of texels or bytes of them, checked like loads and stores. *unwritten: some byte was never
 * written. NULL: outside the allocation. */
uint8_t *sim_reach_texel(sim_warp *w, const sim_ins *i, uint32_t lane, sim_allocation *a, uint64_t offset,
                         uint32_t bytes, sim_access access, bool *unwritten);

/* texture.c: handlers that lower_texture.c names. Indices into the list of operand slots: */
enum { T_RESULTS, T_OBJECT = 4, T_COORD, T_LOD = T_COORD + 4, T_GRAD_X, T_GRAD_Y = T_GRAD_X + 3,
       T_OFFSET = T_GRAD_Y + 3, T_VALUES = T_OFFSET + 3, T_LIST = T_VALUES + 4 };
enum { GEO_1D, GEO_2D, GEO_3D, GEO_A1D, GEO_A2D, GEO_CUBE, GEO_ACUBE, GEO_COUNT };
enum { TEX_BASE, TEX_LEVEL, TEX_GRAD, TEX_GATHER };
enum { SURF_TRAP, SURF_CLAMP, SURF_ZERO };
enum { X_FLOAT_COORD = 1 << 8, X_OFFSET = 1 << 9, X_FORMATTED = 1 << 10 };   /* in i->x of these */
void sim_tex(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_texture_query(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_surface_load(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_surface_store(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_surface_reduce(sim_warp *w, const sim_ins *i, uint32_t mask);
enum { Q_WIDTH, Q_HEIGHT, Q_DEPTH, Q_DATA_TYPE, Q_ORDER, Q_NORMALISED, Q_ARRAY_SIZE, Q_LEVELS, Q_SAMPLES,
       Q_FILTER, Q_ADDRESS_0, Q_ADDRESS_1, Q_ADDRESS_2, Q_UNNORMALISED, Q_LAYOUT, Q_COUNT };

/* Reports on stderr an existing feature that this driver lacks; returns CUDA_ERROR_NOT_SUPPORTED. */
int sim_refuse(const char *format, ...) SIM_PRINTF(1, 2);

SIM_PRIVATE_END
#endif
