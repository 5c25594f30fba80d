/* textures.c - arrays, textures and surfaces: the host side in ptxgen_cuda.h, the instructions by name, each mode
   against a reference in C. `textures [LIBRARY]`, as launch.c.

   make build/tests/cuda/textures */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"
#include "../reference/textures.h"

#include <math.h>
#include <sys/mman.h>
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

static int is_layered(int geo) {
    return geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED || geo == GEO_CUBE_LAYERED;
}

/* By geometry. */
static const ptx_op_id loads[] = {PTX_SULD_1D, PTX_SULD_2D, PTX_SULD_3D, PTX_SULD_A1D, PTX_SULD_A2D};
static const ptx_op_id stores[] = {PTX_SUST_1D, PTX_SUST_2D, PTX_SUST_3D, PTX_SUST_A1D, PTX_SUST_A2D};

/* x, y and z, or x, y and a layer, in the order of the instruction. */
static void surface_place(int geo, const ptx_val *c, ptx_val *at) {
    const int layered = is_layered(geo);
    at[0] = c[layered ? 2 : 0], at[1] = c[layered ? 0 : 1], at[2] = c[layered ? 1 : 2];
}

static uint32_t entries[GEOS][MODES][3]; /* by type: f32, u32, s32; entry + 1 */

/* The values of a place, the layer included. */
static uint32_t coordinates(int geo) {
    static const uint32_t count[] = {1, 2, 3, 2, 3, 3, 4};
    return count[geo];
}

