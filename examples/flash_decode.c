/* flash_decode - decode attention on the shapes of a real model: plan, launch, check against double.
   cc -O2 examples/flash_decode.c -o flash_decode -ldl -lm

     flash_decode [--heads 32] [--kv-heads 8] [--head-dim 128] [--type f16|bf16|f32]
                  [--lengths 4096,1,777,2048] [--repeat 3] [--seed N] [--help]

   Prints device, plan, time, the bytes that must move and (on the CPU driver) those that did, and the largest
   error beside its tolerance. Exits with 1 when a result is wrong. Runs on the GPU; without one, on the CPU
   driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./flash_decode */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_FLASH_DECODE /* no other is compiled */
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/flash_decode.h"
#include "../tests/sim/ptxsim.h"
#define EXAMPLE "flash_decode"
#include "example.h"

int main(int argc, char **argv) {
    static const ptx_type types[] = {PTX_F16, PTX_BF16, PTX_F32};
    uint32_t type = 0, batch, longest = 0, repeat = 3, seed = (uint32_t)time(NULL);
    uint32_list lengths = {4, {4096, 1, 777, 2048}};
    ptxk_flash_decode_desc desc;
    const option options[] = {
        {"heads", OPTION_U32, &desc.heads, 1, 1 << 20, NULL, "heads of q"},
        {"kv-heads", OPTION_U32, &desc.kv_heads, 1, 1 << 20, NULL, "heads of the cache; heads is a multiple"},
        {"head-dim", OPTION_U32, &desc.head_dim, 1, 1 << 20, NULL,
         "elements of a head, a multiple of 8 to 256"},
        {"type", OPTION_CHOICE, &type, 0, 0, "f16|bf16|f32", "of the cache"},
        {"lengths", OPTION_LIST, &lengths, 0, 1 << 24, NULL, "keys of each sequence"},
        {"repeat", OPTION_U32, &repeat, 1, 100000, NULL, "launches; the best time counts"},
        {"seed", OPTION_U32, &seed, 0, 0xffffffff, NULL, "of the random data"},
    };
    const command_line line = {EXAMPLE, "decode attention on the shapes of a model",
                               options, sizeof options / sizeof *options,
                               NULL,    NULL,
                               0};
    progress checking = {"checking", 0, 0};
    ptxk_flash_decode_shape shape;
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    enum ref_format format;
    uint64_t k_address[LIST_MAX], v_address[LIST_MAX], state, bytes;
    size_t row, q_count, cache_bytes, i;
    void *k_host[LIST_MAX], *v_host[LIST_MAX];
    float *q, *out;
    double *expected, *bound, *lse, *lse_bound, worst = 0, worst_bound = 0, best_ms = 0;
    uint32_t b, wrong = 0, r;
    ptxcu_buffer buffer;
    ptxcu_event begin, end;
    int (*counters_get)(ptxsim_counters *, size_t) = NULL;
    void (*counters_reset)(void) = NULL;
    ptxsim_counters counted;
    void *symbol;

    memset(&desc, 0, sizeof desc);
    desc.heads = 32, desc.kv_heads = 8, desc.head_dim = 128;
    if (!parse_command_line(&line, argc, argv)) return 2;
    desc.kv_type = types[type];
    batch = lengths.count;
    for (b = 0; b < batch; b++)
        if (lengths.at[b] > longest) longest = lengths.at[b];
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u heads on %u, head_dim %u, %s cache, %u sequences, longest %u; seed %u\n",
           desc.heads, desc.kv_heads, desc.head_dim, ptx_type_name((ptx_type)desc.kv_type), batch, longest,
           seed);

    /* The plan: everything about the launches follows from the sizes. */
    desc.q_type = desc.out_type = PTX_F32;
    desc.queries = 1;
    shape.batch = batch;
    shape.max_len = longest;
    shape.max_seq = longest ? longest : 1;
    shape.sm_count = device->sm_count;
    shape.cluster = device->max_cluster;
    shape.target = device->target;
    if (ptxk_flash_decode_plan(&desc, &shape, &plan, &why)) {
        fprintf(stderr, "%s\n", why.text);
        ptxcu_close(cu);
        return 2;
    }
    must(cu, ptxcu_operation(cu, ptxk_operation_find("flash_decode"), &desc, &program));
    for (r = 0; r < plan.launches; r++)
        printf("launch %u   grid %u x %u x %u, block %u%s%.0u\n", r, plan.launch[r].grid[0],
               plan.launch[r].grid[1], plan.launch[r].grid[2], plan.launch[r].block[0],
               plan.launch[r].cluster[2] ? ", clusters of " : "", plan.launch[r].cluster[2]);

    /* Random data, and poison where results belong. */
    state = (uint64_t)seed * 2 + 1;
    format = desc.kv_type == PTX_F32 ? REF_F32 : desc.kv_type == PTX_F16 ? REF_F16 : REF_BF16;
    row = (size_t)desc.heads * desc.head_dim;
    q_count = row * batch;
    cache_bytes = (size_t)desc.kv_heads * shape.max_seq * desc.head_dim * ref_bytes(format);
    q = (float *)need(q_count * sizeof *q);
    out = (float *)need(q_count * sizeof *out);
    for (i = 0; i < q_count; i++) q[i] = (float)(3 * uniform(&state));
    for (b = 0; b < batch; b++) {
        size_t n = cache_bytes / ref_bytes(format);
        k_host[b] = need(cache_bytes);
        v_host[b] = need(cache_bytes);
        for (i = 0; i < n; i++) {
            ref_put(k_host[b], format, i, uniform(&state));
            ref_put(v_host[b], format, i, uniform(&state));
        }
        k_address[b] = to_device(cu, k_host[b], cache_bytes).address;
        v_address[b] = to_device(cu, v_host[b], cache_bytes).address;
    }
    memset(&args, 0, sizeof args);
    args.q = to_device(cu, q, q_count * sizeof *q).address;
    args.k_caches = to_device(cu, k_address, batch * sizeof *k_address).address;
    args.v_caches = to_device(cu, v_address, batch * sizeof *v_address).address;
    args.lengths = to_device(cu, lengths.at, batch * sizeof *lengths.at).address;
    memset(out, 0xff, q_count * sizeof *out);
    buffer = to_device(cu, out, q_count * sizeof *out);
    args.out = buffer.address;
    args.max_seq = shape.max_seq;
    if (plan.workspace_bytes) {
        ptxcu_buffer workspace;
        workspace = device_bytes(cu, (size_t)plan.workspace_bytes);
        must(cu, ptxcu_fill8(cu, workspace, 0, 0, (size_t)plan.zero_bytes, NULL)); /* once for all launches */
        args.workspace = workspace.address;
    }

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
    must(cu, ptxcu_download(cu, out, buffer, 0, q_count * sizeof *out, NULL));
    must(cu, ptxcu_sync(cu));
    bytes = ptxk_flash_decode_bytes(&desc, lengths.at, batch);
    printf("time       %.3f ms, best of %u%s\n", best_ms, repeat,
           device->is_cpu_driver ? " (of a CPU that interprets PTX: says nothing about a GPU)" : "");
    printf("bytes      %.3f MB must move (K, V, q, out)", (double)bytes / 1e6);
    if (counters_get && counters_get(&counted, sizeof counted) == 0)
        printf("; %.3f MB were counted in sectors of 32: %.3f times that\n",
               32e-6 * (double)(counted.global_load_sectors + counted.global_store_sectors),
               32.0 * (double)(counted.global_load_sectors + counted.global_store_sectors) / (double)bytes);
    else
        printf(": %.1f GB/s\n", (double)bytes / best_ms / 1e6);

    /* Each output beside its own bound. */
    expected = (double *)need(row * sizeof *expected);
    bound = (double *)need(row * sizeof *bound);
    lse = (double *)need(desc.heads * sizeof *lse);
    lse_bound = (double *)need(desc.heads * sizeof *lse_bound);
    for (b = 0; b < batch; b++) {
        ref_attention about;
        show_progress(&checking, b, batch);
        memset(&about, 0, sizeof about);
        about.heads = desc.heads;
        about.kv_heads = desc.kv_heads;
        about.d = desc.head_dim;
        about.kv_format = format;
        about.scale = 1.0 / sqrt((double)desc.head_dim);
        about.rows = about.max_seq = shape.max_seq;
        about.length = lengths.at[b];
        about.splits = plan.launches ? plan.launch[0].grid[2] : 1;
        about.chunk = ptxk_flash_decode_chunk(&desc, lengths.at[b], about.splits);
        if (format != REF_F32 && (device->target & 0xfff) >= 80) about.tensor = 1;
        ref_flash_decode(&about, expected, bound, lse, lse_bound, q + b * row, k_host[b], v_host[b]);
        for (i = 0; i < row; i++) {
            double error = fabs((double)out[b * row + i] - expected[i]);
            if (!(error <= bound[i])) wrong++;
            keep_worst(error, bound[i], &worst, &worst_bound);
        }
        free(k_host[b]);
        free(v_host[b]);
    }
    show_progress(&checking, batch, batch);
    printf("error      %.3g at worst beside a tolerance of %.3g (derived from the arithmetic); %u of %lu "
           "wrong: %s\n",
           worst, worst_bound, wrong, (unsigned long)q_count, wrong ? "FAILED" : "ok");
    free(expected);
    free(bound);
    free(lse);
    free(lse_bound);
    free(q);
    free(out);
    free_device(cu);
    ptxcu_event_destroy(cu, begin);
    ptxcu_event_destroy(cu, end);
    ptxcu_close(cu);
    return wrong != 0;
}
