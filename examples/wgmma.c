/* wgmma - C = A B^T in bf16 on Hopper, the shortest whole kernel of its kind: one thread copies tiles by TMA
   into a ring of stages, two warpgroups multiply them, mbarriers pass the stages between them. docs/wgmma.md
   explains each step.
   cc -O2 examples/wgmma.c -o wgmma -ldl -lm

   Runs on a GPU of compute capability 9.0; without one: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./wgmma */
#include <math.h>
#include <stdio.h>

#define EXAMPLE "wgmma"
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/numbers.h"
#include "../tests/sim/ptxsim.h"
#include "example.h"

/* A tile of C: 128 x 128 elements, 64 rows for each of two consumer warpgroups. A stage: 128 rows of 64
   elements (128 bytes) of A, and as many of B. */
enum { TILE = 128, DEPTH = 64, STAGES = 4, CONSUMERS = 2, THREADS = 128 * (CONSUMERS + 1), BOX = 64 * 128 };
enum { STAGE = 4 * BOX, OUT = STAGES * STAGE, SHARED = OUT + 2 * CONSUMERS * BOX };

typedef struct product_args {
    uint64_t a, b, c;
    uint32_t depth, tiles, columns; /* columns: tiles of C side by side */
} product_args;

typedef struct product {
    ptx_val a, b, c, depth, tiles, columns; /* tensor maps and arguments */
    ptx_val stages, full, empty;            /* shared memory: the stages, two mbarriers for each */
    ptx_ring ring;                          /* the next stage, the parity of its phase */
    ptx_val thread, group, row, column;     /* group: of 128 threads; row, column: where the tile begins */
    ptx_var sums[TILE / 2];
} product;

static void for_each_tile(ptx_kernel *k, product *p) {
    ptx_val tile = ptx_for(k, ptx_ctaid_x(k), p->tiles, ptx_nctaid_x(k));
    p->row = ptx_mul(k, ptx_div(k, tile, p->columns), ptx_u32(TILE));
    p->column = ptx_mul(k, ptx_rem(k, tile, p->columns), ptx_u32(TILE));
}

/* One thread: fills each stage as soon as all consumer warps have released it. */
static void emit_loads(ptx_kernel *k, product *p) {
    ptx_val i = ptx_for(k, ptx_u32(0), p->depth, ptx_u32(DEPTH)), stage = ptx_get(k, p->ring.stage);
    ptx_val tile = ptx_ptr_add(k, p->stages, stage, STAGE), full = ptx_ptr_add(k, p->full, stage, 8);
    ptx_val empty = ptx_ptr_add(k, p->empty, stage, 8), parity = ptx_get(k, p->ring.parity);
    ptx_mbarrier_wait(k, empty, ptx_xor(k, parity, ptx_u32(1)));
    ptx_mbarrier_arrive_expect(k, full, ptx_u32(STAGE));
    ptx_tensor_load_2d(k, tile, p->a, i, p->row, full);
    ptx_tensor_load_2d(k, ptx_off(tile, 2 * BOX), p->b, i, p->column, full);
    ptx_ring_next(k, p->ring);
    ptx_end(k);
}

/* A warpgroup: 64 rows of the tile. While it waits for its product, the other warpgroup multiplies. */
static void emit_products(ptx_kernel *k, product *p) {
    ptx_val i = ptx_for(k, ptx_u32(0), p->depth, ptx_u32(DEPTH)), stage = ptx_get(k, p->ring.stage);
    ptx_val full = ptx_ptr_add(k, p->full, stage, 8), empty = ptx_ptr_add(k, p->empty, stage, 8), add;
    ptx_val b = ptx_ptr_add(k, p->stages, stage, STAGE), a = ptx_ptr_add(k, b, p->group, BOX);
    ptx_mbarrier_wait(k, full, ptx_get(k, p->ring.parity));
    a = ptx_wgmma_descriptor(k, a, 16, 1024, 128);
    b = ptx_wgmma_descriptor(k, ptx_off(b, 2 * BOX), 16, 1024, 128);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    for (uint32_t j = 0; j < DEPTH; j += 16) { /* 16 elements: 32 bytes, which a descriptor counts as 2 */
        add = ptx_setp(k, PTX_NE, ptx_add(k, i, ptx_u32(j)), ptx_u32(0)); /* the first product does not */
        ptx_wgmma_f32(k, PTX_BF16, PTX_BF16, TILE / 2, p->sums, a, b, add);
        a = ptx_add(k, a, ptx_u64(2)), b = ptx_add(k, b, ptx_u64(2));
    }
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
    ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
    ptx_if(k, ptx_setp(k, PTX_EQ, ptx_and(k, p->thread, ptx_u32(31)), ptx_u32(0)));
    ptx_mbarrier_arrive(k, empty);
    ptx_end(k);
    ptx_ring_next(k, p->ring);
    ptx_end(k);
}