/* The coordinates in order: layer first, bits of a u32. */
static void fetch(ptx_kernel *k, int geo, int mode, ptx_type type, ptx_val t, const ptx_val *c, ptx_val lod,
                  const ptx_val *d, ptx_val *out) {
    static const ptx_op_id plain[] = {PTX_TEX_1D,  PTX_TEX_2D,   PTX_TEX_3D,   PTX_TEX_A1D,
                                      PTX_TEX_A2D, PTX_TEX_CUBE, PTX_TEX_ACUBE};
    static const ptx_op_id level[] = {PTX_TEX_LEVEL_1D,  PTX_TEX_LEVEL_2D,   PTX_TEX_LEVEL_3D,   PTX_TEX_LEVEL_A1D,
                                      PTX_TEX_LEVEL_A2D, PTX_TEX_LEVEL_CUBE, PTX_TEX_LEVEL_ACUBE};
    static const ptx_op_id grad[] = {PTX_TEX_GRAD_1D,  PTX_TEX_GRAD_2D,   PTX_TEX_GRAD_3D,   PTX_TEX_GRAD_A1D,
                                     PTX_TEX_GRAD_A2D, PTX_TEX_GRAD_CUBE, PTX_TEX_GRAD_ACUBE};
    uint32_t n = coordinates(geo), own = n - (uint32_t)is_layered(geo);
    ptx_val at[10];
    ptx_op_id op = plain[geo];
    memcpy(at, c, n * sizeof *at);
    if (mode == MODE_GATHER)
        op = geo == GEO_2D           ? PTX_TLD4_G_2D
             : geo == GEO_2D_LAYERED ? PTX_TLD4_A_A2D
             : geo == GEO_CUBE       ? PTX_TLD4_R_CUBE
                                     : PTX_TLD4_B_ACUBE;
    if (mode == MODE_LOD) op = level[geo], at[n++] = lod;
    if (mode == MODE_GRAD) {
        op = grad[geo];
        memcpy(at + n, d, own * sizeof *at), memcpy(at + n + own, d + 3, own * sizeof *at);
        n += 2 * own;
    }
    ptx_tex(k, op, type, t, n, at, out);
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
                int layered = is_layered(geo);
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
    static const ptx_op_id reductions[3][5] = {
        {PTX_SURED_ADD_1D, PTX_SURED_MIN_1D, PTX_SURED_MAX_1D, PTX_SURED_AND_1D, PTX_SURED_OR_1D},
        {PTX_SURED_ADD_2D, PTX_SURED_MIN_2D, PTX_SURED_MAX_2D, PTX_SURED_AND_2D, PTX_SURED_OR_2D},
        {PTX_SURED_ADD_3D, PTX_SURED_MIN_3D, PTX_SURED_MAX_3D, PTX_SURED_AND_3D, PTX_SURED_OR_3D}};
    int geo, type, n, mode, i;
    for (geo = 0; geo < GEO_CUBE; geo++) {
        char name[40];
        ptx_kernel *k;
        ptx_val s, c[3], at[3], v[4], value;
        snprintf(name, sizeof name, "surface_%s", geometry_names[geo]);
        k = ptx_entry(m, name);
        s = ptx_param(k, "surface", PTX_U64);
        c[0] = ptx_param(k, "x", PTX_U32);
        c[1] = ptx_param(k, "y", PTX_U32);
        c[2] = ptx_param(k, "z", PTX_U32);
        surface_place(geo, c, at);
        for (type = 0; type < 4; type++)
            for (mode = 0; mode < 3; mode++)
                for (n = 1; n <= 4; n *= 2) {
                    ptx_mods o = outside[mode];
                    ptx_type t = types[type];
                    uint32_t count = (uint32_t)n;
                    if (ptx_type_bytes(t) * count > 16) continue;
                    ptx_surface_load(k, loads[geo], o, t, count, s, at, v);
                    ptx_surface_store(k, stores[geo], o, t, count, s, at, v);
                }
        for (i = 0; i < 5 && geo <= GEO_3D; i++) {
            ptx_type t = i > 2 ? PTX_B32 : PTX_U32;
            value = ptx_as(c[0], t);
            ptx_surface_store(k, reductions[geo][i], outside[geo], t, 1, s, at, &value);
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

/* The calls by name are those with an array: each kernel's text comes twice. */
static void test_names(void) {
    ptx_module *modules[2];
    const char *texts[2];
    int named;
    for (named = 0; named < 2; named++) {
        ptx_module *m = modules[named] = ptx_module_new(NULL);
        ptx_kernel *k = ptx_entry(m, "k");
        ptx_val t = ptx_param(k, "t", PTX_U64), a = ptx_param(k, "a", PTX_F32), b = ptx_param(k, "b", PTX_F32),
                c = ptx_param(k, "c", PTX_F32), layer = ptx_param(k, "layer", PTX_U32),
                p = ptx_param_ptr(k, "p", PTX_GLOBAL), at[3], in_layer[3], place[3], r[6][4], v[3];
        int i, j;
        at[0] = a, at[1] = b, at[2] = c;
        in_layer[0] = layer, in_layer[1] = a, in_layer[2] = b;
        for (i = 0; i < 3; i++) place[i] = ptx_ld(k, PTX_U32, ptx_at(p, 4 * i));
        if (named) {
            ptx_tex_1d(k, PTX_F32, t, a, r[0]);
            ptx_tex_2d(k, PTX_F32, t, a, b, r[1]);
            ptx_tex_3d(k, PTX_F32, t, a, b, c, r[2]);
            ptx_tex_2d_layered(k, PTX_F32, t, layer, a, b, r[3]);
            ptx_tex_2d_lod(k, PTX_F32, t, a, b, c, r[4]);
            ptx_tex_cube(k, PTX_F32, t, a, b, c, r[5]);
            v[0] = ptx_surface_load_1d(k, PTX_CLAMP, PTX_U8, t, place[0]);
            v[1] = ptx_surface_load_2d(k, PTX_CLAMP, PTX_U32, t, place[0], place[1]);
            v[2] = ptx_surface_load_3d(k, PTX_CLAMP, PTX_F32, t, place[0], place[1], place[2]);
            ptx_surface_store_1d(k, 0, PTX_U8, t, place[0], v[0]);
            ptx_surface_store_2d(k, 0, PTX_U32, t, place[0], place[1], v[1]);
            ptx_surface_store_3d(k, 0, PTX_F32, t, place[0], place[1], place[2], v[2]);
        } else {
            static const ptx_op_id fetches[] = {PTX_TEX_1D, PTX_TEX_2D, PTX_TEX_3D, PTX_TEX_A2D, PTX_TEX_LEVEL_2D,
                                                PTX_TEX_CUBE};
            static const uint32_t counts[] = {1, 2, 3, 3, 3, 3};
            static const ptx_type types[] = {PTX_U8, PTX_U32, PTX_F32};
            for (i = 0; i < 6; i++)
                ptx_tex(k, fetches[i], PTX_F32, t, counts[i], fetches[i] == PTX_TEX_A2D ? in_layer : at, r[i]);
            for (i = 0; i < 3; i++) ptx_surface_load(k, loads[i], PTX_CLAMP, types[i], 1, t, place, v + i);
            for (i = 0; i < 3; i++) ptx_surface_store(k, stores[i], 0, types[i], 1, t, place, v + i);
        }
        for (i = 0; i < 6; i++)
            for (j = 0; j < 4; j++) ptx_st(k, PTX_F32, ptx_at(p, 16 * i + 4 * j), r[i][j]);
        ptx_ret(k);
        texts[named] = ptx_text(m, NULL);
        CHECK_MORE(texts[named] != NULL, ptx_get_error(m)->message);
    }
    CHECK(texts[0] && texts[1] && !strcmp(texts[0], texts[1]));
    ptx_module_free(modules[0]);
    ptx_module_free(modules[1]);
}

/* What the calls refuse, with the value and the rule. */
static void test_misuse(void) {
#define MISUSE(call, text)                                                                                   \
    do {                                                                                                     \
        ptx_module *m = ptx_module_new(NULL);                                                                \
        ptx_kernel *k = ptx_entry(m, "k");                                                                   \
        ptx_val t = ptx_param(k, "t", PTX_U64), u = ptx_param(k, "u", PTX_U32),                              \
                f = ptx_param(k, "f", PTX_F32), ff[10], uu[3], uf[5], r[4];                                  \
        ff[0] = ff[1] = ff[2] = ff[3] = ff[4] = ff[5] = ff[6] = ff[7] = ff[8] = ff[9] = f;                   \
        uu[0] = uu[1] = uu[2] = u;                                                                           \
        uf[0] = u, uf[1] = uf[2] = uf[3] = uf[4] = f;                                                        \
        (void)t, (void)ff, (void)uu, (void)uf, (void)r;                                                      \
        call;                                                                                                \
        ptx_ret(k);                                                                                          \
        CHECK_MORE(!ptx_text(m, NULL) && strstr(ptx_get_error(m)->message, text)                             \
                       && strstr(ptx_get_error(m)->message, "textures.c:"),                                  \
                   ptx_get_error(m)->message);                                                               \
        ptx_module_free(m);                                                                                  \
    } while (0)
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, u, 2, ff, r), "operand 1 of tex.2d.v4 is u32, expected u64");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, t, 2, uf, r), "operand 3 of tex.2d.v4 is f32, expected s32");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F64, t, 2, ff, r), "has no form for type f64");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, t, 2, ff, NULL), "the array of the results is NULL");
    MISUSE(ptx_tex(k, PTX_TEX_CUBE, PTX_F32, t, 3, uu, r), "expected f32");
    MISUSE(ptx_tex(k, PTX_TEX_GRAD_2D, PTX_F32, t, 4, ff, r), "takes 6 values behind the texture, 4 given");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, t, 3, ff, r), "takes 2 values behind the texture, 3 given");
    MISUSE(ptx_tex(k, PTX_TEX_3D, PTX_F32, t, 2, ff, r), "takes 3 values behind the texture, 2 given");
    MISUSE(ptx_tex(k, PTX_TEX_1D, PTX_F32, t, 0, ff, r), "takes 1 value behind the texture, 0 given");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, t, 4000000000u, ff, r), "takes 2 values");
    MISUSE(ptx_tex(k, PTX_TEX_GRAD_3D, PTX_F32, t, 10, ff, r), "takes 9 values behind the texture, 10 given");
    MISUSE(ptx_tex(k, PTX_TEX_ACUBE, PTX_F32, t, 3, uf, r), "takes 4 values behind the texture, 3 given");
    MISUSE(ptx_tex(k, PTX_TEX_LEVEL_ACUBE, PTX_F32, t, 4, uf, r), "takes 5 values behind the texture, 4 given");
    MISUSE(ptx_tex(k, PTX_TLD4_B_ACUBE, PTX_F32, t, 3, uf, r), "takes 4 values behind the texture, 3 given");
    MISUSE(ptx_tex(k, PTX_TEX_2D, PTX_F32, t, 2, NULL, r), "the array of the coordinates is NULL");
    MISUSE(ptx_tex(k, PTX_ADD, PTX_F32, t, 2, ff, r), "no instruction for textures");
    MISUSE(ptx_tex(k, (ptx_op_id)2000, PTX_F32, t, 2, ff, r), "no instruction for textures");
    MISUSE(ptx_surface_store(k, PTX_SUST_2D, PTX_WRAP, PTX_F32, 1, t, uu, ff), "does not take .wrap");
    MISUSE(ptx_surface_store(k, PTX_SUST_2D, 0, PTX_F64, 1, t, uu, ff), "f64 is needed, the value is f32");
    MISUSE(ptx_surface_load(k, PTX_SULD_2D, 0, PTX_F32, 3, t, uu, r), "does not take 3 operands and give 3");
    MISUSE(ptx_surface_load(k, PTX_SULD_2D, 0, PTX_F64, 4, t, uu, r), "more than 16 bytes");
    MISUSE(ptx_surface_load(k, PTX_SULD_2D, 0, PTX_F32, 5, t, uu, r), "1, 2 or 4 values, not 5");
    MISUSE(ptx_surface_store(k, PTX_SUST_2D, 0, PTX_F32, 2, t, uu, NULL), "the array of the 2 values is NULL");
    MISUSE(ptx_surface_store(k, PTX_SUST_2D, 0, PTX_F32, 5, t, uu, ff), "1, 2 or 4 values, not 5");
    MISUSE(ptx_surface_load(k, PTX_SULD_2D, 0, PTX_PRED, 1, t, uu, r), "has no form for type pred");
    MISUSE(ptx_surface_load(k, PTX_SULD_2D, 0, PTX_F32, 1, t, ff, r), "is f32, expected u32");
    MISUSE(ptx_surface_load(k, PTX_MOV, 0, PTX_F32, 1, t, uu, r), "no instruction for textures");
    MISUSE(ptx_surface_store(k, PTX_SURED_ADD_2D, 0, PTX_F32, 1, t, uu, ff), "has no form for type b32");
    MISUSE(ptx_op1(k, PTX_TXQ_WIDTH, 0, u), "is u32, expected u64");
    ptx_tex(NULL, PTX_TEX_2D, PTX_F32, ptx_u64(0), 0, NULL, NULL); /* without a kernel: nothing */
    ptx_surface_load(NULL, PTX_SULD_2D, 0, PTX_F32, 1, ptx_u64(0), NULL, NULL);
    ptx_surface_store(NULL, PTX_SUST_2D, 0, PTX_F32, 1, ptx_u64(0), NULL, NULL);
    ptx_surface_load_2d(NULL, 0, PTX_F32, ptx_u64(0), ptx_imm(0), ptx_imm(0));
    MISUSE(ptx_tex_2d(k, PTX_F32, t, u, f, r), "operand 3 of tex.2d.v4 is f32, expected s32");
    MISUSE(ptx_surface_load_2d(k, PTX_WRAP, PTX_F32, t, u, u), "does not take .wrap");
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

/* A random format, and how it is read. */
static void random_format(ref_texture *t, ptxcu_array_desc *d, ptxcu_texture_desc *td, int linear) {
    do {
        d->type = channel_types[random_below(8)];
        t->is_float = d->type == PTX_F16 || d->type == PTX_F32;
        t->bits = 8 * (int)ptx_type_bytes((ptx_type)d->type);
        td->read_normalized = !t->is_float && t->bits < 32 && random_below(2);
        t->as_float = t->is_float || td->read_normalized;
    } while (linear && !t->as_float);
    t->is_signed = d->type == PTX_S8 || d->type == PTX_S16 || d->type == PTX_S32;
    t->channels = 1 << random_below(3);
    d->channels = (uint32_t)t->channels;
    td->srgb = d->type == PTX_U8 && td->read_normalized && random_below(2);
    t->srgb = (int)td->srgb;
    td->filter = linear ? PTXCU_FILTER_LINEAR : PTXCU_FILTER_POINT;
    t->linear = linear;
}

/* Random sizes of a geometry. */
static void random_sizes(ref_texture *t, ptxcu_array_desc *d, int geo) {
    int layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED;
    t->dims = geo == GEO_1D || geo == GEO_1D_LAYERED ? 1 : geo == GEO_3D ? 3 : 2;
    d->width = 1 + random_below(13);
    if (t->dims > 1) d->height = 1 + random_below(11);
    if (t->dims > 2) d->depth = 1 + random_below(7);
    if (layered) d->layers = 1 + random_below(5);
    t->size[0] = (int)d->width;
    t->size[1] = d->height ? (int)d->height : 1;
    t->size[2] = d->depth ? (int)d->depth : 1;
    t->layers = layered ? (int)d->layers : 1;
}

