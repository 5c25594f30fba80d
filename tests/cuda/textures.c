/* textures.c - arrays, textures and surfaces: the host side in ptxgen_cuda.h, the instructions by name, each mode
   against a reference in C. `textures [LIBRARY]`, as launch.c.

   make build/tests/cuda/textures */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"
#include "../reference/textures.h"

#include <unistd.h>

/* -- the CPU driver's findings -- */

static unsigned (*report_count)(void);
static size_t (*report)(char *, size_t);
static void (*report_clear)(void);

static void find_reports(const ptxcu *cu) {
    void *p;
#define FIND(pointer, name)                                                                                  \
    p = ptxcu_symbol(cu, name);                                                                              \
    memcpy(&pointer, &p, sizeof p)
    FIND(report_count, "ptxsim_report_count");
    FIND(report, "ptxsim_report");
    FIND(report_clear, "ptxsim_report_clear");
#undef FIND
}

static void no_findings(int line) {
    static char text[4000];
    if (!report_count) return;
    CHECK_AT(report_count() == 0, line, "the CPU driver has found nothing", "");
    if (report_count()) {
        report(text, sizeof text);
        printf("%s\n", text);
        report_clear();
    }
}
#define CLEAN() no_findings(__LINE__)

/* ---- kernels: thread i takes coordinates i of four floats, and writes four results ---- */

enum { GEO_1D, GEO_2D, GEO_3D, GEO_1D_LAYERED, GEO_2D_LAYERED, GEO_CUBE, GEO_CUBE_LAYERED, GEOS };
enum { MODE_PLAIN, MODE_LOD, MODE_GRAD, MODE_GATHER, MODE_INTEGER, MODES };
static const char *const geometry_names[] = {"1d",         "2d",   "3d",          "1d_layered",
                                             "2d_layered", "cube", "cube_layered"};

static uint32_t entries[GEOS][MODES][3]; /* by type: f32, u32, s32; entry + 1 */

/* The coordinates in order: layer first, bits of a u32. */
static void fetch(ptx_kernel *k, int geo, int mode, ptx_type type, ptx_val t, const ptx_val *c, ptx_val lod,
                  const ptx_val *d, ptx_val *out) {
    ptx_val x = c[0], y = c[1], z = c[2], w = c[3];
    const ptx_val *dy = d + 3;
    if (mode == MODE_GATHER) {
        switch (geo) {
        case GEO_2D: ptx_tex_gather_2d(k, 1, type, t, x, y, out); break;
        case GEO_2D_LAYERED: ptx_tex_gather_2d_layered(k, 3, type, t, x, y, z, out); break;
        case GEO_CUBE: ptx_tex_gather_cube(k, 0, type, t, x, y, z, out); break;
        default: ptx_tex_gather_cube_layered(k, 2, type, t, x, y, z, w, out); break;
        }
        return;
    }
    switch (geo * 3 + (mode == MODE_LOD ? 1 : mode == MODE_GRAD ? 2 : 0)) {
    case GEO_1D * 3: ptx_tex_1d(k, type, t, x, out); break;
    case GEO_1D * 3 + 1: ptx_tex_1d_lod(k, type, t, x, lod, out); break;
    case GEO_1D * 3 + 2: ptx_tex_1d_grad(k, type, t, x, d, dy, out); break;
    case GEO_2D * 3: ptx_tex_2d(k, type, t, x, y, out); break;
    case GEO_2D * 3 + 1: ptx_tex_2d_lod(k, type, t, x, y, lod, out); break;
    case GEO_2D * 3 + 2: ptx_tex_2d_grad(k, type, t, x, y, d, dy, out); break;
    case GEO_3D * 3: ptx_tex_3d(k, type, t, x, y, z, out); break;
    case GEO_3D * 3 + 1: ptx_tex_3d_lod(k, type, t, x, y, z, lod, out); break;
    case GEO_3D * 3 + 2: ptx_tex_3d_grad(k, type, t, x, y, z, d, dy, out); break;
    case GEO_1D_LAYERED * 3: ptx_tex_1d_layered(k, type, t, x, y, out); break;
    case GEO_1D_LAYERED * 3 + 1: ptx_tex_1d_layered_lod(k, type, t, x, y, lod, out); break;
    case GEO_1D_LAYERED * 3 + 2: ptx_tex_1d_layered_grad(k, type, t, x, y, d, dy, out); break;
    case GEO_2D_LAYERED * 3: ptx_tex_2d_layered(k, type, t, x, y, z, out); break;
    case GEO_2D_LAYERED * 3 + 1: ptx_tex_2d_layered_lod(k, type, t, x, y, z, lod, out); break;
    case GEO_2D_LAYERED * 3 + 2: ptx_tex_2d_layered_grad(k, type, t, x, y, z, d, dy, out); break;
    case GEO_CUBE * 3: ptx_tex_cube(k, type, t, x, y, z, out); break;
    case GEO_CUBE * 3 + 1: ptx_tex_cube_lod(k, type, t, x, y, z, lod, out); break;
    case GEO_CUBE * 3 + 2: ptx_tex_cube_grad(k, type, t, x, y, z, d, dy, out); break;
    case GEO_CUBE_LAYERED * 3: ptx_tex_cube_layered(k, type, t, x, y, z, w, out); break;
    case GEO_CUBE_LAYERED * 3 + 1: ptx_tex_cube_layered_lod(k, type, t, x, y, z, w, lod, out); break;
    default: ptx_tex_cube_layered_grad(k, type, t, x, y, z, w, d, dy, out); break;
    }
}

