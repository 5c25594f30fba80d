/* raymarch - a scene of signed distances: a bumpy ball and a ring that melt into a mirror.
   cc -O2 examples/raymarch.c -o raymarch -ldl -lm

   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./raymarch */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "raymarch"
#include "example.h"
#include "image.h"

#define F(x) ptx_f32(x)
static const double sun[3] = {-0.72, 0.49, 0.49};

static void along(ptx_kernel *k, ptx_val out[3], const ptx_val a[3], const ptx_val b[3], ptx_val t) {
    for (int c = 0; c < 3; c++) out[c] = ptx_fma(k, b[c], t, a[c]); /* a + t b */
}

/* The smaller of two distances, rounded where they differ by less than `width`. */
static ptx_val melt(ptx_kernel *k, ptx_val a, ptx_val b, double width) {
    ptx_val h = ptx_clamp(k, ptx_fma(k, ptx_sub(k, b, a), F(0.5 / width), F(0.5)), F(0), F(1));
    return ptx_sub(k, ptx_mix(k, b, a, h), ptx_mul(k, ptx_mul(k, h, ptx_sub(k, F(1), h)), F(width)));
}

/* A function of the module: the distance of a point from the scene. */
static ptx_kernel *emit_distance(ptx_module *m) {
    ptx_kernel *k = ptx_func(m, "distance", PTX_F32);
    ptx_val p[3], bumps = F(0.07), ball, ring;
    p[0] = ptx_param(k, "x", PTX_F32), p[1] = ptx_param(k, "y", PTX_F32), p[2] = ptx_param(k, "z", PTX_F32);
    for (int c = 0; c < 3; c++) bumps = ptx_mul(k, ptx_sin_approx(k, ptx_mul(k, p[c], F(8))), bumps);
    ball = ptx_add(k, ptx_sub(k, ptx_length(k, 3, p), F(0.85)), bumps);
    ring = ptx_hypot(k, ptx_sub(k, ptx_hypot(k, p[0], p[2]), F(1.35)), ptx_add(k, p[1], F(0.75)));
    ring = ptx_sub(k, ring, F(0.17));
    ptx_return(k, melt(k, melt(k, ball, ring, 0.3), ptx_add(k, p[1], F(0.9)), 0.25));
    return k;
}

/* How far the ray goes until the scene, 30 at most; *light: how much of a wide beam passes, 0 to 1. */
static ptx_val march(ptx_kernel *k, ptx_kernel *distance, const ptx_val from[3], const ptx_val to[3],
                     unsigned steps, ptx_val *light) {
    ptx_var t = ptx_var_new(k, F(0.02)), least = ptx_var_new(k, F(1));
    ptx_val p[3], d, now;
    ptx_for(k, ptx_u32(0), ptx_u32(steps), ptx_u32(1));
    now = ptx_get(k, t);
    along(k, p, from, to, now);
    d = ptx_call(k, distance, 3, p);
    ptx_set(k, least, ptx_min(k, ptx_get(k, least), ptx_div(k, ptx_mul(k, d, F(9)), now)));
    ptx_while(k, ptx_setp(k, PTX_GT, d, F(0.001)));
    ptx_set(k, t, ptx_fma(k, d, F(0.9), now));
    ptx_while(k, ptx_setp(k, PTX_LT, ptx_get(k, t), F(30)));
    ptx_end(k);
    *light = ptx_smoothstep(k, F(0), F(1), ptx_get(k, least));
    return ptx_get(k, t);
}

static void emit_sky(ptx_kernel *k, ptx_val rgb[3], const ptx_val to[3]) {
    static const double low[3] = {0.82, 0.60, 0.46}, high[3] = {0.06, 0.19, 0.46},
                        glow[3] = {0.9, 0.55, 0.25};
    const ptx_val toward[3] = {F(sun[0]), F(sun[1]), F(sun[2])};
    ptx_val up = ptx_smoothstep(k, F(-0.1), F(0.7), to[1]);
    ptx_val halo = ptx_pow(k, ptx_max(k, ptx_dot(k, 3, to, toward), F(0)), F(24));
    for (int c = 0; c < 3; c++) rgb[c] = ptx_fma(k, halo, F(glow[c]), ptx_mix(k, F(low[c]), F(high[c]), up));
}

/* The light from the surface at p, whose normal is n; returns how much of a mirror it is. */
static ptx_val emit_surface(ptx_kernel *k, ptx_kernel *distance, const ptx_val p[3], const ptx_val n[3],
                            const ptx_val to[3], ptx_val rgb[3]) {
    static const double ball[3] = {0.78, 0.17, 0.06}, ring[3] = {0.03, 0.25, 0.30};
    static const double direct[3] = {1.9, 1.6, 1.25}, around[3] = {0.24, 0.30, 0.42};
    const ptx_val toward[3] = {F(sun[0]), F(sun[1]), F(sun[2])};
    ptx_val floor = ptx_smoothstep(k, F(-0.8), F(-0.89), p[1]), light, open, above[3], x, z, tile, grazing;
    ptx_val outer = ptx_smoothstep(k, F(0.8), F(1.3), ptx_hypot(k, p[0], p[2]));
    x = ptx_floor(k, ptx_mul(k, p[0], F(1.25))), z = ptx_floor(k, ptx_mul(k, p[2], F(1.25)));
    tile = ptx_fma(k, ptx_mod(k, ptx_add(k, x, z), F(2)), F(0.35), F(0.25)); /* a chessboard */
    along(k, above, p, n, F(0.02));
    march(k, distance, above, toward, 28, &light);
    light = ptx_mul(k, light, ptx_max(k, ptx_dot(k, 3, n, toward), F(0)));
    along(k, above, p, n, F(0.3)); /* in a corner less of the sky is seen */
    open = ptx_clamp(k, ptx_mul(k, ptx_call(k, distance, 3, above), F(1 / 0.3)), F(0), F(1));
    for (int c = 0; c < 3; c++) {
        ptx_val base = ptx_mix(k, ptx_mix(k, F(ball[c]), F(ring[c]), outer), tile, floor);
        rgb[c] = ptx_mul(k, base, ptx_fma(k, light, F(direct[c]), ptx_mul(k, open, F(around[c]))));
    }
    grazing = ptx_pow(k, ptx_clamp(k, ptx_add(k, F(1), ptx_dot(k, 3, n, to)), F(0), F(1)), F(5));
    return ptx_fma(k, grazing, F(0.6), ptx_fma(k, floor, F(0.2), F(0.04)));
}

