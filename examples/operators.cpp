/* operators - kernels with the operators of C++: two substances react and diffuse (Gray and Scott; J. E.
   Pearson, "Complex Patterns in a Simple System", 1993). One template is the kernel and the host's reference.
   c++ -std=c++11 -O2 examples/operators.cpp -o operators -ldl -lm

   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./operators */
#include <cmath>
#include <vector>
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#include "operators.hpp"
#define EXAMPLE "operators"
#include "example.h"
#include "image.h"

static const int WIDTH = 160, HEIGHT = 100, CELLS = WIDTH * HEIGHT, SCALE = 3;

/* The change of u and v in a step: T is float or px::value. x and y, 0 to 1 in the picture, set the rates. */
template <typename T> void react(T u, T v, T u_around, T v_around, T x, T y, T &du, T &dv) {
    T feed = 0.024f + 0.034f * y, kill = 0.0578f + 0.0052f * x, reaction = u * v * v;
    du = (u_around - 4.0f * u) * 0.11f - reaction + feed * (1.0f - u);
    dv = (v_around - 4.0f * v) * 0.055f + reaction - (feed + kill) * v;
}

static void emit_step(px::kernel &k) {
    px::array<float> u = k.pointer<float>("u"), v = k.pointer<float>("v");
    px::array<float> new_u = k.pointer<float>("new_u"), new_v = k.pointer<float>("new_v");
    px::value x = k.global_x(), y = k.global_y(), row = y * WIDTH, i = row + x;
    px::when(y < HEIGHT,
             [&] { /* the last blocks have rows to spare */
                   px::value left = row + px::max(x, 1) - 1, right = row + px::min(x + 1, WIDTH - 1);
                   px::value up = (px::max(y, 1) - 1) * WIDTH + x,
                             down = px::min(y + 1, HEIGHT - 1) * WIDTH + x;
                   px::value u_around = u[left] + u[right] + u[up] + u[down], here_u = u[i], du = here_u;
                   px::value v_around = v[left] + v[right] + v[up] + v[down], here_v = v[i], dv = here_v;
                   px::value across = px::cast<float>(x) * (1.0f / WIDTH),
                             along = px::cast<float>(y) * (1.0f / HEIGHT);
                   react(here_u, here_v, u_around, v_around, across, along, du, dv);
                   new_u[i] = here_u + du;
                   new_v[i] = here_v + dv;
             });
    k.end();
}

/* v as a landscape that is lit from the upper left, SCALE x SCALE pixels a cell, bilinear. */
static void emit_colour(px::kernel &k) {
    px::array<float> v = k.pointer<float>("v");
    px::array<unsigned> out = k.pointer<unsigned>("out");
    px::value x = k.global_x(), y = k.global_y(), column = x / SCALE, row = y / SCALE, height = x, slope = x;
    px::value right = px::cast<float>(x % SCALE) * (1.0f / SCALE),
              below = px::cast<float>(y % SCALE) * (1.0f / SCALE);
    for (int corner = 0; corner < 4; corner++) {
        px::value i = px::min(column + corner % 2, WIDTH - 1), j = px::min(row + corner / 2, HEIGHT - 1);
        px::value before = (px::max(j, 1) - 1) * WIDTH + px::max(i, 1) - 1;
        px::value behind = px::min(j + 1, HEIGHT - 1) * WIDTH + px::min(i + 1, WIDTH - 1);
        px::value weight = (corner % 2 ? right : 1.0f - right) * (corner / 2 ? below : 1.0f - below);
        px::value h = weight * v[j * WIDTH + i], d = weight * (v[before] - v[behind]);
        height = corner ? height + h : h, slope = corner ? slope + d : d;
    }
    px::value light = 1.0f + 1.2f * slope;
    ptx_val rgb[3] = {((0.96f - 1.1f * height) * light).of, ((0.90f - 2.0f * height) * light).of,
                      ((0.78f - 1.3f * height) * light).of};
    px::value pixel = k.make(pack_pixel(k.k, rgb));
    px::when(y < HEIGHT * SCALE, [&] { out[y * (SCALE * WIDTH) + x] = pixel; });
    k.end();
}

