/* q4k_gemv - a quantised matrix (GGUF's Q4_K) times a normalised vector: plan, launch, check against double.
   cc -O2 examples/q4k_gemv.c -o q4k_gemv -ldl -lm

     q4k_gemv [--n 4096] [--k 4096] [--file blocks.q4k] [--columns 1] [--precision exact|fast] [--norm 1]
              [--repeat 3] [--seed N] [--help]

   The file holds n * k / 256 blocks of 144 bytes as a GGUF file has them; without it the matrix is
   random. Prints device, plan, time, the bytes that must move and (on the CPU driver) those that did, and the
   largest error beside its tolerance. Exits with 1 when a result is wrong. Runs on the GPU; without one, on
   the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./q4k_gemv */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_GEMV /* no other is compiled */
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/gemv.h"
#include "../tests/sim/ptxsim.h"
#define EXAMPLE "q4k_gemv"
#include "example.h"

/* Random blocks: any bytes are scales and quants, but the two factors shall be numbers of a usual size. */
static void make_blocks(unsigned char *blocks, size_t bytes, uint64_t *state) {
    size_t i;
    for (i = 0; i < bytes; i++) blocks[i] = (unsigned char)(int)(128 + 127.9 * uniform(state));
    for (i = 0; i < bytes; i += REF_Q4_K_BYTES) {
        uint16_t d = ref_to_f16(0.002 + 0.001 * uniform(state)),
                 least = ref_to_f16(0.01 + 0.005 * uniform(state));
        blocks[i] = (unsigned char)d;
        blocks[i + 1] = (unsigned char)(d >> 8);
        blocks[i + 2] = (unsigned char)least;
        blocks[i + 3] = (unsigned char)(least >> 8);
    }
}

static int read_blocks(unsigned char *blocks, size_t bytes, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(blocks, 1, bytes, file) : 0;
    int more = file && got == bytes ? fgetc(file) != EOF : 0;
    int failed = !file || ferror(file) ? errno : 0;
    if (file) (void)fclose(file);
    if (got == bytes && !more && !failed) return 1;
    fprintf(stderr, "q4k_gemv: %s %s%s%s %lu bytes, n rows of k / 256 blocks of 144\n", path,
            failed ? "cannot be read: "
            : more ? "has more than"
                   : "has fewer than",
            failed ? strerror(failed) : "", failed ? "; it should have" : "", (unsigned long)bytes);
    return 0;
}