static int exists(int geo, int mode) {
    if (mode == MODE_GATHER) return geo == GEO_2D || geo == GEO_2D_LAYERED || geo >= GEO_CUBE;
    if (mode == MODE_INTEGER) return geo < GEO_CUBE;
    return 1;
}

/* grad_cubes: the CPU driver refuses gradients of cube maps. */
static ptx_module *make_kernels(ptx_target target, int grad_cubes) {
    static const ptx_type types[] = {PTX_F32, PTX_U32, PTX_S32};
    ptx_module_desc desc = PTX_ZERO;
    ptx_module *m;
    uint32_t count = 0;
    int geo, mode, type, i;
    desc.target = target;
    m = ptx_module_new(&desc);
    for (geo = 0; geo < GEOS; geo++)
        for (mode = 0; mode < MODES; mode++)
            for (type = 0; type < 3; type++) {
                char name[40];
                ptx_kernel *k;
                ptx_val texture, in, out, n, thread, c[4], lod, d[6], r[4];
                int layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED || geo == GEO_CUBE_LAYERED;
                if (!exists(geo, mode) || (mode == MODE_GRAD && geo >= GEO_CUBE && !grad_cubes)) continue;
                snprintf(name, sizeof name, "tex_%s_%d_%d", geometry_names[geo], mode, type);
                k = ptx_entry(m, name);
                texture = ptx_param(k, "texture", PTX_U64);
                in = ptx_param_ptr(k, "in", PTX_GLOBAL);
                out = ptx_param_ptr(k, "out", PTX_GLOBAL);
                n = ptx_param(k, "n", PTX_U32);
                thread = ptx_global_x(k);
                ptx_if(k, ptx_setp(k, PTX_LT, thread, n));
                in = ptx_ptr_add(k, in, thread, 48);
                for (i = 0; i < 4; i++) {
                    int is_integer = mode == MODE_INTEGER || (layered && i == 0);
                    c[i] = ptx_ld(k, is_integer ? i == 0 && layered ? PTX_U32 : PTX_S32 : PTX_F32,
                                  ptx_at(in, 4 * i));
                }
                lod = ptx_ld(k, PTX_F32, ptx_at(in, 16));
                for (i = 0; i < 6; i++) d[i] = ptx_ld(k, PTX_F32, ptx_at(in, 20 + 4 * i));
                fetch(k, geo, mode, types[type], texture, c, lod, d, r);
                out = ptx_ptr_add(k, out, thread, 16);
                for (i = 0; i < 4; i++) ptx_st(k, types[type], ptx_at(out, 4 * i), r[i]);
                ptx_end(k);
                ptx_ret(k);
                entries[geo][mode][type] = ++count;
            }
    return m;
}

