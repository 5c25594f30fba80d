/* scan - the prefix sums of an array in one launch: y[i] = x[0] + ... + x[i]. Shows shuffles, votes, shared
   memory and barriers, and how blocks hand values to each other: by atomics and by memory order.
   cc -O2 examples/scan.c -o scan -ldl

   Each block sums a tile; its warp 0 then adds up the sums of the tiles before it, looking back from tile to
   tile ("Single-pass Parallel Prefix Scan with Decoupled Look-back", Merrill and Garland, 2016). Memory is
   read once and written once. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./scan */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "scan"
#include "example.h"

enum { THREADS = 256, WARPS = THREADS / 32, ITEMS = 8, TILE = THREADS * ITEMS };

/* State of a tile, one 64-bit word, so that readers see both halves or none: below, a sum; above, what it is
   the sum of. */
enum { NOTHING, OF_TILE, OF_ALL_UP_TO_TILE };

static ptx_val full_mask(void) { return ptx_u32(0xffffffffu); }

/* The sums of x over lanes 0 to this one, in `width` lanes: 32 or a lower power of two. */
static ptx_val sum_up_to_lane(ptx_kernel *k, ptx_val lane, ptx_val x, int width) {
    int distance;
    for (distance = 1; distance < width; distance *= 2) {
        ptx_val below = ptx_shfl_up(k, x, ptx_imm(distance), ptx_imm(0), full_mask());
        ptx_val is_there = ptx_setp(k, PTX_GE, lane, ptx_imm(distance));
        x = ptx_add(k, x, ptx_selp(k, below, ptx_imm(0), is_there));
    }
    return x;
}

/* The sum of x over all lanes, in each of them. */
static ptx_val sum_of_warp(ptx_kernel *k, ptx_val x) {
    int mask;
    for (mask = 16; mask; mask /= 2) {
        ptx_val other = ptx_shfl_bfly(k, x, ptx_imm(mask), ptx_imm(31), full_mask());
        x = ptx_add(k, x, other);
    }
    return x;
}

/* Lane 0 tells the other blocks a sum. */
static void publish(ptx_kernel *k, ptx_val lane, ptx_mem state, ptx_val sum, unsigned what) {
    ptx_val halves[2];
    halves[0] = sum, halves[1] = ptx_mov(k, ptx_u32(what));
    halves[0] = ptx_pack(k, PTX_U64, 2, halves);
    ptx_st_if(k, ptx_setp(k, PTX_EQ, lane, ptx_imm(0)), PTX_U64, ptx_with(state, PTX_RELAXED | PTX_GPU),
              halves[0]);
}

/* The sum of all tiles before `tile`. Lane 0 reads the state of the tile before, lane 1 the one before that
   ...; so on, 32 tiles further back, until a lane meets a sum of all up to its tile. */
static ptx_val look_back(ptx_kernel *k, ptx_val states, ptx_val tile, ptx_val lane) {
    ptx_var sum = ptx_var_new(k, ptx_u32(0)), at, word;
    ptx_val nearest, value, half[2], is_total, mask;
    tile = ptx_as(tile, PTX_S32);
    at = ptx_var_new(k, ptx_sub(k, ptx_sub(k, tile, ptx_imm(1)), ptx_as(lane, PTX_S32)));
    word = ptx_var_new(k, ptx_u64(0));
    ptx_loop(k);
    {
        ptx_val here = ptx_get(k, at), exists = ptx_setp(k, PTX_GE, here, ptx_imm(0));
        ptx_mem state = ptx_with(ptx_elem(k, PTX_U64, states, here), PTX_RELAXED | PTX_GPU);
        ptx_val before_first = ptx_u64((uint64_t)OF_ALL_UP_TO_TILE << 32);
        ptx_loop(k); /* until all 32 tiles have a state */
        {
            ptx_val unknown;
            ptx_set(k, word, ptx_ld_if(k, exists, PTX_U64, state, before_first));
            unknown = ptx_setp(k, PTX_LT, ptx_get(k, word), ptx_u64((uint64_t)OF_TILE << 32));
            ptx_while(k, ptx_setp(k, PTX_NE, ptx_ballot(k, unknown, full_mask()), ptx_imm(0)));
        }
        ptx_end(k);
        ptx_unpack(k, PTX_U32, 2, ptx_get(k, word), half);
        is_total = ptx_setp(k, PTX_EQ, half[1], ptx_u32(OF_ALL_UP_TO_TILE));
        mask = ptx_ballot(k, is_total, full_mask());
        nearest = ptx_clz(k, ptx_brev(k, mask)); /* the lowest lane of the mask; 32 if there is none */
        value = ptx_selp(k, half[0], ptx_imm(0), ptx_setp(k, PTX_LE, lane, nearest));
        ptx_set(k, sum, ptx_add(k, ptx_get(k, sum), sum_of_warp(k, value)));
        ptx_set(k, at, ptx_sub(k, here, ptx_imm(32)));
        ptx_while(k, ptx_setp(k, PTX_EQ, mask, ptx_imm(0)));
    }
    ptx_end(k);
    return ptx_get(k, sum);
}