static size_t texel_count(const ref_texture *t) {
    return (size_t)t->size[0] * (size_t)t->size[1] * (size_t)t->size[2] * (size_t)t->layers;
}

static void set_address(ref_texture *t, ptxcu_texture_desc *td, int address, int normalized) {
    int k;
    for (k = 0; k < 3; k++) {
        td->address[k] = (uint32_t)address;
        t->address[k] = address;
    }
    if (t->dims == 1) td->address[1] = 0; /* the row beside the only one, on the chip */
    td->normalized = (uint32_t)normalized;
    t->normalized = normalized;
}

static int type_index(const ref_texture *t) { return t->as_float ? 0 : t->is_signed ? 2 : 1; }

static uint64_t room[1 << 13];
static sample in[FETCHES];
static uint32_t out[FETCHES][4];

/* One array and one texture object of random kind. */
static void test_texture(int geo, int address, int linear, int normalized) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ref_texture t;
    int k, layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED;
    uint32_t i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    random_format(&t, &d, &td, linear);
    random_sizes(&t, &d, geo);
    set_address(&t, &td, address, normalized);
    t.texels = room;
    random_texels(room, texel_count(&t) * d.channels, d.type, linear);
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_upload(cu, &array, NULL, room, 0, NULL));
    td.array = array;
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
    run_fetches(geo, MODE_PLAIN, type_index(&t), texture, in, out);
    for (i = 0; i < FETCHES; i++) check_fetch(&t, &d, &in[i], layered, out[i], geometry_names[geo]);
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CHECK(!array.handle);
    CLEAN();
}

/* Integer coordinates: a texel, whatever filter and address mode, or 0 outside. Also of memory: rows with gaps, and one
   dimension. */
static void test_texel_numbers(int geo, int in_memory) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_buffer buffer = PTX_ZERO;
    ptxcu_texture texture;
    ref_texture t;
    int k, c, layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED;
    uint32_t i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    memset(&array, 0, sizeof array);
    random_format(&t, &d, &td, 0);
    if (t.as_float && !in_memory) td.filter = PTXCU_FILTER_LINEAR;
    random_sizes(&t, &d, geo);
    set_address(&t, &td, PTXCU_ADDRESS_BORDER, 0);
    t.texels = room;
    random_texels(room, texel_count(&t) * d.channels, d.type, 0);
    if (in_memory) {
        size_t texel = d.channels * ptx_type_bytes((ptx_type)d.type), row = d.width * texel;
        int y;
        td.type = d.type;
        td.channels = d.channels;
        td.width = d.width;
        td.height = geo == GEO_2D ? d.height : 0;
        td.pitch = geo == GEO_2D ? (row + 31) / 32 * 32 + 32 * random_below(3) : 0;
        WORKS(cu, ptxcu_alloc(cu, 1 << 14, &buffer));
        for (y = 0; y < t.size[1]; y++)
            WORKS(cu, ptxcu_upload(cu, buffer, (size_t)y * td.pitch, (const char *)room + (size_t)y * row,
                                   row, NULL));
        td.memory = buffer;
    } else {
        WORKS(cu, ptxcu_array_create(cu, &d, &array));
        WORKS(cu, ptxcu_array_upload(cu, &array, NULL, room, 0, NULL));
        td.array = array;
    }
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    memset(in, 0, sizeof in);
    for (i = 0; i < FETCHES; i++) {
        int32_t n[4] = {0, 0, 0, 0};
        if (layered) n[0] = (int32_t)random_below((uint32_t)t.layers);
        for (k = 0; k < t.dims; k++) n[layered + k] = (int32_t)random_below((uint32_t)t.size[k] + 2) - 1;
        memcpy(in[i].c, n, sizeof n);
    }
    run_fetches(geo, MODE_INTEGER, type_index(&t), texture, in, out);
    for (i = 0; i < FETCHES; i++) {
        int32_t n[4];
        long at[3] = {0, 0, 0};
        int inside = 1, good = 1;
        memcpy(n, in[i].c, sizeof n);
        for (k = 0; k < t.dims; k++) {
            at[k] = n[layered + k];
            inside &= at[k] >= 0 && at[k] < t.size[k];
        }
        for (c = 0; c < 4; c++) {
            double want = inside && c < t.channels ? ref_texel(&t, at, layered ? n[0] : 0, c) : 0, have;
            float f;
            memcpy(&f, &out[i][c], 4);
            have = t.as_float ? (double)f : t.is_signed ? (double)(int32_t)out[i][c] : (double)out[i][c];
            good &= near_result(have, want, 0);
        }
        CHECK_MORE(good, geometry_names[geo]);
    }
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    WORKS(cu, ptxcu_free(cu, buffer));
    CLEAN();
}

/* ---- levels of detail ---- */

enum { LEVELS = 4 };

/* A mipmapped array with random texels in each level, its levels for the reference. */
static ptxcu_array make_levels(const ptxcu_array_desc *d, const ref_texture *base,
                               ref_texture levels[LEVELS]) {
    static uint64_t texels[LEVELS][1 << 12];
    ptxcu_array array;
    ptxcu_region region;
    int level, k;
    memset(&region, 0, sizeof region);
    WORKS(cu, ptxcu_array_create(cu, d, &array));
    for (level = 0; level < LEVELS; level++) {
        ref_texture *t = &levels[level];
        *t = *base;
        for (k = 0; k < 3; k++) t->size[k] = base->size[k] >> level ? base->size[k] >> level : 1;
        t->texels = texels[level];
        random_texels(texels[level], texel_count(t) * d->channels, d->type, 1);
        region.level = (uint32_t)level;
        WORKS(cu, ptxcu_array_upload(cu, &array, &region, texels[level], 0, NULL));
    }
    return array;
}

/* The blend of two levels, from 1/256 of a level on. */
static double ref_levels(const ref_texture levels[LEVELS], const float *c, int layer, int channel, double lod,
                         int linear_between, double *slack) {
    int level = linear_between ? (int)floor(lod) : (int)floor(lod + 0.5);
    double part = linear_between ? lod - level : 0, lower, upper, more = 0;
    lower = ref_fetch(&levels[level], c, layer, channel, slack);
    if (part == 0) return lower;
    upper = ref_fetch(&levels[level + 1], c, layer, channel, &more);
    *slack += more;
    if (levels->is_float && levels->bits == 16)
        *slack += (fabs(lower) + fabs(upper)) / 2048; /* rounded to f16 */
    return lower * (1 - part) + upper * part;
}

