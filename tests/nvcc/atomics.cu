// Atomics of every type and width, in global and shared memory, fences, locks between lanes and blocks.
#include "shared.h"
#include <cuda_fp16.h>
#include <cuda_bf16.h>

struct results {
    uint32_t u[10];
    int32_t smin, smax;
    unsigned long long l[8];
    long long lmin, lmax;
    float f;
    uint32_t pad;
    double d;
    __half2 h2;
    __nv_bfloat162 b2;
    __half h;
    uint16_t small;
    uint32_t tickets[64];
    unsigned long long total;
};

extern "C" __global__ void atomics(results *r, uint32_t n)
{
    __shared__ uint32_t count, high;
    __shared__ unsigned long long total;
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, v = mix(i);
    if (threadIdx.x == 0) {
        count = 0;
        high = 0;
        total = 0;
    }
    __syncthreads();
    if (i < n) {
        atomicAdd(&r->u[0], v);
        atomicSub(&r->u[1], v);
        atomicMin(&r->u[2], v);
        atomicMax(&r->u[3], v);
        atomicAnd(&r->u[4], v | 0xff0u);
        atomicOr(&r->u[5], v & 0xf00fu);
        atomicXor(&r->u[6], v);
        atomicInc(&r->u[7], 1000u);
        atomicDec(&r->u[8], 77u);
        atomicExch(&r->u[9], 42u);
        atomicMin(&r->smin, (int)v);
        atomicMax(&r->smax, (int)v);
        unsigned long long w = mix64(i);
        atomicAdd(&r->l[0], w);
        atomicMin(&r->l[1], w);
        atomicMax(&r->l[2], w);
        atomicAnd(&r->l[3], w | 0xff00ull);
        atomicOr(&r->l[4], w & 0xff00ff00ull);
        atomicXor(&r->l[5], w);
        atomicExch(&r->l[6], 4242ull);
        atomicMin(&r->lmin, (long long)w);
        atomicMax(&r->lmax, (long long)w);
        atomicAdd(&r->f, (float)(v & 15u));
        atomicAdd(&r->d, (double)(v & 1023u) * 0.125);
        atomicAdd(&r->h2, __floats2half2_rn(1, 2));
        atomicAdd(&r->b2, __floats2bfloat162_rn(1, 0.5f));
        atomicAdd(&r->h, __float2half(0.5f));
        unsigned short old = r->small, seen; /* compare and swap in 16 bits: count to n mod 65536 */
        do {
            seen = old;
            old = atomicCAS(&r->small, seen, (unsigned short)(seen + 1));
        } while (old != seen);
        unsigned long long o = r->l[7], s;
        do {
            s = o;
            o = atomicCAS(&r->l[7], s, s * 3 + 1 > 1000000007ull ? s + 1 : s + 1);
        } while (o != s);
        atomicAdd_block(&count, 1u);
        atomicMax(&high, v);
        atomicAdd(&total, (unsigned long long)v);
        r->tickets[atomicAdd(&r->tickets[63], 1u) % 32u] = 7;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd_system(&r->tickets[32], count);
        atomicMax(&r->tickets[33], high);
        atomicAdd(&r->total, total);
    }
}

// Lanes of a warp take turns at a lock: the one that holds it must be able to go on.
extern "C" __global__ void lanes_lock(uint32_t *lock, volatile uint32_t *sum)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0u) {
            __threadfence();
            *sum = *sum * 3u + 1u;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
}

// Blocks hand a token on in the order of their numbers.
extern "C" __global__ void chain(volatile uint32_t *turn, uint32_t *order)
{
    if (threadIdx.x == 0) {
        while (*turn != blockIdx.x) __nanosleep(20);
        __threadfence();
        order[blockIdx.x] = blockIdx.x ? order[blockIdx.x - 1] * 5u + blockIdx.x : 1u;
        __threadfence();
        *turn = blockIdx.x + 1u;
    }
}
