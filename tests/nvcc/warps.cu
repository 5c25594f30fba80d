// Warps: shuffles, votes, match, reductions, divergence, cooperative groups.
#include "shared.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void shuffles(uint32_t *out)
{
    uint32_t l = threadIdx.x, v = mix(l), *o = out + l * 12u;
    o[0] = __shfl_sync(~0u, v, (int)(l * 7u));
    o[1] = __shfl_up_sync(~0u, v, 3);
    o[2] = __shfl_down_sync(~0u, v, 5, 16);
    o[3] = __shfl_xor_sync(~0u, v, 9);
    o[4] = (uint32_t)(__shfl_sync(~0u, mix64(l), 31 - (int)l) >> 20);
    o[5] = __float_as_uint(__shfl_xor_sync(~0u, (float)l * 0.5f, 1));
    o[6] = __ballot_sync(~0u, v & 1u) ^ (__all_sync(~0u, v != 0) ? 1u : 0u)
           ^ (__any_sync(~0u, l == 40u) ? 2u : 0u);
    o[7] = __match_any_sync(~0u, v & 3u);
    int same;
    o[8] = __match_all_sync(~0u, l >> 6, &same);
    o[8] += (uint32_t)same;
    o[9] = __reduce_add_sync(~0u, v) ^ __reduce_min_sync(~0u, v) ^ (uint32_t)__reduce_max_sync(~0u, (int)v);
    o[10] = __reduce_xor_sync(~0u, v) + __reduce_and_sync(~0u, v | 7u) + __reduce_or_sync(~0u, v & 0xff0u);
    uint32_t d = 0;
    if (v & 1u)
        d = __shfl_sync(__activemask(), v, __ffs((int)__activemask()) - 1);
    else {
        for (uint32_t k = 0; k < (v >> 8 & 7u); k++) d += mix(k);
        __syncwarp(__match_any_sync(__activemask(), 1));
        d ^= __popc(__activemask());
    }
    __syncwarp();
    o[11] = v & 1u ? d : d & 0xffffff00u;
}

extern "C" __global__ void tiles(uint32_t *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    cg::thread_block_tile<4> four = cg::tiled_partition<4>(warp);
    uint32_t t = threadIdx.x, v = mix(t) & 0xffffu, *o = out + t * 6u;
    o[0] = cg::reduce(warp, v, cg::plus<uint32_t>());
    o[1] = cg::reduce(four, v, cg::greater<uint32_t>());
    o[2] = cg::exclusive_scan(warp, v);
    o[3] = four.meta_group_rank() * 100u + four.thread_rank() + four.shfl_xor(v, 1) * 1000u;
    o[4] = 0;
    if (v % 3u == 0) {
        cg::coalesced_group g = cg::coalesced_threads();
        o[4] = g.size() * 1000u + g.thread_rank() + cg::reduce(g, v, cg::plus<uint32_t>()) * 100000u;
    }
    auto odd = cg::binary_partition(warp, (v & 1u) != 0);
    o[5] = odd.size() * 64u + odd.thread_rank();
    block.sync();
}

// Tiles of more than a warp work through the system's part of shared memory.
extern "C" __global__ void big_tiles(uint32_t *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<64> t = cg::tiled_partition<64>(block);
    uint32_t r = (uint32_t)block.thread_rank(), v = mix(r) & 0xffffu;
    out[2 * r] = cg::reduce(t, v, cg::plus<uint32_t>());
    t.sync();
    out[2 * r + 1] = cg::inclusive_scan(t, v);
}

// All blocks meet, again and again.
extern "C" __global__ void grid_steps(uint32_t *data, uint32_t steps)
{
    cg::grid_group grid = cg::this_grid();
    uint32_t i = (uint32_t)grid.thread_rank(), n = (uint32_t)grid.size();
    for (uint32_t s = 0; s < steps; s++) {
        uint32_t v = data[(s & 1u) * n + (i + 1u) % n] * 3u + data[(s & 1u) * n + (i + n - 33u) % n] + s;
        data[(~s & 1u) * n + i] = v;
        grid.sync();
    }
}
