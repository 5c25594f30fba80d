/* blur - a Gaussian blur in two passes, in two ways: by shared memory with a halo, and by a texture whose
   filter reads two pixels at once. The weights are constants of the kernels, which are built for a radius.
   cc -O2 examples/blur.c -o blur -ldl -lm

   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./blur */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "blur"
#include "example.h"
#include "image.h"
#include "photograph.h"

static void add_weighted(ptx_kernel *k, ptx_val sum[3], const ptx_val rgb[3], double weight, int first) {
    int c;
    for (c = 0; c < 3; c++)
        sum[c] = first ? ptx_mul(k, rgb[c], ptx_f32(weight)) : ptx_fma(k, rgb[c], ptx_f32(weight), sum[c]);
}

/* Along x (columns 0) or y (1). A block of 32 x 8 threads loads its pixels and `radius` more on both sides;
   beyond the picture the pixel at its edge counts. */
static void emit_shared(ptx_module *m, int columns, int radius, const double *weight) {
    ptx_kernel *k = ptx_entry(m, columns ? "shared_columns" : "shared_rows");
    ptx_val in = ptx_param_ptr(k, "in", PTX_GLOBAL), out = ptx_param_ptr(k, "out", PTX_GLOBAL);
    ptx_val width = ptx_param(k, "width", PTX_S32), height = ptx_param(k, "height", PTX_S32);
    int halo_x = columns ? 0 : radius, halo_y = columns ? radius : 0, w = 32 + 2 * halo_x, i, tap, c;
    int cells = w * (8 + 2 * halo_y);
    ptx_val tile = ptx_shared(k, "tile", PTX_U32, (uint32_t)cells, 4), thread, left, top, here, x, y, sum[3];
    thread = ptx_as(ptx_mad(k, ptx_tid_y(k), ptx_u32(32), ptx_tid_x(k)), PTX_S32);
    left = ptx_as(ptx_mad(k, ptx_ctaid_x(k), ptx_u32(32), ptx_u32(0)), PTX_S32);
    top = ptx_as(ptx_mad(k, ptx_ctaid_y(k), ptx_u32(8), ptx_u32(0)), PTX_S32);
    for (i = 0; i < cells; i += 256) {
        ptx_val cell = ptx_add(k, thread, ptx_s32(i)), value;
        ptx_mem slot;
        x = ptx_add(k, left, ptx_sub(k, ptx_rem(k, cell, ptx_s32(w)), ptx_s32(halo_x)));
        y = ptx_add(k, top, ptx_sub(k, ptx_div(k, cell, ptx_s32(w)), ptx_s32(halo_y)));
        x = ptx_max(k, ptx_min(k, x, ptx_sub(k, width, ptx_s32(1))), ptx_s32(0));
        y = ptx_max(k, ptx_min(k, y, ptx_sub(k, height, ptx_s32(1))), ptx_s32(0));
        value = ptx_ld_elem(k, PTX_U32, in, ptx_mad(k, y, width, x));
        slot = ptx_elem(k, PTX_U32, tile, cell);
        ptx_guard(k, ptx_setp(k, PTX_LT, cell, ptx_s32(cells)));
        ptx_st(k, PTX_U32, slot, value);
    }
    ptx_bar_sync(k, ptx_imm(0));
    here = ptx_mad(k, ptx_tid_y(k), ptx_u32((unsigned)w), ptx_tid_x(k));
    here = ptx_ptr_add(k, tile, here, 4);
    for (tap = -radius; tap <= radius; tap++) {
        int at = columns ? (tap + radius) * w : tap + radius;
        ptx_val word = ptx_ld(k, PTX_U32, ptx_at(here, 4 * at)), rgb[3];
        for (c = 0; c < 3; c++)
            rgb[c] = ptx_cvt(k, PTX_F32, ptx_bfe(k, word, ptx_u32(8 * (unsigned)c), ptx_u32(8)));
        add_weighted(k, sum, rgb, weight[abs(tap)] / 255, tap == -radius);
    }
    x = ptx_as(ptx_global_x(k), PTX_S32), y = ptx_as(ptx_global_y(k), PTX_S32);
    leave_where(k, ptx_setp(k, PTX_GE, x, width));
    leave_where(k, ptx_setp(k, PTX_GE, y, height));
    ptx_st_elem(k, PTX_U32, out, ptx_mad(k, y, width, x), pack_pixel(k, sum));
    ptx_ret(k);
}