/* x and y have n elements, and memory for a multiple of 4. states: a word for each tile, and a counter after
   them; all zero. */
static void emit_scan(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "scan");
    ptx_val x = ptx_param_ptr(k, "x", PTX_GLOBAL), y = ptx_param_ptr(k, "y", PTX_GLOBAL);
    ptx_val states = ptx_param_ptr(k, "states", PTX_GLOBAL), tiles = ptx_param(k, "tiles", PTX_U32);
    ptx_val n = ptx_param(k, "n", PTX_U32);
    ptx_val warp_sums = ptx_shared(k, "warp_sums", PTX_U32, WARPS, 4);
    ptx_val shared_tile = ptx_shared(k, "tile", PTX_U32, 1, 4);
    ptx_val shared_sum = ptx_shared(k, "before", PTX_U32, 1, 4);
    ptx_val thread = ptx_tid_x(k), lane = ptx_and(k, thread, ptx_imm(31));
    ptx_val warp = ptx_shr(k, thread, ptx_imm(5));
    ptx_val value[ITEMS], tile, first, up_to_lane, before, is_last, is_later, inside[ITEMS / 4];
    ptx_mem earlier;
    int i;
    ptx_launch_bounds(k, THREADS, 0);

    /* Tiles are numbered in the order in which blocks start, so a block waits only for blocks that run. */
    ptx_if(k, ptx_setp(k, PTX_EQ, thread, ptx_imm(0)));
    {
        ptx_mem counter = ptx_elem(k, PTX_U64, states, tiles);
        ptx_st(k, PTX_U32, ptx_at(shared_tile, 0), ptx_atom(k, PTX_ATOM_ADD, counter, ptx_u32(1)));
    }
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    tile = ptx_ld(k, PTX_U32, ptx_at(shared_tile, 0));

    first = ptx_mul(k, ptx_mad(k, tile, ptx_imm(THREADS), thread), ptx_imm(ITEMS));
    for (i = 0; i < ITEMS / 4; i++) {
        ptx_val at = ptx_add(k, first, ptx_imm(4 * i));
        inside[i] = ptx_setp(k, PTX_LT, at, n);
        ptx_ld_vec_if(k, inside[i], PTX_U32, 4, ptx_elem(k, PTX_U32, x, at), ptx_u32(0), value + 4 * i);
    }
    for (i = 1; i < ITEMS; i++) value[i] = ptx_add(k, value[i], value[i - 1]);

    up_to_lane = sum_up_to_lane(k, lane, value[ITEMS - 1], 32);
    is_last = ptx_setp(k, PTX_EQ, lane, ptx_imm(31));
    ptx_st_if(k, is_last, PTX_U32, ptx_elem(k, PTX_U32, warp_sums, warp), up_to_lane);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_if(k, ptx_setp(k, PTX_LT, thread, ptx_imm(32))); /* warp 0 */
    {
        ptx_val is_warp = ptx_setp(k, PTX_LT, lane, ptx_imm(WARPS)), of_tile, of_warps;
        ptx_mem warp_sum = ptx_elem(k, PTX_U32, warp_sums, lane), state = ptx_elem(k, PTX_U64, states, tile);
        of_warps = ptx_ld_if(k, is_warp, PTX_U32, warp_sum, ptx_u32(0));
        of_warps = sum_up_to_lane(k, lane, of_warps, WARPS);
        ptx_st_if(k, is_warp, PTX_U32, warp_sum, of_warps);
        of_tile = ptx_shfl_idx(k, of_warps, ptx_imm(WARPS - 1), ptx_imm(31), full_mask());
        publish(k, lane, state, of_tile, OF_TILE);
        before = look_back(k, states, tile, lane);
        publish(k, lane, state, ptx_add(k, before, of_tile), OF_ALL_UP_TO_TILE);
        ptx_st_if(k, ptx_setp(k, PTX_EQ, lane, ptx_imm(0)), PTX_U32, ptx_at(shared_sum, 0), before);
    }
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));

    /* Before this thread's elements are those of the tiles, warps and lanes before it. */
    before = ptx_ld(k, PTX_U32, ptx_at(shared_sum, 0));
    earlier = ptx_at(ptx_ptr_add(k, warp_sums, warp, 4), -4);
    is_later = ptx_setp(k, PTX_NE, warp, ptx_imm(0));
    before = ptx_add(k, before, ptx_ld_if(k, is_later, PTX_U32, earlier, ptx_u32(0)));
    before = ptx_add(k, before, ptx_sub(k, up_to_lane, value[ITEMS - 1]));
    for (i = 0; i < ITEMS; i++) value[i] = ptx_add(k, value[i], before);
    for (i = 0; i < ITEMS / 4; i++) {
        ptx_if(k, inside[i]);
        ptx_st_vec(k, PTX_U32, 4, ptx_elem(k, PTX_U32, y, ptx_add(k, first, ptx_imm(4 * i))), value + 4 * i);
        ptx_end(k);
    }
    ptx_ret(k);
}

