// Three ways to multiply, C[m][n] = A[m][k] B[n][k] with half inputs and float sums, m, n, k multiples of 64.
// nvcc -arch=compute_80 -ptx matrix_gemm.cu -o matrix_gemm.ptx
// nvcc -arch=compute_90a -ptx matrix_gemm.cu -o matrix_gemm_90a.ptx
#include <cuda_fp16.h>
#include <mma.h>
#include <stdint.h>

// One warp for each 16 x 16 tile, through the C++ interface.
extern "C" __global__ void gemm_wmma(float *c, const half *a, const half *b, int n, int k)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fill_fragment(fc, 0.0f);
    for (int z = 0; z < k; z += 16) {
        wmma::load_matrix_sync(fa, a + row * k + z, k);
        wmma::load_matrix_sync(fb, b + col * k + z, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

// Four warps for each 64 x 64 tile: shared memory, ldmatrix, mma.m16n8k16. Rows are padded by 16 bytes.
extern "C" __global__ void gemm_mma(float *c, const half *a, const half *b, int n, int k)
{
    __shared__ __align__(16) half sa[64][24], sb[64][24];
    int t = threadIdx.x, warp = t / 32, lane = t % 32, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[8][4] = {};
    for (int z = 0; z < k; z += 16) {
        *(uint4 *)&sa[t / 2][t % 2 * 8] = *(const uint4 *)&a[(row + t / 2) * k + z + t % 2 * 8];
        *(uint4 *)&sb[t / 2][t % 2 * 8] = *(const uint4 *)&b[(col + t / 2) * k + z + t % 2 * 8];
        __syncthreads();
        uint32_t fa[4], fb[4];
        uint32_t at = (uint32_t)__cvta_generic_to_shared(&sa[warp * 16 + lane % 16][lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at) : "memory");
        for (int j = 0; j < 8; j += 2) {
            at = (uint32_t)__cvta_generic_to_shared(&sb[j * 8 + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]) : "r"(at) : "memory");
            for (int i = 0; i < 2; i++)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(d[j + i][0]), "+f"(d[j + i][1]), "+f"(d[j + i][2]), "+f"(d[j + i][3])
                             : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[i * 2]), "r"(fb[i * 2 + 1]));
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++)
        for (int e = 0; e < 4; e++)
            c[(row + warp * 16 + lane / 4 + e / 2 * 8) * n + col + j * 8 + lane % 4 * 2 + e % 2] = d[j][e];
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
// One warpgroup for each 64 x 64 tile, k in steps of 64: rows of 128 bytes, swizzled, four products each.
extern "C" __global__ void gemm_wgmma(float *c, const half *a, const half *b, int n, int k)
{
    __shared__ __align__(1024) uint4 sa[64][8], sb[64][8];
    int t = threadIdx.x, warp = t / 32, lane = t % 32, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32] = {};
    uint64_t common = (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
    uint64_t da = common | (__cvta_generic_to_shared(sa) & 0x3ffff) >> 4, db = common | (__cvta_generic_to_shared(sb) & 0x3ffff) >> 4;
    for (int z = 0; z < k; z += 64) {
        for (int x = t; x < 512; x += 128) {
            sa[x / 8][x % 8 ^ x / 8 % 8] = *(const uint4 *)&a[(row + x / 8) * k + z + x % 8 * 8];
            sb[x / 8][x % 8 ^ x / 8 % 8] = *(const uint4 *)&b[(col + x / 8) * k + z + x % 8 * 8];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int j = 0; j < 4; j++)
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                         "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                           "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                           "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                           "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                         : "l"(da + 2 * j), "l"(db + 2 * j));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    for (int e = 0; e < 32; e++)
        c[(row + warp * 16 + lane / 4 + e / 2 % 2 * 8) * n + col + e / 4 * 8 + lane % 4 * 2 + e % 2] = d[e];
}
#endif