/* The same step on the host, by the same template. */
static void step_on_host(std::vector<float> &u, std::vector<float> &v) {
    std::vector<float> new_u(u), new_v(v);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int left = x ? x - 1 : 0, right = x < WIDTH - 1 ? x + 1 : x, row = y * WIDTH, i = row + x;
            int up = (y ? y - 1 : 0) * WIDTH + x, down = (y < HEIGHT - 1 ? y + 1 : y) * WIDTH + x;
            float u_around = u[row + left] + u[row + right] + u[up] + u[down], du, dv;
            float v_around = v[row + left] + v[row + right] + v[up] + v[down];
            react(u[i], v[i], u_around, v_around, (float)x * (1.0f / WIDTH), (float)y * (1.0f / HEIGHT), du,
                  dv);
            new_u[i] = u[i] + du, new_v[i] = v[i] + dv;
        }
    u.swap(new_u), v.swap(new_v);
}

int main(int argc, char **argv) {
    uint32_t steps = 2000, compared = 100, step;
    const char *path = "operators.png";
    const option options[] = {
        {"steps", OPTION_U32, &steps, 1, 1000000, NULL, "steps of time"},
        {"compared", OPTION_U32, &compared, 0, 1000000, NULL, "of them repeated by the host"},
        {"out", OPTION_TEXT, &path, 0, 0, NULL, "the file"}};
    const command_line line = {EXAMPLE, "two substances react and diffuse", options, 3, NULL, NULL, 0};
    ptxcu *cu = NULL;
    ptx_module *m;
    std::vector<float> u(CELLS, 1.0f), v(CELLS, 0.0f), result(CELLS);
    ptx_launch each = ptx_launch_2d(WIDTH, HEIGHT, 32, 8),
               colour = ptx_launch_2d(SCALE * WIDTH, SCALE * HEIGHT, 32, 8);
    ptxcu_arg args[4];
    uint64_t seed = 1;
    float largest = 0;
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    for (int n = 0; n < 150 * 36; n++) { /* 150 squares of the second substance, of 6 x 6 cells */
        static int x, y;
        if (n % 36 == 0) x = (int)((uniform(&seed) + 1) * 0.499 * (WIDTH - 6));
        if (n % 36 == 0) y = (int)((uniform(&seed) + 1) * 0.499 * (HEIGHT - 6));
        u[(y + n / 6 % 6) * WIDTH + x + n % 6] = 0.5f, v[(y + n / 6 % 6) * WIDTH + x + n % 6] = 0.25f;
    }
    px::kernel step_kernel(m, "step"), colour_kernel(m, "colour");
    emit_step(step_kernel);
    emit_colour(colour_kernel);
    ptxcu_program *program = open_program(&cu, m);
    ptxcu_buffer fields[4] = {to_device(cu, &u[0], CELLS * 4), to_device(cu, &v[0], CELLS * 4),
                              device_bytes(cu, CELLS * 4), device_bytes(cu, CELLS * 4)};
    ptxcu_buffer out = device_bytes(cu, CELLS * 4 * SCALE * SCALE);
    for (step = 0; step < steps; step++) { /* from fields 0 and 1 to 2 and 3, then back */
        for (uint32_t i = 0; i < 4; i++) args[i] = ptxcu_arg_buffer(fields[(i + 2 * step) % 4]);
        must(cu, ptxcu_launch(cu, program, &each, args, 4, NULL));
        if (step >= compared) continue;
        step_on_host(u, v);
        must(cu, ptxcu_download(cu, &result[0], fields[(3 + 2 * step) % 4], 0, CELLS * 4, NULL));
        must(cu, ptxcu_sync(cu));
        for (int i = 0; i < CELLS; i++) largest = std::fmax(largest, std::fabs(result[i] - v[i]));
    }
    printf("%s: largest difference from the host's steps %g\n", EXAMPLE, (double)largest);
    args[0] = ptxcu_arg_buffer(fields[(1 + 2 * steps) % 4]), args[1] = ptxcu_arg_buffer(out);
    colour.entry = 1;
    must(cu, ptxcu_launch(cu, program, &colour, args, 2, NULL));
    return finish_picture(cu, m, out, SCALE * WIDTH, SCALE * HEIGHT, path);
}
