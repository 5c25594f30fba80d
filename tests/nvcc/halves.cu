// Half, bfloat16 and 8-bit floats: scalar, packed, conversions.
#include "shared.h"
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

// All sixteen-bit operands; the host computes in double and rounds once.
extern "C" __global__ void half_ops(const uint16_t *x, uint16_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = __ushort_as_half(x[3 * i]), b = __ushort_as_half(x[3 * i + 1]),
           c = __ushort_as_half(x[3 * i + 2]);
    uint16_t *o = out + 16 * i;
    __half2 p = __halves2half2(a, b), q = __halves2half2(c, a), s = __hadd2(p, q), t = __hfma2(p, q, p);
    o[0] = __half_as_ushort(__hadd_rn(a, b));
    o[1] = __half_as_ushort(__hmul_rn(a, b));
    o[2] = __half_as_ushort(__hfma(a, b, c));
    o[3] = __half_as_ushort(__hsub_rn(a, b));
    o[4] = __half_as_ushort(__low2half(s));
    o[5] = __half_as_ushort(__high2half(s));
    o[6] = __half_as_ushort(__low2half(t));
    o[7] = __half_as_ushort(__high2half(t));
    o[8] = __half_as_ushort(__hmin(a, b));
    o[9] = __half_as_ushort(__hmax(a, b));
    o[10] = __half_as_ushort(__habs(a));
    o[11] = __half_as_ushort(__hneg(b));
    o[12] = (uint16_t)((__hlt(a, b) ? 1 : 0) + (__hge(a, b) ? 2 : 0) + (__heq(a, b) ? 4 : 0)
                       + (__hneu(a, b) ? 8 : 0));
    o[13] = __half_as_ushort(__hadd_sat(a, b));
    o[14] = __half_as_ushort(__hfma_relu(a, b, c));
    o[15] = __half_as_ushort(__float2half_rz(__half2float(a) * 1.0009765f));
}

extern "C" __global__ void bfloat_ops(const uint16_t *x, uint16_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 a = __ushort_as_bfloat16(x[3 * i]), b = __ushort_as_bfloat16(x[3 * i + 1]),
                  c = __ushort_as_bfloat16(x[3 * i + 2]);
    uint16_t *o = out + 8 * i;
    __nv_bfloat162 p = __halves2bfloat162(a, b), q = __halves2bfloat162(c, a), t = __hfma2(p, q, p);
    o[0] = __bfloat16_as_ushort(__hadd_rn(a, b));
    o[1] = __bfloat16_as_ushort(__hmul_rn(a, b));
    o[2] = __bfloat16_as_ushort(__hfma(a, b, c));
    o[3] = __bfloat16_as_ushort(__hsub_rn(a, b));
    o[4] = __bfloat16_as_ushort(__low2bfloat16(t));
    o[5] = __bfloat16_as_ushort(__high2bfloat16(t));
    o[6] = __bfloat16_as_ushort(__hmax(a, b));
    o[7] = __bfloat16_as_ushort(__float2bfloat16_rn(__bfloat162float(a) * 1.01f));
}

extern "C" __global__ void eight_bit(const float *x, uint32_t *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    __nv_fp8_e4m3 e(a);
    __nv_fp8_e5m2 f(a);
    __half_raw g = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, __NV_E4M3),
               h = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, __NV_E5M2);
    out[2 * i] = e.__x | (uint32_t)f.__x << 8;
    out[2 * i + 1] = g.x | (uint32_t)h.x << 16;
}

extern "C" __global__ void half_math(const float *x, float *out, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = __float2half(fabsf(x[i]) * 0.01f + 0.01f);
    out[6 * i] = __half2float(hexp(a));
    out[6 * i + 1] = __half2float(hlog(a));
    out[6 * i + 2] = __half2float(hsqrt(a));
    out[6 * i + 3] = __half2float(hrcp(a));
    out[6 * i + 4] = __half2float(hsin(a));
    out[6 * i + 5] = __half2float(htanh(a));
}
