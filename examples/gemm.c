/* gemm - a dense matrix product on tensor cores: D = act(alpha op(A) op(B) + beta C + bias).
   cc -O2 examples/gemm.c -o gemm -ldl -lm

     gemm [--m 256] [--n 256] [--k 512] [--type f16|bf16|f32|e4m3|e5m2|s8] [--out f32|f16|bf16]
          [--format plain|f32|q8_0|q4_k|iq2_xs|mxfp4|e4m3|...] [--trans-a 0] [--trans-b 1]
          [--precision exact|fast] [--factors none|tensor|row|block|square]
          [--alpha 1] [--beta 0] [--bias 0] [--activation none|relu|silu|gelu] [--batch 1] [--pad 0]
          [--samples 2000] [--repeat 3] [--seed N] [--plan 0] [--help]

   A is [m, k], with --trans-a 1 [k, m]; B is [k, n], with --trans-b 1 [n, k], as the weights of a linear
   layer lie. With a --format B is a matrix of such weights, [n, k], A is f16, bf16 or f32, and the operation
   is gemm, else matmul; weights in e4m3, e5m2 and s8 may have --factors. Prints device, plan, time, the bytes
   that must move and the operations; on the CPU driver those that were counted, on a GPU the rates beside
   what its clocks allow; and the largest error of some elements beside its bound. Exits with 1 when a result
   is wrong. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./gemm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY (PTXK_OP_GEMM | PTXK_OP_MATMUL) /* no others are compiled */
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/gemm.h"
#include "../tests/sim/ptxsim.h"
#define EXAMPLE "gemm"
#include "example.h"

static const struct element {
    uint32_t type;
    int number;      /* of reference/matmul.h */
    uint32_t factor; /* its products in the time of one of f16 on tensor cores, in quarters */
} elements[] = {{PTX_F16, REF_F16, 4},   {PTX_BF16, REF_BF16, 4}, {PTX_F32, REF_F32, 2},
                {PTX_E4M3, REF_E4M3, 8}, {PTX_E5M2, REF_E5M2, 8}, {PTX_S8, REF_S8, 8}};

/* A matrix of each product, rows `ld` elements apart, here. */
static unsigned char *make(int number, uint64_t count, uint64_t *state) {
    unsigned char *data = (unsigned char *)need(count * ref_number_bytes(number));
    uint64_t i;
    for (i = 0; i < count; i++) {
        double x = uniform(state);
        if (number < REF_E4M3)
            ref_put(data, (enum ref_format)number, (size_t)i, x);
        else if (number == REF_S8)
            data[i] = (unsigned char)(signed char)(int)(127.9 * x);
        else /* any number of at most 1 */
            data[i] = (unsigned char)((x < 0 ? 128 : 0) + (int)(fabs(x) * (number == REF_E4M3 ? 56 : 60)));
    }
    return data;
}

/* What the clocks of a GPU allow, in TFLOP/s and GB/s; 0: not known. The products of f16 for each clock and
   multiprocessor are as published. */
static void limits_of(ptxcu *cu, const ptxcu_device *device, uint32_t factor, double *products,
                      double *bytes) {
    static const uint32_t rates[][2] = {{75, 512},  {80, 1024},  {86, 512}, {89, 512},
                                        {90, 2048}, {100, 4096}, {120, 512}};
    int (*get)(int *, int, int) = NULL;
    void *symbol = ptxcu_symbol(cu, "cuDeviceGetAttribute");
    int khz = 0;
    size_t i;
    memcpy(&get, &symbol, sizeof symbol);
    *bytes = 2e3 * device->memory_clock_khz * (device->memory_bus_bits / 8) / 1e9;
    *products = 0;
    if (!get || get(&khz, 13 /* CU_DEVICE_ATTRIBUTE_CLOCK_RATE */, device->ordinal)) return;
    for (i = 0; i < sizeof rates / sizeof *rates; i++)
        if (rates[i][0] == (device->target & 0xfffu))
            *products = 2e3 * khz * rates[i][1] * device->sm_count * factor / 4 / 1e12;
}

