// Functions of libdevice that are made of approximate instructions, over wide ranges.
#include "shared.h"

extern "C" __global__ void double_functions(const double *x, double *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = fabs(a), *o = out + i * 10u;
    o[0] = tanh(a);
    o[1] = erf(a);
    o[2] = exp(a);
    o[3] = log(b);
    o[4] = pow(b, 1.37);
    o[5] = erfc(a);
    o[6] = sinh(a);
    o[7] = exp2(a);
    o[8] = sin(a);
    o[9] = 1 / a;
}

extern "C" __global__ void single_functions(const float *x, float *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = fabsf(a), *o = out + i * 10u;
    o[0] = tanhf(a);
    o[1] = erff(a);
    o[2] = expf(a);
    o[3] = logf(b);
    o[4] = powf(b, 1.37f);
    o[5] = erfcf(a);
    o[6] = sinhf(a);
    o[7] = exp2f(a);
    o[8] = sinf(a);
    o[9] = 1 / a;
}
