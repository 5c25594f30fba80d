/* particles - two galaxies of 50,000 stars pass each other, an animated picture: stars in the field of two
   cores (A. and J. Toomre, "Galactic Bridges and Tails", 1972), their light added to a grid by atomics.
   cc -O2 examples/particles.c -o particles -ldl -lm

   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./particles */
#include <math.h>
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "particles"
#include "example.h"
#include "image.h"

enum { MOST = 1000000, WIDTH = 256, HEIGHT = 160, FRAMES = 24, STEPS = 20 }; /* STEPS: between frames */
static const float time_step = 0.02f, softening = 0.04f, unit = 0.0475f;     /* ... unit: of a pixel */

/* Moves a star, six floats of place and velocity, by STEPS steps. cores: where both are at each step. */
static void emit_move(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "move");
    ptx_val stars = ptx_param_ptr(k, "stars", PTX_GLOBAL), cores = ptx_param_ptr(k, "cores", PTX_GLOBAL);
    ptx_val count = ptx_param(k, "count", PTX_U32), i = ptx_global_x(k), star, step;
    ptx_var s[6];
    int c, core;
    leave_where(k, ptx_setp(k, PTX_GE, i, count));
    star = ptx_ptr_add(k, stars, i, 24);
    for (c = 0; c < 6; c++) s[c] = ptx_var_new(k, ptx_ld(k, PTX_F32, ptx_at(star, 4 * c)));
    step = ptx_for(k, ptx_u32(0), ptx_u32(STEPS), ptx_u32(1));
    for (core = 0; core < 2; core++) {
        ptx_val from = ptx_ptr_add(k, cores, step, 24), square = ptx_f32(softening), d[3], pull;
        for (c = 0; c < 3; c++) {
            d[c] = ptx_sub(k, ptx_ld(k, PTX_F32, ptx_at(from, 12 * core + 4 * c)), ptx_get(k, s[c]));
            square = ptx_fma(k, d[c], d[c], square);
        }
        pull = ptx_mul(k, ptx_f32(time_step), ptx_rcp(k, ptx_mul(k, square, ptx_sqrt(k, square))));
        for (c = 0; c < 3; c++) ptx_set(k, s[3 + c], ptx_fma(k, d[c], pull, ptx_get(k, s[3 + c])));
    }
    for (c = 0; c < 3; c++) {
        ptx_val speed = ptx_get(k, s[3 + c]);
        ptx_set(k, s[c], ptx_fma(k, speed, ptx_f32(time_step), ptx_get(k, s[c])));
    }
    ptx_end(k);
    for (c = 0; c < 6; c++) ptx_st(k, PTX_F32, ptx_at(star, 4 * c), ptx_get(k, s[c]));
    ptx_ret(k);
}

/* Adds the light of a star, 256, to the four pixels around it in the grid of its galaxy. */
static void emit_light(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "light");
    ptx_val stars = ptx_param_ptr(k, "stars", PTX_GLOBAL), grid = ptx_param_ptr(k, "grid", PTX_GLOBAL);
    ptx_val count = ptx_param(k, "count", PTX_U32), i = ptx_global_x(k), cell[2], part[2], at;
    int c, corner;
    leave_where(k, ptx_setp(k, PTX_GE, i, count));
    for (c = 0; c < 2; c++) { /* the pixel in 256ths; a place left of it or above it is a large u32 */
        ptx_val x = ptx_ld(k, PTX_F32, ptx_at(ptx_ptr_add(k, stars, i, 24), 4 * c));
        ptx_val fine = ptx_fma(k, x, ptx_f32(256 / unit), ptx_f32(128.0 * (c ? HEIGHT : WIDTH)));
        ptx_val whole = ptx_as(ptx_cvt(k, PTX_S32, fine), PTX_U32);
        cell[c] = ptx_shr(k, whole, ptx_u32(8));
        part[c] = ptx_and(k, whole, ptx_u32(255));
        leave_where(k, ptx_setp(k, PTX_GE, cell[c], ptx_u32((c ? HEIGHT : WIDTH) - 1)));
    }
    at = ptx_mad(k, cell[1], ptx_u32(WIDTH), cell[0]);
    at = ptx_mad(k, ptx_and(k, i, ptx_u32(1)), ptx_u32(WIDTH * HEIGHT), at);
    at = ptx_ptr_add(k, grid, at, 4);
    for (corner = 0; corner < 4; corner++) {
        ptx_val x = corner & 1 ? part[0] : ptx_sub(k, ptx_u32(256), part[0]);
        ptx_val y = corner & 2 ? part[1] : ptx_sub(k, ptx_u32(256), part[1]);
        ptx_val light = ptx_shr(k, ptx_mul(k, x, y), ptx_u32(8));
        ptx_red(k, PTX_ATOM_ADD, ptx_at(at, 4 * (corner & 1) + 4 * WIDTH * (corner >> 1)), light);
    }
    ptx_ret(k);
}

