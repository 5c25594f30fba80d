/* textures.c - tex, tld4, txq, suld, sust, sured and suq on the CPU driver: which forms load (as ptxas has it,
 * where it is found), what they give, and wrong programs beside right ones. What filtering gives is held against
 * a reference in tests/cuda/textures.c.
 *
 *   textures [library]        run from the root of the repository */
#include "../simtest.h"
#include <math.h>
#include <unistd.h>

typedef struct array_desc {
    size_t width, height, depth;
    unsigned format, channels, flags;
} array_desc;
typedef struct resource {
    int type;
    union {
        handle array;
        struct {
            dptr address;
            unsigned format, channels;
            size_t width, height, pitch;
        } memory;
        int reserved[32];
    } u;
    unsigned flags;
} resource;
typedef struct sampling {
    int address[3], filter;
    unsigned flags, anisotropy;
    int mip_filter;
    float bias, least, most, border[4];
    int reserved[12];
} sampling;
typedef struct view {
    int format;
    size_t width, height, depth;
    unsigned first_level, last_level, first_layer, last_layer, reserved[16];
} view;
typedef struct copy_side {
    size_t x, y, z, level;
    int type;
    const void *host;
    dptr device;
    handle array, reserved;
    size_t pitch, height;
} copy_side;
typedef struct copy_3d {
    copy_side from, to;
    size_t width, height, depth;
} copy_3d;

enum { U8 = 1, U16 = 2, U32 = 3, S8 = 8, S16 = 9, S32 = 10, HALF = 16, FLOAT = 32 };
enum { LAYERED = 1, SURFACE = 2, CUBE = 4 };

#define TEXTURE_ENTRIES(X)                                                                                   \
    X(cuArray3DCreate_v2, (handle *, const array_desc *))                                                    \
    X(cuArrayDestroy, (handle)) X(cuArray3DGetDescriptor_v2, (array_desc *, handle))                         \
        X(cuMipmappedArrayCreate, (handle *, const array_desc *, unsigned))                                  \
            X(cuMipmappedArrayGetLevel, (handle *, handle, unsigned)) X(cuMipmappedArrayDestroy, (handle))   \
                X(cuTexObjectCreate, (dptr *, const resource *, const sampling *, const view *))             \
                    X(cuTexObjectDestroy, (dptr)) X(cuTexObjectGetResourceDesc, (resource *, dptr))          \
                        X(cuTexObjectGetTextureDesc, (sampling *, dptr)) X(cuTexObjectGetResourceViewDesc,   \
                                                                           (view *, dptr))                   \
                            X(cuSurfObjectCreate, (dptr *, const resource *)) X(cuSurfObjectDestroy, (dptr)) \
                                X(cuSurfObjectGetResourceDesc, (resource *, dptr))                           \
                                    X(cuMemcpyHtoA_v2, (handle, size_t, const void *, size_t))               \
                                        X(cuMemcpyAtoH_v2, (void *, handle, size_t, size_t))                 \
                                            X(cuMemcpyDtoA_v2, (handle, size_t, dptr, size_t)) X(            \
                                                cuMemcpyAtoD_v2, (dptr, handle, size_t, size_t))             \
                                                X(cuMemcpyAtoA_v2, (handle, size_t, handle, size_t, size_t)) \
                                                    X(cuMemcpy3D_v2, (const copy_3d *))                      \
                                                        X(cuMemcpy3DAsync_v2, (const copy_3d *, handle))
#define X(name, args) static int(*t##name) args;
TEXTURE_ENTRIES(X)
#undef X

/* --- forms ------------------------------------------------------------------------------------------ */

