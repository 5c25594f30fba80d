/* mandelbrot - the Mandelbrot set, smooth and antialiased, from a kernel of 40 lines to a PNG file.
   cc -O2 examples/mandelbrot.c -o mandelbrot -ldl -lm

   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./mandelbrot */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "mandelbrot"
#include "example.h"
#include "image.h"

/* A thread colours one pixel: the mean of samples x samples points of its square, each by the number of
   rounds of z = z^2 + c that keep |z| below 16. */
static void emit_mandelbrot(ptx_module *m, uint32_t samples) {
    static const double phase[3] = {3.9, 3.3, 2.4}; /* of red, green and blue */
    ptx_kernel *k = ptx_entry(m, "mandelbrot");
    ptx_val out = ptx_param_ptr(k, "out", PTX_GLOBAL), width = ptx_param(k, "width", PTX_U32);
    ptx_val height = ptx_param(k, "height", PTX_U32), left = ptx_param(k, "left", PTX_F32);
    ptx_val top = ptx_param(k, "top", PTX_F32), step = ptx_param(k, "step", PTX_F32);
    ptx_val rounds = ptx_param(k, "rounds", PTX_U32), x = ptx_global_x(k), y = ptx_global_y(k), pixel[3];
    ptx_var rgb[3];
    leave_where(k, ptx_setp(k, PTX_GE, x, width));
    leave_where(k, ptx_setp(k, PTX_GE, y, height));
    for (int c = 0; c < 3; c++) rgb[c] = ptx_var_new(k, ptx_f32(0));
    ptx_val i = ptx_for(k, ptx_u32(0), ptx_u32(samples * samples), ptx_u32(1));
    ptx_val grid_x = ptx_mad(k, x, ptx_u32(samples), ptx_rem(k, i, ptx_u32(samples)));
    ptx_val grid_y = ptx_mad(k, y, ptx_u32(samples), ptx_div(k, i, ptx_u32(samples)));
    ptx_val cx = ptx_fma(k, ptx_cvt(k, PTX_F32, grid_x), step, left);
    ptx_val cy = ptx_fma(k, ptx_cvt(k, PTX_F32, grid_y), step, top);
    ptx_var zx = ptx_var_new(k, ptx_f32(0)), zy = ptx_var_new(k, ptx_f32(0));
    ptx_var size = ptx_var_new(k, ptx_f32(0)), n = ptx_var_new(k, ptx_u32(0));
    ptx_loop(k);
    ptx_val zx0 = ptx_get(k, zx), zy0 = ptx_get(k, zy), xx = ptx_mul(k, zx0, zx0);
    ptx_set(k, size, ptx_fma(k, zy0, zy0, xx));
    ptx_while(k, ptx_setp(k, PTX_LT, ptx_get(k, size), ptx_f32(256)));
    ptx_while(k, ptx_setp(k, PTX_LT, ptx_get(k, n), rounds));
    ptx_set(k, n, ptx_add(k, ptx_get(k, n), ptx_u32(1)));
    ptx_set(k, zy, ptx_fma(k, ptx_add(k, zx0, zx0), zy0, cy));
    ptx_set(k, zx, ptx_add(k, ptx_fma(k, ptx_neg(k, zy0), zy0, xx), cx));
    ptx_end(k); /* of the rounds */
    ptx_if(k, ptx_setp(k, PTX_LT, ptx_get(k, n), rounds));   /* escaped; the set itself stays black */
    ptx_val late = ptx_lg2(k, ptx_lg2(k, ptx_get(k, size))); /* 3 at |z| = 16, 4 a round later */
    ptx_val count = ptx_cvt(k, PTX_F32, ptx_add(k, ptx_get(k, n), ptx_u32(4)));
    ptx_val turn = ptx_lg2(k, ptx_sub(k, count, late));
    for (int c = 0; c < 3; c++) {
        ptx_val wave = ptx_cos_approx(k, ptx_fma(k, turn, ptx_f32(2.2), ptx_f32(phase[c])));
        wave = ptx_fma(k, wave, ptx_f32(0.5), ptx_f32(0.5));
        ptx_set(k, rgb[c], ptx_add(k, ptx_get(k, rgb[c]), wave));
    }
    ptx_end(k);
    ptx_end(k); /* of the points */
    for (int c = 0; c < 3; c++) pixel[c] = ptx_mul(k, ptx_get(k, rgb[c]), ptx_f32(1.0 / (samples * samples)));
    ptx_st_elem(k, PTX_U32, out, ptx_mad(k, y, width, x), pack_pixel(k, pixel));
    ptx_ret(k);
}

int main(int argc, char **argv) {
    uint32_t width = 640, height = 400, samples = 2, rounds = 500;
    float x = -0.7453f, y = 0.1127f, size = 0.0065f;
    const char *path = "mandelbrot.png";
    const option options[] = {
        {"width", OPTION_U32, &width, 1, 16384, NULL, "pixels of a row"},
        {"height", OPTION_U32, &height, 1, 16384, NULL, "rows"},
        {"samples", OPTION_U32, &samples, 1, 16, NULL, "points of a pixel along each side"},
        {"rounds", OPTION_U32, &rounds, 1, 1e6, NULL, "rounds after which a point belongs to the set"},
        {"x", OPTION_F32, &x, -4, 4, NULL, "the centre"},
        {"y", OPTION_F32, &y, -4, 4, NULL, "the centre"},
        {"size", OPTION_F32, &size, 1e-5, 8, NULL, "height of the picture in the plane"},
        {"out", OPTION_TEXT, &path, 0, 0, NULL, "the file"},
    };
    const command_line line = {
        EXAMPLE, "the Mandelbrot set", options, sizeof options / sizeof *options, NULL, NULL, 0};
    ptxcu *cu = NULL;
    ptx_module *m;
    ptxcu_program *program;
    ptxcu_buffer out;
    ptx_launch launch;
    ptxcu_arg args[7];
    float step;
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    emit_mandelbrot(m, samples);
    program = open_program(&cu, m);
    out = device_bytes(cu, (size_t)width * height * 4);
    launch = ptx_launch_2d(width, height, 32, 8);
    step = size / (float)(height * samples);
    args[0] = ptxcu_arg_buffer(out);
    args[1] = ptxcu_arg_u32(width), args[2] = ptxcu_arg_u32(height);
    args[3] = ptxcu_arg_f32(x - step * (float)(width * samples) * 0.5f),
    args[4] = ptxcu_arg_f32(y - size * 0.5f);
    args[5] = ptxcu_arg_f32(step), args[6] = ptxcu_arg_u32(rounds);
    must(cu, ptxcu_launch(cu, program, &launch, args, 7, NULL));
    return finish_picture(cu, m, out, width, height, path);
}
