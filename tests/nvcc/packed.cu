// Packed bytes and halfwords: the video instructions and what stands for them.
#include "shared.h"

extern "C" __global__ void packed(uint32_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t a = mix(i), b = mix(i + 1000000u);
    uint32_t *o = out + i * 8u;
    o[0] = __vadd4(a, b) ^ __vsub2(a, b);
    o[1] = __vabsdiffu4(a, b) ^ __vabsdiffs2(a, b);
    o[2] = __vmaxs4(a, b) ^ __vminu2(a, b);
    o[3] = __vcmpgtu4(a, b) ^ __vcmpeq2(a & 0xffff0000u, b & 0xffffu);
    o[4] = __vaddss4(a, b) ^ __vsubus2(a, b);
    o[5] = __vavgu4(a, b) ^ __vavgs2(a, b);
    o[6] = __vsadu4(a, b) + __vsads2(a, b);
    o[7] = __vnegss2(a) ^ __vabsss4(b) ^ __vsetgtu4(a, b);
}