/* + taken, - refused, by ptxas 13.0 and by this driver; ! taken by ptxas, refused by name here. */
static const char *const forms[] = {
    "+suld.b.1d.b8.trap {h0}, [d0, {r1}];",
    "+suld.b.1d.b8.trap {r0}, [d0, {r1}];",
    "+suld.b.1d.b8.trap {d1}, [d0, {r1}];",
    "+suld.b.1d.b8.trap h0, [d0, {r1}];",
    "+suld.b.1d.b8.trap {h0}, [d0, r1];",
    "+suld.b.1d.b16.trap {r0}, [d0, {r1}];",
    "+suld.b.1d.b32.trap {d1}, [d0, {r1}];",
    "+suld.b.1d.b32.trap {f1}, [d0, {r1}];",
    "-suld.b.1d.b32.trap {h1}, [d0, {r1}];",
    "+suld.b.1d.b64.trap {g1}, [d0, {r1}];",
    "-suld.b.1d.b64.trap {r1}, [d0, {r1}];",
    "+sust.b.1d.b8.trap [d0, {r1}], {r0};",
    "+sust.b.1d.b8.trap [d0, {r1}], {d1};",
    "+sust.b.1d.b32.trap [d0, {r1}], {d1};",
    "+sust.b.1d.b32.trap [d0, {r1}], {5};",
    "+sust.b.1d.b32.trap [d0, {4}], {r5};",
    "-sust.b.1d.b32.trap [d0, {f1}], {r5};",
    "-sust.b.1d.b32.trap [d0, {h1}], {r5};",
    "+sust.b.1d.b32.trap [d0, {r1,r2}], {r5};",
    "-sust.b.2d.b32.trap [d0, {r1}], {r5};",
    "+sust.b.2d.b32.trap [d0, {r1,r2,r2,r3}], {r5};",
    "-sust.b.3d.b32.trap [d0, {r1,r2,r3}], {r5};",
    "+sust.p.2d.v4.b32.trap [d0, {r1,r2}], {f0,f1,f2,f3};",
    "+sust.p.2d.b32.trap [d0, {r1,r2}], {r5};",
    "+sust.p.2d.v2.b32.zero [d0, {r1,r2}], {r5,r6};",
    "-sust.p.2d.b16.zero [d0, {r1,r2}], {h5};",
    "+tex.2d.v4.f32.f32 {r0,r1,r2,r3}, [d0, {f4,f5}];",
    "-tex.2d.v4.u32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "+tex.2d.v4.s32.f32 {r0,r7,r2,r3}, [d0, {r4,r5}];",
    "-tex.2d.v4.f32.s32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "-tex.2d.v4.f32.f32 {d1,d2,d3,d4}, [d0, {f4,f5}];",
    "+tex.2d.v4.f32.f32 {_,f1,_,f3}, [d0, {f4,f5}];",
    "+tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5,f6,f6}];",
    "-tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4}];",
    "+tex.1d.v4.f32.f32 {f0,f1,f2,f3}, [d0, f4];",
    "+tex.1d.v4.f32.s32 {f0,f1,f2,f3}, [d0, {5}];",
    "+tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,0f3F800000}];",
    "+tex.level.2d.v4.f32.s32 {f0,f1,f2,f3}, [d0, {r4,r5}], r6;",
    "+tex.level.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], 0f3F800000;",
    "-tex.level.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "-tex.2d.v4.f32.f32 {f0,f1,f2}, [d0, {f4,f5}];",
    "+tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], {r0,r1};",
    "+tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], {1,-1};",
    "+tex.1d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4}], r0;",
    "!tex.1d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4}], f0;",
    "+tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], {f0,f1}, {f2,f3}, {r0,r1};",
    "-tex.grad.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], {f0,f1};",
    "!tex.grad.cube.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5,f6,f6}], {f0,f1,f2,f2}, {f0,f1,f2,f2};",
    "+tex.base.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "+tex.2d.v4.f16.f32 {h0,h1,h2,h3}, [d0, {f4,f5}];",
    "+tex.2d.v2.f16x2.f32 {r0,r1}, [d0, {f4,f5}];",
    "-tex.2d.v4.f16x2.f32 {r0,r1,r2,r3}, [d0, {f4,f5}];",
    "-tex.2d.v4.b32.f32 {r0,r1,r2,r3}, [d0, {f4,f5}];",
    "+tex.v4.2d.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "-tex.cube.v4.f32.s32 {f0,f1,f2,f3}, [d0, {r4,r5,r6,r6}];",
    "+tex.2d.v4.f32.f32 {f0,f1,f2,f3}|p0, [d0, {f4,f5}];",
    "!tex.2dms.v4.f32.s32 {f0,f1,f2,f3}, [d0, {r4,r5,r6,r6}];",
    "!tex.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, d1, {f4,f5}];",
    "-tex.4d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "+tld4.r.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}], {r0,r1};",
    "+tld4.2d.r.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "-tld4.r.3d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5,f6,f6}];",
    "-tld4.2d.v4.f32.f32 {f0,f1,f2,f3}, [d0, {f4,f5}];",
    "+tld4.r.2d.v4.f32.f32 {f0,f1,f2,f3}|p0, [d0, {f4,f5}];",
    "+txq.level.width.b32 r0, [d0], r1;",
    "+txq.level.width.b32 r0, [d0], 2;",
    "+txq.array_size.b32 r0, [d0];",
    "-txq.level.array_size.b32 r0, [d0], r1;",
    "-txq.width.b32 d1, [d0];",
    "+txq.force_unnormalized_coords.b32 r0, [d0];",
    "+suq.memory_layout.b32 r0, [d0];",
    "-suq.normalized_coords.b32 r0, [d0];",
    "-txq.colour.b32 r0, [d0];",
    "+sured.b.add.2d.u32.trap [d0, {r1,r2}], r3;",
    "+sured.b.add.2d.u64.trap [d0, {r1,r2}], d3;",
    "-sured.b.min.2d.u64.trap [d0, {r1,r2}], d3;",
    "+sured.p.add.2d.b32.trap [d0, {r1,r2}], r3;",
    "-sured.b.add.a2d.u32.trap [d0, {r1,r2,r3,r3}], r3;",
    "-sured.b.add.2d.u32 [d0, {r1,r2}], r3;",
    "+sured.b.2d.add.u32.trap [d0, {r1,r2}], r3;",
    "-suld.b.2d.b32 {r0}, [d0, {r1,r2}];",
    "+suld.b.2d.ca.b32.trap {r0}, [d0, {r1,r2}];",
    "+suld.b.2d.v2.ca.b32.trap {r0,r3}, [d0, {r1,r2}];",
    "-suld.p.2d.v4.b32.trap {r0,r1,r2,r3}, [d0, {r1,r2}];",
    "-suld.b.2d.v4.b64.trap {d1,d2,d3,d4}, [d0, {r1,r2}];",
    "-suld.b.cube.b32.trap {r0}, [d0, {r1,r2,r3,r3}];",
    "-suld.b.2d.b32.trap {r0}, [d0+4, {r1,r2}];",
    "-suld.b.2d.b32.trap {r0}, [r0, {r1,r2}];",
    "+sured.b.add.2d.u32.trap [d0, {r1,r2}], 5;",
    "+sured.b.add.1d.u32.trap [d0, r1], r2;",
    "-suld.b.2d.f32.trap {f0}, [d0, {r1,r2}];",
    "-suld.b.2d.b32.mirror {r0}, [d0, {r1,r2}];"};

/* 1: taken; 0: rejected; -1: there is no ptxas. */
static int asked(const char *text) {
    char path[] = "/tmp/textures-XXXXXX", command[200];
    int file = mkstemp(path);
    FILE *f = file < 0 ? NULL : fdopen(file, "w");
    if (!f) return -1;
    fputs(text, f);
    fclose(f);
    snprintf(command, sizeof command, "ptxas -O0 -arch sm_90 -o /dev/null %s > /dev/null 2>&1", path);
    int status = system(command);
    remove(path);
    return status == 0;
}