/* The best time of some launches. The CPU driver's counters hold the last one. */
static double time_launches(ptxcu *cu, ptxcu_program *program, const ptx_plan *plan, const void *args,
                            size_t bytes, uint32_t repeat) {
    void (*reset)(void) = NULL;
    void *symbol = ptxcu_symbol(cu, "ptxsim_counters_reset");
    ptxcu_event begin, end;
    double best = 0;
    uint32_t i;
    memcpy(&reset, &symbol, sizeof symbol);
    must(cu, ptxcu_event_create(cu, &begin));
    must(cu, ptxcu_event_create(cu, &end));
    for (i = 0; i < repeat; i++) {
        float ms;
        if (reset) reset();
        must(cu, ptxcu_event_record(cu, begin, NULL));
        must(cu, ptxcu_run(cu, program, plan, args, bytes, NULL));
        must(cu, ptxcu_event_record(cu, end, NULL));
        must(cu, ptxcu_sync(cu));
        must(cu, ptxcu_event_elapsed_ms(cu, begin, end, &ms));
        if (i == 0 || ms < best) best = ms;
    }
    ptxcu_event_destroy(cu, begin);
    ptxcu_event_destroy(cu, end);
    return best;
}

/* What was counted or measured. by_tma: tiles are copied by TMA, which are no requests of sectors. factor:
   products on tensor cores in the time of one of f16, in quarters. */
static void print_rates(ptxcu *cu, double best_ms, uint32_t repeat, double bytes, double products,
                        int by_tma, uint32_t factor, const char *remark) {
    const ptxcu_device *device = ptxcu_device_info(cu);
    int (*get)(ptxsim_counters *, size_t) = NULL;
    void *symbol = ptxcu_symbol(cu, "ptxsim_counters_get"); /* the CPU driver counts what moves */
    ptxsim_counters c;
    double limit, bandwidth;
    memcpy(&get, &symbol, sizeof symbol);
    printf("time       %.3f ms, best of %u%s\n", best_ms, repeat,
           device->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    printf("bytes      %.3f MB must move (A, B, bias, factors, D)", bytes / 1e6);
    if (get && get(&c, sizeof c) == 0) {
        printf("; %.3f MB were counted in sectors of 32%s, of which\n"
               "           the L2 cache serves those that several blocks read\n",
               32e-6 * (double)(c.global_load_sectors + c.global_store_sectors)
                   + (by_tma ? 1e-6 * (double)c.async_copy_bytes : 0),
               by_tma ? " and by TMA" : "");
        printf(
            "operations %.3f million; %.3f million were counted on tensor cores; %llu of %llu wavefronts of\n"
            "           shared memory are bank conflicts\n",
            products / 1e6, (double)c.tensor_operations / 1e6, (unsigned long long)c.shared_bank_conflicts,
            (unsigned long long)c.shared_wavefronts);
        return;
    }
    limits_of(cu, device, factor, &limit, &bandwidth);
    printf(": %.1f GB/s of %.0f\n", bytes / best_ms / 1e6, bandwidth);
    printf("operations %.3f million: %.2f TFLOP/s", products / 1e6, products / best_ms / 1e9);
    if (limit > 0) printf(" of %.0f at the clock that the driver tells%s", limit, remark);
    printf("\n");
}

/* -- weights: y [m, n] = x [m, k] times the rows of W -- */

/* X(name): the formats that gemm takes, in the order of FORMAT_WORDS, where bytes follow. */
#define FORMATS(X)                                                                                           \
    X(F32) X(F16) X(BF16) X(Q4_0) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K) X(Q4_1) X(Q5_0) X(Q5_1) X(Q2_K) X(Q3_K)    \
    X(IQ4_NL) X(IQ4_XS) X(MXFP4) X(NVFP4) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S) X(IQ1_S)         \
    X(IQ1_M) X(TQ1_0) X(TQ2_0)
#define FORMAT_WORDS                                                                                         \
    "plain|f32|f16|bf16|q4_0|q8_0|q4_k|q5_k|q6_k|q4_1|q5_0|q5_1|q2_k|q3_k|iq4_nl|iq4_xs|mxfp4|nvfp4|"        \
    "iq2_xxs|iq2_xs|iq2_s|iq3_xxs|iq3_s|iq1_s|iq1_m|tq1_0|tq2_0|e4m3|e5m2|s8"

static const struct format {
    uint32_t id;
    int block; /* of reference/blocks.h, ... */
    int byte;  /* ... or of reference/matmul.h; else 0 */
} formats[] = {{0, 0, 0},
#define FORMAT(name) {PTXK_##name, REF_BLOCK_##name, 0},
               FORMATS(FORMAT)
#undef FORMAT
               {PTX_E4M3, REF_BLOCK_F32, REF_E4M3},
               {PTX_E5M2, REF_BLOCK_F32, REF_E5M2},
               {PTX_S8, REF_BLOCK_F32, REF_S8}};

