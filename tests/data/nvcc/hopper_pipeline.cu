// hopper_pipeline.cu - sums of the columns of tiles: a cluster of two blocks, tiles by TMA multicast into a
// ring of three stages, full and empty mbarriers across the cluster, the result out by a bulk copy.
//
//     nvcc -arch=sm_90a -ptx hopper_pipeline.cu -o hopper_pipeline.ptx
#include <cstdint>
#include <cuda/ptx>
#include <cuda.h>
#include <cooperative_groups.h>

namespace ptx = cuda::ptx;
namespace cg = cooperative_groups;

constexpr int stages = 3, rows = 16, columns = 64;            // of a tile of float, half of it from each block

struct Ring {
    alignas(1024) float tile[stages][rows][columns];
    alignas(16) float sums[columns];
    alignas(8) uint64_t full[stages], empty[stages];
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(96)
    column_sums(const __grid_constant__ CUtensorMap map, float *out, int tiles)
{
    __shared__ Ring s;
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), cluster_id = blockIdx.x / 2;
    if (threadIdx.x == 0) {
        for (int k = 0; k < stages; k++) {
            ptx::mbarrier_init(&s.full[k], 1);
            ptx::mbarrier_init(&s.empty[k], 2 * 64);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            for (int t = 0; t < tiles; t++) {
                const int stage = t % stages, phase = t / stages & 1;
                while (!ptx::mbarrier_try_wait_parity(&s.empty[stage], phase ^ 1)) { }
                ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                               &s.full[stage], sizeof s.tile[0]);
                const int32_t at[2] = { 0, (int)(cluster_id * tiles + t) * rows + (int)rank * (rows / 2) };
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                                          &s.tile[stage][rank * (rows / 2)][0], &map, at, &s.full[stage],
                                          (uint16_t)3);
            }
        }
    } else {
        const int column = threadIdx.x - 32;
        float sum = 0;
        for (int t = 0; t < tiles; t++) {
            const int stage = t % stages, phase = t / stages & 1;
            while (!ptx::mbarrier_try_wait_parity(&s.full[stage], phase)) { }
            for (int r = 0; r < rows; r++) {
                const unsigned offset = (r * columns + column) * 4;
                sum += s.tile[stage][0][offset / 4] * (float)(rank + 1);
            }
            for (unsigned r = 0; r < 2; r++)
                ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                                     cluster.map_shared_rank(&s.empty[stage], r));
        }
        s.sums[column] = sum;
        ptx::fence_proxy_async(ptx::space_shared);
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (column == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * columns, s.sums,
                               (uint32_t)sizeof s.sums);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        }
    }
    cluster.sync();
}