/* A ray and its reflection for each pixel. */
static void emit_picture(ptx_module *m) {
    static const double right[3] = {0.803, 0, -0.596}, up[3] = {-0.162, 0.962, -0.219};
    static const double ahead[3] = {-0.573, -0.272, -0.773}, eye[3] = {2.3, 0.9, 3.1};
    ptx_kernel *distance = emit_distance(m), *k = ptx_entry(m, "raymarch");
    ptx_val out = ptx_param_ptr(k, "out", PTX_GLOBAL), width = ptx_param(k, "width", PTX_U32);
    ptx_val height = ptx_param(k, "height", PTX_U32), column = ptx_global_x(k), row = ptx_global_y(k);
    ptx_val from[3], to[3], p[3], n[3], rgb[3], sky[3], t, d, mirror, x, y, weight;
    ptx_var origin[3], way[3], sum[3], rest;
    leave_where(k, ptx_setp(k, PTX_GE, column, width));
    leave_where(k, ptx_setp(k, PTX_GE, row, height));
    x = from_centre(k, column, width, height), y = ptx_neg(k, from_centre(k, row, height, height));
    for (int c = 0; c < 3; c++)
        to[c] = ptx_fma(k, x, F(right[c]), ptx_fma(k, y, F(up[c]), F(1.9 * ahead[c])));
    ptx_normalize(k, 3, to, to);
    for (int c = 0; c < 3; c++) {
        origin[c] = ptx_var_new(k, F(eye[c])), way[c] = ptx_var_new(k, to[c]), sum[c] = ptx_var_new(k, F(0));
    }
    rest = ptx_var_new(k, F(1));
    ptx_for(k, ptx_u32(0), ptx_u32(2), ptx_u32(1));
    {
        for (int c = 0; c < 3; c++) from[c] = ptx_get(k, origin[c]), to[c] = ptx_get(k, way[c]);
        t = march(k, distance, from, to, 96, &d);
        along(k, p, from, to, t);
        for (int corner = 0; corner < 4; corner++) { /* the gradient, from the corners of a tetrahedron */
            const double at[3] = {corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner % 3 ? -1 : 1};
            ptx_val q[3];
            for (int c = 0; c < 3; c++) q[c] = ptx_add(k, p[c], F(0.002 * at[c]));
            d = ptx_call(k, distance, 3, q);
            for (int c = 0; c < 3; c++) n[c] = ptx_fma(k, d, F(at[c]), corner ? n[c] : F(0));
        }
        ptx_normalize(k, 3, n, n);
        mirror = emit_surface(k, distance, p, n, to, rgb);
        emit_sky(k, sky, to);
        d = ptx_exp(k, ptx_mul(k, ptx_mul(k, t, t), F(-0.006))); /* haze, which hides the edge of the world */
        mirror = ptx_mul(k, mirror, d);
        weight = ptx_mul(k, ptx_get(k, rest), ptx_sub(k, F(1), mirror));
        ptx_lerp(k, 3, sky, rgb, d, rgb);
        for (int c = 0; c < 3; c++) ptx_set(k, sum[c], ptx_fma(k, weight, rgb[c], ptx_get(k, sum[c])));
        ptx_set(k, rest, ptx_mul(k, ptx_get(k, rest), mirror));
        ptx_reflect(k, 3, to, n, to);
        along(k, from, p, n, F(0.02));
        for (int c = 0; c < 3; c++) ptx_set(k, origin[c], from[c]), ptx_set(k, way[c], to[c]);
    }
    ptx_end(k);
    for (int c = 0; c < 3; c++) rgb[c] = ptx_linear_to_srgb(k, ptx_min(k, ptx_get(k, sum[c]), F(1)));
    ptx_st_elem(k, PTX_U32, out, ptx_mad(k, row, width, column), pack_pixel(k, rgb));
    ptx_ret(k);
}

int main(int argc, char **argv) {
    uint32_t width = 480, height = 300;
    const char *path = "raymarch.png";
    const option options[] = {{"width", OPTION_U32, &width, 1, 16384, NULL, "pixels of a row"},
                              {"height", OPTION_U32, &height, 1, 16384, NULL, "rows"},
                              {"out", OPTION_TEXT, &path, 0, 0, NULL, "the file"}};
    const command_line line = {EXAMPLE, "a scene of signed distances", options, 3, NULL, NULL, 0};
    ptx_module *m;
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    emit_picture(m);
    return draw_picture(m, width, height, path);
}