int main(int argc, char **argv) {
    static const uint32_t precisions[] = {PTXK_GEMV_EXACT, PTXK_GEMV_FAST};
    uint32_t precision = 0, norm = 1, repeat = 3, seed = (uint32_t)time(NULL);
    const char *path = NULL;
    ptxk_gemv_desc desc;
    ptxk_gemv_shape shape;
    const option options[] = {
        {"n", OPTION_U32, &shape.n, 1, 0xffffffff, NULL, "rows of the matrix"},
        {"k", OPTION_U32, &shape.k, 1, 0xffffffff, NULL, "columns of the matrix, a multiple of 256"},
        {"file", OPTION_TEXT, &path, 0, 0, NULL, "the matrix's blocks; random ones without it"},
        {"columns", OPTION_U32, &desc.columns, 1, 0xffffffff, NULL, "vectors x, at most 8"},
        {"precision", OPTION_CHOICE, &precision, 0, 0, "exact|fast", "x in 16 bits or in 8"},
        {"norm", OPTION_U32, &norm, 0, 1, NULL, "1: RMSNorm of x, times gamma"},
        {"repeat", OPTION_U32, &repeat, 1, 100000, NULL, "launches; the best time counts"},
        {"seed", OPTION_U32, &seed, 0, 0xffffffff, NULL, "of the random data"},
    };
    const command_line line = {EXAMPLE, "a matrix in Q4_K times a normalised vector",
                               options, sizeof options / sizeof *options,
                               NULL,    NULL,
                               0};
    progress checking = {"checking", 0, 0};
    ptxk_gemv_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    ptxcu_buffer y_buffer, workspace;
    ptxcu_event begin, end;
    unsigned char *weights;
    float *x, *gamma, *y;
    uint64_t state, row_bytes, count, i;
    uint32_t r, c, wrong = 0, k, step;
    double worst = 0, worst_bound = 0, best_ms = 0;
    int (*counters_get)(ptxsim_counters *, size_t) = NULL;
    void (*counters_reset)(void) = NULL;
    ptxsim_counters counted;
    void *symbol;

    memset(&desc, 0, sizeof desc);
    memset(&shape, 0, sizeof shape);
    desc.format = PTXK_Q4_K, desc.columns = 1, desc.output_type = PTX_F32;
    shape.n = shape.k = 4096;
    shape.sm_count = 1;
    if (!parse_command_line(&line, argc, argv)) return 2;
    desc.precision = precisions[precision];
    desc.flags = norm ? PTXK_GEMV_NORM | PTXK_GEMV_GAMMA : 0;
    if (ptxk_gemv_plan(&desc, &shape, &plan, &why)) { /* before anything is opened: are the sizes good? */
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    k = shape.k;
    row_bytes = ptxk_row_bytes(PTXK_Q4_K, k);
    weights = (unsigned char *)need(row_bytes * shape.n);
    state = (uint64_t)seed * 2 + 1;
    if (!path)
        make_blocks(weights, (size_t)(row_bytes * shape.n), &state);
    else if (!read_blocks(weights, (size_t)(row_bytes * shape.n), path))
        return free(weights), 2;
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u rows of %u in Q4_K, %u columns, x in %s bits, %s; seed %u\n", shape.n, k,
           desc.columns, desc.precision == PTXK_GEMV_EXACT ? "16" : "8",
           desc.flags ? "RMSNorm with gamma" : "no norm", seed);

    /* The plan: everything about the launches follows from the sizes and the device. */
    shape.sm_count = device->sm_count;
    (void)ptxk_gemv_plan(&desc, &shape, &plan, &why);
    must(cu, ptxcu_operation(cu, ptxk_operation_find("gemv"), &desc, &program));
    for (r = 0; r < plan.launches; r++)
        printf("launch %u   grid %u x %u, block %u, %u bytes of shared memory\n", r, plan.launch[r].grid[0],
               plan.launch[r].grid[1], plan.launch[r].block[0], plan.launch[r].shared_bytes);

    /* Random vectors, and poison where results belong. */
    count = (uint64_t)shape.n * desc.columns;
    x = (float *)need((uint64_t)k * desc.columns * sizeof *x);
    gamma = (float *)need(k * sizeof *gamma);
    y = (float *)need(count * sizeof *y);
    for (i = 0; i < (uint64_t)k * desc.columns; i++) x[i] = (float)(3 * uniform(&state));
    for (i = 0; i < k; i++) gamma[i] = (float)(1 + 0.5 * uniform(&state));
    memset(y, 0xff, (size_t)count * sizeof *y);
    memset(&args, 0, sizeof args);
    args.weights = to_device(cu, weights, (size_t)(row_bytes * shape.n)).address;
    args.x = to_device(cu, x, (size_t)k * desc.columns * sizeof *x).address;
    args.gamma = to_device(cu, gamma, k * sizeof *gamma).address;
    y_buffer = to_device(cu, y, (size_t)count * sizeof *y);
    args.y = y_buffer.address;
    workspace = device_bytes(cu, (size_t)plan.workspace_bytes + 1);
    args.workspace = workspace.address;
    args.n = shape.n;
    args.k = k;
    args.eps = 1e-5f;

    /* The CPU driver counts what moves. */
    symbol = ptxcu_symbol(cu, "ptxsim_counters_get");
    memcpy(&counters_get, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(cu, "ptxsim_counters_reset");
    memcpy(&counters_reset, &symbol, sizeof symbol);
    must(cu, ptxcu_event_create(cu, &begin));
    must(cu, ptxcu_event_create(cu, &end));
    for (r = 0; r < repeat; r++) {
        float ms;
        if (counters_reset) counters_reset();
        must(cu, ptxcu_event_record(cu, begin, NULL));
        must(cu, ptxcu_run(cu, program, &plan, &args, sizeof args, NULL));
        must(cu, ptxcu_event_record(cu, end, NULL));
        must(cu, ptxcu_sync(cu));
        must(cu, ptxcu_event_elapsed_ms(cu, begin, end, &ms));
        if (r == 0 || ms < best_ms) best_ms = ms;
    }
    must(cu, ptxcu_download(cu, y, y_buffer, 0, (size_t)count * sizeof *y, NULL));
    must(cu, ptxcu_sync(cu));
    printf("time       %.3f ms, best of %u%s\n", best_ms, repeat,
           device->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    printf("bytes      %.3f MB must move (weights, x, gamma, y)", (double)plan.min_bytes / 1e6);
    if (counters_get && counters_get(&counted, sizeof counted) == 0)
        printf("; %.3f MB were counted in sectors of 32: %.3f times that\n",
               32e-6 * (double)(counted.global_load_sectors + counted.global_store_sectors),
               32.0 * (double)(counted.global_load_sectors + counted.global_store_sectors)
                   / (double)plan.min_bytes);
    else
        printf(": %.1f GB/s\n", (double)plan.min_bytes / best_ms / 1e6);

    /* Rows beside their own bounds; of a large matrix some 1000. */
    step = shape.n > 2000 ? shape.n / 1000 : 1;
    for (c = 0; c < desc.columns; c++) {
        const float *column = x + (size_t)c * k;
        double rms = desc.flags ? ref_rms(column, k, (double)args.eps) : 1;
        for (r = 0; r < shape.n; r += step) {
            show_progress(&checking, (uint64_t)c * shape.n + r, (uint64_t)shape.n * desc.columns);
            double bound, norms, error, want;
            want = rms
                   * ref_gemv(REF_BLOCK_Q4_K, weights + row_bytes * r, column, desc.flags ? gamma : NULL, k,
                              desc.precision == PTXK_GEMV_EXACT ? 32639 : 127, &bound, &norms);
            bound = 1.01 * rms * bound + 2e-6 * fabs(want) + 1e-30;
            error = fabs((double)y[(size_t)c * shape.n + r] - want);
            if (!(error <= bound)) wrong++;
            keep_worst(error, bound, &worst, &worst_bound);
        }
    }
    show_progress(&checking, 1, 1);
    printf("error      %.3g at worst beside a tolerance of %.3g (derived from the arithmetic); %u of %u rows "
           "wrong: %s\n",
           worst, worst_bound, wrong, (shape.n + step - 1) / step * desc.columns, wrong ? "FAILED" : "ok");
    free(weights);
    free(x);
    free(gamma);
    free(y);
    free_device(cu);
    ptxcu_event_destroy(cu, begin);
    ptxcu_event_destroy(cu, end);
    ptxcu_close(cu);
    return wrong != 0;
}