/* Surfaces: each element size and vector, each way to treat what is outside. */
static void make_surface_kernels(ptx_module *m) {
    static const ptx_type types[] = {PTX_U8, PTX_U16, PTX_F32, PTX_S64};
    static const ptx_mods outside[] = {0, PTX_CLAMP, PTX_SURFACE_ZERO};
    static const ptx_mods what[] = {PTX_ATOM_ADD, PTX_ATOM_MIN, PTX_ATOM_MAX, PTX_ATOM_AND, PTX_ATOM_OR};
    int geo, type, n, mode, i;
    for (geo = 0; geo < GEO_CUBE; geo++) {
        char name[40];
        ptx_kernel *k;
        ptx_val s, x, y, z, v[4], value;
        snprintf(name, sizeof name, "surface_%s", geometry_names[geo]);
        k = ptx_entry(m, name);
        s = ptx_param(k, "surface", PTX_U64);
        x = ptx_param(k, "x", PTX_U32);
        y = ptx_param(k, "y", PTX_U32);
        z = ptx_param(k, "z", PTX_U32);
        for (type = 0; type < 4; type++)
            for (mode = 0; mode < 3; mode++)
                for (n = 1; n <= 4; n *= 2) {
                    ptx_mods o = outside[mode];
                    ptx_type t = types[type];
                    uint32_t count = (uint32_t)n;
                    if (ptx_type_bytes(t) * count > 16) continue;
                    switch (geo) {
                    case GEO_1D:
                        if (n > 1) ptx_surface_load_1d_vec(k, o, t, count, s, x, v);
                        else v[0] = ptx_surface_load_1d(k, o, t, s, x);
                        if (n > 1) ptx_surface_store_1d_vec(k, o, t, count, s, x, v);
                        else ptx_surface_store_1d(k, o, t, s, x, v[0]);
                        break;
                    case GEO_2D:
                        if (n > 1) ptx_surface_load_2d_vec(k, o, t, count, s, x, y, v);
                        else v[0] = ptx_surface_load_2d(k, o, t, s, x, y);
                        if (n > 1) ptx_surface_store_2d_vec(k, o, t, count, s, x, y, v);
                        else ptx_surface_store_2d(k, o, t, s, x, y, v[0]);
                        break;
                    case GEO_3D:
                        if (n > 1) ptx_surface_load_3d_vec(k, o, t, count, s, x, y, z, v);
                        else v[0] = ptx_surface_load_3d(k, o, t, s, x, y, z);
                        if (n > 1) ptx_surface_store_3d_vec(k, o, t, count, s, x, y, z, v);
                        else ptx_surface_store_3d(k, o, t, s, x, y, z, v[0]);
                        break;
                    case GEO_1D_LAYERED:
                        if (n > 1) ptx_surface_load_1d_layered_vec(k, o, t, count, s, z, x, v);
                        else v[0] = ptx_surface_load_1d_layered(k, o, t, s, z, x);
                        if (n > 1) ptx_surface_store_1d_layered_vec(k, o, t, count, s, z, x, v);
                        else ptx_surface_store_1d_layered(k, o, t, s, z, x, v[0]);
                        break;
                    default:
                        if (n > 1) ptx_surface_load_2d_layered_vec(k, o, t, count, s, z, x, y, v);
                        else v[0] = ptx_surface_load_2d_layered(k, o, t, s, z, x, y);
                        if (n > 1) ptx_surface_store_2d_layered_vec(k, o, t, count, s, z, x, y, v);
                        else ptx_surface_store_2d_layered(k, o, t, s, z, x, y, v[0]);
                    }
                }
        for (i = 0; i < 5 && geo <= GEO_3D; i++) {
            ptx_type t = i > 2 ? PTX_B32 : PTX_U32;
            value = ptx_as(x, t);
            if (geo == GEO_1D) ptx_surface_reduce_1d(k, 0, what[i], t, s, x, value);
            if (geo == GEO_2D) ptx_surface_reduce_2d(k, PTX_CLAMP, what[i], t, s, x, y, value);
            if (geo == GEO_3D) ptx_surface_reduce_3d(k, PTX_SURFACE_ZERO, what[i], t, s, x, y, z, value);
        }
        ptx_ret(k);
    }
}