static void test_forms(void) {
    bool ask = system("ptxas --version > /dev/null 2>&1") == 0;
    if (!ask) printf("SKIPPED: there is no ptxas; the forms are held against the CPU driver alone\n");
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        static char text[2000];
        const char *line = forms[k] + 1;
        snprintf(text, sizeof text, HEAD ".visible .entry k() {\n" REGS "%s\nret; }\n", line);
        handle m = NULL;
        int code = cuModuleLoadData_(&m, text);
        CHECK((code == 0) == (*forms[k] == '+'), "%s: gives %d", line, code);
        if (!code)
            cuModuleUnload_(m);
        else if (*forms[k] == '!') {
            (void)refused(text);
            CHECK(strstr(log_text, "not implemented by this CPU driver"), "%s: %s", line, log_text);
        }
        if (ask)
            CHECK(asked(text) == (*forms[k] != '-'), "%s: ptxas %s", line,
                  *forms[k] == '-' ? "takes it" : "rejects it");
    }
}

/* --- objects ---------------------------------------------------------------------------------------- */

static handle make_array(unsigned format, unsigned channels, size_t w, size_t h, size_t d, unsigned flags) {
    array_desc a = {w, h, d, format, channels, flags};
    handle out = NULL;
    SAME(tcuArray3DCreate_v2(&out, &a), 0);
    return out;
}

static void fill(handle array, const void *texels, size_t row, size_t rows, size_t depth) {
    copy_3d c = {.from = {.type = 1, .host = texels},
                 .to = {.type = 3, .array = array},
                 .width = row,
                 .height = rows,
                 .depth = depth};
    SAME(tcuMemcpy3D_v2(&c), 0);
}

static void read_back(handle array, void *texels, size_t row, size_t rows, size_t depth) {
    copy_3d c = {.to = {.type = 1, .host = texels},
                 .from = {.type = 3, .array = array},
                 .width = row,
                 .height = rows,
                 .depth = depth};
    SAME(tcuMemcpy3D_v2(&c), 0);
}

static dptr texture_of(handle array, unsigned flags, int filter) {
    resource r = {.u.array = array};
    sampling s = {.address = {1, 1, 1}, .filter = filter, .flags = flags};
    dptr out = 0;
    SAME(tcuTexObjectCreate(&out, &r, &s, NULL), 0);
    return out;
}

static dptr surface_of(handle array) {
    resource r = {.u.array = array};
    dptr out = 0;
    SAME(tcuSurfObjectCreate(&out, &r), 0);
    return out;
}

enum { W = 8, H = 4 };
static float image[H][W];

/* --- running: d0, d1: a texture and a surface; d2: 16 words of this thread's output -------------------- */

static uint32_t words[32][16];

static int run_body(const char *body, dptr t, dptr s, unsigned threads) {
    static char text[6000];
    snprintf(text, sizeof text,
             HEAD ".visible .entry k(.param .u64 t, .param .u64 s, .param .u64 out) {\n" REGS
                  "ld.param.u64 d0, [t]; ld.param.u64 d1, [s]; ld.param.u64 d2, [out]; mov.u32 r0, %%tid.x;"
                  " mul.wide.u32 d3, r0, 64; add.u64 d2, d2, d3;\n%s\nret; }",
             body);
    handle m = load(text), f = function(m, "k");
    if (!f) return -1;
    dptr out = alloc(sizeof words);
    cuMemsetD32_v2_(out, 0, sizeof words / 4);
    void *params[] = {&t, &s, &out};
    int code = run(f, 1, threads, 0, params);
    if (!code) cuMemcpyDtoH_v2_(words, out, sizeof words);
    return code;
}

/* The finding of this kind, or none where kind is "", and the result of the launch. */
static void expect(int line, const char *what, const char *kind, int code, int want) {
    findings();
    size_t n = strlen(kind);
    check_at(__FILE__, line, code == want, "%s: gives %d, expected %d: %s", what, code, want, found);
    if (n)
        check_at(__FILE__, line, !strncmp(found, kind, n) && found[n] == ':' && strstr(found, "kernel 'k'"),
                 "%s: expected %s, found: %s", what, kind, found);
    else
        check_at(__FILE__, line, !*found, "%s: nothing is wrong, found: %s", what, found);
    report_clear();
}
#define RUN(what, kind, want, t, s, threads, body)                                                           \
    expect(__LINE__, what, kind, run_body(body, t, s, threads), want)

static float word(unsigned thread, unsigned n) {
    float f;
    memcpy(&f, &words[thread][n], 4);
    return f;
}

static float half(uint32_t h) {
    uint32_t e = h >> 10 & 31, m = h & 0x3ff;
    float v = e ? ldexpf((float)(m + 1024), (int)e - 25) : ldexpf((float)m, -24);
    return h & 0x8000 ? -v : v;
}

/* --- what instructions give -------------------------------------------------------------------------- */

#define STORE4 "st.global.v4.b32 [d2], {r4,r5,r6,r7};"