/* Colours a pixel: each galaxy's light by light / (light + a constant for each colour). */
static void emit_colour(ptx_module *m) {
    static const double half[2][3] = {{900, 2400, 7000}, {7000, 2200, 900}};
    ptx_kernel *k = ptx_entry(m, "colour");
    ptx_val grid = ptx_param_ptr(k, "grid", PTX_GLOBAL), out = ptx_param_ptr(k, "out", PTX_GLOBAL);
    ptx_val x = ptx_global_x(k), y = ptx_global_y(k), i = ptx_mad(k, y, ptx_u32(WIDTH), x), rgb[3];
    int c, galaxy;
    for (galaxy = 0; galaxy < 2; galaxy++) {
        ptx_val at = ptx_add(k, i, ptx_u32(galaxy ? WIDTH * HEIGHT : 0));
        ptx_val light = ptx_cvt(k, PTX_F32, ptx_ld_elem(k, PTX_U32, grid, at));
        for (c = 0; c < 3; c++) {
            ptx_val part = ptx_div(k, light, ptx_add(k, light, ptx_f32(half[galaxy][c])));
            rgb[c] = galaxy ? ptx_add(k, rgb[c], part) : part;
        }
    }
    ptx_st_elem(k, PTX_U32, out, i, pack_pixel(k, rgb));
    ptx_ret(k);
}

/* Two discs whose stars run in circles, and the paths of their cores, nearly a parabola. */
static void place_stars(float *stars, uint32_t count, float *path) {
    double p[3] = {2.6, -0.9, 0}, v[3] = {-0.42, 0, 0}; /* of the second core; the first is opposite */
    uint64_t seed = 1;
    uint32_t i, c;
    for (i = 0; i < count; i++) {
        double side = i & 1 ? 1 : -1, lean = i & 1 ? -0.9 : 0.35, angle = 3.14159265 * uniform(&seed);
        double r = 0.01 - 0.44 * log(0.5 + 0.49 * uniform(&seed)), speed = r * pow(r * r + softening, -0.75);
        double x = r * cos(angle), y = r * sin(angle), vx = -speed * sin(angle), vy = speed * cos(angle);
        double disc[6] = {x, y * cos(lean), y * sin(lean), vx, vy * cos(lean), vy * sin(lean)};
        for (c = 0; c < 6; c++) stars[6 * i + c] = (float)(disc[c] + side * (c < 3 ? p[c] : v[c - 3]));
    }
    for (i = 0; i < FRAMES * STEPS; i++) {
        double square = 4 * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) + softening;
        for (c = 0; c < 3; c++) {
            path[6 * i + c] = (float)-p[c], path[6 * i + 3 + c] = (float)p[c];
            v[c] -= 2 * p[c] * time_step * pow(square, -1.5);
        }
        for (c = 0; c < 3; c++) p[c] += v[c] * time_step;
    }
}

int main(int argc, char **argv) {
    uint32_t count = 100000, frame;
    const char *file = "particles.png";
    const option options[] = {{"count", OPTION_U32, &count, 1, MOST, NULL, "stars"},
                              {"out", OPTION_TEXT, &file, 0, 0, NULL, "the file"}};
    const command_line line = {EXAMPLE, "two galaxies pass each other", options, 2, NULL, NULL, 0};
    static float host[MOST * 6], path[FRAMES * STEPS * 6];
    ptxcu *cu = NULL;
    ptxcu_program *program;
    ptx_module *m;
    ptxcu_buffer stars, cores, grid, out;
    ptx_launch move, light, colour = ptx_launch_2d(WIDTH, HEIGHT, 32, 8);
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    place_stars(host, count, path);
    emit_move(m), emit_light(m), emit_colour(m);
    program = open_program(&cu, m);
    stars = to_device(cu, host, count * (size_t)24), cores = to_device(cu, path, sizeof path);
    grid = device_bytes(cu, 2 * WIDTH * HEIGHT * 4), out = device_bytes(cu, FRAMES * WIDTH * HEIGHT * 4);
    move = light = ptx_launch_1d(count, 128);
    light.entry = 1, colour.entry = 2;
    for (frame = 0; frame < FRAMES; frame++) {
        ptxcu_arg args[3];
        args[0] = ptxcu_arg_buffer(stars), args[2] = ptxcu_arg_u32(count);
        args[1] = ptxcu_arg_address(cores.address + frame * STEPS * 24);
        must(cu, ptxcu_launch(cu, program, &move, args, 3, NULL));
        must(cu, ptxcu_fill32(cu, grid, 0, 0, 2 * WIDTH * HEIGHT, NULL));
        args[1] = ptxcu_arg_buffer(grid);
        must(cu, ptxcu_launch(cu, program, &light, args, 3, NULL));
        args[0] = args[1], args[1] = ptxcu_arg_address(out.address + frame * WIDTH * HEIGHT * 4);
        must(cu, ptxcu_launch(cu, program, &colour, args, 2, NULL));
    }
    return finish_pictures(cu, m, out, WIDTH, HEIGHT, FRAMES, 90, file);
}
