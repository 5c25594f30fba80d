/* photograph.h - a picture to work on, from formulas. */
#ifndef PHOTOGRAPH_H
#define PHOTOGRAPH_H

#include <math.h>
#include <stdint.h>

/* A sunset behind mountains and firs, as a pixel of image.h. x, y: from the upper left, in heights of the
   picture. */
static uint32_t photograph(double x, double y) {
    double glow = exp(-5 * hypot(x - 1.12, y - 0.42)), low = y < 0.62 ? y / 0.62 : 1, top, wave, size;
    double rgb[3] = {0.16 + 0.84 * low * low + 0.5 * glow, 0.22 + 0.46 * low + 0.4 * glow,
                     0.46 - 0.06 * low + 0.2 * glow};
    uint32_t pixel = 0xff000000u;
    int layer, i;
    if (hypot(x - 1.12, y - 0.42) < 0.055) rgb[0] = 1, rgb[1] = 0.93, rgb[2] = 0.72;
    for (layer = 0; layer < 5; layer++) {
        top = 0.602 + 0.085 * layer, wave = 1.3 + layer, size = 0.085 * (1 - 0.12 * layer);
        for (i = 0; i < 9; i++, wave *= 1.93, size *= 0.52)
            top -= size * fabs(sin(0.8 * wave * x + 1.7 * i * i + 5 * layer));
        if (layer == 4) { /* firs, of several heights */
            double tall = 0.05 + 0.05 * fabs(sin(12.9898 * floor(26 * x))),
                   tip = 1 - fabs(2 * fmod(26 * x, 1) - 1);
            top = 0.9 - 0.03 * sin(3 * x) - tall * tip - 0.012 * fabs(sin(400 * x));
        }
        if (y <= top) continue;
        rgb[0] = (4 - layer) * (0.161 + 0.275 * (y - top)) + 0.03;
        rgb[1] = (4 - layer) * (0.106 + 0.175 * (y - top)) + 0.05;
        rgb[2] = (4 - layer) * 0.1175 + 0.1;
    }
    for (i = 0; i < 3; i++) pixel |= (uint32_t)(fmin(rgb[i], 1) * 255 + 0.5) << 8 * i;
    return pixel;
}

#endif