static void test_fetches(handle array, dptr t) {
    /* Offsets move by whole texels. */
    RUN("an offset", "", 0, t, 0, 1,
        "mov.f32 f0, 0f40200000; mov.f32 f1, 0f3FC00000; mov.u32 r1, 1; mov.u32 r2, -1;"
        "tex.2d.v4.f32.f32 {r4,r5,r6,r7}, [d0, {f0,f1}], {r1,r2}; " STORE4);
    CHECK(word(0, 0) == image[0][3] && !words[0][1] && !words[0][3], "(2.5, 1.5) and (1, -1): %g",
          (double)word(0, 0));
    RUN("an offset of integers", "", 0, t, 0, 1,
        "tex.2d.v4.f32.s32 {r4,r5,r6,r7}, [d0, {2,3}], {3,-2}; " STORE4);
    CHECK(word(0, 0) == image[1][5], "(2, 3) and (3, -2)");
    /* Sparse fetches: all texels are there. */
    RUN("a predicate", "", 0, t, 0, 1,
        "mov.f32 f0, 0f3F000000; tex.2d.v4.f32.f32 {r4,r5,r6,r7}|p1, [d0, {f0,f0}]; selp.u32 r5, 7, 9, "
        "p1; " STORE4);
    CHECK(word(0, 0) == image[0][0] && words[0][1] == 7, "resident");
    /* Results of 16 bits. */
    RUN("f16", "", 0, t, 0, 1,
        "mov.f32 f0, 0f3FC00000; tex.2d.v4.f16.f32 {h0,h1,h2,h3}, [d0, {f0,f0}]; mov.b32 r4, {h0,h1};"
        "tex.2d.v2.f16x2.f32 {r5,r6}, [d0, {f0,f0}]; mov.u32 r7, 0; " STORE4);
    CHECK(words[0][0] == words[0][1] && fabsf(half(words[0][0] & 0xffff) - image[1][1]) < 1e-3f, "f16: %x",
          words[0][0]);
    /* What is dropped, and a scalar coordinate. */
    RUN("sinks", "", 0, t, 0, 1,
        "mov.f32 f0, 0f3F000000; mov.u32 r4, 1; mov.u32 r5, 2; mov.u32 r6, 3; mov.u32 r7, 4;"
        "tex.2d.v4.f32.f32 {r4,_,_,_}, [d0, {f0,f0}]; " STORE4);
    CHECK(word(0, 0) == image[0][0] && words[0][1] == 2 && words[0][3] == 4, "sinks");
    (void)array;
}

static void test_queries(void) {
    handle cube = make_array(U8, 4, 16, 16, 12, LAYERED | CUBE), m = NULL;
    array_desc d = {32, 8, 0, HALF, 2, 0};
    SAME(tcuMipmappedArrayCreate(&m, &d, 99), 0); /* as many as there can be */
    resource r = {.u.array = cube}, levels = {.type = 1, .u.array = m};
    sampling s = {.address = {0, 1, 2}, .filter = 1, .flags = 2};
    dptr a = 0, b = 0;
    SAME(tcuTexObjectCreate(&a, &r, &s, NULL), 0);
    SAME(tcuTexObjectCreate(&b, &levels, &s, NULL), 0);
    static const char *const body =
        "txq.width.b32 r1, [d0]; txq.height.b32 r2, [d0]; txq.depth.b32 r3, [d0]; txq.array_size.b32 r4, "
        "[d0];"
        "st.global.v4.u32 [d2], {r1,r2,r3,r4}; txq.num_mipmap_levels.b32 r1, [d0]; txq.normalized_coords.b32 "
        "r2, [d0];"
        "txq.channel_order.b32 r3, [d0]; txq.channel_data_type.b32 r4, [d0]; st.global.v4.u32 [d2+16], "
        "{r1,r2,r3,r4};"
        "txq.filter_mode.b32 r1, [d0]; txq.addr_mode_0.b32 r2, [d0]; txq.addr_mode_1.b32 r3, [d0];"
        "txq.addr_mode_2.b32 r4, [d0]; st.global.v4.u32 [d2+32], {r1,r2,r3,r4};";
    RUN("queries of cube maps", "", 0, a, 0, 1, body);
    static const uint32_t cubes[12] = {16, 16, 0, 2, 0, 1, 0x10b5, 0x10d2, 1, 0, 3, 1};
    CHECK(!memcmp(words[0], cubes, sizeof cubes), "cube maps: %u %u %u %u %u %u %x %x", words[0][0],
          words[0][1], words[0][2], words[0][3], words[0][4], words[0][5], words[0][6], words[0][7]);
    RUN("queries of levels", "", 0, b, 0, 1, body);
    CHECK(words[0][0] == 32 && words[0][1] == 8 && words[0][3] == 0 && words[0][4] == 6
              && words[0][7] == 0x10dd,
          "levels");
    RUN("the size of a level", "", 0, b, 0, 1,
        "mov.u32 r1, 2; txq.level.width.b32 r4, [d0], r1; txq.level.height.b32 r5, [d0], 4; mov.u32 r6, 0; "
        "mov.u32 r7, 0; " STORE4);
    CHECK(words[0][0] == 8 && words[0][1] == 1, "of level 2 and 4: %u %u", words[0][0], words[0][1]);
    RUN("a level that is not there", "out-of-bounds", 0, b, 0, 1,
        "txq.level.width.b32 r4, [d0], 6; st.global.u32 [d2], r4;");
    handle array = make_array(S16, 4, 5, 6, 7, SURFACE);
    dptr surface = surface_of(array);
    RUN("queries of a surface", "", 0, 0, surface, 1,
        "suq.width.b32 r4, [d1]; suq.height.b32 r5, [d1]; suq.depth.b32 r6, [d1]; suq.channel_data_type.b32 "
        "r7, [d1]; " STORE4);
    CHECK(words[0][0] == 5 && words[0][1] == 6 && words[0][2] == 7 && words[0][3] == 0x10d8, "surface");
    SAME(tcuTexObjectDestroy(a), 0);
    SAME(tcuTexObjectDestroy(b), 0);
    SAME(tcuSurfObjectDestroy(surface), 0);
    SAME(tcuArrayDestroy(array), 0);
    SAME(tcuArrayDestroy(cube), 0);
    SAME(tcuMipmappedArrayDestroy(m), 0);
}

