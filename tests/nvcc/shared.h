/* shared.h - what a kernel computes for one element, as code that nvcc compiles for the device and the
 * host's compiler for the reference of tests/driver/nvcc.c. */
#ifndef NVCC_SHARED_H
#define NVCC_SHARED_H
#include <stdint.h>
#ifdef __CUDACC__
#define HD static __host__ __device__ __forceinline__
#else
#define HD static inline
#endif

/* The input of everything: a hash of the index. */
HD uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

HD uint64_t mix64(uint32_t x) { return (uint64_t)mix(x) << 32 | mix(x ^ 0x9e3779b9u); }

HD uint32_t crc32_of(uint32_t seed)
{
    uint32_t c = 0xffffffffu;
    for (int k = 0; k < 16; k++) {
        c ^= mix(seed * 16u + (uint32_t)k) & 255u;
        for (int b = 0; b < 8; b++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

HD uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* One block of SHA-256 over sixteen words made of the seed; the constants come from the caller. */
HD uint32_t sha256_of(uint32_t seed, const uint32_t *k)
{
    uint32_t w[64], s[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                            0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u},
                    v[8];
    for (uint32_t i = 0; i < 16; i++) w[i] = mix(seed * 16u + i);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7]
               + (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    for (int i = 0; i < 8; i++) v[i] = s[i];
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25))
                     + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        uint32_t b = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22))
                     + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for (int j = 7; j > 0; j--) v[j] = v[j - 1];
        v[4] += a;
        v[0] = a + b;
    }
    for (int i = 0; i < 8; i++) s[i] += v[i];
    return s[0] ^ s[3] ^ s[7];
}

HD uint64_t wide_of(uint32_t i)
{
    uint64_t a = mix64(i), b = mix64(i + 77777u) >> (i % 40u) | 1u;
    int64_t x = (int64_t)a, y = (int64_t)b;
    uint64_t r = a / b ^ a % b * 3u ^ (uint64_t)(x / (y | 1)) ^ (uint64_t)(x % (y | 1)) * 5u;
    r += a << (b & 63) ^ a >> (b >> 3 & 63) ^ (uint64_t)(x >> (b >> 5 & 63));
    r ^= (a > b ? a - b : b - a) ^ (x < y ? 17u : 5u);
    unsigned __int128 p = (unsigned __int128)a * (b + 12345u) + a;
    return r + (uint64_t)(p >> 64) * 7u + (uint64_t)p;
}

/* Escape time in fixed point, so that every machine agrees. */
HD uint32_t mandelbrot_of(uint32_t i, uint32_t width)
{
    int32_t cx = (int32_t)(i % width * 3u * 4096u / width) - 2 * 4096,
            cy = (int32_t)(i / width * 2u * 4096u / width) - 4096, x = 0, y = 0;
    uint32_t n = 0;
    while (n < 200) {
        int32_t xx = x * x >> 12, yy = y * y >> 12;
        if (xx + yy > 4 * 4096) break;
        y = (x * y >> 11) + cy;
        x = xx - yy + cx;
        n++;
    }
    return n;
}

/* --- calls ------------------------------------------------------------------------------------ */

typedef struct body {
    double mass;
    float at[3];
    int16_t id;
    uint8_t tag;
    uint32_t history[6];
} body;

#ifdef __CUDACC__
__device__
#endif
    static const uint8_t small_table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

HD uint32_t switch_of(uint32_t i)
{
    uint32_t r = i;
    for (uint32_t k = 0; k < 8; k++) {
        switch ((mix(i + k) >> 5) % 13u) {
        case 0: r += 7; break;
        case 1: r *= 3; break;
        case 2: r ^= 0x5555u; break;
        case 3: r = r >> 3 | r << 29; break;
        case 4: r -= i; break;
        case 5: r = ~r; break;
        case 6: r += r << 4; break;
        case 7: return r;
        case 8: r ^= r >> 7; /* fall through */
        case 9: r += 1000; break;
        case 10: r = r * r; break;
        case 11: r ^= k; break;
        default: r += 1;
        }
    }
    return r;
}
#endif
