// Floating point: the math library in single and double precision, every rounding, conversions, n-body.
#include "shared.h"

// One column for each function; x and y are what the host uses too.
extern "C" __global__ void single(const float *x, const float *y, float *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], *o = out + i * 20u;
    o[0] = sinf(a);
    o[1] = cosf(a);
    o[2] = expf(a * 0.1f);
    o[3] = logf(b);
    o[4] = powf(b, 1.5f);
    o[5] = tanhf(a);
    o[6] = erff(a);
    o[7] = sqrtf(b);
    o[8] = a / b;
    o[9] = 1.0f / b;
    o[10] = fmodf(a, b);
    o[11] = atan2f(a, b);
    o[12] = cbrtf(a);
    o[13] = exp2f(a * 0.2f);
    o[14] = log2f(b);
    o[15] = rsqrtf(b);
    o[16] = hypotf(a, b);
    o[17] = lgammaf(b);
    o[18] = asinf(a * 0.001f);
    o[19] = sinf(a * 1e6f);
}

extern "C" __global__ void doubles(const double *x, const double *y, double *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = y[i], *o = out + i * 12u;
    o[0] = sin(a);
    o[1] = cos(a);
    o[2] = exp(a * 0.1);
    o[3] = log(b);
    o[4] = pow(b, 1.5);
    o[5] = tanh(a);
    o[6] = sqrt(b);
    o[7] = a / b;
    o[8] = fma(a, b, -a);
    o[9] = cbrt(a);
    o[10] = sin(a * 1e9);
    o[11] = tgamma(b * 0.01 + 1);
}

// Exact: one operation each, in a given rounding.
extern "C" __global__ void rounded(const float *x, const float *y, float *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], *o = out + i * 20u;
    o[0] = __fadd_rn(a, b);
    o[1] = __fadd_rz(a, b);
    o[2] = __fadd_ru(a, b);
    o[3] = __fadd_rd(a, b);
    o[4] = __fmul_rn(a, b);
    o[5] = __fmul_rz(a, b);
    o[6] = __fmul_ru(a, b);
    o[7] = __fmul_rd(a, b);
    o[8] = __fmaf_rn(a, b, a);
    o[9] = __fmaf_rz(a, b, a);
    o[10] = __fmaf_ru(a, b, a);
    o[11] = __fmaf_rd(a, b, a);
    o[12] = __fdiv_rn(a, b);
    o[13] = __fdiv_rz(a, b);
    o[14] = __fdiv_ru(a, b);
    o[15] = __fdiv_rd(a, b);
    o[16] = __fsqrt_rn(b);
    o[17] = __fsqrt_rz(b);
    o[18] = __fsqrt_ru(b);
    o[19] = __fsqrt_rd(b);
}

extern "C" __global__ void conversions(const float *x, uint64_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    double d = (double)a * 1.0000001;
    uint64_t *o = out + i * 12u;
    o[0] = (uint32_t)__float2int_rn(a);
    o[1] = (uint32_t)__float2int_rz(a);
    o[2] = (uint32_t)__float2int_ru(a);
    o[3] = __float2uint_rd(fabsf(a));
    o[4] = (uint64_t)__float2ll_rn(a);
    o[5] = (uint64_t)__double2ll_rz(d);
    o[6] = (uint32_t)__float_as_int(__int2float_rz((int)mix(i)))
           ^ (uint64_t)__float_as_int(__ll2float_ru((long long)mix64(i))) << 32;
    o[7] = (uint64_t)__double_as_longlong(__ll2double_rd((long long)mix64(i)));
    o[8] = (uint32_t)__float_as_int(__double2float_ru(d)) ^ (uint64_t)__float_as_int((float)d) << 32;
    o[9] = (uint64_t)__double_as_longlong(trunc(d) + floor(d) * 3 + rint(d) * 5 + ceil(d) * 7 + round(d) * 9);
    o[10] = (uint32_t)__float_as_int(truncf(a)) + (uint32_t)__float_as_int(rintf(a)) * 3u
            + (uint32_t)__float_as_int(floorf(a)) * 5u;
    o[11] = (uint64_t)(int64_t)(int8_t)a ^ (uint64_t)(uint16_t)fabsf(a) << 16
            ^ (uint64_t)(isnan(a) + 2 * isinf(a) + 4 * signbit(a)) << 48;
}

extern "C" __global__ void nbody(const float4 *bodies, float4 *out, uint32_t n)
{
    __shared__ float4 tile[64];
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i], sum = make_float4(0, 0, 0, 0);
    for (uint32_t t = 0; t < n; t += 64) {
        tile[threadIdx.x] = bodies[t + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 64; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = tile[k].w * r * r * r;
            sum.x += dx * f;
            sum.y += dy * f;
            sum.z += dz * f;
            sum.w += f;
        }
        __syncthreads();
    }
    out[i] = sum;
}