/* sust.p converts to the format; sured.p takes the sign from it. */
static void test_formatted(void) {
    uint8_t bytes[16];
    int16_t shorts[16];
    uint16_t halves[16];
    int32_t whole[4];
    handle a = make_array(U8, 4, 4, 0, 0, SURFACE), b = make_array(S16, 2, 4, 0, 0, SURFACE),
           c = make_array(HALF, 1, 4, 0, 0, SURFACE), d = make_array(S32, 1, 4, 0, 0, SURFACE);
    static const int32_t start[4] = {-5, 7, -9, 11};
    dptr s;
    fill(d, start, 16, 1, 1);
    memset(bytes, 9, sizeof bytes);
    fill(a, bytes, 16, 1, 1);
    s = surface_of(a);
    RUN("sust.p to u8", "", 0, 0, s, 1,
        "mov.u32 r1, 300; mov.u32 r2, 17; sust.p.1d.v4.b32.trap [d1, {1}], {r1,r2,0,255}; "
        "sust.p.1d.v2.b32.zero [d1, {2}], {r2,r1};"
        "sust.p.1d.b32.zero [d1, {4}], {r1};");
    read_back(a, bytes, 16, 1, 1);
    static const uint8_t want[16] = {9, 9, 9, 9, 255, 17, 0, 255, 17, 255, 0, 0, 9, 9, 9, 9};
    CHECK(!memcmp(bytes, want, 16), "u8: %u %u %u %u", bytes[4], bytes[5], bytes[8], bytes[10]);
    SAME(tcuSurfObjectDestroy(s), 0);
    memset(shorts, 0, sizeof shorts);
    fill(b, shorts, 16, 1, 1);
    s = surface_of(b);
    RUN("sust.p to s16", "", 0, 0, s, 1, "sust.p.1d.v2.b32.clamp [d1, {99}], {-40000,40000};");
    read_back(b, shorts, 16, 1, 1);
    CHECK(shorts[6] == -32768 && shorts[7] == 32767 && !shorts[5], "s16: %d %d", shorts[6], shorts[7]);
    SAME(tcuSurfObjectDestroy(s), 0);
    memset(halves, 0, sizeof halves);
    fill(c, halves, 8, 1, 1);
    s = surface_of(c);
    RUN("sust.p to f16", "", 0, 0, s, 1, /* 1 + 2^-10 * 0.99: toward zero */
        "mov.f32 f1, 0f3F801FAE; sust.p.1d.b32.trap [d1, {0}], {f1};");
    read_back(c, halves, 8, 1, 1);
    CHECK(halves[0] == 0x3c00, "f16: %x", halves[0]);
    SAME(tcuSurfObjectDestroy(s), 0);
    s = surface_of(d);
    RUN("sured.p", "", 0, 0, s, 32,
        "mov.u32 r1, -8; sured.p.min.1d.b32.trap [d1, {0}], r1; sured.p.max.1d.b32.trap [d1, {2}], r1;"
        "sured.p.add.1d.b32.trap [d1, {1}], 2;");
    read_back(d, whole, 16, 1, 1);
    CHECK(whole[0] == -8 && whole[1] == 7 + 64 && whole[2] == -8 && whole[3] == 11, "%d %d %d %d", whole[0],
          whole[1], whole[2], whole[3]);
    SAME(tcuSurfObjectDestroy(s), 0);
    s = surface_of(a);
    RUN("sured.p of bytes", "texture-type", 719, 0, s, 1, "sured.p.add.1d.b32.trap [d1, {0}], 1;");
    SAME(tcuSurfObjectDestroy(s), 0);
    SAME(tcuArrayDestroy(a), 0);
    SAME(tcuArrayDestroy(b), 0);
    SAME(tcuArrayDestroy(c), 0);
    SAME(tcuArrayDestroy(d), 0);
}

/* --- wrong programs, each beside a right one ----------------------------------------------------------- */

#define AT_X "mul.lo.u32 r1, r0, 4; " /* the thread's texel of row 0 */

