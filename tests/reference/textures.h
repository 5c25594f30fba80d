/* textures.h - texture fetches in plain C, in double precision: what the CUDA guide's chapter on texture fetching says,
   with weights of 8 fractional bits. Texels lie dense: x, then y, then z, layer or face. */
#ifndef REFERENCE_TEXTURES_H
#define REFERENCE_TEXTURES_H

#include "numbers.h"
#include <math.h>
#include <string.h>

enum { REF_CLAMP, REF_WRAP, REF_MIRROR, REF_BORDER }; /* as PTXCU_ADDRESS_ */

typedef struct ref_texture {
    int size[3], dims, layers; /* size: 1 beyond dims; layers: faces too */
    int bits, is_signed, is_float, channels;
    const void *texels;
    int address[3], linear, normalized, as_float, srgb; /* as_float: what it gives */
    float border[4];
} ref_texture;

/* One channel of a texel as it is stored. */
static inline double ref_stored(const ref_texture *t, size_t n) {
    switch (t->bits + t->is_signed + 2 * t->is_float) {
    case 8: return ((const uint8_t *)t->texels)[n];
    case 9: return ((const int8_t *)t->texels)[n];
    case 16: return ((const uint16_t *)t->texels)[n];
    case 17: return ((const int16_t *)t->texels)[n];
    case 18:
    case 19: return ref_from_f16(((const uint16_t *)t->texels)[n]);
    case 32: return ((const uint32_t *)t->texels)[n];
    case 33: return ((const int32_t *)t->texels)[n];
    default: return (double)((const float *)t->texels)[n];
    }
}

/* As the texture gives it: integers of 8 and 16 bits as floats where it is read so. */
static inline double ref_value(const ref_texture *t, double v, int channel) {
    double most;
    if (t->is_float || !t->as_float) return v;
    most = (double)((1u << (t->bits - t->is_signed)) - 1);
    v = v / most < -1 ? -1 : v / most;
    if (t->srgb && channel < 3) v = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    return v;
}

static inline double ref_border(const ref_texture *t, int channel) {
    double b = (double)t->border[channel];
    if (t->is_float) return t->bits == 16 ? ref_from_f16(ref_to_f16(b)) : b;
    if (t->as_float) return b < (t->is_signed ? -1 : 0) ? (t->is_signed ? -1 : 0) : b > 1 ? 1 : b;
    return 0; /* border colours of integers are tested as 0 */
}

/* The texel with the address modes applied to its numbers. */
static inline double ref_texel(const ref_texture *t, const long at[3], int layer, int channel) {
    size_t n = 0;
    long index[3];
    int k;
    for (k = 0; k < 3; k++) {
        long i = at[k], size = t->size[k];
        int mode = t->address[k];
        if (!t->normalized && (mode == REF_WRAP || mode == REF_MIRROR)) mode = REF_CLAMP;
        if (i < 0 || i >= size) {
            if (mode == REF_BORDER) return ref_border(t, channel);
            if (mode == REF_CLAMP) i = i < 0 ? 0 : size - 1;
            if (mode == REF_WRAP) i = ((i % size) + size) % size;
            if (mode == REF_MIRROR) {
                while (i < 0 || i >= size) i = i < 0 ? -1 - i : 2 * size - 1 - i;
            }
        }
        index[k] = i;
    }
    n = (((size_t)(layer + index[2]) * (size_t)t->size[1] + (size_t)index[1]) * (size_t)t->size[0]
         + (size_t)index[0])
            * (size_t)t->channels
        + (size_t)channel;
    return ref_value(t, ref_stored(t, n), channel);
}

/* Linear: the fraction of texel coordinate x - 1/2 in 1/256, halves up, and the lower of the two texels. */
static inline long ref_split(double x, int *part) {
    double q = floor((x - 0.5) * 256 + 0.5), i = floor(q / 256);
    *part = (int)(q - i * 256);
    return (long)i;
}

/* One channel of a fetch by float coordinates; *slack: how far a chip may be from it, by the rounding of weights to
   1/256 where several dimensions are blended, and of sums to 16 bits. */
static inline double ref_fetch(const ref_texture *t, const float *c, int layer, int channel, double *slack) {
    double x[3] = {0, 0, 0}, sum = 0, biggest = 0;
    long i[3] = {0, 0, 0}, at[3];
    int part[3] = {0, 0, 0}, k, corner;
    for (k = 0; k < t->dims; k++) x[k] = t->normalized ? (double)(c[k] * (float)t->size[k]) : (double)c[k];
    *slack = 0;
    if (!t->linear || (!t->is_float && !t->as_float)) {
        for (k = 0; k < t->dims; k++) i[k] = (long)floor(x[k]);
        return ref_texel(t, i, layer, channel);
    }
    for (k = 0; k < t->dims; k++) i[k] = ref_split(x[k], &part[k]);
    for (corner = 0; corner < 1 << t->dims; corner++) {
        double weight = 1, v;
        for (k = 0; k < t->dims; k++) {
            int far = corner >> k & 1;
            at[k] = i[k] + far;
            weight *= (far ? part[k] : 256 - part[k]) / 256.0;
        }
        for (; k < 3; k++) at[k] = 0;
        if (weight == 0) continue;
        v = ref_texel(t, at, layer, channel);
        sum += weight * v;
        if (fabs(v) > biggest) biggest = fabs(v);
    }
    if (t->dims > 1) *slack += biggest * (t->dims == 2 ? 2.0 : 6.0) / 256;
    if (!t->is_float) *slack += 1.0 / (t->is_signed ? 32767 : 65535);
    if (t->is_float && t->bits == 16) *slack += biggest / 2048;
    return sum;
}

#endif