/* Weights of about 0.03: numbers that are quantised, or, where codes are places in a table, any codes. */
static void make_row(int block, uint32_t k, float *row, unsigned char *to, uint64_t *state) {
    const struct ref_layout *l = ref_layout_of(block);
    size_t bytes = ref_row_bytes(block, k), i, j;
    int coded = block == REF_BLOCK_TQ1_0 || block == REF_BLOCK_TQ2_0
                || (block >= REF_BLOCK_IQ2_XXS && block <= REF_BLOCK_IQ1_M && block != REF_BLOCK_IQ4_NL
                    && block != REF_BLOCK_IQ4_XS);
    for (i = 0; i < k; i++) row[i] = (float)(0.05 * uniform(state));
    if (!coded) {
        ref_quantise(block, row, k, to);
        return;
    }
    for (i = 0; i < bytes; i++) to[i] = (unsigned char)(128 + 127.9 * uniform(state));
    for (i = 0; i < bytes; i += l->bytes) {
        uint16_t d = ref_to_f16((2 + uniform(state)) / l->most / 40);
        if (l->factor >= 0) ref_put_u16(to + i + l->factor, d);
        for (j = 0; l->factor < 0 && j < 4; j++) /* IQ1_M: four bits of it in every second byte */
            to[i + 49 + 2 * j] = (unsigned char)((to[i + 49 + 2 * j] & 15) | (d >> 4 * j & 15) << 4);
    }
}

typedef struct problem { /* of the command line */
    uint32_t m, n, k, format, type, out, precision, factors, bias, samples, repeat, seed, only;
} problem;

/* How many factors a matrix has. */
static uint64_t count_factors(uint32_t kind, uint64_t rows, uint64_t k) {
    uint64_t along = (k + 127) / 128;
    return kind == PTXK_FACTORS_TENSOR   ? 1
           : kind == PTXK_FACTORS_ROW    ? rows
           : kind == PTXK_FACTORS_BLOCK  ? rows * along
           : kind == PTXK_FACTORS_SQUARE ? (rows + 127) / 128 * along
                                         : 0;
}

static float *make_factors(uint64_t count, uint64_t *state) {
    float *f = (float *)need((count + 1) * sizeof *f);
    uint64_t i;
    for (i = 0; i < count; i++) f[i] = (float)(1 + 0.5 * uniform(state));
    return f;
}

/* What bounds the form for sm_90a on an H100 SXM (that for sm_100a on a B200), and the time that follows. The
   tensor cores take 4 (2) clocks for a column of a tile of 128 rows and 128 bytes of k. The L2 cache gives
   a multiprocessor some 32 (64) bytes a clock. A band of 16 rows of tiles is under way at once: memory is
   read for its rows and columns. */
static void print_model(const ptxk_matmul_desc *desc, const ptxk_matmul_shape *shape, const ptx_plan *plan,
                        uint32_t columns, int split, uint32_t parts, double rounds, int tensor_memory) {
    const double clock = tensor_memory ? 1.965e9 : 1.755e9, bandwidth = tensor_memory ? 8e12 : 3.35e12,
                 faster = tensor_memory ? 2 : 1,
                 bytes = desc->a_type == PTX_F32                               ? 4
                         : desc->a_type == PTX_F16 || desc->a_type == PTX_BF16 ? 2
                                                                               : 1;
    double cluster = plan->launch[0].cluster[0] ? plan->launch[0].cluster[0] : 1, share, high, wide, waves,
           best;
    double rows = ceil(shape->m / 128.0 / cluster) * cluster, tiles = rows * ceil((double)shape->n / columns);
    double steps = ceil(shape->k * bytes / 128),
           each = tiles * shape->batch / shape->sm_count * steps / clock;
    double tensor = each * 4 * columns / faster, memory, issue,
           l2 = each * (16384 + columns * 128 / cluster) / 32 / faster;
    issue = each
            * (tensor_memory    ? 100
               : columns == 256 ? 80
               : split          ? 232
                                : 49); /* machine instructions of a scheduler in a step */
    high = rows < 16 ? rows : 16, wide = shape->sm_count / high;
    share = (high * 128 + wide * columns) * shape->k * bytes * tiles * shape->batch / shape->sm_count;
    if (share < (double)plan->min_bytes || (double)plan->min_bytes < 4e7) share = (double)plan->min_bytes;
    memory = share / bandwidth;
    waves = tiles * shape->batch / shape->sm_count / rounds;
    best = tensor > l2 ? tensor : l2;
    if (memory > best) best = memory;
    best = best / waves
           + ((tensor_memory ? 1 : ceil(rounds)) * 6 * columns + 2000
              + (parts > 1 ? (parts + 1) * columns * 16.0 : 0))
                 / clock;
    printf(
        "model      on %s at %.3f GHz: tensor cores %.1f us, issue %.1f, L2 cache %.1f, memory %.1f, waves "
        "%.2f:\n           %.1f us, %.0f TFLOP/s\n",
        tensor_memory ? "a B200" : "an H100 SXM", clock / 1e9, tensor * 1e6, issue * 1e6, l2 * 1e6,
        memory * 1e6, waves, best * 1e6, 2e-12 * shape->m * shape->n * shape->k * shape->batch / best);
}

