// Shared memory: transpose, scan, reduction, bitonic sort, histogram, product with asynchronous copies.
#include "shared.h"
#include <cuda_pipeline.h>

extern "C" __global__ void transpose(const float *in, float *out, uint32_t width, uint32_t height)
{
    __shared__ float tile[32][33];
    uint32_t x = blockIdx.x * 32u + threadIdx.x, y = blockIdx.y * 32u + threadIdx.y;
    for (uint32_t j = 0; j < 32; j += 8)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32u + threadIdx.x;
    y = blockIdx.x * 32u + threadIdx.y;
    for (uint32_t j = 0; j < 32; j += 8)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void scan(const uint32_t *in, uint32_t *out, uint32_t n)
{
    extern __shared__ uint32_t room[];
    uint32_t t = threadIdx.x;
    room[t] = t < n ? in[t] : 0;
    for (uint32_t step = 1; step < blockDim.x; step *= 2) {
        __syncthreads();
        uint32_t v = t >= step ? room[t - step] : 0;
        __syncthreads();
        room[t] += v;
    }
    if (t < n) out[t] = room[t];
    uint32_t odd = (uint32_t)__syncthreads_count(in[t] & 1u);
    if (t == 0) out[n] = odd;
}

template <class T, int N> struct pool {
    T cells[N];
    __device__ T &at(int k) { return cells[k]; }
};

extern "C" __global__ void bitonic(uint32_t *data)
{
    __shared__ pool<uint32_t, 256> s;
    uint32_t t = threadIdx.x;
    s.at(t) = data[blockIdx.x * 256u + t];
    for (uint32_t k = 2; k <= 256; k *= 2)
        for (uint32_t j = k / 2; j; j /= 2) {
            __syncthreads();
            uint32_t o = t ^ j;
            if (o > t) {
                uint32_t a = s.at(t), b = s.at(o);
                if ((t & k) == 0 ? a > b : a < b) {
                    s.at(t) = b;
                    s.at(o) = a;
                }
            }
        }
    __syncthreads();
    data[blockIdx.x * 256u + t] = s.at(t);
}

extern "C" __global__ void histogram(const uint8_t *in, uint32_t *bins, uint32_t n)
{
    __shared__ uint32_t mine[256];
    for (uint32_t k = threadIdx.x; k < 256; k += blockDim.x) mine[k] = 0;
    __syncthreads();
    for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x)
        atomicAdd(&mine[in[k]], 1u);
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&bins[k], mine[k]);
}

// 64 x 64 x K, two stages of cp.async in flight.
extern "C" __global__ void product(const float *a, const float *b, float *c, int k)
{
    __shared__ __align__(16) float as[2][64][16], bs[2][16][64];
    int t = threadIdx.x, row = t / 16 * 4, column = t % 16 * 4;
    float sum[4][4] = {};
    auto fetch = [&](int stage, int at) {
        __pipeline_memcpy_async(&as[stage][t / 4][t % 4 * 4], a + t / 4 * k + at + t % 4 * 4, 16);
        __pipeline_memcpy_async(&bs[stage][t / 16][t % 16 * 4], b + (at + t / 16) * 64 + t % 16 * 4, 16);
        __pipeline_commit();
    };
    fetch(0, 0);
    for (int at = 0; at < k; at += 16) {
        int stage = at / 16 & 1;
        if (at + 16 < k) {
            fetch(stage ^ 1, at + 16);
            __pipeline_wait_prior(1);
        } else
            __pipeline_wait_prior(0);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 4; x++) sum[y][x] += as[stage][row + y][j] * bs[stage][j][column + x];
        __syncthreads();
    }
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++) c[(row + y) * 64 + column + x] = sum[y][x];
}