static void test_levels(int geo, int linear, int linear_between, int mode) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ref_texture t, levels[LEVELS];
    double lod[FETCHES], bias = random_below(3) * 0.25 - 0.25, low = random_below(2) * 0.5,
                         high = 3 - random_below(2) * 0.5;
    int k, channel, layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED;
    uint32_t i, first = random_below(2);
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    do random_format(&t, &d, &td, linear);
    while (!t.as_float);
    random_sizes(&t, &d, geo);
    d.width = 16 + random_below(2) * 5;
    if (d.height) d.height = 8 + random_below(2) * 3;
    if (d.depth) d.depth = 4;
    d.levels = LEVELS;
    t.size[0] = (int)d.width;
    t.size[1] = d.height ? (int)d.height : 1;
    t.size[2] = d.depth ? (int)d.depth : 1;
    set_address(&t, &td, PTXCU_ADDRESS_CLAMP, 1);
    array = make_levels(&d, &t, levels);
    td.array = array;
    td.mip_filter = linear_between ? PTXCU_FILTER_LINEAR : PTXCU_FILTER_POINT;
    td.level_bias = (float)bias;
    td.min_level = (float)low;
    td.max_level = (float)high;
    td.first_level = first;
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    memset(in, 0, sizeof in);
    for (i = 0; i < FETCHES; i++) {
        uint32_t layer = random_below((uint32_t)t.layers);
        int most = LEVELS - 1 - (int)first;
        if (layered) memcpy(&in[i].c[0], &layer, 4);
        for (k = 0; k < t.dims; k++)
            in[i].c[layered + k] =
                ((float)random_below((uint32_t)t.size[k] * 64) + 0.3f) / (float)(t.size[k] * 64);
        lod[i] = (double)random_below(24) / 4 - 1 + 1.0 / 16;
        in[i].lod = (float)lod[i];
        if (mode == MODE_GRAD) { /* lengths of a power of two, in texels of the largest level of the view */
            int power = (int)random_below(4), axis = (int)random_below((uint32_t)t.dims),
                second = (int)random_below(2);
            memset(in[i].d, 0, sizeof in[i].d);
            in[i].d[second * 3 + axis] = (float)ldexp(1, power) / (float)levels[first].size[axis];
            in[i].d[(1 - second) * 3] = 0.25f / (float)levels[first].size[0];
            lod[i] = power;
        }
        lod[i] += bias;
        lod[i] = lod[i] < low ? low : lod[i] > high ? high : lod[i];
        lod[i] = (lod[i] < 0 ? 0 : lod[i] > most ? most : lod[i]) + (int)first;
    }
    run_fetches(geo, mode, 0, texture, in, out);
    for (i = 0; i < FETCHES; i++) {
        int good = 1, layer = 0;
        char more[200];
        if (layered) memcpy(&layer, &in[i].c[0], 4);
        for (channel = 0; channel < t.channels; channel++) {
            double slack = 0, want = ref_levels(levels, in[i].c + layered, layer, channel, lod[i],
                                                linear_between, &slack);
            float f;
            memcpy(&f, &out[i][channel], 4);
            /* log2 of a length that f32 rounds may lose 1/256 of a level. */
            if (mode == MODE_GRAD && linear_between) slack += 8.0 / 256;
            snprintf(more, sizeof more, "%s, level %g, between %d, linear %d, type %s: %.9g, want %.9g",
                     geometry_names[geo], lod[i], linear_between, linear, ptx_type_name((ptx_type)d.type),
                     (double)f, want);
            if (good && !near_result((double)f, want, slack + 1.0 / 32767)) good = 0, puts(more);
        }
        CHECK_MORE(good, mode == MODE_GRAD ? "gradients" : "level of detail");
    }
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CLEAN();
}

/* ---- cube maps ---- */

/* The direction to a place of a face, s and t from -1 to 1: the table of the CUDA guide, the other way round. */
static void direction(int face, float s, float t, float scale, float d[3]) {
    static const int axis[6] = {0, 0, 1, 1, 2, 2};
    float m = face & 1 ? -scale : scale;
    d[axis[face]] = m;
    switch (face) {
    case 0:
        d[2] = -s * scale;
        d[1] = -t * scale;
        break;
    case 1:
        d[2] = s * scale;
        d[1] = -t * scale;
        break;
    case 2:
        d[0] = s * scale;
        d[2] = t * scale;
        break;
    case 3:
        d[0] = s * scale;
        d[2] = -t * scale;
        break;
    case 4:
        d[0] = s * scale;
        d[1] = -t * scale;
        break;
    default:
        d[0] = -s * scale;
        d[1] = -t * scale;
        break;
    }
}

static void test_cubes(int layered, int linear, int with_lod) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ref_texture t, levels[LEVELS];
    int faces[FETCHES], geo = layered ? GEO_CUBE_LAYERED : GEO_CUBE, channel;
    float places[FETCHES][2];
    uint32_t i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    do random_format(&t, &d, &td, linear);
    while (!t.as_float);
    d.width = d.height = 8;
    d.layers = layered ? 1 + random_below(3) : 0;
    d.flags = PTXCU_ARRAY_CUBE;
    d.levels = LEVELS;
    t.dims = 2;
    t.size[0] = t.size[1] = 8;
    t.size[2] = 1;
    t.layers = 6 * (layered ? (int)d.layers : 1);
    set_address(&t, &td, PTXCU_ADDRESS_CLAMP, 1);
    array = make_levels(&d, &t, levels);
    td.array = array;
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    memset(in, 0, sizeof in);
    for (i = 0; i < FETCHES; i++) {
        uint32_t cube = layered ? random_below(d.layers + 1) : 0;
        int face = (int)random_below(6), k;
        if (layered) memcpy(&in[i].c[0], &cube, 4);
        if (layered && cube == d.layers) cube--;
        faces[i] = (int)cube * 6 + face;
        /* Between the borders of weights and texels, also after the divisions. */
        for (k = 0; k < 2; k++) places[i][k] = ((float)random_below(8 * 32) + 0.5f + 1.0f / 64) / (8 * 32);
        direction(face, 2 * places[i][0] - 1, 2 * places[i][1] - 1, ldexpf(1, (int)random_below(5) - 2),
                  in[i].c + layered);
        in[i].lod = (float)random_below(LEVELS);
        if (with_lod && in[i].lod == 3) in[i].lod = 2.4f;
    }
    run_fetches(geo, with_lod ? MODE_LOD : MODE_PLAIN, 0, texture, in, out);
    for (i = 0; i < FETCHES; i++) {
        int good = 1;
        for (channel = 0; channel < t.channels; channel++) {
            double slack = 0, want = ref_levels(levels, places[i], faces[i], channel,
                                                with_lod ? (double)in[i].lod : 0, 0, &slack);
            float f;
            memcpy(&f, &out[i][channel], 4);
            good &= near_result((double)f, want, slack);
        }
        CHECK_MORE(good, geometry_names[geo]);
    }
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CLEAN();
}

/* ---- gathers: components as fetch() asks for them ---- */

static void test_gather(int geo, int normalized) {
    static const int order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ref_texture t;
    int k, n, layered = geo == GEO_2D_LAYERED, component = layered ? 3 : 1;
    uint32_t i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    do random_format(&t, &d, &td, 0);
    while (t.channels <= component);
    random_sizes(&t, &d, geo);
    set_address(&t, &td, normalized ? PTXCU_ADDRESS_MIRROR : PTXCU_ADDRESS_CLAMP, normalized);
    d.flags = PTXCU_ARRAY_GATHER;
    t.texels = room;
    random_texels(room, texel_count(&t) * d.channels, d.type, 0);
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_upload(cu, &array, NULL, room, 0, NULL));
    td.array = array;
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    memset(in, 0, sizeof in);
    for (i = 0; i < FETCHES; i++) {
        uint32_t layer = random_below((uint32_t)t.layers);
        if (layered) memcpy(&in[i].c[0], &layer, 4);
        for (k = 0; k < 2; k++) in[i].c[layered + k] = random_coordinate(t.size[k], normalized);
    }
    run_fetches(geo, MODE_GATHER, type_index(&t), texture, in, out);
    for (i = 0; i < FETCHES; i++) {
        long at[3] = {0, 0, 0}, base[2];
        int good = 1, layer = 0, part;
        if (layered) memcpy(&layer, &in[i].c[0], 4);
        for (k = 0; k < 2; k++) {
            float u = in[i].c[layered + k];
            base[k] = ref_split(normalized ? (double)(u * (float)t.size[k]) : (double)u, &part);
        }
        for (n = 0; n < 4; n++) {
            double want, have;
            float f;
            for (k = 0; k < 2; k++) at[k] = base[k] + order[n][k];
            want = ref_texel(&t, at, layer, component);
            memcpy(&f, &out[i][n], 4);
            have = t.as_float ? (double)f : t.is_signed ? (double)(int32_t)out[i][n] : (double)out[i][n];
            good &= near_result(have, want, 0);
        }
        CHECK_MORE(good, "gather");
    }
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CLEAN();
}

/* ---- copies: regions of arrays, host and device memory with gaps ---- */

/* What a copy of a region should do, texel by texel. into: of the array's image, or of memory. */
static void copy_in_c(unsigned char *image, const uint32_t size[3], uint32_t texel, const ptxcu_region *r,
                      unsigned char *memory, size_t pitch, int into_image) {
    uint32_t y, z;
    for (z = 0; z < r->depth; z++)
        for (y = 0; y < r->height; y++) {
            unsigned char *a = image + ((size_t)((r->z + z) * size[1] + r->y + y) * size[0] + r->x) * texel;
            unsigned char *b = memory + (size_t)(z * r->height + y) * pitch;
            memcpy(into_image ? a : b, into_image ? b : a, (size_t)r->width * texel);
        }
}

static void random_region(const uint32_t size[3], ptxcu_region *r) {
    r->x = random_below(size[0]);
    r->y = random_below(size[1]);
    r->z = random_below(size[2]);
    r->width = 1 + random_below(size[0] - r->x);
    r->height = 1 + random_below(size[1] - r->y);
    r->depth = 1 + random_below(size[2] - r->z);
}

