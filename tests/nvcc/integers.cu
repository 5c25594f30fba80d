// Integers: bits, 64 and 128 bits, CRC, SHA-256, tables in constant and global memory.
#include "shared.h"

__constant__ uint32_t sha_constants[64];
__device__ uint32_t rising[5] = {2, 3, 5, 7, 11};
__device__ uint32_t *const rising_middle = rising + 2;
struct entry {
    int8_t a;
    uint16_t b;
    const uint32_t *p;
    double d;
};
__device__ const entry entries[3] = {{-1, 500, rising, 0.5}, {7, 65535, rising + 4, -2.25}, {0, 1, 0, 1e300}};
__constant__ char text[] = "constant text";

extern "C" __global__ void bits(uint32_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t a = mix(i), b = mix(i + 1000000u), c = mix(i + 2000000u);
    int x = (int)a, y = (int)b;
    uint32_t *o = out + i * 16u;
    o[0] = __popc(a) + 100u * __clz(x) + 10000u * __ffs(x) + (uint32_t)__clzll((long long)a << 7);
    o[1] = __brev(a) ^ __byte_perm(a, b, c & 0x7777u);
    o[2] = __funnelshift_l(a, b, c) ^ __funnelshift_rc(a, b, c >> 8);
    o[3] = __umulhi(a, b) + (uint32_t)__mulhi(x, y);
    o[4] = (uint32_t)__mul24(x, y) ^ __umul24(a, b);
    o[5] = __usad(a, b, c) + (uint32_t)__sad(x, y, c);
    o[6] = (uint32_t)__hadd(x, y) ^ (uint32_t)__rhadd(x, y) ^ __uhadd(a, b) ^ __urhadd(a, b);
    o[7] = (uint32_t)(min(x, y) ^ max(x, 5)) + min(a, b) + max(b, c) + (uint32_t)abs(x);
    o[8] = a / (b | 1u) ^ a % (b >> 9 | 1u) ^ (uint32_t)(x / (y >> 7 | 1)) ^ (uint32_t)(x % (y >> 7 | 1));
    o[9] = (a & b) | (~a & c) ^ (a ^ b ^ c);
    o[10] = (uint32_t)__dp4a(x, y, (int)c) ^ __dp4a(a, b, c);
    o[11] = (uint32_t)__dp2a_lo(x, y, (int)c) ^ __dp2a_hi(a, b, c);
    o[12] = (uint32_t)(int8_t)a * (uint32_t)(int16_t)b + (uint8_t)(a * 3u) + (uint16_t)(b << 3);
    o[13] = (a << (c & 31u)) + (a >> (c >> 5 & 31u)) + (uint32_t)(x >> (c >> 10 & 31u));
    o[14] = (uint32_t)__popcll(mix64(i)) + (uint32_t)__ffsll((long long)mix64(i)) * 64u
            + (uint32_t)(__brevll(mix64(i)) >> 32);
    o[15] = __umul64hi(mix64(i), mix64(i + 9u)) >> 32
            ^ (uint32_t)__mul64hi((long long)mix64(i), (long long)mix64(i + 9u));
}

extern "C" __global__ void wide(uint64_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = wide_of(i);
}

extern "C" __global__ void digests(uint32_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[2 * i] = crc32_of(i);
    out[2 * i + 1] = sha256_of(i, sha_constants);
}

extern "C" __global__ void mandelbrot(uint32_t *out, uint32_t n, uint32_t width)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = mandelbrot_of(i, width);
}

extern "C" __global__ void tables(uint64_t *out)
{
    uint32_t i = threadIdx.x;
    if (i < 3) {
        out[4 * i] = (uint64_t)entries[i].a + entries[i].b * 256u;
        out[4 * i + 1] = entries[i].p ? *entries[i].p : 0;
        out[4 * i + 2] = __double_as_longlong(entries[i].d);
        out[4 * i + 3] = rising_middle[(int)i - 1];
    }
    if (i >= 3 && i < 3 + sizeof text) out[12 + i - 3] = text[i - 3] + small_table[i & 15u];
}