static void test_faults(handle array, dptr t, dptr s) {
    /* Bounds and alignment of surfaces. */
    RUN("a store outside", "out-of-bounds", 719, t, s, 9, AT_X "sust.b.2d.b32.trap [d1, {r1,1}], {r0};");
    RUN("a store inside", "", 0, t, s, 8, AT_X "sust.b.2d.b32.trap [d1, {r1,1}], {r0};");
    RUN("a store outside that is dropped", "", 0, t, s, 9, AT_X "sust.b.2d.b32.zero [d1, {r1,1}], {r0};");
    RUN("a row too far", "out-of-bounds", 719, t, s, 1, "suld.b.2d.b32.trap {r4}, [d1, {0,4}];");
    RUN("the last row", "", 0, t, s, 1, "suld.b.2d.b32.trap {r4}, [d1, {0,3}];");
    RUN("a negative x", "out-of-bounds", 719, t, s, 1, "sured.b.add.2d.u32.trap [d1, {-4,0}], 1;");
    RUN("the last bytes of a row", "", 0, t, s, 1, "suld.b.2d.v2.b32.trap {r4,r5}, [d1, {24,0}];");
    RUN("a vector that ends outside", "out-of-bounds", 719, t, s, 1,
        "suld.b.2d.v4.b32.trap {r4,r5,r6,r7}, [d1, {32,0}];");
    RUN("x in texels where bytes are meant", "misaligned", 716, t, s, 2,
        "sust.b.2d.b32.zero [d1, {r0,0}], {r0};");
    RUN("x in bytes", "", 0, t, s, 2, AT_X "sust.b.2d.b32.zero [d1, {r1,0}], {r0};");
    fill(array, image, sizeof image[0], H, 1);

    /* Texels that nothing has written. */
    handle partly = make_array(FLOAT, 1, W, H, 0, SURFACE);
    dptr pt = texture_of(partly, 0, 0), ps = surface_of(partly), linear = texture_of(partly, 0, 1);
    copy_3d c = {.from = {.type = 1, .host = image},
                 .to = {.type = 3, .array = partly},
                 .width = sizeof image[0],
                 .height = 2,
                 .depth = 1};
    SAME(tcuMemcpy3D_v2(&c), 0);
    RUN("an unwritten texel", "uninitialised-read", 0, pt, ps, 1,
        "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,2}]; st.global.u32 [d2], r4;");
    RUN("a written texel", "", 0, pt, ps, 1,
        "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}]; st.global.u32 [d2], r4;");
    RUN("a neighbour that is unwritten", "uninitialised-read", 0, linear, ps, 1,
        "mov.f32 f0, 0f40000000; tex.2d.v4.f32.f32 {r4,_,_,_}, [d0, {f0,f0}]; st.global.u32 [d2], r4;");
    RUN("a neighbour of no weight", "", 0, linear, ps, 1,
        "mov.f32 f0, 0f3FC00000; tex.2d.v4.f32.f32 {r4,_,_,_}, [d0, {f0,f0}]; st.global.u32 [d2], r4;");
    RUN("an unwritten surface", "uninitialised-read", 0, pt, ps, 1,
        "suld.b.2d.b32.zero {r4}, [d1, {4,3}]; st.global.u32 [d2], r4;");
    RUN("a written surface", "", 0, pt, ps, 1,
        "suld.b.2d.b32.zero {r4}, [d1, {4,1}]; st.global.u32 [d2], r4;");
    RUN("a reduction of what is unwritten", "uninitialised-read", 0, pt, ps, 1,
        "sured.b.add.2d.u32.zero [d1, {0,3}], 1;");
    float back[H][W];
    read_back(partly, back, sizeof back[0], H, 1);
    findings();
    CHECK(!strncmp(found, "uninitialised-read:", 19), "the copy to the host tells it: %s", found);
    report_clear();

    /* Objects that are gone, or of another kind. */
    SAME(tcuTexObjectDestroy(pt), 0);
    RUN("a destroyed texture object", "use-after-free", 700, pt, ps, 1,
        "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}];");
    RUN("a texture object of an array", "", 0, linear, ps, 1, "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}];");
    SAME(tcuArrayDestroy(partly), 0);
    RUN("a destroyed array", "use-after-free", 700, linear, ps, 1,
        "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}];");
    RUN("a destroyed array, as a surface", "use-after-free", 700, linear, ps, 1,
        "suld.b.2d.b32.zero {r4}, [d1, {4,1}];");
    SAME(tcuTexObjectDestroy(linear), 0);
    SAME(tcuSurfObjectDestroy(ps), 0);
    RUN("a surface object as a texture", "texture-object", 700, s, s, 1,
        "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}];");
    RUN("a texture object as a surface", "texture-object", 700, t, t, 1,
        "suld.b.2d.b32.zero {r4}, [d1, {4,1}];");
    RUN("a number", "texture-object", 700, 1234, s, 1, "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {3,1}];");
    RUN("an address", "texture-object", 700, 1234, s, 1, "tex.2d.v4.f32.s32 {r4,_,_,_}, [d2, {3,1}];");

    /* Geometry and types. */
    RUN("three dimensions of two", "texture-type", 719, t, s, 1,
        "tex.3d.v4.f32.s32 {r4,_,_,_}, [d0, {1,1,0,0}];");
    RUN("one dimension of two", "texture-type", 719, t, s, 1, "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {1}];");
    RUN("layers of one image", "texture-type", 719, t, s, 1, "suld.b.a2d.b32.zero {r4}, [d1, {0,1,1,0}];");
    RUN("integers of floats", "texture-type", 0, t, s, 1, "tex.2d.v4.u32.s32 {r4,_,_,_}, [d0, {1,1}];");
    RUN("floats of floats", "", 0, t, s, 1, "tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {1,1}];");
    RUN("a coordinate that is no number", "texture-coordinate", 0, t, s, 1,
        "mov.f32 f0, 0f7FC00000; tex.2d.v4.f32.f32 {r4,_,_,_}, [d0, {f0,0f3F800000}];");
    RUN("an infinite coordinate, clamped", "", 0, t, s, 1,
        "mov.f32 f0, 0f7F800000; tex.2d.v4.f32.f32 {r4,_,_,_}, [d0, {f0,0f3F000000}]; st.global.u32 [d2], "
        "r4;");
    CHECK(word(0, 0) == image[0][W - 1], "the last of row 0");

    /* Texels written by the launch that reads them. */
    RUN("a texture of what the launch has written", "texture-written", 0, t, s, 1,
        "sust.b.2d.b32.trap [d1, {4,1}], {r0}; membar.gl; tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {1,1}];");
    RUN("a texture of what it has not", "", 0, t, s, 1,
        "sust.b.2d.b32.trap [d1, {4,1}], {r0}; membar.gl; tex.2d.v4.f32.s32 {r4,_,_,_}, [d0, {2,1}];");
    RUN("a surface of what the launch has written", "texture-written", 0, t, s, 1,
        "sust.b.2d.b32.trap [d1, {4,1}], {r0}; suld.b.2d.b32.trap {r4}, [d1, {4,1}];");
    RUN("read, then written", "", 0, t, s, 8,
        AT_X "suld.b.2d.b32.trap {r4}, [d1, {r1,1}]; sust.b.2d.b32.trap [d1, {r1,1}], {r4};");
    RUN("two threads at one texel", "race", 0, t, s, 2, "sust.b.2d.b32.trap [d1, {4,1}], {r0};");
    RUN("two threads at two texels", "", 0, t, s, 2, AT_X "sust.b.2d.b32.trap [d1, {r1,1}], {r0};");
    RUN("two threads add", "", 0, t, s, 32, "sured.b.add.2d.u32.trap [d1, {4,1}], 1;");
    RUN("a texel that another thread writes", "race", 0, t, s, 2,
        "setp.eq.u32 p1, r0, 0; @p1 sust.b.2d.b32.trap [d1, {4,1}], {r0}; @!p1 tex.2d.v4.f32.s32 {r4,_,_,_}, "
        "[d0, {1,1}];");
    fill(array, image, sizeof image[0], H, 1);

    /* An image of one row, as one dimension. */
    handle row = make_array(FLOAT, 1, W, 1, 0, SURFACE);
    fill(row, image, sizeof image[0], 1, 1);
    dptr rt = texture_of(row, 0, 0), rs = surface_of(row);
    RUN("one row", "", 0, rt, rs, 1,
        "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {5}]; tex.2d.v4.f32.s32 {r5,_,_,_}, [d0, {5,0}];"
        "suld.b.1d.b32.trap {r6}, [d1, {20}]; suld.b.2d.b32.trap {r7}, [d1, {20,0}]; " STORE4);
    CHECK(word(0, 0) == image[0][5] && words[0][0] == words[0][1] && words[0][2] == words[0][0]
              && words[0][3] == words[0][0],
          "by one and two coordinates");
    RUN("a second row", "out-of-bounds", 719, rt, rs, 1, "suld.b.2d.b32.trap {r7}, [d1, {20,1}];");
    SAME(tcuTexObjectDestroy(rt), 0);
    SAME(tcuSurfObjectDestroy(rs), 0);
    SAME(tcuArrayDestroy(row), 0);

    /* A texture of memory that is freed, or written while it is read. */
    dptr memory = alloc(1024), mt = 0;
    resource r = {.type = 2, .u.memory = {memory, FLOAT, 1, 64, 0, 0}};
    sampling plain = {0};
    cuMemcpyHtoD_v2_(memory, image, 64);
    SAME(tcuTexObjectCreate(&mt, &r, &plain, NULL), 0);
    RUN("memory", "", 0, mt, s, 16, "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {r0}]; st.global.u32 [d2], r4;");
    CHECK(word(15, 0) == image[1][7], "the last texel");
    RUN("beyond it", "", 0, mt, s, 17, "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {r0}]; st.global.u32 [d2], r4;");
    CHECK(!words[16][0], "is 0");
    static char text[600];
    snprintf(text, sizeof text,
             "mov.u64 d4, 0x%llx; setp.ne.u32 p1, r0, 0; @p1 exit; st.global.u32 [d4], r0; membar.gl; "
             "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {0}];",
             memory);
    expect(__LINE__, "memory that the launch has written", "texture-written", run_body(text, mt, s, 2), 0);
    cuMemFree_v2_(memory);
    RUN("freed memory", "use-after-free", 700, mt, s, 1, "tex.1d.v4.f32.s32 {r4,_,_,_}, [d0, {0}];");
    SAME(tcuTexObjectDestroy(mt), 0);
}