/* The rounded sums go to shared memory as two boxes of 64 x 64, swizzled as in the stages, and from there by
   TMA, which leaves out what lies outside C. */
static void emit_epilogue(ptx_kernel *k, product *p) {
    ptx_val id = ptx_add(k, p->group, ptx_u32(1)); /* of the warpgroup's barrier; 0 is the block's */
    ptx_val out = ptx_ptr_add(k, ptx_off(p->stages, OUT), p->group, 2 * BOX);
    ptx_val swizzle = ptx_bfe(k, p->thread, ptx_u32(2), ptx_u32(3)), pair = ptx_and(k, p->thread, ptx_u32(3));
    ptx_val row = ptx_and(k, ptx_shr(k, p->thread, ptx_u32(1)), ptx_u32(48)); /* 16 rows for each warp */
    row = ptx_ptr_add(k, ptx_ptr_add(k, out, ptx_add(k, row, swizzle), 128), pair, 4);
    ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, ptx_imm(0)); /* the tile before has left shared memory */
    ptx_op2(k, PTX_BAR_SYNC, 0, id, ptx_imm(128));
    for (uint32_t i = 0; i < TILE / 4; i++) { /* 2 columns; 8 rows below; the next 8 columns */
        ptx_val low = ptx_get(k, p->sums[2 * i]), high = ptx_get(k, p->sums[2 * i + 1]);
        ptx_val to = ptx_ptr_add(k, row, ptx_xor(k, swizzle, ptx_u32(i / 2 % 8)), 16);
        pair = ptx_cvt_pair(k, PTX_BF16X2, high, low);
        ptx_st(k, PTX_BF16X2, ptx_at(to, i / 16 * BOX + i % 2 * 1024), pair);
    }
    ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0);
    ptx_op2(k, PTX_BAR_SYNC, 0, id, ptx_imm(128));
    ptx_if(k, ptx_setp(k, PTX_EQ, ptx_and(k, p->thread, ptx_u32(127)), ptx_u32(0)));
    p->row = ptx_mad(k, p->group, ptx_u32(64), p->row);
    ptx_tensor_store_2d(k, p->c, p->column, p->row, out);
    ptx_tensor_store_2d(k, p->c, ptx_add(k, p->column, ptx_u32(64)), p->row, ptx_off(out, BOX));
    ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
    ptx_end(k);
}

static void emit_product(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "product");
    ptx_val args = ptx_param_bytes(k, "args", sizeof(product_args), 8);
    product p;
    ptx_require_block(k, THREADS, 1, 1), ptx_max_registers(k, 168);
    p.a = ptx_param_map(k, "a"), p.b = ptx_param_map(k, "b"), p.c = ptx_param_map(k, "c");
    p.depth = ptx_ld_field(k, PTX_U32, args, product_args, depth);
    p.tiles = ptx_ld_field(k, PTX_U32, args, product_args, tiles);
    p.columns = ptx_ld_field(k, PTX_U32, args, product_args, columns);
    p.stages = ptx_shared_dynamic_aligned(k, 1024);
    p.full = ptx_shared(k, "full", PTX_U64, STAGES, 8), p.empty = ptx_shared(k, "empty", PTX_U64, STAGES, 8);
    p.ring = ptx_ring_new(k, STAGES);
    p.thread = ptx_tid_x(k), p.group = ptx_shr(k, p.thread, ptx_u32(7));
    ptx_if(k, ptx_setp(k, PTX_EQ, p.thread, ptx_u32(0)));
    for (int i = 0; i < STAGES; i++) {
        ptx_mbarrier_init(k, ptx_off(p.full, 8 * i), ptx_imm(1));
        ptx_mbarrier_init(k, ptx_off(p.empty, 8 * i), ptx_imm(4 * CONSUMERS)); /* a lane of each warp */
    }
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_if(k, ptx_setp(k, PTX_EQ, p.group, ptx_u32(CONSUMERS)));
    ptx_op1(k, PTX_SETMAXNREG_DEC, 0, ptx_imm(40));
    ptx_if(k, ptx_setp(k, PTX_EQ, p.thread, ptx_u32(128 * CONSUMERS)));
    for_each_tile(k, &p);
    emit_loads(k, &p);
    ptx_end(k);
    ptx_end(k);
    ptx_else(k);
    ptx_op1(k, PTX_SETMAXNREG_INC, 0, ptx_imm(232));
    for (int i = 0; i < TILE / 2; i++) p.sums[i] = ptx_var_new(k, ptx_f32(0));
    for_each_tile(k, &p);
    emit_products(k, &p);
    emit_epilogue(k, &p);
    ptx_end(k);
    ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, ptx_imm(0));
    ptx_end(k);
    ptx_ret(k);
}

