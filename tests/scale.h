/* A kernel of any length with some of everything: arithmetic, memory, loops, ifs, variables, barriers,
   shuffles. What is done with it is timed and its memory counted; for tests/builder/scale.c and the bench.
   Include behind ptxgen.h. */
#ifndef SCALE_H
#define SCALE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An allocator that counts. */
typedef struct scale_memory {
    size_t bytes, peak, calls;
} scale_memory;
static void *scale_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    scale_memory *memory = (scale_memory *)user;
    memory->bytes += new_size - old_size;
    if (memory->bytes > memory->peak) memory->peak = memory->bytes;
    memory->calls += new_size != 0;
    if (new_size) return realloc(block, new_size);
    free(block);
    return NULL;
}

enum { SCALE_BUILD, SCALE_TEXT, SCALE_PRESSURE, SCALE_LOCATE, SCALE_STEPS };
static const char *const scale_names[SCALE_STEPS] = {"build", "verify and print", "pressure", "locate"};

/* About 30 instructions. Nothing of a round is used in a later one but `sum` and the counters. */
static void scale_round(ptx_kernel *k, uint32_t round, ptx_val data, ptx_val mine, ptx_val tid, ptx_var sum) {
    ptx_val x, y, i;
    ptx_var best;
    x = ptx_ld(k, PTX_F32, ptx_at(data, 4 * (int64_t)(round % 512)));
    y = ptx_fma(k, x, ptx_f32(0.5), x);
    best = ptx_var_new(k, y);
    ptx_if(k, ptx_setp(k, PTX_GT, y, ptx_f32(round)));
    ptx_set(k, best, ptx_mul(k, y, x));
    if (round % 3 == 0) {
        ptx_else(k);
        ptx_set(k, best, ptx_max(k, y, x));
    }
    ptx_end(k);
    i = ptx_for(k, ptx_u32(0), ptx_u32(8), ptx_u32(1));
    ptx_st(k, PTX_F32, ptx_at(mine, 0), ptx_get(k, best));
    ptx_bar_sync(k, ptx_imm(0));
    y = ptx_ld(k, PTX_F32, ptx_at(mine, 4));
    ptx_set(k, sum, ptx_add(k, ptx_get(k, sum), y));
    ptx_bar_sync(k, ptx_imm(0));
    ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, data, ptx_xor(k, i, tid), 4), 0), ptx_shl(k, i, ptx_imm(2)));
    ptx_end(k);
    y = ptx_as(ptx_get(k, best), PTX_B32);
    y = ptx_as(ptx_shfl_bfly(k, y, ptx_imm(1), ptx_imm(31), ptx_b32(0xffffffff)), PTX_F32);
    ptx_st(k, PTX_F32, ptx_at(data, 4 * (int64_t)(round % 512)), ptx_sub(k, y, x));
}

static ptx_kernel *scale_build(ptx_module *m, uint32_t instructions) {
    ptx_kernel *k = ptx_entry(m, "scale");
    ptx_val data = ptx_param_ptr(k, "data", PTX_GLOBAL), shared = ptx_shared(k, "buffer", PTX_F32, 264, 16);
    ptx_val tid = ptx_tid_x(k), mine = ptx_ptr_add(k, shared, tid, 4);
    ptx_var sum = ptx_var_new(k, ptx_mov(k, ptx_f32(0)));
    uint32_t round;
    for (round = 0; round < instructions / 34; round++) scale_round(k, round, data, mine, tid, sum);
    ptx_st(k, PTX_F32, ptx_at(data, 0), ptx_get(k, sum));
    ptx_ret(k);
    return k;
}

static double scale_now(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Seconds of processor time for each step, `kernels` times over; the instructions of one kernel, 0 on an
   error. */
static uint32_t scale_run(ptx_module *m, uint32_t instructions, uint32_t kernels, double *seconds) {
    ptx_entry_info info;
    ptx_pressure_info pressure;
    ptx_place place;
    uint32_t n, step, line;
    size_t length;
    double t[SCALE_STEPS + 1], built, printed;
    int ok;
    memset(&info, 0, sizeof info);
    for (step = 0; step < SCALE_STEPS; step++) seconds[step] = 0;
    for (n = 0; n < kernels; n++) {
        const char *text, *at;
        ptx_module_reset(m);
        t[0] = scale_now();
        scale_build(m, instructions);
        t[1] = scale_now();
        built = t[1] - t[0];
        text = ptx_text(m, &length);
        printed = scale_now() - t[1];
        if (!text) return 0;
        for (line = 0, at = text; *at; at++) line += *at == '\n';
        line -= 1; /* the ret */
        t[2] = scale_now();
        ok = ptx_pressure(m, 0, &pressure);
        t[3] = scale_now();
        if (!ok) return 0;
        ok = ptx_locate(m, line, &place);
        t[4] = scale_now();
        ptx_entry_get(m, 0, &info);
        if (!ok) return 0;
        t[1] = t[2] - printed; /* without the count of the lines */
        seconds[SCALE_BUILD] += built;
        for (step = SCALE_TEXT; step < SCALE_STEPS; step++) seconds[step] += t[step + 1] - t[step];
    }
    return info.instructions;
}
#endif