static void test_copies(int geo) {
    static unsigned char image[1 << 15], second[1 << 15], memory[1 << 16], back[1 << 16], expected[1 << 16];
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array, other;
    ptxcu_buffer buffer;
    ptxcu_region r, to;
    ref_texture t;
    uint32_t size[3], texel, i, round;
    size_t bytes, pitch, offset;
    memset(&d, 0, sizeof d);
    memset(&r, 0, sizeof r);
    memset(&to, 0, sizeof to);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    random_format(&t, &d, &td, 0);
    random_sizes(&t, &d, geo < GEO_CUBE ? geo : GEO_2D);
    if (geo >= GEO_CUBE) {
        d.height = d.width;
        d.flags = PTXCU_ARRAY_CUBE;
        d.layers = geo == GEO_CUBE ? 0 : 2;
        t.size[1] = (int)d.width;
    }
    d.levels = random_below(2) ? 0 : 1;
    size[0] = (uint32_t)t.size[0];
    size[1] = (uint32_t)t.size[1];
    size[2] = geo == GEO_CUBE ? 6 : geo == GEO_CUBE_LAYERED ? 12 : d.layers ? d.layers : (uint32_t)t.size[2];
    texel = d.channels * ptx_type_bytes((ptx_type)d.type);
    bytes = (size_t)size[0] * size[1] * size[2] * texel;
    for (i = 0; i < bytes; i++) image[i] = (unsigned char)random_u32();
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_create(cu, &d, &other));
    WORKS(cu, ptxcu_alloc(cu, sizeof memory, &buffer));
    WORKS(cu, ptxcu_array_upload(cu, &array, NULL, image, 0, NULL));
    WORKS(cu, ptxcu_array_copy(cu, &other, NULL, &array, NULL, NULL));
    memcpy(second, image, bytes);
    for (round = 0; round < 4; round++) {
        for (i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)random_u32();
        random_region(size, &r);
        pitch = r.width * texel + (random_below(2) ? 0 : 32 * random_below(3));
        WORKS(cu, ptxcu_array_upload(cu, &array, &r, memory, pitch, NULL)); /* host to a part */
        copy_in_c(image, size, texel, &r, memory, pitch, 1);
        random_region(size, &r);
        offset = 16 * random_below(4);
        pitch = r.width * texel + 16 * random_below(3);
        WORKS(cu, ptxcu_upload(cu, buffer, 0, memory, sizeof memory, NULL));
        WORKS(cu,
              ptxcu_array_load(cu, &array, &r, buffer, offset, pitch, NULL)); /* device memory to a part */
        copy_in_c(image, size, texel, &r, memory + offset, pitch, 1);
        memcpy(expected, memory, sizeof memory);
        random_region(size, &r);
        pitch = r.width * texel + 16 * random_below(3);
        WORKS(cu, ptxcu_array_store(cu, buffer, offset, pitch, &array, &r, NULL)); /* and back */
        copy_in_c(image, size, texel, &r, expected + offset, pitch, 0);
        WORKS(cu, ptxcu_download(cu, back, buffer, 0, sizeof back, NULL));
        WORKS(cu, ptxcu_sync(cu));
        CHECK(!memcmp(back, expected, sizeof back));
        random_region(size,
                      &r); /* a part of the array to another place of the other one, by way of memory in C */
        random_region(size, &to);
        to.width = r.width = r.width < to.width ? r.width : to.width;
        to.height = r.height = r.height < to.height ? r.height : to.height;
        to.depth = r.depth = r.depth < to.depth ? r.depth : to.depth;
        WORKS(cu, ptxcu_array_copy(cu, &other, &to, &array, &r, NULL));
        copy_in_c(image, size, texel, &r, expected, r.width * texel, 0);
        copy_in_c(second, size, texel, &to, expected, r.width * texel, 1);
        WORKS(cu, ptxcu_array_download(cu, back, 0, &array, NULL, NULL));
        WORKS(cu, ptxcu_sync(cu));
        CHECK(!memcmp(back, image, bytes));
        WORKS(cu, ptxcu_array_download(cu, back, 0, &other, NULL, NULL));
        WORKS(cu, ptxcu_sync(cu));
        CHECK(!memcmp(back, second, bytes));
    }
    WORKS(cu, ptxcu_free(cu, buffer));
    WORKS(cu, ptxcu_array_free(cu, &array));
    WORKS(cu, ptxcu_array_free(cu, &other));
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
    for (geo = 0; geo < GEO_CUBE; geo++)
        for (round = 0; round < 6; round++) {
            test_texel_numbers(geo, 0);
            if (geo <= GEO_2D) test_texel_numbers(geo, 1);
            for (linear = 0; linear < 2; linear++) {
                test_levels(geo, linear, round & 1, MODE_LOD);
                test_levels(geo, linear, round & 1, MODE_GRAD);
            }
        }
    for (round = 0; round < 4; round++)
        for (linear = 0; linear < 2; linear++)
            for (normalized = 0; normalized < 2; normalized++) {
                test_cubes(round & 1, linear, normalized);
                test_gather(round & 1 ? GEO_2D_LAYERED : GEO_2D, normalized);
            }
    for (geo = 0; geo < GEOS; geo++)
        for (round = 0; round < 3; round++) test_copies(geo);
}

/* ---- surfaces against arrays in C ---- */

enum { SURFACE_LOAD, SURFACE_STORE, SURFACE_ADD, SURFACE_KERNELS };
static uint32_t surface_entries[GEO_CUBE][4][SURFACE_KERNELS];
static const ptx_type surface_types[] = {PTX_U8, PTX_U16, PTX_U32, PTX_U64};
static ptxcu_program *surface_program;

/* Of each thread: x, y, z or layer, a value, then where what it loads goes: outside as 0, as the nearest place. */
typedef struct surface_access {
    int32_t x, y, z, unused;
    uint64_t value, zero, nearest, unused_too;
} surface_access;

static ptx_val load_at(ptx_kernel *k, int geo, ptx_mods outside, ptx_type type, ptx_val s, const ptx_val *c) {
    ptx_val at[3], v;
    surface_place(geo, c, at);
    ptx_surface_load(k, loads[geo], outside, type, 1, s, at, &v);
    return v;
}

static void store_at(ptx_kernel *k, int geo, ptx_type type, ptx_val s, const ptx_val *c, ptx_val value) {
    ptx_val at[3];
    surface_place(geo, c, at);
    ptx_surface_store(k, stores[geo], PTX_SURFACE_ZERO, type, 1, s, at, &value);
}

static void add_at(ptx_kernel *k, int geo, ptx_val s, const ptx_val *c, ptx_val value) {
    static const ptx_op_id op[] = {PTX_SURED_ADD_1D, PTX_SURED_ADD_2D, PTX_SURED_ADD_3D};
    if (geo <= GEO_3D) ptx_surface_store(k, op[geo], PTX_CLAMP, PTX_U32, 1, s, c, &value);
}

static ptx_module *make_surfaces(ptx_target target) {
    ptx_module_desc desc = PTX_ZERO;
    ptx_module *m;
    uint32_t count = 0;
    int geo, type, what, i;
    desc.target = target;
    m = ptx_module_new(&desc);
    for (geo = 0; geo < GEO_CUBE; geo++)
        for (type = 0; type < 4; type++)
            for (what = 0; what < SURFACE_KERNELS; what++) {
                char name[40];
                ptx_kernel *k;
                ptx_type t = surface_types[type];
                ptx_val s, list, thread, n, c[3], value;
                if (what == SURFACE_ADD && (geo > GEO_3D || t != PTX_U32)) continue;
                snprintf(name, sizeof name, "surface_%s_%d_%d", geometry_names[geo], type, what);
                k = ptx_entry(m, name);
                s = ptx_param(k, "surface", PTX_U64);
                list = ptx_param_ptr(k, "list", PTX_GLOBAL);
                n = ptx_param(k, "n", PTX_U32);
                thread = ptx_global_x(k);
                ptx_if(k, ptx_setp(k, PTX_LT, thread, n));
                list = ptx_ptr_add(k, list, thread, sizeof(surface_access));
                for (i = 0; i < 3; i++) c[i] = ptx_ld(k, PTX_U32, ptx_at(list, 4 * i));
                value = ptx_ld(k, PTX_U64, ptx_at(list, 16));
                if (what == SURFACE_LOAD)
                    for (i = 0; i < 2; i++) {
                        ptx_val v = load_at(k, geo, i ? PTX_CLAMP : PTX_SURFACE_ZERO, t, s, c);
                        if (t == PTX_U8)
                            v = ptx_cvt(k, PTX_U64, ptx_as(v, PTX_U32));
                        else if (t != PTX_U64)
                            v = ptx_cvt(k, PTX_U64, v);
                        ptx_st(k, PTX_U64, ptx_at(list, 24 + 8 * i), v);
                    }
                else {
                    ptx_val v = t == PTX_U64 ? value : ptx_cvt(k, t == PTX_U8 ? PTX_U32 : t, value);
                    if (what == SURFACE_STORE)
                        store_at(k, geo, t, s, c, v);
                    else
                        add_at(k, geo, s, c, v);
                }
                ptx_end(k);
                ptx_ret(k);
                surface_entries[geo][type][what] = ++count;
            }
    return m;
}