/* A copy into an array while a kernel of another stream may read it, and the same with an event between. */
static void test_streams(handle array, dptr t) {
    static const char *const text = HEAD ".visible .entry k(.param .u64 t, .param .u64 out) {\n" REGS
                                         "ld.param.u64 d0, [t]; ld.param.u64 d1, [out]; tex.2d.v4.f32.s32 "
                                         "{r4,_,_,_}, [d0, {3,1}]; st.global.u32 [d1], r4; ret; }";
    handle m = load(text), f = function(m, "k"), a = NULL, b = NULL, event = NULL;
    dptr out = alloc(4);
    void *params[] = {&t, &out}, *pinned = NULL;
    cuStreamCreate_(&a, 1);
    cuStreamCreate_(&b, 1);
    cuEventCreate_(&event, 0);
    cuMemHostAlloc_(&pinned, sizeof image, 0);
    memcpy(pinned, image, sizeof image);
    for (int ordered = 0; ordered < 2; ordered++) {
        copy_3d c = {.from = {.type = 1, .host = pinned},
                     .to = {.type = 3, .array = array},
                     .width = sizeof image[0],
                     .height = H,
                     .depth = 1};
        SAME(cuLaunchKernel_(f, 1, 1, 1, 1, 1, 1, 0, a, params, NULL), 0);
        if (ordered) {
            SAME(cuEventRecord_(event, a), 0);
            SAME(cuStreamWaitEvent_(b, event, 0), 0);
        }
        SAME(tcuMemcpy3DAsync_v2(&c, b), 0);
        SAME(cuCtxSynchronize_(), 0);
        findings();
        CHECK(ordered ? !*found : !strncmp(found, "stream-race:", 12), "ordered %d: %s", ordered, found);
        report_clear();
    }
    cuMemFreeHost_(pinned);
    cuEventDestroy_v2_(event);
    cuStreamDestroy_v2_(a);
    cuStreamDestroy_v2_(b);
    cuMemFree_v2_(out);
    cuModuleUnload_(m);
}

/* --- calls -------------------------------------------------------------------------------------------- */