/* Prints the form, the tile and the blocks. Returns the parts of k of the tiles that are divided. */
static uint32_t print_plan(const ptxk_matmul_desc *desc, const ptxk_matmul_shape *shape,
                           const ptx_plan *plan) {
    const ptx_launch *l = &plan->launch[0];
    int tensor_memory = plan->maps && l->block[0] == 256,
        split = !tensor_memory
                && (desc->a_type == PTX_E4M3 || desc->a_type == PTX_E5M2
                    || desc->a_factors >= PTXK_FACTORS_BLOCK);
    uint32_t cluster = l->cluster[0] ? l->cluster[0] : 1, parts = 1;
    uint32_t high = l->entry == 1 ? 64 : 128,
             columns = tensor_memory || (l->entry == 2 && !split) ? 256 : high;
    uint64_t rows = (shape->m + high - 1) / high, tiles, divided, workers = shape->sm_count / cluster;
    tiles = (rows + cluster - 1) / cluster * ((shape->n + columns - 1) / columns) * shape->batch;
    divided = tiles % workers;
    if (plan->workspace_bytes)
        parts =
            (uint32_t)((plan->workspace_bytes - plan->zero_bytes) / (divided * cluster * high * columns * 4));
    printf("form       %s\n", tensor_memory ? "tcgen05 and tensor maps (sm_100a)"
                              : plan->maps  ? "wgmma and tensor maps (sm_90a)"
                                            : "mma.sync");
    printf("launch     %u blocks of %u threads in clusters of %u, tiles of %u x %u, ", l->grid[0],
           l->block[0], cluster, high, columns);
    if (parts > 1)
        printf("%lu of them in %u parts along k,\n           ", (unsigned long)(divided * cluster), parts);
    printf("%u bytes of shared memory\n", l->shared_bytes);
    if (plan->maps)
        print_model(desc, shape, plan, columns, split, parts,
                    (double)(tiles / workers) + (divided ? 1.0 / (double)parts : 0), tensor_memory);
    return parts;
}