static void run_accesses(int geo, int type, int what, ptxcu_surface surface, surface_access *list) {
    ptxcu_buffer b;
    ptx_launch launch = ptx_launch_1d(FETCHES, 64);
    ptxcu_arg args[3];
    WORKS(cu, ptxcu_alloc(cu, FETCHES * sizeof *list, &b));
    WORKS(cu, ptxcu_upload(cu, b, 0, list, FETCHES * sizeof *list, NULL));
    args[0] = ptxcu_arg_u64(surface);
    args[1] = ptxcu_arg_buffer(b);
    args[2] = ptxcu_arg_u32(FETCHES);
    launch.entry = surface_entries[geo][type][what] - 1;
    WORKS(cu, ptxcu_launch(cu, surface_program, &launch, args, 3, NULL));
    WORKS(cu, ptxcu_download(cu, list, b, 0, FETCHES * sizeof *list, NULL));
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_free(cu, b));
}

static long limit(long v, long least, long most) { return v < least ? least : v > most ? most : v; }

static void test_surface(int geo, int type) {
    static unsigned char image[1 << 15], back[1 << 15];
    static surface_access list[FETCHES];
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_surface surface;
    ptxcu_region region;
    ref_texture t;
    int layered = geo == GEO_1D_LAYERED || geo == GEO_2D_LAYERED, what;
    long size = 1 << type, width, depth, i;
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    memset(&t, 0, sizeof t);
    memset(&region, 0, sizeof region);
    random_sizes(&t, &d, geo);
    d.type = type == 0 ? PTX_U8 : type == 1 ? PTX_U16 : PTX_U32;
    d.channels = type == 3 ? 2 : 1;
    d.flags = PTXCU_ARRAY_SURFACE;
    if (random_below(2)) { /* a level of several: the surface is level 1 */
        ptxcu_array_desc twice = d;
        region.level = 1;
        twice.width *= 2;
        twice.height *= 2;
        twice.depth *= 2;
        twice.levels = 2;
        WORKS(cu, ptxcu_array_create(cu, &twice, &array));
    } else {
        WORKS(cu, ptxcu_array_create(cu, &d, &array));
    }
    width = (long)d.width;
    depth = layered ? (long)d.layers : t.size[2];
    for (i = 0; i < width * t.size[1] * depth * size; i++) image[i] = (unsigned char)random_u32();
    WORKS(cu, ptxcu_array_upload(cu, &array, &region, image, 0, NULL));
    WORKS(cu, ptxcu_surface_create(cu, &array, region.level, &surface));
    for (what = 0; what < SURFACE_KERNELS; what++) {
        if (!surface_entries[geo][type][what]) continue;
        for (i = 0; i < FETCHES; i++) {
            /* Stores: each place once, so that the order of threads does not matter. Others: also outside. */
            long x = (long)random_below((uint32_t)width + 4) - 2;
            long y = (long)random_below((uint32_t)t.size[1] + 2) - 1;
            long z = (long)random_below((uint32_t)depth + 2) - (layered ? 0 : 1);
            if (what == SURFACE_STORE) {
                x = geo == GEO_1D ? i : i % (width + 1);
                z = i / (width + 1);
                y = geo == GEO_2D ? z : z % (t.size[1] + 1);
                if (t.dims > 1) z /= t.size[1] + 1;
            }
            list[i].x = (int32_t)(x * size);
            list[i].y = (int32_t)y;
            list[i].z = (int32_t)z;
            list[i].value = (uint64_t)random_u32() << 32 | random_u32();
        }
        run_accesses(geo, type, what, surface, list);
        for (i = 0; i < FETCHES; i++) {
            long x = list[i].x / size, y = t.dims > 1 ? list[i].y : 0,
                 z = layered || t.dims > 2 ? list[i].z : 0;
            int inside = x >= 0 && x < width && y >= 0 && y < t.size[1] && z >= 0 && z < depth;
            long cx = limit(x, 0, width - 1), cy = limit(y, 0, t.size[1] - 1), cz = limit(z, 0, depth - 1);
            unsigned char *at = image + ((cz * t.size[1] + cy) * width + cx) * size;
            uint64_t here = 0;
            uint32_t sum;
            memcpy(&here, at, (size_t)size);
            if (what == SURFACE_LOAD) {
                CHECK_MORE(list[i].zero == (inside ? here : 0), geometry_names[geo]);
                CHECK_MORE(list[i].nearest == here, geometry_names[geo]);
            } else if (what == SURFACE_STORE && inside) {
                memcpy(at, &list[i].value, (size_t)size);
            } else if (what == SURFACE_ADD) {
                sum = (uint32_t)here + (uint32_t)list[i].value;
                memcpy(at, &sum, 4);
            }
        }
        WORKS(cu, ptxcu_array_download(cu, back, 0, &array, &region, NULL));
        WORKS(cu, ptxcu_sync(cu));
        CHECK_MORE(!memcmp(back, image, (size_t)(width * t.size[1] * depth * size)), geometry_names[geo]);
    }
    if (make_fail) {
        make_fail("cuCtxSynchronize", 1, 999);
        EXPECT(cu, ptxcu_surface_destroy(cu, surface), PTXCU_E_DRIVER, "ptxcu_surface_destroy: cuCtxSynchronize()");
    }
    WORKS(cu, ptxcu_surface_destroy(cu, surface));
    WORKS(cu, ptxcu_array_free(cu, &array));
    CLEAN();
}

static void test_surfaces(void) {
    int geo, type, round;
    for (geo = 0; geo < GEO_CUBE; geo++)
        for (type = 0; type < 4; type++)
            for (round = 0; round < 2; round++) test_surface(geo, type);
}

/* ---- what descriptions are refused, with the value, the rule and the cure ---- */

static void test_refusals(void) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array, other, none = PTX_ZERO;
    ptxcu_region r;
    ptxcu_buffer buffer;
    ptxcu_texture texture = 1;
    ptxcu_surface surface = 1;
    char bytes[64] = {0};
