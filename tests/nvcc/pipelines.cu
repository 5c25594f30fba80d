// C = A B^T of f16 matrices on sm_90a by warp specialisation: one warpgroup fetches by TMA into a ring of
// stages, others multiply by wgmma. Four schedules; a kernel's WRONG is its mistake, 0 none: what the CPU
// driver has to find says tests/driver/nvcc.c.
#include <cuda.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define INLINE static __device__ __forceinline__
enum { STAGES = 3, DEPTH = 64 }; // of K, in elements: 128 bytes, one row of the swizzle's pattern

struct __align__(1024) ring {
    __half a[STAGES][128 * DEPTH], b[STAGES][64 * DEPTH];
    float out[2][64 * 64];
    uint64_t full[STAGES], empty[STAGES], turn[2][2];
};
extern __shared__ unsigned char raw[];
INLINE ring &the_ring() { return *(ring *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023); }

INLINE uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

// -- mbarriers --
INLINE void make(uint64_t *b, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(count) : "memory");
}
INLINE void publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
INLINE void expect(uint64_t *b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(bytes)
                 : "memory");
}
INLINE void arrive(uint64_t *b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory");
}
INLINE void arrive_in(uint64_t *b, uint32_t block) {
    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}" ::"r"(at(b)),
                 "r"(block)
                 : "memory");
}
INLINE void wait(uint64_t *b, uint32_t parity) {
    asm volatile(
        "{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra AGAIN;\n}" ::"r"(at(b)),
        "r"(parity)
        : "memory");
}

// -- copies --
INLINE void fetch(void *to, const CUtensorMap *map, uint64_t *b, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
        "[%2];" ::"r"(at(to)),
        "l"(map), "r"(at(b)), "r"(x), "r"(y)
        : "memory");
}
INLINE void fetch_for(void *to, const CUtensorMap *map, uint64_t *b, int x, int y, uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(at(to)),
        "l"(map), "r"(at(b)), "r"(x), "r"(y), "h"(blocks)
        : "memory");
}
INLINE void put(const CUtensorMap *map, const void *from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(at(from)), "r"(x), "r"(y)
                 : "memory");
}
INLINE void add(const CUtensorMap *map, const void *from, int x, int y) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(at(from)), "r"(x), "r"(y)
                 : "memory");
}
INLINE void puts_have_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
INLINE void puts_are_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
INLINE void to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// -- threads --
INLINE void meet(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
INLINE void let_pass(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
INLINE void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
INLINE uint32_t rank() {
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
INLINE bool elected() {
    uint32_t r;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(r));
    return r;
}
template <int N> INLINE void give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> INLINE void take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }

// -- products --
INLINE void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> INLINE void products_left() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
INLINE uint64_t described(const void *p) // rows of 128 bytes, swizzled
{
    return (uint64_t)(at(p) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}
#define EIGHT(c, k)                                                                                          \
    "+f"(c[k]), "+f"(c[k + 1]), "+f"(c[k + 2]), "+f"(c[k + 3]), "+f"(c[k + 4]), "+f"(c[k + 5]),              \
        "+f"(c[k + 6]), "+f"(c[k + 7])
INLINE void multiply(float (&c)[32], uint64_t a, uint64_t b) // 64 x 64 x 16
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1, 0, 0;"
                 : EIGHT(c, 0), EIGHT(c, 8), EIGHT(c, 16), EIGHT(c, 24)
                 : "l"(a), "l"(b));
}
INLINE void multiply_stage(float (&c)[32], const __half *a, const __half *b) {
    for (int k = 0; k < DEPTH / 16; k++) multiply(c, described(a) + 2 * k, described(b) + 2 * k);
}
// Element i of a thread's part of 64 x 64.
INLINE int row_of(int t, int i) { return t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8; }
INLINE int column_of(int t, int i) { return (i >> 2) * 8 + t % 4 * 2 + (i & 1); }
INLINE void leave(float *out, const float (&c)[32], int t) {
    for (int i = 0; i < 32; i++) out[row_of(t, i) * 64 + column_of(t, i)] = c[i];
}
INLINE void zero(float (&c)[32]) {
    for (int i = 0; i < 32; i++) c[i] = 0;
}