static int run_weights(const problem *p) {
    static const uint32_t types[] = {PTX_F16, PTX_BF16, PTX_F32}, outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    const struct format *format = &formats[p->format];
    const int block = format->block;
    const char *remark = ", for one product of f16; x may take two";
    const enum ref_format in = (enum ref_format)elements[p->type].number, out = p->out == 0   ? REF_F32
                                                                                : p->out == 1 ? REF_F16
                                                                                              : REF_BF16;
    ptxk_gemm_desc desc;
    ptxk_gemm_shape shape;
    ptxk_gemm_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    ptxcu_buffer y_buffer;
    unsigned char *weights, *x, *y, *zeros;
    float *row, *bias, *factors;
    double *numbers;
    uint64_t state = (uint64_t)p->seed * 2 + 1, i, j, all, step, seen = 0, wrong = 0, row_bytes, factor_count;
    double worst = 0, worst_bound = 0, best_ms;
    progress checking = {"checking", 0, 0};
    ref_gemm r;
    uint32_t s;

    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    desc.format = format->id;
    desc.factors = p->factors;
    desc.x_type = types[p->type];
    desc.output_type = outs[p->out];
    desc.columns = ptxk_gemm_columns(p->m);
    desc.precision = p->precision ? PTXK_GEMM_FAST : PTXK_GEMM_EXACT;
    desc.flags = p->bias ? PTXK_GEMM_BIAS : 0;
    shape.m = p->m, shape.n = p->n, shape.k = p->k;
    shape.sm_count = 1, shape.target = PTX_SM(80);
    if (ptxk_gemm_plan(&desc, &shape, &plan, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    shape.sm_count = device->sm_count, shape.target = device->target;
    if (ptxk_gemm_plan(&desc, &shape, &plan, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u x %u x %u, %s by %s to %s, %s; seed %u\n", p->m, p->n, p->k,
           ptx_type_name((ptx_type)desc.x_type),
           format->byte ? ptx_type_name((ptx_type)desc.format) : ptxk_format_name(desc.format),
           ptx_type_name((ptx_type)desc.output_type), p->precision ? "fast" : "exact", p->seed);
    for (s = 0; s < plan.launches; s++)
        printf("launch %u   grid %u x %u x %u, block %u, %u bytes of shared memory\n", s,
               plan.launch[s].grid[0], plan.launch[s].grid[1], plan.launch[s].grid[2],
               plan.launch[s].block[0], plan.launch[s].shared_bytes);
    if (p->only) {
        ptxcu_close(cu);
        return 0;
    }
    must(cu, ptxcu_operation(cu, ptxk_operation_find("gemm"), &desc, &program));

    row_bytes = format->byte ? p->k : ref_row_bytes(block, p->k);
    row = (float *)need((uint64_t)p->k * sizeof *row);
    numbers = (double *)need((uint64_t)p->k * sizeof *numbers);
    if (format->byte) {
        weights = make(format->byte, row_bytes * p->n, &state);
    } else {
        weights = (unsigned char *)need(row_bytes * p->n);
        for (i = 0; i < p->n; i++) make_row(block, p->k, row, weights + i * row_bytes, &state);
    }
    factor_count = count_factors(p->factors, p->n, p->k);
    factors = make_factors(factor_count, &state);
    x = make((int)in, (uint64_t)p->m * p->k, &state);
    all = (uint64_t)p->m * p->n;
    y = (unsigned char *)need(all * ref_bytes(out));
    memset(y, 0xff, (size_t)all * ref_bytes(out));
    bias = (float *)need((uint64_t)p->n * sizeof *bias);
    for (i = 0; i < p->n; i++) bias[i] = (float)uniform(&state);
    memset(&args, 0, sizeof args);
    args.matrix[0].weights = to_device(cu, weights, (size_t)(row_bytes * p->n)).address;
    args.matrix[0].bias = to_device(cu, bias, p->n * sizeof *bias).address;
    y_buffer = to_device(cu, y, (size_t)all * ref_bytes(out));
    args.matrix[0].y = y_buffer.address;
    args.matrix[0].n = p->n;
    args.factors[0] = to_device(cu, factors, (size_t)(factor_count + 1) * sizeof *factors).address;
    args.x = to_device(cu, x, (size_t)p->m * p->k * ref_bytes(in)).address;
    zeros = (unsigned char *)need(plan.workspace_bytes + 1);
    args.workspace = to_device(cu, zeros, (size_t)plan.workspace_bytes + 1).address;
    free(zeros);
    args.m = p->m, args.k = p->k;
    if (ptxk_gemm_check(&desc, &args, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    best_ms = time_launches(cu, program, &plan, &args, sizeof args, p->repeat);
    must(cu, ptxcu_download(cu, y, y_buffer, 0, (size_t)all * ref_bytes(out), NULL));
    must(cu, ptxcu_sync(cu));
    if (desc.format == PTXK_F32) remark = p->precision ? "" : ", for one product of tf32; EXACT takes three";
    if (desc.format == PTXK_BF16) remark = ", for one product of bf16; x may take two or three";
    print_rates(cu, best_ms, p->repeat, (double)plan.min_bytes, 2.0 * p->m * p->n * p->k, 0,
                desc.format == PTXK_F32 ? 2 : 4, remark);

    memset(&r, 0, sizeof r);
    r.type = block, r.byte = format->byte, r.k = p->k, r.columns = desc.columns;
    r.w.data = weights, r.w.row = (size_t)row_bytes, r.w.factors = factors, r.w.kind = (int)p->factors;
    r.fast = p->precision == 1, r.warpgroups = device->target == PTX_SM_A(90), r.sm = device->target & 0xfffu;
    step = all / p->samples | 1;
    for (i = 0; i < all; i += step, seen++) {
        double bound, want, have, error;
        show_progress(&checking, i, all);
        for (j = 0; j < p->k; j++) numbers[j] = ref_get(x, in, (size_t)(i / p->n * p->k + j));
        want = ref_gemm_row(&r, (size_t)(i % p->n), numbers, &bound, NULL);
        bound += 30 * 0x1p-24 * fabs(want);
        if (p->bias) want += (double)bias[i % p->n];
        bound = 1.01 * bound + 3 * 0x1p-24 * fabs(want) + 1e-30;
        if (out == REF_F16) bound += 0x1p-11 * fabs(want) + 0x1p-25;
        if (out == REF_BF16) bound += 0x1p-8 * fabs(want);
        have = ref_get(y, out, (size_t)i);
        error = fabs(have - want);
        if (out == REF_F16 && fabs(want) > 65000) continue; /* infinite or not, either is right */
        if (!(error <= bound)) wrong++;
        keep_worst(error, bound, &worst, &worst_bound);
    }
    show_progress(&checking, 1, 1);
    printf(
        "error      %.3g at worst beside a bound of %.3g (derived from the arithmetic); %lu of %lu elements\n"
        "           wrong: %s\n",
        worst, worst_bound, (unsigned long)wrong, (unsigned long)seen, wrong ? "FAILED" : "ok");
    free(weights);
    free(x);
    free(y);
    free(row);
    free(numbers);
    free(factors);
    free(bias);
    free_device(cu);
    ptxcu_close(cu);
    return wrong != 0;
}

/* -- plain matrices -- */

int main(int argc, char **argv) {
    static const uint32_t outs[] = {PTX_F32, PTX_F16, PTX_BF16};
    uint32_t type = 0, out = 0, trans_a = 0, trans_b = 1, precision = 0, factors = 0, bias = 0,
             activation = 0;
    uint32_t format = 0, pad = 0, samples = 2000, repeat = 3, only = 0, seed = (uint32_t)time(NULL);
    float alpha = 1, beta = 0;
    ptxk_matmul_desc desc;
    ptxk_matmul_shape shape;
    const option options[] = {
        {"m", OPTION_U32, &shape.m, 0, 1 << 30, NULL, "rows of D"},
        {"n", OPTION_U32, &shape.n, 0, 1 << 30, NULL, "columns of D"},
        {"k", OPTION_U32, &shape.k, 0, 1 << 30, NULL, "columns of op(A), rows of op(B)"},
        {"type", OPTION_CHOICE, &type, 0, 0, "f16|bf16|f32|e4m3|e5m2|s8", "of A and B"},
        {"format", OPTION_CHOICE, &format, 0, 0, FORMAT_WORDS, "of B; A is f16, bf16, f32"},
        {"out", OPTION_CHOICE, &out, 0, 0, "f32|f16|bf16", "of C and D"},
        {"trans-a", OPTION_U32, &trans_a, 0, 1, NULL, "1: A is [k, m]"},
        {"trans-b", OPTION_U32, &trans_b, 0, 1, NULL, "1: B is [n, k]"},
        {"precision", OPTION_CHOICE, &precision, 0, 0, "exact|fast", "f32 as three tf32 products or one"},
        {"factors", OPTION_CHOICE, &factors, 0, 0, "none|tensor|row|block|square",
         "of A and B, with --format of B"},
        {"alpha", OPTION_F32, &alpha, -1e30, 1e30, NULL, "factor of the product"},
        {"beta", OPTION_F32, &beta, -1e30, 1e30, NULL, "factor of C"},
        {"bias", OPTION_U32, &bias, 0, 1, NULL, "1: a bias for each column"},
        {"activation", OPTION_CHOICE, &activation, 0, 0, "none|relu|silu|gelu", "of the result"},
        {"batch", OPTION_U32, &shape.batch, 1, 65536, NULL, "products"},
        {"pad", OPTION_U32, &pad, 0, 1 << 20, NULL, "elements between rows"},
        {"samples", OPTION_U32, &samples, 1, 1 << 30, NULL, "elements that are checked, at least"},
        {"repeat", OPTION_U32, &repeat, 1, 100000, NULL, "launches; the best time counts"},
        {"seed", OPTION_U32, &seed, 0, 0xffffffff, NULL, "of the random data"},
        {"plan", OPTION_U32, &only, 0, 1, NULL, "1: prints the plan, and runs nothing"},
    };
    const command_line line = {EXAMPLE, "a dense matrix product on tensor cores",
                               options, sizeof options / sizeof *options,
                               NULL,    NULL,
                               0};
    progress checking = {"checking", 0, 0};
    ptxk_matmul_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    ptxcu_buffer d_buffer;
    ref_matmul r;
    unsigned char *data[4], *zeros;
    float *bias_data, *factor_data[2];
    uint64_t rows[4], columns[4], ld[4], stride[4], count[2], state, i, all, step, wrong = 0, seen = 0;
    uint32_t s, parts = 1;
    int number, out_number;
    double worst = 0, worst_bound = 0, best_ms;

    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    shape.m = shape.n = 256, shape.k = 512, shape.batch = 1, shape.sm_count = 1;
    if (!parse_command_line(&line, argc, argv)) return 2;
    if (format) {
        problem p;
        int plain = trans_a || !trans_b || beta < 0 || beta > 0 || alpha < 1 || alpha > 1 || activation;
        if (plain || shape.batch > 1 || pad || type > 2) {
            fprintf(stderr,
                    "gemm: --format takes --m, --n, --k, --type f16, bf16 or f32, --out, --precision,\n"
                    "      --factors, --bias, --samples, --repeat, --seed and --plan\n");
            return 2;
        }
        p.m = shape.m, p.n = shape.n, p.k = shape.k, p.format = format, p.type = type, p.out = out;
        p.precision = precision, p.factors = factors, p.bias = bias, p.samples = samples, p.repeat = repeat;
        p.seed = seed, p.only = only;
        return run_weights(&p);
    }
    number = elements[type].number;
    out_number = out == 0 ? REF_F32 : out == 1 ? REF_F16 : REF_BF16;
    desc.a_type = desc.b_type = elements[type].type;
    desc.out_type = outs[out];
    desc.flags = (trans_a ? (uint32_t)PTXK_MATMUL_TRANS_A : 0) | (trans_b ? (uint32_t)PTXK_MATMUL_TRANS_B : 0)
                 | (bias ? (uint32_t)PTXK_MATMUL_BIAS : 0);
    desc.precision = precision;
    desc.activation = activation;
    desc.a_factors = desc.b_factors = factors;
    if (ptxk_matmul_plan(&desc, &shape, &plan, &why)) { /* before anything is opened: can this be done? */
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u x %u x %u, batch %u, %s%s to %s, A %s, B %s; seed %u\n", shape.m, shape.n, shape.k,
           shape.batch, ptx_type_name((ptx_type)desc.a_type),
           number != REF_F32 ? ""
           : precision       ? " as one product"
                             : " as three products",
           ptx_type_name((ptx_type)desc.out_type), trans_a ? "[k, m]" : "[m, k]",
           trans_b ? "[n, k]" : "[k, n]", seed);

    shape.sm_count = device->sm_count;
    shape.target = device->target;

    /* Random matrices, and poison where results belong. */
    state = (uint64_t)seed * 2 + 1;
    rows[0] = trans_a ? shape.k : shape.m, columns[0] = trans_a ? shape.m : shape.k;
    rows[1] = trans_b ? shape.n : shape.k, columns[1] = trans_b ? shape.k : shape.n;
    rows[2] = rows[3] = shape.m, columns[2] = columns[3] = shape.n;
    memset(&args, 0, sizeof args);
    for (s = 0; s < 4; s++) {
        ld[s] = columns[s] + pad;
        stride[s] = rows[s] * ld[s];
        (&args.a)[s] = 256;
        (&args.lda)[s] = (uint32_t)ld[s];
        (&args.a_stride)[s] = stride[s];
    }
    args.m = shape.m, args.n = shape.n, args.k = shape.k, args.batch = shape.batch;
    args.sm_count = shape.sm_count;
    args.alpha = alpha, args.beta = beta;
    /* The plan: form, tile, blocks and workspace follow from the sizes, the device, and from what tensor maps
       can describe. All addresses are multiples of 256. */
    shape.aligned = (uint32_t)ptxk_matmul_aligned(&desc, &args);
    (void)ptxk_matmul_plan(&desc, &shape, &plan, &why);
    if (plan.launches) parts = print_plan(&desc, &shape, &plan);
    if (only) {
        ptxcu_close(cu);
        return 0;
    }
    must(cu, ptxcu_operation(cu, ptxk_operation_find("matmul"), &desc, &program));
    for (s = 0; s < 4; s++) {
        int of = s < 2 ? number : out_number;
        uint64_t bytes;
        bytes = stride[s] * shape.batch * ref_number_bytes(of);
        data[s] = make(of, stride[s] * shape.batch, &state);
        if (s == 3) memset(data[s], 0xff, (size_t)bytes);
        d_buffer = to_device(cu, data[s], (size_t)bytes);
        (&args.a)[s] = d_buffer.address;
    }
    bias_data = (float *)need(((uint64_t)shape.n + 1) * sizeof *bias_data);
    for (i = 0; i < shape.n; i++) bias_data[i] = (float)uniform(&state);
    args.bias = to_device(cu, bias_data, ((size_t)shape.n + 1) * sizeof *bias_data).address;
    for (s = 0; s < 2; s++) {
        count[s] = count_factors(factors, s ? shape.n : shape.m, shape.k);
        factor_data[s] = make_factors(count[s] * shape.batch, &state);
        (&args.a_factors)[s] =
            to_device(cu, factor_data[s], (size_t)(count[s] * shape.batch + 1) * sizeof **factor_data)
                .address;
        (&args.a_factors_stride)[s] = count[s];
    }
    zeros = (unsigned char *)need(plan.workspace_bytes + 1);
    args.workspace = to_device(cu, zeros, (size_t)plan.workspace_bytes + 1).address;
    free(zeros);
    if (ptxk_matmul_check(&desc, &args, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }

    best_ms = time_launches(cu, program, &plan, &args, sizeof args, repeat);
    all = stride[3] * shape.batch * ref_number_bytes(out_number);
    if (all) must(cu, ptxcu_download(cu, data[3], d_buffer, 0, (size_t)all, NULL));
    must(cu, ptxcu_sync(cu));
    print_rates(cu, best_ms, repeat, (double)plan.min_bytes, 2.0 * shape.m * shape.n * shape.k * shape.batch,
                plan.maps != 0, elements[type].factor,
                number == REF_F32 && !precision ? ", for one product of tf32; EXACT takes three" : "");

    /* Some elements beside their own bounds. */
    memset(&r, 0, sizeof r);
    r.a.type = r.b.type = number;
    r.a.row = trans_a ? 1 : (size_t)ld[0], r.a.step = trans_a ? (size_t)ld[0] : 1;
    r.b.row = trans_b ? (size_t)ld[1] : 1, r.b.step = trans_b ? 1 : (size_t)ld[1];
    r.a.kind = r.b.kind = (int)factors;
    r.k = alpha < 0 || alpha > 0 ? shape.k : 0;
    r.depth = (uint32_t)((plan.maps ? 128 : 64) / ref_number_bytes(number));
    r.single = precision == 1;
    r.together = plan.maps && plan.launch[0].block[0] == 256; /* tensor memory */
    r.narrow = ((device->target & 0xfffu) == 89 || (plan.maps && !r.together))
               && (number == REF_E4M3 || number == REF_E5M2);
    all = (uint64_t)shape.m * shape.n * shape.batch;
    step = all / samples | 1;
    for (i = 0; i < all; i += step, seen++) {
        uint64_t b = i / ((uint64_t)shape.m * shape.n), row = i / shape.n % shape.m, column = i % shape.n;
        double bound, other = 0, want, old, have, error;
        show_progress(&checking, i, all);
        r.a.data = data[0] + b * stride[0] * ref_number_bytes(number);
        r.b.data = data[1] + b * stride[1] * ref_number_bytes(number);
        r.a.factors = factor_data[0] + b * count[0], r.b.factors = factor_data[1] + b * count[1];
        r.parts = 1;
        want = ref_matmul_element(&r, (size_t)row, (size_t)column, &bound);
        r.parts = parts; /* some tiles are in parts */
        if (parts > 1) (void)ref_matmul_element(&r, (size_t)row, (size_t)column, &other);
        bound = fabs((double)alpha) * (other > bound ? other : bound);
        want *= (double)alpha;
        old = beta < 0 || beta > 0 ? (double)beta
                                         * ref_get(data[2], (enum ref_format)out_number,
                                                   (size_t)(b * stride[2] + row * ld[2] + column))
                                   : 0;
        bound += 6 * 0x1p-24 * (fabs(want) + fabs(old) + 1);
        want += old + (bias ? (double)bias_data[column] : 0);
        want = ref_matmul_activate((int)activation, want, &bound);
        bound = 1.01 * bound + 1e-37;
        if (out_number == REF_F16) bound += 0x1p-11 * (fabs(want) + bound) + 0x1p-25;
        if (out_number == REF_BF16) bound += 0x1p-8 * (fabs(want) + bound);
        have = ref_get(data[3], (enum ref_format)out_number, (size_t)(b * stride[3] + row * ld[3] + column));
        error = fabs(have - want);
        if (out_number == REF_F16 && fabs(want) > 65000) continue; /* infinite or not, either is right */
        if (!(error <= bound)) wrong++;
        keep_worst(error, bound, &worst, &worst_bound);
    }
    show_progress(&checking, 1, 1);
    printf("error      %.3g at worst beside a bound of %.3g (derived from the arithmetic); %lu of %lu "
           "elements wrong: "
           "%s\n",
           worst, worst_bound, (unsigned long)wrong, (unsigned long)seen, wrong ? "FAILED" : "ok");
    for (s = 0; s < 4; s++) free(data[s]);
    for (s = 0; s < 2; s++) free(factor_data[s]);
    free(bias_data);
    free_device(cu);
    ptxcu_close(cu);
    return wrong != 0;
}