#define BAD_ARRAY(change, text)                                                                              \
    do {                                                                                                     \
        memset(&d, 0, sizeof d);                                                                             \
        d.type = PTX_F32;                                                                                    \
        d.width = d.height = 8;                                                                              \
        change;                                                                                              \
        EXPECT(cu, ptxcu_array_create(cu, &d, &array), PTXCU_E_ARGUMENT, text);                              \
        CHECK(!array.handle);                                                                                \
    } while (0)
    BAD_ARRAY(d.type = 0, "type is");
    BAD_ARRAY(d.type = PTX_F64, "type is f64");
    BAD_ARRAY(d.channels = 3, "channels is 3, must be 1, 2 or 4");
    BAD_ARRAY(d.width = 0, "width is 0");
    BAD_ARRAY((d.height = 0, d.depth = 4), "depth is 4 with height 0");
    BAD_ARRAY((d.depth = 4, d.layers = 2), "depth is 4, must be 0 for layers");
    BAD_ARRAY((d.height = 7, d.flags = PTXCU_ARRAY_CUBE), "8 x 7 texels, must be square");
    BAD_ARRAY(d.levels = 5, "levels is 5, at most 4");
    BAD_ARRAY(d.flags = 64, "flags is 0x40");
    BAD_ARRAY((d.width = 400000, d.height = 0), "width is 400000, this device has at most 131072 of one dimension");
    BAD_ARRAY(d.height = 65537, "height is 65537, this device has at most 65536 of two dimensions");
    BAD_ARRAY(d.depth = 40000, "depth is 40000, this device has at most 32768 of three dimensions");
    BAD_ARRAY((d.depth = 20000, d.width = 9000), "width is 9000, this device has at most 8192 of three");
    BAD_ARRAY((d.height = 0, d.layers = 2049), "layers is 2049, this device has at most 2048 of one dimension in");
    BAD_ARRAY((d.width = 32769, d.layers = 2), "width is 32769, this device has at most 32768 of two dimensions in");
    BAD_ARRAY((d.flags = PTXCU_ARRAY_CUBE, d.layers = 342), "layers is 342, this device has at most 341 of cube maps");
    BAD_ARRAY((d.flags = PTXCU_ARRAY_CUBE, d.layers = 0x80000001u), "layers is 2147483649, cube maps have at most");
    BAD_ARRAY((d.flags = PTXCU_ARRAY_CUBE, d.width = d.height = 32769), "at most 32768 of a cube map");
    BAD_ARRAY((d.height = 0, d.width = 32769, d.levels = 2), "at most 32768 of one dimension with levels");
    BAD_ARRAY((d.height = 32769, d.levels = 2), "height is 32769, this device has at most 32768 of two dimensions");
    BAD_ARRAY((d.height = 32769, d.flags = PTXCU_ARRAY_GATHER), "at most 32768 of two dimensions for gathers");
    BAD_ARRAY((d.height = 0, d.width = 32769, d.flags = PTXCU_ARRAY_SURFACE), "at most 32768 for a surface of one");
    memset(&d, 0, sizeof d);
    d.type = PTX_F32;
    d.width = 4, d.height = 4, d.depth = 32768;
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_free(cu, &array));
    d.depth = 0;
    find_extras(cu);
    if (make_fail) {
        make_fail("cuArray3DCreate_v2", 1, 2);
        EXPECT(cu, ptxcu_array_create(cu, &d, &array), PTXCU_E_DRIVER, "cuArray3DCreate_v2(1 x f32, 4 x 4 x 0 texels");
    }
    d.width = d.height = 8;
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    d.channels = 2;
    WORKS(cu, ptxcu_array_create(cu, &d, &other));
    WORKS(cu, ptxcu_alloc(cu, 4096, &buffer));
#define BAD_REGION(change, text)                                                                             \
    do {                                                                                                     \
        memset(&r, 0, sizeof r);                                                                             \
        change;                                                                                              \
        EXPECT(cu, ptxcu_array_upload(cu, &array, &r, bytes, 0, NULL), PTXCU_E_ARGUMENT, text);              \
    } while (0)
    BAD_REGION(r.x = 8, "0 texels from 8 on in x, and the array 8 there");
    BAD_REGION((r.y = 3, r.height = 6), "6 texels from 3 on in y");
    BAD_REGION(r.z = 1, "from 1 on in z");
    BAD_REGION(r.level = 1, "level is 1, and the array has 1");
    EXPECT(cu, ptxcu_array_upload(cu, &array, NULL, bytes, 31, NULL), PTXCU_E_ARGUMENT, "pitch is 31 bytes");
    EXPECT(cu, ptxcu_array_upload(cu, &none, NULL, bytes, 0, NULL), PTXCU_E_ARGUMENT, "the array is zero");
    EXPECT(cu, ptxcu_array_upload(cu, &array, NULL, NULL, 0, NULL), PTXCU_E_ARGUMENT, "from is NULL");
    EXPECT(cu, ptxcu_array_download(cu, NULL, 0, &array, NULL, NULL), PTXCU_E_ARGUMENT, "to is NULL");
    EXPECT(cu, ptxcu_array_load(cu, &array, NULL, buffer, 4000, 0, NULL), PTXCU_E_ARGUMENT,
           "do not lie in a buffer");
    EXPECT(cu, ptxcu_array_store(cu, buffer, 0, 4096, &array, NULL, NULL), PTXCU_E_ARGUMENT,
           "do not lie in a buffer");
    EXPECT(cu, ptxcu_array_copy(cu, &array, NULL, &other, NULL, NULL), PTXCU_E_ARGUMENT,
           "texels of 8 and 4 bytes");
#define BAD_TEXTURE(change, text)                                                                            \
    do {                                                                                                     \
        memset(&td, 0, sizeof td);                                                                           \
        td.array = array;                                                                                    \
        change;                                                                                              \
        EXPECT(cu, ptxcu_texture_create(cu, &td, &texture), PTXCU_E_ARGUMENT, text);                         \
        CHECK(!texture);                                                                                     \
    } while (0)
    BAD_TEXTURE(td.address[1] = 4, "address[1] is 4");
    BAD_TEXTURE(td.address[0] = PTXCU_ADDRESS_WRAP, "address[0] is wrap or mirror, and normalized is 0");
    BAD_TEXTURE(td.filter = 2, "filter is 2");
    BAD_TEXTURE(td.read_normalized = 1, "read_normalized is set, and type is f32");
    BAD_TEXTURE(td.srgb = 1, "srgb is set for f32");
    BAD_TEXTURE(td.anisotropy = 17, "anisotropy is 17");
    BAD_TEXTURE(td.level_bias = (float)NAN, "level_bias is");
    BAD_TEXTURE((td.min_level = 2, td.max_level = 1), "min_level 2 and max_level 1");
    BAD_TEXTURE(td.memory.address = 512, "array and memory are both set");
    BAD_TEXTURE((td.type = PTX_U32, td.filter = PTXCU_FILTER_LINEAR),
                "filter is linear, and u32 is read as integers");
    BAD_TEXTURE(td.type = PTX_U16, "1 x u16 is read from texels of 4 bytes");
    BAD_TEXTURE(td.layer_count = 2, "2 texels from 0 on in layers");
    BAD_TEXTURE(td.array = none, "type is");
    BAD_TEXTURE((td.array = none, td.type = PTX_F32), "array and memory are zero");
    BAD_TEXTURE(
        (td.array = none, td.type = PTX_F32, td.memory = buffer, td.memory.address += 16, td.width = 4),
        "must be a multiple of 512");
    BAD_TEXTURE((td.array = none, td.type = PTX_F32, td.memory = buffer), "width of memory is 0");
    BAD_TEXTURE((td.array = none, td.type = PTX_F32, td.memory = buffer, td.width = 9, td.height = 2),
                "pitch is 36");
    BAD_TEXTURE((td.array = none, td.type = PTX_F32, td.memory = buffer, td.width = 2000),
                "do not lie in 4096 bytes");
    BAD_TEXTURE((td.array = none, td.type = PTX_F32, td.memory = buffer, td.width = 4, td.normalized = 1),
                "memory of one dimension (height 0)");
    EXPECT(cu, ptxcu_surface_create(cu, &array, 0, &surface), PTXCU_E_ARGUMENT,
           "without PTXCU_ARRAY_SURFACE");
    CHECK(!surface);
    /* Another type of the same size, and a bit pattern that it reads as such. */
    memset(&td, 0, sizeof td);
    td.array = array;
    td.type = PTX_U8;
    td.channels = 4;
    td.read_normalized = 1;
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    if (make_fail) {
        make_fail("cuCtxSynchronize", 1, 999);
        EXPECT(cu, ptxcu_texture_destroy(cu, texture), PTXCU_E_DRIVER, "ptxcu_texture_destroy: cuCtxSynchronize()");
    }
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_texture_destroy(cu, 0));
    WORKS(cu, ptxcu_surface_destroy(cu, 0));
    WORKS(cu, ptxcu_array_free(cu, &none));
    WORKS(cu, ptxcu_free(cu, buffer));
    WORKS(cu, ptxcu_array_free(cu, &array));
    WORKS(cu, ptxcu_array_free(cu, &other));
    if (report_clear) report_clear();
}

/* ---- memory of others ---- */