struct sizes {
    int m, n, k;
};
#define MAPS                                                                                                 \
    const __grid_constant__ CUtensorMap A, const __grid_constant__ CUtensorMap B,                            \
        const __grid_constant__ CUtensorMap C
// The stages in the order in which all of a block go through them.
struct place {
    int stage;
    uint32_t parity;
    __device__ explicit place(int i) : stage(i % STAGES), parity(i / STAGES & 1) {}
};

// Two groups multiply the halves of a tile of 128 x 64; one product stays in flight; C goes out by TMA.
template <int WRONG>
INLINE void cooperative(const CUtensorMap *A, const CUtensorMap *B, const CUtensorMap *C, sizes n) {
    ring &s = the_ring();
    int group = (int)threadIdx.x / 128 - 1, t = threadIdx.x % 128, wide = n.n / 64, tiles = n.m / 128 * wide,
        i = 0;
    if (threadIdx.x == 0) {
        for (int k = 0; k < STAGES; k++) make(&s.full[k], 1), make(&s.empty[k], 2);
        publish();
    }
    if (WRONG != 1) __syncthreads();
    if (group < 0) {
        if (WRONG != 2) give<40>();
        if (t) return;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
            for (int k = 0; k < n.k; k += DEPTH, i++) {
                place p(i);
                if (WRONG != 3) wait(&s.empty[p.stage], p.parity ^ 1);
                expect(&s.full[p.stage], (WRONG == 4 ? 128 : WRONG == 5 ? 193 : 192) * DEPTH * 2);
                fetch(s.a[p.stage], A, &s.full[p.stage], k, tile / wide * 128);
                fetch(s.b[p.stage], B, &s.full[p.stage], k, tile % wide * 64);
            }
        return;
    }
    if (WRONG == 6) {
        if (group || t < 96) take<240>();
    } else
        take<WRONG == 7 ? 248 : 232>();
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float c[32];
        zero(c);
        for (int k = 0; k < n.k; k += DEPTH, i++) {
            place p(i), before(i ? i - 1 : 0);
            if (WRONG != 8) wait(&s.full[p.stage], p.parity);
            if (WRONG != 9) begin();
            multiply_stage(c, s.a[p.stage] + group * 64 * DEPTH, s.b[p.stage]);
            commit();
            products_left<1>();
            if (WRONG == 10) {
                if (t == 0) arrive(&s.empty[p.stage]);
            } else if (k && t == 0)
                arrive(&s.empty[before.stage]);
        }
        if (WRONG != 11) products_left<0>();
        if (WRONG != 10 && t == 0) arrive(&s.empty[place(i - 1).stage]);
        if (WRONG != 12) {
            if (t == 0) puts_have_read();
            meet(1 + group, 128);
        }
        leave(s.out[group], c, t);
        if (WRONG != 13) to_copies();
        meet(1 + group, 128);
        if (t == 0) put(C, s.out[group], tile % wide * 64, tile / wide * 128 + group * 64);
    }
    if (WRONG != 14 && t == 0) puts_are_done();
}