/* Every instruction by name, for every chip: ptxas accepts it. */
static void test_assembler(void) {
    static const int targets[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    char path[] = "/tmp/textures-XXXXXX", command[200];
    int i, file = mkstemp(path);
    FILE *out;
    if (file < 0 || system("ptxas --version > /dev/null 2>&1")) {
        printf("SKIPPED: there is no ptxas; the forms are held against the CPU driver alone\n");
        if (file >= 0) remove(path);
        return;
    }
    close(file);
    for (i = 0; i < (int)(sizeof targets / sizeof targets[0]); i++) {
        ptx_module *m = make_kernels(PTX_SM(targets[i]), 1);
        const char *text;
        make_surface_kernels(m);
        text = ptx_text(m, NULL);
        CHECK_MORE(text != NULL, ptx_get_error(m)->message);
        out = fopen(path, "w");
        if (text && out) fputs(text, out);
        if (out) fclose(out);
        snprintf(command, sizeof command, "ptxas -O0 -arch sm_%d -o /dev/null %s", targets[i], path);
        CHECK_MORE(system(command) == 0, command);
        ptx_module_free(m);
    }
    remove(path);
}

/* ---- textures against the reference ---- */

enum { FETCHES = 256 };
typedef struct sample {
    float c[4]; /* the layer's bits in the first, where there is one */
    float lod, d[6], unused;
} sample;

static ptxcu *cu;
static ptxcu_program *program;

static void run_fetches(int geo, int mode, int type, ptxcu_texture texture, const sample *in,
                        uint32_t (*out)[4]) {
    ptxcu_buffer a, b;
    ptx_launch launch = ptx_launch_1d(FETCHES, 64);
    ptxcu_arg args[4];
    WORKS(cu, ptxcu_alloc(cu, FETCHES * sizeof *in, &a));
    WORKS(cu, ptxcu_alloc(cu, FETCHES * sizeof *out, &b));
    WORKS(cu, ptxcu_upload(cu, a, 0, in, FETCHES * sizeof *in, NULL));
    args[0] = ptxcu_arg_u64(texture);
    args[1] = ptxcu_arg_buffer(a);
    args[2] = ptxcu_arg_buffer(b);
    args[3] = ptxcu_arg_u32(FETCHES);
    launch.entry = entries[geo][mode][type] - 1;
    WORKS(cu, ptxcu_launch(cu, program, &launch, args, 4, NULL));
    WORKS(cu, ptxcu_download(cu, out, b, 0, FETCHES * sizeof *out, NULL));
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_free(cu, a));
    WORKS(cu, ptxcu_free(cu, b));
}

/* The least signed integer reads as -1, as the one above it does. Whether it is blended as that or as a little less is
   not documented: `blended` leaves it out. */
static void random_texels(void *texels, size_t count, uint32_t type, int blended) {
    size_t i;
    for (i = 0; i < count; i++) {
        double v = random_within(4);
        if (type == PTX_F32)
            ((float *)texels)[i] = (float)v;
        else if (type == PTX_F16)
            ((uint16_t *)texels)[i] = ref_to_f16(v);
        else if (ptx_type_bytes((ptx_type)type) == 4)
            ((uint32_t *)texels)[i] = random_u32();
        else if (ptx_type_bytes((ptx_type)type) == 2)
            ((uint16_t *)texels)[i] = (uint16_t)random_u32();
        else
            ((uint8_t *)texels)[i] = (uint8_t)random_u32();
        if (blended && type == PTX_S8 && ((int8_t *)texels)[i] == -128) ((int8_t *)texels)[i] = -127;
        if (blended && type == PTX_S16 && ((int16_t *)texels)[i] == -32768) ((int16_t *)texels)[i] = -32767;
    }
}

static const uint32_t channel_types[] = {PTX_U8,  PTX_U16, PTX_U32, PTX_S8,
                                         PTX_S16, PTX_S32, PTX_F16, PTX_F32};

/* A coordinate from -size to 2 * size. Its multiplication by the size must not decide between two weights: 1/1024
   of a texel beside a multiple of 1/128. Without one, ties at odd 1/512 are in it. */
static float random_coordinate(int size, int normalized) {
    double x = (double)random_below((uint32_t)(3 * size) * 128) / 128.0 - size;
    return (float)(normalized ? (x + 1.0 / 1024) / size : x + (random_below(2) ? 1.0 / 512 : 0));
}

static int near_result(double got, double want, double slack) {
    return fabs(got - want) <= slack + fabs(want) * 1e-6 + 1e-9;
}

static void check_fetch(const ref_texture *t, const ptxcu_array_desc *d, const sample *s, int layered,
                        const uint32_t *got, const char *what) {
    int channel, layer = 0;
    uint32_t bits;
    if (layered) {
        memcpy(&bits, &s->c[0], 4);
        layer = bits < (uint32_t)t->layers ? (int)bits : t->layers - 1;
    }
    for (channel = 0; channel < 4; channel++) {
        double slack = 0, want = 0, have;
        float f;
        char more[240];
        if (channel < t->channels) want = ref_fetch(t, s->c + layered, layer, channel, &slack);
        memcpy(&f, &got[channel], 4);
        have = t->as_float ? (double)f : t->is_signed ? (double)(int32_t)got[channel] : (double)got[channel];
        snprintf(more, sizeof more,
                 "%s: %s x %d, linear %d, normalized %d, address %d, at %g %g %g, layer %d: %.9g, want %.9g",
                 what, ptx_type_name((ptx_type)d->type), t->channels, t->linear, t->normalized, t->address[0],
                 (double)s->c[layered], (double)s->c[layered + 1], (double)s->c[2], layer, have, want);
        if (!near_result(have, want, slack)) {
            CHECK_MORE(0, more);
            return;
        }
    }
    passed++;
}