/* An array that cannot be freed now is kept: in a capture, and where the driver fails. On the CPU driver. */
static void test_free_again(void) {
    ptxcu_array_desc d;
    ptxcu_array array, copy;
    ptxcu_stream stream;
    ptxcu_graph graph;
    uint32_t levels;
    for (levels = 0; levels < 2 && make_fail; levels++) {
        memset(&d, 0, sizeof d);
        d.type = PTX_F32;
        d.width = 8;
        d.levels = levels;
        WORKS(cu, ptxcu_array_create(cu, &d, &array));
        copy = array;
        WORKS(cu, ptxcu_stream_create(cu, &stream));
        WORKS(cu, ptxcu_graph_begin(cu, stream));
        EXPECT(cu, ptxcu_array_free(cu, &array), PTXCU_E_DRIVER, "cuCtxSynchronize");
        CHECK(array.handle == copy.handle && array.desc.width == 8);
        CHECK(ptxcu_graph_end(cu, stream, &graph) == PTXCU_E_DRIVER && !graph); /* the attempt ended it */
        WORKS(cu, ptxcu_stream_destroy(cu, stream));
        make_fail(levels ? "cuMipmappedArrayDestroy" : "cuArrayDestroy", 1, 999);
        EXPECT(cu, ptxcu_array_free(cu, &array), PTXCU_E_DRIVER, "ArrayDestroy()");
        CHECK(array.handle == copy.handle);
        WORKS(cu, ptxcu_array_free(cu, &array));
        CHECK(!array.handle && !array.desc.width);
    }
    CLEAN();
}

/* A texture is destroyed behind its last kernel, without another wait. */
static void test_destroy_at_once(void) {
    ptxcu_array_desc d;
    ptxcu_texture_desc td;
    ptxcu_array array;
    ptxcu_texture texture;
    ptxcu_buffer a, b;
    ptxcu_arg args[4];
    ptx_launch launch = ptx_launch_1d(FETCHES, 64);
    float texel = 2.5f, result[4];
    memset(&d, 0, sizeof d);
    memset(&td, 0, sizeof td);
    d.type = PTX_F32;
    d.width = 1;
    WORKS(cu, ptxcu_array_create(cu, &d, &array));
    WORKS(cu, ptxcu_array_upload(cu, &array, NULL, &texel, 0, NULL));
    td.array = array;
    WORKS(cu, ptxcu_texture_create(cu, &td, &texture));
    WORKS(cu, ptxcu_alloc(cu, sizeof in, &a));
    WORKS(cu, ptxcu_alloc(cu, sizeof out, &b));
    WORKS(cu, ptxcu_upload(cu, a, 0, in, sizeof in, NULL));
    args[0] = ptxcu_arg_u64(texture);
    args[1] = ptxcu_arg_buffer(a);
    args[2] = ptxcu_arg_buffer(b);
    args[3] = ptxcu_arg_u32(1);
    launch.entry = entries[GEO_1D][MODE_PLAIN][0] - 1;
    WORKS(cu, ptxcu_launch(cu, program, &launch, args, 4, NULL));
    WORKS(cu, ptxcu_texture_destroy(cu, texture));
    WORKS(cu, ptxcu_array_free(cu, &array));
    WORKS(cu, ptxcu_download(cu, result, b, 0, sizeof result, NULL));
    WORKS(cu, ptxcu_sync(cu));
    CHECK(result[0] == texel && result[1] == 0);
    WORKS(cu, ptxcu_free(cu, a));
    WORKS(cu, ptxcu_free(cu, b));
    CLEAN();
}

static void test_external(void) {
    ptxcu_external_desc d;
    ptxcu_external_memory memory = NULL;
    ptxcu_external_semaphore semaphore = NULL;
    ptxcu_graphics resource = NULL;
    ptxcu_buffer buffer;
    ptxcu_array array;
    ptxcu_array_desc ad;
    enum { BYTES = 3 * 4096 };
    char name[] = "/tmp/textures-XXXXXX";
    unsigned char *shared, value = (unsigned char)random_u32();
    int file, i, good = 1;
    memset(&d, 0, sizeof d);
    memset(&ad, 0, sizeof ad);
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_ARGUMENT, "type is 0");
    d.type = PTXCU_MEMORY_FD;
    d.fd = -1;
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_ARGUMENT, "fd is -1");
    d.type = PTXCU_MEMORY_D3D12_HEAP;
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_ARGUMENT, "set handle or name");
    d.handle = &d;
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_ARGUMENT, "bytes is 0");
    d.type = 99;
    EXPECT(cu, ptxcu_external_semaphore_import(cu, &d, &semaphore), PTXCU_E_ARGUMENT, "PTXCU_SEMAPHORE_");
    EXPECT(cu, ptxcu_gl_register_buffer(cu, 1, 16, &resource), PTXCU_E_ARGUMENT, "access is 0x10");
    if (!ptxcu_device_info(cu)->is_cpu_driver) return;
    /* What the CPU driver has not: the library lacks it, or says so. */
    EXPECT(cu, ptxcu_gl_register_buffer(cu, 1, 0, &resource), PTXCU_E_SYMBOL, "cuGraphicsGLRegisterBuffer");
    EXPECT(cu, ptxcu_gl_register_image(cu, 1, 0xde1, 0, &resource), PTXCU_E_SYMBOL,
           "cuGraphicsGLRegisterImage");
    EXPECT(cu, ptxcu_graphics_map(cu, 1, &resource, NULL), PTXCU_E_SYMBOL, "cuGraphicsMapResources");
    d.type = PTXCU_MEMORY_D3D12_HEAP;
    d.bytes = BYTES;
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_DRIVER, "CUDA_ERROR_NOT_SUPPORTED");
    d.type = PTXCU_SEMAPHORE_TIMELINE_FD;
    EXPECT(cu, ptxcu_external_semaphore_import(cu, &d, &semaphore), PTXCU_E_ARGUMENT, "fd is -1");
    d.fd = 0;
    EXPECT(cu, ptxcu_external_semaphore_import(cu, &d, &semaphore), PTXCU_E_DRIVER,
           "CUDA_ERROR_NOT_SUPPORTED");
    /* A file of memory, as another interface would export it. */
    file = mkstemp(name);
    remove(name);
    CHECK(file >= 0 && ftruncate(file, BYTES) == 0);
    shared = (unsigned char *)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    for (i = 0; i < BYTES; i++) shared[i] = (unsigned char)(i * 7 + value);
    d.type = PTXCU_MEMORY_FD;
    d.fd = file;
    d.bytes = 2 * BYTES;
    EXPECT(cu, ptxcu_external_memory_import(cu, &d, &memory), PTXCU_E_DRIVER, "cuImportExternalMemory");
    d.bytes = BYTES;
    WORKS(cu, ptxcu_external_memory_import(cu, &d, &memory)); /* the descriptor is the driver's now */
    EXPECT(cu, ptxcu_external_memory_buffer(cu, memory, BYTES - 8, 9, &buffer), PTXCU_E_DRIVER,
           "9 bytes at 12280");
    WORKS(cu, ptxcu_external_memory_buffer(cu, memory, 5000, 4000, &buffer));
    ad.type = PTX_F32;
    ad.width = ad.height = 16;
    EXPECT(cu, ptxcu_external_memory_array(cu, memory, 0, &ad, &array), PTXCU_E_DRIVER,
           "CUDA_ERROR_NOT_SUPPORTED");
    WORKS(cu, ptxcu_external_memory_release(cu, memory));
    {
        unsigned char back[4000];
        WORKS(cu, ptxcu_download(cu, back, buffer, 0, sizeof back, NULL)); /* what the other one wrote */
        WORKS(cu, ptxcu_sync(cu));
        CHECK(!memcmp(back, shared + 5000, sizeof back));
    }
    WORKS(cu, ptxcu_fill8(cu, buffer, 100, value, 50, NULL)); /* and what it will see */
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 50; i++) good &= shared[5100 + i] == value;
    CHECK(good && shared[5099] == (unsigned char)(5099 * 7 + value));
    WORKS(cu, ptxcu_free(cu, buffer));
    CHECK(close(file) != 0); /* it was closed with the memory */
    munmap(shared, BYTES);
    CLEAN();
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    counter c;
    ptxcu_desc desc;
    ptx_module *m;
    memset(&c, 0, sizeof c);
    desc = describe(library && *library ? library : NULL, &c);
    start_random();
    test_names();
    test_misuse();
    test_assembler();
    WORKS(cu, ptxcu_open(&cu, &desc));
    if (ptxcu_get_error(cu)->code == PTXCU_E_NONE) {
        find_extras(cu);
        find_reports(cu);
        m = make_kernels(ptxcu_device_info(cu)->target, 0);
        CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
        WORKS(cu, ptxcu_load(cu, m, &program));
        ptx_module_free(m);
        m = make_surfaces(ptxcu_device_info(cu)->target);
        CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
        WORKS(cu, ptxcu_load(cu, m, &surface_program));
        ptx_module_free(m);
        if (program) test_textures();
        if (surface_program) test_surfaces();
        test_destroy_at_once();
    test_free_again();
        test_refusals();
        test_external();
    }
    ptxcu_close(cu);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    return check_end();
}