// Each group has a tile of 64 x 64 for itself; they take turns, for the products and for the way out.
template <int WRONG>
INLINE void alternating(const CUtensorMap *A, const CUtensorMap *B, const CUtensorMap *C, sizes n) {
    ring &s = the_ring();
    int group = (int)threadIdx.x / 128 - 1, t = threadIdx.x % 128, wide = n.n / 64, tiles = n.m / 64 * wide;
    int steps = n.k / DEPTH, i = 0;
    if (threadIdx.x == 0) {
        for (int k = 0; k < STAGES; k++) make(&s.full[k], 1), make(&s.empty[k], 1);
        for (int k = 0; k < 4; k++) make(&s.turn[k / 2][k % 2], 128);
        publish();
    }
    __syncthreads();
    if (group < 0) {
        give<24>();
        if (t >= 32 || !elected()) return;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
            for (int k = 0; k < n.k; k += DEPTH, i++) {
                place p(i);
                wait(&s.empty[p.stage], p.parity ^ 1);
                expect(&s.full[p.stage], 128 * DEPTH * 2);
                fetch(s.a[p.stage], A, &s.full[p.stage], k, tile / wide * 64);
                fetch(s.b[p.stage], B, &s.full[p.stage], k, tile % wide * 64);
            }
        return;
    }
    take<240>();
    int round = 0;
    for (int tile = blockIdx.x + group * gridDim.x; tile < tiles; tile += 2 * gridDim.x, round++) {
        uint32_t mine = (round & 1) ^ (group == 0); // the first group's first turn is open
        float c[32];
        zero(c);
        if (WRONG != 1) wait(&s.turn[0][group], mine);
        for (int k = 0; k < steps; k++) {
            place p((2 * round + group) * steps + k);
            wait(&s.full[p.stage], p.parity);
            begin();
            multiply_stage(c, s.a[p.stage], s.b[p.stage]);
            commit();
            products_left<0>();
            if (t == 0 && (WRONG != 2 || k)) arrive(&s.empty[p.stage]);
        }
        arrive(&s.turn[0][group ^ 1]);
        wait(&s.turn[1][group], mine);
        leave(s.out[0], c, t);
        to_copies();
        meet(1 + group, 128);
        if (t == 0) {
            put(C, s.out[0], tile % wide * 64, tile / wide * 64);
            if (WRONG != 3) puts_have_read();
        }
        meet(1 + group, 128);
        if (WRONG != 4 || t < 64) arrive(&s.turn[1][group ^ 1]);
    }
    if (t == 0) puts_are_done();
}

// A cluster of two blocks, one above the other: each fetches half of B for both.
template <int WRONG>
INLINE void shared_columns(const CUtensorMap *A, const CUtensorMap *B, const CUtensorMap *C, sizes n) {
    ring &s = the_ring();
    int t = threadIdx.x % 128, half = (int)rank(), wide = n.n / 64, tiles = n.m / 256 * wide, i = 0;
    if (threadIdx.x == 0) {
        for (int k = 0; k < STAGES; k++) make(&s.full[k], 1), make(&s.empty[k], 2);
        publish();
    }
    if (WRONG == 1)
        __syncthreads();
    else
        meet_cluster();
    if (threadIdx.x < 128) {
        give<40>();
        for (int tile = blockIdx.x / 2; t == 0 && tile < tiles; tile += gridDim.x / 2)
            for (int k = 0; k < n.k; k += DEPTH, i++) {
                place p(i);
                wait(&s.empty[p.stage], p.parity ^ 1);
                expect(&s.full[p.stage], 192 * DEPTH * 2);
                fetch(s.a[p.stage], A, &s.full[p.stage], k, (tile / wide * 2 + half) * 128);
                fetch_for(s.b[p.stage] + half * 32 * DEPTH, B, &s.full[p.stage], k,
                          tile % wide * 64 + half * 32, 3);
            }
    } else {
        take<232>();
        for (int tile = blockIdx.x / 2; tile < tiles; tile += gridDim.x / 2) {
            float c[2][32];
            zero(c[0]);
            zero(c[1]);
            for (int k = 0; k < n.k; k += DEPTH, i++) {
                place p(i);
                wait(&s.full[p.stage], p.parity);
                begin();
                multiply_stage(c[0], s.a[p.stage], s.b[p.stage]);
                multiply_stage(c[1], s.a[p.stage] + 64 * DEPTH, s.b[p.stage]);
                commit();
                products_left<0>();
                if (t < 2) arrive_in(&s.empty[p.stage], WRONG == 2 ? half : t);
            }
            for (int j = 0; j < 2; j++) {
                if (t == 0) puts_have_read();
                meet(1, 128);
                leave(s.out[j], c[j], t);
                to_copies();
                meet(1, 128);
                if (t == 0) put(C, s.out[j], tile % wide * 64, (tile / wide * 2 + half) * 128 + j * 64);
            }
        }
        if (t == 0) puts_are_done();
    }
    if (WRONG != 3) {
        __syncwarp();
        meet_cluster();
    }
}