int main(int argc, char **argv) {
    uint32_t n = 1000003, tiles, sum = 0, wrong = 0, i, *x, *y;
    uint64_t seed = (uint64_t)time(NULL), state;
    const option options[] = {
        {"n", OPTION_U32, &n, 1, 1u << 30, NULL, "elements"},
        {"seed", OPTION_U64, &seed, 1, 9007199254740992.0, NULL, "of the random data"},
    };
    const command_line line = {
        EXAMPLE, "prefix sums in one launch", options, sizeof options / sizeof *options, NULL, NULL, 0};
    size_t bytes;
    ptxcu *cu = NULL;
    ptx_module *m = NULL;
    ptxcu_program *program = NULL;
    ptxcu_buffer dx, dy, states;
    ptx_launch launch;
    ptxcu_arg args[5];
    if (!parse_command_line(&line, argc, argv)) return 2;
    bytes = (size_t)(n + 3) / 4 * 16, tiles = (n + TILE - 1) / TILE;
    x = (uint32_t *)need(bytes), y = (uint32_t *)need(bytes);
    state = seed;
    for (i = 0; i < n; i++) x[i] = (uint32_t)(1e6 * (uniform(&state) + 1));

    must(cu, ptxcu_open(&cu, NULL));
    m = ptx_module_new(NULL);
    emit_scan(m);
    must(cu, ptxcu_load(cu, m, &program));
    ptx_module_free(m);
    dx = to_device(cu, x, bytes), dy = device_bytes(cu, bytes), states = device_bytes(cu, (tiles + 1) * 8);
    must(cu, ptxcu_fill32(cu, states, 0, 0, 2 * ((size_t)tiles + 1), NULL));
    launch = ptx_launch_1d((uint64_t)tiles * THREADS, THREADS);
    args[0] = ptxcu_arg_buffer(dx), args[1] = ptxcu_arg_buffer(dy), args[2] = ptxcu_arg_buffer(states);
    args[3] = ptxcu_arg_u32(tiles), args[4] = ptxcu_arg_u32(n);
    must(cu, ptxcu_launch(cu, program, &launch, args, 5, NULL));
    must(cu, ptxcu_download(cu, y, dy, 0, bytes, NULL));
    must(cu, ptxcu_sync(cu));

    for (i = 0; i < n; i++) sum += x[i], wrong += y[i] != sum;
    printf("scan on %s: %lu elements in %lu tiles, %lu wrong; seed %llu\n", ptxcu_device_info(cu)->name,
           (unsigned long)n, (unsigned long)tiles, (unsigned long)wrong, (unsigned long long)seed);
    free_device(cu);
    ptxcu_close(cu);
    free(x);
    free(y);
    return wrong != 0;
}
