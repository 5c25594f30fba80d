// What the device's run-time system does: printf, malloc, new, assert, trap.
#include "shared.h"
#include <stdio.h>
#include <assert.h>

extern "C" __global__ void prints(const char *unused)
{
    int t = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const char *names[3] = {"zero", "one", "two"};
    printf("block %d thread %u: %5d|%-5d|%05d|%+d|%x|%#X|%o|%c|%s|%%\n", blockIdx.x, threadIdx.x, t, t, t, t,
           t * 77, t * 77, t, 'a' + t, names[t % 3]);
    if (t == 1)
        printf("%.3f %10.2e %g %a|%lld %llx %hhd %p|%*d|%.*f|%-8s|%.2s\n", 3.14159, 12345.678, 1e-5, 1.0,
               -1234567890123ll, 0xfedcba9876543210ull, 7, (void *)0, 6, 42, 2, 2.71828, "left", "cut");
    if (t == 2) printf("plain\n");
}

extern "C" __global__ void heap(uint32_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t size = mix(i) % 60u + 1u, sum = 0;
    uint32_t *p = (uint32_t *)malloc(size * sizeof *p);
    uint64_t *q = new uint64_t[3];
    for (uint32_t k = 0; k < size; k++) p[k] = k * i;
    for (int k = 0; k < 3; k++) q[k] = i + k;
    for (uint32_t k = 0; k < size; k++) sum += p[k];
    out[i] = sum + (uint32_t)(q[0] + q[2]) + n;
    free(p);
    delete[] q;
}

extern "C" __global__ void too_much(uint32_t *out)
{
    void *p = malloc((size_t)1 << 40);
    out[threadIdx.x] = p == NULL;
    free(p);
}

extern "C" __global__ void asserts(uint32_t limit) { assert(threadIdx.x < limit && "the index is small"); }

extern "C" __global__ void heap_fault(uint32_t *out, uint32_t kind)
{
    uint32_t *p = (uint32_t *)malloc(40);
    p[0] = kind;
    if (kind == 1) p[10] = 1;
    if (kind == 2) {
        free(p);
        out[0] = p[0];
    }
    if (kind == 3) {
        free(p);
        free(p);
    }
    if (kind == 4) free(p + 1);
    if (kind == 5) out[0] = p[3];
    if (kind != 2 && kind != 3) free(p);
}

extern "C" __global__ void traps(uint32_t limit)
{
    if (threadIdx.x >= limit) __trap();
}