// As cooperative, but the groups begin their products in turn, by barriers with numbers, and C is added to.
template <int WRONG>
INLINE void in_turn(const CUtensorMap *A, const CUtensorMap *B, const CUtensorMap *C, sizes n) {
    ring &s = the_ring();
    int group = (int)threadIdx.x / 128 - 1, t = threadIdx.x % 128, wide = n.n / 64, tiles = n.m / 128 * wide,
        i = 0;
    if (threadIdx.x == 0) {
        for (int k = 0; k < STAGES; k++) make(&s.full[k], 1), make(&s.empty[k], 8);
        publish();
    }
    __syncthreads();
    if (group < 0) {
        give<24>();
        for (int tile = blockIdx.x; t < 32 && tile < tiles; tile += gridDim.x)
            for (int k = 0; k < n.k; k += DEPTH, i++) {
                place p(i);
                wait(&s.empty[p.stage], p.parity ^ 1);
                if (elected()) {
                    expect(&s.full[p.stage], 192 * DEPTH * 2);
                    fetch(s.a[p.stage], A, &s.full[p.stage], k, tile / wide * 128);
                    fetch(s.b[p.stage], B, &s.full[p.stage], k, tile % wide * 64);
                }
                __syncwarp();
            }
        return;
    }
    take<240>();
    if (group) let_pass(4, 256); // the first group goes first
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float c[32];
        zero(c);
        for (int k = 0; k < n.k; k += DEPTH, i++) {
            place p(i);
            bool last = tile + (int)gridDim.x >= tiles && k + DEPTH >= n.k;
            wait(&s.full[p.stage], p.parity);
            meet(4 + group, 256);
            begin();
            multiply_stage(c, s.a[p.stage] + group * 64 * DEPTH, s.b[p.stage]);
            commit();
            if (!group || !last) let_pass(5 - group, 256);
            if (WRONG != 1) products_left<0>();
            if (t % 32 == 3) arrive(&s.empty[p.stage]);
        }
        if (WRONG == 1) products_left<0>();
        if (t == 64) puts_have_read();
        meet(1 + group, 128);
        leave(s.out[group], c, t);
        to_copies();
        if (WRONG != 2) meet(1 + group, 128);
        if (t == 64) add(C, s.out[group], tile % wide * 64, tile / wide * 128 + group * 64);
    }
    if (t == 64) puts_are_done();
}

#define KERNEL(schedule, wrong)                                                                              \
    extern "C" __global__ void __launch_bounds__(384, 1) schedule##_##wrong(MAPS, sizes n) {                 \
        schedule<wrong>(&A, &B, &C, n);                                                                      \
    }
#define PAIR(schedule, wrong)                                                                                \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)                           \
        schedule##_##wrong(MAPS, sizes n) {                                                                  \
        schedule<wrong>(&A, &B, &C, n);                                                                      \
    }
KERNEL(cooperative, 0)
KERNEL(cooperative, 1)
KERNEL(cooperative, 2)
KERNEL(cooperative, 3)
KERNEL(cooperative, 4)
KERNEL(cooperative, 5)
KERNEL(cooperative, 6)
KERNEL(cooperative, 7)
KERNEL(cooperative, 8)
KERNEL(cooperative, 9)
KERNEL(cooperative, 10)
KERNEL(cooperative, 11)
KERNEL(cooperative, 12)
KERNEL(cooperative, 13)
KERNEL(cooperative, 14)
KERNEL(alternating, 0)
KERNEL(alternating, 1)
KERNEL(alternating, 2)
KERNEL(alternating, 3)
KERNEL(alternating, 4)
PAIR(shared_columns, 0)
PAIR(shared_columns, 1)
PAIR(shared_columns, 2)
PAIR(shared_columns, 3)
KERNEL(in_turn, 0)
KERNEL(in_turn, 1)
KERNEL(in_turn, 2)