static void test_calls(void) {
    array_desc d = {4, 0, 0, U16, 2, 0}, got;
    handle a = NULL, b = NULL, m = NULL, level = NULL;
    uint16_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8];
    dptr p = alloc(64), object = 7;
    resource r = {0}, shown;
    sampling s = {0}, s2;
    view v = {.format = 7, .width = 4, .first_layer = 0}, v2; /* one channel of u16: another size */
    SAME(tcuArray3DCreate_v2(&a, &d), 0);
    SAME(tcuArray3DCreate_v2(&b, &d), 0);
    SAME(tcuArray3DGetDescriptor_v2(&got, a), 0);
    CHECK(got.width == 4 && !got.height && !got.depth && got.format == U16 && got.channels == 2 && !got.flags,
          "as it was made");
    SAME(tcuMemcpyHtoA_v2(a, 0, in, 16), 0);
    SAME(tcuMemcpyAtoA_v2(b, 4, a, 0, 12), 0);
    SAME(tcuMemcpyAtoD_v2(p, a, 8, 8), 0);
    SAME(tcuMemcpyDtoA_v2(b, 0, p, 4), 0);
    SAME(tcuMemcpyAtoH_v2(back, b, 0, 16), 0);
    static const uint16_t want[8] = {5, 6, 1, 2, 3, 4, 5, 6};
    CHECK(!memcmp(back, want, 16), "bytes of one dimension");
    SAME(tcuMemcpyHtoA_v2(a, 2, in, 4), 1);  /* no whole texels */
    SAME(tcuMemcpyHtoA_v2(a, 8, in, 12), 1); /* beyond the end */
    r.u.array = a;
    SAME(tcuTexObjectCreate(&object, &r, &s, &v), 1);
    v.format = 8;
    SAME(tcuTexObjectCreate(&object, &r, &s, &v), 0);
    SAME(tcuTexObjectGetResourceDesc(&shown, object), 0);
    CHECK(shown.type == 0 && shown.u.array == a, "the resource");
    SAME(tcuTexObjectGetTextureDesc(&s2, object), 0);
    SAME(tcuTexObjectGetResourceViewDesc(&v2, object), 0);
    CHECK(v2.format == 8 && v2.width == 4, "the view");
    SAME(tcuTexObjectDestroy(object), 0);
    SAME(tcuTexObjectDestroy(object), 1);
    CHECK(!strncmp(findings(), "stale-handle:", 13), "told: %s", found);
    report_clear();
    SAME(tcuTexObjectCreate(&object, &r, &s, NULL), 0);
    SAME(tcuTexObjectGetResourceViewDesc(&v2, object), 1); /* made without one */
    SAME(tcuTexObjectDestroy(object), 0);
    s.filter = 1;
    s.flags = 1;
    SAME(tcuTexObjectCreate(&object, &r, &s, NULL), 1); /* integers are not filtered */
    SAME(tcuSurfObjectCreate(&object, &r), 0);
    CHECK(!strncmp(findings(), "surface-flag:", 13), "made without the flag: %s", found);
    report_clear();
    SAME(tcuSurfObjectDestroy(object), 0);
    d = (array_desc){16, 16, 0, FLOAT, 1, 0};
    SAME(tcuMipmappedArrayCreate(&m, &d, 3), 0);
    SAME(tcuMipmappedArrayGetLevel(&level, m, 3), 1);
    SAME(tcuMipmappedArrayGetLevel(&level, m, 2), 0);
    SAME(tcuArray3DGetDescriptor_v2(&got, level), 0);
    CHECK(got.width == 4 && got.height == 4 && !got.depth, "level 2: %zu x %zu", got.width, got.height);
    SAME(tcuArrayDestroy(level), 400); /* it goes with the others */
    r = (resource){.type = 1, .u.array = m};
    s = (sampling){0};
    SAME(tcuTexObjectCreate(&object, &r, &s, NULL), 1); /* levels need normalised coordinates */
    SAME(tcuMipmappedArrayDestroy(m), 0);
    SAME(tcuArray3DGetDescriptor_v2(&got, level), 400);
    report_clear();
    static const struct {
        array_desc d;
        int code;
    } sizes[] = {{{0, 0, 0, FLOAT, 1, 0}, 1},
                 {{131073, 0, 0, FLOAT, 1, 0}, 1},
                 {{16, 65537, 0, U8, 1, 0}, 1},
                 {{8, 0, 8, FLOAT, 1, 0}, 1},
                 {{8, 8, 5, FLOAT, 1, CUBE}, 1},
                 {{8, 9, 6, FLOAT, 1, CUBE}, 1},
                 {{8, 8, 13, FLOAT, 1, CUBE | LAYERED}, 1},
                 {{8, 8, 2049, U8, 1, LAYERED}, 1},
                 {{8, 8, 0, FLOAT, 3, 0}, 1},
                 {{8, 8, 0, 5, 1, 0}, 1},
                 {{8, 8, 0, 0x91, 4, 0}, 801},
                 {{8, 8, 0, FLOAT, 1, 0x40}, 801}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        handle x = NULL;
        int code = tcuArray3DCreate_v2(&x, &sizes[k].d);
        CHECK(code == sizes[k].code, "size %zu: %d", k, code);
    }
    SAME(tcuArrayDestroy(a), 0);
    SAME(tcuArrayDestroy(a), 400);
    SAME(tcuArrayDestroy(b), 0);
    cuMemFree_v2_(p);
    report_clear();
    /* What a context leaves. */
    handle context = NULL, old = NULL;
    cuCtxGetCurrent_(&old);
    SAME(cuCtxCreate_v2_(&context, 0, 0), 0);
    d = (array_desc){4, 4, 0, U8, 1, SURFACE};
    SAME(tcuArray3DCreate_v2(&a, &d), 0);
    r = (resource){.u.array = a};
    SAME(tcuSurfObjectCreate(&object, &r), 0);
    SAME(cuCtxDestroy_v2_(context), 0);
    findings();
    CHECK(strstr(found, "leak: an array") && strstr(found, "leak: a surface object"), "%s", found);
    report_clear();
    cuCtxSetCurrent_(old);
}

int main(int argc, char **argv) {
    sim_open(argc, argv);
#define X(name, args) *(void **)&t##name = symbol(sim_library, #name);
    TEXTURE_ENTRIES(X)
#undef X
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) image[y][x] = (float)(y * 10 + x) + 0.25f;
    test_forms();
    handle array = make_array(FLOAT, 1, W, H, 0, SURFACE);
    fill(array, image, sizeof image[0], H, 1);
    dptr t = texture_of(array, 0, 0), s = surface_of(array);
    test_fetches(array, t);
    test_queries();
    test_formatted();
    test_faults(array, t, s);
    test_streams(array, t);
    test_calls();
    SAME(tcuTexObjectDestroy(t), 0);
    SAME(tcuSurfObjectDestroy(s), 0);
    SAME(tcuArrayDestroy(array), 0);
    return sim_close();
}