enum { M = 300, N = 392, K = 328, BLOCKS = 5 }; /* N, K: multiples of 8, as TMA's rows have 16 bytes */
static uint16_t a[M * K], b[N * K], c[M * N];

int main(int argc, char **argv) {
    const command_line line = {"wgmma", "C = A B^T in bf16 on Hopper", NULL, 0, NULL, NULL, 0};
    static const uint32_t rows[3] = {M, N, M}, columns[3] = {K, K, N}, box[3] = {TILE, TILE, 64};
    int (*count)(ptxsim_counters *, size_t) = NULL, wrong = 0;
    product_args args = {0, 0, 0, K, (M + TILE - 1) / TILE * ((N + TILE - 1) / TILE), (N + TILE - 1) / TILE};
    ptx_module_desc desc = PTX_ZERO;
    ptx_plan plan = PTX_ZERO;
    ptxsim_counters n;
    uint64_t state = 1;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    if (!parse_command_line(&line, argc, argv)) return 2;
    must(cu, ptxcu_open(&cu, NULL));
    if ((ptxcu_device_info(cu)->target & 0xfff) != 90) {
        printf("wgmma: not run: %s has no compute capability 9.0\n", ptxcu_device_info(cu)->name);
        ptxcu_close(cu);
        return 0;
    }
    for (int i = 0; i < M * K; i++) a[i] = ref_to_bf16(uniform(&state));
    for (int i = 0; i < N * K; i++) b[i] = ref_to_bf16(uniform(&state));
    ptxcu_buffer out = device_bytes(cu, sizeof c);
    args.a = to_device(cu, a, sizeof a).address, args.b = to_device(cu, b, sizeof b).address;
    args.c = out.address;
    plan.launches = 1, plan.args_bytes = sizeof args, plan.maps = 3;
    plan.launch[0] = ptx_launch_1d(BLOCKS * THREADS, THREADS), plan.launch[0].shared_bytes = SHARED;
    for (int i = 0; i < 3; i++) { /* boxes of 64 columns; outside TMA loads zeros and stores nothing */
        ptx_tensor_map *map = &plan.map[i];
        map->address = 8u * (uint32_t)i, map->type = PTX_BF16, map->rank = 2, map->swizzle = 128;
        map->box[0] = 64, map->size[0].times = columns[i], map->stride[1].times = columns[i] * 2;
        map->box[1] = box[i], map->size[1].times = rows[i];
    }
    desc.target = PTX_SM_A(90);
    ptx_module *m = ptx_module_new(&desc);
    emit_product(m);
    must(cu, ptxcu_load(cu, m, &program));
    must(cu, ptxcu_run(cu, program, &plan, &args, sizeof args, NULL));
    must(cu, ptxcu_download(cu, c, out, 0, sizeof c, NULL));
    must(cu, ptxcu_sync(cu));
    for (int i = 0; i < M * N; i++) {
        double x = 0;
        for (int l = 0; l < K; l++) x += ref_from_bf16(a[i / N * K + l]) * ref_from_bf16(b[i % N * K + l]);
        /* half a unit of bf16; each wgmma cuts 17 terms below K by 2^-24 of K, and the sum by 2^-23 */
        wrong += !(fabs(ref_from_bf16(c[i]) - x) <= ldexp(fabs(x), -8) + (K + 15) / 16 * ldexp(K, -19));
    }
    printf("wgmma: %d x %d x %d on %s, %d wrong\n", M, N, K, ptxcu_device_info(cu)->name, wrong);
    void *symbol = ptxcu_symbol(cu, "ptxsim_counters_get"); /* the CPU driver counts */
    memcpy(&count, &symbol, sizeof symbol);
    if (count && !count(&n, sizeof n))
        printf("       %.0f instructions of warps, %.0f wgmma, %.0f bytes by TMA, %.0f bank conflicts\n",
               (double)n.warp_instructions, (double)n.tensor_operations / (2. * 64 * TILE * 16),
               (double)n.async_copy_bytes, (double)n.shared_bank_conflicts);
    ptx_module_free(m);
    free_device(cu);
    ptxcu_close(cu);
    return wrong != 0;
}