/* One array and one texture object of random kind. */
static void test_texture(int geo, int address, int linear, int normalized) {
    static uint64_t room[1 << 13];
    static sample in[FETCHES];
    static uint32_t out[FETCHES][4];
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ref_texture t;
    int k, layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED, type;
    uint32_t i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    t.dims = geo == GEO_1D || geo == GEO_1D_LAYERED ? 1 : geo == GEO_3D ? 3 : 2;
    do {
        d.type = channel_types[random_below(8)];
        t.is_float = d.type == PTX_F16 || d.type == PTX_F32;
        t.bits = 8 * (int)ptx_type_bytes((ptx_type)d.type);
        td.read_normalized = !t.is_float && t.bits < 32 && random_below(2);
        t.as_float = t.is_float || td.read_normalized;
    } while (linear && !t.as_float);
    t.is_signed = d.type == PTX_S8 || d.type == PTX_S16 || d.type == PTX_S32;
    d.channels = 1u << random_below(3);
    d.width = 1 + random_below(13);
    if (t.dims > 1) d.height = 1 + random_below(11);
    if (t.dims > 2) d.depth = 1 + random_below(7);
    if (layered) d.layers = 1 + random_below(5);
    t.size[0] = (int)d.width;
    t.size[1] = d.height ? (int)d.height : 1;
    t.size[2] = d.depth ? (int)d.depth : 1;
    t.layers = layered ? (int)d.layers : 1;
    t.channels = (int)d.channels;
    t.texels = room;
    random_texels(room,
                  (size_t)t.size[0] * (size_t)t.size[1] * (size_t)t.size[2] * (size_t)t.layers * d.channels,
                  d.type, linear);
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_upload(cu, &array, NULL, room, 0, NULL));
    td.array = array;
    td.filter = linear ? PTXCU_FILTER_LINEAR : PTXCU_FILTER_POINT;
    td.normalized = (uint32_t)normalized;
    t.normalized = normalized;
    t.linear = linear;
    td.srgb = d.type == PTX_U8 && td.read_normalized && random_below(2);
    t.srgb = (int)td.srgb;
    for (k = 0; k < 3; k++) {
        td.address[k] = (uint32_t)address;
        t.address[k] = address;
    }
    if (t.dims == 1) td.address[1] = 0; /* the row beside the only one, on the chip */
    for (k = 0; k < 4; k++) {
        td.border[k] = t.as_float ? (float)random_below(5) * 0.5f - 0.5f : 0;
        if (!t.is_float && !t.is_signed && td.border[k] == 0.5f)
            td.border[k] = 1; /* 0.5 is between two values */
        if (!t.is_float && t.is_signed && fabs((double)td.border[k]) == 0.5) td.border[k] = -1;
        t.border[k] = td.border[k];
    }
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    memset(in, 0, sizeof in);
    for (i = 0; i < FETCHES; i++) {
        uint32_t layer = random_below((uint32_t)t.layers + 1);
        if (layered) memcpy(&in[i].c[0], &layer, 4);
        for (k = 0; k < t.dims; k++) in[i].c[layered + k] = random_coordinate(t.size[k], normalized);
    }
    type = t.as_float ? 0 : t.is_signed ? 2 : 1;
    run_fetches(geo, MODE_PLAIN, type, texture, in, out);
    for (i = 0; i < FETCHES; i++) check_fetch(&t, &d, &in[i], layered, out[i], geometry_names[geo]);
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CHECK(!array.handle);
    CLEAN();
}

static void test_textures(void) {
    int geo, address, linear, normalized, round;
    for (geo = 0; geo < GEO_CUBE; geo++)
        for (address = 0; address < 4; address++)
            for (linear = 0; linear < 2; linear++)
                for (normalized = 0; normalized < 2; normalized++)
                    for (round = 0; round < 4; round++)
                        if (normalized || address == PTXCU_ADDRESS_CLAMP || address == PTXCU_ADDRESS_BORDER)
                            test_texture(geo, address, linear, normalized);
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    counter c;
    ptxcu_desc desc;
    ptx_module *m;
    memset(&c, 0, sizeof c);
    desc = describe(library && *library ? library : NULL, &c);
    start_random();
    test_assembler();
    WORKS(cu, ptxcu_open(&cu, &desc));
    if (ptxcu_get_error(cu)->code == PTXCU_E_NONE) {
        find_extras(cu);
        find_reports(cu);
        m = make_kernels(ptxcu_device_info(cu)->target, 0);
        CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
        WORKS(cu, ptxcu_load(cu, m, &program));
        ptx_module_free(m);
        if (program) test_textures();
    }
    ptxcu_close(cu);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    return check_end();
}