/* The same from a texture: between two pixels its filter gives the mean of both by the distances. */
static void emit_texture(ptx_module *m, int columns, int radius, const double *weight) {
    ptx_kernel *k = ptx_entry(m, columns ? "texture_columns" : "texture_rows");
    ptx_val in = ptx_param(k, "in", PTX_U64), out = ptx_param_ptr(k, "out", PTX_GLOBAL);
    ptx_val width = ptx_param(k, "width", PTX_S32), height = ptx_param(k, "height", PTX_S32);
    ptx_val x = ptx_as(ptx_global_x(k), PTX_S32), y = ptx_as(ptx_global_y(k), PTX_S32), fx, fy, texel[4],
            sum[3];
    int tap, side;
    leave_where(k, ptx_setp(k, PTX_GE, x, width));
    leave_where(k, ptx_setp(k, PTX_GE, y, height));
    fx = ptx_add(k, ptx_cvt(k, PTX_F32, x), ptx_f32(0.5)),
    fy = ptx_add(k, ptx_cvt(k, PTX_F32, y), ptx_f32(0.5));
    ptx_tex_2d(k, PTX_F32, in, fx, fy, texel);
    add_weighted(k, sum, texel, weight[0], 1);
    for (tap = 1; tap <= radius; tap += 2) {
        double second = tap < radius ? weight[tap + 1] : 0, both = weight[tap] + second;
        for (side = -1; side <= 1; side += 2) {
            ptx_val along = ptx_f32(side * (tap + second / both));
            ptx_tex_2d(k, PTX_F32, in, columns ? fx : ptx_add(k, fx, along),
                       columns ? ptx_add(k, fy, along) : fy, texel);
            add_weighted(k, sum, texel, both, 0);
        }
    }
    ptx_st_elem(k, PTX_U32, out, ptx_mad(k, y, width, x), pack_pixel(k, sum));
    ptx_ret(k);
}

int main(int argc, char **argv) {
    uint32_t width = 640, height = 400, radius = 12, i;
    const char *path = "blur.png";
    const option options[] = {{"width", OPTION_U32, &width, 2, 8192, NULL, "pixels of a row"},
                              {"height", OPTION_U32, &height, 2, 8192, NULL, "rows"},
                              {"radius", OPTION_U32, &radius, 1, 32, NULL, "pixels that count on each side"},
                              {"out", OPTION_TEXT, &path, 0, 0, NULL, "the file: the right half is blurred"}};
    const command_line line = {EXAMPLE, "a Gaussian blur in two ways", options, 4, NULL, NULL, 0};
    ptxcu *cu = NULL;
    ptxcu_program *program;
    ptx_module *m;
    ptxcu_array_desc texels = PTX_ZERO;
    ptxcu_texture_desc sampled = PTX_ZERO;
    ptxcu_texture texture;
    ptxcu_buffer photo, between, blurred[2];
    ptx_launch launch;
    double weight[33], sum = -1;
    size_t bytes, largest = 0;
    uint32_t *host, *other;
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    for (i = 0; i <= radius; i++) weight[i] = exp(-2.0 * i * i / (radius * radius)), sum += 2 * weight[i];
    for (i = 0; i <= radius; i++) weight[i] /= sum;
    for (i = 0; i < 2; i++) emit_shared(m, (int)i, (int)radius, weight);
    for (i = 0; i < 2; i++) emit_texture(m, (int)i, (int)radius, weight);
    bytes = (size_t)width * height * 4;
    host = (uint32_t *)need(bytes), other = (uint32_t *)need(bytes);
    for (i = 0; i < width * height; i++)
        host[i] = photograph((i % width + 0.5) / height, (i / width + 0.5) / height);
    program = open_program(&cu, m);
    photo = to_device(cu, host, bytes), between = device_bytes(cu, bytes);
    blurred[0] = device_bytes(cu, bytes), blurred[1] = device_bytes(cu, bytes);
    texels.type = PTX_U8, texels.channels = 4, texels.width = width, texels.height = height;
    must(cu, ptxcu_array_create(cu, &texels, &sampled.array));
    sampled.filter = PTXCU_FILTER_LINEAR, sampled.read_normalized = 1; /* beyond the edge: clamped */
    must(cu, ptxcu_texture_create(cu, &sampled, &texture));
    launch = ptx_launch_2d(width, height, 32, 8);
    for (i = 0; i < 4; i++) { /* rows, columns; rows, columns */
        ptxcu_buffer from = i % 2 ? between : photo, to = i % 2 ? blurred[i / 2] : between;
        ptxcu_arg args[4];
        args[0] = i < 2 ? ptxcu_arg_buffer(from) : ptxcu_arg_u64(texture), args[1] = ptxcu_arg_buffer(to);
        args[2] = ptxcu_arg_s32((int32_t)width), args[3] = ptxcu_arg_s32((int32_t)height);
        if (i >= 2) must(cu, ptxcu_array_load(cu, &sampled.array, NULL, from, 0, 0, NULL));
        launch.entry = i;
        must(cu, ptxcu_launch(cu, program, &launch, args, 4, NULL));
    }
    must(cu, ptxcu_download(cu, host, blurred[0], 0, bytes, NULL));
    must(cu, ptxcu_download(cu, other, blurred[1], 0, bytes, NULL));
    must(cu, ptxcu_sync(cu));
    for (i = 0; i < bytes; i++) {
        size_t d = (size_t)abs(((uint8_t *)host)[i] - ((uint8_t *)other)[i]);
        if (d > largest) largest = d;
    }
    printf("%s: largest difference of both ways %u of 255\n", EXAMPLE, (unsigned)largest);
    for (i = 0; i < height; i++) /* the left half as it was */
        must(cu, ptxcu_copy(cu, blurred[0], 4 * i * (size_t)width, photo, 4 * i * (size_t)width,
                            width / 2 * 4, NULL));
    free(host), free(other);
    ptxcu_texture_destroy(cu, texture);
    ptxcu_array_free(cu, &sampled.array);
    return finish_picture(cu, m, blurred[0], width, height, path);
}
